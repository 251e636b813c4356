"""Attackers: classifiers behind a transform of the rows, fitted, and asked for scores."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...errors import invalid, mistyped
from ...hints import hinted
from ...records import Shown
from ..needed import needed
from .encoding import Vectors
from .targets import Codes, Target
from .transforms import CALL_TRANSFORMS, TRANSFORMS

__all__ = ["Attacker", "FittedAttacker", "attackers_of", "fitted", "usual"]

_BATCH: Final = 200
_STEPS: Final = 600
"""Steps of the network: 10 epochs of 11,657 texts, where its F1 has settled."""
_TREES: Final = 60
_LEAVES: Final = 15
_ROW_TRANSFORMS: Final = ("raw", "centred", "row minimum subtracted", "norm-scaled")
_NETWORK_TRANSFORMS: Final = ("raw", "centred")
"""A network costs as much as twenty logistic regressions."""
_JOINED: Final = "rows, call and summaries"
"""For trees, which choose among many columns; neighbours would drown in them."""


@hinted
@dataclass(frozen=True, repr=False)
class Attacker(Shown):
    """A classifier behind a transform.

    Args:
        estimator: with `fit(X, y)` and `predict_proba`, `decision_function` or `predict`, as
            scikit-learn has them; copied before it is fitted. y holds 0 and 1, or 0, 1, 2, ...
            for an attribute of more values.
        transform: "raw", "centred", "row minimum subtracted", "norm-scaled", "call mean
            subtracted", "row summaries", "rows, call and summaries", or a function of the rows,
            (n, d) -> (n, d').
        name: what reports call the classifier; None is its class.

    Raises:
        TypeError: if the estimator or the transform is of the wrong kind.
        ValueError: if there is no transform of that name.

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
        if isinstance(self.estimator, type) or not _classifies(self.estimator):
            need = "an estimator with fit, and predict_proba, decision_function or predict"
            raise mistyped("estimator", need, self.estimator)
        if isinstance(self.transform, str) and self.transform not in TRANSFORMS:
            known = ", ".join(map(repr, TRANSFORMS))
            raise invalid("transform", f"one of {known}, or a function", self.transform)
        if not isinstance(self.transform, str) and not callable(self.transform):
            raise mistyped("transform", "the name of a transform or a function", self.transform)

    @property
    def classifier(self) -> str:
        """What reports call the classifier."""
        return self.name or type(self.estimator).__name__

    @property
    def behind(self) -> str:
        """What reports call the transform."""
        if isinstance(self.transform, str):
            return self.transform
        return getattr(self.transform, "__name__", type(self.transform).__name__)

    @property
    def reads_call(self) -> bool:
        """True where the score of a text depends on the other texts of its call."""
        return self.transform in CALL_TRANSFORMS or not isinstance(self.transform, str)

    def __str__(self) -> str:
        """The classifier and its transform."""
        return f"{self.classifier}, {self.behind}"


def _classifies(estimator: Any) -> bool:
    asked = ("predict_proba", "decision_function", "predict")
    answers = any(callable(getattr(estimator, name, None)) for name in asked)
    return answers and callable(getattr(estimator, "fit", None))


def attackers_of(given: Any, rows: int) -> tuple[Attacker, ...]:
    """The attackers: those given, an estimator behind each of the transforms, or the usual ones.

    Args:
        given: None, an `Attacker`, an estimator, or several of both.
        rows: texts to train on.

    Raises:
        TypeError: if one of them is neither an attacker nor an estimator.
        ValueError: if there is none.
    """
    if given is None:
        return usual(rows)
    # A pipeline of scikit-learn has a length, too.
    one = isinstance(given, (Attacker, type, str)) or hasattr(given, "fit")
    if not one and not isinstance(given, Iterable):
        raise mistyped("attackers", "estimators, or Attacker objects", given)
    found: list[Attacker] = []
    for each in [given] if one else list(given):
        if isinstance(each, Attacker):
            found.append(each)
        else:
            found += [Attacker(each, transform) for transform in TRANSFORMS if transform != _JOINED]
    if not found:
        raise invalid("attackers", "one at least", given)
    return tuple(found)


def usual(rows: int) -> tuple[Attacker, ...]:
    """The attackers that are tried where none are given, for so many training texts.

    Logistic regression on columns that are robustly scaled and the 15 nearest neighbours, each
    behind the four transforms of rows and on columns less the mean of their call; logistic
    regression on summaries of the rows; a network of 256 hidden units on rows and on centred rows;
    and 60 boosted trees on rows, columns less the mean of their call and summaries together.

    Raises:
        ImportError: if scikit-learn is not installed.
    """
    who = "dpcore.text.inference, without attackers of your own,"
    ensembles, linear, neighbours, networks, pipeline, scaling = (
        needed(f"sklearn.{name}", who)
        for name in ("ensemble", "linear_model", "neighbors", "neural_network", "pipeline",
                     "preprocessing")
    )  # fmt: skip
    epochs = min(200, max(10, math.ceil(_STEPS / math.ceil(rows / _BATCH))))
    # Half of the time, and standardised coordinates need no more digits.
    single = scaling.FunctionTransformer(np.float32)
    network = networks.MLPClassifier((256,), max_iter=epochs, batch_size=min(_BATCH, rows))

    def standardise(*models: Any) -> Any:
        # The inverse hyperbolic sine: a single entry of heavy noise must not set the scale.
        return pipeline.make_pipeline(
            scaling.RobustScaler(), scaling.FunctionTransformer(np.arcsinh),
            scaling.StandardScaler(), *models,
        )  # fmt: skip

    logistic = standardise(linear.LogisticRegression(max_iter=100))
    nearest = neighbours.KNeighborsClassifier(min(15, rows))
    trees = ensembles.HistGradientBoostingClassifier(
        max_iter=_TREES, max_leaf_nodes=_LEAVES, early_stopping=False
    )
    transforms = (*_ROW_TRANSFORMS, "call mean subtracted")
    return (
        *(Attacker(logistic, one, "logistic regression") for one in (*transforms, "row summaries")),
        *(Attacker(nearest, one, "15 neighbours") for one in transforms),
        *(
            Attacker(standardise(single, network), one, "network of 256")
            for one in _NETWORK_TRANSFORMS
        ),
        Attacker(trees, _JOINED, "boosted trees"),
    )


@dataclass(frozen=True)
class FittedAttacker:
    """An attacker that has been fitted.

    Args:
        attacker: the attacker.
        models: one for all attributes, or one for each.
        target: what is inferred.
    """

    attacker: Attacker
    models: tuple[Any, ...]
    target: Target

    def scores(self, vectors: Vectors) -> Vectors:
        """Scores of the positive value, shape (n, attributes); else the codes that are predicted.

        Raises:
            ValueError: if the classifier or the transform returns NaN or another shape.
        """
        rows, each = _transformed(self.attacker, vectors), len(self.models)
        width = len(self.target.names)
        found = [_asked(model, rows, self.target.binary, width // each) for model in self.models]
        for scores in found:
            if scores.shape != (len(rows), width // each) or not np.isfinite(scores).all():
                need = "one that returns finite scores, one for each text and attribute"
                raise invalid(f"attacker {self.attacker}", need, scores)
        return np.hstack(found)


def fitted(
    attacker: Attacker, vectors: Vectors, truth: Codes, target: Target, seed: int
) -> FittedAttacker:
    """The attacker, fitted on a copy of its estimator.

    Args:
        attacker: the attacker.
        vectors: of the training texts, shape (n, d).
        truth: codes of their attributes, shape (n, attributes).
        target: what is inferred.
        seed: for estimators that take a `random_state` and were given none.

    Raises:
        TypeError: if it has no `predict` and the attribute more values than two.
    """
    if not target.binary and not callable(getattr(attacker.estimator, "predict", None)):
        need = "one with predict, for an attribute of more than two values"
        raise mistyped("estimator", need, attacker.estimator)
    rows = _transformed(attacker, vectors)
    at_once = truth.shape[1] == 1 or _is_network(attacker.estimator)
    columns = [truth] if at_once else np.hsplit(truth, truth.shape[1])
    models = tuple(
        _fit(attacker.estimator, rows, column[:, 0] if column.shape[1] == 1 else column, seed)
        for column in columns
    )
    return FittedAttacker(attacker, models, target)


def _transformed(attacker: Attacker, vectors: Vectors) -> Vectors:
    change = attacker.transform
    if isinstance(change, str):
        return TRANSFORMS[change](vectors)
    rows = np.asarray(change(vectors.copy()), np.float64)
    if rows.ndim != 2 or len(rows) != len(vectors) or not np.isfinite(rows).all():
        need = f"a function to an array of shape ({len(vectors)}, d) of finite numbers"
        raise invalid("transform", need, rows)
    return rows


def _is_network(estimator: Any) -> bool:
    """True for scikit-learn's network, which learns several attributes at once."""
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    return type(last).__name__ == "MLPClassifier" and type(last).__module__.startswith("sklearn.")


def _fit(estimator: Any, rows: Vectors, truth: npt.NDArray[Any], seed: int) -> Any:
    if not hasattr(estimator, "get_params"):
        model = copy.deepcopy(estimator)
        model.fit(rows, truth)
        return model
    from sklearn.base import clone
    from sklearn.exceptions import ConvergenceWarning

    model = clone(estimator)
    free = (name for name, value in model.get_params().items() if value is None)
    states = [name for name in free if name.rpartition("__")[2] == "random_state"]
    model.set_params(**dict.fromkeys(states, seed % 2**32))
    with warnings.catch_warnings():
        # Weights short of the optimum make an attacker as good as any other.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(rows, truth)
    return model


def _asked(model: Any, rows: Vectors, binary: bool, width: int) -> Vectors:
    """The best that a model answers: probabilities, else a decision function, else a prediction."""
    asked = ("predict_proba", "decision_function", "predict") if binary else ("predict",)
    name = next(name for name in asked if callable(getattr(model, name, None)))
    found = np.asarray(getattr(model, name)(rows), np.float64)
    if width == 1 and found.ndim == 2 and found.shape[1] == 2:
        # The probabilities of both values: that of the second is enough.
        found = found[:, 1:]
    return found.reshape(len(found), -1)
