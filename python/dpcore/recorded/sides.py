"""The two sides of recorded outputs: as they were given, or told apart by labels."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import about, invalid, masked, mistyped
from .files import read_table
from .files import read_titled as read_file
from .frames import (
    ALL,
    Table,
    are_x,
    choose_places,
    convert_column,
    describe_table,
    framed,
    list_names,
    list_titles,
    parted,
    place_of,
    selected,
)  # fmt: skip
from .opening import STDIN, Reader

Array = npt.NDArray[Any]
Sides = tuple[Array, Array]

_MANY: Final = 20
"""Distinct numbers beside 0 and 1 that make scores of them: no law is so unlike the other."""

_LABEL: Final = "a column's name or number, or labels, one for each row of outputs"


def is_path(value: Any) -> bool:
    """True for what names a file."""
    return isinstance(value, (str, os.PathLike))


def has_columns(value: Any) -> bool:
    """True for files and frames, of which columns can be chosen."""
    return is_path(value) or list_names(value) is not None


def called(value: Any, otherwise: str) -> str:
    """What reports call outputs: the name of their file, or of the argument."""
    if not is_path(value):
        return otherwise
    return "standard input" if str(value) == STDIN else Path(value).name


def read_titled(
    value: Any, column: Any, name: str = "outputs", reader: Reader | None = None
) -> tuple[Any, tuple[str, ...]]:
    """Return the outputs of one side, and what messages call their columns.

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
    if is_path(value):
        return read_file(value, column, reader)
    table = None
    if not isinstance(value, np.ndarray) or column is not None:
        table = framed(value, name, ALL if column is None else column)
    if table is None:
        return _untied(value), ()
    outputs, titles = selected(table, column), list_titles(table, column)
    if reader is not None:
        reader.tables.append(describe_table(table, choose_places(table, column)))
    return outputs, titles


def by_label(
    outputs: Any, label: Any, column: Any, label_x: Any = None, reader: Reader | None = None
) -> tuple[Sides, tuple[str, ...]]:
    """The outputs on x and those on x', told apart by labels.

    Args:
        outputs: of both sides: a path, a frame, an array, ...
        label: the name or number of a column of `outputs`, or an array of labels for its rows.
        column: the columns of the output, or None.
        label_x: the value of the label that stands for x, or None.
        reader: settings for files, and where what was found is kept.

    Returns:
        Both sides, each in the order of the rows, and what messages call their columns.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if there is no such column; if labels are missing, unknown, of another number
            than the rows, or all of one side.
    """
    if isinstance(label, (str, int, np.integer)) and not isinstance(label, bool):
        table = _open_table(outputs, label, column, reader)
        place = place_of(table, label if isinstance(label, str) else int(label))
        others = [number for number in range(len(table.columns)) if number != place]
        sides = parted(table, place, column, label_x)
        titles = list_titles(table, column, others)
        if reader is not None and has_columns(outputs):
            chosen = choose_places(table, column, others)
            reader.tables.append(describe_table(table, [*chosen, place]))
    else:
        rows, titles = _rows(outputs, column, reader)
        is_x = are_x(_labels(label, outputs, len(rows), reader), label_x=label_x)
        sides = rows[is_x], rows[~is_x]
    if not len(sides[0]) or not len(sides[1]):
        sizes = len(sides[0]), len(sides[1])
        raise invalid("label", "a column with rows for both sides", sizes)
    return sides, titles


def _open_table(outputs: Any, label: Any, column: Any, reader: Reader | None) -> Table:
    if is_path(outputs):
        return read_table(Path(outputs), column, label, reader)
    table = framed(outputs, "outputs", ALL if column is None else column, label)
    if table is None and isinstance(outputs, np.ndarray) and outputs.ndim == 2:
        table = Table("outputs", None, tuple(outputs.T))
    if table is None:
        raise mistyped("outputs", "a file, a frame or a matrix where label is a column", outputs)
    return table


def _rows(outputs: Any, column: Any, reader: Reader | None = None) -> tuple[Array, tuple[str, ...]]:
    """The outputs of both sides as an array, and what messages call its columns."""
    found, titles = read_titled(outputs, column, "outputs", reader)
    try:
        rows = np.asarray(found)
    except ValueError:
        # Rows of different lengths.
        raise mistyped("outputs", "an array with one row an output", outputs) from None
    if rows.ndim == 0:
        raise mistyped("outputs", "an array with one row an output", outputs)
    return rows, titles


def _labels(label: Any, outputs: Any, size: int, reader: Reader | None = None) -> Array:
    """A label for each row, shape `(size,)`."""
    if masked(label):
        raise invalid("label", "labels without masked entries", label)
    index: Any = getattr(label, "index", None)
    other: Any = getattr(outputs, "index", None)
    if hasattr(index, "equals") and hasattr(other, "equals") and not other.equals(index):
        # One of them was sorted or filtered: by place, labels would meet the wrong outputs.
        raise invalid("label", "labels with the index of outputs", index)
    found = read_titled(label, None, "label", reader)[0]
    try:
        array = np.asarray(found)
    except ValueError:
        raise mistyped("label", _LABEL, label) from None
    flat = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if flat.ndim != 1 or flat.dtype.kind not in "buifUSO":
        raise mistyped("label", _LABEL, label)
    if len(flat) != size:
        raise invalid("label", f"one for each of the {size:,} rows of outputs", flat.shape)
    return flat


def _untied(value: Any) -> Any:
    """A Series or a torch tensor as an array, without gradient or device."""
    if hasattr(value, "detach") and hasattr(value, "cpu"):
        tensor = value.detach().cpu()
        # numpy has no bfloat16; float32 holds its values exactly.
        return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()
    is_column = hasattr(value, "to_numpy") and (
        hasattr(value, "dtype") or hasattr(value, "null_count")
    )
    return convert_column(value) if is_column else value


def refuse_unlike_marks(sides: Sides) -> None:
    """Refuse sides of which one marks what is missing by None and the other by NaN.

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
        requirement = f"with what is missing marked as in outputs ({other})"
        raise about(ValueError(f"outputs_prime must be {requirement}, got {own}"), "outputs_prime")


def _list_marks(side: Array) -> set[str]:
    """Return which marks of a missing value are among the outputs."""
    if side.dtype.kind == "f":
        return {"NaN"} if np.isnan(side).any() else set()
    if side.dtype != object:
        return set()
    entries = [one for one in side.ravel().tolist() if one is None or isinstance(one, float)]
    return {"None" if one is None else "NaN" for one in entries if one is None or one != one}


def refuse_labels(sides: Sides) -> None:
    """Refuse scores beside their labels, the order of arguments in scikit-learn.

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
    return len(np.unique(other, axis=0)) >= min(_MANY, len(other) // 2 + 1)
