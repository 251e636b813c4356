"""The figures of the paper on its AG file, with BERT as encoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["FIGURES", "Published"]


@dataclass(frozen=True, slots=True)
class Published:
    """One figure of the paper.

    Args:
        name: what the paper calls it.
        system: the system here to compare with.
        claim: the epsilon claimed, or None.
        main: accuracy of the main task.
        privacy: empirical privacy, 1 - F; None where the paper has none.
    """

    name: str
    system: str
    claim: float | None
    main: float
    privacy: float | None = None


FIGURES: Final = (
    Published("majority", "majority", None, 0.5779, 0.4934),
    Published("not private", "no noise", None, 0.7875, 0.2324),
    Published("adversarial training", "MinMaxAdversary", None, 0.5704, 0.4967),
    Published("DPNR", "shared", 0.05, 0.8087, 0.5437),
    Published("DPNR", "shared", 1.0, 0.7936),
    Published("DPNR", "shared", 5.0, 0.7959),
)
"""Tables 2 and 4 of Lyu, He and Li (2020)."""
