"""What equal numbers hide: the sign of a zero, and the type of an array."""

from __future__ import annotations

import numpy as np
import pytest

import dpcore
from dpcore import Pair
from dpcore.attacks.threshold import NegativeZeros
from dpcore.auditing.output_forms import note_type_difference

UNIT = Pair([0.0], [1.0])


def audit(mechanism, **options):
    return dpcore.audit(mechanism, UNIT, trials=2 * 10**4, claim=0.5, rng=7, **options)


def signed(x, size, rng):
    """Rounded noise; its zeros are negative on x' alone."""
    outputs = np.round(rng.normal(size=(size, 3))) + 0.0
    return np.where(outputs == 0.0, -0.0, outputs) if x[0] else outputs


def rounded(x, size, rng):
    """Rounded noise as it comes: half of its zeros are negative, whatever the input."""
    return np.round(rng.normal(size=(size, 3)))


def test_a_negative_zero_is_a_finding_and_no_refutation():
    report = audit(signed)
    found = report.floating_point
    assert isinstance(found.event.score, NegativeZeros)
    assert found.epsilon_lower > 7.0
    assert report.epsilon_lower < 0.1
    assert not report.refuted
    assert "number of entries that are -0.0" in str(report)
    assert dpcore.Audit.from_json(report.to_json()).floating_point == found
    # It counts where the last bits are asked for.
    assert audit(signed, floats=True).refuted
    # Negative zeros of both sides are no finding.
    assert audit(rounded).floating_point is None


def test_the_score_counts_the_sign_of_zeros_alone():
    rows = np.array([[-0.0, 0.0, -1.0], [-0.0, -0.0, -5e-324], [np.nan, -np.nan, -np.inf]])
    assert NegativeZeros()(rows).tolist() == [1.0, 2.0, 0.0]
    assert NegativeZeros()(rows.astype(np.float32)).tolist()[:1] == [1.0]
    assert NegativeZeros()(np.zeros((2, 2), dtype=int)).tolist() == [0.0, 0.0]


def typed(kind, kind_prime):
    def mechanism(x, size, rng):
        return (np.round(rng.normal(0.0, 3.0, size)) + 0.0).astype(kind_prime if x[0] else kind)

    return mechanism


@pytest.mark.parametrize("kinds", [("f8", "i8"), ("i8", "f4"), ("f4", "f8"), ("i8", "i4")], ids=str)
def test_types_that_differ_are_a_note(kinds):
    report = audit(typed(*kinds))
    names = [np.dtype(kind).name for kind in kinds]
    said = f"outputs on x are of type {names[0]}, those on x' of type {names[1]}"
    assert [note[: len(said)] for note in report.notes] == [said]
    assert report.refuted is False
    assert dpcore.Audit.from_json(report.to_json()).notes == report.notes


def changing(x, size, rng):
    """Whole numbers, but floats where one of them is missing: by chance, on either side."""
    outputs = rng.integers(0, 9, size)
    return np.where(rng.random(size) < 1e-4, np.nan, outputs) if rng.random() < 0.5 else outputs


@pytest.mark.parametrize("kind", ["f8", "i8"])
def test_types_that_agree_or_change_by_chance_are_none(kind):
    assert audit(typed(kind, kind)).notes == ()
    for seed in range(20):
        report = dpcore.audit(changing, UNIT, trials=500, claim=0.5, rng=seed)
        assert "type" not in str(report.notes)


EXPLAINED = [
    ([1, 2], [1.0, 2.5]), ([1, 2], [1.0, np.nan]), ([True, False], [1, 2]), (["a"], ["abc"]),
    ([1, 2], ["1", "2"]), ([1.0, 2.0], [1.0 + 0j, 2.0 + 1j]), ([1, 2], [1, None]),
    ([2**63 - 1], [2**63]),
]  # fmt: skip
UNEXPLAINED = [
    ([True, False], [1, 0]), ([1.0, 2.0], [1.0 + 0j, 2.0]), ([True], [1.0]),
    ([1], np.array([1], np.uint64)),
]  # fmt: skip


@pytest.mark.parametrize(("notes", "sides"), [(0, EXPLAINED), (1, UNEXPLAINED)])
def test_types_that_the_values_explain_are_no_note_and_others_are_one(notes, sides):
    for one, other in sides:
        found = note_type_difference(np.array(one), np.array(other))
        back = note_type_difference(np.array(other), np.array(one))
        assert (len(found), len(back)) == (notes, notes), (one, other)
