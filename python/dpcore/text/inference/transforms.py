"""Transforms that attackers apply to every row before they classify it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from .encoding import Vectors

__all__ = [
    "CALL_TRANSFORMS",
    "TRANSFORMS",
    "centred",
    "minimum",
    "raw",
    "scaled",
    "subtract_call_mean",
    "summarise_rows",
]

_TRAILING_BIT_COUNTS: Final = (8, 16, 29, 40)
"""Zero bits at the end of a number: of grids, of half types, of float32 (29), of short decimals."""


def raw(vectors: Vectors) -> Vectors:
    """Return the rows unchanged."""
    return vectors


def centred(vectors: Vectors) -> Vectors:
    """Subtract each row's mean, which removes noise that is one draw for a whole row."""
    return np.asarray(vectors - vectors.mean(axis=1, keepdims=True))


def minimum(vectors: Vectors) -> Vectors:
    """Subtract each row's minimum: a row of minimum 0 with one draw of noise becomes clean.

    Example:
        >>> minimum(np.array([[0.0, 1.0, 0.25]]) + 7.0)
        array([[0.  , 1.  , 0.25]])
    """
    return np.asarray(vectors - vectors.min(axis=1, keepdims=True))


def scaled(vectors: Vectors) -> Vectors:
    """Divide each row by its L2 norm, which removes a scale of its own; rows of zeros stay."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(norms > 0.0, norms, 1.0))


def subtract_call_mean(vectors: Vectors) -> Vectors:
    """Subtract the mean of every column: one draw of noise for all texts of a call is gone.

    Example:
        >>> subtract_call_mean(np.array([[0.0, 2.0], [1.0, 4.0]]) + 7.0)
        array([[-0.5, -1. ],
               [ 0.5,  1. ]])
    """
    return np.asarray(vectors - vectors.mean(axis=0))


def summarise_rows(vectors: Vectors) -> Vectors:
    """Compute what a row shows as a whole: norms, extremes, equal entries, zeros and last bits.

    Args:
        vectors: shape `(n, d)`.

    Returns:
        Shape `(n, 14)`: L1, L2 and largest norm, mean, standard deviation, smallest and largest
        entry, share of zeros, of negative entries and of entries equal to another of the row, and
        the shares of entries that end in 8, 16, 29 and 40 zero bits.
    """
    sizes, width = np.abs(vectors), vectors.shape[1]
    distinct = (np.diff(np.sort(vectors, axis=1), axis=1) != 0.0).sum(axis=1) + 1
    bits = np.ascontiguousarray(vectors, np.float64).view(np.uint64)
    columns = [
        sizes.sum(axis=1), np.linalg.norm(vectors, axis=1), sizes.max(axis=1),
        vectors.mean(axis=1), vectors.std(axis=1), vectors.min(axis=1), vectors.max(axis=1),
        (vectors == 0.0).mean(axis=1), (vectors < 0.0).mean(axis=1), 1.0 - distinct / width,
        *((bits & np.uint64(2**count - 1) == 0).mean(axis=1) for count in _TRAILING_BIT_COUNTS),
    ]  # fmt: skip
    return np.stack(columns, axis=1)


def join_views(vectors: Vectors) -> Vectors:
    """Join the rows, the columns less their call's mean, and the summaries of the rows."""
    return np.hstack([vectors, subtract_call_mean(vectors), summarise_rows(vectors)])


TRANSFORMS: Final[dict[str, Callable[[Vectors], Vectors]]] = {
    "raw": raw,
    "centred": centred,
    "row minimum subtracted": minimum,
    "norm-scaled": scaled,
    "call mean subtracted": subtract_call_mean,
    "row summaries": summarise_rows,
    "rows, call and summaries": join_views,
}
"""The transforms by the names that an `Attacker` takes."""

CALL_TRANSFORMS: Final = ("call mean subtracted", "rows, call and summaries")
"""Those in which the score of a text depends on the other texts of its call."""
