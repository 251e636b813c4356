"""The common part of all searches of a pair: checked, counted calls of f, and the best pair."""

from __future__ import annotations

import contextlib
import math
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import invalid, masked, mistyped, show
from ..mechanisms.callables import dotted_name
from ..pairs import distance
from ..pairs.norms import Norm
from ..records import Pair
from ._rows import Floats, row_lengths

Inputs = tuple[Any, Any]
"""Two inputs of f, neighbours of the domain."""

Catch = type[Exception] | tuple[type[Exception], ...]

_CACHE_ENTRIES: Final = 2**22
"""Numbers kept of past inputs and outputs (32 MB): a search asks for the same input repeatedly."""

_PAIRING_WORK: Final = 5 * 10**7
"""Differences taken to find the two outputs that are farthest apart: half a second of numpy."""

_BATCH_TOLERANCE: Final = 1e-6
"""Relative difference allowed between two calls on one input: rows in a batch round otherwise."""


class Spent(Exception):
    """The signal that a part of the search has used its allowance."""


class Done(Exception):
    """The signal that the claim is refuted and the search can end."""


class Probe:
    """The calls of f within a budget, and the pair with the largest distance of outputs."""

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
        self._rows = rows
        # Two calls are kept back: the best pair is evaluated anew before it is reported.
        self._limit = trials - 2
        self._shape: tuple[int, ...] | None = None
        self._cache: OrderedDict[Hashable, Floats | None] = OrderedDict()

    @property
    def left(self) -> int:
        """Calls that the present part of the search may still make."""
        return self._limit - self.evaluations

    @property
    def batched(self) -> bool:
        """True if one call of f takes many inputs."""
        return self._rows

    @contextlib.contextmanager
    def allowance(self, method: str, share: float) -> Iterator[None]:
        """Limit a part of the search to a share of the calls that are left, then end it."""
        outer, label = self._limit, self.method
        self.method = method
        self._limit = self.evaluations + int(share * self.left)
        with contextlib.suppress(Spent):
            yield
        self._limit, self.method = outer, label

    def spend(self, calls: int) -> None:
        """Count calls of f that were not made through this object."""
        if calls > self.left:
            raise Spent
        self.evaluations += calls

    def outputs(self, inputs: Sequence[Any]) -> Floats:
        """Return outputs of f, flattened, shape `(len(inputs), m)`; known outputs are cached.

        Rows of NaN stand for inputs on which f raised what is caught.
        """
        keys = [_input_key(x) for x in inputs]
        known = {key: self._cache[key] for key in keys if key in self._cache}
        wanted = {key: x for key, x in zip(keys, inputs, strict=True) if key not in known}
        if len(wanted) > self.left:
            raise Spent
        known.update(zip(wanted, self._call(list(wanted.values())), strict=True))
        for key in dict.fromkeys(keys):
            self._cache[key] = known[key]
            self._cache.move_to_end(key)
        undefined = np.full(math.prod(self._shape or (1,)), np.nan)
        rows = np.stack([undefined if (row := known[key]) is None else row for key in keys])
        most = max(2, _CACHE_ENTRIES // (rows.shape[1] + np.size(inputs[0])))
        while len(self._cache) > most:
            self._cache.popitem(last=False)
        return rows

    def gaps(self, pairs: Sequence[Inputs]) -> Floats:
        """Compute the distance of f(x) and f(x') for each pair, and remember the largest."""
        both = self.outputs([side for pair in pairs for side in pair])
        found = gaps_of(both[::2], both[1::2], self.norm)
        place = int(np.argmax(found))
        self._note(float(found[place]), *pairs[place])
        return found

    def farthest(self, points: Sequence[Any], most: int) -> list[Inputs]:
        """Return the pairs of points with the most distant outputs, the most distant first."""
        values = self.outputs(points)
        # All pairs of fewer points where a difference of two outputs is costly.
        room = int((_PAIRING_WORK / values.shape[1]) ** 0.5)
        values = values[: max(2, room)]
        ranked: list[tuple[float, int, int]] = []
        for place in range(len(values) - 1):
            away = gaps_of(values[place + 1 :], values[place], self.norm)
            other = int(np.argmax(away))
            ranked.append((float(away[other]), place, place + 1 + other))
        ranked.sort(reverse=True)
        found = [(points[i], points[j]) for _, i, j in ranked[:most]]
        if ranked:
            self._note(ranked[0][0], *found[0])
        return found

    def again(self, x: Any, x_prime: Any, expected: float) -> float:
        """Compute the distance again from two new calls, each on one input, with exact sums."""
        value, value_prime = self._call([x])[0], self._call([x_prime])[0]
        if value is None or value_prime is None:
            raise self._inconstant("an output and an exception from two calls on one input")
        found = distance(Pair(value, value_prime), self.norm)
        size = max(expected, float(np.abs(value).max()), float(np.abs(value_prime).max()))
        # An infinite distance is no number to compare: two finite outputs are as far apart.
        if np.isfinite(found) and abs(found - expected) > _BATCH_TOLERANCE * size:
            outcome = f"distances {expected:g} and {found:g} from two calls on one pair"
            raise self._inconstant(outcome)
        return found

    def _inconstant(self, outcome: str) -> ValueError:
        requirement = "a function of its input alone, without noise or memory"
        return ValueError(f"f ({self.name}) must be {requirement}, got {outcome}")

    def _note(self, gap: float, x: Any, x_prime: Any) -> None:
        if gap >= 0.0 and (self.best is None or gap > self.best[0]):
            self.best = (gap, x, x_prime, self.method)
            if gap > self.target:
                raise Done

    def _call(self, inputs: list[Any]) -> list[Floats | None]:
        self.evaluations += len(inputs)
        if not self._rows or not inputs:
            return [self._one(x) for x in inputs]
        batch = np.stack(inputs)
        try:
            answer = self.f(batch)
        except self.catch:
            # One of the rows is to blame, the others are not.
            return [None] if len(inputs) == 1 else [self._single(x) for x in inputs]
        rows = self._array(answer)
        if rows.ndim == 0 or len(rows) != len(inputs):
            shapes = f"({len(inputs)}, ...) for inputs of shape {batch.shape}"
            raise invalid(f"output of f ({self.name})", f"of shape {shapes}", rows.shape)
        return [self._checked(row, x) for row, x in zip(rows, inputs, strict=True)]

    def _single(self, x: Any) -> Floats | None:
        self.evaluations -= 1
        return self._call([x])[0]

    def _one(self, x: Any) -> Floats | None:
        try:
            answer = self.f(_copy_input(x))
        except self.catch:
            return None
        return self._checked(self._array(answer), x)

    def _array(self, answer: Any) -> npt.NDArray[Any]:
        if hasattr(answer, "detach"):
            answer = answer.detach().cpu()
        try:
            value = np.asarray(answer)
        except (TypeError, ValueError):
            value = np.asarray(None)
        if value.dtype.kind not in "buif" or value.size == 0 or masked(answer):
            raise mistyped(f"output of f ({self.name})", "a number or an array of them", answer)
        return value.astype(np.float64)

    def _checked(self, value: npt.NDArray[Any], x: Any) -> Floats:
        if self._shape is None:
            self._shape = value.shape
        if value.shape != self._shape:
            requirement = f"of shape {self._shape}, as on the first input"
            raise invalid(f"output of f ({self.name})", requirement, value.shape)
        if not np.isfinite(value).all():
            where = f"on x = {show(x)}"
            raise invalid(f"output of f ({self.name}) {where}", "finite", value)
        return value.reshape(-1)


def gaps_of(values: Floats, values_prime: Floats, norm: str) -> Floats:
    """Return the norm of each row's difference: inf beyond float64, -1 for NaN."""
    with np.errstate(over="ignore"):
        apart = values - values_prime
        missing = np.isnan(apart).any(axis=1)
        apart[missing] = 0.0
        return np.where(missing, -1.0, row_lengths(apart, norm))


def _copy_input(x: Any) -> Any:
    # f may write into its input; the search still needs it.
    return x.copy() if isinstance(x, np.ndarray) else x


def _input_key(x: Any) -> Hashable:
    if isinstance(x, np.ndarray):
        # The bytes of an object array are addresses.
        content = tuple(map(_input_key, x.ravel())) if x.dtype.hasobject else x.tobytes()
        return x.dtype.str, x.shape, content
    if isinstance(x, (list, tuple)):
        return type(x), tuple(map(_input_key, x))
    try:
        hash(x)
    except TypeError:
        # Not to be told apart from others: never the same twice.
        return object()
    return type(x), x
