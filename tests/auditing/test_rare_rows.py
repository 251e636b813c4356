"""Rows of another kind or shape that first appear in the count: outcomes that no event holds."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pytest
from scipy import stats
from shared_audits import ALPHA, UNIT

import dpcore
from dpcore import attacks
from dpcore.attacks.parts import Part, Parts
from dpcore.events import Above, EveryCoordinate, Vote
from dpcore.events.every_coordinate import Intervals
from dpcore.mechanisms.answers import rows_to_objects, to_object_array

RATE = 2e-4
TRIALS = 20_000


def place_rarely(found, rng, place):
    for i in np.flatnonzero(rng.random(len(found)) < RATE):
        found[i] = place(found[i])
    return found


def rows(x, size, rng, place):
    """Pairs of numbers, the first at the exact loss 1, with one outcome put in some places."""
    found = np.stack([x[0] + rng.laplace(size=size), rng.normal(size=size)], axis=1).tolist()
    return place_rarely(found, rng, place)


def numbers(x, size, rng, place):
    return place_rarely((x[0] + rng.laplace(size=size)).tolist(), rng, place)


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
    mechanism = partial(make, place=place)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpcore.errors.AssumptionWarning)
        return dpcore.audit(mechanism, UNIT, claim=1.0, trials=TRIALS, rng=seed, **more)


@pytest.mark.parametrize("case", OUTCOMES)
def test_audits_count_rare_outcomes_and_keep_to_the_loss(case):
    """Nobody certifies more than 1, and most of 1 is found; 10 audits at 95 %."""
    found = [audit(case, seed, confidence=0.95) for seed in range(10)]
    assert sum(one.epsilon_lower > 1.0 for one in found) <= stats.binom.isf(ALPHA, 10, 0.05)
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
        return place_rarely((x + rng.laplace(size=(size, 2))).tolist(), rng, OUTCOMES[case][1])

    report = dpcore.audit(mechanism, ([0.0, 0.0], [1.0, 1.0]), trials=TRIALS, rng=1, attack=attack)
    assert 1.0 < report.epsilon_lower <= 2.0


MIXED = np.empty(5, object)
MIXED[:] = [[1.0, 5.0], None, [1.0, 2.0, 3.0], "a", [-1.0, 5.0]]


@pytest.mark.parametrize("event", [
    Above(attacks.Threshold().candidates(*np.ones((2, 9, 2)), UNIT)[0], 0.5),
    Vote([0.5, 0.5], [1.0, 1.0]), Vote([0.5, 0.5], [1.0, 1.0], "x"),
    EveryCoordinate(((0, 1),), (Intervals(np.array([0.5]), False),), 2),
], ids=lambda event: type(event).__name__)  # fmt: skip
def test_an_event_answers_for_regular_rows_alone(event):
    assert event(MIXED).tolist()[::4] == event(np.array([[1.0, 5.0], [-1.0, 5.0]])).tolist()
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


TABLES = {
    "floats": np.random.default_rng(1).normal(size=(6, 3)) * 40,
    "float": np.random.default_rng(2).normal(size=6) * 40,
    "whole": np.random.default_rng(3).integers(-(2**40), 2**40, (6, 2)),
    "wide": np.random.default_rng(4).integers(-(2**62), 2**62, 6),
    "texts": np.array(["never", "daily", "", "weekly", "a,b", "1.5"]),
    "long": np.array(["ab" * 1500, "ba" * 1500, "x", "ab" * 1400, "", "b" * 3000]),
    "bytes": np.array([b"never", b"a", b"", b"\xff\x01", b"ab", b"z"]),
    "rows of texts": np.array([["a", "b"], ["b", "b"], ["c", "a"]] * 2),
}
PARTS = [
    Part((), "value"), Part((), "length"), Part((), "letter", 0), Part((), "letter", -2),
    Part((), "letter", 1200), Part((), "letter", -1300), Part((), "count", 97), Part((), "bit", 1),
    Part((), "is", "daily"), Part((), "kind", 1), Part((), "kind", 2), Part((), "number"),
    Part((), "modulo", 10.0), Part((), "times", "b"), Part((), "there"),
    Part((("entry", 1),), "value"), Part((("entry", 1),), "modulo", 10.0),
    Part((("entry", 1),), "bit", 3), Part((("entry", 1),), "is", "b"),
    Part((("entry", 1),), "letter", 0), Part((("place", 1),), "value"),
    Part((("place", 5),), "there"), Part((("place", -1),), "is", "b"),
    Part((("key", "a"),), "there"),
]  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("part", PARTS, ids=str)
def test_what_is_read_of_a_row_does_not_depend_on_its_neighbours(name, part):
    table, read = TABLES[name], Parts((part,))
    alone = [read(table[i : i + 1])[0, 0] for i in range(len(table))]
    together = read(table)[:, 0]
    # A None among them makes objects of all rows.
    mixed = read(to_object_array([*rows_to_objects(table).tolist(), None]))[:-1, 0]
    assert np.array_equal(alone, together, equal_nan=True)
    assert np.array_equal(mixed, together, equal_nan=True)
