"""Closed forms of Renyi divergences against sums and integrals in 700 digits."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from shared_messages import check_messages

from dpcore.divergence import closed_forms as forms

RELATIVE = 1e-12
ORDERS = (1e-6, 0.1, 0.3, 0.5, 0.75, 1 - 1e-9, 1.0, 1 + 1e-9, 1.001, 1.5, 2.0, 7.3, 32.0, 1e4)
"""Exact values of float64, as the references read them."""


@pytest.fixture(autouse=True)
def _digits():
    with mpmath.workdps(700):
        yield


def agree(found, expected, relative=RELATIVE):
    """Every value within a relative error of the reference; inf where that is inf."""
    assert found.shape == (len(expected),)
    for value, true in zip(found.tolist(), expected, strict=True):
        if mpmath.isinf(true) or abs(true) > 1.7e308:
            assert value == np.inf
        else:
            assert abs(mpmath.mpf(value) - true) <= relative * abs(true), (value, true)


def logarithm(a, total):
    """ln(total) / (a - 1), inf where the total is on the infinite side."""
    a = mpmath.mpf(a)
    return mpmath.log(total) / (a - 1)


def near_one(reference):
    """A reference at order 1 from both sides: in 700 digits the error is nothing."""

    def found(a):
        if a != 1.0:
            return reference(mpmath.mpf(a))
        h = mpmath.mpf(10) ** -330
        return (reference(1 - h) + reference(1 + h)) / 2

    return found


def by_hand(reference, orders=ORDERS):
    return [near_one(reference)(a) for a in orders]


def gauss(mu0, s0, mu1, s1):
    """The printed formula, in 700 digits."""
    mu0, s0, mu1, s1 = map(mpmath.mpf, (mu0, s0, mu1, s1))

    def value(a):
        mid = a * s1**2 - (a - 1) * s0**2
        if mid <= 0:
            return mpmath.inf
        scale = mpmath.log(s1 / s0) + mpmath.log(s1**2 / mid) / (2 * (a - 1))
        return scale + a * (mu0 - mu1) ** 2 / (2 * mid)

    return value


def lap(s0, shift, s1):
    """The integral in three pieces, in 700 digits."""
    s0, t, s1 = map(mpmath.mpf, (s0, abs(shift), s1))

    def value(a):
        p, q = a / s0, (a - 1) / s1
        if p <= q:
            return mpmath.inf
        outer = (mpmath.exp(q * t) + mpmath.exp(-p * t)) / (p - q)
        middle = t * mpmath.exp(q * t)
        if p + q != 0:
            middle = (mpmath.exp(q * t) - mpmath.exp(-p * t)) / (p + q)
        return logarithm(a, (2 * s0) ** -a * (2 * s1) ** (a - 1) * (outer + middle))

    return value


def sums(p, q):
    p, q = ([mpmath.mpf(v) / mpmath.fsum(side) for v in side] for side in (p, q))
    both = [(v, w) for v, w in zip(p, q, strict=True) if v > 0 and w > 0]

    def value(a):
        if not both or (a > 1 and any(v > 0 and w == 0 for v, w in zip(p, q, strict=True))):
            return mpmath.inf
        return logarithm(a, mpmath.fsum(v**a * w ** (1 - a) for v, w in both))

    return value


GAUSS = [
    (0.0, 1.0, 1.0, 1.0), (0.5, 1.5, 0.0, 1.0), (0.5, 1.0, 0.0, 1.5),
    (3.0, 1.0, 3.0, 1.0 + 2**-30), (3.0, 1.0 + 2**-30, 3.0, 1.0), (1e-9, 1.0, 0.0, 1.0 + 2**-20),
    (0.0, 1e-8, 1.0, 1e8), (0.0, 1e8, 1.0, 1e-8), (1e200, 1e-200, 0.0, 1e200),
    (0.0, 1e200, 1e180, 1e-200), (1e-200, 1e-200, 0.0, 1e-200), (0.0, 1.0, 1e160, 1.0),
]  # fmt: skip


@pytest.mark.parametrize("case", GAUSS)
def test_normal_laws(case):
    agree(forms.gaussian_renyi(ORDERS, *case), by_hand(gauss(*case)))


def test_normal_laws_next_to_their_pole():
    # a s1^2 = (a - 1) s0^2 at a = 1.5625 exactly for 1.25 against 0.75.
    orders = [1.5625, np.nextafter(1.5625, 1), 1.5625 - 1e-12, np.nextafter(1.5625, 2), 1.56]
    case = (1.0, 1.25, 0.0, 0.75)
    agree(forms.gaussian_renyi(orders, *case), by_hand(gauss(*case), orders))
    infinite = np.isinf(forms.gaussian_renyi(orders, *case))
    assert infinite.tolist() == [True, False, False, True, False]


def test_normal_laws_against_an_integral():
    for a in (0.25, 0.75, 2.0, 3.0):

        def integrand(x, a=a):
            p, q = mpmath.npdf(x, mpmath.mpf("0.5"), 1), mpmath.npdf(x, 0, mpmath.mpf("1.25"))
            return p ** mpmath.mpf(a) * q ** mpmath.mpf(1 - a)

        with mpmath.workdps(25):
            expected = logarithm(a, mpmath.quad(integrand, range(-30, 31, 3)))
        agree(forms.gaussian_renyi([a], 0.5, 1.0, 0.0, 1.25), [expected])


def test_normal_laws_coordinate_by_coordinate():
    cases = [(0.5, 1.0, 0.0, 1.5), (0.0, 1.2, -1.0, 1.0), (2.0, 0.3, 2.0, 0.4)]
    sides = map(list, zip(*cases, strict=True))
    expected = sum(forms.gaussian_renyi(ORDERS, *case) for case in cases)
    assert forms.gaussian_renyi(ORDERS, *sides) == pytest.approx(expected, rel=1e-14)
    same = forms.gaussian_renyi(ORDERS, 0.5, 1.0, [0.0, 0.0], 1.4)
    assert same == pytest.approx(2 * forms.gaussian_renyi(ORDERS, 0.5, 1.0, 0.0, 1.4), rel=1e-14)


def test_normal_laws_with_covariances():
    rng = np.random.default_rng(5)
    roots = [np.eye(4) + 0.1 * rng.normal(size=(4, 4)) for _ in range(2)]
    spread0, spread1 = (root @ root.T for root in roots)
    spread0, spread1 = (spread0 + spread0.T) / 2, (spread1 + spread1.T) / 2
    shift = np.array([0.3, -0.2, 0.0, 0.7])
    for a in (0.2, 0.5, 1.1, 1.3):
        mid = a * spread1 - (a - 1) * spread0
        assert np.linalg.eigvalsh(mid).min() > 0
        logs = [np.linalg.slogdet(m)[1] for m in (mid, spread0, spread1)]
        expected = 0.5 * a * shift @ np.linalg.solve(mid, shift)
        expected -= 0.5 / (a - 1) * (logs[0] - (1 - a) * logs[1] - a * logs[2])
        found = forms.gaussian_renyi(a, shift, spread0, 0.0, spread1)
        assert found == pytest.approx(expected, rel=1e-10)
    assert np.isinf(forms.gaussian_renyi(50.0, shift, 9 * spread1, 0.0, spread1))
    same = forms.gaussian_renyi(ORDERS, shift, spread1, shift, spread1)
    assert same == pytest.approx(0.0, abs=1e-15)
    plain = forms.gaussian_renyi([*ORDERS, np.inf], shift, 1.5, 0.0, [2.0, 2.1, 2.2, 2.3])
    squares = np.diag(np.square([2.0, 2.1, 2.2, 2.3]))
    found = forms.gaussian_renyi([*ORDERS, np.inf], shift, 1.5, 0.0, squares)
    assert found == pytest.approx(plain, rel=1e-9)


LAPLACE = [
    (1.0, 0.5, 1.0), (1.0, -3.0, 1.0), (2.0, 1e-7, 2.0), (1.0, 200.0, 1.0), (1.0, 1.0, 1.5),
    (1.5, 1.0, 1.0), (1.0, 1e-6, 1.0 + 2**-25), (1e-150, 1e-150, 1e150), (1e3, 0.0, 1.0),
    (1e3, 5.0, 1.0), (1.0, 5.0, 1e3), (1e-200, 3e-200, 1e-200), (0.5, 1.0, 1.5), (3.0, 2.0, 1.0),
]  # fmt: skip


@pytest.mark.parametrize("case", LAPLACE)
def test_laplace_laws(case):
    agree(forms.laplace_renyi(ORDERS, *case), by_hand(lap(*case)))


def test_laplace_laws_against_an_integral():
    s0, s1, t = mpmath.mpf("1.2"), mpmath.mpf(1), mpmath.mpf("0.8")
    for a in (0.3, 1.5, 4.0):

        def integrand(x, a=a):
            p, q = (mpmath.exp(-abs(x - m) / s) / (2 * s) for m, s in ((0, s0), (t, s1)))
            return p ** mpmath.mpf(a) * q ** mpmath.mpf(1 - a)

        with mpmath.workdps(25):
            total = mpmath.quad(integrand, [-mpmath.inf, -10, 0, t, 10, mpmath.inf])
        agree(forms.laplace_renyi([a], 1.2, 0.8, 1.0), [logarithm(a, total)], 1e-11)
    both = forms.laplace_renyi(ORDERS, 1.0, 0.5) + forms.laplace_renyi(ORDERS, 2.0, 1.5)
    assert forms.laplace_renyi(ORDERS, [1.0, 2.0], [0.5, -1.5]) == pytest.approx(both, rel=1e-14)


@pytest.mark.parametrize(
    "rates", [(1.5, 1.0), (1.0, 1.5), (1.0, 1.0 + 2**-30), (1e-150, 1e150), (1e150, 1e-150)]
)
def test_exponential_laws(rates):
    high, low = (mpmath.mpf(rate) for rate in rates)

    def reference(a):
        mid = a * high - (a - 1) * low
        if mid <= 0:
            return mpmath.inf
        return mpmath.log(high / low) + mpmath.log(high / mid) / (a - 1)

    agree(forms.exponential_renyi(ORDERS, *rates), by_hand(reference))


DISCRETE = [
    ([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]),
    ([0.3, 0.7], [0.3 + 1e-9, 0.7 - 1e-9]),
    ([0.1, 0.2, 0.7], [0.1 + 1e-9, 0.2 + 1e-9, 0.7 - 2e-9]),
    ([0.3, 0.3, 0.4 + 4e-10], [0.3, 0.3 + 2e-10, 0.4 - 9e-10]),
    ([0.5, 0.5, 0.0], [0.25, 0.25, 0.5]),
    ([0.5, 0.5, 0.0], [0.5, 0.0, 0.5]),
    ([1.0, 0.0], [0.0, 1.0]),
    ([1e-12, 1.0 - 1e-12], [1e-3, 0.999]),
    ([0.999, 1e-3], [1.0 - 1e-12, 1e-12]),
    ([1e-300, 1.0], [1.0, 1e-300]),
    ([0.1] * 10, [0.05] * 5 + [0.15] * 5),
]


@pytest.mark.parametrize(("p", "q"), DISCRETE)
def test_discrete_laws(p, q):
    if any(v > 0 and w == 0 for v, w in zip(p, q, strict=True)):
        assert np.isinf(forms.discrete_renyi(ORDERS, p, q)[np.array(ORDERS) >= 1.0]).all()
        below = [a for a in ORDERS if a < 1.0]
        agree(forms.discrete_renyi(below, p, q), [sums(p, q)(mpmath.mpf(a)) for a in below])
    else:
        agree(forms.discrete_renyi(ORDERS, p, q), by_hand(sums(p, q)))
    assert (forms.discrete_renyi(ORDERS, p, p) == 0.0).all()


@pytest.mark.parametrize(
    "weights", [(0.3, 0.1), (0.1, 0.3), (1e-9, 2e-9), (0.999, 0.9), (0.5, 0.5), (0.0, 0.4)]
)
def test_mixtures_with_an_atom(weights):
    w0, w1 = (mpmath.mpf(w) for w in weights)
    rest = gauss(0.5, 1.0, 0.0, 1.25)

    def reference(a):
        total = (1 - w0) ** a * (1 - w1) ** (1 - a) * mpmath.exp((a - 1) * rest(a))
        return logarithm(a, total + (w0**a * w1 ** (1 - a) if w0 else 0))

    def curve(orders):
        return forms.gaussian_renyi(orders, 0.5, 1.0, 0.0, 1.25)

    expected = by_hand(reference)
    agree(forms.mixture_with_atom(ORDERS, *weights, curve), expected)
    agree(forms.mixture_with_atom(ORDERS, *weights, curve(np.array(ORDERS))), expected)


def test_mixtures_at_their_ends():
    orders = [0.25, 0.5, 1.0, 2.0, np.inf]
    rest = np.array([0.1, 0.2, 0.4, 0.8, np.inf])
    assert forms.mixture_with_atom(orders, 0.0, 0.0, rest) == pytest.approx(rest, rel=1e-14)
    assert forms.mixture_with_atom(orders, 1.0, 1.0, rest).tolist() == [0.0] * 5
    infinite = np.isinf(forms.mixture_with_atom(orders, 0.2, 0.0, rest))
    assert infinite.tolist() == [False, False, True, True, True]
    assert np.isinf(forms.mixture_with_atom(orders, 1.0, 0.0, 0.0)).all()
    infinite = forms.mixture_with_atom([0.25, 0.5, 2.0], 0.5, 0.5, np.inf)
    assert infinite.tolist() == pytest.approx([np.log(2) / 0.75, 2 * np.log(2), np.inf])


@pytest.mark.parametrize("epsilon", [1e-8, 0.1, 1.0, 30.0, 1000.0, 1e200])
@pytest.mark.parametrize("categories", [2, 3, 1000])
def test_randomised_response(epsilon, categories):
    e, k = mpmath.mpf(epsilon), categories
    orders = ORDERS if epsilon < 1e100 else [a for a in ORDERS if 0.5 < a < 1 - 1e-3 or a > 1.1]

    def reference(a):
        # ln(e^{ae} + e^{(1-a)e} + k - 2) - ln(e^e + k - 1), the largest exponent taken out.
        top = e * max(a, 1 - a)
        parts = mpmath.exp(a * e - top) + mpmath.exp((1 - a) * e - top)
        total = top + mpmath.log(parts + (k - 2) * mpmath.exp(-top))
        return (total - e - mpmath.log1p((k - 1) * mpmath.exp(-e))) / (a - 1)

    agree(forms.randomised_response(orders, epsilon, k), by_hand(reference, orders))
    assert forms.randomised_response(np.inf, epsilon, k) == epsilon


def test_mechanisms():
    agree(forms.gaussian_mechanism(ORDERS, 3.0, 2.0), [mpmath.mpf(a) * 9 / 8 for a in ORDERS])
    agree(forms.laplace_mechanism(ORDERS, 3.0, 2.0), by_hand(lap(2.0, 3.0, 2.0)))
    assert np.isinf(forms.gaussian_mechanism(np.inf, 1.0, 1.0))
    # A distance in one entry costs most, as the docstring says.
    for a in (1.0, 1.5, 8.0):
        split = forms.laplace_renyi(a, 1.0, [0.7, 0.8])
        assert split < forms.laplace_mechanism(a, 1.5, 1.0)


def test_order_infinity_is_the_limit():
    far = 1e9
    for found in (
        lambda a: forms.gaussian_renyi(a, 1.0, 1.0, 0.0, 1.5),
        lambda a: forms.laplace_renyi(a, 1.0, 2.0, 1.5),
        lambda a: forms.laplace_renyi(a, 1.0, 2.0),
        lambda a: forms.exponential_renyi(a, 2.0, 1.0),
        lambda a: forms.discrete_renyi(a, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]),
        lambda a: forms.mixture_with_atom(a, 0.3, 0.1, 0.5),
        lambda a: forms.randomised_response(a, 1.0, 4),
    ):
        assert float(found(np.inf)) == pytest.approx(float(found(far)), rel=1e-6)
    for infinite in (
        forms.gaussian_renyi(np.inf, 0.0, 1.5, 0.0, 1.0),
        forms.gaussian_renyi(np.inf, 1.0, 1.0, 0.0, 1.0),
        forms.laplace_renyi(np.inf, 1.5, 0.0, 1.0),
        forms.exponential_renyi(np.inf, 1.0, 2.0),
    ):
        assert np.isinf(infinite)
    assert forms.gaussian_renyi(np.inf, 1.0, 1.0, 1.0, 1.0) == 0.0


def test_shapes_and_order():
    grid = np.array([[0.5, 1.0], [2.0, np.inf]])
    for found in (
        forms.gaussian_renyi(grid, 0.0, 1.0, 1.0, 1.5),
        forms.laplace_renyi(grid, 1.0, 1.0),
        forms.exponential_renyi(grid, 2.0, 1.0),
        forms.discrete_renyi(grid, [0.5, 0.5], [0.2, 0.8]),
        forms.mixture_with_atom(grid, 0.3, 0.1, 0.0),
        forms.randomised_response(grid, 1.0),
    ):
        assert (found.shape, found.dtype) == ((2, 2), np.float64)
        assert (np.diff(found.ravel()) >= 0.0).all()
    assert forms.laplace_renyi(2, 1.0, 1.0).shape == ()


VALUE_ERRORS = [
    (lambda: forms.laplace_renyi([0.0], 1.0, 1.0), "alphas", "an array of orders"),
    (lambda: forms.laplace_renyi([np.nan], 1.0, 1.0), "alphas", "an array of orders above 0"),
    (lambda: forms.laplace_renyi([2.0], -1.0, 1.0), "scale", "above 0"),
    (lambda: forms.laplace_renyi([2.0], [1.0, 1.0], [1.0] * 3), "scale", "a number"),
    (lambda: forms.gaussian_renyi([2.0], [0, 0], 1, [0] * 3, 1), "mean0",
     "a number or of length 3"),
    (lambda: forms.gaussian_renyi(2.0, 0, [[1, 2], [2, 1]], 0, 1), "sigma0", "a symmetric"),
    (lambda: forms.gaussian_renyi(2.0, 0, 1, 0, [[1, 2], [3, 9]]), "sigma1", "a symmetric"),
    (lambda: forms.gaussian_renyi(2.0, [0] * 3, 1, 0, np.eye(2)), "sigma1", "a number"),
    (lambda: forms.exponential_renyi([2.0], 0.0, 1.0), "rate0", "a finite number above 0"),
    (lambda: forms.discrete_renyi([2.0], [0.5, 0.6], [0.5, 0.5]), "p", "probabilities"),
    (lambda: forms.discrete_renyi([2.0], [0.5, 0.5], [1.5, -0.5]), "q", "probabilities"),
    (lambda: forms.discrete_renyi([2.0], [0.5, 0.5], [1.0]), "q", "of length 2"),
    (lambda: forms.mixture_with_atom([2.0], 1.5, 0.1, 0.0), "weight0", "a finite"),
    (lambda: forms.mixture_with_atom([2.0], 0.5, 0.1, -1.0), "rest", "a number, an array"),
    (lambda: forms.mixture_with_atom([2.0], 0.5, 0.1, [1.0] * 2), "rest", "a number, an array"),
    (lambda: forms.randomised_response([2.0], 1.0, 1), "categories", "an integer at least 2"),
    (lambda: forms.randomised_response([2.0], 0.0), "epsilon", "a finite number above 0"),
    (lambda: forms.gaussian_mechanism([2.0], 0.0, 1.0), "sensitivity", "a finite number above 0"),
]  # fmt: skip
TYPE_ERRORS = [
    (lambda: forms.laplace_renyi(["a"], 1.0, 1.0), "alphas", "an array of orders above 0"),
    (lambda: forms.laplace_renyi(True, 1.0, 1.0), "alphas", "an array of orders above 0"),
    (lambda: forms.mixture_with_atom([2.0], 0.5, 0.1, "a"), "rest", "a number, an array"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
