"""Tables of outputs from files or data frames, and the choice of columns in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import integer, invalid, mistyped, tag_error
from ..mechanisms.answers import answer_rows, to_object_array
from ..packages import has_all
from ..records import Array
from ..results.evidence import MOST_NAMES, TableRead

Column = str | int

MISSING: Final = "write nan where the output itself is NaN, and leave out no row"

_LABELS_OF_X: Final = ("1", "true", "in", "x")
_LABELS_OF_X_PRIME: Final = ("0", "false", "out", "x_prime", "x'")
_LABEL_REQUIREMENT: Final = "1, true, in or x, or else 0, false, out or x_prime"

ALL: Final = "*"
"""Symbol by which a user chooses all columns of a file or a data frame."""
_RANGE: Final = re.compile(r"(\d+)-(\d+)")
"""Pattern of a range of column numbers such as "3-50", which includes its two ends."""
_ZONE: Final = "dpcore.zone"
"""Key in a dtype's metadata for the original time zone of a column of times in UTC."""
_PATTERN: Final = re.compile(r"[*?\[]")
_PANDAS_INDEX_PREFIX: Final = "__index_level_"
"""Prefix of the names that pandas gives to an unnamed index in a Parquet file."""


class FileInfo(NamedTuple):
    """Description of the file from which a table was read, and of how it was read.

    Args:
        kind: format of the file, or "frame" for a data frame.
        header: True if the first row was read as a header. None if the format has no header.
        sep: character that separates the cells of a row, or "" if there is none.
        encoding: character encoding of the text, or "" for a data frame.
        sha256: SHA-256 hash of the file, in hexadecimal digits, or "" for a data frame.
    """

    kind: str = "frame"
    header: bool | None = None
    sep: str = ""
    encoding: str = ""
    sha256: str = ""


class Request(NamedTuple):
    """Choice of a user: which columns of a file or data frame dpcore must read.

    Args:
        kind: format of the file, one of the names in `formats.FORMATS`.
        column: columns that contain the outputs of the mechanism. The value is a name, a number, a
            range ("3-50"), a pattern of names ("o*"), or a list of these. None if the user did not
            choose columns.
        label: column that states for each row if the output in the row was drawn on x or on x'.
            None if the table has no such column.
        exclude: columns that must not be read, in the same form as `column`. None if the user
            excluded no columns.
        names: column names of the first of two tables, if this request is for the second table.
            Column numbers in the request refer to these names. None if this request is not for a
            second table.
        groups: column that states the group of each row, such as a person. The rows of one group
            may depend on each other. None means that all rows are independent.
        kinds: types of columns that are already decided, as a dict from column number to type. None
            if no type is decided.
    """

    kind: str
    column: Any = None
    label: Column | None = None
    exclude: Any = None
    names: tuple[str, ...] | None = None
    groups: Column | None = None
    kinds: Mapping[int, Any] | None = None

    @property
    def columns(self) -> list[Any]:
        """All columns that the user named: the output columns, the label column, the groups column.

        The label column states if an output was drawn on x or on x'. The groups column states which
        rows belong together. A choice that the user did not make is None in this list.

        For a range of columns such as "3-50", the list contains only the first number.
        """
        several = isinstance(self.column, (list, tuple))
        entries = [*(self.column if several else [self.column]), self.label, self.groups]
        return [int(entry.split("-")[0]) if _is_column_range(entry) else entry for entry in entries]

    @property
    def has_pattern_or_exclusion(self) -> bool:
        """True if the user chose columns by a range or a pattern, or only excluded some columns."""
        entries = self.column if isinstance(self.column, (list, tuple)) else [self.column]
        return any(map(_is_pattern, entries)) or (self.column is None and self.exclude is not None)

    @property
    def is_open(self) -> bool:
        """True if the user neither chose columns of outputs nor excluded columns."""
        return self.column is None and self.exclude is None


class Table(NamedTuple):
    """A table that was read from a file or a data frame, as a tuple of columns of equal length.

    Args:
        name: name of the file, or of the argument that holds the data frame.
        names: name of each column, empty for a column without a name. None if the table has no
            header.
        columns: one array per column, with one entry per row. If a column was not needed, its array
            has the same length but does not contain the values.
        found: description of the file from which the table was read, and of how it was read.
        whole: one array that holds all columns, or None if the columns are separate.
        is_sparse: True if some rows may have no entry in a column, as with JSON objects.
        cells: types of the columns that were read from text, as a dict from column number to type.
    """

    name: str
    names: tuple[str, ...] | None
    columns: tuple[Array, ...]
    found: FileInfo = FileInfo()
    whole: Any = None
    is_sparse: bool = False
    cells: Mapping[int, Any] = {}


def describe_reading(
    table: Table, places: Sequence[int], width: int, by_position: bool = False
) -> TableRead:
    """Describe, for a report, how a table was read and which of its columns were read.

    Args:
        table: the table.
        places: indices of the columns that were read.
        width: number of columns of the file.
        by_position: True if the columns of two tables were matched by their positions and not by
            their names.
    """
    names = tuple(map(str, range(len(table.columns)))) if table.names is None else table.names
    return TableRead(
        table.name,
        rows=len(table.columns[0]),
        columns=tuple(names[place] for place in places[:MOST_NAMES]),
        there=() if table.names is None else names[: min(width, MOST_NAMES)],
        width=width,
        by_position=by_position,
        kinds=tuple(
            table.cells[place].kind.reason for place in places[:MOST_NAMES] if place in table.cells
        ),
        **table.found._asdict(),
    )


def select_columns(
    table: Table, column: Any = None, default: Sequence[int] | None = None
) -> tuple[Array, tuple[str, ...]]:
    """Return the outputs that a table contains, and the names of the columns of outputs.

    Args:
        table: the table.
        column: columns of outputs: a name, a number, a pattern of names ("o*"), a range of numbers
            ("3-50"), or a list of these. "*" means all columns in `default`. None also means all
            columns in `default`, but is allowed only if the table has a single column, or if its
            columns have no names.
        default: indices of the columns that "*" chooses. None means all columns.

    Returns:
        A pair: the outputs and a tuple. The outputs have shape `(size,)` for one column, and
        `(size, columns)` for several columns. The tuple contains the names of the columns for
        messages.

    Raises:
        TypeError: if `column` has the wrong type.
        ValueError: if the table lacks a column, if columns have different shapes, or if `column` is
            None although the table has several columns with names.
    """
    return array_and_names(table, choose_output_columns(table, Request("", column), default, True))


def array_and_names(table: Table, places: Sequence[int]) -> tuple[Array, tuple[str, ...]]:
    """Join columns of a table to one array, and return the array with the names of the columns.

    Args:
        table: the table.
        places: indices of the columns.

    Returns:
        A pair: an array and a tuple. The shape of the array is `(size,)` for one column, and
        `(size, columns)` for several columns. The tuple contains the names of the columns for
        messages. It is empty if each column has more than one dimension.

    Raises:
        ValueError: if the columns have different shapes.
    """
    chosen = [table.columns[place] for place in places]
    titles = tuple(
        f"column {place if table.names is None else repr(table.names[place])}" for place in places
    )
    titles = () if chosen[0].ndim > 1 else titles
    if len(chosen) == 1:
        return chosen[0], titles
    shapes = {column.shape for column in chosen}
    if len(shapes) > 1:
        raise invalid("columns", "of equal shape", sorted(shapes))
    kinds = {
        column.dtype.str if column.dtype.kind in "mM" else column.dtype.kind in "buifc"
        for column in chosen
    }
    if len(kinds) > 1:
        # Next to texts, numpy would convert numbers to texts. Times of two units may overflow.
        chosen = [column.astype(object) for column in chosen]
    return np.stack(chosen, axis=1), titles


def choose_output_columns(
    table: Table, request: Request, default: Sequence[int] | None = None, is_final: bool = False
) -> list[int]:
    """Return the indices of the columns of a table that a user chose as columns of outputs.

    Args:
        table: the table.
        request: the choice of the user.
        default: indices of the columns that "*" and patterns of names may choose. If the user chose
            no columns, all columns in `default` are taken. None means all columns of the table.
        is_final: True to raise an error if the user did not choose columns although the table has
            several columns with names.

    Raises:
        TypeError: if a choice has the wrong type.
        ValueError: if the table lacks a chosen column, or if the choice excludes all columns. If
            `is_final` is True, there are two further cases: the table has only columns of labels or
            groups, or the user must choose columns but did not.
    """
    request = numbers_to_names(request, table)
    column, names = request.column, table.names or ()
    default = range(len(table.columns)) if default is None else default
    if column is None or (selects_all_columns(column) and ALL not in names):
        places = list(default)
    else:
        places, allowed = [], {*default}
        unique: dict[Column, int] = {name: place for place, name in enumerate(names)}
        for entry in list_wanted(column):
            if entry in unique and len(unique) == len(names):
                places.append(unique[entry])
            elif numbers := _read_range(entry, table, "column"):
                places += numbers
            elif matches := _match_names(names, entry) if _is_pattern(entry, names) else []:
                places += [place for place in matches if place in allowed]
            else:
                places.append(find_column_number(table, entry))
        # A column that matches two patterns is taken once.
        places = list(dict.fromkeys(places)) if request.has_pattern_or_exclusion else places
    left_out = _excluded_column_numbers(table, request)
    rest = [place for place in places if place not in left_out]
    if places and not rest:
        raise invalid("exclude", f"some of the columns of {table.name}, not all", request.exclude)
    if is_final:
        if not rest:
            raise invalid("column", f"a column of {table.name} besides label and groups", column)
        _require_column_choice(table, request, rest)
    return rest


def numbers_to_names(request: Request, table: Table) -> Request:
    """Replace column numbers by column names, in a request for the second of two tables.

    Column numbers in the request refer to the first table. The names are taken from the first
    table, so that the request finds the same columns in the second table.
    """
    names = request.names
    if names is None or table.names in (None, names):
        return request._replace(names=None)
    first = Table("", names, (np.empty(0),) * len(names))

    def translate(choice: Any, argument: str) -> Any:
        if choice is None or selects_all_columns(choice):
            return choice
        entries: list[Column] = []
        for entry in list_wanted(choice, argument):
            numbers = _read_range(entry, first, argument)
            if not isinstance(entry, str):
                numbers = range(entry, 1 + entry)
            entries += [entry] if numbers is None else names[numbers.start : numbers.stop]
        return entries

    groups = None if request.groups is None else translate(request.groups, "groups")[0]
    column, exclude = translate(request.column, "column"), translate(request.exclude, "exclude")
    return Request(request.kind, column, request.label, exclude, None, groups)


def _require_column_choice(table: Table, request: Request, places: Sequence[int]) -> None:
    """Raise an error if the user must choose columns, or if "*" would include an unnamed column.

    The user must choose if a table has several columns with names.
    """
    if table.names is None or request.column not in (None, ALL):
        return
    if request.is_open and len(places) > 1:
        # A column that holds the input, a time or a row number would look like a privacy leak.
        names = ", ".join(repr(table.names[place]) for place in places[:8])
        wide = f"where {table.name} has {len(places)} columns ({names}; {ALL!r} is all)"
        raise invalid("column", f"given {wide}", None)
    for place in places:
        if not table.names[place] or table.names[place].startswith(_PANDAS_INDEX_PREFIX):
            # A row number is not part of an output, and could reveal if the row belongs to x or x'.
            text = f"column {place} of {table.name} must have a name, got none"
            hint = f"choose others with column=, or exclude={place}"
            error = ValueError(f"{text} (if it numbers the rows, {hint})")
            raise tag_error(error, "column")


def _excluded_column_numbers(table: Table, request: Request) -> set[int]:
    """Return the numbers of the excluded columns. Names that the table lacks are ignored."""
    left_out: set[int] = set()
    for entry in [] if request.exclude is None else list_wanted(request.exclude, "exclude"):
        if isinstance(entry, str):
            numbers = _read_range(entry, table, "exclude")
            left_out |= {*(numbers or _match_names(table.names or (), entry))}
        else:
            left_out.add(find_column_number(table, entry, "exclude"))
    return left_out


def check_excluded(tables: Sequence[Table], request: Request) -> None:
    """Raise an error if a column that the user excluded is in none of the tables."""
    for entry in [] if request.exclude is None else list_wanted(request.exclude, "exclude"):
        excluded = request._replace(exclude=entry)
        is_name = isinstance(entry, str)
        if not (is_name and any(_excluded_column_numbers(table, excluded) for table in tables)):
            find_column_number(tables[0], entry, "exclude")


def _match_names(names: Sequence[str], entry: Any) -> list[int]:
    """Return the numbers of the columns whose name is `entry`, or matches the pattern `entry`."""
    matches = entry.__eq__ if entry in names else partial(fnmatchcase, pat=entry)
    return [place for place, name in enumerate(names) if matches(name)]


def _is_column_range(entry: Any) -> bool:
    return isinstance(entry, str) and _RANGE.fullmatch(entry) is not None


def _is_pattern(entry: Any, names: Sequence[str] = ()) -> bool:
    """Return True if a choice is a pattern of names or a range of numbers, and not a name."""
    is_pattern = isinstance(entry, str) and _PATTERN.search(entry) is not None
    return (is_pattern or _is_column_range(entry)) and entry not in names


def _read_range(entry: Any, table: Table, argument: str) -> range | None:
    """Return the numbers of a range of columns such as "3-50", or None for another choice."""
    if not _is_column_range(entry) or entry in (table.names or ()):
        return None
    start, stop = map(int, entry.split("-"))
    start = integer(argument, start, 0, len(table.columns) - 1)
    return range(start, 1 + integer(argument, stop, start, len(table.columns) - 1))


def selects_all_columns(column: Any) -> bool:
    """Return True if the user's choice of columns is "*", the symbol for all columns."""
    return isinstance(column, str) and column == ALL


def needed_column_numbers(table: Table, request: Request) -> list[int]:
    """Return the indices of the columns of a table that must be read for a request.

    These columns contain the outputs, the labels (x or x') and the groups of rows. If the user must
    choose columns of outputs but did not, the columns of outputs are left out.
    """
    others = label_and_group_roles(table, request)
    rest = [place for place in range(len(table.columns)) if place not in others]
    is_needed = len(rest) > 1 if request.label is None else len(rest) != 1
    if request.is_open and is_needed and (request.label is not None or table.names is not None):
        return sorted(others)
    return sorted({*others, *choose_output_columns(table, request, rest)})


def label_and_group_roles(table: Table, request: Request) -> dict[int, str]:
    """Find the columns of a table that contain the labels and the groups of the rows.

    A label states if the output in the row was drawn on x or on x'. Rows in the same group may
    depend on each other. The result maps the number of each column to a name of this column for
    messages.
    """
    request, others = numbers_to_names(request, table), dict[int, str]()
    if request.label is not None:
        others[find_column_number(table, request.label, "label")] = "the label"
    if request.groups is not None:
        place = find_column_number(table, request.groups, "groups")
        if place in others:
            raise invalid("groups", "another column than the label", request.groups)
        others[place] = "groups"
    return others


def columns_with_placeholders(
    columns_read: Mapping[Any, Array], keys: Iterable[Any], size: int
) -> tuple[Array, ...]:
    """Return one array of length `size` for each key in `keys`: the column with this key.

    If this column was not read, the array has the same length but does not contain the values.
    """
    nothing = np.broadcast_to(np.zeros(1, np.bool_), size)
    return tuple(columns_read.get(key, nothing) for key in keys)


def are_x(labels: Array, place: str = "", label_x: Any = None) -> npt.NDArray[np.bool_]:
    """Return True for each output whose label states that it was drawn on the input x.

    Args:
        labels: one label per output, shape `(size,)`. A label is a bool, a number or a text that
            states if the output was drawn on the input x or on x'.
        place: words for messages that state where the labels are, such as the name of the file.
        label_x: the label that stands for x. None means that the labels 1, true, in and x stand for
            x, and the labels 0, false, out and x_prime stand for x'.

    Returns:
        An array of shape `(size,)`, True for outputs on x, and False for outputs on x'.

    Raises:
        ValueError: if a label is missing or unknown. If `label_x` is given, the function also
            raises ValueError if the labels do not have exactly two different values, or if
            `label_x` is not one of the two values.

    Example:
        >>> are_x(np.array(["x", "x_prime", "x"])).tolist()
        [True, False, True]
        >>> are_x(np.array(["daily", "never"]), label_x="never").tolist()
        [False, True]
    """
    # pandas stores missing labels as objects of several types, which cannot be sorted.
    if labels.dtype.kind in "Of":
        lost = [
            row
            for row, entry in enumerate(labels)
            # NaN is not equal to itself.
            if entry is None or (isinstance(entry, (float, np.floating)) and entry != entry)
        ]
        if lost:
            requirement = _LABEL_REQUIREMENT if label_x is None else "given"
            error = invalid(f"label in row {lost[0] + 1}{place}", requirement, labels[lost[0]])
            raise tag_error(error, "label")
    plain = labels.astype(str) if labels.dtype.kind in "OS" else labels
    values, which = np.unique(plain, return_inverse=True)
    # 1 and 0 appear as 1.0 and 0.0 in a column of floats.
    texts = [re.sub(r"^(-?\d+)\.0$", r"\1", str(label).strip()) for label in values.tolist()]
    shown = ", ".join(map(repr, texts[:4]))
    if label_x is not None:
        demanded = str(label_x).strip()
        if len(texts) != 2 or demanded not in texts:
            requirement = f"one of the two values of the labels{place} ({shown})"
            raise invalid("label_x", requirement, label_x)
        sides = [text == demanded for text in texts]
    else:
        usual_labels = _LABELS_OF_X + _LABELS_OF_X_PRIME
        unknown = [number for number, text in enumerate(texts) if text.lower() not in usual_labels]
        if unknown and len(texts) == 2:
            none = f"none is needed for {_LABEL_REQUIREMENT}"
            requirement = f"given: which of {shown}{place} stands for x ({none})"
            raise invalid("label_x", requirement, None)
        if len(unknown) == len(texts):
            demanded = f"two values ({_LABEL_REQUIREMENT}, or others with label_x=)"
            error = ValueError(f"labels{place} must have {demanded}, got {len(texts)}: {shown}")
            raise tag_error(error, "label")
        if unknown:
            row = int(np.flatnonzero(which.ravel() == unknown[0])[0])
            name, label = f"label in row {row + 1}{place}", values.tolist()[unknown[0]]
            raise tag_error(invalid(name, _LABEL_REQUIREMENT, label), "label")
        sides = [text.lower() in _LABELS_OF_X for text in texts]
    return np.array(sides, dtype=bool)[which.ravel()]


def list_wanted(column: Any, argument: str = "column") -> list[Column]:
    """Convert a user's choice of columns to a list of names and numbers of columns.

    A single name or number becomes a list with one entry.

    Raises:
        TypeError: if the choice contains an object that is neither a name nor a number.
        ValueError: if the choice is empty.
    """
    columns = [column] if isinstance(column, (str, int, np.integer)) else column
    if not isinstance(columns, (list, tuple)) or any(
        isinstance(entry, bool) or not isinstance(entry, (str, int, np.integer))
        for entry in columns
    ):
        raise mistyped(argument, "a name or number of a column, or a list of them", column)
    if not columns:
        raise invalid(argument, "at least one column", column)
    return list(columns)


def find_column_number(table: Table, column: Column, argument: str = "column") -> int:
    """Return the number of a column of a table. The argument is the column's name or number.

    Raises:
        ValueError: if the table lacks this column, or if several columns have this name.
    """
    if not isinstance(column, str):
        return integer(argument, column, 0, len(table.columns) - 1)
    if table.names is None:
        raise invalid(argument, f"a number, for {table.name} has no names of columns", column)
    if table.names.count(column) > 1:
        requirement = f"a number, for several columns of {table.name} have this name"
        raise invalid(argument, requirement, column)
    if column not in table.names:
        options = ", ".join(map(repr, table.names))
        text = f"{argument} must be one of {options} in {table.name}, got {column!r}"
        raise tag_error(ValueError(text), argument)
    return table.names.index(column)


# Frames are recognised by their methods, so their libraries need not be imported.


def read_data_frame_columns(value: Any, name: str, request: Request) -> Table | None:
    """Read the requested columns of a pandas, polars or pyarrow table, or of a structured array.

    Args:
        value: any object.
        name: name of the table in messages.
        request: the columns to read, as the user chose them. Other columns are not converted to
            arrays. All fields of a structured array are read.

    Returns:
        The table. Missing values become None, but a NaN in a column of numpy floats remains NaN. If
        `value` is not a table of these packages, the result is None.
    """
    names = list_column_or_field_names(value)
    if names is None:
        return None
    if isinstance(value, np.ndarray):
        return Table(name, names, tuple(value[key] for key in names))
    places = needed_column_numbers(Table(name, names, (np.empty(0),) * len(names)), request)
    columns_read = {place: convert_column(_get_column_at(value, place)) for place in places}
    size = len(columns_read[places[0]]) if columns_read else 0
    return Table(name, names, columns_with_placeholders(columns_read, range(len(names)), size))


def list_column_or_field_names(value: Any) -> tuple[str, ...] | None:
    """Return the column names of a data frame, or the field names of a structured array.

    If `value` is neither a data frame nor a structured array, return None.
    """
    if isinstance(value, np.ndarray):
        fields: tuple[str, ...] | None = value.dtype.names
        return fields
    if has_all(value, "column_names", "num_rows"):
        return tuple(map(str, value.column_names))
    is_table = has_all(value, "columns", "__getitem__", "to_numpy")
    return tuple(map(str, value.columns)) if is_table else None


def _get_column_at(frame: Any, place: int) -> Any:
    """Return the column at a position of a data frame, because names may occur twice."""
    if has_all(frame, "iloc"):
        return frame.iloc[:, place]
    if has_all(frame, "num_rows"):
        return frame.column(place)
    return frame.to_series(place) if has_all(frame, "to_series") else frame[frame.columns[place]]


def convert_column(values: Any) -> Array:
    """Convert a column of a data frame to a numpy array.

    Args:
        values: a pandas or polars Series, or a column of a pyarrow table.

    Returns:
        An array of shape `(size,)`. If the values have several types, or if some values are
        missing, the array has dtype object. A missing value is then None. A NaN in a column of
        numpy floats remains NaN. A missing time is NaT. Times with a time zone are converted to
        UTC.
    """
    is_arrow = has_all(values, "to_pylist")
    to_list = values.to_pylist if is_arrow else values.to_list
    kind: Any = getattr(values, "type" if is_arrow else "dtype", None)
    kind = kind.pyarrow_dtype if has_all(kind, "pyarrow_dtype") else kind
    zone = getattr(kind, "time_zone" if has_all(kind, "time_zone") else "tz", None)
    if has_all(values, "null_count"):  # polars and pyarrow, where NaN is no null
        count = values.null_count() if callable(values.null_count) else values.null_count
        if count and not str(kind).lower().startswith(("timestamp", "date", "duration")):
            return to_object_array(to_list())
        array: Array = np.asarray(values if is_arrow else values.to_numpy())
    else:
        array = (values if zone is None else values.dt.tz_convert(None)).to_numpy()
        if isinstance(kind, np.dtype) and kind.kind in "fc":
            return array
        lost = values.isna().to_numpy()
        if lost.any() and array.dtype.kind not in "mM":
            objects = to_object_array(to_list())
            objects[lost] = None
            return objects
    if array.dtype.kind in "mM":
        return attach_zone(array, zone)
    return answer_rows("outputs", to_list(), "") if array.dtype.kind == "O" else array


def attach_zone(array: Array, zone: Any) -> Array:
    """Store the original time zone of an array of UTC times in the dtype of this array.

    If `zone` is None, the array is returned unchanged.
    """
    if zone is None:
        return array
    return array.view(np.dtype(array.dtype, metadata={_ZONE: str(zone)}))


def zone_of(array: Array) -> str | None:
    """Return the stored original time zone of an array of UTC times, or None if none is stored."""
    return dict(array.dtype.metadata or {}).get(_ZONE)
