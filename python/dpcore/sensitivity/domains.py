"""Sets of vectors that a noise layer may be given, any two members being neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..errors import choice, invalid
from ..hints import hinted
from ..mechanisms import positive
from ..pairs import NORMS, dimension
from ..pairs.norms import Norm
from ._rows import Floats, normalise_rows, shrink_rows, vector_length
from ._sets import Members, unit_vector

__all__ = ["Ball", "MinMaxRows", "OneHot", "Simplex", "Sphere"]


@hinted
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MinMaxRows(Members, word="MinMaxRows"):
    """The vectors whose smallest entry is 0 and whose largest is 1: what min-max scaling gives.

    Args:
        dim: number of entries, at least 2.

    Raises:
        TypeError: if `dim` is not an integer.
        ValueError: if it is below 2: a single entry has no range to be divided by.

    Source:
        Lyu, He and Li (2020), algorithm 2 (the normalisation of DPNR).

    Example:
        >>> MinMaxRows(3).contains([0, 0.5, 1]), MinMaxRows(3).contains([0, 0.5, 0.5])
        (True, False)
        >>> MinMaxRows(3).clip([0.2, 0.5, 7.0])
        array([0. , 0.5, 1. ])
    """

    dim: int

    def __post_init__(self) -> None:
        """Check the dimension."""
        dim = dimension(self.dim)
        if dim == 1:
            requirement = "at least 2, for a row of one entry has no range to be divided by"
            raise invalid("dim of min-max rows", requirement, dim)
        object.__setattr__(self, "dim", dim)

    def _drawn(self, rng: np.random.Generator) -> Floats:
        """Draw independent uniform entries; set a random one to 0 and another to 1."""
        x = rng.uniform(0.0, 1.0, self.dim)
        x[rng.choice(self.dim, 2, replace=False)] = 0.0, 1.0
        return x

    def _excess(self, x: Floats) -> float:
        return max(abs(float(x.min())), abs(float(x.max()) - 1.0))

    def _nearest(self, x: Floats) -> Floats:
        """Return the nearest member in L2: the smallest entry becomes 0, the largest 1."""
        nearest: Floats = np.clip(x, 0.0, 1.0)
        # In a constant row the two places would be the same one; all are equally good.
        top = int(np.argmax(x)) if x.min() < x.max() else self.dim - 1
        nearest[int(np.argmin(x))], nearest[top] = 0.0, 1.0
        return nearest


@hinted
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Ball(Members, word="Ball"):
    """The vectors whose norm is at most a radius.

    Its `clip` is ``x min(1, radius / norm(x))``, never outside by rounding.

    Args:
        norm: "l1", "l2" or "linf".
        radius: in the units of the entries, in (0, 1e300].
        dim: number of entries, at least 1.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if one of them is out of range.

    Source:
        Abadi et al. (2016), algorithm 1 (the clip).

    Example:
        >>> Ball("l1", 1.0, 2).contains([0.5, -0.5]), Ball("l1", 1.0, 2).contains([1, 1])
        (True, False)
        >>> Ball("l2", 1.0, 2).clip([3, -4])
        array([ 0.6, -0.8])
    """

    norm: Norm
    radius: float
    dim: int

    def __post_init__(self) -> None:
        """Check the fields."""
        choice("norm", self.norm, NORMS)
        object.__setattr__(self, "radius", positive("radius", self.radius))
        object.__setattr__(self, "dim", dimension(self.dim))

    def _drawn(self, rng: np.random.Generator) -> Floats:
        """Draw a vector uniformly from the ball, shape `(dim,)`."""
        if self.norm == "linf":
            return rng.uniform(-self.radius, self.radius, self.dim)
        share = rng.uniform() ** (1.0 / self.dim)
        return self.clip(_draw_direction(self.norm, self.dim, rng) * (share * self.radius))

    def _excess(self, x: Floats) -> float:
        return max((vector_length(x, self.norm) - self.radius) / self.radius, 0.0)

    def _nearest(self, x: Floats) -> Floats:
        return np.asarray(shrink_rows(x[np.newaxis], self.norm, self.radius)[0])


@hinted
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sphere(Members, word="Sphere"):
    """The vectors of norm 1: what normalising gives.

    Args:
        dim: number of entries, at least 1.
        norm: "l1", "l2" or "linf".

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if `dim` is below 1 or `norm` none of the three.

    Example:
        >>> Sphere(2).contains([0.6, 0.8]), Sphere(2).contains([0.5, 0.5])
        (True, False)
        >>> Sphere(2).clip([3, 4])
        array([0.6, 0.8])
    """

    dim: int
    norm: Norm = "l2"

    rounding: ClassVar[float] = 1e-12
    """Hardly a vector of floats has norm 1 exactly."""

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "dim", dimension(self.dim))
        choice("norm", self.norm, NORMS)

    def _drawn(self, rng: np.random.Generator) -> Floats:
        """Draw and normalise independent entries, shape `(dim,)`; for L2 the law is uniform."""
        return _draw_direction(self.norm, self.dim, rng)

    def _excess(self, x: Floats) -> float:
        return abs(vector_length(x, self.norm) - 1.0)

    def _nearest(self, x: Floats) -> Floats:
        """Divide the vector by its norm; 0 gives the first unit vector.

        All members are equally near to 0.
        """
        if not x.any():
            return unit_vector(self.dim)
        return np.asarray(normalise_rows(x[np.newaxis], self.norm)[0])


@hinted
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Simplex(Members, word="Simplex"):
    """The probability vectors: entries at least 0 whose sum is 1.

    Args:
        dim: number of entries, at least 1.

    Raises:
        TypeError: if `dim` is not an integer.
        ValueError: if it is below 1.

    Source:
        Duchi, Shalev-Shwartz, Singer and Chandra (2008), figure 1 (the nearest member).

    Example:
        >>> Simplex(3).contains([0.5, 0.25, 0.25]), Simplex(3).contains([1.5, -0.5, 0])
        (True, False)
        >>> Simplex(3).clip([1.5, 1.0, 0.0])
        array([0.75, 0.25, 0.  ])
    """

    dim: int

    rounding: ClassVar[float] = 1e-12
    """Hardly a vector of floats adds up to 1 exactly."""

    def _drawn(self, rng: np.random.Generator) -> Floats:
        """Draw a probability vector uniformly, shape `(dim,)`."""
        return np.abs(_draw_direction("l1", self.dim, rng))

    def _excess(self, x: Floats) -> float:
        below, above = float(x.min()), float(x.max())
        if below < -1.0 or above > 2.0:
            # Far outside; a sum could overflow.
            return max(-below, above)
        return max(abs(float(x.sum()) - 1.0), -below)

    def _nearest(self, x: Floats) -> Floats:
        """Return the nearest member in L2: all entries lowered by one amount, but not below 0."""
        # Shifting all entries changes nothing, and those 1 below the largest end up at 0.
        with np.errstate(over="ignore"):
            shifted = np.maximum(x - x.max(), -2.0)
        falling = np.sort(shifted)[::-1]
        level = (np.cumsum(falling) - 1.0) / np.arange(1, self.dim + 1)
        nearest = np.maximum(shifted - level[np.flatnonzero(falling > level)[-1]], 0.0)
        return np.asarray(nearest / nearest.sum())


@hinted
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OneHot(Members, word="OneHot"):
    """The vectors with a single 1 and zeros elsewhere: one category, or one word.

    Args:
        dim: number of entries, at least 1.

    Raises:
        TypeError: if `dim` is not an integer.
        ValueError: if it is below 1.

    Example:
        >>> OneHot(3).contains([0, 1, 0]), OneHot(3).contains([0, 1, 1])
        (True, False)
        >>> OneHot(3).clip([0.2, 0.9, 0.1])
        array([0., 1., 0.])
    """

    dim: int

    def _drawn(self, rng: np.random.Generator) -> Floats:
        """Draw one of them uniformly, shape `(dim,)`."""
        return unit_vector(self.dim, int(rng.integers(self.dim)))

    def _excess(self, x: Floats) -> float:
        with np.errstate(over="ignore"):
            return float(np.abs(x - self._nearest(x)).max())

    def _nearest(self, x: Floats) -> Floats:
        return unit_vector(self.dim, int(np.argmax(x)))


def _draw_direction(norm: Norm, dim: int, rng: np.random.Generator) -> Floats:
    """Draw a random vector of norm 1, by the law that makes `Ball.draw` uniform."""
    while True:
        if norm == "l2":
            x = rng.standard_normal(dim)
        elif norm == "l1":
            x = rng.laplace(size=dim)
        else:
            x = rng.uniform(-1.0, 1.0, dim)
        if x.any():
            return np.asarray(normalise_rows(x[np.newaxis], norm)[0])
