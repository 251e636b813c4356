"""Privacy losses and divergences of all pairs of rows of a table of probabilities.

The table may be any object that returns the logarithms of a block of rows. Pairs are compared in
tiles. Each tile compares a block of rows with rows of the same block or of later blocks. Each pair
of rows is compared in both orders. The losses of all pairs are never in memory at the same time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from numbers import Rational
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import invalid, mistyped, numeric, real, show, tag_error, vector
from ..mechanisms.declarations import get_or_default
from ..packages import get_loaded_module, has_all
from ..pairs import L1, L2, Linf
from ..pairs.neighbours import (
    NORM_BALLS,
    SLACK,
    neighbour_of,
    neighbour_python_call,
    refuse_non_neighbours,
)
from ..progress import Progress
from ..records import Flags, Floats, Pair

_RowSpan = tuple[int, int]

_NEIGHBOUR_REQUIREMENT: Final = (
    "a relation of dpcore.pairs, a mask (booleans), or a list of pairs of row numbers"
)


_MAX_CACHED_ENTRIES: Final = 2**21
"""Largest number of table entries whose logarithms are kept: 16 MiB."""

_ROW_SUM_TOLERANCE: Final = {False: 1e-9, True: 1e-5}
"""Largest allowed difference of a row's sum from 1, for float64 (False) and float32 (True)."""

_SYMMETRY_TOLERANCE: Final = 1e-9
"""Relative difference of two distances that rounding can explain."""

_LOGARITHM_SLACK: Final = 1e-9
"""Relative error of logarithms that is larger than all their rounding errors."""

_MAX_QUOTIENT_BITS: Final = 1000
"""Largest difference in bits of two whole numbers whose quotient certainly fits in float64."""

_UNDERFLOW_PROBABILITY: Final = 1e-300
"""A positive probability below this suggests that other probabilities underflowed to 0."""

_LARGEST_EXPONENT: Final = 700.0
"""Largest exponent for which this module computes e to the power of the exponent."""

_MIN_BLOCK_ROWS, _MAX_BLOCK_ROWS = 64, 128
"""Limits of a block's number of rows. Pairs in a block are computed twice, so blocks are small."""

_MAX_READ_LOGARITHMS: Final = 2**20
"""Largest number of logarithms that are computed in one step, which needs 8 MiB."""

_MAX_TILE_PAIRS: Final = 2**18
"""Largest number of pairs in a tile."""

_TIMED_SECONDS: Final = 2.0
"""After this time, or after one block if that is earlier, the remaining duration is forecast."""


class Neighbours:
    """Neighbour relation on the inputs of a mechanism. Each input is one row of a table.

    Args:
        name: name of the relation in reports.
        among: function of two ranges of row numbers, each (start, stop). It returns a matrix that
            is True for each pair of neighbours. An entry for a pair of a row and itself is ignored.
            None means that any two different rows are neighbours.
    """

    def __init__(
        self, name: str, among: Callable[[_RowSpan, _RowSpan], Flags] | None = None
    ) -> None:
        self.name, self._among = name, among

    @property
    def has_all_row_pairs(self) -> bool:
        """True if any two different rows of the table are neighbours."""
        return self._among is None

    def among(self, rows: _RowSpan, others: _RowSpan) -> Flags | None:
        """Return a matrix that is True for each pair of neighbours from two ranges of rows.

        None means that all these pairs are neighbours.
        """
        overlap = rows[0] < others[1] and others[0] < rows[1]
        if self._among is None and not overlap:
            return None
        shape = rows[1] - rows[0], others[1] - others[0]
        is_pair = np.ones(shape, dtype=bool) if self._among is None else self._among(rows, others)
        if overlap:
            is_pair &= np.arange(*rows)[:, None] != np.arange(*others)
        return is_pair


def convert_to_row_neighbours(neighbour: Any, inputs: int) -> Neighbours:
    """Convert a user's neighbour relation to a `Neighbours` object for a table of `inputs` rows.

    Raises:
        TypeError: if `neighbour` has none of the types that `audit_table` accepts.
        ValueError: if a matrix or a pair does not match the table, or a matrix is not symmetric.
    """
    if neighbour is None:
        return Neighbours("all pairs of rows")
    first = neighbour[0] if isinstance(neighbour, tuple) and neighbour else neighbour
    is_norm = isinstance(first, str) and first in NORM_BALLS
    if is_norm or has_all(neighbour, "holds") or isinstance(neighbour, type):
        return _neighbours_by_row_numbers(neighbour)
    mask = numeric("neighbour", _NEIGHBOUR_REQUIREMENT, neighbour)
    if mask.dtype.kind == "b":
        return _neighbours_from_mask(mask, inputs)
    if mask.dtype.kind not in "iu":
        raise mistyped("neighbour", _NEIGHBOUR_REQUIREMENT, neighbour)
    if mask.ndim != 2 or mask.shape[1] != 2 or not len(mask):
        raise invalid("neighbour", _NEIGHBOUR_REQUIREMENT, neighbour)
    return _neighbours_from_pairs(mask.astype(np.int64), inputs)


def _neighbours_from_mask(mask: Flags, inputs: int) -> Neighbours:
    if mask.shape != (inputs, inputs):
        raise invalid("neighbour", f"a mask of shape {(inputs, inputs)}", mask.shape)
    for start in range(0, inputs, 256):
        rows = slice(start, start + 256)
        unlike = np.argwhere(mask[rows] != mask[:, rows].T)
        if unlike.size:
            row, column = unlike[0][0] + start, unlike[0][1]
            problem = f"one way only for rows {row} and {column}"
            raise _make_value_error("neighbour", "a symmetric mask", problem)
    off_diagonal = np.count_nonzero(mask) - np.count_nonzero(np.diagonal(mask))
    name = f"a mask of {off_diagonal // 2:,} pairs of rows"
    return Neighbours(name, lambda rows, others: mask[slice(*rows), slice(*others)].copy())


def _make_value_error(name: str, requirement: str, problem: str) -> ValueError:
    """Return a ValueError whose message describes the wrong value in words."""
    return tag_error(ValueError(f"{name} must be {requirement}, got {problem}"), name)


def _neighbours_from_pairs(pairs: npt.NDArray[np.int64], inputs: int) -> Neighbours:
    wrong = ((pairs < 0) | (pairs >= inputs)).any(axis=1) | (pairs[:, 0] == pairs[:, 1])
    if wrong.any():
        requirement = f"pairs of two different rows from 0 to {inputs - 1}"
        raise invalid("neighbour", requirement, tuple(pairs[np.argmax(wrong)].tolist()))
    both = np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0)

    def among(rows: _RowSpan, others: _RowSpan) -> Flags:
        is_pair = np.zeros((rows[1] - rows[0], others[1] - others[0]), dtype=bool)
        first, last = np.searchsorted(both[:, 0], rows)
        part = both[first:last]
        part = part[(part[:, 1] >= others[0]) & (part[:, 1] < others[1])]
        is_pair[part[:, 0] - rows[0], part[:, 1] - others[0]] = True
        return is_pair

    return Neighbours(f"{len(both) // 2:,} pairs of rows", among)


def _neighbours_by_row_numbers(pair_relation: Any) -> Neighbours:
    """Convert a relation of `dpcore.pairs` to a relation on row numbers.

    Each row number counts as an input with one entry.
    """
    pair_relation = neighbour_of(pair_relation)
    name = f"{neighbour_python_call(pair_relation)} on the numbers of rows"
    if type(pair_relation) in (L1, L2, Linf):
        most = pair_relation.most * (1.0 + SLACK)

        def are_near(rows: _RowSpan, others: _RowSpan) -> Flags:
            apart = np.abs(np.subtract.outer(np.arange(*rows), np.arange(*others)))
            return np.asarray(apart <= most)

        return Neighbours(name, are_near)

    def holds(row: int, other: int) -> bool:
        try:
            refuse_non_neighbours(Pair([row], [other]), pair_relation)
        except ValueError:
            return False
        return True

    def among(rows: _RowSpan, others: _RowSpan) -> Flags:
        return np.array([[holds(i, j) for j in range(*others)] for i in range(*rows)], dtype=bool)

    return Neighbours(name, among)


class ExactRows:
    """Table of probabilities as fractions, with the exact privacy losses of all pairs of its rows.

    Args:
        entries: fractions, decimals or whole numbers, array of shape `(inputs, outputs)`.

    Raises:
        TypeError: if an entry is not an exact number.
        ValueError: if an entry is negative or not finite, or the sum of a row is not exactly 1.
    """

    def __init__(self, entries: npt.NDArray[Any]) -> None:
        rows = enumerate(entries.tolist())
        self._rows = [[_read_fraction(row[j], i, j) for j in range(len(row))] for i, row in rows]
        for i, row in enumerate(self._rows):
            rest = sum(row, Fraction(-1))
            if rest:
                off = f"a sum of 1 {Decimal(rest.numerator) / Decimal(rest.denominator):+.4g}"
                requirement = "rows that add up to exactly 1"
                raise _make_value_error("table", requirement, f"{off} in row {i}")
        self.logs = logs = np.array([[_ln_fraction(entry) for entry in row] for row in self._rows])
        self.losses = np.zeros((len(logs), len(logs)))
        self.outputs = np.zeros(self.losses.shape, np.int64)
        # Logarithms exclude outputs that are surely smaller; fractions decide among the rest.
        slack = _LOGARITHM_SLACK * max(1.0, -float(logs[np.isfinite(logs)].min()))
        for i, j in np.argwhere(~np.eye(len(logs), dtype=bool)).tolist():
            with np.errstate(invalid="ignore"):
                gaps = logs[i] - logs[j]
            near = np.flatnonzero(gaps >= np.nanmax(gaps) - slack).tolist()
            self.outputs[i, j] = max(near, key=lambda y: self._ratio(i, j, y))
            self.losses[i, j] = _ln_fraction(self._ratio(i, j, self.outputs[i, j]))

    def _ratio(self, i: int, j: int, output: int) -> Any:
        """Return P(output | row i) / P(output | row j); math.inf if the denominator is 0."""
        p, q = self._rows[i][output], self._rows[j][output]
        return p / q if q else math.inf

    def excess(self, i: int, j: int, allowed_loss: Fraction) -> float:
        """Return the largest ln P(y|i) / P(y|j) over outputs y, minus `allowed_loss`, in nats."""
        ratio = self._ratio(i, j, self.outputs[i, j])
        if ratio == math.inf:
            return math.inf
        n, d = ratio.numerator, ratio.denominator
        with localcontext() as context:
            # The precision is so high that the logarithm of 1 + 1/d has 40 correct digits.
            context.prec = 40 + (n.bit_length() + d.bit_length()) // 3
            loss = (Decimal(n) / Decimal(d)).ln()
            excess = loss - Decimal(allowed_loss.numerator) / Decimal(allowed_loss.denominator)
            # A value that is too small for a double keeps its sign.
            return float(excess) or math.copysign(5e-324, excess) if excess else 0.0


def _read_fraction(entry: Any, row: int, column: int) -> Fraction:
    if not isinstance(entry, (Rational, Decimal)):
        requirement = "a matrix of real numbers, or one of fractions, decimals and whole numbers"
        raise mistyped("table", requirement, entry)
    if isinstance(entry, Decimal) and not entry.is_finite():
        problem = f"{entry} in row {row}, column {column}"
        raise _make_value_error("table", "finite numbers", problem)
    if entry < 0:
        problem = f"{show(entry)} in row {row}, column {column}"
        raise _make_value_error("table", "at least 0 (log=False)", problem)
    return Fraction(entry)


def _ln_fraction(ratio: Any) -> float:
    """Return the natural logarithm of a fraction of any size, of 0 or of math.inf."""
    if ratio in (0, math.inf):
        return math.inf if ratio else -math.inf
    n, d = ratio.numerator, ratio.denominator
    if abs(n - d) < d // 2:
        return math.log1p((n - d) / d)
    # A quotient of whole numbers is rounded only once, if it does not overflow.
    shift = n.bit_length() - d.bit_length()
    shift = shift if abs(shift) > _MAX_QUOTIENT_BITS else 0
    return math.log((n << max(-shift, 0)) / (d << max(shift, 0))) + shift * math.log(2.0)


class Table:
    """Table of probabilities: row x is the distribution of a mechanism's outputs on input x.

    The rows are read and checked in blocks. The table may have distances between inputs.

    Args:
        table: the table, in one of the forms that `audit_table` accepts.
        distances: matrix of distances between inputs, by which losses are divided, or None.
        log: True if the entries of the table are natural logarithms of probabilities.
        threads: number of threads of the computation.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if a shape does not match, or a distance is negative, not finite or not
            symmetric.
    """

    def __init__(self, table: Any, distances: Any, log: bool, threads: int) -> None:
        if isinstance(table, type):
            raise mistyped("table", "a matrix, or an object with shape and log_rows", table)
        self.threads = threads
        self.owner: Any = table if get_or_default(table, "log_rows") else None
        self.sparse = self.owner is None and _is_sparse(table)
        if self.sparse and log:
            raise invalid("log", "False for a sparse table, whose gaps are zeros", log)
        self.log = log or self.owner is not None
        if self.owner is None and not self.sparse:
            table = numeric("table", "a matrix of real numbers", table, "buifO")
            if table.dtype == object and table.ndim != 2:
                raise mistyped("table", "a matrix of real numbers", table)
        self._entries = table.tocsr() if self.sparse else table
        self.inputs, self.outputs = self._check_table_shape()
        self.exact: ExactRows | None = None
        if type(table) is np.ndarray and table.dtype == object:
            self.exact = ExactRows(table)
            if log:
                raise invalid("log", "False for a table of exact numbers", log)
            self._entries, self.log = self.exact.logs, True
        self.single = _is_below_float64(table)
        self.tiny = False
        self._checked = np.zeros(self.inputs, dtype=bool)
        self._kept: Floats | None = None
        self._distances = self._check_distance_matrix(distances)

    @property
    def has_all_row_logarithms_in_memory(self) -> bool:
        """True if the logarithms of all rows of this table are in memory."""
        entries = self._entries
        return self._kept is not None or (
            self.log
            and type(entries) is np.ndarray
            and entries.dtype == np.float64
            and entries.flags.c_contiguous
            and entries.flags.aligned
        )

    @property
    def has_input_distances(self) -> bool:
        """True if this table has distances between inputs, by which privacy losses are divided."""
        return bool(self._distances is not None or get_or_default(self.owner, "distance_rows"))

    def ulp_of_claimed_loss(self, claim: float | None) -> float:
        """Return the rounding error of `claim * (largest distance)`: one unit in the last place."""
        apart = self.distance_rows(0, self.inputs)
        return float(np.spacing((claim or 0.0) * (1.0 if apart is None else float(apart.max()))))

    def log_rows(self, start: int, stop: int) -> Floats:
        """Return the natural logarithms in rows `start` to `stop - 1` of this table."""
        if self._kept is None and self.inputs * self.outputs <= _MAX_CACHED_ENTRIES:
            self._kept = self._compute_log_rows(0, self.inputs)
        return self._compute_log_rows(start, stop) if self._kept is None else self._kept[start:stop]

    def rows(self, start: int, stop: int) -> Floats:
        """Return the probabilities in rows `start` to `stop - 1` of this table (a matrix)."""
        if self.log:
            return np.exp(self.log_rows(start, stop))
        return self._checked_rows(start, stop)

    def distance_rows(self, start: int, stop: int) -> Floats | None:
        """Return the distances of inputs `start` to `stop - 1` from all inputs.

        The shape is `(stop - start, inputs)`. None if the table has no distances.
        """
        if self._distances is not None:
            return self._distances[start:stop].astype(np.float64, copy=False)
        if not self.has_input_distances:
            return None
        rows = numeric("distance_rows", "a matrix", self.owner.distance_rows(start, stop))
        _require_shape("distance_rows", rows, (stop - start, self.inputs))
        _refuse_negative_or_infinite(rows, start)
        square = rows[:, start:stop]
        _check_symmetry(square, square.T, (start, start))
        return rows.astype(np.float64, copy=False)

    def loss_rows(self, start: int, stop: int) -> tuple[Floats, npt.NDArray[np.integer[Any]]]:
        """Return the privacy loss of rows `start` to `stop - 1` against every row of the table.

        The first result holds the largest ln P(y|i) / P(y|j) over the outputs y, shape
        `(stop - start, inputs)`. The second result holds an output y for which this value is
        reached. The table must consist of exact numbers, or be an object with its own method
        `loss_rows`.
        """
        if self.exact is not None:
            return self.exact.losses[start:stop], self.exact.outputs[start:stop]
        losses, outputs = (np.asarray(array) for array in self.owner.loss_rows(start, stop))
        shape = (stop - start, self.inputs)
        if losses.shape != shape or losses.dtype.kind != "f" or np.isnan(losses).any():
            requirement = f"floats of shape {shape}, none of them NaN"
            raise invalid("losses of loss_rows", requirement, losses)
        if outputs.shape != shape or outputs.dtype.kind not in "iu":
            raise invalid("outputs of loss_rows", f"whole numbers of shape {shape}", outputs)
        return losses.astype(np.float64, copy=False), outputs

    def _check_table_shape(self) -> tuple[int, int]:
        shape = tuple(self._entries.shape) if has_all(self._entries, "shape") else ()
        if len(shape) != 2 or shape[0] < 2 or shape[1] < 1:
            requirement = "a matrix of at least two rows (inputs) and one column (outputs)"
            raise invalid("table", requirement, shape)
        return int(shape[0]), int(shape[1])

    def _check_distance_matrix(self, distances: Any) -> npt.NDArray[Any] | None:
        if distances is None:
            return None
        matrix = numeric("distances", "a matrix of real numbers", distances)
        if matrix.shape != (self.inputs, self.inputs):
            requirement = f"of shape {(self.inputs, self.inputs)}, one row for each input"
            raise invalid("distances", requirement, matrix.shape)
        for start in range(0, self.inputs, 256):
            rows = slice(start, start + 256)
            _refuse_negative_or_infinite(matrix[rows], start)
            _check_symmetry(matrix[rows], matrix[:, rows].T, (start, 0))
        return matrix

    def _compute_log_rows(self, start: int, stop: int) -> Floats:
        rows = self._checked_rows(start, stop)
        if self.log:
            return rows
        out = np.empty_like(rows)
        _core.table_logarithms(rows, out, self.threads)
        return out

    def _checked_rows(self, start: int, stop: int) -> Floats:
        if self.owner is not None:
            part: Any = numeric("log_rows", "a matrix", self.owner.log_rows(start, stop))
            _require_shape("log_rows", part, (stop - start, self.outputs))
            self.single |= _is_below_float64(part)
        else:
            part = self._entries[start:stop]
            part = part.toarray() if self.sparse else part
        rows: Floats = np.require(part, np.float64, ("C", "A"))
        if not self._checked[start:stop].all():
            self._check_rows(rows, start)
            self._checked[start:stop] = True
        return rows

    def _check_rows(self, rows: Floats, start: int) -> None:
        """Raise an error if a row is not a probability distribution."""
        slack = _ROW_SUM_TOLERANCE[self.single]
        step = max(1, 2**18 // self.outputs)
        for first in range(0, len(rows), step):
            part = rows[first : first + step]
            # The comparison is written so that NaN raises an error, too.
            right = part <= slack if self.log else part >= 0.0
            if not right.all():
                row, column = np.argwhere(~right)[0]
                kind = "logarithms of at most 0" if self.log else "at least 0 (log=False)"
                problem = f"{part[row, column]} in row {start + first + row}, column {column}"
                raise _make_value_error("table", kind, problem)
            sums = (np.exp(part) if self.log else part).sum(axis=1)
            wrong = np.flatnonzero(~(np.abs(sums - 1.0) <= slack))
            if wrong.size:
                row, hint = wrong[0], "" if self.log else " (log=True takes logarithms)"
                problem = f"a sum of {sums[row]} in row {start + first + row}{hint}"
                raise _make_value_error("table", f"rows that add up to 1 within {slack:g}", problem)
            if not self.log:
                self.tiny |= bool(((part > 0.0) & (part < _UNDERFLOW_PROBABILITY)).any())


def _is_sparse(table: Any) -> bool:
    # If scipy.sparse was not imported, the table cannot be a sparse matrix.
    module = get_loaded_module("scipy.sparse")
    return module is not None and bool(module.issparse(table))


def _is_below_float64(array: Any) -> bool:
    """Return True for a floating-point dtype with less precision than float64."""
    return has_all(array, "dtype") and array.dtype.kind == "f" and bool(array.dtype.itemsize < 8)


def _require_shape(name: str, block: npt.NDArray[Any], shape: tuple[int, int]) -> None:
    if block.shape != shape:
        raise invalid(name, f"a function that returns shape {shape}", block.shape)


def _refuse_negative_or_infinite(rows: npt.NDArray[Any], start: int) -> None:
    """Raise an error if a distance is negative or not finite; the first row has number `start`."""
    right = (rows >= 0.0) & (rows < np.inf)
    if not right.all():
        row, column = np.argwhere(~right)[0]
        problem = f"{rows[row, column]} of rows {start + row} and {column}"
        raise _make_value_error("distances", "finite and at least 0", problem)


def _check_symmetry(rows: npt.NDArray[Any], turned: npt.NDArray[Any], at: tuple[int, int]) -> None:
    """Raise an error if distances are not symmetric; `at` is the index of the first entry."""
    unlike = ~(np.abs(rows - turned) <= _SYMMETRY_TOLERANCE * np.maximum(rows, turned))
    if unlike.any():
        row, column = np.argwhere(unlike)[0]
        place = f"of rows {at[0] + row} and {at[1] + column}"
        problem = f"{rows[row, column]} and {turned[row, column]} {place}"
        raise _make_value_error("distances", "the same from x to x' and from x' to x", problem)


def input_and_output_names(table: Table) -> tuple[Sequence[Any] | None, Sequence[Any] | None]:
    """Return the names of a table's inputs and the names of its outputs, or None if missing."""
    inputs, outputs, words = (
        get_or_default(table.owner, name) for name in ("input_names", "output_names", "words")
    )
    inputs = words if inputs is None else inputs
    outputs = inputs if outputs is None else outputs

    def check_labels(labels: Any, size: int) -> Sequence[Any] | None:
        # A mechanism's words may be a method, or there may be fewer words than rows.
        return labels if has_all(labels, "__getitem__") and len(labels) == size else None

    return check_labels(inputs, table.inputs), check_labels(outputs, table.outputs)


@dataclass(slots=True)
class Tally:
    """Largest privacy losses of the pairs of inputs that were compared so far.

    Attributes:
        per_input: largest loss of each input, per unit of distance; -inf before the first pair.
        claim: the epsilon that is tested, per unit of distance. None if no epsilon is tested.
        tolerance: largest value of `loss - claim * distance`, in nats, that rounding can explain.
        best: the largest loss per unit of distance, the indices of the two inputs with this loss,
            their loss in nats, and their distance.
        excess: the largest value of `loss - claim * distance`, and the indices of the two inputs
            with this value.
        pairs: number of ordered pairs that were compared.
        infinite: number of ordered pairs with an infinite loss per unit of distance.
    """

    per_input: Floats
    claim: float | None
    tolerance: float
    best: tuple[float, int, int, float, float] = (-np.inf, -1, -1, 0.0, 1.0)
    excess: tuple[float, int, int] = (-np.inf, -1, -1)
    pairs: int = 0
    infinite: int = 0

    def add(
        self, losses: Floats, at: tuple[int, int], apart: Floats | None, mask: Flags | None
    ) -> bool:
        """Add the privacy losses of a block of pairs of inputs; return True if `best` changes.

        Args:
            losses: privacy losses (maxima over all outputs) of the inputs of one range (rows)
                against the inputs of a second range (columns), shape `(rows, others)`.
            at: index of the first input of each range.
            apart: distances of the pairs, in the same shape. None if losses are not divided by
                distances.
            mask: True for the pairs that are neighbours, in the same shape. None means all pairs.
        """
        ratios = losses if apart is None else self._per_distance(losses, apart)
        if mask is not None:
            ratios = np.where(mask, ratios, -np.inf)
        self.pairs += losses.size if mask is None else int(np.count_nonzero(mask))
        rows = slice(at[0], at[0] + len(losses))
        highest = ratios.max(axis=1)
        np.maximum(self.per_input[rows], highest, out=self.per_input[rows])
        top = float(highest.max())
        if top == np.inf:
            self.infinite += int(np.count_nonzero(ratios == np.inf))
        self._update_largest_excess(losses, at, apart, mask)
        if top == -np.inf or top < self.best[0]:
            return False
        row = int(np.argmax(highest))
        other = int(np.argmax(ratios[row]))
        place = at[0] + row, at[1] + other
        # Among equal ratios take the smallest row numbers, in whatever order the tiles arrive.
        if top == self.best[0] and place > self.best[1:3]:
            return False
        distance = 1.0 if apart is None else float(apart[row, other])
        self.best = (top, *place, float(losses[row, other]), distance)
        return True

    def _per_distance(self, losses: Floats, apart: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = losses / apart
        at_zero = apart == 0.0
        if at_zero.any():
            # Rows that were computed twice differ by rounding.
            ratios[at_zero] = np.where(losses[at_zero] > self.tolerance, np.inf, 0.0)
        return ratios

    def _update_largest_excess(
        self, losses: Floats, at: tuple[int, int], apart: Floats | None, mask: Flags | None
    ) -> None:
        if self.claim is None:
            return
        beyond = losses - (self.claim if apart is None else self.claim * apart)
        if mask is not None:
            beyond = np.where(mask, beyond, -np.inf)
        top = float(beyond.max())
        if top > self.excess[0]:
            row, other = np.unravel_index(int(np.argmax(beyond)), beyond.shape)
            self.excess = top, at[0] + int(row), at[1] + int(other)


class _Tile(NamedTuple):
    """Two ranges of rows that are compared, and the distances and neighbours among their pairs."""

    rows: tuple[int, int]
    others: tuple[int, int]
    apart: Floats | None
    mask: Flags | None

    @property
    def shape(self) -> tuple[int, int]:
        return self.others[1] - self.others[0], self.rows[1] - self.rows[0]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison of all pairs of neighbours among the inputs of a table of probabilities."""

    table: Table
    neighbours: Neighbours
    progress: bool | None = None

    def max_losses_and_output(self, claim: float | None, tolerance: float) -> tuple[Tally, int]:
        """Compute the largest privacy losses of all pairs of neighbours.

        The second result is an output that attains the largest loss, or -1 if it was not recorded.
        """
        table = self.table
        tally = Tally(np.full(table.inputs, -np.inf), claim, tolerance)
        if table.exact is not None or get_or_default(table.owner, "loss_rows"):
            output = self._add_losses_find_worst_output(tally)
            if table.exact is not None and claim is not None:
                tally.excess = self._largest_excess_and_pair(table.exact, Fraction(claim))
        else:
            for tile, (rows, others) in self._read_tiles("comparing rows", table.log_rows):
                ahead, back = np.empty(tile.shape), np.empty(tile.shape)
                _core.table_ratios(rows, others, ahead, back, self.table.threads)
                tally.add(ahead.T, (tile.rows[0], tile.others[0]), tile.apart, tile.mask)
                # Pairs of rows within the block were already added.
                first = max(tile.others[0], tile.rows[1])
                if first < tile.others[1]:
                    rest = slice(first - tile.others[0], None)
                    apart = None if tile.apart is None else tile.apart.T[rest]
                    mask = None if tile.mask is None else tile.mask.T[rest]
                    tally.add(back[rest], (first, tile.rows[0]), apart, mask)
            output = -1
        if tally.best[1] < 0:
            name = self.neighbours.name
            raise invalid("neighbour", "a relation that holds for a pair of rows", name)
        return tally, output

    def _add_losses_find_worst_output(self, tally: Tally) -> int:
        """Add the losses that `Table.loss_rows` returns; return the output of the largest loss."""
        table, output = self.table, -1
        step, begun = max(1, _MAX_READ_LOGARITHMS // table.inputs), time.monotonic()
        with Progress("comparing rows", table.inputs, self.progress) as bar:
            for start, stop in _split_range(0, table.inputs, step):
                losses, outputs = table.loss_rows(start, stop)
                mask = self.neighbours.among((start, stop), (0, table.inputs))
                if tally.add(losses, (start, 0), table.distance_rows(start, stop), mask):
                    output = int(outputs[tally.best[1] - start, tally.best[2]])
                bar.advance(stop - start)
                if not start:
                    self._announce_long_wait(bar, (time.monotonic() - begun) * table.inputs / stop)
        return output

    def _largest_excess_and_pair(self, exact: ExactRows, claim: Fraction) -> tuple[float, int, int]:
        """Return the exact largest value of loss minus claim x distance, and its two inputs."""
        size = self.table.inputs
        apart = self.table.distance_rows(0, size)
        apart = np.ones((size, size)) if apart is None else apart
        beyond = exact.losses - float(claim) * apart
        mask = self.neighbours.among((0, size), (0, size))
        beyond = np.where(~np.eye(size, dtype=bool) if mask is None else mask, beyond, -np.inf)
        # Floats exclude pairs that are surely smaller.
        least = beyond.max() - _LOGARITHM_SLACK * max(1.0, float((float(claim) * apart).max()))
        near = np.argwhere(beyond >= least).tolist()
        excesses = ((exact.excess(i, j, claim * Fraction(apart[i, j])), -i, -j) for i, j in near)
        excess, i, j = max(excesses)
        return excess, -i, -j

    def delta(self, epsilon: Any) -> float:
        """Return the largest hockey-stick divergence of neighbours at `exp(epsilon * distance)`."""
        epsilon = real("epsilon", epsilon, low=0.0)
        worst = 0.0
        for tile, (rows, others) in self._read_tiles("divergences", self.table.rows):
            powers = np.full(tile.shape, epsilon)
            if tile.apart is not None:
                powers *= tile.apart.T
            ahead, back = np.empty(tile.shape), np.empty(tile.shape)
            factors = np.exp(np.minimum(powers, _LARGEST_EXPONENT))
            _core.table_sticks(rows, others, factors, ahead, back, self.table.threads)
            beyond = powers > _LARGEST_EXPONENT
            if beyond.any():
                self._recompute_overflowed_divergences(tile, powers, beyond, ahead, back)
            greater = np.maximum(ahead, back)
            if tile.mask is not None:
                greater = greater[tile.mask.T]
            worst = max(worst, float(greater.max(initial=0.0)))
        return min(worst, 1.0)

    def _recompute_overflowed_divergences(
        self, tile: _Tile, powers: Floats, beyond: Flags, ahead: Floats, back: Floats
    ) -> None:
        """Compute the divergences of the pairs for which e^power overflows, from logarithms."""
        rows = self.table.log_rows(*tile.rows)
        others = self.table.log_rows(*tile.others)
        losses = np.empty(tile.shape), np.empty(tile.shape)
        _core.table_ratios(rows, others, *losses, self.table.threads)
        for target, loss in ((ahead, losses[0]), (back, losses[1])):
            # If no loss exceeds the power, the divergence is 0.
            target[beyond] = 0.0
            for j, i in np.argwhere(beyond & (loss > powers)):
                a, b = (rows[i], others[j]) if target is ahead else (others[j], rows[i])
                with np.errstate(invalid="ignore"):
                    gap = powers[j, i] + b - a
                # Outputs with a first probability of zero add nothing; NaN means zero against zero.
                kept = gap < 0.0
                target[j, i] = float((np.exp(a[kept]) * -np.expm1(gap[kept])).sum())

    def renyi(self, alphas: Any) -> Floats:
        """Return the largest Renyi divergence of any two neighbours, for each order."""
        orders = vector("alphas", alphas)
        if not (orders > 1.0).all():
            raise invalid("alphas", "orders above 1, finite", alphas)
        worst = np.zeros(orders.size)
        for tile, (rows, others) in self._read_tiles("divergences", self.table.log_rows):
            for place, alpha in enumerate(orders.tolist()):
                for a, b, turned in ((rows, others, False), (others, rows, True)):
                    sums = _log_sums(a, b, alpha)
                    if tile.mask is not None:
                        sums = sums[tile.mask.T if turned else tile.mask]
                    top = float(sums.max(initial=-np.inf)) / (alpha - 1.0)
                    worst[place] = max(worst[place], top)
        return worst

    def _read_tiles(self, label: str, read: Any) -> Iterator[tuple[_Tile, tuple[Floats, Floats]]]:
        """Yield pairs of row ranges that contain neighbours, and the results of `read` for both."""
        table = self.table
        # This reads and checks the whole of a small table.
        table.log_rows(0, 1)
        step = min(_MAX_BLOCK_ROWS, max(_MIN_BLOCK_ROWS, table.inputs // 16))
        many = _MAX_TILE_PAIRS // step
        if not (table.has_all_row_logarithms_in_memory and read == table.log_rows):
            many = max(1, min(many, _MAX_READ_LOGARITHMS // table.outputs))
        total, is_forecast = table.inputs * (table.inputs + step) / 2, False
        with Progress(label, total, self.progress) as bar:
            for rows in _split_range(0, table.inputs, step):
                begun = time.monotonic()
                block, apart = read(*rows), table.distance_rows(*rows)
                compared = time.monotonic()
                for others in _split_range(rows[0], table.inputs, many):
                    mask = self.neighbours.among(rows, others)
                    if mask is None or mask.any():
                        part = None if apart is None else apart[:, slice(*others)]
                        tile = _Tile(rows, others, part, mask)
                        yield tile, (block, read(*others))
                    bar.advance((rows[1] - rows[0]) * (others[1] - others[0]))
                    taken = time.monotonic() - compared
                    is_whole = others[1] == table.inputs
                    # If only some pairs are neighbours, only a whole block has a typical share of
                    # them.
                    if not is_forecast and (
                        is_whole or (self.neighbours.has_all_row_pairs and taken >= _TIMED_SECONDS)
                    ):
                        done = (rows[1] - rows[0]) * (others[1] - rows[0])
                        reading = (compared - begun) * table.inputs / (rows[1] - rows[0])
                        is_forecast = True
                        self._announce_long_wait(bar, reading + taken * total / done)

    def _announce_long_wait(self, bar: Progress, seconds: float) -> None:
        """Report the expected duration if it is long."""
        inputs, outputs = self.table.inputs, self.table.outputs
        bar.forecast(f"{inputs * (inputs - 1) // 2:,} pairs of rows of {outputs:,}", seconds)


def _split_range(start: int, stop: int, step: int) -> Iterator[tuple[int, int]]:
    for first in range(start, stop, step):
        yield first, min(stop, first + step)


def _log_sums(a: Floats, b: Floats, alpha: float) -> npt.NDArray[np.float64]:
    """Return log sum(p^alpha q^(1 - alpha)) over outputs, shape `(rows of a, rows of b)`.

    p is a row of exp(a) and q is a row of exp(b). If all q^(1 - alpha) are at most e^700, the sums
    are a product of two matrices. A term in which p^alpha underflows is then below e^-45. This term
    is negligible, because each sum is at least 1. If some q^(1 - alpha) are larger, terms are added
    as logarithms, row by row.
    """
    held = np.isfinite(b)
    if (alpha - 1.0) * -float(b[held].min(initial=0.0)) > _LARGEST_EXPONENT:
        return np.stack([_log_renyi_sums(alpha, row, b) for row in a])
    powers = np.exp((1.0 - alpha) * np.where(held, b, 0.0)) * held
    with np.errstate(divide="ignore"):
        sums: Floats = np.log(np.exp(alpha * a) @ powers.T)
    if not held.all():
        sums[np.isfinite(a).astype(np.float64) @ (~held).astype(np.float64).T > 0.0] = np.inf
    return sums


def _log_renyi_sums(alpha: float, log_row: Floats, log_b: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        terms = alpha * log_row + (1.0 - alpha) * log_b
    # Zero against zero, and zero against a positive probability, add nothing.
    terms[:, np.isneginf(log_row)] = -np.inf
    top = terms.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        sums = np.exp(terms - top).sum(axis=1)
    return np.where(np.isposinf(top[:, 0]), np.inf, top[:, 0] + np.log(sums))
