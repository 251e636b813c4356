"""Trained encoders in words: what is claimed, what is true, for whom, how they were trained."""

from __future__ import annotations

from ...torch.telling import rows
from .protected import Protected

__all__ = ["told"]


def told(model: Protected) -> str:
    """The model as lines of text, one word before each."""
    if model.private is None:
        claim = "none" if model.claim is None else f"epsilon {model.claim:g}, for any two texts"
        listed = [
            ("claim", claim),
            ("true", model.verdict),
            ("trained", "not yet: model.fit(corpus)"),
        ]
    else:
        found = dict(rows(model.private))
        found["not covered"] = "the texts that the weights were fitted to"
        listed = list((found | model.details()).items())
    lines = [f"  {label:<12} {line}" for label, line in listed]
    return "\n".join([repr(model), *lines])
