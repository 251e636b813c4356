"""What a noise really buys on a domain: closed forms, and the certified audit from below."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

import dpcore
from dpcore import Exponential, Gaussian, Identity, Laplace, RandomBits, Uniform
from dpcore.calibration import (
    L2Laplace,
    RandomisedResponse,
    gaussian_analytic,
    gaussian_delta,
    l2_laplace,
    laplace,
    real_epsilon,
)
from dpcore.mechanisms import DPTextNoise
from dpcore.pairs import distance
from dpcore.published import (
    ADePT,
    ADePTClipL1,
    ADePTReference,
    ADePTScaled,
    DPText,
    DPTextRepaired,
    HalfNoise,
    HalvedOutput,
    LaplaceMechanism,
)
from dpcore.sensitivity import Ball, Box, HistogramCounts, MinMaxRows, OneHot, Simplex, Sphere

UNIT = Ball("l1", 0.5, 6)
"""Any two inputs at L1 distance at most 1, which is what the claims of these systems speak of."""


@pytest.mark.parametrize(
    ("mechanism", "domain", "expected"),
    [
        # ADePT loses epsilon sqrt(n), on its ball and on everything that contains it.
        *((ADePT(1.0, 3.0), Ball("l2", 3.0, n), math.sqrt(n)) for n in (1, 2, 32, 128, 1024)),
        (ADePT(0.5, 3.0), Box(-7.0, 7.0, 16), 2.0),
        (ADePT(0.5, 3.0), Ball("l1", 100.0, 16), 2.0),
        (ADePT(1.0, 0.5), Sphere(9), 3.0),
        # Inside the clip it is the domain that counts.
        (ADePT(1.0, 5.0), Ball("l2", 1.0, 16), 0.8),
        (ADePT(1.0, 1.5), Ball("l2", 1.0, 16), 8.0 / 3.0),
        (ADePT(1.0, 5.0), MinMaxRows(4), 0.4),
        (ADePTClipL1(1.0, 15.0), MinMaxRows(16), 16.0 / 30.0),
        (ADePT(1.0, 2.0), Simplex(8), 0.5),
        (ADePTClipL1(2.0, 3.0), Box(-7.0, 7.0, 16), 2.0),
        (ADePTClipL1(2.0, 3.0), Ball("l2", 0.25, 16), 2.0 * 2.0 * 0.25 * 4.0 / 6.0),
        (ADePTScaled(2.0, 3.0), Ball("l2", 9.0, 128), 2.0),
        # DPNR: Lap(1 / epsilon) on min-max rows loses d epsilon.
        (Laplace(1.0), MinMaxRows(768), 768.0),
        (Laplace(1.0 / 5.0), MinMaxRows(64), 320.0),
        (LaplaceMechanism(0.05), MinMaxRows(768), 38.4),
        (Laplace(laplace(0.05, 768.0)), MinMaxRows(768), 0.05),
        # The published systems where their claims apply.
        (LaplaceMechanism(2.0), UNIT, 2.0),
        (DPTextRepaired(2.0), UNIT, 2.0),
        (HalvedOutput(2.0), UNIT, 2.0),
        (HalfNoise(2.0), UNIT, 4.0),
        (ADePTReference(2.0), Box(0.0, 1.0, 6), 12.0),
        # Histograms: neighbours differ in one record, the diameter is infinite.
        (Laplace(2.0), HistogramCounts(5, "replace"), 1.0),
        (Laplace(2.0), HistogramCounts(5, "add_remove"), 0.5),
        # L2 noise.
        (L2Laplace(2.0), Ball("l2", 3.0, 50), 3.0),
        (l2_laplace(0.7, math.sqrt(12)), MinMaxRows(12), 0.7),
        # Randomised response.
        (RandomisedResponse(1.0), OneHot(7), 2.0),
        (RandomisedResponse(1.0), OneHot(1), 0.0),
        (RandomisedResponse(0.5, 4), Box(0, 3, 6, integers=True), 3.0),
        # No noise, one-sided noise, bounded noise, no input.
        (Identity(), Box(0.0, 1.0, 2), math.inf),
        (Exponential(100.0), Box(0.0, 1.0, 2), math.inf),
        (Uniform(-9.0, 9.0), Box(0.0, 1.0, 2), math.inf),
        (DPText(1.0), UNIT, math.inf),
        (DPTextNoise(1.0, "keep"), UNIT, math.inf),
        (Gaussian(100.0), UNIT, math.inf),
        (RandomBits(), Box(0.0, 1.0, 2), 0.0),
        (Identity(), OneHot(1), 0.0),
        (Gaussian(1.0), Box(2.0, 2.0, 3), 0.0),
    ],
)
def test_closed_forms(mechanism, domain, expected):
    real = real_epsilon(mechanism, domain)
    assert (real.value, real.epsilon()) == (pytest.approx(expected, rel=1e-12), real.value)
    assert real.reason
    assert real.reason in str(real)
    # The pair lies in the domain, and its distance is the one that is stated.
    assert all(map(domain.contains, (real.pair.x, real.pair.x_prime)))
    if real.norm != "entries" and not hasattr(mechanism, "clip"):
        assert distance(real.pair, real.norm) == pytest.approx(real.distance, rel=1e-12)
    if not real.value < math.inf or real.mu is not None:
        return
    assert real.delta(real.value) == 0.0
    assert pickle.loads(pickle.dumps(real)) == real


def test_the_line_shows_the_claim_beside_what_is_real():
    text = str(real_epsilon(ADePT(1.0), Ball("l2", 1.0, 32)))
    assert text.startswith("epsilon 5.65685 (claimed: 1) for ADePT(epsilon=1.0, clip=1.0) on ")
    assert text.endswith("L1 distance 11.3137 over scale 2")
    text = str(real_epsilon(Gaussian(1.0), Ball("l2", 0.5, 3)))
    assert text.startswith("epsilon 4.37718 at delta 1e-05 for Gaussian(sigma=1.0) on ")


def test_gaussian_noise_has_a_profile():
    real = real_epsilon(Gaussian(3.0), Ball("linf", 0.5, 9))
    assert real.mu == pytest.approx(1.0, rel=1e-12)
    assert real.delta(1.0) == pytest.approx(gaussian_delta(1.0, 1.0, 1.0), rel=1e-12)
    assert real.epsilon(1e-5) == pytest.approx(4.3772, abs=1e-4)
    assert real.delta(real.epsilon(1e-9)) == pytest.approx(1e-9, rel=1e-9)
    assert real.epsilon(0.0) == math.inf
    noise = gaussian_analytic(0.3, 1e-6, 4.0)
    assert real_epsilon(noise.mechanism, Ball("l2", 2.0, 5)).epsilon(1e-6) == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("dim", "epsilons", "variation"),
    [(300, (1.6375, 2.7789, 3.5854), 0.3013), (50, (5.2524, 7.4249, 8.7869), 0.6568)],
)
def test_l2_laplace_has_a_profile_far_below_its_pure_epsilon(dim, epsilons, variation):
    """At b = .1 and distance 1.34; figures agreed with 4e6 draws to four digits."""
    real = real_epsilon(L2Laplace(0.1), Ball("l2", 0.67, dim))
    assert real.value == pytest.approx(13.4)
    for delta, epsilon in zip((1e-2, 1e-4, 1e-6), epsilons, strict=True):
        assert real.epsilon(delta) == pytest.approx(epsilon, abs=1e-4)
        assert real.delta(real.epsilon(delta)) == pytest.approx(delta, rel=1e-6)
    assert real.delta(0.0) == pytest.approx(variation, abs=1e-4)
    assert (real.delta(13.4), real.epsilon(0.0)) == (0.0, real.value)
    assert real.epsilon(0.9) == 0.0


@pytest.mark.parametrize("dim", [1, 2, 3, 5])
def test_the_profile_of_l2_laplace_is_what_draws_show(dim):
    """Within 5 standard errors of 200,000 draws; a distance 5 % farther is not."""
    noise, apart = L2Laplace(1.0), 2.0
    pair = dpcore.Pair(np.zeros(dim), np.eye(dim)[0] * apart)
    losses = noise.log_ratio(noise(pair.x, 200_000, 1), pair)
    for epsilon in (0.0, 0.5, 1.5):
        shares = np.maximum(0.0, -np.expm1(epsilon - losses))
        error = shares.std() / math.sqrt(shares.size)
        real = real_epsilon(noise, Ball("l2", apart / 2, dim))
        assert abs(real.delta(epsilon) - shares.mean()) < 5 * error
        far = real_epsilon(noise, Ball("l2", 1.05 * apart / 2, dim))
        assert abs(far.delta(epsilon) - shares.mean()) > 5 * error


def test_in_one_dimension_it_is_laplace_noise():
    real = real_epsilon(L2Laplace(0.5), Ball("l2", 0.5, 1))
    assert real.delta(0.5) == pytest.approx(1 - math.exp((0.5 - 2.0) / 2))


# The certified audit agrees from below.


@pytest.mark.parametrize(
    ("mechanism", "domain"),
    [
        (Laplace(1.0), MinMaxRows(2)), (Laplace(3.0), Box(-1.0, 1.0, 2)),
        (Laplace(1.0), Ball("l1", 0.5, 2)), (Laplace(2.0), HistogramCounts(2, "replace")),
        (ADePT(1.0), Ball("l2", 1.0, 1)), (ADePT(1.0), Ball("l2", 1.0, 2)),
        (ADePT(1.0, 5.0), Box(-9.0, 9.0, 3)), (HalfNoise(1.0), Ball("l1", 0.5, 2)),
        (HalvedOutput(1.0), Ball("l1", 0.5, 2)), (l2_laplace(3.0, math.sqrt(2)), MinMaxRows(2)),
        (RandomisedResponse(1.0, 3), Box(0, 2, 2, integers=True)),
    ],
)  # fmt: skip
def test_an_audit_certifies_most_of_it_and_never_more(mechanism, domain):
    real = real_epsilon(mechanism, domain)
    report = dpcore.audit(mechanism, real.pair, trials=4 * 10**5, claim=real.value, rng=1)
    assert 0.8 * real.value < report.epsilon_lower <= real.value
    # The control: a claim of three quarters is refuted on this very pair.
    claim = 0.75 * real.value
    assert dpcore.audit(mechanism, real.pair, trials=4 * 10**5, claim=claim, rng=2).refuted


@pytest.mark.parametrize("mechanism", [Identity(), Exponential(1.0), Uniform(-1.0, 1.0)])
def test_an_audit_of_an_infinite_loss_is_limited_by_the_trials_alone(mechanism):
    real = real_epsilon(mechanism, Box(0.0, 1.0, 2))
    report = dpcore.audit(mechanism, real.pair, trials=10**5, claim=1.0, rng=1)
    assert report.epsilon_lower > 9.0


@pytest.mark.parametrize("delta", [0.1, 1e-3])
def test_an_audit_of_gaussian_noise_lies_under_the_profile(delta):
    real = real_epsilon(Gaussian(1.0), Ball("l2", 0.5, 2))
    truth = real.epsilon(delta)
    common = {"trials": 4 * 10**5, "delta": delta}
    report = dpcore.audit(real.mechanism, real.pair, claim=truth, rng=1, **common)
    assert 0.7 * truth < report.epsilon_lower <= truth
    assert dpcore.audit(real.mechanism, real.pair, claim=0.6 * truth, rng=2, **common).refuted


def test_a_refused_domain_really_lies_between():
    """Rows clipped to radius 1 are apart by more than 0 and less than the ball's 4 in L1."""
    rng, ball, rows = np.random.default_rng(1), Ball("l2", 1.0, 4), MinMaxRows(4)
    clipped = np.array([ball.clip(rows.draw(rng)) for _ in range(300)])
    apart = np.abs(clipped[:, None] - clipped[None]).sum(axis=2).max()
    assert 0.5 < apart < 0.75 * real_epsilon(ADePT(1.0), ball).distance
