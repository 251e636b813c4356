"""Rubbish in: a ValueError or a TypeError comes out, or a result, and soon.

Never another exception, a panic of the core, a hang or a crash. (Sizes between what is quick and
what no machine can hold are left out: an honest MemoryError would be the answer.)
"""

from __future__ import annotations

import contextlib
import math
import time
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st
from shared_audits import count_again
from shared_examples import examples

import dpcore
from dpcore import Counts, Laplace, Pair, attacks, bounds, events, exact, pairs, published
from dpcore.mechanisms import ClipStep, Formula
from dpcore.mechanisms.declarations import NATIVE
from dpcore.published import SYSTEMS

SECONDS = 5.0
"""Of the processor, for one call; the longest takes a few milliseconds."""


class Hostile:
    """An object that raises wherever it is asked about itself."""

    def __repr__(self):
        raise RuntimeError("no repr")

    def __eq__(self, other):
        raise ValueError("no comparison")

    __hash__ = None

    def __bool__(self):
        raise ValueError("no truth")

    def __len__(self):
        raise TypeError("no length")


class Subclass(float):
    pass


NUMBERS = [
    0, 1, 2, 3, -1, 2**31, 2**53, 2**62, 2**63, 2**64, -(2**63), 10**400,
    0.0, -0.0, 0.5, 1.0, 1e-320, 1e-300, 1e300, 1.1e300, 1.7e308, -1.5, math.inf, -math.inf,
    math.nan, True, False, 1j, Fraction(1, 3), Decimal("0.1"), Subclass(1.0),
    np.float64(1.0), np.float32(0.1), np.float16("inf"), np.int8(-1), np.uint64(2**64 - 1),
    np.bool_(True), np.longdouble("1e4000"), np.datetime64("2020"), np.complex64(1j),
]  # fmt: skip
OBJECTS = [
    None, "", "a", "1", "1e8", "1e999999999", "nan", "inf", "l1", "x", "zero", "\ud800", b"1", (),
    [], {}, set(), [None], ["a"], [[1.0], [1.0, 2.0]], [1.0, 2.0], (0.0, 1.0), [math.nan],
    [10**400], [10**400, 1.0], range(3), Ellipsis, NotImplemented, object(), Hostile(), float, len,
    Laplace, Laplace(1.0), lambda *a, **k: None, Pair([0.0], [1.0]), Counts(1, 2, 0, 2),
    {"event": "Vote"}, events.Vote([0.5], [1.0]), published.ADePT(1.0), "f8", "f8,(3",
]  # fmt: skip
ARRAYS = [
    np.array(1.0), np.zeros(0), np.zeros(3), np.ones(2), np.ones((2, 2)), np.zeros((0, 1)),
    np.array([math.inf]), np.array([1.7e308, -1.7e308]), np.zeros(3, np.int64),
    np.zeros(3, np.float32), np.zeros(3, np.complex128), np.array(["a"]), np.array([None]),
    np.zeros(3, ">f8"), np.zeros(6)[::2], np.zeros((2, 1)).T, np.zeros(2, [("a", "f8")]),
    np.ma.masked_array([1.0], mask=[True]), np.zeros(100_000), np.array([5e-324, -5e-324]),
    np.random.default_rng(1), np.dtype("f8"), np.zeros(2, bool),
]  # fmt: skip

JUNK = st.sampled_from([*NUMBERS, *OBJECTS, *ARRAYS]) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner),
    max_leaves=5,
)

SAMPLED = [
    Laplace(1.0), dpcore.Gaussian(1.0), dpcore.DPTextNoise(1.0, "keep"), published.ADePT(1.0),
]  # fmt: skip
ARGUMENTS = [
    "mechanism", "pair", "attack", "trials", "start", "claim", "delta", "confidence", "bound",
    "stop", "floats", "pilot", "rng", "route", "block", "threads", "executor", "progress",
]  # fmt: skip
VOTE = attacks.MajorityVote()
REPORT = dpcore.audit(Laplace(1.0), trials=200, rng=1, attack=VOTE)
CASES = {
    "sample": (dpcore.sample, {"mech": Laplace(1.0), "x": [0.0], "size": 3},
     ["mech", "x", "size", "rng", "out", "dtype", "threads"]),
    "audit": (dpcore.audit, {"mechanism": Laplace(1.0), "trials": 200}, ARGUMENTS),
    "audit of votes": (dpcore.audit, {"mechanism": Laplace(1.0), "trials": 200, "attack": VOTE},
     [name for name in ARGUMENTS if name != "attack"]),
    "audit with early stop": (dpcore.audit,
     {"mechanism": Laplace(1.0), "trials": 200, "stop": "refuted", "claim": 1.0},
     ["pair", "attack", "claim", "delta", "confidence", "bound", "pilot", "block"]),

    "audit of a callable": (dpcore.audit,
     {"mechanism": lambda x, size, rng: rng.random((size, 1)), "trials": 200},
     ["pair", "attack", "start", "claim", "block", "threads", "route", "executor", "pilot"]),
    "merge": (REPORT.merge, {"other": REPORT}, ["other", "looked"]),
    "outputs": (REPORT.outputs, {"side": "x", "start": 0, "size": 3}, ["side", "start", "size"]),
    "epsilon_lower_at": (REPORT.epsilon_lower_at, {}, ["delta"]),
    "Pair": (Pair, {"x": 1, "x_prime": 2}, ["x", "x_prime", "distance"]),
    "Counts": (Counts, {"k": 1, "n": 2, "k_prime": 1, "n_prime": 2},
     ["k", "n", "k_prime", "n_prime"]),
    "Clip": (ClipStep, {"norm": "l1", "radius": 1.0}, ["norm", "radius"]),
    "Formula": (Formula, {"noise": Laplace(1.0)}, ["noise", "clip", "factor"]),
    "Vote": (events.Vote, {"threshold": [0.5], "towards": [1.0]}, ["threshold", "towards", "vote"]),
    "Vote()": (events.Vote([0.5, 0.5], [1.0, -1.0]), {}, ["outputs"]),
    "Vote.from_dict": (events.Vote.from_dict, {}, ["record"]),
    "zeros_ones": (pairs.zeros_ones, {}, ["dim"]),
    "distance": (pairs.distance, {"pair": Pair([0.0], [1.0]), "norm": "l1"}, ["norm"]),
    "clopper_pearson": (bounds.clopper_pearson, {"counts": Counts(1, 2, 0, 2)},
     ["delta", "confidence"]),
    "limits": (bounds.limits, {"k": 1, "n": 2, "alpha": 0.1}, ["k", "n", "alpha"]),
    "named": (attacks.named, {}, ["name"]),
    "choose": (attacks.choose, {"counts": Counts(1, 2, 0, 2)}, ["confidence", "delta"]),
    "vote_loss": (exact.vote_loss, {"mechanism": Laplace(1.0), "pair": Pair([0.0], [1.0])},
     ["mechanism"]),
    "from_json": (dpcore.Audit.from_json, {}, ["text"]),
    "from_dict": (dpcore.Audit.from_dict, {}, ["record"]),
}  # fmt: skip
START = {"scale": 1.0, "sigma": 1.0, "epsilon": 1.0, "low": 0.0, "high": 1.0}
for _cls in NATIVE.values():
    if _fields := list(_cls.__dataclass_fields__):
        CASES[_cls.__name__] = (_cls, {n: START[n] for n in START if n in _fields}, _fields)
CASES |= {f"{cls.__name__}.default_pair": (cls(1.0).default_pair, {}, ["dim"]) for cls in SYSTEMS}

WORK = {"size": 2**59, "trials": 2**63, "pilot": math.inf, "dim": 2**60}
"""From a million to here a number asks for work, or for memory, and gets it: not rubbish."""


def asks_for_work(name, value):
    end = WORK.get(name)
    if end is None:
        return False
    if isinstance(value, str):
        try:
            value = Decimal(value)
        except ArithmeticError:
            return False
        return value.is_finite() and 10**6 < value < end
    return isinstance(value, (int, float, np.integer)) and 10**6 < value < end


@contextlib.contextmanager
def answered_soon(*what):
    begun = time.process_time()
    with contextlib.suppress(ValueError, TypeError):
        yield
    assert time.process_time() - begun < SECONDS, what


def throw(case, values):
    """Call with rubbish. Anything but a result, a ValueError or a TypeError is let through."""
    function, arguments, _ = CASES[case]
    if any(asks_for_work(name, value) for name, value in values.items()):
        return
    positional = () if case not in ("Vote()",) else tuple(values.values())
    keywords = {} if positional else values
    with answered_soon(case, list(values)):
        function(*positional, **(arguments | keywords))


ignores_warnings = pytest.mark.filterwarnings(
    "ignore:Data type alias:DeprecationWarning",
    "ignore:pilot=\\d+ draws:dpcore.errors.AssumptionWarning",
)


@ignores_warnings
@pytest.mark.parametrize("case", CASES)
def test_each_piece_of_rubbish_in_each_place(case):
    for name in CASES[case][2]:
        for value in [*NUMBERS, *OBJECTS, *ARRAYS]:
            throw(case, {name: value})


@ignores_warnings
@pytest.mark.parametrize("case", CASES)
@examples(60, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_rubbish_in_several_places_at_once(case, data):
    names = data.draw(st.lists(st.sampled_from(CASES[case][2]), unique=True, min_size=1))
    throw(case, {name: data.draw(JUNK) for name in names})


@given(st.sampled_from(SAMPLED), JUNK, JUNK)
def test_rubbish_for_several_mechanisms(mechanism, x, x_prime):
    for call in (
        lambda: dpcore.sample(mechanism, x, 3),
        lambda: mechanism(x, 3),
        lambda: dpcore.audit(mechanism, (x, x_prime), trials=100, claim=1.0),
        lambda: dpcore.audit(mechanism, Pair(x, x_prime), trials=100),
        lambda: dpcore.audit(mechanism, Pair(x, x_prime), trials=100, attack=VOTE),
    ):
        with answered_soon():
            call()


@given(JUNK)
@example(None)
def test_rubbish_from_a_callable(outputs):
    def mechanism(x, size, rng):
        return outputs

    for attack in (None, VOTE):
        with answered_soon():
            dpcore.audit(mechanism, ([0.0], [1.0]), trials=2, attack=attack)
    with answered_soon():
        dpcore.audit(Laplace(1.0), trials=100, attack=lambda a, b, pair: lambda o: outputs)


@given(JUNK, JUNK, JUNK)
def test_rubbish_as_a_claim_pair_or_sensitivity_of_an_object(claim, pair, sensitivity):
    class Mine:
        norm = "l1"

        def __call__(self, x, size, rng):
            return rng.random((size, 1))

        def default_pair(self):
            return pair

    Mine.claim, Mine.sensitivity = claim, sensitivity
    with contextlib.suppress(ValueError, TypeError):
        dpcore.audit(Mine(), trials=100)


@pytest.mark.parametrize("cls", [cls for cls in NATIVE.values() if cls.__dataclass_fields__])
@given(data=st.data())
@examples(40)
def test_what_is_constructed_can_be_sampled(cls, data):
    """A description that the constructor lets through never fails in the core."""
    finite = st.floats(allow_nan=False, allow_infinity=False)
    floats = [name for name, field in cls.__dataclass_fields__.items() if field.type == "float"]
    values = {name: data.draw(finite, name) for name in floats}
    try:
        mechanism = cls(**values)
        # The noise scale of some systems depends on the dimension.
        mechanism.steps(2)
    except ValueError:
        return
    drawn = dpcore.sample(mechanism, [0.5, -0.5], 40, rng=1)
    assert drawn.shape == (40, 2)
    # From an input near 0 the largest noise stays finite, at any scale that is allowed.
    assert np.isfinite(drawn).all()


@pytest.mark.parametrize(("mechanism", "pair"), [
    (Laplace(1e300), ([0.0], [1.0])),
    (Laplace(1e-300), ([0.0], [1.0])),
    (Laplace(5e-324), ([0.0], [5e-324])),
    (Laplace(1e300), ([-1.7e308], [1.7e308])),
    (dpcore.Gaussian(1e-300), ([1e300], [-1e300])),
    (dpcore.Exponential(1e300), ([1.7e308], [0.0])),
    (dpcore.Uniform(-1e300, 1e300), ([0.0], [1e308])),
    (published.ADePT(1e-290, 1e-290), ([1e308, 0.0], [-1e308, 0.0])),
    (published.HalvedOutput(1e-300, 1e-300), ([0.0], [1e-300])),
])  # fmt: skip
@pytest.mark.parametrize(("attack", "route"), [(VOTE, "sampled"), (VOTE, "auto"), (None, "auto")])
@pytest.mark.filterwarnings("ignore:all that tells:dpcore.errors.AssumptionWarning")
def test_extreme_but_valid_numbers_give_sound_audits(mechanism, pair, attack, route):
    """Noise that swamps the pair, noise that vanishes, inputs at the end of the range."""
    arguments = {"trials": 2000, "claim": 1.0, "rng": 1, "attack": attack, "route": route}
    report = dpcore.audit(mechanism, pair, **arguments)
    assert report.counts == count_again(report, 2000)
    assert str(report)
    report.plot()
