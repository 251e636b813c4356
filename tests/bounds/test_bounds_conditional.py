"""The conditional bound: exact for a fair coin, conservative for fixed sides, by enumeration."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from dpcore.bounds import conditional
from dpcore.records import Counts

ALPHA = 0.1


def table(n, n_prime, sides, alpha=ALPHA):
    found = np.empty((n + 1, n_prime + 1))
    for k, j in np.ndindex(found.shape):
        found[k, j] = conditional(Counts(k, n, j, n_prime), 0.0, 1 - alpha, sides=sides)
    return found


def worst_fixed(found, n, n_prime):
    """The largest P(bound > ln(p/q)) over rates, n and n' fixed."""
    worst = 0.0
    rates = np.concatenate([np.geomspace(2e-3, 0.99, 20), np.linspace(0.04, 1.0, 20)])
    for q in rates:
        column = stats.binom.pmf(np.arange(n_prime + 1), n_prime, q)
        for p in np.linspace(q, 1.0, 25):
            miss = (found > math.log(p / q) + 1e-12) @ column
            worst = max(worst, float(stats.binom.pmf(np.arange(n + 1), n, p) @ miss))
    return worst


@pytest.mark.parametrize(
    ("n", "n_prime"), [(1, 1), (3, 3), (9, 9), (25, 25), (40, 8), (8, 40), (25, 29)]
)
@pytest.mark.parametrize("alpha", [0.4, 0.1, 0.02])
def test_fixed_sides_are_conservative(n, n_prime, alpha):
    assert worst_fixed(table(n, n_prime, "fixed", alpha), n, n_prime) <= alpha


def test_control_without_the_ratio_of_trials_fixed_sides_overclaim():
    assert worst_fixed(table(25, 15, "coin"), 25, 15) > 1.5 * ALPHA


@pytest.mark.parametrize(("p", "q"), [(0.4, 0.2), (0.9, 0.9), (0.95, 0.3), (0.02, 0.005)])
def test_a_fair_coin_is_never_missed_too_often(p, q):
    """Each of 40 trials: x or x' by a coin, then a hit or none; every outcome weighed."""
    trials, truth, miss = 40, math.log(p / q), 0.0
    for hits in range(trials + 1):
        weight = stats.binom.pmf(hits, trials, (p + q) / 2)
        for k in range(hits + 1):
            # How many trials the coin gave to each side does not enter the bound.
            counts = Counts(k, trials, hits - k, trials)
            if conditional(counts, 0.0, 1 - ALPHA, sides="coin") > truth + 1e-12:
                miss += weight * stats.binom.pmf(k, hits, p / (p + q))
    assert miss <= ALPHA
    assert miss > 0.3 * ALPHA or p < 0.1


@pytest.mark.parametrize(("k", "k_prime"), [(90, 10), (5, 3), (10**6, 9 * 10**5)])
def test_the_quotient_of_its_definition(k, k_prime):
    t = special.betaincinv(k, k_prime + 1, ALPHA)
    n = 2 * 10**6
    expected = math.log(t / (1 - t))
    for own, sides, less in (
        (n, "fixed", 0.0),
        (2 * n, "fixed", math.log(2.0)),
        (2 * n, "coin", 0.0),
    ):
        found = conditional(Counts(k, own, k_prime, n), 0.0, 0.9, sides=sides)
        assert found == pytest.approx(max(0.0, expected - less))


def test_ends_are_finite():
    assert (conditional(Counts(0, 5, 0, 5)), conditional(Counts(0, 5, 5, 5))) == (0.0, 0.0)
    assert conditional(Counts(1, 1, 0, 1)) == 0.0
    share = 0.05 ** (1 / 90)
    bound = conditional(Counts(90, 90, 0, 90))
    assert bound == pytest.approx(math.log(share / (1 - share)), rel=1e-12)
    assert 0.0 < conditional(Counts(10**8, 10**8, 0, 10**8)) < 20.0
    # A coin has every confidence.
    assert conditional(Counts(50, 100, 10, 100), 0.0, 0.5, sides="coin") > 1.0
