"""Parts of the tables, the plain data and the pictures of all experiments."""

from __future__ import annotations

import statistics
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._core import __version__
from ..report import figures
from ..report.encoding import encode_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TEXT, SMALL = 8.0, 7.0
"""Text sizes in points: readable where the picture is printed at its own width."""

WIDTH = 7.2
"""Width of a picture in inches: the text width of a two-column page."""


def make_canvas(height: float, ax: Any = None) -> Figure:
    """Make an empty picture of the common width, `height` inches high, with automatic layout."""
    return figures.get_canvas(ax, (WIDTH, height))


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
    with figures.use_own_style() as figure:
        result.plot(ax=figure)
        figure.savefig(stem.with_name(f"{stem.name}.png"), dpi=250)
        # A date would make every SVG differ from the last.
        figure.savefig(stem.with_name(f"{stem.name}.svg"), metadata={"Date": None})


FORMAT = "dpcore.experiment/1"


def make_record_head(name: str, result: Any) -> dict[str, Any]:
    """Return the head of an experiment's JSON: format, name, version and configuration."""
    config = {f.name: encode_value(getattr(result.config, f.name)) for f in fields(result.config)}
    return {
        "format": FORMAT,
        "experiment": name,
        "version": __version__,
        "config": {**config, "seed": str(result.config.seed)},
        "partial": result.partial,
        "seconds": result.seconds,
    }


def encode_fields(cell: Any) -> dict[str, Any]:
    """Return the fields of a record as plain data, those of records inside too."""
    return {
        name: {key: encode_value(one) for key, one in value.items()}
        if isinstance(value, dict)
        else encode_value(value)
        for name, value in asdict(cell).items()
    }


def write_mean(values: Any, digits: int = 3) -> str:
    """Return a mean, and in brackets the standard deviation where there is one."""
    spread = f" ({statistics.stdev(values):.{digits}f})" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.{digits}f}{spread}"
