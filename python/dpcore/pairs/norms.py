"""How far apart the two inputs of a pair are."""

from __future__ import annotations

import math

import numpy as np

from ..errors import choice, instance, integer, invalid, mistyped
from ..records import Pair

NORMS = ("l1", "l2", "linf")

_DIM_END = 2**60


def dimension(dim: int) -> int:
    """Check the number of entries of a vector of float64: at least 1, below 2**60."""
    dim = integer("dim", dim, 1)
    if dim >= _DIM_END:
        raise invalid("dim", "below 2**60, the largest vector that can be addressed", dim)
    return dim


def distance(pair: Pair, norm: str) -> float:
    """The norm of x' - x, summed without loss and without overflow on the way.

    Args:
        pair: two arrays of numbers of equal shape, or two numbers.
        norm: "l1" (sum of absolute differences), "l2" (Euclidean) or "linf" (the largest).

    Returns:
        The distance in the units of the inputs; inf if it is beyond the range of float64.

    Raises:
        TypeError: if the pair does not hold arrays of real numbers, or `norm` is not a string.
        ValueError: if the shapes differ or `norm` is none of the three.

    Example:
        >>> pair = Pair([0, 0, 0, 0], [1, 1, 1, 1])
        >>> distance(pair, "l1"), distance(pair, "l2")
        (4.0, 2.0)
    """
    choice("norm", norm, NORMS)
    pair = instance("pair", pair, Pair)
    # A bare number is a vector of one entry, as mechanisms of other packages take it.
    x, x_prime = (
        np.array([float(side)]) if isinstance(side, (int, float)) else side
        for side in (pair.x, pair.x_prime)
    )
    for name, value in (("x", x), ("x_prime", x_prime)):
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "buif":
            raise mistyped(name, "an array of real numbers", value)
    if x.shape != x_prime.shape:
        raise invalid("pair", "two arrays of equal shape", (x.shape, x_prime.shape))
    with np.errstate(over="ignore"):
        gaps = np.abs(x_prime.astype(np.float64) - x.astype(np.float64)).ravel()
    if norm == "linf":
        return float(gaps.max(initial=0.0))
    if norm == "l2":
        # hypot scales by the largest entry: squares neither overflow nor vanish.
        return math.hypot(*gaps.tolist())
    try:
        return math.fsum(gaps.tolist())
    except OverflowError:
        return math.inf
