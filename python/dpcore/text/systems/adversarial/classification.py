"""Adversarial classification of Coavoux, Narayan and Cohen: lead the discriminator astray."""

from __future__ import annotations

from typing import Any

from ....torch.needed import torch
from .base import Defended
from .opponents import Opponent, fixed

__all__ = ["AdversarialClassification", "ComplementOpponent"]


class ComplementOpponent(Opponent):
    """The discriminator's loss on what is not true."""

    def against(self, rows: Any, batch: Any) -> Any:
        """``CE(not b)``: the other of two values; of more, the others in equal shares."""
        sizes, truth = self.discriminator.sizes, self.truth(rows, batch)
        wrong = [
            (1.0 - torch.nn.functional.one_hot(codes, size).to(rows.dtype)) / (size - 1)
            for codes, size in zip(truth, sizes, strict=True)
        ]
        with fixed(self.discriminator):
            return self.discriminator.loss(rows, wrong)


class AdversarialClassification(Defended):
    """Adversarial classification: the extractor lowers the discriminator's loss on *wrong* values.

    ``L = CE(not b; D)``: after D's own step on the vectors the extractor makes one that lets D
    take each text for the other value of the attribute. The paper has two values; of more, all
    wrong ones are equally right here. Unlike the loss of `MinMaxAdversary` L is bounded from below,
    and its gradient grows with D's certainty: large strengths cost accuracy. It claims no epsilon;
    arguments, `fit`, and what else holds of all defences: `Defended`.

    Args:
        dim: entries of a vector; None for 32.
        attribute: the name of an attribute of the corpus, or several.
        strength: at least 0; None for 0.1. (The paper has 1, in steps of an optimiser of its own.)

    Source:
        Coavoux, Narayan and Cohen (2018), section 3.1, and their code.

    Example:
        >>> AdversarialClassification(attribute=["age", "sex"])
        AdversarialClassification(dim=32, attribute=['age', 'sex'], strength=0.1; claims no epsilon)
    """

    opponent = ComplementOpponent
    usual = 0.1
