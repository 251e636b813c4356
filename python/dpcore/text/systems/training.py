"""Training a classifier behind an extractor: stochastic gradient descent, noise in every step."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from ...errors import AssumptionWarning, integer, invalid, real
from ...progress import Progress
from ...streams.generators import seeded_torch
from ...torch.needed import torch
from .. import schedules
from .bag import Units

__all__ = ["STEPS", "Adversary", "Recipe", "one_thread", "train"]

STEPS: Final = 2226
"""Steps of the study: 5 epochs of 28,500 texts in batches of 64."""
_EPOCHS: Final = (5, 35)
"""Fewest and most epochs where none are given."""


_FAR: Final = 1e12
"""A loss or an entry beyond that has diverged: noise of scale 10^4 keeps both below 10^6."""


class Adversary(Protocol):
    """Whoever trains against the extractor: what a baseline adds to every step.

    Attributes:
        strength: what the penalty is multiplied with.
    """

    strength: float

    def step(self, rows: Any, batch: Any) -> None:
        """Its own step: learn from vectors, detached, of the texts at places `batch`."""

    def penalty(self, rows: Any, batch: Any) -> Any:
        """What is added to the loss of extractor and classifier, which it must not change."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How long and how fast to train.

    Args:
        epochs: passes over the texts; None for as many as make the study's 2,226 steps, from 5
            to 35.
        batch: texts in a step.
        lr: learning rate of the first epoch.
        decay: by which it is multiplied after every epoch.

    Raises:
        TypeError: if an argument is no number.
        ValueError: if it is out of range.

    Example:
        >>> Recipe().epochs_for(10_001), Recipe().epochs_for(4_000)
        (14, 35)
    """

    epochs: int | None = None
    batch: int = 64
    lr: float = 2.0
    decay: float = 0.9

    def __post_init__(self) -> None:
        """Check the fields."""
        if self.epochs is not None:
            object.__setattr__(self, "epochs", integer("epochs", self.epochs, 1))
        object.__setattr__(self, "batch", integer("batch", self.batch, 1))
        object.__setattr__(self, "lr", real("lr", self.lr, low=0.0, open_low=True))
        object.__setattr__(
            self, "decay", real("decay", self.decay, low=0.0, high=1.0, open_low=True)
        )

    def epochs_for(self, texts: int) -> int:
        """Epochs over so many texts."""
        if self.epochs is not None:
            return self.epochs
        fewest, most = _EPOCHS
        return min(most, max(fewest, round(STEPS / -(-texts // self.batch))))


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch on one thread: layers this small gain nothing by two, and sums keep their order."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def train(
    extractor: Any,
    transform: Callable[[Any], Any],
    head: Any,
    units: Any,
    codes: Any,
    *,
    noise: Callable[[float], Any],
    schedule: Any,
    recipe: Recipe,
    rng: np.random.Generator,
    adversary: Adversary | None = None,
    progress: bool | None = None,
) -> tuple[float, ...]:
    """Train extractor and classifier together, in place.

    Args:
        extractor: from `Units` to rows, with gradients; None where `units` are rows already.
        transform: from rows to rows of a bounded set.
        head: from rows to one score a label.
        units: `Units`, or rows as a tensor, of the training texts.
        codes: their labels, int64, shape `(texts,)`.
        noise: from an epsilon to the layer that adds noise.
        schedule: None for no noise, or an epsilon for each epoch or batch; see `text.schedules`.
        recipe: how long and how fast.
        rng: order, noise and masks follow from it.
        adversary: trains against the extractor.
        progress: show a bar; None shows it for long work on a terminal or in a notebook.

    Returns:
        The mean loss of the classifier in each epoch.

    Raises:
        ValueError: if the loss diverges, or the schedule returns what is no epsilon.
    """
    parts = [head] if extractor is None else [extractor, head]
    weights = [weight for part in parts for weight in part.parameters()]
    rate = recipe.lr
    epochs, size = recipe.epochs_for(len(codes)), recipe.batch
    every = "epoch" if schedule is None else schedules.every_of(schedule)
    add, losses = None, []
    with (
        one_thread(), seeded_torch(rng), warnings.catch_warnings(),
        Progress("training", epochs, progress) as bar,
    ):  # fmt: skip
        # A row of zeros, of a text whose words are all masked, teaches the classifier no more
        # than how often labels occur.
        warnings.simplefilter("ignore", AssumptionWarning)
        for epoch in range(1, epochs + 1):
            order = torch.from_numpy(rng.permutation(len(codes)))
            batches = _batches(units, order, size)
            places, total = order.split(size), 0.0
            for number, (batch, rows) in enumerate(zip(places, batches, strict=True)):
                if schedule is not None and (number == 0 or every == "batch"):
                    add = noise(schedules.epsilon_of(schedule, epoch, epochs, rng))
                raw = rows if extractor is None else extractor(rows)
                _finite(raw.detach().abs().amax(), recipe, epoch, adversary)
                clean = transform(raw)
                if adversary is not None:
                    adversary.step(clean.detach(), batch)
                scores = head(clean if add is None else add(clean))
                loss = torch.nn.functional.cross_entropy(scores, codes[batch].to(scores.device))
                total += _finite(loss, recipe, epoch, adversary) * len(batch)
                if adversary is not None:
                    loss = loss + adversary.penalty(clean, batch)
                _step(loss, weights, rate)
            losses.append(total / len(codes))
            rate *= recipe.decay
            bar.advance(1)
    _finite(head.weight.detach().abs().amax(), recipe, epochs, adversary)
    return tuple(losses)


def _batches(units: Any, order: Any, size: int) -> Any:
    if isinstance(units, Units):
        return units.take(order).batches(size)
    return units[order.to(units.device)].split(size)


def _step(loss: Any, weights: Any, rate: float) -> None:
    """One step of gradient descent: what torch's SGD does, without its 0.1 ms around it."""
    gradients = torch.autograd.grad(loss, weights)
    with torch.no_grad():
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.add_(gradient, alpha=-rate)


def _finite(number: Any, recipe: Recipe, epoch: int, adversary: Adversary | None) -> float:
    """A tensor of one number as a float; an error if it is far or NaN (of many: the largest)."""
    found = float(number.item())
    if not abs(found) < _FAR:
        also = "" if adversary is None else f", as the strength must, {adversary.strength:g}"
        requirement = (
            f"small enough that training does not diverge (it does in epoch {epoch}){also}"
        )
        raise invalid("lr", requirement, recipe.lr)
    return found
