"""The sharpest bound on epsilon for numbers of draws fixed in advance: an unconditional exact test.

The counts of n draws on x and n' draws on x' are binomial, with the probabilities p and q of an
event on the two inputs. The test needs the largest probability of a set of counts along a line
segment of pairs (p, q). This module computes a proven upper limit on this largest probability. For
this purpose, it computes the binomial probabilities of cells (groups of consecutive counts) of
equal width.

Let J and J' be independent, Binomial(n, p) and Binomial(n', q), and let (p, q) move along a
segment, p = slope q + shift. The probability g(q) of any event of (J, J') is then a polynomial in
q, so it extends to complex q. For complex q, the absolute value of g(q) is at most

    (|p| + |1 - p|)^n (|q| + |1 - q|)^n',

because the first factor equals sum_j C(n, j) |p|^j |1-p|^(n-j), and the second factor is a similar
sum over J'. Consider the ellipse with foci at the ends of the segment and with semi-axes whose sum
is rho (in half-lengths of the segment). A function bounded by M on this ellipse lies within 4 M
rho^(1-N)/(rho - 1) of its interpolant in N Chebyshev points (Trefethen, 2013, theorem 8.2). This
error limit is twice the sum of the omitted Chebyshev coefficients, and the coefficient of order k
is at most 2 M rho^-k. The theorem is about other Chebyshev points than this module. For the points
of this module (the zeros of T_N), the coefficients alias in the same way. The maximum of the
interpolant is bounded by a grid and the lemma of M. Riesz. The lemma states: near its maximum, a
trigonometric polynomial of degree d does not fall faster than cos(d theta). So the true range of
values exceeds the range on G Chebyshev angles by a factor of at most 1/cos(pi d / 2G). Therefore
the result is also an upper limit between the points of the grid.
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
from ..suggestions import explain_argument_errors
from .binomial import Declared, clopper_pearson, limits

_CELLS_PER_DEVIATION = 512.0
_MAX_LOG_ODDS_STEP = 700.0

_CHEBYSHEV_NODES = (16, 24, 32, 40, 48, 64, 96)
_FINER_GRID_FACTOR = 32
_ELLIPSE_RADII = 1.0 + np.geomspace(0.15, 8.0, 24)
_PROBABILITY_ROUNDING = 1e-13

_CutFunction = Callable[[Floats], Floats]

_RECTANGLE_SHARE = 1e-3
"""Share of 1 - confidence that is used for the confidence rectangle of (p, q)."""
_WINDOW_TAIL = 1e-7
_SUPREMUM_BUDGET = 1e-5
_MIN_NORMAL_SCORE = 0.5
_FIRST_LABEL = -50.0
_BOUNDARY_SECTIONS = 6
_ROOT_TOLERANCE = 1e-4
_MAX_DRAWS = 2**40
"""Largest number of draws. Beyond it, float64 does not distinguish probabilities close to 1."""


class Cells(NamedTuple):
    """Groups (cells) of consecutive counts of a binomial variable, with their log probabilities.

    The log probabilities are for one success probability. All of them may differ from the true log
    probabilities by the same constant.
    """

    trials: int
    first: int
    width: int
    log_mass: Floats
    offset: Floats
    log_odds: float
    error: float
    """Relative error of the probability of a cell."""


def binomial_cells_without_tails(n: int, low: float, high: float, tail: float) -> Cells:
    """Return a range that contains a Binomial(n, p) count with probability at least 1 - 2 `tail`.

    The range is valid for each p in [`low`, `high`], by Bernstein's inequality. The range is
    divided into cells (groups of neighbouring counts). If the standard deviation of the count is
    small, each cell has only one count. Otherwise the width of a cell is 1/512 of the standard
    deviation, and the probability of a cell is computed from the middle of the cell. At z standard
    deviations from the mean, the relative error of this probability is
    ``(width/deviation)^2 (z^2 + 1)/24``.

    Args:
        n: number of trials of the binomial distribution.
        low: smallest success probability p.
        high: largest success probability p.
        tail: largest probability of each of the two tails outside the range.

    Returns:
        The cells of the range.
    """
    t = math.log(1.0 / tail)
    below, above = n * low - _bernstein_reach(n, low, t), n * high + _bernstein_reach(n, high, t)
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
        log_mass = _large_count_log_pmf_kernel(n, rate, middle)
        reach = max(above - n * low, n * high - below) / deviation
        error = (width / deviation) ** 2 * (reach**2 + 1.0) / 12.0 + 1e-6
    centre = round(n * rate) - first
    offset = (start - centre).astype(np.float64)
    return Cells(n, first, width, log_mass, offset, log_odds, error)


def _bernstein_reach(n: int, rate: float, t: float) -> float:
    return t / 3.0 + math.sqrt(t * t / 9.0 + 2.0 * n * rate * (1.0 - rate) * t)


def _large_count_log_pmf_kernel(n: int, rate: float, x: Floats) -> Floats:
    """Compute log binomial probabilities of x, up to an additive constant, for large counts."""
    mean, rest = n * rate, n * (1.0 - rate)
    y, d = n - x, x - mean
    deviance = x * np.log1p(d / mean) + y * np.log1p(-d / rest)
    return -deviance - np.log(x / mean * (y / rest)) / 2.0 - (1 / x + 1 / y) / 12.0


def cell_masses(window: Cells, rates: Floats) -> Floats:
    """Compute the probabilities of cells (groups of binomial counts), for several success rates.

    The probabilities are divided by their sum over all cells. Each row of the result therefore sums
    to 1. Because counts outside the cells are left out, a probability can be slightly too large,
    but never too small.

    Args:
        window: the cells.
        rates: the success rates (probabilities of success) of the binomial distributions.

    Returns:
        An array of shape `(rates, cells)`.
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
    """Compute an upper limit on the probability of an event, valid for all q in [`low`, `high`].

    The event is a set of pairs of two independent binomial counts. The second count has the success
    probability q. The first count has the success probability p = slope q + shift. The probability
    of the event is interpolated by a polynomial in q.

    Args:
        probability: function that takes an array of values q and returns the probability of the
            event for each q. The error of a returned value v is at most ``budget + relative * v``.
        low: smallest q.
        high: largest q. It may equal `low`.
        line: the pair (slope, shift) in p = slope q + shift.
        trials: the numbers of trials (n, n') of the first and the second count.
        budget: absolute error that the interpolation may add, above 0.
        relative: relative error of `probability`.

    Returns:
        The upper limit. The probability of the event is at most this number for each q in the
        range.
    """
    nodes, error = _chebyshev_node_count_and_error(low, high, line, trials, budget)
    if error > budget:
        middle = (low + high) / 2.0
        halves = ((low, middle), (middle, high))
        return max(
            supremum_bound(probability, a, b, line, trials, budget, relative) for a, b in halves
        )
    points, matrix = _chebyshev_points_and_grid_matrix(nodes)
    values = probability((low + high) / 2.0 + (high - low) / 2.0 * points)
    curve = matrix @ values
    top, bottom = float(curve.max()), float(curve.min())
    missed = (top - bottom) * (1.0 / math.cos(math.pi / (2.0 * _FINER_GRID_FACTOR)) - 1.0) / 2.0
    # Errors of the values are amplified by at most the Lebesgue constant.
    lebesgue = 1.0 + 2.0 / math.pi * math.log(nodes + 1.0)
    noise = budget + _PROBABILITY_ROUNDING + relative * float(values.max())
    return top + missed + error + lebesgue * noise


def _chebyshev_node_count_and_error(
    low: float, high: float, line: tuple[float, float], trials: tuple[int, int], error_limit: float
) -> tuple[int, float]:
    """Return the number of Chebyshev points for an error within `error_limit`, and the error."""
    slope, shift = line
    half, centre, radii = (high - low) / 2.0, (high + low) / 2.0, _ELLIPSE_RADII
    wide, tall = half * (radii + 1.0 / radii) / 2.0, half * (radii - 1.0 / radii) / 2.0
    log_size = trials[1] * np.log1p(_max_detour_excess_in_box(centre, wide, tall))
    excess = _max_detour_excess_in_box(slope * centre + shift, slope * wide, slope * tall)
    log_size += trials[0] * np.log1p(excess)
    for nodes in _CHEBYSHEV_NODES:
        log_error = log_size + math.log(4.0) + (1 - nodes) * np.log(radii) - np.log(radii - 1.0)
        least = float(log_error.min())
        if least <= math.log(error_limit):
            break
    return nodes, math.exp(min(least, 0.0))


def _max_detour_excess_in_box(centre: float, wide: Floats, tall: Floats) -> Floats:
    """Compute an upper limit on |z| + |1 - z| - 1 in an ellipse, from the box around the ellipse.

    The value is convex in the real part of z and increases with the size of the imaginary part. So
    its maximum over the box is at a corner.
    """
    return np.maximum(_detour_excess(centre - wide, tall), _detour_excess(centre + wide, tall))


def _detour_excess(real: Floats, imaginary: Floats) -> Floats:
    def beyond(x: Floats) -> Floats:
        # |x + iy| - x without cancellation at small y.
        size = np.hypot(x, imaginary)
        return np.where(x > 0.0, imaginary**2 / (size + np.abs(x) + 1e-300), size - x)

    return beyond(real) + beyond(1.0 - real)


@lru_cache(maxsize=16)
def _chebyshev_points_and_grid_matrix(nodes: int) -> tuple[Floats, Floats]:
    """Return Chebyshev points, and the matrix that maps values there to values on a fine grid."""
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
@explain_argument_errors
def berger_boos(counts: Counts, delta: float = 0.0, confidence: float = 0.95) -> float:
    """Compute a certified lower limit on epsilon from an unconditional exact test of two counts.

    An audit with the argument ``bound="exact"`` uses this limit.

    Let p and q be the probabilities of an event on two neighbouring inputs x and x'. A pair of
    counts (j, j') means that the event happened in j of n draws on x, and in j' of n' draws on x'.
    All pairs are put into a fixed order. A pair is higher in the order if the pair supports a
    larger epsilon. The p-value of the claim ``p <= e^epsilon q + delta`` is

        max over (p, q) in the claim and in C of P(as far up the order as observed) + gamma

    The set "as far up the order as observed" contains all pairs of counts that are at least as high
    in the order as the observed pair. C is a confidence rectangle that contains (p, q) with
    probability at least 1 - gamma. Here gamma is (1 - confidence)/1000. The limit on epsilon is the
    largest epsilon with a p-value of at most 1 - confidence. This limit is sharper than the limit
    of `clopper_pearson`. The reason is that `clopper_pearson` divides the error probability 1 -
    confidence between two limits, but this test uses the whole error probability at once. The limit
    of `berger_boos` is valid under three conditions:

    - The draws are independent.
    - The numbers of draws were fixed in advance.
    - The event, and the roles of x and x', were fixed before the counted draws.

    Proof that the limit is valid: the true pair (p, q) is outside C with probability at most gamma.
    If the true pair is in C, the maximum is at least the probability of "as far up the order as
    observed" for the true pair. This probability is a p-value: for each a, the event "the
    probability is at most a" has probability at most a. A larger epsilon allows more pairs (p, q),
    but does not change the order or C. Therefore the p-value does not decrease in epsilon.

    Computation of the maximum: the order is monotone. This means that a pair of counts never
    becomes lower in the order if the event happens more often on x or less often on x'. Therefore
    the maximum lies on the curve ``p = min(e^epsilon q + delta, p_high)``, where p_high is the
    largest p in C. The code computes an upper limit on the maximum over this curve. Approximations
    and rounding can only increase the computed probability.

    If n or n' is above 2**40, the function returns the result of `clopper_pearson` instead.

    Args:
        counts: the event happened in k of n draws on x, and in k' of n' draws on x'. The
            numbers n and n' may differ.
        delta: delta of the claim, in [0, 1).
        confidence: probability that the limit holds, strictly between 0 and 1.

    Returns:
        The lower limit on epsilon, finite and at least 0.

    Raises:
        TypeError: if `counts` is not a `Counts`, or `delta` or `confidence` is not a number.
        ValueError: if `delta` or `confidence` is out of range, or n or n' is 2**63 or more.

    Source:
        Berger and Boos (1994), JASA 89, for the p-value; Buehler (1957), JASA 52, for a limit that
        is computed from a fixed order of all outcomes.

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
    return _largest_rejected(
        _make_p_value_gap(counts, delta, alpha, cut), *_normal_epsilon_and_se(counts, delta, alpha)
    )


def _find_rejection_boundary(counts: Counts, delta: float, alpha: float) -> _CutFunction | None:
    """Return the boundary of the set of counts that are in the order at or above the observed.

    The place of a pair of counts (j, j') in the order is given by its label: the largest t with
    ``low(j) >= delta + e^t high(j')``. Here low and high are Wilson's confidence limits at the
    normal score s. The label increases in j and decreases in j'. Let s = z sqrt(1 + r)/(1 +
    sqrt(r)), where r = max(1, e^t n/n') is a ratio of variances. Then the boundary at label t, as a
    function of j', has the shape of the standard deviation of ``J - e^t J'``. So the test rejects
    with nearly the same probability at every q, and this makes the test powerful. The score s may
    depend on t because s grows with t. Solved for j, the condition is j >= n P + s sqrt(n P (1 -
    P)) with P = delta + e^t high(j'). For P > n/(n + s^2) = low(n), no j satisfies the condition.
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


def _make_p_value_gap(
    counts: Counts, delta: float, alpha: float, cut: _CutFunction
) -> Callable[[float], float]:
    """Return a function of epsilon: Phi^-1(p-value) - Phi^-1(alpha); certified if at most 0."""
    from scipy.special import ndtri

    gamma = _RECTANGLE_SHARE * alpha
    p_low, p_high = limits(counts.k, counts.n, gamma / 4.0)
    q_low, q_high = limits(counts.k_prime, counts.n_prime, gamma / 4.0)
    tail, budget = _WINDOW_TAIL * alpha, _SUPREMUM_BUDGET * alpha
    side = binomial_cells_without_tails(counts.n, p_low, p_high, tail)
    other = binomial_cells_without_tails(counts.n_prime, q_low, q_high, tail)
    index = _first_cell_reaching_cut(side, other, cut)
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
            return _p_at_or_above_cut(cell_masses(side, p), cell_masses(other, q), index)

        trials = (counts.n, counts.n_prime)
        relative = side.error + other.error
        worst = supremum_bound(probability, low, high, line, trials, budget, relative)
        return float(ndtri(min(worst, 1.0))) - target

    return test


def _first_cell_reaching_cut(side: Cells, other: Cells, cut: _CutFunction) -> npt.NDArray[np.int64]:
    """Find, for every cell of J', the first cell of J that reaches the boundary `cut`."""
    least = cut(other.first + other.width * np.arange(other.offset.size, dtype=np.float64))
    cell = np.floor((np.ceil(least) - side.first) / side.width)
    return np.clip(cell, 0, side.offset.size).astype(np.int64)


def _p_at_or_above_cut(mass: Floats, mass_prime: Floats, index: npt.NDArray[np.int64]) -> Floats:
    """Compute P(J >= cut(J')) for every row of probabilities."""
    upper = np.zeros((mass.shape[0], mass.shape[1] + 1))
    upper[:, :-1] = np.cumsum(mass[:, ::-1], axis=1)[:, ::-1]
    tail: Floats = np.einsum("ij,ij->i", mass_prime, upper[:, index])
    return tail


def _normal_epsilon_and_se(counts: Counts, delta: float, alpha: float) -> tuple[float, float]:
    """Compute a normal approximation of the lower limit, and its standard error."""
    from scipy.special import ndtri

    p = (counts.k + 0.5) / (counts.n + 1.0)
    q = (counts.k_prime + 0.5) / (counts.n_prime + 1.0)
    margin = max(p - delta, 0.5 / counts.n)
    variance = p * (1.0 - p) / (counts.n * margin**2) + (1.0 - q) / (counts.n_prime * q)
    scale = math.sqrt(variance)
    return max(0.0, math.log(margin / q) + float(ndtri(alpha)) * scale), scale


def _largest_rejected(test: Callable[[float], float], guess: float, standard_error: float) -> float:
    """Find the largest epsilon that the test certifies, rounded down, or 0."""
    low, high = (math.nan, 0.0), (math.nan, 0.0)
    x, step = guess, standard_error
    for _ in range(200):
        height = min(max(test(x), -40.0), 40.0)
        if height <= 0.0:
            low = (x, height)
        elif x == 0.0:
            return 0.0
        else:
            high = (x, height)
        if math.isnan(low[0]):
            x, step = max(0.0, x - max(step, 1.5 * standard_error * height)), 2.0 * step
        elif math.isnan(high[0]):
            x, step = x + max(step, -1.5 * standard_error * height), 2.0 * step
        elif high[0] - low[0] <= _ROOT_TOLERANCE * standard_error:
            break
        else:
            x = _secant_point(low, high, _ROOT_TOLERANCE * standard_error)
    return low[0]


def _secant_point(low: tuple[float, float], high: tuple[float, float], tolerance: float) -> float:
    """Return the next point of a secant search, at some distance from both ends of the interval."""
    span = high[0] - low[0]
    point = low[0] - low[1] * span / (high[1] - low[1])
    margin = min(span / 4.0, max(tolerance / 2.0, 0.02 * span))
    return min(max(point - tolerance / 4.0, low[0] + margin), high[0] - margin)
