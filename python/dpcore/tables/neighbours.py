"""Neighbour relations of the rows of a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import about, invalid, mistyped, numeric
from ..pairs import L1, L2, Linf
from ..pairs.domains import SLACK, neighbour_of
from ..pairs.neighbouring import format_neighbour, refuse_farther
from ..records import Pair

__all__ = ["Flags", "Neighbours", "read_neighbours"]

Flags = npt.NDArray[np.bool_]
_RowSpan = tuple[int, int]

_NEIGHBOUR_REQUIREMENT: Final = (
    "a relation of dpcore.pairs, a mask (booleans), or a list of pairs of row numbers"
)


class Neighbours:
    """Pairs of different rows that are compared, both ways.

    Args:
        name: what reports call them.
        among: the function from two spans of rows to the pairs of theirs that are neighbours, a
            row and itself among them or not; None for all.
    """

    def __init__(
        self, name: str, among: Callable[[_RowSpan, _RowSpan], Flags] | None = None
    ) -> None:
        self.name, self._among = name, among

    def among(self, rows: _RowSpan, others: _RowSpan) -> Flags | None:
        """Return the pairs of two spans, shape `(len(rows), len(others))`; None for all."""
        overlap = rows[0] < others[1] and others[0] < rows[1]
        if self._among is None and not overlap:
            return None
        shape = rows[1] - rows[0], others[1] - others[0]
        found = np.ones(shape, dtype=bool) if self._among is None else self._among(rows, others)
        if overlap:
            found &= np.arange(*rows)[:, None] != np.arange(*others)
        return found


def read_neighbours(neighbour: Any, inputs: int) -> Neighbours:
    """Return the neighbours among so many rows.

    Raises:
        TypeError: if `neighbour` is none of the kinds that `audit_table` takes.
        ValueError: if a mask or a pair does not fit the table, or a mask is not symmetric.
    """
    if neighbour is None:
        return Neighbours("all pairs of rows")
    if hasattr(neighbour, "holds") or isinstance(neighbour, type):
        return _neighbours_from_relation(neighbour)
    requirement = _NEIGHBOUR_REQUIREMENT
    found = numeric("neighbour", requirement, neighbour)
    if found.dtype.kind == "b":
        return _neighbours_from_mask(found, inputs)
    if found.dtype.kind not in "iu":
        raise mistyped("neighbour", requirement, neighbour)
    if found.ndim != 2 or found.shape[1] != 2 or not len(found):
        raise invalid("neighbour", requirement, neighbour)
    return _neighbours_from_pairs(found.astype(np.int64), inputs)


def _neighbours_from_mask(mask: Flags, inputs: int) -> Neighbours:
    if mask.shape != (inputs, inputs):
        raise invalid("neighbour", f"a mask of shape {(inputs, inputs)}", mask.shape)
    for start in range(0, inputs, 256):
        rows = slice(start, start + 256)
        unlike = np.argwhere(mask[rows] != mask[:, rows].T)
        if unlike.size:
            row, column = unlike[0][0] + start, unlike[0][1]
            text = f"one way only for rows {row} and {column}"
            raise about(ValueError(f"neighbour must be a symmetric mask, got {text}"), "neighbour")
    off_diagonal = np.count_nonzero(mask) - np.count_nonzero(np.diagonal(mask))
    name = f"a mask of {off_diagonal // 2:,} pairs of rows"
    return Neighbours(name, lambda rows, others: mask[slice(*rows), slice(*others)].copy())


def _neighbours_from_pairs(pairs: npt.NDArray[np.int64], inputs: int) -> Neighbours:
    wrong = ((pairs < 0) | (pairs >= inputs)).any(axis=1) | (pairs[:, 0] == pairs[:, 1])
    if wrong.any():
        requirement = f"pairs of two different rows from 0 to {inputs - 1}"
        raise invalid("neighbour", requirement, tuple(pairs[np.argmax(wrong)].tolist()))
    both = np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0)

    def among(rows: _RowSpan, others: _RowSpan) -> Flags:
        found = np.zeros((rows[1] - rows[0], others[1] - others[0]), dtype=bool)
        first, last = np.searchsorted(both[:, 0], rows)
        part = both[first:last]
        part = part[(part[:, 1] >= others[0]) & (part[:, 1] < others[1])]
        found[part[:, 0] - rows[0], part[:, 1] - others[0]] = True
        return found

    return Neighbours(f"{len(both) // 2:,} pairs of rows", among)


def _neighbours_from_relation(relation: Any) -> Neighbours:
    """Return a relation on the numbers of rows, each an input of one entry."""
    neighbour_of(relation)
    name = f"{format_neighbour(relation)} on the numbers of rows"
    if type(relation) in (L1, L2, Linf):
        most = relation.most * (1.0 + SLACK)
        return Neighbours(
            name,
            lambda rows, others: (
                np.abs(np.subtract.outer(np.arange(*rows), np.arange(*others))) <= most
            ),
        )

    def holds(row: int, other: int) -> bool:
        try:
            refuse_farther(Pair([row], [other]), relation)
        except ValueError:
            return False
        return True

    def among(rows: _RowSpan, others: _RowSpan) -> Flags:
        return np.array([[holds(i, j) for j in range(*others)] for i in range(*rows)], dtype=bool)

    return Neighbours(name, among)
