"""Noise and randomised response for pure epsilon: their laws, their losses, and audits of them."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction
from functools import partial

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import dpcore
from dpcore import Pair
from dpcore.attacks import Threshold
from dpcore.calibration import L2Laplace, RandomisedResponse, l2_laplace, laplace

ALPHA = 1e-6
"""Significance of each test on samples; seeds are fixed."""

SIZE = 10**5


def test_the_scales_are_the_formula():
    assert (laplace(0.5, 3.0), l2_laplace(0.5, 3.0)) == (6.0, L2Laplace(6.0))
    assert l2_laplace(0.5, 3.0) != L2Laplace(3.0)


def radius_p_value(dim, scale, true_scale, shape=None):
    noise = L2Laplace(scale)(np.zeros(dim), SIZE, 1)
    law = stats.gamma(shape or dim, scale=true_scale)
    return stats.kstest(np.linalg.norm(noise, axis=1), law.cdf).pvalue


@pytest.mark.parametrize("dim", [1, 2, 3, 8, 50])
def test_the_length_is_gamma(dim):
    assert radius_p_value(dim, 2.5, 2.5) > ALPHA
    # The controls: 4 % more scale, one dimension more.
    assert radius_p_value(dim, 2.5, 2.6) < ALPHA
    assert radius_p_value(dim, 2.5, 2.5, shape=dim + 1) < ALPHA


def cap_p_value(noise):
    """A unit vector's entry t has (1 + t)/2 ~ Beta((dim-1)/2, (dim-1)/2)."""
    dim = noise.shape[1]
    entries = noise[:, -1] / np.linalg.norm(noise, axis=1)
    law = stats.beta((dim - 1) / 2, (dim - 1) / 2)
    return stats.kstest((1.0 + entries) / 2.0, law.cdf).pvalue


@pytest.mark.parametrize("dim", [2, 3, 8])
def test_the_direction_is_uniform(dim):
    noise = L2Laplace(1.0)(np.zeros(dim), SIZE, 2)
    assert cap_p_value(noise) > ALPHA
    means = noise.mean(axis=0) / (noise.std(axis=0) / np.sqrt(SIZE))
    assert np.abs(means).max() < stats.norm.isf(ALPHA / 2 / dim)
    # The control: entries that are each Laplace lie too often near an axis.
    assert cap_p_value(np.random.default_rng(2).laplace(size=(SIZE, dim))) < ALPHA


@pytest.mark.parametrize("dim", [2, 8])
def test_length_and_direction_are_independent(dim):
    noise = L2Laplace(1.0)(np.zeros(dim), SIZE, 3)
    lengths = np.linalg.norm(noise, axis=1)
    assert stats.spearmanr(lengths, np.abs(noise[:, 0]) / lengths).pvalue > ALPHA
    assert stats.spearmanr(lengths, np.abs(noise[:, 0])).pvalue < ALPHA


def test_in_one_dimension_it_is_laplace_noise():
    noise = L2Laplace(3.0)([10.0], SIZE, 4)[:, 0]
    assert stats.kstest(noise, stats.laplace(10.0, 3.0).cdf).pvalue > ALPHA
    assert stats.kstest(noise, stats.laplace(10.0, 3.1).cdf).pvalue < ALPHA


def test_calls_repeat_and_move_with_the_input():
    mechanism = L2Laplace(0.5)
    first, again = (mechanism([1.0, -2.0], 4, np.random.default_rng(7)) for _ in range(2))
    assert (first == again).all()
    assert np.allclose(first - [1.0, -2.0], mechanism([0.0, 0.0], 4, np.random.default_rng(7)))
    assert (first.shape, mechanism([0.0], 0, 1).shape) == ((4, 2), (0, 1))
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism
    assert np.isfinite(L2Laplace(1e300)(np.zeros(5), 100, 1)).all()


class Zeros(np.random.Generator):
    """A generator whose first normal draws are zeros."""

    def standard_normal(self, size):
        drawn = super().standard_normal(size)
        if np.ndim(drawn) == 2:
            drawn[::2] = 0.0
        return drawn


def test_a_direction_of_zeros_is_drawn_again():
    noise = L2Laplace(1.0)([0.0, 0.0], 10, Zeros(np.random.PCG64(1)))
    assert np.isfinite(noise).all()
    assert (np.linalg.norm(noise, axis=1) > 0).all()


# The privacy loss.


def worst(dim, apart=1.0):
    return Pair(np.zeros(dim), apart * np.full(dim, dim**-0.5))


@pytest.mark.parametrize("dim", [1, 2, 8, 1000])
def test_on_the_line_beyond_x_the_loss_is_exactly_epsilon(dim):
    mechanism, pair = l2_laplace(0.7, 2.0), worst(dim, 2.0)
    beyond = np.outer([0.0, -1e-9, -1.0, -1e6, -1e200], pair.x_prime / 2.0)
    for outputs, loss in ((beyond, 0.7), (pair.x_prime - beyond, -0.7), ([pair.x_prime / 2], 0.0)):
        assert mechanism.log_ratio(outputs, pair) == pytest.approx(loss, rel=1e-12, abs=1e-15)


@given(
    st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=3),
    st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=3),
    st.lists(st.floats(-1e150, 1e150), min_size=3, max_size=3),
)
def test_the_loss_is_within_the_distance_and_agrees_with_the_density(x, x_prime, y):
    found = float(L2Laplace(2.0).log_ratio([y], Pair(x, x_prime))[0])
    assert abs(found) <= (math.dist(x, x_prime) / 2.0) * (1 + 1e-12)
    if max(map(abs, y)) < 1e4:
        assert found == pytest.approx((math.dist(y, x_prime) - math.dist(y, x)) / 2.0, abs=1e-9)


@pytest.mark.parametrize(("dim", "share", "trials"), [(2, 0.9, 2 * 10**5), (8, 0.7, 10**6)])
def test_an_audit_certifies_most_of_epsilon_and_never_more(dim, share, trials):
    mechanism, pair = l2_laplace(1.0, 1.0), worst(dim)
    attack = Threshold(partial(mechanism.log_ratio, pair=pair))
    report = dpcore.audit(mechanism, pair, attack=attack, trials=trials, claim=1.0, rng=1)
    assert share < report.epsilon_lower <= 1.0
    assert report.refuted is False
    # The control: the same noise against half the claim is refuted.
    assert dpcore.audit(mechanism, pair, attack=attack, trials=10**5, claim=0.5, rng=1).refuted


def test_threads_change_nothing():
    mechanism, pair = L2Laplace(1.0), worst(2)
    options = {"trials": 10**5, "claim": 1.0, "rng": 1}
    one, two = (dpcore.audit(mechanism, pair, threads=number, **options) for number in (1, 2))
    assert one == two


# Randomised response: its law on the grid of the draws, its exact loss, and an audit.


def p_value(outputs, x, keep, values):
    expected = np.full(values, (1.0 - keep) / (values - 1))
    expected[x] = keep
    counts = np.bincount(outputs, minlength=values)
    return stats.chisquare(counts, expected * outputs.size).pvalue


@pytest.mark.parametrize(("epsilon", "values"), [(0.1, 2), (1.0, 2), (1.0, 5), (3.0, 4), (2.0, 30)])
def test_the_law_is_the_formula(epsilon, values):
    keep = math.exp(epsilon) / (math.exp(epsilon) + values - 1)
    for x in (0, values - 1):
        outputs = RandomisedResponse(epsilon, values)(x, 2 * SIZE, 1)
        assert (outputs.shape, outputs.dtype) == ((2 * SIZE,), np.int64)
        assert p_value(outputs, x, keep, values) > ALPHA
        # The control: 4 % more of the truth.
        assert p_value(outputs, x, min(1.04 * keep, 0.999), values) < ALPHA


def test_entries_move_independently():
    outputs = RandomisedResponse(0.5, 3)(np.array([0, 1, 2]), 2 * SIZE, 2)
    assert outputs.shape == (2 * SIZE, 3)
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
