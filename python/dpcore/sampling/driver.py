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
from ..mechanisms.answers import join_outputs, noted_row_types, rows_to_objects
from ..mechanisms.callables import is_unbatched, torch_threads
from ..mechanisms.declarations import can_core_draw, get_or_default
from ..report.shown import name_of
from ..streams import COUNT, PROBE, reseed_a_forked_child
from . import replay
from .rows import WAY_TO_DRAW, Calls, Constants, constant_columns, probe_calls
from .sources import CallableDraws, NativeDraws, Place, TimeLog
from .tally import Tally, TallyRows, Watch
from .workers import LostError, Workers, open_workers

Range = tuple[int, int]
"""Range of trials: number of the first trial, and number of the last trial plus 1."""
Edge = list[Any]
"""List that describes a block, to recognize a changed mechanism: the number of the block and, for x
and for x', the number of outputs in the event, the number of NaN, and a hash of some outputs."""

SHORT_SHARD_SECONDS: Final = 0.5
"""Planned duration in seconds of a shard (consecutive trials) in this process, and of the shortest
shard in another process. Ctrl-C waits until the shard ends."""
_LONG_SHARD_SECONDS: Final = 30.0
_SHARDS_PER_WORKER: Final = 4
"""The trials that are left are divided by this number, so that the last shards are short."""
_SECONDS_PER_RESULT: Final = 0.001
"""Time of the driver for one returned shard. Workers wait if a shard takes less than this time
multiplied by the number of workers."""
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
"""Numbers of outputs, and number of their block, to compare the bits of two machines."""
_SHORT_CALLS = 5
"""Purpose number of calls that are only compared with each other."""


class Task(NamedTuple):
    """Task for a worker: to draw a shard (consecutive trials of an audit).

    A trial is one output on x and one output on x'.

    Args:
        purpose: code of the purpose of the draws, such as 2 for counting.
        first: number of the first trial.
        end: number of the last trial plus 1. `first` and `end` are multiples of the number of
            trials in a block, except at the first and the last trial of the audit.
        origin: number of the first trial of the audit.
        last: number of the last trial of the audit plus 1. If the mechanism is a Python callable,
            the last block (the trials of one call) ends here.
        needed: number of outputs on x, and number of outputs on x', that are compared to detect a
            repeated block, see `Replays.rows_needed`.
        zeros: the hash of a block is kept only if the hash begins with this number of zero bits.
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
    """Hashes of the outputs of one block (one call on x and one call on x').

    The hashes are compared with the hashes of each earlier block, to detect repeated outputs.

    Args:
        number: position of the block in the audit, counted from 0.
        turns: one number for x and one number for x'. The number is 0 for the input on which
            outputs were drawn first, and 1 for the other input.
        marks: hashes of the outputs on x, and hashes of the outputs on x'.
    """

    number: int
    turns: tuple[int, int]
    marks: tuple[replay.Hashes, replay.Hashes]


@dataclass(slots=True)
class Shard:
    """Result of a worker for a shard (consecutive trials of an audit).

    A trial is one output on x and one output on x'.

    Args:
        first: number of the first trial.
        end: number of the last trial plus 1.
        sides: a pair, the result on x and the result on x'. Each result is the sum of the results
            of all blocks, or a list with one result for each block.
        steps: hashes of those blocks of the shard that are compared with each earlier block. Only
            the first blocks of an audit are compared in this way.
        digests: one item for each later block whose hash is kept. An item has the hash, 0 for x or
            1 for x', and the number of the block.
        calls: number of calls of the mechanism in which the shard was drawn.
        same: one item for each call in which some entries had the same value in all outputs. An
            item is a pair: 0 for a call on x or 1 for a call on x', and a description of these
            entries.
        made: number of outputs that the worker drew for the shard.
        seconds: time that the worker took for the shard, in seconds.
        edges: for the first and the last block, the number of the block, and facts for x and for
            x'. The facts are the number of outputs in the event, the number of NaN and a hash of
            some outputs. Empty if no event was counted.
    """

    first: int
    end: int
    sides: tuple[Any, Any]
    steps: list[Step] = field(default_factory=list)
    digests: list[tuple[bytes, int, int]] = field(default_factory=list)
    calls: int = 0
    same: list[tuple[int, Constants]] = field(default_factory=list)
    made: int = 0
    seconds: float = 0.0
    edges: list[Edge] = field(default_factory=list)


def unite_ranges(
    first: tuple[Range, ...], second: tuple[Range, ...], name: str = "trials of the second audit"
) -> tuple[Range, ...]:
    """Return the union of two sets of ranges of trials, as disjoint ranges in increasing order.

    Args:
        first: ranges, each as a pair: number of the first trial, number of the last trial plus 1.
        second: ranges in the same form. No trial may be in both sets.
        name: name of the second set in the error message.

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
    """Set of trials of an audit that were counted so far, and their counts.

    Args:
        ranges: the counted trials as disjoint ranges in increasing order. A range is a pair: number
            of the first trial, number of the last trial plus 1.
        sides: the counts on x, and the counts on x'.
    """

    ranges: tuple[Range, ...] = ()
    sides: tuple[Tally, Tally] = field(default_factory=lambda: (Tally(), Tally()))

    def add_shard(self, shard: Shard) -> Done:
        """Return a copy to which the trials and the counts of a shard are added.

        A shard is the result of a worker for consecutive trials.
        """
        return self.join_done(Done(((shard.first, shard.end),), shard.sides))

    def join_done(self, other: Done) -> Done:
        """Return the union of this set of counted trials and `other`, with the sum of counts."""
        ranges = unite_ranges(self.ranges, other.ranges, "trials of a part")
        own_side, other_side = (a + b for a, b in zip(self.sides, other.sides, strict=True))
        return Done(ranges, (own_side, other_side))

    @property
    def side_hits_and_nans(self) -> list[tuple[tuple[int, ...], int]]:
        """Number of outputs in the event, and number of NaN, for x and for x'."""
        return [(side.hits, side.nan) for side in self.sides]

    @property
    def trials(self) -> int:
        """Number of trials that were counted. A trial is one output on x and one output on x'."""
        return sum(stop - start for start, stop in self.ranges)

    def list_unfinished(self, start: int, stop: int) -> list[Range]:
        """List the ranges of trials from `start` to `stop - 1` that are not counted yet."""
        edges = [start, *(edge for pair in self.ranges for edge in pair), stop]
        gaps = zip(edges[::2], edges[1::2], strict=True)
        return [(max(start, a), min(stop, b)) for a, b in gaps if max(start, a) < min(stop, b)]


@dataclass(frozen=True, slots=True)
class Votes:
    """Settings with which the compiled core of dpcore counts an event without storing outputs.

    This is possible only for mechanisms that the compiled core draws.

    Args:
        ballot: the event that more entries of an output vote for x' than for x, or the reverse. The
            vote of an entry depends on whether the entry is above or below a threshold.
        route: name of the algorithm with which the core counts the event.
        threads: number of threads that one task uses.
    """

    ballot: Ballot
    route: str
    threads: int

    def count(self, draws: NativeDraws, task: Task) -> tuple[Tally, Tally]:
        """Count the event in the trials of a task, and return the counts on x and on x'."""
        sides = []
        trials, which = task.end - task.first, (task.first, task.end)
        vote = self.ballot.threshold, self.ballot.towards
        for side in (0, 1):
            what, point, names = draws.core_arguments(task.purpose, side)
            votes, nan = _core.count(what, point, *vote, names, which, self.route, self.threads)
            sides.append(Tally(trials, (self.ballot.majorities_for_event(votes, trials),), nan))
        return sides[0], sides[1]


def return_outputs_unchanged(outputs: npt.NDArray[Any], unused_start: int) -> npt.NDArray[Any]:
    """Return the outputs of a block unchanged.

    This function is used for outputs that are kept, for example to fit an attack.
    """
    return outputs


def digest_sample_outputs(draws: Any) -> str:
    """Return a hash of some outputs of a mechanism.

    If two machines return different hashes, they do not draw the same bits. The hash is "" for
    mechanisms that the compiled core draws, and for mechanisms that do not give the same outputs
    again with the same seed.

    Args:
        draws: object that draws blocks of outputs of the mechanism.
    """
    if draws.native or not draws.same_bits:
        return ""
    rows = _COMPARED_ANSWERS if is_unbatched(draws.mechanism) else min(draws.block, _COMPARED_ROWS)
    rows_of_block = replay.encode_rows(
        draws.draw(PROBE, 0, Place(_COMPARED_BLOCK_NUMBER, rows, 0, rows))
    )
    return (
        ""
        if rows_of_block is None
        else hashlib.blake2b(rows_of_block.tobytes(), digest_size=16).hexdigest()
    )


def list_places(task: Task, block: int) -> list[Place]:
    """List the blocks that contain the trials of a task, and the needed trials in each block.

    Args:
        task: the task.
        block: number of trials in a block.
    """
    last = task.last if task.purpose == COUNT else task.end
    places, start = [], task.first
    while start < task.end:
        number = start // block
        origin = number * block
        end = min(task.end, origin + block)
        places.append(Place(number, min(block, last - origin), start - origin, end - origin))
        start = end
    return places


def run_shard(draws: Any, work: Any, task: Task) -> Shard:
    """Draw the blocks of a shard (consecutive trials), and apply `work` to each block.

    Args:
        draws: object that draws the outputs of a block (consecutive trials, drawn by one call).
        work: function that takes the outputs of a block on x (or on x'), and the number of the
            first trial of the block. If `work` has a method `join`, the results of all blocks are
            added by `join`. Otherwise the returned `Shard` has one result for each block.
        task: the task, which states the trials of the shard.
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
    for turn, (side, outputs) in enumerate(draws.draw_block_by_side(task.purpose, place, held)):
        # The outputs are used before the next call, which may fill the same buffer.
        turns[side] = turn
        if marked:
            marks[side] = replay.hash_prefixes(outputs, task.needed[side], task.purpose != COUNT)
        if not draws.native:
            shard.calls += 1
            same = constant_columns(outputs)
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
            digest = marks[side].longest_prefix_hash(task.needed[side])
            if digest is not None and replay.begins_with_zeros(digest, task.zeros):
                shard.digests.append((digest, side, place.number))


@dataclass
class Pace:
    """Estimated time that a worker needs for one trial, computed from finished shards.

    A shard is a number of consecutive trials that one worker draws. The estimate determines the
    length of later shards.

    Args:
        seconds: estimated time of one worker for a trial (one output on x and one output on x'), in
            seconds. It is 0 before the first shard was timed.
        longest: largest number of trials in a timed shard.
    """

    seconds: float = 0.0
    longest: int = 0

    def record_shard(self, shard: Shard) -> None:
        """Update the estimated time per trial, with the measured time of a finished shard.

        A shard is a number of consecutive trials that one worker drew.
        """
        trials = shard.end - shard.first
        # The first shard includes the warm-up.
        weight = _PACE_WEIGHT if self.longest > 0 else 1.0
        self.seconds += weight * (shard.seconds / trials - self.seconds)
        self.longest = max(self.longest, trials)

    def shard_trials(self, left: int, workers: int, block: int, travels: bool) -> int:
        """Compute how many trials one worker draws next (the length of its next shard).

        The result is a multiple of `block`.

        Args:
            left: number of trials that no worker has received yet.
            workers: number of workers.
            block: number of trials in a block.
            travels: True if the shard is sent to another process. Workers in this process get short
                shards.
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
    """Source of the outputs of an audit on x and x', which workers draw.

    Args:
        draws: object that draws the outputs of a block (consecutive trials, drawn by one call).
        threads: number of threads of this process. If the number of workers of `executor` is
            unknown, dpcore assumes `threads` workers.
        end: number of the last counted trial plus 1. If the mechanism is a Python callable, the
            last block also ends there.
        executor: executor whose workers draw the outputs. None means threads of this process.
        route: name of the algorithm with which the compiled core counts events.
        start: number of the first counted trial.
        course: record of the steps of the audit, with the time and the number of outputs of each
            step.
        pace: estimated time of a worker for a trial.
        replays: hashes of the blocks that were drawn so far, to detect repeated outputs.
        worker_count: current number of workers.
    """

    draws: NativeDraws | CallableDraws
    threads: int
    end: int
    executor: Executor | None = None
    route: str = "callable"
    start: int = 0
    course: TimeLog = field(default_factory=TimeLog, repr=False)
    pace: Pace = field(default_factory=Pace, repr=False)
    replays: replay.Replays = field(default_factory=replay.Replays, repr=False)
    worker_count: int = 1
    _calls: Calls | None = field(default=None, repr=False)
    _waiting: dict[int, Step] = field(default_factory=dict, repr=False)
    _order: deque[int] = field(default_factory=deque, repr=False)

    @property
    def block(self) -> int:
        """Number of trials in a block (consecutive trials whose outputs one call draws)."""
        return self.draws.block

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one output of the mechanism."""
        return self.draws.shape

    @property
    def elements(self) -> int:
        """Number of entries of one output of the mechanism."""
        return math.prod(self.shape)

    @property
    def name(self) -> str:
        """Name of the mechanism in error messages."""
        return "mechanism" if self.draws.native else name_of(self.draws.mechanism)

    @property
    def _draw_advice(self) -> str:
        way: str = get_or_default(self.draws.mechanism, "way_to_draw") or WAY_TO_DRAW
        return way

    def make_draw_task(self, purpose: int, first: int, end: int) -> Task:
        """Make a task for a worker: to draw the trials from `first` to `end - 1`.

        Args:
            purpose: code of the purpose of the draws, such as 2 for counting.
            first: number of the first trial.
            end: number of the last trial plus 1.
        """
        run = (self.start, self.end) if purpose == COUNT else (0, end)
        needed = self.replays.rows_needed(purpose, 0), self.replays.rows_needed(purpose, 1)
        return Task(purpose, first, end, *run, needed, self.replays.zeros)

    def run(self, work: Any, purpose: int, todo: Sequence[Range]) -> Iterator[Shard]:
        """Let workers draw trials and apply `work` to the outputs, and yield the results.

        A worker draws a shard (consecutive trials), which consists of blocks. The method yields a
        `Shard` as soon as a worker has finished it.

        Args:
            work: function that is applied to the outputs of each block, as described in
                `run_shard`.
            purpose: code of the purpose of the draws, such as 2 for counting.
            todo: ranges of trials to draw, each as a pair: number of the first trial, number of the
                last trial plus 1.

        Raises:
            ValueError: if a block repeats the outputs of an earlier block. Also if, in each of two
                calls, all outputs are equal, but the two calls have different outputs.
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
        with open_workers(self.executor, threads, digest_sample_outputs) as workers:
            yield from run_shards(self, workers, work, purpose, todo)

    def refuse_repeated_outputs(self, purpose: int, shard: Shard) -> None:
        """Raise an error if a block of a shard repeats the outputs of an earlier block.

        A shard is the result of a worker for consecutive trials, which form blocks.
        """
        self.course.add_outputs(shard.made)
        for digest, side, number in (*shard.digests, *self._digests_sides_blocks(purpose, shard)):
            # This is done on arrival, so that a run file has the digest of every block that it
            # counts.
            here = (purpose, side, number)
            self._refuse_repeated_block(self.replays.find_and_store_digest(digest, here), here)
        self._waiting.update((step.number, step) for step in shard.steps)
        while self._order and self._order[0] in self._waiting:
            self._refuse_repeat_of_earlier_block(purpose, self._waiting.pop(self._order.popleft()))
        if shard.calls:
            self._calls = self._calls or Calls(self.name, self._draw_advice)
            self._calls.check_and_add_calls(shard.calls, shard.same)

    def block_digests(self, ranges: tuple[Range, ...]) -> tuple[str, ...]:
        """List the stored hashes of those blocks that have a trial in one of the given ranges.

        Args:
            ranges: ranges of trials, each as a pair: number of the first trial, number of the last
                plus 1.
        """
        return tuple(
            digest.hex()
            for start, stop in ranges
            for digest, (_, number) in self.replays.digests.items()
            if start < (number + 1) * self.block and number * self.block < stop
        )

    def _digests_sides_blocks(self, purpose: int, shard: Shard) -> Iterator[tuple[bytes, int, int]]:
        """Yield hash, side (0 or 1) and number of each counted block in the steps of a shard."""
        for step in shard.steps if purpose == COUNT else ():
            for side in sorted((0, 1), key=step.turns.__getitem__):
                digest = step.marks[side].longest_prefix_hash(self.replays.rows_needed(COUNT, side))
                if digest is not None:
                    yield digest, side, step.number

    def _refuse_repeat_of_earlier_block(self, purpose: int, step: Step) -> None:
        for side in sorted((0, 1), key=step.turns.__getitem__):
            here = (purpose, side, step.number)
            there = self.replays.find_earlier_block(here, step.marks[side], step.turns[side])
            self._refuse_repeated_block(there, here)

    def _refuse_repeated_block(self, earlier: replay.Where | None, here: replay.Where) -> None:
        if earlier is not None:
            seeded_by = get_or_default(self.draws.mechanism, "seeded_by") or replay.SEEDED_BY
            raise replay.make_repeated_block_error(self.name, earlier, here, seeded_by)

    def probe_independence(self) -> tuple[str, ...]:
        """Make a few short calls of the mechanism, and test whether their outputs are independent.

        The result is a list of texts for the report, one for each test that rejects independence.
        It is empty for mechanisms that the compiled core draws, because they are not tested.

        Raises:
            ValueError: if, in each of two calls, all outputs are equal, but the two calls have
                different outputs.
        """
        draws = self.draws
        # If each output has its own call, rows cannot share a call.
        if isinstance(draws, NativeDraws) or is_unbatched(draws.mechanism):
            return ()

        def draw(side: int, number: int, rows: int) -> npt.NDArray[Any]:
            return draws.draw(_SHORT_CALLS, side, Place(number, rows, 0, rows))

        how = self._draw_advice, get_or_default(draws.mechanism, "seeded_by")
        return probe_calls(draw, self.name, self.end - self.start, self.block, *how)

    def outputs(
        self, purpose: int, start: int, stop: int
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Draw trials, and return the outputs on x and the outputs on x'.

        Args:
            purpose: code of the purpose of the draws, such as 2 for counting.
            start: number of the first trial.
            stop: number of the last trial plus 1.
        """
        if isinstance(self.draws, NativeDraws):
            place = Place(0, stop, start, stop)
            self.course.add_outputs(2 * (stop - start))
            own, other = (self.draws.draw(purpose, side, place, self.threads) for side in (0, 1))
            return own, other
        shards = list(self.run(return_outputs_unchanged, purpose, [(start, stop)]))
        shards.sort(key=lambda shard: shard.first)
        if not shards:
            return np.empty((0, *self.shape)), np.empty((0, *self.shape))
        own, other = (
            join_outputs([part for shard in shards for part in shard.sides[side]])
            for side in (0, 1)
        )
        return own, other

    def convert_to_common_type(
        self, outputs: npt.NDArray[Any], outputs_prime: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Convert the pilot outputs on x and on x' to arrays of the same type, to fit an attack.

        The pilot outputs are the first outputs of an audit. If they have different shapes, both
        results are arrays of objects. Later outputs are then also returned as arrays of objects.
        """
        draws, sides = self.draws, (outputs, outputs_prime)
        is_alike = (
            outputs.ndim > 1 or len({(s.dtype == object, noted_row_types(s)) for s in sides}) == 1
        )
        in_shape = all(side.shape[1:] == self.shape for side in sides)
        if isinstance(draws, NativeDraws) or (in_shape and is_alike):
            return sides
        self.draws = replace(draws, shape=())
        return rows_to_objects(outputs), rows_to_objects(outputs_prime)

    def count_in_shards(
        self, event: Event, purpose: int, todo: Sequence[Range], watches: tuple[Watch, ...] = ()
    ) -> Iterator[Shard]:
        """Count an event on x and on x', and yield the counts of each shard (consecutive trials).

        If the compiled core of dpcore draws the outputs, it can count some events without storing
        outputs.

        Args:
            event: event to count.
            purpose: code of the purpose of the draws, such as 2 for counting.
            todo: ranges of trials, each as a pair: number of the first trial, number of the last
                plus 1.
            watches: additional counts.
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
        """Count an event in the trials from `start` to `stop - 1`, on x and on x'.

        Args:
            event: event to count.
            purpose: code of the purpose of the draws, such as 2 for counting.
            start: number of the first trial.
            stop: number of the last trial plus 1.
            watches: additional counts.
        """
        total = Tally(), Tally()
        for shard in self.count_in_shards(event, purpose, [(start, stop)], watches):
            for side, part in zip(total, shard.sides, strict=True):
                side += part
        return total


def _cut_shards(
    source: Source, workers: Workers, purpose: int, todo: Sequence[Range]
) -> Iterator[Task]:
    """Yield tasks for some ranges of trials; choose the length of a task when it is needed."""
    left = sum(stop - start for start, stop in todo)
    for start, stop in todo:
        while start < stop:
            suits = source.pace.shard_trials(left, workers.count, source.block, workers.travels)
            end = min(stop, start // source.block * source.block + suits)
            yield source.make_draw_task(purpose, start, end)
            left, start = left - (end - start), end


def run_shards(
    source: Source, workers: Workers, work: Any, purpose: int, todo: Sequence[Range]
) -> Iterator[Shard]:
    """Divide trials into shards (consecutive trials), let workers draw them, and yield results.

    The function checks each result, and yields the results in the order in which they arrive. If a
    worker dies, its shard is divided into two halves, and workers draw the two halves. If three
    workers die while they draw the same shard of a single block, the function raises a
    RuntimeError.

    Args:
        source: object that makes the tasks and checks the results.
        workers: the workers.
        work: function that is applied to the outputs of each block, as described in `run_shard`.
        purpose: code of the purpose of the draws, such as 2 for counting.
        todo: ranges of trials, each as a pair: number of the first trial, number of the last plus
            1.
    """
    new, again = _cut_shards(source, workers, purpose, todo), deque[Task]()
    flying: dict[Any, Task] = {}

    def hand_out() -> None:
        most = workers.max_tasks if source.pace.longest else min(workers.max_tasks, workers.count)
        while len(flying) < most:
            task = again.popleft() if again else next(new, None)
            if task is None:
                return
            flying[workers.submit(run_shard, source.draws, work, task)] = task

    try:
        while True:
            hand_out()
            if not flying:
                return
            for handle in workers.wait_for_any(list(flying)):
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
                source.pace.record_shard(shard)
                source.worker_count = workers.count
                source.refuse_repeated_outputs(purpose, shard)
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
    """Draw outputs of an audit again.

    The new outputs are equal to the counted outputs. If `audit.randomness` is "rounding", they are
    equal only up to rounding.

    Args:
        audit: an `Audit`.
        side: "x" or "x_prime", the input of the outputs.
        start: number of the first trial.
        size: number of trials.
    """
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
    draws = NativeDraws(*name) if can_core_draw(mechanism) else CallableDraws(*name, audit.shape)
    task = Source(draws, 1, audit.end).make_draw_task(COUNT, start, start + size)
    places = list_places(task, audit.block)
    parts = [draws.draw(COUNT, 0 if side == "x" else 1, place) for place in places]
    return join_outputs(parts) if parts else np.empty((0, *audit.shape))
