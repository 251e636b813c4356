"""dpcore: how much privacy does a mechanism really lose?

Samples differential-privacy mechanisms at hardware speed, attacks them, and returns a certified
lower bound on epsilon with the evidence behind it.
"""

from typing import TYPE_CHECKING, Any

from ._core import __version__
from .report import WORD_PACKAGES

if TYPE_CHECKING:
    from . import (
        adapters,
        attacks,
        bounds,
        calibration,
        claims,
        divergence,
        events,
        exact,
        pairs,
        published,
        runs,
        sensitivity,
        structure,
        text,
        tracing,
        training,
    )
    from . import torch as torch
    from .attacks import Attack
    from .auditing.power import plan
    from .auditing.run import audit
    from .errors import AssumptionWarning, FileWarning
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
    from .tracing.outcome import Trace
    from .tracing.run import trace

WORD_PACKAGES.extend(
    (
        "dpcore.calibration",
        "dpcore.sensitivity",
        "dpcore.tracing",
        "dpcore.training",
        "dpcore.mechanisms.texts",
        "dpcore.text.inference",
    )
)

__all__ = [
    "AssumptionWarning",
    "Attack",
    "Audit",
    "Counts",
    "DPTextNoise",
    "Event",
    "Exponential",
    "FileWarning",
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
    "Trace",
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
    "trace",
    "tracing",
    "training",
]

_NAMES_OF = {
    "attacks": ("Attack",),
    "auditing.power": ("plan",),
    "auditing.run": ("audit",),
    "errors": ("AssumptionWarning", "FileWarning"),
    "events": ("Event",),
    "mechanisms": (
        "DPTextNoise",
        "Exponential",
        "Gaussian",
        "Identity",
        "Laplace",
        "Mechanism",
        "RandomBits",
        "Uniform",
    ),
    "mechanisms.callables": ("Raised", "repeat"),
    "mechanisms.commands": ("command",),
    "recorded.run": ("audit_outputs",),
    "records": ("Counts", "Pair"),
    "results.audits": ("Audit",),
    "results.outputs_audits": ("OutputsAudit",),
    "results.planned": ("Plan",),
    "sampling.sources": ("sample",),
    "tables.table_audit": ("TableAudit", "audit_table"),
    "tracing.outcome": ("Trace",),
    "tracing.run": ("trace",),
}
"""Public names by the module that has them; the other public names are modules."""


def __getattr__(name: str) -> Any:
    """Load a name when it is first used: a process imports only what it needs."""
    if name not in (*__all__, "torch"):
        meant = ""
        if not name.startswith("_"):
            from .advice import suggest_word

            meant = suggest_word(name, __all__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{meant}")
    from importlib import import_module

    home = next((module for module, names in _NAMES_OF.items() if name in names), "")
    found = import_module(f".{home or name}", __name__)
    globals()[name] = getattr(found, name) if home else found
    return globals()[name]


def __dir__() -> list[str]:
    """List the public names, which are loaded when they are first used."""
    return sorted([*__all__, "torch"])
