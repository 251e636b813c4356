"""The command line as a process: above all what it exits with."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from unittest import mock

import pytest

import dpcore


@pytest.mark.parametrize(
    ("words", "status", "said", "complaint"),
    [
        ("audit laplace --epsilon 1 --seed 1 --trials 1e5 --attack majority", 0,
         "not refuted by this attack", ""),
        ("audit half-noise --epsilon 1 --dim 1 --seed 1 --trials 1e5", 1, "refuted", ""),
        # The parser's own errors and those of dpcore.
        ("audit laplace --epsilon one", 2, "", "error: --epsilon must be a number, got 'one'"),
        ("audit laplace --epsilon 1 --trials 0", 2, "", "error: --trials must be a whole number"),
        ("audit OWN:raising --x 0 --x-prime 1 --claim 1", 3, "",
         "raising failed: ValueError: block must be luckier (noisy.py, line 17)"),
    ],
)  # fmt: skip
def test_process_exits_with_its_status(process, own, words, status, said, complaint):
    found, out, err = process(words.replace("OWN", own))
    assert found == status
    assert said in out
    assert complaint in err
    assert "Traceback" not in err
    assert bool(out) == bool(said)
    assert bool(err) == bool(complaint)


@pytest.mark.parametrize(
    ("words", "proposals"),
    [
        ("dpcore au", ["audit", "audit-outputs", "audit-table"]),
        ("dpcore audit --conf", ["--confidence"]),
        ("dpcore audit nothing-of-this-name", []),
    ],
)
def test_the_shell_completes_commands_and_options(run, monkeypatch, words, proposals):
    monkeypatch.setenv("_DPCORE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
    status, out, err = run("")
    assert (status, out.split(), err) == (0, proposals, "")


def test_the_shell_completion_is_installed(run, monkeypatch, tmp_path):
    pytest.importorskip("shellingham")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("shellingham.detect_shell", lambda: ("bash", "/bin/bash"))
    status, out, _ = run("--install-completion")
    assert status == 0
    assert "bash completion installed" in " ".join(out.split())
    script = tmp_path / ".bash_completions" / "dpcore.sh"
    assert "_DPCORE_COMPLETE=complete_bash" in script.read_text()
    assert str(script) in (tmp_path / ".bashrc").read_text()
    status, out, _ = run("--show-completion")
    assert status == 0
    assert out.strip() == script.read_text().strip()


@pytest.mark.parametrize("words", ["info", "audit laplace --epsilon 1"])
def test_process_with_a_cpu_path_that_is_not_there(process, monkeypatch, words):
    """The import must not fail: Python would exit with 1, which says "refuted"."""
    monkeypatch.setenv("DPCORE_CPU", "avx1024")
    status, out, err = process(words)
    assert (status, out) == (2, "")
    assert err.startswith("error: DPCORE_CPU must be one of baseline")


def write_to(target, words):
    """Run a line in a process that writes to a file or a pipe."""
    command = [sys.executable, "-m", "dpcore", *words.split()]
    return subprocess.run(command, stdout=target, stderr=subprocess.PIPE, check=False)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("words", ["audit laplace --epsilon 1 --trials 100", "--version"])
def test_process_that_cannot_write_has_failed(words):
    with open("/dev/full", "w") as full:
        assert write_to(full, words).returncode == 3


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX pipe")
@pytest.mark.parametrize("words", ["audit laplace --epsilon 1 --trials 100", "--help"])
def test_process_whose_reader_has_left_has_failed(words):
    reader, writer = os.pipe()
    os.close(reader)
    done = write_to(writer, words)
    os.close(writer)
    assert (done.returncode, done.stderr) == (3, b"")


# As long as the machine is busy nothing may have been counted: a call is waited for, not a time.
INTERRUPTED = """
import os, runpy, signal, sys, threading
from dpcore.sampling.driver import Source
from dpcore.streams import COUNT
# Whoever runs tests in the background ignores it, and hands that on.
signal.signal(signal.SIGINT, signal.default_int_handler)
calls, real = [], Source.refuse_repeated_outputs
def called(source, purpose, shard):
    calls.append(purpose)
    if purpose == COUNT and calls.count(COUNT) == 2:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    return real(source, purpose, shard)
Source.refuse_repeated_outputs = called
runpy.run_module("dpcore", run_name="__main__")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT of a POSIX system")
@pytest.mark.parametrize(
    "words", ["half-noise --epsilon 1", "OWN:slow --x 0 --x-prime 1 --claim 0.1 --json"]
)
def test_process_interrupted(own, tmp_path, monkeypatch, words):
    """It is interrupted after its second counted shard: refuted by then, but this comes first."""
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    words = f"audit {words.replace('OWN', own)} --attack majority --trials 1e12 --seed 1"
    command = [sys.executable, "-c", INTERRUPTED, *words.split()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 130, done.stderr
    if "--json" in words:
        report = dpcore.Audit.from_json(done.stdout)
        assert report.partial
        assert report.refuted
        assert (report.bound, report.stop) == ("anytime", "interrupted")
        assert 0 < report.counts.n < 10**12
        assert report.counts.n == report.counts.n_prime
    else:
        assert "interrupted: only the trials shown were counted" in done.stdout
        assert re.search(r"counts +[\d,]+ of [\d,]+ on x", done.stdout)


@pytest.mark.parametrize(("error", "expected", "said"), [
    (KeyboardInterrupt, 130, "interrupted"),
    (ZeroDivisionError("oh"), 3, "dpcore failed: ZeroDivisionError: oh"),
])  # fmt: skip
def test_an_interrupt_before_anything_was_counted_and_a_bug_are_not_refuted(
    run, monkeypatch, error, expected, said
):
    monkeypatch.setattr("dpcore.cli.audits.audit", mock.Mock(side_effect=error))
    status, out, err = run("audit laplace --epsilon 1 --json")
    assert (status, out) == (expected, "")
    assert said in err
    assert "Traceback" not in err
    if expected == 3:
        assert "Traceback" in run("audit laplace --epsilon 1 --traceback")[2]


# The command line: bad usage ends with 2 and one line, before anything is drawn.


COMMAND = "audit --x a --x-prime b --claim 1 --command"
LINES = [
    ("audit", "name a system"),
    ("audit laplace", "laplace needs --epsilon"),
    ("audit laplce --epsilon 1", "did you mean laplace"),
    ("audit laplace --epsilon 1 --clip 1", "--clip does not apply to laplace"),
    ("audit laplace --epsilon 1 --nan keep", "--nan does not apply"),
    ("audit dptext --epsilon 1 --nan drop", "--nan must be one of"),
    ("audit laplace --epsilon 0", "--epsilon must be a finite number above 0"),
    ("audit laplace --epsilon 1 --dim 0", "--dim must be"),
    ("audit laplace --epsilon 1 --seed -1", "--seed must be"),
    ("audit laplace --epsilon 1 --trials many", "--trials must be"),
    ("audit laplace --epsilon 1 --attack best", "--attack must be one of 'auto', 'majority'"),
    ("audit laplace --epsilon 1 --bound best", "--bound must be one of 'clopper_pearson'"),
    ("audit laplace --epsilon 1 --bound conditional --delta 0.1", "--bound must be another"),
    ("audit laplace --epsilon 1 --stop soon", "--stop must be one of 'fixed', 'refuted'"),
    ("audit laplace --epsilon 1 --stop refuted --no-claim", "--stop refuted needs a claim"),
    ("audit laplace --epsilon 1 --stop refuted --attack majority", "--attack must be one that"),
    ("audit laplace --epsilon 1 --patterns all", "--patterns needs --dim"),
    ("audit laplace --epsilon 1 --route integer", "--route must be 'sampled' or 'auto'"),
    ("audit laplace --epsilon 1 --html no/such/a.html", "--html must name a file in a folder"),
    ("audit laplace --epsilon 1 --claim 1 --no-claim", "exclude each other"),
    ("audit laplace --epsilon 1 --x 1", "go together"),
    ("audit laplace --epsilon 1 --x 1 --x-prime 2 --dim 1", "--dim does not apply"),
    ("audit laplace --epsilon 1 --x 1 --x-prime 1", "different in at least one entry"),
    ("audit laplace --epsilon 1 --x 1 --x-prime 1,2", "equal shape"),
    ("audit laplace --epsilon 1 --x 1,b --x-prime 1,2", "--x must be numbers"),
    ("audit laplace --epsilon 1 --x nan --x-prime 1", "--x must be"),
    ("audit laplace --epsilon 1 --x @no.npy --x-prime 1", "--x must name an .npy file"),
    ("audit laplace --epsilon 1 --plot a.xyz", "--plot must end in"),
    ("audit laplace --epsilon 1 --plot no/such/a.png", "--plot must name a file in a folder"),
    ("audit laplace --epsilon 1 --text a --text-prime b", "--text does not apply to laplace"),
    ("audit laplace --epsilon 1 --timeout 3", "--timeout is for --command"),
    ("audit laplace --epsilon 1 --catch ValueError", "--catch is for --command, and with --repeat"),
    ("audit laplace --epsilon 1 --sped 1", "--sped"),
    ("audit laplace adept --epsilon 1", "unexpected"),
    ("audit --list --epsilon 1", "--list only lists"),
    ("audit nowhere.py:f --claim 1", "no such file: nowhere.py"),
    ("audit-outputs a.npy b.npy --rows independent --claim 1 --html nowhere/page.html",
     "--html must name a file in a folder that can be written to, got nowhere"),
    ("reproduce nothing", "no such experiment: nothing (there are published-systems"),
    ("reproduce --trials 5", "only lists"),
    ("reproduce published-systems --trials 0", "--trials must be"),
    ("reproduce published-systems --out OWN", "--out must be"),
    ("deduce", "deduce"),
    # Mechanisms of a user.
    ("audit OWN:release --dim 1", "has no claim: give --claim EPSILON"),
    ("audit OWN:release --claim 1", "has no default_pair: give two inputs that the claim calls ne"),
    ("audit OWN:release --claim 1 --dim 8", "give two inputs that the claim calls neighbours, --x"),
    ("audit OWN:native --claim 1 --dim 8", "give two inputs that the claim calls neighbours, --x"),
    ("audit OWN:relese --dim 1 --claim 1", "did you mean 'release'?"),
    ("audit OWN:Space.nothing --dim 1 --claim 1", "has no 'Space.nothing'"),
    ("audit OWN:number --dim 1 --claim 1", "number must be a callable"),
    ("audit OWN:Claiming", "got a class"),
    ("audit OWN:release --dim 1 --claim 1 --epsilon 1", "--epsilon does not apply to a mechanism"),
    ("audit OWN:release --x 0 --x-prime 1 --claim 1 --route integer", "--route must be 'auto'"),
    ("audit OWN:release --x 0 --x-prime 1 --claim 1 --start 1", "--start must be a multiple"),
    ("audit OWN:claiming --dim 3", "takes no dim"),
    ("audit OWN: --claim 1", "name the mechanism in the file"),
    ("audit OWN --claim 1", "name the mechanism in the file"),
    ("audit OWN.txt:f --claim 1", "is not a Python file"),
    # Texts.
    ("audit OWN:release --text a", "--text and --text-prime go together"),
    ("audit OWN:release --text a --text-prime b --dim 2", "no --x, --x-prime or --dim"),
    ("audit OWN:release --text a --text-prime b --patterns one --dim 2", "no other input"),
    # Commands.
    (f"{COMMAND} 'no-such-program {{x}} {{size}}'",
     "--command must be a program that is on the PATH and executable"),
    (f'{COMMAND} "python \'tool.py {{x}} {{size}}"',
     "--command must be a program and its arguments, quoted"),
    (f"{COMMAND} ''", "--command must be a list of texts, the program and its arguments"),
    (f"{COMMAND} 'sh {{x}}'", "--command must be one with {size} in an argument"),
    (f"{COMMAND} 'sh {{x}} {{size}}' laplace", "--command is what is audited: leave out laplace"),
    (f"{COMMAND} 'sh {{x}} {{size}}' --epsilon 1",
     "--epsilon does not apply to a command: --claim is the"),
    (f"{COMMAND} 'sh {{x}} {{size}}' --repeat", "--repeat does not apply to a command"),
    (f"{COMMAND} 'sh {{x}} {{size}}' --text a --text-prime b", "--x and --x-prime are the two in"),
    (f"{COMMAND} 'sh {{x}} {{size}}' --timeout 0",
     "--timeout must be a finite number above 0, got 0.0"),
    (f"{COMMAND} 'sh {{x}} {{size}}' --catch 3,SIGNOT", "--catch must be exit statuses and names"),
    (f"{COMMAND} 'sh {{x}} {{size}}' --catch 0", "--catch must be an exit status other than 0"),
    ("audit OWN:release --repeat --x 0 --x-prime 1 --claim 1 --catch ValuError",
     "--catch must be names of exceptions, of Python or of the file, got 'ValuError'"),
    ("audit OWN:release --repeat --x 0 --x-prime 1 --claim 1 --catch int",
     "--catch must be a subclass of Exception, or several"),
    ("audit --command 'sh {x} {size}' --x a --x-prime b",
     "a command has no claim: give --claim EPSILON, or --no-claim"),
    ("audit --command 'sh {x} {size}' --claim 1",
     "give two inputs that the claim calls neighbours: --x TEXT"),
    ("audit --command 'sh {x} {size}' --claim 1 --x a", "--x and --x-prime go together"),
]  # fmt: skip
"""A line, in which OWN stands for the file of a user, and what its error says."""


@pytest.mark.parametrize(("line", "complaint"), LINES)
def test_bad_usage_is_2_with_one_line(run, own, tmp_path, line, complaint):
    (tmp_path / "noisy.py.txt").write_text("")
    status, out, err = run("", *shlex.split(line.replace("OWN", own)))
    assert (status, out) == (2, "")
    assert complaint in err
    # A user's file may print before it.
    assert re.search("(?m)^error: ", err)
    assert "Traceback" not in err
