"""Rewriters whose loss is known, and which write hardly any text twice."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice, permutations

import numpy as np

GROUPS = [("a", *rest) for rest in islice(permutations("eort"), 10)]
VOCABULARY = np.array(["".join(one[i:] + one[:i]) for one in GROUPS for i in range(5)])
"""Ten words and their rotations: of five neighbours each has another letter at every place."""
PAIR = (" ".join(VOCABULARY[:10]), " ".join(VOCABULARY[10:20]))
"""Two texts of ten words without a word in common, which no letter or length tells apart."""


@dataclass(frozen=True)
class Substituting:
    """Keeps each word with probability `keep`, or writes any word of the vocabulary in its place.

    On two texts that differ in `words` words the loss is exactly
    words x ln(1 + keep |vocabulary| / (1 - keep)); where the rewrite's words are put in any order,
    at most that.
    """

    keep: float
    shuffled: bool = False

    def __call__(self, x, size, rng):
        words = np.array(x.split())
        kept = rng.random((size, words.size)) < self.keep
        others = VOCABULARY[rng.integers(VOCABULARY.size, size=kept.shape)]
        rows = np.where(kept, words, others)
        if self.shuffled:
            rows = rng.permuted(rows, axis=1)
        return [" ".join(row) for row in rows.tolist()]


def telling(loss, words=10):
    """A rewriter that loses so much on two texts that differ in so many words, as on `PAIR`."""
    ratio = math.expm1(loss / words)
    return Substituting(ratio / (VOCABULARY.size + ratio))
