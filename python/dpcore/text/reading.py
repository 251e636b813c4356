"""`read`: read texts from tables, text files, folders or pandas data frames.

Error messages name the file and the line.
"""

from __future__ import annotations

import codecs
import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from ..errors import choice, invalid, message, mistyped, tag_error
from ..files.cells import read_rows
from ..files.formats import KINDS as FILE_KINDS
from ..files.json_files import parse_json
from ..files.opened import HashedFile, Settings, read_to_end
from ..files.opened import open_file as open_text
from ..mechanisms.answers import is_frame
from ..suggestions import explain_argument_errors
from .corpus import Corpus

_NUMBER_PATTERN: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
"""Pattern of a number. A string with a leading zero is a code, not a number."""
_MAX_EXACT_INTEGER: Final = 2.0**53
"""Every whole number up to this size has an exact float."""
_TABLE_KINDS: Final = ("csv", "tsv", "jsonl")
SUFFIXES: Final = {end: kind for end, kind in FILE_KINDS.items() if kind in _TABLE_KINDS}
"""Mapping from the ending of a file name to the kind of table."""
_SPLIT_NAMES: Final = {
    "train": "train", "valid": "valid", "validation": "valid", "val": "valid", "dev": "valid",
    "test": "test",
}  # fmt: skip
"""Mapping from the name of a file or folder to a part of a split."""
Kind = Literal["csv", "tsv", "jsonl", "lines", "folder"]
"""Type of the names in `KINDS`, such as "csv"."""
_COLUMN_ARGUMENTS: Final = "text, label, attributes and group"
KINDS: Final = (*_TABLE_KINDS, "lines", "folder")
"""Kinds of files and folders that `read` supports."""


@dataclass(frozen=True, slots=True)
class Row:
    """One text of a table that was read from a file, with its label, attributes and group.

    Numbers that are written as strings are not converted. If the row of the table has an empty
    cell, the field `empty` names the cell, such as "line 3 of a.csv, column 'age'". In this case,
    no other field is set.
    """

    text: str
    label: int | str | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    group: int | str | None = None
    empty: str = ""


@dataclass(frozen=True, slots=True)
class File:
    """Content of a file in memory, with the name of the file for error messages.

    Args:
        name: name of the file in error messages.
        origin: text that states where the file comes from. Empty if the source is not known.
        content: content of the file, as bytes.
    """

    name: str
    origin: str
    content: bytes

    def error(self, line: int, requirement: str, problem: object) -> ValueError:
        """Return a ValueError whose message names a line of the file, and states the problem."""
        return tag_error(ValueError(message(self.place(line), requirement, problem)), "path")

    def place(self, line: int) -> str:
        """Return a text such as "line 3 of a.csv", for error messages."""
        return f"line {line:,} of {self.name_and_origin}"

    @property
    def name_and_origin(self) -> str:
        """Name of the file for error messages, followed by its origin in brackets (if known)."""
        return f"{self.name} ({self.origin})" if self.origin else self.name

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield the number and the text of each line of the file, without the line ending.

        Only a line feed ends a line. Other characters that end a line in Python's `splitlines` may
        occur inside texts.
        """
        for number, line in enumerate(self.content.removeprefix(codecs.BOM_UTF8).split(b"\n"), 1):
            yield number, self.decoded(number, line).removesuffix("\r")

    def decoded(self, number: int, line: bytes) -> str:
        """Decode one line of the file from UTF-8.

        `number` is the number of the line. If the line is not UTF-8, a ValueError names this
        number.
        """
        try:
            return line.decode("utf-8")
        except UnicodeDecodeError as error:
            part = line[max(0, error.start - 10) : error.end + 10]
            raise self.error(number, "text in UTF-8", part) from None

    def filled(self) -> Iterator[tuple[int, str]]:
        """Yield the number and the text of each non-blank line of the file."""
        return ((number, line) for number, line in self.lines() if line.strip())

    def text(self, line: int, value: object) -> str:
        """Return a value from the file as text, without white space at both ends.

        If the value is not a string or has only white space, a ValueError names the line.
        """
        if not isinstance(value, str) or not value.strip():
            raise self.error(line, "a text that is not empty", value)
        return value.strip()


def load_text_file(path: Path, origin: str = "") -> File:
    """Read a text file into memory, and return its content with its name.

    Raises:
        FileNotFoundError: if the file is missing. The message states `origin`, the source of the
            file.
    """
    what = f"a file of texts{f' from {origin}' if origin else ''}"
    if not path.is_file():
        hint = f"{what} (the README of the data says where it comes from)" if origin else what
        raise missing_file(path, hint)
    with open_text(path, Settings()) as file:
        content = b"".join(read_to_end(file.name, file.make_utf8_chunk_reader(None)))
    return File(path.name, origin, content)


def missing_file(path: Path, requirement: str) -> FileNotFoundError:
    """Return the error for a missing file or folder; `requirement` states what the path must be."""
    return tag_error(FileNotFoundError(message("path", requirement, str(path))), "path")


def _convert_if_all_numbers(values: Sequence[Any], *, fractions: bool = False) -> list[Any]:
    """Convert values to numbers if every value is a number; otherwise return the given values.

    Args:
        values: strings and numbers from a file.
        fractions: True converts all numbers. False converts only whole numbers.
    """
    numbers = list(map(_read_number_or_none, values))
    if any(value is None for value in numbers):
        return list(values)
    if all(isinstance(x, int) or (abs(x) < _MAX_EXACT_INTEGER and x % 1 == 0) for x in numbers):
        return list(map(int, numbers))
    return numbers if fractions else list(values)


def _read_number_or_none(value: Any) -> Any:
    """Return the number that a value contains, or None if the value is not a number."""
    if not isinstance(value, str):
        return value
    if _NUMBER_PATTERN.fullmatch(value) is None or len(value) >= 19:
        return None
    number = float(value)
    return int(value) if value.removeprefix("-").isdigit() else number if isfinite(number) else None


def _drop_or_reject_rows_with_empty_cells(
    rows: list[tuple[str | None, Row]], missing: str, origin: str
) -> list[tuple[str | None, Row]]:
    """Return the rows that have no empty cell, or raise an error if a row has an empty cell.

    The error is raised only if `missing` is "error".
    """
    empty = [row.empty for _, row in rows if row.empty]
    if empty and missing == "error":
        text = (
            f"path must be of a table without empty cells (missing='drop' leaves out their rows), "
            f"got {len(empty):,} of {len(rows):,} rows with one, the first in {empty[0]} ({origin})"
        )
        raise tag_error(ValueError(text), "path")
    return [(part, row) for part, row in rows if not row.empty]


def corpus_from_rows(
    parts: Iterable[tuple[str | None, Iterable[Row]]], origin: str, missing: str = "error"
) -> Corpus:
    """Return a Corpus with the texts, labels, attributes and groups of all rows.

    `parts` is a list of pairs: the name of a part ("train", "valid" or "test"), and the rows of the
    part. The names become the split of the Corpus. If a name is None, the Corpus has no split.
    `missing` states what to do with rows that have an empty cell: "error" raises an error, and
    "drop" leaves the rows out.
    """
    every = [(name, row) for name, part_rows in parts for row in part_rows]
    complete = _drop_or_reject_rows_with_empty_cells(every, missing, origin)
    if not complete:
        raise invalid("path", "a file with at least one text", origin)
    split, rows = zip(*complete, strict=True)
    labels = [row.label for row in rows]
    if 0 < labels.count(None) < len(labels):
        lacking = f"texts without one from row {labels.index(None):,} on"
        raise invalid("path", f"of files that all have labels, or none ({origin})", lacking)
    return Corpus(
        [row.text for row in rows],
        None if labels.count(None) == len(labels) else _convert_if_all_numbers(labels),
        {
            name: _convert_if_all_numbers([row.attributes[name] for row in rows], fractions=True)
            for name in rows[0].attributes
        },
        None if None in split else split,
        origin,
        None if rows[0].group is None else _convert_if_all_numbers([row.group for row in rows]),
        len(every) - len(rows),
    )


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a table that contain the texts, labels, attributes and groups.

    A column is given by its name in the header of the table. If the file has no header, a column is
    given by its position from 0.

    Args:
        text: column of the texts. None means the column "text".
        label: column of the labels. None means the column "label", if it exists.
        attributes: columns of the private attributes.
        group: column of the groups (such as authors). None if the texts have no groups.
    """

    text: str | int | None = None
    label: str | int | None = None
    attributes: Sequence[str | int] = ()
    group: str | int | None = None

    def __post_init__(self) -> None:
        """Check the columns: all columns are names, or all columns are positions."""
        if isinstance(self.attributes, str):
            raise mistyped("attributes", "a list of columns, not a single string", self.attributes)
        object.__setattr__(self, "attributes", tuple(self.attributes))
        for name in ("text", "label", "group"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, (str, int)) or value is True):
                raise mistyped(name, "the name or the position of a column", value)
        columns = [c for _, c in self.named if c is not None]
        if len({type(column) for column in columns}) > 1:
            raise invalid(_COLUMN_ARGUMENTS, "all names, or all positions", columns)
        if self.by_position and (self.text is None or any(str(c).startswith("-") for c in columns)):
            raise invalid("text", "a position from 0, as the others are", self.text)

    @property
    def by_position(self) -> bool:
        """True if this layout gives columns as positions, because the file has no header."""
        return any(isinstance(column, int) for _, column in self.named)

    @property
    def named(self) -> list[tuple[str, str | int | None]]:
        """Pairs of the kind of a column, such as "label", and the column's name or position."""
        some = [("text", self.text), ("label", self.label), ("group", self.group)]
        return [*some, *(("attributes", column) for column in self.attributes)]


def read_table_rows(file: File, kind: str, layout: Layout) -> Iterator[Row]:
    """Yield each row of a table in a file, as a `Row` with text, label, attributes and group.

    Args:
        file: content of the file.
        kind: "csv", "tsv" or "jsonl" (one JSON object per line). In "csv", quoted cells may contain
            commas and line feeds. In "tsv", each line is a row, and a quote is an ordinary
            character.
        layout: columns of the texts, labels, attributes and groups.

    Raises:
        ValueError: if a column is missing, or a row does not have as many fields as the first row.
    """
    if kind == "jsonl" and layout.by_position:
        raise invalid("text", "a name: objects have no positions", layout.text)
    raw_rows = _read_json_lines(file) if kind == "jsonl" else _read_fields(file, kind, layout)
    rows = [(file.place(number), values) for number, values in raw_rows]
    yield from rows_of_cells(file.name_and_origin, layout, rows)


def rows_of_cells(
    name: str, layout: Layout, rows: Sequence[tuple[str, Mapping[Any, Any]]]
) -> Iterator[Row]:
    """Yield a `Row` with text, label, attributes and group for each row of a table.

    Args:
        name: name of the table in error messages.
        layout: columns of the texts, labels, attributes and groups.
        rows: a pair for each row: a description of the row for error messages, and a dictionary
            from a column to the cell in this column.

    Raises:
        ValueError: if a column is missing. The message lists the existing columns.
    """
    columns = list(dict.fromkeys(chain.from_iterable(values for _, values in rows)))
    if layout.label is None and not layout.by_position and layout.text != "label":
        layout = replace(layout, label="label" if "label" in columns else None)
    if layout.text is None:
        layout = replace(layout, text="text")
    if rows:
        _require_columns(name, layout, columns)
    for place, values in rows:
        yield _read_text_and_attributes(place, values, layout)


def _require_columns(name: str, layout: Layout, columns: Sequence[Any]) -> None:
    """Raise an error if a column is missing. The message lists the existing columns."""
    for argument, column in layout.named:
        column = "text" if argument == "text" and column is None else column
        if column is not None and column not in columns:
            there = ", ".join(map(repr, columns)) or "none"
            if layout.by_position:
                there = f"0 to {len(columns) - 1}" if columns else "none"
            raise invalid(argument, f"a column of {name}, which are {there}", column)


def _read_fields(file: File, kind: str, layout: Layout) -> Iterator[tuple[int, dict[Any, Any]]]:
    opened = HashedFile(io.BytesIO(file.content), file.name_and_origin, None, None)
    lines = read_rows(opened, kind)
    first, fields = next(lines, (1, []))
    header: Sequence[Any] = range(len(fields)) if layout.by_position else fields
    _require_columns(file.name_and_origin, layout, header)
    if len(set(header)) != len(header):
        raise file.error(first, "a header of different names", fields)
    for number, values in chain([(first, fields)] if layout.by_position else [], lines):
        yield number, dict(zip(header, values, strict=True))


def _read_json_lines(file: File) -> Iterator[tuple[int, dict[Any, Any]]]:
    for number, line in file.filled():
        value = parse_json(file.name_and_origin, line, number)
        if not isinstance(value, dict):
            raise file.error(number, "a JSON object", line)
        yield number, value


def _read_text_and_attributes(place: str, values: Mapping[Any, Any], layout: Layout) -> Row:
    cells = {column: values.get(column) for _, column in layout.named if column is not None}
    for column, cell in cells.items():
        if _is_empty(cell):
            return Row("", empty=f"{place}, column {column!r}")

    def read_value(column: str | int, argument: str) -> Any:
        cell = cells[column]
        cell = cell.item() if isinstance(cell, np.generic) else cell
        is_number = isinstance(cell, float) and (argument == "attributes" or cell % 1 == 0)
        if not isinstance(cell, (str, int)) and not is_number:
            need = "a number" if argument == "attributes" else "a whole number"
            need = f"a row with {need} or a string as {column!r}"
            raise tag_error(ValueError(message(place, need, cell)), argument)
        return int(cell) if isinstance(cell, bool) else cell

    assert layout.text is not None
    text = cells[layout.text]
    if not isinstance(text, str):
        need = f"a row with a text (a string) as {layout.text!r}"
        raise tag_error(ValueError(message(place, need, text)), "text")
    return Row(
        text.strip(),
        None if layout.label is None else read_value(layout.label, "label"),
        {
            c if isinstance(c, str) else f"column {c}": read_value(c, "attributes")
            for c in layout.attributes
        },
        None if layout.group is None else read_value(layout.group, "group"),
    )


def _is_empty(cell: Any) -> bool:
    """Return True if a cell has no value: None, NaN, <NA>, NaT, or only white space."""
    if isinstance(cell, str):
        return not cell.strip()
    # Recognised by name, because <NA> cannot be compared.
    return str(cell) in ("None", "nan", "<NA>", "NaT")


def nonblank_lines(file: File) -> Iterator[Row]:
    """Yield one text for each non-blank line of a file."""
    return (Row(file.text(number, line)) for number, line in file.filled())


def read_folder(path: Path, layout: Layout) -> Iterator[tuple[str | None, Iterable[Row]]]:
    """Yield the name (such as "train") and the texts of each part of a corpus in a folder.

    Args:
        path: a folder with one of three contents:

            - files such as train.csv and test.csv (csv, tsv, jsonl, or txt with one text per line);
            - one folder of .txt files for each class;
            - folders train and test, each with one folder of .txt files for each class.
        layout: columns of the texts, labels, attributes and groups, if the files are tables.

    Raises:
        ValueError: if the folder has other contents, or two files for the same part.
    """
    files: dict[str, Path] = {}
    for entry in sorted(path.iterdir()):
        name = _strip_compression_ending(entry)
        part = _SPLIT_NAMES.get(name.stem if entry.is_file() else entry.name)
        if part is None or (entry.is_file() and name.suffix not in (".txt", *SUFFIXES)):
            continue
        if part in files:
            other = files[part].name
            raise _folder_error(path, f"a folder with one {part} part", f"{other} and {entry.name}")
        files[part] = entry
    for part, entry in files.items():
        if entry.is_dir():
            yield part, _read_class_folders(entry)
        elif (suffix := _strip_compression_ending(entry).suffix) in SUFFIXES:
            yield part, read_table_rows(load_text_file(entry), SUFFIXES[suffix], layout)
        else:
            yield part, nonblank_lines(load_text_file(entry))
    if not files:
        yield None, _read_class_folders(path)


def _read_class_folders(path: Path) -> Iterator[Row]:
    classes = [entry for entry in sorted(path.iterdir()) if entry.is_dir()]
    files = [(entry.name, file) for entry in classes for file in sorted(entry.glob("*.txt"))]
    if not files:
        requirement = (
            "a folder with train, valid or test files (csv, tsv, jsonl, txt) "
            "or with a folder of .txt files for each class"
        )
        raise _folder_error(path, requirement, sorted(entry.name for entry in path.iterdir()))
    for entry in classes:
        others = [e.name for e in entry.iterdir() if e.suffix != ".txt" and e.name[0] != "."]
        if others:
            raise _folder_error(entry, "a folder of .txt files only", sorted(others))
    for label, name in files:
        file = load_text_file(name)
        yield Row(file.text(1, "\n".join(line for _, line in file.lines())), label)


def _folder_error(path: Path, requirement: str, problem: object) -> ValueError:
    text = f"{message('path', requirement, str(path))}, which holds {problem}"
    return tag_error(ValueError(text), "path")


@explain_argument_errors
def read(
    path: str | os.PathLike[str] | Any,
    kind: Kind | None = None,
    *,
    text: str | int | None = None,
    label: str | int | None = None,
    attributes: Sequence[str | int] = (),
    group: str | int | None = None,
    missing: Literal["error", "drop"] = "error",
) -> Corpus:
    r"""Read texts from a file, a folder or a pandas data frame.

    `read` removes white space at both ends of a text, and skips blank lines. The encoding of a file
    is UTF-8, except if a byte order mark states another encoding. Files may be compressed with
    gzip. The cells of a table may be separated by commas, semicolons or tabs. If all labels are
    whole numbers, `read` converts the labels to integers. `read` converts groups, and the values of
    each attribute, by the same rule. If all values of an attribute are numbers, but some of them
    are not whole, `read` converts the values to floats.

    Args:
        path: path of a file or of a folder, or a pandas data frame.
        kind: "csv", "tsv", "jsonl", "lines" (one text per line) or "folder". A folder has files for
            train, valid and test, or one folder of .txt files for each class. With None, `read`
            derives the kind from the name of the file, and states the kind in the field `origin` of
            the result. To read public corpora by name, use
            `dpcore.experiments.corpora.read_corpus`.
        text: for tables, the column of the texts. A column is given by its name in the header. If
            the file has no header, a column is given by its position from 0. None means the column
            "text".
        label: for tables, the column of the labels. None means the column "label", if it exists.
        attributes: for tables, a list of the columns of the private attributes.
        group: for tables, the column of the groups, such as authors. `dpcore.text.split` keeps the
            texts of a group in the same part.
        missing: what to do with rows that have an empty cell in the column of the texts, labels or
            groups, or in the column of an attribute. "error" raises an error. "drop" leaves out
            these rows, and the field `dropped` of the result counts them.

    Returns:
        The corpus. If `path` is a folder with train, valid or test, the corpus has a split.

    Raises:
        FileNotFoundError: if the file is missing.
        ValueError: if a line does not have the format that `kind` requires, a cell is empty, or a
            column is missing. The message names the file and the line, or lists the existing
            columns.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as name:
        ...     file = Path(name, "mine.csv")
        ...     _ = file.write_text("topic,words\nsport,a goal\nmoney,shares fell\n")
        ...     read(file, text="words", label="topic")
        Corpus(2 texts; labels money sport; mine.csv, read as csv)
    """
    choice("missing", missing, ("error", "drop"))
    layout = Layout(text, label, attributes, group)
    if is_frame(path):
        return _read_frame(path, kind, layout, missing)
    if not isinstance(path, (str, os.PathLike)):
        raise mistyped("path", "a path of a file or a folder", path)
    place = Path(path)
    if kind is None:
        kind = _guess_kind(place)
    elif _require_file_kind(kind) != "folder" and place.is_dir():
        raise invalid("path", f"a file to be read as {kind}, not a folder", str(place))
    if kind not in (*_TABLE_KINDS, "folder") and layout != Layout():
        raise invalid(_COLUMN_ARGUMENTS, f"left out for the kind {kind!r}", layout)
    origin = f"{place.name}, read as {kind}"
    if kind == "folder":
        if not place.is_dir():
            raise missing_file(place, "a folder")
        return corpus_from_rows(read_folder(place, layout), origin, missing)
    file = load_text_file(place)
    rows = nonblank_lines(file) if kind == "lines" else read_table_rows(file, str(kind), layout)
    return corpus_from_rows([(None, rows)], origin, missing)


def _read_frame(frame: Any, kind: Any, layout: Layout, missing: str) -> Corpus:
    """Return a Corpus with the texts of a pandas data frame."""
    if kind is not None:
        raise invalid("kind", "left out for a frame", kind)
    places = (f"row {row:,} of the frame" for row in range(len(frame)))
    cells = [dict(zip(frame.columns, row, strict=True)) for row in frame.itertuples(False, None)]
    rows = list(zip(places, cells, strict=True))
    return corpus_from_rows(
        [(None, rows_of_cells("the frame", layout, rows))],
        f"a frame of {len(frame):,} rows",
        missing,
    )


def _require_file_kind(kind: Any) -> Any:
    try:
        return choice("kind", kind, KINDS)
    except ValueError as error:
        named = "dpcore.experiments.corpora.read_corpus reads public corpora by name"
        raise tag_error(ValueError(f"{error} ({named})"), "kind") from None


def _strip_compression_ending(path: Path) -> Path:
    """Return the path of a file without an ending for compression, such as ".gz"."""
    return Path(path.name.removesuffix(".gz"))


def _guess_kind(path: Path) -> Any:
    if path.is_dir():
        return "folder"
    if not path.exists():
        raise missing_file(path, "a file or a folder")
    suffix = _strip_compression_ending(path).suffix.lower()
    kind = SUFFIXES.get(suffix, "lines" if suffix == ".txt" else None)
    if kind is None:
        hint = "say which it is with kind=; word_vectors reads vectors"
        raise invalid("path", f"a .csv, .tsv, .jsonl or .txt file ({hint})", path.name)
    return kind
