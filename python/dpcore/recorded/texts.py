"""Outputs in text files: cells of tables, one output a line, and JSON.

Files are read in pieces. Numbers of a piece become an array at once, so that a column of numbers
takes little more memory than its array.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, islice, repeat
from typing import Any, Final, TextIO

import numpy as np

from ..errors import invalid, show
from ..mechanisms.answers import rows_of, to_object_array
from .frames import (
    ALL,
    MISSING,
    Array,
    Column,
    Found,
    Table,
    choose_places,
    place_of,
    select_column,
)
from .opening import HashedFile, Reader, require_memory

_CELL_SEPARATORS: Final = ",;\t"
_PIECE_CELLS: Final = 2**18
"""Cells that are read at a time."""

_BLOCK_CHARACTERS: Final = 2**19
"""Characters that are read at a time."""

_MAX_EXACT_INTEGER: Final = 2**53
"""Whole numbers up to which floats are exact."""


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
            whole, stop = np.empty((len(self.places), self.rows)), self.rows
            while self.pieces:
                piece = self.pieces.pop()
                whole[:, stop - len(piece) : stop] = np.transpose(piece)
                stop -= len(piece)
            return list(whole)
        found: list[list[Array]] = [[] for _ in self.places]
        for piece in self.pieces:
            columns = piece.T if isinstance(piece, np.ndarray) else piece
            for parts, column in zip(found, columns, strict=True):
                parts.append(column)
        self.pieces.clear()
        return [join_parts(parts) for parts in found]


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
        stop = len(whole)
        while parts:
            piece = parts.pop()
            whole[stop - len(piece) : stop] = piece
            stop -= len(piece)
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
    columns = _TextColumns(_find_wanted(empty, column, label))
    by_name = any(
        isinstance(one, str) and one != ALL for one in _list_requested_columns(column, label)
    )
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
            select_column(empty, column)
        if number == 0:
            file.check_memory(columns.size_in_memory())
    nothing = np.broadcast_to(np.zeros(1, np.bool_), columns.rows)
    found = [nothing] * len(first)
    for place, values in zip(columns.places, columns.finish(), strict=True):
        found[place] = values
    how = Found("csv", is_named, rows.sep, file.encoding, file.sha256)
    return Table(file.name, names if is_named else None, tuple(found), how)


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


def _find_wanted(table: Table, column: Any, label: Any) -> list[int]:
    """Return the columns to parse; none if a choice is needed, which `select_column` explains."""
    if column is None and table.names is not None and label is None and len(table.names) > 1:
        return []
    if label is None:
        return sorted({*choose_places(table, column)})
    place = place_of(table, label)
    if column is None and len(table.columns) != 2:
        # `parted` says that a choice is needed.
        return [place]
    return sorted({*choose_places(table, column), place})


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
    return Table(
        file.name, names, (outputs,), Found("lines", is_named, "", file.encoding, file.sha256)
    )


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
    given = [one for one in _list_requested_columns(column, label) if one is not None]
    wanted = set(given) if given and ALL not in given else None
    wanted = None if wanted and not all(isinstance(one, str) for one in wanted) else wanted
    names: dict[str, Any] = {}
    found: dict[str, list[Array]] = {}
    size, is_table = 0, None
    text = file.open_text(reader.encoding)
    for number, (line, rows) in enumerate(_read_values(file.name, text)):
        is_table = isinstance(rows[0], dict) if is_table is None else is_table
        if any(isinstance(row, dict) != is_table for row in rows):
            kinds = "objects, or none of them" if is_table else "no objects, or all of them"
            raise ValueError(
                f"lines up to {line} of {file.name} must all be {kinds}, got both kinds"
            )
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
                select_column(Table(file.name, tuple(names), (np.empty(0),) * len(names)), column)
            file.check_memory(sum(_size_in_memory(one) for each in found.values() for one in each))
    how = Found("jsonl", None, "", file.encoding, file.sha256)
    if not is_table:
        return Table(file.name, None, tuple(map(join_parts, found.values())), how)
    nothing = np.broadcast_to(np.zeros(1, np.bool_), size)
    columns = (join_parts(found[name]) if name in found else nothing for name in names)
    return Table(file.name, tuple(names), tuple(columns), how)


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
        line += error.lineno - 1
        raise ValueError(f"line {line} of {name} must be JSON, got {error}") from None
    except _DuplicateNameError as error:
        raise ValueError(f"line {line} of {name} must hold each name once, got {error}") from None
    except ValueError as error:
        # Of a number with thousands of digits.
        raise ValueError(f"line {line} of {name} must be JSON, got {error}") from None
    except RecursionError:
        raise ValueError(f"line {line} of {name} must be JSON of less depth") from None


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
