"""Readers of text files: tables such as CSV, and files with one output per line.

The type of a column depends on all of its cells. A column has the type "number" if float64
represents every cell with all of its digits. A file is read in parts (slices). If a later part
shows that a column has another type, the file is read a second time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from math import isfinite
from typing import Any, Final, NamedTuple

import numpy as np

from .. import _core
from ..errors import integer, invalid, message, tag_error
from ..mechanisms.answers import answer_rows, to_object_array
from ..records import Array
from .columns import (
    ALL,
    MISSING,
    FileInfo,
    Request,
    Table,
    columns_with_placeholders,
    find_column_number,
    needed_column_numbers,
    select_columns,
)
from .opened import HashedFile, Settings, require_memory

_SEPARATORS: Final = ",;\t"
_OTHER_SEPARATORS: Final = "| ~:"
"""Characters that may separate cells, but may also occur inside a cell."""
_HEAD_BYTES: Final = 2**19
"""Number of bytes at the beginning of a file that determine separator, header and first types."""
_SLICE_BYTES: Final = 2**22
"""Number of bytes of a slice. A user can interrupt the reader after each slice."""
_MAX_ROW_BYTES: Final = 2**27
_MAX_WORDS: Final = 16
"""Largest number of different words, such as NA, in a column of numbers."""
_MAX_SHOWN_WORDS: Final = 3
_MIN_SEPARATED: Final = 0.95
"""If at least this share of lines has another separator, the user must choose the separator."""
MIN_CODE_DIGITS: Final = 8
"""Whole numbers may be codes if all have the same number of digits, which is at least this."""
_TEXT_BYTES: Final = 64
"""Approximate number of bytes that Python needs for a text, in addition to its characters."""

_NAMED: Final = 6
"""Class of the spellings of NaN and infinity. In a lower class, each number has one spelling."""
MINUS_ZERO: Final = 1 << 14
"""Bit that is set in the encoded spelling of -0."""
_NO_NUMBER: Final = 2**32 - 1

JSON: Final = "json"
"""Type of a column in which each value has its own JSON type, such as number or text."""
UNREAD: Final = "unread"
"""Type of a JSON column whose numbers were converted, so that the original texts are unknown."""
VALUES: Final = "values of JSON"
"""Name of the type of JSON columns that contain lists, objects or booleans."""
KINDS: Final = ("number", "digits", "whole", "decimal", "text", JSON, UNREAD)
"""Types of columns. Each type can represent all cells of the types before it in this list."""

_REASONS: Final = {
    "number": "numbers",
    "whole": "whole numbers",
    "decimal": "decimals",
    "text": "texts",
}


class Kind(NamedTuple):
    """Type of a column in a file, with the reason why dpcore chose this type.

    Args:
        name: name of the type, one of the strings in `KINDS`, such as "number" or "text".
        reason: reason for the type, as shown in a report, such as "texts, because line 7 has
            '007'".
        width: number of digits of each cell if the type is "digits", otherwise 0. The type "digits"
            is for whole numbers that all have the same number of digits and may be codes, such as
            postal codes.
        base: for the type "digits", this is the type that the column has if its numbers are not
            codes. For a column from JSON, this is the type of the values.
        has_words: True if the column cannot be a column of numbers because it contains too many
            different words, such as NA.
        table: format of the table with which this column is compared, if this column comes from
            JSON. Spaces around texts are then removed, and empty texts are missing values, as in
            the table. For any other column, `table` is "".
    """

    name: str
    reason: str
    width: int = 0
    base: str = ""
    has_words: bool = False
    table: str = ""

    def digits_base_if_unlike(self, other: Kind) -> Kind:
        """Return this type; if it is "digits" and unlike the type `other`, return its base instead.

        The type "digits" is for whole numbers that may be codes, such as postal codes. The base is
        the type that the column has if its numbers are not codes. `other` is the type of another
        column. Two types "digits" are alike if their cells have the same number of digits.
        """
        if self.name != "digits" or (other.name, other.width) == ("digits", self.width):
            return self
        return Kind(self.base, _REASONS[self.base], base=self.base)


class Cells(NamedTuple):
    """Type of a column that was read from a text file, and how its numbers are written.

    The spelling of a number is the way in which it is written: 1.5 and 1.50 are two spellings.

    Args:
        kind: type of the column.
        codes: for each cell, the index of its spelling in `spellings`. None for a column of texts.
        spellings: the spellings that occur in the column, each encoded as a whole number.
        is_unread: True if the column must be read again, because it was read with a wrong type.
    """

    kind: Kind
    codes: Array | None = None
    spellings: tuple[int, ...] = ()
    is_unread: bool = False


class _TextSlices:
    """Reader of a text file in slices that contain only whole rows.

    Args:
        file: the file.
        read: function `(size)` that returns about `size` bytes in UTF-8, and b"" at the end.
        sep: character that separates cells. Empty if each line is one cell.
        quotes: True if cells may be enclosed in quotation marks.
        leaves_out_empty: True to skip empty lines.
    """

    def __init__(
        self,
        file: HashedFile,
        read: Callable[[int], bytes],
        sep: str,
        quotes: bool,
        leaves_out_empty: bool = False,
    ) -> None:
        self.file, self.sep, self.quotes = file, sep, quotes
        self.leaves_out_empty = leaves_out_empty
        self.starts: list[int] = []
        self._read = read
        self.data = b""
        self.lines = self.empty = 0
        self.is_last = False

    def read_more(self) -> None:
        """Read one more slice of bytes, or as many bytes as the data has already if this is more.

        Raises:
            ValueError: if the row is longer than 128 MiB.
            MemoryError: if the free memory cannot hold the row.
        """
        if len(self.data) > _MAX_ROW_BYTES:
            place = f"the row from line {self.lines + 1} of {self.file.name} on"
            most = f"at most {_MAX_ROW_BYTES // 2**20} MiB long (is a quotation mark open?)"
            raise invalid(place, most, f"{len(self.data) / 2**20:.0f} MiB")
        require_memory(self.file.name, len(self.data), len(self.data))
        data = self._read(max(_SLICE_BYTES, len(self.data)))
        self.is_last = not data
        self.data = self.data + data if self.data else data

    def parse_rows(
        self, roles: str, rows: int = 2**62, *, keep: bool = False
    ) -> tuple[int, list[dict[str, Any]]]:
        """Parse whole rows of the data; return the number of rows, and their columns.

        Args:
            roles: for each column, "n" to read numbers, "t" to read texts, "-" to skip it.
            rows: largest number of rows.
            keep: True to keep the rows in the data, False to remove them.
        """
        fault, totals, columns, self.starts = _core.parse_cells(
            self.data, self.sep, self.quotes, roles, self.lines, self.empty, rows, self.is_last,
            self.leaves_out_empty,
        )  # fmt: skip
        if fault is not None:
            raise self._make_error(*fault, len(roles))
        consumed, size, lines, empty = totals
        if not keep:
            self.data, self.empty = self.data[consumed:], empty
            self.lines += lines
        return size, columns

    def _make_error(self, fault: str, line: int, cell: int, width: int) -> ValueError:
        place = f"line {line} of {self.file.name}"
        if fault == "length":
            hint = " (text with one output a line is format='lines')" if width == 1 else ""
            return invalid(place, f"{width} cells long{hint}", cell)
        if fault == "empty":
            return ValueError(f"{place} must hold a row, got nothing ({MISSING})")
        place = f"cell {cell} in {place}"
        texts = {
            "nul": f"{self.file.name} must be text, got a NUL character in {place} (encoding=?)",
            "encoding": (
                f"{self.file.name} must be text in UTF-8, got other bytes in {place} "
                "(encoding= gives another)"
            ),
            "open": f"{place} must end with the quotation mark that it begins with, got none",
            "after": f"{place} must end after its quotation mark, got more letters",
        }
        return ValueError(texts[fault])

    def remaining(self, roles: str) -> Iterator[tuple[int, list[dict[str, Any]]]]:
        """Yield each slice (part) until the end of the file: its number of rows and its columns."""
        while True:
            if self.data or self.is_last:
                size, columns = self.parse_rows(roles)
                if size:
                    yield size, columns
            if self.is_last:
                return
            self.read_more()


class _ColumnBuilder:
    """Builder of the columns of a text file, to which slices (parts of the file) are added.

    Args:
        places: numbers of the columns that are read, in increasing order.
        roles: for each column, "n" if numbers are read, "t" if texts are read, "-" if it is
            skipped.
    """

    def __init__(self, places: Sequence[int], roles: str) -> None:
        self.places, self.roles = places, roles
        self.pieces: list[tuple[int, list[dict[str, Any]]]] = []
        self.rows = 0
        self.taken = 0.0

    def add(self, size: int, columns: list[dict[str, Any]], at_beginning: bool = False) -> None:
        """Add the columns of a slice of `size` rows at the end, or at the beginning."""
        self.pieces.insert(0 if at_beginning else len(self.pieces), (size, columns))
        self.rows += size
        for column in columns:
            texts = column["texts"]
            size_of_texts = sum(map(len, texts)) + _TEXT_BYTES * len(texts)
            self.taken += column["numbers"].nbytes + column["codes"].nbytes + size_of_texts

    def has_repeated_cell(self, first: Sequence[str]) -> bool:
        """Return True if a cell of the row `first` also occurs below it, within the last slice."""
        columns = zip(self.places, self.pieces[-1][1], strict=True)
        return any(first[place] and first[place] in column["texts"] for place, column in columns)

    def finish(
        self, kinds: Mapping[int, str], name: str, dtypes: Mapping[int, str]
    ) -> dict[int, tuple[Array, Cells]]:
        """Return the values and the type of each column; release the memory of the slices.

        Args:
            kinds: names of the types that are already decided, by the numbers of the columns.
            name: name of the file in messages.
            dtypes: the types among `kinds` that the user chose.
        """
        finished = {}
        for number, place in enumerate(self.places):
            pieces = [(size, columns[number]) for size, columns in self.pieces]
            for _, columns in self.pieces:
                columns[number] = {}
            title = f"column {place} of {name}"
            decided = chosen_or_inferred_kind(pieces, title, dtypes.get(place))
            kind = kinds.get(place, decided.name)
            if (kind == "number") != (self.roles[place] == "n"):
                nothing = np.broadcast_to(np.zeros(1), self.rows)
                finished[place] = nothing, Cells(decided, is_unread=True)
            elif kind == "number":
                finished[place] = join_numbers(pieces, decided, title, place in kinds)
            else:
                texts = [text for _, piece in pieces for text in piece["texts"]]
                finished[place] = convert_texts(texts, kind, title), Cells(decided)
        return finished


def join_numbers(
    pieces: list[tuple[int, dict[str, Any]]], kind: Kind, title: str, is_asked: bool
) -> tuple[Array, Cells]:
    """Join the slices of a column of numbers to one array; a slice is a part of the file.

    Words such as NA remain texts in the array, and empty cells become None.

    The result is a pair. The first entry is the array. The second entry contains the type of the
    column and the spellings of its numbers.

    Args:
        pieces: for each slice, the number of its rows and the values of this column in the slice.
        kind: type of the column.
        title: name of the column in messages.
        is_asked: True if the user chose a type of numbers for this column. Texts such as '007' are
            then converted to numbers, even if digits are lost.
    """
    rows = sum(size for size, _ in pieces)
    numbers, codes = np.empty(rows), np.empty(rows, np.uint8)
    spellings: dict[int, int] = {}
    others: dict[int, Any] = {}
    start = 0
    for size, piece in pieces:
        stop = start + size
        numbers[start:stop] = piece.pop("numbers")
        places = [spellings.setdefault(each, len(spellings)) for each in piece["spellings"]]
        own = np.array([min(at, 255) for at in places] or [0], np.uint8)
        codes[start:stop] = own[piece.pop("codes")]
        others |= dict.fromkeys((start + piece["missing"]).tolist())
        others |= zip((start + piece["odd"]).tolist(), piece["texts"], strict=True)
        start = stop
    if is_asked:
        # The user requested numbers, also for texts with leading zeros or too many digits.
        for row in [row for row, text in others.items() if text is not None]:
            others[row] = _convert_cell_or_keep_word(others[row], "number", title, row)
    column = numbers.astype(object) if others else numbers
    if others:
        column[[*others]] = to_object_array([*others.values()])
        if is_asked and None not in others.values():
            column = answer_rows("outputs", column.tolist(), "")
    return column, Cells(kind, codes, tuple(spellings))


def convert_texts(texts: Sequence[str | None], kind: str, title: str) -> Array:
    """Convert the texts of a column to values of the type `kind`; empty texts become None.

    The name `title` of the column is used in error messages.
    """
    if kind in _CONVERTERS:
        return to_object_array(
            [
                _convert_cell_or_keep_word(text, kind, title, row) if text else None
                for row, text in enumerate(texts)
            ]
        )
    items = [text or None for text in texts]
    return to_object_array(items) if None in items else answer_rows("outputs", items, "")


def _read_decimal_or_nonfinite_float(text: str) -> float | Decimal:
    number = float(text)
    is_named = not isfinite(number) and text.strip("+-").isalpha()
    return number if is_named else Decimal(text)


_CONVERTERS: Final[dict[str, Callable[[str], Any]]] = {
    "number": float,
    "whole": int,
    "decimal": _read_decimal_or_nonfinite_float,
}


def _convert_cell_or_keep_word(text: str, kind: str, title: str, row: int) -> Any:
    """Convert a cell to the type `kind`; return a word without digits unchanged."""
    try:
        if "_" not in text:
            return _CONVERTERS[kind](text)
    except (ValueError, ArithmeticError):
        if not any(map(str.isdigit, text)):
            return text
    nouns = {"number": "a number", "whole": "a whole number", "decimal": "a decimal number"}
    raise tag_error(invalid(f"row {row + 1} of {title}", nouns[kind], text), "dtype")


def chosen_or_inferred_kind(
    pieces: list[tuple[int, dict[str, Any]]], title: str, dtype: str | None, noun: str = "line"
) -> Kind:
    """Return the type that the user chose for a column, or a type that fits all cells.

    Args:
        pieces: for each slice (part of the file), the number of its rows and the values of this
            column in the slice.
        title: name of the column in messages.
        dtype: type that the user chose, or None if the user did not choose a type.
        noun: word that messages use for a position in the file: "line" or "row".

    Raises:
        ValueError: if `dtype` is a type of numbers, but the column contains words.
    """
    kind = _infer_column_kind(pieces, noun)
    if dtype is None:
        return kind
    if kind.has_words and dtype != "text":
        text = message("dtype", f"'text' for {title}", dtype)
        raise tag_error(ValueError(f"{text} ({kind.reason})"), "dtype")
    return Kind(dtype, f"{_REASONS[dtype]}, as dtype= asks", base=dtype)


def _infer_column_kind(pieces: list[tuple[int, dict[str, Any]]], noun: str) -> Kind:
    counts, firsts = [0] * 5, [(0, "")] * 5
    words: set[str] = set()
    filled = 0
    widths: set[int] = set()
    has_fractions = False
    for size, piece in pieces:
        for number, (count, line, text) in enumerate(piece["kinds"]):
            counts[number] += count
            if count and not firsts[number][0]:
                firsts[number] = line, text
        if piece["kinds"][4][0]:
            words |= {text for text in {*piece["texts"]} if not any(map(str.isdigit, text))}
        filled += size - len(piece["missing"])
        widths |= {*(piece["widths"] or ())}
        has_fractions |= piece["has_fractions"]
    suspects = [firsts[number] for number in (2, 3) if counts[number]]
    has_words = bool(counts[4]) and (len(words) > _MAX_WORDS or 2 * counts[4] > filled)
    if has_words:
        suspects.append(firsts[4])
    if suspects:
        line, text = min(suspects)
        shown = text if len(text) <= 20 else f"{text[:20]}..."
        reason = f"texts, because {noun} {line:,} has {shown!r}"
        return Kind("text", reason, has_words=has_words)
    base = "number"
    if counts[1] or (counts[0] and has_fractions):
        base = "decimal"
    elif counts[0]:
        base = "whole"
    if len(widths) == 1 and not has_fractions and min(widths) >= MIN_CODE_DIGITS:
        width = min(widths)
        reason = f"whole numbers of {width} digits, which are read digit by digit, too"
        return Kind("digits", reason, width, base)
    shown = ", ".join(map(repr, sorted(words)[:_MAX_SHOWN_WORDS]))
    return Kind(base, _REASONS[base] + f", and words such as {shown}" * bool(words), base=base)


def read_cells(file: HashedFile, request: Request, settings: Settings) -> Table:
    """Read the requested columns of a text file, which holds a table or one output per line.

    Args:
        file: the file.
        request: the columns to read, as the user chose them.
        settings: settings for reading, such as the character between cells.

    Raises:
        ValueError: if the file cannot be read as a table. The message names the line and the cell.
        MemoryError: if the free memory cannot hold the columns.
    """
    are_lines = request.kind == "lines"
    read = file.make_utf8_chunk_reader(settings.encoding)
    data = read(_HEAD_BYTES)
    sep = "" if are_lines else settings.sep or _find_separator(data, request.kind)
    if not are_lines and settings.sep is None:
        _refuse_if_lines_use_other_sep(file, data, sep)
    # In a table with tabs, a quotation mark is an ordinary character, and no cell contains a tab.
    slices = _TextSlices(file, read, sep, request.kind == "csv")
    slices.data, slices.is_last = data, not data
    first, row = _first_row_with_raw(slices)
    if are_lines:
        _refuse_column_choice(file, request)
    if not first:
        return Table(file.name, None, ())
    # numpy.savetxt writes a comment sign before its header.
    names = tuple(cell.strip().lstrip("# ") for cell in first)
    is_named = settings.header == "yes" or (settings.header == "auto" and _is_header(first))
    empty = Table(file.name, names if is_named else None, (np.empty(0),) * len(first))
    places = [0] if are_lines else needed_column_numbers(empty, request)
    by_name = any(isinstance(entry, str) and entry != ALL for entry in request.columns)
    is_sure = not is_named or by_name or settings.header == "yes"
    if is_named and not places:
        # Columns must be chosen, unless a cell of the first row repeats, so that it is not a
        # header.
        size, columns = slices.parse_rows("t" * len(first), keep=True)
        builder = _ColumnBuilder(range(len(first)), "t" * len(first))
        builder.add(size, columns)
        if is_sure or not builder.has_repeated_cell(first):
            select_columns(empty, request.column)
        is_named, is_sure, places = False, True, list(range(len(first)))
    dtypes = user_dtypes_by_column(empty, request, settings)
    requested = {place: kind.name for place, kind in (request.kinds or {}).items()}
    kinds = dtypes | requested
    builder = _ColumnBuilder(places, _column_type_letters(slices, places, len(first), kinds))
    for size, columns in slices.remaining(builder.roles):
        builder.add(size, columns)
        file.check_memory_for_whole(builder.taken)
        if not is_sure and not are_lines and builder.has_repeated_cell(first):
            # A name does not repeat among the values, so the first row contains values.
            is_named, is_sure = False, True
    if are_lines and settings.header == "auto":
        # The first line is a name if all other lines are numbers.
        parts = [column for _, columns in builder.pieces for column in columns]
        is_named = is_named and bool(parts) and not any(part["texts"] for part in parts)
        is_named = is_named and not any(len(part["missing"]) for part in parts)
    if not is_named:
        slices.data, slices.lines, slices.empty, slices.is_last = row, 0, 0, True
        size, columns = slices.parse_rows(builder.roles)
        builder.add(size, columns, at_beginning=True)
    finished = builder.finish(kinds, file.name, dtypes)
    filled = columns_with_placeholders(
        {place: column for place, (column, _) in finished.items()}, range(len(first)), builder.rows
    )
    source = FileInfo(request.kind.replace("tsv", "csv"), is_named, sep, file.encoding, file.sha256)
    cells = {place: each for place, (_, each) in finished.items()}
    return Table(file.name, names if is_named else None, filled, source, cells=cells)


def read_rows(file: HashedFile, kind: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the cells of each row of a table in a text file.

    Empty lines are skipped. The first row, often a header, is included.

    Args:
        file: the file.
        kind: "csv" or "tsv".

    Raises:
        ValueError: if the file cannot be read as a table. The message names the line and the cell.
    """
    read = file.make_utf8_chunk_reader(None)
    data = read(_HEAD_BYTES)
    sep = "\t" if kind == "tsv" else _find_separator(data, kind)
    slices = _TextSlices(file, read, sep, kind == "csv", True)
    slices.data, slices.is_last = data, not data
    first, _ = _first_row_with_raw(slices)
    if not first:
        return
    yield slices.starts[0], first
    for _, columns in slices.remaining("t" * len(first)):
        cells = zip(*(column["texts"] for column in columns), strict=True)
        yield from zip(slices.starts, map(list, cells), strict=True)


def spells_twice(numbers: Array, codes: Array, spellings: Sequence[int]) -> bool:
    """Return True if the same number is written in two ways in a column, such as 1.5 and 1.50.

    Args:
        numbers: the numbers, shape `(size,)`.
        codes: for each number, the index of its spelling (the way in which it is written) in
            `spellings`.
        spellings: spellings, each encoded as a whole number. The same spelling may occur more than
            once in this list.
    """
    used = {spellings[code] for code in np.unique(codes)} - {_NO_NUMBER}
    classes, styles = ({each >> 16 for each in used}, {each & 0xFFFF for each in used})
    # In these classes a number has only one text, unless two competing classes occur.
    is_unique = max(classes, default=0) <= _NAMED and not any(
        len(classes & rivals) > 1 for rivals in ({1, 2}, {3, 4, 5})
    )
    is_unique &= sum(each >> 16 == _NAMED for each in used) < 2
    if len(styles) < 2 or (is_unique and not any(each & MINUS_ZERO for each in used)):
        return False
    first_places = {spelling: place for place, spelling in reversed([*enumerate(spellings)])}
    codes = np.array([first_places[spelling] for spelling in spellings])[codes]
    # Cells that are not numbers have no spelling.
    is_number = np.array([spelling != _NO_NUMBER for spelling in spellings])[codes]
    numbers, codes = numbers[is_number], codes[is_number]
    order = np.lexsort((codes, numbers))
    numbers, codes = numbers[order], codes[order]
    are_equal = (numbers[1:] == numbers[:-1]) | (np.isnan(numbers[1:]) & np.isnan(numbers[:-1]))
    return bool(np.any(are_equal & (codes[1:] != codes[:-1])))


def describe_number_format(spelling: int) -> str:
    """Describe in words how a number is written, such as "2 decimals".

    The argument `spelling` is a whole number that encodes the way in which the number is written.
    """
    if spelling == _NO_NUMBER:
        return "no number"
    decimals, exponent = spelling & 63, (spelling >> 6) & 3
    if spelling >> 16 == _NAMED:
        return f"a name with {decimals} capitals"
    words = ["a plus sign"] * (spelling >> 11 & 1)
    words += ["a point at one end"] * (spelling >> 12 & 1)
    words += ["leading zeros"] * (spelling >> 13 & 1) + ["a minus sign of 0"] * (spelling >> 14 & 1)
    if exponent:
        digits = (spelling >> 9 & 3) + 1
        plus = " and a plus sign" * (spelling >> 8 & 1)
        words.append(f"an exponent {' eE'[exponent]} of {digits} digits{plus}")
    return ", ".join([f"{decimals} decimals", *words])


def plan_reread(tables: Sequence[Table], places: Sequence[Sequence[int]]) -> list[dict[int, Kind]]:
    """Return which columns of each table must be read again, and with which types.

    One table contains outputs on the input x, and the other table contains outputs on x'.
    Corresponding columns of the two tables must have the same type. The result contains one dict
    for each table. The dict maps the index of a column to the new type of this column.

    Args:
        tables: the two tables, or only one table.
        places: for each table, the indices of its columns of outputs. Columns at the same position
            of the two lists correspond to each other.

    Raises:
        ValueError: if one table comes from JSON and contains lists, objects or booleans, and the
            other table comes from CSV or from a file with one output per line.
    """
    again: list[dict[int, Kind]] = [
        {place: cells.kind for place, cells in table.cells.items() if cells.is_unread}
        for table in tables
    ]
    for pair in zip(*places, strict=False) if len(tables) == 2 else ():
        if not all(place in table.cells for table, place in zip(tables, pair, strict=True)):
            continue
        columns = [table.cells[place] for table, place in zip(tables, pair, strict=True)]
        kinds = _new_kinds_of_columns(columns[0], columns[1], tables)
        for at, kind in enumerate(kinds):
            place, own = pair[at], columns[at]
            is_stripped = own.kind.table == kind.table or kind.name != "text"
            if kind.name == UNREAD or own.kind.name != kind.name or not is_stripped:
                again[at][place] = kind
    return again


def _new_kinds_of_columns(first: Cells, second: Cells, tables: Sequence[Table]) -> Sequence[Kind]:
    """Return the types of two corresponding columns, or () if they need not be read again."""
    kinds = first.kind, second.kind
    formats = [table.found.kind for table in tables]
    are_json = [name.startswith(JSON) for name in formats]
    if all(kind.name == UNREAD for kind in kinds) and not (first.is_unread or second.is_unread):
        bases = {kind.base for kind in kinds}
        # Numbers with a fraction have one spelling. Whole numbers may have a point or none.
        is_alike = len(bases) == 1 or ("" in bases and not bases & {"texts", VALUES})
        return () if is_alike else kinds
    if any(kind.name == UNREAD for kind in kinds):
        return kinds
    joined = [kinds[0].digits_base_if_unlike(kinds[1]), kinds[1].digits_base_if_unlike(kinds[0])]
    at = max((0, 1), key=lambda at: KINDS.index(joined[at].name))
    kind, reason = joined[at], joined[at].reason
    reason = re.sub(r"(because (line|row) [\d,]+) has", rf"\1 of {tables[at].name} has", reason)
    if are_json[0] != are_json[1]:
        place = are_json.index(True)
        if kinds[place].base == VALUES:
            text = f"must be numbers and texts where {tables[1 - place].name} is a table"
            error = ValueError(f"outputs in {tables[place].name} {text}, got {VALUES}")
            raise tag_error(error, "outputs")
        if kind.name == JSON:
            reason = f"texts, because {tables[at].name} has {reason}"
            kind = Kind("text", reason)
        joined = [kind, kind]
        joined[at], joined[1 - at] = kind, kind._replace(reason=reason)
        joined[place] = joined[place]._replace(table=formats[1 - place])
        return joined
    joined[1 - at] = kind._replace(reason=reason)
    return joined


def user_dtypes_by_column(table: Table, request: Request, settings: Settings) -> dict[int, str]:
    """Return the types that the user chose for columns, as a dict from column number to type."""
    if isinstance(settings.dtype, str):
        return dict.fromkeys(range(len(table.columns)), settings.dtype)
    places = columns_of_user_dtypes(table, request, settings.dtype)
    return {place: settings.dtype[name] for name, place in places.items()}


def columns_of_user_dtypes(table: Table, request: Request, dtypes: Iterable[Any]) -> dict[Any, int]:
    """Find the columns of a table for which the user chose a type.

    The entries of `dtypes` are names or numbers of columns. The result maps each entry to the
    number of the column in `table`.

    Raises:
        ValueError: if the table lacks one of these columns. If the rows of the table are JSON
            objects, a missing name is not an error.
    """
    places = {}
    for name in dtypes:
        column = name
        if table.names is not None and request.names is not None and not isinstance(name, str):
            # Numbers refer to the first table.
            column = request.names[integer("dtype", name, 0, len(request.names) - 1)]
        if not table.is_sparse or not isinstance(column, str) or column in (table.names or ()):
            places[name] = find_column_number(table, column, "dtype")
    return places


def _first_row_with_raw(slices: _TextSlices) -> tuple[list[str], bytes]:
    """Return the cells of the first row, and the bytes of this row."""
    while True:
        data = slices.data
        size, columns = slices.parse_rows("", 1)
        if size:
            return [column["texts"][0] for column in columns], data[: len(data) - len(slices.data)]
        if slices.is_last:
            return [], b""
        slices.read_more()


def _column_type_letters(slices: _TextSlices, places: Sequence[int], width: int, kinds: Any) -> str:
    """Return, for each column, "t" if most of its first cells are texts, "n" otherwise.

    Columns that are not read have "-". `kinds` are types that are already decided.
    """
    roles = ["n" if place in {*places} else "-" for place in range(width)]
    size, columns = slices.parse_rows("".join(roles), keep=True)
    for place, column in zip(places, columns if size else [], strict=False):
        counts = [count for count, _, _ in column["kinds"]]
        if sum(counts[2:]) > (size - len(column["missing"])) / 2:
            roles[place] = "t"
    for place, kind in kinds.items():
        if place in {*places}:
            roles[place] = "n" if kind == "number" else "t"
    return "".join(roles)


def _find_separator(data: bytes, kind: str) -> str:
    """Return the character that separates cells: comma, semicolon or tab.

    The function prefers a character that occurs equally often in all lines, and then the most
    frequent character of the first line. It ignores texts in quotation marks.
    """
    bare = re.sub(r'"[^"]*("|$)', "", data.decode("utf-8", "replace"))
    first, *others = bare.splitlines()[:1000] or [""]
    counts = {sep: first.count(sep) for sep in ("\t,;" if kind == "tsv" else _SEPARATORS)}
    # The last line may be incomplete.
    lines = [line for line in others[:-1] if line.strip()]
    even = {sep for sep, count in counts.items() if all(line.count(sep) == count for line in lines)}
    return max(counts, key=lambda sep: (counts[sep] > 0, sep in even, counts[sep]))


def _refuse_if_lines_use_other_sep(file: HashedFile, data: bytes, sep: str) -> None:
    """Raise an error if the first line lacks `sep`, and nearly all lines contain another separator.

    The other separators are "|", space, "~" and ":".
    """
    lines = data.decode("utf-8", "replace").splitlines()[:1000]
    if any(sep in line for line in lines[:1]):
        return
    for other in _OTHER_SEPARATORS:
        if _are_most_lines_split_equally_by(lines[1:-1] or lines[1:], other):
            text = f"sep must be given, for nearly all lines of {file.name} hold {other!r} equally"
            keep = f"sep={other!r} splits them, sep=',' keeps one column"
            raise tag_error(ValueError(f"{text} often between numbers ({keep})"), "sep")


def _are_most_lines_split_equally_by(lines: Sequence[str], sep: str) -> bool:
    """Return True if nearly all lines have equally many separators, and columns have numbers."""
    counts = Counter(line.count(sep) for line in lines)
    (count, size), *_ = counts.most_common(1) or [(0, 0)]
    if not count or size < _MIN_SEPARATED * len(lines):
        return False
    rows = [line.split(sep) for line in lines if line.count(sep) == count]
    if sep == ":" and all(
        re.fullmatch(r"\s*\d{1,2}(:[0-5]\d){1,2}(\.\d*)?\s*", line) for line in lines
    ):
        return False
    are_numbers = [all(map(is_number, column)) for column in zip(*rows, strict=True)]
    return all(are_numbers) if sep in " :" else any(are_numbers)


def is_number(text: str) -> bool:
    """Return True if Python's `float` accepts a text and the text has no underscore."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def _is_header(cells: Iterable[str]) -> bool:
    """Return True if a row is a header: it has a cell that is not empty, and no number."""
    filled = [cell for cell in cells if cell.strip()]
    return bool(filled) and not any(map(is_number, filled))


def _refuse_column_choice(file: HashedFile, request: Request) -> None:
    """Raise an error if the user chose columns of a file that has one output per line."""
    choices = {"column": request.column, "exclude": request.exclude, "label": request.label}
    for name, choice in choices.items():
        if choice not in (None, ALL) and not (name == "column" and choice == 0):
            hint = "has one output a line (format='csv' reads a table)"
            raise invalid(name, f"None where {file.name} {hint}", choice)
