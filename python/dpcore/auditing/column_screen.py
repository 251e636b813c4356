"""A screen of the columns of wide outputs: sums and bins that a stream of rows keeps of each.

Other rows are not stored. Columns whose laws differ most between the sides are chosen by
their means, their spreads, their bins and the best half-line; of the sums a discriminant of all
columns is made.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from ..attacks.arrays import deviates_of
from ..attacks.classifier import LinearScore
from ..records import Array, Floats, Ints

_SLICE_COLUMNS: Final = 2**14
"""Columns that are added up at a time: their table of bins stays in the cache."""
_BINS: Final = 16
_CELLS: Final = _BINS + 3
"""Cells of a column: its bins, then NaN, minus infinity and infinity."""
_BINNED_SPREADS: Final = 5.0
"""Standard deviations of the first rows that the bins cover; the outer bins are open."""
_HEAD_ROWS: Final = 16
"""Rows per side, at most, that the bins are laid out by."""
_MAX_PARTIAL_ROWS: Final = 255
"""Rows that counts of 8 bits hold."""
_CHOSEN_PER_TEST: Final = 48
"""Columns that each test chooses."""
_LEADERS_PER_TEST: Final = 4
"""The best of these, which are learnt from by themselves too: many columns carry the noise of all.
"""
_MAX_DIRECTED_COLUMNS: Final = 64
"""Columns that are chosen because the inputs differ most in them."""
_RATIO_STANDARD_ERRORS: Final = 4.0
"""Standard errors taken off a log ratio: the best of many is good by luck."""
_TINY: Final = 1e-300
_LARGEST_SPREAD: Final = 1e290
"""Squared shift of a column in units of its variance from which on sums may overflow."""


class ColumnSums:
    """The sums and bins of the columns of one side, added up row by row.

    Args:
        centre: subtracted from each row before it is added up, shape `(columns,)`.
        widths: of the bins, shape `(columns,)`.
    """

    def __init__(self, centre: Floats, widths: Floats) -> None:
        self.centre, self.widths, self.rows = centre, widths, 0
        self.sums, self.squares = np.zeros(centre.size), np.zeros(centre.size)
        self.cells: Array = np.zeros((_CELLS, centre.size), np.uint8)
        self.first: Array | None = None
        self.steady: Ints = np.arange(centre.size)

    def add(self, rows: Array) -> None:
        """Add rows, shape `(size, columns)`."""
        for first in range(0, len(rows), _MAX_PARTIAL_ROWS):
            self._add_part(rows[first : first + _MAX_PARTIAL_ROWS])
        self.first = rows[0].copy() if self.first is None else self.first
        for row in rows:
            if not self.steady.size:
                break
            here, there = row[self.steady], self.first[self.steady]
            self.steady = self.steady[(here == there) | ((here != here) & (there != there))]

    def _add_part(self, rows: Array) -> None:
        self.rows += len(rows)
        if self.rows > np.iinfo(self.cells.dtype).max:
            self.cells = self.cells.astype(np.uint16 if self.rows < 2**16 else np.uint32)
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, self.centre.size, _SLICE_COLUMNS):
                part = slice(start, start + _SLICE_COLUMNS)
                self.cells[:, part] += self._add_slice(rows, part)

    def _add_slice(self, rows: Array, part: slice) -> npt.NDArray[np.uint8]:
        """Add some columns of the rows; return the numbers of rows in their cells."""
        centre, scale = self.centre[part], 1.0 / self.widths[part]
        counts = np.zeros((_CELLS, centre.size), np.uint8)
        moved, scaled = np.empty(centre.size), np.empty(centre.size)
        for row in rows:
            np.subtract(row[part], centre, out=moved, dtype=np.float64)
            places = self._place_in_bins(moved, scale, scaled)
            self.sums[part] += moved
            np.multiply(moved, moved, out=scaled)
            self.squares[part] += scaled
            most = _BINS if places.max(initial=0) < _BINS else _CELLS
            for cell in range(most):
                counts[cell] += (places == cell).view(np.uint8)
        return counts

    @staticmethod
    def _place_in_bins(moved: Floats, scale: Floats, scaled: Floats) -> npt.NDArray[np.uint8]:
        """Return the cell of each number; put 0 in the place of those that are not finite."""
        np.multiply(moved, scale, out=scaled)
        scaled += 0.5 * _BINS - 0.5
        np.clip(scaled, 0.0, _BINS - 1.0, out=scaled)
        if not math.isfinite(float(moved @ moved)):
            odd = ~np.isfinite(moved)
            kinds = np.where(np.isnan(moved[odd]), _BINS, np.where(moved[odd] < 0, 17.0, 18.0))
            moved[odd], scaled[odd] = 0.0, kinds
        return scaled.astype(np.uint8)

    def read_moments(self) -> tuple[Floats, Floats, Floats]:
        """Return count, mean and variance of the finite numbers of each column."""
        counts = self.cells[:_BINS].sum(axis=0, dtype=np.float64)
        held = np.maximum(counts, 1.0)
        means = self.sums / held
        variances = np.maximum(self.squares / held - means * means, 0.0)
        # What cancels in the difference says nothing.
        variances[variances <= 1e-12 * self.squares / held] = 0.0
        return counts, means, variances


def lay_out_bins(heads: Sequence[Array]) -> tuple[Floats, Floats]:
    """Return the centre and the width of the bins of each column.

    Args:
        heads: the first rows of both sides, shape `(size, columns)` each.
    """
    columns = heads[0].shape[1]
    parts = [
        _lay_out_slice([head[:_HEAD_ROWS, start : start + _SLICE_COLUMNS] for head in heads])
        for start in range(0, columns, _SLICE_COLUMNS)
    ]
    centres, widths = zip(*parts, strict=True)
    return np.concatenate(centres), np.concatenate(widths)


@np.errstate(over="ignore", invalid="ignore")
def _lay_out_slice(heads: Sequence[Array]) -> tuple[Floats, Floats]:
    pooled = np.concatenate(heads).astype(np.float64)
    pooled[~np.isfinite(pooled)] = np.nan
    held = np.maximum(np.count_nonzero(~np.isnan(pooled), axis=0), 1)
    centres = np.nansum(pooled, axis=0) / held
    centres[~np.isfinite(centres)] = 0.0
    pooled -= centres
    spread = np.sqrt(np.nansum(pooled * pooled, axis=0) / held)
    spread[~np.isfinite(spread)] = 1.0
    least = np.maximum(1e-9 * np.abs(centres), 1e-290)
    return centres, np.maximum(_BINNED_SPREADS * spread / _BINS, least)


def _screen_slice(sides: Sequence[ColumnSums], part: slice) -> list[Floats]:
    """Return how unlike the laws of some columns are: by bins, and by the best half-line."""
    cells = [side.cells[:, part].astype(np.float64) for side in sides]
    rows = [float(side.rows) for side in sides]
    pooled = cells[0] + cells[1]
    expected = [pooled * (size / sum(rows)) for size in rows]
    statistic = sum(
        ((own - fit) ** 2 / np.maximum(fit, _TINY)).sum(axis=0)
        for own, fit in zip(cells, expected, strict=True)
    )
    freedoms = np.count_nonzero(pooled, axis=0) - 1.0
    # In the order of the line: minus infinity, the bins, infinity; then each cell for itself.
    order = [_BINS + 1, *range(_BINS), _BINS + 2]
    below = [np.cumsum(own[order], axis=0) for own in cells]
    hits = [
        np.concatenate([under, under[-1] - under, own])
        for under, own in zip(below, cells, strict=True)
    ]
    ratios = np.abs(
        np.log((hits[0] + 0.5) / (rows[0] + 1.0)) - np.log((hits[1] + 0.5) / (rows[1] + 1.0))
    )
    errors = np.sqrt(1.0 / (hits[0] + 0.5) + 1.0 / (hits[1] + 0.5))
    cautious = (ratios - _RATIO_STANDARD_ERRORS * errors).max(axis=0)
    return [deviates_of(statistic, freedoms), cautious]


def rank_by_tests(sides: Sequence[ColumnSums]) -> list[Floats]:
    """Return how unlike the sides each column is: by mean, spread, bins and half-lines."""
    (size, mean, variance), (size_prime, mean_prime, variance_prime) = (
        side.read_moments() for side in sides
    )
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        error = variance / np.maximum(size, 1.0) + variance_prime / np.maximum(size_prime, 1.0)
        shifts = np.abs(mean - mean_prime) / np.sqrt(error)
        spreads = np.abs(np.log(variance) - np.log(variance_prime))
        slices = [
            _screen_slice(sides, slice(start, start + _SLICE_COLUMNS))
            for start in range(0, mean.size, _SLICE_COLUMNS)
        ]
    by_bins = [np.concatenate(merits) for merits in zip(*slices, strict=True)]
    tests = (shifts, spreads, *by_bins)
    return [np.where(np.isnan(merits), -np.inf, merits) for merits in tests]


def choose_columns(
    sides: Sequence[ColumnSums], ends: tuple[Floats, Floats] | None
) -> tuple[Ints, tuple[Ints, ...]]:
    """Choose the columns whose laws differ most, and those in which the inputs differ most.

    Args:
        sides: sums on x and on x'.
        ends: the inputs as one number per column, or None for other inputs.

    Returns:
        Their numbers, increasing; and groups of them, by place, that are also learnt from by
        themselves: the best column of each test, and the best few of all tests.
    """
    ranked = []
    for merits in rank_by_tests(sides):
        most = np.argsort(-merits, kind="stable")[:_CHOSEN_PER_TEST]
        ranked.append(most[merits[most] > -np.inf])
    if ends is not None:
        apart = np.abs(ends[0] - ends[1])[: sides[0].centre.size]
        most = np.argsort(-apart, kind="stable")[:_MAX_DIRECTED_COLUMNS]
        ranked.append(most[apart[most] > 0.0])
    chosen = np.unique(np.concatenate(ranked))
    leaders = np.unique(np.concatenate([places[:1] for places in ranked]))
    few = np.unique(np.concatenate([places[:_LEADERS_PER_TEST] for places in ranked]))
    groups = [*leaders[:, np.newaxis], few]
    if not chosen.size:
        return np.zeros(1, np.int64), ()
    smaller = [group for group in groups if group.size < chosen.size]
    return chosen.astype(np.int64), tuple(np.searchsorted(chosen, group) for group in smaller)


def weigh_columns(sides: Sequence[ColumnSums]) -> LinearScore | None:
    """Return the diagonal discriminant of all columns that vary, if a mean differs.

    Source:
        Fisher (1936), Annals of Eugenics 7; Bickel and Levina (2004), Bernoulli 10, for
        independent columns.
    """
    (_, mean, variance), (_, mean_prime, variance_prime) = (side.read_moments() for side in sides)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        weights = (mean - mean_prime) / (variance + variance_prime)
        centres = sides[0].centre + 0.5 * (mean + mean_prime)
        spreads = weights * weights * (variance + variance_prime)
        varies = np.isfinite(centres) & (spreads > 0.0) & (spreads < _LARGEST_SPREAD)
        # In units of its own spread, as the draws of the stream have it.
        spread = math.fsum(spreads[varies].tolist())
        weights /= math.sqrt(spread or 1.0)
    entries = np.flatnonzero(varies & np.isfinite(weights) & (weights != 0.0))
    return LinearScore(entries, centres[entries], weights[entries]) if entries.size > 1 else None
