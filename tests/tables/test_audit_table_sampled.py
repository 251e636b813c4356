"""Audits by sampling of 200 random tables, against their exact losses."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import dpcore

TABLES = 200
TRIALS = 5_000
CONFIDENCE = 0.9
SIGNIFICANCE = 1e-6


class RandomTable:
    """A mechanism of known rows; `fault` draws from rows whose largest entries are larger."""

    def __init__(self, number: int, fault: bool = False) -> None:
        rng = np.random.default_rng([27, number])
        inputs, outputs = int(rng.integers(3, 9)), int(rng.integers(4, 13))
        self.rows = rng.dirichlet(np.full(outputs, 2.0), inputs)
        self.shape = self.rows.shape
        self.drawn = self.rows**1.6 if fault else self.rows
        self.drawn = self.drawn / self.drawn.sum(axis=1, keepdims=True)

    def log_rows(self, start: int, stop: int) -> np.ndarray:
        return np.log(self.rows[start:stop])

    def __call__(self, x: int, size: int, rng: np.random.Generator) -> np.ndarray:
        return rng.choice(self.shape[1], size, p=self.drawn[x])


def count_exceeded(fault: bool) -> int:
    """Return how many audits certify more than the exact loss of their pair."""
    exceeded = 0
    for number in range(TABLES):
        mech = RandomTable(number, fault)
        exact = dpcore.audit_table(mech, neighbour=[(0, 1)], progress=False).epsilon
        report = dpcore.audit(
            mech, (0, 1), trials=TRIALS, confidence=CONFIDENCE, rng=number, progress=False
        )
        exceeded += report.epsilon_lower > exact
    return exceeded


@pytest.mark.parametrize("fault", [False, True])
def test_certified_above_the_exact_loss_no_more_often_than_the_confidence_allows(fault):
    """Exact binomial test at 1e-6; tables of which another law is drawn fail it."""
    allowed = int(binom.ppf(1.0 - SIGNIFICANCE, TABLES, 1.0 - CONFIDENCE))
    exceeded = count_exceeded(fault)
    assert (exceeded > allowed) == fault, f"{exceeded} of {TABLES}, {allowed} allowed"
