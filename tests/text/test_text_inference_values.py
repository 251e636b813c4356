"""Many values and numbers: ranks and correlation beside their floors, and the main task."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest, spearmanr
from shared_inference import Centroids, corpus

from dpcore.text import Corpus
from dpcore.text.inference import Attacker, infer
from dpcore.text.inference.attackers import NearestMean, usual
from dpcore.text.inference.metrics import Truth
from dpcore.text.inference.targets import Target, prior_ranks


class LeastSquares:
    """Linear regression by least squares; no class of scikit-learn."""

    def fit(self, rows, truth):
        self.weights = np.linalg.lstsq(np.column_stack([rows, np.ones(len(rows))]), truth)[0]
        return self

    def predict(self, rows):
        return np.column_stack([rows, np.ones(len(rows))]) @ self.weights


@pytest.fixture
def few_replicates(monkeypatch):
    """Make intervals rough, which cost the most: alarms come of permutations alone."""
    monkeypatch.setattr("dpcore.text.inference.metrics._BOOTSTRAP_REPLICATES", 50)


MEANS = Attacker(NearestMean(), name="means")
LINE = Attacker(LeastSquares(), name="line")


def authors(values=120, texts=5, noise=1.0, seed=1, dim=24):
    """Texts of authors, three of five in train; labels that vectors do not carry; and vectors."""
    rng = np.random.default_rng(seed)
    code = np.repeat(np.arange(values), texts)
    rows = rng.normal(size=(values, dim))[code] + noise * rng.normal(size=(code.size, dim))
    split = np.tile(["train"] * (texts - 2) + ["valid", "test"], values)
    names = [f"author {one}" for one in code]
    found = Corpus(
        [f"t{row}" for row in range(code.size)], labels=rng.integers(0, 3, code.size),
        attributes={"author": names, "number": code}, split=split.tolist(),
    )  # fmt: skip
    return found, rows


def test_authors_are_ranked_and_each_figure_stands_beside_its_floor():
    found, rows = authors()
    result = infer(None, found, "author", vectors=rows, attackers=MEANS, rng=1)
    ranks = result.scored.ranks
    assert result.accuracy.value == (ranks == 1).mean() > 0.6
    assert result.ranking.top.value == (ranks <= 5).mean() > result.accuracy.value
    assert result.ranking.top.low < result.ranking.top.value < result.ranking.top.high
    assert result.ranking.mean_rank.value == pytest.approx(ranks.mean())
    assert 1.0 < result.ranking.mean_rank.low < result.ranking.mean_rank.high < 20.0
    assert (result.ranking.known, result.ranking.unknown_texts) == (120, 0)
    floor, given = result.floors
    # Three texts of each author in train: the order of the floor is that of the names.
    assert (floor.accuracy, floor.top, floor.mean_rank) == (1 / 120, 5 / 120, 60.5)
    assert given.top < 0.2
    assert given.mean_rank > 40.0
    assert result.above_floor
    text = dict(result.lines())
    assert text["ranks"].startswith("of the true value: top-1 is the accuracy, top-5 0.")
    assert "of 120 (bootstrap of 2,000)" in text["ranks"]
    assert "top-5 0.0417, mean rank 60.5000; the attacker's gain" in str(result)
    assert "left out: none" in text["texts"]
    assert "a value that train lacks" not in text["texts"]
    assert "group" not in text
    assert "groups are not listed: 120 values, see `groups`" in str(result)
    assert len(result.groups) == 120
    labels = [tick.get_text() for tick in result.plot().axes[0].get_yticklabels()]
    assert labels == ["accuracy", "F1", "top-5"]
    plain = json.loads(result.to_json(), parse_constant=pytest.fail)
    assert (plain["outcome"]["ranking"]["known"], plain["floors"][0]["top"]) == (120, floor.top)


def test_vectors_that_say_nothing_of_the_author_are_at_the_floor(few_replicates):
    alarms, runs = 0, 200
    for seed in range(runs):
        found, rows = authors(60, seed=seed, dim=4)
        rows = np.random.default_rng(seed).permutation(rows)
        result = infer(None, found, "author", vectors=rows, attackers=MEANS, rng=seed)
        alarms += result.above_floor
        assert 20.0 < result.ranking.mean_rank.value < 41.0
    assert binomtest(alarms, runs, 0.025, alternative="greater").pvalue > 1e-3, alarms


def test_authors_that_train_lacks_are_counted_and_wrong():
    found, rows = authors(60, noise=0.1)
    split = found.split.copy()
    split[found.attribute("number") < 10] = "test"
    some = Corpus(found.texts, attributes=dict(found.attributes), split=split.tolist())
    result = infer(None, some, "author", vectors=rows, attackers=MEANS, rng=1)
    assert (result.ranking.known, result.ranking.unknown_texts) == (50, 50)
    assert result.sizes == (150, 50, 100)
    # All others are named: half of the texts are right, and no unknown one has a better rank.
    assert (result.accuracy.value, sorted(result.scored.ranks)) == (0.5, [1] * 50 + [51] * 50)
    assert [floor.top for floor in result.floors] == [0.05]
    said = "50 texts of test with a value that train lacks, never named: counted as wrong"
    assert said in dict(result.lines())["texts"]
    assert "evidence" not in str(result)
    # All of them unknown, as where authors are kept in one part: nothing is learnt from that.
    split[found.attribute("number") >= 10] = "train"
    split[-60:] = "valid"
    none = Corpus(found.texts, attributes=dict(found.attributes), split=split.tolist())
    result = infer(None, none, "author", vectors=rows, attackers=MEANS, rng=1)
    assert result.ranking.unknown_texts == result.sizes[2] == 50
    assert dict(result.lines())["verdict"].startswith(
        "no evidence of privacy, because no value of the test texts occurs in train, so the"
    )


def test_equal_scores_are_ranked_by_frequency_in_train():
    class Mute:
        """Predicts the value 2 always and gives no scores."""

        def fit(self, rows, truth):
            return self

        def predict(self, rows):
            return np.full(len(rows), 2)

    column = np.array([0] + [1] * 6 + [2] * 2 + [3] * 3 + [0, 3] + [0, 1, 2, 3])
    found = corpus((12, 2, 4), {"kind": column})
    result = infer(None, found, "kind", vectors=np.zeros((18, 1)), attackers=Attacker(Mute()))
    assert (result.scored.ranks.tolist(), result.floors[0].mean_rank) == ([4, 2, 1, 3], 2.5)
    ranks = prior_ranks(column[:12, np.newaxis], np.zeros(12), np.zeros(4), np.arange(4), 4)
    assert ranks.tolist() == [4, 1, 3, 2]


def test_nearest_means_are_those_of_scikit_learn():
    from sklearn.neighbors import NearestCentroid

    rng = np.random.default_rng(1)
    for values in (2, 7):
        truth, rows = rng.integers(0, values, 300), rng.normal(size=(300, 5))
        rows[:, 0] += truth
        rows /= rows.std(axis=0)
        known = NearestCentroid().fit(rows[:200], truth[:200])
        found = NearestMean().fit(rows[:200] * 3.0, truth[:200])
        agree = found.predict(rows[200:] * 3.0) == known.predict(rows[200:])
        # The other one's columns are scaled on all rows, ours on the first.
        assert agree.mean() > 0.9
        assert found.decision_function(rows).shape == ((300,) if values == 2 else (300, 7))


def test_the_usual_attackers_of_many_values_and_of_numbers():
    many = usual(1000, 50)
    names = {"ridge classification", "15 neighbours", "nearest mean"}
    assert {one.classifier for one in many} == names
    assert {one.classifier for one in usual(1000, 49)} == {one.classifier for one in usual(1000)}
    numbers = {one.classifier for one in usual(1000, None)}
    assert numbers == {"ridge regression", "15 neighbours", "boosted trees"}
    found, rows = authors()
    result = infer(None, found, "author", vectors=rows, rng=1)
    assert len(result.tried) == len(many) == 16
    # Each kind gives ranks: none is left to chance (60 of 120).
    for kind in names:
        alone = [one for one in many if (one.classifier, one.behind) == (kind, "raw")]
        one = infer(None, found, "author", vectors=rows, attackers=alone, rng=1)
        assert one.ranking.mean_rank.value < 30.0, kind
    assert result.accuracy.value > 0.5
    assert result.above_floor


def test_the_interval_of_a_macro_f1_of_values_with_one_text_holds_it():
    found, rows = authors(200, noise=2.0)
    result = infer(None, found, "author", vectors=rows, attackers=MEANS, rng=1)
    assert result.f1.low < result.f1.value < result.f1.high
    assert result.f1.how == "centred bootstrap of 2,000"


def test_a_text_whose_value_training_lacks_counts_against_its_answer_alone():
    """The last text is answered rightly with a value beyond the three: it has no group."""
    truth, answers = (np.array(one)[:, np.newaxis] for one in ([0, 1, 2, 3, 3], [0, 2, 2, 1, 3]))
    found = Truth(truth, Target(("a",), (("x", "y", "z"),)), "f1", 0.95, 1).f1(answers)
    assert found.value == pytest.approx((1.0 + 0.0 + 2.0 / 3.0) / 3.0)


def main_task_of(rows, labels, attribute, attackers=None, **more):
    found = corpus((600, 300, 300), {"secret": attribute}, labels=labels)
    attackers = attackers or Centroids()
    return infer(None, found, "secret", vectors=rows, attackers=attackers, rng=1, **more)


def test_vectors_without_the_main_task_are_no_evidence_of_privacy():
    rng = np.random.default_rng(1)
    secret, labels = rng.integers(0, 2, 1200), rng.integers(0, 3, 1200)
    noise = rng.normal(size=(1200, 6))
    nothing = main_task_of(noise, labels, secret)
    assert dict(nothing.lines())["verdict"].startswith(
        "no evidence of privacy, because the vectors were not shown to carry the main label "
        "either; not shown to be above the floor: majority"
    )
    assert (nothing.main.at_floor, nothing.main_at_floor) == (True, True)
    assert nothing.to_dict()["derived"]["main_at_floor"] is True
    assert nothing.main.gain.low <= 0.0 <= nothing.main.gain.high
    # The control: the same noise, with the main label in it.
    noise[:, 0] += 2.0 * labels
    useful = main_task_of(noise, labels, secret)
    assert (useful.above_floor, useful.main_at_floor) == (False, False)
    assert useful.main.accuracy.value > useful.main.majority + 0.1
    verdict = dict(useful.lines())["verdict"]
    assert verdict.startswith("not shown to be above the floor: majority")
    assert "evidence" not in str(useful)
    assert "main label   predicted by Centroids, raw: accuracy 0." in str(useful)
    # An attribute that leaks where the label does not: the verdict says both.
    noise[:, 0] = 2.0 * secret + rng.normal(size=1200)
    leaking = main_task_of(noise, labels, secret)
    assert (leaking.above_floor, leaking.main_at_floor) == (True, True)
    verdict = dict(leaking.lines())["verdict"]
    assert verdict.startswith("above the floor: ")
    assert verdict.endswith("; the vectors were not shown to carry the main label")
    assert main_task_of(noise, None, secret).main is None
    assert main_task_of(noise, np.zeros(1200, int), secret).main is None


@pytest.mark.sweep
def test_noise_is_taken_for_vectors_that_carry_the_label_as_rarely_as_is_said():
    carried, runs = 0, 200
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        labels = rng.choice(3, 240, p=[0.5, 0.3, 0.2])
        found = corpus((120, 60, 60), {"secret": rng.integers(0, 2, 240)}, labels=labels)
        rows = rng.normal(size=(240, 4))
        result = infer(None, found, "secret", vectors=rows, attackers=Centroids(), rng=seed)
        carried += not result.main_at_floor
    assert binomtest(carried, runs, 0.025, alternative="greater").pvalue > 1e-3, carried


def test_the_main_label_is_read_by_the_first_attacker_where_the_chosen_one_cannot():
    # The chosen attacker sees the length alone, and the label is a direction.
    rng = np.random.default_rng(2)
    secret, labels = rng.integers(0, 2, 1200), rng.integers(0, 2, 1200)
    rows = rng.normal(size=(1200, 6))
    rows[:, 0] += 3.0 * (labels - 0.5)
    rows *= (1.0 + 0.6 * secret)[:, np.newaxis]
    attackers = [Attacker(Centroids(), "norm-scaled"), Attacker(Centroids(), "row summaries")]
    result = main_task_of(rows, labels, secret, attackers)
    assert (result.transform, result.main.attacker) == ("row summaries", "Centroids, norm-scaled")
    assert not result.main_at_floor


def people(rows=1200, seed=1, shift=1.0):
    """Vectors that carry an age, and labels that go with it."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(18.0, 80.0, rows)
    labels = (age + rng.normal(scale=20.0, size=rows) > 50.0).astype(int)
    vectors = rng.normal(size=(rows, 6))
    vectors[:, 0] += shift * (age - 49.0) / 18.0
    return age, labels, vectors


def infer_age(age, labels, vectors, rows=1200, **more):
    sizes = (rows // 2, rows // 4, rows // 4)
    found = corpus(sizes, {"age": age}, labels=labels)
    return infer(None, found, "age", **{"vectors": vectors, "attackers": LINE, "rng": 1, **more})


def test_a_number_is_inferred_with_its_correlation_and_error_beside_the_floors():
    age, labels, vectors = people()
    result = infer_age(age, labels, vectors, neighbours="any two texts")
    truth, answers = result.scored.truth[:, 0], result.scored.scores[:, 0]
    assert (truth == age[-300:]).all()
    number, (median, given) = result.number, result.floors
    assert number.correlation.value == pytest.approx(spearmanr(truth, answers).statistic)
    assert number.error.value == pytest.approx(abs(truth - answers).mean())
    assert 0.5 < number.correlation.low < number.correlation.value < number.correlation.high < 0.9
    assert number.error.low < number.error.value < number.error.high < median.error
    assert median.error == pytest.approx(abs(truth - np.median(age[:600])).mean())
    medians = [np.median(age[:600][labels[:600] == label]) for label in (0, 1)]
    assert given.error == pytest.approx(abs(truth - np.array(medians)[labels[-300:]]).mean())
    assert given.error < median.error
    assert median.gain.value == pytest.approx(median.error - number.error.value)
    assert (median.name, given.name) == ("median", "median given the main label")
    assert (median.p_value, given.p_value, result.above_floor) == (0.0005, 0.0005, True)
    assert (result.measure, result.certified) == ("correlation", "not applicable: a number")
    assert (result.values, result.groups) == (((),), ())
    assert np.isnan(result.accuracy.value)
    text = str(result)
    said = "Spearman's 0.", "mean absolute ", "median given the main label: mean absolute"
    assert [words in text for words in (*said, "nan", "accuracy  ", "F1")] == [True] * 3 + [
        False
    ] * 3
    assert repr(result).startswith("<Inference of age: correlation 0.")
    assert json.loads(result.to_json(), parse_constant=pytest.fail)["outcome"]["error"]["low"] > 0
    (label,) = result.plot().axes[0].get_yticklabels()
    assert label.get_text() == "Spearman's correlation"
    with pytest.raises(ValueError, match="one attribute of two values"):
        result.true_positive_rate(0.01)
    assert result == infer_age(age, labels, vectors, neighbours="any two texts")


def ages_of_authors(seed, shift=0.0):
    """Vectors that show the author, of fifteen texts, and an age that they show or not."""
    rng = np.random.default_rng(seed)
    author = np.repeat(np.arange(60), 15)
    age, rows = rng.uniform(18, 80, 60)[author], rng.normal(size=(60, 8))[author]
    rows[:, 0] += shift * (age - 49.0) / 18.0
    found = corpus((540, 180, 180), {"age": age, "row": np.arange(900.0)})
    return replace(found, groups=author), rows + 0.5 * rng.normal(size=(900, 8))


def test_texts_of_one_author_are_permuted_together(few_replicates):
    alarms, apart, runs = 0, 0, 100
    told = {"attackers": LINE, "rng": 1}
    for seed in range(runs):
        found, rows = ages_of_authors(seed)
        alarms += infer(None, found, "age", vectors=rows, **told).above_floor
        apart += infer(None, replace(found, groups=None), "age", vectors=rows, **told).above_floor
    assert binomtest(alarms, runs, 0.025, alternative="greater").pvalue > 1e-3, alarms
    # The control: 12 authors are not 180 independent texts.
    assert apart > 0.15 * runs, apart
    found, rows = ages_of_authors(1, shift=4.0)
    result = infer(None, found, "age", vectors=rows, **told)
    assert (result.above_floor, result.authors) == (True, 12)
    assert "p-values permute the 12 groups of the test texts as wholes" in str(result)
    # An attribute of texts, not of authors, is permuted by text.
    assert infer(None, found, "row", vectors=rows, **told).authors is None


def test_what_the_main_label_says_of_an_age_is_a_floor_of_its_own():
    age, labels, vectors = people(shift=0.0)
    assert infer_age(age, labels, vectors).floors_left == ("median", "median given the main label")
    copied = infer_age(age, labels, labels[:, np.newaxis] * 1.0)
    assert copied.number.correlation.value > 0.4
    assert (copied.floors[0].beaten, copied.floors_left) == (True, ("median given the main label",))
    assert "(above the median: the attacker does better than" in str(copied)


@pytest.mark.sweep
def test_an_age_that_vectors_do_not_carry_is_above_the_floor_as_rarely_as_is_said(few_replicates):
    alarms, runs = 0, 300
    for seed in range(runs):
        age, labels, vectors = people(160, seed, shift=0.0)
        attackers = [Attacker(LeastSquares(), one) for one in ("raw", "centred", "norm-scaled")]
        alarms += infer_age(age, labels, vectors, 160, attackers=attackers).above_floor
    assert binomtest(alarms, runs, 0.025, alternative="greater").pvalue > 1e-3, alarms


def test_intervals_of_a_correlation_hold_it():
    missed, runs, target = 0, 400, Target(("age",), ((),))
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        truth = rng.normal(size=60)
        scores = 0.6 * truth + 0.8 * rng.normal(size=60)
        judge = Truth(truth[:, np.newaxis], target, "correlation", 0.95, 1)
        found = judge.spearman(scores)
        # Spearman's for a normal correlation of .6: 6 / pi asin(.3).
        missed += not found.low <= 0.58187 <= found.high
    # An approximation: 5 % and a little more; a correlation of .35 lies outside of a third.
    assert missed < 0.08 * runs
    perfect = judge.spearman(truth)
    assert (perfect.value, perfect.high) == (pytest.approx(1.0), pytest.approx(1.0))
    assert judge.spearman(np.zeros(60)).value == 0.0
    few = Truth(truth[:3, np.newaxis], target, "correlation", 0.95, 1).spearman(truth[:3])
    assert few.low == -1.0


def test_a_column_of_integers_is_values_unless_it_is_said_to_be_a_number():
    age, labels, vectors = people()
    years = age.astype(int)
    taken = infer_age(years, labels, vectors, attackers=MEANS)
    assert taken.ranking.known > 50
    said = "note         age is taken as 62 separate values; kind='number' infers a number"
    assert said in str(taken)
    number = infer_age(years, labels, vectors, kind="number")
    assert number.above_floor
    assert "kind=" not in str(number)
    halves = infer_age(np.round(age / 20.0) / 2.0, labels, vectors, attackers=MEANS, kind="values")
    assert halves.values == ((0.5, 1.0, 1.5, 2.0),)
    assert "kind=" not in str(halves)


def test_the_usual_attackers_infer_a_number_by_a_curve_too():
    age, labels, vectors = people(shift=4.0)
    vectors[:, 0] += 20.0
    # How far from the middle an age is: no line of the rows shows it.
    result = infer_age(np.abs(age - 49.0), labels, vectors, attackers=None)
    assert len(result.tried) == 12
    assert result.attacker in ("15 neighbours", "boosted trees")
    assert result.above_floor
    line = infer_age(np.abs(age - 49.0), labels, vectors)
    assert line.number.correlation.value < 0.3 < 0.6 < result.number.correlation.value


def test_trees_of_many_values_find_what_lines_do_not():
    rng = np.random.default_rng(1)
    value, sizes = rng.integers(0, 20, 1000), (600, 200, 200)
    wide = rng.random((20, 24)) < 0.5
    rows = rng.normal(size=(1000, 24)) * np.where(wide[value], 3.0, 0.3)
    logistic, trees = usual(600, 20)[0], usual(600, 20)[-1]
    # Ten seeds: .10 to .16, and .90 to .94; permuted values .03 to .09.
    for truth, attacker, low, high in (
        (value, logistic, 0.0, 0.3),
        (value, trees, 0.8, 1.0),
        (rng.permutation(value), trees, 0.0, 0.2),
    ):
        found = corpus(sizes, {"value": truth})
        result = infer(None, found, "value", vectors=rows, attackers=attacker, rng=1)
        assert low <= result.accuracy.value <= high
        assert result.above_floor is (truth is value and attacker is trees) or attacker is logistic
