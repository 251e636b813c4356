"""Where an audit's draws come from: the compiled core, or a Python callable in blocks.

A source answers two questions, `outputs` (draw) and `count` (draw and count), both for a range
of trials named by (purpose, side, start, stop). Its answers are a pure function of that name and
of (seed, block), never of threads or slices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from . import _core
from .errors import invalid, mistyped, vector
from .events import Vote
from .mechanisms import Native
from .records import Pair
from .sampling import PILOT, describe

Event = Callable[[npt.NDArray[Any]], npt.NDArray[np.bool_]]
Tally = tuple[int, int]


class Source(Protocol):
    """Draws on both sides of a pair."""

    @property
    def elements(self) -> int:
        """Numbers in one output."""

    def outputs(self, purpose: int, side: int, start: int, stop: int) -> npt.NDArray[Any]:
        """Outputs of the trials [start, stop), shape (stop - start, ...)."""

    def count(self, event: Event, purpose: int, side: int, start: int, stop: int) -> Tally:
        """Trials in [start, stop) in which the event happened, and NaN entries of outputs."""


def count_rows(event: Event, outputs: npt.NDArray[Any], name: str) -> Tally:
    """Count an event on outputs, with a complaint that names the event or the mechanism."""
    if type(event) is Vote:
        values = vote_rows(event, outputs, name)
        votes, nan = _core.count_outputs(values, event.threshold, event.towards)
        return (votes if event.vote == "x_prime" else len(values) - votes), nan
    happened = np.asarray(event(outputs))
    if happened.dtype != np.bool_ or happened.shape != outputs.shape[:1]:
        requirement = f"a function that returns bools of shape ({len(outputs)},)"
        raise invalid("event", requirement, (str(happened.dtype), happened.shape))
    nan = int(np.isnan(outputs).sum()) if outputs.dtype.kind == "f" else 0
    return int(np.count_nonzero(happened)), nan


def vote_rows(event: Vote, outputs: npt.NDArray[Any], name: str) -> npt.NDArray[np.float64]:
    """Outputs as contiguous float64 rows of the vote's dimension."""
    dim = event.threshold.size
    if outputs.dtype.kind not in "buif":
        raise mistyped(f"outputs of {name}", "real numbers", outputs.dtype)
    if outputs.ndim == 1 and dim == 1:
        outputs = outputs[:, np.newaxis]
    if outputs.ndim != 2 or outputs.shape[1] != dim:
        raise invalid(f"outputs of {name}", f"of shape (size, {dim})", outputs.shape)
    return np.ascontiguousarray(outputs, dtype=np.float64)


@dataclass(frozen=True)
class NativeSource:
    """Draws of the compiled core."""

    mechanism: Native
    pair: Pair
    seed: int
    block: int
    threads: int
    route: str

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one output, which is that of the inputs."""
        return np.shape(self.pair.x)

    @property
    def elements(self) -> int:
        """Numbers in one output."""
        return math.prod(self.shape)

    def _place(self, purpose: int, side: int) -> tuple[Any, ...]:
        point = vector("x_prime" if side else "x", self.pair.x_prime if side else self.pair.x)
        draws = (self.seed, purpose, side, self.block)
        return describe(self.mechanism, point.size), point, draws

    def outputs(self, purpose: int, side: int, start: int, stop: int) -> npt.NDArray[Any]:
        """Outputs of the trials [start, stop), shape (stop - start, dim)."""
        description, point, draws = self._place(purpose, side)
        out = np.empty((stop - start, point.size))
        _core.sample(description, point, out, draws, start, self.threads)
        return out

    def count(self, event: Event, purpose: int, side: int, start: int, stop: int) -> Tally:
        """Count a vote without ever making outputs; any other event block by block."""
        if type(event) is not Vote:
            return self._count_outputs(event, purpose, side, start, stop)
        description, point, draws = self._place(purpose, side)
        vote = (event.threshold, event.towards)
        votes, nan = _core.count(
            description, point, *vote, draws, (start, stop), self.route, self.threads
        )
        return (votes if event.vote == "x_prime" else stop - start - votes), nan

    def _count_outputs(self, event: Event, purpose: int, side: int, start: int, stop: int) -> Tally:
        total = [0, 0]
        for first, end in blocks(start, stop, self.block):
            part = count_rows(event, self.outputs(purpose, side, first, end), "mechanism")
            total = [total[0] + part[0], total[1] + part[1]]
        return total[0], total[1]


def blocks(start: int, stop: int, block: int) -> Iterator[tuple[int, int]]:
    """The ranges into which block boundaries cut [start, stop)."""
    while start < stop:
        end = min(stop, (start // block + 1) * block)
        yield start, end
        start = end


@dataclass(frozen=True)
class CallableSource:
    """Draws of a Python callable, one call and one generator a block.

    The last block of a run is as short as the run's `end` makes it, so that a slow mechanism is
    not asked for outputs that nobody counts.
    """

    mechanism: Callable[..., Any]
    pair: Pair
    seed: int
    block: int
    threads: int
    shape: tuple[int, ...]
    end: int

    @property
    def elements(self) -> int:
        """Numbers in one output."""
        return math.prod(self.shape)

    def _draw(self, purpose: int, side: int, block: int, size: int) -> npt.NDArray[Any]:
        x = self.pair.x_prime if side else self.pair.x
        outputs = call(self.mechanism, x, size, generator(self.seed, purpose, side, block))
        if outputs.shape[1:] != self.shape:
            wanted = (size, *self.shape)
            name = f"outputs of {name_of(self.mechanism)}"
            raise invalid(name, f"of shape {wanted} in every call", outputs.shape)
        return outputs

    def _ranges(self, purpose: int, start: int, stop: int) -> Iterator[tuple[int, int, int, int]]:
        """(block, rows in its call, first row wanted, end of the rows wanted)."""
        last = stop if purpose == PILOT else self.end
        for first, end in blocks(start, stop, self.block):
            number = first // self.block
            origin = number * self.block
            yield number, min(self.block, last - origin), first - origin, end - origin

    def outputs(self, purpose: int, side: int, start: int, stop: int) -> npt.NDArray[Any]:
        """Outputs of the trials [start, stop), shape (stop - start, ...)."""
        parts = [
            self._draw(purpose, side, block, size)[first:end]
            for block, size, first, end in self._ranges(purpose, start, stop)
        ]
        return np.concatenate(parts) if parts else np.empty((0, *self.shape))

    def count(self, event: Event, purpose: int, side: int, start: int, stop: int) -> Tally:
        """Count an event block by block, on `threads` threads."""

        def one(place: tuple[int, int, int, int]) -> Tally:
            block, size, first, end = place
            outputs = self._draw(purpose, side, block, size)[first:end]
            return count_rows(event, outputs, name_of(self.mechanism))

        places = list(self._ranges(purpose, start, stop))
        if self.threads == 1 or len(places) == 1:
            counted = [one(place) for place in places]
        else:
            with ThreadPoolExecutor(self.threads) as pool:
                try:
                    counted = list(pool.map(one, places))
                except BaseException:
                    pool.shutdown(cancel_futures=True)
                    raise
        return sum(hits for hits, _ in counted), sum(nan for _, nan in counted)


def generator(seed: int, purpose: int, side: int, block: int) -> np.random.Generator:
    """The generator of one block of a Python callable."""
    sequence = np.random.SeedSequence(seed, spawn_key=(purpose, side, block))
    return np.random.Generator(np.random.PCG64(sequence))


def name_of(mechanism: Any) -> str:
    """What a report calls a mechanism that is not one of dpcore's."""
    name = getattr(mechanism, "__qualname__", None) or type(mechanism).__qualname__
    module = getattr(mechanism, "__module__", None)
    return name if module in (None, "__main__", "builtins") else f"{module}.{name}"


def call(
    mechanism: Callable[..., Any], x: Any, size: int, rng: np.random.Generator
) -> npt.NDArray[Any]:
    """One call of a Python mechanism; its own exceptions pass through untouched."""
    answer = mechanism(x, size, rng)
    try:
        outputs = np.asarray(answer)
    except (TypeError, ValueError):
        # Ragged rows, or a tensor that numpy cannot reach.
        raise mistyped(f"outputs of {name_of(mechanism)}", "an array", answer) from None
    if outputs.ndim == 0 or len(outputs) != size:
        requirement = f"an array with {size} rows, one per output"
        raise invalid(f"outputs of {name_of(mechanism)}", requirement, outputs.shape)
    return outputs
