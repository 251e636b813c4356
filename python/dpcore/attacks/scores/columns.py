"""Outputs as columns of numbers, and which of their values are atoms.

Floating-point outputs are merged here before anything asks whether two of them are equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from ...errors import invalid, mistyped
from ..arrays import Array, Flags, Floats, Whole
from ..choosing.grains import APART, LARGEST_WHOLE, NEAR, Grain, find_runs, steps_of

_MAX_CLUSTER_TOLERANCES: Final = 32.0
"""A cluster of more tolerances than this is a continuum that a huge scale has run together."""
_MIN_ATOM_COUNT: Final = 4
_MAX_VALUES_PER_ATOM: Final = 2**14
"""An atom has at least `_MIN_ATOM_COUNT` of the values, and one in `_MAX_VALUES_PER_ATOM`."""
_CACHED_NUMBERS: Final = 2**17
"""Numbers that stay in the cache."""
_MAX_ATOM_ROWS: Final = 2**17
_MAX_COARSE_ATOM_ROWS: Final = 2**13
"""Rows of a pilot that are searched for atoms; with more, float32 values meet by chance."""
_REPEAT_SAMPLE_ROWS: Final = 2**13
_MIN_MEAN_REPEATS: Final = 8


class Atoms(NamedTuple):
    """Values of positive probability: intervals that no other value is near.

    Args:
        lows: lower ends, increasing, shape `(atoms,)`.
        highs: upper ends, each below the next lower end.
        counts: how many of the values lie in each.
    """

    lows: Floats
    highs: Floats
    counts: Whole


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


def known(*values: Array) -> Floats:
    """Return all finite values, sorted, as float64."""
    pooled = np.concatenate([side.astype(np.float64).ravel() for side in values])
    return np.sort(pooled[np.isfinite(pooled)])


def atoms_of(values: Floats, grain: Grain, least: int | None = None) -> Atoms:
    """Return the atoms among sorted finite values.

    Clusters are what rounding does not tell apart (see `steps_of`); an atom's interval reaches a
    tolerance beyond its cluster, so that neighbours never touch and rounding never leaves it.

    Args:
        values: sorted, finite, shape `(size,)`.
        grain: of the column.
        least: how often an atom occurs; None for `_MIN_ATOM_COUNT` times and one in `_MAX_VALUES_PER_ATOM` values.

    Returns:
        The atoms, in increasing order.
    """
    least = max(_MIN_ATOM_COUNT, values.size // _MAX_VALUES_PER_ATOM) if least is None else least
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
    kept = (width <= _MAX_CLUSTER_TOLERANCES * reach) | (near[last] == near[first])
    lows, highs, reach = lows[kept], highs[kept], np.maximum(reach, width * (width > reach))[kept]
    return Atoms(lows - reach, highs + reach, counts[kept].astype(np.int64))


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
