"""Where randomness enters a module, and on what input."""

from .finding import Source, Sources, noise_sources

__all__ = ["Source", "Sources", "noise_sources"]
