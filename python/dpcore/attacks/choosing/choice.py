"""From scores to one event: the threshold, side and direction that certify most.

Everything here looks at pilot draws only. It chooses; it certifies nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from ...bounds import predicted
from ...bounds.predicted import predicted_limits
from ...claims.claim import Claim
from ...errors import invalid
from ...events import Above, Never
from ...events.above import Score, scores_of
from ...records import Counts
from ...sampling.tally import Sketch
from ..arrays import Array, Floats, Whole
from ..reading.candidates import OfParts
from ..reading.parts import Part, Parts, remember_parts
from ..scores.columns import read_both_sides
from .grains import EXACT, Grain, grain_of, grains_of
from .marks import Marks, marks_of, sorted_values

_CAUTION_TAILS: Final = (0.003, 0.03, 0.1, 0.25, 0.4)
"""Tails of the pilot's limits (see `predicted`). The first is small because the best of hundreds
of thresholds is looked for, and a rare event is good by luck among so many."""
_ROUNDING_REMARK_MARGIN: Final = 1.1, 0.05
"""An event that rounding explains is spoken of from so many times the merit of the other, plus
so much."""
ROUNDED: Final = (
    "all that tells the two sides apart is smaller than rounding explains (8 last places of the "
    "outputs' format): no event is left for the law that was meant; see rounding for the code as "
    "it runs"
)
"""Message to the reader if rounding has left no event."""
_LOWERED_CAUTION_PENALTY: Final = 1000.0
"""Penalty of an event that needs a smaller caution than the first: it ranks below the rest."""
_MAX_FLAG_THRESHOLDS: Final = 2
_UNPENALISED_CAUTIONS: Final = 2
"""Smaller cautions that do not do so for a part of at most two thresholds."""


Sizes = tuple[int, int]
"""Numbers of values on x and on x'."""


@dataclass(frozen=True, slots=True)
class Goal:
    """The aim of the counted draws: their number, and the claim and confidence of the bound.

    Args:
        trials: draws a side that will be counted.
        delta: delta of the claim.
        confidence: confidence of the bound.
        caution: tails of the pilot's limits that are tried until something remains.
        claim: a claim that is a curve, which the event is to refute; None for (epsilon, delta).
    """

    trials: int
    delta: float = 0.0
    confidence: float = 0.95
    caution: tuple[float, ...] = _CAUTION_TAILS
    claim: Claim | None = None

    def predict(self, k: Any, n: Any, k_prime: Any, n_prime: Any, tail: float) -> Floats:
        """Return what events are expected to certify, from pilot counts (see `predicted`).

        Against a curve that is by how much an event stands out from what the curve allows.
        """
        if self.claim is None:
            level = self.trials, self.delta, self.confidence
            return predicted(k, n, k_prime, n_prime, *level, tail=tail)
        limits = predicted_limits(k, n, k_prime, n_prime, self.trials, self.confidence, tail)
        return self.claim.excess(*limits)

    def bolder(self) -> Goal:
        """Return the goal of a comparison whose winners are judged again on more draws."""
        return replace(self, caution=_CAUTION_TAILS[1:])


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
    """Return the grains of the columns of outputs; none if they are not rows of numbers."""
    rows = read_both_sides(*map(np.asarray, sides))
    return () if rows is None else grains_of(*rows)


def part_grains(score: Any, *sides: Array) -> tuple[Grain, ...]:
    """Return the grains of the parts that a score reads; none for a score of whole outputs."""
    if not isinstance(score, OfParts):
        return ()
    grains = _grains_by_part(score.parts.parts, *sides)
    return tuple(grains[part] for part in score.parts.parts)


def _grains_by_part(parts: Sequence[Part], *sides: Array) -> dict[Part, Grain]:
    """Return the grain of each part: what is counted is exact, numbers are judged."""
    grains = dict.fromkeys(parts, EXACT)
    numbers = tuple(part for part in grains if not part.is_whole)
    if numbers:
        grains |= zip(numbers, column_grains(*map(Parts(numbers), sides)), strict=True)
    return grains


def score_grain(score: Any, grains: Sequence[Grain], values: Floats, values_prime: Floats) -> Grain:
    """Return the grid of the values of a score: the step by which rounding may move them.

    A score with a true attribute `merged` is a function of cells, which were placed with rounding
    in mind: nothing. One with a method `rounding(grains)` says itself what its columns' grains
    make of it. Any other is judged by its own values, and by the coarsest of its columns.
    """
    if getattr(score, "merged", False):
        return EXACT
    rounding: Callable[[Sequence[Grain]], Grain] | None = getattr(score, "rounding", None)
    if rounding is not None and grains:
        return rounding(grains)
    own = grain_of(values, values_prime)
    return replace(own, absolute=max((grain.typical for grain in grains), default=0.0))


def not_applicable(attack: Any, outputs: Array) -> ValueError:
    """Return the complaint of an attack that can make nothing of such outputs."""
    shape = (str(outputs.dtype), outputs.shape[1:])
    return invalid("attack", f"one that applies to these outputs ({type(attack).__name__})", shape)


@np.errstate(over="ignore", invalid="ignore")
def choose_events(
    scores: Sequence[Score], outputs: Array, outputs_prime: Array, goal: Goal
) -> list[Choice]:
    """Return the best event of each score, judged on outputs that fitted none of them.

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
        of_parts = _grains_by_part(together.parts, outputs, outputs_prime)
        for score in scores:
            values, values_prime = scores_of(score, outputs), scores_of(score, outputs_prime)
            parts = score.parts.parts if isinstance(score, OfParts) else ()
            own = tuple(of_parts[part] for part in parts) or grains
            grain = score_grain(score, own, values, values_prime)
            found.append(best_threshold(score, values, values_prime, grain, goal))
    return found


def best_threshold(
    score: Score, values: Floats, values_prime: Floats, grain: Grain, goal: Goal
) -> Choice:
    """Return the best threshold, side and direction for one score.

    Args:
        score: the score itself, for the event.
        values: its values on x, shape `(size,)`; may hold infinities and NaN.
        values_prime: the same on x'.
        grain: what rounding may move its values by, see `score_grain`.
        goal: what is to be certified.

    Returns:
        The choice; with merit minus infinity where the score is one cluster of values.
    """
    sides = sorted_values(values), sorted_values(values_prime)
    marks = marks_of(*sides, grain)
    below = [[np.searchsorted(side, points) for points in marks.all] for side in sides]
    finite, sizes = [side.size for side in sides], (values.size, values_prime.size)
    return _choose_threshold(score, marks.points, np.array(below), finite, sizes, goal)


def best_of_sketches(
    score: Score, side: Sketch, side_prime: Sketch, marks: Marks, goal: Goal
) -> Choice:
    """Return the best threshold for one score whose values were too many to keep.

    Args:
        score: the score itself, for the event.
        side: sketch of its values on x.
        side_prime: sketch of its values on x', with the same edges and ends.
        marks: the thresholds that the edges were made of.
        goal: what is to be certified.

    Returns:
        The choice among the marks and the gaps in both tails.
    """
    tails = (side.low, side_prime.low), (side.high, side_prime.high)
    marks = marks.join_others([marks_of(*tail, marks.grain) for tail in tails])
    sides = side, side_prime
    below = [[one.count_below(points) for points in marks.all] for one in sides]
    finite, sizes = [one.finite for one in sides], (side.size, side_prime.size)
    return _choose_threshold(score, marks.points, np.array(below), finite, sizes, goal)


def _choose_threshold(
    score: Score, points: Floats, below: Whole, finite: Sequence[int], sizes: Sizes, goal: Goal
) -> Choice:
    """Return the best of some thresholds, and what it would be had nothing been rounded.

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
        return Choice(Above(score, 0.0), "x", -math.inf, _pilot_counts(0, 0, sizes))
    # Rows: above with x in the numerator, above with x', below with x, below with x'. Rounding
    # takes from the numerator and gives to the denominator.
    above = np.reshape(finite, (2, 1, 1)) - below[:, ::-1]
    least, plain, most = np.concatenate([above, below]).swapaxes(0, 1)
    found = _choose_event(score, points, (least, plain, most), sizes, goal)
    if np.array_equal(least, most):
        return found
    raw = _choose_event(score, points, (plain, plain, plain), sizes, goal)
    return replace(found, rounding=raw if raw.merit > rounded_merit(found.merit) else None)


def remarks_on(found: Sequence[Choice]) -> tuple[str, ...]:
    """Return remarks on the choices of which the best one is to be counted."""
    nothing = max(choice.merit for choice in found) <= 0.0
    return (ROUNDED,) if nothing and any(choice.rounding for choice in found) else ()


def rounded_merit(merit: float) -> float:
    """Return what an event must promise beyond the chosen one to be worth a word on rounding."""
    return _ROUNDING_REMARK_MARGIN[0] * max(merit, 0.0) + _ROUNDING_REMARK_MARGIN[1]


def _choose_event(
    score: Score, points: Floats, hits: tuple[Whole, Whole, Whole], sizes: Sizes, goal: Goal
) -> Choice:
    """Return the best of some events.

    Args:
        score: the score.
        points: the thresholds.
        hits: outputs in each event, at least, as counted and at most, shape `(4, m)` each.
        sizes: values on either side.
        goal: what is to be certified.
    """
    least, plain, most = hits
    draws, other = np.array([[sizes[0]], [sizes[1]]] * 2), [1, 0, 3, 2]
    against, lowered = _counts_inwards(most)[other], 0
    for tail in goal.caution:
        merits = goal.predict(least, draws, against, draws[other], tail)
        if merits.max() > 0.0:
            break
        lowered += 1
    else:
        # Nothing is left of any: what is counted must at least not be a matter of rounding.
        merits = np.where((least == most).all(axis=0), merits, -math.inf)
    # The luck of a flag is not that of the best of many thresholds.
    free = (
        _UNPENALISED_CAUTIONS
        if isinstance(score, OfParts) and points.size <= _MAX_FLAG_THRESHOLDS
        else 0
    )
    merits = merits - _LOWERED_CAUTION_PENALTY * max(0, lowered - free)
    which, place = divmod(int(np.argmax(merits)), points.size)
    k, k_prime = plain.reshape(2, 2, -1)[which // 2, :, place].tolist()
    event = Above(score, float(points[place]), "above" if which < 2 else "below")
    direction = "x_prime" if which % 2 else "x"
    return Choice(event, direction, float(merits[which, place]), _pilot_counts(k, k_prime, sizes))


def _counts_inwards(hits: Array) -> Array:
    """Return counts that a threshold's own place among the values did not lower.

    A threshold just beyond the last value of a side counts none of it, and is the better by the
    luck of that value: one more is counted where the next threshold inwards counts more.
    """
    inwards = hits.copy()
    inwards[:2, 1:] = hits[:2, :-1]
    inwards[2:, :-1] = hits[2:, 1:]
    return np.asarray(np.minimum(np.maximum(inwards, hits), hits + 1))


def _pilot_counts(k: int, k_prime: int, sizes: Sizes) -> Counts:
    return Counts(k, max(1, sizes[0]), k_prime, max(1, sizes[1]))
