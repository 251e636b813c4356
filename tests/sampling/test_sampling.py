"""The samplers against scipy's laws, each test with a control that is two per cent wrong.

Every test has the significance ALPHA and a fixed seed: it fails by chance once in a million.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import dpcore
from dpcore import DPTextNoise, Exponential, Gaussian, Laplace, RandomBits, Uniform

ALPHA = 1e-6
SIZE = 10**6
BINS = 200
WRONG = 1.02
"""The scale of a negative control: each test must tell it from 1."""

SCALE = 1.7

LAWS = {
    "two_branch": (lambda b: Laplace(b, "two_branch"), stats.laplace(0.0, SCALE)),
    "sign": (lambda b: Laplace(b, "sign"), stats.laplace(0.0, SCALE)),
    "centred": (lambda b: Laplace(b, "centred"), stats.laplace(0.0, SCALE)),
    "gaussian": (Gaussian, stats.norm(0.0, SCALE)),
    "exponential": (Exponential, stats.expon(0.0, SCALE)),
    "uniform": (lambda b: Uniform(-b, 2.0 * b), stats.uniform(-SCALE, 3.0 * SCALE)),
    "resample": (lambda b: DPTextNoise(b, "resample"), stats.expon(0.0, SCALE)),
}


def noise(mechanism, seed, size=SIZE):
    """Noise of one coordinate, added to 0.0."""
    return dpcore.sample(mechanism, [0.0], size, rng=seed)[:, 0]


def ks(sample, law):
    return stats.kstest(sample, law.cdf).pvalue


def chi_square(sample, law):
    """The p-value over 200 bins of equal probability."""
    edges = law.ppf(np.arange(1, BINS) / BINS)
    return stats.chisquare(np.bincount(np.searchsorted(edges, sample), minlength=BINS)).pvalue


def both_moments(sample, law):
    """The smaller of two p-values, for the mean and for the mean square, in units of their law."""
    values = []
    for power in (1, 2):
        mean = law.moment(power)
        spread = math.sqrt((law.moment(2 * power) - mean**2) / sample.size)
        values.append(math.erfc(abs((sample**power).mean() - mean) / spread / math.sqrt(2)))
    return 2 * min(values)


@pytest.mark.parametrize("test", [ks, chi_square, both_moments])
@pytest.mark.parametrize("name", LAWS)
def test_law(name, test):
    make, law = LAWS[name]
    assert test(noise(make(SCALE), 101), law) > ALPHA
    assert test(noise(make(SCALE * WRONG), 101), law) < ALPHA


def test_gaussian_tails():
    """Both methods of the sampler (body and tail) beyond 3.5 sigma, by exact binomial tests."""
    draws = noise(Gaussian(1.0), 102, 10**7)

    def p_value(draws, cut):
        return stats.binomtest(int((draws > cut).sum()), draws.size, stats.norm.sf(cut)).pvalue

    for cut in (3.5, 4.0, 4.5):
        assert min(p_value(draws, cut), p_value(-draws, cut)) > ALPHA / 6
    assert p_value(noise(Gaussian(1.1), 102, 10**7), 4.0) < ALPHA


def test_the_three_laplace_formulas_are_one_function():
    samples = [noise(Laplace(SCALE, name), 103) for name in ("two_branch", "sign", "centred")]
    assert samples[0].tobytes() == samples[1].tobytes() == samples[2].tobytes()
    assert samples[0].tobytes() != noise(Laplace(SCALE), 104).tobytes()


@pytest.mark.parametrize("factor", [1.0, WRONG])
def test_dptext_with_zero_for_nan(factor):
    """Half an atom at 0, half Exp(b): atom, moments and the continuous half."""
    draws = noise(DPTextNoise(SCALE * factor), 105)
    zero = draws == 0.0
    assert stats.binomtest(int(zero.sum()), SIZE, 0.5).pvalue > ALPHA
    b = SCALE
    # Moments of 1/2 delta_0 + 1/2 Exp(b): E[s^k] = k!/2 b^k.
    mean, square = b / 2, b**2
    errors = {
        "mean": (draws.mean() - mean) / math.sqrt(0.75 * b**2 / SIZE),
        "E[s^2]": ((draws**2).mean() - square) / math.sqrt(11 * b**4 / SIZE),
        # Var of the sample variance: (mu4 - sigma^4) / n with mu4 = 8.0625 b^4.
        "variance": (draws.var() - 0.75 * b**2) / math.sqrt((8.0625 - 0.5625) * b**4 / SIZE),
    }
    rest = draws[~zero]
    tests = [ks(rest, stats.expon(0.0, b)), chi_square(rest, stats.expon(0.0, b))]
    limit = stats.norm.isf(ALPHA / 2)
    sound = [abs(error) < limit for error in errors.values()] + [p > ALPHA for p in tests]
    assert set(sound) == {factor == 1.0}, errors


@pytest.mark.parametrize("factor", [1.0, WRONG])
def test_dptext_drawn_again(factor):
    """Exp(b): mean b, variance b^2 (mean and E[s^2] stand in LAWS)."""
    draws = noise(DPTextNoise(SCALE * factor, "resample"), 106)
    # Var of the sample variance of Exp(b): (9 - 1) b^4 / n.
    error = (draws.var() - SCALE**2) / math.sqrt(8 * SCALE**4 / SIZE)
    assert bool(abs(error) < stats.norm.isf(ALPHA / 2)) is (factor == 1.0)


@pytest.mark.parametrize("factor", [1.0, WRONG])
def test_dptext_that_keeps_nan(factor):
    draws = noise(DPTextNoise(SCALE * factor, "keep"), 107)
    missing = np.isnan(draws)
    assert stats.binomtest(int(missing.sum()), SIZE, 0.5).pvalue > ALPHA
    law = stats.expon(0.0, SCALE)
    tests = [test(draws[~missing], law) for test in (ks, chi_square, both_moments)]
    assert all(bool(p > ALPHA) is (factor == 1.0) for p in tests)


def test_the_three_ways_with_nan_share_their_numbers():
    """zero and keep use one word a coordinate, the same one."""
    zero, keep = (noise(DPTextNoise(SCALE, nan), 108) for nan in ("zero", "keep"))
    np.testing.assert_array_equal(np.where(np.isnan(keep), 0.0, keep), zero)


@pytest.mark.parametrize("nan", ["zero", "resample", "keep"])
@pytest.mark.parametrize("x", [0.0, 1.0, -3.25, 1e9])
def test_faulty_noise_never_goes_below_the_input(nan, x):
    draws = dpcore.sample(DPTextNoise(SCALE, nan), [x], SIZE, rng=109)[:, 0]
    assert not (draws < x).any()
    assert (draws > x).any()
    correct = dpcore.sample(Laplace(SCALE), [x], SIZE, rng=109)[:, 0]
    assert stats.binomtest(int((correct < x).sum()), SIZE, 0.5).pvalue > ALPHA


def bits_pvalues(bits):
    """Chi-square of single bits, of words of eight, and of pairs at several distances."""
    flat = bits.astype(np.int64).ravel()
    words = flat[: flat.size // 8 * 8].reshape(-1, 8) @ (1 << np.arange(8))
    values = [stats.chisquare(np.bincount(flat, minlength=2)).pvalue]
    values.append(stats.chisquare(np.bincount(words, minlength=256)).pvalue)
    for lag in (1, 2, 31, 32, 33, 64):
        pairs = 2 * flat[:-lag] + flat[lag:]
        # Every second run of `lag`, so that the pairs do not overlap.
        pairs = pairs[: pairs.size // (2 * lag) * 2 * lag].reshape(-1, 2, lag)[:, 0].ravel()
        values.append(stats.chisquare(np.bincount(pairs, minlength=4)).pvalue)
    return values


def test_random_bits_are_fair_and_independent():
    bits = dpcore.sample(RandomBits(), [0.0, 5.0, -1.0], SIZE, rng=110)
    assert set(np.unique(bits)) == {0.0, 1.0}
    assert min(bits_pvalues(bits)) > ALPHA / 8
    for column in bits.T:
        assert stats.binomtest(int(column.sum()), SIZE, 0.5).pvalue > ALPHA / 3


def test_unfair_or_dependent_bits_are_seen():
    """The control: P(1) = 0.505, and a bit that repeats the one 32 before it once in 50."""
    rng = np.random.default_rng(111)
    assert bits_pvalues(rng.random(3 * SIZE) < 0.505)[0] < ALPHA / 8
    sticky = rng.random(3 * SIZE) < 0.5
    copied = np.flatnonzero(rng.random(sticky.size - 32) < 0.02)
    sticky[copied + 32] = sticky[copied]
    assert bits_pvalues(sticky)[5] < ALPHA / 8


def test_published_systems_sample_their_steps():
    """clip, noise and factor in that order: bit for bit the primitive's noise, moved and scaled."""
    x = np.array([3.0, -4.0])
    noisy = dpcore.sample(dpcore.published.ADePT(2.0, 1.5), x, 1000, rng=112)
    centre = dpcore._core.clip(x, "l2", 1.5)
    assert np.linalg.norm(centre) == pytest.approx(1.5, rel=1e-15)
    pure = dpcore.sample(Laplace(1.5), np.zeros(2), 1000, rng=112)
    np.testing.assert_array_equal(noisy, centre + pure)
    halved = dpcore.sample(dpcore.published.HalvedOutput(0.5), x, 1000, rng=112)
    pure = dpcore.sample(Laplace(2.0), np.zeros(2), 1000, rng=112)
    np.testing.assert_array_equal(halved, (x + pure) * 0.5)
