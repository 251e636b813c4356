"""Nearest neighbours: the search in a set of points, and neighbour lists for all replicates."""

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
"""Cost of a look-up in sorted numbers, in units of one product of a search."""

RUNS_OUT = 1e-6
"""Largest probability that the list of one query is too short in a replicate."""

BLOCK_BYTES = 2**27
_PRODUCTS_PER_BLOCK = 3e10
_MIN_BLOCK_QUERIES, _MAX_BLOCK_QUERIES = 256, 8192


class Finder:
    """Search for the nearest points in a set.

    Args:
        points: the two sets.
        among: pooled ids of the points to search, ascending, shape (p,).
        threads: number of threads of a search.
        counted: dictionary in which rescans are counted.
    """

    def __init__(self, points: Points, among: Ids, threads: int, counted: dict[str, int]) -> None:
        self.points, self.among, self.threads, self.counted = points, among, threads, counted
        if points.dim == 1:
            values = self._values(among)
            self._order = np.argsort(values, kind="stable")
            self._sorted = values[self._order]

    @property
    def work(self) -> int:
        """Cost of one query, in products."""
        return len(self.among) if self.points.dim > 1 else _SORTED_LOOKUP_WORK

    def nearest(self, queries: Ids, width: int) -> tuple[Ids, Floats]:
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
        """Look up neighbours in the sorted values; mark rows where a tie may extend further.

        The `width` nearest points are among the next `width` values on either side. One more value
        is compared: if it is as near as the last entry, both differences were rounded equally.
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
    """Return the list length at which a replicate keeps `needed` entries of the list.

    Args:
        needed: number of rows (or points) that a query must reach.
        plan: plan to resample rows, or None.
        points: number of points; a list is not longer than this.
        single: True if copies do not count, that is, a point is present or absent.

    Returns:
        The smallest K for which the probability that fewer than `needed` are left is below
        `RUNS_OUT`. For the bootstrap, this is computed by the Poisson law with mean K (the binomial
        law with 1 - 1/e if copies do not count). Otherwise, it is computed by the binomial law with
        the share of kept units, which is wider than the hypergeometric law of single drawn rows.
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
    """Yield blocks of queries that take about a second each.

    A block holds at most `BLOCK_BYTES` at `each` bytes per query, or 256 queries if that is more.
    """
    work = int(_PRODUCTS_PER_BLOCK / max(1, points * dim))
    room = BLOCK_BYTES // max(1, each)
    step = min(max(min(work, room), _MIN_BLOCK_QUERIES), _MAX_BLOCK_QUERIES)
    for start in range(0, queries, step):
        yield slice(start, min(start + step, queries))


class Lists:
    """The nearest distinct points of one set for each query, the nearest first.

    Equal distances are ordered by pooled id. If a query is a point of the set, it is not listed
    itself unless `own` is True. If `own` is False, the queries are the searched set.

    Args:
        task: the two sets, k, and how to resample and to search.
        queries: pooled ids of the queries, shape (q,).
        among: pooled ids of the searched set, ascending, shape (p,).
        own: True if a query may be its own neighbour.
        progress: progress bar that each query advances.

    Attributes:
        listed: pooled ids of the neighbours, shape (q, K).
        log_squared: logarithms of their squared distances, shape (q, K); -inf for distance 0.
        counted: numbers of rescans and run_outs.
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
        """Find the k-th point of each list that is present in a replicate.

        Args:
            weights: copies of each point in the replicate, shape (u,).
            is_needed: True for the queries to compute, shape (q,).
            k: number of points to reach, or all present points if there are fewer.

        Returns:
            For the w needed queries: the number of copies of the points up to the k-th, shape (w,),
            and the logarithm of the squared distance of the k-th point, shape (w,).
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
        """Find the nearest points of some queries, as arrays of at most `entries` columns."""
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
    """Return copies up to the goal-th present point, its log distance, and if the list ran out."""
    number = (copies > 0).cumsum(1, dtype=np.int32)
    ran_out = number[:, -1] < goal
    place = np.argmax(number >= goal[:, None], 1)
    within = np.where(number <= goal[:, None], copies, 0).sum(1, dtype=np.int64)
    logs = np.take_along_axis(log_squared, place[:, None], 1)[:, 0]
    return within, np.where(goal > 0, logs, np.nan), ran_out


class Four:
    """The points of each set and their four neighbour lists: from each set in each set.

    Args:
        task: the two sets, k, and how to resample and to search.
        own: True if a point may be its own neighbour in the same set, as in `Lists`.

    Attributes:
        sets: pooled ids of the points of each set.
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
        """Counts of all four searches together, and the length of the longest list."""
        every = [entry for pair in self.lists for entry in pair]
        names = "rescans", "run_outs"
        longest = max(entry.listed.shape[1] for entry in every)
        return {name: sum(e.counted[name] for e in every) for name in names} | {"list": longest}

    def zeros(self, k: int) -> list[int]:
        """Count rows of each set with a k-th neighbour at distance zero in either set."""
        zero_rows: list[int] = []
        for a, (pair, ids) in enumerate(zip(self.lists, self.sets, strict=True)):
            last = (e.log_squared[:, min(k, e.listed.shape[1]) - 1] for e in pair)
            zero = np.logical_or(*map(np.isneginf, last))
            zero_rows.append(int(pair[0].points.multiplicity[a][ids][zero].sum()))
        return zero_rows


def count_copies(points: Points, side: int, rows: Weights | None = None) -> Weights:
    """Count the copies of every point on one side, shape (u,).

    `rows` holds how often each sample row is present, shape (N,). Defaults to once each.
    """
    if rows is None:
        return points.multiplicity[side].astype(np.uint32)
    counted = np.bincount(points.ids[side], weights=rows, minlength=points.unique)
    return counted.astype(np.uint32)


def average_ratios(
    log_ratios: Floats, copies: npt.NDArray[Any], orders: Floats, constants: Floats
) -> tuple[Floats, Floats]:
    """Compute ln(e^constant times mean of e^(order * log ratio)) / order, and the effective terms.

    Args:
        log_ratios: logarithm of the estimated ratio of densities at each query, shape (q,).
        copies: number of rows at each query, shape (q,).
        orders: alpha - 1 for every alpha, shape (A,). For 0, the value is the mean logarithm.
        constants: logarithms of the factors, shape (A,); not used for order 0.
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
    """Estimate from the lists, with standard errors if there is a plan; treat no row as an atom.

    Args:
        task: what to estimate, and the plan.
        four: neighbour lists of the points of the task.
        formula: function that maps the copies of every point on both sides to values and effective
            terms, shapes (2, A).
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
    """Raise an error if any row has a neighbour at distance zero; `zeros` are counts per set."""
    if not any(zeros):
        return
    both = enumerate(zip(zeros, points.sizes, strict=True))
    shares = " and ".join(f"{n} of {size} rows of y{side}" for side, (n, size) in both if n)
    requirement = (
        f"'ball' or 'score' where rows have a neighbour at distance zero, as {shares} have: the "
        "estimated density would be infinite there"
    )
    raise invalid("method", requirement, method)
