"""Figure 1 of Habernal (2021): share of input pairs that ADePT's noise does not protect.

ADePT clips the vector of an encoder, which has n entries, to the L2 norm C. ADePT then adds Laplace
noise of scale 2C / epsilon, because two clipped vectors have an L2 distance of at most 2C.
Epsilon-DP requires the largest L1 distance instead, which is 2C sqrt(n). The experiment draws pairs
of random vectors and clips them. It counts the pairs with an L1 distance above 2C. The noise does
not protect these pairs.

There are two remedies: clipping to the L1 norm C, or noise of scale 2C sqrt(n) / epsilon. The
experiment repeats the count after the first remedy. The lower half of the picture shows the
noise-to-signal ratio of both remedies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, product
from typing import Any, Final

import numpy as np

from .. import _core
from ..bounds.binomial import limits
from ..errors import integer, real
from ..records import Floats
from ..report.figures import BLUE, GREEN, GREY, INK, RED, restyle_figure
from ..report.rows import align_rows
from ..report.shown import Shown
from ..sensitivity import Clip, laplace_scale, sensitivity
from ..streams import threads_of
from .base import SEED, Settings, setting
from .drawing import SMALL, Axes, Figure, empty_figure, make_line, set_ticks, style_axes
from .running import Tabled, cell_seed, run_jobs, time_run

NAME = "habernal2021-figure1"

COMPARISON: Final[dict[int, tuple[float, float, float]]] = {
    2: (0.134, 0.0, 0.0), 8: (0.952, 0.0001, 0.0), 24: (1.0, 0.963, 0.0), 64: (1.0, 1.0, 0.0),
    160: (1.0, 1.0, 0.037), 200: (1.0, 1.0, 0.986), 255: (1.0, 1.0, 1.0),
}  # fmt: skip
"""Shares of pairs that the noise does not protect, after L2 clipping. The rounded shares are from
an earlier run of 10,000 pairs. For each number of entries n, the three shares belong to the three
laws in `LAWS`."""

COMPARED_PAIRS: Final = 10_000

_COST_DIMS: Final = tuple(2**power for power in range(11))
"""Numbers of entries for which noise-to-signal ratios are computed. Habernal (2021) considers up to
1024 entries typical."""

_TYPICAL_DIMS: Final = (32, 64, 128, 256, 512, 1024)

_AVERAGED_VECTORS: Final = 1000
"""Number of random vectors over which the squared norm after clipping is averaged."""

NORMS: Final = ("l2", "l1")

CONFIDENCE: Final = 0.95
_MAX_MAGNITUDE: Final = 1e90


def p_value(ours: tuple[int, int], printed: float, pairs: int) -> float:
    """Compare the numbers of hits of two runs by Fisher's exact test, and return the p-value.

    A hit is a pair of vectors that the noise does not protect as claimed. The hypothesis is that
    both runs have the same probability of a hit.

    Args:
        ours: number of hits and number of pairs of the first run.
        printed: rounded share of hits in the second run. Several numbers of hits give the same
            rounded share. Among these numbers, the test uses the number of hits that makes the
            shares of the two runs most similar.
        pairs: number of pairs in the second run.

    Returns:
        min(1, 2 min(P(K <= k), P(K >= k))). Here k is the number of hits of the first run. K has
        the hypergeometric distribution, given the total number of hits of both runs.

    Example:
        >>> p_value((1340, 10_000), 0.134, 10_000), p_value((1, 10_000), 0.134, 10_000) < 1e-100
        (1.0, True)
    """
    from scipy.special import gammaln

    k, n = ours
    half = 0.5 * 10.0 ** -max(3, len(f"{printed:g}".partition(".")[2]))
    low, high = max(0.0, (printed - half) * pairs), min(pairs, (printed + half) * pairs)
    total = k + round(min(max(k / n * pairs, low), high))
    # `hits` are the possible numbers among our n pairs, if there are `total` hits in both runs.
    hits = np.arange(max(0, total - pairs), min(total, n) + 1)
    others = total - hits
    log_mass = -(gammaln(hits + 1) + gammaln(n - hits + 1))
    log_mass -= gammaln(others + 1) + gammaln(pairs - others + 1)
    mass = np.exp(log_mass - log_mass.max())
    below, above = mass[hits <= k].sum(), mass[hits >= k].sum()
    return float(min(1.0, 2.0 * min(below, above) / mass.sum()))


@dataclass(frozen=True, slots=True)
class Law:
    """Probability distribution from which every entry of a random vector is drawn.

    Args:
        title: description of the distribution in the picture.
        kind: "uniform" (between -spread * C and spread * C) or "normal" (mean 0 and standard
            deviation spread * C). C is the radius to which the vectors are clipped later.
        spread: half-width or standard deviation of the distribution, divided by C.
    """

    title: str
    kind: str
    spread: float

    def draw(self, rng: np.random.Generator, dim: int, radius: float, size: int) -> Floats:
        """Draw `size` random vectors with `dim` entries from this distribution.

        The vectors are not yet clipped to `radius`. The result has the shape `(size, dim)`.
        """
        spread = self.spread * radius
        if self.kind == "uniform":
            return rng.uniform(-spread, spread, (size, dim))
        return rng.normal(0.0, spread, (size, dim))


LAWS: Final[dict[str, Law]] = {
    "uniform": Law("uniform in [-C, C]", "uniform", 1.0),
    "normal 0.1": Law("normal, std 0.1 C", "normal", 0.1),
    "normal 0.01": Law("normal, std 0.01 C", "normal", 0.01),
}


@dataclass(frozen=True, slots=True, repr=False)
class SensitivityComparison(Shown):
    """True L1 sensitivity of L2-clipped vectors, and the smaller value that the encoder ADePT uses.

    Args:
        dim: number n of entries of each vector.
        claimed: sensitivity that ADePT uses, 2 C. C is the radius of the clip.
        true: true L1 sensitivity after L2 clipping, 2 C sqrt(n).
        attained: L1 distance between two example vectors after clipping. The distance equals
            `true`, up to rounding.
    """

    dim: int
    claimed: float
    true: float
    attained: float

    @property
    def factor(self) -> float:
        """True L1 sensitivity divided by the sensitivity that ADePT uses.

        The true epsilon is larger than the claimed epsilon by the same factor.
        """
        return self.true / self.claimed


def compare_sensitivities(radius: float) -> tuple[SensitivityComparison, ...]:
    """Compute the true L1 sensitivity, and the sensitivity that ADePT uses.

    The result has one element for each of several typical vector lengths, from 32 to 1024. `radius`
    is the radius of the L2 clip. According to the source, the true sensitivity is 5.66 to 32 times
    the sensitivity that ADePT uses.

    Source:
        Habernal (2021), corollary 5.1 and the paragraph after it.

    Example:
        >>> [round(row.factor, 2) for row in compare_sensitivities(10.0)]
        [5.66, 8.0, 11.31, 16.0, 22.63, 32.0]
    """
    rows = []
    for dim in _TYPICAL_DIMS:
        sensitivity_l1 = sensitivity(Clip("l2", radius).range(dim), "l1")
        attained = float(np.abs(sensitivity_l1.pair.x - sensitivity_l1.pair.x_prime).sum())
        rows.append(SensitivityComparison(dim, 2.0 * radius, sensitivity_l1.value, attained))
    return tuple(rows)


@dataclass(frozen=True, slots=True, repr=False)
class NoiseRatio(Shown):
    """Noise-to-signal ratio of one of the two corrected versions of the text encoder ADePT.

    All vectors have the same number of entries, and are drawn from the same distribution.

    Args:
        law: name of the distribution of the vectors, a key of `LAWS` such as "uniform".
        norm: norm in which the correction clips the vectors. If "l1", the noise has scale
            `2 C / epsilon`. If "l2", the noise has scale `2 C sqrt(n) / epsilon`. C is the radius
            of the clip.
        dim: number n of entries of each vector.
        scale: scale of the Laplace noise that is added to every entry.
        signal: root mean square of the L2 norms of the clipped vectors.
    """

    law: str
    norm: str
    dim: int
    scale: float
    signal: float

    @property
    def ratio(self) -> float:
        """Noise-to-signal ratio of this correction of ADePT.

        The size of the noise is the root mean square of its L2 norm, scale * sqrt(2 n). The size of
        the signal is the field `signal`.
        """
        return self.scale * math.sqrt(2.0 * self.dim) / self.signal


def noise_over_signal(radius: float, epsilon: float, seed: int) -> tuple[NoiseRatio, ...]:
    """Compute the noise-to-signal ratio of two corrections of ADePT.

    The first correction clips the vectors in the L1 norm. The second correction clips the vectors
    in the L2 norm, and adds more noise. Both corrections clip the same random vectors.

    Args:
        radius: radius C of the clip.
        epsilon: epsilon that both corrections guarantee.
        seed: seed of the experiment. The seeds of the random vectors are derived from this seed.

    Returns:
        One result (`NoiseRatio`) for each distribution of the vectors, number of entries and norm,
        sorted in this order.

    Example:
        >>> wide = [cost for cost in noise_over_signal(10.0, 1.0, 1) if cost.dim == 1024][:2]
        >>> [(cost.norm, round(cost.scale), round(cost.ratio, -1)) for cost in wide]
        [('l1', 20, 2510.0), ('l2', 640, 2900.0)]
    """
    costs = []
    for name, dim in product(LAWS, _COST_DIMS):
        rng = np.random.default_rng(cell_seed(seed, f"cost/{name}/{dim}"))
        drawn = LAWS[name].draw(rng, dim, radius, _AVERAGED_VECTORS)
        for clip in (Clip("l1", radius), Clip("l2", radius)):
            signal = math.sqrt(float(np.square(clip(drawn)).sum(axis=1).mean()))
            costs.append(
                NoiseRatio(name, clip.norm, dim, laplace_scale(epsilon, clip, dim), signal)
            )
    return tuple(costs)


@dataclass(frozen=True, slots=True, repr=False)
class Config(Settings):
    """Options of the experiment: the number of random pairs, and the lengths of the vectors.

    Args:
        trials: number of pairs of random vectors for every number of entries, distribution and
            norm.
        dims: numbers of entries that a vector can have, each from 1 to 4096.
        radius: radius C to which all vectors are clipped, from 1e-90 to 1e90.
        epsilon: epsilon that both corrections of ADePT guarantee, from 1e-90 to 1e90.
        seed: int in [0, 2**63). Each combination of number of entries and distribution gets a
            separate seed, derived from this seed.

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a value is out of range, or `dims` is empty or contains a number twice.

    Example:
        >>> Config(trials="1e6", dims=(2, 4096)).trials
        1000000
    """

    trials: int = COMPARED_PAIRS
    dims: tuple[int, ...] = setting(tuple(range(1, 256)), integer, 1, _core.MOST_PAIR_ENTRIES)
    radius: float = setting(10.0, real, low=1.0 / _MAX_MAGNITUDE, high=_MAX_MAGNITUDE)
    epsilon: float = setting(1.0, real, low=1.0 / _MAX_MAGNITUDE, high=_MAX_MAGNITUDE)
    seed: int = SEED


@dataclass(frozen=True, slots=True, repr=False)
class Cell(Shown):
    """Number of pairs of clipped vectors that the noise of the encoder ADePT does not protect.

    Args:
        dim: number n of entries of each vector.
        law: name of the distribution of the vectors, a key of `LAWS` such as "uniform".
        norm: norm in which the vectors were clipped, "l2" or "l1".
        beyond: number of pairs whose L1 distance is above 2C (1 + 1e-12). C is the radius of the
            clip, and the factor 1 + 1e-12 allows for rounding errors. The noise does not protect
            these pairs.
        pairs: number of drawn pairs.
        seed: seed that reproduces the pairs. The counts for both norms use the same pairs.
    """

    dim: int
    law: str
    norm: str
    beyond: int
    pairs: int
    seed: int

    @property
    def share(self) -> float:
        """Share of pairs of clipped vectors that the noise does not protect."""
        return self.beyond / self.pairs

    @property
    def interval(self) -> tuple[float, float]:
        """Clopper-Pearson interval (95 %) for the probability that a pair is not protected."""
        return limits(self.beyond, self.pairs, (1.0 - CONFIDENCE) / 2.0)

    @property
    def compared(self) -> float | None:
        """Rounded share of pairs that the noise did not protect, in an earlier run of 10,000 pairs.

        The value is None if the earlier run does not contain this combination of number of entries,
        distribution and norm.
        """
        if self.norm != "l2" or self.dim not in COMPARISON:
            return None
        return COMPARISON[self.dim][list(LAWS).index(self.law)]

    @property
    def p_value(self) -> float | None:
        """P-value of a test of the hypothesis that this run and an earlier run agree.

        The runs agree if the probability that the noise does not protect a pair is the same in
        both. The value is None if the earlier run does not contain this combination of number of
        entries, distribution and norm.
        """
        if self.compared is None:
            return None
        return p_value((self.beyond, self.pairs), self.compared, COMPARED_PAIRS)


@time_run()
def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Count the pairs of clipped vectors that the noise of the encoder ADePT does not protect.

    Args:
        config: options of the experiment, such as the number of pairs.
        threads: number of threads. The default is one thread per core.
        progress: True to show a progress bar. By default, dpcore shows the bar for long work on a
            terminal or in a notebook.

    Returns:
        The counts for every number of entries, distribution and norm. If the user presses Ctrl-C,
        the result contains only the counts for the completed numbers of entries.

    Raises:
        KeyboardInterrupt: if the user presses Ctrl-C before the first number of entries is
            completed.

    Source:
        Habernal (2021), section 6.

    Example:
        >>> result = run(Config(trials=1000, dims=(1, 32)))
        >>> [result.at(32, law, "l2").share for law in LAWS]
        [1.0, 0.999, 0.0]
        >>> max(cell.share for cell in result.cells if cell.norm == "l1")
        0.0
    """
    work = partial(_count_unprotected_vector_pairs, config, threads_of(threads))
    done, ended = run_jobs("figure 1", config.dims, work, progress, size=lambda dim: dim)
    return Result(config, tuple(chain(*done)), partial=ended)


def _count_unprotected_vector_pairs(config: Config, threads: int, dim: int) -> list[Cell]:
    cells = []
    for name, law in LAWS.items():
        seed = cell_seed(config.seed, f"{name}/{dim}")
        drawn = (law.kind, law.spread * config.radius)
        for norm in NORMS:
            clip = (norm, config.radius)
            beyond = _core.pairs_beyond(drawn, clip, dim, config.trials, seed, threads)
            cells.append(Cell(dim, name, norm, beyond, config.trials, seed))
    return cells


@dataclass(frozen=True, repr=False)
class Result(Tabled[Config]):
    """Numbers of clipped vector pairs that the noise of the encoder ADePT does not protect.

    Args:
        config: options with which the experiment was run.
        cells: one result (`Cell`) for each number of entries, distribution of the vectors, and norm
            of the clip.
    """

    cells: tuple[Cell, ...]

    @cached_property
    def _cells_by_key(self) -> dict[tuple[int, str, str], Cell]:
        return {(cell.dim, cell.law, cell.norm): cell for cell in self.cells}

    def at(self, dim: int, data_law: str, norm: str) -> Cell:
        """Return the count of pairs that the noise does not protect, for `dim` entries per vector.

        `data_law` is the name of the distribution of the vectors, such as "uniform". `norm` is the
        norm of the clip, "l1" or "l2".

        Raises:
            KeyError: if this result does not contain the count.
        """
        return self._cells_by_key[dim, data_law, norm]

    @property
    def dims(self) -> tuple[int, ...]:
        """Vector lengths (numbers of entries) for which this run counted pairs."""
        return tuple(dict.fromkeys(cell.dim for cell in self.cells))

    @property
    def smallest_p_value(self) -> float | None:
        """Smallest p-value of the comparisons with an earlier run, after Bonferroni correction.

        The correction multiplies the smallest p-value by the number of comparisons. The result is
        at most 1. The value is None if no number of entries occurs in both runs.
        """
        p_values = [cell.p_value for cell in self.cells if cell.p_value is not None]
        return min(1.0, min(p_values) * len(p_values)) if p_values else None

    @cached_property
    def correction_costs(self) -> tuple[NoiseRatio, ...]:
        """Noise-to-signal ratios of two corrected versions of ADePT.

        The first access computes the ratios, and therefore takes longer than later accesses.
        """
        return noise_over_signal(self.config.radius, self.config.epsilon, self.config.seed)

    @property
    def excesses(self) -> tuple[SensitivityComparison, ...]:
        """True L1 sensitivities of clipped vectors, and the sensitivities that ADePT uses."""
        return compare_sensitivities(self.config.radius)

    def table(self) -> str:
        """Return a text with sensitivities, noise ratios and shares of pairs without protection."""
        config = self.config
        return self.join_parts(
            f"Habernal (2021), figure 1: share of pairs more than 2C apart in L1 after clipping\n"
            f"{config.trials:,} pairs for each size and law, C = {config.radius:g}, "
            f"seed {config.seed}",
            _format_unprotected_shares(self),
            _format_sensitivities(self),
            _format_noise_to_signal_of_remedies(self),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return this result as a dict of plain data (numbers, strings, lists and dicts)."""
        excesses = [
            {"dim": row.dim, "claimed": row.claimed, "true": row.true, "attained": row.attained}
            | {"factor": row.factor}
            for row in self.excesses
        ]
        remedies = [
            {"law": cost.law, "clip": cost.norm, "dim": cost.dim, "scale": cost.scale}
            | {"signal": cost.signal, "noise_to_signal": cost.ratio}
            for cost in self.correction_costs
        ]
        return self.make_record(
            smallest_p_value=self.smallest_p_value,
            cells=[_cell_to_dict(cell) for cell in self.cells],
            true_sensitivity=excesses,
            remedies=remedies,
        )

    def plot(self, ax: Any = None) -> Figure:
        """Draw the shares of pairs without protection, and the noise of two corrections of ADePT.

        Returns:
            A matplotlib figure with three panels. The shares are at the top.
        """
        picture = empty_figure(6.0, ax)
        places: Any = [["share", "share"], ["scale", "ratio"]]
        panels = picture.subplot_mosaic(places, height_ratios=(1.15, 1))
        _draw_unprotected_share_by_dim(panels["share"], self)
        _draw_noise_scale_by_dimension(panels["scale"], self)
        _draw_noise_to_signal(panels["ratio"], self)
        return restyle_figure(picture)


_MAX_TABLE_SIZES: Final = 16
"""Largest number of rows of a table. If the run has more vector lengths, the table prefers the
lengths that the earlier run contains."""


def _format_unprotected_shares(result: Result) -> str:
    rows = [["n", *chain(*((name, "other") for name in LAWS)), "L1 clip"]]
    compared = [cell.dim for cell in result.cells if cell.compared is not None]
    for dim in choose_table_dims(result.dims, compared):
        row = [f"{dim}"]
        for law in LAWS:
            cell = result.at(dim, law, "l2")
            row += [_share_and_margin(cell), "-" if cell.compared is None else f"{cell.compared:g}"]
        most = max((result.at(dim, law, "l1") for law in LAWS), key=lambda cell: cell.beyond)
        rows.append([*row, _share_and_margin(most)])
    note = (
        "Entries uniform in [-C, C], normal with standard deviation 0.1 C, and 0.01 C, clipped in\n"
        "L2; other: another run of 10,000 pairs, as printed; L1 clip: the worst of the three laws\n"
        "when clipped in L1 instead. +- is half the width of the 95 % Clopper-Pearson interval."
    )
    smallest = result.smallest_p_value
    if smallest is not None:
        note += f"\nSmallest p-value of the comparisons, times their number: {smallest:.2g}."
    return f"{align_rows(rows, left=())}\n{note}"


def _share_and_margin(cell: Cell) -> str:
    low, high = cell.interval
    return f"{cell.share:.4f} +- {(high - low) / 2.0:.4f}"


def choose_table_dims(dims: Sequence[int], compared: Sequence[int]) -> list[int]:
    """Choose the vector lengths (numbers of entries) that the table shows.

    If `dims` has at most 16 numbers, the function returns all of them. Otherwise, the function
    returns the numbers that are also in `compared`. If no number is in `compared`, the result is at
    most 16 equally spaced numbers of `dims`.
    """
    if len(dims) <= _MAX_TABLE_SIZES:
        return list(dims)
    some = [dim for dim in dims if dim in set(compared)]
    return some or list(dims[:: -(-len(dims) // _MAX_TABLE_SIZES)])


def _format_sensitivities(result: Result) -> str:
    rows = [["n", "claimed 2C", "true 2C sqrt(n)", "attained", "times higher"]]
    for row in result.excesses:
        figures = (row.claimed, row.true, row.attained, row.factor)
        rows.append([f"{row.dim}", *(f"{value:.6g}" for value in figures)])
    first, last = result.excesses[0], result.excesses[-1]
    title = (
        f"The true sensitivity is {first.factor:.3g} to {last.factor:.3g} times higher than "
        f"claimed for n = {first.dim} to {last.dim},\nand so is the real epsilon"
    )
    return f"{title}\n{align_rows(rows, left=())}"


def _format_noise_to_signal_of_remedies(result: Result) -> str:
    costs = {(cost.law, cost.dim, cost.norm): cost for cost in result.correction_costs}
    rows = [["n", "scale: L1", "L2", *chain(*((f"{name}: L1", "L2") for name in LAWS))]]
    for dim in dict.fromkeys(cost.dim for cost in result.correction_costs):
        pairs = [[costs[law, dim, norm] for norm in ("l1", "l2")] for law in LAWS]
        scales = [f"{cost.scale:.4g}" for cost in pairs[0]]
        rows.append([f"{dim}", *scales, *[f"{cost.ratio:.4g}" for pair in pairs for cost in pair]])
    title = (
        f"The two remedies, clip in L1 or more noise after the clip in L2, at epsilon = "
        f"{result.config.epsilon:g}:\nscale of the Laplace noise; length of the noise over that of "
        f"the clipped vector, by law\n(both root mean square L2 lengths)"
    )
    return f"{title}\n{align_rows(rows, left=())}"


_LAW_STYLES: Final[dict[str, tuple[str, str, Any]]] = {
    "uniform": (RED, "o", "-"),
    "normal 0.1": (BLUE, "s", (0, (5, 1))),
    "normal 0.01": (GREEN, "^", (0, (4, 1, 1, 1))),
}
"""Colour, marker and line of each law. Markers and lines distinguish the laws without colours."""

_REMEDY_LINES: Final[dict[str, Any]] = {"l2": "-", "l1": "--"}
"""Line style of each remedy."""


def _cell_to_dict(cell: Cell) -> dict[str, Any]:
    low, high = cell.interval
    return (
        {"dim": cell.dim, "law": cell.law, "clip": cell.norm, "beyond": cell.beyond}
        | {"pairs": cell.pairs, "share": cell.share, "low": low, "high": high}
        | {"compared": cell.compared, "p_value": cell.p_value, "seed": str(cell.seed)}
    )


def _draw_unprotected_share_by_dim(axes: Axes, result: Result) -> None:
    dims = sorted(result.dims)
    hollow: dict[str, Any] = {"linestyle": "none", "color": INK, "markerfacecolor": "none"}
    hollow |= {"markersize": 6.0, "markeredgewidth": 0.8}
    for name, law in LAWS.items():
        colour, marker, line = _LAW_STYLES[name]
        share = [100.0 * result.at(dim, name, "l2").share for dim in dims]
        label = f"{law.title}, clipped in L2"
        axes.plot(dims, share, color=colour, linestyle=line, linewidth=1.8, label=label)
        cells = [cell for cell in result.cells if cell.law == name and cell.compared is not None]
        compared = [100.0 * (cell.compared or 0.0) for cell in cells]
        axes.plot([cell.dim for cell in cells], compared, marker=marker, **hollow)
    worst = [100.0 * max(result.at(dim, name, "l1").share for name in LAWS) for dim in dims]
    axes.plot(dims, worst, ":", color=INK, linewidth=1.8, label="each of them, clipped in L1")
    axes.plot([], [], marker="o", label="another run of 10,000 pairs", **hollow)
    _set_horizontal_dim_axis(axes, dims)
    axes.set(ylim=(-4.0, 104.0))
    title = "Pairs that ADePT's noise, of scale 2C / epsilon, does not protect"
    style_axes(axes, y="pairs more than 2C apart in L1 (%)", title=title)
    axes.legend(loc="center right", fontsize=SMALL, frameon=False, bbox_to_anchor=(0.87, 0.5))


def _draw_noise_scale_by_dimension(axes: Axes, result: Result) -> None:
    law = next(iter(LAWS))
    styles = (
        ("l2", RED, "-", "after the clip in L2: 2C sqrt(n) / epsilon"),
        ("l1", BLUE, "--", "after one in L1: 2C / epsilon, ADePT's own"),
    )
    axes.set_yscale("log")
    for norm, colour, line, label in styles:
        dims, costs = _dims_and_noise_ratios(result, law, norm)
        scales = [cost.scale for cost in costs]
        axes.plot(dims, scales, linestyle=line, color=colour, linewidth=1.8, label=label)
    _set_horizontal_dim_axis(axes, dims)
    set_ticks(axes.yaxis, [scales[0] * 2.0**power for power in range(6)])
    # Space for the legend above the line.
    axes.set_ylim(scales[0] / 1.3, scales[0] * 2.0**6.3)
    title = f"Repaired: noise on each entry, epsilon = {result.config.epsilon:g}"
    style_axes(axes, y="scale of the noise (units of the input)", title=title)
    axes.legend(loc="upper left", fontsize=SMALL, frameon=False)


def _draw_noise_to_signal(axes: Axes, result: Result) -> None:
    axes.set_yscale("log")
    for name in LAWS:
        colour, marker, _ = _LAW_STYLES[name]
        style: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 3.4}
        for norm, line in _REMEDY_LINES.items():
            dims, costs = _dims_and_noise_ratios(result, name, norm)
            axes.plot(dims, [cost.ratio for cost in costs], linestyle=line, linewidth=1.2, **style)
    _set_horizontal_dim_axis(axes, dims)
    # Space for the legend above the lines.
    axes.set_ylim(top=30.0 * max(cost.ratio for cost in result.correction_costs))
    title = "Repaired: noise to signal, by L2 lengths"
    style_axes(axes, y="noise / clipped vector (ratio)", title=title)
    axes.legend(handles=_make_law_legend(), loc="upper left", fontsize=SMALL, frameon=False)


def _dims_and_noise_ratios(
    result: Result, law: str, norm: str
) -> tuple[list[int], list[NoiseRatio]]:
    costs = [cost for cost in result.correction_costs if (cost.law, cost.norm) == (law, norm)]
    return [cost.dim for cost in costs], costs


def _make_law_legend() -> list[Any]:
    laws, clips = _LAW_STYLES.items(), _REMEDY_LINES.items()
    lines = [make_line(LAWS[n].title, c, marker=m, markersize=3.4) for n, (c, m, _) in laws]
    return lines + [make_line(f"clipped in {n.upper()}", GREY, linestyle=line) for n, line in clips]


def _set_horizontal_dim_axis(axes: Axes, dims: list[int]) -> None:
    axes.set_xscale("log", base=2)
    low, high = min(dims), max(dims)
    set_ticks(axes.xaxis, [2**power for power in range(13) if low <= 2**power <= high] or [low])
    axes.set_xlim(low / 1.08, high * 1.08)
    style_axes(axes, "entries n of the vector")
