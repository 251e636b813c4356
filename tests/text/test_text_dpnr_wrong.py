"""Wrong calls of DPNR: each names the argument, the requirement and the value."""

from functools import cache

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


@cache
def known():
    """A fitted model, which no test changes."""
    return DPNR(dim=4, epsilon=1.0).fit(CORPUS, epochs=1, rng=1)


def test_no_texts_have_no_vectors_and_no_labels():
    assert known().encode([]).shape == (0, 4)
    assert len(known().predict([])) == 0


def test_an_extractor_of_constant_rows_is_told_and_trains():
    def constant(texts):
        return [[1.0, 1.0, 1.0]] * len(texts)

    one = DPNR(epsilon=1.0, extractor=constant)
    one.fit(PLAIN, epochs=1, pair=False, rng=1)
    with pytest.warns(dpcore.errors.AssumptionWarning, match="2 of 2 rows are constant"):
        vectors = one.encode(["a", "b"], rng=1)
    assert np.isfinite(vectors).all()


def test_labels_of_the_test_part_that_were_never_seen_are_wrong_answers():
    other = Corpus(CORPUS.texts[:3], ["chess"] * 3)
    assert known().accuracy(other, rng=1) == 0.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.replace('"iid"', '"odd"'), "noise must be one of"),
        (lambda t: t.replace('"bag"', '"sack"'), "extractor in config"),
        (lambda t: t[:-20], "must be JSON"),
    ],
)
def test_wrong_folders(tmp_path, change, message):
    file = known().save_pretrained(tmp_path) / "config.json"
    file.write_text(change(file.read_text()))
    with pytest.raises(ValueError, match=message):
        DPNR.from_pretrained(tmp_path)


def test_a_folder_with_a_pickle_is_refused(tmp_path):
    known().save_pretrained(tmp_path)
    (tmp_path / "model.pt").write_bytes(b"")
    with pytest.raises(ValueError, match="without files that could hold a pickle"):
        DPNR.from_pretrained(tmp_path)


def test_an_extractor_is_given_where_one_is_missing_only(tmp_path):
    known().save_pretrained(tmp_path)
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
    (lambda: DPNR(dim=4, epsilon=1.0).predict(["a goal"]), "model", "fitted before"),
    (lambda: DPNR(dim=4, epsilon=1.0).accuracy(PLAIN), "model", "fitted before"),
    (lambda: dpcore.audit(DPNR(dim=4, epsilon=1.0), ("a goal", "debt grew"), trials=100), "model",
     "fitted before"),
    (lambda: DPNR(epsilon=1.0, extractor=lambda texts: [[1.0]] * len(texts)).fit(PLAIN), "x",
     "dim >= 2: one entry has no range"),
    (lambda: known().encode(["a goal", ""]), "texts[1]", "a text that is not empty"),
    (lambda: known().accuracy(Corpus(TEXTS)), "corpus", "one with labels"),
    (lambda: known().worst_pair(["one", "one"]), "texts", "at least two different"),
    (lambda: known().predicted(np.zeros((2, 9))), "vectors", "of shape (n, 4)"),
    (lambda: known().predicted(np.zeros(4)), "vectors", "of shape (n, 4)"),
    (lambda: known().predicted(np.full((1, 4), np.nan)), "vectors", "finite"),
    (lambda: known().to("gpu"), "device", "one of this machine"),
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
    (lambda: known().encode("a goal"), "texts", "a list of texts, not a single string"),
    (lambda: known().predict([1]), "texts[0]", "a text (a string)"),
    (lambda: known().accuracy(TEXTS), "corpus", "a Corpus"),
    (lambda: known().predicted([["a"] * 4]), "vectors", "an array of numbers"),
    (lambda: known().save_pretrained(3), "folder", "a path"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
