"""Perplexity of a next-word model: its value with an interval, beside unigram and uniform."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...errors import invalid
from ...records import Record

__all__ = ["Perplexity", "measure_perplexity", "smooth_unigram"]

Floats = npt.NDArray[np.float64]

_REPLICATES: Final = 1000


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Perplexity(Record):
    """The perplexity of next words in texts: ``exp`` of the mean loss of a word, in nats.

    Args:
        value: of the model.
        low: lower end of the interval: percentile bootstrap of 1,000 samples of texts.
        high: upper end.
        confidence: of the interval.
        unigram: perplexity of the frequencies of the training texts, or None if they are not known.
        uniform: number of words that have a probability.
        texts: texts that were measured.
        left_out: texts that were left out because they are training texts; None if the training
            texts are not known.
        targets: words that were predicted.
        unknown: share of the words of these texts that the vocabulary lacks; all of them are
            predicted as one word, "<unk>".
        seed: repeats the bootstrap.
    """

    value: float
    low: float
    high: float
    confidence: float
    unigram: float | None
    uniform: int
    texts: int
    left_out: int | None
    targets: int
    unknown: float
    seed: int

    @property
    def log_value(self) -> float:
        """Mean loss of a word, in nats."""
        return math.log(self.value)

    def __str__(self) -> str:
        """Value, interval and what was measured, in one line."""
        level = f"{100.0 * self.confidence:g} %"
        unigram = "" if self.unigram is None else f"unigram {self.unigram:.4g}, "
        left = (
            "training texts not known, none left out" if self.left_out is None
            else f"{self.left_out:,} training texts left out"
        )  # fmt: skip
        return (
            f"perplexity {self.value:.4g} [{self.low:.4g}, {self.high:.4g}] ({level}, resampled "
            f"texts); {unigram}uniform {self.uniform:,}; {self.targets:,} words of "
            f"{self.texts:,} texts, {left}; {100.0 * self.unknown:.2g} % of the words unknown"
        )


def smooth_unigram(counts: npt.NDArray[np.int64]) -> Floats:
    """Return the log-probabilities of words by their counts, one added to each (Laplace)."""
    found: Floats = np.log((counts + 1.0) / (counts.sum() + counts.size))
    return found


def measure_perplexity(
    losses: Sequence[Floats],
    unigram: Sequence[Floats] | None,
    facts: dict[str, Any],
    confidence: float,
    seed: int,
) -> Perplexity:
    """Compute the perplexity from the losses of the words of each text.

    Args:
        losses: for each text the losses of its targets, in nats; may be empty.
        unigram: the same losses by the frequencies of the training texts, or None.
        facts: the other fields of `Perplexity`.
        confidence: of the interval.
        seed: of the bootstrap.

    Raises:
        ValueError: if no word is predicted.
    """
    sums = np.array([part.sum() for part in losses])
    sizes = np.array([part.size for part in losses])
    if not sizes.sum():
        raise invalid("texts", "texts with a second word that is not masked", "none")
    drawn = np.random.default_rng(seed).multinomial(
        len(sizes), np.full(len(sizes), 1.0 / len(sizes)), size=_REPLICATES
    )
    tails = [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0]
    # A sample of texts without targets has no mean; such samples are left out of the quantiles.
    means = drawn @ sums / np.maximum(drawn @ sizes, 1)
    low, high = np.exp(np.quantile(means[drawn @ sizes > 0], tails))
    common = (
        None if unigram is None
        else float(np.exp(sum(part.sum() for part in unigram) / sizes.sum()))
    )  # fmt: skip
    return Perplexity(
        float(np.exp(sums.sum() / sizes.sum())), float(low), float(high), confidence, common,
        texts=len(sizes), targets=int(sizes.sum()), seed=seed, **facts,
    )  # fmt: skip
