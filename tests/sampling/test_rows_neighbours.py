"""Rows that stand near each other and are alike are never a verdict; independent ones are."""

from __future__ import annotations

import numpy as np
import pytest
from shared_rows import EARLY, UNIT, WIDE, fresh, in_turn, invalid

import dpcore
from dpcore.attacks import MajorityVote


def autoregressive(rho):
    def mechanism(x, size, rng):
        """Normal rows, each correlated with the one before."""
        noise = rng.normal(size=size)
        for row in range(1, size):
            noise[row] = rho * noise[row - 1] + (1 - rho**2) ** 0.5 * noise[row]
        return x[0] + noise

    return mechanism


def walk(x, size, rng):
    """Random-walk Metropolis on the Laplace law, started well."""
    value, outputs = rng.laplace(), np.empty(size)
    for row, (step, coin) in enumerate(zip(rng.normal(size=size), rng.random(size), strict=True)):
        if coin < np.exp(abs(value) - abs(value + step)):
            value += step
        outputs[row] = value
    return x[0] + outputs


def in_groups(of):
    def mechanism(x, size, rng):
        return x[0] + np.repeat(rng.laplace(size=-(-size // of)), of)[:size]

    return mechanism


def ordered(x, size, rng):
    return x[0] + np.sort(rng.laplace(size=size))


def chains(x, size, rng):
    """Five chains side by side, each slow: rows that stand five apart are alike."""
    return x[0] + np.repeat(rng.laplace(size=(-(-size // 20), 5)), 4, axis=0).ravel()[:size]


def tiled(x, size, rng):
    """A pool of 10 draws for a call, over and over."""
    return x[0] + np.resize(rng.laplace(size=10), size)


def slow_words(x, size, rng):
    """A word that changes now and then: no order among words, so only equality tells."""
    words = np.array(["do", "re", "mi", "fa", "so"], object)
    change = np.cumsum(rng.random(size) < 0.3)
    return words[rng.integers(5, size=size + 1)[change]]


def free_words(x, size, rng):
    return np.array(["do", "re", "mi", "fa", "so"], object)[rng.integers(5, size=size)]


def thousand(x, size, rng):
    """Only one of 1,000 columns depends on the input, and its rows come in fours."""
    outputs = rng.normal(size=(size, 1000))
    outputs[:, 500] = x[500] + np.repeat(rng.normal(size=-(-size // 4)), 4)[:size]
    return outputs


NEAR = {
    "autoregressive .9": (autoregressive(0.9), UNIT),
    "autoregressive .3": (autoregressive(0.3), UNIT), "metropolis": (walk, UNIT),
    "twos": (in_groups(2), UNIT), "fours": (in_groups(4), UNIT), "tens": (in_groups(10), UNIT),
    "ordered": (ordered, UNIT), "chains": (chains, UNIT), "tiled": (tiled, UNIT),
    "mirrored": (in_turn, UNIT), "words": (slow_words, UNIT), "1,000 columns": (thousand, WIDE),
}  # fmt: skip


@pytest.mark.parametrize("name", NEAR)
def test_rows_that_are_like_their_neighbours_are_no_verdict(name):
    for seed in range(2):
        invalid(*NEAR[name], trials=5000, rng=seed)


@pytest.mark.parametrize("name", ["autoregressive .9", "metropolis", "fours", "ordered"])
@pytest.mark.parametrize("more", [EARLY, {"block": 500}, {"attack": MajorityVote()}])
def test_they_are_told_however_they_are_counted(name, more):
    report = invalid(*NEAR[name], trials=5000, rng=1, **more)
    assert any("in a call are more alike than independent" in said for said in report.checks)


def test_rows_less_alike_than_independent_ones_are_told_too():
    said = invalid(in_turn, trials=5000, rng=1).checks
    assert any("next to each other in a call are less alike" in one for one in said)


@pytest.mark.parametrize("trials", [5000, 10**6])
def test_independent_twins_pass(trials):
    for mechanism in (autoregressive(0.0) if trials < 10**6 else fresh, in_groups(1), free_words):
        assert dpcore.audit(mechanism, UNIT, claim=9.0, trials=trials, rng=1).checks == ()


def test_a_run_that_starts_anywhere_is_looked_at():
    """Parts of a long run begin in the middle of the numbering of trials."""
    for start in (0, 3 * 2**17):
        invalid(autoregressive(0.9), trials=2000, start=start, rng=1)
