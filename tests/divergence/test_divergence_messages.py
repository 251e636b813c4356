"""Messages of wrong calls of `dpcore.divergence`: the argument, and a word of the remedy."""

from __future__ import annotations

import math

import numpy as np
from shared_divergence import plan_for, run_task
from shared_messages import check_messages

from dpcore import _core
from dpcore.divergence import kl, renyi
from dpcore.divergence.certificates import (
    HeldOut,
    certify,
    count_held_out,
    epsilon_hat,
    epsilon_lower,
)
from dpcore.divergence.conversions import line
from dpcore.divergence.estimators import estimate_by_balls, estimate_by_k_nearest, estimate_by_paper
from dpcore.divergence.points import find_points
from dpcore.divergence.score import cross_fit, is_fixed_score

RNG = np.random.default_rng(11)

Y0, Y1 = RNG.normal(size=(2, 400, 3))

ROWS = np.arange(60.0).reshape(20, 3)

ALL = np.arange(20)

ALPHAS = np.array([0.5, 1.0, 1.5, 2.0])


def run(y0, y1, alphas=ALPHAS, k=3, drawn=None, **options):
    return run_task(estimate_by_k_nearest, find_points(y0, y1, **options), alphas, k, drawn)


def paper(y0, y1, k=2, own=False):
    options = {"self_neighbour": own, "literal": False}
    return run_task(estimate_by_paper, find_points(y0, y1), ALPHAS, k, **options)


def ball(alphas, k):
    return run_task(estimate_by_balls, find_points(Y0[:70], Y1[:60]), alphas, k)


def hold(y0, y1, **options):
    return count_held_out(find_points(y0, y1, **options), RNG, one_per_group="groups0" in options)


def fit(score=None, size=400, **options):
    return cross_fit(find_points(Y0[:size], Y1, **options), RNG, score)


HELD = HeldOut(np.zeros(1), np.ones((2, 1)), (9, 9), np.ones((2, 1)), (9, 9), (0, 0))

X0, X1 = [0, 1, 3, 7], [0.5, 2, 4, 8]

BOOTSTRAP = plan_for("bootstrap", find_points(X0, X1), 5)

NEAR = [[0, 0], [1e-200, 0], [2e-200, 0], [2, 2]]

VALUE_ERRORS = [
    # Held-out rows, and what is certified from their counts.
    (lambda: hold(Y0, Y1, scale="std"), "points", "unscaled"),
    (lambda: hold(Y0, Y1[:3]), "y1", "of at least 4 rows for held-out events"),
    (lambda: hold(Y0, Y1, groups0=np.arange(400) % 3), "y0", "of at least 4 groups"),
    (lambda: certify(HELD, np.array([2.0, 1.0])), "alphas", "ascending finite orders above 0"),
    (lambda: certify(HELD, np.array([0.0, 1.0])), "alphas", "ascending finite orders above 0"),
    (lambda: certify(HELD, np.array([])), "alphas", "ascending finite orders above 0"),
    (lambda: certify(HELD, np.array([math.inf])), "alphas", "ascending finite orders above 0"),
    (lambda: certify(HELD, ALPHAS, 1.0), "confidence", "a finite number above 0"),
    (lambda: epsilon_lower(HELD, 1.0), "delta", "a finite number at least 0"),
    # Scores: what they return, and too little to be split.
    (lambda: fit(lambda rows: rows), "score", "shape (800,), got 'shape (800, 3)'"),
    (lambda: fit(lambda rows: rows[:-1, 0]), "score", "a callable that returns one finite"),
    (lambda: fit(lambda rows: rows[:, 0] * math.nan), "score", "nan for"),
    (lambda: fit(size=3), "y0", "of at least 4 rows to be split"),
    (lambda: fit(groups1=np.arange(400) % 3), "y1", "of at least 4 groups to be split"),
    # Orders and neighbours beyond what a method allows, and rows at distance zero.
    (lambda: ball([6.5], 5), "alphas", "at most min(N0, N1, k + 1) = 6 for ball, got 6.5"),
    (lambda: ball([2.0, 70.0], 90), "alphas", "= 60 for ball, got 70.0"),
    (lambda: ball([71.0], 100), "alphas", "= 60 for ball, got 71.0"),
    (lambda: run(X0, X1, [3.0], 2), "alphas", "above -1 and below 3 for poczos with k = 2, got 3"),
    (lambda: run(X0, X1, [1.5, 4.5], 3), "alphas", "below 4 for poczos with k = 3, got 4.5"),
    (lambda: run(X0, X1, k=4), "k", "below the rows of both sets, 4"),
    (lambda: paper([0, 1, 2], [5, 5, 5]), "y1", "of at least 2 distinct rows"),
    (lambda: paper([0, 0, 0], [5, 6, 5]), "y0", "of at least 2 distinct rows"),
    # A row that the other set has too, or that is its own first neighbour.
    (lambda: paper(range(4), [5, 6, 3, 3], 1), "method", "1 of 4 rows of y0 and 2 of 4 rows of y1"),
    (lambda: paper(range(4), [5, 6, 7, 7], 1, True), "method",
     "distance zero, as 4 of 4 rows of y0 and 4 of 4 rows of y1 have"),
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
    (lambda: run(X0, X1, k=2, drawn=BOOTSTRAP), "error", "'jackknife' or 'subsample'"),
    # Distinct, but the square of the difference underflows.
    (lambda: run([0, 0, 0, 1, 3, 4], [5, 6, 7, 8], k=1, alphas=[1.5]), "method", "3 of 6 rows"),
    (lambda: run([0, 1, 2, 3, 4], [5, 6, 4, 4], k=1, alphas=[1.5]), "method", "1 of 5 rows of y0"),
    (lambda: run(range(4), [5, 6, 7, 8], [1.5], 1, counts1=[1, 1, 1, 2]), "method",
     "2 of 5 rows of y1 have"),
    (lambda: run(NEAR, [[5, 5], [6, 6], [7, 7]], [1.5], 1), "method", "3 of 4 rows of y0 have"),
]  # fmt: skip
TYPE_ERRORS = [
    (lambda: epsilon_hat(3, 0.1), "held_out", "a HeldOut"),
    (lambda: fit(lambda rows: ["a"] * len(rows)), "score", "a callable that returns"),
    (lambda: fit(lambda rows: rows[:, 0] * 1j), "score", "a callable that returns"),
    (lambda: fit(lambda train0, train1: 3.0), "score", "a fitting function that returns"),
    (lambda: is_fixed_score(lambda a, b, c: a), "score", "with 3 required arguments"),
    (lambda: is_fixed_score("logistic"), "score", "None or a callable"),
    (lambda: kl(Y0, Y1, alphas=[2.0]), "alphas", "left out"),
    # `renyi` and `kl` as a whole: what they return, which rows and orders, and what they refuse.
    (lambda: renyi(Y0, Y1, alphas="two"), "alphas", "None or orders above 0"),
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
