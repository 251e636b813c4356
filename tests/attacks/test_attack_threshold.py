"""Thresholds on simple scores: the scores, the entry that tells, atoms, soundness."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from shared_audits import (
    AUDITS,
    CONFIDENCE,
    MOST,
    UNIT,
    assert_kept,
    count_overclaims,
    lattice,
    nudged,
    rng,
)

import dpcore
from dpcore import Pair
from dpcore.attacks import Threshold
from dpcore.attacks.attack import Goal, choose_events
from dpcore.attacks.candidates import PartsScore
from dpcore.attacks.parts import Part, Parts
from dpcore.attacks.threshold import Closer, Coordinate, RowMax, RowMin, RowSum
from dpcore.bounds import clopper_pearson
from dpcore.events import Above
from dpcore.pairs import zeros_ones
from dpcore.published import HalfNoise, LaplaceMechanism
from dpcore.records import Counts

# Scores.


def test_closer_counts_infinities_as_far_and_nan_as_unknown():
    score = Closer("l1", [0.0, 0.0], [1.0, 3.0])
    outputs = np.array([[-np.inf, -np.inf], [np.inf, np.inf], [np.inf, -np.inf], [np.nan, 0.0]])
    assert score(outputs)[:3].tolist() == [4.0, -4.0, 2.0]
    assert np.isnan(score(outputs)[3])
    assert np.isnan(Closer("l2", [0.0, 0.0], [1.0, 1.0])(outputs[2:])).all()
    # Half the difference of squares; what both norms are of any rows is compared in Rust.
    assert Closer("l2", [0.0, 0.0], [1.0, 3.0])(np.array([[1.0, 0.0]])).tolist() == [4.0]


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int64, bool, np.uint16])
def test_scores_read_every_kind_of_numbers(dtype):
    outputs = rng(5).integers(0, 2, (50, 3)).astype(dtype)
    expected = outputs.astype(np.float64)
    for score in (Coordinate(2), RowSum(), RowMin(), RowMax(), Closer("l1", [0.0] * 3, [1.0] * 3)):
        found = score(outputs)
        assert (found.dtype, found.tolist()) == (np.float64, score(expected).tolist())
        assert score(np.asfortranarray(outputs)).tobytes() == found.tobytes()
    for score, known in ((RowSum(), np.sum), (RowMin(), np.min), (RowMax(), np.max)):
        assert score(outputs).tolist() == known(expected, axis=1).tolist()
    assert Coordinate(2)(outputs).tolist() == expected[:, 2].tolist()


def test_rows_of_any_shape():
    flat = rng(6).normal(size=(40, 6))
    cube = flat.reshape(40, 2, 3)
    assert Coordinate(4)(cube).tolist() == flat[:, 4].tolist()
    assert RowSum()(cube).tolist() == RowSum()(flat).tolist()
    assert Coordinate(0)(flat[:, 0]).tolist() == flat[:, 0].tolist()


def test_nan_in_a_row_is_neither_side():
    outputs = np.array([[1.0, np.nan], [np.inf, -np.inf], [2.0, 3.0]])
    for score in (RowSum(), RowMin(), RowMax(), Coordinate(1), Closer("l2", [0, 0], [1, 1])):
        assert np.isnan(score(outputs)[0])
        for side in ("above", "below"):
            assert not Above(score, 0.5, side)(outputs)[0]
    assert np.isnan(RowSum()(outputs)[1])
    assert RowMin()(outputs)[1] == -np.inf


ENDS = [0.0, 1.0], [1.0, 1.0]
SCORES = [Coordinate(3), Closer("l1", *ENDS), Closer("l2", *ENDS), RowSum(), RowMin(), RowMax()]


@pytest.mark.parametrize("score", SCORES, ids=str)
def test_scores_pickle_and_are_kept_by_json(score):
    assert_kept(score)


def test_only_a_part_with_few_values_may_be_rare():
    """23 of 1,000 against 5: enough for a part, by luck for one of the scores of plain numbers."""
    sides = np.zeros((2, 1000, 1))
    sides[0, :23] = sides[1, :5] = 1.0
    part = PartsScore(Parts((Part((("entry", 0),), "value"),)), Coordinate(0))
    plain, of_part = (
        choose_events([one], *sides, Goal(10_000))[0].merit for one in (Coordinate(0), part)
    )
    assert plain < 0.0 < of_part


def names(scores):
    return [str(score) for score in scores]


def choose(scores, outputs, outputs_prime, trials=10**6):
    """The best choice, judged on outputs that the scores have not seen."""
    return max(choose_events(scores, outputs, outputs_prime, Goal(trials)), key=lambda c: c.merit)


def copies(x, size, generator):
    """20 numbers x + Lap(20): the mechanism whose L1 score has atoms."""
    return np.asarray(x) + generator.laplace(0.0, 20.0, (size, 20))


# Which scores are tried.


def test_which_scores_are_tried():
    outputs = rng(7).normal(size=(100, 3))
    pair = Pair([0.0, 0.0, 0.0], [1.0, 2.0, 0.0])
    found = names(Threshold().candidates(outputs, outputs + 1, pair))
    assert sorted(found) == [
        "closer to x than to x' in L1", "closer to x than to x' in L2", "entry 0", "entry 1",
        "entry 2", "largest entry", "smallest entry", "sum of the entries",
    ]  # fmt: skip
    # With one shift for all entries the L2 score is the sum.
    even = names(Threshold().candidates(outputs, outputs + 1, Pair([0.0], [1.0])))
    assert "closer to x than to x' in L1" in even
    assert "closer to x than to x' in L2" not in even
    # An input that does not fit the outputs, is no vector or is the same leaves the distances out.
    others = ("a", "b"), ([0, 0], [1, 1]), ([0.0], [0.0]), ([[0], [0, 1]], [1]), ({}, 1)
    for other in others:
        found = names(Threshold().candidates(outputs, outputs, Pair(*other)))
        assert not [name for name in found if "closer" in name]


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        ("l1", ["closer to x than to x' in L1"]), ("l2", ["closer to x than to x' in L2"]),
        ("min", ["smallest entry"]), ("max", ["largest entry"]), ("sum", ["sum of the entries"]),
        (1, ["entry 1"]), (np.int64(0), ["entry 0"]), (2, []),
    ],
)  # fmt: skip
def test_one_score_by_name(score, expected):
    outputs = rng(8).normal(size=(50, 2))
    assert names(Threshold(score).candidates(outputs, outputs, UNIT)) == expected


def test_one_entry_needs_one_score_and_none_is_left_without_outputs_of_one_width():
    for sides in ([np.empty((0, 2))] * 2, [np.zeros((5, 2)), np.zeros((5, 3))]):
        assert Threshold().candidates(*sides, UNIT) == ()
    outputs = rng(9).normal(size=50)
    assert names(Threshold().candidates(outputs, outputs, UNIT)) == ["entry 0"]
    found = names(Threshold("l1").candidates(outputs, outputs, UNIT))
    assert found == ["closer to x than to x' in L1"]


def test_a_function_of_your_own_scores_anything():
    def length(outputs):
        return np.array([len(text) for text in outputs], dtype=float)

    def words(x, size, generator):
        return np.where(generator.random(size) < (0.6 if x else 0.2), "long word", "word")

    report = dpcore.audit(words, (1, 0), attack=Threshold(length), trials=20_000, rng=1)
    assert 1.0 < report.epsilon_lower < math.log(3)
    assert report.event.score is length


@pytest.mark.parametrize("index", [0, 77, 127])
def test_the_telling_entry_of_many_is_found(index):
    outputs, outputs_prime = rng(10).normal(size=(2, 4000, 128))
    outputs[:, index] += 0.5
    outputs[::7, 5] = np.nan
    assert Threshold("coordinate").candidates(outputs, outputs_prime, UNIT)[0] == Coordinate(index)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_entry_that_tells_in_its_tail_comes_before_one_that_tells_a_little(sign):
    outputs, outputs_prime = rng(11).uniform(size=(2, 20_000, 30))
    outputs[: 20_000 // 200, 13] += sign
    outputs[: 20_000 // 5, 21] = 0.9
    found = Threshold("coordinate").candidates(outputs, outputs_prime, UNIT)
    assert found[:2] == (Coordinate(13), Coordinate(21))


# What it finds.


def test_half_the_noise_is_refuted_and_the_right_noise_is_not():
    for mechanism, least, truth in ((HalfNoise(1.0), 1.6, 2.0), (LaplaceMechanism(1.0), 0.8, 1.0)):
        options = {"attack": Threshold(), "trials": 20_000, "rng": 1}
        report = dpcore.audit(mechanism, zeros_ones(1), **options)
        assert least < report.epsilon_lower < truth
        assert report.refuted == (truth > 1.0)


def test_the_smallest_entry_refutes_noise_that_is_never_negative():
    options = {"attack": Threshold("min"), "trials": 20_000, "rng": 1}
    report = dpcore.audit(dpcore.DPTextNoise(1.0), zeros_ones(16), **options)
    assert report.epsilon_lower > 7
    assert str(report.event).startswith("smallest entry ")


def test_closer_in_l1_beats_every_entry_of_many_copies():
    generator = rng(12)
    sides = [copies([x], 200_000, generator) for x in (0.0, 1.0)]
    train, rest = [side[:100_000] for side in sides], [side[100_000:] for side in sides]
    merits = {}
    for score in ("coordinate", "l1"):
        found = Threshold(score).candidates(*train, UNIT)
        merits[score] = choose(found, *rest, trials=10**8).merit
    # One entry alone loses at most 1/20; the likelihood ratio of all sees more.
    assert merits["coordinate"] < 0.05 < merits["l1"]


def test_integers_bools_and_lists():
    def geometric(x, size, generator):
        noise = generator.geometric(0.4, (2, size))
        return int(x) + noise[0] - noise[1]

    def bits(x, size, generator):
        return generator.random(size) < (0.75 if x else 0.25)

    options = {"attack": Threshold(), "trials": 50_000, "rng": 1}
    assert 0.4 < dpcore.audit(geometric, (0, 1), **options).epsilon_lower < -math.log(0.6)
    assert 1.05 < dpcore.audit(bits, (1, 0), **options).epsilon_lower < math.log(3)


# Atoms: equal real numbers that are different doubles.


rounded = partial(lattice, scale=1.0)
"""What is equal for x = 0 and x = 0.3 differs in the last bits."""


def test_a_threshold_never_splits_an_atom():
    generator = rng(13)
    sides = [rounded([x], 20_000, generator) for x in (0.0, 0.3)]
    plain, moved = (set(side.ravel()) for side in sides)
    assert plain.isdisjoint(moved - set(np.round(sides[1].ravel(), 1)))
    event = Threshold()(*sides, Pair([0.0], [0.3]))
    for side in sides:
        assert (event(side) == event(nudged(side))).all()
    # The control: a threshold at the atom itself does split it.
    splits = Above(event.score, float(sides[1][0, 0]))
    assert (splits(sides[1]) != splits(nudged(sides[1]))).any()


def test_the_atoms_of_the_l1_score_stay_whole():
    generator = rng(14)
    sides = [copies([x], 50_000, generator) for x in (0.0, 1.0)]
    score = Closer("l1", np.zeros(20), np.ones(20))

    def naive(outputs):
        return np.sum(np.abs(outputs - 1.0) - np.abs(outputs), axis=1)

    def spread(values):
        """Distinct doubles near the whole numbers, where the atoms are."""
        near = np.abs(values - np.rint(values)) < 1e-9
        return len(np.unique(values[near])), len(np.unique(np.rint(values[near])))

    doubles, atoms = spread(score(sides[0]))
    assert doubles < 2 * atoms
    # The control: the formula as it stands in the books has dozens of doubles for each atom.
    assert spread(naive(sides[0]))[0] > 10 * atoms
    for made in (score, naive):
        event = choose([made], *sides, trials=10**7).event
        assert abs(event.threshold - round(event.threshold)) > 1e-8
        for side in sides:
            assert (event(side) == event(nudged(side))).all()


# Soundness.


def null(x, size, generator):
    return np.round(generator.laplace(0.0, 1.0, (size, 4)), 1)


@pytest.mark.sweep
def test_a_mechanism_that_ignores_its_input_is_not_overclaimed():
    assert count_overclaims(Threshold(), null, UNIT) <= MOST


@pytest.mark.sweep
def test_a_claim_that_is_exactly_true_is_not_overclaimed():
    assert count_overclaims(Threshold(), dpcore.Laplace(1.0), UNIT, 1.0) <= MOST


@pytest.mark.sweep
def test_choosing_on_the_counted_draws_overclaims():
    """The control: null audits whose event is the best-looking one on the draws it counts."""
    found = 0
    for seed in range(AUDITS):
        sides = [null(x, 1000, rng((seed, x))) for x in (0, 1)]
        hits = []
        for score in Threshold().candidates(*sides, UNIT):
            values, values_prime = (np.sort(score(side)) for side in sides)
            points = np.quantile(values, np.linspace(0.002, 0.998, 200)) + 0.03
            below = (np.searchsorted(side, points) for side in (values, values_prime))
            hits += zip(*below, strict=True)
        counts = np.array(hits, dtype=float)
        gaps = np.abs(counts[:, 0] - counts[:, 1]) / np.sqrt(counts.sum(axis=1) + 1.0)
        k, k_prime = map(int, hits[np.argmax(gaps)])
        best_looking = Counts(k, 1000, k_prime, 1000)
        ways = best_looking, best_looking.swapped()
        ways += tuple(counts.complement() for counts in ways)
        found += max(clopper_pearson(way, 0.0, CONFIDENCE) for way in ways) > 0.0
    assert found > MOST
