"""Choice of an attack's score and its threshold: rounds on ever more pilot draws."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..attacks.attack import (
    Choice,
    Goal,
    best_of_sketches,
    choose_events,
    column_grains,
    part_grains,
    rounded_merit,
    score_grain,
)
from ..attacks.bins import Marks, marks_of, sorted_values
from ..attacks.parts import remember_parts
from ..events import Above
from ..events.event import Score, scores_of
from ..records import Counts
from ..sampling.slicing import slices_of
from ..sampling.sources import Source
from ..sampling.tally import Frame, Sketch
from ..streams import SELECTION

Floats = npt.NDArray[np.float64]
Sides = tuple[npt.NDArray[Any], npt.NDArray[Any]]
"""Outputs on x and on x'."""

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
_MAX_STATED_THRESHOLDS: Final = 256
_STATED_QUANTILE: Final = 0.8
_STATED_RATE_DRAWS: Final = 2**40
"""Draws that a stated rate is worth: it is taken for exact."""
_MAX_STATED_DEVIATIONS: Final = 6.0
"""Standard errors by which a stated rate may differ from the draws."""
_DEFAULT_SCORE_COST: Final = 20
"""Cost of a score that does not state one: see `AdditiveScore.cost`."""


@dataclass(frozen=True, slots=True)
class SketchScores:
    """The work on one block of a pilot: sketches of several scores.

    Args:
        scores: outputs -> values.
        frames: the frame of each.
    """

    scores: tuple[Score, ...]
    frames: tuple[Frame, ...]

    def __call__(self, outputs: npt.NDArray[Any], start: int) -> tuple[Sketch, ...]:
        """Return one sketch for each score."""
        with remember_parts():
            return tuple(
                Sketch.of(frame, scores_of(score, outputs))
                for score, frame in zip(self.scores, self.frames, strict=True)
            )


def draw_first_outputs(source: Source, selection: int, most: int) -> Sides:
    """Draw the first outputs of the split that chooses among scores, at most `most` a side."""
    rows = max(_SCREENING_ELEMENTS // max(1, source.elements), _SCREENING_ROWS[0])
    rows = min(rows, _SCREENING_ROWS[1], selection, most)
    return source.outputs(SELECTION, 0, rows)


def merit_of(choice: Choice) -> float:
    """Return the merit, as a sort key."""
    return choice.merit


@np.errstate(over="ignore", invalid="ignore")
def select_event(
    source: Source, scores: tuple[Any, ...], first_look: Sides, selection: int, goal: Goal
) -> Choice:
    """Choose the best event of the best score, in rounds.

    Each round uses more of the split, for fewer scores.

    A faint difference between two good scores does not show on the draws of the first round, nor
    does a rare event: the few that go on must be chosen on more.

    Args:
        source: where draws come from.
        scores: at least one.
        first_look: the first outputs of the split (see `draw_first_outputs`).
        selection: draws a side in the whole split.
        goal: what is to be certified.
    """
    screened = len(first_look[0])
    halfway = min(_MAX_HALFWAY_ROWS, selection // 4)
    rounds = [halfway] if halfway >= 2 * screened else []
    rounds += [selection] if selection > screened else []
    found = choose_events(scores, *first_look, goal.bolder() if rounds else goal)
    rounded = max((each.rounding for each in found if each.rounding), key=merit_of, default=None)
    ranked = sorted(found, key=merit_of, reverse=True)
    for size, most in zip(rounds, (_MAX_SEMIFINALISTS, _MAX_FINALISTS), strict=False):
        # The cheapest of the good ones goes on whatever its place among them, and of scores that
        # chose the same outputs one is enough.
        first = _choose_cheapest(ranked)
        simple = next((one for one in ranked if cost_of(one) <= _SIMPLE_SCORE_COST), first)
        different = {first.counts: first, simple.counts: simple}
        for choice in ranked:
            different.setdefault(choice.counts, choice)
        left = tuple(choice.event.score for choice in list(different.values())[: most + 1])
        own = goal if size == selection else goal.bolder()
        found = _judge_scores(source, left, first_look, size, own)
        ranked = sorted(found, key=merit_of, reverse=True)
    chosen = _choose_cheapest(ranked)
    told = rounded is not None and rounded.merit > rounded_merit(chosen.merit)
    return replace(chosen, rounding=rounded if told else None)


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
    parts = [
        both
        for first, end in slices_of(0, size, source.block, source.threads)
        for both in source.run(work, SELECTION, first, end)
    ]
    totals = [
        [Sketch.total(sketches) for sketches in zip(*side, strict=True)]
        for side in zip(*parts, strict=True)
    ]
    return [
        best_of_sketches(score, first, second, marks, goal)
        for score, first, second, marks in zip(scores, *totals, marked, strict=True)
    ]


def _choose_cheapest(found: list[Choice]) -> Choice:
    """Choose the score that takes least time among those about as good as the best."""
    most = max(map(merit_of, found))
    good = [choice for choice in found if choice.merit >= most - _EQUAL_MERIT_TOLERANCE * abs(most)]
    return min(good, key=cost_of)


def cost_of(choice: Choice) -> int:
    """Return the nanoseconds per output that the score declares."""
    return int(getattr(choice.event.score, "cost", _DEFAULT_SCORE_COST))


def choose_as_stated(score: Score, sides: Sides, goal: Goal) -> Choice | None:
    """Choose the best threshold on a log ratio that a mechanism states, without a check of it.

    ``P(l >= t on x') = E[exp(-l); l >= t on x]``: where the ratio is right, draws on one side say
    how rare an event is on the other that shows it to none of them. The pilot tests whether it is
    right; what it promises too much, the count does not certify.

    Args:
        score: the log-likelihood ratio of x over x'.
        sides: pilot outputs on x and on x'.
        goal: what is to be certified.

    Returns:
        The choice; None where the draws contradict the ratio, or it promises nothing.
    """
    ratios, ratios_prime = (scores_of(score, side) for side in sides)
    found = [
        _choose_stated_threshold(score, "x", ratios, ratios_prime, goal),
        _choose_stated_threshold(score, "x_prime", -ratios_prime, -ratios, goal),
    ]
    return max((one for one in found if one is not None), key=merit_of, default=None)


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
    seen = np.array([np.count_nonzero(other >= edge) for edge in ranked[points]])
    spread += (seen + 1.0) / other.size**2
    if (np.abs(stated - seen / other.size) > _MAX_STATED_DEVIATIONS * np.sqrt(spread)).any():
        return None
    # A count that fresh draws exceed once in five times, as a rate.
    count = np.ceil(pdtrik(_STATED_QUANTILE, np.minimum(stated, 1.0) * goal.trials))
    k_prime = np.clip(count / goal.trials, 0.0, 1.0) * _STATED_RATE_DRAWS
    drawn = hits, own.size, k_prime.astype(np.int64), _STATED_RATE_DRAWS
    merits = goal.predict(*drawn, goal.caution[0])
    best = int(np.argmax(merits))
    edge = float(ranked[points[best]])
    counts = Counts(int(hits[best]), own.size, int(seen[best]), other.size)
    if direction == "x":
        return Choice(Above(score, edge), direction, float(merits[best]), counts)
    event = Above(score, math.nextafter(-edge, math.inf), "below")
    return Choice(event, direction, float(merits[best]), counts.swapped())


@np.errstate(over="ignore", invalid="ignore")
def marks_on(score: Any, outputs: Sides, values: Sides) -> Marks:
    """Make thresholds between the values of a score on some outputs."""
    grains = part_grains(score, *outputs) or column_grains(*outputs)
    grain = score_grain(score, grains, *values)
    return marks_of(sorted_values(values[0]), sorted_values(values[1]), grain)
