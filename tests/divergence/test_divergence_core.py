"""The core of the divergences: cells, what no walk accepts, and Ctrl-C in a search.

Gamma functions, nearest neighbours and balls are compared with their definitions in Rust.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from shared_messages import check_messages

from dpcore import _core

ALPHAS = np.array([0.3, 0.5, 0.999, 1.0, 1.001, 1.1, 2.0, 2.5, 4.0, 8.0])


# Gamma functions: their values are compared with tests/reference/gamma.csv in Rust.


def test_gamma_functions_refuse_what_is_outside():
    ratios = [(0.0, 1.0), (-1.0, 2.0), (2.0, -2.0), (1.0, np.nan), (np.inf, 1.0)]
    ratio = _core.log_gamma_ratio
    wrong = [(partial(ratio, np.array([x]), b), "x", "positive and above -b") for x, b in ratios]
    wrong += [
        (partial(_core.digamma, x), "x", "positive and finite") for x in (0, -3, np.nan, np.inf)
    ]
    check_messages(ValueError, wrong)


# Cells.


def values(n, j, atom, weight, own, other, alphas=ALPHAS):
    arrays = np.array(n, np.int64), np.array(j, np.int64), np.array(atom, bool)
    return _core.ball_values(*arrays, np.array(weight, float), own, other, np.array(alphas))


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


# Walks: what they find is compared with brute force in `test_divergence_ball.py`.


def test_lists_that_cannot_be_and_a_replicate_without_the_other_set():
    rows0, rows1 = np.random.default_rng(7).normal(size=(2, 15, 3))
    ids0, ids1, first = _core.pool_rows(rows0, rows1)
    search = rows0, rows1, first[ids0]
    starts, places, squared, _ = _core.nearest(*search, first[ids1], 15, 1)
    mine = _core.inside(*search, first[ids0], starts, squared, 99, 1)
    good = {
        "queries": ids0, "starts": starts, "ids": ids1[places], "squared": squared,
        "own_starts": mine[0], "own_ids": mine[1], "upto": mine[2], "inverted": mine[3],
        "capped": mine[4], "own_points": ids0, "other_points": ids1,
        "w_own": np.uint32(first < 15), "w_other": np.uint32(first >= 15),
        "depth": 3, "first": first, "rows1": rows1,
    }  # fmt: skip

    def call(**change):
        g = good | change
        neighbours = g["starts"], g["ids"], g["squared"]
        own = g["own_starts"], g["own_ids"], g["upto"], g["inverted"], g["capped"]
        return _core.ball_counts(
            g["queries"], neighbours, own, g["own_points"], g["other_points"], g["w_own"],
            g["w_other"], g["depth"], rows0, g["rows1"], g["first"], 1,
        )  # fmt: skip

    assert len(call()[0]) == 15
    many = np.array([30], np.uint32)
    wrong = {
        "queries": ids0 + many, "ids": good["ids"] + many, "own_ids": mine[1] + many,
        "own_points": many, "other_points": many, "starts": starts[::-1].copy(),
        "own_starts": mine[0] + 1, "squared": squared[::-1].copy(), "upto": mine[2] + 1000,
        "inverted": mine[3][:-1].copy(), "capped": mine[4][:-1].copy(),
        "w_own": np.zeros(30, np.uint32), "w_other": good["w_other"][:-1].copy(), "depth": 0,
        "first": first + 30, "rows1": rows1[:, :2].copy(),
    }  # fmt: skip
    calls = [(partial(call, **{name: one}), name, "") for name, one in wrong.items()]
    copies = np.ones((2, 30), np.uint32), np.ones((3, 30), np.uint32)
    where = ids0, (starts, good["ids"], squared), mine[:5], ids0, ids1, ids0[:0]
    more = partial(_core.ball_replicates, *where)
    rest = 3, ALPHAS, rows0, rows1, first, 1
    check_messages(ValueError, [*calls, (partial(more, *copies, *rest), "w_other", "as many as")])
    single = rows1.astype(np.float32)
    check_messages(TypeError, [(partial(call, rows1=single), "rows0 and rows1", "")])
    # A replicate without the other set is infinite above order one.
    values, *again = more(good["w_own"][None], np.zeros((1, 30), np.uint32), *rest)
    assert np.isposinf(values[0]).tolist() == (ALPHAS > 1).tolist()
    assert np.isfinite(values[0, ALPHAS <= 1]).all()
    assert again == [0, 0]


def test_ctrl_c(ctrl_c):
    rows = np.zeros((40_000, 1024), np.float32)
    rows[:, 0] = np.arange(40_000)
    everyone = np.arange(40_000)
    ctrl_c(0.3)
    with pytest.raises(KeyboardInterrupt):
        _core.nearest(rows, rows[:0], everyone, everyone, 20, 1)


def test_nothing_to_search():
    rows, none = np.arange(60.0).reshape(20, 3), np.array([], np.int64)
    assert _core.nearest(rows, rows, np.arange(20), none, 3, 1)[0].tolist() == [0] * 21
    assert _core.nearest(rows, rows, none, np.arange(20), 3, 1)[0].tolist() == [0]
    assert [part.size for part in _core.pool_rows(rows[:0], rows[:0])] == [0, 0, 0]
