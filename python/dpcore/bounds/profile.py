"""The privacy profile of Gaussian noise in logarithms, and its two inverses.

With mu = distance / sigma and s = epsilon / mu - mu / 2, the profile of Balle and Wang (2018),
theorem 8, is

    delta = Phi(-s) - e^epsilon Phi(-s - mu) = phi(s) (R(s) - R(s + mu)),

R(t) = (1 - Phi(t)) / phi(t) being Mills' ratio: e^epsilon phi(s + mu) = phi(s) takes the huge
factor out. What is left to lose is the difference of two close numbers, for small mu, which
becomes the integral of -R' > 0; and the square of s, which comes from exact fractions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Final

import numpy as np

_LOG_ROOT: Final = 0.5 * math.log(2.0 * math.pi)
_MILLS_TAIL_START: Final = 4.0
"""From here on Mills' ratio comes from its continued fraction."""
_FRACTION_TERMS: Final = 120
"""At t = 4 the fraction has converged to 1e-16 after about 60 of them."""
_MAX_INTEGRATED_SHARE: Final = 0.25
"""A difference over less than this share of 1 + abs(s) is integrated: the other way loses it."""

_MAX_TAIL_OFFSET: Final = 1e5
"""Beyond this offset a tail is below exp(-5e9): its order of magnitude is enough for a search."""

_LEGENDRE_NODES, _LEGENDRE_WEIGHTS = (row.tolist() for row in np.polynomial.legendre.leggauss(24))


def _mills_ratio(t: float) -> tuple[float, float]:
    """Compute R(t) and -R'(t) = 1 - t R(t), to a few units in the last place; t > -37."""
    if t < _MILLS_TAIL_START:
        from scipy.special import erfcx

        ratio = math.sqrt(math.pi / 2.0) * float(erfcx(t / math.sqrt(2.0)))
        return ratio, 1.0 - t * ratio
    # R = 1/(t + 1/(t + 2/(t + ...))): its tail K from the 2 on gives -R' = R K, without 1 - t R.
    tail = t
    for k in range(_FRACTION_TERMS, 1, -1):
        tail = t + k / tail
    ratio = 1.0 / (t + 1.0 / tail)
    return ratio, ratio / tail


def _mills_difference(s: float, mu: float) -> float:
    """Compute R(s) - R(s + mu) > 0."""
    if mu > _MAX_INTEGRATED_SHARE * (1.0 + abs(s)):
        return _mills_ratio(s)[0] - _mills_ratio(s + mu)[0]
    half = 0.5 * mu
    inner = zip(_LEGENDRE_NODES, _LEGENDRE_WEIGHTS, strict=True)
    return half * math.fsum(w * _mills_ratio(s + half * (1.0 + node))[1] for node, w in inner)


def _tail_offset(epsilon: float, mu: float) -> float:
    """Compute the offset s = (2 epsilon - mu^2) / (2 mu), rounded once; +-inf beyond float64."""
    width = Fraction(mu)
    exact = (2 * Fraction(epsilon) - width * width) / (2 * width)
    try:
        return float(exact)
    except OverflowError:
        return math.copysign(math.inf, exact)


def log_delta(epsilon: float, mu: float) -> float:
    """Compute the logarithm of delta; mu = distance / sigma is finite and at least 0.

    As a number it is relatively accurate, so that it also tells delta = 1 - 1e-15 from 1.
    """
    if mu == 0.0:
        return -math.inf
    s = _tail_offset(epsilon, mu)
    if abs(s) > _MAX_TAIL_OFFSET:
        return -0.5 * s * s if s > 0.0 else 0.0
    if s < 0.0 and mu > _MAX_INTEGRATED_SHARE * (1.0 - s):
        return math.log1p(-_one_minus_delta(s, mu))
    drop = _mills_difference(s, mu)
    return -math.inf if drop == 0.0 else _log_density(s) + math.log(drop)


def _one_minus_delta(s: float, mu: float) -> float:
    """Compute 1 - delta = Phi(s) + phi(s) R(s + mu), a sum of positive terms."""
    from scipy.special import ndtr

    return float(ndtr(s)) + math.exp(_log_density(s)) * _mills_ratio(s + mu)[0]


def _log_density(s: float) -> float:
    # The square's own rounding would be an error of s^2 / 2^54 in ln delta: exact, then rounded.
    return -float(Fraction(s) ** 2 / 2) - _LOG_ROOT


def mu_of(epsilon: float, delta: float) -> float:
    """Find the mu whose profile passes through (epsilon, delta), to about 1e-13.

    It needs 0 < delta < 1.
    """
    # Two lower bounds: delta <= Phi(-s), where s = z gives half of what is asked at most; and
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
    """Find the epsilon at which the profile of mu passes through delta, 0 if it never does."""
    target = math.log(delta)
    if log_delta(0.0, mu) <= target:
        return 0.0
    # P(loss > epsilon) bounds delta, and the loss is normal with mean mu^2/2 and deviation mu.
    high = mu * (0.5 * mu + math.sqrt(-2.0 * math.log(delta)))
    if math.isinf(high):
        return math.inf
    high *= 1.0 + 1e-9
    return _find_root(lambda epsilon: log_delta(epsilon, mu) - target, 0.0, high)


def _find_root(f: Callable[[float], float], low: float, high: float) -> float:
    from scipy.optimize import brentq

    def finite(t: float) -> float:
        # scipy refuses infinite values, and where delta underflows they are.
        return max(min(f(t), 1e300), -1e300)

    return float(brentq(finite, low, high, xtol=1e-300, rtol=1e-15))
