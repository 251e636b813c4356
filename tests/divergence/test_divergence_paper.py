"""Gusain and Leith's estimator: both readings of it, and its bootstrap against a fresh search."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from shared_divergence import plan_for, run_task

from dpcore.divergence import neighbours
from dpcore.divergence.estimators import estimate_by_paper
from dpcore.divergence.neighbours import Finder
from dpcore.divergence.points import find_points

ALPHAS = np.array([0.5, 1.0, 2.0])


def run(found, alphas=ALPHAS, k=2, drawn=None, own=False, literal=False):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return of(found, alphas, k, drawn, own, literal)


def of(found, alphas, k, drawn, own, literal):
    options = {"self_neighbour": own, "literal": literal}
    return run_task(estimate_by_paper, found, alphas, k, drawn, **options)


def densities(query, among, times, k, own, dim):
    """ln n and ln rho of one query, with k the number of distinct points reached."""
    squared = ((among - query) ** 2).sum(1)
    order = np.argsort(squared, kind="stable")
    if not own:
        order = order[(among[order] != query).any(1)]
    near = order[: min(k, len(order))]
    return times[near].sum(), 0.5 * dim * math.log(squared[near[-1]])


def naive(rows0, rows1, alphas, k, own, literal):
    """D(P0||P1) of (distinct rows, copies) pairs in their frozen order, one query at a time."""
    (u0, m0), (u1, m1) = ((u[m > 0], m[m > 0]) for u, m in (rows0, rows1))
    dim = u0.shape[1]
    near0 = [densities(y, u0, m0, k, own, dim) for y in u0]
    near01 = [densities(y, u1, m1, k, True, dim) for y in u0]
    total0 = sum(n for n, _ in near0)
    total1 = sum(densities(y, u1, m1, k, own, dim)[0] for y in u1)
    log0 = np.array([math.log(n / total0) - r for n, r in near0])
    log1 = np.array([math.log(n / total1) - r for n, r in near01])
    kl = np.average(log0 - log1, weights=m0)
    out = []
    for alpha in alphas:
        if alpha == 1.0:
            out.append(kl)
        elif literal:
            inside = alpha * log0 - (alpha - 1.0) * log1
            out.append(np.average(inside, weights=m0) / (alpha - 1.0))
        else:
            powers = np.exp((alpha - 1.0) * (log0 - log1))
            out.append(math.log(np.average(powers, weights=m0)) / (alpha - 1.0))
    return np.array(out)


def multiset(found, side, kept=None):
    """Distinct rows of one side in the order of their pooled ids, and copies of each."""
    ids = np.unique(found.ids[side])
    copies = np.bincount(found.ids[side], weights=kept, minlength=found.unique)
    return found.coordinates(ids).astype(np.float64), copies[ids].astype(np.int64)


SINGLE = ([0, 1, 3, 7], [0.5, 2, 4, 8])
REPEATED = ([0, 0, 0, 1, 3], [0, 1, 1, 2, 5])


@pytest.mark.parametrize(
    ("sets", "own", "literal2", "fixed2", "kl"),
    [
        (SINGLE, True, -1.9780752646527944, 0.06062462181643502, -0.0719205181129452),
        (SINGLE, False, -3.2794201073749862, -math.log(2.0), -0.7225929394740411),
        (REPEATED, True, -0.949186787954017, 0.2776317365982792, 0.24436281614411648),
        (REPEATED, False, -3.261484194270949, -0.7156200364120042, -0.9117858870143495),
    ],
)
def test_golden_values(sets, own, literal2, fixed2, kl):
    found, back = find_points(*sets), find_points(*sets[::-1])
    for literal, values in ((False, [kl, fixed2]), (True, [kl, literal2])):
        for direction, points in enumerate((found, back)):
            value = run(points, [1.0, 2.0], own=own, literal=literal).value[direction]
            assert value == pytest.approx(values, abs=1e-12)


def test_two_equal_sets_without_repeated_rows_give_zero():
    rows = np.random.default_rng(1).normal(size=(40, 2))
    assert (run(find_points(rows, rows[::-1]), own=True, k=4).value == 0.0).all()
    # Control: not so if a row is not its own neighbour.
    assert (np.abs(run(find_points(rows, rows[::-1]), own=False, k=4).value) > 0.1).all()


def test_the_printed_formula_is_kl_plus_an_entropy():
    """literal(alpha) == KL + mean(ln P0) / (alpha - 1), so a change of scale moves it."""
    rng = np.random.default_rng(2)
    y0, y1 = rng.normal(size=(50, 3)), rng.normal(size=(60, 3)) + 0.2
    alphas = np.array([0.5, 1.5, 2.0, 8.0])
    raw = run(find_points(y0, y1), alphas, 5, literal=True).value
    entropy = (raw - run(find_points(y0, y1), [1.0], 5).value) * (alphas - 1.0)
    assert np.abs(entropy - entropy[:, :1]).max() < 1e-12
    # Ten times the scale takes 3 ln 10 from every ln P0, and leaves the corrected form alone.
    grown = run(find_points(10.0 * y0, 10.0 * y1), alphas, 5, literal=True).value
    assert (raw - grown) * (alphas - 1.0) == pytest.approx(3.0 * math.log(10.0), abs=1e-10)
    sets = find_points(y0, y1), find_points(10.0 * y0, 10.0 * y1)
    fixed, again = (run(found, alphas, 5).value for found in sets)
    assert fixed == pytest.approx(again, abs=1e-12)


def test_the_printed_formula_warns():
    found = find_points(*SINGLE)
    with pytest.warns(UserWarning, match="not a Renyi divergence"):
        of(found, ALPHAS, 2, None, False, True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        of(found, ALPHAS, 2, None, False, False)


def lattice(seed, size, shift):
    """Rows on a lattice: many repeated and shared ones, and many equal distances."""
    return np.round(2.0 * np.random.default_rng(seed).normal(size=(size, 2))) + shift


@pytest.mark.parametrize("kind", ["bootstrap", "jackknife", "subsample"])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("literal", [False, True])
@pytest.mark.parametrize("short", [False, True])
def test_replicates_equal_a_fresh_search(kind, own, literal, short, monkeypatch):
    if short:
        monkeypatch.setattr(neighbours, "RUNS_OUT", 1.0)
    groups = {"groups0": np.arange(60) // 4} if literal else {}
    found = find_points(lattice(1, 60, 0.0), lattice(2, 45, 1.0), counts1=[1, 2, 1] * 15, **groups)
    drawn = plan_for(kind, found, 5)
    k = 4
    raw = run(found, ALPHAS, k, drawn, own, literal)
    weights = drawn.replicate_counts(0, drawn.replicates)
    for i, kept in enumerate(zip(*weights, strict=True)):
        new = [multiset(found, side, kept[side]) for side in (0, 1)]
        for a in (0, 1):
            wanted = naive(new[a], new[1 - a], ALPHAS, k, own, literal)
            assert raw.replicates[i, a] == pytest.approx(wanted, abs=1e-11)
    whole = [multiset(found, side) for side in (0, 1)]
    assert raw.value[0] == pytest.approx(naive(*whole, ALPHAS, k, own, literal), abs=1e-12)
    assert np.array_equal(raw.std_error, drawn.std_error(raw.replicates))
    assert (raw.counted["run_outs"] > 0) or not short
    assert np.ptp(raw.replicates[:, 0, 1]) > 1e-3


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(1).normal(size=300),
        np.round(np.random.default_rng(2).normal(size=300), 2).astype(np.float32),
        # Differences from 1e16 round to the same numbers.
        np.concatenate([np.arange(40.0), 1e16 + 2.0 * np.arange(30)]),
        np.concatenate([np.arange(40.0), [1e18]]),
        np.arange(5.0),
    ],
)
def test_sorted_values_are_found_like_any_others(values):
    """One dimension is looked up; the same rows with a second, constant coordinate are searched."""
    line = find_points(values, values[::-1])
    plane = find_points(*(np.stack([v, np.ones_like(v)], 1) for v in (values, values[::-1])))
    ids = np.arange(line.unique, dtype=np.uint32)
    for among in (ids, ids[::2]):
        for width in {1, min(4, len(among)), len(among)}:
            counted = {"rescans": 0}
            looked_up = Finder(line, among, 1, counted).nearest(ids, width)
            searched = Finder(plane, among, 1, counted).nearest(ids, width)
            assert all(map(np.array_equal, looked_up[:2], searched[:2]))


def test_sorted_values_are_hardly_ever_searched(monkeypatch):
    monkeypatch.delattr(Finder, "_brute_knn_squared")
    found = find_points(np.random.default_rng(1).normal(size=300), np.arange(5.0))
    Finder(found, np.arange(300, dtype=np.uint32), 1, {}).nearest(np.arange(305), 7)
    # Control: rounded differences are.
    far = find_points(np.arange(40.0), [1e18])
    with pytest.raises(AttributeError, match="_brute_knn_squared"):
        Finder(far, np.arange(40, dtype=np.uint32), 1, {}).nearest(np.arange(41), 7)


@pytest.mark.parametrize(("y1", "own"), [([5, 6, 3, 3], False), ([5, 6, 7, 7], True)])
def test_the_second_neighbour_of_a_repeated_row_is_another_point(y1, own):
    assert np.isfinite(run(find_points([0, 1, 2, 3], y1), k=2, own=own).value).all()


def test_more_neighbours_than_points_are_noted():
    found = find_points(*SINGLE)
    assert run(found, k=3).notes == ()
    raw = run(found, k=9)
    assert "k = 9 exceeds the 3 neighbours" in raw.notes[0]
    whole = [multiset(found, side) for side in (0, 1)]
    assert raw.value[0] == pytest.approx(naive(*whole, ALPHAS, 9, False, False), abs=1e-12)
    # Nor has a replicate more: there is nothing to search again for.
    drawn = plan_for("jackknife", found, None)
    raw = run(found, k=9, drawn=drawn)
    new = [multiset(found, side, kept[0]) for side, kept in enumerate(drawn.replicate_counts(0, 1))]
    wanted = naive(*new, ALPHAS, 9, False, False)
    assert (raw.replicates[0, 0], raw.counted["run_outs"]) == (pytest.approx(wanted, abs=1e-12), 0)


def test_atoms_are_reported():
    raw = run(find_points([0, 1], [1, 2], counts0=[9, 1], counts1=[1, 9]))
    assert (raw.atom_share.tolist(), raw.rows_per_atom) == ([0.9, 0.9], pytest.approx(20 / 3))


def test_high_dimensions_are_noted():
    rng = np.random.default_rng(1)
    assert run(find_points(rng.normal(size=(9, 20)), rng.normal(size=(9, 20)))).notes == ()
    notes = run(find_points(rng.normal(size=(9, 21)), rng.normal(size=(9, 21)))).notes
    assert notes[0].startswith("WARNING: the paper's formula raises distances to the power 21")
