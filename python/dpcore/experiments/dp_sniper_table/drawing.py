"""The picture of the benchmark: every bound as a multiple of DP-Sniper's."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...report.style import BLUE, GREY, INK, RED, WHITE
from ..drawing import SMALL, TEXT, apply_style, make_canvas, tidy_axes
from .experiment import Result, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_RATIO_AXIS_START, _RATIO_AXIS_END = 0.5, 16.0
_BENCHMARK_COLUMNS = (("certified", 0.0), ("DP-Sniper", 0.34), ("true loss", 0.7))
"""Heads of the figures beside the panel, and where they stand in their own panel."""


def draw_figure(result: Result, ax: Any = None) -> Figure:
    """Draw the certified bound and true loss of each mechanism over DP-Sniper's better bound."""
    rows = result.rows
    picture = make_canvas(1.3 + 0.2 * len(rows), ax)
    axes, beside = picture.subplots(1, 2, sharey=True, width_ratios=(2.8, 1.0))
    beside.set_axis_off()
    axes.set_xscale("log")
    axes.axvline(1.0, color=GREY, linestyle="--", linewidth=1.0, zorder=1)
    for place, row in enumerate(reversed(rows)):
        _draw_marks(axes, place, row)
        _write_figures(beside, place, row)
    for head, spot in _BENCHMARK_COLUMNS:
        beside.text(spot, len(rows) - 0.3, head, va="bottom", color=INK, fontsize=SMALL)
    axes.set_yticks(range(len(rows)), [row.name for row in reversed(rows)])
    axes.set(xlim=(_RATIO_AXIS_START, _RATIO_AXIS_END), ylim=(-0.7, len(rows) - 0.3))
    _set_ticks(axes)
    tidy_axes(axes)
    axes.tick_params(axis="y", length=0)
    label = "privacy loss, as a multiple of DP-Sniper's better bound (*: above the true loss)"
    axes.set_xlabel(label, fontsize=TEXT)
    picture.legend(
        handles=_make_benchmark_legend(),
        loc="outside upper center",
        ncols=4,
        frameon=False,
        fontsize=SMALL,
    )
    return apply_style(picture)


def _draw_marks(axes: Axes, place: int, row: Row) -> None:
    known, unit = row.benchmark, row.benchmark.dp_sniper_best
    ratio, truth = row.certified / unit, known.supremum / unit
    colour = BLUE if row.reached else RED
    axes.plot(
        [1.0, min(max(ratio, _RATIO_AXIS_START), _RATIO_AXIS_END)],
        [place, place],
        color=colour,
        linewidth=1.2,
    )
    axes.plot(
        [_RATIO_AXIS_START, _RATIO_AXIS_END], [place, place], color=GREY, linewidth=0.2, zorder=0.5
    )
    if math.isfinite(truth):
        style: dict[str, Any] = {"markerfacecolor": WHITE, "markeredgecolor": INK}
        axes.plot([truth], [place], "D", markersize=5.5, markeredgewidth=0.9, zorder=2, **style)
    else:
        tip = {"arrowstyle": "-|>", "color": INK, "lw": 0.8, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", (_RATIO_AXIS_END, place), (0.8 * _RATIO_AXIS_END, place), arrowprops=tip)
    if ratio < _RATIO_AXIS_START:
        # Off the picture, which begins at half: a left-pointing mark, and the figure beside it.
        axes.plot([1.04 * _RATIO_AXIS_START], [place], "<", color=colour, markersize=5, zorder=3)
    else:
        axes.plot([ratio], [place], "o", color=colour, markersize=4, zorder=3)


def _write_figures(beside: Axes, place: int, row: Row) -> None:
    known = row.benchmark
    figures = (row.certified, known.dp_sniper_best, known.supremum)
    colours = (BLUE if row.reached else RED, INK, INK)
    for (_, spot), value, colour in zip(_BENCHMARK_COLUMNS, figures, colours, strict=True):
        star = "*" if value > known.supremum else ""
        words = f"{value:.4f}{star}" if math.isfinite(value) else "infinite"
        beside.text(spot, place, words, va="center", color=colour, fontsize=SMALL)


def _set_ticks(axes: Axes) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

    axes.xaxis.set_major_locator(FixedLocator([0.5, 0.7, 1, 1.5, 2, 3, 5, 10]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))


def _make_benchmark_legend() -> list[Any]:
    from matplotlib.lines import Line2D

    mark: dict[str, Any] = {"linestyle": "none"}
    hollow: dict[str, Any] = {"markerfacecolor": WHITE, "markeredgecolor": INK, "markersize": 5.5}
    arrow: dict[str, Any] = {"color": INK, "markersize": 11, "markeredgewidth": 0.4}
    return [
        Line2D([], [], marker="o", color=BLUE, markersize=4, label="certified, at least", **mark),
        Line2D([], [], marker="o", color=RED, markersize=4, label="certified, below", **mark),
        Line2D([], [], marker="D", label="true loss", **hollow, **mark),
        Line2D([], [], marker=r"$\rightarrow$", label="infinite", **arrow, **mark),
    ]
