"""Renyi divergences of numbers: both directions, 40 orders, a million rows a side.

Two normal laws, a mean shift of one standard deviation. An operation is one row. The rival is
what numpy can do without a loop in Python: sort, `searchsorted` for windows and balls.
"""

import numpy as np
import pytest

from dpcore import _core
from dpcore.divergence.estimators import line_ball
from dpcore.divergence.points import plan_replicates

ALPHAS = np.concatenate([[1.0], 1.1 ** np.arange(1, 40)])
K = 20


@pytest.fixture(scope="module")
def sets(tiny):
    rng = np.random.default_rng(1)
    size = 2000 if tiny else 1_000_000
    return rng.normal(size=size) + 1.0, rng.normal(size=size)


@pytest.fixture(scope="module")
def groups(sets):
    sizes = len(sets[0]), len(sets[1])
    return plan_replicates("jackknife", sizes, (None, None), np.random.default_rng(2))


def dpcore_all_cores(sets, drawn):
    return line_ball(*sets, ALPHAS, K, drawn, _core.cores())


def dpcore_one_thread(sets, drawn):
    return line_ball(*sets, ALPHAS, K, drawn, 1)


def numpy_counts(own, other):
    """Rows of the own set in each ball, for distances without ties."""
    first = np.clip(np.searchsorted(other, own) - K, 0, len(other) - K)
    for _ in range(K):
        late = np.minimum(first + K, len(other) - 1)
        closer = np.abs(own - other[late]) < np.abs(own - other[first])
        first += closer & (first + K < len(other))
    radius = np.maximum(np.abs(own - other[first]), np.abs(own - other[first + K - 1]))
    high = np.searchsorted(own, own + radius, "right")
    return high - np.searchsorted(own, own - radius) - 1


def numpy_vectorised(sets, _):
    y0, y1 = np.sort(sets[0]), np.sort(sets[1])
    value = []
    for own, other in ((y0, y1), (y1, y0)):
        n, rows = np.unique(numpy_counts(own, other), return_counts=True)
        arrays = n.astype(np.int64), np.full(len(n), K - 1), np.zeros(len(n), bool)
        found = _core.ball_values(*arrays, rows.astype(float), len(own), len(other), ALPHAS)
        value.append(found[0])
    return np.array(value)


CONTENDERS = [dpcore_all_cores, dpcore_one_thread, numpy_vectorised]


@pytest.mark.parametrize("contender", CONTENDERS)
def test_both_directions(race, sets, contender):
    group = f"divergences of numbers, {len(sets[0])} rows a side"
    found = race(group, lambda: contender(sets, None), len(sets[0]) + len(sets[1]), 5)
    value = getattr(found, "value", found)
    expected = numpy_vectorised(sets, None)
    # The ends of numpy's balls are rounded: a few rows are in others.
    np.testing.assert_allclose(value, expected, rtol=1e-3, atol=1e-3)
    assert np.abs(value[:, 0] - 0.5).max() < 5 / np.sqrt(len(sets[0])) + 0.01


@pytest.mark.parametrize("contender", CONTENDERS[:2])
def test_with_the_jackknife(race, sets, groups, contender):
    group = f"divergences of numbers with error bars, {len(sets[0])} rows a side"
    found = race(group, lambda: contender(sets, groups), len(sets[0]) + len(sets[1]), 3)
    assert found.counted == {"replicates": 40}
    # ln(p/q) has a standard deviation of 1 under either law, and p/q one of (e - 1)^(1/2).
    expected = np.sqrt((1 + np.e - 1) / len(sets[0]))
    assert (np.abs(found.std_error[:, 0] / expected - 1) < 0.6).all()
