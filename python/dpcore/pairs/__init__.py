"""Pairs of inputs: ready-made ones, neighbour relations, and the search for the pair that leaks."""

from .datasets import AddRemove, Records, Replace
from .differences import NORMS, dimension, distance, distances
from .neighbours import L1, L2, WHICH, Bounded, Box, Domain, Linf, Neighbour, patterns, zeros_ones
from .pair_search import Search, Searched, drive, explore, search

__all__ = [
    "L1",
    "L2",
    "NORMS",
    "WHICH",
    "AddRemove",
    "Bounded",
    "Box",
    "Domain",
    "Linf",
    "Neighbour",
    "Records",
    "Replace",
    "Search",
    "Searched",
    "dimension",
    "distance",
    "distances",
    "drive",
    "explore",
    "patterns",
    "search",
    "zeros_ones",
]


def __dir__() -> list[str]:
    """List the package's own names.

    Names that it imports can be imported from here too, but are not shown.
    """
    return [*__all__]
