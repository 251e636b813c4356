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
"""Type of a list with the word numbers of each text."""
_MIN_VOCABULARY_COUNT: Final = 2
"""Smallest number of occurrences of a word in a vocabulary that is created from training texts."""


@dataclass(frozen=True, repr=False)
class TextRows(Shown):
    """Converter from texts to word numbers for a next-word model.

    Number 0 stands for "<unk>", and numbers 1 to V - 1 for the words of the vocabulary. The model
    predicts only these V numbers. Number V stands for a masked word, and number V + 1 for padding.
    The numbers V and V + 1 are only inputs of the model.

    Args:
        vocabulary: vocabulary of single words, with "<unk>" for unknown words.
        length: largest number of words of a text that the model reads. Further words are left out.
        masked: token that replaces masked words in texts.
    """

    vocabulary: Vocabulary
    length: int
    masked: str

    @property
    def size(self) -> int:
        """Number V of the words that the model can predict, including "<unk>"."""
        return len(self.vocabulary) - len(self.vocabulary.reserved)

    def encode(self, texts: Sequence[str]) -> tuple[Rows, int]:
        """Convert each text to an array of word numbers.

        The result is a pair: the list of arrays, and the number of texts that have more than
        `length` words. Only the first `length` words of a text are converted.
        """
        rows = [np.fromiter(self._word_numbers(text), np.int64) for text in texts]
        return [row[: self.length] for row in rows], sum(len(row) > self.length for row in rows)

    def _word_numbers(self, text: str) -> Iterator[int]:
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

    def count_targets_per_word(self, rows: Rows) -> Ids:
        """Count, for each word of the vocabulary, how often the model must predict it in texts.

        Args:
            rows: the texts, each as an array of word numbers.

        Returns:
            Counts, shape `(V,)`, one per word that the model can predict. The first word of each
            text and masked words are not counted.
        """
        targets = np.concatenate([row[1:] for row in rows])
        return np.bincount(targets[targets < self.size], minlength=self.size)

    def unigram_losses(self, counts: Ids, rows: Rows) -> list[Floats]:
        """Return the loss (in nats) of each word if words are predicted only by their frequency.

        The result is one array per text. The probability of a word is proportional to its count in
        `counts`, plus 1 (Laplace smoothing).
        """
        law = np.log((counts + 1.0) / (counts.sum() + self.size))
        return [-law[row[1:][row[1:] < self.size]] for row in rows]


def repeated_words_without_mask(texts: Sequence[str], mask_token: str) -> Vocabulary:
    """Return a vocabulary of the words that occur at least twice in texts, without mask tokens."""
    kept = (" ".join(word for word in text.split() if word != mask_token) for text in texts)
    unmasked = [text for text in kept if text]
    if not unmasked:
        raise invalid("vocabulary", "given where all words of the texts are masked", None)
    return Vocabulary.from_texts(unmasked, unknown="token", min_count=_MIN_VOCABULARY_COUNT)


@dataclass(frozen=True, kw_only=True, repr=False)
class FitPlan(Shown):
    """Settings of the training of a next-word model: epochs, batch size, learning rate, noise.

    Args:
        optimiser: "sgd" or "adam".
        epochs: largest number of passes over the texts.
        batch: number of texts per step. In private training, this number is an expected value.
        lr: learning rate of the first step.
        hidden: number of entries of the LSTM state.
        layers: number of layers of the LSTM.
        dropout: share of the entries that dropout sets to 0 in training.
        delta: delta of the (epsilon, delta) guarantee. In training without privacy, `delta` and the
            three fields below are None.
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
        """True if the training with these settings is DP-SGD, even if the noise is 0."""
        return self.sigma is not None


def make_accountant(plan: FitPlan, steps: int, kind: str = "PRVAccountant") -> Any:
    """Return a privacy accountant of Opacus that has recorded `steps` training steps.

    Args:
        plan: plan with the noise multiplier `sigma` and the sampling rate `rate`.
        steps: number of training steps.
        kind: class name of the accountant, "PRVAccountant" or "RDPAccountant".
    """
    accountant = getattr(require_module("opacus.accountants", "a private next-word model"), kind)()
    accountant.history = [(plan.sigma, plan.rate, steps)]
    return accountant


@contextmanager
def ignore_rdp_order_warnings() -> Iterator[None]:
    """Hide the warnings of Opacus about the orders of its RDP accountant."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Optimal order is the")
        yield
