"""The network of a next-word model: an LSTM whose state starts at zero for each text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...torch.needed import torch
from ..systems.training import one_thread

__all__ = [
    "Network", "compute_states", "compute_word_losses", "copy_weights", "draw_weights",
    "record_losses",
]  # fmt: skip

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_WEIGHT_LIMIT: Final = 0.1
"""Largest absolute value of a weight at the start."""
_MAX_TEXTS: Final = 256
"""Texts that are read at once where no gradient is needed."""
_NO_TARGET: Final = -100


class Network(torch.nn.Module):  # type: ignore[misc]
    """An embedding, an LSTM and a linear layer: from words to scores of the next word.

    Args:
        words: V, number of words that have a probability; V + 2 can be read.
        hidden: entries of a word's vector and of a state.
        layers: of the LSTM.
        dropout: share of the entries that are dropped behind the embedding and each layer.
        kind: `torch.nn.LSTM`, or `opacus.layers.DPLSTM`, which has the same weights.
    """

    def __init__(self, words: int, hidden: int, layers: int, dropout: float, kind: Any) -> None:
        super().__init__()
        self.words = words
        self.embedding = torch.nn.Embedding(words + 2, hidden, padding_idx=words + 1)
        between = dropout if layers > 1 else 0.0
        self.lstm = kind(hidden, hidden, num_layers=layers, batch_first=True, dropout=between)
        self.decoder = torch.nn.Linear(hidden, words)
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, ids: Any, sizes: Any) -> Any:
        """Compute the scores of the next word.

        Args:
            ids: numbers of the words, padded, longest text first, shape `(n, longest)`.
            sizes: words of each text, at least 1, falling.

        Returns:
            Scores, shape `(n, longest, V)`.
        """
        return self.decoder(self.dropout(self.states(ids, sizes)))

    def states(self, ids: Any, sizes: Any) -> Any:
        """Compute the last layer's states, shape `(n, longest, hidden)`."""
        read = self.dropout(self.embedding(ids))
        if isinstance(self.lstm, torch.nn.LSTM):
            # What stands behind the end of a text comes after all that is used of its states.
            states, _ = self.lstm(read)
            return states
        # Packed, so that Opacus makes no step for padding. It keeps the gradients of records in
        # the order of the packed rows, which is that of the batch, since the longest comes first.
        packed = torch.nn.utils.rnn.pack_padded_sequence(read, sizes, batch_first=True)
        states, _ = self.lstm(packed)
        return torch.nn.utils.rnn.pad_packed_sequence(states, batch_first=True)[0]


def draw_weights(network: Network) -> None:
    """Draw all weights from U(-.1, .1), in place; biases are 0.

    Args:
        network: its padding stays a row of zeros.
    """
    with torch.no_grad():
        for name, weight in network.named_parameters():
            weight.zero_() if "bias" in name else weight.uniform_(-_WEIGHT_LIMIT, _WEIGHT_LIMIT)
        network.embedding.weight[network.words + 1] = 0.0


def copy_weights(source: Network, target: Network) -> None:
    """Copy weights from one network to another; the LSTM may be torch's or that of Opacus.

    Args:
        source: whose weights are copied.
        target: of the same sizes.
    """
    # Opacus keeps the names of torch beside its own.
    found = dict(source.named_parameters(remove_duplicate=False))
    with torch.no_grad():
        for name, weight in target.named_parameters(remove_duplicate=False):
            if name in found:
                weight.copy_(found[name])


def _pad_rows(rows: Sequence[Ids], words: int) -> tuple[Any, Any, Any]:
    """Return inputs, sizes and targets of rows that are sorted, longest first."""
    table = np.full((len(rows), max(2, *map(len, rows)) if rows else 2), words + 1)
    for number, row in enumerate(rows):
        table[number, : len(row)] = row
    sizes = torch.tensor([max(1, len(row) - 1) for row in rows], dtype=torch.int64)
    ids = torch.from_numpy(table)
    targets = torch.where(ids[:, 1:] < words, ids[:, 1:], _NO_TARGET)
    return ids[:, :-1], sizes, targets


def _sort_rows(rows: Sequence[Ids]) -> list[int]:
    return sorted(range(len(rows)), key=lambda number: -len(rows[number]))


def record_losses(model: Any, rows: Sequence[Ids], words: int) -> Any:
    """Compute the loss of each record: the mean over its targets, 0 for a record without targets.

    Args:
        model: a `Network`, or the module of Opacus around it.
        rows: numbers of the words of each text; one text or more.
        words: V of the network.

    Returns:
        A tensor of losses with gradients, in nats, shape `(n,)`.
    """
    order = _sort_rows(rows)
    ids, sizes, targets = _pad_rows([rows[number] for number in order], words)
    scores = model(ids, sizes)
    losses = torch.nn.functional.cross_entropy(
        scores.flatten(0, 1), targets.flatten(), ignore_index=_NO_TARGET, reduction="none"
    ).view(targets.shape)
    means = losses.sum(dim=1) / (targets >= 0).sum(dim=1).clamp(min=1)
    return means[torch.from_numpy(np.argsort(order))]


def compute_states(network: Network, rows: Sequence[Ids]) -> Iterator[tuple[Floats, Floats]]:
    """Yield for each text the states and the log-probabilities of the next word.

    Args:
        network: not trained further.
        rows: numbers of the words of each text.

    Yields:
        States, shape `(contexts, hidden)`, and natural logarithms, shape `(contexts, V)`: a context
        is all words of a text up to one that is not its last.
    """
    network.eval()
    order = _sort_rows(rows)
    place = {number: position for position, number in enumerate(order)}
    with one_thread(), torch.no_grad():
        for start in range(0, len(rows), _MAX_TEXTS):
            part = range(start, min(start + _MAX_TEXTS, len(rows)))
            chosen = sorted(part, key=lambda number: place[number])
            ids, sizes, _ = _pad_rows([rows[number] for number in chosen], network.words)
            states = network.states(ids, sizes)
            position = {number: row for row, number in enumerate(chosen)}
            for number in part:
                found = states[position[number], : max(0, len(rows[number]) - 1)]
                scores = torch.log_softmax(network.decoder(found).double(), dim=1)
                yield found.double().numpy(), scores.numpy()


def compute_word_losses(network: Network, rows: Sequence[Ids]) -> Iterator[Floats]:
    """Yield for each text the losses of its targets, in nats; masked words are no targets."""
    for row, (_, found) in zip(rows, compute_states(network, rows), strict=True):
        targets = row[1:]
        kept = np.flatnonzero(targets < network.words)
        yield -found[kept, targets[kept]]
