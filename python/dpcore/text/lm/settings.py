"""Settings of a next-word model: conversion of texts to word numbers, and training plan."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...errors import invalid
from ...packages import require_module
from ...records import Floats
from ...report.shown import Shown
from ..corpus import Vocabulary

Ids = npt.NDArray[np.int64]
Rows = Sequence[Ids]
"""Word numbers of each text."""
_MIN_VOCABULARY_COUNT: Final = 2
"""Smallest number of occurrences of a word in a vocabulary that is created from training texts."""


@dataclass(frozen=True, repr=False)
class TextRows(Shown):
    """Converter from texts to word numbers for a next-word model.

    Number 0 is "<unk>", and numbers 1 to V - 1 are the words of the vocabulary. The model gives
    these V numbers a probability. Number V is a masked word, and number V + 1 is padding. Masked
    words and padding can be inputs, but the model never predicts them.

    Args:
        vocabulary: vocabulary of single words, with "<unk>" for unknown words.
        length: largest number of words of a text that the model reads. Further words are left out.
        masked: token that replaces masked words.
    """

    vocabulary: Vocabulary
    length: int
    masked: str

    @property
    def size(self) -> int:
        """Number V of the words that have a probability, including "<unk>"."""
        return len(self.vocabulary) - len(self.vocabulary.reserved)

    def encode(self, texts: Sequence[str]) -> tuple[Rows, int]:
        """Return the word numbers of each text, and the number of texts with left-out words."""
        rows = [np.fromiter(self._numbers(text), np.int64) for text in texts]
        return [row[: self.length] for row in rows], sum(len(row) > self.length for row in rows)

    def _numbers(self, text: str) -> Iterator[int]:
        """Yield the word numbers of a text, with the number V for each mask token."""
        first = len(self.vocabulary.reserved)
        for is_mask, run in groupby(text.split(), self.masked.__eq__):
            if is_mask:
                yield from (self.size for _ in run)
                continue
            for number in self.vocabulary.spans(" ".join(run))[0]:
                # A word that is spelt like a reserved name cannot be predicted, so it counts as
                # masked.
                yield number - first if number >= first else self.size

    def count_targets(self, rows: Rows) -> Ids:
        """Count how often each word is a target, that is, a word to predict.

        Returns:
            Counts, shape `(V,)`. The first word of each text is not a target, and masked words are
            not targets.
        """
        targets = np.concatenate([row[1:] for row in rows])
        return np.bincount(targets[targets < self.size], minlength=self.size)

    def unigram_losses(self, counts: Ids, rows: Rows) -> list[Floats]:
        """Return the losses (in nats) of the words to predict, under word frequencies.

        The frequencies are proportional to the counts plus 1 (Laplace smoothing).
        """
        law = np.log((counts + 1.0) / (counts.sum() + self.size))
        return [-law[row[1:][row[1:] < self.size]] for row in rows]


def make_vocabulary(texts: Sequence[str], masked: str) -> Vocabulary:
    """Return a vocabulary of the words that occur at least twice, without the mask token."""
    kept = (" ".join(word for word in text.split() if word != masked) for text in texts)
    unmasked = [text for text in kept if text]
    if not unmasked:
        raise invalid("vocabulary", "given where all words of the texts are masked", None)
    return Vocabulary.from_texts(unmasked, unknown="token", min_count=_MIN_VOCABULARY_COUNT)


@dataclass(frozen=True, kw_only=True, repr=False)
class FitPlan(Shown):
    """Settings of a training: epochs, batch size, learning rate, model size and noise.

    Args:
        optimiser: "sgd" or "adam".
        epochs: largest number of passes over the texts.
        batch: number of texts per step. For Poisson batches, it is the expected number.
        lr: learning rate of the first step.
        hidden: number of entries of the LSTM state.
        layers: number of layers of the LSTM.
        dropout: share of the entries that dropout sets to 0 in training.
        delta: delta of the (epsilon, delta) guarantee. `delta`, `sigma`, `clip` and `rate` are None
            for training without privacy.
        sigma: noise multiplier of DP-SGD: the standard deviation of the noise divided by `clip`.
        clip: largest L2 norm of the gradient of one text (the clipping norm).
        rate: probability that a text is in a batch.
    """

    optimiser: str
    epochs: int
    batch: int
    lr: float
    hidden: int
    layers: int
    dropout: float
    delta: float | None = None
    sigma: float | None = None
    clip: float | None = None
    rate: float | None = None

    @property
    def is_private(self) -> bool:
        """True for training by DP-SGD, even if the noise is 0."""
        return self.sigma is not None


def make_accountant(plan: FitPlan, steps: int, kind: str = "PRVAccountant") -> Any:
    """Return an Opacus privacy accountant that has recorded a number of steps.

    Args:
        plan: plan with the noise multiplier `sigma` and the sampling rate `rate`.
        steps: number of steps.
        kind: class name of the accountant, "PRVAccountant" or "RDPAccountant".
    """
    accountant = getattr(require_module("opacus.accountants", "a private next-word model"), kind)()
    accountant.history = [(plan.sigma, plan.rate, steps)]
    return accountant


@contextmanager
def ignore_order_warnings() -> Iterator[None]:
    """Hide Opacus' warnings about RDP orders, which do not affect its PRV accountant."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Optimal order is the")
        yield
