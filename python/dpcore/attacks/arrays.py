"""Kinds of arrays by short names, and arrays inside records."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import invalid, mistyped
from ..records import Record, frozen_array

__all__ = [
    "Array", "Codes", "Flags", "Floats", "Merged", "Places", "Whole", "Words", "freeze_arrays",
]  # fmt: skip

Array = npt.NDArray[Any]
Codes = npt.NDArray[np.uint32]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]
Whole = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_DTYPES_BY_ALIAS: Final[dict[str, Any]] = {
    "Floats": np.float64, "Whole": np.int64, "Words": np.uint64, "Codes": np.uint32,
}  # fmt: skip


class Merged(Record):
    """A score that is a function of cells, which were placed with rounding in mind."""

    __slots__ = ()

    merged = True


def freeze_arrays(record: Any) -> None:
    """Replace the fields of a frozen dataclass that are arrays of numbers by read-only arrays.

    Fields of the types `Floats`, `Whole`, `Words` and `Codes` are.

    Raises:
        TypeError: if a field does not hold real numbers, or one of `Words` or `Codes` no integers.
        ValueError: if a field holds others than whole numbers of its type.
    """
    for field in fields(record):
        if field.type in _DTYPES_BY_ALIAS:
            given = np.asarray(getattr(record, field.name))
            is_code = field.type in ("Words", "Codes")
            if given.size and given.dtype.kind not in ("iu" if is_code else "buif"):
                raise mistyped(field.name, "whole numbers" if is_code else "real numbers", given)
            with np.errstate(invalid="ignore"):
                values = np.asarray(given, _DTYPES_BY_ALIAS[field.type])
            if field.type != "Floats" and not (values == given).all():
                raise invalid(field.name, f"whole numbers that {values.dtype} holds", given)
            object.__setattr__(record, field.name, frozen_array(values))
