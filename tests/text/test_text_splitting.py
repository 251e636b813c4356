"""Splits: equal texts together, shares kept, chance even."""

from __future__ import annotations

import numpy as np
import pytest

from dpcore.text import Corpus, split
from dpcore.text.corpus import likeness

CORPUS = Corpus([f"text {i % 70}" for i in range(100)], labels=[i % 3 for i in range(100)])


def crossing(corpus):
    """Texts that are in more than one part."""
    parts = {}
    for text, part in zip(corpus.texts, corpus.split, strict=True):
        parts.setdefault(likeness(text), set()).add(part)
    return sum(len(found) > 1 for found in parts.values())


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
    assert split(CORPUS, rng=np.random.default_rng(1)) == split(
        CORPUS, rng=np.random.default_rng(1)
    )


def test_parts_may_be_left_out():
    assert set(split(CORPUS, {"train": 0.7, "test": 0.3}, 1).split) == {"train", "test"}
    assert set(split(CORPUS, (0.0, 0.5, 0.5), 1).split) == {"valid", "test"}
    assert set(split(CORPUS, {"train": 1.0}, 1).split) == {"train"}


AUTHORS = [f"author {row % 25}" for row in range(200)]
WRITTEN = Corpus([f"text {row}" for row in range(200)], attributes={"author": AUTHORS})


def count_divided(made, groups):
    parts = {}
    for group, part in zip(groups, made.split, strict=True):
        parts.setdefault(group, set()).add(part)
    return sum(len(found) > 1 for found in parts.values())


def test_no_group_is_in_two_parts():
    for seed in range(20):
        made = split(WRITTEN, (0.6, 0.2, 0.2), seed, group="author")
        assert count_divided(made, AUTHORS) == 0
        assert set(made.split) == {"train", "valid", "test"}
        assert made == split(WRITTEN, (0.6, 0.2, 0.2), seed, group=AUTHORS)
        assert made.origin == f"split 0.6/0.2/0.2 by groups, seed {seed}"
    # The control: the same count finds what a split of the texts alone does.
    assert count_divided(split(WRITTEN, (0.6, 0.2, 0.2), 1), AUTHORS) > 5


def test_the_groups_of_a_corpus_are_kept_together():
    found = Corpus(WRITTEN.texts, groups=AUTHORS)
    made = split(found, (0.6, 0.2, 0.2), 1)
    assert count_divided(made, AUTHORS) == 0
    assert set(made.train.groups) & set(made.test.groups) == set()
    assert "groups of 25 kinds" in repr(made)


def test_groups_with_a_text_in_common_are_kept_together():
    texts = [*WRITTEN.texts[:-2], "The end", "the END"]
    for seed in range(20):
        made = split(Corpus(texts), (0.6, 0.2, 0.2), seed, group=AUTHORS)
        assert count_divided(made, AUTHORS) == 0
        assert crossing(made) == 0
