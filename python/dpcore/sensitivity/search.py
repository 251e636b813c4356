"""Search for the pair of inputs on which a function f changes most, within a number of calls.

The search uses random pairs, coordinate ascent, the optimisers of scipy, and gradient ascent with
torch. The method `clip` of the domain keeps the inputs inside the domain.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import math
import operator
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import has_masked, invalid, mistyped, show
from ..packages import get_loaded_module, is_tensor
from ..pairs import Domain, distance
from ..pairs.differences import Norm
from ..pairs.neighbours import NeighbourArgument, attr_or_none, neighbour_of
from ..records import Floats, Pair, Record
from ..report.shown import dotted_name
from .domains import norms_of_rows, unit_vector

Inputs = tuple[Any, Any]
"""Type of two inputs of f that are neighbours in the domain."""

Catch = type[Exception] | tuple[type[Exception], ...]

_CACHE_ENTRIES: Final = 2**22
"""Largest number of floats in the cache of inputs and outputs, which needs 32 MB."""

_PAIRING_WORK: Final = 5 * 10**7
"""Largest number of differences to find the two most distant outputs; it takes half a second."""

_BATCH_TOLERANCE: Final = 1e-6
"""Allowed relative difference of two results for one input, because batches round differently."""

_MAX_COMPARED_MEMBERS: Final = 256
"""Largest number of inputs whose outputs are all compared with each other."""

_PROPOSALS_PER_PAIR: Final = 20
"""Number of pairs that a relation may propose for each requested pair of neighbours."""

_MAX_IDLE_MOVES: Final = 200
"""A random walk ends after this number of consecutive moves without a new input."""

_COARSEST_STEP: Final = 2.0
_FINEST_STEP: Final = 2.0**-30
"""First and last step of a coordinate, as shares of the domain's width in this coordinate."""

_MIN_ROUND_GAIN: Final = 1e-9
"""If the relative gain of a round is smaller, the next round uses finer steps."""

_MAX_FLOAT: Final = float(np.finfo(np.float64).max)

_MOVES_PER_CALL: Final = 64
"""Number of coordinates that are moved in one call, if f accepts several inputs at once."""

_MAX_CORNERS: Final = 6
"""Number of datasets with equal records, at which sequences of datasets start and end."""

_SPECIAL_COUNTS: Final = (2**7, 2**8, 2**15, 2**16, 2**31, 2**32, *range(1, 65))
"""Counts at which integer types overflow, and small counts, which are common thresholds."""

Walk = tuple[int, Callable[[int], Any]]
"""Number of steps, and a function from a step to an input. Most steps lead to a neighbour."""

Move = tuple[int, int, float]
"""Changed input (0 for x, 1 for x'), coordinate and size of the change."""

_MAX_EVOLVED_COORDINATES: Final = 16
"""Largest total number of coordinates of x and x' for which gradient-free optimisers run."""

_DIFFERENCE_STEP: Final = 2.0**-24
"""Step of a difference quotient, as a share of the domain's width."""

_MAX_OBJECTIVE: Final = 1e150
"""Larger distances are replaced by this number, so that an optimiser can square them."""

_RANDOM_STARTS: Final = 8
"""An optimiser starts from the best pair, and then from this number of random pairs."""

_EVOLUTION_POPULATION: Final = 15
"""Population size of differential evolution per coordinate, scipy's default."""

_FIRST_GRADIENT_STEP: Final = 0.5
_LAST_GRADIENT_STEP: Final = 2.0**-30
"""First and last step along a gradient with largest entry 1, in units of the domain's width."""


class Spent(Exception):
    """Exception that ends one part of a search, because this part has used all its calls of f."""


class Done(Exception):
    """Exception that ends a whole search, because a pair exceeds the claimed sensitivity."""


class Probe:
    """Object that calls a function f in a search, counts the calls and stores the best pair.

    The best pair is the pair of inputs with the largest norm(f(x) - f(x')) so far.
    """

    def __init__(
        self, f: Callable[..., Any], norm: Norm, rows: bool, trials: int, catch: Catch = ()
    ) -> None:
        self.name = dotted_name(f)
        self.norm = norm
        self.evaluations = 0
        self.method = ""
        self.best: tuple[float, Any, Any, str] | None = None
        self.target = np.inf
        self.catch = catch
        self.f = f
        self.batched = rows
        # Two calls are reserved: the best pair is evaluated again before it is reported.
        self._limit = trials - 2
        self._shape: tuple[int, ...] | None = None
        self._cache: OrderedDict[Hashable, Floats | None] = OrderedDict()

    @property
    def calls_left(self) -> int:
        """Number of calls of f that remain for the current part of the search."""
        return self._limit - self.evaluations

    @contextlib.contextmanager
    def limit_calls(self, method: str, share: float) -> Iterator[None]:
        """Return a context manager that limits the number of calls of f in its `with` block.

        The block is one part of a search, named `method`. It may use the fraction `share` of the
        remaining calls of f, and ends when it has used them.
        """
        outer, label = self._limit, self.method
        self.method = method
        self._limit = self.evaluations + int(share * self.calls_left)
        with contextlib.suppress(Spent):
            yield
        self._limit, self.method = outer, label

    def count_outside_calls(self, calls: int) -> None:
        """Increase the number of counted calls by `calls`, for calls of f that other code made."""
        if calls > self.calls_left:
            raise Spent
        self.evaluations += calls

    def outputs(self, inputs: Sequence[Any]) -> Floats:
        """Return f(x) for each of the given inputs x, as a matrix with one row per input.

        Each result is flattened. If f raised an exception of a class in `catch`, the row is NaN. f
        is not called again on an input whose result is stored.
        """
        keys = [_input_key(x) for x in inputs]
        cached = {key: self._cache[key] for key in keys if key in self._cache}
        missing = {key: x for key, x in zip(keys, inputs, strict=True) if key not in cached}
        if len(missing) > self.calls_left:
            raise Spent
        cached.update(zip(missing, self._call(list(missing.values())), strict=True))
        for key in dict.fromkeys(keys):
            self._cache[key] = cached[key]
            self._cache.move_to_end(key)
        undefined = np.full(math.prod(self._shape or (1,)), np.nan)
        rows = np.stack([undefined if (row := cached[key]) is None else row for key in keys])
        first = inputs[0]
        size = first.size if isinstance(first, np.ndarray) else operator.length_hint(first, 1)
        most = max(2, _CACHE_ENTRIES // (rows.shape[1] + size))
        while len(self._cache) > most:
            self._cache.popitem(last=False)
        return rows

    def distances(self, pairs: Sequence[Inputs]) -> Floats:
        """Compute norm(f(x) - f(x')) for each pair (x, x'), and store the best pair so far."""
        both = self.outputs([side for pair in pairs for side in pair])
        gaps = distances_of_rows(both[::2], both[1::2], self.norm)
        place = int(np.argmax(gaps))
        self._keep_if_largest(float(gaps[place]), *pairs[place])
        return gaps

    def keep_pair_with_farthest_outputs(self, points: Sequence[Any]) -> None:
        """Find the two inputs with the largest norm(f(x) - f(x')); keep the best pair so far."""
        values = self.outputs(points)
        # If differences of two outputs are slow to compute, fewer points are compared.
        room = int((_PAIRING_WORK / values.shape[1]) ** 0.5)
        values = values[: max(2, room)]
        farthest = []
        for place in range(len(values) - 1):
            away = distances_of_rows(values[place + 1 :], values[place], self.norm)
            other = int(np.argmax(away))
            farthest.append((float(away[other]), place, place + 1 + other))
        if farthest:
            gap, first, second = max(farthest)
            self._keep_if_largest(gap, points[first], points[second])

    def recompute(self, x: Any, x_prime: Any, expected: float) -> float:
        """Compute norm(f(x) - f(x')) again, from two new calls of f and with exact sums."""
        value, value_prime = self._call([x])[0], self._call([x_prime])[0]
        if value is None or value_prime is None:
            raise self._make_nondeterminism_error(
                "an output and an exception from two calls on one input"
            )
        gap = distance(Pair(value, value_prime), self.norm)
        size = max(expected, float(np.abs(value).max()), float(np.abs(value_prime).max()))
        # An infinite distance cannot be compared; two finite outputs can be infinitely far apart.
        if np.isfinite(gap) and abs(gap - expected) > _BATCH_TOLERANCE * size:
            outcome = f"distances {expected:g} and {gap:g} from two calls on one pair"
            raise self._make_nondeterminism_error(outcome)
        return gap

    def _make_nondeterminism_error(self, outcome: str) -> ValueError:
        requirement = "a function of its input alone, without noise or memory"
        return ValueError(f"f ({self.name}) must be {requirement}, got {outcome}")

    def _keep_if_largest(self, gap: float, x: Any, x_prime: Any) -> None:
        if gap >= 0.0 and (self.best is None or gap > self.best[0]):
            self.best = (gap, x, x_prime, self.method)
            if gap > self.target:
                raise Done

    def _call(self, inputs: list[Any]) -> list[Floats | None]:
        self.evaluations += len(inputs)
        if not self.batched or not inputs:
            return [self._call_on_one_input(x) for x in inputs]
        if len(set(map(np.shape, inputs))) > 1:
            # Inputs of different sizes do not fit into one array.
            return [self._call_on_batch_of_one(x) for x in inputs]
        batch = np.stack(inputs)
        try:
            answer = self.f(batch)
        except self.catch:
            # One of the rows caused the exception. The rows are called one by one to find it.
            return [None] if len(inputs) == 1 else [self._call_on_batch_of_one(x) for x in inputs]
        rows = self._output_to_array(answer)
        if rows.ndim == 0 or len(rows) != len(inputs):
            shapes = f"({len(inputs)}, ...) for inputs of shape {batch.shape}"
            raise invalid(f"output of f ({self.name})", f"of shape {shapes}", rows.shape)
        return [self._check_and_flatten_output(row, x) for row, x in zip(rows, inputs, strict=True)]

    def _call_on_batch_of_one(self, x: Any) -> Floats | None:
        self.evaluations -= 1
        return self._call([x])[0]

    def _call_on_one_input(self, x: Any) -> Floats | None:
        try:
            answer = self.f(x.copy() if isinstance(x, np.ndarray) else x)
        except self.catch:
            return None
        return self._check_and_flatten_output(self._output_to_array(answer), x)

    def _output_to_array(self, answer: Any) -> npt.NDArray[Any]:
        if is_tensor(answer):
            answer = answer.detach().cpu()
        try:
            value = np.asarray(answer)
        except (TypeError, ValueError):
            value = np.asarray(None)
        if value.dtype.kind not in "buif" or value.size == 0 or has_masked(answer):
            raise mistyped(f"output of f ({self.name})", "a number or an array of them", answer)
        return value.astype(np.float64)

    def _check_and_flatten_output(self, value: npt.NDArray[Any], x: Any) -> Floats:
        if self._shape is None:
            self._shape = value.shape
        if value.shape != self._shape:
            requirement = f"of shape {self._shape}, as on the first input"
            raise invalid(f"output of f ({self.name})", requirement, value.shape)
        if not np.isfinite(value).all():
            raise invalid(f"output of f ({self.name}) on x = {show(x)}", "finite", value)
        return value.reshape(-1)


def distances_of_rows(values: Floats, values_prime: Floats, norm: str) -> Floats:
    """Compute the norm of values[i] - values_prime[i] for each i; inf on overflow, -1 for NaN."""
    with np.errstate(over="ignore"):
        apart = values - values_prime
        missing = np.isnan(apart).any(axis=1)
        apart[missing] = 0.0
        return np.where(missing, -1.0, norms_of_rows(apart, norm))


def _input_key(x: Any) -> Hashable:
    if isinstance(x, np.ndarray):
        # The bytes of an array of objects are addresses, so its items are read.
        content = tuple(map(_input_key, x.ravel())) if x.dtype.hasobject else x.tobytes()
        return x.dtype.str, x.shape, content
    if isinstance(x, (list, tuple)):
        return type(x), tuple(map(_input_key, x))
    try:
        hash(x)
    except TypeError:
        # Without a hash the input cannot be recognised. Each call returns a new key.
        return object()
    return type(x), x


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OneRecord(Record, word="OneRecord"):
    """Neighbour relation that a set of inputs, such as `HistogramCounts`, defines itself."""

    def holds(self, pair: Pair, domain: Any) -> bool:
        """Return True if two inputs differ, and the set `domain` defines them as neighbours."""
        apart = not np.array_equal(pair.x, pair.x_prime)
        return apart and bool(domain.neighbouring(pair.x, pair.x_prime))

    def starts(self, domain: Any, rng: np.random.Generator) -> Iterator[Pair]:
        """Yield pairs of neighbouring histograms, without end.

        The first pairs have special counts, such as 128. All later pairs are random.
        """
        for place, count in itertools.product({0, domain.dim - 1}, _SPECIAL_COUNTS):
            x, x_prime = unit_vector(domain.dim, place), unit_vector(domain.dim, place - 1)
            rest = (count - 1) * x
            yield from (Pair(rest, rest + x), Pair(rest + x_prime, rest + x))
        while True:
            x = domain.draw(rng)
            yield Pair(x, domain.neighbour(x, rng))

    def move(self, pair: Pair, domain: Any, rng: np.random.Generator) -> Pair:
        """Change a pair of histograms at random: draw a new x', or change a count in x and x'."""
        if rng.integers(2):
            return Pair(pair.x, domain.neighbour(pair.x, rng))
        shift = np.zeros(domain.dim)
        shift[rng.integers(domain.dim)] = rng.choice([-1.0, 1.0]) * 2.0 ** rng.integers(12)
        return Pair(domain.clip(pair.x + shift), domain.clip(pair.x_prime + shift))


class Pairs:
    """The pairs of inputs that a search may try: all pairs of neighbours in a domain.

    A domain is a set of inputs.

    If no neighbour relation is given, any two inputs in the domain are neighbours.
    """

    def __init__(self, domain: Domain, neighbour: NeighbourArgument | None) -> None:
        self.domain = domain
        self.neighbour = None if neighbour is None else neighbour_of(neighbour)
        self._clip: Callable[[Any], Any] | None = attr_or_none(domain, "clip")
        self._ball = tuple(attr_or_none(self.neighbour, name) for name in ("norm", "radius"))

    @property
    def is_any_pair_allowed(self) -> bool:
        """True if any two inputs in the set of inputs are neighbours."""
        return self.neighbour is None

    @property
    def can_move(self) -> bool:
        """True if a search can change single coordinates of the inputs of a pair.

        This requires a method `clip` of the set of inputs. Also, any two inputs must be neighbours,
        or the neighbour relation must be a limit on the distance in a norm.
        """
        return self._clip is not None and (self.is_any_pair_allowed or None not in self._ball)

    def clip(self, x: Any) -> Any:
        """Clip x to the set of inputs, or return x unchanged if the set has no method `clip`."""
        return x if self._clip is None else self._clip(x)

    def holds(self, x: Any, x_prime: Any) -> bool:
        """Return True if two inputs in the set of inputs are neighbours."""
        return self.neighbour is None or self.neighbour.holds(Pair(x, x_prime), self.domain)

    def fit(self, x: Any, x_prime: Any) -> Inputs | None:
        """Clip x and x' to neighbours in the set of inputs; return None if this is impossible."""
        x = self.clip(x)
        if self.neighbour is None:
            return x, self.clip(x_prime)
        norm, radius = self._ball
        with np.errstate(over="ignore"):
            change = np.clip(np.asarray(x_prime, dtype=np.float64) - x, -_MAX_FLOAT, _MAX_FLOAT)
        apart = distance(Pair(np.zeros(change.size), change), norm)
        x_prime = self.clip(x + change * (radius / apart) if apart > radius else x_prime)
        return (x, x_prime) if self.holds(x, x_prime) else None

    def draw_pairs(self, rng: np.random.Generator, most: int) -> list[Inputs]:
        """Draw at most `most` random pairs of neighbouring inputs."""
        if self.neighbour is None:
            return [(self.domain.draw(rng), self.domain.draw(rng)) for _ in range(most)]
        starts = self.neighbour.starts(self.domain, rng)
        proposed = itertools.islice(starts, _PROPOSALS_PER_PAIR * most)
        kept = (pair for pair in proposed if self.neighbour.holds(pair, self.domain))
        return [(pair.x, pair.x_prime) for pair in itertools.islice(kept, most)]

    def estimate_lows_and_widths(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Estimate the smallest value of each coordinate, and its width (largest minus smallest).

        The estimates come from random and extreme inputs. A width of 0 is replaced by 1.
        """
        rows = np.array([*(self.domain.draw(rng) for _ in range(16)), *self.edge_inputs(rng, 16)])
        low, high = (end(rows, axis=0).astype(np.float64) for end in (np.min, np.max))
        return low, np.where(high > low, high - low, 1.0)

    def edge_inputs(self, rng: np.random.Generator, most: int) -> list[Any]:
        """Return at most `most` extreme inputs: far points, clipped to the set of inputs."""
        if self._clip is None:
            return []
        dim = self.domain.dim
        drawn = np.array([self.domain.draw(rng) for _ in range(4)], dtype=np.float64)
        # Twice the largest sum lies outside of any set that these draws fill.
        with np.errstate(over="ignore"):
            reach = min(2.0 * float(np.abs(drawn).sum(axis=1).max()), _MAX_FLOAT) or 1.0
        place = np.arange(dim)
        signs = [np.ones(dim), 2.0 * (2 * place < dim) - 1.0, 1.0 - 2.0 * (place % 2)]
        singles = rng.permutation(dim)[: max(1, most // 4)]
        signs += [1.0 * (place == single) for single in singles]
        signs += list(rng.choice([-1.0, 1.0], (max(0, most // 2 - len(signs)), dim)))
        towards = [side * reach * sign for sign in signs for side in (1.0, -1.0)]
        return [self.clip(x) for x in towards[:most]]

    def dataset_walks(self, rng: np.random.Generator) -> list[Walk]:
        """List sequences of datasets ("walks"). Most datasets are neighbours of the next dataset.

        In the first dataset of a walk, all records are equal. This also holds for the last dataset.
        A walk consists of its number of steps, and a function from the index of a step to the
        dataset.
        """
        pairs = itertools.combinations(self._list_constant_datasets(rng), 2)
        walks = [walk for ends in pairs for walk in self._list_replacement_sequences(*ends)]
        if self.is_any_pair_allowed:
            # Every second walk changes the number of records. These walks are left out.
            return walks[::2]
        return [
            (steps, point)
            for steps, point in walks
            if any(self.holds(point(n), point(n + 1)) for n in (0, steps // 2))
        ]

    def _list_constant_datasets(self, rng: np.random.Generator) -> list[Any]:
        """Return datasets that repeat one record: the lowest, the highest, or another record."""
        if self._clip is not None:
            # The first two extreme members are constant: the highest and the lowest.
            high, low = self.edge_inputs(rng, 2)
            return [] if np.array_equal(low, high) else [low, high]
        example = self.domain.draw(rng)
        if not isinstance(example, (list, tuple, np.ndarray)):
            return []
        value_lists = (attr_or_none(owner, "values") for owner in (self.neighbour, self.domain))
        choices = [values for values in value_lists if isinstance(values, (list, tuple)) and values]
        values = [*choices, [*example]][0]
        with contextlib.suppress(TypeError, ValueError):
            values = sorted(values, key=np.sum)
        last = len(values) - 1
        places = dict.fromkeys([0, last, *np.linspace(0, last, _MAX_CORNERS).astype(int).tolist()])
        convert: Any = {list: list, np.ndarray: np.asarray}.get(type(example), tuple)
        return [convert([values[place]] * len(example)) for place in places]

    def _list_replacement_sequences(self, low: Any, high: Any) -> Iterator[Walk]:
        """Yield sequences of datasets that replace one record after another.

        A further sequence adds and removes records in turn.

        If neighbours are defined by a norm ball, a sequence also moves one entry after another by
        the radius of the ball.
        """
        yield len(low), lambda n: _concatenate_records(high[:n], low[n:])
        lows, highs = _concatenate_records(low[:1], low), _concatenate_records(high[:1], high)
        yield 2 * len(lows), lambda n: _concatenate_records(highs[: n // 2], lows[(n + 1) // 2 :])
        if self.is_any_pair_allowed or not (self.can_move or isinstance(self.neighbour, OneRecord)):
            return
        width = np.asarray(high, dtype=np.float64) - low
        size, sign, radius = np.abs(width), np.sign(width), self._ball[1] or 1.0
        step = min(radius if low.dtype.kind == "f" else max(1.0, radius // 1), float(size.max()))
        parts = float(np.ceil(float(size.max()) / step))
        if math.isfinite(2.0 * low.size * parts * step):
            start = np.arange(low.size) * (parts * step)
            steps = int(low.size * parts)
            yield steps, lambda n: self.clip(low + sign * np.clip(n * step - start, 0.0, size))


def _concatenate_records(first: Any, second: Any) -> Any:
    return np.concatenate([first, second]) if isinstance(first, np.ndarray) else first + second


def evaluate_pairs(probe: Probe, pairs: Sequence[Inputs]) -> None:
    """Evaluate f on the given pairs, until the calls for this part of the search are used.

    The object `probe` calls f and stores the best pair.
    """
    step = _MOVES_PER_CALL if probe.batched else 1
    for first in range(0, len(pairs), step):
        probe.distances(pairs[first : first + step])


def compare_extreme_inputs(probe: Probe, space: Pairs, rng: np.random.Generator) -> None:
    """Compare the results of f on extreme inputs.

    If any two inputs are neighbours, all extreme inputs are compared with each other. Otherwise
    consecutive datasets in the sequences of `Pairs.dataset_walks` are compared. The object `probe`
    calls f and stores the best pair.
    """
    # A separate random stream is used, so later draws do not depend on the corners.
    walks = space.dataset_walks(rng.spawn(1)[0])
    if not space.is_any_pair_allowed:
        for place, walk in enumerate(walks):
            with probe.limit_calls(probe.method, 1.0 / (len(walks) - place)):
                _bisect_walk(probe, space, *walk)
        return
    most = min(_MAX_COMPARED_MEMBERS, probe.calls_left - probe.calls_left // 3)
    points = space.edge_inputs(rng, most) if probe.calls_left > 1 else []
    each = min(_MAX_COMPARED_MEMBERS, probe.calls_left - len(points)) // max(1, len(walks))
    for steps, point in walks:
        members = map(point, np.linspace(0, steps, min(each, steps + 1)).astype(int).tolist())
        points += [x for x in members if space.domain.contains(x)]
    if points:
        probe.keep_pair_with_farthest_outputs(points)


def _bisect_walk(probe: Probe, space: Pairs, steps: int, point: Callable[[int], Any]) -> None:
    """Find the neighbours in a sequence of datasets (a walk) whose outputs differ most.

    The function repeatedly halves the interval whose ends have the most different outputs.
    """
    stretches = [(-np.inf, -1, n, n + 1) for n in (0, 1, steps - 2, steps - 1)]
    stretches.append((0.0, -steps, 0, steps))
    while stretches:
        _, _, first, last = heapq.heappop(stretches)
        ends = first, (first + last) // 2, last
        # A pair makes its arrays read-only, like the pairs of the relation.
        points = [Pair(x := point(n), x).x for n in ends]
        if last > first + 1:
            values = probe.outputs(points)
            gaps = distances_of_rows(values[:-1], values[1:], probe.norm).tolist()
            for gap, (start, end) in zip(gaps, itertools.pairwise(ends), strict=True):
                heapq.heappush(stretches, (-gap, start - end, start, end))
        elif space.holds(*points[1:]):
            probe.distances([(points[1], points[2])])


def compare_random_inputs(probe: Probe, space: Pairs, rng: np.random.Generator) -> None:
    """Compare the results of f on random inputs.

    If any two inputs are neighbours, all these inputs are compared with each other. Otherwise
    random pairs of neighbours are compared. The object `probe` calls f and stores the best pair.
    """
    most = max(2, min(_MAX_COMPARED_MEMBERS, probe.calls_left))
    if not space.is_any_pair_allowed:
        return evaluate_pairs(probe, space.draw_pairs(rng, max(1, most // 2)))
    points = [space.domain.draw(rng) for _ in range(most)]
    if space.can_move:
        # The largest change of f may be near the middle of the domain, where few draws in high
        # dimensions fall.
        for place in range(0, most, 4):
            share = 10.0 ** rng.uniform(-3.0, 0.0)
            points[place] = space.clip(np.asarray(points[place], dtype=np.float64) * share)
    probe.keep_pair_with_farthest_outputs(points)
    return None


def climb_coordinates(probe: Probe, space: Pairs, rng: np.random.Generator, start: Inputs) -> None:
    """Increase norm(f(x) - f(x')) by coordinate ascent, from the pair `start`.

    The object `probe` calls f and stores the best pair.

    Source:
        Hooke and Jeeves (1961), direct search.
    """
    if not space.can_move:
        return _try_random_moves(probe, space, rng, start)
    width = np.minimum(space.estimate_lows_and_widths(rng)[1], _MAX_FLOAT / _COARSEST_STEP)
    here, step = start, _COARSEST_STEP
    value = float(probe.distances([here])[0])
    while step >= _FINEST_STEP:
        before = value
        here, value = _climb_round(probe, space, rng, here, value, step * width)
        if value <= before * (1.0 + _MIN_ROUND_GAIN):
            step /= 4.0
    return None


def _climb_round(
    probe: Probe, space: Pairs, rng: np.random.Generator, here: Inputs, value: float, steps: Floats
) -> tuple[Inputs, float]:
    """Increase and decrease every coordinate of x and x' once, in random order."""
    order = rng.permutation(2 * steps.size)
    size = _MOVES_PER_CALL if probe.batched else 1
    for first in range(0, order.size, size):
        places = [divmod(int(place), steps.size) for place in order[first : first + size]]
        moves = [
            (side, place, sign * float(steps[place]))
            for side, place in places
            for sign in (1.0, -1.0)
        ]
        here, value = _pair_after_best_moves(probe, space, here, value, moves)
    return here, value


def _pair_after_best_moves(
    probe: Probe, space: Pairs, here: Inputs, value: float, moves: list[Move]
) -> tuple[Inputs, float]:
    """Return the pair after the best change, or after all changes that increase the distance."""
    both = ((move, _move_pair(space, here, [move])) for move in moves)
    tried = [(move, pair) for move, pair in both if pair is not None]
    if not tried:
        return here, value
    gaps = probe.distances([pair for _, pair in tried])
    best = int(np.argmax(gaps))
    if not gaps[best] > value:
        return here, value
    gaining = {tried[n][0][:2]: tried[n][0] for n in np.argsort(gaps) if gaps[n] > value}
    together = _move_pair(space, here, list(gaining.values())) if len(gaining) > 1 else None
    here, value = tried[best][1], float(gaps[best])
    if together is not None and (joint := float(probe.distances([together])[0])) > value:
        return together, joint
    return here, value


def _move_pair(space: Pairs, here: Inputs, moves: list[Move]) -> Inputs | None:
    """Return the changed pair, or None if it is the same pair or its inputs are not neighbours."""
    sides = [np.array(side, dtype=np.float64) for side in here]
    for side, place, amount in moves:
        # Neighbours move together: moving x also moves x'. Other pairs move one side only.
        for moved in sides[side:] if not space.is_any_pair_allowed else sides[side : side + 1]:
            moved[place] = min(max(float(moved[place]) + amount, -_MAX_FLOAT), _MAX_FLOAT)
    pair = space.fit(*sides)
    if pair is None or all(map(np.array_equal, pair, here)):
        return None
    return pair


def _try_random_moves(probe: Probe, space: Pairs, rng: np.random.Generator, start: Inputs) -> None:
    """Change a pair at random, and keep changes that increase the distance of the outputs."""
    size = _MOVES_PER_CALL if probe.batched else 1
    here, value = start, float(probe.distances([start])[0])
    last, idle = probe.evaluations, 0
    # Inputs evaluated before cost no call. If all are known, only this limit ends the search.
    while idle < _MAX_IDLE_MOVES:
        idle = idle + 1 if probe.evaluations == last else 0
        last = probe.evaluations
        if space.neighbour is None:
            tried = space.draw_pairs(rng, size)
        else:
            pair = Pair(*here)
            proposed = [space.neighbour.move(pair, space.domain, rng) for _ in range(size)]
            tried = [(p.x, p.x_prime) for p in proposed if space.holds(p.x, p.x_prime)]
        if not tried:
            continue
        gaps = probe.distances(tried)
        best = int(np.argmax(gaps))
        if gaps[best] >= value:
            here, value = tried[best], float(gaps[best])


class _Objective:
    """Minus the distance of f(x) and f(x'), as a function of the scaled entries of x and x'."""

    def __init__(self, probe: Probe, space: Pairs, rng: np.random.Generator) -> None:
        self.probe, self.space = probe, space
        self.low, self.width = space.estimate_lows_and_widths(rng)

    def point_to_pair(self, scaled: Floats) -> Inputs | None:
        """Return the pair (x, x') at a point of the optimiser, or None if it is not allowed."""
        x, x_prime = (self.low + side * self.width for side in np.split(scaled, 2))
        return self.space.fit(x, x_prime)

    def pair_to_point(self, pair: Inputs) -> Floats:
        """Return the point of the optimiser that corresponds to a pair."""
        return np.concatenate([(np.asarray(side) - self.low) / self.width for side in pair])

    def __call__(self, scaled: Floats) -> float:
        """Return minus the distance of f(x) and f(x'), or 0 if x and x' are not neighbours."""
        pair = self.point_to_pair(scaled)
        return 0.0 if pair is None else -min(float(self.probe.distances([pair])[0]), _MAX_OBJECTIVE)

    def slope(self, scaled: Floats) -> Floats:
        """Compute the gradient by difference quotients, with inward steps at the boundary."""
        value = self(scaled)
        slope = np.zeros(scaled.size)
        places = np.arange(scaled.size)
        for step in (_DIFFERENCE_STEP, -_DIFFERENCE_STEP):
            moved = scaled + step * np.eye(scaled.size)[places]
            pairs = [(n, pair) for n, row in zip(places, moved, strict=True)
                     if (pair := self.point_to_pair(row)) is not None]  # fmt: skip
            if not pairs:
                continue
            gaps = self.probe.distances([pair for _, pair in pairs])
            # If f is not defined there, the slope is 0. The other direction may have a slope.
            slopes = np.where(gaps < 0.0, value, -np.minimum(gaps, _MAX_OBJECTIVE))
            slope[[n for n, _ in pairs]] = (slopes - value) / step
            places = np.flatnonzero(slope == 0.0)
            if places.size == 0:
                break
        return slope


def widen_gap_by_scipy(probe: Probe, space: Pairs, rng: np.random.Generator, start: Inputs) -> None:
    """Maximise norm(f(x) - f(x')) by L-BFGS-B of scipy, from `start` and from random pairs.

    If inputs have few coordinates, differential evolution and Powell's method are used too. The
    object `probe` calls f and stores the best pair.

    Source:
        Byrd, Lu, Nocedal and Zhu (1995); Storn and Price (1997); Powell (1964).
    """
    from scipy.optimize import Bounds, differential_evolution, minimize

    objective = _Objective(probe, space, rng)
    size = 2 * objective.low.size
    few, bounds = size <= _MAX_EVOLVED_COORDINATES, Bounds(np.zeros(size), np.ones(size))
    starts = [start, *space.draw_pairs(rng, _RANDOM_STARTS)]
    begins = [np.clip(objective.pair_to_point(pair), 0.0, 1.0) for pair in starts]
    with probe.limit_calls("scipy (L-BFGS-B)", 0.4 if few else 1.0):
        for begin in begins:
            minimize(objective, begin, jac=objective.slope, method="L-BFGS-B", bounds=bounds)
    if few:
        # Inputs evaluated before cost no call, so the number of calls may not end the evolution.
        most = 1 + probe.calls_left // (_EVOLUTION_POPULATION * size)
        with probe.limit_calls("scipy (differential evolution)", 0.7):
            size_of = {"maxiter": most, "popsize": _EVOLUTION_POPULATION}
            differential_evolution(objective, bounds, seed=rng, polish=False, **size_of)
        with probe.limit_calls("scipy (Powell)", 1.0):
            minimize(objective, begins[0], method="Powell", bounds=bounds)


def widen_gap_by_torch(
    probe: Probe, space: Pairs, rng: np.random.Generator, module: ModuleCalls, start: Inputs
) -> None:
    """Maximise norm(f(x) - f(x')) by gradient ascent, from `start` and from random pairs.

    The object `probe` calls f and stores the best pair.
    """
    width = space.estimate_lows_and_widths(rng)[1]
    for here in [start, *space.draw_pairs(rng, _RANDOM_STARTS)]:
        _ascend_gap_gradient(probe, space, module, here, width)


def _ascend_gap_gradient(
    probe: Probe, space: Pairs, module: ModuleCalls, here: Inputs, width: Floats
) -> None:
    value, step = float(probe.distances([here])[0]), _FIRST_GRADIENT_STEP
    while step > _LAST_GRADIENT_STEP:
        # A gradient costs about as much as the two calls that it differentiates.
        probe.count_outside_calls(2)
        try:
            slopes = [slope * width for slope in module.gradients_of_gap_norm(*here, probe.norm)]
        except probe.catch:
            return
        largest = max(float(np.abs(slope).max()) for slope in slopes)
        if not 0.0 < largest < np.inf:
            return
        while step > _LAST_GRADIENT_STEP:
            x, x_prime = (
                np.asarray(side) + step * width * slope / largest
                for side, slope in zip(here, slopes, strict=True)
            )
            pair = space.fit(x, x_prime)
            if pair is not None and (gap := float(probe.distances([pair])[0])) > value:
                here, value, step = pair, gap, 2.0 * step
                break
            step /= 2.0


def is_torch_module(f: Callable[..., Any]) -> bool:
    """Return True if f is a torch module, without importing torch."""
    torch = get_loaded_module("torch")
    return torch is not None and isinstance(f, torch.nn.Module)


class ModuleCalls:
    """Function that calls a torch module f on numpy arrays; it also computes gradients."""

    def __init__(self, module: Any, rows: bool) -> None:
        # torch is imported already, because the module exists.
        torch = get_loaded_module("torch")
        self._torch = torch
        self._module = module
        self._rows = rows
        parameter = next((p for p in module.parameters() if p.is_floating_point()), None)
        self._dtype = torch.float64 if parameter is None else parameter.dtype
        self._device = "cpu" if parameter is None else parameter.device
        self.__qualname__ = type(module).__qualname__
        self.__module__ = type(module).__module__

    def __call__(self, x: npt.NDArray[Any]) -> Any:
        """Return the module's output, without gradients."""
        with self._torch.no_grad():
            answer = self._module(self._array_to_tensor(x))
        return answer.double() if isinstance(answer, self._torch.Tensor) else answer

    def gradients_of_gap_norm(self, x: Floats, x_prime: Floats, norm: str) -> tuple[Floats, Floats]:
        """Compute the gradients of norm(f(x) - f(x')) in x and in x', where f is the module."""
        tensors = [self._array_to_tensor(side).requires_grad_() for side in (x, x_prime)]
        inputs = [side[None] for side in tensors] if self._rows else tensors
        apart = self._module(inputs[0]) - self._module(inputs[1])
        order = {"l1": 1.0, "l2": 2.0, "linf": float("inf")}[norm]
        if not apart.requires_grad:
            return np.zeros(x.shape), np.zeros(x.shape)
        gap = self._torch.linalg.vector_norm(apart.reshape(-1), order)
        gradients = self._torch.autograd.grad(gap, tensors, allow_unused=True)
        zeros = np.zeros(x.shape)
        slopes = [zeros if g is None else g.detach().cpu().double().numpy() for g in gradients]
        return slopes[0], slopes[1]

    def _array_to_tensor(self, x: npt.NDArray[Any]) -> Any:
        return self._torch.tensor(np.asarray(x), dtype=self._dtype, device=self._device)
