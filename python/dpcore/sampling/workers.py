"""Workers that draw the outputs of an audit: this process, its threads, an executor or Dask.

A shard is a run of consecutive trials that one worker draws. A large mechanism is sent to each
worker process only once. Later tasks contain only a hash of the mechanism. Worker processes ignore
Ctrl-C, because the main process handles Ctrl-C.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import hashlib
import math
import os
import pickle
import platform
import signal
import threading
import time
import uuid
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import numpy as np

from ..errors import invalid, mistyped
from ..packages import attribute_if_imported, get_loaded_module
from ..streams import threads_of

_TASKS_PER_WORKER: Final = 2
"""Number of shards that each worker holds: one is drawn and one waits."""
_MAX_WAIT_SECONDS: Final = 0.2
"""Time after which the waiting process checks for other work."""
_SMALL_BYTES: Final = 2**16
"""Size up to which an object is sent with every task, because sending its name costs as much."""
_MAX_KNOWN_PARTS: Final = 8
"""Number of objects that a worker keeps for later tasks."""
_SECONDS_BETWEEN_WORKER_COUNTS: Final = 1.0
_SECONDS_BETWEEN_PARENT_CHECKS: Final = 0.5
_WORKERS_WAIT_SECONDS: Final = 60
"""Time within which a cluster must have a worker."""

SAME_BITS_REMEDY: Final = (
    "set NPY_DISABLE_CPU_FEATURES on all machines to the AVX-512 features that "
    "numpy.show_runtime() lists, such as 'X86_V4 AVX512_ICL AVX512_SPR'; same_bits=False accepts "
    "other bits"
)
"""Advice if two machines give different bits for one seed."""

_PROCESS_ID: Final = uuid.uuid4().hex
"""Name of this process and of the processes that are forked from it."""


class LostError(Exception):
    """Error for a worker that died during a task. The task may be given to another worker."""


class Introduction(NamedTuple):
    """Facts about a worker process and its machine.

    The worker returns these facts when it receives a mechanism for the first time.

    Args:
        host: name of the worker's machine.
        versions: versions of dpcore, numpy and Python.
        bits: hash of some outputs of the mechanism. Two machines with different hashes do not draw
            the same bits. The hash is "" if the same seed does not give the same outputs again.
    """

    host: str
    versions: tuple[str, ...]
    bits: str


class Answer(NamedTuple):
    """Message that a worker process returns for a task.

    Args:
        worker: name of the worker.
        introduction: facts about the worker. None if the worker has had a task with this mechanism
            before.
        result: result of the task. None if the task needs an object that the worker does not have.
    """

    worker: str
    introduction: Introduction | None
    result: Any


class Workers:
    """Set of one worker: this process, which does each task as soon as the task is submitted."""

    travels = False
    """True for workers outside this process, which get longer tasks."""
    count = 1
    """Number of workers."""

    @property
    def max_tasks(self) -> int:
        """Largest number of tasks that may be submitted and unfinished at the same time."""
        return 1

    def submit(self, function: Callable[..., Any], draws: Any, work: Any, task: Any) -> Any:
        """Do a task: call `function(draws, work, task)`. Return a handle for the result."""
        done: Future[Any] = Future()
        done.set_result(function(draws, work, task))
        return done

    def wait_for_any(self, handles: list[Any]) -> list[Any]:
        """Wait until at least one of some tasks is finished, and return the finished tasks.

        Args:
            handles: the tasks, as the method `submit` returned them.
        """
        done: set[Any] = set()
        while not done:
            done = concurrent.futures.wait(handles, _MAX_WAIT_SECONDS, "FIRST_COMPLETED").done
        return list(done)

    def result(self, handle: Any) -> Any:
        """Return the result of a task, or None if the task must be submitted again.

        Args:
            handle: the task, as the method `submit` returned it.

        Raises:
            LostError: if the worker of the task died.
        """
        return handle.result()

    def cancel(self, handles: list[Any]) -> None:
        """Cancel those of the given tasks that no worker has begun."""
        for handle in handles:
            handle.cancel()


class Threads(Workers):
    """Workers that are threads of this process.

    Args:
        executor: executor that runs the tasks.
        count: number of threads.
    """

    def __init__(self, executor: Executor, count: int) -> None:
        self._executor, self.count = executor, count

    @property
    def max_tasks(self) -> int:
        """Largest number of tasks that may be submitted and unfinished at the same time."""
        return _TASKS_PER_WORKER * self.count

    def submit(self, function: Callable[..., Any], draws: Any, work: Any, task: Any) -> Any:
        """Let a thread call `function(draws, work, task)`; return a handle for the result."""
        return self._executor.submit(function, draws, work, task)

    def result(self, handle: Any) -> Any:
        """Return the result of a task. The argument is what the method `submit` returned."""
        try:
            return handle.result()
        except BrokenExecutor as error:
            requirement = "one whose workers live until the end"
            text = f"executor must be {requirement}, got {self._executor!r}: {error}"
            raise RuntimeError(text) from error


class Processes(Threads):
    """Workers that are processes of an executor, on this machine or on other machines.

    Args:
        executor: executor that runs the tasks.
        count: number of processes.
        introduce: function that returns a hash of some outputs of the mechanism. The hash in a
            worker and the hash in this process must be equal. None means no comparison.
    """

    travels = True

    def __init__(
        self, executor: Executor, count: int, introduce: Callable[[Any], str] | None = None
    ) -> None:
        super().__init__(executor, count)
        self._introduce = introduce
        self._parts: dict[int, tuple[Any, str, bytes]] = {}
        self._bringing: set[Any] = set()
        self._wanted = 0
        self._knowing: set[str] = set()
        self._asking: set[str] = set()
        self._mine: Introduction | None = None
        self._large: frozenset[str] | None = None

    @property
    def max_tasks(self) -> int:
        """Largest number of tasks that may be submitted and unfinished at the same time.

        If the mechanism is a large object, this number is small until workers have received the
        mechanism.
        """
        if not self._large:
            return _TASKS_PER_WORKER * self.count
        copies = len(self._bringing) + self._wanted
        return max(1, _TASKS_PER_WORKER * len(self._knowing) + copies)

    def submit(self, function: Callable[..., Any], draws: Any, work: Any, task: Any) -> Any:
        """Let a process call `function(draws, work, task)`, and return a handle for the result.

        Large objects are sent only to workers that have not received them yet.
        """
        parts = [self._pickle_part(part) for part in (draws, work)]
        large = frozenset(key for key, held in parts if len(held) > _SMALL_BYTES)
        if large != self._large:
            introduced = _KNOWN_BY.setdefault(self._executor, {})
            self._knowing = introduced.setdefault(large, set())
            # At first one copy per worker is sent; a worker without a copy requests it.
            self._bringing.clear()
            self._wanted = 0 if self._knowing else self.count
            self._large = large
        if self._introduce is not None and self._mine is None:
            key = parts[0][0]
            if key not in _own_introductions:
                _own_introductions.clear()
                _own_introductions[key] = _worker_versions(draws, self._introduce)
            self._mine = _own_introductions[key]
        whole = bool(large) and self._wanted > 0
        sent = [(key, held if whole or key not in large else None) for key, held in parts]
        handle = self._submit_call(_run_task_if_parts_known, function, sent, task, self._introduce)
        if whole:
            self._wanted -= 1
            self._bringing.add(handle)
        return handle

    def _submit_call(self, *call: Any) -> Any:
        return self._executor.submit(*call)

    def _pickle_part(self, part: Any) -> tuple[str, bytes]:
        stored = self._parts.get(id(part))
        if stored is None or stored[0] is not part:
            held = self._dump(part)
            stored = part, hashlib.blake2b(held, digest_size=16).hexdigest(), held
            if len(self._parts) >= _MAX_KNOWN_PARTS:
                self._parts.clear()
            # The object is kept too, so that no other object gets its id.
            self._parts[id(part)] = stored
        return stored[1:]

    def _dump(self, part: Any) -> bytes:
        cloud = get_loaded_module("cloudpickle")
        own = type(self._executor).__module__ == "concurrent.futures.process"
        if cloud is not None and not own:
            return bytes(cloud.dumps(part))
        try:
            return pickle.dumps(part)
        except Exception as error:
            need = (
                "a function of a module for an executor of processes (executor= a Dask client "
                f"takes any function): {error}"
            )
            raise mistyped("mechanism", need, getattr(part, "mechanism", part)) from error

    def result(self, handle: Any) -> Any:
        """Return the result of a task, or None if the worker lacked an object that the task needs.

        Args:
            handle: the task, as the method `submit` returned it.

        Raises:
            ValueError: if the worker and this process have different versions of dpcore, numpy or
                Python, or draw outputs with different bits.
        """
        answer: Answer = super().result(handle)
        self._bringing.discard(handle)
        if answer.result is None:
            self._wanted += answer.worker not in self._asking
            self._asking.add(answer.worker)
            self._knowing.discard(answer.worker)
            return None
        self._asking.discard(answer.worker)
        self._knowing.add(answer.worker)
        if answer.introduction is not None and self._mine is not None:
            _compare_introductions(self._mine, answer.introduction)
        return answer.result


class Cluster(Processes):
    """Workers of a Dask cluster. Workers may join and leave during an audit.

    Args:
        client: a `distributed.Client`.
        introduce: function that returns a hash of some outputs of the mechanism. A worker is
            refused if its hash differs from the hash in this process. None means no comparison.
    """

    def __init__(self, client: Any, introduce: Callable[[Any], str] | None = None) -> None:
        super().__init__(client, 1, introduce)
        try:
            client.wait_for_workers(1, timeout=_WORKERS_WAIT_SECONDS)
        except (TimeoutError, OSError) as error:
            requirement = f"a Dask client with a worker within {_WORKERS_WAIT_SECONDS} seconds"
            raise invalid("executor", requirement, client) from error
        self._client = client
        self._count, self._counted = 1, -math.inf

    @property
    def count(self) -> int:
        """Number of threads of all workers of the cluster, updated at most once per second."""
        if time.monotonic() - self._counted > _SECONDS_BETWEEN_WORKER_COUNTS:
            self._count, self._counted = count_workers(self._client, 1), time.monotonic()
        return self._count

    @count.setter
    def count(self, value: int) -> None:
        """Ignore `value`, because the cluster reports the number of its workers."""

    def _dump(self, part: Any) -> bytes:
        import cloudpickle

        return bytes(cloudpickle.dumps(part))

    def _submit_call(self, *call: Any) -> Any:
        with warnings.catch_warnings():
            # A mechanism is sent once per worker, even if it is large.
            warnings.filterwarnings("ignore", message="Sending large graph")
            return self._client.submit(*call, pure=False)

    def wait_for_any(self, handles: list[Any]) -> list[Any]:
        """Wait until at least one of some tasks is finished, and return the finished tasks.

        Args:
            handles: the tasks, as the method `submit` returned them.

        Raises:
            RuntimeError: if the cluster has no workers and returned no result for one minute.
        """
        from distributed import wait

        since = time.monotonic()
        while True:
            if time.monotonic() - since > _WORKERS_WAIT_SECONDS:
                if not self._client.nthreads():
                    raise RuntimeError(f"executor must have workers, got {self._client!r}")
                since = time.monotonic()
            with contextlib.suppress(TimeoutError):
                wait(handles, _MAX_WAIT_SECONDS, "FIRST_COMPLETED")
            finished = [handle for handle in handles if handle.done()]
            if finished:
                return finished

    def result(self, handle: Any) -> Any:
        """Return the result of a task. The argument is what the method `submit` returned.

        Raises:
            LostError: if the workers that received this task died.
        """
        from distributed import KilledWorker

        try:
            return super().result(handle)
        except ModuleNotFoundError as error:
            package = "dpcore" if str(error.name).startswith("dpcore") else error.name
            requirement = (
                f"workers on which {package} is installed (client.upload_file sends a module)"
            )
            raise invalid("executor", requirement, f"{self._client} ({error})") from error
        except (KilledWorker, concurrent.futures.CancelledError) as error:
            self._bringing.discard(handle)
            raise LostError(str(error) or "its workers are gone") from error

    def cancel(self, handles: list[Any]) -> None:
        """Cancel those of the given tasks that no worker has begun."""
        if handles:
            self._client.cancel(handles)


_KNOWN_BY: weakref.WeakKeyDictionary[Any, dict[frozenset[str], set[str]]] = (
    weakref.WeakKeyDictionary()
)
"""Workers that have loaded large objects, by executor."""
_PLACE_OF: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
"""Places in which executors work, see `find_where_tasks_run`."""
_own_introductions: dict[str, Introduction] = {}
"""Introduction of this process for the last object that it sent, by the object's digest."""
_loaded_parts: OrderedDict[str, Any] = OrderedDict()
"""Objects that this process has received as a worker, by their digests."""


def _run_task_if_parts_known(
    function: Callable[..., Any],
    parts: list[tuple[str, bytes | None]],
    task: Any,
    introduce: Callable[[Any], str] | None,
) -> Answer:
    """Do a task in a worker process, if the worker has all objects that the task needs."""
    _ignore_interrupts()
    _end_with_parent()
    worker = f"{platform.node()}/{os.getpid()}/{_PROCESS_ID}"
    parts_done, is_new = [], False
    for number, (key, held) in enumerate(parts):
        if key not in _loaded_parts:
            if held is None:
                return Answer(worker, None, None)
            _loaded_parts[key] = _unpickle_part(held)
            is_new |= number == 0
        _loaded_parts.move_to_end(key)
        parts_done.append(_loaded_parts[key])
    while len(_loaded_parts) > _MAX_KNOWN_PARTS:
        _loaded_parts.popitem(last=False)
    draws, work = parts_done
    introduction = _worker_versions(draws, introduce) if is_new and introduce is not None else None
    return Answer(worker, introduction, function(draws, work, task))


def _unpickle_part(held: bytes) -> Any:
    try:
        return pickle.loads(held)
    except ModuleNotFoundError:
        raise
    except Exception as error:
        # An error that cannot be pickled would leave the other process waiting.
        text = f"a worker cannot read the mechanism: {type(error).__name__}: {error}"
        raise RuntimeError(text) from None


def _ignore_interrupts() -> None:
    """Ignore Ctrl-C in a worker process."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


_has_parent_watch = False
"""True once this process watches its parent and ends with it."""


def _end_with_parent() -> None:
    """Make a worker process end when its parent process ends, even if the parent was killed."""
    global _has_parent_watch
    from multiprocessing import parent_process

    parent, number = parent_process(), os.getppid()
    if parent is None or _has_parent_watch:
        return
    _has_parent_watch = True

    def watch() -> None:
        # Forked siblings keep the pipe that `is_alive` uses open; the parent's number always
        # changes.
        while os.getppid() == number and parent.is_alive():
            time.sleep(_SECONDS_BETWEEN_PARENT_CHECKS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _worker_versions(draws: Any, hash_outputs: Callable[[Any], str]) -> Introduction:
    from importlib.metadata import version

    versions = f"dpcore {version('dpcore')}", f"numpy {np.__version__}"
    python = f"Python {platform.python_version()}"
    return Introduction(platform.node(), (*versions, python), hash_outputs(draws))


def _compare_introductions(mine: Introduction, other: Introduction) -> None:
    """Raise an error if a worker has other versions or draws different bits than this process."""
    if other.versions != mine.versions:
        requirement = f"workers with {', '.join(mine.versions)}, as here"
        difference = f"{other.host} with {', '.join(other.versions)}"
        raise invalid("executor", requirement, difference)
    if other.bits != mine.bits:
        requirement = f"workers that give the bits of this process ({SAME_BITS_REMEDY})"
        raise invalid("executor", requirement, other.host)


@contextmanager
def open_workers(
    executor: Any, threads: int, introduce: Callable[[Any], str] | None = None
) -> Iterator[Workers]:
    """Return a context manager that provides the workers that draw outputs.

    Args:
        executor: an executor, a Dask client, or None for this process.
        threads: number of threads of this process. If the number of workers of `executor` is
            unknown, dpcore assumes `threads` workers.
        introduce: function that returns a hash of some outputs of the mechanism. A worker is
            refused if its hash differs from the hash in this process. None means no comparison.
    """
    if executor is None and threads == 1:
        yield Workers()
    elif executor is None:
        with concurrent.futures.ThreadPoolExecutor(threads) as pool:
            try:
                yield Threads(pool, threads)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
    elif is_dask_client(executor):
        yield Cluster(executor, introduce)
    elif (_PLACE_OF.get(executor) or find_where_tasks_run(executor)) == "processes":
        yield Processes(executor, count_workers(executor, threads), introduce)
    else:
        yield Threads(executor, count_workers(executor, threads))


def is_dask_client(executor: Any) -> bool:
    """Return True if `executor` is a client of a Dask cluster."""
    client = attribute_if_imported("distributed", "Client")
    return client is not None and isinstance(executor, client)


def count_workers(executor: Any, threads: int | None) -> int:
    """Return the number of workers of an executor.

    If this number is unknown, return `threads`. If `threads` is None, return the number of cores.
    """
    if is_dask_client(executor):
        return max(1, sum(map(int, executor.nthreads().values())))
    most = getattr(executor, "_max_workers", None)
    return most if isinstance(most, int) and most > 0 else threads_of(threads)


def _process_uuid_pid_thread_id() -> tuple[str, int, int]:
    return _PROCESS_ID, os.getpid(), threading.get_ident()


def find_where_tasks_run(executor: Any) -> str:
    """Run a test task to find where an executor runs tasks.

    The result is "here" (in the calling thread), "threads" (other threads of this process) or
    "processes".

    Raises:
        ValueError: if the executor was shut down and accepts no tasks.
    """
    try:
        process, pid, thread = executor.submit(_process_uuid_pid_thread_id).result()
    except RuntimeError as error:
        raise invalid("executor", "one that still takes tasks", f"{executor!r} ({error})") from None
    mine = _process_uuid_pid_thread_id()
    if (process, pid) != mine[:2]:
        place = "processes"
    else:
        place = "here" if thread == mine[2] else "threads"
    _PLACE_OF[executor] = place
    return place
