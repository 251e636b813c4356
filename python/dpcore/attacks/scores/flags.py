"""Outputs as features for a classifier: values that never jump, and flags for what does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...errors import invalid
from ...events.held import Held, kept, wide
from ...records import Record, frozen_array
from ..choosing.grains import Grain, grains_of
from .columns import Atoms, Floats, atoms_of, head, known, loose_of, numbers

_FLAGS: Final = 4
"""Atoms of one entry that get a flag of their own, the most frequent ones."""
_FREQUENT: Final = 0.005
_MIXED: Final = 16
_LOOSE: Final = 4
"""An entry is an atom or two beside a continuum if so many values, and so many for each atom, are
no atoms."""
_WIDE: Final = 256.0
"""Tolerances that a cell of the grid is wide, where the numbers are spread enough."""
_GRID: Final = 0.618033988749895
"""The grid to which values are merged has its boundaries at no simple fraction of its width."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Features(Record, word="Features"):
    """Outputs as features: every entry's value, and flags for its atoms, NaN and infinities.

    A value at a flagged atom, or not finite, is replaced by the entry's `fill`, so that a code
    such as -1000 for "below" does not drown the numbers beside it; all others are merged on a
    grid of width `unit`, so that no tree can split numbers that are equal in the reals.

    Args:
        fill: what replaces a flagged value, for each entry.
        unit: width of the grid of each entry, or of all; 0 for numbers that were never rounded.
        entries: which entry each flag belongs to.
        lows: lower ends of the atoms' intervals; NaN for a flag of NaN.
        highs: upper ends.

    Raises:
        ValueError: if the flags' tables have different lengths.
    """

    fill: Floats
    unit: Floats
    entries: npt.NDArray[np.int64]
    lows: Floats
    highs: Floats

    def __post_init__(self) -> None:
        """Freeze the tables and check that they fit."""
        for name, kind in (("fill", "f8"), ("entries", "i8"), ("lows", "f8"), ("highs", "f8")):
            values = frozen_array(np.asarray(getattr(self, name), dtype=kind))
            object.__setattr__(self, name, values)
        unit = np.broadcast_to(np.asarray(self.unit, dtype=np.float64), self.fill.shape)
        object.__setattr__(self, "unit", frozen_array(unit))
        if not self.entries.shape == self.lows.shape == self.highs.shape:
            shapes = (self.entries.shape, self.lows.shape, self.highs.shape)
            raise invalid("entries", "as many as lows and highs", shapes)

    @property
    def width(self) -> int:
        """How many features there are."""
        return int(self.fill.size + self.entries.size)

    def __call__(self, outputs: npt.NDArray[Any]) -> Floats:
        """The features, finite, shape `(size, width)`: values first, then flags."""
        rows = numbers(outputs)
        dim = self.fill.size
        if rows.shape[1] != dim:
            raise invalid("outputs", f"of {dim} entries", rows.shape)
        made = np.empty((len(rows), self.width), order="F")
        made[:, :dim] = rows
        for flag, (entry, low, high) in enumerate(
            zip(self.entries, self.lows, self.highs, strict=True)
        ):
            values = rows[:, entry]
            hit = np.isnan(values) if np.isnan(low) else (values >= low) & (values <= high)
            made[:, dim + flag] = hit
            made[hit, entry] = self.fill[entry]
        for entry in range(dim):
            values = made[:, entry]
            values[~np.isfinite(values)] = self.fill[entry]
            unit = self.unit[entry]
            if unit > 0.0:
                # Beyond, a number's own last place is wider than the grid.
                near = np.abs(values) < unit * 2.0**52
                values[near] = np.floor(values[near] / unit + _GRID) * unit
        return made

    def on_device(self, outputs: Held) -> Any:
        """The same where the outputs are, a tensor of float64; None for another number of them."""
        rows, dim = outputs.flat, self.fill.size
        if rows.shape[1] != dim:
            return None
        fill, unit = kept(
            self, outputs, lambda like, _: (wide(like, self.fill), wide(like, self.unit))
        )
        made = fill.new_empty((len(outputs), self.width))
        values = made[:, :dim].copy_(rows)
        for flag, (entry, low, high) in enumerate(
            zip(self.entries.tolist(), self.lows.tolist(), self.highs.tolist(), strict=True)
        ):
            column = rows[:, entry].double()
            hit = column.isnan() if low != low else (column >= low) & (column <= high)
            made[:, dim + flag] = hit
            values[:, entry].masked_fill_(hit, float(self.fill[entry]))
        values.copy_(values.where(values.isfinite(), fill))
        merged = (values / unit + _GRID).floor() * unit
        values.copy_(merged.where((unit > 0.0) & (values.abs() < unit * 2.0**52), values))
        return made


def features_of(rows: npt.NDArray[Any], rows_prime: npt.NDArray[Any]) -> Features:
    """Features for pilot outputs: which entries have atoms, and what stands in for those.

    Args:
        rows: pilot outputs on x as rows of numbers, shape `(size, entries)`.
        rows_prime: the same on x'.

    Returns:
        The features.
    """
    sides = head(rows), head(rows_prime)
    grains = grains_of(*sides)
    flags: list[tuple[int, float, float]] = []
    fill, unit = np.zeros(rows.shape[1]), np.zeros(rows.shape[1])
    for i in range(rows.shape[1]):
        values = known(sides[0][:, i], sides[1][:, i])
        atoms = atoms_of(values, grains[i])
        rest = values[loose_of(values, atoms)]
        # Of a discrete law only rare values are no atoms: there the value itself is the feature.
        mixed = rest.size >= max(_MIXED, _LOOSE * atoms.counts.size)
        marked = _frequent(atoms, values.size) if mixed else []
        flags += [(i, float(atoms.lows[j]), float(atoms.highs[j])) for j in marked]
        beside = rest if mixed else values
        fill[i] = np.median(beside) if beside.size else 0.0
        unit[i] = _width(beside, grains[i])
        column = np.concatenate([side[:, i].astype(np.float64) for side in (rows, rows_prime)])
        flags += [(i, odd, odd) for odd in (np.nan, -np.inf, np.inf) if _holds(column, odd)]
    table = np.array(flags, dtype=np.float64).reshape(-1, 3)
    return Features(fill, unit, table[:, 0].astype(np.int64), table[:, 1], table[:, 2])


def _width(values: Floats, grain: Grain) -> float:
    """A grid so wide that few numbers lie on a boundary, and so narrow that little is lost."""
    if grain.exact or not values.size:
        return 0.0
    low, high = np.quantile(values, (0.25, 0.75), method="nearest")
    return float(max(4.0 * grain.typical, min(_WIDE * grain.typical, (high - low) / 32.0)))


def _frequent(atoms: Atoms, size: int) -> list[int]:
    order = np.argsort(-atoms.counts, kind="stable")[:_FLAGS]
    return [int(j) for j in order if atoms.counts[j] >= _FREQUENT * size]


def _holds(column: Floats, odd: float) -> bool:
    return bool(np.isnan(column).any() if np.isnan(odd) else (column == odd).any())
