"""Words with vectors, from files or from gensim."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ... import _core
from ...calibration import RealEpsilon
from ...errors import flag, integer, invalid, mistyped, numeric
from ...hints import hinted
from ...records import Record
from .vectors import text_vectors, word_vectors

__all__ = ["Embedding", "Floats"]

Floats = npt.NDArray[np.float64]

_MAX_DIRECT_DIM: Final = 4
"""Dimensions up to which distances are sums of squared differences, with no product of matrices."""

_CANCELLATION_SHARE: Final = 1e-6
"""Share of the largest squared length below which a squared distance has lost six of 16 digits."""


@hinted
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Embedding(Record):
    """A vector for each word.

    Args:
        words: the words, each once.
        vectors: finite numbers, shape (words, dim); kept as float64.
        origin: where they are from, as reports say it.
        claimed: the epsilon that noise on the vectors is said to give; None without noise.
        real: what that noise really gives for any two words.

    Raises:
        TypeError: if `words` are no strings or `vectors` no numbers.
        ValueError: if a word comes twice, an entry is not finite, or the shape is another one.

    Example:
        >>> Embedding(("cat", "dog"), [[0.0, 1.0], [1.0, 0.5]])
        <Embedding of 2 words, dim=2>
    """

    words: Sequence[str]
    vectors: Any
    origin: str = ""
    claimed: float | None = None
    real: RealEpsilon | None = None
    rows: dict[str, int] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        """Check and freeze words and vectors."""
        entries = [] if isinstance(self.words, str) else self.words
        words = tuple(word for word in entries if isinstance(word, str))
        if not words or len(words) < len(entries):
            raise mistyped("words", "a list of at least one string", self.words)
        rows = {word: row for row, word in enumerate(words)}
        if len(rows) < len(words):
            twice = next(word for row, word in enumerate(words) if rows[word] != row)
            raise invalid("words", "each there once", twice)
        requirement = f"finite numbers, a row for each of {len(words):,} words"
        vectors = numeric("vectors", requirement, self.vectors).astype(np.float64)
        if vectors.ndim != 2 or len(vectors) != len(words) or not vectors.shape[1]:
            raise invalid("vectors", requirement, f"shape {vectors.shape}")
        bad = ~np.isfinite(vectors).all(axis=1)
        if bad.any():
            row = int(bad.argmax())
            raise invalid(f"vectors[{row}] ({words[row]})", "finite numbers", vectors[row])
        vectors.setflags(write=False)
        for name, value in (("words", words), ("vectors", vectors), ("rows", rows)):
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, model: Any) -> Embedding:
        """Take the vectors of gensim's `KeyedVectors`, or of a model that has them as `wv`.

        Raises:
            TypeError: if the model has no such vectors.
        """
        found = getattr(model, "wv", model)
        if not hasattr(found, "index_to_key") or not hasattr(found, "vectors"):
            raise mistyped("model", "gensim's KeyedVectors or a model with some as wv", model)
        return cls(found.index_to_key, found.vectors, type(model).__name__)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], limit: int | None = None, normalise: bool = False
    ) -> Embedding:
        r"""Read the vectors of words from a file.

        Args:
            path: a text file of GloVe (a word and its numbers a line) or word2vec (after a line
                with the numbers of words and of entries), or a `.js` file of `word_vectors`.
            limit: words to read at most, the first of the file; None for all.
            normalise: divide each vector by its Euclidean length.

        Returns:
            The embedding, the words in the order of the file.

        Raises:
            FileNotFoundError: if there is no such file.
            TypeError: if an argument is of the wrong kind.
            ValueError: if the file is truncated, a word is repeated, a vector is zero or not
                finite, or two words have one vector; the message names line or words.

        Source:
            Pennington, Socher and Manning (2014), the format of GloVe; Mikolov et al. (2013).

        Example:
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as name:
            ...     file = Path(name, "small.txt")
            ...     _ = file.write_text("cat 3 4\ndog 0 0.5\nfox 1 1\n")
            ...     found = Embedding.load(file, limit=2, normalise=True)
            >>> found, found["cat"]
            (<Embedding of 2 words, dim=2, small.txt>, array([0.6, 0.8]))
        """
        limit = limit if limit is None else integer("limit", limit, 1)
        flag("normalise", normalise)
        if not isinstance(path, (str, os.PathLike)):
            raise mistyped("path", "a path (a string or a PathLike)", path)
        file = Path(path)
        if file.suffix == ".js":
            found = dict(list(word_vectors(file).items())[:limit])
        else:
            found = text_vectors(file, limit)
        rows = np.array(list(found.values()))
        # Divided by the largest entry first, so that no square overflows or vanishes.
        largest = np.abs(rows).max(axis=1, keepdims=True)
        if not largest.all():
            word = list(found)[int(largest.argmin())]
            raise invalid(f"vector of {word!r} in {file.name}", "a vector that is not zero", 0.0)
        if normalise:
            rows = rows / largest
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        made = cls(tuple(found), rows, file.name)
        made.require_distinct(f"vectors of {file.name}")
        return made

    def require_distinct(self, name: str) -> None:
        """Check that no two words have one vector.

        Args:
            name: what the message calls the vectors.

        Raises:
            ValueError: if two words have; the message names both.
        """
        ids, _, first = _core.pool_rows(self.vectors, self.vectors[:0])
        if len(first) < len(self.words):
            repeated = int((first[ids] != np.arange(len(ids))).argmax())
            words = self.words[int(first[ids[repeated]])], self.words[repeated]
            raise invalid(name, "another for each word", f"one for {words[0]!r} and {words[1]!r}")

    @property
    def sha256(self) -> str:
        """SHA-256 of words and vectors, 64 hexadecimal digits."""
        digest = hashlib.sha256("\n".join(self.words).encode("utf-8", "surrogatepass"))
        digest.update(np.ascontiguousarray(self.vectors, "<f8").tobytes())
        return digest.hexdigest()

    @property
    def dim(self) -> int:
        """Numbers in a vector."""
        return int(self.vectors.shape[1])

    def distances(self, numbers: npt.NDArray[np.int64]) -> Floats:
        """Compute the Euclidean distances of some words to all.

        Args:
            numbers: numbers of words, shape `(n,)`.

        Returns:
            Shape `(n, V)`; exactly 0 from a word to itself. Short distances, of which a product of
            matrices leaves few digits, are computed from differences.

        Example:
            >>> Embedding(("bad", "good"), [[0.0], [1.5]]).distances(np.array([1]))
            array([[1.5, 0. ]])
        """
        vectors, chosen = self.vectors, self.vectors[numbers]
        if self.dim <= _MAX_DIRECT_DIM:
            columns = zip(chosen.T, vectors.T, strict=True)
            parts = [(one[:, None] - other) ** 2 for one, other in columns]
            found: Floats = np.sqrt(np.sum(parts, axis=0))
            return found
        lengths = np.einsum("ij,ij->i", vectors, vectors)
        squares = (-2.0 * chosen) @ vectors.T
        squares += lengths[numbers][:, None]
        squares += lengths
        for row, column in np.argwhere(squares < _CANCELLATION_SHARE * lengths.max()):
            squares[row, column] = np.sum((chosen[row] - vectors[column]) ** 2)
        found = np.sqrt(squares, out=squares)
        return found

    def __len__(self) -> int:
        """Return the number of words."""
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        """Return True for a word that has a vector."""
        return word in self.rows

    def __getitem__(self, word: str) -> Floats:
        """Return the vector of a word; raise a KeyError if it has none."""
        vector: Floats = self.vectors[self.rows[word]]
        return vector

    def __reduce__(self) -> tuple[type[Embedding], tuple[Any, ...]]:
        """Rebuild through the constructor: pickled arrays would come back writeable."""
        return type(self), (self.words, self.vectors, self.origin, self.claimed, self.real)

    def __repr__(self) -> str:
        """Return the number of words, their dimension, their origin and the noise."""
        origin = f", {self.origin}" if self.origin else ""
        noise = ""
        if self.real is not None:
            noise = f", epsilon claimed {self.claimed:g}, true {self.real.value:g}"
        return f"<Embedding of {len(self):,} words, dim={self.dim}{origin}{noise}>"
