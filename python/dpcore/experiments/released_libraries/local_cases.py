"""Audited mechanisms of packages for local differential privacy, and of hll-py.

The local packages are pure-ldp, multi-freq-ldpy, ldp-toolbox and nprr.

A client of a local package randomises the value of one person, so any two values are neighbours.
The last mechanisms belong to hll-py, which counts distinct words with a HyperLogLog sketch.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from ...attacks import Threshold, hash_score
from .cases import Case, import_object

_VALUES: Final = "any two values"
_TUPLES: Final = "any two tuples of values"
_ONE_OF_A_TUPLE: Final = "one value of a tuple is replaced"

_pure = partial(
    Case, package="pure-ldp", version="1.2.0", relation=_VALUES, trials=50_000,
    stated="core/_freq_oracle_client.py:7, docstring: privacy budget",
)  # fmt: skip
_multi = partial(
    Case, package="multi-freq-ldpy", version="0.2.5", trials=50_000, seconds=300.0
)  # fmt: skip
_toolbox = partial(
    Case, package="ldp-toolbox", version="0.1.3", relation=_VALUES, trials=50_000,
    stated="protocols/base.py:17, docstring: privacy budget",
)  # fmt: skip
_nprr = partial(
    Case, package="nprr", version="0.1.4", relation="any two numbers of [0, 1]", trials=1_000_000,
    stated="mechanisms.py:217, docstring of r_from_G_eps: privacy level that r achieves given G",
)  # fmt: skip
_hll = partial(
    Case, package="hll-py", version="0.1.13", trials=20_000, claim=4.0, reading="release unclear",
    stated="summary of the package: locally differentially private counting; "
    "HyperLogLog.py:6, epsilon=4.0",
)  # fmt: skip


def _flatten_numbers(answer: Any) -> list[Any]:
    """Return all numbers in nested lists, tuples and arrays as a flat list, in their order."""
    if isinstance(answer, np.ndarray):
        return list(answer.ravel().tolist())
    if not isinstance(answer, (list, tuple, zip)):
        return [answer]
    return [number for part in answer for number in _flatten_numbers(part)]


def _make_number_sampler(
    function: Callable[[Any], Any], reports: int = 1
) -> Callable[[Any, int, Any], Any]:
    """Return a function that draws many outputs.

    Each output contains the numbers that `function` returns in `reports` calls.
    """

    def draw_rows(x: Any, size: int, _: Any) -> Any:
        rows = [_flatten_numbers(function(x)) for _ in range(size * reports)]
        return np.array(rows).reshape(size, -1)

    return draw_rows


def _make_hash(size: int, seed: int) -> Callable[[Any], int]:
    """Make a hash function whose values are the numbers 0, ..., size - 1."""
    return lambda data: zlib.crc32(f"{seed}/{data}".encode()) % size


def _hash_attack(pair: tuple[int, int], size: int) -> Callable[[], Any]:
    """Return a function that builds the attack on local hashing.

    The attack compares the hash of each input with the reported hash, a number below `size`.
    """

    def build() -> Threshold:
        make_hash = import_object("xxhash:xxh32")
        # pure-ldp numbers its values from 1, and hashes the number from 0.
        first = min(pair)

        def hash_item(x: int, seed: int) -> int:
            return int(make_hash(str(x - first), seed=seed).intdigest()) % size

        return Threshold(score=hash_score(hash_item, pair))

    return build


_HASHES: Final = [_make_hash(8, seed) for seed in range(2)]


def _build_client(
    name: str, *arguments: Any, inner: tuple[Any, ...] = (), **options: Any
) -> Callable[[], Callable[[Any, int, Any], Any]]:
    """Return a function that builds a client of pure-ldp.

    If `inner` is given, the client uses a second client, which is built from `inner`.
    """

    def build() -> Callable[[Any, int, Any], Any]:
        oracles, hitters = "pure_ldp.frequency_oracles", "pure_ldp.heavy_hitters"
        module = hitters if name in ("PEMClient", "TreeHistClient", "SFPClient") else oracles
        kind = import_object(f"{module}:{name}")
        oracle = import_object(f"{oracles}:{inner[0]}")(*inner[1:]) if inner else None
        client = kind(*arguments, **options | ({"fo_client": oracle} if inner else {}))
        return _make_number_sampler(client.privatise)

    return build


def _build_call(
    path: str, *arguments: Any, reports: int = 1
) -> Callable[[], Callable[[Any, int, Any], Any]]:
    """Return a function that builds a mechanism from a client function of multi-freq-ldpy."""

    def build() -> Callable[[Any, int, Any], Any]:
        function = import_object(f"multi_freq_ldpy.{path}")
        return _make_number_sampler(lambda x: function(x, *arguments), reports)

    return build


def _make_single_input_case(module: str, line: int, *arguments: Any, **fields: Any) -> Case:
    """Describe (as a `Case`) a client that randomises one value, by default at epsilon 1."""
    name = f"{module}_Client"
    words = ", ".join(map(repr, arguments))
    facts: dict[str, Any] = {"claim": 1.0, "pair": (0, 1), "relation": _VALUES, "true_loss": 1.0,
             "name": f"{name}(x, {words})",
             "stated": f"pure_frequency_oracles/{module}.py:{line}, docstring: privacy guarantee",
             "build": _build_call(f"pure_frequency_oracles.{module}:{name}", *arguments),
    }  # fmt: skip
    return _multi(**facts | fields)


def _tuple_input_case(
    solution: str, client: str, line: int, sizes: list[int], **fields: Any
) -> Case:
    """Describe (as a `Case`) a client that randomises several values at epsilon 1."""
    module = f"{solution}_solution"
    name = f"{solution}_{client}_Client"
    arguments = (sizes, len(sizes), 1.0)
    facts: dict[str, Any] = {"claim": 1.0, "pair": ((0, 0), (1, 1)), "relation": _TUPLES,
             "name": f"{name}(x, {', '.join(map(repr, arguments))})",
             "stated": f"mdim_freq_est/{module}.py:{line}, docstring: privacy guarantee",
             "build": _build_call(f"mdim_freq_est.{module}:{name}", *arguments),
    }  # fmt: skip
    return _multi(**facts | fields)


def _single_report_case(client: str, line: int, *arguments: Any, **fields: Any) -> Case:
    """Describe (as a `Case`) one report of a client that can report repeatedly.

    The claimed epsilon is the last of the `arguments`.
    """
    call = f"{client}_Client(x, {', '.join(map(repr, arguments))})"
    facts: dict[str, Any] = {
             "claim": arguments[-1], "pair": (0, 1), "relation": _VALUES, "name": call,
             "stated": f"long_freq_est/{client}.py:{line}, docstring: privacy of a single report",
             "build": _build_call(f"long_freq_est.{client}:{client}_Client", *arguments),
    }  # fmt: skip
    return _multi(**facts | fields)


def _build_protocol(path: str, *arguments: Any, **options: Any) -> Callable[[], Any]:
    """Return a function that builds a protocol of ldp-toolbox."""

    def build() -> Any:
        kind = import_object(f"ldp_toolbox.protocols.frequency.{path}")
        protocol = kind(*arguments, **options)
        # Its answers are lists of different lengths.
        is_ragged = getattr(protocol, "thresholding", False)
        return protocol.obfuscate if is_ragged else _make_number_sampler(protocol.obfuscate)

    return build


def _build_response(r: float, grid: int) -> Callable[[], Callable[[float, int, Any], Any]]:
    """Return a function that builds nonparametric randomized response, applied to many people."""

    def build() -> Callable[[float, int, Any], Any]:
        function = import_object("nprr:nprr")
        return lambda x, size, _: function(np.full(size, x), r, grid)

    return build


def _build_nonparametric_response(epsilon: float) -> Callable[[float, int, Any], Any]:
    """Build nonparametric randomized response with parameters chosen by the package."""
    r, grid = import_object("nprr:r_G_opt_entropy")(epsilon)
    return _build_response(r, grid)()


def _make_nprr(grid: int) -> Callable[[float, int, Any], Any]:
    """Build nonparametric randomized response at epsilon 1.

    The parameter r is computed by the package's formula.
    """
    return _build_response(import_object("nprr:r_from_G_eps")(grid, 1.0), grid)()


def _response_loss(grid: int, epsilon: float, are_grid_ends: bool = True) -> float:
    """Return the privacy loss between two values that are points of the grid.

    With some probability, the mechanism answers with a uniform random number. This number is
    rounded to the grid, so each end of [0, 1] has half of the probability of any other point.
    """
    return math.log1p((2 if are_grid_ends else 1) * grid * math.expm1(epsilon) / (grid + 1))


def _hll_insertion(read: Callable[[Any], Any]) -> Callable[[], Callable[[str], Any]]:
    """Return a function that builds a mechanism for inserting one word into a new sketch.

    The output is what `read` returns for the sketch.
    """

    def build() -> Callable[[str], Any]:
        kind, configure = map(import_object, ("hll_py:HyperLogLogLDP", "hll_py:SketchConfig"))

        def insert_word(x: str) -> Any:
            sketch = kind(configure(m=1))
            sketch.insert_segments([f"{x}_seg0"])
            return read(sketch)

        return insert_word

    return build


def _epsilon_before_amplification(attributes: int) -> float:
    """Return the epsilon of a report on one attribute, sampled from `attributes` attributes.

    The total epsilon, after amplification by sampling, is 1.
    """
    return math.log1p(attributes * math.expm1(1.0))


_AMPLIFIED: Final = math.exp(_epsilon_before_amplification(2))


def _fake_data_privacy_loss(likelihood_ratio: float) -> float:
    """Return the privacy loss of RS+FD if the first of two values changes.

    RS+FD (random sampling plus fake data) reports one true value (with noise) and one fake value.
    The second value has two possible values.

    Args:
        likelihood_ratio: ratio of two probabilities of the worst report of the first value. The
            numerator is the probability for the other possible first value. The denominator is the
            probability for a fake value.
    """
    second = 2 / (_AMPLIFIED + 1)
    return math.log((_AMPLIFIED * likelihood_ratio + second) / (likelihood_ratio + second))


def _build_match_attack(entries: dict[int, int]) -> Callable[[], Any]:
    """Return a function that makes an attack.

    The attack tests whether the given entries of an output have the given values.
    """
    places, values = list(entries), list(entries.values())

    def match_rows(outputs: Any) -> Any:
        return np.all(outputs[:, places] == values, axis=1).astype(float)

    words = [", ".join(map(str, numbers)) for numbers in (places, values)]
    match_rows.__qualname__ = "[entries {} are {}]".format(*words)
    return lambda: Threshold(score=match_rows)


_SUBSETS: Final = _build_call("pure_frequency_oracles.SS:SS_Client", 20, 1.0)
_ORDER: Final = (
    "the true value, if it is in the answer, is its first entry, and the others are drawn without "
    "it (pure_frequency_oracles/SS.py:39)"
)
_SETS: Final = "the returned array, in its order"
_ATTRIBUTE: Final = (
    "the sampled value has the amplified epsilon (mdim_freq_est/RSpFD_solution.py:{}), and an "
    "output that fits all values of x is as much more probable for x if all of them change"
)
_ONE_ATTRIBUTE: Final = (
    "the epsilon is amplified as if outputs did not show which value was sampled "
    "(mdim_freq_est/RSpFD_solution.py:{}); fake data make one of them the more probable one"
)
_RAPPOR: Final = (
    "the loop only sets bits to 1, so that a bit that is 1 stays 1 "
    "(frequency_oracles/rappor/rappor_client.py:51)"
)
_GRID: Final = (
    "a rounded uniform number has half the probability at 0 and 1, and the formula for r takes it "
    "as uniform (mechanisms.py:135 and 225)"
)
_STATED_RAPPOR: Final = "frequency_oracles/rappor/rappor_client.py:{}, docstring: epsilon for f"
_STATED_HITTERS: Final = "heavy_hitters/_hh_client.py:10, docstring: privacy budget"

CASES: tuple[Case, ...] = (
    _pure(name="DEClient(1.0, 4)", build=_build_client("DEClient", 1.0, 4), pair=(1, 4), claim=1.0,
          true_loss=1.0),
    _pure(name="DEClient(5.0, 10)", build=_build_client("DEClient", 5.0, 10), pair=(1, 2),
          claim=5.0, true_loss=5.0),
    _pure(name="UEClient(1.0, 4)", build=_build_client("UEClient", 1.0, 4), pair=(1, 2), claim=1.0,
          true_loss=1.0),
    _pure(name="UEClient(1.0, 4, use_oue=True)", build=_build_client("UEClient", 1.0, 4,
          use_oue=True), pair=(1, 2), claim=1.0, true_loss=1.0),
    _pure(name="HEClient(1.0, 4)", build=_build_client("HEClient", 1.0, 4), pair=(1, 2), claim=1.0,
          true_loss=1.0),
    _pure(name="LHClient(1.0, 4, use_olh=True)", build=_build_client("LHClient", 1.0, 4,
          use_olh=True), pair=(1, 2), claim=1.0, true_loss=1.0, attack=_hash_attack((1, 2), 4)),
    _pure(name="LHClient(1.0, 4)", build=_build_client("LHClient", 1.0, 4), pair=(1, 2), claim=1.0,
          true_loss=1.0, attack=_hash_attack((1, 2), 2)),
    _pure(name="FastLHClient(1.0, 4, 10, use_olh=True)", pair=(1, 2), claim=1.0, true_loss=1.0,
          build=_build_client("FastLHClient", 1.0, 4, 10, use_olh=True),
          attack=_hash_attack((1, 2), 4)),
    _pure(name="CMSClient(1.0, hash_funcs, 8)", build=_build_client("CMSClient", 1.0, _HASHES, 8),
          pair=(1, 2), claim=1.0, true_loss=1.0),
    _pure(name="CMSClient(1.0, hash_funcs, 8, is_hadamard=True)", pair=(1, 2), claim=1.0,
          build=_build_client("CMSClient", 1.0, _HASHES, 8, is_hadamard=True), true_loss=1.0),
    _pure(name="HadamardMechClient(1.0, 4, 1)", build=_build_client("HadamardMechClient", 1.0, 4,
          1), pair=(1, 4), claim=1.0, true_loss=1.0, release="the pairs of the returned value"),
    _pure(name="HadamardMechClient(2.0, 4, 1, use_optimal_t=True)", pair=(1, 4), claim=2.0,
          build=_build_client("HadamardMechClient", 2.0, 4, 1, use_optimal_t=True), true_loss=2.0,
          release="the pairs of the returned value"),
    _pure(name="HadamardResponseClient(1.0, 8, None)", pair=(1, 8), claim=1.0, true_loss=1.0,
          build=_build_client("HadamardResponseClient", 1.0, 8, None)),
    _pure(name="HadamardResponseClient(3.0, 8, hash_funcs)", pair=(1, 8), claim=3.0,
          build=_build_client("HadamardResponseClient", 3.0, 8, np.arange(8)), true_loss=3.0),
    _pure(name="RAPPORClient(0.5, 8, hash_funcs), two hash functions", pair=(1, 2),
          build=_build_client("RAPPORClient", 0.5, 8, [_HASHES], num_of_cohorts=1),
          claim=4 * math.log(3), true_loss=math.inf, stated=_STATED_RAPPOR.format(90),
          cause=_RAPPOR),
    _pure(name="RAPPORClient(0.76, 8, hash_funcs), one hash function", pair=(1, 2), claim=1.0,
          build=_build_client("RAPPORClient", 0.76, 8, [_HASHES[:1]], num_of_cohorts=1),
          true_loss=math.inf, stated=_STATED_RAPPOR.format(78), cause=_RAPPOR),
    _pure(name="PCSClient(1.0, 2, 8, hash_funcs)", pair=(1, 2), claim=1.0, true_loss=1.0,
          build=_build_client("PCSClient", 1.0, 2, 8, [(_make_hash(8, i), _make_hash(2, i)) for i
          in (0, 1)])),
    _pure(name="SketchResponseClient(1.0, 8, hash_funcs)", pair=(1, 2), claim=1.0,
          build=_build_client("SketchResponseClient", 1.0, 8, _HASHES), true_loss=1.0),
    _pure(name="SketchResponseClient(1.0, 8, hash_funcs, fo_client=DEClient(1.0, 8))",
          build=_build_client("SketchResponseClient", 1.0, 8, _HASHES, inner=("DEClient", 1.0, 8)),
          pair=(1, 2), claim=1.0, true_loss=1.0),
    _pure(name="PEMClient(1.0, 2, 6, 2)", build=_build_client("PEMClient", 1.0, 2, 6, 2), claim=1.0,
          pair=("000000", "111111"), stated=_STATED_HITTERS, true_loss=1.0),
    _pure(name="PEMClient(4.0, 2, 6, 2, fo_client=DEClient(4.0, 64))", claim=4.0, true_loss=4.0,
          build=_build_client("PEMClient", 4.0, 2, 6, 2, inner=("DEClient", 4.0, 64)),
          pair=("000000", "111111"), stated=_STATED_HITTERS),
    _pure(name="TreeHistClient(1.0, 2, 4)", build=_build_client("TreeHistClient", 1.0, 2, 4),
          claim=1.0, pair=("0000", "1111"), stated=_STATED_HITTERS, true_loss=1.0),
    _pure(name="TreeHistClient(4.0, 2, 4, fo_client=DEClient(4.0, 16))", claim=4.0, true_loss=4.0,
          build=_build_client("TreeHistClient", 4.0, 2, 4, inner=("DEClient", 4.0, 16)),
          pair=("0000", "1111"), stated=_STATED_HITTERS),
    _pure(name="SFPClient(1.0, 2, 4)", build=_build_client("SFPClient", 1.0, 2, 4), claim=1.0,
          pair=("0000", "1111"), stated=_STATED_HITTERS),
    _pure(name="SFPClient(4.0, 2, 4, fo_client=CMSClient(4.0, hash_funcs, 4))", claim=4.0,
          build=_build_client("SFPClient", 1.0, 2, 4, inner=("CMSClient", 4.0, [_make_hash(4, 1)],
          4)), pair=("0000", "1111"), stated=_STATED_HITTERS),
    _make_single_input_case("GRR", 17, 4, 1.0),
    _make_single_input_case("GRR", 17, 10, 5.0, claim=5.0, true_loss=5.0),
    _make_single_input_case("UE", 17, 4, 1.0),
    _make_single_input_case("UE", 17, 4, 1.0, False),
    _make_single_input_case("HE", 18, 4, 1.0),
    _make_single_input_case("LH", 21, 4, 1.0, attack=_hash_attack((0, 1), 4)),
    _make_single_input_case("LH", 21, 4, 1.0, False, attack=_hash_attack((0, 1), 2)),
    _make_single_input_case("SS", 17, 4, 1.0),
    _make_single_input_case("SS", 17, 20, 1.0, release=_SETS, true_loss=math.inf, cause=_ORDER),
    _make_single_input_case("SS", 17, 20, 1.0, name="SS_Client(x, 20, 1.0), sorted",
            build=lambda: lambda x, size, rng: np.sort(_SUBSETS()(x, size, rng)),
            release="the returned array, sorted"),
    _make_single_input_case("ADP", 17, 4, 1.0),
    _make_single_input_case("ADP", 17, 20, 1.0),
    _tuple_input_case("SPL", "GRR", 22, [4, 4], true_loss=1.0),
    _tuple_input_case("SPL", "UE", 44, [4, 4], true_loss=1.0),
    _tuple_input_case("SPL", "SS", 90, [20, 20], release=_SETS, true_loss=math.inf, cause=_ORDER),
    _tuple_input_case("SMP", "GRR", 22, [4, 4], true_loss=1.0),
    _tuple_input_case("SMP", "UE", 42, [4, 4], true_loss=1.0),
    _tuple_input_case("SMP", "SS", 83, [20, 20], release=_SETS, true_loss=math.inf, cause=_ORDER),
    _tuple_input_case("RSpFD", "GRR", 17, [4, 4], true_loss=_epsilon_before_amplification(2),
          reading="relation unclear", trials=200_000, cause=_ATTRIBUTE.format(22)),
    _tuple_input_case("RSpFD", "GRR", 17, [4, 4],
          name="RSpFD_GRR_Client(x, [4, 4], 2, 1.0), one value", pair=((0, 0), (1, 0)),
          relation=_ONE_OF_A_TUPLE, true_loss=1.0),
    _tuple_input_case("RSpFD", "GRR", 17, [20, 2], pair=((0, 0), (19, 0)), relation=_ONE_OF_A_TUPLE,
           true_loss=_fake_data_privacy_loss(20 / (_AMPLIFIED + 19)), trials=200_000,
           cause=_ONE_ATTRIBUTE.format(22)),
    _tuple_input_case("RSpFD", "UE_zero", 49, [4, 4], true_loss=_epsilon_before_amplification(2),
          reading="relation unclear", trials=200_000, cause=_ATTRIBUTE.format(55)),
    _tuple_input_case("RSpFD", "UE_zero", 49, [6, 2], pair=((0, 0), (1, 0)),
          relation=_ONE_OF_A_TUPLE, true_loss=1.0),
    _tuple_input_case("RSpFD", "UE_rnd", 83, [20, 2], pair=((0, 0), (1, 0)),
          relation=_ONE_OF_A_TUPLE, true_loss=_fake_data_privacy_loss(20 / (_AMPLIFIED + 19)),
          trials=200_000, attack=_build_match_attack({0: 1, 1: 0, 20: 0, 21: 1}),
          cause=_ONE_ATTRIBUTE.format(89)),
    _tuple_input_case("RSpFD", "ADP", 116, [20, 2], pair=((0, 0), (1, 0)), relation=_ONE_OF_A_TUPLE,
           true_loss=_fake_data_privacy_loss((_AMPLIFIED + 1) / _AMPLIFIED / 2), trials=200_000,
           attack=_build_match_attack({0: 1, 1: 0, 20: 1}), cause=_ONE_ATTRIBUTE.format(122)),
    _single_report_case("L_GRR", 21, 2, 2.0, 1.0, true_loss=1.0),
    _single_report_case("L_GRR", 21, 20, 2.0, 1.0, pair=(0, 19)),
    _single_report_case("L_OUE", 21, 4, 2.0, 1.0, true_loss=1.0),
    _single_report_case("L_OSUE", 21, 4, 2.0, 1.0, true_loss=1.0),
    _single_report_case("L_SUE", 22, 4, 2.0, 1.0, true_loss=1.0),
    _single_report_case("L_SOUE", 21, 4, 2.0, 1.0, true_loss=1.0),
    _single_report_case("L_LH", 18, 4, 2.0, 1.0, attack=_hash_attack((0, 1), 3)),
    _single_report_case("L_ADP", 18, 4, 2.0, 1.0),
    _single_report_case("L_SUE", 21, 2, 1.0, 0.5, name="L_SUE_Client(x, 2, 1.0, 0.5), four reports",
          build=_build_call("long_freq_est.L_SUE:L_SUE_Client", 2, 1.0, 0.5, reports=4), claim=1.0,
          stated="long_freq_est/L_SUE.py:21, docstring: privacy of infinitely many reports",
          reading="release unclear", true_loss=2.0, release="four returned values",
          cause="each call draws the permanent round anew (long_freq_est/L_SUE.py:64)"),
    _single_report_case("dBitFlipPM", 16, 4, 4, 4, 1.0, true_loss=1.0),
    _single_report_case("dBitFlipPM", 16, 4, 4, 1, 1.0, true_loss=0.5),
    _toolbox(name="GeneralizedRandomizedResponse(4, 1.0)", pair=(0, 1), claim=1.0, true_loss=1.0,
             build=_build_protocol("grr:GeneralizedRandomizedResponse", 4, 1.0)),
    _toolbox(name="UnaryEncoding(4, 1.0)", build=_build_protocol("ue:UnaryEncoding", 4, 1.0),
             pair=(0, 1), claim=1.0, true_loss=1.0),
    _toolbox(name="UnaryEncoding(4, 1.0, optimal=False)", pair=(0, 1), claim=1.0, true_loss=1.0,
             build=_build_protocol("ue:UnaryEncoding", 4, 1.0, optimal=False)),
    _toolbox(name="HistogramEncoding(4, 1.0)", build=_build_protocol("he:HistogramEncoding", 4,
          1.0), pair=(0, 1), claim=1.0),
    _toolbox(name="HistogramEncoding(4, 1.0, thresholding=False)", pair=(0, 1), claim=1.0,
          build=_build_protocol("he:HistogramEncoding", 4, 1.0, thresholding=False), true_loss=1.0),
    _toolbox(name="LocalHashing(4, 1.0)", build=_build_protocol("lh:LocalHashing", 4, 1.0),
             pair=(0, 1), claim=1.0, true_loss=1.0, release="the numbers of the returned pair",
             attack=_hash_attack((0, 1), 4)),
    _toolbox(name="SubsetSelection(4, 1.0)", build=_build_protocol("ss:SubsetSelection", 4, 1.0),
             pair=(0, 1), claim=1.0, true_loss=1.0),
    _toolbox(name="SubsetSelection(20, 1.0)", build=_build_protocol("ss:SubsetSelection", 20, 1.0),
             pair=(0, 1), claim=1.0, true_loss=1.0),
    _nprr(name="laplace(x, 1.0)", pair=(0.0, 1.0), claim=1.0, true_loss=1.0,
          build=lambda: lambda x, size, _: import_object("nprr:laplace")(np.full(size, x), 1.0),
          stated="mechanisms.py:21, docstring: privacy parameter; scale 1 / eps in line 28"),
    _nprr(name="warner_rr(x, r_from_G_eps(1, 1.0))", pair=(0.0, 1.0), claim=1.0, true_loss=1.0,
          build=lambda: lambda x, size, _: import_object("nprr:warner_rr")(
              np.full(size, x), import_object("nprr:r_from_G_eps")(1, 1.0))),
    _nprr(name="nprr(x, *r_G_opt_entropy(1.0))", build=lambda: _build_nonparametric_response(1.0),
          pair=(0.0, 1.0), claim=1.0, true_loss=1.0,
          stated="mechanisms.py:235, docstring of r_G_opt_entropy: desired privacy level"),
    _nprr(name="nprr(x, *r_G_opt_entropy(2.0))", build=lambda: _build_nonparametric_response(2.0),
          pair=(0.0, 1.0), claim=2.0, true_loss=_response_loss(6, 2.0), cause=_GRID,
          stated="mechanisms.py:235, docstring of r_G_opt_entropy: desired privacy level"),
    _nprr(name="nprr(x, r_from_G_eps(4, 1.0), 4)", build=lambda: _make_nprr(4), claim=1.0,
          pair=(0.0, 1.0), true_loss=_response_loss(4, 1.0), cause=_GRID),
    _nprr(name="nprr(x, r_from_G_eps(4, 1.0), 4), between the ends", build=lambda: _make_nprr(4),
          pair=(0.25, 0.75), claim=1.0, true_loss=_response_loss(4, 1.0, are_grid_ends=False)),
    _nprr(name="nprr(x, r_from_G_eps(16, 1.0), 16)", build=lambda: _make_nprr(16), claim=1.0,
          pair=(0.0, 1.0), true_loss=_response_loss(16, 1.0), cause=_GRID),
    _hll(name="HyperLogLogLDP(SketchConfig(m=1)).sketch_map", pair=("apple", "grape"),
         build=_hll_insertion(lambda sketch: sorted(sketch.sketch_map)), relation="any two words",
         release="sketch_map, an attribute: its keys", true_loss=math.inf,
         cause="a sketch is stored under the true segment (HyperLogLogLDP.py:28)"),
    _hll(name="HyperLogLogLDP(SketchConfig(m=1)).estimate_word('apple')", pair=("apple", "grape"),
         build=_hll_insertion(lambda sketch: sketch.estimate_word("apple")),
         relation="any two words", true_loss=math.inf,
         cause="a word whose segments were not inserted has the estimate 0 (HyperLogLogLDP.py:43)"),
    _hll(name="HyperLogLogLDP(SketchConfig(m=1)).reported_item_hashes", pair=("apple", "grape"),
         build=_hll_insertion(lambda sketch: sorted(map(str, sketch.reported_item_hashes))),
         relation="any two words", release="reported_item_hashes, an attribute",
         cause="the probability of the true hash is that of a choice between two answers, and "
         "another hash is one of 2**64 (HyperLogLogLDP.py:15)"),
)  # fmt: skip
