"""The pieces of an inference against slow or independent computations of the same."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared_extras import needs
from shared_inference import Centroids

from dpcore.text.inference import TRANSFORMS, Attacker
from dpcore.text.inference.attackers import vectors_of
from dpcore.text.inference.metrics import Judge, _measure_gap, answers_of, threshold_of
from dpcore.text.inference.run import Beyond, certify
from dpcore.text.inference.targets import Target, floor_answers

ONE = Target(("a",), ((0, 1),))
TWO = Target(("a", "b"), ((0, 1), (0, 1)))
THREE = Target(("a",), (("x", "y", "z"),))


def f1_of(truth, answers):
    right = int((truth & answers).sum())
    return 2.0 * right / max(1, int(truth.sum() + answers.sum()))


grids = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1)), min_size=1, max_size=14)


@given(grids)
def test_the_threshold_is_the_best_of_all(rows):
    scores, truth = (np.array(column)[:, np.newaxis] for column in zip(*rows, strict=True))
    every = [-math.inf, math.inf, *(value + 0.5 for value in range(-1, 5))]
    for measure, merit in (("accuracy", lambda t, a: (t == a).mean()), ("f1", f1_of)):
        found = threshold_of(scores.astype(float), truth, measure)
        best = max(merit(truth, answers_of(scores, cut)) for cut in every)
        assert merit(truth, answers_of(scores, found)) == pytest.approx(best)


def test_a_threshold_between_neighbouring_floats_parts_them():
    low = 0.5
    for high in (np.nextafter(low, 1.0), np.nextafter(low, 0.0)):
        scores = np.array([[low], [high]])
        truth = np.array([[int(low > high)], [int(high > low)]])
        cut = threshold_of(scores, truth, "accuracy")
        assert (answers_of(scores, cut) == truth).all()


def test_f1_is_that_of_scikit_learn():
    metrics = needs("sklearn.metrics", "sklearn")
    rng = np.random.default_rng(1)
    for target, values, average in ((ONE, 2, "binary"), (TWO, 2, "micro"), (THREE, 3, "macro")):
        shape = (80, len(target.names))
        truth, answers = rng.integers(0, values, (2, *shape))
        judge = Judge(truth, target, "f1", 0.95, 1)
        flat = [one if one.shape[1] > 1 else one[:, 0] for one in (truth, answers)]
        expected = metrics.f1_score(*flat, average=average)
        found = judge.f1(answers)
        assert found.value == pytest.approx(expected) == pytest.approx(judge.value(answers))
        assert found.low < found.value < found.high


def test_the_bootstrap_is_that_of_whole_rows():
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 2, (60, 2))
    answers = np.where(rng.random((60, 2)) < 0.8, truth, 1 - truth)
    found = Judge(truth, TWO, "f1", 0.9, 1).f1(answers)
    rows = rng.integers(0, 60, (4000, 60))
    slow = np.quantile([f1_of(truth[row], answers[row]) for row in rows], [0.05, 0.95])
    assert [found.low, found.high] == pytest.approx(slow, abs=0.012)


def test_the_gain_in_accuracy_is_an_exact_sign_test():
    from scipy.stats import binomtest

    rng = np.random.default_rng(3)
    truth, answers, floor = rng.integers(0, 2, (3, 50, 1))
    gain = Judge(truth, ONE, "accuracy", 0.95, 1).gain(answers, floor)
    won = int(((answers == truth) & (floor != truth)).sum())
    apart = int((answers != floor).sum())
    limits = binomtest(won, apart).proportion_ci(0.95, "exact")
    assert gain.value == pytest.approx((answers == truth).mean() - (floor == truth).mean())
    assert gain.low == pytest.approx(apart * (2 * limits.low - 1) / 50)
    assert gain.high == pytest.approx(apart * (2 * limits.high - 1) / 50)
    same = Judge(truth, ONE, "accuracy", 0.95, 1).gain(floor, floor)
    assert (same.value, same.low, same.high) == (0.0, 0.0, 0.0)


@given(st.lists(st.tuples(*[st.integers(0, 1)] * 3), min_size=1, max_size=12))
def test_the_floor_is_the_best_answer_by_cell(rows):
    table = np.array(rows)
    cells, truth = table[:, 0], table[:, 1:]
    known = np.unique(cells)
    for measure, merit in (("accuracy", lambda t, a: (t == a).mean()), ("f1", f1_of)):
        found = merit(truth, floor_answers(truth, cells, cells, TWO, measure))
        best = 0.0
        for bits in itertools.product((0, 1), repeat=2 * len(known)):
            each = np.array(bits).reshape(len(known), 2)
            best = max(best, merit(truth, each[np.searchsorted(known, cells)]))
        assert found == pytest.approx(best)


def test_a_label_that_train_lacks_is_answered_by_the_majority():
    truth = np.array([[2], [2], [0], [0], [2]])
    labels = np.array(["p", "p", "q", "q", "q"])
    found = floor_answers(truth, labels, np.array(["q", "p", "zz", "a"]), THREE, "f1")
    assert found.ravel().tolist() == [0, 2, 2, 2]


def test_the_gap_of_two_shares_is_between_the_published_limits():
    # Newcombe (1998), table II, contrast (a): 56/70 - 48/80; method 10 gives .0524 to .3339 with
    # score limits, and the exact limits are a little wider.
    first, second = np.arange(70) < 56, np.arange(80) < 48
    gap = _measure_gap(first, second, 0.95)
    assert gap.value == pytest.approx(0.2)
    assert 0.03 < gap.low < 0.0524
    assert 0.3339 < gap.high < 0.36
    sure = _measure_gap(np.ones(5, bool), np.zeros(5, bool), 0.95)
    assert sure.high == 1.0
    assert sure.low < 1.0


def test_transforms_take_away_what_they_say():
    rng = np.random.default_rng(4)
    clean = rng.random((5, 7))
    clean[:, 2], clean[:, 3] = 0.0, 1.0
    shared = clean + rng.laplace(scale=20, size=(5, 1))
    assert TRANSFORMS["row minimum subtracted"](shared) == pytest.approx(clean)
    centred = TRANSFORMS["centred"]
    assert centred(shared) == pytest.approx(centred(clean))
    scaled = TRANSFORMS["norm-scaled"](np.vstack([3.0 * clean, np.zeros((1, 7))]))
    assert scaled[:5] == pytest.approx(TRANSFORMS["norm-scaled"](clean))
    assert (scaled[5] == 0).all()
    assert TRANSFORMS["raw"](shared) is shared
    assert str(Attacker(Centroids(), centred)) == "Centroids, centre_rows"


@pytest.mark.parametrize("tail", [True, False])
def test_the_event_is_fixed_on_validation_and_its_side_is_the_numerator(tail):
    # A rare score gives one of the values away; whichever it is, its side is x'.
    rng = np.random.default_rng(5)

    def part(rows):
        truth = rng.integers(0, 2, (rows, 1))
        scores = rng.random((rows, 1))
        away = (truth == int(tail)) & (rng.random((rows, 1)) < 0.3)
        return np.where(away, 2.0 if tail else -1.0, scores), truth

    audit = certify(part(1000), part(1000), ONE, 1.0, 0.0, 0.95, 1)
    assert audit.pair.x_prime == f"texts with a = {int(tail)}"
    assert audit.direction == "x_prime"
    assert audit.event.above is tail
    assert audit.refuted
    assert sum(audit.pilot) + audit.counts.n + audit.counts.n_prime == 1000
    assert str(Beyond(0.25, False)) == "the attacker's score < 0.25"


def test_encoders_may_return_lists_tensors_and_small_dtypes():
    texts = ("a", "bb")
    [found] = vectors_of(lambda asked: [[len(text), 1] for text in asked], [texts], 1)
    assert found.tolist() == [[1.0, 1.0], [2.0, 1.0]]
    assert found.dtype == np.float64
    torch = needs("torch")
    vectors = torch.ones((2, 3), dtype=torch.bfloat16, requires_grad=True)
    [found] = vectors_of(lambda asked: vectors, [texts], 1)
    assert found.tolist() == [[1.0] * 3] * 2
