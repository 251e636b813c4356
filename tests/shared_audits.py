"""What tests of single attacks share: how many small audits, and what chance allows them."""

from __future__ import annotations

import numpy as np
from scipy import stats

from dpcore import Pair

ALPHA = 1e-4
AUDITS = 200
CONFIDENCE = 0.9
MOST = int(stats.binom.isf(ALPHA, AUDITS, 1 - CONFIDENCE))
"""Bounds above a true loss in 200 audits at 90 % that chance allows, at the significance ALPHA."""

UNIT = Pair([0.0], [1.0])


def rng(seed=1):
    return np.random.default_rng(seed)
