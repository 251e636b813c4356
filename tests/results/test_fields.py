"""What is told of the fields of a result: forgetting a rule refuses, it never loses anything."""

from __future__ import annotations

import ast
import inspect
import math
from dataclasses import MISSING, dataclass, field, fields, replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared_layers import PACKAGE

import dpcore
from dpcore import Audit, Counts, Laplace, OutputsAudit, Pair, audit, audit_outputs
from dpcore.attacks import MajorityVote
from dpcore.auditing.run import SETTLED_FIELDS
from dpcore.events import Vote
from dpcore.pairs import Searched
from dpcore.records import PartsRead, SeenOutput
from dpcore.results import audits
from dpcore.results.evidence import Spent, field_rule, merge_later, total

STEP = {"trials": 1000, "rng": 1, "attack": MajorityVote(), "claim": 1.0}
FIRST = audit(Laplace(1.0), **STEP)
SECOND = audit(Laplace(1.0), start=1000, **STEP)
OUTPUTS = audit_outputs([3, 1, 2, 4, 0, 9], [0, -1, 1.5, 2, 2, 1], rows="independent", rng=1)


@pytest.mark.parametrize("cls", [Audit, OutputsAudit])
def test_of_every_field_is_told_how_it_is_read_and_merged(cls):
    forgotten = [f.name for f in fields(cls) if not {"read", "merge"} <= set(f.metadata)]
    assert not forgotten, f"metadata=told(...) is missing of {forgotten}"


def test_what_is_worked_out_together_is_worked_out():
    wanted = {f.name for f in fields(Audit) if f.metadata["merge"] is merge_later}
    assert set(audits._jointly_merged_fields(FIRST, SECOND, "fixed")) == wanted


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Longer(Audit):
    """An audit with a field more, of which all is told."""

    extra: int = field(default=0, metadata=field_rule(merge=total))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Silent(Audit):
    """An audit with a field more, of which nothing is told."""

    extra: int = 0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LongerOutputs(OutputsAudit):
    """An audit of recorded outputs with a field more."""

    extra: int = 7


def longer(cls, report, **more):
    return cls(**{f.name: getattr(report, f.name) for f in fields(report)}, **more)


@pytest.mark.parametrize(
    ("cls", "report"), [(Longer, FIRST), (Silent, FIRST), (LongerOutputs, OUTPUTS)]
)
def test_a_file_without_the_field_is_refused(cls, report):
    with pytest.raises(ValueError, match=r"got KeyError\('extra'\)$"):
        cls.from_json(report.to_json())
    whole = longer(cls, report, extra=5)
    assert cls.from_json(whole.to_json()) == whole


def test_a_field_is_merged_by_its_rule_from_either_side():
    first, second = longer(Longer, FIRST, extra=2), longer(Longer, SECOND, extra=3)
    both = first + second
    assert type(both) is Longer
    assert (both.extra, both) == (5, second + first)
    assert hash(both) == hash(second + first)


def test_a_field_of_which_nothing_is_told_must_be_equal():
    first, second = longer(Silent, FIRST, extra=2), longer(Silent, SECOND, extra=3)
    for one, other in ((first, second), (second, first)):
        with pytest.raises(
            ValueError, match=r"^extra of the second audit must be \d as in the fir"
        ):
            one + other
    assert (first + replace(second, extra=2)).extra == 2


@pytest.mark.sweep
@pytest.mark.parametrize("changes", [
    {"route": "sampled", "notes": ("one", "two"), "nan": 3, "nan_prime": 4, "pilot": 9,
     "randomness": "own", "checks": ("odd",), "threads": 64, "seconds": 9.0},
    {"stop": "interrupted", "bound": "anytime", "partial": True},
], ids=["all", "interrupted"])  # fmt: skip
def test_the_order_of_addition_is_indifferent(changes):
    for first, second in ((FIRST, replace(SECOND, **changes)), (replace(FIRST, **changes), SECOND)):
        both = first + second
        assert both == second + first
        assert hash(both) == hash(second + first)
        assert (str(both), both.to_json()) == (str(second + first), (second + first).to_json())


def test_what_is_counted_adds_up():
    changes = {"nan": 3, "nan_prime": 5, "seconds": 2.0, "threads": 3, "pilot": 9}
    other = {"nan": 4, "nan_prime": 2, "seconds": 1.0, "threads": 2, "pilot": 9}
    both = replace(FIRST, **changes) + replace(SECOND, **other)
    assert (both.nan, both.nan_prime, both.seconds, both.threads) == (7, 7, 3.0, 3)
    assert (both.pilot, both.counts) == (9, FIRST.counts + SECOND.counts)


@given(st.data())
def test_both_results_have_one_estimate_of_the_same_counts(data):
    n, n_prime = (data.draw(st.integers(1, 10**6)) for _ in range(2))
    counts = Counts(data.draw(st.integers(0, n)), n, data.draw(st.integers(0, n_prime)), n_prime)
    one, other = replace(FIRST, counts=counts), replace(OUTPUTS, evidence=counts)
    assert one.epsilon_hat == other.epsilon_hat
    cells = [(c.k * c.n_prime, c.k_prime * c.n) for c in (counts, counts.complement())]
    if all(first and second for first, second in cells):
        # Quotients of integers, the equation itself, on sides of different sizes too.
        loss = max(abs(math.log(Fraction(first, second))) for first, second in cells)
        assert one.epsilon_hat == pytest.approx(loss, rel=1e-9, abs=1e-12)


def test_an_audit_is_one_class_with_all_its_fields():
    # Python 3.13 removes the indentation of docstrings itself; getdoc does so in each version.
    text = inspect.getdoc(Audit)
    assert text.startswith("A finished audit.")
    for f in fields(Audit):
        assert f"\n    {f.name}: " in text or f.name in ("nan_prime",)
    required = [f.name for f in fields(Audit) if f.default is MISSING]
    assert (required[0], required[-1]) == ("mechanism", "end")


def test_audits_are_frozen():
    with pytest.raises(AttributeError):
        FIRST.claim = 5.0


@pytest.mark.parametrize(("name", "value"), [("ranges", [[0]]), ("seconds", "soon"), ("seed", "x")])
def test_a_value_that_python_cannot_read_is_named(name, value):
    with pytest.raises(ValueError, match=f"^{name} must be what a result holds there, got "):
        Audit.from_dict({**FIRST.to_dict(), name: value})


# Every field of `Audit` is filled, and shown by the text or said to be elsewhere.


AUDIT = dpcore.audit(dpcore.Laplace(1.0), attack=MajorityVote(), trials=1000, claim=1.0, rng=1)

CHANGED = {
    "mechanism": dpcore.Laplace(2.0), "pair": Pair([0.0], [2.0]), "delta": 0.1,
    "event": Vote.between(Pair([0.0], [2.0])), "direction": "x", "claim": 2.0,
    "counts": Counts(1, 1000, 2, 1000),
    "confidence": 0.9, "seed": 77, "block": 7, "route": "callable", "ranges": ((5, 1005),),
    "nan": 3, "nan_prime": 3, "pilot": 99, "partial": True, "bound": "exact", "floats": True,
    "stop": "interrupted", "checks": ("odd",), "notes": ("noted",), "neighbour": "L1(1)",
    "shape": (2,), "threads": 9, "seconds": 9.0, "runs_on": "cuda, torch 2.15.0",
    "clean": Pair([0.0, 0.0], [0.5, 0.5]), "declared_loss": 0.5, "budget": 60.0,
    "searched": Searched(9, 1, 8, 60.0, True), "spent": (Spent("count", 9.0, 5),),
    "read": PartsRead(9, 8, 7), "inside": (SeenOutput("never", 1, 0),),
    "constant": "all 16 pilot outputs per side were 3.0",
}  # fmt: skip
"""Another value of a field, with which the report must say something else."""

UNSEEN = {
    "attack": "the witness is what it found; the page and a failed test name it",
    "end": "only where the code that repeats the audit is written",
    "randomness": "a note speaks where it is no seed's, by a sentence of the audit that ran",
    "pooled": "rows of the groups, with an event that pools: test_report",
    "floating_point": "the row `rounding`: test_report",
    "rounding_won": "the rows `rounding` and `other event`: test_report_words",
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
    assert not unshown, f"show {unshown} in results/audit_text.py, and change it here"
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
