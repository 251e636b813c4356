"""Tables of outputs, from files or from frames: the columns of outputs and the column of labels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import about, integer, invalid, mistyped
from ..mechanisms.answers import rows_of, to_object_array
from ..packages import has_all
from ..records import Array
from ..results.evidence import MOST_NAMES, TableRead

Column = str | int

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


class Request(NamedTuple):
    """Columns that are asked for in a file.

    Args:
        kind: of the file, one of those of `KINDS`.
        column: the columns of the outputs, see `select_columns`.
        label: one more column, or None.
    """

    kind: str
    column: Any = None
    label: Column | None = None

    @property
    def columns(self) -> list[Any]:
        """All columns that are asked for; None stands for a choice that was not made."""
        several = isinstance(self.column, (list, tuple))
        return [*(self.column if several else [self.column]), self.label]


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


def select_columns(
    table: Table, column: Any = None, default: Sequence[int] | None = None
) -> tuple[Array, tuple[str, ...]]:
    """Select the outputs in a table, and the names of their columns in messages.

    Args:
        table: the columns.
        column: name or number of a column, a list of them, or "*" for those of `default`; None
            will do where there is one, or where columns have no names.
        default: numbers of columns; None is all.

    Returns:
        One column as it is, shape `(size,)`; several as `(size, columns)`. The names; none for
        several arrays.

    Raises:
        TypeError: if `column` is of the wrong kind.
        ValueError: if there is no such column, columns do not fit together, or a choice is needed.
    """
    places = choose_places(table, column, default)
    if column is None and table.names is not None and len(places) > 1:
        # The input, a time or a row number beside each answer looks like a leak.
        names = ", ".join(repr(table.names[place]) for place in places[:8])
        wide = f"where {table.name} has {len(places)} columns ({names}; {ALL!r} is all)"
        raise invalid("column", f"given {wide}", column)
    if column in (None, ALL) and table.names is not None:
        for place in places:
            if not table.names[place] or table.names[place].startswith(_PANDAS_INDEX_PREFIX):
                # A row number is no part of an output, and could tell the sides apart.
                text = f"column {place} of {table.name} must have a name, got none"
                error = ValueError(f"{text} (if it numbers the rows, choose others with column=)")
                raise about(error, "column")
    chosen = [table.columns[place] for place in places]
    titles = tuple(
        f"column {place if table.names is None else repr(table.names[place])}" for place in places
    )
    titles = () if chosen[0].ndim > 1 else titles
    if len(chosen) == 1:
        return chosen[0], titles
    shapes = {one.shape for one in chosen}
    if len(shapes) > 1:
        raise invalid("columns", "of equal shape", sorted(shapes))
    if len({one.dtype.kind in "buifc" for one in chosen}) > 1:
        # Beside texts numpy would make texts of the numbers.
        chosen = [one.astype(object) for one in chosen]
    return np.stack(chosen, axis=1), titles


def choose_places(
    table: Table, column: Any = None, default: Sequence[int] | None = None
) -> list[int]:
    """Return the numbers of the requested columns, see `select_columns`."""
    if column is None or selects_all_columns(column):
        return list(range(len(table.columns)) if default is None else default)
    return [place_of(table, one) for one in list_wanted(column)]


def selects_all_columns(column: Any) -> bool:
    """Return True for the choice of all columns."""
    return isinstance(column, str) and column == ALL


def list_needed_places(table: Table, request: Request) -> list[int]:
    """Return the columns to read; none if a choice is needed, which `select_columns` explains."""
    _, column, label = request
    if label is None:
        must_choose = column is None and table.names is not None and len(table.names) > 1
        return [] if must_choose else sorted({*choose_places(table, column)})
    place = place_of(table, label, "label")
    must_choose = column is None and len(table.columns) != 2
    return sorted({place, *([] if must_choose else choose_places(table, column))})


def fill_columns(found: Mapping[Any, Array], keys: Iterable[Any], size: int) -> tuple[Array, ...]:
    """Return the column of each key, and one without content for those that were not read."""
    nothing = np.broadcast_to(np.zeros(1, np.bool_), size)
    return tuple(found.get(key, nothing) for key in keys)


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
        lost = [
            row for row, one in enumerate(labels)
            # A NaN is not equal to itself.
            if one is None or (isinstance(one, (float, np.floating)) and one != one)
        ]  # fmt: skip
        if lost:
            requirement = _LABEL_REQUIREMENT if label_x is None else "given"
            error = invalid(f"label in row {lost[0] + 1}{place}", requirement, labels[lost[0]])
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
        known = _LABELS_OF_X + _LABELS_OF_X_PRIME
        unknown = [number for number, text in enumerate(texts) if text.lower() not in known]
        if unknown and len(texts) == 2:
            none = f"none is needed for {_LABEL_REQUIREMENT}"
            requirement = f"given: which of {shown}{place} stands for x ({none})"
            raise invalid("label_x", requirement, None)
        if len(unknown) == len(texts):
            wanted = f"two values ({_LABEL_REQUIREMENT}, or others with label_x=)"
            error = ValueError(f"labels{place} must have {wanted}, got {len(texts)}: {shown}")
            raise about(error, "label")
        if unknown:
            row = int(np.flatnonzero(which.ravel() == unknown[0])[0])
            name, label = f"label in row {row + 1}{place}", found.tolist()[unknown[0]]
            raise about(invalid(name, _LABEL_REQUIREMENT, label), "label")
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


def read_columns(value: Any, name: str, column: Any, label: Column | None = None) -> Table | None:
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
    places = list_needed_places(
        Table(name, names, (np.empty(0),) * len(names)), Request("frame", column, label)
    )
    found = {place: convert_column(_get_column_at(value, place)) for place in places}
    size = len(found[places[0]]) if found else 0
    return Table(name, names, fill_columns(found, range(len(names)), size))


def list_names(value: Any) -> tuple[str, ...] | None:
    """List the names of columns of a table or structured array; return None for other values."""
    if isinstance(value, np.ndarray):
        fields: tuple[str, ...] | None = value.dtype.names
        return fields
    if has_all(value, "column_names", "num_rows"):
        return tuple(map(str, value.column_names))
    is_table = has_all(value, "columns", "__getitem__", "to_numpy")
    return tuple(map(str, value.columns)) if is_table else None


def _get_column_at(frame: Any, place: int) -> Any:
    """Return a column by its place, since a name may occur twice."""
    if has_all(frame, "iloc"):
        return frame.iloc[:, place]
    if has_all(frame, "num_rows"):
        return frame.column(place)
    return frame.to_series(place) if has_all(frame, "to_series") else frame[frame.columns[place]]


def convert_column(values: Any) -> Array:
    """Convert a column of a frame to an array.

    Args:
        values: a pandas or polars Series, or a column of a pyarrow table.

    Returns:
        Its values, shape `(size,)`; of texts, or objects where values are of several kinds or
        missing (None). A NaN of numpy's floats is a value.
    """
    to_list = values.to_pylist if has_all(values, "to_pylist") else values.to_list
    if has_all(values, "null_count"):  # polars and pyarrow, where NaN is no null
        if values.null_count() if callable(values.null_count) else values.null_count:
            return to_object_array(to_list())
        array: Array = np.asarray(values if has_all(values, "to_pylist") else values.to_numpy())
    else:
        array = values.to_numpy()
        if isinstance(values.dtype, np.dtype) and values.dtype.kind in "fc":
            return array
        lost = values.isna().to_numpy()
        if lost.any():
            found = to_object_array(to_list())
            found[lost] = None
            return found
    return rows_of("outputs", to_list(), "") if array.dtype.kind == "O" else array
