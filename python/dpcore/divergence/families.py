"""Renyi divergences of scale families, shifts and atoms, without losing digits.

Every function takes orders a in [1/2, inf) with b = a - 1, and is a sum of terms of one sign: near
order 1, at huge orders and for laws that hardly differ nothing is left to cancel. Orders below
1/2 come from the others by skew symmetry, (1 - a) D_a(P||Q) = a D_{1-a}(Q||P) (van Erven and
Harremoes 2014, proposition 2).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt

from .orders import by_part, same_length
from .raw import Reals

__all__ = [
    "Side",
    "compare_laws",
    "correlated_divergence",
    "diagonalise_covariances",
    "discrete_divergence",
    "exp_excess",
    "log_excess",
    "log_ratio",
    "normal_divergence",
    "normal_limit",
    "one_minus_power",
    "power_gap",
    "scale_divergence",
    "shift_divergence",
    "split_atom",
]

_SERIES_LIMIT: Final = 0.5
"""Below this a function that vanishes to second order comes from its series."""
_SERIES_TERMS: Final = 18
_HUGE_RATIO: Final = 1e100
_NEAR_ZERO_GAP: Final = 0.1

Side = tuple[Reals, Reals, float]
"""Of one discrete law against another: ln p, ln(p/q), and what q has where p has nothing."""


def log_excess(x: Reals) -> Reals:
    """Compute x - ln(1 + x), for x > -1.

    With z = x / (2 + x) it is x z - 2 z^3 (1/3 + z^2/5 + ...), as ln(1 + x) = 2 artanh(z).
    """
    small = np.abs(x) < _SERIES_LIMIT
    inner = np.where(small, x, 0.0)
    z = inner / (2.0 + inner)
    series = np.zeros_like(z)
    for i in range(_SERIES_TERMS, 0, -1):
        series = series * (z * z) + 1.0 / (2 * i + 1)
    with np.errstate(divide="ignore"):
        direct = x - np.log1p(np.where(small, 0.0, x))
    return np.where(small, inner * z - 2.0 * z**3 * series, direct)


def exp_excess(x: Reals) -> Reals:
    """Compute (e^x - 1 - x) / x^2 > 0, 1/2 at 0."""
    small = np.abs(x) < _SERIES_LIMIT
    inner = np.where(small, x, 0.0)
    series = np.zeros_like(inner)
    for i in range(_SERIES_TERMS, 1, -1):
        series = (series * inner + 1.0) / i
    outer = np.where(small, 1.0, x)
    return np.where(small, series, (np.expm1(outer) - outer) / outer / outer)


def power_gap(b: Reals, x: Reals, y: Reals, power: int) -> Reals:
    """Compute 1 + b (1 - (x/y)^p), by exact fractions where it nearly vanishes."""
    b, x, y = np.broadcast_arrays(b, x, y)
    found = np.asarray(1.0 + np.where(b == 0.0, 0.0, b * one_minus_power(x, y, power)))
    for i in zip(*np.nonzero(np.abs(found) < _NEAR_ZERO_GAP), strict=True):
        step, top, bottom = (Fraction(float(part[i])) for part in (b, x, y))
        found[i] = float(1 + step * (1 - (top / bottom) ** power))
    return found


def one_minus_power(x: Reals, y: Reals, power: int) -> Reals:
    """Compute 1 - (x/y)^p for p = 1 or 2; take the difference before anything is rounded."""
    first = (y - x) / y
    return first if power == 1 else first * (1.0 + x / y)


def log_ratio(x: Reals, y: Reals) -> Reals:
    """Compute ln(x / y) of positive numbers, also where the ratio leaves the range of float64."""
    ratio = x / y
    near = (ratio > 0.5) & (ratio < 2.0)
    inside = (ratio > 1e-300) & (ratio < 1e300)
    close = np.log1p(np.where(near, (x - y) / y, 0.0))
    plain = np.log(np.where(inside, ratio, 1.0))
    return np.where(near, close, np.where(inside, plain, np.log(x) - np.log(y)))


def scale_divergence(a: Reals, b: Reals, tau: Reals, log_r: Reals, mid: Reals) -> Reals:
    """Compute D_a of a scale family: -ln r - ln(1 + b (1 - r)) / b, r the ratio of the scales.

    Args:
        a: orders, at least 1/2.
        b: a - 1.
        tau: 1 - r.
        log_r: ln r.
        mid: 1 + b tau; the divergence is infinite where it is not above 0.
    """
    ends = mid <= 0.0
    kl = b == 0.0
    mid, step = np.where(ends, 1.0, mid), np.where(kl, 1.0, b)
    inner = np.where(ends | kl, 0.0, b * tau)
    low = mid < _SERIES_LIMIT
    # Scales hardly apart: the tau in -ln r = tau + ... and in ln(1 + b tau)/b cancel on paper.
    close = log_excess(np.where(np.abs(tau) < _SERIES_LIMIT, -tau, 0.0))
    close = close + np.where(kl, 0.0, log_excess(np.where(low, 0.0, inner)) / step)
    # r beyond the range of float64, which only b < 0 has a finite answer for.
    far = np.logaddexp(np.log(a), np.log(np.abs(step)) + log_r)
    logs = np.where(low, np.log(mid), np.log1p(np.where(low, 0.0, inner)))
    logs = np.where(tau < -_HUGE_RATIO, far, logs)
    direct = -log_r - np.where(kl, tau, logs / step)
    return np.where(ends, np.inf, np.where((np.abs(tau) < _SERIES_LIMIT) & ~low, close, direct))


def normal_divergence(
    a: Reals, b: Reals, tau: Reals, log_r: Reals, mid: Reals, pull: Reals
) -> Reals:
    """Compute D_a of normal laws per coordinate; variances are given as to `scale_divergence`.

    `pull` is the distance of the means over sqrt(a s1^2 - b s0^2).
    """
    away = np.where(pull == 0.0, 0.0, 0.5 * a * pull * pull)
    return 0.5 * scale_divergence(a, b, tau, log_r, mid) + np.where(mid > 0.0, away, np.inf)


def normal_limit(tau: Reals, log_r: Reals, pull: Reals) -> float:
    """Compute D of order inf; `pull` is the distance of the means over s1."""
    if ((tau < 0.0) | ((tau == 0.0) & (pull != 0.0))).any():
        return float("inf")
    away = np.where(pull == 0.0, 0.0, pull * pull / np.where(tau > 0.0, tau, 1.0))
    return float(0.5 * (away - log_r).sum())


def diagonalise_covariances(
    spread0: Reals, spread1: Reals, shift: Reals
) -> tuple[Reals, Reals, Reals]:
    """Return 1 - r, ln r and the shift in axes where P1's covariance is 1, P0's diagonal."""
    from scipy.linalg import eigh

    tau, axes = eigh(spread1 - spread0, spread1)
    ratio = np.where(np.abs(tau) < _SERIES_LIMIT, 1.0 - tau, ((spread0 @ axes) * axes).sum(axis=0))
    return tau, np.log(ratio), shift @ axes


def shift_divergence(b: Reals, w: Reals, distance: Reals) -> Reals:
    """Compute a shift's share of D_a of two Laplace laws.

    It is e + ln(1 - b g) / b with g = (1 - e^-we) / w; e is the distance.

    Args:
        b: orders less 1.
        w: (a + b r) / r >= 0, r the ratio of the scales, in units of the second scale.
        distance: the shift e in units of the second scale, at least 0.
    """
    x = np.where(distance == 0.0, 0.0, np.minimum(w * distance, 1e300))
    near = x < _SERIES_LIMIT
    inner, outer = np.where(near, x, 0.0), np.where(near, 1.0, x)
    share = np.where(near, inner * exp_excess(-inner), 1.0 + np.expm1(-outer) / outer)
    g = np.where(near, distance * (1.0 - share), -np.expm1(-outer) / np.where(near, 1.0, w))
    step = np.where(b == 0.0, 1.0, b)
    found = distance * share - np.where(b == 0.0, 0.0, log_excess(-b * g) / step)
    return np.where(np.isinf(distance), np.inf, found)


def discrete_divergence(
    a: float, b: float, log_p: Reals, loss: Reals, missing: float, rest: Reals | None = None
) -> float:
    """Compute D_a of two discrete laws, on the points that P has.

    Args:
        a: the order, at least 1/2, or inf.
        b: a - 1.
        log_p: ln p, finite.
        loss: ln(p / q), inf where q is 0.
        missing: what Q has where P has nothing.
        rest: D_a within each point where it is no atom but a law of its own, else None.
    """
    whole = loss if rest is None else loss + rest
    if np.isinf(a):
        return float(whole.max())
    if b >= 0.0 and np.isinf(whole).any():
        return float("inf")
    with np.errstate(over="ignore", invalid="ignore"):
        terms = _divergence_terms(b, log_p, loss)
        if rest is not None:
            grown = rest if b == 0.0 else np.expm1(b * rest) / b
            terms = terms + np.exp(log_p + b * loss) * grown
        total = float(terms.sum()) + missing
    if b == 0.0:
        return total
    if abs(b * total) < 0.3:
        return float(np.log1p(b * total) / b)
    logs = log_p + b * whole
    top = logs.max()
    if np.isinf(top):
        return float("inf")
    return float((top + np.log(np.exp(logs - top).sum())) / b)


def compare_laws(
    p: Reals, q: Reals, gap: float = 0.0, sums: tuple[float, float] = (1.0, 1.0)
) -> Side:
    """Compare two discrete laws, both to be divided by their sums.

    `gap` is ln of the second sum over the first; the sums themselves are rounded.
    """
    has, seen = p > 0.0, q > 0.0
    loss = np.full(p.size, np.inf)
    both = has & seen
    loss[both] = log_ratio(p[both], q[both]) + gap
    return np.log(p[has] / sums[0]), loss[has], float(q[~has].sum()) / sums[1]


def split_atom(w0: float, w1: float) -> tuple[Side, npt.NDArray[np.bool_]]:
    """Split each law into atom and rest as two points, and mark those that P0 has."""
    p, q = np.array([w0, 1.0 - w0]), np.array([w1, 1.0 - w1])
    log_p, loss, missing = compare_laws(p, q)
    if w0 < 1.0 and w1 < 1.0 and w1 - w0 > -0.5 * q[1]:
        # The complements are rounded, their difference is not.
        loss[-1] = math.log1p((w1 - w0) / q[1])
    return (log_p, loss, missing), p > 0.0


def _divergence_terms(b: float, log_p: Reals, loss: Reals) -> Reals:
    """Compute the terms p ((e^bl - 1)/b + e^-l - 1) >= 0.

    They sum to (sum of p^a q^-b - 1)/b, as p and q sum to 1.
    """
    p = np.exp(log_p)
    near = np.abs(loss) < _SERIES_LIMIT
    inner = np.where(near, loss, 0.0)
    close = p * inner * inner * (b * exp_excess(b * inner) + exp_excess(-inner))
    outer = np.where(near, 0.0, loss)
    if b == 0.0:
        grown = p * outer
    else:
        grown = np.where(
            np.abs(b * outer) < 1.0, p * np.expm1(b * outer), np.exp(log_p + b * outer) - p
        )
        grown = grown / b
    return np.where(near, close, grown + np.exp(log_p - outer) - p)


def correlated_divergence(alphas: Reals, shift: Reals, spread0: Reals, spread1: Reals) -> Reals:
    """Compute the divergence of two normal laws, at least one of them with correlations."""
    dim = same_length(mean0=shift, sigma0=spread0, sigma1=spread1)
    one, other = (s if len(s) == dim else np.eye(dim) * s[0, 0] for s in (spread0, spread1))
    both = one, other
    shift = np.broadcast_to(shift, dim)

    def part(a: Reals, b: Reals, swap: bool) -> Reals:
        tau, log_r, pull = diagonalise_covariances(*(both[::-1] if swap else both), shift)
        mid = 1.0 + b * tau
        return normal_divergence(a, b, tau, log_r, mid, pull / np.sqrt(mid))

    return by_part(alphas, part, lambda: normal_limit(*diagonalise_covariances(*both, shift)))
