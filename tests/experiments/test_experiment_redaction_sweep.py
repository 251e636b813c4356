"""The experiment on masked words."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from shared_experiments import run_experiment

from dpcore.experiments import redaction_sweep as experiment
from dpcore.experiments.redaction_sweep import Config

run = partial(run_experiment, "redaction-sweep", quick=True)


def test_words_masked_at_random_hide_the_set_before_the_document():
    sweep = run().sweep
    # Over ten seeds .74 to .97, .43 to .60 and .54 to .69; a document is guessed with 1/240.
    assert sweep["random", 0].mean("accuracy") > 0.6
    point = sweep["random", 0.95]
    assert point.mean("accuracy") < 0.75
    assert point.linkages[0].share > 0.4
    # Ten seeds .47 to .63: the topics differ in the number of words, which vectors do not show.
    assert 0.4 < sweep["random", 1].mean("accuracy") < 0.7
    assert not sweep["random", 1].divergence.value.any()


def test_the_record_the_table_and_the_picture():
    result = run()
    assert len(result.to_dict()["sweep"]["points"]) == 2 * 4
    text = result.table()
    assert "generated texts: give --data" in text
    assert "With 96 % of the words masked (random), the set is named rightly for" in text
    assert max(map(len, text.splitlines())) < 200
    assert len(result.plot().axes) == 4


def test_utility_is_read_between_the_levels():
    result = run()
    points = result.sweep.of("random")
    first = points[0]
    assert result.utility("random", float(first.mean("accuracy"))) == first.mean("utility")
    lowest, highest = sorted(point.mean("utility") for point in points)[:: len(points) - 1]
    assert lowest <= result.utility("random") <= highest
    # Ranked masking first helps the attack. What counts is the last fall, from 0.889 to 0.5.
    points = result.sweep.of("ranked")
    accuracies = [point.mean("accuracy") for point in points]
    assert accuracies != sorted(accuracies, reverse=True)
    ends = [point.mean("utility") for point in points[-2:]]
    share = (accuracies[-2] - 0.7) / (accuracies[-2] - accuracies[-1])
    assert result.utility("ranked") == pytest.approx(ends[0] + share * (ends[1] - ends[0]))
    assert result.utility("ranked", 0.95) == points[0].mean("utility")
    assert result.utility("ranked", 0.1) == points[-1].mean("utility")


def test_the_safe_set_is_as_large_and_the_other_texts_fit_the_features():
    result = run(seed=7)
    assert result.sweep.sizes == (120, 120)
    assert result.sweep.public > 500
    assert result.sweep.repeated == result.dropped == 0
    assert result != run()


def test_more_attackers_with_full(monkeypatch):
    calls = []

    def sweep(*sets, **more):
        calls.append(more)
        return SimpleNamespace(partial=False)

    monkeypatch.setattr(experiment.redaction, "sweep", sweep)
    experiment.run(Config(full=True, seeds=2, trials=120), progress=False)
    assert [calls[0][name] for name in ("attackers", "splits", "nulls")] == ["usual", 2, 20]
    assert np.shape(calls[0]["levels"]) == (10,)
