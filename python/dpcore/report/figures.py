"""Figures of reports: canvas, style, and saving.

If a user calls `plot()`, the figure is made with pyplot. It has the size, fonts, background and
colour cycle of the current style of matplotlib. Pages, experiments and the command line make
figures without pyplot, in a fixed style of dpcore (`use_own_style`).
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..errors import invalid, mistyped
from ..paths import write_file_or_keep_old
from ..visible import make_visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Palette of Okabe and Ito, whose colours can be distinguished with any colour vision.
INK, BLUE, GREEN, RED, GREY = "#222222", "#0072B2", "#009E73", "#D55E00", "#6A6A6A"
PURPLE, ORANGE, SKY = "#CC79A7", "#E69F00", "#56B4E9"
# Background, and a shade of it. They differ from white, which a style may use for its text.
WHITE, PALE = "#FEFEFE", "#E8E8E8"

_COLOUR_CYCLE: Final = (BLUE, RED, GREEN, PURPLE, ORANGE, SKY)
"""Colour cycle of dpcore. `restyle_figure` replaces these colours by those of the current cycle."""


@contextmanager
def use_own_style(letters: str = "path") -> Iterator[Figure]:
    """Return a context manager that sets the plot style of dpcore and yields an empty figure.

    The figure is not registered in pyplot. The pictures do not depend on the matplotlib settings of
    the user.

    Args:
        letters: "path" draws the text in SVG files as paths, "none" keeps the text as text.
    """
    import matplotlib
    from cycler import cycler
    from matplotlib.figure import Figure

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(
            {"axes.prop_cycle": cycler(color=_COLOUR_CYCLE), "text.color": INK}
        )
        # Random element names would make every SVG differ from the previous one.
        matplotlib.rcParams.update({"svg.fonttype": letters, "svg.hashsalt": "dpcore"})
        yield Figure(layout="constrained")


def save_picture(figure: Figure, path: Any, name: str = "path", **options: Any) -> None:
    """Save a figure to a file. The ending of the path determines the format, such as ".svg".

    If an error occurs, no incomplete file is left, and an existing file is not changed.
    """
    content = io.BytesIO()
    ending = Path(path).suffix.removeprefix(".").lower()
    show_hidden_characters(figure).savefig(content, format=ending, **options)
    write_file_or_keep_old(path, content.getvalue(), name)


def show_hidden_characters(figure: Figure) -> Figure:
    """Replace hidden characters in a figure's texts, except line breaks, by visible codes."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        if not (words := text.get_text()).isprintable():
            text.set_text(make_visible(words, "\n"))
    return figure


def scale_figure_size(width_factor: float, height_factor: float) -> tuple[float, float]:
    """Multiply the figure size of the current matplotlib style (in inches) by two factors."""
    from matplotlib import rcParams

    wide, high = rcParams["figure.figsize"]
    return width_factor * wide, height_factor * high


def panel_figure(ax: Any, size: tuple[float, float]) -> Figure:
    """Return the figure or subfigure on which a picture of several panels will be drawn.

    Args:
        ax: where to draw. None makes a new pyplot figure. A figure is used as it is. Axes that
            `plt.subplots` made are removed, and a subfigure is made in their place.
        size: width and height in inches of a figure that is new or empty.

    Returns:
        A figure or a subfigure.

    Raises:
        TypeError: if `ax` is neither None nor axes nor a figure.
        ValueError: if `ax` is axes that are not subplots.
    """
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, FigureBase

    if ax is None:
        import matplotlib.pyplot as pyplot

        figure = pyplot.figure(figsize=size, layout="constrained")
        _prevent_second_display(figure)
        return figure
    if isinstance(ax, (Axes, FigureBase)):
        _prevent_second_display(get_root_figure(ax.figure or ax))
    if isinstance(ax, FigureBase):
        if isinstance(ax, Figure) and not ax.axes:
            ax.set_size_inches(size)
        return ax  # type: ignore[return-value]
    if not isinstance(ax, Axes):
        raise mistyped("ax", "axes or a figure of matplotlib", ax)
    place, around = ax.get_subplotspec(), ax.figure
    if place is None:
        raise invalid("ax", "axes that plt.subplots made, for a picture of several panels", ax)
    ax.remove()
    if get_root_figure(around).get_layout_engine() is None:
        get_root_figure(around).set_layout_engine("constrained")
    part: Any = around.add_subfigure(place)
    part.set_facecolor("none")
    return part  # type: ignore[no-any-return]


def axes_of(ax: Any, size: tuple[float, float]) -> Axes:
    """Return the axes on which a picture of one panel will be drawn.

    If `ax` is axes, these axes are returned. If `ax` is a figure, new axes are made on this figure.
    If `ax` is None, new axes are made on a new pyplot figure of the given size in inches.
    """
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        return panel_figure(ax, size).subplots()
    _prevent_second_display(get_root_figure(ax.figure))
    return ax


def _prevent_second_display(figure: Figure) -> None:
    """Prevent a notebook from showing a figure twice if the figure is the value of a cell."""
    figure._ipython_display_ = partial(_close_before_display, figure)  # type: ignore[attr-defined]


def _close_before_display(figure: Figure) -> None:
    """Close a figure in pyplot before IPython shows it.

    The inline backend of matplotlib would show an open figure a second time.
    """
    import matplotlib

    if "inline" in matplotlib.get_backend():
        import matplotlib.pyplot as pyplot

        pyplot.close(figure)
    raise NotImplementedError("shown like any other figure")


def cycle_colour(place: int) -> Any:
    """Return the colour at position `place` (from 0) in the colour cycle of matplotlib's style."""
    from matplotlib import rcParams

    cycle = rcParams["axes.prop_cycle"].by_key().get("color", _COLOUR_CYCLE)
    return cycle[place % len(cycle)]


def text_colour() -> Any:
    """Return the text colour of the current matplotlib style."""
    from matplotlib import rcParams

    return rcParams["text.color"]


def background_box(axes: Axes) -> dict[str, Any]:
    """Return matplotlib properties of a text box that hides the lines behind the text."""
    return {"facecolor": axes.get_facecolor(), "edgecolor": "none", "pad": 1.0, "alpha": 0.8}


def hide_top_and_right_spines(axes: Axes) -> None:
    """Hide the top line and the right line of the frame of the axes."""
    axes.spines[["top", "right"]].set_visible(False)


def restyle_figure(picture: Figure) -> Figure:
    """Replace the colours of dpcore in a picture by the colours of the current matplotlib style.

    Pictures with many parts are first drawn in the colours of dpcore. Each colour of dpcore is then
    replaced by the colour at the same position in the current colour cycle. `INK` becomes the text
    colour, and `WHITE` becomes the background colour.

    Returns:
        The whole figure that contains the picture.
    """
    from matplotlib import rcParams
    from matplotlib.colors import to_rgb, to_rgba

    plain = {name: to_rgba(cycle_colour(place)) for place, name in enumerate(_COLOUR_CYCLE)}
    plain |= {WHITE: to_rgba(rcParams["axes.facecolor"]), INK: to_rgba(text_colour())}
    letters, white = plain[INK], plain[WHITE]
    for name, part in ((GREY, 0.65), (PALE, 0.1)):
        mixed = [part * a + (1.0 - part) * b for a, b in zip(letters, white, strict=True)]
        plain[name] = to_rgba(mixed)  # type: ignore[arg-type]
    colours = {to_rgb(name): rgba for name, rgba in plain.items()}

    def meant(colour: Any) -> Any:
        rgba = to_rgba(colour)
        new = colours.get(rgba[:3])
        return colour if new is None or rgba[3] == 0.0 else (*new[:3], rgba[3] * new[3])

    for artist in picture.findobj(include_self=False):
        _recolour_artist(artist, meant)
    return get_root_figure(picture)


def get_root_figure(picture: Any) -> Figure:
    """Return the figure that contains a subfigure. For a figure, return the figure itself."""
    root: Any = picture.figure
    return picture if root is None or root is picture else get_root_figure(root)


def _recolour_artist(artist: Any, new_colour_of: Any) -> None:
    """Replace the colours of one matplotlib artist by those that `new_colour_of` returns."""
    from matplotlib.collections import Collection
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.text import Annotation, Text

    names: tuple[str, ...] = ()
    if isinstance(artist, Line2D):
        names = "color", "markerfacecolor", "markeredgecolor"
    elif isinstance(artist, Text):
        names = ("color",)
        arrow = artist.arrow_patch if isinstance(artist, Annotation) else None
        for part in filter(None, (artist.get_bbox_patch(), arrow)):
            _recolour_artist(part, new_colour_of)
    elif isinstance(artist, Patch):
        names = "facecolor", "edgecolor"
    elif isinstance(artist, Collection):
        artist.set_facecolor([new_colour_of(colour) for colour in artist.get_facecolor()])
        artist.set_edgecolor([new_colour_of(colour) for colour in artist.get_edgecolor()])
    for name in names:
        old = getattr(artist, f"get_{name}")()
        if not isinstance(old, str) or old not in ("none", "auto"):
            new = new_colour_of(old)
            if new is not old:
                getattr(artist, f"set_{name}")(new)


def finish_axes(axes: Axes, title: str) -> Figure:
    """Add a title to axes, hide their top and right frame lines, and return the whole figure."""
    axes.set_title(title, loc="left", fontsize="medium")
    hide_top_and_right_spines(axes)
    return get_root_figure(axes.figure)


def two_line_title(name: str, verdict: str) -> str:
    """Return the title of an audit's picture: one line with the name, one with the verdict."""
    # A pair of dollar signs would be read as mathematics.
    name = make_visible(name).replace("$", r"\$")
    return f"{name if len(name) <= 60 else f'{name[:57]}...'}\n{verdict}"


def annotate_point(
    axes: Axes, words: str, point: tuple[float, float], offset: tuple[int, int], **style: Any
) -> None:
    """Write text at a position in the axes, shifted by `offset` (in units of 1/72 inch)."""
    axes.annotate(words, point, offset, textcoords="offset points", **style)
