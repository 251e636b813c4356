"""File formats and their readers: numpy arrays, Parquet, and text formats."""

from __future__ import annotations

import io
import os
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from ..errors import argument_of, choice, invalid
from ..records import Array
from ..results.evidence import TableRead
from . import columns as frames
from .cells import UNREAD, Kind, read_cells
from .columns import FileInfo, Request, Table
from .json_files import read_json, read_json_lines
from .opened import STDIN, HashedFile, Settings, open_file, read_to_end, require_memory


class Reader(Settings):
    """Settings for reading files with outputs, and descriptions of the files that were read.

    Args:
        format: format of the files, one of the names in `FORMATS`, such as "csv". None means that
            the ending of each file name determines the format.
        **settings: further settings, such as `header` or `sep`: the arguments of the class
            `Settings`.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if an argument has a value that is not allowed.
    """

    def __init__(self, format: str | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        self.format = None if format is None else choice("format", format, tuple(FORMATS))
        self.tables: list[TableRead] = []

    def find_kind(self, path: Path) -> str:
        """Return the format in which a file is to be read, one of the names in `FORMATS`.

        This is the format that the user gave, or the format that the ending of the file name shows.
        If the user gave a separator of cells, the format "lines" is replaced by "csv".

        Raises:
            ValueError: if the user gave no format, and the ending of the file name is unknown.
        """
        name = path.name.lower().removesuffix(".gz")
        kind = self.format or KINDS.get(Path(name).suffix)
        if kind is None:
            if str(path) == STDIN:
                raise invalid("format", "given for standard input, such as 'csv'", None)
            ends = ", ".join(KINDS)
            requirement = f"a file that ends in one of {ends} (or these with .gz), or format= given"
            raise invalid("outputs", requirement, str(path))
        return "csv" if kind == "lines" and self.sep is not None else kind


def read_table(path: Path, request: Request, reader: Reader) -> Table:
    """Read the columns that a user chose from a file, and return them as a table.

    Some columns of a text file must be read a second time, because later cells have a different
    type than the first cells. In the returned table, such a column has no valid values yet. Its
    entry in `Table.cells` has ``is_unread=True``.
    """
    return _read_equal_length_columns(path, request._replace(kind=reader.find_kind(path)), reader)


def read_again(
    path: Path, request: Request, reader: Reader, table: Table, kinds: Mapping[int, Kind]
) -> Table:
    """Read a text file a second time, now with the given types of its columns.

    Args:
        path: the file.
        request: the columns to read, as the user chose them.
        reader: settings for reading the file.
        table: the table that the first reading of this file returned.
        kinds: types of columns, as a dict from column number to type.

    Raises:
        ValueError: if the file has changed since the first reading.
    """
    decided = {place: kind for place, kind in kinds.items() if kind.name != UNREAD}
    repeated = request._replace(kind=reader.find_kind(path), kinds=decided)
    again = _read_equal_length_columns(path, repeated, reader)
    if again.found.sha256 != table.found.sha256:
        raise ValueError(f"{table.name} must stay as it is while it is read, got another SHA-256")
    cells = {
        place: each._replace(kind=decided.get(place, each.kind))
        for place, each in again.cells.items()
    }
    return again._replace(cells=cells)


def _read_equal_length_columns(path: Path, request: Request, reader: Reader) -> Table:
    with open_file(path, reader) as file:
        table = FORMATS[request.kind].read(file, request, reader)
        if not table.columns or not len(table.columns[0]):
            raise ValueError(f"{file.name} must hold at least one row of outputs, got none")
        lengths = {len(column) for column in table.columns}
        if len(lengths) > 1:
            raise invalid(f"arrays of {file.name}", "of equal length", sorted(lengths))
    return table


# Readers of arrays.

NUMPY_ERRORS: Final = (
    EOFError, ValueError, zipfile.BadZipFile, zlib.error, SyntaxError, tokenize.TokenError,
    LookupError, OverflowError, NotImplementedError, MemoryError, RuntimeError,
)  # fmt: skip
"""Errors that numpy raises for damaged files. (numpy parses their header as Python code.)"""


@contextmanager
def _convert_numpy_errors_naming_file(file: HashedFile) -> Iterator[None]:
    """Return a context in which errors of numpy become a ValueError that names the file.

    numpy raises errors for incomplete files, and for arrays that need pickle.
    """
    try:
        yield
    except NUMPY_ERRORS as error:
        text = f"{file.name} must hold arrays without Python objects, got {error}"
        raise ValueError(text) from None


def _load_numpy_file(file: HashedFile) -> Any:
    whole = _read_into_memory(file)
    with _convert_numpy_errors_naming_file(file):
        return np.load(whole, allow_pickle=False)


def _read_into_memory(file: HashedFile) -> io.BytesIO:
    """Return a buffer with all bytes of a file, for readers that need random access."""
    if file.size is not None:
        require_memory(file.name, file.size)
    return io.BytesIO(b"".join(read_to_end(file.name, file.open_bytes().read)))


def _require_nonempty_array(name: str, loaded: Any) -> Array:
    if not isinstance(loaded, np.ndarray) or loaded.ndim == 0 or len(loaded) == 0:
        shape = loaded.shape if isinstance(loaded, np.ndarray) else loaded
        raise invalid(name, "an array with one row an output, and at least one", shape)
    return loaded


def _read_npy(file: HashedFile, request: Request, settings: Settings) -> Table:
    array = _require_nonempty_array(file.name, _load_numpy_file(file))
    how = FileInfo("npy", sha256=file.sha256)
    if array.dtype.names is not None:
        names = tuple(array.dtype.names)
        return Table(file.name, names, tuple(array[name] for name in names), how, array)
    columns = tuple(array.T) if array.ndim == 2 else (array,)
    return Table(file.name, None, columns, how, array)


def _read_npz(file: HashedFile, request: Request, settings: Settings) -> Table:
    loaded = _load_numpy_file(file)
    if isinstance(loaded, np.ndarray):
        raise invalid(file.name, "an archive of arrays", loaded)
    with loaded as archive:
        names = tuple(archive.files)
        sizes = sum(entry.file_size for entry in archive.zip.infolist())
        require_memory(file.name, sizes)
        with _convert_numpy_errors_naming_file(file):
            columns = tuple(_require_nonempty_array(file.name, archive[name]) for name in names)
    return Table(file.name, names, columns, FileInfo("npz", sha256=file.sha256))


# Reader of Parquet files.


def _read_parquet(file: HashedFile, request: Request, settings: Settings) -> Table:
    whole = _read_into_memory(file)
    try:
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError:
        return _read_parquet_with_pandas(file, whole, request)
    try:
        opened = parquet.ParquetFile(whole)
        names = tuple(opened.schema_arrow.names)
        empty = Table(file.name, names, (np.empty(0),) * len(names))
        places = frames.needed_column_numbers(empty, request)
        data = opened.read(columns=list(dict.fromkeys(names[place] for place in places)))
    except (OSError, ValueError) as error:
        if argument_of(error):
            raise
        raise ValueError(f"{file.name} must be a whole Parquet file, got {error}") from None
    # A name that occurs twice was read twice.
    read = [place for place, name in enumerate(names) if name in data.column_names]
    pairs = zip(read, data.columns, strict=True)
    columns_read = {
        place: frames.convert_column(values) for place, values in pairs if place in places
    }
    columns = frames.columns_with_placeholders(
        columns_read, range(len(names)), opened.metadata.num_rows
    )
    return Table(file.name, names, columns, FileInfo("parquet", sha256=file.sha256))


def _read_parquet_with_pandas(file: HashedFile, whole: io.BytesIO, request: Request) -> Table:
    try:
        pandas: Any = import_module("pandas")
        frame = pandas.read_parquet(whole)
    except ImportError as error:
        text = "needs pyarrow (pip install pyarrow), or pandas with fastparquet"
        raise ImportError(f"reading {file.name} {text}: {error}") from None
    table = frames.read_data_frame_columns(frame, file.name, request)
    assert table is not None
    return table._replace(found=FileInfo("parquet", sha256=file.sha256))


class Format(NamedTuple):
    """A file format, with the function that reads files in this format.

    Args:
        endings: endings of file names in this format, such as ".csv". Each ending may be followed
            by .gz.
        content: description of what a file in this format contains, for the documentation.
        read: function `(file, request, settings)` that reads a file in this format.
        is_text: True if files in this format are text. A user may choose the types of the columns
            of a text file.
        hint: short description of the format for the help text of the command line, or "".
    """

    endings: tuple[str, ...]
    content: str
    read: Callable[[HashedFile, Request, Settings], Table]
    is_text: bool = False
    hint: str = ""


FORMATS: Final = {
    "csv": Format(
        (".csv",), "a table; commas, semicolons or tabs are found out", read_cells, is_text=True
    ),
    "tsv": Format(
        (".tsv",),
        "a table with tabs; a quotation mark is a letter (`--format csv --sep tab` reads quotes)",
        read_cells,
        is_text=True,
    ),
    "lines": Format(
        (".txt", ".log"),
        "one output a line, as it is: a number, a text, nothing where it is missing",
        read_cells,
        is_text=True,
        hint="one a line",
    ),
    "json": Format(
        (".json",), "a list of outputs or of objects, or lists by name", read_json, is_text=True
    ),
    "jsonl": Format(
        (".jsonl", ".ndjson"), "an output or an object a line", read_json_lines, is_text=True
    ),
    "npy": Format((".npy",), "an array", _read_npy),
    "npz": Format((".npz",), "arrays by name", _read_npz),
    "parquet": Format((".parquet",), "a table (needs pyarrow)", _read_parquet),
}
"""All file formats, by the names that a user passes as `format`."""
KINDS: Final = {end: name for name, each in FORMATS.items() for end in each.endings}
"""Names of file formats, by the endings of file names."""


def is_read_from_text_file(table: Table | None) -> bool:
    """Return True if a table was read from a text file, such as CSV or JSON."""
    return table is not None and table.found.kind in FORMATS and FORMATS[table.found.kind].is_text


def list_endings() -> str:
    """Return a text with the first file ending of each format, such as ".csv, .tsv or .json".

    The command-line help contains this text.
    """
    hints = (each.hint and f" ({each.hint})" for each in FORMATS.values())
    first = [each.endings[0] + hint for each, hint in zip(FORMATS.values(), hints, strict=True)]
    return f"{', '.join(first[:-1])} or {first[-1]}"


def is_path(value: Any) -> bool:
    """Return True if a value is a path: a string or an `os.PathLike`."""
    return isinstance(value, (str, os.PathLike))
