"""Division of an audit's draws into tasks for workers, and collection of the results.

A trial is one output on x and one output on x'. A block is a fixed number of consecutive trials. A
shard is a run of consecutive whole blocks, which one worker draws. The result of a shard is a few
sums. Therefore the counts do not depend on which worker draws a shard, on the order in which
results arrive, or on the lengths of shards. The length of a shard is chosen by the time that
earlier shards took.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import choice, integer, invalid, mistyped
from ..events import event_of
from ..events.event import Ballot, Event
from ..mechanisms.answers import join_outputs, read_item_types, rows_to_objects
from ..mechanisms.callables import one_by_one, torch_threads
from ..mechanisms.declarations import is_native, mechanism_attribute
from ..report.shown import name_of
from ..streams import COUNT, PROBE, reseed_a_forked_child
from . import replay
from .rows import WAY_TO_DRAW, Calls, Same, probe_calls, same_rows
from .sources import CallableDraws, Course, NativeDraws, Place
from .tally import Tally, TallyRows, Watch
from .workers import LostError, Workers, workers_of

Range = tuple[int, int]
"""First trial and end of a run of trials."""
Edge = list[Any]
"""Block by which a changed mechanism is recognized: its number and, for each side, hits, NaN and a
digest. It is made of lists, as in JSON."""

SHORT_SHARD_SECONDS: Final = 0.5
"""Time of a shard in this process, and of the shortest shard sent elsewhere. Ctrl-C waits for
it."""
_LONG_SHARD_SECONDS: Final = 30.0
_SHARDS_PER_WORKER: Final = 4
"""The rest of a worker's trials is divided by this number, so that the last shards are short."""
_SECONDS_PER_RESULT: Final = 0.001
"""Time of the driver for one returned shard. If shards are shorter than this times the number of
workers, workers wait."""
_MAX_GROWTH: Final = 32
"""Largest ratio of a shard's length to the longest timed shard."""
_PACE_WEIGHT: Final = 0.5
"""Weight of the latest shard in the estimated time of a trial."""
_MAX_KEPT_RESULTS: Final = 64
"""Number of block results that a worker keeps before it adds them up."""
_MAX_LOSSES: Final = 3
"""Number of times that a single block may be lost with its worker."""
_COMPARED_ROWS: Final = 2**12
_COMPARED_ANSWERS: Final = 2
_COMPARED_BLOCK_NUMBER: Final = 2**21
"""Number of outputs, and the number of their block, for comparing the bits of two machines."""
_SHORT_CALLS = 5
"""Purpose number of calls that are only compared with each other."""


class Task(NamedTuple):
    """Task for a worker: a shard (a run of consecutive trials on x and x') to draw.

    Args:
        purpose: purpose of the draws.
        first: first trial.
        end: number after the last trial. `first` and `end` are edges of blocks, except at the first
            and the last trial of the audit.
        origin: first trial of the audit.
        last: end of the trials of the audit. The last block of a Python callable ends here.
        needed: numbers of rows on x and on x' that are compared to detect repeated blocks, see
            `Replays.needed`.
        zeros: only digests that begin with this number of zero bits are kept, see `Replays`.
        losses: number of workers that died while they drew this shard.
    """

    purpose: int
    first: int
    end: int
    origin: int
    last: int
    needed: tuple[float, float] = (0.0, 0.0)
    zeros: int = 0
    losses: int = 0


class Step(NamedTuple):
    """Digests of the outputs of one block, which are compared with each earlier block.

    Args:
        number: number of the block.
        turns: 0 for the input (x or x') that was drawn first, 1 for the other input.
        marks: digests of the outputs on x and on x', by which repeated outputs are recognized.
    """

    number: int
    turns: tuple[int, int]
    marks: tuple[replay.Mark, replay.Mark]


@dataclass(slots=True)
class Shard:
    """Result of a worker for a shard (a run of consecutive trials on x and x').

    Args:
        first: first trial.
        end: end of the trials.
        sides: results on x and on x': either one sum, or a list with one result per block.
        steps: digests of the first blocks of an audit, which are compared with each earlier block.
        digests: digest, side (0 for x, 1 for x') and block number for the other blocks whose digest
            is kept.
        calls: number of calls of the mechanism.
        same: for each call with constant columns (equal in all rows): its side and these columns.
        made: number of outputs drawn.
        seconds: time that the worker took for the shard, in seconds.
        edges: for the first and the last block: the block number and, on each side, the hits, the
            number of NaN and a digest of some outputs. Empty if no event was counted.
    """

    first: int
    end: int
    sides: tuple[Any, Any]
    steps: list[Step] = field(default_factory=list)
    digests: list[tuple[bytes, int, int]] = field(default_factory=list)
    calls: int = 0
    same: list[tuple[int, Same]] = field(default_factory=list)
    made: int = 0
    seconds: float = 0.0
    edges: list[Edge] = field(default_factory=list)


def unite_ranges(
    first: tuple[Range, ...], second: tuple[Range, ...], name: str = "trials of the second audit"
) -> tuple[Range, ...]:
    """Unite two sets of ranges of trials; return disjoint ranges in increasing order.

    Raises:
        ValueError: if a trial is in both sets.
    """
    joined: list[Range] = []
    for start, stop in sorted(first + second):
        if joined and start < joined[-1][1]:
            raise invalid(name, f"disjoint from {first}", second)
        if joined and start == joined[-1][1]:
            joined[-1] = (joined[-1][0], stop)
        else:
            joined.append((start, stop))
    return tuple(joined)


@dataclass(frozen=True, slots=True)
class Done:
    """Set of trials that were counted so far, with their counts.

    Args:
        ranges: ranges of trials, disjoint and in increasing order.
        sides: counts on x and on x'.
    """

    ranges: tuple[Range, ...] = ()
    sides: tuple[Tally, Tally] = field(default_factory=lambda: (Tally(), Tally()))

    def plus(self, shard: Shard) -> Done:
        """Return the union of the counted trials and a shard, with the sum of the counts."""
        return self.joined(Done(((shard.first, shard.end),), shard.sides))

    def joined(self, other: Done) -> Done:
        """Return the union of two sets of counted trials, with the sum of their counts."""
        ranges = unite_ranges(self.ranges, other.ranges, "trials of a part")
        own_side, other_side = (a + b for a, b in zip(self.sides, other.sides, strict=True))
        return Done(ranges, (own_side, other_side))

    @property
    def counts(self) -> list[Any]:
        """Hits (outputs in the event) and number of NaN, on x and on x'."""
        return [(side.hits, side.nan) for side in self.sides]

    @property
    def trials(self) -> int:
        """Number of trials per side."""
        return sum(stop - start for start, stop in self.ranges)

    def left(self, start: int, stop: int) -> list[Range]:
        """List the ranges of trials in [start, stop) that are not counted yet."""
        edges = [start, *(edge for pair in self.ranges for edge in pair), stop]
        gaps = zip(edges[::2], edges[1::2], strict=True)
        return [(max(start, a), min(stop, b)) for a, b in gaps if max(start, a) < min(stop, b)]


@dataclass(frozen=True, slots=True)
class Votes:
    """Count of an event of a native mechanism in the compiled core, without storing outputs.

    Args:
        ballot: the event, a majority vote of the entries of an output between x and x'.
        route: name of the algorithm with which the core counts.
        threads: number of threads for one task.
    """

    ballot: Ballot
    route: str
    threads: int

    def count(self, draws: NativeDraws, task: Task) -> tuple[Tally, Tally]:
        """Count the event in the trials of a task, on x and on x'."""
        sides = []
        trials, which = task.end - task.first, (task.first, task.end)
        vote = self.ballot.threshold, self.ballot.towards
        for side in (0, 1):
            what, point, names = draws.place(task.purpose, side)
            votes, nan = _core.count(what, point, *vote, names, which, self.route, self.threads)
            sides.append(Tally(trials, (self.ballot.hits(votes, trials),), nan))
        return sides[0], sides[1]


def keep_outputs(outputs: npt.NDArray[Any], start: int) -> npt.NDArray[Any]:
    """Return the outputs unchanged, for draws to which an attack is fitted."""
    return outputs


def digest_bits(draws: Any) -> str:
    """Return a digest of some outputs, to test if two machines draw the same bits.

    The digest is empty for the compiled core, and for draws that the seed does not repeat.
    """
    if draws.native or not draws.same_bits:
        return ""
    rows = _COMPARED_ANSWERS if one_by_one(draws.mechanism) else min(draws.block, _COMPARED_ROWS)
    rows_of_block = replay.encode_rows(
        draws.draw(PROBE, 0, Place(_COMPARED_BLOCK_NUMBER, rows, 0, rows))
    )
    return (
        ""
        if rows_of_block is None
        else hashlib.blake2b(rows_of_block.tobytes(), digest_size=16).hexdigest()
    )


def list_places(task: Task, block: int) -> list[Place]:
    """List the blocks that contain the trials of a task, with the first and last trial in each."""
    last = task.last if task.purpose == COUNT else task.end
    places, start = [], task.first
    while start < task.end:
        number = start // block
        origin = number * block
        end = min(task.end, origin + block)
        places.append(Place(number, min(block, last - origin), start - origin, end - origin))
        start = end
    return places


def draw_shard(draws: Any, work: Any, task: Task) -> Shard:
    """Draw the blocks of a shard, and apply `work` to the outputs of each block.

    Args:
        draws: object that draws one block.
        work: function that returns a result from the outputs of a block and the number of its first
            trial. If `work` has a method `join`, which adds results, the shard has one sum on x and
            one on x'. Otherwise it has one result per block.
        task: the shard.
    """
    reseed_a_forked_child()
    begun = time.perf_counter()
    if isinstance(work, Votes):
        shard = Shard(task.first, task.end, work.count(draws, task))
        shard.made = 2 * (task.end - task.first)
    else:
        shard = Shard(task.first, task.end, ([], []))
        # Outputs that are only counted may stay on the device.
        held = task.purpose == COUNT and isinstance(work, TallyRows)
        join = getattr(work, "join", None)
        with torch_threads(draws.mechanism):
            for place in list_places(task, draws.block):
                _draw_block(draws, work, task, place, held, shard)
                if join is not None and len(shard.sides[0]) >= _MAX_KEPT_RESULTS:
                    shard.sides = [join(shard.sides[0])], [join(shard.sides[1])]
        if join is not None:
            shard.sides = join(shard.sides[0]), join(shard.sides[1])
    shard.seconds = time.perf_counter() - begun
    return shard


def _draw_block(draws: Any, work: Any, task: Task, place: Place, held: bool, shard: Shard) -> None:
    """Draw a block on x and x', and add its results to the shard."""
    turns, marks = [0, 0], [replay.NO_MARK, replay.NO_MARK]
    parts: list[list[Any]] = [[], []]
    marked = not draws.native and place.first == 0
    for turn, (side, outputs) in enumerate(draws.draw_both(task.purpose, place, held)):
        # The outputs are used before the next call, which may fill the same buffer.
        turns[side] = turn
        if marked:
            marks[side] = replay.mark_of(outputs, task.needed[side], task.purpose != COUNT)
        if not draws.native:
            shard.calls += 1
            same = same_rows(outputs)
            if same is not None:
                shard.same.append((side, same))
        result = work(outputs, place.number * draws.block + place.first)
        shard.sides[side].append(result)
        if isinstance(result, Tally):
            digest = marks[side].digests.get(max(marks[side].digests, default=0), b"")
            parts[side] = [list(result.hits), result.nan, digest.hex()]
        shard.made += place.end - place.first if draws.native else place.size
    if parts[0]:
        shard.edges[1:] = [[place.number, parts]]
    if not marked:
        return
    if place.number - task.origin // draws.block < replay.MOST_FOLLOWED:
        shard.steps.append(Step(place.number, (turns[0], turns[1]), (marks[0], marks[1])))
    else:
        for side in (0, 1):
            digest = marks[side].digest(task.needed[side])
            if digest is not None and replay.begins_with_zeros(digest, task.zeros):
                shard.digests.append((digest, side, place.number))


@dataclass
class Pace:
    """Time per trial, estimated from earlier shards, from which the lengths of shards are chosen.

    Args:
        seconds: time of one worker for a trial on x and x', in seconds; 0 before a shard was timed.
        longest: largest number of trials in a timed shard.
    """

    seconds: float = 0.0
    longest: int = 0

    def see(self, shard: Shard) -> None:
        """Update the estimate by the time of a finished shard."""
        trials = shard.end - shard.first
        # The first shard includes the warm-up.
        weight = _PACE_WEIGHT if self.longest > 0 else 1.0
        self.seconds += weight * (shard.seconds / trials - self.seconds)
        self.longest = max(self.longest, trials)

    def shard_trials(self, left: int, workers: int, block: int, travels: bool) -> int:
        """Compute the number of trials of the next shard, in whole blocks.

        Args:
            left: number of trials that are not part of a shard yet.
            workers: number of workers.
            block: number of trials in a block.
            travels: True for workers in other processes. Workers in this process get short shards.
        """
        if self.seconds <= 0.0 or self.longest == 0:
            return block
        each = left * self.seconds / workers
        seconds = max(each / _SHARDS_PER_WORKER, min(SHORT_SHARD_SECONDS, each))
        most = _LONG_SHARD_SECONDS if travels else SHORT_SHARD_SECONDS
        if travels:
            seconds = max(seconds, _SECONDS_PER_RESULT * workers)
        if not travels and workers > 1:
            seconds = each / _SHARDS_PER_WORKER
        trials = min(min(seconds, most) / self.seconds, _MAX_GROWTH * max(block, self.longest))
        return max(1, int(trials) // block) * block


@dataclass
class Source:
    """Source of the draws of an audit on x and x', with the workers that draw them.

    Args:
        draws: object that draws one block.
        threads: number of threads of this process. For an executor whose number of workers is
            unknown, this number of workers is assumed.
        end: end of the counted trials. The last block of a Python callable ends there too, so that
            a slow mechanism draws no outputs that are not counted.
        executor: executor that draws the shards. Defaults to threads of this process.
        route: name of the algorithm with which the compiled core counts events.
        start: first counted trial.
        course: record of the steps of the audit, with their times and numbers of outputs.
        pace: estimated time per trial.
        replays: digests of the blocks that were drawn so far.
        worker_count: current number of workers.
    """

    draws: NativeDraws | CallableDraws
    threads: int
    end: int
    executor: Executor | None = None
    route: str = "callable"
    start: int = 0
    course: Course = field(default_factory=Course, repr=False)
    pace: Pace = field(default_factory=Pace, repr=False)
    replays: replay.Replays = field(default_factory=replay.Replays, repr=False)
    worker_count: int = 1
    _calls: Calls | None = field(default=None, repr=False)
    _waiting: dict[int, Step] = field(default_factory=dict, repr=False)
    _order: deque[int] = field(default_factory=deque, repr=False)

    @property
    def block(self) -> int:
        """Number of trials in a block."""
        return self.draws.block

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one output."""
        return self.draws.shape

    @property
    def elements(self) -> int:
        """Number of entries in one output."""
        return math.prod(self.shape)

    @property
    def name(self) -> str:
        """Name of the mechanism in error messages."""
        return "mechanism" if self.draws.native else name_of(self.draws.mechanism)

    @property
    def _way_to_draw(self) -> str:
        way: str = mechanism_attribute(self.draws.mechanism, "way_to_draw") or WAY_TO_DRAW
        return way

    def task(self, purpose: int, first: int, end: int) -> Task:
        """Make a task that draws the trials [first, end)."""
        run = (self.start, self.end) if purpose == COUNT else (0, end)
        needed = self.replays.needed(purpose, 0), self.replays.needed(purpose, 1)
        return Task(purpose, first, end, *run, needed, self.replays.zeros)

    def run(self, work: Any, purpose: int, todo: Sequence[Range]) -> Iterator[Shard]:
        """Draw ranges of trials, apply `work` to each block, and yield each finished shard.

        Args:
            work: function that is applied to the outputs of each block, see `draw_shard`.
            purpose: purpose of the draws.
            todo: ranges of trials, which begin at edges of blocks.

        Raises:
            ValueError: if a block repeats an earlier block, or if calls return equal rows that
                differ from call to call.
        """
        block, first = self.block, self.start // self.block if purpose == COUNT else 0
        self._waiting.clear()
        self._order = deque(
            number
            for start, stop in todo
            for number in range(
                start // block, min(-(-stop // block), first + replay.MOST_FOLLOWED)
            )
        )
        # Votes use their own threads.
        alone = self.executor is None and isinstance(work, Votes)
        threads = 1 if alone else self.threads
        with workers_of(self.executor, threads, digest_bits) as workers:
            yield from run_shards(self, workers, work, purpose, todo)

    def check(self, purpose: int, shard: Shard) -> None:
        """Compare the blocks of a shard with earlier blocks; raise an error on a repetition."""
        self.course.drew(shard.made)
        for digest, side, number in (*shard.digests, *self._list_followed_digests(purpose, shard)):
            # This is done on arrival, so that a run file has the digest of every block that it
            # counts.
            here = (purpose, side, number)
            self._refuse_replay(self.replays.find_earlier_digest(digest, here), here)
        self._waiting.update((step.number, step) for step in shard.steps)
        while self._order and self._order[0] in self._waiting:
            self._compare_step(purpose, self._waiting.pop(self._order.popleft()))
        if shard.calls:
            self._calls = self._calls or Calls(self.name, self._way_to_draw)
            self._calls.see(shard.calls, shard.same)

    def list_digests(self, ranges: tuple[Range, ...]) -> tuple[str, ...]:
        """List the stored digests of the blocks that overlap some ranges of trials."""
        return tuple(
            digest.hex()
            for start, stop in ranges
            for digest, (_, number) in self.replays.digests.items()
            if start < (number + 1) * self.block and number * self.block < stop
        )

    def _list_followed_digests(
        self, purpose: int, shard: Shard
    ) -> Iterator[tuple[bytes, int, int]]:
        """Yield digest, side and number of the blocks of `Shard.steps`, for counted draws."""
        for step in shard.steps if purpose == COUNT else ():
            for side in sorted((0, 1), key=step.turns.__getitem__):
                digest = step.marks[side].digest(self.replays.needed(COUNT, side))
                if digest is not None:
                    yield digest, side, step.number

    def _compare_step(self, purpose: int, step: Step) -> None:
        for side in sorted((0, 1), key=step.turns.__getitem__):
            here = (purpose, side, step.number)
            there = self.replays.earlier(here, step.marks[side], step.turns[side])
            self._refuse_replay(there, here)

    def _refuse_replay(self, there: replay.Where | None, here: replay.Where) -> None:
        if there is not None:
            seeded_by = mechanism_attribute(self.draws.mechanism, "seeded_by") or replay.SEEDED_BY
            raise replay.make_replay_error(self.name, there, here, seeded_by)

    def doubts(self) -> tuple[str, ...]:
        """Make a few short calls and list evidence that their outputs are not independent.

        Native mechanisms are not tested: the list is empty.

        Raises:
            ValueError: if all rows of one call are equal, all rows of another call are equal, and
                the rows of these two calls differ.
        """
        draws = self.draws
        # If each output has its own call, rows cannot share a call.
        if isinstance(draws, NativeDraws) or one_by_one(draws.mechanism):
            return ()

        def draw(side: int, number: int, rows: int) -> npt.NDArray[Any]:
            return draws.draw(_SHORT_CALLS, side, Place(number, rows, 0, rows))

        how = self._way_to_draw, mechanism_attribute(draws.mechanism, "seeded_by")
        return probe_calls(draw, self.name, self.end - self.start, self.block, *how)

    def outputs(
        self, purpose: int, start: int, stop: int
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Draw the trials [start, stop); return the outputs on x and the outputs on x'."""
        if isinstance(self.draws, NativeDraws):
            place = Place(0, stop, start, stop)
            self.course.drew(2 * (stop - start))
            own, other = (self.draws.draw(purpose, side, place, self.threads) for side in (0, 1))
            return own, other
        shards = list(self.run(keep_outputs, purpose, [(start, stop)]))
        shards.sort(key=lambda shard: shard.first)
        if not shards:
            return np.empty((0, *self.shape)), np.empty((0, *self.shape))
        own, other = (
            join_outputs([part for shard in shards for part in shard.sides[side]])
            for side in (0, 1)
        )
        return own, other

    def convert_for_attack(
        self, outputs: npt.NDArray[Any], outputs_prime: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return the pilot outputs on x and x' as arrays of the same type, to fit an attack.

        If outputs have different shapes, all later outputs of this source are arrays of objects.
        """
        draws, sides = self.draws, (outputs, outputs_prime)
        is_alike = (
            outputs.ndim > 1 or len({(s.dtype == object, read_item_types(s)) for s in sides}) == 1
        )
        in_shape = all(side.shape[1:] == self.shape for side in sides)
        if isinstance(draws, NativeDraws) or (in_shape and is_alike):
            return sides
        self.draws = replace(draws, shape=())
        return rows_to_objects(outputs), rows_to_objects(outputs_prime)

    def counted(
        self, event: Event, purpose: int, todo: Sequence[Range], watches: tuple[Watch, ...] = ()
    ) -> Iterator[Shard]:
        """Count an event on x and on x'; yield each shard, with its counts, when it is finished.

        For some events of native mechanisms, the compiled core counts without storing outputs.
        """
        ballot = event_of(event).ballot
        work: Votes | TallyRows
        if ballot is not None and self.draws.native and not watches:
            work = Votes(ballot, self.route, 1 if self.executor is not None else self.threads)
        else:
            origin = self.start if purpose == COUNT and not self.draws.native else None
            work = TallyRows(event, self.name, watches, origin, self.block)
        yield from self.run(work, purpose, todo)

    def tally(
        self, event: Event, purpose: int, start: int, stop: int, watches: tuple[Watch, ...] = ()
    ) -> tuple[Tally, Tally]:
        """Count an event on x and on x' in all trials of [start, stop)."""
        total = Tally(), Tally()
        for shard in self.counted(event, purpose, [(start, stop)], watches):
            for side, part in zip(total, shard.sides, strict=True):
                side += part
        return total


def _cut_shards(
    source: Source, workers: Workers, purpose: int, todo: Sequence[Range]
) -> Iterator[Task]:
    """Yield tasks for some ranges of trials; each length is chosen when the task is needed."""
    left = sum(stop - start for start, stop in todo)
    for start, stop in todo:
        while start < stop:
            suits = source.pace.shard_trials(left, workers.count, source.block, workers.travels)
            end = min(stop, start // source.block * source.block + suits)
            yield source.task(purpose, start, end)
            left, start = left - (end - start), end


def run_shards(
    source: Source, workers: Workers, work: Any, purpose: int, todo: Sequence[Range]
) -> Iterator[Shard]:
    """Give the shards of some ranges of trials to workers; yield the checked results.

    Results are yielded in the order in which they arrive.

    At any time, at most two shards per worker are handed out (one shard per worker until the first
    result arrives). If a worker dies, the shard that it was drawing is handed out again in two
    halves. If three workers die with the same single block, dpcore raises a RuntimeError.
    """
    new, again = _cut_shards(source, workers, purpose, todo), deque[Task]()
    flying: dict[Any, Task] = {}

    def hand_out() -> None:
        most = workers.depth if source.pace.longest else min(workers.depth, workers.count)
        while len(flying) < most:
            task = again.popleft() if again else next(new, None)
            if task is None:
                return
            flying[workers.submit(draw_shard, source.draws, work, task)] = task

    try:
        while True:
            hand_out()
            if not flying:
                return
            for handle in workers.wait(list(flying)):
                task = flying.pop(handle)
                try:
                    shard = workers.result(handle)
                except LostError as error:
                    again.extend(_split_lost_task(task, source, error))
                    continue
                if shard is None:
                    # The worker does not have the mechanism yet.
                    again.appendleft(task)
                    continue
                source.pace.see(shard)
                source.worker_count = workers.count
                source.check(purpose, shard)
                # New shards are handed out before the next result, so that no worker waits.
                if workers.travels:
                    hand_out()
                yield shard
    finally:
        workers.cancel(list(flying))


def _split_lost_task(task: Task, source: Source, error: LostError) -> list[Task]:
    """Return the two halves of a lost shard, or the same task if it has a single block.

    If a single block was lost three times, the function raises a RuntimeError.
    """
    blocks = -(-task.end // source.block) - task.first // source.block
    if blocks > 1:
        middle = (task.first // source.block + blocks // 2) * source.block
        return [task._replace(end=middle), task._replace(first=middle)]
    if task.losses + 1 >= _MAX_LOSSES:
        number = task.first // source.block
        raise RuntimeError(
            f"block {number} of {source.name} was lost {_MAX_LOSSES} times with its worker: {error}"
        ) from error
    return [task._replace(losses=task.losses + 1)]


def draw_again(audit: Any, side: str, start: int, size: int) -> npt.NDArray[Any]:
    """Draw again `size` outputs that an `Audit` counted, from trial `start` on."""
    choice("side", side, ("x", "x_prime"))
    start, size = integer("start", start, 0), integer("size", size, 0)
    if not any(low <= start and start + size <= high for low, high in audit.ranges):
        raise invalid("start, size", f"within the counted trials {audit.ranges}", (start, size))
    mechanism = audit.mechanism
    if not callable(mechanism):
        raise mistyped("mechanism", "the callable itself (JSON keeps its name)", mechanism)
    if audit.route == "timed":
        raise invalid("attack", "another than Timing: latencies do not repeat", audit.attack)
    if audit.randomness == "own":
        requirement = "of a mechanism whose outputs the seed repeats"
        raise invalid("audit", requirement, f"one of {audit.name}, which draws its own randomness")
    name = (mechanism, audit.pair, audit.seed, audit.block)
    draws: NativeDraws | CallableDraws
    draws = NativeDraws(*name) if is_native(mechanism) else CallableDraws(*name, audit.shape)
    task = Source(draws, 1, audit.end).task(COUNT, start, start + size)
    places = list_places(task, audit.block)
    parts = [draws.draw(COUNT, 0 if side == "x" else 1, place) for place in places]
    return join_outputs(parts) if parts else np.empty((0, *audit.shape))
