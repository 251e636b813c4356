"""Counts on one block: the event, and evidence for the independence checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import _core
from ..events import EventRecord, event_of
from ..events.event import (
    DeviceScores,
    Event,
    Held,
    Score,
    Seen,
    evaluate_event,
    hits_of,
    move_to_host,
    score_held,
    scores_of,
)
from ..records import Floats, Record, frozen_array
from .rows import Evidence

_TAIL_VALUES: Final = 2048
"""Expected number of values in a tail."""
_MIN_TAIL_RANK: Final = 8
"""Least number of values of a first sample in a tail, so that the tail's end is well known."""


@dataclass(frozen=True, slots=True)
class Watch:
    """Further count in addition to the event, on the first trials only.

    Args:
        tally: object that counts.
        limit: number of trials on which it counts, fixed in advance.
    """

    tally: Curve | Hits
    limit: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Curve(Record, word="Curve"):
    """Counts of outputs with a score at or above each of several thresholds.

    Args:
        score: function from outputs to scores.
        thresholds: increasing thresholds, fixed by the pilot, shape `(m,)`.
    """

    score: Score
    thresholds: Floats

    def __post_init__(self) -> None:
        """Freeze the thresholds."""
        object.__setattr__(self, "thresholds", frozen_array(np.asarray(self.thresholds)))

    def __call__(self, outputs: npt.NDArray[Any] | Held) -> tuple[int, ...]:
        """Count the scores at or above every threshold; NaN is not counted."""
        scores = score_held(self.score, outputs) if isinstance(outputs, Held) else None
        return self.of_scores(
            scores_of(self.score, move_to_host(outputs)) if scores is None else scores
        )

    def of_scores(self, scores: Floats | DeviceScores) -> tuple[int, ...]:
        """Count the given scores at or above every threshold."""
        if isinstance(scores, DeviceScores):
            return scores.above(self.thresholds)
        counts = count_bins(scores, self.thresholds)
        return tuple((counts.sum() - np.cumsum(counts)[:-1]).tolist())


@dataclass(frozen=True, slots=True)
class Hits:
    """Count of the occurrences of one event, as a further count."""

    event: Event

    def __call__(self, outputs: npt.NDArray[Any] | Held) -> tuple[int, ...]:
        """Count the occurrences of the event."""
        if isinstance(outputs, Held):
            return event_of(self.event).seen(outputs, "the mechanism").hits[:1]
        return (hits_of(evaluate_event(self.event, outputs)),)


def count_after_event(
    tally: Curve | Hits,
    outputs: npt.NDArray[Any] | Held,
    score: Score | None,
    scores: Floats | DeviceScores | None,
) -> tuple[int, ...]:
    """Make a further count; a curve of the event's own score reuses the known scores."""
    if isinstance(tally, Curve) and scores is not None and score is tally.score:
        return tally.of_scores(scores)
    return tally(outputs)


@dataclass(slots=True)
class Tally:
    """Counts of a run of trials on one side.

    Args:
        rows: number of trials.
        hits: hits of the event; for an event that pools coordinates, then one count per group.
        nan: number of output entries that were NaN.
        watched: counts of every further count.
        watched_rows: numbers of trials of these counts.
        evidence: evidence on the independence of the rows.
    """

    rows: int = 0
    hits: tuple[int, ...] = ()
    nan: int = 0
    watched: tuple[tuple[int, ...], ...] = ()
    watched_rows: tuple[int, ...] = ()
    evidence: Evidence = field(default_factory=Evidence)

    def __iadd__(self, other: Tally) -> Tally:
        """Add the counts of later trials."""
        both = tuple(map(_add_counts, self.watched, other.watched))
        self.watched = both if self.rows and other.rows else other.watched or self.watched
        self.rows += other.rows
        self.hits = _add_counts(self.hits, other.hits)
        self.nan += other.nan
        self.watched_rows = _add_counts(self.watched_rows, other.watched_rows)
        self.evidence += other.evidence
        return self

    def __add__(self, other: Tally) -> Tally:
        """Return the sum of both counts."""
        both = Tally()
        both += self
        both += other
        return both


def _add_counts(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    if not first or not second:
        return first or second
    return tuple(a + b for a, b in zip(first, second, strict=True))


@dataclass(frozen=True, slots=True)
class TallyRows:
    """Work on one block: it counts the event and the further counts on the outputs.

    Args:
        event: the event to count.
        name: name of the mechanism in error messages.
        watches: further counts.
        origin: first trial of the audit, from which on rows are compared. None means no comparison.
        block: number of trials in a block.
    """

    event: Event
    name: str
    watches: tuple[Watch, ...] = ()
    origin: int | None = None
    block: int = 1

    @staticmethod
    def join(parts: list[Tally]) -> Tally:
        """Return the counts of several blocks together."""
        total = Tally()
        for part in parts:
            total += part
        return total

    def __call__(self, outputs: npt.NDArray[Any] | Held, start: int) -> Tally:
        """Count the outputs of one block; its first trial is `start`."""
        event = event_of(self.event)
        answers = event.seen(outputs, self.name)
        watched, rows = [], []
        for watch in self.watches:
            some, scores = outputs, answers.scores
            if watch.limit - start < len(outputs):
                some = outputs[: max(0, watch.limit - start)]
                scores = None if scores is None else scores[: len(some)]
            facts = watch.tally, some, event.own_score, scores
            watched.append(count_after_event(*facts) if len(some) else ())
            rows.append(len(some))
        evidence = Evidence()
        if self.origin is not None:
            evidence = self._evidence(event, outputs, start - self.origin, answers)
        return Tally(len(outputs), answers.hits, answers.nan, tuple(watched), tuple(rows), evidence)

    def _evidence(
        self, event: EventRecord, outputs: npt.NDArray[Any] | Held, since: int, event_answers: Seen
    ) -> Evidence:
        """Collect the evidence on a block's independence, from known event answers if possible."""
        number = since // self.block
        if event_answers.answers is not None:
            return Evidence.of_answers(outputs, since, number, event_answers.answers)

        def hits(first: int, end: int) -> int:
            return event.seen(outputs[first:end], self.name).hits[0]

        def answers(end: int) -> npt.NDArray[np.bool_]:
            return event(move_to_host(outputs[:end]))

        return Evidence.of(outputs, since, number, hits, answers)


def count_bins(values: Floats, edges: Floats) -> npt.NDArray[np.int64]:
    """Count the values in each bin between increasing edges; NaN is not in any bin.

    A bin includes its lower edge. The result has shape `(edges + 1,)`.
    """
    counts = np.empty(edges.size + 1, np.uint64)
    _core.bin_counts(
        np.require(values, None, ("C", "A")), np.require(edges, None, ("C", "A")), counts
    )
    return counts.astype(np.int64)


class Frame(NamedTuple):
    """Cells of a sketch, fixed before the counted values are known.

    Args:
        edges: increasing thresholds between the cells.
        low: values below it are kept individually.
        high: values above it are kept individually.
    """

    edges: Floats
    low: float = np.inf
    high: float = -np.inf

    @classmethod
    def of(cls, edges: Floats, sides: tuple[Floats, Floats], size: int) -> Frame:
        """Return the frame for `size` more values per side, from sorted first values."""
        values, values_prime = sides
        fewest = min(values.size, values_prime.size)
        rank = _MIN_TAIL_RANK + _TAIL_VALUES * fewest // max(1, size)
        if 2 * rank >= fewest:
            return cls(edges)
        low = min(values[rank], values_prime[rank])
        return cls(edges, float(low), float(max(values[-1 - rank], values_prime[-1 - rank])))


class Sketch(NamedTuple):
    """Scores of one side, as counts in the cells of a frame.

    Args:
        frame: the cells, and the tails in which values are kept.
        size: number of values, including NaN.
        counts: number of values in each bin of the frame.
        low: sorted values below the frame's low end.
        high: sorted values above the frame's high end.
    """

    frame: Frame
    size: int
    counts: npt.NDArray[np.int64]
    low: Floats
    high: Floats

    @classmethod
    def of(cls, frame: Frame, values: Floats) -> Sketch:
        """Return the sketch of some values."""
        low = np.sort(values[values < frame.low])
        high = np.sort(values[values > frame.high])
        return cls(frame, values.size, count_bins(values, frame.edges), low, high)

    @classmethod
    def total(cls, parts: Sequence[Sketch]) -> Sketch:
        """Return the sum of all sketches, at least one, which have the same frame."""
        low = np.sort(np.concatenate([part.low for part in parts]))
        high = np.sort(np.concatenate([part.high for part in parts]))
        counts = np.sum([part.counts for part in parts], axis=0)
        return cls(parts[0].frame, sum(part.size for part in parts), counts, low, high)

    @property
    def finite(self) -> int:
        """Number of values that are not NaN."""
        return int(self.counts.sum())

    def count_below(self, points: Floats) -> npt.NDArray[np.int64]:
        """Count the values below points, which are edges or lie in a tail."""
        below = np.cumsum(self.counts)
        inside = below[np.searchsorted(self.frame.edges, points)]
        in_low = np.searchsorted(self.low, points)
        in_high = below[-1] - self.high.size + np.searchsorted(self.high, points)
        counts = np.where(points <= self.frame.low, in_low, inside)
        return np.where(points > self.frame.high, in_high, counts)
