"""Cauchy noise: bits, law, votes, loss and messages.

The statistical test has the significance 1e-6 and a fixed seed.
"""

from __future__ import annotations

import hashlib
import itertools

import mpmath as mp
import numpy as np
import pytest
from scipy import stats
from shared_messages import check_messages

import dpcore
from dpcore import Cauchy, attacks
from dpcore.calibration import real_epsilon
from dpcore.mechanisms.native import facts_about_noise, log_tails
from dpcore.sensitivity import Ball, HistogramCounts

ALPHA, SIZE, SCALE = 1e-6, 10**6, 1.7
PAIR = dpcore.Pair([0.0], [1.0])


def test_golden_values_of_both_routes():
    outputs = dpcore.sample(Cauchy(SCALE), [0.0, 1.0], 3000, rng=11)
    digest = hashlib.sha256(outputs.tobytes()).hexdigest()
    assert digest.startswith("778c835e0299cb5b")
    first, second = outputs[:2].tolist()
    assert first == [2.1290906462344643, -4.3771881253971525]
    assert second == [-0.08598534480335436, 3.41032916634542]
    majority = {"attack": attacks.MajorityVote(), "claim": 1.0, "trials": 20_001, "rng": 11}
    for route in ("sampled", "auto"):
        counts = dpcore.audit(Cauchy(1.0), PAIR, route=route, **majority).counts
        assert (counts.k, counts.k_prime) == (12917, 6923)


def find_p_value(ordered, law):
    """Return the p-value of the test of Kolmogorov and Smirnov, of sorted draws."""
    steps = np.arange(ordered.size + 1) / ordered.size
    share = law(ordered)
    distance = max((steps[1:] - share).max(), (share - steps[:-1]).max())
    return stats.kstwobign.sf(distance * np.sqrt(ordered.size))


def test_law():
    draws = np.sort(dpcore.sample(Cauchy(SCALE), [0.0], SIZE, rng=101)[:, 0])
    law = stats.cauchy(0.0, SCALE).cdf
    assert find_p_value(draws, law) > ALPHA
    # The control: a scale that is two per cent larger.
    assert find_p_value(1.02 * draws, law) < ALPHA


@pytest.mark.parametrize("up", [True, False])
def test_votes_in_both_tails(up):
    grid = [x * sign for x in (0.0, 1e-12, 0.3, 1.0, 9.0, 1e9, 1e300) for sign in (1.0, -1.0)]
    ours = log_tails(Cauchy(0.7), np.array(grid), up)
    for place, a in enumerate(grid):
        with mp.workdps(330):
            tail = mp.atan2(mp.mpf(0.7), abs(mp.mpf(a))) / mp.pi
            vote = tail if (a > 0) == up else 1 - tail
            for mine, true in zip(ours, (mp.log(vote), mp.log1p(-vote)), strict=True):
                assert abs(float(mine[place] / true - 1)) < 1e-13
    assert log_tails(Cauchy(0.7), np.array([np.inf]), True)[0].tolist() == [-np.inf]


def find_largest_ratio(apart):
    """Return the largest log ratio of two densities, on a fine grid."""
    place = np.linspace(-60.0, 60.0, 600_001)
    return float(np.ptp(stats.cauchy.logpdf(place) - stats.cauchy.logpdf(place - apart)) / 2)


@pytest.mark.parametrize("apart", [0.01, 1.0, 30.0])
def test_cost_is_the_largest_log_ratio_of_two_densities(apart):
    cost = facts_about_noise(Cauchy(2.0)).cost(Cauchy(2.0), 2.0 * apart, 1).epsilon
    assert cost == pytest.approx(find_largest_ratio(apart), rel=1e-6)
    assert cost < apart


def test_cost_in_several_entries_is_that_of_equal_parts():
    cost = facts_about_noise(Cauchy(1.0)).cost

    def lose(*parts):
        return sum(cost(Cauchy(1.0), part, 1).epsilon for part in parts if part)

    assert cost(Cauchy(1.0), 3.0, 3).epsilon == pytest.approx(lose(1.0, 1.0, 1.0))
    splits = [split for split in itertools.product(range(7), repeat=3) if sum(split) == 6]
    assert max(lose(*split) for split in splits) == lose(2, 2, 2)
    assert lose(6) < lose(3, 3) < lose(2, 2, 2)
    real = [real_epsilon(Cauchy(1.0), Ball("l1", 0.5, dim)).value for dim in (1, 2, 1000)]
    assert real == pytest.approx([2 * np.arcsinh(0.5), 4 * np.arcsinh(0.25), 1.0], rel=1e-6)
    # A record that moves changes two of many counts.
    assert real_epsilon(Cauchy(1.0), HistogramCounts(9)).value == lose(1, 1)


def test_an_audit_holds_the_cost_and_refutes_a_smaller_claim():
    claim = facts_about_noise(Cauchy(1.0)).cost(Cauchy(1.0), 1.0, 1).epsilon
    audits = [
        dpcore.audit(Cauchy(1.0), PAIR, claim=part * claim, trials=400_000, rng=1)
        for part in (1.0, 0.8)
    ]
    assert [audit.refuted for audit in audits] == [False, True]


def test_messages():
    within = "a finite number above 0 and at most 1e+290, got"
    check_messages(ValueError, [
        (lambda: Cauchy(0.0), "scale", f"{within} 0.0"),
        (lambda: Cauchy(2e290), "scale", f"{within} 2e+290"),
        (lambda: Cauchy(float("nan")), "scale", f"{within} nan"),
    ])  # fmt: skip
    check_messages(TypeError, [(lambda: Cauchy("1"), "scale", f"{within} '1'")])
    assert np.isfinite(Cauchy(1e290)([0.0], 1000, 1)).all()
