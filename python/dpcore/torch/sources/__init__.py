"""Sources of randomness in a module, and their inputs."""

from .finding import Source, Sources, noise_sources

__all__ = ["Source", "Sources", "noise_sources"]
