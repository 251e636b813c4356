"""What a mechanism answered, or somebody recorded, as an array with one row for each output.

numpy makes strings of numbers beside strings, floats of large integers, cuts NULs off the ends of
strings and refuses rows of different lengths. Where it would change or refuse an answer, every
output stays the Python object that it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from numbers import Number
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import invalid, masked, mistyped
from ..events.held import of_format

__all__ = ["objects", "of_format", "outputs_of", "rows_of"]

_EXACT: Final = 2**53
_PADDING: Final = 8
"""Strings that would take so many times their length in an array of one width stay objects."""
_SMALL: Final = 2**20


def rows_of(
    name: str, answer: Any, requirement: str, shape: tuple[int, ...] | None = None
) -> npt.NDArray[Any]:
    """An answer as an array whose rows are the outputs.

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
        array = _plain(answer)
        found = objects(answer) if array is None else array
        return found if shape in (None, found.shape[1:]) else _arranged(answer, found, shape)
    try:
        return np.asarray(answer)
    except (TypeError, ValueError):
        # A tensor that numpy cannot reach.
        raise mistyped(name, requirement, answer) from None


def outputs_of(
    name: str, answer: Any, size: int, shape: tuple[int, ...] | None = None
) -> npt.NDArray[Any]:
    """What a mechanism answered, checked to have a row for each output.

    Args:
        name: what messages call the outputs.
        answer: see `rows_of`.
        size: how many outputs were asked for.
        shape: see `rows_of`.

    Returns:
        The outputs, shape `(size, ...)`.

    Raises:
        TypeError: if it cannot be read as an array.
        ValueError: if entries are masked, or there are not so many rows.

    Example:
        >>> outputs_of("outputs", ["a", None], 2).dtype
        dtype('O')
    """
    if masked(answer):
        raise invalid(name, "an array without masked entries", answer)
    outputs = rows_of(name, answer, "an array", shape)
    if outputs.ndim == 0 or len(outputs) != size:
        raise invalid(name, f"an array with {size} rows, one per output", outputs.shape)
    return outputs


def objects(rows: Sequence[Any]) -> npt.NDArray[Any]:
    """A 1-d array of objects, one for each row.

    Example:
        >>> objects([(1, 2), (3, 4)]).shape
        (2,)
    """
    array = np.empty(len(rows), dtype=object)
    # By element: a list of equally long tuples would be read as a table.
    for place, row in enumerate(rows):
        array[place] = row
    return array


def _arranged(
    answer: Sequence[Any], found: npt.NDArray[Any], shape: tuple[int, ...] | None
) -> npt.NDArray[Any]:
    """The same rows in the shape of other answers; as they are where they do not have it."""
    if shape == ():
        return objects(answer)
    try:
        table = np.array(answer, dtype=object)
    except ValueError:
        return found
    return table if table.shape[1:] == shape else found


def _plain(rows: Sequence[Any]) -> npt.NDArray[Any] | None:
    """What numpy makes of rows; None where it refuses them, or would change some."""
    if _is_wasteful(rows) or _is_mixed(rows):
        return None
    try:
        array = np.asarray(rows)
    except (TypeError, ValueError):
        return None
    return array if _is_faithful(rows, array) else None


def _is_mixed(rows: Sequence[Any]) -> bool:
    """True for rows of strings and numbers: numpy takes long to make strings of them all."""
    if not rows or not isinstance(rows[0], (list, tuple)):
        return False
    text = [isinstance(one, (str, bytes)) for one in rows[0]]
    return any(text) and any(isinstance(one, Number) for one in rows[0])


def _is_wasteful(rows: Sequence[Any]) -> bool:
    """True for strings of which a few are so long that an array of one width would be huge."""
    if not rows or not isinstance(rows[0], (str, bytes)) or not _all(rows, (str, bytes)):
        return False
    lengths = list(map(len, rows))
    width = max(lengths) * len(rows)
    return width > _SMALL and width > _PADDING * sum(lengths)


def _is_faithful(rows: Sequence[Any], array: npt.NDArray[Any]) -> bool:
    """True if the entries of the array are those of the rows."""
    kind = array.dtype.kind
    if kind in "US":
        wanted = str if kind == "U" else bytes
        leaves = list(_leaves(rows, array.ndim))
        # An array does not tell NULs at the end of a string from its padding.
        held = int(np.char.str_len(array).sum())
        return _all(leaves, (wanted,)) and sum(map(len, leaves)) == held
    if kind in "fc" and not any(isinstance(row, np.ndarray) for row in rows):
        whole = (one for one in _leaves(rows, array.ndim) if isinstance(one, (int, np.integer)))
        return all(-_EXACT <= one <= _EXACT for one in whole)
    return True


def _leaves(rows: Iterable[Any], depth: int) -> Iterable[Any]:
    for _ in range(depth - 1):
        rows = chain.from_iterable(rows)
    return rows


def _all(items: Iterable[Any], kinds: tuple[type, ...]) -> bool:
    return all(issubclass(kind, kinds) for kind in set(map(type, items)))
