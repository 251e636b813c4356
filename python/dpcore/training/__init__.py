"""Audits of trainings: one noisy step, one run with canaries, and a process pool for many runs.

The audits use the training code as it is. `OpacusStep` clips and draws with the objects of Opacus;
any other code can be passed as a function. Only `OpacusStep` and `language_model_losses` need
further packages: `pip install dpcore[dpsgd]`, `pip install transformers`.
"""

from __future__ import annotations

from .run import audit_run, language_model_losses, make_pool
from .step import OpacusStep, audit_step

__all__ = ["OpacusStep", "audit_run", "audit_step", "language_model_losses", "make_pool"]


def __dir__() -> list[str]:
    """List the public names; imported names are left out."""
    return [*__all__]
