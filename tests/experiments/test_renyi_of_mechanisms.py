"""Renyi divergences of our own samplers: the truth about each, and what estimates make of it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dpcore.divergence import closed_forms
from dpcore.experiments import renyi_of_mechanisms as experiment
from dpcore.experiments.renyi_of_mechanisms import CASES, laplace_2d_delta, results_to_dict

TRIALS = 3000

NORMAL = 4.9
"""Standard errors at that significance."""


@pytest.fixture(scope="module")
def result():
    return experiment.run(experiment.Config(trials=TRIALS, seed=11))


@pytest.fixture(scope="module")
def rows(result):
    return {row.name: row for row in result.rows}


def laplace_densities(x):
    return np.exp(-np.abs(x)) / 2, np.exp(-np.abs(x - 0.5)) / 2


def test_the_profile_of_two_laplace_entries():
    # The hockey stick divergence itself, by the midpoint rule on a grid that has all kinks.
    p, q = laplace_densities((np.arange(-750, 800) + 0.5) / 50)
    for epsilon in (0.0, 0.2, 0.5, 0.7, 0.95):
        gap = np.outer(p, p) - math.exp(epsilon) * np.outer(q, q)
        assert laplace_2d_delta(epsilon) == pytest.approx(gap[gap > 0].sum() / 50**2, abs=1e-4)
    assert laplace_2d_delta(1.0) == 0.0
    for delta in (0.3, 0.05, 1e-3):
        epsilon = CASES["laplace-plane"].exact(delta)
        assert epsilon == 0.0 or laplace_2d_delta(epsilon) == pytest.approx(delta, rel=1e-9)
    assert CASES["laplace-plane"].exact(0.05) > 0.5


@pytest.mark.parametrize("delta", [0.05, 0.2])
def test_exact_epsilons_by_brute_force(delta):
    x = (np.arange(-30_000, 31_000) + 0.5) / 1000
    laws = {
        "laplace": (np.exp(-np.abs(x)) / 2000, np.exp(-np.abs(x - 1.0)) / 2000),
        "gaussian": tuple(np.exp(-((x - m) ** 2) / 2) / 2506.628274631 for m in (0.0, 1.0)),
    }
    keep = CASES["randomised-response"].mechanism.keep
    law = np.array([keep, *[(1.0 - keep) / 3] * 3])
    laws["randomised-response"] = law, np.roll(law, 1)
    for name, (p, q) in laws.items():
        epsilon = CASES[name].exact(delta)
        for one, other in ((p, q), (q, p)):
            found = np.maximum(one - math.exp(epsilon) * other, 0.0).sum()
            assert found == pytest.approx(delta, abs=1e-6)
    assert CASES["gaussian-space"].exact(delta) == CASES["gaussian"].exact(delta)


def test_one_sided_noise_has_no_epsilon_at_these_deltas():
    # Below 0.5 P1 has nothing: 1 - e^-1/2 of Exp(1), and the atom besides for DPText.
    assert -math.expm1(-0.5) > experiment.MOST_DELTA
    for name in ("exponential", "dptext"):
        share = (CASES[name].mechanism([0.0], 100_000, 1) < 0.5).mean()
        expected = -math.expm1(-0.5) if name == "exponential" else 1.0 - 0.5 * math.exp(-0.5)
        assert abs(share - expected) < NORMAL * 0.5 / math.sqrt(1e5)
        assert CASES[name].exact(0.3) == math.inf
        assert np.isinf(CASES[name].forward(np.array([1.0, 2.0]))).all()


def test_the_truth_is_that_of_the_samplers():
    # E over P0 of the likelihood ratio to a small power, from the closed forms of the densities.
    size = 200_000
    y = CASES["laplace-plane"].mechanism([0.0, 0.0], size, 3)
    loss = (np.abs(y - 0.5) - np.abs(y)).sum(axis=1)
    curve = CASES["laplace-plane"].forward(np.array([1.0, 2.0]))
    assert abs(loss.mean() - curve[0]) < NORMAL * loss.std() / math.sqrt(size)
    ratio = np.exp(loss)
    assert abs(ratio.mean() - math.exp(curve[1])) < NORMAL * ratio.std() / math.sqrt(size)
    assert CASES["exponential"].backward(np.array([1.0, 7.0])).tolist() == [0.5, 0.5]
    space = closed_forms.gaussian_renyi([1.0, 3.0], [0.0] * 4, 1.0, [0.5] * 4, 1.0)
    assert CASES["gaussian-space"].forward(np.array([1.0, 3.0])) == pytest.approx(space)


def test_nothing_certified_is_above_the_truth(result, rows):
    assert result.above == 0
    for row in result.rows:
        assert (row.certified <= row.truth * (1 + 1e-9)).all()
        assert row.epsilon.epsilon_lower <= row.exact
        assert row.estimate.confidence == pytest.approx(1 - 0.05 / 24)
    # It is worth something all the same.
    for name in ("laplace", "gaussian", "randomised-response", "gaussian-space"):
        assert (rows[name].certified[:, -1] > 0.3).all()
        assert rows[name].epsilon.epsilon_lower > 0.3


def test_what_is_resolved_is_near_the_truth(rows):
    biased = {"exponential": 1, "dptext": None, "gaussian-space": None}
    for name, row in rows.items():
        for side in (0, 1):
            resolved = row.estimate.resolved[side]
            if name in biased and biased[name] != side:
                continue
            assert resolved[0], name
            off = np.abs(row.estimate.value[side] - row.truth[side])[resolved]
            assert (off < 0.12 + NORMAL * row.estimate.std_error[side][resolved]).all(), name
    # Negative control: beyond what is resolved the Gaussian curve is far too low.
    gaussian = rows["gaussian"]
    assert not gaussian.estimate.resolved[:, -1].any()
    assert (gaussian.truth - gaussian.estimate.value)[:, -1].min() > 3.0


def test_infinite_divergences_show_as_large_certified_ones(rows):
    # Of finite samples no figure can be infinite; no order above 1 of these is to be believed.
    for name, side in (("exponential", 0), ("dptext", 0), ("dptext", 1)):
        row = rows[name]
        assert np.isinf(row.truth[side]).all()
        assert not row.estimate.resolved[side, 3:].any()
        assert row.certified[side, -1] > 1.5
    for name in ("exponential", "dptext"):
        assert (rows[name].exact, rows[name].converted) == (math.inf, math.inf)
        assert rows[name].epsilon.epsilon_lower > 1.5


def test_random_bits_show_nothing(rows):
    row = rows["random-bits"]
    assert (row.truth == 0.0).all()
    assert (row.certified == 0.0).all()
    assert (row.exact, row.converted, row.epsilon.epsilon_lower) == (0.0, 0.0, 0.0)


def test_the_converted_true_curve_is_above_the_exact_epsilon(result):
    for row in result.rows:
        assert row.converted >= row.exact * (1 - 1e-12)


def test_a_certified_figure_above_the_truth_is_noticed(result, rows):
    # Negative control: half of the certified curve as its truth, half of its epsilon as exact.
    row = rows["laplace"]
    wrong = replace(row, truth=row.certified / 2, exact=row.epsilon.epsilon_lower / 2)
    assert wrong.above == 3
    found = replace(result, rows=(wrong, *result.rows[1:]))
    assert "Certified figures above the truth: 3 of 24" in found.table()


def test_text_record_and_picture(result):
    text = result.table()
    assert "Certified figures above the truth: 0 of 24" in text
    assert max(map(len, text.splitlines())) <= 100
    assert text.count("Randomised response") == 7
    record = result.to_dict()

    assert [row["mechanism"] for row in record["rows"]] == list(CASES)
    panels = [axes for axes in result.plot().axes if axes.get_title(loc="left")]
    assert len(panels) == 16
    infinite = [axes for axes in panels if axes.texts]
    assert len(infinite) == 3
    assert all("infinite" in axes.texts[0].get_text() for axes in infinite)


def test_rows_depend_on_the_seed_alone(result):
    again = experiment._estimate_renyi_of_mechanism("gaussian", result.config, 1)
    assert results_to_dict(again) == results_to_dict(result.rows[1])
    other = experiment._estimate_renyi_of_mechanism("gaussian", replace(result.config, seed=12), 1)
    assert results_to_dict(other)["value"] != results_to_dict(again)["value"]
