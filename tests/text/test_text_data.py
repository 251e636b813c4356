"""The public corpora, where they are: as many rows as their README says."""

from __future__ import annotations

import numpy as np
import pytest
from shared_extras import data

from dpcore.text import Vocabulary, read, word_vectors
from dpcore.text.reading import ENTITIES

COUNTS = {
    # kind: place, rows by part, distinct texts, distinct train texts.
    "dpnr_ag": ("dpnr_ag/ag_data.txt", (11_657, 1_457, 1_457), 11_272, 9_408),
    "ag_news": ("ag_news", (10_001, 0, 7_600), 17_574, 9_988),
    "atis": ("atis", (4_478, 500, 893), 5_473, 4_189),
    "snips": ("snips", (13_084, 700, 700), 14_216, 12_859),
    "medical": ("medical/abstracts.csv", (2_888,), 2_770, None),
    "leakage": ("leakage/spa-eng.zip", (118_964,), 102_904, None),
    "names": ("words/names.zip", (7_944,), 7_578, None),
    "wikitext2": ("wikitext2", (0, 2_461, 2_891), 4_916, None),
    "polarity": ("polarity/sentence_polarity.zip", (10_662,), 10_662, None),
    "textfooler": ("yelp/textfooler_yelp.txt", (1_000,), 1_000, None),
    "yelp": ("yelp", (4_000, 0, 1_000), 4_854, None),
}
"""Texts without the white space around them."""


@pytest.mark.parametrize("kind", COUNTS)
def test_every_row_is_read(kind):
    place, rows, distinct, trained = COUNTS[kind]
    corpus = read(data(place))
    assert corpus.origin.startswith(f"{kind}: ")
    assert read(data(), kind) == corpus
    assert len(corpus) == sum(rows)
    if len(rows) == 3:
        assert [int(np.sum(corpus.split == part)) for part in ("train", "valid", "test")] == [*rows]
    else:
        assert corpus.split is None
    assert len(set(corpus)) == distinct
    if trained:
        assert len(set(corpus.train)) == trained


@pytest.mark.parametrize(
    ("kind", "valid", "test"),
    [("dpnr_ag", 493, 477), ("ag_news", None, 9), ("atis", 52, 13), ("snips", 12, 26)],
)
def test_texts_that_train_has_too(kind, valid, test):
    corpus = read(data(), kind)
    trained = set(corpus.train)
    assert sum(text in trained for text in corpus.test) == test
    if valid is not None:
        assert sum(text in trained for text in corpus.valid) == valid


def test_labels_and_attributes():
    news = read(data(), "dpnr_ag")
    assert tuple(news.attributes) == ENTITIES
    # Counted with cut and sort in the file itself.
    held = [int(column.sum()) for column in news.attributes.values()]
    assert held == [7_928, 3_761, 2_666, 1_512, 1_451]
    assert np.all(sum(news.attributes.values()) >= 1)
    assert np.unique(news.labels).tolist() == [0, 1, 2, 3]
    # 1,299 of the 11,272 texts carry more than one topic.
    topics = {}
    for text, label in zip(news, news.labels.tolist(), strict=True):
        topics.setdefault(text, set()).add(label)
    assert sum(len(found) > 1 for found in topics.values()) == 1_299
    atis = read(data(), "atis")
    assert len(set(atis.test.labels) - set(atis.train.labels)) == 4
    assert abs(np.mean(atis.test.labels == "atis_flight") - 0.708) < 0.0005
    medical = read(data(), "medical")
    assert int(np.sum(medical.labels == 1)) == 633
    names = read(data(), "names")
    assert [int(np.sum(names.labels == g)) for g in ("male", "female")] == [2_943, 5_001]
    assert len({name.lower() for name in names}) == 7_575


def test_words():
    wiki = read(data(), "wikitext2")
    assert [sum(len(t.split()) for t in part) for part in (wiki.valid, wiki.test)] == [
        213_886, 241_211
    ]  # fmt: skip
    vectors = word_vectors(data("words", "wordvecs1000.js"))
    stacked = np.stack(list(vectors.values()))
    assert stacked.shape == (1_000, 300)
    assert np.allclose(np.linalg.norm(stacked, axis=1), 1.0, atol=1e-5)


@pytest.mark.parametrize(("kind", "words", "twice"), [("atis", 867, 610), ("snips", 11_418, 4_390)])
def test_vocabularies_of_train(kind, words, twice):
    corpus = read(data(), kind)
    for count, wanted in ((1, words), (2, twice)):
        found = Vocabulary.from_texts(corpus, unknown="token", min_count=count, tokenise=str.split)
        assert len(found.words) == wanted


@pytest.mark.parametrize(
    ("place", "kind", "rows"),
    [
        ("atis/test.csv", "atis", 893),
        ("snips/valid.csv", "snips", 700),
        ("ag_news/train.tsv", "ag_news", 10_001),
        ("wikitext2/test.txt", "wikitext2", 2_891),
        ("yelp/sentiment.dev.1", "yelp", 2_000),
    ],
)
def test_one_file_of_several(place, kind, rows):
    corpus = read(data(place))
    assert (corpus.origin.partition(":")[0], len(corpus)) == (kind, rows)
    assert len(set(corpus.split)) == 1
