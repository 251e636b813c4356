"""Outputs that are no real numbers as columns of real numbers: their parts.

A part is reached by steps (an entry of an array, a field, a place of a sequence, a key of a
mapping) and measured there: a number's value, a length, a letter, how often a letter occurs. One
map reads regular arrays and Python objects alike, for a rare None turns a block of strings into
objects.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...errors import instance
from ...records import Record
from .measures import of_array, of_objects
from .objects import Bunch
from .part import Part
from .texts import Floats, Texts

Node = npt.NDArray[Any] | list[Any]
"""What many outputs hold at one place: a regular array, or a list of objects."""

_CHUNK: Final = 2**18
"""Numbers that are read at a time: they stay in the cache."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Parts(Record, word="Parts"):
    """Parts of outputs as columns of real numbers, shape `(size, parts)`.

    Outputs of other kinds than the pilot's are read as well: what they lack is NaN.

    Args:
        parts: the columns, in their order.

    Raises:
        TypeError: if one of them is not a `Part`.

    Example:
        >>> parts = Parts((Part((), "length"), Part((), "letter", -1)))
        >>> parts(np.array(["ab", "b"])).tolist()
        [[2.0, 98.0], [1.0, 98.0]]
    """

    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        """Check the parts."""
        for part in self.parts:
            instance("parts", part, Part)

    def __call__(self, outputs: npt.NDArray[Any]) -> Floats:
        """The columns, shape `(size, parts)`; NaN where an output has no such part."""
        known = getattr(_memory, "known", None)
        if known is None:
            return self._read(outputs)
        key = id(outputs), self
        if key not in known:
            # With the array itself, so that its number stays its own.
            known[key] = outputs, self._read(outputs)
        found: Floats = known[key][1]
        return found

    def _read(self, outputs: npt.NDArray[Any]) -> Floats:
        columns = np.full((len(outputs), len(self.parts)), np.nan)
        wanted = [(part.steps, part, i) for i, part in enumerate(self.parts)]
        rows = max(1, _CHUNK // max(1, len(self.parts)))
        for first in range(0, len(outputs), rows):
            part = slice(first, first + rows)
            _fill(outputs[part], wanted, columns[part])
        return columns

    def names(self) -> list[str]:
        """What a report calls the columns."""
        return list(map(str, self.parts))

    def only(self, columns: list[int]) -> Parts:
        """Some of the parts."""
        return Parts(tuple(self.parts[i] for i in columns))


_memory = threading.local()


@contextmanager
def remembering() -> Iterator[None]:
    """While several scores of the same arrays are wanted, parts are read once.

    Nothing may write into the arrays in the meantime.
    """
    if getattr(_memory, "known", None) is not None:
        yield
        return
    _memory.known = {}
    try:
        yield
    finally:
        _memory.known = None


_Wanted = list[tuple[tuple[tuple[str, Any], ...], Part, int]]


def _fill(node: Node, wanted: _Wanted, columns: Floats) -> None:
    """Read parts of a node into their columns."""
    node = plain(node)
    here = [(part, i) for steps, part, i in wanted if not steps]
    below: dict[tuple[str, Any], _Wanted] = {}
    for steps, part, i in wanted:
        if steps:
            below.setdefault(steps[0], []).append((steps[1:], part, i))
    bunch = Bunch(node) if isinstance(node, list) else None
    texts = _regular_texts(node) if here and bunch is None else None
    for part, i in here:
        if bunch is not None:
            of_objects(bunch, part, columns[:, i])
        else:
            of_array(np.asarray(node), texts, part, columns[:, i])
    for step, group in below.items():
        inner = _taken(node, bunch, step)
        if inner is not None:
            _fill(inner, group, columns)


def plain(node: Node) -> Node:
    """A one-dimensional array of objects as a list, raw bytes as strings of bytes."""
    if isinstance(node, list):
        return node
    if node.dtype == object and node.ndim == 1:
        return list(node.tolist())
    if node.dtype.kind == "V" and node.dtype.names is None and node.dtype.itemsize:
        return np.ascontiguousarray(node).view(f"S{node.dtype.itemsize}")
    return node


def _regular_texts(node: Node) -> Texts | None:
    array = np.asarray(node)
    return Texts.of_array(array) if array.dtype.kind in "US" and array.ndim == 1 else None


def _taken(node: Node, bunch: Bunch | None, step: tuple[str, Any]) -> Node | None:
    """What a step leads to; None where no output has it."""
    kind, which = step
    if kind == "view":
        return (bunch or Bunch(np.asarray(node).tolist())).view(which)
    if bunch is not None:
        if kind == "entry" or (kind == "field" and not isinstance(which, str)):
            return None
        return bunch.place(which) if kind == "place" else bunch.key(which)
    return taken(np.asarray(node), kind, which)


def taken(array: npt.NDArray[Any], kind: str, which: Any) -> npt.NDArray[Any] | None:
    """The same for a regular array."""
    found: npt.NDArray[Any] | None
    if kind == "entry" and array.ndim > 1:
        rows = array.reshape(len(array), math.prod(array.shape[1:]))
        found = rows[:, which] if which < rows.shape[1] else None
        return found
    names = array.dtype.names or ()
    if kind == "place" and -len(names) <= which < len(names):
        # A row of fields is a tuple where it came among objects.
        kind, which = "field", names[which]
    found = array[which] if kind == "field" and which in names else None
    return found
