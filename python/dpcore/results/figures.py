"""Figures that all results share: one formula and one wording for each."""

from __future__ import annotations

import math

from ..records import Counts


def numerator_first(counts: Counts, direction: str | None) -> Counts:
    """Return the counts with the numerator's side first, as a direction "x" or "x_prime" names."""
    return counts if direction == "x" else counts.swapped()


def per_distance(loss: float, delta: float, distance: float) -> float:
    """Compute a loss per unit of distance at delta 0; at delta > 0 it is never divided."""
    return loss / distance if delta == 0.0 else loss


def log_ratio(k: int, k_prime: int, n: int = 1, n_prime: int = 1) -> float:
    """Compute the log of the quotient of k/n and k'/n': 0 for 0/0, infinite with one 0."""
    if k == 0 or k_prime == 0:
        return 0.0 if k == k_prime else math.copysign(math.inf, k - 0.5)
    return math.log(k / n) - math.log(k_prime / n_prime)


def empirical_loss(counts: Counts) -> float:
    """Compute the larger of abs(ln(k/k')) and abs(ln((n-k)/(n'-k'))), of frequencies.

    Source:
        Habernal (2022), equation 12.
    """
    cells = (counts, counts.complement())
    return max(abs(log_ratio(c.k, c.k_prime, c.n, c.n_prime)) for c in cells)


def format_verdict(refuted: bool | None, doubts: tuple[str, ...]) -> str:
    """Format the outcome in words; with doubts about the rows, name the first: no bound holds."""
    if doubts:
        return f"invalid: {doubts[0]}"
    words = {None: "no claim given", True: "refuted", False: "not refuted by this attack"}
    return words[refuted]
