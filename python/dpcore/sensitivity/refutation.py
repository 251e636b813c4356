"""Search for a pair that refutes a claimed sensitivity, and an assertion for unit tests.

The assertion `assert_sensitivity` uses this search and the package hypothesis. It shows a simple
counterexample.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import numpy as np

from ..errors import choice, count, flag, integer, invalid, mistyped, real, show
from ..pairs import NORMS, Domain
from ..pairs.differences import Norm, format_changes
from ..pairs.neighbours import NeighbourArgument, attr_or_none, check_domain, neighbour_python_call
from ..progress import record_interrupt_and_check_second
from ..records import Answer, Pair, Record
from ..report.shown import on_one_line
from ..streams import Rng, to_seed
from ..suggestions import explain_argument_errors
from . import search
from .closed_forms import Sensitivity, sensitivity, sensitivity_to_number
from .domains import has_range_method

Method = Literal["witness", "extremes", "random", "ascent", "torch", "scipy"]
SEARCH_METHODS: Final[tuple[Method, ...]] = get_args(Method)
"""Names of the methods of a search, in the order in which they run."""

SLACK: Final = 1e-9
"""Largest relative excess over a claimed sensitivity that rounding can explain."""

_MIN_SEARCH_TRIALS: Final = 8
_ASCENT_RESTARTS: Final = 4
"""The last ascent starts from the best pair, and then from this number of random pairs."""

_MAX_SHOWN_ENTRIES: Final = 12
"""Largest number of entries, or of non-zero entries, that a message lists."""

_SIMPLIFICATION_CALLS: Final = 20_000
"""Largest number of calls of f to simplify a counterexample."""

_MAX_SINGLE_ENTRIES: Final = 16
"""Vectors with one non-zero entry are tried for at most this number of positions of the entry."""

_ROUNDED_DECIMALS: Final = (0, 1, 2, 3)
"""Numbers of decimals to which an entry of a counterexample may be rounded."""

_MAX_BIN_COUNT: Final = 20
"""Largest count of a bin that hypothesis tries."""

_MAX_WHOLE_NUMBER: Final = 2**10
"""Largest magnitude of the whole numbers that hypothesis tries explicitly."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Refutation(Answer, Record, word="Refutation"):
    """Result of `refute`: the two neighbouring inputs with the largest change of a function f.

    A claimed sensitivity is an upper bound on norm(f(x) - f(x')) for all neighbouring inputs x and
    x'. The search tries to find a pair with a larger norm than the claimed sensitivity.

    Attributes:
        f: name of the function f.
        norm: norm of f(x) - f(x'): "l1", "l2" or "linf".
        domain: set of inputs in which the search looked for the pair.
        claimed: claimed sensitivity, in the units of the outputs of f.
        attained: norm of f(x) - f(x') for the found pair. This number is a lower bound on the
            sensitivity. Other pairs, which the search did not find, may have a larger norm.
        pair: the found pair of neighbouring inputs x and x'.
        evaluations: number of inputs on which the search evaluated f.
        found_by: name of the search method that found this pair.
        seed: seed with which the search can be repeated.
        partial: True if Ctrl-C ended the search early.
        neighbour: neighbour relation of the search, as text, or "" if no relation was given to the
            search.
    """

    f: str
    norm: Norm
    domain: Any
    claimed: float
    attained: float
    pair: Pair
    evaluations: int
    found_by: str
    seed: int
    partial: bool = False
    neighbour: str = ""

    @property
    def refuted(self) -> bool:
        """True if the search found a pair that exceeds the claimed sensitivity.

        Only an excess of more than 1e-9 times the claimed sensitivity counts.
        """
        return self.attained > self.claimed * (1.0 + SLACK)

    def __str__(self) -> str:
        """Return the claimed sensitivity, the distance that was found, and the pair as text."""
        verdict = "" if self.refuted else ", so the claim is not refuted, nor proved"
        ended = ", ended by Ctrl-C" if self.partial else ""
        relation = f" with neighbours by {self.neighbour}" if self.neighbour else ""
        return (
            f"claimed {self.claimed:.10g}, attained {self.attained:.10g} by this pair (a lower "
            f"bound on the sensitivity{verdict}), x -> x': {format_changes(self.pair)}; "
            f"{self.norm} norm of {self.f}, found by {self.found_by} in {self.evaluations} calls, "
            f"seed {self.seed}{ended}; searched: {on_one_line(neighbour_python_call(self.domain))}"
            f"{relation}; inputs outside of it were not tried"
        )


@explain_argument_errors
def refute(
    f: Callable[..., Any],
    claimed: float | Sensitivity,
    norm: Norm,
    domain: Domain,
    *,
    neighbour: NeighbourArgument | None = None,
    rows: bool = False,
    trials: int | float | str = 10_000,
    rng: Rng = None,
    methods: Sequence[Method] | None = None,
    stop_when_refuted: bool = False,
    catch: search.Catch = (),
) -> Refutation:
    """Search for two neighbouring inputs whose outputs differ by more than a claimed sensitivity.

    The search maximises ``norm(f(x) - f(x'))`` over neighbouring inputs x and x'. The inputs belong
    to a set, the domain. The search tries, in this order:

    - two neighbours in the domain with the largest distance, if dpcore knows such a pair;
    - extreme inputs in the domain, and random pairs;
    - coordinate ascent, and also gradient ascent if f is a torch module;
    - the optimisers of scipy;
    - coordinate ascent again, from the best pair so far and from random pairs.

    Args:
        f: function without noise. The argument of f is one input (shape `(dim,)` for vectors). The
            result of f is a number or an array of a fixed shape. If f is a torch module, f is
            called without gradients, on a tensor with the dtype of the parameters of f.
        claimed: claimed sensitivity of f, finite and at least 0, in the units of the outputs of f.
        norm: norm of f(x) - f(x'): "l1", "l2" or "linf".
        domain: set of the inputs: a set of dpcore (such as `Box` or `Ball`), or any object with
            `dim`, `draw` and `contains`. Coordinate ascent, gradient ascent and scipy are used only
            if the object also has a method `clip`.
        neighbour: relation of `dpcore.pairs` that defines which inputs are neighbours. None means
            that any two inputs in the domain are neighbours. If the domain is a `HistogramCounts`,
            None means that two histograms are neighbours if their data differ in one record.
        rows: True if f accepts a matrix of inputs, one per row, and treats each row separately. The
            shapes are then `(size, dim)` for the argument and `(size, ...)` for the result. dpcore
            cannot detect whether f does this, because many functions accept a matrix but do not
            treat its rows separately.
        trials: largest number of inputs on which the search evaluates f, at least 8.
        rng: None, an int seed or a numpy Generator. With the same seed and the same arguments, the
            result is the same.
        methods: list of the search methods to use. The possible methods are "witness" (the pair
            with the largest distance), "extremes", "random", "ascent" (coordinate ascent), "torch"
            (gradient ascent) and "scipy". None means all methods that are possible for f and the
            domain.
        stop_when_refuted: True to stop at the first pair that exceeds the claimed sensitivity.
            False (the default) to search for the largest norm until all trials are used.
        catch: exception classes that f raises if f is not defined for an input, such as a constant
            row for min-max scaling. The search leaves out these inputs.

    Returns:
        The pair with the largest ``norm(f(x) - f(x'))`` that the search found. This norm is a lower
        bound on the sensitivity of f. If the user presses Ctrl-C, the result is the best pair found
        before.

    Raises:
        TypeError: if an argument has the wrong type, or if f does not return real numbers.
        ValueError: for one of these reasons:

            - an argument is out of range;
            - f returns NaN or inf, arrays of different shapes, or different results for one input;
            - the domain contains no neighbours.

            Other exceptions of f are passed on unchanged.
        KeyboardInterrupt: if the user presses Ctrl-C before f was evaluated on a pair.

    Source:
        Habernal (2021), section 4, for the random pairs. Hooke and Jeeves (1961) for the coordinate
        ascent.

    Example:
        >>> from dpcore.pairs import Box
        >>> clip = lambda x: x * min(1.0, 10.0 / np.linalg.norm(x))
        >>> found = refute(clip, 20.0, "l1", Box(-10, 10, 16), trials=2000, rng=1)
        >>> found.refuted, round(found.attained, 6)
        (True, 80.0)
    """
    claimed = real("claimed", sensitivity_to_number("claimed", claimed, norm), low=0.0)
    trials = count("trials", trials)
    if trials < _MIN_SEARCH_TRIALS:
        raise invalid("trials", f"a whole number at least {_MIN_SEARCH_TRIALS}", trials)
    flag("stop_when_refuted", stop_when_refuted)
    seed = to_seed(rng)
    space, chosen = make_space(domain, neighbour, rows), _choose_methods(methods, f)
    probe = make_probe(f, norm, rows, trials, catch)
    probe.target = claimed * (1.0 + SLACK) if stop_when_refuted else np.inf
    partial = False
    try:
        _run_search(probe, space, np.random.default_rng(seed), chosen, f)
    except search.Done:
        pass
    except KeyboardInterrupt:
        if probe.best is None or record_interrupt_and_check_second():
            raise
        partial = True
    return _make_refutation(probe, space, claimed, seed, partial)


def make_space(domain: Any, neighbour: Any, is_rowwise: Any) -> search.Pairs:
    """Check arguments of a search, and return the `Pairs`: the set of pairs to search."""
    check_domain(domain)
    flag("rows", is_rowwise)
    if is_rowwise and attr_or_none(domain, "clip") is None:
        raise invalid("rows", "False for inputs that are no vectors", is_rowwise)
    if neighbour is None and attr_or_none(domain, "neighbouring"):
        neighbour = search.OneRecord()
    return search.Pairs(domain, neighbour)


def make_probe(f: Any, norm: Norm, rows: bool, trials: int, catch: Any) -> search.Probe:
    """Check arguments of a search, and return the `Probe`, an object that calls f in the search."""
    if not callable(f):
        raise mistyped("f", "a callable x -> number or array", f)
    choice("norm", norm, NORMS)
    called = search.ModuleCalls(f, rows) if search.is_torch_module(f) else f
    return search.Probe(called, norm, rows, trials, _check_catch(catch))


def _check_catch(catch: Any) -> search.Catch:
    kinds = catch if isinstance(catch, tuple) else (catch,)
    if not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
        raise mistyped("catch", "an exception class or a tuple of them", catch)
    return kinds


def _choose_methods(methods: Any, f: Any) -> tuple[str, ...]:
    if methods is None:
        return SEARCH_METHODS
    if isinstance(methods, str) or not isinstance(methods, Sequence):
        raise mistyped("methods", "a list of names", methods)
    chosen = {choice("method", method, SEARCH_METHODS) for method in methods}
    if not chosen:
        raise invalid("methods", "at least one name", methods)
    if "torch" in chosen and not search.is_torch_module(f):
        raise mistyped("f", "a torch module for the method 'torch'", f)
    return tuple(method for method in SEARCH_METHODS if method in chosen)


def _run_search(
    probe: search.Probe,
    space: search.Pairs,
    rng: np.random.Generator,
    chosen: tuple[str, ...],
    f: Any,
) -> None:
    if "witness" in chosen:
        with probe.limit_calls("the domain's witness", 1.0):
            search.evaluate_pairs(probe, _closed_form_sensitivity_pairs(space, f, probe.norm))
    if "extremes" in chosen:
        with probe.limit_calls("extreme members", 0.15):
            search.compare_extreme_inputs(probe, space, rng)
    if "random" in chosen or probe.best is None:
        with probe.limit_calls("random pairs", 0.15 if probe.best else 0.5):
            search.compare_random_inputs(probe, space, rng)
    if "ascent" in chosen:
        with probe.limit_calls("coordinate ascent", 0.4):
            search.climb_coordinates(probe, space, rng, _get_best_pair(probe, space))
    if "torch" in chosen and isinstance(probe.f, search.ModuleCalls) and space.can_move:
        with probe.limit_calls("gradient ascent", 0.5):
            search.widen_gap_by_torch(probe, space, rng, probe.f, _get_best_pair(probe, space))
    if "scipy" in chosen and space.can_move:
        with probe.limit_calls("scipy", 0.7):
            search.widen_gap_by_scipy(probe, space, rng, _get_best_pair(probe, space))
    if "ascent" in chosen:
        with probe.limit_calls("coordinate ascent", 1.0):
            for start in [_get_best_pair(probe, space), *space.draw_pairs(rng, _ASCENT_RESTARTS)]:
                search.climb_coordinates(probe, space, rng, start)


def _get_best_pair(probe: search.Probe, space: search.Pairs) -> search.Inputs:
    if probe.best is None:
        raise invalid("domain", "large enough to hold two neighbours", space.domain)
    return probe.best[1:3]


def _closed_form_sensitivity_pairs(space: search.Pairs, f: Any, norm: Norm) -> list[search.Inputs]:
    """List pairs that attain the sensitivity of the domain, and of the range of f if f has one."""
    witnesses: list[search.Inputs] = []
    dim = space.domain.dim
    for domain in (space.domain, *([f.range(dim)] if has_range_method(f) else [])):
        try:
            pair = sensitivity(domain, norm).pair
        except (TypeError, ValueError):
            # The domain has no closed form.
            continue
        fitted = (
            space.fit(pair.x, pair.x_prime) if space.is_any_pair_allowed else (pair.x, pair.x_prime)
        )
        if fitted is not None and space.holds(*fitted):
            witnesses.append(fitted)
    return witnesses


def _make_refutation(
    probe: search.Probe, space: search.Pairs, claimed: float, seed: int, partial: bool
) -> Refutation:
    x, x_prime = _get_best_pair(probe, space)
    gap, _, _, found_by = probe.best or (0.0, None, None, "")
    attained = probe.recompute(x, x_prime, gap)
    return Refutation(
        probe.name, probe.norm, space.domain, claimed, attained, Pair(x, x_prime),
        probe.evaluations, found_by, seed, partial,
        "" if space.is_any_pair_allowed or isinstance(space.neighbour, search.OneRecord)
        else neighbour_python_call(space.neighbour),
    )  # fmt: skip


class SensitivityError(AssertionError):
    """AssertionError of `assert_sensitivity`: two outputs of f differ by more than the bound.

    The message shows two neighbouring inputs x and x' with norm(f(x) - f(x')) above the given
    bound.

    Attributes:
        pair: the two inputs x and x'.
        attained: norm of f(x) - f(x') for this pair.
        bound: the bound, which `attained` exceeds.
    """

    def __init__(self, message: str, pair: Pair, attained: float, bound: float) -> None:
        super().__init__(message)
        self.pair, self.attained, self.bound = pair, attained, bound

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle all fields. An exception would otherwise keep only its message."""
        return type(self), (self.args[0], self.pair, self.attained, self.bound)


@explain_argument_errors
def assert_sensitivity(
    f: Callable[..., Any],
    bound: float | Sensitivity,
    norm: Norm,
    domain: Domain,
    *,
    neighbour: NeighbourArgument | None = None,
    rows: bool = False,
    max_examples: int = 200,
    trials: int | float | str = 5000,
    rng: Rng = 0,
    derandomize: bool = True,
    catch: search.Catch = (),
) -> None:
    """Raise an error if a search finds two neighbouring inputs whose outputs differ too much.

    For two neighbouring inputs x and x', the difference norm(f(x) - f(x')) must not exceed a bound.

    First, `dpcore.sensitivity.refute` searches for a pair with a large difference. Then the package
    hypothesis tries simple pairs. If a pair exceeds the bound, dpcore simplifies this pair: many
    entries become 0, and numbers get few digits. The error shows the simplest pair. If no error is
    raised, this does not prove the bound.

    If you call this function in a test with hypothesis's `@given`, only `refute` runs, because
    hypothesis tests cannot be nested. In such a test, use the strategy `pair_strategy`.

    Args:
        f: function without noise. The argument of f is one input. The result is a number or an
            array of a fixed shape.
        bound: upper bound on the sensitivity of f, finite and at least 0.
        norm: norm of f(x) - f(x'): "l1", "l2" or "linf".
        domain: set of the inputs, such as a `Box`.
        neighbour: relation of `dpcore.pairs` that defines which inputs are neighbours. None has the
            same meaning as in `refute`.
        rows: True if f accepts a matrix of inputs, one per row, and treats each row separately.
        max_examples: number of pairs that hypothesis tries, at least 1.
        trials: number of inputs on which the search evaluates f, at least 8.
        rng: seed of the search, 0 by default, so that a test has the same result in every run.
        derandomize: True if hypothesis must try the same pairs in each run. False for new pairs in
            each run.
        catch: exception classes that f raises if f is not defined for an input. These inputs are
            left out.

    Raises:
        SensitivityError: if a pair is found for which norm(f(x) - f(x')) exceeds the bound by more
            than 1e-9 times the bound. This error is an AssertionError.
        ImportError: if hypothesis is not installed.
        TypeError: if an argument has the wrong type, or if f does not return real numbers.
        ValueError: if an argument is out of range, or if f returns NaN, inf or arrays of different
            shapes.

    Source:
        MacIver and Hatfield-Dodds (2019) for hypothesis. Zeller and Hildebrandt (2002) for the
        simplification of the pair.

    Example:
        >>> from dpcore.pairs import Box
        >>> assert_sensitivity(np.mean, 0.25, "l1", Box(0, 1, 4), trials=500)
        Traceback (most recent call last):
        ...
        dpcore.sensitivity.refutation.SensitivityError: numpy.mean must have an l1 sensitivity of
        at most 0.25, got 0.5 on x = [0, 0, 0, 0], x' = [0, 0, 1, 1]; entry 2: 0.0 -> 1.0,
        entry 3: 0.0 -> 1.0
    """
    bound = real("bound", sensitivity_to_number("bound", bound, norm), low=0.0)
    max_examples = integer("max_examples", max_examples, 1)
    flag("derandomize", derandomize)
    _import_hypothesis()
    refutation = refute(
        f, bound, norm, domain,
        neighbour=neighbour, rows=rows, trials=trials, rng=rng, catch=catch,
    )  # fmt: skip
    space = make_space(domain, neighbour, rows)
    limit = bound * (1.0 + SLACK)

    def probe(calls: int = 2**62) -> search.Probe:
        return make_probe(f, norm, rows, calls, catch)

    pairs = [(refutation.pair.x, refutation.pair.x_prime)] if refutation.refuted else []
    pairs += _falsify_bound(probe(), space, limit, max_examples, derandomize)
    if pairs:
        smaller = [
            _PairSimplifier(probe(_SIMPLIFICATION_CALLS), space, limit)(pair) for pair in pairs
        ]
        _raise_sensitivity_error(probe(), min(smaller, key=_size_sort_key), bound)


@explain_argument_errors
def member_strategy(domain: Domain) -> Any:
    """Return a strategy of the package hypothesis that generates inputs from a set.

    If a test fails on an input, hypothesis simplifies ("shrinks") this input.

    Args:
        domain: the set: a set of dpcore (such as `Box`), or any object with `dim`, `draw` and
            `contains`. If the object has no method `clip`, hypothesis can simplify inputs less.

    Returns:
        The strategy, for use with hypothesis's `@given`.

    Raises:
        ImportError: if hypothesis is not installed.
        TypeError: if `domain` lacks `dim`, `draw` or `contains`.

    Example:
        >>> from dpcore.pairs import Box
        >>> from hypothesis import find
        >>> find(member_strategy(Box(-1, 1, 3)), lambda x: x[1] > 0.2).shape
        (3,)
    """
    return _make_domain_member_strategy(make_space(domain, None, False))


@explain_argument_errors
def pair_strategy(domain: Domain, neighbour: NeighbourArgument | None = None) -> Any:
    """Return a strategy of the package hypothesis that generates pairs of neighbouring inputs.

    If a test fails on a pair, hypothesis simplifies ("shrinks") this pair.

    Args:
        domain: set of the inputs: a set of dpcore (such as `Box`), or any object with `dim`, `draw`
            and `contains`.
        neighbour: relation of `dpcore.pairs` that defines which inputs are neighbours. None has the
            same meaning as in `refute`. hypothesis simplifies pairs well for `L1`, `L2`, `Linf` and
            for `HistogramCounts`, but poorly for other relations.

    Returns:
        The strategy, which generates `Pair` objects.

    Raises:
        ImportError: if hypothesis is not installed.
        TypeError: if an argument has the wrong type.

    Example:
        >>> from dpcore.pairs import Box
        >>> from hypothesis import find
        >>> pairs = pair_strategy(Box(0, 1, 2))
        >>> pair = find(pairs, lambda pair: bool((pair.x > pair.x_prime).all()))
        >>> Box(0, 1, 2).contains(pair.x)
        True
    """
    return _make_pair_strategy(make_space(domain, neighbour, False)).map(lambda pair: Pair(*pair))


def _import_hypothesis() -> Any:
    try:
        import hypothesis.extra.numpy
    except ImportError:
        text = "this needs the package hypothesis: pip install hypothesis"
        raise ImportError(text) from None
    return hypothesis


def _make_domain_member_strategy(space: search.Pairs) -> Any:
    st = _import_hypothesis().strategies
    if attr_or_none(space.domain, "clip") is None:
        seeds = st.integers(0, 2**32 - 1)
        return seeds.map(lambda seed: space.domain.draw(np.random.default_rng(seed)))
    if attr_or_none(space.domain, "neighbouring"):
        elements, base = st.integers(0, _MAX_BIN_COUNT).map(float), 0.0
    else:
        low, high = _entry_limits(space.domain)
        elements, base = _make_entry_strategy(low, high), min(max(0.0, low), high)
    return _vector_strategy(space.domain.dim, elements, base).map(space.clip)


def _make_entry_strategy(low: float, high: float) -> Any:
    """Return a hypothesis strategy for numbers in an interval, with many small whole numbers.

    The code of a function often has a branch at a small whole number, such as 0 or 1.
    """
    st = _import_hypothesis().strategies
    first, last = max(math.ceil(low), -_MAX_WHOLE_NUMBER), min(math.floor(high), _MAX_WHOLE_NUMBER)
    anything = st.floats(low, high)
    return st.integers(first, last).map(float) | anything if first <= last else anything


def _vector_strategy(dim: int, elements: Any, fill_value: float) -> Any:
    """Return a strategy for vectors. In some vectors, few entries differ from `fill_value`.

    hypothesis simplifies entries to `fill_value` if the example remains a counterexample.
    """
    st, arrays = _import_hypothesis().strategies, _import_hypothesis().extra.numpy.arrays
    sparse = arrays(np.float64, dim, elements=elements, fill=st.just(fill_value))
    return sparse | arrays(np.float64, dim, elements=elements)


def _entry_limits(domain: Any) -> tuple[float, float]:
    radius = float(attr_or_none(domain, "radius") or 1.0)
    low, high = attr_or_none(domain, "low"), attr_or_none(domain, "high")
    ends = -radius if low is None else np.min(low), radius if high is None else np.max(high)
    return float(ends[0]), float(ends[1])


def _make_pair_strategy(space: search.Pairs) -> Any:
    st, members = _import_hypothesis().strategies, _make_domain_member_strategy(space)
    if space.is_any_pair_allowed:
        return st.tuples(members, members)
    if space.can_move:
        radius = float(attr_or_none(space.neighbour, "radius") or 1.0)
        changes = _vector_strategy(space.domain.dim, _make_entry_strategy(-radius, radius), 0.0)
        built = st.builds(lambda x, change: space.fit(x, x + change), members, changes)
        return built.filter(lambda pair: pair is not None)
    if attr_or_none(space.domain, "neighbouring"):
        places = st.integers(0, space.domain.dim - 1)
        records = st.builds(lambda place: np.eye(1, space.domain.dim, place)[0], places)
        both = st.tuples(members, records, st.just(0.0) | records)
        made = both.map(lambda part: (part[0] + part[1], part[0] + part[2]))
        return made.filter(lambda pair: space.holds(*pair))

    def proposed(seed: int, number: int) -> search.Inputs | None:
        proposals = space.draw_pairs(np.random.default_rng(seed), number + 1)
        return proposals[-1] if proposals else None

    some = st.builds(proposed, st.integers(0, 2**32 - 1), st.integers(0, 32))
    return some.filter(lambda pair: pair is not None)


def _falsify_bound(
    probe: search.Probe, space: search.Pairs, limit: float, max_examples: int, derandomize: bool
) -> list[search.Inputs]:
    """Return a list with the simplest counterexample that hypothesis finds, or an empty list."""
    hypothesis = _import_hypothesis()
    if hypothesis.currently_in_test_context():
        return []
    last: list[search.Inputs] = []

    class Falsified(Exception):
        pass

    def check(pair: search.Inputs) -> None:
        gap = float(probe.distances([pair])[0])
        if gap > limit:
            last[:] = [pair]
            raise Falsified
        if math.isfinite(gap):
            hypothesis.target(gap)

    phases = hypothesis.Phase
    profile = hypothesis.settings(
        max_examples=max_examples, derandomize=derandomize, database=None, deadline=None,
        report_multiple_bugs=False, phases=(phases.generate, phases.target, phases.shrink),
        # A slow f, or a relation that few pairs satisfy, is not a fault of the test.
        suppress_health_check=list(hypothesis.HealthCheck),
    )  # fmt: skip
    try:
        profile(hypothesis.given(_make_pair_strategy(space))(check))()
    except Falsified:
        return last
    return []


class _PairSimplifier:
    """Simplifier of a counterexample: it sets entries to 0, and rounds the other entries."""

    def __init__(self, probe: search.Probe, space: search.Pairs, limit: float) -> None:
        self.probe, self.space, self.limit = probe, space, limit

    def __call__(self, pair: search.Inputs) -> search.Inputs:
        """Return a counterexample that is not larger than the given counterexample."""
        if attr_or_none(self.space.domain, "clip") is None:
            return pair
        here = (np.array(pair[0], dtype=np.float64), np.array(pair[1], dtype=np.float64))
        with self.probe.limit_calls("smaller", 1.0):
            for tried in self._iterate_simpler_pairs(here):
                # `_iterate_simpler_pairs` reads the same two arrays, so it continues from each pair
                # that is accepted here.
                if _size_sort_key(tried) < _size_sort_key(here) and self._is_counterexample(tried):
                    here[0][:], here[1][:] = tried
        return here

    def _is_counterexample(self, pair: search.Inputs) -> bool:
        domain = self.space.domain
        if not all(map(domain.contains, pair)) or not self.space.holds(*pair):
            return False
        return float(self.probe.distances([pair])[0]) > self.limit

    def _iterate_simpler_pairs(self, here: search.Inputs) -> Iterator[search.Inputs]:
        dim = here[0].size
        for place in range(min(dim, _MAX_SINGLE_ENTRIES)):
            for side in (0, 1):
                # If members must have a given sum, entries cannot be removed one by one.
                top = float(np.ceil(np.abs(here[side]).max()))
                alone = self._replace_entries(here, (side,), slice(None), 0.0)
                yield self._replace_entries(alone, (side,), slice(place, place + 1), top)
        size = dim
        while size:
            for first in range(0, dim, size):
                part = slice(first, first + size)
                for sides in ((0, 1), (0,), (1,)):
                    yield self._replace_entries(here, sides, part, 0.0)
            size //= 2
        for place in range(dim):
            part = slice(place, place + 1)
            yield self._replace_entries(here, (1,), part, float(here[0][place]))
            for side in (0, 1):
                for digits in _ROUNDED_DECIMALS:
                    yield self._replace_entries(
                        here, (side,), part, round(float(here[side][place]), digits)
                    )

    @staticmethod
    def _replace_entries(
        here: search.Inputs, sides: tuple[int, ...], part: slice, value: float
    ) -> search.Inputs:
        x, x_prime = here[0].copy(), here[1].copy()
        for side in sides:
            (x, x_prime)[side][part] = value
        return x, x_prime


def _size_sort_key(pair: search.Inputs) -> tuple[int, int]:
    """Return the number of non-zero entries of a pair, and the number of characters to print it."""
    entries = [entry for side in pair for entry in np.ravel(np.asarray(side)).tolist()]
    return sum(entry != 0 for entry in entries), sum(len(f"{entry!r}") for entry in entries)


def _raise_sensitivity_error(probe: search.Probe, pair: search.Inputs, bound: float) -> None:
    gap = float(probe.distances([pair])[0])
    attained = probe.recompute(*pair, gap)
    text = (
        f"{probe.name} must have an {probe.norm} sensitivity of at most {bound:g}, "
        f"got {attained:.10g} on x = {_format_input(pair[0])}, x' = {_format_input(pair[1])}; "
        f"{format_changes(Pair(*pair))}"
    )
    raise SensitivityError(text, Pair(*pair), attained, bound)


def _format_input(x: Any) -> str:
    if not isinstance(x, np.ndarray) or x.dtype.kind not in "buif" or x.ndim != 1:
        return show(x)
    if x.size <= _MAX_SHOWN_ENTRIES:
        return "[" + ", ".join(map(_format_entry, x.tolist())) + "]"
    places = np.flatnonzero(x)
    first = places[:_MAX_SHOWN_ENTRIES]
    listed = ", ".join(f"{_format_entry(x[place].item())} at {place}" for place in first)
    left = places.size - _MAX_SHOWN_ENTRIES
    more = f" and {left} more" if left > 0 else ""
    return f"{x.size} entries, 0 but for {listed}{more}" if places.size else f"{x.size} zeros"


def _format_entry(value: float) -> str:
    return repr(value).removesuffix(".0")
