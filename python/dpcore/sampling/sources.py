"""Sources of an audit's draws: the compiled core, or a Python callable in blocks.

A source answers for a range of trials named by (purpose, start, stop), on both sides. Its answers
are a pure function of that name and of (seed, block), never of threads, slices or executors.

What changes from call to call (a warm-up, a cache, a clock) must not distinguish x from x': a
block's call on x and that on x' follow each other, and the seed says which one is the first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import vector
from ..events import event_of
from ..events.device_outputs import Held
from ..events.event import Ballot
from ..mechanisms.answers import join_outputs, rows_to_objects
from ..mechanisms.callables import name_of, one_by_one, torch_threads
from ..mechanisms.native import Native, describe_natively
from ..records import Pair
from ..streams import COUNT
from ..streams.generators import reseed_a_forked_child
from .calling import CallableDraws, Place
from .course import Course
from .replay import SEEDED_BY, Mark, Replays, make_replay_error, mark_of
from .rows import WAY_TO_DRAW, Calls, Same, probe_calls, same_rows
from .tally import Event, Tally, TallyRows, Watch

_WorkResult = TypeVar("_WorkResult")
Work = Callable[[npt.NDArray[Any], int], _WorkResult]
"""Work on one block: (its outputs, its first trial) -> anything."""

_SHORT_CALLS = 5
"""The purpose of calls that are only compared with each other."""
_TASKS_PER_THREAD = 4
"""Tasks a thread in one run: enough for an even load, few enough to cost nothing."""


class Draws(Protocol):
    """Draws of one block; an object that can be pickled if the mechanism can."""

    @property
    def mechanism(self) -> Any:
        """Mechanism that is sampled."""

    @property
    def block(self) -> int:
        """Trials in a block."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one output."""

    @property
    def native(self) -> bool:
        """True for draws of the compiled core."""

    def draw(self, purpose: int, side: int, place: Place) -> npt.NDArray[Any]:
        """Draw the requested rows of a block."""

    def draw_both(
        self, purpose: int, place: Place, held: bool = False
    ) -> Iterator[tuple[int, npt.NDArray[Any] | Held]]:
        """Yield each side and the wanted rows of its block, one call after the other."""


@dataclass(frozen=True)
class NativeDraws:
    """Draws of the compiled core."""

    mechanism: Native
    pair: Pair
    seed: int
    block: int
    native = True

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one output, which is that of the inputs."""
        return np.shape(self.pair.x)

    def place(self, purpose: int, side: int) -> tuple[Any, ...]:
        """Return the core's arguments: mechanism, input, names of the draws."""
        point = vector("x_prime" if side else "x", self.pair.x_prime if side else self.pair.x)
        draws = (self.seed, purpose, side, self.block)
        return describe_natively(self.mechanism, point.size), point, draws

    def draw(
        self, purpose: int, side: int, place: Place, threads: int = 1
    ) -> npt.NDArray[np.float64]:
        """Draw the requested rows of a block, shape `(end - first, dim)`."""
        description, point, draws = self.place(purpose, side)
        out = np.empty((place.end - place.first, point.size))
        start = place.number * self.block + place.first
        _core.sample(description, point, out, draws, start, threads)
        return out

    def draw_both(
        self, purpose: int, place: Place, held: bool = False
    ) -> Iterator[tuple[int, npt.NDArray[np.float64]]]:
        """Yield each side and the wanted rows of its block: the core keeps no state."""
        for side in (0, 1):
            yield side, self.draw(purpose, side, place)


class Step(NamedTuple):
    """One block done on one side.

    Args:
        number: of the block.
        turn: 0 if the side was the first of the two, else 1.
        made: outputs that were made.
        mark: digests by which repeated outputs are recognized.
        same: what all its rows share.
        result: of the work.
    """

    number: int
    turn: int
    made: int
    mark: Mark | None
    same: Same | None
    result: Any


def draw_blocks(
    draws: Draws,
    work: Work[Any],
    purpose: int,
    places: Sequence[Place],
    needed: tuple[float, float],
) -> list[tuple[Step, Step]]:
    """Draw some blocks and do the work on each: the task of a thread or a process.

    Args:
        draws: what draws one block.
        work: what is done with its outputs.
        purpose: of the draws.
        places: the wanted rows.
        needed: rows of a block on x and on x' that recognize it, see `Replays.needed`.

    Returns:
        Two steps a block, on x and on x'.
    """
    reseed_a_forked_child()
    # What is only counted need not leave the device.
    held = purpose == COUNT and isinstance(work, TallyRows)
    done = []
    with torch_threads(draws.mechanism):
        for place in places:
            found: list[Any] = [None, None]
            for turn, (side, outputs) in enumerate(draws.draw_both(purpose, place, held)):
                # Before the next call, which may fill the same buffer again.
                step = _make_step(draws, outputs, work, purpose, place, needed[side])
                found[side] = step._replace(turn=turn)
            done.append((found[0], found[1]))
    return done


def _make_step(
    draws: Draws,
    outputs: npt.NDArray[Any] | Held,
    work: Work[Any],
    purpose: int,
    place: Place,
    needed: float,
) -> Step:
    marked = not draws.native and place.first == 0
    mark = mark_of(outputs, needed, purpose != COUNT) if marked else None
    start = place.number * draws.block + place.first
    same = None if draws.native else same_rows(outputs)
    made = place.end - place.first if draws.native else place.size
    return Step(place.number, 0, made, mark, same, work(outputs, start))  # type: ignore[arg-type]


@dataclass
class Source:
    """Draws on both sides of a pair, and the threads or executor that make them.

    Args:
        draws: what draws one block.
        threads: workers.
        end: where the run of counted trials ends: a callable's last block is as short as that
            makes it, so that a slow mechanism makes no outputs that are not counted.
        executor: runs the blocks instead of the source's own threads.
        route: how native votes are counted.
        start: where the run of counted trials begins.
        course: records all that is drawn.
    """

    draws: NativeDraws | CallableDraws
    threads: int
    end: int
    executor: Executor | None = None
    route: str = "callable"
    start: int = 0
    course: Course = field(default_factory=Course, repr=False)
    _replays: Replays = field(default_factory=Replays, repr=False)
    _calls: Calls | None = field(default=None, repr=False)

    @property
    def block(self) -> int:
        """Trials in a block."""
        return self.draws.block

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one output."""
        return self.draws.shape

    @property
    def elements(self) -> int:
        """Numbers in one output."""
        return math.prod(self.shape)

    @property
    def name(self) -> str:
        """Name of the mechanism in error messages."""
        return "mechanism" if self.draws.native else name_of(self.draws.mechanism)

    @property
    def _way_to_draw(self) -> str:
        way: str = getattr(self.draws.mechanism, "way_to_draw", WAY_TO_DRAW)
        return way

    def places(self, purpose: int, start: int, stop: int) -> list[Place]:
        """List the blocks, and parts of blocks, that make up the trials [start, stop)."""
        last = self.end if purpose == COUNT else stop
        found = []
        while start < stop:
            number = start // self.block
            origin = number * self.block
            end = min(stop, origin + self.block)
            found.append(
                Place(number, min(self.block, last - origin), start - origin, end - origin)
            )
            start = end
        return found

    def run(
        self, work: Work[_WorkResult], purpose: int, start: int, stop: int
    ) -> Iterator[tuple[_WorkResult, _WorkResult]]:
        """Do the work on every block of [start, stop), on x and on x', in the order of blocks."""
        places = self.places(purpose, start, stop)
        needed = self._replays.needed(purpose, 0), self._replays.needed(purpose, 1)
        tasks = [
            (self.draws, work, purpose, part, needed)
            for part in _split_places(places, self.threads)
        ]
        if self.executor is not None:
            futures = [self.executor.submit(draw_blocks, *task) for task in tasks]
            try:
                for future in futures:
                    yield from self._checked(purpose, future.result())
            finally:
                for future in futures:
                    future.cancel()
        elif self.threads == 1 or len(tasks) <= 1:
            for task in tasks:
                yield from self._checked(purpose, draw_blocks(*task))
        else:
            with ThreadPoolExecutor(self.threads) as pool:
                try:
                    for steps in pool.map(draw_blocks, *zip(*tasks, strict=True)):
                        yield from self._checked(purpose, steps)
                except BaseException:
                    pool.shutdown(cancel_futures=True)
                    raise

    def _checked(self, purpose: int, steps: list[tuple[Step, Step]]) -> Iterator[tuple[Any, Any]]:
        """Yield the results; raise an error if a block repeats an earlier one."""
        for sides in steps:
            for side, step in sorted(enumerate(sides), key=lambda one: one[1].turn):
                self._check(purpose, side, step)
            yield sides[0].result, sides[1].result

    def _check(self, purpose: int, side: int, step: Step) -> None:
        self.course.drew(step.made)
        here = (purpose, side, step.number)
        there = None if step.mark is None else self._replays.earlier(here, step.mark, step.turn)
        if there is not None:
            seeded_by = getattr(self.draws.mechanism, "seeded_by", SEEDED_BY)
            raise make_replay_error(self.name, there, here, seeded_by)
        if not self.draws.native:
            self._calls = self._calls or Calls(self.name, self._way_to_draw)
            self._calls.see(side, step.same)

    def doubts(self) -> tuple[str, ...]:
        """List evidence of a few short calls against independent rows; native draws need none.

        Raises:
            ValueError: if one output stands in all rows of a call, another in those of another.
        """
        draws = self.draws
        # Where each output has a call of its own, no call is shared.
        if isinstance(draws, NativeDraws) or one_by_one(draws.mechanism):
            return ()

        def draw(side: int, number: int, rows: int) -> npt.NDArray[Any]:
            return draws.draw(_SHORT_CALLS, side, Place(number, rows, 0, rows))

        trials = self.end - self.start
        seeded_by = getattr(draws.mechanism, "seeded_by", None)
        how = self._way_to_draw, seeded_by
        return probe_calls(draw, self.name, trials, self.block, *how)

    def outputs(
        self, purpose: int, start: int, stop: int
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Draw outputs of the trials [start, stop) on x and x', shape (stop - start, ...) each."""
        if isinstance(self.draws, NativeDraws):
            place = Place(0, stop, start, stop)
            self.course.drew(2 * (stop - start))
            one, other = (self.draws.draw(purpose, side, place, self.threads) for side in (0, 1))
            return one, other
        parts = list(self.run(_keep_outputs, purpose, start, stop))
        if not parts:
            return np.empty((0, *self.shape)), np.empty((0, *self.shape))
        one, other = (join_outputs(side) for side in zip(*parts, strict=True))
        return one, other

    def in_one_form(
        self, outputs: npt.NDArray[Any], outputs_prime: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return both sides of a pilot in the form in which an attack is fitted.

        Where rows of several shapes are among them, all outputs are objects from here on.
        """
        draws, sides = self.draws, (outputs, outputs_prime)
        if isinstance(draws, NativeDraws) or all(one.shape[1:] == self.shape for one in sides):
            return sides
        self.draws = replace(draws, shape=())
        return rows_to_objects(outputs), rows_to_objects(outputs_prime)

    def tally(
        self, event: Event, purpose: int, start: int, stop: int, watches: tuple[Watch, ...] = ()
    ) -> tuple[Tally, Tally]:
        """Count an event on x and on x'; a native vote is counted without making outputs."""
        ballot = event_of(event).ballot
        if ballot is not None and isinstance(self.draws, NativeDraws) and not watches:
            return (
                self._votes(self.draws, ballot, purpose, 0, start, stop),
                self._votes(self.draws, ballot, purpose, 1, start, stop),
            )
        watched = purpose == COUNT and not self.draws.native
        work = TallyRows(event, self.name, watches, self.start if watched else None)
        total = Tally(), Tally()
        for parts in self.run(work, purpose, start, stop):
            for side, part in zip(total, parts, strict=True):
                side += part
        return total

    def _votes(
        self, draws: NativeDraws, ballot: Ballot, purpose: int, side: int, start: int, stop: int
    ) -> Tally:
        description, point, names = draws.place(purpose, side)
        vote = (ballot.threshold, ballot.towards)
        trials, route = (start, stop), self.route
        votes, nan = _core.count(description, point, *vote, names, trials, route, self.threads)
        self.course.drew(stop - start)
        return Tally(stop - start, (ballot.hits(votes, stop - start),), nan)


def _keep_outputs(outputs: npt.NDArray[Any], start: int) -> npt.NDArray[Any]:
    return outputs


def _split_places(places: list[Place], threads: int) -> Iterator[list[Place]]:
    """Yield runs of blocks, a few for each thread; one block each if they are not shared out."""
    size = max(1, len(places) // (_TASKS_PER_THREAD * threads))
    for first in range(0, len(places), size):
        yield places[first : first + size]
