"""Certified lower bounds of divergences and of epsilon, from events on held-out rows.

Half of the rows are used to fit a score and to choose the event and the bins with the largest
expected bounds; the rows used to choose are called choosing rows. The other half is counted, and
the choice does not depend on these counted rows. `hold_out` passes only numbers of rows on to the
bounds.

By data processing, the divergence of an event, or of the bin of a score, is at most the divergence
of the rows (van Erven and Harremoes 2014, theorem 9). The only assumption is that the counted rows
are independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from ..bounds import clopper_pearson, limits, predicted
from ..errors import confidence_level, delta_level, instance, invalid
from ..records import Counts, Floats, Ints, Record
from .points import Labels, Points, freeze_arrays, one_of_each
from .score import Score, fit_score, is_fixed, most_trained, score_rows

_PESSIMISM_ERRORS: Final = 1.0
"""Standard errors by which rates of the choosing rows are lowered or raised to be pessimistic."""
_MAX_BIN_EDGES: Final = 48
"""Largest number of thresholds that may be edges of bins."""
_BIN_NUMBERS: Final = (2, 3, 4, 6, 8)
"""Numbers of bins for which limits are computed; a number in between uses the next larger one."""
_TARGET_ORDERS: Final = 4
"""Number of orders for which partitions are optimised; the best on average is chosen."""


THRESHOLDS: Final = 200
FOLDS: Final = 4
"""Number of folds of the rows that are not counted; a fit on the other folds scores a fold."""

_DENSE_RANKS: Final = 20
"""Number of smallest and of largest choosing scores of each set that all become thresholds."""

_BINS_SHARE: Final = 0.5
"""Share of the failure probability that the bins take, if any bins are counted."""

_PREDICTION_TAIL: Final = 0.1


def event_bound(p: Floats, q: Floats, alphas: Floats) -> Floats:
    """Compute d_alpha(p || q) of two coins, or 0 if p <= q. Shapes are (e,), (a,) to (e, a).

    For p > q it increases in p and decreases in q, for every alpha > 0. A lower limit of p and an
    upper limit of q therefore give a lower bound.
    """
    out = np.zeros((len(p), len(alphas)))
    valid = p > q
    # At q = 0 it would be infinite, but limits and pessimistic rates are above 0.
    ln_p, ln_q = np.log(p[valid])[:, None], np.log(q[valid])[:, None]
    with np.errstate(divide="ignore"):
        ln_p_not, ln_q_not = np.log1p(-p[valid])[:, None], np.log1p(-q[valid])[:, None]
    is_order_one = alphas == 1.0
    order = np.where(is_order_one, 2.0, alphas)
    rest = np.where(np.isneginf(ln_p_not), -np.inf, order * ln_p_not + (1.0 - order) * ln_q_not)
    values = np.logaddexp(order * ln_p + (1.0 - order) * ln_q, rest) / (order - 1.0)
    p_not = 1.0 - p[valid][:, None]
    unlikely = np.where(p_not > 0.0, p_not * (np.maximum(ln_p_not, -1e300) - ln_q_not), 0.0)
    kl = p[valid][:, None] * (ln_p - ln_q) + unlikely
    out[valid] = np.maximum(0.0, np.where(is_order_one, kl, values))
    return out


def best_event(
    chosen: Ints,
    chosen_rows: tuple[int, ...],
    counted_rows: tuple[int, int],
    alphas: Floats,
    tail: float,
) -> tuple[int, bool]:
    """Find the threshold and side (True: score >= threshold) with the best mean bound over orders.

    Args:
        chosen: choosing rows that reach each threshold, numerator first, shape (2, t).
        chosen_rows: number of choosing rows of each set.
        counted_rows: number of rows of each set that will be counted.
        alphas: orders. At each order, a bound is divided by the best bound of any event there.
        tail: failure probability of each of the two limits.
    """
    totals = np.array(chosen_rows)[:, None]
    hits = np.concatenate([chosen, totals - chosen], axis=1)
    expected = _expected_limits(_pessimistic_rates(hits, chosen_rows), counted_rows, tail)
    merit = _average_bound_shares(event_bound(*expected, alphas))
    rates = hits / totals
    # If no bound is expected, choose by the difference of the rates.
    place = int(np.argmax(np.where(merit > 0.0, merit, rates[0] - rates[1] - 2.0)))
    return place % chosen.shape[1], place < chosen.shape[1]


def best_bins(
    chosen: Ints,
    chosen_rows: tuple[int, ...],
    counted_rows: tuple[int, int],
    alphas: Floats,
    failure: float,
) -> Ints:
    """Find the edges of the bins with the best expected bound, as columns of `chosen`.

    Column 0 stands for -infinity, then the thresholds follow, and the last stands for infinity. The
    bound is the logarithm of a sum with one term per bin. Therefore the best partition for a given
    order and number of bins is a shortest path.
    """
    edges = _select_edges(chosen)
    padded = np.column_stack([np.array(chosen_rows), chosen, [0, 0]])[:, edges]
    start, stop = np.triu_indices(len(edges), 1)
    hits = padded[:, start] - padded[:, stop]
    aims = alphas[np.unique(np.linspace(0, len(alphas) - 1, _TARGET_ORDERS).astype(np.int64))]
    # Terms of the sum; limits are wider for a larger number of bins.
    rates, powers = _pessimistic_rates(hits, chosen_rows), {}
    for bins in _BIN_NUMBERS:
        p_low, q_high = _expected_limits(rates, counted_rows, failure / (2 * bins))
        with np.errstate(divide="ignore"):
            powers[bins] = aims[:, None] * np.log(p_low) + (1.0 - aims[:, None]) * np.log(q_high)
    paths = _best_edges(powers[_BIN_NUMBERS[-1]], (start, stop), len(edges))
    promised, partitions = [np.zeros(len(aims))], [edges[[0, -1]]]
    for path in paths:
        place = _pair_index(path[:-1], path[1:], len(edges))
        most = powers[min(b for b in _BIN_NUMBERS if b >= len(place))][:, place]
        promised.append(np.maximum(0.0, np.logaddexp.reduce(most, axis=1) / (aims - 1.0)))
        partitions.append(edges[path])
    return partitions[int(np.argmax(_average_bound_shares(np.array(promised))))]


def _average_bound_shares(promised: Floats) -> Floats:
    """Average over orders each bound divided by the best bound there, shape (e, a) to (e,)."""
    best = promised.max(axis=0)
    return np.asarray(np.mean(promised / np.where(best > 0.0, best, 1.0), axis=1))


def _pessimistic_rates(hits: Ints, chosen_rows: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Lower the numerator's rates and raise the denominator's rates."""
    (k, k_prime), (n, n_prime) = hits, chosen_rows
    p_low = _wilson_limit(k / n, n, -_PESSIMISM_ERRORS)
    return p_low, _wilson_limit(k_prime / n_prime, n_prime, _PESSIMISM_ERRORS)


def _expected_limits(
    rates: tuple[Floats, Floats], counted_rows: tuple[int, int], tail: float
) -> tuple[Floats, Floats]:
    """Compute the limits that the counted rows would give at the given rates."""
    from scipy.special import ndtri

    z = -float(ndtri(tail))
    return _wilson_limit(rates[0], counted_rows[0], -z), _wilson_limit(rates[1], counted_rows[1], z)


def _wilson_limit(rate: Floats, size: int, z: float) -> Floats:
    """Compute Wilson's limit for a rate among `size` rows: the lower limit if z < 0."""
    square = z * z
    middle = rate + square / (2.0 * size)
    spread = np.sqrt(rate * (1.0 - rate) / size + square / (4.0 * size * size))
    limit: Floats = (middle + z * spread) / (1.0 + square / size)
    return np.minimum(np.maximum(limit, 0.0), 1.0)


def _select_edges(chosen: Ints) -> Ints:
    """Select columns that may be edges: both ends, and thresholds at evenly spaced ranks."""
    inside = np.arange(1, chosen.shape[1] + 1)
    if len(inside) > _MAX_BIN_EDGES:
        inside = np.unique(np.linspace(1, chosen.shape[1], _MAX_BIN_EDGES).astype(np.int64))
    return np.concatenate([[0], inside, [chosen.shape[1] + 1]])


def _pair_index(start: Ints, stop: Ints, size: int) -> Ints:
    """Return the index of (start, stop) among the ordered pairs with start < stop."""
    return start * (2 * size - start - 1) // 2 + stop - start - 1


def _best_edges(powers: Floats, pairs: tuple[Ints, Ints], size: int) -> list[Ints]:
    """Find the edges whose terms e^power have the largest sum, for each order and bin number."""
    terms = np.full((len(powers), size, size), -np.inf)
    largest = np.maximum(powers.max(axis=1, keepdims=True), -1e300)
    terms[:, pairs[0], pairs[1]] = np.exp(powers - largest)
    best, steps, paths = terms[:, 0].copy(), [], []
    for _ in range(min(_BIN_NUMBERS[-1], size - 1) - 1):
        through = best[:, :, None] + terms
        steps.append(np.argmax(through, axis=1))
        best = np.max(through, axis=1)
        for aim in range(len(powers)):
            path = [size - 1]
            for step in reversed(steps):
                path.append(int(step[aim, path[-1]]))
            paths.append(np.array([0, *reversed(path)]))
    return paths


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HeldOut(Record, word="HeldOut"):
    """Numbers of rows that reach each threshold of a score.

    Args:
        thresholds: thresholds, ascending, shape (t,). The event is "score >= threshold" or its
            complement.
        chosen: choosing rows of each set that reach each threshold, shape (2, t). Each row is
            scored out of fold, by a score that was not fitted on it.
        chosen_rows: number of choosing rows of each set.
        counted: counted rows of each set that reach each threshold, shape (2, t).
        counted_rows: number of counted rows of each set.
        trained_rows: rows of each set that the score was fitted on; (0, 0) for a fixed score.
        one_per_group: True if only one random row of each group was chosen on or counted.
        score: name of the score in the text of an event.
    """

    thresholds: Floats
    chosen: Ints
    chosen_rows: tuple[int, int]
    counted: Ints
    counted_rows: tuple[int, int]
    trained_rows: tuple[int, int]
    one_per_group: bool = False
    score: str = "score"

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        freeze_arrays(self, "thresholds", "chosen", "counted")


def hold_out(
    points: Points,
    rng: np.random.Generator,
    score: Callable[..., Any] | None = None,
    one_per_group: bool = False,
) -> HeldOut:
    """Split the rows (or groups) once, fit a score, and count the rows that reach its thresholds.

    Half of the rows of each set are counted. The other half is used to fit the score and to choose.
    The choosing scores are computed out of fold by four more fits, each on three quarters of this
    half. They are therefore distributed nearly like the scores of the counted rows. If there are
    far more rows than a fit needs, the remaining rows choose instead. A fixed score is not fitted.

    Args:
        points: both sets, not scaled. If the rows were scaled by moments of all rows, the counted
            rows would influence their own score.
        rng: generator for the splits, for training rows if there are too many, and for the row
            of a group.
        score: score, as in `cross_fit`.
        one_per_group: True to split by group, and to use one random row of each group to choose or
            to count. Rows of a group may be copies of each other. A set without groups is split by
            rows. False treats all rows as independent.

    Returns:
        The counts.

    Raises:
        TypeError: if `score` is not a callable of the two kinds or returns no numbers.
        ValueError: if the points are scaled, a set has fewer than 4 rows (or groups), or a score
            is not one finite number per row.
    """
    if points.scale is not None:
        raise invalid("points", "unscaled, since scaling has seen the counted rows", points.scale)
    parts = [_RowParts(points, side, one_per_group, rng) for side in (0, 1)]
    fitted: Score
    if score is not None and is_fixed(score):
        fitted, trained = score, (0, 0)
        chosen = score_rows(points, [part.choosing() for part in parts], fitted)
    elif min(len(part.other) for part in parts) >= 2 * FOLDS * most_trained(points.dim):
        # The rows suffice for a full fit in one fold; the other folds choose.
        inside = [part.other[part.fold == 0] for part in parts]
        fitted, trained = fit_score(points, inside, rng, score)
        left = [np.concatenate([part.choosing(f) for f in range(1, FOLDS)]) for part in parts]
        chosen = score_rows(points, left, fitted)
    else:
        fitted, trained = fit_score(points, [part.other for part in parts], rng, score)
        chosen = _score_out_of_fold(points, parts, rng, score)
    counted = score_rows(points, [part.counted for part in parts], fitted)
    thresholds = _candidate_thresholds(*chosen)
    return HeldOut(
        thresholds=thresholds,
        chosen=_count_above(chosen, thresholds),
        chosen_rows=(len(chosen[0]), len(chosen[1])),
        counted=_count_above(counted, thresholds),
        counted_rows=(len(counted[0]), len(counted[1])),
        trained_rows=trained,
        one_per_group=one_per_group,
        score="logistic score" if score is None else "score",
    )


class _RowParts:
    """Sample rows of one set: the counted rows, and the folds of the other rows.

    Attributes:
        counted: counted rows, one per group.
        other: all rows of the units that are not counted.
        fold: fold of each row of `other`.
        single: mask of the rows of `other` that choose, one row of each group.
    """

    def __init__(
        self, points: Points, side: int, one_per_group: bool, rng: np.random.Generator
    ) -> None:
        size, labels = points.sizes[side], points.groups[side] if one_per_group else None
        units = size if labels is None else int(labels.max()) + 1
        if units < 4:
            kind = "rows" if labels is None else "groups"
            raise invalid(f"y{side}", f"of at least 4 {kind} for held-out events", units)
        place = rng.permutation(units)
        single = np.ones(size, bool)
        if labels is not None:
            single[:] = False
            single[one_of_each(labels, rng)] = True
            place = place[labels]
        counted = place >= units // 2
        self.counted, self.other = np.flatnonzero(counted & single), np.flatnonzero(~counted)
        self.fold = place[self.other] % min(FOLDS, units // 2)
        self.single = single[self.other]

    def inside(self, fold: int) -> Labels:
        """Return the rows of a fold."""
        return np.asarray(self.other[self.fold == fold])

    def outside(self, fold: int) -> Labels:
        """Return the rows of all other folds."""
        return np.asarray(self.other[self.fold != fold])

    def choosing(self, fold: int | None = None) -> Labels:
        """Return the choosing rows of a fold (of all folds for None), one per group."""
        here = self.single if fold is None else self.single & (self.fold == fold)
        return np.asarray(self.other[here])


def _score_out_of_fold(
    points: Points,
    parts: list[_RowParts],
    rng: np.random.Generator,
    score: Callable[..., Any] | None,
) -> tuple[Floats, Floats]:
    """Score the choosing rows of each fold by a fit on the other folds."""
    scores = []
    for fold in range(min(FOLDS, *(int(part.fold.max()) + 1 for part in parts))):
        others = [part.other[part.fold != fold] for part in parts]
        fitted, _ = fit_score(points, others, rng, score)
        scores.append(score_rows(points, [part.choosing(fold) for part in parts], fitted))
    first, second = map(np.concatenate, zip(*scores, strict=True))
    return first, second


def _candidate_thresholds(scores0: Floats, scores1: Floats) -> Floats:
    """Select about 200 choosing scores: all at both ends of each set, evenly spaced in between."""
    thresholds = []
    for scores in (scores0, scores1):
        size = len(scores)
        even = np.linspace(0, size - 1, THRESHOLDS // 2 - 2 * _DENSE_RANKS).astype(np.int64)
        ends = np.arange(min(_DENSE_RANKS, size))
        ranks = np.concatenate([even, ends, size - 1 - ends])
        thresholds.append(np.sort(scores)[np.unique(ranks)])
    return np.unique(np.concatenate(thresholds))


def _count_above(scores: tuple[Floats, Floats], thresholds: Floats) -> Ints:
    """Count the rows of each set with score >= threshold."""
    below = [np.searchsorted(np.sort(values), thresholds, "left") for values in scores]
    return np.stack([len(v) - b for v, b in zip(scores, below, strict=True)]).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Certificate(Record, word="Certificate"):
    """Lower bounds of D_alpha that hold with the stated confidence.

    Attributes:
        alphas: orders, shape (n_alpha,).
        bound: lower bounds in nats, shape (2, n_alpha): row 0 is D(P0||P1), row 1 is D(P1||P0).
            In each row all orders hold at once with probability at least `confidence`.
        events: text of the event that was counted in each direction.
        counts: counts of that event on the counted rows; `counts[i].k` belongs to the numerator.
        bins: counts of the bins in each direction, numerator first. Empty if no order is above 1
            or if bins had no expected bound on the choosing rows.
        confidence: confidence of each direction separately.
        one_per_group: True if one random row of each group was counted.
    """

    alphas: Floats
    bound: Floats
    events: tuple[str, str]
    counts: tuple[Counts, Counts]
    bins: tuple[tuple[Counts, ...], tuple[Counts, ...]]
    confidence: float
    one_per_group: bool

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        freeze_arrays(self, "alphas", "bound")

    def at(self, alphas: Floats) -> Certificate:
        """Return the same certificate at some of its orders.

        Raises:
            ValueError: if an order is not among the certified orders.
        """
        places = np.searchsorted(self.alphas, alphas)
        if not np.isin(alphas, self.alphas).all():
            raise invalid("alphas", "among the certified orders", alphas)
        return replace(self, alphas=self.alphas[places], bound=self.bound[:, places])

    def __str__(self) -> str:
        """Return one line for each direction, and one on the law if groups were counted."""
        lines = [
            f"D(P{side}||P{1 - side}): event {event}, {counts.k} of {counts.n} against "
            f"{counts.k_prime} of {counts.n_prime}; {len(self.bins[side]) or 'no'} bins"
            for side, (event, counts) in enumerate(zip(self.events, self.counts, strict=True))
        ]
        if self.one_per_group:
            lines.append("of the law of one random row of each group, in which groups weigh alike")
        return "\n".join(lines)


def certify(held_out: HeldOut, alphas: Floats, confidence: float = 0.95) -> Certificate:
    """Compute certified lower bounds of D_alpha in both directions.

    One event E and bins B_1, ..., B_m per direction are chosen on the choosing rows and counted on
    the counted rows. With p_low <= P(E) and Q(E) <= q_high, and p_low > q_high,

        D_alpha(P||Q) >= d_alpha(p_low || q_high),

    the divergence of two coins. It holds for every alpha > 0 with the same two limits. For
    alpha > 1, with simultaneous limits for all bins,

        D_alpha(P||Q) >= ln(sum_i p_low_i^alpha q_high_i^(1 - alpha)) / (alpha - 1).

    The failure probability is shared between event and bins, so the larger of the two bounds is
    valid. A bound at a smaller order also holds, because D_alpha does not decrease in alpha. 0 is
    always a bound.

    Args:
        held_out: counts of held-out rows.
        alphas: orders above 0, ascending; 1 is the KL divergence.
        confidence: confidence of all orders of a direction together, strictly between 0 and 1.

    Returns:
        The bounds. Both directions together hold with probability 1 - 2 (1 - confidence).

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
    both = (_certify_direction(held_out, side, alphas, 1.0 - confidence) for side in (0, 1))
    rows, events, counts, bins = zip(*both, strict=True)
    single = held_out.one_per_group
    return Certificate(alphas, np.stack(rows), events, counts, bins, confidence, single)


def epsilon_lower(held_out: HeldOut, delta: float, confidence: float = 0.95) -> float:
    """Compute a certified lower bound of epsilon at delta from the counted rows.

    Threshold, side and direction are chosen on the choosing rows for this delta. The bound is
    `dpcore.bounds.clopper_pearson` of the counted rows.

    Args:
        held_out: counts of held-out rows.
        delta: delta in [0, 1).
        confidence: probability that the bound holds, strictly between 0 and 1.

    Returns:
        The bound, finite and at least 0.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if `delta` or `confidence` is out of range.

    Source:
        Clopper and Pearson (1934); Jagielski, Ullman and Oprea (2020), section 4.
    """
    counts = _epsilon_event(held_out, delta, confidence)
    return clopper_pearson(counts, delta, confidence)


def epsilon_hat(held_out: HeldOut, delta: float, confidence: float = 0.95) -> float:
    """Estimate the empirical loss of the event of `epsilon_lower`: an estimate, not a bound.

    It is ln((k/n - delta) / (k'/n')), never NaN. It is 0 if that is negative or k/n <= delta,
    because such an event is possible with epsilon 0. It is infinite if k/n > delta and the event
    holds for no counted row of the other set. The rows then give no upper limit of the loss.

    Args:
        held_out: counts of held-out rows.
        delta: delta in [0, 1).
        confidence: confidence for which the event is chosen, as in `epsilon_lower`.

    Returns:
        The estimate, at least 0.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if `delta` or `confidence` is out of range.
    """
    counts = _epsilon_event(held_out, delta, confidence)
    excess = counts.k / counts.n - delta
    if excess <= 0.0 or counts.k_prime == 0:
        return 0.0 if excess <= 0.0 else math.inf
    return max(0.0, math.log(excess / (counts.k_prime / counts.n_prime)))


def _certify_direction(
    held_out: HeldOut, side: int, alphas: Floats, failure: float
) -> tuple[Floats, str, Counts, tuple[Counts, ...]]:
    """Compute the bounds of one direction; return them with the event's text and the counts."""
    above = alphas[alphas > 1.0]
    order = [side, 1 - side]
    chosen, counted = held_out.chosen[order], held_out.counted[order]
    chosen_rows = tuple(held_out.chosen_rows[i] for i in order)
    n, n_prime = (held_out.counted_rows[i] for i in order)
    share, edges = _BINS_SHARE, None
    if len(above):
        edges = best_bins(chosen, chosen_rows, (n, n_prime), above, failure * share)
    if edges is None or len(edges) == 2:
        # One bin has no bound. The choosing rows decided that no bins are counted, so the event may
        # use all of `failure`.
        share, edges = 0.0, None
    tail = failure * (1.0 - share) / 2.0
    place, reaches = best_event(chosen, chosen_rows, (n, n_prime), alphas, tail)
    counts = _count_event(held_out, side, place, reaches)
    p_low, q_high = _limits_of_counts([counts], tail)
    bound = event_bound(p_low, q_high, alphas)[0]
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


def _bins_bound(bins: tuple[Counts, ...], alphas: Floats, failure: float) -> Floats:
    """Compute bounds for orders above 1 from simultaneous lower and upper limits of each bin."""
    tail = failure / (2.0 * len(bins))
    p_low, q_high = _limits_of_counts(bins, tail)
    is_positive = p_low > 0.0
    if not is_positive.any():
        return np.zeros(len(alphas))
    ln_p, ln_q = np.log(p_low[is_positive]), np.log(q_high[is_positive])
    powers = alphas[:, None] * ln_p + (1.0 - alphas[:, None]) * ln_q
    total: Floats = np.logaddexp.reduce(powers, axis=1)
    return np.maximum(0.0, total / (alphas - 1.0))


def _limits_of_counts(every: Iterable[Counts], tail: float) -> tuple[Floats, Floats]:
    """Compute lower limits of the numerator's rates and upper limits of the denominator's rates."""
    both = [(limits(c.k, c.n, tail)[0], limits(c.k_prime, c.n_prime, tail)[1]) for c in every]
    p_low, q_high = np.array(both).T
    return p_low, q_high


def _epsilon_event(held_out: HeldOut, delta: float, confidence: float) -> Counts:
    """Count the event with the largest expected bound at delta, numerator first."""
    instance("held_out", held_out, HeldOut)
    delta, confidence = delta_level(delta), confidence_level(confidence)
    trials = min(held_out.counted_rows)
    candidates = []
    for side in (0, 1):
        n, n_prime = held_out.chosen_rows[side], held_out.chosen_rows[1 - side]
        for reaches in (True, False):
            above = held_out.chosen[side], held_out.chosen[1 - side]
            k, k_prime = above if reaches else (n - above[0], n_prime - above[1])
            counts = k, n, k_prime, n_prime
            predictions = predicted(*counts, trials, delta, confidence, tail=_PREDICTION_TAIL)
            # If no bound is expected, choose by the difference of the rates.
            merit = np.where(predictions > 0.0, predictions, k / n - k_prime / n_prime - 2.0)
            place = int(np.argmax(merit))
            candidates.append((float(merit[place]), _count_event(held_out, side, place, reaches)))
    return max(candidates, key=lambda each: each[0])[1]


def _count_event(held_out: HeldOut, side: int, place: int, reaches: bool) -> Counts:
    """Count the rows that reach a threshold, or those below it, numerator first."""
    (k, n), (k_prime, n_prime) = (
        (int(held_out.counted[i, place]), held_out.counted_rows[i]) for i in (side, 1 - side)
    )
    counts = Counts(k, n, k_prime, n_prime)
    return counts if reaches else counts.complement()
