"""Training an auto-encoder of texts: teacher forcing, the clip, and no noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ....torch.needed import torch
from ..training import Recipe, require_convergence, run_epochs
from .lstm import END, PAD, START, UNKNOWN, Decoder, Encoder

__all__ = ["learn", "words_loss"]

_MAX_GRADIENT_NORM: Final = 1.0
"""Largest norm of a step's gradient."""
_DIVERGENCE_LIMIT: Final = 1e4
"""No loss of a word and no weight comes near: guesses lose the logarithm of the vocabulary."""
_LAST_RATE_SHARE: Final = 0.1
"""The learning rate of the last step, over that of the first."""


def learn(
    encoder: Encoder,
    decoder: Decoder,
    transform: Callable[[Any], Any],
    rows: tuple[Any, Any],
    recipe: Recipe,
    rng: np.random.Generator,
    progress: bool | None = None,
) -> tuple[tuple[float, ...], bool]:
    """Train encoder and decoder together, in place, on texts as numbers.

    Args:
        encoder: texts to vectors.
        decoder: vectors to texts.
        transform: bounds the vectors.
        rows: numbers and sizes of the training texts, as `Words` gives them.
        recipe: how long and how fast.
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
    optimiser = torch.optim.Adam(weights, lr=recipe.lr)
    assert recipe.epochs is not None
    steps = recipe.epochs * -(-len(ids) // recipe.batch)
    # In a straight line: 15 epochs over 800 generated texts reach BLEU .76 on others, and .66 with
    # equal factors.
    slower = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, _LAST_RATE_SHARE, steps)

    def run_epoch(epoch: int) -> float:
        total, words = 0.0, 0
        for batch in torch.from_numpy(rng.permutation(len(ids))).split(recipe.batch):
            loss, count = _mean_word_loss(
                encoder, decoder, transform, ids[batch], sizes[batch], recipe
            )
            require_convergence((value := loss.item()) < _DIVERGENCE_LIMIT, recipe.lr, epoch)
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(weights, _MAX_GRADIENT_NORM)
            optimiser.step()
            slower.step()
            total, words = total + value * count, words + count
        return total / words

    losses, partial = run_epochs(run_epoch, recipe.epochs, weights, rng, progress)
    largest = max(float(weight.detach().abs().max()) for weight in weights)
    require_convergence(largest < _DIVERGENCE_LIMIT, recipe.lr, recipe.epochs)
    return losses, partial


def _mean_word_loss(
    encoder: Encoder, decoder: Decoder, transform: Any, ids: Any, sizes: Any, recipe: Recipe
) -> tuple[Any, int]:
    """Compute the mean cross entropy of the words of a batch, ends included, and their number."""
    ids = ids[:, : int(sizes.max())]
    vectors = transform(encoder.states(ids, sizes))
    return words_loss(decoder, vectors, ids, sizes, recipe.dropout or 0.0), int(sizes.sum()) + len(
        sizes
    )


def words_loss(decoder: Decoder, vectors: Any, ids: Any, sizes: Any, dropout: float) -> Any:
    """Compute the mean cross entropy of the words of texts, ends included, by teacher forcing.

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
