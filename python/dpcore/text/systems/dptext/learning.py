"""Training of DPText: utility, reconstruction and discriminator, noise in every step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ....errors import integer, invalid, real
from ....progress import Progress
from ....streams.generators import seeded_torch
from ....torch.needed import torch
from ..adversarial.opponents import Discriminator, descend
from ..bag import Bag, Units
from ..training import one_thread

__all__ = ["Lessons", "Parts", "learn"]

_SMALLEST: Final = 1e-3
"""A learnt epsilon never falls below this."""
_FASTER: Final = 10.0
"""Learning rate of a learnt epsilon over that of the weights: it is of order 1 to 100."""


@dataclass(frozen=True, slots=True)
class Lessons:
    """How long and how fast to train, and what counts how much.

    Args:
        epochs: passes over the texts.
        batch: texts in a step.
        lr: learning rate of Adam, of all parts; ten times that of a learnt epsilon.
        strength: lambda, the weight of the discriminator's loss.
        reconstruction: weight of the decoder's loss.
    """

    epochs: int = 8
    batch: int = 64
    lr: float = 3e-3
    strength: float = 1.0
    reconstruction: float = 0.1

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "epochs", integer("epochs", self.epochs, 1))
        object.__setattr__(self, "batch", integer("batch", self.batch, 1))
        object.__setattr__(self, "lr", real("lr", self.lr, low=0.0, open_low=True))
        for name in ("strength", "reconstruction"):
            weight = real(name, getattr(self, name), low=0.0, high=1e30)
            object.__setattr__(self, name, weight)


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """What is trained.

    Args:
        encoder: texts to vectors.
        transform: bounds them.
        noise: the layer behind, whose epsilon may be learnt.
        decoder: from noisy vectors to scores of the most frequent words.
        head: from noisy vectors to scores of the labels.
        discriminator: from noisy vectors to scores of the attribute.
    """

    encoder: Bag
    transform: Any
    noise: Any
    decoder: Any
    head: Any
    discriminator: Discriminator


def learn(
    parts: Parts,
    units: Units,
    labels: Any,
    attribute: Any,
    lessons: Lessons,
    rng: np.random.Generator,
    progress: bool | None = None,
) -> tuple[tuple[float, ...], tuple[float, ...], bool]:
    """Train all parts in place: the discriminator one step, then all others one step.

    Args:
        parts: what is trained.
        units: of the training texts.
        labels: codes of their labels, int64.
        attribute: codes of their attribute, int64.
        lessons: how long and how fast.
        rng: order and noise follow from it.
        progress: show a bar; None shows it for long work on a terminal or in a notebook.

    Returns:
        The mean loss of the labels and the scale of the noise after each epoch, and True if Ctrl-C
        ended it early: the weights are those after the last whole epoch.

    Raises:
        KeyboardInterrupt: on Ctrl-C before the first epoch has ended.
        ValueError: if a loss diverges.
    """
    rival = torch.optim.Adam(parts.discriminator.parameters(), lr=lessons.lr)
    optimisers = list(_optimisers(parts, lessons))
    modules = (parts.encoder, parts.noise, parts.decoder, parts.head, parts.discriminator)
    weights = [weight for module in modules for weight in module.parameters()]
    losses, scales, kept = list[float](), list[float](), list[Any]()
    with one_thread(), seeded_torch(rng), Progress("training", lessons.epochs, progress) as bar:
        try:
            for epoch in range(1, lessons.epochs + 1):
                order = torch.from_numpy(rng.permutation(len(units)))
                batches = units.take(order).batches(lessons.batch)
                total = 0.0
                for places, batch in zip(order.split(lessons.batch), batches, strict=True):
                    truth = labels[places], attribute[places]
                    value = _step(parts, batch, truth, lessons, rival, optimisers)
                    if not np.isfinite(value):
                        requirement = f"small enough that the loss stays finite (epoch {epoch})"
                        raise invalid("lr", requirement, lessons.lr)
                    total += value * len(places)
                losses.append(total / len(units))
                scales.append(parts.noise.scale)
                kept = [weight.detach().clone() for weight in weights]
                bar.advance(1)
        except KeyboardInterrupt:
            if not kept:
                raise
            with torch.no_grad():
                for weight, value in zip(weights, kept, strict=True):
                    weight.copy_(value)
            return tuple(losses), tuple(scales), True
    return tuple(losses), tuple(scales), False


def _optimisers(parts: Parts, lessons: Lessons) -> Iterator[Any]:
    # Of the words' vectors only those of a batch have gradients.
    yield torch.optim.SparseAdam(list(parts.encoder.parameters()), lr=lessons.lr)
    dense = [*parts.decoder.parameters(), *parts.head.parameters()]
    yield torch.optim.Adam(dense, lr=lessons.lr)
    if parts.noise.epsilon is not None:
        yield torch.optim.Adam(parts.noise.parameters(), lr=_FASTER * lessons.lr)


def _step(
    parts: Parts, batch: Units, truth: Any, lessons: Lessons, rival: Any, optimisers: list[Any]
) -> float:
    """One step of the discriminator and one of all others; the loss of the labels."""
    labels, attribute = truth
    noisy = parts.noise(parts.transform(parts.encoder(batch)))
    descend(rival, parts.discriminator.loss(noisy.detach(), [attribute]))
    utility = torch.nn.functional.cross_entropy(parts.head(noisy), labels)
    loss = utility
    if lessons.reconstruction:
        loss = loss + lessons.reconstruction * _words(parts.decoder(noisy), batch)
    if lessons.strength:
        loss = loss - lessons.strength * parts.discriminator.loss(noisy, [attribute])
    for optimiser in optimisers:
        optimiser.zero_grad()
    loss.backward()
    for optimiser in optimisers:
        optimiser.step()
    if parts.noise.epsilon is not None:
        with torch.no_grad():
            parts.noise.epsilon.clamp_(min=_SMALLEST)
    return float(utility.detach())


def _words(scores: Any, batch: Units) -> Any:
    """The mean cross entropy of the frequent words of a batch, each in the text that it is of."""
    text = torch.repeat_interleave(torch.arange(len(batch)), batch.sizes)
    frequent = batch.ids < scores.shape[1]
    places = text[frequent].to(scores.device), batch.ids[frequent].to(scores.device)
    if not len(places[0]):
        return scores.sum() * 0.0
    return -torch.log_softmax(scores, dim=1)[places].mean()
