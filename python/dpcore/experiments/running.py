"""Parts that the runs of the experiments share: checks, seeds of cells, interruptible loops."""

from __future__ import annotations

import functools
import re
import statistics
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from ..attacks import MajorityVote
from ..auditing.run import audit
from ..errors import mistyped
from ..mechanisms import Native
from ..packages import require_module
from ..progress import Progress
from ..records import Pair, Shown
from ..results.audits import Audit
from ..streams import threads_of
from .base import encode_attributes, encode_fields, make_record_head

_JobType = TypeVar("_JobType")
_AnswerType = TypeVar("_AnswerType")
_KeyType = TypeVar("_KeyType", bound=Hashable)
_RunType = TypeVar("_RunType", bound=Callable[..., Any])


def is_partial(found: Any) -> bool:
    """Return True for an answer that Ctrl-C ended early."""
    return bool(getattr(found, "partial", False))


_PAPERS_ATTACK = MajorityVote()
"""The attack that most experiments remake: the reconstruction attack of the papers."""


@dataclass(frozen=True, slots=True)
class Job:
    """One audit of an experiment.

    Args:
        mechanism: what is audited.
        pair: its two inputs.
        claim: the epsilon tested.
        key: names the cell; its seed follows from it.
        attack: what looks at the outputs, by default the vote of the papers.
        trials: draws on each side, None for the experiment's own.
        effort: how long a number of the pair takes, in units of what the bar counts.
    """

    mechanism: Native
    pair: Pair
    claim: float
    key: str
    attack: Any = _PAPERS_ATTACK
    trials: int | None = None
    effort: int = 1


@dataclass(frozen=True, slots=True, repr=False)
class Tabled(Shown):
    """Base class of results: `repr` is one line, `str` is the table.

    Args:
        partial: True if Ctrl-C ended the run early.
        seconds: time taken (not compared).
    """

    partial: bool = field(default=False, kw_only=True)
    seconds: float = field(default=0.0, compare=False, kw_only=True)

    def __repr__(self) -> str:
        """Return the name of the experiment and the length of each field."""
        name = _get_experiment_name(type(self).__module__)
        values = ((one.name, getattr(self, one.name)) for one in fields(self) if one.repr)
        parts = [f"{len(value):,} {what}" for what, value in values if isinstance(value, tuple)]
        ended = ", ended early" if self.partial else ""
        return f"<{type(self).__name__} of {name}: {', '.join(parts)}{ended}>"

    def __str__(self) -> str:
        """Return the figures as aligned text."""
        return self.table()

    def table(self) -> str:
        """Return the figures as aligned plain text."""
        raise NotImplementedError(f"{type(self).__name__} has no table")

    def make_record(self, names: str = "", **entries: Any) -> dict[str, Any]:
        """Return the result as plain data.

        Args:
            names: attributes that follow format, name, version, configuration and time, as
                `encode_attributes` takes them.
            **entries: what follows them: plain data, or a tuple of records, of which all fields
                are shown.
        """
        found = make_record_head(_get_experiment_name(type(self).__module__), self)
        found |= encode_attributes(self, names)
        for key, value in entries.items():
            found[key] = list(map(encode_fields, value)) if isinstance(value, tuple) else value
        return found

    def join_parts(self, head: str, *parts: str) -> str:
        """Join the parts of a table, without empty ones; after the head a partial result is named.

        Args:
            head: the first part.
            *parts: all others.

        Returns:
            The parts, with an empty line between them.
        """
        early = "INTERRUPTED: only what was done is shown" if self.partial else ""
        return "\n\n".join(part for part in (head, early, *parts) if part)


def cell_seed(seed: int, key: str) -> int:
    """Derive the seed of one cell from the experiment's seed and the cell's name alone.

    A part of a grid therefore repeats the whole grid's cells, in any order, and no two cells
    share their random numbers.

    Args:
        seed: seed of the experiment, at least 0.
        key: name of the cell.

    Returns:
        An int in [0, 2**63).

    Source:
        numpy.random.SeedSequence with the name as its spawn key.

    Example:
        >>> cell_seed(1, "a") == cell_seed(1, "a"), cell_seed(1, "a") == cell_seed(1, "b")
        (True, False)
    """
    sequence = np.random.SeedSequence(seed, spawn_key=tuple(key.encode()))
    return int(sequence.generate_state(1, np.uint64)[0]) >> 1


def time_run(*packages: str, one_thread: bool = False) -> Callable[[_RunType], _RunType]:
    """Check what a run is given, and record in its result the time that it took.

    Checked are the configuration, the number of threads, the packages, and the device of torch
    where the configuration has one.

    Args:
        *packages: packages without which the experiment does not run.
        one_thread: True for a run in which torch and numpy have one thread.

    Returns:
        A decorator of the function `run` of an experiment, in the module of its `Config`.
    """

    def decorate(run: _RunType) -> _RunType:
        @functools.wraps(run)
        def timed(config: Any, **options: Any) -> Any:
            # By name: whoever replaces the class to change a default runs the same experiment.
            if type(config).__module__ != run.__module__:
                module = _experiment_module(run.__module__)
                raise mistyped("config", f"a Config of {module}", config)
            threads_of(options.get("threads"))
            for package in packages:
                require_module(package, _get_experiment_name(run.__module__))
            if "device" in {one.name for one in fields(config)}:
                from ..torch.mechanisms import device_of

                device_of(config.device)
            begun = time.perf_counter()
            with limit_to_one_thread() if one_thread else nullcontext():
                result = run(config, **options)
            object.__setattr__(result, "seconds", time.perf_counter() - begun)
            return result

        return cast(_RunType, timed)

    return decorate


def _experiment_module(module: str) -> str:
    """Return the module or package of an experiment: its own, or that of its `experiment`."""
    return module.removesuffix(".experiment")


def _get_experiment_name(module: str) -> str:
    return _experiment_module(module).rpartition(".")[2].replace("_", "-")


def require_whole(model: Any) -> Any:
    """Return the training record of a text system, or raise if Ctrl-C ended the training early."""
    if model.trained.partial:
        raise KeyboardInterrupt
    return model.trained


def run_audits(
    label: str, jobs: Sequence[Job], config: Any, threads: int | None, progress: bool | None
) -> tuple[tuple[Audit, ...], bool]:
    """Audit every job in turn.

    Args:
        label: what the bar says.
        jobs: the audits.
        config: has `trials`, `seed` and `confidence`.
        threads: number of threads, None for all cores.
        progress: show a bar, None where somebody is looking.

    Returns:
        The audits of the first jobs, and True if Ctrl-C ended the loop; the last audit may then
        be partial itself.

    Raises:
        KeyboardInterrupt: on Ctrl-C before anything was counted.
    """

    def work(job: Job) -> Audit:
        trials = job.trials or config.trials
        options = {"attack": job.attack, "claim": job.claim, "trials": trials, "threads": threads}
        return audit_cell(config, job.key, job.mechanism, job.pair, **options)

    def size(job: Job) -> int:
        return job.effort * int(job.pair.x.size)

    return run_jobs(label, jobs, work, progress, size=size)


def run_jobs(
    label: str, jobs: Sequence[_JobType], work: Callable[[_JobType], _AnswerType],
    progress: bool | None, *,
    size: Callable[[_JobType], int] = lambda job: 1,
    ended: Callable[[_AnswerType], bool] = is_partial,
    worth: Callable[[_AnswerType], bool] = lambda found: True,
) -> tuple[tuple[_AnswerType, ...], bool]:  # fmt: skip
    """Do every job in turn, until Ctrl-C.

    Args:
        label: what the bar says.
        jobs: at least one.
        work: does one of them.
        progress: show a bar, None where somebody is looking.
        size: how far the bar moves for a job.
        ended: True if Ctrl-C came while that was found: it is kept, and nothing follows.
        worth: True if that is worth keeping by itself.

    Returns:
        What the first jobs gave, and True if Ctrl-C ended the loop.

    Raises:
        KeyboardInterrupt: on Ctrl-C before anything worth keeping was found.
    """
    done: list[_AnswerType] = []
    with Progress(label, sum(map(size, jobs)), progress) as bar:
        try:
            for job in jobs:
                done.append(work(job))
                if ended(done[-1]):
                    break
                bar.advance(size(job))
        except KeyboardInterrupt:
            if not any(map(worth, done)):
                raise
    return tuple(done), len(done) < len(jobs) or ended(done[-1])


def group_answers(
    keys: Iterable[_KeyType], answers: Iterable[_AnswerType]
) -> dict[_KeyType, tuple[_AnswerType, ...]]:
    """Collect the answers of equal keys, in their order.

    Example:
        >>> group_answers("aba", (1, 2, 3))
        {'a': (1, 3), 'b': (2,)}
    """
    found: dict[_KeyType, list[_AnswerType]] = {}
    # After Ctrl-C the last keys have no answer.
    for key, answer in zip(keys, answers, strict=False):
        found.setdefault(key, []).append(answer)
    return {key: tuple(values) for key, values in found.items()}


def mean_and_sd(values: Sequence[float]) -> tuple[float, float]:
    """Compute the mean and the standard deviation, which is 0 for a single value.

    Example:
        >>> mean_and_sd((1.0, 3.0)), mean_and_sd((2.0,))
        ((2.0, 1.4142135623730951), (2.0, 0.0))
    """
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0


def write_mean(values: Any, digits: int = 3) -> str:
    """Return a mean, and in brackets the standard deviation where there is one."""
    spread = f" ({statistics.stdev(values):.{digits}f})" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.{digits}f}{spread}"


def gather_in_processes(
    label: str,
    work: Callable[..., _AnswerType],
    jobs: Sequence[Sequence[Any]],
    processes: int,
    progress: bool | None,
    *,
    ended: Callable[[_AnswerType], bool] = is_partial,
) -> tuple[tuple[_AnswerType, ...], bool]:
    """Do every job with one torch thread, in several processes where there are more than one.

    Args:
        label: what the bar says.
        work: a function of a module that does one of them.
        jobs: the arguments of `work`, at least one.
        processes: number of processes; it changes no result.
        progress: show a bar, None where somebody is looking.
        ended: True if Ctrl-C came while that was found: it is kept, and nothing follows.

    Returns:
        What the first jobs gave, in their order, and True if Ctrl-C ended the loop.

    Raises:
        ModuleNotFoundError: without joblib, for more than one process.
        KeyboardInterrupt: on Ctrl-C before anything was found.
    """
    many = min(processes, len(jobs))
    if many > 1:
        joblib = require_module("joblib", label)
        calls = (joblib.delayed(_work_in_one_thread)(work, job) for job in jobs)
        done: Iterator[_AnswerType] = joblib.Parallel(many, return_as="generator")(calls)
    else:
        done = (_work_in_one_thread(work, job) for job in jobs)
    return run_jobs(label, jobs, lambda job: next(done), progress, ended=ended)


def _work_in_one_thread(work: Callable[..., _AnswerType], job: Sequence[Any]) -> _AnswerType:
    # A process of a pool has one thread: with more the last bits of products would differ.
    with limit_to_one_thread():
        return work(*job)


@contextmanager
def limit_to_one_thread() -> Iterator[None]:
    """Limit torch and the linear algebra below numpy to one thread.

    No sum then depends on the machine.
    """
    import scipy.linalg  # noqa: F401  # Its BLAS is limited as well only once it is loaded.
    from threadpoolctl import threadpool_limits

    from ..text.systems.training import one_thread

    with one_thread(), threadpool_limits(1):
        yield


_executor: ContextVar[Any] = ContextVar("executor", default=None)
_folder: ContextVar[Path | None] = ContextVar("folder", default=None)


@contextmanager
def place_audits(executor: Any, folder: Path | None) -> Iterator[None]:
    """Let `audit_cell` use an executor, and keep a run file for each cell in a folder."""
    tokens = _executor.set(executor), _folder.set(folder)
    try:
        yield
    finally:
        _executor.reset(tokens[0])
        _folder.reset(tokens[1])


def audit_cell(config: Any, key: str, mechanism: Any, pair: Any, **options: Any) -> Audit:
    """Audit one cell of an experiment where `place_audits` says; a finished cell is only read.

    Args:
        config: has `trials`, `confidence` and `seed`, from which that of the cell is derived.
        key: name of the cell.
        mechanism: as in `dpcore.audit`.
        pair: as in `dpcore.audit`.
        **options: further arguments of `dpcore.audit`, or others in place of those of `config`.
    """
    usual: dict[str, Any] = {"trials": config.trials, "confidence": config.confidence}
    usual |= {"rng": cell_seed(config.seed, key), "progress": False, "executor": _executor.get()}
    if (folder := _folder.get()) is not None:
        name = re.sub(r"[^\w.=-]+", "_", key)
        usual["checkpoint"] = folder / f"{name}.json"
    return audit(mechanism, pair, **(usual | options))
