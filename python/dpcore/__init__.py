"""dpcore: how much privacy does a mechanism really lose?

Samples differential-privacy mechanisms at hardware speed, attacks them, and returns a certified
lower bound on epsilon with the evidence behind it.
"""

from . import attacks, bounds, events, exact, pairs, published
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
from .records import Counts, Pair
from .sampling import sample

__all__ = [
    "Audit",
    "Counts",
    "DPTextNoise",
    "Exponential",
    "Gaussian",
    "Identity",
    "Laplace",
    "Pair",
    "RandomBits",
    "Uniform",
    "__version__",
    "attacks",
    "audit",
    "bounds",
    "events",
    "exact",
    "pairs",
    "published",
    "sample",
]
