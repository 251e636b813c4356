"""Processes for many trainings: one torch thread each, and the model made once in each."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from ..errors import integer, mistyped
from ..loaded import imported_module
from ..streams import threads_of

__all__ = ["make_pool"]


def make_pool(
    processes: int | None = None, prepare: Callable[[], Any] | None = None
) -> ProcessPoolExecutor:
    """Make an executor of processes for `dpcore.audit(dpcore.repeat(train), ..., executor=pool)`.

    torch and the libraries of numpy get one thread in each: several that share the cores are
    slower than one. The processes are started afresh (spawn), for a fork of a process in which
    torch has run may deadlock; so what is trained must be importable from a module.

    The processes start at once, while the audit tries the mechanism in this process.

    Args:
        processes: number of processes; None is the number of cores.
        prepare: a function without arguments, importable from a module, that each process calls
            once, and this one too, in which an audit tries the mechanism: to load the data, say,
            or to make the model that `train` copies.

    Returns:
        The executor; close it with `with`.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if `processes` is below 1.

    Example:
        >>> with make_pool(1) as pool:
        ...     pool.submit(abs, -2).result()
        2
    """
    many = threads_of(None) if processes is None else integer("processes", processes, 1)
    if prepare is not None and not callable(prepare):
        raise mistyped("prepare", "a function without arguments or None", prepare)
    pool = ProcessPoolExecutor(
        many, get_context("spawn"), _start_process, (prepare, torch_is_used())
    )
    # The first task starts all processes.
    pool.submit(os.getpid)
    if prepare is not None:
        prepare()
    return pool


def torch_is_used() -> bool:
    """Return True if torch has been imported, so that processes import it too."""
    return imported_module("torch") is not None


def _start_process(prepare: Callable[[], Any] | None, uses_torch: bool) -> None:
    """Limit the threads of a new process, then prepare it."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
    if prepare is not None:
        prepare()
    if uses_torch or imported_module("torch") is not None:
        import torch

        torch.set_num_threads(1)
        threadpool_limits(1)
