"""Corpora and attackers for the tests of `dpcore.text.inference`: small, and cheap to fit."""

from __future__ import annotations

import numpy as np

from dpcore.text import Corpus

PARTS = ("train", "valid", "test")


class Centroids:
    """Which of two means is nearer, on some columns; no class of scikit-learn."""

    def __init__(self, *columns):
        self.columns = list(columns)

    def fit(self, rows, truth):
        rows = rows[:, self.columns] if self.columns else rows
        first, second = (rows[truth == code].mean(axis=0) for code in (0, 1))
        self.weights = second - first
        self.middle = self.weights @ (first + second) / 2.0
        return self

    def decision_function(self, rows):
        rows = rows[:, self.columns] if self.columns else rows
        return rows @ self.weights - self.middle

    def predict(self, rows):
        return (self.decision_function(rows) >= 0.0).astype(int)


class Sign:
    """Yes where the first coordinate is above a half: nothing is learnt."""

    def fit(self, rows, truth):
        return self

    def predict(self, rows):
        return (rows[:, 0] > 0.5).astype(int)


def corpus(sizes, attributes, labels=None, texts=None):
    """A corpus whose texts are their own row numbers."""
    texts = [f"t{row}" for row in range(sum(sizes))] if texts is None else texts
    return Corpus(texts, labels, attributes, np.repeat(PARTS, sizes).tolist())


def looked_up(vectors):
    """The encoder that gives the text "t5" row 5."""
    return lambda texts: vectors[[int(text[1:]) for text in texts]]


def speakers(rows=1500, seed=1, noise=0.6):
    """A corpus with labels and two attributes, and vectors that leak them."""
    rng = np.random.default_rng(seed)
    male = rng.integers(0, 2, rows)
    topic = np.where(rng.random(rows) < 0.7, male, rng.integers(0, 3, rows))
    tall = (rng.random(rows) < 0.3).astype(int)
    vectors = rng.normal(scale=noise, size=(rows, 6))
    for column, leaking in enumerate((male, topic, tall)):
        vectors[:, column] += leaking
    sizes = (rows // 2, rows // 4, rows - rows // 2 - rows // 4)
    found = corpus(sizes, {"male": male, "tall": tall}, labels=topic)
    return found, vectors
