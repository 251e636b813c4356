"""Pairs of inputs: ready-made ones, neighbour relations, and the search for the pair that leaks."""

from .balls import L1, L2, Linf
from .datasets import AddRemove, Records, Replace
from .domains import Bounded, Box, Domain, Neighbour
from .norms import NORMS, dimension, distance, distances
from .searching import Search, Searched, drive, explore, search
from .usual import WHICH, patterns, zeros_ones

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
