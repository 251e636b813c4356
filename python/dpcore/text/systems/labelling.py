"""What all models have in common that predict the labels of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import instance, invalid
from ...streams import Rng
from ..corpus import Corpus

__all__ = ["Labelling"]


class Labelling:
    """A model that predicts the labels of texts."""

    def predict(self, texts: Sequence[str], *, rng: Rng = None) -> npt.NDArray[Any]:
        """The labels of texts, shape `(len(texts),)`."""
        raise NotImplementedError

    def accuracy(self, corpus: Corpus, *, rng: Rng = None) -> float:
        """The share of texts whose label is predicted.

        Args:
            corpus: texts with labels, such as `corpus.test`.
            rng: of the noise, as in `encode`.

        Raises:
            TypeError: if it is no `Corpus`.
            ValueError: if it has no labels, or the model is not fitted.
        """
        if instance("corpus", corpus, Corpus).labels is None:
            raise invalid("corpus", "one with labels", corpus)
        # A model without noise has no argument for it.
        noise = {} if rng is None else {"rng": rng}
        return float(np.mean(self.predict(corpus.texts, **noise) == corpus.labels))
