"""Adversarial training of Li, Baldwin and Cohn: the extractor raises the discriminator's loss."""

from __future__ import annotations

from typing import Any

from .base import Defended
from .opponents import Opponent, fixed

__all__ = ["MinMaxAdversary", "MinMaxOpponent"]


class MinMaxOpponent(Opponent):
    """The discriminator's loss with its sign turned."""

    def against(self, rows: Any, batch: Any) -> Any:
        """``-CE(b)``."""
        with fixed(self.discriminator):
            return -self.discriminator.loss(rows, self.truth(rows, batch))


class MinMaxAdversary(Defended):
    """Adversarial training: ``min over M, max over D of CE(label; M) - strength CE(attribute; D)``.

    D, a discriminator, and M, extractor and classifier, make a step each on every batch. For
    several attributes CE(attribute) is their mean. It claims no epsilon; arguments, `fit`, and what
    else holds of all defences: `Defended`.

    Args:
        dim: entries of a vector; None for 32.
        attribute: the name of an attribute of the corpus, or several.
        strength: lambda in the paper, at least 0; None for 1.

    Source:
        Li, Baldwin and Cohn (2018).

    Example:
        >>> from dpcore.text import generated
        >>> corpus = generated("topics", 600, rng=1)
        >>> model = MinMaxAdversary(16, attribute="parent").fit(corpus, epochs=8, rng=1)
        >>> model
        MinMaxAdversary(dim=16, attribute='parent', strength=1; claims no epsilon)
        >>> model.encode(corpus.test.texts).shape, list(model.discriminator_accuracy(corpus.test))
        ((60, 16), ['parent'])
    """

    opponent = MinMaxOpponent
