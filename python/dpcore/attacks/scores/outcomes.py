"""Outputs that are Python objects: a table of those that the pilot showed."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...errors import invalid, real
from ...records import Record, frozen_array
from ..choosing.grains import grain_of
from ..reading.objects import frozen
from .columns import Floats

Grid = tuple[float, float]
"""Width of a cell, and the magnitude up to which it holds; see `Outcomes`."""

_WIDE: Final = 4096.0
_GRID: Final = 0.618033988749895
"""Floats inside objects are rounded to a grid whose boundaries are at no simple fraction."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Outcomes(Record, word="Outcomes"):
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

    merged = True
    cost = 2000

    def __post_init__(self) -> None:
        """Freeze the tables and check that they fit."""
        for name in ("unit", "middle"):
            object.__setattr__(self, name, real(name, getattr(self, name), low=0.0))
        grid = self.unit, self.middle
        keys = tuple(_key(_tupled(key), grid) for key in self.keys)
        object.__setattr__(self, "keys", keys)
        object.__setattr__(self, "values", frozen_array(np.asarray(self.values, np.float64)))
        if self.values.shape != (len(keys),):
            raise invalid("values", f"one for each of {len(keys)} keys", self.values.shape)

    def __call__(self, outputs: npt.NDArray[Any]) -> Floats:
        """The scores, shape `(size,)`."""
        table = dict(zip(self.keys, self.values.tolist(), strict=True))
        keys = keys_of(outputs, (self.unit, self.middle))
        return np.array([table.get(key, 0.0) for key in keys], np.float64)

    def __str__(self) -> str:
        """One line for a report."""
        return f"log ratio of the outcome (one of {len(self.keys)})"


def items_of(outputs: npt.NDArray[Any]) -> list[Any]:
    """Every output as one Python object, a row as a tuple."""
    if outputs.ndim == 1:
        return list(outputs.tolist())
    return [tuple(row) for row in outputs.reshape(len(outputs), -1).tolist()]


def keys_of(outputs: npt.NDArray[Any], grid: Grid = (0.0, 0.0)) -> Iterable[Hashable]:
    """What stands for every output in a table; a TypeError for one that cannot be hashed."""
    for item in items_of(np.asarray(outputs)):
        yield _key(item, grid)


def _key(item: Any, grid: Grid) -> Hashable:
    """What stands for an object in the table: itself, its floats rounded to the grid."""
    if isinstance(item, np.generic):
        item = item.item()
    if isinstance(item, complex):
        return tuple(_key(part, grid) for part in (item.real, item.imag))
    if isinstance(item, float):
        # NaN is not equal to itself, and JSON has no infinities: their names stand for them.
        return _rounded(item, grid) if math.isfinite(item) else str(item)
    if isinstance(item, tuple):
        return tuple(_key(part, grid) for part in item)
    # Lists, arrays, mappings and sets as what can be hashed: tuples may hold floats again.
    plain = frozen(item)
    return _key(plain, grid) if isinstance(plain, tuple) else plain


def _rounded(value: float, grid: Grid) -> float:
    unit, middle = grid
    if unit == 0.0:
        return value
    if abs(value) > middle > 0.0:
        unit *= 2.0 ** math.frexp(abs(value) / middle)[1]
    return math.floor(value / unit + _GRID) * unit


def grid_of(sides: Iterable[Iterable[Any]]) -> Grid:
    """The grid for the floats in objects of both sides: 4,096 tolerances at their middle."""
    values, values_prime = (np.array(list(_floats(items)), np.float64) for items in sides)
    grain = grain_of(values, values_prime)
    return (0.0, 0.0) if grain.exact else (_WIDE * grain.typical, grain.middle)


def _floats(items: Iterable[Any]) -> Iterator[float]:
    for item in items:
        if isinstance(item, (tuple, list)):
            yield from _floats(item)
        elif isinstance(item, (float, complex, np.floating, np.complexfloating)):
            parts = complex(item)
            yield from (parts.real, parts.imag) if parts.imag else (parts.real,)


def _tupled(key: Any) -> Any:
    """Lists, as which JSON keeps tuples, as tuples again."""
    return tuple(map(_tupled, key)) if isinstance(key, (list, tuple)) else key
