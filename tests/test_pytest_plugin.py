"""The pytest fixture dp_audit, run inside pytest runs of its own."""

from __future__ import annotations

import itertools
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

import dpcore
from dpcore import Counts, Pair
from dpcore.bounds import clopper_pearson
from dpcore.pytest_plugin import Settings, seed_of, trials_needed

pytest_plugins = ["pytester"]

README = Path(__file__).parent.parent / "README.md"

START = """
import dpcore, pytest

PAIR = dpcore.pairs.zeros_ones(2)

def noisy(x, size, rng):
    return x + rng.laplace(scale=2.0, size=(size, len(x)))

def broken(x, size, rng):
    return x + rng.laplace(scale=1.0, size=(size, len(x)))

def show(audit):
    print("SHOWN", audit.seed, audit.trials, audit.confidence)

"""


@pytest.fixture
def inner(pytester, monkeypatch):
    """Runs pytest on a file of tests that begins with START."""
    # Whether the entry point is installed or not, the plugin is loaded exactly once.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)

    def run(body, *arguments, subprocess=False):
        pytester.makepyfile(test_inner=START + body)
        start = pytester.runpytest_subprocess if subprocess else pytester.runpytest_inprocess
        return start("-p", "dpcore.pytest_plugin", "-p", "no:cacheprovider", *arguments)

    return run


def shown(result):
    """(seed, trials, confidence) of every audit that was shown."""
    found = re.findall(r"SHOWN (\d+) (\d+) (\S+)$", result.stdout.str(), re.M)
    return [(int(seed), int(trials), float(level)) for seed, trials, level in found]


def test_a_claim_that_stands(inner):
    result = inner(
        """
def test_it(dp_audit):
    first = dp_audit(noisy, PAIR, epsilon=1.0)
    second = dp_audit(noisy, pair=PAIR, epsilon=1.0)
    assert type(first) is dpcore.Audit
    assert (first.claim, first.refuted, first.delta) == (1.0, False, 0.0)
    show(first), show(second)
""",
        "-s",
    )
    result.assert_outcomes(passed=1)
    name = "test_inner.py::test_it"
    expected = [(seed_of(name, number), 10**5, 0.9999) for number in (1, 2)]
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
    seed = seed_of(name, 2)
    # The twin of `broken` as a script would have it.
    found = dpcore.audit(
        lambda x, size, rng: x + rng.laplace(scale=1.0, size=(size, len(x))),
        dpcore.pairs.zeros_ones(2),
        trials=10**5,
        claim=1.0,
        confidence=0.9999,
        rng=seed,
    )
    c, bound = found.counts, f"epsilon >= {found.epsilon_lower:.4f}"
    numerator = {"x": "x", "x_prime": "x'"}[found.direction]
    assert rows["headline"] == f"epsilon <= 1 is refuted: certified {bound} in test_inner.broken"
    assert rows["audit"] == f"2 of {name}"
    assert rows["mechanism"] == "test_inner.broken"
    assert rows["verdict"] == "refuted"
    assert rows["claim"] == "epsilon <= 1"
    assert rows["certified"] == f"{bound} (99.99 % confidence, Clopper-Pearson)"
    assert rows["witness"].startswith(f"{found.event}, {numerator} in the numerator")
    assert rows["counts"] == f"{c.k:,} of {c.n:,} on x, {c.k_prime:,} of {c.n_prime:,} on x'"
    assert rows["pair"] == "x = [0., 0.], x' = [1., 1.]"
    assert rows["seed"].startswith(f"{seed} (trials 0 to 100,000; ")
    assert rows["repeat"] == f"python -m pytest {name}"
    assert "needed" not in rows


def test_what_a_failure_says_repeats_it(inner, pytester, monkeypatch):
    # From another directory than that of the configuration, with an option of the command line.
    pytester.makeini("[pytest]\n")
    folder = pytester.mkdir("else where")
    pytester.makepyfile(**{"else where/test_there": START + BAD})
    monkeypatch.chdir(folder)
    arguments = ["-p", "dpcore.pytest_plugin", "-p", "no:cacheprovider"]
    first = pytester.runpytest_subprocess(*arguments, "--dp-trials=2e4", "test_there.py")
    rows = message(first)
    words = shlex.split(rows["repeat"])
    assert words == ["python", "-m", "pytest", "test_there.py::test_bad", "--dp-trials=2e4"]
    again = pytester.runpytest_subprocess(*arguments, *words[3:])
    assert message(again) == rows
    assert "20,000 on x" in rows["counts"]
    # The line of Python, in the folder of the test.
    script = f"import dpcore, test_there\naudit = {rows['or']}\nprint(audit)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert f"  counts       {rows['counts']}\n" in done.stdout
    assert f"  seed         {rows['seed']}\n" in done.stdout


def test_refutes(inner):
    result = inner(
        """
def test_caught(dp_audit):
    audit = dp_audit.refutes(broken, PAIR, epsilon=1.0)
    assert audit.refuted

def test_missed(dp_audit):
    dp_audit.refutes(broken, PAIR, epsilon=1.4, trials=2000)
    raise AssertionError("not reached")
"""
    )
    result.assert_outcomes(passed=1, failed=1)
    rows = message(result)
    assert rows["headline"].startswith("epsilon <= 1.4 is not refuted: certified epsilon >= 1.")
    needed = re.fullmatch(r"about ([\d,]+) trials on each side, if .*", rows["needed"])
    assert 2000 < int(needed[1].replace(",", "")) < 10**6
    assert rows["repeat"] == "python -m pytest test_inner.py::test_missed"
    assert "not reached" not in result.stdout.str()


def test_refutes_says_when_no_number_of_trials_is_enough(inner):
    # Far more noise than the claim needs: the frequencies themselves do not exceed it.
    result = inner("def test_it(dp_audit): dp_audit.refutes(noisy, PAIR, epsilon=5.0)\n")
    result.assert_outcomes(failed=1)
    assert message(result)["needed"].endswith("no number of trials is enough")


def test_delta_and_distance_are_part_of_the_claim(inner):
    result = inner(
        """
def test_it(dp_audit):
    pair = dpcore.Pair([0.0, 0.0], [1.0, 1.0], 2.0)
    assert dp_audit(broken, pair, epsilon=1.0, delta=1e-3).delta == 1e-3
    dp_audit(broken, pair, epsilon=0.1, delta=1e-3)
"""
    )
    result.assert_outcomes(failed=1)
    rows = message(result)
    assert rows["headline"].startswith("epsilon <= 0.1, delta = 0.001 is refuted: ")
    assert "delta=0.001" in rows["or"]
    assert "distance=2.0" in rows["or"]


SHOW = "def test_it(dp_audit): show(dp_audit(noisy, PAIR, epsilon=1.0))\n"
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
    assert shown(result) == [(seed, expected.trials, expected.confidence)]


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
        ("", ["--dp-trials=many"], "--dp-trials must be a whole number at least 1 "),
        ("", ["--dp-confidence=1"], "--dp-confidence must be a finite number above 0 and below 1,"),
        ("", ["--dp-confidence=high"], "--dp-confidence must be a finite number above 0 "),
        ("", ["--dp-confidence=nan"], "--dp-confidence must be a finite number above 0 "),
        ("", ["--dp-seed=-1"], "--dp-seed must be an integer at least 0, got -1"),
        ("", ["--dp-seed=1.5"], "--dp-seed must be an integer at least 0, got '1.5'"),
        ("dp_trials = x", [], "dp_trials must be a whole number at least 1 "),
        ("dp_confidence = 2", [], "dp_confidence must be a finite number above 0 "),
        ("dp_seed =", [], "dp_seed must be an integer at least 0, got ''"),
    ],
)
def test_wrong_settings_are_bad_usage(inner, pytester, ini, arguments, text):
    pytester.makeini(f"[pytest]\n{ini}\n")
    result = inner(SHOW, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"ERROR: {text}" in result.stderr.str()


@pytest.mark.parametrize(
    ("mark", "call", "text"),
    [
        ("dp(10)", "epsilon=1.0", "TypeError: marker dp must be given the keywords trials, "),
        ("dp(trial=10)", "epsilon=1.0", "TypeError: marker dp must be given the keywords trials, "),
        ("dp(trials=0)", "epsilon=1.0", "ValueError: dp(trials) must be a whole number at least 1"),
        ("dp(seed=True)", "epsilon=1.0", "TypeError: dp(seed) must be an integer at least 0"),
        ("dp()", "", "TypeError: * missing 1 required keyword-only argument: 'epsilon'"),
        ("dp()", "epsilon=None", "TypeError: epsilon must be a finite number at least 0, got None"),
        ("dp()", "epsilon=-1", "ValueError: epsilon must be a finite number at least 0, got -1"),
        ("dp()", "epsilon=1, claim=1", "TypeError: claim must be given as epsilon, got 1"),
        ("dp()", "epsilon=1, delta=None", "TypeError: delta must be a finite number at least 0 "),
        ("dp()", "epsilon=1, trials=0", "ValueError: trials must be a whole number at least 1"),
        ("dp()", "epsilon=1, tirals=9", "TypeError: * unexpected keyword argument 'tirals'*"),
    ],
)
def test_wrong_arguments(inner, mark, call, text):
    body = f"@pytest.mark.{mark}\n" + SHOW.replace("epsilon=1.0", call)
    result = inner(body)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"E * {text.replace('[', '[[]')}*"])


def test_what_a_mechanism_raises_passes_through(inner):
    result = inner(
        """
def failing(x, size, rng):
    raise ZeroDivisionError("mine")

def test_it(dp_audit):
    with pytest.raises(ZeroDivisionError, match="mine"):
        dp_audit(failing, PAIR, epsilon=1.0)
"""
    )
    result.assert_outcomes(passed=1)


def test_an_interrupted_audit_interrupts_the_run(inner):
    result = inner(
        """
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
""",
        subprocess=True,
    )
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
    result = inner(SEVERAL, "-s", "--dp-trials=100")
    whole = [one[0] for one in shown(result)]
    names = ["TestSome::test_one[a]", "TestSome::test_one[b]", "test_two"]
    numbers = [1, 1, 2]
    assert whole == [
        seed_of(f"test_inner.py::{name}", number)
        for name, number in zip(names, numbers, strict=True)
    ]
    for name, seed in zip(names, whole, strict=True):
        alone = inner(SEVERAL, "-s", "--dp-trials=100", f"test_inner.py::{name}")
        assert [one[0] for one in shown(alone)] == [seed]
    other = inner(SEVERAL, "-s", "--dp-trials=100", "--dp-seed=1")
    assert not {one[0] for one in shown(other)} & set(whole)


def test_seeds_are_distinct_and_in_range():
    places = itertools.product(("a.py::t", "a.py::t1", "b/a.py::t[\ud800]"), range(1, 40), range(9))
    seeds = [seed_of(*place) for place in places]
    assert len(set(seeds)) == len(seeds) == 3 * 39 * 9
    assert 0 <= min(seeds) < 2**62 < max(seeds) < 2**63
    # 1 and 11 of "x" against 1 of "1 x": the parts are kept apart.
    assert seed_of("x", 11, 1) != seed_of("x", 1, 11)


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
        assert re.fullmatch(rf"{words}, {bound}, seed {seed_of(name, number)}", line)
    assert len(lines) == 2
    assert re.search(r"test_bad: test_inner\.broken: epsilon <= 1 refuted, certified", verbose)
    properties = ElementTree.parse(pytester.path / "out.xml").iter("property")
    assert [node.get("value") for node in properties][2:4] == [line[25:] for line in lines]
    passes = inner(body, "-rP").stdout.str()
    assert passes.count("Captured dp_audit call") == 4
    assert f"  seed         {seed_of(name, 2)} (trials 0 to 100,000; " in passes


def test_help_names_everything(inner):
    text = inner(SHOW, "--help").stdout.str()
    for name in ("--dp-trials", "--dp-confidence", "--dp-seed", "dp_trials", "dp_seed"):
        assert name in text
    assert "@pytest.mark.dp(trials, confidence, seed): " in inner(SHOW, "--markers").stdout.str()
    inner(SHOW, "--fixtures").stdout.fnmatch_lines(
        ["dp_audit*", "*fails if its claim is refuted.*"]
    )


def loaded(name):
    """Modules of dpcore and scipy that are there after an import."""
    script = f"import sys, {name}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    return {module for module in done.stdout.split() if module.startswith(("dpcore", "scipy"))}


def test_the_plugin_loads_nothing_that_dpcore_does_not_load():
    assert loaded("dpcore.pytest_plugin") - loaded("dpcore") == {"dpcore.pytest_plugin"}
    assert "scipy" not in loaded("dpcore.pytest_plugin")
    assert "scipy" in loaded("dpcore, scipy")


def test_the_fixture_is_there_without_being_asked_for(pytester, monkeypatch):
    """The entry point of the installed package, in a run that knows nothing of this one."""
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", raising=False)
    pytester.makepyfile(test_inner=START + SHOW)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)


def test_the_example_of_the_readme(inner):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), flags=re.DOTALL)
    (example,) = (block for block in blocks if "dp_audit" in block)
    inner(example).assert_outcomes(passed=example.count("def test_"))


# What a claim that stands would need.

SEEN = replace(
    dpcore.audit(dpcore.Laplace(1.0), trials=1000, claim=1.0, rng=1, confidence=0.99),
    direction="x",
)


@pytest.mark.parametrize(
    ("counts", "claim", "delta", "distance"),
    [
        (Counts(600, 1000, 300, 1000), 0.6, 0.0, 1.0),
        (Counts(600, 1000, 300, 1000), 0.6, 0.05, 1.0),
        (Counts(600, 1000, 300, 1000), 0.3, 0.0, 2.0),
        (Counts(600, 1000, 0, 1000), 6.0, 0.0, 1.0),
        (Counts(999, 1000, 4, 2000), 6.0, 0.0, 1.0),
    ],
)
def test_trials_needed(counts, claim, delta, distance):
    pair = Pair([0.0], [1.0], distance)
    found = replace(SEEN, counts=counts, claim=claim, delta=delta, pair=pair)
    needed = trials_needed(found)

    def refuted(trials):
        # k down and k' up: never more evidence than the frequencies hold.
        k, k_prime = counts.k * trials // counts.n, -(-counts.k_prime * trials // counts.n_prime)
        same = Counts(k, trials, k_prime, trials)
        return clopper_pearson(same, delta, 0.99) > claim * distance

    assert refuted(needed)
    assert not refuted(int(0.9 * needed))
    swapped = replace(found, counts=counts.swapped(), direction="x_prime")
    assert trials_needed(swapped) == needed


@pytest.mark.parametrize(
    ("counts", "claim", "delta"),
    [
        (Counts(600, 1000, 300, 1000), 0.7, 0.0),
        (Counts(300, 1000, 600, 1000), 0.0, 0.0),
        (Counts(600, 1000, 300, 1000), 0.6, 0.2),
        (Counts(0, 1000, 300, 1000), 0.0, 0.0),
        (Counts(600, 1000, 0, 1000), 40.0, 0.0),
    ],
)
def test_no_number_of_trials_is_enough(counts, claim, delta):
    assert trials_needed(replace(SEEN, counts=counts, claim=claim, delta=delta)) is None
