"""End of a command: its exit status, and its text on stderr.

A status stands in a CI job, so none of them may come about by accident: 1 says "refuted" and
nothing else, although it is also what Python itself exits with on any exception.
"""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Callable, Iterator

from ..errors import argument_of
from .options import OPTIONS

NOT_REFUTED, REFUTED, USAGE, NO_VERDICT, PARTS_MISSING, INTERRUPTED = 0, 1, 2, 3, 4, 130

MECHANISM_CONTRACT = "it is called as mechanism(x, size, rng) and returns an array with size rows"


class Usage(Exception):
    """Error of a command line that requests something missing or unsuitable."""


class Failure(Exception):
    """Error of a user's code: the message describes it, the cause is the exception itself.

    Args:
        text: one line.
        hint: what to look at, one line.
    """

    def __init__(self, text: str, hint: str) -> None:
        super().__init__(text)
        self.hint = hint


@contextlib.contextmanager
def report_bad_usage(called: str = MECHANISM_CONTRACT) -> Iterator[None]:
    """Turn the error of an argument check into bad usage, in the words of the command line.

    Args:
        called: how the user's mechanism is called, for complaints about its outputs.
    """
    try:
        yield
    except (TypeError, ValueError, RuntimeError, OSError) as error:
        text, argument = str(error), argument_of(error) or ""
        # Of dpcore's own complaints only these are about what a user's function returned.
        if argument.startswith("outputs of "):
            raise Failure(text, called) from error
        if not isinstance(error, (TypeError, ValueError)):
            raise
        text = OPTIONS.get(argument, argument) + text.removeprefix(argument)
        for name, value in getattr(error, "mentioned", {}).items():
            # A switch has no value.
            shown = f"{OPTIONS.get(name, name)} {'' if value == 'True' else value}".rstrip()
            text = text.replace(f"{name}={value}", shown)
        raise Usage(text) from error


@contextlib.contextmanager
def tag_failures(doing: str, file: str, hint: str = MECHANISM_CONTRACT) -> Iterator[None]:
    """Tag the exceptions that a user's code raises, so that they are not taken for dpcore's own.

    Args:
        doing: what is being done, for the message.
        file: path of the user's file.
        hint: what to look at.
    """
    try:
        yield
    except (KeyboardInterrupt, Failure):
        raise
    except BaseException as error:  # SystemExit too: a mechanism does not choose the status
        text = f"{doing} failed: {last_line(error)}{_format_place(error, file)}"
        raise Failure(text, hint) from error


def _format_place(error: BaseException, file: str) -> str:
    lines = [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__)
        if os.path.abspath(frame.filename) == os.path.abspath(file)
    ]  # fmt: skip
    if isinstance(error, SyntaxError) and error.filename:
        file, lines = error.filename, [error.lineno]
    return f" ({os.path.basename(file)}, line {lines[-1]})" if lines else ""


def run_guarded(work: Callable[[], int], show_traceback: bool = False) -> int:
    """Run a command and turn every exception into an exit status.

    Args:
        work: the command; returns its status.
        show_traceback: print the whole traceback of an error to stderr.

    Returns:
        The exit status.
    """
    try:
        status = work()
        sys.stdout.flush()
        return status
    except KeyboardInterrupt as error:
        write_line(f"interrupted: {error}" if str(error) else "interrupted")
        return INTERRUPTED
    except Usage as error:
        _print_traceback(error.__cause__, show_traceback)
        write_line(f"error: {error}")
        return USAGE
    except Failure as error:
        _print_traceback(error.__cause__, show_traceback)
        write_line(f"error: {error}")
        write_line(f"hint: {error.hint}")
        if not show_traceback:
            write_line("hint: --traceback shows the whole traceback")
        return NO_VERDICT
    except (BrokenPipeError, SystemExit):  # click and rich leave with 1 on a closed pipe
        _drop_stdout()
        return NO_VERDICT
    except BaseException as error:
        _print_traceback(error, show_traceback)
        write_line(f"error: dpcore failed: {last_line(error)}")
        if not show_traceback:
            write_line("hint: --traceback shows where, for a report of the bug")
        _drop_stdout()
        return NO_VERDICT


def write_line(text: str) -> None:
    """Write a line to stderr if there is one."""
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


def last_line(error: BaseException) -> str:
    """Return the last line of a traceback, the class and the message, and what was noted."""
    notes = [str(note) for note in getattr(error, "__notes__", ())]
    text = traceback.format_exception_only(error)[-1 - len(notes)]
    return "; ".join([" ".join(text.split()), *notes])


def _print_traceback(error: BaseException | None, wanted: bool) -> None:
    if wanted and error is not None:
        with contextlib.suppress(OSError, ValueError):
            traceback.print_exception(error)


def _drop_stdout() -> None:
    """Discard unwritten output, since Python's last flush would make the status 120."""
    try:
        sys.stdout.flush()
    except OSError:
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
