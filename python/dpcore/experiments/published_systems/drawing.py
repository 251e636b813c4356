"""The picture of the main job: a panel of bars for each number of entries."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...published import SYSTEMS
from ...report.style import BLUE, GREY, INK, RED, WHITE
from ..drawing import SMALL, TEXT, canvas, dressed, tidy
from .experiment import Result, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def figure(result: Result, ax: Any = None) -> Figure:
    """Certified bounds as bars, closed forms as diamonds or arrows, the claim as a line."""
    picture = canvas(3.6, ax)
    panels = picture.subplots(1, len(result.config.dims), sharey=True, squeeze=False)[0]
    # Sound systems on top, so that what is refuted should be exactly the lower group.
    order = sorted(SYSTEMS, key=lambda cls: not cls.sound)
    places = {cls.__name__: len(order) - 1 - i for i, cls in enumerate(order)}
    split = sum(not cls.sound for cls in order) - 0.5
    for axes, dim in zip(panels, result.config.dims, strict=True):
        _panel(axes, result.at(dim), places, result.config.epsilon)
        axes.axhline(split, color=GREY, linewidth=0.6)
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
        handles=_legend(), loc="outside upper center", ncols=5, frameon=False, fontsize=SMALL
    )
    return dressed(picture)


def _panel(axes: Axes, rows: tuple[Row, ...], places: dict[str, int], claim: float) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

    right = 60.0 * claim
    axes.set_xscale("symlog", linthresh=claim, linscale=1.2)
    for row in rows:
        place = places[row.system]
        colour = RED if row.audit.refuted else BLUE
        axes.barh(place, row.audit.epsilon_lower, height=0.56, color=colour)
        _closed_form(axes, place, row.audit.exact, right)
        if not row.sound and row.audit.refuted is not True:
            note = f"not refuted: true loss {row.true_loss:.3g}"
            beyond = max(1.12 * claim, 1.3 * _finite(row.audit.exact))
            axes.text(beyond, place, note, va="center", fontsize=SMALL, color=INK)
    axes.axvline(claim, color=GREY, linestyle="--", linewidth=1.2, zorder=2.5)
    axes.set(xlim=(0.0, right), ylim=(-0.7, len(places) - 0.3))
    axes.xaxis.set_major_locator(FixedLocator([claim * v for v in (0, 0.5, 1, 2, 5, 10, 20)]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    tidy(axes)
    axes.tick_params(axis="y", length=0)


def _closed_form(axes: Axes, place: int, value: float | None, right: float) -> None:
    if value is None:
        return
    if math.isfinite(value):
        style: dict[str, Any] = {"markeredgecolor": WHITE, "markeredgewidth": 0.7}
        axes.plot([value], [place], "D", color=INK, markersize=4.5, zorder=3, **style)
        return
    tip = {"arrowstyle": "-|>", "color": INK, "lw": 1.0, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", (right, place), (0.42 * right, place), arrowprops=tip)


def _finite(value: float | None) -> float:
    return value if value is not None and math.isfinite(value) else 0.0


def _legend() -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    mark: dict[str, Any] = {"linestyle": "none", "color": INK, "markersize": 4.5}
    arrow = {**mark, "markersize": 11, "markeredgewidth": 0.4}
    return [
        Patch(color=RED, label="certified, refutes the claim"),
        Patch(color=BLUE, label="certified, does not"),
        Line2D([], [], marker="D", label="closed form of the attack", **mark),
        Line2D([], [], marker=r"$\rightarrow$", label="infinite", **arrow),
        Line2D([], [], color=GREY, linestyle="--", linewidth=1.2, label="claim"),
    ]
