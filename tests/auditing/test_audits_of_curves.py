"""Verdicts on claims that are curves: who is refuted, how often, and what is certified."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize_scalar
from shared_audits import respond

import dpcore
from dpcore.bounds import delta_lower, mu_lower
from dpcore.bounds.canaries import one_run_refutes
from dpcore.claims import GDP, RDP, ZCDP, TradeOff
from dpcore.claims.trade_off import choose_refutable_pair
from dpcore.records import Counts
from dpcore.results.audits import error_limits_of, max_refuted_mu_rho

ORDERS = [1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0, 32.0]
PAIR = ([0.0], [1.0])
OPTIONS = [{}, {"bound": "exact"}, {"bound": "anytime"}, {"stop": "refuted"}]


def gaussian(mu):
    def noisy(x, size, rng):
        return np.asarray(x) + rng.normal(size=(size, 1)) / mu

    return noisy


def laplace_divergence(order):
    """The Renyi divergence of Laplace noise of scale 1 and sensitivity 1."""
    grown = order / (2 * order - 1) * math.exp(order - 1)
    return math.log(grown + (order - 1) / (2 * order - 1) * math.exp(-order)) / (order - 1)


def upper_limit(trials, chance, level=0.001):
    """The number of refuted claims that is exceeded with probability below `level`."""
    return int(stats.binom.isf(level, trials, chance))


SIZES = np.array([100, 1000, 30_000])


def draw_counts(rng, n, p, q):
    return Counts(int(rng.binomial(n, p)), n, int(rng.binomial(n, q)), n)


def gaussian_rates(mu, at):
    return float(stats.norm.sf(at - mu)), float(stats.norm.sf(at))


def laplace_rates(at):
    survive = lambda t: 0.5 * math.exp(-t) if t > 0 else 1.0 - 0.5 * math.exp(t)  # noqa: E731
    return survive(at - 1.0), survive(at)


def true_points():
    """Claims that are true, with the rates of events that come as close to them as any."""
    for mu in (0.5, 1.0, 3.0):
        for at in (0.0, 0.5 * mu, mu + 1.0):
            yield GDP(mu), gaussian_rates(mu, at)
    for rho in (0.1, 0.5):
        mu = math.sqrt(2.0 * rho)
        yield ZCDP(rho), gaussian_rates(mu, 0.5 * mu)
        # The point of the zCDP curve itself, which no Gaussian reaches.
        yield ZCDP(rho), (1.0 - ZCDP(rho).trade_off(0.2), 0.2)
    yield RDP(ORDERS, [order / 2.0 for order in ORDERS]), gaussian_rates(1.0, 0.5)
    yield RDP(ORDERS, [laplace_divergence(order) for order in ORDERS]), laplace_rates(0.5)


@pytest.mark.parametrize("first", ["x", "x_prime"])
@pytest.mark.parametrize(("claim", "rates"), list(true_points()), ids=str)
def test_a_true_claim_is_refuted_no_more_often_than_the_confidence_allows(claim, rates, first):
    # With x' first it is the complement that is likelier there.
    p, q = rates if first == "x" else (1.0 - rates[1], 1.0 - rates[0])
    rng = np.random.default_rng(30)
    draws, confidence, points = 2000, 0.9, []
    for n in rng.choice(SIZES, draws).tolist():
        points.append(error_limits_of(draw_counts(rng, n, p, q), (1.0 - confidence) / 2.0))
    one, two = np.array(points).T
    different, places = np.unique(one, return_inverse=True)
    assert np.count_nonzero(two < claim.trade_off(different)[places]) <= upper_limit(draws, 0.1)


def test_a_false_claim_is_refuted_by_the_same_counts():
    """The control of the test before: the same loop at a claim 10 % too small refutes."""
    rng = np.random.default_rng(31)
    rates = gaussian_rates(1.0, 0.5)
    points = (error_limits_of(draw_counts(rng, 30_000, *rates), 0.05) for _ in range(200))
    assert sum(two < GDP(0.9).trade_off(one) for one, two in points) > 190


@pytest.mark.sweep
@pytest.mark.parametrize("bound", ["exact", "anytime"])
@pytest.mark.parametrize("first", ["x", "x_prime"])
@pytest.mark.parametrize("claim", [GDP(1.0), ZCDP(0.5)], ids=str)
def test_tangents_of_true_claims_are_refuted_no_more_often(claim, bound, first):
    """A larger run over every kind of claim is benches/record_claims.py."""
    rng = np.random.default_rng(32)
    draws, refuted, test = 300, 0, dpcore.bounds.BOUNDS[bound]
    least = float(claim.trade_off(0.2))
    p, q = (1.0 - least, 0.2) if first == "x" else (0.8, least)
    for _ in range(draws):
        epsilon, delta = choose_refutable_pair(claim, draw_counts(rng, 200, p, q))
        refuted += test(draw_counts(rng, 400, p, q), delta, 0.9) > epsilon
    assert refuted <= upper_limit(draws, 0.1)


def largest_broken(claim, event):
    """The most by which one event's limits exceed the delta of a claim, at any epsilon.

    ``p - s q - delta(ln s)`` is concave in the slope s, so that its maximum is found.
    """

    def missing(slope):
        return float(claim.delta(math.log(slope)) - shown_difference(event, slope))

    # The search runs over logarithms, so that few steps suffice.
    found = minimize_scalar(
        lambda log: missing(math.exp(log)), bounds=(0.0, 9.0), method="bounded",
        options={"xatol": 1e-5},
    )  # fmt: skip
    return -min(missing(1.0), found.fun)


def shown_difference(event, slope):
    """What the exact limits, each at half the error, show of p - s q."""
    one, two = error_limits_of(event, 0.025)
    return 1.0 - two - slope * one


def test_shown_differences_are_those_of_delta_lower():
    counts, epsilons = Counts(600, 1000, 250, 1000), np.array([0.0, 0.5])
    shown = [shown_difference(counts, slope) for slope in np.exp(epsilons)]
    assert delta_lower(counts, epsilons) == pytest.approx(shown, rel=1e-12)


def test_a_point_is_below_the_curve_exactly_where_one_event_breaks_a_delta():
    """Refuted exactly where delta_lower exceeds claim.delta, for the event or its complement.

    That deltas of other claims are the tangents of their curves is tested beside the claims.
    """
    claim, rng, seen, close = GDP(1.0), np.random.default_rng(33), set(), 0
    for _ in range(60):
        n, q = int(rng.choice(SIZES)), rng.uniform(0.01, 0.9)
        p = min(1.0, (1.0 - claim.trade_off(q)) * rng.uniform(0.97, 1.08))
        counts = draw_counts(rng, n, p, q)
        one, two = error_limits_of(counts, 0.025)
        refuted = bool(two < claim.trade_off(one))
        events = counts, counts.complement().swapped()
        excess = max(largest_broken(claim, event) for event in events)
        # The conversions are rounded to the safe side, by less than this.
        if abs(excess) > 1e-9:
            assert bool(excess > 0.0) is refuted, (counts, excess)
            seen.add(refuted)
        close += abs(excess) < 0.03
    assert seen == {True, False}
    assert close >= 10


def test_the_certified_parameter_is_where_the_curve_meets_the_point():
    counts = Counts(600, 1000, 250, 1000)
    point = error_limits_of(counts, 0.025)
    assert max_refuted_mu_rho(GDP(1.0), (point,)) == pytest.approx(mu_lower(counts), rel=1e-9)
    rho = max_refuted_mu_rho(ZCDP(1.0), (point,))
    assert point[1] < ZCDP(rho * 0.999).trade_off(point[0])
    assert point[1] >= ZCDP(rho * 1.001).trade_off(point[0])


def test_equal_scores_certify_nothing_in_either_direction():
    """A published bound took one direction's rates for the other's: 3.5 on equal scores."""
    counts = Counts(30, 1000, 30, 1000)
    for event in (counts, counts.complement(), counts.swapped(), counts.complement().swapped()):
        assert mu_lower(event) == 0.0
        assert max_refuted_mu_rho(GDP(1.0), (error_limits_of(event, 0.025),)) == 0.0
        assert max_refuted_mu_rho(ZCDP(1.0), (error_limits_of(event, 0.025),)) == pytest.approx(0.0)
    scores = np.random.default_rng(34).normal(size=(2, 4000))
    report = dpcore.audit_outputs(*scores, rows="independent", claim=GDP(0.1), rng=1)
    assert report.refuted is False
    assert report.parameter_lower == 0.0


def test_randomised_response_keeps_its_zcdp_and_breaks_the_gaussian_reading():
    settings = {"trials": 30_000, "rng": 1}
    kept = dpcore.audit(respond, PAIR, claim=ZCDP(0.5), **settings)
    assert kept.refuted is False
    assert 0.4 < kept.parameter_lower <= 0.5
    broken = dpcore.audit(respond, PAIR, claim=GDP(1.0), **settings)
    assert broken.refuted is True
    assert 1.18 < broken.parameter_lower <= 1.2303


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_bound_refutes_what_is_false_and_not_what_is_true(options):
    settings = {"trials": 20_000, "claim": GDP(1.0), "confidence": 0.95, **options}
    false = dpcore.audit(gaussian(1.4), PAIR, rng=1, **settings)
    assert false.verdict == "refuted"
    assert 1.0 <= false.parameter_lower <= 1.4
    true = dpcore.audit(gaussian(1.0), PAIR, rng=2, **settings)
    assert true.refuted is False
    assert true.parameter_lower <= 1.0
    # What is certified at the tangent's delta holds of the exact Gaussian.
    assert false.epsilon_lower <= GDP(1.4).epsilon(false.delta)
    assert true.tangent == pytest.approx(GDP(1.0).epsilon(true.delta), abs=1e-9)


def test_a_floating_point_finding_counts_against_the_curve():
    settings = {"trials": 20_000, "claim": GDP(1.0), "rng": 2}
    alone = dpcore.audit(gaussian(1.0), PAIR, **settings)
    both = dpcore.audit(gaussian(1.0), PAIR, floats=True, **settings)
    # numpy's noise is added in floats, whose last bits show more than the law allows.
    assert (alone.refuted, both.refuted) == (False, True)
    assert both.parameter_lower > 1.0


@pytest.mark.sweep
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_whole_audits_of_true_claims_are_refuted_no_more_often(options):
    """A hundred each, with other claims, are counted by benches/record_claims.py."""
    settings = {"claim": GDP(1.0), "trials": 1000, "confidence": 0.8, "floats": False, **options}
    refuted = above = 0
    for seed in range(40):
        report = dpcore.audit(gaussian(1.0), PAIR, rng=seed, **settings)
        refuted += bool(report.refuted)
        # Nothing that is certified is above what is exact.
        exact = GDP(1.0).epsilon(report.delta)
        above += report.parameter_lower > 1.0 or report.epsilon_lower > exact
    assert max(refuted, above) <= upper_limit(40, 0.2)
    assert refuted <= above


def test_the_tangent_is_chosen_before_counting():
    """Other counted draws with the same pilot have the same tangent."""
    settings = {"claim": GDP(1.0), "rng": 3, "pilot": 512, "bound": "exact", "block": 500}
    first = dpcore.audit(gaussian(1.1), PAIR, trials=1000, **settings)
    second = dpcore.audit(gaussian(1.1), PAIR, trials=1000, start=1000, **settings)
    assert (first.tangent, first.delta) == (second.tangent, second.delta)
    assert first.counts != second.counts


def test_audits_of_curves_are_added_kept_and_shown():
    settings = {"claim": ZCDP(0.5), "rng": 3, "pilot": 512, "block": 500}
    parts = [dpcore.audit(respond, PAIR, trials=1000, start=s, **settings) for s in (0, 1000)]
    both = parts[0] + parts[1]
    assert (both.claim, both.counts) == (ZCDP(0.5), parts[0].counts + parts[1].counts)
    looked = parts[0].merge(parts[1], looked=True)
    assert looked.bound == "anytime"
    assert looked.refuted in (True, False)
    for claim in (ZCDP(0.5), RDP(ORDERS, ORDERS), TradeOff(epsilons=[1.0, 3.0], deltas=[0.1, 0.0])):
        report = dpcore.audit(respond, PAIR, trials=1000, claim=claim, rng=1)
        again = dpcore.Audit.from_json(report.to_json())
        assert (again.claim, again.tangent) == (claim, report.tangent)
        assert again.refuted == report.refuted
        assert str(claim) in str(report)
        assert str(claim) in report.to_html().replace("&lt;", "<")
        assert f"at delta {report.delta:.4g}" in str(report)
        if claim == RDP(ORDERS, ORDERS):
            # Without a parameter the point is shown beside the curve.
            one, two, least = report.point
            assert (report.parameter_lower, report.refuted) == (None, two < least)
            assert f"type II error <= {two:.4g} at type I error <= {one:.4g}" in str(report)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize(
    "claim",
    [ZCDP(1000.0), RDP([2.0, 8.0], [1000.0] * 2), GDP(1e200),
     TradeOff(epsilons=[800.0], deltas=[0.1])],
    ids=str,
)  # fmt: skip
def test_a_claim_without_tangents_is_audited_kept_and_shown(claim, options):
    report = dpcore.audit(respond, PAIR, trials=400, pilot=400, claim=claim, rng=1, **options)
    assert not report.refuted
    assert report.tangent > 700.0
    check_views(report, claim)


@pytest.mark.parametrize("claim", [ZCDP(1000.0), GDP(1e200)], ids=str)
def test_recorded_outputs_are_audited_under_a_claim_without_tangents(claim):
    inside, outside = scores(1.0)
    for rows in ("independent", "one_run"):
        report = dpcore.audit_outputs(inside, outside, rows=rows, claim=claim, rng=1)
        assert not report.refuted
        assert report.tangent > 700.0
        check_views(report, claim)


def check_views(report, claim):
    again = type(report).from_json(report.to_json())
    assert (again.claim, again.tangent, again.delta) == (claim, report.tangent, report.delta)
    assert again.refuted == report.refuted
    assert str(claim) in str(report)
    assert str(claim) in report.to_html().replace("&lt;", "<")
    report.plot()


def test_no_plan_is_made_for_a_claim_without_tangents():
    with pytest.raises(ValueError, match="claim must be one that implies a delta below 1"):
        dpcore.plan(RDP([2.0, 8.0], [1000.0] * 2), factor=0.5)


def scores(shift, seed=5, canaries=1000):
    rng = np.random.default_rng(seed)
    inside = rng.random(canaries) < 0.5
    values = rng.normal(size=canaries) + shift * inside
    return values[inside], values[~inside]


ONE_RUN = {"rows": "one_run", "guesses": 250, "rng": 1}


@pytest.mark.sweep
@pytest.mark.parametrize(
    "claim", [GDP(0.5), ZCDP(0.125), RDP(ORDERS, [order / 8 for order in ORDERS])], ids=str
)
def test_one_run_refutes_false_curves_and_not_true_ones(claim):
    false = dpcore.audit_outputs(*scores(4.0), claim=claim, **ONE_RUN)
    assert false.refuted is True
    assert false.bound == "one_run_curve"
    # Scores of a mechanism that keeps the claim: each canary is tested by noise of its own.
    many = (dpcore.audit_outputs(*scores(0.5, s), claim=claim, **ONE_RUN) for s in range(100))
    assert sum(bool(audit.refuted) for audit in many) <= upper_limit(100, 0.05)


def test_one_run_of_a_gaussian_is_the_bound_of_that_name_and_250_guesses_reach_no_further():
    report = dpcore.audit_outputs(*scores(9.0), claim=GDP(1.0), **ONE_RUN)
    assert (report.correct, report.parameter_lower) == (250, pytest.approx(1.64, abs=0.01))
    assert report.ceiling == pytest.approx(4.39, abs=0.01)
    assert "mu >= 1.64" in dict(report.lines())["reach"]
    same = dpcore.audit_outputs(*scores(9.0), claim=GDP(1.0), bound="one_run_fdp", **ONE_RUN)
    assert same.refuted is report.refuted
    needed = report.guesses_needed
    curve = GDP(1.0).least_type_one
    assert one_run_refutes(curve, needed, needed, 1000)
    assert not one_run_refutes(curve, needed - 1, needed - 1, 1000)
    far = dpcore.audit_outputs(*scores(9.0), claim=GDP(2.0), **ONE_RUN)
    assert far.verdict == "undecided: 250 guesses certify at most mu 1.64"
    assert far.guesses_needed > 250


def test_one_run_curves_hold_as_the_gaussian_does_where_both_are_known():
    """A table of the Gaussian curve refutes no more than the curve, and nearly as much."""
    from dpcore.bounds import one_run_mu

    mu = one_run_mu(250, 230, 1000)
    epsilons = np.linspace(0.0, 12.0, 400)
    for factor, expected in ((1.01, False), (0.99, True)):
        table = TradeOff(epsilons=epsilons, deltas=GDP(mu * factor).delta(epsilons))
        assert one_run_refutes(table.least_type_one, 250, 230, 1000) is expected


def test_a_plan_of_a_curve_is_kept_by_the_audit():
    plan = dpcore.plan(GDP(1.0), factor=1.0 / 1.2)
    settings = {"claim": GDP(1.0), "trials": plan.trials, "pilot": 4000}
    # At 95 % the chance of fewer than 15 of 20 is 3e-4.
    found = (dpcore.audit(gaussian(1.2), PAIR, rng=seed, **settings) for seed in range(20))
    assert sum(report.refuted for report in found) >= 15
    assert "mu <= 1 (Gaussian DP)" in str(plan)
    assert dpcore.Plan.from_dict(plan.to_dict()).curve == GDP(1.0)
