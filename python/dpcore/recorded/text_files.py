"""Outputs in text files: cells of tables, one output a line, and JSON.

Files are read in pieces. Numbers of a piece become an array at once, so that a column of numbers
takes little more memory than its array. An opened file knows its kind, encoding and SHA-256, and
whether memory can hold it.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import hashlib
import io
import json
import os
import re
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, islice, repeat
from pathlib import Path
from typing import Any, BinaryIO, Final, TextIO

import numpy as np

from ..errors import choice, invalid, mistyped, show
from ..mechanisms.answers import rows_of, to_object_array
from ..progress import Progress
from ..records import Array
from ..results.evidence import TableRead
from .frames import (
    ALL,
    MISSING,
    Column,
    Found,
    Table,
    fill_columns,
    list_needed_places,
    select_columns,
)

STDIN: Final = "-"
"""Stands for standard input in the place of a path."""

KINDS: Final = {
    ".csv": "csv", ".tsv": "tsv", ".txt": "lines", ".log": "lines", ".json": "json",
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".npy": "npy", ".npz": "npz", ".parquet": "parquet",
}  # fmt: skip
"""Kinds of files by the ends of their names."""

HEADERS: Final = ("auto", "yes", "no")
_BUFFER_BYTES: Final = 2**16
_GZIP_MAGIC: Final = b"\x1f\x8b"
_BYTE_ORDER_MARKS: Final = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Encodings by the byte order marks that files begin with."""

_WORKING_COPIES: Final = 2.0
"""Memory that an audit needs for outputs, in units of their own: they are shuffled in a copy."""

_CELL_SEPARATORS: Final = ",;\t"
_PIECE_CELLS: Final = 2**18
"""Cells that are read at a time."""

_BLOCK_CHARACTERS: Final = 2**19
"""Characters that are read at a time."""

_MAX_EXACT_INTEGER: Final = 2**53
"""Whole numbers up to which floats are exact."""


class Reader:
    """Settings for files, and what was found in those that were read.

    Args:
        header: "yes", "no", or "auto": found out.
        sep: what stands between the cells of a CSV file; None is found out.
        encoding: of texts; None is UTF-8, or what a byte order mark says.
        format: kind of the files, one of those of `KINDS`; None goes by their names.
        bar: shows how much was read, or None.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if an argument is none of the choices.
    """

    def __init__(
        self,
        header: str = "auto",
        sep: str | None = None,
        encoding: str | None = None,
        format: str | None = None,
        bar: Progress | None = None,
    ) -> None:
        self.header = choice("header", header, HEADERS)
        self.sep = None if sep is None else _check_sep(sep)
        self.encoding = None if encoding is None else _check_encoding(encoding)
        kinds = tuple(dict.fromkeys(KINDS.values()))
        self.format = None if format is None else choice("format", format, kinds)
        self.bar = bar
        self.tables: list[TableRead] = []

    def find_kind(self, path: Path) -> str:
        """Return the kind of a file; a separator makes a table of text."""
        name = path.name.lower().removesuffix(".gz")
        kind = self.format or KINDS.get(Path(name).suffix)
        if kind is None:
            if str(path) == STDIN:
                raise invalid("format", "given for standard input, such as 'csv'", None)
            ends = ", ".join(KINDS)
            requirement = f"a file that ends in one of {ends} (or these with .gz), or format= given"
            raise invalid("outputs", requirement, str(path))
        return "csv" if kind == "lines" and self.sep is not None else kind


def _check_sep(sep: Any) -> str:
    if not isinstance(sep, str):
        raise mistyped("sep", "a character", sep)
    sep = "\t" if sep in ("tab", r"\t") else sep
    if len(sep) != 1 or sep in '"\r\n':
        raise invalid("sep", "one character, or 'tab'", sep)
    return str(sep)


def _check_encoding(encoding: Any) -> str:
    if not isinstance(encoding, str):
        raise mistyped("encoding", "the name of an encoding", encoding)
    try:
        return str(codecs.lookup(encoding).name)
    except LookupError:
        requirement = "an encoding that Python knows, such as 'utf-8' or 'latin-1'"
        raise invalid("encoding", requirement, encoding) from None


class HashedFile(io.RawIOBase):
    """A file that computes the SHA-256 of the bytes that are read.

    Args:
        raw: the file, or standard input.
        name: what messages call it.
        size: its bytes; None where nobody knows.
        bar: moves on by each byte, or None.
    """

    def __init__(self, raw: BinaryIO, name: str, size: int | None, bar: Progress | None) -> None:
        super().__init__()
        self.name, self.size, self.position = name, size, 0
        self._raw, self._bar, self._hash = raw, bar, hashlib.sha256()
        self.encoding = ""
        # A wrapper that nothing holds would close the file.
        self._opened: list[io.IOBase] = []
        if bar is not None:
            bar.begin(f"reading {name}", size)

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read bytes into a buffer and return their number, 0 at the end."""
        data = self._raw.read(len(buffer))
        buffer[: len(data)] = data
        self._hash.update(data)
        self.position += len(data)
        if self._bar is not None:
            self._bar.advance(len(data))
        return len(data)

    @property
    def sha256(self) -> str:
        """SHA-256 of the whole file; what was not read yet is read."""
        while self.read(_BUFFER_BYTES):
            pass
        return self._hash.hexdigest()

    def open_bytes(self) -> io.BufferedReader[Any]:
        """Return its bytes, of a gzip file the unpacked ones."""
        buffered: io.BufferedReader[Any] = io.BufferedReader(self, _BUFFER_BYTES)
        self._opened.append(buffered)
        if buffered.peek(2)[:2] != _GZIP_MAGIC:
            return buffered
        unpacked: Any = gzip.GzipFile(fileobj=buffered)
        return io.BufferedReader(unpacked, _BUFFER_BYTES)

    def open_text(self, encoding: str | None, newline: str | None = None) -> io.TextIOWrapper:
        """Return its text; without an encoding UTF-8, or what a byte order mark says."""
        buffered = self.open_bytes()
        head = buffered.peek(4)
        found = next(
            (name for mark, name in _BYTE_ORDER_MARKS.items() if head.startswith(mark)), "utf-8"
        )
        # The mark of UTF-8 is no part of the first cell, whoever names the encoding.
        found = encoding if encoding not in (None, "utf-8") else found
        self.encoding = found.removesuffix("-sig")
        text = io.TextIOWrapper(buffered, encoding=found, newline=newline)
        self._opened.append(text)
        return text

    def check_memory(self, taken: float) -> None:
        """Raise an error if memory cannot hold the outputs.

        Args:
            taken: bytes of memory for what was read so far.

        Raises:
            MemoryError: if all of the file would need more than there is.
        """
        if self.size is not None and self.position:
            require_memory(self.name, taken * max(1.0, self.size / self.position))


@contextlib.contextmanager
def open_file(path: Path, reader: Reader) -> Iterator[HashedFile]:
    """Open a file, or standard input; errors in its bytes become errors that name it."""
    name = path.name
    with contextlib.ExitStack() as opened:
        if str(path) == STDIN:
            name, raw, size = "standard input", _open_standard_input(), None
        else:
            raw = opened.enter_context(path.open("rb"))
            size = os.fstat(raw.fileno()).st_size or None
        try:
            yield HashedFile(raw, name, size, reader.bar)
        except UnicodeError as error:
            encoding = (reader.encoding or "utf-8").upper()
            text = f"{name} must be text in {encoding}, got {error} (encoding= gives another)"
            raise ValueError(text) from None
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{name} must be a whole gzip file, got {error}") from None


def _open_standard_input() -> BinaryIO:
    try:
        return sys.stdin.buffer
    except AttributeError:
        raise invalid("outputs", "a file where there is no standard input", STDIN) from None


def require_memory(name: str, size: float) -> None:
    """Raise an error if outputs of a size, and their copy, are larger than the free memory.

    Args:
        name: what the message calls them.
        size: bytes of the outputs.

    Raises:
        MemoryError: if they do not fit.
    """
    needed, free = _WORKING_COPIES * size, measure_free_memory()
    if free is not None and needed > free:
        text = f"needs about {needed / 1e9:,.1f} GB of memory, and {free / 1e9:,.1f} GB are free"
        raise MemoryError(f"{name} {text}: choose fewer columns with column=, or cut the file")


def measure_free_memory() -> float | None:
    """Return the bytes of memory that are free, or None where the system does not say it."""
    limits = []
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        limits.append(1024.0 * int(next(x for x in lines if x.startswith("MemAvail")).split()[1]))
    with contextlib.suppress(OSError, ValueError):
        # Of a container: "max" where there is no limit.
        group = Path("/sys/fs/cgroup")
        most, used = ((group / f"memory.{one}").read_text("ascii") for one in ("max", "current"))
        limits.append(float(int(most) - int(used)))
    # Windows has no such function.
    with contextlib.suppress(AttributeError, OSError, ValueError):
        if not limits:
            limits.append(float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")))
    return min(limits, default=None)


# Columns of cells.


class _TextColumns:
    """Columns of a text table, piece by piece: numbers as one array, others a column at a time.

    Args:
        places: numbers of the columns, in rising order.
    """

    def __init__(self, places: Sequence[int]) -> None:
        self.places = places
        self.pieces: list[Array | list[Array]] = []
        self.rows = 0

    def extend(self, cells: list[str], width: int, first: bool = False) -> None:
        """Add rows, their cells one after the other, at the end or before all others."""
        if self.places:
            self.pieces.insert(0 if first else len(self.pieces), self._parse(cells, width))
        self.rows += len(cells) // width

    def _parse(self, cells: list[str], width: int) -> Array | list[Array]:
        if 1 < width == len(self.places):
            try:
                return _parse_numbers(cells).reshape(-1, width)
            except ValueError:
                pass
        return [_parse_cells(cells[place::width]) for place in self.places]

    def has_again(self, first: list[str], cells: list[str], places: Sequence[int]) -> bool:
        """Return True if a cell of the first row is in the same column of the last piece."""
        if places == self.places:
            piece = self.pieces[-1]
            if isinstance(piece, np.ndarray):
                return False
            kinds = zip(places, piece, strict=True)
            places = [place for place, part in kinds if part.dtype == object]
        filled = (place for place in places if first[place].strip())
        return any(first[place] in cells[place :: len(first)] for place in filled)

    def size_in_memory(self) -> float:
        """Return the bytes of what was read, about."""
        parts = (x for one in self.pieces for x in ([one] if isinstance(one, np.ndarray) else one))
        return sum(map(_size_in_memory, parts))

    def finish(self) -> list[Array]:
        """Return the columns; each piece is given up as soon as it is copied."""
        if not self.places:
            return []
        if self.pieces and all(isinstance(piece, np.ndarray) for piece in self.pieces):
            whole = np.empty((len(self.places), self.rows))
            _move_pieces(self.pieces, whole.T)
            return list(whole)
        found: list[list[Array]] = [[] for _ in self.places]
        for piece in self.pieces:
            columns = piece.T if isinstance(piece, np.ndarray) else piece
            for parts, column in zip(found, columns, strict=True):
                parts.append(column)
        self.pieces.clear()
        return [join_parts(parts) for parts in found]


def _move_pieces(pieces: list[Any], whole: Array) -> None:
    """Copy pieces into an array; each is given up as soon as it is copied."""
    stop = len(whole)
    while pieces:
        piece = pieces.pop()
        whole[stop - len(piece) : stop] = piece
        stop -= len(piece)


def _parse_numbers(cells: list[str]) -> Array:
    return np.fromiter(map(float, cells), np.float64, len(cells))


def _parse_cells(cells: list[str], is_stripped: bool = True) -> Array:
    """Return numbers, or objects where a cell is not a number."""
    try:
        return _parse_numbers(cells)
    except ValueError:
        known = {cell: _parse_cell(cell, is_stripped) for cell in set(cells)}
        return to_object_array([known[cell] for cell in cells])


def _parse_cell(cell: str, is_stripped: bool) -> Any:
    try:
        return float(cell)
    except ValueError:
        return (cell.strip() if is_stripped else cell) or None


def _size_in_memory(part: Array) -> float:
    if part.dtype != object:
        return float(part.nbytes)
    texts = sum(4 * len(one) if isinstance(one, str) else 24 for one in part.tolist())
    return float(part.nbytes + texts)


def join_parts(parts: list[Array]) -> Array:
    """Return the pieces of a column as one array; the list is emptied.

    Args:
        parts: arrays of shape `(size, ...)`.

    Returns:
        An array of numbers or texts where all are of one kind, else of objects.
    """
    kinds = {part.dtype.kind for part in parts}
    is_whole = kinds == {"i", "f"} and all(
        part.dtype.kind == "f" or not len(part) or np.abs(part).max() <= _MAX_EXACT_INTEGER
        for part in parts
    )
    if "O" not in kinds and (len(kinds) == 1 or is_whole):
        whole = np.empty(sum(map(len, parts)), np.result_type(*parts))
        _move_pieces(parts, whole)
        return whole
    items = list(chain.from_iterable(part.tolist() for part in parts))
    parts.clear()
    is_text = all(isinstance(item, str) for item in items)
    return rows_of("outputs", items, "") if is_text else to_object_array(items)


# CSV.


def read_csv(file: HashedFile, kind: str, column: Any, label: Any, reader: Reader) -> Table:
    """Read the chosen columns of a table of cells."""
    text = file.open_text(reader.encoding, newline="")
    head = text.readline()
    sep = reader.sep or _find_separator(head, kind)
    try:
        return _parse_csv(file, _RowReader(file.name, head, text, sep), column, label, reader)
    except csv.Error as error:
        raise ValueError(f"{file.name} must be CSV, got {error}") from None


def _find_separator(head: str, kind: str) -> str:
    """Return the most frequent separator in the first line, quoted texts left out."""
    bare = re.sub(r'"[^"]*("|$)', "", head)
    return max("\t,;" if kind == "tsv" else _CELL_SEPARATORS, key=bare.count)


def _parse_csv(
    file: HashedFile, rows: _RowReader, column: Any, label: Any, reader: Reader
) -> Table:
    first = rows.first
    if not first:
        return Table(file.name, None, ())
    # numpy.savetxt puts a comment sign in front of its header.
    names = tuple(cell.strip().lstrip("# ") for cell in first)
    is_named = reader.header == "yes" or (reader.header == "auto" and _is_header(first))
    empty = Table(file.name, names if is_named else None, (np.empty(0),) * len(first))
    columns = _TextColumns(list_needed_places(empty, column, label))
    requested = _list_requested_columns(column, label)
    by_name = any(isinstance(one, str) and one != ALL for one in requested)
    is_sure = not is_named or by_name or reader.header == "yes"
    if not is_named:
        columns.extend(first, len(first))
    must_choose = is_named and not columns.places
    for number, cells in enumerate(rows.read_pieces()):
        columns.extend(cells, len(first))
        watched = columns.places or range(len(first))
        if not is_sure and columns.has_again(first, cells, watched):
            # A name does not come again among the values: the first row is one of them.
            is_named, is_sure = False, True
            if must_choose:
                columns = _TextColumns(range(len(first)))
                columns.extend(cells, len(first))
            columns.extend(first, len(first), first=True)
        elif must_choose:
            # The choice that is needed is asked for before the rest is read.
            select_columns(empty, column)
        if number == 0:
            file.check_memory(columns.size_in_memory())
    found = dict(zip(columns.places, columns.finish(), strict=True))
    filled = fill_columns(found, range(len(first)), columns.rows)
    how = Found("csv", is_named, rows.sep, file.encoding, file.sha256)
    return Table(file.name, names if is_named else None, filled, how)


class _RowReader:
    """Rows of a table of cells, many at a time, with the numbers of their lines for messages.

    Text without a quotation mark is split at its separators, which is three times as fast as
    `csv.reader`; from the first mark on that one reads.

    Args:
        name: of the file.
        head: its first line.
        text: the lines after it.
        sep: what stands between cells.
    """

    def __init__(self, name: str, head: str, text: TextIO, sep: str) -> None:
        self.name, self.text, self.sep = name, text, sep
        self.line = self.empty = 0
        self.quoted: Any = None
        first: list[str]
        if '"' in head:
            self.quoted = self._read_quoted([head])
            first = next(self.quoted, [])
            self.line = self.quoted.line_num
        else:
            bare = head.rstrip("\r\n")
            first = bare.split(sep) if bare else []
            self.line = 1
            if head and not bare and any(map(str.strip, text)):
                # Nothing may stand above the first row; a file of empty lines has no row.
                raise self._empty_line(1)
        self.first = first

    def _read_quoted(self, lines: Iterable[str]) -> Any:
        return csv.reader(chain(lines, self.text), delimiter=self.sep, strict=True)

    def read_pieces(self) -> Iterator[list[str]]:
        """Yield the cells of the other rows; empty lines may stand at the end alone."""
        while self.quoted is None:
            block = self.text.read(_BLOCK_CHARACTERS) + self.text.readline()
            if '"' in block:
                self.quoted = self._read_quoted(io.StringIO(block, newline=""))
            elif not block:
                return
            elif cells := self._split(block):
                yield cells
        size = max(1, min(2**16, _PIECE_CELLS // len(self.first)))
        start = self.line - self.quoted.line_num
        while rows := list(islice(self.quoted, size)):
            if self.empty or set(map(len, rows)) != {len(self.first)}:
                lines = accumulate(1 + sum(cell.count("\n") for cell in row) for row in rows)
                self._check(rows, (self.line + each for each in lines))
            self.line = start + self.quoted.line_num
            cells = list(chain.from_iterable(rows))
            self._refuse_nul("".join(cells[:: len(self.first)]))
            if cells:
                yield cells

    def _split(self, block: str) -> list[str]:
        """Return the cells of lines without quotation marks."""
        self._refuse_nul(block)
        block = block.replace("\r\n", "\n").replace("\r", "\n") if "\r" in block else block
        lines = block.removesuffix("\n").split("\n")
        width = len(self.first)
        counts = {0} if self.sep not in block else set(map(str.count, lines, repeat(self.sep)))
        if self.empty or "" in lines or counts != {width - 1}:
            rows = [line.split(self.sep) if line else [] for line in lines]
            self._check(rows, range(self.line + 1, self.line + 1 + len(lines)))
            lines = [line for line in lines if line]
        self.line += len(lines)
        return lines if width == 1 else self.sep.join(lines).split(self.sep) if lines else []

    def _check(self, rows: list[list[str]], lines: Iterable[int]) -> None:
        """Refuse rows of another length, and empty lines above others."""
        width = len(self.first)
        for line, row in zip(lines, rows, strict=True):
            if row and self.empty:
                raise self._empty_line(self.empty)
            if row and len(row) != width:
                hint = " (text with one output a line is format='lines')" if width == 1 else ""
                requirement = f"{width} cells long{hint}"
                raise invalid(f"line {line} of {self.name}", requirement, len(row))
            self.empty = self.empty or (0 if row else line)

    def _refuse_nul(self, text: str) -> None:
        # What a crash leaves at the end of a file, and UTF-16 that nobody named.
        if "\0" in text:
            raise ValueError(f"{self.name} must be text, got a NUL character (encoding=?)")

    def _empty_line(self, line: int) -> ValueError:
        return ValueError(f"line {line} of {self.name} must hold a row, got nothing ({MISSING})")


def _list_requested_columns(column: Any, label: Column | None) -> list[Any]:
    given = list(column) if isinstance(column, (list, tuple)) else [column]
    return [*given, label]


def _is_header(cells: list[str]) -> bool:
    """Return True if there is a name and no number.

    A mistyped number must not make its row a header.
    """
    filled = [cell for cell in cells if cell.strip()]
    return bool(filled) and not any(isinstance(_parse_cell(cell, True), float) for cell in filled)


# One output a line.


def read_lines(file: HashedFile, kind: str, column: Any, label: Any, reader: Reader) -> Table:
    """Read a text with one output a line: a number, a text, or nothing if it is missing."""
    for name, given in (("column", column), ("label", label)):
        if given not in (None, ALL) and (name == "label" or given != 0):
            hint = "has one output a line (format='csv' reads a table)"
            raise invalid(name, f"None where {file.name} {hint}", given)
    text: TextIO = file.open_text(reader.encoding)
    first = next(text, None)
    parts: list[Array] = []
    while lines := list(islice(text, _PIECE_CELLS)):
        parts.append(_parse_cells([line.removesuffix("\n") for line in lines], False))
        if len(parts) == 1:
            file.check_memory(_size_in_memory(parts[0]))
    head = _parse_cells([] if first is None else [first.removesuffix("\n")], False)
    is_name = head.dtype == object and head[0] is not None
    are_numbers = bool(parts) and all(part.dtype != object for part in parts)
    is_named = reader.header == "yes" or (reader.header == "auto" and is_name and are_numbers)
    parts = parts if is_named or not len(head) else [head, *parts]
    outputs = join_parts(parts) if parts else np.empty(0)
    names = (str(head[0]).strip(),) if is_named else None
    how = Found("lines", is_named, "", file.encoding, file.sha256)
    return Table(file.name, names, (outputs,), how)


# JSON.


def read_json(file: HashedFile, kind: str, column: Any, label: Any, reader: Reader) -> Table:
    """Read a list, or lists by the names of their columns."""
    if file.size is not None:
        # Its text, and objects that take as much at least.
        require_memory(file.name, 2.0 * file.size)
    rows = _parse_json(file.name, file.open_text(reader.encoding).read(), 1)
    how = Found("json", None, "", file.encoding, file.sha256)
    if isinstance(rows, dict):
        for name, values in rows.items():
            if not isinstance(values, list):
                requirement = "a list, as are all columns"
                raise invalid(f"{name!r} of {file.name}", requirement, values)
        return Table(file.name, tuple(rows), tuple(map(_as_column, rows.values())), how)
    if not isinstance(rows, list):
        raise ValueError(f"{file.name} must hold a list of outputs, got {show(rows)}")
    if rows and all(isinstance(one, dict) for one in rows):
        names = tuple(dict.fromkeys(name for one in rows for name in one))
        columns = ([one.get(name) for one in rows] for name in names)
        return Table(file.name, names, tuple(map(_as_column, columns)), how)
    return Table(file.name, None, (_as_column(rows),), how)


def read_json_lines(file: HashedFile, kind: str, column: Any, label: Any, reader: Reader) -> Table:
    """Read one answer a line, or one object a line with the names of the columns."""
    given = {one for one in _list_requested_columns(column, label) if one is not None}
    by_name = ALL not in given and all(isinstance(one, str) for one in given)
    wanted = given if given and by_name else None
    names: dict[str, Any] = {}
    found: dict[str, list[Array]] = {}
    size, is_table = 0, None
    lines = file.open_text(reader.encoding)
    for number, (line, rows) in enumerate(_read_values(file.name, lines)):
        is_table = isinstance(rows[0], dict) if is_table is None else is_table
        if any(isinstance(row, dict) != is_table for row in rows):
            kinds = "objects, or none of them" if is_table else "no objects, or all of them"
            text = f"lines up to {line} of {file.name} must all be {kinds}, got both kinds"
            raise ValueError(text)
        if is_table:
            for row in rows:
                names.update(row)
        for name in names if is_table else ("",):
            if is_table and wanted is not None and name not in wanted:
                continue
            # A name that is new here was missing in all rows before.
            parts = found.setdefault(name, [to_object_array([None] * size)] if size else [])
            parts.append(_as_column([row.get(name) for row in rows] if is_table else rows))
        size += len(rows)
        if number == 0:
            if is_table and column is None and label is None:
                select_columns(Table(file.name, tuple(names), (np.empty(0),) * len(names)), column)
            file.check_memory(sum(_size_in_memory(one) for each in found.values() for one in each))
    how = Found("jsonl", None, "", file.encoding, file.sha256)
    if not is_table:
        return Table(file.name, None, tuple(map(join_parts, found.values())), how)
    columns = {name: join_parts(parts) for name, parts in found.items()}
    return Table(file.name, tuple(names), fill_columns(columns, names, size), how)


def _read_values(name: str, text: TextIO) -> Iterator[tuple[int, list[Any]]]:
    """Yield values, many at a time, with the number of the last line."""
    numbered = enumerate(text, 1)
    while piece := list(islice(numbered, 2**16)):
        rows = [_parse_json(name, line.strip(), number) for number, line in piece if line.strip()]
        if rows:
            yield piece[-1][0], rows


def _as_column(items: list[Any]) -> Array:
    kinds = {type(one) for one in items}
    if kinds <= {int, float} or kinds in ({str}, {bool}):
        return rows_of("outputs", items, "")
    return to_object_array(items)


def _parse_json(name: str, text: str, line: int) -> Any:
    try:
        return _JSON_DECODER.decode(text)
    except json.JSONDecodeError as error:
        text = f"line {line + error.lineno - 1} of {name} must be JSON, got {error}"
    except _DuplicateNameError as error:
        text = f"line {line} of {name} must hold each name once, got {error}"
    except ValueError as error:
        # Of a number with thousands of digits.
        text = f"line {line} of {name} must be JSON, got {error}"
    except RecursionError:
        text = f"line {line} of {name} must be JSON of less depth"
    raise ValueError(text)


class _DuplicateNameError(ValueError):
    """An object with two values of one name."""


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        # Python would keep the last of them and say nothing.
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _DuplicateNameError(f"{twice!r} twice")
    return found


_JSON_DECODER: Final = json.JSONDecoder(object_pairs_hook=_make_object)
