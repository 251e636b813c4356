"""Texts by their words: for outputs that are mostly all different."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from ..events.above import Score
from ..records import Pair
from .arrays import Array
from .attack import ScoreAttack
from .tokens.ratios import TokenRatios, ratios_of
from .tokens.rows import texts_of

__all__ = ["TokenRatios", "Words"]

_SCREENED_OUTPUTS: Final = 2**12
_MIN_MEAN_REPEATS: Final = 8


@dataclass(frozen=True, slots=True, repr=False)
class Words(ScoreAttack):
    """Log ratios of the presence of words and of their number, summed.

    Rewritten texts are mostly all different, so that no table of texts says anything; their words
    come again. Of a word in k of n pilot outputs on x and in k' of n' on x' the ratio is
    ln((k + 1/2)/(n + 1)) - ln((k' + 1/2)/(n' + 1)), shrunk towards 0 by how much of the spread of
    all ratios is noise; so is that of the length, the number of words, in runs of lengths that the
    pilot tells apart. What the pilot never showed adds 0. The sum would be the log-likelihood
    ratio if words occurred independently of each other; whatever they do, the audit counts it on
    fresh draws.

    A word is what stands between white space, as it is written; bytes are read as Latin-1. None
    and whatever else is no text has no words and a length of its own.

    Source:
        Maron (1961), Journal of the ACM 8, for the sum over words as if independent; Efron and
        Morris (1973), Journal of the American Statistical Association 68, for the shrinkage.

    Example:
        >>> import dpcore
        >>> vocabulary = np.array([f"word{i}" for i in range(200)])
        >>> def any_words(x, size, rng):
        ...     kept = rng.random((size, 12)) < 0.3
        ...     others = vocabulary[rng.integers(200, size=kept.shape)]
        ...     return [" ".join(row) for row in np.where(kept, x.split(), others)]
        >>> pair = "a b c d e f g h i j k l", "m n o p q r s t u v w x"
        >>> report = dpcore.audit(any_words, pair, attack=Words(), trials=10**4, claim=3.0, rng=1)
        >>> report.verdict, report.epsilon_lower > 5.0
        ('refuted', True)
    """

    parts = False

    def candidates(self, outputs: Array, outputs_prime: Array, pair: Pair) -> tuple[Score, ...]:
        """Return the score that the pilot suggests.

        Args:
            outputs: pilot outputs on `x`, shape `(size,)`.
            outputs_prime: pilot outputs on `x_prime`, shape `(size',)`.
            pair: the pair they were drawn on (not used).

        Returns:
            One score; none where none of the first outputs is a text.
        """
        sides = np.asarray(outputs), np.asarray(outputs_prime)
        return (ratios_of(sides),) if _first_texts(sides) else ()

    def telling(self, outputs: Array, outputs_prime: Array) -> tuple[Score, ...]:
        """Return the score, where a table of whole texts is less informative.

        Args:
            outputs: pilot outputs on `x`, shape `(size,)`.
            outputs_prime: pilot outputs on `x_prime`, shape `(size',)`.

        Returns:
            One score; none where texts come 8 times each on average, or nothing tells.
        """
        sides = np.asarray(outputs), np.asarray(outputs_prime)
        texts = _first_texts(sides)
        if not texts or len(set(texts)) * _MIN_MEAN_REPEATS <= len(texts):
            return ()
        found = ratios_of(sides)
        return () if found.says_nothing else (found,)


def _first_texts(sides: tuple[Array, ...]) -> list[str]:
    """Return the texts among the first outputs of both sides."""
    if not all(side.dtype.kind in "USO" and side.size for side in sides):
        return []
    return [one for side in sides for one in texts_of(side[:_SCREENED_OUTPUTS]) if one is not None]
