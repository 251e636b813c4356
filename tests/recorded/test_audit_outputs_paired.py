"""Rows i of both sides from one seed: what holds for them, and what does not.

Soundness as in test_audit_outputs.py, of claims that are exactly true.
"""

from __future__ import annotations

import math
import os
import warnings

import numpy as np
from scipy import stats
from shared_outputs import ALPHA, AUDITS, CONFIDENCE, MOST

from dpcore.recorded import independent_rows
from dpcore.recorded.run import audit_outputs

RUNS = int(os.environ.get("DPCORE_AUDITS", 1000))
MOST_RUNS = int(stats.binom.isf(ALPHA, RUNS, 1 - CONFIDENCE))


def ones(outputs, outputs_prime, pair):
    return lambda rows: rows == 1


LOSS = 0.4
TRUTH = math.exp(LOSS) / (1.0 + math.exp(LOSS))


def flips(rng, size=1000):
    """Randomised response that flips its bit, 1 or 0, with one coin for both: loses `LOSS`."""
    flip = rng.random(size) >= TRUTH
    return (1 ^ flip) * 1, flip * 1


def above_the_claim(draw, runs, claim=LOSS, **settings):
    """How many audits certify more than the claim, whatever their verdict."""
    found = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(runs):
            sides = draw(np.random.default_rng(seed))
            audit = audit_outputs(
                *sides, rows="independent", confidence=CONFIDENCE, rng=seed, **settings
            )
            found += audit.epsilon_lower > claim
    return found


def test_true_claims_about_paired_rows():
    assert above_the_claim(flips, RUNS, attack=ones, paired=True) <= MOST_RUNS


def test_the_control_with_the_exact_test_overclaims():
    """Common coins spread the quotient, and the exact test takes the sides for independent."""
    assert above_the_claim(flips, RUNS, attack=ones, bound="exact") > MOST_RUNS

    def apart(rng):
        return flips(rng)[0], flips(rng)[1]

    assert above_the_claim(apart, RUNS, attack=ones, bound="exact") <= MOST_RUNS


def test_such_rows_are_no_verdict_without_paired():
    sides = flips(np.random.default_rng(1), 20_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for bound in ("exact", "clopper_pearson"):
            audit = audit_outputs(*sides, rows="independent", claim=0.01, bound=bound, rng=1)
            assert audit.refuted is None
            assert audit.verdict.startswith("invalid: ")
            assert audit.verdict.endswith("give paired=True")
    audit = audit_outputs(*sides, rows="independent", claim=0.01, paired=True, rng=1)
    assert audit.refuted
    assert audit.paired
    assert "; rows i of both sides come from one seed" in str(audit)
    # Files of independent rows may be said to be paired: nothing is lost but the exact bound.
    other = flips(np.random.default_rng(2), 20_000)[1]
    assert audit_outputs(sides[0], other, rows="independent", claim=0.01, paired=True).refuted


def mirrored(rng, size=500):
    """Equal cells, true epsilon 0: row i of one side is the mirror image of row i of the other."""
    cells = rng.integers(200, size=size)
    return cells, 199 - cells


def by_mirror(outputs, outputs_prime, pair):
    """The cells whose mirror images are more frequent on the other side."""
    counts, counts_prime = (np.bincount(side, minlength=200) for side in (outputs, outputs_prime))
    return lambda rows: (counts_prime > counts)[199 - rows]


def test_pairs_stay_together_when_rows_are_shuffled(monkeypatch):
    """Otherwise the partners of rows that chose the event are counted."""
    settings = {"claim": 0.0, "attack": by_mirror, "paired": True}
    assert above_the_claim(mirrored, AUDITS, **settings) <= MOST
    together = independent_rows._shuffle_numbers
    calls = iter(range(10**6))
    monkeypatch.setattr(
        independent_rows,
        "_shuffle_numbers",
        lambda size, seed, side: together(size, seed, next(calls) % 2),
    )
    assert above_the_claim(mirrored, AUDITS, **settings) > AUDITS / 2


def test_a_paired_audit_by_hand():
    noise = np.random.default_rng(3).laplace(size=1000)
    audit = audit_outputs(noise, 2.0 + noise, rows="independent", paired=True, rng=3)
    stream = np.random.PCG64(np.random.SeedSequence(3, spawn_key=(17, 0)))
    order = np.random.Generator(stream).permutation(1000)[500:]
    hits = [int(audit.event(side[order]).sum()) for side in (noise, 2.0 + noise)]
    assert hits == [audit.counts.k, audit.counts.k_prime]
