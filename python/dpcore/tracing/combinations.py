"""A linear combination of returned values, with which an audit can certify a fault."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ..records import Floats, Record
from .returned import iterate_leaves

_ROOT: Final = "output"
"""Path of a returned value that is one array of numbers."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OutputCombination(Record, word="OutputCombination"):
    """Linear combination of the entries of one output of a mechanism, computed for each output.

    Args:
        terms: the terms of the combination. Each term is a tuple of three objects: the name of a
            returned value (such as "output"), the index of an entry of this value, and the
            coefficient of this entry. The field `Trace.terms` has the same form.

    Example:
        >>> score = OutputCombination((("output", 0, 1.0), ("output", 1, -1.0)))
        >>> score(np.array([[3.0, 1.0], [5.0, 5.0]])).tolist()
        [2.0, 0.0]
    """

    terms: tuple[tuple[str, int, float], ...]

    cost = 10_000
    """Assumed computing time per output, in nanoseconds."""

    def __call__(self, outputs: Any) -> Floats:
        """Return the combination for each output, shape `(size,)`; NaN if an entry is missing."""
        array = np.asarray(outputs)
        if array.dtype.kind in "biuf" and all(path == _ROOT for path, _, _ in self.terms):
            rows = array.reshape(len(array), -1).astype(np.float64)
            return sum((w * rows[:, e] for _, e, w in self.terms), np.zeros(len(rows)))
        return np.array([self._combine(dict(iterate_leaves(output))) for output in outputs])

    def _combine(self, leaves: dict[str, Any]) -> float:
        try:
            return sum(w * float(np.ravel(leaves[path])[entry]) for path, entry, w in self.terms)
        except (LookupError, TypeError, ValueError):
            return np.nan
