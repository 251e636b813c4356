"""The scores of the threshold attack."""

from __future__ import annotations

import numpy as np
import pytest
from shared_audits import assert_kept, rng

from dpcore.attacks.attack import Goal, choose_events
from dpcore.attacks.candidates import OfParts
from dpcore.attacks.parts import Part, Parts
from dpcore.attacks.threshold import Closer, Coordinate, RowMax, RowMin, RowSum
from dpcore.events import Above

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
    part = OfParts(Parts((Part((("entry", 0),), "value"),)), Coordinate(0))
    plain, of_part = (
        choose_events([one], *sides, Goal(10_000))[0].merit for one in (Coordinate(0), part)
    )
    assert plain < 0.0 < of_part
