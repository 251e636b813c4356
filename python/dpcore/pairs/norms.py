"""Distances between the two inputs of a pair, and the size of a vector of inputs."""

from __future__ import annotations

import math
from typing import Any, Final, Literal, get_args

from ..errors import choice, integer, invalid, mistyped
from ..hints import hinted
from ..records import Pair, pair_of
from .comparing import added_or_removed, as_real_numbers, count_replaced, entry_gaps, read_records

__all__ = ["NORMS", "Norm", "dimension", "distance", "distances"]

Norm = Literal["l1", "l2", "linf"]
NORMS: Final[tuple[Norm, ...]] = get_args(Norm)
"""The norms in which distances are measured."""

_DIMENSION_END = 2**60


@hinted
def dimension(dim: int) -> int:
    """Check the number of entries of a vector of float64: at least 1, below 2**60."""
    dim = integer("dim", dim, 1)
    if dim >= _DIMENSION_END:
        raise invalid("dim", "below 2**60, the largest vector that can be addressed", dim)
    return dim


@hinted
def distance(pair: Pair | tuple[Any, Any], norm: Norm) -> float:
    """Compute the norm of x' - x, summed without loss and without intermediate overflow.

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
    pair = pair_of(pair)
    x, x_prime = as_real_numbers(pair.x), as_real_numbers(pair.x_prime)
    if x is None or x_prime is None:
        name, value = ("x", pair.x) if x is None else ("x_prime", pair.x_prime)
        raise mistyped(name, "an array of real numbers", value)
    if x.shape != x_prime.shape:
        raise invalid("pair", "two arrays of equal shape", (x.shape, x_prime.shape))
    apart = entry_gaps(x, x_prime).ravel()
    if norm == "linf":
        return float(apart.max(initial=0.0))
    if norm == "l2":
        # hypot scales by the largest entry: squares neither overflow nor vanish.
        return math.hypot(*apart.tolist())
    try:
        return math.fsum(apart.tolist())
    except OverflowError:
        return math.inf


@hinted
def distances(pair: Pair | tuple[Any, Any]) -> dict[str, Any]:
    """Compute the distance of two inputs by every measure that applies to them.

    Args:
        pair: two inputs of any kind.

    Returns:
        For numbers of equal shape "l1", "l2", "linf" in the units of the inputs, "changed" of
        "entries". For arrays of two dimensions or more, for arrays of two lengths, for lists,
        tuples and texts the "unit" of which they consist (record, word, character, byte), "size"
        and "size_prime" in that unit, "replaced" where both are equal, and "added_or_removed"
        (inf beyond 200; not for numbers of equal shape). Empty for inputs of other kinds.

    Raises:
        TypeError: if `pair` is no `Pair`.

    Example:
        >>> distances(Pair([0, 0], [1, 0]))
        {'l1': 1.0, 'l2': 1.0, 'linf': 1.0, 'changed': 1, 'entries': 2}
        >>> distances(Pair("a good film", "a film"))
        {'unit': 'word', 'size': 3, 'size_prime': 2, 'added_or_removed': 1}
    """
    pair = pair_of(pair)
    x, x_prime = as_real_numbers(pair.x), as_real_numbers(pair.x_prime)
    if x is None or x_prime is None or x.shape != x_prime.shape:
        return _count_record_changes(pair)
    found: dict[str, Any] = {norm: distance(pair, norm) for norm in NORMS}
    changed = entry_gaps(x, x_prime) != 0.0
    found.update(changed=int(changed.sum()), entries=changed.size)
    if changed.ndim >= 2:
        rows = changed.any(axis=tuple(range(1, changed.ndim)))
        found.update(unit="record", size=rows.size, size_prime=rows.size, replaced=int(rows.sum()))
    return found


def _count_record_changes(pair: Pair) -> dict[str, Any]:
    parts = read_records(pair)
    if parts is None:
        return {}
    unit, first, second = parts
    found: dict[str, Any] = {"unit": unit, "size": len(first), "size_prime": len(second)}
    if len(first) == len(second):
        found["replaced"] = count_replaced(first, second)
    found["added_or_removed"] = added_or_removed(first, second)
    return found
