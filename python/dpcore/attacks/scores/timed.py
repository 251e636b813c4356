"""The columns that scores of output and latency are made of, from timed calls as rows."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import integer, invalid, vector
from ...records import frozen_array
from ..arrays import Array, Floats, Merged, freeze_arrays
from .letters import keys_of

_SHOWN_COLUMNS = 4
"""Columns that a report names one by one."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Latency(Merged, word="Latency"):
    """The latency itself, in nanoseconds.

    Example:
        >>> Latency()(np.array([1200, 900])).tolist()
        [1200.0, 900.0]
        >>> Latency()(np.array([[0.5, 1200.0], [0.1, 900.0]])).tolist()
        [1200.0, 900.0]
    """

    def __call__(self, rows: Array) -> Floats:
        """Return the latencies as doubles.

        Args:
            rows: latencies in nanoseconds, shape `(size,)`; or timed rows, whose last column
                they are.

        Returns:
            The same, shape `(size,)`.
        """
        rows = np.asarray(rows)
        return (rows if rows.ndim == 1 else rows[:, -1]).astype(np.float64)

    def __str__(self) -> str:
        """Return one line for a report."""
        return "latency in ns"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OutputEntry(Merged, word="OutputEntry"):
    """One number of the output of a timed call.

    Args:
        index: which one, from 0, in the row-major order of the output's entries.
    """

    index: int

    def __post_init__(self) -> None:
        """Check the index."""
        object.__setattr__(self, "index", integer("index", self.index, 0))

    def __call__(self, rows: Array) -> Floats:
        """Return the entry of every row, shape `(size,)`."""
        if self.index + 1 >= rows.shape[1]:
            raise invalid("rows", f"of at least {self.index + 2} columns", rows.shape)
        return rows[:, self.index].astype(np.float64)

    def __str__(self) -> str:
        """Return one line for a report."""
        return f"entry {self.index} of the output"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OutcomeCode(Merged, word="OutcomeCode"):
    """The number of an output that is compared whole: its place among those of the pilot.

    Args:
        keys: outputs that the pilot showed, hashable; every other one has the number -1.
    """

    keys: tuple[Hashable, ...]

    def __call__(self, rows: Array) -> Floats:
        """Return the number of every output, shape `(size,)`."""
        table = {key: float(place) for place, key in enumerate(self.keys)}
        return np.array([table.get(key, -1.0) for key in keys_of(rows[:, 0])], np.float64)

    def __str__(self) -> str:
        """Return one line for a report."""
        return "the output"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OutputDistance(Merged, word="OutputDistance"):
    """The L1 distance of an output from an input: the size of the noise that was added.

    Args:
        side: "x" or "x'", for the report.
        point: the input, one number for each entry of an output.
    """

    side: str
    point: Floats

    def __post_init__(self) -> None:
        """Freeze the input."""
        object.__setattr__(self, "point", frozen_array(vector("point", self.point)))

    def __call__(self, rows: Array) -> Floats:
        """Return the distance of every output, shape `(size,)`."""
        apart = np.zeros(len(rows))
        for entry, value in zip(rows[:, :-1].T, self.point, strict=True):
            apart += np.abs(entry - value)
        return apart

    def __str__(self) -> str:
        """Return one line for a report."""
        return f"the output's distance from {self.side}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OutputGroup(Merged, word="OutputGroup"):
    """The number of the group of outputs, of equal sizes, that an output is in.

    Args:
        column: what the outputs are grouped by, `rows -> numbers`.
        edges: between the groups, increasing.
    """

    column: Any
    edges: Floats

    def __post_init__(self) -> None:
        """Freeze the edges."""
        freeze_arrays(self)

    def __call__(self, rows: Array) -> Floats:
        """Return the number of every output's group, shape `(size,)`."""
        groups = np.searchsorted(self.edges, self.column(rows), side="right")
        return np.asarray(groups, np.float64)

    def __str__(self) -> str:
        """Return one line for a report."""
        return f"{self.edges.size + 1} groups by {self.column}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExcessLatency(Merged, word="ExcessLatency"):
    """The latency less the usual one of such an output on one side, in nanoseconds.

    Args:
        side: "x" or "x'": the side on which it would be usual.
        column: what the usual latency depends on, `rows -> numbers`.
        places: values of the column, increasing.
        usual: the usual latency at each, in nanoseconds; straight lines in between.
    """

    side: str
    column: Any
    places: Floats
    usual: Floats

    def __post_init__(self) -> None:
        """Freeze the curve and check it."""
        freeze_arrays(self)
        if self.places.size == 0 or self.places.shape != self.usual.shape:
            raise invalid("usual", "one latency for each of the places", self.usual.shape)

    def __call__(self, rows: Array) -> Floats:
        """Return the excess of every call, shape `(size,)`; NaN where the column is."""
        usual = np.interp(self.column(rows), self.places, self.usual)
        return np.asarray(Latency()(rows) - usual)

    def __str__(self) -> str:
        """Return one line for a report."""
        return f"latency in ns less the usual one on {self.side} at {self.column}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TimedScore(Merged, word="TimedScore"):
    """A score of columns made of output and latency.

    Args:
        columns: what is made of the rows, each `rows -> numbers`.
        score: the score of these columns, `(size, columns) -> numbers`.
    """

    columns: tuple[Any, ...]
    score: Any

    def __call__(self, rows: Array) -> Floats:
        """Return the scores, shape `(size,)`."""
        return np.asarray(self.score(table_of(self.columns, rows)), np.float64)

    def __str__(self) -> str:
        """Return one line for a report."""
        index = getattr(self.score, "index", None)
        if index is None:
            return f"latency and output: {self.score} of {_name_columns(self.columns)}"
        column = self.columns[index]
        about = {ExcessLatency: "latency and output: ", Latency: ""}
        return f"{about.get(type(column), 'output alone: ')}{column}"


def _name_columns(columns: Sequence[Any]) -> str:
    """Name columns in a few words: two excesses differ only in their side."""
    named = [str(column) for column in columns if not isinstance(column, ExcessLatency)]
    excesses = [column for column in columns if isinstance(column, ExcessLatency)]
    if excesses:
        by = str(excesses[0].column).removesuffix(f" from {excesses[0].side}")
        named.append(f"its excess over the usual one on either side at {by}")
    if len(named) > _SHOWN_COLUMNS:
        named[1:-1] = ["..."]
    return ", ".join(named)


def table_of(columns: Sequence[Any], rows: Array) -> Floats:
    """Return the columns made of timed rows, shape `(size, columns)`."""
    return np.column_stack([column(rows) for column in columns])
