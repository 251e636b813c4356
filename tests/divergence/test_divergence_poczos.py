"""Poczos and Schneider's estimator against its formula, and resampling against a fresh search."""

from __future__ import annotations

import math
from statistics import NormalDist

import mpmath as mp
import numpy as np
import pytest
from shared_divergence import normal, plan_for, run_task

from dpcore.divergence import neighbours
from dpcore.divergence.estimators import _log_constants, estimate_by_k_nearest
from dpcore.divergence.points import find_points

ALPHA = 1e-6
"""Significance of the statistical test."""

ALPHAS = np.array([0.5, 1.0, 1.5, 2.0])


def run(y0, y1, alphas=ALPHAS, k=3, drawn=None, **options):
    return run_task(estimate_by_k_nearest, find_points(y0, y1, **options), alphas, k, drawn)


def naive(y0, y1, alphas, k):
    """The formula by a full table of distances, D(P0||P1) only."""
    dim, b = y0.shape[1], [a - 1 for a in alphas]
    own = np.sqrt(((y0[:, None] - y0[None]) ** 2).sum(2))
    np.fill_diagonal(own, np.inf)
    other = np.sqrt(((y0[:, None] - y1[None]) ** 2).sum(2))
    rho, nu = np.sort(own, 1)[:, k - 1], np.sort(other, 1)[:, k - 1]
    out = []
    for order in b:
        if order == 0:
            out.append(dim * np.mean(np.log(nu / rho)) + math.log(len(y1) / (len(y0) - 1)))
            continue
        constant = mp.gamma(k) ** 2 / (mp.gamma(k - order) * mp.gamma(k + order))
        ratio = (len(y0) - 1) / len(y1) * (rho / nu) ** dim
        out.append(float(mp.log(constant * np.mean(ratio**-order))) / order)
    return np.array(out)


X0, X1 = [0, 1, 3, 7], [0.5, 2, 4, 8]


@pytest.mark.parametrize(
    ("k", "alpha", "wanted"),
    [
        (1, 1.0, -0.5787519032481507), (2, 1.0, -0.4349108670222604),
        (2, 1.5, -0.7477199147597328), (2, 0.5, -0.12254168751597938),
        (3, 2.0, -0.624154309072994),
    ],
)  # fmt: skip
def test_golden_values(k, alpha, wanted):
    assert run(X0, X1, [alpha], k).value[0, 0] == pytest.approx(wanted, abs=1e-12)
    # The other direction is the first one with the sets exchanged.
    assert run(X1, X0, [alpha], k).value[1, 0] == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize(
    ("k", "alpha", "wanted"), [(5, 2.0, 0.8), (10, 2.0, 0.9), (5, 0.5, 0.94606606353473494)]
)
def test_golden_constants(k, alpha, wanted):
    found = math.exp(_log_constants(k, np.array([alpha - 1.0]))[0])
    assert found == pytest.approx(wanted, rel=1e-12)


def test_the_constant_of_a_large_k_does_not_overflow():
    found = _log_constants(400, np.array([0.7]))[0]
    exact = 2 * mp.loggamma(400) - mp.loggamma(399.3) - mp.loggamma(400.7)
    assert found == pytest.approx(float(exact), rel=1e-9)


def test_the_formula_on_a_table_of_all_distances():
    y0, y1 = normal(60, 3, 1), normal(45, 3, 2, 0.3)
    raw = run(y0, y1)
    known = np.array([naive(y0, y1, ALPHAS, 3), naive(y1, y0, ALPHAS, 3)])
    assert raw.value == pytest.approx(known, rel=1e-10)
    assert np.isnan([raw.std_error, raw.ceiling]).all()
    assert raw.depth == (3, 3)
    # The weights of alpha = 2 are the ratios themselves.
    own = np.sort(((y0[:, None] - y0[None]) ** 2).sum(2), 1)[:, 3]
    ratio = (np.sort(((y0[:, None] - y1[None]) ** 2).sum(2), 1)[:, 2] / own) ** 1.5
    assert raw.effective[0, 3] == pytest.approx(ratio.sum() ** 2 / (ratio**2).sum(), rel=1e-10)
    assert raw.effective[:, 1] == pytest.approx([60.0, 45.0], rel=1e-12)


def test_a_thousand_dimensions_stay_finite():
    raw = run(normal(30, 1000, 1), normal(30, 1000, 2), [0.5, 1.0, 2.0])
    assert np.isfinite(raw.value).all()
    # A direct power is not: the control.
    assert (0.3**1000) == 0.0


@pytest.mark.parametrize("kind", ["jackknife", "subsample"])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("short", [False, True])
def test_replicates_equal_a_fresh_search(kind, grouped, short, monkeypatch):
    if short:
        # Lists of barely k entries: nearly every replicate has to search again.
        monkeypatch.setattr(neighbours, "RUNS_OUT", 1.0)
    y0, y1 = normal(50, 2, 3), normal(41, 2, 4, 0.5)
    groups = {"groups0": np.arange(50) // 5, "groups1": np.arange(41) // 3} if grouped else {}
    found = find_points(y0, y1, **groups)
    drawn = plan_for(kind, found, 6, seed=5)
    raw = run_task(estimate_by_k_nearest, found, ALPHAS, 3, drawn)
    weights = drawn.replicate_counts(0, drawn.replicates)
    for i, (kept0, kept1) in enumerate(zip(*weights, strict=True)):
        new = np.repeat(y0, kept0, 0), np.repeat(y1, kept1, 0)
        known = np.array([naive(*sets, ALPHAS, 3) for sets in (new, new[::-1])])
        assert raw.replicates[i] == pytest.approx(known, abs=1e-11)
    assert np.array_equal(raw.std_error, drawn.std_error(raw.replicates))
    if short:
        assert raw.counted["run_outs"] > 0
    # Control: the replicates are not all the sample again.
    assert np.ptp(raw.replicates[:, 0, 0]) > 1e-3


def test_orders_and_neighbours_go_up_to_their_limits():
    run(X0, X1, [2.99], 2)
    run(X0, X1, [3.99], 3)


def test_notes_warn_of_wild_orders_and_of_high_dimensions():
    assert run(normal(30, 3, 1), normal(30, 3, 2), k=5).notes == ()
    wild = run(normal(30, 3, 1), normal(30, 3, 2), [2.0, 3.5, 4.0], k=5).notes
    assert len(wild) == 1
    assert "|alpha - 1| >= k / 2 = 2.5: 2 of 3 alphas" in wild[0]
    high = run(normal(30, 21, 1), normal(30, 21, 2), k=5).notes
    assert high[0].startswith("WARNING: poczos raises distances to the power 21")


def test_it_estimates_normal_divergences():
    """N(mu, I) against N(0, I) in two dimensions: alpha mu^2 / 2; bias from spec table 1.5."""
    mu, reps, k = 0.5, 30, 10
    values = np.array(
        [run(normal(400, 2, 100 + i, mu / math.sqrt(2)), normal(400, 2, 900 + i), [1.0, 1.5], k)
         .value[0] for i in range(reps)]
    )  # fmt: skip
    error = NormalDist().inv_cdf(1.0 - ALPHA / 2.0) * values.std(0, ddof=1) / math.sqrt(reps)
    orders = np.array([1.0, 1.5])
    assert (np.abs(values.mean(0) - orders * mu**2 / 2) < 0.05 + error).all()
    # Control: the divergences of twice the shift are told apart.
    assert (np.abs(values.mean(0) - orders * (2 * mu) ** 2 / 2) > 0.05 + error).all()
