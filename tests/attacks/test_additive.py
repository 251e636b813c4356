"""The additive attack: bins, weights and patterns, what it makes of outputs, what it reaches."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpcore.attacks import additive
from dpcore.attacks.additive import Additive, AdditiveScore, fit_scores
from dpcore.attacks.attack import Goal, choose_events
from dpcore.attacks.bins import ColumnBins, classes_by_input_values
from dpcore.attacks.grains import EXACT, Tolerance
from dpcore.attacks.ratios import (
    equal_count_set_index,
    log_ratios,
    ratio_set_per_bin,
    shrink_ratios_to_0,
    to_fixed_point,
    weigh_bins,
)
from dpcore.bounds import clopper_pearson
from dpcore.pairs import zeros_ones
from dpcore.records import Counts, Pair

VALUES = [-np.inf, -2.0, -1.0, -0.5, -0.0, 0.0, 0.25, 1.0, 3.0, np.inf, np.nan]

# Bins.

SLACK = Tolerance(0, absolute=1e-9)


def bin_column(values, grain, bins):
    return ColumnBins.of_sample(
        values[:, np.newaxis], "values", [grain], bins, np.zeros(1, np.int64)
    )


def bins_of(found, values):
    return np.searchsorted(found.edges, values, side="right")


def symbols_of(found, values):
    return found.symbols[bins_of(found, values)]


def test_a_small_alphabet_is_all_atoms():
    found = bin_column(np.repeat([0.0, 1.0, 5.0], 100), SLACK, 32)
    assert (found.edges.size, found.symbols[:3].tolist()) == (2, [1, 2, 3])
    assert bins_of(found, [0.0, 1.0, 5.0]).tolist() == [0, 1, 2]


def test_a_sentinel_in_a_continuum_is_an_atom():
    values = np.random.default_rng(1).normal(size=20000)
    values[:600], values[600:1000] = -1000.0, 0.0
    found = bin_column(values, Tolerance(0, absolute=1e-6), 32)
    sentinel, zero, rest = symbols_of(found, [-1000.0, 0.0, 0.01])
    assert len({sentinel, zero, 0}) == 3
    assert rest == 0
    # Values near the atom but beyond rounding are ordinary ones.
    assert symbols_of(found, [1e-4, -1e-4]).tolist() == [0, 0]
    # Nothing moves across an edge by rounding.
    assert symbols_of(found, [1e-7, -1e-7]).tolist() == [zero, zero]
    assert 32 <= found.edges.size <= 32 + 8 + 4
    # Also where the continuum has a hole around the atom.
    values[1000:] += np.sign(values[1000:])
    found = bin_column(values, Tolerance(0, absolute=1e-6), 32)
    assert symbols_of(found, [1e-7, 0.1, -0.1, 0.9]).tolist()[1:] == [0, 0, 0]
    assert symbols_of(found, [1e-7])[0] > 0


def test_few_outputs_and_wide_lattices_have_no_atoms():
    random = np.random.default_rng(1)
    assert bin_column(random.normal(size=20), SLACK, 32).symbols.max() == 0
    lattice = bin_column(np.round(random.laplace(scale=20.0, size=20000)), EXACT, 32)
    assert lattice.symbols.max() == 0
    assert lattice.edges.size > 20
    # An edge lies between two whole numbers, never on one.
    assert (np.abs(lattice.edges - np.round(lattice.edges)) > 0.01).all()


@given(st.lists(st.sampled_from(VALUES) | st.floats(-1, 1), min_size=1, max_size=300))
def test_edges_are_sorted_and_never_near_a_value(values):
    values = np.array(values)
    found = bin_column(values, SLACK, 16)
    assert (np.diff(found.edges) > 0).all()
    assert found.symbols.size == found.edges.size + 2
    finite = values[np.isfinite(values)]
    inner = found.edges[np.isfinite(found.edges) & (np.abs(found.edges) < 1e300)]
    if finite.size:
        assert np.abs(finite[:, None] - inner).min(initial=1.0) > 1e-9
    # Infinities and NaN that occur are symbols of their own.
    for special in (np.inf, -np.inf):
        if (values == special).any():
            assert symbols_of(found, special) not in {0, *symbols_of(found, [0.0, 0.5])}
    assert bool(found.symbols[-1]) == bool(np.isnan(values).any())


def test_outliers_do_not_melt_a_continuum_into_one_atom():
    values = np.random.default_rng(1).standard_cauchy(100_000)
    # Coarse enough for the middle to be one cluster.
    found = bin_column(values, Tolerance(0, absolute=1e-3), 32)
    assert found.edges.size > 30
    assert found.symbols.max() == 0
    assert (np.bincount(bins_of(found, values)) / values.size).max() < 0.05


def test_the_tails_have_bins_of_their_own():
    values = np.random.default_rng(1).normal(size=100_000)
    shares = np.bincount(bins_of(bin_column(values, SLACK, 32), values)) / values.size
    assert shares[:4] == pytest.approx([0.001, 0.002, 0.007, 0.02], rel=0.02)
    assert shares[-4:] == pytest.approx([0.02, 0.007, 0.002, 0.001], rel=0.02)
    assert bin_column(values, SLACK, 2).edges.size == 9


@pytest.mark.parametrize(
    ("pair", "transform", "columns", "expected"),
    [
        (Pair([1, 1, 0], [0, 0, 1]), "values", 3, [[0, 1], [2]]),
        (Pair([1, 1, 0], [0, 0, 1]), "differences", 3, [[0], [1], [2]]),
        (Pair([1, 1, 1], [0, 0, 0]), "differences", 3, [[0], [1, 2]]),
        (Pair([1.0], [0.0]), "values", 3, [[0, 1, 2]]),
        (Pair([1, 1], [0, 0]), "values", 4, [[0, 1], [2, 3]]),
        (Pair([1, 1], [0, 0]), "values", 3, [[0], [1], [2]]),
        (Pair([1, 1, 1], [0, 0, 0]), "sorted", 3, [[0], [1], [2]]),
        (Pair("text", "words"), "values", 2, [[0], [1]]),
        (Pair([[1], [1, 2]], "words"), "values", 2, [[0], [1]]),
    ],
)
def test_which_columns_the_inputs_treat_alike(pair, transform, columns, expected):
    classes = classes_by_input_values(pair, transform, columns)
    found = [np.flatnonzero(classes == kind).tolist() for kind in np.unique(classes)]
    assert sorted(found) == expected
    assert sorted(np.unique(classes)) == list(range(len(expected)))


def test_a_layout_spreads_and_flattens():
    sample = np.arange(150)[:, np.newaxis] % [3, 1, 5]
    found = ColumnBins.of_sample(sample, "values", [SLACK] * 3, 8, np.arange(3))
    flat = np.arange(2 * found.symbols.size, dtype=float).reshape(2, -1) + 1
    spread = found.split_by_column(flat)
    assert spread.shape == (2, 3, 6)
    assert (spread == 0).sum() == 2 * (2 + 4)
    assert np.array_equal(found.flatten_columns(spread), flat)


# Weights.


def brute_runs(k, k_prime, penalty=5.0):
    """The best partition by trying all."""

    def value(cuts):
        total = -penalty / 2.0 * (len(cuts) + 1)
        for a, b in itertools.pairwise([0, *cuts, len(k)]):
            one, two = k[a:b].sum(), k_prime[a:b].sum()
            both = max(one + two, 1)
            total += sum(c * np.log(c / both) for c in (one, two) if c)
        return total

    every = [c for size in range(len(k)) for c in itertools.combinations(range(1, len(k)), size)]
    cuts = max(every, key=value)
    return np.searchsorted(cuts, np.arange(len(k)), side="right")


def test_runs_are_the_best_of_all_partitions():
    random = np.random.default_rng(1)
    k = random.integers(0, 60, size=(40, 7)).astype(float)
    k_prime = random.integers(0, 60, size=(40, 7)).astype(float)
    k[:5], k_prime[:3] = 0.0, 0.0
    found = ratio_set_per_bin(k, k_prime)
    for row in range(40):
        assert found[row].tolist() == brute_runs(k[row], k_prime[row]).tolist()
    assert {len(set(row)) for row in found.tolist()} > {1}


def test_equal_histograms_are_one_run_and_weigh_nothing():
    k, k_prime = np.random.default_rng(1).poisson(1000.0, size=(2, 200, 40)).astype(float)
    n = k.sum(axis=1, keepdims=True), k_prime.sum(axis=1, keepdims=True)
    runs = ratio_set_per_bin(k, k_prime)
    # A second run must add 5 to a statistic that the best of 39 cuts does not often reach.
    assert (runs.max(axis=1) == 0).mean() > 0.5
    for some in (runs, equal_count_set_index(k, k_prime, 4), None):
        weights = weigh_bins(k, k_prime, *n, some)
        # The standard deviation of a raw log ratio is .045.
        assert np.sqrt((weights**2).mean()) < 0.02
    # The control: a difference of ten deviations is kept.
    k[:, :20] *= 1.5
    n = k.sum(axis=1, keepdims=True), n[1]
    weights = weigh_bins(k, k_prime, *n, ratio_set_per_bin(k, k_prime))
    gaps = weights[:, :20].mean(axis=1) - weights[:, 20:].mean(axis=1)
    assert np.abs(gaps - np.log(1.5)).mean() < 0.02


def test_even_runs_have_even_mass():
    k, k_prime = np.ones((1, 12)), np.ones((1, 12))
    assert equal_count_set_index(k, k_prime, 4)[0].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert equal_count_set_index(np.zeros((1, 3)), np.zeros((1, 3)), 4).tolist() == [[0, 0, 0]]


def test_shrinking_keeps_signs_and_what_is_clear():
    random = np.random.default_rng(1)
    truth = np.where(np.arange(1000) < 10, 3.0, 0.0)
    noisy = truth + random.normal(size=1000) * 0.2
    found = shrink_ratios_to_0(noisy, np.full(1000, 0.04))
    assert (np.abs(found) <= np.abs(noisy)).all()
    assert (found * noisy >= 0.0).all()
    assert np.allclose(found[:10], noisy[:10], rtol=0.05)
    assert np.square(found[10:]).mean() / np.square(noisy[10:]).mean() < 0.5
    # Nothing but noise is shrunk to next to nothing.
    alone = shrink_ratios_to_0(noisy[10:], np.full(990, 0.045))
    assert np.square(alone).mean() < 0.05 * np.square(noisy[10:]).mean()


def test_log_ratios_are_those_of_the_shares():
    ratios, variances = log_ratios(np.array([200, 0, 0]), np.array([100, 5, 0]), 1000, 500)
    assert (ratios[0], ratios[2]) == (pytest.approx(0.0, abs=0.01), 0.0)
    assert ratios[1] < -2.0
    assert variances == pytest.approx([1 / 200.5 + 1 / 100.5, 2 + 1 / 5.5, 4.0])


def test_sums_of_grained_weights_are_exact_in_any_order():
    random = np.random.default_rng(1)
    weights = to_fixed_point(random.normal(size=1000) * 5.0)
    sums = {float(np.add.reduce(random.permutation(weights)[:, None])[0]) for _ in range(50)}
    assert len(sums) == 1
    assert np.abs(weights - to_fixed_point(weights)).max() == 0.0
    raw = random.normal(size=1000)
    assert len({float(np.add.reduce(random.permutation(raw)[:, None])[0]) for _ in range(50)}) > 1


# Patterns.


def flags(size, seed, *, linked):
    """Four flags on each side; the first two agree more often on x if they are linked."""
    random = np.random.default_rng(seed)
    rows = random.integers(2, size=(size, 4))
    if linked:
        agree = random.random(size) < 0.75
        rows[:, 1] = np.where(agree, rows[:, 0], 1 - rows[:, 0])
    return rows


LINKED, APART = flags(20000, 1, linked=True), flags(20000, 2, linked=False)


def patterns_of(rows, rows_prime, coding=additive.key_coding_of_column_kinds, **options):
    sample = np.concatenate([rows, rows_prime])
    own = np.arange(rows.shape[1])
    found = ColumnBins.of_sample(sample, "values", [EXACT] * own.size, 8, own)
    return additive.Patterns.of(rows, rows_prime, found, coding(found, **options))


def test_flags_that_differ_only_jointly_are_seen_only_by_their_pattern():
    fresh, fresh_prime = flags(20000, 3, linked=True), flags(20000, 4, linked=False)
    found = additive.Additive().candidates(LINKED, APART, Pair("a", "b"))
    gaps = {
        bool(score.patterns.size): float(score(fresh).mean() - score(fresh_prime).mean())
        for score in found
    }
    # The expected difference is the symmetrised divergence, .25 ln 3; single flags have none.
    assert gaps[True] == pytest.approx(0.25 * np.log(3.0), abs=0.03)
    assert abs(gaps.get(False, 0.0)) < 0.01


def test_independent_flags_are_separate_parts_and_linked_ones_are_not():
    found = [part.columns.tolist() for part in patterns_of(LINKED, APART).parts]
    assert found == [[0, 1], [2], [3]]
    apart = patterns_of(APART, flags(20000, 3, linked=False)).parts
    assert [part.columns.tolist() for part in apart] == [[0], [1], [2], [3]]


def test_patterns_by_class_forget_the_order():
    classes = np.array([0, 0, 1, 1])
    found = patterns_of(LINKED, APART, additive.key_coding_of_class_kind_counts, classes=classes)
    assert found.keys.tolist() == list(range(9))
    sums = np.unique(LINKED.reshape(-1, 2, 2).sum(axis=2) @ [1, 3], return_counts=True)[1]
    assert (sorted(found.k), found.parts) == (sorted(sums), [additive.Part(None, False)])


def test_many_columns_have_patterns_of_random_bits():
    rows = np.tile(np.random.default_rng(1).integers(2, size=(5, 80)), (200, 1))
    found = patterns_of(rows, rows)
    assert found.keys.size == 5
    assert found.keys.max() < 2**53
    assert (found.parts, found.weights().tolist()) == ([additive.Part(None, False)], [0.0] * 5)


def test_every_pattern_is_found_through_its_hash():
    keys = np.unique(np.random.default_rng(1).integers(2**52, size=3000, dtype=np.uint64))
    order, first = additive.hash_order_and_bucket_starts(keys)
    assert (first[0], first[-1]) == (0, keys.size)
    score = additive.AdditiveScore(
        "values", keys[1:] - 0.5, [0, keys.size - 1], np.append(keys, np.uint64(0)), keys,
        np.zeros(keys.size, np.uint32), np.arange(keys.size), np.zeros((0, keys.size + 1)),
    )  # fmt: skip
    assert score(keys.astype(np.float64)[:, None]).tolist() == list(range(keys.size))
    assert sorted(order) == list(range(keys.size))


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


@pytest.mark.sweep
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


def test_counts_of_equal_columns_are_added():
    counts = np.arange(12.0).reshape(4, 3)
    sums = additive._sum_by_class(counts, np.array([0, 1, 0, 1]))
    assert np.array_equal(sums, [counts[0] + counts[2], counts[1] + counts[3]])
