"""Certified lower bounds of divergences and of epsilon from events on held-out rows.

Data processing: what one sees of a row, an event or the bin of its score, diverges at most as much
as the rows do (van Erven and Harremoes 2014, theorem 9). Nothing but the independence of the
counted rows is assumed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from ..bounds import clopper_pearson, limits, predicted
from ..errors import confidence_level, delta_level, instance, invalid
from ..records import Counts, Record
from .raw import Reals, freeze_arrays
from .reliability.choosing import best_bins, best_event, event_bound
from .reliability.held_out import HeldOut

__all__ = ["Certificate", "certify", "epsilon_hat", "epsilon_lower"]

_BINS_SHARE: Final = 0.5
"""Share of the failure probability that bins take, where they are worth counting at all."""

_PREDICTION_TAIL: Final = 0.1


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Certificate(Record):
    """Lower bounds of D_alpha that hold with the stated confidence.

    Attributes:
        alphas: the orders, shape (n_alpha,).
        bound: lower bounds in nats, shape (2, n_alpha): row 0 is D(P0||P1), row 1 is D(P1||P0).
            In each row all orders hold at once with probability at least `confidence`.
        events: the event counted in each direction, in words.
        counts: its counts on the counted rows; `counts[i].k` belongs to the numerator.
        bins: counts of the bins in each direction, numerator first; none where no order is above
            1 or the choosing rows expected nothing of them.
        confidence: of each direction by itself.
        one_per_group: True if one random row of each group was counted.
    """

    alphas: Reals
    bound: Reals
    events: tuple[str, str]
    counts: tuple[Counts, Counts]
    bins: tuple[tuple[Counts, ...], tuple[Counts, ...]]
    confidence: float
    one_per_group: bool

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        freeze_arrays(self, "alphas", "bound")

    def at(self, alphas: Reals) -> Certificate:
        """Return the same certificate at some of its orders.

        Raises:
            ValueError: if one of them is not among `alphas`.
        """
        places = np.searchsorted(self.alphas, alphas)
        if not np.isin(alphas, self.alphas).all():
            raise invalid("alphas", "among the certified orders", alphas)
        return Certificate(
            self.alphas[places],
            self.bound[:, places],
            self.events,
            self.counts,
            self.bins,
            self.confidence,
            self.one_per_group,
        )

    def __str__(self) -> str:
        """Return one line for each direction, and one on the law where groups were counted."""
        lines = []
        for side, (event, counts) in enumerate(zip(self.events, self.counts, strict=True)):
            what = f"D(P{side}||P{1 - side})"
            lines.append(
                f"{what}: event {event}, {counts.k} of {counts.n} against "
                f"{counts.k_prime} of {counts.n_prime}; {len(self.bins[side]) or 'no'} bins"
            )
        if self.one_per_group:
            lines.append("of the law of one random row of each group, in which groups weigh alike")
        return "\n".join(lines)


def certify(held_out: HeldOut, alphas: Reals, confidence: float = 0.95) -> Certificate:
    """Compute certified lower bounds of D_alpha in both directions.

    One event E and bins B_1, ..., B_m per direction, chosen on the choosing rows, are counted on
    the counted rows. With p_low <= P(E) and Q(E) <= q_high, and p_low > q_high,

        D_alpha(P||Q) >= d_alpha(p_low || q_high),

    the divergence of two coins, for every alpha > 0 from the same two limits; and for alpha > 1,
    with simultaneous limits for all bins,

        D_alpha(P||Q) >= ln(sum_i p_low_i^alpha q_high_i^(1 - alpha)) / (alpha - 1).

    The failure probability is shared between event and bins, so the larger of the two, and of
    what holds at smaller orders (D_alpha does not decrease in alpha), is a bound. 0 always is one.

    Args:
        held_out: the counts.
        alphas: orders above 0, ascending; 1 is the KL divergence.
        confidence: of all orders of a direction together, strictly between 0 and 1.

    Returns:
        The bounds; both directions together hold with probability 1 - 2 (1 - confidence).

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if `alphas` are not ascending and above 0, or `confidence` is out of range.

    Source:
        van Erven and Harremoes (2014), theorems 3 and 9; Clopper and Pearson (1934).

    Example:
        >>> import numpy as np
        >>> held_out = HeldOut(
        ...     thresholds=np.array([0.0, 1.0]), chosen=np.array([[80, 50], [50, 5]]),
        ...     chosen_rows=(100, 100), counted=np.array([[800, 500], [500, 50]]),
        ...     counted_rows=(1000, 1000), trained_rows=(0, 0))
        >>> certify(held_out, np.array([1.0, 2.0])).bound.round(2).tolist()
        [[0.6, 1.25], [0.39, 0.49]]
    """
    held_out, confidence = instance("held_out", held_out, HeldOut), confidence_level(confidence)
    alphas = np.asarray(alphas, dtype=np.float64)
    ascending = alphas.ndim == 1 and len(alphas) and bool((np.diff(alphas) > 0.0).all())
    if not (ascending and alphas[0] > 0.0 and math.isfinite(alphas[-1])):
        raise invalid("alphas", "ascending finite orders above 0", alphas)
    failure = 1.0 - confidence
    rows, events, counts, bins = [], [], [], []
    for side in (0, 1):
        found = _certify_direction(held_out, side, alphas, failure)
        rows.append(found[0])
        events.append(found[1])
        counts.append(found[2])
        bins.append(found[3])
    return Certificate(
        alphas,
        np.stack(rows),
        (events[0], events[1]),
        (counts[0], counts[1]),
        (bins[0], bins[1]),
        confidence,
        held_out.one_per_group,
    )


def epsilon_lower(held_out: HeldOut, delta: float, confidence: float = 0.95) -> float:
    """Compute a certified lower limit of epsilon at delta from the counted rows.

    Threshold, side and direction are chosen on the choosing rows for this delta; the certificate
    is `dpcore.bounds.clopper_pearson` of the counted rows.

    Args:
        held_out: the counts.
        delta: in [0, 1).
        confidence: probability that the limit holds, strictly between 0 and 1.

    Returns:
        The limit, finite and at least 0.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if `delta` or `confidence` is out of range.

    Source:
        Clopper and Pearson (1934); Jagielski, Ullman and Oprea (2020), section 4.
    """
    counts = _epsilon_event(held_out, delta, confidence)
    return clopper_pearson(counts, delta, confidence)


def epsilon_hat(held_out: HeldOut, delta: float, confidence: float = 0.95) -> float:
    """Estimate the loss of the event of `epsilon_lower` by plug-in: an estimate, not a bound.

    ln((k/n - delta) / (k'/n')). It is 0 where that is negative or k/n <= delta, since such an
    event asks for no epsilon above 0; and infinite where k/n > delta and no counted row of the
    other set is in the event: then the rows put no upper end on the loss. It is never NaN.

    Args:
        held_out: the counts.
        delta: in [0, 1).
        confidence: what the event is chosen for, as in `epsilon_lower`.

    Returns:
        The estimate, at least 0.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if `delta` or `confidence` is out of range.
    """
    counts = _epsilon_event(held_out, delta, confidence)
    excess = counts.k / counts.n - delta
    if excess <= 0.0:
        return 0.0
    if counts.k_prime == 0:
        return math.inf
    return max(0.0, math.log(excess / (counts.k_prime / counts.n_prime)))


def _certify_direction(
    held_out: HeldOut, side: int, alphas: Reals, failure: float
) -> tuple[Reals, str, Counts, tuple[Counts, ...]]:
    """Compute the bounds of one direction; describe its event and return the counts."""
    above = alphas[alphas > 1.0]
    order = [side, 1 - side]
    chosen, counted = held_out.chosen[order], held_out.counted[order]
    chosen_rows = tuple(held_out.chosen_rows[i] for i in order)
    n, n_prime = (held_out.counted_rows[i] for i in order)
    share, edges = _BINS_SHARE, None
    if len(above):
        edges = best_bins(chosen, chosen_rows, (n, n_prime), above, failure * share)
    if edges is None or len(edges) == 2:
        # One bin says nothing. The choosing rows decided that, so the event may have it all.
        share, edges = 0.0, None
    tail = failure * (1.0 - share) / 2.0
    place, reaches = best_event(chosen, chosen_rows, (n, n_prime), alphas, tail)
    counts = Counts(int(counted[0, place]), n, int(counted[1, place]), n_prime)
    counts = counts if reaches else counts.complement()
    p_low = limits(counts.k, n, tail)[0]
    q_high = limits(counts.k_prime, n_prime, tail)[1]
    bound = event_bound(np.array([p_low]), np.array([q_high]), alphas)[0]
    bins: tuple[Counts, ...] = ()
    if edges is not None:
        padded = np.column_stack([[n, n_prime], counted, [0, 0]])
        inside = padded[:, edges[:-1]] - padded[:, edges[1:]]
        bins = tuple(Counts(int(k), n, int(k_prime), n_prime) for k, k_prime in inside.T)
        by_bins = _bins_bound(bins, above, failure * share)
        bound[alphas > 1.0] = np.maximum(bound[alphas > 1.0], by_bins)
    relation = ">=" if reaches else "<"
    text = f"{held_out.score} {relation} {held_out.thresholds[place]:.6g}"
    return np.maximum.accumulate(bound), text, counts, bins


def _bins_bound(bins: tuple[Counts, ...], alphas: Reals, failure: float) -> Reals:
    """Compute bounds for orders above 1 from simultaneous lower and upper limits of each bin."""
    tail = failure / (2.0 * len(bins))
    p_low = np.array([limits(c.k, c.n, tail)[0] for c in bins])
    q_high = np.array([limits(c.k_prime, c.n_prime, tail)[1] for c in bins])
    seen = p_low > 0.0
    if not seen.any():
        return np.zeros(len(alphas))
    ln_p, ln_q = np.log(p_low[seen]), np.log(q_high[seen])
    powers = alphas[:, None] * ln_p + (1.0 - alphas[:, None]) * ln_q
    total: Reals = np.logaddexp.reduce(powers, axis=1)
    return np.maximum(0.0, total / (alphas - 1.0))


def _epsilon_event(held_out: HeldOut, delta: float, confidence: float) -> Counts:
    """Count the event expected to certify most at delta, numerator first."""
    instance("held_out", held_out, HeldOut)
    delta, confidence = delta_level(delta), confidence_level(confidence)
    trials = min(held_out.counted_rows)
    found = []
    for side in (0, 1):
        k, k_prime = held_out.chosen[side], held_out.chosen[1 - side]
        n, n_prime = held_out.chosen_rows[side], held_out.chosen_rows[1 - side]
        c, c_prime = held_out.counted[side], held_out.counted[1 - side]
        total, total_prime = held_out.counted_rows[side], held_out.counted_rows[1 - side]
        for reaches in (True, False):
            hits, hits_prime = (k, k_prime) if reaches else (n - k, n_prime - k_prime)
            told = predicted(
                hits, n, hits_prime, n_prime, trials, delta, confidence, tail=_PREDICTION_TAIL
            )
            # Where nothing is expected, the larger difference goes first.
            merit = np.where(told > 0.0, told, hits / n - hits_prime / n_prime - 2.0)
            place = int(np.argmax(merit))
            counts = Counts(int(c[place]), total, int(c_prime[place]), total_prime)
            found.append((float(merit[place]), counts if reaches else counts.complement()))
    return max(found, key=lambda each: each[0])[1]
