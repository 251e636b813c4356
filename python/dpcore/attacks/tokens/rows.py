"""Outputs as rows of tokens: texts by their words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, Final

import numpy as np

from ..arrays import Array, Whole

NO_ROW: Final = -1
"""The size of an output that is no text."""
_CHUNK_OUTPUTS: Final = 2**11
"""Outputs that are taken apart at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The tokens of many outputs.

    Args:
        rows: the tokens of each; none for an output that is no text.
        sizes: how many each has, shape `(size,)`; `NO_ROW` for those.
    """

    rows: list[list[str]]
    sizes: Whole

    def number_tokens(self, table: Mapping[str, int]) -> tuple[Whole, Whole]:
        """Return which row has which token, each once a row, by the numbers that a table gives.

        Tokens without a number are left out; a table may make one for each (`Numbering`).
        """
        tokens, is_new = chain.from_iterable(self.rows), isinstance(table, Numbering)
        found = map(table.__getitem__, tokens) if is_new else map(table.get, tokens, repeat(-1))
        places = np.repeat(np.arange(len(self.rows)), np.maximum(self.sizes, 0))
        codes = np.fromiter(found, np.int64, places.size)
        known = codes >= 0
        width = max(1, len(table))
        place, code = np.divmod(np.unique(places[known] * width + codes[known]), width)
        return place, code


class Numbering(dict[str, int]):
    """A table that gives every token a number when it is first looked up.

    Example:
        >>> table = Numbering()
        >>> Rows([["a", "b", "a"]], np.array([3])).number_tokens(table)[1].tolist(), dict(table)
        ([0, 1], {'a': 0, 'b': 1})
    """

    def __missing__(self, token: str) -> int:
        return self.setdefault(token, len(self))


def words_of(outputs: Array) -> Iterator[tuple[slice, Rows]]:
    """Yield the words of outputs, some at a time: what stands between white space, unchanged.

    Bytes are read as Latin-1, one character a byte.

    Args:
        outputs: texts, shape `(size,)` or `(size, 1)`; whatever else is among them is no text.

    Example:
        >>> [(part, rows)] = words_of(np.array(["to boston", "", None], dtype=object))
        >>> rows.rows, rows.sizes.tolist()
        ([['to', 'boston'], [], []], [2, 0, -1])
    """
    for first in range(0, len(outputs), _CHUNK_OUTPUTS):
        part = slice(first, min(first + _CHUNK_OUTPUTS, len(outputs)))
        items = texts_of(outputs[part])
        rows = [one.split() if one is not None else [] for one in items]
        sizes = np.fromiter(map(len, rows), np.int64, len(rows))
        sizes[[one is None for one in items]] = NO_ROW
        yield part, Rows(rows, sizes)


def texts_of(outputs: Array) -> list[str | None]:
    """Return every output as a string, None for one that is no text."""
    if outputs.dtype.names is not None or outputs.size != len(outputs):
        return [None] * len(outputs)
    items = outputs.reshape(len(outputs)).tolist()
    return items if outputs.dtype.kind == "U" else list(map(_item_to_text, items))


def _item_to_text(item: Any) -> str | None:
    if isinstance(item, (bytes, bytearray, memoryview)):
        return bytes(item).decode("latin-1")
    return str(item) if isinstance(item, str) else None


READERS: Final[dict[str, Callable[[Array], Iterator[tuple[slice, Rows]]]]] = {"words": words_of}
"""Functions that convert outputs to rows of tokens, by the name that a record keeps."""

__all__ = ["NO_ROW", "READERS", "Numbering", "texts_of", "words_of"]
