"""Rows of another kind or shape that first appear in the count: outcomes that no event holds."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import stats
from shared_audits import ALPHA, UNIT

import dpcore
from dpcore import attacks
from dpcore.events import Above, EveryCoordinate, Vote
from dpcore.events.every_coordinate import Intervals

RATE = 2e-4
TRIALS = 20_000


def rows(x, size, rng, place):
    """Pairs of numbers, the first at the exact loss 1, with one outcome put in some places."""
    found = np.stack([x[0] + rng.laplace(size=size), rng.normal(size=size)], axis=1).tolist()
    for i in np.flatnonzero(rng.random(size) < RATE):
        found[i] = place(found[i])
    return found


def numbers(x, size, rng, place):
    found = (x[0] + rng.laplace(size=size)).tolist()
    for i in np.flatnonzero(rng.random(size) < RATE):
        found[i] = place(found[i])
    return found


OUTCOMES = {
    "None": (numbers, lambda one: None),
    "text": (numbers, lambda one: "a"),
    "2^70": (numbers, lambda one: 2**70),
    "list": (numbers, lambda one: [one]),
    "None for a row": (rows, lambda one: None),
    "longer": (rows, lambda one: [*one, 1.0]),
    "shorter": (rows, lambda one: one[:1]),
    "None in a row": (rows, lambda one: [one[0], None]),
}


def audit(case, seed, **more):
    make, place = OUTCOMES[case]

    def mechanism(x, size, rng):
        return make(x, size, rng, place)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpcore.errors.AssumptionWarning)
        return dpcore.audit(mechanism, UNIT, claim=1.0, trials=TRIALS, rng=seed, **more)


@pytest.mark.parametrize("case", OUTCOMES)
def test_audits_count_rare_outcomes_and_keep_to_the_loss(case):
    """Nobody certifies more than 1, and most of 1 is found; 10 audits at 95 %."""
    found = [audit(case, seed, confidence=0.95) for seed in range(10)]
    over = sum(one.epsilon_lower > 1.0 for one in found)
    assert over <= stats.binom.isf(ALPHA, 10, 0.05)
    assert np.median([one.epsilon_lower for one in found]) > 0.7


@pytest.mark.parametrize("case", ["None", "longer"])
@pytest.mark.parametrize(
    "options",
    [{"stop": "refuted"}, {"floats": True}, {"attack": attacks.Threshold()}, {"block": 64}],
    ids=str,
)
def test_rare_outcomes_in_other_audits(case, options):
    assert audit(case, 1, **options).counts.n > 0


@pytest.mark.parametrize("case", ["None for a row", "longer"])
@pytest.mark.parametrize("attack", [attacks.MajorityVote(), attacks.Coordinatewise()], ids=str)
def test_votes_and_products_skip_rare_outcomes(case, attack):
    def mechanism(x, size, rng):
        found = (x + rng.laplace(size=(size, 2))).tolist()
        for i in np.flatnonzero(rng.random(size) < RATE):
            found[i] = OUTCOMES[case][1](found[i])
        return found

    pair = ([0.0, 0.0], [1.0, 1.0])
    report = dpcore.audit(mechanism, pair, trials=TRIALS, rng=1, attack=attack)
    assert 1.0 < report.epsilon_lower <= 2.0


MIXED = np.empty(5, object)
MIXED[:] = [[1.0, 5.0], None, [1.0, 2.0, 3.0], "a", [-1.0, 5.0]]


@pytest.mark.parametrize(
    "event",
    [
        Above(attacks.Threshold().candidates(*np.ones((2, 9, 2)), UNIT)[0], 0.5),
        Vote([0.5, 0.5], [1.0, 1.0]),
        Vote([0.5, 0.5], [1.0, 1.0], "x"),
        EveryCoordinate(((0, 1),), (Intervals(np.array([0.5]), False),), 2),
    ],
    ids=lambda event: type(event).__name__,
)
def test_an_event_answers_for_regular_rows_alone(event):
    regular = event(np.array([[1.0, 5.0], [-1.0, 5.0]]))
    assert event(MIXED).tolist()[::4] == regular.tolist()
    assert not event(MIXED)[[1, 3]].any()
    # Row by row it answers the same: neighbours change nothing.
    for place in range(5):
        assert event(MIXED[place : place + 1]).tolist() == [event(MIXED)[place]]
    with pytest.raises((TypeError, ValueError)):
        event(MIXED[[1, 3]])


def test_errors_of_a_score_of_ones_own_pass_through():
    def score(outputs):
        return outputs + 1.0

    with pytest.raises(TypeError, match="unsupported operand"):
        Above(score, 0.5)(np.array([1.0, None]))


def test_rows_that_all_have_another_shape_are_an_error():
    def widening(x, size, rng):
        return rng.random((size, 3 if size < 1000 else 4))

    with pytest.raises(ValueError, match=r"of shape \(\d+, 3\) in every call, got \(\d+, 4\)"):
        dpcore.audit(widening, UNIT, trials=20_000, rng=1)
