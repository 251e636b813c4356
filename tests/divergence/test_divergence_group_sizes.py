"""Groups whose sizes depend on their values: two laws, and words that say which is meant."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpcore.divergence import renyi, two_sample_tests
from dpcore.divergence.points import find_points
from dpcore.divergence.two_sample_tests import LEVEL, size_p_value

ALPHA = 1e-4


def grouped(seed, groups=200, tied="", dim=1):
    """Rows of groups of 1 or 9, whose size is the sign or the size of a value, or neither."""
    rng = np.random.default_rng((seed, 5))
    values = rng.normal(size=(groups, dim))
    large = {
        "sign": values[:, 0] > 0.0,
        "size": np.abs(values[:, 0]) > 0.7,
        "": rng.random(groups) < 0.5,
    }[tied]
    labels = np.repeat(np.arange(groups), np.where(large, 9, 1))
    return values[labels] + 0.3 * rng.normal(size=(len(labels), dim)), labels


def p_value(seed, **options):
    y0, labels = grouped(seed, **options)
    return size_p_value(find_points(y0, y0[::-1], groups0=labels), np.random.default_rng(seed))


def test_the_level_holds_for_sizes_that_depend_on_nothing(monkeypatch):
    monkeypatch.setattr(two_sample_tests, "_SIZE_PERMUTATIONS", 99)
    runs = [p_value(seed, groups=60, dim=1 + seed % 3) for seed in range(300)]
    assert stats.binom.sf(sum(p <= 0.05 for p in runs) - 1, 300, 0.05) > ALPHA
    assert sum(p <= 0.05 for p in runs) > 2


@pytest.mark.parametrize("tied", ["sign", "size"])
def test_sizes_that_depend_on_values_are_found(tied):
    assert all(p_value(seed, tied=tied) <= LEVEL for seed in range(5))


def test_sets_without_groups_of_several_sizes_are_not_tested():
    rows, rng = np.arange(40.0), np.random.default_rng(0)
    assert size_p_value(find_points(rows, rows + 1.0), rng) is None
    labels = np.arange(40) // 4
    assert size_p_value(find_points(rows, rows, groups0=labels, groups1=labels), rng) is None


@pytest.mark.parametrize("tied", ["sign", ""])
def test_certificate_and_estimate_say_of_which_law_they_speak(tied):
    (y0, first), (y1, second) = (grouped(seed, 300, tied) for seed in (1, 2))
    options = {"alphas": [1.5], "certified": True, "rng": 1}
    estimate = renyi(y0, y1 + 0.5, groups0=first, groups1=second, **options)
    two = [note for note in estimate.notes if "law of one random row of each group" in note]
    assert len(two) == (1 if tied else 0)
    assert (estimate.checks.size_p <= LEVEL) == bool(tied)
    assert "of the law of one random row of each group" in str(estimate.certificate)
    assert ("epsilon_rdp of all rows" in " ".join(estimate.epsilon(0.01).reasons)) == bool(tied)
    # Rows without groups have one law, and no such word.
    alone = renyi(y0[:500], y1[:500], rows="independent", error=None, **options)
    assert "each group" not in str(alone)
