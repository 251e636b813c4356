"""From Renyi curves to (epsilon, delta): known figures, brute force, soundness and its traps."""

from __future__ import annotations

import math
import pickle
from functools import partial

import mpmath
import numpy as np
import pytest
from shared_messages import check_messages

from dpcore.calibration import gaussian_epsilon
from dpcore.divergence import closed_forms as forms
from dpcore.divergence.conversions import Converted, Line, canonne_kamath_steinke, line

DELTA = 1e-5
FINE = 1.0 + np.geomspace(1e-3, 500.0, 20_000)
TENTH = 1.1 ** np.arange(1, 60)

WAYS = canonne_kamath_steinke, line

KNOWN = [
    (0.1, 0.3407, 0.3753, 0.4849, 49.0),
    (0.5, 1.9931, 2.1657, 2.5243, 10.6),
    (1.0, 4.3772, 4.7284, 5.2985, 5.8),
    (2.0, 9.9973, 10.7248, 11.5971, 3.4),
]
"""Gaussian mu: exact epsilon, direct conversion, line and its alpha, at delta 1e-5."""


def direct(alphas, values, delta):
    """Proposition 12 order by order, without the zero and the clip."""
    found = []
    for a, d in zip(alphas, values, strict=True):
        a, d = mpmath.mpf(float(a)), mpmath.mpf(float(d))
        found.append(d + mpmath.log(1 - 1 / a) - mpmath.log(a * mpmath.mpf(delta)) / (a - 1))
    return found


def curves(seed, size):
    """Random curves, some convex and some concave, never falling."""
    rng = np.random.default_rng(seed)
    for _ in range(size):
        alphas = np.sort(1.0 + np.exp(rng.uniform(-3.0, 4.0, rng.integers(1, 12))))
        steps = np.exp(rng.uniform(-6.0, 2.0, alphas.size))
        yield alphas, np.cumsum(steps), 10.0 ** rng.uniform(-12.0, -0.3)


@pytest.mark.parametrize(("mu", "exact", "expected", "by_line", "alpha"), KNOWN)
def test_gaussian_figures(mu, exact, expected, by_line, alpha):
    truth = gaussian_epsilon(1.0, DELTA, mu)
    assert truth == pytest.approx(exact, abs=6e-5)
    converted = canonne_kamath_steinke(FINE, forms.gaussian_mechanism(FINE, mu, 1.0), DELTA)
    assert converted.epsilon == pytest.approx(expected, abs=6e-5)
    drawn = line(TENTH, forms.gaussian_mechanism(TENTH, mu, 1.0), DELTA)
    assert drawn.epsilon == pytest.approx(by_line, abs=6e-5)
    assert drawn.alpha == pytest.approx(alpha, rel=0.02)
    assert (drawn.xi, drawn.rho) == (pytest.approx(0.0, abs=1e-12), pytest.approx(mu**2 / 2))
    assert truth < converted.epsilon < drawn.epsilon


@pytest.mark.parametrize("delta", [0.3, 1e-2, 1e-5, 1e-12, 1e-300])
def test_direct_conversion_is_the_least_of_the_printed_formula(delta):
    for alphas, values, _ in curves(1, 40):
        every = direct(alphas, values, delta)
        best = min(every)
        found = canonne_kamath_steinke(alphas, values, delta)
        if any(delta**2 >= -math.expm1(-d) for d in values):
            assert found.epsilon == 0.0
        else:
            assert found.epsilon == pytest.approx(max(0.0, float(best)), rel=1e-12, abs=1e-13)
        if found.epsilon > 0.0:
            assert found.alpha == alphas[every.index(best)]


def test_upper_bounds_when_fed_true_curves():
    for delta in (0.2, 1e-2, 1e-4, 1e-8):
        for mu in (0.01, 0.2, 1.0, 3.0, 10.0):
            values = forms.gaussian_mechanism(TENTH, mu, 1.0)
            truth = gaussian_epsilon(1.0, delta, mu)
            assert min(convert(TENTH, values, delta).epsilon for convert in WAYS) >= truth
        for loss in (0.01, 0.5, 2.0, 8.0):
            # delta = 1 - e^{(epsilon - loss)/2} for Laplace noise.
            truth = max(0.0, loss + 2.0 * math.log1p(-delta))
            values = forms.laplace_mechanism(TENTH, loss, 1.0)
            assert min(convert(TENTH, values, delta).epsilon for convert in WAYS) >= truth
        # Negative control: two thirds of the curve is no upper bound.
        values = forms.gaussian_mechanism(FINE, 3.0, 1.0) * 2.0 / 3.0
        low = canonne_kamath_steinke(FINE, values, delta).epsilon
        assert low < gaussian_epsilon(1.0, delta, 3.0)


def test_zero_where_total_variation_is_below_delta():
    # Bretagnolle and Huber: mu = 0.01 has total variation 0.004, and sqrt(1 - e^-D) is 0.01.
    values = forms.gaussian_mechanism([2.0, 8.0], 0.01, 1.0)
    found = canonne_kamath_steinke([2.0, 8.0], values, 0.011)
    assert (found.epsilon, found.alpha) == (0.0, 2.0)
    assert gaussian_epsilon(1.0, 0.011, 0.01) == 0.0
    # The formula itself would be above 0 there; just beyond the rule it decides again.
    assert min(direct([2.0], [1e-4], 0.011)) > 0
    assert canonne_kamath_steinke([2.0], [1e-4], 0.0099).epsilon > 0.0
    assert canonne_kamath_steinke([2.0], [0.0], 1e-300).epsilon == 0.0
    assert canonne_kamath_steinke([2.0], [-0.1], 1e-5).epsilon == 0.0


def test_order_infinity_is_pure_privacy():
    alphas = [2.0, np.inf]
    found = canonne_kamath_steinke(alphas, forms.laplace_mechanism(alphas, 0.5, 1.0), 1e-12)
    assert (found.epsilon, found.alpha) == (0.5, np.inf)
    nothing = canonne_kamath_steinke([2.0, 4.0], [np.inf, np.inf], 1e-3)
    assert (nothing.epsilon, nothing.alpha) == (np.inf, None)
    part = canonne_kamath_steinke([2.0, 4.0], [1.0, np.inf], 1e-3)
    assert part == canonne_kamath_steinke([2.0], [1.0], 1e-3)


def priced(xi, rho, alphas, delta):
    """The least xi + rho a + ln(1/delta)/(a - 1) over a fine grid of orders in range."""
    a = np.linspace(alphas[0], alphas[-1], 4001)
    return float((xi + rho * a - math.log(delta) / (a - 1.0)).min())


def test_line_against_brute_force():
    for alphas, values, delta in curves(2, 300):
        found = line(alphas, values, delta)
        assert min(found.xi, found.rho) >= 0.0
        assert (found.xi + found.rho * alphas >= values * (1 - 1e-12)).all()
        assert alphas[0] <= found.alpha <= alphas[-1]
        by_hand = found.xi + found.rho * found.alpha - math.log(delta) / (found.alpha - 1.0)
        assert found.epsilon == pytest.approx(by_hand, rel=1e-12)
        assert found.epsilon <= priced(found.xi, found.rho, alphas, delta) * (1 + 1e-12)
        # Every slope with the least intercept that it allows.
        slopes = np.concatenate([[0.0], np.geomspace(1e-4, (values / alphas).max(), 60)])
        lines = [(max(0.0, float((values - s * alphas).max())), s) for s in slopes]
        best = min(priced(xi, rho, alphas, delta) for xi, rho in lines)
        assert found.epsilon <= best * (1 + 1e-9)


def test_line_is_above_the_direct_conversion_and_mironovs_bound():
    undercut = 0
    for alphas, values, delta in curves(3, 300):
        found = line(alphas, values, delta)
        mironov = (values - math.log(delta) / (alphas - 1.0)).min()
        assert canonne_kamath_steinke(alphas, values, delta).epsilon <= mironov
        if alphas.size == 1:
            assert found.epsilon == pytest.approx(mironov, rel=1e-12)
        # Trap 2: without the clip the same line speaks for orders that nobody looked at.
        loose = found.xi + found.rho + 2.0 * math.sqrt(found.rho * -math.log(delta))
        assert loose <= found.epsilon * (1 + 1e-12)
        undercut += loose < mironov * (1 - 1e-9)
    assert undercut > 30


def test_trap_1_a_negative_intercept_has_no_least_epsilon():
    alphas, delta = TENTH[:30], DELTA
    values = forms.gaussian_mechanism(alphas, 1.0, 1.0)
    found = []
    for slope in (1.0, 1e2, 1e4, 1e6):
        xi = float((values - slope * alphas).max())
        assert xi < 0.0
        found.append(xi + slope + 2.0 * math.sqrt(slope * -math.log(delta)))
    assert found[-1] < -1e4
    assert line(alphas, values, delta).epsilon > gaussian_epsilon(1.0, delta, 1.0)


def test_trap_2_a_level_line_undercuts_the_truth_beyond_the_orders():
    alphas = TENTH[TENTH < 64.0]
    values = forms.laplace_mechanism(alphas, 0.5, 1.0)
    level = float(values.max())
    assert level == pytest.approx(0.489, abs=2e-3)
    # A level line without the clip costs its height alone, and the truth is 0.49998.
    assert level < 0.5 + 2.0 * math.log1p(-DELTA)
    assert line(alphas, values, DELTA).epsilon > 0.5


def test_trap_3_between_two_orders_the_curve_may_be_above_the_line():
    # A Laplace curve is concave at its end: the chord of two far orders is below it.
    ends = np.array([3.0, 40.0])
    loss = 4.0
    values = forms.laplace_mechanism(ends, loss, 1.0)
    rho = float(np.diff(values)[0] / np.diff(ends)[0])
    inside = np.linspace(3.0, 40.0, 500)
    truth = forms.laplace_mechanism(inside, loss, 1.0)
    gap = truth - (values[0] + rho * (inside - 3.0))
    assert gap.max() > 0.1
    # (a - 1) D_a is convex: its chord is above the curve everywhere.
    weights = (inside - 3.0) / 37.0
    chord = ((1 - weights) * 2.0 * values[0] + weights * 39.0 * values[1]) / (inside - 1.0)
    assert (chord >= truth * (1 - 1e-12)).all()
    # With orders a tenth apart what the line misses is small.
    close = TENTH[(TENTH > 3.0) & (TENTH < 40.0)]
    at = forms.laplace_mechanism(close, loss, 1.0)
    middle = np.sqrt(close[1:] * close[:-1])
    share = (middle - close[:-1]) / np.diff(close)
    missed = forms.laplace_mechanism(middle, loss, 1.0) - ((1 - share) * at[:-1] + share * at[1:])
    assert missed.max() < 0.01


def test_falling_and_negative_estimates():
    # Raw estimates may fall or be negative: the line is above all of them all the same.
    found = line([2.0, 3.0, 4.0], [0.5, 0.3, -0.2], 1e-3)
    assert (found.xi, found.rho) == (0.5, 0.0)
    nothing = line([2.0, 4.0], [-0.1, -0.2], 1e-3)
    assert (nothing.xi, nothing.rho, nothing.alpha) == (0.0, 0.0, 4.0)
    assert nothing.epsilon == pytest.approx(-math.log(1e-3) / 3.0)


def test_records():
    found = canonne_kamath_steinke([2.0], [1.0], 1e-3)
    assert str(found) == "epsilon 6.52146 at delta 0.001 (decided at alpha = 2)"
    assert str(Converted(math.inf, None, 0.1)) == "epsilon inf at delta 0.1 (no order decides)"
    drawn = line([2.0, 4.0], [1.0, 1.5], 1e-3)
    for record in (found, drawn):
        assert pickle.loads(pickle.dumps(record)) == record
    assert drawn != Line(0.0, 0.0, 1.0, 2.0, 1e-3)


VALUE_ERRORS = [
    ([1.0, 2.0], [0.1, 0.2], 0.1, "alphas", "above 1, ascending"),
    ([3.0, 2.0], [0.1, 0.2], 0.1, "alphas", "above 1, ascending"),
    ([np.nan], [0.1], 0.1, "alphas", ""), ([np.inf, np.inf], [0.1, 0.1], 0.1, "alphas", ""),
    ([], [], 0.1, "alphas", "a non-empty vector"),
    ([2.0, 3.0], [0.1], 0.1, "values", "of length 2"),
    ([2.0], [np.nan], 0.1, "values", ""), ([2.0], [-np.inf], 0.1, "values", ""),
    ([2.0], [0.1], 0.0, "delta", ""), ([2.0], [0.1], 1.0, "delta", ""),
]  # fmt: skip
TYPE_ERRORS = [(["a"], [0.1], 0.1, "alphas", ""), ([2.0], [0.1], None, "delta", "")]


@pytest.mark.parametrize("convert", WAYS)
def test_bad_arguments(convert):
    for error, rows in ((ValueError, VALUE_ERRORS), (TypeError, TYPE_ERRORS)):
        check_messages(error, [(partial(convert, *row[:3]), *row[3:]) for row in rows])
