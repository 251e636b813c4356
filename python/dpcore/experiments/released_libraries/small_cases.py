"""Audited mechanisms of seven packages with few mechanisms.

The packages are diffpriv-pure, ornl-presto, eeprivacy, dp-group-stats, dwork, pypantera and
trasgoDP.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np

from .cases import Case, import_object

_Build = Callable[[], Callable[..., Any]]

_pure = partial(Case, package="diffpriv-pure", version="0.1.0")
_presto = partial(Case, package="ornl-presto", version="0.1.29")
_energy = partial(Case, package="eeprivacy", version="0.0.5")
_group = partial(Case, package="dp-group-stats", version="0.1.2")
_dwork = partial(Case, package="dwork", version="0.0.13")
_text = partial(Case, package="pypantera", version="1.0.2")
_local = partial(Case, package="trasgodp", version="2.1.0")

_REPLACE: Final = "one value is replaced"
_ADD: Final = "one value is added"
_DISTANCE: Final = "numbers that differ by the sensitivity"
_LOCAL: Final = "the value of one record is replaced"

_ZERO_ONE: Final = (0.0, 1.0)
_LISTS: Final = ([0.0] * 10, [0.0] * 9 + [1.0])
_LONGER: Final = ([5.0] * 9, [5.0] * 9 + [6.0])


def _build_call(path: str, **options: Any) -> _Build:
    """Return a function that builds a mechanism from a function with one input."""

    def build() -> Callable[[Any], Any]:
        function = import_object(path)
        return lambda x: function(x, **options)

    return build


def _array_call_builder(path: str, **options: Any) -> _Build:
    """Return a function that builds a mechanism whose output tensor is converted to an array."""

    def build() -> Callable[[Any], Any]:
        function = import_object(path)
        return lambda x: np.asarray(function(np.asarray(x), **options))

    return build


def _noise_adder_builder(path: str, **options: Any) -> _Build:
    """Return a function that builds a mechanism that adds a package's noise to the input."""

    def build() -> Callable[[Any], Any]:
        function = import_object(path)
        return lambda x: x + function(**options)

    return build


def _batched_call(path: str, keyword: str, *others: Any, **options: Any) -> _Build:
    """Return a function that builds a mechanism for many records per call.

    The package adds independent noise to each record. One call therefore returns many outputs.

    Args:
        path: module and function, such as "math:sqrt".
        keyword: name of the argument that contains the records.
        *others: further records, which the call appends after the audited records.
        **options: further arguments of the function.
    """

    def build() -> Callable[[Any, int, Any], Any]:
        function = import_object(path)

        def draw(x: Any, size: int, rng: Any) -> Any:
            records = np.append(np.full(size, x), others) if others else np.full(size, x)
            return np.asarray(function(**{keyword: records}, **options))[:size]

        return draw

    return build


def _gaussian_loss(ratio: float, delta: float) -> float:
    """Compute epsilon of Gaussian noise at `delta` (Balle and Wang 2018, theorem 8).

    Args:
        ratio: distance of the two inputs, divided by the standard deviation of the noise.
        delta: delta of the guarantee.
    """
    low, high = 0.0, 200.0
    for _ in range(100):
        epsilon = (low + high) / 2
        first, second = (
            math.erfc((epsilon / ratio + sign * ratio / 2) / math.sqrt(2)) / 2 for sign in (-1, 1)
        )
        excess = first - math.exp(epsilon) * second
        low, high = (epsilon, high) if excess > delta else (low, epsilon)
    return low


def _gaussian_sigma(*arguments: float) -> float:
    return float(import_object("diffpriv_pure:gaussian_sigma")(*arguments))


def _eeprivacy_build(kind: str, key: str, options: dict[str, Any], **arguments: Any) -> _Build:
    """Return a function that builds a mechanism from an operation of the package eeprivacy.

    The output is converted to floats.
    """

    def build() -> Callable[[Any], Any]:
        operation = import_object(f"eeprivacy.operations:{kind}")(**options)
        return lambda x: np.atleast_1d(
            np.asarray(operation.execute(**{key: np.asarray(x)}, **arguments), float)
        )

    return build


def _noisy_hours_sum(*names: str, **bounds: float) -> _Build:
    """Return a function that builds noisy sums of clipped hours (README of dp-group-stats)."""

    def build() -> Callable[[Any], Any]:
        limits = import_object("dp_group_stats:ContributionBounds")(**bounds)
        config = import_object("dp_group_stats:DPGroupStatsConfig")(bounds=limits)
        noise = import_object("dp_group_stats:laplace_noise")
        parts = [
            (
                getattr(limits, f"clip_{name}"),
                getattr(config.epsilon_split, f"{name}_sum"),
                getattr(limits, f"{name}_sensitivity"),
            )
            for name in names
        ]
        return lambda x: np.array(
            [sum(map(clip, x)) + noise(epsilon, scale) for clip, epsilon, scale in parts]
        )

    return build


def _build_noisy_period_sums() -> Callable[[Any], Any]:
    """Return a function that publishes noisy sums of four periods.

    The package reduces epsilon so that the total epsilon is at most 1.
    """
    adapt = import_object("dp_group_stats:compute_adaptive_epsilon")
    noise = import_object("dp_group_stats:laplace_noise")
    limits = import_object("dp_group_stats:ContributionBounds")()

    def publish(x: Any) -> Any:
        total, sums = 0.0, []
        for index in range(4):
            epsilon = adapt(
                config_epsilon=0.8, annual_cap=1.0, period_index=index, total_periods=4,
                spent_so_far=total,
            )  # fmt: skip
            total += epsilon
            sums.append(sum(map(limits.clip_actual, x)) + noise(epsilon, limits.actual_sensitivity))
        return np.array(sums)

    return publish


def _build_query(
    query: Callable[[Any], Any], epsilon: float, kind: str = "Float", low: Any = 0, high: Any = 200
) -> _Build:
    """Return a function that builds a query of the package dwork (on columns A and B)."""

    def build() -> Callable[[Any], Any]:
        values = import_object(f"dwork.language.types:{kind}")
        columns = {name: values(min=low, max=high) for name in "AB"}
        schema = type("Schema", (import_object("dwork.dataschema:DataSchema"),), columns)
        dataset = import_object("dwork.dataset.pandas:PandasDataset")
        frame = import_object("pandas:DataFrame")
        return lambda x: query(dataset(schema, frame({"A": x, "B": x}))).dp(epsilon)

    return build


def _make_group_name_function() -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that returns the names of the groups in a table of the package dwork."""
    schema = import_object("dwork.dataschema:DataSchema")
    dataset = import_object("dwork.dataset.pandas:PandasDataset")
    frame = import_object("pandas:DataFrame")
    return lambda x: tuple(dataset(schema, frame({"A": x})).group_by(by="A").groups)


def _obfuscation_builder(
    path: str, words: Mapping[str, tuple[float, ...]], **options: Any
) -> _Build:
    """Return a function that builds a mechanism of the package pypantera for a small vocabulary."""

    def build() -> Callable[[Any, int, Any], Any]:
        kind, frame = import_object(f"src.{path}"), import_object("pandas:DataFrame")
        lines = [f"{word} {' '.join(map(str, vector))}\n" for word, vector in words.items()]
        with TemporaryDirectory() as folder:
            place = Path(folder) / "embeddings.txt"
            # Parts of the file are read by processes, which may skip the line at their border.
            place.write_text("".join(lines * 3), encoding="utf-8")
            mechanism = kind({"embPath": str(place)} | options)

        def obfuscate(x: str, size: int, rng: Any) -> list[str]:
            texts = frame({"id": range(size), "text": [x] * size})
            return [row[0] for row in mechanism.obfuscateText(texts, 1)["obfuscatedText"]]

        return obfuscate

    return build


def _build_column_call(path: str, *others: Any, **options: Any) -> _Build:
    """Return a function that builds a mechanism for one column of a table.

    Each record of the column gives one output.
    """

    def build() -> Callable[[Any, int, Any], Any]:
        function, frame = import_object(path), import_object("pandas:DataFrame")

        def draw(x: Any, size: int, rng: Any) -> Any:
            table = frame({"value": [x] * size + list(others)})
            return function(table, "value", **options)["value"].to_numpy()[:size]

        return draw

    return build


def _build_list_call(path: str, **options: Any) -> _Build:
    """Return a function that builds a mechanism whose input is a small list of records.

    All returned records together are one output.
    """

    def build() -> Callable[[Any], Any]:
        function = import_object(path)
        return lambda x: tuple(map(str, function(np.array(x), **options)))

    return build


def _location_dp(*columns: str, new_seeds: bool = True) -> _Build:
    """Return a function that builds a mechanism for metric privacy of locations.

    Epsilon is 0.01 per metre.

    Args:
        *columns: columns of the result that are the output.
        new_seeds: True to use a new seed in each call, False to use the package's default seed.
    """

    def build() -> Callable[[Any, int, Any], Any]:
        function = import_object("trasgodp.geoindis:metric_privacy")
        frame = import_object("pandas:DataFrame")

        def move(x: Any, size: int, rng: Any) -> Any:
            table = frame(x, columns=["lat", "lon"])
            seeds = [{"seed": int(n)} for n in rng.integers(2**32, size=size)]
            options = seeds if new_seeds else [{}] * size
            tables = [function(table, "lat", "lon", 0.01, **option) for option in options]
            return np.array([np.ravel(table[list(columns)]) for table in tables])

        return move

    return build


def count_cats(outputs: Any) -> Any:
    """Return an array with 1 for each output that equals "cat", and 0 for any other output."""
    return np.array([float(output == "cat") for output in outputs])


def score_radius_against_distance(outputs: Any) -> Any:
    """Return one score per output. An output consists of a location and a radius.

    The score is high if the radius is close to the distance of the location from (0, 0). The first
    two columns of `outputs` are the location in degrees. The third column is the radius in metres.
    """
    table = np.asarray(outputs)
    return -np.abs(np.hypot(table[:, 0], table[:, 1]) * _METRES_PER_DEGREE - table[:, 2])


_METRES_PER_DEGREE: Final = 6_371_000 * math.pi / 180
_NORTH: Final = 100 / _METRES_PER_DEGREE

_PURE_SUM: Final = "__init__.py:78, docstring; the sensitivity is that of a replacement"
_PURE_MEAN: Final = "__init__.py:89, docstring: sensitivity (high - low) / n"
_PURE_COUNT: Final = "__init__.py:68, docstring: pure epsilon-DP for integer counts"
_PRESTO_NOISE: Final = "privacy_mechanisms.py:{}, docstring: epsilon for the sensitivity"
_PRESTO_RECORD: Final = "privacy_mechanisms.py:{}, docstring; docs/index.md: one record differs"
_ENERGY: Final = "mechanisms.py:{}, docstring: epsilon for the sensitivity"
_ENERGY_ADD: Final = "operations.py:{}, docstring; docs, stochastic testing: neighbours [] and [1]"
_GROUP: Final = "config.py:54: epsilon of each sum; README, design decisions: a value is replaced"
_DWORK: Final = "README of the repository: dp(epsilon) is epsilon-DP; language/functions.py:20"
_WORDS: Final = "words whose embeddings are at distance 1"
_TEXT: Final = "README: epsilon-DP; {}, docstring: privacy for the metric of the embeddings"
_TRASGO: Final = "README: epsilon-DP, each record on its own; {}, docstring: privacy budget"
_GEO: Final = "README: metric privacy of a location; _geo_metric_privacy.py:85, docstring: budget"
_METRES: Final = "locations that are 100 m apart"

_LINE_OF_WORDS: Final = {"low": (-5.0,), "cat": (0.0,), "dog": (1.0,), "high": (6.0,)}
_PLANE: Final = {
    "low": (-9.0, 0.1), "down": (-9.0, -0.1), "left": (-0.2, 0.0), "cat": (0.0, 0.0),
    "right": (0.2, 0.0), "dog": (1.0, 0.0), "high": (10.0, 0.1), "up": (10.0, -0.1),
}  # fmt: skip
_FAR_WORDS: Final = {"cat": (0.0,), "dog": (1.0,)} | {f"far{i}": (1e4 + i,) for i in range(98)}
_CIRCLE: Final = {
    word: (math.cos(angle), math.sin(angle)) for angle, word in enumerate(_PLANE)
}  # fmt: skip
_PETS: Final = ("cat", "dog")
_DOUBLE: Final = np.float64
"""Type of epsilon for CusText. With a Python float, CusText computes probabilities in single
precision, which numpy 2 refuses.
"""
_CMP: Final = "EmbeddingPerturbationMechanism.cmp:CMP"
_MAHALANOBIS: Final = "EmbeddingPerturbationMechanism.mahalanobis:Mahalanobis"
_VICKREY: Final = "EmbeddingPerturbationMechanism.vickrey:Vickrey"
_CUSTEXT: Final = "SamplingPerturbationMechanism.custext:CusText"
_SANTEXT: Final = "SamplingPerturbationMechanism.santext:SanText"
_TEM: Final = "SamplingPerturbationMechanism.tem:TEM"

CASES: tuple[Case, ...] = (
    _pure(name="laplace_noise(scale=1, epsilon=1)", pair=_ZERO_ONE, claim=1.0, true_loss=1.0,
          build=_noise_adder_builder("diffpriv_pure:laplace_noise", scale=1.0, epsilon=1.0),
          relation=_DISTANCE, stated="__init__.py:45, docstring: pure epsilon-DP", trials=100_000),
    _pure(name="private_sum(bounds=(0, 1), epsilon=1)", pair=_LISTS, claim=1.0, true_loss=1.0,
          build=_build_call("diffpriv_pure:private_sum", bounds=(0.0, 1.0), epsilon=1.0),
          relation=_REPLACE, stated=_PURE_SUM, trials=100_000),
    _pure(name="private_sum(bounds=(0, 1), epsilon=1), a missing value", claim=1.0, true_loss=1.0,
          build=_build_call("diffpriv_pure:private_sum", bounds=(0.0, 1.0), epsilon=1.0),
          pair=([0.0] * 10, [0.0] * 9 + [math.nan]), stated=_PURE_SUM, trials=100_000,
          relation="one value is replaced by a missing one", reading="relation unclear"),
    _pure(name="private_sum(bounds=(5, 6), epsilon=1), one value added", pair=_LONGER, claim=1.0,
          build=_build_call("diffpriv_pure:private_sum", bounds=(5.0, 6.0), epsilon=1.0),
          relation=_ADD, stated=_PURE_SUM, true_loss=6.0, trials=100_000,
          reading="relation unclear",
          cause="the sensitivity is the upper less the lower bound (__init__.py:83)"),
    _pure(name="private_sum(bounds=(0, 1), epsilon=0.5, delta=1e-6)", pair=_LISTS, claim=0.5,
          delta=1e-6, build=_build_call("diffpriv_pure:private_sum", bounds=(0.0, 1.0), epsilon=0.5,
                                  delta=1e-6),
          relation=_REPLACE, stated=_PURE_SUM, trials=100_000,
          true_loss=_gaussian_loss(0.5 / math.sqrt(2 * math.log(1.25e6)), 1e-6)),
    _pure(name="gaussian_noise(gaussian_sigma(1, epsilon=8, delta=0.1))", pair=_ZERO_ONE,
          build=lambda: _noise_adder_builder("diffpriv_pure:gaussian_noise",
          sigma=_gaussian_sigma(1.0, 8.0, 0.1))(), claim=8.0, delta=0.1, relation=_DISTANCE,
          stated="README, public API: analytic sigma", true_loss=_gaussian_loss(8 / math.sqrt(2 *
          math.log(12.5)), 0.1), trials=4 * 10**6,
          cause="a formula for epsilon below 1 is used for any epsilon (__init__.py:57)"),
    _pure(name="private_mean(bounds=(0, 10), epsilon=0.5)", claim=0.5, true_loss=0.5,
          build=_build_call("diffpriv_pure:private_mean", bounds=(0.0, 10.0), epsilon=0.5),
          pair=([1.2, 3.4, 0.0], [1.2, 3.4, 10.0]), relation=_REPLACE, stated=_PURE_MEAN,
          trials=100_000),
    _pure(name="private_mean(bounds=(0, 1), epsilon=0.1), one value added", claim=0.1,
          build=_build_call("diffpriv_pure:private_mean", bounds=(0.0, 1.0), epsilon=0.1),
          pair=([0.0], [0.0, 1.0]), relation=_ADD, stated=_PURE_MEAN, true_loss=math.inf,
          trials=100_000, reading="relation unclear",
          cause="the scale of the noise shows the number of values (__init__.py:94)"),
    _pure(name="private_count(epsilon=1)", pair=(42, 43), claim=1.0, true_loss=math.inf,
          build=_build_call("diffpriv_pure:private_count", epsilon=1.0), stated=_PURE_COUNT,
          relation="counts that differ by 1", trials=200_000,
          cause="the noise has one side only: it is never negative (__init__.py:74)"),
    _presto(name="applyDPLaplace(sensitivity=1, epsilon=1)", pair=_ZERO_ONE, claim=1.0,
            build=_batched_call("ornl_presto:applyDPLaplace", "domain"), relation=_DISTANCE,
            stated=_PRESTO_NOISE.format(75), true_loss=1.0, trials=10**6),
    _presto(name="applyDPLaplace(sensitivity=3, epsilon=0.5)", pair=(0.0, 3.0), claim=0.5,
            build=_batched_call("ornl_presto:applyDPLaplace", "domain", sensitivity=3, epsilon=0.5),
            relation=_DISTANCE, stated=_PRESTO_NOISE.format(75), true_loss=0.5, trials=10**6),
    _presto(name="applyDPExponential(sensitivity=1, epsilon=1)", pair=_ZERO_ONE, claim=1.0,
            build=_batched_call("ornl_presto:applyDPExponential", "domain"), relation=_DISTANCE,
            stated=_PRESTO_NOISE.format(53), true_loss=1.0, trials=10**6),
    _presto(name="applyDPGaussian(sensitivity=1, delta=1e-5, epsilon=1)", pair=_ZERO_ONE,
            claim=1.0, delta=1e-5, build=_batched_call("ornl_presto:applyDPGaussian", "domain"),
            relation=_DISTANCE, stated=_PRESTO_NOISE.format(32), trials=10**6,
            true_loss=_gaussian_loss(1 / math.sqrt(math.log(1.25e5)), 1e-5), reading="source only",
            cause="the variance lacks the factor 2 of the classical formula "
            "(privacy_mechanisms.py:40)"),
    _presto(name="applyDPGaussian(sensitivity=1, delta=0.001, epsilon=5)", pair=_ZERO_ONE,
            build=_batched_call("ornl_presto:applyDPGaussian", "domain", epsilon=5.0, delta=1e-3),
            claim=5.0, delta=1e-3, relation=_DISTANCE, stated=_PRESTO_NOISE.format(32),
            true_loss=_gaussian_loss(5 / math.sqrt(math.log(1250)), 1e-3), trials=4 * 10**6,
            cause="the variance lacks the factor 2 of the classical formula "
            "(privacy_mechanisms.py:40)"),
    _presto(name="applyDPGaussian(sensitivity=100, delta=1e-5, epsilon=1)", pair=(0.0, 100.0),
          claim=1.0, delta=1e-5, relation=_DISTANCE, stated=_PRESTO_NOISE.format(32),
          build=_batched_call("ornl_presto:applyDPGaussian", "domain", sensitivity=100),
          trials=10**6, true_loss=_gaussian_loss(10 / math.sqrt(math.log(1.25e5)), 1e-5),
          cause="the standard deviation grows with the root of the sensitivity, and lacks a "
          "factor of the root of 2 (privacy_mechanisms.py:40)"),
    _presto(name="applySVTAboveThreshold_full(epsilon=1)", claim=1.0, true_loss=math.inf,
            pair=([0.0, 0.0, 0.0, 10.0], [0.0, 0.0, 0.0, 11.0]), relation=_REPLACE,
            build=_array_call_builder("ornl_presto:applySVTAboveThreshold_full", epsilon=1.0),
            stated=_PRESTO_RECORD.format(107), trials=20_000,
            cause="a value above the threshold is released without noise, and other values of the "
            "data in place of one below it (privacy_mechanisms.py:97)"),
    _presto(name="count_mean_sketch(epsilon=1)", claim=1.0, true_loss=math.inf, relation=_REPLACE,
            build=_array_call_builder("ornl_presto:count_mean_sketch", epsilon=1.0),
            pair=([5.0] * 4, [5.0] * 3 + [6.0]), stated=_PRESTO_RECORD.format(142), trials=5_000,
            cause="the bins reach from the least to the largest value of the data, without noise "
            "(privacy_mechanisms.py:148)"),
    _presto(name="hadamard_mechanism(epsilon=1)", claim=1.0, true_loss=1.0, trials=10_000,
            build=_array_call_builder("ornl_presto:hadamard_mechanism", epsilon=1.0),
            pair=([0.0, 0.0], [1.0, 0.0]), relation="one value of [0, 1] is replaced",
            stated=_PRESTO_RECORD.format(166)),
    _presto(name="hadamard_mechanism(epsilon=1), values of [0, 10]", claim=1.0, true_loss=10.0,
            build=_array_call_builder("ornl_presto:hadamard_mechanism", epsilon=1.0),
            pair=([0.0, 0.0], [10.0, 0.0]), relation=_REPLACE, stated=_PRESTO_RECORD.format(166),
            trials=5_000, reading="relation unclear",
            cause="no bound of the values is stated or applied (privacy_mechanisms.py:176)"),
    _presto(name="hadamard_response(epsilon=1), 10 values", pair=(0.0, 5.0), claim=1.0,
            build=_batched_call("ornl_presto:hadamard_response", "data", 9.0, epsilon=1.0),
            relation=_LOCAL, stated="privacy_mechanisms.py:186, docstring: local DP, epsilon",
            true_loss=math.log(10 * math.e + 1), trials=10**6,
            cause="the probability to answer truthfully is that for two values, and does not "
            "depend on the number of values (privacy_mechanisms.py:195)"),
    _presto(name="rappor(epsilon=1)", pair=(0.0, 28.0), claim=1.0, true_loss=1.0, trials=50_000,
            build=_batched_call("ornl_presto:rappor", "data", epsilon=1.0), relation=_LOCAL,
            stated="privacy_mechanisms.py:208, docstring: epsilon"),
    _presto(name="rappor(epsilon=1, k=4)", pair=(0.0, 1936.0), claim=1.0, true_loss=3.0,
            build=_batched_call("ornl_presto:rappor", "data", epsilon=1.0, k=4), relation=_LOCAL,
            stated="privacy_mechanisms.py:208, docstring: epsilon", trials=50_000,
            cause="epsilon is spent on each bit of the filter, of which several differ "
            "(privacy_mechanisms.py:221)"),
    _energy(name="LaplaceMechanism(epsilon=1, sensitivity=1)", pair=_ZERO_ONE, claim=1.0,
            build=_batched_call("eeprivacy.mechanisms:LaplaceMechanism.execute_batch", "values",
                        epsilon=1.0, sensitivity=1.0),
            relation=_DISTANCE, stated=_ENERGY.format(22), true_loss=1.0, trials=10**6),
    _energy(name="LaplaceMechanism(epsilon=0.1, sensitivity=3)", pair=(0.0, 3.0), claim=0.1,
            build=_batched_call("eeprivacy.mechanisms:LaplaceMechanism.execute_batch", "values",
                        epsilon=0.1, sensitivity=3.0),
            relation=_DISTANCE, stated=_ENERGY.format(22), true_loss=0.1, trials=10**6),
    _energy(name="GaussianMechanism(epsilon=0.5, delta=0.01, sensitivity=1)", pair=_ZERO_ONE,
            build=_batched_call("eeprivacy.mechanisms:GaussianMechanism.execute_batch", "values",
                        epsilon=0.5, delta=0.01, sensitivity=1.0),
            claim=0.5, delta=0.01, relation=_DISTANCE, stated=_ENERGY.format(103),
            true_loss=_gaussian_loss(0.5 / math.sqrt(2 * math.log(125)), 0.01), trials=10**6),
    _energy(name="GaussianMechanism(epsilon=8, delta=0.1, sensitivity=1)", pair=_ZERO_ONE,
            build=_batched_call("eeprivacy.mechanisms:GaussianMechanism.execute_batch", "values",
                        epsilon=8.0, delta=0.1, sensitivity=1.0), claim=8.0, delta=0.1,
            relation=_DISTANCE, stated=_ENERGY.format(103), trials=10**7,
            true_loss=_gaussian_loss(8 / math.sqrt(2 * math.log(12.5)), 0.1),
            cause="a formula for epsilon below 1 is used for any epsilon (mechanisms.py:83)"),
    _energy(name="PrivateClampedSum(0, 1), epsilon=1", pair=_LISTS, claim=1.0, true_loss=1.0,
          build=_eeprivacy_build("PrivateClampedSum", "values", {"lower_bound": 0, "upper_bound":
          1}, epsilon=1.0), relation=_REPLACE, stated="operations.py:29, docstring", trials=50_000),
    _energy(name="PrivateClampedSum(5, 6), epsilon=1, one value added", pair=_LONGER, claim=1.0,
          build=_eeprivacy_build("PrivateClampedSum", "values", {"lower_bound": 5, "upper_bound":
          6}, epsilon=1.0), relation=_ADD, stated=_ENERGY_ADD.format(29), true_loss=6.0,
          trials=50_000, reading="relation unclear",
          cause="the sensitivity is the upper less the lower bound (operations.py:39)"),
    _energy(name="PrivateClampedMean(0, 1), epsilon=1, no value", pair=([], [1.0]), claim=1.0,
          build=_eeprivacy_build("PrivateClampedMean", "values", {"lower_bound": 0, "upper_bound":
          1}, epsilon=1.0), relation=_ADD, stated=_ENERGY_ADD.format(71), trials=20_000),
    _energy(name="PrivateClampedMean(0, 1), epsilon=1", pair=_LISTS, claim=1.0, true_loss=1.0,
          build=_eeprivacy_build("PrivateClampedMean", "values", {"lower_bound": 0, "upper_bound":
          1}, epsilon=1.0), relation=_REPLACE, stated="operations.py:71, docstring", trials=50_000),
    _energy(name="PrivateClampedMean(0, 1), epsilon=0.1, one value added", claim=0.1,
          build=_eeprivacy_build("PrivateClampedMean", "values", {"lower_bound": 0, "upper_bound":
          1}, epsilon=0.1), pair=([0.0], [0.0, 1.0]), relation=_ADD, stated=_ENERGY_ADD.format(71),
          trials=100_000, true_loss=math.log(2) + 0.05, reading="relation unclear",
          cause="the scale of the noise shows the number of values (operations.py:98)"),
    _energy(name="PrivateClampedMean(0, 1), epsilon=1, a value of 100", claim=1.0,
          build=_eeprivacy_build("PrivateClampedMean", "values", {"lower_bound": 0, "upper_bound":
          1}, epsilon=1.0), pair=([0.0] * 10, [0.0] * 9 + [100.0]), relation=_REPLACE,
          true_loss=100.0,
          stated="operations.py:62 and 71, docstrings: clamping bounds the sensitivity",
          cause="the mean is clamped, but not the values (operations.py:82)", trials=50_000),
    _energy(name="PrivateVectorClampedMeanGaussian(0, 1, k=2, N=2), epsilon=1", claim=1.0,
          build=_eeprivacy_build("PrivateVectorClampedMeanGaussian", "vectors", delta=0.01,
          epsilon=1.0, options={"lower_bound": 0, "upper_bound": 1, "k": 2, "N": 2}), pair=([[0.0,
          0.0]] * 2, [[0.0, 0.0], [1.0, 1.0]]), delta=0.01, trials=20_000,
          relation="one vector is replaced", stated="operations.py:135 and 164, docstrings",
          true_loss=_gaussian_loss(1 / math.sqrt(2 * math.log(125)), 0.01)),
    _energy(name="PrivateVectorClampedMeanLaplace(0, 1, k=2, N=2), epsilon=1", claim=1.0,
          build=_eeprivacy_build("PrivateVectorClampedMeanLaplace", "vectors", delta=0.0,
          epsilon=1.0, options={"lower_bound": 0, "upper_bound": 1, "k": 2, "N": 2}), pair=([[0.0,
          0.0]] * 2, [[0.0, 0.0], [0.0, 1.0]]), true_loss=math.inf, trials=20_000,
          relation="one vector is replaced", stated="operations.py:214 and 241, docstrings",
          cause="one number is drawn for all entries (operations.py:256, mechanisms.py:26)"),
    _energy(name="PrivateHistogram([0, 0.5, 1]), epsilon=1, one value added", claim=1.0,
          build=_eeprivacy_build("PrivateHistogram", "values", {"bins": [0, 0.5, 1]}, epsilon=1.0),
          pair=([0.0] * 9, [0.0] * 9 + [1.0]), relation=_ADD, true_loss=1.0, trials=10_000,
          stated=_ENERGY_ADD.format(295)),
    _energy(name="PrivateHistogram([0, 0.5, 1]), epsilon=1, one value replaced", pair=_LISTS,
          build=_eeprivacy_build("PrivateHistogram", "values", {"bins": [0, 0.5, 1]}, epsilon=1.0),
          claim=1.0, relation=_REPLACE, stated="operations.py:295, docstring", true_loss=2.0,
          trials=20_000, reading="relation unclear",
          cause="a replaced value changes two bins (operations.py:302)"),
    _energy(name="PrivateQuantile([0.5, 1.5]), epsilon=1, quantile=0.5", claim=1.0, trials=50_000,
          build=_eeprivacy_build("PrivateQuantile", "values", {"options": [0.5, 1.5]}, epsilon=1.0,
          quantile=0.5), pair=([0.0] * 2 + [1.0] * 6, [0.0] * 2 + [1.0] * 6 + [2.0]),
          relation=_ADD, stated=_ENERGY_ADD.format(335)),
    _energy(name="PrivateQuantile([0.5, 1.5]), epsilon=1, quantile=0.9", claim=1.0,
          build=_eeprivacy_build("PrivateQuantile", "values", {"options": [0.5, 1.5]}, epsilon=1.0,
          quantile=0.9), trials=200_000, true_loss=1.8 + math.log(7.2 / 9), pair=([0.0] * 2 + [1.0]
          * 7, [0.0] * 2 + [1.0] * 7 + [2.0]), relation=_ADD, stated=_ENERGY_ADD.format(335),
          cause="the noise is that for scores which all rise or all fall (operations.py:357)"),
    _energy(name="PrivateQuantile([0.5, 1.5]), epsilon=1, quantile=0.5, one value replaced",
          build=_eeprivacy_build("PrivateQuantile", "values", {"options": [0.5, 1.5]}, epsilon=1.0,
          quantile=0.5), trials=200_000, true_loss=2 + math.log(5 / 7), pair=([0.0] + [1.0] * 5 +
          [2.0] * 4, [1.0] * 5 + [2.0] * 5), relation=_REPLACE, claim=1.0,
          stated="operations.py:335, docstring",
          cause="the noise is that for scores which all rise or all fall (operations.py:357)"),
    _group(name="sum of actual hours", build=_noisy_hours_sum("actual"), claim=0.8,
           pair=([40.0] * 5 + [0.0], [40.0] * 5 + [200.0]), true_loss=0.8, relation=_REPLACE,
           stated=_GROUP, trials=50_000),
    _group(name="sum of planned hours", build=_noisy_hours_sum("planned"), claim=0.2,
           pair=([40.0] * 5 + [0.0], [40.0] * 5 + [200.0]), true_loss=0.2, relation=_REPLACE,
           stated=_GROUP, trials=50_000),
    _group(name="sums of planned and of actual hours", build=_noisy_hours_sum("planned", "actual"),
           pair=([40.0] * 5 + [0.0], [40.0] * 5 + [200.0]), claim=1.0, true_loss=1.0,
           relation=_REPLACE, stated=_GROUP, trials=50_000),
    _group(name="sum of actual hours, bounds (30, 50)", claim=0.8, true_loss=0.8,
           build=_noisy_hours_sum("actual", actual_weekly_min=30.0, actual_weekly_max=50.0),
           pair=([40.0] * 5 + [0.0], [40.0] * 5 + [200.0]), relation=_REPLACE, stated=_GROUP,
           trials=50_000),
    _group(name="sum of actual hours, a missing value", build=_noisy_hours_sum("actual"), claim=0.8,
           pair=([40.0] * 6, [40.0] * 5 + [math.nan]), true_loss=math.inf, stated=_GROUP,
           relation="one value is replaced by a missing one", reading="relation unclear",
           trials=20_000, cause="a missing value passes the clipping, and so the sum shows it "
           "(config.py:43)"),
    _group(name="sums of four periods, compute_adaptive_epsilon(annual_cap=1)", claim=1.0,
           build=_build_noisy_period_sums, pair=([40.0] * 5 + [0.0], [40.0] * 5 + [200.0]),
           true_loss=1.0, relation="the values of one user are replaced", trials=20_000,
           stated="accounting.py:233, docstring: never more than the annual cap; README"),
    _dwork(name="len().dp(0.5)", build=_build_query(lambda rows: rows.len(), 0.5), claim=0.5,
           pair=([0.0] * 5, [0.0] * 6), relation="one row is added", true_loss=0.5,
           stated=_DWORK, trials=20_000),
    _dwork(name='["A"].sum().dp(1), Float(0, 200)', claim=1.0, true_loss=1.0, trials=10_000,
           build=_build_query(lambda rows: rows["A"].sum(), 1.0), pair=([80.0, 0.0], [80.0, 200.0]),
           relation="one row is replaced", stated=_DWORK),
    _dwork(name='["A"].sum().dp(1), Float(100, 200), one row added', claim=1.0, true_loss=2.0,
          build=_build_query(lambda rows: rows["A"].sum(), 1.0, low=100),
          relation="one row is added", pair=([180.0], [180.0, 200.0]), stated=_DWORK, trials=5_000,
          reading="relation unclear",
          cause="the sensitivity is the range of the column (dataset/pandas.py:110)"),
    _dwork(name='["A"].sum().dp(1), Integer(0, 200)', claim=1.0, true_loss=math.inf,
          build=_build_query(lambda rows: rows["A"].sum(), 1.0, "Integer"),
          relation="one row is replaced", pair=([80, 0], [80, 1]), stated=_DWORK, trials=10_000,
          cause="the noise is a multiple of the sensitivity, so that the sum is seen up to a "
          "multiple of it (language/types.py:197)"),
    _dwork(name='(["A"] + ["B"]).sum().dp(1), Float(0, 200)', claim=1.0, true_loss=2.0,
           build=_build_query(lambda rows: (rows["A"] + rows["B"]).sum(), 1.0), trials=10_000,
           pair=([80.0, 0.0], [80.0, 200.0]), relation="one row is replaced", stated=_DWORK,
           cause="the sensitivity of a sum is the larger of two, not their sum "
           "(language/operators.py:142)"),
    _dwork(name='(["A"] * ["B"]).sum().dp(1), Float(100, 200)', claim=1.0, true_loss=3.0,
          build=_build_query(lambda rows: (rows["A"] * rows["B"]).sum(), 1.0, low=100),
          trials=10_000, pair=([180.0, 100.0], [180.0, 200.0]), relation="one row is replaced",
          stated=_DWORK, cause="the sensitivity of a product is the product of two ranges "
          "(language/operators.py:181)"),
    _dwork(name='(["A"].sum() / len()).dp(1), Float(0, 200)', claim=1.0, true_loss=math.inf,
           build=_build_query(lambda rows: rows["A"].sum() / rows.len(), 1.0), trials=20_000,
           pair=([0.0, 0.0], [0.0, 200.0]), relation="one row is replaced",
           stated=_DWORK, cause="the scale of the noise is computed from the data "
           "(language/operators.py:71)"),
    _dwork(name='(["A"].sum() / len()).dp(0.5), Integer(0, 200)', claim=0.5, true_loss=math.inf,
          build=_build_query(lambda rows: rows["A"].sum() / rows.len(), 0.5, "Integer"),
          trials=5_000, pair=([80, 90], [80, 91]), relation="one row is replaced", stated=_DWORK,
          cause="the noise is a multiple of a number computed from the data "
          "(language/types.py:197, language/operators.py:71)"),
    _dwork(name='group_by(by="A").groups', build=_make_group_name_function, claim=0.3,
           pair=([1, 1, 2], [1, 1, 3]), true_loss=math.inf,
           relation="one row is replaced", trials=2_000,
           stated="dataset/pandas.py:176, docstring: epsilon of the count of rows of a group",
           reading="release unclear",
           cause="threshold and epsilon are not used (dataset/pandas.py:198)"),
    _text(name="CMP(epsilon=1)", build=_obfuscation_builder(_CMP, _LINE_OF_WORDS, epsilon=1.0),
          pair=_PETS, claim=1.0, relation=_WORDS, stated=_TEXT.format("cmp.py:25"), true_loss=1.0,
          trials=50_000),
    _text(name="CMP(epsilon=5)", build=_obfuscation_builder(_CMP, _PLANE, epsilon=5.0), pair=_PETS,
          claim=5.0, relation=_WORDS, stated=_TEXT.format("cmp.py:25"), trials=50_000),
    _text(name="Mahalanobis(epsilon=1, lam=1)", pair=_PETS, claim=1.0, relation=_WORDS,
          build=_obfuscation_builder(_MAHALANOBIS, _PLANE, epsilon=1.0, lam=1.0), trials=50_000,
          attack=lambda: import_object("dpcore.attacks:Threshold")(score=count_cats),
          stated=_TEXT.format("mahalanobis.py:29"),
          cause="the noise is scaled to length 1 again after the covariance is applied "
          "(mahalanobis.py:85)"),
    _text(name="VickreyCMP(epsilon=1, t=0.75)", pair=_PETS, claim=1.0, relation=_WORDS,
          build=_obfuscation_builder(f"{_VICKREY}CMP", _LINE_OF_WORDS, epsilon=1.0, t=0.75),
          stated=_TEXT.format("vickrey.py:35"), trials=20_000),
    _text(name="VickreyMhl(epsilon=1, lam=1, t=0.75)", pair=_PETS, claim=1.0, relation=_WORDS,
          build=_obfuscation_builder(f"{_VICKREY}Mhl", _PLANE, epsilon=1.0, lam=1.0, t=0.75),
          attack=lambda: import_object("dpcore.attacks:Threshold")(score=count_cats),
          stated=_TEXT.format("vickrey.py:35"), trials=20_000),
    _text(name="CusText(epsilon=4, k=4, distance=euclidean), 4 words", pair=("low", "high"),
          build=_obfuscation_builder(_CUSTEXT, _LINE_OF_WORDS, epsilon=_DOUBLE(4), k=4,
                           distance="euclidean"),
          claim=4.0, relation="words with the same k neighbours", trials=50_000, true_loss=2.0,
          stated="README: epsilon-DP; custext.py:19"),
    _text(name="CusText(epsilon=1, k=2, distance=euclidean), 4 words", pair=("cat", "high"),
          build=_obfuscation_builder(_CUSTEXT, _LINE_OF_WORDS, epsilon=_DOUBLE(1), k=2,
                           distance="euclidean"), claim=1.0, relation="any two words",
          true_loss=math.inf, stated="README: epsilon-DP; custext.py:19", trials=10_000,
          reading="relation unclear",
          cause="a word is replaced by one of its own k neighbours (custext.py:84)"),
    _text(name="CusText(epsilon=4, k=8, distance=cosine), 8 words", pair=("left", "dog"),
          build=_obfuscation_builder(_CUSTEXT, _CIRCLE, epsilon=_DOUBLE(4), k=8, distance="cosine"),
          claim=4.0, relation="words with the same k neighbours", trials=20_000,
          stated="README: epsilon-DP; custext.py:19"),
    _text(name="SanText(epsilon=1)", build=_obfuscation_builder(_SANTEXT, _LINE_OF_WORDS,
          epsilon=1.0), pair=_PETS, claim=1.0, relation=_WORDS, trials=50_000,
          stated="README: epsilon-DP; santext.py:19"),
    _text(name="TEM(epsilon=1, beta=0.001)", pair=_PETS, claim=1.0, relation=_WORDS,
          build=_obfuscation_builder(_TEM, _LINE_OF_WORDS, epsilon=1.0, beta=0.001), trials=20_000,
          stated=_TEXT.format("tem.py:21")),
    _text(name="TEM(epsilon=0.1, beta=0.5), 100 words", pair=_PETS, claim=0.1, relation=_WORDS,
          build=_obfuscation_builder(_TEM, _FAR_WORDS, epsilon=0.1, beta=0.5), trials=10_000,
          stated=_TEXT.format("tem.py:21"), true_loss=0.05 + math.log(1 + 98 / 99),
          cause="in place of a distant word the word itself is returned, because the choice among "
          "vectors raises an error that is caught (tem.py:125)"),
    _local(name="dp_clip_laplace(bounds 16 and 100, epsilon=1)", pair=(16.0, 100.0), claim=1.0,
           build=_build_column_call("trasgodp.numerical:dp_clip_laplace", epsilon=1.0,
                              lower_bound=16.0, upper_bound=100.0), relation=_LOCAL, true_loss=1.0,
           stated=_TRASGO.format("_laplace.py:41"), trials=10**6),
    _local(name="dp_clip_laplace_array(bounds 0 and 1, epsilon=10), integers", pair=(0, 1),
           build=_batched_call("trasgodp.numerical:dp_clip_laplace_array", "data", epsilon=10.0,
                       lower_bound=0, upper_bound=1), relation=_LOCAL, claim=10.0,
           stated=_TRASGO.format("_laplace.py:103"), true_loss=math.log(2 * math.exp(5) - 1),
           trials=10**6),
    _local(name="dp_clip_laplace_array(bounds 0 and 1, epsilon=1), a missing value", claim=1.0,
           build=_batched_call("trasgodp.numerical:dp_clip_laplace_array", "data", epsilon=1.0,
                       lower_bound=0.0, upper_bound=1.0), true_loss=math.inf, trials=20_000,
           pair=(0.0, math.nan), relation="the value is replaced by a missing one",
           stated=_TRASGO.format("_laplace.py:103"), reading="relation unclear",
           cause="a missing value passes clipping and noise (_laplace.py:128)"),
    _local(name="dp_clip_gaussian(bounds 0 and 1, epsilon=1)", pair=_ZERO_ONE, claim=1.0,
           delta=1e-3, build=_build_column_call("trasgodp.numerical:dp_clip_gaussian", epsilon=1.0,
                                          lower_bound=0.0, upper_bound=1.0), relation=_LOCAL,
           true_loss=_gaussian_loss(1 / math.sqrt(2 * math.log(1250)), 1e-3),
           stated=_TRASGO.format("_gaussian.py:42"), trials=10**6),
    _local(name="dp_clip_gaussian_array(bounds 0 and 1, epsilon=1, delta=0.1)", pair=_ZERO_ONE,
          build=_batched_call("trasgodp.numerical:dp_clip_gaussian_array", "data", epsilon=1.0,
          delta=0.1, lower_bound=0.0, upper_bound=1.0), claim=1.0, delta=0.1, relation=_LOCAL,
          true_loss=_gaussian_loss(1 / math.sqrt(2 * math.log(12.5)), 0.1),
          stated=_TRASGO.format("_gaussian.py:116"), trials=10**6),
    _local(name="dp_exponential(epsilon=5), 3 categories", pair=("a", "b"), claim=5.0,
           build=_build_column_call("trasgodp.categorical:dp_exponential", *"abc", epsilon=5.0),
           relation=_LOCAL, stated=_TRASGO.format("_exponential.py:38"), true_loss=2.5,
           trials=200_000),
    _local(name="dp_exponential_array(epsilon=1), a rare category", claim=1.0, true_loss=math.inf,
           build=_build_list_call("trasgodp.categorical:dp_exponential_array", epsilon=1.0),
           pair=(list("aaab"), list("aaaa")), relation=_LOCAL, trials=20_000,
           stated=_TRASGO.format("_exponential.py:82"),
           cause="the categories are those of the data, so that one which a single record has "
           "can show (_exponential.py:99)"),
    _local(name="dp_randomized_response_binary(epsilon=1)", pair=("a", "b"), claim=1.0,
           build=_build_column_call("trasgodp.categorical:dp_randomized_response_binary", *"ab",
                              epsilon=1.0),
           relation=_LOCAL, stated=_TRASGO.format("_randomized_response.py:39"), true_loss=1.0,
           trials=200_000),
    _local(name="dp_randomized_response_kary_array(epsilon=1), 4 categories", pair=("a", "b"),
          build=_batched_call("trasgodp.categorical:dp_randomized_response_kary_array", "data",
          *"abcd", epsilon=1.0), claim=1.0, true_loss=1.0, relation=_LOCAL,
          stated=_TRASGO.format("_randomized_response.py:209"), trials=200_000),
    _local(name="dp_randomized_response_kary_array(epsilon=1), a rare category", claim=1.0,
           build=_build_list_call("trasgodp.categorical:dp_randomized_response_kary_array",
                                 epsilon=1.0), pair=(list("abcd"), list("abcc")), relation=_LOCAL,
           true_loss=math.inf, stated=_TRASGO.format("_randomized_response.py:209"), trials=20_000,
           cause="the categories are those of the data, so that one which a single record has "
           "can show (_randomized_response.py:225)"),
    _local(name="metric_privacy(epsilon=0.01), default seed", true_loss=math.inf, claim=1.0,
           build=_location_dp("lat", "lon", new_seeds=False), pair=([[0.0, 0.0]], [[_NORTH, 0.0]]),
           trials=300, relation=_METRES, stated=_GEO, seconds=300.0,
           cause="the seed is 42 by default, so that the noise is the same in each call "
           "(_geo_metric_privacy.py:72 and 101)"),
    _local(name="metric_privacy(epsilon=0.01), new seeds, all columns", trials=300, claim=1.0,
          build=_location_dp("lat", "lon", "radius_m"), relation=_METRES, stated=_GEO,
          seconds=300.0, pair=([[0.0, 0.0]], [[_NORTH, 0.0]]), true_loss=math.inf, attack=lambda:
          import_object("dpcore.attacks:Threshold")(score=score_radius_against_distance),
          cause="the distance between the input and its output is released as a column "
          "(_geo_metric_privacy.py:113)"),
    _local(name="metric_privacy(epsilon=0.01), new seeds, without radius", trials=1_500, claim=1.0,
           build=_location_dp("lat", "lon"), pair=([[0.0, 0.0]], [[_NORTH, 0.0]]), relation=_METRES,
           stated=_GEO, seconds=300.0),
    _local(name="metric_privacy(epsilon=0.01), new seeds, two records", trials=300, claim=1.0,
           build=_location_dp("lat", "lon"), pair=([[0.0, 0.0]] * 2, [[0.0, 0.0], [_NORTH, 0.0]]),
           true_loss=math.inf, relation="one of two records is moved by 100 m", stated=_GEO,
           seconds=300.0, cause="records at one place have one noise "
           "(_geo_metric_privacy.py:111)"),
    _local(name="metric_privacy(epsilon=0.01), new seeds, near the pole", trials=300, claim=1.0,
           build=_location_dp("lat", "lon"), pair=([[90.0 - _NORTH, 0.0]], [[90.0, 0.0]]),
           relation=_METRES, stated=_GEO, seconds=300.0,
           cause="the longitude is divided by the cosine of the exact latitude "
           "(_geo_metric_privacy.py:58)"),
)  # fmt: skip
