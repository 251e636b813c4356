"""From pilot draws to what is counted: event, direction, and what is watched beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..attacks import Coordinatewise, FloatLattice, MajorityVote, Support, choose
from ..attacks.auto import Auto
from ..attacks.choosing.choice import Choice, Goal, ScoreAttack, choices, not_applicable, remarks_on
from ..attacks.reading.candidates import candidates_of
from ..attacks.scores.regions import NegativeZeros
from ..attacks.support import MOST_SOUGHT, rare
from ..bounds import clopper_pearson
from ..errors import integer, mistyped
from ..events import Never
from ..events.above import Score, scores_of
from ..records import Counts, Pair
from ..sampling.sources import Place, Source
from ..sampling.tally import Event
from ..streams import PILOT, PROBE
from .answer_types import types_apart
from .judging import marks_on, merit_of, screen, select

_MOST_TRAINING: Final = 2**21
_MOST_PILOT: Final = 2**26
"""Pilot draws a side where the caller did not say."""
_MOST_ELEMENTS: Final = 2**26
"""Numbers kept at once of the draws that train an attack: half a gibibyte a side."""
_MOST_VOTES: Final = 2**17
_MOST_LATTICE: Final = 2**18
"""Numbers a side that the floating-point attack learns from; at least `_FEWEST_LATTICE` rows."""
_FEWEST_LATTICE: Final = 2**12
_CURVE_POINTS: Final = 48
_TYPED_CALLS: Final = 20
"""Short calls on each side that must show the types that the pilot showed: where a type is a
matter of chance, all of them do in at most one audit of 2^40."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """What the pilot decided.

    Args:
        event: what is counted.
        direction: the side in the numerator.
        merit: the bound that it is expected to certify; None where that was not estimated.
        pilot: pilot draws used on each side.
        thresholds: of the event's score, for the trade-off curve; empty without a score.
        lattice: the choice for the floating-point finding, or None.
        notes: what a reader should know of the outputs.
        remarks: what a script should hear of the choice too.
    """

    event: Event
    direction: str
    merit: float | None
    pilot: int
    thresholds: npt.NDArray[np.float64]
    lattice: Choice | None = None
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def pilot_of(trials: int, pilot: int | None) -> int:
    """Pilot draws on each side.

    A power of two where the caller did not say, so that audits of about equal size share their
    event and can be merged.
    """
    if pilot is not None:
        return integer("pilot", pilot, 2)
    return min(_power(max(min(max(trials, 128), 2000), trials // 8)), _MOST_PILOT)


def vote_pilot(trials: int) -> int:
    """Pilot draws on each side that only choose a vote and a direction: at most 1 per cent."""
    return min(_power(trials // 100), _MOST_VOTES) if trials >= 100 else 0


def sizes_of(pilot: int, elements: int) -> tuple[int, int]:
    """Of the pilot draws, those that train an attack and those that choose its event."""
    training = min(max(1, pilot // 4), _most_training(elements))
    return training, pilot - training


def _most_training(elements: int) -> int:
    return max(1, min(_MOST_TRAINING, _MOST_ELEMENTS // max(1, elements)))


def _power(size: int) -> int:
    return 1 << (max(1, size).bit_length() - 1)


def fit(
    source: Source,
    pair: Pair,
    attack: Callable[..., Any],
    goal: Goal,
    pilot: int | None = None,
    lattice: bool = False,
) -> Fitted:
    """Event and direction from pilot draws.

    Args:
        source: where draws come from.
        pair: the two inputs.
        attack: any attack.
        goal: what is to be certified.
        pilot: pilot draws on each side, None for a share of the goal's trials.
        lattice: look for a floating-point finding too.

    Returns:
        What the pilot decided.
    """
    if type(attack) is MajorityVote:
        return _vote(source, pair, attack, goal, pilot or 0)
    total = pilot_of(goal.trials, pilot)
    training, selection = sizes_of(total, source.elements)
    if not isinstance(attack, ScoreAttack):
        size = min(total, _most_training(source.elements))
        sides = source.outputs(PILOT, 0, 0, size), source.outputs(PILOT, 1, 0, size)
        return _foreign(source, pair, attack, goal, sides)
    outputs, outputs_prime = (source.outputs(PILOT, side, 0, training) for side in (0, 1))
    # Differences of outputs near the ends of the range of doubles are infinite, and stay so.
    with np.errstate(over="ignore", invalid="ignore"):
        name = f"outputs of {source.name}"
        scores = candidates_of(attack, outputs, outputs_prime, pair, name)
    found = _floating(source, outputs, outputs_prime, pair) if lattice else ()
    types = types_apart(outputs, outputs_prime)
    rest, rest_prime = screen(source, selection)
    seldom = _rare(attack, (outputs, rest), (outputs_prime, rest_prime), goal)
    del outputs, outputs_prime
    notes = types if types and _stay_apart(source, types) else ()
    watched = max(choices(found, rest, rest_prime, goal), key=merit_of) if found else None
    if watched is not None and watched.merit <= 0.0:
        watched = None
    if not scores:
        if type(attack) is not Auto or rest.size:
            raise not_applicable(attack, rest)
        return Fitted(Never(), "x", 0.0, training + selection, np.empty(0), watched, notes)
    chosen = select(source, scores, (rest, rest_prime), selection, goal)
    if seldom is not None and seldom.merit > max(0.0, chosen.merit):
        chosen = seldom
    told = [one for one in (watched, chosen.rounding) if one is not None]
    event = chosen.counted
    return Fitted(
        event,
        chosen.direction,
        chosen.merit,
        training + selection,
        np.empty(0) if type(event) is Never else _curve(chosen, rest, rest_prime),
        max(told, key=merit_of, default=None),
        notes,
        remarks_on([chosen]),
    )


def _floating(
    source: Source, outputs: npt.NDArray[Any], outputs_prime: npt.NDArray[Any], pair: Pair
) -> tuple[Score, ...]:
    """Scores of what floats show beside their values: their last bits, the sign of zero."""
    rows = max(_FEWEST_LATTICE, _MOST_LATTICE // max(1, source.elements))
    few, few_prime = outputs[:rows], outputs_prime[:rows]
    with np.errstate(over="ignore", invalid="ignore"):
        return (*FloatLattice().candidates(few, few_prime, pair), *_signed(few, few_prime))


def _rare(
    attack: ScoreAttack, outputs: Sequence[Any], outputs_prime: Sequence[Any], goal: Goal
) -> Choice | None:
    """Rare values of one side alone, where the attack looks for such."""
    looks = isinstance(attack, Support) or (
        isinstance(attack, Auto) and any(isinstance(one, Support) for one in attack.members)
    )
    if not looks or sum(map(np.size, (*outputs, *outputs_prime))) > MOST_SOUGHT:
        return None
    return rare(np.concatenate(outputs), np.concatenate(outputs_prime), goal)


def _stay_apart(source: Source, types: tuple[str, ...]) -> bool:
    """Whether a difference of types is the input's: a type may change from call to call."""
    for number in range(1, _TYPED_CALLS + 1):
        place = Place(number, 2, 0, 2)
        if types_apart(*(source.draws.draw(PROBE, side, place) for side in (0, 1))) != types:
            return False
    return True


def _signed(
    outputs: npt.NDArray[Any], outputs_prime: npt.NDArray[Any]
) -> tuple[NegativeZeros, ...]:
    """The score of -0.0, where there is one among the outputs."""
    sides = [side for side in (outputs, outputs_prime) if side.dtype.kind == "f"]
    seen = any(bool((np.signbit(side) & (side == 0.0)).any()) for side in sides)
    return (NegativeZeros(),) if seen else ()


def _curve(
    chosen: Choice, outputs: npt.NDArray[Any], outputs_prime: npt.NDArray[Any]
) -> npt.NDArray[np.float64]:
    """Thresholds of the score at which the trade-off curve will be counted."""
    score = chosen.event.score
    values = scores_of(score, outputs), scores_of(score, outputs_prime)
    edges = marks_on(score, (outputs, outputs_prime), values).points
    if edges.size > _CURVE_POINTS:
        # Half of them evenly over the outputs, half towards the tails, where `edges` is dense.
        half = _CURVE_POINTS // 2
        pooled = np.concatenate(values)
        spread = np.quantile(pooled[np.isfinite(pooled)], np.linspace(0.02, 0.98, half))
        even = np.searchsorted(edges, spread).clip(0, edges.size - 1)
        tails = np.linspace(0, edges.size - 1, half).astype(np.intp)
        edges = edges[np.unique(np.concatenate([even, tails]))]
    return np.unique(np.append(edges, chosen.event.threshold))


def _vote(source: Source, pair: Pair, attack: MajorityVote, goal: Goal, size: int) -> Fitted:
    event = attack.event(pair)
    if size == 0:
        return Fitted(event, "x_prime", None, 0, np.empty(0))
    vote, direction = choose(pilot_counts(source, event, size), goal.confidence, goal.delta)
    return Fitted(replace(event, vote=vote), direction, None, size, np.empty(0))


def _foreign(
    source: Source,
    pair: Pair,
    attack: Callable[..., Any],
    goal: Goal,
    outputs: tuple[npt.NDArray[Any], npt.NDArray[Any]],
) -> Fitted:
    """A user's own attack names the event; the pilot still chooses the order of the sides."""
    size = len(outputs[0])
    if isinstance(attack, Coordinatewise):
        # The event of all coordinates is too rare for a pilot to tell which side leads.
        chosen = attack.choose(*outputs, pair, goal)
        return Fitted(chosen.event, chosen.direction, chosen.merit, size, np.empty(0))
    found = attack(*outputs, pair)
    if not callable(found):
        raise mistyped("event", "a callable outputs -> bools", found)
    counts = pilot_counts(source, found, size)

    def merit(direction: str) -> float:
        ordered = counts if direction == "x" else counts.swapped()
        return clopper_pearson(ordered, goal.delta, goal.confidence)

    ordered = max(("x_prime", "x"), key=merit)
    return Fitted(found, ordered, merit(ordered), size, np.empty(0))


def pilot_counts(source: Source, event: Event, size: int) -> Counts:
    """How often an event happened on the pilot."""
    hits = [source.tally(event, PILOT, side, 0, size).hits[0] for side in (0, 1)]
    return Counts(hits[0], size, hits[1], size)
