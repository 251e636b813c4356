"""Tables of probabilities, whatever holds them, as blocks of rows of logarithms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import about, invalid, mistyped, numeric
from ..loaded import imported_module

__all__ = ["Floats", "Table", "labels_of"]

Floats = npt.NDArray[np.float64]

_MAX_CACHED_ENTRIES: Final = 2**21
"""Entries of a table whose logarithms are kept: 16 MiB."""

_ROW_SUM_TOLERANCE: Final = {False: 1e-9, True: 1e-5}
"""Largest difference between the sum of a row and 1, in float64 and in float32."""

_SYMMETRY_TOLERANCE: Final = 1e-9
"""Relative difference of two distances that roundings explain."""

_UNDERFLOW_PROBABILITY: Final = 1e-300
"""A positive probability below it says that others may have underflowed to zero."""


class Table:
    """A table and its distances, read and checked in blocks of rows.

    Args:
        table: what `audit_table` takes.
        distances: None, or a matrix of distances between inputs.
        log: True if the entries are natural logarithms.
        threads: threads of the compiled core.

    Raises:
        TypeError: if one of them is of the wrong kind.
        ValueError: if a shape does not fit, or a distance is not what a distance is.
    """

    def __init__(self, table: Any, distances: Any, log: bool, threads: int) -> None:
        if isinstance(table, type):
            raise mistyped("table", "a matrix, or an object with shape and log_rows", table)
        self.threads = threads
        self.owner: Any = table if hasattr(table, "log_rows") else None
        self.sparse = self.owner is None and _is_sparse(table)
        if self.sparse and log:
            raise invalid("log", "False for a sparse table, whose gaps are zeros", log)
        self.log = log or self.owner is not None
        if self.owner is None and not self.sparse:
            table = numeric("table", "a matrix of real numbers", table)
        self._entries = table.tocsr() if self.sparse else table
        self.inputs, self.outputs = self._read_shape()
        self.single = _is_single(table)
        self.tiny = False
        self._checked = np.zeros(self.inputs, dtype=bool)
        self._kept: Floats | None = None
        self._distances = self._read_distances(distances)

    @property
    def in_memory(self) -> bool:
        """True where a block of logarithms is a part of an array that is there anyway."""
        entries = self._entries
        return self._kept is not None or (
            self.log
            and type(entries) is np.ndarray
            and entries.dtype == np.float64
            and entries.flags.c_contiguous
            and entries.flags.aligned
        )

    @property
    def has_distances(self) -> bool:
        """True if losses are measured per unit of distance."""
        return self._distances is not None or hasattr(self.owner, "distance_rows")

    def log_rows(self, start: int, stop: int) -> Floats:
        """Return natural logarithms of rows, shape `(stop - start, outputs)`, checked once."""
        if self._kept is None and self.inputs * self.outputs <= _MAX_CACHED_ENTRIES:
            self._kept = self._logarithms(0, self.inputs)
        return self._logarithms(start, stop) if self._kept is None else self._kept[start:stop]

    def rows(self, start: int, stop: int) -> Floats:
        """Return probabilities of rows, shape `(stop - start, outputs)`."""
        if self.log:
            return np.exp(self.log_rows(start, stop))
        return self._checked_rows(start, stop)

    def distance_rows(self, start: int, stop: int) -> Floats | None:
        """Return distances of rows to all inputs, shape `(stop - start, inputs)`, or None."""
        if self._distances is not None:
            return self._distances[start:stop].astype(np.float64, copy=False)
        if not self.has_distances:
            return None
        found = numeric("distance_rows", "a matrix", self.owner.distance_rows(start, stop))
        _check_block("distance_rows", found, (stop - start, self.inputs))
        _check_distances(found, start)
        square = found[:, start:stop]
        _check_symmetry(square, square.T, (start, start))
        return found.astype(np.float64, copy=False)

    def loss_rows(self, start: int, stop: int) -> tuple[Floats, npt.NDArray[Any]]:
        """Return the object's own worst losses, and outputs that attain them."""
        losses, outputs = (np.asarray(one) for one in self.owner.loss_rows(start, stop))
        shape = (stop - start, self.inputs)
        if losses.shape != shape or losses.dtype.kind != "f" or np.isnan(losses).any():
            requirement = f"floats of shape {shape}, none of them NaN"
            raise invalid("losses of loss_rows", requirement, losses)
        if outputs.shape != shape or outputs.dtype.kind not in "iu":
            raise invalid("outputs of loss_rows", f"whole numbers of shape {shape}", outputs)
        return losses.astype(np.float64, copy=False), outputs

    def _read_shape(self) -> tuple[int, int]:
        shape = tuple(getattr(self._entries, "shape", ()))
        if len(shape) != 2 or shape[0] < 2 or shape[1] < 1:
            requirement = "a matrix of at least two rows (inputs) and one column (outputs)"
            raise invalid("table", requirement, shape)
        return int(shape[0]), int(shape[1])

    def _read_distances(self, distances: Any) -> npt.NDArray[Any] | None:
        if distances is None:
            return None
        found = numeric("distances", "a matrix of real numbers", distances)
        if found.shape != (self.inputs, self.inputs):
            requirement = f"of shape {(self.inputs, self.inputs)}, one row for each input"
            raise invalid("distances", requirement, found.shape)
        for start in range(0, self.inputs, 256):
            rows = slice(start, start + 256)
            _check_distances(found[rows], start)
            _check_symmetry(found[rows], found[:, rows].T, (start, 0))
        return found

    def _logarithms(self, start: int, stop: int) -> Floats:
        found = self._checked_rows(start, stop)
        if self.log:
            return found
        out = np.empty_like(found)
        _core.table_logarithms(found, out, self.threads)
        return out

    def _checked_rows(self, start: int, stop: int) -> Floats:
        if self.owner is not None:
            part: Any = numeric("log_rows", "a matrix", self.owner.log_rows(start, stop))
            _check_block("log_rows", part, (stop - start, self.outputs))
            self.single |= _is_single(part)
        else:
            part = self._entries[start:stop]
            part = part.toarray() if self.sparse else part
        found: Floats = np.require(part, np.float64, ("C", "A"))
        if not self._checked[start:stop].all():
            self._check_rows(found, start)
            self._checked[start:stop] = True
        return found

    def _check_rows(self, rows: Floats, start: int) -> None:
        """Refuse what is no distribution, in pieces that need little memory."""
        slack = _ROW_SUM_TOLERANCE[self.single]
        step = max(1, 2**18 // self.outputs)
        for first in range(0, len(rows), step):
            part = rows[first : first + step]
            # Written so that NaN is refused, too.
            right = part <= slack if self.log else part >= 0.0
            if not right.all():
                row, column = np.argwhere(~right)[0]
                kind = "logarithms of at most 0" if self.log else "at least 0 (log=False)"
                value = f"{part[row, column]} in row {start + first + row}, column {column}"
                raise about(ValueError(f"table must be {kind}, got {value}"), "table")
            sums = (np.exp(part) if self.log else part).sum(axis=1)
            wrong = np.flatnonzero(~(np.abs(sums - 1.0) <= slack))
            if wrong.size:
                row, hint = wrong[0], "" if self.log else " (log=True takes logarithms)"
                found = f"a sum of {sums[row]} in row {start + first + row}{hint}"
                text = f"table must be rows that add up to 1 within {slack:g}, got {found}"
                raise about(ValueError(text), "table")
            if not self.log:
                self.tiny |= bool(((part > 0.0) & (part < _UNDERFLOW_PROBABILITY)).any())


def _is_sparse(table: Any) -> bool:
    # Where nobody has imported sparse matrices there are none.
    module = imported_module("scipy.sparse")
    return module is not None and bool(module.issparse(table))


def _is_single(array: Any) -> bool:
    """Return True for floats shorter than float64."""
    dtype: Any = getattr(array, "dtype", np.dtype(np.float64))
    return bool(dtype.kind == "f" and dtype.itemsize < 8)


def _check_block(name: str, block: npt.NDArray[Any], shape: tuple[int, int]) -> None:
    if block.shape != shape:
        raise invalid(name, f"a function that returns shape {shape}", block.shape)


def _check_distances(rows: npt.NDArray[Any], start: int) -> None:
    """Refuse distances of rows from `start` on that are no distances."""
    right = (rows >= 0.0) & (rows < np.inf)
    if not right.all():
        row, column = np.argwhere(~right)[0]
        value = f"{rows[row, column]} of rows {start + row} and {column}"
        text = f"distances must be finite and at least 0, got {value}"
        raise about(ValueError(text), "distances")


def _check_symmetry(rows: npt.NDArray[Any], turned: npt.NDArray[Any], at: tuple[int, int]) -> None:
    """Refuse distances unlike those the other way round; `at` are the numbers of the first."""
    unlike = ~(np.abs(rows - turned) <= _SYMMETRY_TOLERANCE * np.maximum(rows, turned))
    if unlike.any():
        row, column = np.argwhere(unlike)[0]
        place = f"of rows {at[0] + row} and {at[1] + column}"
        value = f"{rows[row, column]} and {turned[row, column]} {place}"
        text = f"distances must be the same from x to x' and from x' to x, got {value}"
        raise about(ValueError(text), "distances")


def labels_of(table: Table) -> tuple[Sequence[Any] | None, Sequence[Any] | None]:
    """Return what the object calls its inputs and its outputs; None where it has no names."""
    inputs = getattr(table.owner, "input_names", getattr(table.owner, "words", None))
    outputs = getattr(table.owner, "output_names", inputs)

    def usable(labels: Any, size: int) -> bool:
        # A mechanism's words may be a method, or fewer than its rows.
        return hasattr(labels, "__getitem__") and len(labels) == size

    return (
        inputs if usable(inputs, table.inputs) else None,
        outputs if usable(outputs, table.outputs) else None,
    )
