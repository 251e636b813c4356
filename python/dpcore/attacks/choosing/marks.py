"""Thresholds worth trying between the values of a score, and what rounding leaves of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from ..arrays import Array, Floats, Whole
from .grains import APART, EXACT, SAME, Grain, steps_of

SHARE: Final = 0.381966011250105
"""Place of a threshold in its gap: not at a simple fraction, where an unseen atom may sit."""
_MAX_THRESHOLDS: Final = 400
_DENSE_RANKS: Final = 48
"""Ranks from either end that are all tried; beyond, they grow by _RATIO."""
_RANK_GROWTH: Final = 1.06


def sorted_values(values: Floats) -> Floats:
    """Sort values, without NaN."""
    found = np.sort(values)
    # NaN comes last.
    return found[: found.size - int(np.count_nonzero(np.isnan(found)))]


def scale_of(*arrays: Array) -> float:
    """Return the largest finite magnitude in arrays of numbers; 0 for anything else."""
    largest = 0.0
    for array in arrays:
        if array.dtype.kind in "iubf" and array.size:
            ends = float(array.max()), float(array.min())
            # Most arrays hold only finite numbers, and are not copied then.
            if not all(map(math.isfinite, ends)):
                finite = array[np.isfinite(array)]
                ends = float(finite.max(initial=0.0)), float(finite.min(initial=0.0))
            largest = max(largest, *map(abs, ends))
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


def marks_of(values: Floats, values_prime: Floats, grain: Grain = EXACT) -> Marks:
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
    # Infinities lie beyond every finite value, one unit of scale away.
    reach = max(1.0, scale_of(finite))
    pooled = np.clip(pooled, -2.0 * reach, 2.0 * reach)
    steps = steps_of(pooled, grain)
    gaps = np.flatnonzero(steps == APART)
    if gaps.size > _MAX_THRESHOLDS:
        places = np.searchsorted(gaps, _list_ranks(pooled.size))
        gaps = np.unique(gaps[np.minimum(places, gaps.size - 1)])
    clean = gaps.size
    if clean + 1 < pooled.size:
        rounded = np.flatnonzero(steps != APART)
        rounded = rounded[pooled[rounded + 1] > pooled[rounded]]
        places = np.searchsorted(rounded, _list_ranks(pooled.size))
        gaps = np.append(gaps, np.unique(rounded[places[places < rounded.size]]))
    points = pooled[gaps] + SHARE * (pooled[gaps + 1] - pooled[gaps])
    order = np.argsort(points, kind="stable")
    points = points[order]
    if clean == gaps.size:
        return Marks(points, points, points, grain)
    # Between two copies of one number nothing is left of an event.
    moved = np.where(steps[gaps[order]] == SAME, np.inf, grain.at(points))
    tolerance = np.where(order < clean, 0.0, moved)
    return Marks(points, points - tolerance, points + tolerance, grain)


def list_thresholds(values: Floats, values_prime: Floats, grain: Grain = EXACT) -> Floats:
    """Return the thresholds of `marks_of` that lie in wide gaps; all of them where none does."""
    marks = marks_of(values, values_prime, grain)
    clean: Floats = marks.points[marks.lows == marks.points]
    return clean if clean.size else marks.points


def _list_ranks(size: int) -> Whole:
    """Return ranks from either end: each of the first, then a geometric sequence to the middle."""
    steps = max(1, int(np.log(max(2.0, size / (2 * _DENSE_RANKS))) / np.log(_RANK_GROWTH)))
    tail = np.geomspace(_DENSE_RANKS, max(_DENSE_RANKS, size / 2), steps + 1)
    ranks = np.concatenate([np.arange(_DENSE_RANKS), tail]).astype(np.int64)
    return np.unique(np.concatenate([ranks, size - 2 - ranks]).clip(0, size - 2))
