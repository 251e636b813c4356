"""The picture of the accuracy of divergences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...report.style import BLUE, GREEN, GREY, INK, RED, WHITE
from ..drawing import SMALL, TEXT, apply_style, make_canvas, tidy_axes
from .cases import ALPHAS, CASES
from .experiment import Cell, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_METHOD_STYLES: Final[dict[str, tuple[str, str]]] = {
    "ball": (BLUE, "o"),
    "score": (GREEN, "s"),
    "poczos": ("#CC79A7", "D"),
    "paper": (RED, "^"),
    "paper-literal": (GREY, "v"),
}
_LINEAR_BIAS_RANGE: Final = 0.1
_BIAS_AXIS_END: Final = 300.0
_MAX_DRAWN_BIAS: Final = 110.0
"""Place of the mark of a finite bias of this size or more; an infinite bias is marked beyond it."""

_DIRECTION_GAP: Final = 0.8


def draw_figure(result: Result, ax: Any = None) -> Figure:
    """Draw bias and spread, a line for each case and direction, a panel for each order."""
    names = _order_cases(result)
    lines = [(name, direction) for name in names for direction in (0, 1)]
    places = _line_heights(lines)
    bottom = min(places.values())
    picture = make_canvas(1.5 + 0.125 * (2.2 - bottom), ax)
    panels = np.atleast_1d(picture.subplots(1, len(ALPHAS), sharey=True))
    methods = result.config.methods
    for i, (panel, alpha) in enumerate(zip(panels, ALPHAS, strict=True)):
        for cell in result.cells:
            for direction in (0, 1):
                shift = 0.7 * (methods.index(cell.method) / max(len(methods) - 1, 1) - 0.5)
                _draw_bias(panel, cell, direction, i, places[cell.case, direction] - shift)
        _set_bias_axis(panel, bottom)
        for name in names:
            if CASES[name].fails:
                top, low = places[name, 0] + 0.5, places[name, 1] - 0.5
                panel.axhspan(low, top, color=RED, alpha=0.06, linewidth=0)
        panel.set_title("KL" if alpha == 1.0 else f"order {alpha:g}", loc="left", fontsize=TEXT)
        panel.set_xlabel("mean minus truth (nats)", fontsize=SMALL)
    panels[0].set_yticks(list(places.values()), [_label_line(*line) for line in lines])
    panels[0].tick_params(axis="y", length=0, labelsize=SMALL - 0.5)
    picture.legend(
        handles=_make_method_legend(methods), loc="outside upper center", ncols=3, frameon=False,
        fontsize=SMALL,
    )  # fmt: skip
    return apply_style(picture)


def _order_cases(result: Result) -> list[str]:
    """List the cases, the failing ones last."""
    names = list(dict.fromkeys(cell.case for cell in result.cells))
    return sorted(names, key=lambda name: CASES[name].fails)


def _line_heights(lines: list[tuple[str, int]]) -> dict[tuple[str, int], float]:
    """Return the height of each line, from 0 down with a gap between cases."""
    return {line: -(i + _DIRECTION_GAP * (i // 2)) for i, line in enumerate(lines)}


def _label_line(name: str, direction: int) -> str:
    return "reversed" if direction else CASES[name].title.replace("against", "vs")


def _draw_bias(panel: Axes, cell: Cell, direction: int, i: int, place: float) -> None:
    """Draw a bias with one standard deviation, or a mark at the edge if it is infinite."""
    colour, marker = _METHOD_STYLES[cell.method]
    if cell.refused is not None:
        return
    bias, spread = cell.bias[direction, i], np.nan_to_num(cell.spread[direction, i])
    if cell.infinite[direction, i] > len(cell.values) // 2:
        # Most values are infinite: so is the bias, unless the truth is infinite too.
        most = np.median(cell.values[:, direction, i])
        with np.errstate(invalid="ignore"):
            bias = 0.0 if most == cell.truth[direction, i] else most - cell.truth[direction, i]
        spread = 0.0
    style: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 2.4}
    if abs(bias) >= _MAX_DRAWN_BIAS:
        edge = np.sign(bias) * (_BIAS_AXIS_END * 0.8 if np.isinf(bias) else _MAX_DRAWN_BIAS)
        face = WHITE if np.isinf(bias) else colour
        panel.plot([edge], [place], **style, markerfacecolor=face, clip_on=False, linestyle="none")
        return
    if np.isfinite(bias):
        panel.errorbar([bias], [place], xerr=[spread], elinewidth=0.6, linestyle="none", **style)


def _set_bias_axis(panel: Axes, bottom: float) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator

    panel.set_xscale("symlog", linthresh=_LINEAR_BIAS_RANGE, linscale=1.0)
    panel.set(xlim=(-_BIAS_AXIS_END, _BIAS_AXIS_END), ylim=(bottom - 0.8, 0.8))
    panel.xaxis.set_major_locator(FixedLocator([-10, -1, -0.1, 0, 0.1, 1, 10]))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.set_xticklabels(["-10", "-1", "-.1", "0", ".1", "1", "10"])
    panel.axvline(0.0, color=INK, linewidth=0.6, zorder=1)
    for edge in (-_MAX_DRAWN_BIAS * 1.25, _MAX_DRAWN_BIAS * 1.25):
        panel.axvline(edge, color=GREY, linewidth=0.4, linestyle=":", zorder=1)
    tidy_axes(panel)


def _make_method_legend(methods: tuple[str, ...]) -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    def point(method: str, **more: Any) -> Line2D:
        colour, marker = _METHOD_STYLES[method]
        return Line2D([], [], color=colour, marker=marker, markersize=4, linestyle="none", **more)

    handles: list[Any] = [point(method, label=method) for method in methods]
    hollow = {"markerfacecolor": WHITE, "label": "hollow at the edge: infinitely far off"}
    handles.append(point(methods[0], **hollow))
    handles.append(Patch(color=RED, alpha=0.12, label="rows on which the ball or others fail"))
    return handles
