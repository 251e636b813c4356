"""Audited mechanisms of database packages: smartnoise-sql, smartnoise-synth, tmlt-core.

Many audits use a query with GROUP BY on a table with many equal groups. The package adds
independent noise in each group. A single call therefore returns many outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from ...adapters.released import SQLQuery, TumultMeasurement
from .cases import Case, import_object

_STATED: Final = "PrivateReader.get_privacy_cost (sql/private_reader.py:202) of this query"
_DELTA: Final = 1 - (1 - 0.01) * (1 - 0.005)
"""Total delta of a query that publishes only groups above a threshold, if the package gets delta
0.01."""

_sql = partial(
    Case, package="smartnoise-sql", version="1.0.10", relation="the rows of one person are added",
    stated=_STATED, delta=_DELTA, release="the row of a group, or its absence", trials=5_000,
    seconds=600.0,
)  # fmt: skip


def _build_query(
    select: str, also: str = "", mechanism: str = "", **table: Any
) -> Callable[[], Callable[..., Any]]:
    """Return a function that builds a query at epsilon 1 and delta 0.01.

    Each group of the query gives one output.

    The input of the query is the list of rows of one group. A row is a pair of a person and a
    value. `also` is a further column of GROUP BY, `mechanism` is the noise mechanism for counts,
    and `table` contains options of the table.
    """

    def build() -> Callable[..., Any]:
        snsql, pandas = import_object("snsql"), import_object("pandas")
        width = select.count(" AS ")

        def ask(x: Any, size: int, rng: Any) -> Any:
            outputs = np.full((size, width), np.nan)
            if not x:
                return outputs
            persons, values = map(np.asarray, zip(*x, strict=True))
            groups = np.repeat(np.arange(size), len(x))
            columns = {"g": groups, "value": np.tile(values, size)}
            if not table.get("row_privacy"):
                columns["person"] = groups * 100 + np.tile(persons, size)
            privacy = snsql.Privacy(epsilon=1.0, delta=0.01)
            if mechanism:
                stat = import_object("snsql.sql.privacy:Stat")
                kind = import_object(f"snsql.sql._mechanisms:Mechanism.{mechanism}")
                privacy.mechanisms.map |= {stat.count: kind, stat.threshold: kind}
            reader = snsql.from_df(
                pandas.DataFrame(columns), privacy=privacy, metadata=_describe_table(**table)
            )
            query = f"SELECT g, {select} FROM a.b GROUP BY g{also}"
            for group, *values in reader.execute(query)[1:]:
                outputs[int(group)] = values
            return outputs

        return ask

    return build


def _describe_table(lower: float = 0.0, upper: float = 1.0, **options: Any) -> dict[str, Any]:
    """Return the metadata of the table a.b, which describes its columns."""
    value = {"type": "float", "lower": lower, "upper": upper}
    columns: dict[str, Any] = {"g": {"type": "int"}, "value": value}
    if not options.get("row_privacy"):
        columns["person"] = {"type": "int", "private_id": True}
    return {"": {"a": {"b": columns | options}}}


def _make_private_sql_reader(frame: Any) -> Any:
    """Return a private SQL reader of a data frame, at epsilon 1 and delta 0.01."""
    snsql = import_object("snsql")
    privacy = snsql.Privacy(epsilon=1.0, delta=0.01)
    return snsql.from_df(frame, privacy=privacy, metadata=_describe_table())


def _ungrouped_query() -> SQLQuery:
    """Build a query without groups. `SQLQuery` is dpcore's adapter for the package."""
    pandas = import_object("pandas")

    def make_reader(x: Any) -> Any:
        frame = pandas.DataFrame(list(x), columns=["person", "value"])
        return _make_private_sql_reader(frame.assign(g=0))

    return SQLQuery(make_reader, "SELECT COUNT(*) AS n FROM a.b")


def _estimate_bounds(x: Any) -> Any:
    bounds = import_object("snsql.sql._mechanisms.approx_bounds:approx_bounds")(x, 1.0)
    return [math.nan if bound is None else bound for bound in bounds]


def _list_persons(count: int, value: float = 1.0) -> list[tuple[int, float]]:
    return [(person, value) for person in range(count)]


_FEW: Final = (_list_persons(4), _list_persons(5))
_VALUES: Final = ([3.0] * 40 + [100.0] * 21, [3.0] * 40 + [100.0] * 22)

_SQL: Final = (
    _sql(name="SELECT COUNT(*) GROUP BY", build=_build_query("COUNT(*) AS n"), pair=_FEW,
         claim=2.0),
    _sql(name="SELECT COUNT(DISTINCT person) GROUP BY", pair=_FEW, claim=1.0,
         build=_build_query("COUNT(DISTINCT person) AS n")),
    _sql(name="SELECT COUNT(*) GROUP BY, max_ids=3, a person with 3 rows",
         build=_build_query("COUNT(*) AS n", max_ids=3), pair=(_list_persons(9), _list_persons(9) +
         [(9, 1.0)] * 3), claim=2.0),
    _sql(name="SELECT COUNT(*) GROUP BY, max_ids=1, a person with 9 rows", claim=2.0,
         build=_build_query("COUNT(*) AS n"), pair=(_list_persons(4), _list_persons(4) + [(4, 1.0)]
         * 9)),
    _sql(name="SELECT COUNT(*) GROUP BY, row_privacy", pair=_FEW, claim=1.0,
         build=_build_query("COUNT(*) AS n", row_privacy=True), relation="one row is added"),
    _sql(name="SELECT COUNT(*) GROUP BY, Gaussian mechanism", pair=(_list_persons(9),
         _list_persons(10)), build=_build_query("COUNT(*) AS n", mechanism="gaussian"), claim=2.0,
         delta=1 - (1 - 0.005) * (1 - 0.01) ** 2),
    _sql(name="SELECT COUNT(*) GROUP BY, censor_dims=False, a new group", pair=([],
         _list_persons(1)), build=_build_query("COUNT(*) AS n", censor_dims=False), claim=1.0,
         delta=0.005, reading="known misuse", true_loss=math.inf,
         cause="the groups of the data are listed; the documentation warns of this option "
         "(sql/private_reader.py:771)"),
    _sql(name="SELECT SUM(value) GROUP BY, bounds (0, 1)", claim=2.0, pair=_FEW,
         build=_build_query("SUM(value) AS s")),
    _sql(name="SELECT SUM(value) GROUP BY, bounds (-10, 5)", claim=2.0,
         build=_build_query("SUM(value) AS s", lower=-10.0, upper=5.0),
         pair=(_list_persons(4, 0.0), [*_list_persons(4, 0.0), (4, -99.0)])),
    _sql(name="SELECT SUM(value) GROUP BY, a missing value", claim=2.0,
         build=_build_query("SUM(value) AS s"), pair=(_list_persons(4), [*_list_persons(4), (4,
         math.nan)])),
    _sql(name="SELECT AVG(value) GROUP BY, bounds (0, 1)", claim=3.0,
         build=_build_query("AVG(value) AS m"), pair=(_list_persons(4, 0.0), [*_list_persons(4,
         0.0), (4, 1.0)])),
    _sql(name="SELECT VAR(value) GROUP BY, bounds (-2, 2)", claim=4.0,
         build=_build_query("VAR(value) AS v", lower=-2.0, upper=2.0),
         pair=(_list_persons(4, 0.0), [*_list_persons(4, 0.0), (4, 2.0)])),
    _sql(name="SELECT SUM(value) GROUP BY value, values above the upper bound", claim=2.0,
         build=_build_query("SUM(value) AS s", also=", value"), trials=2_000,
         pair=(_list_persons(9, 1000.0), _list_persons(10, 1000.0)),
         cause="a column of GROUP BY is not clamped, and its sum is of the values that are not "
         "clamped (sql/private_rewriter.py:289-292)"),
    _sql(name="approx_bounds(vals, epsilon=1)", build=lambda: _estimate_bounds, claim=1.0,
         delta=0.0, pair=_VALUES, relation="one value is added", trials=1_000,
         stated="sql/_mechanisms/approx_bounds.py:11, docstring", release="the bounds"),
    _sql(name="SELECT COUNT(*)", build=_ungrouped_query, pair=_FEW, claim=2.0, trials=500,
         slow=True, release="the rows of the result"),
)  # fmt: skip

# -------------------------------------------------------------------------- smartnoise-synth

_synth = partial(
    Case, package="smartnoise-synth", version="1.0.8", relation="one row is replaced", claim=1.0,
    seconds=300.0,
)  # fmt: skip


def _build_transformer_fit(kind: str, **options: Any) -> Callable[[], Callable[[Any], Any]]:
    """Return a function that builds a column transformer at epsilon 1.

    The output is what the transformer has learned from the column, such as its bounds.
    """

    def build() -> Callable[[Any], Any]:
        make = import_object(f"snsynth.transform:{kind}")

        def fit(x: Any) -> Any:
            transformer = make(epsilon=1.0, **options)
            try:
                transformer.fit(list(x))
            except ValueError:
                return [math.nan, math.nan]
            names = ("mean", "var") if kind == "StandardScaler" else ("fit_lower", "fit_upper")
            return [float(getattr(transformer, name)) for name in names]

        return fit

    return build


def _build_mwem(**options: Any) -> Callable[[], Callable[[Any], Any]]:
    """Return a function that builds the mechanism MWEM, which generates synthetic data.

    The output is the histogram of the synthetic data.
    """

    def build() -> Callable[[Any], Any]:
        make = import_object("snsynth.mwem:MWEMSynthesizer")
        no_transformer = import_object("snsynth.transform.table:NoTransformer")

        def fit(x: Any) -> Any:
            synthesizer = make(epsilon=1.0, **options)
            synthesizer.fit(np.array(x), transformer=no_transformer())
            return np.ravel(synthesizer.synthetic_histograms[0][0])

        return fit

    return build


_TABLE: Final = [[0, 0]] * 4 + [[1, 1]] * 4
_MOVED: Final = [[0, 0]] * 5 + [[1, 1]] * 3
_EPSILON: Final = "mwem.py:205, docstring: privacy budget"

_SYNTH: Final = (
    _synth(name="StandardScaler(lower=0, upper=1, epsilon=1)", trials=500,
           build=_build_transformer_fit("StandardScaler", lower=0.0, upper=1.0),
           pair=([0.5] * 10, [0.5] * 9 + [1.0]), stated="transform/standard.py, docstring: epsilon",
           cause="the noise is for a symmetric distance of 1 between data of the same size, which "
           "no two of them have: it is that of rounding alone (transform/standard.py:75-76)"),
    _synth(name="MinMaxTransformer(epsilon=1)", build=_build_transformer_fit("MinMaxTransformer"),
           pair=_VALUES, relation="one row is added", trials=1_000,
           stated="transform/minmax.py, docstring: epsilon"),
    _synth(name="MWEMSynthesizer(epsilon=1), a row replaced", build=_build_mwem(),
           pair=(_TABLE, _MOVED), stated=_EPSILON, release="the histogram of synthetic data",
           trials=2_000, reading="relation unclear"),
    _synth(name="MWEMSynthesizer(epsilon=1, measure_only=True), a row replaced", trials=2_000,
           build=_build_mwem(measure_only=True, iterations=1, q_count=1, marginal_width=2),
           pair=(_TABLE, _MOVED), stated=_EPSILON, release="the histogram of synthetic data",
           reading="relation unclear",
           cause="a replaced row changes two counts of a marginal, whose noise is for one "
           "(mwem.py:510)"),
    _synth(name="MWEMSynthesizer(epsilon=1), a row added", build=_build_mwem(),
           pair=(_TABLE, [*_TABLE, [1, 1]]), relation="one row is added", stated=_EPSILON,
           release="the histogram of synthetic data", trials=500, reading="relation unclear",
           true_loss=math.inf,
           cause="the sum of the histogram is the number of rows (mwem.py:535)"),
)  # fmt: skip

# --------------------------------------------------------------------------------- tmlt-core

_tumult = partial(
    Case, package="tmlt-core", version="0.20.0", relation="numbers at distance 1",
    pair=(0.0, 1.0), trials=10_000, seconds=300.0,
)  # fmt: skip
_NOISE: Final = "measurements/noise_mechanisms.py:{}, privacy_function"


def _build_noise(name: str, *arguments: Any, distance: Any = 1) -> Callable[[], Any]:
    """Return a function that builds a mechanism that adds noise to numbers."""

    def build() -> Any:
        floats = import_object("tmlt.core.domains.numpy_domains:NumpyFloatDomain")
        domain = [floats()] if name in ("AddLaplaceNoise", "AddGaussianNoise") else []
        make = import_object(f"tmlt.core.measurements.noise_mechanisms:{name}")
        return TumultMeasurement(make(*domain, *map(_to_tumult_exact_number, arguments)), distance)

    return build


def _to_tumult_exact_number(number: str) -> Any:
    return import_object("tmlt.core.utils.exact_number:ExactNumber").from_float(
        float(number), round_up=True
    )


def _build_quantile(quantile: float, integers: bool = False) -> Callable[[], Callable[[Any], Any]]:
    """Return a function that builds a private quantile at epsilon 1, for values in [0, 1]."""

    def build() -> Callable[[Any], Any]:
        pandas, root = import_object("pandas"), "tmlt.core.domains"
        kind = "NumpyIntegerDomain" if integers else "NumpyFloatDomain"
        domain = import_object(f"{root}.pandas_domains:PandasSeriesDomain")(
            import_object(f"{root}.numpy_domains:{kind}")()
        )
        place = "tmlt.core.measurements.pandas_measurements.series:NoisyQuantile"
        measure = import_object("tmlt.core.measures:PureDP")()
        upper = 10 if integers else 1.0
        measurement = import_object(place)(domain, measure, quantile, 0, upper, 1)
        return lambda x: measurement(pandas.Series(x))

    return build


def _pandas_series_noise() -> Callable[[Any], Any]:
    pandas, root = import_object("pandas"), "tmlt.core.measurements"
    noise = import_object(f"{root}.noise_mechanisms:AddGeometricNoise")(2)
    place = f"{root}.pandas_measurements.series:AddNoiseToSeries"
    measurement = import_object(place)(noise)
    return lambda x: measurement(pandas.Series(x)).to_numpy()


def _compose_noise() -> Callable[[Any], Any]:
    """Build the composition of two mechanisms that add noise."""
    root, noises = "tmlt.core.measurements", "tmlt.core.measurements.noise_mechanisms"
    noise = import_object(f"{noises}:AddGeometricNoise")
    measurement = import_object(f"{root}.composition:Composition")([noise(2), noise(2)])
    return lambda x: list(measurement(x))


_TUMULT: Final = (
    _tumult(name="AddLaplaceNoise(scale=1)", build=_build_noise("AddLaplaceNoise", "1"), claim=1.0,
            stated=_NOISE.format(77), true_loss=1.0),
    _tumult(name="AddLaplaceNoise(scale=.2)", build=_build_noise("AddLaplaceNoise", ".2"),
          claim=5.0, stated=_NOISE.format(77), true_loss=5.0),
    _tumult(name="AddGeometricNoise(alpha=1)", build=_build_noise("AddGeometricNoise", "1"),
          claim=1.0, pair=(0, 1), stated=_NOISE.format(219), relation="counts that differ by 1",
          true_loss=1.0),
    _tumult(name="AddGeometricNoise(alpha=20)", build=_build_noise("AddGeometricNoise", "20"),
            claim=0.5, pair=(0, 10), stated=_NOISE.format(219), true_loss=0.5,
            relation="counts that differ by 10"),
    _tumult(name="AddDiscreteGaussianNoise(sigma_squared=1)", pair=(0, 1), delta=0.01,
            build=_build_noise("AddDiscreteGaussianNoise", "1"), stated=_NOISE.format(385),
            claim=0.5 + math.sqrt(2 * math.log(100)), relation="counts that differ by 1"),
    _tumult(name="AddGaussianNoise(sigma_squared=1)", delta=0.01, stated=_NOISE.format(529),
            build=_build_noise("AddGaussianNoise", "1"), claim=0.5 + math.sqrt(2 * math.log(100))),
    _tumult(name="AddGaussianNoise(sigma_squared=1), the last bits", delta=0.01,
            build=_build_noise("AddGaussianNoise", "1"), claim=0.5 + math.sqrt(2 * math.log(100)),
            stated=_NOISE.format(529), true_loss=math.inf,
            attack=lambda: import_object("dpcore.attacks:FloatLattice")(),
            cause="the noise, which is sampled exactly, is added in floating-point arithmetic: its "
            "last bits are those of the value (measurements/noise_mechanisms.py:589)"),
    _tumult(name="AddNoiseToSeries(AddGeometricNoise(2))", build=_pandas_series_noise, claim=1.0,
            pair=([0, 0], [1, 1]), relation="series at l1 distance 2", true_loss=1.0,
            stated="measurements/pandas_measurements/series.py:288, privacy_function"),
    _tumult(name="Composition of two AddGeometricNoise(2)", build=_compose_noise, claim=1.0,
            pair=(0, 1), relation="counts that differ by 1", true_loss=1.0,
            stated="measurements/composition.py, privacy_function"),
    _tumult(name="NoisyQuantile(.5, 0, 1, epsilon=1)", build=_build_quantile(0.5), claim=1.0,
            pair=([0.05] * 4, [0.05] * 4 + [1.0]), relation="one row is added", trials=20_000,
            stated="measurements/pandas_measurements/series.py:176, privacy_function"),
    _tumult(name="NoisyQuantile(.9, 0, 1, epsilon=1)", build=_build_quantile(0.9), claim=1.0,
            pair=([0.05] * 4, [0.05] * 4 + [1.0]), relation="one row is added", trials=20_000,
            stated="measurements/pandas_measurements/series.py:176, privacy_function"),
    _tumult(name="NoisyQuantile(.5, 0, 10, epsilon=1), integers outside of the bounds",
            build=_build_quantile(0.5, True), claim=1.0, relation="one row is added",
            pair=([-5] + [1] * 4, [-5] + [1] * 4 + [20]), trials=20_000,
            stated="measurements/pandas_measurements/series.py:176, privacy_function"),
)  # fmt: skip

CASES: tuple[Case, ...] = (*_SQL, *_SYNTH, *_TUMULT)
