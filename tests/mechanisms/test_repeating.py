"""`repeat`: the law, the arrays that answers become, seeds; and wrong calls of mechanisms."""

from __future__ import annotations

import functools
import math
import pickle
import random
import sys
from functools import partial

import numpy as np
import pytest
from scipy import stats
from shared_audits import rng
from shared_messages import check_messages

import dpcore
from dpcore import mechanisms
from dpcore.events import Vote
from dpcore.mechanisms.answers import to_outputs
from dpcore.mechanisms.callables import Raised, Repeated, repeat
from dpcore.published import (
    ADePT,
    ADePTReference,
    ADePTScaled,
    DPText,
    HalvedOutput,
    LaplaceMechanism,
)

ALPHA = 1e-6
"""Significance of every test of a law; seeds are fixed, so a pass stays one."""

SIZE = 200_000
VOTE = dpcore.attacks.MajorityVote()


def noisy(x, rng):
    return x[0] + rng.laplace(scale=2.0)


def noisy_many(x, size, rng):
    return x[0] + rng.laplace(scale=2.0, size=size)


def noisy_named(x, scale=2.0, *, rng):
    return x[0] + rng.laplace(scale=scale)


def old_style(x):
    return x + np.random.laplace(scale=2.0)  # noqa: NPY002


def sides(x):
    return x + random.choice((-1.0, 1.0)) * random.expovariate(0.5)


class Hidden:
    """A callable without a readable signature, as some compiled ones are."""

    __signature__ = "none"

    def __call__(self, x, rng):
        return x + rng.laplace()


def ks(outputs, scale):
    return stats.kstest(outputs, stats.laplace(scale=scale).cdf).pvalue


# The law, and the same bits as a vectorised twin.


@pytest.mark.parametrize("fn", [noisy, noisy_named, functools.partial(noisy_named, scale=2.0)])
def test_a_loop_draws_the_bits_of_its_vectorised_twin(fn):
    looped = repeat(fn)([5.0], 1000, rng())
    assert np.array_equal(looped, noisy_many([5.0], 1000, rng()))
    assert not np.array_equal(looped, noisy_many([5.0], 1000, rng(2)))


@pytest.mark.parametrize("fn", [old_style, sides])
def test_functions_of_the_global_generators_have_their_law(fn):
    outputs = repeat(fn, seeded="global")(0.0, SIZE, rng())
    assert ks(outputs, 2.0) > ALPHA
    # The control: 5 % off in the scale is seen.
    assert ks(outputs, 2.1) < ALPHA


def test_an_audit_of_the_loop_counts_what_an_audit_of_its_twin_counts():
    options = {"trials": 3000, "claim": 0.5, "rng": 1, "block": 1000, "attack": VOTE}
    pair = dpcore.Pair([0.0], [1.0])
    one = dpcore.audit(repeat(noisy), pair, **options)
    twin = dpcore.audit(noisy_many, pair, **options)
    assert (one.counts, one.event) == (twin.counts, twin.event)
    assert one.verdict == "not refuted by this attack"
    assert dpcore.audit(repeat(noisy), pair, **{**options, "rng": 2}).counts != one.counts


def test_every_output_is_one_call():
    calls = []

    def count(x, rng):
        calls.append(x)
        return len(calls)

    assert repeat(count)("input", 5, rng()).tolist() == [1, 2, 3, 4, 5]
    assert calls == ["input"] * 5


# Where the randomness comes from.


@pytest.mark.parametrize(
    ("fn", "expected"),
    [
        (lambda x: x, "own"), (lambda x=0: x, "own"), (lambda x, scale=1.0: x, "own"),
        (lambda rng: rng, "own"), (lambda x, **options: x, "own"), (lambda x, rng: x, "rng"),
        (lambda x, rng=None: x, "rng"), (lambda x, generator: x, "rng"),
        (lambda x, generator, *rest: x, "rng"), (lambda x, *, rng: x, "rng"),
        (lambda x, scale=1.0, rng=None: x, "rng"), (noisy_many.__get__([0.0]), "rng"),
        (math.sqrt, "own"),
    ],
)  # fmt: skip
def test_the_signature_says_where_the_generator_goes(fn, expected):
    assert repeat(fn).seeded == expected
    assert repeat(fn).reproducible is (expected == "rng")


@pytest.mark.parametrize(
    "fn", [lambda x, rng=None: rng, lambda x, other: other, lambda x, b=1, rng=None: rng]
)
def test_the_generator_arrives(fn):
    generator = rng()
    # A generator is a symbol like any object.
    assert list(repeat(fn)(0, 2, generator)) == [generator, generator]


def test_an_explicit_seeding_wins_over_the_signature():
    optional = repeat(lambda x, rng=None: rng, seeded="own")
    assert list(optional(0, 2, rng())) == [None, None]
    assert not optional.reproducible
    generator = rng()
    second = repeat(lambda x, source=None: source, seeded="rng")
    assert list(second(0, 1, generator)) == [generator]
    assert second.reproducible
    counted = repeat(lambda *arguments: len(arguments), seeded="rng")
    assert counted(0, 1, generator).tolist() == [2]
    assert np.array_equal(repeat(Hidden(), seeded="rng")(0.0, 3, rng()), rng().laplace(size=3))


def test_globals_are_seeded_from_the_generator_and_put_back():
    mechanism = repeat(lambda x: (random.random(), np.random.normal()), seeded="global")  # noqa: NPY002
    np.random.seed(7)  # noqa: NPY002
    random.seed(7)
    # One normal of a pair is waiting inside the global generator.
    np.random.normal()  # noqa: NPY002
    state = random.getstate(), np.random.get_state(legacy=False)  # noqa: NPY002
    assert state[1]["has_gauss"] == 1
    bits = np.random.get_bit_generator()
    first = mechanism(0, 3, rng())
    assert random.getstate() == state[0]
    assert repr(np.random.get_state(legacy=False)) == repr(state[1])  # noqa: NPY002
    assert np.random.get_bit_generator() is bits
    assert np.array_equal(first, mechanism(0, 3, rng()))
    assert not np.isin(first, mechanism(0, 3, rng(2))).any()
    assert len(np.unique(first)) == first.size

    # After an exception too.
    def fail(x):
        raise RuntimeError(f"inside: {random.random()}")

    with pytest.raises(RuntimeError, match="inside"):
        repeat(fail, seeded="global")(0, 3, rng())
    assert random.getstate() == state[0]


def test_a_bit_generator_that_cannot_be_seeded_anew_is_kept():
    mine = np.random.get_bit_generator()
    other = np.random.PCG64(1)
    np.random.set_bit_generator(other)
    try:
        repeat(old_style, seeded="global")(0.0, 3, rng())
        assert np.random.get_bit_generator() is other
    finally:
        np.random.set_bit_generator(mine)


# Exceptions.


def fragile(x, rng):
    noise = x + rng.laplace()
    if noise < -1.0:
        raise ValueError(f"negative: {noise}")
    if noise > 3.0:
        raise KeyError(noise)
    return noise


def test_caught_exceptions_are_symbols_and_every_draw_counts():
    outputs = repeat(fragile, catch=(ValueError, KeyError))(0.0, 2000, rng())
    twin = rng().laplace(size=2000)
    assert (outputs.shape, outputs.dtype) == ((2000,), object)
    assert raised(outputs).tolist() == (twin < -1.0).tolist()
    assert raised(outputs, "KeyError").tolist() == (twin > 3.0).tolist()
    assert outputs[twin < -1.0][0] == Raised("ValueError", f"negative: {twin[twin < -1.0][0]}")
    kept = [v for v in outputs if not isinstance(v, Raised)]
    assert kept == twin[(twin >= -1.0) & (twin <= 3.0)].tolist()
    assert all(type(v) is float for v in kept)


def raised(outputs, name="ValueError"):
    return np.array([isinstance(v, Raised) and v.name == name for v in outputs])


def test_an_audit_counts_exceptions():
    mechanism = repeat(fragile, catch=(ValueError, KeyError))
    options = {"trials": 4000, "claim": 1.9, "rng": 1}
    counts = dpcore.audit(mechanism, (0.0, 2.0), attack=lambda *_: raised, **options).counts
    assert counts.n == counts.n_prime == 4000
    # P(x + Lap(1) < -1) is e^-1 / 2 at 0 and e^-3 / 2 at 2.
    for k, p in ((counts.k, math.exp(-1) / 2), (counts.k_prime, math.exp(-3) / 2)):
        assert stats.binomtest(k, 4000, p).pvalue > ALPHA
        assert stats.binomtest(k, 4000, 2.0 * p).pvalue < ALPHA


def test_other_exceptions_pass_through_untouched():
    def fail(x):
        raise LookupError("mine")

    for catch in ((), (ValueError,)):
        with pytest.raises(LookupError) as caught:
            repeat(fail, catch=catch)(0, 2, rng())
        assert caught.value.args == ("mine",)


def test_symbols_may_be_mappings_and_heirs_of_what_is_caught_which_keep_their_names():
    assert repeat(lambda x: [{"a": 1}], catch=ValueError)(0, 1, rng()).tolist() == [[{"a": 1}]]
    keyed = repeat(lambda x: {}[x], catch=LookupError)
    assert keyed(0, 2, rng()).tolist() == [Raised("KeyError", "0")] * 2


def test_with_catch_all_answers_are_what_was_returned():
    answers = [0.5, np.float32(1.0), [1, [2]], "a", None, (np.int64(1), math.nan), {1}]
    each = iter(answers)
    outputs = repeat(lambda x: next(each), catch=ValueError)(0, 7, rng())
    assert outputs.dtype == object
    assert outputs.tolist() == answers
    assert [type(v) for v in outputs] == [type(v) for v in answers]
    scalar = repeat(lambda x: np.float64(0.5), catch=ValueError)(0, 1, rng())[0]
    assert type(scalar) is float


def test_raised_is_a_symbol():
    one, two = Raised("KeyError"), Raised("ValueError")
    assert (one == Raised("KeyError"), one == two, one == "KeyError") == (True, False, False)
    assert len({one, two, Raised("KeyError")}) == 2
    assert sorted([two, one]) == [one, two]
    assert sorted([two, 1.5, one, "a"], key=repr) == ["a", 1.5, one, two]
    assert pickle.loads(pickle.dumps(one)) == one


# The mechanism as an object, and bad arguments.


def test_a_repeated_function_can_be_pickled():
    mechanism = repeat(noisy, catch=ValueError)
    again = pickle.loads(pickle.dumps(mechanism))
    assert (again, hash(again)) == (mechanism, hash(mechanism))
    assert np.array_equal(again([0.0], 5, rng()), mechanism([0.0], 5, rng()))
    assert mechanism != repeat(noisy)


def test_it_says_what_it_is():
    mechanism = repeat(noisy)
    assert isinstance(mechanism, Repeated)
    assert repr(mechanism) == mechanism.name == "repeat(test_repeating.noisy)"
    assert mechanism.thread_safe is False
    assert repeat(noisy, thread_safe=True).thread_safe is True
    with pytest.raises(ValueError, match="threads must be 1"):
        dpcore.audit(mechanism, ([0.0], [1.0]), trials=10, threads=2)


def test_threads_count_what_one_thread_counts():
    mechanism = repeat(noisy, thread_safe=True)
    options = {"trials": 2000, "rng": 1, "block": 100, "claim": 0.5, "attack": VOTE}
    one, two = (dpcore.audit(mechanism, ([0.0], [1.0]), threads=t, **options) for t in (1, 2))
    assert one.counts == two.counts
    assert isinstance(one.event, Vote)


# What answers become.


@pytest.mark.parametrize(
    ("answers", "dtype", "shape"),
    [
        ([1.5, 2.5], "f", (2,)), ([1, 2], "i", (2,)), ([True, False], "b", (2,)),
        ([np.float32(1.0), 2.0], "O", (2,)), ([[1, 2], [3, 4]], "i", (2, 2)),
        ([(1, 2), (3.0, 4.0)], "O", (2,)), ([np.zeros(3), [1, 2, 3]], "O", (2,)),
        ([(1, 2.0), (3, 4.0)], "f", (2, 2)), ([np.float64(1.0), 2.0], "f", (2,)),
        ([np.zeros(()), 1.0], "O", (2,)), ([np.zeros((2, 3)), np.ones((2, 3))], "f", (2, 2, 3)),
        (["a", "b\0"], "O", (2,)), ([None, 1.5], "O", (2,)), ([1, "1"], "O", (2,)),
        ([("a", 1), ("b", 2)], "O", (2,)), ([(1, 2), (1, None)], "O", (2,)),
        ([["a", 1], ["b\0", 2]], "O", (2, 2)), ([2**63, -1], "O", (2,)), ([2**70, 1], "O", (2,)),
    ],
)  # fmt: skip
def test_answers_become_an_array(answers, dtype, shape):
    each = iter(answers)
    outputs = repeat(lambda x: next(each))(0, len(answers), rng())
    assert (outputs.dtype.kind, outputs.shape) == (dtype, shape)
    if dtype == "O" and len(shape) == 1:
        assert list(map(type, outputs)) == list(map(type, answers))
        assert list(map(repr, outputs)) == list(map(repr, answers))
    else:
        assert np.array_equal(outputs, np.array([np.array(a, dtype=dtype) for a in answers]))


@pytest.mark.parametrize(
    "answers",
    [
        [[1], [1, 2]], [(1,), (1, 2)], [np.zeros(3), np.zeros((3, 1)), np.zeros(4)],
        [1.5, [1.5, 2.5]], ["a", [1.5]], [{"a": 43}, {"a": 43}], [{1}, {2}],
        [[[1], [1, 2]], [[1], [1, 2]]], [({},), ({},)],
    ],
)  # fmt: skip
def test_answers_without_a_common_shape_are_one_output_each(answers):
    each = iter(answers)
    outputs = repeat(lambda x: next(each))(0, len(answers), rng())
    assert outputs.shape == (len(answers),)
    assert str(outputs.tolist()) == str(answers)


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
    assert to_outputs("outputs", ["a" * 2**17] * 2, 2).dtype == object
    assert to_outputs("outputs", ["a" * 2**12] * 2, 2).dtype.kind == "U"


# Messages of wrong calls of `dpcore.mechanisms`: the argument, and a word of the remedy.


IN_RANGE = "a finite number above 0 and at most 1e+300, got "

VALUE_ERRORS = [
    # Native noise and published systems.
    (lambda: LaplaceMechanism(0.0), "epsilon", f"{IN_RANGE}0.0"),
    (lambda: ADePT(1.0, np.nan), "clip", f"{IN_RANGE}nan"),
    (lambda: ADePTReference(-1), "epsilon", f"{IN_RANGE}-1"),
    (lambda: LaplaceMechanism(1e-200, 1e200), "noise scale sensitivity / epsilon", IN_RANGE),
    (lambda: HalvedOutput(1e200, 1e-200), "noise scale sensitivity / epsilon", f"{IN_RANGE}0.0"),
    (lambda: ADePTScaled(1.0, 4e299).steps(4), "noise scale 2 clip sqrt(dim) / epsilon",
     f"{IN_RANGE}1.6e+300"),
    (lambda: mechanisms.Laplace(2e300), "scale", f"{IN_RANGE}2e+300"),
    (lambda: mechanisms.Exponential(0), "scale", f"{IN_RANGE}0"),
    (lambda: mechanisms.DPTextNoise(-math.inf), "scale", f"{IN_RANGE}-inf"),
    (lambda: mechanisms.Laplace(10**400), "scale", IN_RANGE),
    (lambda: mechanisms.Gaussian(np.float64(np.nan)), "sigma", f"{IN_RANGE}nan"),
    (lambda: mechanisms.ClipStep("l2", 0.0), "radius", f"{IN_RANGE}0.0"),
    (lambda: mechanisms.Formula(mechanisms.Laplace(1.0), factor=0.0), "factor", f"{IN_RANGE}0.0"),
    (lambda: mechanisms.Laplace(1.0, "three"), "variant", "one of 'two_branch', 'sign', 'centred'"),
    (lambda: DPText(1.0, nan="drop"), "nan", "one of 'zero', 'resample', 'keep', got 'drop'"),
    (lambda: mechanisms.ClipStep("linf", 1.0), "norm", "one of 'l1', 'l2', got 'linf'"),
    (lambda: mechanisms.Uniform(1.0, 1.0), "low", "below high = 1.0, got 1.0"),
    (lambda: mechanisms.Uniform(-1e301, 1.0), "low", "at least -1e+300 and at most 1e+300"),
    (lambda: LaplaceMechanism(1.0).default_pair(0), "dim", "an integer at least 1, got 0"),
    # Commands as mechanisms: tools in any language, what they read and write, and how they fail.
    (lambda: dpcore.command([]), "command", "a list of texts, the program"),
    (lambda: dpcore.command([sys.executable, "{size}"]), "command", "with {x} in an argument"),
    (lambda: dpcore.command([sys.executable, "{x}"]), "command", "with {size} in an argument"),
    (lambda: dpcore.command(["{x}{size}"]), "command", "with {x} in an argument"),
    (lambda: dpcore.command(["no-such-program", "{x}", "{size}"]), "command", "on the PATH"),
    (lambda: dpcore.command([sys.executable, "a\0", "{x}", "{size}"]), "command", "a list"),
    # `repeat`: the law, the arrays that answers become, symbols, seeds, and complaints.
    (lambda: repeat(lambda: 0), "fn", "fn(x) or fn(x, rng)"),
    (lambda: repeat(noisy_many), "fn", "noisy_many(x, size, rng)"),
    (lambda: repeat(lambda x, *, other: 0), "fn", "fn"),
    (lambda: repeat(lambda *args: 0), "seeded", "one of"),
    (lambda: repeat(lambda *args, **options: 0), "seeded", "one of"),
    (lambda: repeat(Hidden()), "seeded", "shows no signature"),
    (lambda: repeat(noisy, seeded="own"), "fn", "one that seeded='own' can call"),
    (lambda: repeat(noisy, seeded="global"), "fn", "one that seeded='global' can call"),
    (lambda: repeat(lambda x: 0, seeded="rng"), "fn", "one that seeded='rng' can call"),
    (lambda: repeat(noisy, seeded="seed"), "seeded", "one of 'rng', 'global', 'own'"),
    (lambda: repeat(old_style, seeded="global", thread_safe=True), "thread_safe", "False"),
    *((partial(dpcore.command, [sys.executable, "{x}", "{size}"], timeout=seconds), "timeout",
       "a finite number above 0") for seconds in (0, -1.0, math.inf, math.nan)),
]  # fmt: skip
TYPE_ERRORS = [
    # Native noise and published systems.
    (lambda: LaplaceMechanism("1"), "epsilon", f"{IN_RANGE}'1'"),
    (lambda: DPText(1.0, True), "sensitivity", f"{IN_RANGE}True"),
    (lambda: mechanisms.DPTextNoise(None), "scale", f"{IN_RANGE}None"),
    (lambda: mechanisms.Gaussian(1j), "sigma", f"{IN_RANGE}1j"),
    (lambda: mechanisms.DPTextNoise(1.0, 0), "nan", "one of 'zero', 'resample', 'keep', got 0"),
    (lambda: LaplaceMechanism(1.0).default_pair(1.0), "dim", "an integer at least 1, got 1.0"),
    (lambda: mechanisms.Formula(1.0), "noise", "one of dpcore's primitives, got 1.0"),
    (lambda: mechanisms.Formula(mechanisms.Laplace(1.0), clip=1.0), "clip", "a ClipStep or None"),
    # Commands as mechanisms: tools in any language, what they read and write, and how they fail.
    (lambda: dpcore.command("node tool.js {x} {size}"), "command", "a list of texts, the program"),
    (lambda: dpcore.command(["node", 1, "{x}", "{size}"]), "command", "a list of texts"),
    # `repeat`: the law, the arrays that answers become, symbols, seeds, and complaints.
    (lambda: repeat(1.5), "fn", "a callable"),
    (lambda: repeat(noisy, seeded=1), "seeded", "one of"),
    (lambda: repeat(noisy, catch=KeyboardInterrupt), "catch", "a subclass of Exception"),
    (lambda: repeat(noisy, catch=(ValueError, 1)), "catch", "a subclass of Exception"),
    (lambda: repeat(noisy, thread_safe=1), "thread_safe", "True or False"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
