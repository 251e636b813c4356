"""A score that reads whole numbers modulo a small one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...errors import flag, integer, invalid
from ...records import Record, frozen_array
from .columns import Floats, chunks, numbers
from .tables import grained

Rows = npt.NDArray[Any]
Whole = npt.NDArray[np.int64]

MODULI: Final = tuple(range(2, 17))
_EXACT: Final = 2.0**53


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ResidueRatio(Record, word="ResidueRatio"):
    """The log-likelihood ratio of the residues of whole numbers.

    ``sum_i weights[i, y_i mod m]`` over the entries that are read, or ``weights[0, (sum_i y_i)
    mod m]`` of their sum. An entry that is not whole, or a float from 2^53 on, adds 0; the sum
    is then of the others. Residues run from 0 to m - 1, for negative numbers too.

    Args:
        modulus: m, from 2 to 16.
        entries: which entries of the output are read, counted from 0; empty for all of them.
        weights: of every residue, shape `(entries, modulus)`; `(1, modulus)` for the sum.
        summed: True for the residue of the sum.

    Raises:
        TypeError: if `modulus` is not an integer or `summed` not a bool.
        ValueError: if the modulus is out of range, or shapes do not fit.

    Source:
        Neyman and Pearson (1933), on the law of the residue.

    Example:
        >>> score = ResidueRatio(2, [0], [[1.0, -1.0]])
        >>> score(np.array([[4], [-3], [0]])).tolist()
        [1.0, -1.0, 1.0]
        >>> print(score)
        log-likelihood ratio of entry 0 modulo 2
    """

    modulus: int
    entries: Whole
    weights: Floats
    summed: bool = False

    merged = True

    def __post_init__(self) -> None:
        """Freeze the tables and check that they fit."""
        object.__setattr__(self, "modulus", integer("modulus", self.modulus, 2, MODULI[-1]))
        flag("summed", self.summed)
        entries = np.asarray(self.entries, dtype=np.int64)
        object.__setattr__(self, "entries", frozen_array(entries))
        weights = grained(np.asarray(self.weights, dtype=np.float64))
        object.__setattr__(self, "weights", frozen_array(weights))
        if entries.ndim != 1 or (entries.size == 0 and not self.summed) or (entries < 0).any():
            raise invalid("entries", "places counted from 0", self.entries)
        shape = (1 if self.summed else entries.size, self.modulus)
        if weights.shape != shape or not np.isfinite(weights).all():
            raise invalid("weights", f"finite and of shape {shape}", self.weights)

    @property
    def cost(self) -> int:
        """Nanoseconds per output on a usual machine, about."""
        return 20 * max(1, int(self.entries.size))

    def __call__(self, outputs: npt.NDArray[Any]) -> Floats:
        """The scores, shape `(size,)`; never NaN."""
        rows = numbers(outputs)
        if self.entries.size and rows.shape[1] <= int(self.entries.max()):
            raise invalid("outputs", f"of at least {self.entries.max() + 1} entries", rows.shape)
        scores = np.empty(len(rows))
        # A residue that is none weighs nothing.
        weights = np.pad(self.weights, ((0, 0), (0, 1)))
        for part in chunks(rows):
            read = rows[part][:, self.entries] if self.entries.size else rows[part]
            found = residues_of(read, self.modulus)
            if self.summed:
                found = np.maximum(found, 0).sum(axis=1, keepdims=True) % self.modulus
            # Weights are multiples of 2^-20: their sum is exact in any order.
            scores[part] = weights[np.arange(found.shape[1]), found].sum(axis=1)
        return scores

    def __str__(self) -> str:
        """One line for a report."""
        if self.summed:
            return f"log-likelihood ratio of the sum of the entries modulo {self.modulus}"
        if self.entries.size == 1:
            return f"log-likelihood ratio of entry {self.entries[0]} modulo {self.modulus}"
        return f"log-likelihood ratio of {self.entries.size} entries modulo {self.modulus}"


def residues_of(rows: Rows, modulus: int) -> Whole:
    """Residues of whole numbers, from 0 to modulus - 1; -1 for anything else.

    Args:
        rows: bools, integers or floats.
        modulus: at least 2.

    Returns:
        Residues, of the shape of the rows.
    """
    if rows.dtype.kind == "f":
        whole = whole_floats(rows)
        if not whole.all():
            found = np.remainder(np.where(whole, rows, 0.0), modulus).astype(np.int64)
            return np.where(whole, found, -1)
    if rows.dtype.kind == "u" and rows.dtype.itemsize == 8:
        return np.remainder(rows, np.uint64(modulus)).astype(np.int64)
    # A float below 2^53 is held by an integer, whose remainder is the faster one.
    residues: Whole = np.remainder(rows.astype(np.int64, copy=False), np.int64(modulus))
    return residues


def whole_floats(rows: Rows) -> npt.NDArray[np.bool_]:
    """Which floats are whole numbers below 2^53: beyond, all of them are, by rounding."""
    # In float16 the limit itself would overflow.
    rows = np.asarray(rows, np.float64)
    with np.errstate(invalid="ignore"):
        whole: npt.NDArray[np.bool_] = (np.abs(rows) < _EXACT) & (rows == np.rint(rows))
    return whole
