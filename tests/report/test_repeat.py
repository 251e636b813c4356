"""The Python code that repeats an audit: it is run, and must give the same audit."""

from __future__ import annotations

import math
import re
import sys
from dataclasses import replace

import numpy as np
import pytest

import dpcore
from dpcore import Laplace, Pair, published
from dpcore.attacks import MajorityVote
from dpcore.report import script


def noisy(x, size, rng):
    return x + rng.laplace(size=(size, len(x)))


def positive(outputs, outputs_prime, pair):
    return lambda drawn: drawn > 0


def audit(*arguments, **options):
    """With the vote, whose reports do not change when the default attack learns something."""
    return dpcore.audit(*arguments, **{"attack": MajorityVote(), **options})


AUDITS = {
    "refuted": audit(published.DPText(1.0, nan="resample"), trials=10**4, rng=1),
    "primitive": audit(Laplace(1.0, "sign"), trials=10**4, claim=1.0, rng=1, confidence=0.9),
    "no claim": audit(dpcore.Identity(), trials=1000, rng=1),
    "no pilot": audit(Laplace(1.0), trials=50, claim=1.0, rng=1),
    "delta, distance": audit(
        Laplace(1.0), Pair([0.0], [3.0], 3.0), trials=10**4, claim=0.5, delta=1e-3, rng=2**63 - 1
    ),
}
PARTIAL = replace(AUDITS["refuted"], partial=True, stop="interrupted", bound="anytime", end=10**6)
OWN = audit(
    lambda x, size, rng: rng.normal(size=size),
    Pair("a", {"b": 1}),
    attack=positive,
    trials=1000,
    claim=1.0,
    rng=1,
)


def run(found, **names):
    space = dict(names)
    exec(script.make_script(found), space)
    return space["report"]


@pytest.mark.parametrize("name", AUDITS)
def test_the_code_repeats_the_audit(name):
    found = AUDITS[name]
    assert run(found) == found
    assert eval(script.format_call(found)) == found


def test_the_code_repeats_an_audit_of_a_function():
    found = audit(noisy, ([0.0], [1.0]), trials=1000, start=0, claim=1.0, rng=3, block=100)
    assert f"import {__name__}\n" in script.make_script(found)
    assert run(found) == found
    assert (
        eval(script.format_call(found), {"dpcore": dpcore, __name__: sys.modules[__name__]})
        == found
    )


def test_the_code_keeps_start_block_route_and_every_range():
    options = {"claim": 1.0, "rng": 5, "block": 64, "route": "sampled"}
    first = audit(Laplace(1.0), trials=1000, **options)
    later = audit(Laplace(1.0), trials=500, start=2048, **options)
    assert run(later) == later
    assert "start=2048" in script.format_call(later)
    both = first + later
    assert run(both).counts == both.counts
    assert script.format_call(both).count("dpcore.audit(") == 2
    assert "# Not one whole run" in script.make_script(both)
    assert "# Not one whole run" in script.make_script(PARTIAL)
    assert "# Not one" not in script.make_script(first)


def test_what_no_record_holds_is_left_open():
    code = script.make_script(OWN)
    assert re.search(r"^mechanism = \.\.\.  # .*<lambda>$", code, re.M)
    assert re.search(rf"^attack = \.\.\.  # {__name__}\.positive$", code, re.M)
    assert re.search(r"^pair = \.\.\.  # \(", code, re.M)
    assert "attack=attack" in code
    line = script.format_call(OWN, mechanism="mine", pair="ours")
    assert line.startswith("dpcore.audit(mine, ours, attack=attack, ")
    # A name with a line break must not end the comment.
    compile(
        script.make_script(replace(AUDITS["refuted"], mechanism="a\nimport nothing")), "", "exec"
    )


def test_a_long_pair_is_read_from_the_data():
    pair = Pair(np.arange(40.0), np.arange(40.0) + 0.25)
    found = audit(noisy, pair, trials=1000, claim=1.0, rng=1)
    assert run(found, text=found.to_json()) == found
    ones = audit(Laplace(1.0), dpcore.pairs.zeros_ones(200), trials=100, claim=1.0, rng=1)
    assert "[0.0] * 200, [1.0] * 200" in script.format_call(ones)
    assert eval(script.format_call(ones)) == ones


@pytest.mark.parametrize(
    ("x", "x_prime", "text"),
    [
        ("a", "it's", "dpcore.Pair('a', \"it's\")"),
        (1, True, "dpcore.Pair(1, True)"),
        ([0.0] * 5, [0.0, 0.0, -0.0, 0.0, 0.0], None),
        (np.arange(3), np.arange(3), None),
        (np.zeros((2, 2)), np.ones((2, 2)), None),
        (np.array([math.inf]), np.array([0.0]), None),
        (math.nan, 0.0, None),
        (object(), 1, None),
        ("a" * 500, "b", None),
    ],
)
def test_pairs_as_python(x, x_prime, text):
    found = replace(AUDITS["refuted"], pair=Pair(x, x_prime))
    shown = script.pair_expression(found)
    if text is not None:
        assert shown == text
    assert shown is None or eval(shown) == found.pair
    assert (shown is None) is (text is None and not isinstance(x, list))
