"""The picture of ADePT's sensitivity: unprotected pairs, and what the remedies cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ...report.style import BLUE, GREEN, GREY, INK, RED
from ..drawing import SMALL, TEXT, apply_style, make_canvas, tidy_axes
from .cost import LAWS
from .experiment import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_LAW_STYLES: Final[dict[str, tuple[str, str, Any]]] = {
    "uniform": (RED, "o", "-"),
    "normal 0.1": (BLUE, "s", (0, (5, 1))),
    "normal 0.01": (GREEN, "^", (0, (4, 1, 1, 1))),
}
"""Colour, marker and line of each law: told apart without colours, too."""

_REMEDY_LINES: Final[dict[str, Any]] = {"l2": "-", "l1": "--"}
"""Line of each remedy."""


def draw_figure(result: Result, ax: Any = None) -> Figure:
    """Draw shares of unprotected pairs above; below, scale of the noise and noise to signal."""
    picture = make_canvas(6.0, ax)
    panels = picture.subplot_mosaic(
        [["share", "share"], ["scale", "ratio"]], height_ratios=(1.15, 1)
    )
    _draw_shares(panels["share"], result)
    _draw_scales(panels["scale"], result)
    _draw_ratios(panels["ratio"], result)
    return apply_style(picture)


def _draw_shares(axes: Axes, result: Result) -> None:
    dims = sorted(result.dims)
    hollow: dict[str, Any] = {"linestyle": "none", "color": INK, "markerfacecolor": "none"}
    hollow |= {"markersize": 6.0, "markeredgewidth": 0.8}
    for name, law in LAWS.items():
        colour, marker, line = _LAW_STYLES[name]
        share = [100.0 * result.at(dim, name, "l2").share for dim in dims]
        label = f"{law.title}, clipped in L2"
        axes.plot(dims, share, color=colour, linestyle=line, linewidth=1.8, label=label)
        known = [cell for cell in result.cells if cell.law == name and cell.compared is not None]
        compared = [100.0 * (cell.compared or 0.0) for cell in known]
        axes.plot([cell.dim for cell in known], compared, marker=marker, **hollow)
    worst = [100.0 * max(result.at(dim, name, "l1").share for name in LAWS) for dim in dims]
    axes.plot(dims, worst, ":", color=INK, linewidth=1.8, label="each of them, clipped in L1")
    axes.plot([], [], marker="o", label="another run of 10,000 pairs", **hollow)
    _set_size_axis(axes, dims)
    axes.set(ylim=(-4.0, 104.0))
    axes.set_ylabel("pairs more than 2C apart in L1 (%)", fontsize=TEXT)
    title = "Pairs that ADePT's noise, of scale 2C / epsilon, does not protect"
    axes.set_title(title, fontsize=TEXT, loc="left")
    axes.legend(loc="center right", fontsize=SMALL, frameon=False, bbox_to_anchor=(0.87, 0.5))


def _draw_scales(axes: Axes, result: Result) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

    law = next(iter(LAWS))
    styles = (
        ("l2", RED, "-", "after the clip in L2: 2C sqrt(n) / epsilon"),
        ("l1", BLUE, "--", "after one in L1: 2C / epsilon, ADePT's own"),
    )
    axes.set_yscale("log")
    for norm, colour, line, label in styles:
        found = [cost for cost in result.costs if (cost.law, cost.norm) == (law, norm)]
        dims, scales = [cost.dim for cost in found], [cost.scale for cost in found]
        axes.plot(dims, scales, linestyle=line, color=colour, linewidth=1.8, label=label)
    _set_size_axis(axes, dims)
    axes.yaxis.set_major_locator(FixedLocator([scales[0] * 2.0**power for power in range(6)]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    # Space for the legend above the line.
    axes.set_ylim(scales[0] / 1.3, scales[0] * 2.0**6.3)
    axes.set_ylabel("scale of the noise (units of the input)", fontsize=TEXT)
    title = f"Repaired: noise on each entry, epsilon = {result.config.epsilon:g}"
    axes.set_title(title, fontsize=TEXT, loc="left")
    axes.legend(loc="upper left", fontsize=SMALL, frameon=False)


def _draw_ratios(axes: Axes, result: Result) -> None:
    axes.set_yscale("log")
    for name in LAWS:
        colour, marker, _ = _LAW_STYLES[name]
        style: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 3.4}
        for norm, line in _REMEDY_LINES.items():
            found = [cost for cost in result.costs if (cost.law, cost.norm) == (name, norm)]
            dims, ratios = [cost.dim for cost in found], [cost.ratio for cost in found]
            axes.plot(dims, ratios, linestyle=line, linewidth=1.2, **style)
    _set_size_axis(axes, dims)
    # Space for the legend above the lines.
    axes.set_ylim(top=30.0 * max(cost.ratio for cost in result.costs))
    axes.set_ylabel("noise / clipped vector (ratio)", fontsize=TEXT)
    axes.set_title("Repaired: noise to signal, by L2 lengths", fontsize=TEXT, loc="left")
    axes.legend(handles=_make_law_legend(), loc="upper left", fontsize=SMALL, frameon=False)


def _make_law_legend() -> list[Any]:
    from matplotlib.lines import Line2D

    laws = [
        Line2D([], [], color=colour, marker=marker, markersize=3.4, label=LAWS[name].title)
        for name, (colour, marker, _) in _LAW_STYLES.items()
    ]
    clips = [
        Line2D([], [], color=GREY, linestyle=line, label=f"clipped in {norm.upper()}")
        for norm, line in _REMEDY_LINES.items()
    ]
    return [*laws, *clips]


def _set_size_axis(axes: Axes, dims: list[int]) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

    axes.set_xscale("log", base=2)
    low, high = min(dims), max(dims)
    marks = [2**power for power in range(13) if low <= 2**power <= high]
    axes.xaxis.set_major_locator(FixedLocator(marks or [low]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.set_xlim(low / 1.08, high * 1.08)
    axes.set_xlabel("entries n of the vector", fontsize=TEXT)
    tidy_axes(axes)
