"""Makes the thumbnails of the gallery: the first panel of each script, drawn in a small size."""

from __future__ import annotations

import shutil
import textwrap
from pathlib import Path
from typing import Any

__all__ = ["GROUPS", "ScriptOrder", "draw_small", "replace_thumbnails", "save_figures"]

GROUPS = ("code", "files", "training", "texts", "explain")
"""Folders of examples/, in the order of the gallery."""

_FIRST_SCRIPT = "plot_first_audit.py"
"""Script with which its group begins."""

_SIZE = (4.0, 2.8)
"""Width and height of a thumbnail, in inches at 100 dots per inch: what the gallery shows."""

_FONT_SIZE = 9.0
"""Size of all letters, in points."""

_MAX_LEGEND_LINES = 3
"""Longest legend that leaves enough of the curves visible."""

_MAX_LABEL_LETTERS = 28
"""Length at which the label of an axis is broken into lines."""


class ScriptOrder:
    """Order of the scripts in a group of the gallery: by title, after the first audit."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)

    def __call__(self, name: str) -> tuple[bool, str]:
        """Return the sort key of a script. The line above the first ===== is its title."""
        text = (self.folder / name).read_text("utf-8")
        return name != _FIRST_SCRIPT, text.split("\n===", 1)[0].rsplit("\n", 1)[1]


def save_figures(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the open figures for the page, then the first panel of the script's first figure."""
    import matplotlib.pyplot as plt
    from sphinx_gallery.scrapers import matplotlib_scraper

    figures = [plt.figure(number) for number in plt.get_fignums()]
    page = str(matplotlib_scraper(block, block_vars, gallery_conf))
    place = _small_picture(Path(block_vars["src_file"]), Path(gallery_conf["src_dir"]))
    if figures and block_vars["target_file"] not in _DRAWN:
        _DRAWN.add(block_vars["target_file"])
        place.parent.mkdir(parents=True, exist_ok=True)
        draw_small(figures[0], place)
    return page


_DRAWN: set[str] = set()
"""Scripts whose small picture this build has drawn."""


def draw_small(figure: Any, place: Path) -> None:
    """Draw a figure's first panel again, in the size and with the letters of a thumbnail.

    Args:
        figure: figure of matplotlib, which is changed.
        place: file of the picture.
    """
    from matplotlib.gridspec import GridSpec

    first, *others = figure.axes
    for panel in others:
        panel.remove()
    # A figure with one label for all panels has it among its texts, which are removed.
    shared = {"x": figure.get_supxlabel(), "y": figure.get_supylabel()}
    for note in [*figure.texts, *figure.legends]:
        note.remove()
    figure.suptitle("")
    figure.set_size_inches(*_SIZE)
    first.set_subplotspec(GridSpec(1, 1, figure=figure)[0])
    for side in ("left", "center", "right"):
        first.set_title("", loc=side)
    for name, axis in (("x", first.xaxis), ("y", first.yaxis)):
        text = axis.get_label_text() or shared[name]
        axis.set_label_text(textwrap.fill(text, _MAX_LABEL_LETTERS), fontsize=_FONT_SIZE)
        axis.set_tick_params(which="major", labelsize=_FONT_SIZE)
    figure.set_layout_engine("tight")
    legend = first.get_legend()
    if legend is not None:
        for text in legend.get_texts():
            text.set_fontsize(_FONT_SIZE)
        legend.set(frame_on=True)
        legend.get_frame().set(alpha=0.8, edgecolor="none")
        figure.draw_without_rendering()
        width = first.get_window_extent().width
        if len(legend.get_texts()) > _MAX_LEGEND_LINES or legend.get_window_extent().width > width:
            legend.remove()
    figure.savefig(place, dpi=100)


def replace_thumbnails(app: Any) -> None:
    """Put the small pictures in the place of the page's pictures, which the gallery has shrunk."""
    source = Path(app.srcdir)
    for script in (source / "../examples").resolve().rglob("plot_*.py"):
        small = _small_picture(script, source)
        folder = source / "gallery" / script.parent.name / "images" / "thumb"
        thumbnail = folder / f"sphx_glr_{script.stem}_thumb.png"
        if small.exists() and thumbnail.exists():
            shutil.copyfile(small, thumbnail)


def _small_picture(script: Path, source: Path) -> Path:
    """Return the file of a script's small picture, which lies with what the build writes."""
    return source / "gallery" / "small" / f"{script.stem}.png"
