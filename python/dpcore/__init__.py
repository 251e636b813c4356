"""dpcore: how much privacy does a mechanism really lose?

Samples differential-privacy mechanisms at hardware speed, attacks them, and returns a certified
lower bound on epsilon with the evidence behind it.
"""

from . import (
    adapters,
    attacks,
    bounds,
    calibration,
    events,
    exact,
    pairs,
    published,
    sensitivity,
    structure,
)
from ._core import __version__
from .auditing import Audit, audit
from .mechanisms import (
    DPTextNoise,
    Exponential,
    Gaussian,
    Identity,
    Laplace,
    RandomBits,
    Uniform,
)
from .outputs_auditing import OutputsAudit, audit_outputs
from .records import Counts, Pair
from .repeating import Raised, repeat
from .sampling import sample

__all__ = [
    "Audit",
    "Counts",
    "DPTextNoise",
    "Exponential",
    "Gaussian",
    "Identity",
    "Laplace",
    "OutputsAudit",
    "Pair",
    "Raised",
    "RandomBits",
    "Uniform",
    "__version__",
    "adapters",
    "attacks",
    "audit",
    "audit_outputs",
    "bounds",
    "calibration",
    "events",
    "exact",
    "pairs",
    "published",
    "repeat",
    "sample",
    "sensitivity",
    "structure",
]
