"""From scores to one event: the threshold, side and direction that certify most.

Everything here looks at pilot draws only. It chooses; it certifies nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..bounds import predicted
from ..errors import invalid
from ..events import Above
from ..events.above import Score, score_name, scores_of
from ..records import Counts, Pair
from ._parts import remembering
from ._reading import candidates_of
from ._sketch import Sketch

Floats = npt.NDArray[np.float64]

TOLERANCE: Final = 1e-9
"""Numbers nearer than this share of the pilot's scale are taken for one number.

The same real number comes out of different sums as doubles that differ in their last bits; which
of them, may depend on the input. A threshold inside such a cluster would count the rounding.
"""

_ULPS: Final = 2.0
"""In types coarser than float64 the tolerance is this many of their own last places."""

_SHARE: Final = 0.381966011250105
"""Where a threshold lies in its gap: not at a simple fraction, where an unseen atom may sit."""

_MOST_THRESHOLDS: Final = 400
_DENSE: Final = 48
"""Ranks from either end that are all tried; beyond, they grow by _RATIO."""
_RATIO: Final = 1.06


_CAUTION: Final = (0.003, 0.03, 0.1, 0.25, 0.4)
"""Tails of the pilot's limits (see `predicted`). The first is small because the best of hundreds
of thresholds is looked for, and a rare event is good by luck among so many."""
_STEP: Final = 1000.0
"""Where nothing remains of an event at the first caution, a smaller one ranks it below the rest."""


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
            below 0 where that is nothing, but the larger the better still.
        counts: what the pilot counted; `counts.k` belongs to x.
    """

    event: Above
    direction: str
    merit: float
    counts: Counts


class ScoreAttack:
    """An attack that makes scores; its event is the best threshold on the best of them.

    A subclass is a frozen dataclass with one method, `candidates`. Called like any attack it
    halves the pilot: scores are fitted on the first halves, threshold and score chosen on the
    second ones.
    """

    __slots__ = ()

    parts = True
    """Whether it is also fitted on the parts of outputs that are no real numbers."""

    def candidates(
        self, outputs: npt.NDArray[Any], outputs_prime: npt.NDArray[Any], pair: Pair
    ) -> tuple[Score, ...]:
        """Scores fitted on pilot outputs; none where the attack does not apply."""
        raise NotImplementedError(f"{type(self).__name__} has no candidates")

    def __call__(
        self, outputs: npt.NDArray[Any], outputs_prime: npt.NDArray[Any], pair: Pair
    ) -> Above:
        """Choose the event from pilot outputs.

        Args:
            outputs: pilot outputs on `x`, shape `(size, ...)`.
            outputs_prime: pilot outputs on `x_prime`, shape `(size', ...)`.
            pair: the pair they were drawn on.

        Returns:
            The event expected to certify most on ten times as many draws.

        Raises:
            ValueError: if the attack does not apply to such outputs, or a side has fewer than
                two.
        """
        outputs, outputs_prime = np.asarray(outputs), np.asarray(outputs_prime)
        cut, cut_prime = len(outputs) // 2, len(outputs_prime) // 2
        if cut == 0 or cut_prime == 0:
            sizes = (len(outputs), len(outputs_prime))
            raise invalid("outputs", "at least two pilot outputs on each side", sizes)
        scores = candidates_of(self, outputs[:cut], outputs_prime[:cut_prime], pair)
        if not scores:
            raise not_applicable(self, outputs)
        rest, rest_prime = outputs[cut:], outputs_prime[cut_prime:]
        goal = Goal(10 * len(outputs))
        return max(choices(scores, rest, rest_prime, goal), key=lambda found: found.merit).event


def coarse(*arrays: npt.NDArray[Any]) -> float:
    """The scale of outputs for `tolerance`: in float32 two last places are as much as that."""
    kinds = [array.dtype for array in arrays if array.dtype.kind == "f"]
    places = [_ULPS * float(np.finfo(kind).eps) / TOLERANCE for kind in kinds]
    return max([1.0, *places]) * scale_of(*arrays)


def not_applicable(attack: Any, outputs: npt.NDArray[Any]) -> ValueError:
    """The complaint of an attack that can make nothing of such outputs."""
    shape = (str(outputs.dtype), outputs.shape[1:])
    return invalid("attack", f"one that applies to these outputs ({type(attack).__name__})", shape)


def scale_of(*arrays: npt.NDArray[Any]) -> float:
    """The largest finite magnitude in arrays of numbers; 0 for anything else."""
    largest = 0.0
    for array in arrays:
        if array.dtype.kind in "iub" and array.size:
            largest = max(largest, abs(float(array.max())), abs(float(array.min())))
        elif array.dtype.kind == "f" and array.size:
            # Most arrays hold nothing else, and are not copied then.
            finite = array if _all_finite(array) else array[np.isfinite(array)]
            if finite.size:
                largest = max(largest, float(finite.max()), -float(finite.min()))
    return largest


def _all_finite(array: npt.NDArray[Any]) -> bool:
    return math.isfinite(float(array.max())) and math.isfinite(float(array.min()))


@np.errstate(over="ignore", invalid="ignore")
def choices(
    scores: Sequence[Score],
    outputs: npt.NDArray[Any],
    outputs_prime: npt.NDArray[Any],
    goal: Goal,
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
    scale = coarse(outputs, outputs_prime)
    with remembering():
        return [
            best(score, scores_of(score, outputs), scores_of(score, outputs_prime), scale, goal)
            for score in scores
        ]


def best(score: Score, values: Floats, values_prime: Floats, scale: float, goal: Goal) -> Choice:
    """The best threshold, side and direction for one score.

    Args:
        score: the score itself, for the event.
        values: its values on x, shape `(size,)`; may hold infinities and NaN.
        values_prime: the same on x'.
        scale: magnitude of the outputs, see `coarse`; a score with a true attribute
            `merged` has dealt with rounding itself and is judged on its own scale.
        goal: what is to be certified.

    Returns:
        The choice; with merit minus infinity where the score is one cluster of values.
    """
    low, high = sorted_values(values), sorted_values(values_prime)
    points = thresholds(low, high, tolerance(score, scale, low, high))
    below = np.searchsorted(low, points), np.searchsorted(high, points)
    finite, sizes = (low.size, high.size), (values.size, values_prime.size)
    return _pick(score, points, below, finite, sizes, goal)


def sorted_values(values: Floats) -> Floats:
    """Values in order, without NaN."""
    found = np.sort(values)
    # NaN comes last.
    return found[: found.size - int(np.count_nonzero(np.isnan(found)))]


def best_of_sketches(
    score: Score, side: Sketch, side_prime: Sketch, scale: float, goal: Goal
) -> Choice:
    """The best threshold for one score whose values were too many to keep.

    Args:
        score: the score itself, for the event.
        side: sketch of its values on x.
        side_prime: sketch of its values on x', with the same edges and ends.
        scale: magnitude of the outputs, see `coarse`.
        goal: what is to be certified.

    Returns:
        The choice among the edges and the gaps in both tails.
    """
    ends = side.low, side.high, side_prime.low, side_prime.high
    slack = tolerance(score, scale, side.edges, *ends)
    lowest = thresholds(side.low, side_prime.low, slack)
    highest = thresholds(side.high, side_prime.high, slack)
    points = np.unique(np.concatenate([side.edges, lowest, highest]))
    below = side.count_below(points), side_prime.count_below(points)
    finite, sizes = (side.finite, side_prime.finite), (side.size, side_prime.size)
    return _pick(score, points, below, finite, sizes, goal)


def tolerance(score: Score, scale: float, *values: Floats) -> float:
    """How near two values of a score count as one."""
    own = scale_of(*values)
    return TOLERANCE * (own if getattr(score, "merged", False) else max(scale, own))


def _pick(
    score: Score,
    points: Floats,
    below: tuple[npt.NDArray[Any], npt.NDArray[Any]],
    finite: tuple[int, int],
    sizes: tuple[int, int],
    goal: Goal,
) -> Choice:
    if points.size == 0:
        return Choice(Above(score, 0.0), "x", -math.inf, _counts(0, 0, sizes))
    above = finite[0] - below[0], finite[1] - below[1]
    # Rows: above with x in the numerator, above with x', below with x, below with x'.
    hits = np.stack([above[0], above[1], below[0], below[1]])
    draws = np.array([[sizes[0]], [sizes[1]]] * 2)
    against = _beside(hits)[[1, 0, 3, 2]]
    lowered = 0.0
    for tail in goal.caution:
        merits = predicted(
            hits, draws, against, draws[[1, 0, 3, 2]],
            goal.trials, goal.delta, goal.confidence, tail=tail,
        )  # fmt: skip
        if merits.max() > 0.0:
            break
        lowered += _STEP
    merits = merits - lowered
    which, place = divmod(int(np.argmax(merits)), points.size)
    side = "above" if which < 2 else "below"
    k, k_prime = (int(count[place]) for count in (above if which < 2 else below))
    event = Above(score, float(points[place]), side)
    direction = "x_prime" if which % 2 else "x"
    return Choice(event, direction, float(merits[which, place]), _counts(k, k_prime, sizes))


def _beside(hits: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Counts that a threshold's own place among the values did not lower.

    A threshold just beyond the last value of a side counts none of it, and is the better by the
    luck of that value: one more is counted where the next threshold inwards counts more.
    """
    inwards = hits.copy()
    inwards[:2, 1:] = hits[:2, :-1]
    inwards[2:, :-1] = hits[2:, 1:]
    found: npt.NDArray[Any] = np.minimum(np.maximum(inwards, hits), hits + 1)
    return found


def _counts(k: int, k_prime: int, sizes: tuple[int, int]) -> Counts:
    return Counts(k, max(1, sizes[0]), k_prime, max(1, sizes[1]))


def thresholds(values: Floats, values_prime: Floats, tolerance: float) -> Floats:
    """Thresholds worth trying: between clusters of equal values, dense in both tails.

    Args:
        values: sorted values on x, no NaN.
        values_prime: sorted values on x'.
        tolerance: values no further apart belong to one cluster.

    Returns:
        Increasing thresholds, at most a few hundred.
    """
    pooled = np.sort(np.concatenate([values, values_prime]))
    finite = pooled[np.isfinite(pooled)]
    # Infinities lie beyond every finite value, one unit of scale away.
    reach = max(1.0, scale_of(finite))
    pooled = np.clip(pooled, -2.0 * reach, 2.0 * reach)
    gaps = np.flatnonzero(np.diff(pooled) > 4.0 * tolerance)
    if gaps.size > _MOST_THRESHOLDS:
        gaps = np.unique(gaps[_places(np.searchsorted(gaps, _ranks(pooled.size)), gaps.size)])
    found: Floats = pooled[gaps] + _SHARE * (pooled[gaps + 1] - pooled[gaps])
    return found


def _places(places: npt.NDArray[np.intp], size: int) -> npt.NDArray[np.intp]:
    return np.minimum(places, size - 1)


def _ranks(size: int) -> npt.NDArray[np.int64]:
    """Ranks from either end: each of the first, then a geometric sequence to the middle."""
    steps = max(1, int(np.log(max(2.0, size / (2 * _DENSE))) / np.log(_RATIO)))
    tail = np.geomspace(_DENSE, max(_DENSE, size / 2), steps + 1)
    ranks = np.concatenate([np.arange(_DENSE), tail]).astype(np.int64)
    return np.unique(np.concatenate([ranks, size - 2 - ranks]).clip(0, size - 2))


__all__ = [
    "TOLERANCE", "Choice", "Goal", "ScoreAttack", "best", "best_of_sketches", "choices", "coarse",
    "not_applicable", "scale_of", "score_name", "sorted_values", "thresholds", "tolerance",
]  # fmt: skip
