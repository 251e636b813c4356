"""Thresholds of a score, and the bins of all columns of an output as the core reads them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from ..errors import invalid
from ..events.event import LARGEST, numpy_of
from ..packages import is_tensor
from ..pairs.differences import is_exact_in_float64
from ..records import Array, Flags, Floats, Ints, Pair
from . import arrays
from .arrays import Grain, Places, Words

SHARE: Final = 0.381966011250105
"""Place of a threshold in its gap: not at a simple fraction, where an unseen atom may sit."""
_MAX_THRESHOLDS: Final = 400
_DENSE_RANKS: Final = 48
"""Ranks from either end that are all tried; beyond, they grow by `_RANK_GROWTH`."""
_RANK_GROWTH: Final = 1.06
_MAX_ALPHABET_SIZE: Final = 64
"""Columns with at most so many values, each met so often, are all atoms."""
_MIN_ATOM_COUNT: Final = 8
_MIN_ATOM_SHARE: Final = 0.005
"""Elsewhere a value with this share of all is an atom, if at most `_MAX_SENTINELS` have it."""
_MAX_SENTINELS: Final = 8
_ATOM_REACH_TOLERANCES: Final = 16.0
"""An atom's bin reaches so many tolerances into a continuum around it."""
_TAIL_LEVELS: Final = np.array([0.001, 0.003, 0.01, 0.03])
_OUTPUTS_PER_BIN: Final = 100
TRANSFORMS: Final = ("values", "differences", "sorted")
_CONVERTED_NUMBERS: Final = 2**20
"""Numbers that are converted to float64 at a time."""


def sorted_values(values: Floats) -> Floats:
    """Sort values, without NaN."""
    found = np.sort(values)
    # NaN comes last.
    return found[: found.size - int(np.count_nonzero(np.isnan(found)))]


def place_between(low: Any, high: Any) -> Any:
    """Return a threshold in each gap between finite numbers: above the low end, at most the high.

    Example:
        >>> ends = np.array([[1.0, -1.7e308], [1.0 + 2**-52, 1.7e308]])
        >>> place_between(*ends).tolist()
        [1.0000000000000002, -4.0131556174964297e+307]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        near = low + SHARE * (high - low)
    # The width of a gap may overflow, and between adjacent numbers there is none.
    points = np.where(np.isfinite(near), near, (1.0 - SHARE) * low + SHARE * high)
    return np.where(points > low, points, high)


def scale_of(*sides: Array) -> float:
    """Return the largest finite magnitude in arrays of numbers; 0 for anything else."""
    largest = 0.0
    for array in sides:
        if array.dtype.kind in "iubf" and array.size:
            # Most arrays hold only finite numbers, and are not copied then.
            if not (math.isfinite(array.max()) and math.isfinite(array.min())):
                array = np.append(array[np.isfinite(array)], 0.0)
            largest = max(largest, abs(float(array.max())), abs(float(array.min())))
    return largest


class Marks(NamedTuple):
    """Thresholds, and how far rounding may have moved a value across each.

    Args:
        points: thresholds, increasing, shape `(m,)`.
        lows: each less the tolerance there, or the threshold itself where it lies in a gap.
        highs: each plus the tolerance.
        grain: of the score.
    """

    points: Floats
    lows: Floats
    highs: Floats
    grain: Grain

    @property
    def all(self) -> tuple[Floats, Floats, Floats]:
        """Lows, points and highs."""
        return self.lows, self.points, self.highs

    @property
    def edges(self) -> Floats:
        """All of them in order, each once."""
        if self.lows is self.points:
            return self.points
        edges = np.unique(np.concatenate(self.all))
        return edges[np.isfinite(edges)]

    def join_others(self, others: Sequence[Marks]) -> Marks:
        """Return these thresholds and others together."""
        parts = [self, *others]
        lows, points, highs = np.concatenate([part.all for part in parts], axis=1)
        points, first = np.unique(points, return_index=True)
        if all(part.lows is part.points for part in parts):
            return Marks(points, points, points, self.grain)
        return Marks(points, lows[first], highs[first], self.grain)


def marks_of(values: Floats, values_prime: Floats, grain: Grain = arrays.EXACT) -> Marks:
    """Find thresholds worth trying: between numbers that are surely two, dense in both tails.

    Where values lie too close for that, some between them are tried as well: an event is worth
    what is left of it when every value has moved by its tolerance against it.

    Args:
        values: sorted values on x, no NaN.
        values_prime: sorted values on x'.
        grain: what rounding may move a value by.

    Returns:
        At most a few hundred thresholds.
    """
    pooled = np.sort(np.concatenate([values, values_prime]))
    finite = pooled[np.isfinite(pooled)]
    # Infinities lie beyond every finite value, one unit of scale away; no threshold lies between
    # one and the largest double.
    reach = min(2.0 * max(1.0, scale_of(finite)), LARGEST)
    pooled = np.clip(pooled, -reach, reach)
    steps = arrays.steps_of(pooled, grain)
    gaps = np.flatnonzero(steps == arrays.APART)
    if gaps.size > _MAX_THRESHOLDS:
        places = np.searchsorted(gaps, _list_ranks(pooled.size))
        gaps = np.unique(gaps[np.minimum(places, gaps.size - 1)])
    clean = gaps.size
    if clean + 1 < pooled.size:
        rounded = np.flatnonzero(steps != arrays.APART)
        rounded = rounded[pooled[rounded + 1] > pooled[rounded]]
        places = np.searchsorted(rounded, _list_ranks(pooled.size))
        gaps = np.append(gaps, np.unique(rounded[places[places < rounded.size]]))
    points = place_between(pooled[gaps], pooled[gaps + 1])
    order = np.argsort(points, kind="stable")
    points = points[order]
    if clean == gaps.size:
        return Marks(points, points, points, grain)
    # Between two copies of one number nothing is left of an event.
    moved = np.where(steps[gaps[order]] == arrays.SAME, np.inf, grain.at(points))
    tolerance = np.where(order < clean, 0.0, moved)
    return Marks(points, points - tolerance, points + tolerance, grain)


def list_thresholds(values: Floats, values_prime: Floats, grain: Grain = arrays.EXACT) -> Floats:
    """Return the thresholds of `marks_of` that lie in wide gaps; all of them where none does."""
    marks = marks_of(values, values_prime, grain)
    clean: Floats = marks.points[marks.lows == marks.points]
    return clean if clean.size else marks.points


def _list_ranks(size: int) -> Ints:
    """Return ranks from either end: each of the first, then a geometric sequence to the middle."""
    steps = max(1, int(np.log(max(2.0, size / (2 * _DENSE_RANKS))) / np.log(_RANK_GROWTH)))
    tail = np.geomspace(_DENSE_RANKS, max(_DENSE_RANKS, size / 2), steps + 1)
    ranks = np.concatenate([np.arange(_DENSE_RANKS), tail]).astype(np.int64)
    return np.unique(np.concatenate([ranks, size - 2 - ranks]).clip(0, size - 2))


class Column(NamedTuple):
    """The bins of one column.

    Args:
        edges: sorted; they make one bin more than they are, and NaN has another, the last.
        symbols: what each bin says in a pattern, shape `(edges + 2,)`: 0 for ordinary values,
            another number for each atom, and for infinities and NaN if they occur.
    """

    edges: Floats
    symbols: Ints


def bin_column(values: Floats, grain: Grain, bins: int) -> Column:
    """Cut a column into bins.

    Args:
        values: a sample of its values on both sides, in any order, shape `(size,)`.
        grain: what rounding may move a value by.
        bins: quantile bins wanted for ordinary values, beside those in the tails.

    Returns:
        The bins; at least one, and the one for NaN.
    """
    finite = np.sort(values[np.isfinite(values)])
    gaps = arrays.cuts_of(finite, grain)
    sizes = np.diff(np.concatenate([[0], gaps + 1, [finite.size]]))
    heavy = _find_atoms(sizes)
    ordinary = int(sizes[~heavy].sum())
    # A gap is wanted on either side of an atom, and near every quantile of the rest.
    wanted = heavy[:-1] | heavy[1:]
    if ordinary and wanted.size:
        reached = np.cumsum(np.where(heavy, 0, sizes))[:-1]
        wanted[_nearest_places(reached, _cut_levels(bins, ordinary) * ordinary)] = True
    inner = _place_edges(finite, gaps, heavy, wanted, grain)
    # Which cluster begins each bin tells whether the bin is an atom.
    atoms = heavy[np.append(0, np.flatnonzero(wanted) + 1)]
    return _add_special_bins(values, inner, np.where(atoms, np.cumsum(atoms), 0))


def _place_edges(values: Floats, gaps: Places, heavy: Flags, wanted: Flags, grain: Grain) -> Floats:
    """Place an edge in each gap wanted; one beside an atom in a continuum is near the atom."""
    low, high = values[gaps[wanted]], values[gaps[wanted] + 1]
    reach = np.full(low.shape, np.inf) if grain.exact else _ATOM_REACH_TOLERANCES * grain.at(low)
    before, after = heavy[:-1][wanted], heavy[1:][wanted]
    edges = place_between(low, high)
    with np.errstate(over="ignore"):
        below = high - np.minimum(high - low - SHARE * (high - low), reach)
    # The width of the gap overflows; the reach does not.
    below = np.where(np.isfinite(high - low), below, np.maximum(edges, high - reach))
    edges = np.where(before & ~after, np.minimum(edges, low + reach), edges)
    edges = np.where(after & ~before, below, edges)
    return np.where(edges > low, edges, high)


def _find_atoms(sizes: Ints) -> Flags:
    """Return which clusters of equal values are atoms, from the number of values of each."""
    if sizes.size <= _MAX_ALPHABET_SIZE and sizes.sum() >= _MIN_ATOM_COUNT * sizes.size:
        return np.ones(sizes.size, dtype=np.bool_)
    heavy = sizes >= max(_MIN_ATOM_COUNT, _MIN_ATOM_SHARE * float(sizes.sum()))
    return heavy if np.count_nonzero(heavy) <= _MAX_SENTINELS else np.zeros_like(heavy)


def _cut_levels(bins: int, size: int) -> Floats:
    """Return the levels of the cuts, as shares: even, and closer in the tails."""
    bins = max(1, min(bins, size // _OUTPUTS_PER_BIN))
    even = np.arange(1, bins) / bins
    tails = _TAIL_LEVELS[(1.0 / bins > _TAIL_LEVELS) & (_TAIL_LEVELS * size >= 4.0)]
    return np.concatenate([tails, even, 1.0 - tails])


def _nearest_places(reached: Ints, targets: Floats) -> Places:
    """Return the places in a nondecreasing sequence nearest to the targets."""
    last = reached.size - 1
    after = np.searchsorted(reached, targets).clip(min(1, last), last)
    before = np.maximum(after - 1, 0)
    nearer = targets - reached[before] <= reached[after] - targets
    return np.unique(np.where(nearer, before, after))


def _add_special_bins(values: Floats, inner: Floats, symbols: Ints) -> Column:
    """Add bins of their own for infinities that occur, and the one for NaN."""
    edges, top = inner, int(symbols.max(initial=0))
    if np.isneginf(values).any():
        edges = np.concatenate([[np.finfo(np.float64).min], edges])
        symbols = np.concatenate([[top + 1], symbols])
    if np.isposinf(values).any():
        edges = np.concatenate([edges, [np.inf]])
        symbols = np.concatenate([symbols, [top + 2]])
    return Column(edges, np.append(symbols, top + 3 if np.isnan(values).any() else 0))


def float_blocks(rows: Array) -> Iterator[tuple[slice, Floats]]:
    """Cut rows of real numbers into blocks that the core reads: C-contiguous, aligned float64.

    Raises:
        ValueError: if a whole number is beyond 2**53, where float64 would round it.
    """
    if rows.dtype == np.float64 and rows.flags.c_contiguous and rows.flags.aligned:
        yield slice(0, len(rows)), rows
        return
    for part in arrays.chunk_slices(rows, _CONVERTED_NUMBERS):
        if not is_exact_in_float64(rows[part]):
            raise invalid("outputs", "within 2**53 where they are whole numbers", rows[part])
        yield part, np.require(rows[part], np.float64, ("C", "A"))


def transform_columns(rows: Array, transform: str) -> Floats:
    """Return the columns of a sample of rows, as the core computes them."""
    columns = rows.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        if transform == "differences":
            columns[:, 1:] = columns[:, 1:] - columns[:, :-1]
        elif transform == "sorted":
            columns.sort(axis=1)
    return columns


class Layout(NamedTuple):
    """The bins of all columns in the form of the core (see `_core.score_additive`).

    Args:
        transform: one of `TRANSFORMS`.
        edges: edges, column after column.
        offsets: where each column's edges begin and end, shape `(columns + 1,)`.
        symbols: of every bin, shape `(edges + 2 columns,)`; see `Column`.
        places: where each column's bins are among all, shape `(columns, most bins of a column)`;
            -1 after a column's last.
    """

    transform: str
    edges: Floats
    offsets: Ints
    symbols: Ints
    places: Ints

    @classmethod
    def of_sample(
        cls, sample: Array, transform: str, grains: Sequence[Grain], bins: int, classes: Ints
    ) -> Layout:
        """Make the layout of a sample's columns; those of one class have the same bins.

        Args:
            sample: outputs of both sides, shape `(size, columns)`.
            transform: one of `TRANSFORMS`.
            grains: of the outputs' columns.
            bins: see `bin_column`.
            classes: the class of every column, shape `(columns,)`.
        """
        values, made = transform_columns(sample, transform), []
        if transform == "sorted":
            grains = [arrays.coarsest_grain(grains)] * len(grains)
        elif transform == "differences":
            grains = [grains[0], *map(arrays.sum_grains, itertools.pairwise(grains))]
        for kind in range(int(classes.max()) + 1):
            members = np.flatnonzero(classes == kind)
            grain = arrays.coarsest_grain([grains[i] for i in members.tolist()])
            made.append(bin_column(values[:, members].ravel(), grain, bins))
        edges, symbols = zip(*(made[kind] for kind in classes.tolist()), strict=True)
        offsets = np.cumsum([0, *map(len, edges)]).astype(np.int64)
        sizes = np.array([*map(len, symbols)])[:, None]
        ranks, starts = np.arange(sizes.max()), np.cumsum(sizes)[:, None] - sizes
        places = np.where(ranks < sizes, starts + ranks, -1)
        return cls(transform, np.concatenate(edges), offsets, np.concatenate(symbols), places)

    def core(self, keys: Words) -> tuple[str, Floats, Ints, Words]:
        """Return the core's arguments, with what each bin adds to a pattern (or nothing)."""
        return self.transform, self.edges, self.offsets, keys

    def ordinary(self) -> Flags:
        """Return which bins hold ordinary values, in the form of `places`."""
        return np.asarray((self.spread(self.symbols) == 0) & (self.places >= 0))

    def valued(self) -> Flags:
        """Return which columns have ordinary values in more than one bin other than that of NaN."""
        # The last bin is that of NaN: an ordinary one where NaN has not been met.
        nan = self.symbols[self.places.max(axis=1)] == 0
        return np.asarray(self.ordinary().sum(axis=1) - nan > 1)

    def bins(self, sample: Array) -> Ints:
        """Return the bins of a sample's rows, each column's numbered from 0, shape of the rows."""
        values = transform_columns(sample, self.transform)
        bins = np.empty(values.shape, dtype=np.int64)
        columns = zip(values.T, np.split(self.edges, self.offsets[1:-1]), strict=True)
        for i, (entries, edges) in enumerate(columns):
            found = np.searchsorted(edges, entries, side="right")
            bins[:, i] = np.where(np.isnan(entries), edges.size + 1, found)
        return bins

    def spread(self, flat: Array) -> Array:
        """Return numbers of all bins as `(..., columns, bins)`, 0 after a column's last bin."""
        return np.where(self.places >= 0, flat[..., self.places], 0)

    def flat(self, spread: Array) -> Array:
        """Return what `spread` was made of."""
        return np.ascontiguousarray(spread[..., self.places >= 0])


def classes_of_columns(pair: Pair, transform: str, columns: int) -> Ints:
    """Return the class number of each column; inputs treat one class alike, shape `(columns,)`.

    Two entries of the output are alike when the entries of the inputs behind them are: the same
    numbers in x, and in x'. Inputs of one entry, or whose number of entries divides the columns,
    are taken to be repeated. Other inputs tell nothing: every column is a class of its own.
    """
    own = np.arange(columns)
    inputs = [_input_numbers(side) for side in (pair.x, pair.x_prime)]
    size = inputs[0].size
    if size == 0 or inputs[1].size != size or columns % size or transform == "sorted":
        return own
    parts = [np.tile(side, columns // size) for side in inputs]
    if size > 1:
        parts.append((own // size).astype(np.float64))
    if transform == "differences":
        parts += [np.concatenate([[np.inf], part[:-1]]) for part in parts]
    seen: dict[tuple[float, ...], int] = {}
    entries = zip(*(part.tolist() for part in parts), strict=True)
    return np.array([seen.setdefault(entry, len(seen)) for entry in entries])


def _input_numbers(side: Any) -> Floats:
    """Return an input's numbers in a row; none if it does not hold numbers."""
    try:
        # numpy cannot reach every tensor.
        entries = (numpy_of(side) if is_tensor(side) else np.asarray(side)).ravel()
    except ValueError:
        # Rows of different lengths have no array.
        return np.zeros(0)
    return entries.astype(np.float64) if entries.dtype.kind in "buif" else np.zeros(0)
