"""Declustering of Coavoux, Narayan and Cohen: texts of equal attributes are kept apart."""

from __future__ import annotations

from typing import Any

from .base import Defended
from .opponents import Material, Opponent

__all__ = ["Declustering", "DeclusteringOpponent"]


class DeclusteringOpponent(Opponent):
    """Squared distances of pairs, weighed by how few attributes they share."""

    def __init__(self, made: Material) -> None:
        super().__init__(made)
        self.rng = made.rng

    def against(self, rows: Any, batch: Any) -> Any:
        """``(0.5 - l) |r - r'|^2``, averaged over the texts; x' is another text of the batch."""
        if len(batch) == 1:
            # The last batch may be one text, which has no other.
            return rows.sum() * 0.0
        shift = int(self.rng.integers(1, len(batch)))
        codes = self.codes[batch]
        similar = (codes == codes.roll(shift, 0)).to(rows.dtype).mean(1).to(rows.device)
        distances = (rows - rows.roll(shift, 0)).square().sum(1)
        return ((0.5 - similar) * distances).mean()


class Declustering(Defended):
    """Declustering: texts of equal attributes are pushed apart, those of different ones together.

    ``L = (0.5 - l) |r - r'|^2``, with l the share of *equal* attributes of two texts: with one
    attribute the weight is -1/2 for equal and 1/2 for different ones. (Taken for a distance, as a
    study has it, l would turn the sign, and make the clusters that it is to prevent.) The second
    text is another of the batch. There is no opponent: the discriminator only looks on. It claims
    no epsilon; arguments, `fit`, and what else holds of all defences: `Defended`.

    Args:
        dim: entries of a vector; None for 32.
        attribute: the name of an attribute of the corpus, or several.
        strength: alpha in the paper, at least 0; None for 1. (The paper has 0.1, for vectors of
            another scale.)

    Source:
        Coavoux, Narayan and Cohen (2018), section 3.3, and their code.

    Example:
        >>> Declustering(attribute="gender", strength=0.5)
        Declustering(dim=32, attribute='gender', strength=0.5; claims no epsilon)
    """

    opponent = DeclusteringOpponent
