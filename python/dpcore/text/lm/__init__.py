"""Next-word models (trained with or without DP-SGD), canary texts, and distances between models.

The package can be imported without torch. Training without privacy needs
`pip install dpcore[torch]`, and private training needs `pip install dpcore[dpsgd]`.
"""

from __future__ import annotations

from .model import NextWordModel, Perplexity, canaries, fit
from .similarity import Closeness, Distances, closeness, representation_distances

__all__ = [
    "Closeness", "Distances", "NextWordModel", "Perplexity", "canaries", "closeness", "fit",
    "representation_distances",
]  # fmt: skip


def __dir__() -> list[str]:
    """Return the public names of the package."""
    return [*__all__]
