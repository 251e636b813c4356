"""The promise of the default audit: true claims are refuted at most as often as stated.

DPCORE_AUDITS audits with `attack="auto"` of every mechanism that is truly private, each at the
exact loss of its pair, at a confidence of 90 % with `bound="exact"`: Clopper-Pearson limits miss
ten times less often than they may and would hide a fault. The refutations must pass an exact
binomial test of "at most 10 %" at the significance ALPHA. The controls break one rule each and
must fail it.
"""

from __future__ import annotations

import functools
import math
import os

import numpy as np
import pytest
from scipy import stats

import dpcore
from dpcore import Counts, Pair
from dpcore.attacks import Histogram
from dpcore.attacks.attack import Goal, choose_events
from dpcore.bounds import berger_boos
from dpcore.experiments.dp_sniper_table import exact_supremum
from dpcore.experiments.dp_sniper_table.mechanisms import BENCHMARKS

ALPHA = 1e-4
AUDITS = int(os.environ.get("DPCORE_AUDITS", "200"))
"""DPCORE_AUDITS=2000 runs the whole promise, half an hour on a core; CI runs a tenth of it."""
CONFIDENCE = 0.9
TRIALS = 400
MOST = int(stats.binom.isf(ALPHA, AUDITS, 1 - CONFIDENCE))
"""Refutations of a true claim in so many audits that chance allows: P(more | 10 %) < ALPHA."""


def tied(x, size, rng):
    """Two-sided geometric noise on the lattice of tenths, written in doubles: loses ln 2."""
    return x + 0.1 * (rng.geometric(0.5, (size, 1)) - rng.geometric(0.5, (size, 1)))


def undefined(x, size, rng):
    """NaN or infinite, twice as often on x': loses ln 2."""
    outputs = rng.normal(size=(size, 2))
    outputs[rng.random(size) < 0.2 * (1 + x[0]), 0] = np.nan
    outputs[:, 1] = np.inf
    return outputs


def shared(x, size, rng):
    """One draw of noise for all entries of an output: loses exactly 1."""
    return x + rng.laplace(0.0, 1.0, (size, 1)) + np.zeros(3)


def spoken(x, size, rng):
    """A word: loses ln 2."""
    return np.where(rng.random(size) < (1 + x[0]) / 4, "yes", "no")


OWN = {
    "tied": (tied, Pair([0.0], [0.1]), math.log(2.0)),
    "undefined": (undefined, Pair([0.0], [1.0]), math.log(2.0)),
    "shared": (shared, Pair([0.0] * 3, [1.0] * 3), 1.0),
    "spoken": (spoken, Pair([0.0], [1.0]), math.log(2.0)),
}


@functools.cache
def cases():
    found = dict(OWN)
    for name, benchmark in BENCHMARKS.items():
        if benchmark.private:
            pair = max(benchmark.pairs, key=lambda pair: exact_supremum(name, (pair,)))
            found[name] = (benchmark.mechanism, pair, exact_supremum(name, (pair,)))
    return found


def refuted(name, claim, trials, seed):
    mechanism, pair, _ = cases()[name]
    report = dpcore.audit(
        mechanism, pair, claim=claim, trials=trials, confidence=CONFIDENCE, bound="exact", rng=seed
    )
    return report.refuted


@pytest.mark.parametrize("name", cases())
def test_a_true_claim_is_refuted_as_seldom_as_promised(name):
    refutations = 0
    for seed in range(AUDITS):
        refutations += refuted(name, cases()[name][2], TRIALS, seed)
        if refutations + AUDITS - 1 - seed <= MOST:
            break  # whatever those that are left may say
    assert refutations <= MOST


@pytest.mark.parametrize("name", [*OWN])
def test_control_a_claim_of_two_thirds_of_the_loss_is_refuted_often(name):
    """The audits are not sound by finding nothing."""
    claim = cases()[name][2] * 2 / 3
    assert sum(refuted(name, claim, 2000, seed) for seed in range(100)) > 60


def uniform(x, size, rng):
    """Loses nothing: one of 500 values whatever the input."""
    return rng.integers(500, size=(size, 1))


def test_control_an_event_chosen_on_the_counted_draws():
    """The best of 500 cells and their unions, counted where it was found."""
    overclaimed = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        sides = [uniform(None, 5000, rng) for _ in range(2)]
        scores = Histogram().candidates(*sides, Pair([0.0], [1.0]))
        found = choose_events(scores, *sides, Goal(5000, 0.0, CONFIDENCE))[0]
        counts = found.counts if found.direction == "x" else found.counts.swapped()
        overclaimed += berger_boos(counts, 0.0, CONFIDENCE) > 0.0
    assert overclaimed > 150 > stats.binom.isf(ALPHA, 300, 1 - CONFIDENCE)


def test_control_one_seed_counted_ten_times():
    overclaimed = 0
    for seed in range(400):
        report = dpcore.audit(
            spoken, OWN["spoken"][1], claim=1.0, trials=TRIALS, confidence=CONFIDENCE, rng=seed
        )
        c = report.bound_counts
        copies = Counts(10 * c.k, 10 * c.n, 10 * c.k_prime, 10 * c.n_prime)
        overclaimed += berger_boos(copies, 0.0, CONFIDENCE) > math.log(2.0)
    assert overclaimed > stats.binom.isf(ALPHA, 400, 1 - CONFIDENCE)


def test_control_two_hundred_looks_with_a_bound_for_one():
    overclaimed, audits = 0, 60
    for seed in range(audits):
        rng = np.random.default_rng(seed)
        k, k_prime = (np.cumsum(rng.binomial(20, p, 200)) for p in (0.5, 0.25))
        for n, hits, hits_prime in zip(range(20, 4001, 20), k, k_prime, strict=True):
            # A bound at 90 % is a standard error below the quotient at least.
            error = math.sqrt(sum(1 / max(1, seen) - 1 / n for seen in (hits, hits_prime)))
            if math.log(max(1, hits) / max(1, hits_prime)) - error < math.log(2.0):
                continue
            if berger_boos(Counts(int(hits), n, int(hits_prime), n), 0.0, CONFIDENCE) > math.log(
                2.0
            ):
                overclaimed += 1
                break
    assert overclaimed > stats.binom.isf(ALPHA, audits, 1 - CONFIDENCE)
