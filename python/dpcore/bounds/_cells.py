"""Binomial probabilities on a window of equal cells, for many rates at once."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

_Floats = npt.NDArray[np.float64]

_CELLS_PER_DEVIATION = 512.0
_MAX_LOG_ODDS_STEP = 700.0


class Cells(NamedTuple):
    """Cells of `width` outcomes from `first` on, and their log masses at one reference rate."""

    trials: int
    first: int
    width: int
    log_mass: _Floats
    offset: _Floats
    log_odds: float
    error: float
    """Relative error of a mass."""


def cell_window(n: int, low: float, high: float, tail: float) -> Cells:
    """Return a window that Binomial(n, p) leaves with probability <= 2 `tail`, p in [low, high].

    The window follows from Bernstein's inequality. Cells are single outcomes unless the law is
    wide: then a cell is 1/512 of a standard deviation and its mass is taken at its middle, off by
    (width/deviation)^2 (z^2 + 1)/24 at z deviations.

    Args:
        n: trials.
        low: smallest rate.
        high: largest rate.
        tail: probability of each tail beyond the window.

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
        # C(n, j+1)/C(n, j) = (n-j)/(j+1): no difference of large logarithms, whatever n is.
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


def _log_binomial(n: int, rate: float, x: _Floats) -> _Floats:
    """Compute the log binomial probability up to a constant; both counts are above 1e5 here."""
    mean, rest = n * rate, n * (1.0 - rate)
    y, d = n - x, x - mean
    deviance = x * np.log1p(d / mean) + y * np.log1p(-d / rest)
    log_mass: _Floats = -deviance - np.log(x / mean * (y / rest)) / 2.0 - (1 / x + 1 / y) / 12.0
    return log_mass


def cell_masses(window: Cells, rates: _Floats) -> _Floats:
    """Compute the cells' masses at every rate, shape `(rates, cells)`; each row sums to 1.

    The sum over the window stands for 1: a mass is too large by what the window leaves out, never
    too small.
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
