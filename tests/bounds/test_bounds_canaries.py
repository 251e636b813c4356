"""Bounds from one run: the theorems' own formulas, and coverage where the truth is known."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpcore import calibration
from dpcore.bounds import gdp_epsilon, one_run, one_run_fdp, one_run_mu
from dpcore.bounds.canaries import _chance_ceiling

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
