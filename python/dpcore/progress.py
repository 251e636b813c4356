"""A progress bar for long work, on a terminal or in a notebook only."""

from __future__ import annotations

import sys
import time
from typing import Any

from .errors import mistyped

__all__ = ["Progress", "interrupted_again", "watched"]

_QUIET_SECONDS = 1.0
_AGAIN_SECONDS = 2.0

_last_interrupt = -_AGAIN_SECONDS


class Progress:
    """Shows the share of work done, never what was found so far.

    Counts are kept out of sight on purpose: an audit that somebody stops because of what it
    shows is no longer an audit of a fixed number of trials.

    Args:
        label: what is being done.
        total: amount of work.
        show: True, False, or None for "where somebody is looking, and only for long work".
    """

    def __init__(self, label: str, total: int, show: bool | None) -> None:
        if show is not None and not isinstance(show, bool):
            raise mistyped("progress", "True, False or None", show)
        self._label, self._total = label, total
        self._wanted = watched() if show is None else show
        self._patience = _QUIET_SECONDS if show is None else 0.0
        self._begun = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, done: int) -> None:
        """Move on by an amount of work."""
        if not self._wanted:
            return
        if self._bar is None:
            if time.monotonic() - self._begun < self._patience:
                self._total -= done
                return
            self._bar = _bar()
            self._task = self._bar.add_task(self._label, total=self._total)
            self._bar.start()
        self._bar.advance(self._task, done)


def interrupted_again() -> bool:
    """Note a Ctrl-C; True if it is the second one within two seconds, which ends everything."""
    global _last_interrupt
    now = time.monotonic()
    again = now - _last_interrupt < _AGAIN_SECONDS
    _last_interrupt = now
    return again


def watched() -> bool:
    """True on a terminal or in a notebook."""
    if sys.stderr is not None and sys.stderr.isatty():
        return True
    if "IPython" not in sys.modules:
        return False
    shell = sys.modules["IPython"].get_ipython()
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    console = Console(stderr=True)
    return Progress(*columns, TimeRemainingColumn(), console=console, transient=True)
