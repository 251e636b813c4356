"""The command line: traces of a user's functions."""

from __future__ import annotations

import json

import pytest

import dpcore
from dpcore import claims

OWN = """
import numpy as np


def release(x, size, rng):
    print("printed by the function")
    return x + rng.laplace(scale=2.0, size=(size, len(x)))


def total(x, rng):
    return sum(x) + rng.normal(scale=2.0)


def word(text, rng):
    return len(text) + rng.laplace(scale=2.0)


def count(x, rng):
    return len(x), rng.laplace()


def largest(x, rng):
    return int(np.argmax([value + rng.laplace(scale=2.0) for value in x]))


def constant(x):
    return 1


def raising(x, rng):
    raise ValueError("block must be luckier")


def raising_on_ones(x, rng):
    if x[0] == 1:
        raise ValueError("block must be luckier")
    return rng.laplace()


class Release:
    claim = 0.5

    def default_pair(self):
        import dpcore

        return dpcore.Pair([0.0], [1.0])

    def __call__(self, x, size, rng):
        return release(x, size, rng)


class Wide(Release):
    claim = None

    def default_pair(self, dim):
        import dpcore

        return dpcore.Pair([0.0] * dim, [1.0] * dim)


own, wide, number = Release(), Wide(), 3
"""


@pytest.fixture
def trace(tmp_path, run):
    """Run `dpcore trace` on a function of OWN: (status, stdout, stderr)."""
    path = tmp_path / "noisy.py"
    path.write_text(OWN, "utf-8")

    def call(words):
        return run(f"trace {path}:{words}")

    return call


ZERO_ONE = "--x 0 --x-prime 1"


def test_the_report_states_line_and_loss(trace, tmp_path):
    status, out, err = trace(f"release {ZERO_ONE} --claim 0.4 --seed 1")
    assert (status, err) == (1, "printed by the function\n" * err.count("\n"))
    name, outcome, loss, step, *_ = map(str.strip, out.splitlines())
    assert name == f"{tmp_path / 'noisy.py'}:release"
    assert outcome.split(None, 1) == ["outcome", "above the claim on this pair"]
    assert loss.split(None, 1) == ["loss", "0.5, computed for this pair, not certified"]
    assert step.startswith("0.5 at noisy.py:7 in release: laplace, scale 2")


@pytest.mark.parametrize(
    ("words", "status", "outcome"),
    [
        (f"release {ZERO_ONE} --claim 0.5", 0, "within the claim on this pair"),
        (f"release {ZERO_ONE} --claim 0.49", 1, "above the claim on this pair"),
        (f"release {ZERO_ONE} --no-claim", 0, "no claim given"),
        ("count --x 0 --x-prime 0,1 --claim 9", 1, "a finding"),
        (f"raising_on_ones {ZERO_ONE} --claim 9", 1, "a finding"),
        ("largest --x 0,1,0,1 --x-prime 1,0,1,0 --claim 1", 3, "a step may be hidden: audit it"),
        (f"constant {ZERO_ONE} --claim 9", 3, "not traceable: no draw of noise is seen"),
        ("word --text ab --text-prime a --claim 0.5", 0, "within the claim on this pair"),
        ("total --x 3 --x-prime 2 --claim gdp=0.5", 0, "within the claim on this pair"),
        ("total --x 3 --x-prime 2 --claim gdp=0.49", 1, "above the claim on this pair"),
        ("own", 0, "within the claim on this pair"),
        ("own --claim 0.1", 1, "above the claim on this pair"),
        ("own --no-claim", 0, "no claim given"),
        ("wide --dim 4 --claim 1", 1, "above the claim on this pair"),
    ],
)
def test_the_exit_status_is_that_of_the_outcome(trace, words, status, outcome):
    found, out, _ = trace(f"{words} --seed 1")
    assert found == status
    assert out.splitlines()[1].split(None, 1) == ["outcome", outcome]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (f"release {ZERO_ONE}", "release has no claim: give --claim EPSILON, or --no-claim"),
        ("release --claim 1", "release has no default_pair: give two inputs"),
        ("release --x 0 --claim 1", "--x and --x-prime go together"),
        (f"release {ZERO_ONE} --claim 1 --no-claim", "--claim and --no-claim exclude each other"),
        (f"release {ZERO_ONE} --claim 1 --draws 0", "--draws must be an integer from 1 to 1000"),
        (f"release {ZERO_ONE} --claim 1 --delta 2", "--delta must be a finite number"),
        (f"release {ZERO_ONE} --claim 1 --plot trace.txt", "--plot must end in one of"),
        (f"releas {ZERO_ONE} --claim 1", "has no 'releas' (did you mean 'release'?)"),
        (f"Release {ZERO_ONE} --claim 1", "got a class: name an instance of it"),
        (f"number {ZERO_ONE} --claim 1", "number must be a function, got 3"),
    ],
)
def test_bad_usage(trace, words, complaint):
    status, out, err = trace(words)
    assert (status, out) == (2, "")
    assert complaint in err


def test_a_system_is_not_traced(run):
    status, _, err = run("trace laplace --claim 1")
    assert status == 2
    assert err == "error: dpcore trace takes FILE.py:FUNCTION, got laplace (dpcore audit laplace)\n"


def test_an_error_of_the_function_is_its_own(trace):
    status, out, err = trace(f"raising {ZERO_ONE} --claim 1")
    assert (status, out) == (3, "")
    assert "raising failed: ValueError: block must be luckier (noisy.py, line 31)" in err
    assert "hint: it is called as f(x), f(x, rng) or f(x, size, rng)" in err
    status, _, err = trace(f"raising {ZERO_ONE} --claim 1 --traceback")
    assert "Traceback" in err


def test_json_picture_and_page(trace, tmp_path):
    page, picture = tmp_path / "page.html", tmp_path / "trace.png"
    files = f"--html {page} --plot {picture}"
    words = f"total --x 3 --x-prime 1 --claim gdp=1 --delta 0.1 --draws 3 --seed 7 --json {files}"
    status, out, err = trace(words)
    assert status == 0
    assert [line for line in err.splitlines() if line.startswith("wrote")] == [
        f"wrote {picture}", f"wrote {page}"
    ]  # fmt: skip
    report = dpcore.Trace.from_json(out)
    assert (report.seed, report.draws, report.delta) == (7, 3, 0.1)
    assert report.mu == 1.0
    assert report.loss == pytest.approx(claims.GDP(1.0).epsilon(0.1), rel=1e-12)
    assert json.loads(out)["derived"]["verdict"] == report.verdict
    assert report.outcome in page.read_text("utf-8")
    assert picture.read_bytes().startswith(b"\x89PNG")
