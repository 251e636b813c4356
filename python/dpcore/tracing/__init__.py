"""Traces: which line of a function loses how much, from a few runs on one pair."""

from .outcome import Trace, TraceFinding, TraceStep

__all__ = ["Trace", "TraceFinding", "TraceStep"]


def __dir__() -> list[str]:
    """Return the public names of this package."""
    return [*__all__]
