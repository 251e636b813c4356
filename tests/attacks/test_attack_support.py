"""Differences of supports: regions, hypotheses from the pilot, and bad arguments."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from shared_audits import AUDITS, CONFIDENCE, MOST, UNIT, assert_kept, count_overclaims, nudged, rng

import dpcore
from dpcore.attacks import Support, support
from dpcore.attacks.attack import Goal
from dpcore.attacks.grains import EXACT, Tolerance
from dpcore.attacks.support import AtAtoms, Outside, Repeats
from dpcore.attacks.threshold import RowMax, RowMin, Special
from dpcore.bounds import clopper_pearson
from dpcore.pairs import zeros_ones
from dpcore.records import Counts


def found(outputs, outputs_prime):
    return Support().candidates(outputs, outputs_prime, UNIT)


def kinds(scores):
    return [type(score) for score in scores]


def audit(mechanism, pair=(0.0, 1.0), trials=20_000, **settings):
    return dpcore.audit(mechanism, pair, attack=Support(), trials=trials, rng=1, **settings)


# Scores.


def test_special_counts():
    outputs = np.array([[np.nan, np.inf, 1.0], [np.nan, np.nan, 0.0], [-np.inf, np.inf, 0.0]])
    assert Special("nan")(outputs).tolist() == [1.0, 2.0, 0.0]
    assert Special("inf")(outputs).tolist() == [1.0, 0.0, 2.0]
    assert Special("nan")(np.array([1, 2])).tolist() == [0.0, 0.0]


def test_outside_counts():
    score = Outside([0.0, -np.inf, 1.0], [2.0, 5.0, np.inf])
    outputs = np.array(
        [[0.0, 5.0, 1.0], [-0.1, 5.1, 0.9], [np.nan, -1e300, np.inf], [np.inf, np.nan, -np.inf]]
    )
    assert score(outputs).tolist() == [0.0, 3.0, 0.0, 2.0]


def test_repeats_count_entries_less_distinct_values():
    outputs = rng(1).integers(0, 5, (200, 6)) / 10
    expected = [6 - len(set(row)) for row in outputs.tolist()]
    assert Repeats(0.0)(outputs).tolist() == expected
    moved = outputs + rng(2).integers(-2, 3, outputs.shape) * 1e-16
    assert Repeats(1e-9)(moved).tolist() == expected
    assert Repeats(0.0)(moved).tolist() != expected
    assert Repeats(0.0)(np.array([[np.nan, np.nan, 1.0]])).tolist() == [0.0]


def test_at_atoms_counts_with_signs():
    score = AtAtoms([1, 0, 0], [-0.1, 0.9, 2.0], [0.1, 1.1, 2.0], [1, 1, -1])
    outputs = np.array([[1.0, 0.0], [2.0, 0.0], [2.0, 5.0], [5.0, 5.0], [1.1, 0.11]])
    assert score(outputs).tolist() == [2.0, 0.0, -1.0, 0.0, 1.0]


SCORES = [
    Special("nan"), Outside([0.0, -np.inf], [1.0, np.inf]), Outside([0.0, 0.0], [1.0, np.inf]),
    Repeats(1e-9), AtAtoms([0], [0.5], [0.6], [-1]),
    AtAtoms([0, 1], [0.5, 0.1], [0.6, 0.2], [-1, 1]),
]  # fmt: skip


@pytest.mark.parametrize("score", SCORES, ids=str)
def test_scores_pickle_and_are_kept_by_json(score):
    assert_kept(score)


def test_scores_read_as_sentences():
    assert [str(score) for score in SCORES] == [
        "number of entries that are NaN",
        "entry 0 is outside [0, 1]",
        "number of entries outside their ranges (2 of them have one)",
        "number of entries that repeat another",
        "entry 0 equals 0.55 (seen on x' alone)",
        "entries at 2 values seen on one side alone",
    ]


# Hypotheses.


def test_which_hypotheses_are_tried():
    plain = rng(3).normal(size=(2, 5000, 3))
    assert kinds(found(*plain))[-2:] == [RowMin, RowMax]
    assert set(kinds(found(*rng(3).normal(size=(2, 5000))))) <= {Outside, Special}
    odd = plain.copy()
    odd[0, 3, 1], odd[1, 5, 2] = np.nan, np.inf
    assert kinds(found(*odd))[:2] == [Special, Special]
    assert {score.kind for score in found(*odd)[:2]} == {"nan", "inf"}


GRAIN = Tolerance(0, absolute=1e-9)


def widen_range(values, grain):
    """Return the range of one column."""
    return tuple(float(end[0]) for end in support._extrapolated_ranges(values[np.newaxis], [grain]))


def test_a_range_is_wider_than_the_values_in_it():
    values = rng(4).exponential(size=4000)
    low, high = widen_range(values, GRAIN)
    ordered = np.sort(values)
    assert low == pytest.approx(ordered[0] - 1.381966011 * (ordered[7] - ordered[0]), abs=1e-8)
    assert high == pytest.approx(ordered[-1] + 1.381966011 * (ordered[-1] - ordered[-8]), abs=1e-8)
    # An atom at the end has no gaps: only rounding needs a margin.
    low, high = widen_range(np.array([2.0] * 50 + [3.0] * 50), GRAIN)
    assert (low, high) == pytest.approx((2.0 - 4e-9, 3.0 + 4e-9), abs=1e-12)
    assert widen_range(np.array([np.nan, np.inf]), GRAIN) == (-np.inf, np.inf)
    assert widen_range(np.array([5.0]), EXACT) == (5.0, 5.0)
    assert widen_range(np.array([3.0, 9.0]), EXACT)[0] < 3
    odd = np.concatenate([values, [np.nan, np.inf, -np.inf]])
    assert widen_range(odd, GRAIN) == widen_range(values, GRAIN)


def test_a_long_column_has_the_range_of_all_its_values():
    values = rng(5).normal(size=2**18)
    values[-1] = -50.0
    low, _ = widen_range(values, EXACT)
    assert low == pytest.approx(-50.0 - 1.381966011 * (np.sort(values)[7] + 50.0))


def test_a_range_is_kept_only_where_the_other_side_leaves_it():
    outputs, outputs_prime = rng(6).uniform(size=(2, 3000, 4))
    outputs[:, 2] -= 0.5
    boxes = [score for score in found(outputs, outputs_prime) if type(score) is Outside]
    # The first is the range of x', which x leaves downwards, the second that of x.
    below, above = boxes
    assert np.flatnonzero(below.lows > -np.inf).tolist() == [2]
    assert np.flatnonzero(above.highs < np.inf).tolist() == [2]
    assert np.isinf(below.highs).all()


def test_bools_and_small_integers():
    bits = rng(7).random((2, 400, 3)) < 0.5
    bits[0, :, 1] = True
    assert AtAtoms in kinds(found(*bits))
    assert found(*bits.astype(np.uint8))


def test_one_sided_atoms():
    values = np.round(rng(8).normal(size=(2, 4000, 2)), 3) + 1e-5 * rng(9).normal(size=(2, 4000, 2))
    values[0, :40, 1], values[1, :30, 0], values[1, :7, 1] = 7.0, 8.0, 9.0
    values[:, 50:80, 0] = 6.0
    scores = [score for score in found(*values) if type(score) is AtAtoms]
    # Not the atom that both have, nor the one seen fewer than eight times.
    assert (scores[0].entries.tolist(), scores[0].signs.tolist()) == ([1, 0], [1, -1])
    low, high = scores[0].lows, scores[0].highs
    assert ((low < [7.0, 8.0]) & (high > [7.0, 8.0]) & (high - low < 1e-6)).all()


def test_the_most_frequent_atoms_are_kept():
    outputs = np.repeat(np.arange(40.0), np.arange(10, 50))
    scores = [s for s in found(outputs, outputs + 0.5) if type(s) is AtAtoms]
    assert scores[0].entries.size == 32
    assert 22 < scores[0].lows.min() < 38 < scores[0].lows.max()


# What it finds.


def nan_leak(x, size, generator):
    outputs = generator.normal(size=(size, 3))
    if x:
        outputs[generator.random(size) < 0.01, 1] = np.nan
    return outputs


def unnoised(x, size, generator):
    """Noise forgotten once in fifty: an atom at the input itself."""
    noisy = x + generator.laplace(0.0, 1.0, size)
    return np.where(generator.random(size) < 0.02, x, noisy)


def twice(x, size, generator):
    """One noise for two entries on x alone: they agree."""
    outputs = generator.normal(size=(size, 4))
    if x:
        again = generator.random(size) < 0.01
        outputs[again, 3] = outputs[again, 0]
    return outputs


def jump(x, size, generator):
    """Far out in one of two directions, which depends on the input, in a random entry."""
    outputs = generator.uniform(size=(size, 6))
    far = generator.random(size) < 0.01
    outputs[far, generator.integers(0, 6, far.sum())] = 1.5 if x else -0.5
    return outputs


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        (nan_leak, "entries that are NaN"), (unnoised, "seen on"), (twice, "repeat another"),
        (jump, "entr"),
    ],
)  # fmt: skip
def test_rare_differences_of_supports(mechanism, words):
    report = audit(mechanism, (1.0, 0.0), trials=100_000)
    assert 3.0 < report.epsilon_lower < math.inf
    assert words in str(report.event)
    # The other way round it is as good.
    assert audit(mechanism, (0.0, 1.0), trials=100_000).epsilon_lower > 3.0


def test_dptext_leaks_and_finite_losses_are_not_called_more_than_they_are():
    for nan in ("zero", "resample", "keep"):
        assert audit(dpcore.DPTextNoise(1.0, nan), zeros_ones(4)).epsilon_lower > 6.0
    assert audit(dpcore.Laplace(1.0), UNIT, trials=10**5).epsilon_lower <= 1.0


# Soundness.


def null(x, size, generator):
    outputs = np.round(generator.laplace(0.0, 1.0, (size, 3)), 2)
    outputs[generator.random(size) < 0.02, 0] = np.nan
    return outputs


@pytest.mark.sweep
def test_a_mechanism_that_ignores_its_input_is_not_overclaimed():
    assert count_overclaims(Support(), null) <= MOST


def test_hypotheses_confirmed_on_the_draws_that_suggested_them_overclaim():
    """The control: values seen on one side only, counted where they were seen."""
    over = 0
    for seed in range(AUDITS):
        sides = [np.round(null(0, 1000, rng((seed, i)))[:, 1], 2) for i in (0, 1)]
        alone = sorted(set(sides[0]) - set(sides[1]))
        hits = int(np.isin(sides[0], alone).sum())
        over += clopper_pearson(Counts(hits, 1000, 0, 1000), 0.0, CONFIDENCE) > 0.0
    assert over > MOST


def test_rounding_never_moves_an_output_across_a_hypothesis():
    generator = rng(10)
    sides = [x + np.round(generator.laplace(0.0, 1.0, (20_000, 3)), 1) for x in (0.0, 0.3)]
    scores = [*found(*sides), Repeats(1e-9 * np.abs(sides[0]).max())]
    assert {Outside, RowMin, RowMax} <= set(kinds(scores))
    for score, side in itertools.product(scores, sides):
        slack = 1e-15 if type(score) in (RowMin, RowMax) else 0.0
        np.testing.assert_allclose(score(side), score(nudged(side)), rtol=slack)
    # Doubles of x + 0.3 differ from the multiples of 0.1, but no atom is one side's alone.
    alone = set(sides[1].ravel()) - set(sides[0].ravel())
    assert np.isin(sides[1], list(alone)).mean() > 0.2
    assert AtAtoms not in kinds(scores)


def with_rare_values(both):
    """Laplace noise, and with probability 1e-4 a value that this side alone has."""

    def mechanism(x, size, generator):
        outputs = x + generator.laplace(0.0, 1.0, (size, 1))
        if both or x[0] == 0.0:
            outputs[generator.random(size) < 1e-4] = 0.25 if both else 0.25 + x[0]
        return outputs

    return mechanism


@pytest.mark.parametrize("pair", [([0.0], [1.0]), ([1.0], [0.0])])
def test_a_value_of_one_in_ten_thousand_is_found_on_the_whole_pilot(pair):
    """Its own draws certify 3.1 at best; the noise alone loses 1."""
    rare = with_rare_values(False)
    reports = [dpcore.audit(rare, pair, claim=1.1, rng=seed) for seed in range(5)]
    assert np.median([report.epsilon_lower for report in reports]) > 2.5
    # The twin, with the same value on both sides.
    report = dpcore.audit(with_rare_values(True), pair, claim=1.1, rng=3)
    assert 0.9 < report.epsilon_lower < 1.0


def test_one_sided_values_among_many_are_luck():
    """5,000 values on both sides: some are seen on one alone, and none of them is an event."""

    def mechanism(x, size, generator):
        return generator.integers(5_000, size=(size, 1)) * 0.1

    outputs = [mechanism(None, 10_000, rng(seed)) for seed in (1, 2)]
    assert support.rare_values_event(*outputs, Goal(10**6)) is None
