"""Structural checks: statistical tests for faults in the noise that a mechanism adds.

`inspect` draws outputs of a mechanism and looks for faults that occurred in released code.
`fork_reuse` looks for noise that is repeated after a process fork. `FAULTS` is a list of faulty
mechanisms, each with a repaired version.

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
    """List the public names of the package; imported names are not listed but can be imported."""
    return [*__all__]
