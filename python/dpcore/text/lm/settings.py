"""Settings of a next-word model: how texts become numbers, and how it is trained."""

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
"""For each text the numbers of its words."""
_MIN_VOCABULARY_COUNT: Final = 2
"""Occurrences that a word needs to be in a vocabulary made of the training texts."""


@dataclass(frozen=True, repr=False)
class TextRows(Shown):
    """Texts as numbers: the words that can be predicted come first, then two inputs.

    Numbers 0 to V - 1 stand for "<unk>" and the words of the vocabulary: these have a
    probability. V stands for a masked word, V + 1 for padding: they are read, and never predicted.

    Args:
        vocabulary: see `check_vocabulary`.
        length: words of a text that are read; the others are cut.
        masked: the token that stands for a masked word.
    """

    vocabulary: Vocabulary
    length: int
    masked: str

    @property
    def size(self) -> int:
        """Number of words that have a probability, "<unk>" among them."""
        return len(self.vocabulary) - len(self.vocabulary.reserved)

    def encode(self, texts: Sequence[str]) -> tuple[Rows, int]:
        """Return the numbers of the words of every text, and the number of texts that were cut."""
        rows = [np.fromiter(self._numbers(text), np.int64) for text in texts]
        return [row[: self.length] for row in rows], sum(len(row) > self.length for row in rows)

    def _numbers(self, text: str) -> Iterator[int]:
        """Yield numbers: runs between mask tokens are split by the vocabulary's own function."""
        first = len(self.vocabulary.reserved)
        for is_mask, run in groupby(text.split(), self.masked.__eq__):
            if is_mask:
                yield from (self.size for _ in run)
                continue
            for number in self.vocabulary.spans(" ".join(run))[0]:
                # A word that is spelt as a reserved name is no word to be predicted.
                yield number - first if number >= first else self.size

    def count_targets(self, rows: Rows) -> Ids:
        """Count how often each word is a target: all words but the first of a text, no masks.

        Returns:
            Counts, shape `(V,)`.
        """
        targets = np.concatenate([row[1:] for row in rows])
        return np.bincount(targets[targets < self.size], minlength=self.size)

    def unigram_losses(self, counts: Ids, rows: Rows) -> list[Floats]:
        """Return for each row the losses of its targets by counts, one added to each (Laplace)."""
        law = np.log((counts + 1.0) / (counts.sum() + self.size))
        return [-law[row[1:][row[1:] < self.size]] for row in rows]


def make_vocabulary(texts: Sequence[str], masked: str) -> Vocabulary:
    """Make a vocabulary of the words that occur twice in texts, without the token of masks."""
    kept = (" ".join(word for word in text.split() if word != masked) for text in texts)
    unmasked = [text for text in kept if text]
    if not unmasked:
        raise invalid("vocabulary", "given where all words of the texts are masked", None)
    return Vocabulary.from_texts(unmasked, unknown="token", min_count=_MIN_VOCABULARY_COUNT)


@dataclass(frozen=True, kw_only=True, repr=False)
class FitPlan(Shown):
    """Length, speed and size of a training, and the noise of a private one.

    Args:
        optimiser: "sgd" or "adam".
        epochs: passes over the texts, at most.
        batch: texts in a step; the expected number if batches are drawn by Poisson sampling.
        lr: rate of the first step.
        hidden: entries of a state.
        layers: of the LSTM.
        dropout: share of dropped entries.
        delta: at which epsilon is to hold, or None of a plain training, as all that follow.
        sigma: noise multiplier: standard deviation divided by `clip`.
        clip: largest norm of a record's gradient.
        rate: probability with which a record is in a batch.
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
        """True for the private recipe, with noise or without."""
        return self.sigma is not None


def make_accountant(plan: FitPlan, steps: int, kind: str = "PRVAccountant") -> Any:
    """Return an accountant of Opacus that has counted steps.

    Args:
        plan: sigma and rate.
        steps: number of steps.
        kind: its class, "PRVAccountant" or "RDPAccountant".
    """
    accountant = getattr(require_module("opacus.accountants", "a private next-word model"), kind)()
    accountant.history = [(plan.sigma, plan.rate, steps)]
    return accountant


@contextmanager
def ignore_order_warnings() -> Iterator[None]:
    """Ignore Opacus' warnings about RDP orders: its PRV accountant uses RDP for a grid only."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Optimal order is the")
        yield
