"""Logistic regression on coordinates and squared length: a score of which set a row is like."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...records import Record
from ..raw import Reals, freeze_arrays

PENALTY: Final = 1.0
"""C of the objective |w|^2 / 2 + C * sum of losses."""

_STANDARDISED_BLOCK_NUMBERS: Final = 2**20
"""Numbers of a block of rows: what scoring needs at a time, 8 MiB a copy."""
_MAX_STANDARDISED_COORDINATE: Final = 1e75
"""Standardised coordinates end here, so that squared lengths are finite."""
_MAX_FIT_ITERATIONS: Final = 1000
_GRADIENT_TOLERANCE: Final = 1e-6


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Logistic(Record):
    """Log odds that a row belongs to set 0: w.z + v s + intercept.

    z are the coordinates, standardised by the moments of the training rows, and s is the squared
    length of z, centred and scaled to a standard deviation of sqrt(d) there.

    Args:
        center: means of the coordinates, shape (d,).
        spread: their standard deviations; infinite where a coordinate is constant: it has
            no say.
        length: mean of |z|^2, and its standard deviation over sqrt(d).
        weights: w, shape (d,).
        weight: v.
        intercept: added to the sum.
    """

    center: Reals
    spread: Reals
    length: tuple[float, float]
    weights: Reals
    weight: float
    intercept: float

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        freeze_arrays(self, "center", "spread", "weights")

    def __call__(self, rows: npt.NDArray[Any]) -> Reals:
        """Return the log odds of rows, shape (n, d) to (n,)."""
        step = max(1, _STANDARDISED_BLOCK_NUMBERS // rows.shape[1])
        with _limit_to_one_thread():
            found = [self._odds(rows[i : i + step]) for i in range(0, len(rows), step)]
        return np.concatenate(found) if found else np.empty(0)

    def _odds(self, rows: npt.NDArray[Any]) -> Reals:
        z = _standardise_rows(rows, self.center, self.spread)
        square = (np.einsum("ij,ij->i", z, z) - self.length[0]) / self.length[1]
        odds: Reals = z @ self.weights + self.weight * square + self.intercept
        return odds

    def __str__(self) -> str:
        """Return one line for a report."""
        return f"log odds of a logistic regression on z and |z|^2, d = {len(self.weights)}"


def fit_regression(train0: npt.NDArray[Any], train1: npt.NDArray[Any]) -> Logistic:
    """Fit the regression to rows of both sets, shapes (n0, d) and (n1, d).

    The objective is scikit-learn's, |w|^2 / 2 + C * sum of losses with C = 1 and a free intercept,
    minimised by L-BFGS from w = 0, on one thread: the steps are short, and threads that wait for
    each other took 30 times longer. It repeats bit for bit on one machine; other libraries of
    linear algebra may change last digits.
    """
    from scipy.optimize import minimize

    features, center, spread, length = _make_features(train0, train1)
    signs = np.repeat([1.0, -1.0], [len(train0), len(train1)])
    size, width = features.shape

    def objective(parameters: Reals) -> tuple[float, Reals]:
        weights, intercept = parameters[:-1], parameters[-1]
        margins = signs * (features @ weights + intercept)
        # ln(1 + e^-m) and its slope 1/(1 + e^m), from one exponential that cannot overflow.
        small = np.exp(-np.abs(margins))
        loss = np.sum(np.log1p(small) + np.maximum(-margins, 0.0))
        slopes = -signs * np.where(margins > 0.0, small, 1.0) / (1.0 + small)
        gradient = np.empty(width + 1)
        gradient[:-1] = weights + PENALTY * (slopes @ features)
        gradient[-1] = PENALTY * np.sum(slopes)
        value = 0.5 * float(weights @ weights) + PENALTY * float(loss)
        # Per row: the stopping rule is about the mean loss.
        return value / size, gradient / size

    start = np.zeros(width + 1)
    # With equal coordinates the best odds are those of the sizes: nothing has to be found.
    start[-1] = np.log(len(train0) / len(train1))
    options = {
        "maxiter": _MAX_FIT_ITERATIONS,
        "gtol": _GRADIENT_TOLERANCE,
        "ftol": 1e-12,
        "maxcor": 20,
    }
    with _limit_to_one_thread():
        found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options).x
    return Logistic(
        center, spread, length, found[: width - 1], float(found[width - 1]), float(found[width])
    )


def _make_features(
    train0: npt.NDArray[Any], train1: npt.NDArray[Any]
) -> tuple[Reals, Reals, Reals, tuple[float, float]]:
    """Standardise coordinates and squared lengths of both sets, stacked; return moments too."""
    dim = train0.shape[1]
    made = np.empty((len(train0) + len(train1), dim + 1))
    z = made[:, :dim]
    z[: len(train0)], z[len(train0) :] = train0, train1
    # A column of huge numbers would overflow when squared.
    largest = np.maximum(np.abs(z).max(axis=0), np.finfo(np.float64).tiny)
    z /= largest
    center, spread = np.mean(z, axis=0), np.std(z, axis=0)
    center, spread = center * largest, spread * largest
    # What differs by rounding only is constant, and says nothing of rows that differ from it.
    spread[spread <= 1e-12 * largest] = np.inf
    z[: len(train0)] = _standardise_rows(train0, center, spread)
    z[len(train0) :] = _standardise_rows(train1, center, spread)
    square = np.einsum("ij,ij->i", z, z)
    mean, deviation = float(np.mean(square)), float(np.std(square))
    # Where the sets differ in scale, d coordinates say so together: with the spread of a single one
    # the squared length would be penalised as if it were noise (power .85 for .99 at d = 384).
    unit = (deviation if deviation > 1e-12 * mean else max(mean, 1.0)) / math.sqrt(dim)
    made[:, dim] = (square - mean) / unit
    return made, center, spread, (mean, unit)


def _standardise_rows(rows: npt.NDArray[Any], center: Reals, spread: Reals) -> Reals:
    z: Reals = (rows - center) / spread
    return np.clip(z, -_MAX_STANDARDISED_COORDINATE, _MAX_STANDARDISED_COORDINATE, out=z)


@functools.cache
def _get_thread_pools() -> Any:
    import scipy.optimize  # noqa: F401 - its library of linear algebra has threads of its own
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _limit_to_one_thread() -> Any:
    return _get_thread_pools().limit(limits=1, user_api="blas")
