"""Number of rows that an estimate needs: what a sample can show, solved for it."""

from __future__ import annotations

import math
from typing import Final

TOLD: Final = 4.0
SHARP: Final = 0.0125
"""A value within `TOLD` standard errors of 0 is resolved only if these are at most `SHARP`."""

SHARE: Final = 0.4
"""Of ln(N/k): the largest KL divergence that N rows and k neighbours resolve."""

_SHOWN_DIVERGENCE: Final = 1.0
"""The divergence in nats that `to_see` speaks of."""


def to_tell(value: float, spread: float, rows: int) -> int:
    """Return the rows of each set that resolve a value, if its error falls with their root.

    Args:
        value: the estimate.
        spread: its standard error from `rows` rows of the smaller set.
        rows: those.
    """
    wanted = max(SHARP, abs(value) / TOLD)
    return _round_up(rows * (spread / wanted) ** 2)


def to_see(dim: int, k: int, fitted: bool) -> int:
    """Return the least number of rows of each set at which a divergence of one nat shows.

    Balls of k neighbours resolve a KL divergence of .4 ln(N/k). A score is fitted on half of the
    rows, and shows in the other half: twice as many. A linear score of d coordinates, fitted on n
    rows of each of two normal laws mu apart, sees the share mu^2/(mu^2 + 2 d/n) of their KL
    divergence mu^2/2, for the rest of its direction is the noise of both means: half of one nat
    with n = d, which takes 2 d rows of each set.

    Args:
        dim: coordinates of a row.
        k: neighbours.
        fitted: True for a fitted score.
    """
    balls = k * math.exp(_SHOWN_DIVERGENCE / SHARE)
    return math.ceil(max(2 * balls, 2 * dim / _SHOWN_DIVERGENCE) if fitted else balls)


def too_few(sizes: tuple[int, int], dim: int, k: int, fitted: bool) -> str:
    """Explain the limit of too few rows, and give the number that suffices."""
    need = to_see(dim, k, fitted)
    numbers = f"{dim:,} number{'s'[: dim > 1]}"
    return (
        f"{sizes[0]:,} and {sizes[1]:,} rows of {numbers} are too few to show any divergence with "
        f"k = {k} neighbours: to see about half of one nat takes {need:,} rows of each set"
    )


def fitting_note(rows: int, dim: int, k: int) -> str:
    """Return a note on a score fitted on too few rows to see half of one nat."""
    return (
        f"{rows:,} rows of {dim:,} numbers are few for a fitted score: of a divergence of "
        f"{2 * dim / rows:.3g} nats it sees about half, of smaller ones less; one nat takes "
        f"{to_see(dim, k, True):,} rows of each set"
    )


def _round_up(rows: float) -> int:
    """Round up to two digits, as the number is a guess."""
    unit: int = 10 ** max(0, math.floor(math.log10(max(rows, 1.0))) - 1)
    return math.ceil(rows / unit) * unit
