"""Counts of an event in a block of outputs, with data for tests of independence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import _core
from ..events import EventRecord, event_of
from ..events.event import (
    Batch,
    DeviceScores,
    Event,
    Score,
    Seen,
    evaluate_event,
    hits_of,
    move_to_host,
    score_held,
    scores_of,
)
from ..records import Floats, Record, frozen_array
from .rows import IndependenceSums

_TAIL_VALUES: Final = 2048
"""Expected number of values in a tail."""
_MIN_TAIL_RANK: Final = 8
"""Least number of values of a first sample in a tail, so that the tail's limit is well known."""


@dataclass(frozen=True, slots=True)
class Watch:
    """Additional count on the first trials of an audit, besides the count of the event.

    Args:
        tally: object that counts outputs in one event (`Hits`) or several events (`Curve`).
        limit: number of trials on which `tally` counts, fixed before the draws.
    """

    tally: Curve | Hits
    limit: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Curve(Record, word="Curve"):
    """Function that counts, for each of many thresholds, the outputs with a score at or above it.

    Args:
        score: function that returns a number (the score) for each output.
        thresholds: increasing thresholds, computed from the pilot (the first draws), shape `(m,)`.
    """

    score: Score
    thresholds: Floats

    def __post_init__(self) -> None:
        """Make the array of thresholds read-only."""
        object.__setattr__(self, "thresholds", frozen_array(np.asarray(self.thresholds)))

    def __call__(self, outputs: npt.NDArray[Any] | Batch) -> tuple[int, ...]:
        """Return, for each threshold, the number of outputs with a score of at least the threshold.

        A score that is NaN is not counted.
        """
        scores = score_held(self.score, outputs) if isinstance(outputs, Batch) else None
        return self.count_scores_at_least(
            scores_of(self.score, move_to_host(outputs)) if scores is None else scores
        )

    def count_scores_at_least(self, scores: Floats | DeviceScores) -> tuple[int, ...]:
        """Count the scores that are at least as large as a threshold, for each threshold."""
        if isinstance(scores, DeviceScores):
            return scores.count_at_or_above(self.thresholds)
        counts = count_bins(scores, self.thresholds)
        return tuple((counts.sum() - np.cumsum(counts)[:-1]).tolist())


@dataclass(frozen=True, slots=True)
class Hits:
    """Function that counts the outputs in a second event, besides the main event of an audit."""

    event: Event

    def __call__(self, outputs: npt.NDArray[Any] | Batch) -> tuple[int, ...]:
        """Count the outputs that are in the event."""
        if isinstance(outputs, Batch):
            return event_of(self.event).seen(outputs, "the mechanism").hits[:1]
        return (hits_of(evaluate_event(self.event, outputs)),)


def count_apart_from_main_event(
    tally: Curve | Hits,
    outputs: npt.NDArray[Any] | Batch,
    score: Score | None,
    scores: Floats | DeviceScores | None,
) -> tuple[int, ...]:
    """Count outputs with a `Curve` or `Hits`, in addition to the main event of an audit.

    Args:
        tally: the object that counts.
        outputs: outputs of a block.
        score: score function of the main event, or None.
        scores: scores of the outputs that the main event has computed, or None. These scores are
            used if `tally` is a `Curve` with the same score function.
    """
    if isinstance(tally, Curve) and scores is not None and score is tally.score:
        return tally.count_scores_at_least(scores)
    return tally(outputs)


@dataclass(slots=True)
class Tally:
    """Counts of the outputs of some trials on one input (x or x').

    Args:
        rows: number of trials (each trial has one output on this input).
        hits: number of outputs in the event. If the event has groups of coordinates that are
            counted together, further entries are the counts of these groups.
        nan: number of entries of the outputs that were NaN.
        watched: result of each additional count (`Watch`).
        watched_rows: number of trials on which each additional count was made.
        evidence: sums for tests that the outputs are independent.
    """

    rows: int = 0
    hits: tuple[int, ...] = ()
    nan: int = 0
    watched: tuple[tuple[int, ...], ...] = ()
    watched_rows: tuple[int, ...] = ()
    evidence: IndependenceSums = field(default_factory=IndependenceSums)

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
        """Return the sum of two tallies."""
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
    """Function that counts an event, and additional events, in the outputs of a block.

    Args:
        event: the main event to count.
        name: name of the mechanism in error messages.
        watches: additional counts.
        origin: number of the first counted trial of the audit. From this trial on, outputs are
            tested for independence. None means no tests.
        block: number of trials in a block.
    """

    event: Event
    name: str
    watches: tuple[Watch, ...] = ()
    origin: int | None = None
    block: int = 1

    @staticmethod
    def join(parts: list[Tally]) -> Tally:
        """Return the sum of the counts of several blocks."""
        total = Tally()
        for part in parts:
            total += part
        return total

    def __call__(self, outputs: npt.NDArray[Any] | Batch, start: int) -> Tally:
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
            watched.append(count_apart_from_main_event(*facts) if len(some) else ())
            rows.append(len(some))
        evidence = IndependenceSums()
        if self.origin is not None:
            evidence = self._collect_independence_sums(event, outputs, start - self.origin, answers)
        return Tally(len(outputs), answers.hits, answers.nan, tuple(watched), tuple(rows), evidence)

    def _collect_independence_sums(
        self, event: EventRecord, outputs: npt.NDArray[Any] | Batch, since: int, event_answers: Seen
    ) -> IndependenceSums:
        """Collect the sums for tests of independence in a block.

        If it is known which outputs are in the event, the event is not evaluated again.
        """
        number = since // self.block
        if event_answers.answers is not None:
            return IndependenceSums.of_event_answers(outputs, since, number, event_answers.answers)

        def hits(first: int, end: int) -> int:
            return event.seen(outputs[first:end], self.name).hits[0]

        def answers(end: int) -> npt.NDArray[np.bool_]:
            return event(move_to_host(outputs[:end]))

        return IndependenceSums.of(outputs, since, number, hits, answers)


def count_bins(values: Floats, edges: Floats) -> npt.NDArray[np.int64]:
    """Count the values in each bin of a histogram. NaN is not counted.

    The first bin is below all edges, and the last bin is above all edges. A value that is equal to
    an edge belongs to the bin above the edge. The result has shape `(edges + 1,)`.

    Args:
        values: the values.
        edges: increasing edges between bins.
    """
    counts = np.empty(edges.size + 1, np.uint64)
    _core.bin_counts(
        np.require(values, None, ("C", "A")), np.require(edges, None, ("C", "A")), counts
    )
    return counts.astype(np.int64)


class Frame(NamedTuple):
    """Bins of a histogram, fixed before the values are counted.

    Args:
        edges: increasing edges of the bins.
        low: limit of the lower tail. Each value below `low` is also stored.
        high: limit of the upper tail. Each value above `high` is also stored.
    """

    edges: Floats
    low: float = np.inf
    high: float = -np.inf

    @classmethod
    def of(cls, edges: Floats, pilot_values: tuple[Floats, Floats], later_size: int) -> Frame:
        """Choose the two tail limits of a histogram before its values are known.

        The limits are chosen from other values, which are called the first values here.

        Args:
            edges: increasing edges of the bins.
            pilot_values: sorted first values on x, and sorted first values on x'.
            later_size: number of values on each input that the histogram will count later.
        """
        values, values_prime = pilot_values
        fewest = min(values.size, values_prime.size)
        rank = _MIN_TAIL_RANK + _TAIL_VALUES * fewest // max(1, later_size)
        if 2 * rank >= fewest:
            return cls(edges)
        low = min(values[rank], values_prime[rank])
        return cls(edges, float(low), float(max(values[-1 - rank], values_prime[-1 - rank])))


class Sketch(NamedTuple):
    """Histogram of the scores on one input (x or x'), with all values in the two tails.

    Args:
        frame: the bins of the histogram, and the limits of the two tails.
        size: number of all values, including NaN.
        counts: number of values in each bin of the frame.
        low: sorted values below `frame.low`.
        high: sorted values above `frame.high`.
    """

    frame: Frame
    size: int
    counts: npt.NDArray[np.int64]
    low: Floats
    high: Floats

    @classmethod
    def of(cls, frame: Frame, values: Floats) -> Sketch:
        """Return the histogram of `values` with the bins of `frame`."""
        low = np.sort(values[values < frame.low])
        high = np.sort(values[values > frame.high])
        return cls(frame, values.size, count_bins(values, frame.edges), low, high)

    @classmethod
    def total(cls, parts: Sequence[Sketch]) -> Sketch:
        """Return the sum of one or more histograms with the same bins."""
        low = np.sort(np.concatenate([part.low for part in parts]))
        high = np.sort(np.concatenate([part.high for part in parts]))
        counts = np.sum([part.counts for part in parts], axis=0)
        return cls(parts[0].frame, sum(part.size for part in parts), counts, low, high)

    @property
    def non_nan_count(self) -> int:
        """Number of values in the histogram that are not NaN."""
        return int(self.counts.sum())

    def count_below(self, points: Floats) -> npt.NDArray[np.int64]:
        """Count the values of the histogram below each of several points.

        Each point must be an edge of the bins, or lie in one of the two tails.
        """
        below = np.cumsum(self.counts)
        inside = below[np.searchsorted(self.frame.edges, points)]
        in_low = np.searchsorted(self.low, points)
        in_high = below[-1] - self.high.size + np.searchsorted(self.high, points)
        counts = np.where(points <= self.frame.low, in_low, inside)
        return np.where(points > self.frame.high, in_high, counts)
