"""What the answers of a repeated function become."""

from __future__ import annotations

import numpy as np
import pytest
from shared_audits import rng

import dpcore
from dpcore.mechanisms.repeating import repeat

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


def ragged(x, rng):
    return [0.0] * int(rng.integers(1, 5))


@pytest.mark.parametrize(
    ("answers", "shapes"),
    [
        ([[1], [1, 2]], r"\(1,\) and \(2,\)"),
        ([(1,), (1, 2)], r"\(1,\) and \(2,\)"),
        ([np.zeros(3), np.zeros((3, 1)), np.zeros(4)], r"\(3,\) and \(3, 1\)"),
        ([1.5, [1.5, 2.5]], r"\(\) and \(2,\)"),
        (["a", [1.5]], r"\(\) and \(1,\)"),
    ],
)
def test_ragged_answers_name_the_function_and_both_shapes(answers, shapes):
    each = iter(answers)

    def uneven(x):
        return next(each)

    with pytest.raises(ValueError, match=rf"answers of .*uneven must be of one shape.*{shapes}"):
        repeat(uneven)(0, len(answers), rng())


def test_ragged_answers_in_an_audit():
    with pytest.raises(ValueError, match=r"answers of .*ragged must be of one shape"):
        dpcore.audit(repeat(ragged), ([0.0], [1.0]), trials=1000, rng=1)


@pytest.mark.parametrize("answer", [{}, {1}, bytearray(b"a"), ({},), [[1], [1, 2]]])
def test_answers_that_are_no_outcome(answer):
    with pytest.raises(TypeError, match=r"answers of .*lambda> must be numbers, arrays"):
        repeat(lambda x: answer)(0, 2, rng())


@pytest.mark.parametrize("answer", [{}, {1}, bytearray(b"a"), ({},), [[1], {}]])
def test_answers_that_are_no_symbol(answer):
    with pytest.raises(TypeError, match=r"answers of .*lambda> must be numbers, arrays"):
        repeat(lambda x: answer, catch=ValueError)(0, 2, rng())
