"""Opened files, with their encoding and SHA-256, and a check of the free memory."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import hashlib
import io
import os
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

from ..errors import choice, invalid, mistyped
from ..progress import Progress

STDIN: Final = "-"
"""Symbol that stands for standard input, in place of a path."""

DTYPES: Final = ("number", "whole", "decimal", "text")
"""Types of columns that a user may choose."""
HEADERS: Final = ("auto", "yes", "no")
_BUFFER_BYTES: Final = 2**16
_PIPE_BYTES: Final = 2**25
_GZIP_MAGIC: Final = b"\x1f\x8b"
_BYTE_ORDER_MARKS: Final = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Encodings, by the byte order mark at the beginning of a file."""

_WORKING_COPIES: Final = 2.0
"""Memory that an audit needs, divided by the memory of the outputs, which are copied once."""


class Settings:
    """Settings of a user for reading text files with outputs.

    Args:
        header: "yes" if the first row contains the column names, and "no" if it does not. With
            "auto", dpcore detects if the first row contains names.
        sep: character that separates the cells of a CSV file. None means that dpcore detects the
            character.
        encoding: character encoding of the file. If `encoding` is None, a byte order mark at the
            beginning of the file determines the encoding. A file without such a mark is read as
            UTF-8.
        bar: progress bar that shows the number of bytes read so far, or None for no progress bar.
        dtype: one type for all columns ("number", "whole", "decimal" or "text"), or a mapping from
            names or numbers of columns to types. For a column without a given type, dpcore
            determines the type from the cells.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if an argument has a value that is not allowed.
    """

    def __init__(
        self,
        header: str = "auto",
        sep: str | None = None,
        encoding: str | None = None,
        bar: Progress | None = None,
        dtype: str | Mapping[str | int, str] | None = None,
    ) -> None:
        self.header = choice("header", header, HEADERS)
        self.sep = None if sep is None else _check_sep(sep)
        self.encoding = None if encoding is None else _check_encoding(encoding)
        self.bar = bar
        self.dtype = _check_dtype_or_column_dtypes(dtype)
        self.kept: dict[Path, bytes] = {}


def _check_sep(sep: Any) -> str:
    if not isinstance(sep, str):
        raise mistyped("sep", "a character", sep)
    sep = "\t" if sep in ("tab", r"\t") else sep
    if len(sep) != 1 or sep in '"\r\n':
        raise invalid("sep", "one character, or 'tab'", sep)
    return str(sep)


def _check_dtype_or_column_dtypes(dtype: Any) -> str | Mapping[str | int, str]:
    if dtype is None:
        return {}
    if isinstance(dtype, Mapping):
        return {name: choice(f"dtype of {name!r}", kind, DTYPES) for name, kind in dtype.items()}
    return choice("dtype", dtype, DTYPES)


def _check_encoding(encoding: Any) -> str:
    if not isinstance(encoding, str):
        raise mistyped("encoding", "the name of an encoding", encoding)
    try:
        return str(codecs.lookup(encoding).name)
    except LookupError:
        requirement = "an encoding that Python knows, such as 'utf-8' or 'latin-1'"
        raise invalid("encoding", requirement, encoding) from None


class HashedFile(io.RawIOBase):
    """An opened file that computes the SHA-256 hash of its bytes while the bytes are read.

    Args:
        raw: the open file, or standard input, in binary mode.
        name: name of the file in messages.
        size: size of the file in bytes, or None if it is unknown.
        bar: progress bar that shows the number of bytes read so far, or None for no progress bar.
    """

    def __init__(self, raw: BinaryIO, name: str, size: int | None, bar: Progress | None) -> None:
        super().__init__()
        self.name, self.size, self.position = name, size, 0
        self._raw, self._bar, self._hash = raw, bar, hashlib.sha256()
        self.encoding = ""
        # A wrapper without a reference would close the file.
        self._opened: list[io.IOBase] = []
        if bar is not None:
            bar.reset(f"reading {name}", size)

    def readable(self) -> bool:
        """Return True, because this file object can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read bytes of this file into a buffer; return the number of bytes, or 0 at the end."""
        size: int = self._raw.readinto(buffer)  # type: ignore[attr-defined]
        self._hash.update(memoryview(buffer)[:size])
        self.position += size
        if self._bar is not None:
            self._bar.advance(size)
        return size

    @property
    def sha256(self) -> str:
        """SHA-256 hash of this whole file, in hexadecimal digits.

        If the file was not read to its end, the rest of the file is read now.
        """
        while self.read(_BUFFER_BYTES):
            pass
        return self._hash.hexdigest()

    def open_bytes(self) -> io.BufferedReader[Any]:
        """Return a reader of the bytes of this file; a gzip file is decompressed."""
        buffered: io.BufferedReader[Any] = io.BufferedReader(self, _BUFFER_BYTES)
        self._opened.append(buffered)
        if buffered.peek(2)[:2] != _GZIP_MAGIC:
            return buffered
        unpacked: Any = gzip.GzipFile(fileobj=buffered)
        return io.BufferedReader(unpacked, _BUFFER_BYTES)

    def open_text(self, encoding: str | None, newline: str | None = None) -> io.TextIOWrapper:
        """Return a reader of the text in this file; a gzip file is decompressed.

        Args:
            encoding: character encoding of the file. If `encoding` is None, a byte order mark at
                the beginning of the file determines the encoding. A file without such a mark is
                read as UTF-8.
            newline: treatment of line ends, as the argument `newline` of Python's `open`.
        """
        buffered = self.open_bytes()
        name = self._find_encoding(buffered.peek(4), encoding)
        text = io.TextIOWrapper(buffered, encoding=name, newline=newline)
        self._opened.append(text)
        return text

    def make_utf8_chunk_reader(self, encoding: str | None) -> Callable[[int], bytes]:
        """Return a function that reads parts of this file and returns their text as UTF-8 bytes.

        The returned function has one argument, the approximate number of bytes to read.

        At the end of the file, the returned function returns b"". The argument `encoding` is the
        character encoding of the file, or None to detect it.
        """
        buffered = self.open_bytes()
        head = buffered.peek(4)
        name = self._find_encoding(head, encoding)
        if self.encoding == "utf-8":
            if head.startswith(codecs.BOM_UTF8):
                buffered.read(len(codecs.BOM_UTF8))
            return buffered.read
        decoder = codecs.getincrementaldecoder(name)()

        def read(size: int) -> bytes:
            while True:
                data = buffered.read(size)
                text = decoder.decode(data, not data)
                if text or not data:
                    return text.encode()

        return read

    def _find_encoding(self, head: bytes, encoding: str | None) -> str:
        """Return the encoding of a file with the first bytes `head`.

        The decoder of this encoding removes a byte order mark.
        """
        marks = _BYTE_ORDER_MARKS.items()
        name = next((name for mark, name in marks if head.startswith(mark)), "utf-8")
        # The mark of UTF-8 is not part of the first cell, also if the user names this encoding.
        name = encoding if encoding not in (None, "utf-8") else name
        self.encoding = name.removesuffix("-sig")
        return name

    def check_memory_for_whole(self, memory_of_part_read: float) -> None:
        """Raise an error if the free memory is too small for the content of this whole file.

        The memory for the whole file is estimated from the part that was read so far.

        Args:
            memory_of_part_read: number of bytes of memory that the part read so far needs.

        Raises:
            MemoryError: if the file needs more memory than is free.
        """
        if self.size is not None and self.position:
            whole = memory_of_part_read * max(1.0, self.size / self.position)
        else:
            whole = memory_of_part_read
        require_memory(self.name, whole, memory_of_part_read)


@contextlib.contextmanager
def open_file(path: Path, settings: Settings) -> Iterator[HashedFile]:
    """Return a context manager that opens a file, or standard input if the path is "-".

    A pipe can be read only once. The bytes of a pipe or of standard input are therefore stored in
    `settings.kept`.

    Raises:
        ValueError: if the file cannot be decoded or decompressed, or changes while it is read. The
            message names the file.
        MemoryError: if the free memory cannot hold the bytes of a pipe.
    """
    name = "standard input" if str(path) == STDIN else path.name
    with contextlib.ExitStack() as opened:
        raw: BinaryIO
        if path in settings.kept:
            raw, size = io.BytesIO(settings.kept[path]), len(settings.kept[path])
        elif str(path) == STDIN or path.is_fifo() or path.is_char_device():
            is_piped = str(path) == STDIN
            raw = _open_standard_input() if is_piped else opened.enter_context(path.open("rb"))
            parts = []
            while part := raw.read(_PIPE_BYTES):
                parts.append(part)
                require_memory(name, _PIPE_BYTES * len(parts))
            settings.kept[path] = b"".join(parts)
            raw, size = io.BytesIO(settings.kept[path]), len(settings.kept[path])
        else:
            raw = opened.enter_context(path.open("rb"))
            status = os.fstat(raw.fileno())
            size = status.st_size
        file = HashedFile(raw, name, size or None, settings.bar)
        try:
            yield file
            if path not in settings.kept:
                now = os.fstat(raw.fileno())
                if (now.st_size, now.st_mtime_ns) != (status.st_size, status.st_mtime_ns):
                    raise ValueError(f"{name} must stay as it is while it is read, got a change")
        except UnicodeDecodeError as error:
            again = io.BytesIO(settings.kept[path]) if path in settings.kept else path.open("rb")
            with again:
                line = _find_undecodable_line(HashedFile(again, name, None, None), file.encoding)
            wrong = error.object[error.start : error.end]
            text = f"line {line} of {name} must be text in {file.encoding.upper()}, got {wrong!r}"
            raise ValueError(f"{text} (encoding= gives another)") from None
        except UnicodeError as error:
            # Text in UTF-16 without the mark that states the order of bytes.
            text = f"{name} must be text in {file.encoding.upper()}, got {error}"
            raise ValueError(f"{text} (encoding= gives another)") from None
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{name} must be a whole gzip file, got {error}") from None


def _find_undecodable_line(file: HashedFile, encoding: str) -> int:
    """Return the number of the first line that cannot be decoded."""
    unpacked, decoder = file.open_bytes(), codecs.getincrementaldecoder(encoding)()
    lines = 1
    with contextlib.suppress(EOFError, OSError, zlib.error):
        while True:
            data = unpacked.read(_BUFFER_BYTES)
            try:
                lines += decoder.decode(data, not data).count("\n")
            except UnicodeDecodeError as error:
                return lines + error.object[: error.start].decode(error.encoding).count("\n")
            if not data:
                break
    return lines


def _open_standard_input() -> BinaryIO:
    try:
        return sys.stdin.buffer
    except AttributeError:
        raise invalid("outputs", "a file where there is no standard input", STDIN) from None


def read_to_end(name: str, read: Callable[[int], Any]) -> list[Any]:
    """Read a whole file in parts, and return the parts.

    After each part, the function checks that enough memory is free, because a small compressed file
    may contain a lot of data.

    Args:
        name: name of the file in messages.
        read: function `(size)` that returns the next bytes or characters of the file, at most
            `size` of them. At the end of the file, it returns an empty value.

    Raises:
        MemoryError: if the free memory cannot hold the file.
    """
    parts, size = [], 0
    while part := read(_PIPE_BYTES):
        parts.append(part)
        size += len(part)
        require_memory(name, size, size)
    return parts


def require_memory(name: str, size: float, taken: float = 0.0) -> None:
    """Raise an error if the free memory cannot hold the outputs of a file and a copy of them.

    Args:
        name: name of the file or the outputs in the message.
        size: number of bytes of all outputs.
        taken: number of these bytes that are already in memory.

    Raises:
        MemoryError: if the outputs and their copy need more memory than is free.
    """
    needed, free = _WORKING_COPIES * size - taken, measure_free_memory()
    if free is not None and needed > free:
        text = f"needs about {needed / 1e9:,.1f} GB of memory, and {free / 1e9:,.1f} GB are free"
        raise MemoryError(f"{name} {text}: choose fewer columns with column=, or cut the file")


def measure_free_memory() -> float | None:
    """Return how many bytes of memory are free on this computer, or None if this is unknown."""
    limits = []
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        limits.append(1024.0 * int(next(x for x in lines if x.startswith("MemAvail")).split()[1]))
    with contextlib.suppress(OSError, ValueError):
        # The limit of a container is "max" if the memory is unlimited.
        group = Path("/sys/fs/cgroup")
        most, used = (
            (group / f"memory.{figure}").read_text("ascii") for figure in ("max", "current")
        )
        limits.append(float(int(most) - int(used)))
    # Windows has no such function.
    with contextlib.suppress(AttributeError, OSError, ValueError):
        if not limits:
            limits.append(float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")))
    return min(limits, default=None)
