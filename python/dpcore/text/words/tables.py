"""Mechanisms that are tables of probabilities: exact losses, and draws by prepared alias rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt

from ... import _core
from ...errors import delta_level, instance, integer, invalid, mistyped
from ...records import Pair
from .mechanism import WordMechanism
from .texts import Floats, Numbers, one_sided_loss, split_rows

__all__ = ["MetricMechanism", "TableMechanism", "TableWithUnknown"]

_MOST_ENTRIES: Final = 2**22
"""Prepared entries of a mechanism, 12 bytes each: 50 MB."""

_Prepared = tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32], Numbers]
"""Thresholds and entries of rows, shape `(n, V)`, and the place of each word's row or -1."""

_MOST_OUTPUTS: Final = 2**16
"""Outputs of a prepared row: an entry has 16 bits for one."""

_MOST_COORDINATES: Final = 4
"""Dimensions up to which distances are sums of squared differences, with no product of matrices."""

_FEW_DIGITS: Final = 1e-6
"""Share of the largest squared length below which a squared distance has lost six of 16 digits."""


def require_rows(words: int, start: int, stop: int) -> Numbers:
    """Return the numbers of the rows `start` to `stop`, checked."""
    stop = integer("stop", stop, 0, words)
    return np.arange(integer("start", start, 0, stop), stop)


def nearest_words(
    rows: Floats, others: Floats, queries: Numbers, points: Numbers, depth: int
) -> tuple[Numbers, Floats]:
    """Return the points nearest to queries, ties to the first, and their squared distances.

    Args:
        rows: vectors, shape `(n, dim)`.
        others: more of them, whose numbers follow.
        queries: numbers of vectors, shape `(q,)`.
        points: numbers of vectors.
        depth: points of each query, at most as many as there are.

    Returns:
        Places in `points` and squared distances, shape `(q, depth)`.
    """
    starts, places, squares, _ = _core.nearest(rows, others, queries, points, depth, _core.cores())
    at = starts[:-1, None] + np.arange(depth)
    return places[at].astype(np.int64), squares[at]


def distances_between(vectors: Floats, numbers: Numbers) -> Floats:
    """Compute the Euclidean distances of some rows to all.

    Args:
        vectors: shape `(V, dim)`.
        numbers: rows, shape `(n,)`.

    Returns:
        Shape `(n, V)`; exactly 0 from a row to itself. Short distances, of which a product of
        matrices leaves few digits, are computed from differences.
    """
    chosen = vectors[numbers]
    if vectors.shape[1] <= _MOST_COORDINATES:
        columns = zip(chosen.T, vectors.T, strict=True)
        parts = [(one[:, None] - other) ** 2 for one, other in columns]
        found: Floats = np.sqrt(np.sum(parts, axis=0))
        return found
    lengths = np.einsum("ij,ij->i", vectors, vectors)
    squares = (-2.0 * chosen) @ vectors.T
    squares += lengths[numbers][:, None]
    squares += lengths
    for row, column in np.argwhere(squares < _FEW_DIGITS * lengths.max()):
        squares[row, column] = np.sum((chosen[row] - vectors[column]) ** 2)
    found = np.sqrt(squares, out=squares)
    return found


class TableMechanism(WordMechanism):
    """A mechanism whose probabilities are known: a table with a row for each input word."""

    has_table: ClassVar[bool] = True

    def log_rows(self, start: int, stop: int) -> Floats:
        """Compute rows of the table.

        Args:
            start: first row.
            stop: the row after the last.

        Returns:
            Natural logarithms of probabilities, shape `(stop - start, outputs)`.

        Raises:
            ValueError: if there are no such rows.
        """
        return self._rows_of(require_rows(len(self.vectors), start, stop))

    def log_ratio(self, outputs: npt.ArrayLike, pair: Pair) -> Floats:
        """Compute the privacy loss of outputs: ln of the probability on x over that on x'.

        Args:
            outputs: word numbers, shape `(size,)`, for texts `(size, n)`.
            pair: two words, or two texts of n words.

        Returns:
            Shape `(size,)`; 0 for an output that neither input can have.

        Raises:
            TypeError: if `pair` is not a Pair or `outputs` are not whole numbers.
            ValueError: if the shapes do not fit, or an output is not the number of a word.
        """
        first, second = self._read_pair(pair)
        ys, words = np.asarray(outputs), len(self.words)
        requirement = f"word numbers below {words:,}, shape (size,) or (size, {len(first)})"
        if ys.dtype.kind not in "iu":
            raise mistyped("outputs", requirement, outputs)
        ys = ys[:, None] if ys.ndim == 1 else ys
        if ys.ndim != 2 or ys.shape[1] != len(first) or len(first) != len(second):
            raise invalid("outputs", requirement, f"shape {np.shape(outputs)}")
        if ys.size and not 0 <= ys.min() <= ys.max() < words:
            raise invalid("outputs", requirement, [int(ys.min()), int(ys.max())])
        found = np.zeros(len(ys))
        for place in np.flatnonzero(first != second):
            p, q = self._rows_of(np.array([first[place], second[place]]))
            with np.errstate(invalid="ignore"):
                losses = p - q
            # Outputs that neither word can have: nothing draws them, and they say nothing.
            found += np.where(np.isnan(losses), 0.0, losses)[ys[:, place]]
        return found

    def loss(self, pair: Pair, delta: float = 0.0) -> float | None:
        """Compute the exact privacy loss of a pair, from the table and in both directions.

        Args:
            pair: two words or two texts.
            delta: in [0, 1).

        Returns:
            The least epsilon at this delta; infinite for texts of different lengths; None for
            texts that differ in several words where delta is above 0.
        """
        first, second = self._read_pair(pair)
        delta = delta_level(delta)
        if len(first) != len(second):
            return float("inf")
        changed = np.flatnonzero(first != second)
        if delta and len(changed) > 1:
            return None
        sums = np.zeros(2)
        for place in changed:
            p, q = self._rows_of(np.array([first[place], second[place]]))
            sums += [one_sided_loss(p, q, delta), one_sided_loss(q, p, delta)]
        return float(sums.max())

    def add_unknown_row(self) -> TableWithUnknown:
        """Return the table with one more row: that of words without a vector, drawn uniformly.

        `rewrite(..., unknown="uniform")` replaces such a word by any word with equal probability.
        It has no vector, so that its distance to another word is not defined and the claim says
        nothing about it: `audit_table` then computes losses in nats, for any two of all words.

        Returns:
            What `audit_table` takes: `V + 1` inputs, `V` outputs, no distances and no claim.

        Example:
            >>> import dpcore
            >>> from dpcore.text.leakage import Embedding
            >>> from dpcore.text.words import SanText
            >>> mech = SanText(Embedding(["bad", "fine", "good"], [[0.0], [1.0], [1.5]]), 2.0)
            >>> found = dpcore.audit_table(mech.add_unknown_row())
            >>> found.inputs, found.metric, round(found.epsilon, 3), found.labels
            (4, False, 1.64, ('bad', 'good', 'bad'))
        """
        return TableWithUnknown(self)

    def rows_with_unknown(self, numbers: Numbers) -> Floats:
        """Compute log probabilities of words, shape `(n, outputs)`; number V is an unknown word."""
        rows = np.full((len(numbers), self.shape[1]), -np.log(self.shape[1]))
        known = numbers < self.shape[0]
        if known.any():
            rows[known] = self._rows_of(numbers[known])
        return rows

    @abstractmethod
    def _rows_of(self, numbers: Numbers) -> Floats:
        """Return log probabilities of the rows of some words, shape `(n, outputs)`."""

    def _draw(self, inputs: Numbers, size: int, seed: int) -> Numbers:
        wanted, most = np.arange(self.shape[0] + 1), max(1, _MOST_ENTRIES // self.shape[1])
        if len(wanted) > most:
            wanted = np.flatnonzero(np.bincount(inputs, minlength=len(wanted)))
        out = np.empty(size, np.int64)
        # Which rows are prepared together changes no draw.
        for start in range(0, len(wanted), most):
            prepared = self._prepare_last(wanted[start : start + most].tobytes())
            _core.draw_words(*prepared, inputs, seed, out, _core.cores())
        return out

    @cached_property
    def _prepare_last(self) -> Callable[[bytes], _Prepared]:
        """Prepares the rows of numbers, given as bytes; the rows of the last call are kept."""
        return lru_cache(maxsize=1)(self._prepare)

    def _prepare(self, wanted: bytes) -> _Prepared:
        numbers, outputs = np.frombuffer(wanted, np.int64), self.shape[1]
        if outputs > _MOST_OUTPUTS:
            raise invalid("vectors", f"those of at most {_MOST_OUTPUTS:,} words", outputs)
        slots = np.full(self.shape[0] + 1, -1, np.int64)
        slots[numbers] = np.arange(len(numbers))
        shape = (len(numbers), outputs)
        thresholds, entries = np.empty(shape, np.uint64), np.empty(shape, np.uint32)
        for part in split_rows(*shape):
            rows = self.rows_with_unknown(numbers[part])
            _core.prepare_rows(rows, thresholds[part], entries[part], _core.cores())
        return thresholds, entries, slots

    def _read_pair(self, pair: Pair) -> list[Numbers]:
        """Return numbers of the words of both inputs."""
        pair = instance("pair", pair, Pair)
        inputs = (("x", pair.x), ("x_prime", pair.x_prime))
        return [np.array(self._read_words(*one)[1]) for one in inputs]


class TableWithUnknown:
    """The table of a mechanism and, as its last row, the uniform law of words without a vector.

    Args:
        mechanism: the mechanism.
    """

    def __init__(self, mechanism: TableMechanism) -> None:
        self.mechanism = mechanism
        self.shape = (mechanism.shape[0] + 1, mechanism.shape[1])
        self.input_names = (*mechanism.words, "<unknown>")
        self.output_names = mechanism.words

    def __repr__(self) -> str:
        return f"unknown words and {self.mechanism!r}"

    def log_rows(self, start: int, stop: int) -> Floats:
        """Compute rows of the table, shape `(stop - start, V)`, in natural logarithms."""
        return self.mechanism.rows_with_unknown(require_rows(self.shape[0], start, stop))


class MetricMechanism(WordMechanism):
    """A mechanism whose claim is per unit of Euclidean distance."""

    def distance_rows(self, start: int, stop: int) -> Floats:
        """Compute distances of some words to all.

        Args:
            start: first word.
            stop: the word after the last.

        Returns:
            Shape `(stop - start, V)`.

        Raises:
            ValueError: if there are no such words.
        """
        return distances_between(self.vectors.vectors, require_rows(len(self.vectors), start, stop))
