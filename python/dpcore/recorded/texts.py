"""Outputs in text files: cells of tables, one output a line, and JSON.

Files are read in pieces. Numbers of a piece become an array at once, so that a column of numbers
takes little more memory than its array.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from operator import itemgetter
from typing import Any, Final, TextIO

import numpy as np

from ..errors import invalid, show
from ..mechanisms.answers import objects, rows_of
from .frames import ALL, MISSING, Array, Column, Found, Table, choose_places, place_of, selected
from .opening import HashedFile, Reader, require_memory

_SEPARATORS: Final = ",;\t"
_PIECE_CELLS: Final = 2**18
"""Cells that are read at a time."""

_EXACT: Final = 2**53
"""Whole numbers up to which floats are exact."""


# Columns of cells.


class _Columns:
    """Columns of a text table, piece by piece: numbers as one array, others a column at a time.

    Args:
        places: numbers of the columns, in rising order.
    """

    def __init__(self, places: Sequence[int]) -> None:
        self.places = places
        self.pieces: list[Array | list[Array]] = []
        self.rows = 0

    def extend(self, rows: list[list[str]], first: bool = False) -> None:
        """Add rows of cells, at the end or before all others."""
        if self.places:
            self.pieces.insert(0 if first else len(self.pieces), self._parse(rows))
        self.rows += len(rows)

    def _parse(self, rows: list[list[str]]) -> Array | list[Array]:
        if len(self.places) == 1:
            cells = [row[self.places[0]] for row in rows]
            return [_parse_cells(cells)]
        chosen = map(itemgetter(*self.places), rows)
        if len(self.places) == len(rows[0]):
            chosen = iter(rows)  # type: ignore[assignment]
        try:
            flat = _parse_numbers(chain.from_iterable(chosen), len(rows) * len(self.places))
        except ValueError:
            return [_parse_cells([row[place] for row in rows]) for place in self.places]
        return flat.reshape(len(rows), len(self.places))

    def has_again(self, first: list[str], rows: list[list[str]], places: Sequence[int]) -> bool:
        """Return True if a cell of the first row is in the same column of the last piece."""
        if places == self.places:
            piece = self.pieces[-1]
            if isinstance(piece, np.ndarray):
                return False
            kinds = zip(places, piece, strict=True)
            places = [place for place, part in kinds if part.dtype == object]
        filled = (place for place in places if first[place].strip())
        return any(first[place] in [row[place] for row in rows] for place in filled)

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


def _parse_numbers(cells: Any, size: int) -> Array:
    return np.fromiter(map(float, cells), np.float64, size)


def _parse_cells(cells: list[str], is_stripped: bool = True) -> Array:
    """Return numbers, or objects where a cell is not a number."""
    try:
        return _parse_numbers(cells, len(cells))
    except ValueError:
        known = {cell: _parse_cell(cell, is_stripped) for cell in set(cells)}
        return objects([known[cell] for cell in cells])


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
        part.dtype.kind == "f" or not len(part) or np.abs(part).max() <= _EXACT for part in parts
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
    return rows_of("outputs", items, "") if is_text else objects(items)


# CSV.


def read_csv(file: HashedFile, kind: str, column: Any, label: Any, reader: Reader) -> Table:
    """Read the chosen columns of a table of cells."""
    text = file.open_text(reader.encoding, newline="")
    try:
        head = text.readline()
        sep = reader.sep or _find_separator(head, kind)
        lines = csv.reader(chain([head] * bool(head), text), delimiter=sep, strict=True)
        return _parse_csv(file, lines, sep, column, label, reader)
    except csv.Error as error:
        raise ValueError(f"{file.name} must be CSV, got {error}") from None


def _find_separator(head: str, kind: str) -> str:
    """Return what stands most often in the first line, quoted texts left out."""
    bare = re.sub(r'"[^"]*("|$)', "", head)
    return max("\t,;" if kind == "tsv" else _SEPARATORS, key=bare.count)


def _parse_csv(
    file: HashedFile, lines: Any, sep: str, column: Any, label: Any, reader: Reader
) -> Table:
    rows = _Rows(file.name, lines)
    first = rows.read_first()
    if not first:
        return Table(file.name, None, ())
    # numpy.savetxt puts a comment sign in front of its header.
    names = tuple(cell.strip().lstrip("# ") for cell in first)
    is_named = reader.header == "yes" or (reader.header == "auto" and _is_header(first))
    empty = Table(file.name, names if is_named else None, (np.empty(0),) * len(first))
    columns = _Columns(_find_wanted(empty, column, label))
    by_name = any(isinstance(one, str) and one != ALL for one in _list_given(column, label))
    is_sure = not is_named or by_name or reader.header == "yes"
    if not is_named:
        columns.extend([first])
    must_choose = is_named and not columns.places
    for number, piece in enumerate(rows.read_pieces(len(first))):
        columns.extend(piece)
        watched = columns.places or range(len(first))
        if not is_sure and columns.has_again(first, piece, watched):
            # A name does not come again among the values: the first row is one of them.
            is_named, is_sure = False, True
            if must_choose:
                columns = _Columns(range(len(first)))
                columns.extend(piece)
            columns.extend([first], first=True)
        elif must_choose:
            # The choice that is needed is asked for before the rest is read.
            selected(empty, column)
        if number == 0:
            file.check_memory(columns.size_in_memory())
    nothing = np.broadcast_to(np.zeros(1, np.bool_), columns.rows)
    found = [nothing] * len(first)
    for place, values in zip(columns.places, columns.finish(), strict=True):
        found[place] = values
    how = Found("csv", is_named, sep, file.encoding, file.sha256)
    return Table(file.name, names if is_named else None, tuple(found), how)


class _Rows:
    """Rows of a table, with the numbers of their lines for messages."""

    def __init__(self, name: str, lines: Any) -> None:
        self.name, self.lines = name, lines

    def read_first(self) -> list[str]:
        """Return the first row; an empty one where there is no row."""
        for row in self.lines:
            if row:
                if self.lines.line_num > 1 + sum(cell.count("\n") for cell in row):
                    raise self._empty_line(1)
                return list(row)
        return []

    def read_pieces(self, width: int) -> Iterator[list[list[str]]]:
        """Yield the other rows, many at a time; empty lines may stand at the end alone."""
        size, empty = max(1, min(2**16, _PIECE_CELLS // max(1, width))), 0
        before = self.lines.line_num
        while piece := list(islice(self.lines, size)):
            if set(map(len, piece)) != {width}:
                filled = [row for row in piece if row]
                for line, row in self._number(piece, before):
                    if row and empty:
                        raise self._empty_line(empty)
                    if row and len(row) != width:
                        hint = "(text with one output a line is format='lines')"
                        requirement = f"{width} cells long {hint}" if width == 1 else None
                        requirement = requirement or f"{width} cells long"
                        raise invalid(f"line {line} of {self.name}", requirement, len(row))
                    empty = empty or (0 if row else line)
                piece = filled
            elif empty:
                raise self._empty_line(empty)
            self._refuse_nul(piece)
            before = self.lines.line_num
            if piece:
                yield piece

    def _number(self, piece: list[list[str]], before: int) -> Iterator[tuple[int, list[str]]]:
        for row in piece:
            before += 1 + sum(cell.count("\n") for cell in row)
            yield before, row

    def _refuse_nul(self, piece: list[list[str]]) -> None:
        # What a crash leaves at the end of a file, and UTF-16 that nobody named.
        if any("\0" in row[0] for row in piece):
            raise ValueError(f"{self.name} must be text, got a NUL character (encoding=?)")

    def _empty_line(self, line: int) -> ValueError:
        return ValueError(f"line {line} of {self.name} must hold a row, got nothing ({MISSING})")


def _find_wanted(table: Table, column: Any, label: Any) -> list[int]:
    """Return the columns to parse; none where a choice is needed, which `selected` says."""
    if column is None and table.names is not None and label is None and len(table.names) > 1:
        return []
    if label is None:
        return sorted({*choose_places(table, column)})
    place = place_of(table, label)
    if column is None and len(table.columns) != 2:
        # `parted` says that a choice is needed.
        return [place]
    return sorted({*choose_places(table, column), place})


def _list_given(column: Any, label: Column | None) -> list[Any]:
    given = list(column) if isinstance(column, (list, tuple)) else [column]
    return [*given, label]


def _is_header(cells: list[str]) -> bool:
    """True if there is a name and no number: a mistyped number must not make its row a header."""
    filled = [cell for cell in cells if cell.strip()]
    return bool(filled) and not any(isinstance(_parse_cell(cell, True), float) for cell in filled)


# One output a line.


def read_lines(file: HashedFile, kind: str, column: Any, label: Any, reader: Reader) -> Table:
    """Read a text with one output a line: a number, a text, or nothing where it is missing."""
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
    """Read an answer a line, or an object a line with the names of the columns."""
    given = [one for one in _list_given(column, label) if one is not None]
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
            parts = found.setdefault(name, [objects([None] * size)] if size else [])
            parts.append(_as_column([row.get(name) for row in rows] if is_table else rows))
        size += len(rows)
        if number == 0:
            if is_table and column is None and label is None:
                selected(Table(file.name, tuple(names), (np.empty(0),) * len(names)), column)
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
    return objects(items)


def _parse_json(name: str, text: str, line: int) -> Any:
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        line += error.lineno - 1
        raise ValueError(f"line {line} of {name} must be JSON, got {error}") from None
    except ValueError as error:
        raise ValueError(f"line {line} of {name} {error}") from None
    except RecursionError:
        raise ValueError(f"line {line} of {name} must be JSON of less depth") from None


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        # Python would keep the last of them and say nothing.
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"must hold each name once, got {twice!r} twice")
    return found


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_make_object)
