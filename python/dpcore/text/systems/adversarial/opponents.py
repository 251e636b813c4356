"""Who trains against an extractor: a discriminator of attributes, and what its loss adds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from ....torch.needed import torch

__all__ = ["HIDDEN", "RATE", "Discriminator", "Material", "Opponent", "descend", "fixed", "network"]

HIDDEN: Final = 128
"""Units in each hidden layer, as in Coavoux, Narayan and Cohen (2018)."""
RATE: Final = 1e-3
"""Learning rate of Adam, for all that is trained against an extractor."""


def network(width: int, outputs: int, layers: int = 2) -> Any:
    """Layers of `HIDDEN` rectified units between vectors and scores."""
    widths = [width, *[HIDDEN] * layers]
    hidden = [
        part
        for before, after in pairwise(widths)
        for part in (torch.nn.Linear(before, after), torch.nn.ReLU())
    ]
    return torch.nn.Sequential(*hidden, torch.nn.Linear(widths[-1], outputs))


@contextmanager
def fixed(module: Any) -> Iterator[None]:
    """Gradients pass through a module and leave none in its weights."""
    module.requires_grad_(False)
    try:
        yield
    finally:
        module.requires_grad_(True)


class Discriminator(torch.nn.Module):
    """Reads attributes from vectors: two hidden layers, with scores for the values of each.

    Args:
        width: entries of a vector.
        sizes: values of each attribute.
    """

    def __init__(self, width: int, sizes: Sequence[int]) -> None:
        super().__init__()
        self.width, self.sizes = width, tuple(sizes)
        self.layers = network(width, sum(sizes))

    def forward(self, rows: Any) -> tuple[Any, ...]:
        """Scores of shape `(n, values)`, one tensor for each attribute."""
        found: tuple[Any, ...] = self.layers(rows).split(self.sizes, dim=1)
        return found

    def loss(self, rows: Any, targets: Sequence[Any]) -> Any:
        """The cross entropy, averaged over texts and attributes.

        Args:
            rows: shape `(n, width)`.
            targets: for each attribute codes of shape `(n,)` or shares of shape `(n, values)`.
        """
        pairs = zip(self(rows), targets, strict=True)
        losses = [torch.nn.functional.cross_entropy(*pair) for pair in pairs]
        return torch.stack(losses).mean()

    def codes(self, rows: Any) -> Any:
        """The likeliest value of each attribute, shape `(n, attributes)`."""
        return torch.stack([scores.argmax(dim=1) for scores in self(rows)], dim=1)


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """What an opponent is made of.

    Args:
        discriminator: not trained yet.
        codes: of the training texts' attributes, int64, shape `(texts, attributes)`.
        units: `Units` of the training texts.
        strength: what the penalty is multiplied with.
        rng: of whatever the opponent draws; the extractor's training draws from another.
        device: where vectors are.
    """

    discriminator: Discriminator
    codes: Any
    units: Any
    strength: float
    rng: Any
    device: Any


class Opponent:
    """Trains the discriminator on every batch; a subclass says what the extractor is to lower.

    Args:
        made: what it is made of.
    """

    def __init__(self, made: Material) -> None:
        self.discriminator, self.codes = made.discriminator, made.codes
        self.strength = made.strength
        self.optimiser = torch.optim.Adam(self.discriminator.parameters(), lr=RATE)

    def step(self, rows: Any, batch: Any) -> None:
        """One step of the discriminator, on detached vectors of the texts at places `batch`."""
        descend(self.optimiser, self.discriminator.loss(rows, self.truth(rows, batch)))

    def truth(self, rows: Any, batch: Any) -> Any:
        """Codes of the texts at places `batch`, a column for each attribute."""
        return self.codes[batch].to(rows.device).unbind(1)

    def penalty(self, rows: Any, batch: Any) -> Any:
        """The extractor's loss against this opponent, times `strength`; 0 is left out exactly."""
        return self.strength * self.against(rows, batch) if self.strength else 0.0

    def against(self, rows: Any, batch: Any) -> Any:
        """What the extractor is to lower; it must leave the discriminator as it is."""
        raise NotImplementedError


def descend(optimiser: Any, loss: Any) -> None:
    """One step down a loss."""
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
