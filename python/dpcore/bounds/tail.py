"""Thresholds that few pilot draws reach: a line fitted to the log ratio in the tail of a score.

The best threshold for many counted draws may lie where the pilot of an audit has few values. There
the ratio of the densities of the score on the two sides is taken to be ``exp(a + b s)``. That is so
for Gaussian noise in the direction of a shift, and for every score that is itself a log-likelihood
ratio. All values of the tail then show how rare an event is, not only those beyond the threshold.
The fit chooses an event; it certifies no bound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from ..records import Floats, Ints

_LONG_TAIL_SHARE: Final = 0.5
_SHORT_TAIL_SHARE: Final = 0.25
"""Shares of the values of both sides to which a line is fitted. Both lines must promise more."""
_MIN_TAIL_VALUES: Final = 8
"""Fewest thresholds and values of either side in the short tail, and hits of an event there."""
_MIN_SLOPE_DEVIATES: Final = 2.5
"""Standard errors of the slope in the short tail: the log ratio of Laplace noise is flat there."""
_MIN_CURVATURE_DEVIATES: Final = -1.5
"""Standard errors of the curvature in the long tail: a log ratio that bends down levels off, and
its line promises too much."""
_MAX_CURVATURE_DEVIATES: Final = 2.5
_MIN_HIT_DEVIATES: Final = -0.5
"""Standard deviations by which the hits of an event may differ from those that a line expects."""
_BOOTSTRAPS: Final = 20
_CAUTIOUS_PLACE: Final = 2
"""Place of the promise among those of the bootstraps in increasing order, from 0."""
_MIN_GAIN_SHARE: Final = 0.02
"""Share of the bound at the counted threshold that another one must add to it."""
_NEWTON_STEPS: Final = 10
_MAX_NEWTON_STEP: Final = 3.0
_MAX_LOG_ODDS: Final = 40.0
_RIDGE: Final = 1e-6
_PROMISE_DECIMALS: Final = 6
"""Decimals of a promise: beyond them, libraries of linear algebra differ."""


class Tilt(NamedTuple):
    """Polynomials fitted to the log ratio of two densities, one for each sample.

    Args:
        coefficients: of the powers of the score in standard units, shape `(samples, powers)`.
        errors: standard errors of the coefficients of the first sample, shape `(powers,)`.
        shares: probability that a value in each cell is one of the numerator's side, shape
            `(samples, cells)`.
    """

    coefficients: Floats
    errors: Floats
    shares: Floats

    @property
    def deviates(self) -> float:
        """The highest coefficient of the first sample in its standard errors."""
        return float(self.coefficients[0, -1] / self.errors[-1])


def fit_tilt(scores: Floats, own: Floats, other: Floats, degree: int = 1) -> Tilt:
    """Fit a polynomial to the log ratio of two densities, from counts in cells.

    ``P(numerator's side | s) = 1 / (1 + exp(-(a + b s + ...)))`` whatever the densities are, if
    their log ratio is a polynomial up to a constant: a logistic regression, by Newton's steps.

    Args:
        scores: score of each cell, not all equal, shape `(cells,)`.
        own: values of the numerator's side in each cell, shape `(samples, cells)`.
        other: values of the other side in each cell, of the same shape.
        degree: degree of the polynomial.

    Source:
        Anderson (1972), Biometrika 59, for samples of two populations; Qin and Zhang (1997),
        Biometrika 84, for the rates that follow from the fit.

    Example:
        >>> grid = np.linspace(0.0, 3.0, 31)
        >>> own, other = np.exp(-((grid - 1.5) ** 2) / 2.0), np.exp(-(grid**2) / 2.0)
        >>> tilt = fit_tilt(grid, 1e3 * own[np.newaxis], 1e3 * other[np.newaxis])
        >>> bool(np.allclose(tilt.shares[0], own / (own + other)))
        True
    """
    total = own + other
    weights = total[0] / total[0].sum()
    centred = scores - np.sum(weights * scores)
    units = centred / np.sqrt(np.sum(weights * centred**2))
    powers = units[:, np.newaxis] ** np.arange(degree + 1)
    coefficients = np.zeros((len(own), degree + 1))
    for _ in range(_NEWTON_STEPS):
        odds = np.clip(coefficients @ powers.T, -_MAX_LOG_ODDS, _MAX_LOG_ODDS)
        shares = 1.0 / (1.0 + np.exp(-odds))
        variances = total * shares * (1.0 - shares)
        information = np.einsum("sc,ci,cj->sij", variances, powers, powers)
        information += _RIDGE * np.eye(degree + 1)
        gradient = (own - total * shares) @ powers
        steps = np.linalg.solve(information, gradient[..., np.newaxis])[..., 0]
        coefficients = coefficients + np.clip(steps, -_MAX_NEWTON_STEP, _MAX_NEWTON_STEP)
    return Tilt(coefficients, np.sqrt(np.diagonal(np.linalg.inv(information[0]))), shares)


class TailCounts(NamedTuple):
    """Values of a score in the cells between the thresholds of its tail, on both sides.

    Args:
        scores: middle of each cell, from 0 to 1, shape `(cells,)`.
        own: values of the numerator's side, shape `(samples, cells)`.
        other: values of the other side, of the same shape.
        sizes: draws of the numerator's side and of the other.
    """

    scores: Floats
    own: Floats
    other: Floats
    sizes: tuple[int, int]

    @classmethod
    def of_hits(
        cls, points: Floats, hits: Ints, hits_prime: Ints, sizes: tuple[int, int]
    ) -> TailCounts:
        """Return the counts between thresholds; the last cell is as wide as the one before."""
        middles = points + 0.5 * np.diff(points, append=2.0 * points[-1] - points[-2])
        units = (middles - middles[0]) / (middles[-1] - middles[0])
        own, other = (-np.diff(side, append=0)[np.newaxis] for side in (hits, hits_prime))
        return cls(units, own, other, sizes)

    def beyond(self, cell: int) -> TailCounts:
        """Return the part of the tail from a cell on."""
        return TailCounts(self.scores[cell:], self.own[:, cell:], self.other[:, cell:], self.sizes)

    def resample(self) -> TailCounts:
        """Return the counts and bootstraps of them, the same ones in every call."""
        generator = np.random.default_rng(0)
        own, other = (
            np.concatenate([counts, generator.poisson(counts[0], (_BOOTSTRAPS, counts.size))])
            for counts in (self.own, self.other)
        )
        return TailCounts(self.scores, own, other, self.sizes)

    def deviates(self, degree: int) -> float:
        """Return the highest coefficient of a polynomial in its standard errors."""
        return fit_tilt(self.scores, self.own, self.other, degree).deviates

    def rates(self) -> tuple[Floats, Floats]:
        """Return the rates beyond each threshold by a line, shape `(samples, cells)` each."""
        shares, total = fit_tilt(self.scores, self.own, self.other).shares, self.own + self.other
        parts = zip((total * shares, total * (1.0 - shares)), self.sizes, strict=True)
        first, second = (np.cumsum(part[:, ::-1], axis=1)[:, ::-1] / size for part, size in parts)
        return np.minimum(first, 1.0), np.minimum(second, 1.0)


@np.errstate(over="ignore", invalid="ignore")
def find_tail_threshold(
    points: Floats,
    hits: tuple[Ints, Ints],
    sizes: tuple[int, int],
    start: int,
    counted: float,
    predict: Callable[[Any, Any], Floats],
) -> tuple[int, float] | None:
    """Find a threshold farther out for which lines fitted to the tail promise clearly more.

    Args:
        points: thresholds, increasing, shape `(m,)`.
        hits: draws at or above each threshold, of the numerator's side and of the other, shape
            `(m,)` each.
        sizes: draws of the numerator's side and of the other.
        start: index of the threshold that the counts have chosen.
        counted: bound that is expected of that threshold by the counts.
        predict: function of rates on the numerator's side and on the other that returns the bounds
            expected from them.

    Returns:
        The index of the threshold and a cautious estimate of its bound. None where a line does not
        describe the tail, or promises too little.
    """
    both, fewest = hits[0] + hits[1], np.minimum(*hits)
    first, second = (
        int(np.count_nonzero(both > share * sum(sizes)))
        for share in (_LONG_TAIL_SHARE, _SHORT_TAIL_SHARE)
    )
    if points.size < second + _MIN_TAIL_VALUES or fewest[second] < _MIN_TAIL_VALUES:
        return None
    tail = TailCounts.of_hits(points[first:], hits[0][first:], hits[1][first:], sizes)
    short, chosen = second - first, min(start, points.size - 1) - first
    if not _is_line(tail, short):
        return None
    samples = tail.resample()
    rates = samples.rates()
    long, near = predict(*rates), predict(*samples.beyond(short).rates())
    now = long[:, [chosen]] if chosen >= 0 else np.full((_BOOTSTRAPS + 1, 1), counted)
    gains = (np.sort((line - now)[1:], axis=0)[_CAUTIOUS_PLACE] for line in (long[:, short:], near))
    own, other = (rate[0, short:] * size for rate, size in zip(rates, sizes, strict=True))
    least = own + _MIN_HIT_DEVIATES * np.sqrt(own * other / (own + other))
    gain = np.where(hits[0][second:] < np.maximum(least, _MIN_TAIL_VALUES), 0.0, np.minimum(*gains))
    best = int(np.argmax(np.round(gain, _PROMISE_DECIMALS)))
    bound = float(now[0, 0])
    if second + best <= start or gain[best] <= _MIN_GAIN_SHARE * abs(bound):
        return None
    return second + best, round(bound + float(gain[best]), _PROMISE_DECIMALS)


def _is_line(tail: TailCounts, short: int) -> bool:
    """Return True if the log ratio rises in the short tail, and is about a line in the long one."""
    if not np.isfinite(tail.scores).all():
        return False
    if tail.beyond(short).deviates(1) < _MIN_SLOPE_DEVIATES:
        return False
    return _MIN_CURVATURE_DEVIATES < tail.deviates(2) < _MAX_CURVATURE_DEVIATES
