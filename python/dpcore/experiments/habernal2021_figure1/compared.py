"""Another run of the figure, as it was printed, and whether it counts the same as ours."""

from __future__ import annotations

from typing import Final

import numpy as np

COMPARISON: Final[dict[int, tuple[float, float, float]]] = {
    2: (0.134, 0.0, 0.0),
    8: (0.952, 0.0001, 0.0),
    24: (1.0, 0.963, 0.0),
    64: (1.0, 1.0, 0.0),
    160: (1.0, 1.0, 0.037),
    200: (1.0, 1.0, 0.986),
    255: (1.0, 1.0, 1.0),
}
"""Shares after L2 clipping in another run of 10,000 pairs, by n and law, as they were printed."""

COMPARED_PAIRS: Final = 10_000


def p_value(ours: tuple[int, int], printed: float, pairs: int) -> float:
    """Compute the two-sided p-value of Fisher's exact test that two runs count the same thing.

    Args:
        ours: hits and pairs.
        printed: the other run's share, rounded; of the counts that it may stand for, the one
            nearest to ours is taken.
        pairs: pairs of the other run.

    Returns:
        min(1, 2 min(P(K <= k), P(K >= k))), K hypergeometric.

    Example:
        >>> p_value((1340, 10_000), 0.134, 10_000), p_value((1, 10_000), 0.134, 10_000) < 1e-100
        (1.0, True)
    """
    from scipy.special import gammaln

    k, n = ours
    half = 0.5 * 10.0 ** -max(3, len(f"{printed:g}".partition(".")[2]))
    low, high = max(0.0, (printed - half) * pairs), min(pairs, (printed + half) * pairs)
    total = k + round(min(max(k / n * pairs, low), high))
    # Of `total` hits among n + pairs, so many may fall among our n.
    hits = np.arange(max(0, total - pairs), min(total, n) + 1)
    others = total - hits
    log_mass = -(gammaln(hits + 1) + gammaln(n - hits + 1))
    log_mass -= gammaln(others + 1) + gammaln(pairs - others + 1)
    mass = np.exp(log_mass - log_mass.max())
    below, above = mass[hits <= k].sum(), mass[hits >= k].sum()
    return float(min(1.0, 2.0 * min(below, above) / mass.sum()))
