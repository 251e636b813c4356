"""Checked vectors and rows, their lengths, and rows brought inside a norm ball."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import invalid, numeric, vector

Floats = npt.NDArray[np.float64]


def as_possible_vector(x: Any, dim: int) -> Floats | None:
    """Return x as float64, or None if x is not a vector of `dim` finite numbers."""
    try:
        return vector("x", x, dim)
    except (TypeError, ValueError):
        return None


def rows_of(x: Any) -> Floats:
    """Check a vector or rows of finite numbers; return float64 of shape `(size, dim)`."""
    requirement = "a vector or rows of finite numbers, shape (dim,) or (size, dim) with dim >= 1"
    array = numeric("x", requirement, x)
    if array.ndim not in (1, 2) or array.shape[-1] == 0:
        raise invalid("x", requirement, x)
    with np.errstate(over="ignore"):
        rows = np.ascontiguousarray(array, dtype=np.float64).reshape(-1, array.shape[-1])
    refuse_rows(np.asarray(~np.isfinite(rows).all(axis=-1)), "finite numbers", rows, array.ndim)
    return rows


def refuse_rows(wrong: npt.NDArray[np.bool_], requirement: str, rows: Floats, ndim: int) -> None:
    """Raise a ValueError that names the first wrong row, if there is one."""
    if wrong.any():
        place = int(np.argmax(wrong))
        name = "x" if ndim == 1 else f"row {place} of x"
        raise invalid(name, requirement, rows[place])


def row_lengths(rows: Floats, norm: str) -> Floats:
    """Compute the norm of each row, shape `(size,)`; inf beyond the range of float64.

    Rows are scaled by a power of two, which is exact: neither squares nor sums overflow or vanish
    on the way.
    """
    sizes = np.abs(rows)
    largest: Floats = sizes.max(axis=-1)
    if norm == "linf":
        return largest
    exponent = np.frexp(largest)[1]
    parts = np.ldexp(sizes, -exponent[..., np.newaxis])
    total = parts.sum(axis=-1) if norm == "l1" else np.sqrt((parts * parts).sum(axis=-1))
    with np.errstate(over="ignore"):
        return np.asarray(np.ldexp(total, exponent), dtype=np.float64)


def vector_length(x: Floats, norm: str) -> float:
    """Compute the norm of one vector, as `row_lengths` does."""
    return float(row_lengths(x[np.newaxis], norm)[0])


def normalise_rows(rows: Floats, norm: str) -> Floats:
    """Divide rows by their norms; no row may be zero."""
    parts = rows / np.abs(rows).max(axis=-1, keepdims=True)
    return np.asarray(parts / row_lengths(parts, norm)[:, np.newaxis])


def shrink_rows(rows: Floats, norm: str, radius: float) -> Floats:
    """Multiply rows by min(1, radius / norm).

    No result lies outside the ball, so a second call changes nothing.
    """
    outside = row_lengths(rows, norm) > radius
    if not outside.any():
        return rows
    moved = normalise_rows(rows[outside], norm) * radius
    # Rounding may leave a row some units in the last place outside: one step inwards removes one.
    while (over := row_lengths(moved, norm) > radius).any():
        moved[over] = np.nextafter(moved[over], 0.0)
    result = rows.copy()
    result[outside] = moved
    return result
