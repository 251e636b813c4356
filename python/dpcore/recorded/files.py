"""Outputs from files: text, npy, npz and parquet, never dropping a value without an error."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..errors import invalid, mistyped
from .frames import (
    Array,
    Column,
    Found,
    Table,
    choose_places,
    convert_column,
    describe_table,
    list_titles,
    place_of,
    read_columns,
    select_column,
)  # fmt: skip
from .opening import HashedFile, Reader, open_file, require_memory
from .texts import read_csv, read_json, read_json_lines, read_lines


def read_outputs(
    path: str | os.PathLike[str],
    column: Column | Sequence[Column] | None = None,
    reader: Reader | None = None,
) -> Array:
    r"""Read the outputs of one side from a file.

    Args:
        path: a file that ends in .csv or .tsv (commas, semicolons or tabs between the cells;
            numbers are read as float64, other cells are texts, an empty one is None; the first
            row is a header where none of its cells is a number or comes again below), .txt or
            .log (one output a line; nothing in it is None), .json, .jsonl (a list, or objects with
            the columns' names), each also packed with gzip, .npy, .npz or .parquet (needs
            pyarrow, or pandas with fastparquet); "-" for standard input. Nothing is unpickled.
        column: name of a column (of an array, in an .npz file), or its number from 0, or several
            of them, or "*" for all; None only where there is one or columns have no names.
        reader: settings, and where what was found is kept.

    Returns:
        One column as it is, shape `(size,)`; several as `(size, columns)`; an .npy array whole.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if the file holds something else: the message names line and column.
        MemoryError: if memory cannot hold the outputs.
        OSError: if the file cannot be read.
        ImportError: if a parquet file needs a package that is not installed.

    Source:
        RFC 4180 for CSV; the numbers are read with Python's `float`.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "scores.csv")
        ...     _ = path.write_text("score,seconds\n0.25,3\n-1.5,4\n")
        ...     read_outputs(path, "score")
        array([ 0.25, -1.5 ])
    """
    return read_file_with_titles(path, column, reader)[0]


def read_file_with_titles(
    path: str | os.PathLike[str], column: Any = None, reader: Reader | None = None
) -> tuple[Array, tuple[str, ...]]:
    """Read what `read_outputs` reads, and the names of the columns in messages."""
    reader = Reader() if reader is None else reader
    if not isinstance(path, (str, os.PathLike)):
        raise mistyped("path", "the path of a file", path)
    table = read_table(Path(path), column, None, reader)
    if column is None and table.found.kind == "npy":
        # An array is an output whole, whatever its shape.
        reader.tables.append(describe_table(table, []))
        return table.whole, ()
    outputs, titles = select_column(table, column), list_titles(table, column)
    reader.tables.append(describe_table(table, choose_places(table, column)))
    return outputs, titles


def read_table(
    path: Path, column: Any = None, label: Column | None = None, reader: Reader | None = None
) -> Table:
    """Read a file; only the requested columns are parsed."""
    reader = Reader() if reader is None else reader
    kind = reader.find_kind(path)
    with open_file(path, reader) as file:
        table = _READERS_BY_KIND[kind](file, kind, column, label, reader)
        if not table.columns or not len(table.columns[0]):
            raise ValueError(f"{file.name} must hold at least one row of outputs, got none")
        lengths = {len(one) for one in table.columns}
        if len(lengths) > 1:
            raise invalid(f"arrays of {file.name}", "of equal length", sorted(lengths))
    return table


# Arrays.


def _load_numpy(file: HashedFile) -> Any:
    try:
        return np.load(_open_whole(file), allow_pickle=False)
    except (EOFError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{file.name} must hold arrays without Python objects, got {error}"
        ) from None


def _open_whole(file: HashedFile) -> io.BytesIO:
    """Return the bytes of a file, for readers that do not read it from start to end."""
    if file.size is not None:
        require_memory(file.name, file.size)
    return io.BytesIO(file.open_bytes().read())


def _require_rows(name: str, loaded: Any) -> Array:
    if not isinstance(loaded, np.ndarray) or loaded.ndim == 0 or len(loaded) == 0:
        found = loaded.shape if isinstance(loaded, np.ndarray) else loaded
        raise invalid(name, "an array with one row an output, and at least one", found)
    return loaded


def _read_npy(file: HashedFile, kind: str, column: Any, label: Any, reader: Reader) -> Table:
    array = _require_rows(file.name, _load_numpy(file))
    how = Found("npy", sha256=file.sha256)
    if array.dtype.names is not None:
        names = tuple(array.dtype.names)
        return Table(file.name, names, tuple(array[name] for name in names), how, array)
    columns = tuple(array.T) if array.ndim == 2 else (array,)
    return Table(file.name, None, columns, how, array)


def _read_npz(file: HashedFile, kind: str, column: Any, label: Any, reader: Reader) -> Table:
    loaded = _load_numpy(file)
    if isinstance(loaded, np.ndarray):
        raise invalid(file.name, "an archive of arrays", loaded)
    with loaded as archive:
        names = tuple(archive.files)
        sizes = sum(one.file_size for one in archive.zip.infolist())
        require_memory(file.name, sizes)
        try:
            columns = tuple(_require_rows(file.name, archive[name]) for name in names)
        except (EOFError, ValueError, zipfile.BadZipFile) as error:
            text = f"{file.name} must hold arrays without Python objects, got {error}"
            raise ValueError(text) from None
    return Table(file.name, names, columns, Found("npz", sha256=file.sha256))


# Parquet.


def _read_parquet(file: HashedFile, kind: str, column: Any, label: Any, reader: Reader) -> Table:
    whole = _open_whole(file)
    try:
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError:
        return _read_with_pandas(file, whole, column, label)
    try:
        opened = parquet.ParquetFile(whole)
        names = tuple(opened.schema_arrow.names)
        empty = Table(file.name, names, (np.empty(0),) * len(names))
        places = _list_needed_places(empty, column, label)
        data = opened.read(columns=list(dict.fromkeys(names[place] for place in places)))
    except (OSError, ValueError) as error:
        if hasattr(error, "argument"):
            raise
        raise ValueError(f"{file.name} must be a whole Parquet file, got {error}") from None
    # Names that are there twice were read twice.
    columns = [np.broadcast_to(np.zeros(1, np.bool_), data.num_rows)] * len(names)
    read = [place for place, name in enumerate(names) if name in data.column_names]
    for place, values in zip(read, data.columns, strict=True):
        if place in places:
            columns[place] = convert_column(values)
    return Table(file.name, names, tuple(columns), Found("parquet", sha256=file.sha256))


def _list_needed_places(table: Table, column: Any, label: Any) -> list[int]:
    places = choose_places(table, column)
    return sorted({*places, *(() if label is None else (place_of(table, label),))})


def _read_with_pandas(file: HashedFile, whole: io.BytesIO, column: Any, label: Any) -> Table:
    try:
        pandas: Any = import_module("pandas")
        frame = pandas.read_parquet(whole)
    except ImportError as error:
        text = "needs pyarrow (pip install pyarrow), or pandas with fastparquet"
        raise ImportError(f"reading {file.name} {text}: {error}") from None
    table = read_columns(frame, file.name, column, label)
    assert table is not None
    return table._replace(found=Found("parquet", sha256=file.sha256))


_FileReader = Callable[[HashedFile, str, Any, Any, Reader], Table]

_READERS_BY_KIND: Final[dict[str, _FileReader]] = {
    "csv": read_csv,
    "tsv": read_csv,
    "lines": read_lines,
    "json": read_json,
    "jsonl": read_json_lines,
    "npy": _read_npy,
    "npz": _read_npz,
    "parquet": _read_parquet,
}
