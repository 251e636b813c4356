"""The picture of the table of sensitivities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ...pairs import NORMS
from ...report.style import BLUE, GREEN, GREY, INK, RED
from ..drawing import SMALL, TEXT, apply_style, make_canvas, tidy_axes
from .experiment import ENTRIES, Result, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
