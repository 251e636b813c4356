"""Trained encoders in words: what is claimed, what is true, for whom, how they were trained."""

from __future__ import annotations

import math

from ...torch.telling import rows
from .dpnr import DPNR

__all__ = ["told", "verdict"]


def verdict(model: DPNR) -> str:
    """Whether the claim holds for any two texts, in a few words."""
    found = model.true_epsilon
    if math.isnan(found):
        return "not fitted"
    level = f"true epsilon {found:.6g}" if math.isfinite(found) else "no epsilon at all"
    false = found > model.claim * (1.0 + 1e-9)
    return f"{'THE CLAIM IS FALSE: ' * false}{level} for any two texts"


def told(model: DPNR) -> str:
    """The model as lines of text, one word before each."""
    listed = [] if model.private is None else _fitted(model)
    if not listed:
        listed = [
            ("claim", f"epsilon {model.claim:g}, for any two texts"),
            ("true", verdict(model)),
        ]
        listed.append(("trained", "not yet: model.fit(corpus)"))
    lines = [f"  {label:<12} {line}" for label, line in listed]
    return "\n".join([repr(model), *lines])


def _fitted(model: DPNR) -> list[tuple[str, str]]:
    assert model.private is not None
    found = dict(rows(model.private))
    found["not covered"] = "the texts that the weights were fitted to"
    if model.dropout is not None and model.dropout.masks == "bernoulli":
        from ...calibration import word_dropout

        level = word_dropout(model.claim, model.dropout.mu)
        found["dropout"] = (
            f"claimed {level:.4g} for texts that differ in one word, if a masked word is no more; "
            "any two texts: see true"
        )
    elif model.dropout is not None:
        found["dropout"] = "a fixed number of masked words: no bound is known for it"
    found["trained"] = str(model.trained)
    found["labels"] = ", ".join(map(str, model.labels.tolist()))
    return list(found.items())
