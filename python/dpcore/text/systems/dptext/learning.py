"""Training of DPText: utility, reconstruction and discriminator, noise in every step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from ....torch.needed import torch
from ..attributes import Discriminator, descend
from ..training import Recipe, require_convergence, run_epochs
from .coders import Coder

__all__ = ["Parts", "learn", "level"]

_MIN_LEARNT_EPSILON: Final = 1e-3
"""A learnt epsilon never falls below this, or below where it starts if that is smaller."""
_EPSILON_RATE_FACTOR: Final = 10.0
"""Learning rate of a learnt epsilon over that of the weights: it is of order 1 to 100."""


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """Modules that are trained.

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
    recipe: Recipe,
    rng: np.random.Generator,
    progress: bool | None = None,
) -> tuple[tuple[float, ...], tuple[float | None, ...], bool]:
    """Train all parts in place: the discriminator one step, then all others one step.

    Args:
        parts: what is trained.
        rows: the training texts as numbers, as the coder gives them.
        labels: codes of their labels, int64.
        attribute: codes of their attribute, int64.
        recipe: how long and how fast.
        rng: order and noise follow from it.
        progress: show a bar; None shows it for long work on a terminal or in a notebook.

    Returns:
        The mean loss of the labels in each epoch, the learnt epsilon after it, and True if Ctrl-C
        ended it early: the weights are those after the last whole epoch.

    Raises:
        KeyboardInterrupt: on Ctrl-C before the first epoch has ended.
        ValueError: if a loss, a vector or a weight is not finite any more.
    """
    rival = torch.optim.Adam(parts.discriminator.parameters(), lr=recipe.lr)
    optimisers = list(_make_optimisers(parts, recipe))
    modules = (
        parts.coder.encoder, parts.noise, parts.coder.decoder, parts.head, parts.discriminator,
    )  # fmt: skip
    weights = [weight for module in modules for weight in module.parameters()]
    learnt = parts.noise.epsilon
    floor = _MIN_LEARNT_EPSILON if learnt is None else min(_MIN_LEARNT_EPSILON, learnt.item())
    levels: list[float | None] = []

    def run_epoch(epoch: int) -> float:
        order = torch.from_numpy(rng.permutation(len(labels)))
        batches = parts.coder.batches(rows, order, recipe.batch)
        finite, total = partial(_require_finite_losses, recipe, epoch), 0.0
        for places, batch in zip(order.split(recipe.batch), batches, strict=True):
            truth = labels[places], attribute[places]
            value = _take_adversarial_step(parts, batch, truth, recipe, rival, optimisers, finite)
            if learnt is not None:
                finite(learnt)
                with torch.no_grad():
                    # Beyond the cap there is no gradient: it would never come back.
                    learnt.clamp_(floor, parts.noise.cap)
            total += value * len(places)
        finite(*weights)
        levels.append(level(parts.noise))
        return total / len(labels)

    assert recipe.epochs is not None
    losses, ended = run_epochs(run_epoch, recipe.epochs, weights, rng, progress)
    return losses, tuple(levels[: len(losses)]), ended


def level(noise: Any) -> float | None:
    """Return the current value of a learnt epsilon; None where the scale is fixed."""
    if noise.epsilon is None:
        return None
    found = float(noise.epsilon.detach())
    return found if noise.cap is None else min(found, noise.cap)


def _require_finite_losses(recipe: Recipe, epoch: int, *values: Any) -> None:
    """Raise an error with the epoch and the rate where a value is not finite."""
    is_finite = all(bool(torch.isfinite(value).all()) for value in values)
    require_convergence(is_finite, recipe.lr, epoch, recipe.strength)


def _make_optimisers(parts: Parts, recipe: Recipe) -> Iterator[Any]:
    coder = parts.coder
    # Of the vectors of a bag's words only those of a batch have gradients.
    encoding = torch.optim.SparseAdam if coder.sparse else torch.optim.Adam
    yield encoding(list(coder.encoder.parameters()), lr=recipe.lr)
    dense = [*coder.decoder.parameters(), *parts.head.parameters()]
    yield torch.optim.Adam(dense, lr=recipe.lr)
    if parts.noise.epsilon is not None:
        yield torch.optim.Adam(parts.noise.parameters(), lr=_EPSILON_RATE_FACTOR * recipe.lr)


def _take_adversarial_step(
    parts: Parts,
    batch: Any,
    truth: Any,
    recipe: Recipe,
    rival: Any,
    optimisers: list[Any],
    finite: Callable[..., None],
) -> float:
    """Take one step of the discriminator and one of all others; return the loss of the labels."""
    labels, attribute = truth
    raw = parts.coder.vectors(batch)
    finite(raw)
    noisy = parts.noise(parts.transform(raw))
    descend(rival, parts.discriminator.loss(noisy.detach(), [attribute]))
    utility = torch.nn.functional.cross_entropy(parts.head(noisy), labels)
    loss = utility
    if recipe.reconstruction:
        loss = loss + recipe.reconstruction * parts.coder.loss(noisy, batch)
    if recipe.strength:
        loss = loss - recipe.strength * parts.discriminator.loss(noisy, [attribute])
    finite(loss)
    for optimiser in optimisers:
        optimiser.zero_grad()
    loss.backward()
    for optimiser in optimisers:
        optimiser.step()
    return float(utility.detach())
