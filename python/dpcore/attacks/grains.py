"""Estimates of the distance by which rounding may have moved the numbers of a column.

Two computations of the same real number can give floats that differ in their last places. The input
can determine which of the two computations the code uses. A `Tolerance` is the distance within
which two numbers of a column may be the same real number. This distance depends on the format to
which the column was rounded and on the magnitude of the number. For a sum that is close to 0, the
distance depends on the magnitude of the terms. Numbers that were never rounded (integers, multiples
of a fixed step) are different at any distance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .. import _core
from ..events.event import LARGEST, noted_format_significant_bits
from ..records import Array, Floats, Ints
from .arrays import SLICE_NUMBERS, Places, chunk_slices

PLACES: Final = 8.0
"""Assumed largest difference of two computations of one number, in units in the last place."""
_FLOAT64_BITS: Final = 53
_FORMAT_SAMPLE_NUMBERS: Final = 2**18
_FORMAT_SAMPLE_ROWS: Final = (512, 4096)
"""Smallest and largest number of rows, on x and also on x', that show the format of a column."""
THREADS: Final = ContextVar("threads", default=1)
"""Number of threads that estimate rounding tolerances (see `use_tolerance_threads`)."""
SAME, NEAR, APART = 0, 1, 2
"""The three kinds of differences between neighbouring values (see `classify_gaps`)."""


@contextmanager
def use_tolerance_threads(threads: int) -> Iterator[None]:
    """Return a context manager that sets how many threads estimate rounding tolerances.

    The estimates do not depend on the number of threads.
    """
    token = THREADS.set(threads)
    try:
        yield
    finally:
        THREADS.reset(token)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The rounding tolerance of a column: how far rounding may move one of its numbers.

    Args:
        bits: number of significant bits of the floating-point format of the column. 0 if the
            numbers were never rounded.
        middle: median magnitude of the nonzero numbers of the column. A smaller number gets the
            tolerance of a number of this magnitude: if the small number is a sum of large terms, it
            has the rounding error of these terms.
        absolute: distance that is added to the tolerance of every number, in the units of the
            column.
    """

    bits: int
    middle: float = 0.0
    absolute: float = 0.0

    @property
    def exact(self) -> bool:
        """True if the numbers of the column were never rounded, so that their tolerance is 0."""
        return self.bits == 0 and self.absolute == 0.0

    def tolerances(self, values: Any) -> Any:
        """Return the rounding tolerance of each given number of the column, in the same shape."""
        size = np.maximum(np.abs(values), self.middle)
        if self.bits == 0:
            return np.full_like(size, self.absolute)
        last = _float64_spacing(size)
        with np.errstate(over="ignore"):
            return self.absolute + PLACES * 2.0 ** (_FLOAT64_BITS - self.bits) * last

    @property
    def typical_tolerance(self) -> float:
        """The rounding tolerance of a number with the median magnitude of the column."""
        return float(self.tolerances(self.middle))


EXACT: Final = Tolerance(0)


def tolerances_at(grains: Sequence[Tolerance], values_by_column: Floats) -> Floats:
    """Return the rounding tolerance of every number in several columns.

    A tolerance is the distance by which rounding may move a number. Row i of `values_by_column`
    contains numbers of one column, and `grains[i]` describes the tolerance of this column. The
    result has the shape of `values_by_column`.
    """
    fields = np.array([(grain.bits, grain.middle, grain.absolute) for grain in grains])
    bits, middle, absolute = fields.reshape(-1, 3).T[..., np.newaxis]
    last = _float64_spacing(np.maximum(np.abs(values_by_column), middle))
    with np.errstate(over="ignore"):
        rounded = PLACES * 2.0 ** (_FLOAT64_BITS - bits) * last
    return np.asarray(absolute + np.where(bits > 0.0, rounded, 0.0))


def _float64_spacing(magnitude: Any) -> Any:
    """Return the distance from each magnitude to the next float64.

    Magnitudes are limited just below the largest float64, because the distance would be infinite.
    """
    return np.spacing(np.minimum(magnitude, np.nextafter(LARGEST, 0.0)))


def column_tolerances(rows: Array, rows_prime: Array) -> tuple[Tolerance, ...]:
    """Estimate the rounding tolerance (the grain) of each column, from outputs on x and on x'."""
    sides, columns = (rows, rows_prime), rows.shape[1]
    if all(side.dtype.kind != "f" for side in sides):
        return tuple([EXACT] * columns)
    most = int(np.clip(_FORMAT_SAMPLE_NUMBERS // max(1, columns), *_FORMAT_SAMPLE_ROWS))
    own = min(noted_format_significant_bits(side) for side in sides if side.dtype.kind == "f")
    are_floats, threads = (rows.dtype.kind == "f", rows_prime.dtype.kind == "f"), THREADS.get()
    with np.errstate(invalid="ignore", over="ignore"):
        sample, sample_prime = (_c_order_floats(side[:most]) for side in sides)
        middles, is_usual = _core.measure_columns(sample, sample_prime, own, threads)
        bits, unusual = np.full(columns, own), np.flatnonzero(~is_usual)
        # The format of these columns may be coarser than their type.
        for part in chunk_slices(unusual, SLICE_NUMBERS, len(rows) + len(rows_prime)):
            places = unusual[part]
            values, values_prime = (_take_columns(side, places) for side in sides)
            grains = _core.judge_columns(values, values_prime, are_floats, own, most, threads)
            bits[places], middles[places] = grains
    return tuple(map(Tolerance, bits.tolist(), middles.tolist()))


def _take_columns(rows: Array, places: Places) -> Floats:
    """Return the columns at the given places as contiguous vectors, one after the other."""
    if not (rows.dtype == np.float64 and rows.flags.c_contiguous and rows.flags.aligned):
        rows, places = _c_order_floats(rows[:, places]), np.arange(places.size)
    return _core.gather_columns(rows, places, False)


def _c_order_floats(values: Array) -> Floats:
    return np.require(values, np.float64, ("C", "A"))


def column_tolerance(values: Array, values_prime: Array) -> Tolerance:
    """Estimate the rounding tolerance (the grain) of one column, from its values on x and on x'."""
    if not values.size and not values_prime.size:
        return EXACT
    return column_tolerances(values[:, np.newaxis], values_prime[:, np.newaxis])[0]


def merge_grains(grains: Sequence[Tolerance]) -> Tolerance:
    """Return a rounding tolerance (grain) that is not below the tolerance of any given column."""
    bits = min((grain.bits for grain in grains if grain.bits), default=0)
    middle = max((grain.middle for grain in grains), default=0.0)
    return Tolerance(bits, middle, max((grain.absolute for grain in grains), default=0.0))


def _tolerance_arrays(grains: Sequence[Tolerance]) -> tuple[Ints, Floats, Floats]:
    """Return the fields `bits`, `middle` and `absolute` of grains as three arrays."""
    bits = np.array([grain.bits for grain in grains], np.int64)
    floats = np.array([(grain.middle, grain.absolute) for grain in grains]).reshape(-1, 2).T
    return bits, floats[0].copy(), floats[1].copy()


def _max_sum_change_per_column(grains: Sequence[Tolerance]) -> Floats:
    """Return, for each column, how much the rounding of its numbers can change a float64 sum."""
    bits, middles, absolutes = _tolerance_arrays(grains)
    places = PLACES * _float64_spacing(middles)
    own = np.where(bits > 0, np.ldexp(places, _FLOAT64_BITS - bits), 0.0)
    return np.asarray(np.maximum(absolutes + own, places))


def weighted_sum_rounding(grains: Sequence[Tolerance], weights: Floats | None = None) -> Tolerance:
    """Return the rounding tolerance of a float64 sum of columns, optionally with weights.

    The tolerance of each column is multiplied by the magnitude of its weight. The result is the sum
    of these products.
    """
    each = _max_sum_change_per_column(grains)
    total = each.sum() if weights is None else (np.abs(weights) * each).sum()
    return Tolerance(_FLOAT64_BITS, 0.0, float(total))


def transformed_roundings(
    grains: Sequence[Tolerance], transform: str
) -> tuple[Ints, Floats, Floats]:
    """Return the rounding tolerances of columns after a transform, as three arrays.

    The arrays contain the fields `bits`, `middle` and `absolute` of the tolerance of each column.
    The transform is "values" (no change), "differences" (of neighbouring columns) or "sorted" (the
    entries of each row in increasing order).
    """
    if transform == "sorted":
        grains = [merge_grains(grains)] * len(grains)
    bits, middles, absolutes = _tolerance_arrays(grains)
    if transform == "differences":
        moves = _max_sum_change_per_column(grains)
        bits[1:], middles[1:], absolutes[1:] = 53, 0.0, moves[1:] + moves[:-1]
    return bits, middles, absolutes


def classify_gaps(ordered: Floats, grain: Tolerance) -> npt.NDArray[np.int8]:
    """Classify the difference between each two neighbouring values of a sorted array.

    - `SAME`: the two values are the same real number. They are equal, or both lie in a narrow
      cluster. A narrow cluster has a width of at most 4,096 units in the last place and is far from
      other values. Such clusters occur if code computes one number in different ways.
    - `NEAR`: the two values may be the same real number, with different rounding errors.
    - `APART`: the two values are different real numbers.

    Args:
        ordered: finite values in increasing order, shape `(size,)`. The result has shape
            `(size - 1,)`.
        grain: the rounding tolerance of the values: the distance by which rounding may move a
            value.
    """
    return _core.steps_of(_c_order_floats(ordered), (grain.bits, grain.middle, grain.absolute))


def bin_boundary_indices(ordered: Floats, grain: Tolerance) -> Places:
    """Return the positions in a sorted array where one bin may end and the next bin may begin.

    Position i is between the values i and i + 1. These two values are different real numbers, not
    one number with different rounding errors. If no such position exists, the function returns
    positions that give bins with a width of at least 16 rounding tolerances. Rounding then moves
    few values from bin to bin.
    """
    return _core.cuts_of(_c_order_floats(ordered), (grain.bits, grain.middle, grain.absolute))
