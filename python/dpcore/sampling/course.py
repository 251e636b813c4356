"""Course of an audit: time and draws of each step, and one progress bar for all steps."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from ..progress import Progress

__all__ = ["Course"]

_MIN_CALL_SIZE_RATIO: Final = 8
"""Ratio of the outputs of two calls from which on they show the time of an output by itself."""


class Course(Progress):
    """The course of an audit, step by step: "probe", "search", "fit", "count", "report".

    Args:
        show: show a bar, see `Progress`.
        alive: keep it moving, see `Progress`.
        clock: seconds.
    """

    by_call = True

    def __init__(
        self,
        show: bool | None = False,
        *,
        alive: bool = True,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        super().__init__("", None, show, alive=alive)
        self.clock = clock
        self._spent: dict[str, list[Any]] = {}
        self._step, self._since = "", clock()
        self.calls = 0
        self._timed: dict[int, float] = {}

    def step(self, name: str, label: str = "", total: float | None = None) -> None:
        """Go on to a step, or back to it.

        Args:
            name: of the step; what is done in it from now on is added to it.
            label: what the bar says; empty leaves the bar as it is.
            total: outputs that it will take, on both sides; None if nobody knows.
        """
        self._settle()
        self._step = name
        self._spent.setdefault(name, [0.0, 0])
        if label:
            self.begin(label, total)

    def drew(self, outputs: int) -> None:
        """Record outputs that were made."""
        self._spent.setdefault(self._step, [0.0, 0])[1] += outputs
        self.advance(outputs)

    def called(self, outputs: int, seconds: float) -> None:
        """Record a call that was timed."""
        self.drew(outputs)
        self.calls += 1
        self._timed[outputs] = min(seconds, self._timed.get(outputs, seconds))

    def estimate_seconds(self, block: int) -> float:
        """Estimate the least time for an output in calls of a block; 0 before any was timed.

        Two calls of which one made eight times the outputs separate the time of an output from
        that of a call, which may start a process.

        Args:
            block: outputs of a call.
        """
        if not self._timed:
            return 0.0
        few, many = min(self._timed), max(self._timed)
        if many < _MIN_CALL_SIZE_RATIO * few:
            return min(seconds / outputs for outputs, seconds in self._timed.items())
        each = max(0.0, self._timed[many] - self._timed[few]) / (many - few)
        return each + max(0.0, self._timed[few] - few * each) / max(block, many)

    def seconds(self, name: str) -> float:
        """Return the time spent on a step so far."""
        self._settle()
        return float(self._spent[name][0]) if name in self._spent else 0.0

    def spent(self) -> tuple[tuple[str, float, int], ...]:
        """Return the name, seconds and outputs of every step so far."""
        self._settle()
        return tuple((name, *held) for name, held in self._spent.items())

    def _settle(self) -> None:
        now = self.clock()
        if self._step:
            self._spent[self._step][0] += now - self._since
        self._since = now
