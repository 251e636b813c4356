"""The parts of the additive attack: bins, weights and patterns."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcore.attacks import additive, arrays
from dpcore.attacks.arrays import EXACT, Grain
from dpcore.attacks.bins import Layout, bin_column, classes_of_columns
from dpcore.records import Pair

VALUES = [-np.inf, -2.0, -1.0, -0.5, -0.0, 0.0, 0.25, 1.0, 3.0, np.inf, np.nan]

# Bins.

SLACK = Grain(0, absolute=1e-9)


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
    found = bin_column(values, Grain(0, absolute=1e-6), 32)
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
    found = bin_column(values, Grain(0, absolute=1e-6), 32)
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
    found = bin_column(values, Grain(0, absolute=1e-3), 32)
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
    classes = classes_of_columns(pair, transform, columns)
    found = [np.flatnonzero(classes == kind).tolist() for kind in np.unique(classes)]
    assert sorted(found) == expected
    assert sorted(np.unique(classes)) == list(range(len(expected)))


def test_a_layout_spreads_and_flattens():
    sample = np.arange(150)[:, np.newaxis] % [3, 1, 5]
    found = Layout.of_sample(sample, "values", [SLACK] * 3, 8, np.arange(3))
    flat = np.arange(2 * found.symbols.size, dtype=float).reshape(2, -1) + 1
    spread = found.spread(flat)
    assert spread.shape == (2, 3, 6)
    assert (spread == 0).sum() == 2 * (2 + 4)
    assert np.array_equal(found.flat(spread), flat)


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
    found = arrays.clear_runs(k, k_prime)
    for row in range(40):
        assert found[row].tolist() == brute_runs(k[row], k_prime[row]).tolist()
    assert {len(set(row)) for row in found.tolist()} > {1}


def test_equal_histograms_are_one_run_and_weigh_nothing():
    k, k_prime = np.random.default_rng(1).poisson(1000.0, size=(2, 200, 40)).astype(float)
    n = k.sum(axis=1, keepdims=True), k_prime.sum(axis=1, keepdims=True)
    runs = arrays.clear_runs(k, k_prime)
    # A second run must add 5 to a statistic that the best of 39 cuts does not often reach.
    assert (runs.max(axis=1) == 0).mean() > 0.5
    for some in (runs, arrays.even_runs(k, k_prime, 4), None):
        weights = arrays.smooth_bins(k, k_prime, *n, some)
        # The standard deviation of a raw log ratio is .045.
        assert np.sqrt((weights**2).mean()) < 0.02
    # The control: a difference of ten deviations is kept.
    k[:, :20] *= 1.5
    n = k.sum(axis=1, keepdims=True), n[1]
    weights = arrays.smooth_bins(k, k_prime, *n, arrays.clear_runs(k, k_prime))
    gaps = weights[:, :20].mean(axis=1) - weights[:, 20:].mean(axis=1)
    assert np.abs(gaps - np.log(1.5)).mean() < 0.02


def test_even_runs_have_even_mass():
    k, k_prime = np.ones((1, 12)), np.ones((1, 12))
    assert arrays.even_runs(k, k_prime, 4)[0].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert arrays.even_runs(np.zeros((1, 3)), np.zeros((1, 3)), 4).tolist() == [[0, 0, 0]]


def test_shrinking_keeps_signs_and_what_is_clear():
    random = np.random.default_rng(1)
    truth = np.where(np.arange(1000) < 10, 3.0, 0.0)
    noisy = truth + random.normal(size=1000) * 0.2
    found = arrays.shrink_log_ratios(noisy, np.full(1000, 0.04))
    assert (np.abs(found) <= np.abs(noisy)).all()
    assert (found * noisy >= 0.0).all()
    assert np.allclose(found[:10], noisy[:10], rtol=0.05)
    assert np.square(found[10:]).mean() / np.square(noisy[10:]).mean() < 0.5
    # Nothing but noise is shrunk to next to nothing.
    alone = arrays.shrink_log_ratios(noisy[10:], np.full(990, 0.045))
    assert np.square(alone).mean() < 0.05 * np.square(noisy[10:]).mean()


def test_log_ratios_are_those_of_the_shares():
    ratios, variances = arrays.log_ratios(np.array([200, 0, 0]), np.array([100, 5, 0]), 1000, 500)
    assert (ratios[0], ratios[2]) == (pytest.approx(0.0, abs=0.01), 0.0)
    assert ratios[1] < -2.0
    assert variances == pytest.approx([1 / 200.5 + 1 / 100.5, 2 + 1 / 5.5, 4.0])


def test_sums_of_grained_weights_are_exact_in_any_order():
    random = np.random.default_rng(1)
    weights = arrays.round_weights(random.normal(size=1000) * 5.0)
    sums = {float(np.add.reduce(random.permutation(weights)[:, None])[0]) for _ in range(50)}
    assert len(sums) == 1
    assert np.abs(weights - arrays.round_weights(weights)).max() == 0.0
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


def patterns_of(rows, rows_prime, coding=additive.code_by_column, **options):
    sample = np.concatenate([rows, rows_prime])
    own = np.arange(rows.shape[1])
    found = Layout.of_sample(sample, "values", [EXACT] * own.size, 8, own)
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
    found = patterns_of(LINKED, APART, additive.code_by_class, classes=classes)
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
    order, first = additive.order_by_hash(keys)
    assert (first[0], first[-1]) == (0, keys.size)
    score = additive.AdditiveScore(
        "values", keys[1:] - 0.5, [0, keys.size - 1], np.append(keys, np.uint64(0)), keys,
        np.zeros(keys.size, np.uint32), np.arange(keys.size), np.zeros((0, keys.size + 1)),
    )  # fmt: skip
    assert score(keys.astype(np.float64)[:, None]).tolist() == list(range(keys.size))
    assert sorted(order) == list(range(keys.size))
