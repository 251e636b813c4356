"""How far apart two inputs are: norms, replaced, added and removed records; when they are equal."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpcore import Pair
from dpcore.pairs import L1, L2, Box, Linf, Replace, distances
from dpcore.pairs.differences import added_or_removed, inputs_equal
from dpcore.pairs.neighbours import refuse_farther


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
    assert added_or_removed(first, second) == edits(first, second)
    assert added_or_removed(second, first) == added_or_removed(first, second)


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
        refuse_farther(pair, relation)
    with pytest.raises(ValueError, match="distance at most"):
        refuse_farther(far, relation)


def test_whole_numbers_beyond_doubles_are_told_apart():
    pair = Pair(np.array([2**62]), np.array([2**62 + 1]))
    assert distances(pair)["l1"] == 1.0
    assert not inputs_equal(pair.x, pair.x_prime)
    with pytest.raises(ValueError, match=r"at most 0.5 .*, got 1.0$"):
        refuse_farther(pair, L1(0.5))
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
    refuse_farther(Pair(table, other), Replace())
