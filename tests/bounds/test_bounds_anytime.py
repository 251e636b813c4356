"""Bounds at every look: each bet is fair under the claim, and looking 200 times overclaims not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from dpcore.bounds import Martingale, anytime, berger_boos, clopper_pearson
from dpcore.bounds.sequential import _bets_around, _log_wealth_gains, _uninformed_bets
from dpcore.records import Counts

ALPHA = 1e-4
RUNS = 4000
LOOKS = 200
CONFIDENCE = 0.9

MOST = int(stats.binom.isf(ALPHA, RUNS, 1 - CONFIDENCE))
"""Misses in 4,000 runs that chance allows: P(more | 10 %) < ALPHA."""


def largest_mean(bets, delta, s, epsilon):
    """The largest mean of one draw's product, over the bets and a dense grid of the claim."""
    x1, x0, y1, y0 = np.exp(_log_wealth_gains(bets, delta, s))
    q = np.linspace(0.0, 1.0, 401)[:, np.newaxis]
    worst = 0.0
    for share in (1.0, 0.9, 0.5, 0.0):
        p = share * np.minimum(1.0, math.exp(epsilon) * q + delta)
        mean = (p * x1 + (1 - p) * x0) * (q * y1 + (1 - q) * y0)
        worst = max(worst, float(mean.max()))
    return worst


@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.05, 0.4])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 5.0])
def test_every_bet_is_fair_under_the_claim(epsilon, delta):
    s = math.exp(-epsilon)
    rates = (0.9, 0.01), (0.6, 0.5), (1.0, 0.0), (0.1, 0.9)
    every = [_uninformed_bets(delta, one) for one in (s, 1.0)]
    every += [_bets_around(p, q, delta, s) for p, q in rates]
    for bets in every:
        assert largest_mean(bets, delta, s, epsilon) <= 1.0 + 1e-12
        assert np.exp(_log_wealth_gains(bets, delta, s)).min() >= 0.0
    # The control: a slightly larger epsilon is not under the claim, and some bet gains on it.
    assert largest_mean(every[0], delta, s, epsilon + 0.1) > 1.0


def test_the_weights_are_a_distribution():
    for delta, s in ((0.0, 1.0), (0.1, 0.3)):
        assert np.exp(_uninformed_bets(delta, s).log_weight).sum() == pytest.approx(1.0)
    assert _uninformed_bets(0.0, 1.0).stake.min() > 0.0


def test_a_prediction_makes_the_bet_a_likelihood_ratio():
    p, q, delta, s = 0.6, 0.2, 0.05, math.exp(-0.5)
    bets = _bets_around(p, q, delta, s)
    whole = int(np.argmin(np.abs(bets.stake - (bets.centre - q) / bets.centre / (1 - bets.centre))))
    factors = np.exp(_log_wealth_gains(bets, delta, s))[:, whole]
    x = bets.centre[whole]
    r = x / s + delta
    assert factors == pytest.approx([p / r, (1 - p) / (1 - r), q / x, (1 - q) / (1 - x)])
    # And x is where the claim comes nearest to (p, q).
    grid = np.linspace(q, (p - delta) * s, 2001)
    likelihood = p * np.log(grid / s + delta) + (1 - p) * np.log1p(-grid / s - delta)
    likelihood += q * np.log(grid) + (1 - q) * np.log1p(-grid)
    assert grid[np.argmax(likelihood)] == pytest.approx(x, abs=1e-3)


@pytest.mark.parametrize(
    "counts",
    [
        Counts(90, 100, 20, 100), Counts(700, 10**4, 3, 10**4), Counts(50, 50, 0, 50),
        Counts(5 * 10**7, 10**8, 4 * 10**7, 10**8),
    ],
)  # fmt: skip
def test_the_bound_is_the_last_claim_that_the_martingale_refutes(counts):
    bound = anytime(counts, 0.0, CONFIDENCE)
    assert bound > 0.0
    for claim, expected in ((bound * (1 - 1e-6), True), (bound * (1 + 1e-6), False)):
        evidence = Martingale(claim)
        evidence.update(counts.k, counts.k_prime, counts.n)
        assert evidence.refuted(CONFIDENCE) is expected


def test_the_sum_of_its_definition():
    """By a loop over stakes and centres, in the words of the docstring."""
    k, n, k_prime, delta = 160, 200, 40, 0.05
    counts = Counts(k, n, k_prime, n)

    def wealth(epsilon):
        s, bets, total = math.exp(-epsilon), _uninformed_bets(delta, 1.0), 0.0
        for v, q0, w in zip(*(array.tolist() for array in bets), strict=True):
            product = math.exp(w) * (1 + v * (s * (1 - delta) - q0)) ** k
            product *= (1 - v * (q0 + s * delta)) ** (n - k)
            product *= (1 - v * (1 - q0)) ** k_prime * (1 + v * q0) ** (n - k_prime)
            total += product
        return total

    bound = anytime(counts, delta, CONFIDENCE)
    # No product is smaller at a smaller claim here, so that the minimum does nothing.
    assert wealth(bound) == pytest.approx(10.0, rel=1e-5)
    assert all(wealth(epsilon) > 10.0 for epsilon in np.linspace(0.0, bound - 1e-6, 50))


def looks(p, q, runs):
    """Draws a side at 200 looks, and the counts there, one row per run."""
    rng = np.random.default_rng(11)
    draws = np.unique(np.geomspace(1, 20000, LOOKS).astype(int) + np.arange(LOOKS))
    steps = np.diff(draws, prepend=0)
    k = np.cumsum(rng.binomial(steps, p, (runs, LOOKS)), axis=1)
    return draws, k, np.cumsum(rng.binomial(steps, q, (runs, LOOKS)), axis=1)


def rejected(draws, k, k_prime, epsilon, delta):
    """The martingale's decision at every look of every run, all at once."""
    bets = _uninformed_bets(delta, 1.0)
    seen = np.stack([k, draws - k, k_prime, draws - k_prime], axis=-1).astype(float)
    start, here = (_log_wealth_gains(bets, delta, x) for x in (1.0, math.exp(-epsilon)))
    found = np.empty(k.shape, dtype=bool)
    for row in range(0, len(k), 50):
        part = seen[row : row + 50]
        logs = part @ here if delta == 0.0 else np.minimum(part @ start, part @ here)
        wealth = np.exp(np.minimum(logs, 50.0)) @ np.exp(bets.log_weight)
        found[row : row + 50] = wealth >= 1.0 / (1.0 - CONFIDENCE)
    return found


NULLS = [
    (0.5 * math.exp(0.3), 0.5, 0.3, 0.0, RUNS),
    (0.02, 0.02 * math.exp(-2.0), 2.0, 0.0, 400),
    (0.2 + 0.05, 0.2 * math.exp(-1.0), 1.0, 0.05, 500),
]


@pytest.mark.parametrize(("p", "q", "epsilon", "delta", "runs"), NULLS)
def test_two_hundred_looks_at_a_true_claim(p, q, epsilon, delta, runs):
    draws, k, k_prime = looks(p, q, runs)
    found = rejected(draws, k, k_prime, epsilon, delta)
    assert found.any(axis=1).sum() <= int(stats.binom.isf(ALPHA, runs, 1 - CONFIDENCE))
    # What was decided all at once is what `anytime` says.
    for run, look in zip(*np.nonzero(found), strict=True):
        if look % 40 == 0:
            n = int(draws[look])
            counts = Counts(int(k[run, look]), n, int(k_prime[run, look]), n)
            assert anytime(counts, delta, CONFIDENCE) >= epsilon - 1e-9


@pytest.mark.sweep
def test_control_bounds_for_one_look_fail_at_two_hundred():
    p, q, epsilon, _, runs = NULLS[0]
    draws, k, k_prime = looks(p, q, runs)
    each = (1 - CONFIDENCE) / 2
    with np.errstate(divide="ignore"):
        p_low = np.where(k > 0, special.betaincinv(np.maximum(k, 1), draws - k + 1, each), 0.0)
        rest = np.maximum(draws - k_prime, 1)
        q_high = np.where(k_prime < draws, special.betainccinv(k_prime + 1, rest, each), 1.0)
        overclaims = np.log(p_low / q_high) > epsilon
    run, look = np.argwhere(overclaims)[0]
    n = int(draws[look])
    checked = Counts(int(k[run, look]), n, int(k_prime[run, look]), n)
    assert clopper_pearson(checked, 0.0, CONFIDENCE) > epsilon
    assert overclaims.any(axis=1).sum() > MOST
    # The exact bound fails by far, on a few of the runs and looks already.
    some = [
        any(
            berger_boos(Counts(int(a), int(m), int(b), int(m)), 0.0, CONFIDENCE) > epsilon
            for a, b, m in zip(k[r, 20::15], k_prime[r, 20::15], draws[20::15], strict=True)
        )
        for r in range(25)
    ]
    assert stats.binomtest(sum(some), 25, 1 - CONFIDENCE, "greater").pvalue < ALPHA


RATES = np.array([0.8, 0.3, 0.05, 0.6, 0.01])
SLICES = 25


def adaptive_run(rng, peek):
    """Five events, each exactly at the claim epsilon = 1; a slice counts the best-looking."""
    claim, before = 1.0, np.full((2, 5), 0.5)
    evidence, total = Martingale(claim), 1.0
    for number in range(SLICES):
        n = 40 * (1 + number)
        k = rng.binomial(n, RATES)
        k_prime = rng.binomial(n, RATES * math.exp(-claim))
        shown = np.stack([k, k_prime]) if peek else before
        best = int(np.argmax((shown[0] + 0.5) / (shown[1] + 0.5)))
        guess = (shown[0, best] + 0.5) / (total + 1), (shown[1, best] + 0.5) / (total + 1)
        predicted = guess if not peek and max(guess) <= 1.0 else None
        evidence.update(int(k[best]), int(k_prime[best]), n, event=best, predicted=predicted)
        before, total = before + np.stack([k, k_prime]), total + n
    return evidence.refuted(CONFIDENCE)


@pytest.mark.sweep
@pytest.mark.parametrize("peek", [False, True])
def test_events_chosen_from_earlier_slices_are_safe_and_from_their_own_are_not(peek):
    rng = np.random.default_rng(5)
    refuted = sum(adaptive_run(rng, peek) for _ in range(400))
    assert (refuted > int(stats.binom.isf(ALPHA, 400, 1 - CONFIDENCE))) == peek


def test_predictions_carry_the_wealth_over_a_change_of_events():
    p, q, n = 0.5, 0.42, 4000
    learnt, guided, misled, kept = (Martingale(0.1) for _ in range(4))
    for event in range(20):
        learnt.update(int(n * p), int(n * q), n, event=event)
        guided.update(int(n * p), int(n * q), n, event=event, predicted=(p, q))
        misled.update(int(n * p), int(n * q), n, predicted=(0.9, 0.001))
        kept.update(int(n * p), int(n * q), n)
    assert guided.refuted()
    assert guided.log_wealth > learnt.log_wealth + 5.0
    # A prediction that is wrong costs half of the wealth at most: the other half has not heard it.
    assert misled.log_wealth >= kept.log_wealth - math.log(2.0) - 1e-9


def test_slices_of_one_event_are_one_mixture():
    whole, parts = Martingale(0.5, 0.01), Martingale(0.5, 0.01)
    whole.update(700, 300, 1000)
    for _ in range(10):
        parts.update(70, 30, 100)
    found = parts.log_wealth, parts.log_peak
    assert found == pytest.approx((whole.log_wealth, whole.log_peak))


def test_the_peak_decides_and_stays():
    evidence = Martingale(0.1)
    assert (evidence.log_wealth, evidence.log_peak) == pytest.approx((0.0, 0.0))
    assert not evidence.refuted(0.5)
    evidence.update(90, 10, 100)
    peak = evidence.log_wealth
    evidence.update(0, 1000, 1000)
    assert evidence.log_wealth < 0.0 < peak == evidence.log_peak
    assert evidence.refuted(0.99)
    assert repr(evidence).startswith("<Martingale against epsilon=0.1, delta=0: log_wealth=-")
    # A true prediction of no violation bets nothing.
    evidence = Martingale(1.0)
    evidence.update(50, 50, 100, predicted=(0.5, 0.5))
    assert evidence.log_wealth >= math.log(0.5)


@pytest.mark.parametrize(
    ("counts", "delta"),
    [
        (Counts(0, 10, 0, 10), 0.0), (Counts(10, 10, 10, 10), 0.0), (Counts(0, 1, 1, 1), 0.3),
        (Counts(5, 10, 5, 10), 0.0), (Counts(3, 100, 0, 100), 0.9),
    ],
)  # fmt: skip
def test_no_evidence_is_zero(counts, delta):
    assert anytime(counts, delta) == 0.0


def test_no_hit_on_the_other_side_is_finite_and_close():
    bound = anytime(Counts(10**8, 10**8, 0, 10**8), 0.0, 0.9)
    assert berger_boos(Counts(10**8, 10**8, 0, 10**8), 0.0, 0.9) - 1.1 < bound < math.inf


def test_monotone_in_counts_and_delta():
    n, hits = 80, range(0, 81, 8)
    found = np.array([[anytime(Counts(k, n, j, n)) for j in hits] for k in hits])
    assert np.diff(found, axis=0).min() >= -1e-9
    assert np.diff(found, axis=1).max() <= 1e-9
    at = [anytime(Counts(60, n, 5, n), delta) for delta in (0.0, 1e-9, 0.01, 0.2)]
    assert at[0] == pytest.approx(at[1], abs=1e-6)
    assert at[1] > at[2] > at[3] > 0.0
