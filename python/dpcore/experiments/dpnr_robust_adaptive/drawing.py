"""The picture: accuracy against claimed and true epsilon, and against the share of masked words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ...report.style import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, RED, SKY
from ..drawing import SMALL, TEXT, apply_style, make_canvas, tidy_axes
from .cases import DATA, LINES, MASKS, MU_EPSILON
from .compared import compute_mean_sd, crossing_epsilon, true_epsilon
from .experiment import Result, Size
from .jobs import Test

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_LINE_STYLES: Final[dict[str, dict[str, Any]]] = {
    "not robust": {"color": INK, "marker": "s"},
    "robust": {"color": BLUE, "marker": "o"},
    "stretched 10 to 2": {"color": GREEN, "marker": "^"},
    "constant 5": {"color": RED, "marker": "D"},
    "uniform 2 to 10": {"color": PURPLE, "marker": "v"},
    "log-uniform .5 to 10": {"color": ORANGE, "marker": "P", "linestyle": "--"},
    "10/n as printed": {"color": GREY, "marker": "x", "linestyle": "--"},
    "1/n as printed": {"color": GREY, "marker": "+", "linestyle": ":"},
    "robust, b = d/epsilon": {"color": SKY, "marker": "*", "linestyle": ":"},
}
"""Okabe and Ito's colours; marks and dashes tell lines apart without them."""


def draw_figure(result: Result, ax: Any = None) -> Figure:
    """Draw a panel for each corpus and dimension, then one for masked words of each corpus."""
    cells = [(size, dim) for size in result.sizes for dim in result.config.dims]
    masked = [cell for cell in cells if _mask_curves(result, *cell)]
    columns = max(1, min(2, max(len(cells), len(masked))))
    places = len(cells) + len(masked)
    rows = -(-len(cells) // columns) + -(-len(masked) // columns)
    picture = make_canvas(0.9 + 2.5 * rows, ax)
    grid = picture.subplots(rows, columns, squeeze=False)
    first = [axes for line in grid[: -(-len(cells) // columns)] for axes in line]
    second = [axes for line in grid[-(-len(cells) // columns) :] for axes in line]
    for axes, cell in zip(first, cells, strict=False):
        _draw_noise_panel(axes, result, *cell)
    for axes, cell in zip(second, masked, strict=False):
        _draw_mask_panel(axes, result, *cell)
    for axes in [*first[len(cells) :], *second[len(masked) :]]:
        axes.remove()
    assert len(picture.axes) == places
    for panels, place, ncols in ((first, "upper", 4), (second[: len(masked)], "lower", 2)):
        # Of the panels the one with the most lines: a run that was cut short lacks some.
        legends = [axes.get_legend_handles_labels() for axes in panels[: len(cells)]]
        handles, labels = max(legends, key=lambda legend: len(legend[1]), default=([], []))
        if labels:
            where: Any = f"outside {place} center"
            picture.legend(handles, labels, loc=where, ncols=ncols, frameon=False, fontsize=SMALL)
    return apply_style(picture)


def _draw_noise_panel(axes: Axes, result: Result, size: Size, dim: int) -> None:
    levels = result.config.epsilons
    for name in result.config.lines:
        found = [(level, result.values(size.data, dim, name, level)) for level in levels]
        _draw_accuracy_curve(
            axes, name, [(x, values) for x, values in found if values], _LINE_STYLES.get(name)
        )
    axes.axhline(size.chance, color=GREY, linewidth=0.8, linestyle=(0, (1, 2)))
    axes.text(levels[0], size.chance - 0.02, "chance", fontsize=SMALL, color=GREY, va="top")
    axes.set_xscale("log")
    at = crossing_epsilon(result, size.data, dim)
    if at is not None:
        axes.axvline(at, color=BLUE, linewidth=0.8, linestyle="--", zorder=0.5)
        right = at**2 > levels[0] * levels[-1]
        axes.annotate(
            f"robust better\nthan not robust\nfrom {at:g}", (at, 1.0), (-3 if right else 3, -2),
            xycoords=axes.get_xaxis_transform(), textcoords="offset points", fontsize=SMALL,
            color=BLUE, va="top", ha="right" if right else "left",
        )  # fmt: skip
    axes.set_ylim(max(0.0, size.chance - 0.15), 1.0)
    axes.set_xlabel("claimed epsilon", fontsize=TEXT)
    axes.set_ylabel(f"accuracy, {_data_title(result, size)}, d = {dim}", fontsize=TEXT)
    _set_level_ticks(axes, levels, [f"{level:g}" for level in levels], 1.25)
    # The same places once more, with what the noise really gives.
    top = axes.secondary_xaxis("top")
    top.set_xlabel("true epsilon, any two texts", fontsize=TEXT)
    _set_level_ticks(top, levels, [f"{true_epsilon(level, dim):g}" for level in levels], 1.5)
    top.spines["top"].set_linewidth(0.6)
    top.tick_params(labelsize=SMALL, width=0.6, length=2.5)
    tidy_axes(axes)


def _set_level_ticks(axes: Any, levels: tuple[float, ...], labels: list[str], room: float) -> None:
    """Draw a tick for each level, and labels that are a factor `room` or more from the last one."""
    shown, last = [], 0.0
    for level, label in zip(levels, labels, strict=True):
        fits = level >= room * last
        shown.append(label if fits else "")
        last = level if fits else last
    axes.set_xticks(levels, shown, minor=False)
    axes.set_xticks([], minor=True)


def _draw_accuracy_curve(
    axes: Axes, name: str, points: list[tuple[float, tuple[float, ...]]], style: Any
) -> None:
    """Draw means with error bars, or nothing if there are no points."""
    if not points or not LINES.get(name, LINES["robust"]).drawn:
        return
    means, wide = zip(*(compute_mean_sd(values) for _, values in points), strict=True)
    axes.errorbar(
        [x for x, _ in points], means, yerr=wide if any(wide) else None, label=name,
        markersize=3.2, linewidth=1.0, elinewidth=0.8, capsize=1.5, **(style or {"color": INK}),
    )  # fmt: skip


def _mask_curves(
    result: Result, size: Size, dim: int
) -> dict[str, tuple[dict[str, Any], list[tuple[float, tuple[float, ...]]]]]:
    """Return accuracies at the claimed epsilon against the share of masked words."""
    found = {}
    kinds = (("not robust", False, "-"), ("robust", False, "--"), ("robust", True, ":"))
    for mask, title in MASKS.items():
        for line, trained, dash in kinds:
            tests = [Test(MU_EPSILON, mu, mask) for mu in result.config.mus]
            values = [(t.mu, result.masked(size.data, dim, line, t, trained)) for t in tests]
            points = [(mu, one) for mu, one in values if one]
            where = "training and test" if trained else "test"
            if points:
                colour = GREEN if mask == "leave_out" else RED
                mark = _LINE_STYLES[line]["marker"] if not trained else "^"
                style = {"color": colour, "linestyle": dash, "marker": mark}
                found[f"{title}; {line}, in {where}"] = (style, points)
    return found


def _draw_mask_panel(axes: Axes, result: Result, size: Size, dim: int) -> None:
    for name, (style, points) in _mask_curves(result, size, dim).items():
        _draw_accuracy_curve(axes, name, points, style)
    axes.axhline(size.chance, color=GREY, linewidth=0.8, linestyle=(0, (1, 2)))
    axes.set_ylim(max(0.0, size.chance - 0.15), 1.0)
    mus = result.config.mus
    axes.set_xlim(0.0, 1.0)
    axes.set_xticks(mus, [f"{mu:g}" for mu in mus])
    axes.set_xlabel(f"share of masked words, claimed epsilon {MU_EPSILON:g}", fontsize=TEXT)
    axes.set_ylabel(f"accuracy, {_data_title(result, size)}, d = {dim}", fontsize=TEXT)
    tidy_axes(axes)


def _data_title(result: Result, size: Size) -> str:
    return (
        DATA[size.data] if result.config.data is not None else f"generated ({size.labels} labels)"
    )
