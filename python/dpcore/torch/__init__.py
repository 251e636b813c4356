"""The bridge to torch: noise layers, transforms, encoders of texts, and where noise enters a model.

Needs torch: `pip install dpcore[torch]`.
"""

from __future__ import annotations

from .finding import Source, Sources, noise_sources
from .needed import torch as _torch  # noqa: F401 - says what to install

__all__ = [
    "Source", "Sources", "noise_sources",
]  # fmt: skip
