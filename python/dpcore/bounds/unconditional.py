"""Inverted unconditional test: the sharpest bound for numbers of draws fixed in advance.

The test needs the largest probability of an event along a segment of Bernoulli rates. This module
computes a proven upper bound on it, from binomial probabilities on a window of equal cells.

Let J and J' be independent, Binomial(n, p) and Binomial(n', q), and let (p, q) move along a
segment, p = slope q + shift. The probability g(q) of any event of (J, J') is then a polynomial in
q, so it extends to complex q. There its absolute value is at most

    (|p| + |1 - p|)^n (|q| + |1 - q|)^n',

because sum_j C(n, j) |p|^j |1-p|^(n-j) is the first factor, and likewise for J'. Consider the
ellipse with foci at the ends of the segment and with semi-axes whose sum is rho (in half-lengths of
the segment). A function bounded by M on this ellipse lies within 4 M rho^(1-N)/(rho - 1) of its
interpolant in N Chebyshev points (Trefethen, 2013, theorem 8.2). The bound is twice the sum of the
omitted Chebyshev coefficients, each of which is at most 2 M rho^-k. For the points used here, the
zeros of T_N, the coefficients alias in the same way. The maximum of the interpolant is found on a
grid with the lemma of M. Riesz: near its maximum, a trigonometric polynomial of degree d falls no
faster than cos(d theta). So a grid of G Chebyshev angles misses the range by a factor of at most
1/cos(pi d / 2G). The result is therefore a bound between the sampled points too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import confidence_level, delta_level, instance
from ..records import Counts, Floats
from ..suggestions import suggest_arguments
from .binomial import Declared, clopper_pearson, limits

_CELLS_PER_DEVIATION = 512.0
_MAX_LOG_ODDS_STEP = 700.0

_CHEBYSHEV_NODES = (16, 24, 32, 40, 48, 64, 96)
_FINER_GRID_FACTOR = 32
_ELLIPSE_RADII = 1.0 + np.geomspace(0.15, 8.0, 24)
_PROBABILITY_ROUNDING = 1e-13

_CutFunction = Callable[[Floats], Floats]

_RECTANGLE_SHARE = 1e-3
"""Share of the error probability that is spent on the rectangle of (p, q)."""
_WINDOW_TAIL = 1e-7
_SUPREMUM_BUDGET = 1e-5
_MIN_NORMAL_SCORE = 0.5
_FIRST_LABEL = -50.0
_BOUNDARY_SECTIONS = 6
_ROOT_TOLERANCE = 1e-4
_MAX_DRAWS = 2**40
"""Largest number of draws. Beyond it, doubles do not distinguish rates close to 1."""


class Cells(NamedTuple):
    """Cells of `width` outcomes that begin at `first`, and their log masses at a reference rate."""

    trials: int
    first: int
    width: int
    log_mass: Floats
    offset: Floats
    log_odds: float
    error: float
    """Relative error of a mass."""


def cell_window(n: int, low: float, high: float, tail: float) -> Cells:
    """Return a window that Binomial(n, p) leaves with probability <= 2 `tail`, p in [low, high].

    The window follows from Bernstein's inequality. Cells are single outcomes unless the
    distribution is wide. Then a cell is 1/512 of a standard deviation, and its mass is computed at
    its middle. The relative error is (width/deviation)^2 (z^2 + 1)/24 at z standard deviations.

    Args:
        n: trials.
        low: smallest rate.
        high: largest rate.
        tail: probability of each tail outside the window.

    Returns:
        The cells.
    """
    t = math.log(1.0 / tail)
    below, above = n * low - _window_reach(n, low, t), n * high + _window_reach(n, high, t)
    first, last = max(0, math.floor(below)), min(n, math.ceil(above))
    deviation = math.sqrt(n * min(low * (1.0 - low), high * (1.0 - high)))
    width = max(1, int(deviation / _CELLS_PER_DEVIATION))
    start: npt.NDArray[np.int64] = width * np.arange((last - first) // width + 1)
    rate = min(max((low + high) / 2.0, 1.0 / (2.0 * n)), 1.0 - 1.0 / (2.0 * n))
    log_odds = math.log(rate) - math.log1p(-rate)
    if width == 1:
        # C(n, j+1)/C(n, j) = (n-j)/(j+1) avoids a difference of large logarithms for every n.
        ratio = ((n - first) - start[:-1]) / (first + 1.0 + start[:-1])
        log_mass = np.concatenate(([0.0], np.cumsum(np.log(ratio) + log_odds)))
        error = 1e-9 + n * 2.0**-51
    else:
        middle = (first + start + (width - 1) / 2.0).astype(np.float64)
        log_mass = _log_binomial(n, rate, middle)
        reach = max(above - n * low, n * high - below) / deviation
        error = (width / deviation) ** 2 * (reach**2 + 1.0) / 12.0 + 1e-6
    centre = round(n * rate) - first
    offset = (start - centre).astype(np.float64)
    return Cells(n, first, width, log_mass, offset, log_odds, error)


def _window_reach(n: int, rate: float, t: float) -> float:
    return t / 3.0 + math.sqrt(t * t / 9.0 + 2.0 * n * rate * (1.0 - rate) * t)


def _log_binomial(n: int, rate: float, x: Floats) -> Floats:
    """Compute the log binomial probability up to a constant, for counts above 1e5."""
    mean, rest = n * rate, n * (1.0 - rate)
    y, d = n - x, x - mean
    deviance = x * np.log1p(d / mean) + y * np.log1p(-d / rest)
    return -deviance - np.log(x / mean * (y / rest)) / 2.0 - (1 / x + 1 / y) / 12.0


def cell_masses(window: Cells, rates: Floats) -> Floats:
    """Compute the cells' masses at every rate, shape `(rates, cells)`; each row sums to 1.

    The masses are divided by the sum over the window. So a mass is too large by the share of the
    omitted tails, and never too small.
    """
    with np.errstate(divide="ignore"):
        log_odds = np.log(rates) - np.log1p(-rates)
    step = np.clip(log_odds - window.log_odds, -_MAX_LOG_ODDS_STEP, _MAX_LOG_ODDS_STEP)
    mass = step[:, np.newaxis] * window.offset
    mass += window.log_mass
    mass -= mass.max(axis=1, keepdims=True)
    np.exp(mass, out=mass)
    mass /= mass.sum(axis=1, keepdims=True)
    return mass


def supremum_bound(
    probability: Callable[[Floats], Floats],
    low: float,
    high: float,
    line: tuple[float, float],
    trials: tuple[int, int],
    budget: float,
    relative: float,
) -> float:
    """Compute an upper bound on a probability over all q in [low, high].

    Args:
        probability: function that maps interior points q to the probability of one event. The error
            of each value is at most `budget` plus `relative` times the value.
        low: lower end of the segment.
        high: upper end of the segment. It may equal `low`.
        line: (slope, shift) of p = slope q + shift.
        trials: the numbers of trials (n, n').
        budget: absolute error that the interpolation may add, above 0.
        relative: relative error of `probability`.

    Returns:
        A number that is at least the probability everywhere in the segment.
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
    """Choose the number of Chebyshev points that keeps the error within budget; return both."""
    slope, shift = line
    half, centre, radii = (high - low) / 2.0, (high + low) / 2.0, _ELLIPSE_RADII
    wide, tall = half * (radii + 1.0 / radii) / 2.0, half * (radii - 1.0 / radii) / 2.0
    log_size = trials[1] * np.log1p(_largest_excess(centre, wide, tall))
    excess = _largest_excess(slope * centre + shift, slope * wide, slope * tall)
    log_size += trials[0] * np.log1p(excess)
    for nodes in _CHEBYSHEV_NODES:
        log_error = log_size + math.log(4.0) + (1 - nodes) * np.log(radii) - np.log(radii - 1.0)
        least = float(log_error.min())
        if least <= math.log(budget):
            break
    return nodes, math.exp(min(least, 0.0))


def _largest_excess(centre: float, wide: Floats, tall: Floats) -> Floats:
    """Compute the largest |z| + |1 - z| - 1 on an ellipse, bounded by the box around the ellipse.

    The sum is convex in the real part and grows with the imaginary part, so it is largest at a
    corner.
    """
    return np.maximum(_corner_excess(centre - wide, tall), _corner_excess(centre + wide, tall))


def _corner_excess(real: Floats, imaginary: Floats) -> Floats:
    def beyond(x: Floats) -> Floats:
        # |x + iy| - x without cancellation at small y.
        size = np.hypot(x, imaginary)
        return np.where(x > 0.0, imaginary**2 / (size + np.abs(x) + 1e-300), size - x)

    return beyond(real) + beyond(1.0 - real)


@lru_cache(maxsize=16)
def _interpolation_matrix(nodes: int) -> tuple[Floats, Floats]:
    """Return the Chebyshev points of the first kind, and the matrix from values there to a grid."""
    order = np.arange(nodes)
    angles = (order + 0.5) * (math.pi / nodes)
    finer = np.arange(_FINER_GRID_FACTOR * nodes + 1) * (math.pi / (_FINER_GRID_FACTOR * nodes))
    coefficients = np.cos(np.outer(order, angles)) * (2.0 / nodes)
    coefficients[0] /= 2.0
    matrix: Floats = np.cos(np.outer(finer, order)) @ coefficients
    return np.cos(angles), matrix


@Declared(
    title="exact unconditional test", name="exact", recorded=True, slow=True, most_draws=_MAX_DRAWS
)
@suggest_arguments
def berger_boos(counts: Counts, delta: float = 0.0, confidence: float = 0.95) -> float:
    """Compute a certified lower limit on epsilon by inverting an unconditional exact test.

    Audits use it with ``bound="exact"``.

    The pairs of counts are put into a fixed order, by the size of the epsilon that they support.
    The p-value of the claim ``p <= e^epsilon q + delta`` is

        max over (p, q) in the claim and in C of P(as far up the order as observed) + gamma

    where C is a rectangle that contains (p, q) with probability 1 - gamma. The limit is the largest
    epsilon with a p-value of at most 1 - confidence. It is valid under the conditions of
    `clopper_pearson`: independent draws, and the numbers of draws, the event and the order of the
    sides fixed in advance. It is sharper, because it spends the whole error probability once, while
    two limits divide it.

    Proof that the limit is valid: (p, q) is outside C with probability at most gamma. If (p, q) is
    in C, the true pair takes part in the maximum. Consider the tail of a fixed order from the
    observed counts on. The probability that this tail has probability at most a is at most a. A
    larger epsilon allows more pairs (p, q), while the order and the rectangle do not change, so the
    p-value cannot fall. The order is monotone: more hits on the first side, or fewer on the second
    side, are never earlier in the order. So the maximum lies on ``p = min(e^epsilon q + delta,
    p_high)``, where a claimed probability above 1 is capped. On that segment the maximum is bounded
    from above (`supremum_bound`), not sampled. Windows, rounding and cells only increase the
    computed probability.

    Beyond 2**40 draws, the result is equal to `clopper_pearson`. The choice between the two bounds
    depends only on the numbers of draws.

    Args:
        counts: k of n on the side of the numerator, k' of n' on the other side; n and n' may
            differ.
        delta: delta of the claim, in [0, 1).
        confidence: probability that the limit holds, strictly between 0 and 1.

    Returns:
        The lower limit, finite and at least 0.

    Raises:
        TypeError: if `counts` is not a `Counts`, or `delta` or `confidence` is not a number.
        ValueError: if `delta` or `confidence` is out of range, or n or n' is 2**63 or more.

    Source:
        Berger and Boos (1994), JASA 89, for the p-value; Buehler (1957), JASA 52, for the limit
        from a fixed order of the outcomes.

    Example:
        >>> round(berger_boos(Counts(900, 1000, 100, 1000)), 4)
        2.0417
    """
    counts, delta = instance("counts", counts, Counts), delta_level(delta)
    alpha = 1.0 - confidence_level(confidence)
    if max(counts.n, counts.n_prime) > _MAX_DRAWS:
        return clopper_pearson(counts, delta, confidence)
    return _invert_test(counts, delta, alpha)


# The figures of a report use the same limit repeatedly.
@lru_cache(maxsize=256)
def _invert_test(counts: Counts, delta: float, alpha: float) -> float:
    cut = _find_rejection_boundary(counts, delta, alpha)
    if cut is None:
        return 0.0
    return _find_largest(_make_test(counts, delta, alpha, cut), *_guess_start(counts, delta, alpha))


def _find_rejection_boundary(counts: Counts, delta: float, alpha: float) -> _CutFunction | None:
    """Find the boundary of all counts at least as high in the order as the observed counts.

    The label of (j, j') is the largest t with ``low(j) >= delta + e^t high(j')``, where low and
    high are Wilson's limits at the normal score s. The label rises in j and falls in j'. Let s = z
    sqrt(1 + r)/(1 + sqrt(r)), where r is the ratio of the variances. Then the boundary at label t,
    as a function of j', has the shape of the standard deviation of J - e^t J'. The test then
    rejects with nearly the same probability at every q, which gives it its power. s may depend on t
    because it grows with t. Solved for j, the condition is j >= n P + s sqrt(n P (1 - P)) with
    P = delta + e^t high(j'). It is impossible for P > n/(n + s^2) = low(n).
    """
    from scipy.special import ndtri

    n, n_prime = counts.n, counts.n_prime
    z = max(-float(ndtri(alpha)), _MIN_NORMAL_SCORE)

    def boundary(t: Floats, j_prime: Floats) -> Floats:
        r = np.sqrt(np.maximum(1.0, np.exp(t) * (n / n_prime)))
        s = z * np.sqrt(1.0 + r * r) / (1.0 + r)
        spread = np.sqrt(j_prime * ((n_prime - j_prime) / n_prime) + s * s / 4.0)
        high = (j_prime + s * s / 2.0 + s * spread) / (n_prime + s * s)
        p = delta + np.exp(t) * high
        least = n * p + s * np.sqrt(n * p * np.maximum(1.0 - p, 0.0))
        return np.where(p <= n / (n + s * s), least, n + 1.0)

    observed = np.array([float(counts.k_prime)])
    # At the last label even high(0) >= z^2/(4 n' + z^2) would need a probability above 1.
    low, high = _FIRST_LABEL, math.log(5.0 * (n_prime + z * z)) - 2.0 * math.log(z)
    for _ in range(_BOUNDARY_SECTIONS):
        labels = np.linspace(low, high, 1025)
        reached = int(np.count_nonzero(boundary(labels, observed) <= counts.k))
        if reached == 0:
            return None
        low, high = float(labels[reached - 1]), float(labels[min(reached, 1024)])
    # Rounding must not leave out counts that are as high in the order as the observed counts.
    label, slack = np.array([low - 1e-13 * (1.0 + abs(low))]), 1e-9 + 1e-14 * n
    return lambda j_prime: np.maximum.accumulate(boundary(label, j_prime)) - slack


def _make_test(
    counts: Counts, delta: float, alpha: float, cut: _CutFunction
) -> Callable[[float], float]:
    """Make the function epsilon -> score of p-value minus score of alpha; <= 0 certifies it."""
    from scipy.special import ndtri

    gamma = _RECTANGLE_SHARE * alpha
    p_low, p_high = limits(counts.k, counts.n, gamma / 4.0)
    q_low, q_high = limits(counts.k_prime, counts.n_prime, gamma / 4.0)
    tail, budget = _WINDOW_TAIL * alpha, _SUPREMUM_BUDGET * alpha
    side = cell_window(counts.n, p_low, p_high, tail)
    other = cell_window(counts.n_prime, q_low, q_high, tail)
    index = _cut_indices(side, other, cut)
    target = float(ndtri(alpha - gamma - 4.0 * tail))

    def test(epsilon: float) -> float:
        slope = math.exp(epsilon)
        low = max(q_low, (p_low - delta) / slope)
        high = min(q_high, (p_high - delta) / slope)
        if low > high and high != (p_high - delta) / slope:
            # No pair of rates is both in the rectangle and in the claim.
            return -math.inf
        line = (slope, delta)
        if low > high:
            # Even the smallest q allows every p of the rectangle.
            low, high, line = q_low, q_low, (0.0, p_high)

        def probability(q: Floats) -> Floats:
            p = np.clip(line[0] * q + line[1], p_low, p_high)
            return _tail_probability(cell_masses(side, p), cell_masses(other, q), index)

        trials = (counts.n, counts.n_prime)
        relative = side.error + other.error
        worst = supremum_bound(probability, low, high, line, trials, budget, relative)
        return float(ndtri(min(worst, 1.0))) - target

    return test


def _cut_indices(side: Cells, other: Cells, cut: _CutFunction) -> npt.NDArray[np.int64]:
    """Find, for every cell of J', the first cell of J with counts as high as the observed ones."""
    least = cut(other.first + other.width * np.arange(other.offset.size, dtype=np.float64))
    cell = np.floor((np.ceil(least) - side.first) / side.width)
    return np.clip(cell, 0, side.offset.size).astype(np.int64)


def _tail_probability(mass: Floats, mass_prime: Floats, index: npt.NDArray[np.int64]) -> Floats:
    """Compute P(J >= cut(J')) at every rate."""
    upper = np.zeros((mass.shape[0], mass.shape[1] + 1))
    upper[:, :-1] = np.cumsum(mass[:, ::-1], axis=1)[:, ::-1]
    tail: Floats = np.einsum("ij,ij->i", mass_prime, upper[:, index])
    return tail


def _guess_start(counts: Counts, delta: float, alpha: float) -> tuple[float, float]:
    """Compute a first guess of the limit, and its standard error, by the normal approximation."""
    from scipy.special import ndtri

    p = (counts.k + 0.5) / (counts.n + 1.0)
    q = (counts.k_prime + 0.5) / (counts.n_prime + 1.0)
    margin = max(p - delta, 0.5 / counts.n)
    variance = p * (1.0 - p) / (counts.n * margin**2) + (1.0 - q) / (counts.n_prime * q)
    scale = math.sqrt(variance)
    return max(0.0, math.log(margin / q) + float(ndtri(alpha)) * scale), scale


def _find_largest(test: Callable[[float], float], guess: float, scale: float) -> float:
    """Find a lower limit on the largest epsilon that the test certifies; 0 if there is none."""
    low, high = (math.nan, 0.0), (math.nan, 0.0)
    x, step = guess, scale
    for _ in range(200):
        height = min(max(test(x), -40.0), 40.0)
        if height <= 0.0:
            low = (x, height)
        elif x == 0.0:
            return 0.0
        else:
            high = (x, height)
        if math.isnan(low[0]):
            x, step = max(0.0, x - max(step, 1.5 * scale * height)), 2.0 * step
        elif math.isnan(high[0]):
            x, step = x + max(step, -1.5 * scale * height), 2.0 * step
        elif high[0] - low[0] <= _ROOT_TOLERANCE * scale:
            break
        else:
            x = _secant_between(low, high, _ROOT_TOLERANCE * scale)
    return low[0]


def _secant_between(low: tuple[float, float], high: tuple[float, float], tolerance: float) -> float:
    """Return the secant's point, moved away from the ends so that both ends move."""
    span = high[0] - low[0]
    point = low[0] - low[1] * span / (high[1] - low[1])
    margin = min(span / 4.0, max(tolerance / 2.0, 0.02 * span))
    return min(max(point - tolerance / 4.0, low[0] + margin), high[0] - margin)
