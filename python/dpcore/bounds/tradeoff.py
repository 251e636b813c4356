"""Limits on delta(epsilon), on mu and on the trade-off curve, from the counts of events.

Let p and q be the probabilities of an event on two neighbouring inputs x and x'. All results follow
from limits p >= p_low and q <= q_high that hold jointly, for one event or for several events fixed
in advance. So you may compute any number of results from these limits, and all results hold
jointly.

The privacy profile of a mechanism is the function delta(epsilon). For Gaussian noise with standard
deviation sigma and inputs at a given L2 distance, the profile has a closed form. With mu = distance
/ sigma and s = epsilon / mu - mu / 2, the profile of Balle and Wang (2018), theorem 8, is

    delta = Phi(-s) - e^epsilon Phi(-s - mu) = phi(s) (R(s) - R(s + mu)),

where R(t) = (1 - Phi(t)) / phi(t) is the Mills ratio. The identity e^epsilon phi(s + mu) = phi(s)
removes the huge factor e^epsilon. Two sources of rounding errors remain. For small mu, the values
R(s) and R(s + mu) are almost equal, so the code computes their difference as the integral of -R',
which is positive. For large s, the code computes the square of s with exact fractions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from ..errors import (
    choice,
    confidence_level,
    delta_level,
    instance,
    integer,
    invalid,
    numeric,
    vector,
)
from ..records import Counts, Floats, Record, frozen_array
from ..suggestions import explain_argument_errors
from .binomial import bound_of, clopper_pearson, limits

_LOG_ROOT: Final = 0.5 * math.log(2.0 * math.pi)
_MILLS_TAIL_START: Final = 4.0
"""From this point on, the code computes the Mills ratio by its continued fraction."""
_FRACTION_TERMS: Final = 120
"""Number of terms of the continued fraction. At t = 4, about 60 terms give an error of 1e-16."""
_MAX_INTEGRATED_SHARE: Final = 0.25
"""The code integrates -R' if mu is at most this share of 1 + abs(s), to avoid cancellation."""

_MAX_TAIL_OFFSET: Final = 1e5
"""Largest offset s with exact tails. Beyond it, delta or 1 - delta is below exp(-5e9)."""

_LEGENDRE_NODES, _LEGENDRE_WEIGHTS = (row.tolist() for row in np.polynomial.legendre.leggauss(24))


Method = Literal["clopper_pearson", "dkw"]
METHODS: Final[tuple[Method, ...]] = get_args(Method)


def _mills_neg_slope(t: float) -> tuple[float, float]:
    """Compute the Mills ratio R(t) and its negative derivative 1 - t R(t), for t > -37."""
    if t < _MILLS_TAIL_START:
        from scipy.special import erfcx

        ratio = math.sqrt(math.pi / 2.0) * float(erfcx(t / math.sqrt(2.0)))
        return ratio, 1.0 - t * ratio
    # R = 1/(t + 1/(t + 2/(t + ...))). Its tail K from the 2 on gives -R' = R K without 1 - t R.
    tail = t
    for k in range(_FRACTION_TERMS, 1, -1):
        tail = t + k / tail
    ratio = 1.0 / (t + 1.0 / tail)
    return ratio, ratio / tail


def _mills_difference(s: float, mu: float) -> float:
    """Compute the difference R(s) - R(s + mu) of two Mills ratios, which is above 0."""
    if mu > _MAX_INTEGRATED_SHARE * (1.0 + abs(s)):
        return _mills_neg_slope(s)[0] - _mills_neg_slope(s + mu)[0]
    half = 0.5 * mu
    inner = zip(_LEGENDRE_NODES, _LEGENDRE_WEIGHTS, strict=True)
    return half * math.fsum(w * _mills_neg_slope(s + half * (1.0 + node))[1] for node, w in inner)


def _privacy_loss_z_score(epsilon: float, mu: float) -> float:
    """Compute s = (2 epsilon - mu^2) / (2 mu) with one rounding; +-inf if it exceeds float64."""
    width = Fraction(mu)
    exact = (2 * Fraction(epsilon) - width * width) / (2 * width)
    try:
        return float(exact)
    except OverflowError:
        return math.copysign(math.inf, exact)


def log_delta(epsilon: float, mu: float) -> float:
    """Compute the logarithm of the smallest delta for which Gaussian noise is (epsilon, delta)-DP.

    The result has a small relative error, also if delta is near 1. For example, delta = 1 - 1e-15
    and delta = 1 give different results.

    Args:
        epsilon: a number of at least 0.
        mu: distance of the two inputs divided by the standard deviation of the noise, finite and at
            least 0.
    """
    if mu == 0.0:
        return -math.inf
    s = _privacy_loss_z_score(epsilon, mu)
    if abs(s) > _MAX_TAIL_OFFSET:
        return -0.5 * s * s if s > 0.0 else 0.0
    if s < 0.0 and mu > _MAX_INTEGRATED_SHARE * (1.0 - s):
        return math.log1p(-_one_minus_delta(s, mu))
    drop = _mills_difference(s, mu)
    return -math.inf if drop == 0.0 else _normal_log_density(s) + math.log(drop)


def _one_minus_delta(s: float, mu: float) -> float:
    """Compute 1 - delta = Phi(s) + phi(s) R(s + mu) without a subtraction."""
    from scipy.special import ndtr

    return float(ndtr(s)) + math.exp(_normal_log_density(s)) * _mills_neg_slope(s + mu)[0]


def _normal_log_density(s: float) -> float:
    # Rounding the square would give an error of s^2 / 2^54 in ln delta, so it is computed exactly.
    return -float(Fraction(s) ** 2 / 2) - _LOG_ROOT


def mu_of(epsilon: float, delta: float) -> float:
    """Compute the mu of Gaussian noise from an epsilon and the smallest delta at this epsilon.

    The parameter mu is the distance of the two inputs, divided by the standard deviation of the
    noise. The relative error is about 1e-13.

    Args:
        epsilon: a number of at least 0.
        delta: a number strictly between 0 and 1.
    """
    # Two lower bounds on mu. delta <= Phi(-s), and s = z gives at most half of the delta. Also,
    # delta <= 2 Phi(mu/2) - 1 <= mu / sqrt(2 pi).
    z = math.sqrt(-2.0 * math.log(delta))
    by_tail = 2.0 * epsilon / (z + math.sqrt(z * z + 2.0 * epsilon)) if epsilon else 0.0
    low = 0.5 * max(by_tail, delta * math.sqrt(2.0 * math.pi), 2.0**-1000)
    target = math.log(delta)
    high = 2.0 * low
    while log_delta(epsilon, high) < target:
        low, high = high, 2.0 * high
    return _find_root(lambda mu: log_delta(epsilon, mu) - target, low, high)


def epsilon_of(mu: float, delta: float) -> float:
    """Find the smallest epsilon for which Gaussian noise is (epsilon, delta)-DP.

    Args:
        mu: distance of the two inputs, divided by the standard deviation of the noise.
        delta: a number strictly between 0 and 1.
    """
    target = math.log(delta)
    if log_delta(0.0, mu) <= target:
        return 0.0
    # P(loss > epsilon) is an upper bound on delta. The loss is N(mu^2/2, mu^2).
    high = mu * (0.5 * mu + math.sqrt(-2.0 * math.log(delta)))
    if math.isinf(high):
        return math.inf
    high *= 1.0 + 1e-9
    return _find_root(lambda epsilon: log_delta(epsilon, mu) - target, 0.0, high)


def _find_root(f: Callable[[float], float], low: float, high: float) -> float:
    from scipy.optimize import brentq

    def finite(t: float) -> float:
        # scipy does not accept infinite values, which occur if delta underflows.
        return max(min(f(t), 1e300), -1e300)

    return float(brentq(finite, low, high, xtol=1e-300, rtol=1e-15))


@explain_argument_errors
def delta_lower(
    counts: Counts, epsilon: npt.ArrayLike, confidence: float = 0.95
) -> npt.NDArray[np.float64]:
    """Compute certified lower limits on delta for several epsilons, all valid at the same time.

    Let p and q be the probabilities of an event on two neighbouring inputs x and x'. The lower
    limit on delta is ``max(0, p_low - e^epsilon q_high)``. Here ``p_low`` is the lower
    Clopper-Pearson limit for p, and ``q_high`` is the upper limit for q. Each of these two limits
    fails with probability at most (1 - confidence)/2. The same two limits are used for each
    epsilon. Therefore, with probability at least `confidence`, the limits on delta for all epsilons
    are true.

    Args:
        counts: the event happened in k of the n draws on x, and in k' of the n' draws on x'.
        epsilon: array of epsilons of any shape, at least 0.
        confidence: probability that all limits on delta hold, strictly between 0 and 1.

    Returns:
        An array of the shape of `epsilon`: one lower limit on delta, in [0, 1), for each epsilon.

    Raises:
        TypeError: if `counts` is not a `Counts`, or another argument does not contain numbers.
        ValueError: if an epsilon is negative or not a number, or `confidence` is out of range.

    Source:
        Kairouz, Oh and Viswanath (2015), theorem 2.4, for the inequality between p and q; Clopper
        and Pearson (1934).

    Example:
        >>> delta_lower(Counts(900, 1000, 100, 1000), [0.0, 1.0, 3.0]).round(3).tolist()
        [0.759, 0.553, 0.0]
    """
    p_low, q_high = _joint_p_low_q_high(counts, confidence)
    order = check_array_range("epsilon", epsilon, 0.0, math.inf)
    # In logarithms, because e^epsilon may overflow for epsilons at which the limit is 0.
    scaled = np.exp(np.minimum(order + math.log(q_high), 1.0))
    return np.maximum(0.0, p_low - scaled)


@explain_argument_errors
def epsilon_lower_at(
    counts: Counts,
    delta: npt.ArrayLike,
    confidence: float = 0.95,
    bound: Callable[[Counts, float, float], float] | str = clopper_pearson,
) -> npt.NDArray[np.float64]:
    """Compute a certified lower limit on epsilon for each of several deltas.

    With the bound `clopper_pearson`, the limits for all deltas are true with probability at least
    `confidence`. The reason is that all these limits are computed from the same two limits on the
    probabilities of the event. With a different bound, each single limit is true with probability
    at least `confidence`, but the probability that all limits are true may be smaller.

    Args:
        counts: the event happened in k of the n draws on x, and in k' of the n' draws on x'.
        delta: array of deltas of any shape, in [0, 1).
        confidence: probability that the limit for one delta holds, strictly between 0 and 1.
        bound: function ``(counts, delta, confidence) -> epsilon_lower``, or the name of a bound.

    Returns:
        An array of the shape of `delta`: one lower limit on epsilon for each delta.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if a value is out of range.

    Source:
        Lokna et al. (2023), section 4: the same two Clopper-Pearson limits are valid for every
        delta.

    Example:
        >>> epsilon_lower_at(Counts(900, 1000, 100, 1000), [0.0, 0.1]).round(3).tolist()
        [1.99, 1.869]
    """
    levels = check_array_range("delta", delta, 0.0, 1.0)
    if (levels >= 1.0).any():
        raise invalid("delta", "below 1 in every entry", delta)
    limit = bound_of(bound)
    epsilons = [limit(counts, float(level), confidence) for level in levels.ravel()]
    return np.array(epsilons, dtype=np.float64).reshape(levels.shape)


@explain_argument_errors
def mu_lower(counts: Counts, confidence: float = 0.95) -> float:
    """Compute a certified lower limit on the parameter mu of Gaussian DP (mu-GDP).

    The limit is ``max(0, Phi^-1(p_low) - Phi^-1(q_high))``. Here ``p_low`` is the Clopper-Pearson
    lower limit for P(event | x), and ``q_high`` is the upper limit for P(event | x'). The formula
    follows from the definition of mu-GDP. If a test between x and x' has type I error a, its type
    II error is at least Phi(Phi^-1(1 - a) - mu).

    Args:
        counts: the event happened in k of the n draws on x, and in k' of the n' draws on x'.
        confidence: probability that the limit holds, strictly between 0 and 1.

    Returns:
        The lower limit, finite and at least 0. If the mechanism is mu-GDP, mu is at least this
        limit.

    Raises:
        TypeError: if `counts` is not a `Counts`, or `confidence` is not a number.
        ValueError: if `confidence` is out of range.

    Source:
        Dong, Roth and Su (2022), JRSS B 84, definition 2.6.

    Example:
        >>> round(mu_lower(Counts(900, 1000, 100, 1000)), 3)
        2.347
    """
    return _mu_of_rates(*_joint_p_low_q_high(counts, confidence))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Band(Record, word="Band"):
    """Upper limits on the trade-off curve of a mechanism at several points, all valid at once.

    A test reads an output and decides between "the input was x'" and "the input was x". The type I
    error is the probability of deciding for x if the input is x'. The type II error is the
    probability of deciding for x' if the input is x. The value f(a) of the trade-off curve f is the
    smallest type II error of a test with type I error a.

    If the draws show that a test has type I error at most a and type II error at most b, then
    ``f(a) <= b``. The band consists of points (a, b) of this kind. All these points lie on or above
    f. Therefore the band is an *upper* limit on f: the mechanism cannot give more privacy than the
    band shows. A lower limit on f would be a guarantee of privacy. A black-box audit cannot give a
    lower limit on f, because a test that was not tried may have smaller errors.

    Attributes:
        type_one: upper limits on the type I errors of several tests. Each test compares a score of
            the output with one threshold.
        type_two: upper limits on the type II errors of the same tests, in the same order.
        confidence: probability that all points lie on or above f.
        method: how the limits were computed: "clopper_pearson" (an exact limit for each threshold)
            or "dkw" (the same margin for all thresholds).
    """

    type_one: npt.NDArray[np.float64]
    type_two: npt.NDArray[np.float64]
    confidence: float
    method: str

    def __post_init__(self) -> None:
        """Check the arrays and make them read-only."""
        type_one, two = vector("type_one", self.type_one), vector("type_two", self.type_two)
        if type_one.shape != two.shape:
            raise invalid("type_two", f"of shape {type_one.shape} like type_one", two.shape)
        for name, errors in (("type_one", type_one), ("type_two", two)):
            if ((errors < 0.0) | (errors > 1.0)).any():
                raise invalid(name, "from 0 to 1 in every entry", errors)
            object.__setattr__(self, name, frozen_array(errors))
        confidence_level(self.confidence)
        choice("method", self.method, METHODS)

    def at(self, type_one: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return upper limits on the trade-off curve f at given type I errors.

        Here f(a) is the smallest type II error of a test between x and x' with type I error a.

        Args:
            type_one: array of type I errors a of any shape, from 0 to 1.

        Returns:
            An array of the shape of `type_one`: one upper limit on f(a) for each a. The limit is
            the smallest type II error among the points of this band with a type I error of at most
            a. The limit is also at most 1 - a, because f(a) <= 1 - a for each mechanism.

        Raises:
            TypeError: if the type I errors are not numbers.
            ValueError: if a type I error is not from 0 to 1.
        """
        errors = check_array_range("type_one", type_one, 0.0, 1.0)
        order = np.argsort(self.type_one, kind="stable")
        least = np.concatenate(([1.0], np.minimum.accumulate(self.type_two[order])))
        reached = np.searchsorted(self.type_one[order], errors, side="right")
        return np.minimum(least[reached], 1.0 - errors)

    def delta(self, epsilon: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Compute certified lower limits on delta for several epsilons, all valid at the same time.

        The smallest possible delta at an epsilon is ``max over a of 1 - f(a) - e^epsilon a``. Here
        f is the trade-off curve. The method takes the maximum over the points (a, b) of this band,
        with b in place of f(a).

        Args:
            epsilon: array of epsilons of any shape, at least 0.

        Returns:
            An array of the shape of `epsilon`: one lower limit on delta, in [0, 1], for each
            epsilon.

        Raises:
            TypeError: if the epsilons are not numbers.
            ValueError: if an epsilon is negative or NaN.
        """
        order = check_array_range("epsilon", epsilon, 0.0, math.inf)
        with np.errstate(divide="ignore"):
            scaled = np.exp(np.minimum(order[..., np.newaxis] + np.log(self.type_one), 1.0))
        deltas: Floats = np.maximum((1.0 - self.type_two - scaled).max(axis=-1), 0.0)
        return deltas

    def epsilon(self, delta: float) -> float:
        """Compute a certified lower limit on epsilon for a given delta.

        With probability `confidence`, the limits for several deltas are all true.

        Args:
            delta: delta for which epsilon is limited, in [0, 1).

        Returns:
            The lower limit on epsilon, at least 0. The limit is infinite only if a point of this
            band has type I error 0.

        Raises:
            TypeError: if `delta` is not a number.
            ValueError: if `delta` is out of range.
        """
        margin = 1.0 - self.type_two - delta_level(delta)
        pairs = zip(margin.tolist(), self.type_one.tolist(), strict=True)
        epsilons = [math.log(m / q) if q > 0.0 else math.inf for m, q in pairs if m > 0.0]
        return max([0.0, *epsilons])

    @property
    def mu(self) -> float:
        """Certified lower limit on the parameter mu, if the mechanism is mu-GDP (Gaussian DP)."""
        pairs = zip((1.0 - self.type_two).tolist(), self.type_one.tolist(), strict=True)
        return max(_mu_of_rates(p_low, q_high) for p_low, q_high in pairs)


@explain_argument_errors
def tradeoff_band(
    k: npt.ArrayLike,
    n: int,
    k_prime: npt.ArrayLike,
    n_prime: int,
    confidence: float = 0.95,
    method: Method = "clopper_pearson",
) -> Band:
    """Compute upper limits on the trade-off curve of a mechanism, from counts of output scores.

    The score is one number per output. Each threshold on the score gives a test: if the score is
    above the threshold, the test decides that the input was x; otherwise it decides that the input
    was x'. The type I error of the test is ``q = P(score above threshold | x')``, with the upper
    limit q_high. The type II error is 1 - p. Here ``p = P(score above threshold | x)``, with the
    lower limit p_low. The trade-off curve f maps a type I error to the smallest type II error of
    any test. The curve f decreases. Therefore the point (q_high, 1 - p_low) lies on or above f.

    The probability that at least one limit on x fails is at most (1 - confidence)/2. The same is
    true for the limits on x'. The method "clopper_pearson" divides the probability (1 -
    confidence)/2 equally among the m thresholds. Each limit then fails with probability at most
    ``(1 - confidence)/(2m)``. The method "dkw" uses the Dvoretzky-Kiefer-Wolfowitz margin
    ``sqrt(ln(2/(1 - confidence))/(2n))`` for all thresholds.

    If you use "clopper_pearson", fix the thresholds before the counted draws. The limits are not
    valid for other thresholds, or if the counted draws are used to choose some of the thresholds.
    If you use "dkw", the limits are valid for all thresholds.

    Args:
        k: number of draws on x with a score above each threshold, for thresholds in increasing
            order.
        n: number of draws on x.
        k_prime: number of draws on x' with a score above each threshold, in the same order.
        n_prime: number of draws on x'.
        confidence: probability that all points lie on or above f, strictly between 0 and 1.
        method: "clopper_pearson" (an exact limit for each threshold) or "dkw" (the same margin for
            all thresholds).

    Returns:
        A `Band` with the points (q_high, 1 - p_low), one for each threshold.

    Raises:
        TypeError: if the counts are not integers, or another argument has the wrong type.
        ValueError: if a count is not from 0 to the number of draws, or if another value is out of
            range. The error is also raised if `k` or `k_prime` increases from one threshold to the
            next, or if their shapes differ.

    Source:
        Dong, Roth and Su (2022), definition 2.1; Massart (1990), Annals of Probability 18, for the
        one-sided constant of "dkw".

    Example:
        >>> band = tradeoff_band([900, 500, 90], 1000, [500, 100, 2], 1000)
        >>> band.at([0.2, 0.6]).round(3).tolist()
        [0.538, 0.125]
        >>> round(band.epsilon(0.0), 3), round(band.mu, 3)
        (2.09, 1.055)
    """
    alpha = 1.0 - confidence_level(confidence)
    choice("method", method, METHODS)
    n, n_prime = integer("n", n, 1), integer("n_prime", n_prime, 1)
    hits = _check_falling_counts("k", k, n)
    hits_prime = _check_falling_counts("k_prime", k_prime, n_prime)
    if hits.shape != hits_prime.shape:
        raise invalid("k_prime", f"of shape {hits.shape} like k", hits_prime.shape)
    if method == "dkw":
        margin, margin_prime = (math.sqrt(math.log(2.0 / alpha) / (2.0 * m)) for m in (n, n_prime))
        p_low = np.maximum(hits / n - margin, 0.0)
        q_high = np.minimum(hits_prime / n_prime + margin_prime, 1.0)
    else:
        each = alpha / (2.0 * hits.size)
        p_low = np.array([limits(h, n, each)[0] for h in hits.tolist()])
        q_high = np.array([limits(h, n_prime, each)[1] for h in hits_prime.tolist()])
    return Band(q_high, 1.0 - p_low, confidence, method)


def _joint_p_low_q_high(counts: Any, confidence: float) -> tuple[float, float]:
    counts = instance("counts", counts, Counts)
    alpha = (1.0 - confidence_level(confidence)) / 2.0
    p_low = limits(counts.k, counts.n, alpha)[0]
    return p_low, limits(counts.k_prime, counts.n_prime, alpha)[1]


def _mu_of_rates(p_low: float, q_high: float) -> float:
    from scipy.special import ndtri

    # If p_low <= q_high, mu = 0 is allowed. q_high = 0 would give an infinite mu.
    return float(ndtri(p_low)) - float(ndtri(q_high)) if p_low > q_high else 0.0


def check_array_range(name: str, value: Any, low: float, high: float) -> Floats:
    """Check that all entries of an array are within a range, and return the array as float64.

    Args:
        name: name of the array, for error messages.
        value: the array.
        low: smallest allowed entry.
        high: largest allowed entry.

    Raises:
        TypeError: if the entries are not numbers.
        ValueError: if an entry is out of range.
    """
    array = numeric(name, "numbers", value, "uif").astype(np.float64)
    if not ((array >= low) & (array <= high)).all():
        raise invalid(name, f"from {low:g} to {high:g} in every entry", value)
    return array


def _check_falling_counts(name: str, value: Any, maximum: int) -> npt.NDArray[np.int64]:
    array = numeric(name, "a vector of integers", value, "ui")
    if array.ndim != 1 or array.size == 0:
        raise invalid(name, "a non-empty vector", value)
    counts = array.astype(np.int64)
    if (counts < 0).any() or (counts > maximum).any() or (np.diff(counts) > 0).any():
        raise invalid(name, f"from 0 to {maximum} and falling with the threshold", value)
    return counts
