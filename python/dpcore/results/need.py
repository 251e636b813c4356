"""Number of draws that an audit needs to refute its claim, if event frequencies stay the same."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from ..bounds import clopper_pearson, power
from ..records import Counts
from .evidence import put_numerator_first

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from .audits import Audit
    from .outputs_audits import OutputsAudit

_EXAMPLE_SCALE_FACTOR: Final = 0.9
"""Scale of the noise divided by the correct scale, in the violation used as an example."""
_SMALL_CLAIM_SHARE: Final = 0.5
"""If the bound is below this share of the claim, the report suggests a score by the user."""
_WRONG_DIRECTION_FACTOR: Final = 10
"""Largest factor by which the number of trials may grow in `can_swapped_direction_refute`."""
_MAX_DIGITS, _MAX_DIGITS_ONE_SIDED = 15, 17
"""Numbers of draws are tried if they have fewer zeros than this after two leading digits. The
second limit is used if the event did not occur on the input of the denominator."""


def is_recorded(audit: Audit | OutputsAudit) -> TypeIs[OutputsAudit]:
    """Return True if `audit` is an audit of recorded outputs (an `OutputsAudit`)."""
    return hasattr(audit, "rows")


def rounded_fewest(is_enough: Callable[[int], bool]) -> int | None:
    """Return the smallest whole number that passes a test, rounded up to two significant digits.

    The test is the function `is_enough(number)`. If a number passes, every larger number must pass
    too. The result is None if no number below 10^15 passes.
    """
    for digits in range(14):
        if is_enough(99 * 10**digits):
            unit = 10**digits
            trials = range(10 * unit if digits else 1, 100 * unit, unit)
            return next(number for number in trials if is_enough(number))
    return None


def draws_needed(frequencies: Counts, claim: float, delta: float, confidence: float) -> int | None:
    """Compute how many trials are needed to refute a claim, from the frequencies of an event.

    Each trial is one output on each of the two inputs. The frequencies are assumed to stay the
    same.

    Args:
        frequencies: counts of the event so far. Epsilon is bounded by a ratio P(event|a) /
            P(event|b) for two inputs a and b. `k` and `n` are for a.
        claim: claimed epsilon times the distance between the two inputs.
        delta: delta of the claimed (epsilon, delta)-DP.
        confidence: probability with which the bound holds.

    Returns:
        The number of trials, rounded up to two digits, or None if too many trials are needed.
    """
    if not is_observed_loss_above(frequencies, claim, delta):
        return None

    def enough(trials: int) -> bool:
        k, k_prime = (
            frequencies.k * trials // frequencies.n,
            -(-frequencies.k_prime * trials // frequencies.n_prime),
        )
        counts = Counts(k, trials, k_prime, trials)
        return clopper_pearson(counts, delta, confidence) > claim

    # Beyond these sizes the limits in double precision fail; without hits on x', they fail later.
    for digits in range(_MAX_DIGITS_ONE_SIDED if frequencies.k_prime == 0 else _MAX_DIGITS):
        if enough(99 * 10**digits):
            return next(n for n in range(10 * 10**digits, 10**18, 10**digits) if enough(n))
    return None


def is_observed_loss_above(frequencies: Counts, claim: float, delta: float) -> bool:
    """Return True if the frequencies of an event contradict a claim, without regard to chance.

    The frequencies are regarded as the true probabilities of the event on the two inputs. The
    result is also True if the frequency is above delta on one input (the input of `k`) and 0 on the
    other input.

    Args:
        frequencies: counts of the event. Epsilon is bounded by a ratio P(event|a) / P(event|b) for
            two inputs a and b. `k` and `n` are for a.
        claim: claimed epsilon times the distance between the two inputs.
        delta: delta of the claimed (epsilon, delta)-DP.
    """
    share, share_prime = (
        frequencies.k / frequencies.n - delta,
        frequencies.k_prime / frequencies.n_prime,
    )
    return share > 0.0 and (share_prime == 0.0 or math.log(share / share_prime) > claim)


def trials_to_refute(audit: Audit) -> int | None:
    """Compute how many trials an audit needs to refute its claim, from its event's frequencies.

    Each trial is one output on each of the two inputs. The frequencies are assumed to stay the
    same.

    Args:
        audit: result of an audit that has a claim.

    Returns:
        The number of trials, rounded up to two digits, or None if 10**16 trials are not enough. An
        audit bounds epsilon by the ratio of the event's probabilities on the two inputs. If the
        event happened only on the input in the numerator, the limit is 10**18 trials.
    """
    claim = (audit.claimed_epsilon or 0.0) * audit.pair.distance
    return draws_needed(audit.bound_counts, claim, audit.delta, confidence_of_each_bound(audit))


def confidence_of_each_bound(audit: Audit | OutputsAudit) -> float:
    """Return the confidence with which an audit computes each single bound.

    An audit can test a second event, about the last bits of the outputs. If this event counts
    towards the verdict, there are two bounds. Each bound then gets half of the error probability
    `1 - audit.confidence`.
    """
    return 1.0 - (1.0 - audit.confidence) / 2.0 if audit.floats else audit.confidence


def explain_always_or_never_event(counts: Counts) -> str:
    """Return a text if an event always or never happened, and "" otherwise.

    The text explains that such an event cannot show a privacy loss.
    """
    if counts.k == 0 and counts.k_prime == 0:
        return "this event happened in no draw on either side"
    if counts.k == counts.n and counts.k_prime == counts.n_prime:
        return "this event happened in every draw on both sides"
    return ""


def claim_times_distance(audit: Audit | OutputsAudit) -> float:
    """Return the claimed epsilon of an audit times the distance between the two inputs.

    The result is 0 if the audit has no claim.
    """
    return (audit.claimed_epsilon or 0.0) * audit.pair.distance


def certifies_less_than_half(audit: Audit | OutputsAudit) -> bool:
    """Return True if an audit certifies less than half of the claimed epsilon."""
    return audit.epsilon_lower < _SMALL_CLAIM_SHARE * (audit.claimed_epsilon or 0.0)


def counts_with_n_per_side(audit: Audit | OutputsAudit) -> Counts:
    """Return the counts of an audit, with the number of outputs on each input as `n`.

    An audit of running times stores the number of calls on both inputs together as `n` and
    `n_prime`. This function divides both numbers by two.
    """
    counts = audit.counts
    assert counts is not None
    if not is_recorded(audit) and audit.route == "timed":
        return Counts(counts.k, counts.n // 2, counts.k_prime, counts.n_prime // 2)
    return counts


def low_noise_draws(audit: Audit | OutputsAudit) -> tuple[float, float, int | None] | None:
    """Compute how many draws an audit needs to detect noise that is 10 % too small.

    Returns:
        None if the claim is 0. Otherwise three numbers: the privacy loss with such noise, the
        assumed probability of the event on the input where it is more likely, and the number of
        draws on each input. The last number is None if too many draws are needed.
    """
    claim, delta = claim_times_distance(audit), audit.delta
    if not claim:
        return None
    ordered = put_numerator_first(counts_with_n_per_side(audit), audit.direction)
    true = power.scaled_noise_epsilon(claim, _EXAMPLE_SCALE_FACTOR, delta)
    frequency = _assumed_event_frequency(ordered, true)
    return true, *_event_probability_and_trials(claim, true, frequency, delta, audit.confidence)


def _assumed_event_frequency(frequencies: Counts, true_epsilon: float) -> float:
    """Return the event probability that `low_noise_draws` assumes: usually the observed frequency.

    The probability is .5 if the event shows no loss. It has an upper limit, because the complement
    of a more frequent event shows a larger loss than `true_epsilon`.
    """
    if explain_always_or_never_event(frequencies) or frequencies.k == 0:
        return 0.5
    # If the mass is larger and the ratio is e^true, the complement shows a larger loss.
    return min(frequencies.k / frequencies.n, 1.0 / (1.0 + math.exp(-true_epsilon)))


@lru_cache(maxsize=64)
def _event_probability_and_trials(
    claim: float, true_epsilon: float, mass: float, delta: float, confidence: float
) -> tuple[float, int | None]:
    """Return the probability of an event with loss `true_epsilon`, and a number of trials.

    With this number of trials, the event refutes the claim with 95 % probability. The number is
    rounded up to two digits, and is None if too many trials are needed.
    """
    rates = mass, mass * math.exp(-true_epsilon)
    if delta:
        rates = power.best_gaussian_rates(claim, true_epsilon, delta, confidence, 0.95)
    trials = power.trials_for(claim, [rates], delta, confidence, rough=True)
    if trials is None:
        return rates[0], None
    unit: int = 10 ** max(0, len(str(trials)) - 2)
    return rates[0], -(-trials // unit) * unit


def is_event_unable_to_refute_claim(audit: Audit) -> bool:
    """Return True if the event of an audit cannot show a loss above the claim.

    The result is False if the exact loss that the event can show is not known.
    """
    claim = (audit.claimed_epsilon or 0.0) * (audit.pair.distance if audit.delta else 1.0)
    return audit.exact is not None and audit.exact <= claim * (1.0 + 1e-12)


def can_swapped_direction_refute(audit: Audit) -> bool:
    """Return True if an audit should exchange numerator and denominator of a probability ratio.

    An audit bounds epsilon by the ratio of the event's probabilities on the two inputs. The result
    is True if the exchange allows the audit to refute the claim with at most ten times as many
    trials.
    """
    other = replace(audit, direction="x_prime" if audit.direction == "x" else "x")
    trials = trials_to_refute(other)
    return trials is not None and trials <= _WRONG_DIRECTION_FACTOR * audit.counts.n


def is_declared_noise_enough(audit: Audit) -> bool:
    """Return True if the noise that the mechanism declares satisfies the claim of an audit.

    Only the two inputs of the audit are considered. The result is False if the privacy loss with
    this noise is not known.
    """
    whole = (audit.claimed_epsilon or 0.0) * (1.0 if audit.delta else audit.pair.distance)
    return audit.declared_loss is not None and audit.declared_loss <= whole
