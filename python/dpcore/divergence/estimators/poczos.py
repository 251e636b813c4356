"""The estimator of Poczos and Schneider: ratios of distances to the k-th neighbours."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ... import _core
from ...errors import invalid
from ..points.lists import Four, average_ratios, from_lists, refuse_zeros
from ..points.points import Points
from ..points.replicates import Plan, Weights
from ..points.task import Task
from ..raw import Raw, Reals

HIGH = 20
"""Dimensions above which a note warns of the exponent."""


def estimate_by_distances(task: Task) -> Raw:
    """Estimate Renyi divergences from the distances to the k-th neighbours in both sets.

    With rho(y) and nu(y) the distances of a row y of Y0 to its k-th neighbour in Y0 (y itself
    left out) and in Y1, and b = alpha - 1,

        D_alpha = ln(B mean[((N1 nu^d) / ((N0 - 1) rho^d))^b]) / b,
        B = Gamma(k)^2 / (Gamma(k - b) Gamma(k + b)),
        D_1 = d mean[ln(nu / rho)] + ln(N1 / (N0 - 1)),

    and the same with the sets exchanged. It presumes that the rows have densities on all of
    R^d: for rows on a surface of lower dimension the exponent d inflates every value.

    A search keeps 12 bytes for each entry of the lists, 2 K entries for every row; K is k
    without a plan and somewhat more with one.

    Args:
        task: the two sets, without repeated rows, the orders, k, and how to resample: by the
            jackknife or by subsampling.

    Returns:
        The estimates of both directions.

    Raises:
        ValueError: if an alpha is not above 1 - k and below k + 1, if k is not below the rows of
            both sets, if two rows are equal, or if the plan is a bootstrap.

    Source:
        Poczos and Schneider (2011), "On the estimation of alpha-divergences"; Wang, Kulkarni and
        Verdu (2009), equation 5, for alpha = 1.
    """
    points, alphas, k = task.points, task.alphas, task.k
    _check_distances(points, alphas, k, task.plan)
    orders = alphas - 1.0
    constants = _log_constants(k, orders)
    four = Four.of(task, own=False)
    refuse_zeros("poczos", points, four.zeros(k))
    formula = _PoczosFormula(points.dim, four, k, orders, constants)
    raw = from_lists(task, four, formula)
    return replace(raw, notes=_list_distance_notes(points, alphas, k))


@dataclass(frozen=True, slots=True, eq=False)
class _PoczosFormula:
    """The estimate for rows that are present (weight 1) or not (weight 0)."""

    dim: int
    four: Four
    k: int
    orders: Reals
    constants: Reals

    def __call__(self, weights0: Weights, weights1: Weights) -> tuple[Reals, Reals]:
        """Return values and effective terms, shapes (2, A); NaN if a set has too few rows for k."""
        weights = weights0, weights1
        sizes = int(weights0.sum()), int(weights1.sum())
        value, effective = np.full((2, 2, len(self.orders)), np.nan)
        for a, b in ((0, 1), (1, 0)):
            if sizes[a] <= self.k or sizes[b] < self.k:
                continue
            there = weights[a][self.four.sets[a]] > 0
            rho = self.four.lists[a][a].reach(weights[a], there, self.k)[1]
            nu = self.four.lists[a][b].reach(weights[b], there, self.k)[1]
            ratios = 0.5 * self.dim * (nu - rho) + np.log(sizes[b] / (sizes[a] - 1))
            every = np.ones(len(ratios))
            value[a], effective[a] = average_ratios(ratios, every, self.orders, self.constants)
        return value, effective


def _check_distances(points: Points, alphas: Reals, k: int, plan: Plan | None) -> None:
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
    zeros = [int(m[several].sum()) for m in points.multiplicity]
    refuse_zeros("poczos", points, zeros)


def _log_constants(k: int, orders: Reals) -> Reals:
    """Compute the logarithm of B for every order, from ratios of gamma functions."""
    at = np.array([float(k)])
    return np.array(
        [
            -float(_core.log_gamma_ratio(at, b)[0] + _core.log_gamma_ratio(at, -b)[0])
            for b in orders.tolist()
        ]
    )


def _list_distance_notes(points: Points, alphas: Reals, k: int) -> tuple[str, ...]:
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
