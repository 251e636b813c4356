"""Kinds of arrays by short names, and arrays inside records."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import invalid, mistyped
from ..records import Record, frozen_array

__all__ = [
    "Array", "Flags", "Floats", "Merged", "Places", "Whole", "Words", "freeze_arrays",
    "group_columns",
]  # fmt: skip

Array = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]
Whole = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_KINDS: Final = {"Floats": np.float64, "Whole": np.int64}


class Merged(Record):
    """A score that is a function of cells, which were placed with rounding in mind."""

    __slots__ = ()

    merged = True


def group_columns(x: Floats, x_prime: Floats) -> list[tuple[tuple[int, ...], tuple[float, float]]]:
    """Return groups of columns with equal inputs, each with its x_i and x'_i.

    Example:
        >>> group_columns(np.array([0.0, 0.0, 2.0]), np.array([1.0, 1.0, 2.0]))
        [((0, 1), (0.0, 1.0)), ((2,), (2.0, 2.0))]
    """
    kinds, where = np.unique(np.stack([x, x_prime], axis=1), axis=0, return_inverse=True)
    groups = [tuple(np.flatnonzero(where.ravel() == i).tolist()) for i in range(len(kinds))]
    return list(zip(groups, map(tuple, kinds.tolist()), strict=True))


def freeze_arrays(record: Any) -> None:
    """Replace the fields of a frozen dataclass that are `Floats` or `Whole` by read-only arrays.

    Raises:
        TypeError: if a field does not hold real numbers.
        ValueError: if a field of type `Whole` holds others than whole numbers.
    """
    for field in fields(record):
        if field.type in _KINDS:
            given = np.asarray(getattr(record, field.name))
            if given.size and given.dtype.kind not in "buif":
                raise mistyped(field.name, "real numbers", given)
            with np.errstate(invalid="ignore"):
                values = np.asarray(given, _KINDS[field.type])
            if field.type == "Whole" and not (values == given).all():
                raise invalid(field.name, "whole numbers", given)
            object.__setattr__(record, field.name, frozen_array(values))
