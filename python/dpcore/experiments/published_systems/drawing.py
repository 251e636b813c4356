"""The picture of the main job: a panel for each number of entries, a lane for each attack."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...published import SYSTEMS
from ...report.style import BLUE, GREY, INK, RED, WHITE
from ..drawing import SMALL, TEXT, apply_style, make_canvas, tidy_axes
from .experiment import ATTACKS, Result, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ATTACK_OFFSETS = dict(zip(ATTACKS, (0.27, 0.0, -0.27), strict=True))
"""Height at which an attack is drawn above its system's place."""

_ATTACK_MARKERS = dict(zip(ATTACKS, ("o", "s", "D"), strict=True))
_AXIS_END_IN_CLAIMS = 250.0
"""End of the axis, in units of the claim."""


def draw_figure(result: Result, ax: Any = None) -> Figure:
    """Draw certified bounds as points, true losses as bars or arrows, and the claim as a line."""
    picture = make_canvas(4.6, ax)
    panels = picture.subplots(1, len(result.config.dims), sharey=True, squeeze=False)[0]
    # Sound systems on top, so that what is refuted should be exactly the lower group.
    order = sorted(SYSTEMS, key=lambda cls: not cls.sound)
    places = {cls.__name__: len(order) - 1 - i for i, cls in enumerate(order)}
    split = sum(not cls.sound for cls in order) - 0.5
    for axes, dim in zip(panels, result.config.dims, strict=True):
        for name, rows in result.at(dim).items():
            _draw_system(axes, places[name], rows, result.config.epsilon)
        _set_scale(axes, len(places), result.config.epsilon)
        axes.axhline(split, color=INK, linewidth=0.6)
        axes.set_title(f"{dim} entries", fontsize=TEXT, loc="left")
    panels[0].set_yticks(list(places.values()), list(places))
    for text, middle in (("claim true", (split + len(order)) / 2), ("claim false", split / 2)):
        spot = (1.02, middle)
        transform = panels[-1].get_yaxis_transform()
        panels[-1].text(*spot, text, transform=transform, rotation=270, va="center", fontsize=SMALL)
    picture.supxlabel(
        "privacy loss epsilon (linear up to the claim, logarithmic beyond)", fontsize=TEXT
    )
    picture.legend(
        handles=_make_attack_legend(),
        loc="outside upper center",
        ncols=4,
        frameon=False,
        fontsize=SMALL,
    )
    return apply_style(picture)


def _draw_system(axes: Axes, place: int, rows: dict[str, Row], claim: float) -> None:
    right = _AXIS_END_IN_CLAIMS * claim
    for name, row in rows.items():
        height = place + _ATTACK_OFFSETS[name]
        # Filled or hollow beside the colour: told apart in grey too.
        colour, inside = (RED, RED) if row.audit.refuted else (BLUE, WHITE)
        bound = min(row.audit.epsilon_lower, right)
        marker = _ATTACK_MARKERS[name] if bound < right else ">"
        style: dict[str, Any] = {"markerfacecolor": inside, "markersize": 4.0, "clip_on": False}
        axes.plot([0.0, bound], [height, height], color=colour, linewidth=1.2)
        axes.plot([bound], [height], marker, color=colour, zorder=3, **style)
    loss = next(iter(rows.values())).true_loss
    if loss <= right:
        axes.plot([loss, loss], [place - 0.42, place + 0.42], color=INK, linewidth=1.8, zorder=2.8)
    elif not math.isnan(loss):
        tip = {"arrowstyle": "-|>", "color": INK, "lw": 1.4, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", (right, place), (0.4 * right, place), arrowprops=tip)


def _set_scale(axes: Axes, systems: int, claim: float) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

    axes.set_xscale("symlog", linthresh=claim, linscale=1.2)
    for place in range(1, systems):
        axes.axhline(place - 0.5, color=GREY, linewidth=0.3, alpha=0.5)
    axes.axvline(claim, color=GREY, linestyle="--", linewidth=1.2, zorder=1.5)
    axes.set(xlim=(0.0, _AXIS_END_IN_CLAIMS * claim), ylim=(-0.6, systems - 0.4))
    axes.xaxis.set_major_locator(FixedLocator([claim * v for v in (0, 0.5, 1, 2, 5, 10, 30, 100)]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    tidy_axes(axes)
    axes.tick_params(axis="y", length=0)


def _make_attack_legend() -> list[Any]:
    from matplotlib.lines import Line2D

    names = {**{name: name for name in ATTACKS}, "vote": "the papers' vote"}
    marks = [
        Line2D(
            [],
            [],
            marker=_ATTACK_MARKERS[name],
            color=INK,
            markersize=4.0,
            linewidth=1.2,
            label=text,
        )
        for name, text in names.items()
    ]
    full: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 5.0}
    hollow = {**full, "markerfacecolor": WHITE}
    bar: dict[str, Any] = {"linestyle": "none", "color": INK, "markersize": 9.0}
    return [
        *marks,
        Line2D([], [], color=GREY, linestyle="--", linewidth=1.2, label="claim"),
        Line2D([], [], color=RED, label="certified, refutes the claim", **full),
        Line2D([], [], color=BLUE, label="certified, does not", **hollow),
        Line2D([], [], marker="|", markeredgewidth=1.8, label="true loss", **bar),
        Line2D(
            [], [], marker=r"$\rightarrow$", markeredgewidth=0.4, label="true loss infinite", **bar
        ),
    ]
