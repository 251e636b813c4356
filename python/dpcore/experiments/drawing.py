"""Parts that the pictures share: colours, text sizes and the writing of files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..report import style
from ..report.style import apply_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["WIDTH", "add_legend", "apply_style", "make_canvas", "save_png_and_svg", "tidy_axes"]

TEXT, SMALL = 8.0, 7.0
"""Text sizes in points: readable where the picture is printed at its own width."""

WIDTH = 7.2
"""Width of a picture in inches: the text width of a two-column page."""


def make_canvas(height: float, ax: Any = None) -> Figure:
    """Make an empty picture of the common width, `height` inches high, with automatic layout."""
    return style.get_canvas(ax, (WIDTH, height))


def tidy_axes(axes: Axes) -> None:
    """Hide two sides of the axes, and make lines thin and tick labels small."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_linewidth(0.6)
    axes.tick_params(labelsize=SMALL, width=0.6, length=2.5)
    axes.tick_params(which="minor", length=0)


def add_legend(picture: Figure, axes: Axes, ncols: int = 3, side: str = "lower") -> None:
    """Name the lines of one panel outside of all panels."""
    lines = axes.get_legend_handles_labels()
    where: Any = f"outside {side} center"
    picture.legend(*lines, loc=where, ncols=ncols, frameon=False, fontsize=SMALL)


def save_png_and_svg(result: Any, stem: Path) -> None:
    """Write `stem`.png and `stem`.svg; one result always gives the same bytes.

    Args:
        result: what an experiment returned.
        stem: path of the files without their endings.
    """
    with style.use_own_style() as figure:
        result.plot(ax=figure)
        figure.savefig(stem.with_name(f"{stem.name}.png"), dpi=250)
        # A date would make every SVG differ from the last.
        figure.savefig(stem.with_name(f"{stem.name}.svg"), metadata={"Date": None})
