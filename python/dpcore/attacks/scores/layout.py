"""All columns of an output with their bins, in the form that the core reads."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ...errors import invalid
from ...events.held import numpy_of
from ...records import Pair
from ..arrays import Array, Flags, Floats, Places, Whole, Words
from ..choosing.grains import Grain, coarsest, cuts_of, summed
from ..choosing.marks import SHARE

_ALPHABET: Final = 64
"""Columns with at most so many values, each met so often, are all atoms."""
_OFTEN: Final = 8
_HEAVY: Final = 0.005
"""Elsewhere a value with this share of all is an atom, if there are at most _SENTINELS of them."""
_SENTINELS: Final = 8
_NEAR: Final = 16.0
"""An atom's bin reaches so many tolerances into a continuum around it."""
_TAILS: Final = (0.001, 0.003, 0.01, 0.03)
_OUTPUTS_PER_BIN: Final = 100
TRANSFORMS: Final = ("values", "differences", "sorted")
_EXACT: Final = 2**53
_CHUNK: Final = 2**20
"""Numbers that are converted to float64 at a time."""


@dataclass(frozen=True, slots=True)
class Column:
    """The bins of one column.

    Args:
        edges: sorted; they make one bin more than they are, and NaN has another, the last.
        symbols: what each bin says in a pattern, shape `(edges + 2,)`: 0 for ordinary values,
            another number for each atom, and for infinities and NaN if they occur.
    """

    edges: Floats
    symbols: Whole


def column(values: Floats, grain: Grain, bins: int) -> Column:
    """The bins of a column.

    Args:
        values: a sample of its values on both sides, in any order, shape `(size,)`.
        grain: what rounding may move a value by.
        bins: quantile bins wanted for ordinary values, beside those in the tails.

    Returns:
        The bins; at least one, and the one for NaN.
    """
    finite = np.sort(values[np.isfinite(values)])
    gaps = cuts_of(finite, grain)
    sizes = np.diff(np.concatenate([[0], gaps + 1, [finite.size]]))
    heavy = _heavy(sizes)
    ordinary = int(sizes[~heavy].sum())
    # A gap is wanted on either side of an atom, and near every quantile of the rest.
    wanted = heavy[:-1] | heavy[1:]
    if ordinary:
        reached = np.cumsum(np.where(heavy, 0, sizes))[:-1]
        targets = _levels(bins, ordinary) * ordinary
        if wanted.size:
            wanted[_nearest(reached, targets)] = True
    inner = _edges(finite, gaps, heavy, wanted, grain)
    # Which cluster begins each bin tells whether the bin is an atom.
    first = np.concatenate([[0], np.flatnonzero(wanted) + 1]).astype(np.intp)
    atoms = heavy[first]
    symbols = np.where(atoms, np.cumsum(atoms), 0)
    return _with_others(values, inner, symbols.astype(np.int64))


def _edges(values: Floats, gaps: Places, heavy: Flags, wanted: Flags, grain: Grain) -> Floats:
    """An edge in each gap wanted; one beside an atom in a continuum is near the atom."""
    low, high = values[gaps[wanted]], values[gaps[wanted] + 1]
    reach = np.full(low.shape, np.inf) if grain.exact else _NEAR * grain.at(low)
    before, after = heavy[:-1][wanted], heavy[1:][wanted]
    share = SHARE * (high - low)
    edges = np.where(before & ~after, low + np.minimum(share, reach), low + share)
    return np.where(after & ~before, high - np.minimum(high - low - share, reach), edges)


def _heavy(sizes: Whole) -> Flags:
    """Return which clusters of equal values are atoms, from the number of values of each."""
    if sizes.size <= _ALPHABET and sizes.sum() >= _OFTEN * sizes.size:
        return np.ones(sizes.size, dtype=np.bool_)
    heavy: Flags = sizes >= max(_OFTEN, _HEAVY * float(sizes.sum()))
    return heavy if np.count_nonzero(heavy) <= _SENTINELS else np.zeros_like(heavy)


def _levels(bins: int, size: int) -> Floats:
    """Return the levels of the cuts, as shares: even, and closer in the tails."""
    bins = max(1, min(bins, size // _OUTPUTS_PER_BIN))
    even = np.arange(1, bins) / bins
    tails = np.array([level for level in _TAILS if level < 1.0 / bins and level * size >= 4.0])
    return np.concatenate([tails, even, 1.0 - tails])


def _nearest(reached: Whole, targets: Floats) -> Places:
    """Places in a nondecreasing sequence nearest to the targets."""
    after = np.searchsorted(reached, targets).clip(1, max(1, reached.size - 1))
    after = np.minimum(after, reached.size - 1)
    before = np.maximum(after - 1, 0)
    nearer = targets - reached[before] <= reached[after] - targets
    return np.unique(np.where(nearer, before, after))


def _with_others(values: Floats, inner: Floats, symbols: Whole) -> Column:
    """Bins of their own for infinities that occur, and the one for NaN."""
    edges, top = inner, int(symbols.max(initial=0))
    if np.isneginf(values).any():
        edges = np.concatenate([[np.finfo(np.float64).min], edges])
        symbols = np.concatenate([[top + 1], symbols])
    if np.isposinf(values).any():
        edges = np.concatenate([edges, [np.inf]])
        symbols = np.concatenate([symbols, [top + 2]])
    nan = top + 3 if np.isnan(values).any() else 0
    return Column(edges, np.concatenate([symbols, [nan]]))


def blocks(rows: Array) -> Iterator[tuple[slice, Floats]]:
    """Rows of real numbers in parts that the core can read: C-contiguous, aligned float64.

    Raises:
        ValueError: if a whole number is beyond 2**53, where float64 would round it.
    """
    if rows.dtype == np.float64 and rows.flags.c_contiguous and rows.flags.aligned:
        yield slice(0, len(rows)), rows
        return
    step = max(1, _CHUNK // max(1, rows.shape[1]))
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        if not exact(part):
            raise invalid("outputs", "within 2**53 where they are whole numbers", part)
        yield slice(start, start + len(part)), np.require(part, np.float64, ("C", "A"))


def exact(rows: Array) -> bool:
    """Whether float64 holds these numbers without rounding whole ones."""
    if rows.dtype.kind not in "iu" or rows.dtype.itemsize < 8 or rows.size == 0:
        return True
    return int(rows.max()) <= _EXACT and int(rows.min()) >= -_EXACT


def transformed(rows: Array, transform: str) -> Floats:
    """The columns of a sample of rows, as the core computes them."""
    columns = rows.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        if transform == "differences":
            columns[:, 1:] = columns[:, 1:] - columns[:, :-1]
        elif transform == "sorted":
            columns.sort(axis=1)
    return columns


@dataclass(frozen=True, slots=True)
class Layout:
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
    offsets: Whole
    symbols: Whole
    places: Whole

    @classmethod
    def of(cls, transform: str, columns: list[Column]) -> Layout:
        """The layout of these columns."""
        edges = np.concatenate([found.edges for found in columns]).astype(np.float64)
        offsets = np.cumsum([0, *(found.edges.size for found in columns)]).astype(np.int64)
        symbols = np.concatenate([found.symbols for found in columns])
        sizes = np.array([found.symbols.size for found in columns])
        ranks = np.arange(sizes.max())
        starts = np.cumsum(sizes) - sizes
        places = np.where(ranks < sizes[:, None], starts[:, None] + ranks, -1)
        return cls(transform, edges, offsets, symbols, places)

    def core(self, keys: Words) -> tuple[str, Floats, Whole, Words]:
        """The core's arguments, with what each bin adds to a pattern (or nothing)."""
        return self.transform, self.edges, self.offsets, keys

    def ordinary(self) -> Flags:
        """Which bins hold ordinary values, in the form of `places`."""
        ordinary: Flags = (self.spread(self.symbols) == 0) & (self.places >= 0)
        return ordinary

    def valued(self) -> Flags:
        """Which columns have ordinary values in more than one bin, that of NaN apart."""
        ordinary = self.ordinary()
        # The last bin is that of NaN: an ordinary one where NaN has not been met.
        last = (self.places >= 0).sum(axis=1, keepdims=True) - 1
        nan = np.take_along_axis(ordinary, last, axis=1)[:, 0]
        valued: Flags = ordinary.sum(axis=1) - nan > 1
        return valued

    def bins(self, sample: Array) -> Whole:
        """The bins of a sample's rows, each column's numbered from 0, shape of the rows."""
        values = transformed(sample, self.transform)
        bins = np.empty(values.shape, dtype=np.int64)
        for i, entries in enumerate(values.T):
            edges = self.edges[self.offsets[i] : self.offsets[i + 1]]
            found = np.searchsorted(edges, entries, side="right")
            bins[:, i] = np.where(np.isnan(entries), edges.size + 1, found)
        return bins

    def spread(self, flat: Array) -> Array:
        """Numbers of all bins as `(..., columns, bins)`, 0 after a column's last bin."""
        return np.where(self.places >= 0, flat[..., self.places], 0)

    def flat(self, spread: Array) -> Array:
        """The opposite of `spread`."""
        held = self.places >= 0
        flat = np.zeros((*spread.shape[:-2], self.symbols.size))
        flat[..., self.places[held]] = spread[..., held]
        return flat


def layout(
    sample: Array, transform: str, grains: Sequence[Grain], bins: int, classes: Whole
) -> Layout:
    """The layout of a sample's columns; those of one class have the same bins.

    Args:
        sample: outputs of both sides, shape `(size, columns)`.
        transform: one of `TRANSFORMS`.
        grains: of the outputs' columns.
        bins: see `column`.
        classes: the class of every column, shape `(columns,)`.

    Returns:
        The layout.
    """
    values, grains = transformed(sample, transform), _moved(grains, transform)
    made = {}
    for kind in np.unique(classes):
        of_kind = coarsest([grains[i] for i in np.flatnonzero(classes == kind).tolist()])
        made[int(kind)] = column(values[:, classes == kind].ravel(), of_kind, bins)
    return Layout.of(transform, [made[int(kind)] for kind in classes])


def _moved(grains: Sequence[Grain], transform: str) -> Sequence[Grain]:
    """The grains of the columns of a transform."""
    if transform == "sorted":
        return [coarsest(grains)] * len(grains)
    if transform == "differences":
        return [grains[0], *(summed(pair) for pair in itertools.pairwise(grains))]
    return grains


def alike(pair: Pair, transform: str, columns: int) -> Whole:
    """Classes of columns that the inputs treat alike, shape `(columns,)`.

    Two entries of the output are alike when the entries of the inputs behind them are: the same
    numbers in x, and in x'. Inputs of one entry, or whose number of entries divides the columns,
    are taken to be repeated. Other inputs tell nothing: every column is a class of its own.
    """
    own = np.arange(columns)
    inputs = [_numbers_of(side) for side in (pair.x, pair.x_prime)]
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


def _numbers_of(side: Any) -> Floats:
    """An input's numbers in a row; none if it does not hold numbers."""
    try:
        # numpy cannot reach every tensor.
        entries = (numpy_of(side) if hasattr(side, "detach") else np.asarray(side)).ravel()
    except ValueError:
        # Rows of different lengths have no array.
        return np.zeros(0)
    return entries.astype(np.float64) if entries.dtype.kind in "buif" else np.zeros(0)
