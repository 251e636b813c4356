"""Runs of pytest inside a test, with a file that has a noisy and a broken mechanism."""

from __future__ import annotations

import re

import pytest
import scipy.special  # noqa: F401 - an inner run forgets what it imports, which numpy refuses twice

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


SHOW = "def test_it(dp_audit): show(dp_audit(noisy, PAIR, epsilon=1.0))\n"
