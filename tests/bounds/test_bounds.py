"""Clopper-Pearson limits against a table in 20 digits, their bound, and the conditional one."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from dpcore.attacks import choose
from dpcore.bounds import clopper_pearson, conditional, limits
from dpcore.records import Counts


def test_limits_are_those_of_the_table():
    """20 digits by mpmath, which the core is compared with too."""
    table = Path(__file__).parents[1] / "reference" / "clopper_pearson.csv"
    rows = [row.split(",") for row in table.read_text().splitlines()[1:]]
    assert len(rows) > 50
    for k, n, alpha, *known in rows:
        found = limits(int(k), int(n), float(alpha))
        # At .95, which no confidence asks for, scipy's own tail has nine digits.
        digits = 1e-9 if alpha == "0.95" else 1e-12
        assert found == pytest.approx(list(map(float, known)), rel=digits, abs=0.0), (k, n, alpha)


@pytest.mark.parametrize(("n", "alpha"), [(1, 0.025), (10**8, 5e-5), (10**12, 0.025)])
def test_closed_forms_at_both_ends(n, alpha):
    with mp.workdps(60):
        root = mp.power(mp.mpf(alpha), mp.mpf(1) / n)
        low, high = limits(n, n, alpha)[0], limits(0, n, alpha)[1]
        assert max(abs(float(low / root - 1)), abs(float(high / (1 - root) - 1))) < 1e-15
    assert (limits(0, n, alpha)[0], limits(n, n, alpha)[1]) == (0.0, 1.0)


@given(st.integers(1, 10**12).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_limits_enclose_the_estimate_and_mirror(case):
    k, n = case
    low, high = limits(k, n, 0.01)
    assert 0.0 <= low <= k / n <= high <= 1.0
    mirror = [1.0 - limit for limit in limits(n - k, n, 0.01)]
    assert mirror == pytest.approx([high, low], rel=1e-9, abs=1e-15)


def test_the_bound_is_the_quotient_of_two_limits():
    p_low, q_high = limits(90, 100, 0.05)[0], limits(30, 100, 0.05)[1]
    for delta in (0.0, 0.1):
        bound = clopper_pearson(Counts(90, 100, 30, 100), delta, 0.9)
        assert bound == pytest.approx(math.log((p_low - delta) / q_high), rel=1e-12)


@pytest.mark.parametrize(
    ("k", "k_prime", "n", "delta", "expected"),
    [
        # The Clopper-Pearson column of the method's comparison table: true epsilon .1, .05, 1.
        (500000, 452419, 10**6, 0.0, 0.0966),
        (9000, 8561, 10**4, 0.0, 0.0377),
        (100000, 33109, 10**6, 0.01, 0.9856),
    ],
)
def test_expected_counts_give_the_known_bounds(k, k_prime, n, delta, expected):
    bound = clopper_pearson(Counts(k, n, k_prime, n), delta, 0.9)
    assert bound == pytest.approx(expected, abs=6e-4)


def test_no_event_on_the_other_side_is_finite():
    bound = clopper_pearson(Counts(10**8, 10**8, 0, 10**8), 0.0, 0.95)
    assert bound == pytest.approx(math.log(10**8 / -math.log(0.025)), rel=1e-6)


def test_no_evidence_and_a_delta_above_the_limit_are_zero():
    for counts in (Counts(0, 10, 0, 10), Counts(0, 10, 10, 10), Counts(5, 10, 5, 10)):
        assert clopper_pearson(counts) == 0.0
    assert clopper_pearson(Counts(900, 1000, 0, 1000), 0.95) == 0.0
    assert clopper_pearson(Counts(900, 1000, 0, 1000), 0.5) > 0.0


SMALL = st.integers(1, 300).flatmap(
    lambda n: st.builds(Counts, st.integers(0, n), st.just(n), st.integers(0, n), st.just(n))
)


@given(SMALL, st.floats(0.0, 0.9), st.floats(0.01, 0.999))
def test_monotone_in_counts_delta_and_confidence(counts, delta, confidence):
    bound, slack = clopper_pearson(counts, delta, confidence), 1e-12
    assert bound >= 0.0
    if counts.k < counts.n:
        more = replace(counts, k=counts.k + 1)
        assert clopper_pearson(more, delta, confidence) >= bound - slack
    if counts.k_prime < counts.n:
        more = replace(counts, k_prime=counts.k_prime + 1)
        assert clopper_pearson(more, delta, confidence) <= bound + slack
    assert clopper_pearson(counts, delta / 2, confidence) >= bound - slack
    assert clopper_pearson(counts, delta, confidence / 2) >= bound - slack


def test_the_bound_misses_no_more_often_than_it_says():
    # Exact, by enumeration: true ratio p/q = 2, every pair of counts weighed by its probability.
    n, p, q, confidence = 30, 0.6, 0.3, 0.8
    weight, weight_prime = (stats.binom.pmf(np.arange(n + 1), n, rate) for rate in (p, q))
    miss = sum(
        weight[k] * weight_prime[j]
        for k, j in np.ndindex(n + 1, n + 1)
        if clopper_pearson(Counts(k, n, j, n), 0.0, confidence) > math.log(2.0)
    )
    assert 0.0 < miss <= 1 - confidence


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        (Counts(100, 1000, 900, 1000), ("x_prime", "x_prime")),
        (Counts(0, 1000, 100, 1000), ("x_prime", "x_prime")),
        (Counts(100, 1000, 0, 1000), ("x_prime", "x")),
        (Counts(1000, 1000, 900, 1000), ("x", "x_prime")),
        (Counts(900, 1000, 1000, 1000), ("x", "x")),
        # Four zero bounds: the point estimate decides.
        (Counts(5, 10, 6, 10), ("x", "x")),
        (Counts(3, 10, 4, 10), ("x_prime", "x_prime")),
        (Counts(6, 10, 5, 10), ("x", "x_prime")),
        (Counts(4, 10, 3, 10), ("x_prime", "x")),
        # A full tie keeps the default.
        (Counts(5, 10, 5, 10), ("x_prime", "x_prime")),
        (Counts(0, 10, 0, 10), ("x", "x_prime")),
        (Counts(5, 10, 10, 20), ("x_prime", "x_prime")),
    ],
)
def test_choose(counts, expected):
    assert choose(counts, 0.95, 0.0) == expected


@given(SMALL)
def test_choose_follows_the_largest_bound(counts):
    vote, direction = choose(counts, 0.9, 0.01)
    ordered = counts if vote == "x_prime" else counts.complement()
    ordered = ordered if direction == "x" else ordered.swapped()
    every = [counts, counts.swapped(), counts.complement(), counts.complement().swapped()]
    best = max(clopper_pearson(c, 0.01, 0.9) for c in every)
    assert clopper_pearson(ordered, 0.01, 0.9) == best < math.inf


# The conditional bound: exact for a fair coin, conservative for fixed sides, by enumeration.


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
