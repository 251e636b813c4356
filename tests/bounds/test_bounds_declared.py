"""Declarations of bounds: what stands beside a proof, and that nothing asks for a bound by name."""

from __future__ import annotations

import ast
import inspect
import pickle
import re
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import dpcore
from dpcore import bounds
from dpcore.bounds import BOUNDS, ONE_RUN
from dpcore.bounds.binomial import Declared, find_declaration

EVERY = {**BOUNDS, **ONE_RUN}


@pytest.mark.parametrize("name", EVERY)
def test_a_bound_has_a_form_for_the_deltas_that_it_declares(name):
    counts = (dpcore.Counts(30, 100, 5, 100),) if name in BOUNDS else (40, 30, 60)
    for delta, words in ((0.0, ("any", "zero")), (0.05, ("any", "positive"))):
        has_form = find_declaration(EVERY[name]).deltas in words
        with nullcontext() if has_form else pytest.raises(ValueError, match=r"^delta must be "):
            assert EVERY[name](*counts, delta, 0.95) >= 0.0


@pytest.mark.parametrize("name", EVERY)
def test_a_declared_bound_is_a_plain_function(name):
    bound = EVERY[name]
    assert inspect.isfunction(bound)
    # Of layers there is at most the one that tells of misspelt arguments.
    assert inspect.unwrap(bound) is getattr(bound, "__wrapped__", bound)
    assert pickle.loads(pickle.dumps(bound)) is bound


def test_every_bound_covers_at_all_tables_of_twelve_draws_per_side():
    """The probability to overclaim is a sum; a bound of level .6 that states .9 is the control."""
    tables = [dpcore.Counts(k, 12, k_prime, 12) for k in range(13) for k_prime in range(13)]

    def find_largest_error(bound, level):
        limits = np.array([bound(counts, 0.0, level) for counts in tables])
        q, error = np.linspace(0.01, 0.99, 99), 0.0
        for epsilon in (0.0, 0.5, 1.0, 2.0):
            p = np.minimum(np.exp(epsilon) * q, 1.0)
            laws = (stats.binom.pmf(np.arange(13), 12, rate[:, None]) for rate in (p, q))
            each = np.einsum("ri,rj->rij", *laws).reshape(len(q), -1)
            error = max(error, (each @ (limits > epsilon)).max())
        return error

    for bound in BOUNDS.values():
        assert find_largest_error(bound, 0.9) <= 0.1 + 1e-12
    assert find_largest_error(bounds.berger_boos, 0.6) > 0.1


def test_a_bound_for_a_delta_of_its_own_refuses_the_others():
    # What it refuses is in the table of messages.
    Declared(title="any").check_bound_allows_delta("any", 0.0)
    Declared(title="zero", deltas="zero").check_bound_allows_delta("zero", 0.0)
    Declared(title="positive", deltas="positive").check_bound_allows_delta("positive", 0.1)


def test_titles_differ_and_an_undeclared_function_has_its_name_for_one():
    assert len({find_declaration(bound).title for bound in EVERY.values()}) == len(EVERY)

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
    names = re.compile(rf"""["']({"|".join(EVERY)})["']""")
    for path in sorted(package.parent.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        asked = path.parent != package and names.search(text) and asked_by_name(text)
        assert not asked, f"ask `find_declaration` in {path}"


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
