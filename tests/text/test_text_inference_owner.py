"""Attacks of the owner of the encoder: several encodings, declared noise, three measures."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import binomtest, laplace, norm
from shared_extras import needs
from shared_inference import Centroids, corpus
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from dpcore import Gaussian, Laplace
from dpcore.calibration import L2Laplace
from dpcore.text.inference import Attacker, infer
from dpcore.text.inference.attackers import NearestMean, fit_attacker, one_or_all_encodings
from dpcore.text.inference.likelihood import Likelihood, LikelihoodMean, find_noise
from dpcore.text.inference.targets import Target

ONE = Target(("a",), ((0, 1),))
REGRESSION = LogisticRegression()


class Noisy:
    """An encoder that adds noise of its own to vectors of texts such as "t5"."""

    def __init__(self, vectors, noise=None, scale=1.0):
        self.vectors, self.scale, self.calls = vectors, scale, []
        if noise is not None:
            self.noise = noise

    def clean(self, texts):
        return self.vectors[[int(text[1:]) for text in texts]]

    def encode(self, texts, *, rng=None):
        self.calls.append(len(texts))
        return self.clean(texts) + rng.laplace(scale=self.scale, size=(len(texts), 4))


def leaking(rows=240, shift=1.0, seed=1):
    """An attribute, and vectors of which the first column shows it."""
    rng = np.random.default_rng(seed)
    secret, vectors = rng.integers(0, 2, rows), rng.normal(size=(rows, 4))
    vectors[:, 0] += shift * secret
    sizes = (rows // 2, rows // 4, rows // 4)
    return secret, vectors, sizes


def infer_leaking(encode=None, attackers=REGRESSION, rows=240, **more):
    secret, vectors, sizes = leaking(rows)
    encoder = encode or Noisy(vectors)
    return infer(encoder, corpus(sizes, {"a": secret}), "a", attackers=attackers, rng=1, **more)


def test_training_texts_are_encoded_ten_times_and_others_once():
    encoder = Noisy(leaking()[1])
    found = infer_leaking(encoder)
    assert encoder.calls[-12:] == [120, 60, 60, *[120] * 9]
    assert found.encodings.copies == 10
    line = "each training text 10 times, validation and test texts once"
    assert dict(found.lines())["encodings"] == line
    assert line in found._repr_html_()
    plain = json.loads(found.to_json())
    assert plain["encodings"]["copies"] == 10
    assert found == infer_leaking()
    # More encodings of train leave the noise of all parts as it is.
    assert infer_leaking(attackers=Centroids()) == infer_leaking(attackers=Centroids(), copies=1)


def same(texts, rng):
    return leaking()[1][[int(text[1:]) for text in texts]]


def plain(texts):
    return same(texts, None)


@pytest.mark.parametrize(
    ("encode", "attackers", "more", "reason"),
    [
        (None, REGRESSION, {"copies": 1}, "copies=1"),
        (same, REGRESSION, {}, "two calls of the encoder agree"),
        (same, REGRESSION, {"copies": 3}, "two calls of the encoder agree"),
        (plain, REGRESSION, {}, "the encoder has no rng="),
        (None, RidgeCV(), {}, "no attacker learns from several encodings"),
        (None, Centroids(), {}, "no attacker learns from several encodings"),
    ],
)
def test_a_text_is_encoded_once_for_a_reason(encode, attackers, more, reason):
    found = infer_leaking(encode, attackers, **more)
    assert (found.encodings.copies, found.encodings.reason) == (1, reason)
    assert dict(found.lines())["encodings"] == f"each text once: {reason}"


def test_slow_encoders_are_called_once_unless_copies_are_requested(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])

    class Slow(Noisy):
        seconds = 0.03

        def encode(self, texts, *, rng=None):
            clock[0] += self.seconds * len(texts)
            return super().encode(texts, rng=rng)

    vectors = leaking()[1]
    reason = "9 more encodings of train would take longer than 30 s (copies=10 makes them)"
    assert infer_leaking(Slow(vectors), progress=False).encodings.reason == reason
    assert infer_leaking(Slow(vectors), progress=False, copies=2).encodings.copies == 2
    Slow.seconds = 0.027
    assert infer_leaking(Slow(vectors), progress=False).encodings.copies == 10


def test_wrong_numbers_of_copies():
    wrong = [
        ({"encode": plain, "copies": 2}, "^copies must be 1 or None for an encoder without rng"),
        ({"copies": 0}, "^copies must be"),
    ]
    for given, message in wrong:
        with pytest.raises(ValueError, match=message):
            infer_leaking(**given)
    secret, vectors, sizes = leaking()
    with pytest.raises(ValueError, match=r"^copies must be None where vectors are given, got 2"):
        infer(None, corpus(sizes, {"a": secret}), "a", vectors=vectors, copies=2, rng=1)


@pytest.mark.parametrize(
    ("estimator", "encodings"),
    [
        (REGRESSION, "all"),
        (make_pipeline(StandardScaler(), REGRESSION), "all"),
        (HistGradientBoostingClassifier(early_stopping=False), "all"),
        (NearestMean(), "all"),
        (MLPClassifier(), "one each epoch"),
        (make_pipeline(StandardScaler(), MLPClassifier()), "one each epoch"),
        (MLPClassifier(solver="lbfgs"), "one"),
        # These hold texts back, of which they would learn other encodings.
        (HistGradientBoostingClassifier(early_stopping=True), "one"),
        (MLPClassifier(early_stopping=True), "one"),
        (RidgeCV(), "one"),
        (make_pipeline(StandardScaler(), RidgeCV()), "one"),
        (GridSearchCV(REGRESSION, {"C": [1.0]}), "one"),
        (SVC(probability=True), "one"),
        (KNeighborsClassifier(), "one"),
        (Centroids(), "one"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_estimators_learn_from_the_encodings_that_suit_them(estimator, encodings):
    assert one_or_all_encodings(estimator) == encodings


def test_a_regression_learns_from_all_copies_and_a_network_from_one_in_each_epoch():
    rng = np.random.default_rng(1)
    first, *more = rng.normal(size=(4, 30, 3))
    truth = rng.integers(0, 2, (30, 1))
    rows = []

    def note(vectors):
        rows.append(vectors.copy())
        return vectors

    model = fit_attacker(Attacker(REGRESSION, note), first, truth, ONE, 1, more).models[0]
    assert np.array_equal(np.concatenate(rows), np.concatenate([first, *more]))
    alone = LogisticRegression().fit(np.concatenate([first, *more]), np.tile(truth[:, 0], 4))
    assert model.coef_ == pytest.approx(alone.coef_)
    network = MLPClassifier((8,), max_iter=6, batch_size=10)
    fitted = fit_attacker(Attacker(network), first, truth, ONE, 1, more).models[0]
    # Six epochs of three steps, as for one encoding.
    assert (len(fitted.loss_curve_), fitted.t_) == (6, 180)
    again = fit_attacker(Attacker(network), first, truth, ONE, 1, more).models[0]
    other = fit_attacker(Attacker(network), first, truth, ONE, 1, more[::-1]).models[0]
    assert np.array_equal(fitted.coefs_[0], again.coefs_[0])
    assert not np.array_equal(fitted.coefs_[0], other.coefs_[0])
    several = np.hstack([truth, 1 - truth])
    two = Target(("a", "b"), ((0, 1), (0, 1)))
    assert fit_attacker(Attacker(network), first, several, two, 1, more).scores(first).shape == (
        30, 2,
    )  # fmt: skip
    assert fit_attacker(Attacker(KNeighborsClassifier()), first, truth, ONE, 1, more).models[
        0
    ].n_samples_fit_ == 30  # fmt: skip


LAWS = [
    (Laplace(0.7), lambda gaps: laplace.logpdf(gaps, scale=0.7).sum(axis=-1)),
    (Gaussian(0.7), lambda gaps: norm.logpdf(gaps, scale=0.7).sum(axis=-1)),
    # Up to its constant: exp(-norm / scale).
    (L2Laplace(0.7), lambda gaps: -np.linalg.norm(gaps, axis=-1) / 0.7),
]


@pytest.mark.parametrize(("law", "density"), LAWS, ids=lambda value: type(value).__name__)
def test_the_likelihood_is_the_mean_density_over_the_clean_vectors_of_a_value(
    law, density, monkeypatch
):
    monkeypatch.setattr("dpcore.text.inference.likelihood._MAX_BLOCK_ENTRIES", 60)
    rng = np.random.default_rng(1)
    clean, outputs = rng.normal(size=(20, 3)), rng.normal(size=(7, 3))
    logs = density(outputs[:, np.newaxis] - clean)
    truth, value = rng.integers(0, 2, 20), rng.integers(0, 3, 20)
    sums = {code: logsumexp(logs[:, truth == code], axis=1) for code in (0, 1)}
    means = {code: sums[code] - np.log((truth == code).sum()) for code in (0, 1)}
    scores = Likelihood(law, clean).fit(None, truth).decision_function(outputs)
    assert scores == pytest.approx(means[1] - means[0])
    many = Likelihood(law, clean).fit(None, value)
    expected = np.stack([logsumexp(logs[:, value == code], axis=1) for code in range(3)], axis=1)
    gaps = many.decision_function(outputs) - expected
    assert gaps == pytest.approx(np.repeat(gaps[:, :1], 3, axis=1))
    assert many.predict(outputs).tolist() == expected.argmax(axis=1).tolist()
    both = Likelihood(law, clean).fit(None, np.stack([truth, 1 - truth], axis=1))
    assert both.decision_function(outputs)[:, 0] == pytest.approx(sums[1] - sums[0])
    assert both.decision_function(outputs)[:, 1] == pytest.approx(sums[0] - sums[1])
    ages = rng.uniform(18.0, 80.0, 20)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    number = LikelihoodMean(law, clean).fit(None, ages).predict(outputs)
    assert number == pytest.approx(weights @ ages / weights.sum(axis=1))


def test_the_likelihood_is_an_attacker_where_noise_and_clean_vectors_are_known():
    secret, vectors, sizes = leaking(400, shift=2.0)
    texts = corpus(sizes, {"a": secret, "size": vectors[:, 0]}, labels=secret + (vectors[:, 1] > 0))
    encoder = Noisy(vectors, Laplace(1.0))
    found = infer(encoder, texts, "a", rng=1)
    assert "likelihood, raw" in dict(found.tried)
    assert found.above_floor
    number = infer(encoder, texts, "size", rng=1)
    assert (number.attacker, number.above_floor) == ("likelihood", True)
    assert infer(encoder, texts, "a", attackers="likelihood", rng=1).tried == (
        ("likelihood, raw", dict(found.tried)["likelihood, raw"]),
    )
    both = infer(encoder, texts, "a", attackers=[Attacker(REGRESSION), "likelihood"], rng=1)
    assert len(both.tried) == 2
    for other, more in ((Noisy(vectors), {}), (None, {"vectors": vectors})):
        with pytest.raises(ValueError, match=r"^attackers must be others than 'likelihood' where"):
            infer(other, texts, "a", attackers=["likelihood"], rng=1, **more)
    # Without a known law, and where other attackers are given, it is not tried.
    for other, more in ((Noisy(vectors), {}), (encoder, {"attackers": REGRESSION})):
        assert "likelihood, raw" not in dict(infer(other, texts, "a", rng=1, **more).tried)


def test_noise_that_is_not_declared_exactly_gives_no_likelihood():
    vectors = leaking()[1]

    class Layer:
        description = Gaussian(2.0)

    for noise, law in ((Laplace(1.0), Laplace(1.0)), (Layer(), Gaussian(2.0)), ("iid", None)):
        found = find_noise(Noisy(vectors, noise).encode)
        assert (found and found[0]) == law
    for name, value in (("encoder", type("Random", (), {"random": True})), ("dropout", 0.5)):
        encoder = Noisy(vectors, Laplace(1.0))
        setattr(encoder, name, value)
        assert find_noise(encoder.encode) is None


@pytest.mark.extras
def test_the_noise_of_encoders_of_torch_is_known():
    torch = needs("torch")
    from dpcore.torch import (
        Clip,
        GaussianNoise,
        LaplaceNoise,
        PrivateEncoder,
        SharedNoise,
        mechanism,
    )

    def lengths(texts):
        return torch.tensor([[float(len(text)), text.count("1")] for text in texts])

    class Module(torch.nn.Module):
        def forward(self, texts):
            return lengths(texts)

    for noise, law in (
        (LaplaceNoise(0.5), Laplace(0.5)),
        (GaussianNoise(2.0), Gaussian(2.0)),
        (SharedNoise(0.5), None),
    ):
        private = PrivateEncoder(lengths, Clip("l1", 1.0), epsilon=8.0, noise=noise, strict=False)
        modules = torch.nn.Sequential(Module(), noise)
        for encode in (private.encode, modules):
            found = find_noise(encode)
            assert (found and found[0]) == law
    law, clean = find_noise(torch.nn.Sequential(Module(), LaplaceNoise(0.5)))
    assert clean(["11"]).tolist() == [[2.0, 2.0]]
    secret, vectors, sizes = leaking()
    texts = corpus(sizes, {"a": secret})

    def encode(texts):
        return [vectors[int(text[1:]) if text[1:].isdigit() else 0] for text in texts]

    noisy = mechanism(encode, LaplaceNoise(0.5))
    assert noisy.clean(["t1", "t2"]) == pytest.approx(np.stack([noisy.clean("t1"), vectors[2]]))
    assert np.array_equal(noisy.encode(["t1"], rng=1), noisy.encode(["t1"], rng=1))
    assert not np.array_equal(noisy.encode(["t1"]), noisy.encode(["t1"]))
    found = infer(noisy, texts, "a", attackers=[REGRESSION, "likelihood"], rng=1)
    assert (found.encodings.copies, found.tried[-1][0]) == (10, "likelihood, raw")
    # Without its noise it is random, too: no clean vectors are known.
    random = mechanism(lambda texts: torch.tensor(np.stack(encode(texts))) + torch.randn(1), noise)
    with pytest.raises(ValueError, match=r"^attackers must be others than 'likelihood' where"):
        infer(random, texts, "a", attackers="likelihood", rng=1)


def test_each_measure_chooses_its_own_attacker_and_reports_it():
    secret, vectors, sizes = leaking(1200, shift=0.0)
    rng = np.random.default_rng(2)
    vectors[:, 0] += 0.6 * secret
    # One text of twelve of the second value leaks outright, in another column.
    vectors[:, 1] = np.where((rng.random(1200) < 0.08) & (secret == 1), 9.0, 0.0)
    attackers = [Attacker(Centroids(column), name=f"column {column}") for column in (0, 1)]
    found = infer(
        None, corpus(sizes, {"a": secret}), "a", vectors=vectors, attackers=attackers, rng=1
    )
    chosen = {test.measure: test for test in found.measures}
    assert list(chosen) == ["auc", "true-positive rate", "balanced accuracy"]
    assert [test.attacker for test in found.measures] == ["column 0", "column 1", "column 0"]
    levels = [floor.level for test in found.measures for floor in test.floors]
    assert levels == pytest.approx([0.025 / 3] * 3)
    assert "true-positive rate" in found.measures_above
    assert found.floors == chosen[found.measure].floors
    lines = [line for label, line in found.lines() if label == "measure"]
    assert [line.split(" by ")[1].split(",")[0] for line in lines] == [
        test.attacker for test in found.measures
    ]
    assert lines[1].startswith(f"true-positive rate at 1 % {chosen['true-positive rate'].figure}")
    verdict = dict(found.lines())["verdict"]
    assert verdict.startswith(
        "above the floor: the attacker does better than without any vectors, by"
    )
    plain = json.loads(found.to_json())
    assert plain["outcome"]["measures"][1]["attacker"] == "column 1"
    assert "true-positive rate" in plain["derived"]["measures_above"]
    assert all(line.partition(":")[0] in found._repr_html_() for line in lines)
    single = infer(
        None, corpus(sizes, {"a": secret}), "a", vectors=vectors, attackers=attackers, rng=1,
        measure="auc",
    )  # fmt: skip
    assert (single.measures, single.measures_above, single.floors[0].level) == (
        (), ("auc",), pytest.approx(0.025),
    )  # fmt: skip


def test_one_measure_must_beat_every_floor():
    """The area beats the majority only, the label's floor is left: no measure beats both."""
    rng = np.random.default_rng(1)
    secret = rng.integers(0, 2, 1200)
    labels = np.where(rng.random(1200) < 0.9, secret, 1 - secret)
    rows = labels[:, np.newaxis] + 0.1 * rng.normal(size=(1200, 1))
    texts = corpus((600, 300, 300), {"a": secret}, labels=labels)
    found = infer(None, texts, "a", vectors=rows, attackers=Centroids(), rng=1)
    assert [test.floors[0].beaten for test in found.measures] == [True] * 3
    assert (found.above_floor, found.measures_above) == (False, ())
    assert found.floors_left == ("majority given the main label",)


RARE_SIZES = (1200, 600, 600)


@pytest.mark.parametrize("seed", range(5))
def test_a_leak_of_few_texts_is_found_by_the_true_positive_rate(seed):
    rng = np.random.default_rng(seed)
    secret = rng.integers(0, 2, 2400)
    rows = rng.normal(size=(2400, 16))
    rows[(rng.random(2400) < 0.08) & (secret == 1), 0] += 12.0
    found = infer(None, corpus(RARE_SIZES, {"a": secret}), "a", vectors=rows, rng=seed)
    test = next(test for test in found.measures if test.measure == "true-positive rate")
    assert test.floors[0].p_value <= 0.0015
    assert "true-positive rate" in found.measures_above


@pytest.mark.sweep
@pytest.mark.parametrize("form", ["plain", "labels", "groups"])
def test_an_attribute_that_texts_do_not_show_is_above_the_floor_as_rarely_as_is_said(form):
    """400 runs with ten encodings, the likelihood, and each of the three measures tested."""
    alarms, leaks, runs, sizes = 0, 0, 400, (120, 60, 60)
    known = [REGRESSION, KNeighborsClassifier(15)]
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        group = np.arange(240) // (4 if form == "groups" else 1)
        secret = rng.permutation(np.arange(240) % 2)[group]
        labels = rng.integers(0, 3, 240) if form == "labels" else None
        vectors = rng.normal(size=(240, 4)) + (rng.normal(size=(240, 4))[group])
        for shift in (0.0, 8.0)[: 1 + (seed < 20)]:
            vectors[:, 0] += shift * secret
            encoder = Noisy(vectors, Laplace(1.0))
            tried = [Attacker(one, "raw") for one in known]
            tried.append(Attacker(Likelihood(Laplace(1.0), vectors[:120]), name="likelihood"))
            texts = corpus(sizes, {"a": secret}, labels=labels)
            texts = texts if form != "groups" else replace(texts, groups=group)
            found = infer(encoder, texts, "a", attackers=tried, rng=seed, progress=False)
            assert found.encodings.copies == 10
            alarms += found.above_floor and not shift
            leaks += found.above_floor and shift > 0.0
    assert binomtest(alarms, runs, 0.025, alternative="greater").pvalue > 1e-3, alarms
    # The control: an attribute that the vectors show is found.
    assert leaks == 20
