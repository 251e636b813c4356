"""How many trials an audit needs to find a violation: from rates, from pilots, or of canaries."""

from __future__ import annotations

import itertools
import math
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from ..attacks.attack import AuditAttack
from ..bounds import limits
from ..bounds.power import gaussian_event, trials_for
from ..bounds.violations import gaussian_rate, guesses_for, loss_of_factor
from ..errors import (
    AssumptionWarning,
    confidence_level,
    delta_level,
    integer,
    invalid,
    mistyped,
    real,
)
from ..pairs import Search
from ..records import Pair
from ..results.audits import Audit
from ..results.figures import per_distance
from ..results.planned import Plan
from ..streams import Rng, seed_of
from .run import audit

__all__ = ["Plan", "plan"]

_MASS: Final = 0.5
"""Of the half line beyond an input: the most that shows the whole loss of Laplace noise."""
_FEWEST: Final = 512
_GROWTH: Final = 4
_MOST: Final = 2**20
"""Pilot draws a side: of the first round, from round to round, and of the last."""
_TAIL: Final = 0.1
"""With which each of the pilots' two limits fails. Both at once, and so far that the plan is too
small, fail in about two of a hundred."""
_CLOSE: Final = 1.2
"""A plan from limits that is at most so many times the one from the rates themselves will do."""
_DEAREST: Final = 2
"""So does one that a pilot was so many times as large as."""
_TELLING, _TIMED = 0.05, 2**18
"""Seconds that tell a speed, and most draws a side of a pilot that is only timed."""
_SIDES: Final = {"x": "x", "x_prime": "x'"}


def plan(
    claim: float | None,
    *,
    true_epsilon: float | None = None,
    factor: float | None = None,
    mass: float | None = None,
    mechanism: Any = None,
    pair: Pair | tuple[Any, Any] | Iterable[Pair] | Search | None = None,
    delta: float = 0.0,
    confidence: float = 0.95,
    power: float = 0.95,
    canaries: int | None = None,
    guesses: int | float | None = None,
    attack: Callable[..., Any] | AuditAttack | str | None = None,
    pilot: int | None = None,
    rng: Rng = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> Plan:
    """How many trials an audit needs to refute a false claim.

    The fewest n with ``P(bound(K, K') > claim) >= power`` for K ~ Binomial(n, p), K' ~ Binomial(n,
    q) and the Clopper-Pearson bound of `dpcore.audit`, a sum of binomial probabilities (exact to
    10^8 trials, then rounded up). p is the event's `mass`, and ``(p - delta)/q = e^true_epsilon``:
    the event shows the whole loss. One that shows less needs more trials.

    The violation is a true loss, or a noise that is too small by a factor: ``true_epsilon = claim
    / factor`` with delta 0, as of Laplace noise, and with delta > 0 the loss of Gaussian noise
    whose sigma is `factor` times the least for (claim, delta). The event is given by its mass; or
    a mechanism is: pilots choose the event as `audit` would, fresh draws tell how often it happens
    on either side, and lower and upper limits of that are planned with. Without a violation the
    mechanism's own is planned for.

    For an audit of one training run give canaries, guesses or both: how many canaries (guesses a
    share of them, such as 1.0), how many guesses (canaries given), or what both can certify. A
    guess is then right with probability ``e^t/(1 + e^t)``, t the true loss: the best attack.

    Args:
        claim: the epsilon that is claimed; None takes that of the mechanism.
        true_epsilon: the loss to be found, above the claim.
        factor: scale of the noise over the right one, above 0 and below 1; .9 is noise a tenth
            too small.
        mass: probability of the event on the side where it is likelier, above delta and at most
            1. None is .5, that of Laplace noise beyond its input; with delta > 0 the threshold
            that finds Gaussian noise soonest.
        mechanism: as in `dpcore.audit`; its draws cost what those of a small audit do.
        pair: as in `dpcore.audit`; two neighbouring inputs, or several pairs to choose from.
        delta: delta of the claim, in [0, 1).
        confidence: confidence of the audit, strictly between 0 and 1 (`dp_audit` uses .9999).
        power: probability of refuting the claim, strictly between 0 and 1.
        canaries: canaries of one run, each included by a fair coin.
        guesses: guesses about them: a number, or a share (a float up to 1.0).
        attack: as in `dpcore.audit`, for the mechanism.
        pilot: most draws on each side that a pilot counts; None is 2**20. The first counts 512,
            each further one four times as many; the last is hardly larger than what is planned.
        rng: None, an int or a Generator, as in `dpcore.audit`.
        threads: as in `dpcore.audit`.
        progress: as in `dpcore.audit`.

    Returns:
        The `Plan`: `trials` (or `canaries` and `guesses`), `seconds` at the pilots' speed, what is
        `certifiable` at most; `print` shows it, `plot` its power against the number of trials.

    Raises:
        TypeError: if an argument is of the wrong kind, or one is missing.
        ValueError: if a value is out of range, arguments exclude each other, the true loss is not
            above the claim, or 2**53 trials are not enough; if pilots show no violation.

    Source:
        Clopper and Pearson (1934) for the bound, the power of a test by its definition; Balle and
        Wang (2018), theorem 8, for Gaussian noise; Steinke, Nasr and Jagielski (2023), theorem
        5.2, for one run.

    Example:
        >>> import dpcore
        >>> dpcore.plan(1.0, factor=0.9, mass=0.5, confidence=0.9999).trials
        22177
        >>> half = dpcore.published.HalfNoise(epsilon=1.0)
        >>> found = dpcore.plan(1.0, mechanism=half, rng=1)
        >>> dpcore.audit(half, claim=1.0, trials=found.trials, rng=2).verdict
        'refuted'
        >>> dpcore.plan(1.0, true_epsilon=2.0, guesses=1.0).canaries
        78
    """
    settings = delta_level(delta), confidence_level(confidence), confidence_level(power, "power")
    about_pilots: dict[str, Any] = {
        "pair": pair, "attack": attack, "pilot": pilot, "rng": rng, "threads": threads,
        "progress": progress,
    }  # fmt: skip
    if mechanism is not None:
        given = {"mass": mass, "canaries": canaries, "guesses": guesses}
        _alone("where a mechanism is given", **given)
        return _piloted(mechanism, claim, (true_epsilon, factor), settings, **about_pilots)
    _alone("without a mechanism", **about_pilots)
    if claim is None:
        raise mistyped("claim", "given where there is no mechanism", claim)
    claim = real("claim", claim, low=0.0)
    true = _true(claim, true_epsilon, factor, settings[0])
    stated = Plan(claim, true, *settings, factor)
    if canaries is None and guesses is None:
        return _of_rates(stated, mass)
    _alone("where canaries or guesses are given", mass=mass)
    return _of_canaries(stated, canaries, guesses)


def _alone(when: str, **given: Any) -> None:
    """Refuse arguments that would be ignored."""
    for name, value in given.items():
        if value is not None:
            raise invalid(name, f"None {when}", value)


def _true(claim: float, true_epsilon: float | None, factor: float | None, delta: float) -> float:
    """The loss to be found, from either of its two arguments."""
    if true_epsilon is not None:
        _alone("where true_epsilon is given", factor=factor)
        found = real("true_epsilon", true_epsilon, low=0.0)
        if found <= claim:
            requirement = f"above claim = {claim:g} (no number of trials refutes a true claim)"
            raise invalid("true_epsilon", requirement, found)
        return found
    if factor is None:
        requirement = "given, or factor (the noise's scale over the right one), or a mechanism"
        raise mistyped("true_epsilon", requirement, true_epsilon)
    factor = real("factor", factor, low=0.0, high=1.0, open_low=True, open_high=True)
    if claim == 0.0:
        raise invalid("claim", "above 0 where factor is given: no noise is enough for it", claim)
    found = loss_of_factor(claim, factor, delta)
    if not claim < found < math.inf:
        raise invalid("factor", "one that makes a difference in double precision", factor)
    return found


def _of_rates(stated: Plan, mass: float | None) -> Plan:
    """From an event's mass, which shows the whole loss; of Gaussian noise, what it shows of it."""
    delta, true = stated.delta, stated.true_epsilon
    blamed = ("true_epsilon", true) if stated.factor is None else ("factor", stated.factor)
    if mass is None:
        p, q = _best(stated.claim, true, delta, stated.confidence, stated.power)
    else:
        p, blamed = real("mass", mass, low=delta, high=1.0, open_low=True), ("mass", mass)
        gaussian = delta and stated.factor is not None
        q = gaussian_rate(p, true, delta) if gaussian else (p - delta) * math.exp(-true)
    trials = trials_for(stated.claim, p, q, delta, stated.confidence, stated.power)
    if trials is None:
        requirement = "such that the event shows more than the claim in fewer than 2**53 trials"
        raise invalid(blamed[0], requirement, blamed[1])
    return replace(stated, mass=p, mass_prime=q, trials=trials)


def _best(
    claim: float, true: float, delta: float, confidence: float, power: float
) -> tuple[float, float]:
    """Rates of the event that finds the loss soonest, of Laplace or Gaussian noise."""
    if delta:
        return gaussian_event(claim, true, delta, confidence, power)
    return _MASS, _MASS * math.exp(-true)


def _of_canaries(stated: Plan, canaries: Any, guesses: Any) -> Plan:
    """One run: the guesses that are enough, or all that there can be."""
    most = None if canaries is None else integer("canaries", canaries, 1)
    whole = isinstance(guesses, (int, np.integer)) or guesses is None
    share = None if whole else real("guesses", guesses, low=0.0, high=1.0, open_low=True)
    wanted = None if guesses is None or not whole else integer("guesses", guesses, 1, most)

    def run_of(many: int) -> int:
        return most if most is not None else math.ceil(many / (share or 1.0))

    if share is not None and most is not None:
        wanted = max(1, round(share * most))
    if wanted is None:
        settings = stated.delta, stated.confidence, stated.power
        limit = {} if most is None else {"most": most}
        wanted = guesses_for(run_of, stated.claim, stated.guess_rate, *settings, **limit)
        if wanted is None and most is None:
            raise invalid("delta", "small enough that a million guesses suffice", stated.delta)
    # Where all canaries are too few, the plan says what guessing all of them would find.
    wanted = most if wanted is None else wanted
    assert wanted is not None
    return replace(stated, canaries=run_of(wanted), guesses=wanted)


@dataclass(frozen=True, slots=True)
class _Pilot:
    """A small audit and what it promises of a large one.

    Args:
        report: the audit; its counts are of draws that chose nothing.
        true: the loss that is planned for; None for the mechanism's own.
        power: the power wanted.
    """

    report: Audit
    true: float | None
    power: float

    @property
    def assumed(self) -> bool:
        """Whether rates are those of Gaussian noise.

        What a pilot of noise that keeps a claim with a delta chooses is another event than the one
        that would show the contrary.
        """
        return self.true is not None and self.report.delta > 0.0

    def rates(self, tail: float) -> tuple[float, float]:
        """Lower limit of the mass, and of the other side the upper limit or what `true` makes."""
        seen, apart, delta = self.report.bound_counts, self.report.pair.distance, self.report.delta
        p = limits(seen.k, seen.n, tail)[0]
        if self.true is None:
            return p, limits(seen.k_prime, seen.n_prime, tail)[1]
        if self.assumed:
            settings = delta, self.report.confidence, self.power
            return _best((self.report.claim or 0.0) * apart, self.true * apart, *settings)
        return p, p * math.exp(-self.true * apart)

    def trials(self, tail: float, *, rough: bool) -> int | None:
        """Trials enough at rates so cautious."""
        found = self.report
        assert found.claim is not None
        whole, settings = found.claim * found.pair.distance, (found.delta, found.confidence)
        return trials_for(whole, *self.rates(tail), *settings, self.power, rough=rough)

    @property
    def close(self) -> bool:
        """Whether a larger pilot would cost more than it saves."""
        careful, face = self.trials(_TAIL, rough=True), self.trials(0.5, rough=True)
        if careful is None or face is None:
            return False
        return careful <= max(self.report.trials / _DEAREST, _CLOSE * face)

    def plan(self, factor: float | None, seed: int) -> Plan:
        """The plan.

        Raises:
            ValueError: if no number of trials is enough.
        """
        found, trials = self.report, self.trials(_TAIL, rough=False)
        seen, (p, q) = found.bound_counts, self.rates(_TAIL)
        if trials is None:
            counts = f"{seen.k:,} against {seen.k_prime:,} of {seen.n:,} pilot draws"
            requirement = "one that pilots show to lose more than the claim"
            if self.true is None:
                requirement += " (or give the loss to plan for, true_epsilon or factor)"
            raise invalid("mechanism", requirement, counts)
        assert found.claim is not None
        apart = found.pair.distance
        shown = per_distance(math.log((p - found.delta) / q), found.delta, apart)
        event = f"{found.event}, {_SIDES[found.direction]} in the numerator"
        return Plan(
            found.claim, shown if self.true is None else self.true, found.delta, found.confidence,
            self.power, factor, p, q, trials, distance=apart, mechanism=found.name,
            event=None if self.assumed else event, pilots=seen.n, seed=seed, seen=self.true is None,
        )  # fmt: skip


def _piloted(
    mechanism: Any,
    claim: float | None,
    violation: tuple[float | None, float | None],
    settings: tuple[float, float, float],
    pilot: int | None,
    rng: Rng,
    **options: Any,
) -> Plan:
    """From pilots, ever larger until they tell enough: each chooses its own event."""
    most, seed = _MOST if pilot is None else integer("pilot", pilot, 2), seed_of(rng)
    delta, confidence, power = settings
    if claim is not None and violation != (None, None):
        _true(real("claim", claim, low=0.0), *violation, delta)

    def small(turn: int) -> tuple[Audit, float]:
        size, begun = min(_FEWEST * _GROWTH**turn, most), time.perf_counter()
        stated = {"claim": claim, "delta": delta, "confidence": confidence, "trials": size}
        report = _audited(mechanism, rng=np.random.default_rng((seed, turn)), **stated, **options)
        return report, time.perf_counter() - begun

    planned: Plan | None = None
    for turn in itertools.count():
        report, seconds = small(turn)
        assert report.claim is not None
        if planned is None:
            own = violation == (None, None)
            true = None if own else _true(report.claim, *violation, report.delta)
            found = _Pilot(report, true, power)
            if report.trials < most and not found.close:
                continue
            planned = found.plan(violation[1], seed)
        assert planned.trials is not None
        # What follows is only timed, so that no clock decides the plan.
        if seconds >= _TELLING or report.trials >= min(most, planned.trials, _TIMED):
            break
    assert planned is not None
    return replace(planned, seconds=seconds * max(1.0, planned.size / report.trials))


def _audited(mechanism: Any, **given: Any) -> Audit:
    """An audit whose counts are one event's."""
    with warnings.catch_warnings():
        # Of rows that are not independent the error below speaks, of few pilots the plan itself.
        warnings.simplefilter("ignore", AssumptionWarning)
        found = audit(mechanism, **given)
    if found.partial:
        raise KeyboardInterrupt
    if found.claim is None:
        raise mistyped("claim", "given for a mechanism that makes none itself", None)
    if found.checks:
        raise invalid("mechanism", "one whose rows are independent", found.checks[0])
    if found.pooled or found.route == "timed":
        raise invalid("attack", "one that counts one event on each side", given["attack"])
    return found
