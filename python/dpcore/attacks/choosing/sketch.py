"""Scores of a long pilot in little memory: exact tails, counts at fixed edges between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...events.above import Score, scores_of
from ...sampling.tally import binned
from ..reading.parts import remembering

Floats = npt.NDArray[np.float64]

_TAIL: Final = 2048
"""Values expected in a tail."""
_FEWEST: Final = 8
"""Values of a first look beyond which a tail begins, at least: its place is known that well."""


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """What a sketch keeps, fixed before the values that it sketches are seen.

    Args:
        edges: increasing thresholds at which values are counted.
        low: values below it are kept.
        high: values above it are kept.
    """

    edges: Floats
    low: float = np.inf
    high: float = -np.inf

    @classmethod
    def of(cls, edges: Floats, sides: tuple[Floats, Floats], size: int) -> Frame:
        """The frame for `size` more values a side, from sorted ones of a first look."""
        values, values_prime = sides
        fewest = min(values.size, values_prime.size)
        rank = _FEWEST + _TAIL * fewest // max(1, size)
        if 2 * rank >= fewest:
            return cls(edges)
        low = min(values[rank], values_prime[rank])
        return cls(edges, float(low), float(max(values[-1 - rank], values_prime[-1 - rank])))


@dataclass(frozen=True, slots=True, eq=False)
class Sketch:
    """What a threshold needs to know about the scores on one side.

    Args:
        frame: what is kept.
        size: values seen, NaN among them.
        counts: values in each bin of the frame.
        low: the values below the frame's low end, sorted.
        high: the values above its high end, sorted.
    """

    frame: Frame
    size: int
    counts: npt.NDArray[np.int64]
    low: Floats
    high: Floats

    @classmethod
    def of(cls, frame: Frame, values: Floats) -> Sketch:
        """The sketch of some values."""
        low = np.sort(values[values < frame.low])
        high = np.sort(values[values > frame.high])
        return cls(frame, values.size, binned(values, frame.edges), low, high)

    @classmethod
    def total(cls, parts: Sequence[Sketch]) -> Sketch:
        """All parts together, at least one; they have one frame."""
        low = np.sort(np.concatenate([part.low for part in parts]))
        high = np.sort(np.concatenate([part.high for part in parts]))
        counts = np.sum([part.counts for part in parts], axis=0)
        return cls(parts[0].frame, sum(part.size for part in parts), counts, low, high)

    @property
    def edges(self) -> Floats:
        """The frame's edges."""
        return self.frame.edges

    @property
    def finite(self) -> int:
        """Values that are no NaN."""
        return int(self.counts.sum())

    def count_below(self, points: Floats) -> npt.NDArray[np.int64]:
        """Values below points: edges, or points in a tail."""
        below = np.cumsum(self.counts)
        found = below[np.searchsorted(self.edges, points)]
        in_low, in_high = points <= self.frame.low, points > self.frame.high
        found[in_low] = np.searchsorted(self.low, points[in_low])
        above = self.high.size - np.searchsorted(self.high, points[in_high])
        found[in_high] = below[-1] - above
        return found


@dataclass(frozen=True, slots=True)
class SketchScores:
    """The work on one block of a pilot: sketches of several scores.

    Args:
        scores: outputs -> values.
        frames: the frame of each.
    """

    scores: tuple[Score, ...]
    frames: tuple[Frame, ...]

    def __call__(self, outputs: npt.NDArray[Any], start: int) -> tuple[Sketch, ...]:
        """One sketch for each score."""
        with remembering():
            return tuple(
                Sketch.of(frame, scores_of(score, outputs))
                for score, frame in zip(self.scores, self.frames, strict=True)
            )
