"""Arrays to fill with outputs: how large, and in which layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import integer, invalid, mistyped
from .seeds import MOST_DRAWS


def check_size(size: int, dim: int) -> int:
    """Check a number of outputs of `dim` entries: at least 0, and few enough to be addressed."""
    size = integer("size", size, 0)
    if size * dim >= MOST_DRAWS // 8:
        raise invalid("size", "small enough that size * dim * 8 bytes can be addressed", size)
    return size


def array_for(
    out: npt.NDArray[Any] | None, shape: tuple[int, int], dtype: npt.DTypeLike
) -> npt.NDArray[Any]:
    """Return the array to fill: `out` after a check of its fit, or a new one.

    Args:
        out: what the caller gave, or None.
        shape: that it must have.
        dtype: float64 or float32.

    Raises:
        TypeError: if one of them is of the wrong kind.
        ValueError: if a type, a shape or a layout is wrong.
    """
    try:
        wanted = np.dtype(dtype)
    except Exception:
        # numpy parses strings such as "f8,(3" as Python and shows objects by their own repr, so
        # that a SyntaxError or anything else can come out.
        raise mistyped("dtype", "float64 or float32", dtype) from None
    if wanted not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise invalid("dtype", "float64 or float32", dtype)
    if out is None:
        return np.empty(shape, wanted)
    if not isinstance(out, np.ndarray):
        raise mistyped("out", "a numpy array", out)
    if out.shape != shape or out.dtype != wanted:
        requirement = f"of shape {shape} and type {wanted}"
        raise invalid("out", requirement, (out.shape, str(out.dtype)))
    if not out.flags.aligned:
        requirement = f"aligned, its address a multiple of {wanted.itemsize}"
        raise invalid("out", requirement, out.ctypes.data)
    if not (out.flags.c_contiguous and out.flags.writeable):
        raise invalid("out", "C-contiguous and writeable", out.flags)
    return out
