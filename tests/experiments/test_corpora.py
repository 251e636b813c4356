"""Public corpora by name: as many rows as their README says, malformed files, and guesses."""

from __future__ import annotations

import zipfile
from typing import get_args

import numpy as np
import pytest
from shared_extras import data
from shared_files import file_writer

from dpcore.experiments.corpora import ENTITIES, KNOWN, Name, read_corpus
from dpcore.text import Corpus, Vocabulary, read, word_vectors

RULE = "=" * 20
GOOD = f"1\tone\t0\n{RULE}\n2\ttwo\t0 4\n{RULE}\n3\tthree\t2\n{RULE}\n"
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

written = pytest.fixture(file_writer)


def test_every_corpus_has_a_name_that_a_type_checker_knows():
    assert set(get_args(Name)) == set(KNOWN) == set(COUNTS)


@pytest.mark.parametrize("kind", COUNTS)
def test_every_row_is_read(kind):
    place, rows, distinct, trained = COUNTS[kind]
    corpus = read_corpus(data(place))
    assert corpus.origin.startswith(f"{kind}: ")
    assert read_corpus(data(), kind) == corpus
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
    corpus = read_corpus(data(), kind)
    trained = set(corpus.train)
    assert sum(text in trained for text in corpus.test) == test
    if valid is not None:
        assert sum(text in trained for text in corpus.valid) == valid


def test_labels_and_attributes():
    news = read_corpus(data(), "dpnr_ag")
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
    atis = read_corpus(data(), "atis")
    assert len(set(atis.test.labels) - set(atis.train.labels)) == 4
    assert abs(np.mean(atis.test.labels == "atis_flight") - 0.708) < 0.0005
    assert int(np.sum(read_corpus(data(), "medical").labels == 1)) == 633
    names = read_corpus(data(), "names")
    assert [int(np.sum(names.labels == g)) for g in ("male", "female")] == [2_943, 5_001]
    assert len({name.lower() for name in names}) == 7_575


def test_words():
    wiki = read_corpus(data(), "wikitext2")
    sizes = [sum(len(t.split()) for t in part) for part in (wiki.valid, wiki.test)]
    assert sizes == [213_886, 241_211]
    stacked = np.stack(list(word_vectors(data("words", "wordvecs1000.js")).values()))
    assert stacked.shape == (1_000, 300)
    assert np.allclose(np.linalg.norm(stacked, axis=1), 1.0, atol=1e-5)


@pytest.mark.parametrize(("kind", "words", "twice"), [("atis", 867, 610), ("snips", 11_418, 4_390)])
def test_vocabularies_of_train(kind, words, twice):
    corpus = read_corpus(data(), kind)
    for count, wanted in ((1, words), (2, twice)):
        found = Vocabulary.from_texts(corpus, unknown="token", min_count=count, tokenise=str.split)
        assert len(found.words) == wanted


@pytest.mark.parametrize(
    ("place", "kind", "rows"),
    [
        ("atis/test.csv", "atis", 893),
        ("ag_news/train.tsv", "ag_news", 10_001),
        ("wikitext2/test.txt", "wikitext2", 2_891),
        ("yelp/sentiment.dev.1", "yelp", 2_000),
    ],
)
def test_one_file_of_several(place, kind, rows):
    corpus = read_corpus(data(place))
    assert (corpus.origin.partition(":")[0], len(corpus)) == (kind, rows)
    assert len(set(corpus.split)) == 1


def test_the_format_of_dpnr(written):
    corpus = read_corpus(written(ag_data_dot_txt=GOOD) / "ag_data.txt")
    assert list(corpus) == ["one", "two", "three"]
    assert corpus.split.tolist() == ["train", "valid", "test"]
    assert corpus.labels.tolist() == [1, 2, 3]
    assert {name: column.tolist() for name, column in corpus.attributes.items()} == {
        "Bush": [1, 1, 0], "Kerry": [0, 0, 0], "Arafat": [0, 0, 1], "Blair": [0, 0, 0],
        "Sharon": [0, 1, 0],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("1\tone\t0\nno tabs\n", r"line 2 of ag_data.txt \(DPNR.*must be label, text .*'no"),
        ("1\tone\t7\n", "line 1 of ag_data.txt"),
        ("1\tone\t\n", "line 1 of ag_data.txt"),
        ("1\t  \t0\n", "line 1 of ag_data.txt .*a text that is not empty"),
        (b"1\tone\t0\n1\tna\xefve\t0\n", r"line 2 of .* must be text in UTF-8, got b'1\\tna"),
        (f"1\tone\t0\n{RULE}\n", "must be the third line of 20 signs ="),
        ("", "third line"),
        (GOOD + "1\tmore\t0\n", "line 7 of .* must be absent"),
        (GOOD + f"{RULE}\n", "line 7 of .* must be absent: a file has three parts"),
    ],
)
def test_a_malformed_file_is_named_with_origin_and_line(written, content, said):
    with pytest.raises(ValueError, match=said) as caught:
        read_corpus(written(ag_data_dot_txt=content) / "ag_data.txt")
    assert caught.value.argument == "path"


@pytest.mark.parametrize(
    ("path", "name", "said"),
    [
        ("ag_data.txt", None, "DPNR authors' AG file.*README of the data"),
        (".", "atis", "ATIS as in DP-Rewrite.*train.csv"),
        (".", "polarity", "sentence polarity corpus.*sentence_polarity.zip"),
    ],
)
def test_a_missing_corpus_is_named_with_its_origin(tmp_path, path, name, said):
    with pytest.raises(FileNotFoundError, match=said):
        read_corpus(tmp_path / path, name)


def test_a_folder_that_lacks_one_of_its_files(written):
    root = written(atis__train_dot_csv="a,text\n", atis__valid_dot_csv="a,text\n")
    with pytest.raises(FileNotFoundError, match=r"ATIS.*atis.test\.csv"):
        read_corpus(root / "atis")
    assert read_corpus(root / "atis" / "train.csv").labels.tolist() == ["a"]
    # WikiText-2 comes without its train file as often as with it.
    written(wikitext2__valid_dot_txt=" \n = A = \n", wikitext2__test_dot_txt="b\n")
    assert list(read_corpus(root, "wikitext2")) == ["= A =", "b"]


def test_archives(tmp_path):
    path = tmp_path / "names.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("names/male.txt", "Otto\n\n")
        with pytest.raises(ValueError, match=r"zip archive that holds names/male\.txt"):
            read_corpus(path)
    with pytest.raises(ValueError, match=r"holds names/female.txt \(NLTK"):
        read_corpus(path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("names/female.txt", "Ada \r\n")
    assert read_corpus(path) == Corpus(["Otto", "Ada"], ["male", "female"])
    (tmp_path / "spa-eng.zip").write_text("nothing")
    with pytest.raises(ValueError, match=r"must be a zip archive that holds spa-eng/spa\.txt"):
        read_corpus(tmp_path / "spa-eng.zip")


def test_what_a_folder_holds_decides_where_it_is_one_corpus(written):
    root = written(some__ag_data_dot_txt=GOOD, atis__test_dot_csv="a,text\n")
    assert read_corpus(root / "some").origin.startswith("dpnr_ag: ")
    with pytest.raises(FileNotFoundError, match="ATIS"):
        read_corpus(root)
    written(dpnr_ag__ag_data_dot_txt=GOOD)
    with pytest.raises(ValueError, match=r"name must be given: .* holds dpnr_ag, atis, got None"):
        read_corpus(root)
    assert len(read_corpus(root, "dpnr_ag")) == 3


def test_read_knows_no_corpus_by_its_name(written):
    root = written(abstracts_dot_csv="t,label\none,1\n", atis__train_dot_csv="text,label\none,1\n")
    with pytest.raises(ValueError, match=r"Medical Abstracts.*'label', got 'medical_abstract'"):
        read_corpus(root / "abstracts.csv")
    assert read(root / "abstracts.csv", text="t") == Corpus(["one"], [1])
    assert read(root / "atis" / "train.csv") == Corpus(["one"], [1])
    # A table of a name that everybody uses is known by its folder alone.
    written(train_dot_csv="text,label\none,1\n")
    assert read_corpus(root / "train.csv") == Corpus(["one"], [1])
