"""Audits as JSON and as pickles.

Files name a record by the word that its class declares, and reading imports what it needs.
"""

from __future__ import annotations

import copy
import functools
import importlib
import json
import math
import operator
import pickle
import pkgutil
import subprocess
import sys
from dataclasses import is_dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared_messages import check_messages

import dpcore
from dpcore import Audit, Counts, Laplace, Pair, audit, calibration, progress, published
from dpcore.attacks import Coordinatewise, MajorityVote
from dpcore.published import SYSTEMS
from dpcore.records import Record
from dpcore.report.plain import (
    decode_value,
    encode_value,
    register_type,
    registered_class,
    registered_word,
)
from dpcore.results.evidence import Finding, Scored


def noisy(x, size, rng):
    return x + rng.laplace(size=(size, 1))


class Callable:
    def __call__(self, x, size, rng):
        return noisy(x, size, rng)


strict = functools.partial(json.loads, parse_constant=pytest.fail)
"""Parse as strict JSON: a bare NaN or Infinity fails."""


def read_again(report):
    """The audit that strict JSON keeps: the same, and so are its text and its JSON."""
    text = report.to_json(indent=1)
    strict(text)
    again = Audit.from_json(text)
    assert (again, again.to_json(indent=1)) == (report, text)
    assert str(again).splitlines()[:-1] == str(report).splitlines()[:-1]
    return again


NATIVE = [
    Laplace(1.5, "sign"), dpcore.Gaussian(0.3), dpcore.Exponential(2.0), dpcore.Uniform(-1.0, 0.1),
    dpcore.Identity(), dpcore.RandomBits(), dpcore.DPTextNoise(1.0, "keep"),
    *(system(1.25) for system in SYSTEMS), published.DPText(1.0, 2.0, nan="resample"),
]  # fmt: skip


ATTACKS = [MajorityVote(), None, Coordinatewise()]


@pytest.mark.parametrize("mechanism", NATIVE, ids=repr)
@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_a_native_audit_survives_json(mechanism, attack):
    report = audit(mechanism, attack=attack, trials=1000, claim=0.1, rng=2**63 - 1)
    again = read_again(report)
    assert (hash(again), again.mechanism) == (hash(report), mechanism)
    assert strict(report.to_json())["seed"] == str(2**63 - 1)
    np.testing.assert_array_equal(again.outputs("x", 3, 50), report.outputs("x", 3, 50))


def test_infinite_figures_are_words():
    report = audit(dpcore.Identity(), attack=MajorityVote(), trials=100, rng=1)
    record = strict(report.to_json())
    assert record["derived"]["epsilon_hat"] == record["derived"]["exact"] == "inf"
    assert (record["derived"]["verdict"], record["claim"]) == ("no claim given", None)
    silent = replace(report, seconds=0.0)
    assert strict(silent.to_json())["derived"]["draws_per_second"] == "nan"
    assert Audit.from_json(silent.to_json()) == report  # time is not compared


def test_inputs_survive_json():
    numbers = np.array([math.inf, -math.inf, math.nan, -0.0, 5e-324, 0.1])
    inputs = [
        numbers, numbers.astype(np.float32), np.array([[1, 2], [3, 4]], dtype=np.int8),
        np.array(2**64 - 1, dtype=np.uint64), np.zeros((0, 3)), np.array([True, False]), "text",
        ["a", "list", 1], None, 17,
    ]  # fmt: skip
    attack = lambda a, b, pair: lambda o: o[:, 0] > 0.5  # noqa: E731

    def ignores(x, size, rng):
        return rng.random((size, 1))

    for value in inputs:
        report = audit(ignores, Pair(value, "other", 2.5), trials=10, attack=attack)
        assert Audit.from_json(report.to_json()).pair == report.pair, value
        strict(report.to_json())


def test_of_a_callable_the_name_is_kept():
    for mechanism, name in [
        (noisy, "test_audit_json.noisy"),
        (Callable(), "test_audit_json.Callable"),
        (Callable().__call__, "test_audit_json.Callable.__call__"),
    ]:
        report = audit(mechanism, ([0.0], [1.0]), trials=100, claim=1.0, rng=1)
        again = Audit.from_json(report.to_json())
        assert report.name == again.name == again.mechanism == name
        for figure in ("counts", "epsilon_lower", "epsilon_hat", "verdict", "event", "pair"):
            assert getattr(again, figure) == getattr(report, figure)
        with pytest.raises(TypeError, match=r"^mechanism must be the callable itself"):
            again.outputs("x", 0, 1)
    attack = lambda a, b, pair: lambda o: o[:, 0] > 0  # noqa: E731
    own = audit(noisy, ([0.0], [1.0]), trials=100, attack=attack, rng=1, claim=1.0)
    again = Audit.from_json(own.to_json())
    assert "<lambda>" in again.event
    assert again.epsilon_lower == own.epsilon_lower


def test_derived_figures_are_computed_not_read():
    report = audit(published.HalfNoise(1.0), trials=1000, rng=1)
    derived = {"epsilon_lower": 99.0, "verdict": report.verdict}
    found = Audit.from_dict(report.to_dict() | {"derived": derived})
    assert (found, found.epsilon_lower) == (report, report.epsilon_lower)
    # The verdict is compared: of damaged counts it would be another.
    derived["verdict"] = "private"
    with pytest.raises(ValueError, match=r"^derived\.verdict must be .*, which the fields give"):
        Audit.from_dict(report.to_dict() | {"derived": derived})


REPORT = audit(published.HalfNoise(1.0), attack=MajorityVote(), trials=1000, rng=1)
RECORD = json.loads(REPORT.to_json())
COUNTS, PAIR = RECORD["counts"], RECORD["pair"]
FULL = replace(
    REPORT,
    floats=True,
    floating_point=Finding(REPORT.event, "x_prime", Counts(1, 900, 70, 900), 0.0, 0.95),
    curve=Scored(np.array([-1.0, 2.5]), np.array([900, 1]), 1000, np.array([800, 0]), 1000),
    checks=("something is odd",),
)
EARLY = audit(published.HalfNoise(1.0), claim=9.0, trials=3000, rng=1, stop="refuted", block=100)
POOLED = audit(published.HalfNoise(1.0), trials=1000, rng=1, attack=Coordinatewise())


def inputs(**array):
    """A pair with another array of numbers on x."""
    return PAIR | {"x": PAIR["x"] | array}


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "1", "null", '"a"', "{}", "[" * 100_000, "\ud800", '{"format": 1}', "NaN"],
)
def test_what_is_not_an_audit_is_a_value_error(text):
    with pytest.raises(ValueError, match="must be"):
        Audit.from_json(text)


TYPE_ERRORS = [
    (lambda: Audit.from_dict(5), "record", "a mapping"),
    *((functools.partial(Audit.from_json, text), "text", "a string of JSON")
      for text in (None, 1, {}, [""])),
    (lambda: progress.Progress("x", 1, "yes"), "progress", "True, False or None"),
]  # fmt: skip


def test_messages():
    check_messages(TypeError, TYPE_ERRORS)


WRONG = {
    "format": ["dpcore.audit/0", "dpcore.audit/1"],
    "counts": [
        COUNTS | {"k": 1001}, COUNTS | {"k": 1.0}, {"record": "Counts", "k": 1}, PAIR, None,
        COUNTS | {"k": 1, "n": 999, "k_prime": 0, "n_prime": 999}, [1, 2, 3, 4],
        {key: COUNTS[key] for key in ("k", "n", "k_prime", "n_prime")},
        COUNTS | {"record": "Tally"}, COUNTS | {"record": ["Counts"]},
    ],
    "confidence": [1.5, "0.95"],
    "delta": [-0.1],
    "claim": [-1, "inf"],
    "direction": ["up", 1],
    "seed": ["-1", "x", str(2**63), None],
    "ranges": [
        [[0, 999]], [[0, 1001]], [[1000, 0]], [[0, 600], [500, 900]], [[0, 1000.0]], 5, None,
    ],
    "route": ["fast"],
    "block": [0],
    "threads": [-1],
    "end": [10],
    "nan": [-1],
    "shape": [[-1], None],
    "seconds": ["soon", None],
    "event": [
        {"event": "Vote"}, {"something": "else"},
        {"event": "Vote", "threshold": [0.5], "towards": [2], "vote": "x"},
        {"record": "Above", "score": {"record": "Nothing"}, "threshold": 0.0},
        {"record": "Above", "score": {"repr": "mine"}, "threshold": 0.0},
    ],
    "mechanism": [
        {"native": "Nothing", "scale": 1.0}, {"native": "Laplace", "scale": -1.0},
        {"native": "Laplace", "width": 1.0}, {"native": ["Laplace"]},
    ],
    "pair": [
        None, COUNTS, {"record": "Pair", "x": 1}, PAIR | {"distance": 0}, PAIR | {"distance": "1"},
        PAIR | {"more": 1}, inputs(dtype="O"), inputs(shape=[3]), inputs(array=["a", "b"]),
        inputs(dtype="no"), inputs(dtype="i1", array=[300, 0]),
    ],
    "bound": ["best", None],
    "stop": ["soon", "refuted", "interrupted", "looked"],
    "partial": [True, 1],
    "floats": [None, "yes"],
    "pooled": [True, [COUNTS], [1]],
    "slices": [1, [COUNTS]],
    "checks": ["odd", [1]],
    "floating_point": [COUNTS, {"repr": "mine"}],
    "curve": [1, COUNTS],
}  # fmt: skip
"""Values of the fields of a record that no audit has."""


@pytest.mark.parametrize("name", WRONG)
def test_a_record_that_was_changed_is_a_value_error(name):
    for value in WRONG[name]:
        with pytest.raises(ValueError, match=r"."):
            Audit.from_dict(RECORD | {name: value})
        with pytest.raises(ValueError, match=r"."):
            Audit.from_json(json.dumps(RECORD | {name: value}))


def changed(report, path, value):
    """The record of an audit with one item of one of its parts changed."""
    record = json.loads(report.to_json())
    *steps, last = (int(step) if step.isdigit() else step for step in path.split())
    place = functools.reduce(operator.getitem, steps, record)
    assert place[last] != value
    place[last] = value
    return record


@pytest.mark.parametrize("report", [FULL, EARLY, POOLED], ids=lambda report: report.attack)
def test_what_an_audit_holds_beside_its_counts_survives_json(report):
    assert read_again(report).epsilon_lower == report.epsilon_lower


def test_the_audits_above_hold_something_beside_their_counts():
    # The finding certifies more than the counts do: it is what the verdict rests on.
    valid = replace(FULL, checks=())
    without = replace(valid, floating_point=None)
    assert valid.epsilon_lower > REPORT.epsilon_lower > without.epsilon_lower
    # Rows that are not independent certify nothing.
    assert FULL.epsilon_lower == 0.0
    assert len(EARLY.slices) > 1
    assert len(POOLED.pooled) == 1


@pytest.mark.parametrize(
    ("report", "path", "value"),
    [
        (FULL, "floating_point direction", "up"), (FULL, "floating_point confidence", 1.0),
        (FULL, "floating_point delta", -1.0), (FULL, "floating_point counts", None),
        (FULL, "floating_point counts k", 10**9), (FULL, "curve n", 1), (FULL, "curve k", [1]),
        (FULL, "checks", "odd"), (EARLY, "slices 0 counts k", 1), (EARLY, "slices 0 counts n", 99),
        (EARLY, "slices 0 direction", "up"), (EARLY, "slices 0 guess", [0.5]),
        (EARLY, "slices 0 guess", [0.0, 2.0]), (EARLY, "slices 0 pair", None),
        (EARLY, "slices", []), (EARLY, "stop", "fixed"), (EARLY, "stop", "looked"),
        (EARLY, "bound", "clopper_pearson"),
        (POOLED, "pooled 0 n", 1000), (POOLED, "pooled", [POOLED.to_dict()["pooled"][0]] * 2),
        (POOLED, "event", RECORD["event"]), (POOLED, "event", {"repr": "mine"}),
    ],
)  # fmt: skip
def test_a_part_that_was_changed_is_a_value_error(report, path, value):
    with pytest.raises(ValueError, match=r"."):
        Audit.from_json(json.dumps(changed(report, path, value)))


@pytest.mark.parametrize("name", [name for name in RECORD if name != "derived"])
def test_a_record_with_a_field_missing_is_a_value_error(name):
    record = {key: value for key, value in RECORD.items() if key != name}
    with pytest.raises(ValueError, match="must be"):
        Audit.from_dict(record)


@pytest.mark.parametrize(("path", "name"), [("pair", "distance"), ("mechanism", "sensitivity")])
def test_a_part_with_a_field_missing_is_a_value_error(path, name):
    part = {key: value for key, value in RECORD[path].items() if key != name}
    with pytest.raises(ValueError, match=rf"(Pair|HalfNoise) must be a record with .*'{name}'"):
        Audit.from_dict(RECORD | {path: part})
    # The control: nothing else is wrong with the part.
    assert Audit.from_dict(RECORD | {path: part | {name: RECORD[path][name]}}) == REPORT


WORDS = ["native", "record", "array", "dtype", "shape", "event", "repr", "k", "n"]
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4)
    ),
    max_leaves=6,
)


@given(
    st.sampled_from([REPORT, FULL, EARLY, POOLED]),
    st.sampled_from([name for name in RECORD if name != "derived"]),
    JUNK,
)
def test_junk_in_a_record_never_crashes(report, name, value):
    try:
        found = Audit.from_dict(report.to_dict() | {name: value})
    except ValueError:
        return
    # What is let in can be shown and written.
    assert str(found)
    found.to_json()


def test_pickles_copies_and_what_is_read_from_bytes_are_equal():
    assert Audit.from_json(REPORT.to_json().encode()) == REPORT
    for report in (REPORT, audit(noisy, (np.zeros(1), np.ones(1)), trials=100, rng=1)):
        for again in (pickle.loads(pickle.dumps(report)), copy.deepcopy(report)):
            assert (again, hash(again)) == (report, hash(report))
            assert not again.pair.x.flags.writeable


def fresh(code, text):
    """What Python code prints in a process of its own that was given a text."""
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_is_written_and_read_does_not_depend_on_the_order_of_imports():
    code = """
import dpcore
first = dpcore.audit(dpcore.Laplace(1.0), trials=100, rng=1).to_json()
from dpcore import calibration
report = dpcore.audit(calibration.L2Laplace(0.5), ([0.0], [1.0]), trials=100, rng=1)
print(report.to_json(), end="")
"""
    written = fresh(code, "")
    mechanism = json.loads(written)["mechanism"]
    assert mechanism == encode_value(calibration.L2Laplace(0.5))
    assert decode_value(mechanism) == calibration.L2Laplace(0.5)
    code = "import dpcore, sys; print(dpcore.Audit.from_json(sys.stdin.read()).to_json(), end='')"
    assert fresh(code, written) == written


RESULTS = {"Audit", "Evidence", "OutputsAudit", "Plan", "TableAudit"}
ELSEWHERE = ("structure", "divergence", "experiments", "torch", "text")
"""Packages whose records are results of their own: none of them stands in an audit."""


def records():
    """Every record of dpcore that may stand in an audit."""
    for found in pkgutil.walk_packages(dpcore.__path__, "dpcore."):
        parts = found.name.split(".")
        if parts[1] in (*ELSEWHERE, "_core", "__main__", "adapters", "pytest_plugin", "cli"):
            continue
        for name, value in vars(importlib.import_module(found.name)).items():
            own = isinstance(value, type) and value.__module__ == found.name
            if own and issubclass(value, Record) and is_dataclass(value):
                yield name, value


RECORDS = sorted(
    {cls for name, cls in records() if not name.startswith("_") and name not in RESULTS},
    key=lambda cls: cls.__name__,
)


@pytest.mark.parametrize("cls", RECORDS, ids=lambda cls: cls.__name__)
def test_every_record_declares_its_word(cls):
    # The class says `(Record, word="...")`; if reading does not find it, its package is not listed.
    word = registered_word(cls)
    assert word is not None, f"{cls.__module__}.{cls.__name__} declares no word"
    assert registered_class(word) is cls


def test_every_word_is_found_by_a_process_that_imported_nothing_but_dpcore():
    words = json.dumps([registered_word(cls) for cls in RECORDS])
    code = """
import dpcore, json, sys
from dpcore.report.plain import decode_value
for word in json.load(sys.stdin):
    try:
        decode_value({"record": word, "no such field": 1})
    except TypeError as error:
        print(word)
"""
    assert fresh(code, words).split() == json.loads(words)


@pytest.mark.parametrize(
    ("word", "record"),
    [
        ("GaussianNoise", calibration.gaussian_analytic(1.0, 1e-5, 1.0)),
        ("Histogram", dpcore.sensitivity.HistogramCounts(3, "replace")),
    ],
)
def test_a_word_need_not_be_the_name_of_its_class(word, record):
    written = encode_value(record)
    assert (written["record"], decode_value(written)) == (word, record)


def test_namesakes_need_another_word():
    with pytest.raises(TypeError, match=r"^word must be unlike for namesakes, got 'Pair' for dpco"):

        class Pair(Record, word="Pair"):
            pass

    with pytest.raises(TypeError, match=r"^word must be unlike for namesakes, got 'Box' for dpcor"):
        register_type("Box", Audit)


def test_a_users_subclass_is_no_record_of_ours():
    class Mine(calibration.L2Laplace):
        pass

    assert registered_word(Mine) is None
    assert "record" not in encode_value(Mine(0.5))


@pytest.mark.parametrize("word", ["antigravity", "this:Class", "dpcore.cli", "Tally", 1, ["Pair"]])
@pytest.mark.parametrize("key", ["record", "native"])
def test_an_unknown_word_is_a_value_error_that_shows_it(key, word):
    with pytest.raises(ValueError, match=rf"^{key} must be .*, got {word!r}".replace("[", r"\[")):
        Audit.from_dict(REPORT.to_dict() | {"mechanism": {key: word}})
    assert "antigravity" not in sys.modules


def test_recorded_outputs_keep_the_attack_that_their_file_names():
    outputs = np.arange(40.0).reshape(20, 2)
    report = dpcore.audit_outputs(outputs, outputs + 1.0, rng=1, rows="independent")
    old = replace(report, attack="dpcore.attacks.auto.Auto")
    assert report.attack == "Auto"
    assert dpcore.OutputsAudit.from_json(old.to_json()) == old
