"""Closed-form Renyi divergences of probability laws, laws with an atom, and mechanisms.

Every function takes orders of any shape and returns D_alpha(P0||P1) in nats in the same shape. At
order 1 this is the Kullback-Leibler divergence, and at order inf the logarithm of the largest ratio
of densities. The result is inf if the divergence is infinite or beyond the range of float64.
Relative errors are below 1e-12, also for orders near 1, for huge orders, and for laws that are
nearly equal. Orders from 1/2 on are computed as sums of terms of one sign, so no terms cancel.
Orders below 1/2 are computed from the others by skew symmetry,
(1 - a) D_a(P||Q) = a D_{1-a}(Q||P) (van Erven and Harremoes 2014, proposition 2).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import integer, invalid, numeric, real, vector
from ..mechanisms import LARGEST, positive
from ..records import Floats

__all__ = [
    "discrete_renyi", "exponential_renyi", "gaussian_mechanism", "gaussian_renyi",
    "laplace_mechanism", "laplace_renyi", "mixture_with_atom", "randomised_response",
]  # fmt: skip


_SUM_TOLERANCE: Final = 1e-9

_SERIES_LIMIT: Final = 0.5
"""Below this argument, a function that vanishes to second order is computed from its series."""
_SERIES_TERMS: Final = 18
_HUGE_RATIO: Final = 1e100
_NEAR_ZERO_GAP: Final = 0.1

Side = tuple[Floats, Floats, float]
"""Comparison of a discrete law P with another law Q: ln p, ln(p/q), and Q's mass where p is 0."""


def read_orders(alphas: Any) -> Floats:
    """Read orders above 0, inf included, in any shape."""
    requirement = "an array of orders above 0"
    orders = numeric("alphas", requirement, alphas, "uif").astype(np.float64)
    # A NaN is not above 0 either.
    if not (orders > 0.0).all():
        raise invalid("alphas", requirement, alphas)
    return orders


def by_part(
    alphas: Floats, part: Callable[[Floats, Floats, bool], Floats], limit: Callable[[], float]
) -> Floats:
    """Compute D_alpha as a sum over coordinates.

    Args:
        alphas: checked orders.
        part: function (a, b, swap) that returns the divergence of each coordinate, for orders
            a >= 1/2 of shape (n, 1) and b = a - 1. If `swap` is True, it returns D(P1||P0).
        limit: function that returns the divergence of order inf.
    """
    flat = alphas.ravel()
    divergences = np.empty_like(flat)
    low, high = flat < 0.5, (flat >= 0.5) & np.isfinite(flat)
    with np.errstate(all="ignore"):
        if low.any():
            a = flat[low, None]
            divergences[low] = (a[:, 0] / (1.0 - a[:, 0])) * part(1.0 - a, -a, True).sum(axis=1)
        if high.any():
            a = flat[high, None]
            divergences[high] = part(a, a - 1.0, False).sum(axis=1)
        if np.isinf(flat).any():
            divergences[np.isinf(flat)] = limit()
    return divergences.reshape(alphas.shape)


def by_order(alphas: Floats, value: Callable[[int, float, float, bool], float]) -> Floats:
    """Compute D_alpha for each order.

    `value` takes (index of the order, a, b, swap). a, b and swap are as in `by_part`; a may be inf.
    """
    divergences = [
        a / (1.0 - a) * value(i, 1.0 - a, -a, True) if a < 0.5 else value(i, a, a - 1.0, False)
        for i, a in enumerate(alphas.ravel().tolist())
    ]
    return np.array(divergences, dtype=np.float64).reshape(alphas.shape)


def read_coordinates(name: str, value: Any) -> Floats:
    """Read a finite number or a vector of finite numbers; return a vector."""
    ndim = numeric(name, "a number or a vector of finite numbers", value).ndim
    return vector(name, [value] if ndim == 0 else value)


def read_deviations(name: str, value: Any) -> Floats:
    """Read a positive number or a vector of positive numbers; return a vector."""
    deviations = read_coordinates(name, value)
    if not ((deviations > 0.0) & (deviations <= LARGEST)).all():
        raise invalid(name, f"above 0 and at most {LARGEST:g} in every entry", value)
    return deviations


def same_length(**parts: npt.NDArray[Any]) -> int:
    """Return the common number of coordinates; a vector may also have one entry for all."""
    most = max(map(len, parts.values()))
    for name, part in parts.items():
        if len(part) not in (1, most):
            raise invalid(name, f"a number or of length {most}, as another argument is", len(part))
    return most


def read_probabilities(name: str, value: Any) -> Floats:
    """Read a vector of probabilities that sum to 1 within 1e-9; return it unchanged."""
    probabilities = vector(name, value)
    if (probabilities < 0.0).any() or abs(math.fsum(probabilities.tolist()) - 1.0) > _SUM_TOLERANCE:
        raise invalid(name, "probabilities that sum to 1 within 1e-9", value)
    return probabilities


def read_covariance(name: str, value: Any) -> Floats:
    """Read the covariance of `gaussian_renyi`; a number is the deviation of every entry."""
    if np.ndim(value) != 2:
        return np.diag(read_deviations(name, value) ** 2)
    requirement = "a symmetric positive definite matrix"
    covariance = numeric(name, requirement, value, "uif").astype(np.float64)
    square = covariance.shape[0] == covariance.shape[1] and covariance.size > 0
    if not (square and np.isfinite(covariance).all() and (covariance == covariance.T).all()):
        raise invalid(name, requirement, value)
    try:
        np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        raise invalid(name, requirement, value) from None
    return covariance


def extrapolate_orders(rest: Any, alphas: Floats) -> Floats:
    """Return the divergences of the rests (the laws without their atom), one for each order."""
    requirement = "a number, an array in the shape of alphas or a function of them, at least 0"
    limits = numeric("rest", requirement, rest(alphas) if callable(rest) else rest, "uif")
    # A NaN is not at least 0 either.
    if limits.shape not in ((), alphas.shape) or not (limits >= 0.0).all():
        raise invalid("rest", requirement, rest)
    return np.broadcast_to(limits.astype(np.float64), alphas.shape)


def log_excess(x: Floats) -> Floats:
    """Compute x - ln(1 + x), for x > -1.

    With z = x / (2 + x) it is x z - 2 z^3 (1/3 + z^2/5 + ...), because ln(1 + x) = 2 artanh(z).
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


def exp_excess(x: Floats) -> Floats:
    """Compute (e^x - 1 - x) / x^2, which is above 0 and equals 1/2 at x = 0."""
    small = np.abs(x) < _SERIES_LIMIT
    inner = np.where(small, x, 0.0)
    series = np.zeros_like(inner)
    for i in range(_SERIES_TERMS, 1, -1):
        series = (series * inner + 1.0) / i
    outer = np.where(small, 1.0, x)
    return np.where(small, series, (np.expm1(outer) - outer) / outer / outer)


def power_gap(b: Floats, x: Floats, y: Floats, power: int) -> Floats:
    """Compute 1 + b (1 - (x/y)^p); use exact fractions if the result is nearly 0."""
    b, x, y = np.broadcast_arrays(b, x, y)
    gap = np.asarray(1.0 + np.where(b == 0.0, 0.0, b * one_minus_power(x, y, power)))
    for i in zip(*np.nonzero(np.abs(gap) < _NEAR_ZERO_GAP), strict=True):
        step, top, bottom = (Fraction(float(part[i])) for part in (b, x, y))
        gap[i] = float(1 + step * (1 - (top / bottom) ** power))
    return gap


def one_minus_power(x: Floats, y: Floats, power: int) -> Floats:
    """Compute 1 - (x/y)^p for p = 1 or 2; subtract before any rounding."""
    first = (y - x) / y
    return first if power == 1 else first * (1.0 + x / y)


def log_ratio(x: Floats, y: Floats) -> Floats:
    """Compute ln(x / y) of positive numbers, even if x / y is outside the range of float64."""
    ratio = x / y
    near = (ratio > 0.5) & (ratio < 2.0)
    inside = (ratio > 1e-300) & (ratio < 1e300)
    close = np.log1p(np.where(near, (x - y) / y, 0.0))
    plain = np.log(np.where(inside, ratio, 1.0))
    return np.where(near, close, np.where(inside, plain, np.log(x) - np.log(y)))


def scale_divergence(a: Floats, b: Floats, tau: Floats, log_r: Floats, mid: Floats) -> Floats:
    """Compute D_a of a scale family: -ln r - ln(1 + b (1 - r)) / b, with r the ratio of the scales.

    Args:
        a: orders, at least 1/2.
        b: a - 1.
        tau: 1 - r.
        log_r: ln r.
        mid: 1 + b tau. The divergence is infinite if it is 0 or below.
    """
    ends = mid <= 0.0
    kl = b == 0.0
    mid, step = np.where(ends, 1.0, mid), np.where(kl, 1.0, b)
    inner = np.where(ends | kl, 0.0, b * tau)
    low = mid < _SERIES_LIMIT
    # The scales are nearly equal: the tau of -ln r = tau + ... cancels that of ln(1 + b tau)/b.
    close = log_excess(np.where(np.abs(tau) < _SERIES_LIMIT, -tau, 0.0))
    close = close + np.where(kl, 0.0, log_excess(np.where(low, 0.0, inner)) / step)
    # r is outside the range of float64; only b < 0 then has a finite divergence.
    far = np.logaddexp(np.log(a), np.log(np.abs(step)) + log_r)
    logs = np.where(low, np.log(mid), np.log1p(np.where(low, 0.0, inner)))
    logs = np.where(tau < -_HUGE_RATIO, far, logs)
    direct = -log_r - np.where(kl, tau, logs / step)
    return np.where(ends, np.inf, np.where((np.abs(tau) < _SERIES_LIMIT) & ~low, close, direct))


def normal_divergence(
    a: Floats, b: Floats, tau: Floats, log_r: Floats, mid: Floats, pull: Floats
) -> Floats:
    """Compute D_a of normal laws for each coordinate.

    The variances are given as the scales are in `scale_divergence`. `pull` is the distance of the
    means divided by sqrt(a s1^2 - b s0^2).
    """
    away = np.where(pull == 0.0, 0.0, 0.5 * a * pull * pull)
    return 0.5 * scale_divergence(a, b, tau, log_r, mid) + np.where(mid > 0.0, away, np.inf)


def normal_limit(tau: Floats, log_r: Floats, pull: Floats) -> float:
    """Compute the divergence of order inf of normal laws.

    `pull` is the distance of the means divided by s1; the other arguments are as in
    `normal_divergence`.
    """
    if ((tau < 0.0) | ((tau == 0.0) & (pull != 0.0))).any():
        return float("inf")
    away = np.where(pull == 0.0, 0.0, pull * pull / np.where(tau > 0.0, tau, 1.0))
    return float(0.5 * (away - log_r).sum())


def diagonalise_covariances(
    spread0: Floats, spread1: Floats, shift: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return 1 - r, ln r and the shift in axes where P1's covariance is 1 and P0's is diagonal.

    r is the ratio of the variances of P0 and P1 along each axis.
    """
    from scipy.linalg import eigh

    tau, axes = eigh(spread1 - spread0, spread1)
    ratio = np.where(np.abs(tau) < _SERIES_LIMIT, 1.0 - tau, ((spread0 @ axes) * axes).sum(axis=0))
    return tau, np.log(ratio), shift @ axes


def shift_divergence(b: Floats, w: Floats, distance: Floats) -> Floats:
    """Compute the contribution of the shift to D_a of two Laplace laws.

    It is e + ln(1 - b g) / b with g = (1 - e^-we) / w and e the distance.

    Args:
        b: orders minus 1.
        w: (a + b r) / r >= 0, with r the ratio of the scales, in units of the second scale.
        distance: the shift e in units of the second scale, at least 0.
    """
    x = np.where(distance == 0.0, 0.0, np.minimum(w * distance, 1e300))
    near = x < _SERIES_LIMIT
    inner, outer = np.where(near, x, 0.0), np.where(near, 1.0, x)
    share = np.where(near, inner * exp_excess(-inner), 1.0 + np.expm1(-outer) / outer)
    g = np.where(near, distance * (1.0 - share), -np.expm1(-outer) / np.where(near, 1.0, w))
    step = np.where(b == 0.0, 1.0, b)
    divergence = distance * share - np.where(b == 0.0, 0.0, log_excess(-b * g) / step)
    return np.where(np.isinf(distance), np.inf, divergence)


def discrete_divergence(
    a: float, b: float, log_p: Floats, loss: Floats, missing: float, rest: Floats | None = None
) -> float:
    """Compute D_a of two discrete laws P and Q, summed over the points where P has mass.

    Args:
        a: order, at least 1/2, or inf.
        b: a - 1.
        log_p: ln p, finite.
        loss: ln(p / q), inf if q is 0.
        missing: mass of Q at points where P has no mass.
        rest: D_a inside each point, if points stand for laws that are not atoms. Otherwise None.
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
    p: Floats, q: Floats, gap: float = 0.0, sums: tuple[float, float] = (1.0, 1.0)
) -> Side:
    """Compare two discrete laws after division of each law by its sum.

    `gap` is ln of the second sum divided by the first. It is exact, but the sums are rounded.
    """
    has, is_possible = p > 0.0, q > 0.0
    loss = np.full(p.size, np.inf)
    both = has & is_possible
    loss[both] = log_ratio(p[both], q[both]) + gap
    return np.log(p[has] / sums[0]), loss[has], float(q[~has].sum()) / sums[1]


def split_atom(w0: float, w1: float) -> tuple[Side, npt.NDArray[np.bool_]]:
    """Split each law into two points, atom and rest; mark the points where P0 has mass."""
    p, q = np.array([w0, 1.0 - w0]), np.array([w1, 1.0 - w1])
    log_p, loss, missing = compare_laws(p, q)
    if w0 < 1.0 and w1 < 1.0 and w1 - w0 > -0.5 * q[1]:
        # The complements are rounded; their difference is not.
        loss[-1] = math.log1p((w1 - w0) / q[1])
    return (log_p, loss, missing), p > 0.0


def _divergence_terms(b: float, log_p: Floats, loss: Floats) -> Floats:
    """Compute the terms p ((e^bl - 1)/b + e^-l - 1) >= 0.

    They sum to (sum of p^a q^-b - 1)/b, because p and q each sum to 1.
    """
    p = np.exp(log_p)
    near = np.abs(loss) < _SERIES_LIMIT
    inner = np.where(near, loss, 0.0)
    close = p * inner * inner * (b * exp_excess(b * inner) + exp_excess(-inner))
    outer = np.where(near, 0.0, loss)
    if b == 0.0:
        grown = p * outer
    else:
        power = b * outer
        grown = np.where(np.abs(power) < 1.0, p * np.expm1(power), np.exp(log_p + power) - p) / b
    return np.where(near, close, grown + np.exp(log_p - outer) - p)


def correlated_divergence(
    alphas: Floats, shift: Floats, spread0: Floats, spread1: Floats
) -> Floats:
    """Compute the divergence of two normal laws, at least one of which has correlations."""
    dim = same_length(mean0=shift, sigma0=spread0, sigma1=spread1)
    spread, other = (s if len(s) == dim else np.eye(dim) * s[0, 0] for s in (spread0, spread1))
    both = spread, other
    shift = np.broadcast_to(shift, dim)

    def part(a: Floats, b: Floats, swap: bool) -> Floats:
        tau, log_r, pull = diagonalise_covariances(*(both[::-1] if swap else both), shift)
        mid = 1.0 + b * tau
        return normal_divergence(a, b, tau, log_r, mid, pull / np.sqrt(mid))

    return by_part(alphas, part, lambda: normal_limit(*diagonalise_covariances(*both, shift)))


def gaussian_renyi(
    alphas: npt.ArrayLike,
    mean0: npt.ArrayLike,
    sigma0: npt.ArrayLike,
    mean1: npt.ArrayLike,
    sigma1: npt.ArrayLike,
) -> Floats:
    """Compute D_alpha of two normal laws.

    In every coordinate it is
    ``ln(s1/s0) + ln(s1^2/s^2) / (2 (alpha - 1)) + alpha (m0 - m1)^2 / (2 s^2)``
    with ``s^2 = alpha s1^2 - (alpha - 1) s0^2``, and inf if s^2 <= 0. D_alpha is the sum over
    coordinates.

    Args:
        alphas: orders above 0, or inf; any shape.
        mean0: mean of P0, as one number for every coordinate or as a vector.
        sigma0: standard deviation of P0, as one number, as a vector with one entry for each
            coordinate, or as a matrix. A matrix is read as the covariance, in squared units.
        mean1: mean of P1.
        sigma1: standard deviation or covariance matrix of P1.

    Returns:
        Divergences in nats, in the shape of `alphas`. With a matrix, the condition number of the
        matrix limits the accuracy.

    Raises:
        TypeError: if an argument does not hold real numbers.
        ValueError: if an order is not above 0, a deviation not in (0, 1e300], a matrix not
            symmetric and positive definite, or lengths differ.

    Source:
        van Erven and Harremoes (2014), equation 10; Gil, Alajaji and Linder (2013), tables 1, 2.

    Example:
        >>> gaussian_renyi([1.0, 2.0, 4.0], 0.0, 1.0, 1.0, 1.0)
        array([0.5, 1. , 2. ])
        >>> gaussian_renyi([1.2, 1.5], 0.0, 2.0, 0.0, 1.0).round(4)
        array([1.5976,    inf])
    """
    a = read_orders(alphas)
    means = read_coordinates("mean0", mean0), read_coordinates("mean1", mean1)
    same_length(mean0=means[0], mean1=means[1])
    shift = means[0] - means[1]
    need = "numbers above 0 or a covariance matrix"
    if max(numeric(f"sigma{i}", need, sigma).ndim for i, sigma in enumerate((sigma0, sigma1))) == 2:
        spreads = read_covariance("sigma0", sigma0), read_covariance("sigma1", sigma1)
        return correlated_divergence(a, shift, *spreads)
    wide = read_deviations("sigma0", sigma0), read_deviations("sigma1", sigma1)
    same_length(mean0=shift, sigma0=wide[0], sigma1=wide[1])

    def part(a: Floats, b: Floats, swap: bool) -> Floats:
        s0, s1 = wide[::-1] if swap else wide
        mid = power_gap(b, s0, s1, 2)
        # Below order 1 it is a sum of squares, which stays in the range of float64.
        low = np.hypot(np.sqrt(a) * s1, np.sqrt(np.abs(b)) * s0)
        root = np.where(b < 0.0, low, s1 * np.sqrt(mid))
        tau, log_r = one_minus_power(s0, s1, 2), 2.0 * log_ratio(s0, s1)
        return normal_divergence(a, b, tau, log_r, mid, shift / root)

    def limit() -> float:
        return normal_limit(one_minus_power(*wide, 2), 2.0 * log_ratio(*wide), shift / wide[1])

    return by_part(a, part, limit)


def laplace_renyi(
    alphas: npt.ArrayLike,
    scale: npt.ArrayLike,
    shift: npt.ArrayLike,
    scale1: npt.ArrayLike | None = None,
) -> Floats:
    """Compute D_alpha of two Laplace laws at distance `shift`.

    With one scale and e = abs(shift)/scale, it is ``ln(alpha/(2 alpha - 1) e^{(alpha - 1) e} +
    (alpha - 1)/(2 alpha - 1) e^{-alpha e}) / (alpha - 1)`` in every coordinate, and e at order inf.
    D_alpha is the sum over coordinates.

    Args:
        alphas: orders above 0, or inf; any shape.
        scale: scale of P0, in the units of the shift: a number or a vector.
        shift: distance of the means, of either sign: a number or a vector.
        scale1: scale of P1. Defaults to the scale of P0.

    Returns:
        Divergences in nats, in the shape of `alphas`.

    Raises:
        TypeError: if an argument does not hold real numbers.
        ValueError: if an order is not above 0, a scale not in (0, 1e300], or lengths differ.

    Source:
        Gil, Alajaji and Linder (2013), table 2; Mironov (2017), proposition 6.

    Example:
        >>> laplace_renyi([0.5, 1.0, 2.0, np.inf], 1.0, 1.0).round(4)
        array([0.1891, 0.3679, 0.6191, 1.    ])
    """
    a = read_orders(alphas)
    apart = np.abs(read_coordinates("shift", shift))
    wide0 = read_deviations("scale", scale)
    wide1 = wide0 if scale1 is None else read_deviations("scale1", scale1)
    same_length(shift=apart, scale=wide0, scale1=wide1)
    wide = wide0, wide1

    def part(a: Floats, b: Floats, swap: bool) -> Floats:
        s0, s1 = wide[::-1] if swap else wide
        tau, log_r = one_minus_power(s0, s1, 1), log_ratio(s0, s1)
        divergence = scale_divergence(a, b, tau, log_r, power_gap(b, s0, s1, 1))
        # Compute the shift's part in the direction in which all its terms have one sign.
        w = a * (s1 / s0) + b
        plain = shift_divergence(b, np.maximum(w, 0.0), apart / s1)
        other = shift_divergence(-a, np.maximum(-w * (s0 / s1), 0.0), apart / s0) * (a / -b)
        return divergence + np.where(w < 0.0, other, plain)

    def limit() -> float:
        return float(np.where(wide0 <= wide1, apart / wide1 - log_ratio(*wide), np.inf).sum())

    return by_part(a, part, limit)


def exponential_renyi(alphas: npt.ArrayLike, rate0: float, rate1: float) -> Floats:
    """Compute D_alpha of two exponential laws that begin at the same point.

    It is ``ln(l0/l1) + ln(l0/(alpha l0 - (alpha - 1) l1)) / (alpha - 1)``, and inf if
    ``alpha l0 <= (alpha - 1) l1``.

    Args:
        alphas: orders above 0, or inf; any shape.
        rate0: rate l0 of P0: 1 divided by its mean.
        rate1: rate l1 of P1.

    Returns:
        Divergences in nats, in the shape of `alphas`.

    Raises:
        TypeError: if an argument does not hold real numbers.
        ValueError: if an order is not above 0 or a rate not in (0, 1e300].

    Source:
        Gil, Alajaji and Linder (2013), table 2.

    Example:
        >>> exponential_renyi([1.0, 2.0, 4.0], 1.5, 1.0).round(3)
        array([0.072, 0.118, 0.174])
    """
    a = read_orders(alphas)
    rates = np.array([positive("rate0", rate0)]), np.array([positive("rate1", rate1)])

    def part(a: Floats, b: Floats, swap: bool) -> Floats:
        # The scale is 1 / rate: the ratio of the scales is the inverse ratio of the rates.
        own_rate, other = rates if swap else rates[::-1]
        tau, log_r = one_minus_power(own_rate, other, 1), log_ratio(own_rate, other)
        return scale_divergence(a, b, tau, log_r, power_gap(b, own_rate, other, 1))

    return by_part(
        a, part, lambda: float(log_ratio(*rates)[0]) if rates[0] >= rates[1] else math.inf
    )


def discrete_renyi(alphas: npt.ArrayLike, p: npt.ArrayLike, q: npt.ArrayLike) -> Floats:
    """Compute D_alpha of two laws on the same finitely many points.

    It is ``ln(sum of p^alpha q^(1 - alpha)) / (alpha - 1)``. It is inf for alpha >= 1 if q is 0 at
    a point where p is not, and for all orders if the laws have no common point.

    Args:
        alphas: orders above 0, or inf; any shape.
        p: probabilities of P0, shape (n,). They must sum to 1 within 1e-9 and are divided by
            their sum.
        q: probabilities of P1, shape (n,), handled in the same way.

    Returns:
        Divergences in nats, in the shape of `alphas`.

    Raises:
        TypeError: if an argument does not hold real numbers.
        ValueError: if an order is not above 0, a probability is negative, a sum is not 1 or
            lengths differ.

    Source:
        van Erven and Harremoes (2014), equation 1.

    Example:
        >>> discrete_renyi([1.0, 2.0, 4.0], [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]).round(6)
        array([0.274887, 0.48858 , 0.698328])
    """
    a = read_orders(alphas)
    p0, p1 = read_probabilities("p", p), read_probabilities("q", q)
    if p0.size != p1.size:
        raise invalid("q", f"of length {p0.size}, as p is", p1.size)
    sums = math.fsum(p0.tolist()), math.fsum(p1.tolist())
    # ln of the ratio of the sums, from their exact difference: the difference of two laws may be
    # smaller than the rounding errors of the sums.
    gap = math.log1p(math.fsum([*p0.tolist(), *(-p1).tolist()]) / sums[1])
    sides = compare_laws(p0, p1, -gap, sums), compare_laws(p1, p0, gap, sums[::-1])
    return by_order(a, lambda i, a, b, swap: discrete_divergence(a, b, *sides[swap]))


def mixture_with_atom(
    alphas: npt.ArrayLike,
    weight0: float,
    weight1: float,
    rest: npt.ArrayLike | Callable[[Floats], npt.ArrayLike],
) -> Floats:
    """Compute D_alpha of two laws that share an atom and have no other mass at the atom's place.

    It is ``ln(w0^alpha w1^(1 - alpha) + (1 - w0)^alpha (1 - w1)^(1 - alpha) e^{(alpha - 1) R}) /
    (alpha - 1)``, with R the divergence of the rests (the laws without the atom).

    Args:
        alphas: orders above 0, or inf; any shape.
        weight0: probability w0 of the atom under P0.
        weight1: probability w1 of the atom under P1.
        rest: D_alpha of the rest of P0 from the rest of P1 in nats, as a number, an array in the
            shape of `alphas`, or a function of `alphas`.

    Returns:
        Divergences in nats, in the shape of `alphas`.

    Raises:
        TypeError: if an argument does not hold real numbers.
        ValueError: if an order is not above 0, a weight not in [0, 1], or a value of `rest`
            negative or NaN.

    Source:
        van Erven and Harremoes (2014), definition 2 and equation 9, on the atom and on the rest.

    Example:
        >>> plane = lambda orders: gaussian_renyi(orders, [0.5, 0.0], 1.0, 0.0, 1.0)
        >>> mixture_with_atom([1.0, 2.0, 4.0], 0.3, 0.1, plane).round(3)
        array([0.241, 0.469, 0.753])
    """
    a = read_orders(alphas)
    w0 = real("weight0", weight0, low=0.0, high=1.0)
    w1 = real("weight1", weight1, low=0.0, high=1.0)
    within = extrapolate_orders(rest, a).ravel()
    sides = split_atom(w0, w1), split_atom(w1, w0)

    def value(i: int, a: float, b: float, swap: bool) -> float:
        points, has = sides[swap]
        # D_a(C1||C0) from the given D_{1-a}(C0||C1): skew symmetry.
        exponent = within[i] * (a / -b) if swap else within[i]
        return discrete_divergence(a, b, *points, np.array([0.0, exponent])[has])

    return by_order(a, value)


def randomised_response(alphas: npt.ArrayLike, epsilon: float, categories: int = 2) -> Floats:
    """Compute the RDP curve of k-ary randomised response, for any two different true values.

    It is ``ln(o (e^{alpha epsilon} + e^{(1 - alpha) epsilon} + k - 2)) / (alpha - 1)``, with
    ``o = 1 / (e^epsilon + k - 1)`` the probability of each wrong answer, and epsilon at order inf.

    Args:
        alphas: orders above 0, or inf; any shape.
        epsilon: logarithm of the probability of the true answer divided by that of a wrong
            answer, in (0, 1e300].
        categories: number k of answers, at least 2.

    Returns:
        Divergences in nats, in the shape of `alphas`.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if it is out of range.

    Source:
        Mironov (2017), proposition 5, for two answers; Kairouz, Oh and Viswanath (2014), section
        4, for the law with k.

    Example:
        >>> randomised_response([1.0, 2.0, np.inf], 1.0).round(4)
        array([0.4621, 0.7353, 1.    ])
    """
    a = read_orders(alphas)
    loss = positive("epsilon", epsilon)
    others = integer("categories", categories, 2) - 1
    keep = -math.log1p(others * math.exp(-loss))
    points = np.array([keep, keep - loss]), np.array([loss, -loss]), 0.0
    if others > 1:
        equal = math.log(others - 1) + keep - loss
        points = np.append(points[0], equal), np.append(points[1], 0.0), 0.0
    # An exchange of the two true values only exchanges the points.
    return by_order(a, lambda i, a, b, swap: discrete_divergence(a, b, *points))


def gaussian_mechanism(alphas: npt.ArrayLike, sensitivity: float, sigma: float) -> Floats:
    """Compute the RDP curve of Gaussian noise: ``alpha (sensitivity / sigma)^2 / 2``.

    Args:
        alphas: orders above 0, or inf; any shape.
        sensitivity: largest L2 distance of two neighbouring inputs, in the units of the input.
        sigma: standard deviation of the noise, in the units of the input.

    Returns:
        The smallest tau for which (alpha, tau)-RDP holds, in nats, in the shape of `alphas`.

    Raises:
        TypeError: if an argument does not hold real numbers.
        ValueError: if an order is not above 0 or a number not in (0, 1e300].

    Source:
        Mironov (2017), proposition 7.

    Example:
        >>> gaussian_mechanism([1.0, 2.0, 32.0], 1.0, 4.0)
        array([0.03125, 0.0625 , 1.     ])
    """
    apart, sigma = positive("sensitivity", sensitivity), positive("sigma", sigma)
    return gaussian_renyi(alphas, apart, sigma, 0.0, sigma)


def laplace_mechanism(alphas: npt.ArrayLike, sensitivity: float, scale: float) -> Floats:
    """Compute the RDP curve of Laplace noise: `laplace_renyi` at the distance `sensitivity`.

    If noise is added to every entry, the curve holds from order 1 on for all inputs within the L1
    distance `sensitivity`. The curve is convex in the distance and 0 at distance 0, so the loss is
    largest if only one entry differs.

    Args:
        alphas: orders above 0, or inf; any shape.
        sensitivity: largest L1 distance of two neighbouring inputs, in the units of the input.
        scale: scale of the noise, in the units of the input.

    Returns:
        The smallest tau for which (alpha, tau)-RDP holds, in nats, in the shape of `alphas`.

    Raises:
        TypeError: if an argument does not hold real numbers.
        ValueError: if an order is not above 0 or a number not in (0, 1e300].

    Source:
        Mironov (2017), proposition 6.

    Example:
        >>> laplace_mechanism([1.0, 2.0, np.inf], 1.0, 2.0).round(4)
        array([0.1065, 0.2003, 0.5   ])
    """
    return laplace_renyi(alphas, positive("scale", scale), positive("sensitivity", sensitivity))
