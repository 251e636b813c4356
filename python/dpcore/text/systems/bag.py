"""The extractor of the DPNR study: the mean over the vectors of a text's words and word pairs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ...errors import instance, integer, invalid
from ...hints import hinted
from ...mechanisms.texts import texts_of
from ...records import Shown
from ...torch.needed import torch
from ..vocabulary import Vocabulary
from .masking import WordDropout

__all__ = ["Bag", "Units", "units_of"]

_MAX_INITIAL_WEIGHT = 0.5
"""Weights start uniform in (-1/2, 1/2), as in the study."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Units(Shown):
    """The words and word pairs of texts, text after text, each with the words that it covers.

    Args:
        ids: numbers of units, int64, shape `(units,)`.
        spans: first and last word of each unit, plus one, within its text; shape `(units, 2)`.
        sizes: units of each text, shape `(texts,)`.
        words: words of each text, known or not, shape `(texts,)`.
    """

    ids: Any
    spans: Any
    sizes: Any
    words: Any

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self.sizes)

    def take(self, rows: Any) -> Units:
        """Return the texts of some rows, in the order of the rows; a row may be repeated."""
        sizes = self.sizes[rows]
        first = (torch.cumsum(self.sizes, 0) - self.sizes)[rows]
        begin = torch.cumsum(sizes, 0) - sizes
        places = torch.arange(int(sizes.sum())) + torch.repeat_interleave(first - begin, sizes)
        # A third of the time of `spans[places]`.
        return Units(
            self.ids.index_select(0, places), self.spans.index_select(0, places), sizes,
            self.words[rows],
        )  # fmt: skip

    def batches(self, size: int) -> Iterator[Units]:
        """Yield runs of `size` texts; the last may be shorter."""
        ends = [0, *torch.cumsum(self.sizes, 0).tolist()]
        for start in range(0, len(self), size):
            stop = min(start + size, len(self))
            units = slice(ends[start], ends[stop])
            yield Units(
                self.ids[units], self.spans[units], self.sizes[start:stop], self.words[start:stop]
            )


class Bag(torch.nn.Module):
    """Texts to vectors: the mean over the vectors of their words and word pairs.

    Unknown words are left out of the mean, and so are masked ones; a text without any known word
    has a vector of zeros, of which a warning tells.

    Args:
        vocabulary: numbers of words and word pairs, with one number reserved at least where
            `dropout` maps to number 0.
        dim: entries of a vector.
        dropout: masks words in every call; None masks none.

    Attributes:
        random: whether two calls differ, that is with word dropout.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if `dim` is below 1, or masked words would become the word with number 0.

    Source:
        Zouhri and Abecidan (2021); `torch.nn.EmbeddingBag` with mode "mean".

    Example:
        >>> words = Vocabulary.from_texts(["a goal", "a late goal"], unknown="drop", ngrams=2)
        >>> bag = Bag(words, 4)
        >>> vectors = bag(["a late goal", "a goal, unseen"])
        >>> vectors.shape, bool(torch.equal(vectors[1], bag(["a goal"])[0]))
        (torch.Size([2, 4]), True)
    """

    @hinted
    def __init__(
        self, vocabulary: Vocabulary, dim: int, dropout: WordDropout | None = None
    ) -> None:
        super().__init__()
        self.vocabulary = instance("vocabulary", vocabulary, Vocabulary)
        self.dropout = None if dropout is None else instance("dropout", dropout, WordDropout)
        if self.dropout is not None and self.dropout.mask == "zero_id":
            free = vocabulary.unknown == "token" or len(vocabulary) > len(vocabulary.words)
            if not free:
                requirement = "one whose number 0 is no word, for masked words become it"
                raise invalid("vocabulary", requirement, vocabulary)
        self.dim = integer("dim", dim, 1)
        self.embedding = torch.nn.EmbeddingBag(len(vocabulary), dim, mode="mean", sparse=True)
        torch.nn.init.uniform_(self.embedding.weight, -_MAX_INITIAL_WEIGHT, _MAX_INITIAL_WEIGHT)

    @property
    def random(self) -> bool:
        """True if words are masked, so that two calls differ."""
        return self.dropout is not None

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Switch the masks off in the body of the context."""
        kept, self.dropout = self.dropout, None
        try:
            yield
        finally:
            self.dropout = kept

    def units(self, texts: Sequence[str]) -> Units:
        """Return the words and word pairs of texts as numbers.

        Args:
            texts: strings, none of them empty.

        Warns:
            UserWarning: if texts have no known word; it says how many.
        """
        return units_of(self.vocabulary, texts)

    def forward(self, texts: Any) -> Any:
        """Compute the vectors of texts.

        Args:
            texts: strings, or the `Units` of texts.

        Returns:
            float32, shape `(len(texts), dim)`.
        """
        units = texts if isinstance(texts, Units) else self.units(texts)
        ids, sizes = self._kept(units)
        device = self.embedding.weight.device
        # Offsets are where each text begins; a text of nothing has zeros.
        return self.embedding(ids.to(device), (torch.cumsum(sizes, 0) - sizes).to(device))

    def _kept(self, units: Units) -> tuple[Any, Any]:
        """Return the numbers and sizes that the masks of this call leave."""
        if self.dropout is None:
            return units.ids, units.sizes
        if self.dropout.mask == "zero_id":
            return units.ids.masked_fill(self.dropout.masked(units.sizes), 0), units.sizes
        masked = torch.nn.functional.pad(self.dropout.masked(units.words).cumsum(0), (1, 0))
        first = torch.cumsum(units.words, 0) - units.words
        text = torch.repeat_interleave(torch.arange(len(units)), units.sizes)
        # A unit stays where as many words are masked before its last word as before its first.
        places = units.spans + first[text].unsqueeze(1)
        stays = masked[places[:, 0]] == masked[places[:, 1]]
        sizes = torch.zeros_like(units.sizes).index_add_(0, text, stays.to(torch.int64))
        return units.ids[stays], sizes

    def extra_repr(self) -> str:
        """Format the parameters, as `repr` shows them."""
        return f"dropout={self.dropout!r}"


def units_of(vocabulary: Vocabulary, texts: Sequence[str]) -> Units:
    """Return the words and word pairs of texts as numbers; see `Bag.units`."""
    found = texts_of("texts", texts)
    # In an audit one text comes many times.
    places = {text: place for place, text in enumerate(dict.fromkeys(found))}
    units = _texts_to_units(vocabulary, list(places))
    rows = torch.tensor([places[text] for text in found])
    unknown = int((units.sizes[rows] == 0).sum())
    if unknown:
        told = f"{unknown:,} of {len(found):,} texts have no known word: their vectors are 0"
        warnings.warn(told, UserWarning, stacklevel=5)
    return units if len(places) == len(found) else units.take(rows)


def _texts_to_units(vocabulary: Vocabulary, texts: list[str]) -> Units:
    ids, spans, sizes, words = [], [], [], []
    for text in texts:
        numbers, places, count = vocabulary.spans(text)
        ids += numbers
        spans += places
        sizes.append(len(numbers))
        words.append(count)
    wide = torch.tensor(spans, dtype=torch.int64).reshape(-1, 2)
    return Units(torch.tensor(ids, dtype=torch.int64), wide, *map(torch.tensor, (sizes, words)))
