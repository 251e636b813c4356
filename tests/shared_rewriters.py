"""Rewriters whose loss is known, and which write hardly any text twice."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

VOCABULARY = np.array([f"word{i}" for i in range(50)])
PAIR = (" ".join(VOCABULARY[:12]), " ".join(VOCABULARY[12:24]))
"""Two texts of twelve words without a word in common."""


@dataclass(frozen=True)
class Substituting:
    """Keeps each word with probability `keep`, or writes any word of the vocabulary in its place.

    On two texts that differ in `words` words the loss is exactly
    words x ln(1 + keep |vocabulary| / (1 - keep)).
    """

    keep: float

    def __call__(self, x, size, rng):
        words = np.array(x.split())
        kept = rng.random((size, words.size)) < self.keep
        others = VOCABULARY[rng.integers(VOCABULARY.size, size=kept.shape)]
        return [" ".join(row) for row in np.where(kept, words, others).tolist()]


def telling(loss, words=12):
    """A rewriter that loses so much on two texts that differ in so many words, as on `PAIR`."""
    ratio = math.expm1(loss / words)
    return Substituting(ratio / (VOCABULARY.size + ratio))
