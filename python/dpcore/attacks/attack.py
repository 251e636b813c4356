"""The contract between audits and attacks, and the choice of one event from scores.

The choice reads pilot draws only and certifies no bound: it takes the threshold, side and direction
that are expected to certify most.
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
"""Tails of the pilot's limits (see `predicted`). The first is small because the best of hundreds
of thresholds is looked for, and a rare event is good by luck among so many."""
_ROUNDING_REMARK_MARGIN: Final = 1.1, 0.05
"""An event that rounding explains is spoken of from so many times the merit of the other, plus
so much."""
_LOWERED_CAUTION_PENALTY: Final = 1000.0
"""Penalty of an event that needs a smaller caution than the first: it ranks below the rest."""
_MIN_GAP_SPREADS: Final = 3.0
"""A gap between the sides is wide if it is longer than so many times the spread of either side: of
Laplace noise, whose pilot spreads over 12 scales, less than one output in 10^9 crosses it."""
_MAX_GAP_ERRORS: Final = 0.25
"""Share of the outputs that may lie on the wrong side of a threshold near such a gap."""
_GAP_MERIT_RATIO: Final = 0.9
"""Share of the usual choice's merit that such an event must promise: rounding lowers it."""
_MAX_FLAG_THRESHOLDS: Final = 2
_UNPENALISED_CAUTIONS: Final = 2
"""Smaller cautions that do not do so for a part of at most two thresholds."""

CrossScored = tuple[Score, Floats, Floats] | None
"""A score with its values on x and on x', each by a fit without it."""
Sizes = tuple[int, int]
"""Numbers of values on x and on x'."""
_MAX_PILOT_DRAWS: Final = 2**26
"""Pilot draws per side where the caller did not say."""


@dataclass(frozen=True, slots=True)
class Goal:
    """The aim of the counted draws: their number, and the claim and confidence of the bound.

    Args:
        trials: draws per side that will be counted.
        delta: delta of the claim.
        confidence: confidence of the bound.
        caution: tails of the pilot's limits that are tried until something remains.
        claim: a claim that is a curve, which the event is to refute, or None for (epsilon, delta).
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
        counts = [np.asarray(value, np.float64) for value in (k, n, k_prime, n_prime)]
        limits = limits_of_counts(counts, float(self.trials), self.confidence, tail)
        if self.claim is None:
            return limits_to_bounds(*limits, self.delta)
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
            below 0 where it certifies none, and still comparable; minus infinity where
            the score has no threshold but within rounding: then it is not counted (`counted`).
        counts: what the pilot counted; `counts.k` belongs to x.
        is_clear: True if a wide gap separates the sides on the pilot, see `choose_plainest`.
        rounding: the event that would have been chosen without any rounding, where it promises
            clearly more; what it shows is the code as it runs.
        farther: the event at a threshold in the tail, by lines fitted to it. Defaults to none.
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
        """The event, or one that does not happen where there is none."""
        return Never() if self.merit == -math.inf else self.event


def column_grains(*sides: Array) -> tuple[Grain, ...]:
    """Return the grains of the columns of outputs, or none if they are not rows of numbers."""
    rows = read_both_sides(*map(np.asarray, sides))
    return () if rows is None else grains_of(*rows)


def part_grains(score: Any, *sides: Array) -> tuple[Grain, ...]:
    """Return the grains of the parts that a score reads, or none for a score of whole outputs."""
    parts = score.parts.parts if isinstance(score, OfParts) else ()
    grains = _grains_by_part(parts, *sides)
    return tuple(grains[part] for part in parts)


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
    if score_attribute(score, "merged"):
        return EXACT
    rounding: Callable[[Sequence[Grain]], Grain] | None = score_attribute(score, "rounding")
    if rounding is not None and grains:
        return rounding(grains)
    own = grain_of(values, values_prime)
    return replace(own, absolute=max((grain.typical for grain in grains), default=0.0))


def not_applicable(attack: Any, outputs: Array) -> ValueError:
    """Return the complaint of an attack that does not apply to such outputs."""
    shape = (str(outputs.dtype), outputs.shape[1:])
    requirement = f"one that applies to these outputs ({type(attack).__name__}), or left out"
    return invalid("attack", requirement, shape)


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
    below = [[sketch.count_below(points) for points in marks.all] for sketch in sides]
    finite, sizes = [sketch.finite for sketch in sides], (side.size, side_prime.size)
    return _choose_threshold(score, marks.points, np.array(below), finite, sizes, goal)


def _choose_threshold(
    score: Score, points: Floats, below: Ints, finite: Sequence[int], sizes: Sizes, goal: Goal
) -> Choice:
    """Return the best of some thresholds, and the best without any rounding.

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
    event = _choose_event(score, points, (least, plain, most), sizes, goal)
    if np.array_equal(least, most):
        return event
    raw = _choose_event(score, points, (plain, plain, plain), sizes, goal)
    return replace(event, rounding=raw if raw.merit > rounded_merit(event.merit) else None)


def cost_of(choice: Choice) -> int:
    """Return the nanoseconds per output that the score declares."""
    return int(score_attribute(choice.event.score, "cost"))


merit_of: Final = attrgetter("merit")
"""Merit of a choice, as a sort key."""


def rank_of(choice: Choice) -> tuple[int, int]:
    """Return the plainness of the score and its cost, as a sort key."""
    return int(score_attribute(choice.event.score, "plainness")), cost_of(choice)


@np.errstate(over="ignore", invalid="ignore")
def choose_plainest(
    choices: Sequence[Choice], outputs: Array, outputs_prime: Array, usual: Choice | None = None
) -> Choice:
    """Return the plainest event that separates the sides by a wide gap, or else the usual choice.

    Args:
        choices: at least one.
        outputs: pilot outputs on x, on which they were judged, shape `(size, ...)`.
        outputs_prime: the same on x'.
        usual: the choice where no event separates the sides. Defaults to the largest merit.

    Returns:
        The choice, with a whole threshold where the values of the score are integers.
    """
    sides, usual = (outputs, outputs_prime), usual or max(choices, key=merit_of)
    least, most = _GAP_MERIT_RATIO * usual.merit, min(DERIVED, rank_of(usual)[0])
    plain = [each for each in choices if each.merit >= least and rank_of(each)[0] <= most]
    placed = [_place_in_gap(choice, sides) for choice in plain]
    chosen = min((choice for choice in placed if choice.is_clear), key=rank_of, default=usual)
    event, kinds = chosen.event, {side.dtype.kind for side in sides}
    # Floats of an array may be broken numbers later; entries of objects keep their kind.
    is_kept = kinds <= {*"bui"} or (isinstance(event.score, OfParts) and not kinds <= {*"buif"})
    if is_kept and score_attribute(event.score, "alone"):
        values = np.concatenate([scores_of(event.score, side) for side in sides])
        if (values == np.rint(values)).all():
            event = replace(event, threshold=float(np.ceil(event.threshold)))
    return replace(chosen, event=event)


def _place_in_gap(choice: Choice, sides: tuple[Array, Array]) -> Choice:
    """Return the choice with its threshold in the wide gap between the sides, if there is one."""
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
        # Further draws were counted at the threshold that was chosen.
        return replace(choice, is_clear=errors == 0.0)
    event = replace(choice.event, threshold=float(place_between(low[-1], high[0])))
    exact = replace(own, k=own.n, k_prime=0)
    return replace(choice, event=event, counts=exact if is_x else exact.swapped(), is_clear=True)


def rounded_merit(merit: float) -> float:
    """Return what an event must promise beyond the chosen one to be worth a word on rounding."""
    return _ROUNDING_REMARK_MARGIN[0] * max(merit, 0.0) + _ROUNDING_REMARK_MARGIN[1]


def _choose_event(
    score: Score, points: Floats, hits: tuple[Ints, Ints, Ints], sizes: Sizes, goal: Goal
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
    is_flag = isinstance(score, OfParts) and points.size <= _MAX_FLAG_THRESHOLDS
    free = _UNPENALISED_CAUTIONS if is_flag else 0
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


@dataclass(frozen=True, slots=True, repr=False)
class Fitted(Shown):
    """The decision of a pilot.

    Args:
        event: what is counted.
        direction: the side in the numerator.
        merit: the bound that it is expected to certify, or None where that was not estimated.
        pilot: pilot draws used on each side.
        thresholds: of the event's score, for the trade-off curve; empty without a score.
        lattice: the choice for the floating-point finding, or None.
        notes: what a reader should know of the outputs.
        remarks: what a script should hear of the choice too.
        read: how much of the outputs was read, or None where the attack does not say.
        inside: distinct outputs inside the event, the most frequent ones of the pilot.
        counts: of the event in the part of the pilot that chose it, or None where no part did.
        constant: sentence that all pilot outputs were one value; else empty.
        is_steady: True if no input had two different outputs in the pilot.
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
    """The counts of a timing audit; n and n_prime are random, as the conditional bound wants.

    Args:
        event: what was counted, on rows of output and latency (see `Timed.to_rows`).
        direction: "x" or "x_prime": the side for the numerator, chosen on the pilot.
        k: calls on x that hit the event.
        k_prime: calls on x' that hit it.
        n: counted calls on x.
        n_prime: counted calls on x'.
        pilot: calls that chose the event, both sides together.
        notes: what a reader should know of them.
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
    """The pilot draws that an attack is fitted on."""

    @property
    def pair(self) -> Pair:
        """The two inputs."""

    @property
    def goal(self) -> Goal:
        """The aim of the counted draws."""

    @property
    def size(self) -> int:
        """Pilot draws on each side."""

    def outputs(self) -> tuple[Array, Array]:
        """Return outputs on both sides, as many of the pilot as are kept at once."""

    def counts(self, event: Event, size: int) -> Counts:
        """Return how often an event happened among the first `size` on each side."""

    def fit_scores(self, attack: ScoreAttack) -> Fitted:
        """Choose the best threshold on the best of the scores that an attack makes."""


class Attack(Protocol):
    """An attack, which names an event: a function `(outputs, outputs_prime, pair) -> event`.

    Every attack of `dpcore.attacks` is one, and so is any function of one's own. It sees pilot
    draws, which are not counted.
    """

    def __call__(self, outputs: Array, outputs_prime: Array, pair: Pair, /) -> Event:
        """Choose the event to count, from pilot outputs.

        Args:
            outputs: pilot outputs on `x`, shape `(size, ...)`.
            outputs_prime: pilot outputs on `x_prime`, shape `(size', ...)`.
            pair: the pair they were drawn on.

        Returns:
            A function of outputs that returns one bool for each.
        """


class AuditAttack(Shown):
    """An attack with its answers to an audit; a plain function has the defaults of `Own`."""

    __slots__ = ()

    pools: ClassVar[bool] = False
    """True if coordinates are pooled: then the bound has a form of its own."""
    times: ClassVar[bool] = False
    """True if calls are timed one by one, on sides drawn by coin (see `timed_counts`)."""
    takes_stated_scores: ClassVar[bool] = False
    """True if a mechanism's own `log_ratio` takes part as one more score."""
    by_ballot: ClassVar[bool] = False
    """True if its event is a vote, which the core counts without making outputs."""
    looks_at_floats: ClassVar[bool] = False
    """True if the floating-point finding is looked for by default."""
    fewest_pilot: ClassVar[int] = 32
    """Pilot draws per side below which a broken claim passes by the pilot's bad luck: with Laplace
    noise of loss 1, 10 % of audits with 16 certified 0, with 2 most of them; with 24 nearly what
    any did."""

    @property
    def given(self) -> Any:
        """The object that the user passed, for error messages."""
        return self

    @property
    def scoring(self) -> ScoreAttack | None:
        """The attack itself if it makes scores, which can be judged, refitted and compared."""
        return None

    def default_pilot(self, trials: int) -> int:
        """Return the pilot draws per side where the caller did not say, for so many counted ones.

        A power of two, so that audits of about equal size share their event and can be merged.
        """
        trials = power_below(trials)
        return min(power_below(max(min(max(trials, 128), 2000), trials // 8)), _MAX_PILOT_DRAWS)

    def fitted_on(self, pilot: Pilot) -> Fitted:
        """Choose event and direction from pilot draws."""
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
        """Return event, direction and counts of timed calls, both sides together."""
        raise NotImplementedError(f"{type(self).__name__} times no calls")


class ScoreAttack(AuditAttack):
    """An attack that makes scores; its event is the best threshold on the best of them.

    A subclass is a frozen dataclass with one method, `candidates`. Called like any attack it
    halves the pilot: scores are fitted on the first halves, threshold and score chosen on the
    second ones.
    """

    __slots__ = ()

    parts = True
    """True if it is also fitted on the parts of outputs that are not real numbers."""

    def candidates(self, outputs: Array, outputs_prime: Array, pair: Pair) -> tuple[Score, ...]:
        """Fit scores on pilot outputs, or none where the attack does not apply."""
        raise NotImplementedError(f"{type(self).__name__} has no candidates")

    def __call__(self, outputs: Array, outputs_prime: Array, pair: Pair) -> Above | Never:
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
        scores = read_candidates(self, outputs[:cut], outputs_prime[:cut_prime], pair)[0]
        if not scores:
            raise not_applicable(self, outputs)
        rest, rest_prime = outputs[cut:], outputs_prime[cut_prime:]
        choices = choose_events(scores, rest, rest_prime, Goal(10 * len(outputs)))
        return choose_plainest(choices, rest, rest_prime).counted

    @property
    def scoring(self) -> ScoreAttack:
        """The attack itself."""
        return self

    def fitted_on(self, pilot: Pilot) -> Fitted:
        """Choose the best threshold on the best of its scores."""
        return pilot.fit_scores(self)

    def joint(self, columns: Floats, columns_prime: Floats) -> tuple[Score, ...]:
        """Return scores of parts of few values together, shapes `(size, parts)`; usually none."""
        return ()

    def seldom(
        self, outputs: Sequence[Array], outputs_prime: Sequence[Array], goal: Goal
    ) -> Choice | None:
        """Choose an event too rare for a part of the pilot on all of it, or None without one."""
        return None

    def cross_score(self, outputs: Sequence[Array], outputs_prime: Sequence[Array]) -> CrossScored:
        """Fit a score on the parts of a whole pilot; usually none."""
        return None

    def no_scores(self, outputs: Array) -> None:
        """Raise an error if there are no scores of such outputs, unless the attack allows that."""
        raise not_applicable(self, outputs)


class NumericAttack(ScoreAttack):
    """An attack that makes scores only of rows of numbers, without the inputs.

    A subclass has the method `make_scores` in place of `candidates`.
    """

    __slots__ = ()

    least_columns: ClassVar[int] = 1
    """Entries that an output must have."""
    fallback: ClassVar[tuple[Score, ...]] = ()
    """Scores of an attack that applies and finds nothing: one that says nothing certifies 0."""

    def candidates(self, outputs: Array, outputs_prime: Array, pair: Pair) -> tuple[Score, ...]:
        """Return the scores that the pilot suggests, or those of an attack without an event.

        Other outputs than rows of `least_columns` numbers or more have no scores.
        """
        return self.telling(outputs, outputs_prime, self.fallback)

    def telling(
        self, outputs: Array, outputs_prime: Array, fallback: tuple[Score, ...] = ()
    ) -> tuple[Score, ...]:
        """Return the scores that the pilot suggests, or `fallback` where the attack finds none."""
        rows = read_both_sides(outputs, outputs_prime)
        if rows is None or rows[0].shape[1] < self.least_columns:
            return ()
        with nullcontext() if rows[0].shape[1] == 1 else one_blas_thread():
            return tuple(self.make_scores(*rows)) or fallback

    def make_scores(self, rows: Rows, rows_prime: Rows) -> Iterable[Score]:
        """Make scores from pilot outputs as rows of numbers, shapes `(size, columns)`."""
        raise NotImplementedError(f"{type(self).__name__} makes no scores of numbers")


def power_below(size: int) -> int:
    """Return the largest power of two up to a size, at least 1."""
    return 1 << (int(max(1, size)).bit_length() - 1)


def require_scores(attack: AuditAttack, purpose: str) -> ScoreAttack:
    """Return the attack, if it makes scores.

    Args:
        attack: any attack.
        purpose: what the scores are needed for, in the words of the complaint.

    Raises:
        ValueError: if it makes none.
    """
    if attack.scoring is None:
        raise invalid("attack", f"one that makes scores, {purpose}", attack.given)
    return attack.scoring


def attack_name(attack: AuditAttack) -> str:
    """Return the name of an attack in a report: its class, and options that are not the default.

    One of somebody else's is named as any function is.
    """
    stated, kind = attack.given, type(attack.given)
    if not kind.__module__.startswith(f"{__package__}."):
        return name_of(stated)
    changed = [field for field in fields(stated) if getattr(stated, field.name) != field.default]
    return repr(stated) if changed else kind.__name__


@dataclass(frozen=True, slots=True, repr=False)
class Own(AuditAttack):
    """Any function that names the event; the pilot still chooses the order of the sides.

    Args:
        function: `(outputs, outputs_prime, pair) -> event`.
    """

    function: Callable[..., Any]

    @property
    def given(self) -> Callable[..., Any]:
        """The function."""
        return self.function

    def fitted_on(self, pilot: Pilot) -> Fitted:
        """Return the function's event, and the direction that certifies more of it."""
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
    """Return whatever a user hands over as an attack, with the answers that an audit asks for.

    Args:
        given: an attack of this package, a subclass of `ScoreAttack`, or any function.

    Raises:
        TypeError: if it is none of them, an attack's class among them.

    Example:
        >>> attack_of(max).given
        <built-in function max>
    """
    if isinstance(given, type) and issubclass(given, AuditAttack):
        raise mistyped("attack", f"an attack, not its class ({given.__name__}() makes one)", given)
    # A subclass of the vote may choose otherwise when it is called.
    if isinstance(given, AuditAttack) and (not given.by_ballot or "by_ballot" in vars(type(given))):
        return given
    if not callable(given):
        raise mistyped("attack", "a callable (outputs, outputs_prime, pair) -> event", given)
    return Own(given)
