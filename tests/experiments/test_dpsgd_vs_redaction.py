"""The experiment that compares DP-SGD with redaction by what is certified of one text."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from shared_experiments import run_experiment
from shared_extras import data, needs

from dpcore.experiments import dpsgd_vs_redaction as experiment
from dpcore.experiments.dpsgd_vs_redaction import Config, Recipe

needs("torch", "opacus", "sklearn")


run = partial(run_experiment, "dpsgd-vs-redaction", quick=True)


def change(result, label, **fields):
    """Return the result with other figures of one recipe."""
    cells = [replace(c, **fields) if c.recipe.label == label else c for c in result.cells]
    return replace(result, cells=tuple(cells))


@pytest.mark.sweep
def test_plain_training_learns_and_dp_sgd_keeps_its_epsilon():
    result = run()
    assert [cell.recipe for cell in result.cells] == list(result.config.recipes)
    private, plain = result.of("DP-SGD 8")[0], result.of("plain")[0]
    # About 40 against 90 of the unigram and 130 of the uniform law.
    assert plain.perplexity < plain.measured.unigram < plain.measured.uniform
    assert 7.5 < private.guaranteed <= 8.0 < private.guaranteed_rdp
    assert private.certified <= private.guaranteed
    assert all(c.guaranteed is None for c in result.cells if not c.recipe.is_private)


def test_the_two_epsilons_never_share_an_axis():
    result = run()
    panels = result.plot().axes
    labels = [axes.get_xlabel() for axes in panels]
    assert [("accountant" in x, "two corpora, an estimate" in x) for x in labels] == [
        (True, False), (False, True), (False, False), (False, False),
    ]  # fmt: skip
    assert "certified by an audit" in labels[2]
    assert "AUC" in labels[3]
    assert len({axes.get_ylim() for axes in panels}) == 1
    # The lines of plain, no noise, unigram and uniform are in every panel.
    first = result.of("plain")[0].measured
    wanted = [result.mean("plain", "perplexity"), result.mean("no noise", "perplexity")]
    heights = sorted(map(math.log, [*wanted, first.unigram, first.uniform]))
    for axes in panels:
        lines = [line.get_ydata() for line in axes.lines if list(line.get_xdata()) == [0, 1]]
        found = sorted(float(y[0]) for y in lines if len({*y}) == 1)
        assert set(np.round(heights, 6)) <= set(np.round(found, 6))
    ceiling = result.cells[0].ceiling
    assert any(list(line.get_xdata()) == [ceiling, ceiling] for line in panels[2].lines)


def test_the_record_and_the_table():
    result = run()
    record = result.to_dict()
    assert len(record["cells"]) == len(result.config.recipes)
    assert record["cells"][0]["measured"]["uniform"] == result.cells[0].measured.uniform
    text = result.table()
    assert "generated texts: give --data" in text
    assert "no epsilon covers that choice" in text
    assert "epsilon_rdp is None in 5 of 5" in text
    row = next(line for line in text.splitlines() if line.startswith("random 0.5"))
    assert "nothing" in row
    # Neither weights nor texts nor the seed of a private training are in the record.
    words = {"weights", "train", "noise_seed"}
    assert not words & {key for cell in record["cells"] for key in cell}


def test_sentences_follow_from_the_figures():
    near = change(change(run(), "no noise", auc=0.62), "DP-SGD 8", auc=0.6)
    assert "the canaries do not see the noise" in near.table()
    assert "the canaries see the noise" in change(near, "no noise", auc=0.99).table()
    leaky = change(near, "random 0.5", auc=1.0)
    better = replace(leaky.of("random 0.5")[0].measured, value=1.5)
    shown = change(leaky, "random 0.5", measured=better).table()
    assert "it predicts better and its canaries show more" in shown
    hidden = change(near, "random 0.5", measured=replace(better, value=10.0**4), auc=0.5)
    sentence = next(line for line in hidden.findings() if line.startswith("random"))
    assert "0.5 (10000.0, 0.50)" in sentence
    assert "it predicts worse and its canaries show no more" in sentence
    # Above the unigram neither predicts, whichever is lower.
    low, high = (replace(better, value=factor * better.unigram) for factor in (2.0, 3.0))
    useless = change(change(near, "random 0.5", measured=low), "DP-SGD 8", measured=high)
    sentence = next(line for line in useless.findings() if line.startswith("random"))
    assert "no better than the unigram" in sentence
    assert "better" not in sentence.replace("no better", "")
    assert "0 of 2 private trainings certify more" in near.table()
    above = change(near, "DP-SGD 8", certified=9.0).table()
    assert "1 of 2 private trainings certify more" in above


def test_searched_rates_are_compared_with_the_source_s():
    result, label = run(), "DP-SGD, searched 8"
    cell = result.of(label)[0]
    assert (cell.settings_tried > 2, cell.public_read > 100) == (True, True)
    measured = cell.measured
    kept, low, high = (replace(measured, value=x * measured.uniform) for x in (0.5, 0.4, 3.0))
    result = change(result, "DP-SGD 8", measured=kept)
    for other, lower in ((low, 1), (high, 0)):
        sentence = next(x for x in change(result, label, measured=other).findings() if "Rate" in x)
        assert f"lower perplexity than with the source's at {lower} of 1 epsilons" in sentence
        assert ("above the uniform law" in sentence) is (other is high)
        assert f"{other.value:.4g}" in sentence


def test_redaction_reaches_the_canaries_and_their_score_is_that_of_the_clean_text(monkeypatch):
    seen = {}

    class Model:
        partial = False

        def losses(self, texts):
            seen["asked"] = texts
            return np.arange(len(texts), dtype=float)

        def perplexity(self, texts, **more):
            seen["excluded"] = more["exclude"]
            return None

    def fit(texts, valid, **more):
        seen["trained"], seen["valid"] = texts, valid
        return Model()

    config = Config(quick=True)
    material = experiment.read_texts_and_fit_redaction(config)
    monkeypatch.setattr(experiment.lm, "fit", fit)
    experiment.train_and_audit_lm(Recipe("random", 0.5), 0, material, config)
    trained, added = seen["trained"], len(seen["trained"]) - len(material.train)
    assert 30 < added < 70
    assert all("[MASK]" in text for text in trained[len(material.train) :])
    assert all(text.split().count("[MASK]") == 5 for text in trained[len(material.train) :])
    assert all("[MASK]" in text for text in seen["valid"])
    assert not any("[MASK]" in text for text in seen["asked"])
    assert seen["excluded"] == material.train


def test_options():
    assert [r.level for r in Config().recipes if r.kind == "DP-SGD"] == [1.0, 8.0]
    full = Config(full=True, data="folder")
    assert len([r for r in full.recipes if r.kind == "DP-SGD"]) == 7
    kinds = {recipe.kind for recipe in full.recipes}
    assert {"SanText", "plain, public start", "DP-SGD, public start"} <= kinds
    assert full.size == {"hidden": 200, "layers": 2, "dropout": 0.2}
    # Rewriting and a public start read files.
    assert not any(r.kind in ("SanText", "plain, public start") for r in Config(full=True).recipes)


def test_ctrl_c_keeps_complete_trainings(monkeypatch):
    real = experiment.train_and_audit_lm
    calls = []

    def measure(*job):
        calls.append(job)
        return replace(real(*job), partial=len(calls) == 2)

    monkeypatch.setattr(experiment, "train_and_audit_lm", measure)
    result = run(seed=5)
    assert (result.partial, [cell.recipe.label for cell in result.cells]) == (True, ["plain"])
    assert "INTERRUPTED" in result.table()
    assert len(result.plot().axes) == 4
    # A first training that was cut short is nothing to keep.
    cut = replace(result.cells[0], partial=True)
    monkeypatch.setattr(experiment, "train_and_audit_lm", lambda *job: cut)
    with pytest.raises(KeyboardInterrupt):
        run(seed=6)


def test_sets_of_atis():
    material = experiment.read_texts_and_fit_redaction(Config(data=data()))
    assert material.label == "atis_flight"
    assert len(material.sensitive) == len(material.rest) == 1086
    assert material.delta == 8e-5
    assert not {*material.sensitive, *material.rest} & {*material.others}


def test_rewriting_states_its_coverage():
    material = experiment.read_texts_and_fit_redaction(Config(data=data(), full=True, trials=200))
    assert 0.0 < material.share_of_words_with_vector < 1.0
    texts = experiment._redact_or_rewrite_function(Recipe("SanText", 10.0), material, 1)(
        material.train
    )
    sizes = [len(experiment.words_of(text)) for text in material.train]
    assert [len(text.split()) for text in texts] == sizes
    assert all(word in material.vectors for text in texts for word in text.split())
