"""The command line as a process: above all what it exits with."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

import dpcore


@pytest.mark.parametrize(
    ("words", "status", "said", "complaint"),
    [
        ("audit laplace --epsilon 1 --seed 1 --trials 1e5 --attack majority", 0,
         "not refuted by this attack", ""),
        ("audit half-noise --epsilon 1 --dim 1 --seed 1 --trials 1e5", 1, "refuted", ""),
        # The parser's own errors and those of dpcore.
        ("audit laplace --epsilon one", 2, "", "error: Invalid value for '--epsilon'"),
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


@pytest.mark.parametrize("words", ["info", "audit laplace --epsilon 1"])
def test_process_with_a_cpu_path_that_is_not_there(process, monkeypatch, words):
    """The import must not fail: Python would exit with 1, which says "refuted"."""
    monkeypatch.setenv("DPCORE_CPU", "avx1024")
    status, out, err = process(words)
    assert (status, out) == (2, "")
    assert err.startswith("error: DPCORE_CPU must be one of baseline")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("words", ["audit laplace --epsilon 1 --trials 100", "--version"])
def test_process_that_cannot_write_has_failed(words):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "dpcore", *words.split()]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 3


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX pipe")
@pytest.mark.parametrize("words", ["audit laplace --epsilon 1 --trials 100", "--help"])
def test_process_whose_reader_has_left_has_failed(words):
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "dpcore", *words.split()]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (3, b"")


# As long as the machine is busy nothing may have been counted: a call is waited for, not a time.
INTERRUPTED = """
import os, runpy, signal, sys, threading
from dpcore.sampling.driver import Source
from dpcore.streams import COUNT
# Whoever runs tests in the background ignores it, and hands that on.
signal.signal(signal.SIGINT, signal.default_int_handler)
calls, real = [], Source.check
def called(source, purpose, shard):
    calls.append(purpose)
    if purpose == COUNT and calls.count(COUNT) == 2:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    return real(source, purpose, shard)
Source.check = called
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


def test_interrupted_before_anything_was_counted(run, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("dpcore.cli.audits.audit", stop)
    status, out, err = run("audit laplace --epsilon 1 --json")
    assert (status, out) == (130, "")
    assert "interrupted" in err


def test_a_bug_of_dpcore_is_never_taken_for_refuted(run, monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("dpcore.cli.audits.audit", fail)
    status, out, err = run("audit laplace --epsilon 1")
    assert (status, out) == (3, "")
    assert "dpcore failed: ZeroDivisionError: oh" in err
    assert "Traceback" not in err
    assert "Traceback" in run("audit laplace --epsilon 1 --traceback")[2]
