"""Histograms of discrete outputs: the log ratio of the counts of each cell on x and on x'.

Numpy arrays of any type become rows of letters. A letter is a small whole number, and a row has one
letter for each column. Whole numbers, characters of strings, and bytes are letters already. A real
number is converted to a letter: the index of the atom (value of positive probability) that it
equals, or of the bin that contains it. Rounding does not change this letter. A cell is a row of
letters.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Final, NamedTuple

import numpy as np

from ..errors import choice, instance, integer, invalid, mistyped, real
from ..events.event import Score
from ..records import Array, Flags, Floats, Ints, Pair, Record, set_fields
from ..suggestions import explain_argument_errors
from . import arrays
from .arrays import Merged, read_numbers
from .atoms import Atoms, atoms_of, loose_of, take_head_rows
from .attack import ScoreAttack
from .bins import place_between
from .grains import Tolerance, bin_boundary_indices, column_tolerance, column_tolerances
from .objects import as_hashable

_OBJECT_LETTERS: Final[dict[str, tuple[type, Any]]] = {
    "text": (str, ""),
    "bytes": (bytes, b""),
    "real": (Real, 0),
}
"""For each kind of letters, the class of objects that have them, and a value for other objects."""
_LETTER_KINDS: Final = ("whole", "words", "text", "bytes", "real")
_MAX_UNCUT_RANGE: Final = 2**16
"""If the range of whole numbers in a column is longer, they are cut into words of 16 bits."""
_SPECIAL_LETTERS: Final = 3
"""Number of special letters of a column of floats: NaN, minus infinity and plus infinity."""
_MIN_BINS_WITH_TAILS: Final = 4
Grid = tuple[float, float]
"""Width of a grid, and the magnitude of floats up to which this width is used (see `Outcomes`)."""
_GRID_TOLERANCES: Final = 4096.0
_GRID_OFFSET: Final = 0.618033988749895
"""Offset of the grid for floats inside objects, so that simple fractions are not at boundaries."""
_PSEUDO_COUNTS: Final = (1.0, 32.0)
"""Pseudo-counts that are added to the count of every cell on x, and also on x'.

With 1, a cell that occurs a few times on x and never on x' can have the highest score. With 32, a
rare cell does not have the highest score by chance. The audit uses the pseudo-count that gives the
better event.
"""
_MAX_CELLS: Final = 2**16
_MIN_OUTPUTS_PER_CELL: Final = 8
"""Least number of pilot outputs per cell for which a histogram applies."""
_MIN_OUTPUTS_PER_BINNED_CELL: Final = 64
"""Least number of pilot outputs per cell with two or more bins. Wider bins hold more outputs."""
_ALWAYS_ALLOWED_CELLS: Final = 16
"""A histogram with at most this number of cells always applies."""
_BIN_NUMBERS: Final = (1, 2, 4)
_SCREENED_OUTPUTS: Final = 2**14
_MAX_CELL_CODE: Final = 2**62


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LetterEncoder(Record, word="Letters"):
    """A rule that converts each output to a row of small whole numbers, here called letters.

    The argument `kind` states how a column of the output is converted:

    - "whole" for integers, bools and dates: a letter is the value minus the smallest value;
    - "words" for integers of a wide range: each integer gives four letters, with 16 bits each;
    - "text" and "bytes": each character gives one letter;
    - "real" for floats: a letter is the index of a frequent value, or of a bin of other values.

    Args:
        kind: "whole", "words", "text", "bytes" or "real".
        lows: smallest value of each column in the pilot outputs (first draws), shape `(columns,)`.
        sizes: number of possible letters of each column, shape `(columns,)`.
        edges: for floats, the ends of the intervals of the first column, then those of the second
            column, and so on.
        labels: letter of each interval, in the order of `edges`. A column with n edges has n + 1
            intervals.
        stops: for each column, the index in `edges` of the last edge of the column, plus 1.

    Raises:
        TypeError: if `kind` is not a string.
        ValueError: if `kind` is not one of the five names.
    """

    kind: str
    lows: Ints
    sizes: Ints
    edges: Floats
    labels: Ints
    stops: Ints

    def __post_init__(self) -> None:
        """Check `kind`, and make the arrays read-only."""
        choice("kind", self.kind, _LETTER_KINDS)
        arrays.freeze_arrays(self)

    @classmethod
    def from_discrete(cls, outputs: Array, outputs_prime: Array, kind: str) -> LetterEncoder:
        """Make the conversion rule for pilot outputs that are whole numbers, strings or bytes."""
        width = max(map(_entries_or_letters_per_output, (outputs, outputs_prime)))
        sides = [raw_columns(kind, side, width) for side in (outputs, outputs_prime)]
        # Plain ints: the difference of two int64 numbers may overflow.
        low = list(map(min, *(side.min(axis=0).tolist() for side in sides)))
        high = list(map(max, *(side.max(axis=0).tolist() for side in sides)))
        size = [last - first + 1 for first, last in zip(low, high, strict=True)]
        if max(size, default=0) > _MAX_UNCUT_RANGE and kind == "whole":
            return cls.from_discrete(outputs, outputs_prime, "words")
        none = np.empty(0, dtype=np.int64)
        return cls(kind, np.array(low), np.array(size), np.empty(0), none, none)

    @classmethod
    def of_real(cls, shown: Sequence[RealColumn], bins: int) -> LetterEncoder:
        """Make the conversion rule for columns of floats, with `bins` quantile bins per column.

        Each frequent value and each bin has an index. A float that equals a frequent value is
        converted to the index of this value. Any other float is converted to the index of its bin.
        """
        edges, labels, sizes = zip(*(column.make_intervals(bins) for column in shown), strict=True)
        stops = np.cumsum([part.size for part in edges])
        tables = np.array(sizes), np.concatenate(edges), np.concatenate(labels), stops
        return cls("real", np.zeros(len(shown), dtype=np.int64), *tables)

    def match_dtype(self, outputs: Array) -> tuple[Array, Flags | None]:
        """Convert outputs to the type that the pilot outputs (first draws) had.

        A single None or NaN among strings or integers changes the type of the whole array. The
        first result is the converted array. The second result is a bool for each output: True if
        the output cannot be converted. The second result is None if the outputs already had the
        right type.
        """
        outputs = np.asarray(outputs)
        if outputs.dtype == object:
            type_of_letters, other = _OBJECT_LETTERS.get(self.kind, (Integral, 0))
            fits = np.frompyfunc(lambda item: isinstance(item, type_of_letters), 1, 1)(
                outputs
            ).astype(bool)
            filled = np.where(fits, outputs, other)
            outputs = np.array(filled.tolist()).reshape(outputs.shape)
        elif self.kind in ("whole", "words") and outputs.dtype.kind == "f":
            fits = arrays.flag_integers_below_2_to_53(outputs)
            outputs = np.where(fits, outputs, 0.0).astype(np.int64)
        else:
            return outputs, None
        return outputs, ~fits.reshape(len(outputs), -1).all(axis=1)

    def iterate_blocks_as_numbers(self, outputs: Array) -> Iterator[tuple[slice, Array]]:
        """Divide outputs into blocks, and yield a slice and an array of numbers for each block.

        The slice selects the outputs of the block. The array has one row per output. From these
        numbers, the conversion rule makes the letters (small whole numbers).
        """
        width = self.sizes.size
        for part in arrays.chunk_slices(outputs, width=width):
            raw = raw_columns(self.kind, outputs[part], width)
            if raw.shape[1] != width:
                raise invalid("outputs", f"of {width} columns, as the pilot's", raw.shape)
            yield part, raw

    def extend(self, code: Ints, raw: Array, first: int, stop: int) -> Ints:
        """Append digits to a number (the code) of each row: one digit for each of some columns.

        The columns are those from `first` to `stop - 1`. The digit of a column is its letter: a
        small whole number to which the value in `raw` is converted. If a letter is outside of its
        range in the pilot (the first draws), the code becomes -1.
        """
        unknown = code < 0
        for column in range(first, stop):
            letter = self._letters_of_column(raw[:, column], column)
            size = int(self.sizes[column])
            # As an unsigned number, a letter below the range exceeds the range.
            unknown |= letter.view(np.uint64) >= size
            code = code * size + letter
        code[unknown] = -1
        return code

    def _letters_of_column(self, values: Array, column: int) -> Ints:
        if self.kind != "real":
            return values.astype(np.int64) - int(self.lows[column])
        first = int(self.stops[column - 1]) if column else 0
        edges = self.edges[first : self.stops[column]]
        values = np.ascontiguousarray(values, dtype=np.float64)
        letter = self.labels[first + column + np.searchsorted(edges, values, side="right")]
        odd = np.flatnonzero(~np.isfinite(values))
        kind = np.where(np.isnan(values[odd]), 0, np.where(values[odd] < 0.0, 1, 2))
        letter[odd] = self.sizes[column] - _SPECIAL_LETTERS + kind
        return letter


def whole_real_text_or_bytes_kind(outputs: Array) -> str | None:
    """Return the name of the rule that converts outputs of this dtype to rows of whole numbers.

    The result is "whole", "real", "text" or "bytes", or None if the outputs cannot be converted.
    """
    kinds = dict.fromkeys("biumM", "whole") | {"f": "real", "U": "text", "S": "bytes"}
    return kinds.get(outputs.dtype.kind)


def raw_columns(kind: str, outputs: Array, width: int) -> Array:
    """Read each output as a row of numbers. A score then converts them to small whole numbers.

    Args:
        kind: how the outputs are read: "whole", "words" (each integer gives four columns of 16
            bits), "text", "bytes" or "real".
        outputs: outputs, shape `(size, ...)`.
        width: number of columns if the outputs are strings. Shorter strings are filled up with 0.

    Returns:
        Array of shape `(size, columns)`. If a string is too long, all entries of its row are -1.

    Raises:
        TypeError: if outputs of this dtype cannot be read as `kind`.
    """
    kind_of_rows = whole_real_text_or_bytes_kind(outputs)
    allowed = {"real": ("real", "whole"), "words": ("whole",)}.get(kind, (kind,))
    if kind_of_rows not in allowed:
        named = {"real": "numbers", "text": "strings", "bytes": "byte strings"}
        raise mistyped("outputs", named.get(kind, "whole numbers"), outputs.dtype)
    if kind_of_rows in ("text", "bytes"):
        return _character_codes(outputs.reshape(len(outputs), -1), width)
    if outputs.dtype.kind in "mM":
        outputs = outputs.view(np.int64)
    rows = read_numbers(outputs)
    if rows.dtype == np.uint64 and kind != "real":
        # A letter is only a name: numbers from 2^63 on become negative.
        rows = rows.astype(np.int64)
    if kind != "words":
        return rows
    return np.ascontiguousarray(rows, dtype=np.int64).view(np.uint16)


def _character_codes(rows: Array, width: int) -> Array:
    code = rows.dtype.kind
    each = max(1, width // max(1, rows.shape[1]))
    fitted = np.ascontiguousarray(rows.astype(f"{code}{each}"))
    raw = fitted.view(np.uint32 if code == "U" else np.uint8).reshape(len(rows), -1)
    if rows.dtype.itemsize > fitted.dtype.itemsize:
        long = (fitted != rows).any(axis=1)
        raw = np.where(long[:, np.newaxis], np.int64(-1), raw.astype(np.int64))
    return raw


def _entries_or_letters_per_output(outputs: Array) -> int:
    size, letters = outputs.dtype.itemsize, {"U": 4, "S": 1}
    return outputs.size // max(1, len(outputs)) * (size // letters.get(outputs.dtype.kind, size))


class RealColumn(NamedTuple):
    """The values of one column of numeric pilot outputs, and the frequent values among them.

    Args:
        values: finite values in pilot outputs (first draws) on x and on x' together, in increasing
            order.
        atoms: the atoms (values of positive probability) among these values, each as an interval.
        grain: the distance by which rounding may move a value of the column.
    """

    values: Floats
    atoms: Atoms
    grain: Tolerance

    @property
    def has_non_atoms(self) -> bool:
        """True if some values of this column are not among its frequent values."""
        return int(self.atoms.counts.sum()) < self.values.size

    def non_atom_quantile_edges(self, bins: int) -> Floats:
        """Return the edges of quantile bins for the values of this column that are not frequent."""
        gaps = bin_boundary_indices(self.values, self.grain)
        ranks = np.cumsum(loose_of(self.values, self.atoms))
        if bins < 2 or not gaps.size or not self.has_non_atoms:
            return np.empty(0)
        at = np.searchsorted(ranks[gaps], ranks[-1] * _shares_below_edges(bins))
        chosen = gaps[np.unique(at[at < gaps.size])]
        return np.asarray(place_between(self.values[chosen], self.values[chosen + 1]))

    def make_intervals(self, bins: int) -> tuple[Floats, Ints, int]:
        """Divide the range of this column into intervals, and give an index to each interval.

        Each frequent value is an interval. The other values are divided into quantile bins, and a
        frequent value inside a bin divides the bin into several intervals. Return three results.
        The first is the edges of the intervals. The second is the index of each interval; all
        pieces of a bin have the same index. The third is the number of different indices, plus
        three for NaN and the two infinities.
        """
        cuts, atoms = self.non_atom_quantile_edges(bins), self.atoms
        # An interval starts at `low` and ends just after `high`.
        ends = np.nextafter(atoms.highs, np.inf)
        edges = np.sort(np.concatenate([cuts, atoms.lows, ends]))
        starts = np.concatenate([[-np.inf], edges])
        labels = np.searchsorted(cuts, starts, side="right")
        place = np.searchsorted(atoms.lows, starts, side="right")
        inside = starts < np.append(-np.inf, ends)[place]
        labels = np.where(inside, cuts.size + place, labels)
        return edges, labels.astype(np.int64), cuts.size + 1 + atoms.lows.size + _SPECIAL_LETTERS


def _shares_below_edges(bins: int) -> Floats:
    """Return the share of the values below each edge of the bins.

    The bins have equal shares. If there are at least 4 bins, each tail has two additional edges. If
    a mechanism adds noise in the wrong place, most of the evidence is in the tails.
    """
    tails = np.array([4.0, 16.0]) if bins >= _MIN_BINS_WITH_TAILS else np.empty(0)
    tails = 1.0 / (tails * bins)
    return np.sort(np.concatenate([np.arange(1, bins) / bins, tails, 1.0 - tails]))


def atoms_by_column(rows: Array, rows_prime: Array) -> list[RealColumn]:
    """Find the frequent values of each column of pilot outputs (first draws) on x and on x'."""
    sides = take_head_rows(rows), take_head_rows(rows_prime)
    columns = []
    for *both, grain in zip(*(side.T for side in sides), column_tolerances(*sides), strict=True):
        values = arrays.sorted_finite_values(*both)
        columns.append(RealColumn(values, atoms_of(values, grain), grain))
    return columns


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Outcomes(Merged, word="Outcomes"):
    """A score for outputs that are Python objects, read from a table of objects and scores.

    The score of an object is the log ratio ln(share on x / share on x'). The shares are computed
    from the pilot outputs (first draws). An output that is not in the table has score 0.

    Args:
        keys: the objects of the table. They are hashable, and floats inside them are rounded to a
            grid.
        values: score of each object of the table.
        unit: distance of two neighbouring numbers on the grid. 0 means that floats are not rounded.
        middle: if the absolute value of a float is above `middle`, the distance is `unit` times a
            power of two that grows with the float. If `middle` is 0, the distance is `unit` for all
            floats.

    Raises:
        TypeError: if a key cannot be hashed or `unit` is not a number.
        ValueError: if `keys` and `values` differ in length, or `unit` is negative.
    """

    keys: tuple[Hashable, ...]
    values: Floats
    unit: float = 0.0
    middle: float = 0.0

    cost = 2000

    def __post_init__(self) -> None:
        """Make the tables read-only, and check that their lengths match."""
        grid = real("unit", self.unit, low=0.0), real("middle", self.middle, low=0.0)
        keys = tuple(_make_key(key, grid) for key in self.keys)
        set_fields(self, keys=keys, unit=grid[0], middle=grid[1])
        arrays.freeze_arrays(self)
        if self.values.shape != (len(keys),):
            raise invalid("values", f"one for each of {len(keys)} keys", self.values.shape)

    def __call__(self, outputs: Array) -> Floats:
        """Return the scores of outputs, shape `(size,)`."""
        table = dict(zip(self.keys, self.values.tolist(), strict=True))
        keys = make_keys(outputs, (self.unit, self.middle))
        return np.array([table.get(key, 0.0) for key in keys], np.float64)

    def __str__(self) -> str:
        """Return a description of the score, as one line of a report."""
        return f"log ratio of the outcome (one of {len(self.keys)})"


def items_of(outputs: Array) -> list[Any]:
    """Return a list of the outputs as Python objects. A row of numbers becomes a tuple."""
    rows = outputs.reshape(len(outputs), -1).tolist() if outputs.ndim > 1 else outputs.tolist()
    return list(map(tuple, rows)) if outputs.ndim > 1 else rows


def make_keys(outputs: Array, grid: Grid = (0.0, 0.0)) -> Iterable[Hashable]:
    """Return a hashable object for each output, such as a tuple for a list.

    Floats inside the outputs are rounded to a grid. The argument `grid` is a pair of numbers: the
    width of the grid, and the magnitude above which this width grows.

    Raises:
        TypeError: if an output cannot be converted to a hashable object.
    """
    return (_make_key(item, grid) for item in items_of(np.asarray(outputs)))


def _make_key(item: Any, grid: Grid) -> Hashable:
    """Return an object in hashable form, with its floats rounded to a grid."""
    item = item.item() if isinstance(item, np.generic) else item
    if isinstance(item, complex):
        item = (item.real, item.imag)
    if isinstance(item, float):
        # NaN is not equal to itself, and JSON has no infinities: their names replace them.
        return _round_to_grid(item, grid) if math.isfinite(item) else str(item)
    if isinstance(item, tuple):
        return tuple(_make_key(part, grid) for part in item)
    # Lists, arrays, mappings and sets become hashable. The resulting tuples may hold floats.
    plain = as_hashable(item)
    return _make_key(plain, grid) if isinstance(plain, tuple) else plain


def _round_to_grid(value: float, grid: Grid) -> float:
    unit, middle = grid
    if abs(value) > middle > 0.0:
        unit *= 2.0 ** math.frexp(abs(value) / middle)[1]
    return math.floor(value / unit + _GRID_OFFSET) * unit if unit else value


def choose_rounding_grid(*sides: Array) -> Grid:
    """Return the grid to which floats inside outputs are rounded, as a tuple of two numbers.

    The first number is the width of the grid: 4,096 times the rounding tolerance at the median
    magnitude of the floats. The second number is this median magnitude. For larger floats, the
    width is larger. Both numbers are 0 if the floats were never rounded.
    """
    numbers = [list(_nested_floats(items_of(side))) for side in sides]
    grain = column_tolerance(*(np.array(values, np.float64) for values in numbers))
    return (0.0, 0.0) if grain.exact else (_GRID_TOLERANCES * grain.typical_tolerance, grain.middle)


def _nested_floats(items: Iterable[Any]) -> Iterator[float]:
    for item in items:
        if isinstance(item, (tuple, list)):
            yield from _nested_floats(item)
        elif isinstance(item, (float, complex, np.floating, np.complexfloating)):
            parts = complex(item)
            yield from (parts.real, parts.imag) if parts.imag else (parts.real,)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Cells(Merged, word="Cells"):
    """A score of an output: the log ratio ``ln((k + a)/(n + a)) - ln((k' + a)/(n' + a))``.

    Each output is converted to a row of small whole numbers, its cell. Suppose that k of n pilot
    outputs (first draws) on x, and k' of n' pilot outputs on x', are in this cell. The constant a
    moves the log ratio of rare cells towards 0. If the cell did not occur in the pilot, the score
    is 0.

    A long row does not fit into one 64-bit code. Therefore the columns are divided into groups, and
    the numbers of a group are the digits of one code below 2^62. In each group except the first
    one, the first digit of the code stands for all columns before the group.

    Args:
        letters: the rule that converts outputs to rows of small whole numbers.
        stops: for each group of columns, the index of the first column after the group.
        ends: for each group, the index in `ladders` of the last code of the group, plus 1.
        ladders: codes that occur in the pilot. The codes of the first group come first, in
            increasing order. Then the codes of the second group follow, and so on. For each group
            except the first one, the first digit of a code is the index of the code that the same
            row has in the previous group.
        values: score of each code of the last group. A code of the last group stands for a whole
            row.

    Raises:
        TypeError: if `letters` is not a `LetterEncoder`.
        ValueError: if the tables do not match each other.
    """

    letters: LetterEncoder
    stops: tuple[int, ...]
    ends: tuple[int, ...]
    ladders: Ints
    values: Floats

    cost = 200

    def __post_init__(self) -> None:
        """Make the tables read-only, and check that their lengths match."""
        instance("letters", self.letters, LetterEncoder)
        set_fields(self, stops=tuple(map(int, self.stops)), ends=tuple(map(int, self.ends)))
        arrays.freeze_arrays(self)
        starts = (0, *self.ends)
        if len(self.ends) != len(self.stops) or starts[-1] != self.ladders.size:
            raise invalid("ends", f"one for each of {len(self.stops)} stops", self.ends)
        if not all(first < end for first, end in itertools.pairwise(starts)):
            raise invalid("ends", "increasing", self.ends)
        if self.values.shape != (starts[-1] - starts[-2],):
            raise invalid("values", "one for each cell of the last ladder", self.values.shape)

    def __call__(self, outputs: Array) -> Floats:
        """Return the scores of outputs, shape `(size,)`."""
        outputs, strange = self.letters.match_dtype(outputs)
        scores = np.zeros(len(outputs))
        ladders = [self.ladders[a:b] for a, b in itertools.pairwise((0, *self.ends))]
        for part, raw in self.letters.iterate_blocks_as_numbers(outputs):
            code, first = np.zeros(len(raw), dtype=np.int64), 0
            for stop, ladder in zip(self.stops, ladders, strict=True):
                code = _positions_or_minus_one(ladder, self.letters.extend(code, raw, first, stop))
                first = stop
            scores[part] = np.where(code >= 0, self.values[code], 0.0)
        if strange is not None:
            scores[strange] = 0.0
        return scores

    def __str__(self) -> str:
        """Return a description of the score, as one line of a report."""
        return f"log ratio of the output's cell (one of {self.values.size})"


@explain_argument_errors
@dataclass(frozen=True, slots=True, repr=False)
class Histogram(ScoreAttack):
    """Attack that compares the counts of each distinct output on x and on x'.

    Each distinct output is a cell of the histogram. The score of an output is ln(share of its cell
    on x / share of its cell on x') in the pilot (the first draws of an audit). The event is "the
    score is above (or below) a threshold". For discrete outputs and a large pilot, the score is
    close to the log-likelihood ratio. In this case, the best threshold gives the best event.

    Outputs may be floats, integers, bools, strings, other hashable objects, or rows of such values.
    Floats that differ only by rounding errors count as one value. If floats of a column do not
    repeat, the attack divides them into quantile bins. A float that repeats is not put into a bin:
    it remains a separate value. For rows, a cell is a combination of values and bins, such as two
    flags and the bin of a float.

    The attack applies if a cell has on average at least 8 pilot outputs. With two or more quantile
    bins, the average must be at least 64. The attack also applies if at most 16 cells exist. If
    more than 65,536 cells exist, the attack keeps only the 65,536 most frequent cells.

    Args:
        bins: number of quantile bins for those floats of a column that do not repeat. If `bins` is
            4 or more, each tail has two more bins. None means that the attack tries 1, 2 and 4
            bins.

    Raises:
        TypeError: if `bins` is not an integer.
        ValueError: if `bins` is below 1.

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
        """Check that `bins` is None or an integer of at least 1."""
        if self.bins is not None:
            object.__setattr__(self, "bins", integer("bins", self.bins, 1))

    def candidates(self, outputs: Array, outputs_prime: Array, pair: Pair) -> tuple[Score, ...]:
        """Return scores that compare the counts of distinct pilot outputs on x and on x'.

        Args:
            outputs: pilot outputs (first draws) on `x`, shape `(size, ...)`.
            outputs_prime: pilot outputs on `x_prime`, shape `(size', ...)`.
            pair: the inputs x and x'. The attack does not use them.

        Returns:
            At most two scores for each number of bins that the attack tries. The tuple is empty if
            the pilot outputs have too many distinct values.

        Raises:
            TypeError: if outputs are objects that cannot be hashed.
        """
        sides = np.asarray(outputs), np.asarray(outputs_prime)
        if sides[0].size == 0 or sides[1].size == 0 or sides[0].shape[1:] != sides[1].shape[1:]:
            return ()
        kinds = {whole_real_text_or_bytes_kind(side) for side in sides}
        if "real" in kinds and kinds <= {"real", "whole"}:
            return self._tabulate_floats(*sides)
        if None in kinds or len(kinds) > 1:
            return _tabulate_objects(*sides)
        letters = LetterEncoder.from_discrete(*sides, str(kinds.pop()))
        return _score_unique_rows(sides, letters, _MIN_OUTPUTS_PER_CELL)

    def _tabulate_floats(self, *sides: Array) -> tuple[Score, ...]:
        rows = tuple(map(read_numbers, sides))
        shown = atoms_by_column(*rows)
        scores: list[Score] = []
        loose = any(column.has_non_atoms for column in shown)
        for bins in _BIN_NUMBERS if self.bins is None else (self.bins,):
            full = _MIN_OUTPUTS_PER_BINNED_CELL if bins > 1 else _MIN_OUTPUTS_PER_CELL
            made = _score_unique_rows(rows, LetterEncoder.of_real(shown, bins), full)
            # If no value repeats, a single bin is the only cell, and its score is constant.
            scores += [cells for cells in made if not (loose and cells.values.size == 1)]
            if not loose:
                break
        return tuple(scores)


def _positions_or_minus_one(ordered: Ints, values: Ints) -> Ints:
    """Return the position of each number in an increasing array, or -1 for other numbers."""
    place = np.searchsorted(ordered, values)
    place[place == ordered.size] = 0
    return np.where(ordered[place] == values, place, -1)


def _score_unique_rows(
    sides: tuple[Array, ...], letters: LetterEncoder, full: int
) -> tuple[Cells, ...]:
    """Return scores of the cells (the distinct rows of letters) of the pilot outputs.

    There are at most two scores, with different shrinkage of rare cells. The tuple is empty if the
    number of cells is above 16 and above the number of outputs divided by `full`.
    """
    total = sum(map(len, sides))
    most = max(_ALWAYS_ALLOWED_CELLS, total / full)
    first = tuple(side[:_SCREENED_OUTPUTS] for side in sides)
    rows_seen = sum(map(len, first))
    # If `most` cells were equally likely, the first rows would show this many cells.
    if rows_seen < total and _cell_lookup_and_counts(first, letters)[2].shape[1] > most * -np.expm1(
        -rows_seen / most
    ):
        return ()
    stops, ladders, counts = _cell_lookup_and_counts(sides, letters)
    if counts.shape[1] > most:
        return ()
    ends = np.cumsum([ladder.size for ladder in ladders]).tolist()
    table = np.concatenate(ladders)
    tables = _ratios_by_shrinkage(counts, sides)
    return tuple(Cells(letters, stops, ends, table, values) for values in tables)


def _cell_lookup_and_counts(
    sides: tuple[Array, ...], letters: LetterEncoder
) -> tuple[tuple[int, ...], list[Ints], Ints]:
    """Return the fields `stops` and `ladders` of `Cells`, and the counts of the cells.

    The counts have shape `(2, cells)`, for x and x'.
    """
    codes = [np.zeros(len(side), dtype=np.int64) for side in sides]
    stops: list[int] = []
    ladders: list[Ints] = []
    columns, stop, n_keys = letters.sizes.size, 0, 1
    while True:
        first, radix = stop, n_keys
        while stop < columns and radix * int(letters.sizes[stop]) < _MAX_CELL_CODE:
            radix *= int(letters.sizes[stop])
            stop += 1
        for side, code in zip(sides, codes, strict=True):
            for part, raw in letters.iterate_blocks_as_numbers(side):
                code[part] = letters.extend(code[part], raw, first, stop)
        keys, counts = _most_frequent_codes_and_counts(codes)
        stops.append(stop)
        ladders.append(keys)
        if stop == columns:
            return tuple(stops), ladders, counts
        codes, n_keys = [_positions_or_minus_one(keys, code) for code in codes], keys.size


def _most_frequent_codes_and_counts(codes: list[Ints]) -> tuple[Ints, Ints]:
    """Return the 65,536 most frequent codes (or all codes), and their counts on x and x'."""
    keys, counts = arrays.count_values(*(code[code >= 0] for code in codes))
    if keys.size > _MAX_CELLS:
        frequent = np.sort(np.argsort(-counts.sum(axis=0), kind="stable")[:_MAX_CELLS])
        keys, counts = keys[frequent], counts[:, frequent]
    return keys, counts


def _ratios_by_shrinkage(counts: Ints, sides: tuple[Array, ...]) -> list[Floats]:
    """Return the log ratios of all cells, shrunk with two different constants.

    If the cells have the same order in both arrays, only the first array is returned.
    """
    n, n_prime = map(len, sides)
    cells = [
        np.log((counts[0] + a) / (n + a)) - np.log((counts[1] + a) / (n_prime + a))
        for a in _PSEUDO_COUNTS
    ]
    orders = [np.argsort(values, kind="stable") for values in cells]
    return cells[:1] if np.array_equal(orders[0], orders[1]) else cells


def _tabulate_objects(outputs: Array, outputs_prime: Array) -> tuple[Score, ...]:
    sides = (outputs, outputs_prime)
    most = max(_ALWAYS_ALLOWED_CELLS, (len(outputs) + len(outputs_prime)) // _MIN_OUTPUTS_PER_CELL)
    # If the first outputs already have too many distinct values, the others are not compared.
    for size in (most, None):
        try:
            grid = choose_rounding_grid(*(side[:size] for side in sides))
            tallies = [Counter(make_keys(side[:size], grid)) for side in sides]
        except RecursionError:
            requirement = "objects that do not contain themselves"
            raise mistyped("outputs", requirement, outputs[0]) from None
        total = tallies[0] + tallies[1]
        if len(total) > most:
            return ()
    # The keys are sorted by frequency; keys of equal frequency stay in the order of their first
    # occurrence.
    keys = tuple(key for key, _ in total.most_common(_MAX_CELLS))
    counts = np.array([[tally[key] for key in keys] for tally in tallies], dtype=np.int64)
    return tuple(Outcomes(keys, values, *grid) for values in _ratios_by_shrinkage(counts, sides))
