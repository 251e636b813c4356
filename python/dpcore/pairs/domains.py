"""Protocols of a search: the domain of inputs, and the relation of neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ..errors import flag, instance, invalid, mistyped, real, vector
from ..hints import hinted
from ..records import Pair, Record
from .norms import dimension

__all__ = ["SLACK", "Bounded", "Box", "Domain", "Neighbour", "domain_of", "neighbour_of"]


@runtime_checkable
class Domain(Protocol):
    """A set of inputs."""

    @property
    def dim(self) -> int:
        """Entries, or records, of one input."""

    def draw(self, rng: np.random.Generator) -> Any:
        """Draw an input of the set."""

    def contains(self, x: Any) -> bool:
        """Return True if the input belongs to the set."""


@runtime_checkable
class Bounded(Domain, Protocol):
    """A set of vectors between two bounds."""

    @property
    def low(self) -> Any:
        """The smallest entry of an input, a number or one for each entry."""

    @property
    def high(self) -> Any:
        """The largest entry of an input, a number or one for each entry."""

    def clip(self, x: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the input of the set that is nearest to a vector."""


class Neighbour(Protocol):
    """Relation "these two inputs differ by what the privacy claim protects"."""

    def holds(self, pair: Pair, domain: Domain) -> bool:
        """Return True if the inputs are two different neighbours of the domain."""

    def starts(self, domain: Domain, rng: np.random.Generator) -> Iterator[Pair]:
        """Yield pairs to try first, the most promising ones in front; not all need hold."""

    def move(self, pair: Pair, domain: Domain, rng: np.random.Generator) -> Pair:
        """Make a pair that differs a little from a given one; it need not hold."""


SLACK: Final = 1e-9
"""Relative slack of a distance: a neighbour at the radius may be a rounding beyond it."""

_RELATION_METHODS: Final = ("holds", "starts", "move")


def domain_of(
    value: Any,
    name: str = "domain",
    requirement: str = "a domain with dim, draw and contains",
) -> Domain:
    """Check that a value is a domain, an object and not its class, and return it."""
    # A class has the methods of its objects, too.
    if isinstance(value, type) or not isinstance(value, Domain):
        raise mistyped(name, requirement, value)
    dimension(value.dim)
    return value


_RELATION_EXAMPLES: Final = "L1(1.0), L2(1.0), Linf(1.0), Replace() or AddRemove()"


def neighbour_of(value: Any) -> Neighbour:
    """Check that a value is a neighbour relation, an object and not its class, and return it."""
    parts = [getattr(value, part, None) for part in _RELATION_METHODS]
    if isinstance(value, type) or not all(map(callable, parts)):
        raise mistyped(
            "neighbour",
            f"a neighbour relation with {', '.join(_RELATION_METHODS)} (dpcore.pairs.{_RELATION_EXAMPLES})",
            value,
        )
    relation: Neighbour = value
    return relation


@hinted
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Box(Record, word="Box"):
    """The vectors with all entries between two numbers.

    Args:
        low: smallest entry, finite.
        high: largest entry, finite and at least `low`.
        dim: number of entries, at least 1.
        integers: True if entries are whole numbers; `low` and `high` are then whole, too.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if a number is not finite, `high` is below `low`, or, for integers, one of
            them is not a whole number of magnitude at most 2**53.

    Example:
        >>> box = Box(0, 3, 2, integers=True)
        >>> box.contains([1, 3]), box.contains([1.5, 3])
        (True, False)
        >>> box.clip(np.array([1.6, 7.0]))
        array([2, 3])
    """

    low: float
    high: float
    dim: int
    integers: bool = False

    def __post_init__(self) -> None:
        """Check the fields and store plain numbers."""
        flag("integers", self.integers)
        low = real("low", self.low)
        high = real("high", self.high, low=low)
        for name, value in (("low", low), ("high", high)):
            # Beyond 2**53 a float no longer tells neighbouring integers apart.
            if self.integers and not (value.is_integer() and abs(value) <= 2.0**53):
                raise invalid(name, "a whole number of magnitude at most 2**53", value)
            object.__setattr__(self, name, value)
        if not np.isfinite(high - low):
            raise invalid("high", "at a finite distance from low", high)
        object.__setattr__(self, "dim", dimension(self.dim))

    def draw(self, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Draw a vector with independent uniform entries, shape `(dim,)`; int64 for integers."""
        instance("rng", rng, np.random.Generator)
        if self.integers:
            return rng.integers(int(self.low), int(self.high), self.dim, endpoint=True)
        return rng.uniform(self.low, self.high, self.dim)

    def contains(self, x: Any) -> bool:
        """Return True if x is a vector of `dim` such entries."""
        try:
            array = vector("x", x, self.dim)
        except (TypeError, ValueError):
            return False
        inside = bool(((array >= self.low) & (array <= self.high)).all())
        return inside and not (self.integers and (array != np.rint(array)).any())

    def clip(self, x: Any) -> npt.NDArray[Any]:
        """Return the nearest vector of the box, shape `(dim,)`; int64 for integers.

        Args:
            x: a vector of `dim` finite numbers.

        Raises:
            TypeError: if x does not hold real numbers.
            ValueError: if it is not a vector of `dim` finite numbers.
        """
        nearest: npt.NDArray[Any] = np.clip(vector("x", x, self.dim), self.low, self.high)
        return np.rint(nearest).astype(np.int64) if self.integers else nearest
