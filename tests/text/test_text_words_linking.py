"""Linkage of rewritten texts: against a loop over likelihoods, at both extremes, and bad input."""

from __future__ import annotations

import numpy as np
import pytest

from dpcore.text.words import Embedding, MetricLaplace, SanText, link

WORDS = [f"w{i}" for i in range(40)]
VECTORS = Embedding(WORDS, np.random.default_rng(1).normal(size=(40, 6)))
TEXTS = [
    " ".join(WORDS[i] for i in row) for row in np.random.default_rng(2).integers(0, 40, (60, 8))
]


def rights(mech, texts, outputs, words):
    """Count by a plain loop, the first of equal likelihoods winning."""
    table = mech.log_rows(0, 40)
    number = {word: place for place, word in enumerate(WORDS)}
    rows = [[number[word] for word in text.split()][:words] for text in texts]
    answers = [[number[word] for word in text.split()][:words] for text in outputs]
    right = 0
    for place, answer in enumerate(answers):
        scores = [sum(table[a, b] for a, b in zip(row, answer, strict=True)) for row in rows]
        best = max(range(len(rows)), key=lambda j: (scores[j], -j))
        right += rows[best] == rows[place]
    return right


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 5.0])
def test_the_likeliest_original_is_chosen(epsilon):
    mech = SanText(VECTORS, epsilon)
    outputs = mech.rewrite(TEXTS, rng=3)
    found = link(mech, TEXTS, outputs)
    assert found.right == rights(mech, TEXTS, outputs, 8)
    assert (found.texts, found.words, found.by) == (60, 8, "likelihood")


@pytest.mark.parametrize("kind", [SanText, MetricLaplace])
def test_no_noise_links_all_and_much_noise_links_none(kind):
    """At epsilon 1e-6 the share lies in the floor's 99.99 % interval; at 100 all are right."""
    loud, quiet = kind(VECTORS, 1e-6), kind(VECTORS, 100.0)
    assert link(quiet, TEXTS, quiet.rewrite(TEXTS, rng=4)).share == 1.0
    found = link(loud, TEXTS, loud.rewrite(TEXTS, rng=4), confidence=0.9999)
    assert found.interval[0] <= found.floor == 1 / 60
    assert found.share < 0.2


def test_without_a_table_the_nearest_text_is_chosen():
    mech = MetricLaplace(VECTORS, 8.0)
    outputs = mech.rewrite(TEXTS, rng=5)
    found = link(mech, TEXTS, outputs)
    number = {word: place for place, word in enumerate(WORDS)}
    rows, answers = (
        np.array([[number[word] for word in text.split()] for text in side])
        for side in (TEXTS, outputs)
    )
    points = VECTORS.vectors
    apart = np.linalg.norm(points[rows][None] - points[answers][:, None], axis=-1).sum(axis=2)
    assert found.right == int((apart.argmin(axis=1) == np.arange(60)).sum())
    assert found.by == "distance"


def test_texts_are_cut_to_the_shortest_and_equal_ones_are_both_right():
    mech = SanText(VECTORS, 200.0)
    texts = ["w1 w2 w3", "w1 w2", "w4 w5 w6 w7"]
    found = link(mech, texts, mech.rewrite(texts, rng=1))
    assert (found.words, found.right) == (2, 3)
    assert found.floor == pytest.approx(2 / 3)


def test_unknown_words_are_dropped_on_request():
    mech = SanText(VECTORS, 200.0)
    texts = ["w1 strange w2", "w3 w4"]
    outputs = mech.rewrite(texts, unknown="drop", rng=1)
    assert link(mech, texts, outputs, unknown="drop").right == 2
    with pytest.raises(ValueError, match=r"originals\[0\] must be made of words with a vector"):
        link(mech, texts, outputs)
