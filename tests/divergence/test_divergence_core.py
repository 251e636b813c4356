"""The core of the divergences: gamma functions, cells, and walks over lists made by numpy."""

from __future__ import annotations

from functools import partial

import mpmath
import numpy as np
import pytest
from shared_divergence import GOLDEN, Lists, naive_ball
from shared_messages import check_messages

from dpcore import _core

ALPHAS = np.array([0.3, 0.5, 0.999, 1.0, 1.001, 1.1, 2.0, 2.5, 4.0, 8.0])


# Gamma functions.


@mpmath.workdps(40)
def exact_ratio(x, b):
    x, b = mpmath.mpf(x), mpmath.mpf(b)
    return mpmath.loggamma(x + b) - mpmath.loggamma(x)


def ratio(x, b):
    return float(_core.log_gamma_ratio(np.array([float(x)]), b)[0])


def test_digamma_has_full_precision():
    rng = np.random.default_rng(1)
    root = 1.4616321449683622
    points = [*rng.uniform(0.01, 12, 400), *10 ** rng.uniform(1, 15, 50), *range(1, 40)]
    points += [root, np.nextafter(root, 2), root + 1e-9, root - 0.2499, root + 0.2501]
    with mpmath.workdps(40):
        for x in map(float, points):
            expected = mpmath.digamma(mpmath.mpf(x))
            assert abs(_core.digamma(x) - expected) <= 4e-15 * abs(expected)


def test_log_gamma_ratio_has_full_precision():
    """The error is small beside b times the logarithms, hence beside the ratio far from its 0."""
    rng = np.random.default_rng(2)
    for _ in range(1500):
        x = rng.choice([rng.uniform(0.01, 15), rng.integers(1, 100), 10 ** rng.uniform(0, 9)])
        b = rng.choice([rng.uniform(-1, 1), rng.uniform(-40, 64), rng.integers(-40, 64)])
        b *= rng.choice([1.0, 1.0, 1e-9])
        if x + b < 1e-3 or b == 0:
            continue
        expected = exact_ratio(x, b)
        size = max(1, abs(np.log(x)), abs(np.log(x + b)))
        assert abs(ratio(x, b) - expected) <= 4e-15 * abs(b) * size, (x, b)


def test_gamma_functions_known_values():
    assert (ratio(1.0, 1.0), ratio(3.0, 0.0), ratio(5.0, 2.0)) == (0.0, 0.0, np.log(30.0))
    assert ratio(7.0, -2.0) == -np.log(30.0)
    # B(5, 1/2) of Poczos and Schneider; B(k, 2) = 1 - 1/k.
    assert np.exp(-ratio(5, 0.5) - ratio(5, -0.5)) == pytest.approx(0.94606606353473494, rel=1e-15)
    for k in (5, 10):
        assert np.exp(-ratio(k, 1.0) - ratio(k, -1.0)) == pytest.approx(1 - 1 / k, rel=1e-15)
    assert _core.digamma(1.0) == pytest.approx(-np.euler_gamma, rel=1e-15)


def test_gamma_functions_refuse_what_is_outside():
    ratios = [(0.0, 1.0), (-1.0, 2.0), (2.0, -2.0), (1.0, np.nan), (np.inf, 1.0)]
    wrong = [(partial(ratio, *case), "x", "positive and above -b") for case in ratios]
    wrong += [
        (partial(_core.digamma, x), "x", "positive and finite") for x in (0, -3, np.nan, np.inf)
    ]
    check_messages(ValueError, wrong)


# Cells.


def values(n, j, atom, weight, own, other, alphas=ALPHAS):
    arrays = np.array(n, np.int64), np.array(j, np.int64), np.array(atom, bool)
    return _core.ball_values(*arrays, np.array(weight, float), own, other, np.array(alphas))


def test_golden_values_of_three_atoms():
    counts, counts_other = np.array([50, 30, 20]), [20, 30, 50]
    orders = [0.5, 1.0, 2.0, 4.0]
    found, effective = values(counts - 1, counts_other, [True] * 3, counts, 100, 100, orders)
    np.testing.assert_allclose(found, GOLDEN, rtol=1e-12)
    terms = (counts - 1) / (np.array(counts_other) + 1)
    expected = (counts @ terms) ** 2 / (counts @ terms**2)
    np.testing.assert_allclose(effective[[1, 2]], [100, expected], rtol=1e-13)


def test_orders_near_1_tend_to_the_kl_divergence():
    n, j, weight = [3, 40, 7, 0], [19, 19, 20, 2], [100, 300, 50, 50]
    near = [1 - 1e-7, 1 - 1e-10, 1.0, 1 + 1e-10, 1 + 1e-7, 1.009, 1.011]
    found, effective = values(n, j, [False] * 4, weight, 500, 700, near)
    np.testing.assert_allclose(found[[0, 1, 3, 4]], found[2], rtol=0, atol=2e-6)
    np.testing.assert_allclose(found[[1, 3]], found[2], rtol=0, atol=2e-9)
    # Both sides of the switch between the two formulas lie on one curve.
    assert found[5] == pytest.approx(found[2] + (found[6] - found[2]) * 9 / 11, abs=1e-3)
    assert effective[2] == 500


@pytest.mark.parametrize("alpha", [2.0, 2.5, 30.0])
def test_infinities(alpha):
    inf = np.inf

    def at(n, j, atom):
        return values(n, j, atom, [50.0] * len(n), 50 * len(n), 60, [0.5, alpha])[0]

    # All that counts is on atoms that the other set lacks.
    assert at([49, 0], [0, 3], [True, False])[1] == inf
    assert at([0, 0], [0, 3], [True, False])[1] == inf
    # No term is positive.
    assert at([0, 0], [1, 3], [True, False])[1] == -inf
    # One with rows of the other set is enough for a number; j = 0 off the atoms is no gap.
    assert np.isfinite(at([40, 39], [0, 3], [True, True])).all()
    assert np.isfinite(at([40, 39], [0, 0], [False, False])).all()
    # Orders below 1 are finite in any case.
    assert np.isfinite(at([0, 0], [0, 0], [True, True])[0])


def test_no_cell_is_lost_to_underflow():
    """Weights that differ by more than 10^308: each order is scaled by its own largest term."""
    n, j = [10**6, 70], [10**6, 0]
    found, effective = values(n, j, [False] * 2, [10**6 + 1, 71], 2 * 10**6, 2 * 10**6, [64.0])
    alone, _ = values([70], [0], [False], [71], 2 * 10**6, 2 * 10**6, [64.0])
    assert np.isfinite([*found, *effective, *alone]).all()


def test_repeated_cells_are_added():
    apart = values([3, 5, 3], [9, 9, 9], [False] * 3, [1, 2, 4], 7, 20, ALPHAS[:7])
    added = values([3, 5], [9, 9], [False] * 2, [5, 2], 7, 20, ALPHAS[:7])
    for a, b in zip(apart, added, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)


CELLS = [
    ({"n": [-1]}, "n", ""), ({"n": [10]}, "n", "from 0 to 9"), ({"j": [21]}, "j", "from 0 to 20"),
    ({"j": [1, 2]}, "j", "as long as n"), ({"weight": [-1.0]}, "weight", ""),
    ({"weight": [np.nan]}, "weight", ""), ({"weight": [0.0]}, "weight", "positive in sum"),
    ({"own": 0}, "size_own", ""), ({"other": 2**31}, "size_other", ""),
    ({"alphas": [2.0, 0.0]}, "alphas", "positive"),
    ({"alphas": [np.inf]}, "alphas", "positive and finite"),
]  # fmt: skip


def test_cells_that_cannot_be():
    good = {"n": [9], "j": [4], "atom": [False], "weight": [10.0], "own": 10, "other": 20}
    assert np.isfinite(values(**good)[0]).all()
    check_messages(ValueError, [(partial(values, **good | row[0]), *row[1:]) for row in CELLS])


# Walks.


def drawn(rng, size, replicates):
    """Bootstrap, halves and one with few rows, by turns."""
    out = np.zeros((replicates, size))
    for i in range(replicates):
        if i % 3 == 0:
            out[i] = np.bincount(rng.integers(size, size=size), minlength=size)
        else:
            out[i, rng.permutation(size)[: max(2, size // (2 if i % 3 == 1 else 6))]] = 1
    return out


def naive_replicates(lists, weights, alphas, k):
    out = []
    for w0, w1 in zip(*weights, strict=True):
        sets = [np.repeat(r, w.astype(int), 0) for r, w in zip(lists.rows, (w0, w1), strict=True)]
        out.append(naive_ball(*sets, alphas, k, lists.frozen))
    return np.array(out)


def samples(kind, rng, sizes):
    n, m = sizes
    if kind == "normal":
        return rng.normal(size=(n, 3)), 1.3 * rng.normal(size=(m, 3)) + 0.3
    if kind == "lattice":
        return rng.integers(0, 6, (n, 2)) * 1.0, rng.integers(1, 7, (m, 2)) * 1.0
    if kind == "mixture":
        x, y = rng.normal(size=(n, 10)).round(1), rng.normal(size=(m, 10)).round(1)
        x[: n // 3], y[: m // 2], y[-m // 4 :] = 0.0, -0.0, x[-1]
        return x, y
    if kind == "few":
        return rng.integers(0, 2, (n, 2)) * 1.0, rng.integers(0, 2, (m, 2)) * 1.0
    if kind == "apart":
        return rng.normal(size=(n, 2)), rng.normal(size=(m, 2)) + 50
    return rng.normal(size=(n, 1)), rng.normal(size=(m, 1)) * 2


KINDS = ["normal", "lattice", "mixture", "few", "apart", "line"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("cap", "invert"), [(10**9, "never"), (10**9, "some"), (3, "always")])
def test_walks_are_naive_resampling(kind, dtype, cap, invert):
    """Complete lists: nothing runs out; capped balls are searched again."""
    rng = np.random.default_rng([KINDS.index(kind), cap % 7])
    k = 5
    sets = [np.ascontiguousarray(rows, dtype) for rows in samples(kind, rng, (40, 60))]
    lists = Lists(*sets, k, None, cap, invert)
    value, run_outs, rescans = lists.base(ALPHAS)
    np.testing.assert_allclose(value, naive_ball(*sets, ALPHAS, k), rtol=1e-12, atol=1e-12)
    assert run_outs == 0
    weights = [drawn(rng, len(rows), 4) for rows in sets]
    expected = naive_replicates(lists, weights, ALPHAS, k)
    values, run_outs, again = lists.replicates(weights, ALPHAS)
    np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-12)
    assert run_outs == 0
    if cap > 3:
        assert (rescans, again) == (0, 0)
    elif kind in ("normal", "line"):
        assert min(rescans, again) > 20
    for threads in (1, 3):
        np.testing.assert_array_equal(lists.replicates(weights, ALPHAS, threads)[0], values)


@pytest.mark.parametrize("kind", ["normal", "lattice", "mixture", "line"])
def test_lists_that_run_out_are_searched_again(kind):
    rng = np.random.default_rng(5)
    sets = samples(kind, rng, (50, 50))
    k = 6
    weights = [drawn(rng, len(rows), 6) for rows in sets]
    expected = naive_replicates(Lists(*sets, k), weights, ALPHAS, k)
    seen = []
    for entries in (1, 3, 6, 9, 14):
        values, run_outs, _ = Lists(*sets, k, entries, 20, "some").replicates(weights, ALPHAS)
        np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-12)
        seen.append(run_outs)
    # Fewer the longer the lists are, and as many as queries that walk where nothing is listed.
    assert seen == sorted(seen, reverse=True)
    assert seen[0] > seen[2] > 0
    value, run_outs, _ = Lists(*sets, k, 2).base(ALPHAS)
    np.testing.assert_allclose(value, naive_ball(*sets, ALPHAS, k), rtol=1e-12, atol=1e-12)
    assert run_outs > 0


def test_a_replicate_without_the_other_set_is_infinite():
    lists = Lists(*samples("normal", np.random.default_rng(4), (20, 20)), 3)
    copies = lists.copies(0, np.ones((1, 20))), lists.copies(1, np.zeros((1, 20)))
    values, *again = _core.ball_replicates(
        *lists.of(0), lists.atoms[0], *copies, 3, ALPHAS, *lists.rows, lists.first, 1
    )
    assert (values[0, ALPHAS > 1] == np.inf).all()
    assert np.isfinite(values[0, ALPHAS <= 1]).all()
    assert again == [0, 0]


def test_a_wrong_list_is_seen():
    """The control: a walk over lists with one neighbour gone differs."""
    sets = samples("normal", np.random.default_rng(6), (40, 40))
    lists = Lists(*sets, 5)
    expected = naive_ball(*sets, ALPHAS, 5)
    original = lists.of

    def broken(a):
        queries, (starts, ids, squared), *rest = original(a)
        ids = ids.copy()
        ids[starts[:-1]] = ids[starts[:-1] + 1]
        squared = squared.copy()
        squared[starts[:-1] + 5] = squared[starts[:-1] + 4]
        return queries, (starts, ids, squared), *rest

    lists.of = broken
    assert np.abs(lists.base(ALPHAS)[0] - expected).max() > 1e-3


def test_lists_that_cannot_be():
    lists = Lists(*samples("normal", np.random.default_rng(7), (12, 15)), 3)
    queries, other, own, *points = lists.of(0)
    ones = [lists.copies(a, np.ones((1, len(s))))[0] for a, s in enumerate(lists.samples)]
    good = {
        "queries": queries, "starts": other[0], "ids": other[1], "squared": other[2],
        "own_starts": own[0], "own_ids": own[1], "upto": own[2], "inverted": own[3],
        "capped": own[4], "own_points": points[0], "other_points": points[1], "w_own": ones[0],
        "w_other": ones[1], "depth": 3, "first": lists.first, "rows1": lists.rows[1],
    }  # fmt: skip

    def call(**change):
        g = good | change
        neighbours = g["starts"], g["ids"], g["squared"]
        mine = g["own_starts"], g["own_ids"], g["upto"], g["inverted"], g["capped"]
        return _core.ball_counts(
            g["queries"], neighbours, mine, g["own_points"], g["other_points"], g["w_own"],
            g["w_other"], g["depth"], lists.rows[0], g["rows1"], g["first"], 1,
        )  # fmt: skip

    assert len(call()[0]) == 12
    many = np.array([27], np.uint32)
    wrong = {
        "queries": np.full(12, 27, np.uint32), "ids": np.full(len(other[1]), 99, np.uint32),
        "own_ids": np.full(len(own[1]), 99, np.uint32), "own_points": many, "other_points": many,
        "starts": other[0][::-1].copy(), "own_starts": own[0] + 1,
        "squared": other[2][::-1].copy(), "upto": own[2] + 1000, "inverted": own[3][:-1].copy(),
        "capped": own[4][:-1].copy(), "w_own": np.zeros(27, np.uint32),
        "w_other": ones[1][:-1].copy(), "depth": 0, "first": lists.first + 27,
        "rows1": lists.rows[1][:, :2].copy(),
    }  # fmt: skip
    calls = [(partial(call, **{name: one}), name, "") for name, one in wrong.items()]
    copies = np.ones((2, 27), np.uint32), np.ones((3, 27), np.uint32)
    rest = 3, ALPHAS, *lists.rows, lists.first, 1
    more = partial(_core.ball_replicates, *lists.of(0), lists.atoms[0], *copies, *rest)
    check_messages(ValueError, [*calls, (more, "w_other", "as many as w_own")])
    single = lists.rows[1].astype(np.float32)
    check_messages(TypeError, [(partial(call, rows1=single), "rows0 and rows1", "")])
