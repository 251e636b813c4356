"""Pairs of inputs: ready-made pairs, neighbour relations, and a search for the pair to audit."""

from .datasets import AddRemove, Records, Replace
from .differences import NORMS as NORMS
from .differences import dimension, distance, distances
from .neighbours import L1, L2, Box, Domain, Linf, Neighbour, patterns, zeros_ones
from .neighbours import WHICH as WHICH
from .neighbours import Bounded as Bounded
from .pair_search import Search, Searched, search
from .pair_search import drive as drive
from .pair_search import explore as explore
from .text_pairs import AnyTexts, Texts

__all__ = [
    "L1", "L2", "AddRemove", "AnyTexts", "Box", "Domain", "Linf", "Neighbour", "Records", "Replace",
    "Search", "Searched", "Texts", "dimension", "distance", "distances", "patterns", "search",
    "zeros_ones",
]  # fmt: skip


def __dir__() -> list[str]:
    """List the public names of the package, without the names that it imports."""
    return [*__all__]
