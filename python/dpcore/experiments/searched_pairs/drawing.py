"""The picture of the searched pairs: two bars for each mechanism."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...report.style import BLUE, GREY, INK, WHITE
from ...report.text import format_epsilon
from ..drawing import SMALL, TEXT, apply_style, make_canvas, tidy_axes
from .experiment import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_figure(result: Result, ax: Any = None) -> Figure:
    """Draw certified bounds and exact losses on both pairs of every mechanism."""
    picture = make_canvas(0.9 + 0.9 * len(result.rows), ax)
    axes = picture.subplots()
    ticks: dict[float, str] = {}
    for place, row in enumerate(reversed(result.rows)):
        for shift, kind, report in (
            (0.2, "usual", row.usual),
            (-0.2, "searched", row.searched),
        ):
            at = place + shift
            ticks[at] = f"{row.name}, {kind} pair"
            axes.barh(at, report.epsilon_lower, height=0.34, color=BLUE)
            axes.plot([row.supremum(report)], [at], "D", color=INK, markersize=4.0)
            text = format_epsilon(report.epsilon_lower)
            axes.text(0.002, at, text, va="center", color=WHITE, fontsize=SMALL)
    claim = result.rows[0].usual.claimed_epsilon or 0.0
    axes.axvline(claim, color=GREY, linestyle="--", linewidth=1.0)
    axes.set_yticks(list(ticks), list(ticks.values()))
    axes.set_xlim(0.0, 1.1 * claim)
    axes.set_xlabel(
        "certified epsilon (bar), exact loss on that pair (diamond), claim (line)",
        fontsize=TEXT,
    )
    tidy_axes(axes)
    return apply_style(picture)
