"""Readers of outputs in JSON files: a list, lists by column name, or one value per line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import partial
from itertools import chain
from math import isinf
from typing import Any, Final, TextIO

import numpy as np

from .. import _core
from ..errors import invalid, show
from ..mechanisms.answers import answer_rows, to_object_array
from ..mechanisms.spellings import PLAIN_CLASSES, read_number
from ..records import Array
from .cells import (
    JSON,
    MIN_CODE_DIGITS,
    UNREAD,
    VALUES,
    Cells,
    Kind,
    chosen_or_inferred_kind,
    convert_texts,
    is_number,
    join_numbers,
    user_dtypes_by_column,
)
from .columns import ALL, FileInfo, Request, Table, columns_with_placeholders, select_columns
from .opened import HashedFile, Settings, read_to_end, require_memory

_MAX_EXACT_INTEGER: Final = 2**53
"""Largest whole number up to which float64 represents all whole numbers exactly."""
_MAX_DEPTH: Final = 64
_MAX_LINE_LETTERS: Final = 2**27
_MAX_PIECE_LINES: Final = 2**16
_MAX_PIECE_LETTERS: Final = 2**24
_BRACKET_PATTERN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]')
_LINE_FEEDS: Final = bytes.maketrans(b",:", b"\n\n")
_ONE_LINE: Final = str.maketrans("\n\r\0", "   ")
"""Translation of characters that a text on one line cannot contain, to spaces."""
_BETWEEN_NUMBERS: Final = b"{}[] \t\r"
_USUAL_CLASSES: Final = {0, 1, 2, 3, 0xFFFF}
"""Classes of the spellings that Python writes: the fewest digits, ".0", or an exponent of two
digits. The last class stands for texts."""


def read_json(file: HashedFile, request: Request, settings: Settings) -> Table:
    """Read a JSON file with outputs, and return the requested columns as a table.

    The file must contain a list of outputs, a list of objects (one per row, with column names as
    keys), or one object that maps each column name to a list.

    Raises:
        ValueError: if the file does not have one of these three forms.
        MemoryError: if the free memory cannot hold the file.
    """
    if file.size is not None:
        # Memory is needed for the text, and at least as much for its objects.
        require_memory(file.name, 2.0 * file.size)
    text = "".join(read_to_end(file.name, file.open_text(settings.encoding).read))
    rows = parse_json(file.name, text, 1)
    columns = _JsonColumns(_is_exact_text_needed(request, settings) or _has_odd_number_form([text]))
    if columns.is_exact:
        rows = _EXACT_DECODER.decode(text)
    if not isinstance(rows, (list, dict)):
        raise ValueError(f"{file.name} must hold a list of outputs, got {show(rows)}")
    is_sparse = isinstance(rows, list) and bool(rows) and all(type(row) is dict for row in rows)
    lists = rows if isinstance(rows, dict) else {"": rows}
    if is_sparse:
        # Each name occurs once, because a list is made for every name.
        columns_of_rows = dict.fromkeys(name for row in rows for name in row)
        lists = {name: [row.get(name) for row in rows] for name in columns_of_rows}
    for name, values in lists.items():
        if not isinstance(values, list):
            requirement = "a list, as are all columns"
            raise invalid(f"{name!r} of {file.name}", requirement, values)
        columns.add(name, values, 0)
    size = max(map(len, lists.values()), default=0)
    names = tuple(lists) if is_sparse or isinstance(rows, dict) else None
    return columns.make_table(file, names, size, request, settings, is_sparse)


def read_json_lines(file: HashedFile, request: Request, settings: Settings) -> Table:
    """Read a file with one JSON value per line, and return the requested columns as a table.

    Either each value is an output, or each value is an object that maps column names to the entries
    of a row.

    Raises:
        ValueError: if the file does not have one of these two forms.
        MemoryError: if the free memory cannot hold the outputs.
    """
    chosen = {entry for entry in request.columns if entry is not None}
    by_name = ALL not in chosen and all(isinstance(entry, str) for entry in chosen)
    chosen_names = chosen if chosen and by_name and not request.has_pattern_or_exclusion else None
    names: dict[str, Any] = {}
    size, is_table = 0, None
    lines = file.open_text(settings.encoding)
    columns = _JsonColumns(_is_exact_text_needed(request, settings))
    for number, (line, rows) in enumerate(_row_batches(file.name, lines, columns)):
        is_table = isinstance(rows[0], dict) if is_table is None else is_table
        if any(isinstance(row, dict) != is_table for row in rows):
            kinds = "objects, or none of them" if is_table else "no objects, or all of them"
            text = f"lines up to {line} of {file.name} must all be {kinds}, got both kinds"
            raise ValueError(text)
        if is_table:
            for row in rows:
                names.update(row)
        for name in names if is_table else ("",):
            if not is_table or chosen_names is None or name in chosen_names:
                columns.add(name, [row.get(name) for row in rows] if is_table else rows, size)
        size += len(rows)
        if number == 0 and is_table and not chosen and request.is_open:
            select_columns(Table(file.name, tuple(names), (np.empty(0),) * len(names)), None)
        file.check_memory_for_whole(columns.taken)
    return columns.make_table(
        file, tuple(names) if is_table else None, size, request, settings, bool(is_table)
    )


def _is_exact_text_needed(request: Request, settings: Settings) -> bool:
    """Return True if numbers must be read as texts, so that all their digits are known."""
    return request.kinds is not None or bool(settings.dtype)


def _row_batches(name: str, text: TextIO, columns: _JsonColumns) -> Iterator[tuple[int, list[Any]]]:
    """Yield lists of the values of several lines, each with the number of its last line."""
    decoder = _EXACT_DECODER if columns.is_exact else _JSON_DECODER
    for piece in _read_lines(name, text):
        rows = [
            parse_json(name, line.strip(), number, decoder)
            for number, line in piece
            if line.strip()
        ]
        if not columns.has_spellings:
            columns.has_spellings = _has_odd_number_form(line for _, line in piece)
        if rows:
            yield piece[-1][0], rows


def _read_lines(name: str, text: TextIO) -> Iterator[list[tuple[int, str]]]:
    """Yield lists of numbered lines, with at most 65,536 lines and about 16 million characters."""
    piece: list[tuple[int, str]] = []
    letters = 0
    for number, line in enumerate(iter(partial(text.readline, _MAX_LINE_LETTERS), ""), 1):
        piece.append((number, line))
        letters += len(line)
        if len(line) == _MAX_LINE_LETTERS:
            most = f"shorter than {_MAX_LINE_LETTERS:,} letters"
            raise invalid(f"line {number} of {name}", most, f"{line[:20]}...")
        if len(piece) == _MAX_PIECE_LINES or letters > _MAX_PIECE_LETTERS:
            yield piece
            piece, letters = [], 0
    if piece:
        yield piece


class _Types:
    """Types of the values of a JSON column, and the smallest and largest of its whole numbers."""

    def __init__(self) -> None:
        self.types: set[type] = set()
        self.has_whole_floats = False
        self.least, self.most = _MAX_EXACT_INTEGER, 0

    def add(self, column: Array, types: set[type]) -> None:
        """Add the values of a slice (part) of the column; `types` are their types."""
        self.types |= types
        if int in types:
            integers = [abs(item) for item in column.tolist() if type(item) is int]
            self.least = min(self.least, *integers, _MAX_EXACT_INTEGER)
            self.most = max(self.most, *integers, 0)
        if float in types and not self.has_whole_floats:
            items = column.tolist() if column.dtype == object else ()
            self.has_whole_floats = any(type(item) is float and item.is_integer() for item in items)
            if column.dtype != object:
                self.has_whole_floats = bool((column == np.rint(column)).any())

    def find_column_type(self, has_spellings: bool) -> Cells:
        """Return the type of the column, which states if the column must be read again as text."""
        has_both = int in self.types and self.has_whole_floats
        types = self.types - {type(None)}
        if types <= {int, float}:
            base = "int" if int in types else "float" if self.has_whole_floats else ""
            is_long = self.most > _MAX_EXACT_INTEGER
            is_code = types == {int} and _can_be_fixed_length_codes(self.least, self.most)
            kind = Kind(UNREAD, "numbers", base=base)
            return Cells(kind, is_unread=has_spellings or has_both or is_long or is_code)
        if types == {str}:
            return Cells(Kind(UNREAD, "texts", base="texts"))
        is_mixed = types <= {int, float, str}
        kind = Kind(UNREAD, VALUES, base=VALUES)
        return Cells(kind, is_unread=has_spellings or has_both or is_mixed)


def _can_be_fixed_length_codes(least: int, most: int) -> bool:
    """Return True if whole numbers may be codes: all have the same number of digits, at least 8.

    Args:
        least: smallest of the numbers, without its sign.
        most: largest of the numbers, without its sign.
    """
    return len(str(least)) == len(str(most)) >= MIN_CODE_DIGITS


class _JsonColumns:
    """Builder of the columns of a JSON file, to which slices (parts of the file) are added.

    Args:
        is_exact: True if numbers are read as texts. Otherwise, a column must be read again if one
            number may occur in several spellings, such as 1.5 and 1.50.
    """

    def __init__(self, is_exact: bool) -> None:
        self.is_exact = self.has_spellings = is_exact
        self._pieces: dict[str, list[Array]] = {}
        self._types: dict[str, _Types] = {}
        self.taken = 0.0

    def add(self, name: str, items: list[Any], rows_before: int) -> None:
        """Add a slice of a column, whose first row comes after `rows_before` rows of the file."""
        # A new name was missing in all earlier rows.
        missing = [to_object_array([None] * rows_before)] if rows_before else []
        pieces = self._pieces.setdefault(name, missing)
        types = set(map(type, items))
        pieces.append(to_object_array(items) if self.is_exact else _as_column(items, types))
        column = pieces[-1]
        self.taken += _memory_in_bytes(column)
        if self.is_exact:
            return
        if name not in self._types:
            self._types[name] = _Types()
            self._types[name].types |= {type(None)} if rows_before else set()
        self._types[name].add(column, types)

    def make_table(
        self,
        file: HashedFile,
        names: tuple[str, ...] | None,
        size: int,
        request: Request,
        settings: Settings,
        is_sparse: bool,
    ) -> Table:
        """Return the columns as a table, and release the memory of the slices (file parts)."""
        keys = ("",) if names is None else names
        empty = Table(file.name, names, (np.empty(0),) * len(keys), is_sparse=is_sparse)
        dtypes = user_dtypes_by_column(empty, request, settings)
        columns, cells = {}, {}
        for place, name in enumerate(keys):
            pieces = self._pieces.pop(name, None)
            if pieces is None:
                continue
            if self.is_exact:
                items = list(chain.from_iterable(piece.tolist() for piece in pieces))
                requested = (request.kinds or {}).get(place)
                title = f"column {place if names is None else repr(name)} of {file.name}"
                columns[name], cells[place] = _items_to_array_and_type(
                    items, requested, dtypes.get(place), title
                )
            else:
                cells[place] = self._types[name].find_column_type(self.has_spellings)
                columns[name] = _join_column_slices(pieces, cells[place])
        source = FileInfo(request.kind, None, "", file.encoding, file.sha256)
        if names is None and not columns:
            return Table(file.name, None, (), source)
        filled = tuple(columns.values()) if len(columns) == len(keys) else ()
        filled = filled or columns_with_placeholders(columns, keys, size)
        return Table(file.name, names, filled, source, None, is_sparse, cells)


class _NumberText(str):
    """The original text of a number in a JSON file."""


def _items_to_array_and_type(
    items: list[Any], requested: Kind | None, dtype: str | None, title: str
) -> tuple[Array, Cells]:
    """Convert the values of a JSON column to an array, and determine the type of the column.

    Args:
        items: the values, with numbers as texts of class `_NumberText`.
        requested: type that is already decided, or None.
        dtype: type that the user chose, or None.
        title: name of the column in messages.
    """
    types = set(map(type, items))
    name = requested.name if requested else dtype or ""
    if not types <= {_NumberText, str, type(None)}:
        if dtype is not None:
            text = f"left out for {title}, which has {VALUES}"
            raise invalid("dtype", text, dtype)
        return _make_mixed_type_column(items, Kind(JSON, VALUES, base=VALUES))
    texts = {item for item in items if type(item) is str}
    reason = "numbers and texts" if _NumberText in types else "texts"
    if name in (JSON, "") and not all(map(_has_no_digits, texts)):
        return _make_mixed_type_column(items, Kind(JSON, reason))
    piece = _parse_numbers("\n".join([*((item or "").translate(_ONE_LINE) for item in items), ""]))
    kind = chosen_or_inferred_kind([(len(items), piece | {"texts": texts})], title, dtype, "row")
    if name == JSON or (not name and kind.has_words):
        return _make_mixed_type_column(items, Kind(JSON, reason))
    kind = requested or kind
    if kind.name == "number":
        return join_numbers([(len(items), piece)], kind, title, bool(name))
    if kind.name == "text":
        if requested and requested.table:
            strip = str if requested.table == "lines" else str.strip
            items = [strip(item) or None if item is not None else None for item in items]
        items = [item if item is None else str(item) for item in items]
        return _as_column(items), Cells(kind)
    return convert_texts(list(map(str, (item or "" for item in items))), kind.name, title), Cells(
        kind
    )


def _has_no_digits(text: str) -> bool:
    """Return True for a word without digits, such as NA, which may occur in a column of numbers."""
    return text.strip() == text != "" and not any(map(str.isdigit, text)) and not is_number(text)


def _make_mixed_type_column(items: list[Any], kind: Kind) -> tuple[Array, Cells]:
    """Return an array in which each value has its own JSON type, and the type of the column."""
    texts = [item if type(item) is _NumberText else "" for item in items]
    column = _as_column([_replace_number_texts(item) for item in items])
    if not any(texts):
        return column, Cells(kind)
    piece = _parse_numbers("\n".join([*texts, ""]))
    return column, Cells(kind, piece["codes"], tuple(piece["spellings"]))


def _parse_numbers(lines: str) -> dict[str, Any]:
    return _parse_number_lines(lines.encode("utf-8", "replace"))


def _parse_number_lines(data: bytes) -> dict[str, Any]:
    column: dict[str, Any] = _core.parse_cells(data, "", False, "n", 0, 0, 2**62, True, False)[2][0]
    return column


def _has_odd_number_form(lines: Iterable[str]) -> bool:
    """Return True if a number is written in another way than Python writes it.

    The result may also be True because of digits in a text. The file is then read twice.
    """
    data = "\n".join(lines).encode("utf-8", "replace")
    if b"." not in data and b"e" not in data.lower() and b"-0" not in data:
        return False
    data = data.translate(_LINE_FEEDS, _BETWEEN_NUMBERS)
    piece = _parse_number_lines(data)
    has_other = not {each >> 16 for each in piece["spellings"]} <= _USUAL_CLASSES
    return has_other or piece["kinds"][1][0] > 0 or re.search(rb"-0(?![.\deE])", data) is not None


def _replace_number_texts(value: Any) -> Any:
    """Return a JSON value in which each text of class `_NumberText` is replaced by its number."""
    if type(value) is list:
        return [_replace_number_texts(item) for item in value]
    if type(value) is dict:
        return {name: _replace_number_texts(item) for name, item in value.items()}
    if type(value) is not _NumberText:
        return value
    number = read_number(value)
    number = PLAIN_CLASSES.get(type(number), lambda plain: plain)(number)
    is_lost = type(number) is float and (isinf(number) or (not number and Decimal(value)))
    return Decimal(value) if is_lost else number


def _as_column(items: list[Any], types: set[type] | None = None) -> Array:
    kinds = types or set(map(type, items))
    if (kinds and kinds <= {int, float}) or kinds in ({str}, {bool}):
        return answer_rows("outputs", items, "")
    return to_object_array(items)


def parse_json(name: str, text: str, line: int, decoder: json.JSONDecoder | None = None) -> Any:
    """Convert a JSON text to Python objects.

    Args:
        name: name of the file in messages.
        text: the JSON text.
        line: number of the line in the file on which the text begins.
        decoder: JSON decoder to use. None means a decoder that raises an error if an object
            contains the same name twice.

    Raises:
        ValueError: if the text is not JSON, or is nested to more than 64 levels. The message names
            the file and the line.
    """
    # The line is known if the text has only one.
    place = name if "\n" in text else f"line {line} of {name}"
    try:
        # This is faster if nothing surrounds the value.
        value, end = decoder.raw_decode(text) if decoder else (None, 0)
        if end < len(text) or not decoder:
            value = (decoder or _JSON_DECODER).decode(text)
        if len(text) <= 2 * _MAX_DEPTH or _find_deep_bracket(text) is None:
            return value
        text = _explain_too_deep_nesting(name, text, line)
    except json.JSONDecodeError as error:
        place = f"line {line + error.lineno - 1} of {name}"
        text = f"{place} must be JSON, got {error.msg.removesuffix(' at')} at column {error.colno}"
    except _DuplicateNameError as error:
        text = f"{place} must hold each name once, got {error}"
    except ValueError as error:
        # Python raises this for a number with thousands of digits.
        text = f"{place} must be JSON, got {error}"
    except RecursionError:
        text = _explain_too_deep_nesting(name, text, line)
    raise ValueError(text)


def _find_deep_bracket(text: str) -> int | None:
    """Return the position of the first bracket that is nested to more than 64 levels, or None."""
    depth = 0
    if text.count("[") + text.count("{") <= _MAX_DEPTH:
        return None
    for bracket in _BRACKET_PATTERN.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(bracket.group(), 0)
        if depth > _MAX_DEPTH:
            return bracket.start()
    return None


def _explain_too_deep_nesting(name: str, text: str, line: int) -> str:
    start = _find_deep_bracket(text) or 0
    place = f"line {line + text.count(chr(10), 0, start)} of {name}"
    column = start - text.rfind("\n", 0, start)
    return f"{place} must be JSON of at most {_MAX_DEPTH} levels, got more at column {column}"


class _DuplicateNameError(ValueError):
    """Error for a JSON object in which a name occurs twice."""


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        # Python would keep the last of them without an error.
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _DuplicateNameError(f"{twice!r} twice")
    return mapping


_JSON_DECODER: Final = json.JSONDecoder(object_pairs_hook=_make_object)
_EXACT_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_make_object, parse_float=_NumberText, parse_int=_NumberText
)


def _memory_in_bytes(part: Array) -> float:
    if part.dtype != object:
        return float(part.nbytes)
    texts = sum(4 * len(entry) if isinstance(entry, str) else 24 for entry in part.tolist())
    return float(part.nbytes + texts)


def _join_column_slices(pieces: list[Array], cells: Cells) -> Array:
    """Join the slices (parts) of a column to one array, and release their memory.

    Numbers become floats, as in a CSV file.
    """
    types = {piece.dtype.kind for piece in pieces}
    if cells.kind.base in ("", "int", "float"):
        if types <= {"i", "f", "u"}:
            whole = np.empty(sum(map(len, pieces)))
            _move_pieces(pieces, whole)
            return whole
        if not cells.is_unread:
            return to_object_array([
                item if item is None else float(item) for piece in pieces for item in piece.tolist()
            ])  # fmt: skip
    items = list(chain.from_iterable(piece.tolist() for piece in pieces))
    pieces.clear()
    return _as_column(items)


def _move_pieces(pieces: list[Any], whole: Array) -> None:
    """Copy slices of a column into an array, and release the memory of each copied slice."""
    stop = len(whole)
    while pieces:
        piece = pieces.pop()
        whole[stop - len(piece) : stop] = piece
        stop -= len(piece)
