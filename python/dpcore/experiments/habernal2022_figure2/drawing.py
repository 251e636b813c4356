"""The picture of the appendix figure: five histograms and their exact laws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...report.style import BLUE, INK, RED
from ..drawing import SMALL, TEXT, apply_style, make_canvas, tidy_axes
from .experiment import BINS, HIGH, LOW, Histogram, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
