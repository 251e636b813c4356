"""Outputs from files: CSV, npy, npz and parquet, read with nothing dropped in silence."""

from __future__ import annotations

import csv
import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TextIO

import numpy as np

from ..errors import invalid, mistyped, show
from .frames import MISSING, Array, Column, Table, framed, null, parted, plain, selected

_DELIMITERS: Final = ",;\t"


def read_outputs(
    path: str | os.PathLike[str], column: Column | Sequence[Column] | None = None
) -> Array:
    r"""Read the outputs of one side from a file.

    Args:
        path: a file that ends in .csv, .tsv or .txt (numbers, with or without a header; commas,
            semicolons or tabs between them; read as float64), .npy, .npz or .parquet (needs
            pyarrow, or pandas with fastparquet). Nothing is unpickled.
        column: name of a column (of an array, in an .npz file), or its number from 0, or several
            of them; None takes all.

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
    found = _path(path)
    if found.suffix.lower() == ".npy" and column is None:
        return _rows(found, _loaded(found))
    return selected(read_table(found), column)


def read_labelled(
    path: str | os.PathLike[str], label: Column, column: Column | Sequence[Column] | None = None
) -> tuple[Array, Array]:
    """Read the outputs of both sides from one file, in which a column tells the sides apart.

    Args:
        path: as for `read_outputs`.
        label: the column with 1, true, in or x for outputs on `x` and 0, false, out or x_prime
            for outputs on `x_prime`.
        column: the columns of the output; None only where the file has one beside the label.

    Returns:
        The outputs on x and those on x', in the order of the file.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if the file holds something else, or a label none of these.
        OSError: if the file cannot be read.
        ImportError: if a parquet file needs a package that is not installed.
    """
    return parted(read_table(_path(path), label), label, column)


def read_table(path: Path, label: Column | None = None) -> Table:
    """Read all columns of a file; the label of a CSV file alone may hold text."""
    kind = path.suffix.lower()
    if kind not in _READERS:
        known = ", ".join(_READERS)
        raise invalid("outputs", f"a file that ends in one of {known}", str(path))
    table = _READERS[kind](path, label)
    if not table.columns or not len(table.columns[0]):
        raise ValueError(f"{path.name} must hold at least one row of outputs, got none")
    lengths = {len(column) for column in table.columns}
    if len(lengths) > 1:
        raise invalid(f"arrays of {path.name}", "of equal length", sorted(lengths))
    return table


def _path(path: Any) -> Path:
    if not isinstance(path, (str, os.PathLike)):
        raise mistyped("path", "the path of a file", path)
    return Path(path)


# CSV.


def _read_csv(path: Path, label: Column | None) -> Table:
    # utf-8-sig: a spreadsheet's byte order mark is no part of the first name.
    with path.open(newline="", encoding="utf-8-sig") as file:
        try:
            return _parsed(path, file, label)
        except UnicodeDecodeError as error:
            raise ValueError(f"{path.name} must be text in UTF-8, got {error}") from None
        except csv.Error as error:
            raise ValueError(f"{path.name} must be CSV, got {error}") from None


def _parsed(path: Path, file: TextIO, label: Column | None) -> Table:
    head = file.readline()
    file.seek(0)
    delimiter = max(_DELIMITERS, key=head.count)
    lines = _lines(path, csv.reader(file, delimiter=delimiter))
    number, first = next(lines, (0, []))
    named = _is_header(cell for place, cell in enumerate(first) if place != label)
    # numpy.savetxt puts a comment sign in front of its header.
    names = tuple(cell.strip().lstrip("# ") for cell in first) if named else None
    words = _words(names, label, len(first))
    numbers = [array("d") for _ in first]
    texts: list[str] = []
    for line, cells in lines if named or not first else _first_again(number, first, lines):
        if len(cells) != len(first):
            raise invalid(f"line {line} of {path.name}", f"{len(first)} cells long", len(cells))
        for place, cell in enumerate(cells):
            if place == words:
                texts.append(cell)
                continue
            try:
                numbers[place].append(float(cell))
            except ValueError:
                raise _cell_error(path, line, place, names, cell) from None
    columns = [np.array(texts if place == words else one) for place, one in enumerate(numbers)]
    return Table(path.name, names, tuple(columns))


def _is_header(cells: Iterable[str]) -> bool:
    """True if there is a name and no number: a mistyped number must not make its row a header."""
    filled = [cell for cell in cells if cell.strip()]
    return bool(filled) and all(_number(cell) is None for cell in filled)


def _first_again(
    number: int, first: list[str], lines: Iterator[tuple[int, list[str]]]
) -> Iterator[tuple[int, list[str]]]:
    yield number, first
    yield from lines


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


def _words(names: tuple[str, ...] | None, label: Column | None, width: int) -> int | None:
    """The number of the label's column, if the file has it: `_place` complains if not."""
    if isinstance(label, str):
        return names.index(label) if names is not None and label in names else None
    return label if label is not None and label < width else None


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _cell_error(
    path: Path, line: int, place: int, names: tuple[str, ...] | None, cell: str
) -> ValueError:
    column = f"column {place}" if names is None else f"column {names[place]!r}"
    hint = "outputs that are words can be given as arrays"
    if not cell.strip() or cell.strip().lower() in ("na", "n/a", "null", "none", "-"):
        hint = MISSING
    found = show(cell) if cell.strip() else "an empty cell"
    return ValueError(
        f"line {line} of {path.name}, {column}, must be a number, got {found} ({hint})"
    )


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


def _read_npy(path: Path, label: Column | None) -> Table:
    array = _rows(path, _loaded(path))
    if array.dtype.names is not None:
        names = tuple(array.dtype.names)
        return Table(path.name, names, tuple(array[name] for name in names))
    if array.ndim == 2:
        return Table(path.name, None, tuple(array.T))
    return Table(path.name, None, (array,))


def _read_npz(path: Path, label: Column | None) -> Table:
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


def _read_parquet(path: Path, label: Column | None) -> Table:
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


_READERS: Final[dict[str, Callable[[Path, Column | None], Table]]] = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".txt": _read_csv,
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".parquet": _read_parquet,
}
