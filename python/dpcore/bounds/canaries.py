"""Bounds from one training run: many canaries, each put in or left out by its own coin.

Also violations as numbers that an audit sees: a loss, a rate, guesses in one run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from ..errors import confidence_level, delta_level, integer, real, whole
from ..suggestions import suggest_arguments
from .binomial import Declared, bound_of

_MAX_EPSILON = 1e3
_BISECTION_STEPS = 60
_MAX_GAUSSIAN_PARAMETER = 2.0**1022
"""Between this and its half the middle is still a float64."""

_MAX_GUESSES = 2**20


@Declared(title="one training run", rows="one_run")
@suggest_arguments
def one_run(
    guesses: int, correct: int, canaries: int, delta: float = 0.0, confidence: float = 0.95
) -> float:
    """Compute a certified lower limit on epsilon from guesses about canaries in one run.

    Each of m canaries is in the data with probability 1/2, independently; from the one output an
    attack guesses r of them, a number fixed in advance, and v guesses are correct. For an
    (epsilon, delta)-DP mechanism, with W ~ Binomial(r, e^epsilon/(1 + e^epsilon)),

        P(at least v correct) <= P(W >= v) + 2 m delta max over i of P(v > W >= v - i)/i,

    i from 1 to v. The limit is the largest epsilon at which this is at most 1 - confidence.
    Every epsilon with that property is certified, whether or not the expression rises between
    them: a mechanism that satisfies a smaller epsilon satisfies this one too.

    The canaries' coins are the only randomness used: one run suffices, and the canaries need not
    be independent of each other inside the mechanism. Which canaries to guess may depend on the
    output, how many may not.

    Args:
        guesses: guesses r made, from 1 to `canaries`; the others are abstentions.
        correct: guesses v that were right, from 0 to `guesses`.
        canaries: canaries m whose inclusion was decided by a fair coin.
        delta: the delta of the claim, in [0, 1).
        confidence: probability that the limit holds, strictly between 0 and 1.

    Returns:
        The lower limit, finite and at least 0.

    Raises:
        TypeError: if a count is not an integer, or `delta` or `confidence` not a number.
        ValueError: if one of them is out of range.

    Source:
        Steinke, Nasr and Jagielski (2023), Privacy Auditing with One (1) Training Run, theorem
        5.2.

    Example:
        >>> round(one_run(100, 90, 1000), 3), round(one_run(100, 90, 1000, delta=1e-5), 3)
        (1.631, 1.626)
    """
    canaries, guesses, correct = _check_counts(canaries, guesses, correct)
    delta, alpha = delta_level(delta), 1.0 - confidence_level(confidence)
    numbers = guesses, correct, canaries
    return bisect_largest(lambda epsilon: _chance_ceiling(*numbers, epsilon, delta) <= alpha)


def _chance_ceiling(
    guesses: int, correct: int, canaries: int, epsilon: float, delta: float
) -> float:
    """Compute theorem 5.2's ceiling on the probability of that number of correct guesses."""
    from scipy.special import bdtr, bdtrc

    if correct == 0:
        return 1.0
    rate = 1.0 / (1.0 + math.exp(-epsilon))
    chance = float(bdtrc(correct - 1, guesses, rate))
    if delta > 0.0:
        i = np.arange(1, correct + 1)
        # P(v > W >= v - i); W below 0 has probability 0, which bdtr does not say.
        below = np.where(i == correct, 0.0, bdtr(np.maximum(correct - i - 1, 0), guesses, rate))
        share = (float(bdtr(correct - 1, guesses, rate)) - below) / i
        chance += 2.0 * canaries * delta * float(share.max())
    return min(chance, 1.0)


@suggest_arguments
def one_run_mu(guesses: int, correct: int, canaries: int, confidence: float = 0.95) -> float:
    """Compute a lower limit on mu from guesses about canaries in one run, for a Gaussian claim.

    The null is that the mechanism is mu-GDP: its trade-off curve is nowhere below that of N(0, 1)
    against N(mu, 1). Let p_t be the probability of exactly t correct guesses out of c. Consider a
    canary and the event that its guess is right and t, ..., c or more are right in all. Flip that
    canary's coin: the guess is wrong and one fewer is right. By the definition of the trade-off
    curve f, averaged over canaries (1 - f is concave), for the tails

        r_t = sum over s >= t of s/m p_s,   h_t = sum over s >= t of (c - s)/m p_s:
        r_t <= 1 - f(h_(t-1)),   so   h_(t-1) >= max(h_t, g(r_t)),   g the inverse of 1 - f,

    and r_(t-1) = r_t + (t - 1)/(c - t + 1) (h_(t-1) - h_t). Suppose P(at least v correct) = tau.
    Starting from r_v = tau v/m, h_v = tau (c - v)/m and taking equality throughout gives the
    least r_0 + h_0 that is possible (shown below); it is c/m. If the least is more, the
    probability is below tau = 1 - confidence, and mu is rejected.

    Why the least: let D_t, E_t be by how much any other r_t, h_t of the same tau exceed these. D_v
    = -E_v >= 0. By induction D_t >= max(0, t/(c-t) E_t): either E_t >= 0, or the least h_t was
    left at its h_(t+1), so that E_t >= E_(t+1) and neither D nor D + E has fallen. Hence D_0 + E_0
    >= 0. A larger tau starts with D_v, E_v >= 0 in just that proportion and ends no lower.

    Args:
        guesses: guesses c made, from 1 to `canaries`, a number fixed in advance.
        correct: guesses v that were right, from 0 to `guesses`.
        canaries: canaries m whose inclusion was decided by a fair coin.
        confidence: probability that the limit holds, strictly between 0 and 1.

    Returns:
        The lower limit, finite and at least 0.

    Raises:
        TypeError: if a count is not an integer, or `confidence` not a number.
        ValueError: if one of them is out of range.

    Source:
        Mahloujifar, Melis and Chaudhuri (2025), Auditing f-Differential Privacy in One Run, ICML,
        algorithm 3 with two choices.

    Example:
        >>> round(one_run_mu(100, 90, 1000), 3)
        0.603
    """
    from scipy.special import ndtr, ndtri

    def refutes(mu: float) -> bool:
        def least(power: float) -> float:
            return float(ndtr(float(ndtri(power)) - mu))

        return one_run_refutes(least, guesses, correct, canaries, confidence)

    return bisect_largest(refutes)


@suggest_arguments
def one_run_refutes(
    least_type_one: Callable[[float], float],
    guesses: int,
    correct: int,
    canaries: int,
    confidence: float = 0.95,
) -> bool:
    """Return True if guesses about canaries in one run refute a trade-off curve.

    The recursion of `one_run_mu`, which needs of the curve f only the inverse of 1 - f.

    Args:
        least_type_one: from a power to the least type I error of a test with it, at most the
            power; it must not be too large.
        guesses: guesses made, from 1 to `canaries`, a number fixed in advance.
        correct: guesses that were right, from 0 to `guesses`.
        canaries: canaries whose inclusion was decided by a fair coin.
        confidence: 1 - confidence is the probability that a true curve is refuted, at most.

    Returns:
        True if so many right guesses have a probability below 1 - confidence.

    Raises:
        TypeError: if a count is not an integer, or `confidence` not a number.
        ValueError: if one of them is out of range.

    Source:
        Mahloujifar, Melis and Chaudhuri (2025), algorithm 3 with two choices.

    Example:
        >>> one_run_refutes(lambda power: power, 100, 90, 1000)
        True
    """
    canaries, guesses, correct = _check_counts(canaries, guesses, correct)
    tau = 1.0 - confidence_level(confidence)
    r, h = tau * correct / canaries, tau * (guesses - correct) / canaries
    # What rounding adds in as many steps must not reject.
    total = guesses / canaries * (1.0 + 1e-9)
    for t in range(correct - 1, -1, -1):
        if r + h > total or r >= 1.0:
            return True
        needed = least_type_one(r)
        if needed <= h:
            # Neither changes again.
            return False
        r, h = r + t / (guesses - t) * (needed - h), needed
    return r + h > total


@Declared(title="one training run, whole curve", rows="one_run", deltas="positive", curves="only")
@suggest_arguments
def one_run_curve(
    guesses: int, correct: int, canaries: int, delta: float, confidence: float = 0.95
) -> float:
    """Compute a lower limit on epsilon from one run compared with a whole curve: `one_run`.

    The verdict on a curve is that of `one_run_refutes`. What holds for every mechanism, whatever
    its curve, is the limit of `one_run` at a delta.

    Args:
        guesses: as in `one_run`.
        correct: as in `one_run`.
        canaries: as in `one_run`.
        delta: strictly between 0 and 1.
        confidence: as in `one_run`.

    Returns:
        The lower limit on epsilon.

    Raises:
        TypeError: as in `one_run`.
        ValueError: as in `one_run`.

    Source:
        Steinke, Nasr and Jagielski (2023), theorem 5.2.

    Example:
        >>> one_run_curve(100, 90, 1000, 1e-5) == one_run(100, 90, 1000, delta=1e-5)
        True
    """
    return one_run(guesses, correct, canaries, confidence_level(delta, "delta"), confidence)


@Declared(
    title="one training run, of a Gaussian claim",
    rows="one_run",
    deltas="positive",
    curves="gaussian",
)
@suggest_arguments
def one_run_fdp(
    guesses: int, correct: int, canaries: int, delta: float, confidence: float = 0.95
) -> float:
    """Compute the epsilon at delta of the largest Gaussian trade-off curve that one run refutes.

    ``one_run_mu`` gives the mu; the answer solves delta = Phi(mu/2 - epsilon/mu) - e^epsilon
    Phi(-mu/2 - epsilon/mu). It refutes claims of the form "mu-GDP, and therefore (epsilon,
    delta)-DP", as the Gaussian mechanism makes them, and is sharper than `one_run` by using the
    whole curve. It does *not* bound the epsilon of a mechanism that is (epsilon, delta)-DP without
    being Gaussian: such a mechanism may be correct and its curve still not be above that of mu.

    Args:
        guesses: guesses made, from 1 to `canaries`, a number fixed in advance.
        correct: guesses that were right, from 0 to `guesses`.
        canaries: canaries whose inclusion was decided by a fair coin.
        delta: the delta of the claim, strictly between 0 and 1.
        confidence: probability that the limit holds, strictly between 0 and 1.

    Returns:
        The lower limit on the epsilon of a Gaussian claim, finite and at least 0.

    Raises:
        TypeError: if a count is not an integer, or `delta` or `confidence` not a number.
        ValueError: if one of them is out of range.

    Source:
        Mahloujifar, Melis and Chaudhuri (2025); Dong, Roth and Su (2022), corollary 2.13, for the
        conversion.

    Example:
        >>> round(one_run_fdp(100, 90, 1000, delta=1e-5), 3)
        2.456
    """
    delta = confidence_level(delta, "delta")
    return gdp_epsilon(one_run_mu(guesses, correct, canaries, confidence), delta)


@suggest_arguments
def guesses_needed(
    claim: float,
    canaries: int,
    delta: float = 0.0,
    confidence: float = 0.95,
    bound: Callable[..., float] | Literal["one_run", "one_run_fdp"] = one_run,
) -> int | None:
    """Return the fewest guesses, all of them right, with which one run can refute a claim.

    With delta = 0 they are the smallest r with (e^epsilon/(1 + e^epsilon))^r <= 1 - confidence.

    Args:
        claim: the epsilon that is claimed, at least 0.
        canaries: canaries m of the run; as many more are assumed as the guesses need.
        delta: the delta of the claim, in [0, 1).
        confidence: probability that the bound holds, strictly between 0 and 1.
        bound: `one_run` or `one_run_fdp`, or the name of either.

    Returns:
        The number, or None where no number is enough (a delta that is too large), or, with
        delta > 0, not even a million.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if it is out of range.

    Source:
        Steinke, Nasr and Jagielski (2023), theorem 5.2, with every guess right.

    Example:
        >>> guesses_needed(8.0, 1000), guesses_needed(1.0, 1000, confidence=0.99)
        (8932, 15)
    """
    claim = real("claim", claim, low=0.0)
    canaries, limit = integer("canaries", whole(canaries), 1, 2**63 - 1), bound_of(bound, "one_run")
    delta, alpha = delta_level(delta), 1.0 - confidence_level(confidence)

    def refutes(guesses: int) -> bool:
        many = max(canaries, guesses)
        if limit is not one_run:
            return limit(guesses, guesses, many, delta=delta, confidence=confidence) > claim
        # One look at the ceiling instead of a search for the limit.
        return _chance_ceiling(guesses, guesses, many, claim, delta) <= alpha

    return fewest_guesses(refutes, 2**20 if delta else 2**52)


def fewest_guesses(refutes: Callable[[int], bool], most: int) -> int | None:
    """Return the fewest guesses that refute, or None where not even `most` do.

    Args:
        refutes: True for a number of guesses that refutes if all of them are right; more of them
            refute too.
        most: the largest number that is tried.
    """
    high = 1
    while not refutes(high):
        if high >= most:
            return None
        high = min(2 * high, most)
    return _bisect_guesses(refutes, high // 2, high)


def _bisect_guesses(refutes: Callable[[int], bool], low: int, high: int) -> int:
    """Return the fewest guesses above `low` that refute; `high` of them do."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if refutes(middle) else (middle, high)
    return high


def guesses_refuting(
    claim: float, guesses: int, canaries: int, delta: float = 0.0, confidence: float = 0.95
) -> int | None:
    """Return the fewest right guesses among `guesses` that refute a claim by `one_run`.

    Args:
        claim: the epsilon that is claimed, at least 0.
        guesses: guesses made, from 1 to `canaries`.
        canaries: canaries of the run.
        delta: the delta of the claim, in [0, 1).
        confidence: probability that the bound holds, strictly between 0 and 1.

    Returns:
        The number, or None where not even all of them are enough.

    Source:
        Steinke, Nasr and Jagielski (2023), theorem 5.2.

    Example:
        >>> guesses_refuting(1.0, 100, 1000), guesses_refuting(8.0, 100, 1000)
        (81, None)
    """
    alpha = 1.0 - confidence_level(confidence)

    def refutes(correct: int) -> bool:
        return _chance_ceiling(guesses, correct, canaries, claim, delta) <= alpha

    return _bisect_guesses(refutes, 0, guesses) if refutes(guesses) else None


def gdp_mu(epsilon: float, delta: float) -> float:
    """Compute the largest mu for which mu-GDP implies (epsilon, delta)-DP.

    It is the inverse of `gdp_epsilon`.

    Args:
        epsilon: at least 0.
        delta: strictly between 0 and 1.

    Returns:
        mu, rounded down.

    Raises:
        TypeError: if an argument is not a number.
        ValueError: if it is out of range.

    Source:
        Dong, Roth and Su (2022), corollary 2.13.

    Example:
        >>> round(gdp_mu(4.377, 1e-5), 3)
        1.0
    """
    from .tradeoff import log_delta

    epsilon = real("epsilon", epsilon, low=0.0)
    target = math.log(confidence_level(delta, "delta"))
    return bisect_largest(lambda mu: log_delta(epsilon, mu) <= target, _MAX_GAUSSIAN_PARAMETER)


@suggest_arguments
def gdp_epsilon(mu: float, delta: float) -> float:
    """Compute the smallest epsilon for which mu-GDP implies (epsilon, delta)-DP, rounded down.

    Args:
        mu: at least 0.
        delta: strictly between 0 and 1.

    Returns:
        Epsilon, at least 0.

    Raises:
        TypeError: if one of them is not a number.
        ValueError: if one of them is out of range.

    Source:
        Balle and Wang (2018), theorem 8; Dong, Roth and Su (2022), corollary 2.13.

    Example:
        >>> round(gdp_epsilon(1.0, 1e-5), 3)
        4.377
    """
    from .tradeoff import log_delta

    mu = real("mu", mu, low=0.0)
    target = math.log(confidence_level(delta, "delta"))
    return bisect_largest(lambda epsilon: log_delta(epsilon, mu) > target, _MAX_GAUSSIAN_PARAMETER)


def _check_counts(canaries: int, guesses: int, correct: int) -> tuple[int, int, int]:
    canaries = integer("canaries", canaries, 1, 2**63 - 1)
    guesses = integer("guesses", guesses, 1, canaries)
    return canaries, guesses, integer("correct", correct, 0, guesses)


def bisect_largest(holds: Callable[[float], bool], most: float = _MAX_EPSILON) -> float:
    """Find the largest point where `holds` is true, within rounding; 0 if false at 0."""
    if not holds(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while high < most and holds(high):
        low, high = high, 2.0 * high
    for _ in range(_BISECTION_STEPS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def gaussian_rate(p: float, true_epsilon: float, delta: float) -> float:
    """Compute the other side's probability of a threshold on Gaussian noise.

    It is `Phi(Phi^-1(p) - mu)`.

    Args:
        p: probability on the numerator's side, in (0, 1].
        true_epsilon: the loss at delta; mu is that of the noise with this loss.
        delta: above 0.

    Returns:
        The probability.

    Source:
        Dong, Roth and Su (2022), section 2.3.

    Example:
        >>> round(gaussian_rate(0.5, 4.377, 1e-5), 3)
        0.159
    """
    from scipy.special import ndtr, ndtri

    return float(ndtr(ndtri(p) - gdp_mu(true_epsilon, delta)))


def guesses_power(
    guesses: int, canaries: int, claim: float, rate: float, delta: float, confidence: float
) -> float:
    """Compute the probability that guesses about canaries of one run refute a claim.

    ``P(W >= v)``, W ~ Binomial(guesses, rate), v the fewest right guesses that refute it.

    Args:
        guesses: guesses made.
        canaries: canaries of the run.
        claim: the claimed epsilon.
        rate: probability that a guess is right, ``e^t/(1 + e^t)`` at a true loss t.
        delta: the delta of the claim.
        confidence: confidence of the audit.

    Returns:
        The probability.

    Source:
        Steinke, Nasr and Jagielski (2023), theorem 5.2.

    Example:
        >>> round(guesses_power(100, 1000, 1.0, 0.9, 0.0, 0.95), 3)
        0.998
    """
    from scipy.special import bdtrc

    least = guesses_refuting(claim, guesses, canaries, delta, confidence)
    return 0.0 if least is None else float(bdtrc(least - 1, guesses, rate))


def guesses_for(
    canaries: Callable[[int], int],
    claim: float,
    rate: float,
    delta: float,
    confidence: float,
    power: float,
    most: int = _MAX_GUESSES,
) -> int | None:
    """Find the fewest guesses that refute a claim with a given probability.

    Args:
        canaries: how many canaries a run of so many guesses has.
        claim: the claimed epsilon.
        rate: probability that a guess is right.
        delta: the delta of the claim.
        confidence: confidence of the audit.
        power: the probability wanted.
        most: guesses that are possible.

    Returns:
        The number, or None where `most` are not enough.

    Example:
        >>> guesses_for(lambda guesses: guesses, 1.0, 0.9, 0.0, 0.95, 0.95)
        55
    """

    def enough(guesses: int) -> bool:
        power_reached = guesses_power(guesses, canaries(guesses), claim, rate, delta, confidence)
        return power_reached >= power

    return fewest_guesses(enough, most)
