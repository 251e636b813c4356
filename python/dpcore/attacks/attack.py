"""Interface between audits and attacks, and the choice of one event from scores.

A score is a function from outputs to real numbers. An event is "the score is above (or below) a
threshold". The direction is the input whose probability is in the numerator of the ratio that
bounds epsilon. The choice uses only pilot draws, which are not counted for the bound. It takes the
score, the threshold, "above" or "below", and the direction with the largest expected bound.
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
from ..bounds.power import limits_of_counts, limits_to_bounds
from ..claims.trade_off import Claim
from ..errors import invalid, mistyped
from ..events import Above, Event, Never
from ..events.event import Score, score_attribute, scores_of
from ..packages import one_blas_thread
from ..records import Array, Counts, Floats, Ints, Pair, PartsRead, Rows, SeenOutput
from ..report.shown import Shown, name_of
from ..sampling.sources import Call
from ..sampling.tally import Sketch
from .arrays import read_both_sides
from .bins import Marks, marks_of, place_between, sorted_values
from .candidates import OfParts, read_candidates
from .grains import EXACT, Grain, grain_of, grains_of
from .parts import DERIVED, Part, Parts, remember_parts

_CAUTION_TAILS: Final = (0.003, 0.03, 0.1, 0.25, 0.4)
"""Tail probabilities for the limits of the pilot's rates (see `Goal.predict`).

The first is small, because the best of hundreds of thresholds is chosen, and one of so many rare
events can look good by chance."""
_ROUNDING_REMARK_MARGIN: Final = 1.1, 0.05
"""Factor and margin of a remark on rounding. It appears if the merit without rounding exceeds the
factor times the merit of the chosen event plus the margin."""
_LOWERED_CAUTION_PENALTY: Final = 1000.0
"""Penalty on the merit of an event that passes only with less caution; it is ranked last."""
_MIN_GAP_SPREADS: Final = 3.0
"""A gap between the sides is wide if it is longer than this many times the spread of either side.
For Laplace noise the pilot spreads over 12 scales, and fewer than one output in 10^9 crosses such
a gap."""
_MAX_GAP_ERRORS: Final = 0.25
"""Largest share of outputs that may lie on the wrong side of a threshold near such a gap."""
_GAP_MERIT_RATIO: Final = 0.9
"""Least share of the usual choice's merit that an event in a gap must reach; rounding lowers it."""
_MAX_FLAG_THRESHOLDS: Final = 2
_UNPENALISED_CAUTIONS: Final = 2
"""Number of lower levels of caution without a penalty, for a part of at most two thresholds."""

CrossScored = tuple[Score, Floats, Floats] | None
"""A score with its values on x and on x'. Each value comes from a fit that did not use its row."""
Sizes = tuple[int, int]
"""Numbers of values on x and on x'."""
_MAX_PILOT_DRAWS: Final = 2**26
"""Largest default number of pilot draws per side."""


@dataclass(frozen=True, slots=True)
class Goal:
    """The bound that the counted draws should certify: number of draws, claim and confidence.

    Args:
        trials: number of outputs on each input that the audit will count.
        delta: delta of the claim.
        confidence: confidence of the bound.
        caution: tail probabilities of the confidence limits that are computed from pilot counts.
            The audit tries the limits in this order until an event has a positive expected bound.
        claim: a claim that is a privacy curve, such as zCDP. None for a claim (epsilon, delta).
        is_total_variation: True if the claim has epsilon 0. Then the bound is on delta: the
            difference of the probabilities of an event on x and on x'.
    """

    trials: int
    delta: float = 0.0
    confidence: float = 0.95
    caution: tuple[float, ...] = _CAUTION_TAILS
    claim: Claim | None = None
    is_total_variation: bool = False

    def predict(self, k: Any, n: Any, k_prime: Any, n_prime: Any, tail: float) -> Floats:
        """Return the bounds on epsilon that events are expected to certify, from pilot counts.

        For a claim that is a curve, return by how much each event exceeds the curve. For a claim
        with epsilon 0, return lower bounds on delta.
        """
        counts = [np.asarray(value, np.float64) for value in (k, n, k_prime, n_prime)]
        limits = limits_of_counts(counts, float(self.trials), self.confidence, tail)
        if self.is_total_variation:
            return limits[0] - limits[1]
        if self.claim is None:
            return limits_to_bounds(*limits, self.delta)
        return self.claim.excess(*limits)

    def first_comparison_goal(self) -> Goal:
        """Return a copy with less caution, for a first comparison of many events."""
        return replace(self, caution=_CAUTION_TAILS[1:])


@dataclass(frozen=True, slots=True)
class Choice:
    """An event, its direction, and the bound on epsilon that it is expected to certify.

    Args:
        event: the event to count.
        direction: "x" or "x_prime": the input in the numerator of the ratio of probabilities.
        merit: the expected bound on epsilon for `Goal.trials` draws, from pessimistic limits of the
            pilot's rates. If the merit is negative, no bound is expected; such merits can still be
            compared. If it is minus infinity, every threshold of the score depends on rounding, and
            `counted` is an event that never happens.
        counts: counts of the event in the pilot; `counts.k` belongs to x.
        is_clear: True if a wide gap separates the pilot's scores on x from those on x'.
        rounding: the best event if rounding is ignored, or None if its merit is not clearly larger.
            This event shows a property of the floating-point code.
        farther: an event with a threshold far in the tail, found with lines fitted to the tail.
            None if no such event was found.
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
        """The event that the audit counts: `event`, or `Never()` if `merit` is minus infinity."""
        return Never() if self.merit == -math.inf else self.event


def column_grains(*sides: Array) -> tuple[Grain, ...]:
    """Return the rounding tolerance (the grain) of each column of outputs.

    The tuple is empty if the outputs are not rows of numbers.
    """
    rows = read_both_sides(*map(np.asarray, sides))
    return () if rows is None else grains_of(*rows)


def part_grains(score: Any, *sides: Array) -> tuple[Grain, ...]:
    """Return the rounding tolerance (the grain) of each part of outputs that a score reads.

    A part is one real number of an output. The tuple is empty if the score reads whole outputs.
    """
    parts = score.parts.parts if isinstance(score, OfParts) else ()
    grains = _grains_by_part(parts, *sides)
    return tuple(grains[part] for part in parts)


def _grains_by_part(parts: Sequence[Part], *sides: Array) -> dict[Part, Grain]:
    """Return the rounding tolerance (the grain) of each part of outputs.

    Counts and flags are exact. For other numbers, the grain is estimated from the outputs.
    """
    grains = dict.fromkeys(parts, EXACT)
    numbers = tuple(part for part in grains if not part.is_whole)
    if numbers:
        grains |= zip(numbers, column_grains(*map(Parts(numbers), sides)), strict=True)
    return grains


def score_grain(score: Any, grains: Sequence[Grain], values: Floats, values_prime: Floats) -> Grain:
    """Return the grain of a score: the distance by which rounding may move its values.

    If the attribute `merged` of the score is True, rounding does not change its values, and the
    grain is `EXACT`. If the score has a method `rounding(grains)`, this method computes the grain
    from the grains of the columns that the score reads. For other scores, the grain is estimated
    from the values of the score and from the coarsest of its columns.
    """
    if score_attribute(score, "merged"):
        return EXACT
    rounding: Callable[[Sequence[Grain]], Grain] | None = score_attribute(score, "rounding")
    if rounding is not None and grains:
        return rounding(grains)
    own = grain_of(values, values_prime)
    return replace(own, absolute=max((grain.median_tolerance for grain in grains), default=0.0))


def inapplicable_error(attack: Any, outputs: Array) -> ValueError:
    """Return a ValueError with the message that an attack does not apply to these outputs."""
    shape = (str(outputs.dtype), outputs.shape[1:])
    requirement = f"one that applies to these outputs ({type(attack).__name__}), or left out"
    return invalid("attack", requirement, shape)


@np.errstate(over="ignore", invalid="ignore")
def choose_events(
    scores: Sequence[Score], outputs: Array, outputs_prime: Array, goal: Goal
) -> list[Choice]:
    """Return the best event of each score, judged on outputs that were not used to fit the scores.

    Args:
        scores: the scores, functions from outputs to real numbers.
        outputs: pilot outputs on x that were not used for a fit, shape `(size, ...)`.
        outputs_prime: pilot outputs on x' that were not used for a fit.
        goal: number of draws that will be counted, with the claim and confidence of the bound.

    Returns:
        One choice for each score.
    """
    sides, events = (outputs, outputs_prime), []
    grains = column_grains(*sides)
    with remember_parts():
        parts = [score.parts.parts if isinstance(score, OfParts) else () for score in scores]
        together = Parts(tuple(dict.fromkeys(itertools.chain(*parts))))
        for side in sides if together.parts else ():
            together(side)
        of_parts = _grains_by_part(together.parts, *sides)
        for score, read in zip(scores, parts, strict=True):
            values, values_prime = (scores_of(score, side) for side in sides)
            own = tuple(of_parts[part] for part in read) or grains
            grain = score_grain(score, own, values, values_prime)
            events.append(best_threshold(score, values, values_prime, grain, goal))
    return events


def best_threshold(
    score: Score, values: Floats, values_prime: Floats, grain: Grain, goal: Goal
) -> Choice:
    """Return the best event "the score is above (or below) a threshold", with its direction.

    The direction is the input in the numerator of the ratio of probabilities.

    Args:
        score: the score, from which the event is made.
        values: values of the score on x, shape `(size,)`; infinities and NaN are allowed.
        values_prime: values of the score on x'.
        grain: distance by which rounding may move the values.
        goal: number of draws that will be counted, with the claim and confidence of the bound.

    Returns:
        The choice. The field `merit` is minus infinity if rounding can make all values equal.
    """
    sides = sorted_values(values), sorted_values(values_prime)
    marks = marks_of(*sides, grain)
    below = [[np.searchsorted(side, points) for points in marks.all] for side in sides]
    finite, sizes = [side.size for side in sides], (values.size, values_prime.size)
    return _choose_threshold(score, marks.points, np.array(below), finite, sizes, goal)


def best_of_sketches(
    score: Score, side: Sketch, side_prime: Sketch, marks: Marks, goal: Goal
) -> Choice:
    """Return the best threshold for a score with too many values to keep in memory.

    Args:
        score: the score, from which the event is made.
        side: sketch of the score's values on x: a histogram, with exact values in the two tails.
        side_prime: sketch of the values on x', with the same edges.
        marks: the thresholds from which the edges of the histogram were made.
        goal: number of draws that will be counted, with the claim and confidence of the bound.

    Returns:
        The choice. Its threshold is one of the marks or lies in one of the two tails.
    """
    tails = (side.low, side_prime.low), (side.high, side_prime.high)
    marks = marks.join_others([marks_of(*tail, marks.grain) for tail in tails])
    sides = side, side_prime
    below = [[sketch.count_below(points) for points in marks.all] for sketch in sides]
    finite, sizes = [sketch.finite for sketch in sides], (side.size, side_prime.size)
    return _choose_threshold(score, marks.points, np.array(below), finite, sizes, goal)


def _choose_threshold(
    score: Score, points: Floats, below: Ints, finite: Sequence[int], sizes: Sizes, goal: Goal
) -> Choice:
    """Return the best of m thresholds, together with the best threshold if rounding is ignored.

    `points` are the thresholds. `below` are counts of values, shape `(2, 3, m)`. The first axis is
    x and x'. The second axis is: below the threshold minus its rounding tolerance, below the
    threshold, and below the threshold plus its tolerance. `finite` is the number of values on x and
    on x' that are not NaN, and `sizes` is the number of all values.
    """
    if points.size == 0:
        return Choice(Above(score, 0.0), "x", -math.inf, _pilot_counts(0, 0, sizes))
    # Rows: above with x in the numerator, above with x', below with x, below with x'. In the worst
    # case rounding moves values out of the numerator and into the denominator.
    above = np.reshape(finite, (2, 1, 1)) - below[:, ::-1]
    least, plain, most = np.concatenate([above, below]).swapaxes(0, 1)
    event = _choose_event(score, points, (least, plain, most), sizes, goal)
    if np.array_equal(least, most):
        return event
    raw = _choose_event(score, points, (plain, plain, plain), sizes, goal)
    return replace(event, rounding=raw if raw.merit > rounding_remark_merit(event.merit) else None)


def cost_of(choice: Choice) -> int:
    """Return the cost of a choice: the nanoseconds per output that its score declares."""
    return int(score_attribute(choice.event.score, "cost"))


merit_of: Final = attrgetter("merit")
"""Merit of a choice, as a sort key."""


def rank_of(choice: Choice) -> tuple[int, int]:
    """Return a sort key: scores that are easier to read come first, then faster scores."""
    return int(score_attribute(choice.event.score, "plainness")), cost_of(choice)


@np.errstate(over="ignore", invalid="ignore")
def choose_plainest(
    choices: Sequence[Choice], outputs: Array, outputs_prime: Array, usual: Choice | None = None
) -> Choice:
    """Return the event that is easiest to read and separates x from x' by a wide gap, or `usual`.

    Args:
        choices: at least one choice.
        outputs: pilot outputs on x on which the choices were judged, shape `(size, ...)`.
        outputs_prime: pilot outputs on x' on which the choices were judged.
        usual: the result if no score separates x from x' by a wide gap. Defaults to the choice with
            the largest expected bound.

    Returns:
        The choice. Its threshold is a whole number if the values of the score are integers.
    """
    sides, usual = (outputs, outputs_prime), usual or max(choices, key=merit_of)
    least, most = _GAP_MERIT_RATIO * usual.merit, min(DERIVED, rank_of(usual)[0])
    plain = [each for each in choices if each.merit >= least and rank_of(each)[0] <= most]
    placed = [_move_into_gap(choice, sides) for choice in plain]
    chosen = min((choice for choice in placed if choice.is_clear), key=rank_of, default=usual)
    event, kinds = chosen.event, {side.dtype.kind for side in sides}
    # A float array may hold fractions in later draws. Entries of objects keep their type.
    is_kept = kinds <= {*"bui"} or (isinstance(event.score, OfParts) and not kinds <= {*"buif"})
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
    values = [sorted_values(scores_of(choice.event.score, side)) for side in sides]
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


def rounding_remark_merit(merit: float) -> float:
    """Return a limit for the report: if rounding is ignored, a larger merit deserves a remark."""
    return _ROUNDING_REMARK_MARGIN[0] * max(merit, 0.0) + _ROUNDING_REMARK_MARGIN[1]


def _choose_event(
    score: Score, points: Floats, hits: tuple[Ints, Ints, Ints], sizes: Sizes, goal: Goal
) -> Choice:
    """Return the best of the events "above" and "below" m thresholds of a score.

    `points` are the thresholds, and `sizes` is the number of values on x and on x'. `hits` are
    three arrays of shape `(4, m)`: the least, the counted and the largest number of outputs in each
    event, if rounding moves the values. The rows are: above on x, above on x', below on x, below on
    x'.
    """
    least, plain, most = hits
    draws, other = np.array([[sizes[0]], [sizes[1]]] * 2), [1, 0, 3, 2]
    against, lowered = _correct_threshold_bias(most)[other], 0
    for tail in goal.caution:
        merits = goal.predict(least, draws, against, draws[other], tail)
        if merits.max() > 0.0:
            break
        lowered += 1
    else:
        # No event has a positive merit: count at least an event that does not depend on rounding.
        merits = np.where((least == most).all(axis=0), merits, -math.inf)
    # A flag has at most two thresholds; it gains less by chance than the best of many thresholds.
    is_flag = isinstance(score, OfParts) and points.size <= _MAX_FLAG_THRESHOLDS
    free = _UNPENALISED_CAUTIONS if is_flag else 0
    merits = merits - _LOWERED_CAUTION_PENALTY * max(0, lowered - free)
    which, place = divmod(int(np.argmax(merits)), points.size)
    k, k_prime = plain.reshape(2, 2, -1)[which // 2, :, place].tolist()
    event = Above(score, float(points[place]), "above" if which < 2 else "below")
    direction = "x_prime" if which % 2 else "x"
    return Choice(event, direction, float(merits[which, place]), _pilot_counts(k, k_prime, sizes))


def _correct_threshold_bias(hits: Array) -> Array:
    """Return counts corrected for the bias of a threshold just beyond the last value of an input.

    Such a threshold has the count 0, and looks too good because of the last value only. Therefore
    the count is increased by 1 if the next threshold towards the middle has a larger count.
    """
    inwards = hits.copy()
    inwards[:2, 1:] = hits[:2, :-1]
    inwards[2:, :-1] = hits[2:, 1:]
    return np.asarray(np.minimum(np.maximum(inwards, hits), hits + 1))


def _pilot_counts(k: int, k_prime: int, sizes: Sizes) -> Counts:
    return Counts(k, max(1, sizes[0]), k_prime, max(1, sizes[1]))


@dataclass(frozen=True, slots=True, repr=False)
class Fitted(Shown):
    """The event and the direction that an attack chose on the pilot, with details for the report.

    Args:
        event: the event to count.
        direction: "x" or "x_prime": the input in the numerator of the ratio of probabilities.
        merit: the bound that the event is expected to certify, or None if it was not estimated.
        pilot: number of pilot draws on each input.
        thresholds: thresholds of the event's score, for the trade-off curve; empty without a score.
        lattice: the event on low-order bits of floats, or None if the attack on them chose none.
        notes: sentences about the outputs, for the reader of the report.
        remarks: sentences about the choice. They are also an attribute of the audit's result.
        read: number of parts of the outputs that were found and compared, or None if the attack
            does not state it.
        inside: those distinct outputs inside the event that are most frequent in the pilot.
        counts: counts of the event in that part of the pilot on which the event was chosen, or
            None.
        constant: a text which states that all pilot outputs had the same value. Empty if they did
            not.
        is_steady: True if all pilot outputs on x are equal and all pilot outputs on x' are equal.
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
    """The counts of an audit of running times.

    A coin chooses the input of each call. Therefore n and n_prime are random, and the bound holds
    conditionally on n and n_prime.

    Args:
        event: the counted event, on rows that contain the output and the running time of a call.
        direction: "x" or "x_prime": the input in the numerator, chosen on the pilot.
        k: number of counted calls on x that are in the event.
        k_prime: number of counted calls on x' that are in the event.
        n: number of counted calls on x.
        n_prime: number of counted calls on x'.
        pilot: number of calls on x and x' together on which the event was chosen.
        notes: sentences about the counts, for the reader of the report.
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
    """The pilot: the first draws of an audit, on which an attack chooses its event."""

    @property
    def pair(self) -> Pair:
        """The two inputs."""

    @property
    def goal(self) -> Goal:
        """The number of draws that will be counted, with the claim and confidence of the bound."""

    @property
    def size(self) -> int:
        """Number of pilot draws on each input."""

    def outputs(self) -> tuple[Array, Array]:
        """Return pilot outputs on x and on x', at most as many as are kept in memory."""

    def counts(self, event: Event, size: int) -> Counts:
        """Count how often an event happened in the first `size` outputs on x and on x'."""

    def fit_scores(self, attack: ScoreAttack) -> Fitted:
        """Choose the best of the attack's scores and its best threshold."""


class Attack(Protocol):
    """An attack, which chooses an event: a function `(outputs, outputs_prime, pair) -> event`.

    Every attack of `dpcore.attacks` is such a function, and a user can write one. An attack gets
    only the outputs of the pilot: the first draws, on which the event is chosen. The audit then
    counts how often the event happens in further draws.
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
    """Base class of attacks, with the properties that an audit needs.

    The subclass `Own` wraps a plain function and has the default properties.
    """

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
    """Pilot draws on each input below which an audit often does not refute a false claim.

    For Laplace noise with privacy loss 1, the bound was 0 in 10 % of the audits with 16 pilot draws
    and in most audits with 2 pilot draws.
    With 24 draws the results were nearly as good as with more."""

    @property
    def given(self) -> Any:
        """The object that the user passed as attack, for error messages."""
        return self

    @property
    def scoring(self) -> ScoreAttack | None:
        """The attack itself if it makes scores (functions from outputs to numbers), or None."""
        return None

    def default_pilot(self, trials: int) -> int:
        """Return the default number of pilot draws on each input, for `trials` counted draws.

        The number is a power of two. Therefore audits of similar size with the same seed choose the
        same event, and their counts can be merged.
        """
        trials = power_of_two_below(trials)
        return min(
            power_of_two_below(max(min(max(trials, 128), 2000), trials // 8)), _MAX_PILOT_DRAWS
        )

    def fitted_on(self, pilot: Pilot) -> Fitted:
        """Choose an event, and the input in the numerator, from pilot draws."""
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
        """Time calls on x and on x'; return the event, the input in the numerator and counts."""
        raise NotImplementedError(f"{type(self).__name__} times no calls")


class ScoreAttack(AuditAttack):
    """Base class of attacks that make scores: functions from outputs to real numbers.

    The event is "the score of the output is above (or below) a threshold", with the best of the
    scores and its best threshold. A subclass is a frozen dataclass with one method, `candidates`,
    which returns the scores. If the attack is called like a function, it splits the pilot outputs
    into two halves. The first half fits the scores. The second half chooses one score and its
    threshold.
    """

    __slots__ = ()

    parts = True
    """True if the attack is also fitted on parts of outputs that are not real numbers."""

    def candidates(self, outputs: Array, outputs_prime: Array, pair: Pair) -> tuple[Score, ...]:
        """Return scores that are fitted on pilot outputs; () if the attack does not apply."""
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
        return choose_plainest(choices, rest, rest_prime).counted

    @property
    def scoring(self) -> ScoreAttack:
        """The attack itself."""
        return self

    def fitted_on(self, pilot: Pilot) -> Fitted:
        """Choose the best of the attack's scores and its best threshold, from pilot draws."""
        return pilot.fit_scores(self)

    def joint(self, columns: Floats, columns_prime: Floats) -> tuple[Score, ...]:
        """Return scores that combine several parts of outputs, or ().

        A part is one real number of an output, such as the length of a string. The columns have
        shape `(size, parts)`, and each column has few values. Most attacks return ().
        """
        return ()

    def seldom(
        self, outputs: Sequence[Array], outputs_prime: Sequence[Array], goal: Goal
    ) -> Choice | None:
        """Choose a rare event on all pilot outputs together, or return None.

        The event is so rare that half of the pilot outputs contain too few outputs in it.
        """
        return None

    def cross_score(self, outputs: Sequence[Array], outputs_prime: Sequence[Array]) -> CrossScored:
        """Return a cross-fitted score with its values on x and on x', or None.

        Each value comes from a fit that did not use this output. Most attacks return None.
        """
        return None

    def no_scores(self, outputs: Array) -> None:
        """Raise a ValueError if no score fits the outputs, unless the attack allows this."""
        raise inapplicable_error(self, outputs)


class NumericAttack(ScoreAttack):
    """Base class of attacks that make scores of numeric outputs and do not use the inputs.

    A subclass has the method `make_scores` in place of `candidates`.
    """

    __slots__ = ()

    least_columns: ClassVar[int] = 1
    """Least number of entries of an output."""
    fallback: ClassVar[tuple[Score, ...]] = ()
    """Scores of an attack that finds no difference; a constant score certifies the bound 0."""

    def candidates(self, outputs: Array, outputs_prime: Array, pair: Pair) -> tuple[Score, ...]:
        """Return scores fitted on pilot outputs, or `fallback` if `make_scores` makes no scores.

        The tuple is empty if an output is not a row of at least `least_columns` numbers.
        """
        return self.telling(outputs, outputs_prime, self.fallback)

    def telling(
        self, outputs: Array, outputs_prime: Array, fallback: tuple[Score, ...] = ()
    ) -> tuple[Score, ...]:
        """Return the scores of `make_scores`, or else `fallback`; () if outputs do not fit."""
        rows = read_both_sides(outputs, outputs_prime)
        if rows is None or rows[0].shape[1] < self.least_columns:
            return ()
        with nullcontext() if rows[0].shape[1] == 1 else one_blas_thread():
            return tuple(self.make_scores(*rows)) or fallback

    def make_scores(self, rows: Rows, rows_prime: Rows) -> Iterable[Score]:
        """Return scores fitted on pilot outputs: rows of numbers, shape `(size, columns)`."""
        raise NotImplementedError(f"{type(self).__name__} makes no scores of numbers")


def power_of_two_below(size: int) -> int:
    """Return the largest power of two that is at most `size`; 1 if `size` is below 1."""
    return 1 << (int(max(1, size)).bit_length() - 1)


def require_scores(attack: AuditAttack, purpose: str) -> ScoreAttack:
    """Return the attack if it makes scores; otherwise raise a ValueError.

    Args:
        attack: any attack.
        purpose: the end of the error message: why the scores are needed.

    Raises:
        ValueError: if the attack makes no scores.
    """
    if attack.scoring is None:
        raise invalid("attack", f"one that makes scores, {purpose}", attack.given)
    return attack.scoring


def attack_name(attack: AuditAttack) -> str:
    """Return the name of an attack in a report: its class, with options that are not the default.

    For an attack that is not defined in dpcore, return the name of the function or object.
    """
    stated, kind = attack.given, type(attack.given)
    if not kind.__module__.startswith(f"{__package__}."):
        return name_of(stated)
    changed = [field for field in fields(stated) if getattr(stated, field.name) != field.default]
    return repr(stated) if changed else kind.__name__


@dataclass(frozen=True, slots=True, repr=False)
class Own(AuditAttack):
    """An attack that is a user's function, which chooses the event.

    The pilot counts choose the direction: the input in the numerator.

    Args:
        function: the function `(outputs, outputs_prime, pair) -> event`.
    """

    function: Callable[..., Any]

    @property
    def given(self) -> Callable[..., Any]:
        """The function."""
        return self.function

    def fitted_on(self, pilot: Pilot) -> Fitted:
        """Return the function's event, with the input in the numerator of the larger bound."""
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
