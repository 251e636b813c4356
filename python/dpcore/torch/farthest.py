"""The two rows that are farthest apart, of all pairs: in blocks, and never an n x n array."""

from __future__ import annotations

from typing import Any, Final

from ..errors import choice
from ..progress import Progress
from .needed import torch

__all__ = ["farthest"]

_ROWS_PER_BLOCK: Final = 256
"""Rows that are compared with all others at once: 12 MB of distances at 11,657 rows."""
_DISTANCE_SLACK: Final = 1e-4
"""Relative difference that float32 sums of up to 2^20 terms stay well below (measured: 1e-6)."""


def farthest(rows: Any, norm: str, progress: bool | None = None) -> tuple[int, int]:
    """Return the places of the two rows with the largest distance.

    Float32 rules pairs out, with a margin for its rounding; float64 decides among the rest.

    Args:
        rows: a tensor, shape `(size, width)`, at least two rows.
        norm: "l1" or "l2".
        progress: show a bar; None shows it for long work on a terminal or in a notebook.

    Returns:
        Two places, the smaller one first.

    Example:
        >>> farthest(torch.tensor([[0.0, 0.0], [1.0, 1.0], [0.5, 2.0]]), "l1")
        (0, 2)
    """
    choice("norm", norm, ("l1", "l2"))
    rows = rows.detach().double()
    # What all rows have in common would only cost digits.
    rows = rows - rows.mean(dim=0)
    few = rows.float()
    order = 1.0 if norm == "l1" else 2.0
    size, best, place = len(rows), -1.0, (0, 1)
    with Progress("comparing texts", size * (size - 1) // 2, progress) as bar:
        for first in range(0, size - 1, _ROWS_PER_BLOCK):
            block = few[first : first + _ROWS_PER_BLOCK]
            found = torch.cdist(block, few[first:], p=order)
            near = torch.nonzero(found >= max(float(found.max()), best) * (1.0 - _DISTANCE_SLACK))
            for i, j in near.tolist():
                apart = float((rows[first + i] - rows[first + j]).norm(order))
                if i < j and apart > best:
                    best, place = apart, (first + i, first + j)
            bar.advance(
                sum(size - 1 - row for row in range(first, min(first + _ROWS_PER_BLOCK, size)))
            )
    return place
