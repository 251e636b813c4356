"""Messages of wrong calls of `dpcore.divergence`: the argument, and a word of the remedy."""

from __future__ import annotations

import math

import numpy as np
from shared_divergence import plan_for, run_task
from shared_messages import check_messages

from dpcore import _core
from dpcore.divergence import renyi
from dpcore.divergence.conversion import line
from dpcore.divergence.estimators import estimate_by_distances
from dpcore.divergence.points import find_points

RNG = np.random.default_rng(11)

Y0, Y1 = RNG.normal(size=(2, 400, 3))

ROWS = np.arange(60.0).reshape(20, 3)

ALL = np.arange(20)

ALPHAS = np.array([0.5, 1.0, 1.5, 2.0])


def run(y0, y1, alphas=ALPHAS, k=3, drawn=None, **options):
    return run_task(estimate_by_distances, find_points(y0, y1, **options), alphas, k, drawn)


X0, X1 = [0, 1, 3, 7], [0.5, 2, 4, 8]

VALUE_ERRORS = [
    # From Renyi curves to (epsilon, delta): known figures, brute force, soundness and its traps.
    (lambda: line([2.0, np.inf], [0.1, 0.2], 0.1), "alphas", "finite orders"),
    (lambda: line([2.0, 3.0], [0.1, np.inf], 0.1), "values", "finite numbers"),
    # `renyi` and `kl` as a whole: what they return, which rows and orders, and what they refuse.
    (lambda: renyi(Y0, Y1, k=0), "k", "an integer at least 1"),
    (lambda: renyi(Y0, Y1, k=401), "k", "at most 400, the rows of the smaller set"),
    (lambda: renyi(Y0, Y1, alphas=[0.0]), "alphas", "finite orders above 0"),
    (lambda: renyi(Y0, Y1, alphas=[math.nan]), "alphas", "finite orders above 0"),
    (lambda: renyi(Y0, Y1, alphas=[3.0, 2.0]), "alphas", "strictly ascending"),
    (lambda: renyi(Y0, Y1, alphas=[]), "alphas", "one order or a row of them"),
    (lambda: renyi(Y0, Y1, alphas=[21.5]), "alphas", "at most 21"),
    (lambda: renyi(Y0, Y1, alphas=[21.0], method="poczos"), "alphas", "at most 21"),
    (lambda: renyi(Y0, Y1, method="knn"), "method", "one of 'auto'"),
    (lambda: renyi(Y0, Y1, error="delta"), "error", "one of 'jackknife'"),
    (lambda: renyi(Y0, Y1, rows="one_run"), "rows", "None or 'independent'"),
    (lambda: renyi(Y0, Y1, certified=True), "rows", "'independent' for certified=True"),
    (lambda: renyi(Y0, Y1, certified=True, groups0=range(400)), "rows", "'independent' for"),
    (lambda: renyi(Y0, Y1, confidence=1.0), "confidence", "a finite number above 0 and below 1"),
    (lambda: renyi(Y0, Y1, replicates=9), "replicates", "None for the jackknife"),
    (lambda: renyi(Y0, Y1, score=len, checks=False, method="ball"), "score", "None where no score"),
    # The core's nearest neighbours and balls against distances in numpy, on every path.
    (lambda: _core.pool_rows(ROWS, ROWS[:, :2].copy()), "rows1", "rows of 3"),
    (lambda: _core.pool_rows(ROWS, np.asfortranarray(ROWS)), "rows1", "C-contiguous"),
    (lambda: _core.pool_rows(ROWS[:, :0], ROWS[:, :0]), "dim", "at least 1"),
    (lambda: _core.nearest(ROWS, ROWS, ALL, ALL, 0, 1), "depth", "at least 1"),
    (lambda: _core.nearest(ROWS, ROWS, ALL, ALL, 1, 0), "threads", "from 1 to 1024"),
    (lambda: _core.nearest(ROWS, ROWS, ALL + 21, ALL, 1, 1), "queries", "rows below 40"),
    (lambda: _core.nearest(ROWS, ROWS, ALL, ALL - 1, 1, 1), "points", "rows below 40"),
    (lambda: _core.inside(ROWS, ROWS, ALL, ALL, ALL, np.ones(19), 9, 1), "starts", "21 ascending"),
    (lambda: _core.inside(ROWS, ROWS, ALL[:1], ALL, ALL[[0, 2]], np.array([2.0, 1]), 9, 1),
     "squared", "ascending for every query"),
    # Poczos and Schneider's estimator against its formula, and resampling against a fresh search.
    (lambda: run(X0, X1, k=2, drawn=plan_for("bootstrap", find_points(X0, X1), 5)), "error",
     "'jackknife' or 'subsample'"),
    # Distinct, but the square of the difference underflows.
    (lambda: run([0, 0, 0, 1, 3, 4], [5, 6, 7, 8], k=1, alphas=[1.5]), "method", "3 of 6 rows"),
    (lambda: run([0, 1, 2, 3, 4], [5, 6, 4, 4], k=1, alphas=[1.5]), "method", "1 of 5 rows of y0"),
    (lambda: run([0, 1, 2, 3], [5, 6, 7, 8], k=1, alphas=[1.5], counts1=[1, 1, 1, 2]), "method",
     "2 of 5 rows of y1 have"),
    (lambda: run([[0, 0], [1e-200, 0], [2e-200, 0], [2, 2]], [[5, 5], [6, 6], [7, 7]], k=1,
     alphas=[1.5]), "method", "3 of 4 rows of y0 have"),
]  # fmt: skip
TYPE_ERRORS = [
    # `renyi` and `kl` as a whole: what they return, which rows and orders, and what they refuse.
    (lambda: renyi(Y0, Y1, alphas="two"), "alphas", "None or orders above 0"),
    (lambda: renyi(Y0, Y1, k=True), "k", "an integer at least 1"),
    (lambda: renyi(Y0, Y1, certified=1), "certified", "True or False"),
    (lambda: renyi(Y0, Y1, checks=None), "checks", "True or False"),
    (lambda: renyi(Y0, Y1, score=3), "score", "None or a callable"),
    (lambda: renyi(Y0, Y1, rng="seed"), "rng", "None, an int"),
    # The core's nearest neighbours and balls against distances in numpy, on every path.
    (lambda: _core.pool_rows(ROWS, ROWS.astype(np.float32)), "rows0 and rows1", "matrices, both"),
    (lambda: _core.pool_rows(ROWS[0], ROWS), "rows0 and rows1", "matrices, both of float32"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
