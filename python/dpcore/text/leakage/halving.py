"""Two samples of a corpus: what the victim and the attacker have read."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import invalid, real
from ...hints import hinted
from ...mechanisms.texts import texts_of
from ...streams import Rng, seed_of
from ..vocabulary import Tokeniser, words_of

__all__ = ["halves"]


@hinted
def halves(
    texts: Any, *, overlap: float = 0.0, rng: Rng = None, tokenise: Tokeniser = words_of
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Two halves of a corpus, drawn at random, disjoint or with a common part.

    Texts of the same words count once, so that disjoint halves have no text in common; those
    without a word are left out. For one seed the first half is the same whatever the overlap.
    (Two samples of 50 % each, drawn without regard to each other, have half of each in common.)

    Args:
        texts: a list of strings, or a `Corpus`, whose split does not matter.
        overlap: share of each half that is in the other one, too, in [0, 1].
        rng: None (fresh entropy), an int in [0, 2**63) or a Generator.
        tokenise: from a text to its words.

    Returns:
        The texts of the first half and those of the second, as many.

    Raises:
        TypeError: if `texts` is no list of strings or `overlap` no number.
        ValueError: if fewer than two texts differ, or `overlap` is out of range.

    Example:
        >>> halves(["a cat", "A cat!", "a dog", "an owl", "a fox"], rng=1)
        (('a cat', 'a dog'), ('an owl', 'a fox'))
        >>> halves(["a cat", "A cat!", "a dog", "an owl", "a fox"], overlap=0.5, rng=1)
        (('a cat', 'a dog'), ('a dog', 'an owl'))
    """
    share, seed = real("overlap", overlap, low=0.0, high=1.0), seed_of(rng)
    found: dict[tuple[str, ...], str] = {}
    for text in texts_of("texts", texts):
        found.setdefault(tuple(tokenise(text)), text)
    found.pop((), None)
    size = len(found) // 2
    if not size:
        requirement = "at least two texts of different words"
        raise invalid("texts", requirement, f"{len(found)} of such")
    kept = list(found.values())
    order = np.random.default_rng(seed).permutation(len(kept))
    begin = size - round(share * size)
    first, second = order[:size], order[begin : begin + size]
    return tuple(kept[row] for row in first), tuple(kept[row] for row in second)
