"""Conversion of what a mechanism returns (its answer) to an array with one row per output.

numpy may change values: it converts numbers to strings if an answer also holds strings, rounds
large integers to floats, and removes NULs from the ends of strings. It refuses rows of different
lengths. If numpy would change or refuse an answer, every output is stored as a Python object.

All rows of one call have the same shape. If the answer is a table, its column names, its categories
and the start of its index belong to all rows. An audit must not count these facts once per row.
"""

from __future__ import annotations

import copy
import datetime
import enum
import pickle
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, is_dataclass
from functools import lru_cache
from itertools import chain, islice
from numbers import Number
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import has_masked, invalid, mistyped
from ..events.event import numpy_of
from ..packages import has_all, has_array_method, is_tensor
from .spellings import Lines, format_and_reread_numbers

_ROW_TYPE_NAMES = {list: "list", tuple: "tuple", np.ndarray: "array"}
"""Types of rows that become equal arrays. Only the name of the type distinguishes these rows."""
_MAX_EXACT_INTEGER: Final = 2**53
_MAX_PADDING_FACTOR: Final = 8
"""Strings are stored as objects if an array would need this factor times their total length."""
_SMALL_ARRAY_CHARACTERS: Final = 2**20
_MAX_STRING_CHARACTERS: Final = 2**16
"""Longest string that is stored in an array of strings, with four bytes per character."""
_PLAIN_CLASSES: Final[dict[type, type]] = {np.float64: float, np.int64: int, np.bool_: bool}
"""Types of numpy's scalars, each with the Python type that counts as the same type."""
_SIGNATURE: Final = "dpcore.signature"
"""Key in a dtype's metadata for the original types of the rows."""
_MAX_NESTING_DEPTH: Final = 64
"""Largest depth of nested containers that is read."""
_MAX_AXES: Final = 16
_SIZE_SAMPLE: Final = 32
"""Number of outputs, and of entries of each, from which the size of outputs is estimated."""
_FIRST_COPIED_ANSWERS: Final = 16
"""Number of answers whose parts are compared with parts of earlier answers."""
_IMMUTABLE_TYPES: Final = (
    Number, str, bytes, type(None), np.generic, enum.Enum, frozenset, type,
    datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo,
)  # fmt: skip


def is_frame(value: Any) -> bool:
    """Return True if a value is a table with named columns, like a pandas DataFrame."""
    return has_all(type(value), "columns", "index", "iloc", "dtypes")


def is_table_class(cls: type) -> bool:
    """Return True if objects of a class are tables that `table_to_mapping` can convert."""
    kinds = ("iloc", "index"), ("to_pydict",), ("get_columns",)
    return any(has_all(cls, *kind) for kind in kinds)


def has_named_columns(value: Any) -> bool:
    """Return True for a table of pandas, polars or pyarrow, and for an array with fields.

    The result is also True for a pandas Series that has categories, or whose index is not the
    default.
    """
    if is_series(value):
        return numbering_of(value.index) != (0, 1) or has_all(value.dtype, "categories")
    return is_table_class(type(value)) or bool(_list_dtype_fields(value))


def _list_dtype_fields(value: Any) -> tuple[str, ...]:
    """List the field names of a structured array; return an empty tuple for other values."""
    return value.dtype.names or () if isinstance(value, (np.ndarray, np.void)) else ()


def is_series(value: Any) -> bool:
    """Return True if a value is one column with an index, like a pandas Series."""
    cls = type(value)
    return has_all(cls, "iloc", "to_frame") and not has_all(cls, "columns")


def frame_to_rows(frame: Any, fields: tuple[str, ...] | None = None) -> npt.NDArray[Any]:
    """Convert a data frame to an array with the same number of rows.

    Args:
        frame: a table like a pandas DataFrame.
        fields: field names of the arrays from other calls of the same mechanism. () means that
            these arrays had no fields. None means that the other calls are unknown.

    Returns:
        An array of shape `(size, columns)` if all columns contain numbers of one kind and the index
        contains only row numbers. Otherwise, the result is a structured array with one field per
        column. An index of another kind becomes the last field, ``index.name`` or "index".
    """
    columns = [_column_to_array(column) for column in _list_series(frame)]
    kinds = {column.dtype.kind for column in columns}
    index = numbering_of(frame.index) is None
    if fields is not None:
        index = len(fields) > len(columns)
    if fields == () or (fields is None and not index and len(kinds) <= 1 and kinds <= set("biufc")):
        return np.asarray(frame)
    names = list(frame.columns)
    if index:
        columns.append(_column_to_array(frame.index))
        names.append("index" if frame.index.name is None else frame.index.name)
    fields_of_row = [
        (name, column.dtype) for name, column in zip(_suffix_repeats(names), columns, strict=True)
    ]
    rows = np.empty(len(frame), dtype=fields_of_row)
    for (name, _), column in zip(fields_of_row, columns, strict=True):
        rows[name] = column
    return rows


def table_to_mapping(table: Any) -> dict[Any, Any]:
    """Convert a table to a dictionary from the name of a column to the list of its values.

    Args:
        table: a pandas DataFrame or Series, a polars DataFrame, a pyarrow Table, or an array with
            fields.

    Returns:
        The dictionary, in the order of the columns. For a Series, the index labels are the keys of
        the values. If labels repeat or are only row numbers, "values" is the only key for all
        values. The dictionary also contains the categories, the names of the index and of the
        columns, and the index if it is not 0, 1, 2, ...

    Example:
        >>> table_to_mapping(np.array([(1, 0.5)], dtype=[("count", int), ("share", float)]))
        {'count': [1], 'share': [0.5]}
    """
    if isinstance(table, (np.ndarray, np.void)):
        return {name: table[name].tolist() for name in _list_dtype_fields(table)}
    if has_all(table, "to_pydict"):
        return dict(table.to_pydict())
    if not has_all(table, "iloc"):
        return {column.name: column.to_list() for column in table.get_columns()}
    labels, number = _column_to_array(table.index).tolist(), numbering_of(table.index)
    columns_read, has_labels = _columns_and_is_by_label(table, labels if number is None else [])
    names = {"name of the index": table.index.name}
    if is_series(table):
        names["name of the column"] = table.name
    else:
        names["name of the columns"] = table.columns.name
    if number != (0, 1) and not has_labels:
        name = names.pop("name of the index")
        _add_entry_under_unused_name(columns_read, "index" if name is None else name, labels)
    for what, name in names.items():
        if name is not None:
            _add_entry_under_unused_name(columns_read, what, name)
    for what, categories in _list_categories(table).items():
        _add_entry_under_unused_name(columns_read, what, list(categories))
    return columns_read


def column_names(answer: Any) -> tuple[Any, ...]:
    """Return the column names of a data frame, or the name of a series; () for other values."""
    if is_series(answer):
        return () if answer.name is None else (answer.name,)
    return tuple(answer.columns.tolist()) if is_frame(answer) else ()


def _list_series(table: Any) -> list[Any]:
    """Return a list of the columns of a data frame, or a list with a series itself."""
    if is_series(table):
        return [table]
    return [table.iloc[:, place] for place in range(table.shape[1])]


def _columns_and_is_by_label(table: Any, series_labels: list[Any]) -> tuple[dict[Any, Any], bool]:
    """Return a mapping from names to lists, and True if the names are the labels of a series."""
    columns = [_column_to_array(column).tolist() for column in _list_series(table)]
    if is_series(table):
        if series_labels and len(set(series_labels)) == len(series_labels):
            return dict(zip(series_labels, columns[0], strict=True)), True
        return {"values": columns[0]}, False
    names = list(table.columns)
    names = names if len(set(names)) == len(names) else _suffix_repeats(names)
    return dict(zip(names, columns, strict=True)), False


def _add_entry_under_unused_name(mapping: dict[Any, Any], name: Any, value: Any) -> None:
    """Add an entry to a mapping; append "_" to its name while the name is already a key."""
    while name in mapping:
        name = f"{name}_"
    mapping[name] = value


def numbering_of(index: Any) -> tuple[int, int] | None:
    """Return the first number and the step of a table index that contains only row numbers.

    Such an index is a range, or has consecutive whole numbers. For other indexes, return None.
    """
    if has_all(index, "start", "step") and isinstance(index.start, int):
        return index.start, int(index.step)
    values = np.asarray(index)
    if values.ndim != 1 or values.dtype.kind not in "iu" or (np.diff(values) != 1).any():
        return (0, 1) if len(values) == 0 else None
    return (int(values[0]), 1) if len(values) else (0, 1)


def find_answer_facts(answer: Any) -> dict[str, Any]:
    """Return a dictionary of facts about one return value of a mechanism, such as its type.

    Args:
        answer: return value of a mechanism, before it is converted to an array.

    Example:
        >>> find_answer_facts(np.zeros((2, 3)))
        {'type of the answer': 'ndarray', 'shape of the rows': (3,)}
    """
    facts: dict[str, Any] = {"type of the answer": type(answer).__name__}
    if is_frame(answer) or is_series(answer):
        return facts | _index_and_column_facts(answer)
    if isinstance(answer, (list, tuple)):
        kinds = set(map(type, answer))
        if len(kinds) == 1 and kinds <= set(_ROW_TYPE_NAMES):
            facts["type of the rows"] = _ROW_TYPE_NAMES[kinds.pop()]
        return facts
    names = _list_dtype_fields(answer)
    if names:
        facts["field names"] = tuple(names)
    if isinstance(answer, np.ndarray):
        facts["shape of the rows"] = answer.shape[1:]
        columns = {name: answer[name] for name in names} if names else {"": answer}
        facts |= _time_dtype_facts(columns)
    return facts


def _time_dtype_facts(columns: Mapping[Any, Any]) -> dict[str, tuple[str, ...]]:
    """Return the dtype of each column of times. A key is the name of this fact in messages."""
    return {
        f"type of {f'column {name!r}' if name else 'the times'}": (str(column.dtype),)
        for name, column in columns.items()
        if getattr(column.dtype, "kind", "") in ("m", "M")
    }


def _index_and_column_facts(frame: Any) -> dict[str, Any]:
    is_column = is_series(frame)
    names = {"name of the column": (frame.name,)} if is_column else {"columns": (*frame.columns,)}
    facts = {**names, **_list_categories(frame), "name of the index": (frame.index.name,)}
    if frame.attrs:
        facts["attrs of the frame"] = (repr(frame.attrs),)
    for column in _list_series(frame):
        if has_all(column.dtype, "tz"):
            facts[f"time zone of column {column.name!r}"] = (str(column.dtype.tz),)
        if has_all(column.dtype, "ordered"):
            facts[f"order of the categories of column {column.name!r}"] = (
                bool(column.dtype.ordered),
            )
    facts |= _time_dtype_facts({column.name: column for column in _list_series(frame)})
    numbering = numbering_of(frame.index)
    return facts if numbering is None else facts | {"start of the index": numbering}


def _list_categories(table: Any) -> dict[str, tuple[Any, ...]]:
    """Return the categories of columns that have some. A key names the fact in messages."""
    return {
        f"categories of column {column.name!r}": tuple(column.dtype.categories)
        for column in _list_series(table)
        if has_all(column.dtype, "categories") and column.dtype.categories is not None
    }


def _column_to_array(column: Any) -> npt.NDArray[Any]:
    """Return a column of a table as an array, with None for missing values other than NaN."""
    values = np.asarray(column)
    if values.dtype != object:
        return values.astype(object) if values.dtype.kind in "USV" else values
    objects = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        # The missing value of nullable columns is not equal to any value, and has no truth value.
        objects[place] = None if type(value).__name__ == "NAType" else value
    return objects


def _suffix_repeats(names: list[Any]) -> list[str]:
    """Convert names to strings; append "_" to a string that occurred before."""
    unique_names: list[str] = []
    for name in names:
        text = str(name) or "_"
        while text in unique_names:
            text += "_"
        unique_names.append(text)
    return unique_names


def answer_rows(
    name: str,
    answer: Any,
    requirement: str,
    shape: tuple[int, ...] | None = None,
    keeps_forms: bool = False,
) -> npt.NDArray[Any]:
    """Convert the return value of a mechanism to an array with one row per output.

    Args:
        name: name of the return value in error messages.
        answer: the return value, which is an array or a sequence of outputs of any type.
        requirement: text for error messages that states what the return value must be.
        shape: shape of an output in other calls, or None if it is not known. If possible, rows
            of another shape become an array of objects with rows of this shape.
        keeps_forms: if True, rows of different types are stored as objects.

    Returns:
        The array that numpy makes from the return value, if numpy does not change a value.
        Otherwise, the result is a 1-d array of objects.

    Raises:
        TypeError: if the return value cannot be converted to an array.

    Example:
        >>> answer_rows("outputs", [("a", 1.5), ("b", 2.0)], "an array").tolist()
        [('a', 1.5), ('b', 2.0)]
        >>> answer_rows("outputs", [[1], [1, 2]], "an array").shape
        (2,)
    """
    if isinstance(answer, (list, tuple)):
        refuse_unreadable_row_types(name, answer)
        if any(is_tensor(cls) for cls in set(map(type, answer))):
            answer = [numpy_of(row) if is_tensor(row) else row for row in answer]
        array = _as_lossless_array(answer)
        if isinstance(answer, Lines) and answer.pattern is not None:
            return np.array(answer, np.dtype(np.float64, metadata={_SIGNATURE: answer.pattern}))
        if keeps_forms and array is not None and not _has_single_row_type(answer, array):
            array = None
        rows = to_object_array(answer) if array is None else array
        return rows if shape in (None, rows.shape[1:]) else _arrange_rows(answer, rows, shape)
    try:
        return numpy_of(answer) if is_tensor(answer) else np.asarray(answer)
    except (TypeError, ValueError):
        raise mistyped(name, requirement, answer) from None


def to_outputs(
    name: str,
    answer: Any,
    size: int,
    shape: tuple[int, ...] | None = None,
    fields: tuple[str, ...] | None = None,
) -> npt.NDArray[Any]:
    """Convert the return value of a mechanism to an array, and check that it has `size` rows.

    Args:
        name: name of the outputs in error messages.
        answer: return value, which is an array, a sequence of outputs of any type, or a data frame.
        size: requested number of outputs.
        shape: shape of an output in other calls, or None if it is not known.
        fields: field names of the arrays from other calls, or None if they are not known.

    Returns:
        The outputs, shape `(size, ...)`.

    Raises:
        TypeError: if the return value or a row of it cannot be converted.
        ValueError: if entries are masked, or the number of rows is not `size`.

    Example:
        >>> to_outputs("outputs", ["a", None], 2).dtype
        dtype('O')
    """
    refuse_unreadable_row_types(name, (answer,))
    if is_series(answer) and (fields or numbering_of(answer.index) is None):
        answer = answer.to_frame()
    if is_frame(answer):
        outputs = frame_to_rows(answer, fields)
    else:
        outputs = answer_rows(name, answer, "an array", shape, keeps_forms=True)
    if outputs.ndim == 0 or len(outputs) != size:
        raise invalid(name, f"an array with {size} rows, one per output", outputs.shape)
    return outputs


def to_object_array(rows: Sequence[Any]) -> npt.NDArray[Any]:
    """Return a 1-d numpy array of objects whose entries are the given rows.

    Example:
        >>> to_object_array([(1, 2), (3, 4)]).shape
        (2,)
    """
    array = np.empty(len(rows), dtype=object)
    # Assign each element separately: numpy would read equally long tuples as a table.
    for place, row in enumerate(rows):
        array[place] = row
    return array


@lru_cache(maxsize=256)
def is_immutable(cls: type) -> bool:
    """Return True for a class whose objects cannot change after they were created."""
    return issubclass(cls, _IMMUTABLE_TYPES) and not issubclass(cls, np.void)


@lru_cache(maxsize=256)
def has_unreadable_contents(cls: Any) -> bool:
    """Return True if objects of a class lack readable contents and each equals only itself."""
    has_parts = has_all(cls, "__len__", "__contains__") or is_dataclass(cls)
    return cls.__eq__ is object.__eq__ and not has_parts and not has_array_method(cls)


def copy_answer(answer: Any, memo: dict[int, Any] | None = None) -> Any:
    """Copy a function's return value, so that later calls of the function cannot change the copy.

    Args:
        answer: return value of a function. Objects whose contents Python cannot read (such as
            compiled objects) are not copied.
        memo: dictionary in which `copy.deepcopy` stores the objects that it has copied.

    Raises:
        Exception: if an object that can change cannot be copied.
    """
    cls: Any = type(answer)
    if is_immutable(cls) or has_unreadable_contents(cls):
        return answer
    if is_tensor(answer):
        return answer.detach().clone()
    return bytes(answer) if isinstance(answer, memoryview) else copy.deepcopy(answer, memo)


@dataclass
class AnswerKeeper:
    """Stored return values of one function, each in the state in which the function returned it.

    The first 16 values are copied. If the function returns the same mutable object twice, all later
    values are copied, too.

    Args:
        name: name of the function in error messages.
        values: list of the return values so far.
    """

    name: str
    values: list[Any] = field(default_factory=list)
    _is_shared: bool = False
    # Keep the objects themselves: while they exist, no other object has the same id.
    _objects: dict[int, Any] = field(default_factory=dict)
    _states: dict[int, Any] = field(default_factory=dict)
    _copies_left: int = _FIRST_COPIED_ANSWERS
    # Classes whose new objects are kept without a copy.
    _watched: set[type] = field(default_factory=set)

    def add(self, answer: Any) -> None:
        """Add a return value of the function to the stored values.

        Raises:
            TypeError: if the function returns the same object again, and this object has changed or
                cannot be copied.
        """
        cls: Any = type(answer)
        if cls in self._watched and id(answer) not in self._objects:
            self._objects[id(answer)] = answer
        elif not is_immutable(cls):
            if self._is_shared or self._copies_left > 0:
                self._copies_left -= 1
                answer = self._copy(answer)
            elif id(answer) in self._objects:
                # The function fills several buffers in turn: the first one was returned again.
                objects = self._objects
                self.values = [
                    self._copy(old) if id(old) in objects else old for old in self.values
                ]
                self._is_shared, answer = True, self._copy(answer)
                self._watched.clear()
            elif not (issubclass(cls, tuple) or has_unreadable_contents(cls)):
                self._objects[id(answer)] = answer
                self._watched.add(cls)
        self.values.append(answer)

    def _copy(self, answer: Any) -> Any:
        """Return a copy of an answer, and record if an earlier answer held the same objects."""
        memo: dict[int, Any] = {}
        cls: Any = type(answer)
        state: Any = None
        try:
            copied = copy_answer(answer, memo)
        except Exception:
            copied, state = answer, object()
        if has_unreadable_contents(cls):
            with suppress(Exception):
                state = pickle.dumps(getattr(answer, "__dict__", None))
        if state is not None and self._states.setdefault(id(answer), state) != state:
            need = f"new objects (the same {cls.__name__} is returned by every call: return a copy)"
            raise mistyped(f"answers of {self.name}", need, answer)
        # The memo of `deepcopy` lists the copied objects. A view shares the memory of its base.
        parts = memo.get(id(memo), [])
        bases = (part.base if isinstance(part, np.ndarray) else None for part in parts)
        owners = [part if base is None else base for part, base in zip(parts, bases, strict=True)]
        self._is_shared |= any(id(owner) in self._objects for owner in owners)
        self._objects.update((id(owner), owner) for owner in owners)
        return copied


def refuse_unreadable_row_types(name: str, rows: Sequence[Any]) -> None:
    """Raise an error if dpcore cannot read the type of the outputs, and suggest another type.

    Args:
        name: name of the outputs in error messages.
        rows: the outputs, or a tuple whose only entry is an object that contains all outputs.

    Raises:
        TypeError: if an output is an iterator, a coroutine, a sparse matrix or a graph.
        ValueError: if an array has masked entries.
    """
    for cls in set(map(type, rows)):
        advice = _suggest_return_value(cls)
        if advice is not None:
            raise mistyped(name, advice, next(row for row in rows if type(row) is cls))
        if issubclass(cls, np.ndarray) and cls is not np.ndarray:
            for row in filter(has_masked, rows):
                requirement = "an array without masked entries (return its .filled(value))"
                raise invalid(name, requirement, row)


@lru_cache(maxsize=256)
def _suggest_return_value(cls: type) -> str | None:
    """Return advice on another type if objects of a class cannot be read, and otherwise None."""
    if issubclass(cls, Awaitable):
        return "what a coroutine returns (call asyncio.run, or await it)"
    if issubclass(cls, (Iterator, AsyncIterator)):
        return "an array or a list (return list(...) of an iterator)"
    homes = {base.__module__ for base in cls.__mro__}
    if has_all(cls, "toarray") and any(home.startswith("scipy.sparse") for home in homes):
        return "a dense array (return the .toarray() of a sparse matrix)"
    if has_all(cls, "edges") and any(home.startswith("networkx.") for home in homes):
        return "a list of edges (return sorted(g.edges) of a graph g)"
    return None


def refuse_deep_nesting(name: str, rows: Sequence[Any]) -> None:
    """Raise an error if outputs contain themselves, or are nested too deeply.

    Args:
        name: name of the outputs in error messages.
        rows: the outputs.

    Raises:
        TypeError: if lists, tuples or dictionaries are nested to more than 64 levels.
    """
    level: Iterable[Any] = rows
    for _ in range(_MAX_NESTING_DEPTH):
        # Visit each container once: if some hold each other, their number would double per level.
        held = {
            id(container): container
            for container in level
            if isinstance(container, (list, tuple, dict))
        }
        if not held:
            return
        inner = (
            container.values() if isinstance(container, dict) else container
            for container in held.values()
        )
        level = list(chain.from_iterable(inner))
    limit = f"nested at most {_MAX_NESTING_DEPTH} deep"
    raise mistyped(name, f"objects that do not contain themselves, {limit}", rows[0])


def item_types_of(answer: Any, depth: int = 0) -> Any:
    """Return the type of an output and the types of its contents.

    These types are lost when the output is stored in an array. Contents that are nested more than
    16 levels deep are left out.

    Example:
        >>> item_types_of((1, np.float64(0.5))) == (tuple, (int, float))
        True
    """
    cls = type(answer)
    if cls not in (list, tuple):
        has_type = has_all(cls, "dtype") and not issubclass(cls, np.generic)
        return (cls, str(answer.dtype)) if has_type else _PLAIN_CLASSES.get(cls, cls)
    classes = tuple(map(type, answer))
    if depth == _MAX_AXES or {list, tuple, np.ndarray, *_PLAIN_CLASSES}.isdisjoint(classes):
        return cls, classes
    return cls, tuple(item_types_of(item, depth + 1) for item in answer)


def has_both_zeros(array: npt.NDArray[Any]) -> bool:
    """Return True if an array of two or more dimensions contains both 0.0 and -0.0."""
    signs = np.signbit(array[array == 0.0]) if array.ndim > 1 and array.dtype.kind == "f" else []
    return len(set(signs)) > 1


def attach_item_types(array: npt.NDArray[Any], signature: Any) -> npt.NDArray[Any] | None:
    """Store the original types of the rows in the dtype of an array, and return the array.

    The result is None if the original rows cannot be restored from this array.

    Args:
        array: array of rows that all have the same types.
        signature: types of a row, as `item_types_of` returns them.
    """
    if array.dtype == object or not array.size:
        return array
    if array.ndim == 1 or not isinstance(signature, tuple) or signature[0] not in (list, tuple):
        return array if array.ndim > 1 or item_types_of(array[0]) == signature else None
    if array.dtype.kind in "mM":
        # Rows of times contain their unit, which may differ for the other input.
        return None
    if signature == item_types_of(array[0].tolist()):
        return array
    formed = array.view(np.dtype(array.dtype, metadata={_SIGNATURE: signature}))
    return formed if item_types_of(restore_rows(formed[:1])[0]) == signature else None


def noted_row_types(array: npt.NDArray[Any]) -> Any:
    """Return the original types of rows, which the dtype of an array stores, or None if unknown."""
    return dict(array.dtype.metadata or {}).get(_SIGNATURE)


def restore_rows(array: npt.NDArray[Any]) -> list[Any]:
    """Convert the rows of an array back to their original types, such as tuples of numbers."""
    signature = noted_row_types(array)
    if isinstance(signature, str):
        return format_and_reread_numbers(array.tolist(), signature)
    if not isinstance(signature, tuple) or signature[0] not in (list, tuple):
        return array.tolist()  # type: ignore[no-any-return]
    container, classes = signature
    if array.ndim != 2 or not all(isinstance(cls, type) for cls in classes):
        return list(map(container, array.tolist()))
    return [
        container(cls(entry) for cls, entry in zip(classes, row, strict=True))
        for row in array.tolist()
    ]


def rows_to_objects(outputs: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Convert outputs to a 1-d array of objects; a row of numbers becomes a list or a tuple.

    Example:
        >>> rows_to_objects(np.zeros((1, 2))).tolist()
        [[0.0, 0.0]]
    """
    if outputs.dtype == object or outputs.dtype.kind in "mM":
        rows = list(outputs)
        return to_object_array([row.tolist() for row in rows] if outputs.ndim > 1 else rows)
    return to_object_array(restore_rows(outputs))


def join_outputs(parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Join the outputs of several calls of a mechanism in one array.

    Args:
        parts: at least one array, each of shape `(size, ...)`.

    Returns:
        An array of shape `(sum of sizes, ...)`. If the shapes differ, or numpy would change values
        (such as numbers to strings), the result is a 1-d array of objects.

    Example:
        >>> join_outputs([np.zeros(1), np.array(["a"])]).tolist()
        [0.0, 'a']
    """
    kinds = {part.dtype.kind for part in parts} - {"O"}
    has_objects = any(part.dtype == object for part in parts)
    signatures = {noted_row_types(part) for part in parts}
    is_alike = len(kinds) <= 1 or (kinds <= set("biufc") and not has_objects)
    is_alike = is_alike and len(signatures) == 1 and not (has_objects and signatures != {None})
    if len({part.shape[1:] for part in parts}) == 1 and is_alike:
        try:
            joined = np.concatenate(parts)
        except TypeError:
            # The tables have different fields.
            pass
        else:
            # numpy drops the metadata in which an adapter stores the format.
            same = joined.dtype == parts[0].dtype and parts[0].dtype.metadata
            return joined.view(parts[0].dtype) if same else joined
    return np.concatenate([rows_to_objects(part) for part in parts])


def mean_stored_bytes(outputs: npt.NDArray[Any]) -> float:
    """Estimate how many bytes an output needs in a file, as the mean over up to 32 outputs.

    Example:
        >>> mean_stored_bytes(np.array(["a" * 100, {"key": 1.0}], dtype=object))
        55.5
    """
    if outputs.dtype != object:
        return float(outputs[:1].nbytes)
    some = outputs[:: max(1, len(outputs) // _SIZE_SAMPLE)][:_SIZE_SAMPLE]
    return sum(map(_estimate_bytes, some.tolist())) / max(1, len(some))


def _estimate_bytes(value: Any, depth: int = 0) -> float:
    if isinstance(value, (str, bytes, bytearray)):
        return len(value)
    if isinstance(value, np.ndarray):
        return value.nbytes
    if not isinstance(value, (Mapping, list, tuple, set, frozenset)) or depth > 4 or not value:
        return 8.0
    items = value.items() if isinstance(value, Mapping) else value
    some = list(islice(items, _SIZE_SAMPLE))
    return len(value) / len(some) * sum(_estimate_bytes(member, depth + 1) for member in some)


def _arrange_rows(
    answer: Sequence[Any], fallback: npt.NDArray[Any], shape: tuple[int, ...] | None
) -> npt.NDArray[Any]:
    """Return an object array with rows of the given shape, or `fallback` if this is impossible."""
    if shape == ():
        return to_object_array(answer)
    if is_too_deep(answer):
        return fallback
    try:
        table = np.array(answer, dtype=object)
    except ValueError:
        return fallback
    return table if table.shape[1:] == shape else fallback


def _as_lossless_array(rows: Sequence[Any]) -> npt.NDArray[Any] | None:
    """Convert rows to an array; return None if numpy refuses a row or would change a row."""
    if is_too_deep(rows) or _is_text_array_too_big(rows) or _has_text_and_numbers_in_first(rows):
        return None
    try:
        array = np.asarray(rows)
    except (TypeError, ValueError, RuntimeError):  # torch, of a tensor with a gradient
        return None
    return array if _is_faithful(rows, array) else None


def is_too_deep(rows: Any) -> bool:
    """Return True if lists are nested too deeply for numpy (16 levels), or contain themselves."""
    for _ in range(_MAX_AXES):
        if not isinstance(rows, (list, tuple)) or not rows:
            return False
        rows = rows[0]
    return True


def _has_text_and_numbers_in_first(rows: Sequence[Any]) -> bool:
    """Return True if the first row holds strings and numbers, which numpy would make strings."""
    row: Any = ()
    while rows and isinstance(rows[0], (list, tuple)):
        row = rows = rows[0]
    kinds = set(map(type, row))
    is_text = any(issubclass(kind, (str, bytes)) for kind in kinds)
    return is_text and any(issubclass(kind, Number) for kind in kinds)


def _is_text_array_too_big(rows: Sequence[Any]) -> bool:
    """Return True if an array of strings would be too large because of a few long strings."""
    if not rows or not isinstance(rows[0], (str, bytes)) or not _are_instances(rows, (str, bytes)):
        return False
    lengths = list(map(len, rows))
    if max(lengths) > _MAX_STRING_CHARACTERS:
        return True
    width = max(lengths) * len(rows)
    return width > _SMALL_ARRAY_CHARACTERS and width > _MAX_PADDING_FACTOR * sum(lengths)


def _is_faithful(rows: Sequence[Any], array: npt.NDArray[Any]) -> bool:
    """Return True if the entries of an array are equal to the entries of the rows."""
    kind = array.dtype.kind
    if kind in "US":
        expected = str if kind == "U" else bytes
        leaves = list(_iterate_leaves(rows, array.ndim))
        # An array cannot distinguish NULs at the end of a string from its padding.
        held = int(np.char.str_len(array).sum())
        return _are_instances(leaves, (expected,)) and sum(map(len, leaves)) == held
    if kind in "fc" and not any(isinstance(row, np.ndarray) for row in rows):
        kinds = set(map(type, _iterate_leaves(rows, array.ndim)))
        if not any(issubclass(leaf, (int, np.integer)) for leaf in kinds):
            return True
        whole = (
            number
            for number in _iterate_leaves(rows, array.ndim)
            if isinstance(number, (int, np.integer))
        )
        return all(-_MAX_EXACT_INTEGER <= number <= _MAX_EXACT_INTEGER for number in whole)
    return True


def _has_single_row_type(rows: Sequence[Any], array: npt.NDArray[Any]) -> bool:
    """Return True if all rows have the same types, and 0.0 and -0.0 do not both occur."""
    if isinstance(rows, Lines) and rows.has_forms:
        return False
    is_numeric = array.dtype.kind in "buifc"
    return not is_numeric or (len(set(map(item_types_of, rows))) == 1 and not has_both_zeros(array))


def _iterate_leaves(rows: Iterable[Any], depth: int) -> Iterable[Any]:
    for _ in range(depth - 1):
        rows = chain.from_iterable(rows)
    return rows


def _are_instances(items: Iterable[Any], kinds: tuple[type, ...]) -> bool:
    return all(issubclass(kind, kinds) for kind in set(map(type, items)))
