"""One event, all notions; bands on trade-off curves; bounds from one run, and their coverage."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpcore import bounds, calibration
from dpcore.bounds import gdp_epsilon, one_run, one_run_fdp, one_run_mu
from dpcore.bounds.canaries import _chance_ceiling
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


@pytest.mark.sweep
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


# Bounds from one run: the theorems' own formulas, and coverage where the truth is known.


ALPHA = 1e-4


def chance(guesses, correct, canaries, odds, delta):
    """Theorem 5.2 by its definition, in fractions; odds is e^epsilon."""
    rate = Fraction(odds, odds + 1)
    every = range(guesses + 1)
    pmf = [math.comb(guesses, w) * rate**w * (1 - rate) ** (guesses - w) for w in every]
    shares = (sum(pmf[max(0, correct - i) : correct]) / i for i in range(1, correct + 1))
    return min(1, sum(pmf[correct:]) + 2 * canaries * delta * max(shares, default=0))


@pytest.mark.parametrize("guesses", [1, 7, 30])
@pytest.mark.parametrize("odds", [1, 2, 20])
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**5), Fraction(1, 50)])
def test_the_ceiling_of_the_theorem(guesses, odds, delta):
    for correct in range(guesses + 1):
        expected = float(chance(guesses, correct, 40, odds, delta))
        found = _chance_ceiling(guesses, correct, 40, math.log(odds), float(delta))
        assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_the_bound_is_where_the_ceiling_reaches_the_level(delta):
    bound = one_run(100, 90, 1000, delta, 0.95)
    assert _chance_ceiling(100, 90, 1000, bound, delta) == pytest.approx(0.05, rel=1e-6)


@pytest.mark.parametrize(
    ("canaries", "guesses", "correct", "epsilon", "mu"),
    [
        # By the authors' algorithms as printed, at delta 1e-5 and 95 %.
        (1000, 100, 90, 1.626143, 0.602504),
        (1000, 1000, 700, 0.731740, 0.357211),
        (100, 100, 80, 0.958086, 0.530689),
        (10, 10, 10, 1.051510, 0.677958),
        (10000, 1500, 1400, 2.460737, 0.832992),
        (10000, 10000, 6915, 0.771073, 0.341563),
    ],
)
def test_reference_values(canaries, guesses, correct, epsilon, mu):
    assert one_run(guesses, correct, canaries, 1e-5) == pytest.approx(epsilon, abs=2e-6)
    assert one_run_mu(guesses, correct, canaries) == pytest.approx(mu, abs=2e-6)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (0.2, 0.0), (3.0, 0.0), (1.0, 0.01)])
@pytest.mark.parametrize("guesses", [5, 60])
def test_randomised_response_is_not_overclaimed(epsilon, delta, guesses):
    """Exact: each of the guessed canaries is told truly with e^eps/(1 + e^eps), or leaks."""
    truth = delta + (1 - delta) / (1 + math.exp(-epsilon))
    found = [one_run(guesses, v, guesses, delta, 0.9) for v in range(guesses + 1)]
    weight = stats.binom.pmf(np.arange(guesses + 1), guesses, truth)
    miss = sum(w for w, bound in zip(weight, found, strict=True) if bound > epsilon + 1e-9)
    assert miss <= 0.1
    if delta == 0.0 and guesses == 60:
        assert miss > 0.02
        # The control: claims of a twentieth less are refuted too often once they are false.
        assert sum(w for w, b in zip(weight, found, strict=True) if b > 0.7 * epsilon) > 0.1


def test_gaussian_noise_on_every_canary_is_not_overclaimed():
    """mu-GDP exactly: one output per canary, N(+-mu/2, 1); the surest of them are guessed."""
    mu, canaries, guesses, runs = 1.0, 300, 60, 400
    rng = np.random.default_rng(2)
    signs = rng.choice([-1.0, 1.0], (runs, canaries))
    outputs = signs * mu / 2 + rng.standard_normal((runs, canaries))
    surest = np.argsort(-np.abs(outputs), axis=1)[:, :guesses]
    right = np.take_along_axis(outputs * signs > 0, surest, axis=1).sum(axis=1)
    bounds = {v: one_run_mu(guesses, v, canaries, 0.9) for v in np.unique(right).tolist()}
    found = np.array([bounds[v] for v in right.tolist()])
    most = int(stats.binom.isf(ALPHA, runs, 0.1))
    assert (found > mu).sum() <= most
    assert np.median(found) > 0.3
    # The control: half of the truth, as a claim, is refuted.
    assert (found > 0.3 * mu).sum() > most


def test_monotone_in_what_is_seen():
    for bound in (lambda *a: one_run(*a, 1e-4), one_run_mu):
        found = [bound(50, v, 200) for v in range(51)]
        assert found == sorted(found)
        assert found[0] == found[25] == 0.0
        assert 0.5 < found[50] < 10.0
    more = [one_run(50, 45, 200, delta) for delta in (0.0, 1e-6, 1e-4, 1e-2)]
    assert (more, more[-1]) == (sorted(more, reverse=True), 0.0)
    sure = [one_run_mu(50, 45, 200, confidence) for confidence in (0.5, 0.9, 0.99)]
    assert sure == sorted(sure, reverse=True)


def test_the_gaussian_curve_sees_more_than_epsilon_and_delta():
    assert one_run_fdp(100, 90, 1000, 1e-5) > one_run(100, 90, 1000, 1e-5)
    assert one_run_fdp(100, 90, 1000, 1e-5) == gdp_epsilon(one_run_mu(100, 90, 1000), 1e-5)


def test_epsilon_of_a_gaussian_at_its_ends():
    # The spec's figure: mu = 1 at 1e-5 has epsilon 4.377.
    assert (gdp_epsilon(1.0, 1e-5), gdp_epsilon(0.0, 1e-5)) == (pytest.approx(4.377, abs=5e-4), 0.0)
    # A total variation below delta needs no epsilon.
    assert gdp_epsilon(0.01, 0.5) == 0.0
    assert 1e300 < gdp_epsilon(1e200, 1e-5) < math.inf


@pytest.mark.parametrize("delta", [1e-20, 1e-9, 1e-5, 0.01, 0.5])
@pytest.mark.parametrize("mu", [1e-9, 1e-3, 0.1, 1.0, 5.0, 30.0])
def test_epsilon_of_a_gaussian_is_that_of_the_noise_rounded_down(mu, delta):
    low, exact = gdp_epsilon(mu, delta), calibration.gaussian_epsilon(1.0, delta, mu)
    # The steps of the search end at 2^-60 where epsilon is below 1.
    assert low <= exact * (1.0 + 1e-15)
    assert low == pytest.approx(exact, rel=1e-14, abs=2.0**-59)
