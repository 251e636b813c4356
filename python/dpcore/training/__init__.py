"""Audits of trainings: one noisy step, one run with canaries, and processes for many runs.

They see a training as it is done: `OpacusStep` clips and draws with the objects of Opacus, and any
other code fits as a plain function. Only `OpacusStep` and `language_model_losses` need further
packages: `pip install dpcore[dpsgd]`, `pip install transformers`.
"""

from __future__ import annotations

from .run import audit_run, language_model_losses, make_pool
from .step import OpacusStep, audit_step

__all__ = ["OpacusStep", "audit_run", "audit_step", "language_model_losses", "make_pool"]


def __dir__() -> list[str]:
    """Return its public names; what it imports is not shown."""
    return [*__all__]
