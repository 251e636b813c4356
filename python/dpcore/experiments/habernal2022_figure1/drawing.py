"""The picture of Figure 1: panels with a band for infinite losses on top."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...report.style import INK, PALE
from ..drawing import SMALL, TEXT, apply_style, make_canvas, tidy_axes
from .experiment import Cell, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_LINEAR_LOSS_RANGE = 0.01
"""Below this loss the axis is linear, so that 0 has a place."""

_INFINITE_LOSS_BAND = (1e3, 2e5)
"""Lower and upper end of the band for infinite losses: a level for each number of entries."""

_MAX_PANEL_COLUMNS = 4
_MECHANISM_TITLES = {
    "no privacy": "no privacy (copies x)",
    "random": "random bits (ignores x)",
    "Laplace": "Laplace mechanism",
    "ADePT": "ADePT (reference code)",
    "DPText": "DPText (NaN to 0)",
    "halved output": "halved output (sound)",
    "half noise": "half noise (loses 2 epsilon)",
}


def draw_figure(result: Result, ax: Any = None) -> Figure:
    """Draw empirical loss (points), closed form (lines) and certified bound (ticks) by epsilon."""
    names = result.config.mechanisms
    columns = min(_MAX_PANEL_COLUMNS, len(names) + 1)
    rows = -(-(len(names) + 1) // columns)
    picture = make_canvas(0.5 + 2.2 * rows, ax)
    panels = picture.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    colours = _choose_colours(result.config.dims)
    for axes, name in zip(panels, names, strict=False):
        _draw_frame(axes, result)
        axes.set_title(_MECHANISM_TITLES[name], fontsize=TEXT, loc="left")
        for place, dim in enumerate(result.config.dims):
            cells = [cell for cell in result.of(name) if cell.dim == dim]
            share = (place + 1) / (len(colours) + 1)
            _draw_dimension(
                axes,
                cells,
                colours[dim],
                _INFINITE_LOSS_BAND[0] ** (1 - share) * _INFINITE_LOSS_BAND[1] ** share,
            )
    for axes in panels[len(names) :]:
        axes.set_axis_off()
    for place in range(len(names) - columns, len(names)):
        panels[max(0, place)].tick_params(labelbottom=True)
    _make_dimension_legend(panels[len(names)], colours, result.config.confidence)
    picture.supxlabel("claimed epsilon", fontsize=TEXT)
    picture.supylabel("privacy loss (nats)", fontsize=TEXT)
    return apply_style(picture)


def _choose_colours(dims: tuple[int, ...]) -> dict[int, Any]:
    from matplotlib import colormaps

    # The bright end of viridis is too pale for thin lines on white.
    steps = max(1, len(dims) - 1)
    return {dim: colormaps["viridis"](0.88 * i / steps) for i, dim in enumerate(dims)}


def _draw_frame(axes: Axes, result: Result) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator

    epsilons = result.config.epsilons
    low, high = 0.65 * min(epsilons), 1.5 * max(epsilons)
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=_LINEAR_LOSS_RANGE, linscale=0.5)
    axes.set(xlim=(low, high), ylim=(-0.25 * _LINEAR_LOSS_RANGE, _INFINITE_LOSS_BAND[1]))
    axes.axhspan(_INFINITE_LOSS_BAND[0], _INFINITE_LOSS_BAND[1], color=PALE, linewidth=0, zorder=0)
    axes.plot([low, high], [low, high], color=INK, linestyle="--", linewidth=0.8, zorder=1)
    marks = [e for e in (0.1, 1.0, 10.0) if low < e < high]
    axes.xaxis.set_major_locator(FixedLocator(marks))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_locator(NullLocator())
    levels = [0.0, 0.01, 0.1, 1.0, 10.0, 100.0]
    axes.set_yticks(
        [*levels, math.sqrt(_INFINITE_LOSS_BAND[0] * _INFINITE_LOSS_BAND[1])],
        [*(f"{v:g}" for v in levels), "infinite"],
    )
    axes.yaxis.set_minor_locator(NullLocator())
    tidy_axes(axes)


def _draw_dimension(axes: Axes, cells: list[Cell], colour: Any, infinite: float) -> None:
    """Draw the curve of one number of entries; `infinite` is its level in the band."""
    if not cells:
        return
    epsilons = [cell.epsilon for cell in cells]
    line = [min(cell.exact, infinite) for cell in cells]
    axes.plot(epsilons, line, color=colour, linewidth=0.9, zorder=2)
    hats = [(cell.epsilon, cell.audit.epsilon_hat) for cell in cells]
    finite = [(e, hat) for e, hat in hats if math.isfinite(hat)]
    beyond = [(e, infinite) for e, hat in hats if not math.isfinite(hat)]
    style: dict[str, Any] = {"color": colour, "linestyle": "none", "markeredgewidth": 0}
    for points, marker, size in ((finite, "o", 3.2), (beyond, "^", 3.6)):
        if points:
            axes.plot(*zip(*points, strict=True), marker=marker, markersize=size, **style)
    lower = [cell.audit.epsilon_lower for cell in cells]
    axes.plot(epsilons, lower, "_", color=colour, markersize=5, markeredgewidth=0.9, zorder=3)


def _make_dimension_legend(axes: Axes, colours: dict[int, Any], confidence: float) -> None:
    from matplotlib.lines import Line2D

    def entry(label: str, colour: Any = INK, **style: Any) -> Line2D:
        return Line2D([], [], color=colour, label=label, **{"linestyle": "none", **style})

    dims = [
        entry(f"n = {dim}", colour, linestyle="-", linewidth=2) for dim, colour in colours.items()
    ]
    marks = [
        entry("empirical loss", marker="o", markersize=3.2),
        entry("empirical loss, infinite", marker="^", markersize=3.6),
        entry(f"certified at {100 * confidence:g} %", marker="_", markersize=6),
        entry("closed form", linestyle="-", linewidth=0.9),
        entry("loss = claim", linestyle="--", linewidth=0.8),
    ]
    kinds: dict[str, Any] = {"frameon": False, "fontsize": SMALL, "borderaxespad": 0.0}
    first = axes.legend(handles=dims, loc="upper left", ncols=2, columnspacing=1.0, **kinds)
    axes.add_artist(first)
    axes.legend(handles=marks, loc="lower left", **kinds)
