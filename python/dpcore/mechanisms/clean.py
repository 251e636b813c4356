"""What a mechanism says of its noise: what it is added to, and what it costs.

A mechanism that encodes its input may carry `clean(x)`, the vector that the noise is added to:
attacks then know that vector instead of an input that no arithmetic applies to; `loss(pair,
delta)`, the exact privacy loss of two inputs under the noise that it declares; and
`notes_on(pair)`, what a reader of a report should know. An audit asks for each once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import mistyped
from ..records import Pair

__all__ = ["clean_pair", "declared_loss", "notes_on"]


def clean_pair(mechanism: Any, pair: Pair) -> Pair | None:
    """The vectors that the noise is added to on both inputs; None where they are not told.

    Args:
        mechanism: any mechanism.
        pair: its two inputs.

    Example:
        >>> class Counting:
        ...     def clean(self, text):
        ...         return np.array([float(len(text.split()))])
        >>> clean_pair(Counting(), Pair("a good film", "a film"))
        Pair(x=array([3.]), x_prime=array([2.]), distance=1.0)
        >>> clean_pair(print, Pair("a", "b")) is None
        True
    """
    clean = _method(mechanism, "clean")
    if clean is None:
        return None
    x, x_prime = clean(pair.x), clean(pair.x_prime)
    if x is None or x_prime is None:
        return None
    return Pair(np.asarray(x, np.float64), np.asarray(x_prime, np.float64), pair.distance)


def declared_loss(mechanism: Any, pair: Pair, delta: float) -> float | None:
    """The exact loss of a pair under the noise that a mechanism declares; None where it has none.

    Args:
        mechanism: any mechanism.
        pair: its two inputs.
        delta: of the claim.
    """
    loss = _method(mechanism, "loss")
    found = None if loss is None else loss(pair, delta)
    return None if found is None else float(found)


def notes_on(mechanism: Any, pair: Pair) -> tuple[str, ...]:
    """What a mechanism says of a pair to the reader of a report."""
    notes = _method(mechanism, "notes_on")
    found = () if notes is None else notes(pair)
    if not isinstance(found, tuple):
        raise mistyped("notes_on(pair)", "a tuple of strings", found)
    return found


def _method(mechanism: Any, name: str) -> Any:
    # A torch loss function has an attribute of that name, too, which may be anything.
    found = getattr(mechanism, name, None) if hasattr(mechanism, "clean") else None
    return found if callable(found) else None
