"""Audits of training code: one noisy step, or one run with canaries (records made for an audit).

The audits run the user's training code without changes. `OpacusStep` clips gradients and draws
noise with the objects of Opacus; any other training code can be passed as a function. `OpacusStep`
needs `pip install dpcore[dpsgd]`, and `language_model_losses` needs `pip install transformers`.
`make_pool` starts processes for an audit of many trainings.
"""

from __future__ import annotations

from .run import audit_run, language_model_losses, make_pool
from .step import OpacusStep, audit_step

__all__ = ["OpacusStep", "audit_run", "audit_step", "language_model_losses", "make_pool"]


def __dir__() -> list[str]:
    """List the public names of this package, without the names that it imports."""
    return [*__all__]
