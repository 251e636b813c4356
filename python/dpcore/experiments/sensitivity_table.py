"""Every sensitivity in closed form: attained by its pair, and found from below by a search.

The pair is checked by one subtraction. The search knows the domain only by what is in it: it is
not given the pair, and no closed form. What it finds is a lower bound on the sensitivity.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import integer
from ..pairs import NORMS, Box
from ..pairs.differences import Norm
from ..records import Shown
from ..report.encoding import encode_value
from ..report.figures import BLUE, GREEN, GREY, INK, RED, apply_style
from ..report.text import align_rows
from ..sensitivity import (
    Ball,
    Histogram,
    MinMaxRows,
    OneHot,
    Sensitivity,
    Simplex,
    Sphere,
    sensitivity,
)
from ..sensitivity.refutation import Refutation, refute
from ..streams import threads_of
from .presentation import SMALL, TEXT, make_canvas, make_record_head, tidy_axes
from .running import SEED, Tabled, cell_seed, check_config, require_own_config, run_jobs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "sensitivity-table"

RADIUS: Final = 10.0
LOW, HIGH = -1.0, 1.0
"""C of the balls, a and b of the box."""

_SEARCH_METHODS: Final = ("extremes", "random", "ascent", "scipy")
"""All searches but the domain's own pair."""

_MIN_SEARCH_INPUTS: Final = 8
_MAX_VECTOR_DIM: Final = 1024

_TWO_ENTRIES_FORMULAS = ("2", "sqrt(2)", "1")


@dataclass(frozen=True, slots=True, repr=False)
class Entry(Shown):
    """One domain of the table.

    Args:
        title: what the table says.
        build: the class, and its arguments before and after the number of entries.
        formulas: the closed forms in L1, L2 and Linf, d the number of entries.
    """

    title: str
    build: tuple[Any, tuple[Any, ...], dict[str, Any]]
    formulas: tuple[str, str, str]

    def domain(self, dim: int) -> Any:
        """Make the domain with vectors of `dim` entries."""
        kind, before, named = self.build
        return kind(*before, dim, **named)


ENTRIES: Final[dict[str, Entry]] = {
    "box": Entry("box [a, b]", (Box, (LOW, HIGH), {}), ("d (b - a)", "sqrt(d) (b - a)", "b - a")),
    "min_max": Entry("min-max rows", (MinMaxRows, (), {}), ("d", "sqrt(d)", "1")),
    "l1_ball": Entry("L1 ball", (Ball, ("l1", RADIUS), {}), ("2 C", "2 C", "2 C")),
    "l2_ball": Entry("L2 ball", (Ball, ("l2", RADIUS), {}), ("2 C sqrt(d)", "2 C", "2 C")),
    "linf_ball": Entry("Linf ball", (Ball, ("linf", RADIUS), {}), ("2 C d", "2 C sqrt(d)", "2 C")),
    "simplex": Entry("simplex", (Simplex, (), {}), _TWO_ENTRIES_FORMULAS),
    "one_hot": Entry("one-hot", (OneHot, (), {}), _TWO_ENTRIES_FORMULAS),
    "sphere": Entry("unit sphere", (Sphere, (), {}), ("2 sqrt(d)", "2", "2")),
    "replace": Entry(
        "histogram, replace", (Histogram, (), {"neighbours": "replace"}), _TWO_ENTRIES_FORMULAS
    ),
    "add_remove": Entry(
        "histogram, add/remove", (Histogram, (), {"neighbours": "add_remove"}), ("1", "1", "1")
    ),
}


@dataclass(frozen=True, slots=True, repr=False)
class Config(Shown):
    """Options of the experiment: the size of the vectors and of the search.

    Args:
        trials: inputs that all searches may look at together; each gets an equal part, at least 8.
        dim: entries of a vector, from 2 to 1024.
        seed: int in [0, 2**63); every search gets its own seed derived from it.

    Raises:
        TypeError: if a field is of the wrong kind.
        ValueError: if a value is out of range.

    Example:
        >>> Config(trials="1e6", dim=32).dim
        32
    """

    trials: int = 200_000
    dim: int = 8
    seed: int = SEED

    def __post_init__(self) -> None:
        """Check the fields."""
        check_config(self)
        object.__setattr__(self, "dim", integer("dim", self.dim, 2, _MAX_VECTOR_DIM))

    @property
    def share(self) -> int:
        """Inputs that one search may look at."""
        return max(_MIN_SEARCH_INPUTS, self.trials // (len(ENTRIES) * len(NORMS)))


@dataclass(frozen=True, slots=True, repr=False)
class Row(Shown):
    """One domain and norm.

    Args:
        name: key in `ENTRIES`.
        closed: the closed form and the pair that attains it.
        found: what the search found: a lower bound.
    """

    name: str
    closed: Sensitivity
    found: Refutation

    @property
    def norm(self) -> str:
        """The norm: "l1", "l2" or "linf"."""
        return self.closed.norm

    @property
    def formula(self) -> str:
        """The closed form as text."""
        return ENTRIES[self.name].formulas[NORMS.index(self.norm)]

    @property
    def attained(self) -> float:
        """The distance of the closed form's own pair, by one subtraction."""
        gap = np.abs(self.closed.pair.x - self.closed.pair.x_prime)
        return float(np.linalg.norm(gap, {"l1": 1, "l2": 2, "linf": np.inf}[self.norm]))

    @property
    def error(self) -> float:
        """Relative difference of the pair's distance and the closed form."""
        return abs(self.attained / self.closed.value - 1.0)

    @property
    def reached(self) -> float:
        """The search's share of the closed form: at most 1 but for rounding."""
        return self.found.attained / self.closed.value


def release_input(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the input itself, the release whose sensitivity is searched for."""
    return x


def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Check every closed form and search for its value.

    Args:
        config: how long to search, on vectors of what size.
        threads: not used: a search runs on one thread.
        progress: show a bar; None shows it for long work on a terminal or in a notebook.

    Returns:
        The result, one row for each domain and norm; after Ctrl-C, those that were done.

    Raises:
        KeyboardInterrupt: on Ctrl-C before the first search has found a pair.

    Example:
        >>> result = run(Config(trials=3000, dim=4))
        >>> max(row.error for row in result.rows) < 1e-12, result.above
        (True, 0)
    """
    require_own_config(config, __name__)
    threads_of(threads)
    begun = time.perf_counter()
    rows, partial = run_jobs(
        "sensitivities",
        [(name, norm) for name in ENTRIES for norm in NORMS],
        lambda job: _check_closed_form(*job, config),
        progress,
        ended=lambda row: row.found.partial,
    )
    return Result(config, rows, partial, time.perf_counter() - begun)


def _check_closed_form(name: str, norm: Norm, config: Config) -> Row:
    domain = ENTRIES[name].domain(config.dim)
    closed = sensitivity(domain, norm)
    seed = cell_seed(config.seed, f"{name}/{norm}/{config.dim}")
    found = refute(
        release_input, closed.value, norm, domain,
        rows=True, trials=config.share, rng=seed, methods=_SEARCH_METHODS,
    )  # fmt: skip
    return Row(name, closed, found)


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled):
    """The rows, domain by domain.

    Args:
        config: the options of the run.
        rows: one for each domain and norm.
        partial: True if Ctrl-C ended the run early.
        seconds: time taken (not compared).
    """

    config: Config
    rows: tuple[Row, ...]
    partial: bool = False
    seconds: float = field(default=0.0, compare=False)

    @property
    def above(self) -> int:
        """Searches that found more than the closed form: 0 if the closed forms hold."""
        return sum(row.found.refuted for row in self.rows)

    def table(self) -> str:
        """Return the figures as text."""
        return write_table(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data for strict JSON."""
        return write_plain_data(self)

    def plot(self, ax: Any = None) -> Figure:
        """Draw closed forms, their pairs and search results on one logarithmic axis.

        Returns:
            A matplotlib figure.
        """
        return draw_figure(self, ax)


def write_table(result: Result) -> str:
    """Format a row for each domain and norm."""
    config = result.config
    head = (
        "domain",
        "norm",
        "closed form",
        "value",
        "by its pair",
        "off by",
        "search",
        "share",
    )
    lines = [head]
    for row in result.rows:
        value, attained = f"{row.closed.value:.6g}", f"{row.attained:.6g}"
        found = (f"{row.found.attained:.6g}", f"{100.0 * row.reached:.2f} %")
        error = f"{row.error:.0e}" if row.error else "0"
        title = ENTRIES[row.name].title
        lines.append((title, row.norm, row.formula, value, attained, error, *found))
    title = (
        f"Sensitivities in closed form: d = {config.dim}, C = {RADIUS:g}, a = {LOW:g}, "
        f"b = {HIGH:g}; each searched for among\n{config.share:,} inputs, without its pair, "
        f"seed {config.seed}"
    )
    least = min((row.reached for row in result.rows), default=0.0)
    note = (
        f"Above the closed form: {result.above} of {len(result.rows)} searches; the least found "
        f"{100.0 * least:.2f} % of it.\nWhat a search finds is a lower bound."
    )
    parts = [title, align_rows(lines, left=(0, 1, 2)), note]
    if result.partial:
        parts.insert(1, "INTERRUPTED: only what was searched is shown")
    return "\n\n".join(parts)


def write_plain_data(result: Result) -> dict[str, Any]:
    """Return the result as plain data for strict JSON."""
    return {
        **make_record_head(NAME, result),
        "above": result.above,
        "rows": [_sensitivity_row_to_dict(r) for r in result.rows],
    }


def _sensitivity_row_to_dict(row: Row) -> dict[str, Any]:
    return {
        "domain": row.name,
        "dim": row.closed.domain.dim,
        "norm": row.norm,
        "formula": row.formula,
        "value": row.closed.value,
        "pair": [encode_value(x) for x in (row.closed.pair.x, row.closed.pair.x_prime)],
        "attained_by_pair": row.attained,
        "attained_by_search": row.found.attained,
        "search_pair": [encode_value(x) for x in (row.found.pair.x, row.found.pair.x_prime)],
        "found_by": row.found.found_by,
        "evaluations": row.found.evaluations,
        "seed": str(row.found.seed),
    }


_NORM_STYLES: Final[dict[str, tuple[str, str]]] = {
    "l1": (RED, "o"),
    "l2": (BLUE, "s"),
    "linf": (GREEN, "^"),
}
_NORM_OFFSET: Final = 0.27
_SENSITIVITY_COLUMNS: Final = (
    ("norm", 0.0),
    ("closed form", 0.17),
    ("value", 0.60),
    ("found", 0.80),
)
"""Heads of the figures beside the panel, and where they stand."""


def draw_figure(result: Result, ax: Any = None) -> Figure:
    """Draw three rows for each domain: closed form (hollow) and search result (filled)."""
    names = list(dict.fromkeys(row.name for row in result.rows))
    picture = make_canvas(1.1 + 0.5 * len(names), ax)
    axes, beside = picture.subplots(1, 2, sharey=True, width_ratios=(1.0, 1.15))
    beside.set_axis_off()
    places = {name: float(len(names) - 1 - i) for i, name in enumerate(names)}
    for row in result.rows:
        place = places[row.name] + _NORM_OFFSET * (1 - NORMS.index(row.norm))
        _draw_sensitivities(axes, place, row)
        _write_sensitivities(beside, place, row)
    for head, spot in _SENSITIVITY_COLUMNS:
        beside.text(spot, len(names) - 0.42, head, va="bottom", color=INK, fontsize=SMALL)
    for panel in (axes, beside):
        for place in range(1, len(names)):
            panel.axhline(place - 0.5, color=GREY, linewidth=0.3)
    axes.set_xscale("log")
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.set_yticks(list(places.values()), [ENTRIES[name].title for name in places])
    _set_log_ticks(axes, result)
    tidy_axes(axes)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(f"sensitivity at d = {result.config.dim} (units of the input)", fontsize=TEXT)
    picture.legend(
        handles=_make_norm_legend(),
        loc="outside upper center",
        ncols=4,
        frameon=False,
        fontsize=SMALL,
    )
    return apply_style(picture)


def _draw_sensitivities(axes: Axes, place: float, row: Row) -> None:
    colour, marker = _NORM_STYLES[row.norm]
    hollow: dict[str, Any] = {"markerfacecolor": "none", "markeredgecolor": INK}
    axes.plot([row.closed.value], [place], marker, markersize=7.0, markeredgewidth=0.8, **hollow)
    axes.plot([row.found.attained], [place], marker, color=colour, markersize=3.6)


def _write_sensitivities(beside: Axes, place: float, row: Row) -> None:
    colour, _ = _NORM_STYLES[row.norm]
    figures = (
        _capitalise_norm(row.norm),
        row.formula,
        f"{row.closed.value:.4g}",
        f"{100.0 * row.reached:.2f} %",
    )
    for (_, spot), words in zip(_SENSITIVITY_COLUMNS, figures, strict=True):
        beside.text(spot, place, words, va="center", color=colour, fontsize=SMALL)


def _set_log_ticks(axes: Axes, result: Result) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

    values = [row.closed.value for row in result.rows]
    low, high = min(values) / 1.6, max(values) * 1.6
    marks = [m * 10.0**power for power in range(-1, 6) for m in (1, 3)]
    axes.xaxis.set_major_locator(FixedLocator([mark for mark in marks if low < mark < high]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.set_xlim(low, high)


def _make_norm_legend() -> list[Any]:
    from matplotlib.lines import Line2D

    mark: dict[str, Any] = {"linestyle": "none"}
    hollow = mark | {"markerfacecolor": "none", "markeredgecolor": INK, "markersize": 7.0}
    found = [
        Line2D(
            [],
            [],
            marker=marker,
            color=colour,
            markersize=4.5,
            label=_capitalise_norm(norm),
            **mark,
        )
        for norm, (colour, marker) in _NORM_STYLES.items()
    ]
    found[0].set_label(f"found by the search: {_capitalise_norm('l1')}")
    return [Line2D([], [], marker="o", label="closed form, attained by its pair", **hollow), *found]


def _capitalise_norm(norm: str) -> str:
    return norm.replace("l", "L", 1)
