"""Domains (sets of inputs of a noise layer), and transforms of rows into these domains.

Most domains are sets of vectors, in which any two members are neighbours. `HistogramCounts` is a
set of histograms. Two histograms are neighbours if their data differ in one record. Each domain can
test if a vector is a member, with a tolerance for rounding. It can also find a member near a given
vector.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from ..errors import choice, instance, invalid, numeric, real, vector
from ..mechanisms import positive
from ..pairs import NORMS, dimension
from ..pairs.differences import Norm
from ..records import Floats, Record
from ..suggestions import explain_argument_errors

Neighbours = Literal["replace", "add_remove"]
NEIGHBOURS: Final[tuple[Neighbours, ...]] = get_args(Neighbours)
"""Choices for the data of two neighbouring histograms: a record is replaced, or is added."""

_LARGEST_COUNT: Final = 2.0**53
"""Largest count: above it, float64 does not represent every integer."""


def as_possible_vector(x: Any, dim: int) -> Floats | None:
    """Convert x to a float64 vector; return None if x is not a vector of `dim` finite numbers."""
    try:
        return vector("x", x, dim)
    except (TypeError, ValueError):
        return None


def check_rows(x: Any) -> Floats:
    """Check that x is a vector or a matrix of finite numbers, and return its rows as a matrix.

    The result has dtype float64 and shape `(size, dim)`. A vector becomes a matrix with one row.
    """
    requirement = "a vector or rows of finite numbers, shape (dim,) or (size, dim) with dim >= 1"
    array = numeric("x", requirement, x)
    if array.ndim not in (1, 2) or array.shape[-1] == 0:
        raise invalid("x", requirement, x)
    with np.errstate(over="ignore"):
        rows = np.ascontiguousarray(array, dtype=np.float64).reshape(-1, array.shape[-1])
    refuse_wrong_rows(
        np.asarray(~np.isfinite(rows).all(axis=-1)), "finite numbers", rows, array.ndim
    )
    return rows


def refuse_wrong_rows(
    wrong: npt.NDArray[np.bool_], requirement: str, rows: Floats, ndim: int
) -> None:
    """Raise a ValueError if the mask `wrong` marks at least one row of a matrix as wrong.

    The message states the index and the content of the first wrong row, and the text `requirement`.
    `ndim` is the number of dimensions of the user's array x: 1 if the matrix was a single vector.
    """
    if wrong.any():
        place = int(np.argmax(wrong))
        name = "x" if ndim == 1 else f"row {place} of x"
        raise invalid(name, requirement, rows[place])


def norms_of_rows(rows: Floats, norm: str) -> Floats:
    """Compute the norm of each row of a matrix; the result has shape `(size,)`.

    A norm that exceeds the range of float64 becomes inf. Squares and sums do not overflow or
    underflow, because each row is first divided by a power of two.
    """
    sizes = np.abs(rows)
    largest: Floats = sizes.max(axis=-1)
    if norm == "linf":
        return largest
    exponent = np.frexp(largest)[1]
    parts = np.ldexp(sizes, -exponent[..., np.newaxis])
    total = parts.sum(axis=-1) if norm == "l1" else np.sqrt((parts * parts).sum(axis=-1))
    with np.errstate(over="ignore"):
        return np.asarray(np.ldexp(total, exponent), dtype=np.float64)


def norm_of_vector(x: Floats, norm: str) -> float:
    """Compute the norm of one vector; the result is inf if it exceeds the range of float64."""
    return float(norms_of_rows(x[np.newaxis], norm)[0])


def normalise_rows(rows: Floats, norm: str) -> Floats:
    """Divide each row of a matrix by the norm of the row; all norms must be above 0."""
    parts = rows / np.abs(rows).max(axis=-1, keepdims=True)
    return np.asarray(parts / norms_of_rows(parts, norm)[:, np.newaxis])


def clip_row_norms(rows: Floats, norm: str, radius: float) -> Floats:
    """Clip each row of a matrix: multiply the row by min(1, radius / norm of the row).

    The norm of a result is never above the radius, even after rounding. A second call therefore
    changes no row.
    """
    outside = norms_of_rows(rows, norm) > radius
    if not outside.any():
        return rows
    moved = normalise_rows(rows[outside], norm) * radius
    # Rounding may leave a row a few units in the last place outside. Each step moves it inwards.
    while (over := norms_of_rows(moved, norm) > radius).any():
        moved[over] = np.nextafter(moved[over], 0.0)
    result = rows.copy()
    result[outside] = moved
    return result


_FIELD_CHECKS: Final[dict[str, Callable[[Any], Any]]] = {
    "dim": dimension,
    "norm": lambda norm: choice("norm", norm, NORMS),
    "radius": lambda radius: positive("radius", radius),
    "neighbours": lambda kind: choice("neighbours", kind, NEIGHBOURS),
}
"""Check functions of the fields of domains and transforms. Their return values are stored."""


class CheckedRecord(Record):
    """Base class of dataclasses whose constructor checks the fields, one after another."""

    __slots__ = ()

    def __post_init__(self) -> None:
        """Check the fields."""
        for name in type(self).__match_args__:  # type: ignore[attr-defined]
            object.__setattr__(self, name, _FIELD_CHECKS[name](getattr(self, name)))


class Members(CheckedRecord):
    """Base class of sets of vectors (domains), with the methods `contains`, `clip` and `draw`.

    A vector in the set is called a member. A subclass implements three private methods. These
    methods compute the distance of a vector from the set, a member near a given vector, and a
    random member.
    """

    __slots__ = ()

    dim: int
    rounding: ClassVar[float] = 0.0

    def contains(self, x: Any, slack: float = 0.0) -> bool:
        """Return True if x is a vector in this set of vectors.

        Args:
            x: any object. Only a vector of `dim` finite numbers can be in the set.
            slack: tolerance. A vector outside the set also counts as inside if its distance from
                the set, divided by the size of the set (such as the radius of a ball), is at most
                `slack`.

        Returns:
            True if x is in the set, otherwise False.

        Raises:
            TypeError: if `slack` is not a number.
            ValueError: if `slack` is negative or not finite.
        """
        slack = real("slack", slack, low=0.0)
        member = as_possible_vector(x, self.dim)
        return member is not None and self._distance_from_set(member) <= max(slack, self.rounding)

    def clip(self, x: Any) -> Floats:
        """Return x if x is in this set of vectors. Otherwise return a vector of the set near x.

        Args:
            x: a vector of `dim` finite numbers.

        Returns:
            A vector in the set, float64, shape `(dim,)`.

        Raises:
            TypeError: if x does not hold real numbers.
            ValueError: if x is not a vector of `dim` finite numbers.
        """
        x = vector("x", x, self.dim)
        return x if self._distance_from_set(x) <= self.rounding else self._clip_to_member(x)

    def draw(self, rng: np.random.Generator) -> Floats:
        """Draw a random vector from this set of vectors.

        The distribution is uniform on a Ball, a Simplex or a OneHot, and on a Sphere in the L2
        norm. On other sets, it is not uniform.

        Args:
            rng: generator for the draw.

        Returns:
            The vector, float64, shape `(dim,)`.

        Raises:
            TypeError: if `rng` is not a numpy Generator.
        """
        return self._draw_member(instance("rng", rng, np.random.Generator))

    def _draw_member(self, rng: np.random.Generator) -> Floats:
        """Draw a random member."""
        raise NotImplementedError

    def _distance_from_set(self, x: Floats) -> float:
        """Return the distance of x from the set, divided by the size of the set; 0 for a member."""
        raise NotImplementedError

    def _clip_to_member(self, x: Floats) -> Floats:
        """Return a member close to x, for a vector x that is not a member."""
        raise NotImplementedError


def has_range_method(f: Any) -> bool:
    """Return True if f is an object with a method `range`, like the transforms of dpcore.

    A class does not count as such an object.
    """
    return callable(getattr(f, "range", None)) and not isinstance(f, type)


def unit_vector(dim: int, place: int = 0) -> Floats:
    """Return a vector of `dim` entries: a 1 at index `place`, and zeros elsewhere."""
    x = np.zeros(dim)
    x[place] = 1.0
    return x


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MinMaxRows(Members, word="MinMaxRows"):
    """Set of vectors whose smallest entry is 0 and whose largest entry is 1.

    The results of `MinMax` are in this set.

    Args:
        dim: number of entries of each vector, at least 2.

    Raises:
        TypeError: if `dim` is not an integer.
        ValueError: if `dim` is below 2, because a single entry cannot be both 0 and 1.

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
        Members.__post_init__(self)
        if self.dim == 1:
            requirement = "at least 2, for a row of one entry has no range to be divided by"
            raise invalid("dim of min-max rows", requirement, self.dim)

    def _draw_member(self, rng: np.random.Generator) -> Floats:
        """Draw independent uniform entries, then set a random entry to 0 and another entry to 1."""
        x = rng.uniform(0.0, 1.0, self.dim)
        x[rng.choice(self.dim, 2, replace=False)] = 0.0, 1.0
        return x

    def _distance_from_set(self, x: Floats) -> float:
        return max(abs(float(x.min())), abs(float(x.max()) - 1.0))

    def _clip_to_member(self, x: Floats) -> Floats:
        """Return the nearest member in L2.

        The smallest entry becomes 0, and the largest entry becomes 1.
        """
        nearest: Floats = np.clip(x, 0.0, 1.0)
        # In a constant row, both places would be the same. Any two places are equally good there.
        top = int(np.argmax(x)) if x.min() < x.max() else self.dim - 1
        nearest[int(np.argmin(x))], nearest[top] = 0.0, 1.0
        return nearest


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Ball(Members, word="Ball"):
    """Set of vectors whose norm is at most a given radius.

    The method `clip` computes ``x min(1, radius / norm(x))``. The result is always in the set, even
    after rounding.

    Args:
        norm: norm of the vectors: "l1", "l2" or "linf".
        radius: radius of the ball, in the units of the entries, in (0, 1e300].
        dim: number of entries of each vector, at least 1.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if an argument is out of range.

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

    def _draw_member(self, rng: np.random.Generator) -> Floats:
        """Draw a vector uniformly from the ball, shape `(dim,)`."""
        if self.norm == "linf":
            return rng.uniform(-self.radius, self.radius, self.dim)
        share = rng.uniform() ** (1.0 / self.dim)
        return self.clip(_draw_direction(self.norm, self.dim, rng) * (share * self.radius))

    def _distance_from_set(self, x: Floats) -> float:
        return max((norm_of_vector(x, self.norm) - self.radius) / self.radius, 0.0)

    def _clip_to_member(self, x: Floats) -> Floats:
        return np.asarray(clip_row_norms(x[np.newaxis], self.norm, self.radius)[0])


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sphere(Members, word="Sphere"):
    """Set of vectors whose norm is 1, such as the results of `Normalise`.

    Args:
        dim: number of entries of each vector, at least 1.
        norm: norm of the vectors: "l1", "l2" or "linf".

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if `dim` is below 1, or if `norm` is not one of the three names.

    Example:
        >>> Sphere(2).contains([0.6, 0.8]), Sphere(2).contains([0.5, 0.5])
        (True, False)
        >>> Sphere(2).clip([3, 4])
        array([0.6, 0.8])
    """

    dim: int
    norm: Norm = "l2"

    rounding: ClassVar[float] = 1e-12
    """Tolerance of the membership test. Few float64 vectors have a norm of exactly 1."""

    def _draw_member(self, rng: np.random.Generator) -> Floats:
        """Draw independent entries and divide them by their norm, shape `(dim,)`.

        The draw is uniform if the norm is L2.
        """
        return _draw_direction(self.norm, self.dim, rng)

    def _distance_from_set(self, x: Floats) -> float:
        return abs(norm_of_vector(x, self.norm) - 1.0)

    def _clip_to_member(self, x: Floats) -> Floats:
        """Divide the vector by its norm. For the zero vector, return the first unit vector.

        All members have the same distance from the zero vector.
        """
        if not x.any():
            return unit_vector(self.dim)
        return np.asarray(normalise_rows(x[np.newaxis], self.norm)[0])


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Simplex(Members, word="Simplex"):
    """Set of probability vectors: the entries are at least 0, and their sum is 1.

    Args:
        dim: number of entries of each vector, at least 1.

    Raises:
        TypeError: if `dim` is not an integer.
        ValueError: if `dim` is below 1.

    Source:
        Duchi, Shalev-Shwartz, Singer and Chandra (2008), figure 1 (for `clip`, which finds the
        nearest probability vector).

    Example:
        >>> Simplex(3).contains([0.5, 0.25, 0.25]), Simplex(3).contains([1.5, -0.5, 0])
        (True, False)
        >>> Simplex(3).clip([1.5, 1.0, 0.0])
        array([0.75, 0.25, 0.  ])
    """

    dim: int

    rounding: ClassVar[float] = 1e-12
    """Tolerance of the membership test. Few float64 vectors have a sum of exactly 1."""

    def _draw_member(self, rng: np.random.Generator) -> Floats:
        """Draw a probability vector uniformly, shape `(dim,)`."""
        return np.abs(_draw_direction("l1", self.dim, rng))

    def _distance_from_set(self, x: Floats) -> float:
        below, above = float(x.min()), float(x.max())
        if below < -1.0 or above > 2.0:
            # The vector is far outside, and its sum could overflow.
            return max(-below, above)
        return max(abs(float(x.sum()) - 1.0), -below)

    def _clip_to_member(self, x: Floats) -> Floats:
        """Return the nearest member in L2: max(0, x - c) in each entry, with one constant c."""
        # A common shift of all entries has no effect. Entries 1 below the largest become 0.
        with np.errstate(over="ignore"):
            shifted = np.maximum(x - x.max(), -2.0)
        falling = np.sort(shifted)[::-1]
        level = (np.cumsum(falling) - 1.0) / np.arange(1, self.dim + 1)
        nearest = np.maximum(shifted - level[np.flatnonzero(falling > level)[-1]], 0.0)
        return np.asarray(nearest / nearest.sum())


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OneHot(Members, word="OneHot"):
    """Set of vectors with a single 1 and zeros elsewhere.

    Such a vector encodes a category or a word.

    Args:
        dim: number of entries of each vector, at least 1.

    Raises:
        TypeError: if `dim` is not an integer.
        ValueError: if `dim` is below 1.

    Example:
        >>> OneHot(3).contains([0, 1, 0]), OneHot(3).contains([0, 1, 1])
        (True, False)
        >>> OneHot(3).clip([0.2, 0.9, 0.1])
        array([0., 1., 0.])
    """

    dim: int

    def _draw_member(self, rng: np.random.Generator) -> Floats:
        """Draw a member uniformly, shape `(dim,)`."""
        return unit_vector(self.dim, int(rng.integers(self.dim)))

    def _distance_from_set(self, x: Floats) -> float:
        with np.errstate(over="ignore"):
            return float(np.abs(x - self._clip_to_member(x)).max())

    def _clip_to_member(self, x: Floats) -> Floats:
        return unit_vector(self.dim, int(np.argmax(x)))


def _draw_direction(norm: Norm, dim: int, rng: np.random.Generator) -> Floats:
    """Draw a random vector of norm 1, from the distribution that makes `Ball.draw` uniform."""
    while True:
        if norm == "l2":
            x = rng.standard_normal(dim)
        elif norm == "l1":
            x = rng.laplace(size=dim)
        else:
            x = rng.uniform(-1.0, 1.0, dim)
        if x.any():
            return np.asarray(normalise_rows(x[np.newaxis], norm)[0])


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HistogramCounts(Members, word="Histogram"):
    """Set of histograms; a histogram contains the number of records in each bin.

    Two histograms are neighbours if the data that they count differ in one record.

    The distance between two histograms in this set is unbounded. Only the distance between
    neighbours is bounded, and this bound is the sensitivity.

    Args:
        dim: number of bins, at least 1.
        neighbours: "replace" if one record of neighbouring data is replaced, so that one count
            decreases by 1 and another count increases by 1. "add_remove" if one of the data sets
            has one record more than the other.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if `dim` is below 1, or if `neighbours` is not one of the two names.

    Source:
        Dwork and Roth (2014), section 3.3 (histogram queries).

    Example:
        >>> histogram = HistogramCounts(3, "add_remove")
        >>> histogram.neighbouring([4, 0, 1], [4, 1, 1]), histogram.contains([4, 0.5, 1])
        (True, False)
    """

    dim: int
    neighbours: Neighbours = "replace"

    def _draw_member(self, rng: np.random.Generator) -> Floats:
        """Draw a count from 0 to 9 for every bin, then add one record to a bin, shape `(dim,)`."""
        counts = rng.integers(0, 10, self.dim).astype(np.float64)
        return np.asarray(counts + unit_vector(self.dim, int(rng.integers(self.dim))))

    def neighbour(self, x: Any, rng: np.random.Generator) -> Floats:
        """Draw a random neighbour of the histogram x.

        The data of the new histogram differ from the data of x in one record.

        Args:
            x: the histogram: the number of records in each bin, shape `(dim,)`.
            rng: generator that chooses the record and the bin.

        Returns:
            The new histogram, shape `(dim,)`. The new histogram may be equal to x, if the record is
            replaced by a record in the same bin.

        Raises:
            TypeError: if `rng` is not a numpy Generator.
            ValueError: if x is not a histogram in this set, or if x has no record that can be
                replaced.
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
        """Return True if two histograms in this set have data that differ in at most one record."""
        if not (self.contains(x) and self.contains(x_prime)):
            return False
        gaps = vector("x_prime", x_prime, self.dim) - vector("x", x, self.dim)
        most = 2.0 if self.neighbours == "replace" else 1.0
        whole = self.neighbours == "add_remove" or float(gaps.sum()) == 0.0
        return whole and float(np.abs(gaps).sum()) <= most

    def _distance_from_set(self, x: Floats) -> float:
        return float(np.abs(x - self._clip_to_member(x)).max())

    def _clip_to_member(self, x: Floats) -> Floats:
        """Return the nearest counts: whole numbers of at least 0 and at most 2**53."""
        return np.asarray(np.rint(np.clip(x, 0.0, _LARGEST_COUNT)))


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Clip(CheckedRecord, word="Clip"):
    """Function that clips vectors to a largest norm: ``x min(1, radius / norm(x))``.

    The norm of a result is never above the radius, even after rounding. If a result is clipped
    again, it does not change.

    Args:
        norm: norm of the vectors: "l1", "l2" or "linf".
        radius: largest norm of a result, in the units of x, in (0, 1e300].

    Raises:
        TypeError: if `norm` is not a string, or if `radius` is not a number.
        ValueError: if an argument is out of range.

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

    def __call__(self, x: npt.ArrayLike) -> Floats:
        """Return the clipped rows.

        Args:
            x: finite numbers, shape `(dim,)` or `(size, dim)`.

        Returns:
            float64 of the same shape.

        Raises:
            TypeError: if x does not hold real numbers.
            ValueError: if x has another shape, or an entry is not finite.
        """
        return clip_row_norms(check_rows(x), self.norm, self.radius).reshape(np.shape(x))

    def range(self, dim: int) -> Ball:
        """Return the set of possible results of this clipping, for vectors with `dim` entries.

        This set is a ball.
        """
        return Ball(self.norm, self.radius, dim)


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MinMax(Record, word="MinMax"):
    """Function that scales a vector to [0, 1]: ``(x - min) / (max - min)``.

    Here min and max are the smallest and the largest entry of the vector x. If x is a matrix, each
    row is scaled separately.

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
            x: finite numbers, shape `(dim,)` or `(size, dim)`. No row may be constant.

        Returns:
            float64 of the same shape.

        Raises:
            TypeError: if x does not hold real numbers.
            ValueError: if x has another shape, an entry is not finite, or a row is constant (0/0).
                A row of a single entry is constant.
        """
        rows = check_rows(x)
        low, high = rows.min(axis=-1, keepdims=True), rows.max(axis=-1, keepdims=True)
        wrong = np.asarray(low == high)[:, 0]
        need = "a row of at least two different entries (max - min = 0)"
        refuse_wrong_rows(wrong, need, rows, np.ndim(x))
        # All numbers divided by 4 have the same quotients, and their range does not overflow.
        quarter = np.where(np.maximum(-low, high) > 1e300, 0.25, 1.0)
        bottom = low * quarter
        scaled = (rows * quarter - bottom) / (high * quarter - bottom)
        return np.asarray(scaled).reshape(np.shape(x))

    def range(self, dim: int) -> MinMaxRows:
        """Return the set of possible results of this scaling, for vectors with `dim` entries.

        `dim` must be at least 2.
        """
        return MinMaxRows(dim)


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Normalise(CheckedRecord, word="Normalise"):
    """Function that divides a vector by its norm: ``x / norm(x)``.

    If x is a matrix, each row is divided by its own norm.

    Args:
        norm: norm by which a vector is divided: "l1", "l2" or "linf".

    Raises:
        TypeError: if `norm` is not a string.
        ValueError: if `norm` is not one of the three names.

    Example:
        >>> Normalise("l2")([3, -4])
        array([ 0.6, -0.8])
        >>> Normalise("l2").range(2)
        Sphere(dim=2, norm='l2')
    """

    norm: Norm = "l2"

    def __call__(self, x: npt.ArrayLike) -> Floats:
        """Return the normalised rows.

        Args:
            x: finite numbers, shape `(dim,)` or `(size, dim)`. No row may be zero.

        Returns:
            float64 of the same shape.

        Raises:
            TypeError: if x does not hold real numbers.
            ValueError: if x has another shape, an entry is not finite, or a row is zero.
        """
        rows = check_rows(x)
        wrong = np.asarray(~rows.any(axis=-1))
        refuse_wrong_rows(wrong, "a row that is not zero (norm 0)", rows, np.ndim(x))
        return normalise_rows(rows, self.norm).reshape(np.shape(x))

    def range(self, dim: int) -> Sphere:
        """Return the set of possible results: the vectors of norm 1 with `dim` entries."""
        return Sphere(dim, self.norm)
