"""Neighbours and equal inputs on the command line and in tests of other packages."""

from __future__ import annotations

import pytest
import shared_plugin

import dpcore

pytest_plugins = ["pytester"]

inner = shared_plugin.inner

RUN = "--trials 2e4 --seed 1 --claim 0.6 --json"


@pytest.mark.parametrize(("relation", "near", "far", "shown", "text"), [
    ("l1=1", "1,0", "1,1", "L1(radius=1.0)", "pair must be at L1 distance at most 1.0"),
    ("L2=5", "3,4", "3,5", "L2(radius=5.0)", "pair must be at L2 distance at most 5.0"),
    ("linf=.5", "0.5,0.5", "0.5,1", "Linf(radius=0.5)", "at Linf distance at most 0.5"),
    ("replace", "9,0", "9,9", "Replace(values=None)", "at most 1 record is replaced"),
    ("add-remove", "0,0,7", "7,0", "AddRemove(values=None)", "has at most 1 record more"),
])  # fmt: skip
def test_a_farther_pair_is_bad_usage(run, own, relation, near, far, shown, text):
    words = f"audit {own}:flat {RUN} --neighbour {relation} --x 0,0"
    _, out, err = run(f"{words} --x-prime {near}")
    assert dpcore.Audit.from_json(out).neighbour == shown, err
    status, out, err = run(f"{words} --x-prime {far}")
    assert (status, out) == (2, "")
    assert text in err
    assert "--neighbour" in err


@pytest.mark.parametrize(
    "relation", ["l3=1", "l1", "l1=", "l1=-1", "l1=0", "linf=nan", "replace=1"]
)
def test_a_relation_that_there_is_not_is_bad_usage(run, relation):
    status, out, err = run(f"audit laplace --epsilon 1 --trials 100 --neighbour {relation}")
    assert (status, out) == (2, "")
    assert err.startswith("error: --neighbour must be l1=RADIUS, l2=RADIUS, linf=RADIUS, replace")


def test_the_pair_of_a_system_and_those_of_patterns_are_checked(run, own):
    words = "audit laplace --epsilon 1 --dim 3 --trials 1000 --seed 1 --json --neighbour"
    assert dpcore.Audit.from_json(run(f"{words} l1=1")[1]).neighbour == "L1(radius=1.0)"
    assert run(f"{words} l1=0.5")[0] == 2
    words = f"audit {own}:release --dim 3 {RUN} --neighbour l1=1 --patterns"
    assert dpcore.Audit.from_json(run(f"{words} one")[1]).neighbour == "L1(radius=1.0)"
    status, _, err = run(f"{words} all")
    assert status == 2
    assert "pair must be at L1 distance at most 1.0" in err


@pytest.mark.parametrize("words", ["--x 0", "--x-prime 0", "--x 0 --x-prime 1", ""])
def test_patterns_give_the_inputs_alone(run, own, words):
    dim = "--dim 2" if words else ""
    status, _, err = run(f"audit {own}:release {RUN} --patterns one {words} {dim}")
    assert status == 2
    assert "--patterns needs --dim, and no other inputs" in err
    err = run(f"audit {own}:release {RUN} --patterns some --dim 2")[2]
    assert err.startswith("error: --patterns must be one of 'one', 'all'")


@pytest.mark.parametrize("target", ["own:release", "own:native"])
@pytest.mark.parametrize("words", ["--dim 8", "--dim 1", ""])
def test_dim_is_no_pair_of_ones_own_mechanism(run, own, target, words):
    """Zeros against ones in 8 entries refute noise that is right for a change by 1."""
    target = target.replace("own", own)
    status, out, err = run(f"audit {target} --claim 0.5 --trials 1e4 --seed 1 {words}")
    assert (status, out) == (2, "")
    assert "give two inputs that the claim calls neighbours, --x NUMBERS and --x-prime" in err
    words = "--x 0,0 --x-prime 1,0 --neighbour l1=1 --claim 2.1 --trials 1e4 --seed 1"
    assert run(f"audit {target} {words}")[0] == 0


def test_no_help_offers_dim_instead_of_inputs(run):
    text = " ".join(run("audit --help")[1].split())
    assert "release --dim" not in text
    assert "for zeros against ones" not in text
    for option in ("--neighbour", "--null", "--patterns"):
        assert option in text


def test_equal_inputs_on_the_command_line(run, own):
    for target in (f"{own}:release", f"{own}:native", "laplace --epsilon 0.6"):
        words = f"audit {target} --x 1,2 --x-prime 1,2 {RUN}"
        status, out, err = run(words)
        assert (status, out) == (2, "")
        assert "pair must be different in at least one entry" in err
        status, out, _ = run(f"{words} --null")
        assert status == 0
        assert "the two inputs are equal" in out


# The fixture of pytest.


def test_neighbours_and_claims_in_a_test(inner):
    body = """
from dpcore.pairs import L1, Linf

class Claiming:
    claim = 1.0
    __call__ = staticmethod(noisy)

def test_near(dp_audit):
    found = dp_audit(noisy, PAIR, claim=1.0, neighbour=Linf(1.0))
    assert (found.claim, found.neighbour) == (1.0, "Linf(radius=1.0)")
    assert dp_audit(noisy, PAIR, epsilon=1.0).claim == 1.0
    assert dp_audit(Claiming(), PAIR).claim == 1.0
    assert dp_audit(noisy, ([0.0], [0.0]), claim=0.0, null=True).refuted is False
    assert dp_audit.refutes(broken, PAIR, claim=1.0, neighbour=L1(2.0)).neighbour
    assert dp_audit.refutes(broken, PAIR, epsilon=1.0).refuted

@pytest.mark.parametrize(("arguments", "text"), [
    ({"neighbour": L1(1.0)}, "pair must be at L1 distance at most 1.0 .*, got 2.0"),
    ({"pair": ([0.0], [0.0])}, "pair must be different in at least one entry"),
    ({"pair": None}, "pair must be given"),
    ({"claim": None}, "claim must be given for a mechanism that makes none itself"),
    ({"epsilon": 1.0}, "claim must be given once, as claim or as epsilon"),
])
def test_far(dp_audit, arguments, text):
    for call in (dp_audit, dp_audit.refutes):
        with pytest.raises(ValueError, match=f"^{text}"):
            call(noisy, **{"pair": PAIR, "claim": 1.0, **arguments})
"""
    inner(body).assert_outcomes(passed=6)


def test_what_a_failure_says_repeats_the_relation(inner):
    body = """
from dpcore.pairs import Linf

def test_it(dp_audit): dp_audit(broken, PAIR, claim=1.0, neighbour=Linf(1.0))
"""
    result = inner(body)
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert "neighbour=dpcore.pairs.Linf(radius=1.0)" in text
    assert "Linf(radius=1.0), which holds for this pair" in text
