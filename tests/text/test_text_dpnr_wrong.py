"""Wrong calls of DPNR: each names the argument, the requirement and the value."""

import re

import numpy as np
import pytest
from shared_extras import needs

torch = needs("torch", "safetensors")

import dpcore  # noqa: E402
from dpcore.text import DPNR, Corpus, WordDropout, generated, schedules  # noqa: E402
from dpcore.torch import Clip  # noqa: E402

CORPUS = generated("topics", 200, rng=1)
TEXTS = ["a goal", "shares fell", "the coach stays", "debt grew"] * 10
PLAIN = Corpus(TEXTS, ["sport", "money"] * 20)


def lengths(texts):
    return [[float(len(text)), 1.0] for text in texts]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({}, TypeError, "epsilon"),
        ({"epsilon": 0.0}, ValueError, "epsilon must be .*above 0.*got 0.0"),
        ({"epsilon": -1.0}, ValueError, "epsilon must be"),
        ({"epsilon": "5"}, TypeError, "epsilon must be"),
        ({"epsilon": 1.0, "dim": 1}, ValueError, "dim must be .*2.*got 1"),
        ({"epsilon": 1.0, "dim": 2.5}, TypeError, "dim must be an integer"),
        ({"epsilon": 1.0, "dim": 8, "extractor": lengths}, ValueError, "dim must be left out"),
        ({"epsilon": 1.0, "extractor": "bert"}, TypeError, "encoder must be a SentenceTransformer"),
        ({"epsilon": 1.0, "noise": "gaussian"}, ValueError, "noise must be one of 'iid', 'shared'"),
        ({"epsilon": 1.0, "scale": "right"}, ValueError, "scale must be one of 'published', 's"),
        (
            {"epsilon": 1.0, "scale": "published", "transform": Clip("l1", 1.0)},
            ValueError,
            "scale must be 'sound' for another transform than min-max",
        ),
        ({"epsilon": 1.0, "transform": "minmax"}, TypeError, "transform must be Clip, MinMax"),
        ({"epsilon": 1.0, "dropout": 0.5}, TypeError, "dropout must be WordDropout|a WordDropout"),
        (
            {"epsilon": 1.0, "dropout": WordDropout(0.5), "extractor": lengths},
            ValueError,
            "dropout must be None where",
        ),
        ({"epsilon": 1.0, "unknown": "keep"}, ValueError, "unknown must be one of 'drop', 'token'"),
        ({"epsilon": 1.0, "min_count": 0}, ValueError, "min_count must be"),
    ],
)
def test_wrong_models(given, error, message):
    with pytest.raises(error, match=message):
        DPNR(**given)


@pytest.mark.parametrize(
    ("corpus", "given", "error", "message"),
    [
        (TEXTS, {}, TypeError, "corpus must be a.* Corpus"),
        (Corpus(TEXTS), {}, ValueError, "corpus must be one with labels"),
        (Corpus(TEXTS, ["a"] * 40), {}, ValueError, "labels must be of two values at least"),
        (
            Corpus(TEXTS, ["a", "b"] * 20, split=["test"] * 40),
            {},
            ValueError,
            "split must be a split with a 'train' part",
        ),
        (PLAIN, {"epochs": 0}, ValueError, "epochs must be"),
        (PLAIN, {"batch": 0}, ValueError, "batch must be"),
        (PLAIN, {"lr": 0.0}, ValueError, "lr must be"),
        (PLAIN, {"lr": float("nan")}, ValueError, "lr must be"),
        (PLAIN, {"decay": 1.5}, ValueError, "decay must be"),
        (PLAIN, {"pair": 1}, TypeError, "pair must be"),
        (PLAIN, {"device": "gpu"}, ValueError, "device must be one of this machine"),
        (PLAIN, {"rng": -1}, ValueError, "rng must be"),
        (PLAIN, {"schedule": 5.0}, TypeError, r"schedule must be .*schedules\.Constant\(5"),
        (PLAIN, {"schedule": schedules.Constant}, TypeError, "schedule must be"),
        (
            PLAIN,
            {"schedule": lambda epoch, epochs, rng: 3 - epoch, "epochs": 4},
            ValueError,
            "epsilon .*epoch 3 of 4 must be .*above 0, got 0",
        ),
        (
            PLAIN,
            {"schedule": lambda epoch, epochs, rng: float("nan")},
            ValueError,
            "epoch 1 of 35 must be .*got nan",
        ),
        (PLAIN, {"lr": 1e30}, ValueError, r"lr must be small enough .*epoch \d+\), got 1e\+30"),
    ],
)
def test_wrong_fits(corpus, given, error, message):
    with pytest.raises(error, match=message):
        DPNR(dim=4, epsilon=1.0).fit(corpus, **given)


def test_a_fit_that_failed_leaves_no_model():
    model = DPNR(dim=4, epsilon=1.0).fit(PLAIN, epochs=1, rng=1)
    with pytest.raises(ValueError, match="lr must be"):
        model.fit(PLAIN, lr=1e30, rng=1)
    with pytest.raises(ValueError, match="model must be fitted"):
        model.encode(TEXTS)
    with pytest.raises(ValueError, match="model must be fitted"):
        model.predicted(np.zeros((1, 4)))


@pytest.mark.parametrize(
    "used",
    [
        lambda model: model.encode(["a goal"]),
        lambda model: model.clean(["a goal"]),
        lambda model: model.predict(["a goal"]),
        lambda model: model.accuracy(PLAIN),
        lambda model: model.worst_pair(TEXTS),
        lambda model: model.to("cpu"),
        lambda model: model.save_pretrained("nowhere"),
        lambda model: dpcore.audit(model, ("a goal", "debt grew"), trials=100),
    ],
)
def test_nothing_works_before_fit(used):
    with pytest.raises(ValueError, match=r"model must be fitted before .*model\.fit\(corpus\)"):
        used(DPNR(dim=4, epsilon=1.0))


@pytest.fixture(scope="module")
def model():
    return DPNR(dim=4, epsilon=1.0).fit(CORPUS, epochs=1, rng=1)


@pytest.mark.parametrize(
    ("used", "error", "message"),
    [
        (lambda m: m.encode("a goal"), TypeError, "texts must be a list of .*single string"),
        (lambda m: m.encode(["a goal", ""]), ValueError, r"texts\[1\] must be a text that is not"),
        (lambda m: m.predict([1]), TypeError, r"texts\[0\] must be"),
        (lambda m: m.accuracy(Corpus(TEXTS)), ValueError, "corpus must be one with labels"),
        (lambda m: m.accuracy(TEXTS), TypeError, "corpus must be"),
        (lambda m: m.worst_pair(["one", "one"]), ValueError, "texts must be at least two diff"),
        (lambda m: m.predicted(np.zeros((2, 9))), ValueError, r"vectors must be of shape \(n, 4\)"),
        (lambda m: m.predicted(np.zeros(4)), ValueError, r"vectors must be of shape \(n, 4\)"),
        (lambda m: m.predicted(np.full((1, 4), np.nan)), ValueError, "vectors must be finite"),
        (lambda m: m.predicted([["a"] * 4]), TypeError, "vectors must be an array of numbers"),
        (lambda m: m.to("gpu"), ValueError, "device must be one of this machine"),
        (lambda m: m.save_pretrained(3), TypeError, "folder must be a path"),
    ],
)
def test_wrong_uses(model, used, error, message):
    with pytest.raises(error, match=message):
        used(model)


def test_no_texts_have_no_vectors_and_no_labels(model):
    assert model.encode([]).shape == (0, 4)
    assert len(model.predict([])) == 0


def test_an_extractor_of_constant_rows_is_told_and_trains():
    def constant(texts):
        return [[1.0, 1.0, 1.0]] * len(texts)

    one = DPNR(epsilon=1.0, extractor=constant)
    one.fit(PLAIN, epochs=1, pair=False, rng=1)
    with pytest.warns(dpcore.errors.AssumptionWarning, match="2 of 2 rows are constant"):
        vectors = one.encode(["a", "b"], rng=1)
    assert np.isfinite(vectors).all()


def test_an_extractor_of_one_number_has_no_range():
    with pytest.raises(ValueError, match="dim >= 2: one entry has no range"):
        DPNR(epsilon=1.0, extractor=lambda texts: [[1.0]] * len(texts)).fit(PLAIN)


def test_labels_of_the_test_part_that_were_never_seen_are_wrong_answers(model):
    other = Corpus(CORPUS.texts[:3], ["chess"] * 3)
    assert model.accuracy(other, rng=1) == 0.0


@pytest.mark.parametrize(
    ("file", "change", "error", "message"),
    [
        ("config.json", lambda t: t.replace("text.DPNR/1", "text.DPNR/9"), ValueError, "format"),
        (
            "config.json",
            lambda t: t.replace('"words"', '"wordz"'),
            ValueError,
            "must be there, got 'words'",
        ),
        ("config.json", lambda t: t.replace('"iid"', '"odd"'), ValueError, "noise must be one of"),
        ("config.json", lambda t: t.replace('"bag"', '"sack"'), ValueError, "extractor in config"),
        ("config.json", lambda t: t.replace('"min_count"', '"min"'), ValueError, "arguments in"),
        ("config.json", lambda t: t.replace('"dim": 4', '"dim": 5'), ValueError, "safetensors"),
        ("config.json", lambda t: t.replace('"batch"', '"bach"'), ValueError, "trained in conf"),
        ("config.json", lambda t: t[:-20], ValueError, "must be JSON"),
        ("model.safetensors", None, FileNotFoundError, re.escape("must hold model.safetensors")),
    ],
)
def test_wrong_folders(model, tmp_path, file, change, error, message):
    path = model.save_pretrained(tmp_path) / file
    if change is None:
        path.unlink()
    else:
        path.write_text(change(path.read_text()))
    with pytest.raises(error, match=message):
        DPNR.from_pretrained(tmp_path)


def test_a_folder_with_a_pickle_is_refused(model, tmp_path):
    model.save_pretrained(tmp_path)
    (tmp_path / "model.pt").write_bytes(b"")
    with pytest.raises(ValueError, match="without files that could hold a pickle"):
        DPNR.from_pretrained(tmp_path)


def test_an_extractor_is_given_where_one_is_missing_only(model, tmp_path):
    model.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="extractor must be left out"):
        DPNR.from_pretrained(tmp_path, extractor=lengths)
