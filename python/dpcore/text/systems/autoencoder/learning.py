"""Training an auto-encoder of texts: teacher forcing, the clip, and no noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ....errors import integer, invalid, real
from ....progress import Progress
from ....streams.generators import seeded_torch
from ....torch.needed import torch
from ..training import one_thread
from .lstm import END, PAD, START, UNKNOWN, Decoder, Encoder

__all__ = ["Plan", "learn", "words_loss"]

_NORM: Final = 1.0
"""Largest norm of a step's gradient."""
_FAR: Final = 1e4
"""No loss of a word and no weight comes near: guesses lose the logarithm of the vocabulary."""
_LAST: Final = 0.1
"""The learning rate of the last step, over that of the first."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How long and how fast to train.

    Args:
        epochs: passes over the texts.
        batch: texts in a step.
        lr: learning rate of Adam in the first step; it falls to a tenth in a straight line.
        dropout: share of the decoder's input words that are replaced by "<unk>", in [0, 1).
    """

    epochs: int = 40
    batch: int = 64
    lr: float = 3e-3
    dropout: float = 0.3

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "epochs", integer("epochs", self.epochs, 1))
        object.__setattr__(self, "batch", integer("batch", self.batch, 1))
        object.__setattr__(self, "lr", real("lr", self.lr, low=0.0, high=1e30, open_low=True))
        share = real("dropout", self.dropout, low=0.0, high=1.0, open_high=True)
        object.__setattr__(self, "dropout", share)


def learn(
    encoder: Encoder,
    decoder: Decoder,
    transform: Callable[[Any], Any],
    rows: tuple[Any, Any],
    plan: Plan,
    rng: np.random.Generator,
    progress: bool | None = None,
) -> tuple[tuple[float, ...], bool]:
    """Train encoder and decoder together, in place, on texts as numbers.

    Args:
        encoder: texts to vectors.
        decoder: vectors to texts.
        transform: bounds the vectors.
        rows: numbers and sizes of the training texts, as `Words` gives them.
        plan: how long and how fast.
        rng: order and dropout follow from it.
        progress: show a bar; None shows it for long work on a terminal or in a notebook.

    Returns:
        The mean loss of a word in each epoch, and True if Ctrl-C ended it early: the weights are
        those after the last whole epoch.

    Raises:
        KeyboardInterrupt: on Ctrl-C before the first epoch has ended.
        ValueError: if the loss diverges.
    """
    ids, sizes = rows
    weights = [*encoder.parameters(), *decoder.parameters()]
    optimiser = torch.optim.Adam(weights, lr=plan.lr)
    steps = plan.epochs * -(-len(ids) // plan.batch)
    # In a straight line: 15 epochs over 800 generated texts reach BLEU .76 on others, and .66 with
    # equal factors.
    slower = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, _LAST, steps)
    losses: list[float] = []
    kept: list[Any] = []
    with one_thread(), seeded_torch(rng), Progress("training", plan.epochs, progress) as bar:
        try:
            for epoch in range(1, plan.epochs + 1):
                total, words = 0.0, 0
                for batch in torch.from_numpy(rng.permutation(len(ids))).split(plan.batch):
                    loss, count = _loss(encoder, decoder, transform, ids[batch], sizes[batch], plan)
                    _small(value := loss.item(), plan, epoch)
                    optimiser.zero_grad()
                    loss.backward()
                    torch.nn.utils.clip_grad_norm_(weights, _NORM)
                    optimiser.step()
                    slower.step()
                    total, words = total + value * count, words + count
                losses.append(total / words)
                kept = [weight.detach().clone() for weight in weights]
                bar.advance(1)
        except KeyboardInterrupt:
            if not kept:
                raise
            with torch.no_grad():
                for weight, value in zip(weights, kept, strict=True):
                    weight.copy_(value)
            return tuple(losses), True
    _small(max(float(weight.detach().abs().max()) for weight in weights), plan, plan.epochs)
    return tuple(losses), False


def _small(found: float, plan: Plan, epoch: int) -> None:
    if not found < _FAR:
        requirement = f"small enough that training does not diverge (it does in epoch {epoch})"
        raise invalid("lr", requirement, plan.lr)


def _loss(
    encoder: Encoder, decoder: Decoder, transform: Any, ids: Any, sizes: Any, plan: Plan
) -> tuple[Any, int]:
    """The mean cross entropy of the words of a batch, the end among them, and how many."""
    ids = ids[:, : int(sizes.max())]
    vectors = transform(encoder.states(ids, sizes))
    return words_loss(decoder, vectors, ids, sizes, plan.dropout), int(sizes.sum()) + len(sizes)


def words_loss(decoder: Decoder, vectors: Any, ids: Any, sizes: Any, dropout: float) -> Any:
    """The mean cross entropy of the words of texts, the end among them, by teacher forcing.

    Args:
        decoder: vectors to texts.
        vectors: shape `(n, width)`.
        ids: numbers of the words, padded, shape `(n, longest)`.
        sizes: how many words each text has.
        dropout: share of the decoder's input words that are hidden from it.
    """
    device = decoder.scores.weight.device
    column = torch.full((len(ids), 1), PAD)
    wanted = torch.cat([ids, column], dim=1).scatter(1, sizes.unsqueeze(1), END)
    before = torch.cat([column.fill_(START), ids], dim=1)
    dropped = (torch.rand(before.shape) < dropout) & (before > UNKNOWN)
    scores = decoder(vectors, before.masked_fill(dropped, UNKNOWN).to(device))
    return torch.nn.functional.cross_entropy(
        scores.flatten(0, 1), wanted.to(device).flatten(), ignore_index=PAD
    )
