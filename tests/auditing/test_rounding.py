"""Equal or not: what differs by rounding refutes nothing, and what differs beyond it is found.

Certified bounds at 95 %, claim 1. The private mechanisms lose exactly 1, their claim is a tenth
above; with DPCORE_AUDITS=400 each is audited 200 times. A claim a tenth below must be refuted.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from scipy import stats
from shared_formats import FORMATS, farthest, noisy, two_orders

import dpcore
from dpcore import Pair
from dpcore.attacks import Threshold
from dpcore.errors import AssumptionWarning

AUDITS = max(10, int(os.environ.get("DPCORE_AUDITS", "20")) // 2)
ALPHA = 1e-6
MOST = int(stats.binom.isf(ALPHA, AUDITS, 0.05))


def constant(x, size, rng):
    return np.full((size, len(x)), x)


def laplace(scale, sentinel=None):
    def mechanism(x, size, rng):
        outputs = x + rng.laplace(0.0, scale, (size, len(x)))
        if sentinel is not None:
            outputs[rng.random(size) < 0.001] = sentinel
        return outputs

    return mechanism


def bit_beside(x, size, rng):
    return np.column_stack([np.full(size, x[0]), 2.5e9 + rng.normal(0.0, 100.0, size)])


def shifted(outputs):
    return outputs[:, 0] - 1e9


BROKEN = {
    "a count": (constant, 331449281.0, 12.4),
    "a bfloat16 number": (constant, 200.0, 12.4),
    "a bit beside 2.5e9": (bit_beside, 0.0, 12.4),
    "scale .1": (laplace(0.1), 0.0, 8.8),
    "scale .1 at 3e8": (laplace(0.1), 3e8, 8.8),
    "scale .1, an int32 sentinel": (laplace(0.1, -2147483648.0), 0.0, 8.8),
    "scale .1, a sentinel of 1e12": (laplace(0.1, 1e12), 0.0, 8.8),
    "scale .5": (laplace(0.5), 0.0, 1.9),
    "scale .5 at 3e8": (laplace(0.5), 3e8, 1.9),
    "scale .5 at 1e12": (laplace(0.5), 1e12, 1.9),
    "scale .5, an int32 sentinel": (laplace(0.5, -2147483648.0), 0.0, 1.9),
    "scale .5, a sentinel of 1e12": (laplace(0.5, 1e12), 0.0, 1.9),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_found_at_any_offset_and_beside_any_sentinel(name):
    mechanism, x, wanted = BROKEN[name]
    report = dpcore.audit(mechanism, ([x], [x + 1.0]), claim=1.0, rng=1)
    assert report.epsilon_lower > wanted
    assert not any("round" in note for note in report.notes)


def test_half_a_step_of_bfloat16_is_a_difference():
    assert dpcore.audit(constant, ([100.0], [100.5]), claim=1.0, rng=1).epsilon_lower > 12.4


@pytest.mark.parametrize(("mechanism", "wanted"), [(constant, 12.4), (laplace(0.1), 8.8)])
def test_a_score_of_the_users_own_is_not_blinded_by_what_it_subtracts(mechanism, wanted):
    attack = Threshold(score=shifted)
    report = dpcore.audit(mechanism, ([1e9], [1e9 + 1.0]), attack=attack, claim=1.0, rng=1)
    assert report.epsilon_lower > wanted


def rounded(x, size, rng):
    return np.round(x + rng.laplace(0.0, 1.0, (size, 1)), 1)


def plus_rounded(x, size, rng):
    return x + np.round(rng.laplace(0.0, 1.0, (size, 1)), 1)


def private():
    """Mechanisms that lose 1 in real numbers, each with its pair."""
    found = {"np.round": (rounded, Pair([0.0], [1.0])), "tenths": (plus_rounded, Pair([0], [1]))}
    for name in FORMATS:
        for offset in (0.0, 1.0, farthest(name)):
            pair = Pair([offset], [offset + 1.0])
            found[f"{name} at {offset:g}"] = (noisy(name, 1.0), pair)
            found[f"{name} at {offset:g} in doubles"] = (noisy(name, 1.0, np.float64), pair)
        found[f"{name}, 8 entries"] = (noisy(name, 8.0), dpcore.pairs.zeros_ones(8))
    for kind in (np.float64, np.float32):
        for base in (0.0, 1000.0):
            name = f"{kind.__name__} means in two orders + {base:g}"
            found[name] = (two_orders(kind, base), Pair(0, 1))
    return found


PRIVATE = private()


@pytest.mark.sweep
@pytest.mark.parametrize("name", PRIVATE)
def test_rounding_refutes_no_private_mechanism(name):
    mechanism, pair = PRIVATE[name]
    options = {"claim": 1.1, "trials": 10**5}
    reports = [dpcore.audit(mechanism, pair, rng=seed, **options) for seed in range(AUDITS)]
    assert sum(report.refuted for report in reports) <= MOST
    if len(np.atleast_1d(pair.x)) == 1:
        # Nor are they passed for want of an event.
        assert np.median([report.epsilon_lower for report in reports]) > 0.9


def means(base):
    """Sums of the same numbers in two orders, without noise: equal in real numbers."""
    numbers = np.random.default_rng(8).random(10_000)
    values = base + numbers.mean(), base + np.cumsum(numbers[::-1])[-1] / 10_000

    def mechanism(x, size, rng):
        return np.full(size, values[x])

    return mechanism


def audit_means(**options):
    with pytest.warns(AssumptionWarning, match="smaller than rounding explains"):
        return dpcore.audit(means(0.0), (0, 1), claim=1.0, rng=1, **options)


def test_where_rounding_explains_everything_a_warning_says_so():
    report = audit_means(trials=10**5)
    assert (report.epsilon_lower, report.verdict) == (0.0, "not refuted by this attack")
    assert "smaller than rounding explains" in str(report)
    # The code as it runs does tell the two apart.
    assert report.floating_point.epsilon_lower > 9.0
    assert dpcore.Audit.from_json(report.to_json()).notes == report.notes
    # With floats it counts.
    assert audit_means(trials=10**5, floats=True).refuted
    stopped = audit_means(trials=2000, stop="refuted")
    assert not stopped.refuted
    assert "smaller than rounding explains" in str(stopped)


def test_recorded_outputs_have_the_same_warning():
    values = [means(0.0)(x, 4000, None) for x in (0, 1)]
    with pytest.warns(AssumptionWarning, match="smaller than rounding explains"):
        report = dpcore.audit_outputs(*values, rows="independent", claim=1.0, rng=1)
    assert (report.epsilon_lower, report.verdict) == (0.0, "not refuted by this attack")
    assert "smaller than rounding explains" in str(report)
    assert dpcore.OutputsAudit.from_json(report.to_json()) == report
