"""Readers of texts: tables, files with a text a line, folders, and frames of pandas.

Errors name the file, its origin and the line.
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

from ..errors import about, choice, invalid, message, mistyped
from ..files.cells import read_rows
from ..files.formats import KINDS as FILE_KINDS
from ..files.json_files import parse_json
from ..files.opened import HashedFile, Settings, read_whole
from ..files.opened import open_file as open_text
from ..mechanisms.answers import is_frame
from ..suggestions import suggest_arguments
from .corpus import Corpus

_NUMBER_PATTERN: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
"""A number in letters; a leading zero makes a code of it."""
_MAX_EXACT_INTEGER: Final = 2.0**53
"""Size up to which every whole number is a float."""
_TABLE_KINDS: Final = ("csv", "tsv", "jsonl")
SUFFIXES: Final = {end: kind for end, kind in FILE_KINDS.items() if kind in _TABLE_KINDS}
"""Ends of names, and the kind of table that they stand for."""
_SPLIT_NAMES: Final = {
    "train": "train", "valid": "valid", "validation": "valid", "val": "valid", "dev": "valid",
    "test": "test",
}  # fmt: skip
"""Names of files and folders, and the parts of a split that they stand for."""
Kind = Literal["csv", "tsv", "jsonl", "lines", "folder"]
"""`KINDS` as a type."""
_COLUMN_ARGUMENTS: Final = "text, label, attributes and group"
KINDS: Final = (*_TABLE_KINDS, "lines", "folder")
"""Kinds of files and folders that `read` reads."""


@dataclass(frozen=True, slots=True)
class Row:
    """One text as a reader found it; a label or an attribute in letters may be a number yet.

    `empty` is the place of an empty cell, such as "line 3 of a.csv, column 'age'".
    """

    text: str
    label: int | str | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    group: int | str | None = None
    empty: str = ""


@dataclass(frozen=True, slots=True)
class File:
    """The bytes of a file or of a member of an archive.

    Args:
        name: what messages call it.
        origin: where such a file is from.
        content: the bytes.
    """

    name: str
    origin: str
    content: bytes

    def error(self, line: int, requirement: str, problem: object) -> ValueError:
        """Return the error that states what a line must be, and what it is."""
        return about(ValueError(message(self.place(line), requirement, problem)), "path")

    def place(self, line: int) -> str:
        """Return the name of a line in messages: its number and its file."""
        return f"line {line:,} of {self.full_name}"

    @property
    def full_name(self) -> str:
        """Name and origin."""
        return f"{self.name} ({self.origin})" if self.origin else self.name

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield the number and text of every line, without its end.

        Lines end only at a line feed: what else Python takes for an end stands inside real texts.
        """
        for number, line in enumerate(self.content.removeprefix(codecs.BOM_UTF8).split(b"\n"), 1):
            yield number, self.decoded(number, line).removesuffix("\r")

    def decoded(self, number: int, line: bytes) -> str:
        """Decode the text of a line; raise an error where it is not UTF-8."""
        try:
            return line.decode("utf-8")
        except UnicodeDecodeError as error:
            part = line[max(0, error.start - 10) : error.end + 10]
            raise self.error(number, "text in UTF-8", part) from None

    def filled(self) -> Iterator[tuple[int, str]]:
        """Yield the number and text of every line that holds more than white space."""
        return ((number, line) for number, line in self.lines() if line.strip())

    def text(self, line: int, value: object) -> str:
        """Return a text without the white space around it; raise an error if it is empty then."""
        if not isinstance(value, str) or not value.strip():
            raise self.error(line, "a text that is not empty", value)
        return value.strip()


def open_file(path: Path, origin: str = "") -> File:
    """Read a file.

    Raises:
        FileNotFoundError: if there is none; the message says what it is and where it is from.
    """
    what = f"a file of texts{f' from {origin}' if origin else ''}"
    if not path.is_file():
        hint = f"{what} (the README of the data says where it comes from)" if origin else what
        raise missing_file(path, hint)
    with open_text(path, Settings()) as file:
        content = b"".join(read_whole(file.name, file.open_utf8(None)))
    return File(path.name, origin, content)


def missing_file(path: Path, requirement: str) -> FileNotFoundError:
    """Make the error for a path at which there is no file."""
    return about(FileNotFoundError(message("path", requirement, str(path))), "path")


def _convert_numbers(values: Sequence[Any], *, fractions: bool = False) -> list[Any]:
    """Return numbers where all values are numbers, whole ones as integers; else all as found.

    Args:
        values: strings and numbers, as a reader found them.
        fractions: whether numbers that are not whole count; labels with a point are names.
    """
    numbers = list(map(_read_number, values))
    if any(value is None for value in numbers):
        return list(values)
    if all(isinstance(x, int) or (abs(x) < _MAX_EXACT_INTEGER and x % 1 == 0) for x in numbers):
        return list(map(int, numbers))
    return numbers if fractions else list(values)


def _read_number(value: Any) -> Any:
    """Return the number that a value is, or None."""
    if not isinstance(value, str):
        return value
    if _NUMBER_PATTERN.fullmatch(value) is None or len(value) >= 19:
        return None
    number = float(value)
    return int(value) if value.removeprefix("-").isdigit() else number if isfinite(number) else None


def _drop_empty(
    rows: list[tuple[str | None, Row]], missing: str, origin: str
) -> list[tuple[str | None, Row]]:
    """Return the rows without an empty cell; one error for all of them unless they are dropped."""
    empty = [row.empty for _, row in rows if row.empty]
    if empty and missing == "error":
        text = (
            f"path must be of a table without empty cells (missing='drop' leaves out their rows), "
            f"got {len(empty):,} of {len(rows):,} rows with one, the first in {empty[0]} ({origin})"
        )
        raise about(ValueError(text), "path")
    return [(part, row) for part, row in rows if not row.empty]


def corpus_of(
    parts: Iterable[tuple[str | None, Iterable[Row]]], origin: str, missing: str = "error"
) -> Corpus:
    """Collect the rows of all parts in one Corpus, without a split if a part has no name."""
    every = [(name, row) for name, part_rows in parts for row in part_rows]
    kept = _drop_empty(every, missing, origin)
    if not kept:
        raise invalid("path", "a file with at least one text", origin)
    split, rows = zip(*kept, strict=True)
    labels = [row.label for row in rows]
    if 0 < labels.count(None) < len(labels):
        lacking = f"texts without one from row {labels.index(None):,} on"
        raise invalid("path", f"of files that all have labels, or none ({origin})", lacking)
    return Corpus(
        [row.text for row in rows],
        None if labels.count(None) == len(labels) else _convert_numbers(labels),
        {
            name: _convert_numbers([row.attributes[name] for row in rows], fractions=True)
            for name in rows[0].attributes
        },
        None if None in split else split,
        origin,
        None if rows[0].group is None else _convert_numbers([row.group for row in rows]),
        len(every) - len(rows),
    )


@dataclass(frozen=True, slots=True)
class Layout:
    """Columns of a table by their meaning.

    Args:
        text: the column of the texts: a name of the header, or a position from 0 in a file
            without one. None is "text".
        label: the column of the labels. None is "label" where there is a header and it has that.
        attributes: the columns of the private attributes.
        group: the column of the authors, or of other groups.
    """

    text: str | int | None = None
    label: str | int | None = None
    attributes: Sequence[str | int] = ()
    group: str | int | None = None

    def __post_init__(self) -> None:
        """Check that the columns are all named, or all counted."""
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
        if self.counted and (self.text is None or any(str(c).startswith("-") for c in columns)):
            raise invalid("text", "a position from 0, as the others are", self.text)

    @property
    def counted(self) -> bool:
        """True for positions, which files without a header have."""
        return any(isinstance(column, int) for _, column in self.named)

    @property
    def named(self) -> list[tuple[str, str | int | None]]:
        """The arguments of `read` and their columns."""
        some = [("text", self.text), ("label", self.label), ("group", self.group)]
        return [*some, *(("attributes", column) for column in self.attributes)]


def read_table_rows(file: File, kind: str, layout: Layout) -> Iterator[Row]:
    """Yield the rows of a table.

    Args:
        file: the file.
        kind: "csv" (quotes may hold commas and line feeds), "tsv" (no quoting: a line is a row,
            and a quote is a letter) or "jsonl" (one object a line).
        layout: which column is what.

    Raises:
        ValueError: if a column is missing, or a row has more or fewer fields than the first.
    """
    if kind == "jsonl" and layout.counted:
        raise invalid("text", "a name: objects have no positions", layout.text)
    raw_rows = _read_json_lines(file) if kind == "jsonl" else _read_fields(file, kind, layout)
    rows = [(file.place(number), values) for number, values in raw_rows]
    yield from rows_of_cells(file.full_name, layout, rows)


def rows_of_cells(name: str, layout: Layout, rows: Sequence[tuple[str, Mapping[Any, Any]]]) -> Any:
    """Yield the rows of a table, given the cells of each by column.

    Args:
        name: what messages call the table.
        layout: which column is what.
        rows: the place of each row, as messages call it, and its cells.

    Raises:
        ValueError: if a column is missing; the message lists those that are there.
    """
    columns = list(dict.fromkeys(chain.from_iterable(values for _, values in rows)))
    if layout.label is None and not layout.counted and layout.text != "label":
        layout = replace(layout, label="label" if "label" in columns else None)
    if layout.text is None:
        layout = replace(layout, text="text")
    if rows:
        _require_columns(name, layout, columns)
    for place, values in rows:
        yield _make_row(place, values, layout)


def _require_columns(name: str, layout: Layout, columns: Sequence[Any]) -> None:
    """Raise an error that names a missing column, and those that are there."""
    for argument, column in layout.named:
        column = "text" if argument == "text" and column is None else column
        if column is not None and column not in columns:
            there = ", ".join(map(repr, columns)) or "none"
            if layout.counted:
                there = f"0 to {len(columns) - 1}" if columns else "none"
            raise invalid(argument, f"a column of {name}, which are {there}", column)


def _read_fields(file: File, kind: str, layout: Layout) -> Iterator[tuple[int, dict[Any, Any]]]:
    opened = HashedFile(io.BytesIO(file.content), file.full_name, None, None)
    lines = read_rows(opened, kind)
    first, fields = next(lines, (1, []))
    header: Sequence[Any] = range(len(fields)) if layout.counted else fields
    _require_columns(file.full_name, layout, header)
    if len(set(header)) != len(header):
        raise file.error(first, "a header of different names", fields)
    for number, values in chain([(first, fields)] if layout.counted else [], lines):
        yield number, dict(zip(header, values, strict=True))


def _read_json_lines(file: File) -> Iterator[tuple[int, dict[Any, Any]]]:
    for number, line in file.filled():
        value = parse_json(file.full_name, line, number)
        if not isinstance(value, dict):
            raise file.error(number, "a JSON object", line)
        yield number, value


def _make_row(place: str, values: Mapping[Any, Any], layout: Layout) -> Row:
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
            raise about(ValueError(message(place, need, cell)), argument)
        return int(cell) if isinstance(cell, bool) else cell

    assert layout.text is not None
    text = cells[layout.text]
    if not isinstance(text, str):
        need = f"a row with a text (a string) as {layout.text!r}"
        raise about(ValueError(message(place, need, text)), "text")
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
    """Return True for a cell without a value: None, NaN, <NA>, NaT, or white space."""
    if isinstance(cell, str):
        return not cell.strip()
    # By name: <NA> answers no comparison.
    return str(cell) in ("None", "nan", "<NA>", "NaT")


def read_lines(file: File) -> Iterator[Row]:
    """Yield a text for each line; lines of white space are skipped."""
    return (Row(file.text(number, line)) for number, line in file.filled())


def read_folder(path: Path, layout: Layout) -> Iterator[tuple[str | None, Iterable[Row]]]:
    """Yield the parts of a folder.

    Args:
        path: a folder with files such as train.csv and test.csv (csv, tsv, jsonl, or txt with a
            text a line), or with a folder of .txt files for each class, or with folders train and
            test of such folders.
        layout: which column of a table is what.

    Raises:
        ValueError: if it holds none of these, or two files for one part.
    """
    files: dict[str, Path] = {}
    for entry in sorted(path.iterdir()):
        name = _bare_name(entry)
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
        elif (suffix := _bare_name(entry).suffix) in SUFFIXES:
            yield part, read_table_rows(open_file(entry), SUFFIXES[suffix], layout)
        else:
            yield part, read_lines(open_file(entry))
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
        file = open_file(name)
        yield Row(file.text(1, "\n".join(line for _, line in file.lines())), label)


def _folder_error(path: Path, requirement: str, problem: object) -> ValueError:
    text = f"{message('path', requirement, str(path))}, which holds {problem}"
    return about(ValueError(text), "path")


@suggest_arguments
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
    r"""Read texts from a file or a folder.

    Texts are as the file has them, without the white space around them; lines of white space are
    no texts. Files are read as `dpcore.audit_outputs` reads them: in UTF-8 or what a byte order
    mark says, plain or packed with gzip, with commas, semicolons or tabs between cells. Labels,
    groups and attributes are whole numbers where all of a column are; attributes are numbers with
    a fraction, too, where all of a column are numbers.

    Args:
        path: a file or a folder, or a frame of pandas.
        kind: "csv", "tsv", "jsonl", "lines" (a text a line) or "folder" (train, valid and test
            files of these, or a folder of .txt files for each class). None guesses by the name;
            the origin of the result says what it took. Public corpora are read by
            `dpcore.experiments.corpora.read_corpus`.
        text: for tables, the column of the texts: its name in the header, or its position from 0
            in a file without one. None is "text".
        label: for tables, the column of the labels. None is "label" where a header has that.
        attributes: for tables, the columns to be kept private.
        group: for tables, the column of the authors, or of other groups, that `split` keeps
            together.
        missing: rows with an empty cell in one of these columns are an "error", one for all of
            them; "drop" leaves them out, and `Corpus.dropped` is their number.

    Returns:
        The corpus, split where its files are.

    Raises:
        FileNotFoundError: if the file is missing.
        ValueError: if a line is not what the format asks for, or a cell is empty; the message names
            file and line. If a column is missing; the message lists those that are there.

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
    elif _require_kind(kind) != "folder" and place.is_dir():
        raise invalid("path", f"a file to be read as {kind}, not a folder", str(place))
    if kind not in (*_TABLE_KINDS, "folder") and layout != Layout():
        raise invalid(_COLUMN_ARGUMENTS, f"left out for the kind {kind!r}", layout)
    origin = f"{place.name}, read as {kind}"
    if kind == "folder":
        if not place.is_dir():
            raise missing_file(place, "a folder")
        return corpus_of(read_folder(place, layout), origin, missing)
    file = open_file(place)
    rows = read_lines(file) if kind == "lines" else read_table_rows(file, str(kind), layout)
    return corpus_of([(None, rows)], origin, missing)


def _read_frame(frame: Any, kind: Any, layout: Layout, missing: str) -> Corpus:
    """Read a frame of pandas."""
    if kind is not None:
        raise invalid("kind", "left out for a frame", kind)
    places = (f"row {row:,} of the frame" for row in range(len(frame)))
    cells = [dict(zip(frame.columns, row, strict=True)) for row in frame.itertuples(False, None)]
    rows = list(zip(places, cells, strict=True))
    return corpus_of(
        [(None, rows_of_cells("the frame", layout, rows))],
        f"a frame of {len(frame):,} rows",
        missing,
    )


def _require_kind(kind: Any) -> Any:
    try:
        return choice("kind", kind, KINDS)
    except ValueError as error:
        named = "dpcore.experiments.corpora.read_corpus reads public corpora by name"
        raise about(ValueError(f"{error} ({named})"), "kind") from None


def _bare_name(path: Path) -> Path:
    """Return the name of a file without the ending of a packed one."""
    return Path(path.name.removesuffix(".gz"))


def _guess_kind(path: Path) -> Any:
    if path.is_dir():
        return "folder"
    if not path.exists():
        raise missing_file(path, "a file or a folder")
    suffix = _bare_name(path).suffix.lower()
    kind = SUFFIXES.get(suffix, "lines" if suffix == ".txt" else None)
    if kind is None:
        hint = "say which it is with kind=; word_vectors reads vectors"
        raise invalid("path", f"a .csv, .tsv, .jsonl or .txt file ({hint})", path.name)
    return kind
