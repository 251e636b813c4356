"""Number of trials that an audit needs, or of test records for an audit of one training run."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from ..attacks import Attack, AttackName
from ..attacks.attack import AuditAttack
from ..bounds import limits
from ..bounds.canaries import gaussian_p_on_x_prime, gdp_epsilon, guesses_for
from ..bounds.power import best_gaussian_rates, scaled_noise_epsilon, trials_for
from ..claims.trade_off import Claim, choose_refutable_pair
from ..errors import check_epsilon, confidence_level, delta_level, integer, invalid, mistyped, real
from ..events.event import Event
from ..mechanisms.declarations import can_core_draw
from ..pairs import Search
from ..progress import Progress
from ..records import Counts, Pair
from ..report.shown import name_of
from ..results.evidence import divide_if_delta_0, put_numerator_first
from ..results.planned import Plan, median_ratio_rates
from ..sampling.rows import list_doubts
from ..sampling.sources import TimeLog
from ..sampling.tally import Hits, Tally, Watch
from ..streams import COUNT, Rng, to_seed
from ..suggestions import explain_argument_errors
from .arguments import collect_audit_arguments
from .pilot import PilotDraws
from .request import Request, choose_request_pair, probed_request

_LAPLACE_EVENT_MASS: Final = 0.5
"""Probability that Laplace noise is positive. This half-line is the most probable event whose
probability ratio is e^epsilon."""
_MIN_TIMED_SECONDS: Final = 0.05
"""Least time in seconds of the run that measures the speed."""

_EVENTS_PER_ROUND: Final = 8
"""Number of events that are chosen and counted in a round. A real audit has only one event, but the
events of different fits are not equally good."""
_FIRST_PILOT_TRIALS: Final = 128
_PILOT_GROWTH: Final = 4
_MAX_PILOT_TRIALS: Final = 2**20
"""Default for the largest number of draws per input that are counted in a round."""
_LIMIT_FAILURE: Final = 0.1
"""Error probability of each of the two limits on the probabilities of an event. In about 2 of 100
plans, the two limits together are so wrong that the plan is too small."""
_CLOSE_PLAN_RATIO: Final = 1.2
"""Largest ratio of two numbers of trials that is accepted without a larger pilot: the number from
confidence limits, divided by the number from the observed frequencies."""
_PILOTS_PER_TRIAL: Final = 2
"""A plan is accepted if the number of counted pilot draws is at least this many times the planned
number of trials."""
_SIDE_NAMES: Final = {"x": "x", "x_prime": "x'"}


@explain_argument_errors
def plan(
    claim: float | Claim | None,
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
    attack: Attack | AuditAttack | AttackName | None = None,
    pilot: int | None = None,
    rng: Rng = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> Plan:
    """Compute the number of trials that an audit needs to refute a false claim.

    An audit with n trials makes n draws on an input x and n draws on a neighbouring input x'. The
    audit counts the draws in which an event occurs: K draws on x, and K' draws on x'. The audit
    refutes the claim if the Clopper-Pearson lower bound on epsilon from K and K' exceeds the claim.
    The planned number is the smallest n for which the audit refutes the claim with probability
    `power`. A number above 10^8 is approximate, and may be a few percent too large.

    The number depends on the true privacy loss. The true loss must exceed the claim. Give the true
    loss by one of these arguments:

    - `true_epsilon`: the true loss itself.
    - `factor`: the actual scale of the noise, divided by the scale that the claim needs. If delta
      is 0, the true loss is ``claim / factor``, as for Laplace noise. If delta is above 0, the true
      loss is computed for Gaussian noise. The sigma of this noise is `factor` times the smallest
      sigma for (claim, delta).
    - `mechanism`: the loss is estimated from draws of this mechanism, if neither `true_epsilon` nor
      `factor` is given.

    The probabilities of the event are determined in one of two ways:

    - Without a mechanism, the event has probability p = `mass` on x and probability q on x'. The
      ratio of p and q is the largest that the true loss allows: ``(p - delta)/q = e^true_epsilon``.
      If delta is above 0, q is computed for Gaussian noise instead in two cases: `factor` is given,
      or `mass` is left out.
    - With a mechanism, an attack chooses events on some draws, as in `dpcore.audit`. These events
      are counted on new draws. The plan uses confidence limits on the probabilities of the events.

    If no mechanism is given, the real audit may need more trials than planned, because the attack
    may find a worse event than the assumed event. Usually, an audit with the default attack needs
    at most 4 times the planned number. This was tested for seven mechanisms whose noise was 10 %
    too small. For six of these mechanisms, the audit needed 1 to 4 times the planned number. For
    the seventh, geometric noise, the audit needed 16 times the planned number.

    In an audit of one training run, the auditor guesses which canaries (test records) were included
    in the training. For such an audit, give `canaries`, `guesses` or both:

    - If `guesses` is a share of the canaries, such as 1.0, the result is the number of canaries.
    - If only `canaries` is given, the result is the number of guesses.
    - If `canaries` and `guesses` are both given, the result is the power, and the largest epsilon
      that can be certified.

    Each guess is assumed to be right with probability ``e^t/(1 + e^t)``, for the true loss t. If
    delta is 0, this is the largest possible probability.

    Args:
        claim: the claimed epsilon, or a curve of `dpcore.claims`. None means the claim that the
            mechanism itself states. With a curve, give a `factor` (for Gaussian noise) or a
            `mechanism`. The audit then tests one tangent (epsilon, delta) of the curve, and the
            plan chooses the tangent that needs the fewest trials.
        true_epsilon: the true privacy loss epsilon, larger than the claim.
        factor: actual scale of the noise, divided by the scale that the claim needs, above 0 and
            below 1. For example, .9 means that the noise is 10 % too small.
        mass: probability of the event on x, above delta and at most 1. (On x', the event is less
            probable.) If delta is 0, the default is .5, the probability that Laplace noise is
            positive. If delta is above 0, the default is the probability for which Gaussian noise
            needs the fewest trials.
        mechanism: the mechanism, as in `dpcore.audit`. To plan for a mechanism, dpcore makes about
            as many draws as a small audit.
        pair: two neighbouring inputs, or several pairs to choose from, as in `dpcore.audit`.
        delta: delta of the claim, in [0, 1).
        confidence: confidence level of the bound in the planned audit, strictly between 0 and 1.
            The pytest fixture `dp_audit` uses .9999.
        power: probability with which the audit shall refute the claim, strictly between 0 and 1.
        canaries: number of test records of one training run. A fair coin decides for each record
            whether the training data contain the record.
        guesses: number of canaries for which the auditor guesses whether the canary was included
            (an int). A float up to 1.0 is the share of these canaries among all canaries.
        attack: attack on the mechanism, as in `dpcore.audit`.
        pilot: largest number of draws per input in one round of the estimation of event
            probabilities. Defaults to 2**20. This estimation is only made for a mechanism. In each
            round, eight events are chosen and then counted. The first round counts the events on
            1,024 draws per input. Each further round uses four times as many draws as the round
            before. The rounds end if more draws would hardly reduce the planned number of trials.
            The rounds also end if the number of draws per input in a round is at least twice the
            planned number of trials. If draws are slow, give `mass` instead of a mechanism, because
            then no draws are made.
        rng: None, an int or a Generator, as in `dpcore.audit`.
        threads: number of threads, as in `dpcore.audit`.
        progress: True to show a progress bar, as in `dpcore.audit`.

    Returns:
        The `Plan`. Its attribute `trials` is the planned number of trials. For an audit of one
        training run, the attributes `canaries` and `guesses` are set instead of `trials`. The
        attribute `seconds` is the expected time of the audit. The attribute `certifiable` is the
        largest epsilon that the audit can certify. `print` shows the plan as text. The method
        `plot` shows the power against the number of trials.

    Raises:
        TypeError: if an argument is of the wrong type, or if a needed argument is missing.
        ValueError: for one of these reasons:

            - a value is out of range, or arguments exclude each other;
            - the true loss does not exceed the claim, or the draws of the mechanism do not show
              that its loss exceeds the claim;
            - even 2**53 trials are not enough.

    Source:
        Clopper and Pearson (1934), on the bound. Balle and Wang (2018), theorem 8, on Gaussian
        noise. Steinke, Nasr and Jagielski (2023), theorem 5.2, on audits of one training run.

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
        arguments = {"mass": mass, "canaries": canaries, "guesses": guesses}
        _refuse_ignored("where a mechanism is given", **arguments)
        about_pilots |= {"claim": claim, "delta": settings[0], "confidence": settings[1]}
        violation = true_epsilon, factor
        return _plan_from_pilots(mechanism, violation, power=settings[2], **about_pilots)
    _refuse_ignored("without a mechanism", **about_pilots)
    if claim is None:
        raise mistyped("claim", "given where there is no mechanism", claim)
    if isinstance(claim, Claim):
        _refuse_ignored("where claim is a curve", canaries=canaries, guesses=guesses, mass=mass)
        return _plan_for_curve_claim(claim, true_epsilon, factor, settings)
    claim = check_epsilon(claim)
    true = _compute_true_loss(claim, true_epsilon, factor, settings[0])
    stated = Plan(claim, true, *settings, factor)
    if canaries is None and guesses is None:
        return _plan_from_event_probability(stated, mass)
    _refuse_ignored("where canaries or guesses are given", mass=mass)
    return _plan_canaries(stated, canaries, guesses)


def _refuse_ignored(when: str, **arguments: Any) -> None:
    """Raise a ValueError if one of the arguments is not None.

    Args:
        when: text for the message: the case in which the arguments would be ignored.
        **arguments: the arguments.
    """
    for name, value in arguments.items():
        if value is not None:
            raise invalid(name, f"None {when}", value)


def _compute_true_loss(
    claim: float, true_epsilon: float | None, factor: float | None, delta: float
) -> float:
    """Return the true privacy loss for which the audit is planned.

    It is `true_epsilon`, or it is computed from `factor`.
    """
    if true_epsilon is not None:
        _refuse_ignored("where true_epsilon is given", factor=factor)
        loss = real("true_epsilon", true_epsilon, low=0.0)
        if loss <= claim:
            requirement = f"above claim = {claim:g} (no number of trials refutes a true claim)"
            raise invalid("true_epsilon", requirement, loss)
        return loss
    if factor is None:
        requirement = "given, or factor (the noise's scale over the right one), or a mechanism"
        raise mistyped("true_epsilon", requirement, true_epsilon)
    factor = real("factor", factor, low=0.0, high=1.0, open_low=True, open_high=True)
    if claim == 0.0:
        raise invalid("claim", "above 0 where factor is given: no noise is enough for it", claim)
    loss = scaled_noise_epsilon(claim, factor, delta)
    if not claim < loss < math.inf:
        raise invalid("factor", "one that makes a difference in double precision", factor)
    return loss


def _plan_from_event_probability(stated: Plan, mass: float | None) -> Plan:
    """Return the plan for an event of probability `mass`, or for the best event.

    The event has the probability ratio ``(p - delta)/q = e^true_epsilon``. With Gaussian noise, the
    ratio is that of the best event of probability p.
    """
    delta, true = stated.delta, stated.true_epsilon
    blamed = ("true_epsilon", true) if stated.factor is None else ("factor", stated.factor)
    if mass is None:
        p, q = _LAPLACE_EVENT_MASS, _LAPLACE_EVENT_MASS * math.exp(-true)
        if delta:
            p, q = best_gaussian_rates(stated.claim, true, delta, stated.confidence, stated.power)
    else:
        p, blamed = real("mass", mass, low=delta, high=1.0, open_low=True), ("mass", mass)
        gaussian = delta and stated.factor is not None
        q = gaussian_p_on_x_prime(p, true, delta) if gaussian else (p - delta) * math.exp(-true)
    trials = trials_for(stated.claim, [(p, q)], delta, stated.confidence, stated.power)
    if trials is None:
        requirement = "such that the event shows more than the claim in fewer than 2**53 trials"
        raise invalid(blamed[0], requirement, blamed[1])
    return replace(stated, rates=((p, q),), trials=trials)


def _refuse_epsilon_or_delta_with_curve(claim: Any, true_epsilon: Any, delta: float) -> None:
    """Raise a ValueError if `true_epsilon` or `delta` is given together with a claimed curve."""
    if isinstance(claim, Claim):
        requirement = "where claim is a curve: its violation is a factor, or a mechanism's own"
        _refuse_ignored(requirement, true_epsilon=true_epsilon)
        if delta:
            raise invalid("delta", "left out where claim is a curve", delta)


def _plan_for_curve_claim(
    claim: Claim, true_epsilon: Any, factor: Any, settings: tuple[float, float, float]
) -> Plan:
    """Return the plan for a claimed curve and Gaussian noise that is too small.

    The plan is for the tangent (epsilon, delta) of the curve that needs the fewest trials.
    """
    _refuse_epsilon_or_delta_with_curve(claim, true_epsilon, settings[0])
    if factor is None:
        requirement = "given (the noise's scale over the right one), or a mechanism"
        raise mistyped("factor", requirement, factor)
    factor = real("factor", factor, low=0.0, high=1.0, open_low=True, open_high=True)
    mu = claim.gaussian() / factor
    confidence, power = settings[1:]
    plans: list[tuple[int, Plan]] = []
    epsilons, _ = claim.tangents()
    if not epsilons.size:
        requirement = "one that implies a delta below 1 at an epsilon of 700 or less"
        raise invalid("claim", requirement, claim)
    for epsilon in epsilons[1 : epsilons.size // 2 : 4].tolist():
        delta = float(claim.delta(epsilon))
        true = gdp_epsilon(mu, delta) if 0.0 < delta < 1.0 else 0.0
        if true <= epsilon:
            continue
        rates = best_gaussian_rates(epsilon, true, delta, confidence, power)
        trials = trials_for(epsilon, [rates], delta, confidence, power, rough=True)
        if trials is not None:
            stated = Plan(epsilon, true, delta, confidence, power, factor, (rates,), curve=claim)
            plans.append((trials, stated))
    if not plans:
        requirement = f"small enough that Gaussian noise breaks the claim ({claim})"
        raise invalid("factor", requirement, factor)
    stated = min(plans, key=lambda sized: sized[0])[1]
    trials = trials_for(stated.claim, stated.rates, stated.delta, confidence, power)
    return replace(stated, trials=trials)


def _plan_canaries(stated: Plan, canaries: Any, guesses: Any) -> Plan:
    """Return the plan for an audit of one training run.

    If guesses about all canaries do not reach the required power, the plan is to guess all
    canaries.
    """
    most = None if canaries is None else integer("canaries", canaries, 1)
    whole = isinstance(guesses, (int, np.integer)) or guesses is None
    share = None if whole else real("guesses", guesses, low=0.0, high=1.0, open_low=True)
    n_guesses = None if guesses is None or not whole else integer("guesses", guesses, 1, most)

    def run_of(many: int) -> int:
        return most if most is not None else math.ceil(many / (share or 1.0))

    if share is not None and most is not None:
        n_guesses = max(1, round(share * most))
    if n_guesses is None:
        settings = stated.delta, stated.confidence, stated.power
        limit = {} if most is None else {"most": most}
        n_guesses = guesses_for(run_of, stated.claim, stated.guess_rate, *settings, **limit)
        if n_guesses is None and most is None:
            raise invalid("delta", "small enough that a million guesses suffice", stated.delta)
    # If all canaries are too few, the plan states the power of guessing all of them.
    n_guesses = most if n_guesses is None else n_guesses
    assert n_guesses is not None
    return replace(stated, canaries=run_of(n_guesses), guesses=n_guesses)


def _plan_from_pilots(
    mechanism: Any,
    violation: tuple[float | None, float | None],
    power: float,
    pilot: int | None,
    rng: Rng,
    progress: bool | None,
    **stated: Any,
) -> Plan:
    """Return the plan for a mechanism, from pilots that grow until the plan is reliable.

    Args:
        mechanism: the mechanism.
        violation: the arguments `true_epsilon` and `factor`.
        power: probability with which the audit shall refute the claim.
        pilot: largest number of draws per input on which events are counted in one round, or None.
        rng: source of randomness.
        progress: True to show a progress bar.
        **stated: other arguments of `dpcore.audit`.
    """
    claim, delta = stated["claim"], stated["delta"]
    _refuse_epsilon_or_delta_with_curve(claim, violation[0], delta)
    curve = claim if isinstance(claim, Claim) else None
    own = violation == (None, None)
    if claim is not None and curve is None and not own:
        _compute_true_loss(check_epsilon(claim), *violation, delta)
    planned: Plan | None = None
    timed: list[tuple[int, float]] = []
    seed = to_seed(rng)

    def look(size: int, aim: int | None, turn: int) -> Pilots:
        pilots = fit_and_count_eight_events(mechanism, size, aim, (seed, turn), progress, **stated)
        request, best = pilots.request, None
        true = None if own else _compute_true_loss(pilots.claim, *violation, request.delta)
        if true is not None and request.delta:
            # Noise that satisfies such a claim would make a pilot choose another event.
            whole = pilots.claim * pilots.x_distance, true * pilots.x_distance
            best = best_gaussian_rates(*whole, request.delta, request.confidence, power)
        return replace(pilots, true=true, power=power, assumed=best)

    for turn, (size, last) in enumerate(iterate_pilot_sizes(pilot)):
        begun = time.perf_counter()
        pilots = look(size, None, turn)
        timed.append((size, (time.perf_counter() - begun) / _EVENTS_PER_ROUND))
        if planned is None:
            if not last and not pilots.has_plan_converged:
                continue
            # An audit with more trials chooses a better event, up to the draws that a pilot may
            # take.
            aim = size
            while last and pilots.is_plan_at_least_twice_pilots and aim < _EVENTS_PER_ROUND * size:
                aim *= 2
                pilots = look(size, aim, turn)
            # An audit with fewer trials chooses a worse event. Check if its own event is good
            # enough.
            careful = pilots.cautious_trials
            if aim == size and careful is not None and careful < pilots.trials_to_match:
                again = look(size, careful, turn)
                enough = again.cautious_trials
                pilots = again if enough is not None and enough < pilots.trials_to_match else pilots
            planned = pilots.audit_plan(violation[1], seed)
        # Later rounds are only timed, so that the plan does not depend on a clock.
        if timed[-1][1] >= _MIN_TIMED_SECONDS or last or size >= planned.size:
            break
    assert planned is not None
    return replace(planned, seconds=_forecast_seconds(timed, planned.size), curve=curve)


def _forecast_seconds(timed: list[tuple[int, float]], size: int) -> float:
    """Forecast the time of an audit in seconds, from the times of smaller audits.

    The time is extrapolated linearly from the smallest and the largest of these audits.

    Args:
        timed: number of trials and time in seconds of each smaller audit.
        size: number of trials of the audit.
    """
    (small, least), (large, most) = timed[0], timed[-1]
    each = (most - least) / (large - small) if large > small and most > least else most / large
    return most + each * max(0, size - large)


@dataclass(frozen=True, slots=True)
class Pilots:
    """Events that small audits (trial audits) chose for a plan, and their counts on new draws.

    The number of trials of a real audit is planned from these counts.

    Args:
        request: the checked arguments of the trial audits.
        chosen: one pair for each trial audit: the event, and the input on which the event is more
            frequent ("x" or "x_prime").
        seen: the counts of each event on new draws. The counts on the input on which the event is
            more frequent come first.
        true: true privacy loss that the plan assumes. With None, the loss is estimated from the
            counts.
        assumed: two probabilities of an ideal event, which are used instead of the counts. None to
            use the counts.
        power: probability with which the planned audit shall refute the claim.
    """

    request: Request
    chosen: tuple[tuple[Event, str], ...]
    seen: tuple[Counts, ...]
    true: float | None = None
    assumed: tuple[float, float] | None = None
    power: float = 0.95

    @property
    def claim(self) -> float:
        """Claimed epsilon that the planned audit tests."""
        assert self.request.claim is not None
        assert not isinstance(self.request.claim, Claim)
        return self.request.claim

    @property
    def x_distance(self) -> float:
        """Distance between the two inputs. The claimed epsilon is multiplied by this distance."""
        return self.request.pair.distance

    def rates(self, tail: float) -> list[tuple[float, float]]:
        """Return a cautious estimate of the two probabilities of each event (on x, and on x').

        For each event, the first number is a lower confidence limit on the larger probability. The
        second number is an upper confidence limit on the smaller probability. If the true privacy
        loss is known (the attribute `true`), the second number is instead computed from this loss
        and the first number. If the attribute `assumed` is set, only the two probabilities in
        `assumed` are returned.

        Args:
            tail: error probability of each confidence limit.
        """
        if self.assumed is not None:
            return [self.assumed]
        rates_of_events = []
        for seen in self.seen:
            p = limits(seen.k, seen.n, tail)[0]
            q = limits(seen.k_prime, seen.n_prime, tail)[1]
            rates_of_events.append(
                (p, q if self.true is None else p * math.exp(-self.true * self.x_distance))
            )
        return rates_of_events

    def trials(self, tail: float, *, rough: bool) -> int | None:
        """Return the number of trials that an audit needs to refute the claim.

        With this number of trials, the audit refutes the claim with at least the probability in the
        attribute `power`.

        The audit is assumed to choose each of the events of this object with the same probability.
        The result is None if no number of trials is enough.

        Args:
            tail: error probability of the confidence limits on the probabilities of the events.
            rough: True for an approximate number, which takes less time.
        """
        settings = self.request.delta, self.request.confidence, self.power
        return trials_for(self.claim * self.x_distance, self.rates(tail), *settings, rough=rough)

    @property
    def cautious_trials(self) -> int | None:
        """Approximate number of trials that the planned audit needs, computed cautiously.

        The number is computed from confidence limits on event probabilities. The value is None if
        no number of trials is enough.
        """
        return self.trials(_LIMIT_FAILURE, rough=True)

    @property
    def has_plan_converged(self) -> bool:
        """True if more draws would hardly reduce the planned number of trials.

        The draws are used to estimate the probabilities of the chosen events.
        """
        careful, face = self.cautious_trials, self.trials(0.5, rough=True)
        if careful is None or face is None:
            return False
        return careful <= max(self.seen[0].n / _PILOTS_PER_TRIAL, _CLOSE_PLAN_RATIO * face)

    @property
    def is_plan_at_least_twice_pilots(self) -> bool:
        """True if the planned audit has at least twice as many trials as the trial audits.

        The trial audits are the small audits that chose the events of this object. An audit with
        more trials than the trial audits chooses its event on more draws. Therefore this audit
        finds a better event than the trial audits.
        """
        careful = self.cautious_trials
        return self.assumed is None and (careful is None or careful >= 2 * self.trials_to_match)

    @property
    def trials_to_match(self) -> int:
        """Smallest number of trials with which an audit finds as good an event as the trial audits.

        The trial audits are the small audits that chose the events of this object. An audit with
        fewer trials than the trial audits chooses its event on fewer draws, and so finds a worse
        event. If the attribute `assumed` is set, the number is 1.
        """
        return 1 if self.assumed else 1 << (self.request.trials.bit_length() - 1)

    def audit_plan(self, factor: float | None, seed: int) -> Plan:
        """Return the plan of an audit, with the number of trials that the audit needs.

        The audit is assumed to choose each of the events of this object with the same probability.
        As an example, the plan shows the event with the median ratio of probabilities.

        Args:
            factor: the argument `factor` of `dpcore.plan`, or None if it was not given.
            seed: seed of the draws for the plan. The plan stores this seed.

        Raises:
            ValueError: if no number of trials is enough.
        """
        trials, rates = self.trials(_LIMIT_FAILURE, rough=False), self.rates(_LIMIT_FAILURE)
        middle = rates.index(median_ratio_rates(rates))
        if trials is None:
            seen = self.seen[middle]
            counts = f"{seen.k:,} against {seen.k_prime:,} of {seen.n:,} pilot draws"
            requirement = "one that pilots show to lose more than the claim"
            if self.true is None:
                requirement += " (or give the loss to plan for, true_epsilon or factor)"
            raise invalid("mechanism", requirement, counts)
        trials = max(trials, self.trials_to_match)
        (p, q), (event, side) = rates[middle], self.chosen[middle]
        request, mechanism = self.request, self.request.mechanism
        shown = divide_if_delta_0(math.log((p - request.delta) / q), request.delta, self.x_distance)
        return Plan(
            self.claim, shown if self.true is None else self.true, request.delta,
            request.confidence, self.power, factor, tuple(rates), trials,
            distance=self.x_distance,
            mechanism=repr(mechanism) if can_core_draw(mechanism) else name_of(mechanism),
            event=None if self.assumed else f"{event}, {_SIDE_NAMES[side]} in the numerator",
            pilots=self.seen[0].n, seed=seed, seen=self.true is None,
        )  # fmt: skip


def iterate_pilot_sizes(pilot: int | None) -> Iterator[tuple[int, bool]]:
    """Yield the number of trials of each small audit, for every round of planning.

    In each round, small audits choose events. The plan (number of trials) is computed from counts
    of these events.

    Args:
        pilot: largest number of draws per input on which events are counted in a round. None means
            2**20.

    Yields:
        Two values for each round. The first is the number of trials of each small audit. The second
        is True if the round is the last one.
    """
    most = (
        _MAX_PILOT_TRIALS if pilot is None else integer("pilot", pilot, _EVENTS_PER_ROUND)
    ) // _EVENTS_PER_ROUND
    size = _FIRST_PILOT_TRIALS
    while size < most:
        yield size, False
        size *= _PILOT_GROWTH
    yield most, True


def fit_and_count_eight_events(
    mechanism: Any,
    size: int,
    aim: int | None,
    seed: tuple[int, int],
    progress: bool | None,
    **stated: Any,
) -> Pilots:
    """Choose one event in each of eight small audits, and count the eight events on new draws.

    Args:
        mechanism: the mechanism, as in `dpcore.audit`.
        size: number that determines the counted draws: the events are counted on ``8 * size`` draws
            per input.
        aim: number of trials of each of the eight small audits. None means `size`.
        seed: two numbers: the seed of all draws, and the index of the round.
        progress: True to show a progress bar.
        **stated: other arguments of `dpcore.audit`.

    Raises:
        ValueError: if the outputs are not independent. The error is also raised for an attack that
            does not count the same event on x and on x', such as an attack on running times.
    """
    options = {"trials": size if aim is None else aim, "rng": np.random.default_rng(seed)}
    arguments = collect_audit_arguments(mechanism, stated.pop("pair", None), options | stated)
    with Progress("", None, progress, alive=arguments.executor is None, by_call=True) as bar:
        return _fit_events(choose_request_pair(probed_request(arguments, TimeLog(bar))), size, seed)


def _fit_events(request: Request, size: int, seed: tuple[int, int]) -> Pilots:
    if request.claim is None:
        raise mistyped("claim", "given for a mechanism without its own claim", None)
    if request.attack.pools or request.attack.times:
        requirement = "one that counts one event on each side (or give mass, and no mechanism)"
        raise invalid("attack", requirement, request.attack.given)
    chosen: list[tuple[Event, str]] = []
    shape = request.shape
    request.course.begin_step("fit", "choosing events", 2 * _EVENTS_PER_ROUND * request.pilot_size)
    for number in range(_EVENTS_PER_ROUND):
        own = replace(request, seed=to_seed(np.random.default_rng((*seed, number))))
        source = own.make_source(own.pair)
        at = own.pair_as_floats, own.goal, own.pilot_size
        fitted = own.attack.fitted_on(PilotDraws(source, *at, stated=own.stated_scores))
        # If one event needs objects, all events are counted on objects.
        shape = shape if source.shape == shape else ()
        chosen.append((fitted.event, fitted.direction))
    large = replace(request, trials=_EVENTS_PER_ROUND * size, shape=shape)
    counts = _count_events(large, [event for event, _ in chosen])
    ordered = tuple(
        put_numerator_first(c, side) for c, (_, side) in zip(counts, chosen, strict=True)
    )
    if isinstance(request.claim, Claim):
        # An audit of a curve refutes at least as often as an audit of its tangent.
        epsilon, delta = choose_refutable_pair(request.claim, sum(ordered[1:], ordered[0]))
        request = replace(request, claim=epsilon, delta=delta)
    return Pilots(request, tuple(chosen), ordered)


def _count_events(request: Request, events: list[Event]) -> list[Counts]:
    """Count how often each event occurs, all on the same fresh draws on x and on x'."""
    source, n = request.make_source(request.pair), request.trials
    unlike: list[Event] = []
    for event in events:
        unlike += [] if event in unlike else [event]
    first, *others = unlike
    watches = tuple(Watch(Hits(event), n) for event in others)
    sides = [Tally(), Tally()]
    source.course.begin_step("count", "piloting", 2 * n)
    for shard in source.count_in_shards(first, COUNT, [(0, n)], watches):
        for side, part in zip(sides, shard.sides, strict=True):
            side += part
    doubted = request.doubted + list_doubts([[side.evidence] for side in sides])
    if doubted:
        raise invalid("mechanism", "one whose rows are independent", doubted[0])
    hits = [[side.hits[0], *(watch[0] for watch in side.watched)] for side in sides]
    each = [Counts(k, n, k_prime, n) for k, k_prime in zip(*hits, strict=True)]
    return [each[unlike.index(event)] for event in events]
