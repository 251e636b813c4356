"""Histograms: tables of cells, every kind of output, merging, soundness."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from shared_audits import (
    AUDITS,
    MOST,
    assert_kept,
    count_overclaims,
    is_overclaimed,
    lattice,
    nudged,
    rng,
)
from shared_histograms import check, fitted

import dpcore
from dpcore.attacks import Histogram, arrays
from dpcore.attacks import histogram as histogram_module
from dpcore.attacks.histogram import Letters, Outcomes, real_columns
from dpcore.events import Above


def audited(mechanism, pair, trials, attack=None, **options):
    attack = attack or Histogram()
    return dpcore.audit(mechanism, pair, attack=attack, trials=trials, rng=1, **options)


# When it applies.


def test_too_many_cells():
    for make in (
        lambda g: g.integers(0, 10**9, 1000),
        lambda g: g.integers(0, 10**9, 1000).astype("U"),
        lambda g: g.integers(0, 10**9, 1000).astype(object),
        lambda g: g.normal(size=(1000, 30)),
    ):
        assert fitted(make(rng(29)), make(rng(30))) == ()
    enough = [rng(i).integers(0, 200, 1000) for i in (31, 32)]
    assert fitted(*enough)
    assert fitted(*(side[:500] for side in enough)) == ()
    assert fitted(np.empty((0, 2)), np.empty((0, 2))) == ()
    assert fitted(np.zeros((5, 2)), np.zeros((5, 3))) == ()


def test_a_long_pilot_of_distinct_outputs_is_refused_from_its_head(monkeypatch):
    sides = [rng(i).integers(0, 2**40, 100_000) for i in (33, 34)]
    seen = []
    numbered = histogram_module._number_rows

    def spy(parts, letters):
        seen.append(len(parts[0]))
        return numbered(parts, letters)

    monkeypatch.setattr(histogram_module, "_number_rows", spy)
    assert fitted(*sides) == ()
    assert seen == [2**14]
    # As many cells as are just allowed pass the head and are counted in full.
    assert fitted(*(side % 24_000 for side in sides))


def test_values_that_never_repeat_go_into_bins():
    sides = [rng(i).normal(i - 35, 1.0, 20_000) for i in (35, 36)]
    scores = fitted(*sides)
    assert {score.values.size for score in scores} == {2, 8}
    assert (fitted(*sides, bins=5)[0].values.size, fitted(*sides, bins=1)) == (5 + 4, ())
    # Higher is more like x, whose outputs are the smaller ones.
    assert np.corrcoef(scores[-1](sides[0]), sides[0])[0, 1] < -0.5


def test_a_flag_with_a_value_is_a_cell():
    def released(x, size, generator):
        """The value where it is large, a code otherwise: joint events tell most."""
        noisy = np.asarray(x) + generator.laplace(0.0, 2.0, (size, 2))
        return np.where(noisy > 1.0, noisy, -1000.0)

    binned, plain = (
        audited(released, ([0.0, 1.0], [1.0, 0.0]), 10**6, attack=attack).epsilon_lower
        for attack in (Histogram(), Histogram(1))
    )
    assert 0.2 < plain < binned < 1.0


# What it finds.


def svt(x, size, generator):
    """Ten noisy comparisons, all released: the joint cell tells more than any entry."""
    limit = generator.laplace(0.0, 2.0, (size, 1))
    return (np.asarray(x) + generator.laplace(0.0, 2.0, (size, 10)) >= limit).astype(np.int8)


def test_the_joint_cell_of_ten_bits():
    half = np.repeat([0.0, 2.0], 5)
    assert audited(svt, (half, 2.0 - half), 300_000).epsilon_lower > 4.0


def test_randomised_response_over_strings():
    def respond(x, size, generator):
        lie = generator.random(size) < 0.75
        return np.where(lie, np.array(["a", "b", "c"])[generator.integers(0, 3, size)], x)

    bound = audited(respond, ("a", "b"), 200_000).epsilon_lower
    assert math.log(2) - 0.05 < bound < math.log(2)


def test_tuples_as_outputs():
    def pairs(x, size, generator):
        made = np.empty(size, dtype=object)
        made[:] = [("n", round(x + v, 1)) for v in generator.laplace(0.0, 1.0, size)]
        return made

    assert 0.7 < audited(pairs, (0.0, 1.0), 20_000).epsilon_lower < 1.0


# Atoms: equal real numbers that are different doubles.


def test_cells_are_merged_before_they_are_counted():
    sides = [lattice([x], 20_000, rng(37)) for x in (0.0, 0.3)]
    score = fitted(*sides)[0]
    for side in sides:
        assert score(side).tolist() == score(nudged(side)).tolist()
    # 0.1 + 0.2 and 0.3 are one cell.
    assert np.ptp(score(np.array([[0.3], [0.1 + 0.2]]))) == 0.0


def test_the_floating_point_law_does_not_leak_into_the_bound():
    """38 % of the mass lies on doubles that only one of the inputs can produce."""

    def exact(x, size, generator):
        """The control: the same outputs as exact doubles, compared as integers."""
        return lattice(x, size, generator).view(np.int64) >> 0

    common = {"pair": ([0.0], [0.3]), "trials": 100_000, "claim": 0.6}
    assert 0.5 < audited(lattice, **common).epsilon_lower < 0.6
    assert audited(exact, **common).epsilon_lower > 5.0


def test_floats_inside_objects_are_merged():
    score = Outcomes((("a", 0.3), ("a", 1.0)), np.array([1.0, 2.0]), 1e-9)
    rows = np.empty(4, dtype=object)
    rows[:] = [("a", 0.1 + 0.2), ("a", 0.3), ("a", 0.30001), ("a", 1.0 + 1e-16)]
    assert score(rows).tolist() == [1.0, 1.0, 0.0, 2.0]
    odd = Outcomes((("a", math.nan), -math.inf), np.array([1.0, 2.0]), 1e-9)
    rows = np.empty(3, dtype=object)
    rows[:] = [("a", float("nan")), float("-inf"), float("inf")]
    assert odd(rows).tolist() == [1.0, 2.0, 0.0]


def test_bin_edges_lie_clear_of_atoms_and_between_values():
    atoms = np.repeat(np.round(rng(38).normal(size=50), 1), 100)
    values = np.concatenate([atoms, rng(39).normal(size=5000)])
    column = real_columns(values[:, None], values[:, None])[0]
    cuts = column.cuts(8)
    assert cuts.size == 7 + 4
    gap = np.abs(cuts[:, None] - values).min(axis=1)
    assert (gap > column.grain.at(cuts)).all()
    shares = (values[5000:][:, None] < cuts).mean(axis=0)
    assert shares[[0, 1, -2, -1]] == pytest.approx([1 / 128, 1 / 32, 31 / 32, 127 / 128], abs=0.02)
    assert shares[2:-2] == pytest.approx(np.arange(1, 8) / 8, abs=0.02)
    assert column.cuts(1).size == 0


def test_letters_of_a_column_with_atoms_bins_and_special_values():
    values = np.repeat([0.0, 2.0], 100), rng(40).uniform(-1, 1, 1000)
    values = np.concatenate(values)[:, None]
    letters = Letters.of_real(real_columns(values, values), 2)
    shown = np.array([0.0, 1e-18, 2.0, -0.9, 0.9, 5.0, np.nan, -np.inf, np.inf])[:, None]
    _, raw = next(letters.chunks(shown))
    found = letters.extend(np.zeros(9, dtype=np.int64), raw, 0, 1).tolist()
    assert (found[0], found[4]) == (found[1], found[5])
    assert len({*found}) == 7
    assert max(found) == letters.sizes[0] - 1


# Soundness.


def null(x, size, generator):
    return generator.integers(0, 3, (size, 3))


def null_flags(x, size, generator):
    noisy = generator.laplace(0.0, 1.0, (size, 2))
    return np.where(noisy > 0.0, noisy, -1000.0)


@pytest.mark.parametrize("mechanism", [null, null_flags])
def test_a_mechanism_that_ignores_its_input_is_not_overclaimed(mechanism):
    assert count_overclaims(Histogram(), mechanism) <= MOST


def test_a_claim_that_is_exactly_true_is_not_overclaimed():
    def respond(x, size, generator):
        return np.where(generator.random(size) < 0.5, generator.integers(0, 2, size), int(x))

    assert count_overclaims(Histogram(), respond, true=math.log(3)) <= MOST


def test_cells_chosen_on_the_counted_draws_overclaim():
    """The control: 27 cells in the order of the very counts that are then certified."""
    found = 0
    for seed in range(AUDITS):
        sides = [null(0, 1000, rng((seed, i))) for i in (0, 1)]
        found += is_overclaimed(Above(fitted(*sides)[0], 1e-9), sides)
    assert found > MOST


# Records.


def kept():
    bits = [rng(i).integers(0, 3, (300, 50)) for i in (41, 42)]
    yield fitted(*(side[:, :1] * np.ones(50, dtype=int) for side in bits))[0]
    yield fitted(*(np.where(side[:, 0] > 0, "yes", "no") for side in bits))[0]
    yield fitted(*(rng(i).normal(size=3000) for i in (43, 44)))[0]
    yield Outcomes(("a", None, 3, ("b", 1.5, math.inf)), np.arange(4.0), 1e-9)


@pytest.mark.parametrize("score", list(kept()), ids=str)
def test_scores_pickle_and_are_kept_by_json(score):
    assert_kept(score)


def test_the_order_of_chunks_does_not_matter(monkeypatch):
    sides = [rng(i).integers(0, 3, (3000, 4)) for i in (45, 46)]
    whole = fitted(*sides)[0]
    monkeypatch.setattr(arrays, "chunk_slices", partial(arrays.chunk_slices, most=64))
    assert fitted(*sides)[0] == whole
    assert whole(sides[0]).tolist() == [float(whole(row[None])[0]) for row in sides[0]]


def test_letters_of_pilots_of_different_widths():
    sides = np.array(["a", "b"] * 20), np.array(["abc", "b"] * 20)
    assert Letters.of_whole(*sides, "text").sizes.size == 3
    check(*sides)
