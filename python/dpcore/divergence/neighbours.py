"""Nearest neighbours in a set of points, also for all resampled data sets (replicates)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import invalid
from ..progress import Progress
from ..records import Floats
from .points import Ids, Points, Raw, ResamplingPlan, Task, Weights

_SORTED_LOOKUP_WORK = 1000
"""Cost of one look-up in sorted numbers, in units of one product in a search."""

RUNS_OUT = 1e-6
"""Largest probability that the neighbour list of one query is too short in a replicate."""

BLOCK_BYTES = 2**27
_PRODUCTS_PER_BLOCK = 3e10
_MIN_BLOCK_QUERIES, _MAX_BLOCK_QUERIES = 256, 8192


class Finder:
    """Search for the nearest points in a set.

    Args:
        points: the two sets.
        among: pooled ids of the points among which neighbours are searched, ascending, shape (p,).
            A pooled id is the number of a distinct point of both sets together.
        threads: number of threads of a search.
        counted: dictionary whose entry "rescans" counts the repeated searches.
    """

    def __init__(self, points: Points, among: Ids, threads: int, counted: dict[str, int]) -> None:
        self.points, self.among, self.threads, self.counted = points, among, threads, counted
        if points.dim == 1:
            values = self._values(among)
            self._order = np.argsort(values, kind="stable")
            self._sorted = values[self._order]

    @property
    def work(self) -> int:
        """Cost of the search for the neighbours of one point, in units of one product."""
        return len(self.among) if self.points.dim > 1 else _SORTED_LOOKUP_WORK

    def nearest(self, queries: Ids, width: int) -> tuple[Ids, Floats]:
        """Find the `width` points nearest to each of q queries, given by their pooled ids.

        Returns:
            Pooled ids and squared distances of these points, shape (q, width). They are ordered by
            distance, and at equal distances by pooled id.
        """
        if self.points.dim > 1:
            return self._searched(queries, width)
        listed, squared, doubtful = self._looked_up(queries, width)
        if doubtful.any():
            listed[doubtful], squared[doubtful] = self._searched(queries[doubtful], width)
        return listed, squared

    def _searched(self, queries: Ids, width: int) -> tuple[Ids, Floats]:
        first = self.points.first
        starts, places, squared, rescans = _core.nearest(
            *self.points.rows, first[queries], first[self.among], width, self.threads
        )
        self.counted["rescans"] += int(rescans)
        # All points tied with the last entry may follow it; the first `width` entries are exact.
        cut = starts[:-1, None] + np.arange(width)
        return self.among[places[cut]], squared[cut]

    def _looked_up(self, queries: Ids, width: int) -> tuple[Ids, Floats, npt.NDArray[np.bool_]]:
        """Look up neighbours of queries in the sorted values (one dimension only).

        The `width` nearest points are among the next `width` values on either side. One more value
        on either side is compared. The third result is True for a query if this value is as near as
        the last neighbour. Then further values may be equally near.
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

    def _values(self, ids: Ids) -> Floats:
        return self.points.coordinates(ids)[:, 0].astype(np.float64)


def list_length(
    needed: int, plan: ResamplingPlan | None, points: int, *, single: bool = False
) -> int:
    """Return the length of a neighbour list of which every replicate keeps `needed` entries.

    A replicate is a resampled data set, from which some points of the list are missing.

    Args:
        needed: number of rows (or points) that must be left in the list.
        plan: plan to resample rows, or None.
        points: number of points in the set, the largest possible length.
        single: True to count points, False to count rows (copies of points).

    Returns:
        The smallest length K for which fewer than `needed` entries are left with a probability
        below 1e-6 (`RUNS_OUT`). For the bootstrap, the number of rows left is Poisson with mean K,
        and the number of points left is binomial with probability 1 - 1/e. For the other plans, the
        function uses the binomial law with the share of rows kept. This law is wider than the exact
        hypergeometric law.
    """
    if plan is None or needed >= points:
        return min(needed, points)
    from scipy.special import bdtr, pdtr

    entries = np.arange(needed, 8 * needed + 200)
    if plan.kind == "bootstrap" and not single:
        falls_short = pdtr(needed - 1, entries)
    else:
        units = min(plan.units)
        kept = {"jackknife": 1 - 1 / units, "subsample": (units // 2) / units}
        falls_short = bdtr(float(needed - 1), entries, kept.get(plan.kind, 1 - np.exp(-1)))
    return min(int(entries[np.argmax(falls_short < RUNS_OUT)]), points)


def iterate_queries(queries: int, points: int, dim: int, each: int) -> Iterator[slice]:
    """Yield consecutive blocks of queries, each of which takes about a second.

    A query takes `each` bytes. A block takes at most 128 MiB (`BLOCK_BYTES`), or has 256 queries if
    this is more.
    """
    work = int(_PRODUCTS_PER_BLOCK / max(1, points * dim))
    room = BLOCK_BYTES // max(1, each)
    step = min(max(min(work, room), _MIN_BLOCK_QUERIES), _MAX_BLOCK_QUERIES)
    for start in range(0, queries, step):
        yield slice(start, min(start + step, queries))


class Lists:
    """For each query (a point), the list of the nearest distinct points of one set, nearest first.

    A pooled id is the number of a distinct point of both sets together. Points at equal distances
    are ordered by pooled id. If `own` is False, the queries are the points of the searched set, and
    a query is not in its own list.

    Args:
        task: the two sets, k, the plan to resample, and the number of threads.
        queries: pooled ids of the queries, shape (q,).
        among: pooled ids of the points of the searched set, ascending, shape (p,).
        own: True if a query may be its own neighbour.
        progress: progress bar, which advances by one step for each query.

    Attributes:
        listed: pooled ids of the neighbours, shape (q, K).
        log_squared: logarithms of the squared distances of these neighbours, shape (q, K); -inf for
            distance 0.
        counted: numbers of repeated searches ("rescans") and of lists that were too short in a
            replicate ("run_outs").
    """

    def __init__(self, task: Task, queries: Ids, among: Ids, own: bool, progress: Progress) -> None:
        self.points, self.threads = task.points, task.threads
        self.queries, self.among, self.own = queries, among, own
        self.counted = {"rescans": 0, "run_outs": 0}
        entries = list_length(task.k, task.plan, len(among), single=True)
        entries = min(entries, len(among) - (0 if own else 1))
        self.listed = np.empty((len(queries), entries), np.uint32)
        self.log_squared = np.empty((len(queries), entries))
        finder = self._finder(among)
        for block in iterate_queries(len(queries), finder.work, task.points.dim, 12 * entries):
            neighbours = self._search(queries[block], finder, entries)
            self.listed[block], self.log_squared[block] = neighbours
            progress.advance(block.stop - block.start)

    def reach(
        self, weights: Weights, is_needed: npt.NDArray[np.bool_], k: int
    ) -> tuple[Any, Floats]:
        """Find the k-th nearest point of each query among the points present in a replicate.

        A replicate is a resampled data set, from which some points are missing.

        Args:
            weights: number of copies of each of the u points in the replicate, shape (u,).
            is_needed: True for each query to be computed, shape (q,).
            k: number of the neighbour. If fewer than k points are present, the last one is used.

        Returns:
            Two arrays of shape (w,) for the w queries to be computed: the number of copies of the k
            nearest points together, and the logarithm of the squared distance of the k-th point.
        """
        there = weights[self.among] > 0
        copies = np.zeros(int(is_needed.sum()), np.int64)
        log_squared = np.empty(len(copies))
        places = np.nonzero(is_needed)[0]
        left = np.full(len(self.queries), np.count_nonzero(there))
        if not self.own:
            left -= there
        reached = np.minimum(k, left)
        step = max(1, BLOCK_BYTES // (32 * max(1, self.listed.shape[1])))
        short = []
        for start in range(0, len(places), step):
            block = slice(start, start + step)
            mine = places[block]
            goal = reached[mine]
            copies[block], log_squared[block], ran_out = _walk_copies(
                weights[self.listed[mine]], self.log_squared[mine], goal
            )
            short.append(start + np.nonzero(ran_out)[0])
        again = np.concatenate(short) if short else np.zeros(0, np.int64)
        if len(again):
            self.counted["run_outs"] += len(again)
            mine = places[again]
            listed, logs = self._search(self.queries[mine], self._finder(self.among[there]), k)
            distances = _walk_copies(
                weights[listed], logs, np.minimum(reached[mine], listed.shape[1])
            )
            copies[again], log_squared[again] = distances[:2]
        return copies, log_squared

    def _finder(self, among: Ids) -> Finder:
        return Finder(self.points, among, self.threads, self.counted)

    def _search(self, queries: Ids, finder: Finder, entries: int) -> tuple[Ids, Floats]:
        """Find the nearest points of some queries: ids and log squared distances.

        Both arrays have one row for each query and at most `entries` columns.
        """
        skipped = 0 if self.own else 1
        width = min(entries + skipped, len(finder.among))
        listed, squared = finder.nearest(queries, width)
        if skipped:
            others = listed != queries[:, None]
            others[others.all(1), -1] = False
            shape = len(queries), width - 1
            listed, squared = listed[others].reshape(shape), squared[others].reshape(shape)
        with np.errstate(divide="ignore"):
            return listed, np.log(squared)


def _walk_copies(
    copies: npt.NDArray[Any], log_squared: Floats, goal: npt.NDArray[np.int64]
) -> tuple[Any, Floats, npt.NDArray[np.bool_]]:
    """Count the copies of the first `goal` present points of each list.

    Return these counts, the logarithm of the squared distance of the last of these points, and True
    for each list with fewer than `goal` present points.
    """
    number = (copies > 0).cumsum(1, dtype=np.int32)
    ran_out = number[:, -1] < goal
    place = np.argmax(number >= goal[:, None], 1)
    within = np.where(number <= goal[:, None], copies, 0).sum(1, dtype=np.int64)
    logs = np.take_along_axis(log_squared, place[:, None], 1)[:, 0]
    return within, np.where(goal > 0, logs, np.nan), ran_out


class Four:
    """The neighbours of the points of each set, in the same set and in the other set.

    Args:
        task: the two sets, k, the plan to resample, and the number of threads.
        own: True if a point may be its own neighbour in the same set.

    Attributes:
        sets: pooled ids (numbers of the distinct points of both sets) of the points of each set.
        lists: lists[a][b] holds the neighbours in set b of the points of set a.
    """

    def __init__(self, task: Task, *, own: bool) -> None:
        self.sets = [np.nonzero(m)[0].astype(np.uint32) for m in task.points.multiplicity]
        with Progress("searching", 2 * sum(map(len, self.sets)), task.progress) as shown:
            self.lists = [
                [Lists(task, ids, among, own or among is not ids, shown) for among in self.sets]
                for ids in self.sets
            ]

    @property
    def counted(self) -> dict[str, int]:
        """Numbers of repeated searches and of short lists, and the length of the longest list."""
        every = [entry for pair in self.lists for entry in pair]
        names = "rescans", "run_outs"
        longest = max(entry.listed.shape[1] for entry in every)
        return {name: sum(e.counted[name] for e in every) for name in names} | {"list": longest}

    def zeros(self, k: int) -> list[int]:
        """Count the rows of each set whose k-th neighbour, in either set, is at distance zero."""
        zero_rows: list[int] = []
        for a, (pair, ids) in enumerate(zip(self.lists, self.sets, strict=True)):
            last = (e.log_squared[:, min(k, e.listed.shape[1]) - 1] for e in pair)
            zero = np.logical_or(*map(np.isneginf, last))
            zero_rows.append(int(pair[0].points.multiplicity[a][ids][zero].sum()))
        return zero_rows


def count_copies(points: Points, side: int, rows: Weights | None = None) -> Weights:
    """Count the rows of one set (0 or 1) at each of the u distinct points, shape (u,).

    `rows` holds the number of times that each of the N rows of the set is present, shape (N,). By
    default, each row is present once.
    """
    if rows is None:
        return points.multiplicity[side].astype(np.uint32)
    counted = np.bincount(points.ids[side], weights=rows, minlength=points.unique)
    return counted.astype(np.uint32)


def average_ratios(
    log_ratios: Floats, copies: npt.NDArray[Any], orders: Floats, constants: Floats
) -> tuple[Floats, Floats]:
    """Compute ln(e^constant * mean[e^(order * log ratio)]) / order for each order.

    The second result is the effective number of terms of each mean.

    Args:
        log_ratios: logarithm of the estimated ratio of densities at each query, shape (q,).
        copies: number of rows at each query, shape (q,), the weights of the mean.
        orders: alpha - 1 for every alpha, shape (A,). For 0, the result is the mean of
            `log_ratios`.
        constants: the constant for each order, shape (A,); not used for order 0.
    """
    total = copies.sum()
    value, effective = np.empty(len(orders)), np.empty(len(orders))
    for i, order in enumerate(orders):
        if order == 0.0:
            value[i], effective[i] = (copies * log_ratios).sum() / total, total
            continue
        powers = order * log_ratios
        peak = powers.max()
        terms = np.exp(powers - peak)
        mass = (copies * terms).sum()
        value[i] = (constants[i] + peak + np.log(mass / total)) / order
        effective[i] = mass**2 / (copies * terms**2).sum()
    return value, effective


def from_lists(
    task: Task, four: Four, formula: Callable[[Weights, Weights], tuple[Floats, Floats]]
) -> Raw:
    """Estimate divergences from neighbour lists, with standard errors if there is a plan.

    Args:
        task: the two sets, the A orders, and the plan to resample.
        four: neighbour lists of the points of both sets.
        formula: function that maps the number of copies of every point, for each set, to estimates
            and effective numbers of terms, both of shape (2, A).
    """
    points, plan = task.points, task.plan
    value, effective = formula(count_copies(points, 0), count_copies(points, 1))
    error, replicates = np.full(value.shape, np.nan), None
    if plan is not None:
        replicates = np.empty((plan.replicates, *value.shape))
        with Progress("resampling", plan.replicates, task.progress) as shown:
            for start, stop in plan.chunks(sum(points.sizes)):
                weights = plan.weights(start, stop)
                for i, (rows0, rows1) in enumerate(zip(*weights, strict=True), start):
                    there = count_copies(points, 0, rows0), count_copies(points, 1, rows1)
                    replicates[i] = formula(*there)[0]
                    shown.advance(1)
        error = plan.std_error(replicates)
    return Raw(
        value=value,
        std_error=error,
        depth=(task.k, task.k),
        ceiling=np.full(value.shape, np.nan),
        effective=effective,
        replicates=replicates,
        counted=four.counted,
    )


def refuse_zeros(method: str, points: Points, zeros: Sequence[int]) -> None:
    """Raise an error unless `zeros`, the numbers of rows with a neighbour at distance 0, are 0."""
    if not any(zeros):
        return
    both = enumerate(zip(zeros, points.sizes, strict=True))
    shares = " and ".join(f"{n} of {size} rows of y{side}" for side, (n, size) in both if n)
    requirement = (
        f"'ball' or 'score' where rows have a neighbour at distance zero, as {shares} have: the "
        "estimated density would be infinite there"
    )
    raise invalid("method", requirement, method)
