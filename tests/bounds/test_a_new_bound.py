"""A bound is its own file and its re-export: a toy works everywhere, then a step is left out."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import pickle
import pkgutil
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

import dpcore
from dpcore import bounds
from dpcore.bounds import BOUNDS, ONE_RUN
from dpcore.bounds.declaration import Declared, find_declaration

EVERY = {**BOUNDS, **ONE_RUN}


@pytest.mark.parametrize("name", EVERY)
def test_a_bound_has_a_form_for_the_deltas_that_it_declares(name):
    counts = (dpcore.Counts(30, 100, 5, 100),) if name in BOUNDS else (40, 30, 60)
    for delta, words in ((0.0, ("any", "zero")), (0.05, ("any", "positive"))):
        has_form = find_declaration(EVERY[name]).deltas in words
        with nullcontext() if has_form else pytest.raises(ValueError, match=r"^delta must be "):
            assert EVERY[name](*counts, delta, 0.95) >= 0.0


# What a forgotten step is told by.


def test_every_bound_in_a_table_declares_itself_in_its_file():
    for name, bound in EVERY.items():
        told = f"give bound {name} a title in its file: @Declared(title=...)"
        assert isinstance(getattr(bound, "declared", None), Declared), told
        assert bound.__name__ == name, f"call {name} what its function is called"


def test_every_declared_bound_stands_in_its_table_and_in_all():
    for found in pkgutil.iter_modules(bounds.__path__):
        module = importlib.import_module(f"dpcore.bounds.{found.name}")
        for name, bound in vars(module).items():
            own = getattr(bound, "__module__", None) == module.__name__
            if not own or not isinstance(getattr(bound, "declared", None), Declared):
                continue
            rows = find_declaration(bound).rows
            table = {"independent": "BOUNDS", "one_run": "ONE_RUN"}[rows]
            told = f"enter bound {name} in {table} of dpcore/bounds/__init__.py"
            assert getattr(bounds, table).get(name) is bound, told
            assert name in bounds.__all__, f"enter bound {name} in __all__ of dpcore/bounds"


def test_titles_are_told_apart():
    assert len({find_declaration(bound).title for bound in EVERY.values()}) == len(EVERY)


@pytest.mark.parametrize("name", EVERY)
def test_a_declared_bound_is_a_plain_function(name):
    bound = EVERY[name]
    assert inspect.isfunction(bound)
    # Of layers there is at most the one that tells of misspelt arguments.
    assert inspect.unwrap(bound) is getattr(bound, "__wrapped__", bound)
    assert pickle.loads(pickle.dumps(bound)) is bound


def test_a_bound_for_a_delta_of_its_own_refuses_the_others():
    Declared(title="any").check_delta("any", 0.0)
    Declared(title="zero", deltas="zero").check_delta("zero", 0.0)
    Declared(title="positive", deltas="positive").check_delta("positive", 0.1)
    with pytest.raises(ValueError, match=r"^bound must be another than 'zero' where delta"):
        Declared(title="zero", deltas="zero").check_delta("zero", 0.1)
    with pytest.raises(ValueError, match=r"^delta must be above 0 for the bound positive"):
        Declared(title="positive", deltas="positive").check_delta("positive", 0.0)


def test_an_undeclared_function_has_its_name_for_a_title():
    def no_title(counts, delta=0.0, confidence=0.95):
        return 0.0

    assert find_declaration(no_title) == Declared(title="no title")


# Nobody asks for a bound by its name.

OTHERS = {"exact", *ONE_RUN}
"""Names that are also a module's, a column's or a kind of rows."""


def asked_by_name(text):
    """Where Python code compares with, looks up or lists names of bounds."""
    found = []
    for node in ast.walk(ast.parse(text)):
        names, said = [], set(EVERY)
        if isinstance(node, ast.Compare) and "rows" not in ast.unparse(node):
            names = [part for side in (node.left, *node.comparators) for part in ast.walk(side)]
        elif isinstance(node, ast.Subscript) and "BOUNDS" in ast.unparse(node.value):
            names = list(ast.walk(node.slice)) if ast.unparse(node.value) == "BOUNDS" else []
            said = said - set(ONE_RUN)
        elif isinstance(node, (ast.Tuple, ast.List, ast.Set, ast.Dict)):
            names = node.keys if isinstance(node, ast.Dict) else node.elts
            said = said - OTHERS
        values = {part.value for part in names if isinstance(part, ast.Constant)}
        if said & {value for value in values if isinstance(value, str)}:
            found.append(ast.unparse(node))
    return found


def test_no_file_outside_the_package_asks_for_a_bound_by_its_name():
    package = Path(bounds.__file__).parent
    for path in sorted(package.parent.rglob("*.py")):
        if path.parent != package:
            assert not asked_by_name(path.read_text(encoding="utf-8")), (
                f"ask `find_declaration` in {path}"
            )


@pytest.mark.parametrize(
    "planted",
    [
        'if bound == "conditional" and delta: pass',
        'slow = audit.bound in ("exact", "conditional")',
        '_IMPLIED = ("clopper_pearson", "anytime")',
        'TITLES = {"clopper_pearson": "Clopper-Pearson"}',
        'bound = BOUNDS["exact"]',
        'bound = BOUNDS["clopper_pearson" if fixed else audit.bound]',
    ],
)
def test_a_planted_ladder_is_found(planted):
    assert asked_by_name(planted)


# The toy.

FILE = '''"""A toy."""

from ..records import Counts
from .binomial import clopper_pearson
from .declaration import Declared


@Declared(title="never seen before", recorded=True)
def toy(counts: Counts, delta: float = 0.0, confidence: float = 0.95) -> float:
    """The bound of another name."""
    return clopper_pearson(counts, delta, confidence)
'''

EXPORT = (
    ("from .tradeoff import", "from .toy import toy\nfrom .tradeoff import"),
    ('    "anytime": anytime,\n', '    "anytime": anytime,\n    "toy": toy,\n'),
    ('    "tradeoff_band",\n', '    "toy",\n    "tradeoff_band",\n'),
)
IMPORT, TABLE, ALL = EXPORT

USES = """
import io, pickle, contextlib
import dpcore
from dpcore import cli

TITLE = {title!r}
asked = dict(trials=20_000, rng=1, bound="toy", attack=dpcore.attacks.MajorityVote())
mechanism = dpcore.published.HalfNoise(1.0)
first = dpcore.audit(mechanism, **asked)
second = dpcore.audit(mechanism, start=20_000, **asked)
assert first.refuted and first.bound == "toy"
assert TITLE in str(first)
assert TITLE in first._repr_html_()
first.to_html("audit.html")
assert TITLE in open("audit.html", encoding="utf-8").read()
open("audit.json", "w").write(first.to_json())
assert dpcore.Audit.from_json(first.to_json()) == first == pickle.loads(pickle.dumps(first))
assert (first + second).bound == "toy" and TITLE in str(first + second)
looked = first.merge(second, looked=True)
assert (looked.bound, looked.stop) == ("anytime", "looked") and str(looked)
assert "bound='toy'" in dpcore.report.script.format_call(first)

outputs = [[(i + j) / 7 for j in range(400)] for i in (0, 300)]
recorded = dpcore.audit_outputs(*outputs, rows="independent", bound="toy", rng=1, claim=0.1)
assert TITLE in str(recorded)
assert dpcore.OutputsAudit.from_json(recorded.to_json()) == recorded
for more in (dict(paired=True), dict(rows="one_run")):
    try:
        dpcore.audit_outputs(*outputs, **dict(rows="independent", bound="toy", rng=1) | more)
        raise SystemExit("not refused")
    except ValueError as error:
        assert str(error).startswith("bound must be"), error
for more in (dict(stop="refuted", claim=0.1, attack="auto"),
             dict(attack=dpcore.attacks.Coordinatewise())):
    try:
        dpcore.audit(mechanism, **asked | more)
        raise SystemExit("not refused")
    except ValueError as error:
        assert str(error).startswith("bound must be left alone"), error

out = io.StringIO()
with contextlib.redirect_stdout(out):
    words = "audit half-noise --epsilon 1 --trials 2e4 --seed 1 --attack majority --bound toy"
    assert cli.main(words.split()) == 1
    assert cli.main(["audit", "--help"]) == 0
assert TITLE in out.getvalue()
assert "conditional, anytime or toy." in " ".join(out.getvalue().replace("│", " ").split())
"""

FRESH = """
import dpcore
report = dpcore.Audit.from_json(open("audit.json").read())
assert report.bound == "toy" and {title!r} in str(report) and report.refuted
"""

PLUGIN = """
import dpcore
def test_it(dp_audit):
    report = dp_audit.refutes(dpcore.published.HalfNoise(1.0), bound="toy", trials=20_000)
    assert report.bound == "toy"
def test_that_fails(dp_audit):
    dp_audit(dpcore.published.HalfNoise(1.0), bound="toy", trials=20_000)
"""


def copied(tmp_path, file, steps):
    """A copy of the package with a new bound; returns how to run Python on it."""
    package = tmp_path / "copy" / "dpcore"
    source = Path(dpcore.__file__).parent
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "bounds" / "toy.py").write_text(file)
    export = package / "bounds" / "__init__.py"
    text = export.read_text()
    for old, new in steps:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    export.write_text(text)

    def run(*words):
        environment = {**os.environ, "PYTHONPATH": str(package.parent), "COLUMNS": "120"}
        return subprocess.run(
            [sys.executable, *words], cwd=tmp_path, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip

    return run


@pytest.mark.parametrize(
    ("file", "title"),
    [
        (FILE, "never seen before"),
        # Not declared: named by a test below, and still no KeyError for a user.
        (FILE.replace('(title="never seen before", recorded=True)', ""), "toy"),
    ],
)
def test_a_new_bound_works_throughout_the_package(tmp_path, file, title):
    uses = USES
    if title == "toy":
        file = file.replace("@Declared\n", "")
        # What says nothing of recorded outputs is not offered for them.
        start, end = uses.index("outputs ="), uses.index("for more in (dict(stop")
        uses = uses[:start] + uses[end:]
    run = copied(tmp_path, file, EXPORT)
    for script in (uses, FRESH):
        done = run("-c", script.replace("{title!r}", repr(title)))
        assert done.returncode == 0, done.stdout
    (tmp_path / "test_inner.py").write_text(PLUGIN)
    done = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_inner.py")
    assert "1 failed, 1 passed" in done.stdout
    assert "KeyError" not in done.stdout
    assert title in done.stdout


@pytest.mark.parametrize(
    ("file", "steps", "told"),
    [
        (
            FILE.replace('@Declared(title="never seen before", recorded=True)\n', ""),
            EXPORT,
            "give bound toy a title in its file",
        ),
        (FILE, (IMPORT, ALL), "enter bound toy in BOUNDS of dpcore/bounds/__init__.py"),
        (FILE, (IMPORT, TABLE), "enter bound toy in __all__ of dpcore/bounds"),
        (FILE, (), "enter bound toy in BOUNDS of dpcore/bounds/__init__.py"),
        (
            FILE.replace('title="never seen before", ', ""),
            EXPORT,
            "missing 1 required keyword-only argument: 'title'",
        ),
    ],
)
def test_a_forgotten_step_is_named(tmp_path, file, steps, told):
    run = copied(tmp_path, file, steps)
    here = [f"{__file__}::{test.__name__}" for test in (
        test_every_bound_in_a_table_declares_itself_in_its_file,
        test_every_declared_bound_stands_in_its_table_and_in_all,
    )]  # fmt: skip
    done = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), *here)
    assert done.returncode != 0
    assert told in done.stdout
