"""Functions that read outputs as rows of numbers, cut and compare rows, and freeze arrays."""

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
    """Base class of scores that are functions of cells, such as the bin of a number.

    Rounding does not move an output from cell to cell.
    """

    __slots__ = ()

    merged = True


def freeze_arrays(record: Any, *alike: str) -> None:
    """Replace the array fields of a frozen dataclass by read-only arrays.

    Array fields are the fields of the types `Floats`, `Ints`, `Words` and `Codes`.

    Args:
        record: the dataclass.
        *alike: names of fields that must be vectors of the same length.

    Raises:
        TypeError: if a field does not hold real numbers, or a field of `Words` or `Codes` does not
            hold integers.
        ValueError: if a field of an integer type holds numbers that this type cannot hold, or if
            the fields in `alike` are not vectors of the same length.
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
    """Return which floats are whole numbers with a magnitude below 2^53.

    Larger floats are not counted, because each of them is a whole number.
    """
    # In float16 the limit itself would overflow.
    rows = np.asarray(rows, np.float64)
    with np.errstate(invalid="ignore"):
        return np.asarray((np.abs(rows) < LARGEST_WHOLE) & (rows == np.rint(rows)))


def chunk_slices(
    rows: Array, most: int = _CACHED_NUMBERS, width: int | None = None
) -> Iterator[slice]:
    """Yield slices that divide rows into blocks small enough for the processor's cache.

    Args:
        rows: array of shape `(size, ...)`.
        most: largest number of numbers in a block. A block has at least one row.
        width: number of numbers in a row. Defaults to the second dimension of `rows`.
    """
    step = max(1, most // max(1, rows.shape[1] if width is None else width))
    for first in range(0, len(rows), step):
        yield slice(first, first + step)


def finite_values(*values: Array) -> Floats:
    """Return the finite values of all arrays together, sorted, as float64."""
    pooled = np.concatenate([side.astype(np.float64).ravel() for side in values])
    return np.sort(pooled[np.isfinite(pooled)])


def column_blocks(*sides: Array) -> Iterator[tuple[slice, list[Floats]]]:
    """Yield blocks of columns: a slice, and the values of its columns in each array.

    The values have shape `(columns, size)`. A block has at least one column.
    """
    step = max(1, SLICE_NUMBERS // max(1, *map(len, sides)))
    for first in range(0, sides[0].shape[1], step):
        part = slice(first, first + step)
        yield part, [np.ascontiguousarray(side[:, part].T, np.float64) for side in sides]


def count_values(values: Array, values_prime: Array) -> tuple[Array, Ints]:
    """Return the distinct values of two arrays, increasing, and their counts in each array.

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
    """Return outputs as rows of numbers, shape `(size, entries)`, or None for other dtypes."""
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
    """Return the outputs on x and on x' as rows of numbers, or None.

    The result is None in these cases: outputs are not numbers, outputs on x and on x' have
    different numbers of entries, or one of the arrays is empty.
    """
    rows, rows_prime = read_columns(outputs), read_columns(outputs_prime)
    if rows is None or rows_prime is None or rows.shape[1] != rows_prime.shape[1]:
        return None
    return (rows, rows_prime) if rows.size and rows_prime.size else None


def has_frequent_rows(rows: Array, rows_prime: Array) -> bool:
    """Return True if whole rows repeat so often that each distinct row can have its own score.

    Then a score of a product, sum or residue of the entries would add no information.

    Args:
        rows: pilot outputs on x as rows of numbers, shape `(size, entries)`.
        rows_prime: pilot outputs on x' in the same form.

    Returns:
        True if a distinct row occurs at least 8 times on average, in a sample of the first rows on
        x and on x'.
    """
    some = np.concatenate([rows[:_REPEAT_SAMPLE_ROWS], rows_prime[:_REPEAT_SAMPLE_ROWS]])
    few = some[:: max(1, len(some) // 64)]
    if len(few) > 8 and _count_distinct(few) == len(few):
        # No row repeats among 64 rows: it is not necessary to sort all of them.
        return False
    return _count_distinct(some) * _MIN_MEAN_REPEATS <= len(some)


def _count_distinct(rows: Array) -> int:
    """Count the rows whose bytes are distinct; -0.0 and 0.0 count as different."""
    rows = np.ascontiguousarray(rows)
    whole = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))
    return int(np.unique(whole).size)


def rank_columns(columns: Floats, columns_prime: Floats) -> list[int]:
    """Return column numbers, ordered by the difference between x and x', the largest first."""
    sides = columns[:_MAX_COMPARED_ROWS], columns_prime[:_MAX_COMPARED_ROWS]
    pooled = np.ascontiguousarray(np.concatenate(sides).T, np.float64)
    deviates = deviates_of(*_core.compare_columns(pooled, len(sides[0])))
    return [int(i) for i in np.argsort(-deviates, kind="stable")]


def chi_square_deviate(column: Floats, column_prime: Floats) -> float:
    """Compare a column on x and on x' with a chi-square test; return the normal deviate.

    The normal deviate has the same upper tail probability as the test statistic.
    """
    pooled = np.concatenate([column, column_prime], dtype=np.float64)
    return float(deviates_of(*_core.compare_columns(pooled[np.newaxis], column.size))[0])


def deviates_of(statistics: Floats, freedoms: Floats) -> Floats:
    """Return the normal deviates with the same upper tail probabilities as chi-square statistics.

    `freedoms` are the degrees of freedom. The deviate is minus infinity if they are 0.
    """
    from scipy.special import gammaincc, gammaln, ndtri_exp

    halves, points = freedoms / 2.0, statistics / 2.0
    tails = gammaincc(halves, points)
    # Far in the tail the probability is 0 in a double, but its logarithm is finite.
    with np.errstate(divide="ignore", invalid="ignore"):
        far = (halves - 1.0) * np.log(points) - points - gammaln(halves)
        logarithms = np.where(tails < 1e-280, far, np.log(tails))
    return np.where(freedoms > 0.0, -ndtri_exp(logarithms), -np.inf)
