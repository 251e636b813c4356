"""Mechanisms in any language: a command that runs once per block and writes one answer per line."""

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

from ..errors import about, invalid, mistyped, real, show
from ..report.shown import Shown
from ..suggestions import suggest_arguments
from ..visible import make_visible
from .callables import Raised
from .spellings import Lines, parse_line, parse_lines
from .tool_watch import TOOL_WATCH

SEED_VARIABLE: Final = "DPCORE_SEED"
"""Environment variable in which a process finds the seed of its block."""

_SEED_LIMIT: Final = 2**31
"""Seeds are below this number: awk maps all larger seeds to one, and R and others refuse them.

Two of 1,000 processes have the same seed with probability 2e-4. Their blocks are then equal, which
ends the audit with an error, as any repeated block does."""
_MAX_LINE_BYTES: Final = 2**24
"""Largest number of bytes of one answer."""
_MAX_OUTPUT_BYTES: Final = 2**29
"""Largest number of bytes of all answers of a process."""
_CHUNK_BYTES: Final = 2**16
_MAX_STDERR_CHARACTERS: Final = 1000
"""Number of last characters of a process's stderr that a message shows."""
_MAX_SILENCE_SECONDS: Final = 60.0
_MAX_SILENCE_PER_ANSWER: Final = 0.1
"""Seconds without output after which a process counts as hanging, and more seconds per answer."""
_WAKE_SECONDS: Final = 0.2
"""Seconds after which a waiting thread checks for Ctrl-C."""

_PLACEHOLDER_PATTERN: Final = re.compile(r"\{x\}|\{size\}")
_UNQUOTED_PATTERN: Final = re.compile(r"[\w@%+=:,./{}-]+")
_ARGUMENTS_REQUIREMENT: Final = (
    "a list of texts, the program and its arguments: ['node', 'tool.js', '{x}', '{size}']"
)


@dataclass(frozen=True, repr=False)
class Tool(Shown):
    """A mechanism that runs a command for every block of outputs; `dpcore.command` makes it.

    Args:
        arguments: the program and its arguments, with the placeholders `{x}` and `{size}`.
        timeout: seconds that a process may be silent. Defaults to 60 seconds and a tenth of a
            second for each answer.
        catch: exit statuses that count as outcomes; signals are negative numbers.
    """

    arguments: tuple[str, ...]
    timeout: float | None = field(default=None, compare=False)
    catch: tuple[int, ...] = ()

    takes_lists = thread_safe = True
    """Threads may share the blocks, because each block has its own process."""
    seeded_by = f"the seed in {SEED_VARIABLE} (not from a constant or the time)"
    """Name, in messages, of the source that the randomness of the answers must have."""
    way_to_draw = "draw new noise for every line"
    """Advice in messages about rows that share their noise."""

    @property
    def reproducible(self) -> bool | None:
        """True if each answer has its own process, or None if reproducibility is not stated."""
        return True if self.catch else None

    @property
    def name(self) -> str:
        """The command as a user types it, on one line."""
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
        """Run the command once, or once per answer if exit statuses count as outcomes.

        Args:
            x: input: a text, or any value that JSON can hold.
            size: number of answers.
            rng: a numpy Generator, from which the seed of the process is drawn.

        Returns:
            The answers, a list of `size` outputs.

        Raises:
            TypeError: if JSON cannot hold `x`.
            ValueError: if the process does not write exactly `size` lines of UTF-8, if a line is
                too long, or if `x` cannot be an argument of a command.
            RuntimeError: if the process does not start, or ends with a status other than 0.
            TimeoutError: if the process is silent for too long.
        """
        if not self.catch:
            return parse_lines(self._run(x, size, rng))
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
            return process.read_lines(size, limit)


@suggest_arguments
def command(
    arguments: Sequence[str | os.PathLike[str]],
    *,
    timeout: float | None = None,
    catch: int | Sequence[int] = (),
) -> Tool:
    """Make a mechanism from a command, so that a tool in any language can be audited.

    A process runs for every block of outputs. It writes one answer per line to stdout, each drawn
    independently, and ends with status 0. A line of JSON is read as its value (a number, a list, an
    object); any other line is read as a text. No shell is used.

    The environment variable `DPCORE_SEED` holds a whole number below 2^31, which differs between
    processes. If a tool seeds its generator with this number, the audit's seed repeats the audit.
    If a tool ignores it, the audit runs too, and the report states it.

    Args:
        arguments: the program and its arguments. In the arguments, `{x}` stands for the input (a
            text is inserted unchanged, any other value as JSON) and `{size}` for the number of
            answers.
        timeout: seconds that a process may be silent on stdout. By default, 60 seconds plus a tenth
            of a second for each answer.
        catch: one or several exit statuses that count as outcomes; `signal.SIGSEGV` or -11 means a
            signal. Each answer then has its own process and `{size}` is 1. A process that ends
            with such a status is `Raised("exit status 3", message)`; the message is its output.

    Returns:
        The mechanism `(x, size, rng) -> outputs`. It can be pickled.

    Raises:
        TypeError: if `arguments` is not a list of texts.
        ValueError: if the program is missing, or if no argument holds `{x}` or `{size}`.

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
    """Convert an input to the text of an argument.

    Raises:
        TypeError: if the input is not a text and JSON cannot hold it.
        ValueError: if the input holds a NUL or numbers that are not finite.
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


def _as_many_lines(size: int) -> str:
    return f"as many lines as {{size}} asks for ({size:,}), one answer a line"


def _start_thread(work: Callable[[Any], None], stream: IO[bytes] | None) -> threading.Thread:
    thread = threading.Thread(target=work, args=[stream], daemon=True)
    thread.start()
    return thread


class _RunningCommand:
    """A running command. Threads read its output, so its pipes never become full.

    Args:
        argv: the program and its arguments.
        seed: seed of the block.
        name: name of its answers in messages.
    """

    def __init__(self, argv: list[str], seed: int, name: str) -> None:
        self._name = name
        self._chunks: SimpleQueue[bytes] = SimpleQueue()
        self._stderr = b""
        self._stderr_reader: threading.Thread | None = None
        watched = TOOL_WATCH.announce_start()
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
            TOOL_WATCH.report_failed()
            problem = f"{error} (its longest argument has {max(map(len, argv)):,} characters)"
            need = "from a command that can be started"
            raise self._failure(RuntimeError, need, problem) from error
        TOOL_WATCH.report_started(self._child.pid)
        _start_thread(self._queue_stdout, self._child.stdout)
        self._stderr_reader = _start_thread(self._keep_stderr, self._child.stderr)

    def __enter__(self) -> _RunningCommand:
        return self

    def __exit__(self, *raised: object) -> None:
        self._kill()
        TOOL_WATCH.report_ended(self._child.pid)

    def read_lines(self, size: int, limit: float) -> list[str]:
        """Return the lines that the process writes until it ends.

        Args:
            size: number of lines that the process must write.
            limit: seconds that the process may be silent.

        Raises:
            ValueError: if it does not write exactly `size` lines of UTF-8, or a line is too long.
            RuntimeError: if it ends with a status other than 0.
            TimeoutError: if it is silent for too long.
        """
        written = self._collect(size, limit)
        status = self._wait(limit)
        if status:
            ended = f"signal {-status}" if status < 0 else f"exit status {status}"
            error = self._failure(RuntimeError, "written with exit status 0", ended)
            texts = written.decode("utf-8", "replace").strip(), self._end_of_stderr()
            vars(error).update(status=status, outcome=Raised(ended, "\n".join(filter(None, texts))))
            raise error
        lines = self._decode(written)
        if len(lines) != size:
            raise self._failure(ValueError, _as_many_lines(size), f"{len(lines):,}")
        return lines

    def _collect(self, size: int, limit: float) -> bytearray:
        """Return all bytes that the process writes to stdout."""
        written, lines, open_line = bytearray(), 0, 0
        while chunk := self._next_chunk(limit):
            written += chunk
            lines += chunk.count(b"\n")
            last = chunk.rfind(b"\n")
            open_line = open_line + len(chunk) if last < 0 else len(chunk) - last - 1
            if open_line > _MAX_LINE_BYTES:
                need = f"lines of at most {_MAX_LINE_BYTES:,} bytes, one answer a line"
                problem = (
                    f"a line that is longer and begins {show(bytes(written[-open_line:][:40]))}"
                )
                raise self._failure(ValueError, need, problem)
            if lines > size:
                self._decode(written[: written.rfind(b"\n")])
                raise self._failure(ValueError, _as_many_lines(size), "more")
            if len(written) > _MAX_OUTPUT_BYTES:
                need = f"at most {_MAX_OUTPUT_BYTES:,} bytes a process"
                need += " (block= asks for fewer answers)"
                raise self._failure(ValueError, need, "more bytes")
        return written

    def _decode(self, written: bytearray) -> list[str]:
        """Decode bytes to lines of text."""
        try:
            text = written.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            problem: str | None = show(bytes(written[max(0, error.start - 10) : error.start + 30]))
        else:
            problem = "a NUL" if "\0" in text else None
        if problem is not None:
            raise self._failure(ValueError, "UTF-8 text, one answer a line", problem)
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()
        return lines

    def _next_chunk(self, limit: float) -> bytes:
        """Return the next bytes from the process, or an empty value at the end of its output."""
        end = time.monotonic() + limit
        while True:
            # Wait in short steps, because on some systems Ctrl-C does not interrupt a longer wait.
            left = end - time.monotonic()
            try:
                return self._chunks.get(timeout=max(0.0, min(_WAKE_SECONDS, left)))
            except Empty:
                if left <= 0.0:
                    need = f"written without a pause of {limit:g} s (timeout={limit:g})"
                    raise self._failure(TimeoutError, need, "nothing in that time") from None

    def _wait(self, limit: float) -> int:
        """Wait for the end of the process and return its exit status."""
        try:
            return self._child.wait(limit)
        except subprocess.TimeoutExpired:
            need = f"from a command that ends within {limit:g} s (timeout={limit:g}) of its output"
            raise self._failure(TimeoutError, need, "one that goes on") from None

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

    def _failure(self, kind: type[Exception], requirement: str, problem: str) -> Exception:
        """Make an error about the process, with the end of its stderr."""
        text = make_visible(f"{self._name} must be {requirement}, got {problem}")
        if stderr_end := make_visible(self._end_of_stderr(), "\n"):
            text = f"{text}; its stderr ends:\n{stderr_end}"
        error = about(kind(text), self._name)
        vars(error)["status"] = None
        return error

    def _end_of_stderr(self) -> str:
        if self._stderr_reader is None:
            return ""
        self._kill()
        self._stderr_reader.join(1.0)
        return self._stderr.decode("utf-8", "replace").strip()[-_MAX_STDERR_CHARACTERS:]

    def _queue_stdout(self, stream: IO[bytes]) -> None:
        with stream, contextlib.suppress(OSError):
            while chunk := stream.read(_CHUNK_BYTES):
                self._chunks.put(chunk)
        self._chunks.put(b"")

    def _keep_stderr(self, stream: IO[bytes]) -> None:
        with stream, contextlib.suppress(OSError):
            while chunk := stream.read(_CHUNK_BYTES):
                self._stderr = (self._stderr + chunk)[-4 * _MAX_STDERR_CHARACTERS :]
