"""What the tests of adapters of other packages share."""

from __future__ import annotations

import numpy as np
from scipy import stats

ALPHA = 1e-6
"""Significance of every test of a law. These packages draw from the system, so this is how often
a sound one fails."""


def rng(seed=1):
    return np.random.default_rng(seed)


def laplace_ks(outputs, scale):
    return stats.kstest(np.ravel(outputs), stats.laplace(scale=scale).cdf).pvalue


def above_half(outputs, outputs_prime, pair):
    """The simplest attack: the output lies on the side of 1."""
    return lambda drawn: np.asarray(drawn).reshape(len(drawn)) >= 0.5
