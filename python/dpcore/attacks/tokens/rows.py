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
_CHUNK: Final = 2**11
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

    def numbers(self, table: Mapping[str, int]) -> tuple[Whole, Whole]:
        """Which row has which token, each once a row, by the numbers that a table gives them.

        Tokens without a number are left out; a table may make one for each (`numbering`).
        """
        find = table.__getitem__ if isinstance(table, _Numbering) else table.get
        tokens = chain.from_iterable(self.rows)
        asked = (tokens,) if isinstance(table, _Numbering) else (tokens, repeat(-1))
        total = int(np.maximum(self.sizes, 0).sum())
        codes = np.fromiter(map(find, *asked), np.int64, total)
        places = np.repeat(np.arange(len(self.rows)), np.maximum(self.sizes, 0))
        known = codes >= 0
        width = max(1, len(table))
        place, code = np.divmod(np.unique(places[known] * width + codes[known]), width)
        return place, code


class _Numbering(dict[str, int]):
    """Numbers tokens in the order in which they are asked for."""

    def __missing__(self, token: str) -> int:
        self[token] = len(self)
        return self[token]


def numbering() -> dict[str, int]:
    """A table that gives every token a number when it is first asked for.

    Example:
        >>> table = numbering()
        >>> Rows([["a", "b", "a"]], np.array([3])).numbers(table)[1].tolist(), dict(table)
        ([0, 1], {'a': 0, 'b': 1})
    """
    return _Numbering()


def words_of(outputs: Array) -> Iterator[tuple[slice, Rows]]:
    """The words of outputs, some at a time: what stands between white space, as it is written.

    Bytes are read as Latin-1, one character a byte.

    Args:
        outputs: texts, shape `(size,)` or `(size, 1)`; whatever else is among them is no text.

    Example:
        >>> [(part, rows)] = words_of(np.array(["to boston", "", None], dtype=object))
        >>> rows.rows, rows.sizes.tolist()
        ([['to', 'boston'], [], []], [2, 0, -1])
    """
    for first in range(0, len(outputs), _CHUNK):
        part = slice(first, min(first + _CHUNK, len(outputs)))
        items = texts_of(outputs[part])
        rows = [one.split() if one is not None else [] for one in items]
        sizes = np.fromiter(map(len, rows), np.int64, len(rows))
        sizes[[one is None for one in items]] = NO_ROW
        yield part, Rows(rows, sizes)


def texts_of(outputs: Array) -> list[str | None]:
    """Every output as a string, None for one that is no text."""
    if outputs.dtype.names is not None or outputs.size != len(outputs):
        return [None] * len(outputs)
    items = outputs.reshape(len(outputs)).tolist()
    return items if outputs.dtype.kind == "U" else list(map(_text, items))


def _text(item: Any) -> str | None:
    if isinstance(item, (bytes, bytearray, memoryview)):
        return bytes(item).decode("latin-1")
    return str(item) if isinstance(item, str) else None


READERS: Final[dict[str, Callable[[Array], Iterator[tuple[slice, Rows]]]]] = {"words": words_of}
"""How outputs become rows of tokens, by the name that a record keeps."""

__all__ = ["NO_ROW", "READERS", "numbering", "texts_of", "words_of"]
