"""Attackers: calls of an encoder, transforms of its rows, and classifiers fitted on them."""

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

from ...errors import about, integer, invalid, message, mistyped, numeric, part_of
from ...mechanisms.declarations import mechanism_attribute
from ...mechanisms.texts import (
    BatchCheck,
    TextFunction,
    check_batches,
    choose_by_length,
    look_up,
    owner_of,
    rounding_of,
    takes_rng,
)
from ...packages import has_all, is_tensor, require_module
from ...progress import LONG_SECONDS
from ...records import Ints
from ...report.shown import Shown
from ...streams import Generators
from ...suggestions import suggest_arguments
from .targets import MANY_VALUES, Target, rank_values

Vectors = npt.NDArray[np.float64]

_MAX_COMPARED_TEXTS: Final = 8
"""Texts of train that are encoded in batches of others."""
_TIMED_CALL_SIZES: Final = (8, 64)
"""Texts of the calls that are timed: they separate the time of a text from that of a call."""
ENCODER_STREAM_KEY: Final = 31
"""Names the streams of encoders among those of a seed; the part of the corpus follows."""

_TRAILING_BIT_COUNTS: Final = (8, 16, 29, 40)
"""Zero bits at the end of a number: of grids, of half types, of float32 (29), of short decimals."""
CALL_TRANSFORMS: Final = ("call mean subtracted", "rows, call and summaries")
"""Those in which the score of a text depends on the other texts of its call."""
_NETWORK_BATCH_SIZE: Final = 200
_NETWORK_STEPS: Final = 600
"""Steps of the network: 10 epochs of 11,657 texts, where its F1 has settled."""
_MIN_AND_MAX_ROUNDS: Final = (15, 60)
_MAX_BOOSTED_TREES: Final = 480
"""Trees of all rounds; each value takes one a round, and there are 15 rounds at least."""
_MAX_TREE_LEAVES: Final = 15
_MULTICLASS_TREE_BINS: Final = 32
"""Bins of a column for trees of more than two values, each of which has trees of its own. With 255
they take five times as long: of 10 values 17.5 CPU seconds at 600 x 384 in place of 3, and find no
more."""
_ROW_TRANSFORMS: Final = ("raw", "centred", "row minimum subtracted", "norm-scaled")
_NETWORK_TRANSFORMS: Final = ("raw", "centred")
"""A network costs as much as twenty logistic regressions."""
_RIDGE_PENALTIES: Final = tuple(10.0**power for power in range(-1, 6))
SCORE_METHODS: Final = ("predict_proba", "decision_function")
_DIVIDING_SETTINGS: Final = ("early_stopping", "oob_score", "probability", "cv")
"""Settings with which an estimator of scikit-learn holds training texts back."""
_COPYING_FAMILIES: Final = ("linear_model", "tree", "ensemble", "discriminant_analysis")
"""Modules of scikit-learn whose estimators learn from several encodings of a text."""
_TREE_TRANSFORM: Final = "rows, call and summaries"
"""For trees, which choose among many columns; neighbours would drown in them."""


def encoder_of(encoder: Any) -> Callable[..., Any]:
    """Return the function of an encoder: its method `encode` if it has one, else itself.

    Of a dictionary from texts to vectors the function that looks texts up.

    Raises:
        TypeError: if it is neither.
    """
    if isinstance(encoder, Mapping):
        return lambda texts: look_up(encoder, texts)
    method = None if isinstance(encoder, (str, bytes, type)) else find_method(encoder, "encode")
    function: Callable[..., Any] = encoder if method is None else method
    if not callable(function) or isinstance(function, type):
        need = "a function list[str] -> array, an object with one, or a dictionary text -> vector"
        raise mistyped("encode", need, encoder)
    # A method stays one: checks and claims look at its object.
    if method is not None or owner_of(encoder) is not None:
        return function
    wrapped = TextFunction(encoder)
    return (lambda texts, rng: wrapped(texts, rng=rng)) if takes_rng(encoder) else wrapped


def find_method(owner: Any, *names: str) -> Any:
    """Return the first method of these names that an object of any class has, or None."""
    return next(filter(callable, (getattr(owner, name, None) for name in names)), None)


def vectors_of(
    encode: Callable[..., Any],
    parts: Sequence[Sequence[str]],
    seed: int,
    places: Sequence[Any] | None = None,
) -> list[Vectors]:
    """Compute the vectors of all texts, each part in a separate call.

    An encoder with an argument `rng` gets a generator of its own for each call, so that no noise
    of one part comes again in another.

    Args:
        encode: list[str] -> array of shape (n, d).
        parts: the texts.
        seed: of the streams.
        places: the positions of each part's texts in the corpus, for complaints, which quote none.

    Returns:
        One array of float64 a part, shape (n, d).

    Raises:
        TypeError: if the encoder does not return real numbers.
        ValueError: if it returns another number of rows, of changing width, NaN or infinity.
    """
    noisy, made = takes_rng(encode), list[Vectors]()
    for part, texts in enumerate(parts):
        more = {"rng": make_generator(seed, ENCODER_STREAM_KEY, part)} if noisy else {}
        rows = range(len(texts)) if places is None else places[part]
        vectors = check_vectors(encode(list(texts), **more), rows)
        if made and vectors.shape[1] != made[0].shape[1]:
            requirement = f"{made[0].shape[1]} wide as before"
            raise about(invalid("encode(texts)", requirement, f"{vectors.shape[1]}"), "encode")
        made.append(vectors)
    return made


def make_generator(seed: int, *key: int) -> np.random.Generator:
    """Make the generator of one stream of a seed."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def estimate_seconds(encode: Callable[..., Any], parts: Sequence[Sequence[str]]) -> float:
    """Estimate the time for encoding all texts from one or two small calls, before the first part.

    Generators are left as they were. A call that fails gives no estimate: the encoder fails again
    on the first part, whose message is about all of its texts.

    Args:
        encode: list[str] -> array of shape (n, d).
        parts: the texts.

    Returns:
        Seconds; 0 where it is not known.
    """
    more = {"rng": np.random.default_rng(ENCODER_STREAM_KEY)} if takes_rng(encode) else {}
    sizes, taken = list[int](), list[float]()
    total = sum(map(len, parts))
    with Generators.everywhere():
        for most in _TIMED_CALL_SIZES:
            # In even steps: the order may go by length.
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
    # What the first call took more than the second, which has more texts, is its start.
    few, many = min(taken), taken[-1]
    each = (many - few) / (sizes[-1] - sizes[0])
    return total * each + len(parts) * max(0.0, few - sizes[0] * each)


def check_encoder(
    encode: Callable[..., Any], texts: Sequence[str], rounding: float | None, places: Sequence[int]
) -> BatchCheck:
    """Check that a text has the same vector whatever other texts are encoded with it.

    Of an object with noise, such as a `PrivateEncoder`, its method `clean` is checked. Generators
    are left as they were.

    Args:
        encode: list[str] -> array of shape (n, d).
        texts: some of different lengths are chosen.
        rounding: see `rounding_of`.
        places: their positions in the corpus, for complaints, which quote no text.

    Returns:
        The `BatchCheck`; of a random encoder the reason why it was not compared.

    Raises:
        ValueError: if the vectors change.
    """
    clean = mechanism_attribute(owner_of(encode), "clean")
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
        return BatchCheck(np.nan, rounding_of(rounding, dtype[0]), len(chosen), reason)
    return check_batches(
        vectors, chosen, lambda: rounding_of(rounding, dtype[0]), name="encode", shown=shown
    )


def rows_given(
    encode: Any, rows: Any, texts: Sequence[str], places: Sequence[Any]
) -> list[Vectors]:
    """Take rows that were made elsewhere, part by part.

    Args:
        encode: None, for the rows take its place.
        rows: one for each text, shape (n, d).
        texts: all texts of the corpus.
        places: the positions of each part's texts among them.

    Raises:
        TypeError: if `encode` is given, too, or the rows are not numbers.
        ValueError: if they are not one for each text, or not finite.
    """
    if encode is not None:
        raise mistyped("encode", "None where vectors are given", encode)
    array = check_vectors(rows, range(len(texts)), "vectors")
    return [array[place] for place in places]


def check_vectors(rows: Any, places: Sequence[int], name: str = "encode(texts)") -> Vectors:
    """Return finite float64 vectors, one for each text; complaints name places and no text."""
    with part_of(name.partition("(")[0]):
        if has_all(rows, "toarray"):
            raise mistyped(name, "a dense array, which .toarray() makes", rows)
        if is_tensor(rows):
            # A tensor may need gradients, be on a device, or have a dtype that numpy lacks.
            rows = rows.detach().cpu().double()
        requirement = f"an array of shape ({len(places)}, d), a row of finite numbers for each text"
        try:
            array = numeric(name, requirement, rows)
        except (TypeError, ValueError) as error:
            # What an encoder returns may hold its texts.
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
    """Return the rows unchanged."""
    return vectors


def centre_rows(vectors: Vectors) -> Vectors:
    """Subtract each row's mean, which removes noise that is one draw for a whole row."""
    return np.asarray(vectors - vectors.mean(axis=1, keepdims=True))


def subtract_row_minimum(vectors: Vectors) -> Vectors:
    """Subtract each row's minimum: a row of minimum 0 with one draw of noise becomes clean.

    Example:
        >>> subtract_row_minimum(np.array([[0.0, 1.0, 0.25]]) + 7.0)
        array([[0.  , 1.  , 0.25]])
    """
    return np.asarray(vectors - vectors.min(axis=1, keepdims=True))


def normalise_rows(vectors: Vectors) -> Vectors:
    """Divide each row by its L2 norm, which removes a scale of its own; rows of zeros stay."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(norms > 0.0, norms, 1.0))


def subtract_call_mean(vectors: Vectors) -> Vectors:
    """Subtract the mean of every column: one draw of noise for all texts of a call is gone.

    Example:
        >>> subtract_call_mean(np.array([[0.0, 2.0], [1.0, 4.0]]) + 7.0)
        array([[-0.5, -1. ],
               [ 0.5,  1. ]])
    """
    return np.asarray(vectors - vectors.mean(axis=0))


def summarise_rows(vectors: Vectors) -> Vectors:
    """Compute what a row shows as a whole: norms, extremes, equal entries, zeros and last bits.

    Args:
        vectors: shape `(n, d)`.

    Returns:
        Shape `(n, 14)`: L1, L2 and largest norm, mean, standard deviation, smallest and largest
        entry, share of zeros, of negative entries and of entries equal to another of the row, and
        the shares of entries that end in 8, 16, 29 and 40 zero bits.
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


def join_views(vectors: Vectors) -> Vectors:
    """Join the rows, the columns less their call's mean, and the summaries of the rows."""
    return np.hstack([vectors, subtract_call_mean(vectors), summarise_rows(vectors)])


TRANSFORMS: Final[dict[str, Callable[[Vectors], Vectors]]] = {
    "raw": keep_rows,
    "centred": centre_rows,
    "row minimum subtracted": subtract_row_minimum,
    "norm-scaled": normalise_rows,
    "call mean subtracted": subtract_call_mean,
    "row summaries": summarise_rows,
    "rows, call and summaries": join_views,
}
"""The transforms by the names that an `Attacker` takes."""


@suggest_arguments
@dataclass(frozen=True, repr=False)
class Attacker(Shown):
    """A classifier behind a transform.

    Args:
        estimator: with `fit(X, y)` and `predict_proba`, `decision_function` or `predict`, as
            scikit-learn has them; copied before it is fitted. y holds 0 and 1, or 0, 1, 2, ...
            for an attribute of more values; of a number, for which it is a regressor, floats.
        transform: "raw", "centred", "row minimum subtracted", "norm-scaled", "call mean
            subtracted", "row summaries", "rows, call and summaries", or a function of the rows,
            (n, d) -> (n, d').
        name: what reports call the classifier. None is its class.

    Raises:
        TypeError: if the estimator or the transform is of the wrong kind.
        ValueError: if no transform has that name.

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
        """Name of the classifier in reports."""
        return self.name or type(self.estimator).__name__

    @property
    def behind(self) -> str:
        """Name of the transform in reports."""
        if isinstance(self.transform, str):
            return self.transform
        named = self.transform if has_all(self.transform, "__name__") else type(self.transform)
        return str(named.__name__)

    @property
    def reads_call(self) -> bool:
        """True where the score of a text depends on the other texts of its call."""
        return self.transform in CALL_TRANSFORMS or not isinstance(self.transform, str)

    def __str__(self) -> str:
        """Return the classifier and its transform as text."""
        return f"{self.classifier}, {self.behind}"


def attackers_of(given: Any, rows: int, values: int | None = 2) -> tuple[Attacker, ...]:
    """Return the attackers: those given, an estimator behind each transform, or the usual ones.

    Args:
        given: None, an `Attacker`, an estimator, or several of both.
        rows: texts to train on.
        values: see `usual`.

    Raises:
        TypeError: if one of them is neither an attacker nor an estimator.
        ValueError: if there is none.
    """
    if given is None:
        return usual(rows, values)
    # A pipeline of scikit-learn has a length, too.
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


@suggest_arguments
def usual(rows: int, values: int | None = 2) -> tuple[Attacker, ...]:
    """Return the attackers that are tried if none are given, for a number of training texts.

    Logistic regression on columns that are robustly scaled and the 15 nearest neighbours, each
    behind the four transforms of rows and on columns less the mean of their call; logistic
    regression on summaries of the rows; a network of 256 hidden units on rows and on centred rows;
    and boosted trees, in 60 rounds, on rows, columns less the mean of their call and summaries
    together; of more values than two on columns in 32 bins, of more than 8 in fewer rounds (15 of
    32 or more), since each value takes a tree a round.

    From 50 values on, ridge classification, the 15 neighbours and the nearest mean of a value: they
    alone take seconds for 1,000 values. Of a number, ridge regression, neighbours and trees.

    Args:
        rows: texts to train on.
        values: number of values of the attribute, or None for a number.

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
    # Half of the time, and standardised coordinates need no more digits.
    single = scaling.FunctionTransformer(np.float32)
    network = networks.MLPClassifier((256,), max_iter=epochs, batch_size=batch)

    def standardise(*models: Any) -> Any:
        # The inverse hyperbolic sine: a single entry of heavy noise must not set the scale.
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
    """A classifier by the distance to the mean of each value, on standardised columns.

    That of scikit-learn needs two texts of a value, and before 1.6 it gives no scores.
    """

    def fit(self, rows: Vectors, truth: Any) -> NearestMean:
        """Compute the mean of each value."""
        self.classes_, place = np.unique(truth, return_inverse=True)
        spread = rows.std(axis=0)
        self._scale = np.where(spread > 0.0, spread, 1.0)
        sums = np.zeros((len(self.classes_), rows.shape[1]))
        np.add.at(sums, place, rows / self._scale)
        self._means = sums / np.bincount(place)[:, np.newaxis]
        return self

    def decision_function(self, rows: Vectors) -> Vectors:
        """Score every value, shape (n, values); of two the second, shape (n,)."""
        scores = rows / self._scale @ self._means.T - (self._means**2).sum(axis=1) / 2.0
        return np.asarray(scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores)

    def predict(self, rows: Vectors) -> Any:
        """Return the value of the nearest mean."""
        scores = self.decision_function(rows)
        places = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(int)
        return self.classes_[places]


@dataclass(frozen=True)
class FittedAttacker:
    """An attacker that has been fitted.

    Args:
        attacker: the attacker.
        models: one for all attributes, or one for each.
        target: what is inferred.
        counts: of one attribute of more than two values, training texts of each.
    """

    attacker: Attacker
    models: tuple[Any, ...]
    target: Target
    counts: Ints | None = None

    def ranks(self, vectors: Vectors) -> Ints:
        """Rank all values of one attribute, 1 for the first, shape (n, values).

        Of equal scores the value that is more frequent in train comes first. Values that train
        lacks cannot be named: they share the rank after all others.

        Raises:
            ValueError: if the classifier or the transform returns NaN or another shape.
        """
        assert self.counts is not None
        rows, model = _apply_transform(self.attacker, vectors), self.models[0]
        present = np.flatnonzero(self.counts)
        scores = np.zeros((len(rows), len(self.counts)))
        scores_of_present = _scores_of_values(model, rows, present)
        scores[:, present] = self._check(scores_of_present, (len(rows), len(present)), "value")
        order = np.argsort(-self.counts, kind="stable")
        ranks = np.empty(scores.shape, np.int64)
        ranks[:, order] = rank_values(scores[:, order], self.counts[order] > 0)
        return ranks

    def scores(self, vectors: Vectors) -> Vectors:
        """Return scores of the positive value, else codes or numbers, shape (n, attributes).

        Raises:
            ValueError: if the classifier or the transform returns NaN or another shape.
        """
        if self.counts is not None:
            return np.asarray(self.ranks(vectors).argmin(axis=1)[:, np.newaxis], np.float64)
        rows = _apply_transform(self.attacker, vectors)
        width, binary = len(self.target.names) // len(self.models), self.target.binary
        scores_of_models = [_predict_scores(model, rows, binary, width) for model in self.models]
        return np.hstack(
            [self._check(scores, (len(rows), width), "attribute") for scores in scores_of_models]
        )

    def _check(self, scores: Vectors, shape: tuple[int, int], column: str) -> Vectors:
        """Return finite scores of a shape; raise an error for others."""
        if scores.shape != shape or not np.isfinite(scores).all():
            need = f"one that returns finite scores, one for each text and {column}"
            raise invalid(f"attacker {self.attacker}", need, scores)
        return scores


def _scores_of_values(model: Any, rows: Vectors, present: Ints) -> Vectors:
    """Return scores of known values, shape (n, known): 1 or 0 without a scoring method."""
    for name in ("decision_function", "predict_proba"):
        if method := find_method(model, name):
            scores = np.asarray(method(rows), np.float64)
            if scores.shape == (len(rows), len(present)):
                return scores
    scores = np.asarray(model.predict(rows), np.float64).reshape(len(rows), -1)
    return np.asarray(scores == present, np.float64)


def choose_encodings(estimator: Any) -> str:
    """Return the encodings that an estimator learns from: "all", "one each epoch" or "one".

    Regressions, trees and the nearest mean learn from all of them, a network from a fresh one in
    each epoch. Neighbours learn from one. So does an estimator that compares settings on texts
    which it holds back, because it would learn these from their other encodings. Other classes
    than those of scikit-learn learn from one, because they may do so, too.

    Example:
        >>> from sklearn.linear_model import LogisticRegression, RidgeCV
        >>> [choose_encodings(model) for model in (LogisticRegression(), RidgeCV(), object())]
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
    if _is_network(last) and last.solver != "lbfgs":
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
    """Fit the attacker on a copy of its estimator.

    Args:
        attacker: the attacker.
        vectors: of the training texts, shape (n, d).
        truth: codes of their attributes, or numbers, shape (n, attributes).
        target: what is inferred.
        seed: for estimators that take a `random_state` and were given none.
        copies: further encodings of the same texts, for estimators that learn from them.

    Raises:
        TypeError: if it has no `predict` and the attribute more values than two, or classifies
            where the attribute is a number.
    """
    if not target.binary and not find_method(attacker.estimator, "predict"):
        need = "one with predict, for an attribute of more than two values"
        raise mistyped("estimator", need, attacker.estimator)
    if target.is_number and find_method(attacker.estimator, *SCORE_METHODS):
        need = f"a regressor, without {' and '.join(SCORE_METHODS)}, for a number"
        raise mistyped("estimator", need, attacker.estimator)
    used = choose_encodings(attacker.estimator) if copies else "one"
    # Each encoding is a call of its own, as that of the texts that are attacked.
    encodings = [vectors, *(copies if used != "one" else ())]
    rows = [_apply_transform(attacker, encoding) for encoding in encodings]
    is_joint = _is_network(attacker.estimator) or has_all(attacker.estimator, "learns_several")
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
    """Return the last step of a pipeline, and any other estimator itself."""
    return estimator.steps[-1][1] if has_all(estimator, "steps") else estimator


def _is_network(estimator: Any) -> bool:
    """Return True for scikit-learn's network, which learns several attributes at once."""
    last = _find_last_step(estimator)
    return type(last).__name__ == "MLPClassifier" and type(last).__module__.startswith("sklearn.")


def _fit_estimator(
    estimator: Any, encodings: Sequence[Vectors], truth: npt.NDArray[Any], seed: int
) -> Any:
    """Fit a copy of an estimator on all encodings of the texts."""
    rows = np.concatenate(encodings) if len(encodings) > 1 else encodings[0]
    truth = np.concatenate([truth] * len(encodings))
    if not has_all(estimator, "get_params"):
        model = copy.deepcopy(estimator)
        model.fit(rows, truth)
        return model
    model = _clone_estimator(estimator, seed)
    with _ignored_convergence():
        model.fit(rows, truth)
    return model


def _fit_epochs(
    estimator: Any, encodings: Sequence[Vectors], truth: npt.NDArray[Any], seed: int
) -> Any:
    """Train a copy of a network on another encoding of the texts in each of its epochs.

    The steps before it in a pipeline are fitted on the first encoding.
    """
    model = _clone_estimator(estimator, seed)
    network = _find_last_step(model)
    if network is not model and len(model.steps) > 1:
        front = model[:-1].fit(encodings[0], truth)
        encodings = [front.transform(rows) for rows in encodings]
    # Values of one attribute, or places of several attributes.
    classes = np.unique(truth) if truth.ndim == 1 else np.arange(truth.shape[1])
    # One stream for all epochs: a number would repeat the order of the texts in each of them.
    network.random_state = np.random.RandomState(seed % 2**32)
    for epoch in range(network.max_iter):
        rows = encodings[epoch % len(encodings)]
        network.partial_fit(rows, truth, **({} if epoch else {"classes": classes}))
    return model


def _clone_estimator(estimator: Any, seed: int) -> Any:
    """Copy an estimator of scikit-learn, and set random states that were not given."""
    from sklearn.base import clone

    model = clone(estimator)
    free = (name for name, value in model.get_params().items() if value is None)
    states = [name for name in free if name.rpartition("__")[2] == "random_state"]
    return model.set_params(**dict.fromkeys(states, seed % 2**32))


@contextmanager
def _ignored_convergence() -> Iterator[None]:
    """Ignore warnings of weights short of the optimum: they make an attacker as good as any."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def _predict_scores(model: Any, rows: Vectors, binary: bool, width: int) -> Vectors:
    """Return a model's best answers: probabilities, else decision function, else predictions."""
    asked = (*SCORE_METHODS, "predict") if binary else ("predict",)
    scores = np.asarray(find_method(model, *asked)(rows), np.float64)
    if width == 1 and scores.ndim == 2 and scores.shape[1] == 2:
        # The probabilities of both values: that of the second is enough.
        scores = scores[:, 1:]
    return scores.reshape(len(scores), -1)
