"""Kinds of arrays by short names, and arrays inside records."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import invalid, mistyped
from ..records import Record, frozen_array

__all__ = ["Array", "Flags", "Floats", "Merged", "Places", "Whole", "Words", "freeze_arrays"]

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
                raise mistyped(field.name, "an array of real numbers", given)
            values = np.asarray(given, _KINDS[field.type])
            if field.type == "Whole" and not (values == given).all():
                raise invalid(field.name, "an array of whole numbers", given)
            object.__setattr__(record, field.name, frozen_array(values))
