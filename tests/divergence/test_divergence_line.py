"""The common ball in one dimension against brute force, resampled data and closed forms."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from shared_divergence import GOLDEN, freeze, naive_ball
from shared_messages import check_messages

from dpcore import _core
from dpcore.divergence.estimators import line_ball
from dpcore.divergence.points import plan_replicates

ALPHA = 1e-4
"""Significance of each statistical test; 3.9 standard errors on both sides."""
LIMIT = 3.9

ALPHAS = np.array([0.3, 0.5, 1.0, 1.1, 2.0, 3.7, 4.0, 8.0])


def check(y0, y1, k, alphas=ALPHAS, threads=2):
    raw = line_ball(np.asarray(y0, float), np.asarray(y1, float), alphas, k, None, threads)
    np.testing.assert_allclose(raw.value, naive_ball(y0, y1, alphas, k), rtol=1e-12, atol=1e-12)
    assert raw.depth == freeze(y0, y1, k).depths
    return raw


def test_golden_values_of_three_atoms():
    y0, y1 = np.repeat([0.0, 1.0, 2.0], [50, 30, 20]), np.repeat([-0.0, 1.0, 2.0], [20, 30, 50])
    raw = check(y0, y1, 20, np.array([0.5, 1.0, 2.0, 4.0]))
    # The two sets are each other's mirror image.
    np.testing.assert_allclose(raw.value, [GOLDEN] * 2, rtol=1e-12)
    assert (raw.atom_share.tolist(), raw.unseen_share.tolist()) == ([1, 1], [0, 0])
    assert raw.rows_per_atom == 200 / 3


def kinds(rng, n, m):
    yield "normal", rng.normal(size=n), rng.normal(size=m) + 0.5
    yield "rounded", rng.normal(size=n).round(1), rng.normal(size=m).round(1)
    yield "coarse", rng.normal(size=n).round(), 2 * rng.normal(size=m).round()
    yield "lattice", rng.integers(0, 60, n) * 1.0, rng.integers(5, 70, m) * 1.0
    yield "few values", rng.integers(0, 4, n) * 1.0, rng.integers(1, 5, m) * 1.0
    mixed = np.where(rng.random(n) < 0.3, 0.0, rng.normal(size=n))
    yield "atom", mixed, np.where(rng.random(m) < 0.6, -0.0, rng.normal(size=m))
    yield "disjoint", rng.normal(size=n), rng.normal(size=m) + 100
    yield "disjoint atoms", rng.integers(0, 5, n) * 1.0, rng.integers(5, 9, m) * 1.0
    yield "inside", rng.normal(size=n) * 1e-9, rng.normal(size=m)
    yield "steps", np.repeat(rng.normal(size=n), 3)[:n], np.repeat(rng.normal(size=m), 2)[:m]
    # Rounding makes shells of thousands of distances that are equal though the numbers are not.
    yield "shells", rng.normal(size=n) + 1e17 * rng.integers(-1, 2, n), rng.normal(size=m)
    huge = rng.choice([-1e308, 1e308, 1e-320, 0.0, 5.0], n) * rng.random(n)
    yield "huge", huge, rng.normal(size=m) * 1e300


@pytest.mark.parametrize("k", [1, 3, 20])
@pytest.mark.parametrize("seed", range(3))
def test_every_kind_is_what_brute_force_says(k, seed):
    rng = np.random.default_rng([k, seed])
    for _, y0, y1 in kinds(rng, *rng.integers(k + 1, 120, 2)):
        check(y0, y1, k)


def test_few_rows():
    single, same = [([0.0], [0.0]), ([0.0], [1.0]), ([0.0, 1.0], [0.5])], [1.0] * 4
    for y0, y1 in [*single, ([1.0, 1.0, 2.0], [1.0, 3.0, 3.0]), ([1.0] * 6, [*same, 2.0])]:
        check(y0, y1, 1, np.array([0.5, 1.0]))
    # Unequal sizes scale the depth.
    rng = np.random.default_rng(3)
    assert check(rng.normal(size=25), rng.normal(size=500), 20).depth == (400, 20)
    assert check(rng.normal(size=30), rng.normal(size=41), 7).depth == (10, 7)


def test_diagnostics():
    rng = np.random.default_rng(4)
    y0 = np.concatenate([np.zeros(30), np.full(20, 9.0), rng.normal(size=50)])
    y1 = np.concatenate([np.zeros(60), rng.normal(size=140)])
    raw = line_ball(y0, y1, ALPHAS, 10, None, 1)
    assert (raw.unseen_share.tolist(), raw.atom_share.tolist()) == ([0.2, 0.0], [0.5, 0.3])
    assert (raw.rows_per_atom, raw.depth, raw.effective[0, 2]) == ((90 + 20) / 2, (20, 10), 100)
    assert (raw.effective <= [[100 + 1e-9], [200 + 1e-9]]).all()
    assert (raw.effective > 1).all()
    assert np.isnan(raw.std_error).all()
    assert (raw.replicates, raw.counted) == (None, {"replicates": 0})
    assert np.isnan(line_ball(y0[50:], y1[60:], ALPHAS, 10, None, 1).rows_per_atom)


@pytest.mark.parametrize("sizes", [(50, 50), (40, 90), (90, 40)])
def test_the_ceiling_is_reached_by_sets_far_apart(sizes):
    rng = np.random.default_rng(5)
    raw = line_ball(rng.random(sizes[0]), rng.random(sizes[1]) + 1e6, ALPHAS, 5, None, 1)
    np.testing.assert_allclose(raw.value, raw.ceiling, rtol=1e-12)
    logs = np.log([sizes[1] / raw.depth[0], sizes[0] / raw.depth[1]])
    np.testing.assert_allclose(raw.ceiling[:, 2], logs, atol=0.15)


@pytest.mark.parametrize("kind", ["bootstrap", "subsample", "jackknife"])
@pytest.mark.parametrize("seed", range(2))
def test_replicates_are_naive_resampling(kind, seed):
    rng = np.random.default_rng(seed)
    k = 4
    for name, y0, y1 in kinds(rng, 40, 30):
        sizes = len(y0), len(y1)
        # Groups of two to five rows in one of the sets.
        groups = (np.arange(40) // 2, None) if seed else (None, np.arange(30) // 5)
        drawn = plan_replicates(kind, sizes, groups, rng, None if kind == "jackknife" else 5)
        raw = line_ball(y0, y1, ALPHAS, k, drawn, 2)
        frozen = freeze(y0, y1, k)
        w0, w1 = drawn.replicate_counts(0, drawn.replicates)
        expected = np.array([
            naive_ball(np.repeat(y0, a), np.repeat(y1, b), ALPHAS, k, frozen)
            for a, b in zip(w0, w1, strict=True)
        ])  # fmt: skip
        if kind == "jackknife":
            labels = [label.astype(np.int64) for label in drawn.labels]
            given = labels[0], drawn.units[0], labels[1], drawn.units[1], None, None
            found = _core.line_ball(y0, y1, ALPHAS, k, *given, 2)[-1].reshape(expected.shape)
            assert raw.replicates is None
        else:
            found = raw.replicates
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12, err_msg=name)
        with np.errstate(invalid="ignore"):
            error = drawn.std_error(found)
        np.testing.assert_array_equal(raw.std_error, error)
        assert raw.counted == {"replicates": drawn.replicates}
        np.testing.assert_array_equal(raw.value, line_ball(y0, y1, ALPHAS, k, None, 1).value)


def test_atoms_stay_frozen():
    """The control: the rule applied anew in each replicate gives other numbers."""
    rng = np.random.default_rng(8)
    y0, y1 = rng.normal(size=300).round(2), rng.normal(size=300).round(2)
    drawn = plan_replicates("bootstrap", (300, 300), (None, None), rng, 4)
    raw = line_ball(y0, y1, ALPHAS, 5, drawn, 1)
    for values, a, b in zip(raw.replicates, *drawn.replicate_counts(0, 4), strict=True):
        again = naive_ball(np.repeat(y0, a), np.repeat(y1, b), ALPHAS, 5)
        assert np.abs(values - again).max() > 1e-3


def test_threads_and_order_change_nothing():
    rng = np.random.default_rng(9)
    y0, y1 = rng.normal(size=50_000), rng.normal(size=45_000) + 0.3
    y0[:15_000], y1[:10_000] = y0[:15_000].round(3), y1[:10_000].round(3)
    drawn = plan_replicates("jackknife", (len(y0), len(y1)), (None, None), rng)
    first = line_ball(y0, y1, ALPHAS, 20, drawn, 1)
    for threads in (2, 5):
        other = line_ball(y0, y1, ALPHAS, 20, drawn, threads)
        for name in ("value", "std_error", "effective", "unseen_share", "atom_share"):
            np.testing.assert_array_equal(getattr(other, name), getattr(first, name))
    # Reflection and scale by powers of two change no distance's order.
    shuffled = rng.permutation(y0), rng.permutation(y1)
    for sides, turn in ((shuffled, 1), ((y1, y0), -1), ((-8.0 * y0, -8.0 * y1), 1)):
        value = line_ball(*sides, ALPHAS, 20, None, 2).value
        np.testing.assert_array_equal(value, first.value[::turn])


@pytest.mark.parametrize("ratio", [1, 2])
def test_the_mean_is_unbiased_where_the_ratio_of_densities_is_constant(ratio):
    """E T_alpha = (p/q)^(alpha - 1) exactly, for whole alpha - 1, and not with j off by one."""
    k, alphas, reps = 4, np.array([2.0, 3.0, 4.0]), 3000
    rng = np.random.default_rng(ratio)
    terms = np.empty((reps, 3))
    for i in range(reps):
        y1 = rng.random(60)
        if ratio == 2:
            # Half of P1 is far away; fewer than k rows near Y0 have a probability of 1e-13.
            y1[rng.random(60) < 0.5] += 1e6
        values = line_ball(rng.random(80), y1, alphas, k, None, 1).value[0]
        terms[i] = np.exp((alphas - 1) * values)
    truth = ratio ** (alphas - 1)
    errors = terms.std(axis=0, ddof=1) / np.sqrt(reps)
    assert (np.abs(terms.mean(axis=0) - truth) < LIMIT * errors).all()
    # The control: one row more in the ball. All j are k - 1.
    wrong = terms * k / (k + np.array([1, 2, 3]))
    assert (np.abs(wrong.mean(axis=0) - truth) > LIMIT * errors).all()


def test_it_estimates_the_divergence_of_normals():
    """Bias at N = 20,000 below .01 for alpha 1 and 2; the error bar is that of repetitions."""
    rng = np.random.default_rng(10)
    alphas = np.array([1.0, 2.0])
    values, errors = [], []
    for _ in range(20):
        y0, y1 = rng.normal(size=20_000) + 0.5, rng.normal(size=20_000)
        drawn = plan_replicates("jackknife", (20_000, 20_000), (None, None), rng)
        raw = line_ball(y0, y1, alphas, 20, drawn, 2)
        values.append(raw.value)
        errors.append(raw.std_error)
    values = np.array(values)
    spread = values.std(axis=0, ddof=1)
    bias = values.mean(axis=0) - [0.125, 0.25]
    assert (np.abs(bias) < 0.01 + LIMIT * spread / np.sqrt(20)).all()
    assert (np.abs(np.mean(errors, axis=0) / spread - 1) < 0.5).all()


def call(**change):
    ones = np.ones((2, 10), np.uint32)
    given = {
        "values0": np.arange(10.0), "values1": np.arange(10.0) + 0.5, "alphas": ALPHAS, "k": 3,
        "labels0": None, "units0": 0, "labels1": None, "units1": 0,
        "weights0": ones, "weights1": ones, "threads": 1,
    } | change  # fmt: skip
    return _core.line_ball(*given.values())


NONE = {"weights0": None, "weights1": None}
LABELS = NONE | {"labels0": np.arange(10) % 2, "labels1": np.arange(10) % 2}


WRONG = [
    ({"values0": np.array([])}, "weights0", "have 0 columns, got 10"),
    (NONE | {"values0": np.array([1.0, np.nan])}, "values0", "finite, got NaN"),
    ({"alphas": np.array([0.0])}, "alphas", "positive"), ({"k": 0}, "k", "from 1"),
    ({"threads": 0}, "threads", "from 1"),
    ({"weights1": None}, "labels and weights", "given for both"),
    (LABELS | {"units0": 2, "units1": 2, "labels1": -np.arange(10)}, "labels1", ""),
    (LABELS | {"units0": 2, "units1": 2, "labels1": np.arange(9)}, "labels1", "one for"),
]  # fmt: skip


def test_what_cannot_be_is_named():
    assert len(call()[-1]) == 2 * 2 * len(ALPHAS)
    check_messages(ValueError, [(partial(call, **row[0]), *row[1:]) for row in WRONG])


def test_a_replicate_without_rows_is_nan_and_one_sided_zeros_are_atoms_unseen():
    weights = np.array([[0] * 10, [1] * 10], np.uint32)
    shape = 2, 2, len(ALPHAS)
    values = call(weights0=weights)[-1].reshape(shape)
    assert np.isnan(values[0, 0]).all()
    # Nothing is left of the denominator: all rows are one cell that it lacks.
    assert (values[0, 1, ALPHAS > 1] == np.inf).all()
    np.testing.assert_array_equal(values[1], call()[-1].reshape(shape)[1])


def test_lists_and_single_precision_are_converted():
    sides = [0.0, 1.0, 4.0, 9.0], [0.5, 2.0, 3.0]
    single = line_ball(*map(np.float32, sides), ALPHAS, 2, None, None)
    np.testing.assert_array_equal(single.value, check(*sides, 2).value)
