"""No package but their own checks the classes of attacks and events."""

from __future__ import annotations

import ast
import re

import numpy as np
import pytest
from shared_layers import PACKAGE

from dpcore import Pair, attacks, events
from dpcore.attacks.additive import Additive
from dpcore.attacks.attack import AuditAttack, attack_name, attack_of
from dpcore.events import EventRecord, event_of

PACKAGES = ("attacks", "events")
CLASSES = {
    name
    for package in (attacks, events)
    for name, value in vars(package).items()
    if isinstance(value, type) and issubclass(value, (AuditAttack, EventRecord))
} | {"AuditAttack", "EventRecord", "Own", "Given"}
EXCEPTIONS = {("report/encoding.py", "Vote")}
"""JSON keeps the vote in a form of its own, which readers of earlier versions know."""


def asked(source):
    """Classes of attacks and events that code asks for by isinstance, issubclass or type()."""
    if not CLASSES & set(re.findall(r"\w+", source)):
        return
    for node in ast.walk(ast.parse(source)):
        wanted = []
        called = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
        if called in ("isinstance", "issubclass"):
            wanted = node.args[1:]
        elif isinstance(node, ast.Compare) and "type(" in ast.unparse(node):
            wanted = [node.left, *node.comparators]
        for part in wanted:
            for name in ast.walk(part):
                found = getattr(name, "id", getattr(name, "attr", None))
                if found in CLASSES:
                    yield found


def namesakes(source):
    """Names of such classes that a file imports from elsewhere: `pairs.Histogram` is a domain."""
    return {
        alias.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if not {"attacks", "events"} & set((node.module or "").split("."))
    }


def test_no_other_package_asks_for_the_class_of_an_attack_or_event():
    found = {
        (str(path.relative_to(PACKAGE)), name)
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] not in PACKAGES
        for text in [path.read_text()]
        for name in set(asked(text))
        if name not in namesakes(text)
    }
    assert found <= EXCEPTIONS


@pytest.mark.parametrize(
    "line",
    [
        "isinstance(plan.attack, Timing)", "isinstance(attack, (int, attacks.Support))",
        "type(event) is Vote", "type(attack) in (Auto, MajorityVote)",
        "issubclass(kind, ScoreAttack)",
    ],
)  # fmt: skip
def test_a_planted_question_is_found(line):
    assert list(asked(f"def f():\n    return {line}"))
    assert not list(asked("isinstance(event, Executor) or type(event) is int"))


@pytest.mark.parametrize("name", attacks.NAMES)
def test_an_attack_answers_for_itself(name):
    attack = attacks.named(name)
    assert attack == attacks.NAMES[name]()
    assert attack_of(attack) is attack
    assert attack_name(attack) == type(attack).__name__
    assert (attack.scoring is attack) == isinstance(attack, attacks.ScoreAttack)
    said = {"pools": attack.pools, "times": attack.times, "by_ballot": attack.by_ballot}
    kinds = {"coordinatewise": "pools", "timing": "times", "majority": "by_ballot"}
    assert said == {key: kinds.get(name) == key for key in said}
    assert attack.looks_at_floats == (name == "auto")


def test_functions_have_one_slot_and_subclasses_of_the_vote_with_them():
    class Other(attacks.MajorityVote):
        """Chooses otherwise."""

    for given in (max, Other()):
        attack = attack_of(given)
        assert attack.given is given
        assert attack.scoring is None
        assert not attack.by_ballot

    class Lower(events.Above):
        """Decides otherwise."""

    def function(outputs):
        return outputs > 0

    for event in (Lower(len, 1.0), function):
        assert event_of(event).event is event
        assert event_of(event).own_score is None
    never = events.Never()
    assert event_of(never) is never
    assert not never.happens


def test_auto_has_its_members():
    assert {attacks.Products(), attacks.Residues(), attacks.Words()} <= set(attacks.Auto().members)


UNFIT = {
    Additive(): [[["a"]] * 40, [None] * 40, np.zeros((40, 0)), np.full((40, 2), 2**60), [1j] * 40],
    attacks.Classifier(): [["a", "b"]],
    attacks.Discriminant(): [np.zeros((64, 3)), np.arange(64.0), [["a", "b"]] * 64],
    attacks.FloatLattice(): [
        np.arange(20).reshape(10, 2), np.ones((10, 1), bool), [["a"]] * 10, np.empty((9, 0)),
    ],
    attacks.Histogram(): [np.random.default_rng(29).integers(0, 10**9, 1000)],
    attacks.Residues(): [[["a"]] * 9],
    attacks.Products(): [np.random.default_rng(1).random(100)],
    attacks.Support(): [["a", "b"]],
    attacks.Threshold(): [["a", "b", "c"], np.empty((5, 0))],
    attacks.Words(): [np.zeros((64, 2)), np.zeros(64), [["a b"] * 2] * 64],
}  # fmt: skip


@pytest.mark.parametrize(
    ("attack", "outputs"), [(attack, one) for attack, every in UNFIT.items() for one in every]
)
def test_what_an_attack_cannot_work_on_is_left_to_others(attack, outputs):
    outputs, pair = np.asarray(outputs), Pair([0.0], [1.0])
    assert attack.candidates(outputs, outputs, pair) == ()
    assert not isinstance(attack, attacks.Words) or attack.telling(outputs, outputs) == ()
    with pytest.raises(ValueError, match=r"^attack must be one that applies to these outputs"):
        attack(outputs, outputs, pair)
