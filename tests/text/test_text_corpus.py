"""Corpus: checks, parts, rows, equality."""

import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
from shared_messages import check_messages

from dpcore.text import Corpus, Vocabulary, split, words_of
from dpcore.text.corpus import fold_case_and_blanks


def small():
    return Corpus(
        ["one", "two", "three", "four"],
        [1, 2, 1, 2],
        {"male": [0, 1, 0, 1], "town": ["a", "b", "a", "c"]},
        ["train", "train", "valid", "test"],
        "by hand",
    )


def test_parts_and_rows():
    corpus = small()
    assert (list(corpus), len(corpus)) == (["one", "two", "three", "four"], 4)
    assert corpus[2] == corpus[-2] == corpus[np.int64(2)] == "three"
    assert (list(corpus.train), corpus.valid) == (["one", "two"], corpus[2:3])
    assert (corpus.test.attribute("town").tolist(), corpus.train.train) == (["c"], corpus.train)
    chosen = corpus[[3, 0, 0]]
    assert (list(chosen), chosen.labels.tolist()) == (["four", "one", "one"], [2, 1, 1])
    assert (chosen.attribute("male").tolist(), chosen.origin) == ([1, 0, 0], "by hand")
    assert corpus[corpus.labels == 2] == corpus[1::2]


def test_equality_is_of_content():
    corpus = small()
    assert (corpus, hash(corpus)) == (small(), hash(small()))
    assert corpus == Corpus(corpus.texts, corpus.labels, corpus.attributes, corpus.split, "other")
    assert corpus != Corpus(corpus.texts, corpus.labels, corpus.attributes)
    assert corpus != Corpus(corpus.texts, [1, 2, 1, 1], corpus.attributes, corpus.split)
    assert corpus != Corpus(corpus.texts, corpus.labels, {"male": [0, 1, 0, 1]}, corpus.split)
    assert corpus != list(corpus)
    again = pickle.loads(pickle.dumps(corpus))
    assert (again, again.labels.flags.writeable) == (corpus, False)


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
    table = {"text": ["a", "b"], "topic": pd.Categorical(["x", "y"]), "old": [True, False]}
    frame = pd.DataFrame(table, index=[5, 7])
    corpus = Corpus(frame["text"], frame["topic"], {"old": frame["old"]})
    assert corpus == Corpus(["a", "b"], ["x", "y"], {"old": [1, 0]})


def test_repr_is_one_line():
    assert repr(small()) == (
        "Corpus(4 texts; labels 1 2; attributes male town; train 2, valid 1, test 1; by hand)"
    )
    assert repr(Corpus(["a"] * 1200, range(1200))) == "Corpus(1,200 texts; labels of 1200 kinds)"


def test_the_package_and_its_parts_load_no_optional_package():
    code = (
        "import sys, dpcore.text.lm, dpcore.text.redaction, dpcore.text.words; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    optional = {"torch", "sklearn", "safetensors", "sacrebleu", "scipy", "spacy", "gensim"}
    assert not optional & set(done.stdout.split())


def make(**given):
    return lambda: Corpus(**{"texts": ["a", "b", "c", "d"], **given})


VALUE_ERRORS = [
    (make(texts=[]), "texts", "a list of at least one text"),
    (make(texts=["a", "", "b", "c"]), "texts[1]", "a text that is not empty"),
    (make(labels=[1, 2]), "labels", "for each of the 4 texts, got '2 values'"),
    (make(labels=[1, np.nan, 1, 1]), "labels[1]", "got nan"),
    (make(labels=pd.Series([1, None, 1, 1], dtype="Int64")), "labels[1]", "known"),
    (make(labels=[None, 1, 1, 1]), "labels[0]", "got None"),
    (make(labels=[1, 2**63, 1, 1]), "labels", "63 bits"),
    (make(labels=np.ma.masked_array([1, 1, 1, 1], [0, 1, 0, 0])), "labels", ""),
    (make(attributes={"male": [0, 1]}), "attributes['male']", "a number"),
    (make(split=["train", "dev", "test", "test"]), "split[1]", "one of 'train'"),
    (lambda: small()[slice(0, 0)], "rows", "a choice of at least one text"),
    (lambda: small().train.test, "split", "a split with a 'test' part"),
    (lambda: Corpus(["a"]).train, "split", "known to have a 'train' part"),
    (lambda: small().attribute("age"), "attribute", "one of 'male', 'town'"),
    (lambda: Corpus(["a"]).attribute("age"), "attribute", "in the corpus, which has no attributes"),
]  # fmt: skip
TYPE_ERRORS = [
    *((make(texts=texts), "texts", "not a single string") for texts in ("one text", b"one text")),
    *((make(texts=texts), "texts", "a list of at least one text") for texts in (3, {"a": 1})),
    (make(texts=["a", "b", "c", None]), "texts[3]", "a text (a string), got None"),
    *((make(labels=labels), "labels", "an integer or a string") for labels in ("abcd", 1)),
    (make(labels=[1, 2.0, 1, 1]), "labels[1]", "an integer or a string"),
    (make(labels=[1, "a", 1, 1]), "labels[1]", "of the same type"),
    (make(attributes=[1, 1, 1, 1]), "attributes", "a mapping from names"),
    *((make(attributes={name: [0, 1, 1, 1]}), "attributes", "keys are names") for name in ("", 1)),
    (make(split=[0, 1, 1, 1]), "split[0]", "one of 'train'"),
    (make(origin=None), "origin", "a str"),
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


CORPUS = Corpus([f"text {i % 70}" for i in range(100)], labels=[i % 3 for i in range(100)])


def count_divided(made, groups):
    """Count the groups of texts that are in two parts or more."""
    parts = {}
    for group, part in zip(groups, made.split, strict=True):
        parts.setdefault(group, set()).add(part)
    return sum(len(found) > 1 for found in parts.values())


def crossing(corpus):
    """Count the texts that are in two parts or more."""
    return count_divided(corpus, map(fold_case_and_blanks, corpus.texts))


@pytest.mark.parametrize("seed", range(40))
def test_no_text_is_in_two_parts_and_shares_are_kept(seed):
    numbers = np.random.default_rng(seed).geometric(0.02, size=400)
    made = split(Corpus([f"Text {i}" for i in numbers]), (0.6, 0.2, 0.2), seed)
    assert crossing(made) == 0
    largest = max(np.unique(numbers, return_counts=True)[1])
    for part, share in zip(("train", "valid", "test"), (0.6, 0.2, 0.2), strict=True):
        assert abs(np.sum(made.split == part) - share * len(numbers)) <= largest


def test_a_split_by_rows_would_part_equal_texts():
    # The control: the same count finds what a plain random split does.
    parts = np.random.default_rng(1).choice(["train", "valid", "test"], 100, p=[0.8, 0.1, 0.1])
    assert crossing(Corpus(CORPUS.texts, split=parts)) > 5


def test_case_and_white_space_make_no_other_text():
    texts = ["A  goal", "a goal ", *(f"filler {i}" for i in range(60))]
    for seed in range(40):
        assert crossing(split(Corpus(texts), (0.5, 0.25, 0.25), seed)) == 0


def test_every_text_comes_into_a_part_as_often_as_its_share_says():
    # Row 0 occurs once, row 30's text twice: each is in test with a tenth, 4 standard errors.
    found = np.array([split(CORPUS, (0.8, 0.1, 0.1), seed).split[[0, 40]] for seed in range(1500)])
    shares = np.mean(found == "test", axis=0)
    assert np.all(np.abs(shares - 0.1) < 4 * np.sqrt(0.09 / 1500)), shares


def test_what_is_known_of_the_texts_stays_with_them():
    made = split(CORPUS, rng=5)
    assert (made.texts, made.labels.tolist()) == (CORPUS.texts, CORPUS.labels.tolist())
    assert made == split(CORPUS, rng=5) != split(CORPUS, rng=6)
    assert made.origin == "split 0.8/0.1/0.1, seed 5"
    fresh = split(CORPUS)
    assert fresh == split(CORPUS, rng=int(fresh.origin.rpartition(" ")[2]))
    drawn, again = (split(CORPUS, rng=np.random.default_rng(1)) for _ in range(2))
    assert drawn == again


def test_parts_may_be_left_out():
    assert set(split(CORPUS, {"train": 0.7, "test": 0.3}, 1).split) == {"train", "test"}
    assert set(split(CORPUS, (0.0, 0.5, 0.5), 1).split) == {"valid", "test"}
    assert set(split(CORPUS, {"train": 1.0}, 1).split) == {"train"}


AUTHORS = [f"author {row % 25}" for row in range(200)]
WRITTEN = Corpus([f"text {row}" for row in range(200)], attributes={"author": AUTHORS})


def test_no_group_is_in_two_parts():
    for seed in range(20):
        made = split(WRITTEN, (0.6, 0.2, 0.2), seed, group="author")
        assert (count_divided(made, AUTHORS), set(made.split)) == (0, {"train", "valid", "test"})
        assert made == split(WRITTEN, (0.6, 0.2, 0.2), seed, group=AUTHORS)
        assert made.origin == f"split 0.6/0.2/0.2 by groups, seed {seed}"
    # The control: the same count finds what a split of the texts alone does.
    assert count_divided(split(WRITTEN, (0.6, 0.2, 0.2), 1), AUTHORS) > 5


def test_the_groups_of_a_corpus_are_kept_together():
    made = split(Corpus(WRITTEN.texts, groups=AUTHORS), (0.6, 0.2, 0.2), 1)
    assert count_divided(made, AUTHORS) == 0
    assert set(made.train.groups) & set(made.test.groups) == set()
    assert "groups of 25 kinds" in repr(made)


def test_groups_with_a_text_in_common_are_kept_together():
    texts = [*WRITTEN.texts[:-2], "The end", "the END"]
    for seed in range(20):
        made = split(Corpus(texts), (0.6, 0.2, 0.2), seed, group=AUTHORS)
        assert (count_divided(made, AUTHORS), crossing(made)) == (0, 0)


TEXTS = ["the cat sat", "the dog sat", "the cat ran"]


def numbers(vocabulary, *texts, **more):
    return [row.tolist() for row in vocabulary.encode(texts, **more)]


def test_most_frequent_first_then_by_the_alphabet():
    v = Vocabulary.from_texts(TEXTS, unknown="drop")
    assert (v.words, len(v)) == (("the", "cat", "sat", "dog", "ran"), 6)
    assert numbers(v, "the cat sat") == [[1, 2, 3]]
    assert Vocabulary.from_texts(TEXTS, unknown="drop", min_count=2).words == ("the", "cat", "sat")
    assert Vocabulary.from_texts(TEXTS, unknown="drop", max_size=1).words == ("the",)


def test_a_text_without_a_number_is_an_error_unless_it_is_kept():
    v = Vocabulary.from_texts(TEXTS, unknown="drop")
    with pytest.raises(ValueError, match=r"texts\[1\] must be a text with a known word .*'who\?'"):
        v.encode(["the cat", "who?"])
    assert numbers(v, "the cat", "who?", empty="keep") == [[1, 2], []]
    assert v.encode(["who?"], empty="keep")[0].dtype == np.int64


def test_train_texts_only():
    corpus = Corpus(["a b", "c d"], split=["train", "test"])
    assert Vocabulary.from_texts(corpus, unknown="drop").words == ("a", "b")


def test_reserved_names_come_first():
    v = Vocabulary.from_texts(TEXTS, unknown="token", reserved=("<pad>", "<bos>", "<eos>"))
    assert (numbers(v, "the"), v.decode([[1, 4, 3, 2, 0]])) == ([[4]], ["the <unk>"])
    wiki = Vocabulary.from_texts(["a <unk> a"], unknown="token", tokenise=str.split)
    assert (wiki.words, numbers(wiki, "<unk> a")) == (("a",), [[1, 2]])


def test_a_tokeniser_of_ones_own():
    assert words_of("Don't stop: 3.5 é_x") == ["don't", "stop", "3", "5", "é", "x"]
    v = Vocabulary.from_texts(["A-b c"], unknown="drop", tokenise=str.split)
    assert (v.words, Vocabulary(v.words, "drop", tokenise=str.split)) == (("A-b", "c"), v)
    assert repr(v) == "Vocabulary(2 words; unknown='drop')"
    assert "c" in v
    assert "d" not in v
