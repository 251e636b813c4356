"""Certified lower bounds: sound at known laws, and not by finding nothing.

The number of runs whose bound exceeds the truth at any order must pass an exact binomial test of
"at most 1 - confidence" at the significance ALPHA. The controls (score or event chosen on the
counted rows, copies counted as rows) must fail it.
"""

from __future__ import annotations

import itertools
import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dpcore.bounds import clopper_pearson, limits
from dpcore.divergence import certificates, score
from dpcore.divergence.certificates import (
    HeldOut,
    certify,
    count_held_out,
    epsilon_hat,
    epsilon_lower,
)
from dpcore.divergence.points import find_points
from dpcore.records import Counts

ALPHA = 1e-4
RUNS = 2000
CONFIDENCE = 0.9
ALPHAS = np.array([0.5, 1.0, 2.0, 8.0])

TRUTH = np.log(7.0 / 3.0)
"""The pure epsilon of two coins .7 and .3."""


def allowed(runs, failure=1 - CONFIDENCE):
    return int(stats.binom.isf(ALPHA, runs, failure))


def first(rows):
    return rows[:, 0]


def coins(p, q, alphas):
    """D_alpha of two coins, by the definition."""
    values = []
    for alpha in alphas:
        if alpha == 1.0:
            values.append(p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q)))
        else:
            power = p**alpha * q ** (1 - alpha) + (1 - p) ** alpha * (1 - q) ** (1 - alpha)
            values.append(np.log(power) / (alpha - 1))
    return np.array(values)


def counts_of(chosen, counted, rows=(1000, 1000), counted_rows=(1000, 1000)):
    thresholds = np.arange(float(np.shape(chosen)[1]))
    return HeldOut(
        thresholds, np.array(chosen), rows, np.array(counted), counted_rows, (0, 0), False
    )


@pytest.mark.sweep
def test_bounds_hold_at_two_coins():
    """What the event sees is all there is: no slack hides a wrong limit."""
    rng, size = np.random.default_rng(0), 200
    truth = np.stack([coins(0.7, 0.3, ALPHAS), coins(0.3, 0.7, ALPHAS)])
    over, wrong, found = np.zeros(2), 0, []
    for _ in range(RUNS):
        held = count_held_out(
            find_points(rng.random(size) < 0.7, rng.random(size) < 0.3), rng, first
        )
        bound = certify(held, ALPHAS, CONFIDENCE).bound
        over += (bound > truth).any(axis=1)
        wrong += epsilon_lower(held, 0.0, CONFIDENCE) > TRUTH
        found.append(bound)
    assert (over <= allowed(RUNS)).all()
    assert wrong <= allowed(RUNS)
    assert (np.min(found, axis=0) >= 0.0).all()
    # Not sound by finding nothing, and so near to the truth that some runs overclaim.
    assert (np.median(found, axis=0) > truth / 5).all()
    assert (over > 0).all()
    assert wrong > 0


def null(seed, size=60):
    rng = np.random.default_rng((seed, 5))
    return rng.normal(size=(size, 2)), rng.normal(size=(size, 2)), rng


def over_null(held):
    """Whether something is certified where there is nothing."""
    return (certify(held, np.array([0.5, 1.0, 2.0]), CONFIDENCE).bound > 0.0).any(axis=1)


def hold(y0, y1, rng, score=None, groups=None):
    sets = find_points(y0, y1, groups0=groups, groups1=groups)
    return count_held_out(sets, rng, score, one_per_group=groups is not None)


def count_over(runs, make_held):
    """Runs, one for each seed, in which something is certified in either direction."""
    return sum(over_null(make_held(seed)) for seed in range(runs))


@pytest.mark.sweep
@pytest.mark.parametrize("score", [None, first])
def test_bounds_hold_at_the_null(score):
    assert (count_over(500, lambda seed: hold(*null(seed), score)) <= allowed(500)).all()


def test_control_a_score_fitted_on_the_counted_rows_overclaims():
    """Taken for fixed in advance, though the rows that it is counted on taught it."""
    over, epsilon, runs = np.zeros(2), 0, 60
    for seed in range(runs):
        rng = np.random.default_rng((seed, 6))
        y0, y1 = rng.normal(size=(60, 20)), rng.normal(size=(60, 20))
        held = hold(y0, y1, rng, score.fit_regression(y0, y1))
        over += over_null(held)
        epsilon += epsilon_lower(held, 0.0, CONFIDENCE) > 0.0
    assert min(*over, epsilon) > allowed(runs)


def copies(seed, times=5):
    y0, y1, rng = null(seed, 40)
    return np.repeat(y0, times, axis=0), np.repeat(y1, times, axis=0), rng


@pytest.mark.sweep
def test_control_copies_split_by_row_overclaim():
    assert (count_over(100, lambda seed: hold(*copies(seed))) > allowed(100)).all()


@pytest.mark.sweep
def test_copies_split_by_group_and_one_per_group_do_not():
    groups = np.arange(200) // 5
    assert hold(*copies(0), groups=groups).counted_rows == (20, 20)
    over = count_over(400, lambda seed: hold(*copies(seed), groups=groups))
    assert (over <= allowed(400)).all()


def test_power_at_a_shifted_normal_law():
    """Medians of 20 runs at N = 1,000, mu = 1 were .15/.23/.31/.49/.62 for .5/.75/1/2/4."""
    orders, found = np.array([1.0, 1.5, 2.0, 4.0, 8.0]), []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        sets = find_points(rng.normal(size=1000) + 1.0, rng.normal(size=1000))
        found.append(certify(count_held_out(sets, rng), orders).bound)
    found = np.array(found)
    assert (np.median(found, axis=0) > [0.11, 0.17, 0.23, 0.36, 0.45]).all()
    assert (found <= orders / 2.0).all()


def test_power_where_scales_differ_in_five_dimensions():
    """N(0, 4I) against N(0, I), N = 2,000; truth 4.03/inf/inf, medians 1.41/2.96/3.48."""
    orders, found = np.array([1.0, 2.0, 4.0]), []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        sets = find_points(rng.normal(size=(2000, 5)) * 2.0, rng.normal(size=(2000, 5)))
        held = count_held_out(sets, rng)
        found.append(certify(held, orders).bound[0])
        assert 3.0 < epsilon_lower(held, 0.0) < epsilon_hat(held, 0.0)
    assert (np.median(found, axis=0) > [1.2, 2.6, 3.0]).all()


def test_a_bound_is_that_of_its_own_counts():
    """Recomputed from what the certificate says was counted."""
    rng = np.random.default_rng(0)
    held = count_held_out(find_points(rng.normal(size=2000) + 2.0, rng.normal(size=1600)), rng)
    certificate = certify(held, ALPHAS, 0.95)
    for side, counts in enumerate(certificate.counts):
        assert (counts.n, counts.n_prime) == ((1000, 800), (800, 1000))[side]
        p = limits(counts.k, counts.n, 0.0125)[0]
        event = coins(p, limits(counts.k_prime, counts.n_prime, 0.0125)[1], ALPHAS)
        bins = certificate.bins[side]
        assert sum(c.k for c in bins) == counts.n
        assert sum(c.k_prime for c in bins) == counts.n_prime
        tail = 0.0125 / len(bins)
        low = np.array([limits(c.k, counts.n, tail)[0] for c in bins])
        high = np.array([limits(c.k_prime, counts.n_prime, tail)[1] for c in bins])
        parts = [np.log((low**a * high ** (1 - a)).sum()) / (a - 1) for a in ALPHAS[2:]]
        expected = np.maximum.accumulate(np.maximum(event, [0.0, 0.0, *parts]))
        np.testing.assert_allclose(certificate.bound[side], expected, rtol=1e-12)
        # Each of the two decides somewhere.
        assert event[1] > 0.3
        assert parts[-1] > event[-1]
    assert certificate.events[0].startswith("logistic score >= ")


def test_events_of_both_tails_are_found():
    """The set with fewer rows in both tails shows in the middle, and in the other direction."""
    rng = np.random.default_rng(0)
    sets = find_points(rng.normal(size=2000) * 3.0, rng.normal(size=2000))
    certificate = certify(count_held_out(sets, rng, first), np.array([1.0, 2.0]))
    # With x itself as the score no event covers both tails, but either one is rare in set 1.
    assert certificate.bound[0, 1] > 0.5
    swapped = find_points(rng.normal(size=2000) * 3.0 - 1.0, rng.normal(size=2000))
    text = certify(count_held_out(swapped, rng, first), np.array([1.0])).events[0]
    assert text.startswith("score < ")


def test_direction_one_is_direction_zero_of_the_sets_exchanged():
    held = counts_of([[900, 500, 90], [600, 210, 10]], [[910, 480, 80], [640, 190, 8]])
    other = replace(held, chosen=held.chosen[::-1], counted=held.counted[::-1])
    bound, exchanged = (certify(h, ALPHAS).bound for h in (held, other))
    np.testing.assert_array_equal(bound, exchanged[::-1])
    assert (bound[:, -1] > 0.0).all()
    assert bound[0, -1] != bound[1, -1]


def test_bounds_never_fall_in_alpha_and_are_zero_where_nothing_is_seen():
    orders = np.concatenate([[0.3, 0.9, 1.0], 1.1 ** np.arange(1, 30)])
    some = counts_of([[900, 500, 90], [600, 210, 10]], [[910, 480, 80], [640, 190, 8]])
    bound = certify(some, orders).bound
    assert (np.diff(bound, axis=1) >= 0.0).all()
    assert np.isfinite(bound).all()
    # About alpha/(alpha - 1) ln p + ln(n/3.7) is the most that n rows can certify.
    assert bound.max() < np.log(1000 / 3.7)
    nothing = counts_of([[900, 500], [600, 210]], [[500, 500], [500, 500]])
    assert (certify(nothing, orders).bound == 0.0).all()
    opposite = counts_of([[900, 500], [600, 210]], [[300, 100], [900, 800]])
    assert (certify(opposite, np.array([1.0])).bound == 0.0).all()


def test_the_event_form_is_the_divergence_of_two_coins():
    p, q = np.sort(np.random.default_rng(0).random((50, 2)))[:, ::-1].T
    found = certificates.bernoulli_renyi(p, q, ALPHAS)
    np.testing.assert_allclose(found, [coins(*pair, ALPHAS) for pair in zip(p, q, strict=True)])
    assert (certificates.bernoulli_renyi(q, p, ALPHAS) == 0.0).all()
    certain = certificates.bernoulli_renyi(np.ones(1), np.array([0.2]), ALPHAS)
    np.testing.assert_allclose(certain, np.full((1, 4), np.log(5.0)))


def test_the_partition_is_the_best_of_all():
    """Against every choice of three bins, by the same expected limits."""
    chosen = -np.sort(-np.random.default_rng(0).integers(1, 400, (2, 6)), axis=1)
    size, rows, order = 8, (400, 400), np.array([3.0])
    padded = np.column_stack([rows, chosen, [0, 0]])
    start, stop = np.triu_indices(size, 1)
    rates = certificates._pessimistic_p_and_q(padded[:, start] - padded[:, stop], rows)
    low, high = certificates._lower_p_and_upper_q(rates, rows, 0.01)
    powers = order[:, None] * np.log(np.maximum(low, 1e-300)) - 2.0 * np.log(high)
    found = certificates._best_bin_edges_per_order(powers, (start, stop), size)[1]
    totals = {}
    for a, b in itertools.combinations(range(1, size - 1), 2):
        path = np.array([0, a, b, size - 1])
        at = certificates._pair_index(path[:-1], path[1:], size)
        np.testing.assert_array_equal(start[at], path[:-1])
        np.testing.assert_array_equal(stop[at], path[1:])
        totals[a, b] = np.exp(powers[0, at]).sum()
    assert (found[0], found[-1]) == (0, size - 1)
    assert max(totals, key=totals.get) == tuple(found[1:-1])


@pytest.mark.parametrize("delta", [0.0, 0.12])
def test_epsilon_is_the_bound_of_the_counted_rows(delta):
    held = counts_of([[700, 150], [200, 0]], [[680, 60], [210, 0]])
    events = [Counts(680, 1000, 210, 1000), Counts(60, 1000, 0, 1000)]
    found = epsilon_lower(held, delta)
    # What looked best on the choosing rows, whatever the counted ones say.
    chosen = events[0] if delta == 0.12 else events[1]
    assert found == clopper_pearson(chosen, delta, 0.95)
    assert found > 0.5
    expected = np.log((0.68 - 0.12) / 0.21) if delta else np.inf
    assert epsilon_hat(held, delta) == pytest.approx(expected)


def test_epsilon_hat_of_an_event_below_delta_is_zero():
    held = counts_of([[700], [200]], [[30], [0]])
    assert (epsilon_hat(held, 0.05), epsilon_lower(held, 0.05)) == (0.0, 0.0)
    # Fewer than it seemed: what the event would ask for is negative.
    assert epsilon_hat(counts_of([[700], [200]], [[200], [400]]), 0.0) == 0.0


def test_the_parts_are_disjoint_and_half_is_counted():
    y0, y1 = np.arange(101.0), np.arange(200.0, 260.0)
    fits = []

    def fitting(train0, train1):
        seen = []
        fits.append((set(train0[:, 0]) | set(train1[:, 0]), seen))
        return lambda rows: seen.append(set(rows[:, 0])) or rows[:, 0]

    held = hold(y0, y1, np.random.default_rng(0), fitting)
    assert held.trained_rows == held.chosen_rows == (50, 30)
    assert held.counted_rows == (51, 30)
    (all_taught, (counted,)), *folds = fits
    assert (len(all_taught), len(counted), len(folds)) == (80, 81, 4)
    assert not all_taught & counted
    for taught, (scored,) in folds:
        # Each fold is scored by what the others teach; the counted rows have no say.
        assert not taught & scored
        assert taught | scored == all_taught
    assert set.union(*(scored for _, (scored,) in folds)) == all_taught
    fixed = hold(y0, y1, np.random.default_rng(0), first)
    assert (fixed.trained_rows, fixed.chosen_rows) == ((0, 0), (50, 30))
    assert held == hold(y0, y1, np.random.default_rng(0), fitting)
    assert held != hold(y0, y1, np.random.default_rng(1), fitting)


def test_counts_are_rows_at_or_above_thresholds():
    y0, y1 = np.arange(400.0), np.arange(390.0) + 0.5
    held = hold(y0, y1, np.random.default_rng(0), first)
    assert (np.diff(held.thresholds) > 0.0).all()
    assert 100 < len(held.thresholds) <= 200
    for side, values in enumerate((y0, y1)):
        both = held.chosen[side] + held.counted[side]
        np.testing.assert_array_equal(both, [(values >= t).sum() for t in held.thresholds])


def test_one_row_of_each_group_is_chosen_on_and_counted():
    """Rows are copies of their group's number, so that the groups can be told apart."""
    groups = np.repeat(np.arange(50), np.arange(50) % 4 + 1)
    sets = find_points(groups.astype(float), np.arange(80.0), groups0=groups)
    held = count_held_out(sets, np.random.default_rng(0), first, one_per_group=True)
    assert (held.chosen_rows, held.counted_rows) == ((25, 40), (25, 40))
    both = held.chosen[0] + held.counted[0]
    np.testing.assert_array_equal(both, [(np.arange(50) >= t).sum() for t in held.thresholds])
    assert held.one_per_group
    fitted = count_held_out(sets, np.random.default_rng(0), None, one_per_group=True)
    assert fitted.trained_rows[0] > 25
    assert (fitted.chosen_rows, fitted.counted_rows) == ((25, 40), (25, 40))


def test_rows_beyond_what_a_fit_takes_choose(monkeypatch):
    monkeypatch.setattr("dpcore.divergence.score.TRAINED", 20)
    monkeypatch.setattr("dpcore.divergence.certificates.most_trained", lambda dim: 20)
    held = hold(np.arange(400.0), np.arange(400.0) + 0.5, np.random.default_rng(0))
    assert held.trained_rows == (20, 20)
    assert (held.chosen_rows, held.counted_rows) == ((150, 150), (200, 200))


def test_a_certificate_at_fewer_orders_prints_and_pickles():
    held = counts_of([[900, 500, 90], [600, 210, 10]], [[910, 480, 80], [640, 190, 8]])
    certificate = certify(held, ALPHAS)
    some = certificate.at(ALPHAS[[1, 3]])
    np.testing.assert_array_equal(some.bound, certificate.bound[:, [1, 3]])
    with pytest.raises(ValueError, match="alphas must be among the certified orders"):
        certificate.at(np.array([3.0]))
    for record in (held, certificate):
        assert pickle.loads(pickle.dumps(record)) == record
    assert str(certificate).splitlines()[0].startswith("D(P0||P1): event score >= ")
    assert certify(held, np.array([0.5, 1.0])).bins == ((), ())
