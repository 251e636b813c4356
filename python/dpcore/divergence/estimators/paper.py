"""The estimator of Gusain and Leith, as they must have meant it and as it is printed."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np

from ...errors import invalid
from ..points.atoms import find_atoms
from ..points.lists import Four, average_ratios, from_lists, refuse_zeros
from ..points.points import Points
from ..points.replicates import Weights
from ..points.task import Task
from ..raw import Raw, Reals
from .poczos import HIGH


def estimate_by_paper(task: Task, *, self_neighbour: bool, literal: bool) -> Raw:
    """Estimate Renyi divergences by the formula of Gusain and Leith.

    Equal rows are one point with a multiplicity. With n_j(y) the rows on the k points of Y_j
    nearest to y, rho_j(y) the distance of the k-th and N'_j the sum of n_j over the points of
    Y_j, the densities are P_j(y) = n_j(y) / (N'_j rho_j(y)^d), and with b = alpha - 1

        D_alpha = ln(mean[(P_0 / P_1)^b]) / b,    D_1 = mean[ln(P_0 / P_1)]

    over the rows y of Y0; the other direction has the sets exchanged. As printed, the logarithm
    stands inside the mean and P_0 has the exponent alpha: what that gives is
    D_1 + mean[ln P_0] / b, which depends on the scale of the data and is no Renyi divergence.

    Neither form corrects for the k-th neighbour's randomness: for alpha = 2 and k = 5 it is too
    large by about 0.22 at any number of rows, and by about another 0.25 if a row counts as its
    own neighbour.

    A search keeps 12 bytes for each entry of the lists, 2 K entries for every distinct row; K is
    k without a plan and somewhat more with one.

    Args:
        task: the two sets, the orders, k, counted in distinct points (all of them if they are
            fewer), and how to resample: with the bootstrap, as in the paper, the mean and standard
            deviation of the replicates are the paper's two figures.
        self_neighbour: True if a point of Y_j is the first of its own neighbours in Y_j; the
            paper does not say.
        literal: True for the printed formula (alpha = 1 is D_1 in either case).

    Returns:
        The estimates of both directions.

    Raises:
        ValueError: if a k-th neighbour lies at distance zero, or a set has one distinct row only
            and a point is not its own neighbour.

    Warns:
        UserWarning: if `literal`.

    Source:
        Gusain and Leith, the estimator from k-nearest-neighbour densities and its bootstrap.
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
    four = Four.of(task, own=self_neighbour)
    refuse_zeros(method, points, four.zeros(k))
    formula = _GusainLeithFormula(points.dim, four, k, task.alphas - 1.0, literal)
    repeated = find_atoms(points.multiplicity)
    return replace(
        from_lists(task, four, formula),
        unseen_share=np.full(2, np.nan),
        atom_share=repeated.share,
        rows_per_atom=repeated.rows_per_atom,
        notes=_list_formula_notes(points, k, min(distinct) - (0 if self_neighbour else 1)),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _GusainLeithFormula:
    """The estimate for points that are present so many times."""

    dim: int
    four: Four
    k: int
    orders: Reals
    literal: bool

    def __call__(self, weights0: Weights, weights1: Weights) -> tuple[Reals, Reals]:
        """Return values and effective terms, shapes (2, A); the printed form has NaN terms."""
        weights = weights0, weights1
        there = [w[ids] > 0 for w, ids in zip(weights, self.four.sets, strict=True)]
        own, totals = [], []
        for a in (0, 1):
            rows, log_squared = self.four.lists[a][a].reach(weights[a], there[a], self.k)
            own.append(np.log(rows) - 0.5 * self.dim * log_squared)
            totals.append(np.log(rows.sum()))
        value, effective = np.full((2, 2, len(self.orders)), np.nan)
        for a, b in ((0, 1), (1, 0)):
            rows, log_squared = self.four.lists[a][b].reach(weights[b], there[a], self.k)
            log_own = own[a] - totals[a]
            log_other = np.log(rows) - 0.5 * self.dim * log_squared - totals[b]
            times = weights[a][self.four.sets[a]][there[a]].astype(np.float64)
            ratios = log_own - log_other
            if self.literal:
                value[a] = self._printed(ratios, log_own, times)
            else:
                nothing = np.zeros(len(self.orders))
                value[a], effective[a] = average_ratios(ratios, times, self.orders, nothing)
        return value, effective

    def _printed(self, ratios: Reals, log_own: Reals, times: Reals) -> Reals:
        total = times.sum()
        kl, entropy = (times * ratios).sum() / total, (times * log_own).sum() / total
        safe = np.where(self.orders == 0.0, np.inf, self.orders)
        return np.asarray(kl + entropy / safe)


def _list_formula_notes(points: Points, k: int, most: int) -> tuple[str, ...]:
    notes = []
    if k > most:
        notes.append(f"k = {k} exceeds the {most} neighbours that a point has: all were used")
    if points.dim > HIGH:
        notes.append(
            f"WARNING: the paper's formula raises distances to the power {points.dim}; if the "
            "rows lie near a surface of lower dimension, its values mean nothing"
        )
    return tuple(notes)
