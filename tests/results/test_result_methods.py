"""The methods that all results share, on an example of each class; and that none has a truth."""

from __future__ import annotations

import ast
import copy
import json
import os
import pickle
import xml.etree.ElementTree as ElementTree
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from shared_damage import iterate_damaged_texts, list_bad_readings, peak_memory
from shared_extras import needs
from shared_inference import Sign, looked_up, speakers

import dpcore
from dpcore.claims import GDP
from dpcore.divergence import Estimate, renyi
from dpcore.experiments import floating_point
from dpcore.records import Answer, Result
from dpcore.sensitivity import refute
from dpcore.structure import inspect
from dpcore.text import DocumentLinkage, Frontier, RewriterFrontier, frontier, link
from dpcore.text.inference import Inference, infer
from dpcore.text.redaction import Random, SpanScores, Sweep, score_spans, sweep


def make_audit(**options):
    return dpcore.audit(dpcore.Laplace(1.0), trials=1000, claim=1.0, rng=1, **options)


def make_outputs_audit(rows):
    sides = (dpcore.sample(dpcore.Laplace(1.0), [side], 400, rng=1 + int(side)) for side in (0, 1))
    return dpcore.audit_outputs(*sides, rows=rows, claim=1.0, rng=1)


def make_inference():
    corpus, vectors = speakers()
    settings = {"attackers": Sign(), "neighbours": "any two texts", "rng": 1}
    return infer(looked_up(vectors), corpus, "male", **settings)


def make_estimate():
    draw = np.random.default_rng(1)
    rows = draw.normal(size=(200, 2)), draw.normal(size=(200, 2)) + 1.0
    return renyi(*rows, alphas=[1.0, 2.0, 4.0], rows="independent", certified=True, rng=1)


def make_sweep():
    draw = np.random.default_rng(1)
    sets = ([f"{name} {number} {draw.integers(9)}" for number in range(50)] for name in "ab")
    return sweep(*sets, policies=Random(), levels=[0, 1], splits=1, nulls=1, rng=1)


def make_frontier():
    needs("torch", "sklearn")
    draw = np.random.default_rng(1)
    rows = draw.normal(size=(300, 3))
    table = {f"text {row}": vector for row, vector in enumerate(rows)}
    split = np.repeat(["train", "valid", "test"], [150, 50, 100])
    attributes = {"ill": rows[:, 1] > 0.0}
    corpus = dpcore.text.Corpus([*table], rows[:, 0] > 0.0, attributes, split)
    settings = {"attribute": "ill", "attackers": Sign(), "public": rows, "rng": 1}
    return frontier(table, corpus, epsilons=[1.0], dims=[1], **settings)


def make_rewriter_frontier():
    needs("sklearn", "sacrebleu")
    corpus = dpcore.text.generated("topics", 150, rng=1)
    upper = dpcore.text.Rewriter(lambda text: text.upper(), claim=1.0)
    return frontier({"upper": upper}, corpus, attribute="parent", rng=1)


MAKERS = {
    "audit": (dpcore.Audit, make_audit),
    "early stop": (dpcore.Audit, lambda: make_audit(stop="refuted")),
    "outputs": (dpcore.OutputsAudit, lambda: make_outputs_audit("independent")),
    "one run": (dpcore.OutputsAudit, lambda: make_outputs_audit("one_run")),
    "table": (dpcore.TableAudit, lambda: dpcore.audit_table([[0.7, 0.3], [0.2, 0.8]], claim=1.0)),
    "plan": (dpcore.Plan, lambda: dpcore.plan(1.0, true_epsilon=1.5, mass=0.5)),
    "plan of a curve": (dpcore.Plan, lambda: dpcore.plan(GDP(1.0), factor=0.8)),
    "plan of pilots": (dpcore.Plan, lambda: dpcore.plan(1.0, mechanism=dpcore.Laplace(0.5), rng=1)),
    "inference": (Inference, make_inference),
    "estimate": (Estimate, make_estimate),
    "sweep": (Sweep, make_sweep),
    "frontier": (Frontier, make_frontier),
    "rewriters": (RewriterFrontier, make_rewriter_frontier),
    "spans": (
        SpanScores,
        lambda: score_spans([[(0, 4, "PERSON"), (5, 9, "DATE")]], [[(0, 5, "PERSON")]]),
    ),
    "trace": (
        dpcore.Trace,
        lambda: dpcore.trace(lambda x, rng: x + rng.laplace(), (0, 1), claim=0.5, rng=1),
    ),
    "linkage": (
        DocumentLinkage,
        lambda: link(None, ["a b", "a c"], ["a", "c"], by=["words", "bag"]),
    ),
}
NEEDING_EXTRAS = ("frontier", "rewriters")


def mark_extras(names):
    """Return names as parameters, of which those that need extras are marked."""
    return [
        pytest.param(name, marks=pytest.mark.extras if name in NEEDING_EXTRAS else ())
        for name in names
    ]


KINDS = mark_extras(MAKERS)


@cache
def example(name):
    kind, make = MAKERS[name]
    result = make()
    assert type(result) is kind
    return result


def test_every_class_of_results_has_an_example():
    def list_subclasses(kind):
        return {kind, *(one for part in kind.__subclasses__() for one in list_subclasses(part))}

    # By name: a dataclass with slots has a twin. `Evidence` and `FigureTable` are bases of others.
    kinds = (kind for kind in list_subclasses(Result) if kind.__module__.startswith("dpcore."))
    names = {kind.__name__ for kind in kinds} - {"Result", "Evidence", "FigureTable"}
    assert names == {kind.__name__ for kind, _ in MAKERS.values()}


@pytest.mark.parametrize("name", KINDS)
def test_each_method_works(name, tmp_path):
    result = example(name)
    rows = result.lines()
    assert all(isinstance(label, str) and isinstance(text, str) for label, text in rows)
    assert rows[0][1] in " ".join(str(result).split())
    assert isinstance(result.plot(ax=Figure()), Figure)
    page = result.to_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text("utf-8") == page
    root = ElementTree.fromstring(page.removeprefix("<!DOCTYPE html>\n"))
    assert rows[0][1] in "".join(root.itertext())
    assert rows[0][0] in result._repr_html_()
    assert json.loads(result.to_json()) == result.to_dict()


@pytest.mark.parametrize("name", KINDS)
def test_a_saved_result_is_loaded_equal(name, tmp_path):
    result, path = example(name), tmp_path / "result.json"
    result.save(path)
    loaded = type(result).load(str(path))
    assert loaded == result
    assert loaded.to_json() == result.to_json()
    assert loaded.lines() == result.lines()
    assert type(result).from_json(path.read_text("utf-8")) == result
    assert os.listdir(tmp_path) == ["result.json"]


@pytest.mark.parametrize("name", KINDS)
def test_files_of_another_layout_and_broken_ones_are_refused(name, tmp_path):
    result, path = example(name), tmp_path / "result.json"
    form = result.to_dict()["format"]
    for record in ({"format": "dpcore.other/1"}, {**result.to_dict(), "format": form + "0"}, {}):
        path.write_text(json.dumps(record), "utf-8")
        with pytest.raises(ValueError, match=f"format must be '{form}', got") as caught:
            type(result).load(path)
        assert caught.value.__notes__ == [f"read from {path}"]
    path.write_text(json.dumps({"format": form}), "utf-8")
    with pytest.raises(ValueError, match="record must be what"):
        type(result).load(path)
    path.write_text("{", "utf-8")
    with pytest.raises(ValueError, match="text must be JSON"):
        type(result).load(path)
    with pytest.raises(TypeError, match="path must be the path of a file, got 3"):
        result.save(3)
    with pytest.raises(ValueError, match="path must be the path of a file"):
        type(result).load(tmp_path)


CHANGES = [
    ("plan", {"trials": 1.5}, "trials"), ("plan", {"confidence": "high"}, "confidence"),
    ("plan", {"rates": [[0.1]]}, "rates"), ("plan", {"seed": "x"}, "seed"),
    ("plan", {"seen": 1}, "seen"), ("plan of a curve", {"curve": "mu"}, "curve"),
    ("table", {"inputs": True}, "inputs"), ("estimate", {"alphas": [1.0]}, "alphas"),
    ("estimate", {"belief": "yes"}, "belief"), ("sweep", {"points": [1]}, "points"),
    ("inference", {"floors": None}, "floors"), ("inference", {"left_out": []}, "left_out"),
    ("linkage", {"linkages": []}, "linkages"), ("linkage", {"candidates": 1}, "candidates"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change", "field"), CHANGES)
def test_fields_of_another_kind_are_refused(name, change, field):
    result = example(name)
    with pytest.raises(ValueError, match=field):
        type(result).from_dict(result.to_dict() | change)
    assert type(result).from_dict(result.to_dict()) == result  # the control


def test_a_write_that_fails_leaves_the_file_before_it(tmp_path, monkeypatch):
    path = tmp_path / "result.json"
    example("plan").save(path)
    monkeypatch.setattr(os, "replace", lambda *names: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        example("table").save(path)
    assert os.listdir(tmp_path) == ["result.json"]
    assert dpcore.Plan.load(path) == example("plan")


@pytest.mark.parametrize("name", KINDS)
def test_equality_copies_and_pickles_still_work(name):
    result = example(name)
    for twin in (copy.copy(result), copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        assert twin == result
    if name not in (
        "inference",
        "estimate",
        "sweep",
        "frontier",
        "rewriters",
    ):  # these hold dictionaries
        assert len({result, copy.copy(result)}) == 1
    assert result != example("table" if name != "table" else "plan")


ANSWERS = {
    **{name: lambda name=name: example(name) for name in MAKERS},
    "refutation": lambda: refute(sum, 1.0, "l1", dpcore.pairs.Box(0, 1, 2), trials=50, rng=1),
    "inspection": lambda: inspect(dpcore.Laplace(1.0), [0.0], draws=200, rng=1),
    "check": lambda: inspect(dpcore.Laplace(1.0), [0.0], draws=200, rng=1).checks[0],
    "experiment": lambda: floating_point.Result(floating_point.Config(), rows=()),
}
INSTEAD = {
    "plan": "reached", "plan of a curve": "reached", "plan of pilots": "reached",
    "inference": "above_floor", "estimate": "belief", "sweep": "points", "frontier": "cells",
    "linkage": "linkages", "spans": "scores", "rewriters": "rows", "trace": "outcome",
    "inspection": "passed", "check": "flagged", "experiment": "table",
}  # fmt: skip


def assert_it(report):
    assert report


TRUTHS = {
    "bool": bool,
    "if": lambda report: 1 if report else 2,
    "not": lambda report: not report,
    "and": lambda report: report and True,
    "or": lambda report: report or True,
    "any": lambda report: any([report]),
    "all": lambda report: all([report]),
    "filter": lambda report: [*filter(None, [report])],
    "assert": assert_it,
}


@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize("name", mark_extras(ANSWERS))
def test_a_result_is_neither_true_nor_false(name, truth):
    report = ANSWERS[name]()
    attribute = INSTEAD.get(name, "refuted")
    with pytest.raises(TypeError, match=r"a report is neither true nor false: use \.") as caught:
        TRUTHS[truth](report)
    assert f"use .{attribute}" in str(caught.value)
    assert isinstance(report, Answer)
    assert hasattr(report, attribute)


MAKING = {"audit", "audit_outputs", "audit_table", "plan", "infer", "sweep", "frontier", "refute"}
"""Functions that return results."""


def find_truths(text):
    """Return lines that test a name or attribute of a report, or what makes one, for truth."""

    def is_report(node):
        match node:
            case ast.Name(name) | ast.Attribute(attr=name):
                return name in ("report", "audit", "inference", "inspection", "refutation")
            case ast.Call(ast.Name(name) | ast.Attribute(attr=name)):
                return name in MAKING
        return False

    tested = []
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.If() | ast.While() | ast.IfExp() | ast.Assert():
                tested.append(node.test)
            case ast.BoolOp():
                tested += node.values[:-1]
            case ast.UnaryOp(ast.Not()):
                tested.append(node.operand)
            case ast.comprehension():
                tested += node.ifs
    return [node.lineno for node in tested if is_report(node)]


def test_no_file_tests_a_report_for_its_truth():
    root = Path(__file__).parents[2]
    found = []
    for folder in ("python", "examples", "docs"):
        for path in sorted((root / folder).rglob("*.py")):
            if path != Path(__file__):
                found += [f"{path}:{line}" for line in find_truths(path.read_text("utf-8"))]
    assert found == []
    planted = "if report: pass\nx = not row.audit\nassert dpcore.audit(f)\ny = audit and 1\n"
    assert sorted(find_truths(planted)) == [1, 2, 3, 4]


# Damaged files.


def read_damaged(name, many):
    result = example(name)

    def read(content):
        return getattr(type(result).from_json(content), "verdict", None)

    damaged = iterate_damaged_texts(result.to_json(), many, seed=1)
    return list_bad_readings(damaged, read, getattr(result, "verdict", None))


@pytest.mark.parametrize("name", KINDS)
def test_a_damaged_text_is_an_error_or_the_same_verdict(name):
    assert read_damaged(name, 100) == []


@pytest.mark.sweep
@pytest.mark.parametrize("name", KINDS)
def test_no_damaged_text_gives_another_verdict(name):
    before = peak_memory()
    assert read_damaged(name, 2000) == []
    assert peak_memory() - before < 2**30
