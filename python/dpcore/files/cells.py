"""Tables of cells and texts with one output a line.

Files are read in pieces. Numbers of a piece become an array at once, so that a column of numbers
takes little more memory than its array.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, islice, repeat
from typing import Any, Final, TextIO

import numpy as np

from ..errors import invalid
from ..mechanisms.answers import rows_of, to_object_array
from ..records import Array
from .columns import (
    ALL,
    MISSING,
    Found,
    Request,
    Table,
    fill_columns,
    list_needed_places,
    select_columns,
)
from .opened import HashedFile, Settings

_CELL_SEPARATORS: Final = ",;\t"
_PIECE_CELLS: Final = 2**18
"""Cells that are read at a time."""

_BLOCK_CHARACTERS: Final = 2**19
"""Characters that are read at a time."""

_MAX_EXACT_INTEGER: Final = 2**53
"""Whole numbers up to which floats are exact."""


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
        return sum(map(size_in_memory, parts))

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


def size_in_memory(part: Array) -> float:
    """Return the bytes of a part of a column, about."""
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


def read_csv(file: HashedFile, request: Request, settings: Settings) -> Table:
    """Read the chosen columns of a table of cells."""
    text = file.open_text(settings.encoding, newline="")
    head = text.readline()
    sep = settings.sep or _find_separator(head, request.kind)
    try:
        return _parse_csv(file, _RowReader(file.name, head, text, sep), request, settings)
    except csv.Error as error:
        raise ValueError(f"{file.name} must be CSV, got {error}") from None


def _find_separator(head: str, kind: str) -> str:
    """Return the most frequent separator in the first line, quoted texts left out."""
    bare = re.sub(r'"[^"]*("|$)', "", head)
    return max("\t,;" if kind == "tsv" else _CELL_SEPARATORS, key=bare.count)


def _parse_csv(file: HashedFile, rows: _RowReader, request: Request, settings: Settings) -> Table:
    first = rows.first
    if not first:
        return Table(file.name, None, ())
    # numpy.savetxt puts a comment sign in front of its header.
    names = tuple(cell.strip().lstrip("# ") for cell in first)
    is_named = settings.header == "yes" or (settings.header == "auto" and _is_header(first))
    empty = Table(file.name, names if is_named else None, (np.empty(0),) * len(first))
    columns = _TextColumns(list_needed_places(empty, request))
    by_name = any(isinstance(one, str) and one != ALL for one in request.columns)
    is_sure = not is_named or by_name or settings.header == "yes"
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
            select_columns(empty, request.column)
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


def _is_header(cells: list[str]) -> bool:
    """Return True if there is a name and no number.

    A mistyped number must not make its row a header.
    """
    filled = [cell for cell in cells if cell.strip()]
    return bool(filled) and not any(isinstance(_parse_cell(cell, True), float) for cell in filled)


# One output a line.


def read_lines(file: HashedFile, request: Request, settings: Settings) -> Table:
    """Read a text with one output a line: a number, a text, or nothing if it is missing."""
    for name, given in (("column", request.column), ("label", request.label)):
        if given not in (None, ALL) and (name == "label" or given != 0):
            hint = "has one output a line (format='csv' reads a table)"
            raise invalid(name, f"None where {file.name} {hint}", given)
    text: TextIO = file.open_text(settings.encoding)
    first = next(text, None)
    parts: list[Array] = []
    while lines := list(islice(text, _PIECE_CELLS)):
        parts.append(_parse_cells([line.removesuffix("\n") for line in lines], False))
        if len(parts) == 1:
            file.check_memory(size_in_memory(parts[0]))
    head = _parse_cells([] if first is None else [first.removesuffix("\n")], False)
    is_name = head.dtype == object and head[0] is not None
    are_numbers = bool(parts) and all(part.dtype != object for part in parts)
    is_named = settings.header == "yes" or (settings.header == "auto" and is_name and are_numbers)
    parts = parts if is_named or not len(head) else [head, *parts]
    outputs = join_parts(parts) if parts else np.empty(0)
    names = (str(head[0]).strip(),) if is_named else None
    how = Found("lines", is_named, "", file.encoding, file.sha256)
    return Table(file.name, names, (outputs,), how)
