"""Choice of a threshold in the tail of a score, from a line fitted to the log density ratio.

The event of an audit is "the score of the output is at least a threshold". The audit chooses the
threshold from a pilot (a first set of draws). If the audit counts many draws, the best threshold
may lie in the tail, which contains only a few scores of the pilot. In this tail, the ratio of the
densities of the score s on the two inputs is assumed to be ``exp(a + b s)``. This form is exact for
Gaussian noise if the score is the component of the output in the direction x - x'. It is also exact
for every score that is a log-likelihood ratio. The fit uses all scores in the tail to estimate the
probability of an event, not only the scores above the threshold. The fit only chooses an event, and
does not certify a bound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from ..records import Floats, Ints

_LONG_TAIL_SHARE: Final = 0.5
_SHORT_TAIL_SHARE: Final = 0.25
"""Shares of the pooled scores that form the two fitted tails. Both lines must predict a gain."""
_MIN_TAIL_VALUES: Final = 8
"""Least number of thresholds, of scores per input, and of draws above a threshold in the short
tail."""
_MIN_SLOPE_DEVIATES: Final = 2.5
"""Least slope in the short tail, in standard errors. Laplace noise has slope 0 in the tail."""
_MIN_CURVATURE_DEVIATES: Final = -1.5
"""Least curvature in the long tail, in standard errors. If a log ratio bends down, it levels off,
and the bound predicted by a line is too large."""
_MAX_CURVATURE_DEVIATES: Final = 2.5
_MIN_HIT_DEVIATES: Final = -0.5
"""Least difference, in standard deviations, between the number of draws in an event and the number
that the line predicts."""
_BOOTSTRAPS: Final = 20
_CAUTIOUS_PLACE: Final = 2
"""Rank (from 0, in increasing order) of the bootstrap prediction that is used."""
_MIN_GAIN_SHARE: Final = 0.02
"""Least predicted gain, divided by the bound at the threshold that was chosen from the counts."""
_NEWTON_STEPS: Final = 10
_MAX_NEWTON_STEP: Final = 3.0
_MAX_LOG_ODDS: Final = 40.0
_RIDGE: Final = 1e-6
_PROMISE_DECIMALS: Final = 6
"""Decimals of a predicted bound. Further decimals differ between linear algebra libraries."""


class Tilt(NamedTuple):
    """Polynomials in a score, fitted to the log density ratio of the score on x and x'.

    A score is one number per output. There is one polynomial for each sample of counts. The first
    sample has the observed counts. All further samples are bootstrap samples.

    Args:
        coefficients: coefficients of the polynomials, in powers of the standardised score, shape
            `(samples, powers)`.
        errors: standard errors of the coefficients of the first polynomial, shape `(powers,)`.
        shares: for each cell (an interval of scores), the fitted probability that a score in this
            cell is from a draw on x, shape `(samples, cells)`.
    """

    coefficients: Floats
    errors: Floats
    shares: Floats

    @property
    def leading_coefficient_z_score(self) -> float:
        """Test statistic for the coefficient of the highest power in the first polynomial.

        The statistic is this coefficient, divided by its standard error.
        """
        return float(self.coefficients[0, -1] / self.errors[-1])


def fit_tilt(scores: Floats, own_counts: Floats, other_counts: Floats, degree: int = 1) -> Tilt:
    """Fit a polynomial to the log density ratio of a score on two inputs x and x'.

    A score is one number per output. The scores are grouped in cells (intervals), and the draws in
    each cell are counted. The fit is a logistic regression. The model for a score s is
    ``P(draw on x | s) = 1 / (1 + exp(-(a + b s + ...)))``. The model is correct for all densities
    whose log ratio is a polynomial of this degree.

    Args:
        scores: one score for each cell, such as the middle of the cell. The scores must not all be
            equal. Shape `(cells,)`.
        own_counts: number of draws on x in each cell, shape `(samples, cells)`. Each sample of
            counts is fitted separately.
        other_counts: number of draws on x' in each cell, shape `(samples, cells)`.
        degree: degree of the polynomial.

    Returns:
        One fitted polynomial for each sample.

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
    total = own_counts + other_counts
    weights = total[0] / total[0].sum()
    centred = scores - np.sum(weights * scores)
    units = centred / np.sqrt(np.sum(weights * centred**2))
    powers = units[:, np.newaxis] ** np.arange(degree + 1)
    coefficients = np.zeros((len(own_counts), degree + 1))
    for _ in range(_NEWTON_STEPS):
        odds = np.clip(coefficients @ powers.T, -_MAX_LOG_ODDS, _MAX_LOG_ODDS)
        shares = 1.0 / (1.0 + np.exp(-odds))
        variances = total * shares * (1.0 - shares)
        information = np.einsum("sc,ci,cj->sij", variances, powers, powers)
        information += _RIDGE * np.eye(degree + 1)
        gradient = (own_counts - total * shares) @ powers
        steps = np.linalg.solve(information, gradient[..., np.newaxis])[..., 0]
        coefficients = coefficients + np.clip(steps, -_MAX_NEWTON_STEP, _MAX_NEWTON_STEP)
    return Tilt(coefficients, np.sqrt(np.diagonal(np.linalg.inv(information[0]))), shares)


class TailCounts(NamedTuple):
    """Numbers of draws on x and on x' in each interval of the upper tail of a score.

    A score is one number per output. An interval between neighbouring thresholds is called a cell.
    The first sample has the observed counts. All further samples are bootstrap samples.

    Args:
        scores: middle of each cell, scaled to the range from 0 to 1, shape `(cells,)`.
        own: number of draws on x in each cell, shape `(samples, cells)`.
        other: number of draws on x' in each cell, shape `(samples, cells)`.
        sizes: number of all draws on x, and number of all draws on x'. Draws outside the tail are
            included.
    """

    scores: Floats
    own: Floats
    other: Floats
    sizes: tuple[int, int]

    @classmethod
    def of_hits_above_points(
        cls, points: Floats, hits: Ints, hits_prime: Ints, sizes: tuple[int, int]
    ) -> TailCounts:
        """Compute the numbers of draws with a score between two neighbouring thresholds.

        Args:
            points: the thresholds, increasing.
            hits: number of draws on x with a score at or above each threshold.
            hits_prime: number of draws on x' with a score at or above each threshold.
            sizes: number of all draws on x, and number of all draws on x'.
        """
        middles = points + 0.5 * np.diff(points, append=2.0 * points[-1] - points[-2])
        units = (middles - middles[0]) / (middles[-1] - middles[0])
        own, other = (-np.diff(side, append=0)[np.newaxis] for side in (hits, hits_prime))
        return cls(units, own, other, sizes)

    def beyond(self, cell: int) -> TailCounts:
        """Return a copy with only the cells (intervals of the score) from index `cell` on."""
        return TailCounts(self.scores[cell:], self.own[:, cell:], self.other[:, cell:], self.sizes)

    def with_bootstrap_samples(self) -> TailCounts:
        """Return a copy of these counts with 20 bootstrap samples added. The seed is fixed."""
        generator = np.random.default_rng(0)
        own, other = (
            np.concatenate([counts, generator.poisson(counts[0], (_BOOTSTRAPS, counts.size))])
            for counts in (self.own, self.other)
        )
        return TailCounts(self.scores, own, other, self.sizes)

    def leading_coefficient_z_score(self, degree: int) -> float:
        """Fit a polynomial to the log density ratio of x and x', and return a test statistic.

        Args:
            degree: degree of the polynomial in the score.

        Returns:
            The coefficient of the highest power, divided by the standard error of this coefficient.
        """
        return fit_tilt(self.scores, self.own, self.other, degree).leading_coefficient_z_score

    def fitted_tail_probabilities(self) -> tuple[Floats, Floats]:
        """Fit lines to the log density ratio of x and x', and compute tail probabilities from them.

        Returns:
            Two arrays: the probability that the score is at or above each threshold, on x and on
            x'. Each array has the shape `(samples, thresholds)`.
        """
        shares, total = fit_tilt(self.scores, self.own, self.other).shares, self.own + self.other
        parts = zip((total * shares, total * (1.0 - shares)), self.sizes, strict=True)
        first, second = (np.cumsum(part[:, ::-1], axis=1)[:, ::-1] / size for part, size in parts)
        return np.minimum(first, 1.0), np.minimum(second, 1.0)


@np.errstate(over="ignore", invalid="ignore")
def find_tail_index_and_bound(
    points: Floats,
    hits: tuple[Ints, Ints],
    sizes: tuple[int, int],
    start: int,
    counted: float,
    predict: Callable[[Any, Any], Floats],
) -> tuple[int, float] | None:
    """Find a threshold above a given threshold that has a clearly larger expected bound on epsilon.

    A score is one number per output, and an event is "the score is at least the threshold". In the
    tail, the counts are too small to compare thresholds. Therefore lines are fitted to the log
    density ratio of the score on x and x', and the lines predict the probabilities of the events.

    Args:
        points: thresholds, increasing, shape `(m,)`.
        hits: two arrays of shape `(m,)`: the numbers of draws with a score at or above each
            threshold, on x and on x'.
        sizes: number of all draws on x, and number of all draws on x'.
        start: index of the given threshold, which was chosen from the counts.
        counted: expected lower limit on epsilon for the given threshold, from the counts.
        predict: function that takes the probabilities of events on x and on x', and returns
            expected lower limits on epsilon.

    Returns:
        The index of the found threshold, and a cautious estimate of the lower limit on epsilon for
        this threshold. The result is None if a line does not fit the log density ratio in the tail.
        It is also None if no predicted limit is clearly above `counted`.
    """
    both, fewest = hits[0] + hits[1], np.minimum(*hits)
    first, second = (
        int(np.count_nonzero(both > share * sum(sizes)))
        for share in (_LONG_TAIL_SHARE, _SHORT_TAIL_SHARE)
    )
    if points.size < second + _MIN_TAIL_VALUES or fewest[second] < _MIN_TAIL_VALUES:
        return None
    tail = TailCounts.of_hits_above_points(points[first:], hits[0][first:], hits[1][first:], sizes)
    short, chosen = second - first, min(start, points.size - 1) - first
    if not _is_log_ratio_a_sloped_line(tail, short):
        return None
    samples = tail.with_bootstrap_samples()
    rates = samples.fitted_tail_probabilities()
    long, near = predict(*rates), predict(*samples.beyond(short).fitted_tail_probabilities())
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


def _is_log_ratio_a_sloped_line(tail: TailCounts, slope_first_cell: int) -> bool:
    """Return True if a line describes the log ratio in the tail, and the line has a clear slope."""
    if not np.isfinite(tail.scores).all():
        return False
    if tail.beyond(slope_first_cell).leading_coefficient_z_score(1) < _MIN_SLOPE_DEVIATES:
        return False
    return _MIN_CURVATURE_DEVIATES < tail.leading_coefficient_z_score(2) < _MAX_CURVATURE_DEVIATES
