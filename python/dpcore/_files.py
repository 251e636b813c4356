"""Outputs from files: CSV, npy, npz and parquet, read with nothing dropped in silence."""

from __future__ import annotations

import csv
import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple, TextIO

import numpy as np
import numpy.typing as npt

from .errors import integer, invalid, mistyped, show

Column = str | int
Array = npt.NDArray[Any]

_ON_X: Final = ("1", "true", "in", "x")
_ON_X_PRIME: Final = ("0", "false", "out", "x_prime", "x'")
_DELIMITERS: Final = ",;\t"
_MISSING: Final = "write nan where the output itself is NaN, and leave out no row"
_ROW_NUMBERS: Final = "__index_level_"
"""How pandas names, in a parquet file, the row numbers that had no name."""


class Table(NamedTuple):
    """The columns of a file.

    Args:
        path: where they were read.
        names: one for each column; empty where a header leaves it out, None without a header.
        columns: arrays of equal length, one entry of a column for each output.
    """

    path: Path
    names: tuple[str, ...] | None
    columns: tuple[Array, ...]


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
    table = read_table(found)
    return _select(table, column, range(len(table.columns)))


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
    table = read_table(_path(path), label)
    place = _place(table, label)
    others = [number for number in range(len(table.columns)) if number != place]
    if column is None and len(others) != 1:
        # Any further column, a row number say, could tell the sides apart by itself.
        requirement = f"given where a file has {len(others)} columns beside the label"
        raise invalid("column", requirement, column)
    outputs = _select(table, column, others)
    given = () if column is None else _listed(column)
    if place in [_place(table, one) for one in given]:
        raise invalid("column", "another one than the label", column)
    is_x = _are_x(table, place)
    return outputs[is_x], outputs[~is_x]


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


def _listed(column: Any) -> list[Column]:
    wanted = [column] if isinstance(column, (str, int, np.integer)) else column
    if not isinstance(wanted, (list, tuple)) or any(
        isinstance(one, bool) or not isinstance(one, (str, int, np.integer)) for one in wanted
    ):
        raise mistyped("column", "a name or number of a column, or a list of them", column)
    if not wanted:
        raise invalid("column", "at least one column", column)
    return list(wanted)


def _place(table: Table, column: Column) -> int:
    """The number of a column; an error that lists the names if there is no such column."""
    if not isinstance(column, str):
        return integer("column", column, 0, len(table.columns) - 1)
    if table.names is None:
        raise invalid("column", f"a number, for {table.path.name} has no names of columns", column)
    if table.names.count(column) > 1:
        requirement = f"a number, for several columns of {table.path.name} have this name"
        raise invalid("column", requirement, column)
    if column not in table.names:
        names = ", ".join(map(repr, table.names))
        raise ValueError(f"column must be one of {names} in {table.path.name}, got {column!r}")
    return table.names.index(column)


def _select(table: Table, column: Any, default: Sequence[int]) -> Array:
    places = list(default)
    if column is not None:
        places = [_place(table, one) for one in _listed(column)]
    elif table.names is not None:
        for place in places:
            if not table.names[place] or table.names[place].startswith(_ROW_NUMBERS):
                # A row number is no part of an output, and could tell the sides apart.
                text = f"column {place} of {table.path.name} must have a name, got none"
                raise ValueError(f"{text} (if it numbers the rows, choose others with column=)")
    chosen = [table.columns[place] for place in places]
    if len(chosen) == 1:
        return chosen[0]
    if table.path.suffix.lower() == ".npz" and column is None:
        requirement = f"given where a file holds {len(chosen)} arrays"
        raise invalid("column", requirement, column)
    shapes = {one.shape for one in chosen}
    if len(shapes) > 1:
        raise invalid("columns", "of equal shape", sorted(shapes))
    return np.stack(chosen, axis=1)


def _are_x(table: Table, place: int) -> npt.NDArray[np.bool_]:
    """For every row, whether its label says x."""
    labels, row, which = np.unique(table.columns[place], return_index=True, return_inverse=True)
    sides = []
    for label, first in zip(labels.tolist(), row.tolist(), strict=True):
        text = str(label).strip().lower()
        # What 1 and 0 look like in a column of floats.
        text = {"1.0": "1", "0.0": "0"}.get(text, text)
        if text not in _ON_X + _ON_X_PRIME:
            requirement = "1, true, in or x, or else 0, false, out or x_prime"
            raise invalid(f"label in row {first + 1} of {table.path.name}", requirement, label)
        sides.append(text in _ON_X)
    found: npt.NDArray[np.bool_] = np.array(sides)[which]
    return found


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
    return Table(path, names, tuple(columns))


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
                f"line {empty} of {path.name} must hold a row, got nothing ({_MISSING})"
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
        hint = _MISSING
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
        return Table(path, names, tuple(array[name] for name in names))
    if array.ndim == 2:
        return Table(path, None, tuple(array.T))
    return Table(path, None, (array,))


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
    return Table(path, names, columns)


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
            raise _null(path, name, row)
        columns.append(_plain(column.to_numpy(), column.to_pylist))
    return Table(path, tuple(table.column_names), tuple(columns))


def _read_by_pandas(path: Path) -> Table:
    try:
        pandas: Any = import_module("pandas")
        frame = pandas.read_parquet(path)
    except ImportError as error:
        text = "needs pyarrow (pip install pyarrow), or pandas with fastparquet"
        raise ImportError(f"reading {path.name} {text}: {error}") from None
    columns = []
    for name in frame.columns:
        values = frame[name]
        if values.dtype.kind not in "fc" and values.isna().any():
            raise _null(path, str(name), int(values.isna().to_numpy().argmax()))
        columns.append(_plain(values.to_numpy(), values.tolist))
    return Table(path, tuple(map(str, frame.columns)), tuple(columns))


def _null(path: Path, name: str, row: int) -> ValueError:
    # pandas makes no difference between the two, so its files cannot be taken at their word.
    hint = f"{_MISSING}; pandas writes NaN as null, pyarrow and numpy.save do not"
    place = f"row {row + 1} of {path.name}, column {name!r},"
    return ValueError(f"{place} must hold a value, got null ({hint})")


def _plain(values: Array, listed: Callable[[], list[Any]]) -> Array:
    """An object column as an array of what it holds: texts, or rows of equal length."""
    return np.asarray(listed()) if values.dtype.kind == "O" else values


_READERS: Final[dict[str, Callable[[Path, Column | None], Table]]] = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".txt": _read_csv,
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".parquet": _read_parquet,
}
