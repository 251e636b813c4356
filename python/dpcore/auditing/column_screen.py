"""Choice of the columns of wide outputs in which the inputs x and x' differ most.

Wide outputs have too many columns (entries) to store all rows. Therefore rows are read one after
the other, and sums, sums of squares and histograms of each column are updated. The columns are
chosen by the differences between x and x' in four statistics:

- the mean;
- the variance;
- the histogram;
- the probability of the best half-line (column above or below a threshold).

The sums also give a linear discriminant of all columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from ..attacks.arrays import chi_square_deviates
from ..attacks.classifier import LinearScore
from ..records import Array, Floats, Ints

_SLICE_COLUMNS: Final = 2**14
"""Number of columns that are updated at once, so that their histograms stay in the CPU cache."""
_BINS: Final = 16
_CELLS: Final = _BINS + 3
"""Number of counts per column: one for each bin, then NaN, minus infinity and infinity."""
_BINNED_SPREADS: Final = 5.0
"""Width of all bins together, in standard deviations of the first rows. The outer bins also count
all numbers beyond them."""
_HEAD_ROWS: Final = 16
"""Largest number of rows per input that determine the bins of the histograms."""
_MAX_PARTIAL_ROWS: Final = 255
"""Largest number of rows that a count of 8 bits can hold."""
_CHOSEN_PER_TEST: Final = 48
"""Number of columns that are chosen by each of the four statistics."""
_LEADERS_PER_TEST: Final = 4
"""Number of best columns by each statistic that form a smaller group. The attack also learns from
this group, which has less noise."""
_MAX_DIRECTED_COLUMNS: Final = 64
"""Number of columns that are chosen because the inputs differ most in them."""
_RATIO_STANDARD_ERRORS: Final = 4.0
"""Number of standard errors that are subtracted from a log ratio, because the largest of many log
ratios is partly chance."""
_TINY: Final = 1e-300
_LARGEST_SPREAD: Final = 1e290
"""Largest squared difference of means, divided by the variance. Above this value, sums may
overflow."""


class ColumnSums:
    """Sums, sums of squares and a histogram of each column of the outputs on one input.

    Each new output (a row of numbers) updates these statistics.

    Args:
        centre: centre of the histogram of each column, shape `(columns,)`. The centre is also
            subtracted from each number before the number is added to the sums.
        widths: width of one bin in the histogram of each column, shape `(columns,)`.
    """

    def __init__(self, centre: Floats, widths: Floats) -> None:
        self.centre, self.widths, self.rows = centre, widths, 0
        self.sums, self.squares = np.zeros(centre.size), np.zeros(centre.size)
        self.cells: Array = np.zeros((_CELLS, centre.size), np.uint8)
        self.first: Array | None = None
        self.steady: Ints = np.arange(centre.size)

    def add(self, rows: Array) -> None:
        """Add outputs of shape `(size, columns)` to the sums and histograms of the columns."""
        for first in range(0, len(rows), _MAX_PARTIAL_ROWS):
            self._add_rows(rows[first : first + _MAX_PARTIAL_ROWS])
        self.first = rows[0].copy() if self.first is None else self.first
        for row in rows:
            if not self.steady.size:
                break
            here, there = row[self.steady], self.first[self.steady]
            self.steady = self.steady[(here == there) | ((here != here) & (there != there))]

    def _add_rows(self, rows: Array) -> None:
        self.rows += len(rows)
        if self.rows > np.iinfo(self.cells.dtype).max:
            self.cells = self.cells.astype(np.uint16 if self.rows < 2**16 else np.uint32)
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, self.centre.size, _SLICE_COLUMNS):
                part = slice(start, start + _SLICE_COLUMNS)
                self.cells[:, part] += self._update_sums_and_count_bins(rows, part)

    def _update_sums_and_count_bins(self, rows: Array, part: slice) -> npt.NDArray[np.uint8]:
        """Update the sums of some columns, and return the counts for their histograms."""
        centre, scale = self.centre[part], 1.0 / self.widths[part]
        counts = np.zeros((_CELLS, centre.size), np.uint8)
        moved, scaled = np.empty(centre.size), np.empty(centre.size)
        for row in rows:
            np.subtract(row[part], centre, out=moved, dtype=np.float64)
            places = self._compute_bin_indices(moved, scale, scaled)
            self.sums[part] += moved
            np.multiply(moved, moved, out=scaled)
            self.squares[part] += scaled
            most = _BINS if places.max(initial=0) < _BINS else _CELLS
            for cell in range(most):
                counts[cell] += (places == cell).view(np.uint8)
        return counts

    @staticmethod
    def _compute_bin_indices(moved: Floats, scale: Floats, scaled: Floats) -> npt.NDArray[np.uint8]:
        """Return the index of the histogram count (of a bin, NaN or infinity) for each number.

        The numbers are in `moved`. The function replaces NaN and infinities in this array by 0.
        """
        np.multiply(moved, scale, out=scaled)
        scaled += 0.5 * _BINS - 0.5
        np.clip(scaled, 0.0, _BINS - 1.0, out=scaled)
        if not math.isfinite(float(moved @ moved)):
            odd = ~np.isfinite(moved)
            kinds = np.where(np.isnan(moved[odd]), _BINS, np.where(moved[odd] < 0, 17.0, 18.0))
            moved[odd], scaled[odd] = 0.0, kinds
        return scaled.astype(np.uint8)

    def count_mean_var(self) -> tuple[Floats, Floats, Floats]:
        """Return the count, the mean and the variance of the finite numbers in each column.

        The attribute `centre` is subtracted from the numbers before the mean is computed.
        """
        counts = self.cells[:_BINS].sum(axis=0, dtype=np.float64)
        held = np.maximum(counts, 1.0)
        means = self.sums / held
        variances = np.maximum(self.squares / held - means * means, 0.0)
        # A variance below the rounding error of the difference is set to 0.
        variances[variances <= 1e-12 * self.squares / held] = 0.0
        return counts, means, variances


def centre_and_bin_width(heads: Sequence[Array]) -> tuple[Floats, Floats]:
    """Choose the centre of the histogram and the width of its bins, for each column of the outputs.

    Args:
        heads: the first outputs on x and the first outputs on x', each of shape `(size, columns)`.
    """
    columns = heads[0].shape[1]
    parts = [
        _bin_centre_and_width([head[:_HEAD_ROWS, start : start + _SLICE_COLUMNS] for head in heads])
        for start in range(0, columns, _SLICE_COLUMNS)
    ]
    centres, widths = zip(*parts, strict=True)
    return np.concatenate(centres), np.concatenate(widths)


@np.errstate(over="ignore", invalid="ignore")
def _bin_centre_and_width(heads: Sequence[Array]) -> tuple[Floats, Floats]:
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


def _chi_square_and_half_line(sides: Sequence[ColumnSums], part: slice) -> list[Floats]:
    """Return two measures of the difference between x and x', for some columns.

    The first measure is a chi-squared statistic of the histograms. The second measure is the
    absolute log ratio of the probabilities of the best half-line, minus four standard errors. A
    half-line is the event that the column is above, or below, a threshold.
    """
    cells = [side.cells[:, part].astype(np.float64) for side in sides]
    rows = [float(side.rows) for side in sides]
    pooled = cells[0] + cells[1]
    expected = [pooled * (size / sum(rows)) for size in rows]
    statistic = sum(
        ((own - fit) ** 2 / np.maximum(fit, _TINY)).sum(axis=0)
        for own, fit in zip(cells, expected, strict=True)
    )
    freedoms = np.count_nonzero(pooled, axis=0) - 1.0
    # In the order of the line: minus infinity, the bins, infinity. Then each cell separately.
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
    return [chi_square_deviates(statistic, freedoms), cautious]


def measure_four_differences(sides: Sequence[ColumnSums]) -> list[Floats]:
    """Measure how much the outputs on x and on x' differ in each column, in four ways.

    The four measures compare the means, the variances, the histograms, and the probabilities of a
    half-line (the numbers above, or below, a threshold). The function uses the half-line for which
    the probabilities on x and on x' differ most. A larger number means a larger difference.

    Args:
        sides: sums and histograms of the columns, first on x and then on x'.

    Returns:
        Four arrays of shape `(columns,)`, one for each measure.
    """
    (size, mean, variance), (size_prime, mean_prime, variance_prime) = (
        side.count_mean_var() for side in sides
    )
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        error = variance / np.maximum(size, 1.0) + variance_prime / np.maximum(size_prime, 1.0)
        shifts = np.abs(mean - mean_prime) / np.sqrt(error)
        spreads = np.abs(np.log(variance) - np.log(variance_prime))
        slices = [
            _chi_square_and_half_line(sides, slice(start, start + _SLICE_COLUMNS))
            for start in range(0, mean.size, _SLICE_COLUMNS)
        ]
    by_bins = [np.concatenate(merits) for merits in zip(*slices, strict=True)]
    tests = (shifts, spreads, *by_bins)
    return [np.where(np.isnan(merits), -np.inf, merits) for merits in tests]


def choose_columns(
    sides: Sequence[ColumnSums], inputs: tuple[Floats, Floats] | None
) -> tuple[Ints, tuple[Ints, ...]]:
    """Choose the columns of the outputs (rows of numbers) from which an attack learns.

    The function chooses the columns in which the distributions of the outputs on x and on x' differ
    most. If `inputs` is given, it also chooses the columns in which the inputs differ most.

    Args:
        sides: sums and histograms of the columns, first on x and then on x'.
        inputs: the inputs x and x', if an input has one number for each column. None if inputs have
            another form.

    Returns:
        Two objects. The first is the increasing array of the indices of the chosen columns. The
        second is a tuple of smaller groups of these columns, from which the attack also learns
        separately. Most groups consist of one column. The last group contains the few best columns
        for each of the four measures, and for the difference of the inputs. A group is an array of
        positions in the first array.
    """
    ranked = []
    for merits in measure_four_differences(sides):
        most = np.argsort(-merits, kind="stable")[:_CHOSEN_PER_TEST]
        ranked.append(most[merits[most] > -np.inf])
    if inputs is not None:
        apart = np.abs(inputs[0] - inputs[1])[: sides[0].centre.size]
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


def fit_diagonal_score(sides: Sequence[ColumnSums]) -> LinearScore | None:
    """Return the linear discriminant between outputs on x and on x', for independent columns.

    The weight of a column is a quotient. The numerator is the mean of the column on x minus its
    mean on x'. The denominator is the sum of the column's variances on x and on x'. Columns without
    variance are left out. The result is None if fewer than two columns get a weight.

    Args:
        sides: sums and histograms of the columns, first on x and then on x'.

    Source:
        Fisher (1936), Annals of Eugenics 7, on the discriminant. Bickel and Levina (2004),
        Bernoulli 10, on independent columns.
    """
    (_, mean, variance), (_, mean_prime, variance_prime) = (side.count_mean_var() for side in sides)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        weights = (mean - mean_prime) / (variance + variance_prime)
        centres = sides[0].centre + 0.5 * (mean + mean_prime)
        spreads = weights * weights * (variance + variance_prime)
        varies = np.isfinite(centres) & (spreads > 0.0) & (spreads < _LARGEST_SPREAD)
        # The unit of the score is its own spread, estimated from the stream.
        spread = math.fsum(spreads[varies].tolist())
        weights /= math.sqrt(spread or 1.0)
    entries = np.flatnonzero(varies & np.isfinite(weights) & (weights != 0.0))
    return LinearScore(entries, centres[entries], weights[entries]) if entries.size > 1 else None
