"""Lower limits on epsilon from one training run with many canaries.

A canary is a record that a fair coin puts into the training data or leaves out. An attack guesses
these coins from the trained model. The module also computes how many guesses an audit needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from ..errors import confidence_level, delta_level, integer, real, whole
from ..suggestions import explain_argument_errors
from .binomial import Declared, bound_of

_MAX_EPSILON = 1e3
_BISECTION_STEPS = 60
_MAX_GAUSSIAN_PARAMETER = 2.0**1022
"""Largest upper end of a bisection. The sum of this end and its half is still a finite float64."""

_MAX_GUESSES = 2**20


@Declared(title="one training run", rows="one_run")
@explain_argument_errors
def one_run(
    guesses: int, correct: int, canaries: int, delta: float = 0.0, confidence: float = 0.95
) -> float:
    """Compute a certified lower limit on epsilon from guesses about canaries in one training run.

    A canary is a record that a fair coin puts into the training data or leaves out. There are m
    canaries with independent coins. From the output of the run, an attack guesses r of the m coins,
    and v of the guesses are correct. The number r is fixed in advance. For an (epsilon, delta)-DP
    mechanism,

        P(at least v correct) <= P(W >= v) + 2 m delta max over i of P(v > W >= v - i)/i,

    where W ~ Binomial(r, e^epsilon/(1 + e^epsilon)), and i runs from 1 to v. The limit is the
    largest epsilon at which the right side is at most ``1 - confidence``. The limit is valid even
    if the right side is not monotone in epsilon, because a mechanism that is DP for a smaller
    epsilon is also DP for each larger epsilon.

    The proof uses only the randomness of the coins. Therefore one training run is enough. The
    effect of one canary on the output may depend on the other canaries. The attack may use the
    output to choose the canaries for which it guesses. The number of guesses must not depend on the
    output.

    Args:
        guesses: number of guesses r, from 1 to `canaries`, fixed in advance. The attack makes at
            most one guess for each canary.
        correct: number of right guesses v, from 0 to `guesses`.
        canaries: number of canaries m, each included or left out by a fair coin.
        delta: delta of the claim, in [0, 1).
        confidence: probability that the limit holds, strictly between 0 and 1.

    Returns:
        The lower limit on epsilon, finite and at least 0.

    Raises:
        TypeError: if a count is not an integer, or `delta` or `confidence` is not a number.
        ValueError: if an argument is out of range.

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
    """Compute the upper limit on P(at least `correct` right guesses) for the bound `one_run`."""
    from scipy.special import bdtr, bdtrc

    if correct == 0:
        return 1.0
    rate = 1.0 / (1.0 + math.exp(-epsilon))
    chance = float(bdtrc(correct - 1, guesses, rate))
    if delta > 0.0:
        i = np.arange(1, correct + 1)
        # P(v > W >= v - i). P(W < 0) = 0 is set explicitly, because bdtr does not return it.
        below = np.where(i == correct, 0.0, bdtr(np.maximum(correct - i - 1, 0), guesses, rate))
        share = (float(bdtr(correct - 1, guesses, rate)) - below) / i
        chance += 2.0 * canaries * delta * float(share.max())
    return min(chance, 1.0)


@explain_argument_errors
def one_run_mu(guesses: int, correct: int, canaries: int, confidence: float = 0.95) -> float:
    """Compute the largest mu for which guesses about one training run refute Gaussian DP (mu-GDP).

    A canary is a record that a fair coin puts into the training data or leaves out. There are m
    canaries. From the output of the run, an attack guesses c of their coins. The null hypothesis is
    that the mechanism is mu-GDP: its trade-off curve f is nowhere below the curve of N(0, 1)
    against N(mu, 1). Let p_t be the probability of exactly t correct guesses.

    Consider one canary, and this event: the guess for this canary is right, and the total number of
    right guesses is from t to c. If the coin of this canary is flipped, the same guess is wrong,
    and the total is smaller by one. The curve f limits the probabilities of these two events. The
    averages of the probabilities over all canaries satisfy the same limit, because 1 - f is
    concave. Therefore two sums, r_t and h_t, satisfy

        r_t = sum over s >= t of s/m p_s,   h_t = sum over s >= t of (c - s)/m p_s:
        r_t <= 1 - f(h_(t-1)),   so   h_(t-1) >= max(h_t, g(r_t)),   g the inverse of 1 - f,

    and r_(t-1) = r_t + (t - 1)/(c - t + 1) (h_(t-1) - h_t). Suppose P(at least v correct) = tau.
    Start from r_v = tau v/m and h_v = tau (c - v)/m, and use equality in each step. The result is
    the least possible value of r_0 + h_0 (proof below). The true value of r_0 + h_0 is c/m. If the
    least value for tau = 1 - confidence is larger than c/m, then P(at least v correct) is below 1 -
    confidence, and the test rejects mu.

    Proof: take any other sequence r_t, h_t with the same tau. Let D_t and E_t be the differences of
    r_t and h_t between this other sequence and the sequence above. Then D_v = -E_v >= 0. By
    induction, D_t >= max(0, t/(c-t) E_t): either E_t >= 0, or the sequence above has h_t = h_(t+1).
    In the second case E_t >= E_(t+1), and neither D nor D + E decreases from t + 1 to t. Hence
    D_0 + E_0 >= 0. For a larger tau, the sequence starts with D_v, E_v >= 0 in the same proportion,
    and the value of r_0 + h_0 is at least as large.

    Args:
        guesses: number of guesses c, from 1 to `canaries`, fixed in advance.
        correct: number of right guesses v, from 0 to `guesses`.
        canaries: number of canaries m, each included or left out by a fair coin.
        confidence: confidence level of the test, strictly between 0 and 1.

    Returns:
        The largest refuted mu, finite and at least 0. This number is a lower limit on the true mu.

    Raises:
        TypeError: if a count is not an integer, or `confidence` is not a number.
        ValueError: if an argument is out of range.

    Source:
        Mahloujifar, Melis and Chaudhuri (2025), Auditing f-Differential Privacy in One Run, ICML,
        algorithm 3, for guesses between two options (in or out).

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


@explain_argument_errors
def one_run_refutes(
    least_type_one: Callable[[float], float],
    guesses: int,
    correct: int,
    canaries: int,
    confidence: float = 0.95,
) -> bool:
    """Return True if the guesses of an attack on one training run refute a trade-off curve.

    A canary is a record that a fair coin puts into the training data or leaves out. An attack
    guesses these coins from the output of the run. The test uses the recursion that is described in
    `one_run_mu`. For a trade-off curve f, this recursion needs only the inverse function of 1 - f.

    Args:
        least_type_one: the inverse function of 1 - f. This function takes the power of a test (1
            minus the type II error), and returns the least possible type I error. This error is at
            most the power. If the returned type I error is too large, the result of
            `one_run_refutes` is not valid.
        guesses: number of guesses, from 1 to `canaries`, fixed in advance.
        correct: number of right guesses, from 0 to `guesses`.
        canaries: number of canaries, each included or left out by a fair coin.
        confidence: confidence level of the test. A true curve is refuted with probability at most
            1 - confidence.

    Returns:
        True if at least `correct` right guesses have a probability below 1 - confidence, for each
        mechanism that satisfies this curve.

    Raises:
        TypeError: if a count is not an integer, or `confidence` is not a number.
        ValueError: if an argument is out of range.

    Source:
        Mahloujifar, Melis and Chaudhuri (2025), algorithm 3, for guesses between two options.

    Example:
        >>> one_run_refutes(lambda power: power, 100, 90, 1000)
        True
    """
    canaries, guesses, correct = _check_counts(canaries, guesses, correct)
    tau = 1.0 - confidence_level(confidence)
    r, h = tau * correct / canaries, tau * (guesses - correct) / canaries
    # Rounding errors over this many steps must not reject a true curve.
    total = guesses / canaries * (1.0 + 1e-9)
    for t in range(correct - 1, -1, -1):
        if r + h > total or r >= 1.0:
            return True
        needed = least_type_one(r)
        if needed <= h:
            # Neither value changes in later steps.
            return False
        r, h = r + t / (guesses - t) * (needed - h), needed
    return r + h > total


@Declared(title="one training run, whole curve", rows="one_run", deltas="positive", curves="only")
@explain_argument_errors
def one_run_curve(
    guesses: int, correct: int, canaries: int, delta: float, confidence: float = 0.95
) -> float:
    """Compute a lower limit on epsilon at a chosen delta, from guesses in one training run.

    The function returns the result of `one_run`. dpcore calls this function if the claim is a
    trade-off curve. The limit is valid for each mechanism, even if the claimed curve is not the
    trade-off curve of the mechanism. The claimed curve itself is tested by the function
    `one_run_refutes`.

    Args:
        guesses: number of guesses, from 1 to `canaries`, fixed in advance.
        correct: number of right guesses, from 0 to `guesses`.
        canaries: number of canaries (records that a fair coin puts into the training data or leaves
            out).
        delta: delta at which epsilon is limited, strictly between 0 and 1.
        confidence: probability that the limit holds, strictly between 0 and 1.

    Returns:
        The lower limit on epsilon, finite and at least 0.

    Raises:
        TypeError: if a count is not an integer, or `delta` or `confidence` is not a number.
        ValueError: if an argument is out of range.

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
@explain_argument_errors
def one_run_fdp(
    guesses: int, correct: int, canaries: int, delta: float, confidence: float = 0.95
) -> float:
    """Compute a lower limit on epsilon from one training run, for claims that follow from mu-GDP.

    A canary is a record that a fair coin puts into the training data or leaves out. An attack
    guesses these coins from the output of the run. The function ``one_run_mu`` computes the largest
    mu for which the guesses refute mu-GDP. For this mu and the given delta, the result is the
    epsilon that solves delta = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu).

    The result can refute claims of the form "mu-GDP, and therefore (epsilon, delta)-DP", such as
    the claim of the Gaussian mechanism. For these claims, the result is sharper than the limit of
    `one_run`, because the test uses the whole trade-off curve. For other mechanisms, the result is
    *not* a limit on epsilon. The reason is that a mechanism can be (epsilon, delta)-DP without
    being mu-GDP: its trade-off curve can be below the curve of mu-GDP at some points.

    Args:
        guesses: number of guesses, from 1 to `canaries`, fixed in advance.
        correct: number of right guesses, from 0 to `guesses`.
        canaries: number of canaries, each included or left out by a fair coin.
        delta: delta of the claim, strictly between 0 and 1.
        confidence: probability that the limit holds, strictly between 0 and 1.

    Returns:
        The lower limit on the epsilon of such a claim, finite and at least 0.

    Raises:
        TypeError: if a count is not an integer, or `delta` or `confidence` is not a number.
        ValueError: if an argument is out of range.

    Source:
        Mahloujifar, Melis and Chaudhuri (2025); Dong, Roth and Su (2022), corollary 2.13, for the
        conversion.

    Example:
        >>> round(one_run_fdp(100, 90, 1000, delta=1e-5), 3)
        2.456
    """
    delta = confidence_level(delta, "delta")
    return gdp_epsilon(one_run_mu(guesses, correct, canaries, confidence), delta)


@explain_argument_errors
def guesses_needed(
    claim: float,
    canaries: int,
    delta: float = 0.0,
    confidence: float = 0.95,
    bound: Callable[..., float] | Literal["one_run", "one_run_fdp"] = one_run,
) -> int | None:
    """Return the smallest number of guesses that refutes a claim if all guesses are right.

    A canary is a record that a fair coin puts into the training data or leaves out. Each guess
    states whether one canary was in the data. If delta is 0 and the bound is `one_run`, the result
    is the smallest r with (e^epsilon/(1 + e^epsilon))^r <= 1 - confidence. Here epsilon is `claim`.

    Args:
        claim: the claimed epsilon, at least 0.
        canaries: number of canaries of the run. If this number is smaller than the number of
            guesses, the function assumes one canary per guess.
        delta: delta of the claim, in [0, 1).
        confidence: probability that the bound holds, strictly between 0 and 1.
        bound: bound that is used to refute the claim: `one_run` or `one_run_fdp`, or its name.

    Returns:
        The number of guesses. For delta above 0, the result is None if 2**20 guesses are not
        enough, for example because delta is too large. For delta 0, the result is None if 2**52
        guesses are not enough.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if an argument is out of range.

    Source:
        Steinke, Nasr and Jagielski (2023), theorem 5.2, for the case that every guess is right.

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
        # One evaluation of the upper limit replaces a search for the bound.
        return _chance_ceiling(guesses, guesses, many, claim, delta) <= alpha

    return fewest_guesses(refutes, 2**20 if delta else 2**52)


def fewest_guesses(refutes: Callable[[int], bool], most: int) -> int | None:
    """Return the smallest number of right guesses that refutes a claim.

    The result is None if `most` right guesses do not refute the claim.

    Args:
        refutes: function that takes a number of right guesses, and returns True if these guesses
            refute the claim. If the function returns True for a number, it must return True for
            each larger number.
        most: largest number of guesses that is tried.
    """
    high = 1
    while not refutes(high):
        if high >= most:
            return None
        high = min(2 * high, most)
    return _bisect_fewest(refutes, high // 2, high)


def _bisect_fewest(refutes: Callable[[int], bool], low: int, high: int) -> int:
    """Return the fewest guesses above `low` that refute a claim, if `high` guesses refute it."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if refutes(middle) else (middle, high)
    return high


def guesses_refuting(
    claim: float, guesses: int, canaries: int, delta: float = 0.0, confidence: float = 0.95
) -> int | None:
    """Return how many guesses must be right to refute a claim with the bound `one_run`.

    Args:
        claim: the claimed epsilon, at least 0.
        guesses: number of all guesses, right or wrong, from 1 to `canaries`.
        canaries: number of canaries (records that a fair coin puts into the training data or leaves
            out).
        delta: delta of the claim, in [0, 1).
        confidence: probability that the bound holds, strictly between 0 and 1.

    Returns:
        The smallest number of right guesses that refutes the claim. None if the claim is not
        refuted even if all guesses are right.

    Source:
        Steinke, Nasr and Jagielski (2023), theorem 5.2.

    Example:
        >>> guesses_refuting(1.0, 100, 1000), guesses_refuting(8.0, 100, 1000)
        (81, None)
    """
    alpha = 1.0 - confidence_level(confidence)

    def refutes(correct: int) -> bool:
        return _chance_ceiling(guesses, correct, canaries, claim, delta) <= alpha

    return _bisect_fewest(refutes, 0, guesses) if refutes(guesses) else None


def largest_gdp_mu(epsilon: float, delta: float) -> float:
    """Compute the largest mu for which mu-GDP implies (epsilon, delta)-DP.

    For a fixed delta, this function is the inverse of `gdp_epsilon`.

    Args:
        epsilon: a number of at least 0.
        delta: a number strictly between 0 and 1.

    Returns:
        mu, rounded down.

    Raises:
        TypeError: if an argument is not a number.
        ValueError: if an argument is out of range.

    Source:
        Dong, Roth and Su (2022), corollary 2.13.

    Example:
        >>> round(largest_gdp_mu(4.377, 1e-5), 3)
        1.0
    """
    from .tradeoff import log_delta

    epsilon = real("epsilon", epsilon, low=0.0)
    target = math.log(confidence_level(delta, "delta"))
    return bisect_largest(lambda mu: log_delta(epsilon, mu) <= target, _MAX_GAUSSIAN_PARAMETER)


@explain_argument_errors
def gdp_epsilon(mu: float, delta: float) -> float:
    """Compute the smallest epsilon for which mu-GDP implies (epsilon, delta)-DP.

    Args:
        mu: a number of at least 0.
        delta: a number strictly between 0 and 1.

    Returns:
        Epsilon, at least 0, rounded down.

    Raises:
        TypeError: if an argument is not a number.
        ValueError: if an argument is out of range.

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
    """Find the largest number at which a condition holds, by bisection.

    The result is 0 if the condition does not hold at 0.

    Args:
        holds: function that takes a number of at least 0, and returns True if the condition holds.
        most: largest number that is tried, approximately.
    """
    if not holds(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while high < most and holds(high):
        low, high = high, 2.0 * high
    for _ in range(_BISECTION_STEPS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def gaussian_p_on_x_prime(p: float, true_epsilon: float, delta: float) -> float:
    """Compute the probability of an event on x' from its probability p on x, for Gaussian noise.

    The event is that the output is above a threshold. The result is ``Phi(Phi^-1(p) - mu)``. Here
    mu is the largest number for which mu-GDP (Gaussian DP) implies (`true_epsilon`, `delta`)-DP.

    Args:
        p: probability of the event on x, in (0, 1].
        true_epsilon: true privacy loss epsilon of the noise, at `delta`.
        delta: delta for which epsilon is given, above 0.

    Returns:
        The probability of the event on x'.

    Source:
        Dong, Roth and Su (2022), section 2.3.

    Example:
        >>> round(gaussian_p_on_x_prime(0.5, 4.377, 1e-5), 3)
        0.159
    """
    from scipy.special import ndtr, ndtri

    return float(ndtr(ndtri(p) - largest_gdp_mu(true_epsilon, delta)))


def one_run_power(
    guesses: int, canaries: int, claim: float, rate: float, delta: float, confidence: float
) -> float:
    """Compute the probability that an attack on one training run refutes a claimed epsilon.

    A canary is a record that a fair coin puts into the training data or leaves out. The attack
    guesses which canaries were in the data. The result is ``P(W >= v)`` with W ~ Binomial(guesses,
    rate). Here v is the smallest number of right guesses that refutes the claim.

    Args:
        guesses: number of guesses.
        canaries: number of canaries in the run.
        claim: the claimed epsilon.
        rate: probability that a guess is right. If the true epsilon is t and delta is 0, this
            probability is at most ``e^t/(1 + e^t)``.
        delta: delta of the claim.
        confidence: confidence level of the audit.

    Returns:
        The probability that the claim is refuted (the power).

    Source:
        Steinke, Nasr and Jagielski (2023), theorem 5.2.

    Example:
        >>> round(one_run_power(100, 1000, 1.0, 0.9, 0.0, 0.95), 3)
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
    """Find the smallest number of guesses that refutes a claim with a given probability.

    A canary is a record that a fair coin puts into the training data or leaves out. In an audit of
    one training run, an attack guesses whether some of the canaries were in the data.

    Args:
        canaries: function that takes a number of guesses, and returns the number of canaries in the
            run.
        claim: the claimed epsilon.
        rate: probability that a guess is right.
        delta: delta of the claim.
        confidence: confidence level of the audit.
        power: probability with which the guesses must refute the claim.
        most: largest number of guesses that the function tries.

    Returns:
        The number of guesses, or None if `most` guesses are not enough.

    Example:
        >>> guesses_for(lambda guesses: guesses, 1.0, 0.9, 0.0, 0.95, 0.95)
        55
    """

    def enough(guesses: int) -> bool:
        power_reached = one_run_power(guesses, canaries(guesses), claim, rate, delta, confidence)
        return power_reached >= power

    return fewest_guesses(enough, most)
