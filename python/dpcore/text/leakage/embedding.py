"""Words with vectors: from files, or by gensim's Word2Vec, whose start may hash each word."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from ... import _core
from ...calibration import RealEpsilon
from ...errors import choice, flag, integer, invalid, mistyped, numeric
from ...hints import hinted
from ...progress import Progress
from ...records import Record
from ..corpus import training_texts
from ..needed import needed
from ..reading.vectors import text_vectors, word_vectors
from ..vocabulary import Tokeniser, words_of

__all__ = ["STARTS", "Embedding", "Floats", "Start", "embed"]

Floats = npt.NDArray[np.float64]

Start = Literal["own", "hashed"]
STARTS: Final[tuple[Start, ...]] = get_args(Start)
"""Where vectors start: at gensim's own random numbers, or at those that hash word and seed."""

_MOST_COORDINATES: Final = 4
"""Dimensions up to which distances are sums of squared differences, with no product of matrices."""

_FEW_DIGITS: Final = 1e-6
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
        """The vectors of gensim's `KeyedVectors`, or of a model that has them as `wv`.

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
        if self.dim <= _MOST_COORDINATES:
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

    def __len__(self) -> int:
        """Number of words."""
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        """True for a word that has a vector."""
        return word in self.rows

    def __getitem__(self, word: str) -> Floats:
        """The vector of a word; a KeyError if it has none."""
        vector: Floats = self.vectors[self.rows[word]]
        return vector

    def __reduce__(self) -> tuple[type[Embedding], tuple[Any, ...]]:
        """Rebuild through the constructor: pickled arrays would come back writeable."""
        return type(self), (self.words, self.vectors, self.origin, self.claimed, self.real)

    def __repr__(self) -> str:
        """How many words, of which dimension, where from, and with which noise."""
        origin = f", {self.origin}" if self.origin else ""
        noise = ""
        if self.real is not None:
            noise = f", epsilon claimed {self.claimed:g}, true {self.real.value:g}"
        return f"<Embedding of {len(self):,} words, dim={self.dim}{origin}{noise}>"


@hinted
def embed(
    texts: Any,
    *,
    start: Start = "own",
    seed: int = 1,
    dim: int = 100,
    window: int = 5,
    min_count: int = 5,
    epochs: int = 5,
    negative: int = 5,
    tokenise: Tokeniser = words_of,
    progress: bool | None = None,
) -> Embedding:
    """Learn vectors of words from texts by gensim's Word2Vec (CBOW).

    One worker trains, so that a second run repeats the first bit by bit on the same machine. Up to
    version 3.8 gensim drew the first vector of a word from a generator seeded by the hash of word
    and seed: two models with one seed start a word at one place, whatever else they read. Today
    it starts at random numbers in the order of the vocabulary. ``"hashed"`` brings the former
    back, by a fixed hash: Python's own is salted anew in each process.

    Args:
        texts: a list of strings, or a `Corpus`, of which the train part is read.
        start: "own" (today's gensim) or "hashed" (as gensim 3.8: in [-.5/dim, .5/dim)).
        seed: of the start, the negative words and the down-sampling, in [0, 2**32).
        dim: numbers in a vector.
        window: words to either side that count as context, at most.
        min_count: words that occur less often have no vector.
        epochs: how often the texts are read.
        negative: words drawn against each right one.
        tokenise: from a text to its words.
        progress: a bar: True, False or None (where somebody is looking).

    Returns:
        The embedding, the most frequent word first.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if a number is out of range, or fewer than two words occur `min_count` times.
        ModuleNotFoundError: without gensim; it says what to install.

    Source:
        Mikolov et al. (2013); gensim 3.8.3, `Word2Vec.seeded_vector`, for the hashed start.

    Example:
        >>> from importlib.util import find_spec
        >>> if find_spec("gensim"):
        ...     found = embed(["a cat sat", "a dog sat", "a dog ran"], min_count=2, dim=4)
        ...     assert (len(found), found.words[0]) == (3, "a")
    """
    choice("start", start, STARTS)
    seed = integer("seed", seed, 0, 2**32 - 1)
    sizes = {"vector_size": dim, "window": window, "min_count": min_count, "negative": negative}
    for (name, value), shown in zip(sizes.items(), ("dim", *list(sizes)[1:]), strict=True):
        sizes[name] = integer(shown, value, 1)
    epochs = integer("epochs", epochs, 1)
    sentences = [list(words) for words in map(tokenise, training_texts(texts)) if words]
    model = needed("gensim.models", "embed").Word2Vec(
        **sizes, epochs=epochs, seed=seed, sg=0, workers=1
    )
    model.build_vocab(sentences)
    if len(model.wv) < 2:
        requirement = f"texts in which at least two words occur min_count = {min_count} times"
        found = f"{len(sentences):,} texts with words"
        raise invalid("texts", requirement, found)
    if start == "hashed":
        model.wv.vectors[:] = [_hashed(word, seed, dim) for word in model.wv.index_to_key]
    with Progress("word2vec", epochs * len(sentences), progress) as bar:
        _train(model, _Watched(sentences, bar), epochs)
    origin = f"word2vec, start {start}, seed {seed}"
    return Embedding(model.wv.index_to_key, model.wv.vectors, origin)


def _hashed(word: str, seed: int, dim: int) -> Floats:
    """Numbers in [-.5/dim, .5/dim) from the SHAKE-256 of word and seed."""
    drawn = hashlib.shake_256(f"{word}{seed}".encode()).digest(4 * dim)
    return (np.frombuffer(drawn, dtype="<u4") / 2.0**32 - 0.5) / dim


def _train(model: Any, watched: _Watched, epochs: int) -> None:
    """Train on a thread, where no interrupt can fall between two steps of gensim's queues.

    In this thread one would leave gensim's own threads waiting for ever, and can release a lock
    that one of them holds.
    """
    stop = needed("gensim.models.callbacks", "embed").CallbackAny2Vec()
    stop.on_epoch_end = watched.end_epoch
    running, failures = threading.Lock(), list[BaseException]()

    def train() -> None:
        try:
            total = len(watched.sentences)
            model.train(watched, total_examples=total, epochs=epochs, callbacks=[stop])
        except BaseException as failure:
            failures.append(failure)
        finally:
            running.release()

    running.acquire()
    thread = threading.Thread(target=train, name="word2vec", daemon=True)
    try:
        thread.start()
        # A lock alone, nothing in steps; without a timeout nothing interrupts it on Windows.
        while not running.acquire(timeout=0.1):
            pass
    except KeyboardInterrupt:
        watched.stopped = True
        while thread.is_alive():
            time.sleep(0.01)
        raise
    for failure in failures:
        raise failure


class _Watched:
    """Sentences that move a bar whenever they are read, until they are stopped."""

    _STEP: Final = 1000

    def __init__(self, sentences: Sequence[list[str]], bar: Progress) -> None:
        self.stopped = False
        self.sentences, self._bar = sentences, bar

    def end_epoch(self, _: Any) -> None:
        """No further epoch after a stop."""
        if self.stopped:
            raise KeyboardInterrupt

    def __iter__(self) -> Iterator[list[str]]:
        for begin in range(0, len(self.sentences), self._STEP):
            part = self.sentences[begin : begin + self._STEP]
            if self.stopped:
                return
            yield from part
            self._bar.advance(len(part))
