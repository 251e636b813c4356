"""Thresholds in the tail of a score: on quantiles of known laws, and where there is none."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpcore.bounds import predicted
from dpcore.bounds.tail import find_tail_index_and_bound, fit_tilt

TRIALS, DELTA, DRAWS = 20_000, 1e-5, 2**40


def predict(rate, rate_prime):
    """Return the bounds that counts at these rates give."""
    levels = TRIALS, DELTA
    return predicted(rate * DRAWS, DRAWS, rate_prime * DRAWS, DRAWS, *levels, tail=0.5)


def find(values, values_prime, share=0.15, **changes):
    """Find a threshold farther out than the one beyond which a share of the values lies."""
    sides, ordered = (np.sort(values), np.sort(values_prime)), np.sort([*values, *values_prime])
    gaps = np.flatnonzero(np.diff(ordered))[::3]
    points = 0.5 * ordered[gaps] + 0.5 * ordered[gaps + 1]
    hits = tuple(side.size - np.searchsorted(side, points) for side in sides)
    sizes = sides[0].size, sides[1].size
    start = min(int(np.searchsorted(points, np.quantile(ordered, 1.0 - share))), points.size - 1)
    counted = float(predict(hits[0][start] / sizes[0], hits[1][start] / sizes[1]))
    options = {"start": start, "counted": counted, "predict": predict, **changes}
    found = find_tail_index_and_bound(points, hits, sizes, **options)
    return None if found is None else (points[found[0]], found[1], points[start])


def quantiles(law, size=1024):
    """Return a sample of a law without luck."""
    return law.ppf((np.arange(size) + 0.5) / size)


@pytest.mark.parametrize("shift", [0.3, 1.0, 2.0])
def test_the_slope_of_gaussian_noise_is_its_shift(shift):
    grid = np.linspace(0.0, 4.0, 400)
    own, other = (1e6 * stats.norm.pdf(grid, mean)[np.newaxis] for mean in (shift, 0.0))
    tilt = fit_tilt(grid, own, other)
    weights = (own + other)[0]
    spread = np.sqrt(np.cov(grid, aweights=weights, ddof=0))
    assert tilt.coefficients[0, 1] / spread == pytest.approx(shift, rel=1e-6)
    np.testing.assert_allclose(tilt.shares, own / (own + other), atol=1e-9)
    # A line needs no curvature, and a third parabola through other counts has it.
    assert abs(fit_tilt(grid, own, other, 2).coefficients[0, 2]) < 1e-6
    assert fit_tilt(grid, own * np.exp(grid**2 / 9.0), other, 2).leading_coefficient_z_score > 100.0


def test_a_sample_has_the_fit_that_it_has_alone():
    rng = np.random.default_rng(1)
    grid, own, other = np.arange(20.0), *rng.poisson(50.0, (2, 3, 20))
    together = fit_tilt(grid, own, other).shares
    first = fit_tilt(grid, own[:1], other[:1]).shares
    np.testing.assert_allclose(together[0], first[0], atol=1e-12)


@pytest.mark.parametrize("shift", [0.6, 1.0, 1.5])
def test_a_threshold_of_gaussian_noise_is_near_the_best_one(shift):
    grid = np.linspace(0.0, 6.0, 600)
    best = predict(stats.norm.sf(grid - shift), stats.norm.sf(grid)).max()
    noise = quantiles(stats.norm)
    threshold, promised, start = find(noise + shift, noise, share=0.2)
    rates = [stats.norm.sf(np.array([start, threshold]) - mean) for mean in (shift, 0.0)]
    before, after = predict(*rates)
    assert before < 0.9 * after
    assert 0.98 * best < after <= best
    # The promise is that of a cautious bootstrap, below what is there.
    assert before < promised < after


@pytest.mark.parametrize("shift", [0.7, 1.0, 2.0])
@pytest.mark.parametrize("law", [stats.laplace, stats.t(3), stats.cauchy])
def test_noise_whose_log_ratio_does_not_rise_in_the_tail_has_none(law, shift):
    """A line through the whole upper half would promise an event of Laplace noise too much."""
    noise = quantiles(law)
    assert find(noise + shift, noise) is None
    gaussian = quantiles(stats.norm)
    assert find(gaussian + shift, gaussian) is not None


def test_units_of_the_score_do_not_matter():
    noise = quantiles(stats.norm)
    threshold, promised, _ = find(noise + 1.0, noise)
    for unit in (2.0**-900, 2.0**20, 2.0**900):
        assert find(unit * (noise + 1.0), unit * noise)[:2] == (unit * threshold, promised)


def test_few_values_have_no_tail():
    noise = quantiles(stats.norm, 30)
    assert find(noise + 2.0, noise) is None
    # Nothing of the other side is beyond: the counts are the better guide.
    assert find(quantiles(stats.norm) + 9.0, quantiles(stats.norm)) is None
    # Two values have one threshold.
    assert find(np.repeat([0.0, 1.0], [30, 70]), np.repeat([0.0, 1.0], [50, 50])) is None


def test_a_threshold_is_never_farther_in_nor_one_of_no_gain():
    noise = quantiles(stats.norm)
    threshold, _, start = find(noise + 1.0, noise)
    assert threshold > start
    assert find(noise + 1.0, noise, share=0.01) is None


def test_a_threshold_below_the_tail_is_compared_by_its_counts():
    noise = quantiles(stats.norm)
    assert find(noise + 1.0, noise, share=0.7, counted=0.5) is not None
    assert find(noise + 1.0, noise, share=0.7, counted=3.0) is None


def expected_bound(law, shift, threshold):
    return float(predict(law.sf(threshold - shift), law.sf(threshold)))


@pytest.mark.parametrize(("law", "most_taken"), [(stats.laplace, 0.03), (stats.norm, 1.0)])
def test_luck_moves_few_thresholds_of_laplace_noise(law, most_taken):
    """Of 60 pilots at most 3 % move with Laplace noise, and most do with Gaussian noise."""
    before, after, moved = [], [], 0
    for seed in range(60):
        noise, noise_prime = law.rvs(size=(2, 1024), random_state=seed)
        found = find(noise + 1.0, noise_prime, share=0.1)
        start = np.quantile(np.concatenate([noise + 1.0, noise_prime]), 0.9)
        moved += found is not None
        before.append(expected_bound(law, 1.0, start))
        after.append(expected_bound(law, 1.0, start if found is None else found[0]))
    assert moved <= 60 * most_taken
    assert np.mean(after) > 0.99 * np.mean(before)
    if law is stats.norm:
        assert moved > 36
        assert np.median(after) > 1.15 * np.median(before)
