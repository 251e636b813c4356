"""Tables of figures over levels: their reports, and how their levels are read and measured."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

import numpy as np

from .. import errors
from ..records import Result
from ..report import figures as drawing
from ..report.rows import Row, align_rows
from .inference import Inference, Measured

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_Item = TypeVar("_Item")
_ASCENDING: Final = "a list of numbers", "ascending, one at least"


class FigureTable(Result):
    """Base class of results that are a table, with answers to questions and notes.

    A subclass has `_title`, `_list_rows` (of the table, the header first) and `_list_notes`.
    """

    __slots__ = ()

    _ROW_NAME: ClassVar[str] = "{}"
    """Name of a row in the report, made from its first cells."""
    _LEFT: ClassVar[tuple[int, ...]] = (0,)
    """Columns of the printed table that are set flush left."""

    _list_rows: Callable[[], list[tuple[str, ...]]]
    _list_notes: Callable[[], list[str]]

    def _list_answers(self) -> list[Row]:
        """List the questions that the table answers, and the answers."""
        return []

    def __str__(self) -> str:
        """Return the table, the answers, and notes."""
        lines = [f"{question} {answer}" for question, answer in self._list_answers()]
        lines += [f"note: {note}" for note in self._list_notes()]
        wrapped = [textwrap.fill(line, 110, subsequent_indent="  ") for line in lines]
        return "\n".join([self._title, align_rows(self._list_rows(), self._LEFT), *wrapped])

    def _lines(self) -> list[Row]:
        header, *rows = self._list_rows()
        names = self._ROW_NAME.count("{}")
        lines = self._list_answers()
        for row in rows:
            figures = map(" ".join, zip(header[names:], row[names:], strict=True))
            lines.append((self._ROW_NAME.format(*row), ", ".join(figures)))
        return [*lines, *(("note", note) for note in self._list_notes())]


def format_number(value: float, digits: int, mark: str = "") -> str:
    """Format a figure of a table; a dash stands for NaN."""
    return "-" if np.isnan(value) else f"{value:.{digits}f}{mark}"


def format_measured(figure: Measured, mark: str = "") -> tuple[str, str]:
    """Format a figure and its interval for two columns of a table."""
    return f"{figure.value:.3f}{mark}", f"{figure.low:.2f}-{figure.high:.2f}"


def format_attack(attack: Inference | None) -> tuple[str, str]:
    """Format the score of an attack for two columns; an exclamation mark is "above the floor"."""
    if attack is None:
        return "-", "-"
    return format_measured(attack.outcome.score[1], "!" if attack.above_floor else "")


def read_ascending(
    name: str, values: Any, read: Callable[[str, Any], Any], needs: tuple[str, str] = _ASCENDING
) -> list[Any]:
    """Read an argument that holds ascending numbers.

    Args:
        name: of the argument.
        values: what was passed.
        read: check of one number, by its name and value.
        needs: requirements on the type and on the numbers.
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise errors.mistyped(name, needs[0], values)
    levels = [read(f"{name}[{place}]", value) for place, value in enumerate(values)]
    if not levels or any(after <= before for before, after in pairwise(levels)):
        raise errors.invalid(name, needs[1], values)
    return levels


def collect_until_interrupt(items: Iterator[_Item]) -> tuple[list[_Item], bool]:
    """Collect items up to Ctrl-C, which propagates before the first item.

    Returns:
        The items, and True if Ctrl-C came.
    """
    collected = list[_Item]()
    try:
        for item in items:
            collected.append(item)
    except KeyboardInterrupt:
        if not collected:
            raise
        return collected, True
    return collected, False


def finish_panels(picture: Any, panels: Sequence[Any], legend: Any = None) -> Figure:
    """Thin the axes of a picture, and add the legend of one panel below all; return the figure."""
    for panel in panels:
        panel.title.set(fontsize="medium")
        drawing.thin_axes(panel)
    if legend is not None:
        entries = legend.get_legend_handles_labels()
        picture.legend(*entries, loc="outside lower center", ncols=4, frameon=False)
    return drawing.get_whole_figure(picture)
