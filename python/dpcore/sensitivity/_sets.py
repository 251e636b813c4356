"""The common part of all domains: membership up to rounding, and a member near any vector."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..errors import instance, real, vector
from ..pairs import dimension
from ..records import Record
from ._rows import Floats, as_possible_vector


class Members(Record):
    """A set of vectors; a domain defines the distance of a vector outside and a nearby member."""

    __slots__ = ()

    dim: int
    rounding: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        """Check the dimension."""
        object.__setattr__(self, "dim", dimension(self.dim))

    def contains(self, x: Any, slack: float = 0.0) -> bool:
        """Return True if x is a vector of the domain.

        Args:
            x: anything; only a vector of `dim` finite numbers can be a member.
            slack: how far outside still counts, relative to the size of the domain.

        Returns:
            True or False.

        Raises:
            TypeError: if `slack` is not a number.
            ValueError: if `slack` is negative or not finite.
        """
        slack = real("slack", slack, low=0.0)
        member = as_possible_vector(x, self.dim)
        return member is not None and self._excess(member) <= max(slack, self.rounding)

    def clip(self, x: Any) -> Floats:
        """Return a member close to x: x itself if it is a member.

        Args:
            x: a vector of `dim` finite numbers.

        Returns:
            The member, float64, shape `(dim,)`.

        Raises:
            TypeError: if x does not hold real numbers.
            ValueError: if it is not a vector of `dim` finite numbers.
        """
        x = vector("x", x, self.dim)
        return x if self._excess(x) <= self.rounding else self._nearest(x)

    def draw(self, rng: np.random.Generator) -> Floats:
        """Draw a random member; the class states the distribution.

        Args:
            rng: draws it.

        Returns:
            The member, float64, shape `(dim,)`.

        Raises:
            TypeError: if `rng` is not a numpy Generator.
        """
        return self._drawn(instance("rng", rng, np.random.Generator))

    def _drawn(self, rng: np.random.Generator) -> Floats:
        """Draw a random member."""
        raise NotImplementedError

    def _excess(self, x: Floats) -> float:
        """Return the distance of x from the domain, relative to its size; 0 for a member."""
        raise NotImplementedError

    def _nearest(self, x: Floats) -> Floats:
        """Return a member close to an x that is not a member."""
        raise NotImplementedError


def unit_vector(dim: int, place: int = 0) -> Floats:
    """Return the vector with 1 at a place and zeros elsewhere."""
    x = np.zeros(dim)
    x[place] = 1.0
    return x
