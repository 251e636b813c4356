"""Interface between audits and attacks, and the choice of one event from scores.

A score is a function from outputs to real numbers. An event is "the score is above (or below) a
threshold". The direction is the input whose probability is in the numerator of the ratio that
bounds epsilon. The choice uses only pilot draws, which are not counted for the bound. The score,
threshold, direction, and "above" or "below" with the largest expected bound are chosen.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Any, ClassVar, Final, NamedTuple, Protocol

import numpy as np
from numpy.random import Generator

from ..bounds import clopper_pearson
from ..bounds.power import limits_to_epsilon_bounds, predict_limits_unchecked
from ..claims.trade_off import Claim
from ..errors import invalid, mistyped
from ..events import Above, Event, Never
from ..events.event import Score, score_attribute, scores_of
from ..packages import use_one_blas_thread
from ..records import Array, Counts, Floats, Ints, Pair, PartsRead, Rows, SeenOutput
from ..report.shown import Shown, name_of
from ..sampling.sources import Call
from ..sampling.tally import Sketch
from .arrays import read_both_sides
from .bins import Thresholds, place_between, score_thresholds, sorted_no_nan
from .candidates import PartsScore, read_candidates
from .grains import EXACT, Tolerance, column_tolerance, column_tolerances
from .parts import DERIVED, Part, Parts, cache_parts

_CAUTION_TAILS: Final = (0.003, 0.03, 0.1, 0.25, 0.4)
"""Tail probabilities of confidence limits that are computed from the pilot (see `Goal.predict`).

The first is small, because the best of hundreds of thresholds is chosen, and one of so many rare
events can look good by chance."""
_ROUNDING_REMARK_MARGIN: Final = 1.1, 0.05
"""Factor and margin. The report remarks on rounding if the bound without rounding exceeds the bound
of the chosen event, multiplied by the factor and increased by the margin."""
_LOWERED_CAUTION_PENALTY: Final = 1000.0
"""Number subtracted from the merit of an event that needs less caution, to rank this event last."""
_MIN_GAP_SPREADS: Final = 3.0
"""A gap between the sides is wide if it is longer than this many times the spread of either side.
For Laplace noise the pilot spreads over 12 scales, and fewer than one output in 10^9 crosses such
a gap."""
_MAX_GAP_ERRORS: Final = 0.25
"""Largest share of outputs that may lie on the wrong side of a threshold near a wide gap."""
_GAP_MERIT_RATIO: Final = 0.9
"""An event with a threshold in a gap must have at least this share of the best expected bound."""
_MAX_FLAG_THRESHOLDS: Final = 2
_UNPENALISED_CAUTIONS: Final = 2
"""Number of steps to less caution without a penalty, for scores with at most two thresholds."""

CrossScored = tuple[Score, Floats, Floats] | None
"""A score, and a value for each output on x and x' from a fit that did not use this output."""
Sizes = tuple[int, int]
"""Numbers of values on x and on x'."""
_MAX_PILOT_DRAWS: Final = 2**26
"""Largest default number of pilot draws per side."""


@dataclass(frozen=True, slots=True)
class Goal:
    """Aim of an audit: the claim, the number of draws and the confidence of the bound.

    Args:
        trials: number of outputs on x, and also on x', that the audit will count.
        delta: delta of the claim (epsilon, delta).
        confidence: confidence of the certified bound.
        caution: error probabilities of the confidence limits in predictions of a bound. The audit
            tries these probabilities in order until the predicted bound of an event is positive.
        claim: the claim if it is a privacy curve, such as zCDP. None for a claim (epsilon, delta).
        is_total_variation: True if the claim has epsilon 0. In this case, the certified bound is a
            lower bound on delta.
    """

    trials: int
    delta: float = 0.0
    confidence: float = 0.95
    caution: tuple[float, ...] = _CAUTION_TAILS
    claim: Claim | None = None
    is_total_variation: bool = False

    def predict(self, k: Any, n: Any, k_prime: Any, n_prime: Any, tail: float) -> Floats:
        """Predict, from the first draws, which bound on epsilon an audit certifies for each event.

        `k` of `n` pilot outputs (first draws) on x and `k_prime` of `n_prime` on x' are in an
        event. The confidence limits of the probabilities have the tail probability `tail`. If the
        claim is a privacy curve, return how far each event exceeds the curve (see `Claim.excess`).
        If the claim has epsilon 0, return lower bounds on delta.
        """
        counts = [np.asarray(value, np.float64) for value in (k, n, k_prime, n_prime)]
        limits = predict_limits_unchecked(counts, float(self.trials), self.confidence, tail)
        if self.is_total_variation:
            return limits[0] - limits[1]
        if self.claim is None:
            return limits_to_epsilon_bounds(*limits, self.delta)
        return self.claim.excess(*limits)

    def less_cautious_goal(self) -> Goal:
        """Return a copy of this goal whose predictions of the bound may be wrong more often."""
        return replace(self, caution=_CAUTION_TAILS[1:])


@dataclass(frozen=True, slots=True)
class Choice:
    """An event (a set of outputs), its direction, and its expected bound on epsilon.

    Args:
        event: the event to count.
        direction: "x" or "x_prime": the input in the numerator of the ratio of probabilities.
        merit: the expected bound on epsilon (a cautious estimate), or below 0 if no bound is
            expected. Minus infinity means that, for every threshold, rounding can change the event.
        counts: counts of the event in the pilot outputs (first draws). `counts.k` is the count on
            x.
        is_clear: True if a wide gap separates pilot scores on x from pilot scores on x'.
        rounding: the best choice if rounding is ignored. None if its merit is not clearly larger.
        farther: a choice whose threshold is farther in the tail than that of `event`. Its bound is
            predicted by lines fitted to the tail. None if no such choice is good.
    """

    event: Above
    direction: str
    merit: float
    counts: Counts
    rounding: Choice | None = None
    is_clear: bool = False
    farther: Choice | None = None

    @property
    def counted(self) -> Above | Never:
        """The event to count, or an event that never happens if the expected bound is -infinity."""
        return Never() if self.merit == -math.inf else self.event


def column_grains(*sides: Array) -> tuple[Tolerance, ...]:
    """Return the grain of each column of outputs: the distance by which rounding may move a value.

    The tuple is empty if the outputs are not rows of numbers.
    """
    rows = read_both_sides(*map(np.asarray, sides))
    return () if rows is None else column_tolerances(*rows)


def part_grains(score: Any, *sides: Array) -> tuple[Tolerance, ...]:
    """Return the rounding tolerance of each number (part) of an output that a score reads.

    A part is, for example, the length of a string. The tuple is empty if the score reads whole
    outputs.
    """
    parts = score.parts.parts if isinstance(score, PartsScore) else ()
    grains = _grains_by_part(parts, *sides)
    return tuple(grains[part] for part in parts)


def _grains_by_part(parts: Sequence[Part], *sides: Array) -> dict[Part, Tolerance]:
    """Return the rounding tolerance (the grain) of each part of outputs.

    Counts and flags are exact. For other numbers, the grain is estimated from the outputs.
    """
    grains = dict.fromkeys(parts, EXACT)
    numbers = tuple(part for part in grains if not part.is_integral)
    if numbers:
        grains |= zip(numbers, column_grains(*map(Parts(numbers), sides)), strict=True)
    return grains


def score_tolerance(
    score: Any, grains: Sequence[Tolerance], values: Floats, values_prime: Floats
) -> Tolerance:
    """Return the distance by which rounding errors may move the values of a score.

    If the score's `merged` is True, rounding does not change the score, and the result is `EXACT`.
    If the score has a method `rounding`, this method computes the result from `grains`, the column
    tolerances. Otherwise, the result is an estimate from the values plus the largest grain.
    """
    if score_attribute(score, "merged"):
        return EXACT
    rounding: Callable[[Sequence[Tolerance]], Tolerance] | None = score_attribute(score, "rounding")
    if rounding is not None and grains:
        return rounding(grains)
    own = column_tolerance(values, values_prime)
    return replace(own, absolute=max((grain.typical_tolerance for grain in grains), default=0.0))


def inapplicable_error(attack: Any, outputs: Array) -> ValueError:
    """Return a ValueError whose message states that the attack does not apply to the outputs."""
    shape = (str(outputs.dtype), outputs.shape[1:])
    requirement = f"one that applies to these outputs ({type(attack).__name__}), or left out"
    return invalid("attack", requirement, shape)


@np.errstate(over="ignore", invalid="ignore")
def choose_events(
    scores: Sequence[Score], outputs: Array, outputs_prime: Array, goal: Goal
) -> list[Choice]:
    """Return the best event of each score, chosen on outputs that were not used to fit the scores.

    Args:
        scores: the scores, functions from outputs to real numbers.
        outputs: pilot outputs (first draws) on x, shape `(size, ...)`.
        outputs_prime: pilot outputs on x'.
        goal: the number of draws that will be counted, and the claim and confidence of the bound.

    Returns:
        For each score, the best event "the score is above (or below) a threshold".
    """
    sides, events = (outputs, outputs_prime), []
    grains = column_grains(*sides)
    with cache_parts():
        parts = [score.parts.parts if isinstance(score, PartsScore) else () for score in scores]
        together = Parts(tuple(dict.fromkeys(itertools.chain(*parts))))
        for side in sides if together.parts else ():
            together(side)
        of_parts = _grains_by_part(together.parts, *sides)
        for score, read in zip(scores, parts, strict=True):
            values, values_prime = (scores_of(score, side) for side in sides)
            own = tuple(of_parts[part] for part in read) or grains
            grain = score_tolerance(score, own, values, values_prime)
            events.append(best_threshold(score, values, values_prime, grain, goal))
    return events


def best_threshold(
    score: Score, values: Floats, values_prime: Floats, grain: Tolerance, goal: Goal
) -> Choice:
    """Return the event "the score is above (or below) a threshold" with the largest expected bound.

    Args:
        score: the score that the event compares with a threshold.
        values: values of the score for outputs on x, shape `(size,)`. Infinities and NaN are
            allowed.
        values_prime: values of the score for outputs on x'.
        grain: distance by which rounding may move a value of the score.
        goal: the number of draws that will be counted, and the claim and confidence of the bound.

    Returns:
        The event, its direction and its merit (expected bound). The merit is minus infinity if
        rounding can make all values equal.
    """
    sides = sorted_no_nan(values), sorted_no_nan(values_prime)
    marks = score_thresholds(*sides, grain)
    below = [[np.searchsorted(side, points) for points in marks.all] for side in sides]
    finite, sizes = [side.size for side in sides], (values.size, values_prime.size)
    return _choose_threshold(score, marks.points, np.array(below), finite, sizes, goal)


def best_of_sketches(
    score: Score, side: Sketch, side_prime: Sketch, marks: Thresholds, goal: Goal
) -> Choice:
    """Choose the best threshold for a score whose values are given only as histograms.

    Args:
        score: the score that the event compares with a threshold.
        side: histogram of the score's values on x, with the exact values in the two tails.
        side_prime: histogram of the values on x' in the same form, with the same edges.
        marks: thresholds from which the edges of the histograms were made.
        goal: the number of draws that will be counted, and the claim and confidence of the bound.

    Returns:
        The event and its direction. The threshold is one of `marks`, or lies in one of the two
        tails.
    """
    tails = (side.low, side_prime.low), (side.high, side_prime.high)
    marks = marks.join_others([score_thresholds(*tail, marks.grain) for tail in tails])
    sides = side, side_prime
    below = [[sketch.count_below(points) for points in marks.all] for sketch in sides]
    finite, sizes = [sketch.non_nan_count for sketch in sides], (side.size, side_prime.size)
    return _choose_threshold(score, marks.points, np.array(below), finite, sizes, goal)


def _choose_threshold(
    score: Score, points: Floats, below: Ints, finite: Sequence[int], sizes: Sizes, goal: Goal
) -> Choice:
    """Return the best of m thresholds, together with the best threshold if rounding is ignored.

    `below` counts values below a limit, shape `(2, 3, m)`. Axis 0 is x and x'. Axis 1 is the limit:
    a threshold minus its tolerance, the threshold, or the threshold plus its tolerance. `finite` is
    the number of values on x and on x' that are not NaN, and `sizes` is the number of all values.
    """
    if points.size == 0:
        return Choice(Above(score, 0.0), "x", -math.inf, _make_counts(0, 0, sizes))
    # Rows: above with x in the numerator, above with x', below with x, below with x'. In the worst
    # case rounding moves values out of the numerator and into the denominator.
    above = np.reshape(finite, (2, 1, 1)) - below[:, ::-1]
    least, plain, most = np.concatenate([above, below]).swapaxes(0, 1)
    event = _choose_above_or_below_event(score, points, (least, plain, most), sizes, goal)
    if np.array_equal(least, most):
        return event
    raw = _choose_above_or_below_event(score, points, (plain, plain, plain), sizes, goal)
    return replace(event, rounding=raw if raw.merit > min_merit_for_remark(event.merit) else None)


def score_ns(choice: Choice) -> int:
    """Return the time that the chosen event's score needs for one output, in nanoseconds."""
    return int(score_attribute(choice.event.score, "cost"))


merit_of: Final = attrgetter("merit")
"""Function that returns the merit (expected bound) of a choice, for sorting."""


def rank_of(choice: Choice) -> tuple[int, int]:
    """Return a sort key for chosen events: the simplicity of the score, and then its speed."""
    return int(score_attribute(choice.event.score, "plainness")), score_ns(choice)


@np.errstate(over="ignore", invalid="ignore")
def simplest_with_wide_gap(
    choices: Sequence[Choice], outputs: Array, outputs_prime: Array, fallback: Choice | None = None
) -> Choice:
    """Return the event with the simplest of the scores that separate x from x' by a wide gap.

    Args:
        choices: the chosen event of each score; at least one.
        outputs: pilot outputs (first draws) on x on which the events were chosen, shape
            `(size, ...)`.
        outputs_prime: pilot outputs on x' on which the events were chosen.
        fallback: the result if no score separates x from x' by a wide gap. If None, this is the
            choice with the largest expected bound.

    Returns:
        The chosen event. The threshold is a whole number if all values of the score are integers.
    """
    sides, fallback = (outputs, outputs_prime), fallback or max(choices, key=merit_of)
    least, most = _GAP_MERIT_RATIO * fallback.merit, min(DERIVED, rank_of(fallback)[0])
    plain = [each for each in choices if each.merit >= least and rank_of(each)[0] <= most]
    placed = [_move_into_gap(choice, sides) for choice in plain]
    chosen = min((choice for choice in placed if choice.is_clear), key=rank_of, default=fallback)
    event, kinds = chosen.event, {side.dtype.kind for side in sides}
    # A float array may hold fractions in later draws. Entries of objects keep their type.
    is_kept = kinds <= {*"bui"} or (isinstance(event.score, PartsScore) and not kinds <= {*"buif"})
    if is_kept and score_attribute(event.score, "alone"):
        values = np.concatenate([scores_of(event.score, side) for side in sides])
        if (values == np.rint(values)).all():
            event = replace(event, threshold=float(np.ceil(event.threshold)))
    return replace(chosen, event=event)


def _move_into_gap(choice: Choice, sides: tuple[Array, Array]) -> Choice:
    """Return the choice, with its threshold in a wide gap between x and x' if a gap exists."""
    counts, is_x = choice.counts, choice.direction == "x"
    own = counts if is_x else counts.swapped()
    errors = (own.n - own.k) / own.n + own.k_prime / own.n_prime
    if choice.merit <= 0.0 or errors > _MAX_GAP_ERRORS:
        return choice
    values = [sorted_no_nan(scores_of(choice.event.score, side)) for side in sides]
    numerator, rest = values if is_x else values[::-1]
    if numerator.size < len(sides[0 if is_x else 1]) or not rest.size:
        return choice
    low, high = (rest, numerator) if choice.event.side == "above" else (numerator, rest)
    gap, spread = high[0] - low[-1], max(low[-1] - low[0], high[-1] - high[0])
    if not gap > _MIN_GAP_SPREADS * spread:
        return choice
    if own.n > numerator.size or math.isinf(gap):
        # Further draws were counted at the chosen threshold, and so it must not move.
        return replace(choice, is_clear=errors == 0.0)
    event = replace(choice.event, threshold=float(place_between(low[-1], high[0])))
    exact = replace(own, k=own.n, k_prime=0)
    return replace(choice, event=event, counts=exact if is_x else exact.swapped(), is_clear=True)


def min_merit_for_remark(merit: float) -> float:
    """Return the expected bound above which the report mentions an event that ignores rounding.

    `merit` is the expected bound of the event that is chosen with rounding.
    """
    return _ROUNDING_REMARK_MARGIN[0] * max(merit, 0.0) + _ROUNDING_REMARK_MARGIN[1]


def _choose_above_or_below_event(
    score: Score, points: Floats, hits: tuple[Ints, Ints, Ints], sizes: Sizes, goal: Goal
) -> Choice:
    """Return the best of the events "above" and "below" m thresholds of a score.

    `points` are the thresholds, and `sizes` is the number of values on x and on x'. `hits` are
    three arrays: the least number of outputs in each event if rounding moves values, the counted
    number, and the largest number. Their rows are above on x, above on x', below on x, below on x'.
    """
    least, plain, most = hits
    draws, other = np.array([[sizes[0]], [sizes[1]]] * 2), [1, 0, 3, 2]
    against, lowered = _correct_extreme_threshold_bias(most)[other], 0
    for tail in goal.caution:
        merits = goal.predict(least, draws, against, draws[other], tail)
        if merits.max() > 0.0:
            break
        lowered += 1
    else:
        # No event has a positive merit: count at least an event that does not depend on rounding.
        merits = np.where((least == most).all(axis=0), merits, -math.inf)
    # A flag has at most two thresholds; it gains less by chance than the best of many thresholds.
    is_flag = isinstance(score, PartsScore) and points.size <= _MAX_FLAG_THRESHOLDS
    free = _UNPENALISED_CAUTIONS if is_flag else 0
    merits = merits - _LOWERED_CAUTION_PENALTY * max(0, lowered - free)
    which, place = divmod(int(np.argmax(merits)), points.size)
    k, k_prime = plain.reshape(2, 2, -1)[which // 2, :, place].tolist()
    event = Above(score, float(points[place]), "above" if which < 2 else "below")
    direction = "x_prime" if which % 2 else "x"
    return Choice(event, direction, float(merits[which, place]), _make_counts(k, k_prime, sizes))


def _correct_extreme_threshold_bias(hits: Array) -> Array:
    """Return counts corrected for the bias of a threshold just beyond the last value of an input.

    Such a threshold has the count 0, and looks too good because of the last value only. Therefore
    the count is increased by 1 if the next threshold towards the middle has a larger count.
    """
    inwards = hits.copy()
    inwards[:2, 1:] = hits[:2, :-1]
    inwards[2:, :-1] = hits[2:, 1:]
    return np.asarray(np.minimum(np.maximum(inwards, hits), hits + 1))


def _make_counts(k: int, k_prime: int, sizes: Sizes) -> Counts:
    return Counts(k, max(1, sizes[0]), k_prime, max(1, sizes[1]))


@dataclass(frozen=True, slots=True, repr=False)
class Fitted(Shown):
    """The event that an attack chose on the pilot (the first draws), with details for the report.

    Args:
        event: the event to count.
        direction: "x" or "x_prime": the input in the numerator of the ratio of probabilities.
        merit: the bound on epsilon that the event is expected to certify, or None if not estimated.
        pilot: number of pilot draws on each input.
        thresholds: thresholds of the event's score, for the trade-off curve. Empty without a score.
        lattice: the event that the attack chose on low-order bits of floats, or None if no such
            event was chosen.
        notes: sentences about the outputs, for the report.
        remarks: sentences about the choice of the event, for the report and the result of the
            audit.
        read: how many numbers (parts) of each output were found and compared. None if not stated.
        inside: the most frequent pilot outputs in the event, without repetitions.
        counts: counts of the event in the pilot draws on which it was chosen. None if not stated.
        constant: text for the report if all pilot outputs had the same value, otherwise "".
        is_steady: True if all outputs on x are equal, and all outputs on x' are equal.
    """

    event: Event
    direction: str
    merit: float | None
    pilot: int
    thresholds: Floats
    lattice: Choice | None = None
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    read: PartsRead | None = None
    inside: tuple[SeenOutput, ...] = ()
    counts: Counts | None = None
    constant: str = ""
    is_steady: bool = False


class TimingCounts(NamedTuple):
    """The event and its counts in an audit that measures the running time of calls.

    A coin chooses the input of each call. Therefore n and n_prime are random, and the bound on
    epsilon holds conditionally on n and n_prime.

    Args:
        event: the counted event, a function of the output and the running time of a call.
        direction: "x" or "x_prime": the input in the numerator of the ratio of probabilities.
        k: number of counted calls on x that are in the event.
        k_prime: number of counted calls on x' that are in the event.
        n: number of counted calls on x.
        n_prime: number of counted calls on x'.
        pilot: number of pilot calls, on x and x' together, on which the event was chosen.
        notes: sentences about the counts, for the report.
    """

    event: Above
    direction: str
    k: int
    k_prime: int
    n: int
    n_prime: int
    pilot: int
    notes: tuple[str, ...] = ()


class Pilot(Protocol):
    """The pilot (the first draws of an audit on x and on x'), on which the event is chosen."""

    @property
    def pair(self) -> Pair:
        """The pair of inputs (x, x')."""

    @property
    def goal(self) -> Goal:
        """Aim of the audit: the claim, the number of draws and the confidence of the bound."""

    @property
    def size(self) -> int:
        """Number of pilot draws (the first draws of the audit) on x, and also on x'."""

    def outputs(self) -> tuple[Array, Array]:
        """Return those outputs of the first draws, on x and on x', that are kept in memory."""

    def counts(self, event: Event, draws_per_input: int) -> Counts:
        """Count the outputs in an event, in the first `draws_per_input` draws on x and on x'."""

    def choose_score_and_event(self, attack: ScoreAttack) -> Fitted:
        """Choose the best score of an attack and the event "score above (or below) a threshold"."""


class Attack(Protocol):
    """A function `(outputs, outputs_prime, pair) -> event` that chooses an event.

    Every attack of `dpcore.attacks` is such a function. Users can write their own attacks. The
    attack sees only the pilot outputs (the first draws). The audit counts the event on further
    draws.
    """

    def __call__(self, outputs: Array, outputs_prime: Array, pair: Pair, /) -> Event:
        """Choose the event that the audit counts, from pilot outputs.

        Args:
            outputs: pilot outputs on `x`, shape `(size, ...)`.
            outputs_prime: pilot outputs on `x_prime`, shape `(size', ...)`.
            pair: the two inputs x and x'.

        Returns:
            The event: a function of outputs that returns one bool for each output, True if the
            output is in the event.
        """


class AuditAttack(Shown):
    """Base class of attacks, with the methods and attributes that an audit uses."""

    __slots__ = ()

    pools: ClassVar[bool] = False
    """True if the audit counts single coordinates of outputs (see `Coordinatewise`)."""
    times: ClassVar[bool] = False
    """True if calls are timed one by one, and a coin chooses the input of each call."""
    takes_stated_scores: ClassVar[bool] = False
    """True if the method `log_ratio` of a mechanism is tried as one more score."""
    by_ballot: ClassVar[bool] = False
    """True if the event is a majority vote, which the Rust core counts without storing outputs."""
    looks_at_floats: ClassVar[bool] = False
    """True if the audit also tests the low-order bits of floats by default."""
    fewest_pilot: ClassVar[int] = 32
    """Least number of pilot draws per input. With fewer, an audit may not refute a false claim.

    For Laplace noise with privacy loss 1, the bound was 0 in 10 % of the audits with 16 pilot draws
    and in most audits with 2 pilot draws. With 24 draws, the results were nearly as good as with
    more draws."""

    @property
    def given(self) -> Any:
        """The object that the user passed as the argument `attack`. Error messages show it."""
        return self

    @property
    def scoring(self) -> ScoreAttack | None:
        """This attack if it makes scores (functions from outputs to numbers), otherwise None."""
        return None

    def default_pilot(self, trials: int) -> int:
        """Return the default number of pilot draws on each input, if `trials` draws are counted.

        The event is chosen on the pilot draws (the first draws). Their number is a power of two.
        Therefore two audits of similar size with the same seed choose the same event, and their
        counts can be merged.
        """
        trials = power_of_two_below(trials)
        return min(
            power_of_two_below(max(min(max(trials, 128), 2000), trials // 8)), _MAX_PILOT_DRAWS
        )

    def fitted_on(self, pilot: Pilot) -> Fitted:
        """Choose, on the first draws, the event and the input for the numerator of the bound."""
        raise NotImplementedError(f"{type(self).__name__} is not fitted on draws")

    def timed_counts(
        self,
        call: Call,
        pair: Pair,
        calls: int,
        rng: Generator,
        *,
        pilot: int | None,
        confidence: float,
    ) -> TimingCounts:
        """Measure the running times of calls on x and on x', and return an event and its counts."""
        raise NotImplementedError(f"{type(self).__name__} times no calls")


class ScoreAttack(AuditAttack):
    """Base class of attacks that make scores: functions from outputs to real numbers.

    The event is "the score of the output is above (or below) a threshold". The attack uses the best
    of its scores and the best threshold of this score. A subclass is a frozen dataclass with one
    method, `candidates`, that returns the scores. An attack can also be called as a function of
    pilot outputs (first draws). The scores are fitted on the first half of these outputs. One score
    and its threshold are chosen on the second half.
    """

    __slots__ = ()

    parts = True
    """True if the attack is also fitted on numbers read from outputs that are not real numbers."""

    def candidates(self, outputs: Array, outputs_prime: Array, pair: Pair) -> tuple[Score, ...]:
        """Return scores that are fitted on the first draws, or () if the attack does not apply."""
        raise NotImplementedError(f"{type(self).__name__} has no candidates")

    def __call__(self, outputs: Array, outputs_prime: Array, pair: Pair) -> Above | Never:
        """Choose the event from pilot outputs.

        Args:
            outputs: pilot outputs on `x`, shape `(size, ...)`.
            outputs_prime: pilot outputs on `x_prime`, shape `(size', ...)`.
            pair: the two inputs x and x'.

        Returns:
            The event that is expected to certify the largest bound on epsilon if `10 * size`
            further outputs are counted on each input.

        Raises:
            ValueError: if the attack does not apply to the outputs, or if fewer than two outputs
                are given on x or on x'.
        """
        outputs, outputs_prime = np.asarray(outputs), np.asarray(outputs_prime)
        cut, cut_prime = len(outputs) // 2, len(outputs_prime) // 2
        if cut == 0 or cut_prime == 0:
            sizes = (len(outputs), len(outputs_prime))
            raise invalid("outputs", "at least two pilot outputs on each side", sizes)
        scores = read_candidates(self, outputs[:cut], outputs_prime[:cut_prime], pair)[0]
        if not scores:
            raise inapplicable_error(self, outputs)
        rest, rest_prime = outputs[cut:], outputs_prime[cut_prime:]
        choices = choose_events(scores, rest, rest_prime, Goal(10 * len(outputs)))
        return simplest_with_wide_gap(choices, rest, rest_prime).counted

    @property
    def scoring(self) -> ScoreAttack:
        """This attack itself."""
        return self

    def fitted_on(self, pilot: Pilot) -> Fitted:
        """Choose the best of the attack's scores, and its best threshold, on the first draws."""
        return pilot.choose_score_and_event(self)

    def joint(self, columns: Floats, columns_prime: Floats) -> tuple[Score, ...]:
        """Return scores that combine several numbers of each output. By default, return ().

        If the outputs are not arrays of numbers, numbers such as the lengths of strings are read
        from the outputs. Both arguments have shape `(size, numbers)` and few distinct values.
        """
        return ()

    def seldom(
        self, outputs: Sequence[Array], outputs_prime: Sequence[Array], goal: Goal
    ) -> Choice | None:
        """Choose a rare event on all pilot outputs (first draws). By default, return None."""
        return None

    def cross_score(self, outputs: Sequence[Array], outputs_prime: Sequence[Array]) -> CrossScored:
        """Return a score and its values on x and on x'. By default, return None.

        The value of each output comes from a fit that did not use this output.
        """
        return None

    def no_scores(self, outputs: Array) -> None:
        """Handle outputs for which the attack makes no scores: raise a ValueError by default."""
        raise inapplicable_error(self, outputs)


class NumericAttack(ScoreAttack):
    """Base class of attacks that make scores of numeric outputs and do not use the inputs.

    A subclass defines the method `make_scores` in place of `candidates`.
    """

    __slots__ = ()

    least_columns: ClassVar[int] = 1
    """Least number of entries of an output."""
    fallback: ClassVar[tuple[Score, ...]] = ()
    """Scores that are returned if the attack finds no difference, such as a constant score."""

    def candidates(self, outputs: Array, outputs_prime: Array, pair: Pair) -> tuple[Score, ...]:
        """Return scores that are fitted on first draws, or `fallback` if no score was made.

        The tuple is empty if the outputs are not rows of at least `least_columns` numbers.
        """
        return self.telling(outputs, outputs_prime, self.fallback)

    def telling(
        self, outputs: Array, outputs_prime: Array, fallback: tuple[Score, ...] = ()
    ) -> tuple[Score, ...]:
        """Fit scores; return `fallback` if none was made, and () if outputs are not numbers."""
        rows = read_both_sides(outputs, outputs_prime)
        if rows is None or rows[0].shape[1] < self.least_columns:
            return ()
        with nullcontext() if rows[0].shape[1] == 1 else use_one_blas_thread():
            return tuple(self.make_scores(*rows)) or fallback

    def make_scores(self, rows: Rows, rows_prime: Rows) -> Iterable[Score]:
        """Fit scores on pilot outputs (first draws): arrays of numbers, shape `(size, columns)`."""
        raise NotImplementedError(f"{type(self).__name__} makes no scores of numbers")


def power_of_two_below(size: int) -> int:
    """Return the largest power of two that is at most `size`; 1 if `size` is below 1."""
    return 1 << (int(max(1, size)).bit_length() - 1)


def require_scores(attack: AuditAttack, purpose: str) -> ScoreAttack:
    """Return the attack, or raise a ValueError if it makes no scores (functions of outputs).

    Args:
        attack: any attack.
        purpose: the last words of the error message. They state why scores are needed.

    Raises:
        ValueError: if the attack makes no scores.
    """
    if attack.scoring is None:
        raise invalid("attack", f"one that makes scores, {purpose}", attack.given)
    return attack.scoring


def attack_name(attack: AuditAttack) -> str:
    """Return the name of an attack for a report.

    The name is that of the class. If an option differs from its default, the name lists all
    options. If the attack is not defined in dpcore, the name is the name of the function or object.
    """
    stated, kind = attack.given, type(attack.given)
    if not kind.__module__.startswith(f"{__package__}."):
        return name_of(stated)
    changed = [field for field in fields(stated) if getattr(stated, field.name) != field.default]
    return repr(stated) if changed else kind.__name__


@dataclass(frozen=True, slots=True, repr=False)
class Own(AuditAttack):
    """An attack that calls a user's function to choose the event.

    The counts in the pilot (first draws) decide whether x or x' is in the numerator of the ratio.

    Args:
        function: the function `(outputs, outputs_prime, pair) -> event`.
    """

    function: Callable[..., Any]

    @property
    def given(self) -> Callable[..., Any]:
        """The user's function."""
        return self.function

    def fitted_on(self, pilot: Pilot) -> Fitted:
        """Return the user's event, and the input that gives the larger bound as the numerator."""
        outputs, outputs_prime = pilot.outputs()
        event = self.function(outputs, outputs_prime, pilot.pair)
        if not callable(event):
            raise mistyped("event", "a callable outputs -> bools", event)
        size, level = len(outputs), (pilot.goal.delta, pilot.goal.confidence)
        counts = pilot.counts(event, size)
        ways = {"x_prime": counts.swapped(), "x": counts}
        merits = {way: clopper_pearson(ordered, *level) for way, ordered in ways.items()}
        direction = max(merits, key=merits.__getitem__)
        return Fitted(event, direction, merits[direction], size, np.empty(0))


def attack_of(given: Any) -> AuditAttack:
    """Convert the argument `attack` of an audit to an `AuditAttack`.

    Args:
        given: an attack of this package, an instance of a subclass of `ScoreAttack`, or a function
            `(outputs, outputs_prime, pair) -> event`.

    Raises:
        TypeError: if the argument is not callable, or is the class of an attack.

    Example:
        >>> attack_of(max).given
        <built-in function max>
    """
    if isinstance(given, type) and issubclass(given, AuditAttack):
        raise mistyped("attack", f"an attack, not its class ({given.__name__}() makes one)", given)
    # A subclass of the vote may choose a different event when it is called.
    if isinstance(given, AuditAttack) and (not given.by_ballot or "by_ballot" in vars(type(given))):
        return given
    if not callable(given):
        raise mistyped("attack", "a callable (outputs, outputs_prime, pair) -> event", given)
    return Own(given)
