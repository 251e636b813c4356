"""Training on one thread: recipes, records, whole epochs; and classifiers behind an extractor."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol, Self

import numpy as np

from ...errors import AssumptionWarning, integer, invalid, real
from ...progress import Progress
from ...records import Shown
from ...streams.generators import seeded_torch
from ...torch.needed import torch
from .. import schedules
from .bag import Units

__all__ = [
    "STEPS", "Adversary", "Recipe", "Trained", "make_recipe", "one_thread",
    "require_convergence", "run_epochs", "train",
]  # fmt: skip

STEPS: Final = 2226
"""Steps of the study: 5 epochs of 28,500 texts in batches of 64."""
_DEFAULT_EPOCH_RANGE: Final = (5, 35)
"""Fewest and most epochs where none are given."""
_DIVERGED_LOSS: Final = 1e12
"""A loss or an entry beyond that has diverged: noise of scale 10^4 keeps both below 10^6."""
_RECIPE_LIMITS: Final[dict[str, dict[str, Any]]] = {
    "lr": {"low": 0.0, "high": 1e30, "open_low": True},
    "decay": {"low": 0.0, "high": 1.0, "open_low": True},
    "dropout": {"low": 0.0, "high": 1.0, "open_high": True},
    "strength": {"low": 0.0, "high": 1e30},
    "reconstruction": {"low": 0.0, "high": 1e30},
}
"""Ranges of the numbers of a recipe."""


@dataclass(frozen=True, slots=True, repr=False)
class Recipe(Shown):
    """Length and rates of a training; None for what a system does not have.

    Attributes:
        epochs: passes over the texts; None for as many as make the study's 2,226 steps, from 5
            to 35.
        batch: texts in a step.
        lr: learning rate of the first epoch.
        decay: by which it is multiplied after every epoch.
        dropout: share of the decoder's input words that are hidden.
        strength: weight of the discriminator's loss.
        reconstruction: weight of the decoder's loss.
    """

    epochs: int | None
    batch: int
    lr: float
    decay: float | None = None
    dropout: float | None = None
    strength: float | None = None
    reconstruction: float | None = None

    def epochs_for(self, texts: int) -> int:
        """Return the epochs over so many texts.

        Example:
            >>> recipe = make_recipe(None, 64, 2.0)
            >>> recipe.epochs_for(10_001), recipe.epochs_for(4_000)
            (14, 35)
        """
        if self.epochs is not None:
            return self.epochs
        fewest, most = _DEFAULT_EPOCH_RANGE
        return min(most, max(fewest, round(STEPS / -(-texts // self.batch))))


def make_recipe(epochs: Any, batch: Any, lr: Any, **others: Any) -> Recipe:
    """Check the arguments of a training and return them.

    Raises:
        TypeError: if an argument is no number.
        ValueError: if it is out of range.
    """
    epochs = None if epochs is None else integer("epochs", epochs, 1)
    batch, others = integer("batch", batch, 1), {"lr": lr, **others}
    checked = {name: real(name, value, **_RECIPE_LIMITS[name]) for name, value in others.items()}
    return Recipe(epochs, batch, **checked)


@dataclass(frozen=True, slots=True, repr=False)
class Trained(Recipe):
    """Record of a training: its recipe, and what became of it.

    Attributes:
        texts: number of training texts.
        cut: number of those that had more words than are read; None where all words are.
        schedule: the training noise in words; empty where there was none.
        seed: repeats it.
        threads: of torch on the CPU.
        losses: mean loss in each epoch: of the labels, or of a word where there are none.
        epsilons: the epsilon after each epoch, learnt or fixed, where it can be learnt.
        partial: True if Ctrl-C ended it early: it then holds the last whole epoch.
    """

    texts: int = 0
    cut: int | None = None
    schedule: str = ""
    seed: int = 0
    threads: int = 1
    losses: tuple[float, ...] = ()
    epsilons: tuple[float, ...] = ()
    partial: bool = False

    @classmethod
    def from_plain(cls, words: dict[str, Any]) -> Self:
        """Return the record that was saved as plain data."""
        try:
            lists = {"losses": tuple(words["losses"]), "epsilons": tuple(words.get("epsilons", ()))}
            return cls(**{**words, **lists})
        except (TypeError, KeyError) as error:
            raise invalid("trained in config.json", "what save_pretrained wrote", error) from None

    def __str__(self) -> str:
        """Format the record in one line."""
        cut = "" if self.cut is None else f" ({self.cut:,} of them cut)"
        ended = f", INTERRUPTED after {len(self.losses)}" if self.partial else ""
        decay = "" if self.decay is None else f" x {self.decay:g} an epoch"
        more = f"noise {self.schedule}" if self.schedule else "no noise"
        if self.strength is not None:
            more = f"discriminator x {self.strength:g}, reconstruction x {self.reconstruction:g}"
        return (
            f"on {self.texts:,} texts{cut}, {self.epochs} epochs{ended} in batches of "
            f"{self.batch}, learning rate {self.lr:g}{decay}, {more}, seed {self.seed}; "
            f"last loss {self.losses[-1]:.4g}"
        )


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch on one thread: layers this small gain nothing by two; sums keep their order."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def run_epochs(
    run_epoch: Callable[[int], float],
    epochs: int,
    weights: list[Any],
    rng: np.random.Generator,
    progress: bool | None,
    *,
    patience: float = math.inf,
) -> tuple[tuple[float, ...], bool]:
    """Run epochs on one thread of torch; after Ctrl-C the weights are those of the last whole one.

    Args:
        run_epoch: trains for an epoch, counted from 1, and returns its mean loss.
        epochs: how many.
        weights: what is trained.
        rng: torch's default generator follows from it.
        progress: show a bar; None shows it for long work on a terminal or in a notebook.
        patience: epochs in a row without a new least loss, after which no other follows.

    Returns:
        The loss of each whole epoch, and True if Ctrl-C ended the training early.

    Raises:
        KeyboardInterrupt: on Ctrl-C before the first epoch has ended.
    """
    losses: tuple[float, ...] = ()
    kept: list[Any] = []
    with one_thread(), seeded_torch(rng), Progress("training", epochs, progress) as bar:
        try:
            for epoch in range(1, epochs + 1):
                loss = run_epoch(epoch)
                copies = [weight.detach().clone() for weight in weights]
                kept, losses = copies, (*losses, loss)
                bar.advance(1)
                if len(losses) - losses.index(min(losses)) > patience:
                    break
        except KeyboardInterrupt:
            if not losses:
                raise
            with torch.no_grad():
                for weight, value in zip(weights, kept, strict=True):
                    weight.copy_(value)
            return losses, True
    return losses, False


def require_convergence(
    is_small: bool, lr: float, epoch: int, strength: float | None = None
) -> None:
    """Raise an error with the epoch and the rate where a loss or a weight is too large, or NaN."""
    if not is_small:
        also = f", as the strength must, {strength:g}" if strength else ""
        requirement = (
            f"small enough that training does not diverge (it does in epoch {epoch}){also}"
        )
        raise invalid("lr", requirement, lr)


class Adversary(Protocol):
    """An opponent that trains against the extractor: a baseline adds it to every step.

    Attributes:
        strength: what the penalty is multiplied with.
        weights: those that it trains.
    """

    strength: float
    weights: list[Any]

    def step(self, rows: Any, batch: Any) -> None:
        """Take its own step: learn from vectors, detached, of the texts at places `batch`."""

    def penalty(self, rows: Any, batch: Any) -> Any:
        """Return the term that is added to the loss; it must not change extractor or classifier."""


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
) -> tuple[tuple[float, ...], bool]:
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
        The mean loss of the classifier in each epoch, and True if Ctrl-C ended it early: the
        weights are those after the last whole epoch.

    Raises:
        KeyboardInterrupt: on Ctrl-C before the first epoch has ended.
        ValueError: if the loss diverges, or the schedule returns what is no epsilon.
    """
    parts = [head] if extractor is None else [extractor, head]
    weights = [weight for part in parts for weight in part.parameters()]
    rate, add = recipe.lr, None
    epochs, size = recipe.epochs_for(len(codes)), recipe.batch
    every = "epoch" if schedule is None else schedules.every_of(schedule)
    strength = None if adversary is None else adversary.strength

    def check(number: Any, epoch: int) -> float:
        found = float(number.item())
        require_convergence(abs(found) < _DIVERGED_LOSS, recipe.lr, epoch, strength)
        return found

    def run_epoch(epoch: int) -> float:
        nonlocal add, rate
        order = torch.from_numpy(rng.permutation(len(codes)))
        batches = _split_into_batches(units, order, size)
        places, total = order.split(size), 0.0
        for number, (batch, rows) in enumerate(zip(places, batches, strict=True)):
            if schedule is not None and (number == 0 or every == "batch"):
                add = noise(schedules.epsilon_of(schedule, epoch, epochs, rng))
            raw = rows if extractor is None else extractor(rows)
            check(raw.detach().abs().amax(), epoch)
            clean = transform(raw)
            if adversary is not None:
                adversary.step(clean.detach(), batch)
            scores = head(clean if add is None else add(clean))
            loss = torch.nn.functional.cross_entropy(scores, codes[batch].to(scores.device))
            total += check(loss, epoch) * len(batch)
            if adversary is not None:
                loss = loss + adversary.penalty(clean, batch)
            _descend_gradient(loss, weights, rate)
        assert recipe.decay is not None
        rate *= recipe.decay
        return total / len(codes)

    with warnings.catch_warnings():
        # A row of zeros, of a text whose words are all masked, teaches the classifier no more
        # than how often labels occur.
        warnings.simplefilter("ignore", AssumptionWarning)
        trained = weights if adversary is None else [*weights, *adversary.weights]
        losses, partial = run_epochs(run_epoch, epochs, trained, rng, progress)
    check(head.weight.detach().abs().amax(), epochs)
    return losses, partial


def _split_into_batches(units: Any, order: Any, size: int) -> Any:
    if isinstance(units, Units):
        return units.take(order).batches(size)
    return units[order.to(units.device)].split(size)


def _descend_gradient(loss: Any, weights: Any, rate: float) -> None:
    """Take one step of gradient descent, as torch's SGD does, without its overhead of 0.1 ms."""
    gradients = torch.autograd.grad(loss, weights)
    with torch.no_grad():
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.add_(gradient, alpha=-rate)
