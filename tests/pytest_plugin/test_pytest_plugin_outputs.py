"""The fixture `dp_audit` with recorded outputs, and what its results say of how they were made."""

from __future__ import annotations

from xml.etree import ElementTree

import shared_plugin

from dpcore.pytest_plugin import seed_of

pytest_plugins = ["pytester"]

inner = shared_plugin.inner

OUTPUTS = """
import numpy as np

SIDES = np.random.default_rng(1).laplace(size=(2, 4000))

def test_stands(dp_audit):
    found = dp_audit.outputs(SIDES[0], SIDES[1] + 1.0, rows="independent", claim=1.0)
    show_outputs(found)

def test_canaries(dp_audit):
    found = dp_audit.outputs(*SIDES, rows="one_run", claim=1.0, confidence=0.5, rng=7)
    show_outputs(found)

def test_bad(dp_audit):
    dp_audit.outputs(SIDES[0], SIDES[1] + 3.0, rows="independent", claim=1.0, epsilon=None)

@pytest.mark.filterwarnings("ignore::dpcore.errors.AssumptionWarning")
def test_invalid(dp_audit):
    dp_audit.outputs(SIDES[0], SIDES[0] + 3.0, rows="independent", claim=1.0)

def test_no_claim(dp_audit):
    dp_audit.outputs(*SIDES, rows="one_run")

def test_both(dp_audit):
    dp_audit.outputs(*SIDES, rows="one_run", claim=1.0, epsilon=1.0)

def test_mechanism(dp_audit):
    show_outputs(dp_audit(noisy, PAIR, claim=1.0, trials=1000, source=False))

def show_outputs(found):
    (made,) = found.provenance
    print("SHOWN", type(found).__name__, found.seed, found.confidence, made.command, made.origin)
"""


def test_recorded_outputs_are_tested_like_a_mechanism(inner, pytester):
    result = inner(OUTPUTS, "-s", "-v", "--junitxml=found.xml")
    result.assert_outcomes(passed=3, failed=4)
    text, stands = result.stdout.str(), "test_inner.py::test_stands"
    elsewhere = "none: the outputs were drawn elsewhere"
    result.stdout.fnmatch_lines_random(
        [
            f"*SHOWN OutputsAudit {seed_of(stands, 1)} 0.9999 pytest {stands} {elsewhere}",
            f"*SHOWN OutputsAudit 7 0.5 pytest test_inner.py::test_canaries {elsewhere}",
            "*SHOWN Audit * pytest test_inner.py::test_mechanism left out (source=False)",
            "epsilon <= 1 is refuted: certified epsilon >= * in outputs against outputs_prime",
            "  audit        1 of test_inner.py::test_bad",
            "  outputs      outputs against outputs_prime",
            "  counts       * of 2,000 on x, * of 2,000 on x'",
            "  repeat       python -m pytest test_inner.py::test_bad",
            "epsilon <= 1 was not tested: invalid: *",
            "*ValueError: claim must be given, for recorded outputs make none, got None",
            "*ValueError: claim must be given once, *",
            f"{stands}: outputs against outputs_prime: epsilon <= 1 not refuted*",
        ]
    )
    assert "  or  " not in text
    told = ElementTree.parse(pytester.path / "found.xml").iter("property")
    assert len([one for one in told if one.get("name") == "dp_audit"]) == 5
