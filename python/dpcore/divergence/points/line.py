"""The common ball in one dimension: sorted numbers instead of a search."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _core
from ...streams import threads_of
from ..raw import Raw, Reals
from .replicates import Plan


def line_ball(
    values0: Reals,
    values1: Reals,
    alphas: Reals,
    k: int,
    plan: Plan | None,
    threads: int | None,
) -> Raw:
    """Estimate Renyi divergences of two sets of numbers by counting in common balls.

    The estimator is that of `_ball.ball`; distances are |y - a| rounded to float64. Each set is
    sorted once. As y grows, the window of its k nearest numbers and both ends of its ball only
    move to the right, so that a direction costs a few steps for each number.

    Memory: at most 32 bytes for each row; with a plan 40, 8 more for each thread, and 4 for each
    replicate of a chunk of `plan.weights`.

    Args:
        values0: one number for each row of the first set, shape (N0,), finite.
        values1: of the second set, shape (N1,).
        alphas: orders, positive, shape (A,); 1.0 is the KL divergence.
        k: rows of the other set that a ball reaches if it is not the larger one.
        plan: how to resample rows; None for no error bar. Atoms and radii follow the rule with
            the atoms and the depth of the sample.
        threads: threads of the search; None for all cores.

    Returns:
        The estimates of both directions; `replicates` for subsampling and the bootstrap.
    """
    sets = tuple(np.require(values, np.float64, ("C", "A")) for values in (values0, values1))
    alphas = np.ascontiguousarray(alphas, np.float64)
    using = threads_of(threads)

    def found(labels: Any, units: Any, weights: Any) -> tuple[Any, ...]:
        first, second = ((labels[i], units[i]) for i in (0, 1))
        return _core.line_ball(
            sets[0], sets[1], alphas, k, *first, *second, weights[0], weights[1], using
        )

    none = None, None
    shape = -1, 2, len(alphas)
    error, replicates, counted = np.full(shape[1:], np.nan), None, 0
    if plan is not None and plan.kind == "jackknife":
        labels = tuple(np.ascontiguousarray(label, np.int64) for label in plan.labels)
        result = found(labels, plan.units, none)
        left_out = result[-1].reshape(shape)
        error, counted = plan.std_error(left_out), len(left_out)
    else:
        result = found(none, (0, 0), none)
    if plan is not None and plan.kind != "jackknife":
        chunks = plan.chunks(len(sets[0]) + len(sets[1]))
        parts = [found(none, (0, 0), plan.weights(*chunk))[-1] for chunk in chunks]
        replicates = np.concatenate(parts).reshape(shape)
        error, counted = plan.std_error(replicates), len(replicates)
    value, effective, depth, unseen_share, atom_share, rows_per_atom, _ = result
    others = zip(sets[::-1], depth, strict=True)
    return Raw(
        value=value.reshape(shape[1:]),
        std_error=error,
        depth=(depth[0], depth[1]),
        ceiling=np.stack([compute_ceiling(len(other), reach, alphas) for other, reach in others]),
        effective=effective.reshape(shape[1:]),
        unseen_share=np.array(unseen_share),
        atom_share=np.array(atom_share),
        rows_per_atom=rows_per_atom,
        replicates=replicates,
        counted={"replicates": counted},
        beyond_share=np.array([_share_outside(*sets), _share_outside(*sets[::-1])]),
    )


def _share_outside(values: Reals, others: Reals) -> float:
    """Compute the share of the values below or above all others."""
    outside = np.count_nonzero(values < others.min()) + np.count_nonzero(values > others.max())
    return outside / len(values)


def compute_ceiling(size: int, depth: int, alphas: Reals) -> Reals:
    """Compute the value if every ball held all of the numerator and `depth` denominator rows."""
    ends = np.array([size + 1.0, float(depth)])
    out = np.empty(len(alphas))
    for i, order in enumerate((alphas - 1.0).tolist()):
        if order == 0.0:
            out[i] = _core.digamma(size + 1.0) - _core.digamma(float(depth))
        else:
            upper, lower = _core.log_gamma_ratio(ends, order)
            out[i] = (upper - lower) / order
    return out
