"""The core's nearest neighbours and balls against distances in numpy, on every path."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from dpcore import _core

EVERY = 2**40
"""A cap that is none."""
ALL = np.arange(20)


def distances(queries, points):
    """Squared distances with the sums of the core: coordinate i in sum i mod 8."""
    queries, points = queries.astype(float), points.astype(float)
    sums = np.zeros((8, len(queries), len(points)))
    for i in range(queries.shape[1]):
        sums[i % 8] += (queries[:, i, None] - points[:, i]) ** 2
    s = sums
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))


def shell(row, depth):
    """Places and squared distances of the nearest, whole ties."""
    order = np.lexsort((np.arange(row.size), row))
    kept = order[row[order] <= np.sort(row)[min(depth, row.size) - 1]]
    return kept, row[kept]


def both(y0, y1):
    return np.arange(len(y0)), np.arange(len(y0), len(y0) + len(y1))


def check_nearest(y0, y1, depth, threads=1):
    queries, points = both(y0, y1)
    found = _core.nearest(y0, y1, queries, points, depth, threads)
    starts, places, squared, _ = found
    assert (starts.dtype, places.dtype, squared.dtype) == (np.int64, np.uint32, np.float64)
    for i, row in enumerate(distances(y0, y1)):
        own = slice(*starts[i : i + 2])
        expected = shell(row, depth)
        np.testing.assert_array_equal(places[own], expected[0])
        np.testing.assert_array_equal(squared[own], expected[1])
    return found


def check_inside(y0, y1, starts, squared, cap=EVERY, threads=1):
    """The balls of `nearest` around y0, filled with y0."""
    queries, _ = both(y0, y1)
    found = _core.inside(y0, y1, queries, queries, starts, squared, cap, threads)
    own_starts, places, upto, inverted, capped, _ = found
    for i, row in enumerate(distances(y0, y0)):
        radii = squared[starts[i] : starts[i + 1]]
        own = places[own_starts[i] : own_starts[i + 1]]
        first, within = np.sum(row <= radii[0]), np.sum(row <= radii[-1])
        outside = 2 * first > row.size and row.size - first < within
        length = row.size - first if outside else within
        assert capped[i] == (length > cap)
        assert inverted[i] == (outside and not capped[i])
        assert own.size == (0 if capped[i] else length)
        rank = np.searchsorted(radii, row[own])
        np.testing.assert_array_equal(np.lexsort((own, rank)), np.arange(own.size))
        for radius, end in zip(radii, upto[starts[i] : starts[i + 1]], strict=True):
            if capped[i]:
                assert end == 0
            elif outside:
                assert set(own[end:]) == set(np.flatnonzero(row > radius))
            else:
                assert set(own[:end]) == set(np.flatnonzero(row <= radius))
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dim", [1, 2, 3, 8, 17, 384, 1000])
def test_random_rows(dim, dtype):
    rng = np.random.default_rng(dim)
    y0 = rng.normal(size=(80, dim)).astype(dtype)
    y1 = rng.normal(0.2, 1.2, size=(150, dim)).astype(dtype)
    for depth in (1, 20, 150, 1000):
        found = check_nearest(y0, y1, depth)
        check_inside(y0, y1, found[0], found[2])


@pytest.mark.parametrize("dim", [2, 5, 20])
def test_integer_lattices_give_whole_tie_shells(dim):
    rng = np.random.default_rng(dim)
    y0, y1 = rng.integers(0, 3, (60, dim)) * 1.0, rng.integers(0, 3, (300, dim)) * 1.0
    starts, _, squared, _ = check_nearest(y0, y1, 7)
    assert np.max(np.diff(starts)) > 7
    check_inside(y0, y1, starts, squared)
    check_nearest(y0.astype(np.float32), y1.astype(np.float32), 7)


def test_balls_are_inverted_and_capped():
    rng = np.random.default_rng(1)
    y0, y1 = rng.normal(size=(200, 40)), rng.normal(0, 2, size=(100, 40))
    starts, _, squared, _ = check_nearest(y0, y1, 30)
    assert check_inside(y0, y1, starts, squared)[3].mean() > 0.9
    assert 0 < check_inside(y0, y1, starts, squared, cap=12)[4].mean() < 1
    y1 = rng.normal(size=(100, 40))
    starts, _, squared, _ = check_nearest(y0, y1, 30)
    assert not check_inside(y0, y1, starts, squared)[3].any()
    assert 0 < check_inside(y0, y1, starts, squared, cap=60)[4].mean() < 1


def test_a_query_without_radii_has_an_empty_list():
    y0, starts = np.arange(40.0).reshape(20, 2), (np.arange(21) > 4).astype(np.int64)
    found = _core.inside(y0, y0, ALL, ALL, starts, np.array([8.0]), EVERY, 1)
    own_starts, places, upto, inverted, capped, _ = found
    np.testing.assert_array_equal(own_starts, np.where(np.arange(21) > 4, 3, 0))
    np.testing.assert_array_equal(places, [3, 4, 5])
    assert (upto.tolist(), inverted.any(), capped.any()) == ([3], False, False)


def clusters(spread, offset, dim, rng):
    """Eight clusters of 200 near-duplicates of unit vectors, float32."""
    centres = rng.normal(size=(8, 1, dim))
    centres /= np.linalg.norm(centres, axis=2, keepdims=True)
    rows = centres + rng.normal(0, spread / np.sqrt(dim), (8, 200, dim)) + offset
    return rng.permutation(rows.reshape(-1, dim).astype(np.float32))


def shortlist(queries, points, size):
    """The plain form: float32 products of the rows as they are."""
    q, p = (queries * queries).sum(1), (points * points).sum(1)
    return np.argpartition(q[:, None] + p - 2 * queries @ points.T, size, axis=1)[:, :size]


@pytest.mark.parametrize(
    ("spread", "offset", "dim", "plain"),
    [
        (1e-2, 0, 384, 1.0), (1e-3, 0, 384, 0.9), (1e-4, 0, 384, 0.5), (1e-5, 0, 384, 0.5),
        (1e-6, 0, 384, 0.5), (0.1, 1e4, 16, 0.5),
    ],
)  # fmt: skip
def test_recall_is_one_among_near_duplicates(spread, offset, dim, plain):
    rows = clusters(spread, offset, dim, np.random.default_rng(2))
    y0, y1 = rows[:100], rows[100:]
    starts, places, _, rescans = check_nearest(y0, y1, 20)
    assert rescans == 0
    # The control: depth + 8 by plain float32 miss some.
    listed = shortlist(y0, y1, 28)
    hits = [np.isin(places[starts[i] : starts[i + 1]], listed[i]).mean() for i in range(100)]
    assert np.mean(hits) <= plain


def test_what_float32_cannot_tell_apart_is_searched_again_and_counted():
    rng = np.random.default_rng(3)
    y0, y1 = rng.normal(0, 1e-10, (20, 16)), rng.normal(size=(3000, 16))
    # All are as far as all others, but for 1e-10 of it.
    y1 /= np.linalg.norm(y1, axis=1, keepdims=True)
    assert check_nearest(y0, y1, 4)[3] == 20
    y0, y1 = 1e-9 * y1[:20], 1e-9 * y1[20:]
    y1[0] = 1.0
    assert check_nearest(y0, y1, 4)[3] == 0


@pytest.mark.parametrize("dim", [3, 20, 100])
def test_a_row_with_a_nan_is_nobodys_neighbour(dim):
    rng = np.random.default_rng(dim)
    y0, y1 = rng.normal(size=(300, dim)), rng.normal(size=(1100, dim))
    kept = np.arange(1100) != 7
    y1[7, 1] = np.nan
    starts, places, squared, _ = _core.nearest(y0, y1, *both(y0, y1), 5, 1)
    expected = check_nearest(y0, y1[kept], 5)
    np.testing.assert_array_equal(starts, expected[0])
    np.testing.assert_array_equal(places, np.flatnonzero(kept)[expected[1]])
    np.testing.assert_array_equal(squared, expected[2])
    y0[3, 0] = np.nan
    starts = _core.nearest(y0, y1, *both(y0, y1), 5, 1)[0]
    assert (starts[4] - starts[3], starts[-1]) == (0, 5 * 299)


def test_rows_are_pooled_in_the_order_of_their_first_occurrence():
    y0 = np.array([[0.0, 1.0], [2.0, 3.0], [-0.0, 1.0]])
    y1 = np.array([[5.0, 5.0], [2.0, 3.0], [0.0, 1.0], [5.0, -5.0]])
    for dtype in (np.float32, np.float64):
        ids0, ids1, first = _core.pool_rows(dtype(y0), dtype(y1))
        assert (ids0.tolist(), ids1.tolist()) == ([0, 1, 0], [2, 1, 0, 3])
        assert (first.tolist(), ids0.dtype, first.dtype) == ([0, 1, 3, 6], np.uint32, np.int64)
    rng = np.random.default_rng(4)
    y0, y1 = rng.integers(0, 4, (500, 5)) * 0.1, rng.integers(0, 4, (700, 5)) * 0.1
    ids0, ids1, first = _core.pool_rows(y0, y1)
    rows = np.concatenate([y0, y1])
    np.testing.assert_array_equal(rows[first][np.concatenate([ids0, ids1])], rows)
    assert len(first) == len(np.unique(rows, axis=0))
    assert (np.diff(first) > 0).all()


ROWS = np.arange(60.0).reshape(20, 3)


def test_nothing_to_search():
    none = np.array([], np.int64)
    assert _core.nearest(ROWS, ROWS, ALL, none, 3, 1)[0].tolist() == [0] * 21
    assert _core.nearest(ROWS, ROWS, none, ALL, 3, 1)[0].tolist() == [0]
    empty = np.zeros((0, 3))
    assert [part.size for part in _core.pool_rows(empty, empty)] == [0, 0, 0]


SCRIPT = """
import hashlib
import numpy as np
from dpcore import _core

rng, total = np.random.default_rng(5), hashlib.sha256()
for dim in (2, 8, 30, 384):
    for dtype in (np.float32, np.float64):
        y0 = rng.normal(size=(130, dim)).astype(dtype)
        y1 = np.concatenate([y0[:40] + dtype(1e-4), rng.normal(0, 1.2, (300, dim))]).astype(dtype)
        queries, points = np.arange(130), np.arange(130, 470)
        for threads in (1, 2):
            found = _core.nearest(y0, y1, queries, points, 20, threads)
            balls = _core.inside(y0, y1, queries, queries, found[0], found[2], 100, threads)
            for part in (*found[:3], *balls[:5]):
                total.update(part.tobytes())
        if threads == 1:
            total = hashlib.sha256()
print(total.hexdigest())
"""


def test_the_same_bits_on_every_path():
    printed = set()
    for path in _core.cpus():
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], env={**os.environ, "DPCORE_CPU": path},
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
        printed.add(done.stdout)
    assert len(printed) == 1


@pytest.mark.parametrize("dim", [2, 30])
def test_the_same_bits_on_any_number_of_threads(dim):
    rng = np.random.default_rng(6)
    y0, y1 = rng.normal(size=(700, dim)), rng.normal(size=(900, dim))
    queries, points = both(y0, y1)
    one = _core.nearest(y0, y1, queries, points, 20, 1)
    balls = _core.inside(y0, y1, queries, queries, one[0], one[2], 300, 1)
    for threads in (2, 3, 7):
        more = _core.nearest(y0, y1, queries, points, 20, threads)
        filled = _core.inside(y0, y1, queries, queries, one[0], one[2], 300, threads)
        for a, b in zip((*one, *balls), (*more, *filled), strict=True):
            np.testing.assert_array_equal(a, b)


def test_ctrl_c(ctrl_c):
    rows = np.zeros((40_000, 1024), np.float32)
    rows[:, 0] = np.arange(40_000)
    everyone = np.arange(40_000)
    ctrl_c(0.3)
    with pytest.raises(KeyboardInterrupt):
        _core.nearest(rows, rows[:0], everyone, everyone, 20, 1)
