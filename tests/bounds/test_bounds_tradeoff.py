"""One event, all notions; the band on the trade-off curve lies above the curve as often as said."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpcore import bounds
from dpcore.records import Counts

ALPHA = 1e-4
RUNS = 400
CONFIDENCE = 0.8
MOST = int(stats.binom.isf(ALPHA, RUNS, 1 - CONFIDENCE))

COUNTS = Counts(900, 1000, 100, 1000)


def gaussian_delta(epsilon, mu):
    lost = np.exp(epsilon) * stats.norm.cdf(-epsilon / mu - mu / 2)
    return stats.norm.cdf(mu / 2 - epsilon / mu) - lost


def test_one_rectangle_gives_every_figure():
    p_low, q_high = bounds.limits(900, 1000, 0.05)[0], bounds.limits(100, 1000, 0.05)[1]
    epsilon = np.array([[0.0, 0.5], [1.0, 4.0]])
    expected = np.maximum(p_low - np.exp(epsilon) * q_high, 0.0)
    assert bounds.delta_lower(COUNTS, epsilon, 0.9) == pytest.approx(expected)
    mu = stats.norm.ppf(p_low) - stats.norm.ppf(q_high)
    assert bounds.mu_lower(COUNTS, 0.9) == pytest.approx(mu)
    deltas = [0.0, 0.01, 0.3, 0.95]
    found = bounds.epsilon_lower_at(COUNTS, deltas, 0.9)
    assert found.tolist() == [bounds.clopper_pearson(COUNTS, delta, 0.9) for delta in deltas]
    # delta(epsilon) and epsilon(delta) are one curve.
    assert bounds.delta_lower(COUNTS, found[:3], 0.9) == pytest.approx(deltas[:3])


def test_any_bound_fits_the_helper():
    found = bounds.epsilon_lower_at(COUNTS, [0.0, 0.1], 0.9, bounds.berger_boos)
    assert found.tolist() == [bounds.berger_boos(COUNTS, delta, 0.9) for delta in (0.0, 0.1)]
    assert bounds.epsilon_lower_at(COUNTS, 0.1).shape == ()


def test_ends_are_numbers():
    for counts in (Counts(0, 5, 5, 5), Counts(0, 5, 0, 5), Counts(5, 5, 5, 5)):
        assert bounds.mu_lower(counts) == 0.0
        assert bounds.delta_lower(counts, [0.0, 700.0, 1e5]).tolist() == [0.0, 0.0, 0.0]
    sure = Counts(10**8, 10**8, 0, 10**8)
    assert 0.0 < bounds.mu_lower(sure) < 20.0
    assert bounds.delta_lower(sure, [0.0, 1e4]).round(6).tolist() == [1.0, 0.0]
    assert bounds.delta_lower(sure, math.inf) == 0.0


def uncorrected(k, n, k_prime, n_prime):
    """Each of the thresholds given the whole error probability."""
    each = (1 - CONFIDENCE) / 2
    p_low = np.array([bounds.limits(a, n, each)[0] for a in k.tolist()])
    q_high = [bounds.limits(b, n_prime, each)[1] for b in k_prime.tolist()]
    return bounds.Band(q_high, 1.0 - p_low, CONFIDENCE, "clopper_pearson")


def missed(mu, make, n=2000):
    """Runs in which a point of the band lies below the trade-off curve of N(mu, 1) and N(0, 1)."""
    thresholds = np.linspace(-2.0, 3.0, 12)
    rng = np.random.default_rng(3)
    p, q = stats.norm.sf(thresholds, loc=mu), stats.norm.sf(thresholds)
    edges, misses = np.concatenate([[-np.inf], thresholds, [np.inf]]), 0
    cells = [np.diff(stats.norm.cdf(edges, loc=shift)) for shift in (mu, 0.0)]
    for _ in range(RUNS):
        k, j = (np.cumsum(rng.multinomial(n, cell)[::-1])[::-1][1:] for cell in cells)
        band = make(k, n, j, n)
        below = (band.type_one < q) | (1.0 - band.type_two > p)
        misses += bool(below.any())
        if not below.any():
            curve = stats.norm.cdf(stats.norm.isf(band.type_one) - mu)
            assert (band.type_two >= curve - 1e-12).all()
            assert band.mu <= mu
            assert band.epsilon(0.01) <= bounds.gdp_epsilon(mu, 0.01)
            assert (band.delta([0.5, 1.0]) <= gaussian_delta(np.array([0.5, 1.0]), mu)).all()
    return misses


@pytest.mark.parametrize("method", ["clopper_pearson", "dkw"])
def test_all_limits_of_a_band_hold_at_once(method):
    assert missed(1.0, lambda *counts: bounds.tradeoff_band(*counts, CONFIDENCE, method)) <= MOST


def test_control_twelve_thresholds_at_the_level_of_one_fail():
    assert missed(1.0, uncorrected) > MOST


def test_a_band_sees_most_of_a_gaussian():
    n, mu = 10**6, 1.0
    thresholds = np.linspace(-2.0, 4.0, 25)
    k, j = ((n * stats.norm.sf(thresholds, loc=s)).astype(int) for s in (mu, 0.0))
    for method, lost in (("clopper_pearson", 0.15), ("dkw", 0.4)):
        band = bounds.tradeoff_band(k, n, j, n, 0.95, method)
        assert 0.97 < band.mu < 1.0
        grid = np.array([0.05, 0.1, 0.3, 0.6])
        curve = stats.norm.cdf(stats.norm.isf(grid) - mu)
        assert ((curve < band.at(grid)) & (band.at(grid) < curve + 0.1)).all()
        known = gaussian_delta(np.array([0.0, 1.0]), mu)
        assert band.delta([0.0, 1.0]) == pytest.approx(known, abs=0.012)
        assert 0.0 < bounds.gdp_epsilon(mu, 0.01) - band.epsilon(0.01) < lost


def test_the_formulas_of_the_two_methods():
    k, j, n, m = [70, 40, 0], [30, 20, 0], 100, 80
    exact_band = bounds.tradeoff_band(k, n, j, m, 0.9)
    assert exact_band.type_two == pytest.approx([1 - bounds.limits(a, n, 0.1 / 6)[0] for a in k])
    assert exact_band.type_one == pytest.approx([bounds.limits(a, m, 0.1 / 6)[1] for a in j])
    dkw = bounds.tradeoff_band(k, n, j, m, 0.9, "dkw")
    margin, margin_prime = (math.sqrt(math.log(20) / (2 * size)) for size in (n, m))
    assert dkw.type_two == pytest.approx(np.minimum(1 - np.array(k) / n + margin, 1.0))
    assert dkw.type_one == pytest.approx(np.array(j) / m + margin_prime)
    assert (exact_band.method, dkw.method) == ("clopper_pearson", "dkw")


def test_the_step_function():
    band = bounds.Band([0.1, 0.4, 0.3], [0.7, 0.2, 0.65], 0.95, "dkw")
    places, steps = (
        [0.0, 0.05, 0.1, 0.25, 0.3, 0.4, 0.9, 1.0],
        [1, 0.95, 0.7, 0.7, 0.65, 0.2, 0.1, 0],
    )
    assert band.at(places) == pytest.approx(steps)
    assert (np.diff(band.at(np.linspace(0, 1, 101))) <= 0).all()
    assert (band.epsilon(0.0), band.epsilon(0.9)) == (pytest.approx(math.log(0.3 / 0.1)), 0.0)
    assert band.delta(0.0) == pytest.approx(0.4)
    assert bounds.Band([0.0], [0.5], 0.9, "dkw").epsilon(0.0) == math.inf
    assert bounds.Band([1.0], [0.0], 0.9, "dkw").mu == 0.0


def test_a_band_is_a_frozen_record():
    band, again = (bounds.tradeoff_band([5, 2], 10, [3, 0], 10) for _ in range(2))
    assert (band, hash(band)) == (again, hash(again))
    assert not band.type_one.flags.writeable
