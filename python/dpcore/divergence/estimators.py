"""Nearest-neighbour estimators of Renyi divergences from two sets of rows.

There are three estimators. The first counts the rows of both sets in a common ball around each row.
The second is by Poczos and Schneider and uses ratios of distances. The third is by Gusain and
Leith, either as printed or with misprints corrected. The first estimator treats values at which
many rows coincide as atoms (values of positive probability). At an atom, it counts the rows and
does not search for neighbours.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import invalid
from ..progress import Progress
from ..records import Flags, Floats
from ..streams import threads_of
from . import neighbours
from .points import Ids, Labels, Points, Raw, ResamplingPlan, Task, Weights

KAPPA = 5
"""A row is on an atom if at least this many other rows of one set are equal to it."""

NEARLY_ALL = 0.99
"""If at least this share of the rows are on atoms, every point is treated like an atom."""

_MIN_REPEATED_SHARE = 0.01
"""If the share of repeated rows is below this value, rows per repeated value are not reported."""


CAP = 4096
CAP_BYTES = 2**30
"""A list of neighbours has at most CAP entries, or its equal share of CAP_BYTES if that is more."""

Arrays = tuple[npt.NDArray[Any], ...]

_START_ARRAYS = (0, 3)
"""Numbers of the arrays that state where each query begins in the arrays that follow."""

HIGH = 20
"""Above this dimension, a note warns that distances are raised to a high power."""


class Atoms(NamedTuple):
    """The atoms of two sets of rows: values at which at least 5 rows of one set coincide.

    Args:
        of: one array for D(P0||P1), and one for D(P1||P0). Each array has one entry for each of the
            u distinct points of both sets. An entry is True if the estimate for this direction
            treats the point as an atom. If at least 99 % of the rows are on atoms, every point is
            treated as an atom.
        share: share of the rows of each set that are on atoms, shape (2,).
        rows_per_atom: average number of rows (of both sets together) at a repeated value. It is NaN
            if fewer than 1 % of the rows are at repeated values.
    """

    of: tuple[Flags, Flags]
    share: Floats
    rows_per_atom: float


def find_atoms(multiplicity: tuple[Labels, Labels]) -> Atoms:
    """Find the atoms of two sets of rows. An atom is a value at which many rows coincide.

    `multiplicity` holds the number of rows of each set at every distinct point of both sets.
    """
    m0, m1 = multiplicity
    both, rows = m0 + m1, int((m0 + m1).sum())
    several = both > 1
    repeated = int(both[several].sum())
    of = np.maximum(m0 - 1, m1) >= KAPPA, np.maximum(m1 - 1, m0) >= KAPPA
    either = of[0] | of[1]
    if both[either].sum() >= NEARLY_ALL * rows:
        of, either = (np.ones(len(m0), bool),) * 2, several
    share = np.array([m[either].sum() / m.sum() for m in multiplicity])
    few = repeated < _MIN_REPEATED_SHARE * rows
    return Atoms(of, share, np.nan if few else float(repeated / np.count_nonzero(several)))


def line_ball(
    values0: npt.NDArray[Any],
    values1: npt.NDArray[Any],
    alphas: Floats,
    k: int,
    plan: ResamplingPlan | None,
    threads: int | None,
) -> Raw:
    """Estimate Renyi divergences of two sets of numbers from counts of the numbers in intervals.

    A ball is an interval around a number. The function `estimate_by_balls` uses the same formula
    and explains it. The distance of two numbers y and a is |y - a|, rounded to float64.

    If rows are not resampled (`plan` is None), the memory per row is at most 32 bytes. Otherwise,
    the memory per row is 40 bytes, plus 8 bytes for each thread, plus 4 bytes for each resampled
    data set that is computed at the same time.

    Args:
        values0: one number for each row of the first set, shape (N0,), finite.
        values1: one number for each row of the second set, shape (N1,), finite.
        alphas: orders, positive, shape (A,); 1.0 is the KL divergence.
        k: number of rows of the other set inside the ball around a row. If the other set is larger
            than the row's own set, the number is multiplied by the ratio of the sizes.
        plan: plan by which rows are resampled, or None if no standard errors are needed. The radii
            of the balls are computed again for every resampled data set. The atoms (values at which
            many rows coincide) are the same as in the sample, and so is the number of rows that
            defines a ball.
        threads: number of threads of the search. Defaults to all cores.

    Returns:
        The estimates of D(P0||P1) and D(P1||P0) at all orders. For subsampling and the bootstrap,
        the field `replicates` holds the estimates on the resampled rows.
    """
    sets = tuple(np.require(values, np.float64, ("C", "A")) for values in (values0, values1))
    alphas = np.ascontiguousarray(alphas, np.float64)
    using = threads_of(threads)

    none = None, None

    def found(labels: Any = none, units: Any = (0, 0), weights: Any = none) -> tuple[Any, ...]:
        first, second = zip(labels, units, strict=True)
        of = sets[0], sets[1], alphas, k
        return _core.line_ball(*of, *first, *second, weights[0], weights[1], using)

    shape = -1, 2, len(alphas)
    error, replicates, counted = np.full(shape[1:], np.nan), None, 0
    if plan is not None and plan.kind == "jackknife":
        labels = tuple(np.ascontiguousarray(label, np.int64) for label in plan.labels)
        result = found(labels, plan.units)
        left_out = result[-1].reshape(shape)
        error, counted = plan.std_error(left_out), len(left_out)
    else:
        result = found()
    if plan is not None and plan.kind != "jackknife":
        chunks = plan.split_replicates(len(sets[0]) + len(sets[1]))
        parts = [found(weights=plan.replicate_counts(*chunk))[-1] for chunk in chunks]
        replicates = np.concatenate(parts).reshape(shape)
        error, counted = plan.std_error(replicates), len(replicates)
    value, effective, depth, unseen_share, atom_share, rows_per_atom, _ = result
    return Raw(
        value=value.reshape(shape[1:]),
        std_error=error,
        depth=(depth[0], depth[1]),
        ceiling=np.stack([max_possible_values(len(sets[1 - a]), depth[a], alphas) for a in (0, 1)]),
        effective=effective.reshape(shape[1:]),
        unseen_share=np.array(unseen_share),
        atom_share=np.array(atom_share),
        rows_per_atom=rows_per_atom,
        replicates=replicates,
        counted={"replicates": counted},
        beyond_share=np.array([_share_outside(*sets), _share_outside(*sets[::-1])]),
    )


def _share_outside(values: Floats, others: Floats) -> float:
    """Return the share of `values` that lie below or above all of `others`."""
    outside = np.count_nonzero(values < others.min()) + np.count_nonzero(values > others.max())
    return outside / len(values)


def max_possible_values(size: int, minimum_ball_rows: int, alphas: Floats) -> Floats:
    """Compute the largest divergence that the method "ball" can estimate, for each order.

    A ball around a row of the numerator (the set of P in D(P||Q)) contains at least
    `minimum_ball_rows` rows of the denominator (the set of Q). The estimate is largest if every
    ball contains all rows of the numerator, and exactly `minimum_ball_rows` rows of the
    denominator. `size` is the number of rows of the denominator.
    """
    ends = np.array([size + 1.0, float(minimum_ball_rows)])
    out = np.empty(len(alphas))
    for i, order in enumerate((alphas - 1.0).tolist()):
        if order == 0.0:
            out[i] = _core.digamma(size + 1.0) - _core.digamma(float(minimum_ball_rows))
        else:
            upper, lower = _core.log_gamma_ratio(ends, order)
            out[i] = (upper - lower) / order
    return out


def estimate_by_balls(task: Task) -> Raw:
    """Estimate Renyi divergences from the numbers of rows of both sets near each row.

    Let k1 = ceil(k max(1, N1/N0)). Here N0 and N1 are the numbers of rows of the sets Y0 and Y1.
    The radius of the ball around a row y of Y0 is the distance to the k1-th nearest row of Y1. All
    rows at this distance are inside the ball. Let n be the number of rows of Y0 in the ball,
    without y itself. Let j be the number of rows of Y1 in the ball, minus one. With b = alpha - 1
    and (x)_b = Gamma(x + 1) / Gamma(x - b + 1) (0 if x - b + 1 <= 0),

        T = mean[(n)_b / (N0 - 1)_b * Gamma(N1 + 1 + b) / Gamma(N1 + 1)
                 / (Gamma(j + 1 + b) / Gamma(j + 1))],
        D_alpha = ln T / b,    D_1 = mean[psi(n + 1) - psi(j + 1)] - psi(N0) + psi(N1 + 1).

    A point is an atom if at least 5 rows of Y1, or at least 6 rows of Y0, are equal to this point.
    At an atom, n is the number of rows of Y0 at this point, minus one. j is the number of rows of
    Y1 at this point. The neighbour search uses only the points that are not atoms. If at least 99 %
    of all rows are on atoms, every point is treated as an atom. D(P1||P0) is computed in the same
    way, with Y0 and Y1 exchanged. In one dimension, the rows are sorted, and no search is needed.

    Memory in two or more dimensions, for each distinct point that is not an atom:

    - 20 bytes for each of the K nearest points of the other set. K is k1 without a plan to
      resample, and somewhat larger with a plan.
    - 4 bytes for each listed point of the same set. Usually, the points inside the largest ball
      around the point are listed. If the points outside the smallest ball are fewer, those points
      are listed instead. Each list is limited to 4096 points, or to its equal share of 1 GiB if
      this share is larger. If a list would exceed the limit, the search for this point is repeated
      for every resampled data set.

    Without a plan, only one block of at most 8192 points takes this memory at a time, about 128
    MiB.

    Args:
        task: the two sets, the orders, k, and the plan to resample. In every resampled data set,
            atoms, k1 and groups are the same as in the sample. One copy of y is not counted in n.

    Returns:
        The estimates of D(P0||P1) and D(P1||P0) at all orders.

    Raises:
        ValueError: if an order is above min(N0, N1, k + 1).

    Source:
        Gao, Kannan, Oh and Viswanath (2017) and Rahimzamani et al. (2018) for the counts in balls
        if a distribution has atoms and a density; Wang, Kulkarni and Verdu (2009) for the KL
        divergence.
    """
    points, alphas, k, plan = task.points, task.alphas, task.k, task.plan
    limit = min(*points.sizes, k + 1)
    if alphas[-1] > limit:
        raise invalid("alphas", f"at most min(N0, N1, k + 1) = {limit} for ball", alphas[-1])
    if points.dim == 1:
        y0, y1 = (points.sample(side)[:, 0] for side in (0, 1))
        return line_ball(y0, y1, alphas, k, plan, task.threads)
    atoms = find_atoms(points.multiplicity)
    sides = tuple(_BallDirection(task, atoms, a) for a in (0, 1))
    with Progress("searching", sum(len(side.queries) for side in sides), task.progress) as shown:
        cells = tuple(side.count_rows_merge_equal_balls(plan is not None, shown) for side in sides)
    value, effective = np.empty((2, 2, len(alphas)))
    for side, cell in zip(sides, cells, strict=True):
        n, j, atom, weight = cell
        sizes = points.sizes[side.a], points.sizes[side.b]
        values = _core.ball_values(n, j, atom, weight, *sizes, alphas)
        value[side.a], effective[side.a] = values
    error, replicates = _resample_errors(task, sides)
    names = "rescans", "run_outs", "capped"
    return Raw(
        value=value,
        std_error=error,
        depth=(sides[0].depth, sides[1].depth),
        ceiling=np.stack([max_possible_values(points.sizes[s.b], s.depth, alphas) for s in sides]),
        effective=effective,
        unseen_share=np.array([w[atom & (j == 0)].sum() / w.sum() for _, j, atom, w in cells]),
        atom_share=atoms.share,
        rows_per_atom=atoms.rows_per_atom,
        replicates=replicates,
        counted={name: sum(side.counted[name] for side in sides) for name in names}
        | {"list": max(side.entries for side in sides)},
        notes=_list_ball_notes(points, k, sides),
    )


class _BallDirection:
    """Estimate in one direction: balls around points of set a, with radii from distances to set b.

    A pooled id is the number of a distinct point of both sets together. `queries` holds the ids of
    the points of set a that need a ball, and `atoms` the ids of the atoms of set a. `other` holds
    the ids of the points of set b among which neighbours are searched. `lists` holds the neighbour
    lists for `_core.ball_replicates`.
    """

    def __init__(self, task: Task, atoms: Atoms, a: int) -> None:
        self.points, self.threads, self.a, self.b = task.points, task.threads, a, 1 - a
        m_a, m_b = self.points.multiplicity[a], self.points.multiplicity[self.b]
        self.depth = -(-task.k * max(self.points.sizes) // self.points.sizes[a])
        atom = atoms.of[a]
        self.queries, self.other, self.atoms = (
            np.nonzero(mask)[0].astype(np.uint32)
            for mask in ((m_a > 0) & ~atom, (m_b > 0) & ~atom, (m_a > 0) & atom)
        )
        self.entries = neighbours.required_list_length(self.depth, task.plan, len(self.other))
        self.cap = max(CAP, CAP_BYTES // (4 * max(1, len(self.queries))))
        self.counted = {"rescans": 0, "run_outs": 0, "capped": 0}
        self.lists: Arrays = ()

    def count_rows_merge_equal_balls(self, keep_lists: bool, shown: Progress) -> Arrays:
        """Count the rows in all balls, and combine balls with equal counts.

        A ball has a row of set a at its center. The result is four arrays, with one entry for each
        combination of counts. The first is the number n of other rows of set a in the ball. The
        second is the number j of rows of set b. The third is True if the center is an atom. The
        fourth is the number of rows with these values.
        """
        m_a, m_b = self.points.multiplicity[self.a], self.points.multiplicity[self.b]
        copies_a, copies_b = (
            neighbours.count_copies(self.points, self.a),
            neighbours.count_copies(self.points, self.b),
        )
        parts = [(m_a[self.atoms] - 1, m_b[self.atoms], np.ones(len(self.atoms), bool))]
        kept = []
        for block, lists in self._iterate_neighbour_lists():
            walkable = self._core_query_arguments(self.queries[block], lists)
            arguments = *walkable, copies_a, copies_b, self.depth, *self._core_arguments
            n, j, whole, run_outs, rescans = _core.ball_counts(*arguments)
            self._add_run_outs_and_rescans(run_outs, rescans)
            parts.append((n, j, whole))
            if keep_lists:
                kept.append(lists)
            shown.advance(block.stop - block.start)
        if keep_lists:
            self.lists = _join_and_clear_blocks(kept)
        n, j, atom = (np.concatenate(part) for part in zip(*parts, strict=True))
        return _merge_equal_count_pairs(n, j, atom, m_a[np.concatenate([self.atoms, self.queries])])

    def estimate_replicates(self, copies_a: Any, copies_b: Any, alphas: Floats) -> Floats:
        """Return the estimates on R resampled data sets, shape (R, number of orders).

        `copies_a` and `copies_b` hold the number of rows at each of u points, shape (R, u).
        """
        walkable = *self._core_query_arguments(self.queries, self.lists), self.atoms
        arguments = *walkable, copies_a, copies_b, self.depth, alphas, *self._core_arguments
        values, run_outs, rescans = _core.ball_replicates(*arguments)
        self._add_run_outs_and_rescans(run_outs, rescans)
        return np.asarray(values)

    @property
    def _core_arguments(self) -> tuple[Any, ...]:
        return *self.points.rows, self.points.first_row_indices, self.threads

    def _core_query_arguments(self, queries: Ids, lists: Arrays) -> tuple[Any, ...]:
        return queries, lists[:3], lists[3:], self.queries, self.other

    def _add_run_outs_and_rescans(self, run_outs: int, rescans: int) -> None:
        self.counted["run_outs"] += int(run_outs)
        self.counted["rescans"] += int(rescans)

    def _iterate_neighbour_lists(self) -> Iterator[tuple[slice, Arrays]]:
        """Yield blocks of the points that need a ball, with their neighbour lists."""
        rows, first = self.points.rows, self.points.first_row_indices
        if not len(self.other):
            if len(self.queries):
                yield slice(0, len(self.queries)), _make_empty_lists(len(self.queries))
            return
        each = 20 * self.entries + 4 * min(self.cap, len(self.queries))
        for block in neighbours.iterate_queries(
            len(self.queries), len(self.other), self.points.dim, each
        ):
            places = first[self.queries[block]]
            starts, near, squared, again = _core.nearest(
                *rows, places, first[self.other], self.entries, self.threads
            )
            own_starts, inside, upto, inverted, capped, more = _core.inside(
                *rows, places, first[self.queries], starts, squared, self.cap, self.threads
            )
            self._add_run_outs_and_rescans(0, again + more)
            self.counted["capped"] += int(np.count_nonzero(capped))
            other = starts, self.other[near], squared
            yield block, (*other, own_starts, self.queries[inside], upto, inverted, capped)


def _make_empty_lists(queries: int) -> Arrays:
    starts, flags = np.zeros(queries + 1, np.int64), np.zeros(queries, bool)
    none = np.zeros(0, np.uint32)
    return starts, none, np.zeros(0), starts, none, np.zeros(0, np.int64), flags, flags


def _join_and_clear_blocks(blocks: list[Arrays]) -> Arrays:
    """Join the neighbour lists of all blocks, and empty the list `blocks` to save memory."""
    if not blocks:
        return _make_empty_lists(0)
    columns = [list(column) for column in zip(*blocks, strict=True)]
    blocks.clear()
    out = []
    for i, column in enumerate(columns):
        if i in _START_ARRAYS:
            ends = np.cumsum([starts[-1] for starts in column])
            moved = [s[1:] + end - s[-1] for s, end in zip(column, ends, strict=True)]
            out.append(np.concatenate([np.zeros(1, np.int64), *moved]))
        else:
            out.append(np.concatenate(column))
        column.clear()
    return tuple(out)


def _merge_equal_count_pairs(
    n: Labels, j: Labels, atom: npt.NDArray[np.bool_], weight: Labels
) -> tuple[Labels, Labels, npt.NDArray[np.bool_], Floats]:
    """Merge balls with equal counts `n` and `j` and equal `atom`, and add their weights."""
    order = np.lexsort((j, n, atom))
    n, j, atom, weight = n[order], j[order], atom[order], weight[order]
    new = np.ones(len(n), bool)
    new[1:] = (np.diff(n) != 0) | (np.diff(j) != 0) | (atom[1:] != atom[:-1])
    total = np.add.reduceat(weight, np.flatnonzero(new)).astype(np.float64)
    return n[new], j[new], atom[new], total


def _resample_errors(task: Task, sides: tuple[_BallDirection, ...]) -> tuple[Floats, Floats | None]:
    """Return the standard errors, and the estimates on the resampled rows."""
    points, alphas, plan = task.points, task.alphas, task.plan
    if plan is None:
        return np.full((2, len(alphas)), np.nan), None
    values = np.empty((plan.replicates, 2, len(alphas)))
    with Progress("resampling", 2 * plan.replicates, task.progress) as shown:
        for start, stop in plan.split_replicates(sum(points.sizes) + 2 * points.unique):
            drawn = [
                np.stack([neighbours.count_copies(points, a, rows) for rows in weights])
                for a, weights in enumerate(plan.replicate_counts(start, stop))
            ]
            for side in sides:
                replicates = side.estimate_replicates(drawn[side.a], drawn[side.b], alphas)
                values[start:stop, side.a] = replicates
                shown.advance(stop - start)
    return plan.std_error(values), values


def _list_ball_notes(points: Points, k: int, sides: tuple[_BallDirection, ...]) -> tuple[str, ...]:
    notes = []
    for side in sides:
        distinct = int(np.count_nonzero(points.multiplicity[side.b]))
        if k > distinct:
            rows = f"distinct rows of y{side.b}"
            notes.append(f"k = {k} exceeds the {distinct} {rows}: balls hold whole ties")
        rest = int(points.multiplicity[side.b][side.other].sum())
        if len(side.queries) and rest < side.depth:
            notes.append(
                f"D(P{side.a}||P{side.b}): the rows off the repeated values are one cell, since "
                f"y{side.b} has {rest} of them and a ball reaches {side.depth}"
            )
    return tuple(notes)


def estimate_by_k_nearest(task: Task) -> Raw:
    """Estimate Renyi divergences of two sets Y0 and Y1 from distances to the k-th nearest rows.

    Let y be a row of Y0. Let rho(y) be the distance from y to the k-th nearest other row of Y0. Let
    nu(y) be the distance from y to the k-th nearest row of Y1. With b = alpha - 1,

        D_alpha = ln(B mean[((N1 nu^d) / ((N0 - 1) rho^d))^b]) / b,
        B = Gamma(k)^2 / (Gamma(k - b) Gamma(k + b)),
        D_1 = d mean[ln(nu / rho)] + ln(N1 / (N0 - 1)),

    with N0 and N1 the numbers of rows and d the dimension. The means are over the rows y of Y0.
    D(P1||P0) is computed in the same way, with Y0 and Y1 exchanged. The formula assumes that the
    rows have densities on all of R^d. If the rows lie on a surface of lower dimension, the exponent
    d is wrong and every value is too large.

    Memory: K times 24 bytes for every row. Without a plan to resample, K is k. With a plan, K is
    somewhat larger.

    Args:
        task: the two sets without repeated rows, the orders, k, and the plan to resample (jackknife
            or subsampling).

    Returns:
        The estimates of D(P0||P1) and D(P1||P0) at all orders.

    Raises:
        ValueError: if an order is not above 1 - k and below k + 1; if a set has at most k rows; if
            two rows are equal; or if the plan is a bootstrap.

    Source:
        Poczos and Schneider (2011), "On the estimation of alpha-divergences"; Wang, Kulkarni and
        Verdu (2009), equation 5, for alpha = 1.
    """
    points, alphas, k = task.points, task.alphas, task.k
    _check_poczos(points, alphas, k, task.plan)
    orders = alphas - 1.0
    constants = _log_constants(k, orders)
    four = neighbours.Four(task, own=False)
    neighbours.refuse_zeros("poczos", points, four.count_zero_radius_rows_per_set(k))

    def formula(*weights: Weights) -> tuple[Floats, Floats]:
        # Rows are present (weight 1) or absent; NaN if a set has too few rows for k.
        sizes = [int(w.sum()) for w in weights]
        value, effective = np.full((2, 2, len(orders)), np.nan)
        for a, b in ((0, 1), (1, 0)):
            if sizes[a] <= k or sizes[b] < k:
                continue
            there = weights[a][four.sets[a]] > 0
            rho = four.lists[a][a].copies_up_to_kth_and_log_squared(weights[a], there, k)[1]
            nu = four.lists[a][b].copies_up_to_kth_and_log_squared(weights[b], there, k)[1]
            ratios = 0.5 * points.dim * (nu - rho) + np.log(sizes[b] / (sizes[a] - 1))
            every = np.ones(len(ratios))
            value[a], effective[a] = neighbours.log_means_n_eff(ratios, every, orders, constants)
        return value, effective

    raw = neighbours.estimate_from_lists(task, four, formula)
    return replace(raw, notes=_list_poczos_notes(points, alphas, k))


def _check_poczos(points: Points, alphas: Floats, k: int, plan: ResamplingPlan | None) -> None:
    if alphas[-1] >= k + 1 or alphas[0] <= 1 - k:
        beyond = alphas[-1] if alphas[-1] >= k + 1 else alphas[0]
        requirement = f"above {1 - k} and below {k + 1} for poczos with k = {k}"
        raise invalid("alphas", requirement, beyond)
    if k >= min(points.sizes):
        raise invalid("k", f"below the rows of both sets, {min(points.sizes)}, for poczos", k)
    if plan is not None and plan.kind == "bootstrap":
        requirement = (
            "'jackknife' or 'subsample' for poczos: the copies of a row in a bootstrap sample "
            "lie at distance zero"
        )
        raise invalid("error", requirement, plan.kind)
    several = sum(points.multiplicity) > 1
    neighbours.refuse_zeros("poczos", points, [int(m[several].sum()) for m in points.multiplicity])


def _log_constants(k: int, orders: Floats) -> Floats:
    """Compute ln(Gamma(k)^2 / (Gamma(k - b) Gamma(k + b))) for every b in `orders`."""
    ratio, at = _core.log_gamma_ratio, np.array([float(k)])
    return np.array([-float(ratio(at, b)[0] + ratio(at, -b)[0]) for b in orders.tolist()])


def _list_poczos_notes(points: Points, alphas: Floats, k: int) -> tuple[str, ...]:
    notes = []
    if points.dim > HIGH:
        notes.append(
            f"WARNING: poczos raises distances to the power {points.dim}; if the rows lie near a "
            "surface of lower dimension, its values mean nothing (rows in 2 of 384 dimensions: "
            "D_2 of about 1000 where 1 is true)"
        )
    wild = int(np.count_nonzero(k <= 2.0 * np.abs(alphas - 1.0)))
    if wild:
        notes.append(
            f"the variance of poczos is infinite where |alpha - 1| >= k / 2 = {k / 2:g}: {wild} of "
            f"{len(alphas)} alphas"
        )
    return tuple(notes)


def estimate_by_paper(task: Task, *, self_neighbour: bool, literal: bool) -> Raw:
    """Estimate Renyi divergences by the formula of Gusain and Leith.

    Equal rows count as one point. The two sets are Y_0 and Y_1. For a row y, take the k points of
    Y_j that are nearest to y. Let n_j(y) be the number of rows at these points, and rho_j(y) the
    distance from y to the k-th point. Let N'_j be the sum of n_j over the points of Y_j. In
    dimension d, the density of set j at y is estimated by P_j(y) = n_j(y) / (N'_j rho_j(y)^d). With
    b = alpha - 1,

        D_alpha = ln(mean[(P_0 / P_1)^b]) / b,    D_1 = mean[ln(P_0 / P_1)]

    with the mean over the rows y of Y_0. D(P1||P0) is computed in the same way, with the sets
    exchanged. The formula printed in the paper has two misprints: the logarithm is inside the mean,
    and P_0 has the exponent alpha. The result of the printed formula is D_1 + mean[ln P_0] / b.
    This result depends on the scale of the data and is not a Renyi divergence.

    Neither the printed nor the corrected formula corrects for the randomness of the distance to the
    k-th neighbour. For alpha = 2 and k = 5, the estimate is too large by about 0.22 for any number
    of rows. If a row counts as its own neighbour, the estimate is too large by about another 0.25.

    Memory: K times 24 bytes for every distinct row. Without a plan to resample, K is k. With a
    plan, K is somewhat larger.

    Args:
        task: the two sets, the orders, k, and the plan to resample. Here k is a number of distinct
            points. If a set has fewer than k points, all its points are used. With the bootstrap,
            the mean and the standard deviation of the estimates on the resampled data sets are the
            two results that the paper reports.
        self_neighbour: True if a point of Y_j counts as the first of its own neighbours in Y_j. The
            paper does not specify this.
        literal: True for the printed formula, False for the corrected formula. Both give D_1 for
            alpha = 1.

    Returns:
        The estimates of D(P0||P1) and D(P1||P0) at all orders.

    Raises:
        ValueError: if the k-th neighbour of a row is at distance zero, or if a set has only one
            distinct row and `self_neighbour` is False.

    Warns:
        UserWarning: if `literal` is True.

    Source:
        Gusain and Leith (2025): the estimator from k-nearest-neighbour densities, its bootstrap.
    """
    points, k = task.points, task.k
    method = "paper-literal" if literal else "paper"
    if literal:
        warnings.warn(
            "paper-literal computes the formula as printed, which is not a Renyi divergence: "
            "it depends on the scale of the data; method='paper' has the two misprints corrected",
            UserWarning,
            stacklevel=6,
        )
    distinct = [int(np.count_nonzero(m)) for m in points.multiplicity]
    if min(distinct) < 2 and not self_neighbour:
        name = "y0" if distinct[0] < 2 else "y1"
        raise invalid(name, "of at least 2 distinct rows, each other's neighbours", min(distinct))
    four, orders = neighbours.Four(task, own=self_neighbour), task.alphas - 1.0
    neighbours.refuse_zeros(method, points, four.count_zero_radius_rows_per_set(k))

    def find_densities(
        a: int, b: int, weights: tuple[Weights, ...], there: npt.NDArray[np.bool_]
    ) -> tuple[Any, Floats]:
        # Number of rows up to the k-th neighbour in set b of points of set a, and log densities.
        rows, log_squared = four.lists[a][b].copies_up_to_kth_and_log_squared(weights[b], there, k)
        return rows, np.log(rows) - 0.5 * points.dim * log_squared

    def formula(*weights: Weights) -> tuple[Floats, Floats]:
        # A point is present as often as its weight; the printed form averages no weights (NaN).
        there = [w[ids] > 0 for w, ids in zip(weights, four.sets, strict=True)]
        both = [find_densities(a, a, weights, there[a]) for a in (0, 1)]
        totals = [np.log(rows.sum()) for rows, _ in both]
        value, effective = np.full((2, 2, len(orders)), np.nan)
        for a, b in ((0, 1), (1, 0)):
            log_own = both[a][1] - totals[a]
            log_other = find_densities(a, b, weights, there[a])[1] - totals[b]
            times = weights[a][four.sets[a]][there[a]].astype(np.float64)
            ratios, total = log_own - log_other, times.sum()
            if literal:
                kl, entropy = (times * ratios).sum() / total, (times * log_own).sum() / total
                value[a] = kl + entropy / np.where(orders == 0.0, np.inf, orders)
            else:
                nothing = np.zeros(len(orders))
                value[a], effective[a] = neighbours.log_means_n_eff(ratios, times, orders, nothing)
        return value, effective

    repeated = find_atoms(points.multiplicity)
    return replace(
        neighbours.estimate_from_lists(task, four, formula),
        unseen_share=np.full(2, np.nan),
        atom_share=repeated.share,
        rows_per_atom=repeated.rows_per_atom,
        notes=_list_paper_notes(points, k, min(distinct) - (0 if self_neighbour else 1)),
    )


def _list_paper_notes(points: Points, k: int, max_k: int) -> tuple[str, ...]:
    notes = []
    if k > max_k:
        notes.append(f"k = {k} exceeds the {max_k} neighbours that a point has: all were used")
    if points.dim > HIGH:
        notes.append(
            f"WARNING: the paper's formula raises distances to the power {points.dim}; if the "
            "rows lie near a surface of lower dimension, its values mean nothing"
        )
    return tuple(notes)
