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
"""Number of array entries that fit into the processor cache."""
SLICE_NUMBERS: Final = 2**18
"""Approximate number of entries in a block of columns. A block is copied before it is sorted."""
_MAX_COMPARED_ROWS: Final = 2**13
"""Largest number of rows on x, and also on x', that are used to rank columns."""
_REPEAT_SAMPLE_ROWS: Final = 2**13
_MIN_MEAN_REPEATS: Final = 8


class Merged(Record):
    """Base class of scores whose value does not change if rounding errors change an output.

    For example, a score can depend only on the bins that contain the numbers of the output.
    """

    __slots__ = ()

    merged = True


def freeze_arrays(record: Any, *equal_length_fields: str) -> None:
    """Convert the array fields of a frozen dataclass to read-only arrays of the declared types.

    A field is converted if its type is `Floats`, `Ints`, `Words` or `Codes`.

    Args:
        record: the instance of the dataclass. Its fields are replaced in place.
        *equal_length_fields: names of fields that must be vectors of the same length.

    Raises:
        TypeError: if a field does not hold real numbers, or if a field of type `Words` or `Codes`
            does not hold integers.
        ValueError: if a field of an integer type holds numbers that this type cannot hold, or if
            the fields in `equal_length_fields` are not vectors of the same length.
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
    for name in equal_length_fields:
        shape, first = getattr(record, name).shape, getattr(record, equal_length_fields[0])
        if shape != (first.size,):
            raise invalid(name, f"of shape ({first.size},), as {equal_length_fields[0]}", shape)


def flag_integers_below_2_to_53(numbers: Array) -> Flags:
    """Return a bool for each number: True if it is an integer with a magnitude below 2^53."""
    # In float16 the limit itself would overflow.
    numbers = np.asarray(numbers, np.float64)
    with np.errstate(invalid="ignore"):
        return np.asarray((np.abs(numbers) < LARGEST_WHOLE) & (numbers == np.rint(numbers)))


def chunk_slices(
    rows: Array, most: int = _CACHED_NUMBERS, width: int | None = None
) -> Iterator[slice]:
    """Yield slices that divide the rows of an array into blocks that fit into the processor cache.

    Args:
        rows: array of shape `(size, ...)`. Each slice selects some of its rows.
        most: largest number of array entries in a block. A block always has at least one row.
        width: number of entries in one row. Defaults to `rows.shape[1]`.
    """
    step = max(1, most // max(1, rows.shape[1] if width is None else width))
    for first in range(0, len(rows), step):
        yield slice(first, first + step)


def sorted_finite_values(*values: Array) -> Floats:
    """Return one sorted float64 array of all finite values of the given arrays."""
    pooled = np.concatenate([side.astype(np.float64).ravel() for side in values])
    return np.sort(pooled[np.isfinite(pooled)])


def column_blocks(*sides: Array) -> Iterator[tuple[slice, list[Floats]]]:
    """Divide arrays into blocks of columns, and yield the slice and the values of each block.

    The slice selects the columns of the block. The values are a list with one array for each
    argument, of shape `(columns of the block, rows of the argument)`.
    """
    step = max(1, SLICE_NUMBERS // max(1, *map(len, sides)))
    for first in range(0, sides[0].shape[1], step):
        part = slice(first, first + step)
        yield part, [np.ascontiguousarray(side[:, part].T, np.float64) for side in sides]


def count_values(values: Array, values_prime: Array) -> tuple[Array, Ints]:
    """Return the distinct values of two arrays in increasing order, and their counts in each array.

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
    """Return outputs as an array of shape `(size, entries)`, or None if they are not numbers."""
    outputs = np.asarray(outputs)
    if outputs.dtype.kind not in "buif" or outputs.ndim == 0:
        return None
    return outputs.reshape(len(outputs), int(np.prod(outputs.shape[1:])))


def read_numbers(outputs: Array, entries: int | None = None, min_columns: int = 0) -> Array:
    """Return outputs as an array of real numbers, with one row per output: shape `(size, entries)`.

    Raises:
        TypeError: if the outputs are not real numbers.
        ValueError: if an output does not have `entries` entries, or has fewer entries than
            `min_columns`.
    """
    rows = read_columns(outputs)
    if rows is None:
        raise mistyped("outputs", "real numbers", np.asarray(outputs).dtype)
    if entries not in (None, rows.shape[1]) or rows.shape[1] < min_columns:
        size = f"of at least {min_columns} entries" if entries is None else f"of {entries} entries"
        raise invalid("outputs", size, rows.shape)
    return rows


def read_both_sides(outputs: Array, outputs_prime: Array) -> tuple[Array, Array] | None:
    """Return the outputs on x and the outputs on x' as arrays of shape `(size, entries)`, or None.

    The result is None if the outputs are not real numbers. It is also None if outputs on x and x'
    have different numbers of entries, or if one of the arrays is empty.
    """
    rows, rows_prime = read_columns(outputs), read_columns(outputs_prime)
    if rows is None or rows_prime is None or rows.shape[1] != rows_prime.shape[1]:
        return None
    return (rows, rows_prime) if rows.size and rows_prime.size else None


def has_few_distinct_rows(rows: Array, rows_prime: Array) -> bool:
    """Return True if outputs have so few distinct rows that each row can have its own score.

    In this case, scores of products, sums or residues of the entries would add no information.

    Args:
        rows: pilot outputs (first draws of an audit) on x, shape `(size, entries)`.
        rows_prime: pilot outputs on x', shape `(size', entries)`.

    Returns:
        True if each distinct row occurs at least 8 times on average. The average is taken over a
        sample: the first rows on x and the first rows on x'.
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
    """Sort the column indices: the column that differs most between x and x' comes first."""
    sides = columns[:_MAX_COMPARED_ROWS], columns_prime[:_MAX_COMPARED_ROWS]
    pooled = np.ascontiguousarray(np.concatenate(sides).T, np.float64)
    deviates = chi_square_deviates(*_core.compare_columns(pooled, len(sides[0])))
    return [int(i) for i in np.argsort(-deviates, kind="stable")]


def chi_square_deviate(column: Floats, column_prime: Floats) -> float:
    """Return a z-score that measures how much a column differs between x and x'.

    A chi-square test compares the values on x with the values on x'. The result is the normal
    quantile with the same upper tail probability as the test statistic.
    """
    pooled = np.concatenate([column, column_prime], dtype=np.float64)
    return float(chi_square_deviates(*_core.compare_columns(pooled[np.newaxis], column.size))[0])


def chi_square_deviates(chi_squares: Floats, freedoms: Floats) -> Floats:
    """Convert chi-square statistics to z-scores (normal deviates) with the same upper tail areas.

    `freedoms` are the degrees of freedom of the statistics. The deviate of a statistic with 0
    degrees of freedom is minus infinity.
    """
    from scipy.special import gammaincc, gammaln, ndtri_exp

    halves, points = freedoms / 2.0, chi_squares / 2.0
    tails = gammaincc(halves, points)
    # Far in the tail the probability is 0 in a double, but its logarithm is finite.
    with np.errstate(divide="ignore", invalid="ignore"):
        far = (halves - 1.0) * np.log(points) - points - gammaln(halves)
        logarithms = np.where(tails < 1e-280, far, np.log(tails))
    return np.where(freedoms > 0.0, -ndtri_exp(logarithms), -np.inf)
