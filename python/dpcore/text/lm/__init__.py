"""Next-word models: plain, or trained by DP-SGD, their canaries, and how close two models are.

Imported without torch. A plain training needs `pip install dpcore[torch]`, a private one
`pip install dpcore[dpsgd]`.
"""

from __future__ import annotations

from .model import NextWordModel, Perplexity, canaries, fit
from .similarity import Closeness, Distances, closeness, representation_distances

__all__ = [
    "Closeness", "Distances", "NextWordModel", "Perplexity", "canaries", "closeness", "fit",
    "representation_distances",
]  # fmt: skip


def __dir__() -> list[str]:
    """Return its public names; what it imports is not shown."""
    return [*__all__]
