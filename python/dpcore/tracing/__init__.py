"""Traces: find which line of a function loses how much privacy, from a few runs on one pair."""

from .outcome import Trace, TraceFinding, TraceStep
from .primitives import primitive

__all__ = ["Trace", "TraceFinding", "TraceStep", "primitive"]


def __dir__() -> list[str]:
    """Return the public names of this package."""
    return [*__all__]
