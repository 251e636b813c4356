"""dpcore: how much privacy does a mechanism really lose?

Samples differential-privacy mechanisms at hardware speed, attacks them, and returns a certified
lower bound on epsilon with the evidence behind it.
"""

from typing import TYPE_CHECKING, Any

from . import adapters, attacks, bounds, claims, events, exact, pairs, published
from ._core import __version__
from .attacks import Attack
from .auditing.power import plan
from .auditing.run import audit
from .errors import AssumptionWarning
from .events import Event
from .mechanisms import (
    DPTextNoise,
    Exponential,
    Gaussian,
    Identity,
    Laplace,
    Mechanism,
    RandomBits,
    Uniform,
)
from .mechanisms.callables import Raised, repeat
from .mechanisms.commands import command
from .recorded.run import audit_outputs
from .records import Counts, Pair
from .results.audits import Audit
from .results.outputs_audits import OutputsAudit
from .results.planned import Plan
from .sampling.sources import sample
from .tables.table_audit import TableAudit, audit_table

if TYPE_CHECKING:
    from . import calibration, divergence, runs, sensitivity, structure, text, training
    from . import torch as torch

__all__ = [
    "AssumptionWarning",
    "Attack",
    "Audit",
    "Counts",
    "DPTextNoise",
    "Event",
    "Exponential",
    "Gaussian",
    "Identity",
    "Laplace",
    "Mechanism",
    "OutputsAudit",
    "Pair",
    "Plan",
    "Raised",
    "RandomBits",
    "TableAudit",
    "Uniform",
    "__version__",
    "adapters",
    "attacks",
    "audit",
    "audit_outputs",
    "audit_table",
    "bounds",
    "calibration",
    "claims",
    "command",
    "divergence",
    "events",
    "exact",
    "pairs",
    "plan",
    "published",
    "repeat",
    "runs",
    "sample",
    "sensitivity",
    "structure",
    "text",
    "training",
]

_LAZY_SUBPACKAGES = (
    "calibration",
    "divergence",
    "runs",
    "sensitivity",
    "structure",
    "text",
    "torch",
    "training",
)


def __getattr__(name: str) -> Any:
    """Load a subpackage that no audit needs when it is first named."""
    if name in _LAZY_SUBPACKAGES:
        from importlib import import_module

        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, and the subpackages that are loaded when they are named."""
    return sorted([*__all__, "torch"])
