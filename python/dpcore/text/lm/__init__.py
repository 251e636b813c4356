"""Next-word models: plain, or trained by DP-SGD, and their canaries.

Imported without torch. A plain training needs `pip install dpcore[torch]`, a private one
`pip install dpcore[dpsgd]`.
"""

from __future__ import annotations

from .canaries import canaries
from .fitting import fit
from .measuring import Perplexity
from .model import NextWordModel

__all__ = ["NextWordModel", "Perplexity", "canaries", "fit"]


def __dir__() -> list[str]:
    """Return its public names; what it imports is not shown."""
    return [*__all__]
