"""Vocabulary: numbers, unknown words, n-grams."""

from __future__ import annotations

import numpy as np
import pytest

from dpcore.text import Corpus, Vocabulary, words_of

TEXTS = ["the cat sat", "the dog sat", "the cat ran"]


def numbers(vocabulary, *texts, **more):
    return [row.tolist() for row in vocabulary.encode(texts, **more)]


def test_most_frequent_first_then_by_the_alphabet():
    v = Vocabulary.from_texts(TEXTS, unknown="drop")
    assert v.words == ("the", "cat", "sat", "dog", "ran")
    assert len(v) == 6
    assert numbers(v, "the cat sat") == [[1, 2, 3]]
    assert Vocabulary.from_texts(TEXTS, unknown="drop", min_count=2).words == ("the", "cat", "sat")
    assert Vocabulary.from_texts(TEXTS, unknown="drop", max_size=1).words == ("the",)


def test_unknown_words_are_dropped_or_one_token_as_was_chosen():
    dropping = Vocabulary.from_texts(TEXTS, unknown="drop", min_count=2)
    assert numbers(dropping, "the old cat") == [[1, 2]]
    token = Vocabulary.from_texts(TEXTS, unknown="token", min_count=2)
    assert numbers(token, "the old cat", "who") == [[2, 1, 3], [1]]
    assert token.decode(token.encode(["the old cat"])) == ["the <unk> cat"]
    with pytest.raises(TypeError, match="unknown"):
        Vocabulary.from_texts(TEXTS)


def test_a_text_without_a_number_is_an_error_unless_it_is_kept():
    v = Vocabulary.from_texts(TEXTS, unknown="drop")
    with pytest.raises(ValueError, match=r"texts\[1\] must be a text with a known word .*'who\?'"):
        v.encode(["the cat", "who?"])
    assert numbers(v, "the cat", "who?", empty="keep") == [[1, 2], []]
    assert v.encode(["who?"], empty="keep")[0].dtype == np.int64


def test_train_texts_only():
    corpus = Corpus(["a b", "c d"], split=["train", "test"])
    assert Vocabulary.from_texts(corpus, unknown="drop").words == ("a", "b")


def test_runs_of_words():
    v = Vocabulary.from_texts(["a b c"], unknown="drop", ngrams=2)
    assert v.words == ("a", "a b", "b", "b c", "c")
    assert v.decode(v.encode(["b c a"])) == ["b c a b c"]


def test_reserved_names_come_first():
    v = Vocabulary.from_texts(TEXTS, unknown="token", reserved=("<pad>", "<bos>", "<eos>"))
    assert numbers(v, "the") == [[4]]
    assert v.decode([[1, 4, 3, 2, 0]]) == ["the <unk>"]
    wiki = Vocabulary.from_texts(["a <unk> a"], unknown="token", tokenise=str.split)
    assert wiki.words == ("a",)
    assert numbers(wiki, "<unk> a") == [[1, 2]]


def test_a_tokeniser_of_ones_own():
    assert words_of("Don't stop: 3.5 é_x") == ["don't", "stop", "3", "5", "é", "x"]
    v = Vocabulary.from_texts(["A-b c"], unknown="drop", tokenise=str.split)
    assert v.words == ("A-b", "c")
    assert Vocabulary(v.words, "drop", tokenise=str.split) == v
    assert repr(v) == "Vocabulary(2 words; unknown='drop')"
    assert "c" in v
    assert "d" not in v
