"""Audits of trainings: one noisy step, one run with canaries, and processes for many runs.

They see a training as it is done: `OpacusStep` clips and draws with the objects of Opacus, and any
other code fits as a plain function. Only `OpacusStep` needs a further package:
`pip install dpcore[dpsgd]`.
"""

from __future__ import annotations

from .run import audit_run, make_pool
from .step import OpacusStep, audit_step

__all__ = ["OpacusStep", "audit_run", "audit_step", "make_pool"]


def __dir__() -> list[str]:
    """Return its public names; what it imports is not shown."""
    return [*__all__]
