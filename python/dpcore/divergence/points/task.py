"""Task that every searching method is given."""

from __future__ import annotations

from dataclasses import dataclass

from ..raw import Reals
from .points import Points
from .replicates import Plan


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Task:
    """Two sets of rows, what to estimate from them, and how to search.

    Args:
        points: the two sets.
        alphas: orders, ascending, shape (A,); 1.0 is the KL divergence.
        k: which neighbour; of a ball, how many rows of the other set it reaches if that set is
            not the larger one.
        plan: how to resample rows; None for no error bar.
        threads: threads of the search.
        progress: True, False or None, as in `dpcore.progress.Progress`.
    """

    points: Points
    alphas: Reals
    k: int
    plan: Plan | None
    threads: int
    progress: bool | None
