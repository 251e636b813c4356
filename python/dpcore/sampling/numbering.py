"""Columns of outputs that number their rows, or show when a row was written.

Such a column differs between the sides whatever the mechanism does, and no bound can see it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ..errors import about
from ..records import Array

FEWEST_NUMBERED_ROWS: Final = 60
"""Rows from which whole numbers can be a numbering: of fewer, independent draws may be one."""

_MAX_NUMBERING_RANGE: Final = 1.1
"""Range of a numbering, in units of its rows, at most. Of n independent uniform draws from 1.1 n
values all differ with probability below 1e-15 at 60 rows."""

_MIN_CLOCK_VALUES: Final = 20
"""Different values of a clock, at least."""

_NUMBER_PATTERN: Final = re.compile(r"-?\d+")
_MAX_NUMBERS_PER_TEXT: Final = 8
"""Numbers written in a text that are read, from its start."""

_MAX_LISTED_COLUMNS: Final = 4096
"""Columns that are read; independent draws of as many have no numbering among them either."""


def is_numbering(values: Array) -> bool:
    """Return True if numbers are all different whole numbers of a narrow range, in any order.

    Example:
        >>> is_numbering(np.random.default_rng(1).permutation(100) + 5)
        True
        >>> is_numbering(np.random.default_rng(1).integers(0, 110, 100))
        False
    """
    if len(values) < FEWEST_NUMBERED_ROWS or values.ndim != 1 or values.dtype.kind not in "uif":
        return False
    if values.dtype.kind == "f" and not (np.isfinite(values) & (np.rint(values) == values)).all():
        return False
    span = float(values.max()) - float(values.min())
    return span < _MAX_NUMBERING_RANGE * len(values) and len(np.unique(values)) == len(values)


_COLUMN_HINT: Final = "column=NAME chooses the columns of a file or a frame"


def refuse_row_numbers(rows: Array, name: str, titles: Sequence[str] = ()) -> None:
    """Raise an error if a column numbers the rows.

    Args:
        rows: outputs of one side, shape `(size, ...)`.
        name: what messages call them.
        titles: what messages call their columns, where these have names.

    Raises:
        ValueError: if there is such a column, or a number with this property in all texts.
    """
    for place, values in list_columns(rows, titles):
        if is_numbering(values):
            what = f"{place} of {name}" if place else name
            text = f"{what} numbers the rows: leave it out ({_COLUMN_HINT})"
            raise about(ValueError(text), "column", column="NAME")


def refuse_clocks(sides: tuple[Array, Array], titles: Sequence[str] = ()) -> None:
    """Raise an error if a column never falls on either side and one side follows the other.

    Args:
        sides: outputs on x and on x', each in the order in which they were recorded.
        titles: what messages call their columns, where these have names.

    Raises:
        ValueError: if there is such a column, of 20 different values or more.
    """
    columns = (dict(list_columns(side, titles)) for side in sides)
    first, second = columns
    for place in [place for place in first if place in second]:
        if _is_clock(first[place], second[place]):
            what = f"{place or 'column 0'} of outputs"
            text = f"{what} shows when a row was written: leave it out ({_COLUMN_HINT})"
            raise about(ValueError(text), "column", column="NAME")


def _is_clock(one: Array, other: Array) -> bool:
    try:
        rises = all(bool((side[1:] >= side[:-1]).all()) for side in (one, other))
        apart = one[-1] < other[0] or other[-1] < one[0]
    except TypeError:
        # Values of several kinds have no order.
        return False
    return (
        rises and bool(apart) and len(np.unique(np.concatenate([one, other]))) >= _MIN_CLOCK_VALUES
    )


def list_columns(rows: Array, titles: Sequence[str] = ()) -> Iterator[tuple[str, Array]]:
    """Yield the columns of rows with their names: entries, members, and numbers in texts."""
    if rows.dtype.names is not None:
        for name in rows.dtype.names:
            yield f"field {name!r}", rows[name]
    elif rows.dtype == object and rows.ndim == 1:
        yield from _list_members(rows.tolist())
    else:
        flat = rows.reshape(len(rows), -1)
        for place in range(min(_MAX_LISTED_COLUMNS, flat.shape[1])):
            alone = "" if rows.ndim == 1 else f"column {place}"
            title = titles[place] if len(titles) == flat.shape[1] else alone
            column = flat[:, place]
            if column.dtype == object:
                is_number = all(isinstance(one, (int, float)) for one in column)
                column = column.astype(np.float64 if is_number else str)
            yield title, column
            if column.dtype.kind in "US":
                yield from _list_written(column.tolist(), f" of {title}" if title else "")


def _list_members(items: list[Any]) -> Iterator[tuple[str, Array]]:
    """Yield the values of all objects at a place or a key, if they are numbers or texts."""
    if all(isinstance(one, (str, bytes)) for one in items):
        yield from _list_written(items, "")
        return
    keys: list[Any] = []
    if all(isinstance(one, Mapping) for one in items):
        keys = [key for key in items[0] if all(key in one for one in items)]
    elif all(isinstance(one, (list, tuple, np.ndarray)) for one in items):
        keys = list(range(min(map(len, items))))
    for key in keys[:_MAX_LISTED_COLUMNS]:
        values = [one[key] for one in items]
        name = f"place {key}" if isinstance(key, int) else f"key {key!r}"
        if all(isinstance(one, (int, float, np.number)) for one in values):
            yield name, np.array(values)
        elif all(isinstance(one, str) for one in values):
            yield from _list_written(values, f" of {name}")


def _list_written(texts: list[Any], of: str) -> Iterator[tuple[str, Array]]:
    """Yield the numbers that are written in all texts, from their start."""
    if len(texts) < FEWEST_NUMBERED_ROWS:
        return
    decoded = (one.decode("latin-1") if isinstance(one, bytes) else one for one in texts)
    found = [_NUMBER_PATTERN.findall(one)[:_MAX_NUMBERS_PER_TEXT] for one in decoded]
    for place in range(min(map(len, found))):
        # Longer numbers are no numbering, and no int64.
        if all(len(one[place]) <= 15 for one in found):
            yield f"number {place}{of}", np.array([int(one[place]) for one in found])
