"""Attackers (a transform of vectors with a classifier), and functions that call encoders."""

from __future__ import annotations

import copy
import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...errors import integer, invalid, message, mistyped, numeric, tag_error, tag_errors
from ...mechanisms.declarations import get_or_default
from ...mechanisms.texts import (
    BatchCheck,
    TextFunction,
    bound_object,
    check_batches,
    choose_by_length,
    look_up_vectors,
    relative_tolerance,
    takes_rng,
)
from ...packages import has_all, is_tensor, require_module
from ...progress import LONG_SECONDS
from ...records import Ints
from ...report.shown import Shown
from ...streams import Generators
from ...suggestions import explain_argument_errors
from .targets import MANY_VALUES, Target, ranks_in_rows

Vectors = npt.NDArray[np.float64]

_MAX_COMPARED_TEXTS: Final = 8
"""Number of training texts that are encoded in batches with other texts."""
_TIMED_CALL_SIZES: Final = (8, 64)
"""Numbers of texts in two timed calls, which show the time per text and the time per call."""
ENCODER_STREAM_KEY: Final = 31
"""Key of the encoder's random generators. A second key is 0 for train, 1 for valid, 2 for test."""

_TRAILING_BIT_COUNTS: Final = (8, 16, 29, 40)
"""Numbers of trailing zero bits, typical of grids, half types, float32 and short decimals."""
CALL_TRANSFORMS: Final = ("call mean subtracted", "rows, call and summaries")
"""Transforms for which a text's score depends on the other texts in the same encoder call."""
_NETWORK_BATCH_SIZE: Final = 200
_NETWORK_STEPS: Final = 600
"""Training steps of the network: 10 epochs on 11,657 texts. Then its F1 is stable."""
_MIN_AND_MAX_ROUNDS: Final = (15, 60)
_MAX_BOOSTED_TREES: Final = 480
"""Largest number of trees in all rounds together. However, there are at least 15 rounds."""
_MAX_TREE_LEAVES: Final = 15
_MULTICLASS_TREE_BINS: Final = 32
"""Number of bins per column for trees on more than two values. With 255 bins, the trees take five
times as long and are not more accurate."""
_ROW_TRANSFORMS: Final = ("raw", "centred", "row minimum subtracted", "norm-scaled")
_NETWORK_TRANSFORMS: Final = ("raw", "centred")
"""Only two: a network takes as long as twenty logistic regressions."""
_RIDGE_PENALTIES: Final = tuple(10.0**power for power in range(-1, 6))
SCORE_METHODS: Final = ("predict_proba", "decision_function")
_DIVIDING_SETTINGS: Final = ("early_stopping", "oob_score", "probability", "cv")
"""Settings with which a scikit-learn estimator holds out training texts."""
_COPYING_FAMILIES: Final = ("linear_model", "tree", "ensemble", "discriminant_analysis")
"""Modules of scikit-learn with estimators that learn from several encodings of a text."""
_TREE_TRANSFORM: Final = "rows, call and summaries"
"""Transform for boosted trees, which choose among many columns."""


def encoder_of(encoder: Any) -> Callable[..., Any]:
    """Return the function of an encoder that converts texts to vectors.

    The function is the method `encode` of the encoder, or the encoder itself if it has no such
    method. If the encoder is a dictionary from texts to vectors, the function looks up the texts.

    Raises:
        TypeError: if the encoder is not a function, not a dictionary, and has no method `encode`.
    """
    if isinstance(encoder, Mapping):
        return lambda texts: look_up_vectors(encoder, texts)
    method = None if isinstance(encoder, (str, bytes, type)) else find_method(encoder, "encode")
    function: Callable[..., Any] = encoder if method is None else method
    if not callable(function) or isinstance(function, type):
        need = "a function list[str] -> array, an object with one, or a dictionary text -> vector"
        raise mistyped("encode", need, encoder)
    # A method is returned unchanged, because checks and claims read its object.
    if method is not None or bound_object(encoder) is not None:
        return function
    wrapped = TextFunction(encoder)
    return (lambda texts, rng: wrapped(texts, rng=rng)) if takes_rng(encoder) else wrapped


def find_method(owner: Any, *names: str) -> Any:
    """Return the first of the methods `names` that an object has, or None if all are missing."""
    return next(filter(callable, (getattr(owner, name, None) for name in names)), None)


def encode_each_part(
    encode: Callable[..., Any],
    parts: Sequence[Sequence[str]],
    seed: int,
    places: Sequence[Any] | None = None,
) -> list[Vectors]:
    """Encode the texts of each part of a split, with one call of the encoder for each part.

    If the encoder has an argument `rng`, each call gets a different random generator. Therefore the
    noise of different parts is independent.

    Args:
        encode: function list[str] -> array of shape (n, d).
        parts: texts of each part, such as train, valid and test.
        seed: seed of the generators.
        places: for each part, the positions of the part's texts in the corpus. Error messages state
            these positions instead of texts, which may be private.

    Returns:
        A float64 array for each part, shape (n, d).

    Raises:
        TypeError: if the encoder does not return real numbers.
        ValueError: if the encoder does not return one vector per text, the vectors of two calls
            differ in length, or an entry is NaN or infinite.
    """
    noisy, made = takes_rng(encode), list[Vectors]()
    for part, texts in enumerate(parts):
        more = {"rng": make_generator(seed, ENCODER_STREAM_KEY, part)} if noisy else {}
        rows = range(len(texts)) if places is None else places[part]
        vectors = check_vectors(encode(list(texts), **more), rows)
        if made and vectors.shape[1] != made[0].shape[1]:
            requirement = f"{made[0].shape[1]} wide as before"
            raise tag_error(invalid("encode(texts)", requirement, f"{vectors.shape[1]}"), "encode")
        made.append(vectors)
    return made


def make_generator(seed: int, *key: int) -> np.random.Generator:
    """Return a random generator; another seed or another key gives an independent generator."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def estimate_seconds(encode: Callable[..., Any], parts: Sequence[Sequence[str]]) -> float:
    """Estimate the time in seconds to encode all texts, from one or two calls with few texts.

    The function does not change the state of the global random generators.

    Args:
        encode: function list[str] -> array of shape (n, d).
        parts: texts of each part, such as train, valid and test.

    Returns:
        The estimated seconds, or 0 if a call of the encoder raised an error.
    """
    more = {"rng": np.random.default_rng(ENCODER_STREAM_KEY)} if takes_rng(encode) else {}
    sizes, taken = list[int](), list[float]()
    total = sum(map(len, parts))
    with Generators.collect_from_memory():
        for most in _TIMED_CALL_SIZES:
            # The texts are taken at even steps, because they may be sorted by length.
            texts = list(parts[0][:: max(1, len(parts[0]) // most)][:most])
            begun = time.perf_counter()
            try:
                encode(texts, **more)
            except Exception:
                return 0.0
            sizes.append(len(texts))
            taken.append(time.perf_counter() - begun)
            if total * taken[-1] / sizes[-1] <= LONG_SECONDS or sizes[-1] == len(parts[0]):
                return total * taken[-1] / sizes[-1]
    # The second call has more texts. If the first call took longer, the excess is start-up time.
    few, many = min(taken), taken[-1]
    each = (many - few) / (sizes[-1] - sizes[0])
    return total * each + len(parts) * max(0.0, few - sizes[0] * each)


def check_encoder(
    encode: Callable[..., Any], texts: Sequence[str], rounding: float | None, places: Sequence[int]
) -> BatchCheck:
    """Check that the vector of a text does not depend on the other texts in the same call.

    The function encodes some texts in different batches, and compares the vectors. It uses the
    method `clean` (vectors without noise) if the encoder has such a method.

    Args:
        encode: function list[str] -> array of shape (n, d).
        texts: texts of the corpus. The function chooses a few texts of different lengths from them.
        rounding: largest allowed distance between two vectors of the same text, relative to the
            norm of the vector. With None, the allowed distance depends on the dtype of the vectors.
        places: positions of the texts in the corpus, which error messages state instead of texts.

    Returns:
        The result of the check. If the encoder is random, the result states why there was no check.

    Raises:
        ValueError: if the vector of a text depends on the other texts in the same call.
    """
    clean = get_or_default(bound_object(encode), "clean")
    bare, dtype = clean if callable(clean) else encode, ["float64"]

    def vectors(some: list[str]) -> Vectors:
        rows = bare(some)
        dtype[0] = str(rows.dtype) if has_all(rows, "dtype") else "float64"
        return check_vectors(rows, range(len(some)))

    chosen = choose_by_length(texts, _MAX_COMPARED_TEXTS)
    place = dict(zip(texts, places, strict=True))
    shown = [f"text {place[text]} of the corpus" for text in chosen]
    if bare is encode and takes_rng(encode):
        reason = "the encoder takes rng, so that it is random"
        return BatchCheck(np.nan, relative_tolerance(rounding, dtype[0]), len(chosen), reason)
    return check_batches(
        vectors, chosen, lambda: relative_tolerance(rounding, dtype[0]), name="encode", shown=shown
    )


def split_given_by_part(
    encode: Any, given_vectors: Any, texts: Sequence[str], places: Sequence[Any]
) -> list[Vectors]:
    """Return a list with the given vectors of each part of a corpus: train, valid and test.

    Args:
        encode: must be None, because `given_vectors` replaces the encoder.
        given_vectors: vectors, one row for each text, shape (n, d).
        texts: all texts of the corpus.
        places: for each part, the positions of the part's texts in the corpus.

    Raises:
        TypeError: if `encode` is not None, or `given_vectors` does not contain numbers.
        ValueError: if `given_vectors` does not have one row per text, or an entry is not finite.
    """
    if encode is not None:
        raise mistyped("encode", "None where vectors are given", encode)
    array = check_vectors(given_vectors, range(len(texts)), "vectors")
    return [array[place] for place in places]


def check_vectors(rows: Any, places: Sequence[int], name: str = "encode(texts)") -> Vectors:
    """Check that an array has one row of finite numbers per text, and return it as float64."""
    with tag_errors(name.partition("(")[0]):
        if has_all(rows, "toarray"):
            raise mistyped(name, "a dense array, which .toarray() makes", rows)
        if is_tensor(rows):
            # A tensor may require gradients, be on a device, or have a dtype that numpy lacks.
            rows = rows.detach().cpu().double()
        requirement = f"an array of shape ({len(places)}, d), a row of finite numbers for each text"
        try:
            array = numeric(name, requirement, rows)
        except (TypeError, ValueError) as error:
            # The message does not quote the returned value, because it may contain texts.
            raise type(error)(message(name, requirement, f"a {type(rows).__name__}")) from None
        if array.ndim != 2 or len(array) != len(places) or array.shape[1] == 0:
            raise invalid(name, requirement, array.shape)
        vectors = np.ascontiguousarray(array, dtype=np.float64)
        bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if bad.size:
            raise ValueError(
                f"{name} must be {requirement}, got NaN or infinity in {bad.size:,} of "
                f"{len(places):,} rows, first for text {places[bad[0]]} of the corpus"
            )
        return vectors


def keep_rows(vectors: Vectors) -> Vectors:
    """Return the vectors unchanged."""
    return vectors


def centre_rows(vectors: Vectors) -> Vectors:
    """Subtract from each row its mean. This removes noise that is equal in all entries."""
    return np.asarray(vectors - vectors.mean(axis=1, keepdims=True))


def subtract_row_minimum(vectors: Vectors) -> Vectors:
    """Subtract the smallest entry of each row from all entries of the row.

    Example:
        >>> subtract_row_minimum(np.array([[0.0, 1.0, 0.25]]) + 7.0)
        array([[0.  , 1.  , 0.25]])
    """
    return np.asarray(vectors - vectors.min(axis=1, keepdims=True))


def normalise_rows(vectors: Vectors) -> Vectors:
    """Divide each row by its L2 norm. Rows that contain only zeros do not change."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(norms > 0.0, norms, 1.0))


def subtract_call_mean(vectors: Vectors) -> Vectors:
    """Subtract from each column its mean. This removes a noise vector that was added to all rows.

    Example:
        >>> subtract_call_mean(np.array([[0.0, 2.0], [1.0, 4.0]]) + 7.0)
        array([[-0.5, -1. ],
               [ 0.5,  1. ]])
    """
    return np.asarray(vectors - vectors.mean(axis=0))


def row_statistics(vectors: Vectors) -> Vectors:
    """Summarise each row by 14 numbers, such as the norms of the row and its share of zeros.

    Args:
        vectors: array of shape `(n, d)`.

    Returns:
        An array of shape `(n, 14)`. The columns are, in this order:

        - the L1, L2 and maximum norm;
        - the mean, the standard deviation, the smallest and the largest entry;
        - the share of zeros, the share of negative entries, and the share of repeated entries;
        - the shares of entries whose last 8, 16, 29 and 40 bits (as float64) are zero.
    """
    sizes, width = np.abs(vectors), vectors.shape[1]
    distinct = (np.diff(np.sort(vectors, axis=1), axis=1) != 0.0).sum(axis=1) + 1
    bits = np.ascontiguousarray(vectors, np.float64).view(np.uint64)
    columns = [
        sizes.sum(axis=1), np.linalg.norm(vectors, axis=1), sizes.max(axis=1),
        vectors.mean(axis=1), vectors.std(axis=1), vectors.min(axis=1), vectors.max(axis=1),
        (vectors == 0.0).mean(axis=1), (vectors < 0.0).mean(axis=1), 1.0 - distinct / width,
        *((bits & np.uint64(2**count - 1) == 0).mean(axis=1) for count in _TRAILING_BIT_COUNTS),
    ]  # fmt: skip
    return np.stack(columns, axis=1)


def join_raw_call_centred_and_stats(vectors: Vectors) -> Vectors:
    """Join `vectors`, `subtract_call_mean(vectors)` and `row_statistics(vectors)` by columns."""
    return np.hstack([vectors, subtract_call_mean(vectors), row_statistics(vectors)])


TRANSFORMS: Final[dict[str, Callable[[Vectors], Vectors]]] = {
    "raw": keep_rows,
    "centred": centre_rows,
    "row minimum subtracted": subtract_row_minimum,
    "norm-scaled": normalise_rows,
    "call mean subtracted": subtract_call_mean,
    "row summaries": row_statistics,
    "rows, call and summaries": join_raw_call_centred_and_stats,
}
"""Mapping from the names of transforms, which `Attacker` accepts, to the transforms."""


@explain_argument_errors
@dataclass(frozen=True, repr=False)
class Attacker(Shown):
    """A classifier (or a regressor) that infers an attribute of texts from transformed vectors.

    Args:
        estimator: object with `fit(X, y)` and `predict_proba`, `decision_function` or `predict`, as
            in scikit-learn. dpcore fits a copy of the object. The argument `y` of `fit` contains
            the codes 0, 1, ... of the attribute values. If the attribute is a number, such as an
            age, the estimator must be a regressor, and `y` has floats.
        transform: transform of the vectors before the estimator. It is a function from an array of
            shape (n, d) to an array of shape (n, d'), or one of these names:

            - "raw": the vectors do not change;
            - "centred": the mean of each row is subtracted from the row;
            - "row minimum subtracted": the minimum of each row is subtracted from the row;
            - "norm-scaled": each row is divided by its L2 norm;
            - "call mean subtracted": the mean of all vectors from one call of the encoder is
              subtracted from each of these vectors;
            - "row summaries": 14 numbers replace each row, such as norms, extremes, share of zeros;
            - "rows, call and summaries": the columns of "raw", "call mean subtracted" and "row
              summaries".
        name: name of the classifier in reports. With None, it is the class name of the estimator.

    Raises:
        TypeError: if the estimator lacks a required method, or the transform has a wrong type.
        ValueError: if the name of the transform is unknown.

    Example:
        >>> from sklearn.linear_model import LogisticRegression
        >>> print(Attacker(LogisticRegression(), "centred"))
        LogisticRegression, centred
    """

    estimator: Any
    transform: str | Callable[[Vectors], Any] = "raw"
    name: str | None = None

    def __post_init__(self) -> None:
        """Check the estimator and the transform."""
        answers = find_method(self.estimator, *SCORE_METHODS, "predict")
        if isinstance(self.estimator, type) or not (answers and find_method(self.estimator, "fit")):
            need = "an estimator with fit, and predict_proba, decision_function or predict"
            raise mistyped("estimator", need, self.estimator)
        if isinstance(self.transform, str) and self.transform not in TRANSFORMS:
            names = ", ".join(map(repr, TRANSFORMS))
            raise invalid("transform", f"one of {names}, or a function", self.transform)
        if not isinstance(self.transform, str) and not callable(self.transform):
            raise mistyped("transform", "the name of a transform or a function", self.transform)

    @property
    def classifier(self) -> str:
        """Name of the classifier (or regressor) of this attacker, for reports."""
        return self.name or type(self.estimator).__name__

    @property
    def behind(self) -> str:
        """Name of the transform of this attacker, for reports."""
        if isinstance(self.transform, str):
            return self.transform
        named = self.transform if has_all(self.transform, "__name__") else type(self.transform)
        return str(named.__name__)

    @property
    def reads_call(self) -> bool:
        """True if the score of a text depends on the other texts in the same encoder call."""
        return self.transform in CALL_TRANSFORMS or not isinstance(self.transform, str)

    def __str__(self) -> str:
        """Return the name of the classifier and the name of its transform."""
        return f"{self.classifier}, {self.behind}"


def attackers_of(given: Any, rows: int, values: int | None = 2) -> tuple[Attacker, ...]:
    """Return a tuple of attackers: the given ones, or the default ones if `given` is None.

    Args:
        given: None, an `Attacker`, an estimator, or a list of attackers and estimators. An
            estimator becomes six attackers, with six different transforms of the vectors.
        rows: number of training texts.
        values: number of possible values of the attribute, or None if the attribute is a number.

    Raises:
        TypeError: if an entry is neither an attacker nor an estimator.
        ValueError: if the list is empty.
    """
    if given is None:
        return usual(rows, values)
    # A scikit-learn pipeline has a length, too.
    is_single = isinstance(given, (Attacker, type, str)) or has_all(given, "fit")
    if not is_single and not isinstance(given, Iterable):
        raise mistyped("attackers", "estimators, or Attacker objects", given)
    names, attackers = [name for name in TRANSFORMS if name != _TREE_TRANSFORM], list[Attacker]()
    for each in [given] if is_single else given:
        is_attacker = isinstance(each, Attacker)
        attackers += [each] if is_attacker else [Attacker(each, transform) for transform in names]
    if not attackers:
        raise invalid("attackers", "one at least", given)
    return tuple(attackers)


@explain_argument_errors
def usual(rows: int, values: int | None = 2) -> tuple[Attacker, ...]:
    """Return the default attackers for a number of training texts and a number of attribute values.

    An attacker is a classifier together with a transform of the vectors. The docstring of
    `Attacker` explains the names of the transforms, such as "raw". For an attribute with fewer than
    50 values, there are four kinds of classifiers:

    - logistic regression on robustly scaled columns, with the transforms "raw", "centred", "row
      minimum subtracted", "norm-scaled", "call mean subtracted" and "row summaries";
    - the 15 nearest neighbours, with the same transforms except "row summaries";
    - a network with 256 hidden units, with "raw" and "centred";
    - boosted trees, with "rows, call and summaries". The trees have 60 rounds for up to 8 values,
      fewer rounds for more values, and 15 rounds for 32 values or more.

    For 50 values or more, the classifiers are ridge classification, the 15 nearest neighbours and
    `NearestMean`. If the attribute is a number, such as an age, the regressors are ridge
    regression, the 15 nearest neighbours and boosted trees.

    Args:
        rows: number of training texts.
        values: number of possible values of the attribute, or None if the attribute is a number.

    Raises:
        ImportError: if scikit-learn is not installed.
    """
    values = None if values is None else integer("values", values, 0)
    who = "dpcore.text.inference, without attackers of your own,"
    ensembles, linear, neighbours, networks, pipeline, scaling = (
        require_module(f"sklearn.{name}", who)
        for name in ("ensemble", "linear_model", "neighbors", "neural_network", "pipeline",
                     "preprocessing")
    )  # fmt: skip
    batch = min(_NETWORK_BATCH_SIZE, rows)
    epochs = min(200, max(10, math.ceil(_NETWORK_STEPS / math.ceil(rows / batch))))
    # float32 takes half of the time, and standardised coordinates do not need more digits.
    single = scaling.FunctionTransformer(np.float32)
    network = networks.MLPClassifier((256,), max_iter=epochs, batch_size=batch)

    def standardise(*models: Any) -> Any:
        # The inverse hyperbolic sine limits the influence of a single entry with heavy noise.
        return pipeline.make_pipeline(
            scaling.RobustScaler(),
            scaling.FunctionTransformer(np.arcsinh),
            scaling.StandardScaler(),
            *models,
        )

    rows_and_call, near = (*_ROW_TRANSFORMS, "call mean subtracted"), min(15, rows)
    summaries = (*rows_and_call, "row summaries")
    settings = {"max_leaf_nodes": _MAX_TREE_LEAVES, "early_stopping": False}
    settings["max_iter"] = int(np.clip(_MAX_BOOSTED_TREES // (values or 1), *_MIN_AND_MAX_ROUNDS))
    if values is None:
        ridge, nearest = linear.RidgeCV(_RIDGE_PENALTIES), neighbours.KNeighborsRegressor(near)
        trees = ensembles.HistGradientBoostingRegressor(**settings)
        models = [
            ("ridge regression", standardise(ridge), summaries),
            ("15 neighbours", nearest, rows_and_call),
            ("boosted trees", trees, (_TREE_TRANSFORM,)),
        ]
    elif values >= MANY_VALUES:
        ridge = linear.RidgeClassifier(alpha=rows / 3.0)
        nearest = neighbours.KNeighborsClassifier(near, weights="distance")
        models = [
            ("ridge classification", standardise(ridge), summaries),
            ("15 neighbours", nearest, rows_and_call),
            ("nearest mean", NearestMean(), rows_and_call),
        ]
    else:
        settings |= {} if values == 2 else {"max_bins": _MULTICLASS_TREE_BINS}
        trees = ensembles.HistGradientBoostingClassifier(**settings)
        logistic = linear.LogisticRegression(max_iter=100)
        models = [
            ("logistic regression", standardise(logistic), summaries),
            ("15 neighbours", neighbours.KNeighborsClassifier(near), rows_and_call),
            ("network of 256", standardise(single, network), _NETWORK_TRANSFORMS),
            ("boosted trees", trees, (_TREE_TRANSFORM,)),
        ]
    return tuple(
        Attacker(model, transform, name) for name, model, behind in models for transform in behind
    )


class NearestMean:
    """Classifier that predicts, for a vector, the attribute value with the nearest mean vector."""

    def fit(self, rows: Vectors, truth: Any) -> NearestMean:
        """Compute, for each attribute value in `truth`, the mean of its vectors in `rows`."""
        self.classes_, place = np.unique(truth, return_inverse=True)
        spread = rows.std(axis=0)
        self._scale = np.where(spread > 0.0, spread, 1.0)
        sums = np.zeros((len(self.classes_), rows.shape[1]))
        np.add.at(sums, place, rows / self._scale)
        self._means = sums / np.bincount(place)[:, np.newaxis]
        return self

    def decision_function(self, rows: Vectors) -> Vectors:
        """Return the score of each attribute value for each row, shape (n, values).

        If there are two values, return only the score of the second value, shape (n,).
        """
        scores = rows / self._scale @ self._means.T - (self._means**2).sum(axis=1) / 2.0
        return np.asarray(scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores)

    def predict(self, rows: Vectors) -> Any:
        """Return for each row the attribute value whose mean vector is nearest."""
        scores = self.decision_function(rows)
        places = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(int)
        return self.classes_[places]


@dataclass(frozen=True)
class FittedAttacker:
    """An attacker (a classifier and a transform) whose models are fitted on training texts.

    Args:
        attacker: the attacker before the fit.
        models: tuple with one fitted model for all attributes, or one model for each attribute.
        target: the attributes that the attacker infers.
        counts: number of training texts with each value, if there is one attribute with more than
            two values. Otherwise None.
    """

    attacker: Attacker
    models: tuple[Any, ...]
    target: Target
    counts: Ints | None = None

    def rank_values(self, vectors: Vectors) -> Ints:
        """Rank the values of one attribute for each vector, by the scores of this attacker.

        The result has shape (n, values). Rank 1 is the value with the highest score. If two scores
        are equal, the value that is more frequent in the training texts comes first. Values that do
        not occur in the training texts have one common rank, after all other values.

        Raises:
            ValueError: if the classifier or the transform returns NaN or a wrong shape.
        """
        assert self.counts is not None
        rows, model = _apply_transform(self.attacker, vectors), self.models[0]
        present = np.flatnonzero(self.counts)
        scores = np.zeros((len(rows), len(self.counts)))
        scores_of_present = _scores_of_values(model, rows, present)
        scores[:, present] = self._check(scores_of_present, (len(rows), len(present)), "value")
        order = np.argsort(-self.counts, kind="stable")
        ranks = np.empty(scores.shape, np.int64)
        ranks[:, order] = ranks_in_rows(scores[:, order], self.counts[order] > 0)
        return ranks

    def scores(self, vectors: Vectors) -> Vectors:
        """Return the scores or predictions of this attacker for each vector, shape (n, attributes).

        For attributes with two values, an entry is the score of the second (positive) value. For an
        attribute with more values, an entry is the code of the predicted value. If the attribute is
        a number, an entry is the predicted number.

        Raises:
            ValueError: if the classifier or the transform returns NaN or a wrong shape.
        """
        if self.counts is not None:
            return np.asarray(self.rank_values(vectors).argmin(axis=1)[:, np.newaxis], np.float64)
        rows = _apply_transform(self.attacker, vectors)
        width, binary = len(self.target.names) // len(self.models), self.target.all_binary
        scores_of_models = [_predict_scores(model, rows, binary, width) for model in self.models]
        return np.hstack(
            [self._check(scores, (len(rows), width), "attribute") for scores in scores_of_models]
        )

    def _check(self, scores: Vectors, shape: tuple[int, int], column: str) -> Vectors:
        """Return the scores, after a check that they are finite and have the given shape."""
        if scores.shape != shape or not np.isfinite(scores).all():
            need = f"one that returns finite scores, one for each text and {column}"
            raise invalid(f"attacker {self.attacker}", need, scores)
        return scores


def _scores_of_values(model: Any, rows: Vectors, present: Ints) -> Vectors:
    """Return scores of the values in train, shape (n, known); 1 or 0 for a model without scores."""
    for name in ("decision_function", "predict_proba"):
        if method := find_method(model, name):
            scores = np.asarray(method(rows), np.float64)
            if scores.shape == (len(rows), len(present)):
                return scores
    scores = np.asarray(model.predict(rows), np.float64).reshape(len(rows), -1)
    return np.asarray(scores == present, np.float64)


def one_or_all_encodings(estimator: Any) -> str:
    """Choose how an estimator uses several encodings of the training texts: all of them, or one.

    An encoding is the result of one call of a random encoder. The choices are:

    - "all", for regressions, trees and `NearestMean`: the estimator learns from all encodings;
    - "one each epoch", for networks: each epoch uses another encoding;
    - "one", for nearest neighbours, for estimators that hold out training texts, and for classes
      that are not from scikit-learn: the estimator learns from one encoding.

    Example:
        >>> from sklearn.linear_model import LogisticRegression, RidgeCV
        >>> [one_or_all_encodings(model) for model in (LogisticRegression(), RidgeCV(), object())]
        ['all', 'one', 'one']
    """
    if isinstance(estimator, NearestMean):
        return "all"
    if not has_all(estimator, "get_params"):
        return "one"
    settings = estimator.get_params()
    parts = [estimator, *(value for value in settings.values() if has_all(value, "get_params"))]
    names = {key.rpartition("__")[2]: value for key, value in settings.items()}
    is_dividing = "cv" in names or any(names.get(name) for name in _DIVIDING_SETTINGS)
    is_other = any(type(part).__module__.partition(".")[0] != "sklearn" for part in parts)
    if is_dividing or is_other or any(type(part).__name__.endswith("CV") for part in parts):
        return "one"
    last = _find_last_step(estimator)
    if _is_sklearn_mlp(last) and last.solver != "lbfgs":
        return "one each epoch"
    is_stopped = type(last).__name__.startswith("Gradient") and last.n_iter_no_change is not None
    is_known = type(last).__module__.split(".")[1] in _COPYING_FAMILIES and not is_stopped
    return "all" if is_known else "one"


def fit_attacker(
    attacker: Attacker,
    vectors: Vectors,
    truth: Any,
    target: Target,
    seed: int,
    copies: Sequence[Vectors] = (),
) -> FittedAttacker:
    """Fit a copy of the attacker's estimator on the training texts, and return the fitted attacker.

    Args:
        attacker: the attacker to fit.
        vectors: vectors of the training texts, shape (n, d).
        truth: codes (0, 1, ...) of true attribute values, or true numbers, shape (n, attributes).
        target: the attributes to infer.
        seed: seed for an estimator whose `random_state` is None.
        copies: vectors from further calls of a random encoder on the training texts.

    Raises:
        TypeError: if an attribute has more than two values and the estimator has no `predict`, or
            if the attribute is a number and the estimator is a classifier.
    """
    if not target.all_binary and not find_method(attacker.estimator, "predict"):
        need = "one with predict, for an attribute of more than two values"
        raise mistyped("estimator", need, attacker.estimator)
    if target.is_number and find_method(attacker.estimator, *SCORE_METHODS):
        need = f"a regressor, without {' and '.join(SCORE_METHODS)}, for a number"
        raise mistyped("estimator", need, attacker.estimator)
    used = one_or_all_encodings(attacker.estimator) if copies else "one"
    # Each encoding comes from a separate call, like the encoding of the attacked texts.
    encodings = [vectors, *(copies if used != "one" else ())]
    rows = [_apply_transform(attacker, encoding) for encoding in encodings]
    is_joint = _is_sklearn_mlp(attacker.estimator) or has_all(attacker.estimator, "learns_several")
    at_once = truth.shape[1] == 1 or is_joint
    columns = [truth] if at_once else np.hsplit(truth, truth.shape[1])
    columns = [column[:, 0] if column.shape[1] == 1 else column for column in columns]
    fit = _fit_epochs if used == "one each epoch" else _fit_estimator
    models = tuple(fit(attacker.estimator, rows, column, seed) for column in columns)
    counts = np.bincount(truth[:, 0], minlength=len(target.values[0])) if target.is_ranked else None
    return FittedAttacker(attacker, models, target, counts)


def _apply_transform(attacker: Attacker, vectors: Vectors) -> Vectors:
    change = attacker.transform
    if isinstance(change, str):
        return TRANSFORMS[change](vectors)
    rows = np.asarray(change(vectors.copy()), np.float64)
    if rows.ndim != 2 or len(rows) != len(vectors) or not np.isfinite(rows).all():
        need = f"a function to an array of shape ({len(vectors)}, d) of finite numbers"
        raise invalid("transform", need, rows)
    return rows


def _find_last_step(estimator: Any) -> Any:
    """Return the last step of a pipeline, or the estimator itself."""
    return estimator.steps[-1][1] if has_all(estimator, "steps") else estimator


def _is_sklearn_mlp(estimator: Any) -> bool:
    """Return True for scikit-learn's `MLPClassifier`, which learns several attributes at once."""
    last = _find_last_step(estimator)
    return type(last).__name__ == "MLPClassifier" and type(last).__module__.startswith("sklearn.")


def _fit_estimator(
    estimator: Any, encodings: Sequence[Vectors], truth: npt.NDArray[Any], seed: int
) -> Any:
    """Fit a copy of an estimator on all the given encodings of the texts, and return the copy."""
    rows = np.concatenate(encodings) if len(encodings) > 1 else encodings[0]
    truth = np.concatenate([truth] * len(encodings))
    if not has_all(estimator, "get_params"):
        model = copy.deepcopy(estimator)
        model.fit(rows, truth)
        return model
    model = _clone_estimator(estimator, seed)
    with _ignore_convergence():
        model.fit(rows, truth)
    return model


def _fit_epochs(
    estimator: Any, encodings: Sequence[Vectors], truth: npt.NDArray[Any], seed: int
) -> Any:
    """Train a copy of a network, in each epoch on another encoding of the texts, and return it.

    If the network is the last step of a pipeline, the other steps are fitted on the first encoding.
    """
    model = _clone_estimator(estimator, seed)
    network = _find_last_step(model)
    if network is not model and len(model.steps) > 1:
        front = model[:-1].fit(encodings[0], truth)
        encodings = [front.transform(rows) for rows in encodings]
    # Codes of the values of one attribute, or positions of several attributes.
    classes = np.unique(truth) if truth.ndim == 1 else np.arange(truth.shape[1])
    # All epochs use one random stream. A number would repeat the order of the texts in each epoch.
    network.random_state = np.random.RandomState(seed % 2**32)
    for epoch in range(network.max_iter):
        rows = encodings[epoch % len(encodings)]
        network.partial_fit(rows, truth, **({} if epoch else {"classes": classes}))
    return model


def _clone_estimator(estimator: Any, seed: int) -> Any:
    """Return a copy of a scikit-learn estimator; the seed replaces each `random_state` of None."""
    from sklearn.base import clone

    model = clone(estimator)
    free = (name for name, value in model.get_params().items() if value is None)
    states = [name for name in free if name.rpartition("__")[2] == "random_state"]
    return model.set_params(**dict.fromkeys(states, seed % 2**32))


@contextmanager
def _ignore_convergence() -> Iterator[None]:
    """Hide warnings about convergence, because an attack does not need optimal weights."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def _predict_scores(model: Any, rows: Vectors, binary: bool, attribute_count: int) -> Vectors:
    """Return scores from the first method that the model has.

    The methods are `predict_proba`, `decision_function` and `predict`. If an attribute does not
    have two values, only `predict` is used.
    """
    asked = (*SCORE_METHODS, "predict") if binary else ("predict",)
    scores = np.asarray(find_method(model, *asked)(rows), np.float64)
    if attribute_count == 1 and scores.ndim == 2 and scores.shape[1] == 2:
        # For two probabilities, the probability of the second value is enough.
        scores = scores[:, 1:]
    return scores.reshape(len(scores), -1)
