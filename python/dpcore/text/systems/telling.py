"""Trained encoders in words: what is claimed, what is true, for whom, how they were trained."""

from __future__ import annotations

import math

from ...calibration import word_dropout
from ...torch.telling import rows
from .dpnr import DPNR

__all__ = ["told"]


def told(model: DPNR) -> str:
    """The model as lines of text, one word before each."""
    listed = [] if model.private is None else _fitted(model)
    if not listed:
        listed = [
            ("claim", f"epsilon {model.claim:g}, for any two texts"),
            ("true", model.verdict),
        ]
        listed.append(("trained", "not yet: model.fit(corpus)"))
    lines = [f"  {label:<12} {line}" for label, line in listed]
    return "\n".join([repr(model), *lines])


def _fitted(model: DPNR) -> list[tuple[str, str]]:
    assert model.private is not None
    found = dict(rows(model.private))
    found["not covered"] = "the texts that the weights were fitted to"
    if model.dropout is not None and model.dropout.masks == "bernoulli":
        claimed, true = (
            word_dropout(level, model.dropout.mu) if math.isfinite(level) else level
            for level in (model.claim, model.true_epsilon)
        )
        found["dropout"] = (
            f"for texts that differ in one word: claimed {claimed:.6g}, true {true:.6g}; for any "
            "two texts nothing is gained"
        )
    elif model.dropout is not None:
        found["dropout"] = (
            "a fixed share of masked words: what is published as its gain does not hold"
        )
    found["trained"] = str(model.trained)
    found["labels"] = ", ".join(map(str, model.labels.tolist()))
    return list(found.items())
