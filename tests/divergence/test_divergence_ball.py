"""The common ball against its definition, row by row, and its replicates against a fresh search."""

from __future__ import annotations

import math

import numpy as np
import pytest
from shared_divergence import GOLDEN, freeze, naive_ball, normal, plan_for, run_task

from dpcore.divergence import estimators as _ball
from dpcore.divergence import neighbours
from dpcore.divergence.estimators import estimate_by_balls
from dpcore.divergence.points import find_points

ALPHAS = np.array([0.5, 1.0, 2.0, 4.0])


def run(found, alphas=ALPHAS, k=5, drawn=None):
    return run_task(estimate_by_balls, found, alphas, k, drawn)


def both(found, k, kept=(None, None)):
    """The definition in both directions, on the sample or on rows kept so often."""
    rows = [found.coordinates(ids) for ids in found.ids]
    some = [r if w is None else np.repeat(r, w, axis=0) for r, w in zip(rows, kept, strict=True)]
    return naive_ball(*some, ALPHAS, k, freeze(*rows, k))


def lattice(size, dim, seed, shift=0.0):
    return np.round(1.5 * normal(size, dim, seed)) + shift


SAMPLES = {
    "plain": lambda: find_points(normal(70, 3, 1), normal(60, 3, 2, 0.3)),
    "float32": lambda: find_points(*map(np.float32, (normal(50, 9, 1), normal(60, 9, 2, 0.3)))),
    "unequal": lambda: find_points(normal(30, 2, 1), normal(140, 2, 2, 0.3)),
    "wide and narrow": lambda: find_points(0.05 * normal(70, 2, 1), normal(60, 2, 2)),
    "lattice": lambda: find_points(lattice(80, 3, 1), lattice(70, 3, 2, 1.0)),
    "some atoms": lambda: find_points(
        np.concatenate([lattice(60, 2, 1), normal(50, 2, 3)]),
        np.concatenate([lattice(50, 2, 2, 1.0), normal(40, 2, 4)]),
    ),
    "only atoms": lambda: find_points(
        np.eye(3), np.eye(3), counts0=[50, 30, 20], counts1=[20, 30, 50]
    ),
    "one cell": lambda: find_points(
        np.concatenate([np.zeros((40, 2)), normal(20, 2, 1)]),
        np.concatenate([np.zeros((57, 2)), normal(3, 2, 2)]),
    ),
    "nothing off the atoms": lambda: find_points(
        np.concatenate([np.zeros((40, 2)), normal(20, 2, 1)]), np.zeros((60, 2))
    ),
    "line": lambda: find_points(normal(70, 1, 1), normal(90, 1, 2, 0.3)),
    "line with atoms": lambda: find_points(lattice(80, 1, 1), np.round(normal(70, 1, 2), 1)),
    "counts": lambda: find_points(
        normal(30, 2, 1), normal(30, 2, 2), counts0=np.arange(30) % 4 + 1,
        groups0=np.arange(30) // 3, counts1=np.arange(30) % 7 + 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SAMPLES)
def test_the_sample_equals_the_definition(name):
    found = SAMPLES[name]()
    raw = run(found)
    assert raw.value == pytest.approx(both(found, 5), abs=1e-11)
    assert raw.depth == freeze(*(found.coordinates(ids) for ids in found.ids), 5).depths
    assert (np.isnan(raw.std_error).all(), raw.replicates) == (True, None)


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("kind", ["jackknife", "bootstrap", "subsample"])
@pytest.mark.parametrize("short", [False, True])
def test_replicates_equal_a_fresh_search(name, kind, short, monkeypatch):
    if short:
        # The shortest lists there can be, and balls too full to list.
        monkeypatch.setattr(neighbours, "RUNS_OUT", 1.0)
        monkeypatch.setattr(_ball, "CAP", 8)
        monkeypatch.setattr(_ball, "CAP_BYTES", 0)
    found = SAMPLES[name]()
    drawn = plan_for(kind, found, 3)
    raw = run(found, drawn=drawn)
    weights = drawn.replicate_counts(0, drawn.replicates)
    if raw.replicates is None:
        # The jackknife in one dimension keeps its standard error only.
        every = np.stack([both(found, 5, kept) for kept in zip(*weights, strict=True)])
        assert raw.std_error == pytest.approx(drawn.std_error(every), abs=1e-10, nan_ok=True)
        return
    for i in range(0, drawn.replicates, 7 if kind == "jackknife" else 1):
        wanted = both(found, 5, (weights[0][i], weights[1][i]))
        assert raw.replicates[i] == pytest.approx(wanted, abs=1e-11), i
    assert np.array_equal(raw.std_error, drawn.std_error(raw.replicates), equal_nan=True)
    assert np.array_equal(raw.value, run(found).value)
    # Control: replicates differ from the sample.
    assert np.abs(raw.replicates[:, :, 1] - raw.value[:, 1]).max() > 1e-3


def test_short_lists_are_searched_again_and_counted(monkeypatch):
    found = SAMPLES["plain"]()
    drawn = plan_for("bootstrap", found, 3)
    calm = run(found, drawn=drawn).counted
    assert calm["run_outs"] == calm["capped"] == 0
    monkeypatch.setattr(neighbours, "RUNS_OUT", 1.0)
    monkeypatch.setattr(_ball, "CAP", 4)
    monkeypatch.setattr(_ball, "CAP_BYTES", 0)
    short = run(found, drawn=drawn).counted
    assert short["run_outs"] > 0
    assert short["capped"] > 0
    assert short["list"] == 6 < calm["list"]


def test_blocks_of_queries_change_nothing(monkeypatch):
    found = SAMPLES["some atoms"]()
    drawn = plan_for("jackknife", found, None)
    whole = run(found, drawn=drawn)
    monkeypatch.setattr(neighbours, "_MAX_BLOCK_QUERIES", 7)
    parts = run(found, drawn=drawn)
    assert np.array_equal(whole.value, parts.value)
    assert np.array_equal(whole.replicates, parts.replicates)


def test_golden_values_of_atoms():
    raw = run(SAMPLES["only atoms"](), k=20)
    assert raw.value == pytest.approx(np.array([GOLDEN] * 2), abs=1e-12)
    assert raw.atom_share.tolist() == [1.0, 1.0]
    assert (raw.rows_per_atom, raw.unseen_share.tolist()) == (pytest.approx(200 / 3), [0.0, 0.0])
    by_sum = math.log(sum(m / 100 * (m - 1) / 99 * 101 / (q + 1) for m, q in
                          [(50, 20), (30, 30), (20, 50)]))  # fmt: skip
    assert raw.value[0, 2] == pytest.approx(by_sum, abs=1e-12)


def test_disjoint_sets_reach_the_ceiling():
    raw = run(find_points(normal(60, 2, 1), normal(60, 2, 2, 1e3)), k=4)
    assert raw.value == pytest.approx(raw.ceiling, abs=1e-12)
    assert raw.ceiling[0, 1] == pytest.approx(math.log(60 / 4), abs=0.15)
    # Control: overlapping sets stay below it.
    assert (run(find_points(normal(60, 2, 1), normal(60, 2, 2)), k=4).value < raw.ceiling - 1).all()


def test_atoms_that_the_other_set_lacks():
    # Where only such atoms are left for alpha > 1 the value is infinite, never a falling number.
    found = find_points(np.repeat(normal(5, 2, 1), 8, 0), np.repeat(normal(5, 2, 2), 8, 0))
    raw = run(found, [0.5, 2.0], k=8)
    assert raw.unseen_share.tolist() == [1.0, 1.0]
    assert np.isfinite(raw.value[:, 0]).all()
    assert np.isposinf(raw.value[:, 1]).all()
    mixed = find_points([[0, 0]] * 30 + [[1, 1]] * 10, [[0, 0]] * 40)
    assert run(mixed, [2.0]).unseen_share.tolist() == [0.25, 0.0]
    # A ball with one row of the other set has j = 0, and is no atom.
    assert run(SAMPLES["plain"](), [2.0], k=1).unseen_share.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(("k", "limit"), [(5, 6.0), (60, 60.0)])
def test_alpha_goes_up_to_its_limit(k, limit):
    run(find_points(normal(70, 2, 1), normal(60, 2, 2)), [limit], k)


def test_notes_say_where_balls_are_not_balls():
    assert run(SAMPLES["plain"]()).notes == ()
    assert any("are one cell" in note for note in run(SAMPLES["one cell"]()).notes)
    few = find_points(normal(60, 2, 1), np.repeat(normal(20, 2, 2), 3, 0))
    assert "k = 21 exceeds the 20 distinct rows of y1" in run(few, [2.0], k=21).notes[0]
    assert run(few, [2.0], k=20).notes == ()


def test_the_effective_number_of_terms():
    raw = run(SAMPLES["plain"]())
    assert (raw.effective <= np.array([[70.0], [60.0]]) + 1e-9).all()
    assert (raw.effective >= 1.0).all()
    # Weights differ more at larger orders.
    assert (np.diff(raw.effective[:, 1:], axis=1) < 0).all()


def test_lists_are_long_enough():
    """The spec's table: a list of K rows falls short of k with probability below 1e-6."""
    found = find_points(normal(900, 2, 1), normal(900, 2, 2))
    drawn = {kind: plan_for(kind, found, None) for kind in ("bootstrap", "jackknife", "subsample")}
    length, plan = neighbours.required_list_length, drawn["bootstrap"]
    assert [length(k, plan, 900) for k in (5, 10, 20, 50, 100)] == [24, 33, 49, 92, 155]
    assert [length(k, plan, 900, single=True) for k in (5, 20, 100)] == [26, 60, 212]
    assert (length(20, None, 900), length(20, plan, 30)) == (20, 30)
    assert 20 < length(20, drawn["jackknife"], 900) < 35
    assert 60 < length(20, drawn["subsample"], 900) < 90
