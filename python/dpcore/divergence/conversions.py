"""Conversions of a curve of Renyi divergences into an epsilon.

If the divergences are upper bounds, such as the closed forms of a mechanism, both conversions give
upper bounds on epsilon. If the divergences are estimates, both conversions give estimates of
epsilon, which are neither upper nor lower bounds. Each conversion takes a minimum over the orders.
If divergences are estimates, this minimum tends to select an order whose estimate is too small.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import confidence_level, invalid, numeric
from ..records import Floats, Record
from ..suggestions import explain_argument_errors

_CurvePoint = tuple[float, float]

SEEN: Final = 10
"""A delta is too small for two samples if delta times the size of the smaller one is below this."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Converted(Record):
    """The smallest epsilon from Renyi divergences at several orders, and the order that gives it.

    Args:
        epsilon: epsilon, at least 0; inf if no order gives a finite value.
        alpha: order that gives the smallest epsilon, or None if no epsilon is finite.
        delta: delta for which the epsilon was computed.

    Example:
        >>> print(Converted(1.5, 8.0, 1e-5))
        epsilon 1.5 at delta 1e-05 (decided at alpha = 8)
    """

    epsilon: float
    alpha: float | None
    delta: float

    def __str__(self) -> str:
        """Return epsilon, delta and the order in one line of text."""
        order = "no order decides" if self.alpha is None else f"decided at alpha = {self.alpha:.4g}"
        return f"epsilon {self.epsilon:.6g} at delta {self.delta:g} ({order})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Line(Record, word="Line"):
    """A straight line xi + rho alpha above Renyi divergences, and the epsilon that it implies.

    Args:
        xi: intercept of the line, at least 0.
        rho: slope of the line in the order alpha, at least 0.
        epsilon: epsilon of the line, ``xi + rho a + ln(1/delta) / (a - 1)``.
        alpha: the order ``a`` in the formula for `epsilon`. It lies between the smallest and the
            largest order at which a divergence was given.
        delta: delta for which the epsilon was computed.

    Example:
        >>> print(Line(0.0, 0.5, 5.3, 5.8, 1e-5))
        epsilon 5.3 at delta 1e-05 (line 0 + 0.5 alpha, at alpha = 5.8)
    """

    xi: float
    rho: float
    epsilon: float
    alpha: float
    delta: float

    def __str__(self) -> str:
        """Return epsilon, delta and the order in one line of text."""
        formula = f"line {self.xi:.4g} + {self.rho:.4g} alpha, at alpha = {self.alpha:.4g}"
        return f"epsilon {self.epsilon:.6g} at delta {self.delta:g} ({formula})"


@explain_argument_errors
def canonne_kamath_steinke(alphas: npt.ArrayLike, values: npt.ArrayLike, delta: float) -> Converted:
    """Convert Renyi divergences at several orders into an epsilon at one delta.

    Each order gives an epsilon, and the result is the smallest. Let D be the divergence of order
    alpha. The epsilon of this order is ``D + ln(1 - 1/alpha) - ln(alpha delta) / (alpha - 1)``, or
    0 if this value is negative. For the order inf, epsilon is D. Epsilon is also 0 if
    ``delta^2 >= 1 - e^-D``, because the total variation distance is at most sqrt(1 - e^-D) and
    therefore at most delta.

    Args:
        alphas: orders above 1, ascending, shape (n,); the last order may be inf.
        values: divergence at each order in nats, shape (n,). Give the larger one of D(P0||P1) and
            D(P1||P0). Give inf if a divergence is unknown.
        delta: delta in (0, 1).

    Returns:
        The smallest epsilon, and the order that gives it. Epsilon is an upper bound if `values` are
        upper bounds. If `values` are estimates, epsilon is an estimate that may be too small or too
        large.

    Raises:
        TypeError: if an argument does not hold real numbers.
        ValueError: if orders are not above 1 and ascending, if lengths differ, if a value is NaN or
            -inf, or if delta is out of range.

    Source:
        Canonne, Kamath and Steinke (2020), proposition 12; Balle et al. (2020), theorem 21. For
        epsilon 0: total variation^2 <= 1 - e^-KL (Bretagnolle and Huber 1979) and KL <= D.

    Example:
        >>> from dpcore.divergence.closed_forms import gaussian_mechanism
        >>> orders = 1.01 * 1.01 ** np.arange(400)
        >>> print(canonne_kamath_steinke(orders, gaussian_mechanism(orders, 1.0, 1.0), 1e-5))
        epsilon 4.72839 at delta 1e-05 (decided at alpha = 5.428)
    """
    a, d = _check_curve(alphas, values, unbounded=True)
    delta = confidence_level(delta, "delta")
    b = a - 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        # ln(b/a) for ln(1 - 1/a), and ln(a) + ln(delta): 1/a and a delta would be rounded.
        cost = np.log1p(-1.0 / a) - (np.log(a) + math.log(delta)) / b
        none = delta * delta >= -np.expm1(-d)
    epsilons = d + np.where(np.isinf(a), 0.0, cost)
    epsilons = np.where(none, 0.0, np.maximum(epsilons, 0.0))
    i = int(np.argmin(epsilons))
    epsilon = float(epsilons[i])
    return Converted(epsilon, None if math.isinf(epsilon) else float(a[i]), delta)


@explain_argument_errors
def line(alphas: npt.ArrayLike, values: npt.ArrayLike, delta: float) -> Line:
    """Find the straight line above the given Renyi divergences that gives the smallest epsilon.

    The candidates are all lines xi + rho alpha, with xi >= 0 and rho >= 0, that are on or above
    every given divergence. The epsilon of a line is ``xi + rho a + ln(1/delta) / (a - 1)`` with
    ``a = clip(1 + sqrt(ln(1/delta) / rho), smallest order, largest order)``. For a fixed value of
    ``a``, this epsilon is linear in xi and rho. Therefore the best line (xi, rho) is a vertex of
    the set of candidates. Such a line is horizontal, goes through the origin, or contains an edge
    of the upper concave hull of the given points.

    Between two given orders, the true divergence may be above the line. Therefore give orders with
    a spacing of at most 0.1. The function `canonne_kamath_steinke` uses only the given orders, and
    gives a smaller epsilon than this function.

    Args:
        alphas: finite orders above 1, ascending, shape (n,).
        values: divergence at each order in nats, shape (n,), finite. Give the larger one of
            D(P0||P1) and D(P1||P0).
        delta: delta in (0, 1).

    Returns:
        The line and its epsilon. Epsilon is an upper bound if the line is above the true
        divergences at all orders. If `values` are estimates, epsilon is an estimate that may be too
        small or too large.

    Raises:
        TypeError: if an argument does not hold real numbers.
        ValueError: if orders are not above 1 and ascending, if lengths differ, if a value is not
            finite, or if delta is out of range.

    Source:
        Bun and Steinke (2016), definition 1.1 and proposition 1.3, with limits on ``a``; Mironov
        (2017), proposition 3, for a single order.

    Example:
        >>> from dpcore.divergence.closed_forms import gaussian_mechanism
        >>> orders = 1.1 ** np.arange(1, 45)
        >>> print(line(orders, gaussian_mechanism(orders, 1.0, 1.0), 1e-5))
        epsilon 5.29853 at delta 1e-05 (line 0 + 0.5 alpha, at alpha = 5.799)
    """
    a, d = _check_curve(alphas, values, unbounded=False)
    delta = confidence_level(delta, "delta")
    price, lines = -math.log(delta), []
    for xi, rho in _hull_intercepts_and_slopes(a, d):
        best = 1.0 + math.sqrt(price / rho) if rho > 0.0 else math.inf
        alpha = min(max(best, float(a[0])), float(a[-1]))
        lines.append((xi + rho * alpha + price / (alpha - 1.0), xi, rho, alpha))
    epsilon, xi, rho, alpha = min(lines)
    return Line(xi, rho, epsilon, alpha, delta)


def _hull_intercepts_and_slopes(a: Floats, d: Floats) -> list[tuple[float, float]]:
    """List the intercept and slope (xi, rho) of each line that may have the smallest epsilon."""
    lines = [(max(0.0, float(d.max())), 0.0), (0.0, max(0.0, float((d / a).max())))]
    hull: list[_CurvePoint] = []
    for point in zip(a.tolist(), d.tolist(), strict=True):
        while len(hull) > 1 and _is_on_or_below_chord(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    for (x0, y0), (x1, y1) in pairwise(hull):
        rho = (y1 - y0) / (x1 - x0)
        # Take the larger of two roundings: both end points stay below the line.
        xi = max(y0 - rho * x0, y1 - rho * x1)
        if rho >= 0.0 and xi >= 0.0:
            lines.append((xi, rho))
    return lines


def _is_on_or_below_chord(first: _CurvePoint, middle: _CurvePoint, last: _CurvePoint) -> bool:
    """Return True if the middle point is on or below the segment between the other two points."""
    rise, run = last[1] - first[1], last[0] - first[0]
    return (middle[1] - first[1]) * run <= rise * (middle[0] - first[0])


def _check_curve(alphas: Any, values: Any, unbounded: bool) -> tuple[Floats, Floats]:
    a, d = _read_numbers("alphas", alphas), _read_numbers("values", values)
    ends = a[:-1] if unbounded else a
    if not (np.isfinite(ends).all() and (a > 1.0).all() and (np.diff(a) > 0.0).all()):
        kind = "" if unbounded else "finite "
        raise invalid("alphas", f"{kind}orders above 1, ascending", alphas)
    if d.size != a.size:
        raise invalid("values", f"of length {a.size}, as alphas is", d.size)
    if np.isnan(d).any() or np.isneginf(d).any() or (not unbounded and np.isinf(d).any()):
        raise invalid("values", "numbers or inf" if unbounded else "finite numbers", values)
    return a, d


def _read_numbers(name: str, value: Any) -> Floats:
    requirement = "a non-empty vector of numbers"
    numbers = numeric(name, requirement, value, "uif")
    if numbers.ndim != 1 or numbers.size == 0:
        raise invalid(name, requirement, value)
    return numbers.astype(np.float64)
