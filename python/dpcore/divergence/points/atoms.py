"""Which points are atoms: values that rows repeat, counted rather than searched."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..raw import Reals
from .replicates import Labels

KAPPA = 5
"""Other rows at a point that make it an atom."""

NEARLY_ALL = 0.99
"""Share of rows on atoms from which every point is treated like one."""

_MIN_REPEATED_SHARE = 0.01
"""Share of repeated rows below which rows per repeated value say nothing."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Atoms:
    """Repeated values (atoms) of two sets.

    Args:
        of: for each direction the points handled as atoms, shape (u,): all points if nearly all
            rows are on atoms.
        share: share of each set's rows on atoms, shape (2,).
        rows_per_atom: rows on values that occur more than once in both sets together, over the
            number of such values; NaN if fewer than 1 % of the rows are on them.
    """

    of: tuple[Mask, Mask]
    share: Reals
    rows_per_atom: float


def find_atoms(multiplicity: tuple[Labels, Labels]) -> Atoms:
    """Find the atoms of two sets, from the rows of each set at every distinct point."""
    m0, m1 = multiplicity
    both, rows = m0 + m1, int((m0 + m1).sum())
    several = both > 1
    repeated = int(both[several].sum())
    of = np.maximum(m0 - 1, m1) >= KAPPA, np.maximum(m1 - 1, m0) >= KAPPA
    either = of[0] | of[1]
    if both[either].sum() >= NEARLY_ALL * rows:
        of, either = (np.ones(len(m0), bool),) * 2, several
    share = np.array([m[either].sum() / m.sum() for m in multiplicity])
    few = repeated < _MIN_REPEATED_SHARE * rows
    return Atoms(of, share, np.nan if few else float(repeated / np.count_nonzero(several)))
