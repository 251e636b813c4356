"""Privacy loss line by line: computes from a few runs how much privacy each line of code loses."""

from .outcome import Trace, TraceFinding, TraceStep
from .primitives import primitive

__all__ = ["Trace", "TraceFinding", "TraceStep", "primitive"]


def __dir__() -> list[str]:
    """List the public names of this package."""
    return [*__all__]
