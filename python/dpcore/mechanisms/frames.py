"""Frames that a mechanism returns, and what a call of it says once, however many rows it has.

Column names, field names, categories, the start of a row numbering and the shape of the rows are
one observation a call. Rows of one call share them: no count of rows may use them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "call_facts", "frame_to_rows", "is_frame", "is_series", "is_table_class", "names_its_columns",
    "numbering_of", "table_to_mapping",
]  # fmt: skip

_ROW_TYPE_NAMES = {list: "list", tuple: "tuple", np.ndarray: "array"}
"""Types of rows that are read alike, so that nothing but the type distinguishes them."""


def is_frame(value: Any) -> bool:
    """Return True for a table like those of pandas: columns, an index and access by place."""
    cls = type(value)
    return all(hasattr(cls, name) for name in ("columns", "index", "iloc", "dtypes"))


def is_table_class(cls: type) -> bool:
    """Return True for a class of which `table_to_mapping` takes the objects."""
    is_pandas = hasattr(cls, "iloc") and hasattr(cls, "index")
    return is_pandas or hasattr(cls, "to_pydict") or hasattr(cls, "get_columns")


def names_its_columns(value: Any) -> bool:
    """Return True for a table: of pandas, polars or pyarrow, or an array with fields.

    A series counts where its index does not just number its rows, or it has categories.
    """
    if is_series(value):
        return numbering_of(value.index) != (0, 1) or hasattr(value.dtype, "categories")
    fields = getattr(getattr(value, "dtype", None), "names", None)
    return is_table_class(type(value)) or bool(fields)


def is_series(value: Any) -> bool:
    """Return True for a column like those of pandas."""
    cls = type(value)
    return hasattr(cls, "iloc") and hasattr(cls, "to_frame") and not hasattr(cls, "columns")


def frame_to_rows(frame: Any, fields: tuple[str, ...] | None = None) -> npt.NDArray[Any]:
    """Return a frame as an array with one row for each of its rows.

    Args:
        frame: see `is_frame`.
        fields: names of the fields in other calls, without names where those were a table of
            numbers; None where no other call is known.

    Returns:
        Shape `(size, columns)` where all columns are numbers of one kind and the index numbers
        the rows; otherwise a structured array with a field for each column. An index that does
        not number the rows is the last field, named by ``index.name`` or "index".
    """
    columns = [_read_column(frame.iloc[:, place]) for place in range(frame.shape[1])]
    kinds = {column.dtype.kind for column in columns}
    index = numbering_of(frame.index) is None
    if fields is not None:
        index = len(fields) > len(columns)
    if fields == () or (fields is None and not index and len(kinds) <= 1 and kinds <= set("biufc")):
        return np.asarray(frame)
    names = list(frame.columns)
    if index:
        columns.append(_read_column(frame.index))
        names.append("index" if frame.index.name is None else frame.index.name)
    kept = [(name, column.dtype) for name, column in zip(_make_unique(names), columns, strict=True)]
    rows = np.empty(len(frame), dtype=kept)
    for (name, _), column in zip(kept, columns, strict=True):
        rows[name] = column
    return rows


def table_to_mapping(table: Any) -> dict[Any, Any]:
    """Return a table as a mapping from names to lists.

    Args:
        table: a frame or a series of pandas, a frame of polars, a table of pyarrow, or an array
            with fields.

    Returns:
        The columns in their order; of a series its values by their labels, or "values" and
        "index" where labels repeat. Besides, where they say something: an index that does not
        number the rows from 0, names of index and columns, categories.

    Example:
        >>> table_to_mapping(np.array([(1, 0.5)], dtype=[("count", int), ("share", float)]))
        {'count': [1], 'share': [0.5]}
    """
    if isinstance(table, (np.ndarray, np.void)):
        return {name: table[name].tolist() for name in table.dtype.names or ()}
    if hasattr(table, "to_pydict"):
        return dict(table.to_pydict())
    if not hasattr(table, "iloc"):
        return {column.name: column.to_list() for column in table.get_columns()}
    labels, number = _read_column(table.index).tolist(), numbering_of(table.index)
    found, has_labels = _columns_to_lists(table, labels if number is None else [])
    names = {f"name of the {what}": getattr(getattr(table, what, None), "name", None)
             for what in ("index", "columns")}  # fmt: skip
    if is_series(table):
        names["name of the column"] = table.name
    if number != (0, 1) and not has_labels:
        name = names.pop("name of the index")
        _add_entry(found, "index" if name is None else name, labels)
    for what, name in names.items():
        if name is not None:
            _add_entry(found, what, name)
    for what, fact in _frame_facts(table).items():
        if what.startswith("categories"):
            _add_entry(found, what, list(fact))
    return found


def _columns_to_lists(table: Any, labels: list[Any]) -> tuple[dict[Any, Any], bool]:
    """Return the columns of a frame, or of a series its values, and whether labels are the keys."""
    if is_series(table):
        values = _read_column(table).tolist()
        if labels and len(set(labels)) == len(labels):
            return dict(zip(labels, values, strict=True)), True
        return {"values": values}, False
    names = list(table.columns)
    names = names if len(set(names)) == len(names) else _make_unique(names)
    columns = [_read_column(table.iloc[:, place]).tolist() for place in range(len(names))]
    return dict(zip(names, columns, strict=True)), False


def _add_entry(found: dict[Any, Any], name: Any, value: Any) -> None:
    """Add an entry under a name that no column has."""
    while name in found:
        name = f"{name}_"
    found[name] = value


def numbering_of(index: Any) -> tuple[int, int] | None:
    """Return start and step of an index that numbers the rows; None for any other index.

    A range with another step, and whole numbers that follow each other, number the rows too.
    """
    start, step = getattr(index, "start", None), getattr(index, "step", None)
    if isinstance(start, int) and isinstance(step, int):
        return start, step
    values = np.asarray(index)
    if values.ndim != 1 or values.dtype.kind not in "iu" or (np.diff(values) != 1).any():
        return (0, 1) if len(values) == 0 else None
    return (int(values[0]), 1) if len(values) else (0, 1)


def call_facts(answer: Any) -> dict[str, Any]:
    """Return what one call says once, by what a message calls it.

    Args:
        answer: what the mechanism returned, before it becomes an array.

    Example:
        >>> call_facts(np.zeros((2, 3)))
        {'type of the answer': 'ndarray', 'shape of the rows': (3,)}
    """
    facts: dict[str, Any] = {"type of the answer": type(answer).__name__}
    if is_frame(answer) or is_series(answer):
        return facts | _frame_facts(answer)
    if isinstance(answer, (list, tuple)):
        kinds = set(map(type, answer))
        if len(kinds) == 1 and kinds <= set(_ROW_TYPE_NAMES):
            facts["type of the rows"] = _ROW_TYPE_NAMES[kinds.pop()]
        return facts
    names = getattr(getattr(answer, "dtype", None), "names", None)
    if names:
        facts["field names"] = tuple(names)
    if isinstance(answer, np.ndarray):
        facts["shape of the rows"] = answer.shape[1:]
    return facts


def _frame_facts(frame: Any) -> dict[str, Any]:
    columns = [frame] if is_series(frame) else []
    facts: dict[str, Any] = {}
    if columns:
        facts["name of the column"] = (frame.name,)
    else:
        facts["columns"] = tuple(frame.columns)
        columns = [frame.iloc[:, place] for place in range(frame.shape[1])]
    for column in columns:
        categories = getattr(column.dtype, "categories", None)
        if categories is not None:
            facts[f"categories of column {column.name!r}"] = tuple(categories)
    facts["name of the index"] = (frame.index.name,)
    numbering = numbering_of(frame.index)
    if numbering is not None:
        facts["start of the index"] = numbering
    return facts


def _read_column(column: Any) -> npt.NDArray[Any]:
    """Return a column as an array, with None for missing values that have no number."""
    values = np.asarray(column)
    if values.dtype != object:
        return values.astype(object) if values.dtype.kind in "USV" else values
    found = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        # The missing value of nullable columns is equal to nothing, and has no truth.
        found[place] = None if type(value).__name__ == "NAType" else value
    return found


def _make_unique(names: list[Any]) -> list[str]:
    """Return names as different strings."""
    found: list[str] = []
    for name in names:
        text = str(name) or "_"
        while text in found:
            text += "_"
        found.append(text)
    return found
