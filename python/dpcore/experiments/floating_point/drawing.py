"""The picture of the experiment on floating point: one bar for each system."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...report.style import BLUE, GREY, INK, RED
from ..drawing import SMALL, TEXT, apply_style, make_canvas, tidy_axes
from .experiment import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_figure(result: Result, ax: Any = None) -> Figure:
    """Draw certified bounds as bars, claims as ticks, and a note where there is no audit."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    rows = result.rows
    picture = make_canvas(0.9 + 0.24 * len(rows), ax)
    axes = picture.subplots()
    right = max([4.0, *(row.audit.epsilon_lower for row in rows if row.audit)]) * 1.15
    for place, row in enumerate(reversed(rows)):
        claim = row.system.claim
        axes.plot([claim, claim], [place - 0.4, place + 0.4], color=INK, linewidth=1.2, zorder=3)
        if row.audit is None:
            axes.text(
                claim + 0.02 * right,
                place,
                row.missing.partition(":")[0],
                va="center",
                fontsize=SMALL,
            )
            continue
        bound = row.audit.epsilon_lower
        axes.barh(place, bound, height=0.6, color=RED if row.found else BLUE)
        beyond = max(bound, claim) + 0.01 * right
        axes.text(beyond, place, f"{bound:.3g}", va="center", fontsize=SMALL, color=INK)
    split = sum(not row.system.lattice for row in rows)
    if 0 < split < len(rows):
        axes.axhline(split - 0.5, color=GREY, linewidth=0.6)
    axes.set(xlim=(0.0, right), ylim=(-0.7, len(rows) - 0.3))
    axes.set_yticks(range(len(rows)), [row.system.name for row in reversed(rows)])
    axes.set_xlabel("certified privacy loss epsilon", fontsize=TEXT)
    tidy_axes(axes)
    axes.tick_params(axis="y", length=0)
    handles = [
        Patch(color=RED, label="certified, refutes the claim"),
        Patch(color=BLUE, label="certified, does not"),
        Line2D([], [], color=INK, linewidth=1.2, label="claim"),
    ]
    picture.legend(
        handles=handles, loc="outside upper center", ncols=3, frameon=False, fontsize=SMALL
    )
    return apply_style(picture)
