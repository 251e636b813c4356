"""Bringing coordinates to one scale by the moments of both sets together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import invalid
from ..raw import Reals

Rows = npt.NDArray[np.floating[Any]]
Both = tuple[Rows, Rows]
Counts = tuple[npt.NDArray[np.int64] | None, npt.NDArray[np.int64] | None]

UNEQUAL = 100.0
"""Largest variance of a coordinate, over the median one, that passes without a note."""

FEW = 10
"""Distinct points per direction below which whitening earns a note."""

_BLOCK_NUMBERS = 2**20


def note_unequal_scales(both: Both, counts: Counts) -> tuple[str, ...]:
    """Return a note if one variance far exceeds the median of those above 0."""
    if both[0].shape[1] == 1:
        return ()
    variances = _column_moments(both, counts)[1]
    varying = variances[variances > 0.0]
    if not varying.size or varying.max() <= UNEQUAL * np.median(varying):
        return ()
    return (
        f"coordinate {int(variances.argmax())} has {varying.max() / np.median(varying):.3g} times "
        'the median variance of a coordinate and rules the distances; see scale="std"',
    )


def scale_rows(both: Both, counts: Counts, scale: str, unique: int) -> tuple[Both, tuple[str, ...]]:
    """Scale both sets to new coordinates, and return notes.

    `unique` is the number of distinct points.
    """
    mean, variances = _column_moments(both, counts)
    if scale == "std":
        deviation = np.sqrt(np.where(variances > 0.0, variances, 1.0))
        return _map_blocks(both, lambda block: (block - mean) / deviation, len(mean)), ()
    values, vectors = np.linalg.eigh(_weighted_covariance(both, counts, mean))
    # Below this a direction holds the rounding of the numbers themselves, or of the moments.
    size = max(float(np.abs(extreme(rows))) for rows in both for extreme in (np.max, np.min))
    rounding = float(np.finfo(both[0].dtype).eps) * size
    floor = max(rounding**2, len(values) * float(np.finfo(np.float64).eps) * values[-1])
    kept = values > floor
    rank = int(kept.sum())
    notes = _note_whitening(rank, len(values), unique)
    if not rank:
        return both, notes
    # The largest entry of each direction is positive: an eigenvector's sign is arbitrary.
    vectors = vectors[:, kept]
    vectors = vectors * np.sign(vectors[np.abs(vectors).argmax(0), np.arange(rank)])
    change = vectors / np.sqrt(values[kept])
    return _map_blocks(both, lambda block: (block - mean) @ change, rank), notes


def _note_whitening(rank: int, dim: int, unique: int) -> tuple[str, ...]:
    if rank and unique <= rank + 1:
        # Whitened, such points are corners of a simplex, all equally far from each other.
        requirement = f'None or "std" for {unique} distinct points that span {rank} dimensions'
        raise invalid("scale", requirement, "whiten")
    notes = []
    if rank < dim:
        notes.append(
            f"whitening dropped {dim - rank} of {dim} directions, in which the rows differ by no "
            "more than the rounding of their numbers"
        )
    if unique < FEW * rank:
        notes.append(
            f"whitening rests on {unique} distinct points in {rank} directions: part of what "
            "tells the sets apart may be lost"
        )
    return tuple(notes)


def _iterate_weighted_blocks(both: Both, counts: Counts) -> Iterator[tuple[Reals, Reals]]:
    """Yield rows in float64 and their counts as a column, about 8 MiB at a time."""
    step = max(1, _BLOCK_NUMBERS // both[0].shape[1])
    for rows, count in zip(both, counts, strict=True):
        for start in range(0, len(rows), step):
            block = rows[start : start + step].astype(np.float64)
            weight = np.ones((len(block), 1))
            if count is not None:
                weight[:, 0] = count[start : start + step]
            yield block, weight


def _column_moments(both: Both, counts: Counts) -> tuple[Reals, Reals]:
    """Compute mean and variance of every column over the sample rows of both sets.

    Rows are added one after another, never by a matrix product, so that every CPU agrees. The
    variance of a constant column is exactly 0.
    """
    total = sum(float(weight.sum()) for _, weight in _iterate_weighted_blocks(both, counts))
    mean = sum((b * w).sum(0) for b, w in _iterate_weighted_blocks(both, counts)) / total
    squares = sum(((b - mean) ** 2 * w).sum(0) for b, w in _iterate_weighted_blocks(both, counts))
    low = np.minimum(both[0].min(0), both[1].min(0))
    high = np.maximum(both[0].max(0), both[1].max(0))
    return np.asarray(mean), np.where(low == high, 0.0, squares / total)


def _weighted_covariance(both: Both, counts: Counts, mean: Reals) -> Reals:
    total = sum(float(weight.sum()) for _, weight in _iterate_weighted_blocks(both, counts))
    products = sum(
        ((b - mean) * w).T @ (b - mean) for b, w in _iterate_weighted_blocks(both, counts)
    )
    return np.asarray(products / total)


def _map_blocks(both: Both, change: Callable[[Reals], Reals], dim: int) -> Both:
    """Apply a map of blocks of rows to both sets, in their own precision."""
    out = []
    for rows in both:
        new: Rows = np.empty((len(rows), dim), rows.dtype)
        step = max(1, _BLOCK_NUMBERS // rows.shape[1])
        for start in range(0, len(rows), step):
            new[start : start + step] = change(rows[start : start + step].astype(np.float64))
        out.append(new)
    return out[0], out[1]
