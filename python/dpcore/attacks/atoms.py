"""Atoms of a column: values of positive probability, found in pilot outputs despite rounding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from ..records import Array, Flags, Floats, Ints
from .grains import APART, NEAR, Grain, steps_of, tolerances_at

_MAX_ATOM_ROWS: Final = 2**17
_MAX_COARSE_ATOM_ROWS: Final = 2**13
"""Rows of a pilot that are searched for atoms. In more rows, float32 values coincide by chance."""
_MAX_RUN_TOLERANCES: Final = 512.0
"""Widest gap in a cluster of values, in tolerances: a long computation leaves such clusters."""
MAX_CLUSTER_TOLERANCES: Final = 32.0
"""A cluster wider than this many tolerances counts as a continuum at a very large scale."""
_MIN_ATOM_COUNT: Final = 4
_MAX_VALUES_PER_ATOM: Final = 2**14
"""An atom holds at least `_MIN_ATOM_COUNT` values and at least one value in this many."""


def first_rows(rows: Array) -> Array:
    """Return the first rows, as many as the search for atoms (frequent values) uses."""
    coarse = rows.dtype.kind == "f" and rows.dtype.itemsize < 8
    return rows[: _MAX_COARSE_ATOM_ROWS if coarse else _MAX_ATOM_ROWS]


class Atoms(NamedTuple):
    """Values of positive probability (atoms), as intervals that are far from all other values.

    Args:
        lows: lower ends of the intervals, increasing, shape `(atoms,)`.
        highs: upper ends of the intervals, each below the next lower end.
        counts: number of sample values in each interval.
    """

    lows: Floats
    highs: Floats
    counts: Ints


def atoms_of(values: Floats, grain: Grain, least: int | None = None) -> Atoms:
    """Return the atoms (values of positive probability) among sorted finite values.

    A cluster consists of values that may be the same real number, computed with different rounding
    errors. A cluster with enough values is an atom. Its interval extends beyond the cluster by the
    rounding tolerance. Therefore neighbouring intervals do not touch, and rounding does not move a
    value out of its interval.

    Args:
        values: values of a column, sorted and finite, shape `(size,)`.
        grain: the rounding tolerance of the column.
        least: least number of values in an atom. Defaults to `size // 2**14`, at least 4.

    Returns:
        The atoms, in increasing order.
    """
    least = _least_atom_count(values.size, least)
    if not values.size:
        return Atoms(values, values, np.zeros(0, np.int64))
    steps = steps_of(values, grain)
    ends = np.flatnonzero(steps == APART)
    first, last = np.append(0, ends + 1), np.append(ends, steps.size)
    counts = last - first + 1
    frequent = counts >= least
    first, last, counts = first[frequent], last[frequent], counts[frequent]
    lows, highs = values[first], values[last]
    width, reach = highs - lows, grain.at(np.maximum(np.abs(lows), np.abs(highs)))
    near = np.cumsum(np.append(0, steps == NEAR))
    # A wide run with values near each other is a continuum and not one number.
    is_cluster = (width <= MAX_CLUSTER_TOLERANCES * reach) | (near[last] == near[first])
    lows, highs, reach = (
        lows[is_cluster],
        highs[is_cluster],
        np.maximum(reach, width * (width > reach))[is_cluster],
    )
    return Atoms(lows - reach, highs + reach, counts[is_cluster].astype(np.int64))


def may_have_atoms(ordered: Floats, grains: Sequence[Grain], least: int | None = None) -> Flags:
    """Return which columns may have atoms, by a test that is faster than `atoms_of`.

    An atom is a value of positive probability. A column without `least` values close to each other
    has no atoms.

    Args:
        ordered: sorted values of each column, shape `(columns, size)`; NaN last.
        grains: the rounding tolerance of each column.
        least: least number of values in an atom. Defaults to `size // 2**14`, at least 4.
    """
    steps = _least_atom_count(ordered.shape[1], least) - 1
    if ordered.shape[1] <= steps:
        return np.zeros(len(ordered), np.bool_)
    ends = ordered[:, [0, -1]]
    with np.errstate(invalid="ignore", over="ignore"):
        # No gap inside a cluster is wider than the limit for a run (see `steps_of`).
        reach = (
            steps * _MAX_RUN_TOLERANCES * tolerances_at(grains, np.abs(ends).max(axis=1)[:, None])
        )
        narrow = (ordered[:, steps:] - ordered[:, :-steps] <= reach).any(axis=1)
    return np.asarray(narrow | ~np.isfinite(ends).all(axis=1))


def _least_atom_count(size: int, least: int | None) -> int:
    return max(_MIN_ATOM_COUNT, size // _MAX_VALUES_PER_ATOM) if least is None else least


def loose_of(values: Floats, atoms: Atoms) -> Flags:
    """Return which finite values lie outside the intervals of all atoms."""
    highs = np.append(-np.inf, atoms.highs)
    return values > highs[np.searchsorted(atoms.lows, values, side="right")]
