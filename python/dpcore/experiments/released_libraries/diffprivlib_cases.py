"""Audited mechanisms of diffprivlib: noise mechanisms, array functions and models."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from operator import attrgetter
from typing import Any, Final

import numpy as np

from .cases import Case, import_object

_case = partial(Case, package="diffprivlib", version="0.6.6")

_DISTANCE: Final = "numbers that differ by the sensitivity"
_REPLACE: Final = "one row is replaced"

_zero_one: Final = (0.0, 1.0)


def _make_noise_case(
    name: str, pair: tuple[Any, Any], parameters: dict[str, Any], stated: str, **fields: Any
) -> Case:
    """Describe (as a `Case`) a noise mechanism that is built from keyword arguments."""
    words = ", ".join(f"{key}={value!r}" for key, value in parameters.items())
    claim, delta = parameters.get("epsilon", 0.0), parameters.get("delta", 0.0)
    facts: dict[str, Any] = {
        "relation": _DISTANCE,
        "claim": claim,
        "delta": delta,
        "stated": stated,
    } | fields

    def build() -> Any:
        return import_object(f"diffprivlib.mechanisms:{name}")(**parameters)

    return _case(name=f"{name}({words})", build=build, pair=pair, **facts)


def _make_tool_case(
    name: str, words: str, pair: tuple[Any, Any], options: dict[str, Any], **fields: Any
) -> Case:
    """Describe (as a `Case`) a function on an array, from the module `tools`, at epsilon 1."""

    def build() -> Callable[[Any], Any]:
        function = import_object(f"diffprivlib.tools:{name}")
        return lambda x: function(x, epsilon=1.0, **options)

    stated = (
        "docstring of the tool: epsilon; the sensitivity in the source is that of a replacement"
    )
    facts: dict[str, Any] = {"relation": _REPLACE, "claim": 1.0, "stated": stated}
    facts |= {"trials": 10_000} | fields
    return _case(name=f"tools.{name}({words})", build=build, pair=pair, **facts)


def _build_choice(
    name: str, size: int, parameters: dict[str, Any] | None = None
) -> Callable[[], Callable[[Any], Any]]:
    """Return a function that builds a mechanism that selects a candidate.

    The input of the mechanism is the list of utilities of the candidates.
    """

    def build() -> Callable[[Any], Any]:
        kind = import_object(f"diffprivlib.mechanisms:{name}")
        options = {"epsilon": 1.0, "sensitivity": 1.0, "candidates": list(range(size))}
        return lambda x: kind(utility=list(x), **options | (parameters or {})).randomise()

    return build


def _build_model(
    name: str, attributes: tuple[str, ...], **options: Any
) -> Callable[[], Callable[[Any], Any]]:
    """Return a function that builds a mechanism for training a model.

    The input is the training data, and the output contains the given attributes of the model.
    """

    def build() -> Callable[[Any], Any]:
        kind = import_object(f"diffprivlib.models:{name}")

        def fit_model(x: Any) -> Any:
            model = kind(epsilon=1.0, **options).fit(*deepcopy(x))
            return np.concatenate([np.ravel(attrgetter(name)(model)) for name in attributes])

        return fit_model

    return build


def _make_histogram_case(pair: tuple[Any, Any], name: str, **fields: Any) -> Case:
    options = {"bins": 2, "range": (0.0, 1.0)}

    def build() -> Callable[[Any], Any]:
        function = import_object("diffprivlib.tools:histogram")
        return lambda x: function(x, epsilon=1.0, **options)[0]

    stated = "tools/histograms.py:143, sensitivity 1 for each of disjoint bins"
    facts: dict[str, Any] = {"claim": 1.0, "stated": stated, "trials": 10_000} | fields
    return _case(name=name, build=build, pair=pair, **facts)


_ZEROS: Final = np.zeros(10)
_ONE: Final = np.append(np.zeros(9), 1.0)
_BOUNDS: Final = {"bounds": (0.0, 1.0)}
_ARRAYS: Final = (_ZEROS, _ONE)
_MIDDLE: Final = (np.repeat([0.49, 0.51], [5, 5]), np.repeat([0.49, 0.51], [4, 6]))
_COLUMNS: Final = (np.zeros((10, 2)), np.vstack([np.zeros((9, 2)), np.ones((1, 2))]))
_MISSING: Final = (np.append(np.zeros(9), np.nan), _ONE)
_SOURCE: Final = "mechanisms/{}, docstring: epsilon for the sensitivity"

_LINE: Final = np.linspace(0.0, 1.0, 10).reshape(-1, 1)
_ROWS: Final = np.vstack([np.full((5, 1), 0.2), np.full((5, 1), 0.8)])
_LABELS: Final = np.array([0] * 5 + [1] * 5)
_THREE_ROWS: Final = np.array([[0.0], [1.0], [0.0]])
_MOVED_ROW: Final = np.vstack([_ROWS[:-1], [[0.0]]])
_MOVED_LABEL: Final = np.array([0] * 6 + [1] * 4)

CASES: tuple[Case, ...] = (
    _make_noise_case("Laplace", _zero_one, {"epsilon": 1.0, "sensitivity": 1.0},
               _SOURCE.format("laplace.py:29"), true_loss=1.0),
    _make_noise_case("Laplace", _zero_one, {"epsilon": 0.1, "sensitivity": 1.0},
               _SOURCE.format("laplace.py:29"), true_loss=0.1),
    _make_noise_case("Laplace", (0.0, 3.0), {"epsilon": 5.0, "sensitivity": 3.0},
               _SOURCE.format("laplace.py:29"), true_loss=5.0),
    _make_noise_case("Laplace", _zero_one, {"epsilon": 1.0, "delta": 0.05, "sensitivity": 1.0},
               _SOURCE.format("laplace.py:29")),
    _make_noise_case("LaplaceTruncated", _zero_one,
               {"epsilon": 1.0, "sensitivity": 1.0, "lower": 0.0, "upper": 1.0},
               _SOURCE.format("laplace.py:152"), true_loss=1.0),
    _make_noise_case("LaplaceFolded", _zero_one,
               {"epsilon": 1.0, "sensitivity": 1.0, "lower": 0.0, "upper": 1.0},
               _SOURCE.format("laplace.py:221")),
    _make_noise_case("LaplaceBoundedDomain", _zero_one,
               {"epsilon": 1.0, "sensitivity": 1.0, "lower": 0.0, "upper": 1.0},
               _SOURCE.format("laplace.py:282")),
    _make_noise_case("LaplaceBoundedDomain", _zero_one,
               {"epsilon": 4.0, "sensitivity": 1.0, "lower": 0.0, "upper": 5.0},
               _SOURCE.format("laplace.py:282")),
    _make_noise_case("LaplaceBoundedNoise", _zero_one,
               {"epsilon": 1.0, "delta": 0.05, "sensitivity": 1.0},
               _SOURCE.format("laplace.py:423")),
    _make_noise_case("Gaussian", _zero_one, {"epsilon": 0.5, "delta": 1e-5, "sensitivity": 1.0},
               _SOURCE.format("gaussian.py:32")),
    _make_noise_case("Gaussian", _zero_one, {"epsilon": 1.0, "delta": 0.1, "sensitivity": 1.0},
               _SOURCE.format("gaussian.py:32")),
    _make_noise_case("GaussianAnalytic", _zero_one, {"epsilon": 1.0, "delta": 0.01, "sensitivity":
          1.0}, _SOURCE.format("gaussian.py:120"), true_loss=1.0),
    _make_noise_case("GaussianAnalytic", _zero_one, {"epsilon": 5.0, "delta": 0.1, "sensitivity":
          1.0}, _SOURCE.format("gaussian.py:120"), true_loss=5.0),
    _make_noise_case("GaussianDiscrete", (0, 1), {"epsilon": 1.0, "delta": 0.01, "sensitivity": 1},
               _SOURCE.format("gaussian.py:209"), trials=50_000),
    _make_noise_case("Binary", ("a", "b"), {"epsilon": 1.0, "value0": "a", "value1": "b"},
               _SOURCE.format("binary.py:28"), relation="the two values", true_loss=1.0),
    _make_noise_case("Binary", ("a", "b"), {"epsilon": 5.0, "value0": "a", "value1": "b"},
               _SOURCE.format("binary.py:28"), relation="the two values", true_loss=5.0),
    _make_noise_case("Geometric", (0, 1), {"epsilon": 1.0}, _SOURCE.format("geometric.py:29"),
               true_loss=1.0),
    _make_noise_case("Geometric", (0, 3), {"epsilon": 1.0, "sensitivity": 3},
               _SOURCE.format("geometric.py:29"), true_loss=1.0),
    _make_noise_case("GeometricTruncated", (0, 1), {"epsilon": 1.0, "lower": 0, "upper": 3},
               _SOURCE.format("geometric.py:116"), true_loss=1.0),
    _make_noise_case("GeometricFolded", (0, 1), {"epsilon": 1.0, "lower": 0, "upper": 3},
               _SOURCE.format("geometric.py:175")),
    _make_noise_case("GeometricFolded", (1, 2), {"epsilon": 1.0, "lower": 0.5, "upper": math.inf},
               _SOURCE.format("geometric.py:175"), relation="counts that differ by 1"),
    _make_noise_case("Staircase", _zero_one, {"epsilon": 1.0, "sensitivity": 1.0},
               _SOURCE.format("staircase.py:30"), true_loss=1.0),
    _make_noise_case("Staircase", _zero_one, {"epsilon": 3.0, "sensitivity": 1.0, "gamma": 0.1},
               _SOURCE.format("staircase.py:30"), true_loss=3.0),
    _make_noise_case("Snapping", _zero_one,
               {"epsilon": 1.0, "sensitivity": 1.0, "lower": 0.0, "upper": 10.0},
               _SOURCE.format("snapping.py:16"), trials=20_000),
    _make_noise_case("Uniform", _zero_one, {"delta": 0.1, "sensitivity": 1.0},
               _SOURCE.format("uniform.py:28"), claim=0.0, delta=0.1, true_loss=0.0),
    _case(name="Exponential(epsilon=1.0, sensitivity=1.0)", build=_build_choice("Exponential", 50),
          pair=([0.0] + [1.0] * 49, [1.0] + [0.0] * 49), claim=1.0,
          relation="utilities that differ by 1", stated=_SOURCE.format("exponential.py:30"),
          true_loss=1.0 + math.log((math.exp(-0.5) / 49 + 1) / (math.exp(0.5) / 49 + 1))),
    _case(name="Exponential(epsilon=1.0, sensitivity=1.0, monotonic=True)",
          build=_build_choice("Exponential", 2, {"monotonic": True}), pair=([0.0, 0.0], [1.0, 0.0]),
          claim=1.0, relation="monotone utilities that differ by 1",
          stated=_SOURCE.format("exponential.py:30")),
    _case(name="PermuteAndFlip(epsilon=1.0, sensitivity=1.0)",
          build=_build_choice("PermuteAndFlip", 2), pair=([0.0, 1.0], [1.0, 0.0]), claim=1.0,
          relation="utilities that differ by 1", stated=_SOURCE.format("exponential.py:193")),
    _case(name="PermuteAndFlip(epsilon=1.0, sensitivity=1.0), 5 candidates", claim=1.0,
          build=_build_choice("PermuteAndFlip", 5), pair=([3.0] * 5, [4.0] + [2.0] * 4),
          relation="utilities that differ by 1", stated=_SOURCE.format("exponential.py:193"),
          trials=50_000),
    _make_noise_case("ExponentialCategorical", ("a", "c"),
               {"epsilon": 1.0, "utility_list": [["a", "b", 1], ["a", "c", 2], ["b", "c", 2]]},
               _SOURCE.format("exponential.py:282"), relation="any two categories"),
    _make_noise_case("ExponentialHierarchical", ("a", "c"),
               {"epsilon": 1.0, "hierarchy": [["a", "b"], ["c"]]},
               _SOURCE.format("exponential.py:473"), relation="any two categories"),
    _make_tool_case("count_nonzero", "array", _ARRAYS, {}),
    _make_tool_case("mean", "array, bounds=(0, 1)", _ARRAYS, _BOUNDS),
    _make_tool_case("mean", "array, bounds=(0, 1), axis=0", _COLUMNS, _BOUNDS | {"axis": 0},
          trials=20_000),
    _make_tool_case("nanmean", "array, bounds=(0, 1)", _ARRAYS, _BOUNDS),
    _make_tool_case("nanmean", "array with a missing value, bounds=(0, 1)", _MISSING, _BOUNDS,
          relation="one value is replaced by a missing one", reading="relation unclear"),
    _make_tool_case("var", "array, bounds=(0, 1)", _ARRAYS, _BOUNDS),
    _make_tool_case("nanvar", "array, bounds=(0, 1)", _ARRAYS, _BOUNDS),
    _make_tool_case("std", "array, bounds=(0, 1)", _ARRAYS, _BOUNDS),
    _make_tool_case("nanstd", "array, bounds=(0, 1)", _ARRAYS, _BOUNDS),
    _make_tool_case("sum", "array, bounds=(0, 1)", _ARRAYS, _BOUNDS),
    _make_tool_case("sum", "integers, bounds=(0, 1)", (_ZEROS.astype(int), _ONE.astype(int)),
          _BOUNDS),
    _make_tool_case("nansum", "array, bounds=(0, 1)", _ARRAYS, _BOUNDS),
    _make_tool_case("median", "array, bounds=(0, 1)", _MIDDLE, _BOUNDS),
    _make_tool_case("quantile", "array, .4, bounds=(0, 1)", _MIDDLE, {"quant": 0.4} | _BOUNDS),
    _make_tool_case("percentile", "array, [25, 75], bounds=(0, 1)", _MIDDLE, {"percent": [25, 75]}
          | _BOUNDS),
    _make_histogram_case((np.zeros(10), np.zeros(11)),
          "tools.histogram(array, bins=2), one row added", relation="one row is added",
          true_loss=1.0),
    _make_histogram_case(_ARRAYS, "tools.histogram(array, bins=2), one row replaced",
          relation=_REPLACE, reading="known misuse", true_loss=2.0,
          cause="a replaced row changes two bins (tools/histograms.py:143: sensitivity 1)"),
    _case(name="models.GaussianNB(bounds=(0, 1)), a value replaced", claim=1.0, relation=_REPLACE,
          build=_build_model("GaussianNB", ("class_count_", "theta_", "var_"), bounds=(0.0, 1.0)),
          pair=((_ROWS, _LABELS), (_MOVED_ROW, _LABELS)), trials=5_000,
          stated="models/naive_bayes.py, docstring: epsilon of the training data"),
    _case(name="models.GaussianNB(bounds=(0, 1)), a label replaced", claim=1.0, relation=_REPLACE,
          build=_build_model("GaussianNB", ("class_count_", "theta_", "var_"), bounds=(0.0, 1.0)),
          pair=((_THREE_ROWS, np.array([0, 0, 1])), (_THREE_ROWS, np.array([0, 1, 1]))),
          trials=80_000, slow=True, seconds=900.0,
          stated="models/naive_bayes.py, docstring: epsilon of the training data",
          cause="a label that is replaced changes count, mean and variance of two classes, each of "
          "which has a third of epsilon (models/naive_bayes.py:260 and 325)"),
    _case(name="models.GaussianNB(bounds=(0, 1)), the only row of a class replaced", claim=1.0,
          build=_build_model("GaussianNB", ("class_count_", "theta_", "var_"), bounds=(0.0, 1.0)),
          pair=((_THREE_ROWS, np.array([0, 0, 1])), (_THREE_ROWS, np.array([0, 0, 0]))),
          relation=_REPLACE, reading="release unclear", trials=2_000, true_loss=math.inf,
          stated="models/naive_bayes.py, docstring: epsilon of the training data",
          cause="the list of classes is that of the training data"),
    _case(name="models.LinearRegression(bounds_X=(0, 1), bounds_y=(0, 1), fit_intercept=False)",
          build=_build_model("LinearRegression", ("coef_",), bounds_X=(0.0, 1.0), bounds_y=(0.0,
          1.0), fit_intercept=False), pair=((np.array([[0.1], [0.0]]), np.zeros(2)),
          (np.array([[0.1], [1.0]]), np.zeros(2))), claim=1.0, relation=_REPLACE, trials=4_000,
          true_loss=math.inf,
          stated="models/linear_regression.py:163, docstring: privacy of the training sample",
          cause="the sensitivity of a square uses the lower bound twice and the upper bound never "
          "(models/linear_regression.py:143)"),
    _case(name="models.StandardScaler(bounds=(0, 1))", claim=1.0, relation=_REPLACE,
          build=_build_model("StandardScaler", ("mean_", "var_"), bounds=(0.0, 1.0)),
          pair=((_LINE,), (np.vstack([_LINE[:-1], [[0.0]]]),)), trials=5_000,
          stated="models/standard_scaler.py, docstring: privacy of the learned scaler"),
    _case(name="models.PCA(1, data_norm=1, bounds=(-1, 1))", claim=1.0, relation=_REPLACE,
          build=_build_model("PCA", ("mean_", "components_"), n_components=1, data_norm=1.0,
                     bounds=(-1.0, 1.0)),
          pair=((np.tile([[0.6, 0.0]], (5, 1)),),
                (np.vstack([np.tile([[0.6, 0.0]], (4, 1)), [[0.0, 1.0]]]),)),
          trials=2_000, stated="models/pca.py, docstring: epsilon of the training data"),
    _case(name="models.LogisticRegression(data_norm=1)", claim=1.0, relation=_REPLACE,
          build=_build_model("LogisticRegression", ("coef_", "intercept_"), data_norm=1.0),
          pair=((2 * _ROWS - 1, _LABELS), (2 * _ROWS - 1, _MOVED_LABEL)), trials=1_500,
          stated="models/logistic_regression.py:76, docstring"),
    _case(name="models.DecisionTreeClassifier(max_depth=1, bounds=(0, 1), classes=[0, 1])",
          build=_build_model("DecisionTreeClassifier", ("tree_.value",), max_depth=1, bounds=(0.0,
          1.0), classes=[0, 1]), pair=((_ROWS, _LABELS), (_ROWS, _MOVED_LABEL)), claim=1.0,
          relation=_REPLACE, trials=2_000, stated="models/forest.py:296, docstring",
          reading="relation unclear",
          cause="a label that is replaced changes two counts of a leaf, and the selection is that "
          "of monotone utilities (models/forest.py:559)"),
    _case(name="models.KMeans(2, bounds=(0, 1))", claim=1.0, relation=_REPLACE, slow=True,
          build=_build_model("KMeans", ("cluster_centers_",), n_clusters=2, bounds=(0.0, 1.0)),
          pair=((np.array([[0.0]] * 5 + [[1.0]]),), (np.array([[0.0]] * 6),)), trials=10_000,
          seconds=600.0, stated="models/k_means.py, docstring: epsilon of the training data",
          cause="a cluster without rows keeps its random start, so that its centre shows that it "
          "is empty (models/k_means.py:244)"),
    _case(name="mechanisms.Bingham(epsilon=4)", claim=4.0, slow=True, seconds=600.0, build=lambda:
          import_object("diffprivlib.mechanisms:Bingham")(epsilon=4.0).randomise,
          pair=(np.diag([1.0, 0.0]), np.diag([0.0, 1.0])), trials=20_000,
          relation="matrices that differ by the outer product of a vector of norm 1",
          stated="mechanisms/bingham.py:30, docstring", reading="source only",
          cause="the exponent is a quarter of epsilon over the sensitivity for a vector with both "
          "signs (mechanisms/bingham.py:108)"),
)  # fmt: skip
