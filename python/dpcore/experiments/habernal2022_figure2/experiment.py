"""Appendix figure of Habernal (2022): Laplace noise by three formulas, and what DPText samples.

Five histograms at scale 1 over the exact laws: the three correct formulas for Laplace noise
(equations 4 to 7) and the two ways in which DPText's formula may have been implemented, with 0
for NaN and with NaN drawn again. Neither of these ever goes below 0.

On dpcore's grid of 2^53 uniforms the three correct formulas give the same bits, so with one seed
their histograms would be one histogram; each gets its own seed here.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...mechanisms import DPTextNoise, Laplace
from ...records import Shown
from ...sampling.drawing import sample
from ..running import SEED, Tabled, cell_seed, check_config, require_own_config, run_jobs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "habernal2022-figure2"
LOW, HIGH, BINS = -5.0, 5.0, 100
"""The bins: where they begin, where they end, and their number."""


@dataclass(frozen=True, slots=True, repr=False)
class Law(Shown):
    """One panel: a noise of scale 1 and what it must be.

    Args:
        noise: what is sampled.
        title: what the panel says.
        mean: E[s].
        square: E[s^2].
        fourth: E[s^4].
        weights: how much of Exp(1) lies above 0 and below 0.
        atom: P(s = 0).
    """

    noise: Laplace | DPTextNoise
    title: str
    mean: float
    square: float
    fourth: float
    weights: tuple[float, float]
    atom: float = 0.0

    def density(self, s: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Compute the density, without the atom, at points of shape `(size,)`."""
        weight = np.where(s >= 0, *self.weights)
        return weight * np.exp(-np.abs(s))


_LAPLACE_MOMENTS = (0.0, 2.0, 24.0, (0.5, 0.5))

LAWS: dict[str, Law] = {
    "sign": Law(Laplace(1.0, "sign"), "sign formula (eq. 4)", *_LAPLACE_MOMENTS),
    "two_branch": Law(Laplace(1.0, "two_branch"), "two branches (eq. 5)", *_LAPLACE_MOMENTS),
    "centred": Law(Laplace(1.0, "centred"), "centred draw (eq. 6, 7)", *_LAPLACE_MOMENTS),
    "dptext_zero": Law(
        DPTextNoise(1.0, "zero"), "DPText, NaN to 0", 0.5, 1.0, 12.0, (0.5, 0.0), 0.5
    ),
    "dptext_resample": Law(
        DPTextNoise(1.0, "resample"), "DPText, NaN drawn again", 1.0, 2.0, 24.0, (1.0, 0.0)
    ),
}
"""The panels; the moments follow from E[Exp(1)^k] = k! and the weights."""


@dataclass(frozen=True, slots=True, repr=False)
class Config(Shown):
    """Options of the experiment: the number of draws.

    Args:
        trials: draws in each histogram, 8 bytes of memory each.
        seed: int in [0, 2**63); every histogram gets its own seed derived from it.

    Raises:
        TypeError: if a field is of the wrong kind.
        ValueError: if a value is out of range.

    Example:
        >>> Config(trials="1e6").trials
        1000000
    """

    trials: int = 4 * 10**6
    seed: int = SEED

    def __post_init__(self) -> None:
        """Check the fields."""
        check_config(self)


@dataclass(frozen=True, slots=True, repr=False)
class Histogram(Shown):
    """Draws of one panel.

    Args:
        name: key in `LAWS`.
        seed: repeats the draws.
        counts: draws in each of the equal bins from -5 to 5, exact zeros left out.
        zeros: draws that are exactly 0.
        below: draws below 0, wherever they lie.
        outside: draws that are in no bin.
        mean: mean of all draws.
        square: mean of their squares.
    """

    name: str
    seed: int
    counts: tuple[int, ...]
    zeros: int
    below: int
    outside: int
    mean: float
    square: float

    @property
    def law(self) -> Law:
        """The exact law."""
        return LAWS[self.name]

    @property
    def trials(self) -> int:
        """Number of draws."""
        return sum(self.counts) + self.zeros + self.outside

    @property
    def errors(self) -> tuple[float, float]:
        """Standard errors of `mean` and `square` under the exact law."""
        law = self.law
        variances = (law.square - law.mean**2, law.fourth - law.square**2)
        return math.sqrt(variances[0] / self.trials), math.sqrt(variances[1] / self.trials)


def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Draw the five histograms.

    Args:
        config: how many draws.
        threads: number of threads, None for all cores.
        progress: show a bar; None shows it for long work on a terminal or in a notebook.

    Returns:
        The result, one histogram for each law.

    Raises:
        KeyboardInterrupt: on Ctrl-C before the first histogram is done.

    Source:
        Habernal (2022), section 3 and the figure of its appendix.

    Example:
        >>> drawn = run(Config(trials=1000)).histograms
        >>> [histogram.below == 0 for histogram in drawn]
        [False, False, False, True, True]
    """
    require_own_config(config, __name__)
    begun = time.perf_counter()
    done, partial = run_jobs(
        "figure 2", tuple(LAWS), lambda name: _make_histogram(name, config, threads), progress
    )
    return Result(config, done, partial, time.perf_counter() - begun)


def _make_histogram(name: str, config: Config, threads: int | None) -> Histogram:
    seed = cell_seed(config.seed, name)
    drawn = sample(LAWS[name].noise, [0.0], config.trials, rng=seed, threads=threads)[:, 0]
    nonzero = drawn[drawn != 0.0]
    counts, _ = np.histogram(nonzero, BINS, (LOW, HIGH))
    return Histogram(
        name,
        seed,
        tuple(counts.tolist()),
        zeros=config.trials - nonzero.size,
        below=int((nonzero < 0).sum()),
        outside=nonzero.size - int(counts.sum()),
        mean=float(drawn.mean()),
        square=float(np.square(drawn).mean()),
    )


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled):
    """The histograms.

    Args:
        config: the options of the run.
        histograms: one for each law, in the order of `LAWS`.
        partial: True if Ctrl-C ended the run early.
        seconds: time taken (not compared).
    """

    config: Config
    histograms: tuple[Histogram, ...]
    partial: bool = False
    seconds: float = field(default=0.0, compare=False)

    def table(self) -> str:
        """Return the figures as text: moments with the expected ones, zeros and negative draws."""
        from .text import write_table

        return write_table(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        from .text import write_plain_data

        return write_plain_data(self)

    def plot(self, ax: Any = None) -> Figure:
        """Draw the histograms over the exact densities; an atom is a stem.

        Returns:
            A matplotlib figure.
        """
        from .drawing import draw_figure

        return draw_figure(self, ax)
