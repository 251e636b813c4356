"""Training of DPText: utility, reconstruction and discriminator, noise in every step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from ....errors import integer, invalid, real
from ....progress import Progress
from ....streams.generators import seeded_torch
from ....torch.needed import torch
from ..attributes import Discriminator, descend
from ..training import one_thread
from .coders import Coder

__all__ = ["Lessons", "Parts", "Taught", "learn", "level"]

_SMALLEST: Final = 1e-3
"""A learnt epsilon never falls below this, or below where it starts if that is smaller."""
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
        object.__setattr__(self, "lr", real("lr", self.lr, low=0.0, high=1e30, open_low=True))
        for name in ("strength", "reconstruction"):
            weight = real(name, getattr(self, name), low=0.0, high=1e30)
            object.__setattr__(self, name, weight)


@dataclass(frozen=True, slots=True)
class Taught:
    """How a model was trained.

    Attributes:
        texts: how many training texts there were.
        lessons: how long and how fast.
        seed: repeats it.
        threads: of torch on the CPU.
        losses: mean loss of the labels in each epoch.
        epsilons: the epsilon after each epoch: the one learnt, or the fixed one.
        partial: True if Ctrl-C ended it early: it then holds the last whole epoch.
    """

    texts: int
    lessons: Lessons
    seed: int
    threads: int
    losses: tuple[float, ...]
    epsilons: tuple[float, ...]
    partial: bool

    def __str__(self) -> str:
        """One line."""
        ended = f", INTERRUPTED after {len(self.losses)}" if self.partial else ""
        told = self.lessons
        return (
            f"on {self.texts:,} texts, {told.epochs} epochs{ended} in batches of {told.batch}, "
            f"learning rate {told.lr:g}, discriminator x {told.strength:g}, reconstruction x "
            f"{told.reconstruction:g}, seed {self.seed}; last loss {self.losses[-1]:.4g}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """What is trained.

    Args:
        coder: texts to vectors, and back.
        transform: bounds them.
        noise: the layer behind, whose epsilon may be learnt.
        head: from noisy vectors to scores of the labels.
        discriminator: from noisy vectors to scores of the attribute.
    """

    coder: Coder
    transform: Any
    noise: Any
    head: Any
    discriminator: Discriminator


def learn(
    parts: Parts,
    rows: Any,
    labels: Any,
    attribute: Any,
    lessons: Lessons,
    rng: np.random.Generator,
    progress: bool | None = None,
) -> tuple[tuple[float, ...], tuple[float | None, ...], bool]:
    """Train all parts in place: the discriminator one step, then all others one step.

    Args:
        parts: what is trained.
        rows: the training texts as numbers, as the coder gives them.
        labels: codes of their labels, int64.
        attribute: codes of their attribute, int64.
        lessons: how long and how fast.
        rng: order and noise follow from it.
        progress: show a bar; None shows it for long work on a terminal or in a notebook.

    Returns:
        The mean loss of the labels in each epoch, the learnt epsilon after it, and True if Ctrl-C
        ended it early: the weights are those after the last whole epoch.

    Raises:
        KeyboardInterrupt: on Ctrl-C before the first epoch has ended.
        ValueError: if a loss, a vector or a weight is not finite any more.
    """
    rival = torch.optim.Adam(parts.discriminator.parameters(), lr=lessons.lr)
    optimisers = list(_optimisers(parts, lessons))
    modules = (
        parts.coder.encoder, parts.noise, parts.coder.decoder, parts.head, parts.discriminator,
    )  # fmt: skip
    weights = [weight for module in modules for weight in module.parameters()]
    learnt = parts.noise.epsilon
    floor = _SMALLEST if learnt is None else min(_SMALLEST, learnt.item())
    losses, kept = list[float](), list[Any]()
    levels: list[float | None] = []
    with one_thread(), seeded_torch(rng), Progress("training", lessons.epochs, progress) as bar:
        try:
            for epoch in range(1, lessons.epochs + 1):
                order = torch.from_numpy(rng.permutation(len(labels)))
                batches = parts.coder.batches(rows, order, lessons.batch)
                total = 0.0
                for places, batch in zip(order.split(lessons.batch), batches, strict=True):
                    truth = labels[places], attribute[places]
                    finite = partial(_finite, lessons, epoch)
                    value = _step(parts, batch, truth, lessons, rival, optimisers, finite)
                    if learnt is not None:
                        finite(learnt)
                        with torch.no_grad():
                            # Beyond the cap there is no gradient: it would never come back.
                            learnt.clamp_(floor, parts.noise.cap)
                    total += value * len(places)
                finite(*weights)
                kept = [weight.detach().clone() for weight in weights]
                losses.append(total / len(labels))
                levels.append(level(parts.noise))
                bar.advance(1)
        except KeyboardInterrupt:
            if not kept:
                raise
            with torch.no_grad():
                for weight, value in zip(weights, kept, strict=True):
                    weight.copy_(value)
            ended = len(levels)
            return tuple(losses[:ended]), tuple(levels), True
    return tuple(losses), tuple(levels), False


def level(noise: Any) -> float | None:
    """A learnt epsilon as it is now; None where the scale is fixed."""
    if noise.epsilon is None:
        return None
    found = float(noise.epsilon.detach())
    return found if noise.cap is None else min(found, noise.cap)


def _finite(lessons: Lessons, epoch: int, *values: Any) -> None:
    """Complain of what is not finite, with the epoch and the rate."""
    if all(bool(torch.isfinite(value).all()) for value in values):
        return
    also = f", as the strength must, {lessons.strength:g}" if lessons.strength else ""
    requirement = f"small enough that training does not diverge (it does in epoch {epoch}){also}"
    raise invalid("lr", requirement, lessons.lr)


def _optimisers(parts: Parts, lessons: Lessons) -> Iterator[Any]:
    coder = parts.coder
    # Of the vectors of a bag's words only those of a batch have gradients.
    encoding = torch.optim.SparseAdam if coder.sparse else torch.optim.Adam
    yield encoding(list(coder.encoder.parameters()), lr=lessons.lr)
    dense = [*coder.decoder.parameters(), *parts.head.parameters()]
    yield torch.optim.Adam(dense, lr=lessons.lr)
    if parts.noise.epsilon is not None:
        yield torch.optim.Adam(parts.noise.parameters(), lr=_FASTER * lessons.lr)


def _step(
    parts: Parts,
    batch: Any,
    truth: Any,
    lessons: Lessons,
    rival: Any,
    optimisers: list[Any],
    finite: Callable[..., None],
) -> float:
    """One step of the discriminator and one of all others; the loss of the labels."""
    labels, attribute = truth
    raw = parts.coder.vectors(batch)
    finite(raw)
    noisy = parts.noise(parts.transform(raw))
    descend(rival, parts.discriminator.loss(noisy.detach(), [attribute]))
    utility = torch.nn.functional.cross_entropy(parts.head(noisy), labels)
    loss = utility
    if lessons.reconstruction:
        loss = loss + lessons.reconstruction * parts.coder.loss(noisy, batch)
    if lessons.strength:
        loss = loss - lessons.strength * parts.discriminator.loss(noisy, [attribute])
    finite(loss)
    for optimiser in optimisers:
        optimiser.zero_grad()
    loss.backward()
    for optimiser in optimisers:
        optimiser.step()
    return float(utility.detach())
