"""What an attacker does to every row before he classifies it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from .encoding import Vectors

__all__ = ["TRANSFORMS", "centred", "minimum", "raw", "scaled"]


def raw(vectors: Vectors) -> Vectors:
    """The rows as they are."""
    return vectors


def centred(vectors: Vectors) -> Vectors:
    """Every row less its mean: one draw of noise for a whole row is gone."""
    return np.asarray(vectors - vectors.mean(axis=1, keepdims=True))


def minimum(vectors: Vectors) -> Vectors:
    """Every row less its minimum: of a row of minimum 0 with one draw of noise, the clean row.

    Example:
        >>> minimum(np.array([[0.0, 1.0, 0.25]]) + 7.0)
        array([[0.  , 1.  , 0.25]])
    """
    return np.asarray(vectors - vectors.min(axis=1, keepdims=True))


def scaled(vectors: Vectors) -> Vectors:
    """Every row over its L2 norm: a scale of its own is gone; rows of zeros stay."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(norms > 0.0, norms, 1.0))


TRANSFORMS: Final[dict[str, Callable[[Vectors], Vectors]]] = {
    "raw": raw,
    "centred": centred,
    "row minimum subtracted": minimum,
    "norm-scaled": scaled,
}
"""The transforms by the names that an `Attacker` takes."""
