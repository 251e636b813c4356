"""The picture of Renyi divergences of mechanisms: one panel for each of them and direction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...report.style import BLUE, GREEN, GREY, INK, WHITE
from ..drawing import SMALL, TEXT, apply_style, make_canvas, tidy_axes
from .cases import CASES
from .experiment import Result, Row
from .text import DIRECTIONS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_PANEL_COLUMNS: Final = 4
_ORDER_TICKS: Final = (1, 2, 4, 8, 16)
_CURVE_LABELS: Final = (
    "closed form",
    "estimate, +- standard error",
    "not resolved (hollow)",
    "certified from below",
)


def draw_figure(result: Result, ax: Any = None) -> Figure:
    """Draw truth, estimates and certified bounds, with unresolved orders in grey."""
    panels = [(row, side) for row in result.rows for side in (0, 1)]
    rows = -(-len(panels) // _PANEL_COLUMNS)
    picture = make_canvas(0.8 + 1.75 * rows, ax)
    axes = picture.subplots(rows, _PANEL_COLUMNS, squeeze=False).ravel()
    for panel, (row, side) in zip(axes, panels, strict=False):
        _draw_curve_panel(panel, row, side)
    for panel in axes[len(panels) :]:
        panel.set_axis_off()
    picture.supxlabel("order alpha (1 is KL)", fontsize=TEXT)
    picture.supylabel("nats", fontsize=TEXT)
    picture.legend(
        handles=_make_curve_legend(),
        loc="outside upper center",
        ncols=4,
        frameon=False,
        fontsize=SMALL,
    )
    return apply_style(picture)


def _draw_curve_panel(axes: Axes, row: Row, side: int) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

    estimate, truth = row.estimate, row.truth[side]
    alphas, value = estimate.alphas, estimate.value[side]
    resolved = estimate.resolved[side]
    axes.set_xscale("log")
    axes.plot(alphas, row.certified[side], color=GREEN, linewidth=1.2)
    if np.isfinite(truth).all():
        axes.plot(alphas, truth, color=INK, linewidth=0.9)
    else:
        words: dict[str, Any] = {"transform": axes.transAxes, "ha": "right", "fontsize": SMALL}
        axes.text(0.98, 0.05, "closed form: infinite", color=INK, **words)
    # Error bars of neighbouring orders overlap: every third is enough to see them.
    for kept, face in ((resolved, BLUE), (~resolved, WHITE)):
        kept = kept & np.isfinite(value)
        error = np.nan_to_num(estimate.std_error[side][kept])
        axes.errorbar(
            alphas[kept], value[kept], error, fmt="o", color=BLUE, markersize=2.2,
            markerfacecolor=face, markeredgewidth=0.5, elinewidth=0.6, errorevery=3,
        )  # fmt: skip
    _shade_unresolved_orders(axes, alphas, resolved)
    axes.set_ylim(*_panel_limits(row, side))
    tidy_axes(axes)
    axes.xaxis.set_major_locator(FixedLocator([a for a in _ORDER_TICKS if a <= alphas[-1]]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.set_title(f"{CASES[row.name].title}\n{DIRECTIONS[side]}", loc="left", fontsize=SMALL)


def _shade_unresolved_orders(axes: Axes, alphas: Any, resolved: Any) -> None:
    """Shade every order that is not resolved, half way to its neighbours."""
    logs = np.log(alphas)
    inner = (logs[1:] + logs[:-1]) / 2.0
    ends = (logs[0] - 0.06, logs[-1] + 0.06)
    edges = np.exp(np.concatenate([[ends[0]], inner, [ends[1]]]))
    for i in np.flatnonzero(~resolved):
        axes.axvspan(edges[i], edges[i + 1], color=GREY, alpha=0.16, linewidth=0, zorder=0)
    axes.set_xlim(edges[0], edges[-1])


def _panel_limits(row: Row, side: int) -> tuple[float, float]:
    """Return limits for all figures found, and as much of the truth as leaves these visible."""
    found = np.concatenate([row.estimate.value[side], row.certified[side]])
    found, truth = found[np.isfinite(found)], row.truth[side][np.isfinite(row.truth[side])]
    low, high = min(0.0, float(found.min())), max(0.1, float(found.max()))
    high = max(high, min(1.6 * high, float(truth.max(initial=0.0))))
    room = 0.08 * (high - low)
    return low - room, high + room


def _make_curve_legend() -> list[Any]:
    from matplotlib.lines import Line2D

    dot: dict[str, Any] = {"linestyle": "none", "marker": "o", "color": BLUE, "markersize": 3.5}
    return [
        Line2D([], [], color=INK, linewidth=0.9, label=_CURVE_LABELS[0]),
        Line2D([], [], label=_CURVE_LABELS[1], **dot),
        Line2D([], [], markerfacecolor=WHITE, label=_CURVE_LABELS[2], **dot),
        Line2D([], [], color=GREEN, linewidth=1.2, label=_CURVE_LABELS[3]),
    ]
