"""Atoms of a column: values of positive probability, found in pilot outputs despite rounding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from ..records import Array, Flags, Floats, Ints
from .grains import APART, NEAR, Tolerance, classify_gaps, tolerances_at

_MAX_ATOM_ROWS: Final = 2**17
_MAX_COARSE_ATOM_ROWS: Final = 2**13
"""Number of rows that are searched for atoms. With more rows, float32 values coincide by chance."""
_MAX_RUN_TOLERANCES: Final = 512.0
"""Widest gap between values of one cluster, in tolerances. Long computations cause such gaps."""
MAX_CLUSTER_TOLERANCES: Final = 32.0
"""A cluster of values wider than this many rounding tolerances counts as many values, not as
one."""
_MIN_ATOM_COUNT: Final = 4
_MAX_VALUES_PER_ATOM: Final = 2**14
"""An atom contains at least `_MIN_ATOM_COUNT` values, and at least one of this many values."""


def take_head_rows(rows: Array) -> Array:
    """Return the first rows of an array, in which dpcore searches for frequent values."""
    coarse = rows.dtype.kind == "f" and rows.dtype.itemsize < 8
    return rows[: _MAX_COARSE_ATOM_ROWS if coarse else _MAX_ATOM_ROWS]


class Atoms(NamedTuple):
    """The frequent values of a column (the atoms), each as an interval that contains the value.

    An atom is a value with a positive probability. The interval of an atom contains all floats that
    may be the same real number, computed with different rounding errors. The interval contains no
    other value of the sample in which the atom was found.

    Args:
        lows: lower ends of the intervals, in increasing order, shape `(atoms,)`.
        highs: upper ends of the intervals. Each upper end is below the next lower end.
        counts: number of values of the sample in each interval.
    """

    lows: Floats
    highs: Floats
    counts: Ints


def atoms_of(values: Floats, grain: Tolerance, least: int | None = None) -> Atoms:
    """Return the values of positive probability (the atoms) of a column, each as an interval.

    A cluster consists of values that may be the same real number, computed with different rounding
    errors. A cluster of at least `least` values is an atom. The interval of an atom is the cluster,
    extended at both ends by the rounding tolerance. Intervals of two atoms do not touch, and
    rounding does not move a value out of its interval.

    Args:
        values: sample values of the column, sorted and finite, shape `(size,)`.
        grain: the rounding tolerance of the column (the distance by which rounding may move a
            value).
        least: smallest number of values in an atom. Defaults to `size // 2**14`, but at least 4.

    Returns:
        The atoms, in increasing order.
    """
    least = _least_atom_count(values.size, least)
    if not values.size:
        return Atoms(values, values, np.zeros(0, np.int64))
    steps = classify_gaps(values, grain)
    ends = np.flatnonzero(steps == APART)
    first, last = np.append(0, ends + 1), np.append(ends, steps.size)
    counts = last - first + 1
    frequent = counts >= least
    first, last, counts = first[frequent], last[frequent], counts[frequent]
    lows, highs = values[first], values[last]
    width, reach = highs - lows, grain.tolerances(np.maximum(np.abs(lows), np.abs(highs)))
    near = np.cumsum(np.append(0, steps == NEAR))
    # A wide run with values near each other is a continuum and not one number.
    is_cluster = (width <= MAX_CLUSTER_TOLERANCES * reach) | (near[last] == near[first])
    lows, highs, reach = (
        lows[is_cluster],
        highs[is_cluster],
        np.maximum(reach, width * (width > reach))[is_cluster],
    )
    return Atoms(lows - reach, highs + reach, counts[is_cluster].astype(np.int64))


def may_have_atoms(ordered: Floats, grains: Sequence[Tolerance], least: int | None = None) -> Flags:
    """Return a bool for each column: False if the column has no frequent value (no atom).

    The result is False if the column does not contain a group of `least` values that are close to
    each other. If the result is True, the column may still have no atom. The function `atoms_of`
    finds the atoms.

    Args:
        ordered: values of each column in increasing order, with NaN last, shape `(columns, size)`.
        grains: the rounding tolerance of each column (the distance by which rounding may move a
            value).
        least: smallest number of values in an atom. Defaults to `size // 2**14`, but at least 4.
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
    """Return a bool for each finite value: True if it is not one of the frequent values (atoms)."""
    highs = np.append(-np.inf, atoms.highs)
    return values > highs[np.searchsorted(atoms.lows, values, side="right")]
