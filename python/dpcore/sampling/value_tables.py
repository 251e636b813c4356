"""Outputs of any kind as tables of values that can be compared, row by row."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..events.event import Held
from ..records import Array

MOST_COLUMNS: Final = 4
"""Columns whose order is looked at. The event's hits stand for whatever it reads."""


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
