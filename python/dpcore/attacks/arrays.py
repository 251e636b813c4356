"""Kinds of arrays by short names, and arrays inside records."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "Flags", "Floats", "Places", "Whole", "Words"]

Array = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]
Whole = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
