"""Every sensitivity in closed form: attained by its pair, and found from below by a search."""

from .experiment import (
    ENTRIES,
    HIGH,
    LOW,
    NAME,
    RADIUS,
    Config,
    Entry,
    Result,
    Row,
    release_input,
    run,
)

__all__ = [
    "ENTRIES",
    "HIGH",
    "LOW",
    "NAME",
    "RADIUS",
    "Config",
    "Entry",
    "Result",
    "Row",
    "release_input",
    "run",
]
