"""The plugin's settings: options, markers, arguments, and which of them wins."""

from __future__ import annotations

import pytest
import shared_plugin
from shared_messages import check_messages
from shared_plugin import SHOW, shown

from dpcore.pytest_plugin import _SETTING_READERS, Settings, seed_of

pytest_plugins = ["pytester"]

inner = shared_plugin.inner

NAME = "test_inner.py::test_it"


@pytest.mark.parametrize(
    ("ini", "arguments", "marker", "call", "expected"),
    [
        ("", [], "", "", Settings()),
        ("dp_trials = 1e3", [], "", "", Settings(trials=1000)),
        ("dp_confidence = 0.9", [], "", "", Settings(confidence=0.9)),
        ("dp_seed = 5", [], "", "", Settings(seed=5)),
        ("dp_trials = 1e3", ["--dp-trials", "2000"], "", "", Settings(trials=2000)),
        ("dp_confidence = 0.9", ["--dp-confidence=.8"], "", "", Settings(confidence=0.8)),
        ("dp_seed = 5", ["--dp-seed=6"], "", "", Settings(seed=6)),
        ("", ["--dp-trials=2000"], "trials=3000", "", Settings(trials=3000)),
        ("", ["--dp-trials=2000"], "confidence=.7, seed=3", "", Settings(2000, 0.7, 3)),
        ("", ["--dp-trials=2000"], "trials=3000", "trials=4000", Settings(trials=4000)),
        ("", [], "trials='3e3'", "trials=None, confidence=.6", Settings(3000, 0.6)),
        ("", [], "seed=3", "rng=None", Settings(seed=3)),
    ],
)
def test_settings_from_weak_to_strong(inner, pytester, ini, arguments, marker, call, expected):
    pytester.makeini(f"[pytest]\n{ini}\n")
    mark = f"@pytest.mark.dp({marker})\n" if marker else ""
    body = f"{mark}{SHOW}".replace("epsilon=1.0", f"epsilon=1.0, {call}")
    result = inner(body, "-s", "--strict-markers", "--strict-config", *arguments)
    result.assert_outcomes(passed=1)
    seed = seed_of(NAME, 1, expected.seed)
    trials = 10**5 if expected.trials is None else expected.trials
    assert shown(result) == [(seed, trials, expected.confidence)]


def test_the_closest_marker_wins(inner):
    result = inner(
        """
pytestmark = pytest.mark.dp(trials=1000, confidence=0.9)

@pytest.mark.dp(trials=2000)
class TestIt:
    def test_one(self, dp_audit): show(dp_audit(noisy, PAIR, epsilon=1.0))

    @pytest.mark.dp(trials=3000)
    def test_two(self, dp_audit): show(dp_audit(noisy, PAIR, epsilon=1.0))
""",
        "-s",
    )
    assert [one[1:] for one in shown(result)] == [(2000, 0.9), (3000, 0.9)]


def test_a_seed_of_ones_own(inner):
    result = inner(SHOW.replace("epsilon=1.0", "epsilon=1.0, rng=77, threads=2, block=64"), "-s")
    assert [one[0] for one in shown(result)] == [77]


@pytest.mark.parametrize(
    ("ini", "arguments", "text"),
    [
        ("", ["--dp-trials=0"], "--dp-trials must be a whole number at least 1 and below 2**63, "),
        ("", ["--dp-min-share=1"], "--dp-min-share must be a finite number at least 0 and below 1"),
        ("dp_confidence = high", [], "dp_confidence must be a finite number above 0 and below 1, "),
        ("dp_seed =", [], "dp_seed must be an integer at least 0, got ''"),
    ],
)
def test_wrong_settings_are_bad_usage(inner, pytester, ini, arguments, text):
    pytester.makeini(f"[pytest]\n{ini}\n")
    result = inner(SHOW, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"ERROR: {text}" in result.stderr.str()


def read(name, value):
    """Check a setting as every option, line of the ini file and marker is checked."""
    return _SETTING_READERS[name](name, value)


VALUE_ERRORS = [
    (lambda: read("trials", "many"), "trials", "a whole number at least 1"),
    (lambda: read("confidence", "1"), "confidence", "a finite number above 0 and below 1, got 1.0"),
    (lambda: read("confidence", "2"), "confidence", "a finite number above 0 and below 1, got 2.0"),
    (lambda: read("confidence", "nan"), "confidence", "a finite number above 0 and below 1, got n"),
    (lambda: read("seed", "-1"), "seed", "an integer at least 0, got -1"),
]
TYPE_ERRORS = [
    (lambda: read("seed", "1.5"), "seed", "an integer at least 0, got '1.5'"),
    (lambda: read("seed", True), "seed", "an integer at least 0, got True"),
    (lambda: read("min_share", "half"), "min_share", "a finite number at least 0 and below 1"),
]


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)


WRONG = [
    ("dp(10)", "epsilon=1.0", "TypeError: marker dp must be given the keywords trials, "),
    ("dp(trial=10)", "epsilon=1.0", "TypeError: marker dp must be given the keywords trials, "),
    ("dp(trials=0)", "epsilon=1.0", "ValueError: dp(trials) must be a whole number at least 1"),
    ("dp()", "", "ValueError: claim must be given for a mechanism that makes none itself, got"),
    ("dp()", "epsilon=None", "ValueError: claim must be given for a mechanism that makes none"),
    ("dp()", "claim=-1", "ValueError: claim must be a finite number at least 0, got -1"),
    ("dp()", "epsilon=-1", "ValueError: epsilon must be a finite number at least 0, got -1"),
    ("dp()", "epsilon=1, claim=1", "ValueError: claim must be given once, as claim or "),
    ("dp()", "epsilon=1, delta=None", "TypeError: delta must be a finite number at least 0 "),
    ("dp()", "epsilon=1, trials=0", "ValueError: trials must be a whole number at least 1"),
    ("dp()", "epsilon=1, tirals=9", "TypeError: * unexpected keyword argument 'tirals'*"),
]
"""A marker, the arguments of a call, and what its error says."""


def test_wrong_arguments(inner):
    """One run of pytest, in which each call has a test of its own."""
    tests = [
        f"@pytest.mark.{mark}\n{SHOW.replace('epsilon=1.0', call).replace('test_it', f'test_{n}')}"
        for n, (mark, call, _) in enumerate(WRONG)
    ]
    result = inner("".join(tests))
    # Wrong markers are errors of the fixture, which come first.
    result.assert_outcomes(errors=3, failed=len(WRONG) - 3)
    result.stdout.fnmatch_lines([f"E * {text}*" for _, _, text in WRONG])
