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
