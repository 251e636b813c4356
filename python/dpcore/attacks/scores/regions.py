"""Scores that are small whole numbers: how many entries of an output lie in some region."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import choice, invalid, real
from ...records import Record, frozen_array
from .columns import Floats, chunks, numbers


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Special(Record, word="Special"):
    """How many entries of the output are NaN, or infinite.

    Args:
        kind: "nan" or "inf".

    Raises:
        TypeError: if `kind` is not a string.
        ValueError: if it is neither of the two.

    Source:
        Habernal (2022), section 3: half of DPText's draws are undefined.

    Example:
        >>> Special("nan")(np.array([[np.nan, 1.0], [2.0, np.inf]])).tolist()
        [1.0, 0.0]
    """

    kind: str

    merged = True

    def __post_init__(self) -> None:
        """Check the kind."""
        choice("kind", self.kind, ("nan", "inf"))

    def __call__(self, outputs: npt.NDArray[Any]) -> Floats:
        """The numbers, shape `(size,)`."""
        rows = numbers(outputs)
        found = np.isnan(rows) if self.kind == "nan" else np.isinf(rows)
        counts: Floats = np.count_nonzero(found, axis=1).astype(np.float64)
        return counts

    def __str__(self) -> str:
        """One line for a report."""
        return f"number of entries that are {'NaN' if self.kind == 'nan' else 'infinite'}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NegativeZeros(Record, word="NegativeZeros"):
    """How many entries of the output are -0.0, which equals 0.0 and is not the same bits.

    Whoever sees the output as it is printed or stored sees the sign; whoever compares numbers
    does not. So it belongs to what is found of the code as it runs, beside the rounding.

    Source:
        IEEE 754-2019, section 6.3, the sign of a zero.

    Example:
        >>> NegativeZeros()(np.array([[-0.0, 0.0], [-0.0, -0.0]])).tolist()
        [1.0, 2.0]
    """

    merged = True

    def __call__(self, outputs: npt.NDArray[Any]) -> Floats:
        """The numbers, shape `(size,)`; 0 for outputs that are no floats."""
        rows = numbers(outputs)
        if rows.dtype.kind != "f":
            return np.zeros(len(rows))
        counts: Floats = np.count_nonzero((rows == 0.0) & np.signbit(rows), axis=1).astype(float)
        return counts

    def __str__(self) -> str:
        """One line for a report."""
        return "number of entries that are -0.0"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Outside(Record, word="Outside"):
    """How many entries of the output lie outside their range.

    Args:
        lows: lower ends, shape `(entries,)`; -inf for none.
        highs: upper ends.

    Raises:
        ValueError: if the ends are not vectors of one length, without NaN, each low at most high.

    Source:
        Habernal (2022), theorem 3.2: the output of a mechanism that is never below its input.

    Example:
        >>> Outside([0.0, 0.0], [1.0, np.inf])(np.array([[2.0, 2.0], [-1.0, -1.0]])).tolist()
        [1.0, 2.0]
    """

    lows: Floats
    highs: Floats

    merged = True

    def __post_init__(self) -> None:
        """Freeze the ends and check that they fit."""
        for name in ("lows", "highs"):
            ends = frozen_array(np.asarray(getattr(self, name), dtype=np.float64))
            object.__setattr__(self, name, ends)
        if self.lows.ndim != 1 or self.lows.shape != self.highs.shape:
            raise invalid("highs", f"of shape {self.lows.shape}, as lows", self.highs.shape)
        if not (self.lows <= self.highs).all():
            raise invalid("lows", "at most highs, entry by entry", self.lows)

    def __call__(self, outputs: npt.NDArray[Any]) -> Floats:
        """The numbers, shape `(size,)`; NaN is not outside."""
        rows = numbers(outputs)
        if rows.shape[1] != self.lows.size:
            raise invalid("outputs", f"of {self.lows.size} entries", rows.shape)
        scores = np.zeros(len(rows))
        ends = list(zip(self.lows, self.highs, strict=True))
        used = [i for i, (low, high) in enumerate(ends) if low > -np.inf or high < np.inf]
        for part in chunks(rows):
            for i in used:
                values = rows[part, i]
                scores[part] += (values < ends[i][0]) | (values > ends[i][1])
        return scores

    def __str__(self) -> str:
        """One line for a report."""
        used = np.flatnonzero((self.lows > -np.inf) | (self.highs < np.inf))
        if used.size == 1:
            low, high = float(self.lows[used[0]]), float(self.highs[used[0]])
            return f"entry {used[0]} is outside [{low:.10g}, {high:.10g}]"
        return f"number of entries outside their ranges ({used.size} of them have one)"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Repeats(Record, word="Repeats"):
    """How many entries of the output equal another one: entries less distinct values.

    Args:
        tolerance: entries this near are equal, in the units of the outputs, at least 0.
        relative: so are entries as near as this share of the larger one, at least 0.

    Raises:
        TypeError: if one of them is not a number.
        ValueError: if one is negative or not finite.

    Source:
        Ding, Wang, Wang, Zhang and Kifer (2018), StatDP, for events on relations among entries.

    Example:
        >>> Repeats(0.0)(np.array([[1.0, 2.0, 1.0], [1.0, 2.0, 3.0]])).tolist()
        [1.0, 0.0]
    """

    tolerance: float
    relative: float = 0.0

    merged = True

    def __post_init__(self) -> None:
        """Check the tolerances."""
        for name in ("tolerance", "relative"):
            object.__setattr__(self, name, real(name, getattr(self, name), low=0.0))

    def __call__(self, outputs: npt.NDArray[Any]) -> Floats:
        """The numbers, shape `(size,)`; NaN equals nothing."""
        rows = numbers(outputs)
        scores = np.zeros(len(rows))
        for part in chunks(rows):
            ordered = np.sort(rows[part].astype(np.float64), axis=1)
            near = ordered[:, 1:] <= ordered[:, :-1] + self.tolerance
            if self.relative:
                with np.errstate(invalid="ignore"):
                    reach = self.relative * np.abs(ordered).max(axis=1, initial=0.0)
                    near |= np.diff(ordered, axis=1) <= reach[:, np.newaxis]
            scores[part] = np.count_nonzero(near, axis=1)
        return scores

    def __str__(self) -> str:
        """One line for a report."""
        return "number of entries that repeat another"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AtAtoms(Record, word="AtAtoms"):
    """Entries at atoms that the pilot saw on x alone, less those at atoms seen on x' alone.

    Args:
        entries: which entry of the output each atom belongs to.
        lows: lower ends of the atoms' intervals.
        highs: upper ends.
        signs: 1 for an atom of x, -1 for one of x'.

    Raises:
        ValueError: if these are not vectors of one length.

    Source:
        Lyu, Su and Li (2017), section 3: variants of the sparse vector technique that release
        what the other input cannot.

    Example:
        >>> at = AtAtoms([0, 0], [-0.1, 0.9], [0.1, 1.1], [1, -1])
        >>> at(np.array([[0.0], [1.0], [2.0]])).tolist()
        [1.0, -1.0, 0.0]
    """

    entries: npt.NDArray[np.int64]
    lows: Floats
    highs: Floats
    signs: npt.NDArray[np.int64]

    merged = True

    def __post_init__(self) -> None:
        """Freeze the tables and check that they fit."""
        for name, kind in (("entries", "i8"), ("lows", "f8"), ("highs", "f8"), ("signs", "i8")):
            values = frozen_array(np.asarray(getattr(self, name), dtype=kind))
            object.__setattr__(self, name, values)
            if values.ndim != 1 or values.shape != self.entries.shape:
                raise invalid(name, f"of shape {self.entries.shape}, as entries", values.shape)

    def __call__(self, outputs: npt.NDArray[Any]) -> Floats:
        """The differences, shape `(size,)`."""
        rows = numbers(outputs)
        if self.entries.size and rows.shape[1] <= int(self.entries.max()):
            raise invalid("outputs", f"of more than {self.entries.max()} entries", rows.shape)
        scores = np.zeros(len(rows))
        table = zip(self.entries, self.lows, self.highs, self.signs, strict=True)
        for entry, low, high, sign in table:
            values = rows[:, entry]
            scores += sign * ((values >= low) & (values <= high))
        return scores

    def __str__(self) -> str:
        """One line for a report."""
        middle = 0.5 * (self.lows + self.highs)
        if self.entries.size == 1:
            side = "x" if self.signs[0] > 0 else "x'"
            return f"entry {self.entries[0]} equals {middle[0]:.10g} (seen on {side} alone)"
        return f"entries at {self.entries.size} values seen on one side alone"
