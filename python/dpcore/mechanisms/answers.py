"""Answers of mechanisms, or recorded outputs, as an array with one row for each output.

numpy makes strings of numbers beside strings, floats of large integers, cuts NULs off the ends of
strings and refuses rows of different lengths. Where it would change or refuse an answer, every
output stays the Python object that it is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice
from numbers import Number
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import invalid, masked, mistyped
from ..events.held import numpy_of, of_format
from .frames import frame_to_rows, is_frame, is_series, numbering_of

__all__ = [
    "bytes_of",
    "is_deep",
    "join_outputs",
    "of_format",
    "outputs_of",
    "refuse_nested",
    "refuse_unreadable",
    "rows_of",
    "rows_to_objects",
    "to_object_array",
]  # fmt: skip

_MAX_EXACT_INTEGER: Final = 2**53
_MAX_PADDING_FACTOR: Final = 8
"""Strings that would take so many times their length in an array of one width stay objects."""
_SMALL_ARRAY_CHARACTERS: Final = 2**20
_MAX_STRING_CHARACTERS: Final = 2**16
"""Characters beyond which a string stays an object: in an array it takes four times its memory."""
_MAX_NESTING_DEPTH: Final = 64
"""Containers within each other that are read."""
_MAX_AXES: Final = 16
_SIZE_SAMPLE: Final = 32
"""Outputs, and entries of each, from which the bytes of outputs are estimated."""


def rows_of(
    name: str, answer: Any, requirement: str, shape: tuple[int, ...] | None = None
) -> npt.NDArray[Any]:
    """Convert an answer to an array whose rows are the outputs.

    Args:
        name: what messages call the answer.
        answer: an array, or a sequence of outputs of any kinds.
        requirement: what messages ask for.
        shape: of one output, where it is known from other answers: objects are then arranged
            alike.

    Returns:
        What numpy makes of it where that loses nothing; otherwise a 1-d array of objects.

    Raises:
        TypeError: if it cannot be read as an array.

    Example:
        >>> rows_of("outputs", [("a", 1.5), ("b", 2.0)], "an array").tolist()
        [('a', 1.5), ('b', 2.0)]
        >>> rows_of("outputs", [[1], [1, 2]], "an array").shape
        (2,)
    """
    if isinstance(answer, (list, tuple)):
        refuse_unreadable(name, answer)
        if any(hasattr(cls, "detach") for cls in set(map(type, answer))):
            answer = [numpy_of(row) if hasattr(row, "detach") else row for row in answer]
        array = _as_plain_array(answer)
        found = to_object_array(answer) if array is None else array
        return found if shape in (None, found.shape[1:]) else _arrange_rows(answer, found, shape)
    try:
        return numpy_of(answer) if hasattr(answer, "detach") else np.asarray(answer)
    except (TypeError, ValueError):
        raise mistyped(name, requirement, answer) from None


def outputs_of(
    name: str,
    answer: Any,
    size: int,
    shape: tuple[int, ...] | None = None,
    fields: tuple[str, ...] | None = None,
) -> npt.NDArray[Any]:
    """Convert a mechanism's answer to an array, and check that it has one row for each output.

    Args:
        name: what messages call the outputs.
        answer: see `rows_of`; a frame becomes fields, see `frame_to_rows`.
        size: how many outputs were asked for.
        shape: see `rows_of`.
        fields: names of the fields of a frame in other calls.

    Returns:
        The outputs, shape `(size, ...)`.

    Raises:
        TypeError: if it cannot be read as an array, or a row is of a kind that is not read.
        ValueError: if entries are masked, or there are not so many rows.

    Example:
        >>> outputs_of("outputs", ["a", None], 2).dtype
        dtype('O')
    """
    refuse_unreadable(name, (answer,))
    if is_series(answer) and (fields or numbering_of(answer.index) is None):
        answer = answer.to_frame()
    if is_frame(answer):
        outputs = frame_to_rows(answer, fields)
    else:
        outputs = rows_of(name, answer, "an array", shape)
    if outputs.ndim == 0 or len(outputs) != size:
        raise invalid(name, f"an array with {size} rows, one per output", outputs.shape)
    return outputs


def to_object_array(rows: Sequence[Any]) -> npt.NDArray[Any]:
    """Make a 1-d array of objects, one for each row.

    Example:
        >>> to_object_array([(1, 2), (3, 4)]).shape
        (2,)
    """
    array = np.empty(len(rows), dtype=object)
    # By element: a list of equally long tuples would be read as a table.
    for place, row in enumerate(rows):
        array[place] = row
    return array


def refuse_unreadable(name: str, rows: Sequence[Any]) -> None:
    """Refuse objects of kinds that are not read, with what to return instead.

    Args:
        name: what messages call the outputs.
        rows: outputs, or the whole answer alone.

    Raises:
        TypeError: if one is an iterator, a coroutine, a sparse matrix or a graph.
        ValueError: if entries of one are masked.
    """
    for cls in set(map(type, rows)):
        advice = _suggest_instead(cls)
        if advice is not None:
            raise mistyped(name, advice, next(row for row in rows if type(row) is cls))
        if issubclass(cls, np.ndarray) and cls is not np.ndarray:
            for row in filter(masked, rows):
                requirement = "an array without masked entries (return its .filled(value))"
                raise invalid(name, requirement, row)


@lru_cache(maxsize=256)
def _suggest_instead(cls: type) -> str | None:
    """Return what to return instead of objects of a class; None for a class that is read."""
    if issubclass(cls, Awaitable):
        return "what a coroutine returns (call asyncio.run, or await it)"
    if issubclass(cls, (Iterator, AsyncIterator)):
        return "an array or a list (return list(...) of an iterator)"
    homes = {base.__module__ for base in cls.__mro__}
    if hasattr(cls, "toarray") and any(home.startswith("scipy.sparse") for home in homes):
        return "a dense array (return the .toarray() of a sparse matrix)"
    if hasattr(cls, "edges") and any(home.startswith("networkx.") for home in homes):
        return "a list of edges (return sorted(g.edges) of a graph g)"
    return None


def refuse_nested(name: str, rows: Sequence[Any]) -> None:
    """Refuse rows that contain themselves, or containers within containers beyond any need.

    Args:
        name: what messages call the outputs.
        rows: outputs.

    Raises:
        TypeError: if containers are more than 64 deep.
    """
    level: Iterable[Any] = rows
    for _ in range(_MAX_NESTING_DEPTH):
        # Each container once: a few that hold each other would double from level to level.
        held = {id(one): one for one in level if isinstance(one, (list, tuple, dict))}
        if not held:
            return
        level = [
            inner
            for one in held.values()
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
    requirement = (
        f"objects that do not contain themselves, nested at most {_MAX_NESTING_DEPTH} deep"
    )
    raise mistyped(name, requirement, rows[0])


def rows_to_objects(outputs: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return outputs as a 1-d array of objects, rows of numbers as lists.

    Example:
        >>> rows_to_objects(np.zeros((1, 2))).tolist()
        [[0.0, 0.0]]
    """
    if outputs.dtype == object or outputs.dtype.kind in "mM":
        rows = list(outputs)
        return to_object_array([one.tolist() for one in rows] if outputs.ndim > 1 else rows)
    return to_object_array(outputs.tolist())


def join_outputs(parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Return the outputs of several calls as one array.

    Args:
        parts: at least one, shape `(size, ...)` each.

    Returns:
        Shape `(sum of sizes, ...)`; 1-d objects where shapes differ, or numpy would rewrite
        values (numbers as strings).

    Example:
        >>> join_outputs([np.zeros(1), np.array(["a"])]).tolist()
        [0.0, 'a']
    """
    kinds = {part.dtype.kind for part in parts} - {"O"}
    if len({part.shape[1:] for part in parts}) == 1 and (len(kinds) <= 1 or kinds <= set("biufc")):
        try:
            joined = np.concatenate(parts)
        except TypeError:
            # Tables of different fields.
            pass
        else:
            # numpy drops what an adapter has said of the format.
            same = joined.dtype == parts[0].dtype and parts[0].dtype.metadata
            return joined.view(parts[0].dtype) if same else joined
    return np.concatenate([rows_to_objects(part) for part in parts])


def bytes_of(outputs: npt.NDArray[Any]) -> float:
    """Return the bytes that an output takes to write, about: the mean of 32 of them.

    Example:
        >>> bytes_of(np.array(["a" * 100, {"key": 1.0}], dtype=object))
        55.5
    """
    if outputs.dtype != object:
        return float(outputs[:1].nbytes)
    some = outputs[:: max(1, len(outputs) // _SIZE_SAMPLE)][:_SIZE_SAMPLE]
    return sum(map(_size_of, some.tolist())) / max(1, len(some))


def _size_of(value: Any, depth: int = 0) -> float:
    if isinstance(value, (str, bytes, bytearray)):
        return len(value)
    if isinstance(value, np.ndarray):
        return value.nbytes
    items = value.items() if isinstance(value, Mapping) else value
    if not isinstance(value, (Mapping, list, tuple, set, frozenset)) or depth > 4 or not value:
        return 8.0
    some = list(islice(items, _SIZE_SAMPLE))
    return len(value) / len(some) * sum(_size_of(one, depth + 1) for one in some)


def _arrange_rows(
    answer: Sequence[Any], found: npt.NDArray[Any], shape: tuple[int, ...] | None
) -> npt.NDArray[Any]:
    """Return the rows in the shape of other answers, or unchanged if they do not have it."""
    if shape == ():
        return to_object_array(answer)
    if is_deep(answer):
        return found
    try:
        table = np.array(answer, dtype=object)
    except ValueError:
        return found
    return table if table.shape[1:] == shape else found


def _as_plain_array(rows: Sequence[Any]) -> npt.NDArray[Any] | None:
    """Convert rows to an array; None where numpy refuses them or would change some."""
    if is_deep(rows) or _is_wasteful(rows) or _is_mixed(rows):
        return None
    try:
        array = np.asarray(rows)
    except (TypeError, ValueError, RuntimeError):  # torch, of a tensor with a gradient
        return None
    return array if _is_faithful(rows, array) else None


def is_deep(rows: Any) -> bool:
    """Return True for lists within lists beyond what numpy should try: some hold themselves."""
    for _ in range(_MAX_AXES):
        if not isinstance(rows, (list, tuple)) or not rows:
            return False
        rows = rows[0]
    return True


def _is_mixed(rows: Sequence[Any]) -> bool:
    """Return True for rows of strings and numbers, which numpy converts slowly to strings."""
    row: Any = ()
    while rows and isinstance(rows[0], (list, tuple)):
        row = rows = rows[0]
    text = [isinstance(one, (str, bytes)) for one in row]
    return any(text) and any(isinstance(one, Number) for one in row)


def _is_wasteful(rows: Sequence[Any]) -> bool:
    """Return True if a few long strings would make an array of one width too large."""
    if not rows or not isinstance(rows[0], (str, bytes)) or not _are_all(rows, (str, bytes)):
        return False
    lengths = list(map(len, rows))
    if max(lengths) > _MAX_STRING_CHARACTERS:
        return True
    width = max(lengths) * len(rows)
    return width > _SMALL_ARRAY_CHARACTERS and width > _MAX_PADDING_FACTOR * sum(lengths)


def _is_faithful(rows: Sequence[Any], array: npt.NDArray[Any]) -> bool:
    """Return True if the entries of the array equal those of the rows."""
    kind = array.dtype.kind
    if kind in "US":
        wanted = str if kind == "U" else bytes
        leaves = list(_iterate_leaves(rows, array.ndim))
        # An array does not tell NULs at the end of a string from its padding.
        held = int(np.char.str_len(array).sum())
        return _are_all(leaves, (wanted,)) and sum(map(len, leaves)) == held
    if kind in "fc" and not any(isinstance(row, np.ndarray) for row in rows):
        whole = (
            one for one in _iterate_leaves(rows, array.ndim) if isinstance(one, (int, np.integer))
        )
        return all(-_MAX_EXACT_INTEGER <= one <= _MAX_EXACT_INTEGER for one in whole)
    return True


def _iterate_leaves(rows: Iterable[Any], depth: int) -> Iterable[Any]:
    for _ in range(depth - 1):
        rows = chain.from_iterable(rows)
    return rows


def _are_all(items: Iterable[Any], kinds: tuple[type, ...]) -> bool:
    return all(issubclass(kind, kinds) for kind in set(map(type, items)))
