"""The two sides of recorded outputs: read from files or arrays, separated by labels, grouped.

No value of a file is dropped without an error.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from contextlib import suppress
from itertools import compress
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..errors import about, invalid, masked, mistyped, name_path_errors
from ..files import columns as frames
from ..files.columns import ALL, Column, Table
from ..files.formats import Reader, is_path, read_table
from ..files.opened import STDIN
from ..packages import has_all
from ..records import Array

Sides = tuple[Array, Array]

_MIN_DISTINCT_SCORES: Final = 20
"""Distinct values from which the other side is scores, where one side is 0 and 1 alone."""

_NAMES: Final = ("outputs", "groups")
"""Names in messages of the outputs of both sides and of their groups."""

_LABEL_ARGUMENT: Final = "a column's name or number, or labels, one for each row of outputs"

Groups = list[Hashable]
"""A group for each row."""


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
    if not is_path(path):
        raise mistyped("path", "the path of a file", path)
    found: Array = read_titled(path, column, "outputs", reader or Reader())[0]
    return found


def has_columns(value: Any) -> bool:
    """Return True for files and frames, of which columns can be chosen."""
    return is_path(value) or frames.list_names(value) is not None


def get_display_name(value: Any, otherwise: str) -> str:
    """Return the name of outputs in reports: the name of their file, or of the argument."""
    if not is_path(value):
        return otherwise
    return "standard input" if str(value) == STDIN else Path(value).name


def read_titled(value: Any, column: Any, name: str, reader: Reader) -> tuple[Any, tuple[str, ...]]:
    """Read the outputs of one side, and the names of their columns in messages.

    Args:
        value: a path, a pandas, polars or pyarrow table or column, a torch tensor, or others.
        column: the columns to take from a file or a frame, or None.
        name: what messages call it.
        reader: settings for files, and where what was found is kept.

    Returns:
        The array, anything else as it is; and the names of its columns, none without names.

    Raises:
        TypeError: if `column` is of the wrong kind.
        ValueError: if the file or the frame holds something else, or `value` has no columns.
        MemoryError: if memory cannot hold the outputs.
        OSError: if the file cannot be read.
    """
    table = None
    if is_path(value):
        with name_path_errors(Path(value), "read", name):
            table = read_table(Path(value), column, None, reader)
        if column is None and table.found.kind == "npy":
            # An array is an output whole, whatever its shape.
            reader.tables.append(frames.describe_table(table, []))
            return table.whole, ()
    elif not isinstance(value, np.ndarray) or column is not None:
        table = frames.read_columns(value, name, column)
    return (_detach_to_array(value), ()) if table is None else _take_outputs(table, column, reader)


def _take_outputs(
    table: Table, column: Any, reader: Reader, others: dict[int, str] | None = None
) -> tuple[Array, tuple[str, ...]]:
    """Select the outputs in a table, and record what was read.

    Args:
        table: the columns.
        column: see `read_titled`.
        reader: keeps what was found in a file or a frame; an array has no columns to name.
        others: numbers of the columns that are no output, and what messages call them.
    """
    others = others or {}
    rest = [place for place in range(len(table.columns)) if place not in others]
    found = frames.select_columns(table, column, rest)
    places = frames.choose_places(table, column, rest)
    for place, what in others.items():
        if place in places:
            raise invalid("column", f"another one than {what}", column)
    if table.names is not None or table.found.kind != "frame":
        reader.tables.append(frames.describe_table(table, [*places, *others]))
    return found


def read_grouped(
    value: Any, column: Any, groups: Any, names: tuple[str, str], reader: Reader
) -> tuple[Any, tuple[str, ...], Groups | None]:
    """Read what `read_titled` reads, and the group of each row; None without groups.

    Args:
        value: see `read_titled`.
        column: see `read_titled`.
        groups: the name or number of a column of `value`, an array with a group for each row, or
            None.
        names: what messages call `value` and `groups`.
        reader: settings for files, and where what was found is kept.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if there is no such column, or a group is missing.
    """
    if not is_column(groups):
        rows, titles = read_titled(value, column, names[0], reader)
        return rows, titles, _read_groups(names[1], groups, value, rows, reader)
    table = _open_table(value, None, column, groups, names, reader)
    place = frames.place_of(table, groups, names[1])
    rows, titles = _take_outputs(table, column, reader, {place: names[1]})
    return rows, titles, _read_groups(names[1], table.columns[place], None, rows, reader)


def by_label(
    outputs: Any, label: Any, column: Any, label_x: Any, groups: Any, reader: Reader
) -> tuple[Sides, tuple[str, ...], tuple[Groups, Groups] | None]:
    """Split the outputs by labels into those on x and those on x'.

    Args:
        outputs: of both sides: a path, a frame, an array, ...
        label: the name or number of a column of `outputs`, or an array of labels for its rows.
        column: the columns of the output, or None.
        label_x: the value of the label that stands for x, or None.
        groups: the name or number of a column, an array with a group for each row, or None.
        reader: settings for files, and where what was found is kept.

    Returns:
        Both sides, each in the order of the rows; what messages call their columns; and the group
        of each row on both sides, or None.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if there is no such column; if labels or groups are missing, unknown, of
            another number than the rows, or all of one side.
    """
    if is_column(label):
        of = groups if is_column(groups) else None
        table = _open_table(outputs, label, column, of, _NAMES, reader)
        place = frames.place_of(table, label, "label")
        no_outputs = {place: "the label"}
        if is_column(groups):
            where = frames.place_of(table, groups, "groups")
            if where == place:
                raise invalid("groups", "another column than the label", groups)
            no_outputs[where] = "groups"
            groups = table.columns[where]
        others = len(table.columns) - len(no_outputs)
        if column is None and others != 1:
            # Any further column, a row number say, could tell the sides apart by itself.
            wide = f"where a file has {others} columns beside the label"
            raise invalid("column", f"given {wide} (a name, or a list of names)", column)
        rows, titles = _take_outputs(table, column, reader, no_outputs)
        is_x = frames.are_x(table.columns[place], f" of {table.name}", label_x)
        listed = _read_groups("groups", groups, outputs, rows, reader)
    else:
        found, titles, listed = read_grouped(outputs, column, groups, _NAMES, reader)
        rows = _as_rows(found)
        labels = _read_label_argument(label, outputs, len(rows), reader)
        is_x = frames.are_x(labels, label_x=label_x)
    sides = rows[is_x], rows[~is_x]
    if not len(sides[0]) or not len(sides[1]):
        sizes = len(sides[0]), len(sides[1])
        raise invalid("label", "a column with rows for both sides", sizes)
    if listed is None:
        return sides, titles, None
    return sides, titles, (list(compress(listed, is_x)), list(compress(listed, ~is_x)))


def number_groups(first: Groups, second: Groups) -> Sides:
    """Return the groups of both sides as integers from 0, in the order of first occurrence.

    Raises:
        ValueError: if there is a group on both sides.

    Example:
        >>> number_groups(["a", "b", "a"], ["c"])
        (array([0, 1, 0]), array([0]))
    """
    from ..divergence.points import number_labels

    shared = set(first) & set(second)
    if shared:
        # Its rows would choose the event on one side and be counted on the other.
        requirement = (
            f"other groups on x than on x' ({len(shared):,} are on both sides; where their numbers "
            "start anew in each file, call them 'x 1' and 'x_prime 1')"
        )
        raise invalid("groups", requirement, min(shared, key=first.index))
    return number_labels(first), number_labels(second)


def _read_groups(name: str, groups: Any, outputs: Any, rows: Any, reader: Reader) -> Groups | None:
    """Return a group for each row, none of them missing."""
    from ..divergence.points import read_labels

    if groups is None:
        return None
    if masked(groups):
        raise invalid(name, "groups without masked entries", groups)
    _check_index(name, groups, outputs)
    found = read_labels(name, read_titled(groups, None, name, reader)[0], len(rows))
    if None in found:
        requirement = "a group for each row, none of them missing"
        raise invalid(name, requirement, f"nothing in row {found.index(None) + 1}")
    return found


def is_column(value: Any) -> bool:
    """Return True for the name or the number of a column."""
    return isinstance(value, (str, int, np.integer)) and not isinstance(value, bool)


def _open_table(
    outputs: Any, label: Any, column: Any, groups: Any, names: tuple[str, str], reader: Reader
) -> Table:
    parsed = column
    if groups is not None:
        # Only the columns that are named are parsed.
        is_whole = column is None or frames.selects_all_columns(column)
        parsed = ALL if is_whole else [*frames.list_wanted(column), groups]
    if is_path(outputs):
        try:
            with name_path_errors(Path(outputs), "read", "outputs"):
                return read_table(Path(outputs), parsed, label, reader)
        except ValueError as error:
            text = str(error)
            if groups is None or not text.endswith(f"got {groups!r}"):
                raise
            # The message must name the argument whose column is missing.
            raise about(ValueError(text.replace("column", names[1], 1)), names[1]) from None
    table = frames.read_columns(outputs, names[0], parsed, label)
    if table is None and isinstance(outputs, np.ndarray) and outputs.ndim == 2:
        table = Table(names[0], None, tuple(outputs.T))
    if table is None:
        which = names[1] if label is None else "label"
        requirement = f"a file, a frame or a matrix where {which} is a column"
        raise mistyped(names[0], requirement, outputs)
    return table


def _as_rows(found: Any) -> Array:
    """Return the outputs of both sides as an array."""
    # Rows of different lengths are no array.
    with suppress(ValueError):
        if (rows := np.asarray(found)).ndim:
            return rows
    raise mistyped("outputs", "an array with one row an output", found)


def _check_index(name: str, values: Any, outputs: Any) -> None:
    """Raise an error if a Series has another index than the outputs."""
    known = [one.index for one in (values, outputs) if has_all(one, "index")]
    indices = [one for one in known if has_all(one, "equals")]
    if len(indices) == 2 and not indices[1].equals(indices[0]):
        # One of them was sorted or filtered: by place, they would meet the wrong outputs.
        what = "labels" if name == "label" else name
        raise invalid(name, f"{what} with the index of outputs", indices[0])


def _read_label_argument(label: Any, outputs: Any, size: int, reader: Reader) -> Array:
    """Read a label for each row, shape `(size,)`."""
    if masked(label):
        raise invalid("label", "labels without masked entries", label)
    _check_index("label", label, outputs)
    found = read_titled(label, None, "label", reader)[0]
    try:
        array = np.asarray(found)
    except ValueError:
        raise mistyped("label", _LABEL_ARGUMENT, label) from None
    flat = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if flat.ndim != 1 or flat.dtype.kind not in "buifUSO":
        raise mistyped("label", _LABEL_ARGUMENT, label)
    if len(flat) != size:
        raise invalid("label", f"one for each of the {size:,} rows of outputs", flat.shape)
    return flat


def _detach_to_array(value: Any) -> Any:
    """Convert a Series or a torch tensor to an array, without gradient or device."""
    if has_all(value, "detach", "cpu"):
        tensor = value.detach().cpu()
        # numpy has no bfloat16; float32 holds its values exactly.
        return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()
    is_column = has_all(value, "to_numpy", "dtype") or has_all(value, "to_numpy", "null_count")
    return frames.convert_column(value) if is_column else value


def refuse_unlike_marks(sides: Sides) -> None:
    """Refuse sides of which one marks missing values by None and the other by NaN.

    A file that pandas wrote, or an empty cell, gives None where a frame or an array has NaN:
    every missing output would look like a leak.

    Args:
        sides: outputs on x and on x'.

    Raises:
        ValueError: if only None is on one side and only NaN on the other.
    """
    first, second = map(_list_marks, sides)
    if first and second and not first & second:
        other, own = (" and ".join(one) for one in (first, second))
        text = f"with what is missing marked as in outputs ({other}), got {own}"
        raise about(ValueError(f"outputs_prime must be {text}"), "outputs_prime")


def _list_marks(side: Array) -> set[str]:
    """List the marks of a missing value that occur among the outputs."""
    if side.dtype.kind == "f":
        return {"NaN"} if np.isnan(side).any() else set()
    if side.dtype != object:
        return set()
    entries = [one for one in side.ravel().tolist() if one is None or isinstance(one, float)]
    return {"None" if one is None else "NaN" for one in entries if one is None or one != one}


def refuse_labels(sides: Sides) -> None:
    """Refuse scores followed by their labels, the order of arguments in scikit-learn.

    Taken for outputs on x', labels certify next to nothing: .07 where the scores give 1.62.

    Args:
        sides: what was given as outputs on x and on x'.

    Raises:
        ValueError: if one side is of bools and the other is not; or if one is 0 and 1, or -1
            and 1, and the other, of equal length, many distinct numbers.
    """
    for name, side, other in (("outputs_prime", *sides[::-1]), ("outputs", *sides)):
        if _are_labels(side, other):
            which = "on x'" if name == "outputs_prime" else "on x"
            raise invalid(name, f"outputs {which} (label= is for labels)", side)


def _are_labels(side: Array, other: Array) -> bool:
    if side.dtype.kind == "b" or other.dtype.kind == "b":
        return side.dtype.kind == "b" != other.dtype.kind
    known = [one.dtype.kind in "uif" for one in (side, other)]
    if not all(known) or len(side) != len(other) or side.size != len(side):
        return False
    if np.unique(side).tolist() not in ([0, 1], [-1, 1]):
        return False
    return len(np.unique(other, axis=0)) >= min(_MIN_DISTINCT_SCORES, len(other) // 2 + 1)
