"""Last steps of a command: output of the report, error messages, and exit status."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ..errors import FileWarning, argument_of
from ..mechanisms.declarations import can_core_draw
from ..paths import write_file_or_keep_old
from ..report.figures import save_picture, use_own_style
from ..report.rows import format_row, format_rows
from ..results.audits import Audit
from ..results.outputs_audits import OutputsAudit
from ..tables.table_audit import TableAudit
from ..tracing.outcome import Trace
from ..visible import make_visible
from .options import (
    OPTIONS,
    AuditArguments,
    MergeArguments,
    OutputsArguments,
    TableArguments,
    TraceArguments,
    name_options,
)

NOT_REFUTED, REFUTED, USAGE, NO_VERDICT, PARTS_MISSING, INTERRUPTED = 0, 1, 2, 3, 4, 130
UNWRITTEN: Final = 5

MECHANISM_CONTRACT = "it is called as mechanism(x, size, rng) and returns an array with size rows"

_PACKAGE: Final = f"{os.path.dirname(os.path.dirname(__file__))}{os.sep}"

_ADVISING_LABELS: Final = ("verdict", "note", "needed", "plan", "time")
"""Labels of the report rows in which Python arguments are replaced by command-line options. Other
rows quote events and calls unchanged."""

_Delivered = AuditArguments | MergeArguments | OutputsArguments | TableArguments | TraceArguments
"""Options of the commands that print a report, and can save it as a picture or an HTML page."""

_Report = Audit | OutputsAudit | TableAudit | Trace


class Usage(Exception):
    """Error for a wrong command line. The command then ends with exit status 2."""


class Unwritten(Exception):
    """Error for reports or files that could not be written. Its arguments are the messages."""


class Failure(Exception):
    """Error for an exception in the user's code. Its `__cause__` is the user's exception.

    Args:
        text: the error message, as one line.
        hint: advice for the user, as one line.
    """

    def __init__(self, text: str, hint: str) -> None:
        super().__init__(text)
        self.hint = hint


@contextlib.contextmanager
def to_usage_errors(mechanism_hint: str = MECHANISM_CONTRACT) -> Iterator[None]:
    """Return a context manager that converts errors about arguments to `Usage` errors.

    An example is a ValueError for a wrong value of a Python argument. In the message, the name of
    the argument becomes the name of the command-line option.

    Args:
        mechanism_hint: a text on how dpcore calls a mechanism. This text becomes the hint of errors
            about a mechanism's outputs.
    """
    try:
        yield
    except (TypeError, ValueError, RuntimeError, OSError) as error:
        text, argument = str(error), argument_of(error) or ""
        if isinstance(error, OSError) and argument and error.filename is not None:
            text = f"{error.strerror}, got {error.filename}"
        # Among dpcore's own errors, only these concern the outputs of a user's function.
        if argument.startswith("outputs of "):
            raise Failure(name_options(text), mechanism_hint) from error
        if not isinstance(error, (TypeError, ValueError)) and not argument:
            raise
        if argument or _is_raised_by_dpcore(error):
            # Only dpcore's own messages are rewritten. Messages of other code are quoted unchanged.
            text = OPTIONS.get(argument, argument) + name_options(text.removeprefix(argument))
        raise Usage(text) from error


def _is_raised_by_dpcore(error: BaseException) -> bool:
    """Return True if code of dpcore raised the exception."""
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and frames[-1].filename.startswith(_PACKAGE)


@contextlib.contextmanager
def wrap_user_errors(doing: str, file: str, hint: str = MECHANISM_CONTRACT) -> Iterator[None]:
    """Return a context manager that converts exceptions of the user's code to `Failure` errors.

    Args:
        doing: first words of the error message, which describe what dpcore was doing.
        file: path of the user's file. The message states the line of this file at which the
            exception occurred.
        hint: advice for the user, which is printed after the error message.
    """
    try:
        yield
    except (KeyboardInterrupt, Failure):
        raise
    except BaseException as error:  # SystemExit too: a mechanism does not choose the status
        text = f"{doing} failed: {error_class_message_and_notes(error)}{_format_place(error, file)}"
        raise Failure(text, hint) from error


def _format_place(error: BaseException, file: str) -> str:
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if os.path.abspath(frame.filename) == os.path.abspath(file)
    ]
    if isinstance(error, SyntaxError) and error.filename:
        file, lines = error.filename, [error.lineno]
    return f" ({os.path.basename(file)}, line {lines[-1]})" if lines else ""


def run_guarded(work: Callable[[], int], show_traceback: bool = False) -> int:
    """Run a command, and convert an exception to a message on stderr and an exit status.

    Args:
        work: function that runs the command and returns the exit status.
        show_traceback: True to print also the whole traceback of an error.

    Returns:
        The exit status.
    """
    try:
        failures: list[str] = []
        with always_show_file_warnings():
            status = work()
        with collect_unwritten(failures):
            sys.stdout.flush()
        if failures:
            raise Unwritten(*failures)
        return status
    except KeyboardInterrupt as error:
        write_escaped_to_stderr(f"interrupted: {error}" if str(error) else "interrupted")
        return INTERRUPTED
    except Usage as error:
        _print_traceback_if_requested(error.__cause__, show_traceback)
        write_escaped_to_stderr(f"error: {error}")
        return USAGE
    except Failure as error:
        _print_traceback_if_requested(error.__cause__, show_traceback)
        # The quoted end of a tool's stderr may have several lines.
        write_escaped_to_stderr(f"error: {error}", "\n")
        write_escaped_to_stderr(f"hint: {error.hint}")
        if not show_traceback:
            write_escaped_to_stderr("hint: --traceback shows the whole traceback")
        return NO_VERDICT
    except Unwritten as error:
        for text in error.args:
            write_escaped_to_stderr(f"error: {text}")
        _drop_stdout()
        return NO_VERDICT
    except (BrokenPipeError, SystemExit):  # click and rich leave with 1 on a closed pipe
        _drop_stdout()
        return NO_VERDICT
    except BaseException as error:
        _print_traceback_if_requested(error, show_traceback)
        write_escaped_to_stderr(f"error: dpcore failed: {error_class_message_and_notes(error)}")
        if not show_traceback:
            write_escaped_to_stderr("hint: --traceback shows where, for a report of the bug")
        _drop_stdout()
        return NO_VERDICT


@contextlib.contextmanager
def collect_unwritten(failures: list[str]) -> Iterator[None]:
    """Return a context manager that catches errors of writing and adds their messages to a list.

    If one file cannot be written, the caller can therefore continue with the next file.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        text, place = error.strerror, error.filename
        stream = f"standard output must be a file that can be written ({text})"
        failures.append(stream if place is None else f"{text}, got {place}")


@contextlib.contextmanager
def always_show_file_warnings() -> Iterator[None]:
    """Return a context manager in which warnings about files are always printed.

    Each warning is one line on stderr. The warning is printed even if a warning filter would hide
    it.
    """

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if issubclass(category, FileWarning):
            write_escaped_to_stderr(f"warning: {message}")
        else:
            show_other(message, category, *place, **more)

    with warnings.catch_warnings():
        show_other = warnings.showwarning
        warnings.showwarning = show
        warnings.simplefilter("always", FileWarning)
        yield


def write_escaped_to_stderr(text: str, unescaped: str = "") -> None:
    """Write a line to stderr. Control characters are escaped, except those in `unescaped`."""
    with contextlib.suppress(OSError, ValueError):
        print(make_visible(text, unescaped), file=sys.stderr, flush=True)


def error_class_message_and_notes(error: BaseException) -> str:
    """Return one line with the class of an exception, its message and its notes."""
    notes = [str(note) for note in getattr(error, "__notes__", ())]
    text = traceback.format_exception_only(error)[-1 - len(notes)]
    return "; ".join([" ".join(text.split()), *notes])


def _print_traceback_if_requested(error: BaseException | None, is_requested: bool) -> None:
    if is_requested and error is not None:
        with contextlib.suppress(OSError, ValueError):
            text = "".join(traceback.format_exception(error))
            print(make_visible(text, "\n"), end="", file=sys.stderr)


def _drop_stdout() -> None:
    """Discard unwritten output. Otherwise an error in Python's last flush gives exit status 120."""
    try:
        sys.stdout.flush()
    except OSError:
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def check_output_paths(asked: _Delivered) -> None:
    """Raise `Usage` if the file of --plot or --html cannot be written."""
    check_picture_path(asked.plot)
    if asked.html is not None:
        _check_writable_path("--html", Path(asked.html))


def check_picture_path(text: str | None) -> None:
    """Raise `Usage` if a picture cannot be saved at the path `text` (the value of --plot)."""
    if text is None:
        return
    from matplotlib.backend_bases import FigureCanvasBase

    kinds = sorted(FigureCanvasBase.get_supported_filetypes())
    if Path(text).suffix.lower().lstrip(".") not in kinds:
        raise Usage(f"--plot must end in one of .{', .'.join(kinds)}, got {text}")
    _check_writable_path("--plot", Path(text))


def _check_writable_path(option: str, path: Path) -> None:
    """Raise `Usage` if a file cannot be written at this path."""
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise Usage(f"{option} must name a file in a folder that can be written to, got {path}")


def print_and_export(asked: _Delivered, report: _Report) -> None:
    """Print a report, and write the files that the options --plot and --html request."""
    failures: list[str] = []
    with collect_unwritten(failures):
        if asked.as_json:
            written = report
            if isinstance(report, Audit) and not can_core_draw(report.mechanism):
                # A callable is stored by name, so that `from_json` reads exactly what is printed.
                written = replace(report, mechanism=report.name)
            sys.stdout.write(written.to_json() + "\n")
        else:
            _print_report(report)
    if asked.plot is not None:
        with collect_unwritten(failures), use_own_style() as picture:
            report.plot(ax=picture)
            save_picture(picture, asked.plot, "--plot")
            write_escaped_to_stderr(f"wrote {asked.plot}")
    if asked.html is not None:
        with collect_unwritten(failures):
            write_file_or_keep_old(asked.html, report.to_html(), "--html")
            write_escaped_to_stderr(f"wrote {asked.html}")
    if failures:
        raise Unwritten(*failures)


def _print_report(report: _Report) -> None:
    rows = [
        (label, name_options(text) if label in _ADVISING_LABELS else text)
        for label, text in report.lines()
    ]
    if not (sys.stdout.isatty() or any(map(os.environ.get, ("FORCE_COLOR", "TTY_COMPATIBLE")))):
        # Colours are not used in a pipe or a file, and importing rich takes 20 ms.
        return print(format_rows(report.name, rows), flush=True)
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    # A claim that is not refuted did not pass a test, so it is neither green nor bold.
    refuted = None if isinstance(report, Trace) else report.refuted
    styles = {"verdict": {True: "bold red", False: "", None: "bold yellow"}[refuted]}
    console.print(make_visible(report.name), style="bold", markup=False, emoji=False)
    for label, text in rows:
        line, style = format_row(label, text), styles.get(label, "")
        console.print(line, style=style, markup=False, emoji=False)
