"""Attacks. An attack chooses, on the pilot (the first draws), the event that the audit counts."""

from __future__ import annotations

from typing import Final, Literal

from ..errors import choice
from .additive import Additive
from .attack import Attack, AuditAttack
from .attack import ScoreAttack as ScoreAttack
from .auto import Auto
from .classifier import Classifier, Discriminant
from .entrywise import Coordinatewise, MajorityVote, choose
from .histogram import Histogram
from .lattice import FloatLattice
from .products import Products
from .residues import Residues
from .support import Support
from .threshold import Threshold, hash_score
from .timing import Timing
from .words import Words

NAMES: Final[dict[str, type[AuditAttack]]] = {
    "auto": Auto, "majority": MajorityVote, "threshold": Threshold, "histogram": Histogram,
    "words": Words, "additive": Additive, "support": Support, "products": Products,
    "residues": Residues, "discriminant": Discriminant, "lattice": FloatLattice,
    "coordinatewise": Coordinatewise, "classifier": Classifier, "timing": Timing,
}  # fmt: skip
"""The class of each attack. The key is its name on the command line."""

AttackName = Literal[
    "auto", "majority", "threshold", "histogram", "words", "additive", "support", "products",
    "residues", "discriminant", "lattice", "coordinatewise", "classifier", "timing",
    "Auto", "MajorityVote", "Threshold", "Histogram", "Words", "Additive", "Support", "Products",
    "Residues", "Discriminant", "FloatLattice", "Coordinatewise", "Classifier", "Timing",
    "majority-vote", "float-lattice",
]  # fmt: skip
"""Type of the names that `named` accepts: the keys of `NAMES`, and the names of the classes.

`named` ignores upper and lower case, hyphens and underscores. The type also contains two names with
hyphens.
"""


def _lowercase_without_separators(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()


def named(name: AttackName | str, argument: str = "name") -> AuditAttack:
    """Return the attack with a given name; all options of the attack have their defaults.

    Args:
        name: name of an attack, such as "majority", or name of its class, such as "MajorityVote".
            Upper and lower case, hyphens and underscores make no difference.
        argument: how error messages call the argument `name`, such as "attack".

    Returns:
        The attack.

    Raises:
        TypeError: if `name` is not a string.
        ValueError: if `name` is not the name of an attack.

    Example:
        >>> named("majority")
        MajorityVote()
        >>> named("majority-vote"), named("FloatLattice")
        (MajorityVote(), FloatLattice())
    """
    spelled = NAMES | {_lowercase_without_separators(cls.__name__): cls for cls in NAMES.values()}
    make = spelled.get(_lowercase_without_separators(name)) if isinstance(name, str) else None
    # `choice` raises an error for an unknown name.
    return (NAMES[choice(argument, name, tuple(NAMES))] if make is None else make)()


__all__ = [
    "Additive", "Attack", "Auto", "Classifier", "Coordinatewise", "Discriminant", "FloatLattice",
    "Histogram", "MajorityVote", "Products", "Residues", "Support", "Threshold", "Timing", "Words",
    "choose", "hash_score", "named",
]  # fmt: skip


def __dir__() -> list[str]:
    """List the public names of this package, without the names that it imports."""
    return [*__all__]
