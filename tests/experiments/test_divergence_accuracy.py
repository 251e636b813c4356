"""Accuracy of divergences: against our own recorded values, with an estimator that must fail.

The recorded values are 200 repetitions with one seed; a fresh run has fewer and another. Each
comparison allows .01 and four standard errors: for one fixed seed, chance does not fail it.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dpcore.experiments import divergence_accuracy as accuracy
from dpcore.experiments.divergence_accuracy import ALPHAS, CASES, PUBLISHED

REFERENCE = Path(__file__).parent.parent / "reference"
RECORD = json.loads((REFERENCE / "divergence_accuracy.json").read_text(encoding="utf-8"))
KNOWN = {(cell["case"], cell["method"]): cell for cell in RECORD["cells"]}
NAMES = tuple(dict.fromkeys(case for case, _ in KNOWN))
METHODS = tuple(dict.fromkeys(method for _, method in KNOWN))
REPETITIONS = 30

TRUTHS = {
    "n1-half": (0.125, 0.25, 0.5),
    "n1-one": (0.5, 1.0, 2.0),
    "n2-wider": (0.311, 0.441, 0.567),
    "n5-wider": (0.522, 0.771, 1.03),
    "n20-wider": (0.678, 1.11, None),
    "exponential": (0.072, 0.118, 0.174),
    "atom-n2": (0.241, 0.469, 0.753),
    "n5-narrower": (4.03, math.inf, math.inf),
    "n384-two": (2.0, 4.0, 8.0),
    "scales": (0.5, 1.0, 2.0),
    "cauchy": (math.inf, math.inf, math.inf),
    "unequal": (0.0, 0.0, 0.0),
}
"""As printed by others, to the digits that they give."""


@pytest.fixture(scope="module")
def fresh():
    config = accuracy.Config(
        repetitions=REPETITIONS, rows=1000, cases=NAMES, methods=METHODS, certified=0, seed=77
    )
    return accuracy.run(config)


def within(mean, spread, known, repetitions):
    """The comparison: .01 and four standard errors of the fresh mean around the recorded one."""
    allowed = 0.01 + 4.0 * np.maximum(spread, known["spread"]) / math.sqrt(repetitions)
    return np.abs(mean - np.array(known["mean"])) <= allowed


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.sweep
@pytest.mark.parametrize("name", NAMES)
def test_a_fresh_run_agrees_with_the_recorded_one(fresh, name, method):
    cell, known = fresh.cell(name, method), KNOWN[name, method]
    if "mean" not in known:
        assert cell.refused is not None
        assert "zero" in cell.refused
        return
    assert cell.refused is None
    assert not cell.infinite.any()
    # Mean minus truth minus recorded bias: the truth cancels, also where it is infinite.
    assert within(cell.mean, cell.spread, known, len(cell.values)).all()


def plug_in(y0, y1, k=20):
    """The ball in one dimension without any correction: counts over sizes, the row itself in."""
    values = []
    for own, other in ((y0, y1), (y1, y0)):
        a, b = np.sort(own[:, 0]), np.sort(other[:, 0])
        radius = np.partition(np.abs(a[:, None] - b), k - 1, axis=1)[:, k - 1]
        upto = np.searchsorted(a, a + radius, "right") - np.searchsorted(a, a - radius, "left")
        ratio = np.log(upto / len(a)) - math.log(k / len(b))
        means = [np.log(np.mean(np.exp((al - 1.0) * ratio))) / (al - 1.0) for al in ALPHAS[1:]]
        values.append([ratio.mean(), *means])
    return values


def test_an_estimator_without_corrections_fails():
    # Control: the same comparison, the same number of repetitions; beyond order 1, where the
    # corrections of numerator and denominator nearly cancel.
    case, known = CASES["exponential"], KNOWN["exponential", "ball"]
    samples = (case.draw(np.random.default_rng(i), 1000, 1000) for i in range(REPETITIONS))
    values = np.array([plug_in(*sample) for sample in samples])
    agreed = within(values.mean(axis=0), values.std(axis=0, ddof=1), known, REPETITIONS)
    assert not agreed[:, 1:].any()


def test_truths_are_the_printed_ones():
    for name, printed in TRUTHS.items():
        for value, known in zip(CASES[name].truth[0], printed, strict=True):
            if known is not None:
                assert value == pytest.approx(known, abs=0.0051)
    assert CASES["cauchy"].truth[1] == pytest.approx((0.259245, 0.284683, 0.306365), abs=1e-6)
    for case in CASES.values():
        # A divergence never falls with its order.
        for direction in case.truth:
            assert list(direction) == sorted(direction)
            assert direction[0] >= 0.0


def test_samplers_are_seeded_and_of_the_right_law():
    for name, case in CASES.items():
        first, again = (case.draw(np.random.default_rng(5), 300, 200) for _ in range(2))
        assert [len(y) for y in first] == [300, 200]
        assert first[0].shape[1] == first[1].shape[1]
        assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True)), name
    y0, y1 = CASES["atom-n2"].draw(np.random.default_rng(6), 100_000, 100_000)
    assert np.mean(~y0.any(axis=1)) == pytest.approx(0.3, abs=0.01)
    assert np.mean(~y1.any(axis=1)) == pytest.approx(0.1, abs=0.01)


def test_published_figures_belong_to_cases_and_methods():
    assert set(PUBLISHED) <= set(CASES)
    for known in PUBLISHED.values():
        for row in known:
            assert row.method in accuracy.NEIGHBOURS
            assert len(row.figures) == len(ALPHAS)
            assert row.source


def small(**fields):
    known = {"repetitions": 3, "rows": 150, "cases": ("n1-half", "cauchy", "atom-n2")}
    return accuracy.run(accuracy.Config(**{**known, **fields}))


@pytest.fixture(scope="module")
def few():
    return small(certified=1)


def test_failing_rows_are_estimated_with_certificates(few):
    assert {one.case for one in few.trusted} == {"cauchy"}
    assert few.misleading == 0
    one = few.trusted[0]
    # Control: a certificate above a value that is called an estimate is counted.
    estimate = one.estimate
    above = replace(estimate.certificate, bound=estimate.value + 10.0)
    believed = np.ones(estimate.resolved.shape, dtype=bool)
    wrong = replace(one, estimate=replace(estimate, certificate=above, resolved=believed))
    assert wrong.misleading == np.isfinite(estimate.value).sum()
    none = replace(one, estimate=replace(estimate, certificate=above, resolved=~believed))
    assert none.misleading == 0
    null = replace(one, case="unequal")
    far = replace(
        estimate, value=np.full(believed.shape, 0.06), resolved=believed,
        certificate=replace(above, bound=np.zeros(believed.shape)),
    )  # fmt: skip
    assert replace(null, estimate=far).misleading == believed.size
    assert replace(one, estimate=far).misleading == 0


def test_text_record_and_picture(few):
    text = few.table()
    assert max(map(len, text.splitlines())) <= 100
    assert "N1, mu = .5: D(P0||P1) = 0.125 / 0.25 / 0.5; 150 and 150 rows, 3 times" in text
    assert "Cauchy against N(0, 1): D(P0||P1) = inf / inf / inf; 150 and 150 rows, 2 times" in text
    assert "-0.006/-0.02/-0.094" in text
    assert "Misleading values: 0." in text
    poczos = [line.split() for line in text.splitlines() if line.startswith("  poczos")]
    assert ["poczos", "refused"] in poczos
    record = few.to_dict()
    assert len(record["cells"]) == 3 * 5
    # Of more than 53 bits: as a number, readers in other languages would round it.
    assert record["certified"][0]["seed"] == str(few.trusted[0].estimate.seed)
    figure = few.plot()
    assert len(figure.axes) == 3
    ticks = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    assert ticks[::2] == ["N1, mu = .5", "atom .3 vs .1, N2, mu = .5", "Cauchy vs N(0, 1)"]


def test_bias_and_spread_leave_infinite_values_out_and_count_them():
    values = np.ones((4, 2, 3))
    values[0, 0, 1] = math.inf
    values[1:, 0, 1] = (1.0, 2.0, 3.0)
    values[:, 1, 2] = math.nan
    cell = accuracy.Cell("n1-half", "ball", (100, 100), values)
    assert cell.infinite.tolist() == [[0, 1, 0], [0, 0, 4]]
    assert (cell.mean[0].tolist(), cell.spread[0].tolist()) == ([1.0, 2.0, 1.0], [0.0, 1.0, 0.0])
    assert cell.bias[0].tolist() == [0.875, 1.75, 0.5]
    assert math.isnan(cell.mean[1, 2])
    assert math.isnan(cell.spread[1, 2])


def test_a_seed_repeats_its_samples_whatever_else_is_asked(few):
    for cell in small(certified=0, cases=("atom-n2",), methods=("score", "ball")).cells:
        assert cell == few.cell(cell.case, cell.method)
    other = small(certified=0, cases=("atom-n2",), methods=("ball",), seed=1)
    assert other.cells[0] != few.cell("atom-n2", "ball")


def test_trials_are_shared_among_the_cases():
    assert accuracy.Config(trials=1).size("n1-one") == (2, 100)
    assert accuracy.Config(trials=10**7).size("n1-one") == (200, 1000)
    assert accuracy.Config(trials=25 * 6000).size("n1-one") == (6, 1000)
    assert accuracy.Config(rows=5000).size("n20-half") == (200, 5000)
    assert accuracy.Config(rows=5000).size("n20-narrower") == (10, 5000)
    assert accuracy.Config(trials=1).other_rows("unequal") == 1000
    assert accuracy.Config(rows=500).other_rows("unequal") == 10_000
    assert accuracy.Config(rows=500).other_rows("n20-half") == 500
