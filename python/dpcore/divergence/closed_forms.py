"""Closed-form Renyi divergences of probability laws and of mechanisms.

Every public function takes an array of orders, and returns D_alpha(P0||P1) in nats in the same
shape. The divergence of order 1 is the Kullback-Leibler divergence. The divergence of order inf is
the logarithm of the largest ratio of densities. The result is inf if the divergence is infinite or
beyond the range of float64. Relative errors are below 1e-12, also for orders near 1, for huge
orders, and for laws that are nearly equal. For orders of at least 1/2, the divergence is computed
as a sum of terms of one sign, so no terms cancel. For an order a below 1/2, it is computed from the
divergence of order 1 - a by skew symmetry, (1 - a) D_a(P||Q) = a D_{1-a}(Q||P) (van Erven and
Harremoes 2014, proposition 2).
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
"""Comparison of discrete laws P and Q: ln p, ln(p/q), and the mass of Q at points with p = 0."""


def read_orders(alphas: Any) -> Floats:
    """Check that all orders are above 0 (inf is allowed), and return them as an array."""
    requirement = "an array of orders above 0"
    orders = numeric("alphas", requirement, alphas, "uif").astype(np.float64)
    # A NaN is not above 0 either.
    if not (orders > 0.0).all():
        raise invalid("alphas", requirement, alphas)
    return orders


def sum_over_coordinates(
    alphas: Floats, part: Callable[[Floats, Floats, bool], Floats], limit: Callable[[], float]
) -> Floats:
    """Compute the Renyi divergence of distributions P0 and P1 with independent coordinates.

    The divergence is the sum of the divergences of the coordinates.

    Args:
        alphas: orders, an array with values above 0.
        part: function (a, b, swap) that computes the divergence of each coordinate. `a` holds n
            orders of at least 1/2, shape (n, 1), and `b` is a - 1. The function returns
            D_a(P0||P1), or D_a(P1||P0) if `swap` is True.
        limit: function without arguments that returns the divergence D(P0||P1) of order inf, summed
            over the coordinates.
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


def renyi_divergences(alphas: Floats, value: Callable[[int, float, float, bool], float]) -> Floats:
    """Compute the Renyi divergence D_alpha(P0||P1) at each order, by calls of a function.

    `value` is the function, which computes the divergence of one order. It is called as value(i, a,
    b, swap). Here i is the index of the order in `alphas`, and b = a - 1. If the order is at least
    1/2, then a is the order, and `swap` is False. The function must then return D_a(P0||P1). If the
    order is below 1/2, then a is 1 minus the order, and `swap` is True. The function must then
    return D_a(P1||P0). The order may be inf.
    """
    divergences = [
        a / (1.0 - a) * value(i, 1.0 - a, -a, True) if a < 0.5 else value(i, a, a - 1.0, False)
        for i, a in enumerate(alphas.ravel().tolist())
    ]
    return np.array(divergences, dtype=np.float64).reshape(alphas.shape)


def read_coordinates(name: str, value: Any) -> Floats:
    """Check that the argument `name` holds one or more finite numbers; return a vector."""
    ndim = numeric(name, "a number or a vector of finite numbers", value).ndim
    return vector(name, [value] if ndim == 0 else value)


def read_deviations(name: str, value: Any) -> Floats:
    """Check that the argument `name` holds one or more positive numbers; return a vector."""
    deviations = read_coordinates(name, value)
    if not ((deviations > 0.0) & (deviations <= LARGEST)).all():
        raise invalid(name, f"above 0 and at most {LARGEST:g} in every entry", value)
    return deviations


def broadcast_length(**parts: npt.NDArray[Any]) -> int:
    """Return the largest length of the given vectors. Every vector has this length or length 1."""
    most = max(map(len, parts.values()))
    for name, part in parts.items():
        if len(part) not in (1, most):
            raise invalid(name, f"a number or of length {most}, as another argument is", len(part))
    return most


def read_probabilities(name: str, value: Any) -> Floats:
    """Check that the probabilities of the argument `name` sum to 1 within 1e-9; return them."""
    probabilities = vector(name, value)
    if (probabilities < 0.0).any() or abs(math.fsum(probabilities.tolist()) - 1.0) > _SUM_TOLERANCE:
        raise invalid(name, "probabilities that sum to 1 within 1e-9", value)
    return probabilities


def read_covariance(name: str, value: Any) -> Floats:
    """Return the covariance matrix that the argument `name` gives.

    The argument is a covariance matrix, a vector of standard deviations, or one standard deviation.
    """
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


def evaluate_rest_at_orders(rest: Any, alphas: Floats) -> Floats:
    """Return the divergence `rest` at each order, in the shape of `alphas`.

    `rest` is a number, an array in the shape of `alphas`, or a function that maps orders to one of
    these.
    """
    requirement = "a number, an array in the shape of alphas or a function of them, at least 0"
    limits = numeric("rest", requirement, rest(alphas) if callable(rest) else rest, "uif")
    # A NaN is not at least 0 either.
    if limits.shape not in ((), alphas.shape) or not (limits >= 0.0).all():
        raise invalid("rest", requirement, rest)
    return np.broadcast_to(limits.astype(np.float64), alphas.shape)


def x_minus_log1p(x: Floats) -> Floats:
    """Compute x - ln(1 + x), for x > -1.

    With z = x / (2 + x), the result is x z - 2 z^3 (1/3 + z^2/5 + ...), because ln(1 + x) = 2
    artanh(z).
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


def expm1_less_x_over_x2(x: Floats) -> Floats:
    """Compute (e^x - 1 - x) / x^2. The result is above 0, and 1/2 at x = 0."""
    small = np.abs(x) < _SERIES_LIMIT
    inner = np.where(small, x, 0.0)
    series = np.zeros_like(inner)
    for i in range(_SERIES_TERMS, 1, -1):
        series = (series * inner + 1.0) / i
    outer = np.where(small, 1.0, x)
    return np.where(small, series, (np.expm1(outer) - outer) / outer / outer)


def one_plus_b_minus_b_power(b: Floats, x: Floats, y: Floats, power: int) -> Floats:
    """Compute 1 + b (1 - (x/y)^p) with p = `power`, by exact fractions if the result is near 0."""
    b, x, y = np.broadcast_arrays(b, x, y)
    gap = np.asarray(1.0 + np.where(b == 0.0, 0.0, b * ratio_power_gap(x, y, power)))
    for i in zip(*np.nonzero(np.abs(gap) < _NEAR_ZERO_GAP), strict=True):
        step, top, bottom = (Fraction(float(part[i])) for part in (b, x, y))
        gap[i] = float(1 + step * (1 - (top / bottom) ** power))
    return gap


def ratio_power_gap(x: Floats, y: Floats, power: int) -> Floats:
    """Compute 1 - (x/y)^p, p = `power` (1 or 2), accurately even if x and y are nearly equal."""
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


def scale_family_renyi(a: Floats, b: Floats, tau: Floats, log_r: Floats, mid: Floats) -> Floats:
    """Compute -ln r - ln(1 + b (1 - r)) / b, the Renyi divergence D_a of two distributions.

    The two distributions have the same form and differ only in a scale parameter, such as two
    exponential distributions. r is the scale of the first distribution divided by the scale of the
    second distribution, and b is a - 1.

    Args:
        a: orders, at least 1/2.
        b: a - 1.
        tau: 1 - r.
        log_r: ln r.
        mid: 1 + b tau. The divergence is infinite if `mid` is 0 or below.
    """
    ends = mid <= 0.0
    kl = b == 0.0
    mid, step = np.where(ends, 1.0, mid), np.where(kl, 1.0, b)
    inner = np.where(ends | kl, 0.0, b * tau)
    low = mid < _SERIES_LIMIT
    # The scales are nearly equal: the tau of -ln r = tau + ... cancels that of ln(1 + b tau)/b.
    close = x_minus_log1p(np.where(np.abs(tau) < _SERIES_LIMIT, -tau, 0.0))
    close = close + np.where(kl, 0.0, x_minus_log1p(np.where(low, 0.0, inner)) / step)
    # r is outside the range of float64; only b < 0 then has a finite divergence.
    far = np.logaddexp(np.log(a), np.log(np.abs(step)) + log_r)
    logs = np.where(low, np.log(mid), np.log1p(np.where(low, 0.0, inner)))
    logs = np.where(tau < -_HUGE_RATIO, far, logs)
    direct = -log_r - np.where(kl, tau, logs / step)
    return np.where(ends, np.inf, np.where((np.abs(tau) < _SERIES_LIMIT) & ~low, close, direct))


def normal_renyi_divergences(
    a: Floats, b: Floats, tau: Floats, log_r: Floats, mid: Floats, pull: Floats
) -> Floats:
    """Compute the Renyi divergence D_a of two normal distributions, for each coordinate.

    The coordinates are independent. s0 and s1 are the standard deviations of a coordinate under the
    first and the second distribution, and b = a - 1. `tau`, `log_r` and `mid` are 1 - r, ln r and 1
    + b (1 - r), with r = s0^2 / s1^2. `pull` is the distance of the means divided by sqrt(a s1^2 -
    b s0^2).
    """
    away = np.where(pull == 0.0, 0.0, 0.5 * a * pull * pull)
    return 0.5 * scale_family_renyi(a, b, tau, log_r, mid) + np.where(mid > 0.0, away, np.inf)


def normal_max_loss(tau: Floats, log_r: Floats, pull: Floats) -> float:
    """Compute the Renyi divergence of order inf of two normal distributions.

    `tau` and `log_r` are 1 - r and ln r. Here r is the variance of the first distribution divided
    by the variance of the second distribution, for each coordinate. `pull` is the distance of the
    means divided by the standard deviation of the second distribution.
    """
    if ((tau < 0.0) | ((tau == 0.0) & (pull != 0.0))).any():
        return float("inf")
    away = np.where(pull == 0.0, 0.0, pull * pull / np.where(tau > 0.0, tau, 1.0))
    return float(0.5 * (away - log_r).sum())


def variance_gap_log_ratio_mean_gap(
    spread0: Floats, spread1: Floats, shift: Floats
) -> tuple[Floats, Floats, Floats]:
    """Change the axes of two normal distributions so that both covariance matrices are diagonal.

    `spread0` and `spread1` are the covariance matrices of the distributions P0 and P1. `shift` is
    the difference of the means. In the new axes, the covariance of P1 is the identity. Let r be the
    variance of P0 divided by the variance of P1 along one axis. The three results are 1 - r, ln r,
    and the distance of the means, for each axis.
    """
    from scipy.linalg import eigh

    tau, axes = eigh(spread1 - spread0, spread1)
    ratio = np.where(np.abs(tau) < _SERIES_LIMIT, 1.0 - tau, ((spread0 @ axes) * axes).sum(axis=0))
    return tau, np.log(ratio), shift @ axes


def laplace_shift_term(b: Floats, w: Floats, distance: Floats) -> Floats:
    """Compute how much the distance of the means adds to the Renyi divergence of Laplace laws.

    The divergence D_a of order a is a sum of one part for the different scales, and one part for
    the different means. The part for the means is d + ln(1 - b g) / b, with g = (1 - exp(-w d)) / w
    and d = `distance`.

    Args:
        b: orders minus 1, a - 1.
        w: (a + b r) / r, at least 0. Here r is the scale of the first distribution divided by the
            scale of the second distribution.
        distance: distance of the means divided by the scale of the second distribution, at least 0.
    """
    x = np.where(distance == 0.0, 0.0, np.minimum(w * distance, 1e300))
    near = x < _SERIES_LIMIT
    inner, outer = np.where(near, x, 0.0), np.where(near, 1.0, x)
    share = np.where(near, inner * expm1_less_x_over_x2(-inner), 1.0 + np.expm1(-outer) / outer)
    g = np.where(near, distance * (1.0 - share), -np.expm1(-outer) / np.where(near, 1.0, w))
    step = np.where(b == 0.0, 1.0, b)
    divergence = distance * share - np.where(b == 0.0, 0.0, x_minus_log1p(-b * g) / step)
    return np.where(np.isinf(distance), np.inf, divergence)


def discrete_renyi_divergence(
    alpha: float, b: float, log_p: Floats, loss: Floats, missing: float, rest: Floats | None = None
) -> float:
    """Compute the Renyi divergence D_alpha(P||Q) of two discrete distributions.

    The arrays contain one entry for each point with probability p > 0 under P. The probability of
    the point under Q is q.

    Args:
        alpha: order, at least 1/2, or inf.
        b: alpha - 1.
        log_p: ln p at each point, finite.
        loss: privacy loss ln(p / q) at each point, inf if q is 0.
        missing: total probability under Q of the points with p = 0.
        rest: None if every point is a single value. If points stand for many values, `rest`
            contains one number for each point. This number is the divergence D_alpha(P||Q) of the
            conditional distributions, given that the value belongs to the point.
    """
    whole = loss if rest is None else loss + rest
    if np.isinf(alpha):
        return float(whole.max())
    if b >= 0.0 and np.isinf(whole).any():
        return float("inf")
    with np.errstate(over="ignore", invalid="ignore"):
        terms = _nonnegative_renyi_sum_terms(b, log_p, loss)
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


def logp_loss_missing(
    p: Floats, q: Floats, gap: float = 0.0, sums: tuple[float, float] = (1.0, 1.0)
) -> Side:
    """Compare two discrete distributions, given by probabilities of the same points.

    The probabilities `p` and `q` are first divided by their sums. The result is a tuple of three
    entries. The first entry is the logarithm of each probability above 0 in `p`. The second entry
    is ln(p / q) at the same points, inf if q is 0. The third entry is the total probability in `q`
    of the points with p = 0. `sums` holds the sum of `p` and the sum of `q`, both rounded. `gap` is
    the exact value of ln(sum of q / sum of p).
    """
    has, is_possible = p > 0.0, q > 0.0
    loss = np.full(p.size, np.inf)
    both = has & is_possible
    loss[both] = log_ratio(p[both], q[both]) + gap
    return np.log(p[has] / sums[0]), loss[has], float(q[~has].sum()) / sums[1]


def binary_log_ratios(atom_prob0: float, atom_prob1: float) -> tuple[Side, npt.NDArray[np.bool_]]:
    """Compare two distributions on two points: one value, and all other values together.

    `atom_prob0` and `atom_prob1` are the probabilities of the value under P0 and P1. The first
    result is the tuple that `logp_loss_missing` returns for the two points. The second result is an
    array that is True for each point with positive probability under P0.
    """
    p, q = np.array([atom_prob0, 1.0 - atom_prob0]), np.array([atom_prob1, 1.0 - atom_prob1])
    log_p, loss, missing = logp_loss_missing(p, q)
    if atom_prob0 < 1.0 and atom_prob1 < 1.0 and atom_prob1 - atom_prob0 > -0.5 * q[1]:
        # The complements are rounded; their difference is not.
        loss[-1] = math.log1p((atom_prob1 - atom_prob0) / q[1])
    return (log_p, loss, missing), p > 0.0


def _nonnegative_renyi_sum_terms(b: float, log_p: Floats, loss: Floats) -> Floats:
    """Compute the terms p ((e^bl - 1)/b + e^-l - 1) >= 0.

    Here l = ln(p/q). The sum of the terms is (sum of p^(b + 1) q^-b - 1)/b, because p and q each
    sum to 1.
    """
    p = np.exp(log_p)
    near = np.abs(loss) < _SERIES_LIMIT
    inner = np.where(near, loss, 0.0)
    close = p * inner * inner * (b * expm1_less_x_over_x2(b * inner) + expm1_less_x_over_x2(-inner))
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
    """Compute the Renyi divergence of two normal distributions with given covariance matrices.

    `shift` is the difference of the means. `spread0` and `spread1` are the covariance matrices. A
    matrix of shape (1, 1) stands for the same variance in every coordinate.
    """
    dim = broadcast_length(mean0=shift, sigma0=spread0, sigma1=spread1)
    spread, other = (s if len(s) == dim else np.eye(dim) * s[0, 0] for s in (spread0, spread1))
    both = spread, other
    shift = np.broadcast_to(shift, dim)

    def part(a: Floats, b: Floats, swap: bool) -> Floats:
        tau, log_r, pull = variance_gap_log_ratio_mean_gap(*(both[::-1] if swap else both), shift)
        mid = 1.0 + b * tau
        return normal_renyi_divergences(a, b, tau, log_r, mid, pull / np.sqrt(mid))

    return sum_over_coordinates(
        alphas, part, lambda: normal_max_loss(*variance_gap_log_ratio_mean_gap(*both, shift))
    )


def gaussian_renyi(
    alphas: npt.ArrayLike,
    mean0: npt.ArrayLike,
    sigma0: npt.ArrayLike,
    mean1: npt.ArrayLike,
    sigma1: npt.ArrayLike,
) -> Floats:
    """Compute the Renyi divergence D_alpha(P0||P1) of two normal distributions.

    The coordinates are independent if no covariance matrix is given. With means m0, m1 and standard
    deviations s0, s1, the divergence of one coordinate is
    ``ln(s1/s0) + ln(s1^2/s^2) / (2 (alpha - 1)) + alpha (m0 - m1)^2 / (2 s^2)`` with
    ``s^2 = alpha s1^2 - (alpha - 1) s0^2``. It is inf if s^2 <= 0. D_alpha is the sum of the
    divergences of the coordinates.

    Args:
        alphas: orders above 0, or inf; any shape.
        mean0: mean of P0: one number for all coordinates, or a vector.
        sigma0: spread of P0. A number is the standard deviation of every coordinate. A vector holds
            the standard deviation of each coordinate. A matrix is the covariance matrix, in squared
            units.
        mean1: mean of P1: one number for all coordinates, or a vector.
        sigma1: standard deviation or covariance matrix of P1, in the same form as `sigma0`.

    Returns:
        Divergences in nats, in the shape of `alphas`. If a covariance matrix is given, its
        condition number limits the accuracy.

    Raises:
        TypeError: if an argument does not hold real numbers.
        ValueError: if an order is not above 0, a standard deviation is not in (0, 1e300], a matrix
            is not symmetric and positive definite, or if lengths differ.

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
    broadcast_length(mean0=means[0], mean1=means[1])
    shift = means[0] - means[1]
    need = "numbers above 0 or a covariance matrix"
    if max(numeric(f"sigma{i}", need, sigma).ndim for i, sigma in enumerate((sigma0, sigma1))) == 2:
        spreads = read_covariance("sigma0", sigma0), read_covariance("sigma1", sigma1)
        return correlated_divergence(a, shift, *spreads)
    wide = read_deviations("sigma0", sigma0), read_deviations("sigma1", sigma1)
    broadcast_length(mean0=shift, sigma0=wide[0], sigma1=wide[1])

    def part(a: Floats, b: Floats, swap: bool) -> Floats:
        s0, s1 = wide[::-1] if swap else wide
        mid = one_plus_b_minus_b_power(b, s0, s1, 2)
        # Below order 1 it is a sum of squares, which stays in the range of float64.
        low = np.hypot(np.sqrt(a) * s1, np.sqrt(np.abs(b)) * s0)
        root = np.where(b < 0.0, low, s1 * np.sqrt(mid))
        tau, log_r = ratio_power_gap(s0, s1, 2), 2.0 * log_ratio(s0, s1)
        return normal_renyi_divergences(a, b, tau, log_r, mid, shift / root)

    def limit() -> float:
        return normal_max_loss(ratio_power_gap(*wide, 2), 2.0 * log_ratio(*wide), shift / wide[1])

    return sum_over_coordinates(a, part, limit)


def laplace_renyi(
    alphas: npt.ArrayLike,
    scale: npt.ArrayLike,
    shift: npt.ArrayLike,
    scale1: npt.ArrayLike | None = None,
) -> Floats:
    """Compute the Renyi divergence D_alpha(P0||P1) of two Laplace distributions.

    The coordinates are independent, and `shift` is the difference of the means. If the scales are
    equal and t = abs(shift)/scale, the divergence of one coordinate is ``ln(T) / (alpha - 1)`` with
    ``T = alpha/(2 alpha - 1) e^{(alpha - 1) t} + (alpha - 1)/(2 alpha - 1) e^{-alpha t}``. At order
    inf, the divergence is t. D_alpha is the sum of the divergences of the coordinates.

    Args:
        alphas: orders above 0, or inf; any shape.
        scale: scale of P0, in the units of `shift`: one number for all coordinates, or a vector.
        shift: difference of the means: one number for all coordinates, or a vector. The sign does
            not matter.
        scale1: scale of P1. Defaults to the scale of P0.

    Returns:
        Divergences in nats, in the shape of `alphas`.

    Raises:
        TypeError: if an argument does not hold real numbers.
        ValueError: if an order is not above 0, a scale is not in (0, 1e300], or if lengths differ.

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
    broadcast_length(shift=apart, scale=wide0, scale1=wide1)
    wide = wide0, wide1

    def part(a: Floats, b: Floats, swap: bool) -> Floats:
        s0, s1 = wide[::-1] if swap else wide
        tau, log_r = ratio_power_gap(s0, s1, 1), log_ratio(s0, s1)
        divergence = scale_family_renyi(a, b, tau, log_r, one_plus_b_minus_b_power(b, s0, s1, 1))
        # Compute the shift's part in the direction in which all its terms have one sign.
        w = a * (s1 / s0) + b
        plain = laplace_shift_term(b, np.maximum(w, 0.0), apart / s1)
        other = laplace_shift_term(-a, np.maximum(-w * (s0 / s1), 0.0), apart / s0) * (a / -b)
        return divergence + np.where(w < 0.0, other, plain)

    def limit() -> float:
        return float(np.where(wide0 <= wide1, apart / wide1 - log_ratio(*wide), np.inf).sum())

    return sum_over_coordinates(a, part, limit)


def exponential_renyi(alphas: npt.ArrayLike, rate0: float, rate1: float) -> Floats:
    """Compute the Renyi divergence D_alpha(P0||P1) of two exponential distributions.

    Both distributions have the same smallest value. With rates l0 and l1, D_alpha is
    ``ln(l0/l1) + ln(l0/(alpha l0 - (alpha - 1) l1)) / (alpha - 1)``. It is inf if
    ``alpha l0 <= (alpha - 1) l1``.

    Args:
        alphas: orders above 0, or inf; any shape.
        rate0: rate of P0, which is 1 divided by the mean of P0.
        rate1: rate of P1.

    Returns:
        Divergences in nats, in the shape of `alphas`.

    Raises:
        TypeError: if an argument does not hold real numbers.
        ValueError: if an order is not above 0, or a rate is not in (0, 1e300].

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
        tau, log_r = ratio_power_gap(own_rate, other, 1), log_ratio(own_rate, other)
        return scale_family_renyi(a, b, tau, log_r, one_plus_b_minus_b_power(b, own_rate, other, 1))

    return sum_over_coordinates(
        a, part, lambda: float(log_ratio(*rates)[0]) if rates[0] >= rates[1] else math.inf
    )


def discrete_renyi(alphas: npt.ArrayLike, p: npt.ArrayLike, q: npt.ArrayLike) -> Floats:
    """Compute the Renyi divergence D_alpha(P0||P1) of two discrete distributions.

    Both distributions are given by their probabilities of the same n points. D_alpha is
    ``ln(sum of p^alpha q^(1 - alpha)) / (alpha - 1)``. For alpha >= 1, D_alpha is inf if p > 0 and
    q = 0 at some point. For all orders, D_alpha is inf if at every point p = 0 or q = 0.

    Args:
        alphas: orders above 0, or inf; any shape.
        p: probabilities of the n points under P0, shape (n,). The probabilities must sum to 1
            within 1e-9. The function divides them by their sum.
        q: probabilities of the n points under P1, shape (n,). They too must sum to 1 within 1e-9.

    Returns:
        Divergences in nats, in the shape of `alphas`.

    Raises:
        TypeError: if an argument does not hold real numbers.
        ValueError: if an order is not above 0, a probability is negative, a sum is not 1, or if
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
    sides = logp_loss_missing(p0, p1, -gap, sums), logp_loss_missing(p1, p0, gap, sums[::-1])
    return renyi_divergences(a, lambda i, a, b, swap: discrete_renyi_divergence(a, b, *sides[swap]))


def mixture_with_atom(
    alphas: npt.ArrayLike,
    weight0: float,
    weight1: float,
    rest: npt.ArrayLike | Callable[[Floats], npt.ArrayLike],
) -> Floats:
    """Compute the Renyi divergence D_alpha(P0||P1) of two distributions that share one atom.

    An atom is a value of positive probability. The rest of a distribution is the conditional
    distribution, given that the value is not the atom. Let R be the divergence D_alpha(rest of P0
    || rest of P1). The result is ``ln(T) / (alpha - 1)`` with
    ``T = w0^alpha w1^(1 - alpha) + (1 - w0)^alpha (1 - w1)^(1 - alpha) e^{(alpha - 1) R}``.

    Args:
        alphas: orders above 0, or inf; any shape.
        weight0: probability w0 of the atom under P0.
        weight1: probability w1 of the atom under P1.
        rest: the divergence R in nats: a number, an array in the shape of `alphas`, or a function
            that maps orders to such an array.

    Returns:
        Divergences in nats, in the shape of `alphas`.

    Raises:
        TypeError: if an argument does not hold real numbers.
        ValueError: if an order is not above 0, if `weight0` or `weight1` is not in [0, 1], or if a
            value of `rest` is negative or NaN.

    Source:
        van Erven and Harremoes (2014), definition 2 and equation 9, applied to the atom and to the
        rest.

    Example:
        >>> plane = lambda orders: gaussian_renyi(orders, [0.5, 0.0], 1.0, 0.0, 1.0)
        >>> mixture_with_atom([1.0, 2.0, 4.0], 0.3, 0.1, plane).round(3)
        array([0.241, 0.469, 0.753])
    """
    a = read_orders(alphas)
    w0 = real("weight0", weight0, low=0.0, high=1.0)
    w1 = real("weight1", weight1, low=0.0, high=1.0)
    within = evaluate_rest_at_orders(rest, a).ravel()
    sides = binary_log_ratios(w0, w1), binary_log_ratios(w1, w0)

    def value(i: int, a: float, b: float, swap: bool) -> float:
        points, has = sides[swap]
        # D_a(C1||C0) from the given D_{1-a}(C0||C1): skew symmetry.
        exponent = within[i] * (a / -b) if swap else within[i]
        return discrete_renyi_divergence(a, b, *points, np.array([0.0, exponent])[has])

    return renyi_divergences(a, value)


def randomised_response(alphas: npt.ArrayLike, epsilon: float, categories: int = 2) -> Floats:
    """Compute the Renyi divergences of randomised response with k answers, for each order alpha.

    The mechanism returns each of the k - 1 wrong answers with probability
    ``o = 1 / (e^epsilon + k - 1)``, and otherwise the true answer. The two inputs are two different
    true answers. For any two true answers, the divergence D_alpha of the outputs is
    ``ln(o (e^{alpha epsilon} + e^{(1 - alpha) epsilon} + k - 2)) / (alpha - 1)``. At order inf, the
    divergence is epsilon.

    Args:
        alphas: orders above 0, or inf; any shape.
        epsilon: ln(probability of the true answer / probability of one wrong answer), in (0,
            1e300].
        categories: number k of answers, at least 2.

    Returns:
        Divergences in nats, in the shape of `alphas`.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if an argument is out of range.

    Source:
        Mironov (2017), proposition 5, for two answers; Kairouz, Oh and Viswanath (2014), section 4,
        for the mechanism with k answers.

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
    return renyi_divergences(a, lambda i, a, b, swap: discrete_renyi_divergence(a, b, *points))


def gaussian_mechanism(alphas: npt.ArrayLike, sensitivity: float, sigma: float) -> Floats:
    """Compute the Renyi DP of Gaussian noise, ``alpha (sensitivity / sigma)^2 / 2`` for each order.

    Args:
        alphas: orders above 0, or inf; any shape.
        sensitivity: largest L2 distance between the results for two neighbouring inputs, before
            noise is added.
        sigma: standard deviation of the noise, in the same units as `sensitivity`.

    Returns:
        For each order alpha, the smallest tau for which (alpha, tau)-RDP holds, in nats.

    Raises:
        TypeError: if an argument does not hold real numbers.
        ValueError: if an order is not above 0, or another number is not in (0, 1e300].

    Source:
        Mironov (2017), proposition 7.

    Example:
        >>> gaussian_mechanism([1.0, 2.0, 32.0], 1.0, 4.0)
        array([0.03125, 0.0625 , 1.     ])
    """
    apart, sigma = positive("sensitivity", sensitivity), positive("sigma", sigma)
    return gaussian_renyi(alphas, apart, sigma, 0.0, sigma)


def laplace_mechanism(alphas: npt.ArrayLike, sensitivity: float, scale: float) -> Floats:
    """Compute the Renyi DP of Laplace noise, for each order.

    The Renyi DP is D_alpha of two Laplace distributions whose means differ by `sensitivity`. The
    mechanism may also release a vector with independent noise on every entry. For orders of at
    least 1, the Renyi DP of the vector is the same. The reason is that D_alpha of one entry is a
    convex function of the distance of the means, and is 0 at distance 0. Therefore the sum over the
    entries is largest if only one entry differs.

    Args:
        alphas: orders above 0, or inf; any shape.
        sensitivity: largest L1 distance between the results for two neighbouring inputs, before
            noise is added.
        scale: scale of the noise, in the same units as `sensitivity`.

    Returns:
        For each order alpha, the smallest tau for which (alpha, tau)-RDP holds, in nats.

    Raises:
        TypeError: if an argument does not hold real numbers.
        ValueError: if an order is not above 0, or another number is not in (0, 1e300].

    Source:
        Mironov (2017), proposition 6.

    Example:
        >>> laplace_mechanism([1.0, 2.0, np.inf], 1.0, 2.0).round(4)
        array([0.1065, 0.2003, 0.5   ])
    """
    return laplace_renyi(alphas, positive("scale", scale), positive("sensitivity", sensitivity))
