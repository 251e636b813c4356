"""Audited mechanisms of opendp: measurements, combinators, and chains with noise."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from ...adapters.opendp import OpenDP
from .cases import Case, import_object

_case = partial(Case, package="opendp", version="0.16.0", trials=10_000)

_DOCS: Final = "docs.rs/opendp/0.16.0/opendp/{}.html, and the map of the measurement at {}"
_FEATURES: Final = ("contrib", "honest-but-curious", "idealized-numerics")


def _make_case(
    name: str, page: str, d_in: Any, make: Callable[[Any], Any], pair: tuple[Any, Any],
    **fields: Any,
) -> Case:  # fmt: skip
    """Describe (as a `Case`) a measurement (private mechanism) built with `opendp.prelude`."""

    def build() -> Any:
        prelude = import_object("opendp.prelude")
        prelude.enable_features(*_FEATURES)
        return make(prelude)

    facts: dict[str, Any] = {"claim": 1.0, "relation": _describe_relation(d_in)} | fields
    return _case(name=name, build=build, pair=pair, stated=_DOCS.format(page, d_in), **facts)


_noise = partial(_make_case, relation="numbers, or vectors in the norm, at distance 1")
_records = partial(_make_case, relation="one record is added")
_values = partial(_make_case, relation="any two values")


def _describe_relation(d_in: Any) -> str:
    return f"distance {d_in} in the input metric of the measurement"


def _make_atom_domain(dp: Any, kind: Any) -> Any:
    """Return the domain of one value of type `kind`, without missing values."""
    return dp.atom_domain(T=kind, **({"nan": False} if kind in (float, "f32") else {}))


def _number_space(dp: Any, kind: Any = float) -> tuple[Any, Any]:
    """Return the domain and the metric of one number."""
    return _make_atom_domain(dp, kind), dp.absolute_distance(T=kind)


def _vector_space(dp: Any, metric: str, kind: Any = float, **options: Any) -> tuple[Any, Any]:
    """Return the domain and the metric of a vector of numbers."""
    return dp.vector_domain(_make_atom_domain(dp, kind)), getattr(dp, metric)(T=kind, **options)


def _row_space(dp: Any, kind: Any = float, **options: Any) -> tuple[Any, Any]:
    """Return the domain and the metric of data sets.

    Neighbouring data sets differ by one added or removed record.
    """
    return dp.vector_domain(_make_atom_domain(dp, kind), **options), dp.symmetric_distance()


def _dict_space(dp: Any, metric: str) -> tuple[Any, Any]:
    """Return the domain and the metric of a dict of counts with names as keys."""
    names = dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T=int))
    return names, getattr(dp, metric)(dp.absolute_distance(T=int))


def _zcdp_to_dp(dp: Any, measurement: Any, delta: float = 0.01) -> Any:
    return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(measurement), delta=delta)


def _list_counts_or_zeros(release: dict[str, int]) -> list[int]:
    """Return the released counts. The count of a name that is not released is 0."""
    return [release.get("a", 0), release.get("b", 0)]


def _make_laplace(dp: Any) -> Any:
    """Make a Laplace mechanism on one number, with epsilon 0.5."""
    return dp.m.make_laplace(*_number_space(dp), scale=2.0)


def _make_two_queries(dp: Any) -> Callable[[Any], list[float]]:
    query = _make_laplace(dp)
    return lambda queryable: [queryable(query), queryable(query)]


def _noisy_sum(dp: Any, kind: Any, bounds: tuple[Any, Any]) -> Any:
    """Make a mechanism that clamps records, sums them and adds noise.

    The scale of the noise is the upper bound in `bounds`.
    """
    scaled = dp.m.then_laplace(scale=float(bounds[1]))
    return _row_space(dp, kind) >> dp.t.then_clamp(bounds) >> dp.t.then_sum() >> scaled


def _compose_queries(dp: Any, *, fully: bool) -> Any:
    """Make an interactive composition of two queries, and run both queries."""
    space, measure = _number_space(dp), dp.max_divergence()
    if fully:
        odometer = dp.c.make_fully_adaptive_composition(*space, measure)
        measurement = dp.c.make_privacy_filter(odometer, d_in=1.0, d_out=1.0)
    else:
        measurement = dp.c.make_adaptive_composition(*space, measure, d_in=1.0, d_mids=[0.5, 0.5])
    return OpenDP(measurement, ask=_make_two_queries(dp))


def _make_sampled_sum(dp: Any) -> Callable[[list[float]], float]:
    """Make the noisy sum of a random sample of 5 of 50 records.

    The sample is drawn without replacement, as amplification by sampling requires.
    """
    chain = dp.t.make_sum(dp.vector_domain(dp.atom_domain(bounds=(0.0, 1.0)), size=5),
                          dp.symmetric_distance()) >> dp.m.then_laplace(scale=1.0)  # fmt: skip
    measurement = dp.c.make_population_amplification(chain, population_size=50)
    return lambda x: measurement(random.SystemRandom().sample(list(x), 5))


def _build_query(dp: Any, metric: str) -> Callable[[list[float]], Any]:
    """Return a function from a data set to the output of a query of opendp's `Context`."""

    def answer(x: list[float]) -> Any:
        context = dp.Context.compositor(
            data=list(x), privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=dp.loss_of(epsilon=1.0), split_evenly_over=1, domain=_row_space(dp)[0],
        )  # fmt: skip
        query = context.query()
        steps = query.count() if metric == "count" else query.clamp((0.0, 1.0)).sum()
        return steps.laplace().release()

    return answer


_zero_one: Final = (0.0, 1.0)
_NAMES: Final = ({"a": 5}, {"a": 5, "b": 1})
_SHIFTED: Final = ([1.0] * 5, [2.0] + [0.0] * 4)
_MORE: Final = ([0.0] * 5, [0.0] * 5 + [1.0])
_THRESHOLD: Final[dict[str, Any]] = {
    "trials": 20_000, "true_loss": math.inf, "disclosure": "https://github.com/opendp/opendp/issues/2922",
    "cause": "a count equal to the threshold is released (rust/src/measurements/noise_threshold/"
    "mod.rs:114), but delta is the probability of a larger one (rust/src/accuracy/tail_bounds/"
    "mod.rs:62 and 89)",
}  # fmt: skip
_RHO_HALF: Final[dict[str, Any]] = {"claim": 2.753049548325312, "delta": 0.01}

_EXACT: Final = math.log(3.0)
"""Privacy loss of randomized response that gives the true answer with probability 0.75."""

CASES: tuple[Case, ...] = (
    _noise("make_laplace(float, scale=1)", "measurements/fn.make_laplace", 1.0,
           lambda dp: dp.m.make_laplace(*_number_space(dp), scale=1.0), _zero_one, true_loss=1.0),
    _noise("make_laplace(float, scale=0.1)", "measurements/fn.make_laplace", 1.0,
           lambda dp: dp.m.make_laplace(*_number_space(dp), scale=0.1), _zero_one, claim=10.0,
           true_loss=10.0),
    _noise("make_laplace(float, scale=10)", "measurements/fn.make_laplace", 1.0,
           lambda dp: dp.m.make_laplace(*_number_space(dp), scale=10.0), _zero_one, claim=0.1,
           true_loss=0.1),
    _make_case("make_laplace(float, scale=1, k=0)", "measurements/fn.make_laplace", 1.2, lambda dp:
          dp.m.make_laplace(*_number_space(dp), scale=1.0, k=0), (0.4, 1.6), claim=2.2,
          true_loss=2.0),
    _noise("make_laplace(f32, scale=1)", "measurements/fn.make_laplace", 1.0, lambda dp:
          dp.m.make_laplace(*_number_space(dp, "f32"), scale=1.0), _zero_one, true_loss=1.0),
    _noise("make_laplace(int, scale=1)", "measurements/fn.make_laplace", 1,
           lambda dp: dp.m.make_laplace(*_number_space(dp, int), scale=1.0), (0, 1), true_loss=1.0),
    _noise("make_laplace(vector of floats, scale=1)", "measurements/fn.make_laplace", 1.0,
           lambda dp: dp.m.make_laplace(*_vector_space(dp, "l1_distance"), scale=1.0),
           ([0.0, 0.0], [1.0, 0.0]), true_loss=1.0),
    _make_case("make_laplace(vector of ints, scale=1)", "measurements/fn.make_laplace", 2,
             lambda dp: dp.m.make_laplace(*_vector_space(dp, "l1_distance", int), scale=1.0),
             ([0, 0], [1, 1]), claim=2.0, true_loss=2.0),
    _noise("make_geometric(int, scale=1, bounds=(0, 3))", "measurements/fn.make_geometric", 1,
          lambda dp: dp.m.make_geometric(*_number_space(dp, int), scale=1.0, bounds=(0, 3)), (0,
          1), true_loss=1.0),
    _noise("make_geometric(int, scale=1)", "measurements/fn.make_geometric", 1, lambda dp:
          dp.m.make_geometric(*_number_space(dp, int), scale=1.0), (0, 1), true_loss=1.0),
    _noise("make_gaussian(float, scale=1), delta 0.01", "measurements/fn.make_gaussian", 1.0,
           lambda dp: _zcdp_to_dp(dp, dp.m.make_gaussian(*_number_space(dp), scale=1.0)), _zero_one,
           **_RHO_HALF),
    _noise("make_gaussian(int, scale=1), delta 0.01", "measurements/fn.make_gaussian", 1, lambda
          dp: _zcdp_to_dp(dp, dp.m.make_gaussian(*_number_space(dp, int), scale=1.0)), (0, 1),
          **_RHO_HALF),
    _noise("make_gaussian(vector of floats, scale=1), delta 0.01", "measurements/fn.make_gaussian",
           1.0, lambda dp: _zcdp_to_dp(
               dp, dp.m.make_gaussian(*_vector_space(dp, "l2_distance"), scale=1.0)),
           ([0.0, 0.0], [0.6, 0.8]), **_RHO_HALF),
    _noise("make_noise(float, max_divergence, scale=1)", "measurements/fn.make_noise", 1.0, lambda
          dp: dp.m.make_noise(*_number_space(dp), dp.max_divergence(), scale=1.0), _zero_one,
          true_loss=1.0),
    _make_case("make_laplace_threshold(scale=1, threshold=4)",
             "measurements/fn.make_laplace_threshold", (1, 1, 1), lambda dp: OpenDP(
                 dp.m.make_laplace_threshold(*_dict_space(dp, "l01inf_distance"), scale=1.0,
                                             threshold=4), ask=_list_counts_or_zeros),
             _NAMES, delta=0.01338980493269848, **_THRESHOLD),
    _make_case("make_laplace_threshold(scale=1, threshold=4), a count that is released",
             "measurements/fn.make_laplace_threshold", (1, 1, 1), lambda dp: OpenDP(
                 dp.m.make_laplace_threshold(*_dict_space(dp, "l01inf_distance"), scale=1.0,
                                             threshold=4), ask=_list_counts_or_zeros),
             ({"a": 5}, {"a": 6}), delta=0.01338980493269848),
    _make_case("make_gaussian_threshold(scale=1, threshold=4), delta 0.01",
          "measurements/fn.make_gaussian_threshold", (1, 1, 1), lambda dp: OpenDP(_zcdp_to_dp(dp,
          dp.m.make_gaussian_threshold(*_dict_space(dp, "l02inf_distance"), scale=1.0,
          threshold=4)), ask=_list_counts_or_zeros), ({"a": 5}, {"a": 6}), claim=2.808702222893905,
          delta=0.01),
    _make_case("make_gaussian_threshold(scale=2, threshold=5), delta 0.026",
             "measurements/fn.make_gaussian_threshold", (1, 1, 1), lambda dp: OpenDP(
                 _zcdp_to_dp(dp, dp.m.make_gaussian_threshold(*_dict_space(dp, "l02inf_distance"),
                                                             scale=2.0, threshold=5), 0.026),
                 ask=_list_counts_or_zeros),
             ({}, {"b": 1}), claim=1.3467184599422242, delta=0.026, **_THRESHOLD),
    _noise("make_canonical_noise(d_in=1, d_out=(1, 0.01))", "measurements/fn.make_canonical_noise",
          1.0, lambda dp: dp.m.make_canonical_noise(*_number_space(dp), d_in=1.0, d_out=(1.0,
          0.01)), _zero_one, delta=0.01, true_loss=1.0),
    _noise("make_canonical_noise(d_in=1, d_out=(1, 0))", "measurements/fn.make_canonical_noise",
          1.0, lambda dp: dp.m.make_canonical_noise(*_number_space(dp), d_in=1.0, d_out=(1.0,
          0.0)), _zero_one, true_loss=1.0),
    _noise("make_noisy_max(max_divergence, scale=2)", "measurements/fn.make_noisy_max", 1.0,
           lambda dp: dp.m.make_noisy_max(
               *_vector_space(dp, "linf_distance"), dp.max_divergence(), scale=2.0),
           ([1.0, 2.0], [2.0, 1.0])),
    _noise("make_noisy_max(max_divergence, scale=2), 5 candidates",
           "measurements/fn.make_noisy_max", 1.0, lambda dp: dp.m.make_noisy_max(
               *_vector_space(dp, "linf_distance"), dp.max_divergence(), scale=2.0), _SHIFTED),
    _noise("make_noisy_max(max_divergence, scale=2, negate=True)",
           "measurements/fn.make_noisy_max", 1.0, lambda dp: dp.m.make_noisy_max(
               *_vector_space(dp, "linf_distance"), dp.max_divergence(), scale=2.0, negate=True),
           _SHIFTED),
    _noise("make_noisy_max(monotonic metric, max_divergence, scale=1)",
           "measurements/fn.make_noisy_max", 1.0, lambda dp: dp.m.make_noisy_max(
               *_vector_space(dp, "linf_distance", monotonic=True), dp.max_divergence(), scale=1.0),
           ([0.0, 0.0], [1.0, 0.0])),
    _noise("make_noisy_max(zero_concentrated_divergence, scale=2), delta 0.01",
           "measurements/fn.make_noisy_max", 1.0, lambda dp: _zcdp_to_dp(dp, dp.m.make_noisy_max(
               *_vector_space(dp, "linf_distance"), dp.zero_concentrated_divergence(), scale=2.0)),
           _SHIFTED, claim=1.128931082901368, delta=0.01),
    _noise("make_report_noisy_max_gumbel(scale=2)", "measurements/fn.make_report_noisy_max_gumbel",
           1.0, lambda dp: dp.m.make_report_noisy_max_gumbel(
               *_vector_space(dp, "linf_distance"), scale=2.0), _SHIFTED),
    _noise("make_report_noisy_max_gumbel(scale=2, optimize='min')",
           "measurements/fn.make_report_noisy_max_gumbel", 1.0,
           lambda dp: dp.m.make_report_noisy_max_gumbel(
               *_vector_space(dp, "linf_distance"), scale=2.0, optimize="min"), _SHIFTED),
    _noise("make_noisy_top_k(max_divergence, k=2, scale=4)", "measurements/fn.make_noisy_top_k",
           1.0, lambda dp: dp.m.make_noisy_top_k(
               *_vector_space(dp, "linf_distance"), dp.max_divergence(), k=2, scale=4.0),
           ([1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0])),
    _records("make_private_quantile(max_divergence, 2 candidates, alpha=0.5, scale=1)",
             "measurements/fn.make_private_quantile", 1, lambda dp: dp.m.make_private_quantile(
                 *_row_space(dp), dp.max_divergence(), candidates=[0.4, 0.6], alpha=0.5, scale=1.0),
             ([0.5] * 4, [0.0] + [0.5] * 4)),
    _records("make_private_quantile(max_divergence, 2 candidates, alpha=0.1, scale=1)",
             "measurements/fn.make_private_quantile", 1, lambda dp: dp.m.make_private_quantile(
                 *_row_space(dp), dp.max_divergence(), candidates=[0.4, 0.6], alpha=0.1, scale=1.0),
             ([0.5] * 2 + [0.9] * 9, [0.0] + [0.5] * 2 + [0.9] * 9), claim=1.8),
    _make_case("make_private_quantile(5 records, max_divergence, alpha=0.5, scale=1)",
             "measurements/fn.make_private_quantile", 2, lambda dp: dp.m.make_private_quantile(
                 *_row_space(dp, size=5), dp.max_divergence(), candidates=[0.4, 0.6], alpha=0.5,
                 scale=1.0), ([0.9] + [0.5] * 4, [0.0] + [0.5] * 4), claim=2.0),
    _values("make_randomized_response(3 categories, prob=0.7)",
            "measurements/fn.make_randomized_response", 1,
            lambda dp: dp.m.make_randomized_response(["a", "b", "c"], prob=0.7), ("a", "b"),
            claim=1.5404450409471488, true_loss=math.log(0.7 / 0.15)),
    _values("make_randomized_response_bool(prob=0.75)",
            "measurements/fn.make_randomized_response_bool", 1,
            lambda dp: dp.m.make_randomized_response_bool(prob=0.75), (True, False),
            claim=1.0986122886681098, true_loss=_EXACT),
    _values("make_randomized_response_bool(prob=0.75, constant_time=True)",
            "measurements/fn.make_randomized_response_bool", 1,
            lambda dp: dp.m.make_randomized_response_bool(prob=0.75, constant_time=True),
            (True, False), claim=1.0986122886681098, true_loss=_EXACT),
    _make_case("make_randomized_response_bitvec(max_weight=1, f=0.75)",
             "measurements/fn.make_randomized_response_bitvec", 1, lambda dp: OpenDP(
                 dp.m.make_randomized_response_bitvec(
                     dp.bitvector_domain(max_weight=1), dp.discrete_distance(), f=0.75), ask=list),
             (b"\x80", b"\x40"), claim=1.0216512475319817, true_loss=2 * math.log(1.25 / 0.75)),
    _make_case("make_alp_queryable(scale=1, total_limit=24, value_limit=24)",
             "measurements/fn.make_alp_queryable", (1, 1, 1), lambda dp: OpenDP(
                 dp.m.make_alp_queryable(*_dict_space(dp, "l01inf_distance"), scale=1.0,
                                         total_limit=24, value_limit=24), ask=lambda ask: ask("a")),
             ({"a": 5}, {"a": 6})),
    _noise("make_composition of two make_laplace(scale=2)", "combinators/fn.make_composition", 1.0,
          lambda dp: dp.c.make_composition([_make_laplace(dp), _make_laplace(dp)]), _zero_one,
          true_loss=1.0),
    _noise("make_adaptive_composition(d_mids=[0.5, 0.5]), two queries",
          "combinators/fn.make_adaptive_composition", 1.0, lambda dp: _compose_queries(dp,
          fully=False), _zero_one, true_loss=1.0, trials=5_000),
    _noise("make_privacy_filter of make_fully_adaptive_composition, two queries",
           "combinators/fn.make_privacy_filter", 1.0, lambda dp: _compose_queries(dp, fully=True),
           _zero_one, true_loss=1.0, trials=5_000),
    _noise("make_select_private_candidate(threshold=1, stop_probability=0.1)",
           "combinators/fn.make_select_private_candidate", 1.0, lambda dp: OpenDP(
               dp.c.make_select_private_candidate(
                   dp.c.make_composition([_make_laplace(dp), _make_laplace(dp)]), threshold=1.0,
                   stop_probability=0.1), ask=lambda release: release or [-99.0, -99.0]),
           _zero_one, claim=2.0),
    _make_case("make_population_amplification(population_size=50), a sample of 5",
             "combinators/fn.make_population_amplification", 2, _make_sampled_sum,
             ([0.0] * 50, [0.0] * 49 + [1.0]), claim=0.15856507874043038, trials=30_000),
    _records("make_count, then_laplace(scale=1)", "transformations/fn.make_count", 1,
             lambda dp: _row_space(dp) >> dp.t.then_count() >> dp.m.then_laplace(scale=1.0), _MORE,
             true_loss=1.0),
    _records("make_sum of floats, clamped to (0, 1), then_laplace(scale=1)",
             "transformations/fn.make_sum", 1, lambda dp: _noisy_sum(dp, float, (0.0, 1.0)), _MORE,
             claim=1.000000009313226, true_loss=1.0),
    _records("make_sum of ints, clamped to (0, 1), then_laplace(scale=1)",
             "transformations/fn.make_sum", 1, lambda dp: _noisy_sum(dp, int, (0, 1)),
             ([0] * 5, [0] * 5 + [1]), true_loss=1.0),
    _records("make_sum of ints, clamped to (0, 2**28), then_laplace(scale=2**28)",
             "transformations/fn.make_sum", 1, lambda dp: _noisy_sum(dp, int, (0, 2**28)),
             ([2**28] * 7, [2**28] * 8), true_loss=1.0),
    _make_case("make_mean of 5 records, clamped to (0, 1), then_laplace(scale=0.4)",
          "transformations/fn.make_mean", 2, lambda dp: _row_space(dp) >> dp.t.then_clamp((0.0,
          1.0)) >> dp.t.then_resize(5, 0.5) >> dp.t.then_mean() >> dp.m.then_laplace(scale=0.4),
          ([0.0] * 5, [0.0] * 4 + [1.0]), claim=1.0000000000000033, true_loss=0.5),
    _make_case("make_variance of 5 records, clamped to (0, 1), then_laplace(scale=0.4)",
             "transformations/fn.make_variance", 2, lambda dp: _row_space(dp)
             >> dp.t.then_clamp((0.0, 1.0)) >> dp.t.then_resize(5, 0.5) >> dp.t.then_variance()
             >> dp.m.then_laplace(scale=0.4), ([0.0] * 5, [0.0] * 4 + [1.0]),
             claim=1.0000000000000064, true_loss=0.5),
    _records("make_count_by_categories(['a', 'b']), then_laplace(scale=1)",
             "transformations/fn.make_count_by_categories", 1, lambda dp: _row_space(dp, str)
             >> dp.t.then_count_by_categories(["a", "b"]) >> dp.m.then_laplace(scale=1.0),
             (["a", "b"], ["a", "b", "c"]), true_loss=1.0),
    _records("make_count_by, then_laplace_threshold(scale=1, threshold=4)",
             "transformations/fn.make_count_by", 1, lambda dp: OpenDP(
                 _row_space(dp, str) >> dp.t.then_count_by(TV=int)
                 >> dp.m.then_laplace_threshold(scale=1.0, threshold=4), ask=_list_counts_or_zeros),
             (["a"] * 5, ["a"] * 5 + ["b"]), delta=0.01338980493269848, **_THRESHOLD),
    _make_case("make_b_ary_tree(4 leaves, 2), then_laplace(scale=3)",
          "transformations/fn.make_b_ary_tree", 1, lambda dp: _vector_space(dp, "l1_distance", int)
          >> dp.t.then_b_ary_tree(4, 2) >> dp.m.then_laplace(scale=3.0), ([0, 0, 0, 0], [1, 0, 0,
          0]), true_loss=1.0, trials=20_000),
    _records("make_impute_constant(1), clamped sum, then_laplace(scale=1), a missing value",
             "transformations/fn.make_impute_constant", 1, lambda dp: (
                 dp.vector_domain(dp.atom_domain(T=float, nan=True)), dp.symmetric_distance())
             >> dp.t.then_impute_constant(1.0) >> dp.t.then_clamp((0.0, 1.0)) >> dp.t.then_sum()
             >> dp.m.then_laplace(scale=1.0), ([0.0] * 5, [0.0] * 5 + [math.nan]),
             claim=1.000000009313226, true_loss=1.0),
    _records("Context.compositor(epsilon=1), query().count().laplace()",
          "combinators/fn.make_adaptive_composition", 1, lambda dp: _build_query(dp, "count"),
          _MORE, trials=300, true_loss=1.0),
    _records("Context.compositor(epsilon=1), query().clamp((0, 1)).sum().laplace()",
          "combinators/fn.make_adaptive_composition", 1, lambda dp: _build_query(dp, "sum"), _MORE,
          trials=300, true_loss=1.0),
)  # fmt: skip
