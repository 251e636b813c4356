"""Tables of outputs, from files or from frames: the columns of outputs and the column of labels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import about, integer, invalid, mistyped
from ..mechanisms.answers import rows_of, to_object_array
from ..packages import has_all
from ..results.evidence import MOST_NAMES, TableRead

Column = str | int
Array = npt.NDArray[Any]

MISSING: Final = "write nan where the output itself is NaN, and leave out no row"

_LABELS_OF_X: Final = ("1", "true", "in", "x")
_LABELS_OF_X_PRIME: Final = ("0", "false", "out", "x_prime", "x'")
_LABEL_REQUIREMENT: Final = "1, true, in or x, or else 0, false, out or x_prime"

ALL: Final = "*"
"""Stands for all columns of a file or a frame."""
_PANDAS_INDEX_PREFIX: Final = "__index_level_"
"""Prefix that pandas gives unnamed row numbers in a parquet file."""


class Found(NamedTuple):
    """Source of a table, and how it was read; see `TableRead`."""

    kind: str = "frame"
    header: bool | None = None
    sep: str = ""
    encoding: str = ""
    sha256: str = ""


class Table(NamedTuple):
    """Columns of equal length.

    Args:
        name: of the file, or of the argument that held the frame.
        names: one for each column; empty where a header leaves it out, None without a header.
        columns: arrays of equal length, one entry of a column for each output; of columns that
            are not asked for anything of that length.
        found: what it was read from.
        whole: the array that the columns are cut from, or None.
    """

    name: str
    names: tuple[str, ...] | None
    columns: tuple[Array, ...]
    found: Found = Found()
    whole: Any = None


def describe_table(table: Table, places: Sequence[int]) -> TableRead:
    """Make the record of what was read: the table and the columns at some places."""
    names = tuple(map(str, range(len(table.columns)))) if table.names is None else table.names
    return TableRead(
        table.name,
        rows=len(table.columns[0]),
        columns=tuple(names[place] for place in places[:MOST_NAMES]),
        there=() if table.names is None else names[:MOST_NAMES],
        width=len(table.columns),
        **table.found._asdict(),
    )


def select_column(table: Table, column: Any = None, default: Sequence[int] | None = None) -> Array:
    """Select the outputs in a table.

    Args:
        table: the columns.
        column: name or number of a column, a list of them, or "*" for those of `default`; None
            will do where there is one, or where columns have no names.
        default: numbers of columns; None is all.

    Returns:
        One column as it is, shape `(size,)`; several as `(size, columns)`.

    Raises:
        TypeError: if `column` is of the wrong kind.
        ValueError: if there is no such column, columns do not fit together, or a choice is needed.
    """
    places = choose_places(table, column, default)
    if column is None and table.names is not None and len(places) > 1:
        # The input, a time or a row number beside each answer looks like a leak.
        names = ", ".join(repr(table.names[place]) for place in places[:8])
        requirement = (
            f"given where {table.name} has {len(places)} columns ({names}; {ALL!r} is all)"
        )
        raise invalid("column", requirement, column)
    if column in (None, ALL) and table.names is not None:
        for place in places:
            if not table.names[place] or table.names[place].startswith(_PANDAS_INDEX_PREFIX):
                # A row number is no part of an output, and could tell the sides apart.
                text = f"column {place} of {table.name} must have a name, got none"
                error = ValueError(f"{text} (if it numbers the rows, choose others with column=)")
                raise about(error, "column")
    chosen = [table.columns[place] for place in places]
    if len(chosen) == 1:
        return chosen[0]
    shapes = {one.shape for one in chosen}
    if len(shapes) > 1:
        raise invalid("columns", "of equal shape", sorted(shapes))
    if len({one.dtype.kind in "buifc" for one in chosen}) > 1:
        # Beside texts numpy would make texts of the numbers.
        chosen = [one.astype(object) for one in chosen]
    return np.stack(chosen, axis=1)


def choose_places(
    table: Table, column: Any = None, default: Sequence[int] | None = None
) -> list[int]:
    """Return the numbers of the requested columns, see `select_column`."""
    if column is None or (isinstance(column, str) and column == ALL):
        return list(range(len(table.columns)) if default is None else default)
    return [place_of(table, one) for one in list_wanted(column)]


def list_titles(
    table: Table, column: Any = None, default: Sequence[int] | None = None
) -> tuple[str, ...]:
    """List the names in messages of the columns of `select_column`; none for several arrays."""
    places = choose_places(table, column, default)
    if table.columns[places[0]].ndim > 1:
        return ()
    names = table.names
    return tuple(f"column {place if names is None else repr(names[place])}" for place in places)


def split_by_label(
    table: Table, label: Column, column: Any = None, label_x: Any = None, groups: int | None = None
) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Select the outputs in a table and the rows on x, by a column of labels.

    Args:
        table: the columns.
        label: the column with 1, true, in or x for outputs on x, and 0, false, out or x_prime
            for outputs on x'; with `label_x` any two values.
        column: the columns of the output; None only if there is one besides the label.
        label_x: the value that stands for x, or None.
        groups: number of a column that is no output either, or None.

    Returns:
        All outputs, in the order of the table, and for each whether it is on x.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if there is no such column, or a label is none of these.
    """
    place = place_of(table, label)
    others = [number for number in range(len(table.columns)) if number not in (place, groups)]
    if column is None and len(others) != 1:
        # Any further column, a row number say, could tell the sides apart by itself.
        wide = f"where a file has {len(others)} columns beside the label"
        requirement = f"given {wide} (a name, or a list of names)"
        raise invalid("column", requirement, column)
    outputs = select_column(table, column, others)
    if place in choose_places(table, column, others):
        raise invalid("column", "another one than the label", column)
    is_x = are_x(table.columns[place], f" of {table.name}", label_x)
    return outputs, is_x


def are_x(labels: Array, place: str = "", label_x: Any = None) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows with a label for x.

    Args:
        labels: bools, numbers or texts, shape `(size,)`.
        place: where they stand, for the message.
        label_x: the value that stands for x where labels have two values; None for those known.

    Returns:
        Bools, shape `(size,)`.

    Raises:
        ValueError: if a label is none of those known, or `label_x` none of two values.

    Example:
        >>> are_x(np.array(["x", "x_prime", "x"])).tolist()
        [True, False, True]
        >>> are_x(np.array(["daily", "never"]), label_x="never").tolist()
        [False, True]
    """
    # Objects of several kinds, as pandas keeps missing labels, have no order.
    if labels.dtype.kind in "Of":
        # A NaN is not equal to itself.
        lost = np.array(
            [
                one is None or (isinstance(one, (float, np.floating)) and one != one)
                for one in labels
            ]
        )
        if lost.any():
            row = int(lost.argmax())
            requirement = _LABEL_REQUIREMENT if label_x is None else "given"
            error = invalid(f"label in row {row + 1}{place}", requirement, labels[row])
            raise about(error, "label")
    plain = labels.astype(str) if labels.dtype.kind in "OS" else labels
    found, which = np.unique(plain, return_inverse=True)
    # What 1 and 0 look like in a column of floats.
    texts = [re.sub(r"^(-?\d+)\.0$", r"\1", str(label).strip()) for label in found.tolist()]
    shown = ", ".join(map(repr, texts[:4]))
    if label_x is not None:
        wanted = str(label_x).strip()
        if len(texts) != 2 or wanted not in texts:
            requirement = f"one of the two values of the labels{place} ({shown})"
            raise invalid("label_x", requirement, label_x)
        sides = [text == wanted for text in texts]
    else:
        unknown = [
            i
            for i, text in enumerate(texts)
            if text.lower() not in _LABELS_OF_X + _LABELS_OF_X_PRIME
        ]
        if unknown and len(texts) == 2:
            none = f"none is needed for {_LABEL_REQUIREMENT}"
            requirement = f"given: which of {shown}{place} stands for x ({none})"
            raise invalid("label_x", requirement, None)
        if len(unknown) == len(texts):
            known = f"two values ({_LABEL_REQUIREMENT}, or others with label_x=)"
            error = ValueError(f"labels{place} must have {known}, got {len(texts)}: {shown}")
            raise about(error, "label")
        if unknown:
            row = int(np.flatnonzero(which.ravel() == unknown[0])[0])
            name, label = f"label in row {row + 1}{place}", found[unknown[0]]
            error = invalid(name, _LABEL_REQUIREMENT, getattr(label, "item", lambda: label)())
            raise about(error, "label")
        sides = [text.lower() in _LABELS_OF_X for text in texts]
    return np.array(sides, dtype=bool)[which.ravel()]


def list_wanted(column: Any) -> list[Column]:
    """Return a choice of columns as a list; raise an error for other values."""
    wanted = [column] if isinstance(column, (str, int, np.integer)) else column
    if not isinstance(wanted, (list, tuple)) or any(
        isinstance(one, bool) or not isinstance(one, (str, int, np.integer)) for one in wanted
    ):
        raise mistyped("column", "a name or number of a column, or a list of them", column)
    if not wanted:
        raise invalid("column", "at least one column", column)
    return list(wanted)


def place_of(table: Table, column: Column, argument: str = "column") -> int:
    """Return the number of a column; raise an error that lists the names if there is none."""
    if not isinstance(column, str):
        return integer(argument, column, 0, len(table.columns) - 1)
    if table.names is None:
        raise invalid(argument, f"a number, for {table.name} has no names of columns", column)
    if table.names.count(column) > 1:
        requirement = f"a number, for several columns of {table.name} have this name"
        raise invalid(argument, requirement, column)
    if column not in table.names:
        names = ", ".join(map(repr, table.names))
        text = f"{argument} must be one of {names} in {table.name}, got {column!r}"
        raise about(ValueError(text), argument)
    return table.names.index(column)


# Frames, known by what they can do: none of their libraries is imported.


def read_columns(
    value: Any, name: str = "outputs", column: Any = ALL, label: Column | None = None
) -> Table | None:
    """Read the columns of a table or structured array; return None for other values.

    Tables are those of pandas, polars or pyarrow.

    Args:
        value: anything.
        name: what messages call it.
        column: the columns that are asked for; others are not converted.
        label: one more column, or None.

    Returns:
        The table, or None. A missing value is None; a NaN of numpy's floats stays one.
    """
    names = list_names(value)
    if names is None:
        return None
    if isinstance(value, np.ndarray):
        return Table(name, names, tuple(value[one] for one in names))
    nothing = np.empty(0)
    empty = Table(name, names, (nothing,) * len(names))
    places = choose_places(empty, column)
    places = places if label is None else sorted({*places, place_of(empty, label)})
    found = {place: convert_column(_get_column_at(value, place)) for place in places}
    if found:
        nothing = np.broadcast_to(np.zeros(1, np.bool_), len(found[places[0]]))
    columns = [found.get(place, nothing) for place in range(len(names))]
    return Table(name, names, tuple(columns))


def list_names(value: Any) -> tuple[str, ...] | None:
    """List the names of columns of a table or structured array; return None for other values."""
    if isinstance(value, np.ndarray):
        fields: tuple[str, ...] | None = value.dtype.names
        return fields
    names = getattr(value, "column_names", None)
    if names is None or not hasattr(value, "num_rows"):
        names = getattr(value, "columns", None)
        if names is None or not has_all(value, "__getitem__", "to_numpy"):
            return None
    return tuple(map(str, names))


def _get_column_at(frame: Any, place: int) -> Any:
    """Return a column by its place, since a name may occur twice."""
    if hasattr(frame, "iloc"):
        return frame.iloc[:, place]
    if hasattr(frame, "num_rows"):
        return frame.column(place)
    return frame.to_series(place) if hasattr(frame, "to_series") else frame[frame.columns[place]]


def convert_column(values: Any) -> Array:
    """Convert a column of a frame to an array.

    Args:
        values: a pandas or polars Series, or a column of a pyarrow table.

    Returns:
        Its values, shape `(size,)`; of texts, or objects where values are of several kinds or
        missing (None). A NaN of numpy's floats is a value.
    """
    null_count = getattr(values, "null_count", None)
    if null_count is not None:  # polars and pyarrow, where NaN is no null
        items = values.to_pylist if hasattr(values, "to_pylist") else values.to_list
        if null_count() if callable(null_count) else null_count:
            return to_object_array(items())
        array: Array = np.asarray(values if hasattr(values, "to_pylist") else values.to_numpy())
        return rows_of("outputs", items(), "") if array.dtype.kind == "O" else array
    array = values.to_numpy()
    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "fc":
        return array
    lost = values.isna().to_numpy()
    if not lost.any():
        return rows_of("outputs", values.to_list(), "") if array.dtype.kind == "O" else array
    found = to_object_array(values.to_list())
    found[lost] = None
    return found
