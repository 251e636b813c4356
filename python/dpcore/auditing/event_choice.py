"""Choice of the event that an audit counts: a score and a threshold on it.

The choice is made on pilot draws (the first draws of an audit), in rounds. Each round compares
fewer scores on more draws.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np

from ..attacks.attack import (
    Choice,
    Goal,
    ScoreAttack,
    best_of_sketches,
    best_threshold,
    choose_events,
    column_grains,
    merit_of,
    min_merit_for_remark,
    part_grains,
    score_ns,
    score_tolerance,
    simplest_with_wide_gap,
)
from ..attacks.bins import Thresholds, largest_magnitude, score_thresholds, sorted_no_nan
from ..attacks.grains import Tolerance
from ..attacks.parts import cache_parts
from ..bounds.tail import find_tail_index_and_bound
from ..events.event import LARGEST, Above, Score, scores_of
from ..mechanisms.answers import join_outputs
from ..records import Array, Counts, Floats
from ..results.evidence import put_numerator_first
from ..sampling.driver import Source
from ..sampling.tally import Frame, Sketch
from ..streams import SELECTION
from .wide_outputs import WholeScore, WideReading

Sides = tuple[Array, Array]
"""Outputs on x and on x'."""

_ROUNDED: Final = (
    "all that tells the two sides apart is smaller than rounding explains (8 last places of the "
    "outputs' format): no event is left for the law that was meant"
)
"""Text for the report if rounding is the cause of every event."""
_SIGNED: Final = (
    "the two sides differ in the signs of their zeros: -0.0 and 0.0 are equal numbers, and no "
    "event of the law that was meant distinguishes them"
)
_WIDE: Final = (
    "such outputs are compared as float64: what differs beyond its 53 bits, or beyond "
    "its range, is not seen"
)
_SCREENING_ELEMENTS: Final = 2**21
"""Number of values per input on which all scores are compared. `_SCREENING_ROWS` limits the number
of outputs."""
_SCREENING_ROWS: Final = (2**15, 2**17)
_MAX_SEMIFINALISTS: Final = 6
_MAX_HALFWAY_ROWS: Final = 2**20
_MAX_FINALISTS: Final = 2
_EQUAL_MERIT_TOLERANCE: Final = 0.02
"""If the expected bound of a score differs from the best bound by at most this share, the score is
treated as equally good."""
_SIMPLE_SCORE_COST: Final = 24
"""Largest cost of a simple score (of one entry or one part). The best simple score always takes
part in the last round."""
_MIN_TAIL_ROWS: Final = 256
"""Least number of pilot outputs per input for a search of thresholds in the tail."""
_MIN_TAIL_SHARE: Final = 0.5
"""Least number of outputs for the search in the tail, divided by the number of draws that chose the
event. If many more draws were counted, the counts are more reliable than a fitted line."""
_NEAR_MERIT_RATIO: Final = 0.9
"""Least expected bound of another score, divided by that of the chosen score, for a search in the
tail of the other score."""
_MAX_OTHER_TAILS: Final = 3
"""Largest number of other scores whose tails are searched."""
_MIN_PROMISE_RATIO: Final = 1.05
"""Least predicted bound in the tail of another score, divided by the bound of the chosen event."""
_MAX_STATED_THRESHOLDS: Final = 256
_STATED_QUANTILE: Final = 0.8
_STATED_RATE_DRAWS: Final = 2**40
"""A probability that is known exactly is treated as a frequency in this many draws."""
_MAX_STATED_DEVIATIONS: Final = 6.0
"""Number of standard errors by which a stated probability may differ from the observed one."""


@dataclass(frozen=True, slots=True)
class SketchScores:
    """Callable object that computes several scores of outputs, and summarizes the values.

    A score is a function that returns one number per output. The summary of a score is a `Sketch`:
    the number of values in each bin, and some extreme values.

    Args:
        scores: the scores.
        frames: the bins, one `Frame` for each score.
    """

    scores: tuple[Score, ...]
    frames: tuple[Frame, ...]

    def __call__(self, outputs: Array, start: int) -> tuple[Sketch, ...]:
        """Return one sketch (counts of the score's values in bins) for each score."""
        with cache_parts():
            return tuple(
                Sketch.of(frame, scores_of(score, outputs))
                for score, frame in zip(self.scores, self.frames, strict=True)
            )

    @staticmethod
    def join(parts: list[tuple[Sketch, ...]]) -> tuple[Sketch, ...]:
        """Add up summaries of score values from several blocks of outputs.

        Args:
            parts: for each block, a tuple with one sketch (counts of the values in bins) per score.

        Returns:
            One sketch for each score.
        """
        return tuple(map(Sketch.total, zip(*parts, strict=True)))


def draw_first_outputs(source: Source, selection: int, most: int) -> Sides:
    """Draw outputs on x and on x' for the first comparison of all scores of an attack.

    A score is a function that returns one number per output. An event is a threshold on a score.

    Args:
        source: object that draws outputs of the mechanism.
        selection: number of draws per input for the whole choice of an event. The outputs of this
            function are the first of these draws.
        most: largest number of outputs per input that may be drawn here.
    """
    return source.outputs(SELECTION, 0, _draws_for_first_comparison(source, selection, most))


def extend_first_outputs(source: Source, drawn: Sides, selection: int, most: int) -> Sides:
    """Draw more outputs for the first comparison of all scores, if `selection` has become larger.

    In general, the outputs that were drawn earlier are kept, and new outputs are added. All outputs
    are drawn again if only some of the `selection` draws can be kept in memory.

    Args:
        source: object that draws outputs of the mechanism.
        drawn: the outputs on x and on x' that were drawn earlier.
        selection: new number of draws per input for the whole choice of an event.
        most: largest number of outputs per input that may be returned.

    Returns:
        The outputs on x and on x': the earlier outputs and the new outputs together.
    """
    rows, held = _draws_for_first_comparison(source, selection, most), len(drawn[0])
    if rows == held:
        return drawn
    if rows < selection:
        return source.outputs(SELECTION, 0, rows)
    start = -(-held // source.block) * source.block
    added = source.outputs(SELECTION, start, start + rows - held)
    first, second = (join_outputs(parts) for parts in zip(drawn, added, strict=True))
    return first, second


def _draws_for_first_comparison(source: Source, selection: int, most: int) -> int:
    rows = max(_SCREENING_ELEMENTS // max(1, source.elements), _SCREENING_ROWS[0])
    return min(rows, _SCREENING_ROWS[1], selection, most)


@np.errstate(over="ignore", invalid="ignore")
def select_event(
    source: Source,
    scores: tuple[Any, ...],
    first_look: Sides,
    selection: int,
    goal: Goal,
    *,
    in_tail: bool = False,
) -> Choice:
    """Choose, in several rounds, the event with the largest expected bound on epsilon.

    A score is a function that returns one number per output. An event is a threshold on a score.
    The first round compares all scores on a few outputs. Later rounds compare only the best scores,
    on more draws. With more draws, rare events and small differences between good scores become
    visible.

    Args:
        source: object that draws outputs of the mechanism.
        scores: the scores, at least one.
        first_look: outputs on x and on x' for the first round, from `draw_first_outputs`.
        selection: number of draws per input in the last round.
        goal: number of trials that the audit will count, and the delta and the confidence level of
            its bound.
        in_tail: if True, thresholds farther in the tail of a score are also considered. The bounds
            of such thresholds are predicted by lines that are fitted to the tail.
    """
    screened = len(first_look[0])
    halfway = min(_MAX_HALFWAY_ROWS, selection // 4)
    rounds = [halfway] if halfway >= 2 * screened else []
    rounds += [selection] if selection > screened else []
    choices = choose_events(scores, *first_look, goal.less_cautious_goal() if rounds else goal)
    rounded = max((each.rounding for each in choices if each.rounding), key=merit_of, default=None)
    ranked = sorted(choices, key=merit_of, reverse=True)
    for size, most in zip(rounds, (_MAX_SEMIFINALISTS, _MAX_FINALISTS), strict=False):
        # The cheapest of the good scores always continues. Among scores that chose the same
        # outputs, one score is enough.
        first = _choose_fastest_near_best(ranked)
        simple = next(
            (candidate for candidate in ranked if score_ns(candidate) <= _SIMPLE_SCORE_COST), first
        )
        plainest = simplest_with_wide_gap(ranked, *first_look, first)
        different = {first.counts: first, simple.counts: simple}
        for choice in ranked:
            different.setdefault(choice.counts, choice)
        options = [plainest, *different.values()][: most + 2]
        left = tuple({id(choice.event.score): choice.event.score for choice in options}.values())
        own = goal if size == selection else goal.less_cautious_goal()
        choices = _choose_best_thresholds(source, left, first_look, size, own)
        ranked = sorted(choices, key=merit_of, reverse=True)
    chosen = simplest_with_wide_gap(ranked, *first_look, _choose_fastest_near_best(ranked))
    if in_tail:
        chosen = replace(chosen, farther=_choose_better_in_tail(chosen, ranked, first_look, goal))
    is_rounding_better = rounded is not None and rounded.merit > min_merit_for_remark(chosen.merit)
    return replace(chosen, rounding=rounded if is_rounding_better else None)


def _choose_best_thresholds(
    source: Source, scores: tuple[Any, ...], first_look: Sides, size: int, goal: Goal
) -> list[Choice]:
    """Choose the best threshold of each score on the first `size` draws per input."""
    frames, marked = [], []
    for score in scores:
        sides = scores_of(score, first_look[0]), scores_of(score, first_look[1])
        marks = list_thresholds(score, first_look, sides)
        marked.append(marks)
        frames.append(
            Frame.of(marks.edges, (sorted_no_nan(sides[0]), sorted_no_nan(sides[1])), size)
        )
    work = SketchScores(scores, tuple(frames))
    parts = [shard.sides for shard in source.run(work, SELECTION, [(0, size)])]
    totals = [work.join(list(side)) for side in zip(*parts, strict=True)]
    return [
        best_of_sketches(score, first, second, marks, goal)
        for score, first, second, marks in zip(scores, *totals, marked, strict=True)
    ]


def _choose_fastest_near_best(choices: list[Choice]) -> Choice:
    """Choose the fastest score among the scores with an expected bound within 2 % of the best."""
    most = max(map(merit_of, choices))
    good = [
        choice for choice in choices if choice.merit >= most - _EQUAL_MERIT_TOLERANCE * abs(most)
    ]
    return min(good, key=score_ns)


def _extend_into_tail(choice: Choice, values: Sides, grain: Tolerance, goal: Goal) -> Choice | None:
    """Find a threshold farther out in the tail of a score, with a larger predicted bound.

    The prediction uses straight lines that are fitted to the tail.

    Args:
        choice: the best threshold by the counts of the pilot.
        values: values of the score on x and on x'. The score was not fitted on these outputs.
        grain: how much rounding may change these values.
        goal: number of counted trials, and delta and confidence of the bound.

    Returns:
        The choice with the new threshold, or None if no threshold has a larger predicted bound.
    """
    sign = 1 if choice.event.side == "above" else -1
    sides = sorted_no_nan(sign * values[0]), sorted_no_nan(sign * values[1])
    marks = score_thresholds(sides[0], sides[1], grain)
    points = marks.points[marks.lows == marks.points]
    hits = [side.size - np.searchsorted(side, points) for side in sides]
    order = [0, 1] if choice.direction == "x" else [1, 0]
    tail = find_tail_index_and_bound(
        points,
        (hits[order[0]], hits[order[1]]),
        (values[order[0]].size, values[order[1]].size),
        int(np.searchsorted(points, sign * choice.event.threshold)),
        _predict_event_bound(choice, goal),
        partial(_predict_bounds, goal),
    )
    if tail is None:
        return None
    place, merit = tail
    event = replace(choice.event, threshold=sign * float(points[place]))
    counts = Counts(int(hits[0][place]), values[0].size, int(hits[1][place]), values[1].size)
    return replace(choice, event=event, counts=counts, merit=merit)


def _predict_event_bound(choice: Choice, goal: Goal) -> float:
    """Return the bound that an event is expected to certify, from its frequencies in the pilot."""
    own = put_numerator_first(choice.counts, choice.direction)
    return float(_predict_bounds(goal, own.k / own.n, own.k_prime / own.n_prime))


def _predict_bounds(goal: Goal, rate: Any, rate_prime: Any) -> Floats:
    """Return the bounds that events with known probabilities are expected to certify.

    Args:
        goal: number of counted trials, and delta and confidence of the bound.
        rate: probabilities of the events on the input with the larger probability.
        rate_prime: probabilities of the events on the other input.
    """
    draws = float(_STATED_RATE_DRAWS)
    return goal.predict(rate * draws, draws, rate_prime * draws, draws, 0.5)


def choose_by_cross_fitting(
    attack: ScoreAttack, wholes: Sequence[Sequence[Array]], goal: Goal
) -> Choice | None:
    """Choose an event by cross-fitting on the pilot (the first draws, which are not counted).

    The event is a threshold on a score (a function that returns one number per output). The score
    is fitted on all pilot outputs. For the choice of the threshold, each pilot output gets the
    value of a score that was fitted on other pilot outputs.

    Args:
        attack: the attack that fits the score.
        wholes: the pilot outputs on x and those on x', each as a sequence of arrays.
        goal: number of trials that the audit will count, and the delta and the confidence level of
            its bound.

    Returns:
        The chosen event with its expected bound, or None if the attack does not use cross-fitting.
    """
    crossed = attack.cross_score(wholes[0], wholes[1])
    if crossed is None:
        return None
    score, *values = crossed
    grain = score_tolerance(score, column_grains(wholes[0][0], wholes[1][0]), *values)
    choice = best_threshold(score, values[0], values[1], grain, goal)
    return replace(choice, farther=_extend_into_tail(choice, (values[0], values[1]), grain, goal))


def _choose_better_in_tail(
    chosen: Choice, ranked: Sequence[Choice], sides: Sides, goal: Goal
) -> Choice | None:
    """Choose a threshold in the tail of a good score, if the predicted bound is clearly larger.

    Args:
        chosen: the best event by the counts of the pilot.
        ranked: the best event of each score, the best one first.
        sides: pilot outputs on x and on x'. No score was fitted on these outputs.
        goal: number of counted trials, and delta and confidence of the bound.

    Returns:
        The choice. None if no threshold in the tail has a predicted bound that is clearly larger
        than the bound of `chosen`.
    """
    rows = max(_MIN_TAIL_ROWS, _MIN_TAIL_SHARE * chosen.counts.n)
    if chosen.is_clear or chosen.merit <= 0.0 or len(sides[0]) < rows:
        return None
    near = [choice for choice in ranked if choice.merit >= _NEAR_MERIT_RATIO * chosen.merit]
    others = [choice for choice in near if choice.event.score is not chosen.event.score]
    grains, best, least = column_grains(*sides), None, _predict_event_bound(chosen, goal)
    for choice in (chosen, *others[:_MAX_OTHER_TAILS]):
        score = choice.event.score
        values = scores_of(score, sides[0]), scores_of(score, sides[1])
        grain = score_tolerance(score, part_grains(score, *sides) or grains, *values)
        farther = _extend_into_tail(choice, values, grain, goal)
        if farther and (choice is chosen or farther.merit > _MIN_PROMISE_RATIO * least):
            best, least = farther, farther.merit
    return best and simplest_with_wide_gap([best], *sides, best)


def choose_event_of_wide_outputs(
    source: Source, scores: tuple[Any, ...], reading: WideReading, goal: Goal
) -> tuple[Choice, WholeScore | None]:
    """Choose the best event for outputs that have too many columns to fit in memory.

    The event is a threshold on a score (a function that returns one number per output). There are
    two kinds of scores: some read a few chosen columns of an output, and others read all columns.

    Args:
        source: object that draws outputs of the mechanism.
        scores: scores that read only the chosen columns.
        reading: the first outputs, kept in memory, and the scores that read all columns. Together,
            `scores` and `reading` must have at least one score.
        goal: number of trials that the audit will count, and the delta and the confidence level of
            its bound.

    Returns:
        A pair: the chosen event with its expected bound, and the score of this event if the score
        reads all columns. The second entry is None if the score reads only the chosen columns.
    """
    options: list[tuple[Choice, WholeScore | None]] = []
    if scores:
        rest = reading.choosing_outputs
        options.append((select_event(source, scores, rest, len(rest[0]), goal), None))
    options += [(scored.choose(goal), scored) for scored in reading.whole]
    most = max(choice.merit for choice, _ in options)
    # Among about equal options take the first, which reads fewer columns.
    least = most - _EQUAL_MERIT_TOLERANCE * abs(most) if most > -math.inf else most
    return next(option for option in options if option[0].merit >= least)


def note_no_bound(
    choices: Sequence[Choice],
    outputs: Array,
    signs: Sequence[Choice] = (),
    exact_up_to: float = math.inf,
) -> tuple[str, ...]:
    """Return sentences for the report that explain why no event has a positive expected bound.

    The expected bound of an event is a prediction. It predicts the lower bound on epsilon of an
    audit that counts this event. The tuple is empty if an event has an expected bound above 0, or
    if no reason is known.

    Args:
        choices: the best event of each score (a function that returns one number per output).
        outputs: pilot outputs (the first draws) on x, shape `(size, ...)`.
        signs: the best events of scores that only distinguish 0.0 from -0.0. Defaults to an empty
            tuple.
        exact_up_to: outputs up to this absolute value are exact in float64. Defaults to infinity.
    """
    if max(choice.merit for choice in choices) > 0.0:
        return ()
    remarks = [_ROUNDED] if any(choice.rounding for choice in choices) else []
    remarks += [_SIGNED] if any(choice.merit > 0.0 for choice in signs) else []
    if outputs.dtype.kind in "fc":
        is_wide = np.finfo(outputs.dtype).nmant > np.finfo(np.float64).nmant
        remarks += [_WIDE] if is_wide or largest_magnitude(outputs) > exact_up_to else []
    return tuple(remarks)


def choose_by_stated_ratio(score: Score, values: Sides, goal: Goal) -> Choice | None:
    """Choose the best threshold on a log-likelihood ratio l that the mechanism itself provides.

    If the provided ratio is right, ``P(l >= t on x') = E[exp(-l); l >= t on x]``. Therefore draws
    on x show the probability of an event on x', even if the event never occurs in the draws on x'.
    The function tests whether the given values contradict the ratio. If the ratio is wrong and the
    test does not show the error, the bound of the audit is still valid, but smaller than expected.

    Args:
        score: function that returns the log-likelihood ratio of x over x' for each output.
        values: values of this ratio for the first draws on x and on x'.
        goal: number of trials that the audit will count, and the delta and the confidence level of
            its bound.

    Returns:
        The chosen event with its expected bound. For each of the two inputs, the best event that is
        more frequent on this input is a candidate. An input has no candidate if the draws
        contradict the provided ratio for such events, or if the ratio of every draw on this input
        favours the other input. The result is None if neither input has a candidate.
    """
    ratios, ratios_prime = values
    choices = [
        _choose_best_threshold(score, "x", ratios, ratios_prime, goal),
        _choose_best_threshold(score, "x_prime", -ratios_prime, -ratios, goal),
    ]
    return max(filter(None, choices), key=merit_of, default=None)


def _choose_best_threshold(
    score: Score, direction: str, own: Floats, other: Floats, goal: Goal
) -> Choice | None:
    """Choose the best threshold for an event that is more frequent on a given input.

    Args:
        score: the log-likelihood ratio of x over x'.
        direction: the input on which the event is more frequent, "x" or "x_prime".
        own: log-likelihood ratios of the input `direction` over the other input, for outputs on the
            input `direction`.
        other: the same ratios for outputs on the other input.
        goal: number of counted trials, and delta and confidence of the bound.
    """
    from scipy.special import pdtrik

    ranked = np.sort(own[own >= 0.0])[::-1]
    if not ranked.size:
        return None
    weights = np.exp(-ranked)
    points = np.unique(np.geomspace(1, ranked.size, _MAX_STATED_THRESHOLDS).astype(np.intp)) - 1
    # Equal ratios are on the same side of a threshold.
    hits = np.searchsorted(-ranked, -ranked[points], side="right")
    stated = np.cumsum(weights)[hits - 1] / own.size
    spread = np.cumsum(weights**2)[hits - 1] / own.size**2
    n_above = np.array([np.count_nonzero(other >= edge) for edge in ranked[points]])
    spread += (n_above + 1.0) / other.size**2
    if (np.abs(stated - n_above / other.size) > _MAX_STATED_DEVIATIONS * np.sqrt(spread)).any():
        return None
    # This is the rate for a count that fresh draws exceed with probability one fifth.
    count = np.ceil(pdtrik(_STATED_QUANTILE, np.minimum(stated, 1.0) * goal.trials))
    k_prime = np.clip(count / goal.trials, 0.0, 1.0) * _STATED_RATE_DRAWS
    drawn = hits, own.size, k_prime.astype(np.int64), _STATED_RATE_DRAWS
    merits = goal.predict(*drawn, goal.caution[0])
    best = int(np.argmax(merits))
    edge = float(ranked[points[best]])
    counts = Counts(int(hits[best]), own.size, int(n_above[best]), other.size)
    if direction == "x":
        # An infinite ratio is a separate event, above every finite ratio.
        event = Above(score, min(edge, LARGEST))
        return Choice(event, direction, float(merits[best]), counts)
    event = Above(score, math.nextafter(-edge, math.inf), "below")
    return Choice(event, direction, float(merits[best]), counts.swapped())


@np.errstate(over="ignore", invalid="ignore")
def list_thresholds(score: Any, outputs: Sides, values: Sides) -> Thresholds:
    """Return possible thresholds on a score: numbers between the values of the score on outputs.

    Args:
        score: function that returns one number per output.
        outputs: outputs on x and on x'.
        values: values of the score on these outputs.
    """
    grains = part_grains(score, *outputs) or column_grains(*outputs)
    grain = score_tolerance(score, grains, *values)
    return score_thresholds(sorted_no_nan(values[0]), sorted_no_nan(values[1]), grain)
