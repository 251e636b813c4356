"""`renyi` and `kl` as a whole: what they return, which rows and orders, and what they refuse."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from dpcore.divergence import canonne_kamath_steinke, kl, renyi

RNG = np.random.default_rng(11)
Y0, Y1 = RNG.normal(size=(2, 400, 3))
LINE0, LINE1 = RNG.normal(size=3000), RNG.normal(0.7, 1.0, 2500)


@pytest.fixture(scope="module")
def estimate():
    return renyi(LINE0, LINE1, rows="independent", certified=True, rng=3)


def test_both_directions_and_the_default_orders(estimate):
    assert estimate.value.shape == estimate.belief.shape == (2, len(estimate.alphas))
    usual = 1.1 ** np.arange(1, 40)
    np.testing.assert_allclose(estimate.alphas, [1.0, *usual[usual <= 21.0]])
    assert any("orders stop at 19.2" in note for note in estimate.notes)
    # Row 0 is D(P0||P1): exchanging the samples exchanges the rows.
    back = renyi(LINE1, LINE0, rng=3, checks=False, error=None)
    np.testing.assert_array_equal(back.value[::-1], estimate.value)
    # 1.1^i up to 32 where k allows it.
    assert renyi(Y0, Y1, k=40, rng=1, error=None, checks=False).alphas[-1] == usual[35]


def test_kl_is_the_same_number_everywhere(estimate):
    alone = kl(LINE0, LINE1, rng=3, checks=False)
    other = renyi(LINE0, LINE1, alphas=[2.0], rng=3, checks=False)
    assert (alone.alphas.tolist(), other.alphas.tolist()) == ([1.0], [2.0])
    for found in (estimate.value[:, 0], estimate.kl, other.kl):
        np.testing.assert_array_equal(alone.value[:, 0], found)


def test_what_auto_takes_and_shows_beside():
    plane = renyi(Y0[:, :2], Y1[:, :2], alphas=[2.0], rng=1)
    space = renyi(Y0, Y1, alphas=[2.0], rng=1)
    assert (plane.method, plane.beside.method) == ("ball", "score")
    assert (space.method, space.beside.method) == ("score", "ball")
    ball = renyi(Y0, Y1, alphas=[2.0], rng=1, method="ball")
    np.testing.assert_array_equal(ball.value, space.beside.value)
    atoms = np.eye(30)[RNG.integers(30, size=(2, 900))]
    assert renyi(*atoms, alphas=[2.0], rng=1, checks=False).method == "ball"


def test_counts_stand_for_repeated_rows():
    counts = RNG.integers(1, 4, size=len(Y0))
    options = {"alphas": [2.0], "method": "ball", "rng": 1, "checks": False}
    counted = renyi(Y0, Y1, counts0=counts, **options)
    repeated = renyi(np.repeat(Y0, counts, axis=0), Y1, **options)
    assert counted.sizes == repeated.sizes == (int(counts.sum()), 400)
    np.testing.assert_array_equal(counted.value, repeated.value)
    np.testing.assert_array_equal(counted.std_error, repeated.std_error)


def test_a_seed_repeats_and_threads_change_nothing():
    options = {"certified": True, "rows": "independent", "error": "bootstrap", "replicates": 30}
    first = renyi(Y0, Y1, alphas=[2.0], rng=5, threads=1, method="ball", **options)
    again = renyi(Y0, Y1, alphas=[2.0], rng=first.seed, threads=2, method="ball", **options)
    assert first == again
    assert pickle.loads(pickle.dumps(first)) == first
    other = renyi(Y0, Y1, alphas=[2.0], rng=6, method="ball", **options)
    assert other != first
    np.testing.assert_array_equal(other.value, first.value)
    assert first.diagnostics.replicates.shape == (30, 2, 1)
    with pytest.raises(ValueError, match="read-only"):
        first.value[0, 0] = 1.0


def test_three_figures_for_a_delta(estimate):
    figures = estimate.epsilon(0.05)
    # Exact for a shift of 0.7 at delta .05: 0.98 (Balle and Wang 2018).
    assert 0.5 < figures.epsilon_lower < 0.98
    assert figures.epsilon_lower < figures.epsilon_hat
    assert figures.alpha in estimate.alphas
    assert not figures.extrapolated
    # From resolved orders above one only, the larger direction.
    expected = []
    for direction in (0, 1):
        last = estimate.alpha_max[direction]
        kept = (estimate.alphas > 1.0) & (estimate.alphas <= last)
        curve = np.maximum.accumulate(estimate.value[direction][kept])
        expected.append(canonne_kamath_steinke(estimate.alphas[kept], curve, 0.05).epsilon)
    assert figures.epsilon_rdp == max(expected)
    assert figures.line.epsilon >= figures.epsilon_rdp


def test_figures_that_cannot_be_given_say_why(estimate):
    tiny = estimate.epsilon(1e-6)
    assert tiny.extrapolated
    assert any("extrapolated: this sample sees delta from 0.004" in r for r in tiny.reasons)
    # The smaller set decides: 10/2500, not 10/3000.
    assert estimate.epsilon(0.0036).extrapolated
    assert not estimate.epsilon(0.0041).extrapolated
    assert estimate.epsilon(0.0).epsilon_rdp is None
    silent = renyi(LINE0, LINE1, alphas=[2.0], rng=3).epsilon(0.05)
    assert silent.epsilon_lower is None
    assert silent.epsilon_hat > 0.0
    assert any("rows='independent'" in reason for reason in silent.reasons)
    bare = renyi(LINE0, LINE1, alphas=[2.0], rng=3, checks=False).epsilon(0.05)
    assert bare.epsilon_hat is bare.epsilon_lower is None
    # Nothing beyond the first order that is not resolved is converted.
    gap = np.array(estimate.resolved)
    gap[:, 1] = False
    cut = replace(estimate, resolved=gap).epsilon(0.05)
    assert cut.epsilon_rdp is cut.line is None
    assert any("no order above one is resolved" in reason for reason in cut.reasons)


def test_negative_values_are_kept_and_told_and_the_jackknife_leaves_nothing_to_draw():
    estimate = renyi(Y0, Y1, alphas=[2.0], method="ball", rng=1, checks=False)
    assert (estimate.value < 0.0).any()
    assert any("negative" in note for note in estimate.notes)
    assert estimate.diagnostics.replicates is None
    with pytest.raises(ValueError, match="error must be 'bootstrap' or 'subsample'"):
        estimate.plot_convergence()


def test_local_methods_above_the_score_get_a_word():
    narrow, wide = RNG.normal(size=(1000, 20)), 1.2 * RNG.normal(size=(1000, 20))
    notes = renyi(narrow, wide, alphas=[2.0], method="ball", rng=1).notes
    assert any("over-estimated" in note for note in notes)
    # Below the score they get none: that is what the belief is for.
    shifted = renyi(narrow, narrow[::-1] + 0.3, alphas=[2.0], method="ball", rng=1)
    assert (shifted.beside.value > shifted.value).all()
    assert not any("over-estimated" in note for note in shifted.notes)


def test_few_rows_warn():
    with pytest.warns(UserWarning, match="error bars from 30 rows are rough: 40 or more"):
        kl(Y0[:30], Y1, rng=1, checks=False)
    with pytest.warns(UserWarning, match="k = 20 exceeds the 2 distinct rows of a set"):
        kl(Y0[:, 0] > 0.0, Y1[:, 0] > 0.0, rng=1, checks=False)
    with pytest.warns(UserWarning, match="rough"):
        small = kl(Y0[:3], Y1[:3], k=1, rng=1, method="ball")
    assert small.checks is None
    assert any("no checks" in note for note in small.notes)
