"""From scores to one event: the threshold, side and direction that certify most.

Everything here looks at pilot draws only. It chooses; it certifies nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from ...bounds import predicted
from ...errors import invalid
from ...events import Above, Never
from ...events.above import Score, scores_of
from ...records import Counts
from ..arrays import Array, Floats, Whole
from ..reading.candidates import OfParts
from ..reading.parts import Parts, remember_parts
from ..scores.columns import both
from .grains import EXACT, Grain, grain_of, grains_of
from .marks import Marks, Sketch, marks_of, sorted_values

_CAUTION: Final = (0.003, 0.03, 0.1, 0.25, 0.4)
"""Tails of the pilot's limits (see `predicted`). The first is small because the best of hundreds
of thresholds is looked for, and a rare event is good by luck among so many."""
_CLEARLY: Final = 1.1, 0.05
"""An event that rounding explains is spoken of from so many times the merit of the other, plus
so much."""
ROUNDED: Final = (
    "all that tells the two sides apart is smaller than rounding explains (8 last places of the "
    "outputs' format): no event is left for the law that was meant; see rounding for the code as "
    "it runs"
)
"""What a reader is told where rounding has left no event."""
_STEP: Final = 1000.0
"""Where nothing remains of an event at the first caution, a smaller one ranks it below the rest."""
_FEW_POINTS: Final = 2
_FREE: Final = 2
"""Smaller cautions that do so for a score of more thresholds only."""


@dataclass(frozen=True, slots=True)
class Goal:
    """What the counted draws are to certify.

    Args:
        trials: draws a side that will be counted.
        delta: delta of the claim.
        confidence: confidence of the bound.
        caution: tails of the pilot's limits that are tried until something remains.
    """

    trials: int
    delta: float = 0.0
    confidence: float = 0.95
    caution: tuple[float, ...] = _CAUTION

    def bolder(self) -> Goal:
        """For a comparison whose winners are judged again on more draws."""
        return replace(self, caution=_CAUTION[1:])


@dataclass(frozen=True, slots=True)
class Choice:
    """An event, the side that goes into the numerator, and what it is expected to certify.

    Args:
        event: what is to be counted.
        direction: "x" or "x_prime".
        merit: the bound that `Goal.trials` draws would certify at the pilot's pessimistic rates;
            below 0 where that is nothing, but the larger the better still; minus infinity where
            the score has no threshold but within rounding: then nothing is counted (`counted`).
        counts: what the pilot counted; `counts.k` belongs to x.
        rounding: the event that would have been chosen had nothing been rounded, where it promises
            clearly more; what it shows is the code as it runs.
    """

    event: Above
    direction: str
    merit: float
    counts: Counts
    rounding: Choice | None = None

    @property
    def counted(self) -> Above | Never:
        """The event, or one that does not happen where there is none."""
        return Never() if self.merit == -math.inf else self.event


def column_grains(*sides: Array) -> tuple[Grain, ...]:
    """The grains of the columns of outputs; none for outputs that are not rows of numbers."""
    rows = both(*map(np.asarray, sides))
    return () if rows is None else grains_of(*rows)


def part_grains(score: Any, *sides: Array) -> tuple[Grain, ...]:
    """The grains of the parts that a score reads; none for a score of outputs as they are."""
    return column_grains(*map(score.parts, sides)) if isinstance(score, OfParts) else ()


def score_grain(score: Any, grains: Sequence[Grain], values: Floats, values_prime: Floats) -> Grain:
    """Return the grid of the values of a score: the step by which rounding may move them.

    A score with a true attribute `merged` is a function of cells, which were placed with rounding
    in mind: nothing. One with a method `rounding(grains)` says itself what its columns' grains
    make of it. Any other is judged by its own values, and by the coarsest of its columns.
    """
    if getattr(score, "merged", False):
        return EXACT
    rounding = getattr(score, "rounding", None)
    if rounding is not None and grains:
        found: Grain = rounding(grains)
        return found
    own = grain_of(values, values_prime)
    return replace(own, absolute=max((grain.typical for grain in grains), default=0.0))


def not_applicable(attack: Any, outputs: Array) -> ValueError:
    """The complaint of an attack that can make nothing of such outputs."""
    shape = (str(outputs.dtype), outputs.shape[1:])
    return invalid("attack", f"one that applies to these outputs ({type(attack).__name__})", shape)


@np.errstate(over="ignore", invalid="ignore")
def choices(
    scores: Sequence[Score], outputs: Array, outputs_prime: Array, goal: Goal
) -> list[Choice]:
    """The best event of each score, judged on outputs that fitted none of them.

    Args:
        scores: candidates.
        outputs: pilot outputs on x that no score has seen, shape `(size, ...)`.
        outputs_prime: the same on x'.
        goal: what is to be certified.

    Returns:
        One choice for each score.
    """
    grains = column_grains(outputs, outputs_prime)
    found = []
    with remember_parts():
        wanted = [part for one in scores if isinstance(one, OfParts) for part in one.parts.parts]
        together = Parts(tuple(dict.fromkeys(wanted)))
        for side in (outputs, outputs_prime) if wanted else ():
            together(side)
        for score in scores:
            values, values_prime = scores_of(score, outputs), scores_of(score, outputs_prime)
            own = part_grains(score, outputs, outputs_prime) or grains
            grain = score_grain(score, own, values, values_prime)
            found.append(best(score, values, values_prime, grain, goal))
    return found


def best(score: Score, values: Floats, values_prime: Floats, grain: Grain, goal: Goal) -> Choice:
    """The best threshold, side and direction for one score.

    Args:
        score: the score itself, for the event.
        values: its values on x, shape `(size,)`; may hold infinities and NaN.
        values_prime: the same on x'.
        grain: what rounding may move its values by, see `score_grain`.
        goal: what is to be certified.

    Returns:
        The choice; with merit minus infinity where the score is one cluster of values.
    """
    low, high = sorted_values(values), sorted_values(values_prime)
    marks = marks_of(low, high, grain)
    below = [[np.searchsorted(side, some) for some in marks.all] for side in (low, high)]
    finite, sizes = (low.size, high.size), (values.size, values_prime.size)
    return _pick(score, marks.points, np.array(below), finite, sizes, goal)


def best_of_sketches(
    score: Score, side: Sketch, side_prime: Sketch, marks: Marks, goal: Goal
) -> Choice:
    """The best threshold for one score whose values were too many to keep.

    Args:
        score: the score itself, for the event.
        side: sketch of its values on x.
        side_prime: sketch of its values on x', with the same edges and ends.
        marks: the thresholds that the edges were made of.
        goal: what is to be certified.

    Returns:
        The choice among the marks and the gaps in both tails.
    """
    tails = [
        marks_of(some, some_prime, marks.grain)
        for some, some_prime in ((side.low, side_prime.low), (side.high, side_prime.high))
    ]
    marks = marks.joined(tails)
    below = [[some.count_below(points) for points in marks.all] for some in (side, side_prime)]
    finite, sizes = (side.finite, side_prime.finite), (side.size, side_prime.size)
    return _pick(score, marks.points, np.array(below), finite, sizes, goal)


def _pick(
    score: Score,
    points: Floats,
    below: Whole,
    finite: tuple[int, int],
    sizes: tuple[int, int],
    goal: Goal,
) -> Choice:
    """The best of some thresholds.

    Args:
        score: the score.
        points: the thresholds.
        below: values below each less its tolerance, below it, and below it plus its tolerance,
            on x and on x', shape `(2, 3, m)`.
        finite: values on either side that are not NaN.
        sizes: values on either side.
        goal: what is to be certified.
    """
    if points.size == 0:
        return Choice(Above(score, 0.0), "x", -math.inf, _counts(0, 0, sizes))
    above = np.array(finite)[:, np.newaxis, np.newaxis] - below
    # Rows: above with x in the numerator, above with x', below with x, below with x'. Rounding
    # takes from the numerator and gives to the denominator.
    worth = np.concatenate([above[:, 2], below[:, 0]])
    cost = np.concatenate([above[:, 0], below[:, 2]])
    found = _choice(score, points, worth, cost, below[:, 1], finite, sizes, goal)
    if np.array_equal(below[:, 0], below[:, 2]):
        return found
    plain = np.concatenate([above[:, 1], below[:, 1]])
    raw = _choice(score, points, plain, plain, below[:, 1], finite, sizes, goal)
    return replace(found, rounding=raw if raw.merit > rounded_merit(found.merit) else None)


def remarks_on(found: Sequence[Choice]) -> tuple[str, ...]:
    """What a reader is told of choices of which the best one is to be counted."""
    nothing = max(choice.merit for choice in found) <= 0.0
    return (ROUNDED,) if nothing and any(choice.rounding for choice in found) else ()


def rounded_merit(merit: float) -> float:
    """What an event must promise beyond the one that stands to be worth a word on rounding."""
    return _CLEARLY[0] * max(merit, 0.0) + _CLEARLY[1]


def _choice(
    score: Score,
    points: Floats,
    hits: Whole,
    other: Whole,
    below: Whole,
    finite: tuple[int, int],
    sizes: tuple[int, int],
    goal: Goal,
) -> Choice:
    draws = np.array([[sizes[0]], [sizes[1]]] * 2)
    against = _beside(other)[[1, 0, 3, 2]]
    lowered, merits = 0, np.zeros(hits.shape)
    for tail in goal.caution:
        merits = predicted(
            hits, draws, against, draws[[1, 0, 3, 2]],
            goal.trials, goal.delta, goal.confidence, tail=tail,
        )  # fmt: skip
        if merits.max() > 0.0:
            break
        lowered += 1
    # The luck of a flag is not that of the best of many thresholds.
    merits = merits - _STEP * max(0, lowered - _FREE * (points.size <= _FEW_POINTS))
    if lowered == len(goal.caution):
        # Nothing is left of any: what is counted must at least not be a matter of rounding.
        merits = np.where((hits == other).all(axis=0), merits, -math.inf)
    which, place = divmod(int(np.argmax(merits)), points.size)
    side: Literal["above", "below"] = "above" if which < 2 else "below"
    k, k_prime = (int(low[place]) for low in below)
    if side == "above":
        k, k_prime = finite[0] - k, finite[1] - k_prime
    event = Above(score, float(points[place]), side)
    direction = "x_prime" if which % 2 else "x"
    return Choice(event, direction, float(merits[which, place]), _counts(k, k_prime, sizes))


def _beside(hits: Array) -> Array:
    """Counts that a threshold's own place among the values did not lower.

    A threshold just beyond the last value of a side counts none of it, and is the better by the
    luck of that value: one more is counted where the next threshold inwards counts more.
    """
    inwards = hits.copy()
    inwards[:2, 1:] = hits[:2, :-1]
    inwards[2:, :-1] = hits[2:, 1:]
    found: Array = np.minimum(np.maximum(inwards, hits), hits + 1)
    return found


def _counts(k: int, k_prime: int, sizes: tuple[int, int]) -> Counts:
    return Counts(k, max(1, sizes[0]), k_prime, max(1, sizes[1]))
