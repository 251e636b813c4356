"""The event "every coordinate of an output lies in its set", with counts of coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import instance, integer, invalid, mistyped, vector
from ..records import Record, frozen_array, set_fields
from ..suggestions import explain_argument_errors
from .event import EventRecord, group_numeric

_SHOWN_INTERVALS = 5
"""Largest number of intervals that a report shows."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Intervals(Record, word="Intervals"):
    """A set of real numbers: a union of intervals, given by their increasing end points (edges).

    The edges divide the real line into intervals. These intervals are alternately outside and
    inside the set. The interval below the first edge is inside if `below` is True. An edge belongs
    to the interval above it. With only one edge, the set is a half-line. NaN is never inside the
    set. Infinities can be inside the set.

    Args:
        edges: the end points in increasing order, in the units of the outputs. At least one number.
        below: True if the numbers below the first edge are inside the set.

    Raises:
        TypeError: if the edges do not hold real numbers, or `below` is not a bool.
        ValueError: if the edges are empty, not finite or not increasing.

    Example:
        >>> import numpy as np
        >>> inside = Intervals(np.array([0.0, 1.0]), False)
        >>> inside(np.array([-1.0, 0.0, 0.9, 1.0, np.nan])).tolist()
        [False, True, True, False, False]
        >>> print(inside, "or", Intervals(np.array([2.5]), True))
        0 <= y < 1 or y < 2.5
    """

    edges: npt.NDArray[np.float64]
    below: bool

    def __post_init__(self) -> None:
        """Check the edges, and make them read-only."""
        edges = vector("edges", self.edges)
        if (np.diff(edges) <= 0.0).any():
            raise invalid("edges", "increasing", edges)
        if not isinstance(self.below, (bool, np.bool_)):
            raise mistyped("below", "a bool", self.below)
        set_fields(self, edges=frozen_array(edges), below=bool(self.below))

    def __call__(self, values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return True for each number inside the set, in the shape of `values`."""
        first = float(self.edges[0])
        if self.edges.size == 1:
            return values < first if self.below else values >= first
        passed = np.searchsorted(self.edges, values, side="right")
        # The search places NaN beyond every edge; the comparison excludes it, as NaN != NaN.
        is_inside: npt.NDArray[np.bool_] = ((passed % 2 == 1) != self.below) & (values == values)
        return is_inside

    def __str__(self) -> str:
        """Format the set as inequalities for y."""
        ends: list[str | None] = [None] if self.below else []
        ends += [f"{edge:.6g}" for edge in self.edges.tolist()]
        ends += [None] * (len(ends) % 2)
        parts = [_format_span(low, high) for low, high in zip(ends[::2], ends[1::2], strict=True)]
        if len(parts) > _SHOWN_INTERVALS:
            parts = [*parts[: _SHOWN_INTERVALS - 1], f"... ({len(parts)} intervals)"]
        return " or ".join(parts)


def _format_span(low: str | None, high: str | None) -> str:
    if low is None:
        return f"y < {high}"
    return f"y >= {low}" if high is None else f"{low} <= y < {high}"


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EveryCoordinate(EventRecord, word="EveryCoordinate"):
    """The event "every coordinate of every group lies in the set of its group".

    The coordinates (entries) of an output are divided into groups, and each group has a set of real
    numbers. Suppose that the coordinates of an output are independent, and that all coordinates of
    a group have the same distribution. Then the probability of the event is the product
    ``prod_g p_g^m_g``. Here m_g is the number of coordinates in group g, and p_g is the probability
    that one coordinate of group g lies in the set of the group. To estimate p_g, the method
    `pooled` counts all coordinates of the group together. Therefore each output gives m_g draws for
    this estimate.

    Args:
        groups: for each group, the indices of its coordinates, from 0 in C order. A coordinate may
            occur only once.
        sets: for each group, the set of real numbers in which its coordinates must lie, an
            `Intervals`.
        dim: number of coordinates of an output.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if `groups` is empty, a group is empty, a coordinate occurs twice or is not
            below `dim`, or if the number of groups differs from the number of sets.

    Source:
        Dwork and Roth (2014), theorem 3.6: the privacy loss of independent noise is the sum of the
        losses of the coordinates.

    Example:
        >>> import numpy as np
        >>> event = EveryCoordinate(((0, 1),), (Intervals(np.array([0.0]), True),), 2)
        >>> outputs = np.array([[-1.0, -2.0], [-1.0, 3.0]])
        >>> event(outputs).tolist(), event.pooled(outputs), event.multiplicities
        ([True, False], (3,), (2,))
    """

    groups: tuple[tuple[int, ...], ...]
    sets: tuple[Intervals, ...]
    dim: int

    def __post_init__(self) -> None:
        """Check the arguments."""
        dim = integer("dim", self.dim, 1)
        groups = tuple(
            tuple(integer("groups", column, 0, dim - 1) for column in group)
            for group in self.groups
        )
        columns = [column for group in groups for column in group]
        if not groups or not all(groups) or len(set(columns)) < len(columns):
            raise invalid("groups", "not empty and without repetition", self.groups)
        sets = tuple(instance("sets", intervals, Intervals) for intervals in self.sets)
        if len(sets) != len(groups):
            raise invalid("sets", f"one for each of {len(groups)} groups", len(sets))
        set_fields(self, dim=dim, groups=groups, sets=sets)

    def __call__(self, outputs: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return True for each output for which every coordinate lies in its set.

        Args:
            outputs: real numbers, shape `(size, ...)` with `dim` entries per output.

        Returns:
            One bool per output, shape `(size,)`.

        Raises:
            TypeError: if the outputs are not real numbers.
            ValueError: if the outputs have a different number of entries.
        """
        outputs = np.asarray(outputs)
        if outputs.dtype == object:
            places, table = self._select_rows_with_dim_real_entries(outputs)
            answers = np.zeros(len(outputs), np.bool_)
            answers[places] = self(table)
            return answers
        flat = read_rows(outputs, self.dim)
        is_inside = np.ones(len(flat), dtype=np.bool_)
        for group, inside in zip(self.groups, self.sets, strict=True):
            is_inside &= inside(_get_columns(flat, group)).all(axis=1)
        return is_inside

    def pooled(self, outputs: npt.NDArray[Any]) -> tuple[int, ...]:
        """Return, for each group, how many coordinates of all outputs lie in the set of the group.

        Args:
            outputs: real numbers, shape `(size, ...)`, with `dim` numbers per output.

        Returns:
            One count for each group. It is at most `size` times the number of coordinates of the
            group.

        Raises:
            TypeError: if the outputs are not real numbers.
            ValueError: if the outputs do not have `dim` entries.
        """
        outputs = np.asarray(outputs)
        if outputs.dtype == object:
            outputs = self._select_rows_with_dim_real_entries(outputs)[1]
        flat = read_rows(outputs, self.dim)
        return tuple(
            int(np.count_nonzero(inside(_get_columns(flat, group))))
            for group, inside in zip(self.groups, self.sets, strict=True)
        )

    def _select_rows_with_dim_real_entries(
        self, outputs: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]:
        """Return the indices of the outputs that have `dim` real entries, and these outputs."""
        places, tables = [np.zeros(0, np.intp)], [np.zeros((0, self.dim))]
        for rows, table in group_numeric(outputs)[0]:
            if table[0].size == self.dim:
                places.append(rows)
                tables.append(table.reshape(len(table), self.dim).astype(np.float64))
        if len(places) == 1 and len(outputs) > 1:
            raise mistyped("outputs", "real numbers", outputs)
        return np.concatenate(places), np.concatenate(tables)

    @property
    def multiplicities(self) -> tuple[int, ...]:
        """Number of coordinates in each group of this event."""
        return tuple(map(len, self.groups))

    @property
    def assumption(self) -> str:
        """Text for reports which states what the bound assumes about the coordinates of outputs."""
        return (
            "assumed, not tested: the coordinates are independent of each other, and those of one "
            f"group ({', '.join(map(str, self.multiplicities))} of {self.dim}) have one law"
        )

    def __str__(self) -> str:
        """Describe the event in one line of text for a report."""
        shares = ("" if size == self.dim else f"{size} of " for size in self.multiplicities)
        return "; ".join(
            f"{intervals} in each of {share}{self.dim} coordinates"
            for share, intervals in zip(shares, self.sets, strict=True)
        )


def read_rows(outputs: npt.NDArray[Any], dim: int) -> npt.NDArray[Any]:
    """Convert outputs to an array of real numbers of shape `(size, dim)`, or raise an error."""
    values = np.asarray(outputs)
    if values.dtype.kind not in "buif" or values.ndim == 0:
        raise mistyped("outputs", "an array of real numbers, a row for each output", outputs)
    flat = values.reshape(len(values), -1) if values.size else np.empty((len(values), 0))
    flat = flat if len(values) else flat.reshape(0, dim)
    if flat.shape[1] != dim:
        raise invalid("outputs", f"of shape (size, {dim})", values.shape)
    return flat


def _get_columns(flat: npt.NDArray[Any], group: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return the columns of a group, as a view if they are evenly spaced, else as a copy."""
    step = group[1] - group[0] if len(group) > 1 else 1
    spaced = range(group[0], group[-1] + (1 if step > 0 else -1), step or 1)
    if step > 0 and tuple(spaced) == group:
        return flat[:, group[0] : group[-1] + 1 : step]
    return flat[:, list(group)]
