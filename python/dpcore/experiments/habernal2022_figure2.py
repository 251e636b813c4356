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

from ..mechanisms import DPTextNoise, Laplace
from ..records import Shown
from ..report.encoding import encode_value
from ..report.figures import BLUE, INK, RED, apply_style
from ..report.text import align_rows
from ..sampling.sources import sample
from .presentation import SMALL, TEXT, make_canvas, make_record_head, tidy_axes
from .running import SEED, Tabled, cell_seed, check_config, require_own_config, run_jobs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "habernal2022-figure2"
LOW, HIGH, BINS = -5.0, 5.0, 100
"""The bins: where they begin, where they end, and their number."""

_LAPLACE_MOMENTS = (0.0, 2.0, 24.0, (0.5, 0.5))


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
        return write_table(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return write_plain_data(self)

    def plot(self, ax: Any = None) -> Figure:
        """Draw the histograms over the exact densities; an atom is a stem.

        Returns:
            A matplotlib figure.
        """
        return draw_figure(self, ax)


def write_table(result: Result) -> str:
    """Format a row for each histogram."""
    head = ("noise of scale 1", "mean", "expected", "E[s^2]", "expected", "s = 0", "s < 0")
    rows = [
        (
            drawn.law.title,
            f"{round(drawn.mean, 4) + 0.0:.4f}",
            f"{drawn.law.mean:g}",
            f"{drawn.square:.4f}",
            f"{drawn.law.square:g}",
            f"{drawn.zeros / drawn.trials:.4f}",
            f"{drawn.below / drawn.trials:.4f}",
        )
        for drawn in result.histograms
    ]
    title = (
        f"Habernal (2022), appendix figure: {result.config.trials:,} draws each, "
        f"seed {result.config.seed}"
    )
    note = (
        "The three correct formulas give the same bits on the grid of 2^53 uniforms; they\n"
        "have different seeds here."
    )
    parts = [title, align_rows([head, *rows]), note]
    if result.partial:
        parts.insert(1, "INTERRUPTED: only what was drawn is shown")
    return "\n\n".join(parts)


def write_plain_data(result: Result) -> dict[str, Any]:
    """Return the result as plain data for strict JSON."""
    rows = [_histogram_to_dict(drawn) for drawn in result.histograms]
    bins = {"low": LOW, "high": HIGH, "bins": BINS}
    return {**make_record_head(NAME, result), **bins, "histograms": rows}


def _histogram_to_dict(drawn: Histogram) -> dict[str, Any]:
    return {
        "name": drawn.name,
        "native": encode_value(drawn.law.noise),
        "seed": str(drawn.seed),
        "trials": drawn.trials,
        "mean": drawn.mean,
        "expected_mean": drawn.law.mean,
        "mean_error": drawn.errors[0],
        "square": drawn.square,
        "expected_square": drawn.law.square,
        "square_error": drawn.errors[1],
        "zeros": drawn.zeros,
        "expected_zeros": drawn.law.atom * drawn.trials,
        "below": drawn.below,
        "outside": drawn.outside,
        "counts": list(drawn.counts),
    }


def draw_figure(result: Result, ax: Any = None) -> Figure:
    """Draw histograms as filled steps, exact densities as lines, and an atom as a stem."""
    picture = make_canvas(4.2, ax)
    panels = picture.subplots(2, 3, sharex=True, sharey=True).ravel()
    panels[2].tick_params(labelbottom=True)
    for axes, drawn in zip(panels, result.histograms, strict=False):
        _draw_histogram(axes, drawn)
    for axes in panels[len(result.histograms) :]:
        axes.set_axis_off()
    picture.supxlabel("noise s (scale b = 1)", fontsize=TEXT)
    picture.supylabel("density", fontsize=TEXT)
    panels[-1].legend(
        handles=_make_histogram_legend(), loc="upper left", frameon=False, fontsize=SMALL
    )
    note = (
        f"{result.config.trials:,} draws each.\nThe three correct formulas give\n"
        "the same bits on dpcore's grid\nof uniforms: different seeds here."
    )
    place = {"transform": panels[-1].transAxes, "va": "bottom", "fontsize": SMALL}
    panels[-1].text(0.04, 0.0, note, linespacing=1.35, **place)
    return apply_style(picture)


def _draw_histogram(axes: Axes, drawn: Histogram) -> None:
    law, width = drawn.law, (HIGH - LOW) / BINS
    colour = BLUE if law.weights[0] == law.weights[1] else RED
    heights = np.array(drawn.counts) / (drawn.trials * width)
    axes.stairs(heights, np.linspace(LOW, HIGH, BINS + 1), fill=True, color=colour, alpha=0.45)
    # Two points at 0: the density of DPText jumps there.
    s = np.concatenate([np.linspace(LOW, -1e-9, 200), np.linspace(0.0, HIGH, 200)])
    axes.plot(s, law.density(s), color=INK, linewidth=0.9)
    if law.atom:
        axes.plot([0, 0], [0, law.atom], color=INK, linewidth=2.2)
        axes.plot([0], [law.atom], "o", color=INK, markersize=5)
        label = f"atom P(s = 0) = {law.atom:g}\n(drawn: {drawn.zeros / drawn.trials:.4f})"
        axes.text(-0.35, law.atom, label, ha="right", va="center", fontsize=SMALL)
    moments = (
        f"mean {round(drawn.mean, 4) + 0.0:.4f} (expected {law.mean:g})\n"
        f"E[s²] {drawn.square:.4f} (expected {law.square:g})"
    )
    axes.text(0.99, 0.97, moments, transform=axes.transAxes, ha="right", va="top", fontsize=SMALL)
    axes.set_title(law.title, fontsize=TEXT, loc="left")
    axes.set(xlim=(LOW, HIGH), ylim=(0.0, 1.3))
    tidy_axes(axes)


def _make_histogram_legend() -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    return [
        Patch(color=BLUE, alpha=0.45, label="drawn, correct formula"),
        Patch(color=RED, alpha=0.45, label="drawn, DPText's formula"),
        Line2D([], [], color=INK, linewidth=0.9, label="exact density"),
        Line2D([], [], color=INK, linewidth=2.2, marker="o", markersize=5, label="atom (a mass)"),
    ]
