"""The unconditional bound: sound by enumeration, sharp by its figures, bounded and not sampled."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from shared_examples import examples

from dpcore.bounds import berger_boos, clopper_pearson, limits
from dpcore.bounds.unconditional import (
    _find_rejection_boundary,
    _make_p_value_gap,
    binomial_cells_without_tails,
    cell_masses,
    supremum_bound,
)
from dpcore.records import Counts


def table(bound, n, n_prime, delta, confidence):
    """The bound for every pair of counts, shape (n + 1, n' + 1)."""
    found = np.empty((n + 1, n_prime + 1))
    for k, j in np.ndindex(found.shape):
        found[k, j] = bound(Counts(k, n, j, n_prime), delta, confidence)
    return found


def pmf(n, p):
    return stats.binom.pmf(np.arange(n + 1), n, p)


def worst_miss(found, n, n_prime, delta):
    """The largest P(bound > epsilon) over (p, q), epsilon = ln((p - delta)/q) being the truth.

    Exact sums of the joint probabilities; on each curve of one epsilon the probability of a miss
    is largest at its end, so p = e^epsilon q + delta it is.
    """
    rates = np.concatenate([np.geomspace(1e-3, 0.99, 30), np.linspace(0.03, 1.0, 30)])
    worst = 0.0
    for q in rates:
        column = pmf(n_prime, q)
        for p in np.unique(np.concatenate([np.linspace(q, 1.0, 25), np.geomspace(q, 1.0, 12)])):
            if p - delta < q:
                continue
            miss = (found > math.log((p - delta) / q) + 1e-12) @ column
            worst = max(worst, float(pmf(n, p) @ miss))
    return worst


CASES = [
    (1, 1, 0.0, 0.6), (2, 5, 0.05, 0.9), (7, 7, 0.3, 0.5), (20, 20, 0.0, 0.9), (20, 20, 0.1, 0.95),
    (12, 45, 0.0, 0.8), (45, 12, 0.3, 0.9), (60, 12, 0.0, 0.9), (30, 30, 0.02, 0.9),
]  # fmt: skip


@pytest.mark.parametrize(("n", "n_prime", "delta", "confidence"), CASES)
def test_no_pair_of_rates_is_missed_too_often(n, n_prime, delta, confidence):
    found = table(berger_boos, n, n_prime, delta, confidence)
    assert np.isfinite(found).all()
    assert found.min() >= 0.0
    miss = worst_miss(found, n, n_prime, delta)
    assert miss <= 1.0 - confidence
    # It spends what it may: where there are counts enough, the worst case is close to nominal.
    assert n < 7 or miss > 0.97 * (1.0 - confidence)


def normal_limit(counts, delta, confidence):
    p = (counts.k + 0.5) / (counts.n + 1)
    q = (counts.k_prime + 0.5) / (counts.n_prime + 1)
    if p <= delta:
        return 0.0
    variance = p * (1 - p) / (counts.n * (p - delta) ** 2) + (1 - q) / (counts.n_prime * q)
    return max(0.0, math.log((p - delta) / q) - stats.norm.isf(1 - confidence) * variance**0.5)


def test_control_an_approximate_limit_fails_the_enumeration():
    assert worst_miss(table(normal_limit, 20, 20, 0.0, 0.9), 20, 20, 0.0) > 0.1
    assert worst_miss(table(normal_limit, 12, 45, 0.0, 0.8), 12, 45, 0.0) > 0.25


def test_sharper_than_two_limits_everywhere():
    ours, theirs = (table(bound, 24, 24, 0.0, 0.9) for bound in (berger_boos, clopper_pearson))
    assert (ours >= theirs - 1e-9).all()
    assert (ours - theirs)[ours > 0].mean() > 0.2
    # Rising in k and falling in k', but for a hair: the rectangle moves with the counts.
    assert np.diff(ours, axis=0).min() > -0.02
    assert np.diff(ours, axis=1).max() < 0.02


@pytest.mark.parametrize(
    ("k", "k_prime", "n", "delta", "expected"),
    [
        # True epsilon .1, .05 and 1: the method's comparison table, at 90 %.
        (500000, 452419, 10**6, 0.0, 0.0981),
        (9000, 8561, 10**4, 0.0, 0.0432),
        (100000, 36788 * 9 // 10, 10**6, 0.01, 0.9918),
    ],
)
def test_known_figures(k, k_prime, n, delta, expected):
    assert berger_boos(Counts(k, n, k_prime, n), delta, 0.9) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    "counts",
    [
        Counts(200, 400, 80, 400), Counts(395, 400, 90, 300), Counts(3000, 10**4, 60, 10**4),
        Counts(8 * 10**5, 2 * 10**6, 6 * 10**5, 2 * 10**6),
    ],
)  # fmt: skip
def test_the_p_value_at_the_bound_is_the_nominal_one(counts):
    """By scipy's tails, outcome by outcome, on a grid of q."""
    delta, alpha = 0.05, 0.1
    bound = berger_boos(counts, delta, 1.0 - alpha)
    cut = _find_rejection_boundary(counts, delta, alpha)
    p_low, p_high = limits(counts.k, counts.n, alpha * 1e-3 / 4)
    q_low, q_high = limits(counts.k_prime, counts.n_prime, alpha * 1e-3 / 4)

    def p_value(epsilon, q):
        j = np.arange(*stats.binom.ppf([1e-9, 1 - 1e-9], counts.n_prime, q).astype(int))
        p = min(p_high, math.exp(epsilon) * q + delta)
        if p < p_low:
            return 0.0
        tail = stats.binom.sf(np.ceil(cut(j.astype(float))) - 1, counts.n, p)
        return stats.binom.pmf(j, counts.n_prime, q) @ tail

    rates = np.linspace(q_low, q_high, 40)
    assert max(p_value(bound, q) for q in rates) <= alpha * (1 - 1e-3)
    assert max(p_value(bound * 1.02, q) for q in rates) > alpha


@pytest.mark.parametrize(("n", "p", "q", "delta"), [(10**8, 0.5, 0.4, 0.0), (10**9, 0.9, 0.2, 0.1)])
def test_many_draws_reach_the_normal_limit(n, p, q, delta):
    """Cells of many outcomes cost less than a hundredth of the margin."""
    counts = Counts(int(n * p), n, int(n * q), n)
    truth = math.log((p - delta) / q)
    margin = truth - normal_limit(counts, delta, 0.9)
    assert truth - berger_boos(counts, delta, 0.9) == pytest.approx(margin, rel=0.01)


def test_no_hit_on_the_other_side():
    """K is then nearly fixed, and K' = 0 has probability e^-(n q): ln(k/ln(1/alpha))."""
    bound = berger_boos(Counts(10**6, 10**8, 0, 10**8), 0.0, 0.9)
    assert bound == pytest.approx(math.log(10**6 / math.log(10.0)), abs=0.01)
    certain = berger_boos(Counts(400, 400, 0, 400), 0.0, 0.9)
    # With p = 1 on one side, e^-epsilon is the one-sided limit for q: alpha = (1 - q)^n.
    assert certain == pytest.approx(-math.log(1.0 - 0.1 ** (1 / 400)), abs=1e-3)


@pytest.mark.parametrize(
    "counts",
    [
        Counts(0, 10, 0, 10), Counts(0, 1, 1, 1), Counts(10, 10, 10, 10), Counts(5, 10, 5, 10),
        Counts(1, 1, 0, 1), Counts(0, 10**8, 10**8, 10**8),
    ],
)  # fmt: skip
def test_no_evidence_is_zero(counts):
    assert (berger_boos(counts, 0.0, 0.95), berger_boos(counts, 0.5, 0.95)) == (0.0, 0.0)


def test_a_delta_that_explains_the_counts_leaves_nothing():
    for k, delta, left in ((30, 0.4, False), (30, 0.1, True), (100, 0.999, False)):
        assert (berger_boos(Counts(k, 100, 0, 100), delta) > 0.0) == left


BIG = st.integers(0, 9).flatmap(lambda e: st.integers(1, 10**e))


@examples(60)
@given(
    BIG, BIG, st.floats(0, 1), st.floats(0, 1), st.sampled_from([0, 1e-6, 0.1]),
    st.floats(0.5, 0.9999),
)  # fmt: skip
def test_always_a_number_between_zero_and_the_estimate(n, n_prime, x, y, delta, confidence):
    counts = Counts(round(x**3 * n), n, round(y**3 * n_prime), n_prime)
    bound = berger_boos(counts, delta, confidence)
    assert 0.0 <= bound < math.inf
    margin = counts.k / n - delta
    if counts.k_prime and bound > 0.0:
        assert bound <= math.log(margin * n_prime / counts.k_prime)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0, 9.0, 60.0])
def test_claims_beyond_probability_one_are_capped(epsilon):
    """From some epsilon on every p in the rectangle is allowed at every q: nothing changes."""
    counts = Counts(90, 100, 45, 100)
    test = _make_p_value_gap(counts, 0.1, 0.1, _find_rejection_boundary(counts, 0.1, 0.1))
    assert test(epsilon) <= test(epsilon + 0.1)
    assert test(60.0) == pytest.approx(test(80.0))
    assert test(60.0) > 0.0 > test(0.0)


@pytest.mark.parametrize(("n", "sharper"), [(10**13, False), (10**12, True)])
def test_beyond_two_to_the_forty_the_two_limits_speak(n, sharper):
    counts = Counts(n // 2, n, n // 3, n)
    assert (berger_boos(counts) > clopper_pearson(counts)) == sharper
    assert (berger_boos(counts) == clopper_pearson(counts)) != sharper


# The parts.


@pytest.mark.parametrize(
    ("n", "low", "high"),
    [
        (1, 0.0, 1.0), (50, 0.2, 0.6), (50, 0.0, 0.1), (50, 0.9, 1.0), (10**6, 0.3, 0.302),
        (10**8, 1e-8, 1e-7), (10**9, 0.4, 0.4001), (10**11, 0.9, 0.90001),
    ],
)  # fmt: skip
def test_masses_of_cells_are_binomial(n, low, high):
    window = binomial_cells_without_tails(n, low, high, 1e-9)
    rates = np.linspace(low, high, 5)[1:-1]
    mass = cell_masses(window, rates)
    for p, row in zip(rates, mass, strict=True):
        first = window.first + window.width * np.arange(row.size)
        true = stats.binom.sf(first - 1, n, p)
        ours = np.cumsum(row[::-1])[::-1]
        # The window leaves out 1e-9 on each side; scipy's own tail is good to about 1e-9.
        assert (np.abs(ours - true) < (window.error + 1e-8) * true + 2e-9).all()
        # Where a mass is more than what was left out, it is never far too small.
        seen = true > 1e-4
        assert np.abs(ours[seen] / true[seen] - 1.0).max() < window.error + 1e-7
        outside = stats.binom.cdf(window.first - 1, n, p)
        outside += stats.binom.sf(window.first + window.width * row.size - 1, n, p)
        assert outside <= 2e-9
    assert window.width == 1 or window.error < 1e-3


def test_certain_outcomes_have_all_the_mass():
    mass = cell_masses(binomial_cells_without_tails(30, 0.0, 1.0, 1e-9), np.array([0.0, 1.0]))
    assert mass[0, 0] == mass[1, 30] == 1.0


@pytest.mark.parametrize("seed", range(8))
def test_the_ceiling_is_above_every_value_and_near_the_largest(seed):
    rng = np.random.default_rng(seed)
    n, n_prime = rng.integers(1, 60, 2).tolist()
    event = rng.random((n + 1, n_prime + 1)) < rng.random()
    low, high = sorted(rng.random(2))
    shift = 0.3 * rng.random()
    slope = (1.0 - shift) * rng.random() / high

    def probability(q):
        return np.array([pmf(n, slope * x + shift) @ event @ pmf(n_prime, x) for x in q])

    found = supremum_bound(probability, low, high, (slope, shift), (n, n_prime), 1e-6, 0.0)
    dense = probability(np.linspace(low, high, 1500))
    assert dense.max() <= found
    assert found <= dense.max() + 2e-3 * (dense.max() - dense.min()) + 1e-4


def test_the_ceiling_finds_a_spike_between_few_points():
    """P(K' = 30) at n' = 60 over all q: a bare grid of 16 points would miss its top."""
    probability = partial(stats.binom.pmf, 30, 60)
    found = supremum_bound(probability, 0.0, 1.0, (0.0, 0.5), (1, 60), 1e-6, 0.0)
    assert probability(0.5) <= found <= (1.0 + 2e-3) * probability(0.5)
