"""The tables of the histogram attack, against their definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared_audits import rng
from shared_histograms import check, fitted, naive

from dpcore.attacks import histogram as histogram_module
from dpcore.attacks.histogram import Outcomes

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
