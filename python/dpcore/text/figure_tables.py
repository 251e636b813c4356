"""Base class of results that are tables, and functions that format and collect their rows."""

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
    """Base class of results that are printed as a table, followed by questions, answers and notes.

    A subclass defines the title `_title` and two methods. The method `_list_rows` returns the rows
    of the table, with the header first. The method `_list_notes` returns the notes. A subclass may
    also define the method `_questions_answers`, which returns pairs of a question and its answer.
    """

    __slots__ = ()

    _ROW_NAME: ClassVar[str] = "{}"
    """Format string that makes the name of a row from the first entries of the row."""
    _LEFT: ClassVar[tuple[int, ...]] = (0,)
    """Columns of the printed table that are left-aligned."""

    _list_rows: Callable[[], list[tuple[str, ...]]]
    _list_notes: Callable[[], list[str]]

    def _questions_answers(self) -> list[Row]:
        """Return pairs of a question and its answer, such as ("Is age inferred?", "no")."""
        return []

    def __str__(self) -> str:
        """Return the title, the table, the answers and the notes as text."""
        lines = [f"{question} {answer}" for question, answer in self._questions_answers()]
        lines += [f"note: {note}" for note in self._list_notes()]
        wrapped = [textwrap.fill(line, 110, subsequent_indent="  ") for line in lines]
        return "\n".join([self._title, align_rows(self._list_rows(), self._LEFT), *wrapped])

    def _lines(self) -> list[Row]:
        header, *rows = self._list_rows()
        names = self._ROW_NAME.count("{}")
        lines = self._questions_answers()
        for row in rows:
            figures = map(" ".join, zip(header[names:], row[names:], strict=True))
            lines.append((self._ROW_NAME.format(*row), ", ".join(figures)))
        return [*lines, *(("note", note) for note in self._list_notes())]


def format_number(value: float, digits: int, mark: str = "") -> str:
    """Format a number with `digits` decimals, and append the text `mark`. NaN becomes "-"."""
    return "-" if np.isnan(value) else f"{value:.{digits}f}{mark}"


def format_measured(figure: Measured, mark: str = "") -> tuple[str, str]:
    """Return two strings for a table: a measured value followed by `mark`, and its interval."""
    return f"{figure.value:.3f}{mark}", f"{figure.low:.2f}-{figure.high:.2f}"


def score_and_interval(attack: Inference | None) -> tuple[str, str]:
    """Return two strings for a table: the score of an attack, and the interval of the score.

    If the attack beats all baselines (guesses that do not use the vectors), "!" follows the score.
    Without a score, both strings are "-".
    """
    if attack is None:
        return "-", "-"
    return format_measured(attack.outcome.score[1], "!" if attack.above_floor else "")


def read_ascending(
    name: str, values: Any, read: Callable[[str, Any], Any], needs: tuple[str, str] = _ASCENDING
) -> list[Any]:
    """Check that an argument is a list of ascending numbers, and return the list.

    Args:
        name: name of the argument, for error messages.
        values: value of the argument.
        read: function `(name, value) -> number` that checks one number and returns it.
        needs: two texts for error messages. The first text states the required type of the
            argument. The second text states the required order of the numbers.
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise errors.mistyped(name, needs[0], values)
    levels = [read(f"{name}[{place}]", value) for place, value in enumerate(values)]
    if not levels or any(after <= before for before, after in pairwise(levels)):
        raise errors.invalid(name, needs[1], values)
    return levels


def collect_until_interrupt(items: Iterator[_Item]) -> tuple[list[_Item], bool]:
    """Collect items until the iterator ends or the user presses Ctrl-C.

    Returns:
        A pair. The first entry is the list of collected items. The second entry is True if Ctrl-C
        stopped the collection. If the user presses Ctrl-C before the first item, the function
        raises KeyboardInterrupt.
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


def style_panels_and_legend(picture: Any, panels: Sequence[Any], legend: Any = None) -> Figure:
    """Adjust the panels of a figure, add a legend below all panels, and return the figure.

    `legend` is the panel whose curves the legend lists. With None, the figure gets no legend.
    """
    for panel in panels:
        panel.title.set(fontsize="medium")
        drawing.hide_top_and_right_spines(panel)
    if legend is not None:
        entries = legend.get_legend_handles_labels()
        picture.legend(*entries, loc="outside lower center", ncols=4, frameon=False)
    return drawing.get_root_figure(picture)
