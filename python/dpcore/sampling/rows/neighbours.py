"""Comparison of near rows of a call with all orders in which the rows could stand.

Independent rows of one call can be permuted. For scores v of n rows in a circle, centred, and a
lag L below n/2, the sum of v_i v_(i+L) has over all permutations the mean -S2/(n - 1) and the
variance (S2^2 - S4)/(n - 1) + (S2^2 - 2 S4)/((n - 1)(n - 2)) - S2^2/(n - 1)^2, S_k the sum of v^k
(Wald and Wolfowitz, 1943, Annals of Mathematical Statistics 14, for L = 1; the pairs of any lag
are n edges that meet every row twice, and nothing else of them enters). The number of equal pairs
is treated likewise. Nothing is assumed of the law of a row, ties included.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from ...events.device_outputs import Held
from .parts import MOST_COLUMNS, Array, few_columns, list_sequences

_FIRST_ORDERED_TRIALS: Final = 2**11
_LATER_ORDERED_TRIALS: Final = 2**10
_ORDER_CHECK_PERIOD: Final = 2**19
"""Rows that are looked at: the first 2,048 trials, then 1,024 at the start of every 2**19."""
_MIN_ORDERED_ROWS: Final = 8
"""Rows in a call below which it has no order to speak of."""
_MAX_LAG: Final = 256
_EQUAL_LAGS: Final = (*range(1, 9), 10, 12, 16, 20, 32, 64, 100, 128, 256)
"""Distances at which equal rows are counted; scores are compared at all up to `_MAX_LAG`."""
_DOUBLING_LAGS: Final = tuple(2**power for power in range(9))
_DOUBLING_LAG_SIGMAS: Final = 7.0
_OTHER_LAG_SIGMAS: Final = 8.0
"""Standard deviations that speak at distances 1, 2, 4, 8 ..., and at any other."""
_MIN_EXPECTED_PAIRS: Final = 25.0
"""Equal (and unequal) pairs expected, below which nothing is said."""
_SUM_UNIT: Final = 2.0**-24
"""Sums are kept as whole multiples of this, so that no order of adding changes them."""

Sums = npt.NDArray[np.int64]
"""Excess over the mean, variance and what the pairs are told from; shape `(3, 6, 256)`.

By sequence (equal rows, hits of the event, ranks of at most four columns) and lag. The last is
the number of pairs expected for equal rows; for scores the sum of the fourth powers of products.
"""


def looked_at(start: int, rows: int) -> int:
    """Return the number of a call's rows that are compared: a function of its first trial alone."""
    behind = start % _ORDER_CHECK_PERIOD
    return max(
        0,
        min(
            rows,
            (_FIRST_ORDERED_TRIALS if start < _ORDER_CHECK_PERIOD else _LATER_ORDERED_TRIALS)
            - behind,
        ),
    )


def compare_neighbours(outputs: Array | Held, answers: npt.NDArray[np.bool_]) -> Sums | None:
    """Compare the rows of a call with those that stand near them.

    Args:
        outputs: rows of one call, any dtype, shape `(size, ...)`.
        answers: which of them hit the event.

    Returns:
        What to add up over calls; None where the rows are too few.
    """
    rows = len(outputs)
    if rows < _MIN_ORDERED_ROWS:
        return None
    ranks, codes = list_sequences(few_columns(outputs))
    scores = np.array([answers, *ranks], dtype=np.float64)
    sums = np.zeros((3, 2 + MOST_COLUMNS, _MAX_LAG))
    _add_products(sums[:, 1 : 1 + len(scores)], scores - scores.mean(axis=1, keepdims=True))
    _add_equal(sums[:, 0], codes)
    return np.rint(sums / _SUM_UNIT).astype(np.int64)


def _add_products(sums: npt.NDArray[np.float64], scores: npt.NDArray[np.float64]) -> None:
    """Add the sums of v_i v_(i+L) for all lags at once, by their Fourier transform.

    Scores keep their own scale in every call: brought to one variance, the few hits of a rare
    event, met by chance, would outweigh all calls in which another event was counted.
    """
    rows = scores.shape[1]
    lags = min(_MAX_LAG, (rows - 1) // 2)
    squares = scores * scores
    second, fourth = squares.sum(axis=1), (squares * squares).sum(axis=1)
    waves = np.fft.rfft(scores, axis=1)
    power = waves.real * waves.real + waves.imag * waves.imag
    products = np.fft.irfft(power, rows, axis=1)[:, 1 : lags + 1]
    n = float(rows)
    mean = -second / (n - 1)
    variance = (second**2 - fourth) / (n - 1)
    variance += (second**2 - 2 * fourth) / ((n - 1) * (n - 2)) - mean**2
    sums[0, :, :lags] = products - mean[:, None]
    sums[1, :, :lags] = np.maximum(variance, 0.0)[:, None]
    sums[2, :, :lags] = (fourth**2 / n)[:, None]


def _add_equal(sums: npt.NDArray[np.float64], codes: npt.NDArray[np.intp]) -> None:
    """Add the numbers of equal pairs, at the lags of `_EQUAL_LAGS`."""
    n = float(len(codes))
    counts = np.bincount(codes).astype(np.float64)
    two, three = counts * (counts - 1), counts * (counts - 1) * (counts - 2)
    if not two.any():
        return
    pair = two.sum() / (n * (n - 1))
    triple = three.sum() / (n * (n - 1) * (n - 2))
    four = (three * (counts - 3)).sum() + two.sum() ** 2 - (two**2).sum()
    pairs = four / (n * (n - 1) * (n - 2) * (n - 3))
    mean = n * pair
    variance = mean + 2 * n * triple + n * (n - 3) * pairs - mean**2
    for lag in _EQUAL_LAGS:
        if 2 * lag < n:
            equal = np.count_nonzero(codes[lag:] == codes[:-lag])
            equal += np.count_nonzero(codes[:lag] == codes[-lag:])
            # Of two values, one rare, equal pairs change by twos: as often as rare ones meet.
            told = min(mean, n - mean, variance / 4.0)
            sums[:, lag - 1] = equal - mean, max(variance, 0.0), told


_LAG_THRESHOLDS: Final = np.full(_MAX_LAG, _OTHER_LAG_SIGMAS)
_LAG_THRESHOLDS[np.array(_DOUBLING_LAGS) - 1] = _DOUBLING_LAG_SIGMAS


def lag_deviations(sums: Sums) -> npt.NDArray[np.float64]:
    """Compute the excess in standard deviations, by sequence and lag; 0 if there are few pairs."""
    excess, variance, rest = sums * _SUM_UNIT
    # For n scores of which few, a share q, are large the ratio is n q^2: their pairs expected.
    fourth = np.where(rest > 0.0, rest, 1.0)
    pairs = np.where(rest > 0.0, variance**2 / fourth, 0.0)
    pairs[0] = rest[0]
    told = (pairs >= _MIN_EXPECTED_PAIRS) & (variance > 0.0)
    return np.where(told, excess / np.sqrt(np.where(told, variance, 1.0)), 0.0)


def farthest_lag(sums: Sums) -> tuple[int, float] | None:
    """Find the lag at which rows are least like independent ones, if chance is excluded.

    Args:
        sums: added up over calls.

    Returns:
        The lag and by how many standard deviations rows are more alike than independent ones
        (less, if negative); None where all is well.
    """
    sigmas = lag_deviations(sums)
    beyond = np.abs(sigmas) / _LAG_THRESHOLDS
    sequence, place = np.unravel_index(int(np.argmax(beyond)), beyond.shape)
    if beyond[sequence, place] < 1.0:
        return None
    return int(place) + 1, float(sigmas[sequence, place])
