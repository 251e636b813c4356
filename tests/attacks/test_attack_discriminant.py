"""Linear discriminants: what the score adds up, and which directions the attack finds."""

from __future__ import annotations

import numpy as np
import pytest

import dpcore
from dpcore.attacks import Discriminant, Threshold
from dpcore.attacks.classifier import LinearScore


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
@pytest.mark.parametrize("entries", [(0, 1, 2, 3), (0, 3), (2,), (3, 1, 0, 2), (1, 1, 0, 0)])
def test_the_score_is_the_weighted_sum_of_its_entries(dtype, entries):
    rng = np.random.default_rng(1)
    rows = (rng.normal(size=(50, 4)) * 9).astype(dtype)
    centres, weights = rng.normal(size=(2, len(entries)))
    expected = (rows[:, list(entries)] - centres) @ weights
    np.testing.assert_allclose(LinearScore(entries, centres, weights)(rows), expected, rtol=1e-12)


def test_a_missing_entry_adds_nothing():
    rows = np.array([[1.0, np.nan, 3.0], [1.0, 2.0, 3.0], [np.nan] * 3])
    score = LinearScore([0, 1, 2], [0.5, 2.0, 1.0], [2.0, 7.0, 1.0])
    assert score(rows).tolist() == [3.0, 3.0, 0.0]


def shared_noise(x, size, rng):
    """Noise of loss .1 in each column, but of loss 2 in the difference of two of them."""
    rows = rng.laplace(scale=10.0, size=(size, 6))
    rows[:, 4] = rows[:, 1] + rng.laplace(scale=0.5, size=size)
    rows[:, 1] += x
    return rows


def separate_noise(x, size, rng):
    """Laplace noise of loss 1 in one column, and noise of the same size in the others."""
    rows = rng.laplace(scale=1.0, size=(size, 6))
    rows[:, 1] += x
    return rows


def test_a_direction_that_noise_leaves_free_is_found():
    """Fixed seeds; negative controls: single columns, and a mechanism of loss 1."""
    options = {"claim": 1.0, "trials": 50_000, "rng": 3}
    report = dpcore.audit(shared_noise, (1.0, 0.0), attack=Discriminant(), **options)
    assert 1.6 < report.epsilon_lower <= 2.1
    alone = dpcore.audit(shared_noise, (1.0, 0.0), attack=Threshold("coordinate"), **options)
    assert alone.epsilon_lower < 0.2
    sound = dpcore.audit(separate_noise, (1.0, 0.0), attack=Discriminant(), **options)
    assert 0.7 < sound.epsilon_lower <= 1.0


def test_the_scale_of_columns_changes_no_count():
    def scaled(x, size, rng):
        return shared_noise(x, size, rng) * 2.0 ** np.arange(-300, 300, 100)

    options = {"attack": Discriminant(), "trials": 20_000, "rng": 5}
    plain = dpcore.audit(shared_noise, (1.0, 0.0), **options)
    assert dpcore.audit(scaled, (1.0, 0.0), **options).counts == plain.counts


def draw_wide_sides(seed=1, rows=300, columns=120):
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=columns) / columns**0.5
    return rng.normal(size=(rows, columns)) + direction, rng.normal(size=(rows, columns)) * 2.0


def test_all_columns_of_few_rows_are_weighted_by_shift_over_variance():
    sides = draw_wide_sides()
    score, values, values_prime = Discriminant().cross_score(*([side] for side in sides))
    shift, spread = sides[0].mean(0) - sides[1].mean(0), sides[0].var(0) + sides[1].var(0)
    weights = shift / spread / np.sqrt(np.sum(shift**2 / spread))
    np.testing.assert_allclose(score.weights, weights, rtol=1e-6)
    np.testing.assert_array_equal(score.entries, np.arange(120))
    # The values of rows that fitted the weights are too far apart, those by other folds are not.
    fitted = score(sides[0]).mean() - score(sides[1]).mean()
    assert fitted > 1.3 * (values.mean() - values_prime.mean()) > 0.0


def test_the_values_of_a_fold_do_not_depend_on_how_it_differs():
    """Rows 0, 4, 8, ... of the pilot change sides: only the weights for the others see that."""
    sides = draw_wide_sides()
    exchanged = [side.copy() for side in sides]
    exchanged[0][::4], exchanged[1][::4] = sides[1][::4], sides[0][::4]
    _, *before = Discriminant().cross_score(*([side] for side in sides))
    _, *after = Discriminant().cross_score(*([side] for side in exchanged))
    centre = after[0][0] - before[1][0]
    np.testing.assert_allclose(after[0][::4] - before[1][::4], centre, atol=1e-9)
    assert not np.allclose(after[0][1::4] - before[0][1::4], centre, atol=1e-3)


def test_parts_of_a_pilot_are_read_together():
    sides = draw_wide_sides()
    whole = Discriminant().cross_score(*([side] for side in sides))
    parts = Discriminant().cross_score(*([side[:100], side[100:]] for side in sides))
    assert parts[0] == whole[0]
    np.testing.assert_array_equal(parts[1], whole[1])


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows[:200],
        lambda rows: rows[:, :30],
        lambda rows: rows.astype(str),
        lambda rows: np.zeros_like(rows),
        lambda rows: np.full_like(rows, np.nan),
    ],
)
def test_other_pilots_have_no_such_score(change):
    assert Discriminant().cross_score(*([change(side)] for side in draw_wide_sides())) is None


def test_columns_without_spread_and_numbers_that_are_not_finite_do_no_harm():
    sides = draw_wide_sides()
    for side, constant in zip(sides, (1.0, 2.0), strict=True):
        side[:, 0], side[:, 1], side[7, 2], side[:, 3] = constant, 5.0, np.inf, 0.0
        side[::2, 4] *= 1e300
    sides[0][4, 3] = 1.0
    score, *values = Discriminant().cross_score(*([side] for side in sides))
    assert 0 in score.entries
    assert not {1, 2, 4} & set(score.entries.tolist())
    assert all(np.isfinite(side).all() for side in values)
    assert min(values[1]) > max(values[0]) or min(values[0]) > max(values[1])


def add_unknown_step(x, size, rng):
    """Add Gaussian noise to a vector of 160 numbers that only the mechanism knows."""
    step = np.random.default_rng(9).normal(size=160) * 3.0 / 160**0.5
    return rng.normal(size=(size, 160)) + (step if x == "with" else 0.0)


def test_an_unknown_direction_of_many_columns_is_found():
    report = dpcore.audit(
        add_unknown_step, dpcore.Pair("with", "without"), trials=1000, claim=1.0, rng=1
    )
    assert str(report.event.score).startswith("weighted sum of 160 entries")
    assert report.epsilon_lower > 2.0
