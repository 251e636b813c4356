"""Choice of the score and the threshold that an audit counts.

It is made on pilot draws, in rounds with more and more draws for fewer and fewer scores.
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
"""Message to the reader if rounding has left no event."""
_SIGNED: Final = (
    "the two sides differ in the signs of their zeros: -0.0 and 0.0 are equal numbers, and no "
    "event of the law that was meant distinguishes them"
)
_WIDE: Final = (
    "such outputs are compared as float64: what differs beyond its 53 bits, or beyond "
    "its range, is not seen"
)
_SCREENING_ELEMENTS: Final = 2**21
"""Numbers a side on which all scores are compared; at least and at most so many rows."""
_SCREENING_ROWS: Final = (2**15, 2**17)
_MAX_SEMIFINALISTS: Final = 6
_MAX_HALFWAY_ROWS: Final = 2**20
_MAX_FINALISTS: Final = 2
_EQUAL_MERIT_TOLERANCE: Final = 0.02
"""Scores whose merit is within this share of the best are as good."""
_SIMPLE_SCORE_COST: Final = 24
"""The cost of a score of one entry or one part: the best of these is judged to the end."""
_MIN_TAIL_ROWS: Final = 256
"""Pilot outputs per side from which on tails are looked at."""
_MIN_TAIL_SHARE: Final = 0.5
"""Share of the draws that chose an event which the outputs of a tail must be: counts of many more
draws are the better guide."""
_NEAR_MERIT_RATIO: Final = 0.9
"""Share of the chosen score's merit from which on the tail of another is looked at."""
_MAX_OTHER_TAILS: Final = 3
"""Scores whose tails are compared with that of the chosen score."""
_MIN_PROMISE_RATIO: Final = 1.05
"""Times the counted rates of the chosen event that the tail of another score must promise."""
_MAX_STATED_THRESHOLDS: Final = 256
_STATED_QUANTILE: Final = 0.8
_STATED_RATE_DRAWS: Final = 2**40
"""Draws that a stated rate is worth: it is taken for exact."""
_MAX_STATED_DEVIATIONS: Final = 6.0
"""Standard errors by which a stated rate may differ from the draws."""


@dataclass(frozen=True, slots=True)
class SketchScores:
    """The work on one block of a pilot: sketches of several scores.

    Args:
        scores: outputs -> values.
        frames: the frame of each.
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
        """Return the sketches of several blocks together, one for each score."""
        return tuple(map(Sketch.total, zip(*parts, strict=True)))


def draw_first_outputs(source: Source, selection: int, most: int) -> Sides:
    """Draw the first outputs of the split that chooses among scores, at most `most` per side."""
    return source.outputs(SELECTION, 0, _count_first_rows(source, selection, most))


def draw_more_outputs(source: Source, drawn: Sides, selection: int, most: int) -> Sides:
    """Draw what a split lacks that is now larger, and keep the outputs that were drawn.

    Only a split whose outputs are all held is continued, with the next block: within a block
    the generator would have to make the first outputs again.
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

    Each round uses more of the split, for fewer scores.

    A faint difference between two good scores does not show on the draws of the first round, nor
    does a rare event: the few that go on must be chosen on more.

    Args:
        source: where draws come from.
        scores: at least one.
        first_look: the first outputs of the split (see `draw_first_outputs`).
        selection: draws per side in the whole split.
        goal: what is to be certified.
        in_tail: whether a threshold in the tail is looked for too (see `Choice.farther`).
    """
    screened = len(first_look[0])
    halfway = min(_MAX_HALFWAY_ROWS, selection // 4)
    rounds = [halfway] if halfway >= 2 * screened else []
    rounds += [selection] if selection > screened else []
    choices = choose_events(scores, *first_look, goal.bolder() if rounds else goal)
    rounded = max((each.rounding for each in choices if each.rounding), key=merit_of, default=None)
    ranked = sorted(choices, key=merit_of, reverse=True)
    for size, most in zip(rounds, (_MAX_SEMIFINALISTS, _MAX_FINALISTS), strict=False):
        # The cheapest of the good ones goes on whatever its place among them, and of scores that
        # chose the same outputs one is enough.
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
    """Choose the best event of each score on the first `size` draws of the split."""
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
    """Choose the score that takes least time among those about as good as the best."""
    most = max(map(merit_of, choices))
    good = [
        choice for choice in choices if choice.merit >= most - _EQUAL_MERIT_TOLERANCE * abs(most)
    ]
    return min(good, key=cost_of)


def _find_farther(choice: Choice, values: Sides, grain: Grain, goal: Goal) -> Choice | None:
    """Find the same event at a threshold in the tail, where lines fitted to it promise more.

    Args:
        choice: the best of the thresholds by the counts of the pilot.
        values: values of its score on x and on x', by which it was not fitted.
        grain: what rounding may move these values by.
        goal: what is to be certified.
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
    """Return what an event is expected to certify at the rates that the pilot has counted."""
    own = numerator_first(choice.counts, choice.direction)
    return float(_predict_rates(goal, own.k / own.n, own.k_prime / own.n_prime))


def _predict_rates(goal: Goal, rate: Any, rate_prime: Any) -> Floats:
    """Return what events of known rates are expected to certify."""
    draws = float(_STATED_RATE_DRAWS)
    return goal.predict(rate * draws, draws, rate_prime * draws, draws, 0.5)


def choose_crossed(
    attack: ScoreAttack, wholes: Sequence[Sequence[Array]], goal: Goal
) -> Choice | None:
    """Choose a threshold on a score of the whole pilot, by values that did not fit it.

    Args:
        attack: what may make such a score.
        wholes: parts of the pilot outputs on x, and of those on x'.
        goal: what is to be certified.
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
    """Choose a threshold in the tail of one of the best scores, where that promises clearly more.

    Args:
        chosen: the best choice by counts.
        ranked: all choices, the best first.
        sides: pilot outputs on x and on x', which fitted none of the scores.
        goal: what is to be certified.
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
    """Choose the best event of wide outputs: on the chosen columns, or on all of them.

    Args:
        source: where draws come from.
        scores: of the chosen columns.
        reading: the pilot, as far as it is kept; there is at least one score of either kind.
        goal: what is to be certified.

    Returns:
        The choice and, if its score is one of whole outputs, that score. The score of any other
        choice reads the chosen columns.
    """
    options: list[tuple[Choice, WholeScore | None]] = []
    if scores:
        rest = reading.rest
        options.append((select_event(source, scores, rest, len(rest[0]), goal), None))
    options += [(scored.choose(goal), scored) for scored in reading.whole]
    most = max(choice.merit for choice, _ in options)
    # Of about equal ones the first, which reads fewer columns.
    least = most - _EQUAL_MERIT_TOLERANCE * abs(most) if most > -math.inf else most
    return next(option for option in options if option[0].merit >= least)


def remarks_on(
    choices: Sequence[Choice],
    outputs: Array,
    signs: Sequence[Choice] = (),
    exact_up_to: float = math.inf,
) -> tuple[str, ...]:
    """Return remarks on the choices; the best of them is to be counted.

    Args:
        choices: the choices.
        outputs: pilot outputs on x, shape `(size, ...)`.
        signs: choices of the scores of the signs of zeros.
        exact_up_to: magnitude up to which outputs in float64 are sure to be what was written.
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
    """Choose the best threshold on a log ratio that a mechanism states, without a check of it.

    ``P(l >= t on x') = E[exp(-l); l >= t on x]``: where the ratio is right, draws on one side say
    how rare an event is on the other that shows it to none of them. The pilot tests whether it is
    right; what it promises too much, the count does not certify.

    Args:
        score: the log-likelihood ratio of x over x'.
        values: its values of pilot outputs on x and on x'.
        goal: what is to be certified.

    Returns:
        The choice, or None where the draws contradict the ratio, or it promises no bound.
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
    """Choose the best threshold in one direction, on log ratios of its numerator over the rest."""
    from scipy.special import pdtrik

    ranked = np.sort(own[own >= 0.0])[::-1]
    if not ranked.size:
        return None
    weights = np.exp(-ranked)
    points = np.unique(np.geomspace(1, ranked.size, _MAX_STATED_THRESHOLDS).astype(np.intp)) - 1
    # Equal ratios lie on one side of a threshold.
    hits = np.searchsorted(-ranked, -ranked[points], side="right")
    stated = np.cumsum(weights)[hits - 1] / own.size
    spread = np.cumsum(weights**2)[hits - 1] / own.size**2
    n_above = np.array([np.count_nonzero(other >= edge) for edge in ranked[points]])
    spread += (n_above + 1.0) / other.size**2
    if (np.abs(stated - n_above / other.size) > _MAX_STATED_DEVIATIONS * np.sqrt(spread)).any():
        return None
    # A count that fresh draws exceed once in five times, as a rate.
    count = np.ceil(pdtrik(_STATED_QUANTILE, np.minimum(stated, 1.0) * goal.trials))
    k_prime = np.clip(count / goal.trials, 0.0, 1.0) * _STATED_RATE_DRAWS
    drawn = hits, own.size, k_prime.astype(np.int64), _STATED_RATE_DRAWS
    merits = goal.predict(*drawn, goal.caution[0])
    best = int(np.argmax(merits))
    edge = float(ranked[points[best]])
    counts = Counts(int(hits[best]), own.size, int(n_above[best]), other.size)
    if direction == "x":
        # An infinite ratio is an event of its own, above every finite one.
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
