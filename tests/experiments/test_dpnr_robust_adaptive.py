"""Training with noise: the models are what they are called, and the figures those of the models."""

from __future__ import annotations

from dataclasses import replace

import pytest
from shared_extras import data, needs

from dpcore.experiments import dpnr_robust_adaptive as study
from dpcore.experiments.dpnr_robust_adaptive import Config, Result, models
from dpcore.experiments.dpnr_robust_adaptive.models import Job, Model, Test, published_accuracy

Test.__test__ = False
AG = ("ag_news", 16)


def run(**fields):
    needs("torch")
    return study.run(Config(trials=2000, quick=True, **fields), progress=False)


@pytest.fixture(scope="module")
def result():
    """Two seeds of the quick run."""
    return run(seeds=2)


def made(config, accuracies):
    """A result with given accuracies: line -> epsilon -> one a seed."""
    made_models = []
    for line, levels in accuracies.items():
        for level, values in levels.items():
            trained = level if models.LINES[line].each else None
            for number, value in enumerate(values):
                job = Job("ag_news", 16, number, line, trained)
                made_models.append(Model(job, 0.0, 0.0, ((Test(level), value),)))
    return Result(config, tuple(made_models), (study.Size("ag_news", "made", 10, 10, 4, 0.25),))


@pytest.mark.extras
@pytest.mark.sweep
def test_training_learns_and_noise_costs(result):
    for line in ("not robust", "constant 5", "uniform 2 to 10"):
        found = (result.values(*AG, line, level) for level in (None, 5.0, 1.0))
        for clean, mild, strong in zip(*found, strict=True):
            assert clean > 0.8 > strong
            assert mild > strong + 0.1
    assert all(value > 0.7 for value in result.values(*AG, "constant 5", 5.0))


@pytest.mark.sweep
@pytest.mark.extras
def test_masked_words_that_are_left_out_cost_less_than_random_rows(result):
    for line, trained in (("not robust", False), ("robust", False), ("robust", True)):
        tests = (Test(4.0, 0.5, mask) for mask in ("leave_out", "zero_id"))
        left, zero = (result.masked(*AG, line, test, trained) for test in tests)
        assert len(left) == len(zero) == 2
        assert min(left) > max(zero) + 0.1
    assert result.masked(*AG, "not robust", Test(4.0, 0.5, "leave_out"), True) == ()


@pytest.mark.sweep
@pytest.mark.extras
def test_constant_5_is_the_robust_model_of_5(result):
    assert result.values(*AG, "robust", 5.0) == result.values(*AG, "constant 5", 5.0)
    assert result.values(*AG, "robust", 1.0) != result.values(*AG, "constant 5", 1.0)
    assert result.values(*AG, "robust", None) == ()
    jobs = [model.job for model in result.models]
    assert len(set(jobs)) == len(jobs)


@pytest.mark.sweep
@pytest.mark.extras
def test_a_part_repeats_the_whole(result):
    part = run(seeds=1, lines=("not robust",), epsilons=(5.0,))
    assert part.values(*AG, "not robust", 5.0) == result.values(*AG, "not robust", 5.0)[:1]
    test = Test(4.0, 0.5, "leave_out")
    assert part.masked(*AG, "not robust", test) == result.masked(*AG, "not robust", test)[:1]
    assert {model.job.line for model in part.models} == {"not robust"}


@pytest.mark.extras
def test_the_sound_scale_sends_nothing_at_16_entries():
    found = run(seeds=1, lines=("robust, b = d/epsilon",), epsilons=(1.0,))
    assert abs(found.values(*AG, "robust, b = d/epsilon", 1.0)[0] - 0.25) < 0.15
    assert [model.job.trained for model in found.models] == [1.0]


@pytest.mark.sweep
@pytest.mark.extras
def test_record_table_and_picture(result):
    record = result.to_dict()
    assert record["corpora"][0]["origin"].startswith("generated (topics")
    assert {row["true"] for row in record["true"]} == {16.0, 80.0}
    assert (len(record["models"]), record["study"]) == (len(result.models), [])
    text = result.table()
    assert "WITHOUT DATA" in text
    assert "the study" not in text.replace("the study's", "")
    assert "true epsilon" in text
    assert "better than one model trained at 5, beyond both spreads" in text
    axes = result.plot().axes
    labels = ["claimed epsilon", "share of masked words, claimed epsilon 4"]
    assert [one.get_xlabel() for one in axes] == labels
    assert [label.get_text() for label in axes[0].child_axes[0].get_xticklabels()] == ["16", "80"]
    assert "generated" in axes[0].get_ylabel()


@pytest.mark.extras
def test_a_training_that_ctrl_c_ended_early_ends_the_run(monkeypatch):
    needs("torch")
    from dpcore.text import DPNR

    calls, real = [], DPNR.fit

    def fit(self, *args, **given):
        calls.append(1)
        model = real(self, *args, **given)
        model.trained = replace(model.trained, partial=len(calls) == 3)
        return model

    monkeypatch.setattr(DPNR, "fit", fit)
    found = run(seeds=1)
    assert (found.partial, len(found.models), len(calls)) == (True, 2, 3)


def test_crossing_and_gains():
    config = Config(quick=True, epsilons=(1.0, 3.0, 4.0, 5.0), seeds=2)
    plain = {1.0: (0.4, 0.4), 3.0: (0.5, 0.5), 4.0: (0.6, 0.6), 5.0: (0.7, 0.7)}
    robust = {1.0: (0.5, 0.5), 3.0: (0.4, 0.4), 4.0: (0.6, 0.7), 5.0: (0.8, 0.8)}
    # A single epsilon below, where robust is better by luck, is no crossing.
    assert (
        study.least_epsilon_robust_wins(made(config, {"not robust": plain, "robust": robust}), *AG)
        == 4.0
    )
    turned = made(config, {"not robust": robust, "robust": plain})
    assert study.least_epsilon_robust_wins(turned, *AG) is None
    both = {"robust": {5.0: (0.70, 0.72)}, "uniform 2 to 10": {5.0: (0.80, 0.82)}}
    found = {gain.line: gain for gain in study.accuracy_gains_vs_control(made(config, both), *AG)}
    assert found["uniform 2 to 10"].mean == pytest.approx(0.1)
    assert found["uniform 2 to 10"].beyond
    assert not found["robust"].beyond
    wide = {**both, "uniform 2 to 10": {5.0: (0.6, 1.0)}}
    assert not any(gain.beyond for gain in study.accuracy_gains_vs_control(made(config, wide), *AG))


def test_the_study_s_figures():
    assert published_accuracy("ag_news", 32, "robust", 5.0) == 0.73
    assert published_accuracy("yelp", 64, "adaptive", 2.0) == 0.75
    assert published_accuracy("ag_news", 64, "adaptive", 4.0, 0.1) == 0.40
    assert published_accuracy("ag_news", 32, "adaptive", 5.0) is None
    assert published_accuracy("ag_news", 32, "not robust", None) == 0.80
    assert published_accuracy("yelp", 32, "robust", 4.0, 0.3) is None
    assert published_accuracy("ag_news", 32, "not robust", 2.5) is None
    assert [study.true_epsilon(level, 64) for level in models.EPSILONS] == pytest.approx(
        [64.0 * level for level in models.EPSILONS]
    )


@pytest.mark.extras
@pytest.mark.sweep
def test_the_real_corpora():
    found = run(seeds=1, data=str(data()), lines=("not robust", "robust"), epsilons=(5.0,))
    assert found.sizes[0].train == found.sizes[0].test == 500
    assert found.values(*AG, "not robust", None)[0] > 0.5
    assert "WITHOUT DATA" not in found.table()


def test_the_study_s_figures_stand_beside_ours_on_its_data():
    job = Job("ag_news", 32, 0, "robust", 5.0)
    model = Model(job, 0.1, 0.8, ((Test(), 0.8), (Test(5.0), 0.72)))
    size = study.Size("ag_news", "AG", 10, 10, 4, 0.25)
    config = Config(seeds=1, data="folder", dims=(32,), epsilons=(5.0,))
    assert "the study, robust 0.73" in " ".join(Result(config, (model,), (size,)).table().split())
    assert "0.73" not in Result(replace(config, data=None), (model,), (size,)).table()


def test_full_means_more():
    usual, full = Config(), Config(full=True)
    assert (usual.seeds, full.seeds) == (3, 5)
    assert sum(job.mask == "zero_id" for job in models.list_training_jobs(usual)) == 3 * 2 * 6
    assert sum(job.mask == "zero_id" for job in models.list_training_jobs(full)) == 5 * 4 * 6
    sound = [job for job in models.list_training_jobs(full) if job.line == "robust, b = d/epsilon"]
    assert sum(not job.number for job in sound) == 4 * len(models.EPSILONS)
