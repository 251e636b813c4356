"""Classifiers: features, what they find, determinism, soundness, the missing extra."""

from __future__ import annotations

import json
import math
import pickle
import sys
from functools import partial

import numpy as np
import pytest
from shared_audits import (
    MOST,
    UNIT,
    assert_kept,
    count_overclaims,
    is_overclaimed,
    lattice,
    nudged,
    rng,
)

import dpcore
from dpcore import Pair
from dpcore.attacks import Classifier, Threshold, arrays
from dpcore.attacks.classifier import Boosted, Linear, fit_features
from dpcore.bounds import clopper_pearson
from dpcore.events import Above
from dpcore.records import Counts
from dpcore.report import plain

pytest.importorskip("sklearn")

MODELS = ["logistic", "boosting"]
square = partial(lattice, dim=2)


def fitted(outputs, outputs_prime, model="logistic", **settings):
    return Classifier(model, **settings).candidates(outputs, outputs_prime, UNIT)[0]


def agree(x, size, generator):
    """Two fair bits that agree more often on one input: no entry alone tells anything."""
    bits = generator.integers(0, 2, (size, 2))
    same = generator.random(size) < (0.8 if x else 0.2)
    bits[:, 1] = np.where(same, bits[:, 0], 1 - bits[:, 0])
    return bits


# Features.


def test_values_and_flags():
    continuous = rng(1).normal(size=(2, 2000))
    outputs = continuous.T.copy()
    outputs[outputs[:, 0] <= 0.5, 0] = -1000.0
    outputs[3, 1], outputs[4, 1] = np.nan, np.inf
    features = fit_features(outputs, outputs)
    assert (features.entries.tolist(), features.width) == ([0, 1, 1], 5)
    made = features(outputs)
    assert made.shape == (2000, 5)
    assert np.isfinite(made).all()
    released = continuous[0] > 0.5
    # A code is replaced by the median of the values beside it, and flagged.
    assert made[~released, 0] == pytest.approx(np.median(continuous[0][released]), abs=1e-2)
    assert made[released, 0] == pytest.approx(continuous[0][released], abs=2e-6)
    assert (made[:, 2] == ~released).all()
    assert np.flatnonzero(made[:, 3]).tolist() == [3]
    assert np.flatnonzero(made[:, 4]).tolist() == [4]


@pytest.mark.parametrize(
    "sides",
    [
        [rng(2).integers(0, 3, (500, 4))] * 2,
        # Beside a hundred frequent values a few rare ones are no continuum.
        [np.round(rng(i).laplace(0.0, 1.0, (3000, 1)), 1) for i in (17, 18)],
    ],
    ids=["frequent", "rare"],
)
def test_discrete_entries_need_no_flags(sides):
    features = fit_features(*sides)
    assert features.width == sides[0].shape[1]
    assert features(sides[0]) == pytest.approx(sides[0], abs=1e-7)


def test_special_values_that_the_pilot_never_saw_become_the_fill():
    features = fit_features(rng(3).normal(size=(100, 1)), rng(4).normal(size=(100, 1)))
    made = features(np.array([[np.nan], [np.inf], [-np.inf]]))
    assert (made == made[0]).all()
    assert np.isfinite(made).all()


@pytest.mark.parametrize("model", MODELS)
def test_rounding_never_reaches_a_model(model):
    generator = rng(5)
    sides = [square(x, 5000, generator) for x in (0.0, 0.3)]
    score = fitted(*sides, model=model)
    for side in sides:
        assert (score(side) == score(nudged(side))).all()
    # 0.1 + 0.2 is 0.3 to every tree, and the bound keeps to the law in real numbers.
    options = {"attack": Classifier(model), "trials": 40_000, "claim": 1.2, "rng": 1}
    assert 0.8 < dpcore.audit(square, (0.0, 0.3), **options).epsilon_lower < 1.2


def test_a_tree_on_unmerged_doubles_would_see_the_rounding():
    """The control: the same trees without merging certify far more than the true loss."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    generator = rng(6)
    sides = [square(x, 4000, generator) for x in (0.0, 0.3)]

    def raw(outputs):
        return (outputs - np.round(outputs, 1)) * 1e16

    model = HistGradientBoostingClassifier(max_iter=20, random_state=0)
    model.fit(np.concatenate([raw(side) for side in sides]), np.repeat([1, 0], 4000))
    fresh = [square(x, 20_000, generator) for x in (0.0, 0.3)]
    hits = [int((model.decision_function(raw(side)) < -1.0).sum()) for side in fresh]
    assert clopper_pearson(Counts(hits[1], 20_000, hits[0], 20_000), 0.0, 0.9) > 3.0


# Models.


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
def test_the_logistic_score_is_the_fitted_log_odds(dtype):
    from sklearn.linear_model import LogisticRegression

    generator = rng(7)
    sides = [(generator.normal(shift, 1.0, (3000, 3)) * 2).astype(dtype) for shift in (0.3, 0.0)]
    score = fitted(*sides)
    made = np.concatenate([side.astype(float) for side in sides])
    scaled = (made - made.mean(axis=0)) / made.std(axis=0)
    model = LogisticRegression().fit(scaled, np.repeat([1, 0], 3000))
    expected = model.decision_function(scaled) - model.intercept_[0]
    assert score(np.concatenate(sides)) == pytest.approx(expected, abs=1e-4)


def test_scores_are_finite_and_clipped():
    sides = rng(8).normal(size=(2, 500, 1)) + np.array([1e6, 0.0])[:, None, None]
    far = fitted(*sides)(np.array([[1e300], [-1e300], [np.nan]]))
    assert np.isfinite(far).all()
    assert sorted(far[:2].tolist()) == [-50.0, 50.0]


@pytest.mark.parametrize("model", MODELS)
def test_equal_pilots_give_equal_models(model):
    sides = [agree(x, 12_000, rng(9 + x)) for x in (0, 1)]
    first, second = (fitted(*sides, model=model)(agree(1, 1000, rng(11))) for _ in range(2))
    assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize("model", MODELS)
def test_parts_and_layout_do_not_matter(model, monkeypatch):

    sides = rng(12).normal(size=(2, 2000, 3)) + np.array([0.5, 0.0])[:, None, None]
    score = fitted(*sides, model=model)
    whole = score(sides[0])
    monkeypatch.setattr(arrays, "chunk_slices", partial(arrays.chunk_slices, most=100))
    assert score(sides[0]).tobytes() == whole.tobytes()
    assert score(np.asfortranarray(sides[0])).tobytes() == whole.tobytes()
    assert score(sides[0][:7]).tobytes() == whole[:7].tobytes()


def test_no_more_rows_are_trained_on_than_asked_for():
    sides = rng(13).normal(size=(2, 4000, 2))
    few = fitted(*sides, rows=200)
    assert few == fitted(*(side[:100] for side in sides))
    assert few != fitted(*sides)


def test_both_scores_are_records():
    sides = rng(15).normal(size=(2, 500, 2))
    linear, boosted = Classifier().candidates(*sides, UNIT)
    assert (type(linear), type(boosted)) == (Linear, Boosted)
    assert 0 < linear.cost < boosted.cost
    assert_kept(linear)
    event = Above(boosted, 0.25)
    again = pickle.loads(pickle.dumps(event))
    assert (again(sides[0]) == event(sides[0])).all()
    # JSON keeps the regression, and names the trees.
    named = json.dumps(plain.encode_value(event), allow_nan=False)
    assert "log odds of boosted trees on 2 features" in named


# What it finds.


def central(x, size, generator):
    """Three tenths of one input's outputs lie in the middle of the square, none at an end."""
    outputs = generator.uniform(size=(size, 2))
    if x:
        middle = generator.random(size) < 0.3
        outputs[middle] = (1.0 + outputs[middle]) / 3.0
    return outputs


def test_trees_see_what_no_half_line_and_no_weighted_sum_sees():
    settings = {"trials": 50_000, "rng": 1}
    true = math.log((0.3 + 0.7 / 9) * 9)
    report = dpcore.audit(central, (1, 0), attack=Classifier("boosting"), **settings)
    assert 1.0 < report.epsilon_lower < true
    # The control: the middle is no end of anything.
    for attack in (Threshold(), Classifier("logistic")):
        assert dpcore.audit(central, (1, 0), attack=attack, **settings).epsilon_lower < 0.6
    # Two entries that agree more often: the same trees.
    agreed = dpcore.audit(agree, (1, 0), attack=Classifier("boosting"), **settings)
    assert 1.2 < agreed.epsilon_lower < math.log(4)


def test_a_regression_weighs_the_entries_by_what_they_tell():
    def leaky(x, size, generator):
        return np.asarray(x) + generator.laplace(0.0, 1.0, (size, 3)) * [1.0, 2.0, 4.0]

    pair = Pair([0.0, 0.0, 0.0], [1.0, 1.0, 1.0])
    report = dpcore.audit(leaky, pair, attack=Classifier("logistic"), trials=200_000, rng=1)
    assert 1.1 < report.epsilon_lower < 1.75


# Soundness.


def null(x, size, generator):
    return generator.normal(size=(size, 3))


@pytest.mark.sweep
def test_a_mechanism_that_ignores_its_input_is_not_overclaimed():
    assert count_overclaims(Classifier("logistic"), null) <= MOST


@pytest.mark.sweep
def test_a_model_counted_on_its_own_training_draws_overclaims():
    """The control: trees that learnt the very draws they are counted on."""
    over = 0
    for seed in range(MOST + 1):
        sides = [null(0, 1000, rng((seed, i))) for i in (0, 1)]
        over += is_overclaimed(Above(fitted(*sides, model="boosting"), 0.05), sides)
    assert over == MOST + 1


# The extra.


def test_without_scikit_learn_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ImportError, match=r"pip install dpcore\[classifier\]"):
        Classifier().candidates(np.zeros((5, 1)), np.ones((5, 1)), UNIT)
    # What it cannot work on anyway needs no library.
    assert Classifier().candidates(np.array(["a"]), np.array(["b"]), UNIT) == ()
