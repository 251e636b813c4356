"""Runs of trials cut at the edges of blocks."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

__all__ = ["iterate_blocks", "shared_block", "slices_of"]

_SLICE_SECONDS = 0.4


def iterate_blocks(start: int, stop: int, block: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges into which block boundaries cut [start, stop)."""
    edges = [start, *range((start // block + 1) * block, stop, block), stop]
    return itertools.pairwise(edges) if start < stop else iter(())


def shared_block(trials: int, threads: int) -> int:
    """Compute the trials in a block such that every thread has one block."""
    return max(1, trials // threads)


def slices_of(start: int, stop: int, block: int, threads: int) -> Iterator[tuple[int, int]]:
    """Yield runs of whole blocks, each of about _SLICE_SECONDS of work.

    Ctrl-C waits for the blocks that threads have begun, and a slice has few of them.
    """
    blocks = threads
    while start < stop:
        begun = time.perf_counter()
        end = min(stop, (start // block + blocks) * block)
        yield start, end
        taken = time.perf_counter() - begun
        start = end
        factor = min(8.0, _SLICE_SECONDS / max(taken, 1e-6))
        blocks = max(threads, int(blocks * factor) // threads * threads)
