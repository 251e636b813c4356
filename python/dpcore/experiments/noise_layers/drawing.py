"""The picture of the experiment on noise layers: a line for each layer and dtype."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...report.style import BLUE, GREY, INK, RED, WHITE
from ..drawing import SMALL, TEXT, apply_style, make_canvas, tidy_axes
from .experiment import Result, Row, compute_mean_sd

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_figure(result: Result, ax: Any = None) -> Figure:
    """Draw certified bounds as bars, exact losses as diamonds or arrows, the claim as a line."""
    rows = sorted(result.rows, key=lambda row: row.faulty)
    claim = result.config.epsilon
    picture = make_canvas(1.1 + 0.2 * len(rows), ax)
    axes = picture.subplots()
    largest = [compute_mean_sd(row.certified)[0] for row in rows]
    exact = [row.exact for row in rows if math.isfinite(row.exact)]
    right = 1.3 * max([2.0 * claim, *largest, *exact])
    for place, row in enumerate(reversed(rows)):
        _draw_layer(axes, place, row, claim, right)
    axes.axvline(claim, color=GREY, linestyle="--", linewidth=1.2, zorder=2.5)
    split = sum(row.faulty for row in rows)
    if 0 < split < len(rows):
        axes.axhline(split - 0.5, color=GREY, linewidth=0.6)
    axes.set(xlim=(0.0, right), ylim=(-0.7, len(rows) - 0.3))
    axes.set_yticks(range(len(rows)), [f"{row.layer}, {row.dtype}" for row in reversed(rows)])
    label = "privacy loss epsilon of two texts; a made-up encoder (words hashed to 32 numbers)"
    axes.set_xlabel(label, fontsize=TEXT)
    spots = (("layers and repairs", (split + len(rows)) / 2), ("faults", split / 2))
    for text, middle in spots if 0 < split < len(rows) else ():
        transform = axes.get_yaxis_transform()
        axes.text(
            1.02, middle - 0.5, text, transform=transform, rotation=270, va="center", fontsize=SMALL
        )
    tidy_axes(axes)
    axes.tick_params(axis="y", length=0)
    picture.legend(
        handles=_make_layer_legend(),
        loc="outside upper center",
        ncols=3,
        frameon=False,
        fontsize=SMALL,
    )
    return apply_style(picture)


def _draw_layer(axes: Axes, place: int, row: Row, claim: float, right: float) -> None:
    mean, wide = compute_mean_sd(row.certified)
    colour = RED if row.beyond else BLUE
    axes.barh(place, mean, height=0.6, color=colour, xerr=wide or None, ecolor=INK)
    if math.isfinite(row.exact):
        style: dict[str, Any] = {"markeredgecolor": WHITE, "markeredgewidth": 0.7}
        axes.plot([row.exact], [place], "D", color=INK, markersize=4.5, zorder=3, **style)
    else:
        tip = {"arrowstyle": "-|>", "color": INK, "lw": 1.0, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", (right, place), (0.95 * right, place), arrowprops=tip)
    if row.flags:
        note = f"flagged: {', '.join(row.flags)}"
        # In a long bar, or else right of all marks.
        inside = mean > 0.6 * right
        marks = (claim, mean + wide, row.exact if math.isfinite(row.exact) else 0.0)
        at = claim if inside else max(marks)
        colour = WHITE if inside else INK
        axes.text(at + 0.015 * right, place, note, va="center", fontsize=SMALL, color=colour)


def _make_layer_legend() -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    mark: dict[str, Any] = {"linestyle": "none", "color": INK, "markersize": 4.5}
    arrow = {**mark, "markersize": 11, "markeredgewidth": 0.4}
    return [
        Patch(color=RED, label="certified, refutes the claim"),
        Patch(color=BLUE, label="certified, does not"),
        Line2D([], [], color=GREY, linestyle="--", linewidth=1.2, label="claim"),
        Line2D([], [], marker="D", label="exact loss of the pair", **mark),
        Line2D([], [], marker=r"$\rightarrow$", label="infinite", **arrow),
    ]
