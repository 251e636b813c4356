"""The default audit: a portfolio of attacks, the choice of pair and event, and what is refused."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from shared_audits import AUDITS, CONFIDENCE, MOST, TRUTH, UNIT, noisy, respond

import dpcore
from dpcore import Audit, Counts, Laplace, Pair, pairs
from dpcore.attacks import Auto, Threshold
from dpcore.auditing.pilot import frequent_outputs
from dpcore.bounds import BOUNDS, Martingale, tradeoff_band
from dpcore.published import DPText, HalfNoise

CLAIMED = {"claim": 1.0, "rng": 1}


def test_auto_is_the_default():
    options = {"trials": 10**4, **CLAIMED}
    audits = [dpcore.audit(noisy, UNIT, attack=one, **options) for one in (None, "auto", Auto())]
    assert audits[0] == audits[1] == audits[2]


@pytest.mark.parametrize("dim", [1, 3])
def test_auto_nearly_reaches_the_loss_of_the_laplace_mechanism(dim):
    report = dpcore.audit(noisy, pairs.zeros_ones(dim), trials=10**6, claim=0.9 * dim, rng=2)
    assert 0.97 * dim - 0.05 * (dim - 1) < report.epsilon_lower < dim
    assert report.verdict == "refuted"


def parity(x, size, rng):
    """Tells x only in whether two random bits agree."""
    bits = rng.integers(2, size=(size, 2))
    keep = rng.random(size) < math.e / (1 + math.e)
    bits[:, 1] = np.where(keep, bits[:, 0] ^ int(x[0]), bits[:, 0] ^ 1 ^ int(x[0]))
    return bits


def silent(x, size, rng):
    """NaN more often on x'."""
    outputs = rng.normal(size=(size, 2))
    outputs[rng.random(size) < 0.1 * (1 + x[0])] = np.nan
    return outputs


def words(x, size, rng):
    return np.where(rng.random(size) < 0.2 + 0.4 * x[0], "yes", "no")


def things(x, size, rng):
    outputs = np.empty(size, dtype=object)
    outputs[:] = [("a", i) for i in rng.binomial(3, 0.3 + 0.4 * x[0], size)]
    return outputs


@pytest.mark.parametrize(
    ("mechanism", "loss"),
    [(parity, 1.0), (silent, math.log(2.0)), (words, math.log(3.0)), (things, 3 * math.log(7 / 3))],
)
def test_auto_finds_what_no_single_threshold_sees(mechanism, loss):
    report = dpcore.audit(mechanism, UNIT, trials=10**5, claim=0.0, rng=3)
    assert 0.85 * loss - 0.1 < report.epsilon_lower < loss + 0.02
    assert report.refuted


# What is counted does not depend on who counts.


def test_the_curve_is_that_of_the_score_on_the_draws():
    report = dpcore.audit(noisy, pairs.zeros_ones(2), trials=10**4, **CLAIMED)
    curve = report.curve
    scores = report.event.score(report.outputs("x", 0, 10**4))
    assert [int((scores >= t).sum()) for t in curve.thresholds] == curve.k.tolist()


# Pairs.


def test_of_several_pairs_the_one_that_tells_most_is_audited():
    near, far = Pair([0.0], [0.1]), Pair([0.0], [2.0])
    report = dpcore.audit(noisy, [near, far, Pair([0.0], [0.5])], trials=10**5, **CLAIMED)
    assert report.pair == far
    assert 1.9 < report.epsilon_lower < 2.0
    assert report == dpcore.audit(noisy, far, trials=10**5, **CLAIMED)


def test_pairs_are_compared_per_unit_of_distance():
    near, far = Pair([0.0], [1.0]), Pair([0.0], [2.0], distance=4.0)
    assert dpcore.audit(noisy, [far, near], trials=10**5, **CLAIMED).pair == near


@pytest.mark.sweep
def test_a_search_finds_the_change_that_tells():
    def difference(x, size, rng):
        return (x[0] - x[1] + rng.laplace(0.0, 1.0, size))[:, np.newaxis]

    plan = pairs.search(pairs.Box(-2.0, 2.0, 2), pairs.Linf(1.0))
    report = dpcore.audit(difference, plan, trials=10**5, claim=1.5, rng=1)
    assert report.refuted
    assert 1.85 < report.epsilon_lower < 2.0


# Bounds.


def test_the_bound_is_named_and_recorded():
    options = {"trials": 10**5, **CLAIMED}
    reports = {name: dpcore.audit(Laplace(1.0), bound=name, **options) for name in BOUNDS}
    assert len({report.counts for report in reports.values()}) == 1
    for name, report in reports.items():
        assert report.bound == name
        assert Audit.from_json(report.to_json()) == report
    lower = {name: report.epsilon_lower for name, report in reports.items()}
    assert 0.9 < lower["anytime"] < lower["clopper_pearson"] < lower["exact"] < 1.0


def test_figures_at_other_deltas_come_from_the_same_counts():
    report = dpcore.audit(dpcore.Gaussian(1.0), trials=10**6, claim=0.5, rng=1)
    assert report.epsilon_lower_at(0.0) == report.epsilon_lower
    lower = [report.epsilon_lower_at(delta) for delta in (0.0, 1e-3, 0.01, 0.1)]
    assert lower == sorted(lower, reverse=True)
    # mu = 1 exactly; its profile has delta(1) = 0.1269.
    assert 0.8 < report.mu_lower < 1.0
    assert 0.1 < float(report.tradeoff.delta(1.0)) < 0.1269


def test_the_sentence_of_power_speaks_of_this_event_only():
    report = dpcore.audit(Laplace(1.0), trials=10**5, claim=1.0, rng=1)
    assert report.refuted is False
    assert "95 % probability" in report.power
    assert "Other events were not tested" in report.power
    assert report.power in str(report)
    assert dpcore.audit(Laplace(1.0), trials=10**5, claim=0.5, rng=1).power == ""


# Pooled coordinates.


# Floating point.


def rounded(x, size, rng):
    return x + np.round(4.0 * rng.laplace(0.0, 1.0, (size, 1))) / 4.0


def test_the_lattice_of_doubles_is_a_finding_of_its_own():
    report = dpcore.audit(noisy, UNIT, trials=10**5, claim=1.0, rng=1)
    assert report.floating_point.epsilon_lower > 5.0
    assert report.refuted is False
    assert "not part of the verdict" in str(report)
    counted = dpcore.audit(noisy, UNIT, trials=10**5, claim=1.0, rng=1, floats=True)
    assert counted.refuted is True
    assert counted.epsilon_lower > 4.0
    again = Audit.from_json(counted.to_json())
    assert (again.floating_point, again.refuted) == (counted.floating_point, True)
    clean = dpcore.audit(rounded, UNIT, trials=10**5, claim=1.5, rng=1)
    assert clean.floating_point is None or clean.floating_point.epsilon_lower < 1.5


# Assumptions.


# Rubbish: an error that names it, or a bound of 0.


@pytest.mark.parametrize("trials", [1, 2, 10])
def test_tiny_audits_are_sound(trials):
    report = dpcore.audit(noisy, UNIT, trials=trials, **CLAIMED)
    assert 0.0 <= report.epsilon_lower <= 1.0
    assert report.trials == trials


def test_events_that_always_or_never_happen():
    for answer in (np.zeros, np.ones):
        attack = lambda *_, answer=answer: lambda o: answer(len(o), bool)  # noqa: E731
        assert dpcore.audit(noisy, UNIT, attack=attack, trials=1000, **CLAIMED).epsilon_lower == 0.0


# Audits that stop when the claim is refuted: sound at every look, and quicker than a fixed n.


def stopped(mechanism, seed, **more):
    arguments = {
        "trials": 8000, "claim": 1.0, "confidence": CONFIDENCE, "rng": seed, "stop": "refuted",
        "block": 80, "pilot": 100, "attack": Threshold("coordinate"), **more,
    }  # fmt: skip
    return dpcore.audit(mechanism, ([0.0], [1.0]), **arguments)


@pytest.mark.sweep
def test_a_true_claim_is_refuted_as_seldom_as_promised():
    audits = [stopped(respond, seed) for seed in range(AUDITS)]
    assert sum(audit.refuted for audit in audits) <= MOST
    unrefuted = [audit for audit in audits if not audit.refuted]
    assert all(len(audit.slices) >= 20 and audit.trials == 8000 for audit in unrefuted)
    assert all(audit.epsilon_lower < 1.0 for audit in unrefuted[:20])


@pytest.mark.sweep
def test_control_a_fixed_bound_looked_at_as_often_overclaims():
    """The same draws, 200 looks with a bound that allows one."""
    overclaimed = 0
    for seed in range(AUDITS):
        rng = np.random.default_rng(seed)
        k, k_prime = (np.cumsum(rng.binomial(40, p, 200)) for p in (TRUTH, 1.0 - TRUTH))
        both = zip(k.tolist(), k_prime.tolist(), range(40, 8001, 40), strict=True)
        looks = (Counts(a, n, b, n) for a, b, n in both)
        overclaimed += any(BOUNDS["conditional"](counts, 0.0, CONFIDENCE) > 1.0 for counts in looks)
    assert overclaimed > MOST


@pytest.mark.parametrize("mechanism", [HalfNoise(1.0), DPText(1.0)], ids=repr)
def test_a_false_claim_is_refuted_early(mechanism):
    report = dpcore.audit(mechanism, trials=10**6, stop="refuted", rng=1)
    assert report.refuted is True
    assert report.verdict == "refuted"
    assert report.trials < 10**5
    assert report.epsilon_lower > 1.0
    assert (report.bound, report.stop) == ("anytime", "refuted")
    assert sum(piece.counts.n for piece in report.slices) == report.trials
    assert "test martingale over" in str(report)
    assert Audit.from_json(report.to_json()) == report
    assert report == dpcore.audit(mechanism, trials=10**6, stop="refuted", rng=1)


def test_the_band_of_an_event_below_its_threshold_is_that_of_the_other_rates():
    options = {"claim": 1.0, "trials": 20_000, "attack": Threshold(), "rng": 1}
    report = dpcore.audit(Laplace(1.0), ([1.0], [0.0]), **options)
    event = replace(report.event, side="below")
    flipped = replace(report, event=event, direction="x_prime")
    curve = report.curve
    rates = [(n - k)[::-1] for k, n in ((curve.k_prime, curve.n_prime), (curve.k, curve.n))]
    by_hand = tradeoff_band(rates[0], curve.n_prime, rates[1], curve.n, report.confidence)
    epsilons = np.linspace(0.0, 1.0, 11)
    assert np.array_equal(flipped.tradeoff.delta(epsilons), by_hand.delta(epsilons))
    assert len(np.unique(by_hand.delta(epsilons))) == 11


def test_every_slice_counts_what_its_own_event_says():
    report = stopped(respond, 3)
    start = 0
    for piece in report.slices:
        size = piece.counts.n
        sides = (report.outputs(side, start, size) for side in ("x", "x_prime"))
        hits = [int(piece.event(side).sum()) for side in sides]
        assert hits == [piece.counts.k, piece.counts.k_prime]
        start += size


def test_the_wealth_follows_from_the_slices_alone():
    # Slices with one event share a mixture, and another event begins anew.
    for seed in range(1, 20):
        report = stopped(respond, seed)
        labels = [0]
        for before, piece in itertools.pairwise(report.slices):
            changed = (piece.event, piece.direction) != (before.event, before.direction)
            labels.append(labels[-1] + changed)
        evidence = Martingale(report.claim, report.delta)
        for label, piece in zip(labels, report.slices, strict=True):
            counts = piece.counts if piece.direction == "x" else piece.counts.swapped()
            evidence.update(counts.k, counts.k_prime, counts.n, event=label, predicted=piece.guess)
        enough = -math.log1p(-report.confidence)
        assert report.refuted is (evidence.log_wealth >= enough)
        at = 1.0 - math.exp(-evidence.log_wealth)
        if at > 0.0:
            # A level just below what the wealth reaches is won, and one just above is not.
            for level, won in ((at - 1e-6, True), (at + 1e-6, False)):
                assert replace(report, confidence=level).refuted is won


def test_delta_is_respected():
    assert stopped(respond, 1, delta=0.05).refuted is False
    leaking = dpcore.audit(
        dpcore.Laplace(0.5), pairs.zeros_ones(1), claim=1.0, delta=0.01, stop="refuted",
        trials=10**6, rng=1,
    )  # fmt: skip
    assert leaking.refuted is True
    assert leaking.trials < 10**6


def test_numbers_that_repeat_once_are_listed_inside_the_event():
    outputs, outputs_prime = np.array([[1.0], [2.0], [np.nan]]), np.array([[1.0], [3.0], [-np.nan]])
    listed = frequent_outputs(lambda rows: np.ones(len(rows), np.bool_), outputs, outputs_prime)
    assert {(output.text, output.k, output.k_prime) for output in listed} == {
        ("[1.0]", 1, 1),
        ("[nan]", 1, 1),
    }
