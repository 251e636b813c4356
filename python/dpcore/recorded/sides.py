"""Reading of recorded outputs on x and on x' (the two sides), with labels and groups of the rows.

The outputs come from files, frames or arrays. A value that dpcore cannot represent raises an error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import compress
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import numpy as np

from ..errors import has_masked, invalid, mistyped, tag_error
from ..files import columns as frames
from ..files.cells import Cells, Kind, columns_of_user_dtypes, plan_reread
from ..files.columns import Column, Request, Table
from ..files.formats import Reader, is_path, is_read_from_text_file, read_again, read_table
from ..files.opened import STDIN
from ..packages import has_all
from ..paths import name_path_errors
from ..records import Array
from .matching import add_empty_columns, add_number_format_columns, match_columns, match_time_units

Sides = tuple[Array, Array]

_MIN_DISTINCT_SCORES: Final = 20
"""Smallest number of distinct values in scores, if the other argument contains only 0 and 1."""

_LABEL_SAMPLE_ROWS: Final = 2**10
"""Number of first rows that usually show that an argument does not contain labels."""
_LABEL_ARGUMENT: Final = "a column's name or number, or labels, one for each row of outputs"

Groups = list[Hashable]
"""Type of groups: one group per row."""


def read_outputs(
    path: str | os.PathLike[str],
    column: Column | Sequence[Column] | None = None,
    reader: Reader | None = None,
) -> Array:
    r"""Read recorded outputs of a mechanism from a file, and return them as an array.

    In a text table (.csv, .tsv), a column is read as numbers if float64 can represent all digits of
    its cells. An empty cell becomes None. The first row is a header unless one of its cells is a
    number or occurs again in the same column. A .txt file has one output per line, and an empty
    line becomes None.

    Args:
        path: path of a file, or "-" for standard input. `dpcore.files.formats.FORMATS` lists the
            formats. The file may be compressed with gzip. Parquet requires pyarrow, or pandas with
            fastparquet. A file in Python's pickle format raises an error.
        column: name or number (from 0) of a column, a list of names or numbers, or "*" for all
            columns. For an .npz file, the name of an array. None is allowed if the file has only
            one column, or if its columns have no names.
        reader: settings for reading the file. The function appends a description of the file to the
            list `reader.tables`. If `reader` is None, default settings are used.

    Returns:
        An array of shape `(size,)` for one column, and `(size, columns)` for several columns. If
        the file is an .npy file and `column` is None, the array of the file is returned unchanged.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if the content of the file does not fit its format. The message states the line
            and the column.
        MemoryError: if memory cannot hold the outputs.
        OSError: if the file cannot be read.
        ImportError: if a parquet file needs a package that is not installed.

    Source:
        RFC 4180 for CSV. Numbers are read as by Python's `float`.

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
    request = Request("", column)
    rows: Array = read_and_align({"outputs": path}, request, [None], reader or Reader())[0][0].rows
    return rows


def get_display_name(value: Any, otherwise: str) -> str:
    """Return the name that reports show for recorded outputs.

    If `value` is a path, the result is the name of the file. Otherwise the result is `otherwise`.
    """
    if not is_path(value):
        return otherwise
    return "standard input" if str(value) == STDIN else Path(value).name


class ReadSide(NamedTuple):
    """Recorded outputs that were read from a file, a data frame or an array.

    Each row is one output. The groups and labels of the rows are included.

    Args:
        rows: the outputs. Files, data frames and tensors are converted to arrays. Other values are
            unchanged.
        titles: names of the columns for messages. The tuple is empty without columns.
        groups: group of each row, or None without groups. Rows of the same group may depend
            on each other.
        labels: label of each row (x or x'), or None if the labels are not in a column.
        cells: for each column, how its numbers are written (such as 1.5 or 1.50), or None if the
            column was not read from text.
    """

    rows: Any
    titles: tuple[str, ...]
    groups: Groups | None
    labels: Array | None = None
    cells: Sequence[Cells | None] = ()


def read_and_align(
    values: Mapping[str, Any], request: Request, group_columns: Sequence[Any], reader: Reader
) -> tuple[list[ReadSide], tuple[str, ...]]:
    """Read the recorded outputs on x and on x', so that their columns correspond to each other.

    If both tables have column names, columns with equal names correspond. Otherwise, columns at
    equal positions correspond.

    Args:
        values: mapping whose two values are the outputs on x and the outputs on x'. Each value is a
            path, a table or column of pandas, polars or pyarrow, a torch tensor, or another object.
            The keys are names of arguments for error messages. A mapping with one value is also
            allowed.
        request: columns to read from files and data frames. Column numbers refer to the first
            table.
        group_columns: for each of the values, the name or number of the column of groups, an array
            with one group per row, or None if there are no groups.
        reader: settings for reading files. The function appends a description of each file and data
            frame to the list `reader.tables`.

    Returns:
        A pair: a list with the outputs on x and the outputs on x', and notes for the report. A note
        states that a column has different units or time zones on x and on x'.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if the content of a file does not fit its format, if a column or a group is
            missing, or if the column names differ on x and on x'.
        MemoryError: if memory cannot hold the outputs.
        OSError: if a file cannot be read.
    """
    requests: list[Request] = []
    tables: list[Table | None] = []
    names = None
    for (name, value), column in zip(values.items(), group_columns, strict=True):
        of = column if is_str_or_int(column) else None
        requests.append(request._replace(names=names, groups=of))
        tables.append(_open_table(value, requests[-1], name, reader))
        names = tables[0] and tables[0].names
    for argument, choice in (("column", request.column), ("exclude", request.exclude)):
        if choice is not None and not any(tables):
            raise invalid(argument, "None where outputs are arrays", choice)
    if reader.dtype and not any(map(is_read_from_text_file, tables)):
        raise invalid("dtype", "None where outputs are no text, such as CSV or JSON", reader.dtype)
    widths = [len(table.columns) if table else 0 for table in tables]
    by_position = len({table is None or table.names is None for table in tables}) > 1
    again = partial(_reread_table, list(values.values()), requests, reader)
    chosen, notes = _match_tables(tables, requests, again)
    _refuse_dtype_of_unread_columns(chosen, requests, reader)
    tables.clear()
    sides = []
    for at, (name, value) in enumerate(values.items()):
        table, places, others = chosen[at]
        labels, listed, titles = None, group_columns[at], tuple[str, ...]()
        if table is None:
            rows = _to_array_if_series_or_tensor(value)
        else:
            # A whole array that is the output may have any shape.
            rows = table.whole
            if places:
                rows, titles = frames.array_and_names(table, places)
            if table.names is not None or table.found.kind != "frame":
                shown = [*places, *others] if places else []
                reader.tables.append(frames.describe_reading(table, shown, widths[at], by_position))
            for place, what in others.items():
                if what == "groups":
                    listed, value = table.columns[place], None
                else:
                    labels = table.columns[place]
        listed = _read_groups(name.replace("outputs", "groups"), listed, value, rows, reader)
        cells = [] if table is None else [table.cells.get(place) for place in places]
        sides.append(ReadSide(rows, titles, listed, labels, cells))
        # The columns are released here, so that memory does not hold them twice.
        chosen[at] = None, [], {}
    return sides, notes


def _refuse_dtype_of_unread_columns(
    chosen: Sequence[tuple[Table | None, list[int], dict[int, str]]],
    requests: Sequence[Request],
    reader: Reader,
) -> None:
    """Raise an error if the argument `dtype` names a column that is not read."""
    lacking = [] if isinstance(reader.dtype, str) else [*reader.dtype]
    for (table, places, others), request in zip(chosen, requests, strict=True):
        if table is None or not is_read_from_text_file(table):
            continue
        named = columns_of_user_dtypes(table, request, [*lacking])
        for name, place in named.items():
            if place not in (*places, *others):
                every = table.names or range(len(table.columns))
                names = ", ".join(repr(every[at]) for at in (*places, *others))
                raise invalid("dtype", f"of a chosen column of {table.name} ({names})", name)
        lacking = [name for name in lacking if name not in named]
        if lacking and request is requests[-1]:
            frames.find_column_number(table, lacking[0], "dtype")


def _match_tables(
    tables: Sequence[Table | None],
    requests: Sequence[Request],
    again: Callable[[int, Table, Mapping[int, Kind]], Table],
) -> tuple[list[tuple[Table | None, list[int], dict[int, str]]], tuple[str, ...]]:
    """Choose the output columns of each table, in one order and with times in one unit.

    `again` reads a text table again with other types of columns.

    Returns:
        A list and notes. For each table, the list holds a tuple: the table, the numbers of its
        output columns, and a mapping from the numbers of its columns of labels and groups to their
        names in messages. The notes describe different units and time zones.
    """
    every = [name for table in tables if table for name in table.names or ()]
    wholes = [table and add_empty_columns(table, every) for table in tables]
    frames.check_excluded([table for table in wholes if table], requests[0])
    chosen: list[tuple[Table | None, list[int], dict[int, str]]] = []
    for table, request in zip(wholes, requests, strict=True):
        others = frames.label_and_group_roles(table, request) if table else {}
        places = _choose_outputs(table, request, others) if table else []
        chosen.append((table, places, others))
    if len(wholes) == 2 and wholes[0] and wholes[1]:
        places = match_columns(wholes[0], chosen[0][1], wholes[1], chosen[1][1])
        chosen[1] = wholes[1], places, chosen[1][2]
    numbers = [places for table, places, _ in chosen if table]
    decided: list[dict[int, Kind]] = [{} for _ in chosen]
    # Each step only widens the types, so the loop ends.
    while any(kinds := plan_reread([table for table, *_ in chosen if table], numbers)):
        rest = iter(kinds)
        for at, (table, places, others) in enumerate(chosen):
            if table and (needed := next(rest)):
                decided[at] |= needed
                whole = add_empty_columns(again(at, table, decided[at]), every)
                chosen[at] = whole, places, others
    first, second = chosen[0][0], chosen[-1][0]
    if len(wholes) < 2 or not (first and second):
        return chosen, ()
    *matched, notes = match_time_units(first, chosen[0][1], second, chosen[1][1])
    return [(matched[at], *chosen[at][1:]) for at in (0, 1)], notes


def _reread_table(
    values: Sequence[Any],
    requests: Sequence[Request],
    reader: Reader,
    table_number: int,
    table: Table,
    kinds: Mapping[int, Kind],
) -> Table:
    """Read the text table number `table_number` again, with the types `kinds` for some columns."""
    with name_path_errors(Path(values[table_number]), "read", "outputs"):
        return read_again(Path(values[table_number]), requests[table_number], reader, table, kinds)


def _open_table(value: Any, request: Request, name: str, reader: Reader) -> Table | None:
    """Read the table of a file or a frame; return None for other values."""
    if is_path(value):
        with name_path_errors(Path(value), "read", name):
            return read_table(Path(value), request, reader)
    others = {"label": request.label, "groups": request.groups}
    needed = [argument for argument, column in others.items() if column is not None]
    is_array = isinstance(value, np.ndarray)
    if is_array and request.is_open and not needed:
        return None
    table = frames.read_data_frame_columns(value, name, request)
    if table is None and needed:
        if not is_array or value.ndim != 2:
            requirement = f"a file, a frame or a matrix where {needed[0]} is a column"
            raise mistyped(name, requirement, value)
        table = Table(name, None, tuple(value.T))
    return table


def _choose_outputs(table: Table, request: Request, others: Mapping[int, str]) -> list[int]:
    """Return the numbers of the output columns, or [] if a file of one array is read as a whole."""
    if table.whole is not None and request.is_open and not others:
        return []
    rest = [place for place in range(len(table.columns)) if place not in others]
    if request.label is not None and request.is_open and len(rest) != 1:
        # Each additional column, such as a row number, could reveal the side.
        wide = f"where a file has {len(rest)} columns beside the label"
        raise invalid("column", f"given {wide} (a name, or a list of names)", None)
    places = frames.choose_output_columns(table, request, rest, True)
    for place, what in others.items():
        if place in places:
            raise invalid("column", f"another one than {what}", request.column)
    return places


def split_outputs_by_label(
    outputs: Any, label: Any, request: Request, label_x: Any, groups: Any, reader: Reader
) -> tuple[Sides, tuple[str, ...], tuple[Groups, Groups] | None, tuple[str, ...]]:
    """Divide recorded outputs by their labels into outputs on x and outputs on x'.

    Args:
        outputs: all outputs (on x and on x'), as a path, a data frame, an array or another object.
        label: name or number of a column of `outputs`, or an array with one label per row.
        request: columns that hold the outputs.
        label_x: the label that means an output on x. None means that 1, True, "in" and "x" have
            this meaning.
        groups: name or number of the column of groups, an array with one group per row, or None if
            there are no groups. Rows of the same group may depend on each other.
        reader: settings for reading files. The function appends a description of the file or data
            frame to the list `reader.tables`.

    Returns:
        A tuple of four values. The first contains the outputs on x and the outputs on x', in the
        order of the rows. The second contains the column names of the outputs, for messages. The
        third contains the groups of the rows on x and on x', or is None. The fourth contains notes
        for the report.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if a column, a label or a group is missing, if a label is unknown, if the number
            of labels or groups differs from the number of rows, or if all rows have the same label.
    """
    request = request._replace(label=label if is_str_or_int(label) else None)
    read = read_and_align({"outputs": outputs}, request, [groups], reader)[0][0]
    rows, labels, place = read.rows, read.labels, f" of {get_display_name(outputs, 'outputs')}"
    if labels is None:
        rows = _outputs_to_array(rows)
        labels, place = _read_label_argument(label, outputs, len(rows), reader), ""
    is_x = frames.are_x(labels, place, label_x)
    sides = rows[is_x], rows[~is_x]
    if not len(sides[0]) or not len(sides[1]):
        sizes = len(sides[0]), len(sides[1])
        raise invalid("label", "a column with rows for both sides", sizes)
    cells = [
        [
            each and each._replace(codes=None if each.codes is None else each.codes[side])
            for each in read.cells
        ]
        for side in (is_x, ~is_x)
    ]
    sides, titles, notes = add_number_format_columns(sides, cells, read.titles)
    if read.groups is None:
        return sides, titles, None, notes
    listed = tuple(list(compress(read.groups, side)) for side in (is_x, ~is_x))
    return sides, titles, cast(tuple[Groups, Groups], listed), notes


def group_labels_to_integers(first: Groups, second: Groups) -> Sides:
    """Convert the groups of the rows on x, and the groups of the rows on x', to integers.

    The result is a pair of arrays, for x and for x'. Each array contains the number of the group of
    each row. In each array, the groups are numbered from 0 in the order of their first rows.

    Raises:
        ValueError: if the same group occurs on x and on x'.

    Example:
        >>> group_labels_to_integers(["a", "b", "a"], ["c"])
        (array([0, 1, 0]), array([0]))
    """
    from ..divergence.points import integer_for_each_label

    shared = set(first) & set(second)
    if shared:
        # Rows of this group would choose the event on one side and be counted on the other.
        requirement = (
            f"other groups on x than on x' ({len(shared):,} are on both sides; where their numbers "
            "start anew in each file, call them 'x 1' and 'x_prime 1')"
        )
        raise invalid("groups", requirement, min(shared, key=first.index))
    return integer_for_each_label(first), integer_for_each_label(second)


def _read_groups(name: str, groups: Any, outputs: Any, rows: Any, reader: Reader) -> Groups | None:
    """Return the group of each row, or None without groups; raise an error if one is missing."""
    from ..divergence.points import read_labels

    if groups is None:
        return None
    if has_masked(groups):
        raise invalid(name, "groups without masked entries", groups)
    _require_same_index(name, groups, outputs)
    labels = read_labels(name, _labels_or_groups(groups, name, reader), len(rows))
    if None in labels:
        requirement = "a group for each row, none of them missing"
        raise invalid(name, requirement, f"nothing in row {labels.index(None) + 1}")
    return labels


def is_str_or_int(value: Any) -> bool:
    """Return True if a value is a str or an int, that is, the name or number of a column."""
    return isinstance(value, (str, int, np.integer)) and not isinstance(value, bool)


def _outputs_to_array(values: Any) -> Array:
    """Convert outputs to an array with one row per output."""
    # Rows of different lengths do not form an array.
    with suppress(ValueError):
        if (rows := np.asarray(values)).ndim:
            return rows
    raise mistyped("outputs", "an array with one row an output", values)


def _labels_or_groups(values: Any, name: str, reader: Reader) -> Any:
    """Read labels or groups that the user passed as a file, a frame or an array."""
    return read_and_align({name: values}, Request(""), [None], reader)[0][0].rows


def _require_same_index(name: str, values: Any, outputs: Any) -> None:
    """Raise an error if labels or groups are a Series whose index differs from the outputs'."""
    indexed = [frame.index for frame in (values, outputs) if has_all(frame, "index")]
    indices = [frame for frame in indexed if has_all(frame, "equals")]
    if len(indices) == 2 and not indices[1].equals(indices[0]):
        # One of them was sorted or filtered, so matching by position would mix up the rows.
        what = "labels" if name == "label" else name
        raise invalid(name, f"{what} with the index of outputs", indices[0])


def _read_label_argument(label: Any, outputs: Any, size: int, reader: Reader) -> Array:
    """Return the labels that the user passed as an array, one per row, shape `(size,)`."""
    if has_masked(label):
        raise invalid("label", "labels without masked entries", label)
    _require_same_index("label", label, outputs)
    values = _labels_or_groups(label, "label", reader)
    try:
        array = np.asarray(values)
    except ValueError:
        raise mistyped("label", _LABEL_ARGUMENT, label) from None
    flat = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if flat.ndim != 1 or flat.dtype.kind not in "buifUSO":
        raise mistyped("label", _LABEL_ARGUMENT, label)
    if len(flat) != size:
        raise invalid("label", f"one for each of the {size:,} rows of outputs", flat.shape)
    return flat


def _to_array_if_series_or_tensor(value: Any) -> Any:
    """Convert a Series or a torch tensor (also on a GPU) to an array; return others unchanged."""
    if has_all(value, "detach", "cpu"):
        tensor = value.detach().cpu()
        # numpy has no bfloat16. float32 represents its values exactly.
        return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()
    is_column = has_all(value, "to_numpy", "dtype") or has_all(value, "to_numpy", "null_count")
    return frames.convert_column(value) if is_column else value


def refuse_unlike_missing_marks(sides: Sides) -> None:
    """Raise an error if missing outputs are marked by None on one input, and by NaN on the other.

    An empty cell of a file is read as None, but a missing value in a data frame or array is NaN. If
    missing outputs were None on x and NaN on x', every missing output would look like a leak.

    Args:
        sides: the outputs on x and the outputs on x'.

    Raises:
        ValueError: if all missing outputs on one input are None, and all missing outputs on the
            other input are NaN.
    """
    first, second = map(_find_none_and_nan, sides)
    if first and second and not first & second:
        other, own = (" and ".join(marks) for marks in (first, second))
        text = f"with what is missing marked as in outputs ({other}), got {own}"
        raise tag_error(ValueError(f"outputs_prime must be {text}"), "outputs_prime")


def _find_none_and_nan(side: Array) -> set[str]:
    """Return the set of "None" and "NaN" that occur among the outputs."""
    if side.dtype.kind == "f":
        return {"NaN"} if np.isnan(side).any() else set()
    if side.dtype != object:
        return set()
    entries = [
        entry for entry in side.ravel().tolist() if entry is None or isinstance(entry, float)
    ]
    return {
        "None" if entry is None else "NaN" for entry in entries if entry is None or entry != entry
    }


def refuse_labels(sides: Sides) -> None:
    """Raise an error if the outputs on x or on x' seem to be labels instead of outputs.

    Functions of scikit-learn take scores and labels as two arguments. A user could by mistake pass
    labels to dpcore in the same way, as the outputs on x'. The result of the audit would then have
    no meaning.

    Args:
        sides: the arrays that the user passed as outputs on x and as outputs on x'.

    Raises:
        ValueError: in two cases. In the first case, exactly one of the two arrays is an array of
            bool. In the second case, the arrays have equal lengths, one array contains only 0 and 1
            (or only -1 and 1), and the other array contains many different numbers.
    """
    for name, side, other in (("outputs_prime", *sides[::-1]), ("outputs", *sides)):
        if _are_labels_for(side, other):
            which = "on x'" if name == "outputs_prime" else "on x"
            raise invalid(name, f"outputs {which} (label= is for labels)", side)


def _are_labels_for(side: Array, scores: Array) -> bool:
    if side.dtype.kind == "b" or scores.dtype.kind == "b":
        return side.dtype.kind == "b" != scores.dtype.kind
    is_number = [values.dtype.kind in "uif" for values in (side, scores)]
    if not all(is_number) or len(side) != len(scores) or side.size != len(side):
        return False
    if not np.isin(side[:_LABEL_SAMPLE_ROWS], (-1, 0, 1)).all():
        return False
    if np.unique(side).tolist() not in ([0, 1], [-1, 1]):
        return False
    return len(np.unique(scores, axis=0)) >= min(_MIN_DISTINCT_SCORES, len(scores) // 2 + 1)
