"""Renyi divergences in closed form: laws, atoms, and the curves of mechanisms.

Every function takes orders of any shape and returns D_alpha(P0||P1) in nats in the same shape: at
order 1 the Kullback-Leibler divergence, at inf the logarithm of the largest ratio of densities,
and inf where the divergence is infinite or beyond the range of float64. Relative errors are below
1e-12, for orders next to 1, huge orders and laws that hardly differ as well. They are sums of
terms of one sign.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ..errors import integer, invalid, real
from ..mechanisms import positive
from .families import (
    compare_laws,
    correlated_divergence,
    discrete_divergence,
    log_ratio,
    normal_divergence,
    normal_limit,
    one_minus_power,
    power_gap,
    scale_divergence,
    shift_divergence,
    split_atom,
)
from .orders import (
    by_order,
    by_part,
    extrapolate_orders,
    read_coordinates,
    read_covariance,
    read_deviations,
    read_orders,
    read_probabilities,
    same_length,
)
from .raw import Reals

__all__ = [
    "discrete",
    "exponential",
    "gaussian",
    "gaussian_mechanism",
    "laplace",
    "laplace_mechanism",
    "mixture_with_atom",
    "randomised_response",
]


def gaussian(
    alphas: npt.ArrayLike,
    mean0: npt.ArrayLike,
    sigma0: npt.ArrayLike,
    mean1: npt.ArrayLike,
    sigma1: npt.ArrayLike,
) -> Reals:
    """Compute D_alpha of two normal laws.

    In every coordinate ``ln(s1/s0) + ln(s1^2/s^2) / (2 (alpha - 1)) + alpha (m0 - m1)^2 / (2 s^2)``
    with ``s^2 = alpha s1^2 - (alpha - 1) s0^2``, inf where s^2 <= 0; coordinates add up.

    Args:
        alphas: orders above 0, or inf; any shape.
        mean0: mean of P0: a number for every coordinate, or a vector.
        sigma0: standard deviation of P0: a number, a vector of one for each coordinate, or a
            matrix, which is read as the covariance (its square).
        mean1: mean of P1.
        sigma1: standard deviation of P1, or covariance matrix.

    Returns:
        Divergences in nats, in the shape of `alphas`. With a matrix they are as accurate as its
        condition allows.

    Raises:
        TypeError: if an argument does not hold real numbers.
        ValueError: if an order is not above 0, a deviation not in (0, 1e300], a matrix not
            symmetric and positive definite, or lengths differ.

    Source:
        van Erven and Harremoes (2014), equation 10; Gil, Alajaji and Linder (2013), tables 1, 2.

    Example:
        >>> gaussian([1.0, 2.0, 4.0], 0.0, 1.0, 1.0, 1.0)
        array([0.5, 1. , 2. ])
        >>> gaussian([1.2, 1.5], 0.0, 2.0, 0.0, 1.0).round(4)
        array([1.5976,    inf])
    """
    a = read_orders(alphas)
    means = read_coordinates("mean0", mean0), read_coordinates("mean1", mean1)
    same_length(mean0=means[0], mean1=means[1])
    shift = means[0] - means[1]
    if max(np.ndim(sigma0), np.ndim(sigma1)) == 2:
        return correlated_divergence(
            a, shift, read_covariance("sigma0", sigma0), read_covariance("sigma1", sigma1)
        )
    wide = read_deviations("sigma0", sigma0), read_deviations("sigma1", sigma1)
    same_length(mean0=shift, sigma0=wide[0], sigma1=wide[1])

    def part(a: Reals, b: Reals, swap: bool) -> Reals:
        s0, s1 = wide[::-1] if swap else wide
        mid = power_gap(b, s0, s1, 2)
        # Below order 1 a sum of squares, which does not leave the range of float64.
        low = np.hypot(np.sqrt(a) * s1, np.sqrt(np.abs(b)) * s0)
        root = np.where(b < 0.0, low, s1 * np.sqrt(mid))
        return normal_divergence(
            a, b, one_minus_power(s0, s1, 2), 2.0 * log_ratio(s0, s1), mid, shift / root
        )

    def limit() -> float:
        return normal_limit(one_minus_power(*wide, 2), 2.0 * log_ratio(*wide), shift / wide[1])

    return by_part(a, part, limit)


def laplace(
    alphas: npt.ArrayLike,
    scale: npt.ArrayLike,
    shift: npt.ArrayLike,
    scale1: npt.ArrayLike | None = None,
) -> Reals:
    """Compute D_alpha of two Laplace laws at distance `shift`.

    With one scale and e = abs(shift)/scale, ``ln(alpha/(2 alpha - 1) e^{(alpha - 1) e} +
    (alpha - 1)/(2 alpha - 1) e^{-alpha e}) / (alpha - 1)`` in every coordinate; e at inf.
    Coordinates add up.

    Args:
        alphas: orders above 0, or inf; any shape.
        scale: scale of P0, in the units of the shift: a number or a vector.
        shift: distance of the means, of either sign: a number or a vector.
        scale1: scale of P1; None for that of P0.

    Returns:
        Divergences in nats, in the shape of `alphas`.

    Raises:
        TypeError: if an argument does not hold real numbers.
        ValueError: if an order is not above 0, a scale not in (0, 1e300], or lengths differ.

    Source:
        Gil, Alajaji and Linder (2013), table 2; Mironov (2017), proposition 6.

    Example:
        >>> laplace([0.5, 1.0, 2.0, np.inf], 1.0, 1.0).round(4)
        array([0.1891, 0.3679, 0.6191, 1.    ])
    """
    a = read_orders(alphas)
    apart = np.abs(read_coordinates("shift", shift))
    wide0 = read_deviations("scale", scale)
    wide1 = wide0 if scale1 is None else read_deviations("scale1", scale1)
    same_length(shift=apart, scale=wide0, scale1=wide1)
    wide = wide0, wide1

    def part(a: Reals, b: Reals, swap: bool) -> Reals:
        s0, s1 = wide[::-1] if swap else wide
        found = scale_divergence(
            a, b, one_minus_power(s0, s1, 1), log_ratio(s0, s1), power_gap(b, s0, s1, 1)
        )
        # The shift's part from the side on which its own terms have one sign.
        w = a * (s1 / s0) + b
        plain = shift_divergence(b, np.maximum(w, 0.0), apart / s1)
        other = shift_divergence(-a, np.maximum(-w * (s0 / s1), 0.0), apart / s0) * (a / -b)
        return found + np.where(w < 0.0, other, plain)

    def limit() -> float:
        found = np.where(wide0 <= wide1, apart / wide1 - log_ratio(*wide), np.inf)
        return float(found.sum())

    return by_part(a, part, limit)


def exponential(alphas: npt.ArrayLike, rate0: float, rate1: float) -> Reals:
    """Compute D_alpha of two exponential laws that begin at the same point.

    ``ln(l0/l1) + ln(l0/(alpha l0 - (alpha - 1) l1)) / (alpha - 1)``, inf where
    ``alpha l0 <= (alpha - 1) l1``.

    Args:
        alphas: orders above 0, or inf; any shape.
        rate0: rate l0 of P0: one over its mean.
        rate1: rate l1 of P1.

    Returns:
        Divergences in nats, in the shape of `alphas`.

    Raises:
        TypeError: if an argument does not hold real numbers.
        ValueError: if an order is not above 0 or a rate not in (0, 1e300].

    Source:
        Gil, Alajaji and Linder (2013), table 2.

    Example:
        >>> exponential([1.0, 2.0, 4.0], 1.5, 1.0).round(3)
        array([0.072, 0.118, 0.174])
    """
    a = read_orders(alphas)
    rates = np.array([positive("rate0", rate0)]), np.array([positive("rate1", rate1)])

    def part(a: Reals, b: Reals, swap: bool) -> Reals:
        # The ratio of the scales is that of the rates, upside down.
        one, other = rates if swap else rates[::-1]
        return scale_divergence(
            a, b, one_minus_power(one, other, 1), log_ratio(one, other), power_gap(b, one, other, 1)
        )

    return by_part(
        a, part, lambda: float(log_ratio(*rates)[0]) if rates[0] >= rates[1] else math.inf
    )


def discrete(alphas: npt.ArrayLike, p: npt.ArrayLike, q: npt.ArrayLike) -> Reals:
    """Compute D_alpha of two laws on the same finitely many points.

    ``ln(sum of p^alpha q^(1 - alpha)) / (alpha - 1)``; inf for alpha >= 1 where q is 0 on a point
    that p has, and for all orders where no point is common.

    Args:
        alphas: orders above 0, or inf; any shape.
        p: probabilities of P0, shape (n,), that sum to 1 within 1e-9 and are then divided by
            their sum.
        q: probabilities of P1, shape (n,), treated alike.

    Returns:
        Divergences in nats, in the shape of `alphas`.

    Raises:
        TypeError: if an argument does not hold real numbers.
        ValueError: if an order is not above 0, a probability is negative, a sum is not 1 or
            lengths differ.

    Source:
        van Erven and Harremoes (2014), equation 1.

    Example:
        >>> discrete([1.0, 2.0, 4.0], [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]).round(6)
        array([0.274887, 0.48858 , 0.698328])
    """
    a = read_orders(alphas)
    p0, p1 = read_probabilities("p", p), read_probabilities("q", q)
    if p0.size != p1.size:
        raise invalid("q", f"of length {p0.size}, as p is", p1.size)
    sums = math.fsum(p0.tolist()), math.fsum(p1.tolist())
    # ln of the sums' ratio, from the exact difference: laws may differ by less than they round.
    gap = math.log1p(math.fsum([*p0.tolist(), *(-p1).tolist()]) / sums[1])
    sides = compare_laws(p0, p1, -gap, sums), compare_laws(p1, p0, gap, sums[::-1])
    return by_order(a, lambda i, a, b, swap: discrete_divergence(a, b, *sides[swap]))


def mixture_with_atom(
    alphas: npt.ArrayLike,
    weight0: float,
    weight1: float,
    rest: npt.ArrayLike | Callable[[Reals], npt.ArrayLike],
) -> Reals:
    """Compute D_alpha of two laws that share an atom, with a rest that has no mass there.

    ``ln(w0^alpha w1^(1 - alpha) + (1 - w0)^alpha (1 - w1)^(1 - alpha) e^{(alpha - 1) R}) /
    (alpha - 1)``, R the divergence of the rests.

    Args:
        alphas: orders above 0, or inf; any shape.
        weight0: probability w0 of the atom under P0.
        weight1: probability w1 of the atom under P1.
        rest: D_alpha of the rest of P0 from the rest of P1 in nats: an array in the shape of
            `alphas`, a number, or a function of `alphas`.

    Returns:
        Divergences in nats, in the shape of `alphas`.

    Raises:
        TypeError: if an argument does not hold real numbers.
        ValueError: if an order is not above 0, a weight not in [0, 1], or a value of `rest`
            negative or NaN.

    Source:
        van Erven and Harremoes (2014), definition 2 and equation 9, on the atom and on the rest.

    Example:
        >>> plane = lambda orders: gaussian(orders, [0.5, 0.0], 1.0, 0.0, 1.0)
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
        given = within[i] * (a / -b) if swap else within[i]
        return discrete_divergence(a, b, *points, np.array([0.0, given])[has])

    return by_order(a, value)


def randomised_response(alphas: npt.ArrayLike, epsilon: float, categories: int = 2) -> Reals:
    """Compute the RDP curve of k-ary randomised response, for any two different true values.

    ``ln(o (e^{alpha epsilon} + e^{(1 - alpha) epsilon} + k - 2)) / (alpha - 1)``,
    ``o = 1 / (e^epsilon + k - 1)`` the probability of each wrong answer; epsilon at inf.

    Args:
        alphas: orders above 0, or inf; any shape.
        epsilon: logarithm of the ratio of the true answer's probability to a wrong one's, in
            (0, 1e300].
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
    log_p, losses = [keep, keep - loss], [loss, -loss]
    if others > 1:
        log_p.append(math.log(others - 1) + keep - loss)
        losses.append(0.0)
    points = np.array(log_p), np.array(losses), 0.0
    # Exchanging the two truths only exchanges their points.
    return by_order(a, lambda i, a, b, swap: discrete_divergence(a, b, *points))


def gaussian_mechanism(alphas: npt.ArrayLike, sensitivity: float, sigma: float) -> Reals:
    """Compute the RDP curve of Gaussian noise: ``alpha (sensitivity / sigma)^2 / 2``.

    Args:
        alphas: orders above 0, or inf; any shape.
        sensitivity: largest L2 distance of two neighbours, in the units of the input.
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
    return gaussian(
        alphas, positive("sensitivity", sensitivity), positive("sigma", sigma), 0.0, sigma
    )


def laplace_mechanism(alphas: npt.ArrayLike, sensitivity: float, scale: float) -> Reals:
    """Compute the RDP curve of Laplace noise: `laplace` at the distance `sensitivity`.

    With noise in every entry it holds, from order 1 on, for inputs within the L1 distance
    `sensitivity`: the curve is convex in the distance and 0 at 0, so that a distance in one entry
    costs most.

    Args:
        alphas: orders above 0, or inf; any shape.
        sensitivity: largest L1 distance of two neighbours, in the units of the input.
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
    return laplace(alphas, positive("scale", scale), positive("sensitivity", sensitivity))
