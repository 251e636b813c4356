"""Transforms that bring rows into a bounded set before noise is added, and these sets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..errors import choice
from ..hints import hinted
from ..mechanisms import positive
from ..pairs import NORMS
from ..pairs.norms import Norm
from ..records import Record
from ._rows import Floats, normalise_rows, refuse_rows, rows_of, shrink_rows
from .domains import Ball, MinMaxRows, Sphere

__all__ = ["Clip", "MinMax", "Normalise"]


@hinted
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Clip(Record, word="Clip"):
    """Clipping of rows onto a ball: ``x min(1, radius / norm(x))``.

    No result is outside the ball by rounding, and clipping twice changes nothing.

    Args:
        norm: "l1", "l2" or "linf".
        radius: radius of the ball, in the units of x, in (0, 1e300].

    Raises:
        TypeError: if `norm` is not a string or `radius` not a number.
        ValueError: if one of them is out of range.

    Source:
        Abadi et al. (2016), algorithm 1.

    Example:
        >>> clip = Clip("l2", 1.0)
        >>> clip([[3, -4], [0, 0.5]])
        array([[ 0.6, -0.8],
               [ 0. ,  0.5]])
        >>> clip.range(2)
        Ball(norm='l2', radius=1.0, dim=2)
    """

    norm: Norm
    radius: float

    def __post_init__(self) -> None:
        """Check the fields."""
        choice("norm", self.norm, NORMS)
        object.__setattr__(self, "radius", positive("radius", self.radius))

    def __call__(self, x: npt.ArrayLike) -> Floats:
        """Return the clipped rows.

        Args:
            x: finite numbers, shape `(dim,)` or `(size, dim)`.

        Returns:
            float64 of the same shape.

        Raises:
            TypeError: if x does not hold real numbers.
            ValueError: if its shape is another one, or an entry is not finite.
        """
        return shrink_rows(rows_of(x), self.norm, self.radius).reshape(np.shape(x))

    def range(self, dim: int) -> Ball:
        """Return the ball that contains all clipped rows of `dim` entries."""
        return Ball(self.norm, self.radius, dim)


@hinted
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MinMax(Record, word="MinMax"):
    """Min-max scaling of each row to the range 0 to 1: ``(x - min) / (max - min)``.

    Source:
        Lyu, He and Li (2020), algorithm 2 (the normalisation of DPNR).

    Example:
        >>> MinMax()([2, 3, 6])
        array([0.  , 0.25, 1.  ])
        >>> MinMax().range(3)
        MinMaxRows(dim=3)
    """

    def __call__(self, x: npt.ArrayLike) -> Floats:
        """Return the scaled rows.

        Args:
            x: finite numbers, shape `(dim,)` or `(size, dim)`; no row may be constant.

        Returns:
            float64 of the same shape.

        Raises:
            TypeError: if x does not hold real numbers.
            ValueError: if its shape is another one, an entry is not finite, or a row is constant
                (0/0), as one of a single entry is.
        """
        rows = rows_of(x)
        low, high = rows.min(axis=-1, keepdims=True), rows.max(axis=-1, keepdims=True)
        wrong = np.asarray(low == high)[:, 0]
        refuse_rows(
            wrong, "a row of at least two different entries (max - min = 0)", rows, np.ndim(x)
        )
        # A quarter of everything has the same quotients, and a range that does not overflow.
        quarter = np.where(np.maximum(-low, high) > 1e300, 0.25, 1.0)
        bottom = low * quarter
        scaled = (rows * quarter - bottom) / (high * quarter - bottom)
        return np.asarray(scaled).reshape(np.shape(x))

    def range(self, dim: int) -> MinMaxRows:
        """Return the set that contains all scaled rows; a ValueError for a single entry."""
        return MinMaxRows(dim)


@hinted
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Normalise(Record, word="Normalise"):
    """Division of each row by its norm: ``x / norm(x)``.

    Args:
        norm: "l1", "l2" or "linf".

    Raises:
        TypeError: if `norm` is not a string.
        ValueError: if it is none of the three.

    Example:
        >>> Normalise("l2")([3, -4])
        array([ 0.6, -0.8])
        >>> Normalise("l2").range(2)
        Sphere(dim=2, norm='l2')
    """

    norm: Norm = "l2"

    def __post_init__(self) -> None:
        """Check the norm."""
        choice("norm", self.norm, NORMS)

    def __call__(self, x: npt.ArrayLike) -> Floats:
        """Return the normalised rows.

        Args:
            x: finite numbers, shape `(dim,)` or `(size, dim)`; no row may be zero.

        Returns:
            float64 of the same shape.

        Raises:
            TypeError: if x does not hold real numbers.
            ValueError: if its shape is another one, an entry is not finite, or a row is zero.
        """
        rows = rows_of(x)
        refuse_rows(
            np.asarray(~rows.any(axis=-1)), "a row that is not zero (norm 0)", rows, np.ndim(x)
        )
        return normalise_rows(rows, self.norm).reshape(np.shape(x))

    def range(self, dim: int) -> Sphere:
        """Return the unit sphere of the norm, on which normalised rows of `dim` entries lie."""
        return Sphere(dim, self.norm)
