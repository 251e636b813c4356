"""Histograms: when they apply, what they find, their tables against the definition, soundness."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared_audits import (
    AUDITS,
    MOST,
    UNIT,
    assert_kept,
    count_overclaims,
    is_overclaimed,
    lattice,
    nudged,
    rng,
)

import dpcore
from dpcore.attacks import Histogram, arrays
from dpcore.attacks import histogram as histogram_module
from dpcore.attacks.histogram import LetterEncoder, Outcomes, atoms_by_column
from dpcore.events import Above


def fitted(outputs, outputs_prime, **settings):
    return Histogram(**settings).candidates(outputs, outputs_prime, UNIT)


def naive(outputs, outputs_prime, a):
    """ln((k + a)/(n + a)) - ln((k' + a)/(n' + a)) by a dictionary of rows."""
    sides = [list(map(tuple, np.asarray(s).reshape(len(s), -1).tolist()))
             for s in (outputs, outputs_prime)]  # fmt: skip
    k, k_prime = ({row: side.count(row) for row in set(side)} for side in sides)
    n, n_prime = map(len, sides)
    return {
        row: math.log((k.get(row, 0) + a) / (n + a))
        - math.log((k_prime.get(row, 0) + a) / (n_prime + a))
        for row in set(k) | set(k_prime)
    }


def check(outputs, outputs_prime, others=()):
    """The first table of the histogram against the dictionary, on the pilot and beyond."""
    table = naive(outputs, outputs_prime, 1.0)
    score = fitted(outputs, outputs_prime)[0]
    for side in (outputs, outputs_prime, *others):
        rows = map(tuple, np.asarray(side).reshape(len(side), -1).tolist())
        expected = [table.get(row, 0.0) for row in rows]
        assert score(side) == pytest.approx(expected, abs=1e-12)
    return score


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
    numbered = histogram_module._cell_lookup_and_counts

    def spy(parts, letters):
        seen.append(len(parts[0]))
        return numbered(parts, letters)

    monkeypatch.setattr(histogram_module, "_cell_lookup_and_counts", spy)
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
    column = atoms_by_column(values[:, None], values[:, None])[0]
    cuts = column.non_atom_quantile_edges(8)
    assert cuts.size == 7 + 4
    gap = np.abs(cuts[:, None] - values).min(axis=1)
    assert (gap > column.grain.tolerances(cuts)).all()
    shares = (values[5000:][:, None] < cuts).mean(axis=0)
    assert shares[[0, 1, -2, -1]] == pytest.approx([1 / 128, 1 / 32, 31 / 32, 127 / 128], abs=0.02)
    assert shares[2:-2] == pytest.approx(np.arange(1, 8) / 8, abs=0.02)
    assert column.non_atom_quantile_edges(1).size == 0


def test_letters_of_a_column_with_atoms_bins_and_special_values():
    values = np.repeat([0.0, 2.0], 100), rng(40).uniform(-1, 1, 1000)
    values = np.concatenate(values)[:, None]
    letters = LetterEncoder.of_real(atoms_by_column(values, values), 2)
    shown = np.array([0.0, 1e-18, 2.0, -0.9, 0.9, 5.0, np.nan, -np.inf, np.inf])[:, None]
    _, raw = next(letters.iterate_blocks_as_numbers(shown))
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


@pytest.mark.sweep
@pytest.mark.parametrize("mechanism", [null, null_flags])
def test_a_mechanism_that_ignores_its_input_is_not_overclaimed(mechanism):
    assert count_overclaims(Histogram(), mechanism) <= MOST


@pytest.mark.sweep
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
    assert LetterEncoder.from_discrete(*sides, "text").sizes.size == 3
    check(*sides)


# Tables, against the definition.


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int32, np.uint64, np.int64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_whole_numbers(dtype, order):
    sides = [
        np.array(rng(i).integers(0, 2 + i, (400 - 100 * i, 3)), dtype=dtype, order=order)
        for i in (1, 2)
    ]
    # Numbers beyond the pilot's, on either side of them.
    check(*sides, [rng(3).integers(-3, 9, (200, 3))])


def test_numbers_far_apart_and_at_the_ends_of_their_type():
    values = np.array([-(2**63), 2**63 - 1, 0, 5, 10**12])
    sides = [values[rng(i).integers(0, 5, (300, 2))] for i in (4, 5)]
    assert check(*sides, [np.array([[1, 1], [5, 5], [-5, 2**62]])]).letters.kind == "words"
    check(*np.array([0, 2**64 - 1, 2**63], dtype=np.uint64)[rng(6).integers(0, 3, (2, 300))])


def test_strings_bytes_and_rows_of_them():
    words = np.array(["a", "", "naïve", "日本", "a\x00b"])
    for shape in ((500,), (500, 2)):
        sides = [words[rng(i).integers(0, 5, shape)] for i in (7, 8)]
        others = np.array(["a", "aa", "日本語", "naïve, but longer"])
        others = np.stack([others, others[::-1]], axis=1) if len(shape) == 2 else others
        check(*sides, [others, sides[0].astype("U40"), sides[0][:5].astype("U1").astype("U9")])
    raw = np.array([b"a", b"bc", b""])
    check(*(raw[rng(i).integers(0, 3, 300)] for i in (9, 10)))


def test_dates_and_differences_of_them():
    days = np.datetime64("2020-01-01") + np.arange(4)
    sides = [days[rng(i).integers(0, 4, 300)] for i in (11, 12)]
    for change in (lambda side: side, lambda side: side - days[0]):
        one, two = map(change, sides)
        plain = fitted(one.view(np.int64), two.view(np.int64))[0]
        assert fitted(one, two)[0](one).tolist() == plain(one.view(np.int64)).tolist()


@pytest.mark.parametrize("columns", [1, 40, 130, 700])
def test_rows_too_long_for_one_number(columns):
    """62 bits hold 39 columns of 3 letters: beyond them, ladders continue each other."""
    base = rng(13).integers(0, 3, (12, columns))
    sides = [base[rng(i).integers(0, 12, 400)] for i in (14, 15)]
    unseen = base.copy()
    unseen[:, -1] = (unseen[:, -1] + 1) % 3
    unseen[:4, 0] = 77
    score = check(*sides, [unseen])
    assert (score.stops[0], score.stops[-1]) == (min(columns, 39), columns)
    assert len(score.stops) == {1: 1, 40: 2, 130: 4, 700: 20}[columns]


def test_floats_of_a_few_values():
    sides = [rng(i).integers(0, 3, (400, 2)) * 0.1 for i in (16, 17)]
    check(*sides, [np.array([[0.0, 0.05], [7.0, -3.0], [0.1, 0.2]])])
    sides = [side.astype(np.float32) for side in sides]
    check(*sides)


def test_special_floats_are_cells_of_their_own():
    values = np.array([np.nan, np.inf, -np.inf, 0.0, 1.0])
    sides = [values[rng(18).choice(5, 3000, p=p)] for p in ([0.3, 0.1, 0.1, 0.3, 0.2], [0.2] * 5)]
    score = fitted(*sides)[0]
    for value in values:
        k, k_prime = (np.count_nonzero(np.isnan(s) if np.isnan(value) else s == value)
                      for s in sides)  # fmt: skip
        expected = math.log((k + 1) / (k_prime + 1))
        assert score(np.array([value])).tolist() == pytest.approx([expected])


def test_python_objects():
    pool = ["a", None, 3, ("b", 1), ("b", 2), frozenset({1})]
    sides = []
    for seed in (19, 20):
        side = np.empty(400, dtype=object)
        side[:] = [pool[i] for i in rng(seed).integers(0, 6, 400)]
        sides.append(side)
    score = fitted(*sides)[0]
    assert isinstance(score, Outcomes)
    for item in pool:
        k, k_prime = (sum(one == item for one in side) for side in sides)
        one = np.empty(1, dtype=object)
        one[0] = item
        assert score(one).tolist() == pytest.approx([math.log((k + 1) / (k_prime + 1))])
    one[0] = "never seen"
    assert score(one).tolist() == [0.0]


def test_rows_of_objects_and_structured_outputs():
    flags = [rng(i).integers(0, 2, 500) for i in (21, 22)]
    rows = [np.stack([np.where(f == 1, "yes", None), f.astype(object)], axis=1) for f in flags]
    named = [np.array([(i, b"x") for i in f], dtype=[("n", "i4"), ("s", "S1")]) for f in flags]
    plain = fitted(*flags)[0]
    for sides in (rows, named, [f + 1j for f in flags]):
        assert fitted(*sides)[0](sides[0]) == pytest.approx(plain(flags[0]), abs=1e-12)


def test_what_is_rare_changes_the_type_of_a_block_but_nothing_else():
    score = fitted(*(np.array(["no", "yes"])[rng(i).integers(0, 2, 300)] for i in (23, 24)))[0]
    mixed = np.array([None, "yes", "no", 3.0], dtype=object)
    assert score(mixed).tolist() == [0.0, *score(np.array(["yes", "no"])).tolist(), 0.0]
    numbers = fitted(*(rng(i).integers(0, 2, (300, 2)) for i in (25, 26)))[0]
    odd = np.array([[1.0, 0.0], [np.nan, 1.0], [0.5, 0.5], [np.inf, 0.0]])
    assert numbers(odd).tolist() == [*numbers(np.array([[1, 0]])).tolist(), 0.0, 0.0, 0.0]
    objects = np.array([[1, 0], [None, 1]], dtype=object)
    assert numbers(objects).tolist() == [*numbers(np.array([[1, 0]])).tolist(), 0.0]
    with pytest.raises(TypeError, match="outputs must be strings, got dtype"):
        score(np.array([1, 2]))
    with pytest.raises(ValueError, match="outputs must be of 2 columns, as the pilot's"):
        numbers(np.zeros((3, 3), dtype=int))


def test_a_whole_side_and_a_float_side_are_one_kind():
    sides = rng(27).integers(0, 3, 400), rng(28).integers(0, 3, 400) * 1.0
    check(*sides)


@given(
    st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 1)), min_size=2, max_size=40),
    st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 1)), min_size=2, max_size=40),
)
def test_any_small_table(first, second):
    sides = np.array(first), np.array(second)
    if len(set(first) | set(second)) <= 16:
        check(*sides)


def test_two_orders_where_they_differ_and_one_where_not():
    few = [np.repeat([0, 1], [60, 40]), np.repeat([0, 1], [30, 70])]
    assert len(fitted(*few)) == 1
    rare = [np.repeat([0, 1, 2], [50, 46, 4]), np.repeat([0, 1, 2], [35, 15, 0])]
    scores = fitted(*rare)
    assert len(scores) == 2
    for score, a in zip(scores, (1.0, 32.0), strict=True):
        expected = [value for _, value in sorted(naive(*rare, a).items())]
        assert score(np.arange(3)) == pytest.approx(expected, abs=1e-12)
    # With one output given beforehand the rare cell leads, with 32 the frequent one.
    assert [int(np.argmax(score(np.arange(3)))) for score in scores] == [2, 1]


def test_the_most_frequent_cells_are_kept(monkeypatch):
    monkeypatch.setattr(histogram_module, "_MAX_CELLS", 3)
    sides = [np.repeat(np.arange(6), [50, 3, 40, 2, 30, 1])] * 2
    score = fitted(sides[0], np.repeat([0, 2, 4], [10, 30, 60]))[0]
    assert (score(np.arange(6)) != 0.0).tolist() == [True, False, True, False, True, False]
    assert len(fitted(*(side.astype(object) for side in sides))[0].keys) == 3
