"""Attacks and events that a user brings; what attacks answer for themselves, and nobody asks."""

from __future__ import annotations

import ast
import re

import numpy as np
import pytest
from shared_layers import PACKAGE

import dpcore
from dpcore import Laplace, Pair, attacks, events, published
from dpcore.attacks import MajorityVote
from dpcore.attacks.additive import Additive
from dpcore.attacks.attack import AuditAttack, attack_name, attack_of
from dpcore.events import EventRecord, event_of
from dpcore.exact import vote_loss

VOTE = MajorityVote()


def column(x, size, rng):
    return x + rng.laplace(size=(size, 1))


UNIT = dpcore.pairs.zeros_ones(1)


def threshold_attack(outputs, outputs_prime, pair):
    cut = float(np.quantile(outputs_prime[:, 0], 0.9))
    return lambda outputs: outputs[:, 0] > cut


@pytest.mark.parametrize("mechanism", [Laplace(0.5), dpcore.Gaussian(0.5), column])
def test_any_function_can_be_an_attack(mechanism):
    report = dpcore.audit(mechanism, UNIT, trials=20_000, attack=threshold_attack, rng=2)
    assert report.attack.endswith("threshold_attack")
    assert report.direction == "x_prime"
    # The cut is a quantile of the pilot's 2,500 draws: five deviations are .03.
    assert abs(report.counts.k_prime / 20_000 - 0.1) < 0.03
    assert report.epsilon_lower > 0.5
    assert report.exact is None


def test_the_attack_sees_pilot_draws_and_only_those():
    seen = []

    def attack(outputs, outputs_prime, pair):
        seen.append((np.array(outputs), np.array(outputs_prime)))
        return lambda outputs: outputs[:, 0] > 0.5

    for mechanism in (Laplace(1.0), column):
        seen.clear()
        report = dpcore.audit(mechanism, UNIT, trials=4000, attack=attack, rng=3)
        ((outputs, outputs_prime),) = seen
        assert outputs.shape == outputs_prime.shape == (report.pilot, 1)
        for side, pilot in (("x", outputs), ("x_prime", outputs_prime)):
            assert not np.isin(report.outputs(side, 0, 4000), pilot).any()


def test_the_direction_follows_the_pilot():
    def rare(x, size, rng):
        return (rng.random(size) < 0.9 - 0.8 * x[0]).astype(float)

    def above(outputs, outputs_prime, pair):
        return lambda outputs: outputs > 0.5

    def below(outputs, outputs_prime, pair):
        return lambda outputs: outputs < 0.5

    cases = (UNIT, above, "x"), (UNIT, below, "x_prime"), (([1.0], [0.0]), above, "x_prime")
    for pair, attack, direction in cases:
        report = dpcore.audit(rare, pair, trials=5000, attack=attack, rng=4)
        assert report.direction == direction
        assert report.epsilon_lower > 1.5


@pytest.mark.parametrize("attack", [VOTE, lambda a, b, pair: lambda o: np.ones(len(o), bool)])
def test_a_tie_counts_the_vote_for_x_prime_with_x_prime_in_the_numerator(attack):
    def constant(x, size, rng):
        return np.ones((size, 1))

    report = dpcore.audit(constant, UNIT, trials=1000, attack=attack, claim=0.0)
    assert (report.direction, report.epsilon_lower) == ("x_prime", 0.0)
    # The pilot of a vote is too small to tell.
    assert report.verdict.startswith("not refuted" if attack is VOTE else "undecided: all ")
    if attack is VOTE:
        assert report.event.vote == "x_prime"
        tiny = dpcore.audit(constant, UNIT, trials=99, attack=VOTE)
        assert (tiny.pilot, tiny.event.vote, tiny.direction) == (0, "x_prime", "x_prime")


def test_the_pilot_of_the_vote_is_at_most_one_per_cent():
    for trials, pilot in [(99, 0), (100, 1), (12_345, 64), (10**6, 8192), (10**8, 2**17)]:
        report = dpcore.audit(Laplace(1.0), trials=trials, rng=1, attack=VOTE)
        assert report.pilot == pilot <= trials // 100
    # Unless another is asked for.
    assert dpcore.audit(Laplace(1.0), trials=100, rng=1, attack=VOTE, pilot=50).pilot == 50


def test_the_vote_of_the_attack_class_is_that_of_the_audit():
    """MajorityVote called as any attack chooses as the built-in route does, from equal pilots."""
    mechanism, pair = published.HalfNoise(1.0), dpcore.pairs.zeros_ones(2)
    report = dpcore.audit(mechanism, pair, trials=10**5, rng=5, claim=1.0, attack=VOTE)
    sides = (dpcore.sample(mechanism, x, 2000, rng=5) for x in (pair.x, pair.x_prime))
    assert MajorityVote()(*sides, pair) == report.event

    def wrapped(outputs, outputs_prime, pair):
        return MajorityVote()(outputs, outputs_prime, pair)

    again = dpcore.audit(mechanism, pair, trials=10**5, rng=5, claim=1.0, attack=wrapped)
    assert (again.event, again.counts) == (report.event, report.counts)
    assert again.exact == report.exact == pytest.approx(vote_loss(mechanism, pair))


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (lambda o: o[:, 0], r"\('float64', \(\d+,\)\)"),
        (lambda o: (o[:, 0] > 0).astype(int), r"\('int64', \(\d+,\)\)"),
        (lambda o: o > 0, r"\('bool', \(\d+, 1\)\)"),
        (lambda o: (o[:, 0] > 0)[:-1], r"\('bool', \(\d+,\)\)"),
        (lambda o: True, r"\('bool', \(\)\)"),
        (lambda o: None, r"\('object', \(\)\)"),
    ],
)
@pytest.mark.parametrize("mechanism", [Laplace(1.0), column])
def test_an_event_returns_one_bool_an_output(event, text, mechanism):
    text = r"^event must be a function that returns bools of shape \(\d+,\), got " + text
    with pytest.raises(ValueError, match=text):
        dpcore.audit(mechanism, UNIT, trials=2000, attack=lambda a, b, pair: event)


def test_an_event_may_return_a_list():
    def attack(outputs, outputs_prime, pair):
        return lambda outputs: [value > 0.5 for value in outputs[:, 0]]

    assert 0 < dpcore.audit(Laplace(1.0), trials=500, attack=attack).counts.k < 500


def test_an_attack_returns_an_event():
    for found in (None, 1, np.ones(3, bool)):
        with pytest.raises(TypeError, match="event must be a callable outputs -> bools, got"):
            dpcore.audit(Laplace(1.0), trials=500, attack=lambda a, b, pair, found=found: found)


ATTACKS = [
    attacks.Threshold(), attacks.Support(), attacks.Histogram(), attacks.Classifier("logistic"),
    attacks.Classifier("boosting"),
]  # fmt: skip


@pytest.mark.parametrize("value", [7.0, "same", np.nan, -np.inf], ids=str)
@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_outputs_that_never_differ_certify_nothing(attack, value):
    def repeat_value(x, size, rng):
        return np.full((size, 2), value)

    if isinstance(attack, attacks.Classifier):
        pytest.importorskip("sklearn")
    if isinstance(value, str) and attack != attacks.Histogram():
        with pytest.raises(ValueError, match="attack must be one that applies to these outputs"):
            dpcore.audit(repeat_value, UNIT, attack=attack, trials=1000)
        return
    report = dpcore.audit(repeat_value, UNIT, attack=attack, trials=1000, rng=1)
    assert report.epsilon_lower == 0.0


# No package but their own checks the classes of attacks and events.


PACKAGES = ("attacks", "events")
CLASSES = {
    name
    for package in (attacks, events)
    for name, value in vars(package).items()
    if isinstance(value, type) and issubclass(value, (AuditAttack, EventRecord))
} | {"AuditAttack", "EventRecord", "Own", "Given"}
EXCEPTIONS = {
    # JSON keeps the vote in a form of its own.
    # The screen of wide outputs makes what these members make of whole outputs.
    ("auditing/wide_outputs.py", "Auto"),
    ("auditing/wide_outputs.py", "Discriminant"),
    ("auditing/wide_outputs.py", "Threshold"),
}


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
