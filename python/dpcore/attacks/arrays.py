"""Outputs as rows of numbers: how to read, cut and compare them, and to freeze arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import invalid, mistyped
from ..records import Array, Flags, Floats, Ints, Record, frozen_array

Places = npt.NDArray[np.intp]
Words = npt.NDArray[np.uint64]

_DTYPES_BY_ALIAS: Final[dict[str, Any]] = {
    "Floats": np.float64,
    "Ints": np.int64,
    "Words": np.uint64,
    "Codes": np.uint32,
}
LARGEST_WHOLE: Final = 2.0**53
_CACHED_NUMBERS: Final = 2**17
"""Numbers that fit into the cache."""
SLICE_NUMBERS: Final = 2**18
"""Numbers in a slice of columns; a slice is copied before it is sorted or converted."""
_MAX_COMPARED_ROWS: Final = 2**13
"""Rows of each side that are used to rank columns."""
_REPEAT_SAMPLE_ROWS: Final = 2**13
_MIN_MEAN_REPEATS: Final = 8


class Merged(Record):
    """A score that is a function of cells; the cells already allow for rounding."""

    __slots__ = ()

    merged = True


def freeze_arrays(record: Any, *alike: str) -> None:
    """Replace the array fields of a frozen dataclass by read-only arrays.

    Array fields are the fields of the types `Floats`, `Ints`, `Words` and `Codes`.

    Args:
        record: the dataclass.
        *alike: names of fields that must be vectors of one length.

    Raises:
        TypeError: if a field does not hold real numbers, or a field of `Words` or `Codes` does not
            hold integers.
        ValueError: if an integer field holds values that are not whole numbers of its type, or
            vectors differ in length from the first.
    """
    for field in fields(record):
        if field.type in _DTYPES_BY_ALIAS:
            array = np.asarray(getattr(record, field.name))
            is_code = field.type in ("Words", "Codes")
            if array.size and array.dtype.kind not in ("iu" if is_code else "buif"):
                raise mistyped(field.name, "whole numbers" if is_code else "real numbers", array)
            with np.errstate(invalid="ignore"):
                values = np.asarray(array, _DTYPES_BY_ALIAS[field.type])
            if field.type != "Floats" and not (values == array).all():
                raise invalid(field.name, f"whole numbers that {values.dtype} holds", array)
            object.__setattr__(record, field.name, frozen_array(values))
    for name in alike:
        shape, first = getattr(record, name).shape, getattr(record, alike[0])
        if shape != (first.size,):
            raise invalid(name, f"of shape ({first.size},), as {alike[0]}", shape)


def whole_floats(rows: Array) -> Flags:
    """Return which floats are whole numbers below 2^53; above, all floats are whole."""
    # In float16 the limit itself would overflow.
    rows = np.asarray(rows, np.float64)
    with np.errstate(invalid="ignore"):
        return np.asarray((np.abs(rows) < LARGEST_WHOLE) & (rows == np.rint(rows)))


def chunk_slices(
    rows: Array, most: int = _CACHED_NUMBERS, width: int | None = None
) -> Iterator[slice]:
    """Cut rows into slices of about as many numbers as the cache holds.

    Args:
        rows: shape `(size, ...)`.
        most: numbers in a slice. A slice has at least one row.
        width: numbers in a row. Defaults to the second dimension.
    """
    step = max(1, most // max(1, rows.shape[1] if width is None else width))
    for first in range(0, len(rows), step):
        yield slice(first, first + step)


def finite_values(*values: Array) -> Floats:
    """Return all finite values, sorted, as float64."""
    pooled = np.concatenate([side.astype(np.float64).ravel() for side in values])
    return np.sort(pooled[np.isfinite(pooled)])


def column_blocks(*sides: Array) -> Iterator[tuple[slice, list[Floats]]]:
    """Yield slices of columns and their values on each side, shape `(columns, size)`.

    A slice has at least one column.
    """
    step = max(1, SLICE_NUMBERS // max(1, *map(len, sides)))
    for first in range(0, sides[0].shape[1], step):
        part = slice(first, first + step)
        yield part, [np.ascontiguousarray(side[:, part].T, np.float64) for side in sides]


def count_values(values: Array, values_prime: Array) -> tuple[Array, Ints]:
    """Return the distinct values of both sides, increasing, and their counts on each side.

    Example:
        >>> keys, counts = count_values(np.array([3, 1, 3]), np.array([2]))
        >>> keys.tolist(), counts.tolist()
        ([1, 2, 3], [[1, 0, 2], [0, 1, 0]])
    """
    each = [np.unique(side, return_counts=True) for side in (values, values_prime)]
    keys = np.union1d(each[0][0], each[1][0])
    counts = np.zeros((2, keys.size), dtype=np.int64)
    for row, (own, times) in zip(counts, each, strict=True):
        row[np.searchsorted(keys, own)] = times
    return keys, counts


def read_columns(outputs: Array) -> Array | None:
    """Return outputs as rows of numbers, shape `(size, entries)`, or None for other types."""
    outputs = np.asarray(outputs)
    if outputs.dtype.kind not in "buif" or outputs.ndim == 0:
        return None
    return outputs.reshape(len(outputs), int(np.prod(outputs.shape[1:])))


def read_numbers(outputs: Array, entries: int | None = None, least: int = 0) -> Array:
    """Return outputs as rows of numbers, shape `(size, entries)`.

    Raises:
        TypeError: if the outputs are not real numbers.
        ValueError: if the number of entries differs from `entries`, or is below `least`.
    """
    rows = read_columns(outputs)
    if rows is None:
        raise mistyped("outputs", "real numbers", np.asarray(outputs).dtype)
    if entries not in (None, rows.shape[1]) or rows.shape[1] < least:
        size = f"of at least {least} entries" if entries is None else f"of {entries} entries"
        raise invalid("outputs", size, rows.shape)
    return rows


def read_both_sides(outputs: Array, outputs_prime: Array) -> tuple[Array, Array] | None:
    """Return both sides as rows of numbers, or None unless both are numbers of equal width.

    It also returns None for a pilot without outputs or entries, which cannot be fitted.
    """
    rows, rows_prime = read_columns(outputs), read_columns(outputs_prime)
    if rows is None or rows_prime is None or rows.shape[1] != rows_prime.shape[1]:
        return None
    return (rows, rows_prime) if rows.size and rows_prime.size else None


def has_frequent_rows(rows: Array, rows_prime: Array) -> bool:
    """Return True if whole rows repeat so often that scores of patterns see each row.

    In that case a product, sum or residue of the entries adds no information to the pattern, and a
    score for it would only cost time.

    Args:
        rows: pilot outputs on x as rows of numbers, shape `(size, entries)`.
        rows_prime: the same on x'.

    Returns:
        True if, in the first rows of both sides, a distinct row occurs 8 times or more on average.
    """
    some = np.concatenate([rows[:_REPEAT_SAMPLE_ROWS], rows_prime[:_REPEAT_SAMPLE_ROWS]])
    few = some[:: max(1, len(some) // 64)]
    if len(few) > 8 and _count_distinct(few) == len(few):
        # No row repeats among 64 rows: it is not necessary to sort all of them.
        return False
    return _count_distinct(some) * _MIN_MEAN_REPEATS <= len(some)


def _count_distinct(rows: Array) -> int:
    """Count the distinct rows by their bytes. -0.0 and 0.0 differ, which is precise enough here."""
    rows = np.ascontiguousarray(rows)
    whole = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))
    return int(np.unique(whole).size)


def rank_columns(columns: Floats, columns_prime: Floats) -> list[int]:
    """Return the columns ordered by the difference between the sides, the largest first."""
    sides = columns[:_MAX_COMPARED_ROWS], columns_prime[:_MAX_COMPARED_ROWS]
    pooled = np.ascontiguousarray(np.concatenate(sides).T, np.float64)
    deviates = deviates_of(*_core.compare_columns(pooled, len(sides[0])))
    return [int(i) for i in np.argsort(-deviates, kind="stable")]


def chi_square_deviate(column: Floats, column_prime: Floats) -> float:
    """Return the normal deviate of a chi-square test of a column, whatever its number of bins."""
    pooled = np.concatenate([column, column_prime], dtype=np.float64)
    return float(deviates_of(*_core.compare_columns(pooled[np.newaxis], column.size))[0])


def deviates_of(statistics: Floats, freedoms: Floats) -> Floats:
    """Return normal deviates of chi-square statistics; minus infinity if `freedoms` is 0."""
    from scipy.special import gammaincc, gammaln, ndtri_exp

    halves, points = freedoms / 2.0, statistics / 2.0
    tails = gammaincc(halves, points)
    # Far in the tail the probability is 0 in a double, but its logarithm is finite.
    with np.errstate(divide="ignore", invalid="ignore"):
        far = (halves - 1.0) * np.log(points) - points - gammaln(halves)
        logarithms = np.where(tails < 1e-280, far, np.log(tails))
    return np.where(freedoms > 0.0, -ndtri_exp(logarithms), -np.inf)
