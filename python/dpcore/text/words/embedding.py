"""Words with their vectors (embeddings), from files or from gensim."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ... import _core
from ...calibration import RealEpsilon
from ...errors import flag, integer, invalid, mistyped, numeric
from ...packages import has_all
from ...records import Floats, Record, set_fields
from ...suggestions import explain_argument_errors
from ..reading import File, load_text_file, missing_file

Vectors = dict[str, npt.NDArray[np.float64]]

_VECTOR_FORMAT = "word2vec-JSON (MIT)"

_MAX_DIRECT_DIM: Final = 4
"""Largest number of entries of a vector for distances computed without a matrix product."""
_CANCELLATION_SHARE: Final = 1e-6
"""Squared distances below this share of the largest squared length are computed again, from the
differences of vectors."""


@explain_argument_errors
def word_vectors(path: str | os.PathLike[str]) -> Vectors:
    r"""Read words and their vectors from a JavaScript file with one word per line.

    Args:
        path: a file such as wordvecs1000.js. The first line is `var NAME={`, and the last line is
            `};`. Each other line has a word in quotes, a colon, a list of numbers and a comma.

    Returns:
        Dictionary from word to vector, in the order of the file. All vectors have the same length.

    Raises:
        FileNotFoundError: if the file is missing.
        ValueError: if a line does not have the described form, a word is repeated, two vectors
            differ in length, or a number is not finite. The message names the file and the line.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as name:
        ...     file = Path(name, "small.js")
        ...     _ = file.write_text('var words={\n"in":[0.5,1],\n"on":[0,-1],\n};')
        ...     word_vectors(file)
        {'in': array([0.5, 1. ]), 'on': array([ 0., -1.])}
    """
    file = load_text_file(Path(path), _VECTOR_FORMAT)
    vectors: Vectors = {}
    width = None
    for number, line in file.filled():
        stripped = line.strip()
        if not vectors and re.fullmatch(r"(var|let|const)\s+\w+\s*=\s*\{", stripped):
            continue
        if vectors and stripped in ("}", "};"):
            break
        match = re.fullmatch(r'("(?:[^"\\]|\\.)*")\s*:\s*(\[[^\]]*\])\s*,?', stripped)
        try:
            word, values = (json.loads(part) for part in match.groups()) if match else (None, None)
            vector = np.array(values)
        except ValueError:
            word, vector = None, np.empty(0)
        plain = vector.ndim == 1 and vector.dtype.kind in "if"
        if word is None or not plain or not np.isfinite(vector).all():
            raise file.error(number, 'a line such as "word":[0.5,1.0],', line)
        if word in vectors or vector.size != (width or vector.size):
            requirement = f"a new word with a vector of {width} numbers"
            raise file.error(number, requirement, f"{word!r} with {vector.size}")
        vectors[word], width = vector.astype(np.float64), vector.size
    else:
        raise file.error(number if vectors else 1, "followed by the end };", "no more lines")
    return vectors


def text_vectors(path: Path, limit: int | None = None) -> Vectors:
    """Read words and their vectors from a text file in the format of GloVe or word2vec.

    Args:
        path: a file with one word per line. A line has a word and the entries of its vector,
            separated by blanks. In the format of word2vec, there is an additional first line with
            two whole numbers: the number of words and the number of entries of a vector.
        limit: largest number of words to read, from the start of the file. None means all words.

    Returns:
        Dictionary from word to vector, in the order of the file. All vectors have the same length.

    Raises:
        FileNotFoundError: if the file is missing.
        ValueError: for one of these reasons (the message names the file and the line):

            - a line is not a word with finite numbers;
            - two vectors differ in length;
            - a word is repeated;
            - the number of words differs from the number in the first line.
    """
    if not path.is_file():
        raise missing_file(path, "a text file of word vectors")
    vectors: Vectors = {}
    file, stated, width, number = File(path.name, "", b""), None, None, 0
    with path.open("rb") as lines:
        for number, content in enumerate(lines, 1):
            if len(vectors) == limit:
                break
            line = file.decoded(number, content.rstrip(b"\r\n "))
            if number == 1 and re.fullmatch(r"\d+ \d+", line):
                stated, width = map(int, line.split())
                continue
            if len(vectors) == stated:
                raise file.error(number, f"no more: {stated:,} words are stated", line)
            width = width or line.count(" ")
            word, vector = _word_and_vector(line, width)
            if vector is None:
                raise file.error(number, f"a word and {width} finite numbers", line)
            if word in vectors:
                raise file.error(number, "a word that occurs once", word)
            vectors[word] = vector
    if not vectors or len(vectors) < min(stated or 0, limit or len(vectors) + 1):
        requirement = "the last of a file with " + (f"{stated:,} words" if stated else "words")
        raise file.error(number or 1, requirement, f"{len(vectors):,} words")
    return vectors


def _word_and_vector(line: str, width: int) -> tuple[str, npt.NDArray[np.float64] | None]:
    """Return the word of a line and its vector, or None as the vector if it is not valid."""
    # Some words of GloVe contain blanks, so the numbers are counted from the end of the line.
    word, *numbers = line.rsplit(" ", width) if width else [""]
    try:
        vector = np.array(numbers, np.float64)
    except ValueError:
        return word, None
    is_sound = bool(word.strip()) and vector.size == width and np.isfinite(vector).all()
    return word, vector if is_sound else None


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Embedding(Record):
    """List of words, with one vector for each word.

    Args:
        words: the words, without repetition.
        vectors: finite numbers, shape `(words, dim)`; stored as float64.
        origin: text for reports that states the source of the vectors, such as the name of a file.
        claimed: claimed epsilon of the noise that was added to the vectors. None if no noise was
            added.
        real: true epsilon, for any two words, of the noise that was added to the vectors. None if
            no noise was added.

    Raises:
        TypeError: if `words` are not strings or `vectors` are not numbers.
        ValueError: if a word is repeated, an entry is not finite, or the shape is wrong.

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
        """Check the words and vectors, and make the vectors read-only."""
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
        set_fields(self, words=words, vectors=vectors, rows=rows)

    @classmethod
    def of(cls, model: Any) -> Embedding:
        """Create an `Embedding` from gensim's `KeyedVectors`, or from a trained gensim model.

        Raises:
            TypeError: if the argument is neither `KeyedVectors` nor a model with `KeyedVectors` as
                its attribute `wv`.
        """
        vectors = model.wv if has_all(model, "wv") else model
        if not has_all(vectors, "index_to_key", "vectors"):
            raise mistyped("model", "gensim's KeyedVectors or a model with some as wv", model)
        return cls(vectors.index_to_key, vectors.vectors, type(model).__name__)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], limit: int | None = None, normalise: bool = False
    ) -> Embedding:
        r"""Read the vectors of words from a file.

        Args:
            path: a file in one of these formats:

                - a text file of GloVe: each line has a word and the entries of its vector;
                - a text file of word2vec: as for GloVe, but with an additional first line: the
                  number of words and the number of entries of a vector;
                - a `.js` file: the first line is `var NAME={`, the last line is `};`, and each
                  other line has a word in quotes, a colon, a list of numbers and a comma.
            limit: largest number of words to read, from the start of the file. None means all
                words.
            normalise: True divides each vector by its Euclidean length.

        Returns:
            An `Embedding` with the words in the order of the file.

        Raises:
            FileNotFoundError: if the file is missing.
            TypeError: if an argument is of the wrong kind.
            ValueError: if the file is truncated, a word is repeated, a vector is zero or not
                finite, or two words have the same vector. The message names the line or the two
                words.

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
            vectors = dict(list(word_vectors(file).items())[:limit])
        else:
            vectors = text_vectors(file, limit)
        rows = np.array(list(vectors.values()))
        # Rows are first divided by their largest entry, so no square overflows or underflows to 0.
        largest = np.abs(rows).max(axis=1, keepdims=True)
        if not largest.all():
            word = list(vectors)[int(largest.argmin())]
            raise invalid(f"vector of {word!r} in {file.name}", "a vector that is not zero", 0.0)
        if normalise:
            rows = rows / largest
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        made = cls(tuple(vectors), rows, file.name)
        made.require_distinct(f"vectors of {file.name}")
        return made

    def require_distinct(self, name: str) -> None:
        """Check that all words of this embedding have different vectors.

        Args:
            name: name that the error message gives to the vectors.

        Raises:
            ValueError: if two words have the same vector; the message names the two words.
        """
        ids, _, first = _core.pool_rows(self.vectors, self.vectors[:0])
        if len(first) < len(self.words):
            repeated = int((first[ids] != np.arange(len(ids))).argmax())
            words = self.words[int(first[ids[repeated]])], self.words[repeated]
            raise invalid(name, "another for each word", f"one for {words[0]!r} and {words[1]!r}")

    @property
    def sha256(self) -> str:
        """SHA-256 hash of the words and vectors of this embedding, as 64 hexadecimal digits."""
        digest = hashlib.sha256("\n".join(self.words).encode("utf-8", "surrogatepass"))
        digest.update(np.ascontiguousarray(self.vectors, "<f8").tobytes())
        return digest.hexdigest()

    @property
    def dim(self) -> int:
        """Number of entries of each vector of this embedding."""
        return int(self.vectors.shape[1])

    def distances(self, numbers: npt.NDArray[np.int64]) -> Floats:
        """Compute the Euclidean distances from n words to all V words of this embedding.

        Args:
            numbers: positions of the n words in the list `words`, shape `(n,)`.

        Returns:
            The distances, shape `(n, V)`. The distance of a word to itself is exactly 0.

        Example:
            >>> Embedding(("bad", "good"), [[0.0], [1.5]]).distances(np.array([1]))
            array([[1.5, 0. ]])
        """
        vectors, chosen = self.vectors, self.vectors[numbers]
        if self.dim <= _MAX_DIRECT_DIM:
            columns = zip(chosen.T, vectors.T, strict=True)
            parts = [(coordinates[:, None] - other) ** 2 for coordinates, other in columns]
            norms: Floats = np.sqrt(np.sum(parts, axis=0))
            return norms
        lengths = np.einsum("ij,ij->i", vectors, vectors)
        squares = (-2.0 * chosen) @ vectors.T
        squares += lengths[numbers][:, None]
        squares += lengths
        for row, column in np.argwhere(squares < _CANCELLATION_SHARE * lengths.max()):
            squares[row, column] = np.sum((chosen[row] - vectors[column]) ** 2)
        norms = np.sqrt(squares, out=squares)
        return norms

    def __len__(self) -> int:
        """Return the number of words."""
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        """Return True if the word has a vector."""
        return word in self.rows

    def __getitem__(self, word: str) -> Floats:
        """Return the vector of a word, or raise a KeyError if the word has no vector."""
        vector: Floats = self.vectors[self.rows[word]]
        return vector

    def __reduce__(self) -> tuple[type[Embedding], tuple[Any, ...]]:
        """Return the constructor call for pickle, so that unpickled arrays are read-only."""
        return type(self), (self.words, self.vectors, self.origin, self.claimed, self.real)

    def __repr__(self) -> str:
        """Return one line: number of words, length of a vector, origin, and noise if any."""
        origin = f", {self.origin}" if self.origin else ""
        noise = ""
        if self.real is not None:
            noise = f", epsilon claimed {self.claimed:g}, true {self.real.value:g}"
        return f"<Embedding of {len(self):,} words, dim={self.dim}{origin}{noise}>"
