"""Characters of many strings at once: their codes at both ends, how often each occurs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_WIDE: Final = 256
"""Longer strings are cut to both their ends, where they came one by one."""
_END: Final = 1024
"""Characters kept at either end of those: more than any part reads."""
DELIMITERS: Final = ",;\t|"
"""Letters between which texts have fields."""

NO_LETTER: Final = -1.0
"""The letter at a place beyond the string."""


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """Strings, or strings of bytes, as numbers.

    Args:
        lengths: characters of each, shape `(size,)`.
        heads: codes of the characters from the start, shape `(size, width)`; 0 beyond the end.
        tails: the same from the end backwards; None where `heads` holds all characters.
        items: the strings themselves; None where `heads` holds all characters.
    """

    lengths: npt.NDArray[np.int64]
    heads: npt.NDArray[Any]
    tails: npt.NDArray[Any] | None = None
    items: Sequence[Any] | None = None

    @classmethod
    def of_array(cls, array: npt.NDArray[Any]) -> Texts:
        """The strings of an array of type U or S, shape `(size,)`."""
        return cls(np.char.str_len(array).astype(np.int64), _codes(array))

    @classmethod
    def of_items(cls, items: Sequence[Any], is_bytes: bool) -> Texts:
        """Strings, or bytes, that came one by one."""
        lengths = np.fromiter(map(len, items), np.int64, len(items))
        width, code = int(lengths.max(initial=0)), "S" if is_bytes else "U"
        if width <= _WIDE:
            return cls(lengths, _codes(np.array(items, dtype=f"{code}{max(1, width)}")))
        heads = np.array([one[:_END] for one in items], dtype=f"{code}{_END}")
        tails = np.array([one[: -_END - 1 : -1] for one in items], dtype=f"{code}{_END}")
        return cls(lengths, _codes(heads), _codes(tails), items)

    @property
    def most(self) -> int:
        """The number of places from either end that are read."""
        return _END if self.tails is not None else self.heads.shape[1]

    @property
    def is_bytes(self) -> bool:
        """True for strings of bytes."""
        return self.heads.dtype == np.uint8

    def letter(self, place: int) -> Floats:
        """The code of the letter at a place, from the end where it is below 0; -1 for none."""
        width = self.heads.shape[1]
        if place >= 0:
            inside = self.lengths > place
            if place >= width:
                return _beside(inside, np.nan)
            return _beside(inside, self.heads[:, place])
        inside = self.lengths >= -place
        if self.tails is not None:
            return _beside(inside, self.tails[:, min(-place, _END) - 1])
        at = np.clip(self.lengths + place, 0, width - 1)
        found = np.take_along_axis(self.heads, at[:, np.newaxis], axis=1)[:, 0]
        return _beside(inside, found)

    def count(self, code: int) -> Floats:
        """How often a letter occurs in each string."""
        if self.items is not None:
            letter = bytes([code]) if isinstance(self.items[0], bytes) else chr(code)
            return np.fromiter((one.count(letter) for one in self.items), np.float64)
        counts = np.count_nonzero(self.heads == code, axis=1)
        if code == 0:
            # What lies beyond the end is no letter.
            counts = counts - (self.heads.shape[1] - self.lengths)
        found: Floats = counts.astype(np.float64)
        return found

    def numbers(self, most: int | None = None) -> Floats:
        """The first strings, or all, read as decimal numbers; NaN for those that are none."""
        return np.array([_number(text) for text in self._strings()[:most]], dtype=np.float64)

    def frequent(self, most: int) -> list[int]:
        """The codes of the most frequent letters, the most frequent first."""
        used = np.arange(self.heads.shape[1]) < self.lengths[:, np.newaxis]
        codes, counts = np.unique(self.heads[used], return_counts=True)
        return [int(code) for code in codes[np.argsort(-counts, kind="stable")][:most]]

    def _strings(self) -> Sequence[Any]:
        if self.items is not None:
            return self.items
        wide = self.heads.dtype == np.uint32
        kind = f"{'U' if wide else 'S'}{self.heads.shape[1]}"
        strings: list[Any] = np.ascontiguousarray(self.heads).view(kind)[:, 0].tolist()
        return strings


def _beside(inside: npt.NDArray[np.bool_], codes: Any) -> Floats:
    letters: Floats = np.where(inside, codes, NO_LETTER)
    return letters


def _codes(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The characters of strings of one width as numbers, shape `(size, width)`."""
    code = np.uint32 if array.dtype.kind == "U" else np.uint8
    width = array.dtype.itemsize // np.dtype(code).itemsize
    if width == 0:
        return np.zeros((len(array), 1), code)
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    return np.ascontiguousarray(native).view(code).reshape(len(array), width)


def _number(text: Any) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
