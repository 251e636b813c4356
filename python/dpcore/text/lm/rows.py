"""Texts as rows of word numbers for a next-word model, with masked words of redacted texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...errors import instance, invalid
from ..vocabulary import Vocabulary

__all__ = ["TextRows", "check_vocabulary", "remove_masks", "unknown_share"]

Ids = npt.NDArray[np.int64]


def check_vocabulary(vocabulary: Vocabulary) -> Vocabulary:
    """Check that a next-word model can use a vocabulary.

    Args:
        vocabulary: single words, and a token for unknown ones.

    Raises:
        TypeError: if it is not a `Vocabulary`.
        ValueError: if it leaves unknown words out, or holds runs of words.
    """
    instance("vocabulary", vocabulary, Vocabulary)
    if vocabulary.unknown != "token" or vocabulary.ngrams != 1:
        requirement = "one of single words with unknown='token'"
        raise invalid("vocabulary", requirement, vocabulary)
    return vocabulary


def remove_masks(texts: Sequence[str], masked: str) -> list[str]:
    """Return the texts without their mask tokens; texts of mask tokens alone are left out."""
    kept = (" ".join(word for word in text.split() if word != masked) for text in texts)
    return [text for text in kept if text]


@dataclass(frozen=True)
class TextRows:
    """Texts as numbers: the words that can be predicted come first, then two inputs.

    Numbers 0 to V - 1 stand for "<unk>" and the words of the vocabulary: these have a
    probability. V stands for a masked word, V + 1 for padding: they are read, and never predicted.

    Args:
        vocabulary: see `check_vocabulary`.
        length: words of a text that are read; the others are cut.
        masked: the token that stands for a masked word.
    """

    vocabulary: Vocabulary
    length: int
    masked: str

    @property
    def size(self) -> int:
        """Number of words that have a probability, "<unk>" among them."""
        return len(self.vocabulary) - len(self.vocabulary.reserved)

    def encode(self, texts: Sequence[str]) -> tuple[list[Ids], int]:
        """Return the numbers of the words of every text, and the number of texts that were cut."""
        rows = [np.array(list(self._numbers(text)), dtype=np.int64) for text in texts]
        cut = sum(len(row) > self.length for row in rows)
        return [row[: self.length] for row in rows], cut

    def _numbers(self, text: str) -> Iterator[int]:
        """Yield numbers: runs between mask tokens are split by the vocabulary's own function."""
        run: list[str] = []
        for word in (*text.split(), None):
            if word is not None and word != self.masked:
                run.append(word)
                continue
            if run:
                first = len(self.vocabulary.reserved)
                for number in self.vocabulary.spans(" ".join(run))[0]:
                    # A word that is spelt as a reserved name is no word to be predicted.
                    yield number - first if number >= first else self.size
                run = []
            if word is not None:
                yield self.size

    def count_targets(self, rows: Sequence[Ids]) -> Ids:
        """Count how often each word is a target: all words but the first of a text, no masks.

        Returns:
            Counts, shape `(V,)`.
        """
        targets = np.concatenate([np.zeros(0, np.int64), *(row[1:] for row in rows)])
        counts: Ids = np.bincount(targets[targets < self.size], minlength=self.size)
        return counts


def unknown_share(rows: Sequence[Ids]) -> float:
    """Return the share of words that are unknown, masked words not counted; 0 without words."""
    words = np.concatenate([np.zeros(0, np.int64), *rows])
    return float((words == 0).mean()) if words.size else 0.0
