"""Records, pairs and the messages of the errors module."""

from __future__ import annotations

import copy
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from shared_messages import check_messages

from dpcore import errors
from dpcore.pairs import distance, zeros_ones
from dpcore.records import Counts, Pair

ARRAYS = hnp.arrays(
    st.sampled_from([np.float64, np.float32, np.int64, np.bool_]),
    hnp.array_shapes(max_dims=2, max_side=4),
)


@pytest.mark.parametrize(
    "value", [[1, 2], (1.5, 2), [True], [2**70], [1, None], [10**400], [Fraction(1, 2)], "ab", {}]
)
def test_a_pair_keeps_the_two_objects_that_it_was_given(value):
    pair = Pair(value, value)
    assert pair.x is value
    assert pair.x_prime is value


UNEQUAL = [
    1,
    1.0,
    True,
    np.int64(1),
    np.float64(1.0),
    np.float32(1.0),
    np.bool_(True),
    "1",
    -0.0,
    0.0,
]


@pytest.mark.parametrize(
    "wrap", [lambda v: v, lambda v: [v], lambda v: (v, [v]), lambda v: {"a": v}]
)
def test_equality_and_hash_compare_types_and_content(wrap):
    pairs = [Pair(wrap(value), None) for value in UNEQUAL]
    for place, pair in enumerate(pairs):
        assert [pair == other for other in pairs] == [place == n for n in range(len(pairs))]
        again = Pair(copy.deepcopy(wrap(UNEQUAL[place])), None)
        assert again == pair
        if not isinstance(pair.x, dict):
            assert hash(again) == hash(pair)
    nan = float("nan"), np.float32("nan")
    assert all(Pair([v], 0) == Pair([type(v)("nan")], 0) for v in nan)
    assert Pair([1], 0) != Pair((1,), 0) != Pair(np.array([1]), 0)


def test_objects_that_cannot_be_compared_equal_only_themselves():
    class Rude:
        __hash__ = None

        def __eq__(self, other):
            raise RuntimeError("no")

    rude, loop, other = Rude(), [], []
    loop.append(loop)
    other.append(other)
    assert Pair([rude], 0) == Pair([rude], 0) != Pair([Rude()], 0)
    assert Pair(loop, 0) == Pair(loop, 0) != Pair(other, 0)


def test_masked_arrays_are_not_stripped_of_their_mask():
    masked = np.ma.masked_array([1.0, 2.0], mask=[True, False])
    assert Pair(masked, masked).x is masked


@given(ARRAYS)
def test_arrays_are_read_only_copies_with_their_dtype(array):
    pair = Pair(array, array)
    assert pair.x is not array
    assert pair.x.dtype == array.dtype
    assert not np.shares_memory(pair.x, array)
    with pytest.raises(ValueError, match="read-only"):
        pair.x[...] = 0


@given(ARRAYS, ARRAYS)
def test_equality_is_by_dtype_shape_and_bytes_and_agrees_with_hash(left, right):
    parts, other_parts = ((one.dtype, one.shape, one.tobytes()) for one in (left, right))
    one, other = Pair(left, 1), Pair(right, 1)
    assert (one == other) is (parts == other_parts)
    assert Pair(left.copy(), 1) == one
    assert hash(Pair(left.copy(), 1)) == hash(one)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (np.array([0.0]), np.array([-0.0])),
        (np.array([1.0]), np.array([1])),
        (np.zeros(2), np.zeros((1, 2))),
        (np.zeros(1), 0.0),
    ],
)
def test_what_differs_in_bytes_dtype_shape_or_kind_differs(left, right):
    assert Pair(left, 0) != Pair(right, 0)


def test_nan_equals_itself_and_distance_counts():
    nan = np.array([np.nan])
    assert Pair(nan, nan) == Pair(nan.copy(), nan.copy())
    assert Pair(nan, nan) != Pair(nan, nan, distance=2.0)
    assert Pair([1.0], [2.0]) != Counts(1, 1, 1, 1)


def test_object_arrays_compare_by_their_elements():
    texts = np.array(["a" * 300, None], dtype=object)
    same = np.array(["a" * 200 + "a" * 100, None], dtype=object)
    assert Pair(texts, 0) == Pair(same, 0)
    assert hash(Pair(texts, 0)) == hash(Pair(same, 0))


def test_an_object_without_a_yes_or_no_equality_equals_only_itself():
    class Tensor:
        def __eq__(self, other):
            return np.array([True, True])

        __hash__ = None

    tensor = Tensor()
    assert Pair(tensor, 0) == Pair(tensor, 0)
    assert Pair(tensor, 0) != Pair(Tensor(), 0)


@pytest.mark.parametrize(
    "rebuild", [copy.copy, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))]
)
def test_a_rebuilt_pair_is_equal_and_still_read_only(rebuild):
    pair = Pair(np.array([1.0, 2.0]), np.arange(2), 3.0)
    again = rebuild(pair)
    assert again == pair
    assert not again.x.flags.writeable
    assert not again.x_prime.flags.writeable


def test_repr_is_short():
    assert repr(Pair([0, 1], np.array([1]))) == "Pair(x=[0, 1], x_prime=array([1], dtype=int64))"
    assert repr(Pair(np.array([0.0]), 1)) == "Pair(x=array([0.]), x_prime=1)"
    long = repr(Pair(np.zeros(10**6), "t"))
    assert "shape=(1000000,)" in long
    assert len(long) < 150


def test_records_are_frozen():
    with pytest.raises(AttributeError):
        Pair([0.0], [1.0]).distance = 2.0
    with pytest.raises(AttributeError):
        Counts(0, 1, 0, 1).k = 1


COUNTS = st.tuples(st.integers(1, 10**12), st.integers(1, 10**12)).flatmap(
    lambda n: st.builds(
        Counts, st.integers(0, n[0]), st.just(n[0]), st.integers(0, n[1]), st.just(n[1])
    )
)


@given(COUNTS, COUNTS)
def test_counts_add_swap_and_complement(a, b):
    total = a + b
    assert (total.k, total.n_prime) == (a.k + b.k, a.n_prime + b.n_prime)
    assert a + b == b + a
    assert a.swapped().swapped() == a == a.complement().complement()
    assert (a + b).swapped() == a.swapped() + b.swapped()
    assert (a + b).complement() == a.complement() + b.complement()


def test_counts_hold_plain_ints():
    counts = Counts(np.int32(1), np.int64(2), np.uint8(0), 5)
    assert [type(v) for v in (counts.k, counts.n, counts.k_prime)] == [int, int, int]
    with pytest.raises(TypeError):
        counts + 1


@pytest.mark.parametrize(("norm", "expected"), [("l1", 7.0), ("l2", 5.0), ("linf", 4.0)])
def test_distance(norm, expected):
    assert distance(Pair([1.0, 0.0], [4.0, -4.0]), norm) == expected


def test_distance_is_careful():
    huge = Pair([0.0, 0.0], [3e300, 4e300])
    assert distance(huge, "l2") == pytest.approx(5e300, rel=1e-15)
    tiny = Pair([0.0, 0.0], [3e-300, 4e-300])
    assert distance(tiny, "l2") == pytest.approx(5e-300, rel=1e-15)
    # A running sum would lose every one of the small entries.
    assert distance(Pair(np.zeros(1001), [1.0] + [1e-16] * 1000), "l1") == 1.0 + 1e-13
    assert distance(Pair([-1.7e308], [1.7e308]), "linf") == math.inf
    assert distance(Pair([0.0, 0.0], [1.7e308, 1.7e308]), "l1") == math.inf


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.int32(7), 7),
        (1e8, 10**8),
        (np.float64(3.0), 3),
        (np.float32(4.0), 4),
        ("1e8", 10**8),
        (" 2.0 ", 2),
        ("9223372036854775807", 2**63 - 1),
        (2**63 - 1, 2**63 - 1),
    ],
)
def test_count(value, expected):
    number = errors.count("trials", value)
    assert number == expected
    assert type(number) is int


def test_real_takes_numpy_scalars():
    assert type(errors.real("a", np.float32(0.5))) is float
    assert errors.real("a", np.int8(-3)) == -3.0


def test_values_are_shown_short_and_on_one_line():
    class Broken:
        def __repr__(self):
            raise RuntimeError

    for value in ("x" * 10**6, list(range(10**6)), np.zeros((50, 50)), 10**5000, Broken()):
        text = errors.show(value)
        assert len(text) <= 80
        assert "\n" not in text
    assert errors.show(np.float64(-1.0)) == "-1.0"
    assert errors.show(np.bool_(True)) == "True"
    assert errors.show(np.longdouble(2.0)) == "2.0"


def pair_at(distance):
    return Pair([0.0], [1.0], distance)


TRIALS = "a whole number at least 1 and below 2**63, got "
VALUE_ERRORS = [
    (lambda: pair_at(0.0), "distance", "a finite number above 0, got 0.0"),
    (lambda: pair_at(math.nan), "distance", "a finite number above 0, got nan"),
    (lambda: Counts(11, 10, 0, 10), "k", "an integer from 0 to 10, got 11"),
    (lambda: Counts(0, 10, -1, 10), "k_prime", "an integer from 0 to 10, got -1"),
    (lambda: Counts(0, 0, 0, 10), "n", "an integer at least 1, got 0"),
    (lambda: zeros_ones(0), "dim", "an integer at least 1, got 0"),
    (lambda: distance(zeros_ones(1), "l3"), "norm", "one of 'l1', 'l2', 'linf', got 'l3'"),
    (lambda: distance(Pair([0.0], [0.0, 1.0]), "l1"), "pair", "two arrays of equal shape"),
    (lambda: errors.real("a", 10**400), "a", "a finite number, got 1000"),
    *((lambda value=value: errors.count("trials", value), "trials", f"{TRIALS}{value!r}")
      for value in ("abc", "", "1.5", "1e999999999", "nan", "sNaN", 1.5, math.inf, 0, -1, 2**63)),
]  # fmt: skip
TYPE_ERRORS = [
    (lambda: pair_at(True), "distance", "a finite number above 0, got True"),
    (lambda: pair_at("1"), "distance", "a finite number above 0, got '1'"),
    (lambda: Counts(0, 1, 0, 1.0), "n_prime", "an integer at least 1, got 1.0"),
    (lambda: Counts(True, 1, 0, 1), "k", "an integer from 0 to 1, got True"),
    (lambda: Counts(np.float64(1), 1, 0, 1), "k", "an integer from 0 to 1, got 1.0"),
    (lambda: zeros_ones(2.0), "dim", "an integer at least 1, got 2.0"),
    (lambda: distance(Pair("a", "b"), "l1"), "x", "an array of real numbers, got 'a'"),
    *((lambda value=value: errors.real("a", value), "a", "a finite number, got ")
      for value in (None, 1j, "1", True, np.False_, np.zeros(1), np.zeros(()))),
    *((lambda value=value: errors.count("trials", value), "trials", f"{TRIALS}{value}")
      for value in (True, np.True_, [1], None, b"1", 1j)),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
