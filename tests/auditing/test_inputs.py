"""Inputs that a call would use up or change."""

from __future__ import annotations

import dataclasses
import functools
import io

import numpy as np
import pytest

import dpcore
from dpcore.pairs.differences import fingerprint_input


def noisy(x, size, rng):
    return rng.laplace(size=(size, 1))


@pytest.mark.parametrize(
    "make",
    [
        lambda: iter([1.0]),
        lambda: (one for one in [1.0]),
        lambda: io.StringIO("1"),
        lambda: [iter([1.0])],
        lambda: {"a": map(float, [1])},
    ],
)
@pytest.mark.parametrize("side", [0, 1])
def test_an_iterator_as_an_input_is_refused(make, side):
    pair = (make(), [1.0]) if side == 0 else ([1.0], make())
    name = ["x", "x_prime"][side]
    with pytest.raises(TypeError, match=f"^{name} must be an input that every call can read, not"):
        dpcore.audit(noisy, pair, trials=100, claim=1.0, rng=1)
    with pytest.raises(TypeError, match=f"^{name} must be an input that every call can read, not"):
        dpcore.audit(noisy, [dpcore.Pair(*pair), dpcore.Pair(0, 1)], trials=100, claim=1.0, rng=1)


@dataclasses.dataclass
class Data:
    rows: list


def pop_and_draw(x, size, rng):
    x.pop()
    return rng.random(size)


CHANGES = [
    (lambda: [["a"], "b"] * 500, pop_and_draw),
    (lambda: Data([1.0]), lambda x, size, rng: x.rows.append(1.0) or rng.random(size)),
    (lambda: {"a": [1.0]}, lambda x, size, rng: x["a"].clear() or rng.random(size)),
    (lambda: [np.zeros(3), "a"], lambda x, size, rng: x[0].fill(1.0) or rng.random(size)),
    (lambda: {1, 2}, lambda x, size, rng: x.clear() or rng.random(size)),
    (lambda: bytearray(b"ab"), lambda x, size, rng: x.reverse() or rng.random(size)),
    # What goes wrong later is the change's doing.
    (lambda: ["a"], pop_and_draw),
]


@pytest.mark.parametrize(("make", "mechanism"), CHANGES)
@pytest.mark.parametrize("side", [0, 1])
def test_a_mechanism_that_changes_its_input_is_named(make, mechanism, side):
    pair = (make(), None) if side == 0 else (None, make())

    def changing(given, size, rng):
        return rng.random(size) if given is None else mechanism(given, size, rng)

    shown = ["x", "x'"][side]
    with pytest.raises(ValueError, match=f"changing changes its input {shown}; copy it first"):
        dpcore.audit(changing, pair, trials=100, claim=1.0, rng=1)


class Cached:
    """An object that keeps what it has computed: not a change of what it is."""

    @functools.cached_property
    def mean(self):
        return 1.0


@pytest.mark.parametrize(
    "x", [Cached(), [np.nan, "a"], {"a": np.array([np.nan, None])}, lambda: 1, (Cached(), [1.0])]
)
def test_inputs_that_do_not_change_are_no_error(x):
    def reading(given, size, rng):
        getattr(given, "mean", None)
        return rng.random(size)

    assert dpcore.audit(reading, (x, None), trials=100, claim=1.0, rng=1).verdict


def test_what_is_large_is_not_read():
    large = [0] * 2**20 + [[1]]
    before = fingerprint_input(large)
    large[-1].append(2)
    assert fingerprint_input(large) == before
    # The control: a shorter one is.
    assert fingerprint_input([*large[:10], [1]]) != fingerprint_input([*large[:10], [2]])
