"""Mechanisms and the helper that the tests of dependent rows share."""

from __future__ import annotations

import numpy as np
import pytest

import dpcore
from dpcore import Pair
from dpcore.errors import AssumptionWarning

UNIT = Pair(np.zeros(1), np.ones(1))
WIDE = Pair(np.zeros(1000), 3.0 * (np.arange(1000) == 500))
EARLY = {"stop": "refuted"}


def fresh(x, size, rng):
    return x + rng.laplace(size=(size, len(x)))


def in_turn(x, size, rng):
    """Each row and its mirror image."""
    noise = rng.laplace(size=-(-size // 2))
    return x[0] + np.column_stack([noise, -noise]).ravel()[:size]


def invalid(mechanism, pair=UNIT, **options):
    """An audit that must be invalid, whose warnings say the same."""
    with pytest.warns(AssumptionWarning) as given:
        report = dpcore.audit(mechanism, pair, claim=1.0, **options)
    assert tuple(str(warning.message) for warning in given) == report.checks
    assert report.verdict == f"invalid: {report.checks[0]}"
    assert report.refuted is None
    assert report.epsilon_lower == 0.0
    assert all(said.endswith(", and no bound holds") for said in report.checks)
    return report
