"""Gaussian calibration: the profile against 60 digits, its inverses, and the classical guard."""

from __future__ import annotations

import math
import pickle
from functools import partial

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared_messages import check_messages, find_missing

from dpcore import Gaussian
from dpcore.bounds.tradeoff import log_delta
from dpcore.calibration import (
    gaussian_analytic,
    gaussian_classical,
    gaussian_delta,
    gaussian_epsilon,
)


def true_delta(sigma, epsilon, sensitivity):
    """Balle and Wang (2018), theorem 8, as it is printed: exponents have no end here."""
    with mp.workdps(90):
        sigma, epsilon, width = map(mp.mpf, (sigma, epsilon, sensitivity))
        a, b = width / (2 * sigma), epsilon * sigma / width

        def phi(t):
            return mp.erfc(-t / mp.sqrt(2)) / 2

        return phi(a - b) - mp.exp(epsilon) * phi(-a - b)


def error(value, truth):
    return abs(float(mp.mpf(value) / truth - 1))


GRID = [
    (sigma, epsilon)
    for sigma in (1e-3, 0.0077, 0.05, 0.3, 1.0, 3.7, 40.0, 1e4, 1e8)
    for epsilon in (0.0, 1e-9, 1e-3, 0.1, 1.0, 5.0, 36.0, 200.0, 1800.0)
]


@pytest.mark.parametrize(("sigma", "epsilon"), GRID)
def test_the_profile_agrees_with_many_digits(sigma, epsilon):
    found, truth = gaussian_delta(sigma, epsilon, 1.0), true_delta(sigma, epsilon, 1.0)
    if truth > mp.mpf("1e-300"):
        assert error(found, truth) < 1e-12
    else:
        assert found < 1.1e-300


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 30.0, 1e3, 1e4])
@pytest.mark.parametrize("delta", [1e-300, 1e-100, 1e-12, 1e-5, 0.2, 0.7, 0.999, 1.0 - 2.0**-45])
def test_sigma_solves_its_equation_to_1e_12(epsilon, delta):
    noise = gaussian_analytic(epsilon, delta, 2.0)
    assert noise.true_delta <= delta
    with mp.workdps(90):
        step = mp.mpf(10) ** -20
        here = true_delta(noise.sigma, epsilon, 2.0)
        there = true_delta(mp.mpf(noise.sigma) * (1 + step), epsilon, 2.0)
        newton = (here - mp.mpf(delta)) / (there - here) * step
    assert abs(float(newton)) < 1e-12
    assert error(noise.true_delta, here) < 2e-12


@given(
    st.floats(-6.0, 4.0).map(lambda t: 10.0**t),
    st.floats(-300.0, -0.01).map(lambda t: 10.0**t),
    st.floats(-100.0, 100.0).map(lambda t: 10.0**t),
)
def test_the_noise_keeps_its_promise_and_no_less_noise_does(epsilon, delta, sensitivity):
    noise = gaussian_analytic(epsilon, delta, sensitivity)
    assert gaussian_delta(noise.sigma, epsilon, sensitivity) == noise.true_delta <= delta
    assert gaussian_delta(noise.sigma * (1.0 - 1e-10), epsilon, sensitivity) > delta
    # Scaling the units scales the noise.
    unit = gaussian_analytic(epsilon, delta, 1.0)
    assert noise.sigma / sensitivity == pytest.approx(unit.sigma, rel=1e-12)


@given(st.floats(-2.0, 3.0).map(lambda t: 10.0**t), st.floats(-300.0, -0.01).map(lambda t: 10.0**t))
def test_epsilon_is_the_inverse_of_delta(sigma, delta):
    epsilon = gaussian_epsilon(sigma, delta, 1.0)
    assert epsilon >= 0.0
    found = gaussian_delta(sigma, epsilon, 1.0)
    if epsilon == 0.0:
        assert found <= delta
    else:
        assert math.log(found) == pytest.approx(math.log(delta), rel=1e-9, abs=1e-9)


def test_known_values():
    # mu = 1: epsilon 4.377 at delta 1e-5; and delta(0) is the total variation 2 Phi(mu/2) - 1.
    assert gaussian_epsilon(1.0, 1e-5, 1.0) == pytest.approx(4.377, abs=5e-4)
    assert gaussian_delta(2.0, 0.0, 1.0) == pytest.approx(math.erf(0.25 / math.sqrt(2)), rel=1e-14)
    assert (gaussian_epsilon(1.0, 0.0, 1.0), gaussian_epsilon(1.0, 0.9, 1.0)) == (math.inf, 0.0)


@pytest.mark.parametrize(
    ("sigma", "epsilon", "sensitivity", "delta"),
    [
        (1e-300, 1.0, 1e300, 1.0), (1e300, 1.0, 1e-300, 0.0), (1e300, 0.0, 1e-300, 0.0),
        (1e-300, 1e300, 1e300, 1.0), (1e150, 1e300, 1e300, 0.0), (1e150, 1e299, 1e300, 1.0),
        (1.0, 1e300, 1.0, 0.0), (1e10, 1e-10, 1.0, 0.0),
    ],
)  # fmt: skip
def test_the_ends_of_float64_give_no_overflow(sigma, epsilon, sensitivity, delta):
    assert abs(gaussian_delta(sigma, epsilon, sensitivity) - delta) < 1e-10
    assert gaussian_epsilon(sigma, 0.5, sensitivity) >= 0.0


def test_calibration_at_the_ends():
    assert gaussian_analytic(1e300, 1e-5, 1.0).sigma == pytest.approx(2.0**-0.5 * 1e-150)
    wide = 1.0 / (math.sqrt(2.0 * math.pi) * 1e-5)
    assert gaussian_analytic(1e-300, 1e-5, 1.0).sigma == pytest.approx(wide, rel=1e-9)
    for formula, epsilon in ((gaussian_analytic, 1.0), (gaussian_classical, 0.5)):
        assert formula(epsilon, 5e-324, 1.0).true_delta <= 5e-324


def test_the_logarithm_tells_a_delta_close_to_one_from_one():
    # 1 - delta is 1e-22 here: of a difference from 1 nothing would be left.
    with mp.workdps(90):
        truth = mp.log(true_delta(mp.mpf(1) / 20, 1.0, 1.0))
    assert -1e-20 < truth < 0
    assert error(log_delta(1.0, 20.0), truth) < 1e-12


@pytest.mark.parametrize(
    ("epsilon", "allowed", "true"),
    [(5, True, 1.349e-6), (8, True, 7.97e-6), (8.5, False, 1.044e-5), (10, False, 2.265e-5),
     (50, False, 0.586)],
)  # fmt: skip
def test_the_classical_formula_is_refused_where_its_delta_is_too_large(epsilon, allowed, true):
    sigma = math.sqrt(2.0 * math.log(1.25e5)) / epsilon
    assert float(true_delta(sigma, epsilon, 1.0)) == pytest.approx(true, rel=2e-3)
    if allowed:
        noise = gaussian_classical(epsilon, 1e-5, 1.0)
        assert noise.sigma == pytest.approx(sigma, rel=1e-14)
        assert noise.true_delta == pytest.approx(true, rel=2e-3)
        assert not find_missing(noise.note, "epsilon < 1 is not met", f"{noise.true_delta:.3g}")
        assert noise.note in str(noise)
    else:
        text = r"true delta here is [\d.e-]+, above the declared 1e-05"
        with pytest.raises(ValueError, match=text) as caught:
            gaussian_classical(epsilon, 1e-5, 1.0)
        shown = str(caught.value).split("here is ")[1].split(",")[0]
        assert float(shown) == pytest.approx(true, rel=5e-3)


def test_the_guard_falls_exactly_where_the_deltas_cross():
    def over(epsilon):
        return true_delta(math.sqrt(2.0 * math.log(1.25e5)) / epsilon, epsilon, 1.0) > 1e-5

    low, high = 8.0, 8.5
    while high - low > 1e-9:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if over(middle) else (middle, high)
    assert gaussian_classical(low, 1e-5, 1.0).true_delta <= 1e-5
    with pytest.raises(ValueError, match="small enough for the classical formula"):
        gaussian_classical(high, 1e-5, 1.0)
    assert low == pytest.approx(8.43, abs=0.05)


@given(st.floats(1e-3, 0.999), st.floats(-12.0, -0.1).map(lambda t: 10.0**t))
def test_below_one_the_theorem_holds_and_nothing_is_noted(epsilon, delta):
    noise = gaussian_classical(epsilon, delta, 3.0)
    assert noise.note == ""
    assert noise.true_delta <= delta
    assert noise.sigma > gaussian_analytic(epsilon, delta, 3.0).sigma


def test_the_record_and_its_note_which_starts_at_one():
    notes = [gaussian_classical(one, 1e-5, 1.0).note for one in (math.nextafter(1.0, 0.0), 1.0)]
    assert list(map(bool, notes)) == [False, True]
    noise = gaussian_analytic(1.0, 1e-5, 1.0)
    assert noise == pickle.loads(pickle.dumps(noise)) == gaussian_analytic(1.0, 1e-5, 1.0)
    assert noise != gaussian_analytic(1.0, 2e-5, 1.0)
    assert noise.mechanism == Gaussian(noise.sigma)
    assert str(noise).startswith("sigma 3.73063 for epsilon 1, delta 1e-05")


WRONG = [
    ((0.0, 1e-5, 1.0), "epsilon"), ((1.0, 0.0, 1.0), "delta"), ((1.0, 1.0, 1.0), "delta"),
    ((1.0, 1e-5, 0.0), "sensitivity"),
]  # fmt: skip


@pytest.mark.parametrize("formula", [gaussian_analytic, gaussian_classical])
def test_bad_input_is_refused(formula):
    check_messages(ValueError, [(partial(formula, *row), name, "") for row, name in WRONG])
    check_messages(ValueError, [(partial(formula, 1e-9, 1e-9, 1e300), "", "noise scale ")])
    check_messages(TypeError, [(partial(formula, "1", 1e-5, 1.0), "epsilon", "")])
