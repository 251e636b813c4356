"""Rows of two samples: checks, distinct points, scaling and resampling.

A resampling plan refers only to rows and groups of rows, not to the method. Each method converts
the plan's counts of rows into counts of points. Therefore every method resamples the same rows for
the same seed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import choice, integer, invalid, mistyped, numeric
from ..packages import has_array_method
from ..records import Floats, Record, frozen_array

Rows = npt.NDArray[np.floating[Any]]
"""Rows as float32 or float64."""
Both = tuple[Rows, Rows]
Labels = npt.NDArray[np.int64]
Counts = tuple[Labels | None, Labels | None]
Groups = tuple[Labels | None, Labels | None]
"""Group of every row of each set, as integers from 0 without gaps, or None."""

UNEQUAL = 100.0
"""A note is added if a column's variance exceeds this multiple of the median variance."""

FEW = 10
"""Whitening adds a note if there are fewer distinct points per dimension than this."""

_BLOCK_NUMBERS = 2**20

Weights = npt.NDArray[np.uint32]

Error = Literal["jackknife", "subsample", "bootstrap"]
ERRORS: Final[tuple[Error, ...]] = get_args(Error)
JACKKNIFE_GROUPS = 20
REPLICATES = 200
"""Default number of replicates of subsampling and of the bootstrap."""

Ids = npt.NDArray[np.uint32]

Scale = Literal["std", "whiten"]
SCALES: Final[tuple[Scale, ...]] = get_args(Scale)

_MAX_COORDINATE = 1e150
"""Largest allowed coordinate. Sums of squared differences of coordinates are then finite."""

_MAX_EXACT_INTEGER = 2**53
_MAX_SET_ROWS = 2**31 - 1


def freeze_arrays(record: Record, *names: str) -> None:
    """Replace array fields of a new object by read-only copies. A field that is None stays None."""
    for name in names:
        array = getattr(record, name)
        if array is not None:
            object.__setattr__(record, name, frozen_array(array))


@dataclass(frozen=True, slots=True, eq=False)
class Raw:
    """Estimates of Renyi divergences by one method: row 0 is D(P0||P1), row 1 is D(P1||P0).

    P0 and P1 are the distributions of two sets of rows. In D(P||Q), the set of P is the numerator,
    and the set of Q is the denominator. An atom is a value at which many rows coincide.

    Args:
        value: estimates in nats, shape (2, n_alpha). Negative estimates are kept.
        std_error: standard errors of the estimates, shape (2, n_alpha). NaN if standard errors were
            not requested, or if the estimate on a resampled data set was not finite.
        depth: number of nearest rows of the denominator that define the neighbourhood (ball) around
            each row of the numerator, for each direction.
        ceiling: largest value that the method can give, shape (2, n_alpha). The method gives this
            value if every ball contains all rows of the numerator. NaN for methods that do not
            count rows in balls.
        effective: effective number of terms of the average over rows, shape (2, n_alpha). It is
            (sum w)^2 / sum w^2 with w the averaged terms. NaN if the method does not average such
            terms.
        unseen_share: share of the numerator's rows that are on atoms which do not occur in the
            denominator, for each direction, shape (2,).
        atom_share: share of the rows of each set that are on atoms, shape (2,).
        rows_per_atom: average number of rows at a repeated value. NaN if there are almost no
            repeated values.
        replicates: estimates on resampled data sets, shape (replicates, 2, n_alpha). None if no
            rows were resampled, or if the estimates were not kept.
        counted: counts of the neighbour search, by name, such as "rescans" (repeated searches).
        notes: remarks on the estimates, as sentences that the report prints.
        beyond_share: share of the numerator's rows that are below or above all rows of the
            denominator, for each direction, shape (2,). The share is 0 if the estimates are
            computed from rows with more than one coordinate.
    """

    value: Floats
    std_error: Floats
    depth: tuple[int, int]
    ceiling: Floats
    effective: Floats
    unseen_share: Floats = field(default_factory=lambda: np.zeros(2))
    atom_share: Floats = field(default_factory=lambda: np.zeros(2))
    rows_per_atom: float = np.nan
    replicates: Floats | None = None
    counted: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    beyond_share: Floats = field(default_factory=lambda: np.zeros(2))


def note_unequal_scales(both: Both, counts: Counts) -> tuple[str, ...]:
    """Return a note if the variance of one column is more than 100 times the median variance.

    The result is an empty tuple otherwise.
    """
    if both[0].shape[1] == 1:
        return ()
    variances = _column_means_and_variances(both, counts)[1]
    varying = variances[variances > 0.0]
    if not varying.size or varying.max() <= UNEQUAL * np.median(varying):
        return ()
    return (
        f"coordinate {int(variances.argmax())} has {varying.max() / np.median(varying):.3g} times "
        'the median variance of a coordinate and rules the distances; see scale="std"',
    )


def scale_rows(both: Both, counts: Counts, scale: str, unique: int) -> tuple[Both, tuple[str, ...]]:
    """Scale the rows of two sets. Return the scaled rows of both sets, and notes for the report.

    If `scale` is "std", each column is divided by its standard deviation. If `scale` is "whiten",
    the covariance of both sets together becomes the identity. `unique` is the number of distinct
    points of both sets together. This number is used only for a note.
    """
    mean, variances = _column_means_and_variances(both, counts)
    if scale == "std":
        deviation = np.sqrt(np.where(variances > 0.0, variances, 1.0))
        return _map_row_blocks(both, lambda block: (block - mean) / deviation, len(mean)), ()
    covariance = _pooled_mean(both, counts, lambda b, w: ((b - mean) * w).T @ (b - mean))
    values, vectors = np.linalg.eigh(covariance)
    # Below this limit, a direction holds only rounding errors of the numbers or of the moments.
    size = max(float(np.abs(extreme(rows))) for rows in both for extreme in (np.max, np.min))
    rounding = float(np.finfo(both[0].dtype).eps) * size
    floor = max(rounding**2, len(values) * float(np.finfo(np.float64).eps) * values[-1])
    kept = values > floor
    rank = int(kept.sum())
    notes = _note_whitening(rank, len(values), unique)
    if not rank:
        return both, notes
    # Make the largest entry of each direction positive: the sign of an eigenvector is arbitrary.
    vectors = vectors[:, kept]
    vectors = vectors * np.sign(vectors[np.abs(vectors).argmax(0), np.arange(rank)])
    change = vectors / np.sqrt(values[kept])
    return _map_row_blocks(both, lambda block: (block - mean) @ change, rank), notes


def _note_whitening(rank: int, dim: int, unique: int) -> tuple[str, ...]:
    if rank and unique <= rank + 1:
        # After whitening, such points are corners of a simplex with equal distances.
        requirement = f'None or "std" for {unique} distinct points that span {rank} dimensions'
        raise invalid("scale", requirement, "whiten")
    notes = []
    if rank < dim:
        notes.append(
            f"whitening dropped {dim - rank} of {dim} directions, in which the rows differ by no "
            "more than the rounding of their numbers"
        )
    if unique < FEW * rank:
        notes.append(
            f"whitening rests on {unique} distinct points in {rank} directions: part of what "
            "distinguishes the sets may be lost"
        )
    return tuple(notes)


def _blocks_with_counts(both: Both, counts: Counts) -> Iterator[tuple[Floats, Floats]]:
    """Yield pairs: a block of rows in float64, about 8 MiB, and the rows' counts as a column."""
    for rows, count in zip(both, counts, strict=True):
        for start, block in iterate_blocks(rows):
            weight = np.ones((len(block), 1))
            if count is not None:
                weight[:, 0] = count[start : start + len(block)]
            yield block.astype(np.float64), weight


def _column_means_and_variances(both: Both, counts: Counts) -> tuple[Floats, Floats]:
    """Compute the mean and the variance of every column over all rows of both sets.

    A row counts as often as it occurs. The rows are added one after another and not by a matrix
    product, so that every CPU gives the same sums. The variance of a constant column is exactly 0.
    """
    mean = _pooled_mean(both, counts, lambda b, w: (b * w).sum(0))
    squares = _pooled_mean(both, counts, lambda b, w: ((b - mean) ** 2 * w).sum(0))
    low = np.minimum(both[0].min(0), both[1].min(0))
    high = np.maximum(both[0].max(0), both[1].max(0))
    return mean, np.where(low == high, 0.0, squares)


def _pooled_mean(both: Both, counts: Counts, add: Callable[[Floats, Floats], Floats]) -> Floats:
    """Compute a weighted mean over the rows of both sets.

    `add` returns the weighted sum for one block of rows and their counts.
    """
    sizes = zip(both, counts, strict=True)
    total = float(sum(len(rows) if count is None else count.sum() for rows, count in sizes))
    return np.asarray(sum(add(*part) for part in _blocks_with_counts(both, counts)) / total)


def _map_row_blocks(both: Both, change: Callable[[Floats], Floats], dim: int) -> Both:
    """Apply the function `change` to all rows of both sets; keep float32 or float64 of each set."""
    out = []
    for rows in both:
        new: Rows = np.empty((len(rows), dim), rows.dtype)
        for start, block in iterate_blocks(rows):
            new[start : start + len(block)] = change(block.astype(np.float64))
        out.append(new)
    return out[0], out[1]


@dataclass(frozen=True, slots=True, eq=False)
class ResamplingPlan:
    """Plan by which the rows of two sets are resampled to compute standard errors.

    Args:
        kind: "jackknife", "subsample" or "bootstrap".
        labels: for each set, the index of each row's unit: integers from 0 without gaps, shape
            (n,). A unit consists of rows that are kept or left out together. For the jackknife, a
            unit is one of at most 20 random parts of a set. For the other kinds, a unit is a row or
            one of the caller's groups.
        units: number of units of each set.
        replicates: number of resampled data sets. For the jackknife, it is units[0] + units[1].
        seed: seed of the random choice. The resampled data set with index i is drawn with the seed
            (seed, i).
    """

    kind: str
    labels: tuple[Labels, Labels]
    units: tuple[int, int]
    replicates: int
    seed: int

    def replicate_counts(self, start: int, stop: int) -> tuple[Weights, Weights]:
        """Count how often each row occurs in each resampled data set of a range.

        The resampled data sets have the indices 0, 1, 2, ... The range contains the indices `start`
        to `stop` - 1. The result is one array for each of the two sets, shape (stop - start, n),
        with n the number of rows of the set.
        """
        both = zip(*(self._draw_replicate(i) for i in range(start, stop)), strict=True)
        first, second = (
            np.stack([kept[label] for kept in units])
            for units, label in zip(both, self.labels, strict=True)
        )
        return first, second

    def split_replicates(self, rows: int) -> Iterator[tuple[int, int]]:
        """Divide the resampled data sets of this plan into ranges; yield pairs (start, stop).

        The counts of how often each row occurs in the data sets of one range take about 64 MiB.
        `rows` is the number of rows of both sets.
        """
        size = max(1, 2**24 // max(rows, 1))
        for start in range(0, self.replicates, size):
            yield start, min(start + size, self.replicates)

    def std_error(self, estimates: Floats) -> Floats:
        """Compute the standard errors from the estimates on all resampled data sets of this plan.

        `estimates` has shape (replicates, ...), and the result has shape (...). For the jackknife,
        the parts of the sets are left out in turn (Shao and Wu 1989). The squared standard error is
        then a sum over the two sets. The term of a set with g parts is (g - 1)/g times the sum of
        squared deviations of the g estimates without one part. For subsampling m of N rows without
        replacement (Politis and Romano 1994), the standard deviation of the estimates is multiplied
        by sqrt(m/N)/sqrt(1 - m/N). Here m = N/2, and this factor is 1. Therefore the result for
        subsampling is the standard deviation of the estimates. For the bootstrap, the result is
        also the standard deviation of the estimates. The result is NaN if an estimate is not
        finite.
        """
        with np.errstate(invalid="ignore"):
            if self.kind != "jackknife":
                return np.asarray(np.std(estimates, axis=0, ddof=1))
            split = (estimates[: self.units[0]], estimates[self.units[0] :])
            parts = [(len(v) - 1) * np.var(v, axis=0) for v in split]
            return np.asarray(np.sqrt(parts[0] + parts[1]))

    def _draw_replicate(self, i: int) -> tuple[Weights, Weights]:
        if self.kind == "jackknife":
            kept = [np.ones(units, np.uint32) for units in self.units]
            side, unit = (0, i) if i < self.units[0] else (1, i - self.units[0])
            kept[side][unit] = 0
            return kept[0], kept[1]
        rng = np.random.default_rng((self.seed, i))
        draw = _draw_half if self.kind == "subsample" else _draw_multinomial
        return draw(self.units[0], rng), draw(self.units[1], rng)


def plan_replicates(
    kind: str | None,
    sizes: tuple[int, int],
    groups: Groups,
    rng: np.random.Generator,
    replicates: int | None = None,
) -> ResamplingPlan | None:
    """Make the plan by which the rows of two sets are resampled to compute standard errors.

    The result is None if `kind` is None.

    Args:
        kind: "jackknife" (parts of the rows are left out in turn), "subsample" (random halves of
            the rows), "bootstrap" (rows drawn with replacement), or None (no standard errors).
        sizes: number of rows of each of the two sets.
        groups: for each set, the index of each row's group: integers from 0 without gaps. None if
            the set has no groups. All rows of a group are kept or left out together.
        rng: random generator. It assigns rows to the parts of the jackknife, and draws the seed of
            the plan.
        replicates: number of resampled data sets. Defaults to 200. It must be None for the
            jackknife.
    """
    if kind is None:
        return None
    choice("error", kind, ERRORS)
    seed, both = int(rng.integers(2**63)), zip(sizes, groups, strict=True)
    if kind != "jackknife":
        replicates = REPLICATES if replicates is None else integer("replicates", replicates, 2)
        labels = tuple(np.arange(n) if g is None else g for n, g in both)
    elif replicates is not None:
        raise invalid("replicates", "None for the jackknife (one per group)", replicates)
    else:
        labels = tuple(_jackknife_parts(n, g, rng) for n, g in both)
    units = tuple(int(label.max()) + 1 for label in labels)
    if min(units) < 2:
        raise invalid("groups", "at least 2 in each set for an error bar", min(units))
    return ResamplingPlan(kind, labels, units, replicates or sum(units), seed)  # type: ignore[arg-type]


def _jackknife_parts(rows: int, groups: Labels | None, rng: np.random.Generator) -> Labels:
    """Assign rows (or the caller's groups) at random to at most 20 parts of about equal size."""
    units = rows if groups is None else int(groups.max()) + 1
    dealt = rng.permutation(units) % min(JACKKNIFE_GROUPS, units)
    return dealt if groups is None else dealt[groups]


def _draw_half(units: int, rng: np.random.Generator) -> Weights:
    kept = np.zeros(units, np.uint32)
    kept[rng.permutation(units)[: max(1, units // 2)]] = 1
    return kept


def _draw_multinomial(units: int, rng: np.random.Generator) -> Weights:
    return np.bincount(rng.integers(units, size=units), minlength=units).astype(np.uint32)


class DistinctPoints:
    """The distinct points among the rows of two sets.

    The distinct points are computed when they are needed for the first time.

    Args:
        rows: rows of each set before scaling.
        counts: number of times that each row occurs in the sample, for each set. None means that
            each row occurs once.
    """

    def __init__(self, rows: Both, counts: Counts) -> None:
        self.rows, self._counts = rows, counts

    @cached_property
    def point_ids_counts_first_rows(self) -> tuple[tuple[Ids, Ids], tuple[Labels, Labels], Labels]:
        """The distinct points of both sets, as a tuple of three entries.

        The u distinct points of both sets have the indices 0 to u - 1. The first entry holds, for
        each set, the index of every row's point. The second entry holds, for each set, the number
        of rows at every point, shape (u,). The third entry holds, for every point, the index of the
        first row equal to it, shape (u,).
        """
        *both, first = _core.pool_rows(*self.rows)
        ids0, ids1 = map(_repeat_by_counts, both, self._counts)
        counted = [np.bincount(side, minlength=len(first)) for side in (ids0, ids1)]
        return (ids0, ids1), (counted[0], counted[1]), first


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """Rows of two sets, y0 and y1, and the distinct points among these rows.

    The distinct points of both sets are numbered together, by their first occurrence in the rows of
    y0 and then in the rows of y1. This number is the *pooled id* of a point. A row may have a count
    c. It then occurs c times in the sample, and stands for c *sample rows*.

    Args:
        rows: rows after rounding and scaling, shapes (n0, d) and (n1, d), both float32 or both
            float64, C-contiguous.
        pool: the distinct points among the rows.
        sizes: number of sample rows of each set.
        groups: for each set, the index of each sample row's group: integers from 0 without gaps.
            None if the set has no groups.
        scale: scaling of the coordinates: None, "std" or "whiten".
        notes: remarks on the rows, as sentences that the report prints.
    """

    rows: tuple[Rows, Rows]
    pool: DistinctPoints
    sizes: tuple[int, int]
    groups: Groups
    scale: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def ids(self) -> tuple[Ids, Ids]:
        """Index of the distinct point that is equal to each sample row, for each of the two sets.

        The distinct points of both sets together have the indices 0, 1, 2, ... The shapes are (N0,)
        and (N1,), with N0 and N1 the numbers of sample rows. A row that occurs c times counts as c
        sample rows.
        """
        return self.pool.point_ids_counts_first_rows[0]

    @property
    def multiplicity(self) -> tuple[Labels, Labels]:
        """Number of rows at each of the u distinct points, for each of the two sets, shape (u,).

        The u points are the distinct points of both sets together. A row that occurs c times counts
        c times.
        """
        return self.pool.point_ids_counts_first_rows[1]

    @property
    def first_row_indices(self) -> Labels:
        """Index of the first row that is equal to each of the u distinct points, shape (u,).

        The rows of y0 are numbered first, and then the rows of y1.
        """
        return self.pool.point_ids_counts_first_rows[2]

    def draw_up_to(self, most: tuple[int, int], rng: np.random.Generator) -> Points:
        """Return at most `most[i]` random rows of each set i, drawn without replacement."""
        if self.sizes[0] <= most[0] and self.sizes[1] <= most[1]:
            return self
        both = zip(self.sizes, most, strict=True)
        return self._select_rows(
            [np.sort(rng.choice(n, min(n, m), replace=False)) for n, m in both]
        )

    def draw_one_per_group(self, rng: np.random.Generator) -> Points:
        """Return one random row of each group; for a set without groups, return all rows."""
        kept = [
            np.arange(size) if groups is None else np.sort(draw_one_row_per_group(groups, rng))
            for size, groups in zip(self.sizes, self.groups, strict=True)
        ]
        return self._select_rows(kept)

    def _select_rows(self, kept_indices: Sequence[Labels]) -> Points:
        """Return a new `Points` that contains only the given sample rows of each set."""
        y0, y1 = (np.ascontiguousarray(self.sample(side)[kept_indices[side]]) for side in (0, 1))
        groups = regroup_kept_rows(self.groups, kept_indices)
        pool = DistinctPoints((y0, y1), (None, None))
        return replace(self, rows=(y0, y1), pool=pool, sizes=(len(y0), len(y1)), groups=groups)

    @property
    def unit_counts(self) -> tuple[int, int]:
        """Number of groups of each set. For a set without groups, the number of rows."""
        first, second = (
            size if groups is None else int(groups.max()) + 1
            for size, groups in zip(self.sizes, self.groups, strict=True)
        )
        return first, second

    @property
    def unscaled(self) -> Points:
        """The rows of both sets before scaling, in an object of the same class."""
        return self if self.scale is None else replace(self, rows=self.pool.rows, scale=None)

    @property
    def dim(self) -> int:
        """Number of columns of the rows."""
        return int(self.rows[0].shape[1])

    @property
    def unique(self) -> int:
        """Number of distinct points of both sets together."""
        return len(self.first_row_indices)

    @property
    def identical(self) -> bool:
        """True if both sets contain the same points, and each point equally often."""
        if self.sizes[0] != self.sizes[1]:
            return False
        # In most cases the extremes already differ.
        if any(extreme(self.rows[0]) != extreme(self.rows[1]) for extreme in (np.min, np.max)):
            return False
        return np.array_equal(*self.multiplicity)

    def smaller_distinct_count(self, enough: int) -> int:
        """Count the distinct points of each set. Return the smaller of the two numbers.

        If both numbers are larger than `enough`, return `enough`.
        """
        # For most sets the first rows suffice; pooling a million rows takes a third of a second.
        some = (np.unique(rows[: 4 * enough], axis=0) for rows in self.rows)
        if all(len(rows) >= enough for rows in some):
            return enough
        return min(enough, *(int(np.count_nonzero(m)) for m in self.multiplicity))

    def coordinates(self, ids: npt.NDArray[Any]) -> Rows:
        """Return a copy of the coordinates of the distinct points with the indices `ids`.

        The distinct points of both sets together have the indices 0, 1, 2, ... The result has shape
        (len(ids), d).
        """
        places, size = self.first_row_indices[ids], len(self.rows[0])
        out: Rows = np.empty((len(places), self.dim), self.rows[0].dtype)
        left = places < size
        out[left] = self.rows[0][places[left]]
        out[~left] = self.rows[1][places[~left] - size]
        return out

    def sample(self, side: int) -> Rows:
        """Return all N sample rows of the set with the index `side` (0 or 1), shape (N, d).

        A row that occurs c times in the sample is contained c times. If each row occurs once, the
        result may be the stored array itself, not a copy.
        """
        rows = self.rows[side]
        # Equal rows that were whitened in different places may differ in their last bits.
        same = self.sizes[side] == len(rows) and self.scale != "whiten"
        return rows if same else self.coordinates(self.ids[side])


def find_points(
    y0: Any,
    y1: Any,
    *,
    counts0: Any = None,
    counts1: Any = None,
    groups0: Any = None,
    groups1: Any = None,
    decimals: int | None = None,
    scale: str | None = None,
) -> Points:
    """Check two sets of rows, scale them, and find the distinct points among them.

    float32 and float64 arrays in C order are used without a copy. If only one of the sets is
    float32, it becomes float64. Integers and bools become float64, and float16 becomes float32.
    Points are compared before scaling, so equal rows stay equal.

    Args:
        y0: first set of rows, shape (n0, d), or (n0,) for d = 1. It may be any object that numpy
            reads as numbers.
        y1: second set of rows, shape (n1, d) or (n1,).
        counts0: number of times that each row of y0 occurs, positive integers, shape (n0,). None
            means that each row occurs once.
        counts1: the same for the rows of y1, shape (n1,).
        groups0: hashable label of each row of y0. Rows with the same label form a group. The rows
            of a group are resampled together. None means that the rows have no groups.
        groups1: hashable label of each row of y1. Equal labels in `groups0` and `groups1` do not
            make a common group.
        decimals: number of decimals to which all entries of y0 and y1 are first rounded. None means
            no rounding.
        scale: None, "std" or "whiten". None means no scaling. "std" subtracts the mean of every
            column over both sets together, and divides by the standard deviation. Constant columns
            are not divided. "whiten" makes the covariance of both sets together the identity.
            Directions in which all rows are equal are dropped, and the field `notes` of the result
            states this. Different machines may round differently in "whiten", because it uses
            LAPACK.

    Returns:
        The rows of both sets after rounding and scaling, and the distinct points among these rows.

    Raises:
        TypeError: if rows do not hold real numbers or are masked, or if counts, groups, decimals or
            scale have the wrong type.
        ValueError: for one of these reasons:

            - a set is empty or has no column, or the sets differ in the number of columns;
            - a number is NaN, infinite, above 1e150 in magnitude, or an integer above 2^53 in
              magnitude;
            - the length of counts or groups is not the number of rows;
            - there are too few distinct points to whiten.
    """
    both = _align_types(_read_rows("y0", y0), _read_rows("y1", y1))
    if decimals is not None:
        places = integer("decimals", decimals, -300, 300)
        both = _round_rows("y0", both[0], places), _round_rows("y1", both[1], places)
    if scale is not None:
        choice("scale", scale, SCALES)
    sizes = len(both[0]), len(both[1])
    counts = _read_counts("counts0", counts0, sizes[0]), _read_counts("counts1", counts1, sizes[1])
    groups = _read_groups("groups0", groups0, sizes[0]), _read_groups("groups1", groups1, sizes[1])
    pool = DistinctPoints(both, counts)
    n0, n1 = (size if c is None else int(c.sum()) for size, c in zip(sizes, counts, strict=True))
    both_groups = zip(groups, counts, strict=True)
    labels0, labels1 = (None if g is None else _repeat_by_counts(g, c) for g, c in both_groups)
    notes = note_unequal_scales(both, counts) if scale is None else ()
    if scale is not None:
        both, notes = scale_rows(both, counts, scale, len(pool.point_ids_counts_first_rows[2]))
    return Points(both, pool, (n0, n1), (labels0, labels1), scale, notes)


def regroup_kept_rows(groups: Groups, rows: Sequence[Labels]) -> Groups:
    """Return the groups of selected rows of two sets, numbered again from 0 without gaps.

    `groups` holds, for each set, the index of every row's group. `rows` holds the indices of the
    selected rows of each set.
    """
    first, second = (
        None if labels is None else np.unique(labels[kept], return_inverse=True)[1]
        for labels, kept in zip(groups, rows, strict=True)
    )
    return first, second


def draw_one_row_per_group(groups: Labels, rng: np.random.Generator) -> Labels:
    """Draw one random row of each group, and return the indices of the drawn rows.

    `groups` holds the number of each row's group. The result is in the order of these numbers.
    """
    # Take the first row of each group in a random order.
    order = rng.permutation(len(groups))
    return np.asarray(order[np.unique(groups[order], return_index=True)[1]])


def _read_rows(name: str, value: Any) -> Rows:
    """Read the rows of a set as a C-contiguous array of finite float32 or float64."""
    requirement = "rows of real numbers, shape (n, d) or (n,), as float64, float32 or integers"
    if np.ma.is_masked(value):
        raise mistyped(name, requirement + ", none of them masked", value)
    try:
        array = np.asarray(value)
    except ValueError:
        # Rows of different lengths do not form an array.
        raise invalid(name, requirement, value) from None
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind not in "buif" or (kind == "f" and size > 8):
        raise mistyped(name, requirement, value)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or 0 in array.shape:
        raise invalid(name, "at least one row of at least one number, shape (n, d)", value)
    largest = max(int(array.max()), int(array.min()), key=abs) if kind in "ui" else 0
    if abs(largest) > _MAX_EXACT_INTEGER:
        raise invalid(name, "integers of at most 2^53, which float64 holds exactly", largest)
    dtype = np.float32 if kind == "f" and size < 8 else np.float64
    rows: Rows = np.require(array, dtype, ("C", "A"))
    _require_finite(name, rows)
    return rows


def iterate_blocks(rows: Rows) -> Iterator[tuple[int, Rows]]:
    """Divide rows into blocks of about a million numbers; yield (first row index, block)."""
    step = max(1, _BLOCK_NUMBERS // rows.shape[1])
    for start in range(0, len(rows), step):
        yield start, rows[start : start + step]


def _require_finite(name: str, rows: Rows) -> None:
    """Raise an error if a number is NaN, infinite, or so large that its square overflows."""
    largest = min(_MAX_COORDINATE, float(np.finfo(rows.dtype).max))
    # A comparison of extremes needs no memory, and NaN makes it false.
    if all(b.min() >= -largest and b.max() <= largest for _, b in iterate_blocks(rows)):
        return
    where = np.flatnonzero(~(np.abs(rows) <= largest).all(1))
    row = rows[where[0]]
    place = f"({len(where)} of {len(rows)} rows are not, the first is row {where[0]})"
    worst = row[~(np.abs(row) <= largest)][0]
    raise invalid(name, f"finite and at most 1e150 in every row {place}", worst)


def _align_types(rows0: Rows, rows1: Rows) -> tuple[Rows, Rows]:
    if rows0.shape[1] != rows1.shape[1]:
        raise invalid("y1", f"of as many columns as y0, {rows0.shape[1]}", rows1.shape[1])
    if rows0.dtype != rows1.dtype:
        return rows0.astype(np.float64, copy=False), rows1.astype(np.float64, copy=False)
    return rows0, rows1


def _round_rows(name: str, rows: Rows, decimals: int) -> Rows:
    with np.errstate(over="ignore", invalid="ignore"):
        out: Rows = np.round(rows, decimals)
        # Turns -0.0 into 0.0.
        out += 0.0
    if not all(np.isfinite(b.min()) and np.isfinite(b.max()) for _, b in iterate_blocks(out)):
        requirement = f"so small that the {rows.dtype} numbers of {name} can be rounded"
        raise invalid("decimals", requirement, decimals)
    return out


def _read_counts(name: str, value: Any, size: int) -> Labels | None:
    if value is None:
        return None
    requirement = f"positive integers, one for each of the {size} rows"
    array = numeric(name, requirement, value, "ui")
    if array.shape != (size,) or int(array.min()) < 1:
        raise invalid(name, requirement, value)
    # Sum Python integers, because a sum of int64 may wrap around.
    if int(array.max()) > _MAX_SET_ROWS or sum(map(int, array)) > _MAX_SET_ROWS:
        raise invalid(name, f"of a sum of at most {_MAX_SET_ROWS}", value)
    return array.astype(np.int64)


def read_labels(name: str, value: Any, size: int) -> list[Hashable]:
    """Check labels that a caller gives to rows, and return a list with the label of each row.

    Args:
        name: name of the argument in messages.
        value: hashable labels, one for each row.
        size: number of rows.

    Raises:
        TypeError: if the labels are not hashable.
        ValueError: if the number of labels is not `size`, or a label is NaN.
    """
    requirement = f"hashable labels, one for each of the {size} rows"
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise mistyped(name, requirement, value)
    # Iterating over a tensor gives tensors, which are hashed by identity.
    labels: list[Hashable] = np.asarray(value).tolist() if has_array_method(value) else [*value]
    if len(labels) != size:
        raise invalid(name, requirement, f"{len(labels)} labels")
    try:
        distinct = set(labels)
    except TypeError:
        raise mistyped(name, requirement, value) from None
    if any(label != label for label in distinct):
        raise invalid(name, f"{requirement}, none of them NaN", value)
    return labels


def integer_for_each_label(labels: list[Hashable]) -> Labels:
    """Return an integer for each label: equal labels get equal integers.

    The integers start at 0 and are given in the order of first occurrence.
    """
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(label, len(numbers)) for label in labels], np.int64)


def _read_groups(name: str, value: Any, size: int) -> Labels | None:
    return None if value is None else integer_for_each_label(read_labels(name, value, size))


def _repeat_by_counts(values: npt.NDArray[Any], counts: Labels | None) -> npt.NDArray[Any]:
    return values if counts is None else np.repeat(values, counts)


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """Input of an estimator of Renyi divergences: two sets of rows, the orders and the options.

    Args:
        points: the rows of both sets.
        alphas: orders, ascending, shape (A,); 1.0 is the KL divergence.
        k: rank of the nearest neighbour to use. An estimator may instead count the rows in a ball
            around each row. Then k is the number of rows of the other set inside this ball. If the
            other set is larger than the row's own set, the number is multiplied by the ratio of the
            sizes.
        plan: plan by which rows are resampled, or None if no standard errors are needed.
        threads: number of threads of the search.
        progress: True shows a progress bar, False does not. None shows the bar only on a terminal
            or in a notebook.
    """

    points: Points
    alphas: Floats
    k: int
    plan: ResamplingPlan | None
    threads: int
    progress: bool | None
