"""Appendix figure of Habernal (2022): histograms of Laplace noise and of DPText's noise.

The experiment draws five noises of scale 1, and shows each histogram with its exact density. Three
noises are computed by correct formulas for the Laplace law (equations 4 to 7 of the paper). The
other two noises are computed by the faulty formula of DPText, which gives NaN for half of all
draws. The first DPText noise replaces NaN by 0. The second DPText noise draws again until the value
is not NaN. The noise of DPText is never negative.

dpcore draws uniform numbers from a grid of 2^53 points. For the same uniform number, the three
correct formulas give exactly the same noise. Each histogram therefore uses a separate seed;
otherwise, three histograms would be identical.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..mechanisms import DPTextNoise, Laplace
from ..records import Floats
from ..report.figures import BLUE, INK, RED, restyle_figure
from ..report.shown import Shown
from ..sampling.sources import sample
from .base import Column, SeededSettings, align_columns
from .drawing import SMALL, TEXT, Axes, Figure, empty_figure, make_line, make_patch, style_axes
from .running import Tabled, cell_seed, run_jobs, time_run

NAME = "habernal2022-figure2"
LOW, HIGH, BINS = -5.0, 5.0, 100
"""Start of the first bin, end of the last bin, and number of bins."""

_LAPLACE_MOMENTS = (0.0, 2.0, 24.0, (0.5, 0.5))


@dataclass(frozen=True, slots=True, repr=False)
class Law(Shown):
    """Exact distribution of one noise of scale 1: the moments and the density.

    Args:
        noise: mechanism that draws the noise.
        title: title of the panel that shows the noise.
        mean: exact mean E[s] of the noise s.
        square: exact second moment E[s^2].
        fourth: exact fourth moment E[s^4].
        weights: two factors of the density. For s above 0, the density at s is the first factor
            times exp(-s). For s below 0, the density at s is the second factor times exp(s).
        atom: probability that the noise is exactly 0, P(s = 0).
    """

    noise: Laplace | DPTextNoise
    title: str
    mean: float
    square: float
    fourth: float
    weights: tuple[float, float]
    atom: float = 0.0

    def density(self, s: Floats) -> Floats:
        """Compute the density of this noise at the points `s`, shape `(size,)`.

        The density does not include the probability that the noise is exactly 0.
        """
        return np.where(s >= 0, *self.weights) * np.exp(-np.abs(s))


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
"""The five noises by name. The exact moments follow from E[Exp(1)^k] = k! and from the field
`weights` of `Law`."""


@dataclass(frozen=True, slots=True, repr=False)
class Config(SeededSettings):
    """Options of the experiment that draws histograms of five noises.

    Args:
        trials: number of draws for each histogram. Each draw needs 8 bytes of memory.
        seed: int in [0, 2**63). Every histogram gets a separate seed derived from this seed.

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a value is out of range.

    Example:
        >>> Config(trials="1e6").trials
        1000000
    """

    trials: int = 4 * 10**6


@dataclass(frozen=True, slots=True, repr=False)
class PanelDraws(Shown):
    """Histogram and sample moments of the draws of one noise.

    Args:
        name: name of the noise, a key of `LAWS` such as "dptext_zero".
        seed: seed that reproduces the draws.
        counts: number of draws in each bin of the histogram. Draws that are exactly 0 are not
            counted. The bins divide the interval from -5 to 5 into equal parts.
        zeros: number of draws that are exactly 0.
        below: number of draws below 0, inside or outside of the bins.
        outside: number of draws below -5 or above 5.
        mean: mean of all draws.
        square: mean of the squares of all draws.
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
        """Exact distribution of the noise in this histogram."""
        return LAWS[self.name]

    @property
    def trials(self) -> int:
        """Number of draws of the noise, including zeros and draws outside of the histogram."""
        return sum(self.counts) + self.zeros + self.outside

    @property
    def std_error_of_mean(self) -> float:
        """Standard error of the sample mean of the draws, from the exact variance of the noise."""
        return math.sqrt((self.law.square - self.law.mean**2) / self.trials)

    @property
    def std_error_of_squares(self) -> float:
        """Standard error of the mean of the squared draws, from the exact moments of the noise."""
        return math.sqrt((self.law.fourth - self.law.square**2) / self.trials)

    @property
    def expected_zeros(self) -> float:
        """Expected number of draws that are exactly 0, from the exact probability of 0."""
        return self.law.atom * self.trials


@time_run()
def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Draw histograms of five noises of scale 1: three Laplace noises and two DPText noises.

    Args:
        config: options of the experiment (the number of draws, and the seed).
        threads: number of threads. The default is one thread per core.
        progress: True to show a progress bar. By default, dpcore shows the bar for long work on a
            terminal or in a notebook.

    Returns:
        The result, with one histogram for each noise.

    Raises:
        KeyboardInterrupt: if the user presses Ctrl-C before the first histogram is completed.

    Source:
        Habernal (2022), section 3 and the figure of its appendix.

    Example:
        >>> drawn = run(Config(trials=1000)).histograms
        >>> [histogram.below == 0 for histogram in drawn]
        [False, False, False, True, True]
    """
    work = partial(_sample_panel_noise, config=config, threads=threads)
    done, ended = run_jobs("figure 2", tuple(LAWS), work, progress)
    return Result(config, done, partial=ended)


def _sample_panel_noise(name: str, config: Config, threads: int | None) -> PanelDraws:
    seed = cell_seed(config.seed, name)
    drawn = sample(LAWS[name].noise, [0.0], config.trials, rng=seed, threads=threads)[:, 0]
    nonzero = drawn[drawn != 0.0]
    counts, _ = np.histogram(nonzero, BINS, (LOW, HIGH))
    below, outside = int((nonzero < 0).sum()), nonzero.size - int(counts.sum())
    sizes = config.trials - nonzero.size, below, outside
    means = float(drawn.mean()), float(np.square(drawn).mean())
    return PanelDraws(name, seed, tuple(counts.tolist()), *sizes, *means)


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled[Config]):
    """Histograms and sample moments of five noises of scale 1.

    Args:
        config: options with which the experiment was run.
        histograms: one histogram (`PanelDraws`) for each noise, in the order of `LAWS`.
    """

    histograms: tuple[PanelDraws, ...]

    def table(self) -> str:
        """Return the sample moments of the five noises, and the exact moments, as plain text.

        The text also contains the shares of draws that are exactly 0, and of draws below 0.
        """
        return self.join_parts(
            f"Habernal (2022), appendix figure: {self.config.trials:,} draws each, "
            f"seed {self.config.seed}",
            align_columns(_COLUMNS, self.histograms),
            "The three correct formulas give the same bits on the grid of 2^53 uniforms; they\n"
            "have different seeds here.",
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the histograms as a dict of plain data (numbers, strings, lists and dicts)."""
        rows = [_draws_to_dict(drawn) for drawn in self.histograms]
        return self.make_record(low=LOW, high=HIGH, bins=BINS, histograms=rows)

    def plot(self, ax: Any = None) -> Figure:
        """Draw the histogram and the exact density of each noise.

        Returns:
            A matplotlib figure. A vertical line at 0 shows the probability that the noise is
            exactly 0.
        """
        picture = empty_figure(4.2, ax)
        panels = picture.subplots(2, 3, sharex=True, sharey=True).ravel()
        panels[2].tick_params(labelbottom=True)
        for axes, drawn in zip(panels, self.histograms, strict=False):
            _draw_histogram(axes, drawn)
        for axes in panels[len(self.histograms) :]:
            axes.set_axis_off()
        picture.supxlabel("noise s (scale b = 1)", fontsize=TEXT)
        picture.supylabel("density", fontsize=TEXT)
        handles = [
            make_patch("drawn, correct formula", BLUE, alpha=0.45),
            make_patch("drawn, DPText's formula", RED, alpha=0.45),
            make_line("exact density", linewidth=0.9),
            make_line("atom (a mass)", linewidth=2.2, marker="o", markersize=5),
        ]
        panels[-1].legend(handles=handles, loc="upper left", frameon=False, fontsize=SMALL)
        note = (
            f"{self.config.trials:,} draws each.\nThe three correct formulas give\n"
            "the same bits on dpcore's grid\nof uniforms: different seeds here."
        )
        place = {"transform": panels[-1].transAxes, "va": "bottom", "fontsize": SMALL}
        panels[-1].text(0.04, 0.0, note, linespacing=1.35, **place)
        return restyle_figure(picture)


_COLUMNS = (
    Column("noise of scale 1", "law.title", left=True),
    Column("mean", "mean", "z.4f"),
    Column("expected", "law.mean", "g"),
    Column("E[s^2]", "square", ".4f"),
    Column("expected", "law.square", "g"),
    Column("s = 0", lambda drawn: drawn.zeros / drawn.trials, ".4f"),
    Column("s < 0", lambda drawn: drawn.below / drawn.trials, ".4f"),
)


def _draws_to_dict(drawn: PanelDraws) -> dict[str, Any]:
    law = drawn.law
    return (
        {"name": drawn.name, "native": law.noise, "seed": str(drawn.seed), "trials": drawn.trials}
        | {"mean": drawn.mean, "expected_mean": law.mean, "mean_error": drawn.std_error_of_mean}
        | {"square": drawn.square, "expected_square": law.square}
        | {"square_error": drawn.std_error_of_squares, "zeros": drawn.zeros}
        | {"expected_zeros": drawn.expected_zeros, "below": drawn.below}
        | {"outside": drawn.outside, "counts": drawn.counts}
    )


def _draw_histogram(axes: Axes, drawn: PanelDraws) -> None:
    law, width = drawn.law, (HIGH - LOW) / BINS
    colour = BLUE if law.weights[0] == law.weights[1] else RED
    heights = np.array(drawn.counts) / (drawn.trials * width)
    axes.stairs(heights, np.linspace(LOW, HIGH, BINS + 1), fill=True, color=colour, alpha=0.45)
    # There are two points at 0, because the density of DPText jumps there.
    s = np.concatenate([np.linspace(LOW, -1e-9, 200), np.linspace(0.0, HIGH, 200)])
    axes.plot(s, law.density(s), color=INK, linewidth=0.9)
    if law.atom:
        axes.plot([0, 0], [0, law.atom], color=INK, linewidth=2.2)
        axes.plot([0], [law.atom], "o", color=INK, markersize=5)
        label = f"atom P(s = 0) = {law.atom:g}\n(drawn: {drawn.zeros / drawn.trials:.4f})"
        axes.text(-0.35, law.atom, label, ha="right", va="center", fontsize=SMALL)
    moments = (
        f"mean {drawn.mean:z.4f} (expected {law.mean:g})\n"
        f"E[s²] {drawn.square:.4f} (expected {law.square:g})"
    )
    axes.text(0.99, 0.97, moments, transform=axes.transAxes, ha="right", va="top", fontsize=SMALL)
    axes.set(xlim=(LOW, HIGH), ylim=(0.0, 1.3))
    style_axes(axes, title=law.title)
