"""Wrong calls of DPNR: each names the argument, the requirement and the value."""

import re

import numpy as np
import pytest
from shared_extras import needs
from shared_messages import check_messages

torch = needs("torch", "safetensors")

import dpcore  # noqa: E402
from dpcore.text import DPNR, Corpus, WordDropout, generated, schedules  # noqa: E402
from dpcore.torch import Clip  # noqa: E402

CORPUS = generated("topics", 200, rng=1)
TEXTS = ["a goal", "shares fell", "the coach stays", "debt grew"] * 10
PLAIN = Corpus(TEXTS, ["sport", "money"] * 20)


def lengths(texts):
    return [[float(len(text)), 1.0] for text in texts]


def test_a_fit_that_failed_leaves_no_model():
    model = DPNR(dim=4, epsilon=1.0).fit(PLAIN, epochs=1, rng=1)
    with pytest.raises(ValueError, match="lr must be"):
        model.fit(PLAIN, lr=1e30, rng=1)
    with pytest.raises(ValueError, match="model must be fitted"):
        model.encode(TEXTS)
    with pytest.raises(ValueError, match="model must be fitted"):
        model.predicted(np.zeros((1, 4)))


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


VALUE_ERRORS = [
    (lambda: DPNR(epsilon=0.0), "epsilon", "above 0"),
    (lambda: DPNR(epsilon=-1.0), "epsilon", "a finite number above 0"),
    (lambda: DPNR(epsilon=1.0, dim=1), "dim", "got 1"),
    (lambda: DPNR(epsilon=1.0, dim=8, extractor=lengths), "dim", "left out"),
    (lambda: DPNR(epsilon=1.0, noise="gaussian"), "noise", "one of 'iid', 'shared'"),
    (lambda: DPNR(epsilon=1.0, scale="right"), "scale", "one of 'published', 'sound"),
    (lambda: DPNR(epsilon=1.0, scale="published", transform=Clip("l1", 1.0)), "scale",
     "'sound' for another transform"),
    (lambda: DPNR(epsilon=1.0, dropout=WordDropout(0.5), extractor=lengths), "dropout",
     "None where"),
    (lambda: DPNR(epsilon=1.0, unknown="keep"), "unknown", "one of 'drop', 'token'"),
    (lambda: DPNR(epsilon=1.0, min_count=0), "min_count", "an integer at least 1"),
    (lambda: DPNR(dim=4, epsilon=1.0).fit(Corpus(TEXTS)), "corpus", "one with labels"),
    (lambda: DPNR(dim=4, epsilon=1.0).fit(Corpus(TEXTS, ["a"] * 40)), "labels", "of two values"),
    (lambda: DPNR(dim=4, epsilon=1.0).fit(Corpus(TEXTS, ["a", "b"] * 20, split=["test"] * 40)),
     "split", "a split with a 'train' part"),
    (lambda: DPNR(dim=4, epsilon=1.0).fit(PLAIN, epochs=0), "epochs", "an integer at least 1"),
    (lambda: DPNR(dim=4, epsilon=1.0).fit(PLAIN, batch=0), "batch", "an integer at least 1"),
    (lambda: DPNR(dim=4, epsilon=1.0).fit(PLAIN, lr=0.0), "lr", "a finite number above 0"),
    (lambda: DPNR(dim=4, epsilon=1.0).fit(PLAIN, lr=float("nan")), "lr", "a finite number above 0"),
    (lambda: DPNR(dim=4, epsilon=1.0).fit(PLAIN, decay=1.5), "decay", "a finite number above 0"),
    (lambda: DPNR(dim=4, epsilon=1.0).fit(PLAIN, device="gpu"), "device", "one of this machine"),
    (lambda: DPNR(dim=4, epsilon=1.0).fit(PLAIN, rng=-1), "rng", "an integer from 0"),
    (lambda: DPNR(dim=4, epsilon=1.0).fit(PLAIN, schedule=lambda epoch, epochs, rng: 3 - epoch,
     epochs=4), "", "epsilon"),
    (lambda: DPNR(dim=4, epsilon=1.0).fit(PLAIN, schedule=lambda epoch, epochs, rng: float("nan")),
     "", "got nan"),
    (lambda: DPNR(dim=4, epsilon=1.0).fit(PLAIN, lr=1e30), "lr", "small enough"),
    (lambda: DPNR(dim=4, epsilon=1.0).encode(["a goal"]), "model", "fitted before"),
    (lambda: DPNR(dim=4, epsilon=1.0).clean(["a goal"]), "model", "fitted before"),
    (lambda: DPNR(dim=4, epsilon=1.0).predict(["a goal"]), "model", "fitted before"),
    (lambda: DPNR(dim=4, epsilon=1.0).accuracy(PLAIN), "model", "fitted before"),
    (lambda: DPNR(dim=4, epsilon=1.0).worst_pair(TEXTS), "model", "fitted before"),
    (lambda: DPNR(dim=4, epsilon=1.0).to("cpu"), "model", "fitted before"),
    (lambda: DPNR(dim=4, epsilon=1.0).save_pretrained("nowhere"), "model", "fitted before"),
    (lambda: dpcore.audit(DPNR(dim=4, epsilon=1.0), ("a goal", "debt grew"), trials=100), "model",
     "fitted before"),
    (lambda: DPNR(epsilon=1.0, extractor=lambda texts: [[1.0]] * len(texts)).fit(PLAIN), "x",
     "dim >= 2: one entry has no range"),
]  # fmt: skip
TYPE_ERRORS = [
    (lambda: DPNR(), "", "epsilon"),
    (lambda: DPNR(epsilon="5"), "epsilon", "a finite number above 0"),
    (lambda: DPNR(epsilon=1.0, dim=2.5), "dim", "an integer"),
    (lambda: DPNR(epsilon=1.0, extractor="bert"), "encoder", "a SentenceTransformer"),
    (lambda: DPNR(epsilon=1.0, transform="minmax"), "transform", "Clip, MinMax"),
    (lambda: DPNR(epsilon=1.0, dropout=0.5), "dropout", "a WordDropout"),
    (lambda: DPNR(dim=4, epsilon=1.0).fit(TEXTS), "corpus", "Corpus"),
    (lambda: DPNR(dim=4, epsilon=1.0).fit(PLAIN, pair=1), "pair", "True or False"),
    (lambda: DPNR(dim=4, epsilon=1.0).fit(PLAIN, schedule=5.0), "schedule", "s.Constant(5"),
    (lambda: DPNR(dim=4, epsilon=1.0).fit(PLAIN, schedule=schedules.Constant), "schedule",
     "a function"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
