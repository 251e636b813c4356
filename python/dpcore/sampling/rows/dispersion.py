"""Test that an event is equally likely in all sub-blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

Blocks = Sequence[tuple[int, int]]
"""Trials and hits of sub-blocks, in their order."""

_EARLY_SUB_BLOCKS: Final = 16
_LATER_SUB_BLOCKS: Final = 4
"""Sub-blocks of the first sixteen blocks, and of any later one: there are enough by then."""
_MIN_SUB_BLOCK_TRIALS: Final = 64
_MIN_EXPECTED_HITS: Final = 25.0
"""Hits and misses expected in a pool: with 5 a nominal 1e-9 is 8e-7, with 25 about 3e-8."""


def cut_block(rows: int, start: int = 0) -> list[int]:
    """Return the edges of a block's sub-blocks: 16 (later 4), or fewer of at least 64 trials."""
    most = _EARLY_SUB_BLOCKS if start < _EARLY_SUB_BLOCKS * rows else _LATER_SUB_BLOCKS
    pieces = max(1, min(most, rows // _MIN_SUB_BLOCK_TRIALS))
    return [rows * piece // pieces for piece in range(pieces + 1)]


def dispersion_p_value(strata: Sequence[Blocks]) -> float:
    """Compute the p-value of Pearson's test that an event is equally likely in all sub-blocks.

    Neighbouring sub-blocks are pooled until 25 hits and 25 misses are expected in each pool; then
    the pools are joined in twos, fours, ... and tested again, for what changes slowly.

    Args:
        strata: sub-blocks in which one event was counted; several where the event changed.

    Returns:
        The smallest p-value of all these tests; 1 where there are no two pools.
    """
    pools = [pool for pool in map(_pool_blocks, strata) if len(pool) > 1]
    least = 1.0
    while pools:
        least = min(least, _pearson_p_value(pools))
        pools = [pool for pool in map(_halve_pool, pools) if len(pool) > 1]
    return least


def _pool_blocks(blocks: Blocks) -> npt.NDArray[np.float64]:
    rows, hits = sum(n for n, _ in blocks), sum(k for _, k in blocks)
    rarer = min(hits, rows - hits)
    found: list[list[int]] = []
    if rarer < 2 * _MIN_EXPECTED_HITS:
        return np.array(found)
    enough = _MIN_EXPECTED_HITS * rows / rarer
    for n, k in blocks:
        if found and found[-1][0] < enough:
            found[-1][0] += n
            found[-1][1] += k
        else:
            found.append([n, k])
    if len(found) > 1 and found[-1][0] < enough:
        # What is left over is too short to stand by itself.
        n, k = found.pop()
        found[-1][0] += n
        found[-1][1] += k
    return np.array(found, dtype=np.float64)


def _halve_pool(pool: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.add.reduceat(pool, np.arange(0, len(pool) - 1, 2))


def _pearson_p_value(pools: Sequence[npt.NDArray[np.float64]]) -> float:
    from scipy.special import chdtrc

    total, freedom = 0.0, 0
    for sizes, hits in (pool.T for pool in pools):
        rate = hits.sum() / sizes.sum()
        total += float(((hits - sizes * rate) ** 2 / (sizes * rate * (1.0 - rate))).sum())
        freedom += len(sizes) - 1
    return float(chdtrc(freedom, total))
