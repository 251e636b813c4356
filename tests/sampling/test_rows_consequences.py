"""Where a check says that no bound holds, nothing shows one: report, page, command, pytest."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import shared_plugin
from shared_messages import find_missing
from shared_rows import fresh

import dpcore
from dpcore import Counts, Laplace, Pair
from dpcore.errors import AssumptionWarning
from dpcore.results.evidence import Finding

pytest_plugins = ["pytester"]

inner = shared_plugin.inner


def in_twos(x, size, rng):
    return np.repeat(fresh(x, -(-size // 2), rng), 2, axis=0)[:size]


BOUNDS = "epsilon &gt;=", "epsilon >="
"""What a report says of a bound."""


def made(mechanism):
    """An audit that refutes its claim, or would if its rows were independent."""
    return dpcore.audit(mechanism, Pair([0.0], [1.0]), claim=0.1, trials=20_000, rng=1)


@pytest.fixture(scope="module")
def good():
    return made(fresh)


@pytest.fixture(scope="module")
def bad():
    with pytest.warns(AssumptionWarning):
        report = made(in_twos)
    found = Finding(report.event, "x", Counts(900, 1000, 10, 1000), 0.0, 0.95)
    return replace(report, floating_point=found)


def test_every_figure_that_certifies(bad, good):
    assert good.refuted is True
    assert good.epsilon_lower > 0.5
    assert (bad.refuted, bad.epsilon_lower, bad.epsilon_lower_at(0.1)) == (None, 0.0, 0.0)
    assert (bad.power, replace(bad, floats=True).epsilon_lower) == ("", 0.0)
    for name in ("mu_lower", "tradeoff"):
        assert getattr(good, name) is not None
        with pytest.raises(ValueError, match=r"^checks must be empty for what rests on ind"):
            getattr(bad, name)
    assert ("epsilon_lower" in repr(bad), "epsilon_lower" in repr(good)) == (False, True)
    # Only what follows from independence falls: replacing the checks brings all of it back.
    again = replace(bad, checks=())
    assert again.epsilon_lower > 0.5
    assert bad.epsilon_hat == again.epsilon_hat


def test_the_report(bad, good):
    said = "nothing: no bound holds", "invalid: outputs on x that stand next to each other"
    for shown in (str(bad), bad._repr_html_()):
        assert find_missing(shown, *BOUNDS, *said) == list(BOUNDS)
    assert all("epsilon >=" in str(one) for one in (good, replace(bad, checks=())))


def test_the_picture(bad, good):
    pytest.importorskip("matplotlib")
    axes = bad.plot().axes[0]
    assert not axes.patches
    assert axes.get_title(loc="left").endswith("invalid: no bound holds")
    assert "no bound holds" in [text.get_text() for text in axes.texts]
    assert good.plot().axes[0].patches
    for name in ("plot_tradeoff", "plot_profile"):
        with pytest.raises(ValueError, match=r"^checks must be empty"):
            getattr(bad, name)()


def test_the_page(bad, good):
    pytest.importorskip("matplotlib")
    page = bad.to_html()
    head = page[: page.index("<section>")]
    said = "<dt>epsilon certified</dt><dd>none</dd>", "The claim was not tested."
    assert not find_missing(head, *said)
    certifying = ["epsilon &gt;=", "so epsilon", "Certified</h3>", "Trade-off curve"]
    assert find_missing(page, *certifying) == certifying
    page = good.to_html()
    assert not find_missing(page, "so epsilon &gt;= ln(", "Trade-off curve")


def test_json_keeps_it(bad):
    again = dpcore.Audit.from_json(replace(bad, mechanism="in_twos").to_json())
    assert (again.checks, again.verdict, again.refuted) == (bad.checks, bad.verdict, None)
    assert again.to_dict()["derived"]["epsilon_lower"] == 0.0


FILE = """
import numpy as np

def fresh(x, size, rng):
    return x + rng.laplace(size=(size, len(x)))

def in_twos(x, size, rng):
    return np.repeat(fresh(x, -(-size // 2), rng), 2, axis=0)[:size]

def one_noise(x, size, rng):
    return np.tile(x + rng.laplace(size=len(x)), (size, 1))
"""


@pytest.fixture
def audit_file(run, tmp_path):
    """Audit a mechanism of FILE on the command line: (status, stdout, stderr)."""
    (tmp_path / "mine.py").write_text(FILE)
    words = "--x 0 --x-prime 1 --trials 2e4 --seed 1"
    return lambda name, more: run(f"audit {tmp_path}/mine.py:{name} {words} {more}")


@pytest.mark.parametrize(
    ("name", "more", "status"),
    [
        ("fresh", "--claim 2", 0), ("fresh", "--claim 0.1", 1), ("in_twos", "--claim 2", 3),
        ("in_twos", "--claim 0.1", 3), ("in_twos", "--claim 0.1 --stop refuted", 3),
        ("in_twos", "--no-claim", 3),
    ],
)  # fmt: skip
def test_the_exit_status(audit_file, name, more, status):
    found, out, _ = audit_file(name, more)
    assert found == status
    assert ("verdict      invalid: " in out) == (status == 3)
    assert ("epsilon >=" in out) == (status != 3)


def test_the_exit_status_of_an_error_and_of_json(audit_file):
    status, out, err = audit_file("one_noise", "--claim 1")
    assert (status, out) == (3, "")
    assert "one_noise must be drawn anew for every row of a call" in err
    assert "size=(size, len(x))" in err
    status, out, _ = audit_file("in_twos", "--claim 1 --json")
    assert status == 3
    assert dpcore.Audit.from_json(out).checks


TESTS = """
import numpy as np

def in_twos(x, size, rng):
    return np.repeat(noisy(x, -(-size // 2), rng), 2, axis=0)[:size]

def one_noise(x, size, rng):
    return np.tile(x + rng.laplace(size=len(x)), (size, 1))

@pytest.mark.parametrize("epsilon", [0.1, 9.0])
class TestAll:
    @pytest.mark.parametrize("mechanism", [in_twos, one_noise, noisy])
    def test_call(self, dp_audit, mechanism, epsilon):
        dp_audit(mechanism, PAIR, epsilon=epsilon)

    @pytest.mark.parametrize("mechanism", [in_twos, one_noise, noisy])
    def test_refutes(self, dp_audit, mechanism, epsilon):
        dp_audit.refutes(mechanism, PAIR, epsilon=epsilon)
"""


def test_no_test_passes(inner):
    """Neither the test of a claim nor the test that a broken mechanism is caught."""
    result = inner(TESTS, "-v", "-W", "ignore::dpcore.errors.AssumptionWarning")
    # The twin: one of the two passes, as the claim stands or falls.
    result.assert_outcomes(failed=10, passed=2)
    text = result.stdout.str()
    passed = set(re.findall(r"test_inner.py::TestAll::(\S+) PASSED", text))
    assert passed == {"test_call[noisy-9.0]", "test_refutes[noisy-0.1]"}
    for epsilon in ("0.1", "9"):
        said = f"^epsilon <= {epsilon} was not tested: invalid: outputs on x that stand next to"
        assert len(re.findall(said, text, re.M)) == 2
    assert text.count("one_noise must be drawn anew for every row of a call") >= 4
    summary = re.findall(r"in_twos: epsilon <= .*", text.partition("audits by dpcore")[2])
    assert len(summary) == 4
    assert all("invalid: outputs on x" in line and "certified" not in line for line in summary)


def test_only_a_refutation_counts_as_one(bad):
    assert (bad.refuted, made(Laplace(1.0)).refuted) == (None, True)
