"""The cheapest move of the noise against an independent program, and textbook losses."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import dpcore


def find_least_loss(matrix, scales, gap):
    """Return the least sum of |s| / b with matrix s = gap, by a program in another form."""
    rows, count = matrix.shape
    # Variables: the move and its size.
    costs = np.concatenate([np.zeros(count), 1.0 / scales])
    eye = np.eye(count)
    limits = np.vstack([np.hstack([eye, -eye]), np.hstack([-eye, -eye])])
    keeps = np.hstack([matrix, np.zeros((rows, count))])
    bounds = [(None, None)] * count + [(0, None)] * count
    zeros = np.zeros(2 * count)
    program = linprog(costs, A_ub=limits, b_ub=zeros, A_eq=keeps, b_eq=gap, bounds=bounds)
    return program.fun


def trace_chain(seed):
    """Return the traced and the least loss of random sums of values and noise."""
    draw = np.random.default_rng(seed)
    count = int(draw.integers(1, 6))
    rows = int(draw.integers(1, count + 1))
    matrix = draw.integers(-3, 4, (rows, count)).astype(float)
    matrix[np.arange(rows), np.arange(rows)] += 7.0
    scales = draw.uniform(0.5, 3.0, count)
    pair = tuple(draw.integers(0, 5, rows).astype(float) for _ in range(2))
    pair[1][0] += np.array_equal(*pair)

    def chain(x, rng):
        noise = [rng.laplace(scale=scale) for scale in scales]
        values = []
        for value, row in zip(x, matrix, strict=True):
            for weight, part in zip(row, noise, strict=True):
                value = value + weight * part
            values.append(value)
        return values

    report = dpcore.trace(chain, pair, rng=seed)
    return report.loss, find_least_loss(matrix, scales, pair[0] - pair[1])


def test_random_chains_have_the_loss_of_an_independent_program():
    """Sums of values and shared noise: the loss is the least cost of all moves."""
    for seed in range(8):
        traced, least = trace_chain(seed)
        assert traced == pytest.approx(least, rel=1e-6, abs=1e-9)


@pytest.mark.sweep
def test_1000_random_chains_have_the_loss_of_an_independent_program():
    """The same for 1,000 chains."""
    for seed in range(1000):
        traced, least = trace_chain(seed)
        assert traced == pytest.approx(least, rel=1e-6, abs=1e-9), seed


def test_noisy_maximum_of_monotone_queries_costs_half():
    """The winner moves twice the change of a query, and once if all queries change alike."""

    def choose(x, rng):
        return int(np.argmax(np.array(x) + rng.laplace(scale=2.0, size=len(x))))

    assert dpcore.trace(choose, ([3, 5, 4], [4, 6, 5]), rng=1).loss == 0.0
    assert dpcore.trace(choose, ([3, 5, 4], [3, 6, 4]), rng=1).loss <= 0.5
    pair = [0, 0, 0], [1, -1, 1]
    assert max(dpcore.trace(choose, pair, rng=seed).loss for seed in range(5)) == 1.0


def test_sparse_vector_has_its_textbook_loss():
    """Threshold noise of scale 2 and query noise of scale 4 cost 1 for one answer."""

    def search(x, rng):
        threshold = 20 + rng.laplace(scale=2.0)
        for place, query in enumerate(x):
            if query + rng.laplace(scale=4.0) >= threshold:
                return place
        return None

    pair = [0] * 5 + [60], [1] * 5 + [59]
    assert dpcore.trace(search, pair, rng=1).loss == pytest.approx(1.0, rel=1e-9)
    # The noise of two queries is cheaper to move than that of the threshold.
    pair = [0] * 2 + [60], [1] * 2 + [59]
    assert dpcore.trace(search, pair, rng=1).loss == pytest.approx(0.75, rel=1e-9)


def test_many_thresholded_values_need_no_program():
    """10,000 clipped values are moved one by one."""

    def clip(x, rng):
        return np.maximum(x + rng.laplace(scale=2.0, size=len(x)), 0.0)

    x = np.arange(10_000) % 7 * 1.0
    other = x.copy()
    other[[3, 9]] += 1.0
    assert dpcore.trace(clip, (x, other), rng=1, draws=2).loss <= 1.0
