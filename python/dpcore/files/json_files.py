"""Outputs as JSON: a list, lists by name, or one value a line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import chain, islice
from math import isinf
from typing import Any, Final, TextIO

import numpy as np

from .. import _core
from ..errors import invalid, show
from ..mechanisms.answers import rows_of, to_object_array
from ..mechanisms.spellings import PLAIN_CLASSES, read_number
from ..records import Array
from .cells import Cells, Kind
from .columns import ALL, Found, Request, Table, fill_columns, select_columns
from .opened import HashedFile, Settings, require_memory

_MAX_EXACT_INTEGER: Final = 2**53
"""Whole numbers up to which floats are exact."""
_MAX_DEPTH: Final = 64
_BRACKET_PATTERN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]')
_LINE_FEEDS: Final = bytes.maketrans(b",:", b"\n\n")
_BETWEEN_NUMBERS: Final = b"{}[] \t\r"
_USUAL_CLASSES: Final = {0, 1, 2, 3, 0xFFFF}
"""Spellings of Python: the fewest digits, ".0", or an exponent of two digits; and texts."""
_NUMBERS: Final = Kind("number", "numbers", base="json")
"""The kind of numbers of JSON, which says itself what is a number."""


def read_json(file: HashedFile, request: Request, settings: Settings) -> Table:
    """Read a list, or lists by the names of their columns."""
    if file.size is not None:
        # Its text, and objects that take as much at least.
        require_memory(file.name, 2.0 * file.size)
    text = file.open_text(settings.encoding).read()
    rows = parse_json(file.name, text, 1)
    numbers = _JsonNumbers(request.kinds is not None or _has_spellings([text]))
    if numbers.is_exact:
        rows = _EXACT_DECODER.decode(text)
    if isinstance(rows, dict):
        for name, values in rows.items():
            if not isinstance(values, list):
                requirement = "a list, as are all columns"
                raise invalid(f"{name!r} of {file.name}", requirement, values)
        columns = rows
    elif not isinstance(rows, list):
        raise ValueError(f"{file.name} must hold a list of outputs, got {show(rows)}")
    is_sparse = isinstance(rows, list) and bool(rows) and all(type(row) is dict for row in rows)
    if is_sparse:
        names = dict.fromkeys(name for row in rows for name in row)
        columns = {name: [row.get(name) for row in rows] for name in names}
    elif isinstance(rows, list):
        columns = {"": rows}
    arrays = tuple(numbers.make_column(name, items, 0) for name, items in columns.items())
    how = Found("json", None, "", file.encoding, file.sha256)
    has_names = is_sparse or isinstance(rows, dict)
    cells = numbers.list_cells(columns)
    return Table(
        file.name, tuple(columns) if has_names else None, arrays, how, None, is_sparse, cells
    )


def read_json_lines(file: HashedFile, request: Request, settings: Settings) -> Table:
    """Read one answer a line, or one object a line with the names of the columns."""
    given = {one for one in request.columns if one is not None}
    by_name = ALL not in given and all(isinstance(one, str) for one in given)
    wanted = given if given and by_name and not request.is_broad else None
    names: dict[str, Any] = {}
    found: dict[str, list[Array]] = {}
    size, is_table = 0, None
    lines = file.open_text(settings.encoding)
    numbers = _JsonNumbers(request.kinds is not None)
    for number, (line, rows) in enumerate(_read_values(file.name, lines, numbers)):
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
            items = [row.get(name) for row in rows] if is_table else rows
            parts.append(numbers.make_column(name, items, size))
        size += len(rows)
        if number == 0:
            if is_table and not given and request.is_open:
                select_columns(Table(file.name, tuple(names), (np.empty(0),) * len(names)), None)
            file.check_memory(sum(_size_in_memory(one) for each in found.values() for one in each))
    how = Found("jsonl", None, "", file.encoding, file.sha256)
    cells = numbers.list_cells(names if is_table else [""])
    if not is_table:
        return Table(file.name, None, tuple(map(_join_parts, found.values())), how, cells=cells)
    columns = {name: _join_parts(parts) for name, parts in found.items()}
    filled = fill_columns(columns, names, size)
    return Table(file.name, tuple(names), filled, how, is_sparse=True, cells=cells)


def _read_values(name: str, text: TextIO, numbers: _JsonNumbers) -> Iterator[tuple[int, list[Any]]]:
    """Yield values, many at a time, with the number of the last line."""
    numbered = enumerate(text, 1)
    decoder = _EXACT_DECODER if numbers.is_exact else _JSON_DECODER
    while piece := list(islice(numbered, 2**16)):
        rows = [
            parse_json(name, line.strip(), number, decoder)
            for number, line in piece
            if line.strip()
        ]
        if not numbers.has_spellings:
            numbers.has_spellings = _has_spellings(line for _, line in piece)
        if rows:
            yield piece[-1][0], rows


class _JsonNumbers:
    """Columns of JSON, and how their numbers are written.

    Args:
        is_exact: True if numbers were read as the texts that they are; otherwise a column that is
            written in several ways must be read again.
    """

    def __init__(self, is_exact: bool) -> None:
        self.is_exact = self.has_spellings = is_exact
        self._texts: dict[str, list[str]] = {}
        self._types: dict[str, set[type]] = {}

    def make_column(self, name: str, items: list[Any], size: int) -> Array:
        """Return a piece of a column, above which there are `size` rows."""
        if self.is_exact:
            texts = self._texts.setdefault(name, [""] * size)
            texts += [item if type(item) is _NumberText else "" for item in items]
            return _as_column([_convert_numbers(item) for item in items])
        types, kinds = self._types.setdefault(name, set()), set(map(type, items))
        column = _as_column(items, kinds)
        types |= kinds & {int}
        # A float that is a whole number may be written as an integer elsewhere.
        is_bare = kinds == {float} and not (column == np.rint(column)).any()
        if float in kinds and not is_bare:
            types |= {float for item in items if type(item) is float and item.is_integer()}
        return column

    def list_cells(self, names: Iterable[str]) -> dict[int, Cells]:
        """Return how the numbers of each column are written, by the places of the columns."""
        cells = {}
        for place, name in enumerate(names):
            if any(self._texts.get(name, ())):
                piece = _read_spellings("\n".join([*self._texts[name], ""]).encode())
                cells[place] = Cells(_NUMBERS, piece["codes"], tuple(piece["spellings"]))
            elif name in self._types:
                is_unread = self.has_spellings or len(self._types[name]) > 1
                cells[place] = Cells(_NUMBERS, is_unread=is_unread)
        return cells


class _NumberText(str):
    """A number as it is written."""


def _read_spellings(data: bytes) -> dict[str, Any]:
    column: dict[str, Any] = _core.parse_cells(data, "", False, "n", 0, 0, 2**62, True, False)[2][0]
    return column


def _has_spellings(lines: Iterable[str]) -> bool:
    """Return True if a number is not written as Python writes its float64.

    A number in a text may count, too: then its file is only read more slowly.
    """
    data = "\n".join(lines).encode("utf-8", "replace")
    if b"." not in data and b"e" not in data.lower() and b"-0" not in data:
        return False
    data = data.translate(_LINE_FEEDS, _BETWEEN_NUMBERS)
    piece = _read_spellings(data)
    has_other = not {each >> 16 for each in piece["spellings"]} <= _USUAL_CLASSES
    return has_other or piece["kinds"][1][0] > 0 or re.search(rb"-0(?![.\deE])", data) is not None


def _convert_numbers(value: Any) -> Any:
    """Return a value of JSON with exact numbers in the place of their texts."""
    if type(value) is list:
        return [_convert_numbers(item) for item in value]
    if type(value) is dict:
        return {name: _convert_numbers(item) for name, item in value.items()}
    if type(value) is not _NumberText:
        return value
    number = read_number(value)
    number = PLAIN_CLASSES.get(type(number), lambda plain: plain)(number)
    is_lost = type(number) is float and (isinf(number) or (not number and Decimal(value)))
    return Decimal(value) if is_lost else number


def _as_column(items: list[Any], types: set[type] | None = None) -> Array:
    kinds = types or set(map(type, items))
    if kinds <= {int, float} or kinds in ({str}, {bool}):
        return rows_of("outputs", items, "")
    return to_object_array(items)


def parse_json(name: str, text: str, line: int, decoder: json.JSONDecoder | None = None) -> Any:
    """Return the value of a text; raise an error that names file and line where it is no JSON."""
    # The line is known where the text has one.
    place = name if "\n" in text else f"line {line} of {name}"
    try:
        # This is faster where nothing is around the value.
        value, end = decoder.raw_decode(text) if decoder else (None, 0)
        if end < len(text) or not decoder:
            value = (decoder or _JSON_DECODER).decode(text)
        if len(text) <= 2 * _MAX_DEPTH or _find_deep(text) is None:
            return value
        text = _describe_depth(name, text, line)
    except json.JSONDecodeError as error:
        place = f"line {line + error.lineno - 1} of {name}"
        text = f"{place} must be JSON, got {error.msg.removesuffix(' at')} at column {error.colno}"
    except _DuplicateNameError as error:
        text = f"{place} must hold each name once, got {error}"
    except ValueError as error:
        # Of a number with thousands of digits.
        text = f"{place} must be JSON, got {error}"
    except RecursionError:
        text = _describe_depth(name, text, line)
    raise ValueError(text)


def _find_deep(text: str) -> int | None:
    """Return the place of the first bracket in JSON that is below too many others."""
    depth = 0
    if text.count("[") + text.count("{") <= _MAX_DEPTH:
        return None
    for bracket in _BRACKET_PATTERN.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(bracket.group(), 0)
        if depth > _MAX_DEPTH:
            return bracket.start()
    return None


def _describe_depth(name: str, text: str, line: int) -> str:
    start = _find_deep(text) or 0
    place = f"line {line + text.count(chr(10), 0, start)} of {name}"
    column = start - text.rfind("\n", 0, start)
    return f"{place} must be JSON of at most {_MAX_DEPTH} levels, got more at column {column}"


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
_EXACT_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_make_object, parse_float=_NumberText, parse_int=_NumberText
)


def _size_in_memory(part: Array) -> float:
    if part.dtype != object:
        return float(part.nbytes)
    texts = sum(4 * len(one) if isinstance(one, str) else 24 for one in part.tolist())
    return float(part.nbytes + texts)


def _join_parts(parts: list[Array]) -> Array:
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


def _move_pieces(pieces: list[Any], whole: Array) -> None:
    """Copy pieces into an array; each is given up as soon as it is copied."""
    stop = len(whole)
    while pieces:
        piece = pieces.pop()
        whole[stop - len(piece) : stop] = piece
        stop -= len(piece)
