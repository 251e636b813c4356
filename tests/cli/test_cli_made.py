"""The command line: how its reports were made, and the page of recorded outputs."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dpcore

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
    page = (here / "page.html").read_text()
    assert f"dpcore {line} --html page.html --no-source" in page
    assert made(run(f"{line} --json")[1])["command"] == f"dpcore {line} --json"
