"""Mechanisms that keep a state from call to call: it must not distinguish x from x'."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy.stats import binomtest
from shared_randomness import audited, noise

import dpcore
from dpcore import Pair
from dpcore.mechanisms.callables import rows_of_one_call
from dpcore.sampling import sources
from dpcore.sampling.sources import CallableDraws, Place
from dpcore.streams import COUNT, PILOT

PAIR, CLAIM, STATE_AUDITS = Pair([0.0], [1.0]), 0.1, 200
LEVEL = 0.05
"""Of the audits: they have 95 % confidence."""


class Stateful:
    """Laplace noise whose location depends on the number of calls, or of answers, so far."""

    def __init__(self, location, own=False, leak=0.0):
        self.location, self.own, self.leak = location, np.random.default_rng(7), leak
        self.draws_own, self.calls = own, 0

    def __call__(self, x, size, rng):
        self.calls += 1
        noise = (self.own if self.draws_own else rng).laplace(size=size)
        return self.location(self.calls) + self.leak * x[0] + noise

    def answer(self, x, rng):
        return float(self(x, 1, rng)[0])


def warm_up(last, calls):
    return 5.0 * (calls <= last)


def drift(step, calls):
    return step * calls


def alternate(calls):
    return float(calls % 2)


def one_by_one(location, **more):
    return dpcore.repeat(Stateful(location, **more).answer)


LENGTHS = np.random.default_rng(3).integers(1, 60, STATE_AUDITS).tolist()
ANSWERS = np.random.default_rng(4).integers(1, 2400, STATE_AUDITS).tolist()
PRIVATE = {
    "warm-up": lambda i: Stateful(partial(warm_up, LENGTHS[i])),
    "warm-up, own randomness": lambda i: Stateful(partial(warm_up, LENGTHS[i]), own=True),
    "warm-up, one by one": lambda i: one_by_one(partial(warm_up, ANSWERS[i])),
    "slow drift": lambda i: Stateful(partial(drift, 0.02)),
    "drift": lambda i: Stateful(partial(drift, 0.2)),
    "drift, one by one": lambda i: one_by_one(partial(drift, 1e-3)),
    "alternating": lambda i: Stateful(alternate),
    "alternating, one by one": lambda i: one_by_one(alternate),
}


def count_refuted(make, audits=STATE_AUDITS):
    options = {"claim": CLAIM, "trials": 1000}
    found = (dpcore.audit(make(s), PAIR, rng=50_000 + s, **options) for s in range(audits))
    return sum(report.refuted is True for report in found)


def exceeds_level(refuted, audits=STATE_AUDITS):
    return binomtest(refuted, audits, LEVEL, alternative="greater").pvalue < 1e-3


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore::dpcore.errors.AssumptionWarning")
@pytest.mark.parametrize("kind", PRIVATE)
def test_a_private_mechanism_with_a_state_is_refuted_no_more_often_than_the_level(kind):
    """Measured: 1, 0, 0, 0, 0, 0, 0, 0 of 200.

    With all calls on x before those on x': 1, 2, 8, 0, 8, 174, 200, 0.
    """
    assert not exceeds_level(count_refuted(PRIVATE[kind]))


@pytest.mark.filterwarnings("ignore::dpcore.errors.AssumptionWarning")
def test_the_order_is_what_protects_it(monkeypatch):
    """The control: with x always the first the same test finds what alternates."""
    monkeypatch.setattr(sources, "_draw_orders", lambda rng, turns: [(0, 1)] * turns)
    assert exceeds_level(count_refuted(PRIVATE["alternating"], 40), 40)


@pytest.mark.parametrize("make", [Stateful, one_by_one])
def test_a_leak_is_refuted_whatever_state_there_is(make):
    step = 1e-3 if make is Stateful else 1e-5
    assert count_refuted(lambda _: make(partial(drift, step), leak=1.0), 20) == 20


class Calls:
    """Notes the side and the size of each call."""

    def __init__(self):
        self.made = []

    def __call__(self, x, size, rng):
        self.made.append((int(x[0]), size))
        return x[0] + rng.laplace(size=size)


def draw_sides(mechanism, seed, purpose, blocks, in_pieces=False, rows=100):
    draws = CallableDraws(mechanism, PAIR, seed, rows, (), in_pieces=in_pieces)
    places = (Place(number, rows, 0, rows) for number in range(blocks))
    return [dict(draws.draw_block_by_side(purpose, place)) for place in places]


def test_the_calls_of_a_block_follow_each_other_and_the_seed_draws_the_first():
    orders = {}
    for seed, purpose in ((1, COUNT), (2, COUNT), (1, PILOT)):
        calls = Calls()
        draw_sides(calls, seed, purpose, 40)
        firsts = [calls.made[2 * block][0] for block in range(40)]
        # Both sides of each block, and of two blocks one begins with x and one with x'.
        assert all({*calls.made[2 * b : 2 * b + 2]} == {(0, 100), (1, 100)} for b in range(40))
        assert all(sum(firsts[b : b + 2]) == 1 for b in range(0, 40, 2))
        orders[seed, purpose] = tuple(firsts)
    assert len(set(orders.values())) == 3


def test_draws_are_those_of_each_side_by_itself():
    """Whatever comes first, and whether calls take turns."""
    for mechanism in (Calls(), dpcore.repeat(lambda x, rng: x[0] + rng.laplace())):
        draws = CallableDraws(mechanism, PAIR, 5, 100, ())
        for number, sides in enumerate(draw_sides(mechanism, 5, COUNT, 6)):
            for side in (0, 1):
                alone = draws.draw(COUNT, side, Place(number, 100, 0, 100))
                np.testing.assert_array_equal(sides[side], alone)


def test_a_mechanism_with_its_own_randomness_is_called_in_pieces():
    calls = Calls()
    (sides,) = draw_sides(calls, 5, COUNT, 1, in_pieces=True, rows=3000)
    assert sum(size for side, size in calls.made if side) == 3000 == len(sides[1])
    assert len(calls.made) == 32
    assert all({side for side, _ in calls.made[2 * i : 2 * i + 2]} == {0, 1} for i in range(16))


def test_answers_on_two_inputs_take_turns():
    seen = []

    def answer(x, rng):
        seen.append(int(x[0]))
        return rng.random()

    draw_sides(dpcore.repeat(answer), 1, COUNT, 1)
    runs = np.diff(np.flatnonzero(np.diff([-1, *seen, -1])))
    assert seen.count(0) == seen.count(1) == 100
    # Turns of 8, of which two with the same input may follow each other.
    assert runs.max() <= 16


# A buffer that is returned again and filled again changes nothing.


class Buffer:
    """Noise in one array for each size, which is filled again in every call."""

    def __init__(self, kind="array"):
        self.kind, self.kept = kind, {}

    def __call__(self, x, size, rng):
        width = 2 if self.kind == "view" else 1
        shape = (size + 3, width) if self.kind == "view" else (size, 1)
        buffer = self.kept.setdefault(size, np.empty(shape))
        buffer[:size, :1] = noise(x, size, rng)
        if self.kind == "memory":
            return np.frombuffer(memoryview(buffer)).reshape(size, 1)
        if self.kind == "subclass":
            return buffer.view(np.matrix)
        return buffer[:size, :1] if self.kind == "view" else buffer


KINDS = ["array", "view", "memory", "subclass"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stop", ["fixed", "refuted"])
def test_a_buffer_filled_again_changes_nothing(kind, stop):
    options = {"attack": "auto", "stop": stop, "block": 256, "trials": 4096, "claim": 1.5}
    assert audited(Buffer(kind), **options).counts == audited(noise, **options).counts


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_are_ours_alone(kind):
    buffer, rng = Buffer(kind), np.random.default_rng(1)
    first = rows_of_one_call(buffer, [0.0], 8, rng)
    before = first.copy()
    assert not any(np.shares_memory(first, array) for array in buffer.kept.values())
    rows_of_one_call(buffer, [0.0], 8, rng)
    assert np.array_equal(first, before)


def test_what_the_caller_keeps_is_copied_and_what_is_fresh_is_not():
    kept_arrays, addresses = [], []

    def keeping(x, size, rng):
        kept_arrays.append(noise(x, size, rng))
        return kept_arrays[-1]

    def fresh(x, size, rng):
        outputs = rng.normal(size=size)
        addresses.append(outputs.ctypes.data)
        return outputs[:, np.newaxis]

    rng = np.random.default_rng(1)
    outputs = rows_of_one_call(keeping, [0.0], 8, rng)
    assert np.array_equal(outputs, kept_arrays[0])
    assert not np.shares_memory(outputs, kept_arrays[0])
    assert rows_of_one_call(fresh, [0.0], 8, rng).ctypes.data == addresses[0]
