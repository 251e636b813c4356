"""Scores made of the lowest bits of floating-point outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...errors import choice, integer, invalid, real
from ...records import Record, frozen_array

Floats = npt.NDArray[np.float64]

FINEST: Final = 1074
"""Every double is a multiple of 2^-1074."""

_COARSEST: Final = 1023
_EVERY: Final = 1024
_CHUNK: Final = 2**13
"""Numbers whose temporary arrays stay in a cache."""
_FRACTION: Final = (1 << 52) - 1


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FinerThan(Record, word="FinerThan"):
    """1 where an entry lies in a window and is no multiple of a power of two, else 0.

    ``[low <= y_i < high and y_i 2^exponent is not an integer]``, for some or for every one of the
    entries. Zero is a multiple of everything; NaN and infinities lie in no window. The score says
    nothing about which input it speaks for: that is the direction of the audit.

    Args:
        exponent: e of the lattice 2^-e, from -1023 to 1074. At 1074 the score is 0 everywhere,
            since no double is finer.
        low: lower end of the window, in the units of the outputs.
        high: upper end, above `low`.
        columns: entries that are looked at, counted from 0 in C order.
        quantifier: "some" or "every".

    Raises:
        TypeError: if a field is of the wrong kind.
        ValueError: if a value is out of range, or there is no column.

    Source:
        Mironov (2012), section 4, on the low bits of x + noise; the exactness of the sum near
        zero is Sterbenz' lemma (Goldberg, 1991, theorem 11).

    Example:
        >>> import numpy as np
        >>> score = FinerThan(53, -0.5, 0.5)
        >>> score(np.array([[0.25], [0.1 / 8], [0.7]])).tolist()
        [0.0, 1.0, 0.0]
        >>> print(score)
        [entry 0 is in [-0.5, 0.5) and no multiple of 2^-53]
    """

    exponent: int
    low: float
    high: float
    columns: tuple[int, ...] = (0,)
    quantifier: str = "some"
    merged = True

    def __post_init__(self) -> None:
        """Check the fields."""
        exponent = integer("exponent", self.exponent, -_COARSEST, FINEST)
        low = real("low", self.low)
        high = real("high", self.high, low=low, open_low=True)
        columns = tuple(integer("columns", column, 0) for column in self.columns)
        if not columns or len(set(columns)) < len(columns):
            raise invalid("columns", "not empty and without repetition", self.columns)
        choice("quantifier", self.quantifier, ("some", "every"))
        values = (exponent, low, high, columns)
        for name, value in zip(("exponent", "low", "high", "columns"), values, strict=True):
            object.__setattr__(self, name, value)

    def __call__(self, outputs: npt.NDArray[Any]) -> Floats:
        """Score every output.

        Args:
            outputs: floats of any width, shape `(size, ...)`.

        Returns:
            0.0 or 1.0 for every output, shape `(size,)`.

        Raises:
            ValueError: if the outputs have too few entries.
        """
        values = entries(outputs, self.columns)
        hits = (values >= self.low) & (values < self.high)
        hits[hits] = finer(values[hits], self.exponent)
        over = np.logical_or if self.quantifier == "some" else np.logical_and
        found: npt.NDArray[np.bool_] = over.reduce(hits, axis=1)
        return found.astype(np.float64)

    def __str__(self) -> str:
        """One line for a report."""
        if len(self.columns) == 1:
            name = f"entry {self.columns[0]}"
        elif self.quantifier == "some":
            name = f"some of {len(self.columns)} entries"
        else:
            name = f"each of {len(self.columns)} entries"
        window = f"[{self.low:.6g}, {self.high:.6g})"
        return f"[{name} is in {window} and no multiple of 2^{-self.exponent}]"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LowBits(Record, word="LowBits"):
    """How much the lowest set bits speak for x, given roughly where the entries lie.

    ``sum_i table[bin(y_i), class(t_i)]`` with ``y_i = odd 2^t_i``: the table holds the logarithm
    of the ratio of the two sides' shares of a class *within* a bin, so that the score sees no
    difference of the densities, only of the lattices. Bins: ``edges[b] <= y < edges[b + 1]``;
    classes: t below, between and from the exponents. An entry in no bin adds 0.

    Args:
        edges: increasing ends of the bins, in the units of the outputs, shape `(bins + 1,)`.
        exponents: increasing exponents t that separate the classes, shape `(classes - 1,)`.
        table: weights, shape `(bins, classes)`.
        columns: entries that are looked at, counted from 0 in C order.

    Raises:
        TypeError: if a field is of the wrong kind.
        ValueError: if the shapes do not fit.

    Source:
        Neyman and Pearson (1933), on the law of the lowest set bit given the bin.

    Example:
        >>> import numpy as np
        >>> score = LowBits(np.array([0.0, 1.0]), np.array([-1]), np.array([[2.0, -1.0]]), (0,))
        >>> score(np.array([[0.5], [0.25], [3.0]])).tolist()
        [-1.0, 2.0, 0.0]
    """

    edges: Floats
    exponents: npt.NDArray[np.int64]
    table: Floats
    columns: tuple[int, ...]
    merged = True

    def __post_init__(self) -> None:
        """Freeze the arrays and check them."""
        columns = tuple(integer("columns", column, 0) for column in self.columns)
        edges, exponents, table = map(np.asarray, (self.edges, self.exponents, self.table))
        shape = (edges.size - 1, exponents.size + 1)
        if table.shape != shape:
            raise invalid("table", f"of shape {shape}", table.shape)
        object.__setattr__(self, "edges", frozen_array(edges.astype(np.float64)))
        object.__setattr__(self, "exponents", frozen_array(exponents.astype(np.int64)))
        object.__setattr__(self, "table", frozen_array(table.astype(np.float64)))
        object.__setattr__(self, "columns", columns)

    def __call__(self, outputs: npt.NDArray[Any]) -> Floats:
        """Score every output.

        Args:
            outputs: floats of any width, shape `(size, ...)`.

        Returns:
            One number per output, shape `(size,)`.

        Raises:
            ValueError: if the outputs have too few entries.
        """
        total = np.zeros(len(outputs))
        # A border of zeros: what lies in no bin says nothing.
        table = np.pad(self.table, ((1, 1), (0, 0))).ravel()
        place = classes(self.exponents)
        for column in self.columns:
            for start in range(0, len(outputs), _CHUNK):
                part = slice(start, start + _CHUNK)
                values = np.ascontiguousarray(entries(outputs[part], (column,))[:, 0])
                total[part] += table[cells(values, self.edges, place)]
        return total

    def __str__(self) -> str:
        """One line for a report."""
        names = f"entry {self.columns[0]}" if len(self.columns) == 1 else "entries"
        return f"log ratio of the lowest set bits of {names} {_listed(self.columns)}".rstrip()


def _listed(columns: tuple[int, ...]) -> str:
    if len(columns) == 1:
        return ""
    shown = ", ".join(map(str, columns[:4]))
    return f"{shown}, ... ({len(columns)})" if len(columns) > 4 else shown


def entries(outputs: npt.NDArray[Any], columns: tuple[int, ...]) -> Floats:
    """The wanted entries of float outputs as doubles, shape `(size, columns)`; exact."""
    outputs = np.asarray(outputs)
    flat = outputs.reshape(len(outputs), -1)
    if flat.shape[1] <= max(columns):
        requirement = f"of at least {max(columns) + 1} entries"
        raise invalid("outputs", requirement, outputs.shape)
    if columns != tuple(range(flat.shape[1])):
        flat = flat[:, list(columns)]
    return flat.astype(np.float64, copy=False)


def finer(values: Floats, exponent: int) -> npt.NDArray[np.bool_]:
    """Where ``y 2^exponent`` is not an integer; exact for every finite double.

    Args:
        values: finite numbers.
        exponent: from -1023 to 1074.

    Returns:
        One bool for each.

    Example:
        >>> import numpy as np
        >>> finer(np.array([0.75, 0.5, 5e-324]), 1).tolist()
        [True, False, True]
    """
    if exponent < 0:
        # The product could underflow; the remainder of a division is always exact.
        rest: npt.NDArray[np.bool_] = np.fmod(values, 2.0**-exponent) != 0.0
        return rest
    with np.errstate(over="ignore"):
        # A product that overflows belongs to a number of at least 2^-50, and e is above 1023.
        scaled = values * 2.0 ** min(exponent, _COARSEST)
        if exponent > _COARSEST:
            scaled *= 2.0 ** (exponent - _COARSEST)
    broken: npt.NDArray[np.bool_] = np.rint(scaled) != scaled
    return broken


def lowest_bit(values: Floats) -> npt.NDArray[np.int64]:
    """The exponent t of ``y = odd 2^t``; 1024 for zero, NaN and infinities.

    Args:
        values: doubles, C-contiguous.

    Returns:
        Integers from -1074 to 1023, or 1024.

    Example:
        >>> import numpy as np
        >>> lowest_bit(np.array([0.75, 1.0, 5e-324, -12.0, 0.0])).tolist()
        [-2, 0, -1074, 2, 1024]
    """
    bits = values.view(np.int64)
    power = (bits >> 52) & 0x7FF
    odd = bits & _FRACTION
    # The leading 1 of a normal number is not stored; a subnormal has none.
    odd |= (power > 0).astype(np.int64) << 52
    odd &= -odd
    # The isolated bit is a power of two, whose exponent a conversion to double reveals.
    found = (odd.astype(np.float64).view(np.int64) >> 52) - 1023
    found += np.maximum(power, 1) - 1075
    found[(odd == 0) | (power == 0x7FF)] = _EVERY
    return found


def classes(exponents: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
    """The class of every exponent that `lowest_bit` may give, from -1074 on."""
    return np.searchsorted(exponents, np.arange(-FINEST, _EVERY + 1), side="right")


def cells(values: Floats, edges: Floats, place: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """The cell of each number in a table of (edges.size + 1) bins x (exponents.size + 1) classes.

    The first and the last bin hold what lies below and beyond the edges (and NaN); `place` is
    what `classes` gives.
    """
    bins = np.searchsorted(edges, values, side="right")
    bins *= int(place[-1]) + 1
    bins += place[lowest_bit(values) + FINEST]
    return bins
