"""Mechanisms in any programming language: a command that writes one answer per line.

The command runs once for each block (the answers that an audit needs from one call).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import IO, Any, Final

import numpy as np

from ..errors import invalid, mistyped, real, show, tag_error
from ..report.shown import Shown
from ..suggestions import explain_argument_errors
from ..visible import make_visible
from .callables import Raised
from .spellings import Lines, parse_line, parse_output
from .tool_watch import TOOL_WATCH

SEED_VARIABLE: Final = "DPCORE_SEED"
"""Environment variable that contains the seed for a process."""

_SEED_LIMIT: Final = 2**31
"""Seeds are below this number, because awk maps all larger seeds to one, and R refuses them.

Among 1,000 processes, two have the same seed with probability 2e-4. Then their blocks of answers
are equal, and the audit ends with an error, as for any repeated block."""
_MAX_LINE_BYTES: Final = 2**24
"""Largest number of bytes of one answer."""
_MAX_OUTPUT_BYTES: Final = 2**29
"""Largest number of bytes of all answers of a process."""
_CHUNK_BYTES: Final = 2**16
_MAX_STDERR_CHARACTERS: Final = 1000
"""Number of last characters of a process's stderr that a message shows."""
_MAX_SILENCE_SECONDS: Final = 60.0
_MAX_SILENCE_PER_ANSWER: Final = 0.1
"""A process may be silent for 60 seconds, plus this number of seconds for each answer."""
_WAKE_SECONDS: Final = 0.2
"""Seconds after which a waiting thread checks for Ctrl-C."""

_PLACEHOLDER_PATTERN: Final = re.compile(r"\{x\}|\{size\}")
_UNQUOTED_PATTERN: Final = re.compile(r"[\w@%+=:,./{}-]+")
_ARGUMENTS_REQUIREMENT: Final = (
    "a list of texts, the program and its arguments: ['node', 'tool.js', '{x}', '{size}']"
)


@dataclass(frozen=True, repr=False)
class Tool(Shown):
    """Mechanism that runs a command to draw outputs. `dpcore.command` makes such mechanisms.

    The command runs once for each block (the outputs that an audit draws in one call).

    Args:
        arguments: the program and its arguments. `{x}` stands for the input, and `{size}` for the
            number of outputs.
        timeout: longest time, in seconds, in which a run may write no output. None means 60 seconds
            plus 0.1 seconds for each output.
        catch: exit statuses that count as outputs of the mechanism. A negative number stands for
            the signal that ended the run. With `catch`, the command runs once for each output.
    """

    arguments: tuple[str, ...]
    timeout: float | None = field(default=None, compare=False)
    catch: tuple[int, ...] = ()

    takes_lists = thread_safe = True
    """Several threads may run blocks at once, because each block has its own process."""
    seeded_by = f"the seed in {SEED_VARIABLE} (not from a constant or the time)"
    """Name, in messages, of the source from which the randomness of the answers must come."""
    way_to_draw = "draw new noise for every line"
    """Advice in messages about rows that share their noise."""

    @property
    def reproducible(self) -> bool | None:
        """True if each output comes from a separate run of the command, which has its own seed.

        Otherwise None: it is not known whether the seed of an audit determines the outputs.
        """
        return True if self.catch else None

    @property
    def name(self) -> str:
        """The command of this mechanism on one line, as a user types it in a shell."""
        plain = _UNQUOTED_PATTERN.fullmatch
        quoted = (
            argument if plain(argument) else shlex.quote(argument) for argument in self.arguments
        )
        return " ".join(" ".join(quoted).split())

    def __repr__(self) -> str:
        more = "" if self.timeout is None else f", timeout={self.timeout!r}"
        more += f", catch={self.catch!r}" if self.catch else ""
        return f"command({list(self.arguments)!r}{more})"

    def __call__(self, x: Any, size: int, rng: np.random.Generator) -> list[Any]:
        """Run the command once, and return its answers.

        With `catch`, the command runs once for each answer.

        Args:
            x: the input, a text, or any value that JSON can hold.
            size: number of answers.
            rng: numpy Generator, from which the seed of each process is drawn.

        Returns:
            A list of `size` answers.

        Raises:
            TypeError: if JSON cannot hold `x`.
            ValueError: if a process does not write one line per answer, or writes bytes that are
                not UTF-8, or a line of more than 16 MiB. Also if `x` contains a NUL character or a
                number that is not finite.
            RuntimeError: if a process does not start, or ends with a status that is neither 0 nor
                in `catch`.
            TimeoutError: if a process writes no output for longer than `timeout` seconds.
        """
        if not self.catch:
            return parse_output(self._run(x, size, rng))
        answers = Lines()
        answers.has_forms = True
        for _ in range(size):
            try:
                answers += map(parse_line, self._run(x, 1, rng))
            except RuntimeError as error:
                if vars(error).get("status") not in self.catch:
                    raise
                answers.append(vars(error)["outcome"])
        return answers

    def _run(self, x: Any, size: int, rng: np.random.Generator) -> list[str]:
        """Return the lines that one process writes."""
        seed = int(rng.integers(_SEED_LIMIT))
        places = {"{x}": _as_argument(x), "{size}": str(size)}
        program, *rest = self.arguments
        # Replace both in one pass, because an input may contain the text "{size}".
        filled = (
            _PLACEHOLDER_PATTERN.sub(lambda placeholder: places[placeholder[0]], argument)
            for argument in rest
        )
        usual = _MAX_SILENCE_SECONDS + _MAX_SILENCE_PER_ANSWER * size
        limit = usual if self.timeout is None else self.timeout
        with _RunningCommand([program, *filled], seed, f"outputs of {self.name}") as process:
            return process.read_until_exit(size, limit)


@explain_argument_errors
def command(
    arguments: Sequence[str | os.PathLike[str]],
    *,
    timeout: float | None = None,
    catch: int | Sequence[int] = (),
) -> Tool:
    """Make a mechanism from a command, to audit a program in any language.

    dpcore runs the command once for each block (the outputs of one call), without a shell. The
    program must write one output per line to stdout, draw each output independently, and end with
    status 0. If a line is JSON, the output is the JSON value, such as a number, a list or an
    object. Otherwise the output is the line as a text.

    For each run, the environment variable `DPCORE_SEED` contains a random whole number below 2^31.
    If the program seeds its random generator with this number, a second audit with the same seed
    gives the same result. A program that does not use the number can also be audited. The report
    then states that a second audit with the same seed gives other outputs.

    Args:
        arguments: the program and its arguments. dpcore replaces `{x}` in the arguments by the
            input, and `{size}` by the number of outputs. An input that is a text is inserted
            unchanged. Any other input is inserted as JSON.
        timeout: longest time, in seconds, in which a run may write nothing to stdout. Defaults to
            60 seconds, plus 0.1 seconds for each output.
        catch: one or several exit statuses that count as outputs of the mechanism, such as 3. A
            signal is given as `signal.SIGSEGV` or -11. With `catch`, dpcore runs the command once
            for each output, with 1 for `{size}`. If a run ends with status 3, the output is
            `Raised("exit status 3", message)`. The message is the text that the program wrote.

    Returns:
        The mechanism `(x, size, rng) -> outputs`. It can be pickled.

    Raises:
        TypeError: if `arguments` is not a list of texts, or `catch` has an entry that is not an
            exit status.
        ValueError: if the program is not found, or `{x}` or `{size}` is missing in the arguments.

    Example:
        >>> import sys
        >>> import dpcore
        >>> code = '''
        ... import os, random, sys
        ... truth, size = sys.argv[1], int(sys.argv[2])
        ... rng = random.Random(os.environ["DPCORE_SEED"])
        ... for _ in range(size):
        ...     print(truth if rng.random() < 0.6 else rng.choice(["never", "daily"]))
        ... '''
        >>> tool = dpcore.command([sys.executable, "-c", code, "{x}", "{size}"])
        >>> report = dpcore.audit(tool, ("never", "daily"), claim=1.0, trials=5000, rng=1)
        >>> report.verdict, 1.2 < report.epsilon_lower < 1.39
        ('refuted', True)
    """
    parts: Any = arguments if isinstance(arguments, (list, tuple)) else [None]
    texts = tuple(os.fspath(text) if isinstance(text, os.PathLike) else text for text in parts)
    if not all(isinstance(text, str) for text in texts):
        raise mistyped("command", _ARGUMENTS_REQUIREMENT, arguments)
    if not texts or not texts[0] or any("\0" in text for text in texts):
        raise invalid("command", _ARGUMENTS_REQUIREMENT, arguments)
    for place, need in (
        ("{x}", "where the input stands"),
        ("{size}", "where the number of answers stands, which the tool writes one a line"),
    ):
        if not any(place in text for text in texts[1:]):
            raise invalid("command", f"one with {place} in an argument, {need}", list(texts))
    if shutil.which(texts[0]) is None:
        requirement = "a program that is on the PATH and executable"
        raise invalid("command", requirement, texts[0])
    statuses = catch if isinstance(catch, (tuple, list)) else (catch,)
    for status in statuses:
        if not isinstance(status, int) or isinstance(status, bool) or status == 0:
            raise mistyped("catch", "an exit status other than 0, or several", status)
    caught = tuple(
        -int(text) if isinstance(text, signal.Signals) else int(text) for text in statuses
    )
    limit = None if timeout is None else real("timeout", timeout, low=0.0, open_low=True)
    return Tool(texts, limit, caught)


def _as_argument(x: Any) -> str:
    """Convert an input to the text that is inserted for `{x}`.

    Raises:
        TypeError: if the input is not a text and JSON cannot hold it.
        ValueError: if the input contains a NUL character or a number that is not finite.
    """
    requirement = "a text, or what JSON can hold: finite numbers, texts, lists, dicts, None"
    if not isinstance(x, str):
        try:
            # `default` converts arrays and numpy's numbers.
            x = json.dumps(x, allow_nan=False, default=lambda value: value.tolist())
        except (AttributeError, TypeError, RecursionError):
            raise mistyped("x", requirement, x) from None
        except ValueError:
            raise invalid("x", requirement, x) from None
    if "\0" in x:
        raise invalid("x", "a text without NUL, to be an argument of a command", x)
    return str(x)


def _required_lines(size: int) -> str:
    return f"as many lines as {{size}} asks for ({size:,}), one answer a line"


def _start_thread(work: Callable[[Any], None], stream: IO[bytes] | None) -> threading.Thread:
    thread = threading.Thread(target=work, args=[stream], daemon=True)
    thread.start()
    return thread


class _RunningCommand:
    """A running command. Threads read stdout and stderr, so that the pipes never become full.

    Args:
        argv: the program and its arguments.
        seed: seed for the program.
        name: name of the answers in messages.
    """

    def __init__(self, argv: list[str], seed: int, name: str) -> None:
        self._name = name
        self._chunks: SimpleQueue[bytes] = SimpleQueue()
        self._stderr = b""
        self._stderr_reader: threading.Thread | None = None
        watched = TOOL_WATCH.notify_watcher_of_coming_start()
        try:
            self._child = subprocess.Popen(
                argv,
                bufsize=0,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, **watched, SEED_VARIABLE: str(seed)},
                # Start a new process group, so that the processes it starts end with it.
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            TOOL_WATCH.report_failed_start_to_watcher()
            problem = f"{error} (its longest argument has {max(map(len, argv)):,} characters)"
            need = "from a command that can be started"
            raise self._make_command_error(RuntimeError, need, problem) from error
        TOOL_WATCH.report_started_to_watcher(self._child.pid)
        _start_thread(self._queue_chunks, self._child.stdout)
        self._stderr_reader = _start_thread(self._keep_stderr, self._child.stderr)

    def __enter__(self) -> _RunningCommand:
        return self

    def __exit__(self, *raised: object) -> None:
        self._kill()
        TOOL_WATCH.tell_watcher_command_ended(self._child.pid)

    def read_until_exit(self, size: int, max_silence: float) -> list[str]:
        """Return the lines that the process writes until it ends.

        Args:
            size: number of lines that the process must write.
            max_silence: number of seconds for which the process may write no output.

        Raises:
            ValueError: if the process writes another number of lines, bytes that are not UTF-8, or
                a line of more than 16 MiB.
            RuntimeError: if the process ends with a status other than 0.
            TimeoutError: if the process writes no output for longer than `max_silence` seconds.
        """
        written = self._collect_all_stdout(size, max_silence)
        status = self._wait(max_silence)
        if status:
            ended = f"signal {-status}" if status < 0 else f"exit status {status}"
            error = self._make_command_error(RuntimeError, "written with exit status 0", ended)
            texts = written.decode("utf-8", "replace").strip(), self._end_of_stderr()
            vars(error).update(status=status, outcome=Raised(ended, "\n".join(filter(None, texts))))
            raise error
        lines = self._decode(written)
        if len(lines) != size:
            raise self._make_command_error(ValueError, _required_lines(size), f"{len(lines):,}")
        return lines

    def _collect_all_stdout(self, most_lines: int, max_silence: float) -> bytearray:
        """Return all bytes that the process writes to stdout."""
        written, lines, open_line = bytearray(), 0, 0
        while chunk := self._next_chunk(max_silence):
            written += chunk
            lines += chunk.count(b"\n")
            last = chunk.rfind(b"\n")
            open_line = open_line + len(chunk) if last < 0 else len(chunk) - last - 1
            if open_line > _MAX_LINE_BYTES:
                need = f"lines of at most {_MAX_LINE_BYTES:,} bytes, one answer a line"
                problem = (
                    f"a line that is longer and begins {show(bytes(written[-open_line:][:40]))}"
                )
                raise self._make_command_error(ValueError, need, problem)
            if lines > most_lines:
                self._decode(written[: written.rfind(b"\n")])
                raise self._make_command_error(ValueError, _required_lines(most_lines), "more")
            if len(written) > _MAX_OUTPUT_BYTES:
                need = f"at most {_MAX_OUTPUT_BYTES:,} bytes a process"
                need += " (block= asks for fewer answers)"
                raise self._make_command_error(ValueError, need, "more bytes")
        return written

    def _decode(self, written: bytearray) -> list[str]:
        """Decode the bytes of stdout to lines of text."""
        try:
            text = written.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            problem: str | None = show(bytes(written[max(0, error.start - 10) : error.start + 30]))
        else:
            problem = "a NUL" if "\0" in text else None
        if problem is not None:
            raise self._make_command_error(ValueError, "UTF-8 text, one answer a line", problem)
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()
        return lines

    def _next_chunk(self, max_silence: float) -> bytes:
        """Return the next bytes that the process writes, or b"" at the end of its output."""
        end = time.monotonic() + max_silence
        while True:
            # Wait in short steps, because on some systems Ctrl-C does not interrupt a longer wait.
            left = end - time.monotonic()
            try:
                return self._chunks.get(timeout=max(0.0, min(_WAKE_SECONDS, left)))
            except Empty:
                if left <= 0.0:
                    need = f"written without a pause of {max_silence:g} s (timeout={max_silence:g})"
                    raise self._make_command_error(
                        TimeoutError, need, "nothing in that time"
                    ) from None

    def _wait(self, limit: float) -> int:
        """Wait until the process ends, at most `limit` seconds, and return its exit status."""
        try:
            return self._child.wait(limit)
        except subprocess.TimeoutExpired:
            need = f"from a command that ends within {limit:g} s (timeout={limit:g}) of its output"
            raise self._make_command_error(TimeoutError, need, "one that goes on") from None

    def _kill(self) -> None:
        """End the process and the processes that it started, unless it has already ended."""
        # Before `wait`, the system does not give the number of the process to another one.
        if self._child.returncode is None:
            with contextlib.suppress(OSError):
                if os.name == "posix":
                    os.killpg(self._child.pid, signal.SIGKILL)
                else:
                    self._child.kill()
            self._child.wait()

    def _make_command_error(
        self, kind: type[Exception], requirement: str, problem: str
    ) -> Exception:
        """Make an error whose message contains the end of the process's stderr."""
        text = make_visible(f"{self._name} must be {requirement}, got {problem}")
        if stderr_end := make_visible(self._end_of_stderr(), "\n"):
            text = f"{text}; its stderr ends:\n{stderr_end}"
        error = tag_error(kind(text), self._name)
        vars(error)["status"] = None
        return error

    def _end_of_stderr(self) -> str:
        if self._stderr_reader is None:
            return ""
        self._kill()
        self._stderr_reader.join(1.0)
        return self._stderr.decode("utf-8", "replace").strip()[-_MAX_STDERR_CHARACTERS:]

    def _queue_chunks(self, stream: IO[bytes]) -> None:
        with stream, contextlib.suppress(OSError):
            while chunk := stream.read(_CHUNK_BYTES):
                self._chunks.put(chunk)
        self._chunks.put(b"")

    def _keep_stderr(self, stream: IO[bytes]) -> None:
        with stream, contextlib.suppress(OSError):
            while chunk := stream.read(_CHUNK_BYTES):
                self._stderr = (self._stderr + chunk)[-4 * _MAX_STDERR_CHARACTERS :]
