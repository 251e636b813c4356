"""The float lattice attack: the lowest bits of a float may reveal the input.

A floating-point sum of input and noise lies on a lattice, that is, on the multiples of 2^-e for
some e. The lattice depends on the input. Suppose that the input is 1.0 and the output lies in
(-1/2, 1/2). The noise then lies in (-3/2, -1/2), and input and noise are multiples of 2^-53. Their
sum is exact in this range, and is also a multiple of 2^-53. If the input is 0.0, the output is
equal to the noise, and near 0 the noise can have bits finer than 2^-53. An output with such bits
cannot come from the input 1.0. The privacy loss is infinite for every scale of the noise. Other
inputs give other lattices in other intervals. The attack finds the lattices and the intervals in
the pilot (the first draws of an audit).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from .. import _core
from ..errors import choice, flat_list_to_floats, integer, invalid, real
from ..events.event import Score
from ..pairs.differences import group_columns
from ..records import Array, Flags, Floats, Ints, Pair, set_fields
from . import arrays
from .arrays import Merged, Places, read_numbers
from .attack import ScoreAttack

FINEST: Final = 1074
"""Every double is a multiple of 2^-1074."""
EVERY: Final = 1024
_FRACTION_MASK: Final = (1 << 52) - 1

_COARSEST_EXPONENT: Final = 1023
_CHUNK_NUMBERS: Final = 2**13
"""Number of array entries processed together. Their temporary arrays fit into the cache."""
_TRACE_STANDARD_ERRORS: Final = 5.0, 3.5
"""Least differences, in standard errors, between the shares of fine numbers on x and on x'. The
first is for any cut, the second for the few dozen cuts that floating-point arithmetic predicts."""
_MIN_TRACE_VARIANCE: Final = 4.0, 1.0
"""Least variance of the number of fine outputs. Below it, standard errors are unreliable."""
_UNEXPECTED_CUT_MARGIN: Final = 1.0
"""Margin by which the bound of a cut that arithmetic does not predict must exceed the others."""
_SIGNIFICAND_BITS: Final = 52, 23
"""Stored bits of the significand in double precision and in single precision."""
_LOW_ORDER_DEPTH: Final = 12
"""Low-order bits begin this many bits below the spread of the outputs. Over such a small step, a
density of real numbers hardly changes. Therefore it cannot explain a difference of these bits."""
_COUNT_STANDARD_ERRORS: Final = 2.0
"""Number of standard errors by which pilot counts are made less favourable than observed."""
_MAX_OCTAVES_BELOW: Final = 8
"""Smallest ends of windows: a typical distance from a centre, halved about this many times. Windows
with fewer than 2^4 expected numbers are left out."""
_MAX_OCTAVES_ABOVE: Final = 4
"""Largest ends of windows: a typical distance from a centre, doubled about this many times."""
_MAX_ENTRY_GROUPS: Final = 32
_MAX_TABULATED_ENTRIES: Final = 2**20
_MAX_TRIED_EXPONENTS: Final = 40
_CUTS_PER_SIDE: Final = 2
_MAX_LATTICE_SCORES: Final = 6

_Group = tuple[tuple[int, ...], tuple[float, ...]]
"""Group of entries that are treated in the same way, with their x_i and x'_i."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FinerThan(Merged, word="FinerThan"):
    """A score: 1 if an entry lies in an interval and is not a multiple of 2^-exponent, else 0.

    The condition on entry i is ``low <= y_i < high and y_i 2^exponent is not an integer``. The
    score is 1 if the condition holds for some (or for every) entry in `columns`. Zero is a multiple
    of every power of two. NaN and infinities do not lie in the interval. The score does not state
    on which of the two inputs the value 1 is more probable.

    Args:
        exponent: the number e in 2^-e, from -1023 to 1074. With e = 1074 the score is always 0,
            because every float64 is a multiple of 2^-1074.
        low: lower end of the interval, in the units of the outputs.
        high: upper end of the interval, above `low`.
        columns: indices (from 0, in C order) of the output entries that the score reads.
        quantifier: "some" if at least one entry in `columns` must satisfy the condition, "every" if
            all of these entries must satisfy it.

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a value is out of range, or `columns` is empty.

    Source:
        Mironov (2012), section 4, on the low bits of x + noise; Sterbenz' lemma (Goldberg, 1991,
        theorem 11) for the exact sum near zero.

    Example:
        >>> import numpy as np
        >>> score = FinerThan(53, -0.5, 0.5)
        >>> score(np.array([[0.25], [0.1 / 8], [0.7]])).tolist()
        [0.0, 1.0, 0.0]
        >>> print(score)
        entry 0 is in [-0.5, 0.5) and no multiple of 2^-53
    """

    exponent: int
    low: float
    high: float
    columns: tuple[int, ...] = (0,)
    quantifier: str = "some"

    def __post_init__(self) -> None:
        """Check the fields."""
        exponent = integer("exponent", self.exponent, -_COARSEST_EXPONENT, FINEST)
        low = real("low", self.low)
        high = real("high", self.high, low=low, open_low=True)
        columns = tuple(integer("columns", column, 0) for column in self.columns)
        if not columns or len(set(columns)) < len(columns):
            raise invalid("columns", "not empty and without repetition", self.columns)
        choice("quantifier", self.quantifier, ("some", "every"))
        set_fields(self, exponent=exponent, low=low, high=high, columns=columns)

    def __call__(self, outputs: Array) -> Floats:
        """Return the score of each output.

        Args:
            outputs: floats of any width, shape `(size, ...)`.

        Returns:
            0.0 or 1.0 for every output, shape `(size,)`.

        Raises:
            ValueError: if the outputs have too few entries.
        """
        values = np.require(read_entry_columns(outputs, self.columns), None, ("C", "A"))
        scores, window = np.zeros(len(values)), (self.low, self.high)
        _core.score_finer(values, self.exponent, window, self.quantifier == "every", scores)
        return scores

    def __str__(self) -> str:
        """Return a description of the score, as one line of a report."""
        which = {"every": "each", "some": "some"}[self.quantifier]
        several = f"{which} of {len(self.columns)} entries"
        name = f"entry {self.columns[0]}" if len(self.columns) == 1 else several
        window = f"[{self.low:.6g}, {self.high:.6g})"
        return f"{name} is in {window} and no multiple of 2^{-self.exponent}"

    @property
    def sentences(self) -> tuple[str, str]:
        """Two sentences for reports: the first if the score is 1, the second if the score is 0."""
        return str(self), f"not: {self}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LowBits(Merged, word="LowBits"):
    """A score of an output: a sum of log ratios, one for the lowest set bit of each entry y_i.

    Let 2^t_i be the value of the lowest set bit of y_i, so that y_i is an odd multiple of 2^t_i.
    The score is ``sum_i table[bin(y_i), class(t_i)]``. Bin b is the interval
    ``edges[b] <= y < edges[b + 1]``. A class is a range of exponents t. The table has one weight
    for each bin and class. To compute a weight, take the entries of pilot outputs (first draws) in
    the bin, and find the share of the class among these entries. The weight is ln(share on x /
    share on x'). Therefore the score depends only on low-order bits, and not on the probabilities
    of the bins. An entry outside all bins adds 0.

    Args:
        edges: ends of the bins in increasing order, in the units of the outputs, shape
            `(bins + 1,)`.
        exponents: exponents t that separate the classes, in increasing order, shape
            `(classes - 1,)`.
        table: weight of each bin and class, shape `(bins, classes)`.
        columns: indices (from 0, in C order) of the output entries that the score reads.

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if the shapes do not match.

    Source:
        Neyman and Pearson (1933), applied to the distribution of the lowest set bit given the bin.

    Example:
        >>> import numpy as np
        >>> score = LowBits(np.array([0.0, 1.0]), np.array([-1]), np.array([[2.0, -1.0]]), (0,))
        >>> score(np.array([[0.5], [0.25], [3.0]])).tolist()
        [-1.0, 2.0, 0.0]
    """

    edges: Floats
    exponents: Ints
    table: Floats
    columns: tuple[int, ...]

    def __post_init__(self) -> None:
        """Make the arrays read-only, and check their shapes."""
        set_fields(self, columns=tuple(integer("columns", column, 0) for column in self.columns))
        arrays.freeze_arrays(self)
        shape = (self.edges.size - 1, self.exponents.size + 1)
        if self.table.shape != shape:
            raise invalid("table", f"of shape {shape}", self.table.shape)

    def __call__(self, outputs: Array) -> Floats:
        """Return the score of each output.

        Args:
            outputs: floats of any width, shape `(size, ...)`.

        Returns:
            One number per output, shape `(size,)`.

        Raises:
            ValueError: if the outputs have too few entries.
        """
        total = np.zeros(len(outputs))
        # A border of zeros: an entry outside all bins adds 0.
        table = np.pad(self.table, ((1, 1), (0, 0))).ravel()
        place = classes_of_exponents(self.exponents)
        for part in arrays.chunk_slices(outputs, _CHUNK_NUMBERS, len(self.columns)):
            values = np.ascontiguousarray(read_entry_columns(outputs[part], self.columns).T)
            # A running sum adds column after column; the bits then do not depend on the chunks.
            total[part] += table[flat_cell_indices(values, self.edges, place)].cumsum(axis=0)[-1]
        return total

    def __str__(self) -> str:
        """Return a description of the score, as one line of a report."""
        size = len(self.columns)
        listed = ", ".join(map(str, self.columns[:4])) + (f", ... ({size})" if size > 4 else "")
        return f"log ratio of the lowest set bits of {'entry' if size == 1 else 'entries'} {listed}"


def read_entry_columns(outputs: Array, columns: tuple[int, ...]) -> Floats:
    """Return the entries with the indices `columns` of each output, shape `(size, columns)`."""
    flat = read_numbers(outputs, min_columns=max(columns) + 1)
    if columns != tuple(range(flat.shape[1])):
        flat = flat[:, list(columns)]
    return flat.astype(np.float64, copy=False)


def classes_of_exponents(class_limits: Ints) -> Places:
    """Return, for every exponent from -1074 to 1024, the index of the class that contains it.

    A class is a range of exponents. `class_limits` are the ends of the ranges, in increasing order.
    """
    return np.searchsorted(class_limits, np.arange(-FINEST, EVERY + 1), side="right")


def flat_cell_indices(values: Floats, edges: Floats, class_of_exponent: Places) -> Places:
    """Return, for each number, its index in a flat table of intervals and lowest set bits.

    The table has one row for each interval between `edges`. One more row is for numbers below all
    edges. Another row is for numbers above all edges and for NaN. The columns are classes of the
    exponent of the lowest set bit. `class_of_exponent` states the class of each exponent, as
    `classes_of_exponents` returns it.
    """
    bins = np.searchsorted(edges, values, side="right")
    bins *= int(class_of_exponent[-1]) + 1
    bins += class_of_exponent[lowest_bit(values) + FINEST]
    return bins


@dataclass(frozen=True, slots=True, repr=False)
class FloatLattice(ScoreAttack):
    """Attack on the low-order bits of floating-point outputs.

    Floating-point code rounds the sum of the input and the noise. In some intervals, all outputs on
    one input are multiples of 2^-e for a number e. Some outputs on the other input are not
    multiples of 2^-e. Such an output reveals the input.

    Entries of the output with equal (x_i, x'_i) form a group. For each group, the attack counts the
    entries of the pilot outputs (the first draws of an audit) in a table. The rows of the table are
    intervals. An end of an interval is 0, x_i, x'_i, a number at a distance of 2^j from one of
    these three numbers, or an extreme pilot entry. The columns of the table are the exponents of
    the lowest set bit. The attack tries the events "the entry is in this interval and is not a
    multiple of 2^-e". Each of the events with the largest expected bounds on epsilon gives one
    score. One more score is a sum of log ratios from the whole table. The attack does not use the
    probabilities of the intervals. It compares only the shares of the exponents within each
    interval. Therefore a positive bound shows a fault of the floating-point implementation, and not
    of the mechanism in exact arithmetic.

    If the shares do not differ clearly between x and x', the attack returns a score that is always
    0. The bound on epsilon is then 0. This happens for the snapping mechanism, for discrete
    mechanisms, and for mechanisms that round the noise exactly. The attack does not apply to
    outputs that are not floats. Values of float32 that are stored as float64 are treated like
    float32. If more than 32 groups exist, all entries are put into one group. All entries are also
    put into one group if an input does not have as many entries as an output. In this second case,
    if an output has at most 32 entries, each entry also gets a separate table.

    Source:
        Mironov (2012), "On significance of the least significant bits for differential privacy";
        Haney, Desfontaines, Hartman, Shrestha and Hay (2022), "Precision-based attacks and
        interval refining"; Sterbenz (1974), theorem 4.3.1, for the exact sum.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(1)
        >>> outputs = rng.laplace(0.0, 10.0, (2000, 1)), 1.0 + rng.laplace(0.0, 10.0, (2000, 1))
        >>> print(FloatLattice().candidates(*outputs, Pair([0.0], [1.0]))[0])
        entry 0 is in [-0.5, 0.5) and no multiple of 2^-53
    """

    def candidates(self, outputs: Array, outputs_prime: Array, pair: Pair) -> tuple[Score, ...]:
        """Return scores of the low-order bits of outputs, fitted on the pilot (the first draws).

        Args:
            outputs: pilot outputs on `x`, shape `(size, ...)`.
            outputs_prime: pilot outputs on `x_prime`, shape `(size', ...)`.
            pair: the inputs x and x'. The attack uses their entries if each input has as many
                entries as an output.

        Returns:
            The scores. The first score has the largest expected bound on epsilon. If the low-order
            bits do not differ between x and x', the tuple contains only one score, which is 0 for
            every output. The tuple is empty if the outputs are not floats or have no entries.
        """
        outputs, outputs_prime = np.asarray(outputs), np.asarray(outputs_prime)
        if outputs.dtype.kind != "f" or outputs_prime.dtype.kind != "f" or outputs.size == 0:
            return ()
        size = min(len(outputs), len(outputs_prime))
        scores: list[tuple[float, Score]] = []
        for group in _group_entries_by_input_values(outputs, pair):
            table = _count_by_interval_and_lowest_bit(outputs[:size], outputs_prime[:size], *group)
            scores += _epsilon_score_pairs(table)
        if not scores:
            return (FinerThan(FINEST, -1.0, 1.0),)
        scores.sort(key=lambda item: -item[0])
        return tuple(score for _, score in scores[:_MAX_LATTICE_SCORES])


class Table(NamedTuple):
    """Counts of float entries of pilot outputs (first draws), by interval and lowest set bit.

    The entries `columns` of each output are counted together. `counts` has shape
    `(2, bins, classes)`; the first axis is x and x'. A bin is an interval of values between two
    numbers in `edges`. A class is a range of exponents of the lowest set bit; `exponents` are the
    ends of these ranges. `ends` is the pair (x_i, x'_i), which is the same for all these entries.
    `ends` is empty if the inputs are unknown.
    """

    columns: tuple[int, ...]
    ends: tuple[float, ...]
    edges: Floats
    exponents: Ints
    counts: Ints


def _group_entries_by_input_values(outputs: Array, pair: Pair) -> Sequence[_Group]:
    """Return groups of entries, each with its (x_i, x'_i). A group shares one table of counts."""
    dim = outputs.size // len(outputs)
    x, x_prime = (_input_as_finite_vector(side, dim) for side in (pair.x, pair.x_prime))
    if x is None or x_prime is None:
        single = [(i,) for i in range(dim)] if 1 < dim <= _MAX_ENTRY_GROUPS else []
        return [(group, ()) for group in (tuple(range(dim)), *single)]
    groups = group_columns(x, x_prime)
    return groups if len(groups) <= _MAX_ENTRY_GROUPS else [(tuple(range(dim)), ())]


def _input_as_finite_vector(side: Any, dim: int) -> Floats | None:
    """Return an input as a vector of `dim` finite numbers, or None for other inputs."""
    side = flat_list_to_floats(side)
    if not isinstance(side, np.ndarray) or side.dtype.kind not in "iuf" or side.size != dim:
        return None
    values = side.astype(np.float64).ravel()
    return values if np.isfinite(values).all() else None


def _count_by_interval_and_lowest_bit(
    outputs: Array, outputs_prime: Array, columns: tuple[int, ...], ends: tuple[float, ...]
) -> Table:
    most = max(1, _MAX_TABULATED_ENTRIES // len(columns))
    sides = [read_entry_columns(side[:most], columns).ravel() for side in (outputs, outputs_prime)]
    pooled = np.concatenate(sides)
    finite = pooled[np.isfinite(pooled)]
    edges = _choose_edges(finite, (0.0, *ends))
    exponents = _choose_lowest_bit_exponents_to_try(lowest_bit(pooled), finite)
    shape = (edges.size + 1, exponents.size + 1)
    place, size = classes_of_exponents(exponents), shape[0] * shape[1]
    tables = [np.bincount(flat_cell_indices(side, edges, place), minlength=size) for side in sides]
    counts = np.reshape(tables, (2, *shape))
    return Table(columns, ends, edges, exponents, counts[:, 1:-1])


def _choose_edges(finite: Floats, centres: tuple[float, ...]) -> Floats:
    """Return ends of intervals: centres, centres plus or minus 2^j, and the pilot's extremes."""
    if finite.size == 0:
        return np.array([-1.0, 1.0])
    bounds = [np.array(centres)]
    for centre in centres:
        # The numbers are halved, so that no difference overflows.
        middle = float(np.median(np.abs(finite / 2.0 - centre / 2.0)))
        power = int(np.frexp(middle)[1]) + 1
        deep = int(np.clip(np.log2(finite.size / 2.0) - _MAX_OCTAVES_ABOVE, 3, _MAX_OCTAVES_BELOW))
        steps = np.ldexp(1.0, np.arange(power - deep, min(power + _MAX_OCTAVES_ABOVE, 1024)))
        with np.errstate(over="ignore"):
            bounds += [centre - steps, centre + steps]
    # The outermost windows end at the extremes of the pilot.
    bounds.append(np.array([finite.min(), np.nextafter(finite.max(), np.inf)]))
    edges = np.unique(np.concatenate(bounds))
    return np.asarray(edges[np.isfinite(edges)])


def _choose_lowest_bit_exponents_to_try(exponents: Ints, finite: Floats) -> Ints:
    """Return the exponents e that the attack tries in "the number is not a multiple of 2^e".

    The value 2^e is far below the spread (half the width of the middle 98 % of the numbers). In
    enough numbers the exponent of the lowest set bit is below e, and in enough numbers it is at
    least e.
    """
    ends = np.quantile(finite, (0.01, 0.99), method="nearest") if finite.size else np.zeros(2)
    spread = float(ends[1] / 2.0 - ends[0] / 2.0)
    if spread <= 0.0:
        return np.empty(0, dtype=np.int64)
    kinds, times = np.unique(exponents, return_counts=True)
    below = np.cumsum(times) - times
    worth = (below >= 4) & (exponents.size - below >= max(4, exponents.size // 1000))
    kinds = kinds[worth & (kinds < int(np.frexp(spread)[1]) - _LOW_ORDER_DEPTH)]
    places = np.linspace(0, kinds.size - 1, min(kinds.size, _MAX_TRIED_EXPONENTS))
    return kinds[places.astype(np.int64)]


def _epsilon_score_pairs(table: Table) -> list[tuple[float, Score]]:
    """Return scores for a group of entries, each with its expected bound on epsilon.

    A cut is an event "in this interval and not a multiple of 2^-e". The result contains the best
    cuts in favour of x and in favour of x'. It also contains the score of the whole table, unless
    the best cut contains outputs on one input only.
    """
    below = table.counts.cumsum(axis=2)[:, :, :-1].astype(np.float64)
    if below.shape[2] == 0:
        return []
    first, last = np.triu_indices(table.edges.size, 1)
    whole = table.counts.sum(axis=2)[:, :, np.newaxis].astype(np.float64)
    fine, inside = _sum_windows(below, first, last), _sum_windows(whole, first, last)
    trace, variance = _off_lattice_z_scores_and_variances(below, whole, first, last)
    # The window itself may favour a side through the real-number law: subtract this from the merit.
    place = np.abs(np.log((inside[0] + 1.0) / (inside[1] + 1.0)))
    cuts: list[tuple[float, Score]] = []
    unclean: dict[float, bool] = {}
    for side, sign in ((0, 1.0), (1, -1.0)):
        merit = _log_ratio_lower_limit(fine[side], fine[1 - side]) - place
        likely = _predict_cuts_from_rounding(table, first, last, side)
        _set_weak_cuts_minus_inf(merit, likely, sign * trace, variance)
        windows, promises = np.argmax(merit, axis=0), np.max(merit, axis=0)
        for cut in np.argsort(-promises, kind="stable")[:_CUTS_PER_SIDE]:
            if promises[cut] == -np.inf:
                break
            window = windows[cut]
            unclean[float(promises[cut])] = bool(fine[1 - side, window, cut] > 0.0)
            bins = np.arange(first[window], last[window])
            if not likely[window, cut]:
                # End bins without a fine number on this side only make the cut worse.
                bins = bins[below[side, bins, cut] > 0.0]
            low, high = float(table.edges[bins[0]]), float(table.edges[bins[-1] + 1])
            for quantifier in ("some", "every")[: len(table.columns)]:
                exponent = -int(table.exponents[cut])
                score = FinerThan(exponent, low, high, table.columns, quantifier)
                cuts.append((float(promises[cut]), score))
    if cuts and unclean[max(unclean)]:
        cuts.append((max(unclean), _lowest_bit_log_ratio_score(table)))
    return cuts


def _set_weak_cuts_minus_inf(merit: Floats, likely: Flags, trace: Floats, variance: Floats) -> None:
    """Set the expected bound of cuts without significant evidence to minus infinity, in place."""
    is_visible = (
        likely & (trace >= _TRACE_STANDARD_ERRORS[1]) & (variance >= _MIN_TRACE_VARIANCE[1])
    )
    best = np.max(merit, initial=-np.inf, where=is_visible)
    clear = (trace >= _TRACE_STANDARD_ERRORS[0]) & (variance >= _MIN_TRACE_VARIANCE[0])
    merit[~(is_visible | (clear & (merit > best + _UNEXPECTED_CUT_MARGIN)))] = -np.inf


def _predict_cuts_from_rounding(table: Table, first: Places, last: Places, side: int) -> Flags:
    """Find the cuts that floating-point arithmetic predicts, shape `(windows, exponents)`.

    A cut is an event "in this interval and not a multiple of 2^-e". Let w be the number of stored
    bits of the significand. Let b be the input on which the outputs are multiples, and a the other
    input. Noise of magnitude above 2^j is a multiple of 2^(j - w). If the sum of b and this noise
    has a magnitude below 2^j, the sum is also a multiple of 2^(j - w). On the input a, noise below
    2^j gives an output within 2^j of a, and such noise can have finer bits.
    """
    is_expected = np.zeros((first.size, table.exponents.size), dtype=np.bool_)
    if len(table.ends) < 2:
        return is_expected
    fine, coarse = table.ends[side], table.ends[1 - side]
    edges = table.edges
    powers = np.unique(np.frexp(edges[edges > 0.0])[1] - 1)
    for power in powers.tolist():
        reach = float(np.ldexp(1.0, power))
        low, high = max(-reach, fine - reach), min(reach, fine + reach)
        for start, stop in ((low, min(high, coarse - reach)), (max(low, coarse + reach), high)):
            window = (edges[first] == start) & (edges[last] == stop)
            for width in _SIGNIFICAND_BITS:
                is_expected |= window[:, np.newaxis] & (table.exponents == power - width)
    return is_expected


def _sum_windows(counts: Floats, first: Places, last: Places) -> Floats:
    """Sum counts over the bins of every window (from bin `first` to bin `last - 1`).

    The bins are on the second-to-last axis of `counts`.
    """
    sums = np.insert(counts.cumsum(axis=-2), 0, 0.0, axis=-2)
    return np.asarray(sums[..., last, :] - sums[..., first, :])


def _log_ratio_lower_limit(hits: Floats, hits_prime: Floats) -> Floats:
    """Return a rough lower confidence limit for the log ratio of two Poisson rates."""
    low = np.maximum(hits - _COUNT_STANDARD_ERRORS * np.sqrt(hits) + 1.0, 1e-3)
    return np.log(low / (hits_prime + _COUNT_STANDARD_ERRORS * np.sqrt(hits_prime) + 3.7))


def _off_lattice_z_scores_and_variances(
    below: Floats, whole: Floats, first: Places, last: Places
) -> tuple[Floats, Floats]:
    """Test whether fine numbers are more frequent on x than on x'; return z-scores and variances.

    A fine number is one that is not a multiple of 2^-e. The z-score is the excess of fine numbers
    on x over the expected number, in standard errors. Each bin is a 2 x 2 table (x or x', fine or
    not) with fixed margins. Therefore the result does not depend on the probabilities of the bins.

    Source:
        Mantel and Haenszel (1959), with their correction of one half.
    """
    both, size = below.sum(axis=0), np.maximum(whole.sum(axis=0), 2.0)
    excess = below[0] - both * whole[0] / size
    spread = whole[0] * whole[1] * both * (size - both) / (size**2 * (size - 1.0))
    total, variance = _sum_windows(excess, first, last), _sum_windows(spread, first, last)
    trace = np.sign(total) * np.maximum(np.abs(total) - 0.5, 0.0)
    return trace / np.sqrt(np.maximum(variance, 1.0)), variance


def _lowest_bit_log_ratio_score(table: Table) -> LowBits:
    """Return the whole table as a score: the log ratios of the shares of classes within each bin.

    The log ratios are shrunk towards 0 by two standard errors. Then many bins have weight 0, and
    neighbouring bins with equal weights are joined.
    """
    held = table.counts + 0.5
    share = np.log(held) - np.log(held.sum(axis=2, keepdims=True))
    ratio = share[0] - share[1]
    error = _COUNT_STANDARD_ERRORS * np.sqrt((1.0 / held).sum(axis=0))
    weights = np.sign(ratio) * np.maximum(np.abs(ratio) - error, 0.0)
    new = np.append(True, (weights[1:] != weights[:-1]).any(axis=1))
    edges = table.edges[np.append(new, True)]
    return LowBits(edges, table.exponents, weights[new], table.columns)


def lowest_bit(values: Floats) -> Ints:
    """Return the exponent t of the lowest set bit of each number y: y / 2^t is an odd integer.

    Args:
        values: the numbers y, a C-contiguous float64 array.

    Returns:
        Integers from -1074 to 1023. For zero, NaN and infinities, the result is 1024.

    Example:
        >>> import numpy as np
        >>> lowest_bit(np.array([0.75, 1.0, 5e-324, -12.0, 0.0])).tolist()
        [-2, 0, -1074, 2, 1024]
    """
    bits = values.view(np.int64)
    power = (bits >> 52) & 0x7FF
    odd = bits & _FRACTION_MASK
    # The leading 1 of a normal number is not stored; a subnormal number has no leading 1.
    odd |= (power > 0).astype(np.int64) << 52
    odd &= -odd
    # The isolated bit is a power of two; a conversion to double shows its exponent.
    exponents = (odd.astype(np.float64).view(np.int64) >> 52) - 1023
    exponents += np.maximum(power, 1) - 1075
    exponents[(odd == 0) | (power == 0x7FF)] = EVERY
    return exponents
