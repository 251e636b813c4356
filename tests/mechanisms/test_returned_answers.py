"""Outputs are what was returned at that moment, and an exception is one of them."""

from __future__ import annotations

import itertools
import random
import signal
import sys
import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from shared_audits import AUDITS, MOST, TRUTH, count_refutations

import dpcore
from dpcore.mechanisms.callables import Raised, repeat

PAIR = np.zeros(1), np.ones(1)
FEW = {"claim": 1.0, "trials": 2000, "rng": 1, "progress": False}


@dataclass
class Answer:
    value: float = 0.0


@dataclass
class Nested:
    rows: list[Any] = field(default_factory=lambda: [0.0])


def fill_set(held, value):
    held.clear()
    held.add(value)


def fill_byte(held, value):
    held[0] = int(np.clip(100 + value, 0, 255))


# What is filled, what is returned of it, and how it is filled.
KINDS = {
    "dict": (dict, lambda held: held, lambda held, value: held.update(v=value)),
    "dataclass": (Answer, lambda held: held, lambda held, value: setattr(held, "value", value)),
    "dataclass of a list": (
        Nested, lambda held: Nested(held.rows), lambda held, value: held.rows.__setitem__(0, value)
    ),
    "set": (set, lambda held: held, fill_set),
    "nested dict": (
        lambda: {"a": {}}, lambda held: dict(held), lambda held, value: held["a"].update(v=value)
    ),
    "tuple of an array": (
        lambda: np.zeros(2), lambda held: ("a", held), lambda held, value: held.fill(value)
    ),
    "list": (lambda: [0.0, "a"], lambda held: held, lambda held, value: held.__setitem__(0, value)),
    "bytearray": (lambda: bytearray(1), lambda held: held, fill_byte),
    "array": (lambda: np.zeros(2), lambda held: held, lambda held, value: held.fill(value)),
    "view": (lambda: np.zeros(2), lambda held: held[:], lambda held, value: held.fill(value)),
}  # fmt: skip


def make_filler(kind, shift, buffers=1):
    """Return a function that fills one of some buffers in turn and returns it."""
    make, view, fill = KINDS[kind]
    held, calls = [make() for _ in range(buffers)], [0]

    def answer(x, rng):
        calls[0] += 1
        fill(held[calls[0] % buffers], float(shift * x[0] + rng.laplace()))
        return view(held[calls[0] % buffers])

    return answer


def answer_with_own_noise(function):
    source = random.Random(5)
    return lambda x: function(x, np.random.default_rng(source.getrandbits(60)))


PLACES = {
    "repeat": repeat,
    "catch": lambda function: repeat(function, catch=ValueError),
    "own": lambda function: repeat(answer_with_own_noise(function)),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_buffer_that_is_filled_again_leaks_what_it_held(kind, place):
    leak = dpcore.audit(PLACES[place](make_filler(kind, 10.0)), PAIR, **FEW)
    assert leak.verdict == "refuted"
    assert leak.epsilon_lower > 3.0
    assert dpcore.audit(PLACES[place](make_filler(kind, 1.0)), PAIR, **FEW).verdict != "refuted"


@pytest.mark.sweep
@pytest.mark.parametrize(("kind", "place"), [*zip(KINDS, itertools.cycle(PLACES), strict=False)])
def test_a_buffer_with_the_noise_of_the_claim_is_not_refuted_too_often(kind, place):
    """200 audits at loss 1; more than MOST have a probability below 1e-4. The control loses 3."""
    assert count_refutations(PLACES[place](make_filler(kind, 1.0)), 1.0, PAIR) <= MOST
    assert count_refutations(PLACES[place](make_filler(kind, 3.0)), 1.0, PAIR) > 0.9 * AUDITS


@pytest.mark.parametrize("buffers", [2, 16, 40])
@pytest.mark.parametrize("kind", ["dict", "list", "array"])
def test_buffers_that_are_filled_in_turn(kind, buffers):
    answers = repeat(make_filler(kind, 0.0, buffers))(np.zeros(1), 100, np.random.default_rng(1))
    assert len({str(row) for row in answers}) >= 99


@pytest.mark.parametrize("kind", ["dict", "dataclass", "set", "nested dict"])
def test_rows_that_a_mechanism_fills_again(kind):
    make, _, fill = KINDS[kind]
    held = [make() for _ in range(5000)]

    def fill_rows(x, size, rng):
        for row in held[:size]:
            fill(row, float(10.0 * x[0] + rng.laplace()))
        return held[:size]

    assert dpcore.audit(fill_rows, PAIR, **FEW).verdict == "refuted"

    def fill_one(x, size, rng):
        fill(held[0], float(rng.laplace()))
        return [held[0]] * size

    with pytest.raises(ValueError, match="must be drawn anew for every row of a call"):
        dpcore.audit(fill_one, PAIR, **FEW)


def test_constants_that_many_answers_share():
    constants = (1, 2), (2, 1), {"a": 1}, [1, "a"]
    for options in (constants, constants[:2]):
        outputs = repeat(lambda x, rng, o=options: o[rng.integers(len(o))])(
            0, 10**5, np.random.default_rng(1)
        )
        assert {str(row) for row in outputs[:100].tolist()} <= {
            str(constant) for constant in (*options, *map(list, options))
        }
    shared = repeat(lambda x: constants[:1])(0, 100, np.random.default_rng(1))
    assert len(shared) == 100


class Opaque:
    value = 0.0


def test_what_cannot_be_copied_is_refused_by_name():
    held, opaque, sentinel = {"lock": threading.Lock()}, Opaque(), object()

    def answer(x, rng):
        opaque.value = rng.laplace()
        return opaque

    for name, function in (("dict", lambda x: held), ("Opaque", answer)):
        with pytest.raises(TypeError, match=f"the same {name} is returned by every call: return a"):
            repeat(function)(0, 5, np.random.default_rng(1))
    assert set(repeat(lambda x: sentinel)(0, 50, np.random.default_rng(1))) == {sentinel}


# Exceptions.


def raise_on(share, share_prime=0.0, error=ValueError):
    def answer(x, rng):
        if rng.random() < (share_prime if x[0] else share):
            raise error("no")
        return rng.laplace()

    return answer


@pytest.mark.parametrize(
    ("function", "note"),
    [
        (raise_on(1.0), "raised on x, answered on x': the caller learns which input it was; "),
        (raise_on(0.0, 1.0), "raised on x', answered on x: the caller learns which input it was; "),
        (raise_on(0.02), "raised on x, answered on x'"), (raise_on(1.0, 1.0), None),
        (raise_on(0.2, 0.2), None),
    ],
)  # fmt: skip
def test_a_failure_that_only_one_input_causes(function, note):
    def answers(x, size, rng):
        return [function(x, rng) for _ in range(size)]

    timed = {**FEW, "attack": dpcore.attacks.Timing()}
    for mechanism, options in ((repeat(function), FEW), (answers, FEW), (repeat(function), timed)):
        with pytest.raises(ValueError, match="no") as caught:
            dpcore.audit(mechanism, PAIR, **options)
        notes = "".join(getattr(caught.value, "__notes__", []))
        assert note is None and not notes if note is None else note in notes
        assert note is None or "catch=ValueError counts it as an output" in notes


def test_an_exception_is_an_output_and_its_message_is_a_text():
    def say(x):
        raise ValueError("too large" if x[0] else "too small")

    report = dpcore.audit(repeat(say, catch=ValueError), PAIR, **FEW)
    assert report.verdict == "refuted"
    assert "the message is" in str(report)
    report = dpcore.audit(repeat(raise_on(0.01, 0.2), catch=ValueError), PAIR, **FEW)
    assert report.verdict == "refuted"
    assert "raises ValueError" in str(report)
    assert "mapping" not in str(report)
    private = dpcore.audit(repeat(raise_on(0.3, 0.3), catch=ValueError), PAIR, **FEW)
    assert private.verdict != "refuted"


def raise_bit(errors):
    """Raise the error of a bit, which is that of the input with a given probability."""

    def respond(x, rng, truth):
        raise errors[int(x[0]) ^ (rng.random() >= truth)]

    return respond


# What raises or answers, and tells the bit of the input with a probability.
RAISES = {
    "raises or answers": lambda x, rng, truth: raise_on(1.0 - truth, truth)(x, rng),
    "raises seldom": lambda x, rng, truth: raise_on(0.2, 0.2 * (1.0 - truth) / truth)(x, rng),
    "message": raise_bit([ValueError("too small"), ValueError("too large")]),
    "number in the message": raise_bit([ValueError("row 1"), ValueError("row 2")]),
    "class": raise_bit([ValueError("no"), UnicodeError("no")]),
}


@pytest.mark.sweep
@pytest.mark.parametrize("name", RAISES)
def test_an_exception_with_the_loss_of_the_claim_is_not_refuted_too_often(name):
    """200 audits at loss 1; more than MOST have a probability below 1e-4. The control loses 3."""

    def count(truth):
        function = repeat(lambda x, rng: RAISES[name](x, rng, truth), catch=ValueError)
        return count_refutations(function, 1.0, PAIR)

    assert count(TRUTH) <= MOST
    assert count(0.95) > 0.9 * AUDITS


class Silent(Exception):
    def __str__(self):
        raise RuntimeError


def test_methods_and_exceptions_without_a_text():
    class Tool:
        def answer(self, x, rng):
            raise Silent

    outputs = repeat(Tool().answer, catch=Silent)(0, 2, np.random.default_rng(1))
    assert outputs.tolist() == [Raised("Silent")] * 2


CODE = """
import os, random, sys
if random.Random(os.environ["DPCORE_SEED"]).random() < float(sys.argv[1].strip("[]")):
    print("partly", flush=True)
    print("bad", end="", file=sys.stderr, flush=True)
    os.kill(os.getpid(), 9) if len(sys.argv) > 3 else sys.exit(3)
for _ in range(int(sys.argv[2])):
    print("fine")
"""


def test_exit_statuses_and_signals_are_outputs():
    tool = [sys.executable, "-S", "-E", "-c", CODE, "{x}", "{size}"]
    caught = dpcore.command(tool, catch=3)
    outputs = caught(np.full(1, 0.5), 12, np.random.default_rng(1))
    assert set(outputs) == {"fine", Raised("exit status 3", "partly\nbad")}
    killed = dpcore.command([*tool, "kill"], catch=(3, signal.SIGKILL))
    assert killed.catch == (3, -9)
    assert "catch=(3, -9)" in repr(killed)
    assert killed(np.ones(1), 1, np.random.default_rng(1)) == [Raised("signal 9", "partly\nbad")]
    with pytest.raises(RuntimeError) as error:
        dpcore.audit(dpcore.command(tool), PAIR, **FEW)
    note = "raised on x', answered on x: the caller learns which input it was; catch=3 counts it"
    assert note in error.value.__notes__[0]
    report = dpcore.audit(caught, (np.full(1, 0.1), np.ones(1)), **FEW | {"trials": 40})
    assert report.verdict == "refuted"
    assert "exit status 3" in str(report)
    for wrong in (0, True, "3", (3, None)):
        with pytest.raises(TypeError, match="catch must be an exit status other than 0"):
            dpcore.command(tool, catch=wrong)
