"""Audited mechanisms of python-dp and pipeline-dp, which use Google's privacy library."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...attacks import FloatLattice
from .cases import Case, import_object

_python_dp = partial(Case, package="python-dp", version="1.1.5")
_pipeline_dp = partial(Case, package="pipeline-dp", version="0.3.1")

_ADDED: Final = "one record is added"
_USER: Final = "one user with one contribution is added"
_SHIFT: Final = "numbers that differ by the sensitivity"
_NOISE: Final = "pydp/_pydp, properties epsilon, delta and sensitivity of the mechanism"
_COUNTED: Final = (
    "pydp/algorithms/_algorithm.py:47, property epsilon; contributions of one user are bounded by "
    "l0_sensitivity and linf_sensitivity (:160)"
)
_SELECTED: Final = "pydp/algorithms/partition_selection.py:20, docstring: epsilon and delta"

_DIGITS: Final = (
    "the noise is an integer above 2**53 that is rounded to a double (Google's library v4.0.0, "
    "cc/algorithms/distributions.cc:93), so that its last bits depend on its size"
)
_PARITY: Final = (
    "the exact count times the midpoint is subtracted after the noise was added to a whole sum "
    "(Google's library v4.0.0, cc/algorithms/bounded-mean.h:203)"
)
_TRUNCATED: Final = (
    "a number of numpy other than float64 is cut to an integer: the overload for integers is "
    "declared first (PyDP, src/bindings/PyDP/mechanisms/mechanism.cpp:52)"
)


def _make_noise_case(
    name: str, parameters: tuple[float, ...], pair: tuple[Any, Any], kind: Any = float,
    words: str = "", **fields: Any,
) -> Case:  # fmt: skip
    """Describe (as a `Case`) noise that is added to one number of type `kind`."""

    def build() -> Any:
        place = f"pydp.algorithms.numerical_mechanisms:{name}Mechanism"
        mechanism = import_object(place)(*parameters)
        return mechanism if kind is float else lambda x: mechanism.add_noise(kind(x))

    numbers = ", ".join(f"{value:g}" for value in parameters)
    call = f"{name}Mechanism({numbers})" + ("" if kind is float else f", {kind.__name__}") + words
    delta = parameters[1] if name == "Gaussian" else 0.0
    facts: dict[str, Any] = {"claim": parameters[0], "delta": delta, "relation": _SHIFT}
    facts |= {"stated": _NOISE} | fields
    return _python_dp(name=call, build=build, pair=pair, **facts)


def _make_query_case(
    name: str, pair: tuple[Any, Any], dtype: str, options: dict[str, Any] | None = None,
    **fields: Any,
) -> Case:  # fmt: skip
    """Describe (as a `Case`) an algorithm on a list of numbers, at epsilon 1."""
    parameters = {"epsilon": 1.0} | (options or {}) | {"dtype": dtype}
    words = ", ".join(f"{key}={value!r}" for key, value in parameters.items())

    def build() -> Callable[[Any], Any]:
        kind = import_object(f"pydp.algorithms.laplacian:{name}")
        number = float if dtype == "float" else int
        return lambda x: kind(**parameters).quick_result([number(value) for value in x])

    facts: dict[str, Any] = {"claim": 1.0, "relation": _ADDED, "stated": _COUNTED} | fields
    return _python_dp(name=f"{name}({words})", build=build, pair=pair, **facts)


def _build_choice(
    strategy: str, number: float, **options: int
) -> Callable[[], Callable[[Any], Any]]:
    """Return a function that builds a partition selection (which groups are published).

    The input is the number of users in a partition, that is, a group of rows. If `number` is 0, the
    output is True for a published partition. Otherwise, the output is the noisy number of users.
    """

    def build() -> Callable[[Any], Any]:
        create = import_object("pydp.algorithms.partition_selection:create_partition_strategy")
        selection = create(strategy, 1.0, 0.05, 1, **options)
        if number:
            return lambda x: selection.noised_value_if_should_keep(float(x)) or -number
        return lambda x: selection.should_keep(float(x))

    return build


def _build_median(noise: str, delta: float) -> Callable[[], Callable[[Any], Any]]:
    def build() -> Callable[[Any], Any]:
        kind = import_object("pydp.algorithms.quantile_tree:QuantileTree")

        def find_median(x: Any) -> Any:
            tree = kind(0.0, 1.0, 4, 16)
            for value in x:
                tree.add_entry(float(value))
            return tree.compute_quantiles(1.0, delta, 1, 1, [0.5], noise)[0]

        return find_median

    return build


def _build_naive_bayes_fit() -> Callable[[Any], Any]:
    kind = import_object("pydp.ml.naive_bayes:GaussianNB")
    return lambda x: kind(epsilon=1.0, bounds=(0.0, 1.0)).fit(*x).theta_.ravel()


def _build_pydp_ml_noise(module: str, **options: Any) -> Callable[[], Callable[[Any], Any]]:
    def build() -> Callable[[Any], Any]:
        kind = import_object(f"pydp.ml.mechanisms.{module}")

        def randomise(x: Any) -> Any:
            mechanism = kind().set_epsilon_delta(1.0, 0.0).set_sensitivity(1)
            for name, value in options.items():
                getattr(mechanism, f"set_{name}")(value)
            return mechanism.randomise(x)

        return randomise

    return build


Rows = tuple[tuple[int, int, float], ...]
"""Rows of (user, partition, value)."""


def _row_field_extractors(package: Any) -> Any:
    """Return the functions that read user, partition and value from a row of the data."""
    return package.DataExtractors(lambda row: row[0], lambda row: row[1], lambda row: row[2])


def _build_aggregation(
    metrics: tuple[str, ...], number: Any = float, *, epsilon: float = 1.0, delta: float = 0.0,
    partitions: int | None = 1, accountant: str = "Naive",
    read: Callable[[npt.NDArray[Any]], npt.NDArray[Any]] = np.asarray, **options: Any,
) -> Callable[[], Callable[[Any, int, Any], npt.NDArray[Any]]]:  # fmt: skip
    """Return a function that builds an aggregation, such as a count or a sum.

    The data contain one copy of the input for each output.

    The copies have different users and different partitions (groups of rows), so that the outputs
    are independent. If a partition is not published, its output is -1000.
    """

    def build() -> Callable[[Any, int, Any], npt.NDArray[Any]]:
        package = import_object("pipeline_dp")
        bounds = {} if "max_contributions" in options else {
            "max_partitions_contributed": 1, "max_contributions_per_partition": 1}  # fmt: skip
        chosen = [getattr(package.Metrics, name) for name in metrics if name != "PERCENTILE"]
        chosen += [package.Metrics.PERCENTILE(50)] if "PERCENTILE" in metrics else []

        def draw(x: Any, size: int, rng: Any) -> npt.NDArray[Any]:
            budget = getattr(package, f"{accountant}BudgetAccountant")(epsilon, delta)
            engine = package.DPEngine(budget, package.LocalBackend())
            named = bounds | _replace_enum_names(package, options)
            params = package.AggregateParams(metrics=chosen, **named)
            copies = [((copy, int(user)), (copy, int(partition)), number(value))
                      for copy in range(size) for user, partition, value in x]  # fmt: skip
            keys = [(copy, key) for copy in range(size) for key in range(partitions or 1)]
            public = [] if partitions is None else [keys]
            results = engine.aggregate(copies, params, _row_field_extractors(package), *public)
            budget.compute_budgets()
            values = dict(results)
            missing = (-1000.0,) * len(metrics)
            released = [np.ravel(values.get(key, missing)) for key in keys]
            return read(np.array(released).reshape(size, -1))

        return draw

    return build


def _replace_enum_names(package: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options, but with enumeration members instead of the names of the members."""
    params = package.aggregate_params
    kinds = {"noise_kind": package.NoiseKind, "vector_norm_kind": params.NormKind,
             "partition_selection_strategy": package.PartitionSelectionStrategy}  # fmt: skip
    return {key: kinds[key][value] if key in kinds else value for key, value in options.items()}


def _power_sums(moments: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Compute count, sum and sum of squares from noisy values of variance, count and mean."""
    variance, count, mean = moments.T
    divisor = np.maximum(count, 1.0)
    return np.stack([count, mean * divisor, (variance + mean**2) * divisor], axis=1)


def _partition_selector(strategy: str) -> Callable[[], Callable[[Any, int, Any], npt.NDArray[Any]]]:
    """Return a function that builds a partition selection (which groups are published).

    The data contain one copy of the input for each output.
    """

    def build() -> Callable[[Any, int, Any], npt.NDArray[Any]]:
        package = import_object("pipeline_dp")
        params = package.SelectPartitionsParams(
            max_partitions_contributed=1,
            partition_selection_strategy=package.PartitionSelectionStrategy[strategy])  # fmt: skip

        def draw(x: Any, size: int, rng: Any) -> npt.NDArray[Any]:
            budget = package.NaiveBudgetAccountant(1.0, 0.05)
            engine = package.DPEngine(budget, package.LocalBackend())
            rows = [((copy, int(row[0])), copy) for copy in range(size) for row in x]
            results = engine.select_partitions(rows, params, _row_field_extractors(package))
            budget.compute_budgets()
            return np.isin(np.arange(size), list(results))

        return draw

    return build


def _first_partition_reader() -> Callable[[Any], int]:
    """Return a function that returns the first partition (0 or 1) in the result of a count."""
    package = import_object("pipeline_dp")
    params = package.AggregateParams(metrics=[package.Metrics.COUNT], max_partitions_contributed=1,
                                     max_contributions_per_partition=1)  # fmt: skip

    def read_first(x: Any) -> int:
        budget = package.NaiveBudgetAccountant(1.0, 0.0)
        engine = package.DPEngine(budget, package.LocalBackend())
        rows = [tuple(row) for row in x]
        results = engine.aggregate(rows, params, _row_field_extractors(package), [0, 1])
        budget.compute_budgets()
        return int(next(iter(results))[0])

    return read_first


def _build_partition_count(strategy: str) -> Callable[[], Callable[[Any], float]]:
    def build() -> Callable[[Any], float]:
        place = import_object("pipeline_dp.dp_computations")
        names = import_object("pipeline_dp:PartitionSelectionStrategy")
        mechanism = place.ThresholdingMechanism(1.0, 0.05, names[strategy], 1, None)
        return lambda x: mechanism.noised_value_if_should_keep(int(x)) or -1000.0

    return build


def _build_exponential(*, is_monotonic: bool) -> Callable[[], Callable[[Any], Any]]:
    """Return a function that builds the exponential mechanism.

    The input is the list of scores of the candidates.
    """

    def build() -> Callable[[Any], Any]:
        kind = import_object("pipeline_dp.dp_computations:ExponentialMechanism")

        def choose(x: Any) -> Any:
            facts = {"score": lambda self, place: x[place], "global_sensitivity": 1.0}
            score = type("Score", (kind.ScoringFunction,), facts | {"is_monotonic": is_monotonic})
            return kind(score()).apply(1.0, list(range(len(x))))

        return choose

    return build


def _build_noise(name: str, **options: float) -> Callable[[], Any]:
    place = f"pipeline_dp.dp_computations:{name}"
    return lambda: import_object(place)(**options)


_engine = partial(
    _pipeline_dp, relation=_USER, claim=1.0, trials=20_000,
    stated="pipeline_dp/aggregate_params.py:232, docstring: a user is the unit of privacy; budget "
    "of the accountant (budget_accounting.py)",
)  # fmt: skip

_zero_one: Final = (0.0, 1.0)
_UNIT: Final = {"lower_bound": 0, "upper_bound": 1}
_RANGE: Final[dict[str, Any]] = {"min_value": 0.0, "max_value": 1.0}
_MORE: Final = ([0.0] * 10, [0.0] * 10 + [1.0])
_LOW: Final = ([1.0] * 4, [1.0] * 4 + [0.0])
_FEW: Final = ([0.0], [0.0, 1.0])
_TWO_USERS: Final[Rows] = ((1, 0, 0.0), (2, 0, 0.0))
_USERS: Final = (_TWO_USERS, (*_TWO_USERS, (3, 0, 1.0)))
_FLOATS: Final[Rows] = tuple((user, 0, 1 / 32) for user in range(32))
_VECTORS: Final = tuple((user, 0, 0.0) for user in range(30))
_ONE_USER: Final = (_TWO_USERS[:1], _TWO_USERS)
_SCORES: Final = ([0.0] + [1.0] * 9, [1.0] + [0.0] * 9)
_MISSING: Final = (_TWO_USERS, (*_TWO_USERS, (3, 0, math.nan)))
_LINE: Final = np.array([[0.2], [0.4], [0.6], [0.8]])

CASES: tuple[Case, ...] = (
    _make_noise_case("Laplace", (1.0, 1.0), _zero_one, true_loss=1.0, trials=100_000),
    _make_noise_case("Laplace", (0.1, 1.0), _zero_one, true_loss=0.1, trials=100_000),
    _make_noise_case("Laplace", (5.0, 3.0), (0.0, 3.0), true_loss=5.0, trials=100_000),
    _make_noise_case("Laplace", (1.0, 1.0), (0, 1), int, true_loss=1.0, trials=100_000),
    _make_noise_case("Laplace", (1.0, 0.125), (0.875, 1.0), np.float32, cause=_TRUNCATED,
               true_loss=8.0),
    _make_noise_case("Gaussian", (1.0, 0.01), _zero_one, trials=100_000),
    _make_noise_case("Gaussian", (1.0, 1e-5), _zero_one, trials=100_000),
    _make_noise_case("Gaussian", (5.0, 0.1), _zero_one, trials=100_000),
    _make_noise_case("Gaussian", (1.0, 0.01), (0, 1), int, trials=100_000),
    _make_noise_case("Gaussian", (1.0, 0.01), _zero_one, words=", last bits",
               attack=FloatLattice, true_loss=math.inf, cause=_DIGITS, trials=100_000),
    _python_dp(name="LaplaceMechanism(1, 1).noised_value_above_threshold(x, 2)", claim=1.0,
               build=lambda: (lambda mechanism: lambda x: mechanism.noised_value_above_threshold(
                   float(x), 2.0))(import_object(
                       "pydp.algorithms.numerical_mechanisms:LaplaceMechanism")(1.0, 1.0)),
               pair=_zero_one, relation=_SHIFT, stated=_NOISE, true_loss=1.0, trials=100_000),
    _make_query_case("Count", _MORE, "int", true_loss=1.0, trials=100_000),
    _make_query_case("Count", _MORE, "int64", {"linf_sensitivity": 3}, true_loss=1 / 3),
    _make_query_case("Count", _MORE, "float", true_loss=1.0),
    _make_query_case("BoundedSum", _MORE, "int", _UNIT, true_loss=1.0),
    _make_query_case("BoundedSum", _MORE, "float", _UNIT, true_loss=1.0),
    _make_query_case("BoundedSum", _MORE, "float", {"l0_sensitivity": 3} | _UNIT, true_loss=1 / 3),
    _make_query_case("BoundedSum", (_MORE[0], [0.0] * 10 + [-2.0]), "float",
               {"lower_bound": -2, "upper_bound": 1}, true_loss=1.0),
    _make_query_case("BoundedSum", ([2**26] * 31, [2**26] * 32), "int",
               {"lower_bound": 0, "upper_bound": 2**26}, true_loss=1.0),
    _make_query_case("BoundedSum", ([1.0] * 100, [1.0] * 100 + [1000.0]), "float", trials=300),
    _make_query_case("BoundedSum", ([1] * 100, [1] * 100 + [1000]), "int", trials=300),
    _make_query_case("BoundedMean", _MORE, "int", _UNIT, true_loss=math.inf, cause=_PARITY),
    _make_query_case("BoundedMean", _MORE, "int64", {"lower_bound": 0, "upper_bound": 3},
               true_loss=math.inf, cause=_PARITY),
    _make_query_case("BoundedMean", ([0.0] * 10, [0.0] * 10 + [2.0]), "int",
               {"lower_bound": 0, "upper_bound": 2}),
    _make_query_case("BoundedMean", _LOW, "float", _UNIT),
    _make_query_case("BoundedMean", ([1.0] * 100, [1.0] * 100 + [1000.0]), "float", trials=300),
    _make_query_case("BoundedVariance", _MORE, "int", _UNIT),
    _make_query_case("BoundedVariance", _MORE, "float", _UNIT),
    _make_query_case("BoundedStandardDeviation", _MORE, "int", _UNIT),
    _make_query_case("BoundedStandardDeviation", _MORE, "float", _UNIT),
    _make_query_case("Max", _FEW, "int", _UNIT, trials=20_000),
    _make_query_case("Max", _FEW, "float", _UNIT, trials=20_000),
    _make_query_case("Min", _FEW, "int", _UNIT, trials=20_000),
    _make_query_case("Min", _FEW, "float", _UNIT, trials=20_000),
    _make_query_case("Median", _FEW, "float", _UNIT, trials=20_000),
    _make_query_case("Median", _FEW, "int", _UNIT, trials=20_000),
    _make_query_case("Percentile", _FEW, "float", {"percentile": 0.25} | _UNIT, trials=20_000),
    _make_query_case("Percentile", _FEW, "int", {"percentile": 0.25} | _UNIT, trials=20_000),
    _python_dp(name="QuantileTree(0, 1, 4, 16).compute_quantiles(1, 0, 1, 1, [0.5])", claim=1.0,
               build=_build_median("laplace", 0.0), pair=_FEW, relation=_ADDED,
               stated="pydp/_pydp, signature of compute_quantiles", trials=20_000),
    _python_dp(name="QuantileTree(0, 1, 4, 16).compute_quantiles(1, 0.01, 1, 1, [0.5], 'gaussian')",
               claim=1.0, delta=0.01, build=_build_median("gaussian", 0.01), pair=_FEW,
               relation=_ADDED, stated="pydp/_pydp, signature of compute_quantiles", trials=20_000),
    _python_dp(name="create_partition_strategy('truncated_geometric', 1, 0.05, 1), 0 or 1 users",
               claim=1.0, delta=0.05, build=_build_choice("truncated_geometric", 0), pair=(0, 1),
               relation="one user is added", stated=_SELECTED, trials=100_000),
    _python_dp(name="create_partition_strategy('truncated_geometric', 1, 0.05, 1), 3 or 4 users",
               claim=1.0, delta=0.05, build=_build_choice("truncated_geometric", 0), pair=(3, 4),
               relation="one user is added", stated=_SELECTED, trials=100_000),
    _python_dp(name="create_partition_strategy('laplace', 1, 0.05, 1), noised value", claim=1.0,
               delta=0.05, build=_build_choice("laplace", 1000.0), pair=(1, 2),
               relation="one user is added", stated=_SELECTED, trials=100_000),
    _python_dp(name="create_partition_strategy('gaussian', 1, 0.05, 1), noised value", claim=1.0,
               delta=0.05, build=_build_choice("gaussian", 1000.0), pair=(1, 2),
               relation="one user is added", stated=_SELECTED, trials=100_000),
    _python_dp(name="create_partition_strategy('laplace', 1, 0.05, 1, pre_threshold=5)", claim=1.0,
               delta=0.05, build=_build_choice("laplace", 0, pre_threshold=5), pair=(4, 5),
               relation="one user is added", stated=_SELECTED, trials=100_000),
    _python_dp(name="ml.mechanisms.laplace.Laplace at epsilon 1", claim=1.0, pair=_zero_one,
               build=_build_pydp_ml_noise("laplace:Laplace"), relation=_SHIFT,
               stated="pydp/ml/mechanisms/base.py:182, docstring"),
    _python_dp(name="ml.mechanisms.geometric.Geometric at epsilon 1, probability 0.01", claim=1.0,
               build=_build_pydp_ml_noise("geometric:Geometric", probability=0.01), pair=(0, 1),
               relation=_SHIFT, stated="pydp/ml/mechanisms/geometric.py:40, docstring",
               true_loss=math.inf,
               cause="the noise is the one-sided geometric law, never below 0 "
               "(pydp/ml/mechanisms/geometric.py:159)"),
    _python_dp(name="ml.GaussianNB(bounds=(0, 1))", claim=1.0, build=_build_naive_bayes_fit,
               pair=((_LINE, np.array([0, 0, 1, 1])), (_LINE, np.array([0, 1, 1, 1]))),
               relation="one row is replaced", trials=2_000,
               stated="pydp/ml/naive_bayes.py:40, docstring: epsilon"),
    _pipeline_dp(name="LaplaceMechanism.create_from_epsilon(1, 1)", claim=1.0, pair=_zero_one,
                 build=_build_noise("LaplaceMechanism.create_from_epsilon", epsilon=1.0,
                               l1_sensitivity=1.0), true_loss=1.0, trials=100_000, relation=_SHIFT,
                 stated="pipeline_dp/dp_computations.py:490"),
    _pipeline_dp(name="LaplaceMechanism.create_from_std_deviation(2**0.5, 1)", claim=1.0,
          build=_build_noise("LaplaceMechanism.create_from_std_deviation", l1_sensitivity=1.0,
          normalized_stddev=2**0.5), true_loss=1.0, trials=100_000, pair=_zero_one,
          relation=_SHIFT, stated="pipeline_dp/dp_computations.py:496"),
    _pipeline_dp(name="GaussianMechanism.create_from_epsilon_delta(1, 0.01, 1)", claim=1.0,
                 build=_build_noise("GaussianMechanism.create_from_epsilon_delta", epsilon=1.0,
                               delta=0.01, l2_sensitivity=1.0), pair=_zero_one, relation=_SHIFT,
                 delta=0.01, trials=100_000, stated="pipeline_dp/dp_computations.py:537"),
    _pipeline_dp(name="ExponentialMechanism, sensitivity 1, 10 scores", claim=1.0, trials=20_000,
                 build=_build_exponential(is_monotonic=False), pair=_SCORES,
                 relation="scores that differ by 1", stated="pipeline_dp/dp_computations.py:708",
                 true_loss=1.0 + math.log((math.exp(-0.5) / 9 + 1) / (math.exp(0.5) / 9 + 1))),
    _pipeline_dp(name="ExponentialMechanism, monotonic scores, sensitivity 1", claim=1.0,
                 build=_build_exponential(is_monotonic=True), pair=([0.0] * 20, [1.0] + [0.0] * 19),
                 relation="monotonic scores that differ by 1", trials=20_000,
                 stated="pipeline_dp/dp_computations.py:735"),
    _pipeline_dp(name="ThresholdingMechanism(1, 0.05, LAPLACE_THRESHOLDING)", claim=1.0, delta=0.05,
                 build=_build_partition_count("LAPLACE_THRESHOLDING"), pair=(1, 2), trials=100_000,
                 relation="one user is added", stated="pipeline_dp/dp_computations.py:822"),
    _pipeline_dp(name="ThresholdingMechanism(1, 0.05, GAUSSIAN_THRESHOLDING)", claim=1.0,
                 build=_build_partition_count("GAUSSIAN_THRESHOLDING"), pair=(1, 2), delta=0.05,
                 relation="one user is added", stated="pipeline_dp/dp_computations.py:822",
                 trials=100_000),
    _engine(name="aggregate COUNT, public partitions", build=_build_aggregation(("COUNT",)),
          pair=_USERS, true_loss=1.0),
    _engine(name="aggregate COUNT, public partitions, GAUSSIAN", pair=_USERS, delta=0.01,
            build=_build_aggregation(("COUNT",), delta=0.01, noise_kind="GAUSSIAN")),
    _engine(name="aggregate COUNT, public partitions, GAUSSIAN, PLDBudgetAccountant", pair=_USERS,
          delta=0.01, slow=True, seconds=600.0, build=_build_aggregation(("COUNT",), delta=0.01,
          noise_kind="GAUSSIAN", accountant="PLD")),
    _engine(name="aggregate COUNT, public partitions, max_contributions=2", true_loss=1.0,
            build=_build_aggregation(("COUNT",), max_contributions=2),
            pair=(_TWO_USERS, (*_USERS[1], (3, 0, 1.0), (3, 0, 0.5))),
            relation="one user with three contributions is added"),
    _engine(name="aggregate COUNT, two public partitions", true_loss=1.0,
            build=_build_aggregation(("COUNT",), partitions=2, max_partitions_contributed=2),
            pair=(_TWO_USERS, (*_USERS[1], (3, 1, 1.0))),
            relation="one user with a contribution to each partition is added"),
    _engine(name="aggregate PRIVACY_ID_COUNT, public partitions", pair=_USERS, true_loss=1.0,
            build=_build_aggregation(("PRIVACY_ID_COUNT",))),
    _engine(name="aggregate SUM in (0, 1), public partitions", pair=_USERS, true_loss=1.0,
            build=_build_aggregation(("SUM",), **_RANGE)),
    _engine(name="aggregate SUM in (0, 1/32), private partitions, values of type numpy.float32",
          build=_build_aggregation(("SUM",), np.float32, delta=0.05, partitions=None,
          min_value=0.0, max_value=1 / 32), delta=0.05, pair=(_FLOATS[:31], _FLOATS), trials=2_000,
          cause=_TRUNCATED),
    _engine(name="aggregate SUM, sum of a user in (0, 1), public partitions", true_loss=1.0,
          build=_build_aggregation(("SUM",), min_sum_per_partition=0.0, max_sum_per_partition=1.0),
          pair=(_TWO_USERS, (*_USERS[1], (3, 0, 1.0))),
          relation="one user with two contributions is added"),
    _engine(name="aggregate SUM in (0, 1), public partitions, a missing value", trials=2_000,
            build=_build_aggregation(("SUM",), **_RANGE), pair=_MISSING,
            true_loss=math.inf, reading="relation unclear",
            cause="a missing value passes the clamping of values (pipeline_dp/combiners.py:435)"),
    _engine(name="aggregate MEAN, COUNT in (0, 1), public partitions", pair=_USERS,
            build=_build_aggregation(("MEAN", "COUNT"), **_RANGE)),
    _engine(name="aggregate VARIANCE in (0, 1), public partitions", pair=_USERS,
            build=_build_aggregation(("VARIANCE",), **_RANGE)),
    _engine(name="aggregate VARIANCE, MEAN, COUNT in (-1, 1), public partitions, epsilon 3",
          build=_build_aggregation(("VARIANCE", "MEAN", "COUNT"), epsilon=3.0, read=_power_sums,
          min_value=-1.0, max_value=1.0), claim=3.0, true_loss=4.0, pair=_USERS,
          release="count, sum and sum of squares, computed from the three returned values",
          cause="the noise of the squares is that of half their range (pipeline_dp/"
          "dp_computations.py:343), but squares of centred values are summed, and one can be "
          "their whole range (pipeline_dp/combiners.py:585)"),
    _engine(name="aggregate PERCENTILE(50) in (0, 1), public partitions",
            build=_build_aggregation(("PERCENTILE",), **_RANGE), pair=_USERS),
    _engine(name="aggregate VECTOR_SUM, Linf norm 1, public partitions", pair=_USERS,
            build=_build_aggregation(("VECTOR_SUM",), lambda value: np.array([value, value]),
                             vector_norm_kind="Linf", vector_max_norm=1.0, vector_size=2)),
    _engine(name="aggregate VECTOR_SUM, L1 norm 1, private partitions", delta=0.05, trials=2_000,
          build=_build_aggregation(("VECTOR_SUM",), lambda value: np.array([value, 0.0]),
          delta=0.05, partitions=None, vector_norm_kind="L1", vector_max_norm=1.0, vector_size=2),
          pair=(_VECTORS, (*_VECTORS, (30, 0, 1.0)))),
    _engine(name="aggregate COUNT, private partitions, 1 or 2 users", delta=0.05, trials=50_000,
            build=_build_aggregation(("COUNT",), delta=0.05, partitions=None), pair=_ONE_USER),
    _engine(name="aggregate PRIVACY_ID_COUNT, post_aggregation_thresholding, 1 or 2 users",
            build=_build_aggregation(("PRIVACY_ID_COUNT",), delta=0.05, partitions=None,
                             post_aggregation_thresholding=True),
            pair=_ONE_USER, delta=0.05, trials=50_000),
    _engine(name="aggregate COUNT, order of two public partitions", build=_first_partition_reader,
            pair=(((1, 1, 0.0), (2, 0, 0.0)), ((2, 0, 0.0),)), trials=2_000, true_loss=math.inf,
            relation="one user with one contribution is removed", reading="release unclear",
            release="the key of the first partition in the result",
            cause="the local backend keeps the order of the rows (pipeline_dp/"
            "pipeline_backend.py:405), and public partitions are appended to it"),
    _engine(name="select_partitions TRUNCATED_GEOMETRIC, 1 or 2 users", delta=0.05, trials=50_000,
            build=_partition_selector("TRUNCATED_GEOMETRIC"), pair=_ONE_USER),
    _engine(name="select_partitions LAPLACE_THRESHOLDING, 1 or 2 users", delta=0.05, trials=50_000,
            build=_partition_selector("LAPLACE_THRESHOLDING"), pair=_ONE_USER),
    _engine(name="select_partitions GAUSSIAN_THRESHOLDING, 1 or 2 users", delta=0.05, trials=50_000,
            build=_partition_selector("GAUSSIAN_THRESHOLDING"), pair=_ONE_USER),
    _engine(name="select_partitions WEIGHTED_GAUSSIAN_THRESHOLDING, 1 or 2 users", delta=0.05,
            build=_partition_selector("WEIGHTED_GAUSSIAN_THRESHOLDING"), pair=_ONE_USER,
            trials=1_000),
)  # fmt: skip
