"""Splits: equal texts together, shares kept, chance even."""

from __future__ import annotations

import numpy as np
import pytest

from dpcore.text import Corpus, split
from dpcore.text.splitting import likeness

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


@pytest.mark.parametrize(
    ("corpus", "shares", "error", "said"),
    [
        (["a", "b"], (0.8, 0.1, 0.1), TypeError, "corpus must be a Corpus"),
        (CORPUS, (0.8, 0.1), ValueError, "three shares"),
        (CORPUS, 0.8, TypeError, "three shares"),
        (CORPUS, "abc", TypeError, "three shares"),
        (CORPUS, (0.8, 0.1, 0.2), ValueError, "add up to 1"),
        (CORPUS, (1.2, -0.1, -0.1), ValueError, r"shares\[1\] must be a finite number at least 0"),
        (CORPUS, {"train": 0.8, "dev": 0.2}, ValueError, "shares must be one of 'train'"),
        (CORPUS, (0.8, float("nan"), 0.1), ValueError, r"shares\[1\] must be a finite"),
        (Corpus(["a"] * 9), (0.8, 0.1, 0.1), ValueError, "enough different texts .*1 different"),
        (CORPUS, (0.999, 0.0005, 0.0005), ValueError, "enough different texts for a 'valid' part"),
    ],
)
def test_what_is_wrong_is_named(corpus, shares, error, said):
    with pytest.raises(error, match=said):
        split(corpus, shares, 1)
