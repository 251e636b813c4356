"""A training corpus whose texts have been cut into words and word pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from ...errors import instance, invalid
from ...records import Shown
from ...torch.needed import torch
from ..corpus import Corpus
from ..vocabulary import Vocabulary
from .bag import Units, units_of

__all__ = ["Prepared", "labels_of", "training_part"]


@dataclass(frozen=True, slots=True, eq=False)
class Prepared(Shown):
    """Texts of a corpus as `TextClassifier.prepare` encodes them.

    Attributes:
        part: the labelled training texts.
        vocabulary: their words and word pairs.
        units: the same as numbers.
        kind: what the vocabulary depends on, apart from the texts: what becomes of unknown words,
            how often a word must occur, the reserved names.
    """

    part: Corpus
    vocabulary: Vocabulary
    units: Units
    kind: tuple[Any, ...]

    @classmethod
    def of(
        cls,
        corpus: Any,
        unknown: Literal["drop", "token"],
        min_count: int,
        reserved: tuple[str, ...],
    ) -> Self:
        """Cut the training texts of a corpus."""
        part = training_part(corpus)
        vocabulary = Vocabulary.from_texts(
            part.texts, unknown=unknown, min_count=min_count, ngrams=2, reserved=reserved
        )
        units = units_of(vocabulary, part.texts)
        return cls(part, vocabulary, units, (unknown, min_count, reserved))

    def __repr__(self) -> str:
        """Return the number of texts, and the vocabulary."""
        return f"Prepared({len(self.units):,} texts, {self.vocabulary!r})"


def training_part(corpus: Any) -> Corpus:
    """Return the labelled texts to train on: the train part, or all texts without a split."""
    whole = instance("corpus", corpus, Corpus)
    part: Corpus = whole if whole.split is None else whole.train
    if part.labels is None:
        raise invalid("corpus", "one with labels", corpus)
    return part


def labels_of(part: Corpus) -> tuple[Any, Any]:
    """Return the values of the labels, and the number of each text's, an int64 tensor.

    Raises:
        ValueError: if all texts have one label.
    """
    labels, codes = np.unique(part.labels, return_inverse=True)
    if len(labels) < 2:
        raise invalid("labels", "of two values at least in the training texts", labels.tolist())
    return labels, torch.from_numpy(codes.reshape(-1).astype(np.int64))
