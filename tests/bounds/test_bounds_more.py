"""The registry, the prediction of a bound, independent coordinates, and what would be found."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from dpcore import bounds
from dpcore.bounds.power import _PILOT_TAIL
from dpcore.records import Counts

# The registry.


def test_bounds_have_one_signature():
    assert next(iter(bounds.BOUNDS)) == "clopper_pearson"
    for name, bound in bounds.BOUNDS.items():
        assert getattr(bounds, bound.__name__) is bound is bounds.bound_of(name)
        assert list(inspect.signature(bound).parameters)[:3] == ["counts", "delta", "confidence"]
        assert 0.0 < bound(Counts(900, 1000, 100, 1000), 0.0, 0.9) < math.log(9.0)
    assert len(set(bounds.__all__)) == len(bounds.__all__)
    assert all(hasattr(bounds, name) for name in bounds.__all__)


SIZES = st.sampled_from([1, 2, 17, 400, 10**6])


@given(SIZES, st.floats(0, 1), st.floats(0, 1), st.floats(0.6, 0.999))
def test_every_bound_is_a_number_whatever_the_counts(n, x, y, confidence):
    counts = Counts(round(x * x * n), n, round(y * y * n), n)
    for bound in bounds.BOUNDS.values():
        assert 0.0 <= bound(counts, 0.0, confidence) < math.inf


# The prediction.


def certified(k, n, k_prime, trials, delta, confidence):
    """Clopper-Pearson by beta quantiles, on expected counts that need not be whole."""
    p = bounds.limits(k, n, _PILOT_TAIL)[0] * trials
    q = bounds.limits(k_prime, n, _PILOT_TAIL)[1] * trials
    each = (1 - confidence) / 2
    p_low = 0.0 if p == 0.0 else special.betaincinv(p, trials - p + 1, each)
    q_high = 1.0 if q == trials else special.betainccinv(q + 1, trials - q, each)
    return 0.0 if p_low <= delta else max(0.0, math.log((p_low - delta) / q_high))


@pytest.mark.parametrize("trials", [10**4, 10**8])
@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_predicted_is_the_bound_on_the_expected_counts(trials, delta):
    k = np.array([0, 1, 3, 12, 40, 300, 5000, 9990, 10000])
    k_prime = np.array([0, 0, 2, 1, 0, 9, 4000, 5000, 10000])
    found = bounds.predicted(k, 10**4, k_prime, 10**4, trials, delta, 0.9)
    pairs = zip(k.tolist(), k_prime.tolist(), strict=True)
    expected = [certified(a, 10**4, b, trials, delta, 0.9) for a, b in pairs]
    assert found == pytest.approx(expected, rel=2e-3, abs=1e-3)
    assert (found > 0.0).sum() >= 3


def test_few_hits_promise_little():
    assert bounds.predicted([3, 300], 1000, [0, 100], 1000, 10**8)[0] == 0.0
    few, many = bounds.predicted([30, 3000], [1000, 10**5], [10, 1000], [1000, 10**5], 10**8)
    assert many > 2 * few


def test_predicted_is_never_nan_and_keeps_shapes():
    k, j = np.meshgrid([0, 1, 9, 10], [0, 1, 9, 10])
    for trials in (1, 100, 10**12):
        for delta, confidence in ((0.0, 0.5), (0.5, 0.9999999)):
            found = bounds.predicted(k, 10, j, 10, trials, delta, confidence)
            assert (found.shape, np.isfinite(found).all()) == ((4, 4), True)
            assert found.min() >= 0.0
    k, j = np.zeros((2, 1), int), np.zeros((1, 3), int)
    assert bounds.predicted(k, 10, j, [10, 20, 30], 5).shape == (2, 3)


# Independent coordinates.


def test_one_coordinate_is_clopper_pearson():
    counts = Counts(900, 1000, 100, 1000)
    for delta in (0.0, 0.1, 0.95):
        found = bounds.every_coordinate([counts], [1], delta, 0.9)
        assert found == pytest.approx(bounds.clopper_pearson(counts, delta, 0.9), rel=1e-12)
    # A group without hits certifies nothing.
    assert bounds.every_coordinate([Counts(0, 9, 0, 9), Counts(9, 9, 0, 9)], [1, 1]) == 0.0


@pytest.mark.parametrize("size", [128, 4096])
def test_products_below_the_smallest_double(size):
    """Half the noise that a claim of 1 needs, 10^8 trials of all coordinates pooled."""
    loss = 2.0 / size
    n = 10**8 * size
    counts = Counts(n // 2, n, int(n / 2 * math.exp(-loss)), n)
    found = bounds.every_coordinate([counts], [size])
    assert 1.9 < found < 2.0
    with_delta = bounds.every_coordinate([counts], [size], 1e-300)
    p_all = size * math.log(bounds.limits(counts.k, n, 0.025)[0])
    # 2^-4096 is below 1e-300 and below every double, 2^-128 is far above.
    assert (p_all < math.log(1e-300)) == (size == 4096)
    assert with_delta == (0.0 if size == 4096 else pytest.approx(found))


def test_coordinates_are_covered_by_enumeration():
    """Two groups, exact ratio, every outcome of both weighed."""
    n, p, q, sizes = 10, (0.6, 0.5), (0.3, 0.4), (3, 2)
    truth = sum(m * math.log(a / b) for m, a, b in zip(sizes, p, q, strict=True))
    weights = [stats.binom.pmf(np.arange(n + 1), n, rate) for rate in (*p, *q)]
    each = (1 - 0.6) / 4
    low = [bounds.limits(k, n, each)[0] for k in range(n + 1)]
    high = [bounds.limits(k, n, each)[1] for k in range(n + 1)]
    miss = 0.0
    for index in np.ndindex(*(n + 1,) * 4):
        a, b, c, d = index
        if min(low[a], low[b]) == 0.0:
            continue
        bound = 3 * math.log(low[a] / high[c]) + 2 * math.log(low[b] / high[d])
        if bound > truth:
            miss += math.prod(w[i] for w, i in zip(weights, index, strict=True))
    assert 0.0 < miss <= 0.4
    groups = [Counts(9, n, 2, n), Counts(8, n, 1, n)]
    expected = 3 * math.log(low[9] / high[2]) + 2 * math.log(low[8] / high[1])
    assert bounds.every_coordinate(groups, [3, 2], 0.0, 0.6) == pytest.approx(max(0.0, expected))


# What would be found.


def true_power(n, claim, mass, ratio, delta):
    weights = [stats.binom.pmf(np.arange(n + 1), n, rate) for rate in (mass, mass / ratio)]
    certain = np.empty((n + 1, n + 1))
    for k, j in np.ndindex(certain.shape):
        certain[k, j] = bounds.clopper_pearson(Counts(k, n, j, n), delta, 0.9) > claim
    return weights[0] @ certain @ weights[1]


@pytest.mark.parametrize(
    ("claim", "mass", "delta", "power"),
    [(0.5, 0.8, 0.0, 0.9), (0.1, 0.4, 0.05, 0.95), (1.0, 1.0, 0.0, 0.5)],
)
def test_the_ratio_reaches_the_power_and_not_much_less_does(claim, mass, delta, power):
    n = 36
    found, ratio = bounds.detectable(n, claim, mass, bounds.clopper_pearson, delta, 0.9, power)
    assert found == mass
    assert math.exp(claim) < ratio < math.inf
    reached = true_power(n, claim, mass, ratio, delta)
    assert power - 1e-9 <= reached
    assert true_power(n, claim, mass, 0.9 * ratio, delta) < power
    # A larger mass with the same ratio is found no less often.
    assert true_power(n, claim, min(1.0, 1.2 * mass), ratio, delta) >= reached - 1e-9


def test_a_sharper_bound_and_more_draws_detect_less():
    ratios = [bounds.detectable(n, 1.0, 0.1)[1] for n in (10**3, 10**5, 10**8)]
    assert (ratios, ratios[-1]) == (sorted(ratios, reverse=True), pytest.approx(math.e, rel=1e-2))
    sharper = bounds.detectable(10**4, 1.0, 0.1, bounds.berger_boos)
    assert sharper[1] < bounds.detectable(10**4, 1.0, 0.1)[1]


def test_too_rare_an_event_is_never_found():
    assert bounds.detectable(1000, 1.0, 1e-4) == (1e-4, math.inf)
    assert bounds.detectable(1000, 20.0, 1.0) == (1.0, math.inf)
    # With a bound that always certifies, anything goes.
    mass, ratio = bounds.detectable(1000, 1.0, 0.5, lambda counts, delta, confidence: 9.0)
    assert (mass, round(ratio, 6)) == (0.5, 1.0)
