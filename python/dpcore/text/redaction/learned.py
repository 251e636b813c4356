"""A policy that is learned from word vectors; torch is loaded by `fit`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from ...errors import instance, integer, real
from ...hints import hinted
from ...mechanisms.texts import texts_of
from ...records import frozen_array
from ...streams import Rng, seed_of
from ..needed import needed
from ..vocabulary import words_of
from ..words.embedding import Embedding
from .masking import Levels, fingerprint_texts, split_words
from .policies import FrozenPolicy, rank_levels, require_words

__all__ = ["Learned"]

Floats = npt.NDArray[np.float64]

_THRESHOLD_SHARPNESS: Final = 50.0
"""Factor T of the soft threshold ``sigmoid(T (rank - k-th rank))``."""

_DOCUMENTS_PER_BATCH: Final = 64
_LEARNING_RATE: Final = 3e-3
_ADDED_VARIANCE: Final = 1e-4


@hinted
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Learned(FrozenPolicy, word="redaction.Learned"):
    """Words ranked by a network that makes two sets of texts alike with a share of words masked.

    The network maps the vector of a word to a rank: four linear layers, tanh after three of them
    and a sigmoid after the last. `fit` masks the highest ranks of each text softly, averages the
    vectors that are left, and lowers the divergence between both sets. Training may end in a poor
    minimum: on generated texts with a planted word one seed of ten masked it last. A word without
    a vector is masked last. That a divergence of averages is small does not show that an attack
    fails.

    Args:
        vectors: vectors of words, in lower case as `words_of` has them.
        share: share of words that is masked in training, in (0, 1).
        hidden: units of each of the three hidden layers.
        epochs: passes over the smaller set.
        parameters: all weights of the network, set by `fit`.
        fitted_on: numbers that stand for the fitted texts, set by `fit`.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if a number is out of range.

    Source:
        Gusain and Leith (2025), Improving Privacy Benefits of Redaction. The divergence here is
        that of Gaussians of independent entries, in both directions.

    Example:
        >>> Learned(Embedding(["a", "b"], [[0.0], [1.0]])).is_fitted
        False
    """

    vectors: Embedding
    share: float = 0.3
    hidden: int = 64
    epochs: int = 30
    parameters: Any = ()
    fitted_on: frozenset[int] = frozenset()

    name: ClassVar[str] = "learned"
    needs_fit: ClassVar[bool] = True
    is_fit_random: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check and freeze the fields."""
        instance("vectors", self.vectors, Embedding)
        real("share", self.share, low=0.0, high=1.0, open_low=True, open_high=True)
        integer("hidden", self.hidden, 1)
        integer("epochs", self.epochs, 1)
        parameters = frozen_array(np.asarray(self.parameters, np.float64))
        object.__setattr__(self, "parameters", parameters)

    @property
    def is_fitted(self) -> bool:
        """True after `fit`."""
        return bool(self.parameters.size)

    def fit(self, sensitive: Any, safe: Any, *, rng: Rng = None) -> Learned:
        """Return a policy fitted on two sets of texts.

        Args:
            sensitive: texts, none of them empty.
            safe: texts of the other set.
            rng: of the first weights and the batches: None, an int seed or a numpy Generator.

        Returns:
            A new policy; this one is unchanged.

        Raises:
            ModuleNotFoundError: without torch.
            ValueError: if a set or a text is empty.
        """
        sets = texts_of("sensitive", sensitive), texts_of("safe", safe)
        torch = needed("torch", "redaction.Learned")
        generator = np.random.default_rng(seed_of(rng))
        scaled = self._scale_vectors()
        vectors = [self._vectors_of(text, scaled)[0] for one in sets for text in one]
        # A word that is repeated passes the network once; single precision halves the time.
        unique, ids = np.unique(np.concatenate(vectors), axis=0, return_inverse=True)
        table = torch.from_numpy(np.vstack([unique, np.zeros_like(unique[:1])])).float()
        texts = np.split(ids.ravel(), np.cumsum([len(one) for one in vectors])[:-1])
        rows = texts[: len(sets[0])], texts[len(sets[0]) :]
        layers = [
            torch.from_numpy(generator.normal(size=shape) / shape[0] ** 0.5)
            .float()
            .requires_grad_()
            for size, after in pairwise(self._sizes)
            for shape in ((size, after), (1, after))
        ]
        optimiser = torch.optim.Adam(layers, lr=_LEARNING_RATE)
        batch = min(_DOCUMENTS_PER_BATCH, *map(len, rows))
        for _ in range(self.epochs * (min(map(len, rows)) // batch)):
            chosen = [[one[i] for i in generator.permutation(len(one))[:batch]] for one in rows]
            loss = _symmetric_gaussian_divergence(
                *(self._soften(torch, layers, table, one) for one in chosen)
            )
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        parameters = np.concatenate([one.detach().numpy().ravel() for one in layers])
        return replace(self, parameters=parameters, fitted_on=fingerprint_texts(sets[0] + sets[1]))

    def __call__(self, documents: Sequence[str], rng: np.random.Generator) -> list[Levels]:
        """Return the levels of the words of each document; nothing is drawn."""
        require_words(self)
        found, scaled = [], self._scale_vectors()
        for text in documents:
            rows, known = self._vectors_of(text, scaled)
            found.append(rank_levels(np.where(known, self._rank(rows), -np.inf)))
        return found

    @property
    def _sizes(self) -> tuple[int, ...]:
        return self.vectors.dim, self.hidden, self.hidden, self.hidden, 1

    def _scale_vectors(self) -> Floats:
        scaled: Floats = self.vectors.vectors / max(float(self.vectors.vectors.std()), 1e-12)
        return scaled

    def _vectors_of(self, text: str, scaled: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return the mean vector of the known parts of each word, and True where there is one."""
        words = split_words(text)
        rows, known = np.zeros((len(words), self.vectors.dim)), np.zeros(len(words), bool)
        for place, word in enumerate(words):
            parts = [self.vectors.rows[part] for part in words_of(word) if part in self.vectors]
            if parts:
                rows[place], known[place] = scaled[parts].mean(axis=0), True
        return rows, known

    def _rank(self, rows: Floats) -> Floats:
        at = 0
        for size, after in pairwise(self._sizes):
            weights = self.parameters[at : at + size * after].reshape(size, after)
            at += (size + 1) * after
            outputs = rows @ weights + self.parameters[at - after : at]
            rows = np.tanh(outputs)
        # The sigmoid of the last layer would not change the order.
        ranks: Floats = outputs[:, 0]
        return ranks

    def _soften(self, torch: Any, layers: Sequence[Any], table: Any, texts: Sequence[Any]) -> Any:
        """Return the mean vector of each text, its highest ranks masked softly."""
        sizes = np.array([len(one) for one in texts])
        # After the last word of a text stands the row of zeros.
        padded = np.full((len(texts), sizes.max()), len(table) - 1)
        for row, one in zip(padded, texts, strict=True):
            row[: len(one)] = one
        words, places = np.unique(padded, return_inverse=True)
        ranks = table[torch.from_numpy(words)]
        for place in range(0, len(layers), 2):
            ranks = ranks @ layers[place] + layers[place + 1]
            ranks = torch.tanh(ranks) if place < len(layers) - 2 else torch.sigmoid(ranks)
        ranks = ranks[torch.from_numpy(places.reshape(padded.shape)), 0]
        ranks = ranks.masked_fill(torch.from_numpy(padded == len(table) - 1), -1.0)
        masks = np.maximum(1, (self.share * sizes + 0.5).astype(np.int64))
        ordered = ranks.sort(dim=1, descending=True).values
        threshold = ordered.gather(1, torch.from_numpy(masks[:, None] - 1))
        kept = torch.sigmoid(_THRESHOLD_SHARPNESS * (threshold - ranks))
        sums = (kept[:, None, :] @ table[torch.from_numpy(padded)])[:, 0, :]
        return sums / torch.from_numpy(sizes[:, None])


def _symmetric_gaussian_divergence(first: Any, second: Any) -> Any:
    """Return the divergences of Gaussians with independent entries, both directions added."""
    (mean, variance), (other, other_variance) = (
        (rows.mean(dim=0), rows.var(dim=0, correction=0) + _ADDED_VARIANCE)
        for rows in (first, second)
    )
    gap = (mean - other) ** 2
    return 0.5 * ((variance + gap) / other_variance + (other_variance + gap) / variance - 2.0).sum()
