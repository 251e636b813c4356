"""Log ratios of pilot counts: weights of bins that depend as little as possible on chance."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..records import Array, Flags, Floats
from .arrays import Places

_AxisArgument = int | tuple[int, ...] | None
_CLEAR_RATIO_VARIANCES: Final = 4.0
"""Number of variances from which a squared log ratio is trusted without the other ratios."""
_RUN_PENALTY: Final = 5.0
"""Least increase of twice the log-likelihood that justifies one more run of bins."""
_WEIGHT_STEPS_PER_UNIT: Final = 2.0**20
"""Weights are multiples of 1 / `_WEIGHT_STEPS_PER_UNIT`: their sums are exact in any order."""


def round_weights(weights: Floats) -> Floats:
    """Round weights so that their sums are exact."""
    return np.round(weights * _WEIGHT_STEPS_PER_UNIT) / _WEIGHT_STEPS_PER_UNIT


def log_ratios(k: Array, k_prime: Array, n: Any, n_prime: Any) -> tuple[Floats, Floats]:
    """Compute log ratios of two shares, and their variances; add half a count to each count.

    Args:
        k: counts on x.
        k_prime: counts on x', of the same shape.
        n: number of draws on x, of a shape that broadcasts.
        n_prime: number of draws on x'.

    Returns:
        Log ratios (0 if both counts are 0) and their variances, both of the shape of `k`.
    """
    ratios = np.log((k + 0.5) / (n + 1.0)) - np.log((k_prime + 0.5) / (n_prime + 1.0))
    ratios = np.where((k == 0) & (k_prime == 0), 0.0, ratios)
    return ratios, 1.0 / (k + 0.5) + 1.0 / (k_prime + 0.5)


def shrink_log_ratios(
    ratios: Floats, variances: Floats, axis: _AxisArgument = None, live: Flags | bool = True
) -> Floats:
    """Shrink log ratios towards 0, by the share of noise in their spread.

    Each ratio is multiplied by t / (t + variance). Here t is the spread of all ratios beyond their
    noise. If the ratio's own size justifies a larger factor, 1 - 4 variance / ratio^2, this factor
    is used. Therefore a few clear ratios among many empty ones are not lost.

    Args:
        ratios: log ratios.
        variances: variances of the log ratios.
        axis: axes along which the spread is common. None means all axes.
        live: True for ratios that exist.

    Returns:
        The shrunk ratios, 0 if a ratio does not exist.

    Source:
        Efron and Morris (1973), Journal of the American Statistical Association 68: empirical
        Bayes; DerSimonian and Laird (1986), Controlled Clinical Trials 7, for the spread.
    """
    precision = np.where(live, 1.0 / variances, 0.0)
    excess = np.where(live, ratios**2 * precision - 1.0, 0.0).sum(axis=axis, keepdims=True)
    total = np.maximum(precision.sum(axis=axis, keepdims=True), 1e-300)
    spread = np.maximum(0.0, excess / total)
    common = spread / (spread + variances)
    own = 1.0 - _CLEAR_RATIO_VARIANCES * variances / np.where(ratios == 0.0, np.inf, ratios) ** 2
    own = np.where(ratios == 0.0, 0.0, own)
    return np.where(live, ratios * np.maximum(common, own), 0.0)


def smooth_bins(k: Array, k_prime: Array, n: Array, n_prime: Array, runs: Places | None) -> Floats:
    """Compute weights of bins; neighbouring bins in one run are pooled.

    Args:
        k: counts on x, shape `(tables, bins)`.
        k_prime: counts on x'.
        n: draws on x for each table, shape `(tables, 1)`.
        n_prime: draws on x'.
        runs: number of the run of each bin, shape `(tables, bins)`, or None.

    Returns:
        The weights, shape `(tables, bins)`.
    """
    if runs is not None:
        k, k_prime = _pool_counts(k, runs), _pool_counts(k_prime, runs)
    ratios, variances = log_ratios(k, k_prime, n, n_prime)
    weights = shrink_log_ratios(ratios, variances, axis=1, live=(k + k_prime) > 0)
    return weights if runs is None else np.take_along_axis(weights, runs, axis=1)


def _pool_counts(counts: Array, runs: Places) -> Floats:
    """Return sums of each table's counts by run, in the shape of the counts."""
    tables, bins = counts.shape
    flat = (runs + bins * np.arange(tables)[:, None]).ravel()
    return np.bincount(flat, counts.ravel(), counts.size).astype(np.float64).reshape(tables, bins)


def even_runs(k: Array, k_prime: Array, most: int) -> Places:
    """Return at most `most` runs of about equal mass."""
    both = k + k_prime
    middle = np.cumsum(both, axis=1) - both / 2.0
    share = middle / np.maximum(both.sum(axis=1, keepdims=True), 1.0)
    return np.asarray(np.minimum((share * most).astype(np.intp), most - 1))


def clear_runs(k: Array, k_prime: Array) -> Places:
    """Find runs of neighbouring bins that the pilot cannot distinguish.

    Among all partitions into runs, it takes the one with the largest penalised likelihood. This is
    the log-likelihood of the sides given the bins, minus half the penalty for each run.

    Args:
        k: counts on x, shape `(tables, bins)`.
        k_prime: counts on x'.

    Returns:
        The number of the run of each bin, shape `(tables, bins)`.

    Source:
        Jackson et al. (2005), IEEE Signal Processing Letters 12: optimal partitioning.
    """
    tables, bins = k.shape
    totals = np.pad(np.cumsum([k, k_prime], axis=2), ((0, 0), (0, 0), (1, 0)))
    best = np.zeros((tables, bins + 1))
    start = np.zeros((tables, bins + 1), dtype=np.intp)
    for end in range(1, bins + 1):
        inside = totals[:, :, end : end + 1] - totals[:, :, :end]
        value = best[:, :end] + _run_likelihood(*inside) - _RUN_PENALTY / 2.0
        start[:, end] = value.argmax(axis=1)
        best[:, end] = value.max(axis=1)
    # Read the starts of the runs backwards, from the last run.
    begins, rows, last = np.zeros(start.shape, np.bool_), np.arange(tables), np.full(tables, bins)
    for _ in range(bins):
        last = start[rows, last]
        begins[rows, last] = True
    return np.cumsum(begins[:, :-1], axis=1) - 1


def _run_likelihood(k: Floats, k_prime: Floats) -> Floats:
    """Return the maximum log-likelihood of a run."""
    both = np.maximum(k + k_prime, 1.0)
    share, share_prime = np.maximum(k, 1e-300) / both, np.maximum(k_prime, 1e-300) / both
    return k * np.log(share) + k_prime * np.log(share_prime)
