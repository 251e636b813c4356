"""Checks that an audit's two inputs are neighbours, in any domain."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import about, invalid
from ..records import Pair
from .domains import SLACK, neighbour_of
from .norms import distances

__all__ = ["format_neighbour", "refuse_farther"]


class _AnyInput:
    """The domain of all inputs, for a relation that knows no measure but `holds`."""

    dim = 1

    def contains(self, x: Any) -> bool:
        return True

    def draw(self, rng: np.random.Generator) -> Any:
        raise NotImplementedError("a relation is only asked here, not searched")


def format_neighbour(neighbour: Any) -> str:
    """Format a relation as its constructor call, or as its class name if that is unknown.

    Example:
        >>> from dpcore.pairs import L1
        >>> format_neighbour(L1(2.0))
        'L1(radius=2.0)'
    """
    shown = repr(neighbour)
    # An address differs from run to run.
    return type(neighbour).__qualname__ if " object at 0x" in shown else shown


def refuse_farther(pair: Pair, neighbour: Any) -> None:
    """Refuse a pair that a relation does not call neighbours; two equal inputs pass.

    Args:
        pair: the two inputs.
        neighbour: `L1`, `L2`, `Linf`, `Replace`, `AddRemove`, or an own relation; its
            `holds` is called with a domain that contains everything.

    Raises:
        TypeError: if `neighbour` is no relation, or one of inputs of another kind.
        ValueError: if the inputs are farther apart than neighbours are; the message has both
            distances.

    Example:
        >>> from dpcore.pairs import L1
        >>> refuse_farther(Pair([0, 0], [1, 1]), L1(1.0))
        Traceback (most recent call last):
        ValueError: pair must be at L1 distance at most 1.0 (neighbour=L1(radius=1.0)), got 2.0
    """
    relation: Any = neighbour_of(neighbour)
    if not hasattr(relation, "apart"):
        if not relation.holds(pair, _AnyInput()):
            found = distances(pair) or (pair.x, pair.x_prime)
            raise invalid("pair", f"two neighbours by {format_neighbour(relation)}", found)
        return
    apart = relation.apart(pair)
    # Written so that NaN is refused, too.
    if not apart <= relation.most * (1.0 + SLACK):
        shown = format_neighbour(relation)
        error = invalid("pair", f"{relation.limit} (neighbour={shown})", apart)
        raise about(error, "pair", neighbour=shown)
