"""Coordinatewise: the event and its pooled counts, what is learnt, what is refused."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from scipy.stats import binom
from shared_coordinates import ALPHA, CONFIDENCE, certified, constant, geometric, laplace
from shared_messages import find_missing

import dpcore
from dpcore.attacks.entrywise import Coordinatewise
from dpcore.events.every_coordinate import EveryCoordinate, Intervals
from dpcore.published import HalfNoise
from dpcore.records import Pair


def normal(sigma):
    return lambda x, size, rng: x + rng.normal(0.0, sigma, (size, x.size))


# Sets and events.


@pytest.mark.parametrize("below", [True, False])
@pytest.mark.parametrize("edges", [[0.5], [-1.0, 0.5], [-1.0, 0.5, 2.0]])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_a_set_is_its_definition(edges, below, dtype):
    values = np.array([-3, -1, 0, 1, 2, 3]).astype(dtype)
    if dtype is not np.int64:
        values = np.append(values, np.array([0.5, np.inf, -np.inf, np.nan], dtype))
    expected = []
    for value in values.tolist():
        state = below
        for edge in edges:
            state = state != (value >= edge)
        expected.append(state and not math.isnan(value))
    assert Intervals(np.array(edges), below)(values).tolist() == expected
    twice = np.stack([values, values[::-1]])
    assert Intervals(np.array(edges), below)(twice).tolist() == [expected, expected[::-1]]


def test_sets_in_words():
    assert str(Intervals(np.array([0.0, 1.0, 2.0]), True)) == "y < 0 or 1 <= y < 2"
    assert str(Intervals(np.array([0.0, 1.0, 2.0]), False)) == "0 <= y < 1 or y >= 2"
    assert str(Intervals(np.arange(20.0), True)).endswith("or ... (11 intervals)")


GROUPS = [
    ((0, 1, 2, 3, 4),), ((1, 2), (3, 4)), ((0, 2, 4), (1, 3)), ((4,), (0, 3, 1)), ((3, 2),),
]  # fmt: skip


@pytest.mark.parametrize("groups", GROUPS, ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_event_and_its_pooled_counts_are_their_definition(groups, dtype):
    rng = np.random.default_rng(1)
    outputs = rng.normal(0.5, 1.0, (500, 5)).astype(dtype)
    outputs[rng.random((500, 5)) < 0.02] = np.nan
    sets = (Intervals(np.array([0.0]), False), Intervals(np.array([-0.5, 1.5]), False))
    event = EveryCoordinate(groups, sets[: len(groups)], 5)
    inside = [
        [[bool(one(row[c : c + 1])[0]) for c in group] for row in outputs]
        for group, one in zip(groups, event.sets, strict=True)
    ]
    pooled = tuple(sum(map(sum, group)) for group in inside)
    joint = [all(map(all, row)) for row in zip(*inside, strict=True)]
    for shape in ((500, 5), (500, 5, 1)):
        assert event.pooled(outputs.reshape(shape)) == pooled
        assert event(outputs.reshape(shape)).tolist() == joint
    assert 0 < sum(joint) < 500
    assert event.multiplicities == tuple(map(len, groups))
    # Blocks of any size add up.
    parts = [event.pooled(part) for part in np.array_split(outputs, 7)]
    assert tuple(map(sum, zip(*parts, strict=True))) == pooled
    assert event.pooled(outputs[:0]) == (0,) * len(groups)


def test_an_event_is_a_record_and_says_what_is_assumed():
    event = EveryCoordinate(((0, 2), (1,)), (Intervals(np.zeros(1), True),) * 2, 4)
    again = pickle.loads(pickle.dumps(event))
    assert (again, hash(again)) == (event, hash(event))
    assert str(event) == "y < 0 in each of 2 of 4 coordinates; y < 0 in each of 1 of 4 coordinates"
    assert not find_missing(event.assumption, "independent", "(2, 1 of 4)")


# What is learnt.


def test_the_under_noised_control_shows_its_whole_loss_at_128_entries():
    # The vote certifies next to nothing here; the true loss is twice the claim.
    system = HalfNoise(epsilon=1.0)
    pair = system.default_pair(128)
    bound, event, _ = certified(lambda x, n, r: dpcore.sample(system, x, n, rng=r), pair, 20_000)
    assert 1.7 < bound < 2.0
    assert event.multiplicities == (128,)


@pytest.mark.parametrize(
    ("mechanism", "pair", "trials", "least", "truth"),
    [
        (laplace(4.0), Pair(np.zeros(8), np.ones(8)), 50_000, 1.85, 2.0),
        (laplace(4.0), Pair(np.ones(8), np.zeros(8)), 50_000, 1.85, 2.0),
        (laplace(4.0), Pair(np.zeros(1), np.ones(1)), 50_000, 0.2, 0.25),
        (laplace(4.0), Pair(np.tile([0.0, 1.0], 4), np.tile([1.0, 0.0], 4)), 50_000, 1.8, 2.0),
        (laplace(4.0), Pair(np.r_[0.0, 3.0, 5.0], np.r_[1.0, 3.0, 7.0]), 10**5, 0.6, 0.75),
        (geometric, Pair(np.zeros(6), np.ones(6)), 50_000, 2.9, -6 * math.log(0.6)),
    ],
)
def test_the_loss_of_all_coordinates_is_certified(mechanism, pair, trials, least, truth):
    bound, event, joint = certified(mechanism, pair, trials)
    assert least < bound < truth
    # The rows' own events agree with the product of the pooled shares.
    assert max(joint) <= trials
    assert sum(event.multiplicities) <= pair.x.size


def test_equal_inputs_are_left_out_and_groups_are_those_of_equal_pairs():
    pair = Pair(np.array([0.0, 3.0, 0.0, 1.0]), np.array([1.0, 3.0, 1.0, 0.0]))
    _, event, _ = certified(laplace(2.0), pair, 10_000)
    assert sorted(event.groups) == [(0, 2), (3,)]


def test_a_union_is_learnt_where_a_half_line_sees_little():
    # Noise that is often tiny: between the inputs, and beyond, x' is likelier; near x, x.
    def cauchy(x, size, rng):
        return x + 0.5 * rng.standard_cauchy((size, x.size))

    bound, event, _ = certified(cauchy, Pair(np.zeros(4), np.ones(4)), 50_000, pilot=20_000)
    assert event.sets[0].edges.size > 1
    # What the best half-line could certify: four times the largest log ratio of tails.
    points = np.linspace(-50.0, 50.0, 20_001)
    tails = [0.5 - np.arctan((points - c) / 0.5) / np.pi for c in (0.0, 1.0)]
    best = np.abs(np.log(np.concatenate([tails[0] / tails[1], (1 - tails[0]) / (1 - tails[1])])))
    assert bound > 4.0 * best.max()


def test_with_a_delta_the_event_must_be_likely():
    pair = Pair(np.zeros(8), np.ones(8))
    bound, _, joint = certified(normal(4.0), pair, 10**5, delta=1e-3, pilot=20_000)
    assert max(joint) > 100
    # mu = sqrt(8)/4: the exact epsilon at this delta is 2.053.
    assert 1.0 < bound < 2.053
    # Without a delta an event far out is worth more, and is hardly ever seen as a whole.
    free, _, joint = certified(normal(4.0), pair, 10**5, pilot=20_000)
    assert free > bound
    assert max(joint) < 100


@pytest.mark.sweep
def test_no_more_overclaims_than_the_confidence_allows():
    audits, truth = 300, 8 / 4.0
    pair, limit = Pair(np.zeros(8), np.ones(8)), binom.ppf(1.0 - ALPHA, audits, 1.0 - CONFIDENCE)
    small = {"trials": 2000, "pilot": 500}
    bounds = [certified(laplace(4.0), pair, seed=seed, **small)[0] for seed in range(audits)]
    assert sum(bound > truth for bound in bounds) <= limit
    assert np.median(bounds) > 0.5 * truth
    # The control: noise of a scale 40 % smaller is caught by the same count.
    bounds = [certified(laplace(2.4), pair, seed=seed, **small)[0] for seed in range(100)]
    assert sum(bound > truth for bound in bounds) > limit


# Awkward outputs and arguments.


def test_a_constant_mechanism_certifies_nothing_and_the_identity_without_end():
    bound, event, _ = certified(lambda x, n, r: np.zeros((n, 2)), Pair([0, 0], [1, 1]), 100)
    assert bound == 0.0
    assert str(event).endswith(" in each of 2 coordinates")
    bound, _, joint = certified(constant, Pair([0, 0], [1, 1]), 1000)
    assert bound > 10.0
    assert sorted(joint) == [0, 1000]


@pytest.mark.parametrize("size", [2, 3, 10])
def test_tiny_pilots_choose_something(size):
    pair, rng = Pair(np.zeros(3), np.ones(3)), np.random.default_rng(1)
    event = Coordinatewise()(*(laplace(1.0)(x, size, rng) for x in (pair.x, pair.x_prime)), pair)
    assert isinstance(event, EveryCoordinate)


@pytest.mark.parametrize("swapped", [False, True])
def test_the_side_that_leads_is_found_where_the_event_never_happens(swapped):
    mechanism = dpcore.published.HalfNoise(1.0, sensitivity=128.0)
    ends = np.zeros(128), np.ones(128)
    options = {"attack": Coordinatewise(), "claim": 1.0, "trials": 10**5}
    for seed in range(3):
        audit = dpcore.audit(mechanism, ends[::-1] if swapped else ends, rng=seed, **options)
        assert (audit.counts.k, audit.counts.k_prime) == (0, 0)
        # It loses 2; 1.28e7 draws of a coordinate show most of that.
        assert 1.6 < audit.epsilon_lower < 2.0
