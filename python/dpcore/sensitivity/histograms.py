"""Histograms, of which those that differ in one record are neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import numpy as np

from ..errors import choice, instance, invalid, vector
from ..hints import hinted
from ..pairs import dimension
from ._rows import Floats
from ._sets import Members, unit_vector

__all__ = ["NEIGHBOURS", "Histogram", "Neighbours"]

Neighbours = Literal["replace", "add_remove"]
NEIGHBOURS: Final[tuple[Neighbours, ...]] = get_args(Neighbours)
"""Differences between the data of two neighbouring histograms."""

_LARGEST_COUNT: Final = 2.0**53
"""Beyond it a float no longer tells a count from the next one."""


@hinted
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Histogram(Members, word="Histogram"):
    """Counts of records in bins; two of them are neighbours if their data differ in one record.

    The only domain here whose sensitivity is not its diameter, which is infinite.

    Args:
        dim: number of bins, at least 1.
        neighbours: "replace" (a record moves from one bin to another) or "add_remove" (one count
            is 1 larger).

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if `dim` is below 1 or `neighbours` none of the two.

    Source:
        Dwork and Roth (2014), section 3.3 (histogram queries).

    Example:
        >>> histogram = Histogram(3, "add_remove")
        >>> histogram.neighbouring([4, 0, 1], [4, 1, 1]), histogram.contains([4, 0.5, 1])
        (True, False)
    """

    dim: int
    neighbours: Neighbours = "replace"

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "dim", dimension(self.dim))
        choice("neighbours", self.neighbours, NEIGHBOURS)

    def _drawn(self, rng: np.random.Generator) -> Floats:
        """Draw counts from 0 to 9 in every bin, and one record more, shape `(dim,)`."""
        counts = rng.integers(0, 10, self.dim).astype(np.float64)
        return np.asarray(counts + unit_vector(self.dim, int(rng.integers(self.dim))))

    def neighbour(self, x: Any, rng: np.random.Generator) -> Floats:
        """Draw a random histogram whose data differ from those of x in one record.

        Args:
            x: counts, shape `(dim,)`.
            rng: chooses the records and bins.

        Returns:
            The counts, shape `(dim,)`; x itself where one bin leaves no other choice.

        Raises:
            TypeError: if `rng` is not a numpy Generator.
            ValueError: if x is no histogram of the domain, or has no record to replace.
        """
        if not self.contains(x):
            raise invalid("x", f"a histogram of {self.dim} bins", x)
        instance("rng", rng, np.random.Generator)
        x = vector("x", x, self.dim).copy()
        filled = np.flatnonzero(x)
        added = unit_vector(self.dim, int(rng.integers(self.dim)))
        if self.neighbours == "add_remove" and (filled.size == 0 or rng.integers(2) == 1):
            return np.asarray(x + added)
        if filled.size == 0:
            raise invalid("x", "a histogram of at least one record", x)
        x[filled[int(rng.integers(filled.size))]] -= 1.0
        return np.asarray(x if self.neighbours == "add_remove" else x + added)

    def neighbouring(self, x: Any, x_prime: Any) -> bool:
        """Return True if both are histograms of the domain that differ in at most one record."""
        if not (self.contains(x) and self.contains(x_prime)):
            return False
        gaps = vector("x_prime", x_prime, self.dim) - vector("x", x, self.dim)
        most = 2.0 if self.neighbours == "replace" else 1.0
        whole = self.neighbours == "add_remove" or float(gaps.sum()) == 0.0
        return whole and float(np.abs(gaps).sum()) <= most

    def _excess(self, x: Floats) -> float:
        return float(np.abs(x - self._nearest(x)).max())

    def _nearest(self, x: Floats) -> Floats:
        """Return the nearest counts, at most 2**53."""
        return np.asarray(np.rint(np.clip(x, 0.0, _LARGEST_COUNT)))
