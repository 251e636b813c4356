"""Atoms of a column: values of positive probability, as far as rounding lets them be seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from ..records import Array, Flags, Floats, Ints
from .grains import APART, NEAR, Grain, steps_of, tolerances_at

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


def first_rows(rows: Array) -> Array:
    """Return the first rows, as many as a search for atoms looks at."""
    coarse = rows.dtype.kind == "f" and rows.dtype.itemsize < 8
    return rows[: _MAX_COARSE_ATOM_ROWS if coarse else _MAX_ATOM_ROWS]


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


def atoms_of(values: Floats, grain: Grain, least: int | None = None) -> Atoms:
    """Return the atoms among sorted finite values.

    Clusters are what rounding does not tell apart (see `steps_of`); an atom's interval reaches a
    tolerance beyond its cluster, so that neighbours never touch and rounding never leaves it.

    Args:
        values: sorted, finite, shape `(size,)`.
        grain: of the column.
        least: how often an atom occurs, or None for `_MIN_ATOM_COUNT` times and one in
            `_MAX_VALUES_PER_ATOM` values.

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
    # A run that holds values near each other and is wide is a continuum, not a number.
    is_cluster = (width <= MAX_CLUSTER_TOLERANCES * reach) | (near[last] == near[first])
    lows, highs, reach = (
        lows[is_cluster],
        highs[is_cluster],
        np.maximum(reach, width * (width > reach))[is_cluster],
    )
    return Atoms(lows - reach, highs + reach, counts[is_cluster].astype(np.int64))


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
