"""The largest probability of an event along a segment of Bernoulli rates, as a proven ceiling.

Let J and J' be independent, Binomial(n, p) and Binomial(n', q), and let (p, q) move along a
segment, p = slope q + shift. The probability g(q) of any event of (J, J') is then a polynomial in
q, so it can be followed into the complex plane, where its size is at most

    (|p| + |1 - p|)^n (|q| + |1 - q|)^n',

because sum_j C(n, j) |p|^j |1-p|^(n-j) is the first factor, and likewise for J'. A function
bounded by M on the ellipse with foci at the ends of the segment and semi-axes summing to rho (in
half-lengths) lies within 4 M rho^(1-N)/(rho - 1) of its interpolant in N Chebyshev points
(Trefethen, 2013, theorem 8.2: twice the sum of the Chebyshev coefficients left out, each at most
2 M rho^-k; in the points used here, the zeros of T_N, they alias alike). The interpolant's own
maximum is read off a grid with the lemma of M. Riesz: about its maximum a trigonometric polynomial
of degree d falls no faster than cos(d theta), so on a grid of G Chebyshev angles the spread is
missed by a factor of at most 1/cos(pi d / 2G). Nothing is sampled that is not bounded in between.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

_Floats = npt.NDArray[np.float64]

_CHEBYSHEV_NODES = (16, 24, 32, 40, 48, 64, 96)
_FINER_GRID_FACTOR = 32
_ELLIPSE_RADII = 1.0 + np.geomspace(0.15, 8.0, 24)
_PROBABILITY_ROUNDING = 1e-13


def supremum_bound(
    probability: Callable[[_Floats], _Floats],
    low: float,
    high: float,
    line: tuple[float, float],
    trials: tuple[int, int],
    budget: float,
    relative: float,
) -> float:
    """Compute an upper bound on a probability over all q in [low, high].

    Args:
        probability: maps interior points q to the probability of one event, each value within
            `budget` plus `relative` times itself.
        low: lower end of the segment.
        high: upper end; equal ends are one point.
        line: (slope, shift) of p = slope q + shift.
        trials: (n, n').
        budget: absolute error that the interpolation may add, above 0.
        relative: relative error of `probability`.

    Returns:
        A number that no value in the segment exceeds.
    """
    nodes, error = _choose_degree(low, high, line, trials, budget)
    if error > budget:
        middle = (low + high) / 2.0
        halves = ((low, middle), (middle, high))
        return max(
            supremum_bound(probability, a, b, line, trials, budget, relative) for a, b in halves
        )
    points, matrix = _interpolation_matrix(nodes)
    values = probability((low + high) / 2.0 + (high - low) / 2.0 * points)
    curve = matrix @ values
    top, bottom = float(curve.max()), float(curve.min())
    missed = (top - bottom) * (1.0 / math.cos(math.pi / (2.0 * _FINER_GRID_FACTOR)) - 1.0) / 2.0
    # Errors of the values are amplified by at most the Lebesgue constant.
    lebesgue = 1.0 + 2.0 / math.pi * math.log(nodes + 1.0)
    noise = budget + _PROBABILITY_ROUNDING + relative * float(values.max())
    return top + missed + error + lebesgue * noise


def _choose_degree(
    low: float, high: float, line: tuple[float, float], trials: tuple[int, int], budget: float
) -> tuple[int, float]:
    """Choose Chebyshev points that keep the interpolation error within budget; return the error."""
    slope, shift = line
    half, centre = (high - low) / 2.0, (high + low) / 2.0
    wide, tall = (
        half * (_ELLIPSE_RADII + 1.0 / _ELLIPSE_RADII) / 2.0,
        half * (_ELLIPSE_RADII - 1.0 / _ELLIPSE_RADII) / 2.0,
    )
    log_size = trials[1] * np.log1p(_largest_excess(centre, wide, tall))
    log_size += trials[0] * np.log1p(
        _largest_excess(slope * centre + shift, slope * wide, slope * tall)
    )
    for nodes in _CHEBYSHEV_NODES:
        log_error = (
            log_size
            + math.log(4.0)
            + (1 - nodes) * np.log(_ELLIPSE_RADII)
            - np.log(_ELLIPSE_RADII - 1.0)
        )
        least = float(log_error.min())
        if least <= math.log(budget):
            break
    return nodes, math.exp(min(least, 0.0))


def _largest_excess(centre: float, wide: _Floats, tall: _Floats) -> _Floats:
    """Compute the largest |z| + |1 - z| - 1 on an ellipse, bounded by the box around it.

    The sum is convex in the real part and grows with the imaginary one: a corner has the most.
    """
    return np.maximum(_corner_excess(centre - wide, tall), _corner_excess(centre + wide, tall))


def _corner_excess(real: _Floats, imaginary: _Floats) -> _Floats:
    def beyond(x: _Floats) -> _Floats:
        # |x + iy| - x without the cancellation at small y.
        size = np.hypot(x, imaginary)
        return np.where(x > 0.0, imaginary**2 / (size + np.abs(x) + 1e-300), size - x)

    return beyond(real) + beyond(1.0 - real)


@lru_cache(maxsize=16)
def _interpolation_matrix(nodes: int) -> tuple[_Floats, _Floats]:
    """Return first-kind Chebyshev points, and the matrix from values there to a finer grid."""
    order = np.arange(nodes)
    angles = (order + 0.5) * (math.pi / nodes)
    finer = np.arange(_FINER_GRID_FACTOR * nodes + 1) * (math.pi / (_FINER_GRID_FACTOR * nodes))
    coefficients = np.cos(np.outer(order, angles)) * (2.0 / nodes)
    coefficients[0] /= 2.0
    matrix: _Floats = np.cos(np.outer(finer, order)) @ coefficients
    return np.cos(angles), matrix
