"""Traces by the fixture dp_audit, inside a pytest run of its own."""

from __future__ import annotations

import pytest
import shared_plugin
from shared_messages import find_missing
from shared_plugin import shown

from dpcore.pytest_plugin import seed_of_test

pytest_plugins = ["pytester"]

inner = shared_plugin.inner


BODY = """
import numpy

def total(x, rng):
    return sum(x) + rng.laplace(scale=2.0)

def own(x, rng):
    return total(x, rng)
own.claim = 1.0

def count(x, rng):
    return len(x), rng.laplace()

def largest(x, rng):
    return int(numpy.argmax([value + rng.laplace(scale=2.0) for value in x]))

def test_within(dp_audit):
    report = dp_audit.trace(total, ([1.0, 1.0], [1.0, 0.0]), claim=0.5)
    assert type(report) is dpcore.Trace
    print("SHOWN", report.seed, report.draws, report.loss)
    assert dp_audit.trace(total, PAIR, epsilon=1.0, rng=7, draws=3).seed == 7
    assert dp_audit.trace(own, PAIR).claim == 1.0

def test_above(dp_audit):
    dp_audit.trace(total, PAIR, claim=0.25, delta=0.125)
    raise AssertionError("not reached")

def test_finding(dp_audit):
    dp_audit.trace(count, ([0.0], [0.0, 0.0]), claim=dpcore.claims.GDP(1.0))

def test_hidden(dp_audit):
    dp_audit.trace(largest, ([0.0, 1.0] * 4, [1.0, 0.0] * 4), claim=1.0)

def test_not_traceable(dp_audit):
    dp_audit.trace(lambda x: 1, PAIR, claim=1.0)

def test_no_claim(dp_audit):
    dp_audit.trace(total, PAIR)
"""


def test_a_trace_fails_unless_it_is_within_the_claim(inner):
    result = inner(BODY, "-v", "-rP")
    result.assert_outcomes(passed=1, failed=5)
    text, name = result.stdout.str(), "test_inner.py::test_within"
    assert shown(result) == [(seed_of_test(name, 1), 4, 0.5)]
    assert not find_missing(
        text,
        f"{name}: test_inner.total: epsilon <= 0.5 within the claim on this pair, computed loss 0.5"
        f", seed {seed_of_test(name, 1)}",
        "  covers       every noise: one move in 4 draws",
        "epsilon <= 0.25, delta = 0.125 above the claim on this pair, computed loss 1 in"
        " test_inner.total\n  trace        1 of test_inner.py::test_above\n",
        "  seed         " + str(seed_of_test("test_inner.py::test_above", 1)),
        "  repeat       python -m pytest test_inner.py::test_above",
        "mu <= 1 (Gaussian DP) a finding: no noise: output[0] is 1 on x and 2 on x'",
        "epsilon <= 1 was not tested: a step may be hidden: audit it, computed loss 4 in",
        "epsilon <= 1 was not tested: not traceable: no draw of noise is seen in",
        "ValueError: claim must be given for a function without its own claim, got None",
    )
    assert "not reached" not in text
    assert "refuted" not in text


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("claim=1.0, epsilon=1.0", "ValueError: claim must be given once, as claim or as epsilon"),
        ("claim=-1.0", "ValueError: claim must be a finite number at least 0"),
    ],
)
def test_wrong_arguments(dp_audit, arguments, text):
    with pytest.raises((TypeError, ValueError)) as caught:
        eval(f"dp_audit.trace(lambda x, rng: rng.laplace(), ([0.0], [1.0]), {arguments})")
    assert text in f"{type(caught.value).__name__}: {caught.value}"
