"""Check of all closed-form sensitivities, by a pair of vectors and by a search.

The sensitivity of a domain is the largest distance between two of its vectors. For each domain and
norm, dpcore gives the sensitivity in closed form and a pair of vectors that attains it. The
experiment checks both in two ways:

- It computes the distance of the pair, which should equal the closed form.
- It searches the domain for the pair with the largest distance. The search does not know the pair
  or the closed form. The largest distance that the search finds is a lower bound on the
  sensitivity, so this distance should not exceed the closed form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, Final

import numpy as np

from .. import sensitivity
from ..errors import integer
from ..pairs import NORMS, Box
from ..pairs.differences import Norm
from ..records import Floats
from ..report.figures import BLUE, GREEN, GREY, INK, RED, restyle_figure
from ..report.shown import Shown
from ..sensitivity import Ball, HistogramCounts, MinMaxRows, OneHot, Simplex, Sphere
from ..sensitivity.refutation import Refutation, refute
from .base import SEED, Column, Settings, align_columns, setting
from .drawing import SMALL, Axes, Figure, add_legend, empty_figure, make_mark, set_ticks, style_axes
from .running import Tabled, cell_seed, run_jobs, time_run

NAME = "sensitivity-table"

RADIUS: Final = 10.0
LOW, HIGH = -1.0, 1.0
"""Smallest and largest entry (a and b) of a vector in a box. `RADIUS` is the radius C of the
balls."""

_SEARCH_METHODS: Final = ("extremes", "random", "ascent", "scipy")
"""All search methods except for the method that uses the domain's closed-form pair."""

_MIN_SEARCH_INPUTS: Final = 8
_MAX_VECTOR_DIM: Final = 1024

_TWO_ENTRIES_FORMULAS = ("2", "sqrt(2)", "1")


@dataclass(frozen=True, slots=True, repr=False)
class Entry(Shown):
    """Set of vectors (a domain), with formulas for the largest distance between two vectors.

    Args:
        title: name of the domain in the table.
        domain: function that takes the number of entries of a vector and returns the domain.
        formulas: three texts with formulas, for the largest L1, L2 and Linf distance between two
            vectors of the domain. The letter d stands for the number of entries.
    """

    title: str
    domain: Callable[[int], Any]
    formulas: tuple[str, str, str]


ENTRIES: Final[dict[str, Entry]] = {
    "box": Entry("box [a, b]", partial(Box, LOW, HIGH), ("d (b - a)", "sqrt(d) (b - a)", "b - a")),
    "min_max": Entry("min-max rows", MinMaxRows, ("d", "sqrt(d)", "1")),
    "l1_ball": Entry("L1 ball", partial(Ball, "l1", RADIUS), ("2 C", "2 C", "2 C")),
    "l2_ball": Entry("L2 ball", partial(Ball, "l2", RADIUS), ("2 C sqrt(d)", "2 C", "2 C")),
    "linf_ball": Entry("Linf ball", partial(Ball, "linf", RADIUS), ("2 C d", "2 C sqrt(d)", "2 C")),
    "simplex": Entry("simplex", Simplex, _TWO_ENTRIES_FORMULAS),
    "one_hot": Entry("one-hot", OneHot, _TWO_ENTRIES_FORMULAS),
    "sphere": Entry("unit sphere", Sphere, ("2 sqrt(d)", "2", "2")),
    "replace": Entry(
        "histogram, replace", partial(HistogramCounts, neighbours="replace"), _TWO_ENTRIES_FORMULAS
    ),
    "add_remove": Entry(
        "histogram, add/remove", partial(HistogramCounts, neighbours="add_remove"), ("1", "1", "1")
    ),
}


@dataclass(frozen=True, slots=True, repr=False)
class Config(Settings):
    """Options of the experiment that checks formulas for the sensitivity of vectors.

    Args:
        trials: number of vectors that all searches together may evaluate. Each search may evaluate
            an equal part of this number, but at least 8 vectors.
        dim: number of entries of each vector, from 2 to 1024.
        seed: int in [0, 2**63). Every search gets a separate seed derived from this seed.

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a value is out of range.

    Example:
        >>> Config(trials="1e6", dim=32).dim
        32
    """

    trials: int = 200_000
    dim: int = setting(8, integer, 2, _MAX_VECTOR_DIM)
    seed: int = SEED

    @property
    def share(self) -> int:
        """Number of vectors that one search for a large distance may evaluate."""
        return max(_MIN_SEARCH_INPUTS, self.trials // (len(ENTRIES) * len(NORMS)))


@dataclass(frozen=True, slots=True, repr=False)
class Row(Shown):
    """Sensitivity of one set of vectors (a domain) in one norm, from a formula and from a search.

    The sensitivity is the largest distance between two vectors of the domain.

    Args:
        name: name of the domain, a key of `ENTRIES` such as "l1_ball".
        closed: sensitivity from a formula, and two vectors at this distance from each other.
        found: result of the search for two vectors with a large distance. The distance found is a
            lower bound on the sensitivity.
    """

    name: str
    closed: sensitivity.Sensitivity
    found: Refutation

    @property
    def norm(self) -> str:
        """Norm in which the distance is measured: "l1", "l2" or "linf"."""
        return self.closed.norm

    @property
    def title(self) -> str:
        """Name of this set of vectors in the table."""
        return ENTRIES[self.name].title

    @property
    def closed_pair(self) -> tuple[Any, Any]:
        """The two vectors whose distance should equal the sensitivity from the formula."""
        return self.closed.pair.x, self.closed.pair.x_prime

    @property
    def search_pair(self) -> tuple[Any, Any]:
        """The two vectors with the largest distance that the search found."""
        return self.found.pair.x, self.found.pair.x_prime

    @property
    def formula(self) -> str:
        """Formula for the sensitivity of this set of vectors as text, such as "2 C"."""
        return ENTRIES[self.name].formulas[NORMS.index(self.norm)]

    @property
    def attained(self) -> float:
        """Distance between the two vectors that should attain the sensitivity.

        The distance should equal the sensitivity that the formula gives.
        """
        gap = np.abs(self.closed.pair.x - self.closed.pair.x_prime)
        return float(np.linalg.norm(gap, {"l1": 1, "l2": 2, "linf": np.inf}[self.norm]))

    @property
    def error(self) -> float:
        """Relative difference between the distance of two vectors and the sensitivity.

        The distance is `attained`, which is computed from two vectors. The sensitivity is computed
        from a formula. The difference should be 0, up to rounding.
        """
        return abs(self.attained / self.closed.value - 1.0)

    @property
    def reached(self) -> float:
        """Largest distance that the search found, divided by the sensitivity from the formula.

        The value should be at most 1, up to rounding.
        """
        return self.found.attained / self.closed.value


def release_input(x: Floats) -> Floats:
    """Return the input vector unchanged.

    The sensitivity of this function is the largest distance between two inputs.
    """
    return x


@time_run()
def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Check the formula for the sensitivity of every set of vectors, in every norm.

    Args:
        config: options of the experiment, such as the number of entries.
        threads: not used. Each search runs on one thread.
        progress: True to show a progress bar. By default, dpcore shows the bar for long work on a
            terminal or in a notebook.

    Returns:
        The results, one `Row` for each set of vectors and norm. If the user presses Ctrl-C, the
        result contains only the completed rows.

    Raises:
        KeyboardInterrupt: if the user presses Ctrl-C before the first search is completed.

    Example:
        >>> result = run(Config(trials=3000, dim=4))
        >>> max(row.error for row in result.rows) < 1e-12, result.above
        (True, 0)
    """
    jobs = list(product(ENTRIES, NORMS))
    rows, ended = run_jobs("sensitivities", jobs, partial(_search_above_formula, config), progress)
    return Result(config, rows, partial=ended)


def _search_above_formula(config: Config, name: str, norm: Norm) -> Row:
    domain = ENTRIES[name].domain(config.dim)
    closed = sensitivity.sensitivity(domain, norm)
    seed = cell_seed(config.seed, f"{name}/{norm}/{config.dim}")
    how: Any = {"trials": config.share, "methods": _SEARCH_METHODS, "rng": seed}
    return Row(name, closed, refute(release_input, closed.value, norm, domain, rows=True, **how))


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled[Config]):
    """Sensitivities of all sets of vectors, from formulas and from searches.

    Args:
        config: options with which the experiment was run.
        rows: one result (`Row`) for each set of vectors and norm.
    """

    rows: tuple[Row, ...]

    @property
    def above(self) -> int:
        """Number of searches that found a distance above the sensitivity from the formula.

        The number is 0 if all formulas are correct.
        """
        return sum(row.found.refuted for row in self.rows)

    def table(self) -> str:
        """Return the sensitivities from formulas and from searches as a text table."""
        config = self.config
        least = min((row.reached for row in self.rows), default=0.0)
        return self.join_parts(
            f"Sensitivities in closed form: d = {config.dim}, C = {RADIUS:g}, a = {LOW:g}, "
            f"b = {HIGH:g}; each searched for among\n{config.share:,} inputs, without its pair, "
            f"seed {config.seed}",
            align_columns(_COLUMNS, self.rows),
            f"Above the closed form: {self.above} of {len(self.rows)} searches; the least found "
            f"{100.0 * least:.2f} % of it.\nWhat a search finds is a lower bound.",
        )

    def to_dict(self) -> dict[str, Any]:
        """Return this result as a dict of plain data, which `json.dumps` can write."""
        rows = [_row_to_dict(row) for row in self.rows]
        return self.make_record(above=self.above, rows=rows)

    def plot(self, ax: Any = None) -> Figure:
        """Draw the sensitivity of every set of vectors, from the formula and from the search.

        The distance axis is logarithmic. The picture also shows the distance between two vectors
        that should attain the sensitivity.

        Returns:
            A matplotlib figure.
        """
        names = list(dict.fromkeys(row.name for row in self.rows))
        picture = empty_figure(1.1 + 0.5 * len(names), ax)
        axes, beside = picture.subplots(1, 2, sharey=True, width_ratios=(1.0, 1.15))
        beside.set_axis_off()
        places = {name: float(len(names) - 1 - i) for i, name in enumerate(names)}
        for row in self.rows:
            place = places[row.name] + _NORM_OFFSET * (1 - NORMS.index(row.norm))
            _draw_formula_and_search_values(axes, place, row)
            style: dict[str, Any] = {"va": "center", "color": _NORM_STYLES[row.norm][0]}
            for spot, column in _DRAWN_COLUMNS.items():
                beside.text(spot, place, column.format_value(row), fontsize=SMALL, **style)
        for spot, column in _DRAWN_COLUMNS.items():
            top = len(names) - 0.42
            beside.text(spot, top, column.head, va="bottom", color=INK, fontsize=SMALL)
        for panel in (axes, beside):
            for place in range(1, len(names)):
                panel.axhline(place - 0.5, color=GREY, linewidth=0.3)
        axes.set_xscale("log")
        axes.set_ylim(-0.6, len(names) - 0.4)
        axes.set_yticks(list(places.values()), [ENTRIES[name].title for name in places])
        _set_log_ticks(axes, self)
        style_axes(axes, f"sensitivity at d = {self.config.dim} (units of the input)")
        axes.tick_params(axis="y", length=0)
        add_legend(picture, _make_norm_legend(), 4, "upper")
        return restyle_figure(picture)


def _format_share(share: float) -> str:
    return f"{100.0 * share:.2f} %"


_COLUMNS: Final = (
    Column("domain", "title", left=True),
    Column("norm", "norm", left=True),
    Column("closed form", "formula", left=True),
    Column("value", "closed.value", ".6g"),
    Column("by its pair", "attained", ".6g"),
    Column("off by", "error", lambda error: f"{error:.0e}" if error else "0"),
    Column("search", "found.attained", ".6g"),
    Column("share", "reached", _format_share),
)
_DRAWN_COLUMNS: Final = {
    0.0: Column("norm", "norm", lambda norm: norm.replace("l", "L", 1)),
    0.17: Column("closed form", "formula"),
    0.60: Column("value", "closed.value", ".4g"),
    0.80: Column("found", "reached", _format_share),
}
"""Text columns next to the panel, with their horizontal positions."""


def _row_to_dict(row: Row) -> dict[str, Any]:
    closed, search = row.closed, row.found
    return (
        {"domain": row.name, "dim": closed.domain.dim, "norm": row.norm}
        | {"formula": row.formula, "value": closed.value, "pair": row.closed_pair}
        | {"attained_by_pair": row.attained, "attained_by_search": search.attained}
        | {"search_pair": row.search_pair, "found_by": search.found_by}
        | {"evaluations": search.evaluations, "seed": str(search.seed)}
    )


_NORM_STYLES: Final = {"l1": (RED, "o"), "l2": (BLUE, "s"), "linf": (GREEN, "^")}
_NORM_OFFSET: Final = 0.27


def _draw_formula_and_search_values(axes: Axes, place: float, row: Row) -> None:
    colour, marker = _NORM_STYLES[row.norm]
    hollow: dict[str, Any] = {"markerfacecolor": "none", "markeredgecolor": INK}
    axes.plot([row.closed.value], [place], marker, markersize=7.0, markeredgewidth=0.8, **hollow)
    axes.plot([row.found.attained], [place], marker, color=colour, markersize=3.6)


def _set_log_ticks(axes: Axes, result: Result) -> None:
    values = [row.closed.value for row in result.rows]
    low, high = min(values) / 1.6, max(values) * 1.6
    marks = [m * 10.0**power for power in range(-1, 6) for m in (1, 3)]
    set_ticks(axes.xaxis, [mark for mark in marks if low < mark < high])
    axes.set_xlim(low, high)


def _make_norm_legend() -> list[Any]:
    hollow = {"markerfacecolor": "none", "markeredgecolor": INK}
    labels = ("found by the search: L1", "L2", "Linf")
    pairs = zip(labels, _NORM_STYLES.values(), strict=True)
    marks = [make_mark(label, *style, 4.5) for label, style in pairs]
    return [make_mark("closed form, attained by its pair", None, "o", 7.0, **hollow), *marks]
