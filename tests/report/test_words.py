"""Files name a record by the word that its class declares, and reading imports what it needs."""

from __future__ import annotations

import importlib
import json
import pkgutil
import subprocess
import sys
from dataclasses import is_dataclass, replace

import numpy as np
import pytest

import dpcore
from dpcore import Audit, OutputsAudit, audit, calibration, sensitivity
from dpcore.attacks import MajorityVote
from dpcore.published import NATIVE
from dpcore.records import Record, class_of, declare, word_of
from dpcore.report.encoding import decode_value, encode_value

MECHANISMS = [
    (calibration.L2Laplace(0.5), ([0.0, 0.0], [1.0, 0.0])),
    (calibration.RandomisedResponse(1.0, 3), (0, 1)),
]


def fresh(code, text):
    """What Python code prints in a process of its own that was given a text."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], input=text, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("mechanism", "pair"), MECHANISMS, ids=lambda one: type(one).__name__)
def test_an_audit_of_a_calibrated_mechanism_is_read_in_a_fresh_process(mechanism, pair):
    text = audit(mechanism, pair, trials=1000, claim=1.0, rng=1).to_json()
    assert json.loads(text)["mechanism"]["record"] == type(mechanism).__name__
    code = "import dpcore, sys; print(dpcore.Audit.from_json(sys.stdin.read()).to_json(), end='')"
    assert fresh(code, text) == text


def test_what_is_written_does_not_depend_on_the_order_of_imports():
    code = """
import dpcore
first = dpcore.audit(dpcore.Laplace(1.0), trials=100, rng=1).to_json()
from dpcore import calibration
print(dpcore.audit(calibration.L2Laplace(0.5), ([0.0], [1.0]), trials=100, rng=1).to_json())
"""
    mechanism = json.loads(fresh(code, ""))["mechanism"]
    assert mechanism == encode_value(calibration.L2Laplace(0.5))
    assert decode_value(mechanism) == calibration.L2Laplace(0.5)


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
    word = word_of(cls)
    assert word is not None, f"{cls.__module__}.{cls.__name__} declares no word"
    assert class_of(word) is cls


def test_every_word_is_found_by_a_process_that_imported_nothing_but_dpcore():
    words = json.dumps([word_of(cls) for cls in RECORDS])
    code = """
import dpcore, json, sys
from dpcore.report.encoding import decode_value
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
        ("Histogram", sensitivity.HistogramCounts(3, "replace")),
    ],
)
def test_a_class_that_was_renamed_keeps_its_word(word, record):
    written = encode_value(record)
    assert written["record"] == word
    assert decode_value(written) == record


def test_native_mechanisms_have_names_of_their_own():
    assert len({cls.__name__ for cls in NATIVE}) == len(NATIVE)


def test_namesakes_need_another_word():
    with pytest.raises(TypeError, match=r"^word must be unlike for namesakes, got 'Pair' for dpco"):

        class Pair(Record, word="Pair"):
            pass

    with pytest.raises(TypeError, match=r"^word must be unlike for namesakes, got 'Box' for dpcor"):
        declare("Box", Audit)


def test_a_users_subclass_is_no_record_of_ours():
    class Mine(calibration.L2Laplace):
        pass

    assert word_of(Mine) is None
    assert "record" not in encode_value(Mine(0.5))


REPORT = audit(dpcore.Laplace(1.0), attack=MajorityVote(), trials=100, rng=1)


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
    assert OutputsAudit.from_json(old.to_json()) == old
