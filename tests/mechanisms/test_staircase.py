"""Staircase noise: bits, law, votes, loss and messages.

The statistical tests have the significance 1e-6 and fixed seeds.
"""

from __future__ import annotations

import hashlib
import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from scipy import integrate, stats
from shared_messages import check_messages

import dpcore
from dpcore import Staircase, attacks
from dpcore.calibration import real_epsilon
from dpcore.mechanisms.native import facts_about_noise, log_tails
from dpcore.sensitivity import Ball

ALPHA, SIZE = 1e-6, 10**6
NOISES = [Staircase(1.5, 0.7), Staircase(0.3, 3.0, 0.0), Staircase(2.0, 0.01, 1.0),
          Staircase(1.0, 40.0)]  # fmt: skip
PAIR = dpcore.Pair([0.0], [1.0])


def find_density(noise, s):
    """Return the density as the source writes it."""
    steps = np.abs(s) / noise.width
    k, b = np.floor(steps), math.exp(-noise.decay)
    a = (1 - b) / (2 * noise.width * (noise.gamma + (1 - noise.gamma) * b))
    return a * b ** (k + (steps - k >= noise.gamma))


def make_distribution(noise):
    """Make the distribution function: straight between the ends of the parts of the steps."""
    k = np.arange(1 + math.ceil(40 / noise.decay))
    ends = noise.width * np.unique([k, k + noise.gamma, k + 1])
    middles = (ends[1:] + ends[:-1]) / 2
    masses = np.cumsum(np.append(0.0, find_density(noise, middles) * np.diff(ends)))
    return lambda s: 0.5 + np.sign(s) * np.interp(np.abs(s), ends, masses)


def test_golden_values_of_both_routes():
    outputs = dpcore.sample(Staircase(1.5, 0.7), [0.0, 1.0], 3000, rng=11)
    digest = hashlib.sha256(outputs.tobytes()).hexdigest()
    assert digest.startswith("19ce30dc71a1c094")
    first, second = outputs[:2].tolist()
    assert first == [1.7859573672831361, -2.4398706925399387]
    assert second == [-0.06755352219720281, 2.94620311123196]
    majority = {"attack": attacks.MajorityVote(), "claim": 1.0, "trials": 20_001, "rng": 11}
    for route in ("sampled", "auto"):
        counts = dpcore.audit(Staircase(1.0, 1.0), PAIR, route=route, **majority).counts
        assert (counts.k, counts.k_prime) == (14348, 5553)


def find_p_value(ordered, law):
    """Return the p-value of the test of Kolmogorov and Smirnov, of sorted draws."""
    steps = np.arange(ordered.size + 1) / ordered.size
    share = law(ordered)
    distance = max((steps[1:] - share).max(), (share - steps[:-1]).max())
    return stats.kstwobign.sf(distance * np.sqrt(ordered.size))


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_law(noise):
    draws = np.sort(dpcore.sample(noise, [0.0], SIZE, rng=101)[:, 0])
    law = make_distribution(noise)
    assert find_p_value(draws, law) > ALPHA
    # The control: a scale that is two per cent larger.
    assert find_p_value(1.02 * draws, law) < ALPHA


def test_the_default_gamma_has_the_smallest_mean_magnitude():
    def find_mean(gamma):
        noise = Staircase(1.0, 2.0, gamma)
        ends = np.unique([*range(40), *(np.arange(40) + noise.gamma)])
        parts = [
            integrate.quad(lambda s: s * float(find_density(noise, s)), low, high)[0]
            for low, high in itertools.pairwise(ends)
        ]
        return 2 * sum(parts)

    best = find_mean(None)
    # Geng and Viswanath: width exp(decay / 2) / (exp(decay) - 1).
    assert best == pytest.approx(math.exp(1.0) / math.expm1(2.0), rel=1e-9)
    assert all(best < find_mean(gamma) for gamma in (0.0, 0.2, 0.35, 1.0))


def find_tail(noise, s):
    """Return the probability of at least s >= 0, as the source writes it."""
    width, decay, gamma = (mp.mpf(x) for x in (noise.width, noise.decay, noise.gamma))
    b, k = mp.exp(-decay), mp.floor(s / width)
    place, rate = s / width - k, (1 - b) / (gamma + b * (1 - gamma))
    gone = rate * min(place, gamma) + rate * b * max(place - gamma, mp.mpf(0))
    return mp.exp(-k * decay) * (1 - gone) / 2


@pytest.mark.parametrize("noise", NOISES, ids=repr)
@pytest.mark.parametrize("up", [True, False])
def test_votes_in_both_tails(noise, up):
    steps = [0.0, 1e-9, 0.1, 0.5, 0.9, 1.0 - 1e-9, 1.0, 1.4, 7.75, 30.5]
    grid = [noise.width * step * sign for step in steps for sign in (1.0, -1.0)]
    ours = log_tails(noise, np.array(grid), up)
    for place, a in enumerate(grid):
        with mp.workdps(600):
            tail = find_tail(noise, abs(mp.mpf(a)))
            vote = tail if (a > 0) == up else 1 - tail
            for mine, true in zip(ours, (mp.log(vote), mp.log(1 - vote)), strict=True):
                # Before the end of a steep step one bit of a threshold moves the tail by more.
                error = 1e-6 if steps[place // 2] == 1.0 - 1e-9 else 1e-12
                # The logarithm of all but exp(-1240) is 0.
                assert float(mine[place]) == pytest.approx(float(true), rel=error, abs=1e-300)
    assert log_tails(noise, np.array([1e308]), True)[0] < -1e6


@pytest.mark.parametrize("apart", [0.01, 0.5, 1.0, 1.25, 3.0])
@pytest.mark.parametrize("gamma", [0.0, 0.25, None, 1.0])
def test_cost_is_the_largest_log_ratio_of_two_densities(apart, gamma):
    noise = Staircase(2.0, 0.7, gamma)
    place = np.arange(-4000, 4001) / 500 + 1e-6
    ratio = find_density(noise, place) / find_density(noise, place + 2.0 * apart)
    cost = facts_about_noise(noise).cost(noise, 2.0 * apart, 1).epsilon
    assert cost == pytest.approx(np.log(ratio).max(), rel=1e-9) == 0.7 * math.ceil(apart)


def test_cost_in_several_entries():
    noise = Staircase(1.0, 0.5)
    cost = facts_about_noise(noise).cost
    splits = [(0.9, 0.05, 0.05), (1.0, 0.0, 0.0), (0.4, 0.3, 0.3), (0.5, 0.5, 0.0)]
    losses = [sum(cost(noise, part, 1).epsilon for part in split if part) for split in splits]
    assert losses == [1.5, 0.5, 1.5, 1.0]
    assert cost(noise, 1.0, 3).epsilon == max(losses)
    real = [real_epsilon(noise, Ball("l1", 0.5, dim)).value for dim in (1, 2, 8)]
    assert real == [0.5, 1.0, 4.0]


def test_an_audit_holds_the_cost_and_refutes_a_smaller_claim():
    audits = [
        dpcore.audit(Staircase(1.0, 1.0), PAIR, claim=claim, trials=100_000, rng=1)
        for claim in (1.0, 0.8)
    ]
    assert [audit.refuted for audit in audits] == [False, True]


def test_messages():
    check_messages(ValueError, [
        (lambda: Staircase(0.0, 1.0), "width", "above 0 and at most 1e+290, got 0.0"),
        (lambda: Staircase(2e290, 1.0), "width", "above 0 and at most 1e+290, got 2e+290"),
        (lambda: Staircase(1.0, 1e-7), "decay", "at least 1e-06 and at most 700, got 1e-07"),
        (lambda: Staircase(1.0, 701), "decay", "at least 1e-06 and at most 700, got 701"),
        (lambda: Staircase(1.0, 1.0, 1.5), "gamma", "at least 0 and at most 1, got 1.5"),
    ])  # fmt: skip
    check_messages(TypeError, [(lambda: Staircase(1.0, "1"), "decay", "at most 700, got '1'")])
    assert np.isfinite(Staircase(1e290, 1e-6)([0.0], 1000, 1)).all()
