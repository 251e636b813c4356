"""Audits that stop when the claim is refuted: sound at every look, and quicker than a fixed n."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from shared_messages import check_messages

import dpcore
from dpcore import Audit, Counts, pairs
from dpcore.attacks import MajorityVote, Threshold
from dpcore.bounds import BOUNDS
from dpcore.published import DPText, HalfNoise

ALPHA = 1e-4
AUDITS = 200
CONFIDENCE = 0.9
MOST = int(stats.binom.isf(ALPHA, AUDITS, 1 - CONFIDENCE))

TRUTH = math.exp(1.0) / (1.0 + math.exp(1.0))


def response(x, size, rng):
    """Randomised response: loses exactly 1."""
    return np.abs(x - (rng.random((size, 1)) > TRUTH))


def stopped(mechanism, seed, **more):
    arguments = {
        "trials": 8000, "claim": 1.0, "confidence": CONFIDENCE, "rng": seed, "stop": "refuted",
        "block": 80, "pilot": 100, "attack": Threshold("coordinate"), **more,
    }  # fmt: skip
    return dpcore.audit(mechanism, ([0.0], [1.0]), **arguments)


def test_a_true_claim_is_refuted_as_seldom_as_promised():
    audits = [stopped(response, seed) for seed in range(AUDITS)]
    refuted = sum(audit.refuted for audit in audits)
    assert refuted <= MOST
    unrefuted = [audit for audit in audits if not audit.refuted]
    assert all(len(audit.slices) >= 20 and audit.trials == 8000 for audit in unrefuted)
    assert all(audit.epsilon_lower < 1.0 for audit in unrefuted[:20])


def test_control_a_fixed_bound_looked_at_as_often_overclaims():
    """The same draws, 200 looks with a bound that allows one."""
    overclaimed = 0
    for seed in range(AUDITS):
        rng = np.random.default_rng(seed)
        k, k_prime = (np.cumsum(rng.binomial(40, p, 200)) for p in (TRUTH, 1.0 - TRUTH))
        looks = (
            Counts(int(a), n, int(b), n)
            for a, b, n in zip(k, k_prime, range(40, 8001, 40), strict=True)
        )
        overclaimed += any(BOUNDS["conditional"](counts, 0.0, CONFIDENCE) > 1.0 for counts in looks)
    assert overclaimed > MOST


@pytest.mark.parametrize("mechanism", [HalfNoise(1.0), DPText(1.0)], ids=repr)
def test_a_false_claim_is_refuted_early(mechanism):
    report = dpcore.audit(mechanism, trials=10**6, stop="refuted", rng=1)
    assert report.refuted is True
    assert report.verdict == "refuted"
    assert report.trials < 10**5
    assert report.epsilon_lower > 1.0
    assert (report.bound, report.stop) == ("anytime", "refuted")
    assert sum(piece.counts.n for piece in report.slices) == report.trials
    assert "test martingale over" in str(report)
    assert Audit.from_json(report.to_json()) == report
    assert report == dpcore.audit(mechanism, trials=10**6, stop="refuted", rng=1)


def test_every_slice_counts_what_its_own_event_says():
    report = stopped(response, 3)
    start = 0
    for piece in report.slices:
        size = piece.counts.n
        hits = [
            int(piece.event(report.outputs(side, start, size)).sum()) for side in ("x", "x_prime")
        ]
        assert hits == [piece.counts.k, piece.counts.k_prime]
        start += size


def test_delta_is_respected():
    report = stopped(response, 1, delta=0.05)
    assert report.refuted is False
    leaking = dpcore.audit(
        dpcore.Laplace(0.5), pairs.zeros_ones(1), claim=1.0, delta=0.01, stop="refuted",
        trials=10**6, rng=1,
    )  # fmt: skip
    assert leaking.refuted is True
    assert leaking.trials < 10**6


VALUE_ERRORS = [
    (lambda: dpcore.audit(response, ([0.0], [1.0]), stop="refuted", trials=100), "claim",
     "given, where stop is 'refuted'"),
    (lambda: stopped(response, 1, attack=MajorityVote()), "attack", "one that makes scores, where"),
    (lambda: stopped(response, 1).epsilon_lower_at(0.1), "delta", "0, the one that the slices"),
    (lambda: stopped(response, 1) + stopped(response, 1), "audits", "early stop"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
