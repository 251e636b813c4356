"""Outputs of any regular kind as rows of small whole numbers, one per column: their letters.

Whole numbers, characters of strings and bytes are letters as they stand. A real number's letter
says which atom it is, or between which bin edges it lies: rounding never changes it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Final, NamedTuple

import numpy as np

from ...errors import choice, invalid, mistyped, real
from ...records import Record
from ..arrays import Array, Flags, Floats, Merged, Whole, freeze_arrays
from ..choosing.grains import Grain, cuts_of, grain_of, grains_of
from ..choosing.marks import SHARE
from ..reading.objects import as_hashable
from .columns import (
    Atoms,
    atoms_of,
    chunk_slices,
    first_rows,
    known,
    loose_of,
    read_numbers,
    whole_floats,
)

_LETTER_KINDS: Final = ("whole", "words", "text", "bytes", "real")
_MAX_UNCUT_RANGE: Final = 2**16
"""Columns of whole numbers with a longer range are cut into words of 16 bits."""
_SPECIAL_LETTERS: Final = 3
"""The last letters of a real column: NaN, minus and plus infinity."""
_MIN_BINS_WITH_TAILS: Final = 4
Grid = tuple[float, float]
"""Width of a cell, and the magnitude up to which it holds; see `Outcomes`."""
_GRID_TOLERANCES: Final = 4096.0
_GRID_OFFSET: Final = 0.618033988749895
"""Floats inside objects are rounded to a grid whose boundaries are at no simple fraction."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Letters(Record, word="Letters"):
    """Outputs as letters: one small whole number for each column, -1 for a value never seen.

    Args:
        kind: "whole" (integers, bools, dates; a letter is the value less the smallest one),
            "words" (the same in four columns of 16 bits each), "text" and "bytes" (a column for
            every character), "real" (a letter is the interval between edges).
        lows: smallest letter of each column, shape `(columns,)`.
        sizes: letters that each column has.
        edges: edges of all real columns, one after the other, increasing in each.
        labels: letters of the intervals that they cut, one more than edges in each column.
        stops: where each column's edges end.

    Raises:
        TypeError: if `kind` is not a string.
        ValueError: if it is none of the five.
    """

    kind: str
    lows: Whole
    sizes: Whole
    edges: Floats
    labels: Whole
    stops: Whole

    def __post_init__(self) -> None:
        """Freeze the tables."""
        choice("kind", self.kind, _LETTER_KINDS)
        freeze_arrays(self)

    @classmethod
    def of_whole(cls, outputs: Array, outputs_prime: Array, kind: str) -> Letters:
        """Make the letters of pilot outputs that are whole numbers, strings or bytes."""
        width = max(map(_count_columns, (outputs, outputs_prime)))
        sides = [raw_columns(kind, side, width) for side in (outputs, outputs_prime)]
        # Plain ints: the difference of two int64 need not be one.
        low = list(map(min, *(side.min(axis=0).tolist() for side in sides)))
        high = list(map(max, *(side.max(axis=0).tolist() for side in sides)))
        size = [last - first + 1 for first, last in zip(low, high, strict=True)]
        if max(size, default=0) > _MAX_UNCUT_RANGE and kind == "whole":
            return cls.of_whole(outputs, outputs_prime, "words")
        none = np.empty(0, dtype=np.int64)
        return cls(kind, np.array(low), np.array(size), np.empty(0), none, none)

    @classmethod
    def of_real(cls, shown: Sequence[RealColumn], bins: int) -> Letters:
        """Make the letters of real columns: their atoms, and bins of all other values."""
        edges, labels, sizes = zip(*(column.alphabet(bins) for column in shown), strict=True)
        stops = np.cumsum([part.size for part in edges])
        tables = np.array(sizes), np.concatenate(edges), np.concatenate(labels), stops
        return cls("real", np.zeros(len(shown), dtype=np.int64), *tables)

    def convert(self, outputs: Array) -> tuple[Array, Flags | None]:
        """Return outputs in the pilot's kind, and where they are not of it; None if they all are.

        A rare None or NaN changes the type of a whole array of strings or whole numbers.
        """
        outputs = np.asarray(outputs)
        if outputs.dtype == object:
            wanted = {"text": str, "bytes": bytes, "real": Real}.get(self.kind, Integral)
            fits = np.frompyfunc(lambda item: isinstance(item, wanted), 1, 1)(outputs).astype(bool)
            filled = np.where(fits, outputs, wanted() if self.kind in ("text", "bytes") else 0)
            outputs = np.array(filled.tolist()).reshape(outputs.shape)
        elif self.kind in ("whole", "words") and outputs.dtype.kind == "f":
            fits = whole_floats(outputs)
            outputs = np.where(fits, outputs, 0.0).astype(np.int64)
        else:
            return outputs, None
        return outputs, ~fits.reshape(len(outputs), -1).all(axis=1)

    def chunks(self, outputs: Array) -> Iterator[tuple[slice, Array]]:
        """Cut rows into slices that stay in the cache, each with its raw columns."""
        width = self.sizes.size
        for part in chunk_slices(outputs, width=width):
            raw = raw_columns(self.kind, outputs[part], width)
            if raw.shape[1] != width:
                raise invalid("outputs", f"of {width} columns, as the pilot's", raw.shape)
            yield part, raw

    def extend(self, code: Whole, raw: Array, first: int, stop: int) -> Whole:
        """Continue the numbers of rows by the letters of some columns; -1 if one is unknown."""
        unknown = code < 0
        for column in range(first, stop):
            letter = self._letter(raw[:, column], column)
            size = int(self.sizes[column])
            # Read without a sign, what is below the range is beyond it.
            unknown |= letter.view(np.uint64) >= size
            code = code * size + letter
        code[unknown] = -1
        return code

    def _letter(self, values: Array, column: int) -> Whole:
        if self.kind != "real":
            return values.astype(np.int64) - int(self.lows[column])
        first = int(self.stops[column - 1]) if column else 0
        edges = self.edges[first : self.stops[column]]
        values = np.ascontiguousarray(values, dtype=np.float64)
        letter = self.labels[first + column + np.searchsorted(edges, values, side="right")]
        odd = np.flatnonzero(~np.isfinite(values))
        kind = np.where(np.isnan(values[odd]), 0, np.where(values[odd] < 0.0, 1, 2))
        letter[odd] = self.sizes[column] - _SPECIAL_LETTERS + kind
        return letter


def kind_of(outputs: Array) -> str | None:
    """Return the kind of letters that an array has; None for objects and irregular arrays."""
    kinds = dict.fromkeys("biumM", "whole") | {"f": "real", "U": "text", "S": "bytes"}
    return kinds.get(outputs.dtype.kind)


def raw_columns(kind: str, outputs: Array, width: int) -> Array:
    """Return the columns from which letters are made, shape `(size, columns)`.

    Args:
        kind: see `Letters`.
        outputs: outputs, shape `(size, ...)`.
        width: columns wanted; strings are padded to them.

    Returns:
        Numbers; a row of -1 for strings that are too long.

    Raises:
        TypeError: if the outputs are of another kind.
    """
    found = kind_of(outputs)
    allowed = {"real": ("real", "whole"), "words": ("whole",)}.get(kind, (kind,))
    if found not in allowed:
        named = {"real": "numbers", "text": "strings", "bytes": "byte strings"}
        raise mistyped("outputs", named.get(kind, "whole numbers"), outputs.dtype)
    if found in ("text", "bytes"):
        return _character_codes(outputs.reshape(len(outputs), -1), width)
    if outputs.dtype.kind in "mM":
        outputs = outputs.view(np.int64)
    rows = read_numbers(outputs)
    if kind != "words":
        return rows
    return np.ascontiguousarray(rows, dtype=np.int64).view(np.uint16)


def _character_codes(rows: Array, width: int) -> Array:
    code = rows.dtype.kind
    each = max(1, width // max(1, rows.shape[1]))
    fitted = np.ascontiguousarray(rows.astype(f"{code}{each}"))
    raw = fitted.view(np.uint32 if code == "U" else np.uint8).reshape(len(rows), -1)
    if rows.dtype.itemsize > fitted.dtype.itemsize:
        long = (fitted != rows).any(axis=1)
        raw = np.where(long[:, np.newaxis], np.int64(-1), raw.astype(np.int64))
    return raw


def _count_columns(outputs: Array) -> int:
    size, letters = outputs.dtype.itemsize, {"U": 4, "S": 1}
    return outputs.size // max(1, len(outputs)) * (size // letters.get(outputs.dtype.kind, size))


class RealColumn(NamedTuple):
    """One column of real numbers, as the pilot shows it.

    Args:
        values: a sorted sample of both sides, finite.
        atoms: its atoms.
        grain: what rounding may move a value by.
    """

    values: Floats
    atoms: Atoms
    grain: Grain

    @property
    def loose(self) -> bool:
        """True if some values are no atoms."""
        return int(self.atoms.counts.sum()) < self.values.size

    def cuts(self, bins: int) -> Floats:
        """Return edges of bins of the values that are no atoms, in gaps between pilot values."""
        gaps = cuts_of(self.values, self.grain)
        ranks = np.cumsum(loose_of(self.values, self.atoms))
        if bins < 2 or not gaps.size or not self.loose:
            return np.empty(0)
        at = np.searchsorted(ranks[gaps], ranks[-1] * _edge_shares(bins))
        chosen = gaps[np.unique(at[at < gaps.size])]
        return np.asarray(self.values[chosen] + SHARE * np.diff(self.values)[chosen])

    def alphabet(self, bins: int) -> tuple[Floats, Whole, int]:
        """Return edges, letters of the intervals between them, and the number of letters."""
        cuts, atoms = self.cuts(bins), self.atoms
        # An interval that starts at `low` and stops after `high`.
        ends = np.nextafter(atoms.highs, np.inf)
        edges = np.sort(np.concatenate([cuts, atoms.lows, ends]))
        starts = np.concatenate([[-np.inf], edges])
        labels = np.searchsorted(cuts, starts, side="right")
        place = np.searchsorted(atoms.lows, starts, side="right")
        inside = starts < np.append(-np.inf, ends)[place]
        labels = np.where(inside, cuts.size + place, labels)
        return edges, labels.astype(np.int64), cuts.size + 1 + atoms.lows.size + _SPECIAL_LETTERS


def _edge_shares(bins: int) -> Floats:
    """Return the shares of the values below each edge: of equal bins, from four on finer tails.

    Where noise is added in the wrong place, the tails tell most.
    """
    inner = np.arange(1, bins) / bins
    tails = (
        np.array([1.0 / (4 * bins), 1.0 / (16 * bins)])
        if bins >= _MIN_BINS_WITH_TAILS
        else np.empty(0)
    )
    return np.sort(np.concatenate([inner, tails, 1.0 - tails]))


def real_columns(rows: Array, rows_prime: Array) -> list[RealColumn]:
    """Return every column of real numbers as the pilot shows it."""
    first, second = first_rows(rows), first_rows(rows_prime)
    pooled = (known(first[:, i], second[:, i]) for i in range(rows.shape[1]))
    return [
        RealColumn(values, atoms_of(values, grain), grain)
        for values, grain in zip(pooled, grains_of(first, second), strict=True)
    ]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Outcomes(Merged, word="Outcomes"):
    """The log ratio of an output that is a Python object; 0 for one that the pilot never saw.

    Args:
        keys: the objects, hashable, floats in them rounded to the grid.
        values: the score of each.
        unit: width of the grid to which floats inside objects are rounded; 0 for none.
        middle: the grid widens with the magnitude beyond this one, in powers of two;
            0 for one width.

    Raises:
        TypeError: if a key cannot be hashed or `unit` is not a number.
        ValueError: if there is not one value for each key or `unit` is negative.
    """

    keys: tuple[Hashable, ...]
    values: Floats
    unit: float = 0.0
    middle: float = 0.0

    cost = 2000

    def __post_init__(self) -> None:
        """Freeze the tables and check that they fit."""
        for name in ("unit", "middle"):
            object.__setattr__(self, name, real(name, getattr(self, name), low=0.0))
        grid = self.unit, self.middle
        keys = tuple(_make_key(key, grid) for key in self.keys)
        object.__setattr__(self, "keys", keys)
        freeze_arrays(self)
        if self.values.shape != (len(keys),):
            raise invalid("values", f"one for each of {len(keys)} keys", self.values.shape)

    def __call__(self, outputs: Array) -> Floats:
        """Return the scores, shape `(size,)`."""
        table = dict(zip(self.keys, self.values.tolist(), strict=True))
        keys = keys_of(outputs, (self.unit, self.middle))
        return np.array([table.get(key, 0.0) for key in keys], np.float64)

    def __str__(self) -> str:
        """Return one line for a report."""
        return f"log ratio of the outcome (one of {len(self.keys)})"


def items_of(outputs: Array) -> list[Any]:
    """Return every output as one Python object, a row as a tuple."""
    if outputs.ndim == 1:
        return list(outputs.tolist())
    return [tuple(row) for row in outputs.reshape(len(outputs), -1).tolist()]


def keys_of(outputs: Array, grid: Grid = (0.0, 0.0)) -> Iterable[Hashable]:
    """Return the keys of outputs in a table; a TypeError for one that cannot be hashed."""
    return (_make_key(item, grid) for item in items_of(np.asarray(outputs)))


def _make_key(item: Any, grid: Grid) -> Hashable:
    """Return the key of an object in a table: the object, its floats rounded to the grid."""
    if isinstance(item, np.generic):
        item = item.item()
    if isinstance(item, complex):
        item = (item.real, item.imag)
    if isinstance(item, float):
        # NaN is not equal to itself, and JSON has no infinities: their names stand for them.
        return _round_to_grid(item, grid) if math.isfinite(item) else str(item)
    if isinstance(item, tuple):
        return tuple(_make_key(part, grid) for part in item)
    # Lists, arrays, mappings and sets as what can be hashed: tuples may hold floats again.
    plain = as_hashable(item)
    return _make_key(plain, grid) if isinstance(plain, tuple) else plain


def _round_to_grid(value: float, grid: Grid) -> float:
    unit, middle = grid
    if unit == 0.0:
        return value
    if abs(value) > middle > 0.0:
        unit *= 2.0 ** math.frexp(abs(value) / middle)[1]
    return math.floor(value / unit + _GRID_OFFSET) * unit


def grid_of(*sides: Array) -> Grid:
    """Return the grid for the floats in objects of both sides: 4,096 tolerances at their middle."""
    found = [list(_iterate_floats(items_of(side))) for side in sides]
    grain = grain_of(*(np.array(values, np.float64) for values in found))
    return (0.0, 0.0) if grain.exact else (_GRID_TOLERANCES * grain.typical, grain.middle)


def _iterate_floats(items: Iterable[Any]) -> Iterator[float]:
    for item in items:
        if isinstance(item, (tuple, list)):
            yield from _iterate_floats(item)
        elif isinstance(item, (float, complex, np.floating, np.complexfloating)):
            parts = complex(item)
            yield from (parts.real, parts.imag) if parts.imag else (parts.real,)
