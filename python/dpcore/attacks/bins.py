"""Thresholds of a score, and bins of the columns of outputs in the form of the Rust core."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from .. import _core
from ..errors import invalid
from ..events.event import LARGEST, numpy_of
from ..packages import is_tensor
from ..pairs.differences import is_exact_in_float64
from ..records import Array, Flags, Floats, Ints, Pair, frozen_array
from . import arrays
from .arrays import Words
from .grains import APART, EXACT, SAME, THREADS, Tolerance, classify_gaps, transformed_roundings

SHARE: Final = 0.381966011250105
"""Relative place of a threshold between two neighbouring values. The number is not a simple
fraction: at a simple fraction there may be an atom (a frequent value) that the pilot missed."""
_MAX_THRESHOLDS: Final = 400
_DENSE_RANKS: Final = 48
"""Number of ranks at either end that are all tried; later ranks grow by `_RANK_GROWTH`."""
_RANK_GROWTH: Final = 1.06
TRANSFORMS: Final = ("values", "differences", "sorted")
_CONVERTED_NUMBERS: Final = 2**20
"""Number of array entries that are converted to float64 in one step."""


def sorted_no_nan(values: Floats) -> Floats:
    """Return the values in increasing order, without NaN."""
    ordered = np.sort(values)
    # NaN comes last.
    return ordered[: ordered.size - int(np.count_nonzero(np.isnan(ordered)))]


def place_between(low: Any, high: Any) -> Any:
    """Return a number between `low` and `high`, to be used as a threshold; arrays are allowed.

    The result is above `low` and at most `high`. Both arguments must be finite.

    Example:
        >>> ends = np.array([[1.0, -1.7e308], [1.0 + 2**-52, 1.7e308]])
        >>> place_between(*ends).tolist()
        [1.0000000000000002, -4.0131556174964297e+307]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        near = low + SHARE * (high - low)
    # The width of a gap may overflow, and no number lies between adjacent numbers.
    points = np.where(np.isfinite(near), near, (1.0 - SHARE) * low + SHARE * high)
    return np.where(points > low, points, high)


def largest_magnitude(*sides: Array) -> float:
    """Return the largest absolute value of all finite numbers in the given arrays.

    Arrays that do not hold real numbers are ignored. The result is 0 if no finite number is found.
    """
    largest = 0.0
    for array in sides:
        if array.dtype.kind in "iubf" and array.size:
            # Most arrays hold only finite numbers, and then no copy is made.
            if not (math.isfinite(array.max()) and math.isfinite(array.min())):
                array = np.append(array[np.isfinite(array)], 0.0)
            largest = max(largest, abs(float(array.max())), abs(float(array.min())))
    return largest


class Thresholds(NamedTuple):
    """Thresholds of a score, with a rounding tolerance for each threshold.

    Args:
        points: thresholds in increasing order, shape `(m,)`.
        lows: each threshold minus its rounding tolerance. The tolerance is 0 if the threshold lies
            in a gap between values that is wider than the possible rounding errors.
        highs: each threshold plus its rounding tolerance.
        grain: the distance by which rounding may move values of the score.
    """

    points: Floats
    lows: Floats
    highs: Floats
    grain: Tolerance

    @property
    def all(self) -> tuple[Floats, Floats, Floats]:
        """The three arrays `lows`, `points` and `highs`."""
        return self.lows, self.points, self.highs

    @property
    def edges(self) -> Floats:
        """All distinct finite numbers in `lows`, `points` and `highs`, in increasing order."""
        if self.lows is self.points:
            return self.points
        edges = np.unique(np.concatenate(self.all))
        return edges[np.isfinite(edges)]

    def join_others(self, others: Sequence[Thresholds]) -> Thresholds:
        """Return one object with the thresholds of this object and of all objects in `others`."""
        parts = [self, *others]
        lows, points, highs = np.concatenate([part.all for part in parts], axis=1)
        points, first = np.unique(points, return_index=True)
        if all(part.lows is part.points for part in parts):
            return Thresholds(points, points, points, self.grain)
        return Thresholds(points, lows[first], highs[first], self.grain)


def score_thresholds(values: Floats, values_prime: Floats, grain: Tolerance = EXACT) -> Thresholds:
    """Choose the thresholds that are tested for a score; most of them lie in the two tails.

    A threshold lies between two values of the score. Usually these two values differ by more than
    the possible rounding errors. If many values are closer to each other, thresholds between close
    values are added. Each added threshold has a tolerance: the largest distance by which rounding
    may move a value. For an added threshold, the audit uses the worst counts that rounding can
    cause.

    Args:
        values: values of the score on x, sorted, without NaN.
        values_prime: values of the score on x', sorted, without NaN.
        grain: the distance by which rounding may move a value of the score.

    Returns:
        At most a few hundred thresholds.
    """
    pooled = np.sort(np.concatenate([values, values_prime]))
    finite = pooled[np.isfinite(pooled)]
    # Infinities are placed beyond every finite value, one unit of scale away. No threshold can lie
    # between an infinity and the largest double.
    reach = min(2.0 * max(1.0, largest_magnitude(finite)), LARGEST)
    pooled = np.clip(pooled, -reach, reach)
    steps = classify_gaps(pooled, grain)
    gaps = np.flatnonzero(steps == APART)
    if gaps.size > _MAX_THRESHOLDS:
        places = np.searchsorted(gaps, _make_end_dense_rank_grid(pooled.size))
        gaps = np.unique(gaps[np.minimum(places, gaps.size - 1)])
    clean = gaps.size
    if clean + 1 < pooled.size:
        rounded = np.flatnonzero(steps != APART)
        rounded = rounded[pooled[rounded + 1] > pooled[rounded]]
        places = np.searchsorted(rounded, _make_end_dense_rank_grid(pooled.size))
        gaps = np.append(gaps, np.unique(rounded[places[places < rounded.size]]))
    points = place_between(pooled[gaps], pooled[gaps + 1])
    order = np.argsort(points, kind="stable")
    points = points[order]
    if clean == gaps.size:
        return Thresholds(points, points, points, grain)
    # Between two copies of one number, rounding can remove every count of an event.
    moved = np.where(steps[gaps[order]] == SAME, np.inf, grain.tolerances(points))
    tolerance = np.where(order < clean, 0.0, moved)
    return Thresholds(points, points - tolerance, points + tolerance, grain)


def safe_gap_thresholds(values: Floats, values_prime: Floats, grain: Tolerance = EXACT) -> Floats:
    """Return thresholds that no value of a score can cross because of rounding errors.

    If no such threshold exists, return other thresholds of the score.
    """
    marks = score_thresholds(values, values_prime, grain)
    clean: Floats = marks.points[marks.lows == marks.points]
    return clean if clean.size else marks.points


@functools.lru_cache(maxsize=64)
def _make_end_dense_rank_grid(size: int) -> Ints:
    """Return ranks of `size` sorted values: all ranks near both ends, and fewer in the middle.

    From each end to the middle, the distances of the ranks grow geometrically.
    """
    steps = max(1, int(np.log(max(2.0, size / (2 * _DENSE_RANKS))) / np.log(_RANK_GROWTH)))
    tail = np.geomspace(_DENSE_RANKS, max(_DENSE_RANKS, size / 2), steps + 1)
    ranks = np.concatenate([np.arange(_DENSE_RANKS), tail]).astype(np.int64)
    return frozen_array(np.unique(np.concatenate([ranks, size - 2 - ranks]).clip(0, size - 2)))


def float_blocks(rows: Array) -> Iterator[tuple[slice, Floats]]:
    """Divide the rows of an array into blocks, and convert each block to float64 for the Rust core.

    For each block, yield the slice of its rows, and the rows as an aligned C-contiguous array.

    Raises:
        ValueError: if an integer has a magnitude above 2**53, since float64 would round it.
    """
    if rows.dtype == np.float64 and rows.flags.c_contiguous and rows.flags.aligned:
        yield slice(0, len(rows)), rows
        return
    for part in arrays.chunk_slices(rows, _CONVERTED_NUMBERS):
        if not is_exact_in_float64(rows[part]):
            raise invalid("outputs", "within 2**53 where they are whole numbers", rows[part])
        yield part, np.require(rows[part], np.float64, ("C", "A"))


def difference_or_sort_rows(rows: Array, transform: str) -> Floats:
    """Convert rows to float64 and transform each row in one of three ways.

    "values" changes no entry. "differences" gives the first entry, and then the differences between
    neighbouring entries. "sorted" gives the entries in increasing order.
    """
    columns = rows.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        if transform == "differences":
            columns[:, 1:] = columns[:, 1:] - columns[:, :-1]
        elif transform == "sorted":
            columns.sort(axis=1)
    return columns


def _slice_classes_for_memory(sizes: Ints) -> Iterator[slice]:
    """Yield slices of consecutive classes of columns. Each slice is copied and sorted in one step.

    `sizes` is the number of numbers in each class.
    """
    numbers = np.cumsum(sizes) // arrays.SLICE_NUMBERS
    cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), sizes.size]
    yield from itertools.starmap(slice, itertools.pairwise(cuts))


def _sort_pieces(values: Floats, ends: Ints) -> None:
    """Sort each piece of a vector in place, NaN last; `ends` are the ends of the pieces."""
    sizes = np.diff(ends, prepend=0)
    if (sizes == sizes[0]).all():
        values.reshape(sizes.size, sizes[0]).sort(axis=1)
        return
    for piece in np.split(values, ends[:-1]):
        piece.sort()


def _take_runs(values: Array, sizes: Ints, which: Ints) -> Array:
    """Divide `values` into runs of the given sizes; return the runs with the numbers `which`.

    The runs are concatenated in the order of `which`.
    """
    starts, taken = np.cumsum(sizes) - sizes, sizes[which]
    shifts = starts[which] - (np.cumsum(taken) - taken)
    return np.asarray(values[np.repeat(shifts, taken) + np.arange(taken.sum())])


class ColumnBins(NamedTuple):
    """The bins of each column of the outputs, in the form that the Rust core reads.

    Args:
        transform: "values" if the columns are the entries of an output, "differences" if they are
            the differences of neighbouring entries, "sorted" if they are the sorted entries.
        edges: edges of the bins of the first column, then those of the second column, and so on.
        offsets: index in `edges` of the first edge of each column. The last entry is `len(edges)`.
            A column with n edges has n + 1 bins, and then one more bin for NaN.
        symbols: the kind of value in each bin, as a number, shape `(len(edges) + 2 * columns,)`.
            The number is 0 for ordinary values. Each frequent value has a separate number. If
            infinities or NaN occur in the sample, they also have separate numbers.
        places: for each column, the places of its bins in `symbols`, shape
            `(columns, most bins of a column)`. Rows of columns with fewer bins are filled up with
            -1.
    """

    transform: str
    edges: Floats
    offsets: Ints
    symbols: Ints
    places: Ints

    @classmethod
    def of_sample(
        cls, sample: Array, transform: str, grains: Sequence[Tolerance], bins: int, classes: Ints
    ) -> ColumnBins:
        """Divide the range of each column of a sample of outputs into bins.

        Args:
            sample: outputs on x and on x' together, shape `(size, columns)`.
            transform: "values" if the columns are the entries of an output, "differences" if they
                are the differences of neighbouring entries, "sorted" if they are the sorted
                entries.
            grains: for each column of the sample, the distance by which rounding may move a value.
            bins: number of quantile bins of a column. More bins are added for frequent values and
                for the tails.
            classes: class number of each column, shape `(columns,)`. Columns with the same number
                have the same bins.
        """
        rows = np.sort(sample, axis=1) if transform == "sorted" else sample
        rows = np.require(rows, np.float64, ("C", "A"))
        members, sizes = np.argsort(classes, kind="stable"), np.bincount(classes)
        bits, *magnitudes = transformed_roundings(grains, transform)
        starts = np.cumsum(sizes) - sizes
        # The coarsest grain of each class; fewer bits are coarser, but bits of 0 are the finest.
        bits = np.minimum.reduceat(np.where(bits > 0, bits, 64)[members], starts) % 64
        middles, absolutes = (np.maximum.reduceat(side[members], starts) for side in magnitudes)
        parts = []
        for part in _slice_classes_for_memory(sizes * len(rows)):
            columns = members[starts[part][0] : starts[part][-1] + sizes[part][-1]]
            values = _core.gather_columns(rows, columns, transform == "differences").ravel()
            ends = np.cumsum(sizes[part] * len(rows))
            _sort_pieces(values, ends)
            own = bits[part], middles[part], absolutes[part]
            parts.append(_core.bin_columns(values, ends, own, bins, THREADS.get()))
        edges, counts, symbols = map(np.concatenate, zip(*parts, strict=True))
        offsets = np.append(0, np.cumsum(counts[classes]))
        lengths = (counts[classes] + 2)[:, np.newaxis]
        ranks, begins = np.arange(lengths.max()), np.cumsum(lengths)[:, np.newaxis] - lengths
        places = np.where(ranks < lengths, begins + ranks, -1)
        edges = _take_runs(edges, counts, classes)
        return cls(transform, edges, offsets, _take_runs(symbols, counts + 2, classes), places)

    def core_arguments(self, keys: Words) -> tuple[str, Floats, Ints, Words]:
        """Return these bins as arguments for functions of the Rust core.

        `keys` assigns a number to each bin. The key of an output is the sum of the numbers that are
        assigned to the bins of its values.
        """
        return self.transform, self.edges, self.offsets, keys

    def ordinary_bins(self) -> Flags:
        """Return a bool for each bin: True if it holds values that are finite and not frequent.

        The result has shape `(columns, most bins of a column)`.
        """
        return np.asarray((self.split_by_column(self.symbols) == 0) & (self.places >= 0))

    def columns_with_several_ordinary_bins(self) -> Flags:
        """Return a bool for each column: True if two or more of its bins hold ordinary values.

        Ordinary values are finite and not frequent.
        """
        # The last bin holds NaN. It counts as ordinary if the sample has no NaN.
        nan = self.symbols[self.places.max(axis=1)] == 0
        return np.asarray(self.ordinary_bins().sum(axis=1) - nan > 1)

    def within_column_bins(self, sample: Array) -> Ints:
        """Return, for each entry of a sample, the index of the bin that contains the entry.

        The bins of each column are counted from 0. The result has the shape of the sample.
        """
        values = difference_or_sort_rows(sample, self.transform)
        bins = np.empty(values.shape, dtype=np.int64)
        columns = zip(values.T, np.split(self.edges, self.offsets[1:-1]), strict=True)
        for i, (entries, edges) in enumerate(columns):
            numbers = np.searchsorted(edges, entries, side="right")
            bins[:, i] = np.where(np.isnan(entries), edges.size + 1, numbers)
        return bins

    def split_by_column(self, flat: Array) -> Array:
        """Convert an array with all bins in one row to an array with one row of bins per column.

        `flat` has shape `(..., all bins)`, column after column. The result has shape
        `(..., columns, most bins of a column)`. Rows of columns with fewer bins end with zeros.
        """
        return np.where(self.places >= 0, flat[..., self.places], 0)

    def flatten_columns(self, by_column: Array) -> Array:
        """Convert an array with one row of bins per column to an array with all bins in one row.

        `by_column` has shape `(..., columns, most bins of a column)`. The result has shape
        `(..., all bins)`.
        """
        return np.ascontiguousarray(by_column[..., self.places >= 0])


def classes_by_input_values(pair: Pair, transform: str, columns: int) -> Ints:
    """Divide the columns of outputs into classes with equal inputs, and return the class numbers.

    Columns i and j are in one class if x_i = x_j and x'_i = x'_j for the inputs x and x'. If the
    number of columns is m times the number of entries of an input, each input is repeated m times.
    In this case, columns of different repetitions are in different classes, unless an input has
    only one entry. If the number of columns is not a multiple of the number of entries, each column
    is a separate class. If the transform is "sorted", each column is a separate class too.
    """
    own = np.arange(columns)
    inputs = [_input_numbers_or_empty(side) for side in (pair.x, pair.x_prime)]
    size = inputs[0].size
    if size == 0 or inputs[1].size != size or columns % size or transform == "sorted":
        return own
    parts = [np.tile(side, columns // size) for side in inputs]
    if size > 1:
        parts.append((own // size).astype(np.float64))
    if transform == "differences":
        parts += [np.concatenate([[np.inf], part[:-1]]) for part in parts]
    classes: dict[tuple[float, ...], int] = {}
    entries = zip(*(part.tolist() for part in parts), strict=True)
    return np.array([classes.setdefault(entry, len(classes)) for entry in entries])


def _input_numbers_or_empty(side: Any) -> Floats:
    """Return the numbers of an input as one vector; empty if the input is not numeric."""
    try:
        # np.asarray cannot read every tensor.
        entries = (numpy_of(side) if is_tensor(side) else np.asarray(side)).ravel()
    except ValueError:
        # Rows of different lengths have no array.
        return np.zeros(0)
    return entries.astype(np.float64) if entries.dtype.kind in "buif" else np.zeros(0)
