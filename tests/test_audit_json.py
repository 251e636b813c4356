"""Audits as JSON, as pickles, and added together."""

from __future__ import annotations

import copy
import json
import math
import pickle
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpcore
from dpcore import Audit, Gaussian, Laplace, Pair, audit, published
from dpcore.published import SYSTEMS


def noisy(x, size, rng):
    return x + rng.laplace(size=(size, 1))


class Callable:
    def __call__(self, x, size, rng):
        return noisy(x, size, rng)


def strict(text):
    """Parse as strict JSON: a bare NaN or Infinity is an error."""

    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


NATIVE = [
    Laplace(1.5, "sign"),
    Gaussian(0.3),
    dpcore.Exponential(2.0),
    dpcore.Uniform(-1.0, 0.1),
    dpcore.Identity(),
    dpcore.RandomBits(),
    dpcore.DPTextNoise(1.0, "keep"),
    *(system(1.25) for system in SYSTEMS),
    published.DPText(1.0, 2.0, nan="resample"),
]


@pytest.mark.parametrize("mechanism", NATIVE, ids=repr)
def test_a_native_audit_survives_json(mechanism):
    report = audit(mechanism, trials=1000, claim=0.1, rng=2**63 - 1)
    text = report.to_json(indent=1)
    record = strict(text)
    again = Audit.from_json(text)
    assert again == report
    assert hash(again) == hash(report)
    assert again.mechanism == mechanism
    assert str(again).splitlines()[:-1] == str(report).splitlines()[:-1]
    assert record["seed"] == str(2**63 - 1)
    assert again.to_json(indent=1) == text
    np.testing.assert_array_equal(again.outputs("x", 3, 50), report.outputs("x", 3, 50))


def test_infinite_figures_are_words():
    report = audit(dpcore.Identity(), trials=100, rng=1)
    record = strict(report.to_json())
    assert record["derived"]["epsilon_hat"] == record["derived"]["exact"] == "inf"
    assert record["derived"]["verdict"] == "no claim given"
    assert record["claim"] is None
    silent = replace(report, seconds=0.0)
    assert strict(silent.to_json())["derived"]["draws_per_second"] == "nan"
    assert Audit.from_json(silent.to_json()) == report  # time is not compared


def test_inputs_survive_json():
    numbers = np.array([math.inf, -math.inf, math.nan, -0.0, 5e-324, 0.1])
    inputs = [
        numbers,
        numbers.astype(np.float32),
        np.array([[1, 2], [3, 4]], dtype=np.int8),
        np.array(2**64 - 1, dtype=np.uint64),
        np.zeros((0, 3)),
        np.array([True, False]),
        "text",
        ["a", "list", 1],
        None,
        17,
    ]
    attack = lambda a, b, pair: lambda o: o[:, 0] > 0.5  # noqa: E731

    def ignores(x, size, rng):
        return rng.random((size, 1))

    for value in inputs:
        report = audit(ignores, Pair(value, "other", 2.5), trials=10, attack=attack)
        again = Audit.from_json(report.to_json())
        assert again.pair == report.pair, value
        strict(report.to_json())


def test_of_a_callable_the_name_is_kept():
    for mechanism, name in [
        (noisy, "test_audit_json.noisy"),
        (Callable(), "test_audit_json.Callable"),
        (Callable().__call__, "test_audit_json.Callable.__call__"),
        (len, None),
    ]:
        if name is None:
            continue
        report = audit(mechanism, trials=100, claim=1.0, rng=1)
        again = Audit.from_json(report.to_json())
        assert report.name == again.name == again.mechanism == name
        for figure in ("counts", "epsilon_lower", "epsilon_hat", "verdict", "event", "pair"):
            assert getattr(again, figure) == getattr(report, figure)
        with pytest.raises(TypeError, match=r"^mechanism must be the callable itself"):
            again.outputs("x", 0, 1)
    own = audit(
        noisy, trials=100, attack=lambda a, b, pair: lambda o: o[:, 0] > 0, rng=1, claim=1.0
    )
    again = Audit.from_json(own.to_json())
    assert "<lambda>" in again.event
    assert again.epsilon_lower == own.epsilon_lower


def test_derived_figures_are_computed_not_read():
    report = audit(published.HalfNoise(1.0), trials=1000, rng=1)
    record = report.to_dict()
    record["derived"] = {"epsilon_lower": 99.0, "verdict": "private"}
    assert Audit.from_dict(record) == report
    assert Audit.from_dict(record).epsilon_lower == report.epsilon_lower


REPORT = audit(published.HalfNoise(1.0), trials=1000, rng=1)
RECORD = json.loads(REPORT.to_json())


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "1", "null", '"a"', "{}", "[" * 100_000, "\ud800", '{"format": 1}', "NaN"],
)
def test_what_is_not_an_audit_is_a_value_error(text):
    with pytest.raises(ValueError, match="must be"):
        Audit.from_json(text)


@pytest.mark.parametrize("text", [None, 1, {}, ["x"]])
def test_json_is_text(text):
    with pytest.raises(TypeError, match=r"^text must be a string of JSON, got"):
        Audit.from_json(text)


def test_bytes_are_read_too():
    assert Audit.from_json(REPORT.to_json().encode()) == REPORT


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("format", "dpcore.audit/0"),
        ("counts", {"k": 5, "n": 4, "k_prime": 0, "n_prime": 4}),
        ("counts", {"k": 1, "n": 999, "k_prime": 0, "n_prime": 999}),
        ("counts", {"k": 1}),
        ("counts", [1, 2, 3, 4]),
        ("counts", None),
        ("confidence", 1.5),
        ("confidence", "0.95"),
        ("delta", -0.1),
        ("claim", -1),
        ("claim", "inf"),
        ("direction", "up"),
        ("direction", 1),
        ("seed", "-1"),
        ("seed", "x"),
        ("seed", str(2**63)),
        ("seed", None),
        ("ranges", [[0, 999]]),
        ("ranges", [[0, 1001]]),
        ("ranges", [[1000, 0]]),
        ("ranges", [[0, 600], [500, 900]]),
        ("ranges", [[0, 1000.0]]),
        ("ranges", 5),
        ("ranges", None),
        ("route", "fast"),
        ("block", 0),
        ("threads", -1),
        ("end", 10),
        ("nan", -1),
        ("shape", [-1]),
        ("shape", None),
        ("seconds", "soon"),
        ("seconds", None),
        ("event", {"event": "Vote"}),
        ("event", {"event": "Vote", "threshold": [0.5], "towards": [2], "vote": "x"}),
        ("event", {"something": "else"}),
        ("mechanism", {"native": "Nothing", "scale": 1.0}),
        ("mechanism", {"native": "Laplace", "scale": -1.0}),
        ("mechanism", {"native": "Laplace", "width": 1.0}),
        ("mechanism", {"native": ["Laplace"]}),
        ("pair", None),
        ("pair", {"x": 1}),
        ("pair", {"x": 1, "x_prime": 2, "distance": 0}),
        ("pair", {"x": {"array": [1], "dtype": "O", "shape": [1]}, "x_prime": 2, "distance": 1}),
        ("pair", {"x": {"array": [1], "dtype": "f8", "shape": [2]}, "x_prime": 2, "distance": 1}),
        ("pair", {"x": {"array": ["a"], "dtype": "f8", "shape": [1]}, "x_prime": 2, "distance": 1}),
        ("pair", {"x": {"array": [1], "dtype": "no", "shape": [1]}, "x_prime": 2, "distance": 1}),
        ("pair", {"x": {"array": [300], "dtype": "i1", "shape": [1]}, "x_prime": 2, "distance": 1}),
    ],
)
def test_a_record_that_was_changed_is_a_value_error(name, value):
    with pytest.raises(ValueError, match=r"."):
        Audit.from_dict(RECORD | {name: value})
    with pytest.raises(ValueError, match=r"."):
        Audit.from_json(json.dumps(RECORD | {name: value}))


@pytest.mark.parametrize("name", [name for name in RECORD if name != "derived"])
def test_a_record_with_a_field_missing_is_a_value_error(name):
    record = {key: value for key, value in RECORD.items() if key != name}
    with pytest.raises(ValueError, match="must be"):
        Audit.from_dict(record)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["native", "array", "dtype", "shape", "event", "repr", "k", "n"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=6,
)


@given(st.sampled_from([name for name in RECORD if name != "derived"]), JUNK)
def test_junk_in_a_record_never_crashes(name, value):
    try:
        found = Audit.from_dict(RECORD | {name: value})
    except ValueError:
        return
    # What is let in can be shown and written.
    assert str(found)
    found.to_json()


def test_a_record_is_a_mapping():
    with pytest.raises(TypeError, match=r"^record must be a mapping, got 5"):
        Audit.from_dict(5)


def test_pickles_and_copies_are_equal():
    for report in (REPORT, audit(noisy, trials=100, rng=1)):
        for again in (pickle.loads(pickle.dumps(report)), copy.deepcopy(report)):
            assert again == report
            assert hash(again) == hash(report)
            assert not again.pair.x.flags.writeable


def test_audits_are_frozen():
    with pytest.raises(AttributeError):
        REPORT.claim = 5.0


# Addition.

STEP = {"trials": 1000, "block": 100, "rng": 1}
FIRST = audit(noisy, claim=1.0, **STEP)
SECOND = audit(noisy, claim=1.0, start=1000, **STEP)


def test_addition():
    both = FIRST + SECOND
    assert both.counts == FIRST.counts + SECOND.counts
    assert both.seconds == FIRST.seconds + SECOND.seconds
    assert both == SECOND + FIRST
    assert sum([SECOND], FIRST) == both
    drawn = np.concatenate([a.outputs("x", a.ranges[0][0], 1000) for a in (FIRST, SECOND)])
    np.testing.assert_array_equal(both.outputs("x", 0, 2000), drawn)


OTHER_EVENT = dpcore.events.Vote.between(Pair([0.0], [3.0]))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"mechanism": Laplace(1.0)}, "mechanism of the second audit must be <function noisy"),
        ({"pair": Pair([0.0], [2.0])}, "pair of the second audit must be Pair(x=array([0.]), "),
        ({"attack": "mine"}, "attack of the second audit must be 'MajorityVote' as in the first"),
        ({"event": OTHER_EVENT}, "event of the second audit must be Vote(threshold=array([0.5])"),
        ({"direction": None}, "direction of the second audit must be 'x"),
        ({"seed": 2}, "seed of the second audit must be 1 as in the first, got 2"),
        ({"block": 50}, "block of the second audit must be 100 as in the first, got 50"),
        ({"claim": 2.0}, "claim of the second audit must be 1.0 as in the first, got 2.0"),
        ({"claim": None}, "claim of the second audit must be 1.0 as in the first, got None"),
        ({"delta": 0.1}, "delta of the second audit must be 0.0 as in the first, got 0.1"),
        (
            {"confidence": 0.9},
            "confidence of the second audit must be 0.95 as in the first, got 0.9",
        ),
        ({"shape": ()}, "shape of the second audit must be (1,) as in the first, got ()"),
    ],
)
def test_addition_refuses_what_differs(change, text):
    other = replace(SECOND, **change)
    with pytest.raises(ValueError, match=f"^{re.escape(text)}"):
        FIRST + other


@pytest.mark.parametrize("start", [0, 100, 900])
def test_addition_refuses_trials_counted_twice(start):
    overlapping = audit(noisy, claim=1.0, start=start, **STEP)
    text = f"trials of the second audit must be disjoint from ((0, 1000),), got (({start}, "
    with pytest.raises(ValueError, match=f"^{re.escape(text)}"):
        FIRST + replace(overlapping, event=FIRST.event, direction=FIRST.direction)


def test_addition_of_something_else_is_a_type_error():
    for other in (1, None, FIRST.counts):
        with pytest.raises(TypeError, match="unsupported operand"):
            FIRST + other


def test_a_short_last_block_stays_last():
    """A callable's short block is no prefix of the whole one, so nothing may follow it."""
    short = audit(noisy, claim=1.0, **STEP | {"trials": 1050})
    later = audit(noisy, claim=1.0, start=1100, **STEP)
    later = replace(later, event=short.event, direction=short.direction)
    with pytest.raises(ValueError, match=r"^end of a range of trials must be a multiple of block"):
        short + later
    native = audit(Laplace(1.0), claim=1.0, **STEP | {"trials": 1050})
    follow = audit(Laplace(1.0), claim=1.0, start=1050, **STEP)
    assert (native + replace(follow, event=native.event, direction=native.direction)).trials == 2050
