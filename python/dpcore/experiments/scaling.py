"""Parallel efficiency of audits in processes, on Dask and on a simulated cluster.

The experiment runs the same audit in the current process, in several processes, and on a local Dask
cluster. The experiment also simulates a cluster of up to 1,024 workers with a virtual clock. The
code that distributes the work is the same in all cases. The parallel efficiency is T / (w D). T is
the time that one core needs for all draws, w is the number of workers, and D is the duration of the
draws on w workers.
"""

from __future__ import annotations

import heapq
import multiprocessing
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.util import find_spec
from itertools import product
from typing import Any, Final

import numpy as np

from ..attacks import Threshold
from ..auditing.run import audit
from ..errors import integer
from ..mechanisms import Laplace
from ..progress import format_time
from ..records import Counts, Pair
from ..report.figures import BLUE, GREY, INK, ORANGE, RED, restyle_figure
from ..report.rows import align_rows
from ..report.shown import Shown
from ..sampling.driver import Shard, Source, Task, run_shards
from ..sampling.sources import NativeDraws
from ..sampling.tally import Tally
from ..sampling.workers import LostError, Workers
from ..streams import BLOCK_ELEMENTS, COUNT, threads_of
from .base import Column, SeededSettings, align_columns, check_positive, setting
from .drawing import SMALL, TEXT, Figure, empty_figure, style_axes
from .running import Tabled, run_jobs, time_run

NAME = "scaling"

PAIR = Pair(np.array([0.0]), np.array([1.0]))
CLAIM: Final = 1.0

SECONDS_PER_RESULT: Final = 0.001
"""Virtual time in seconds that the process in charge of the tasks needs for each returned
result."""
SLOW_SHARE: Final = 0.02
"""Share of simulated workers with half the speed, in simulations with faults."""
LOST_SHARE: Final = 0.001
"""Share of simulated tasks that are lost because the worker fails before the task is completed."""

_SECONDS_PER_HOUR: Final = 3600.0


def add_laplace_noise(x: Any, size: int, rng: np.random.Generator) -> Any:
    """Return `size` copies of the vector `x` with independent Laplace noise of scale 1.

    The result has the shape `(size, len(x))`. Each row is one output.
    """
    return x + rng.laplace(size=(size, len(x)))


class SimulatedWorkers(Workers):
    """Simulated workers of a computing cluster, with a virtual clock.

    A real worker would draw outputs and count them. A simulated worker does not draw, so all counts
    are 0. A task for a worker is a range of trials, called a shard.

    If all workers are busy, a new task waits in a queue. All workers share this queue. The driver
    is the process that distributes the tasks. The workers continue to work while the driver
    processes a result.

    Args:
        count: number of workers.
        trial_seconds: virtual duration of one trial in seconds. A trial draws one output on each of
            the two inputs.
        faults: True to simulate slow workers and lost tasks. The constants `SLOW_SHARE` and
            `LOST_SHARE` are the shares of slow workers and of lost tasks.
        seed: seed for the random choice of the slow workers and the lost tasks.
    """

    travels = True

    def __init__(self, count: int, trial_seconds: float, faults: bool = False, seed: int = 0):
        self.count, self.now = count, 0.0
        self.submitted = self.lost = 0
        self._trial_seconds, self._faults = trial_seconds, faults
        self._rng = np.random.default_rng(seed)
        slow = self._rng.random(count) < SLOW_SHARE * faults
        self._idle = [(worker, 2.0 if slow[worker] else 1.0) for worker in range(count)]
        self._queue: deque[tuple[int, Task]] = deque()
        self._ends: list[tuple[float, int, tuple[int, float], Task, float | None]] = []
        self._done: dict[int, tuple[Task, float | None]] = {}

    @property
    def max_tasks(self) -> int:
        """Number of tasks that may be waiting or running at the same time on these workers."""
        return 2 * self.count

    def submit(self, function: Callable[..., Any], draws: Any, work: Any, task: Task) -> int:
        """Give a task to these simulated workers, and return the number of the task.

        The task starts at once if a worker is idle. Otherwise, the task waits in a queue.
        `function`, `draws` and `work` are not used, because a simulated worker does not draw
        outputs.
        """
        self._end_completed_tasks()
        self.submitted += 1
        if self._idle:
            self._begin_task_on_an_idle_worker(self.now, self.submitted, task)
        else:
            self._queue.append((self.submitted, task))
        return self.submitted

    def _begin_task_on_an_idle_worker(self, now: float, number: int, task: Task) -> None:
        worker = self._idle.pop()
        seconds = (task.end - task.first) * self._trial_seconds * worker[1]
        lost = self._faults and self._rng.random() < LOST_SHARE
        end = now + seconds * (self._rng.random() if lost else 1.0)
        heapq.heappush(self._ends, (end, number, worker, task, None if lost else seconds))

    def _end_completed_tasks(self) -> None:
        """End all tasks that are completed at the current virtual time.

        Workers that become idle start the next tasks of the queue.
        """
        while self._ends and self._ends[0][0] <= self.now:
            end, number, worker, task, seconds = heapq.heappop(self._ends)
            self._done[number] = task, seconds
            self._idle.append(worker)
            if self._queue:
                self._begin_task_on_an_idle_worker(end, *self._queue.popleft())

    def wait_for_any(self, handles: list[Any]) -> list[int]:
        """Advance the virtual clock until at least one task is completed.

        Return the numbers of all completed tasks whose results were not yet fetched. `handles` is
        not used.
        """
        self._end_completed_tasks()
        if not self._done:
            self.now = self._ends[0][0]
            self._end_completed_tasks()
        return list(self._done)

    def result(self, handle: int) -> Shard:
        """Return the counts of the completed task with the number `handle`.

        Raises:
            LostError: if the simulated worker failed before the task was completed.
        """
        self.now += SECONDS_PER_RESULT
        task, seconds = self._done.pop(handle)
        if seconds is None:
            self.lost += 1
            raise LostError("a simulated worker ended")
        sides = Tally(task.end - task.first, (0,)), Tally(task.end - task.first, (0,))
        return Shard(task.first, task.end, sides, seconds=seconds)

    def cancel(self, handles: list[Any]) -> None:
        """Remove all tasks that have not started from the queue of these workers.

        `handles` is not used.
        """
        self._queue.clear()


@dataclass(frozen=True, slots=True, repr=False)
class Config(SeededSettings):
    """Options of the experiment that measures the parallel efficiency of audits.

    Args:
        trials: number of outputs that an audit on this machine draws on each of the two inputs. A
            second audit draws this number for each worker (weak scaling).
        seed: seed of the audits. The seed also determines which workers are slow and which tasks
            are lost in a simulation.
        workers: numbers of worker processes in the audits on this machine, both with Dask and
            without it. Numbers above the number of cores are left out.
        simulated: numbers of outputs that the simulated audits draw on each of the two inputs.
        clusters: numbers of workers of the simulated clusters.
        trial_seconds: virtual duration of one trial in seconds. A trial draws one output on each of
            the two inputs.
        quick: True for a short run with few workers and few simulated audits.

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a value is out of range.

    Example:
        >>> Config(quick=True).clusters
        (1, 64, 1024)
    """

    trials: int = 5 * 10**7
    workers: tuple[int, ...] = setting((1, 2, 4, 8, 16, 32), integer, 1, quick=(2,))
    simulated: tuple[int, ...] = setting(
        (10**9, 10**10, 10**11, 10**12, 10**13), integer, 1, quick=(10**9, 10**11)
    )
    clusters: tuple[int, ...] = setting((1, 4, 16, 64, 256, 1024), integer, 1, quick=(1, 64, 1024))
    trial_seconds: float = setting(1.22e-7, check_positive)
    quick: bool = False

    @property
    def block(self) -> int:
        """Number of trials in one block, for the audits that run on this machine.

        A block is the smallest amount of work that a worker gets. The number of trials is so small
        that each worker gets at least four blocks.
        """
        return max(1, min(BLOCK_ELEMENTS, self.trials // (4 * max(self.workers))))


@dataclass(frozen=True, slots=True, repr=False)
class MeasuredAudit(Shown):
    """Duration and counts of one audit that ran on this machine.

    Args:
        place: where the audit ran: "this process", "processes" or "Dask".
        workers: number of worker processes.
        trials: number of outputs drawn on each of the two inputs.
        counts: for each of the two inputs, the number of outputs in the event (a set of outputs)
            and the number of all outputs. The counts should not depend on `place` or `workers`.
        partial: True if Ctrl-C ended the audit early.
        seconds: duration in seconds of all draws, except the pilot draws on which the audit chooses
            the event. `==` ignores this field.
    """

    place: str
    workers: int
    trials: int
    counts: Counts
    partial: bool
    seconds: float = field(compare=False)


@dataclass(frozen=True, slots=True, repr=False)
class Simulated(Shown):
    """Result of one audit that was simulated on a cluster.

    Args:
        workers: number of workers of the cluster.
        trials: number of outputs drawn on each of the two inputs.
        faults: True if slow workers and lost tasks were simulated.
        shards: number of tasks that were sent to workers. A task is a range of trials, called a
            shard.
        lost: number of tasks that were lost because a simulated worker failed.
        seconds: virtual duration of the audit in seconds.
        efficiency: parallel efficiency. It is the time that one core needs for all trials, divided
            by the product of `workers` and `seconds`.
        driver_seconds: real time in seconds that the simulation took for each task. `==` ignores
            this field.
    """

    workers: int
    trials: int
    faults: bool
    shards: int
    lost: int
    seconds: float
    efficiency: float
    driver_seconds: float = field(compare=False)


@time_run()
def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Measure the efficiency of audits on this machine, and simulate audits on clusters.

    Args:
        config: options of the experiment, such as the numbers of workers.
        threads: not used. The numbers of workers are in `config`.
        progress: True to show a progress bar. By default, dpcore shows the bar for long work on a
            terminal or in a notebook.

    Returns:
        The measured and the simulated audits. If Dask is not installed, the audits on Dask are left
        out, and the table states that they are missing.

    Raises:
        KeyboardInterrupt: if the user presses Ctrl-C before dpcore has counted an output.

    Example:
        >>> config = Config(quick=True)
        >>> simulate_cluster(config, 10**9, 64, False)[0].efficiency > 0.9
        True
    """
    cores = threads_of(None)
    places = ("this process", "processes", *(("Dask",) if find_spec("distributed") else ()))
    jobs: list[Callable[[], tuple[MeasuredAudit | Simulated, ...]]] = [
        partial(simulate_cluster, config, trials, workers, faults)
        for faults, trials, workers in product((False, True), config.simulated, config.clusters)
    ]
    jobs += [
        partial(time_audits, config, place, workers)
        for place in places
        for workers in ((1,) if place == "this process" else config.workers)
        if workers <= cores or config.quick
    ]
    done, stopped = run_jobs("scaling of audits", jobs, lambda job: job(), progress)
    answers = [answer for ones in done for answer in ones]
    measured = tuple(
        answer for answer in answers if isinstance(answer, MeasuredAudit) and not answer.partial
    )
    simulated = tuple(answer for answer in answers if isinstance(answer, Simulated))
    return Result(config, measured, simulated, "Dask" in places, partial=stopped)


def simulate_cluster(config: Config, trials: int, workers: int, faults: bool) -> tuple[Simulated]:
    """Simulate an audit on a cluster, and return a tuple with one result.

    The code that distributes the tasks is the same as in a real audit. `trials` is the number of
    outputs on each input. If `faults` is True, some workers are slow and some tasks are lost.
    """
    source = Source(NativeDraws(Laplace(1.0), PAIR, config.seed, BLOCK_ELEMENTS), 1, trials)
    cluster = SimulatedWorkers(workers, config.trial_seconds, faults, config.seed)
    begun = time.perf_counter()
    shards = run_shards(source, cluster, None, COUNT, [(0, trials)])
    assert sum(shard.end - shard.first for shard in shards) == trials
    each = (time.perf_counter() - begun) / cluster.submitted
    efficiency = trials * config.trial_seconds / (workers * cluster.now)
    counted = cluster.submitted, cluster.lost, cluster.now
    return (Simulated(workers, trials, faults, *counted, efficiency, each),)


def time_audits(config: Config, executor_kind: str, workers: int) -> tuple[MeasuredAudit, ...]:
    """Run audits on this machine, and measure the duration of the counted draws.

    The counted draws are all draws except the pilot draws, on which an audit chooses the event. The
    first audit draws `config.trials` outputs on each input (strong scaling). The second audit draws
    `config.trials` outputs for each worker (weak scaling). With one worker, there is only one
    audit. `executor_kind` is "this process", "processes" or "Dask".
    """
    audits = []
    with _open_executor(executor_kind, workers) as executor:
        for trials in dict.fromkeys((config.trials, config.trials * workers)):
            report = audit(
                add_laplace_noise, PAIR, attack=Threshold(), claim=CLAIM, trials=trials,
                pilot=config.trials // 8 + 1, block=config.block, rng=config.seed,
                executor=executor, progress=False,
            )  # fmt: skip
            counted = report.counts, report.partial, report.seconds
            audits.append(MeasuredAudit(executor_kind, workers, trials, *counted))
            if report.partial:
                break
    return tuple(audits)


@contextmanager
def _open_executor(place: str, workers: int) -> Iterator[Any]:
    if place == "this process":
        yield None
    elif place == "processes":
        # A fork of a process with threads may hang.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(workers, mp_context=context) as pool:
            yield pool
    else:
        from distributed import Client, LocalCluster

        of_each: Any = {"threads_per_worker": 1, "dashboard_address": ":0", "processes": True}
        with LocalCluster(workers, **of_each) as cluster, Client(cluster) as client:
            yield client


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled[Config]):
    """Audits that were measured on this machine, and audits that were simulated on clusters.

    Args:
        config: options with which the experiment was run.
        measured: audits that ran on this machine: in the current process, in several processes and
            on Dask.
        simulated: simulated audits for all numbers of trials and workers, each with faults of
            workers and without them.
        has_dask: True if Dask is installed.
    """

    measured: tuple[MeasuredAudit, ...]
    simulated: tuple[Simulated, ...]
    has_dask: bool

    @property
    def serial(self) -> MeasuredAudit | None:
        """Audit that ran in the current process, or None if it was not completed."""
        return next((audit for audit in self.measured if audit.place == "this process"), None)

    @property
    def trial_seconds(self) -> float:
        """Duration of one trial in seconds. A trial draws one output on each of the two inputs.

        The duration comes from the audit in the current process. If this audit was not completed,
        the value is the option `trial_seconds`.
        """
        serial = self.serial
        return self.config.trial_seconds if serial is None else serial.seconds / serial.trials

    @property
    def same_counts(self) -> bool:
        """True if all measured audits with the same number of trials have the same counts."""
        pairs = {(audit.trials, audit.counts) for audit in self.measured}
        return len(pairs) == len({audit.trials for audit in self.measured})

    def efficiency(self, audit: MeasuredAudit) -> float:
        """Return the parallel efficiency of an audit that ran on this machine.

        The efficiency is T / (w D). T is the time that the current process needs for the same
        number of trials. w is the number of workers of `audit`, and D is the duration of `audit`.
        """
        return audit.trials * self.trial_seconds / (audit.workers * audit.seconds)

    def table(self) -> str:
        """Return the measured audits, the simulated audits and the core hours as text tables."""
        config = self.config
        columns = (
            Column("drawn by", "place", left=True),
            Column("workers", "workers"),
            Column("scaling", lambda audit: _strong_weak_scaling(config, audit), left=True),
            Column("trials per side", "trials", ","),
            Column("counting", "seconds", format_time),
            Column("efficiency", self.efficiency, ".2f"),
        )
        agreement = "the same counts everywhere" if self.same_counts else "COUNTS DIFFER"
        here = f"On this machine, blocks of {config.block:,} trials, {agreement}:"
        cells_by_key = {(cell.trials, cell.workers, cell.faults): cell for cell in self.simulated}
        cells = [("trials per side", "core hours", *(f"on {n:,}" for n in config.clusters))]
        for trials in config.simulated:
            both = (_efficiency_pair(cells_by_key, trials, workers) for workers in config.clusters)
            cells.append((_short_number(trials), f"{self._count_core_hours(trials):.3g}", *both))
        return self.join_parts(
            f"Scaling of audits, seed {config.seed}. Efficiency: core seconds of the work / "
            "(workers x time of counting).",
            f"{here}\n\n{align_columns(columns, self.measured)}" if self.measured else "",
            "" if self.has_dask else "Dask is not installed: pip install 'dpcore[dask]'",
            "Efficiency on simulated clusters, by their workers: "
            f"{config.trial_seconds * 1e9:g} ns a trial,\n{SECONDS_PER_RESULT * 1000:g} ms of the "
            f"driver a shard; in brackets with faults: {SLOW_SHARE:.0%} of the workers\nat half "
            f"the speed, {LOST_SHARE:.1%} of the shards lost.",
            align_rows(cells),
            f"Core hours at the measured {self.trial_seconds * 1e9:.0f} ns a trial.",
        )

    def to_dict(self) -> dict[str, Any]:
        """Return this result as a dict of plain data, which `json.dumps` can write."""
        measured = [
            asdict(audit) | {"efficiency": self.efficiency(audit)} for audit in self.measured
        ]
        hours = {str(trials): self._count_core_hours(trials) for trials in self.config.simulated}
        facts = {"trial_seconds": self.trial_seconds, "core_hours": hours}
        facts |= {"dask": self.has_dask, "same_counts": self.same_counts}
        return self.make_record(measured=measured, simulated=self.simulated, **facts)

    def _count_core_hours(self, trials: int) -> float:
        return trials * self.trial_seconds / _SECONDS_PER_HOUR

    def plot(self, ax: Any = None) -> Figure:
        """Draw the parallel efficiency of the audits against the number of workers.

        The left panel shows the audits on this machine. The right panel shows the simulated audits.
        """
        picture = empty_figure(3.2, ax)
        left, right = picture.subplots(1, 2)
        kinds = product((("processes", BLUE), ("Dask", RED)), (("strong", "-o"), ("weak", "--s")))
        for (place, colour), (kind, line) in kinds:
            ones = [cell for cell in self.measured if cell.place == place]
            ones = [cell for cell in ones if _strong_weak_scaling(self.config, cell) in ("-", kind)]
            if ones:
                values = [[cell.workers for cell in ones], [self.efficiency(cell) for cell in ones]]
                left.plot(*values, line, color=colour, label=f"{place}, {kind} scaling", ms=4)
        if not self.has_dask:
            left.set_title("Dask is not installed", fontsize=SMALL)
        colours = (BLUE, RED, ORANGE, GREY, INK)
        for (number, trials), faults in product(enumerate(self.config.simulated), (False, True)):
            cells = [
                cell for cell in self.simulated if (cell.trials, cell.faults) == (trials, faults)
            ]
            points = [cell.workers for cell in cells], [cell.efficiency for cell in cells]
            label = None if faults else f"{_short_number(trials)} trials"
            style: Any = {"color": colours[number % len(colours)], "ms": 3, "label": label}
            right.plot(*points, "--" if faults else "-o", **style)
        panels = (
            (left, "this machine", self.config.workers),
            (right, "simulated; dashed: with faults", self.config.clusters),
        )
        for axes, what, numbers in panels:
            axes.set(xscale="log", ylim=(0.0, 1.1 * max(1.0, *axes.dataLim.intervaly)))
            axes.axhline(1.0, color=GREY, linewidth=0.6)
            axes.set_xticks(numbers, [f"{number:,}" for number in numbers])
            axes.minorticks_off()
            style_axes(axes, f"workers ({what})")
            if axes.get_legend_handles_labels()[0]:
                axes.legend(frameon=False, fontsize=SMALL, loc="best")
        left.set_ylabel("efficiency of counting", fontsize=TEXT)
        return restyle_figure(picture)


def _short_number(number: int) -> str:
    """Format a large number briefly, such as 1e9."""
    return f"{float(number):g}".replace("e+0", "e").replace("e+", "e")


def _strong_weak_scaling(config: Config, audit: MeasuredAudit) -> str:
    return "-" if audit.workers == 1 else "strong" if audit.trials == config.trials else "weak"


def _efficiency_pair(cells: dict[Any, Simulated], trials: int, workers: int) -> str:
    both = [cells.get((trials, workers, faults)) for faults in (False, True)]
    shown = ["-" if cell is None else f"{cell.efficiency:.3f}" for cell in both]
    return f"{shown[0]} ({shown[1]})"
