"""Outputs from files: CSV, npy, npz and parquet, read with nothing dropped in silence."""

from __future__ import annotations

import csv
import json
import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TextIO

import numpy as np

from ..errors import invalid, mistyped, show
from ..mechanisms.answers import objects, rows_of
from .frames import (
    ALL,
    MISSING,
    Array,
    Column,
    Table,
    choose_places,
    framed,
    list_titles,
    null,
    place_of,
    plain,
    selected,
)  # fmt: skip

_DELIMITERS: Final = ",;\t"


def read_outputs(
    path: str | os.PathLike[str], column: Column | Sequence[Column] | None = None
) -> Array:
    r"""Read the outputs of one side from a file.

    Args:
        path: a file that ends in .csv, .tsv or .txt (commas, semicolons or tabs between the cells;
            numbers are read as float64, other cells are texts, an empty one is None; the first
            row is a header where none of its cells is a number or comes again below), .json,
            .jsonl (a list, or objects with the columns' names), .npy, .npz or .parquet (needs
            pyarrow, or pandas with fastparquet). Nothing is unpickled.
        column: name of a column (of an array, in an .npz file), or its number from 0, or several
            of them, or "*" for all; None only where there is one or columns have no names.

    Returns:
        One column as it is, shape `(size,)`; several as `(size, columns)`; an .npy array whole.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if the file holds something else: the message names line and column.
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
    return read_titled(path, column)[0]


def read_titled(path: str | os.PathLike[str], column: Any = None) -> tuple[Array, tuple[str, ...]]:
    """Return what `read_outputs` does, and what messages call the columns."""
    found = _path(path)
    if found.suffix.lower() == ".npy" and column is None:
        return _rows(found, _loaded(found)), ()
    table = read_table(found, column)
    return selected(table, column), list_titles(table, column)


def read_table(path: Path, column: Any = None, label: Column | None = None) -> Table:
    """Read a file; of text only the columns that are asked for are parsed."""
    kind = path.suffix.lower()
    if kind not in _READERS:
        known = ", ".join(_READERS)
        raise invalid("outputs", f"a file that ends in one of {known}", str(path))
    table = _READERS[kind](path, column, label)
    if not table.columns or not len(table.columns[0]):
        raise ValueError(f"{path.name} must hold at least one row of outputs, got none")
    lengths = {len(one) for one in table.columns}
    if len(lengths) > 1:
        raise invalid(f"arrays of {path.name}", "of equal length", sorted(lengths))
    return table


def _path(path: Any) -> Path:
    if not isinstance(path, (str, os.PathLike)):
        raise mistyped("path", "the path of a file", path)
    return Path(path)


# CSV.


class _Cells:
    """The cells of one column: numbers as long as all are, else also texts."""

    def __init__(self) -> None:
        self.numbers = array("d")
        self.mixed: list[Any] | None = None

    def append(self, cell: str) -> None:
        """Add a cell; an empty one is missing."""
        try:
            number = float(cell)
        except ValueError:
            if self.mixed is None:
                self.mixed = list[Any](self.numbers)
            self.mixed.append(cell.strip() or None)
            return
        if self.mixed is None:
            self.numbers.append(number)
        else:
            self.mixed.append(number)

    def as_array(self) -> Array:
        """Return floats, texts, or objects where there are both or cells are missing."""
        if self.mixed is None:
            return np.frombuffer(self.numbers) if self.numbers else np.empty(0)
        is_text = all(isinstance(cell, str) for cell in self.mixed)
        return np.array(self.mixed) if is_text else objects(self.mixed)


def _read_csv(path: Path, column: Any, label: Column | None) -> Table:
    # utf-8-sig: a spreadsheet's byte order mark is no part of the first name.
    with path.open(newline="", encoding="utf-8-sig") as file:
        try:
            return _parsed(path, file, column, label)
        except UnicodeDecodeError as error:
            raise ValueError(f"{path.name} must be text in UTF-8, got {error}") from None
        except csv.Error as error:
            raise ValueError(f"{path.name} must be CSV, got {error}") from None


def _parsed(path: Path, file: TextIO, column: Any, label: Column | None) -> Table:
    head = file.readline()
    file.seek(0)
    delimiter = max(_DELIMITERS, key=head.count)
    lines = _lines(path, csv.reader(file, delimiter=delimiter, strict=True))
    first = next(lines, (0, []))[1]
    # numpy.savetxt puts a comment sign in front of its header.
    names = tuple(cell.strip().lstrip("# ") for cell in first)
    is_named = _is_header(first)
    empty = Table(path.name, names if is_named else None, (np.empty(0),) * len(first))
    wanted = _find_wanted(empty, column, label)
    cells = {place: _Cells() for place in wanted}
    if not is_named:
        _append(cells, first)
    size, comes_again = 0, False
    for line, row in lines:
        if len(row) != len(first):
            raise invalid(f"line {line} of {path.name}", f"{len(first)} cells long", len(row))
        size += 1
        _append(cells, row)
        comes_again = comes_again or any(row[place] == first[place] for place in wanted)
    by_name = any(isinstance(one, str) and one != ALL for one in _list_given(column, label))
    if is_named and comes_again and not by_name:
        # A name does not come again among the values: the first row is one of them.
        cells = {place: _insert_first(first[place], one) for place, one in cells.items()}
        is_named = False
    size += not is_named
    nothing = np.broadcast_to(np.zeros(1, np.bool_), size)
    columns = tuple(
        cells[place].as_array() if place in cells else nothing for place in range(len(first))
    )
    return Table(path.name, names if is_named else None, columns)


def _find_wanted(table: Table, column: Any, label: Column | None) -> list[int]:
    """Return the columns to parse; none where a choice is needed, which `selected` says."""
    if column is None and label is None and table.names is not None and len(table.names) > 1:
        return []
    found = choose_places(table, column)
    return found if label is None else sorted({*found, place_of(table, label)})


def _list_given(column: Any, label: Column | None) -> list[Any]:
    given = list(column) if isinstance(column, (list, tuple)) else [column]
    return [*given, label]


def _append(cells: dict[int, _Cells], row: list[str]) -> None:
    for place, one in cells.items():
        one.append(row[place])


def _insert_first(cell: str, cells: _Cells) -> _Cells:
    whole = _Cells()
    whole.append(cell)
    later = cells.numbers.tolist() if cells.mixed is None else cells.mixed
    whole.mixed = [*(whole.numbers.tolist() if whole.mixed is None else whole.mixed), *later]
    return whole


def _is_header(cells: Iterable[str]) -> bool:
    """True if there is a name and no number: a mistyped number must not make its row a header."""
    filled = [cell for cell in cells if cell.strip()]
    return bool(filled) and all(_number(cell) is None for cell in filled)


def _lines(path: Path, reader: Any) -> Iterator[tuple[int, list[str]]]:
    """The lines that hold something, with their numbers; empty ones only at the end."""
    empty = 0
    for cells in reader:
        if not cells:
            empty = empty or reader.line_num
            continue
        if empty:
            raise ValueError(
                f"line {empty} of {path.name} must hold a row, got nothing ({MISSING})"
            )
        yield reader.line_num, cells


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


# JSON.


def _read_json(path: Path, column: Any, label: Column | None) -> Table:
    text = path.read_text(encoding="utf-8-sig")
    if path.suffix.lower() == ".json":
        rows = _parse_json(path, text, 1)
        if isinstance(rows, dict):
            names = tuple(rows)
            return Table(
                path.name, names, tuple(rows_of(path.name, rows[one], "") for one in names)
            )
    else:
        lines = enumerate(text.splitlines(), 1)
        rows = [_parse_json(path, line, number) for number, line in lines if line.strip()]
    if not isinstance(rows, list):
        raise ValueError(f"{path.name} must hold a list of outputs, got {show(rows)}")
    if rows and all(isinstance(one, dict) for one in rows):
        names = tuple(dict.fromkeys(name for one in rows for name in one))
        columns = ([one.get(name) for one in rows] for name in names)
        return Table(path.name, names, tuple(map(_as_column, columns)))
    return Table(path.name, None, (_as_column(rows),))


def _as_column(items: list[Any]) -> Array:
    kinds = {type(one) for one in items}
    return np.array(items) if kinds <= {int, float} or kinds in ({str}, {bool}) else objects(items)


def _parse_json(path: Path, text: str, line: int) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"line {line} of {path.name} must be JSON, got {error}") from None


# Arrays.


def _loaded(path: Path) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except (EOFError, ValueError) as error:
        raise ValueError(
            f"{path.name} must hold arrays without Python objects, got {error}"
        ) from None


def _rows(path: Path, loaded: Any) -> Array:
    if not isinstance(loaded, np.ndarray) or loaded.ndim == 0 or len(loaded) == 0:
        found = loaded.shape if isinstance(loaded, np.ndarray) else loaded
        raise invalid(path.name, "an array with one row an output, and at least one", found)
    return loaded


def _read_npy(path: Path, column: Any, label: Column | None) -> Table:
    array = _rows(path, _loaded(path))
    if array.dtype.names is not None:
        names = tuple(array.dtype.names)
        return Table(path.name, names, tuple(array[name] for name in names))
    if array.ndim == 2:
        return Table(path.name, None, tuple(array.T))
    return Table(path.name, None, (array,))


def _read_npz(path: Path, column: Any, label: Column | None) -> Table:
    loaded = _loaded(path)
    if isinstance(loaded, np.ndarray):
        raise invalid(path.name, "an archive of arrays", loaded)
    with loaded as archive:
        names = tuple(archive.files)
        try:
            columns = tuple(_rows(path, archive[name]) for name in names)
        except ValueError as error:
            text = f"{path.name} must hold arrays without Python objects, got {error}"
            raise ValueError(text) from None
    return Table(path.name, names, columns)


# Parquet.


def _read_parquet(path: Path, column: Any, label: Column | None) -> Table:
    try:
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError:
        return _read_by_pandas(path)
    table = parquet.read_table(path)
    columns = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if column.null_count:
            row = column.is_null().to_pylist().index(True)
            raise null(f"{path.name}, column {name!r},", row)
        columns.append(plain(column.to_numpy(), column.to_pylist))
    return Table(path.name, tuple(table.column_names), tuple(columns))


def _read_by_pandas(path: Path) -> Table:
    try:
        pandas: Any = import_module("pandas")
        frame = pandas.read_parquet(path)
    except ImportError as error:
        text = "needs pyarrow (pip install pyarrow), or pandas with fastparquet"
        raise ImportError(f"reading {path.name} {text}: {error}") from None
    table = framed(frame, path.name)
    assert table is not None
    return table


_READERS: Final[dict[str, Callable[[Path, Any, Column | None], Table]]] = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".txt": _read_csv,
    ".json": _read_json,
    ".jsonl": _read_json,
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".parquet": _read_parquet,
}
