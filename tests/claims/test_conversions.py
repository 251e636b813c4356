"""Claims as curves: conversions against closed forms and other packages, rounding, bad input."""

import math
import pickle
from functools import partial

import numpy as np
import pytest
from shared_extras import needs
from shared_messages import check_messages

from dpcore import claims
from dpcore.bounds import gdp_epsilon
from dpcore.claims import GDP, RDP, ZCDP, TradeOff
from dpcore.claims.trade_off import outer_corners

ORDERS = [1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 32.0, 64.0, 128.0]
ERRORS = np.concatenate([np.geomspace(1e-12, 0.4, 40), np.linspace(0.41, 0.999, 20)])


def gaussian_errors(errors, mu):
    from scipy.special import ndtr, ndtri

    return ndtr(-ndtri(errors) - mu)


def renyi(p, q, order):
    """The Renyi divergence of two coins, in mpmath."""
    import mpmath

    p, q = mpmath.mpf(p), mpmath.mpf(q)
    total = p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)
    return float(mpmath.log(total) / (order - 1))


def all_claims():
    named = GDP(1.0), GDP(4.0), ZCDP(0.5), ZCDP(0.01), RDP(ORDERS, [a / 2 for a in ORDERS])
    function = TradeOff(lambda a: max(0.0, 1.0 - 2.0 * a, (1.0 - a) / 2.0))
    return [*named, function, TradeOff(epsilons=[0.5, 2.0], deltas=[0.1, 1e-6])]


@pytest.mark.parametrize("claim", all_claims(), ids=str)
def test_a_curve_is_convex_and_its_own_inverse_and_delta_are_its_tangents(claim):
    errors = np.linspace(0.0, 1.0, 301)
    curve = claim.trade_off(errors)
    assert (curve[1:-1] <= (curve[:-2] + curve[2:]) / 2.0 + 1e-12).all()
    errors = np.unique(np.concatenate([errors, np.geomspace(1e-9, 0.1, 400)]))
    curve = claim.trade_off(errors)
    assert (curve <= 1.0 - errors).all()
    assert (np.diff(curve) <= 1e-12).all()
    inside = (curve > 1e-9) & (errors > 1e-9)
    assert claim.trade_off(curve[inside]) == pytest.approx(errors[inside], abs=1e-9)
    for epsilon in (0.0, 0.3, 1.0, 2.5):
        delta = claim.delta(epsilon)
        conjugate = (1.0 - curve - math.exp(epsilon) * errors).max()
        assert conjugate - 1e-12 <= delta <= conjugate + 1e-3
        if 1e-9 < delta < claim.delta(0.0) and claim.delta(epsilon + 0.01) < delta:
            assert claim.epsilon(delta) == pytest.approx(epsilon, abs=1e-6)
    for power in (0.001, 0.2, 0.7, 0.99):
        error = float(claim.trade_off(1.0 - power))
        assert 0.99 * error - 1e-12 <= claim.least_type_one(power) <= error + 1e-12


@pytest.mark.parametrize("claim", all_claims(), ids=str)
def test_a_claim_is_pickled_and_compared_and_its_repr_names_the_conversion(claim):
    again = pickle.loads(pickle.dumps(claim))
    assert (again, hash(again)) == (claim, hash(claim))
    assert claim.conversion in repr(claim)
    assert claim.in_words() in repr(claim)


def test_gaussian_curves_are_exact():
    for mu in (0.1, 1.0, 3.0, 20.0):
        claim, exact = GDP(mu), gaussian_errors(ERRORS, mu)
        assert (claim.trade_off(ERRORS) <= exact).all()
        assert claim.trade_off(ERRORS) == pytest.approx(exact, rel=1e-12)
        assert claim.epsilon(1e-6) == pytest.approx(gdp_epsilon(mu, 1e-6), rel=1e-9)
    assert (GDP(1.0).epsilon(0.0), GDP(1.0).delta(math.inf)) == (math.inf, 0.0)


@pytest.mark.parametrize("claim", [ZCDP(0.5), RDP(ORDERS, [0.1 * a for a in ORDERS])], ids=str)
def test_the_edge_of_the_joint_range_breaks_one_order_and_what_is_below_it_none(claim):
    pytest.importorskip("mpmath")
    orders, levels = claim.at_orders()
    for q in (1e-9, 0.01, 0.3, 0.7):
        p = 1.0 - float(claim.trade_off(q))
        for shift, breaks in ((1e-6, True), (-1e-6, False)):
            rate = min(1.0 - 1e-12, p * (1.0 + shift) if p < 0.5 else 1.0 - (1.0 - p) * (1 - shift))
            found = [
                max(renyi(rate, q, a), renyi(q, rate, a)) > level
                for a, level in zip(orders.tolist(), levels.tolist(), strict=True)
            ]
            assert any(found) is breaks


def test_zcdp_is_not_read_as_gaussian():
    rate = math.e / (1.0 + math.e)
    # Randomised response of epsilon 1 is .5-zCDP, but needs mu = 1.23.
    assert ZCDP(0.5).trade_off(1.0 - rate) <= 1.0 - rate < GDP(1.0).trade_off(1.0 - rate)
    assert GDP(1.24).trade_off(1.0 - rate) <= 1.0 - rate < GDP(1.22).trade_off(1.0 - rate)
    # The Gaussian mechanism itself keeps both.
    for epsilon in (0.0, 0.5, 2.0, 5.0):
        assert ZCDP(0.5).delta(epsilon) > GDP(1.0).delta(epsilon)


def test_no_delta_is_below_that_of_the_gaussian_which_keeps_the_claim():
    for mu in (0.3, 1.0, 3.0):
        exact = GDP(mu)
        for claim in (ZCDP(mu**2 / 2), RDP(ORDERS, [mu**2 / 2 * a for a in ORDERS])):
            for epsilon in (0.0, 0.1, 1.0, 4.0, 12.0):
                assert claim.delta(epsilon) >= exact.delta(epsilon) * (1.0 - 1e-9)
            assert (claim.trade_off(ERRORS) <= gaussian_errors(ERRORS, mu)).all()


@pytest.mark.extras
def test_no_delta_exceeds_that_of_dp_accounting():
    module = needs("dp_accounting.rdp.rdp_privacy_accountant")
    for levels in ([a / 2 for a in ORDERS], [0.01 * a for a in ORDERS], [2.0 for _ in ORDERS]):
        claim = RDP(ORDERS, levels)
        for epsilon in (0.1, 0.5, 1.0, 3.0, 6.0):
            theirs = float(module.compute_delta(ORDERS, levels, epsilon)[0])
            assert claim.delta(epsilon) <= theirs * (1.0 + 1e-9)
        for delta in (0.01, 1e-5, 1e-9):
            theirs = float(module.compute_epsilon(ORDERS, levels, delta)[0])
            assert claim.epsilon(delta) <= theirs * (1.0 + 1e-9)


@pytest.mark.extras
def test_a_privacy_loss_distribution_is_read_by_its_methods():
    module = needs("dp_accounting.pld.privacy_loss_distribution")
    losses = module.from_laplace_mechanism(1.0)
    claim = claims.of(losses)
    for epsilon in (0.0, 0.2, 0.5, 0.9):
        theirs = losses.get_delta_for_epsilon(epsilon)
        assert theirs * (1.0 - 1e-9) <= claim.delta(epsilon) <= theirs + 1e-5
    assert claim.epsilon(1e-6) == pytest.approx(1.0, abs=1e-3)
    assert "privacy loss distribution" in str(claim)


class Losses:
    """What a package would hold whose distribution may be infinite: randomised response."""

    def get_delta_for_epsilon(self, epsilon):
        return np.maximum(0.01, 0.01 + 0.99 * (0.75 - 0.25 * np.exp(np.minimum(epsilon, 700.0))))

    def get_epsilon_for_delta(self, delta):
        return math.log((0.75 - (delta - 0.01) / 0.99) / 0.25) if delta >= 0.01 else math.inf


def test_losses_that_are_infinite_are_kept_as_such():
    claim = claims.of(Losses())
    assert (claim.delta(50.0), claim.epsilon(0.001)) == (pytest.approx(0.01, rel=1e-5), math.inf)
    assert claim.epsilon(0.0101) == pytest.approx(math.log(3.0), abs=1e-3)


def test_a_function_becomes_a_table_that_is_nowhere_above_it():
    claim = TradeOff(lambda a: float(gaussian_errors(a, 1.0)))
    errors = np.linspace(0.0, 1.0, 1777)
    curve, exact = claim.trade_off(errors), gaussian_errors(errors, 1.0)
    assert (curve <= exact).all()
    assert curve == pytest.approx(exact, abs=2e-5)
    for epsilon in (0.0, 0.5, 2.0, 5.0):
        assert 0.0 <= claim.delta(epsilon) - GDP(1.0).delta(epsilon) <= 1e-5
    assert "<lambda>" in str(claim)


def test_a_function_that_is_not_its_own_inverse_stands_for_the_larger_of_both():
    claim = TradeOff(lambda a: max(0.0, 1.0 - 4.0 * a))
    errors = np.array([0.0, 0.1, 0.2, 0.25, 0.5, 1.0])
    # The inverse is above 0 wherever the function is 0.
    larger = np.maximum(1.0 - 4.0 * errors, (1.0 - errors) / 4.0)
    assert claim.trade_off(errors) == pytest.approx(larger, abs=1e-6)


def test_pairs_of_epsilon_and_delta_hold_together():
    claim = TradeOff(epsilons=[math.log(2.0)], deltas=[0.1])
    assert claim.trade_off([0.0, 0.2, 0.9, 1.0]) == pytest.approx([0.9, 0.5, 0.0, 0.0])
    assert (claim.epsilon(0.1), claim.epsilon(0.09)) == (pytest.approx(math.log(2.0)), math.inf)
    # At p + q = 1 the pairs ask for (1 - .1)/3 on either side, so that delta(0) is 1 - .6.
    assert claim.delta(0.0) == pytest.approx(0.4)


class RDPAccountant:
    """Stands for a class of another package of that name."""

    def get_epsilon(self, delta):
        return 1.0


def test_a_claim_is_its_own_claim():
    assert claims.of(GDP(1.0)) == GDP(1.0)


@pytest.mark.extras
def test_opacus_accountants_are_copied(recwarn):
    accountants = needs("opacus.accountants")
    rdp, prv = accountants.RDPAccountant(), accountants.PRVAccountant()
    with pytest.raises(ValueError, match="held must be an accountant that has counted one step"):
        claims.of(rdp)
    for _ in range(50):
        rdp.step(noise_multiplier=1.0, sample_rate=0.02)
    claim = claims.of(rdp)
    assert isinstance(claim, RDP)
    assert claim.epsilon(1e-5) <= rdp.get_epsilon(1e-5)
    before = claim.epsilon(1e-5)
    rdp.step(noise_multiplier=0.5, sample_rate=1.0)
    assert claim.epsilon(1e-5) == before
    for _ in range(50):
        prv.step(noise_multiplier=1.0, sample_rate=0.02)
    assert prv.get_epsilon(1e-5) <= claims.of(prv).epsilon(1e-5) <= prv.get_epsilon(1e-5) + 0.02
    with pytest.raises(ValueError, match="GaussianAccountant can underestimate epsilon"):
        claims.of(accountants.GaussianAccountant())


@pytest.mark.extras
def test_opendp_measurements_state_their_map():
    dp = needs("opendp.prelude")
    from dpcore.adapters import OpenDP

    dp.enable_features("contrib")
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    gaussian = dp.m.make_gaussian(*space, scale=2.0)
    assert claims.of(OpenDP(gaussian, d_in=1.0)) == ZCDP(0.125)
    laplace = claims.of(OpenDP(dp.m.make_laplace(*space, scale=2.0), d_in=1.0))
    assert laplace.epsilon(0.0) == pytest.approx(0.5)
    profile = claims.of(OpenDP(dp.c.make_zCDP_to_approxDP(gaussian), d_in=1.0))
    assert profile.delta(1.0) >= GDP(0.5).delta(1.0)
    with pytest.raises(ValueError, match="held must be a measurement with d_in"):
        claims.of(OpenDP(gaussian))


def test_the_largest_refuted_parameter_is_found():
    assert GDP(1.0).largest(lambda claim: claim.mu < 2.5) == pytest.approx(2.5)
    assert ZCDP(1.0).largest(lambda claim: claim.rho < 1e-4) == pytest.approx(1e-4)
    assert ZCDP(1.0).largest(lambda claim: False) == pytest.approx(0.0, abs=1e-12)


# Messages of wrong calls of `dpcore.claims`: the argument, and a word of the remedy.


VALUE_ERRORS = [
    *((partial(kind, value), kind.parameter, "a finite number above 0")
      for kind in (GDP, ZCDP) for value in (0.0, -1.0, math.inf, math.nan)),
    # Claims as curves: conversions against closed forms and other packages, rounding, bad input.
    (lambda: RDP([1.0, 2.0], [1.0, 1.0]), "alphas", "finite and above 1 in every entry"),
    (lambda: RDP([3.0, 2.0], [1.0, 1.0]), "alphas", "in rising order, each given once"),
    (lambda: RDP([2.0, 3.0], [1.0]), "epsilons", "2 numbers, one for each order"),
    (lambda: RDP([2.0, 3.0], [1.0, -1.0]), "epsilons", "at least 0 in every entry"),
    (lambda: RDP([2.0, 3.0], [1.0, math.nan]), "epsilons", "at least 0 in every entry"),
    (lambda: RDP([2.0], [math.inf]), "epsilons", "finite at one order at least"),
    (lambda: RDP([], []), "alphas", "a non-empty row of numbers"),
    (lambda: TradeOff(lambda a: 1.5), "function(0)", "from 0 to 1 - 0"),
    (lambda: TradeOff(lambda a: 1.0 - a**2), "function(1e-12)", "from 0 to 1 - 1e-12"),
    (lambda: TradeOff(lambda a: 1.0 - a if a < 0.3 else 0.5 * (1.0 - a)), "function(0.299253)",
     "as a convex"),
    (lambda: TradeOff(epsilons=[1.0], deltas=[1.0]), "deltas", "at least 0 and below 1"),
    (lambda: GDP(1.0).trade_off(1.5), "alpha", "from 0 to 1 in every entry"),
    (lambda: ZCDP(1.0).delta(-1.0), "epsilon", "from 0 to inf in every entry"),
]  # fmt: skip
TYPE_ERRORS = [
    *((partial(claims.of, other), "held", "an accountant of Opacus")
      for other in (RDPAccountant(), 1.0, None, "gdp")),
    # Claims as curves: conversions against closed forms and other packages, rounding, bad input.
    (lambda: TradeOff(lambda a: "a"), "function(0)", "a number"),
    (lambda: TradeOff(), "function", "given, or epsilons and deltas"),
    (lambda: ZCDP(1.0).epsilon("a"), "delta", "a finite number at least 0 and below 1"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)


def test_the_corners_of_a_parabola_lie_on_its_chords():
    x = np.linspace(0.0, 1.0, 9)
    corners, heights = outer_corners(x, x**2)
    assert (corners[0], corners[-1]) == (0.0, 1.0)
    # The first and the last corner lie on the chords through the next two points.
    assert heights[0] == pytest.approx(x[1] ** 2 - (x[1] + x[2]) * x[1])
    assert heights[-1] == pytest.approx(x[-2] ** 2 + (x[-2] + x[-3]) * (1.0 - x[-2]))
    assert (np.interp(x, corners, heights) <= x**2 + 1e-15).all()
    fine = np.linspace(0.0, 1.0, 1001)
    assert (fine**2 - np.interp(fine, corners, heights) < 0.04).all()
