"""The pytest fixture dp_audit, run inside pytest runs of its own."""

from __future__ import annotations

import itertools
import re
import shlex
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import shared_plugin
from shared_messages import find_missing
from shared_plugin import SHOW, START, shown

import dpcore
from dpcore.pytest_plugin import Settings, seed_of_test

pytest_plugins = ["pytester"]

inner = shared_plugin.inner


README = Path(__file__).parents[2] / "README.md"


def test_a_claim_that_stands(inner):
    body = """
def test_it(dp_audit):
    first = dp_audit(noisy, PAIR, epsilon=1.0)
    second = dp_audit(noisy, pair=PAIR, epsilon=1.0)
    assert type(first) is dpcore.Audit
    assert (first.claim, first.refuted, first.delta) == (1.0, False, 0.0)
    show(first), show(second)
"""
    result = inner(body, "-s")
    result.assert_outcomes(passed=1)
    name = "test_inner.py::test_it"
    expected = [(seed_of_test(name, number), 10**5, 0.9999) for number in (1, 2)]
    assert shown(result) == expected
    assert expected[0] != expected[1]


def message(result):
    """The rows of a failure's message by their labels; the first line is "headline"."""
    lines = result.stdout.str().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("epsilon <= "))
    rows = {"headline": lines[start]}
    for line in itertools.takewhile(lambda line: line.startswith("  "), lines[start + 1 :]):
        rows[line[2:14].strip()] = line[15:]
    return rows


BAD = """
def test_bad(dp_audit):
    dp_audit(noisy, PAIR, epsilon=1.0)
    dp_audit(broken, PAIR, epsilon=1.0)
    raise AssertionError("not reached")
"""


def test_a_claim_that_is_refuted(inner):
    result = inner(BAD, subprocess=True)
    result.assert_outcomes(failed=1)
    assert "Traceback" not in result.stdout.str()
    assert "not reached" not in result.stdout.str()
    rows = message(result)
    name = "test_inner.py::test_bad"
    seed = seed_of_test(name, 2)
    # The twin of `broken` as a script would have it.
    found = dpcore.audit(
        lambda x, size, rng: x + rng.laplace(scale=1.0, size=(size, len(x))),
        dpcore.pairs.zeros_ones(2), trials=10**5, claim=1.0, confidence=0.9999, rng=seed,
    )  # fmt: skip
    c, bound = found.counts, f"epsilon >= {found.epsilon_lower:.4f}"
    numerator = {"x": "x", "x_prime": "x'"}[found.direction]
    assert rows["headline"] == f"epsilon <= 1 is refuted: certified {bound} in test_inner.broken"
    assert (rows["audit"], rows["mechanism"]) == (f"2 of {name}", "test_inner.broken")
    assert (rows["verdict"], rows["claim"]) == ("refuted", "epsilon <= 1")
    assert rows["certified"] == f"{bound} (99.99 % confidence, Clopper-Pearson)"
    assert rows["witness"].startswith(f"{found.event}, {numerator} in the numerator")
    assert rows["counts"] == f"{c.k:,} of {c.n:,} on x, {c.k_prime:,} of {c.n_prime:,} on x'"
    assert rows["pair"] == "x = [0., 0.], x' = [1., 1.]"
    assert rows["seed"].startswith(f"{seed} (trials 0 to 100,000; ")
    assert rows["repeat"] == f"python -m pytest {name}"
    assert "needed" not in rows


def run_script(script):
    command = [sys.executable, "-c", script]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def test_what_a_failure_says_repeats_it(inner, pytester, monkeypatch):
    # From another directory than that of the configuration, with an option of the command line.
    pytester.makeini("[pytest]\n")
    folder = pytester.mkdir("else where")
    pytester.makepyfile(**{"else where/test_there": START + BAD})
    monkeypatch.chdir(folder)
    arguments = ["-p", "dpcore.pytest_plugin", "-p", "no:cacheprovider"]
    rows = message(pytester.runpytest_subprocess(*arguments, "--dp-trials=2e4", "test_there.py"))
    words = shlex.split(rows["repeat"])
    assert words == ["python", "-m", "pytest", "test_there.py::test_bad", "--dp-trials=2e4"]
    assert message(pytester.runpytest_subprocess(*arguments, *words[3:])) == rows
    assert "20,000 on x" in rows["counts"]
    # The line of Python, in the folder of the test.
    imports = "import numpy as np, dpcore, test_there"
    printed = run_script(f"{imports}\naudit = {rows['or']}\nprint(audit)")
    assert f"  counts       {rows['counts']}\n" in printed
    assert f"  seed         {rows['seed']}\n" in printed


def test_refutes(inner):
    body = """
def test_caught(dp_audit):
    audit = dp_audit.refutes(broken, PAIR, epsilon=1.0)
    assert audit.refuted

def test_missed(dp_audit):
    dp_audit.refutes(broken, PAIR, epsilon=1.4, trials=2000)
    raise AssertionError("not reached")
"""
    result = inner(body)
    result.assert_outcomes(passed=1, failed=1)
    rows = message(result)
    assert rows["headline"].startswith("epsilon <= 1.4 is not refuted: certified epsilon >= 1.")
    needed = re.fullmatch(r"about ([\d,]+) trials on each side, if .*", rows["needed"])
    assert 2000 < int(needed[1].replace(",", "")) < 10**6
    assert rows["repeat"] == "python -m pytest test_inner.py::test_missed"
    assert "not reached" not in result.stdout.str()


def test_an_interrupted_audit_interrupts_the_run(inner):
    body = """
calls = []

def interrupted(x, size, rng):
    calls.append(size)
    if len(calls) > 20:
        raise KeyboardInterrupt
    return noisy(x, size, rng)

def test_it(dp_audit):
    dp_audit(interrupted, PAIR, epsilon=1.0, block=1000)

def test_later():
    assert False
"""
    result = inner(body, subprocess=True)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.assert_outcomes()


SEVERAL = """
class TestSome:
    @pytest.mark.parametrize("scale", ["a", "b"])
    def test_one(self, dp_audit, scale):
        show(dp_audit(noisy, PAIR, epsilon=1.0))

def test_two(dp_audit):
    dp_audit(noisy, PAIR, epsilon=1.0)
    show(dp_audit(noisy, PAIR, epsilon=1.0))
"""


def test_seeds_are_those_of_the_test_whatever_else_runs(inner):
    whole = [one[0] for one in shown(inner(SEVERAL, "-s", "--dp-trials=100"))]
    names = ("TestSome::test_one[a]", 1), ("TestSome::test_one[b]", 1), ("test_two", 2)
    assert whole == [seed_of_test(f"test_inner.py::{name}", number) for name, number in names]
    for (name, _), seed in zip(names, whole, strict=True):
        alone = inner(SEVERAL, "-s", "--dp-trials=100", f"test_inner.py::{name}")
        assert [one[0] for one in shown(alone)] == [seed]
    other = inner(SEVERAL, "-s", "--dp-trials=100", "--dp-seed=1")
    assert not {one[0] for one in shown(other)} & set(whole)


def test_seeds_are_distinct_and_in_range():
    places = itertools.product(("a.py::t", "a.py::t1", "b/a.py::t[\ud800]"), range(1, 40), range(9))
    seeds = [seed_of_test(*place) for place in places]
    assert len(set(seeds)) == len(seeds) == 3 * 39 * 9
    assert 0 <= min(seeds) < 2**62 < max(seeds) < 2**63
    # 1 and 11 of "x" against 1 of "1 x": the parts are kept apart.
    assert seed_of_test("x", 11, 1) != seed_of_test("x", 1, 11)


def test_reports_are_shown_when_asked_for(inner, pytester):
    body = SEVERAL + "\ndef test_bad(dp_audit): dp_audit(broken, PAIR, epsilon=1.0)\n"
    quiet = inner(body).stdout.str()
    assert "audits by dpcore" not in quiet
    # The message of the one failure, not its report once more. (Where the environment variable CI
    # is set, pytest's own summary repeats messages at full length.)
    assert quiet.partition("short test summary info")[0].count("  verdict      ") == 1
    verbose = inner(body, "-v", "--junitxml=out.xml").stdout.str()
    name = "test_inner.py::test_two"
    lines = [line for line in verbose.splitlines() if line.startswith(f"{name}: ")]
    bound = r"certified epsilon >= 0\.\d{4} at 99\.99 % confidence"
    for number, line in enumerate(lines, start=1):
        words = rf"{re.escape(name)}: test_inner\.noisy: epsilon <= 1 not refuted by this attack"
        assert re.fullmatch(rf"{words}, {bound}, seed {seed_of_test(name, number)}", line)
    assert len(lines) == 2
    assert re.search(r"test_bad: test_inner\.broken: epsilon <= 1 refuted, certified", verbose)
    properties = list(ElementTree.parse(pytester.path / "out.xml").iter("property"))
    told = [node.get("value") for node in properties if node.get("name") == "dp_audit"]
    assert told[2:4] == [line[25:] for line in lines]
    shares = [float(node.get("value")) for node in properties if node.get("name") == "dp_share"]
    assert all(f"{share:.4f}" in line for share, line in zip(shares[2:4], lines, strict=True))
    passes = inner(body, "-rP").stdout.str()
    assert passes.count("Captured dp_audit call") == 4
    assert f"  seed         {seed_of_test(name, 2)} (trials 0 to 100,000; " in passes


def test_help_names_everything(inner):
    text = inner(SHOW, "--help").stdout.str()
    names = "--dp-trials", "--dp-confidence", "--dp-seed", "dp_trials", "dp_min_share"
    for name in (*names, "--dp-min-share=SHARE"):
        assert name in text
    markers = inner(SHOW, "--markers").stdout.str()
    assert "@pytest.mark.dp(trials, confidence, seed, min_share): " in markers
    fixtures = inner(SHOW, "--fixtures").stdout
    fixtures.fnmatch_lines(["dp_audit*", "*fails if its claim is refuted.*"])


LITTLE = """
def quiet(x, size, rng):
    return rng.laplace(size=(size, 1))

def test_enough(dp_audit):
    dp_audit(noisy, PAIR, epsilon=1.0)
    dp_audit.refutes(broken, PAIR, epsilon=1.0)

def test_little(dp_audit):
    for claim in (1.0, 0.0):
        dp_audit(quiet, ([0.0], [1.0]), epsilon=claim)

@pytest.mark.dp(min_share=0.0)
def test_metric(dp_audit):
    pair = dpcore.Pair([0.0], [1.0], 8.0)
    dp_audit(dpcore.Gaussian(1.0), pair, epsilon=1.0, delta=1e-3)
    dp_audit.outputs([0.0, 1.0] * 100, [1.0, 0.0] * 100, rows="independent", arranged=True,
                     paired=True, epsilon=1.0)
"""


@pytest.mark.parametrize("workers", [[], ["-p", "xdist", "-n2"]], ids=["alone", "xdist"])
def test_a_run_counts_the_audits_that_saw_less_than_half_of_their_claim(inner, workers):
    if workers:
        pytest.importorskip("xdist")

    def last(*arguments):
        lines = inner(LITTLE, *workers, *arguments, subprocess=True).outlines
        found = [n for n, line in enumerate(lines) if line.startswith("dp_audit: ")]
        return lines[found[0] :] if found else []

    said = "dp_audit: 3 of 6 audits certified less than half of their claim"
    verbose = last("-v")
    assert verbose[0] == said
    assert set(verbose[1:3]) == {f"  test_inner.py::test_{name}" for name in ("little", "metric")}
    if workers:
        return
    quiet = last()
    assert quiet[0] == f"{said} (-v names the tests)"
    assert " 3 passed" in quiet[-1]
    # Nothing is said of a run whose audits all saw half.
    assert last("-k", "enough") == []
    one = last("-k", "little")[0]
    assert (
        one == "dp_audit: 1 of 2 audits certified less than half of its claim (-v names the tests)"
    )


def test_a_least_share_of_the_claim_fails_what_sees_less(inner, pytester):
    result = inner(LITTLE, "--dp-min-share=.8")
    # The marker wins for the third test.
    result.assert_outcomes(passed=2, failed=1)
    rows = message(result)
    hardly = (
        "epsilon <= 1 was hardly tested (less than 0.8 of it, see --dp-min-share): certified eps"
    )
    assert rows["headline"].startswith(hardly)
    assert rows["repeat"] == "python -m pytest test_inner.py::test_little --dp-min-share=.8"
    assert "another pair (dpcore.pairs.search) or an own score" in rows["needed"]
    # A claim with delta is held against the whole bound, recorded outputs like any other.
    inner(LITTLE.replace("min_share=0.0", "min_share=0.1")).assert_outcomes(passed=2, failed=1)
    rows = message(inner(LITTLE.replace("min_share=0.0", "min_share=0.5"), "-k", "metric"))
    assert rows["headline"].startswith("epsilon <= 1, delta = 0.001 was hardly tested")
    assert not find_missing(rows["or"], "delta=0.001", "distance=8.0")
    pytester.makeini("[pytest]\ndp_min_share = 0.8\n")
    inner(LITTLE).assert_outcomes(passed=2, failed=1)
    inner(LITTLE, "--dp-min-share=0").assert_outcomes(passed=3)


def loaded(name):
    """Modules of dpcore and scipy that are there after an import."""
    printed = run_script(f"import sys, {name}; print(*sys.modules)").split()
    return {module for module in printed if module.startswith(("dpcore", "scipy"))}


def test_the_plugin_loads_messages_alone():
    found = loaded("dpcore.pytest_plugin") - loaded("dpcore")
    inner = {
        f"dpcore.{name}"
        for name in ["advice", "annotations", "errors", "packages", "suggestions", "visible"]
    }
    assert found == {"dpcore.pytest_plugin", *inner}
    assert {"dpcore.auditing.run", "scipy"} <= loaded("dpcore.auditing.run, scipy")


def test_the_fixture_is_there_without_being_asked_for(pytester, monkeypatch):
    """The entry point of the installed package, in a run that knows nothing of this one."""
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", raising=False)
    pytester.makepyfile(test_inner=START + SHOW)
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_the_example_of_the_readme(inner):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), flags=re.DOTALL)
    (example,) = (block for block in blocks if "dp_audit" in block)
    inner(example).assert_outcomes(passed=example.count("def test_"))


WIDE = """
import numpy as np
from dpcore.attacks import candidates

candidates.MOST_PARTS = 10

def test_wide(dp_audit):
    def rows(x, size, rng):
        return [dict(enumerate(row)) for row in rng.normal(size=(size, 12)).tolist()]

    dp_audit(rows, (["a"], ["b"]), claim=1.0, trials=500)
"""


def test_a_run_names_the_audits_that_left_parts_out(inner):
    said = [line for line in inner(WIDE, subprocess=True).outlines if " compared " in line]
    assert len(said) == 1
    assert said[0].startswith("dp_audit: test_inner.py::test_wide compared 10 of ")


def test_an_error_shows_the_frames_of_the_test_and_of_the_mechanism(inner):
    body = """
def raising(x, size, rng):
    raise RuntimeError("from the mechanism")

def test_wrong_call(dp_audit):
    dp_audit(noisy, PAIR, claim=1.0, trials=-1)

def test_mechanism(dp_audit):
    dp_audit(raising, PAIR, claim=1.0)
"""
    result = inner(body)
    result.assert_outcomes(failed=2)
    shown = result.stdout.str()
    assert "dp_audit(noisy, PAIR, claim=1.0, trials=-1)" in shown
    assert "ValueError: trials must be a whole number at least 1" in shown
    assert "in raising" in shown or "def raising" in shown
    assert "RuntimeError: from the mechanism" in shown
    assert "errors.py" not in shown
    assert "suggestions.py" not in shown
    assert "request.py" not in shown
    # The control: pytest's own option shows all frames.
    whole = inner(body, "--full-trace").stdout.str()
    assert "errors.py" in whole
    assert "request.py" in whole


# The fixture `dp_audit` with recorded outputs, and what its results say of how they were made.


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
            f"*SHOWN OutputsAudit {seed_of_test(stands, 1)} 0.9999 pytest {stands} {elsewhere}",
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


# The plugin's settings: options, markers, arguments, and which of them wins.


NAME = "test_inner.py::test_it"
INI = "dp_trials = 1e3\ndp_confidence = 0.9\ndp_seed = 5"


@pytest.mark.parametrize(("ini", "arguments", "marker", "call", "expected"), [
    ("", [], "", "", Settings()),
    (INI, [], "", "", Settings(1000, 0.9, 5)),
    (INI, ["--dp-trials", "2000", "--dp-confidence=.8", "--dp-seed=6"], "", "",
     Settings(2000, 0.8, 6)),
    (INI, ["--dp-trials=2000", "--dp-seed=6"], "confidence=.7, seed=3", "", Settings(2000, 0.7, 3)),
    ("", ["--dp-trials=2000"], "trials=3000", "trials=4000", Settings(trials=4000)),
    ("", [], "trials='3e3'", "trials=None, confidence=.6", Settings(3000, 0.6)),
    ("", [], "seed=3", "rng=None", Settings(seed=3)),
])  # fmt: skip
def test_settings_from_weak_to_strong(inner, pytester, ini, arguments, marker, call, expected):
    pytester.makeini(f"[pytest]\n{ini}\n")
    mark = f"@pytest.mark.dp({marker})\n" if marker else ""
    body = f"{mark}{SHOW}".replace("epsilon=1.0", f"epsilon=1.0, {call}")
    result = inner(body, "-s", "--strict-markers", "--strict-config", *arguments)
    result.assert_outcomes(passed=1)
    seed = seed_of_test(NAME, 1, expected.seed)
    trials = 10**5 if expected.trials is None else expected.trials
    assert shown(result) == [(seed, trials, expected.confidence)]


def test_the_closest_marker_wins(inner):
    body = """
pytestmark = pytest.mark.dp(trials=1000, confidence=0.9)

@pytest.mark.dp(trials=2000)
class TestIt:
    def test_one(self, dp_audit): show(dp_audit(noisy, PAIR, epsilon=1.0))

    @pytest.mark.dp(trials=3000)
    def test_two(self, dp_audit): show(dp_audit(noisy, PAIR, epsilon=1.0))
"""
    assert [one[1:] for one in shown(inner(body, "-s"))] == [(2000, 0.9), (3000, 0.9)]


def test_a_seed_of_ones_own(inner):
    result = inner(SHOW.replace("epsilon=1.0", "epsilon=1.0, rng=77, threads=2, block=64"), "-s")
    assert [one[0] for one in shown(result)] == [77]


@pytest.mark.parametrize(("ini", "arguments", "text"), [
    ("", ["--dp-trials=many"], "--dp-trials must be a whole number at least 1 and below 2**63, "),
    ("", ["--dp-min-share=1"], "--dp-min-share must be a finite number at least 0 and below 1"),
    ("dp_confidence = high", [], "dp_confidence must be a finite number above 0 and below 1, "),
    ("dp_confidence = 1", [], "dp_confidence must be a finite number above 0 and below 1, "),
    ("dp_seed =", [], "dp_seed must be an integer at least 0, got ''"),
    ("dp_seed = -1", [], "dp_seed must be an integer at least 0, got -1"),
])  # fmt: skip
def test_wrong_settings_are_bad_usage(inner, pytester, ini, arguments, text):
    pytester.makeini(f"[pytest]\n{ini}\n")
    result = inner(SHOW, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"ERROR: {text}" in result.stderr.str()


WRONG = [
    ("dp(10)", "epsilon=1.0", "TypeError: marker dp must be given the keywords trials, "),
    ("dp(trial=10)", "epsilon=1.0", "TypeError: marker dp must be given the keywords trials, "),
    ("dp(trials=0)", "epsilon=1.0", "ValueError: dp(trials) must be a whole number at least 1"),
    ("dp()", "", "ValueError: claim must be given for a mechanism without its own claim, got"),
    ("dp()", "claim=-1", "ValueError: claim must be a finite number at least 0, got -1"),
    ("dp()", "epsilon=-1", "ValueError: epsilon must be a finite number at least 0, got -1"),
    ("dp()", "epsilon=1, claim=1", "ValueError: claim must be given once, as claim or "),
    ("dp()", "epsilon=1, delta=None", "TypeError: delta must be a finite number at least 0 "),
    ("dp()", "epsilon=1, trials=0", "ValueError: trials must be a whole number at least 1"),
    ("dp()", "epsilon=1, tirals=9", "TypeError: dpcore.audit has no argument 'tirals'"),
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


FORGER = r"""
@pytest.mark.parametrize("claim", [3.0, 0.1])
def test_noise(dp_audit, claim):
    def noise(x, size, rng):
        return x + rng.laplace(size=(size, len(x)))
    noise.__name__ = noise.__qualname__ = "m\n  verdict      fine\x1b[2J\u202e\ud800"
    dp_audit(noise, PAIR, claim=claim, trials=2000)
"""


def test_names_forge_neither_a_failure_nor_the_xml(inner, pytester):
    result = inner(FORGER, "-v", "--junitxml=out.xml")
    result.assert_outcomes(passed=1, failed=1)
    xml = (pytester.path / "out.xml").read_text(encoding="utf-8")
    for text in (result.stdout.str(), xml):
        assert r"m\n  verdict      fine\x1b[2J\u202e\ud800" in text
        assert not re.search("\x1b\\[2J|\u202e|^ *verdict +fine", text, re.MULTILINE)
