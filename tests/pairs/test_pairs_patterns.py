"""The usual pairs, neighbour relations and domains."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcore import Pair, pairs


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
