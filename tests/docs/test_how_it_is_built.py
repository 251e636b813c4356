"""The page "How dpcore is built": its paths are those that Python takes."""

from __future__ import annotations

import itertools
import re
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from shared_layers import PACKAGE
from shared_site import ROOT

import dpcore
from dpcore import experiments

PAGE = (ROOT / "docs" / "explain" / "how-dpcore-is-built.md").read_text("utf-8")
STEPS = re.findall(r"(?m)^\| `(\S+\.py|_core)` \| `(\w+)` \|", PAGE)
PATHS = {
    call: re.findall(r"`([^`]+)`", files)
    for call, files in re.findall(
        r"(?m)^\| ([^|]+) \| ((?:`[\w/]+(?:\.py)?`(?:, )?){5,}) \|$", PAGE
    )
}
PAIR, NOISE = dpcore.Pair([0.0], [1.0]), dpcore.Laplace(1.0)


def release(x, size, rng):
    return x + rng.laplace(size=(size, len(x)))


def answer(x, rng):
    return x + rng.laplace(size=len(x))


def audit_recorded_outputs():
    outputs, outputs_prime = np.random.default_rng(1).normal(size=(2, 200))
    return dpcore.audit_outputs(outputs, outputs_prime + 1.0, rows="independent", claim=0.5, rng=1)


FEW = {"claim": 0.5, "trials": 2000, "rng": 1}
CALLS = {
    "`audit` of `Laplace` noise by the vote": lambda: dpcore.audit(
        NOISE, PAIR, attack="majority-vote", **FEW
    ),
    "`audit_outputs`": audit_recorded_outputs,
    "`audit_table`": lambda: dpcore.audit_table([[0.6, 0.4], [0.4, 0.6]], claim=0.5),
    "`trace`": lambda: dpcore.trace(answer, PAIR, claim=0.5),
}
EXPERIMENT = "the experiment `published-systems`"


@contextmanager
def record_entries():
    """Record (file, function) of every call, the core's included, in the order of first entry."""
    entries, root = {}, f"{PACKAGE.as_posix()}/"

    def note(frame, what, value):
        file = Path(frame.f_code.co_filename).as_posix()
        if what == "call" and file.startswith(root):
            entries.setdefault((file.removeprefix(root), frame.f_code.co_name))
        elif what == "c_call" and getattr(value, "__module__", None) == "dpcore._core":
            entries.setdefault(("_core", value.__name__))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield entries
    finally:
        sys.setprofile(before)


def list_entries(call):
    # The first call imports modules, whose own code is no part of the path.
    str(call())
    with record_entries() as entries:
        str(call())
    return list(entries)


def find_breaches(named, entered):
    """Return what a page names that is not entered, or is entered before what it names first."""
    places = {name: place for place, name in reversed([*enumerate(entered)])}
    missing = [name for name in named if name not in places]
    rest = [name for name in named if name in places]
    return missing + [b for a, b in itertools.pairwise(rest) if places[a] >= places[b]]


def test_an_audit_enters_the_functions_of_the_page_in_its_order():
    entered = list_entries(lambda: dpcore.audit(release, PAIR, **FEW))
    assert len(STEPS) > 25
    assert find_breaches(STEPS, entered) == []
    # The control: two rows exchanged, and a function that is not entered, are noticed.
    assert find_breaches([STEPS[1], STEPS[0], *STEPS[2:]], entered) == [STEPS[0]]
    assert find_breaches([("auditing/run.py", "audit_output_and_call_time")], entered)


@pytest.mark.parametrize("call", CALLS)
def test_the_other_calls_enter_the_files_of_the_page_in_its_order(call):
    files = [file for file, _ in list_entries(CALLS[call])]
    assert find_breaches(PATHS[call], files) == []


@pytest.mark.sweep
def test_an_experiment_enters_the_files_of_the_page_in_its_order(tmp_path):
    def reproduce():
        return experiments.reproduce(
            "published-systems", tmp_path, 1000, quick=True, progress=False
        ).table()

    files = [file for file, _ in list_entries(reproduce)]
    assert find_breaches(PATHS[EXPERIMENT], files) == []


def test_every_path_of_the_page_is_run():
    assert {*PATHS} == {*CALLS, EXPERIMENT}
