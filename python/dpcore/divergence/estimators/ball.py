"""The common ball: rows of both sets in one ball around every row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ... import _core
from ...errors import invalid
from ...progress import Progress
from ..points.atoms import Atoms, find_atoms
from ..points.line import compute_ceiling, line_ball
from ..points.lists import count_copies, iterate_queries, list_length
from ..points.points import Ids, Points
from ..points.replicates import Labels
from ..points.task import Task
from ..raw import Raw, Reals

CAP = 4096
CAP_BYTES = 2**30
"""A ball's rows of the query's own set are listed up to CAP of them, or 1 GiB for all queries."""

Arrays = tuple[npt.NDArray[Any], ...]


def estimate_by_balls(task: Task) -> Raw:
    """Estimate Renyi divergences by counting the rows of both sets in common balls.

    For a row y of Y0 the ball reaches the row of Y1 at which the rows of Y1, from the nearest
    on, first number k1 = ceil(k max(1, N1/N0)); rows at equal distances are in the ball together.
    With n the rows of Y0 in it other than y, j the rows of Y1 in it but one, b = alpha - 1 and
    (x)_b = Gamma(x + 1) / Gamma(x - b + 1) (0 where x - b + 1 <= 0),

        T = mean[(n)_b / (N0 - 1)_b * Gamma(N1 + 1 + b) / Gamma(N1 + 1)
                 / (Gamma(j + 1 + b) / Gamma(j + 1))],
        D_alpha = ln T / b,    D_1 = mean[psi(n + 1) - psi(j + 1)] - psi(N0) + psi(N1 + 1).

    Points with 5 other rows of Y0 or 5 rows of Y1 are atoms: there n and j are the numbers of
    other rows of Y0 and of rows of Y1 at the point itself, and only the rest is searched. If
    99 % of all rows are on atoms, every point is handled like one. The other direction has the
    sets exchanged. One dimension is sorted instead of searched.

    Memory, in d >= 2, for each distinct point that is not an atom: 20 bytes for each of the K
    entries of its list (K is k1 without a plan and somewhat more with one, see
    `lists.length`) and 4 bytes for each point of its own set inside the largest of these balls,
    or outside the smallest if they are fewer, up to 4096 of them (16 KiB) or 1 GiB in all,
    whichever is more; beyond that a query is searched again when it is counted. Without a plan
    only a block of queries at a time takes this, about 128 MiB, and never more than 8192 queries.

    Args:
        task: the two sets, the orders, k, and how to resample: atoms, k1 and groups stay as they
            are in the sample; n leaves out one copy of y.

    Returns:
        The estimates of both directions.

    Raises:
        ValueError: if an alpha is above min(N0, N1, k + 1).

    Source:
        Gao, Kannan, Oh and Viswanath (2017) and Rahimzamani et al. (2018) for counting rows of
        mixtures in balls; Wang, Kulkarni and Verdu (2009) for the KL divergence.
    """
    points, alphas, k, plan = task.points, task.alphas, task.k, task.plan
    limit = min(*points.sizes, k + 1)
    if alphas[-1] > limit:
        requirement = f"at most min(N0, N1, k + 1) = {limit} for ball"
        raise invalid("alphas", requirement, alphas[-1])
    if points.dim == 1:
        values = [points.sample(side)[:, 0].astype(np.float64, copy=False) for side in (0, 1)]
        return line_ball(values[0], values[1], alphas, k, plan, task.threads)
    sorted_out = find_atoms(points.multiplicity)
    sides = tuple(_BallDirection.of(task, sorted_out, a) for a in (0, 1))
    with Progress("searching", sum(len(side.queries) for side in sides), task.progress) as shown:
        cells = tuple(side.counts(plan is not None, shown) for side in sides)
    value, effective = np.empty((2, 2, len(alphas)))
    for side, cell in zip(sides, cells, strict=True):
        n, j, atom, weight = cell
        sizes = points.sizes[side.a], points.sizes[side.b]
        found = _core.ball_values(n, j, atom, weight, sizes[0], sizes[1], alphas)
        value[side.a], effective[side.a] = found
    error, replicates = _resample_values(task, sides)
    names = "rescans", "run_outs", "capped"
    return Raw(
        value=value,
        std_error=error,
        depth=(sides[0].depth, sides[1].depth),
        ceiling=np.stack(
            [compute_ceiling(points.sizes[side.b], side.depth, alphas) for side in sides]
        ),
        effective=effective,
        unseen_share=np.array([_unseen_share(cell) for cell in cells]),
        atom_share=sorted_out.share,
        rows_per_atom=sorted_out.rows_per_atom,
        replicates=replicates,
        counted={name: sum(side.counted[name] for side in sides) for name in names}
        | {"list": max(side.entries for side in sides)},
        notes=_list_ball_notes(points, k, sides),
    )


@dataclass(slots=True, eq=False)
class _BallDirection:
    """One direction: queries from set a, radii from set b.

    `queries` and `atoms` are pooled ids of points of set a, `own` and `other` those of the points
    of a and b that are searched; `lists` is what `_core.ball_replicates` walks.
    """

    points: Points
    a: int
    depth: int
    entries: int
    cap: int
    queries: Ids
    atoms: Ids
    other: Ids
    threads: int
    counted: dict[str, int]
    lists: Arrays = ()

    @classmethod
    def of(cls, task: Task, found: Atoms, a: int) -> _BallDirection:
        points = task.points
        m_a, m_b = points.multiplicity[a], points.multiplicity[1 - a]
        size_a, size_b = points.sizes[a], points.sizes[1 - a]
        depth = -(-task.k * max(size_a, size_b) // size_a)
        atom = found.of[a]
        queries, other = _mask_to_ids((m_a > 0) & ~atom), _mask_to_ids((m_b > 0) & ~atom)
        return cls(
            points,
            a,
            depth,
            list_length(depth, task.plan, len(other)),
            max(CAP, CAP_BYTES // (4 * max(1, len(queries)))),
            queries,
            _mask_to_ids((m_a > 0) & atom),
            other,
            task.threads,
            {"rescans": 0, "run_outs": 0, "capped": 0},
        )

    @property
    def b(self) -> int:
        return 1 - self.a

    def counts(self, keep: bool, shown: Progress) -> Arrays:
        """Search, count, and gather equal cells: n, j, atom and weight of each, shape (c,)."""
        m_a, m_b = self.points.multiplicity[self.a], self.points.multiplicity[self.b]
        copies_a, copies_b = count_copies(self.points, self.a), count_copies(self.points, self.b)
        parts = [(m_a[self.atoms] - 1, m_b[self.atoms], np.ones(len(self.atoms), bool))]
        kept = []
        for block, lists in self._searched():
            walkable = self._walkable(self.queries[block], lists)
            arguments = *walkable, copies_a, copies_b, self.depth, *self._where
            n, j, whole, run_outs, rescans = _core.ball_counts(*arguments)
            self._note(run_outs, rescans)
            parts.append((n, j, whole))
            if keep:
                kept.append(lists)
            shown.advance(block.stop - block.start)
        if keep:
            self.lists = _join_blocks(kept)
        n, j, atom = (np.concatenate(part) for part in zip(*parts, strict=True))
        return _gather_cells(n, j, atom, m_a[np.concatenate([self.atoms, self.queries])])

    def replicates(self, copies_a: Any, copies_b: Any, alphas: Reals) -> Reals:
        """Return values for copies of all points in R replicates, shapes (R, u), as (R, alphas)."""
        walkable = *self._walkable(self.queries, self.lists), self.atoms
        arguments = *walkable, copies_a, copies_b, self.depth, alphas, *self._where
        values, run_outs, rescans = _core.ball_replicates(*arguments)
        self._note(run_outs, rescans)
        return np.asarray(values)

    @property
    def _where(self) -> tuple[Any, ...]:
        return *self.points.rows, self.points.first, self.threads

    def _walkable(self, queries: Ids, lists: Arrays) -> tuple[Any, ...]:
        return queries, lists[:3], lists[3:], self.queries, self.other

    def _note(self, run_outs: int, rescans: int) -> None:
        self.counted["run_outs"] += int(run_outs)
        self.counted["rescans"] += int(rescans)

    def _searched(self) -> Iterator[tuple[slice, Arrays]]:
        """Iterate over blocks of queries and yield their lists, in pooled ids."""
        rows, first = self.points.rows, self.points.first
        if not len(self.other):
            if len(self.queries):
                yield slice(0, len(self.queries)), _no_lists(len(self.queries))
            return
        each = 20 * self.entries + 4 * min(self.cap, len(self.queries))
        for block in iterate_queries(len(self.queries), len(self.other), self.points.dim, each):
            places = first[self.queries[block]]
            starts, near, squared, again = _core.nearest(
                *rows, places, first[self.other], self.entries, self.threads
            )
            own_starts, inside, upto, inverted, capped, more = _core.inside(
                *rows, places, first[self.queries], starts, squared, self.cap, self.threads
            )
            self._note(0, again + more)
            self.counted["capped"] += int(np.count_nonzero(capped))
            other = starts, self.other[near], squared
            yield block, (*other, own_starts, self.queries[inside], upto, inverted, capped)


def _mask_to_ids(mask: npt.NDArray[np.bool_]) -> Ids:
    return np.nonzero(mask)[0].astype(np.uint32)


_START_ARRAYS = (0, 3)
"""Places of the arrays that say where each query begins in the arrays after them."""


def _no_lists(queries: int) -> Arrays:
    starts, none, flags = (
        np.zeros(queries + 1, np.int64),
        np.zeros(0, np.uint32),
        np.zeros(queries, bool),
    )
    return starts, none, np.zeros(0), starts, none, np.zeros(0, np.int64), flags, flags


def _join_blocks(blocks: list[Arrays]) -> Arrays:
    """Join the lists of all blocks; empty `blocks` array by array to save memory."""
    if not blocks:
        return _no_lists(0)
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


def _gather_cells(
    n: Labels, j: Labels, atom: npt.NDArray[np.bool_], weight: Labels
) -> tuple[Labels, Labels, npt.NDArray[np.bool_], Reals]:
    """Gather equal cells (n, j, atom) and add their weights."""
    order = np.lexsort((j, n, atom))
    n, j, atom, weight = n[order], j[order], atom[order], weight[order]
    new = np.ones(len(n), bool)
    new[1:] = (np.diff(n) != 0) | (np.diff(j) != 0) | (atom[1:] != atom[:-1])
    begins = np.nonzero(new)[0]
    return n[new], j[new], atom[new], np.add.reduceat(weight, begins).astype(np.float64)


def _resample_values(task: Task, sides: tuple[_BallDirection, ...]) -> tuple[Reals, Reals | None]:
    """Compute standard errors and the replicates' values."""
    points, alphas, plan = task.points, task.alphas, task.plan
    if plan is None:
        return np.full((2, len(alphas)), np.nan), None
    values = np.empty((plan.replicates, 2, len(alphas)))
    with Progress("resampling", 2 * plan.replicates, task.progress) as shown:
        for start, stop in plan.chunks(sum(points.sizes) + 2 * points.unique):
            drawn = [
                np.stack([count_copies(points, a, rows) for rows in weights])
                for a, weights in enumerate(plan.weights(start, stop))
            ]
            for side in sides:
                found = side.replicates(drawn[side.a], drawn[side.b], alphas)
                values[start:stop, side.a] = found
                shown.advance(stop - start)
    return plan.std_error(values), values


def _unseen_share(cell: Arrays) -> float:
    _, j, atom, weight = cell
    return float(weight[atom & (j == 0)].sum() / weight.sum())


def _list_ball_notes(points: Points, k: int, sides: tuple[_BallDirection, ...]) -> tuple[str, ...]:
    notes = []
    for side in sides:
        distinct = int(np.count_nonzero(points.multiplicity[side.b]))
        if k > distinct:
            notes.append(
                f"k = {k} exceeds the {distinct} distinct rows of y{side.b}: balls hold whole ties"
            )
        rest = int(points.multiplicity[side.b][side.other].sum())
        if len(side.queries) and rest < side.depth:
            notes.append(
                f"D(P{side.a}||P{side.b}): the rows off the repeated values are one cell, since "
                f"y{side.b} has {rest} of them and a ball reaches {side.depth}"
            )
    return tuple(notes)
