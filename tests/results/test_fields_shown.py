"""Every field of `Audit` is filled, and shown by the text or said to be elsewhere."""

from __future__ import annotations

import ast
from dataclasses import fields, replace

import pytest
from shared_layers import PACKAGE

import dpcore
from dpcore import Audit, Counts, Pair
from dpcore.attacks import MajorityVote
from dpcore.auditing.run import SETTLED_FIELDS
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


def find_unshown(names):
    """Return the fields that the text neither shows nor is said to leave out."""
    return names - set(CHANGED) - set(UNSEEN)


def test_every_field_is_shown_or_said_to_be_elsewhere():
    names = {field.name for field in fields(Audit)}
    unshown = find_unshown(names)
    assert not unshown, f"show {unshown} in report/text.py, and change it here"
    assert set(CHANGED) | set(UNSEEN) == names
    assert find_unshown(names | {"remark"}) == {"remark"}


@pytest.mark.parametrize("name", CHANGED)
def test_the_text_follows_the_field(name):
    assert str(replace(AUDIT, **{name: CHANGED[name]})) != str(AUDIT)


def find_unfilled(trees, names):
    """Return the fields that code names neither as an argument nor as the key of a dict."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    given = {word.arg for node in nodes if isinstance(node, ast.Call) for word in node.keywords}
    keys = [key for node in nodes if isinstance(node, ast.Dict) for key in node.keys]
    return names - given - {key.value for key in keys if isinstance(key, ast.Constant)}


def test_an_audit_fills_every_field():
    names = {field.name for field in fields(Audit)} - set(SETTLED_FIELDS)
    trees = [ast.parse(path.read_text()) for path in (PACKAGE / "auditing").glob("*.py")]
    assert not find_unfilled(trees, names)
    # The controls: what is left out is named.
    assert find_unfilled(trees, names | {"remark"}) == {"remark"}
    assert "nan" in find_unfilled([ast.parse("make_audit(request, source, pilot=3)")], names)
