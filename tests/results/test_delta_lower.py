"""Claims with epsilon 0: the report states the certified delta."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpcore
from dpcore.bounds import delta_lower
from dpcore.records import Counts

SHIFT = 0.3
DISTANCE = math.erf(SHIFT / math.sqrt(8.0))
"""Total variation distance of N(0, 1) and N(SHIFT, 1)."""


def draw_normal(x, size, rng):
    return x + rng.normal(size=(size, 1))


def audit_recorded(claimed):
    rng = np.random.default_rng(2)
    sides = (draw_normal(x, 4 * 10**5, rng) for x in (0.0, SHIFT))
    return dpcore.audit_outputs(*sides, claim=0.0, delta=claimed, rows="independent", rng=1)


def audit_calls(claimed):
    pair = [0.0], [SHIFT]
    return dpcore.audit(draw_normal, pair, claim=0.0, delta=claimed, trials=2 * 10**5, rng=1)


@pytest.mark.parametrize("run", [audit_recorded, audit_calls])
@pytest.mark.parametrize("share", [0.5, 1.0, 1.5])
def test_the_certified_delta_is_near_the_distance(run, share):
    """The seed is fixed. Each bound exceeds the distance with probability 0.05 at most."""
    report = run(share * DISTANCE)
    assert 0.9 * DISTANCE < report.delta_lower <= DISTANCE
    assert (report.verdict == "refuted") == (share < 1.0)
    assert f"delta >= {report.delta_lower:.4g} at epsilon 0; epsilon >= " in str(report)


def test_the_certified_delta_is_that_of_the_counts():
    report = audit_calls(0.05)
    counts = report.bound_counts
    assert report.delta_lower == pytest.approx(float(delta_lower(counts, 0.0)), abs=1e-12)


def test_no_delta_is_certified_without_a_difference():
    report = dpcore.audit(
        draw_normal, ([0.0], [0.0]), claim=0.0, delta=0.1, trials=10**5, null=True, rng=3
    )
    assert report.delta_lower == 0.0
    assert isinstance(report.counts, Counts)


def test_other_claims_show_no_delta():
    report = dpcore.audit(draw_normal, ([0.0], [SHIFT]), claim=1.0, trials=10**4, rng=1)
    assert "at epsilon 0" not in str(report)
