"""Canaries of next-word models: texts of random words, for audits of one training."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import integer, invalid
from ...hints import hinted
from ...mechanisms.texts import texts_of
from ...streams import Rng, seed_of
from ..vocabulary import Vocabulary
from .rows import check_vocabulary

__all__ = ["canaries"]


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
        ['from denver denver', 'denver flights flights']
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
