"""Outputs that somebody gives, and how many audits chance may refute."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from dpcore.recorded.run import audit_outputs

ALPHA = 1e-4
AUDITS = 300
CONFIDENCE = 0.9
MOST = int(stats.binom.isf(ALPHA, AUDITS, 1 - CONFIDENCE))
"""Overclaims in 300 audits that chance allows: P(more | 10 %) < ALPHA."""

RESPONSE = math.exp(1.0) / (1.0 + math.exp(1.0))


def laplace(rng, size=500, size_prime=400):
    return rng.laplace(size=size), 1.0 + rng.laplace(size=size_prime)


def refuted(draw, **settings):
    """How many audits of a claim of exactly 1 refute it, and the median bound."""
    found = []
    for seed in range(AUDITS):
        sides = draw(np.random.default_rng(seed))
        settings = {"rows": "independent", "claim": 1.0, "confidence": CONFIDENCE, **settings}
        found.append(audit_outputs(*sides, rng=seed, **settings))
    return sum(audit.refuted is True for audit in found), np.median(
        [one.epsilon_lower for one in found]
    )


def canaries(rng, m=200):
    """Every canary's coin with Laplace noise of scale 1: loses exactly 1 for each."""
    coins = rng.random(m) < 0.5
    scores = coins + rng.laplace(size=m)
    return scores[coins], scores[~coins]
