"""Randomised response: its law on the grid of the draws, its exact loss, and an audit."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import dpcore
from dpcore import Pair
from dpcore.calibration import RandomisedResponse

ALPHA = 1e-6
"""Significance of each test on samples; seeds are fixed."""

SIZE = 2 * 10**5


def p_value(outputs, x, keep, values):
    expected = np.full(values, (1.0 - keep) / (values - 1))
    expected[x] = keep
    counts = np.bincount(outputs, minlength=values)
    return stats.chisquare(counts, expected * outputs.size).pvalue


@pytest.mark.parametrize(("epsilon", "values"), [(0.1, 2), (1.0, 2), (1.0, 5), (3.0, 4), (2.0, 30)])
def test_the_law_is_the_formula(epsilon, values):
    keep = math.exp(epsilon) / (math.exp(epsilon) + values - 1)
    for x in (0, values - 1):
        outputs = RandomisedResponse(epsilon, values)(x, SIZE, 1)
        assert (outputs.shape, outputs.dtype) == ((SIZE,), np.int64)
        assert p_value(outputs, x, keep, values) > ALPHA
        # The control: 4 % more of the truth.
        assert p_value(outputs, x, min(1.04 * keep, 0.999), values) < ALPHA


def test_entries_move_independently():
    outputs = RandomisedResponse(0.5, 3)(np.array([0, 1, 2]), SIZE, 2)
    assert outputs.shape == (SIZE, 3)
    moved = outputs != [0, 1, 2]
    for i, j in ((0, 1), (0, 2), (1, 2)):
        table = np.histogram2d(*moved[:, [i, j]].T.astype(float), bins=2)[0]
        assert stats.chi2_contingency(table).pvalue > ALPHA


@given(st.floats(-15.0, 3.0).map(lambda t: 10.0**t), st.integers(2, 2**31))
def test_the_loss_is_exact_and_never_above_epsilon(epsilon, values):
    response = RandomisedResponse(epsilon, values)
    blind = Fraction(response.blind)
    assert (blind * 2**53).denominator == 1
    assert 0 < blind <= 1
    other = blind / values
    ratio = (1 - blind + other) / other
    with mp.workdps(60):
        exact = mp.log(mp.mpf(ratio.numerator) / ratio.denominator)
        assert abs(response.entry_loss - float(exact)) <= 1e-15 * float(exact)
        assert exact <= mp.mpf(epsilon)
        # Privacy is given away for nothing only where the grid is too coarse.
        if blind > Fraction(1, 2**30) and epsilon > values * 2.0**-30:
            assert float(exact) > epsilon * (1 - 1e-6)
    assert response.keep == pytest.approx(float(ratio * other), rel=1e-9)


def test_huge_epsilons_still_move_now_and_then():
    for epsilon in (40.0, 1e3, 1e300):
        response = RandomisedResponse(epsilon)
        assert response.blind == 2.0**-53
        assert response.entry_loss == pytest.approx(54 * math.log(2.0), rel=1e-15)
        assert set(response(np.zeros(1, int), 200, Lowest(np.random.PCG64(1))).ravel()) == {0, 1}


class Lowest(np.random.Generator):
    """A generator whose uniform draws are all the lowest one."""

    def random(self, shape):
        return np.zeros(shape)


def test_the_loss_of_a_pair_counts_the_entries_that_differ():
    response = RandomisedResponse(0.5, 4)
    pairs = Pair([0, 1, 2], [0, 1, 2]), response.default_pair(5), Pair([0, 1, 2], [3, 1, 0])
    assert [response.loss(pair) / response.entry_loss for pair in pairs] == [0.0, 1.0, 2.0]
    assert response.loss(Pair(0, 1)) == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize(("epsilon", "values"), [(1.0, 2), (2.0, 6)])
def test_an_audit_certifies_most_of_it_and_never_more(epsilon, values):
    response = RandomisedResponse(epsilon, values)
    report = dpcore.audit(response, trials=2 * 10**5, claim=epsilon, rng=1)
    assert 0.9 * epsilon < report.epsilon_lower <= epsilon
    assert dpcore.audit(response, trials=10**5, claim=0.8 * epsilon, rng=1).refuted


def test_the_record():
    response = RandomisedResponse(1.0, 4)
    assert pickle.loads(pickle.dumps(response)) == response != RandomisedResponse(1.0)
    assert repr(response) == "RandomisedResponse(epsilon=1.0, values=4)"
    first = response([0, 3], 5, np.random.default_rng(1))
    assert (first == response([0.0, 3.0], 5, np.random.default_rng(1))).all()
    assert response(True, 3, 1).shape == (3,)
