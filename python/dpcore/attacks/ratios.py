"""Log ratios of counts on two inputs, shrunk towards 0 so that they depend less on chance.

The counts are from the pilot (the first draws, on which the event is chosen).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..records import Array, Flags, Floats
from .arrays import Places

_AxisArgument = int | tuple[int, ...] | None
_CLEAR_RATIO_VARIANCES: Final = 4.0
"""Number that multiplies the variance in the second factor of `shrink_ratios_to_0`."""
_RUN_PENALTY: Final = 5.0
"""Least increase of twice the log-likelihood for one more set of neighbouring bins."""
_WEIGHT_STEPS_PER_UNIT: Final = 2.0**20
"""Weights are multiples of 1 / `_WEIGHT_STEPS_PER_UNIT`: their sums are exact in any order."""


def to_fixed_point(weights: Floats) -> Floats:
    """Round weights to multiples of 2^-20. Their sum is then the same in every order."""
    return np.round(weights * _WEIGHT_STEPS_PER_UNIT) / _WEIGHT_STEPS_PER_UNIT


def log_ratios(k: Array, k_prime: Array, n: Any, n_prime: Any) -> tuple[Floats, Floats]:
    """Estimate log ratios of bin probabilities on x and on x', and the variances of the estimates.

    The estimate is ``ln((k + 1/2)/(n + 1)) - ln((k_prime + 1/2)/(n_prime + 1))``.

    Args:
        k: number of draws on x in each bin.
        k_prime: number of draws on x' in each bin, of the shape of `k`.
        n: number of all draws on x. Its shape must broadcast to the shape of `k`.
        n_prime: number of all draws on x', in the same form as `n`.

    Returns:
        Two arrays of the shape of `k`: the log ratios, and the variances of these estimates. The
        log ratio of a bin is 0 if the bin has no draws on x and no draws on x'.
    """
    ratios = np.log((k + 0.5) / (n + 1.0)) - np.log((k_prime + 0.5) / (n_prime + 1.0))
    ratios = np.where((k == 0) & (k_prime == 0), 0.0, ratios)
    return ratios, 1.0 / (k + 0.5) + 1.0 / (k_prime + 0.5)


def shrink_ratios_to_0(
    ratios: Floats, variances: Floats, axis: _AxisArgument = None, live: Flags | bool = True
) -> Floats:
    """Move estimated log ratios towards 0, because a part of their size is due to chance.

    Each ratio is multiplied by the larger one of two factors. The first factor is
    ``t / (t + variance)``. Here t is the estimated variance of the true log ratios. The second
    factor is ``1 - 4 variance / ratio^2``. This factor keeps a few large ratios among many ratios
    near 0.

    Args:
        ratios: estimated log ratios.
        variances: variances of the estimates, of the shape of `ratios`.
        axis: axes over which one t is estimated. None means that t is estimated from the whole
            array.
        live: True for each ratio that is used. All other ratios are ignored, and their results are
            0.

    Returns:
        The reduced ratios, of the shape of `ratios`.

    Source:
        Efron and Morris (1973), Journal of the American Statistical Association 68, on shrinkage.
        DerSimonian and Laird (1986), Controlled Clinical Trials 7, on the estimate of t.
    """
    precision = np.where(live, 1.0 / variances, 0.0)
    excess = np.where(live, ratios**2 * precision - 1.0, 0.0).sum(axis=axis, keepdims=True)
    total = np.maximum(precision.sum(axis=axis, keepdims=True), 1e-300)
    spread = np.maximum(0.0, excess / total)
    common = spread / (spread + variances)
    own = 1.0 - _CLEAR_RATIO_VARIANCES * variances / np.where(ratios == 0.0, np.inf, ratios) ** 2
    own = np.where(ratios == 0.0, 0.0, own)
    return np.where(live, ratios * np.maximum(common, own), 0.0)


def weigh_bins(k: Array, k_prime: Array, n: Array, n_prime: Array, runs: Places | None) -> Floats:
    """Compute the weight of each bin: the log ratio of its shares on x and on x', moved towards 0.

    A table contains the counts of one histogram on x and on x'. For example, the histogram shows
    one column of the outputs. Neighbouring bins of a table can have one common weight.

    Args:
        k: number of draws on x in each bin, shape `(tables, bins)`.
        k_prime: number of draws on x' in each bin, shape `(tables, bins)`.
        n: number of all draws on x in each table, shape `(tables, 1)`.
        n_prime: number of all draws on x' in each table, shape `(tables, 1)`.
        runs: for each bin, the index of a set of neighbouring bins, shape `(tables, bins)`. The
            counts of a set are added up, and all bins of the set get the same weight. None means
            that each bin is a set.

    Returns:
        The weights of the bins, shape `(tables, bins)`.
    """
    if runs is not None:
        k, k_prime = _sum_counts_by_run(k, runs), _sum_counts_by_run(k_prime, runs)
    ratios, variances = log_ratios(k, k_prime, n, n_prime)
    weights = shrink_ratios_to_0(ratios, variances, axis=1, live=(k + k_prime) > 0)
    return weights if runs is None else np.take_along_axis(weights, runs, axis=1)


def _sum_counts_by_run(counts: Array, run_index: Places) -> Floats:
    """Return sums of counts over each run (set of neighbouring bins), in the shape of `counts`.

    The sum over run i of a table is in column i of its row. All other columns contain 0.
    """
    tables, bins = counts.shape
    flat = (run_index + bins * np.arange(tables)[:, None]).ravel()
    return np.bincount(flat, counts.ravel(), counts.size).astype(np.float64).reshape(tables, bins)


def equal_count_set_index(k: Array, k_prime: Array, most: int) -> Places:
    """Divide the bins of each table into sets of neighbouring bins with about equally many draws.

    A table has at most `most` sets. `k` and `k_prime` are the numbers of draws on x and on x' in
    each bin, shape `(tables, bins)`.

    Returns:
        For each bin, the index of its set, shape `(tables, bins)`.
    """
    both = k + k_prime
    middle = np.cumsum(both, axis=1) - both / 2.0
    share = middle / np.maximum(both.sum(axis=1, keepdims=True), 1.0)
    return np.asarray(np.minimum((share * most).astype(np.intp), most - 1))


def ratio_set_per_bin(k: Array, k_prime: Array) -> Places:
    """Divide bins into sets of neighbouring bins with about the same ratio of counts on x and x'.

    The function compares all divisions of a table's bins into sets of neighbours. It returns the
    division with the largest value of L - 2.5 S. S is the number of sets, and L is the
    log-likelihood of the following model: each draw in a set is from x with probability p, and from
    x' with probability 1 - p. The probability p is estimated separately for each set.

    Args:
        k: number of draws on x in each bin, shape `(tables, bins)`.
        k_prime: number of draws on x' in each bin, shape `(tables, bins)`.

    Returns:
        For each bin, the index of its set, shape `(tables, bins)`.

    Source:
        Jackson et al. (2005), IEEE Signal Processing Letters 12: optimal partitioning.
    """
    tables, bins = k.shape
    totals = np.pad(np.cumsum([k, k_prime], axis=2), ((0, 0), (0, 0), (1, 0)))
    best = np.zeros((tables, bins + 1))
    start = np.zeros((tables, bins + 1), dtype=np.intp)
    for end in range(1, bins + 1):
        inside = totals[:, :, end : end + 1] - totals[:, :, :end]
        value = best[:, :end] + _binomial_max_log_likelihood(*inside) - _RUN_PENALTY / 2.0
        start[:, end] = value.argmax(axis=1)
        best[:, end] = value.max(axis=1)
    # Read the starts of the runs backwards, from the last run.
    begins, rows, last = np.zeros(start.shape, np.bool_), np.arange(tables), np.full(tables, bins)
    for _ in range(bins):
        last = start[rows, last]
        begins[rows, last] = True
    return np.cumsum(begins[:, :-1], axis=1) - 1


def _binomial_max_log_likelihood(k: Floats, k_prime: Floats) -> Floats:
    """Return the maximum log-likelihood of sets of bins with `k` draws on x and `k_prime` on x'."""
    both = np.maximum(k + k_prime, 1.0)
    share, share_prime = np.maximum(k, 1e-300) / both, np.maximum(k_prime, 1e-300) / both
    return k * np.log(share) + k_prime * np.log(share_prime)
