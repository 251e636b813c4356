"""Choice of the score and the threshold that an audit counts.

The choice is made on pilot draws, in rounds. Each round has more draws and fewer scores.
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
    choose_plainest,
    column_grains,
    cost_of,
    merit_of,
    part_grains,
    rounded_merit,
    score_grain,
)
from ..attacks.bins import Marks, marks_of, scale_of, sorted_values
from ..attacks.grains import Grain
from ..attacks.parts import remember_parts
from ..bounds.tail import find_tail_threshold
from ..events.event import LARGEST, Above, Score, scores_of
from ..mechanisms.answers import join_outputs
from ..records import Array, Counts, Floats
from ..results.evidence import numerator_first
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
"""Message to the reader if rounding explains every event."""
_SIGNED: Final = (
    "the two sides differ in the signs of their zeros: -0.0 and 0.0 are equal numbers, and no "
    "event of the law that was meant distinguishes them"
)
_WIDE: Final = (
    "such outputs are compared as float64: what differs beyond its 53 bits, or beyond "
    "its range, is not seen"
)
_SCREENING_ELEMENTS: Final = 2**21
"""Number of values per side on which all scores are compared; below, limits on the rows."""
_SCREENING_ROWS: Final = (2**15, 2**17)
_MAX_SEMIFINALISTS: Final = 6
_MAX_HALFWAY_ROWS: Final = 2**20
_MAX_FINALISTS: Final = 2
_EQUAL_MERIT_TOLERANCE: Final = 0.02
"""Share of the best merit within which other scores are regarded as equally good."""
_SIMPLE_SCORE_COST: Final = 24
"""Cost of a score of one entry or one part. The best of these scores reaches the last round."""
_MIN_TAIL_ROWS: Final = 256
"""Least number of pilot outputs per side for a search in tails."""
_MIN_TAIL_SHARE: Final = 0.5
"""Least ratio of the outputs in the search to the draws that chose the event. Counts of many more
draws are more reliable than a fitted line."""
_NEAR_MERIT_RATIO: Final = 0.9
"""Least ratio of another score's merit to the chosen score's for a search in its tail."""
_MAX_OTHER_TAILS: Final = 3
"""Number of other scores with a search in their tails."""
_MIN_PROMISE_RATIO: Final = 1.05
"""Least ratio of the bound predicted in another score's tail to the chosen event's bound."""
_MAX_STATED_THRESHOLDS: Final = 256
_STATED_QUANTILE: Final = 0.8
_STATED_RATE_DRAWS: Final = 2**40
"""Number of draws that represents an exactly known rate."""
_MAX_STATED_DEVIATIONS: Final = 6.0
"""Standard errors by which a stated rate may differ from the rate in the draws."""


@dataclass(frozen=True, slots=True)
class SketchScores:
    """Work on one block of a pilot: it makes sketches of several scores.

    Args:
        scores: functions from outputs to values.
        frames: frame of each score.
    """

    scores: tuple[Score, ...]
    frames: tuple[Frame, ...]

    def __call__(self, outputs: Array, start: int) -> tuple[Sketch, ...]:
        """Return one sketch for each score."""
        with remember_parts():
            return tuple(
                Sketch.of(frame, scores_of(score, outputs))
                for score, frame in zip(self.scores, self.frames, strict=True)
            )

    @staticmethod
    def join(parts: list[tuple[Sketch, ...]]) -> tuple[Sketch, ...]:
        """Return the sums of the sketches of several blocks, one for each score."""
        return tuple(map(Sketch.total, zip(*parts, strict=True)))


def draw_first_outputs(source: Source, selection: int, most: int) -> Sides:
    """Draw the first outputs for the choice among scores, at most `most` per side."""
    return source.outputs(SELECTION, 0, _count_first_rows(source, selection, most))


def draw_more_outputs(source: Source, drawn: Sides, selection: int, most: int) -> Sides:
    """Draw the outputs that are missing after an enlargement; keep the outputs drawn before.

    The drawing continues at the next block, because within a block the generator would have to make
    the first outputs again. It continues only if all outputs are kept; otherwise all are drawn
    again.
    """
    rows, held = _count_first_rows(source, selection, most), len(drawn[0])
    if rows == held:
        return drawn
    if rows < selection:
        return source.outputs(SELECTION, 0, rows)
    start = -(-held // source.block) * source.block
    added = source.outputs(SELECTION, start, start + rows - held)
    first, second = (join_outputs(parts) for parts in zip(drawn, added, strict=True))
    return first, second


def _count_first_rows(source: Source, selection: int, most: int) -> int:
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
    """Choose the best event of the best score, in rounds.

    Each round uses more of the draws, for fewer scores. A small difference between two good scores,
    or a rare event, does not show on the few draws of the first round. Therefore the remaining
    scores are compared on more draws.

    Args:
        source: source of the draws.
        scores: the scores, at least one.
        first_look: the first outputs (see `draw_first_outputs`).
        selection: number of draws per side for the choice.
        goal: number of trials and level to be certified.
        in_tail: True to look for a threshold in the tail too (see `Choice.farther`).
    """
    screened = len(first_look[0])
    halfway = min(_MAX_HALFWAY_ROWS, selection // 4)
    rounds = [halfway] if halfway >= 2 * screened else []
    rounds += [selection] if selection > screened else []
    choices = choose_events(scores, *first_look, goal.bolder() if rounds else goal)
    rounded = max((each.rounding for each in choices if each.rounding), key=merit_of, default=None)
    ranked = sorted(choices, key=merit_of, reverse=True)
    for size, most in zip(rounds, (_MAX_SEMIFINALISTS, _MAX_FINALISTS), strict=False):
        # The cheapest of the good scores always continues. Among scores that chose the same
        # outputs, one score is enough.
        first = _choose_cheapest(ranked)
        simple = next(
            (candidate for candidate in ranked if cost_of(candidate) <= _SIMPLE_SCORE_COST), first
        )
        plainest = choose_plainest(ranked, *first_look, first)
        different = {first.counts: first, simple.counts: simple}
        for choice in ranked:
            different.setdefault(choice.counts, choice)
        options = [plainest, *different.values()][: most + 2]
        left = tuple({id(choice.event.score): choice.event.score for choice in options}.values())
        own = goal if size == selection else goal.bolder()
        choices = _judge_scores(source, left, first_look, size, own)
        ranked = sorted(choices, key=merit_of, reverse=True)
    chosen = choose_plainest(ranked, *first_look, _choose_cheapest(ranked))
    if in_tail:
        chosen = replace(chosen, farther=_choose_farther(chosen, ranked, first_look, goal))
    is_rounding_better = rounded is not None and rounded.merit > rounded_merit(chosen.merit)
    return replace(chosen, rounding=rounded if is_rounding_better else None)


def _judge_scores(
    source: Source, scores: tuple[Any, ...], first_look: Sides, size: int, goal: Goal
) -> list[Choice]:
    """Choose the best event of each score on the first `size` draws."""
    frames, marked = [], []
    for score in scores:
        sides = scores_of(score, first_look[0]), scores_of(score, first_look[1])
        marks = marks_on(score, first_look, sides)
        marked.append(marks)
        frames.append(
            Frame.of(marks.edges, (sorted_values(sides[0]), sorted_values(sides[1])), size)
        )
    work = SketchScores(scores, tuple(frames))
    parts = [shard.sides for shard in source.run(work, SELECTION, [(0, size)])]
    totals = [work.join(list(side)) for side in zip(*parts, strict=True)]
    return [
        best_of_sketches(score, first, second, marks, goal)
        for score, first, second, marks in zip(scores, *totals, marked, strict=True)
    ]


def _choose_cheapest(choices: list[Choice]) -> Choice:
    """Choose the cheapest score among those about as good as the best score."""
    most = max(map(merit_of, choices))
    good = [
        choice for choice in choices if choice.merit >= most - _EQUAL_MERIT_TOLERANCE * abs(most)
    ]
    return min(good, key=cost_of)


def _find_farther(choice: Choice, values: Sides, grain: Grain, goal: Goal) -> Choice | None:
    """Find a threshold of the same event in the tail, where fitted lines predict a larger bound.

    Args:
        choice: the best threshold by the counts of the pilot.
        values: values of its score on x and on x', on which the score was not fitted.
        grain: possible change of these values by rounding.
        goal: number of trials and level to be certified.
    """
    sign = 1 if choice.event.side == "above" else -1
    sides = sorted_values(sign * values[0]), sorted_values(sign * values[1])
    marks = marks_of(sides[0], sides[1], grain)
    points = marks.points[marks.lows == marks.points]
    hits = [side.size - np.searchsorted(side, points) for side in sides]
    order = [0, 1] if choice.direction == "x" else [1, 0]
    tail = find_tail_threshold(
        points,
        (hits[order[0]], hits[order[1]]),
        (values[order[0]].size, values[order[1]].size),
        int(np.searchsorted(points, sign * choice.event.threshold)),
        _count_merit(choice, goal),
        partial(_predict_rates, goal),
    )
    if tail is None:
        return None
    place, merit = tail
    event = replace(choice.event, threshold=sign * float(points[place]))
    counts = Counts(int(hits[0][place]), values[0].size, int(hits[1][place]), values[1].size)
    return replace(choice, event=event, counts=counts, merit=merit)


def _count_merit(choice: Choice, goal: Goal) -> float:
    """Return the bound that an event is expected to certify at the rates of the pilot's counts."""
    own = numerator_first(choice.counts, choice.direction)
    return float(_predict_rates(goal, own.k / own.n, own.k_prime / own.n_prime))


def _predict_rates(goal: Goal, rate: Any, rate_prime: Any) -> Floats:
    """Return the bounds that events with known rates are expected to certify."""
    draws = float(_STATED_RATE_DRAWS)
    return goal.predict(rate * draws, draws, rate_prime * draws, draws, 0.5)


def choose_crossed(
    attack: ScoreAttack, wholes: Sequence[Sequence[Array]], goal: Goal
) -> Choice | None:
    """Choose a threshold on a score of the whole pilot, with values from cross-fitting.

    Args:
        attack: attack that may make such a score.
        wholes: parts of the pilot outputs on x, and of the pilot outputs on x'.
        goal: number of trials and level to be certified.
    """
    crossed = attack.cross_score(wholes[0], wholes[1])
    if crossed is None:
        return None
    score, *values = crossed
    grain = score_grain(score, column_grains(wholes[0][0], wholes[1][0]), *values)
    choice = best_threshold(score, values[0], values[1], grain, goal)
    return replace(choice, farther=_find_farther(choice, (values[0], values[1]), grain, goal))


def _choose_farther(
    chosen: Choice, ranked: Sequence[Choice], sides: Sides, goal: Goal
) -> Choice | None:
    """Choose a threshold in the tail of a good score, if it predicts a clearly larger bound.

    Args:
        chosen: the best choice by counts.
        ranked: all choices, best first.
        sides: pilot outputs on x and on x', on which no score was fitted.
        goal: number of trials and level to be certified.
    """
    rows = max(_MIN_TAIL_ROWS, _MIN_TAIL_SHARE * chosen.counts.n)
    if chosen.is_clear or chosen.merit <= 0.0 or len(sides[0]) < rows:
        return None
    near = [choice for choice in ranked if choice.merit >= _NEAR_MERIT_RATIO * chosen.merit]
    others = [choice for choice in near if choice.event.score is not chosen.event.score]
    grains, best, least = column_grains(*sides), None, _count_merit(chosen, goal)
    for choice in (chosen, *others[:_MAX_OTHER_TAILS]):
        score = choice.event.score
        values = scores_of(score, sides[0]), scores_of(score, sides[1])
        grain = score_grain(score, part_grains(score, *sides) or grains, *values)
        farther = _find_farther(choice, values, grain, goal)
        if farther and (choice is chosen or farther.merit > _MIN_PROMISE_RATIO * least):
            best, least = farther, farther.merit
    return best and choose_plainest([best], *sides, best)


def select_wide_event(
    source: Source, scores: tuple[Any, ...], reading: WideReading, goal: Goal
) -> tuple[Choice, WholeScore | None]:
    """Choose the best event for wide outputs, on the chosen columns or on all columns.

    Args:
        source: source of the draws.
        scores: scores of the chosen columns.
        reading: the pilot, as far as it is kept. There is at least one score in total.
        goal: number of trials and level to be certified.

    Returns:
        The choice and, if its score is a score of whole outputs, that score; else None. Any other
        score reads the chosen columns.
    """
    options: list[tuple[Choice, WholeScore | None]] = []
    if scores:
        rest = reading.rest
        options.append((select_event(source, scores, rest, len(rest[0]), goal), None))
    options += [(scored.choose(goal), scored) for scored in reading.whole]
    most = max(choice.merit for choice, _ in options)
    # Among about equal options take the first, which reads fewer columns.
    least = most - _EQUAL_MERIT_TOLERANCE * abs(most) if most > -math.inf else most
    return next(option for option in options if option[0].merit >= least)


def remarks_on(
    choices: Sequence[Choice],
    outputs: Array,
    signs: Sequence[Choice] = (),
    exact_up_to: float = math.inf,
) -> tuple[str, ...]:
    """Return remarks on the choices, the best of which will be counted.

    Args:
        choices: the choices.
        outputs: pilot outputs on x, shape `(size, ...)`.
        signs: choices for the scores of the signs of zeros. Defaults to none.
        exact_up_to: magnitude up to which outputs in float64 are exact. Defaults to no limit.
    """
    if max(choice.merit for choice in choices) > 0.0:
        return ()
    remarks = [_ROUNDED] if any(choice.rounding for choice in choices) else []
    remarks += [_SIGNED] if any(choice.merit > 0.0 for choice in signs) else []
    if outputs.dtype.kind in "fc":
        is_wide = np.finfo(outputs.dtype).nmant > np.finfo(np.float64).nmant
        remarks += [_WIDE] if is_wide or scale_of(outputs) > exact_up_to else []
    return tuple(remarks)


def choose_as_stated(score: Score, values: Sides, goal: Goal) -> Choice | None:
    """Choose the best threshold on a log ratio that a mechanism states.

    ``P(l >= t on x') = E[exp(-l); l >= t on x]``. So if the ratio is right, draws on one side show
    the probability of an event on the other side, even if it never happens there. The pilot tests
    the ratio. If the stated ratio is too optimistic, the count does not certify the expected bound,
    so the audit remains valid.

    Args:
        score: the log-likelihood ratio of x over x'.
        values: its values for pilot outputs on x and on x'.
        goal: number of trials and level to be certified.

    Returns:
        The choice, or None if the draws contradict the ratio, or if no bound is expected.
    """
    ratios, ratios_prime = values
    choices = [
        _choose_stated_threshold(score, "x", ratios, ratios_prime, goal),
        _choose_stated_threshold(score, "x_prime", -ratios_prime, -ratios, goal),
    ]
    return max(filter(None, choices), key=merit_of, default=None)


def _choose_stated_threshold(
    score: Score, direction: str, own: Floats, other: Floats, goal: Goal
) -> Choice | None:
    """Choose the best threshold in one direction, on log ratios of its numerator's side."""
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
def marks_on(score: Any, outputs: Sides, values: Sides) -> Marks:
    """Make thresholds between the values of a score on some outputs."""
    grains = part_grains(score, *outputs) or column_grains(*outputs)
    grain = score_grain(score, grains, *values)
    return marks_of(sorted_values(values[0]), sorted_values(values[1]), grain)
