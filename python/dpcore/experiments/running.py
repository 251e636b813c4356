"""Parts that the runs of the experiments share: checks, seeds of cells, interruptible loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np

from ..attacks import MajorityVote
from ..auditing.run import audit
from ..errors import confidence_level, count, integer, invalid, mistyped
from ..mechanisms import Native
from ..progress import Progress
from ..records import Pair, Shown
from ..results.audits import Audit

SEED = 2022
"""The seed of the published files: the year of the paper."""

_JobType = TypeVar("_JobType")
_AnswerType = TypeVar("_AnswerType")


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


class Tabled(Shown):
    """Base class of results: `repr` is one line, `str` is the table."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Return the name of the experiment and the length of each field."""
        name = _experiment_module(type(self).__module__).rpartition(".")[2].replace("_", "-")
        shown = (field for field in fields(self) if field.repr)  # type: ignore[arg-type]
        values = ((field.name, getattr(self, field.name)) for field in shown)
        parts = [f"{len(value):,} {what}" for what, value in values if isinstance(value, tuple)]
        ended = ", ended early" if getattr(self, "partial", False) else ""
        return f"<{type(self).__name__} of {name}: {', '.join(parts)}{ended}>"

    def __str__(self) -> str:
        """Return the figures as aligned text."""
        return str(self.table())

    def table(self) -> str:
        """Return the figures as aligned plain text."""
        raise NotImplementedError(f"{type(self).__name__} has no table")


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


def check_config(config: Any) -> None:
    """Check the fields that every `Config` has, and store them as plain numbers."""
    object.__setattr__(config, "trials", count("trials", config.trials))
    object.__setattr__(config, "seed", integer("seed", config.seed, 0, 2**63 - 1))
    if hasattr(config, "confidence"):
        object.__setattr__(config, "confidence", confidence_level(config.confidence))


def require_own_config(config: Any, module: str) -> None:
    """Check that a configuration is that of the experiment that this module runs."""
    # By name: whoever replaces the class to change a default still runs the same experiment.
    if type(config).__module__ != module:
        raise mistyped("config", f"a Config of {_experiment_module(module)}", config)


def _experiment_module(module: str) -> str:
    """Return the module or package of an experiment: its own, or that of its `experiment`."""
    return module.removesuffix(".experiment")


def check_list(name: str, values: Any, checked: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Check a list without repetition, entry by entry, and return it as a tuple."""
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise mistyped(name, "a list or tuple", values)
    found = tuple(map(checked, values))
    if not found or len(set(found)) < len(found):
        raise invalid(name, "not empty and without repetition", values)
    return found


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
    return run_jobs(
        label,
        jobs,
        lambda job: _audit_job(job, config, threads),
        progress,
        size=lambda job: job.effort * job.pair.x.size,
        ended=lambda audit: audit.partial,
    )


def run_jobs(
    label: str,
    jobs: Sequence[_JobType],
    work: Callable[[_JobType], _AnswerType],
    progress: bool | None,
    *,
    size: Callable[[_JobType], int] = lambda job: 1,
    ended: Callable[[_AnswerType], bool] = lambda found: False,
    worth: Callable[[_AnswerType], bool] = lambda found: True,
) -> tuple[tuple[_AnswerType, ...], bool]:
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


def gather_in_processes(
    label: str,
    work: Callable[..., _AnswerType],
    jobs: Sequence[Sequence[Any]],
    processes: int,
    progress: bool | None,
    *,
    ended: Callable[[_AnswerType], bool] = lambda found: False,
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
        from ..packages import require_module

        joblib = require_module("joblib", label)
        calls = (joblib.delayed(_work_in_one_thread)(work, job) for job in jobs)
        done: Iterator[_AnswerType] = joblib.Parallel(many, return_as="generator")(calls)
    else:
        done = (_work_in_one_thread(work, job) for job in jobs)
    return run_jobs(label, jobs, lambda job: next(done), progress, ended=ended)


def _work_in_one_thread(work: Callable[..., _AnswerType], job: Sequence[Any]) -> _AnswerType:
    import scipy.linalg  # noqa: F401  # Its BLAS is limited as well only once it is loaded.
    from threadpoolctl import threadpool_limits

    from ..text.systems.training import one_thread

    # A process of a pool has one thread: with more the last bits of products would differ.
    with one_thread(), threadpool_limits(1):
        return work(*job)


def _audit_job(job: Job, config: Any, threads: int | None) -> Audit:
    return audit(
        job.mechanism,
        job.pair,
        attack=job.attack,
        claim=job.claim,
        trials=job.trials or config.trials,
        confidence=config.confidence,
        rng=cell_seed(config.seed, job.key),
        threads=threads,
        progress=False,
    )
