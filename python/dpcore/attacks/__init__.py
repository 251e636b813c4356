"""Attacks: from pilot outputs to the event that an audit counts."""

from __future__ import annotations

from typing import Any

from ..errors import choice
from .additive import Additive
from .attack import ScoreAttack
from .auto import Auto
from .classifier import Classifier
from .coordinatewise import Coordinatewise
from .histogram import Histogram
from .lattice import FloatLattice
from .majority import MajorityVote, choose
from .products import Products
from .residues import Residues
from .support import Support
from .threshold import Threshold
from .timing import Timing
from .words import Words

NAMES = {
    "auto": Auto,
    "majority": MajorityVote,
    "threshold": Threshold,
    "histogram": Histogram,
    "words": Words,
    "additive": Additive,
    "support": Support,
    "products": Products,
    "residues": Residues,
    "lattice": FloatLattice,
    "coordinatewise": Coordinatewise,
    "classifier": Classifier,
    "timing": Timing,
}
"""The attacks by the names that the command line gives them."""


def named(name: str) -> Any:
    """An attack by its short name, with its default settings.

    Args:
        name: one of `NAMES`.

    Returns:
        The attack.

    Raises:
        TypeError: if `name` is not a string.
        ValueError: if it is none of them.

    Example:
        >>> named("majority")
        MajorityVote()
    """
    return NAMES[choice("name", name, tuple(NAMES))]()


__all__ = [
    "NAMES",
    "Additive",
    "Auto",
    "Classifier",
    "Coordinatewise",
    "FloatLattice",
    "Histogram",
    "MajorityVote",
    "Products",
    "Residues",
    "ScoreAttack",
    "Support",
    "Threshold",
    "Timing",
    "Words",
    "choose",
    "named",
]


def __dir__() -> list[str]:
    """Its own names: what it imports can be imported from here too, but is not shown."""
    return [*__all__]
