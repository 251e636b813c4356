"""What is counted on one block of outputs: an event, and what is watched beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from .attacks._sketch import binned
from .errors import invalid, mistyped
from .events import Above, Vote
from .events.above import scores_of
from .records import Record, frozen_array

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
        blocks: trials and hits of each block by itself.
    """

    rows: int = 0
    hits: tuple[int, ...] = ()
    nan: int = 0
    watched: tuple[tuple[int, ...], ...] = ()
    watched_rows: tuple[int, ...] = ()
    blocks: list[tuple[int, int]] = field(default_factory=list)

    def __add__(self, other: Tally) -> Tally:
        """The counts of both."""
        return Tally(
            self.rows + other.rows,
            _sum(self.hits, other.hits),
            self.nan + other.nan,
            tuple(map(_sum, self.watched, other.watched)) if self.rows else other.watched,
            _sum(self.watched_rows, other.watched_rows),
            self.blocks + other.blocks,
        )


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
    """

    event: Event
    name: str
    watches: tuple[Watch, ...] = ()

    def __call__(self, outputs: npt.NDArray[Any], start: int) -> Tally:
        """Count one block's outputs, the first of which is trial `start`."""
        scores = None
        if type(self.event) is Above:
            scores = scores_of(self.event.score, outputs)
            hits: tuple[int, ...] = (int(np.count_nonzero(self.event.of_scores(scores))),)
            nan = count_nan(outputs)
        else:
            hits, nan = count_rows(self.event, outputs, self.name)
        watched, rows = [], []
        for watch in self.watches:
            seen = outputs[: max(0, watch.limit - start)]
            watched.append(self._watched(watch, seen, scores) if len(seen) else ())
            rows.append(len(seen))
        blocks = [(len(outputs), hits[0])]
        return Tally(len(outputs), hits, nan, tuple(watched), tuple(rows), blocks)

    def _watched(
        self, watch: Watch, seen: npt.NDArray[Any], scores: npt.NDArray[np.float64] | None
    ) -> tuple[int, ...]:
        """What a watch counts; the curve of the event's own score needs no second scoring."""
        event, tally = self.event, watch.tally
        if scores is None or not isinstance(event, Above) or not isinstance(tally, Curve):
            return tally(seen)
        return tally.of_scores(scores[: len(seen)]) if tally.score is event.score else tally(seen)


def happened(event: Event, outputs: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """An event's answers, checked: one bool for each output."""
    answers = np.asarray(event(outputs))
    if answers.dtype != np.bool_ or answers.shape != outputs.shape[:1]:
        requirement = f"a function that returns bools of shape ({len(outputs)},)"
        raise invalid("event", requirement, (str(answers.dtype), answers.shape))
    return answers


def count_rows(event: Event, outputs: npt.NDArray[Any], name: str) -> tuple[tuple[int, ...], int]:
    """Count an event on outputs, with a complaint that names the event or the mechanism."""
    if type(event) is Vote:
        values = vote_rows(event, outputs, name)
        votes, nan = _core.count_outputs(values, event.threshold, event.towards)
        return ((votes if event.vote == "x_prime" else len(values) - votes),), nan
    hits = (int(np.count_nonzero(happened(event, outputs))),)
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
