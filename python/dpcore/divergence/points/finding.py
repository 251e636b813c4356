"""The nearest points of a set in order: searched, or looked up where one dimension sorts them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ... import _core
from ..raw import Reals
from .points import Ids, Points

_SORTED_LOOKUP_WORK = 1000
"""Cost of a sorted look-up, in products of a search."""


@dataclass(slots=True, eq=False)
class Finder:
    """Finds the nearest of some points.

    Args:
        points: the two sets.
        among: pooled ids of the points searched, ascending, shape (p,).
        threads: threads of a search.
        counted: where rescans are counted.
    """

    points: Points
    among: Ids
    threads: int
    counted: dict[str, int]
    _order: npt.NDArray[np.int64] = field(init=False)
    _sorted: Reals = field(init=False)

    def __post_init__(self) -> None:
        if self.points.dim == 1:
            values = self._values(self.among)
            self._order = np.argsort(values, kind="stable")
            self._sorted = values[self._order]

    @property
    def work(self) -> int:
        """Cost of one query."""
        return len(self.among) if self.points.dim > 1 else _SORTED_LOOKUP_WORK

    def nearest(self, queries: Ids, width: int) -> tuple[Ids, Reals]:
        """Find the `width` nearest points, ordered by distance, then by pooled id.

        Returns:
            Pooled ids and squared distances, shapes (q, width).
        """
        if self.points.dim > 1:
            return self._searched(queries, width)
        listed, squared, doubtful = self._looked_up(queries, width)
        if doubtful.any():
            listed[doubtful], squared[doubtful] = self._searched(queries[doubtful], width)
        return listed, squared

    def _searched(self, queries: Ids, width: int) -> tuple[Ids, Reals]:
        first = self.points.first
        starts, places, squared, rescans = _core.nearest(
            *self.points.rows, first[queries], first[self.among], width, self.threads
        )
        self.counted["rescans"] += int(rescans)
        # A whole tie shell may follow the last entry: the beginning of the list is exact too.
        cut = starts[:-1, None] + np.arange(width)
        return self.among[places[cut]], squared[cut]

    def _looked_up(self, queries: Ids, width: int) -> tuple[Ids, Reals, npt.NDArray[np.bool_]]:
        """Look up neighbours in the sorted values; mark rows where a tie may reach further.

        The `width` nearest lie among the `width` next values on either side. One more is looked
        at: if it is as near as the last entry, differences have been rounded to the same number.
        """
        values = self._values(queries)
        middle = np.searchsorted(self._sorted, values)
        window = middle[:, None] + np.arange(-width - 1, width + 1)
        inside = (window >= 0) & (window < len(self.among))
        window = np.clip(window, 0, len(self.among) - 1)
        squared = np.where(inside, (values[:, None] - self._sorted[window]) ** 2, np.inf)
        places = self._order[window]
        order = np.lexsort((places, squared), axis=1)[:, :width]
        listed = self.among[np.take_along_axis(places, order, 1)]
        edges = np.minimum(squared[:, 0], squared[:, -1])
        squared = np.take_along_axis(squared, order, 1)
        return listed, squared, edges <= squared[:, -1]

    def _values(self, ids: Ids) -> Reals:
        return self.points.coordinates(ids)[:, 0].astype(np.float64)
