"""The command line: audits of published systems and of a user's mechanisms."""

from __future__ import annotations

import json
import shlex
import sys

import numpy as np
import pytest

import dpcore
from dpcore import Audit, attacks, published
from dpcore.attacks import MajorityVote
from dpcore.cli.audits import SYSTEMS

# Published systems.


def test_every_system_has_a_name():
    assert set(SYSTEMS.values()) == set(published.SYSTEMS)


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_runs(run, name):
    status, out, _ = run(f"audit {name} --epsilon 1 --trials 1000 --seed 1 --json")
    report = Audit.from_json(out)
    assert report.mechanism == SYSTEMS[name](1.0)
    assert report.pair == SYSTEMS[name](1.0).default_pair(2)
    assert status == (1 if report.refuted else 0)
    assert json.loads(out) == json.loads(report.to_json())


def test_options_reach_the_audit(run):
    _, out, _ = run(
        "audit dptext --epsilon 2 --sensitivity 3 --nan resample --dim 4 --trials 2e3 --start 1e3 "
        "--claim 5 --delta 0.1 --confidence 0.9 --seed 7 --route sampled --block 64 --threads 2 "
        "--attack majority --bound exact --no-progress --json"
    )
    system = published.DPText(2.0, 3.0, "resample")
    here = dpcore.audit(
        system, system.default_pair(4), trials=2000, start=1000, claim=5.0, delta=0.1,
        confidence=0.9, rng=7, route="sampled", block=64, threads=1, attack=MajorityVote(),
        bound="exact",
    )  # fmt: skip
    assert Audit.from_json(out) == here


def test_options_of_the_default_attack_reach_the_audit(run):
    words = "audit dptext --epsilon 2 --trials 3e3 --seed 7 --json"
    system = published.DPText(2.0)
    arguments = {"trials": 3000, "rng": 7}
    for more, wanted in (
        ("", {}),
        ("--attack auto --pilot 300 --floats", {"pilot": 300, "floats": True}),
        ("--stop refuted --block 100", {"stop": "refuted", "block": 100}),
    ):
        here = dpcore.audit(system, **arguments, **wanted)
        assert Audit.from_json(run(f"{words} {more}")[1]) == here


@pytest.mark.parametrize("name", sorted({*attacks.NAMES} - {"timing", "words"}))
def test_every_attack_runs_by_its_name(run, name):
    if name == "classifier":
        pytest.importorskip("sklearn")
    _, out, err = run(f"audit laplace --epsilon 1 --trials 1000 --seed 1 --json --attack {name}")
    assert err == ""
    assert Audit.from_json(out).attack == type(attacks.named(name)).__name__


def test_latencies_of_a_users_mechanism(run, own):
    words = f"audit {own}:release --x 0 --x-prime 1 --no-claim --trials 100 --attack timing --json"
    report = Audit.from_json(run(words)[1])
    assert (report.attack, report.route, report.bound) == ("Timing", "timed", "conditional")


def test_words_of_a_users_mechanism(run, tmp_path):
    own = tmp_path / "speaking.py"
    said = "[f'{x} {k}' for k in rng.integers(10**6, size=size)]"
    own.write_text(f"def speak(x, size, rng):\n    return {said}\n")
    words = f"audit {own}:speak --text boston --text-prime denver --claim 1 --trials 2000"
    report = Audit.from_json(run(f"{words} --attack words --json")[1])
    assert (report.attack, report.refuted) == ("Words", True)


def test_patterns_are_pairs_to_choose_from(run, own):
    words = f"audit {own}:release --dim 3 --claim 0.5 --trials 2e4 --seed 1 --json"
    for which in ("one", "all"):
        report = Audit.from_json(run(f"{words} --patterns {which}")[1])
        assert report.pair in tuple(dpcore.pairs.patterns(3, which))


def test_sensitivity_is_the_distance_of_the_pair(run, tmp_path):
    for words in ("--x -1,2 --x-prime 1,-3", "--x=-1,2 --x-prime=1,-3"):
        status, out, _ = run(f"audit laplace --epsilon 1 --trials 100 --json {words}")
        report = Audit.from_json(out)
        assert status == 0
        assert report.mechanism == published.LaplaceMechanism(1.0, 7.0)
        assert report.pair == dpcore.Pair(np.array([-1.0, 2.0]), np.array([1.0, -3.0]))
    np.save(tmp_path / "x.npy", np.arange(3.0))
    more = ("--x", f"@{tmp_path / 'x.npy'}", "--x-prime", "0,1,3")
    report = Audit.from_json(run("audit laplace --epsilon 1 --trials 9 --json", *more)[1])
    assert (report.mechanism.sensitivity, report.pair.x.tolist()) == (1.0, [0.0, 1.0, 2.0])


def test_a_pair_beyond_the_sensitivity_needs_a_claim(run):
    words = "audit laplace --epsilon 1 --sensitivity 1 --x 0 --x-prime 3 --trials 1e4 --seed 1"
    status, _, err = run(words)
    assert status == 2
    assert "or give --claim" in err
    assert run(f"{words} --claim 3 --attack majority")[0] == 0
    assert run(f"{words} --claim 1")[0] == 1
    status, out, _ = run(f"{words} --no-claim --json")
    assert (status, Audit.from_json(out).claim) == (0, None)


# Mechanisms of a user.


def test_own_mechanism(run, own):
    words = "--x 0 --x-prime 1 --seed 1 --trials 1e5 --claim"
    status, out, err = run(f"audit {own}:release {words} 0.6")
    assert status == 0
    assert out.startswith(f"{own}:release\n")
    assert "a module may print" in err
    for name in ("release", "flat", "lazy"):
        assert run(f"audit {own}:{name} {words} 0.4")[0] == 1
    words = f"{own}:release --x 0,0 --x-prime 1,0 --seed 1 --trials 1e5 --claim 0.4"
    assert run(f"audit {words}")[0] == 1


def test_own_mechanism_as_json(run, own):
    words = "--x 0 --x-prime 1 --seed 1 --trials 1e4"
    status, out, _ = run(f"audit {own}:release {words} --no-claim --json")
    report = Audit.from_json(out)

    def release(x, size, rng):
        return x + rng.laplace(scale=2.0, size=(size, len(x)))

    assert status == 0
    assert (report.mechanism, report.to_json()) == (f"{own}:release", out.strip())
    assert report.counts == dpcore.audit(release, ([0], [1]), trials=10**4, rng=1, claim=1).counts


@pytest.mark.parametrize("name", ["claiming", "Space.mechanism"])
def test_own_claim_and_pair(run, own, name):
    # The vote sees less than the loss, which is the claim: it cannot refute it by chance.
    status, out, _ = run(f"audit {own}:{name} --trials 1e4 --attack majority")
    assert status == 0
    assert "epsilon <= 0.5" in out
    status, out, _ = run(f"audit {own}:{name} --trials 1e5 --claim 0.1")
    assert status == 1
    assert "(the mechanism's own: 0.5)" in out


def test_a_native_mechanism_in_a_users_file_is_run_by_the_core(run, own):
    words = "--x 0,0 --x-prime 1,1 --trials 1e4 --claim 9 --attack majority --json"
    report = Audit.from_json(run(f"audit {own}:native {words}")[1])
    assert (report.mechanism, report.route) == (dpcore.Laplace(0.5), "integer")


def read_failure(run, words, *complaints):
    """Run a line that ends with 3, and return what it says."""
    status, out, err = run(words)
    assert (status, out) == (3, "")
    assert [one for one in complaints if one not in err] == []
    return err


@pytest.mark.parametrize(("name", "complaint"), [
    ("raising", "raising failed: ValueError: block must be luckier"),
    ("leaving", "leaving failed: SystemExit: 0"),
    ("wrong_rows", "wrong_rows must be an array with 2 rows, one per output, got (3, 1)"),
    ("ragged", "ragged must be an array with 2 rows, one per output, got (4,)"),
    ("broken", "broken.claim failed: ValueError: no claim today"),
    ("pairless", "must be a Pair"),
])  # fmt: skip
def test_a_failed_mechanism_is_3(run, own, name, complaint):
    words = {"broken": "", "pairless": "--claim 1"}.get(name, "--claim 1 --x 0 --x-prime 1")
    err = read_failure(run, f"audit {own}:{name} {words} --trials 1000", complaint, "hint: ")
    assert "Traceback" not in err
    status, _, err = run(f"audit {own}:{name} {words} --trials 1000 --traceback")
    assert status == 3
    assert "Traceback (most recent call last)" in err


@pytest.mark.parametrize(("name", "complaint"), [
    ("wrong_shape", "wrong_shape must be of shape (size, 1), got"),
    ("words", "words must be real numbers"),
])  # fmt: skip
def test_outputs_that_cannot_vote_fail_the_vote_alone(run, own, name, complaint):
    words = f"audit {own}:{name} --claim 1 --x 0 --x-prime 1 --trials 1000"
    read_failure(run, f"{words} --attack majority", complaint, "hint: ")
    # The default attack reads them, and says that they are one value.
    status, out, _ = run(words)
    assert status == 3
    assert "undecided: all " in out


@pytest.mark.parametrize(("text", "complaint"), [
    ("import nothing_of_that_name", "ModuleNotFoundError: No module named"),
    ("def f(:", "SyntaxError"),
    ("import sys; sys.exit(0)", "SystemExit: 0"),
])  # fmt: skip
def test_a_failed_import_is_3(run, tmp_path, text, complaint):
    (tmp_path / "bad.py").write_text(f"\n{text}\n")
    path, modules = list(sys.path), set(sys.modules)
    words = f"audit {tmp_path / 'bad.py'}:f --claim 1 --dim 1"
    read_failure(run, words, complaint, "(bad.py, line 2)")
    assert sys.path == path
    assert not [name for name in set(sys.modules) - modules if "bad" in name]


# The command line: `dpcore audit --command`.


SURVEY = """
import os, random, sys
keep, truth, size = float(sys.argv[1]), sys.argv[2], int(sys.argv[3])
if truth not in ("never", "daily"):
    sys.exit(f"no such answer: {truth}")
rng = random.Random(int(os.environ["DPCORE_SEED"]))
for _ in range(size):
    print(truth if rng.random() < keep else "daily" if truth == "never" else "never")
"""


@pytest.fixture
def line(tmp_path):
    """The words of a command: keep -> what stands behind --command, as one word."""
    file = tmp_path / "survey.py"
    file.write_text(SURVEY)
    words = [sys.executable, "-S", "-E", str(file)]
    return lambda keep=0.8176: shlex.join([*words, str(keep)]) + " {x} {size}"


def test_a_leaky_survey_tool_is_refuted_and_a_private_one_is_not(run, line):
    words = "audit --x never --x-prime daily --claim 1 --trials 5000 --seed 1 --command"
    status, out, err = run(words, line())
    assert (status, err) == (1, "")
    assert "survey.py 0.8176 {x} {size}\n  verdict      refuted\n" in out
    status, out, _ = run(words, line(0.7310585786300049))
    assert status == 0
    assert "not refuted" in out


def test_the_json_is_that_of_python(run, line):
    words = "audit --x never --x-prime daily --no-claim --trials 500 --seed 2 --json --command"
    status, out, _ = run(words, line())
    assert status == 0
    mechanism = dpcore.command(shlex.split(line()))
    here = dpcore.audit(mechanism, ("never", "daily"), trials=500, rng=2)
    assert json.loads(out)["mechanism"] == mechanism.name
    found = Audit.from_json(out)
    assert (found.counts, found.pair, found.event) == (here.counts, here.pair, here.event)


def test_what_follows_x_is_put_in_unchanged(run):
    code = "import sys; [print(sys.argv[1]) for _ in range(int(sys.argv[2]))]"
    command = shlex.join([sys.executable, "-c", code]) + " {x} {size}"
    for x in ("1,2", "@none.npy", "$(exit) ; 'a'"):
        words = "audit --x-prime b --claim 1 --trials 100 --json --command"
        status, out, _ = run(words, command, "--x", x)
        assert status == 1
        assert Audit.from_json(out).pair.x == x


def test_a_tool_that_fails_ends_with_3_and_its_stderr(run, line):
    status, out, err = run("audit --x never --x-prime weekly --claim 1 --command", line())
    assert (status, out) == (3, "")
    assert "exit status 1; its stderr ends:\nno such answer: weekly\n" in err
    assert "hint: it is run without a shell, {x} and {size} replaced" in err


def test_a_tool_that_hangs_ends_with_3(run):
    command = shlex.join([sys.executable, "-c", "import time; time.sleep(600)"]) + " {x} {size}"
    words = "audit --x never --x-prime daily --claim 1 --timeout 0.5 --command"
    status, _, err = run(words, command)
    assert status == 3
    assert "a pause of 0.5 s (--timeout 0.5), got nothing in that time" in err


# `--catch`: failures that are answers.


FRAGILE = """
import numpy as np
class TooLarge(Exception):
    pass
def fragile(x, rng):
    if rng.random() < 0.1 + 0.6 * SHARE * x[0]:
        raise np.linalg.LinAlgError("no") if x[0] > 2 else TooLarge("no")
    return rng.laplace()
"""
FRAGILE_TOOL = """
import os, random, signal, sys
rng, share = random.Random(os.environ["DPCORE_SEED"]), float(sys.argv[1])
if rng.random() < 0.1 + share * (sys.argv[2] == "b"):
    os.kill(os.getpid(), signal.SIGKILL) if rng.random() < 0.5 else sys.exit(3)
print(rng.random())
"""


@pytest.mark.parametrize("is_leaky", [True, False])
def test_a_caught_exception_is_an_answer(run, tmp_path, is_leaky):
    file = tmp_path / "own.py"
    file.write_text(FRAGILE.replace("SHARE", f"{is_leaky:d}"))
    words = f"audit {file}:fragile --repeat --x 0 --x-prime 1 --claim 1 --trials 2000 --seed 1"
    status, out, _ = run(f"{words} --catch TooLarge,np.linalg.LinAlgError")
    assert status == is_leaky
    assert ("raises TooLarge" in out) == is_leaky
    status, _, err = run(f"{words} --catch ValueError")
    assert status == 3
    assert "TooLarge: no" in err


@pytest.mark.parametrize("is_leaky", [True, False])
def test_a_caught_status_or_signal_is_an_answer(run, is_leaky):
    code = [sys.executable, "-S", "-E", "-c", FRAGILE_TOOL, f"{0.8 * is_leaky}"]
    words = "audit --x a --x-prime b --claim 0.1 --trials 20 --pilot 20 --seed 1 --catch"
    command = "--command", shlex.join(code) + " {x} {size}"
    status, _, _ = run(words, "3,SIGKILL", *command)
    assert status == is_leaky
    assert run(words, "4", *command)[0] == 3


# `--text` and `--text-prime`: mechanisms that take texts.


CODE = """
import numpy as np

class Lengths:
    claim = 1.0
    def clean(self, text):
        return np.array([float(len(text.split()))])
    def loss(self, pair, delta):
        return float(abs(self.clean(pair.x) - self.clean(pair.x_prime))[0] / 2.0)
    def __call__(self, text, size, rng):
        return self.clean(text) + rng.laplace(scale=2.0, size=(size, 1))

class Maker:
    def as_mechanism(self):
        return Lengths()

class Breaking:
    def as_mechanism(self):
        raise ValueError("no weights")

def rewrite(text, size, rng):
    words = text.split()
    return [words[int(rng.integers(len(words)))] for _ in range(size)]

lengths, maker, breaking = Lengths(), Maker(), Breaking()
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "texts.py"
    path.write_text(CODE)
    return str(path)


@pytest.mark.parametrize("name", ["lengths", "maker"])
def test_two_texts_are_the_pair(run, file, name):
    words = ("--text", "a good long film", "--text-prime", "a film", "--trials", "2e4")
    status, out, err = run("audit --seed 1", f"{file}:{name}", *words)
    assert (status, err) == (0, "")
    assert "x = 'a good long film' (str), x' = 'a film' (str)" in out
    assert "exact loss   1.0000 for this pair" in out
    status, out, _ = run("audit --seed 1 --claim .5", f"{file}:{name}", *words)
    assert status == 1


def test_a_rewriter_of_texts_is_audited(run, file):
    words = ("--text", "a good film", "--text-prime", "a film", "--trials", "2e4", "--claim", "1")
    status, out, err = run("audit --seed 1", f"{file}:rewrite", *words)
    assert (status, err) == (1, "")
    assert "verdict      refuted" in out


def test_a_maker_that_fails_is_the_users(run, file):
    status, _, err = run("audit", f"{file}:breaking", "--text", "a", "--text-prime", "b")
    assert status == 3
    assert "no weights" in err


# The command line: how its reports were made, and the page of recorded outputs.


MINE = '''
def noisy(x, size, rng):
    """<script>alert(1)</script>"""
    return x + rng.laplace(size=(size, 1))
'''
OWN = "--x 0 --x-prime 1 --claim 1 --trials 1000 --seed 1"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a mechanism and recorded outputs, in which commands are called."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    np.save("x.npy", np.random.default_rng(1).laplace(size=200))
    np.save("x_prime.npy", np.random.default_rng(2).laplace(size=200))
    return tmp_path


def made(text):
    """The provenance in a document of JSON."""
    (found,) = json.loads(text)["provenance"]
    return found


def test_a_report_keeps_the_line_and_the_users_source(run, here):
    line = f"audit mine.py:noisy {OWN} --json --html 'a page.html'"
    found = made(run(line.partition("'")[0], "a page.html")[1])
    assert found["command"] == f"dpcore {line}"
    assert (found["origin"], found["source"]) == ("function noisy", MINE[1:])
    page = (here / "a page.html").read_text()
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert" not in page
    assert f"dpcore {line}".replace("'", "&#x27;") in page


def test_no_source(run, here):
    _, out, _ = run(f"audit mine.py:noisy {OWN} --no-source --json")
    assert made(out)["origin"] == "left out (source=False)"
    assert "laplace" not in out
    origin = made(run("audit laplace --epsilon 1 --trials 1000 --json")[1])["origin"]
    assert origin == f"dpcore.published.LaplaceMechanism of dpcore {dpcore.__version__}"


def test_recorded_outputs_have_a_page(run, here):
    line = "audit-outputs x.npy x_prime.npy --rows independent --claim 1 --seed 1"
    status, out, err = run(f"{line} --html page.html --no-source")
    assert (status, "wrote page.html" in err) == (0, True)
    assert "verdict      not refuted" in out
    assert f"dpcore {line} --html page.html --no-source" in (here / "page.html").read_text()
    assert made(run(f"{line} --json")[1])["command"] == f"dpcore {line} --json"
