"""Thresholds beyond what a pilot has counted: a line fitted to the log ratio of a score's tail.

A threshold that is best for many counted draws may lie where a pilot has seen few values. There the
ratio of the two densities of the score is taken to be ``exp(a + b s)``, as it is for Gaussian noise
in the direction of a shift, and for every score that is itself a log-likelihood ratio. All values
of the tail then say how rare the event is, not only those beyond the threshold. The fit chooses and
certifies nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from ..records import Floats, Ints

Predict = Callable[[Floats, Floats], Floats]
"""Rates of events on the numerator's side and on the other -> the bounds that they would give."""

_TAIL_SHARES: Final = (0.5, 0.25)
"""Shares of the values of both sides to which a line is fitted. Both lines must promise more."""
_MIN_TAIL_VALUES: Final = 8
"""Values of either side, and thresholds, in the shorter tail; hits of a threshold that is taken."""
_MIN_SLOPE_DEVIATES: Final = 2.0
"""Standard errors of the slope in the shorter tail: that of Laplace noise has none there."""
_CURVATURE_DEVIATES: Final = (-1.5, 2.5)
"""Standard errors between which the curvature in the longer tail must lie. A ratio that bends down
levels off, and its line promises too much."""
_BOOTSTRAPS: Final = 20
_LOWER_FIFTH: Final = 3
"""Place of the prediction among those of the bootstraps, in their order."""
_MIN_PROMISE_RATIO: Final = 0.05
"""Times the bound of the counted choice that a threshold must promise to be taken instead."""
_NEWTON_STEPS: Final = 10
_MAX_NEWTON_STEP: Final = 3.0
_RIDGE: Final = 1e-6
_DECIMALS: Final = 6
"""Of a prediction: beyond them, libraries of linear algebra differ."""


class TiltFit(NamedTuple):
    """Logistic regressions of the side of a value on its score, one for each sample.

    Args:
        shares: probability that a value in each cell belongs to the numerator's side, shape
            `(samples, cells)`.
        coefficients: of the powers of the score in standard units, shape `(samples, powers)`.
        errors: standard errors of the coefficients of the first sample, shape `(powers,)`.
    """

    shares: Floats
    coefficients: Floats
    errors: Floats

    @property
    def deviates(self) -> float:
        """The highest coefficient of the first sample in its standard errors."""
        return float(self.coefficients[0, -1] / self.errors[-1])


def fit_tilt(scores: Floats, own: Floats, other: Floats, degree: int = 1) -> TiltFit:
    """Fit a polynomial to the log ratio of two densities, from counts in cells.

    With counts k and k' in cells at scores s the likelihood of the sides, given the scores, is that
    of ``P(numerator | s) = 1 / (1 + exp(-(a + b s + c s^2)))``, whatever the densities are.

    Args:
        scores: score of each cell, increasing, not all equal, shape `(cells,)`.
        own: values of the numerator's side in each cell, shape `(samples, cells)`.
        other: values of the other side in each cell, of the same shape.
        degree: degree of the polynomial.

    Source:
        Anderson (1972), Biometrika 59, logistic regression for separate samples; Qin and Zhang
        (1997), Biometrika 84, for the rates that follow from it.

    Example:
        >>> grid = np.linspace(0.0, 3.0, 31)
        >>> own, other = np.exp(-((grid - 1.5) ** 2) / 2.0), np.exp(-(grid**2) / 2.0)
        >>> fit = fit_tilt(grid, 1e3 * own[np.newaxis], 1e3 * other[np.newaxis])
        >>> bool(np.allclose(fit.shares[0], own / (own + other)))
        True
    """
    total = own + other
    weights = total[0] / total[0].sum()
    middle = float(np.sum(weights * scores))
    spread = float(np.sqrt(np.sum(weights * (scores - middle) ** 2)))
    powers = ((scores - middle) / spread)[:, np.newaxis] ** np.arange(degree + 1)
    coefficients = np.zeros((len(own), degree + 1))
    ridge = _RIDGE * np.eye(degree + 1)
    for _ in range(_NEWTON_STEPS):
        shares = 1.0 / (1.0 + np.exp(-np.clip(coefficients @ powers.T, -40.0, 40.0)))
        gradient = (own - total * shares) @ powers
        information = ridge + np.einsum(
            "bc,ci,cj->bij", total * shares * (1.0 - shares), powers, powers
        )
        steps = np.linalg.solve(information, gradient[..., np.newaxis])[..., 0]
        coefficients = coefficients + np.clip(steps, -_MAX_NEWTON_STEP, _MAX_NEWTON_STEP)
    errors = np.sqrt(np.diagonal(np.linalg.inv(information[0])))
    return TiltFit(shares, coefficients, errors)


def find_tail_threshold(
    points: Floats,
    hits: Ints,
    hits_prime: Ints,
    sizes: tuple[int, int],
    start: int,
    counted: float,
    predict: Predict,
) -> tuple[int, float] | None:
    """Find a threshold farther out for which lines fitted to the tail promise clearly more.

    Args:
        points: thresholds, increasing, shape `(m,)`.
        hits: draws of the numerator's side at or above each threshold, shape `(m,)`.
        hits_prime: draws of the other side at or above each, shape `(m,)`.
        sizes: draws of the numerator's side and of the other.
        start: index of the threshold that the counts have chosen; -1 for one of another tail.
        counted: bound of that choice at the rates that were counted.
        predict: rates of events -> the bounds that they would give.

    Returns:
        The index of the threshold and the bound that it promises in four of five bootstraps. None
        where the tail does not clearly promise more, or is none that a line describes.
    """
    first, second = (
        int(np.searchsorted(-(hits + hits_prime), -share * sum(sizes))) for share in _TAIL_SHARES
    )
    if points.size - second < _MIN_TAIL_VALUES:
        return None
    if min(hits[second], hits_prime[second]) < _MIN_TAIL_VALUES:
        return None
    cells = points[first:] + 0.5 * np.diff(points[first:], append=2.0 * points[-1] - points[-2])
    counts = [-np.diff(side[first:], append=0) for side in (hits, hits_prime)]
    drawn = [side[np.newaxis].astype(np.float64) for side in counts]
    inner = second - first
    if not np.isfinite(cells).all() or not np.ptp(cells[inner:]) > 0.0:
        return None
    slope = fit_tilt(cells[inner:], drawn[0][:, inner:], drawn[1][:, inner:]).deviates
    low, high = _CURVATURE_DEVIATES
    if slope < _MIN_SLOPE_DEVIATES or not low < fit_tilt(cells, *drawn, 2).deviates < high:
        return None
    # The same seed for every audit: the choice is a function of the counts.
    generator = np.random.default_rng(0)
    samples = [
        np.concatenate([own, generator.poisson(own[0], (_BOOTSTRAPS, cells.size))])
        for own in drawn
    ]
    lines = [
        predict(*_tail_rates(cells[begin:], samples[0][:, begin:], samples[1][:, begin:], sizes))
        for begin in (0, inner)
    ]
    now = lines[0][:, [start - first]] if start >= first else np.full((_BOOTSTRAPS + 1, 1), counted)
    gains = [line[:, -lines[1].shape[1]:] - now for line in lines]
    gain = np.minimum(*(np.sort(each[1:], axis=0)[_LOWER_FIFTH] for each in gains))
    gain = np.round(np.where(hits[second:] >= _MIN_TAIL_VALUES, gain, 0.0), _DECIMALS)
    best = int(np.argmax(gain))
    if second + best <= start or gain[best] <= _MIN_PROMISE_RATIO * abs(now[0,0]):
        return None
    return second + best, float(gain[best] + now[0,0])


def _tail_rates(
    cells: Floats, own: Floats, other: Floats, sizes: tuple[int, int]
) -> tuple[Floats, Floats]:
    """Return the rates beyond each threshold on either side, shape `(samples, cells)`."""
    total, shares = own + other, fit_tilt(cells, own, other).shares
    parts = total * shares / sizes[0], total * (1.0 - shares) / sizes[1]
    first, second = (np.cumsum(part[:, ::-1], axis=1)[:, ::-1].clip(0.0, 1.0) for part in parts)
    return first, second
