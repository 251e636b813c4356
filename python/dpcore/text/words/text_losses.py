"""Losses of whole texts: one word changed, all of them, and the whole at a delta."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ...calibration.pure import l2_laplace_delta
from ...divergence import canonne_kamath_steinke
from ...errors import confidence_level
from ...records import Record
from .mechanism import Floats

__all__ = ["TextLoss", "one_sided_loss", "text_loss"]

_ORDERS: Final = 1.0 + np.geomspace(1e-3, 1e4, 141)
"""Orders of the divergences, each an eighth above 1 farther than the one before."""

_PRECISION: Final = 1e-6
"""Relative width of the interval in which an epsilon of the noise is known in the end."""

_INTEGRAL_ERROR: Final = 1e-12

_CELLS: Final = 600
_LEVELS: Final = 2_000
_TAIL_LOGIT: Final = 60.0
"""Cells of length and of cosine, levels of the loss, and logit of the outermost cells."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TextLoss(Record):
    """Losses of a mechanism between two texts of one length.

    Args:
        words: words of each text.
        changed: places at which the texts differ.
        claimed: epsilon times the sum of the distances.
        one_word: loss of the worst of these places alone.
        whole: loss of the texts, the sum over places, in the worse direction.
        delta: of the last two figures.
        at_delta: upper bound on the loss of the texts at `delta`; never above `whole`.
        one_word_at_delta: the same of the worst place alone; never above `one_word`.
        is_exact: True if `one_word` and `whole` are computed from the table; False if they are
            bounds by the noise, which the choice of a word can only lower.
    """

    words: int
    changed: int
    claimed: float
    one_word: float
    whole: float
    delta: float
    at_delta: float
    one_word_at_delta: float
    is_exact: bool = True

    def __str__(self) -> str:
        """Return one line for each figure."""
        kind = "exact" if self.is_exact else "a bound, by the noise alone"
        return "\n".join(
            (
                f"texts of {self.words:,} words that differ in {self.changed:,}; their number is "
                "released",
                f"one word changed: {self.one_word:.4g} nats ({kind}, the worst place)",
                f"one word changed at delta {self.delta:g}: at most "
                f"{self.one_word_at_delta:.4g} nats",
                f"all of them: {self.whole:.4g} nats ({kind}), {self.claimed:.4g} claimed",
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
    is_exact = hasattr(mechanism, "log_rows")
    worst, curves = np.zeros(2), np.zeros((2, len(_ORDERS)))
    one_word = one_word_at_delta = 0.0
    # Pairs of words that are repeated are computed once.
    pairs = np.stack([first[changed], second[changed]], axis=1)
    for words, number in zip(*np.unique(pairs, axis=0, return_counts=True), strict=True):
        if is_exact:
            p, q = mechanism._rows_of(words)
            losses = np.array([one_sided_loss(p, q), one_sided_loss(q, p)])
            at_delta = max(one_sided_loss(p, q, delta), one_sided_loss(q, p, delta))
            curve = np.array([_divergences(p, q), _divergences(q, p)])
        else:
            # The noise is the same around both words: either direction has the same losses.
            loss = float(mechanism.epsilon * mechanism._distances(*words[:, None])[0])
            losses = np.full(2, loss)
            at_delta = _noise_epsilon(loss, mechanism.vectors.dim, delta)
            curve = np.tile(_noise_divergences(loss, mechanism.vectors.dim), (2, 1))
        worst += number * losses
        one_word = max(one_word, float(losses.max()))
        one_word_at_delta = max(one_word_at_delta, at_delta)
        curves += number * curve
    whole = float(worst.max())
    converted = canonne_kamath_steinke(_ORDERS, curves.max(axis=0), delta)
    alone = one_word_at_delta if len(changed) == 1 else np.inf
    return TextLoss(
        words=len(first),
        changed=len(changed),
        claimed=float(mechanism.claim * pair.distance),
        one_word=one_word,
        whole=whole,
        delta=delta,
        at_delta=min(whole, converted.epsilon, alone),
        one_word_at_delta=one_word_at_delta,
        is_exact=is_exact,
    )


def _noise_epsilon(distance: float, dim: int, delta: float) -> float:
    """Return the least epsilon of the noise at a delta, rounded up; the distance over the scale."""
    low, high = 0.0, distance
    while high - low > _PRECISION * distance:
        middle = 0.5 * (low + high)
        # The integral is exact within 1e-12.
        fits = l2_laplace_delta(middle, distance, dim) + _INTEGRAL_ERROR <= delta
        low, high = (low, middle) if fits else (middle, high)
    return high


def _noise_divergences(distance: float, dim: int) -> Floats:
    """Return upper bounds on the Renyi divergences of the noise at all orders.

    At scale 1, with noise of length r and of cosine c with the line to the other word, the loss is
    sqrt(r^2 - 2 r c D + D^2) - r, which falls in r and in c. Its law is rounded up to the lower
    corners of cells of length and cosine, of which the probabilities are known.
    """
    from scipy.special import betaincinv, gammaincinv

    shares = 1.0 / (1.0 + np.exp(-np.linspace(-_TAIL_LOGIT, _TAIL_LOGIT, _CELLS - 1)))
    masses = np.diff(shares, prepend=0.0, append=1.0)
    # A lower corner that is rounded down keeps the bound; at 1 the length would be infinite.
    corners = np.minimum(np.concatenate([[0.0], shares]), 1.0 - 2.0**-53)
    lengths = gammaincinv(dim, corners)[:, None]
    cosines = 2.0 * betaincinv((dim - 1) / 2.0, (dim - 1) / 2.0, corners) - 1.0
    squares = lengths**2 - 2.0 * lengths * cosines * distance + distance**2
    losses = np.minimum(np.sqrt(np.maximum(squares, 0.0)) - lengths, distance)
    # Rounded up once more, to few levels that all orders share.
    levels = np.linspace(-distance, distance, _LEVELS)
    places = np.minimum(np.searchsorted(levels, losses), _LEVELS - 1)
    sums = np.bincount(places.ravel(), np.outer(masses, masses).ravel(), _LEVELS)
    kept = sums > 0.0
    logs = np.log(sums[kept])
    return _divergences(logs, logs - levels[kept])


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
