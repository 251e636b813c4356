"""Attack on outputs that only one of the two inputs x and x' can produce.

Examples are NaN, a value outside a range, and a value that occurs repeatedly on one input only. If
an event has positive probability on x and probability 0 on x', the privacy loss is infinite. The
attack finds possible events on the pilot (the first draws). The audit then counts the event on
fresh draws, and the certified bound is finite. Only a closed form can prove that the loss is
infinite. `dpcore.exact.explain_infinite_loss` gives this proof for native mechanisms.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, NamedTuple

import numpy as np

from ..errors import invalid, real
from ..events.event import Above, Score
from ..records import Array, Counts, Floats, Ints, Rows, set_fields
from . import arrays
from .arrays import Merged, Words, read_both_sides, read_numbers
from .atoms import Atoms, atoms_of, may_have_atoms, take_head_rows
from .attack import Choice, Goal, NumericAttack, merit_of
from .bins import SHARE
from .candidates import PartsScore, choose_presence_type_length_rules
from .grains import PLACES, Tolerance, column_tolerances, merge_grains, tolerances_at
from .parts import Parts, cache_parts
from .threshold import Coordinate, RowMax, RowMin, Special

_RANGE_ORDER_STATISTIC: Final = 8
"""Rank of an order statistic. A range is widened in proportion to the distance between the extreme
value and this order statistic."""
_RANGE_REACH: Final = 1.381966011250105
"""Factor that multiplies the distance. It is not a simple fraction: with a simple fraction, the end
of the widened range could be an atom that the pilot missed."""
_RANGE_TOLERANCES: Final = 4.0
"""Additional widening of each end of a range, in tolerances for rounding."""
_MIN_ONE_SIDED_COUNT: Final = 8
"""Least number of pilot outputs with a value (atom) that occurs on one input only."""
_MAX_ONE_SIDED_ATOMS: Final = 16
MOST_SOUGHT: Final = 2**19
"""Largest number of entries, on both inputs together, among which rare values are searched."""
_MIN_RARE_COUNT: Final = 4
_UNLIMITED_PILOT_SIZE: Final = 2**52
_MAX_REPEATED_VALUES: Final = 16
_ODD_COUNT_RATIO: Final = 4
"""Ratio between the frequencies of a value and of its neighbours. From this ratio on, the value
does not belong to a grid."""
_LUCK_PROBABILITY: Final = 0.05
"""Largest probability that a value which both inputs produce occurs by chance on only one input.
The probability is valid if at most _MAX_REPEATED_VALUES values repeat."""
_PRESENCE_LUCK_PROBABILITY: Final = 0.25
_MAX_REPEATED_ROWS: Final = 4096
"""Largest number of repeated rows that are kept for each input."""
_REPEAT_STANDARD_ERRORS: Final = 3.0
"""Number of standard errors by which the frequencies of repeats on x and x' must differ. Only then
is the score of repeats made."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Outside(Merged, word="Outside"):
    """Score of an output: the number of its entries that lie outside a given interval.

    Args:
        lows: lower end of the interval of each entry, shape `(entries,)`. -inf means that the
            interval has no lower limit.
        highs: upper end of the interval of each entry, shape `(entries,)`. inf means that the
            interval has no upper limit.

    Raises:
        ValueError: if `lows` and `highs` are not vectors of the same length, contain NaN, or a
            lower end exceeds its upper end.

    Source:
        Habernal (2022), theorem 3.2, on a mechanism whose output is never below its input.

    Example:
        >>> Outside([0.0, 0.0], [1.0, np.inf])(np.array([[2.0, 2.0], [-1.0, -1.0]])).tolist()
        [1.0, 2.0]
    """

    lows: Floats
    highs: Floats

    def __post_init__(self) -> None:
        """Make `lows` and `highs` read-only and check them."""
        arrays.freeze_arrays(self, "lows", "highs")
        if not (self.lows <= self.highs).all():
            raise invalid("lows", "at most highs, entry by entry", self.lows)

    def __call__(self, outputs: Array) -> Floats:
        """Return the number of entries outside their ranges for each output, shape `(size,)`.

        NaN does not count as outside.
        """
        rows = read_numbers(outputs, self.lows.size)
        scores = np.zeros(len(rows))
        used = np.flatnonzero((self.lows > -np.inf) | (self.highs < np.inf))
        for part in arrays.chunk_slices(rows):
            values = rows[part] if used.size == rows.shape[1] else rows[part][:, used]
            outside = (values < self.lows[used]) | (values > self.highs[used])
            scores[part] = np.count_nonzero(outside, axis=1)
        return scores

    whole = True

    @property
    def sentences(self) -> tuple[str, str] | None:
        """Two texts for a report about this score, such as "entry 0 > 1" and "not: entry 0 > 1".

        The property is None if more than one entry has an interval with a limit.
        """
        used = np.flatnonzero((self.lows > -np.inf) | (self.highs < np.inf))
        if used.size != 1:
            return None
        name, low, high = f"entry {used[0]}", float(self.lows[used[0]]), float(self.highs[used[0]])
        text = f"{name} < {low:.10g}" if high == np.inf else f"{name} > {high:.10g}"
        if np.isfinite([low, high]).all():
            text = f"{name} is outside [{low:.10g}, {high:.10g}]"
        return text, f"not: {text}"

    def __str__(self) -> str:
        """Return a description of the score in one line, for the report of an audit."""
        if self.sentences is not None:
            return self.sentences[0]
        used = np.flatnonzero((self.lows > -np.inf) | (self.highs < np.inf))
        return f"number of entries outside their ranges ({used.size} of them have one)"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Repeats(Merged, word="Repeats"):
    """Score of an output: the number of its entries that repeat another entry of the same output.

    The entries are sorted. An entry is a repeat if its difference from the entry before it is at
    most the larger of two tolerances. Without tolerances, the score is the number of entries minus
    the number of distinct entries.

    Args:
        tolerance: the first tolerance, in the units of the outputs, at least 0.
        relative: a factor, at least 0. The second tolerance is this factor times the largest
            absolute value in the output.

    Raises:
        TypeError: if a tolerance is not a number.
        ValueError: if a tolerance is negative or not finite.

    Source:
        Ding, Wang, Wang, Zhang and Kifer (2018), StatDP, on events such as "two entries are equal".

    Example:
        >>> Repeats(0.0)(np.array([[1.0, 2.0, 1.0], [1.0, 2.0, 3.0]])).tolist()
        [1.0, 0.0]
    """

    tolerance: float
    relative: float = 0.0

    whole = True

    def __post_init__(self) -> None:
        """Check the tolerances."""
        tolerance = real("tolerance", self.tolerance, low=0.0)
        set_fields(self, tolerance=tolerance, relative=real("relative", self.relative, low=0.0))

    def __call__(self, outputs: Array) -> Floats:
        """Return the number of repeats in each output, shape `(size,)`. NaN is never a repeat."""
        rows = read_numbers(outputs)
        scores = np.zeros(len(rows))
        for part in arrays.chunk_slices(rows):
            ordered = np.sort(rows[part].astype(np.float64), axis=1)
            near = ordered[:, 1:] <= ordered[:, :-1] + self.tolerance
            if self.relative:
                with np.errstate(invalid="ignore"):
                    reach = self.relative * np.abs(ordered).max(axis=1, initial=0.0)
                    near |= np.diff(ordered, axis=1) <= reach[:, np.newaxis]
            scores[part] = np.count_nonzero(near, axis=1)
        return scores

    def __str__(self) -> str:
        """Return a description of the score in one line, for the report of an audit."""
        return "number of entries that repeat another"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AtAtoms(Merged, word="AtAtoms"):
    """Score: number of entries with values seen only on x, minus the same number for x'.

    A value is "seen only on x" if it occurred repeatedly in pilot outputs (first draws) on x, and
    never in pilot outputs on x'. Each value is given by a short interval around it, because
    rounding may change its last digits.

    Args:
        entries: for each value, the index of the entry in which it occurred, shape `(values,)`.
        lows: lower end of the interval around each value, shape `(values,)`.
        highs: upper end of the interval around each value, shape `(values,)`.
        signs: 1 for a value that occurs only on x, -1 for a value that occurs only on x'.

    Raises:
        ValueError: if the arguments are not vectors of one length.

    Source:
        Lyu, Su and Li (2017), section 3, on variants of the sparse vector technique. These variants
        release outputs that a neighbouring input cannot produce.

    Example:
        >>> at = AtAtoms([0, 0], [-0.1, 0.9], [0.1, 1.1], [1, -1])
        >>> at(np.array([[0.0], [1.0], [2.0]])).tolist()
        [1.0, -1.0, 0.0]
    """

    entries: Ints
    lows: Floats
    highs: Floats
    signs: Ints

    def __post_init__(self) -> None:
        """Make the arrays read-only and check that their shapes match."""
        arrays.freeze_arrays(self, "entries", "lows", "highs", "signs")

    def __call__(self, outputs: Array) -> Floats:
        """Return the score of each output, shape `(size,)`."""
        rows = read_numbers(outputs, min_columns=self.entries.max(initial=-1) + 1)
        scores = np.zeros(len(rows))
        table = zip(self.entries, self.lows, self.highs, self.signs, strict=True)
        for entry, low, high, sign in table:
            values = rows[:, entry]
            scores += sign * ((values >= low) & (values <= high))
        return scores

    whole = True

    @property
    def sentences(self) -> tuple[str, str] | None:
        """Two texts for a report, such as "entry 0 equals 1" and "not: entry 0 equals 1".

        The first text describes outputs with the larger score, and the second text describes all
        other outputs. The property is None if the score looks for more than one value.
        """
        if self.entries.size != 1:
            return None
        text = f"entry {self.entries[0]} equals {0.5 * (self.lows[0] + self.highs[0]):.10g}"
        return (text, f"not: {text}") if self.signs[0] > 0 else (f"not: {text}", text)

    def __str__(self) -> str:
        """Return a description of the score in one line, for the report of an audit."""
        middle = 0.5 * (self.lows + self.highs)
        if self.entries.size == 1:
            side = "x" if self.signs[0] > 0 else "x'"
            return f"entry {self.entries[0]} equals {middle[0]:.10g} (seen on {side} alone)"
        return f"entries at {self.entries.size} values seen on one side alone"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AtRows(Merged, word="AtRows"):
    """Score of an output: 1 if it was seen only on x, -1 if it was seen only on x', otherwise 0.

    The score has a list of outputs that occurred repeatedly on one input, and never on the other
    input. The score of all other outputs is 0. An output is recognized by a 64-bit hash, which is
    computed from its entries as float64.

    Args:
        codes: hashes of the listed outputs in increasing order, as the function `row_hashes`
            computes them.
        signs: score of each listed output: 1 if it occurred only on x, -1 if it occurred only on
            x'.

    Raises:
        ValueError: if the arguments are not vectors of one length, or `codes` does not increase.

    Source:
        Mironov (2012), section 4, on sets of outputs that only one input can produce.

    Example:
        >>> rows = np.array([[0.5, 1.5], [2.5, 3.5]])
        >>> at = AtRows(np.sort(row_hashes(rows)), [1, 1])
        >>> at(np.array([[2.5, 3.5], [0.0, 0.0]])).tolist()
        [1.0, 0.0]
    """

    codes: Words
    signs: Ints

    whole = True
    cost = 1_000
    """Assumed time to compute the score of one output, in nanoseconds. The value is large, so that
    any other score that is as good is preferred."""

    def __post_init__(self) -> None:
        """Make the arrays read-only and check that their shapes match."""
        arrays.freeze_arrays(self, "codes", "signs")
        if not (self.codes[1:] > self.codes[:-1]).all():
            raise invalid("codes", "increasing", self.codes)

    def __call__(self, outputs: Array) -> Floats:
        """Return the score of each output, shape `(size,)`."""
        codes = row_hashes(read_numbers(outputs))
        places = np.searchsorted(self.codes, codes).clip(max=self.codes.size - 1)
        return np.where(self.codes[places] == codes, self.signs[places], 0).astype(np.float64)

    def __str__(self) -> str:
        """Return a description of the score in one line, for the report of an audit."""
        return f"equal to one of {self.codes.size:,} rows that came again on one side alone"


def row_hashes(rows: Array) -> Words:
    """Compute a 64-bit hash for each row of an array of numbers. Equal rows have equal hashes.

    Args:
        rows: the array of numbers, shape `(size, columns)`.
    """
    # Adding 0 turns -0.0 into 0.0. Floats that were float32 end with 29 bits of 0.
    bits = (rows.astype(np.float64) + 0.0).view(np.uint64)
    bits = bits ^ (bits >> np.uint64(32))
    steps = np.arange(1, rows.shape[1] + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        factors = (steps * np.uint64(0x9E3779B97F4A7C15)) | np.uint64(1)
        mixed = bits * factors
        mixed ^= mixed >> np.uint64(29)
        return np.asarray((mixed * factors).sum(axis=1, dtype=np.uint64))


@dataclass(frozen=True, slots=True, repr=False)
class Support(NumericAttack):
    """Attack on outputs that only one of the two inputs can produce.

    The attack compares the pilot outputs (the first draws) on the two inputs. It makes a score for
    each of these properties if some pilot outputs have the property:

    - an entry is NaN or infinite;
    - an entry is clearly outside the range that it has on the other input;
    - the minimum or the maximum of the entries is beyond a threshold;
    - two entries of an output are equal;
    - an entry has a value that occurs repeatedly on one input and never on the other input.

    The audit counts the best event on new draws. Therefore the certified bound on epsilon is
    finite, even if the true epsilon is infinite.

    Source:
        Habernal (2022), theorem 3.2: the privacy loss is infinite if one input cannot produce an
        output of the other input.

    Example:
        >>> import dpcore
        >>> mechanism, pair = dpcore.Uniform(-1.0, 1.0), dpcore.Pair([0.0], [0.01])
        >>> report = dpcore.audit(mechanism, pair, attack=Support(), claim=1.0, rng=1)
        >>> report.verdict, report.epsilon_lower > 5
        ('refuted', True)
    """

    @cache_parts()
    def seldom(
        self, outputs: Sequence[Array], outputs_prime: Sequence[Array], goal: Goal
    ) -> Choice | None:
        """Choose an event: the output has one of the rare values that occur on only one input.

        Return None if the pilot (first draws) does not show such a value, or if the pilot is too
        large for this search.
        """
        size = sum(map(np.size, (*outputs, *outputs_prime)))
        if 0 in (len(outputs), len(outputs_prime)) or size > MOST_SOUGHT:
            return None
        if all(side.dtype.kind in "buif" for side in (*outputs, *outputs_prime)):
            return rare_values_event(np.concatenate(outputs), np.concatenate(outputs_prime), goal)
        sides = [np.concatenate(side) for side in (outputs, outputs_prime)]
        parts = choose_presence_type_length_rules(*sides)
        if not parts.parts:
            return None
        columns = parts(sides[0]), parts(sides[1])
        rare_values = rare_values_event(*columns, goal, _PRESENCE_LUCK_PROBABILITY)
        if rare_values is None:
            return None
        side = 0 if rare_values.direction == "x" else 1
        often = np.count_nonzero(rare_values.event(columns[side]))
        # A single part that covers the same rows is plainer.
        for i in range(len(parts.parts)):
            one = _find_rare_part(parts, i, columns, goal)
            if one is not None and np.count_nonzero(one.event(sides[side])) == often:
                return one
        return replace(
            rare_values,
            event=replace(rare_values.event, score=PartsScore(parts, rare_values.event.score)),
        )

    fallback: ClassVar[tuple[Score, ...]] = (Special("nan"),)

    def make_scores(self, rows: Rows, rows_prime: Rows) -> Iterator[Score]:
        """Make a score for each property that the pilot outputs have, such as "an entry is NaN"."""
        sides = rows, rows_prime
        grains = column_tolerances(*sides)
        for kind, is_special in (("nan", np.isnan), ("inf", np.isinf)):
            if any(side.dtype.kind == "f" and is_special(side).any() for side in sides):
                yield Special(kind)
        yield from _range_scores(*sides, grains)
        yield from _range_scores(*sides[::-1], grains)
        if rows.shape[1] > 1:
            yield from (RowMin(), RowMax())
            repeats = _make_repeated_entry_count_score(grains)
            if _repeat_counts_differ(*sides, repeats):
                yield repeats
            yield from _score_one_sided_rows(*sides, grains)
        yield from _one_score_of_one_sided_atoms(*sides, grains)


def _range_scores(rows: Array, rows_prime: Array, grains: Sequence[Tolerance]) -> Iterator[Outside]:
    """Yield a score that counts entries outside the widened ranges of the outputs on x'.

    A limit is used only if an output on x exceeds it.
    """
    dim = rows.shape[1]
    lows, highs = np.full(dim, -np.inf), np.full(dim, np.inf)
    for part, (own, other) in arrays.column_blocks(rows, rows_prime):
        # Unlike min and max, these ignore NaN, and they give no warning if all values are NaN.
        least, most = np.fmin.reduce(own, axis=1), np.fmax.reduce(own, axis=1)
        low, high = _extrapolated_ranges(other, grains[part])
        lows[part] = np.where(least < low, low, -np.inf)
        highs[part] = np.where(most > high, high, np.inf)
    if np.isfinite([lows, highs]).any():
        yield Outside(lows, highs)


def _extrapolated_ranges(columns: Floats, grains: Sequence[Tolerance]) -> tuple[Floats, Floats]:
    """Return the lower and upper end of each column's range, widened at each end.

    Each end moves outwards by 1.38 times the distance between the outermost value and the eighth
    value from this end. A margin for rounding is added. A column without a finite value gets the
    range from -inf to inf.
    """
    lows, highs = np.full(len(columns), -np.inf), np.full(len(columns), np.inf)
    held = np.isfinite(columns).sum(axis=1)
    for size in np.unique(held[held > 0]):
        same, order = np.flatnonzero(held == size), min(_RANGE_ORDER_STATISTIC, size)
        values = columns[same]
        if size < columns.shape[1]:
            values = values[np.isfinite(values)].reshape(same.size, size)
        values = np.partition(values, (order - 1, size - order), axis=1)
        lowest, highest = values[:, :order], values[:, size - order :]
        first, last = lowest.min(axis=1), highest.max(axis=1)
        tolerances = tolerances_at(
            [grains[i] for i in same.tolist()], np.stack([first, last], axis=1)
        )
        reaches = np.stack([lowest.max(axis=1) - first, last - highest.min(axis=1)], axis=1)
        below, above = (_RANGE_REACH * reaches + _RANGE_TOLERANCES * tolerances).T
        lows[same], highs[same] = first - below, last + above
    return lows, highs


def _make_repeated_entry_count_score(grains: Sequence[Tolerance]) -> Repeats:
    """Return the score that counts repeated entries, with tolerances for rounding."""
    grain = merge_grains(grains)
    relative = 2.0 * PLACES * 2.0 ** (1 - grain.bits) if grain.bits else 0.0
    return Repeats(2.0 * grain.typical_tolerance, relative)


def _repeat_counts_differ(rows: Array, rows_prime: Array, repeats: Repeats) -> bool:
    counts = [repeats(take_head_rows(side)) for side in (rows, rows_prime)]
    for events in (counts, [count > 0 for count in counts]):
        noise = math.sqrt(sum(float(np.var(event)) / event.size for event in events))
        means = [float(np.mean(event)) for event in events]
        if abs(means[0] - means[1]) > _REPEAT_STANDARD_ERRORS * noise:
            return True
    return False


def _likely_atom_columns(
    sides: tuple[Array, Array], grains: Sequence[Tolerance], least: int | None = None
) -> list[int]:
    """Return the indices of the columns that may have atoms (values of positive probability)."""
    columns: list[int] = []
    for part, blocks in arrays.column_blocks(*sides):
        ordered = np.sort(np.concatenate(blocks, axis=1), axis=1)
        flags = may_have_atoms(ordered, grains[part], least)
        columns += (np.flatnonzero(flags) + part.start).tolist()
    return columns


class _OneSidedAtom(NamedTuple):
    entry: int
    low: float
    high: float
    sign: int
    times: int


def _atoms_and_one_sided(
    rows: Array, rows_prime: Array, column: int, grain: Tolerance, least: int | None = None
) -> tuple[Atoms, list[_OneSidedAtom]]:
    """Return all atoms of a column, and a list of the atoms that occur on one input only."""
    own = [arrays.sorted_finite_values(side[:, column]) for side in (rows, rows_prime)]
    atoms = atoms_of(np.sort(np.concatenate(own)), grain, least)
    # Rounding may have moved the other side's values next to the atom. Therefore that side must
    # have no value within three times the width of the atom.
    width = atoms.highs - atoms.lows
    low, high = atoms.lows - width, atoms.highs + width
    k, k_prime = (np.searchsorted(v, high, side="right") - np.searchsorted(v, low) for v in own)
    one_sided = []
    for sign, mine, other in ((1, k, k_prime), (-1, k_prime, k)):
        for j in np.flatnonzero((mine >= (least or _MIN_ONE_SIDED_COUNT)) & (other == 0)):
            one_sided.append(
                _OneSidedAtom(column, atoms.lows[j], atoms.highs[j], sign, int(mine[j]))
            )
    return atoms, one_sided


def _score_one_sided_rows(
    rows: Array, rows_prime: Array, grains: Sequence[Tolerance]
) -> Iterator[AtRows]:
    """Yield the score of rows of floats that occur repeatedly on one input and never on the other.

    Continuous noise in several columns does not repeat, even after rounding. A row repeats if its
    noise comes from a fixed list, or if no noise was added to it.
    """
    if rows.dtype.kind != "f" or rows_prime.dtype.kind != "f":
        return
    if any(grain.bits == 0 for grain in grains):
        # Columns without rounding naturally repeat.
        return
    sides = rows, rows_prime
    ways = sides, sides[::-1]
    atoms_of_ways = [_keep_one_sided(*_repeated_rows(mine), other, grains) for mine, other in ways]
    codes = np.concatenate(atoms_of_ways)
    if codes.size:
        signs = np.repeat([1, -1], [atoms.size for atoms in atoms_of_ways])
        order = np.argsort(codes)
        yield AtRows(codes[order], signs[order])


def _repeated_rows(rows: Array) -> tuple[Array, Words]:
    """Return the distinct rows that occur at least twice, and their hashes.

    At most 4,096 rows are returned: the most frequent ones. Each row has an entry that does not
    occur in any other distinct row.
    """
    codes = row_hashes(rows)
    kinds, places, times = np.unique(codes, return_index=True, return_counts=True)
    # On a grid, equal values occur in many different rows, and rounding may move them. Here one
    # value must belong to a single distinct row.
    again = times > 1
    if not again.any():
        return rows[:0], kinds[:0]
    again[again] = _flag_rows_with_unshared_entry(rows[places[again]], times[again], rows)
    most_repeated = np.flatnonzero(again)[
        np.argsort(-times[again], kind="stable")[:_MAX_REPEATED_ROWS]
    ]
    finite = np.isfinite(rows[places[most_repeated]]).all(axis=1)
    return rows[places[most_repeated][finite]], kinds[most_repeated][finite]


def _flag_rows_with_unshared_entry(distinct_rows: Array, times: Array, rows: Array) -> Array:
    """Return a bool for each distinct row: True if an entry occurs in no other distinct row.

    Args:
        distinct_rows: the distinct rows.
        times: number of occurrences of each distinct row in `rows`.
        rows: all rows.
    """
    own = np.zeros(len(distinct_rows), np.bool_)
    for column in range(rows.shape[1]):
        values, counts = np.unique(rows[:, column], return_counts=True)
        place = np.searchsorted(values, distinct_rows[:, column]).clip(max=values.size - 1)
        own |= counts[place] == times
    return own


def _keep_one_sided(rows: Array, codes: Words, others: Array, grains: Sequence[Tolerance]) -> Words:
    """Return the hashes of the rows that are not near any row of the other input.

    Two rows are near if every entry differs by rounding at most. Rows are compared in full only if
    their first entries are near.

    Args:
        rows: rows of one input.
        codes: hash of each of these rows.
        others: all rows of the other input.
        grains: possible change of each column by rounding.
    """
    if not codes.size:
        return codes
    others = others[np.argsort(others[:, 0], kind="stable")]
    first = others[:, 0].astype(np.float64)
    atoms_kept = []
    for row, code in zip(rows.astype(np.float64), codes, strict=True):
        near = np.array(
            [float(grain.tolerances(value)) for grain, value in zip(grains, row, strict=True)]
        )
        low, high = np.searchsorted(first, [row[0] - near[0], row[0] + near[0]])
        some = others[low : high + 1].astype(np.float64)
        if not (np.abs(some - row) <= near).all(axis=1).any():
            atoms_kept.append(code)
    return np.array(atoms_kept, np.uint64)


def _one_score_of_one_sided_atoms(
    rows: Array, rows_prime: Array, grains: Sequence[Tolerance]
) -> Iterator[AtAtoms]:
    """Yield one score of the atoms (frequent values) that occur on one input only.

    The score uses the 16 most frequent of these atoms on x, and the 16 most frequent on x'.
    """
    sides = take_head_rows(rows), take_head_rows(rows_prime)
    lists = [
        _atoms_and_one_sided(*sides, i, grains[i])[1] for i in _likely_atom_columns(sides, grains)
    ]
    atoms = sorted(itertools.chain(*lists), key=lambda atom: -atom.times)
    if atoms:
        yield _make_atom_score(_first_atoms_of_side(atoms, 1) + _first_atoms_of_side(atoms, -1))


def _first_atoms_of_side(atoms: Sequence[_OneSidedAtom], sign: int) -> list[_OneSidedAtom]:
    """Return the first atoms of one input, at most 16. The sign is 1 for x and -1 for x'."""
    return [atom for atom in atoms if atom.sign == sign][:_MAX_ONE_SIDED_ATOMS]


def _make_atom_score(atoms: Sequence[_OneSidedAtom]) -> AtAtoms:
    entries, lows, highs, signs, _ = map(np.array, zip(*atoms, strict=True))
    return AtAtoms(entries, lows, highs, signs)


@np.errstate(over="ignore", invalid="ignore")
def rare_values_event(
    outputs: Array, outputs_prime: Array, goal: Goal, luck: float = _LUCK_PROBABILITY
) -> Choice | None:
    """Choose an event: the output has one of the rare values that occur on only one input.

    Such a value occurs a few times among the pilot outputs (the first draws) on one input, and
    never on the other input. Half of the pilot would be too small to find such a value, and also
    too small to test it. Therefore the function uses the whole pilot both to find values and to
    test them. If very many different values repeat, some of them occur on only one input by chance.
    In this case, the function leaves out each value that is about as frequent as its two neighbours
    among the sorted values.

    Args:
        outputs: all pilot outputs on x, shape `(size, ...)`.
        outputs_prime: all pilot outputs on x', shape `(size', ...)`.
        goal: the number of draws that will be counted, and the delta and confidence of the bound.
        luck: largest accepted probability that a value occurs on only one input by chance.

    Returns:
        The chosen event with its direction, or None if the pilot does not show such a value.
    """
    rows = read_both_sides(outputs, outputs_prime)
    if rows is None:
        return None
    grains = column_tolerances(*rows)
    columns = enumerate(grains)
    columns_of_atoms = [
        _atoms_and_one_sided(*rows, i, grain, _MIN_RARE_COUNT) for i, grain in columns
    ]
    repeated = [atoms for atoms, _ in columns_of_atoms]
    is_grid = sum(atoms.counts.size for atoms in repeated) > _MAX_REPEATED_VALUES
    if is_grid:
        # Values on a grid naturally repeat, about as often as the neighbouring values.
        repeated = [_spike_and_dip_atoms(*rows, i, grain) for i, grain in enumerate(grains)]
    counts = np.concatenate([atoms.counts for atoms in repeated])
    sure: list[_OneSidedAtom] = []
    for atom in itertools.chain(*(some for _, some in columns_of_atoms)):
        # Only equally frequent values can be one-sided by the same chance; if there are few values,
        # all of them count.
        often = np.count_nonzero(counts >= atom.times) if is_grid else counts.size
        is_rare = often < min(luck * 2.0 ** min(atom.times, 60), _MAX_REPEATED_VALUES + 1)
        if is_rare and atom.low in repeated[atom.entry].lows:
            sure.append(atom)
    sizes = len(rows[0]), len(rows[1])
    options = [_choose_own_values(sure, side, sizes, goal) for side in (0, 1)]
    choice = max((option for option in options if option), key=merit_of, default=None)
    if choice is None or not is_grid:
        return choice
    # By chance, each of these values may hide this many rows of the other side.
    own = sum(atom.sign == (1 if choice.direction == "x" else -1) for atom in sure)
    doubt = math.log(_MAX_REPEATED_VALUES / luck) * own
    hits = max(choice.counts.k, choice.counts.k_prime)
    return replace(choice, merit=min(choice.merit, math.log(hits / doubt)))


def _spike_and_dip_atoms(rows: Array, rows_prime: Array, column: int, grain: Tolerance) -> Atoms:
    """Return the atoms of a column whose counts are far from the counts of neighbouring values.

    Each atom is compared with four neighbouring values: the next two below and the next two above.
    An atom is returned if its count is at least 4 times the median of the four counts. It is also
    returned if its count is at most a quarter of each of three of the four counts.
    """
    values = arrays.sorted_finite_values(rows[:, column], rows_prime[:, column])
    atoms = atoms_of(values, grain, 1)
    counts, padded = atoms.counts, np.pad(atoms.counts, 2)
    near = np.sort([padded[first : first + counts.size] for first in (0, 1, 3, 4)], axis=0)
    is_odd = counts >= 0.5 * _ODD_COUNT_RATIO * (near[1] + near[2])
    is_odd |= _ODD_COUNT_RATIO * counts <= near[1]
    is_odd &= counts >= _MIN_RARE_COUNT
    return Atoms(atoms.lows[is_odd], atoms.highs[is_odd], counts[is_odd])


def _choose_own_values(
    atoms: Sequence[_OneSidedAtom], side: int, sizes: tuple[int, int], goal: Goal
) -> Choice | None:
    """Return the event that an output has a value which occurs on one given input only.

    Args:
        atoms: values that occur on x only, and values that occur on x' only.
        side: the input, 0 for x and 1 for x'.
        sizes: number of pilot outputs on x and on x'.
        goal: number of counted trials, and delta and confidence of the bound.

    Returns:
        The event, or None if no value qualifies.
    """
    frequent = _first_atoms_of_side(atoms, 1 - 2 * side)
    if not frequent:
        return None
    score, hits = _make_atom_score(frequent), min(sum(atom.times for atom in frequent), sizes[side])
    # By hypothesis the other side cannot produce the value: its pilot count of 0 is taken as exact.
    merit = float(goal.predict(hits, sizes[side], 0, _UNLIMITED_PILOT_SIZE, 0.5))
    counts = Counts(hits, sizes[side], 0, sizes[1 - side])
    if side == 0:
        return Choice(Above(score, SHARE), "x", merit, counts)
    return Choice(Above(score, -SHARE, "below"), "x_prime", merit, counts.swapped())


def _find_rare_part(
    parts: Parts, i: int, columns: tuple[Floats, Floats], goal: Goal
) -> Choice | None:
    """Return the event that part `i` of an output has a rare value, or None.

    If the part is a flag, such as "the key exists", the event is that the flag is 1, or that it
    is 0.
    """
    part, sides = parts.select([i]), [side[:, [i]] for side in columns]
    rare_values = rare_values_event(sides[0], sides[1], goal, _PRESENCE_LUCK_PROBABILITY)
    if rare_values is None:
        return None
    own = sides[0 if rare_values.direction == "x" else 1]
    event = replace(rare_values.event, score=PartsScore(part, rare_values.event.score))
    if part.parts[0].is_flag:
        is_set = bool((own[rare_values.event(own)] > SHARE).any())
        event = Above(PartsScore(part, Coordinate(0)), SHARE, "above" if is_set else "below")
    return replace(rare_values, event=event)
