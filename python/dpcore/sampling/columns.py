"""Columns of outputs: tables of values to be compared row by row, columns that number the rows.

A column that numbers the rows differs between the sides whatever the mechanism does, and no bound
can see it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import about
from ..events.event import Held
from ..records import Array

MOST_COLUMNS: Final = 4
"""Columns whose order is looked at. The event's hits stand for whatever it reads."""

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

_COLUMN_HINT: Final = "column=NAME chooses the columns of a file or a frame"


def split_by_kind(outputs: Array) -> list[Array]:
    """Split the outputs into tables, one for each kind of value.

    Args:
        outputs: outputs of any dtype, shape `(size, ...)`.

    Returns:
        Tables of shape `(size, columns)`: of real numbers, strings or objects. Complex numbers
        are two tables, structures one or more for each field.
    """
    if outputs.dtype.names is not None:
        return [part for name in outputs.dtype.names for part in split_by_kind(outputs[name])]
    if outputs.dtype.kind == "c":
        return [*split_by_kind(outputs.real), *split_by_kind(outputs.imag)]
    if outputs.dtype.kind in "mM":
        outputs = outputs.view(np.int64)
    # Not -1: rows may be empty.
    return [outputs.reshape(len(outputs), int(np.prod(outputs.shape[1:])))]


def entries_equal(first: Array, second: Array) -> npt.NDArray[np.bool_]:
    """Return a mask of equal entries of two arrays, NaN equal to NaN.

    All entries are False if the arrays cannot be compared.
    """
    try:
        same = np.asarray(first == second)
        if first.dtype.kind in "fO":
            same = same | (np.asarray(first != first) & np.asarray(second != second))
        same = same.astype(np.bool_, copy=False)
    except Exception:
        # Objects answer as they please: arrays entry by entry, some not at all.
        same = np.zeros(0, np.bool_)
    return same if same.shape == first.shape else np.zeros(first.shape, np.bool_)


def list_sequences(outputs: Array) -> tuple[list[npt.NDArray[np.float64]], npt.NDArray[np.intp]]:
    """Make rank scores and codes by which the order of rows can be tested.

    Args:
        outputs: outputs of any dtype, shape `(size, ...)`.

    Returns:
        For at most `MOST_COLUMNS` columns the rank of each row, as a share of the rows (ties have
        the mean of theirs; of what has no order, 1 for the commonest value and 0 for others); and
        a number for each row, the same where these columns are.
    """
    columns = [
        table[:, place]
        for table in split_by_kind(outputs)
        for place in _spread_columns(table.shape[1])
    ]
    if len(columns) > MOST_COLUMNS:
        columns = [columns[place] for place in _spread_columns(len(columns))]
    scores, whole = [], np.zeros(len(outputs), np.intp)
    for number, column in enumerate(columns):
        codes, counts, ordered = _code_column(column)
        if ordered:
            ranks = ((np.cumsum(counts) - 0.5 * (counts + 1)) / len(column))[codes]
        else:
            ranks = (codes == int(np.argmax(counts))).astype(np.float64)
        scores.append(ranks)
        whole = codes if number == 0 else _pair_codes(whole, codes)
    return scores, whole


def few_columns(outputs: Array | Held) -> Array:
    """Return the compared columns of held outputs as an array; return an array unchanged."""
    if not isinstance(outputs, Held):
        return outputs
    return outputs.columns(_spread_columns(int(np.prod(outputs.shape[1:]))))


def _spread_columns(columns: int) -> list[int]:
    """Choose at most `MOST_COLUMNS` places, the first and the last among them."""
    few = min(columns, MOST_COLUMNS)
    return [place * (columns - 1) // max(1, few - 1) for place in range(few)]


def _code_column(column: Array) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], bool]:
    """Code each value by a number; return codes, counts, and True if the values have an order."""
    if column.dtype.kind == "O":
        numbers: dict[Any, int] = {}
        codes = np.array(
            [numbers.setdefault(_object_key(v), len(numbers)) for v in column], np.intp
        )
        return codes, np.bincount(codes, minlength=1), False
    found, codes, counts = np.unique(column, return_inverse=True, return_counts=True)
    codes = codes.reshape(-1)
    if found.dtype.kind == "f" and found.size > 1:
        # What differs by rounding is one value: that may change with the call.
        values = np.cumsum(
            np.append(0, ~_entries_near(found[:-1], found[1:], rounding_of_format(found.dtype)))
        )
        codes, counts = values[codes], np.bincount(values, weights=counts).astype(np.intp)
    return codes, counts, found.dtype.kind in "buif"


def rounding_of_format(format: np.dtype[Any]) -> float:
    """Compute the relative difference that a repeated computation may show in its format.

    54 last places of float32, 8,192 of float64: as many as sums in another order show.
    """
    slack: float = float(np.finfo(format).eps) ** 0.75
    return slack


def _entries_near(first: Array, second: Array, slack: float) -> npt.NDArray[np.bool_]:
    with np.errstate(all="ignore"):
        near = np.abs(first - second) <= slack * np.maximum(np.abs(first), np.abs(second))
    same: npt.NDArray[np.bool_] = near & np.isfinite(first) & np.isfinite(second)
    return same


def entries_differ(first: Array, second: Array, slack: float | None) -> npt.NDArray[np.bool_]:
    """Return a mask of entries that differ by more than rounding.

    Args:
        first: values of one kind.
        second: as many.
        slack: relative difference that says nothing; None is that of `rounding_of_format`.
    """
    apart = ~entries_equal(first, second)
    if first.dtype.kind != "f" or second.dtype.kind != "f" or not apart.any():
        return apart
    if slack is None:
        slack = max(rounding_of_format(first.dtype), rounding_of_format(second.dtype))
    different: npt.NDArray[np.bool_] = apart & ~_entries_near(first, second, slack)
    return different


def _object_key(value: Any) -> Any:
    """Return a key for an object in a table: itself, "nan" for every NaN, a list's text."""
    try:
        hash(value)
        return "nan" if isinstance(value, float) and value != value else value
    except Exception:
        try:
            return repr(value)
        except Exception:
            return id(value)


def _pair_codes(first: npt.NDArray[np.intp], second: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    both = first * (int(second.max(initial=0)) + 1) + second
    codes: npt.NDArray[np.intp] = np.unique(both, return_inverse=True)[1].reshape(-1)
    return codes


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
