"""Attackers on redacted texts, which use words, characters, and the positions of masks."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...errors import invalid, mistyped, numeric
from ...packages import has_all, require_module
from ..inference.attackers import SCORE_METHODS, Attacker, find_method
from ..inference.metrics import mid_rank_fractions
from .masking import MASK, split_words

_Ints = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]

_WORD_RUNS: Final = (1, 2, 3)
_CHARACTER_RUNS: Final = (2, 3, 4, 5)
_TOKEN: Final = re.compile(rf"{re.escape(MASK)}|\w+|[^\w\s]")
_MASK_RUN: Final = re.compile(rf"{re.escape(MASK)}(?: {re.escape(MASK)})*")
_MASK_CHARACTER: Final = "\0"
"""Character that replaces a run of masks. The letters of the word MASK are not letters of the
text."""

_HASH_BITS: Final = 20
"""Number of bits of a hash, which is the column number of an n-gram. 288 abstracts have 100,000
n-grams of words, and as many of characters."""
_MAX_PLACE: Final = 255
"""Largest position, run length and number of words that has a separate column. All larger values
are counted in the same column as this value."""

_INVERSE_PENALTY: Final = 10.0
_PLACE_SHARES: Final = (0.3, 1.0)
"""Possible factors of the columns for mask positions. The n-grams have factor 1. For news and
abstracts, .3 gives a larger AUC than 1 (by .03). For utterances, 1 gives a larger AUC (by .05)."""
_FOLDS: Final = 3
ESTIMATOR_ANSWERS: Final = (*SCORE_METHODS, "predict", "classes_")
"""Attributes of an estimator that `infer` reads."""

_ATTACKER_NEED: Final = (
    "objects with fit(texts, truth) and scores(texts), estimators or Attacker objects for "
    "vectors, or 'usual'"
)


def _count_pairs(columns: _Ints, rows: _Ints, shape: tuple[int, int]) -> Any:
    """Return a sparse matrix with the number of times that each (row, column) pair occurs."""
    keys = np.sort(rows * shape[1] + columns)
    firsts = np.flatnonzero(np.diff(keys, prepend=-1))
    counts = np.diff(firsts, append=len(keys)).astype(np.float64)
    rows, columns = np.divmod(keys[firsts], shape[1])
    starts = np.searchsorted(rows, np.arange(shape[0] + 1))
    sparse = require_module("scipy.sparse", "redaction.sweep")
    return sparse.csr_matrix((counts, columns, starts), shape=shape)


def _count_runs(symbols: _Ints, lengths: _Ints, sizes: Sequence[int]) -> Any:
    """Count all n-grams of given sizes in sequences of numbers; a hash is the column number."""
    rows = np.repeat(np.arange(len(lengths)), lengths)
    ends = np.repeat(np.cumsum(lengths), lengths)
    numbers = symbols.astype(np.uint64) + np.uint64(1)
    hashes = np.zeros(len(symbols), np.uint64)
    columns, places = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for size in range(1, max(sizes) + 1):
        n_runs = max(0, len(symbols) - size + 1)
        # Multipliers of splitmix64; products are modulo 2^64.
        hashes = hashes[:n_runs] * np.uint64(0x9E3779B97F4A7C15)
        hashes += numbers[size - 1 :] * np.uint64(0xBF58476D1CE4E5B9)
        if size in sizes:
            inside = np.flatnonzero(np.arange(size, n_runs + size) <= ends[:n_runs])
            mixed = hashes[inside]
            mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0x94D049BB133111EB)
            columns.append((mixed >> np.uint64(64 - _HASH_BITS)).astype(np.int64))
            places.append(rows[inside])
    shape = len(lengths), 2**_HASH_BITS
    return _count_pairs(np.concatenate(columns), np.concatenate(places), shape)


def count_word_ngrams(texts: Sequence[str]) -> Any:
    """Count the n-grams of 1 to 3 tokens in each text, with one row per text.

    A token is a word in lower case, a mask, or a punctuation mark. The result is a sparse matrix.
    """
    tokens = [[token.lower() for token in _TOKEN.findall(text)] for text in texts]
    numbers = {word: _hash_word(word) for row in tokens for word in row}
    symbols = np.array([numbers[word] for row in tokens for word in row], np.int64)
    return _count_runs(symbols, np.array(list(map(len, tokens))), _WORD_RUNS)


def _hash_word(word: str) -> int:
    """Return a hash of a word that is the same in every process, unlike `hash`."""
    return int.from_bytes(blake2b(word.encode("utf-8", "surrogatepass"), digest_size=7).digest())


def count_char_ngrams(texts: Sequence[str]) -> Any:
    """Count the n-grams of 2 to 5 characters in each text, with one row per text.

    A run of adjacent masks counts as one character. The result is a sparse matrix.
    """
    padded = [f" {_MASK_RUN.sub(_MASK_CHARACTER, text)} " for text in texts]
    codes = "".join(padded).encode("utf-32-le", "surrogatepass")
    symbols = np.frombuffer(codes, np.uint32).astype(np.int64)
    return _count_runs(symbols, np.array(list(map(len, padded))), _CHARACTER_RUNS)


def count_masks_and_kept_words_by_position(texts: Sequence[str]) -> Any:
    """Count masks and unmasked words at each position of each text, with one row per text.

    Positions are counted from both ends of the text. Other columns count runs of adjacent masks,
    and runs of adjacent words without a mask, by their length. The last columns have the number of
    masks, the number of words without a mask, and the number of all words. The result is a sparse
    matrix.
    """
    words = [[word == MASK for word in split_words(text)] for text in texts]
    lengths = np.array(list(map(len, words)))
    masked = np.array([flag for row in words for flag in row], np.int64)
    rows = np.repeat(np.arange(len(texts)), lengths)
    places = np.arange(len(masked)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    starts = np.flatnonzero(np.diff(2 * rows + masked, prepend=-1))
    n_masks = np.bincount(rows, masked, len(texts)).astype(np.int64)
    every = np.arange(len(texts))
    parts = [
        (places, masked, rows),
        (lengths[rows] - 1 - places, masked, rows),
        (np.diff(starts, append=len(masked)), masked[starts], rows[starts]),
        (n_masks, 1, every),
        (lengths - n_masks, 0, every),
        (lengths, 0, every),
    ]
    width = 2 * (_MAX_PLACE + 1)
    columns = [
        part * width + 2 * np.minimum(numbers, _MAX_PLACE) + kinds
        for part, (numbers, kinds, _) in enumerate(parts)
    ]
    numbers = np.concatenate([part[2] for part in parts])
    return _count_pairs(np.concatenate(columns), numbers, (len(texts), width * len(parts)))


_VIEWS: Final = (count_word_ngrams, count_char_ngrams, count_masks_and_kept_words_by_position)


def _idf_weights(counts: Any) -> _Floats:
    """Return a weight for each column (inverse document frequency).

    A column with entries in many rows has a low weight. A column without entries has weight 0.
    """
    frequency = np.bincount(counts.indices, minlength=counts.shape[1])
    weights = np.log((1.0 + counts.shape[0]) / (1.0 + frequency)) + 1.0
    return np.where(frequency > 0, weights, 0.0)


def _nonzero_tfidf_columns(counts: Any, inverse: _Floats) -> Any:
    """Return the TF-IDF weights of the columns whose weight in `inverse` is above 0.

    Each row has L2 norm 1, or 0 if the row is empty.
    """
    weights = counts.copy()
    weights.data = (1.0 + np.log(counts.data)) * inverse[counts.indices]
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    norms = np.sqrt(np.bincount(rows, weights.data**2, counts.shape[0]))
    weights.data /= np.where(norms > 0.0, norms, 1.0)[rows]
    return weights[:, np.flatnonzero(inverse)]


class NGramRegression:
    """Attacker on redacted texts: logistic regression on n-grams and on the positions of masks.

    The inputs of the regression are three groups of columns: n-grams of words, n-grams of
    characters, and counts of masks by position. In each group, the TF-IDF weights of a text have L2
    norm 1. The third group is multiplied by a factor, which is chosen by cross-validation on the
    training texts.

    Source:
        Joachims (1998) for linear classifiers on all words. Weinberger et al. (2009) for hashed
        columns.

    Example:
        >>> from importlib.util import find_spec
        >>> if find_spec("sklearn"):
        ...     texts = ["[MASK] was ill", "[MASK] is fit"] * 20
        ...     attacker = NGramRegression().fit(texts, np.array([1, 0] * 20))
        ...     assert (attacker.scores(["they [MASK] ill", "they [MASK] fit"]) > 0).tolist() == [
        ...         True, False,
        ...     ]
    """

    def fit(self, texts: Sequence[str], truth: npt.NDArray[Any]) -> NGramRegression:
        """Fit this attacker (the TF-IDF weights and the regression) to redacted texts.

        Args:
            texts: redacted texts.
            truth: 1 for sensitive texts, 0 for safe texts, shape (n,).
        """
        counts = [count(texts) for count in _VIEWS]
        self._inverse = [_idf_weights(matrix) for matrix in counts]
        views = [_nonzero_tfidf_columns(*pair) for pair in zip(counts, self._inverse, strict=True)]
        self._share = self._choose_position_weight(views, truth)
        self._model = _make_regression().fit(_join_views(views, self._share), truth)
        return self

    def scores(self, texts: Sequence[str]) -> _Floats:
        """Return one score per text, shape (n,). Sensitive texts should have higher scores."""
        pairs = zip(_VIEWS, self._inverse, strict=True)
        views = [_nonzero_tfidf_columns(count(texts), inverse) for count, inverse in pairs]
        return np.asarray(self._model.decision_function(_join_views(views, self._share)))

    def _choose_position_weight(self, views: Sequence[Any], truth: npt.NDArray[Any]) -> float:
        """Return the factor of mask positions that has the best mean AUC in cross-validation."""
        # Each fold has every third text of each set.
        order = np.argsort(np.argsort(truth, kind="stable"), kind="stable")
        folds = order % _FOLDS
        areas = dict.fromkeys(_PLACE_SHARES, 0.0)
        for share in areas:
            rows = _join_views(views, share)
            for fold in range(_FOLDS):
                inside, outside = folds != fold, folds == fold
                model = _make_regression().fit(rows[inside], truth[inside])
                scores, positive = model.decision_function(rows[outside]), truth[outside] == 1
                areas[share] += mid_rank_fractions(scores[positive], scores[~positive]).mean()
        return max(areas, key=lambda share: areas[share])


def _join_views(views: Sequence[Any], position_weight: float) -> Any:
    *grams, places = views
    sparse = require_module("scipy.sparse", "redaction.sweep")
    return sparse.hstack([*grams, position_weight * places]).tocsr()


def _make_regression() -> Any:
    linear = require_module("sklearn.linear_model", "redaction.sweep")
    # The dual problem has one coordinate per text, and there are fewer texts than columns.
    return linear.LogisticRegression(
        C=_INVERSE_PENALTY, solver="liblinear", dual=True, tol=1e-3, max_iter=1000, random_state=0
    )


class TextEstimator:
    """Wrapper that allows the function `infer` to use an estimator that reads texts, not vectors.

    `infer` passes an array to the wrapper. Each row of the array has one number: the position of a
    text in the list `texts`. The wrapper passes the texts at these positions to the estimator.

    Args:
        model: object with `fit(texts, truth)` and `scores(texts)`, or a scikit-learn estimator for
            texts. `infer` fits a copy of the object.
        texts: list of all texts.
    """

    def __init__(self, model: Any, texts: Sequence[str]) -> None:
        self._model, self._texts = model, texts

    def __deepcopy__(self, memo: Any) -> TextEstimator:
        return TextEstimator(copy.deepcopy(self._model, memo), self._texts)

    def fit(self, rows: _Floats, truth: npt.NDArray[Any]) -> None:
        """Fit the estimator on the texts at the positions `rows` of the list `texts`."""
        self._model.fit(self._texts_at(rows), truth)

    def __getattr__(self, name: str) -> Any:
        """Return a method or attribute of the model. A returned method takes row numbers."""
        # `scores` is the method of an attacker on texts. The other names are from scikit-learn.
        if name in ESTIMATOR_ANSWERS:
            if has_all(self._model, "scores"):
                if name == "decision_function":
                    return self._score_text_at_each_position
            elif has_all(self._model, name):
                answer = getattr(self._model, name)
                return (lambda rows: answer(self._texts_at(rows))) if callable(answer) else answer
        raise AttributeError(name)

    def _score_text_at_each_position(self, rows: _Floats) -> _Floats:
        need = "ones whose scores(texts) returns a finite number for each text"
        scores = numeric("attackers", need, self._model.scores(self._texts_at(rows)))
        if scores.shape != (len(rows),) or not np.isfinite(scores).all():
            raise invalid("attackers", need, scores)
        return scores.astype(np.float64)

    def _texts_at(self, rows: _Floats) -> list[str]:
        # A full stop replaces an empty text, because some estimators do not accept empty texts.
        texts = [self._texts[row] for row in rows[:, 0].astype(int)]
        return [text if text.strip() else "." for text in texts]


def split_vector_and_text_attackers(attackers: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return two tuples: the attackers on vectors, and the attackers on texts.

    An attacker on texts has a method `scores`.

    Args:
        attackers: the argument `attackers` of `redaction.sweep`: an attacker or a list of
            attackers.

    Raises:
        TypeError: if an entry is neither an attacker on vectors nor an attacker on texts.
        ValueError: if the list is empty.
    """
    if attackers is None:
        return (), ()
    is_single = isinstance(attackers, (Attacker, type, str)) or has_all(attackers, "fit")
    entries = [attackers] if is_single or not isinstance(attackers, Iterable) else list(attackers)
    if not entries:
        raise invalid("attackers", "one at least", attackers)
    on_vectors, on_texts = list[Any](), list[Any]()
    for entry in entries:
        is_named = isinstance(entry, Attacker) or (isinstance(entry, str) and entry == "usual")
        can_fit = not isinstance(entry, type) and find_method(entry, "fit")
        if can_fit and find_method(entry, "scores"):
            on_texts.append(entry)
        elif is_named or (can_fit and find_method(entry, *SCORE_METHODS, "predict")):
            on_vectors.append(entry)
        else:
            raise mistyped("attackers", _ATTACKER_NEED, entry)
    return tuple(on_vectors), tuple(on_texts)
