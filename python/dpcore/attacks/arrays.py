"""Arrays of records, the rounding and atoms of their columns, log ratios of pilot counts.

The same real number, computed by different sums, gives floats that differ in their last places, and
the input can decide which. `Grain` is the distance within which two numbers of a column may be one
real number. It follows from the format that the column was rounded to, at the magnitude of the
number or, near 0, of its terms. Numbers that were never rounded (integers, multiples of a fixed
step) are distinguished at any distance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import invalid, mistyped
from ..events.event import LARGEST, stated_bits
from ..records import Array, Flags, Floats, Ints, Record, frozen_array

Places = npt.NDArray[np.intp]
Words = npt.NDArray[np.uint64]

_DTYPES_BY_ALIAS: Final[dict[str, Any]] = {
    "Floats": np.float64, "Ints": np.int64, "Words": np.uint64, "Codes": np.uint32,
}  # fmt: skip
PLACES: Final = 8.0
"""Last places within which two computations of one real number are taken to agree."""
_FLOAT64_BITS: Final = 53
_FORMAT_SAMPLE_NUMBERS: Final = 2**18
_FORMAT_SAMPLE_ROWS: Final = (512, 4096)
"""Numbers a side that a format is read off; at least and at most so many rows."""
LARGEST_WHOLE: Final = 2.0**53
THREADS: Final = ContextVar("threads", default=1)
"""Threads on which columns are measured: those of the audit, see `use_threads`."""
SAME, NEAR, APART = 0, 1, 2
"""Kinds of a step between neighbouring values, see `steps_of`."""
FINEST: Final = 1074
"""Every double is a multiple of 2^-1074."""
EVERY: Final = 1024
_FRACTION_MASK: Final = (1 << 52) - 1
_AxisArgument = int | tuple[int, ...] | None
_CLEAR_RATIO_VARIANCES: Final = 4.0
"""A squared log ratio of this many variances begins to count by itself."""
_RUN_PENALTY: Final = 5.0
"""Amount that another run of bins must add to twice the log-likelihood."""
_WEIGHT_STEPS_PER_UNIT: Final = 2.0**20
"""Weights are multiples of 1 / `_WEIGHT_STEPS_PER_UNIT`: sums of them are exact in any order."""
_CACHED_NUMBERS: Final = 2**17
"""Numbers that stay in the cache."""
SLICE_NUMBERS: Final = 2**18
"""Numbers of a slice of columns, which are copied to be sorted or converted."""
_MAX_ATOM_ROWS: Final = 2**17
_MAX_COARSE_ATOM_ROWS: Final = 2**13
"""Rows of a pilot that are searched for atoms; with more, float32 values meet by chance."""
_MAX_RUN_TOLERANCES: Final = 512.0
"""No gap in a cluster of values is wider: the width of a run that a long computation leaves."""
MAX_CLUSTER_TOLERANCES: Final = 32.0
"""A cluster of more tolerances than this is a continuum that a huge scale has run together."""
_MIN_ATOM_COUNT: Final = 4
_MAX_VALUES_PER_ATOM: Final = 2**14
"""An atom has at least `_MIN_ATOM_COUNT` of the values, and one in `_MAX_VALUES_PER_ATOM`."""
_MAX_COMPARED_ROWS: Final = 2**13
"""Rows of each side on which columns are ranked."""
_REPEAT_SAMPLE_ROWS: Final = 2**13
_MIN_MEAN_REPEATS: Final = 8


class Merged(Record):
    """A score that is a function of cells, which were placed with rounding in mind."""

    __slots__ = ()

    merged = True


def freeze_arrays(record: Any, *alike: str) -> None:
    """Replace the fields of a frozen dataclass that are arrays of numbers by read-only arrays.

    Fields of the types `Floats`, `Ints`, `Words` and `Codes` are.

    Args:
        record: the dataclass.
        *alike: names of fields that must be vectors of one length.

    Raises:
        TypeError: if a field does not hold real numbers, or one of `Words` or `Codes` no integers.
        ValueError: if a field holds others than whole numbers of its type, or vectors are not as
            long as the first.
    """
    for field in fields(record):
        if field.type in _DTYPES_BY_ALIAS:
            given = np.asarray(getattr(record, field.name))
            is_code = field.type in ("Words", "Codes")
            if given.size and given.dtype.kind not in ("iu" if is_code else "buif"):
                raise mistyped(field.name, "whole numbers" if is_code else "real numbers", given)
            with np.errstate(invalid="ignore"):
                values = np.asarray(given, _DTYPES_BY_ALIAS[field.type])
            if field.type != "Floats" and not (values == given).all():
                raise invalid(field.name, f"whole numbers that {values.dtype} holds", given)
            object.__setattr__(record, field.name, frozen_array(values))
    for name in alike:
        shape, first = getattr(record, name).shape, getattr(record, alike[0])
        if shape != (first.size,):
            raise invalid(name, f"of shape ({first.size},), as {alike[0]}", shape)


@contextmanager
def use_threads(threads: int) -> Iterator[None]:
    """Measure the columns of arrays on this number of threads; no result depends on it."""
    token = THREADS.set(threads)
    try:
        yield
    finally:
        THREADS.reset(token)


def whole_floats(rows: Array) -> Flags:
    """Return which floats are whole numbers below 2^53; beyond, all are, by rounding."""
    # In float16 the limit itself would overflow.
    rows = np.asarray(rows, np.float64)
    with np.errstate(invalid="ignore"):
        return np.asarray((np.abs(rows) < LARGEST_WHOLE) & (rows == np.rint(rows)))


def chunk_slices(
    rows: Array, most: int = _CACHED_NUMBERS, width: int | None = None
) -> Iterator[slice]:
    """Cut rows into slices of about as many numbers as the cache holds.

    Args:
        rows: shape `(size, ...)`.
        most: numbers in a slice, which has one row at least.
        width: numbers in a row; None for the second dimension.
    """
    step = max(1, most // max(1, rows.shape[1] if width is None else width))
    for first in range(0, len(rows), step):
        yield slice(first, first + step)


def first_rows(rows: Array) -> Array:
    """Return the first rows, as many as a search for atoms looks at."""
    coarse = rows.dtype.kind == "f" and rows.dtype.itemsize < 8
    return rows[: _MAX_COARSE_ATOM_ROWS if coarse else _MAX_ATOM_ROWS]


def finite_values(*values: Array) -> Floats:
    """Return all finite values, sorted, as float64."""
    pooled = np.concatenate([side.astype(np.float64).ravel() for side in values])
    return np.sort(pooled[np.isfinite(pooled)])


@dataclass(frozen=True, slots=True)
class Grain:
    """The step by which rounding may move a number of one column.

    Args:
        bits: significant bits of the column's format; 0 for numbers that were never rounded.
        middle: median magnitude of its numbers that are not 0: near 0 a sum carries the rounding
            of its terms.
        absolute: what is added at every magnitude, in the units of the column.
    """

    bits: int
    middle: float = 0.0
    absolute: float = 0.0

    @property
    def exact(self) -> bool:
        """True where nothing was rounded."""
        return self.bits == 0 and self.absolute == 0.0

    def at(self, values: Any) -> Any:
        """Return the tolerance at each value, in the shape of the values."""
        size = np.maximum(np.abs(values), self.middle)
        if self.bits == 0:
            return np.full_like(size, self.absolute)
        last = _last_place(size)
        with np.errstate(over="ignore"):
            return self.absolute + PLACES * 2.0 ** (_FLOAT64_BITS - self.bits) * last

    @property
    def typical(self) -> float:
        """The tolerance at the middle."""
        return float(self.at(self.middle))


EXACT: Final = Grain(0)


def tolerances_at(grains: Sequence[Grain], values: Floats) -> Floats:
    """Return the tolerance of each column's grain at its values, shape `(columns, values)`."""
    fields = np.array([(grain.bits, grain.middle, grain.absolute) for grain in grains])
    bits, middle, absolute = fields.reshape(-1, 3).T[..., np.newaxis]
    last = _last_place(np.maximum(np.abs(values), middle))
    with np.errstate(over="ignore"):
        rounded = PLACES * 2.0 ** (_FLOAT64_BITS - bits) * last
    return np.asarray(absolute + np.where(bits > 0.0, rounded, 0.0))


def column_blocks(*sides: Array) -> Iterator[tuple[slice, list[Floats]]]:
    """Yield slices of columns and their values on each side, shape `(columns, size)`.

    A slice has one column at least.
    """
    step = max(1, SLICE_NUMBERS // max(1, *map(len, sides)))
    for first in range(0, sides[0].shape[1], step):
        part = slice(first, first + step)
        yield part, [np.ascontiguousarray(side[:, part].T, np.float64) for side in sides]


def _last_place(size: Any) -> Any:
    """Return the last place of magnitudes; numpy takes that of the largest double for infinite."""
    return np.spacing(np.minimum(size, np.nextafter(LARGEST, 0.0)))


def grains_of(rows: Array, rows_prime: Array) -> tuple[Grain, ...]:
    """Return the grain of every column of two sets of rows, shape `(size, columns)` each."""
    sides, columns = (rows, rows_prime), rows.shape[1]
    if all(side.dtype.kind != "f" for side in sides):
        return tuple([EXACT] * columns)
    most = int(np.clip(_FORMAT_SAMPLE_NUMBERS // max(1, columns), *_FORMAT_SAMPLE_ROWS))
    own = min(stated_bits(side) for side in sides if side.dtype.kind == "f")
    are_floats, threads = (rows.dtype.kind == "f", rows_prime.dtype.kind == "f"), THREADS.get()
    with np.errstate(invalid="ignore", over="ignore"):
        sample, sample_prime = (_dense_floats(side[:most]) for side in sides)
        middles, is_usual = _core.measure_columns(sample, sample_prime, own, threads)
        bits, unusual = np.full(columns, own), np.flatnonzero(~is_usual)
        # Other columns may be coarser than their type.
        for part in chunk_slices(unusual, SLICE_NUMBERS, len(rows) + len(rows_prime)):
            places = unusual[part]
            values, values_prime = (_take_columns(side, places) for side in sides)
            grains = _core.judge_columns(values, values_prime, are_floats, own, most, threads)
            bits[places], middles[places] = grains
    return tuple(map(Grain, bits.tolist(), middles.tolist()))


def _take_columns(rows: Array, places: Places) -> Floats:
    """Return some columns, one after the other."""
    if not (rows.dtype == np.float64 and rows.flags.c_contiguous and rows.flags.aligned):
        rows, places = _dense_floats(rows[:, places]), np.arange(places.size)
    return _core.gather_columns(rows, places, False)


def _dense_floats(values: Array) -> Floats:
    return np.require(values, np.float64, ("C", "A"))


def grain_of(values: Array, values_prime: Array) -> Grain:
    """Return the grain of one column, values of any number on either side."""
    if not values.size and not values_prime.size:
        return EXACT
    return grains_of(values[:, np.newaxis], values_prime[:, np.newaxis])[0]


def coarsest_grain(grains: Sequence[Grain]) -> Grain:
    """Return one grain for numbers of several columns."""
    bits = min((grain.bits for grain in grains if grain.bits), default=0)
    middle = max((grain.middle for grain in grains), default=0.0)
    return Grain(bits, middle, max((grain.absolute for grain in grains), default=0.0))


def split_grains(grains: Sequence[Grain]) -> tuple[Ints, Floats, Floats]:
    """Return bits, middles and absolutes of grains, as the core reads them."""
    bits = np.array([grain.bits for grain in grains], np.int64)
    floats = np.array([(grain.middle, grain.absolute) for grain in grains]).reshape(-1, 2).T
    return bits, floats[0].copy(), floats[1].copy()


def largest_moves(grains: Sequence[Grain]) -> Floats:
    """Return what a number of each column can move a sum in doubles by."""
    bits, middles, absolutes = split_grains(grains)
    places = PLACES * _last_place(middles)
    own = np.where(bits > 0, np.ldexp(places, _FLOAT64_BITS - bits), 0.0)
    return np.asarray(np.maximum(absolutes + own, places))


def sum_grains(grains: Sequence[Grain], weights: Floats | None = None) -> Grain:
    """Return the grain of a sum of columns in doubles: what all of them can move it by."""
    each = largest_moves(grains)
    total = each.sum() if weights is None else (np.abs(weights) * each).sum()
    return Grain(_FLOAT64_BITS, 0.0, float(total))


def steps_of(values: Floats, grain: Grain) -> npt.NDArray[np.int8]:
    """Classify each step between neighbouring sorted finite values, shape `(size - 1,)`.

    `SAME`: one number; equal, or in a run at most 4,096 last places wide that nothing is near, as
    a long computation leaves it. `NEAR`: within what rounding may have moved them by. `APART`.
    """
    return _core.steps_of(_dense_floats(values), (grain.bits, grain.middle, grain.absolute))


def find_runs(breaks: Flags) -> tuple[Places, Places]:
    """Return first and last places of the runs that breaks between neighbours leave."""
    ends = np.flatnonzero(breaks)
    return np.append(0, ends + 1), np.append(ends, breaks.size)


def cuts_of(values: Floats, grain: Grain) -> Places:
    """Return places i: an edge between sorted values i and i + 1 splits no real number.

    Where values lie so close that nothing is apart, edges are at least 16 tolerances from each
    other, so that rounding moves few values from bin to bin.
    """
    return _core.cuts_of(_dense_floats(values), (grain.bits, grain.middle, grain.absolute))


def lowest_bit(values: Floats) -> Ints:
    """Return the exponent t of ``y = odd 2^t``; 1024 for zero, NaN and infinities.

    Args:
        values: doubles, C-contiguous.

    Returns:
        Integers from -1074 to 1023, or 1024.

    Example:
        >>> import numpy as np
        >>> lowest_bit(np.array([0.75, 1.0, 5e-324, -12.0, 0.0])).tolist()
        [-2, 0, -1074, 2, 1024]
    """
    bits = values.view(np.int64)
    power = (bits >> 52) & 0x7FF
    odd = bits & _FRACTION_MASK
    # The leading 1 of a normal number is not stored; a subnormal has none.
    odd |= (power > 0).astype(np.int64) << 52
    odd &= -odd
    # The isolated bit is a power of two, whose exponent a conversion to double reveals.
    found = (odd.astype(np.float64).view(np.int64) >> 52) - 1023
    found += np.maximum(power, 1) - 1075
    found[(odd == 0) | (power == 0x7FF)] = EVERY
    return found


def round_weights(weights: Floats) -> Floats:
    """Round weights so that their sums are exact."""
    return np.round(weights * _WEIGHT_STEPS_PER_UNIT) / _WEIGHT_STEPS_PER_UNIT


def count_values(values: Array, values_prime: Array) -> tuple[Array, Ints]:
    """Return the different values of both sides, increasing, and how often each side has each.

    Example:
        >>> keys, counts = count_values(np.array([3, 1, 3]), np.array([2]))
        >>> keys.tolist(), counts.tolist()
        ([1, 2, 3], [[1, 0, 2], [0, 1, 0]])
    """
    each = [np.unique(side, return_counts=True) for side in (values, values_prime)]
    keys = np.union1d(each[0][0], each[1][0])
    counts = np.zeros((2, keys.size), dtype=np.int64)
    for row, (own, times) in zip(counts, each, strict=True):
        row[np.searchsorted(keys, own)] = times
    return keys, counts


def log_ratios(k: Array, k_prime: Array, n: Any, n_prime: Any) -> tuple[Floats, Floats]:
    """Compute log ratios of two shares, and their variances; half a count is added to each.

    Args:
        k: counts on x.
        k_prime: counts on x', of the same shape.
        n: draws on x that the counts are of, of a shape that broadcasts.
        n_prime: draws on x'.

    Returns:
        Log ratios, 0 where nothing was counted, and variances; of the shape of `k`.
    """
    ratios = np.log((k + 0.5) / (n + 1.0)) - np.log((k_prime + 0.5) / (n_prime + 1.0))
    ratios = np.where((k == 0) & (k_prime == 0), 0.0, ratios)
    return ratios, 1.0 / (k + 0.5) + 1.0 / (k_prime + 0.5)


def shrink_log_ratios(
    ratios: Floats, variances: Floats, axis: _AxisArgument = None, live: Flags | bool = True
) -> Floats:
    """Shrink log ratios by how much of their spread is noise.

    Each is multiplied by t / (t + variance), with t the spread of all of them beyond their noise,
    or by what its own size justifies, 1 - 4 variance / ratio^2, if that is more: a few clear
    ratios among many empty ones are not drowned by them.

    Args:
        ratios: log ratios.
        variances: their variances.
        axis: the axes along which the spread is common; None for all.
        live: which ratios there are.

    Returns:
        The shrunk ratios, 0 where there is none.

    Source:
        Efron and Morris (1973), Journal of the American Statistical Association 68: empirical
        Bayes; DerSimonian and Laird (1986), Controlled Clinical Trials 7, for the spread.
    """
    precision = np.where(live, 1.0 / variances, 0.0)
    excess = np.where(live, ratios**2 * precision - 1.0, 0.0).sum(axis=axis, keepdims=True)
    total = np.maximum(precision.sum(axis=axis, keepdims=True), 1e-300)
    spread = np.maximum(0.0, excess / total)
    common = spread / (spread + variances)
    own = 1.0 - _CLEAR_RATIO_VARIANCES * variances / np.where(ratios == 0.0, np.inf, ratios) ** 2
    own = np.where(ratios == 0.0, 0.0, own)
    return np.where(live, ratios * np.maximum(common, own), 0.0)


def smooth_bins(k: Array, k_prime: Array, n: Array, n_prime: Array, runs: Places | None) -> Floats:
    """Compute weights of bins, neighbours in one run pooled; without runs every bin for itself.

    Args:
        k: counts on x, shape `(tables, bins)`.
        k_prime: counts on x'.
        n: draws on x behind each table, shape `(tables, 1)`.
        n_prime: draws on x'.
        runs: number of the run of each bin, shape `(tables, bins)`.

    Returns:
        The weights, shape `(tables, bins)`.
    """
    if runs is not None:
        k, k_prime = _pool_counts(k, runs), _pool_counts(k_prime, runs)
    ratios, variances = log_ratios(k, k_prime, n, n_prime)
    weights = shrink_log_ratios(ratios, variances, axis=1, live=(k + k_prime) > 0)
    return weights if runs is None else np.take_along_axis(weights, runs, axis=1)


def _pool_counts(counts: Array, runs: Places) -> Floats:
    """Return sums of each table's counts by run, in the shape of the counts."""
    tables, bins = counts.shape
    flat = (runs + bins * np.arange(tables)[:, None]).ravel()
    return np.bincount(flat, counts.ravel(), counts.size).astype(np.float64).reshape(tables, bins)


def even_runs(k: Array, k_prime: Array, most: int) -> Places:
    """Return at most `most` runs of about equal mass."""
    both = k + k_prime
    middle = np.cumsum(both, axis=1) - both / 2.0
    share = middle / np.maximum(both.sum(axis=1, keepdims=True), 1.0)
    return np.asarray(np.minimum((share * most).astype(np.intp), most - 1))


def clear_runs(k: Array, k_prime: Array) -> Places:
    """Find runs of neighbouring bins that the pilot does not distinguish.

    Of all partitions into runs, the one with the largest log-likelihood of the sides given the
    bins, less half the penalty for each run.

    Args:
        k: counts on x, shape `(tables, bins)`.
        k_prime: counts on x'.

    Returns:
        The number of the run of each bin, shape `(tables, bins)`.

    Source:
        Jackson et al. (2005), IEEE Signal Processing Letters 12: optimal partitioning.
    """
    tables, bins = k.shape
    totals = np.pad(np.cumsum([k, k_prime], axis=2), ((0, 0), (0, 0), (1, 0)))
    best = np.zeros((tables, bins + 1))
    start = np.zeros((tables, bins + 1), dtype=np.intp)
    for end in range(1, bins + 1):
        inside = totals[:, :, end : end + 1] - totals[:, :, :end]
        value = best[:, :end] + _run_likelihood(*inside) - _RUN_PENALTY / 2.0
        start[:, end] = value.argmax(axis=1)
        best[:, end] = value.max(axis=1)
    # From the starts of the last runs backwards.
    begins, rows, last = np.zeros(start.shape, np.bool_), np.arange(tables), np.full(tables, bins)
    for _ in range(bins):
        last = start[rows, last]
        begins[rows, last] = True
    return np.cumsum(begins[:, :-1], axis=1) - 1


def _run_likelihood(k: Floats, k_prime: Floats) -> Floats:
    """Return the largest log-likelihood of a run."""
    both = np.maximum(k + k_prime, 1.0)
    share, share_prime = np.maximum(k, 1e-300) / both, np.maximum(k_prime, 1e-300) / both
    return k * np.log(share) + k_prime * np.log(share_prime)


class Atoms(NamedTuple):
    """Values of positive probability: intervals that no other value is near.

    Args:
        lows: lower ends, increasing, shape `(atoms,)`.
        highs: upper ends, each below the next lower end.
        counts: how many of the values lie in each.
    """

    lows: Floats
    highs: Floats
    counts: Ints


def read_columns(outputs: Array) -> Array | None:
    """Return outputs as rows of numbers, shape `(size, entries)`; None for other kinds."""
    outputs = np.asarray(outputs)
    if outputs.dtype.kind not in "buif" or outputs.ndim == 0:
        return None
    return outputs.reshape(len(outputs), int(np.prod(outputs.shape[1:])))


def read_numbers(outputs: Array, entries: int | None = None, least: int = 0) -> Array:
    """Return outputs as rows of numbers, shape `(size, entries)`.

    Raises:
        TypeError: for outputs of other kinds.
        ValueError: for another number of entries than is wanted, or fewer than there must be.
    """
    rows = read_columns(outputs)
    if rows is None:
        raise mistyped("outputs", "real numbers", np.asarray(outputs).dtype)
    if entries not in (None, rows.shape[1]) or rows.shape[1] < least:
        wanted = f"of at least {least} entries" if entries is None else f"of {entries} entries"
        raise invalid("outputs", wanted, rows.shape)
    return rows


def read_both_sides(outputs: Array, outputs_prime: Array) -> tuple[Array, Array] | None:
    """Return the rows of numbers of both sides; None unless they are numbers of equal width.

    A pilot without outputs or entries has nothing to fit: None as well.
    """
    rows, rows_prime = read_columns(outputs), read_columns(outputs_prime)
    if rows is None or rows_prime is None or rows.shape[1] != rows_prime.shape[1]:
        return None
    return (rows, rows_prime) if rows.size and rows_prime.size else None


def atoms_of(values: Floats, grain: Grain, least: int | None = None) -> Atoms:
    """Return the atoms among sorted finite values.

    Clusters are what rounding does not tell apart (see `steps_of`); an atom's interval reaches a
    tolerance beyond its cluster, so that neighbours never touch and rounding never leaves it.

    Args:
        values: sorted, finite, shape `(size,)`.
        grain: of the column.
        least: how often an atom occurs; None for `_MIN_ATOM_COUNT` times and one in
            `_MAX_VALUES_PER_ATOM` values.

    Returns:
        The atoms, in increasing order.
    """
    least = _least_atom_count(values.size, least)
    if not values.size:
        return Atoms(values, values, np.zeros(0, np.int64))
    steps = steps_of(values, grain)
    first, last = find_runs(steps == APART)
    counts = last - first + 1
    frequent = counts >= least
    first, last, counts = first[frequent], last[frequent], counts[frequent]
    lows, highs = values[first], values[last]
    width, reach = highs - lows, grain.at(np.maximum(np.abs(lows), np.abs(highs)))
    near = np.cumsum(np.append(0, steps == NEAR))
    # A run that holds values near each other and is wide is a continuum, not a number.
    kept = (width <= MAX_CLUSTER_TOLERANCES * reach) | (near[last] == near[first])
    lows, highs, reach = lows[kept], highs[kept], np.maximum(reach, width * (width > reach))[kept]
    return Atoms(lows - reach, highs + reach, counts[kept].astype(np.int64))


def may_have_atoms(ordered: Floats, grains: Sequence[Grain], least: int | None = None) -> Flags:
    """Return which columns may have atoms (see `atoms_of`); of most, no values are that close.

    Args:
        ordered: sorted values of each column, shape `(columns, size)`; NaN last.
        grains: of the columns.
        least: how often an atom occurs, see `atoms_of`.
    """
    steps = _least_atom_count(ordered.shape[1], least) - 1
    if ordered.shape[1] <= steps:
        return np.zeros(len(ordered), np.bool_)
    ends = ordered[:, [0, -1]]
    with np.errstate(invalid="ignore", over="ignore"):
        # A cluster has no wider gap than a run may have (see `steps_of`).
        reach = (
            steps * _MAX_RUN_TOLERANCES * tolerances_at(grains, np.abs(ends).max(axis=1)[:, None])
        )
        narrow = (ordered[:, steps:] - ordered[:, :-steps] <= reach).any(axis=1)
    return np.asarray(narrow | ~np.isfinite(ends).all(axis=1))


def _least_atom_count(size: int, least: int | None) -> int:
    return max(_MIN_ATOM_COUNT, size // _MAX_VALUES_PER_ATOM) if least is None else least


def loose_of(values: Floats, atoms: Atoms) -> Flags:
    """Return which finite values lie at no atom."""
    highs = np.append(-np.inf, atoms.highs)
    return values > highs[np.searchsorted(atoms.lows, values, side="right")]


def has_frequent_rows(rows: Array, rows_prime: Array) -> bool:
    """Return True if whole rows repeat so often that scores of patterns see each one.

    No product, sum or residue of the entries tells more than the pattern itself, and a score for
    it would only cost time.

    Args:
        rows: pilot outputs on x as rows of numbers, shape `(size, entries)`.
        rows_prime: the same on x'.

    Returns:
        True if the first rows of both sides hold a row 8 times on average, or more.
    """
    some = np.concatenate([rows[:_REPEAT_SAMPLE_ROWS], rows_prime[:_REPEAT_SAMPLE_ROWS]])
    few = some[:: max(1, len(some) // 64)]
    if len(few) > 8 and _count_distinct(few) == len(few):
        # Nothing comes again among 64 rows: there is no need to sort them all.
        return False
    return _count_distinct(some) * _MIN_MEAN_REPEATS <= len(some)


def _count_distinct(rows: Array) -> int:
    """Count the different rows, by their bytes: -0.0 and 0.0 are two, so there are enough."""
    rows = np.ascontiguousarray(rows)
    whole = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))
    return int(np.unique(whole).size)


def rank_columns(columns: Floats, columns_prime: Floats) -> list[int]:
    """Return the columns in the order of their difference between the sides, the largest first."""
    sides = columns[:_MAX_COMPARED_ROWS], columns_prime[:_MAX_COMPARED_ROWS]
    pooled = np.ascontiguousarray(np.concatenate(sides).T, np.float64)
    deviates = deviates_of(*_core.compare_columns(pooled, len(sides[0])))
    return [int(i) for i in np.argsort(-deviates, kind="stable")]


def chi_square_deviate(column: Floats, column_prime: Floats) -> float:
    """Return how unlike the two laws of a column are: a chi-square test of its bins.

    The probability of the statistic is returned as a normal deviate, so that columns of few and of
    many values can be compared.
    """
    pooled = np.concatenate([column, column_prime], dtype=np.float64)
    return float(deviates_of(*_core.compare_columns(pooled[np.newaxis], column.size))[0])


def deviates_of(statistics: Floats, freedoms: Floats) -> Floats:
    """Return normal deviates of chi-square statistics; minus infinity for freedom 0."""
    from scipy.special import gammaincc, gammaln, ndtri_exp

    halves, points = freedoms / 2.0, statistics / 2.0
    tails = gammaincc(halves, points)
    # Far in the tail the probability itself is 0 in a double, its logarithm is not.
    with np.errstate(divide="ignore", invalid="ignore"):
        far = (halves - 1.0) * np.log(points) - points - gammaln(halves)
        logarithms = np.where(tails < 1e-280, far, np.log(tails))
    return np.where(freedoms > 0.0, -ndtri_exp(logarithms), -np.inf)
