"""Encoder and decoder of DPText: a bag of words, or the LSTMs of ADePT."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

from ....torch.needed import torch
from ...vocabulary import Vocabulary
from ..autoencoder.learning import words_loss
from ..autoencoder.lstm import RESERVED, Decoder, Encoder, Words
from ..bag import Bag, Units

__all__ = ["CODERS", "BagCoder", "Coder", "LSTMCoder"]

_EMBEDDING_DIM: Final = 64
"""Entries of a word's vector in the LSTMs."""
_WORD_DROPOUT_SHARE: Final = 0.3
"""Share of words that are hidden from the LSTM that decodes, as in ADePT's training."""


class Coder(Protocol):
    """From texts to vectors, and from noisy vectors to what is left of the texts.

    Attributes:
        encoder: a module from texts to vectors.
        decoder: a module from vectors.
        sparse: whether the encoder has sparse gradients.
        vocabulary: its words.
    """

    encoder: Any
    decoder: Any
    sparse: bool
    vocabulary: Vocabulary

    def rows(self, texts: Sequence[str]) -> Any:
        """Convert texts to numbers."""

    def batches(self, rows: Any, order: Any, size: int) -> Iterator[Any]:
        """Yield runs of `size` texts in an order."""

    def vectors(self, batch: Any) -> Any:
        """Compute the vectors of a batch, with gradients."""

    def loss(self, noisy: Any, batch: Any) -> Any:
        """Compute the decoder's mean cross entropy of the words of a batch."""


class BagCoder:
    """The mean over vectors of words; a linear decoder that scores the most frequent words.

    Args:
        vocabulary: words with a number, the most frequent first.
        dim: entries of a vector.
        words: how many words the decoder knows.
    """

    sparse = True
    settings: Final[dict[str, Any]] = {"unknown": "drop", "reserved": ()}
    """Arguments with which its vocabulary is made."""

    def __init__(self, vocabulary: Vocabulary, dim: int, words: int) -> None:
        self.vocabulary = vocabulary
        self.encoder = Bag(vocabulary, dim)
        self.decoder = torch.nn.Linear(dim, min(words, len(vocabulary)))

    def rows(self, texts: Sequence[str]) -> Units:
        """Return the words of texts as numbers."""
        return self.encoder.units(texts)

    def batches(self, rows: Units, order: Any, size: int) -> Iterator[Units]:
        """Yield runs of `size` texts in an order."""
        return rows.take(order).batches(size)

    def vectors(self, batch: Units) -> Any:
        """Compute the vectors of a batch."""
        return self.encoder(batch)

    def loss(self, noisy: Any, batch: Units) -> Any:
        """Compute the mean cross entropy of the frequent words, each in the text that it is of."""
        scores = self.decoder(noisy)
        text = torch.repeat_interleave(torch.arange(len(batch)), batch.sizes)
        frequent = batch.ids < scores.shape[1]
        places = text[frequent].to(scores.device), batch.ids[frequent].to(scores.device)
        if not len(places[0]):
            return scores.sum() * 0.0
        return -torch.log_softmax(scores, dim=1)[places].mean()


class LSTMCoder:
    """The last state of an LSTM, and an LSTM that tells the text from it, as in ADePT.

    Args:
        vocabulary: words with a number, with `RESERVED` and a token for unknown ones.
        dim: entries of a vector, an even number.
        words: words of a text that are read.
    """

    sparse = False
    settings: Final[dict[str, Any]] = {"unknown": "token", "reserved": RESERVED}
    """Arguments with which its vocabulary is made."""

    def __init__(self, vocabulary: Vocabulary, dim: int, words: int) -> None:
        self.vocabulary, numbers = vocabulary, Words(vocabulary, words)
        self.encoder = Encoder(numbers, _EMBEDDING_DIM, dim // 2)
        self.decoder = Decoder(numbers, _EMBEDDING_DIM, dim // 2, dim)

    def rows(self, texts: Sequence[str]) -> Any:
        """Return the numbers of words, padded, and how many words each text has."""
        return self.encoder.words(texts)

    def batches(self, rows: Any, order: Any, size: int) -> Iterator[Any]:
        """Yield runs of `size` texts in an order."""
        ids, sizes = rows
        for places in order.split(size):
            yield ids[places, : int(sizes[places].max())], sizes[places]

    def vectors(self, batch: Any) -> Any:
        """Compute the vectors of a batch."""
        return self.encoder.states(*batch)

    def loss(self, noisy: Any, batch: Any) -> Any:
        """Compute the mean cross entropy of the words, ends included, by teacher forcing."""
        ids, sizes = batch
        return words_loss(self.decoder, noisy, ids, sizes, _WORD_DROPOUT_SHARE)


CODERS: Final[dict[str, Any]] = {"bag": BagCoder, "lstm": LSTMCoder}
"""The coders by the names that `DPText` takes."""
