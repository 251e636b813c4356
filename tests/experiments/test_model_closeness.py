"""The experiment on the closeness of models: its control, its answers, and what Ctrl-C leaves."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from shared_experiments import run_experiment
from shared_extras import data, needs

from dpcore.experiments import model_closeness as experiment
from dpcore.experiments.corpora import read_sensitive_and_other_texts
from dpcore.experiments.model_closeness import Cell, Config, Result

NAMES = list(experiment.COMPARISONS)


run = partial(run_experiment, "model-closeness", quick=True)


def make_result(values, **fields):
    """A result with given distances: `values[split][level] = (far, near, two starts)`."""
    cells = []
    for split, levels in enumerate(values):
        for level, three in zip((0.0, 0.9), levels, strict=True):
            table = np.tile(np.array(three)[:, None], (1, len(experiment.MEASURES)))
            cells.append(Cell(split, level, table, 80.0, 100.0))
    config = Config(quick=True, seeds=len(values))
    return replace(Result(config, "texts", 0, 60, 24, 200, tuple(cells)), **fields)


@pytest.mark.extras
def test_two_starts_are_farther_than_two_sets():
    result = run()
    # Over ten seeds the ratio is at least 2.7 at level 0 and 1.6 at level .9.
    for level, ratio in zip(result.levels, (1.5, 1.1), strict=True):
        far, near, other = (result.mean(level, name, "Procrustes") for name in NAMES)
        assert other > ratio * max(far, near)
    assert (result.levels, result.words) == ((0.0, 0.9), 201)
    assert (result.texts, result.held_out) == (60, 66)


def test_the_sets_have_no_text_in_common():
    config = Config(quick=True)
    study = experiment._Study(config, read_sensitive_and_other_texts(config))
    parts = study.draw_sensitive_two_safe_valid_test(1)
    assert list(map(len, parts)) == [60, 60, 60, 66, 66]
    assert len({text for part in parts for text in part}) == 312
    ill = set(study.sets[0])
    assert [sum(text in ill for text in part) for part in parts] == [60, 0, 0, 33, 33]
    assert study.draw_sensitive_two_safe_valid_test(2)[0] != parts[0]
    assert max(len(text.split()) for part in parts for text in part) <= 40


@pytest.mark.extras
def test_models_of_one_start_and_equal_texts_are_one_model(monkeypatch):
    # Control of the control: without a difference of texts there is no distance.
    needs("torch")
    drawn = experiment._Study.draw_sensitive_two_safe_valid_test

    def draw_equal(self, seed):
        ill, _, _, *held_out = drawn(self, seed)
        return [ill, ill, ill, *held_out]

    def mask_equally(texts, policy, *, level, rng):
        return list(texts)

    monkeypatch.setattr(experiment._Study, "draw_sensitive_two_safe_valid_test", draw_equal)
    monkeypatch.setattr(experiment.redaction, "redact", mask_equally)
    monkeypatch.setattr(experiment, "_REDACTION_SHARES", {True: (0.0,)})
    result = experiment.run(Config(quick=True, seed=5), threads=1, progress=False)
    pairs = itertools.product(NAMES[:2], experiment.MEASURES)
    assert max(result.mean(0.0, name, measure) for name, measure in pairs) < 1e-10
    assert result.mean(0.0, NAMES[2], "Procrustes") > 0.5


def test_the_excess_and_its_spread():
    result = make_result(
        [[(0.5, 0.4, 1.0), (0.02, 0.01, 1.6)], [(0.6, 0.4, 1.0), (0.01, 0.02, 1.6)]]
    )
    assert result.excess(0.0, "CKA") == pytest.approx([0.1, 0.2])
    assert result.mean(0.0, "safe/safe", "KL") == pytest.approx(0.4)
    assert "0.550 (0.071)" in result.table()
    # Half-width of the interval with two splits: 12.706 * .0707 / 1.414 = .635.
    assert not result.is_excess_shown(0.0, "CKA")
    three = make_result([[(0.50 + x, 0.4, 1.0), (0.01 + x, 0.01, 1.6)] for x in (-0.01, 0.0, 0.01)])
    assert three.is_excess_shown(0.0, "CKA")
    assert not three.is_excess_shown(0.9, "CKA")
    assert "above 0 at 0." in three.findings()[0]
    assert "above 0 at no level" in result.findings()[0]
    lines = [line for line in three.table().splitlines() if "  excess  " in line]
    assert [line.count("*") for line in lines] == [7, 0]


def test_the_answer_follows_the_figures():
    answer = make_result([[(0.6, 0.4, 1.0), (0.02, 0.02, 1.6)]] * 2).findings()[-1]
    assert "closest at level 0.9 (by Procrustes). Their distance falls by 0.580" in answer
    assert "by 0.380: only the excess, 0.200 to 0.000, is due to the sets" in answer
    rises = make_result([[(0.2, 0.1, 1.0), (0.3, 0.3, 1.6)]] * 2)
    answer = "At no level are decoders closer than at level 0 (by Procrustes)."
    assert rises.findings()[-1] == answer


def test_names_that_do_not_exist():
    result = make_result([[(0.5, 0.4, 1.0), (0.1, 0.1, 1.0)]])
    with pytest.raises(ValueError, match=r"^level must be one of 0.0, 0.9, got 0.5$"):
        result.values(0.5, "safe/safe", "CKA")
    with pytest.raises(ValueError, match=r"^measure must be one of 'CKA'"):
        result.values(0.0, "safe/safe", "cosine")
    with pytest.raises(ValueError, match=r"^comparison must be one of 'sensitive/safe'"):
        result.values(0.0, "safe", "CKA")


@pytest.mark.extras
def test_the_record_the_table_and_the_picture():
    result = run()
    record = result.to_dict()
    assert [cell["level"] for cell in record["cells"]] == [0.0, 0.9]
    place = record["comparisons"].index("safe/safe"), record["measures"].index("KL")
    assert np.array(record["cells"][0]["values"])[place] == result.mean(0.0, "safe/safe", "KL")
    text = result.table()
    assert "generated texts: give --data" in text
    assert "One split has no spread" in text
    assert max(map(len, text.splitlines())) < 160
    assert [panel.get_title() for panel in result.plot().axes[:4]][2] == "Procrustes of decoders"


@pytest.mark.extras
def test_ctrl_c_keeps_the_levels_that_are_complete(monkeypatch):
    needs("torch")
    calls = []
    fit = experiment.lm.fit

    def interrupted(*texts, **more):
        calls.append(texts)
        model = fit(*texts, **more)
        return replace(model, partial=True) if len(calls) == 6 else model

    monkeypatch.setattr(experiment.lm, "fit", interrupted)
    result = experiment.run(Config(quick=True, seed=8), threads=1, progress=False)
    assert len(calls) == 6
    assert [cell.level for cell in result.cells] == [0.0]
    assert result.partial
    assert "INTERRUPTED" in result.table()


def test_the_permutation_test_of_full(monkeypatch):
    # The trainings are replaced: what is tested is which texts they get, and the count.
    pools, fits = [], []

    class Model:
        partial = False

        def __init__(self, texts):
            self.texts = texts

        def perplexity(self, texts, rng):
            return experiment.lm.Perplexity(2.0, 1.0, 3.0, 0.95, 4.0, 9, 1, 0, 1, 0.0, 1)

    def fit(texts, valid, **more):
        fits.append((more["rng"], more["hidden"], more["layers"], more["dropout"]))
        return Model(texts)

    def compare(a, b, texts):
        pools.append((*a.texts, *b.texts))
        # The first six are the comparisons and the observed one; then every other is as far.
        return np.full(len(experiment.MEASURES), 1.0 if len(pools) <= 6 else float(len(pools) % 2))

    monkeypatch.setattr(experiment.lm, "fit", fit)
    monkeypatch.setattr(experiment, "_distances_by_measure", compare)
    config = Config(full=True, trials=100)
    study = experiment._Study(config, read_sensitive_and_other_texts(config))
    cell = study.compare_trained_models(0, 0.5)
    assert len(fits) == 4 + 2 * 19
    assert len({seed for seed, *_ in fits}) == 2
    assert {tuple(sizes) for _, *sizes in fits} == {(200, 2, 0.2)}
    observed, *permuted = pools[4:]
    assert len(permuted) == 19
    assert {tuple(sorted(pool)) for pool in permuted} == {tuple(sorted(observed))}
    assert len(set(permuted)) == 19
    as_far = sum(place % 2 for place in range(6, 6 + 19))
    assert cell.p_values == pytest.approx((1 + as_far) / 20, abs=0.051)
    assert study.compare_trained_models(1, 0.5).p_values is None


def test_medical_abstracts_are_the_sets_of_data():
    config = Config(data=str(data("medical").parent), quick=True)
    study = experiment._Study(config, read_sensitive_and_other_texts(config))
    assert list(map(len, study.sets)) == [599, 2137]
    assert study.held_out == 74
