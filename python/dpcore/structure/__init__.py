"""Structural checks of a noise layer: is the noise what it is taken for?

`inspect` samples a mechanism and looks for the faults of released code; `fork_reuse` looks for
noise that a forked child repeats; `FAULTS` are those faults, each with its repaired twin.

Example:
    >>> import dpcore
    >>> dpcore.structure.inspect(dpcore.Exponential(1.0), [0.0], rng=1).flagged
    ('one_sided', 'off_centre')
"""

from .checks import CHECKS, Check, Inspection
from .faults import FAULTS, Fault
from .inspection import fork_reuse, inspect

__all__ = ["CHECKS", "FAULTS", "Check", "Fault", "Inspection", "fork_reuse", "inspect"]


def __dir__() -> list[str]:
    """List the names that the module defines; imported names are left out but can be imported."""
    return [*__all__]
