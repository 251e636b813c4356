"""Settings of a next-word model: the conversion of texts to numbers, and the training plan."""

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
    """Converter from texts to numbers; the words that can be predicted have the lowest numbers.

    Numbers 0 to V - 1 are "<unk>" and the words of the vocabulary, which have a probability. V is a
    masked word and V + 1 is padding. These two can only be inputs and are never predicted.

    Args:
        vocabulary: see `_check_vocabulary` of `model`.
        length: largest number of words of a text that are read; further words are cut.
        masked: token that replaces masked words.
    """

    vocabulary: Vocabulary
    length: int
    masked: str

    @property
    def size(self) -> int:
        """Number V of words that have a probability, including "<unk>"."""
        return len(self.vocabulary) - len(self.vocabulary.reserved)

    def encode(self, texts: Sequence[str]) -> tuple[Rows, int]:
        """Return the word numbers of each text, and the number of texts that were cut."""
        rows = [np.fromiter(self._numbers(text), np.int64) for text in texts]
        return [row[: self.length] for row in rows], sum(len(row) > self.length for row in rows)

    def _numbers(self, text: str) -> Iterator[int]:
        """Yield the numbers of a text; text between mask tokens is split by the tokeniser."""
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
        """Count the targets by word: all words except the first of each text, without masks.

        Returns:
            Counts, shape `(V,)`.
        """
        targets = np.concatenate([row[1:] for row in rows])
        return np.bincount(targets[targets < self.size], minlength=self.size)

    def unigram_losses(self, counts: Ids, rows: Rows) -> list[Floats]:
        """Return the losses of the targets of each row from counts plus 1 (Laplace smoothing)."""
        law = np.log((counts + 1.0) / (counts.sum() + self.size))
        return [-law[row[1:][row[1:] < self.size]] for row in rows]


def make_vocabulary(texts: Sequence[str], masked: str) -> Vocabulary:
    """Create a vocabulary of the words that occur twice in texts, without the mask token."""
    kept = (" ".join(word for word in text.split() if word != masked) for text in texts)
    unmasked = [text for text in kept if text]
    if not unmasked:
        raise invalid("vocabulary", "given where all words of the texts are masked", None)
    return Vocabulary.from_texts(unmasked, unknown="token", min_count=_MIN_VOCABULARY_COUNT)


@dataclass(frozen=True, kw_only=True, repr=False)
class FitPlan(Shown):
    """Plan of a training: length, rates and sizes, and the noise of private training.

    Args:
        optimiser: "sgd" or "adam".
        epochs: largest number of passes over the texts.
        batch: number of texts per step; the expected number for Poisson batches.
        lr: learning rate of the first step.
        hidden: number of entries of a state.
        layers: number of layers of the LSTM.
        dropout: share of dropped entries.
        delta: delta at which epsilon holds. This field and all following fields are None for plain
            training.
        sigma: noise multiplier: standard deviation of the noise divided by `clip`.
        clip: largest norm of the gradient of a record.
        rate: probability that a record is in a batch.
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
        """True for the private recipe, with or without noise."""
        return self.sigma is not None


def make_accountant(plan: FitPlan, steps: int, kind: str = "PRVAccountant") -> Any:
    """Return an Opacus accountant with a history of these steps.

    Args:
        plan: plan with sigma and rate.
        steps: number of steps.
        kind: class of the accountant, "PRVAccountant" or "RDPAccountant".
    """
    accountant = getattr(require_module("opacus.accountants", "a private next-word model"), kind)()
    accountant.history = [(plan.sigma, plan.rate, steps)]
    return accountant


@contextmanager
def ignore_order_warnings() -> Iterator[None]:
    """Ignore Opacus' warnings about RDP orders; its PRV accountant uses RDP only for a grid."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Optimal order is the")
        yield
