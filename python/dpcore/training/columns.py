"""Columns of a noisy sum of gradients: a few numbers that show what millions of weights hide.

Under isotropic noise the projection on the line between the two clean sums is sufficient: no
other statistic of the sum distinguishes the two inputs better (a linear functional of a Gaussian
vector, Dong, Roth and Su, 2022, section 2.3). Faulty noise is not isotropic. One draw that is added
to every weight cancels from the difference of two coordinates, and a tensor that got no noise shows
on its own part of the line. So these are columns too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = ["Columns", "choose_columns"]

Vector = npt.NDArray[np.float64]

_MAX_COORDINATE_COLUMNS: Final = 6
"""Coordinates that are columns: those in which the two sums differ most."""

_MAX_TENSOR_COLUMNS: Final = 32
"""Tensors whose part of the line is a column: those with the largest parts."""


@dataclass(frozen=True, eq=False)
class Columns:
    """Linear columns of a sum of gradients, measured from the clean sum without the record.

    Args:
        origin: the clean sum without the record, shape `(P,)`.
        line: clean sum with the record minus that without it, shape `(P,)`.
        parts: first and last coordinate (exclusive) of the tensors that have a column.
        coordinates: numbers of the coordinates that are columns.
        contrasts: pairs of coordinates whose difference is a column.
    """

    origin: Vector
    line: Vector
    parts: tuple[tuple[int, int], ...]
    coordinates: tuple[int, ...]
    contrasts: tuple[tuple[int, int], ...]

    @property
    def length(self) -> float:
        """Distance of the two clean sums."""
        return float(np.linalg.norm(self.line))

    def project(self, total: Vector) -> Vector:
        """Compute the columns of one sum.

        Args:
            total: a sum of gradients, shape `(P,)`.

        Returns:
            Projection on the line, each tensor's part of it, coordinates, contrasts.
        """
        moved = total - self.origin
        found = [float(moved @ self.line) / self.length]
        for first, last in self.parts:
            part = self.line[first:last]
            found.append(float(moved[first:last] @ part) / float(np.linalg.norm(part)))
        found += [float(moved[place]) for place in self.coordinates]
        found += [float(moved[one] - moved[other]) for one, other in self.contrasts]
        return np.array(found)

    def __str__(self) -> str:
        """Describe the columns in one sentence."""
        said = ["column 0 is the projection on the line between the two sums"]
        place = 1
        for size, what in (
            (len(self.parts), "the parts of single tensors"),
            (len(self.coordinates), "the largest coordinates"),
            (len(self.contrasts), "differences of two coordinates"),
        ):
            if size:
                last = place + size - 1
                said.append(f"{place} to {last} {what}" if size > 1 else f"{place} {what}")
                place += size
        return ", ".join(said)


def choose_columns(total: Vector, without: Vector, sizes: Sequence[int]) -> Columns | None:
    """Choose the columns by the two clean sums.

    Args:
        total: the clean sum with the record, shape `(P,)`.
        without: the clean sum without it, shape `(P,)`.
        sizes: numbers of weights of the tensors, in their order; they add up to P.

    Returns:
        The columns, or None where the two sums are equal.

    Example:
        >>> columns = choose_columns(np.array([3.0, -1.0, 0.5]), np.zeros(3), [2, 1])
        >>> columns.coordinates, columns.contrasts
        ((0, 1, 2), ((0, 1), (1, 2), (0, 2)))
        >>> columns.project(np.array([3.0, -1.0, 0.5])).round(3).tolist()
        [3.202, 3.162, 0.5, 3.0, -1.0, 0.5, 4.0, -1.5, 2.5]
    """
    line = total - without
    if not line.any():
        return None
    order = np.argsort(-np.abs(line), kind="stable")
    largest = [int(place) for place in order[:_MAX_COORDINATE_COLUMNS] if line[place] != 0.0]
    ends = np.cumsum(sizes).tolist()
    parts = [(end - size, end) for size, end in zip(sizes, ends, strict=True)]
    parts = [(first, last) for first, last in parts if line[first:last].any()]
    parts.sort(key=lambda part: -float(np.linalg.norm(line[slice(*part)])))
    return Columns(
        without,
        line,
        tuple(sorted(parts[:_MAX_TENSOR_COLUMNS])) if len(parts) > 1 else (),
        tuple(largest),
        _choose_contrasts(line, largest),
    )


def _choose_contrasts(line: Vector, largest: list[int]) -> tuple[tuple[int, int], ...]:
    """Choose pairs of coordinates whose clean difference is not 0.

    Neighbours among the largest, and the largest against the smallest of all, which has the
    opposite sign or moves little: equal noise on both cancels, and the record does not.
    """
    extremes = [int(line.argmax()), int(line.argmin())]
    candidates = [*pairwise(largest), (extremes[0], extremes[1])]
    candidates.append((largest[0], int(np.abs(line).argmin())))
    found: list[Any] = []
    for one, other in candidates:
        if line[one] != line[other] and {one, other} not in [set(pair) for pair in found]:
            found.append((one, other))
    return tuple(found)
