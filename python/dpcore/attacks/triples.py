"""Scores from the joint distribution of two or three columns (entries of the output).

Each column, and each pair of columns, may have the same distribution on the two inputs x and x'.
Three columns together may still reveal the input. Examples are the sum of three numbers modulo 3,
and the sign of a product. The scores here are log-likelihood ratios from a table with one cell for
each combination of values. The module also finds a box (a product of three intervals) that contains
outputs of one input only.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from ..errors import invalid
from ..events.event import Above
from ..records import Array, Counts, Floats, Ints
from . import arrays
from .arrays import Merged, Places, read_both_sides, read_numbers
from .attack import Choice, Goal
from .bins import SHARE, place_between
from .grains import bin_boundary_indices, column_tolerance
from .ratios import to_fixed_point, weigh_bins
from .residues import residues_of

_MAX_VALUES: Final = 4
"""Largest number of values of a column for which each value has its own code. A table of three
columns then has at most 64 cells."""
_MODULI: Final = (2, 3)
"""Moduli of residues, for columns of whole numbers with more than `_MAX_VALUES` values."""
_MAX_COLUMNS: Final = 32
_MAX_FEATURES: Final = 64
_HEAD_ROWS: Final = 2**11
"""Number of outputs per input from which the codes are made."""
_MOMENT_WORK: Final = 2**29
"""Limit of the work for joint moments: the cube of the number of features, times the number of
outputs. The number of outputs is between the two limits in _MOMENT_ROWS."""
_MOMENT_ROWS: Final = (2**11, 2**16)
_STANDARD_ERRORS: Final = 5.5
"""Number of standard errors by which a moment must differ between x and x'. If 40,000 moments do
not differ, chance gives such a difference in one of 600 pilots."""
_MIN_SHARE_BETWEEN: Final = 0.02
"""Least share of numbers between 0 and the centre. Below this share, only the sign of the number is
read, and not the sign of its difference from the centre."""
_BOX_COLUMNS: Final = (3, 8)
"""Smallest and largest number of columns for which empty boxes are searched."""
_BOX_ROWS: Final = (2**11, 2**16)
"""Least number of outputs per input for the search of boxes, and largest number that is read."""
_EDGE_ROWS: Final = 2**14
"""Number of outputs per input from which the bins of windows are made."""
_WINDOW_ROWS: Final = 14.0
"""Average number of outputs per input in a window, which is two bins wide in three columns."""
_MAX_WINDOWS: Final = 4
_MAX_BOX_SHARE: Final = 0.0625
"""Largest share of the outputs in a box. Other scores find larger boxes."""
_BOX_ROUNDS: Final = 3
_TRIMMED_ROWS: Final = 2
"""Number of outputs that each round of the search except the last removes at both interval ends."""
_EMPTY_SIDE_WEIGHT: Final = 8.0
"""One output of the input that is rare in the box weighs as much as this many other outputs."""
_MARGIN_GAPS: Final = 5.0
"""Distance by which a face of the box is moved inwards, in mean distances between outputs."""
_LUCKY_ROWS: Final = 35
"""Number of outputs of one input, in a box without outputs of the other input, that chance
explains. With equal distributions on x and x' and 8 columns, it was at most 36 in 95 of 100 pilots
of 65,536 outputs."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CellRatios(Merged, word="CellRatios"):
    """Score of an output: a number from a table, with two or three entries as indices.

    Each entry is converted to a code, and the codes are the indices into the table. The code of an
    entry is its residue modulo m, or the number of given limits (cuts) that are at most the entry.
    The code of NaN is the last index. If codes are residues, the last index is also the code of a
    number that is not an integer.

    Args:
        entries: indices of the output's entries that the score reads, counted from 0, shape
            `(read,)`.
        moduli: modulus m for each of these entries, shape `(read,)`. 0 means that the code is the
            number of cuts that are at most the entry.
        cuts: limits for each of these entries, shape `(read, cuts)`. Unused places contain NaN.
        weights: the table of scores. It has one dimension for each entry, and all dimensions have
            the same length.

    Raises:
        ValueError: if the shapes do not match, an index or modulus is negative, or a weight is not
            finite.

    Source:
        Neyman and Pearson (1933), on the likelihood ratio.

    Example:
        >>> score = CellRatios([0, 2], [2, 0], [[np.nan], [0.5]], [[1, 2, 0], [3, 4, 0], [0] * 3])
        >>> score(np.array([[4.0, 9.0, 0.0], [7.0, 9.0, 1.0], [7.0, 9.0, np.nan]])).tolist()
        [1.0, 4.0, 0.0]
        >>> print(score)
        log-likelihood ratio of the cells of entries 0 and 2
    """

    entries: Ints
    moduli: Ints
    cuts: Floats
    weights: Floats

    cost = 100
    """Approximate time to compute the score of one output, in nanoseconds."""

    def __post_init__(self) -> None:
        """Make the arrays read-only and check that their shapes match."""
        arrays.freeze_arrays(self, "entries", "moduli")
        read, weights = self.entries.size, self.weights
        for name, numbers in (("entries", self.entries), ("moduli", self.moduli)):
            if numbers.min(initial=0) < 0:
                raise invalid(name, "at least 0", numbers)
        if self.cuts.ndim != 2 or len(self.cuts) != read:
            raise invalid("cuts", f"one row for each of {read} entries", self.cuts.shape)
        least = max(self.cuts.shape[1] + 2, int(self.moduli.max(initial=0)) + 1)
        is_cube = read > 0 and weights.ndim == read and len({*weights.shape}) == 1
        if not is_cube or len(weights) < least or not np.isfinite(weights).all():
            raise invalid("weights", f"finite, {read} dimensions of {least} or more", weights.shape)

    def __call__(self, outputs: Array) -> Floats:
        """Return the score of each output, shape `(size,)`. A score is never NaN."""
        rows = read_numbers(outputs, min_columns=self.entries.max() + 1)
        scores = np.empty(len(rows))
        kinds = list(zip(self.entries, self.moduli, self.cuts, strict=True))
        for part in arrays.chunk_slices(rows):
            codes = [
                _codes_of(rows[part, entry], int(modulus), cuts, len(self.weights))
                for entry, modulus, cuts in kinds
            ]
            scores[part] = self.weights[tuple(codes)]
        return scores

    @property
    def sentences(self) -> tuple[str, str] | None:
        """Two texts for a report if the table describes a product of intervals, otherwise None.

        The first text describes outputs in the product of intervals. The second text describes all
        other outputs.
        """
        if np.count_nonzero(self.weights) != 1 or self.moduli.any() or self.cuts.shape[1] != 2:
            return None
        ends = zip(self.entries, self.cuts, strict=True)
        text = ", ".join(f"entry {i} in [{low:.3g}, {high:.3g})" for i, (low, high) in ends)
        return text, f"not: {text}"

    def __str__(self) -> str:
        """Return a description of the score in one line, for the report of an audit."""
        if self.sentences is not None:
            return self.sentences[0]
        *first, last = map(str, self.entries)
        text = f"entries {', '.join(first)} and {last}"
        if (self.moduli == self.moduli[0]).all() and self.moduli[0]:
            return f"log-likelihood ratio of {text} modulo {self.moduli[0]}"
        return f"log-likelihood ratio of the cells of {text}"


def _codes_of(column: Array, modulus: int, cuts: Sequence[float] | Floats, radix: int) -> Places:
    """Return the code of each value of a column (see `CellRatios`).

    Values without a code, such as NaN, get `radix - 1`.
    """
    if modulus:
        residues = residues_of(column, modulus)
        return np.where(residues < 0, radix - 1, residues)
    codes = np.zeros(len(column), np.intp)
    for cut in cuts:
        codes += column >= cut
    if column.dtype.kind == "f":
        codes[np.isnan(column)] = radix - 1
    return codes


class FewValued(NamedTuple):
    """Rule that converts the values of a column to a few small whole numbers (codes).

    Args:
        column: index of the column, counted from 0.
        modulus: if the modulus is not 0, the code of a value is its residue for this modulus. If
            the modulus is 0, `cuts` gives the code.
        cuts: limits that divide the real line. The code of a value is the number of limits that are
            not larger than the value.
    """

    column: int
    modulus: int
    cuts: tuple[float, ...]

    @property
    def has_two_codes(self) -> bool:
        """True if the rule has exactly one limit, so that only two codes exist."""
        return len(self.cuts) == 1


def _make_code_rules(columns: Sequence[Array], split_values: Floats) -> list[FewValued]:
    """Return rules that turn the values of each column into a few codes.

    A column can have several rules. The first rules of all columns come first.
    """
    ways: list[tuple[int, FewValued]] = []
    for i, centre in enumerate(split_values.tolist()):
        heads = [side[i, :_HEAD_ROWS] for side in columns]
        values = arrays.sorted_finite_values(*heads)
        gaps = bin_boundary_indices(values, column_tolerance(*heads))
        cuts = tuple(place_between(values[gaps], values[gaps + 1]).tolist())
        if len(cuts) < _MAX_VALUES:
            ways += [(0, FewValued(i, 0, cuts))] if cuts else []
            continue
        moduli = _MODULI if (residues_of(values, 2) >= 0).all() else ()
        signs = [centre]
        inside = gaps[(values[gaps] < 0.0) & (values[gaps + 1] >= 0.0)]
        if inside.size:
            between = abs(np.searchsorted(values, centre) - int(inside[0]) - 1) / values.size
            signs = [0.0, centre] if between >= _MIN_SHARE_BETWEEN else [0.0]
        read = [FewValued(i, modulus, ()) for modulus in moduli]
        read += [FewValued(i, 0, (sign,)) for sign in signs]
        ways += enumerate(read)
    return [way for _, way in sorted(ways, key=lambda ranked: ranked[0])]


def best_pair_and_triple(columns: Sequence[Array], centres: Floats) -> list[tuple[FewValued, ...]]:
    """Find the two columns, and the three columns, whose dependence differs most between x and x'.

    Args:
        columns: pilot outputs (first draws) on x and on x', each of shape `(columns, size)`.
        centres: for each column, a value that divides its numbers into small and large ones, shape
            `(columns,)`.

    Returns:
        At most one group of two columns and one group of three columns. Each group is a tuple of
        rules. A rule names a column and converts its values to a few codes. The list is empty if
        chance explains all differences.
    """
    if not 2 <= len(centres) <= _MAX_COLUMNS:
        return []
    ways, features, owners = _make_code_rules(columns, centres), [], [-1]
    radix = max(_MAX_VALUES, *_MODULI) + 1
    for number, way in enumerate(ways):
        own = [_codes_of(side[way.column], way.modulus, way.cuts, radix) for side in columns]
        counts = np.bincount(np.concatenate(own), minlength=radix)
        codes = np.argsort(-counts, kind="stable")[1 : np.count_nonzero(counts)]
        if len(owners) + codes.size > _MAX_FEATURES:
            break
        features += [[side == code for side in own] for code in codes]
        owners += [number] * codes.size
    if len(owners) < 3:
        return []
    most = int(np.clip(_MOMENT_WORK // len(owners) ** 3, *_MOMENT_ROWS))
    sides = [np.array(side, np.float32)[:, :most] for side in zip(*features, strict=True)]
    # Moments are taken around the means: features that depend on the input separately have no joint
    # moment.
    sides = [side - side.mean(axis=1, keepdims=True) for side in sides]
    sides = [np.concatenate([np.ones_like(side[:1]), side]) for side in sides]
    places = np.array([-1, *(ways[number].column for number in owners[1:])])
    evidence = np.abs(_triple_moment_gap_z_scores(sides, places))
    groups = []
    # The first feature is constant: moments with it are moments of pairs.
    for first, stop in ((0, 1), (1, len(places))):
        part = evidence[first:stop]
        if part.size and part.max() > _STANDARD_ERRORS:
            place = np.unravel_index(int(np.argmax(part)), part.shape)
            used = [owners[place[0] + first], owners[place[1]], owners[place[2]]]
            groups.append(tuple(ways[number] for number in used if number >= 0))
    return groups


def _triple_moment_gap_z_scores(sides: Sequence[Array], own: Ints) -> Array:
    """Return how much the moments E[f g h] on x and on x' differ, in standard errors.

    Here f, g and h are any three features of the outputs.

    Args:
        sides: features of the outputs on x and on x', each of shape `(features, size)`.
        own: index of the column that each feature belongs to. The result is 0 if two of the three
            features belong to one column.

    Returns:
        Array of shape `(features, features, features)`, with 0 unless the indices increase.
    """
    count = len(own)
    peaks = np.max([np.abs(side).max(axis=1) for side in sides], axis=0)
    # Bernstein (1924): the possible contribution of a few outputs if a feature is rare.
    room = _STANDARD_ERRORS / (3.0 * min(side.shape[1] for side in sides))
    differ = own[:, np.newaxis] != own
    evidence = np.zeros((count, count, count), np.float32)
    for i in range(count - 2):
        rest = slice(i + 1, None)
        means, errors = [], []
        for side in sides:
            # In single precision, as in `Covariances`.
            product, size = side[rest] * side[i], side.shape[1]
            means.append(product @ side[rest].T / size)
            square = (product * product) @ (side[rest] * side[rest]).T / size
            errors.append(np.maximum(square - means[-1] * means[-1], 1.0 / size) / size)
        noise = np.sqrt(errors[0] + errors[1])
        noise += room * peaks[i] * np.outer(peaks[rest], peaks[rest])
        differs = differ[rest, rest] & differ[i, rest] & differ[i, rest, np.newaxis]
        evidence[i, rest, rest] = np.triu(np.where(differs, (means[0] - means[1]) / noise, 0.0), 1)
    return evidence


def ratio_score(group: Sequence[FewValued], columns: Sequence[Array], entries: Ints) -> CellRatios:
    """Return a score that gives one number for each combination of codes in two or three columns.

    The number is the logarithm of a ratio: the probability of the combination on x, divided by its
    probability on x'. The ratio is estimated from the pilot outputs (first draws). A code is a
    small whole number.

    Args:
        group: rules that convert values to codes, one rule for each column.
        columns: pilot outputs on x and on x', each of shape `(columns, size)`.
        entries: for each column, the index of the output's entry in this column, shape
            `(columns,)`.
    """
    most = max(len(way.cuts) for way in group)
    radix = max(most + 2, *(way.modulus + 1 for way in group))
    shape = (radix,) * len(group)
    tables = []
    for side in columns:
        codes = [_codes_of(side[way.column], way.modulus, way.cuts, radix) for way in group]
        flat = np.ravel_multi_index(codes, shape)
        tables.append(np.bincount(flat, minlength=radix ** len(group))[np.newaxis].astype(float))
    sizes = [np.array([[side.shape[1]]]) for side in columns]
    smooth = weigh_bins(tables[0], tables[1], sizes[0], sizes[1], None)
    weights = to_fixed_point(smooth)
    cuts = np.array([[*way.cuts, *[np.nan] * (most - len(way.cuts))] for way in group])
    moduli = np.array([way.modulus for way in group])
    used = entries[[way.column for way in group]]
    return CellRatios(used, moduli, cuts, weights.reshape(shape))


def has_3_to_8_entries(outputs: Array) -> bool:
    """Return True if outputs have 3 to 8 entries. `choose_3_interval_event` requires this."""
    return _BOX_COLUMNS[0] <= math.prod(outputs.shape[1:]) <= _BOX_COLUMNS[1]


def choose_3_interval_event(outputs: Array, outputs_prime: Array, goal: Goal) -> Choice | None:
    """Choose the event "three entries lie in three intervals", which is rare on one input.

    The product of the three intervals is called a box. It contains many pilot outputs (first draws)
    on one input and few or no pilot outputs on the other input.

    Args:
        outputs: all pilot outputs on x, shape `(size, columns)`.
        outputs_prime: all pilot outputs on x', shape `(size', columns)`.
        goal: the number of draws that will be counted, and the delta and confidence of the bound.

    Returns:
        The event with its direction, or None if chance explains every box.
    """
    rows = read_both_sides(outputs, outputs_prime)
    if rows is None or not has_3_to_8_entries(rows[0]):
        return None
    sides = [np.ascontiguousarray(side[: _BOX_ROWS[1]].T, np.float64) for side in rows]
    sizes = [side.shape[1] for side in sides]
    if min(sizes) < _BOX_ROWS[0]:
        return None
    # By chance, the emptiest of very many boxes lacks about this many rows.
    boxes = [_grow_box(sides, *window) for window in _find_four_best_windows(sides)]
    boxes = [box for box in boxes if box.k > _LUCKY_ROWS]
    if not boxes:
        return None
    box = max(boxes, key=lambda each: each.k - _EMPTY_SIDE_WEIGHT * each.k_prime)
    doubt = math.ceil(math.sqrt(2.0 * box.k_prime * _LUCKY_ROWS) + _LUCKY_ROWS)
    n, n_prime = sizes[box.full], sizes[1 - box.full]
    merit = float(goal.predict(box.k, n, min(n_prime, box.k_prime + doubt), n_prime, 0.5))
    margin = min(0.25, _MARGIN_GAPS / box.k) * np.diff(box.ends, axis=1)
    weights = np.zeros((4, 4, 4))
    weights[1, 1, 1] = 1.0
    ends, moduli = box.ends + np.hstack([margin, -margin]), np.zeros(3, np.int64)
    score = CellRatios(np.array(box.columns), moduli, ends, weights)
    inside = [int(np.count_nonzero(score(side.T))) for side in sides]
    counts = Counts(inside[0], sizes[0], inside[1], sizes[1])
    return Choice(Above(score, SHARE), "x_prime" if box.full else "x", merit, counts)


class _Box(NamedTuple):
    """Box in three columns.

    Args:
        full: the input with more outputs in the box, 0 for x and 1 for x'.
        columns: indices of the three columns.
        ends: lower and upper end in each column, shape `(3, 2)`.
        k: number of outputs of the input `full` in the box.
        k_prime: number of outputs of the other input in the box.
    """

    full: int
    columns: list[int]
    ends: Floats
    k: float
    k_prime: int


def _find_four_best_windows(sides: Sequence[Floats]) -> list[_Box]:
    """Return the four windows that best separate the outputs on x and on x'.

    A window is a box in three columns that is two bins wide in each column. A good window contains
    many outputs on one input and few outputs on the other input.
    """
    bins = int(2.0 * (min(side.shape[1] for side in sides) / _WINDOW_ROWS) ** (1.0 / 3.0))
    heads = np.concatenate([side[:, :_EDGE_ROWS] for side in sides], axis=1)
    with np.errstate(invalid="ignore"):
        edges = np.quantile(heads, np.arange(1, bins) / bins, axis=1).T
    # Columns with few values have separate tables.
    usable = np.flatnonzero(np.isfinite(edges).all(axis=1) & (np.diff(edges) > 0).all(axis=1))
    codes = {i: [np.searchsorted(edges[i], side[i]) for side in sides] for i in usable.tolist()}
    edges, windows = (
        np.pad(edges, ((0, 0), (1, 1)), constant_values=((0, 0), (-np.inf, np.inf))),
        [],
    )
    for triple in map(list, itertools.combinations(codes, 3)):
        tables = []
        for number in (0, 1):
            i, j, k = (codes[column][number] for column in triple)
            table = np.bincount((i * bins + j) * bins + k, minlength=bins**3).reshape((bins,) * 3)
            table = table[1:] + table[:-1]
            table = table[:, 1:] + table[:, :-1]
            tables.append(table[:, :, 1:] + table[:, :, :-1])
        for full in (0, 1):
            gains = tables[full] - _EMPTY_SIDE_WEIGHT * tables[1 - full]
            place = np.array(np.unravel_index(int(np.argmax(gains)), gains.shape))
            ends = np.stack([edges[triple, place], edges[triple, place + 2]], axis=1)
            windows.append(_Box(full, triple, ends, float(gains.max()), 0))
    return sorted(windows, key=lambda window: -window.k)[:_MAX_WINDOWS]


def _grow_box(
    sides: Sequence[Floats], full: int, columns: list[int], ends: Floats, *_: Any
) -> _Box:
    """Enlarge a window to a box, one column at a time.

    In each column, the function chooses the interval with the largest gain. The gain is the number
    of outputs on the input `full`, minus 8 times the number of outputs on the other input.
    """
    own, k, k_prime = [sides[side][columns] for side in (full, 1 - full)], 0, 0
    for number in range(3 * _BOX_ROUNDS):
        i = number % 3
        rest = [j for j in range(3) if j != i]
        values = []
        for side in own:
            is_inside = (side[rest] >= ends[rest, :1]) & (side[rest] <= ends[rest, 1:])
            values.append(side[i, is_inside.all(axis=0)])
        pooled = np.concatenate(values)
        order = np.argsort(pooled, kind="stable")
        is_full = order < values[0].size
        totals = np.append(0.0, np.cumsum(np.where(is_full, 1.0, -_EMPTY_SIDE_WEIGHT)))
        last = int(np.argmax(totals - np.minimum.accumulate(totals)))
        first = int(np.argmin(totals[: last + 1]))
        if not 2 * _TRIMMED_ROWS < last - first < _MAX_BOX_SHARE * own[0].shape[1]:
            return _Box(full, columns, ends, 0, 0)
        # A run may extend beyond the true box; rows of the other side there would limit other
        # columns.
        trim = _TRIMMED_ROWS if number < 3 * (_BOX_ROUNDS - 1) else 0
        ends[i] = pooled[order[[first + trim, last - 1 - trim]]]
        k = int(np.count_nonzero(is_full[first:last]))
        k_prime = last - first - k
    return _Box(full, columns, ends, k, k_prime)
