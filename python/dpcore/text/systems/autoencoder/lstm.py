"""An auto-encoder of texts: an LSTM to a vector, and an LSTM from a vector to words."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ....errors import invalid
from ....mechanisms.texts import texts_of
from ....torch.needed import torch
from ...vocabulary import Vocabulary

__all__ = ["END", "PAD", "RESERVED", "START", "Decoder", "Encoder", "Words"]

RESERVED: Final = ("<pad>", "<start>", "<end>")
"""Numbers that no word has; "<unk>" follows."""
PAD, START, END, UNKNOWN = range(4)
_TEXTS_PER_BATCH: Final = 256
"""Texts that are encoded or decoded together."""


class Words:
    """Texts as rows of numbers, cut after so many words.

    Args:
        vocabulary: words with a number, with `RESERVED` and a token for unknown ones.
        longest: words of a text that are read.
    """

    def __init__(self, vocabulary: Vocabulary, longest: int) -> None:
        self.vocabulary, self.longest = vocabulary, longest

    def __call__(self, texts: Sequence[str]) -> tuple[Any, Any]:
        """Return numbers, shape `(texts, longest of them)` padded with 0, and each text's size.

        Raises:
            ValueError: if a text holds no word at all, known or not.

        Warns:
            UserWarning: if texts hold no known word; it says how many.
        """
        found = texts_of("texts", texts)
        rows = [ids[: self.longest] for ids in self.vocabulary.encode(found, empty="keep")]
        for row, ids in enumerate(rows):
            if not len(ids):
                raise invalid(f"texts[{row}]", "a text with a word", found[row])
        unknown = sum(bool((ids == UNKNOWN).all()) for ids in rows)
        if unknown:
            told = f"{unknown:,} of {len(rows):,} texts have no known word"
            warnings.warn(told, UserWarning, stacklevel=3)
        sizes = torch.tensor([len(ids) for ids in rows])
        table = np.full((len(rows), int(sizes.max())), PAD)
        for row, ids in enumerate(rows):
            table[row, : len(ids)] = ids
        return torch.from_numpy(table), sizes

    def truncated(self, texts: Sequence[str]) -> int:
        """Return how many texts have more words than are read."""
        rows = self.vocabulary.encode(list(texts), empty="keep") if len(texts) else []
        return sum(len(ids) > self.longest for ids in rows)

    def text(self, ids: Any) -> str:
        """Join the words of numbers up to the end by blanks, with "<unk>" for unknown ones."""
        numbers = list(ids)
        stop = numbers.index(END) if END in numbers else len(numbers)
        return self.vocabulary.decode([np.array(numbers[:stop], dtype=np.int64)])[0]


def _make_lstm(width: int, hidden: int) -> Any:
    """Make an LSTM that begins by keeping what it holds, so that long texts are learnt soon.

    Source:
        Jozefowicz, Zaremba and Sutskever (2015), section 2.2 (forget gates with bias 1).
    """
    made = torch.nn.LSTM(width, hidden, batch_first=True)
    with torch.no_grad():
        # Gates lie in the order input, forget, cell, output.
        made.bias_hh_l0[hidden : 2 * hidden] = 1.0
    return made


class Encoder(torch.nn.Module):
    """Texts to the last state of an LSTM: ``(h, c)``, 2 hidden numbers.

    Args:
        words: texts as numbers.
        embedding: entries of a word's vector.
        hidden: entries of the state.
    """

    def __init__(self, words: Words, embedding: int, hidden: int) -> None:
        super().__init__()
        self.words, self.width = words, 2 * hidden
        self.embedding = torch.nn.Embedding(len(words.vocabulary), embedding, padding_idx=PAD)
        self.lstm = _make_lstm(embedding, hidden)

    @property
    def longest(self) -> int:
        """Words of a text that are read."""
        return self.words.longest

    def truncated(self, texts: Sequence[str]) -> int:
        """Return how many texts are longer."""
        return self.words.truncated(texts)

    def forward(self, texts: Sequence[str]) -> Any:
        """Compute the vectors of texts, shape `(texts, 2 hidden)`."""
        ids, sizes = self.words(texts)
        parts = zip(ids.split(_TEXTS_PER_BATCH), sizes.split(_TEXTS_PER_BATCH), strict=True)
        return torch.cat([self.states(*part) for part in parts])

    def states(self, ids: Any, sizes: Any) -> Any:
        """Compute the vectors of padded rows of numbers; entries after a text's end are unread."""
        device = self.embedding.weight.device
        packed = torch.nn.utils.rnn.pack_padded_sequence(
            self.embedding(ids.to(device)), sizes, batch_first=True, enforce_sorted=False
        )
        _, (h, c) = self.lstm(packed)
        return torch.cat([h[0], c[0]], dim=1)


class Decoder(torch.nn.Module):
    """Vectors to texts: an LSTM that sees the vector at every step.

    Args:
        words: texts as numbers.
        embedding: entries of a word's vector.
        hidden: entries of the state.
        width: entries of the vectors.
    """

    def __init__(self, words: Words, embedding: int, hidden: int, width: int) -> None:
        super().__init__()
        self.words = words
        size = len(words.vocabulary)
        self.embedding = torch.nn.Embedding(size, embedding, padding_idx=PAD)
        self.lstm = _make_lstm(embedding + width, hidden)
        self.scores = torch.nn.Linear(hidden, size)

    def forward(self, vectors: Any, ids: Any) -> Any:
        """Compute scores of the next word at every place of known texts (teacher forcing).

        Args:
            vectors: shape `(n, width)`.
            ids: the words before each place, shape `(n, places)`.

        Returns:
            Shape `(n, places, words)`.
        """
        seen = vectors.unsqueeze(1).expand(-1, ids.shape[1], -1)
        states, _ = self.lstm(torch.cat([self.embedding(ids), seen], dim=2))
        return self.scores(states)

    def texts(self, vectors: Any) -> list[str]:
        """Choose the likeliest word at every step, until the end or the longest text.

        Args:
            vectors: shape `(n, width)`.

        Returns:
            n texts; one is empty where the first word is the end.
        """
        with torch.no_grad():
            return [text for part in vectors.split(_TEXTS_PER_BATCH) for text in self._greedy(part)]

    def _greedy(self, vectors: Any) -> list[str]:
        last = torch.full((len(vectors), 1), START, device=vectors.device)
        state, found = None, []
        for _ in range(self.words.longest):
            seen = torch.cat([self.embedding(last), vectors.unsqueeze(1)], dim=2)
            out, state = self.lstm(seen, state)
            scores = self.scores(out[:, 0])
            # What no text holds is no word of a rewrite.
            scores[:, [PAD, START]] = -torch.inf
            last = scores.argmax(dim=1, keepdim=True)
            found.append(last)
            if bool((torch.cat(found, dim=1) == END).any(dim=1).all()):
                break
        return [self.words.text(row) for row in torch.cat(found, dim=1).tolist()]
