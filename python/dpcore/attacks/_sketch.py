"""Scores of a long pilot in little memory: exact tails, counts at fixed edges between."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..events.above import Score, scores_of

Floats = npt.NDArray[np.float64]

_TAIL: Final = 1024


@dataclass(slots=True)
class Sketch:
    """What a threshold needs to know about the scores on one side.

    Args:
        edges: increasing thresholds at which values are counted, fixed beforehand.
        size: values seen, NaN among them.
        below: values below each edge.
        low: the smallest values, sorted.
        high: the largest values, sorted.
        finite: values that are no NaN.
    """

    edges: Floats
    size: int = 0
    finite: int = 0
    below: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    low: Floats = field(default_factory=lambda: np.empty(0))
    high: Floats = field(default_factory=lambda: np.empty(0))

    def __add__(self, other: Sketch) -> Sketch:
        """Both together; the edges are the same."""
        return Sketch(
            self.edges,
            self.size + other.size,
            self.finite + other.finite,
            self.below + other.below if self.below.size else other.below,
            np.sort(np.concatenate([self.low, other.low]))[:_TAIL],
            np.sort(np.concatenate([self.high, other.high]))[-_TAIL:],
        )

    @classmethod
    def of(cls, edges: Floats, values: Floats) -> Sketch:
        """The sketch of some values."""
        known = np.sort(values[~np.isnan(values)])
        below = np.searchsorted(known, edges).astype(np.int64)
        return cls(edges, values.size, known.size, below, known[:_TAIL], known[-_TAIL:])

    @property
    def reach(self) -> tuple[float, float]:
        """Up to where the low tail, and from where the high tail, is known in full."""
        if self.finite <= _TAIL:
            return np.inf, -np.inf
        return float(self.low[-1]), float(self.high[0])

    def count_below(self, points: Floats) -> npt.NDArray[np.int64]:
        """Values below points: edges, or points within a tail's reach."""
        reach_low, reach_high = self.reach
        counts = np.empty(points.size, np.int64)
        at_edge = np.searchsorted(self.edges, points)
        counts[:] = self.below[np.minimum(at_edge, self.edges.size - 1)] if self.edges.size else 0
        in_low, in_high = points <= reach_low, points >= reach_high
        counts[in_low] = np.searchsorted(self.low, points[in_low])
        above = self.high.size - np.searchsorted(self.high, points[in_high])
        counts[in_high] = self.finite - above
        return counts


@dataclass(frozen=True, slots=True)
class SketchScores:
    """The work on one block of a pilot: sketches of several scores.

    Args:
        scores: outputs -> values.
        edges: the edges of each.
    """

    scores: tuple[Score, ...]
    edges: tuple[Floats, ...]

    def __call__(self, outputs: npt.NDArray[Any], start: int) -> tuple[Sketch, ...]:
        """One sketch for each score."""
        return tuple(
            Sketch.of(edges, scores_of(score, outputs))
            for score, edges in zip(self.scores, self.edges, strict=True)
        )
