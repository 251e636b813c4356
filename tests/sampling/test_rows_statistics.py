"""The statistics behind the checks of rows, against enumeration and brute force."""

from __future__ import annotations

import itertools
import math
from contextlib import nullcontext

import numpy as np
import pytest
from scipy import stats
from shared_audits import rng

from dpcore.sampling import rows as checks
from dpcore.sampling.columns import ranks_and_codes, split_by_kind
from dpcore.sampling.rows import (
    Calls,
    Constants,
    Pieces,
    compare_at_lags,
    constant_columns,
    list_piece_edges,
)

# What is equal in all rows.


def objects(*values):
    array = np.empty(len(values), object)
    array[:] = values
    return array


def records(*values):
    return np.array(list(values), [("label", "U3"), ("value", "f8")])


NAN = float("nan")
ROWS = {
    "numbers": (np.array([[1.0, 2.0], [1.0, 3.0]]), [True, False]),
    "nan": (np.array([[NAN, 1.0], [NAN, NAN]]), [True, False]),
    "zeros": (np.array([0.0, -0.0]), [True]),
    "bools": (np.array([True, True]), [True]),
    "complex": (np.array([1 + 2j, 1 + 3j]), [True, False]),
    "strings": (np.array(["ab", "ab", "b"]), [False]),
    "words": (np.array([["a", "b"], ["a", "c"]]), [True, False]),
    "bytes": (np.array([b"a", b"a"]), [True]),
    "dates": (np.array(["2020-01-01", "2020-01-01"], "M8[D]"), [True]),
    "records": (records(("a", 1.0), ("a", NAN), ("a", NAN)), [True, False]),
    "nan in records": (records(("a", NAN), ("b", NAN)), [False, True]),
    "tuples": (objects((1, "a"), (1, "a")), [True]),
    "nan objects": (objects(NAN, float("nan")), [True]),
    "lists": (objects([1, 2], [1, 2]), [True]),
    "arrays": (objects(np.zeros(2), np.zeros(2)), [True]),
    "nothing": (objects(None, None), [True]),
    "deep": (np.ones((2, 2, 2)), [True] * 4),
}


@pytest.mark.parametrize("name", ROWS)
def test_columns_that_are_equal_throughout(name):
    outputs, expected = ROWS[name]
    same = constant_columns(outputs)
    found = [] if same is None else np.concatenate(same.columns).tolist()
    assert found == (expected if any(expected) else [])


def test_rows_that_say_nothing():
    assert (constant_columns(np.zeros((1, 3))), constant_columns(np.zeros((0, 3)))) == (None, None)
    assert (constant_columns(np.zeros((5, 0))), constant_columns(rng().normal(size=(99, 3)))) == (
        None,
        None,
    )
    late = np.zeros(1000)
    late[-1] = 1.0
    assert constant_columns(late) is None


class Odd:
    """Neither hashes nor compares nor prints."""

    __hash__ = None

    def __eq__(self, other):
        raise RuntimeError("no")

    def __repr__(self):
        raise RuntimeError("no")


@pytest.mark.parametrize("name", ROWS)
def test_every_kind_has_an_order_to_look_at(name):
    outputs = np.tile(ROWS[name][0], (50, *[1] * (ROWS[name][0].ndim - 1)))
    ranks, codes = ranks_and_codes(outputs)
    assert {len(every) for every in (*ranks, codes)} == {len(outputs)}
    assert compare_at_lags(outputs, np.arange(len(outputs)) % 2 == 0) is not None


def test_odd_objects_never_crash():
    odd = objects(*[Odd() for _ in range(40)])
    # Without a state of their own they are one value.
    assert constant_columns(odd) is not None
    assert len(set(ranks_and_codes(odd)[1].tolist())) == 40
    assert compare_at_lags(odd, np.zeros(40, bool)) is not None


def test_parts_keep_every_number():
    assert [p.shape for p in split_by_kind(np.zeros((4, 2, 3), complex))] == [(4, 6), (4, 6)]
    nested = np.zeros(4, [("a", [("b", "i4", 3), ("c", "U2")])])
    assert [p.shape for p in split_by_kind(nested)] == [(4, 3), (4, 1)]


# One noise for a call.


def call(value, rows=32):
    return Constants(rows, (np.array([True]),), (np.array([value]),))


def seen(*calls, name="mine", side=0):
    book = Calls(name)
    for one in calls:
        book.check_and_add_calls(1, [(side, one)])


@pytest.mark.parametrize("pair", [(0.0, 1.0), ("a", "b"), (False, True), (3e8, 3e8 + 0.1)])
def test_two_calls_that_differ(pair):
    with pytest.raises(ValueError, match=r"^outputs of mine must be drawn anew for every row"):
        seen(*map(call, pair))
    # The twins: one value, too few rows, the two sides.
    seen(call(pair[0]), call(pair[0]))
    seen(call(pair[0], 31), call(pair[1], 31))
    Calls("mine").check_and_add_calls(2, [(0, call(pair[0])), (1, call(pair[1]))])


def test_rounding_is_no_difference():
    seen(call(1.0), call(1.0 + 2**-45))
    seen(call(np.float32(1.0)), call(np.float32(1.0 + 2**-20)))
    # Calls of two sizes may be summed in two ways, in few bits.
    seen(call(1.0), call(1.01, 64))
    for other in (call(1.01), call(1.5, 64)):
        with pytest.raises(ValueError, match="drawn anew"):
            seen(call(1.0), other)


def test_more_calls_and_columns_want_longer_calls():
    """Of a million calls two may be equal throughout by chance in 10**-8, not with 32 rows."""
    for rows, told in ((32, nullcontext()), (36, pytest.raises(ValueError, match="drawn anew"))):
        book = Calls("mine")
        book._seen = 10**6
        book.check_and_add_calls(1, [(0, call(0.0, rows))])
        with told:
            book.check_and_add_calls(1, [(0, call(1.0, rows))])


@pytest.mark.parametrize("counts", [(1, 1), (2, 1), (2, 2), (1, 1, 1)])
def test_the_chance_of_calls_equal_throughout(counts):
    """Against all orders of the rows of a few short calls."""
    rows = 2
    values = [value for value, count in enumerate(counts) for _ in range(count)]
    calls = [call(float(value), rows) for value in values]
    orders = list(itertools.permutations(np.repeat(values, rows).tolist()))
    pure = sum(all(o[i] == o[i + 1] for i in range(0, len(o), rows)) for o in orders)
    assert checks.constant_within_calls_p_value(calls, 0) == pytest.approx(pure / len(orders))


# Neighbours.


def moments(values, lag, statistic):
    """Mean and variance over all orders, by brute force."""
    found = [statistic(np.array(order), lag) for order in itertools.permutations(values)]
    return np.mean(found), np.var(found)


def equal_pairs(order, lag):
    return float((order == np.roll(order, lag)).sum())


def products(order, lag):
    centred = order - order.mean()
    return float((centred * np.roll(centred, lag)).sum())


@pytest.mark.parametrize("values", [[0, 0, 0, 1, 1, 1, 1, 1], [0, 0, 1, 1, 2, 2, 3, 4]])
@pytest.mark.parametrize("lag", [1, 2, 3])
def test_moments_over_all_permutations(values, lag):
    order = np.array(values)[rng().permutation(8)]
    excess, variance, _ = compare_at_lags(order, order > 0) * checks._SUM_UNIT
    mean, spread = moments(values, lag, equal_pairs)
    known = spread, equal_pairs(order, lag) - mean
    assert (variance[0, lag - 1], excess[0, lag - 1]) == pytest.approx(known, abs=1e-4)
    mean, spread = moments((np.array(values) > 0).astype(float), lag, products)
    known = spread, products((order > 0).astype(float), lag) - mean
    assert (variance[1, lag - 1], excess[1, lag - 1]) == pytest.approx(known, abs=1e-4)


def sigmas(outputs, answers):
    found = checks.lag_z_scores(compare_at_lags(outputs, answers))
    return found[found != 0.0]


LAWS = {
    "continuous": lambda r: r.normal(size=(1500, 2)),
    "coin": lambda r: r.random(1500) < 0.5,
    "rare": lambda r: r.random(1500) < 0.14,
    "kept word": lambda r: r.random(1500) < 0.987,
    "many": lambda r: r.integers(12, size=1500),
    "peaked": lambda r: np.round(3 * r.standard_cauchy(size=1500)),
}


@pytest.mark.parametrize("law", LAWS)
def test_independent_rows_are_normal_out_to_four_and_a_half(law):
    """Of 200 calls: beyond 5.5 standard deviations no lag of any sequence, about 1e5 figures."""
    drawn = rng(5)
    calls = [LAWS[law](drawn) for _ in range(200)]
    together = np.concatenate([sigmas(o, o.reshape(1500, -1)[:, 0] > 0) for o in calls])
    assert np.abs(together).max(initial=0.0) < 5.6
    if law == "kept word":
        # 25 unequal pairs are expected there, but they come in twos: nothing is said of them.
        assert together.size == 0
    else:
        assert together.size > 50_000
        assert 0.97 < together.var() < 1.03


def test_a_rare_event_does_not_outweigh_a_common_one():
    """Two hits that meet by chance, in a call of their own, beside a call with many."""
    drawn = rng(4)
    common = compare_at_lags(drawn.normal(size=1000), drawn.random(1000) < 0.4)
    rare = compare_at_lags(drawn.normal(size=1000), np.isin(np.arange(1000), (300, 301)))
    assert (
        checks.significant_lag_and_z(rare),
        checks.significant_lag_and_z(common + rare),
    ) == (None, None)
    assert np.abs(checks.lag_z_scores(common + rare)).max() < 5.0


def test_what_has_no_answer():
    assert compare_at_lags(np.zeros(7), np.zeros(7, bool)) is None
    for quiet in (np.zeros(2000), np.arange(2000) == 5, np.full(2000, np.nan)):
        assert checks.significant_lag_and_z(compare_at_lags(quiet, np.zeros(2000, bool))) is None
    # A rare value that comes in one run speaks only from 25 pairs expected on.
    for rows in (100, 400):
        run = np.arange(2000) < rows
        found = checks.significant_lag_and_z(compare_at_lags(run.astype(float), run))
        assert (found is None) == (rows == 100)


def test_the_rows_that_are_looked_at_do_not_depend_on_blocks():
    for block in (1, 7, 500, 2**17, 2**20):
        starts = range(0, 4000, block)
        assert (
            sum(checks.count_lag_test_rows(start, min(block, 4000 - start)) for start in starts)
            == 2048
        )
    assert (checks.count_lag_test_rows(2**19, 2**17), checks.count_lag_test_rows(2**17, 2**17)) == (
        1024,
        0,
    )


# Dispersion.


def test_sub_blocks_cover_a_block():
    for rows in (1, 63, 64, 131, 1000, 2**17 + 1):
        edges = list_piece_edges(rows)
        assert (edges[0], edges[-1]) == (0, rows)
        assert all(end > start for start, end in itertools.pairwise(edges))
    assert len(list_piece_edges(2**17)) == len(list_piece_edges(2**17, 15 * 2**17)) == 17
    assert len(list_piece_edges(2**17, 16 * 2**17)) == 5


def in_order(blocks):
    """The pieces of blocks that stand side by side, each of them one part."""
    pieces = Pieces()
    for number, (trials, hits) in enumerate(blocks):
        pieces.add(0, number, trials, hits)
    return pieces


def test_pearson_by_hand():
    blocks = [(100, 40), (100, 60)]
    expected = stats.chi2.sf(8.0, 1)
    assert checks.rate_change_p_value([in_order(blocks)]) == pytest.approx(expected)
    # Two strata with a law each: statistics and degrees of freedom add up.
    rows = [[(100, 40), (100, 60)], [(200, 20), (200, 60)]]
    own = 8.0 + 2 * 20**2 / (200 * 0.2 * 0.8)
    assert checks.rate_change_p_value(list(map(in_order, rows))) == pytest.approx(
        stats.chi2.sf(own, 2)
    )
    nothing = [], [Pieces()], [in_order([(100, 40)])]
    assert [checks.rate_change_p_value(pieces) for pieces in nothing] == [1.0] * 3


def test_pieces_with_few_expected_hits_or_misses_say_nothing():
    for hits in (0, 1000):
        assert checks.rate_change_p_value([in_order([(1000, hits)] * 20)]) == 1.0
    assert checks.rate_change_p_value([in_order([(1000, 0)] * 20 + [(1000, 49)])]) == 1.0
    levels = in_order([(2, 1)] * 512).chi_squared()
    assert min(levels) == 5  # 32 parts of 2 trials each: 32 hits expected
    assert [freedom for _, freedom in levels.values()] == [15, 7, 3, 1]


def test_the_order_of_blocks_changes_no_sum():
    """Pieces of a thousand blocks, and a short last one, in shards that come back in any order."""
    draw = rng(8)
    sizes = [640] * 1000 + [100]
    ordered, shards = Pieces(), []
    for number, size in enumerate(sizes):
        edges = list_piece_edges(size, number * 640)
        block = Pieces.of_block(number, edges, draw.binomial(np.diff(edges), 0.3).tolist())
        ordered += block
        if not shards or draw.random() < 0.1:
            shards.append(Pieces())
        shards[-1] += block
    assert len(shards) > 50
    shuffled = Pieces()
    for place in draw.permutation(len(shards)):
        shuffled += shards[place]
    assert (shuffled.sums, shuffled.single) == (ordered.sums, ordered.single)
    assert checks.rate_change_p_value([shuffled]) == checks.rate_change_p_value([ordered]) > 1e-3
    assert len(ordered.single) <= math.log2(16 * len(sizes)) + 1
    # A gap in the middle is no piece, and nothing is counted twice.
    assert sum(trials for trials, _ in ordered.single.values()) == sum(sizes)


@pytest.mark.parametrize(("rate", "rows", "blocks"), [(0.5, 8192, 8), (0.01, 6000, 16)])
def test_the_level_of_dispersion(rate, rows, blocks):
    """At 1e-3, the resolutions together: below ten times that; P(17 of 800 | 1 %) is 4e-3."""
    drawn, alarms = rng(3), 0
    sizes = np.tile(np.diff(list_piece_edges(rows)), blocks)
    for _ in range(800):
        blocks_drawn = zip(sizes.tolist(), drawn.binomial(sizes, rate).tolist(), strict=True)
        alarms += checks.rate_change_p_value([in_order(blocks_drawn)]) < 1e-3
    assert alarms <= 17


def test_pearson_sees_slow_changes_better_when_pools_are_joined():
    hits = rng(2).binomial(128, 0.5 + 0.02 * np.sign(np.arange(512) - 256))
    fine = float(stats.chi2.sf(((hits - 64) ** 2 / 32).sum(), 511))
    assert checks.rate_change_p_value([in_order([(128, int(k)) for k in hits])]) < 1e-9 < fine
    assert math.isfinite(fine)
