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
    """Search for the points of one set that are nearest to given points.

    All distinct points of two sets are numbered together. The number of a point is its pooled id.

    Args:
        points: the two sets.
        among: pooled ids of the p points of the searched set, ascending, shape (p,).
        threads: number of threads of a search.
        counted: dictionary with an entry "rescans". The finder adds the number of repeated searches
            to this entry.
    """

    def __init__(self, points: Points, among: Ids, threads: int, counted: dict[str, int]) -> None:
        self.points, self.among, self.threads, self.counted = points, among, threads, counted
        if points.dim == 1:
            values = self._scalars(among)
            self._order = np.argsort(values, kind="stable")
            self._sorted = values[self._order]

    @property
    def query_cost(self) -> int:
        """Cost of the search for the neighbours of one point, in multiplications per coordinate."""
        return len(self.among) if self.points.dim > 1 else _SORTED_LOOKUP_WORK

    def nearest(self, queries: Ids, width: int) -> tuple[Ids, Floats]:
        """Find the `width` points of the searched set that are nearest to each of q given points.

        All distinct points of two sets are numbered together. The number of a point is its pooled
        id. `queries` holds the pooled ids of the given points, shape (q,).

        Returns:
            Pooled ids of the nearest points, and their squared distances from the given points,
            each of shape (q, width). The points are ordered by distance. Points at equal distances
            are ordered by pooled id.
        """
        if self.points.dim > 1:
            return self._brute_knn_squared(queries, width)
        listed, squared, doubtful = self._search_sorted(queries, width)
        if doubtful.any():
            listed[doubtful], squared[doubtful] = self._brute_knn_squared(queries[doubtful], width)
        return listed, squared

    def _brute_knn_squared(self, queries: Ids, width: int) -> tuple[Ids, Floats]:
        first = self.points.first_row_indices
        starts, places, squared, rescans = _core.nearest(
            *self.points.rows, first[queries], first[self.among], width, self.threads
        )
        self.counted["rescans"] += int(rescans)
        # All points tied with the last entry may follow it; the first `width` entries are exact.
        cut = starts[:-1, None] + np.arange(width)
        return self.among[places[cut]], squared[cut]

    def _search_sorted(self, queries: Ids, width: int) -> tuple[Ids, Floats, npt.NDArray[np.bool_]]:
        """Look up neighbours of queries in the sorted values (one dimension only).

        The `width` nearest points are among the next `width` values on either side. The next value
        on either side is also compared. The third result is True for a query if one of these two
        values is as near as the last neighbour. Then further values may be equally near.
        """
        values = self._scalars(queries)
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

    def _scalars(self, ids: Ids) -> Floats:
        return self.points.coordinates(ids)[:, 0].astype(np.float64)


def required_list_length(
    needed: int, plan: ResamplingPlan | None, points: int, *, single: bool = False
) -> int:
    """Return how many nearest neighbours to store, so that enough of them remain after resampling.

    A list holds the nearest neighbours of a point. Some of them are missing in a resampled data
    set. The function returns the length of the list.

    Args:
        needed: number of rows (or of distinct points) of the list that must remain.
        plan: plan to resample rows, or None if rows are not resampled.
        points: number of points in the searched set. The list is not longer than this number.
        single: True if `needed` counts distinct points. False if it counts rows (copies of points).

    Returns:
        The smallest length K with this property: the probability that fewer than `needed` entries
        remain is below 1e-6 (`RUNS_OUT`). Under the bootstrap, the number of remaining rows is
        Poisson with mean K, and the number of remaining points is binomial with probability 1 -
        1/e. For the other plans, the function uses a binomial distribution with the share of kept
        rows as probability. This distribution is wider than the exact hypergeometric distribution.
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
    """Divide neighbour searches into blocks, and yield each block as a slice of indices.

    A block takes about a second. `queries` is the number of points whose neighbours are searched,
    and `points` is the number of points among which these neighbours are searched. Each search
    takes `each` bytes of memory. A block takes at most 128 MiB (`BLOCK_BYTES`), but contains at
    least 256 searches (or all searches if there are fewer).
    """
    work = int(_PRODUCTS_PER_BLOCK / max(1, points * dim))
    room = BLOCK_BYTES // max(1, each)
    step = min(max(min(work, room), _MIN_BLOCK_QUERIES), _MAX_BLOCK_QUERIES)
    for start in range(0, queries, step):
        yield slice(start, min(start + step, queries))


class Lists:
    """Lists of the nearest points of one set, one list for each of q given points.

    All distinct points of two sets are numbered together. The number of a point is its pooled id. A
    list contains distinct points, and the nearest point comes first. Points at equal distances are
    ordered by pooled id.

    Args:
        task: the two sets, k, the plan to resample, and the number of threads.
        queries: pooled ids of the q given points, shape (q,).
        among: pooled ids of the points of the searched set, ascending, shape (p,).
        own: True if a point may be in its own list. If False, the given points must be the points
            of the searched set.
        progress: progress bar. It advances by one step for each of the given points.

    Attributes:
        listed: pooled ids of the neighbours, shape (q, K).
        log_squared: logarithms of the squared distances of these neighbours, shape (q, K); -inf for
            distance 0.
        counted: number of repeated searches ("rescans"), and number of lists that were too short
            for a resampled data set ("run_outs").
    """

    def __init__(self, task: Task, queries: Ids, among: Ids, own: bool, progress: Progress) -> None:
        self.points, self.threads = task.points, task.threads
        self.queries, self.among, self.own = queries, among, own
        self.counted = {"rescans": 0, "run_outs": 0}
        entries = required_list_length(task.k, task.plan, len(among), single=True)
        entries = min(entries, len(among) - (0 if own else 1))
        self.listed = np.empty((len(queries), entries), np.uint32)
        self.log_squared = np.empty((len(queries), entries))
        finder = self._make_finder(among)
        for block in iterate_queries(
            len(queries), finder.query_cost, task.points.dim, 12 * entries
        ):
            neighbours = self._search(queries[block], finder, entries)
            self.listed[block], self.log_squared[block] = neighbours
            progress.advance(block.stop - block.start)

    def copies_up_to_kth_and_log_squared(
        self, weights: Weights, is_needed: npt.NDArray[np.bool_], k: int
    ) -> tuple[npt.NDArray[np.int64], Floats]:
        """Find the k-th nearest point of each given point in a resampled data set.

        Some points of the searched set are missing in a resampled data set.

        Args:
            weights: number of copies of each of the u distinct points in the resampled data set,
                shape (u,).
            is_needed: for each of the q given points, True if its k-th nearest point is wanted,
                shape (q,).
            k: rank of the wanted neighbour. If fewer than k points are present, the farthest one is
                used.

        Returns:
            Two arrays with one entry for each of the w given points with `is_needed` True, shape
            (w,). The first array holds the total number of copies of the k nearest points. The
            second array holds the logarithm of the squared distance to the k-th nearest point.
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
            copies[block], log_squared[block], ran_out = _copies_up_to_nth_and_distance(
                weights[self.listed[mine]], self.log_squared[mine], goal
            )
            short.append(start + np.nonzero(ran_out)[0])
        again = np.concatenate(short) if short else np.zeros(0, np.int64)
        if len(again):
            self.counted["run_outs"] += len(again)
            mine = places[again]
            listed, logs = self._search(self.queries[mine], self._make_finder(self.among[there]), k)
            distances = _copies_up_to_nth_and_distance(
                weights[listed], logs, np.minimum(reached[mine], listed.shape[1])
            )
            copies[again], log_squared[again] = distances[:2]
        return copies, log_squared

    def _make_finder(self, among: Ids) -> Finder:
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


def _copies_up_to_nth_and_distance(
    copies: npt.NDArray[Any], log_squared: Floats, point_count: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], Floats, npt.NDArray[np.bool_]]:
    """Count the copies of the first `point_count` points of each list that have copies.

    The points without copies are skipped. Return the counts, the logarithm of the squared distance
    of the last counted point, and True for each list with fewer than `point_count` such points.
    """
    number = (copies > 0).cumsum(1, dtype=np.int32)
    ran_out = number[:, -1] < point_count
    place = np.argmax(number >= point_count[:, None], 1)
    within = np.where(number <= point_count[:, None], copies, 0).sum(1, dtype=np.int64)
    logs = np.take_along_axis(log_squared, place[:, None], 1)[:, 0]
    return within, np.where(point_count > 0, logs, np.nan), ran_out


class Four:
    """Nearest neighbours of the points of two sets, in the same set and in the other set.

    All distinct points of both sets are numbered together. The number of a point is its pooled id.

    Args:
        task: the two sets, k, the plan to resample, and the number of threads.
        own: True if a point may be its own neighbour in the same set.

    Attributes:
        sets: pooled ids of the distinct points of each set.
        lists: lists[a][b] holds, for each point of set a, its nearest neighbours in set b.
    """

    def __init__(self, task: Task, *, own: bool) -> None:
        self.sets = [np.nonzero(m)[0].astype(np.uint32) for m in task.points.multiplicity]
        with Progress("searching", 2 * sum(map(len, self.sets)), task.progress) as shown:
            self.lists = [
                [Lists(task, ids, among, own or among is not ids, shown) for among in self.sets]
                for ids in self.sets
            ]

    @property
    def search_counters(self) -> dict[str, int]:
        """Counts of the neighbour search, by name.

        The entry "rescans" is the number of repeated searches. Each point has a list of its nearest
        neighbours. The entry "run_outs" is the number of lists that were too short for a resampled
        data set. The entry "list" is the length of the longest list.
        """
        every = [entry for pair in self.lists for entry in pair]
        names = "rescans", "run_outs"
        longest = max(entry.listed.shape[1] for entry in every)
        return {name: sum(e.counted[name] for e in every) for name in names} | {"list": longest}

    def count_zero_radius_rows_per_set(self, k: int) -> list[int]:
        """Count the rows of each set whose k-th nearest neighbour is at distance zero.

        A row is counted if its k-th nearest neighbour in at least one of the two sets is at
        distance zero.
        """
        zero_rows: list[int] = []
        for a, (pair, ids) in enumerate(zip(self.lists, self.sets, strict=True)):
            last = (e.log_squared[:, min(k, e.listed.shape[1]) - 1] for e in pair)
            zero = np.logical_or(*map(np.isneginf, last))
            zero_rows.append(int(pair[0].points.multiplicity[a][ids][zero].sum()))
        return zero_rows


def count_copies(points: Points, side: int, rows: Weights | None = None) -> Weights:
    """Count how many rows of one set are equal to each distinct point.

    The result has shape (u,), for the u distinct points of two sets. `side` is the index of the set
    whose rows are counted, 0 or 1. `rows` holds the number of times that each of the N rows of this
    set is present, shape (N,). By default, each row is present once.
    """
    if rows is None:
        return points.multiplicity[side].astype(np.uint32)
    counted = np.bincount(points.ids[side], weights=rows, minlength=points.unique)
    return counted.astype(np.uint32)


def log_means_n_eff(
    log_ratios: Floats, copies: npt.NDArray[Any], orders: Floats, constants: Floats
) -> tuple[Floats, Floats]:
    """Compute ln(e^constant * mean[ratio^order]) / order for each order.

    The second result is the effective number of terms of each mean, (sum w)^2 / sum w^2 with the
    terms w = ratio^order.

    Args:
        log_ratios: logarithm of the estimated ratio of densities at each of q points, shape (q,).
        copies: number of rows at each point, shape (q,). These numbers are the weights of the mean.
        orders: alpha - 1 for every alpha, shape (A,). For 0, the result is the mean of
            `log_ratios`.
        constants: the constant in the formula for each order, shape (A,). It is not used for order
            0.
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


def estimate_from_lists(
    task: Task, four: Four, formula: Callable[[Weights, Weights], tuple[Floats, Floats]]
) -> Raw:
    """Estimate Renyi divergences of two sets from neighbour lists of their points.

    The standard errors are computed by resampling rows. They are NaN if `task` has no plan to
    resample.

    Args:
        task: the two sets, the A orders, and the plan to resample.
        four: neighbour lists of the points of both sets.
        formula: function of two arrays. The first array holds the number of rows of the first set
            at every distinct point, and the second array holds the same for the second set. The
            function returns the estimates, and the effective number of terms of each average, both
            of shape (2, A).
    """
    points, plan = task.points, task.plan
    value, effective = formula(count_copies(points, 0), count_copies(points, 1))
    error, replicates = np.full(value.shape, np.nan), None
    if plan is not None:
        replicates = np.empty((plan.replicates, *value.shape))
        with Progress("resampling", plan.replicates, task.progress) as shown:
            for start, stop in plan.split_replicates(sum(points.sizes)):
                weights = plan.replicate_counts(start, stop)
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
        counted=four.search_counters,
    )


def refuse_zeros(method: str, points: Points, zeros: Sequence[int]) -> None:
    """Raise an error if rows of a set have their k-th nearest neighbour at distance 0.

    `zeros` holds the number of such rows for each set. `method` is the name of the estimator in the
    message.
    """
    if not any(zeros):
        return
    both = enumerate(zip(zeros, points.sizes, strict=True))
    shares = " and ".join(f"{n} of {size} rows of y{side}" for side, (n, size) in both if n)
    requirement = (
        f"'ball' or 'score' where rows have a neighbour at distance zero, as {shares} have: the "
        "estimated density would be infinite there"
    )
    raise invalid("method", requirement, method)
