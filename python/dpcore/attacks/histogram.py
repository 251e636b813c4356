"""Histograms: the cells of discrete outputs, in the order of their likelihood ratio."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np

from ..errors import instance, integer, invalid, mistyped
from ..events.above import Score
from ..hints import hinted
from ..records import Pair
from .arrays import Array, Floats, Merged, Whole, freeze_arrays
from .attack import ScoreAttack
from .scores.columns import read_numbers
from .scores.letters import Letters, Outcomes, grid_of, keys_of, kind_of, real_columns
from .scores.tables import count_values

__all__ = ["Cells", "Histogram"]

_PSEUDO_COUNTS: Final = (1.0, 32.0)
"""Outputs that every cell is given beforehand on both sides.

One lets a cell lead that x alone produces a few times; with 32 a rare cell does not lead by luck.
The choice of the event decides between the two orders.
"""
_MAX_CELLS: Final = 2**16
_MIN_OUTPUTS_PER_CELL: Final = 8
"""Pilot outputs per cell from which a histogram applies."""
_MIN_OUTPUTS_PER_BINNED_CELL: Final = 64
"""The same for bins, which could always be coarser."""
_ALWAYS_ALLOWED_CELLS: Final = 16
"""So few cells are always enough."""
_BIN_NUMBERS: Final = (1, 2, 4)
_SCREENED_OUTPUTS: Final = 2**14
_MAX_CELL_CODE: Final = 2**62


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Cells(Merged, word="Cells"):
    """The log ratio of the cell that an output falls into: ``ln((k + a)/(n + a)) - ln(...)'``.

    Cells are rows of letters (see `Letters`); k of n pilot outputs on x, k' of n' on x' lay in a
    cell, and a shrinks the ratio of rare ones towards 0. An output in no known cell scores 0.

    Args:
        letters: how outputs become rows of small whole numbers.
        stops: the columns are numbered in groups, so that 62 bits hold a group; where each ends.
        ends: where the ladder of each group ends.
        ladders: for each group the numbers that the pilot shows, increasing, one ladder after
            the other; the place of a number in its ladder is what the next group continues.
        values: the score of each number of the last group.

    Raises:
        TypeError: if `letters` is not a `Letters`.
        ValueError: if the tables do not fit each other.
    """

    letters: Letters
    stops: tuple[int, ...]
    ends: tuple[int, ...]
    ladders: Whole
    values: Floats

    cost = 200

    def __post_init__(self) -> None:
        """Freeze the tables and check that they fit."""
        instance("letters", self.letters, Letters)
        for name in ("stops", "ends"):
            object.__setattr__(self, name, tuple(map(int, getattr(self, name))))
        freeze_arrays(self)
        starts = (0, *self.ends)
        if len(self.ends) != len(self.stops) or starts[-1] != self.ladders.size:
            raise invalid("ends", f"one for each of {len(self.stops)} stops", self.ends)
        if not all(first < end for first, end in itertools.pairwise(starts)):
            raise invalid("ends", "increasing", self.ends)
        if self.values.shape != (starts[-1] - starts[-2],):
            raise invalid("values", "one for each cell of the last ladder", self.values.shape)

    def __call__(self, outputs: Array) -> Floats:
        """Return the scores, shape `(size,)`."""
        outputs, strange = self.letters.convert(outputs)
        scores = np.zeros(len(outputs))
        ladders = [self.ladders[a:b] for a, b in itertools.pairwise((0, *self.ends))]
        for part, raw in self.letters.chunks(outputs):
            code, first = np.zeros(len(raw), dtype=np.int64), 0
            for stop, ladder in zip(self.stops, ladders, strict=True):
                code = _find_places(ladder, self.letters.extend(code, raw, first, stop))
                first = stop
            scores[part] = np.where(code >= 0, self.values[code], 0.0)
        if strange is not None:
            scores[strange] = 0.0
        return scores

    def __str__(self) -> str:
        """Return one line for a report."""
        return f"log ratio of the output's cell (one of {self.values.size})"


@hinted
@dataclass(frozen=True, slots=True, repr=False)
class Histogram(ScoreAttack):
    """The counts of each output on both sides; the outputs are ordered by the ratio.

    For discrete outputs with enough pilot draws this is the likelihood ratio itself, and its best
    threshold the best event. Outputs may be integers, bools, strings, any hashable objects, rows
    of these, or floats, which are merged before they are compared: values that rounding
    may have made of one number are one. Floats that never repeat go into bins by rank, beside the
    atoms, so that a flag pattern with a value or two is a cell as well.

    It applies where the pilot has on average 8 outputs a cell, 64 where there are bins (16 cells
    are always few enough). At most 65,536 cells are kept, the most frequent ones.

    Args:
        bins: bins of equal share for values that do not repeat (from 4 on, two more in either
            tail); None tries 1, 2 and 4.

    Raises:
        TypeError: if `bins` is not an integer.
        ValueError: if it is below 1.

    Source:
        Neyman and Pearson (1933) for the order of the cells; Gilbert and McMillan (2018),
        "Property testing for differential privacy", for histograms of outputs.

    Example:
        >>> import dpcore
        >>> def leaky(x, size, rng):
        ...     return np.where(rng.random(size) < 0.5, "no", "yes" if x else "never")
        >>> report = dpcore.audit(leaky, (1, 0), attack=Histogram(), claim=1.0, rng=1)
        >>> report.verdict, report.epsilon_lower > 10
        ('refuted', True)
    """

    bins: int | None = None

    def __post_init__(self) -> None:
        """Check the number of bins."""
        if self.bins is not None:
            object.__setattr__(self, "bins", integer("bins", self.bins, 1))

    def candidates(self, outputs: Array, outputs_prime: Array, pair: Pair) -> tuple[Score, ...]:
        """Fit tables of cells on pilot outputs.

        Args:
            outputs: pilot outputs on `x`, shape `(size, ...)`.
            outputs_prime: pilot outputs on `x_prime`, shape `(size', ...)`.
            pair: the pair they were drawn on (not used).

        Returns:
            Scores, two for each way to make cells; none where the cells are too many.

        Raises:
            TypeError: if outputs are objects that cannot be hashed.
        """
        sides = np.asarray(outputs), np.asarray(outputs_prime)
        if sides[0].size == 0 or sides[1].size == 0 or sides[0].shape[1:] != sides[1].shape[1:]:
            return ()
        kinds = {kind_of(side) for side in sides}
        if "real" in kinds and kinds <= {"real", "whole"}:
            return self._tabulate_floats(*sides)
        if None in kinds or len(kinds) > 1:
            return _tabulate_objects(*sides)
        return _tabulate_cells(
            sides, Letters.of_whole(*sides, str(kinds.pop())), _MIN_OUTPUTS_PER_CELL
        )

    def _tabulate_floats(self, *sides: Array) -> tuple[Score, ...]:
        rows = tuple(map(read_numbers, sides))
        shown = real_columns(*rows)
        found: list[Score] = []
        loose = any(column.loose for column in shown)
        for bins in _BIN_NUMBERS if self.bins is None else (self.bins,):
            full = _MIN_OUTPUTS_PER_BINNED_CELL if bins > 1 else _MIN_OUTPUTS_PER_CELL
            made = _tabulate_cells(rows, Letters.of_real(shown, bins), full)
            # Where no value repeats, one bin is one cell, which says nothing.
            found += [cells for cells in made if not (loose and cells.values.size == 1)]
            if not loose:
                break
        return tuple(found)


def _find_places(ladder: Whole, code: Whole) -> Whole:
    """Return the place of each number in a ladder, -1 for those that are not in it."""
    place = np.searchsorted(ladder, code)
    place[place == ladder.size] = 0
    return np.where(ladder[place] == code, place, -1)


def _tabulate_cells(sides: tuple[Array, ...], letters: Letters, full: int) -> tuple[Cells, ...]:
    """Return the cells that letters make, in both orders; none if they are too many."""
    total = sum(map(len, sides))
    most = max(_ALWAYS_ALLOWED_CELLS, total / full)
    first = tuple(side[:_SCREENED_OUTPUTS] for side in sides)
    seen = sum(map(len, first))
    # If `most` cells were equally likely, the head would show this many.
    if seen < total and _number_rows(first, letters)[2].shape[1] > most * -np.expm1(-seen / most):
        return ()
    stops, ladders, counts = _number_rows(sides, letters)
    if counts.shape[1] > most:
        return ()
    ends = np.cumsum([ladder.size for ladder in ladders]).tolist()
    table = np.concatenate(ladders)
    tables = _order_cells(counts, sides)
    return tuple(Cells(letters, stops, ends, table, values) for values in tables)


def _number_rows(
    sides: tuple[Array, ...], letters: Letters
) -> tuple[tuple[int, ...], list[Whole], Whole]:
    """Return stops and ladders of `Cells`, and the counts of both sides in the last one's cells."""
    codes = [np.zeros(len(side), dtype=np.int64) for side in sides]
    stops: list[int] = []
    ladders: list[Whole] = []
    columns, stop, kept = letters.sizes.size, 0, 1
    while True:
        first, radix = stop, kept
        while stop < columns and radix * int(letters.sizes[stop]) < _MAX_CELL_CODE:
            radix *= int(letters.sizes[stop])
            stop += 1
        for side, code in zip(sides, codes, strict=True):
            for part, raw in letters.chunks(side):
                code[part] = letters.extend(code[part], raw, first, stop)
        keys, counts = _count_codes(codes)
        stops.append(stop)
        ladders.append(keys)
        if stop == columns:
            return tuple(stops), ladders, counts
        codes, kept = [_find_places(keys, code) for code in codes], keys.size


def _count_codes(codes: list[Whole]) -> tuple[Whole, Whole]:
    """Return the numbers that occur, or the most frequent ones, and their counts on both sides."""
    keys, counts = count_values(*(code[code >= 0] for code in codes))
    if keys.size > _MAX_CELLS:
        frequent = np.sort(np.argsort(-counts.sum(axis=0), kind="stable")[:_MAX_CELLS])
        keys, counts = keys[frequent], counts[:, frequent]
    return keys, counts


def _order_cells(counts: Whole, sides: tuple[Array, ...]) -> list[Floats]:
    """Return shrunken log ratios of all cells; one for each order of the cells."""
    found: list[Floats] = []
    for a in _PSEUDO_COUNTS:
        shares = [np.log((k + a) / (len(side) + a)) for k, side in zip(counts, sides, strict=True)]
        found.append(shares[0] - shares[1])
    orders = [np.argsort(values, kind="stable") for values in found]
    return found[:1] if np.array_equal(orders[0], orders[1]) else found


def _tabulate_objects(outputs: Array, outputs_prime: Array) -> tuple[Score, ...]:
    sides = (outputs, outputs_prime)
    most = max(_ALWAYS_ALLOWED_CELLS, (len(outputs) + len(outputs_prime)) // _MIN_OUTPUTS_PER_CELL)
    # Where the first outputs already differ too much, the others are not compared.
    for size in (most, None):
        try:
            grid = grid_of(*(side[:size] for side in sides))
            tallies = [Counter(keys_of(side[:size], grid)) for side in sides]
        except RecursionError:
            requirement = "objects that do not contain themselves"
            raise mistyped("outputs", requirement, outputs[0]) from None
        total = tallies[0] + tallies[1]
        if len(total) > most:
            return ()
    # Sorted by frequency, equal ones as they first occurred.
    keys = tuple(key for key, _ in total.most_common(_MAX_CELLS))
    counts = np.array([[tally[key] for key in keys] for tally in tallies], dtype=np.int64)
    return tuple(Outcomes(keys, values, *grid) for values in _order_cells(counts, sides))
