"""Losses of whole texts: one word changed, all of them, and the whole at a delta."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ...divergence import canonne_kamath_steinke
from ...errors import confidence_level
from ...records import Record
from .mechanism import Floats

__all__ = ["TextLoss", "one_sided_loss", "text_loss"]

_ORDERS: Final = 1.0 + np.geomspace(1e-3, 1e4, 141)
"""Orders of the divergences, each an eighth above 1 farther than the one before."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TextLoss(Record):
    """Losses of a mechanism between two texts of one length.

    Args:
        words: words of each text.
        changed: places at which the texts differ.
        claimed: epsilon times the sum of the distances.
        one_word: exact loss of the worst of these places alone.
        whole: exact loss of the texts, the sum over places, in the worse direction.
        delta: of the last figure.
        at_delta: upper bound on the loss of the texts at `delta`; never above `whole`.
    """

    words: int
    changed: int
    claimed: float
    one_word: float
    whole: float
    delta: float
    at_delta: float

    def __str__(self) -> str:
        """Return one line for each figure."""
        return "\n".join(
            (
                f"texts of {self.words:,} words that differ in {self.changed:,}; their number is "
                "released",
                f"one word changed: {self.one_word:.4g} nats (exact, the worst place)",
                f"all of them: {self.whole:.4g} nats (exact), {self.claimed:.4g} claimed",
                f"all of them at delta {self.delta:g}: at most {self.at_delta:.4g} nats "
                "(Renyi divergences)",
            )
        )


def text_loss(mechanism: Any, a: Any, b: Any, delta: float = 1e-6) -> TextLoss:
    """Compute the losses between two texts; see `TableMechanism.text_loss`."""
    delta = confidence_level(delta, "delta")
    pair = mechanism.pair(a, b)
    first, second = mechanism._read_pair(pair)
    changed = np.flatnonzero(first != second)
    worst, curves, one_word = np.zeros(2), np.zeros((2, len(_ORDERS))), 0.0
    # Pairs of words that are repeated are computed once.
    pairs = np.stack([first[changed], second[changed]], axis=1)
    for words, number in zip(*np.unique(pairs, axis=0, return_counts=True), strict=True):
        p, q = mechanism._rows_of(words)
        losses = np.array([one_sided_loss(p, q), one_sided_loss(q, p)])
        worst += number * losses
        one_word = max(one_word, float(losses.max()))
        curves += number * np.array([_divergences(p, q), _divergences(q, p)])
    whole = float(worst.max())
    converted = canonne_kamath_steinke(_ORDERS, curves.max(axis=0), delta)
    return TextLoss(
        len(first),
        len(changed),
        float(mechanism.claim * pair.distance),
        one_word,
        whole,
        delta,
        min(whole, converted.epsilon),
    )


def one_sided_loss(log_p: Floats, log_q: Floats, delta: float = 0.0) -> float:
    """Return the least epsilon >= 0 with P(S) <= e^epsilon Q(S) + delta for all events S."""
    possible = log_p > -np.inf
    log_p, log_q = log_p[possible], log_q[possible]
    losses = log_p - log_q
    if delta == 0.0:
        return float(losses.max())
    order = np.argsort(-losses)
    # Between two losses the outputs above are the same, and sum(p) - e^epsilon sum(q) = delta.
    p, q = np.cumsum(np.exp(log_p[order])), np.cumsum(np.exp(log_q[order]))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log(np.maximum(p - delta, 0.0)) - np.log(q)
    found[p <= delta] = -np.inf
    # The excess over delta is the largest over sets of outputs: each needs its own epsilon.
    return max(0.0, float(found.max()))


def _divergences(log_p: Floats, log_q: Floats) -> Floats:
    """Return renyi divergences of two laws at all orders, from log probabilities."""
    possible = log_p > -np.inf
    log_p, losses = log_p[possible], (log_p - log_q)[possible]
    if np.isinf(losses).any():
        return np.full(len(_ORDERS), np.inf)
    steps = _ORDERS - 1.0
    exponents = log_p + steps[:, None] * losses
    top = exponents.max(axis=1)
    found: Floats = (top + np.log(np.exp(exponents - top[:, None]).sum(axis=1))) / steps
    # Rounding of the sum, over a small step, may fall below 0.
    return np.maximum(found, 0.0)
