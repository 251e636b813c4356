"""What the answers of a repeated function become."""

from __future__ import annotations

import numpy as np
import pytest
from shared_audits import rng

import dpcore
from dpcore.mechanisms.answers import outputs_of
from dpcore.mechanisms.callables import repeat

# What answers become.


@pytest.mark.parametrize(
    ("answers", "dtype", "shape"),
    [
        ([1.5, 2.5], "f", (2,)),
        ([1, 2], "i", (2,)),
        ([True, False], "b", (2,)),
        ([np.float32(1.0), 2.0], "f", (2,)),
        ([[1, 2], [3, 4]], "i", (2, 2)),
        ([(1, 2), (3.0, 4.0)], "f", (2, 2)),
        ([np.zeros(3), [1, 2, 3]], "f", (2, 3)),
        ([np.zeros(()), 1.0], "f", (2,)),
        ([np.zeros((2, 3)), np.ones((2, 3))], "f", (2, 2, 3)),
        (["a", "b\0"], "O", (2,)),
        ([None, 1.5], "O", (2,)),
        ([1, "1"], "O", (2,)),
        ([("a", 1), ("b", 2)], "O", (2,)),
        ([(1, 2), (1, None)], "O", (2,)),
        ([["a", 1], ["b\0", 2]], "O", (2, 2)),
        ([2**63, -1], "O", (2,)),
        ([2**70, 1], "O", (2,)),
    ],
)
def test_answers_become_an_array(answers, dtype, shape):
    each = iter(answers)
    outputs = repeat(lambda x: next(each))(0, len(answers), rng())
    assert outputs.dtype.kind == dtype
    assert outputs.shape == shape
    if dtype == "O" and len(shape) == 1:
        assert list(map(type, outputs)) == list(map(type, answers))
        assert outputs.tolist() == answers
    else:
        assert np.array_equal(outputs, np.array([np.array(a, dtype=dtype) for a in answers]))


@pytest.mark.parametrize(
    "answers",
    [
        [[1], [1, 2]],
        [(1,), (1, 2)],
        [np.zeros(3), np.zeros((3, 1)), np.zeros(4)],
        [1.5, [1.5, 2.5]],
        ["a", [1.5]],
        [{"a": 43}, {"a": 43}],
        [{1}, {2}],
        [[[1], [1, 2]], [[1], [1, 2]]],
        [({},), ({},)],
    ],
)
def test_answers_without_a_common_shape_are_one_output_each(answers):
    each = iter(answers)
    outputs = repeat(lambda x: next(each))(0, len(answers), rng())
    assert outputs.shape == (len(answers),)
    assert all(one is other for one, other in zip(outputs, answers, strict=True))


def test_symbols_may_be_mappings():
    assert repeat(lambda x: [{"a": 1}], catch=ValueError)(0, 1, rng()).tolist() == [({"a": 1},)]


def test_the_length_of_an_answer_is_counted():
    def lengths(x, rng):
        return tuple([0.0] * int(1 + x[0] + rng.integers(3)))

    report = dpcore.audit(repeat(lengths), ([0.0], [1.0]), trials=2000, rng=1, claim=1.0)
    assert report.verdict == "refuted"
    even = dpcore.audit(repeat(lengths), ([0.0], [0.0]), null=True, trials=2000, rng=1, claim=0.5)
    assert even.verdict != "refuted"


class Sparse:
    """A sparse matrix, as far as the name of its module goes."""

    __module__ = "scipy.sparse._csr"
    toarray = None


class Graph:
    __module__ = "networkx.classes.graph"
    edges = None


async def released():
    return 1.0


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.parametrize(
    ("make", "advice"),
    [
        (lambda: iter([1.0, 2.0]), r"return list\(\.\.\.\)"),
        (lambda: (one for one in [1.0, 2.0]), r"return list\(\.\.\.\)"),
        (released, "asyncio.run"),
        (Sparse, r"return the \.toarray\(\)"),
        (Graph, r"return sorted\(g\.edges\)"),
        (lambda: np.ma.masked_array([1.0, 2.0], [False, True]), r"return its \.filled\(value\)"),
    ],
)
def test_what_is_not_read_is_refused_with_what_to_return(make, advice):
    ways = [
        ("answers", repeat(lambda x: make())),
        ("outputs", lambda x, size, rng: make()),
        ("outputs", lambda x, size, rng: [make() for _ in range(size)]),
    ]
    for name, mechanism in ways:
        with pytest.raises((TypeError, ValueError), match=f"{name} of .*{advice}"):
            dpcore.audit(mechanism, ([0.0], [1.0]), trials=100, rng=1)


def test_outputs_that_hold_themselves_are_refused():
    cycle = []
    cycle += [cycle, cycle]
    for mechanism in (repeat(lambda x: cycle), lambda x, size, rng: [{"a": cycle}] * size):
        with pytest.raises(TypeError, match="must be objects that do not contain themselves"):
            dpcore.audit(mechanism, ([0.0], [1.0]), trials=100, rng=1)


def test_a_long_text_stays_one_object():
    assert outputs_of("outputs", ["a" * 2**17] * 2, 2).dtype == object
    assert outputs_of("outputs", ["a" * 2**12] * 2, 2).dtype.kind == "U"
