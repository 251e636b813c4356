"""The bins of one column of outputs.

A column's bins are made on a sample of pilot outputs: one for each *atom* (a value of a small
alphabet, or one that stands out of a continuum, such as a sentinel) and quantile bins, dense in
both tails, for the rest. Edges lie in gaps between clusters of equal values, so that rounding
never moves an output across one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from ..choosing.grains import Grain, cuts_of
from .columns import Floats

Whole = npt.NDArray[np.int64]


_SHARE: Final = 0.381966011250105
"""Where an edge lies in its gap: no simple fraction, where an unseen atom may sit."""
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


def _edges(
    values: Floats,
    gaps: npt.NDArray[np.intp],
    heavy: npt.NDArray[np.bool_],
    wanted: npt.NDArray[np.bool_],
    grain: Grain,
) -> Floats:
    """An edge in each gap wanted; one beside an atom in a continuum is near the atom."""
    low, high = values[gaps[wanted]], values[gaps[wanted] + 1]
    reach = np.full(low.shape, np.inf) if grain.exact else _NEAR * grain.at(low)
    before, after = heavy[:-1][wanted], heavy[1:][wanted]
    share = _SHARE * (high - low)
    edges = np.where(before & ~after, low + np.minimum(share, reach), low + share)
    near: Floats = np.where(after & ~before, high - np.minimum(high - low - share, reach), edges)
    return near


def _heavy(sizes: Whole) -> npt.NDArray[np.bool_]:
    """Which clusters of equal values are atoms, from how many values each has."""
    if sizes.size <= _ALPHABET and sizes.sum() >= _OFTEN * sizes.size:
        return np.ones(sizes.size, dtype=np.bool_)
    heavy: npt.NDArray[np.bool_] = sizes >= max(_OFTEN, _HEAVY * float(sizes.sum()))
    return heavy if np.count_nonzero(heavy) <= _SENTINELS else np.zeros_like(heavy)


def _levels(bins: int, size: int) -> Floats:
    """Where to cut, as shares: evenly, and more closely in the tails."""
    bins = max(1, min(bins, size // _OUTPUTS_PER_BIN))
    even = np.arange(1, bins) / bins
    tails = np.array([level for level in _TAILS if level < 1.0 / bins and level * size >= 4.0])
    levels: Floats = np.concatenate([tails, even, 1.0 - tails])
    return levels


def _nearest(reached: Whole, targets: Floats) -> npt.NDArray[np.intp]:
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
