"""Corpus: checks, parts, rows, equality."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
from shared_messages import check_messages

from dpcore.text import Corpus


def small():
    return Corpus(
        ["one", "two", "three", "four"],
        [1, 2, 1, 2],
        {"male": [0, 1, 0, 1], "town": ["a", "b", "a", "c"]},
        ["train", "train", "valid", "test"],
        "by hand",
    )


WRONG = [
    ({"texts": "one text"}, TypeError, "not a single string, got 'one text'"),
    ({"texts": b"one text"}, TypeError, "not a single string"),
    ({"texts": 3}, TypeError, "texts must be a list of at least one text, got 3"),
    ({"texts": {"a": 1}}, TypeError, "texts must be a list"),
    ({"texts": []}, ValueError, "texts must be a list of at least one text"),
    ({"texts": ["a", "", "b", "c"]}, ValueError, r"texts\[1\] must be a text that is not empty"),
    ({"texts": ["a", "b", " \n", "c"]}, ValueError, r"texts\[2\] must be a text that is not"),
    (
        {"texts": ["a", "b", "c", None]},
        TypeError,
        r"texts\[3\] must be a text .a string., got None",
    ),
    ({"labels": [1, 2]}, ValueError, "for each of the 4 texts, got '2 values'"),
    ({"labels": "abcd"}, TypeError, "labels must be an integer or a string"),
    ({"labels": 1}, TypeError, "labels must be an integer or a string"),
    ({"labels": [1, np.nan, 1, 1]}, ValueError, r"labels\[1\] must be known.*got nan"),
    ({"labels": pd.Series([1, None, 1, 1], dtype="Int64")}, ValueError, r"labels\[1\] .*known"),
    ({"labels": [None, 1, 1, 1]}, ValueError, r"labels\[0\] must be known.*got None"),
    ({"labels": [1, 2.0, 1, 1]}, TypeError, r"labels\[1\] must be an integer or a string"),
    ({"labels": [1, "a", 1, 1]}, TypeError, r"labels\[1\] must be of the same type"),
    ({"labels": [1, 2**63, 1, 1]}, ValueError, "63 bits"),
    ({"labels": np.ma.masked_array([1, 1, 1, 1], [0, 1, 0, 0])}, ValueError, "labels must be"),
    ({"attributes": [1, 1, 1, 1]}, TypeError, "attributes must be a mapping from names"),
    ({"attributes": {"male": [0, 1]}}, ValueError, r"attributes\['male'\] must be a number"),
    ({"attributes": {"": [0, 1, 1, 1]}}, TypeError, "keys are names"),
    ({"attributes": {1: [0, 1, 1, 1]}}, TypeError, "keys are names"),
    ({"split": ["train", "dev", "test", "test"]}, ValueError, r"split\[1\] must be one of 'train'"),
    ({"split": [0, 1, 1, 1]}, TypeError, r"split\[0\] must be one of 'train'"),
    ({"origin": None}, TypeError, "origin must be a str"),
]


@pytest.mark.parametrize(("given", "error", "said"), WRONG)
def test_what_is_wrong_is_named(given, error, said):
    with pytest.raises(error, match=said):
        Corpus(**{"texts": ["a", "b", "c", "d"], **given})


def test_parts_and_rows():
    corpus = small()
    assert list(corpus) == ["one", "two", "three", "four"]
    assert len(corpus) == 4
    assert corpus[2] == corpus[-2] == corpus[np.int64(2)] == "three"
    assert list(corpus.train) == ["one", "two"]
    assert corpus.valid == corpus[2:3]
    assert corpus.test.attribute("town").tolist() == ["c"]
    assert corpus.train.train == corpus.train
    chosen = corpus[[3, 0, 0]]
    assert (list(chosen), chosen.labels.tolist()) == (["four", "one", "one"], [2, 1, 1])
    assert chosen.attribute("male").tolist() == [1, 0, 0]
    assert chosen.origin == "by hand"
    assert corpus[corpus.labels == 2] == corpus[1::2]


def test_equality_is_of_content():
    corpus = small()
    assert corpus == small()
    assert hash(corpus) == hash(small())
    assert corpus == Corpus(corpus.texts, corpus.labels, corpus.attributes, corpus.split, "other")
    assert corpus != Corpus(corpus.texts, corpus.labels, corpus.attributes)
    assert corpus != Corpus(corpus.texts, [1, 2, 1, 1], corpus.attributes, corpus.split)
    assert corpus != Corpus(corpus.texts, corpus.labels, {"male": [0, 1, 0, 1]}, corpus.split)
    assert corpus != list(corpus)
    again = pickle.loads(pickle.dumps(corpus))
    assert again == corpus
    assert not again.labels.flags.writeable


def test_nothing_in_it_can_be_changed():
    corpus, labels = small(), np.array([1, 2, 1, 2])
    with pytest.raises(FrozenInstanceError):
        corpus.labels = labels
    with pytest.raises(ValueError, match="read-only"):
        corpus.labels[0] = 3
    with pytest.raises(TypeError):
        corpus.attributes["male"] = labels
    kept = Corpus(list("abcd"), labels)
    labels[0] = 9
    assert kept.labels[0] == 1


def test_columns_of_tables():
    frame = pd.DataFrame(
        {"text": ["a", "b"], "topic": pd.Categorical(["x", "y"]), "old": [True, False]},
        index=[5, 7],
    )
    corpus = Corpus(frame["text"], frame["topic"], {"old": frame["old"]})
    assert corpus == Corpus(["a", "b"], ["x", "y"], {"old": [1, 0]})


def test_repr_is_one_line():
    assert repr(small()) == (
        "Corpus(4 texts; labels 1 2; attributes male town; train 2, valid 1, test 1; by hand)"
    )
    assert repr(Corpus(["a"] * 1200, range(1200))) == "Corpus(1,200 texts; labels of 1200 kinds)"


def test_the_package_loads_no_optional_package():
    code = "import sys, dpcore.text; print(*{n.split('.')[0] for n in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "sklearn", "safetensors", "sacrebleu", "scipy"} & set(done.stdout.split())


VALUE_ERRORS = [
    (lambda: small()[slice(0, 0)], "rows", "a choice of at least one text"),
    (lambda: small().train.test, "split", "a split with a 'test' part"),
    (lambda: Corpus(["a"]).train, "split", "known to have a 'train' part"),
    (lambda: small().attribute("age"), "attribute", "one of 'male', 'town'"),
    (lambda: Corpus(["a"]).attribute("age"), "attribute", "in the corpus, which has no attributes"),
]  # fmt: skip
TYPE_ERRORS = [
    (lambda: small()["train"], "rows", "an integer, a slice, a mask or an array"),
]  # fmt: skip
INDEX_ERRORS = [
    (lambda: small()[9], "", "tuple index out of range"),
    (lambda: small()[[True, False]], "", "boolean index did not match indexed"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
    check_messages(IndexError, INDEX_ERRORS)
