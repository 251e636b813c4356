"""Outputs of one run with canaries: soundness, guesses, bounds."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy import stats
from shared_outputs import ALPHA, AUDITS, MOST, RESPONSE, canaries, refuted

from dpcore.bounds import guesses_needed, one_run, one_run_fdp
from dpcore.errors import AssumptionWarning
from dpcore.recorded.run import audit_outputs
from dpcore.results.outputs_audits import Guesses


def flipped_canaries(rng, m=200):
    """Every canary's coin by randomised response: scores are 0 or 1, and mostly tied."""
    coins = rng.random(m) < 0.5
    scores = (coins ^ (rng.random(m) >= RESPONSE)) * 1
    return scores[coins], scores[~coins]


@pytest.mark.parametrize("guesses", [None, 60, 0.3, (40, 0), (0, 40)])
@pytest.mark.parametrize("draw", [canaries, flipped_canaries])
def test_true_claims_about_one_run(draw, guesses):
    overclaims, median = refuted(draw, rows="one_run", guesses=guesses)
    assert overclaims <= MOST
    assert median > 0.25


def sometimes_all(rng, m=100):
    """With probability 0.1 shows all coins, or else none: (0, 0.1)-DP for every canary."""
    coins = rng.random(m) < 0.5
    scores = coins * 1.0 if rng.random() < 0.1 else rng.random(m)
    return scores[coins], scores[~coins]


def test_canaries_of_one_run_are_no_independent_rows():
    """One run's noise is shared: what the independent bound takes for 50 draws is a single one."""
    most = int(stats.binom.isf(ALPHA, AUDITS, 0.01))
    settings = {"claim": 0.0, "delta": 0.1, "confidence": 0.99}
    assert refuted(sometimes_all, rows="one_run", **settings)[0] <= most
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        assert refuted(sometimes_all, rows="independent", **settings)[0] > most


def test_guesses_by_hand():
    outputs, outputs_prime = [5.0, 4.0, 0.0, np.inf], [3.0, -1.0, 4.5, -np.inf]
    audit = audit_outputs(outputs, outputs_prime, rows="one_run", guesses=(3, 2), rng=1)
    # In: inf, 5, 4.5 of which the last was left out. Out: -inf, -1.
    assert audit.evidence == Guesses(3, 2, 2, 2, 8)
    assert (audit.guesses, audit.correct, audit.canaries) == (5, 4, 8)
    assert audit.epsilon_lower == one_run(5, 4, 8, 0.0, 0.95)
    assert audit.epsilon_hat == pytest.approx(math.log(4.0))
    assert audit.counts is None
    odd = audit_outputs(outputs, outputs_prime, rows="one_run", guesses=5, rng=1)
    assert odd.evidence == audit.evidence
    columns = (np.array([side]).T for side in (outputs, outputs_prime))
    column = audit_outputs(*columns, rows="one_run", rng=1)
    assert (column.guesses, column.evidence.guessed_in) == (8, 4)


@pytest.mark.parametrize(("included", "others"), [(1000, 1000), (900, 1100)])
def test_ties_do_not_know_who_was_included(included, others):
    """All scores equal: as many right as coins give, in the order of no side."""
    audits = [
        audit_outputs(np.zeros(included), np.zeros(others), rows="one_run", rng=seed)
        for seed in range(20)
    ]
    right = sum(audit.correct for audit in audits)
    share = (included * 0.5 + others * 0.5) / (included + others)
    assert stats.binomtest(right, 20 * (included + others), share).pvalue > ALPHA
    assert len({audit.correct for audit in audits}) > 1


def test_guesses_in_number_do_not_depend_on_scores():
    rng = np.random.default_rng(1)
    for scores in (rng.normal(size=100), np.ones(100), np.repeat([0.0, 1.0], 50)):
        audit = audit_outputs(scores[::2], scores[1::2], rows="one_run", guesses=0.21, rng=1)
        assert (audit.evidence.guessed_in, audit.evidence.guessed_out) == (11, 10)


def test_scores_that_are_the_wrong_way_round_are_mentioned():
    outputs, outputs_prime = canaries(np.random.default_rng(1), 1000)
    right = audit_outputs(outputs, outputs_prime, rows="one_run", guesses=200, rng=1)
    wrong = audit_outputs(-outputs, -outputs_prime, rows="one_run", guesses=200, rng=1)
    assert right.notes == ()
    assert right.epsilon_lower > 0.3
    assert wrong.epsilon_lower == 0.0
    assert "fewer than half of the guesses are right" in wrong.notes[0]
    assert wrong.notes[0] in str(wrong)


def test_the_gaussian_bound():
    rng = np.random.default_rng(1)
    coins = rng.random(2000) < 0.5
    scores = coins * 2.0 + rng.normal(size=2000)
    settings = {"rows": "one_run", "guesses": 400, "delta": 1e-5, "rng": 1, "claim": 2.0}
    plain, sharp = (
        audit_outputs(scores[coins], scores[~coins], bound=bound, **settings)
        for bound in (None, "one_run_fdp")
    )
    assert plain.bound == "one_run"
    assert plain.epsilon_lower < sharp.epsilon_lower
    assert "of a Gaussian claim" in str(sharp)


# What guesses can reach.


@pytest.mark.parametrize("guesses", [10, 100, 1000])
@pytest.mark.parametrize(("delta", "bound"), [(0.0, None), (1e-5, None), (1e-5, "one_run_fdp")])
def test_the_ceiling_is_what_right_guesses_certify(guesses, delta, bound):
    settings = {"rows": "one_run", "guesses": guesses, "delta": delta, "bound": bound, "rng": 1}
    perfect = audit_outputs(np.arange(500.0) + 1000, np.arange(500.0), **settings)
    assert (perfect.correct, perfect.ceiling) == (guesses, perfect.epsilon_lower)
    rng = np.random.default_rng(1)
    audit = audit_outputs(rng.normal(size=500) + 1, rng.normal(size=500), **settings)
    assert audit.ceiling == perfect.ceiling > audit.epsilon_lower
    assert audit.guesses_needed is None


@pytest.mark.parametrize("claim", [0.0, 0.5, 1.0, 4.0, 8.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("bound", [one_run, one_run_fdp])
def test_the_guesses_needed_are_the_fewest(claim, delta, bound):
    if bound is one_run_fdp and delta == 0.0:
        return
    needed = guesses_needed(claim, 1000, delta, 0.95, bound)
    many = max(needed, 1000)
    assert bound(needed, needed, many, delta=delta, confidence=0.95) > claim
    fewer = needed - 1
    assert fewer == 0 or bound(fewer, fewer, many, delta=delta, confidence=0.95) <= claim


def test_claims_that_no_number_of_guesses_refutes():
    assert guesses_needed(8.0, 1000, delta=0.01) is None
    assert guesses_needed(50.0, 1000) is None
    with pytest.raises(ValueError, match="claim must be a finite number at least 0"):
        guesses_needed(-1.0, 1000)


@pytest.mark.parametrize(
    ("claim", "told"),
    [
        (8.0, "to refute the claim takes 8,932 guesses (and canaries) or more, all of them right"),
        (1.0, "to refute the claim takes 10 guesses (and canaries) or more, all of them right"),
        (50.0, "to refute the claim takes more guesses than any run has"),
    ],
)
def test_the_report_says_what_guesses_can_reach(claim, told):
    outputs, outputs_prime = canaries(np.random.default_rng(1), 1000)
    audit = audit_outputs(outputs, outputs_prime, rows="one_run", guesses=100, rng=1, claim=claim)
    reach = f"100 guesses certify at most epsilon >= {one_run(100, 100, 1000):.4f}; {told}"
    assert f"  reach        {reach}\n" in str(audit)
    record = audit.to_dict()["derived"]
    assert (record["ceiling"], record["guesses_needed"]) == (audit.ceiling, audit.guesses_needed)
    without = audit_outputs(outputs, outputs_prime, rows="one_run", guesses=100, rng=1)
    assert f"  reach        {reach.split(';')[0]}\n" in str(without)


def test_independent_rows_make_no_guesses():
    rng = np.random.default_rng(1)
    audit = audit_outputs(rng.normal(size=100), rng.normal(size=100), rows="independent", claim=1)
    assert (audit.ceiling, audit.guesses_needed) == (None, None)
    assert "reach" not in str(audit)


def test_coins_that_are_not_fair_are_no_verdict():
    scores = np.random.default_rng(1).normal(size=1000)
    with pytest.warns(AssumptionWarning, match="900 of 1,000 canaries"):
        audit = audit_outputs(scores[:900] + 2, scores[900:], rows="one_run", claim=0.1, rng=1)
    assert audit.epsilon_lower > 0.1
    assert audit.refuted is None
    assert audit.verdict.startswith("invalid: 900 of 1,000 canaries were included")
    fair = audit_outputs(scores[:480] + 2, scores[480:], rows="one_run", claim=0.1, rng=1)
    assert fair.refuted
