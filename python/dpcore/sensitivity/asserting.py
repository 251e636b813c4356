"""A bound on a sensitivity as a test: hypothesis and the search look for a small counterexample."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from ..errors import flag, integer, real, show
from ..hints import hinted
from ..pairs import Domain, Neighbour
from ..pairs.norms import Norm
from ..records import Pair
from ..streams import Rng
from ._probing import Catch, Inputs, Probe
from ._searching import Space
from .closed_forms import Sensitivity, in_norm
from .refuting import SLACK, probe_of, refute, space_of

__all__ = ["SensitivityError", "assert_sensitivity", "members_of", "pairs_of"]

_MAX_SHOWN_ENTRIES: Final = 12
"""Entries of a vector, or of its non-zero ones, that a message lists."""

_SIMPLIFICATION_CALLS: Final = 20_000
"""Calls of f spent on making a counterexample smaller."""

_MAX_SINGLE_ENTRIES: Final = 16
"""Places at which an entry is tried alone."""

_ROUNDED_DECIMALS: Final = (0, 1, 2, 3)
"""Decimals to which an entry of a counterexample may be rounded."""

_MAX_BIN_COUNT: Final = 20
"""Largest count of a histogram's bin that hypothesis tries."""

_MAX_WHOLE_NUMBER: Final = 2**10
"""Largest whole number that hypothesis tries on purpose."""


class SensitivityError(AssertionError):
    """A pair of neighbours on which f changes by more than its bound.

    Attributes:
        pair: the counterexample.
        attained: norm of f(x) - f(x') on it.
        bound: the bound that it exceeds.
    """

    def __init__(self, message: str, pair: Pair, attained: float, bound: float) -> None:
        super().__init__(message)
        self.pair, self.attained, self.bound = pair, attained, bound

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuild with all fields: the default keeps the message alone."""
        return type(self), (self.args[0], self.pair, self.attained, self.bound)


@hinted
def assert_sensitivity(
    f: Callable[..., Any],
    bound: float | Sensitivity,
    norm: Norm,
    domain: Domain,
    *,
    neighbour: Neighbour | None = None,
    rows: bool = False,
    max_examples: int = 200,
    trials: int | float | str = 5000,
    rng: Rng = 0,
    derandomize: bool = True,
    catch: Catch = (),
) -> None:
    """Fail if a pair of neighbours is found on which f changes by more than a bound.

    First `refute` searches for the worst pair, then hypothesis tries simple ones. Whatever
    violates the bound is made smaller, and the smallest is shown: few entries that are not 0,
    few digits. That nothing was found is no proof. Inside a test with `@given` only the search
    runs, for hypothesis does not nest; such a test can draw from `pairs_of` itself.

    Args:
        f: a function of one input of the domain, as `refute` takes it.
        bound: the sensitivity that f should have at most, finite and at least 0.
        norm: the norm of f(x) - f(x'): "l1", "l2" or "linf".
        domain: where inputs lie.
        neighbour: which members are neighbours, as in `refute`.
        rows: True if f takes many inputs at once, `(size, dim)` -> `(size, ...)`.
        max_examples: pairs that hypothesis tries, at least 1.
        trials: calls of f by the search, at least 8.
        rng: seed of the search; fixed, so that a test which passes once passes always.
        derandomize: False lets hypothesis draw other examples in each run.
        catch: exception classes by which f says that it is not defined on an input.

    Raises:
        SensitivityError: an AssertionError, if a pair exceeds the bound by more than 1e-9 of it.
        ImportError: if hypothesis is not installed.
        TypeError: if an argument is of the wrong kind, or f does not return real numbers.
        ValueError: if one is out of range, or f returns NaN, inf or another shape than before.

    Source:
        MacIver and Hatfield-Dodds (2019) for hypothesis; Zeller and Hildebrandt (2002) for
        removing parts of a counterexample by halves.

    Example:
        >>> from dpcore.pairs import Box
        >>> assert_sensitivity(np.mean, 0.25, "l1", Box(0, 1, 4), trials=500)
        Traceback (most recent call last):
        ...
        dpcore.sensitivity.asserting.SensitivityError: numpy.mean must have an l1 sensitivity of
        at most 0.25, got 0.5 on x = [0, 0, 0, 0], x' = [0, 0, 1, 1]
    """
    bound = real("bound", in_norm("bound", bound, norm), low=0.0)
    max_examples = integer("max_examples", max_examples, 1)
    flag("derandomize", derandomize)
    _import_hypothesis()
    found = refute(
        f, bound, norm, domain,
        neighbour=neighbour, rows=rows, trials=trials, rng=rng, catch=catch,
    )  # fmt: skip
    space = space_of(domain, neighbour, rows)
    limit = bound * (1.0 + SLACK)

    def probe(calls: int = 2**62) -> Probe:
        return probe_of(f, norm, rows, calls, catch)

    pairs = [(found.pair.x, found.pair.x_prime)] if found.refuted else []
    pairs += _falsify_bound(probe(), space, limit, max_examples, derandomize)
    if pairs:
        smaller = [
            _PairSimplifier(probe(_SIMPLIFICATION_CALLS), space, limit)(pair) for pair in pairs
        ]
        _raise_failure(probe(), min(smaller, key=_pair_size), bound)


@hinted
def members_of(domain: Domain) -> Any:
    """Make a hypothesis strategy for the members of a domain, which shrinks to simple ones.

    Args:
        domain: a set of this package or any with `draw`; one without `clip` shrinks poorly.

    Returns:
        A strategy.

    Raises:
        ImportError: if hypothesis is not installed.
        TypeError: if `domain` is none.

    Example:
        >>> from dpcore.pairs import Box
        >>> from hypothesis import find
        >>> find(members_of(Box(-1, 1, 3)), lambda x: x[1] > 0.2).shape
        (3,)
    """
    return _make_members(space_of(domain, None, False))


@hinted
def pairs_of(domain: Domain, neighbour: Neighbour | None = None) -> Any:
    """Make a hypothesis strategy for pairs of neighbours, which shrinks to simple ones.

    Args:
        domain: a set of this package or any with `draw`.
        neighbour: which members are neighbours, as in `refute`; relations other than `L1`, `L2`,
            `Linf` and that of a `Histogram` shrink poorly.

    Returns:
        A strategy of `Pair`.

    Raises:
        ImportError: if hypothesis is not installed.
        TypeError: if an argument is of the wrong kind.

    Example:
        >>> from dpcore.pairs import Box
        >>> from hypothesis import find
        >>> pair = find(pairs_of(Box(0, 1, 2)), lambda pair: bool((pair.x > pair.x_prime).all()))
        >>> Box(0, 1, 2).contains(pair.x)
        True
    """
    return _make_pairs(space_of(domain, neighbour, False)).map(lambda pair: Pair(*pair))


def _import_hypothesis() -> Any:
    try:
        import hypothesis.extra.numpy
    except ImportError:
        text = "this needs the package hypothesis: pip install hypothesis"
        raise ImportError(text) from None
    return hypothesis


def _make_members(space: Space) -> Any:
    st = _import_hypothesis().strategies
    if not hasattr(space.domain, "clip"):
        seeds = st.integers(0, 2**32 - 1)
        return seeds.map(lambda seed: space.domain.draw(np.random.default_rng(seed)))
    if hasattr(space.domain, "neighbouring"):
        elements, base = st.integers(0, _MAX_BIN_COUNT).map(float), 0.0
    else:
        low, high = _domain_ends(space.domain)
        elements, base = _make_entries(low, high), min(max(0.0, low), high)
    return _make_vectors(space.domain.dim, elements, base).map(space.clip)


def _make_entries(low: float, high: float) -> Any:
    """Make a strategy for numbers in an interval, often small whole ones.

    Functions often branch at small whole numbers.
    """
    st = _import_hypothesis().strategies
    first, last = max(math.ceil(low), -_MAX_WHOLE_NUMBER), min(math.floor(high), _MAX_WHOLE_NUMBER)
    anything = st.floats(low, high)
    return st.integers(first, last).map(float) | anything if first <= last else anything


def _make_vectors(dim: int, elements: Any, base: float) -> Any:
    """Make a strategy for vectors: sparse ones with few entries off the base, and dense ones.

    Vectors shrink to the base where they can.
    """
    st, arrays = _import_hypothesis().strategies, _import_hypothesis().extra.numpy.arrays
    sparse = arrays(np.float64, dim, elements=elements, fill=st.just(base))
    return sparse | arrays(np.float64, dim, elements=elements)


def _domain_ends(domain: Any) -> tuple[float, float]:
    radius = float(getattr(domain, "radius", 1.0))
    low, high = getattr(domain, "low", -radius), getattr(domain, "high", radius)
    return float(np.min(low)), float(np.max(high))


def _make_pairs(space: Space) -> Any:
    st, members = _import_hypothesis().strategies, _make_members(space)
    if space.free:
        return st.tuples(members, members)
    if space.moves:
        radius = float(getattr(space.neighbour, "radius", 1.0))
        changes = _make_vectors(space.domain.dim, _make_entries(-radius, radius), 0.0)
        built = st.builds(lambda x, change: space.fit(x, x + change), members, changes)
        return built.filter(lambda pair: pair is not None)
    if hasattr(space.domain, "neighbouring"):
        places = st.integers(0, space.domain.dim - 1)
        records = st.builds(lambda place: np.eye(1, space.domain.dim, place)[0], places)
        both = st.tuples(members, records, st.just(0.0) | records)
        return both.map(lambda part: (part[0] + part[1], part[0] + part[2])).filter(
            lambda pair: space.holds(*pair)
        )

    def proposed(seed: int, number: int) -> Inputs | None:
        found = space.random(np.random.default_rng(seed), number + 1)
        return found[-1] if found else None

    some = st.builds(proposed, st.integers(0, 2**32 - 1), st.integers(0, 32))
    return some.filter(lambda pair: pair is not None)


def _falsify_bound(
    probe: Probe, space: Space, limit: float, max_examples: int, derandomize: bool
) -> list[Inputs]:
    """Return the counterexample that hypothesis shrinks to, if it finds one."""
    hypothesis = _import_hypothesis()
    if hypothesis.currently_in_test_context():
        return []
    last: list[Inputs] = []

    class Falsified(Exception):
        pass

    def check(pair: Inputs) -> None:
        gap = float(probe.gaps([pair])[0])
        if gap > limit:
            last[:] = [pair]
            raise Falsified
        if math.isfinite(gap):
            hypothesis.target(gap)

    phases = hypothesis.Phase
    wanted = hypothesis.settings(
        max_examples=max_examples,
        derandomize=derandomize,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        # A slow f, or a relation that few pairs fulfil, is no fault of the test.
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=(phases.generate, phases.target, phases.shrink),
    )
    try:
        wanted(hypothesis.given(_make_pairs(space))(check))()
    except Falsified:
        return last
    return []


class _PairSimplifier:
    """A simplifier of counterexamples: it removes what is not needed and rounds the rest."""

    def __init__(self, probe: Probe, space: Space, limit: float) -> None:
        self.probe, self.space, self.limit = probe, space, limit

    def __call__(self, pair: Inputs) -> Inputs:
        """Return a counterexample that is not larger than this one."""
        if not hasattr(self.space.domain, "clip"):
            return pair
        here = (np.array(pair[0], dtype=np.float64), np.array(pair[1], dtype=np.float64))
        with self.probe.allowance("smaller", 1.0):
            for tried in self._tries(here):
                # The generator sees what was accepted: both work on the same two arrays.
                if _pair_size(tried) < _pair_size(here) and self._violates(tried):
                    here[0][:], here[1][:] = tried
        return here

    def _violates(self, pair: Inputs) -> bool:
        domain = self.space.domain
        if not all(map(domain.contains, pair)) or not self.space.holds(*pair):
            return False
        return float(self.probe.gaps([pair])[0]) > self.limit

    def _tries(self, here: Inputs) -> Iterator[Inputs]:
        dim = here[0].size
        for place in range(min(dim, _MAX_SINGLE_ENTRIES)):
            for side in (0, 1):
                # Where members must add up to something, entries cannot be removed one by one.
                top = float(np.ceil(np.abs(here[side]).max()))
                alone = self._with(here, (side,), slice(None), 0.0)
                yield self._with(alone, (side,), slice(place, place + 1), top)
        size = dim
        while size:
            for first in range(0, dim, size):
                part = slice(first, first + size)
                for sides in ((0, 1), (0,), (1,)):
                    yield self._with(here, sides, part, 0.0)
            size //= 2
        for place in range(dim):
            part = slice(place, place + 1)
            yield self._with(here, (1,), part, float(here[0][place]))
            for side in (0, 1):
                for digits in _ROUNDED_DECIMALS:
                    yield self._with(here, (side,), part, round(float(here[side][place]), digits))

    @staticmethod
    def _with(here: Inputs, sides: tuple[int, ...], part: slice, value: float) -> Inputs:
        x, x_prime = here[0].copy(), here[1].copy()
        for side in sides:
            (x, x_prime)[side][part] = value
        return x, x_prime


def _pair_size(pair: Inputs) -> tuple[int, int]:
    """Count the entries that are not 0, then the characters: the size for a reader."""
    entries = [entry for side in pair for entry in np.ravel(np.asarray(side)).tolist()]
    return sum(entry != 0 for entry in entries), sum(len(f"{entry!r}") for entry in entries)


def _raise_failure(probe: Probe, pair: Inputs, bound: float) -> None:
    gap = float(probe.gaps([pair])[0])
    attained = probe.again(*pair, gap)
    text = (
        f"{probe.name} must have an {probe.norm} sensitivity of at most {bound:g}, "
        f"got {attained:.10g} on x = {_format_input(pair[0])}, x' = {_format_input(pair[1])}"
    )
    raise SensitivityError(text, Pair(*pair), attained, bound)


def _format_input(x: Any) -> str:
    if not isinstance(x, np.ndarray) or x.dtype.kind not in "buif" or x.ndim != 1:
        return show(x)
    if x.size <= _MAX_SHOWN_ENTRIES:
        return "[" + ", ".join(map(_format_entry, x.tolist())) + "]"
    places = np.flatnonzero(x)
    listed = ", ".join(
        f"{_format_entry(x[place].item())} at {place}" for place in places[:_MAX_SHOWN_ENTRIES]
    )
    more = (
        "" if places.size <= _MAX_SHOWN_ENTRIES else f" and {places.size - _MAX_SHOWN_ENTRIES} more"
    )
    return f"{x.size} entries, 0 but for {listed}{more}" if places.size else f"{x.size} zeros"


def _format_entry(value: float) -> str:
    return repr(value).removesuffix(".0")
