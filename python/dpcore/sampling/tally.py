"""What is counted on one block of outputs: an event, and what is watched beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import invalid, mistyped
from ..events import Above, Vote
from ..events.above import scores_of
from ..records import Record, frozen_array
from .rows import Evidence

Event = Callable[[npt.NDArray[Any]], npt.NDArray[np.bool_]]


@dataclass(frozen=True, slots=True)
class Watch:
    """Something counted beside the event, on the first trials only.

    Args:
        tally: outputs -> counts, a tuple of ints.
        limit: trials on which it is counted, fixed in advance.
    """

    tally: Callable[[npt.NDArray[Any]], tuple[int, ...]]
    limit: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Curve(Record):
    """How many outputs score at or above each of several thresholds.

    Args:
        score: outputs -> scores.
        thresholds: increasing, fixed by the pilot, shape `(m,)`.
    """

    score: Any
    thresholds: npt.NDArray[np.float64]

    def __post_init__(self) -> None:
        """Freeze the thresholds."""
        object.__setattr__(self, "thresholds", frozen_array(np.asarray(self.thresholds)))

    def __call__(self, outputs: npt.NDArray[Any]) -> tuple[int, ...]:
        """Counts at every threshold; a score that is NaN is above none."""
        return self.of_scores(scores_of(self.score, outputs))

    def of_scores(self, scores: npt.NDArray[np.float64]) -> tuple[int, ...]:
        """The same from the scores."""
        counts = binned(scores, self.thresholds)
        return tuple((counts.sum() - np.cumsum(counts)[:-1]).tolist())


@dataclass(frozen=True, slots=True)
class Hits:
    """How often one event happened, as a watch."""

    event: Event

    def __call__(self, outputs: npt.NDArray[Any]) -> tuple[int, ...]:
        """One count."""
        return (int(np.count_nonzero(happened(self.event, outputs))),)


@dataclass(slots=True)
class Tally:
    """Counts of a run of trials on one side.

    Args:
        rows: trials.
        hits: of the event; then, for an event that pools coordinates, one count a group.
        nan: entries of outputs that were NaN.
        watched: counts of every watch, and the trials they come from.
        evidence: what says whether the rows are independent.
    """

    rows: int = 0
    hits: tuple[int, ...] = ()
    nan: int = 0
    watched: tuple[tuple[int, ...], ...] = ()
    watched_rows: tuple[int, ...] = ()
    evidence: Evidence = field(default_factory=Evidence)

    def __iadd__(self, other: Tally) -> Tally:
        """Take in the counts of later trials."""
        both = tuple(map(_sum, self.watched, other.watched))
        self.watched = both if self.rows else other.watched
        self.rows += other.rows
        self.hits = _sum(self.hits, other.hits)
        self.nan += other.nan
        self.watched_rows = _sum(self.watched_rows, other.watched_rows)
        self.evidence += other.evidence
        return self

    def __add__(self, other: Tally) -> Tally:
        """The counts of both."""
        both = Tally()
        both += self
        both += other
        return both


def _sum(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    if not first or not second:
        return first or second
    return tuple(a + b for a, b in zip(first, second, strict=True))


@dataclass(frozen=True, slots=True)
class TallyRows:
    """The work on one block: counts the event on its outputs, and what is watched.

    Args:
        event: what is counted.
        name: what complaints call the mechanism.
        watches: counted beside it.
        origin: first trial of the audit, from which on rows are compared; None compares none.
    """

    event: Event
    name: str
    watches: tuple[Watch, ...] = ()
    origin: int | None = None

    def __call__(self, outputs: npt.NDArray[Any], start: int) -> Tally:
        """Count one block's outputs, the first of which is trial `start`."""
        scores = answers = None
        if type(self.event) is Above:
            scores = scores_of(self.event.score, outputs)
            answers = self.event.of_scores(scores)
        elif type(self.event) is not Vote:
            answers = happened(self.event, outputs)
        hits, nan = count_rows(self.event, outputs, self.name, answers)
        watched, rows = [], []
        for watch in self.watches:
            seen = outputs[: max(0, watch.limit - start)]
            watched.append(self._watched(watch, seen, scores) if len(seen) else ())
            rows.append(len(seen))
        evidence = Evidence() if self.origin is None else self._evidence(outputs, start, answers)
        return Tally(len(outputs), hits, nan, tuple(watched), tuple(rows), evidence)

    def _evidence(
        self, outputs: npt.NDArray[Any], start: int, answers: npt.NDArray[np.bool_] | None
    ) -> Evidence:
        """What the rows of a block say of their independence; a vote has no answers yet."""
        event, since = self.event, start - (self.origin or 0)
        if answers is not None:
            return Evidence.of_answers(outputs, since, answers)

        def hits(first: int, end: int) -> int:
            return count_rows(event, outputs[first:end], self.name)[0][0]

        return Evidence.of(outputs, since, hits, lambda end: event(outputs[:end]))

    def _watched(
        self, watch: Watch, seen: npt.NDArray[Any], scores: npt.NDArray[np.float64] | None
    ) -> tuple[int, ...]:
        """What a watch counts; the curve of the event's own score needs no second scoring."""
        event, tally = self.event, watch.tally
        if scores is None or not isinstance(event, Above) or not isinstance(tally, Curve):
            return tally(seen)
        return tally.of_scores(scores[: len(seen)]) if tally.score is event.score else tally(seen)


def binned(values: npt.NDArray[np.float64], edges: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """How many values lie in each of the bins that increasing edges make; NaN is in none.

    A bin holds its lower edge. Shape `(edges + 1,)`.
    """
    counts = np.empty(edges.size + 1, np.uint64)
    _core.bin_counts(np.ascontiguousarray(values), np.ascontiguousarray(edges), counts)
    return counts.astype(np.int64)


def happened(event: Event, outputs: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """An event's answers, checked: one bool for each output."""
    answers = np.asarray(event(outputs))
    if answers.dtype != np.bool_ or answers.shape != outputs.shape[:1]:
        requirement = f"a function that returns bools of shape ({len(outputs)},)"
        raise invalid("event", requirement, (str(answers.dtype), answers.shape))
    return answers


def count_rows(
    event: Event,
    outputs: npt.NDArray[Any],
    name: str,
    answers: npt.NDArray[np.bool_] | None = None,
) -> tuple[tuple[int, ...], int]:
    """Count an event on outputs, with a complaint that names the event or the mechanism."""
    if type(event) is Vote:
        values = vote_rows(event, outputs, name)
        votes, nan = _core.count_outputs(values, event.threshold, event.towards)
        return ((votes if event.vote == "x_prime" else len(values) - votes),), nan
    answers = happened(event, outputs) if answers is None else answers
    hits = (int(np.count_nonzero(answers)),)
    pooled = getattr(event, "pooled", None)
    if pooled is not None:
        hits = (*hits, *pooled(outputs))
    return hits, count_nan(outputs)


def count_nan(outputs: npt.NDArray[Any]) -> int:
    """Entries that are NaN."""
    return int(np.count_nonzero(np.isnan(outputs))) if outputs.dtype.kind == "f" else 0


def vote_rows(event: Vote, outputs: npt.NDArray[Any], name: str) -> npt.NDArray[np.float64]:
    """Outputs as contiguous float64 rows of the vote's dimension."""
    dim = event.threshold.size
    if outputs.dtype.kind not in "buif":
        raise mistyped(f"outputs of {name}", "real numbers", outputs.dtype)
    if outputs.ndim == 1 and dim == 1:
        outputs = outputs[:, np.newaxis]
    if outputs.ndim != 2 or outputs.shape[1] != dim:
        raise invalid(f"outputs of {name}", f"of shape (size, {dim})", outputs.shape)
    return np.ascontiguousarray(outputs, dtype=np.float64)
