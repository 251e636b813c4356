"""The additive attack: what it makes of outputs, and what it reaches."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest
from scipy import stats

from dpcore.attacks.additive import Additive, AdditiveScore, fit_scores
from dpcore.attacks.attack import Goal, choose_events
from dpcore.bounds import clopper_pearson
from dpcore.pairs import zeros_ones
from dpcore.records import Counts, Pair

ALPHA = 1e-4
"""Chance that a statistical test here fails although all is well."""

# What the attack makes of outputs.


def both_sides(mechanism, pair, size, seed):
    random = np.random.default_rng(seed)
    return mechanism(pair.x, size, random), mechanism(pair.x_prime, size, random)


def certified(attack, mechanism, pair, pilot, trials, seed=1):
    """The bound at 95 % that the attack reaches on fresh draws, and the choice."""
    train = both_sides(mechanism, pair, pilot, seed)
    rest = both_sides(mechanism, pair, pilot, seed + 1000)
    found = choose_events(attack.candidates(*train, pair), *rest, Goal(trials))
    chosen = max(found, key=lambda choice: choice.merit)
    fresh = both_sides(mechanism, pair, trials, seed + 2000)
    k, k_prime = (int(chosen.event(side).sum()) for side in fresh)
    counts = Counts(k, trials, k_prime, trials)
    counts = counts if chosen.direction == "x" else counts.swapped()
    return clopper_pearson(counts, 0.0, 0.95), chosen


def laplace(x, size, random):
    return x + random.laplace(scale=2.0, size=(size, len(x)))


def test_the_rounded_lattice_is_never_split():
    """x + round(noise, 1) has one lattice of real numbers, and different doubles on two sides."""

    def mechanism(x, size, random):
        return x + np.round(random.laplace(scale=0.5, size=(size, 2)), 1)

    pair = Pair([0.0, 0.0], [0.3, 0.3])
    outputs, outputs_prime = both_sides(mechanism, pair, 50_000, 1)
    lattice = np.arange(-20, 21)
    # The premise: some points of the lattice are several doubles.
    assert np.isin(0.3 + lattice[:17] / 10, lattice / 10).mean() < 0.8
    found = Additive().candidates(outputs, outputs_prime, pair)
    assert len(found) > 3
    rows = np.array(list(itertools.product(lattice / 10, repeat=2)))
    for score in found:
        expected = score(rows)
        assert np.unique(expected).size > 1
        for nudge in (1e-15, -1e-15, 3e-11):
            assert score(rows + nudge).tolist() == expected.tolist()
            assert score(rows + nudge * np.array([1, -1])).tolist() == expected.tolist()


def test_independent_laplace_noise_is_tested_nearly_as_by_the_likelihood_ratio():
    pair, trials = zeros_ones(5), 200_000
    fresh = both_sides(laplace, pair, trials, 77)
    distances = ([np.abs(side - x).sum(axis=1) for x in (pair.x_prime, pair.x)] for side in fresh)
    ratio = [(far - near) / 2.0 for far, near in distances]
    oracle = max(
        clopper_pearson(
            Counts(int((ratio[0] >= t).sum()), trials, int((ratio[1] >= t).sum()), trials),
            0.0, 0.95,
        )
        for t in np.linspace(0.0, 2.4, 25)
    )  # fmt: skip
    found, chosen = certified(Additive(), laplace, pair, 100_000, trials)
    assert found > 0.9 * oracle
    assert isinstance(chosen.event.score, AdditiveScore)
    # The control: what the entries say one by one is far less.
    alone, _ = certified(Additive(), lambda x, n, r: laplace(x, n, r)[:, :1], pair, 50_000, trials)
    assert alone < 0.4 * oracle


def test_independent_increments_are_seen_in_the_differences():
    def walk(x, size, random):
        return np.cumsum(laplace(x, size, random), axis=1)

    pair = zeros_ones(6)
    found, chosen = certified(Additive(), walk, pair, 50_000, 100_000)
    assert chosen.event.score.transform == "differences"
    assert str(chosen.event.score).startswith("log-likelihood ratio summed over 6 first diff")
    entries = [s for s in Additive().candidates(*both_sides(walk, pair, 50_000, 1), pair)
               if s.transform == "values"]  # fmt: skip
    rest = both_sides(walk, pair, 50_000, 5)
    assert found > 1.3 * max(choice.merit for choice in choose_events(entries, *rest, Goal(10**5)))


def test_equal_laws_certify_nothing():
    """A null mechanism with flags, values and ties: each bound holds with 95 %."""

    def mechanism(x, size, random):
        values = np.round(random.normal(size=(size, 4)), 2)
        return np.where(random.random((size, 4)) < 0.3, -1000.0, values)

    pair, audits = zeros_ones(4), 40
    wrong = sum(certified(Additive(8), mechanism, pair, 500, 500, seed)[0] > 0.0
                for seed in range(audits))  # fmt: skip
    assert stats.binomtest(wrong, audits, 0.05, alternative="greater").pvalue > ALPHA
    # The control: events chosen and counted on the same draws do overclaim.
    pair, wrong = zeros_ones(4), 0
    for seed in range(audits):
        outputs = both_sides(mechanism, pair, 500, seed)
        for score in Additive(8).candidates(*outputs, pair):
            choice = choose_events([score], *outputs, Goal(500))[0]
            counts = choice.counts if choice.direction == "x" else choice.counts.swapped()
            wrong += clopper_pearson(counts, 0.0, 0.95) > 0.0
    assert stats.binomtest(wrong, 10 * audits, 0.05, alternative="greater").pvalue < ALPHA


def test_nan_and_infinities_are_evidence():
    def mechanism(x, size, random):
        noise = random.normal(size=(size, 1))
        noise[random.random(size) < 0.2 + 0.3 * x[0]] = np.nan
        noise[random.random(size) < 0.05] = np.inf
        return noise

    found, chosen = certified(Additive(), mechanism, zeros_ones(1), 5000, 20_000)
    assert found == pytest.approx(np.log(0.5 / 0.2), abs=0.08)
    assert chosen.event(np.array([[np.nan], [0.0]])).sum() == 1


def crossed(x, size, random, common):
    """A flag, and a value whose shift has the flag's sign; what else they say on their own."""
    flag = random.random(size) < 0.5 + 0.1 * common * x[0]
    shift = np.where(flag == 1, 1.0, -1.0) * (2.0 * x[0] - 1.0) + common * x[0]
    return np.stack([flag, shift + random.laplace(size=size)], axis=1)


def test_values_given_their_pattern():
    """The flag tells which sign the value's shift has: neither says anything alone."""
    mechanism, pair = partial(crossed, common=0.0), Pair([0.0, 0.0], [1.0, 0.0])
    found, chosen = certified(Additive(), mechanism, pair, 20_000, 50_000)
    assert found > 1.7
    assert chosen.event.score.patterns.size
    assert len(chosen.event.score.weights) > 2
    train = both_sides(mechanism, pair, 20_000, 1)
    rest = both_sides(mechanism, pair, 20_000, 2)
    for score in Additive().candidates(*train, pair):
        if len(score.weights) < 2 and score.transform == "values":
            assert choose_events([score], *rest, Goal(10**5))[0].merit < 0.2


def test_groups_add_to_what_the_values_say_anyway():
    pair = Pair([0.0, 0.0], [1.0, 0.0])
    train = both_sides(lambda x, n, r: crossed(x, n, r, 1.0), pair, 20_000, 1)
    usual, grouped = (
        next(s for s in Additive().candidates(*train, pair)
             if s.patterns.size and s.transform == "values" and few < len(s.weights) < most)
        for few, most in ((0, 2), (1, 9))
    )  # fmt: skip
    # A rare pattern's values count as they do whatever the pattern.
    assert np.abs(usual.weights).max() > 0.5
    assert np.array_equal(grouped.weights[0], usual.weights[0])
    # A group's weights are not far from the log ratio given its flag.
    rows = np.array([[1.0, -3.0], [1.0, 4.0], [0.0, -3.0], [0.0, 4.0]])
    gaps = grouped(rows)[::2] - grouped(rows)[1::2]
    # Shifts from -1 to 2 with the flag, from 1 to 0 without.
    assert gaps == pytest.approx([6.0, -2.0], abs=0.7)


def test_repeated_columns_share_their_bins():
    def mechanism(x, size, random):
        return x[0] + random.laplace(scale=20.0, size=(size, 12))

    train = both_sides(mechanism, zeros_ones(1), 20_000, 1)
    shared = 0
    for score in Additive().candidates(*train, zeros_ones(1)):
        weights = score.weights.reshape(12, -1) if score.edges.size % 12 == 0 else None
        if score.transform == "values" and weights is not None and (weights == weights[0]).all():
            shared += 1
            rows = np.random.default_rng(3).normal(size=(100, 12)) * 20.0
            assert score(rows).tolist() == score(rows[:, ::-1]).tolist()
    assert shared >= 2


def test_sorted_columns_do_not_see_the_order():
    train = both_sides(laplace, zeros_ones(3), 5000, 1)
    found = [s for s in Additive().candidates(*train, zeros_ones(3)) if s.transform == "sorted"]
    rows = train[0][:100]
    assert found
    assert all(s(rows).tolist() == s(rows[:, [2, 0, 1]]).tolist() for s in found)


def test_every_fit_fits_together():
    def mechanism(x, size, random):
        values = laplace(x, size, random)
        return np.where(values < 1.0, 0.0, values)

    pair = zeros_ones(4)
    train = both_sides(mechanism, pair, 5000, 1)
    found = list(fit_scores(*train, pair, 16))
    assert len(found) > 6
    for score in found:
        assert np.isfinite(score(train[0])).all()
        # A score tells the draws that fitted it apart, if it says anything at all.
        assert score(train[0]).mean() >= score(train[1]).mean()


def test_it_is_fitted_on_the_parts_of_outputs_that_are_no_numbers():
    outputs = np.array([["a"], ["b"]] * 20)
    assert Additive().candidates(outputs, outputs, zeros_ones(1)) == ()
    assert Additive()(outputs, outputs, zeros_ones(1))(outputs).shape == (40,)


@pytest.mark.parametrize("size", [1, 2, 3, 30])
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64, np.bool_])
def test_pilots_of_every_size_and_kind_give_a_score(size, kind):
    rows = np.random.default_rng(1).normal(size=(size, 3)).astype(kind)
    for outputs in (rows, rows[:, 0], np.zeros_like(rows)):
        found = Additive().candidates(outputs, outputs[::-1], zeros_ones(3))
        assert found
        assert all(np.isfinite(score(outputs)).all() for score in found)
