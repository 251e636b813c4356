"""Helpers that draw the pictures of all experiments with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..report import figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
else:
    # Names for annotations. matplotlib is imported only for the first picture.
    Axes = Figure = Any

TEXT, SMALL = 8.0, 7.0
"""Text sizes in points. Texts of these sizes are readable if the picture is printed `WIDTH` inches
wide."""

WIDTH = 7.2
"""Width of a picture in inches, the text width of a two-column page."""


def empty_figure(height: float, ax: Any = None) -> Figure:
    """Return an empty figure for a picture that is 7.2 inches wide and `height` inches high.

    The figure has an automatic layout. If `ax` is None, the figure is a new pyplot figure. If `ax`
    is an empty figure, the function returns this figure. If `ax` is a subplot, the function
    replaces the subplot by a subfigure, and returns the subfigure.
    """
    return figures.panel_figure(ax, (WIDTH, height))


def style_axes(axes: Axes, x: str = "", y: str = "", title: str = "") -> None:
    """Give a panel the common style: no top and right border, thin lines, small tick labels.

    Args:
        axes: axes of the panel (one subplot).
        x: label of the horizontal axis, or "" for no label.
        y: label of the vertical axis, or "" for no label.
        title: title above the panel, or "" for no title.
    """
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_linewidth(0.6)
    axes.tick_params(labelsize=SMALL, width=0.6, length=2.5)
    axes.tick_params(which="minor", length=0)
    if x:
        axes.set_xlabel(x, fontsize=TEXT)
    if y:
        axes.set_ylabel(y, fontsize=TEXT)
    if title:
        axes.set_title(title, fontsize=TEXT, loc="left")


def set_ticks(axis: Any, places: Sequence[float]) -> None:
    """Set the ticks of an axis to the numbers `places`, and label each tick with its number.

    `axis` is `axes.xaxis` or `axes.yaxis`.
    """
    axis.set_ticks(places, [f"{place:g}" for place in places])
    axis.set_ticks([], minor=True)


def add_upper_axis(axes: Axes, places: Sequence[float], labels: Sequence[str], x: str) -> Any:
    """Add a second horizontal axis above a panel, with labels at given positions.

    Args:
        axes: axes of the panel.
        places: positions of the ticks, in the units of the lower horizontal axis.
        labels: labels of the ticks.
        x: label of the upper axis.

    Returns:
        The upper axis.
    """
    upper = axes.secondary_xaxis("top")
    upper.set_xlabel(x, fontsize=TEXT)
    upper.set_xticks(places, labels)
    upper.set_xticks([], minor=True)
    upper.spines["top"].set_linewidth(0.6)
    upper.tick_params(labelsize=SMALL, width=0.6, length=2.5)
    return upper


def write_right_of(axes: Axes, height: float, text: str) -> None:
    """Write a text to the right of a panel, from top to bottom.

    Args:
        axes: axes of the panel.
        height: position of the middle of the text, in the units of the vertical axis.
        text: the text to write.
    """
    place = {"transform": axes.get_yaxis_transform(), "va": "center", "rotation": 270}
    axes.text(1.02, height, text, fontsize=SMALL, **place)  # type: ignore[arg-type]


def write_at(axes: Axes, text: str, place: Any, shift: Any = (0, 0), **style: Any) -> None:
    """Write a text into a panel, at the position `place`.

    `place` is the position (x, y) in the units of the axes. `shift` moves the text by (x, y)
    points. The keywords `style` are passed to `axes.annotate`.
    """
    axes.annotate(text, place, shift, **{"textcoords": "offset points", "fontsize": SMALL, **style})


def draw_arrow(axes: Axes, start: float, end: float, height: float, width: float = 1.0) -> None:
    """Draw a horizontal arrow from x = `start` to x = `end` at y = `height`.

    In the pictures, this arrow stands for an infinite value. `width` is the line width in points.
    """
    tip = {"arrowstyle": "-|>", "color": figures.INK, "lw": width, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", (end, height), (start, height), arrowprops=tip)


def make_line(label: str, color: Any = figures.INK, **style: Any) -> Any:
    """Return a legend entry for a line, or for a line with markers."""
    from matplotlib.lines import Line2D

    return Line2D(**{"xdata": [], "ydata": [], "label": label, "color": color, **style})


def make_mark(label: str, color: Any, marker: str, size: float, **style: Any) -> Any:
    """Return a legend entry for markers without a line.

    `size` is the size of a marker in points.
    """
    return make_line(label, color, marker=marker, markersize=size, linestyle="none", **style)


def make_patch(label: str, color: Any, **style: Any) -> Any:
    """Return a legend entry for a bar or an area."""
    from matplotlib.patches import Patch

    return Patch(label=label, color=color, **style)


def add_legend(picture: Figure, entries: Any, ncols: int = 3, side: str = "lower") -> None:
    """Add a legend to a figure, above or below all panels.

    Args:
        picture: the figure.
        entries: list of the entries of the legend, or one panel (axes). In the second case, the
            labelled lines of the panel become the entries.
        ncols: number of columns of the legend.
        side: "lower" for a legend below the panels, or "upper" for a legend above the panels.
    """
    lines: Any = (entries,) if isinstance(entries, list) else entries.get_legend_handles_labels()
    kinds = dict(zip(("handles", "labels"), lines, strict=False))
    where: Any = f"outside {side} center"
    picture.legend(**kinds, loc=where, ncols=ncols, frameon=False, fontsize=SMALL)


def save_png_and_svg(result: Any, stem: Path) -> None:
    """Draw the picture of a result, and write it to two files, `stem`.png and `stem`.svg.

    Equal results give files with the same bytes.

    Args:
        result: result of an experiment.
        stem: path of the two files, without .png and .svg.
    """
    with figures.use_own_style() as figure:
        result.plot(ax=figure)
        figures.save_picture(figure, stem.with_name(f"{stem.name}.png"), "out", dpi=250)
        # A date would make every SVG differ from the previous one.
        place = stem.with_name(f"{stem.name}.svg")
        figures.save_picture(figure, place, "out", metadata={"Date": None})
