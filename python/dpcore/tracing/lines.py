"""Search for the line of a function that computes an output without noise."""

from __future__ import annotations

import sys
from typing import Any

from .calls import TracedFunction
from .places import Place, is_user_file, make_place


def _is_equal_to_target(value: Any, target: Any) -> bool:
    """Return True for a number or text that equals the target; the number types may differ."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return False
    return isinstance(value, str) == isinstance(target, str) and value == target


class _LineWatch:
    """A trace function that looks for a value among the local variables of a user's functions."""

    def __init__(self, target: Any) -> None:
        self.target = target
        self.places: list[Place] = []
        self.returned: Place | None = None
        self._known: dict[int, set[str]] = {}
        self._lines: dict[int, int] = {}

    def __call__(self, frame: Any, event: str, argument: Any) -> Any:
        """Record the line if it gives the value to a local variable or returns it."""
        if not is_user_file(frame.f_code.co_filename):
            return None
        if event == "call":
            self._known[id(frame)] = self._local_names_with_target_value(frame)
            return self
        line = self._lines.get(id(frame), frame.f_lineno)
        names = self._local_names_with_target_value(frame)
        if names - self._known.get(id(frame), set()):
            self.places.append(make_place(frame, line))
        self._known[id(frame)] = names
        self._lines[id(frame)] = frame.f_lineno
        if event == "return":
            self.returned = make_place(frame, frame.f_lineno)
            if _is_equal_to_target(argument, self.target):
                self.places.append(self.returned)
        return self

    def _local_names_with_target_value(self, frame: Any) -> set[str]:
        return {n for n, value in frame.f_locals.items() if _is_equal_to_target(value, self.target)}


def find_value_lines_and_return(
    function: TracedFunction, side: int, target: Any
) -> tuple[list[Place], Place | None]:
    """Find the lines of code that compute a given value in an ordinary run of a function.

    The result is a pair: these lines, and the line at which the last call of user code ended.

    Args:
        function: the function, with its pair of inputs.
        side: 0 to run the function on x, 1 to run the function on x'.
        target: the value to find, a number or a text.
    """
    watch = _LineWatch(target)
    before = sys.gettrace()
    sys.settrace(watch)
    try:
        function.run_without_trace(side, 0)
    finally:
        sys.settrace(before)
    return watch.places, watch.returned
