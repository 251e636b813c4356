"""The experiment on texts of which words are replaced."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from shared_experiments import run_experiment
from shared_extras import data, needs

needs("gensim", "sklearn")


run = partial(run_experiment, "word-dp-attack", quick=True)
quick = partial(run, trials=150)


def test_figures_follow_the_mechanism():
    result = quick()
    keys = ("none", 0.0), ("SanText", 1.0), ("SanText", 10.0)
    unchanged, low, high = (result[key] for key in keys)
    assert unchanged.kept == 1.0
    assert unchanged.linked[0] > 0.9
    assert low.kept < high.kept < 1.0
    assert low.loss < high.loss < math.inf
    assert low.is_exact
    assert result["CusText", 0.1].loss == math.inf
    assert not result["MetricLaplace", 10.0].is_exact
    # Texts of ten words: hardly any word stays, and the attack is near the floor.
    assert low.mean("accuracy") < unchanged.mean("accuracy") - 0.2
    assert low.linked[2] < unchanged.linked[1]


def test_permuted_labels_have_no_divergence():
    for cell in quick().cells:
        null = np.array(cell.null)
        assert null.shape == (3, 2)
        assert np.abs(null.mean(axis=0)).max() < 0.15
    assert quick()["none", 0.0].divergences[0][0] > 0.5


def test_the_text_states_where_the_claim_holds():
    text = str(quick())
    assert "CusText: yes at epsilon 0.1" in text
    assert "SanText: not shown at epsilon 1 " in text
    assert "informed: naive Bayes" in text


def test_the_table_serves_an_attacker():
    informed = {cell.mechanism: cell.informed for cell in quick().cells}
    # Without a table there is none.
    assert informed.pop("MetricLaplace") == ()
    assert {len(values) for values in informed.values()} == {1}
    # The lists of CusText's words differ, so that the table tells more than the words that stay.
    assert informed["CusText"][0] > 0.7


@pytest.mark.sweep
def test_real_abstracts():
    result = run(data=data())
    assert result.texts == 599
    assert 0.70 < result["none", 0.0].mean("accuracy") < 0.90
    # The floor is one half; the interval of 360 texts reaches .05 to either side.
    assert result["SanText", 1.0].mean("accuracy") < 0.60
    assert result["CusText", 0.1].mean("accuracy") > 0.63
    assert result["SanText", 10.0].linked[0] > 0.9
