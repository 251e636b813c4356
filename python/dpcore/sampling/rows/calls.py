"""Check for one output in all rows of a call: noise drawn once in place of once a row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import about
from ...events.device_outputs import Held, move_to_host
from .parts import Array, entries_differ, entries_equal, split_by_kind

FEWEST: Final = 32
"""Rows in a call from which two equal throughout, but different, exclude chance."""
_EQUAL_CALLS_LEVEL: Final = 1e-8
_FIRST_COMPARED_ROWS: Final = 64
"""Rows that are compared before all of them are."""


class Same(NamedTuple):
    """Columns that are equal in all rows of one call.

    Args:
        rows: in the call.
        columns: which ones are, for each table of `split_by_kind`.
        values: the first row, for each table.
    """

    rows: int
    columns: tuple[npt.NDArray[np.bool_], ...]
    values: tuple[Array, ...]


def same_rows(outputs: Array | Held) -> Same | None:
    """Find the columns that are equal in all rows of a call; None if there are none.

    A call of one row gives None.

    Args:
        outputs: outputs of one call, any dtype, shape `(size, ...)`.

    Returns:
        The columns and their values. Equality throughout of `m` independent rows and, in another
        call, of `m` rows with another value, has a probability of at most `2 / 4**m`.
    """
    if len(outputs) < 2:
        return None
    if isinstance(outputs, Held):
        return _same_held(outputs)
    tables = split_by_kind(outputs)
    columns = tuple(map(_same_columns, tables))
    if not any(map(np.any, columns)):
        return None
    return Same(len(outputs), columns, tuple(table[0].copy() for table in tables))


def _same_held(outputs: Held) -> Same | None:
    """Find the equal columns on the device of the outputs.

    Mostly the first two rows show that there are none.
    """
    first = move_to_host(outputs[:2]).reshape(2, math.prod(outputs.shape[1:]))
    if not entries_equal(first[0], first[1]).any():
        return None
    rows = outputs.tensor.reshape(len(outputs), first.shape[1])
    same = rows == rows[0]
    if outputs.tensor.is_floating_point():
        same |= rows.isnan() & rows[0].isnan()
    found = move_to_host(Held(same.all(0)))
    return Same(len(outputs), (found,), (first[0].copy(),)) if found.any() else None


def _same_columns(table: Array) -> npt.NDArray[np.bool_]:
    same = entries_equal(table[0], table[1])
    for stop in (_FIRST_COMPARED_ROWS, len(table)):
        places = np.flatnonzero(same)
        if not places.size:
            break
        part = table[:stop] if places.size == same.size else table[:stop, places]
        first = np.broadcast_to(part[0], part.shape)
        same[places] = entries_equal(part, first).all(axis=0)
    return same


WAY_TO_DRAW: Final = (
    "draw the noise with size=(size, len(x)), or write a function of x and rng that returns one "
    "output and pass dpcore.repeat(function)"
)
"""Advice on drawing rows that do not share noise, unless a mechanism has a `way_to_draw`."""

_OTHER_SIZE: Final = 1 / 16
"""Between calls of two sizes: even numbers of eight bits, summed in another order, differ less."""


@dataclass
class Calls:
    """The calls of a mechanism so far, by the input and the number of rows.

    Args:
        name: what complaints call the mechanism.
        way_to_draw: how to draw rows that do not share their noise.
    """

    name: str
    way_to_draw: str = WAY_TO_DRAW
    _first: dict[tuple[int, int], Same] = field(default_factory=dict, repr=False)
    _seen: int = 0

    def see(self, side: int, same: Same | None) -> None:
        """Record one call.

        Args:
            side: 0 for x, 1 for x'.
            same: what was equal in all its rows.

        Raises:
            ValueError: if an earlier call on that side was as equal throughout, and different.
        """
        self._seen += 1
        if same is None or same.rows < FEWEST:
            return
        for (other_side, rows), first in self._first.items():
            if other_side == side and self._excluded(min(rows, same.rows), same):
                slack = None if rows == same.rows else _OTHER_SIZE
                place = first_difference([first, same], slack)
                if place is not None:
                    raise one_output(self.name, same, place, self.way_to_draw)
        self._first.setdefault((side, same.rows), same)

    def _excluded(self, rows: int, same: Same) -> bool:
        """Return True if chance is excluded, given the number of calls and columns."""
        columns = sum(map(len, same.columns))
        return 2 * math.log(self._seen) + math.log(columns) < rows * math.log(4) + math.log(
            _EQUAL_CALLS_LEVEL
        )


def first_difference(calls: Sequence[Same], slack: float | None = None) -> int | None:
    """Find the first column that is constant within each of some calls but differs between them."""
    start = 0
    if len({tuple(map(np.shape, call.columns)) for call in calls}) > 1:
        # Objects in one call, a table of numbers in another.
        return None
    for part, values in enumerate(calls[0].values):
        both = np.logical_and.reduce([call.columns[part] for call in calls])
        apart = [entries_differ(values, call.values[part], slack) for call in calls[1:]]
        found = np.flatnonzero(both & np.logical_or.reduce(apart))
        if found.size:
            return start + int(found[0])
        start += len(values)
    return None


def by_chance(calls: Sequence[Same], column: int) -> float:
    """Compute the probability that a random order of all rows leaves each call constant.

    Args:
        calls: calls of equally many rows, each equal throughout in the column.
        column: counted through all tables.

    Returns:
        The p-value, given how often each value occurs: `(G! / prod c!) / ((mG)! / prod (mc)!)`.
    """
    entries = [np.concatenate([v.astype(object) for v in call.values])[column] for call in calls]
    groups: list[tuple[Any, int]] = []
    for entry in entries:
        for number, (value, count) in enumerate(groups):
            if not _calls_differ(value, entry):
                groups[number] = value, count + 1
                break
        else:
            groups.append((entry, 1))
    rows = calls[0].rows
    counts = [count for _, count in groups]
    whole = math.lgamma(len(calls) + 1) - sum(math.lgamma(count + 1) for count in counts)
    mixed = math.lgamma(rows * len(calls) + 1) - sum(math.lgamma(rows * c + 1) for c in counts)
    return math.exp(whole - mixed)


def _calls_differ(first: Any, second: Any) -> bool:
    if isinstance(first, float) and isinstance(second, float):
        return bool(entries_differ(np.array([first]), np.array([second]), None)[0])
    pair = np.empty((2, 1), dtype=object)
    pair[0, 0], pair[1, 0] = first, second
    return not bool(entries_equal(pair[0], pair[1])[0])


def one_output(name: str, call: Same, column: int, way_to_draw: str = WAY_TO_DRAW) -> ValueError:
    """Make the error about one noise for all rows of a call, with the code to write instead."""
    columns = sum(map(len, call.columns))
    where = f" in place {column} of {columns}" if columns > 1 else ""
    what = f"outputs of {name}"
    error = ValueError(
        f"{what} must be drawn anew for every row of a call, got one value for all "
        f"{call.rows:,} rows of a call{where} and another for all rows of another call: "
        f"{way_to_draw}"
    )
    return about(error, what)
