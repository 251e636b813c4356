"""The usual pairs, neighbour relations, domains and distances, and wrong calls of the package."""

from __future__ import annotations

import copy
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from shared_messages import check_messages

from dpcore import Pair, pairs
from dpcore.pairs import (
    L1,
    L2,
    AddRemove,
    Box,
    Linf,
    Records,
    Replace,
    distances,
    drive,
    patterns,
    search,
)
from dpcore.pairs.differences import (
    add_remove_count,
    differing_places,
    format_changes,
    inputs_equal,
)
from dpcore.pairs.neighbours import refuse_non_neighbours


def plain(pair):
    return pair.x.tolist(), pair.x_prime.tolist()


def test_every_public_name_exists():
    assert all(hasattr(pairs, name) for name in pairs.__all__)
    # Functions, not the modules that hold them.
    assert all(callable(getattr(pairs, name)) for name in ("patterns", "search", "distance"))
    assert (pairs.NORMS, pairs.dimension(3)) == (("l1", "l2", "linf"), 3)
    assert plain(pairs.zeros_ones(2)) == ([0.0, 0.0], [1.0, 1.0])


def test_the_patterns_in_four_entries():
    assert [plain(pair) for pair in pairs.patterns(4, "all")] == [
        ([1, 1, 1, 1], [0, 1, 1, 1]),
        ([1, 1, 1, 1], [2, 1, 1, 1]),
        ([1, 1, 1, 1], [2, 0, 0, 0]),
        ([1, 1, 1, 1], [0, 2, 2, 2]),
        ([1, 1, 1, 1], [2, 2, 0, 0]),
        ([1, 1, 1, 1], [2, 2, 2, 2]),
        ([1, 1, 1, 1], [0, 0, 0, 0]),
        ([1, 1, 0, 0], [0, 0, 1, 1]),
    ]
    assert pairs.patterns(4, "one") == pairs.patterns(4, "all")[:2]
    assert all(pair.x.dtype == np.float64 for pair in pairs.patterns(4, "all"))
    # Halves of an odd dimension.
    assert plain(pairs.patterns(5, "all")[7]) == ([1, 1, 0, 0, 0], [0, 0, 1, 1, 1])


@pytest.mark.parametrize(("dim", "number"), [(1, 2), (2, 7), (3, 7), (4, 8), (5, 8), (10, 8)])
def test_no_pattern_comes_twice(dim, number):
    unordered = {frozenset(map(tuple, plain(pair))) for pair in pairs.patterns(dim, "all")}
    assert len(unordered) == len(pairs.patterns(dim, "all")) == number
    assert len(pairs.patterns(dim, "one")) == 2


@given(st.integers(1, 40))
def test_patterns_are_at_distance_one(dim):
    assert all(pairs.distance(pair, "l1") == 1.0 for pair in pairs.patterns(dim, "one"))
    assert all(pairs.distance(pair, "linf") == 1.0 for pair in pairs.patterns(dim, "all"))


# Boxes.


@given(st.floats(-1e6, 1e6), st.floats(0, 1e6), st.integers(1, 6), st.integers(0, 2**32))
def test_a_box_contains_what_it_draws_and_clips(low, width, dim, seed):
    rng = np.random.default_rng(seed)
    box = pairs.Box(low, low + width, dim)
    assert box.contains(box.draw(rng))
    inside = box.clip(rng.normal(size=dim) * 1e7)
    assert box.contains(inside)
    assert np.array_equal(box.clip(inside), inside)


@given(st.integers(-50, 50), st.integers(0, 50), st.integers(1, 6), st.integers(0, 2**32))
def test_a_box_of_integers(low, width, dim, seed):
    rng = np.random.default_rng(seed)
    box = pairs.Box(low, low + width, dim, integers=True)
    for x in (box.draw(rng), box.clip(rng.normal(size=dim) * 30)):
        assert x.dtype == np.int64
        assert box.contains(x)
    assert not box.contains(np.full(dim, low + 0.5))
    assert box == pickle.loads(pickle.dumps(box))


def test_what_a_box_does_not_contain():
    box = pairs.Box(0, 1, 2)
    assert box.contains([0, 1])
    others = ([0.5], [0.5, 1.1], [0.5, np.nan], "ab", [[0, 1]], [[0], [1, 2]], ["a", "b"], None)
    assert not any(box.contains(x) for x in others)


# Relations, against their definitions.

SPACE = pairs.Box(-9, 9, 2)


@pytest.mark.parametrize(
    ("relation", "near", "far"),
    [
        (pairs.L1(2.0), [1.0, -1.0], [1.0, -1.001]),
        (pairs.L2(5.0), [3.0, -4.0], [3.0, -4.001]),
        (pairs.Linf(2.0), [2.0, -2.0], [0.0, -2.001]),
    ],
)
def test_balls_hold_up_to_their_radius(relation, near, far):
    assert relation.holds(Pair([0.0, 0.0], near), SPACE)
    assert relation.holds(Pair(near, [0.0, 0.0]), SPACE)
    assert not relation.holds(Pair([0.0, 0.0], far), SPACE)
    # The same input twice is no pair of neighbours, and both must lie in the domain.
    assert not relation.holds(Pair(near, near), SPACE)
    assert not relation.holds(Pair([9.0, 9.0], [9.0, 9.5]), SPACE)
    assert relation == type(relation)(relation.radius)
    assert pickle.loads(pickle.dumps(relation)) == relation
    assert repr(relation) == f"{type(relation).__name__}(radius={relation.radius!r})"


def test_replace_and_add_remove_against_a_naive_definition():
    """All pairs of datasets of two or three records from two values."""
    domain = pairs.Records(("a", "b"), 2)
    sets = [x for size in (1, 2, 3) for x in itertools.product("ab", repeat=size)]
    for x, y in itertools.product(sets, repeat=2):
        replaced = len(x) == len(y) == 2 and sum(a != b for a, b in zip(x, y, strict=True)) == 1
        short, long = sorted((x, y), key=len)
        shorter = {long[:place] + long[place + 1 :] for place in range(len(long))}
        added = len(short) == 2 and short in shorter
        assert pairs.Replace().holds(Pair(x, y), domain) == replaced, (x, y)
        assert pairs.AddRemove().holds(Pair(x, y), domain) == added, (x, y)


@pytest.mark.parametrize(
    ("x", "x_prime", "text"),
    [
        ([0, 1, 2], [0, 5, 2], "entry 1: 1 -> 5"),
        ([1.0, np.nan, np.nan], [1.0, np.nan, 2.0], "entry 2: nan -> 2.0"),
        (np.arange(3), np.array([0, 7, 1, 2]), "record 1 added: 7"),
        (np.eye(2), np.array([[1.0, 0.0], [3.0, 1.0]]),
         "record 1: [0.0, 1.0] -> [3.0, 1.0]"),
        ([("a", 1), ("b", 2)], [("a", 1), ("b", 3)], "record 1: ('b', 2) -> ('b', 3)"),
        (["a", "b"], ["a"], "record 1 removed: 'b'"),
        (["a", "b", "c"], ["x", "c"], "record 1 removed: 'b', record 0 added: 'x'"),
        ("a good film", "a bad film", "word 1: 'good' -> 'bad'"),
        ("a good film", "a film", "word 1 removed: 'good'"),
        (b"ab", b"acb", "byte 1 added: 99"),
        ({"a": 1}, {"a": 2}, "x: {'a': 1} -> {'a': 2}"),
        (["a"], ["a"], "no difference"),
        ([0] * 11, [1] * 11, "entry 7: 0 -> 1 and 3 more"),
    ],
)  # fmt: skip
def test_what_differs_is_listed_with_its_place(x, x_prime, text):
    shown = format_changes(Pair(x, x_prime))
    assert shown.endswith(text)
    assert shown.count("->") <= 8


@pytest.mark.parametrize(
    ("values", "other"),
    [
        ((1, 2.5), 3), (("a", "b"), "c"), ((np.nan, 1.0), 2.0), (([1], [2]), [3]),
        ((np.array([0.0, np.nan]), np.array([1.0, 1.0])), np.array([0.0, 1.0])),
        (({"a": 1}, None), {"a": 2}),
        ((np.datetime64("2020-01-01"), np.datetime64("2021-01-01")), np.datetime64("2022-01-01")),
    ],
)  # fmt: skip
def test_records_of_every_kind_belong_to_their_domain(values, other):
    domain = Records(values, 2)
    copies = copy.deepcopy(values)
    for x in (values, list(copies), np.array([*copies, None], dtype=object)[:2], Pair(copies, 0).x):
        assert domain.contains(x)
        assert not differing_places(values, x)
    assert not domain.contains((values[0], other))
    assert differing_places(values, (values[0], other)) == [1]


def test_an_added_record_must_belong_to_the_domain():
    domain = pairs.Records(("a", "b"), 2)
    for long in ("zab", "azb", "abz"):
        assert not pairs.AddRemove().holds(Pair(("a", "b"), tuple(long)), domain)


def test_datasets_of_numbers_and_of_rows():
    domain = pairs.Box(0, 1, 3)
    assert pairs.Replace().holds(Pair([0, 0, 1], [0, 1, 1]), domain)
    assert pairs.AddRemove().holds(Pair([0, 0, 1], [0, 0, 0.5, 1]), domain)
    assert not pairs.AddRemove().holds(Pair([0, 0, 1], [0, 0, 1.5, 1]), domain)

    class Rows:
        dim = 2

        def draw(self, rng):
            return rng.random((2, 3))

        def contains(self, x):
            return x.shape == (2, 3)

    x = np.zeros((2, 3))
    assert pairs.Replace().holds(Pair(x, np.repeat([[0.0], [1.0]], 3, axis=1)), Rows())
    assert pairs.AddRemove().holds(Pair(x, np.vstack([x, np.ones(3)])), Rows())
    assert not pairs.Replace().holds(Pair(x, np.ones((2, 3))), Rows())


# How far apart two inputs are: norms, replaced, added and removed records; when they are equal.


def edits(first, second):
    """Added and removed records, by the longest common subsequence: the slow way."""
    table = np.zeros((len(first) + 1, len(second) + 1), dtype=int)
    for i, a in enumerate(first):
        for j, b in enumerate(second):
            longer = max(table[i, j + 1], table[i + 1, j])
            table[i + 1, j + 1] = table[i, j] + 1 if a == b else longer
    return len(first) + len(second) - 2 * int(table[-1, -1])


LISTS = st.lists(st.sampled_from("abc"), max_size=12)


@given(LISTS, LISTS)
def test_added_and_removed_are_those_of_the_longest_common_subsequence(first, second):
    assert add_remove_count(first, second) == edits(first, second)
    assert add_remove_count(second, first) == add_remove_count(first, second)


VECTORS = st.lists(st.floats(allow_nan=False, width=32), min_size=1, max_size=6)


@given(VECTORS, VECTORS)
@example([0.0], [-0.0])
def test_norms_are_in_order_and_0_for_equal_inputs_alone(first, second):
    pair = Pair(first, (second + first)[: len(first)])
    found, slack = distances(pair), 1.0 + 1e-9
    assert found["linf"] <= found["l2"] * slack <= found["l1"] * slack**2
    assert (found["changed"] == 0) == (found["l1"] == 0.0) == inputs_equal(pair.x, pair.x_prime)


@given(st.integers(0, 2**32), st.sampled_from([L1, L2, Linf]), st.floats(0.1, 3.0))
def test_whatever_holds_in_a_domain_is_let_pass(seed, kind, radius):
    rng, box, relation = np.random.default_rng(seed), Box(-5, 5, 3), kind(radius)
    pair = relation.move(Pair(box.draw(rng), box.draw(rng)), box, rng)
    far = Pair(np.zeros(3), np.full(3, 1.01 * radius))
    if relation.holds(pair, box):
        refuse_non_neighbours(pair, relation)
    with pytest.raises(ValueError, match="distance at most"):
        refuse_non_neighbours(far, relation)


def test_whole_numbers_beyond_doubles_are_told_apart():
    pair = Pair(np.array([2**62]), np.array([2**62 + 1]))
    assert distances(pair)["l1"] == 1.0
    assert not inputs_equal(pair.x, pair.x_prime)
    with pytest.raises(ValueError, match=r"at most 0.5 .*, got 1.0$"):
        refuse_non_neighbours(pair, L1(0.5))
    far = Pair(np.array([0], dtype=np.uint64), np.array([2**63 + 2**62], dtype=np.uint64))
    assert distances(far)["linf"] == 2.0**63 + 2.0**62
    assert distances(Pair(10**400, 0)) == {
        "unit": "record", "size": 1, "size_prime": 1, "replaced": 1, "added_or_removed": 2,
    }  # fmt: skip


def test_objects_that_convert_to_arrays_have_their_distances():
    class Tensor:
        def __init__(self, values):
            self.values = np.array(values)

        def __array__(self, dtype=None, copy=None):
            return self.values

    assert distances(Pair(Tensor([0.0, 0.0]), Tensor([3.0, 4.0])))["l2"] == 5.0
    assert distances(Pair(Tensor(["a", "b"]), Tensor(["a", "c"])))["replaced"] == 1


def test_tables_are_compared_whole():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    table = pandas.DataFrame({"age": [30, 40], "name": ["a", "b"]})
    other = table.assign(age=[30, 41])
    equal = [inputs_equal(table, one) for one in (table.copy(), other, table[:1])]
    assert equal == [True, False, False]
    assert distances(Pair(table, other))["replaced"] == 1
    assert distances(Pair(table, table[:1]))["added_or_removed"] == 1
    refuse_non_neighbours(Pair(table, other), Replace())


# Messages of wrong calls of `dpcore.pairs`: the argument, and a word of the remedy.


BOX = Box(0, 1, 2)

PLAN, RNG = search(BOX, L1(1.0)), np.random.default_rng(1)

VALUE_ERRORS = [
    # The usual pairs, neighbour relations and domains.
    (lambda: patterns(0, "all"), "dim", "an integer at least 1"),
    (lambda: patterns(2, "some"), "which", "one of 'one', 'all'"),
    (lambda: Box(1, 0, 2), "high", "a finite number at least 1"),
    (lambda: Box(0, np.inf, 2), "high", "a finite number"),
    (lambda: Box(-1e308, 1e308, 2), "high", "at a finite distance from low"),
    (lambda: Box(0, 1, 0), "dim", "an integer at least 1"),
    (lambda: Box(0.5, 2, 1, True), "low", "a whole number"),
    (lambda: Box(0, 2.0**54, 1, True), "high", "a whole number"),
    (lambda: Linf(0.0), "radius", "a finite number above 0"),
    (lambda: Replace(()), "values", "at least one record"),
    (lambda: AddRemove(()), "values", "at least one record"),
    (lambda: Records((), 2), "values", "at least one record"),
    # The search for the pair that leaks most, against exact oracles of two mechanisms.
    (lambda: PLAN.propose([], RNG), "best", "at least one pair"),
    (lambda: search(Box(0.5, 0.5, 2), L1(1.0)).start(RNG), "domain", "large enough to hold two"),
    (lambda: search(Box(0, 5, 2, integers=True), L1(0.5)).start(RNG), "domain", "large enough"),
    (lambda: drive(PLAN, lambda *_: float("nan"), RNG), "merit of a pair", "a real number"),
    (lambda: search(BOX, L1(1.0), rounds=0), "rounds", "an integer at least 1"),
    (lambda: search(BOX, L1(1.0), budget="many"), "budget", "a whole number"),
    (lambda: search(BOX, L1(1.0), budget=511), "budget", "at least rounds x candidates = 512, got"),
]  # fmt: skip
TYPE_ERRORS = [
    # The usual pairs, neighbour relations and domains.
    (lambda: patterns(2.0, "all"), "dim", "an integer"),
    (lambda: patterns(2), "", "missing 1 required positional argument"),
    (lambda: patterns(2, 1), "which", "one of"),
    (lambda: Box("0", 1, 2), "low", "a finite number"),
    (lambda: Box(0, 2, 1, 1), "integers", "True or False"),
    (lambda: Replace("ab"), "values", "a list or tuple"),
    # The search for the pair that leaks most, against exact oracles of two mechanisms.
    (lambda: PLAN.start(1), "rng", "a Generator"),
    (lambda: PLAN.propose([(Pair([0, 0], [0, 1]), 1.0)], 1), "rng", "a Generator"),
    (lambda: search(Records(("a",), 2), L1(1.0)).start(RNG), "domain", "one of vectors"),
    (lambda: drive(None, lambda pair, size: 0.0, RNG), "plan", "a Search"),
    (lambda: drive(PLAN, 0.0, RNG), "evaluate", "a callable"),
    (lambda: drive(PLAN, lambda *_: "good", RNG), "merit of a pair", "a real number"),
    (lambda: search(3, L1(1.0)), "domain", "a domain with dim, draw and contains, got 3"),
    (lambda: search(Box, L1(1.0)), "domain", "contains, an instance and not the class"),
    (lambda: search(BOX, L1), "neighbour", "a neighbour relation"),
    (lambda: search(BOX, 1.0), "neighbour", "a neighbour relation"),
    (lambda: search(BOX, L1(1.0), candidates=1.5), "candidates", "an integer"),
]  # fmt: skip
ZERO_DIVISION_ERRORS = [
    # The search for the pair that leaks most, against exact oracles of two mechanisms.
    (lambda: drive(PLAN, lambda *_: 1 / 0, RNG), "", "division by zero"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
    check_messages(ZeroDivisionError, ZERO_DIVISION_ERRORS)
