"""Rounding of the numbers of a column, and how far it may have moved them.

If two different sums compute the same real number, the floats may differ in their last places. The
input may determine which sum is used. `Grain` is the distance within which two numbers of a column
may be the same real number. It follows from the format to which the column was rounded, at the
magnitude of the number or, near 0, of its terms. Numbers that were never rounded (integers,
multiples of a fixed step) are distinguished at any distance.
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
from ..events.event import LARGEST, stated_bits
from ..records import Array, Floats, Ints
from .arrays import SLICE_NUMBERS, Places, chunk_slices

PLACES: Final = 8.0
"""Two computations of one real number are assumed to agree within this many last places."""
_FLOAT64_BITS: Final = 53
_FORMAT_SAMPLE_NUMBERS: Final = 2**18
_FORMAT_SAMPLE_ROWS: Final = (512, 4096)
"""Numbers per side that show the format of a column. The rows have these two limits."""
THREADS: Final = ContextVar("threads", default=1)
"""Number of threads that measure columns: the threads of the audit, see `use_threads`."""
SAME, NEAR, APART = 0, 1, 2
"""The three kinds of a step between neighbouring values, see `steps_of`."""


@contextmanager
def use_threads(threads: int) -> Iterator[None]:
    """Use this number of threads to measure the columns of arrays; results do not change."""
    token = THREADS.set(threads)
    try:
        yield
    finally:
        THREADS.reset(token)


@dataclass(frozen=True, slots=True)
class Grain:
    """The step by which rounding may move a number of one column.

    Args:
        bits: significant bits of the column's format; 0 for numbers that were never rounded.
        middle: median magnitude of the numbers that are not 0. Near 0, a sum has the rounding error
            of its terms.
        absolute: tolerance that is added at every magnitude, in the units of the column.
    """

    bits: int
    middle: float = 0.0
    absolute: float = 0.0

    @property
    def exact(self) -> bool:
        """True if the values were never rounded."""
        return self.bits == 0 and self.absolute == 0.0

    def at(self, values: Any) -> Any:
        """Return the tolerance at each value, in the shape of the values."""
        size = np.maximum(np.abs(values), self.middle)
        if self.bits == 0:
            return np.full_like(size, self.absolute)
        last = _last_place(size)
        with np.errstate(over="ignore"):
            return self.absolute + PLACES * 2.0 ** (_FLOAT64_BITS - self.bits) * last

    @property
    def typical(self) -> float:
        """The tolerance at the median magnitude."""
        return float(self.at(self.middle))


EXACT: Final = Grain(0)


def tolerances_at(grains: Sequence[Grain], values: Floats) -> Floats:
    """Return the tolerance of each column's grain at its values, shape `(columns, values)`."""
    fields = np.array([(grain.bits, grain.middle, grain.absolute) for grain in grains])
    bits, middle, absolute = fields.reshape(-1, 3).T[..., np.newaxis]
    last = _last_place(np.maximum(np.abs(values), middle))
    with np.errstate(over="ignore"):
        rounded = PLACES * 2.0 ** (_FLOAT64_BITS - bits) * last
    return np.asarray(absolute + np.where(bits > 0.0, rounded, 0.0))


def _last_place(size: Any) -> Any:
    """Return the last place of magnitudes.

    The result is limited just below the largest double, because it would be infinite there.
    """
    return np.spacing(np.minimum(size, np.nextafter(LARGEST, 0.0)))


def grains_of(rows: Array, rows_prime: Array) -> tuple[Grain, ...]:
    """Return the grain of every column of two sets of rows, shape `(size, columns)` each."""
    sides, columns = (rows, rows_prime), rows.shape[1]
    if all(side.dtype.kind != "f" for side in sides):
        return tuple([EXACT] * columns)
    most = int(np.clip(_FORMAT_SAMPLE_NUMBERS // max(1, columns), *_FORMAT_SAMPLE_ROWS))
    own = min(stated_bits(side) for side in sides if side.dtype.kind == "f")
    are_floats, threads = (rows.dtype.kind == "f", rows_prime.dtype.kind == "f"), THREADS.get()
    with np.errstate(invalid="ignore", over="ignore"):
        sample, sample_prime = (_dense_floats(side[:most]) for side in sides)
        middles, is_usual = _core.measure_columns(sample, sample_prime, own, threads)
        bits, unusual = np.full(columns, own), np.flatnonzero(~is_usual)
        # The format of these columns may be coarser than their type.
        for part in chunk_slices(unusual, SLICE_NUMBERS, len(rows) + len(rows_prime)):
            places = unusual[part]
            values, values_prime = (_take_columns(side, places) for side in sides)
            grains = _core.judge_columns(values, values_prime, are_floats, own, most, threads)
            bits[places], middles[places] = grains
    return tuple(map(Grain, bits.tolist(), middles.tolist()))


def _take_columns(rows: Array, places: Places) -> Floats:
    """Return some columns as contiguous vectors, one after the other."""
    if not (rows.dtype == np.float64 and rows.flags.c_contiguous and rows.flags.aligned):
        rows, places = _dense_floats(rows[:, places]), np.arange(places.size)
    return _core.gather_columns(rows, places, False)


def _dense_floats(values: Array) -> Floats:
    return np.require(values, np.float64, ("C", "A"))


def grain_of(values: Array, values_prime: Array) -> Grain:
    """Return the grain of one column. The sides may have different numbers of values."""
    if not values.size and not values_prime.size:
        return EXACT
    return grains_of(values[:, np.newaxis], values_prime[:, np.newaxis])[0]


def coarsest_grain(grains: Sequence[Grain]) -> Grain:
    """Return one common grain for numbers of several columns."""
    bits = min((grain.bits for grain in grains if grain.bits), default=0)
    middle = max((grain.middle for grain in grains), default=0.0)
    return Grain(bits, middle, max((grain.absolute for grain in grains), default=0.0))


def _split_grains(grains: Sequence[Grain]) -> tuple[Ints, Floats, Floats]:
    """Return bits, middles and absolute tolerances of grains, in the form of the core."""
    bits = np.array([grain.bits for grain in grains], np.int64)
    floats = np.array([(grain.middle, grain.absolute) for grain in grains]).reshape(-1, 2).T
    return bits, floats[0].copy(), floats[1].copy()


def _largest_moves(grains: Sequence[Grain]) -> Floats:
    """Return by how much a number of each column can move a sum of doubles through rounding."""
    bits, middles, absolutes = _split_grains(grains)
    places = PLACES * _last_place(middles)
    own = np.where(bits > 0, np.ldexp(places, _FLOAT64_BITS - bits), 0.0)
    return np.asarray(np.maximum(absolutes + own, places))


def sum_grains(grains: Sequence[Grain], weights: Floats | None = None) -> Grain:
    """Return the grain of a sum of columns in doubles: the sum of all their rounding errors."""
    each = _largest_moves(grains)
    total = each.sum() if weights is None else (np.abs(weights) * each).sum()
    return Grain(_FLOAT64_BITS, 0.0, float(total))


def transform_grains(grains: Sequence[Grain], transform: str) -> tuple[Ints, Floats, Floats]:
    """Return bits, middles and absolute tolerances of the grains of transformed columns."""
    if transform == "sorted":
        grains = [coarsest_grain(grains)] * len(grains)
    bits, middles, absolutes = _split_grains(grains)
    if transform == "differences":
        moves = _largest_moves(grains)
        bits[1:], middles[1:], absolutes[1:] = 53, 0.0, moves[1:] + moves[:-1]
    return bits, middles, absolutes


def steps_of(values: Floats, grain: Grain) -> npt.NDArray[np.int8]:
    """Classify each step between neighbouring sorted finite values, shape `(size - 1,)`.

    `SAME`: both values are one number. They are equal, or lie in a run at most 4,096 last places
    wide that is far from other values, as a long computation leaves it. `NEAR`: rounding may
    explain the step. `APART`: the values surely differ.
    """
    return _core.steps_of(_dense_floats(values), (grain.bits, grain.middle, grain.absolute))


def cuts_of(values: Floats, grain: Grain) -> Places:
    """Return the places i at which values i and i + 1 cannot be the same real number.

    The values are sorted. If no two values surely differ, edges are at least 16 tolerances from
    each other. Rounding then moves few values from bin to bin.
    """
    return _core.cuts_of(_dense_floats(values), (grain.bits, grain.middle, grain.absolute))
