"""Recorded outputs of independent runs: shuffled, cut, and counted on unseen rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..attacks.attack import (
    Fitted,
    Goal,
    Own,
    ScoreAttack,
    attack_name,
    attack_of,
    choose_events,
    not_applicable,
    remarks_on,
)
from ..attacks.candidates import read_candidates
from ..auditing.fitting import outputs_inside
from ..claims.claim import Claim, choose_tangent
from ..errors import invalid, real
from ..events.event import Event, hits_of
from ..records import Counts, Pair, PartsRead, SeenOutput
from ..results.figures import numerator_first
from ..sampling.tally import evaluate_event

Array = npt.NDArray[Any]
Sides = tuple[Array, Array]

_MIN_SIDE_ROWS: Final = 4
"""Rows on each side: to fit, to choose, and two to count."""

_SHUFFLE_STREAM: Final = 17
"""Names the streams of shuffles: with the side two numbers, where those of draws have three."""


_GROUP_ROW_STREAM: Final = 19
"""Names the streams that draw one row of each group."""


class Counted(NamedTuple):
    """Counts of an event, and the attack and rows that chose it.

    Args:
        counts: of the event, on the rows that chose nothing.
        attack: name of the attack.
        event: the event.
        direction: the side in the numerator.
        pilot: rows of each side that fitted and chose.
        remarks: what a reader should know of the choice.
        read: how much of the outputs was read, or None.
        separate: rows of both sides that are independent of each other, in the order of the file:
            all of them, or one of each group.
        inside: distinct outputs inside the event.
        tangent: epsilon and delta of the tangent to a claim that is a curve, or None.
    """

    counts: Counts
    attack: str
    event: Any
    direction: str
    pilot: tuple[int, int]
    separate: Sides
    remarks: tuple[str, ...] = ()
    read: PartsRead | None = None
    inside: tuple[SeenOutput, ...] = ()
    tangent: tuple[float, float] | None = None


def count_event(
    sides: Sides,
    attack: Callable[..., Any],
    pair: Pair,
    share: float | None,
    seed: int,
    settings: tuple[float, float],
    paired: bool = False,
    groups: Sides | None = None,
    claim: Claim | None = None,
) -> Counted:
    """Choose an event on some rows and count it on the others.

    Args:
        sides: outputs on x and on x', shapes `(size, ...)` and `(size', ...)`.
        attack: `(outputs, outputs_prime, pair) -> event`.
        pair: the inputs as the attack gets them.
        share: share of the rows that is counted; None is a half.
        seed: of the shuffle.
        settings: delta and confidence of the bound.
        paired: rows i of both sides are not independent of each other. They stay together then:
            what is counted must be independent of all that has chosen the event.
        groups: the group of each row on both sides, integers from 0, or None. All rows of a group
            fit, or choose, or one of them is counted: rows of one group are not independent.
        claim: a claim that is a curve, which the event is to refute; else None.

    Returns:
        The counts and the event.

    Raises:
        TypeError: if the attack does not return an event, or `share` is no number.
        ValueError: if there are too few rows, or unequal numbers of paired ones; if `share` is
            out of range; if the attack does not apply to such outputs.
    """
    share = real("count_share", 0.5 if share is None else share, low=0.0, high=1.0,
                 open_low=True, open_high=True)  # fmt: skip
    sizes = len(sides[0]), len(sides[1])
    if min(sizes) < _MIN_SIDE_ROWS:
        raise invalid("outputs", f"at least {_MIN_SIDE_ROWS} rows on each side", sizes)
    if groups is not None:
        many = int(groups[0].max()) + 1, int(groups[1].max()) + 1
        if min(many) < _MIN_SIDE_ROWS:
            raise invalid("groups", f"at least {_MIN_SIDE_ROWS} groups on each side", many)
    if paired and sizes[0] != sizes[1]:
        raise invalid("outputs", "as many rows on x as on x' where paired = True", sizes)
    # Rows that were sorted, or came in the order of their runs, are exchangeable after this.
    first, second = (
        _divide_rows(size, groups and groups[number], share, seed, 0 if paired else number)
        for number, size in enumerate(sizes)
    )
    cuts = [first.cuts, second.cuts]
    rest = sides[0][first.counted], sides[1][second.counted]
    left = len(rest[0]), len(rest[1])
    goal = Goal(min(left), *settings, claim=claim)
    audited = attack_of(attack)
    # Without scores the attack is asked as any function is: a vote needs no pilot of its own here.
    fitting = audited.scoring or Own(audited.given)
    fitted = fitting.fitted_on(
        _PilotRows((sides[0][first.pilot], sides[1][second.pilot]), cuts, pair, goal)
    )
    hits, hits_prime = (hits_of(evaluate_event(fitted.event, side)) for side in rest)
    counts = Counts(hits, left[0], hits_prime, left[1])
    return Counted(
        counts,
        attack_name(audited),
        fitted.event,
        fitted.direction,
        (cuts[0][1], cuts[1][1]),
        (sides[0][first.separate], sides[1][second.separate]),
        fitted.remarks,
        fitted.read,
        fitted.inside,
        _choose_tangent(claim, fitted),
    )


def _choose_tangent(claim: Claim | None, fitted: Fitted) -> tuple[float, float] | None:
    """Return the tangent of a curve that suits the event, by the rows that chose it."""
    if claim is None or fitted.counts is None:
        return None
    return choose_tangent(claim, numerator_first(fitted.counts, fitted.direction))


def _choose_cut_points(size: int, share: float) -> tuple[int, int]:
    """Return where the rows that choose among scores begin, and where the counted rows begin."""
    pilot = min(max(2, size - round(size * share)), size - 1)
    return pilot // 2, pilot


def _make_rng(seed: int, *key: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))


def _shuffle_numbers(size: int, seed: int, side: int) -> Array:
    """Return the numbers below `size` in a random order."""
    return _make_rng(seed, _SHUFFLE_STREAM, side).permutation(size)


class _Division(NamedTuple):
    """Numbers of the rows of one side, by what they are for."""

    pilot: Array
    cuts: tuple[int, int]
    counted: Array
    separate: Any


def _divide_rows(size: int, groups: Array | None, share: float, seed: int, side: int) -> _Division:
    """Shuffle rows, or groups, and cut them into those that fit, that choose, and the counted."""
    if groups is None:
        order, cuts = _shuffle_numbers(size, seed, side), _choose_cut_points(size, share)
        return _Division(order[: cuts[1]], cuts, order[cuts[1] :], slice(None))
    from ..divergence.points.points import one_of_each

    shuffled = _shuffle_numbers(int(groups.max()) + 1, seed, side)
    # When the turn of each group comes.
    turns = np.empty_like(shuffled)
    turns[shuffled] = np.arange(len(shuffled))
    turn = turns[groups]
    cuts = _choose_cut_points(len(shuffled), share)
    order = np.argsort(turn, kind="stable")
    ends = np.searchsorted(turn[order], cuts)
    drawn = one_of_each(groups, _make_rng(seed, _GROUP_ROW_STREAM, side))
    counted = drawn[shuffled[cuts[1] :]]
    return _Division(order[: ends[1]], (int(ends[0]), int(ends[1])), counted, np.sort(drawn))


@dataclass(frozen=True, slots=True)
class _PilotRows:
    """The rows that choose, as the pilot of an attack (see `dpcore.attacks.attack.Pilot`).

    Args:
        sides: rows on x and on x'.
        cuts: where those that choose among scores begin, and end, on each side.
        pair: the inputs as the attack gets them.
        goal: what is to be certified.
    """

    sides: Sides
    cuts: list[tuple[int, int]]
    pair: Pair
    goal: Goal

    @property
    def size(self) -> int:
        """Rows on x."""
        return self.cuts[0][1]

    def outputs(self) -> Sides:
        """Return all rows on x and on x'."""
        return self.sides[0][: self.cuts[0][1]], self.sides[1][: self.cuts[1][1]]

    def counts(self, event: Event, size: int) -> Counts:
        """Count the occurrences of an event among all rows."""
        hits, hits_prime = (hits_of(evaluate_event(event, side)) for side in self.outputs())
        return Counts(hits, self.cuts[0][1], hits_prime, self.cuts[1][1])

    def fit_scores(self, attack: ScoreAttack) -> Fitted:
        """Choose the best threshold on the best of the scores that an attack makes."""
        (one, stop), (one_prime, stop_prime) = self.cuts
        sides = self.sides
        training = sides[0][:one], sides[1][:one_prime]
        scores, read = read_candidates(attack, *training, self.pair)
        if not scores:
            raise not_applicable(attack, sides[0])
        rest = sides[0][one:stop], sides[1][one_prime:stop_prime]
        found = choose_events(scores, *rest, self.goal)
        best = max(found, key=lambda choice: choice.merit)
        return Fitted(
            best.counted,
            best.direction,
            best.merit,
            stop,
            np.empty(0),
            remarks=remarks_on(found),
            read=read,
            inside=outputs_inside(best.counted, *rest),
            counts=best.counts,
        )
