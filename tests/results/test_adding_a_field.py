"""A new field of `Audit` is three files: declared, filled, shown; what is forgotten is named."""

from __future__ import annotations

import ast
import json
from dataclasses import fields, replace

import pytest
from shared_copies import copied, done, edited, run
from shared_layers import PACKAGE

import dpcore
from dpcore import Audit, Counts, Pair
from dpcore.attacks import MajorityVote
from dpcore.events import Vote
from dpcore.pairs import Searched
from dpcore.records import PartsRead, SeenOutput
from dpcore.results.evidence import Spent

AUDIT = dpcore.audit(dpcore.Laplace(1.0), attack=MajorityVote(), trials=1000, claim=1.0, rng=1)

CHANGED = {
    "mechanism": dpcore.Laplace(2.0), "pair": Pair([0.0], [2.0]), "delta": 0.1,
    "event": Vote.between(Pair([0.0], [2.0])), "direction": "x", "claim": 2.0,
    "counts": Counts(1, 1000, 2, 1000),
    "confidence": 0.9, "seed": 77, "block": 7, "route": "callable", "ranges": ((5, 1005),),
    "nan": 3, "nan_prime": 3, "pilot": 99, "partial": True, "bound": "exact", "floats": True,
    "stop": "interrupted", "checks": ("odd",), "notes": ("noted",), "neighbour": "L1(1)",
    "shape": (2,), "threads": 9, "seconds": 9.0, "runs_on": "cuda, torch 2.15.0",
    "clean": Pair([0.0, 0.0], [0.5, 0.5]), "declared_loss": 0.5,
    "searched": Searched(9, 1, 8, 60.0, True), "spent": (Spent("count", 9.0, 5),),
    "read": PartsRead(9, 8, 7), "inside": (SeenOutput("never", 1, 0),),
}  # fmt: skip
"""Another value of a field, with which the report must say something else."""

UNSEEN = {
    "attack": "the witness is what it found; the page and a failed test name it",
    "end": "only where the code that repeats the audit is written",
    "randomness": "a note speaks where it is no seed's, by a sentence of the audit that ran",
    "pooled": "rows of the groups, with an event that pools: test_report",
    "floating_point": "the row `rounding`: test_report",
    "curve": "pictures alone",
    "slices": "the row of early stop: test_report",
    "digests": "JSON alone: by them two audits of the same outputs are recognized",
    "provenance": "the page and the JSON: test_made",
    "tangent": "only of a claim that is a curve: test_audits_of_curves",
}
"""Fields that the text of this audit does not show, and where they are."""


def test_every_field_is_shown_or_said_to_be_elsewhere():
    names = {field.name for field in fields(Audit)}
    unknown = names - set(CHANGED) - set(UNSEEN)
    assert not unknown, f"show {unknown} in report/text.py, and change it here"
    assert set(CHANGED) | set(UNSEEN) == names


@pytest.mark.parametrize("name", CHANGED)
def test_the_text_follows_the_field(name):
    assert str(replace(AUDIT, **{name: CHANGED[name]})) != str(AUDIT)


def unfilled(trees):
    """Fields of `Audit` that nothing in the package of audits gives a value."""
    given = {
        word.arg
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for word in node.keywords
    } | {
        key.value
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Dict)
        for key in node.keys
        if isinstance(key, ast.Constant)
    }
    return {field.name for field in fields(Audit)} - given


def test_an_audit_fills_every_field():
    trees = [ast.parse(path.read_text()) for path in (PACKAGE / "auditing").glob("*.py")]
    assert not unfilled(trees)
    # The control: what is left out is named.
    assert "nan" in unfilled([ast.parse("make_audit(request, source, pilot=3)")])


DECLARED = "results/evidence.py", (
    ("    threads: int = field(",
     "    remark: str = field(default='', metadata=make_field_metadata(read_instance(str)))\n"
     "    threads: int = field("),
    ("        threads: threads used", "        remark: a remark.\n        threads: threads used"),
)  # fmt: skip
FILLED = (
    "auditing/counting.py",
    (('        "notes": (*', '        "remark": "well done",\n        "notes": (*'),),
)
SHOWN = "report/text.py", (
    ('    table.append(("seed",', '    table.append(("remark", audit.remark))\n'
     '    table.append(("seed",'),
)  # fmt: skip

USES = """
import subprocess, sys, dpcore
STEP = dict(trials=1000, rng=1, attack=dpcore.attacks.MajorityVote(), claim=1.0)
first = dpcore.audit(dpcore.Laplace(1.0), **STEP)
both = first + dpcore.audit(dpcore.Laplace(1.0), start=1000, **STEP)
for shown in (str(both), both.to_html(), both._repr_html_()):
    assert "well done" in shown
again = "import sys, dpcore; print(dpcore.Audit.from_json(sys.stdin.read()).remark)"
print(subprocess.run([sys.executable, "-c", again], input=both.to_json(), text=True,
                     capture_output=True, check=True).stdout)
"""


def test_a_new_field_works_throughout_the_package(tmp_path):
    root = copied(tmp_path)
    for file, changes in (DECLARED, FILLED, SHOWN):
        edited(root, file, *changes)
    assert run(root, USES).strip() == "well done"
    found = done(
        root, "-m", "dpcore", "audit", "laplace", "--epsilon", "1", "--trials", "1000", "--json"
    )
    assert json.loads(found.stdout)["remark"] == "well done"
    assert Audit.from_json(AUDIT.to_json()) == AUDIT


@pytest.mark.parametrize(
    ("steps", "test", "said"),
    [
        ((DECLARED, SHOWN), "test_an_audit_fills_every_field", "{'remark'}"),
        (
            (DECLARED, FILLED),
            "test_every_field_is_shown_or_said_to_be_elsewhere",
            "show {'remark'} in report/text.py",
        ),
    ],
)
def test_a_forgotten_step_is_named(tmp_path, steps, test, said):
    root = copied(tmp_path)
    for file, changes in steps:
        edited(root, file, *changes)
    report = done(root, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"{__file__}::{test}")
    assert report.returncode == 1, report.stdout
    assert said in report.stdout
