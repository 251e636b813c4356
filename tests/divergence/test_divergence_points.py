"""Rows in, distinct points out: what is kept, what is converted, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from dpcore.divergence.estimators import find_atoms
from dpcore.divergence.points import find_points


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def test_floats_are_kept_without_a_copy():
    for dtype in (np.float32, np.float64):
        y0, y1 = normal(20, 3).astype(dtype), normal(10, 3, seed=1).astype(dtype)
        found = find_points(y0, y1)
        assert (found.rows[0] is y0, found.rows[1] is y1, found.sizes) == (True, True, (20, 10))
        assert (found.dim, found.unique, found.identical) == (3, 30, False)


def test_ids_number_the_points_by_first_occurrence():
    found = find_points([[1, 2], [0, 0], [1, 2]], [[3, 3], [-0.0, 0.0]])
    assert (found.ids[0].tolist(), found.ids[1].tolist()) == ([0, 1, 0], [2, 1])
    assert found.first_row_indices.tolist() == [0, 1, 3]
    assert [m.tolist() for m in found.multiplicity] == [[2, 1, 0], [0, 1, 1]]
    assert found.coordinates(np.array([2, 0])).tolist() == [[3, 3], [1, 2]]


def test_counts_repeat_rows_and_their_groups():
    found = find_points([5, 6, 5], [7], counts0=[2, 1, 3], counts1=[4], groups0=["b", "a", "b"])
    assert (found.sizes, found.ids[0].tolist()) == ((6, 4), [0, 0, 1, 0, 0, 0])
    assert (found.groups[0].tolist(), found.groups[1]) == ([0, 0, 1, 0, 0, 0], None)
    assert [m.tolist() for m in found.multiplicity] == [[5, 1, 0], [0, 0, 4]]
    assert found.sample(0)[:, 0].tolist() == [5, 5, 6, 5, 5, 5]
    written_out = find_points([5, 5, 6, 5, 5, 5], [7, 7, 7, 7])
    assert written_out.sample(0) is written_out.rows[0]
    assert all(map(np.array_equal, found.multiplicity, written_out.multiplicity))


def test_equal_multisets_are_identical_in_any_order():
    rows = normal(30, 4)
    assert find_points(rows, rows[::-1]).identical
    assert find_points(rows, rows, counts0=[2] * 30).identical is False
    assert find_points(rows, np.repeat(rows, 2, 0), counts0=[2] * 30).identical


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        ([1, 2], np.float64), (np.array([True, False]), np.float64),
        (np.array([1, 255], np.uint8), np.float64), (np.array([2**53, -(2**53)]), np.float64),
        (np.array([1, 2], np.float16), np.float32), (np.array([1, 2], ">f4"), np.float32),
        (np.array([1, 2], ">f8"), np.float64),
    ],
)  # fmt: skip
def test_other_numbers_are_converted_exactly(given, dtype):
    rows = find_points(given, given).rows[0]
    assert rows.dtype == dtype
    assert rows.dtype.isnative
    assert rows[:, 0].tolist() == [float(v) for v in given]


def test_sets_of_different_precision_become_float64():
    y0, y1 = normal(5, 2).astype(np.float32), normal(5, 2)
    found = find_points(y0, y1)
    assert found.rows[0].dtype == found.rows[1].dtype == np.float64
    assert np.array_equal(found.rows[0], y0)
    assert found.rows[1] is y1


def test_strided_rows_are_made_contiguous():
    wide = normal(10, 6)
    found = find_points(wide[:, ::2], np.asfortranarray(wide[:, 1::2]))
    assert all(rows.flags.c_contiguous for rows in found.rows)
    assert np.array_equal(found.rows[0], wide[:, ::2])


def test_anything_with_numpys_protocol_will_do():
    class Tensor:
        def __array__(self, dtype=None, copy=None):
            return normal(6, 2).astype(np.float32)

    assert np.array_equal(find_points(Tensor(), Tensor()).rows[0], normal(6, 2).astype(np.float32))


BAD = [
    ({"y0": ["a", "b"]}, TypeError, "y0 must be rows of real numbers"),
    ({"y0": [1j]}, TypeError, "y0 must be rows of real numbers"),
    ({"y0": np.array([1, None])}, TypeError, "y0 must be rows of real numbers"),
    ({"y0": np.ma.masked_equal([1.0, 2.0], 2.0)}, TypeError, "none of them masked"),
    ({"y0": [[1, 2], [3]]}, ValueError, "y0 must be rows of real numbers"),
    ({"y0": 3.0}, ValueError, "at least one row of at least one number"),
    ({"y1": np.zeros((2, 2, 2))}, ValueError, "y1 must be at least one row"),
    ({"y1": np.zeros((0, 2))}, ValueError, "y1 must be at least one row"),
    ({"y0": np.zeros((2, 0))}, ValueError, "at least one number"),
    ({"y1": np.zeros((2, 3))}, ValueError, "y1 must be of as many columns as y0, 2, got 3"),
    ({"y0": [2**53 + 1]}, ValueError, r"at most 2\^53, .* got 9007199254740993"),
    ({"y0": np.array([-(2**63)])}, ValueError, r"got -9223372036854775808"),
    ({"y0": np.array([2**64 - 1], np.uint64)}, ValueError, r"at most 2\^53"),
    ({"y0": [[1, 2], [np.nan, 1], [1, np.inf]]}, ValueError, r"2 of 3 rows .* row 1\), got nan"),
    ({"y1": np.array([[1, -np.inf]], np.float32)}, ValueError, r"y1 .*1 of 1 .*, got -inf"),
    ({"y0": [[1e151, 0]]}, ValueError, "at most 1e150"),
    ({"counts0": [1, 2]}, ValueError, "counts0 must be positive integers, one for each of the 3"),
    ({"counts0": [1, 2, 0]}, ValueError, "counts0 must be positive integers"),
    ({"counts0": [1.0, 2.0, 3.0]}, TypeError, "counts0 must be positive integers"),
    ({"counts0": [True, True, True]}, TypeError, "counts0 must be positive integers"),
    ({"counts1": [2**62, 2**62, 2**62]}, ValueError, "counts1 must be of a sum of at most"),
    ({"groups0": ["a"]}, ValueError, "groups0 must be hashable labels, one for each of the 3"),
    ({"groups0": "abc"}, TypeError, "groups0 must be hashable labels"),
    ({"groups1": 5}, TypeError, "groups1 must be hashable labels"),
    ({"groups0": [[1], [2], [3]]}, TypeError, "groups0 must be hashable labels"),
    ({"groups0": np.array([1, 2, np.nan])}, ValueError, "none of them NaN"),
    ({"decimals": 1.5}, TypeError, "decimals must be an integer"),
    ({"y0": np.full((3, 2), 1e30, np.float32), "y1": np.ones((3, 2), np.float32), "decimals": 20},
     ValueError, "decimals must be so small"),
    ({"scale": "max"}, ValueError, "scale must be one of 'std', 'whiten'"),
    ({"y0": normal(3, 5), "y1": normal(2, 5, seed=1), "scale": "whiten"}, ValueError,
     "5 distinct points that span 4 dimensions"),
]  # fmt: skip


@pytest.mark.parametrize(("bad", "error", "text"), BAD)
def test_bad_input_is_refused_by_name(bad, error, text):
    good = {"y0": normal(3, 2), "y1": normal(3, 2, seed=1)}
    find_points(**good)
    with pytest.raises(error, match=text):
        find_points(**good | bad)


def test_groups_of_any_kind_are_numbered_without_gaps():
    labels = [("x", 1), None, ("x", 1), 7, "7"]
    found = find_points(normal(5, 2), normal(3, 2), groups0=labels, groups1=np.array([9, 4, 9]))
    assert (found.groups[0].tolist(), found.groups[1].tolist()) == ([0, 1, 0, 2, 3], [0, 1, 0])


def test_rounding_comes_before_pooling():
    found = find_points([[0.04, 1.0], [-0.04, 1.01]], [[0.0, 1.0]], decimals=1)
    assert (found.unique, found.identical) == (1, False)
    assert [m.tolist() for m in found.multiplicity] == [[2], [1]]
    assert not np.signbit(found.rows[0]).any()
    assert find_points([[0.04, 1.0]], [[0.0, 1.0]]).unique == 2


def moments(found):
    both = np.concatenate([found.coordinates(ids) for ids in found.ids]).astype(np.float64)
    return both.mean(0), np.cov(both.T, bias=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", ["std", "whiten"])
def test_scales_are_pooled_moments_of_sample_rows(scale, dtype):
    mix = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 3.0], [0.0, 0.0, 1e3]])
    y0, y1 = map(dtype, (100.0 + normal(90, 3) @ mix, normal(50, 3, seed=1) @ mix))
    counts = np.arange(1, 91)
    found = find_points(y0, y1, counts0=counts, scale=scale)
    mean, covariance = moments(found)
    tolerance = 2e-5 if dtype == np.float32 else 1e-10
    if scale == "whiten":
        # The eigenvectors are exact for a covariance that is off by a small multiple of rounding
        # times its largest eigenvalue, and whitening divides that by its smallest one.
        raw = np.cov(np.concatenate([np.repeat(y0, counts, 0), y1]).astype(np.float64).T)
        tolerance = max(tolerance, 100.0 * np.finfo(np.float64).eps * np.linalg.cond(raw))
    assert np.abs([mean, np.diag(covariance) - 1.0]).max() < tolerance
    if scale == "whiten":
        assert np.abs(covariance - np.eye(3)).max() < tolerance
    # Counts are rows: writing them out changes nothing.
    written_out = find_points(np.repeat(y0, counts, 0), y1, scale=scale)
    assert np.abs(moments(written_out)[1] - covariance).max() < tolerance
    assert (found.scale, found.rows[0].dtype) == (scale, dtype)
    # The input is never written to.
    assert y0.mean() > 50.0


def test_a_constant_column_keeps_its_scale():
    y0, y1 = normal(20, 3), normal(20, 3, seed=1)
    y0[:, 1] = y1[:, 1] = 0.1
    found = find_points(y0, y1, scale="std")
    assert np.unique(np.concatenate(found.rows)[:, 1]).size == 1
    # Not divided by the rounding error of its mean.
    assert np.abs(found.rows[0][:, 1]).max() < 1e-12
    assert np.isfinite(found.rows[0]).all()


def test_whitening_says_which_directions_it_drops():
    plane = normal(2, 6, seed=3)
    y0, y1 = normal(60, 2) @ plane, normal(60, 2, seed=1) @ plane
    found = find_points(y0, y1, scale="whiten")
    assert found.dim == 2
    assert "dropped 4 of 6 directions" in found.notes[0]
    assert np.abs(moments(found)[1] - np.eye(2)).max() < 1e-8
    assert find_points(normal(60, 2), normal(60, 2, seed=1), scale="whiten").notes == ()
    few = find_points(normal(10, 2), normal(9, 2, seed=1), scale="whiten")
    assert "rests on 19 distinct points in 2 directions" in few.notes[0]


def test_equal_rows_stay_equal_under_whitening():
    y0, y1 = normal(40, 5), normal(40, 5, seed=1)
    y1[:7] = y0[:7]
    found = find_points(y0, y1, scale="whiten")
    assert found.unique == 73
    assert np.array_equal(found.sample(0)[:7], found.sample(1)[:7])


def test_one_coordinate_that_rules_the_distances_is_noted():
    y0, y1 = normal(200, 5), normal(200, 5, seed=1)
    loud = np.array([1.0, 1.0, 1.0, 14.0, 1.0])
    assert "coordinate 3 has" in find_points(y0 * loud, y1 * loud).notes[0]
    assert find_points(y0 * loud, y1 * loud, scale="std").notes == ()
    loud[3] = 7.0
    assert find_points(y0 * loud, y1 * loud).notes == ()
    # A constant column outweighs nothing.
    assert find_points(y0 * [0, 0, 0, 1, 1], y1 * [0, 0, 0, 1, 1]).notes == ()


def test_atoms_are_points_with_five_other_rows():
    m0 = np.array([6, 5, 5, 0, 4, 1] + [1] * 79)
    found = find_atoms((m0, np.array([0, 0, 5, 6, 4, 0] + [0] * 79)))
    # Direction 0: five other rows of set 0, or five rows of set 1.
    assert found.of[0][:6].tolist() == [True, False, True, True, False, False]
    assert found.of[1][:6].tolist() == [True, True, True, True, False, False]
    assert found.share.tolist() == pytest.approx([16 / 100, 11 / 15])
    assert found.rows_per_atom == pytest.approx(35 / 5)


def test_where_nearly_all_rows_are_on_atoms_every_point_is_one():
    m0, m1 = np.array([495, 1, 4, 0]), np.array([500, 0, 0, 0])
    found = find_atoms((m0, m1))
    assert np.all(found.of)
    assert found.share.tolist() == pytest.approx([499 / 500, 1.0])
    # 11 of 1,000 rows off the atoms are too many.
    less = find_atoms((np.array([489, 4, 4, 3]), np.array([500, 0, 0, 0])))
    assert less.of[0].tolist() == [True, False, False, False]


def test_rows_per_atom_needs_one_row_in_a_hundred():
    m0, m1 = np.repeat([1, 0], 100), np.repeat([0, 1], 100)
    assert np.isnan(find_atoms((m0, m1)).rows_per_atom)
    # 2 of 201 rows are too few, 4 of 203 are enough.
    m0[0] = 2
    assert np.isnan(find_atoms((m0, m1)).rows_per_atom)
    m0[0] = 4
    assert find_atoms((m0, m1)).rows_per_atom == 4.0
