"""The unconditional test inverted: the sharpest of the bounds for numbers of draws fixed ahead."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ..errors import confidence_level, delta_level, instance
from ..hints import hinted
from ..records import Counts
from ._cells import Cells, cell_masses, cell_window
from ._supremum import supremum_bound
from .binomial import clopper_pearson, limits
from .declaration import Declared

__all__ = ["exact"]

_Floats = npt.NDArray[np.float64]
_CutFunction = Callable[[_Floats], _Floats]

_RECTANGLE_SHARE = 1e-3
"""Part of the error probability that pays for the rectangle of (p, q)."""
_WINDOW_TAIL = 1e-7
_SUPREMUM_BUDGET = 1e-5
_MIN_NORMAL_SCORE = 0.5
_FIRST_LABEL = -50.0
_BOUNDARY_SECTIONS = 6
_ROOT_TOLERANCE = 1e-4
_MAX_DRAWS = 2**40
"""Draws from which doubles no longer tell rates close to 1 apart."""


@Declared(title="exact unconditional test", recorded=True, slow=True)
@hinted
def exact(counts: Counts, delta: float = 0.0, confidence: float = 0.95) -> float:
    """Compute a certified lower limit on epsilon by inverting an unconditional exact test.

    The pairs of counts are put into a fixed order, by how large an epsilon they speak for. The
    p-value of the claim ``p <= e^epsilon q + delta`` is

        max over (p, q) in the claim and in C of P(as far up the order as observed) + gamma

    with C a rectangle that holds (p, q) with probability 1 - gamma, and the limit is the largest
    epsilon with a p-value of at most 1 - confidence. Sound under the same conditions as
    `clopper_pearson` (independent draws, numbers of draws, event and order of the sides fixed in
    advance), and sharper: it spends the whole error probability once, where two limits spend it
    twice.

    Why it is sound. With (p, q) in C, which fails with probability gamma at most, the true pair
    takes part in the maximum; and the probability that the tail of a fixed order, from the
    observed counts on, has probability at most a is at most a. A larger epsilon allows more
    pairs (p, q) while order and rectangle stay as they are, so the p-value cannot fall. The order
    is monotone: more hits on the first side or fewer on the second never come earlier. So the
    maximum lies on ``p = min(e^epsilon q + delta, p_high)``, where a claim beyond probability 1 is
    capped, and on that segment it is bounded from above (`_supremum`), not sampled. Windows,
    rounding and cells round the probability up.

    Beyond 2**40 draws the answer is that of `clopper_pearson`: which bound speaks depends on the
    numbers of draws alone.

    Args:
        counts: k of n on the side of the numerator, k' of n' on the other; n and n' may differ.
        delta: the delta of the claim, in [0, 1).
        confidence: probability that the limit holds, strictly between 0 and 1.

    Returns:
        The lower limit, finite and at least 0.

    Raises:
        TypeError: if `counts` is not a `Counts`, or `delta` or `confidence` not a number.
        ValueError: if `delta` or `confidence` is out of range, or n or n' is 2**63 or more.

    Source:
        Berger and Boos (1994), JASA 89, for the p-value; Buehler (1957), JASA 52, for the limit
        that a fixed order of the outcomes gives.

    Example:
        >>> round(exact(Counts(900, 1000, 100, 1000)), 4)
        2.0417
    """
    counts, delta = instance("counts", counts, Counts), delta_level(delta)
    alpha = 1.0 - confidence_level(confidence)
    if max(counts.n, counts.n_prime) > _MAX_DRAWS:
        return clopper_pearson(counts, delta, confidence)
    return _invert_test(counts, delta, alpha)


# Each figure of a report asks for the same one again.
@lru_cache(maxsize=256)
def _invert_test(counts: Counts, delta: float, alpha: float) -> float:
    cut = _find_rejection_boundary(counts, delta, alpha)
    if cut is None:
        return 0.0
    test = _make_test(counts, delta, alpha, cut)
    return _find_largest(test, *_guess_start(counts, delta, alpha))


def _find_rejection_boundary(counts: Counts, delta: float, alpha: float) -> _CutFunction | None:
    """Find the boundary of all counts at least as high in the order as the observed ones.

    The label of (j, j') is the largest t with ``low(j) >= delta + e^t high(j')``, low and high
    being Wilson's limits at the normal score s. It rises in j and falls in j'. As a function of
    j' the boundary at label t bends like the standard deviation of J - e^t J' if s = z
    sqrt(1 + r)/(1 + sqrt(r)), r the ratio of the variances: the test is then nearly as likely to
    reject at every q, which is what its power rests on. s may depend on t as it grows with t.
    Solved for j the condition is j >= n P + s sqrt(n P (1 - P)) with P = delta + e^t high(j'),
    and impossible for P > n/(n + s^2) = low(n).
    """
    from scipy.special import ndtri

    n, n_prime = counts.n, counts.n_prime
    z = max(-float(ndtri(alpha)), _MIN_NORMAL_SCORE)

    def boundary(t: _Floats, j_prime: _Floats) -> _Floats:
        r = np.sqrt(np.maximum(1.0, np.exp(t) * (n / n_prime)))
        s = z * np.sqrt(1.0 + r * r) / (1.0 + r)
        spread = np.sqrt(j_prime * ((n_prime - j_prime) / n_prime) + s * s / 4.0)
        high = (j_prime + s * s / 2.0 + s * spread) / (n_prime + s * s)
        p = delta + np.exp(t) * high
        least = n * p + s * np.sqrt(n * p * np.maximum(1.0 - p, 0.0))
        return np.where(p <= n / (n + s * s), least, n + 1.0)

    observed = np.array([float(counts.k_prime)])
    # At the last label even high(0) >= z^2/(4 n' + z^2) asks for more than probability 1.
    low, high = _FIRST_LABEL, math.log(5.0 * (n_prime + z * z)) - 2.0 * math.log(z)
    for _ in range(_BOUNDARY_SECTIONS):
        labels = np.linspace(low, high, 1025)
        reached = int(np.count_nonzero(boundary(labels, observed) <= counts.k))
        if reached == 0:
            return None
        low, high = float(labels[reached - 1]), float(labels[min(reached, 1024)])
    # Rounding must not leave out what stands as high as the observed counts.
    label, slack = np.array([low - 1e-13 * (1.0 + abs(low))]), 1e-9 + 1e-14 * n
    return lambda j_prime: np.maximum.accumulate(boundary(label, j_prime)) - slack


def _make_test(
    counts: Counts, delta: float, alpha: float, cut: _CutFunction
) -> Callable[[float], float]:
    """Make the function epsilon -> score of the p-value - score of alpha; certified if <= 0."""
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
            # Already the smallest q is allowed all of the rectangle's p.
            low, high, line = q_low, q_low, (0.0, p_high)

        def probability(q: _Floats) -> _Floats:
            p = np.clip(line[0] * q + line[1], p_low, p_high)
            return _tail_probability(cell_masses(side, p), cell_masses(other, q), index)

        trials = (counts.n, counts.n_prime)
        relative = side.error + other.error
        worst = supremum_bound(probability, low, high, line, trials, budget, relative)
        return float(ndtri(min(worst, 1.0))) - target

    return test


def _cut_indices(side: Cells, other: Cells, cut: _CutFunction) -> npt.NDArray[np.int64]:
    """Find, for every cell of J', the first cell of J with counts as high as observed."""
    least = cut(other.first + other.width * np.arange(other.offset.size, dtype=np.float64))
    cell = np.floor((np.ceil(least) - side.first) / side.width)
    index: npt.NDArray[np.int64] = np.clip(cell, 0, side.offset.size).astype(np.int64)
    return index


def _tail_probability(mass: _Floats, mass_prime: _Floats, index: npt.NDArray[np.int64]) -> _Floats:
    """Compute P(J >= cut(J')) at every rate."""
    upper = np.zeros((mass.shape[0], mass.shape[1] + 1))
    upper[:, :-1] = np.cumsum(mass[:, ::-1], axis=1)[:, ::-1]
    tail: _Floats = np.einsum("ij,ij->i", mass_prime, upper[:, index])
    return tail


def _guess_start(counts: Counts, delta: float, alpha: float) -> tuple[float, float]:
    """Compute a first guess of the limit, and its scale, from the normal approximation."""
    from scipy.special import ndtri

    p = (counts.k + 0.5) / (counts.n + 1.0)
    q = (counts.k_prime + 0.5) / (counts.n_prime + 1.0)
    margin = max(p - delta, 0.5 / counts.n)
    variance = p * (1.0 - p) / (counts.n * margin**2) + (1.0 - q) / (counts.n_prime * q)
    scale = math.sqrt(variance)
    return max(0.0, math.log(margin / q) + float(ndtri(alpha)) * scale), scale


def _find_largest(test: Callable[[float], float], guess: float, scale: float) -> float:
    """Find the largest epsilon that the test certifies, from below; 0 if it certifies none."""
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
    """Return the secant's point, moved away from the ends so that both of them close in."""
    span = high[0] - low[0]
    point = low[0] - low[1] * span / (high[1] - low[1])
    margin = min(span / 4.0, max(tolerance / 2.0, 0.02 * span))
    return min(max(point - tolerance / 4.0, low[0] + margin), high[0] - margin)
