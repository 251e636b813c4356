"""Claims as curves: conversions against closed forms and other packages, rounding, bad input."""

import math
import pickle
from functools import partial

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared_examples import examples
from shared_extras import needs
from shared_messages import check_messages

from dpcore import claims
from dpcore.bounds import gdp_epsilon
from dpcore.claims import GDP, RDP, ZCDP, TradeOff
from dpcore.claims.trade_off import choose_refutable_pair, polyline_lower_bound
from dpcore.records import Counts

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
    slopes = 0.01, 0.5, 300.0, 1e4
    for levels in ([2.0 for _ in ORDERS], *([a * slope for a in ORDERS] for slope in slopes)):
        claim = RDP(ORDERS, levels)
        for epsilon in (0.1, 0.5, 1.0, 3.0, 6.0):
            theirs = float(module.compute_delta(ORDERS, levels, epsilon)[0])
            assert claim.delta(epsilon) <= theirs * (1.0 + 1e-9)
        for delta in (0.01, 1e-5, 1e-9):
            theirs = float(module.compute_epsilon(ORDERS, levels, delta)[0])
            assert claim.epsilon(delta) <= theirs * (1.0 + 1e-9)


@pytest.mark.extras
@pytest.mark.parametrize(
    ("noise", "rate", "steps"),
    [(0.3, 0.001, 1), (0.3, 1.0, 1000), (0.5, 0.01, 100), (1.0, 0.02, 1000), (1.0, 0.001, 10_000),
     (2.0, 0.1, 1000), (5.0, 1.0, 100), (10.0, 1.0, 1), (10.0, 0.5, 10_000)],
)  # fmt: skip
def test_no_claim_of_a_training_is_below_its_privacy_loss_distribution(noise, rate, steps):
    module = needs("dp_accounting.pld.privacy_loss_distribution")
    accountant = needs("opacus.accountants").RDPAccountant()
    accountant.history.append((noise, rate, steps))
    # Rounded down: the losses that the training has at least.
    losses = module.from_gaussian_mechanism(
        noise,
        sampling_prob=rate,
        pessimistic_estimate=False,
        use_connect_dots=False,
        value_discretization_interval=1e-3,
    ).self_compose(steps)
    claim = claims.of(accountant)
    for delta in (1e-12, 1e-9, 1e-5, 1e-3, 0.1):
        assert claim.epsilon(delta) >= losses.get_epsilon_for_delta(delta)


@pytest.mark.extras
def test_losses_beyond_the_exponents_of_float64_are_read():
    module = needs("dp_accounting.pld.privacy_loss_distribution")
    losses = module.from_gaussian_mechanism(0.02, value_discretization_interval=0.05)
    claim = claims.of(losses)
    for delta in (1e-9, 1e-5, 0.1):
        theirs = losses.get_epsilon_for_delta(delta)
        assert theirs <= claim.epsilon(delta) <= theirs + 10.0
    assert claim.delta(700.0) == 1.0


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
    large = claims.of(OpenDP(dp.m.make_laplace(*space, scale=0.001), d_in=1.0))
    assert large.epsilon(0.0) == pytest.approx(1000.0)
    profile = claims.of(OpenDP(dp.c.make_zCDP_to_approxDP(gaussian), d_in=1.0))
    assert profile.delta(1.0) >= GDP(0.5).delta(1.0)
    with pytest.raises(ValueError, match="held must be a measurement with d_in"):
        claims.of(OpenDP(gaussian))


def test_the_largest_refuted_parameter_is_found():
    assert GDP(1.0).largest(lambda claim: claim.mu < 2.5) == pytest.approx(2.5)
    assert ZCDP(1.0).largest(lambda claim: claim.rho < 1e-4) == pytest.approx(1e-4)
    assert ZCDP(1.0).largest(lambda claim: False) == pytest.approx(0.0, abs=1e-12)


# What a claim implies is never below what a mechanism that keeps it loses, at any magnitude.


def gaussian_delta(mu, epsilon):
    """The profile of Gaussian noise by complementary error functions of 100 digits."""
    with mp.workdps(100):
        mu, epsilon = mp.mpf(mu), mp.mpf(epsilon)
        upper, lower = (mp.erfc((epsilon / mu + s * mu / 2) / mp.sqrt(2)) / 2 for s in (-1, 1))
        return upper - mp.exp(epsilon) * lower


def response_delta(level, epsilon):
    """The profile of randomised response of an epsilon."""
    with mp.workdps(100):
        gap = 1 - mp.exp(mp.mpf(epsilon) - mp.mpf(level))
        return max(mp.mpf(0), gap / (1 + mp.exp(-mp.mpf(level))))


def response_renyi(level, order):
    """The Renyi divergence of randomised response, rounded up."""
    with mp.workdps(100):
        level, order = mp.mpf(level), mp.mpf(order)
        # Both outcomes by their ratio to the likelier one.
        total = mp.log1p(mp.exp(level * (1 - 2 * order))) - mp.log1p(mp.exp(-level))
        return math.nextafter(float(level + total / (order - 1)), math.inf)


def response_rho(level):
    """The least rho of randomised response: its KL divergence, rounded up."""
    return level * math.tanh(level / 2.0) * (1.0 + 1e-12)


def relax(claim, epsilon=None, delta=None):
    """Delta at an epsilon, or epsilon at a delta, of Canonne, Kamath and Steinke (2020)."""
    with mp.workdps(50):
        bounds = []
        for order, level in zip(*map(np.ndarray.tolist, claim.at_orders()), strict=True):
            order = mp.mpf(order)
            shift = level + mp.log(1 - 1 / order)
            if delta is None:
                bounds.append(mp.exp((order - 1) * (shift - epsilon)) / order)
            else:
                bounds.append(shift - (mp.log(delta) + mp.log(order)) / (order - 1))
        return min(1.0, float(min(bounds))) if delta is None else max(0.0, float(min(bounds)))


def kept_by_gaussian(mu):
    rho = math.nextafter(mu**2 / 2, math.inf)
    epsilons = [mu * (mu / 2 + score) for score in (0.0, 2.0, 4.0)]
    deltas = [math.nextafter(float(gaussian_delta(mu, epsilon)), 1.0) for epsilon in epsilons]
    renyi_claims = ZCDP(rho), RDP(ORDERS, [math.nextafter(rho * a, math.inf) for a in ORDERS])
    return *renyi_claims, GDP(mu), TradeOff(epsilons=epsilons, deltas=deltas)


def kept_by_response(level):
    exact = RDP(ORDERS, [response_renyi(level, order) for order in ORDERS])
    pure = RDP([2.0, 4.0, 8.0], [level] * 3), TradeOff(epsilons=[level], deltas=[0.0])
    return ZCDP(response_rho(level)), exact, *pure


MAGNITUDES = st.floats(-6.0, 6.0).map(lambda power: 10.0**power)
KEPT = st.one_of(
    MAGNITUDES.map(
        lambda mu: (kept_by_gaussian(mu), partial(gaussian_delta, mu), mu * (mu / 2.0 + 9.0))
    ),
    MAGNITUDES.map(lambda level: (kept_by_response(level), partial(response_delta, level), level)),
)
"""Claims that a mechanism keeps, its profile, and an epsilon beyond which it is nearly 0."""


def solve_profile(profile, high, delta):
    """The largest epsilon after 60 halvings at which a falling profile exceeds delta."""
    low = 0.0
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if profile(middle) > delta else (low, middle)
    return low


@examples(8)
@given(KEPT, st.floats(-15.0, math.log10(0.5)))
def test_no_conversion_is_below_the_loss_of_a_mechanism_that_keeps_the_claim(kept, power):
    kept_claims, profile, highest = kept
    delta = 10.0**power
    exact = solve_profile(profile, highest, delta)
    for claim in kept_claims:
        epsilon, implied = claim.epsilon(delta), claim.delta(exact)
        assert epsilon >= exact
        assert implied >= profile(exact)
        if isinstance(claim, (ZCDP, RDP)):
            bounds = relax(claim, delta=delta), relax(claim, epsilon=exact)
            assert epsilon <= bounds[0] * (1.0 + 1e-9)
            assert implied <= bounds[1] * (1.0 + 1e-9)


@examples(8)
@given(MAGNITUDES, st.floats(-8.0, 8.0), st.booleans())
def test_no_trade_off_is_above_that_of_a_mechanism_that_keeps_the_claim(mu, score, response):
    kept_claims = kept_by_response(mu) if response else kept_by_gaussian(mu)
    with mp.workdps(100):
        if response:
            # At its own rates.
            error = least = 1 / (1 + mp.exp(mp.mpf(mu)))
        else:
            error, least = mp.ncdf(-mp.mpf(score)), mp.ncdf(mp.mpf(score) - mp.mpf(mu))
        # Rounded to where the exact curve is lower.
        error, power = math.nextafter(float(error), 1.0), math.nextafter(float(1 - least), 0.0)
    for claim in kept_claims:
        assert claim.trade_off(error) <= least
        assert claim.least_type_one(power) <= error


@pytest.mark.parametrize("level", [60.0, 101.0, 300.0])
def test_the_search_of_the_edge_is_safe_without_its_margin(level, monkeypatch):
    monkeypatch.setattr("dpcore.claims.renyi._ROOT_MARGIN", 0.0)
    # The edge has a corner at the rates of randomised response, which this claim meets.
    claim, delta = RDP([2.0, 4.0, 8.0], [level] * 3), response_delta(level, level - 1.0)
    assert delta <= claim.delta(level - 1.0) <= delta * (1.0 + 1e-6)
    assert level - 1.0 <= claim.epsilon(float(delta) * (1.0 - 1e-15)) <= level - 1.0 + 1e-6


# Right values of ZCDP of an earlier search: rho, delta, its epsilon, an epsilon, its delta.
RIGHT_VALUES = [
    (1e-06, 1e-15, 0.010003489438285896, 0.01, 1.0180649553655198e-15),
    (1e-06, 1e-05, 0.0034474639111049593, 0.003447, 1.0009020370064671e-05),
    (0.01, 1e-15, 1.0968195943515324, 1.097, 9.901851962015037e-16),
    (0.01, 1e-05, 0.5457252171510452, 0.5457, 1.0007154708293276e-05),
    (0.5, 1e-15, 8.424836331932744, 8.425, 9.986806714585215e-16),
    (0.5, 1e-05, 4.728471287784098, 4.728, 1.00210363590423e-05),
    (0.5, 0.1, 1.6059345876991225, 1.606, 0.09999026559072285),
    (10, 1e-15, 46.1700219028452, 46.17, 1.0000403518619106e-15),
    (10, 1e-05, 30.110865589554056, 30.11, 1.0009007611186728e-05),
    (10, 0.1, 17.615642329970267, 17.62, 0.09980983767083802),
    (50, 1e-15, 131.59196544766627, 131.6, 9.934022593197705e-16),
    (50, 1e-05, 96.036503619916, 96.04, 9.983401469585103e-06),
    (50, 0.1, 68.80209701580927, 68.8, 0.10004272913394732),
    (200, 1e-15, 364.16292600855485, 364.2, 9.848435537282393e-16),
    (200, 1e-05, 293.4275424533418, 293.4, 1.0065645639975032e-05),
    (200, 0.1, 239.62645045043985, 239.6, 0.1002755653882408),
]


@pytest.mark.parametrize(("rho", "delta", "epsilon", "other", "its_delta"), RIGHT_VALUES)
def test_right_values_stay_within_a_millionth(rho, delta, epsilon, other, its_delta):
    assert ZCDP(rho).epsilon(delta) == pytest.approx(epsilon, rel=1e-6)
    assert ZCDP(rho).delta(other) == pytest.approx(its_delta, rel=1e-6)


SMALL_NOISE = RDP(ORDERS, [500.0 * order for order in ORDERS])
"""Ten steps of Gaussian noise of sigma .1."""


@pytest.mark.parametrize(
    ("value", "least"),
    [
        (ZCDP(300.0).epsilon(1e-5), 403.5),
        (ZCDP(1000.0).epsilon(1e-5), 1189.8),
        (ZCDP(500.0).delta(500.0), 0.487),
        (SMALL_NOISE.epsilon(1e-5), 633.9),
        (RDP([2.0, 4.0, 8.0], [1000.0] * 3).delta(500.0), 1.0),
        (RDP([2.0, 4.0, 8.0], [100.0] * 3).delta(99.0), -math.expm1(-1.0)),
    ],
)
def test_large_claims_imply_no_less_than_a_mechanism_that_keeps_them_loses(value, least):
    assert least <= value <= least * 2.02


@pytest.mark.parametrize(
    "claim",
    [ZCDP(1e3), ZCDP(1e300), GDP(1e3), GDP(1e200), RDP([2.0, 8.0], [1000.0] * 2),
     TradeOff(epsilons=[800.0], deltas=[0.1]), TradeOff(epsilons=[1e6], deltas=[0.0])],
    ids=str,
)  # fmt: skip
def test_a_claim_without_tangents_is_stated_by_an_epsilon_beyond_them(claim):
    epsilons, deltas = claim.tangents()
    assert (epsilons.size, deltas.size) == (0, 0)
    epsilon, delta = choose_refutable_pair(claim, Counts(700, 1000, 100, 1000))
    assert 700.0 < epsilon < math.inf
    assert 0.0 < delta < 1.0
    shown, nothing = claim.excess(np.array([0.7, 0.0]), np.array([0.1, 0.0])).tolist()
    assert shown == pytest.approx(1.806, abs=1e-3)
    assert nothing < 0.0
    assert claim.least_type_one(0.999) == claim.trade_off(0.001) == 0.0


def test_no_line_is_drawn_through_too_few_points_of_the_edge():
    # Randomised response of 606 has this power at a type I error of e^-606.
    assert RDP([2.0, 4.0, 8.0], [606.0] * 3).least_type_one(1.0 - 1e-11) <= math.exp(-606.0)
    assert RDP([2.0, 4.0, 8.0], [30.0] * 3).least_type_one(0.9) >= 0.1 * math.exp(-30.0)


def test_tangents_of_a_large_claim_have_deltas_below_1():
    for claim in (GDP(25.0), ZCDP(300.0), ZCDP(500.0), RDP(ORDERS, [30.0 * a for a in ORDERS])):
        assert 0 < claim.tangents()[0].size < 96
        epsilon, delta = choose_refutable_pair(claim, Counts(10, 1000, 10, 1000))
        assert (delta, delta < 1.0) == (claim.delta(epsilon), True)


def test_a_table_is_read_beyond_the_exponents_of_float64():
    claim = TradeOff(epsilons=[1.0, 800.0], deltas=[0.1, 1e-5])
    assert claim.delta([1.0, 700.0, 800.0, math.inf]) == pytest.approx([0.1, 0.1, 1e-5, 1e-5])
    # Between two tangents delta is linear in e^epsilon.
    assert claim.delta(799.0) == pytest.approx(0.1 + (1e-5 - 0.1) / math.e)
    assert claim.epsilon(1e-5) == pytest.approx(800.0)
    assert claim.trade_off(0.0) == pytest.approx(0.9)


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
    corners, heights = polyline_lower_bound(x, x**2)
    assert (corners[0], corners[-1]) == (0.0, 1.0)
    # The first and the last corner lie on the chords through the next two points.
    assert heights[0] == pytest.approx(x[1] ** 2 - (x[1] + x[2]) * x[1])
    assert heights[-1] == pytest.approx(x[-2] ** 2 + (x[-2] + x[-3]) * (1.0 - x[-2]))
    assert (np.interp(x, corners, heights) <= x**2 + 1e-15).all()
    fine = np.linspace(0.0, 1.0, 1001)
    assert (fine**2 - np.interp(fine, corners, heights) < 0.04).all()
