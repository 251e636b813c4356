"""Adversarial generation of Coavoux, Narayan and Cohen: vectors that do not give the words back."""

from __future__ import annotations

from typing import Any, Final

from ....errors import invalid
from ....torch.needed import torch
from ..bag import Units
from .base import Defended
from .opponents import RATE, Material, Opponent, descend, fixed, network

__all__ = ["WORDS", "AdversarialGeneration", "DecodingOpponent"]

WORDS: Final = 2000
"""The decoder knows this many words: those most frequent in the training texts."""


class DecodingOpponent(Opponent):
    """A decoder of the texts' words, beside the discriminator, which only looks on."""

    def __init__(self, made: Material) -> None:
        super().__init__(made)
        self.words, known = _frequent(made.units)
        self.decoder = network(made.discriminator.width, known, layers=1).to(made.device)
        self.decoding = torch.optim.Adam(self.decoder.parameters(), lr=RATE)

    def step(self, rows: Any, batch: Any) -> None:
        """One step of the discriminator, and one of the decoder."""
        super().step(rows, batch)
        descend(self.decoding, self.loss(rows, batch))

    def loss(self, rows: Any, batch: Any) -> Any:
        """``-log p(word | vector)``, averaged over the words of each text and over the texts."""
        texts = self.words.take(batch)
        sizes, ids = texts.sizes.to(rows.device), texts.ids.to(rows.device)
        owner = torch.repeat_interleave(torch.arange(len(batch), device=rows.device), sizes)
        found = torch.log_softmax(self.decoder(rows), dim=1)[owner, ids]
        return -(found / sizes[owner]).sum() / len(batch)

    def against(self, rows: Any, batch: Any) -> Any:
        """The decoder's loss with its sign turned."""
        with fixed(self.decoder):
            return -self.loss(rows, batch)


def _frequent(units: Units) -> tuple[Units, int]:
    """The frequent words of texts, numbered anew, and how many there are."""
    single = units.spans[:, 1] - units.spans[:, 0] == 1
    counts = torch.bincount(units.ids[single])
    kept = torch.argsort(counts, descending=True, stable=True)[:WORDS]
    kept = kept[counts[kept] > 0]
    if not len(kept):
        raise invalid("corpus", "one whose training texts have words, for the decoder", units)
    number = torch.full((int(units.ids.max()) + 1,), -1)
    number[kept] = torch.arange(len(kept))
    stays = single & (number[units.ids] >= 0)
    text = torch.repeat_interleave(torch.arange(len(units)), units.sizes)[stays]
    sizes = torch.bincount(text, minlength=len(units))
    return Units(number[units.ids[stays]], units.spans[stays], sizes, sizes), len(kept)


class AdversarialGeneration(Defended):
    """Adversarial generation: the extractor raises the loss of a decoder of the text's words.

    ``L = log p(words | r)``, the mean over the words of a text. The paper decodes letters with a
    recurrent network; here a hidden layer of 128 gives each of the 2,000 most frequent words of the
    training texts a probability, whatever their order. Attributes take no part: the discriminator
    only looks on. It claims no epsilon; arguments, `fit`, and what else holds of all defences:
    `Defended`.

    Args:
        dim: entries of a vector; None for 32.
        attribute: the name of an attribute of the corpus, or several; to be looked at.
        strength: at least 0; None for 0.1.

    Source:
        Coavoux, Narayan and Cohen (2018), section 3.2.

    Example:
        >>> AdversarialGeneration(16, attribute="gender")
        AdversarialGeneration(dim=16, attribute='gender', strength=0.1; claims no epsilon)
    """

    opponent = DecodingOpponent
    usual = 0.1
