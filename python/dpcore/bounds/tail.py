"""Choice of thresholds in the tail of a score, from a line fitted to the log ratio.

The best threshold for many counted draws may lie where the pilot of an audit has only a few values.
In this tail, the ratio of the score's densities on the two sides is assumed to be ``exp(a + b s)``.
This is true for Gaussian noise in the direction of a shift, and for every score that is itself a
log-likelihood ratio. All values of the tail are then used to estimate the probability of an event,
not only the values beyond the threshold. The fit chooses an event; it certifies no bound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from ..records import Floats, Ints

_LONG_TAIL_SHARE: Final = 0.5
_SHORT_TAIL_SHARE: Final = 0.25
"""Shares of the values of both sides to which a line is fitted. Both lines must predict a gain."""
_MIN_TAIL_VALUES: Final = 8
"""Least number of thresholds and of values per side in the short tail, and of hits there."""
_MIN_SLOPE_DEVIATES: Final = 2.5
"""Least slope in the short tail, in standard errors. For Laplace noise the slope is 0 there."""
_MIN_CURVATURE_DEVIATES: Final = -1.5
"""Least curvature in the long tail, in standard errors. If a log ratio bends down, it levels off,
and the bound predicted by a line is too large."""
_MAX_CURVATURE_DEVIATES: Final = 2.5
_MIN_HIT_DEVIATES: Final = -0.5
"""Least difference, in standard deviations, of an event's hits from the hits that a line
expects."""
_BOOTSTRAPS: Final = 20
_CAUTIOUS_PLACE: Final = 2
"""Rank of the used prediction among the bootstraps in increasing order, from 0."""
_MIN_GAIN_SHARE: Final = 0.02
"""Least gain over the counted threshold, as a share of its bound."""
_NEWTON_STEPS: Final = 10
_MAX_NEWTON_STEP: Final = 3.0
_MAX_LOG_ODDS: Final = 40.0
_RIDGE: Final = 1e-6
_PROMISE_DECIMALS: Final = 6
"""Decimals of a predicted bound. Further decimals differ between linear algebra libraries."""


class Tilt(NamedTuple):
    """Polynomials fitted to the log ratio of two densities, one polynomial per sample.

    Args:
        coefficients: coefficients of the powers of the score in standard units, shape
            `(samples, powers)`.
        errors: standard errors of the coefficients of the first sample, shape `(powers,)`.
        shares: probability that a value in each cell belongs to the numerator's side, shape
            `(samples, cells)`.
    """

    coefficients: Floats
    errors: Floats
    shares: Floats

    @property
    def deviates(self) -> float:
        """Highest coefficient of the first sample, divided by its standard error."""
        return float(self.coefficients[0, -1] / self.errors[-1])


def fit_tilt(scores: Floats, own: Floats, other: Floats, degree: int = 1) -> Tilt:
    """Fit a polynomial to the log ratio of two densities, from counts in cells.

    This is a logistic regression, fitted by Newton steps. The model is
    ``P(numerator's side | s) = 1 / (1 + exp(-(a + b s + ...)))``. It is correct for all densities
    whose log ratio is a polynomial.

    Args:
        scores: score of each cell, not all equal, shape `(cells,)`.
        own: number of values on the numerator's side in each cell, shape `(samples, cells)`.
        other: number of values on the other side in each cell, of the same shape.
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
    """Numbers of values of a score between neighbouring thresholds of its tail, on both sides.

    Args:
        scores: middle of each cell, from 0 to 1, shape `(cells,)`.
        own: numbers of values on the numerator's side, shape `(samples, cells)`.
        other: numbers of values on the other side, of the same shape.
        sizes: numbers of draws on the numerator's side and on the other side.
    """

    scores: Floats
    own: Floats
    other: Floats
    sizes: tuple[int, int]

    @classmethod
    def of_hits(
        cls, points: Floats, hits: Ints, hits_prime: Ints, sizes: tuple[int, int]
    ) -> TailCounts:
        """Return the counts between thresholds. The last cell is as wide as the previous one."""
        middles = points + 0.5 * np.diff(points, append=2.0 * points[-1] - points[-2])
        units = (middles - middles[0]) / (middles[-1] - middles[0])
        own, other = (-np.diff(side, append=0)[np.newaxis] for side in (hits, hits_prime))
        return cls(units, own, other, sizes)

    def beyond(self, cell: int) -> TailCounts:
        """Return the part of the tail that begins at a cell."""
        return TailCounts(self.scores[cell:], self.own[:, cell:], self.other[:, cell:], self.sizes)

    def resample(self) -> TailCounts:
        """Return the counts followed by bootstrap samples, which are the same in every call."""
        generator = np.random.default_rng(0)
        own, other = (
            np.concatenate([counts, generator.poisson(counts[0], (_BOOTSTRAPS, counts.size))])
            for counts in (self.own, self.other)
        )
        return TailCounts(self.scores, own, other, self.sizes)

    def deviates(self, degree: int) -> float:
        """Return the highest coefficient of a fitted polynomial, divided by its standard error."""
        return fit_tilt(self.scores, self.own, self.other, degree).deviates

    def rates(self) -> tuple[Floats, Floats]:
        """Return the rates beyond each threshold from a line, shape `(samples, cells)` each."""
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
    """Find a threshold farther out for which fitted lines predict a clearly larger bound.

    Args:
        points: thresholds, increasing, shape `(m,)`.
        hits: draws at or above each threshold, on the numerator's side and on the other side, shape
            `(m,)` each.
        sizes: numbers of draws on the numerator's side and on the other side.
        start: index of the threshold that was chosen from the counts.
        counted: expected bound at that threshold, from the counts.
        predict: function of rates on the numerator's side and on the other side that returns the
            expected bounds.

    Returns:
        The index of the threshold and a cautious estimate of its bound. None if a line does not
        describe the tail, or if the predicted gain is too small.
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
    """Return True if the log ratio rises in the short tail and is about linear in the long one."""
    if not np.isfinite(tail.scores).all():
        return False
    if tail.beyond(short).deviates(1) < _MIN_SLOPE_DEVIATES:
        return False
    return _MIN_CURVATURE_DEVIATES < tail.deviates(2) < _MAX_CURVATURE_DEVIATES
