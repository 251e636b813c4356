"""Outputs that are no real numbers: what a score written by hand certifies, `auto` certifies too.

In every case no output comes twice, so that only a part of it tells the sides apart.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats
from shared_parts import CASES, PAIR, Leaky

import dpcore
from dpcore import Audit, audit_outputs
from dpcore.attacks import Additive, Auto, Histogram, Support, Threshold
from dpcore.mechanisms.callables import Raised

TRIALS = 40_000


def audited(name, loss, **more):
    return dpcore.audit(
        Leaky(name, loss), PAIR, **{"claim": 1.0, "trials": TRIALS, "rng": 11, **more}
    )


@pytest.mark.parametrize("name", CASES)
def test_auto_certifies_what_a_score_written_by_hand_does(name):
    found = audited(name, CASES[name].broken)
    by_hand = audited(name, CASES[name].broken, attack=Threshold(CASES[name].score))
    assert by_hand.epsilon_lower > 2.0
    assert found.epsilon_lower >= 0.9 * by_hand.epsilon_lower
    assert found.refuted


@pytest.mark.parametrize("name", CASES)
def test_a_private_twin_passes(name):
    report = audited(name, 1.0)
    assert 0.85 < report.epsilon_lower < 1.0
    assert report.refuted is False


# Soundness.

AUDITS = max(100, int(os.environ.get("DPCORE_AUDITS", "400")) // 4)
CONFIDENCE = 0.9
ALPHA = 1e-4
MOST = int(stats.binom.isf(ALPHA, AUDITS, 1 - CONFIDENCE))
"""Refutations of a true claim that chance allows: P(more | 10 %) < ALPHA."""
SOUND = ("first letter", "structured", "labelled")


def refuted(name, claim, trials, seed):
    settings = {"trials": trials, "confidence": CONFIDENCE, "bound": "exact", "rng": seed}
    return dpcore.audit(Leaky(name, 1.0), PAIR, claim=claim, **settings).refuted


@pytest.mark.parametrize("name", SOUND)
def test_a_true_claim_is_refuted_as_seldom_as_promised(name):
    assert sum(refuted(name, 1.0, 400, seed) for seed in range(AUDITS)) <= MOST


@pytest.mark.parametrize("name", SOUND)
def test_control_a_claim_of_half_the_loss_is_refuted_often(name):
    assert sum(refuted(name, 0.5, 2000, seed) for seed in range(30)) > 20


# Every score attack, and every way to run one.


@pytest.mark.parametrize("attack", [Threshold(), Additive(), Histogram(), Support()], ids=str)
def test_every_score_attack_is_fitted_on_parts(attack):
    loss = 9.0 if isinstance(attack, Support) else 4.0
    report = audited("withheld", loss, attack=attack)
    assert report.epsilon_lower > 0.85 * (4.0 if loss == 4.0 else 6.0)


def test_an_attack_is_called_on_strings():
    rng = np.random.default_rng(1)
    sides = [Leaky("first letter", 2.2)([x], 4000, rng) for x in (0.0, 1.0)]
    event = Auto()(*sides, dpcore.Pair(*PAIR))
    assert "code of letter 1 from the start" in str(event)
    counts = [int(event(side).sum()) for side in sides]
    assert abs(counts[0] - counts[1]) > 2500


def test_a_score_of_ones_own_sees_outputs_and_never_parts():
    seen = set()

    def own(outputs):
        seen.add(outputs.dtype.kind)
        return np.array([float(ord(one[0])) for one in outputs])

    attack = Auto((Threshold(own), *Auto().members))
    assert audited("first letter", 2.2, attack=attack).epsilon_lower > 2.0
    assert seen == {"U"}


def test_early_stop_learns_from_parts():
    assert audited("first letter", 2.2, stop="refuted").refuted
    assert audited("labelled", 1.0, stop="refuted", trials=3000).refuted is False


# Records.


@pytest.mark.parametrize("name", ["first letter", "structured", "labelled", "mappings", "sets"])
def test_an_audit_is_read_in_a_fresh_process(name):
    report = audited(name, 2.2, trials=5000)
    assert pickle.loads(pickle.dumps(report)) == report
    script = (
        "import sys, dpcore; from dpcore import Audit; "
        "print(Audit.from_json(sys.stdin.read()).to_json(), end='')"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=report.to_json(), capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    read = Audit.from_json(done.stdout)
    assert (read.event, read.counts) == (report.event, report.counts)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("first letter", "code of letter 1 from the start"),
        ("complex rows", "imaginary part of entry 3"),
        ("structured", 'entry 1 of field "value" of field "inner"'),
        ("labelled", "place 1"),
        ("mappings", 'key "count"'),
    ],
)
def test_a_report_names_the_part(name, words):
    report = audited(name, 4.0)
    assert words in str(report.event)
    assert words in str(report)


# What has no parts.


class Opaque:
    """Two of them are never equal, and nothing can be read off one."""


class Unhashable:
    __hash__ = None


class Token:
    """Without parts, but equal ones are equal."""

    def __init__(self, word):
        self.word = word

    def __eq__(self, other):
        return self.word == other.word

    def __hash__(self):
        return hash(self.word)


def tokens(x, size, rng):
    told = rng.random(size) < 0.2 + 0.6 * x[0]
    return [Token("a" if one else "b") for one in told]


def test_other_objects_are_compared_whole():
    report = dpcore.audit(tokens, PAIR, claim=1.0, trials=20_000, rng=1)
    assert 1.25 < report.epsilon_lower < np.log(4.0)


def test_other_objects_inside_are_compared_whole():
    def inside(x, size, rng):
        return list(zip(rng.normal(size=size).tolist(), tokens(x, size, rng), strict=True))

    report = dpcore.audit(inside, PAIR, claim=1.0, trials=20_000, rng=1)
    assert 1.25 < report.epsilon_lower < np.log(4.0)
    assert "outcome of entry 1" in str(report.event)
    # JSON has no such objects: the event's words stay.
    assert Audit.from_json(report.to_json()).counts == report.counts


@pytest.mark.parametrize(
    ("make", "where", "kind"),
    [
        (Opaque, "", "Opaque"),
        (lambda: (1.5, Opaque()), r" \(entry 1\)", "Opaque"),
        (Unhashable, "", "Unhashable"),
    ],
)
@pytest.mark.parametrize("stop", ["fixed", "refuted"])
def test_objects_that_nobody_can_compare_are_an_error_that_names_them(make, where, kind, stop):
    def opaque(x, size, rng):
        return [make() for _ in range(size)]

    told = rf"^outputs of .*opaque{where} must be numbers, strings, .* got <class .*{kind}'>$"
    with pytest.raises(TypeError, match=told):
        dpcore.audit(opaque, PAIR, claim=1.0, trials=1000, rng=1, stop=stop)
    with pytest.raises(TypeError, match=r"^outputs.* must be numbers, strings"):
        audit_outputs(opaque([0.0], 99, None), opaque([1.0], 99, None), rows="independent")


@pytest.mark.parametrize("stop", ["fixed", "refuted"])
def test_an_attack_that_does_not_apply_is_named(stop):
    def words(x, size, rng):
        return np.full(size, "yes")

    for attack in (Threshold(0), Threshold("l1")):
        with pytest.raises(ValueError, match=r"^attack must be one that applies to these outputs"):
            dpcore.audit(words, PAIR, attack=attack, claim=1.0, trials=500, rng=1, stop=stop)


def test_constants_and_outputs_without_entries_certify_nothing():
    for value in ("same", 1j, (1, "a"), [[1], {}], None, b"\0"):
        report = dpcore.audit(
            lambda x, size, rng, value=value: [value] * size, PAIR, claim=1.0, trials=500, rng=1
        )
        assert report.epsilon_lower == 0.0
    empty = dpcore.audit(lambda x, size, rng: np.zeros((size, 0)), PAIR, claim=1.0, trials=500)
    assert empty.epsilon_lower == 0.0
    assert "no event" in str(empty.event)


def test_caught_exceptions_beside_numbers():
    def fragile(x, rng):
        noise = x[0] + rng.laplace(scale=0.25)
        if rng.random() < 0.1:
            raise ValueError
        return noise

    mechanism = dpcore.repeat(fragile, catch=ValueError)
    assert dpcore.audit(mechanism, PAIR, claim=1.0, trials=20_000, rng=1).epsilon_lower > 3.4
    assert Raised("ValueError") in mechanism([0.0], 99, np.random.default_rng(1)).tolist()


# Recorded outputs.


@pytest.mark.parametrize("name", CASES)
def test_recorded_outputs_of_every_kind(name):
    broken, rng = CASES[name].broken, np.random.default_rng(3)
    sides = [Leaky(name, broken)([x], 20_000, rng) for x in (0.0, 1.0)]
    report = audit_outputs(*sides, rows="independent", claim=1.0, rng=1)
    assert report.epsilon_lower > 0.8 * broken
    twin = [Leaky(name, 1.0)([x], 5000, rng) for x in (0.0, 1.0)]
    assert audit_outputs(*twin, rows="independent", claim=1.0, rng=1).refuted is False


def test_recorded_lists_that_are_equally_long_on_one_side():
    sides = [[1, 2]] * 50, [[1, 2], [1, 2, 3]] * 25
    report = audit_outputs(*sides, rows="independent", claim=0.1, rng=1)
    assert report.counts.n == 25


def test_recorded_numbers_of_which_one_side_lacks_some():
    values = np.random.default_rng(1).normal(size=400).tolist()
    sides = values[:200], [None, *values[201:]]
    assert audit_outputs(*sides, rows="independent", claim=1.0, rng=1).refuted is False


# Lists of changing length, as a mechanism returns them.


def test_lists_that_are_equally_long_in_the_first_calls():
    def rarely(x, size, rng):
        rows = rng.normal(size=(size, 3)).tolist()
        return [row[: 2 + (rng.random() < 0.9 - 0.8 * x[0])] for row in rows]

    for seed in range(5):
        report = dpcore.audit(rarely, PAIR, claim=1.0, trials=5000, rng=seed)
        assert 1.9 < report.epsilon_lower < np.log(9.0)
        assert report.shape == ()


def test_lists_of_numbers_are_still_arrays():
    def rows(x, size, rng):
        return (x[0] + rng.laplace(size=(size, 2))).tolist()

    report = dpcore.audit(rows, PAIR, claim=2.1, trials=5000, rng=1)
    assert report.shape == (2,)
    assert 1.0 < report.epsilon_lower < 2.0


def test_no_length_tells_more_than_it_does():
    """The control of `lengths`: the same lists on both sides."""
    equal = ([0.0], [0.0])
    same = dpcore.audit(Leaky("lengths", 3.0), equal, null=True, claim=0.0, trials=5000, rng=1)
    assert same.epsilon_lower == 0.0


def test_lists_that_contain_themselves_are_an_error():
    def endless(x, size, rng):
        rows = [[1.0] for _ in range(size)]
        for row in rows:
            row.append(row)
        return rows

    with pytest.raises(
        TypeError, match=r"^outputs of .* must be objects that do not contain themselves"
    ):
        dpcore.audit(endless, PAIR, claim=1.0, trials=300, rng=1)
