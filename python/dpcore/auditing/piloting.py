"""Pilots of a planned audit: the events that it would choose, and their frequencies."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import numpy as np

from ..bounds import limits
from ..bounds.power import trials_for
from ..claims.claim import Claim, choose_tangent
from ..errors import integer, invalid, mistyped
from ..mechanisms.callables import name_of
from ..published import is_native
from ..records import Counts
from ..results.figures import numerator_first, per_distance
from ..results.planned import Plan, middle_of
from ..sampling.course import Course
from ..sampling.rows import list_doubts
from ..sampling.slicing import slices_of
from ..sampling.tally import Event, Hits, Tally, Watch
from ..streams import COUNT, seed_of
from .fitting import PilotDraws
from .request import Arguments, Request, request_of, settle_request
from .run import audit

__all__ = ["Pilots", "fit_pilots", "iterate_sizes"]

_EVENTS_PER_ROUND: Final = 8
"""Events of a round: some fits are luckier than others, and an audit has one."""
_FIRST_PILOT_TRIALS: Final = 128
_PILOT_GROWTH: Final = 4
_MAX_PILOT_TRIALS: Final = 2**20
"""Trials of the audit that a first round stands for, from round to round, and draws of the last."""
_LIMIT_FAILURE: Final = 0.1
"""Chance that each of the two limits of an event fails. Both at once, and so far that the plan is
too small, fail in about two of a hundred."""
_CLOSE_PLAN_RATIO: Final = 1.2
"""A plan from limits that is at most so many times the one from the rates themselves will do."""
_PILOTS_PER_TRIAL: Final = 2
"""So does one that is half as large as its pilots."""
_SIDE_NAMES: Final = {"x": "x", "x_prime": "x'"}


@dataclass(frozen=True, slots=True)
class Pilots:
    """Events that audits of one size would choose, counted on the same fresh draws.

    Args:
        request: what an audit of that size settles.
        chosen: the events and the sides in their numerators.
        seen: how often each happened, the numerator's side first.
        true: the loss that is planned for; None for the mechanism's own.
        assumed: rates of another event, which is to show it; None for those that were chosen.
        power: the power wanted.
    """

    request: Request
    chosen: tuple[tuple[Event, str], ...]
    seen: tuple[Counts, ...]
    true: float | None = None
    assumed: tuple[float, float] | None = None
    power: float = 0.95

    @property
    def claim(self) -> float:
        """Epsilon of the claim."""
        assert self.request.claim is not None
        assert not isinstance(self.request.claim, Claim)
        return self.request.claim

    @property
    def delta(self) -> float:
        """Delta of the claim."""
        return self.request.delta

    @property
    def confidence(self) -> float:
        """Confidence of the audit."""
        return self.request.confidence

    @property
    def distance(self) -> float:
        """Distance of the pair."""
        return self.request.pair.distance

    @property
    def many(self) -> int:
        """Number of audits of this size that cost as much."""
        return len(self.chosen)

    def rates(self, tail: float) -> list[tuple[float, float]]:
        """Return lower limits of the events' masses and rates for the other side.

        These are upper limits, or follow from `true` if it is given.
        """
        if self.assumed is not None:
            return [self.assumed]
        found = []
        for seen in self.seen:
            p = limits(seen.k, seen.n, tail)[0]
            q = limits(seen.k_prime, seen.n_prime, tail)[1]
            found.append((p, q if self.true is None else p * math.exp(-self.true * self.distance)))
        return found

    def trials(self, tail: float, *, rough: bool) -> int | None:
        """Compute the trials that suffice at rates with this tail probability."""
        whole, settings = self.claim * self.distance, (self.delta, self.confidence, self.power)
        return trials_for(whole, self.rates(tail), *settings, rough=rough)

    @property
    def careful(self) -> int | None:
        """Approximate number of trials that suffices."""
        return self.trials(_LIMIT_FAILURE, rough=True)

    @property
    def close(self) -> bool:
        """True if larger pilots would cost more than they save."""
        careful, face = self.careful, self.trials(0.5, rough=True)
        if careful is None or face is None:
            return False
        return careful <= max(self.seen[0].n / _PILOTS_PER_TRIAL, _CLOSE_PLAN_RATIO * face)

    @property
    def short(self) -> bool:
        """True if the audit needs more trials than the one that would choose these events."""
        careful = self.careful
        return self.assumed is None and (careful is None or careful >= 2 * self.least)

    @property
    def least(self) -> int:
        """Number of trials below which an audit chooses a worse event, on fewer draws."""
        return 1 if self.assumed else 1 << (self.request.trials.bit_length() - 1)

    def plan(self, factor: float | None, seed: int) -> Plan:
        """Make the plan; it names the event with the median ratio, and its size suffices for all.

        Args:
            factor: the factor that made `true`, or None.
            seed: repeats the pilots.

        Raises:
            ValueError: if no number of trials is enough.
        """
        trials, rates = self.trials(_LIMIT_FAILURE, rough=False), self.rates(_LIMIT_FAILURE)
        middle = rates.index(middle_of(rates))
        if trials is None:
            seen = self.seen[middle]
            counts = f"{seen.k:,} against {seen.k_prime:,} of {seen.n:,} pilot draws"
            requirement = "one that pilots show to lose more than the claim"
            if self.true is None:
                requirement += " (or give the loss to plan for, true_epsilon or factor)"
            raise invalid("mechanism", requirement, counts)
        trials = max(trials, self.least)
        (p, q), (event, side) = rates[middle], self.chosen[middle]
        mechanism = self.request.mechanism
        shown = per_distance(math.log((p - self.delta) / q), self.delta, self.distance)
        return Plan(
            self.claim, shown if self.true is None else self.true, self.delta, self.confidence,
            self.power, factor, tuple(rates), trials, distance=self.distance,
            mechanism=repr(mechanism) if is_native(mechanism) else name_of(mechanism),
            event=None if self.assumed else f"{event}, {_SIDE_NAMES[side]} in the numerator",
            pilots=self.seen[0].n, seed=seed, seen=self.true is None,
        )  # fmt: skip


def iterate_sizes(pilot: int | None) -> Iterator[tuple[int, bool]]:
    """Yield the audit sizes of the rounds of pilots, each with True if it is the last.

    Args:
        pilot: most draws on each side of a round.
    """
    most = (
        _MAX_PILOT_TRIALS if pilot is None else integer("pilot", pilot, _EVENTS_PER_ROUND)
    ) // _EVENTS_PER_ROUND
    size = _FIRST_PILOT_TRIALS
    while size < most:
        yield size, False
        size *= _PILOT_GROWTH
    yield most, True


def fit_pilots(
    mechanism: Any,
    size: int,
    aim: int | None,
    seed: tuple[int, int],
    progress: bool | None,
    **stated: Any,
) -> Pilots:
    """Fit events as audits of a size fit them, and count them on fresh draws.

    Args:
        mechanism: as in `dpcore.audit`.
        size: trials of such an audit; eight times as many are drawn.
        aim: trials of the audit whose events are fitted; None for `size`.
        seed: of all draws, and the number of the round.
        progress: as in `dpcore.audit`.
        **stated: other arguments of `dpcore.audit`.

    Raises:
        ValueError: if the rows are not independent, or the attack counts more than one event.
    """
    usual = {name: one.default for name, one in inspect.signature(audit).parameters.items()}
    fitted_for = size if aim is None else aim
    usual |= {
        "mechanism": mechanism,
        "trials": fitted_for,
        "rng": np.random.default_rng(seed),
        **stated,
    }
    given = Arguments(**{f.name: usual[f.name] for f in fields(Arguments)})
    with Course(progress, alive=given.executor is None) as course:
        return _run_pilot(settle_request(request_of(given, course)), size, seed)


def _run_pilot(request: Request, size: int, seed: tuple[int, int]) -> Pilots:
    if request.claim is None:
        raise mistyped("claim", "given for a mechanism that makes none itself", None)
    if request.attack.pools or request.attack.times:
        raise invalid("attack", "one that counts one event on each side", request.attack.given)
    chosen: list[tuple[Event, str]] = []
    shape = request.shape
    request.course.step("fit", "choosing events", 2 * _EVENTS_PER_ROUND * request.pilot_size)
    for number in range(_EVENTS_PER_ROUND):
        own = replace(request, seed=seed_of(np.random.default_rng((*seed, number))))
        source = own.drawn()
        at = own.known, own.goal, own.pilot_size
        fitted = own.attack.fitted_on(PilotDraws(source, *at, stated=own.stated_scores))
        # Where one event is of objects, all are counted on objects.
        shape = shape if source.shape == shape else ()
        chosen.append((fitted.event, fitted.direction))
    large = replace(request, trials=_EVENTS_PER_ROUND * size, shape=shape)
    counts = _count_events(large, [event for event, _ in chosen])
    seen = tuple(numerator_first(c, side) for c, (_, side) in zip(counts, chosen, strict=True))
    if isinstance(request.claim, Claim):
        # An audit of a curve refutes at least as often as one of its tangent.
        epsilon, delta = choose_tangent(request.claim, sum(seen[1:], seen[0]))
        request = replace(request, claim=epsilon, delta=delta)
    return Pilots(request, tuple(chosen), seen)


def _count_events(request: Request, events: list[Event]) -> list[Counts]:
    """Count the occurrences of each event, all on the same fresh draws."""
    source, n = request.drawn(), request.trials
    unlike: list[Event] = []
    for event in events:
        unlike += [] if event in unlike else [event]
    first, *others = unlike
    watches = tuple(Watch(Hits(event), n) for event in others)
    sides = [Tally(), Tally()]
    source.course.step("count", "piloting", 2 * n)
    for begin, end in slices_of(0, n, source.block, source.threads):
        for side, part in zip(sides, source.tally(first, COUNT, begin, end, watches), strict=True):
            side += part
    doubted = request.doubted + list_doubts([[side.evidence] for side in sides])
    if doubted:
        raise invalid("mechanism", "one whose rows are independent", doubted[0])
    hits = [[side.hits[0], *(found[0] for found in side.watched)] for side in sides]
    each = [Counts(k, n, k_prime, n) for k, k_prime in zip(*hits, strict=True)]
    return [each[unlike.index(event)] for event in events]
