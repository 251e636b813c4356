"""Texts as rows of word numbers, masked words among them; and canaries of random words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import instance, integer, invalid
from ...hints import hinted
from ...mechanisms.texts import texts_of
from ...records import Shown
from ...streams import Rng, seed_of
from ..vocabulary import Vocabulary

__all__ = ["Floats", "Ids", "TextRows", "canaries", "check_vocabulary", "unigram_losses"]

Floats = npt.NDArray[np.float64]
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


@dataclass(frozen=True, repr=False)
class TextRows(Shown):
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
        first = len(self.vocabulary.reserved)
        for is_mask, run in groupby(text.split(), self.masked.__eq__):
            if is_mask:
                yield from (self.size for _ in run)
                continue
            for number in self.vocabulary.spans(" ".join(run))[0]:
                # A word that is spelt as a reserved name is no word to be predicted.
                yield number - first if number >= first else self.size

    def count_targets(self, rows: Sequence[Ids]) -> Ids:
        """Count how often each word is a target: all words but the first of a text, no masks.

        Returns:
            Counts, shape `(V,)`.
        """
        targets = np.concatenate([np.zeros(0, np.int64), *(row[1:] for row in rows)])
        counts: Ids = np.bincount(targets[targets < self.size], minlength=self.size)
        return counts


def unigram_losses(counts: Ids, rows: Sequence[Ids]) -> list[Floats]:
    """Return for each row the losses of its targets by counts, one added to each (Laplace)."""
    law = np.log((counts + 1.0) / (counts.sum() + counts.size))
    return [-law[row[1:][row[1:] < counts.size]] for row in rows]


@hinted
def canaries(vocabulary: Vocabulary, many: Any, *, words: int = 10, rng: Rng = None) -> list[str]:
    """Make canaries of random words of a vocabulary, or check texts of your own.

    Words are drawn independently with equal probabilities, so that no other record has the
    gradient of a canary.

    Args:
        vocabulary: of the models that are to be audited.
        many: number of canaries; or texts of your own, whose words must be in the vocabulary.
        words: words of a canary, 2 or more; no effect on texts of your own.
        rng: None, an int seed or a numpy Generator.

    Returns:
        The canaries, for `training.audit_run(..., canaries=)`.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if a value is out of range, or a text has a word outside the vocabulary.

    Source:
        Carlini et al. (2019) (random texts that are inserted); Steinke, Nasr and Jagielski (2023).

    Example:
        >>> from dpcore.text import Vocabulary
        >>> v = Vocabulary(["flights", "from", "boston", "denver"], "token")
        >>> canaries(v, 2, words=3, rng=1)
        ['from boston denver', 'denver flights flights']
        >>> canaries(v, ["flights from london"])
        Traceback (most recent call last):
        ValueError: canaries[0] must be words of the vocabulary, got 'london'
    """
    check_vocabulary(vocabulary)
    if not isinstance(many, (int, np.integer, float)):
        return _check_words(vocabulary, many)
    shape = integer("many", many, 1), integer("words", words, 2)
    if not vocabulary.words:
        raise invalid("vocabulary", "one with words", vocabulary)
    drawn = np.random.default_rng(seed_of(rng)).integers(len(vocabulary.words), size=shape)
    return [" ".join(vocabulary.words[number] for number in row) for row in drawn]


def _check_words(vocabulary: Vocabulary, texts: Any) -> list[str]:
    found = texts_of("many", texts)
    for row, text in enumerate(found):
        for word in vocabulary.tokenise(text):
            if word not in vocabulary.words:
                raise invalid(f"canaries[{row}]", "words of the vocabulary", word)
    return list(found)
