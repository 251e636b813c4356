"""Progress bar for work that takes long, shown only in a terminal or a notebook."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from .errors import mistyped
from .packages import get_loaded_module
from .visible import make_visible

LONG_SECONDS: Final = 30.0
"""Expected duration in seconds above which dpcore prints this duration before the work."""

WORDING: ContextVar[Callable[[str], str]] = ContextVar("WORDING", default=str)
"""Function that changes the text of printed lines. The command-line program uses it to replace
names of arguments by names of options."""

_QUIET_SECONDS = 1.0
_REDRAWN_SECONDS = 0.2
_SECOND_INTERRUPT_SECONDS = 2.0

RECEIVED_SIGNALS: Final[list[int]] = []
"""Numbers of the signals that `interrupt_on_signal` has handled."""

_last_interrupt = -_SECOND_INTERRUPT_SECONDS
_shown_bar: Progress | None = None


class Progress:
    """Progress bar that shows how much of the current work is done.

    The bar of an audit does not show intermediate results. A user could end an audit because of
    such results. The number of trials would then depend on the results, and the certified bound
    would be invalid.

    Args:
        label: description of the current work, as shown in the bar.
        total: total amount of work, in any unit. None if the amount is unknown.
        show: True to show the bar, False to hide it. None shows the bar in a terminal or a
            notebook, if the work takes longer than one second.
        alive: True if a separate thread redraws the bar. If the process will be forked, `alive`
            must be False.
        clock: function that returns a time in seconds. Defaults to `time.monotonic`.
        by_call: True if the unit of work is one output of a mechanism. Loops over
            `count_with_progress` then move the bar.
    """

    def __init__(
        self,
        label: str,
        total: float | None,
        show: bool | None,
        *,
        alive: bool = True,
        clock: Callable[[], float] | None = None,
        by_call: bool = False,
    ) -> None:
        if show is not None and not isinstance(show, bool):
            raise mistyped("progress", "True, False or None", show)
        self._wanted = is_watched() if show is None else show
        self._silent = show is False
        self.by_call = by_call
        self._clock = clock or time.monotonic
        self._begun = self._clock()
        self._patience = _QUIET_SECONDS if show is None else 0.0
        self._state = _State(make_visible(label), total, 0.0, self._begun, self._begun)
        self._display: _Terminal | _Notebook | None = None
        self._alive, self._drawn = alive, -math.inf
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None
        self._within = 0
        self._outer: Progress | None = None

    def __enter__(self) -> Self:
        global _shown_bar
        if _shown_bar is not None and self._patience:
            # Only one bar is shown: the outer bar describes the work that contains this work.
            self._wanted, self._silent = False, True
        if self._wanted:
            self._outer, _shown_bar = _shown_bar, self
        if self._patience == 0.0:
            self._draw()
        if self._wanted and self._alive:
            self._thread = threading.Thread(target=self._keep_moving, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_redraw_thread()
        with self._lock:
            self._wanted = False
            if self._display is not None:
                self._display.close()

    def advance(self, amount: float) -> None:
        """Move this bar by an amount of completed work, in the unit of the bar."""
        self._within = max(0, self._within - int(amount))
        self._state = self._state.add_done(amount, self._clock())
        if self._state.last - self._drawn >= _REDRAWN_SECONDS:
            self._draw()

    def count_with_bar(self, size: int) -> Iterator[int]:
        """Yield the numbers 0 to `size` - 1, and move this bar by one unit after each number.

        These moves are temporary. After the loop, the caller must report the same work by
        `advance`.
        """
        for number in range(size):
            yield number
            # Threads may lose some of these steps: they move only the bar, and never enter a count.
            self._within += 1

    def reset(self, label: str, total: float | None = None) -> None:
        """Use this bar for new work, from the beginning.

        Args:
            label: description of the new work, as shown in the bar.
            total: total amount of work, in any unit. None if the amount is unknown.
        """
        self._within, now = 0, self._clock()
        self._state = _State(make_visible(label), total, 0.0, now, now)
        if now - self._drawn >= _REDRAWN_SECONDS:
            self._draw()

    def stop_thread(self) -> None:
        """Draw this bar now, and end the thread that redraws the bar."""
        self._stop_redraw_thread()
        self._patience = 0.0
        self._draw()

    def relabel(self, label: str) -> None:
        """Replace the description of the work that this bar shows; the position stays the same."""
        self._state = replace(self._state, label=make_visible(label))

    def say(self, text: str) -> None:
        """Print lines of text above this bar, or on stderr if no bar is visible.

        If the bar was made with `show=False`, the text is not printed.
        """
        with self._lock:
            if not text or self._silent:
                return
            text = make_visible(WORDING.get()(text), "\n")
            if self._wanted and in_notebook():
                _Notebook.say(text)
            elif isinstance(self._display, _Terminal):
                self._display.say(text)
            elif sys.stderr is not None:
                sys.stderr.write(f"{text}\n")
                sys.stderr.flush()

    def forecast(self, work: str, seconds: float) -> bool:
        """Print the expected duration of some work, if the duration is above 30 seconds.

        Args:
            work: description of the work for the message: a noun in the plural, such as "10,000
                calls".
            seconds: expected duration in seconds.

        Returns:
            True if the duration was printed, otherwise False.
        """
        if seconds > LONG_SECONDS:
            self.say(f"dpcore: {work} take about {format_time(seconds)}")
        return seconds > LONG_SECONDS

    def _stop_redraw_thread(self) -> None:
        global _shown_bar
        if _shown_bar is self:
            _shown_bar = self._outer
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _keep_moving(self) -> None:
        while not self._ended.wait(_REDRAWN_SECONDS):
            self._draw()

    def _draw(self) -> None:
        now = self._clock()
        with self._lock:
            if not self._wanted or now - self._begun < self._patience:
                return
            try:
                if self._display is None:
                    self._display = _Notebook() if in_notebook() else _Terminal()
                within = self._within
                shown = self._state.add_done(within, now) if within else self._state
                self._display.draw(shown, now)
                self._drawn = now
            except OSError:
                # A terminal that was closed must not end an audit of hours.
                self._wanted = False


@dataclass(frozen=True, slots=True)
class _State:
    """State that a bar shows. It is immutable, so that threads never see a half-changed state."""

    label: str
    total: float | None
    done: float
    begun: float
    last: float

    def add_done(self, done: float, now: float) -> _State:
        return replace(self, done=self.done + done, last=now)

    def share(self) -> float | None:
        """Return the fraction of work that is done, in (0, 1].

        The result is None if this fraction is unknown or 0.
        """
        return min(1.0, self.done / self.total) if self.total and self.done else None

    def time_left_or_elapsed_text(self, now: float) -> str:
        """Return the remaining time as text; if it is unknown, return the elapsed time."""
        share = self.share() or 0.0
        left = (self.last - self.begun) * (1.0 / share - 1.0) - (now - self.last) if share else 0.0
        taken = now - self.begun
        return f"{format_time(round(left, 1))} left" if left > 0.0 else format_time(round(taken, 1))


class _Terminal:
    """Progress bar on stderr, drawn with the package rich."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

        label = TextColumn("{task.description}", markup=False)
        columns = (label, BarColumn(), TaskProgressColumn())
        remaining = TextColumn("{task.fields[left]}")
        console = Console(stderr=True)
        # Drawn by this class: rich's own thread would continue while calls are timed.
        self._bar: Any = Progress(
            *columns, remaining, console=console, transient=True, auto_refresh=False
        )
        self._bar.start()
        self._task: Any = None
        self._shown: _State | None = None

    def draw(self, state: _State, now: float) -> None:
        if self._shown is None or self._shown.begun != state.begun:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._task = self._bar.add_task(state.label, total=state.total, left="")
        self._shown = state
        share = dict(
            description=state.label, completed=state.done, left=state.time_left_or_elapsed_text(now)
        )
        self._bar.update(self._task, **share, refresh=True)

    def say(self, text: str) -> None:
        self._bar.console.print(text, markup=False, emoji=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        self._bar.stop()


class _Notebook:
    """Progress bar in the output of a notebook cell. Unlike rich, it does not need ipywidgets."""

    def __init__(self) -> None:
        self._handle: Any = None

    def draw(self, state: _State, now: float) -> None:
        import html

        share = state.share()
        part = "" if share is None else f" {100.0 * share:.0f} %"
        line = f"{state.label}{part}, {state.time_left_or_elapsed_text(now)}"
        value = "" if share is None else f' value="{share:.4f}"'
        page = f"<progress{value}></progress> {html.escape(line)}"
        self._display_or_update({"text/plain": line, "text/html": page})

    def close(self) -> None:
        if self._handle is not None:
            self._display_or_update({"text/plain": "", "text/html": ""})

    def _display_or_update(self, mime_bundle: dict[str, str]) -> None:
        if self._handle is None:
            self._handle = _import_ipython_display().display(mime_bundle, raw=True, display_id=True)
        else:
            self._handle.update(mime_bundle, raw=True)

    @staticmethod
    def say(text: str) -> None:
        _import_ipython_display().display({"text/plain": text}, raw=True)


def _import_ipython_display() -> Any:
    from IPython import display

    return display


def format_time(seconds: float) -> str:
    """Format a duration as text, in seconds, minutes, hours or days.

    Args:
        seconds: the duration in seconds.

    Example:
        >>> [format_time(seconds) for seconds in (0.0214, 90.0, 3600.0, 100800.0, 1e6)]
        ['0.021 s', '90 s', '60 min', '28 h', '12 days']
    """
    for most, unit, name in ((100.0, 1.0, "s"), (6000.0, 60.0, "min"), (2e5, 3600.0, "h")):
        if seconds < most:
            return f"{seconds / unit:.2g} {name}"
    return f"{seconds / 86400.0:,.0f} days"


def count_with_progress(size: int) -> Iterable[int]:
    """Return the numbers 0 to `size` - 1, for a loop that draws one output in each step.

    If a progress bar is visible and its unit is one output, each step of the loop moves the bar.
    """
    return (
        range(size)
        if _shown_bar is None or not _shown_bar.by_call
        else _shown_bar.count_with_bar(size)
    )


def record_interrupt_and_check_second() -> bool:
    """Record that the user pressed Ctrl-C; return True if it was pressed twice in 2 seconds.

    If the result is True, the caller ends the program.
    """
    global _last_interrupt
    now = time.monotonic()
    again = now - _last_interrupt < _SECOND_INTERRUPT_SECONDS
    _last_interrupt = now
    return again


def interrupt_on_signal(number: int, _: object) -> None:
    """Handle a signal of the operating system: record its number and raise a KeyboardInterrupt."""
    RECEIVED_SIGNALS.append(number)
    raise KeyboardInterrupt


def is_watched() -> bool:
    """Return True if stderr is a terminal or the code runs in a notebook."""
    return (sys.stderr is not None and sys.stderr.isatty()) or in_notebook()


def in_notebook() -> bool:
    """Return True if the code runs in a notebook, such as Jupyter or Colab."""
    module = get_loaded_module("IPython")
    shell = None if module is None else module.get_ipython()
    return any(kind.__name__ == "ZMQInteractiveShell" for kind in type(shell).__mro__)
