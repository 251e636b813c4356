"""Certified lower bounds of divergences and of epsilon, from events on held-out rows.

The input is a sample (a set of rows) from each of two laws. The functions proceed in three steps:

1. Split the rows of each set into two halves at random.
2. On the first half, fit a score, which maps a row to a number. On the same half, choose the event
   "score >= threshold" (or "score < threshold") and the bins (intervals of scores) for which the
   largest lower bounds are expected. The rows used for this choice are called choosing rows.
3. Count the rows of the second half (the counted rows) for which the event holds. The choice does
   not depend on the counted rows.

Whether the event occurs, and which bin contains the score, are functions of the row. Each of these
functions has one distribution per set of rows. By the data-processing inequality, the divergence
between these two distributions is at most the divergence between the laws of the rows (van Erven
and Harremoes 2014, theorem 9). The only assumption is that the counted rows are independent.
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
from .points import Points, draw_one_row_per_group, freeze_arrays
from .score import Score, fit_score, is_fixed_score, most_trained, score_rows

_PESSIMISM_ERRORS: Final = 1.0
"""Number of standard errors by which frequencies are made pessimistic to choose an event."""
_MAX_BIN_EDGES: Final = 48
"""Largest number of thresholds that may be edges of bins."""
_BIN_NUMBERS: Final = (2, 3, 4, 6, 8)
"""Numbers of bins for which limits are computed. Other numbers of bins use the next larger
entry."""
_TARGET_ORDERS: Final = 4
"""Number of orders for which bins are optimised. The bins that are best on average are chosen."""


THRESHOLDS: Final = 200
FOLDS: Final = 4
"""Number of parts of the rows that are not counted. Each part is scored by a fit on other parts."""

_DENSE_RANKS: Final = 20
"""Number of smallest scores, and of largest scores, of each set that all become thresholds."""

_BINS_SHARE: Final = 0.5
"""Share of the failure probability that the bins take, if any bins are counted."""

_PREDICTION_TAIL: Final = 0.1


def bernoulli_renyi(p: Floats, q: Floats, alphas: Floats) -> Floats:
    """Compute the Renyi divergence D_alpha between two Bernoulli distributions, for each event.

    `p` and `q` hold the probabilities of e events under the first and the second distribution,
    shape (e,). `alphas` holds the orders, shape (a,). The result has shape (e, a). It is set to 0
    if p <= q, and 0 is always a valid lower bound. If p > q, the divergence increases in p and
    decreases in q. Therefore a lower bound of the divergence can be computed from a lower limit of
    p and an upper limit of q.
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


def best_threshold_and_at_or_above(
    chosen: Ints,
    chosen_rows: tuple[int, ...],
    counted_rows: tuple[int, int],
    alphas: Floats,
    tail: float,
) -> tuple[int, bool]:
    """Choose the event (scores above or below a threshold) with the largest expected lower bound.

    There are two sets of rows. Their distributions are P and Q, and the divergence is D(P||Q). A
    score maps each row to a number. The event is "score >= threshold" or "score < threshold". The
    event is chosen on a part of the rows (the choosing rows), and will be counted on other rows
    (the counted rows). The first entry of the result is the index of the threshold. The second
    entry is True for "score >= threshold".

    Args:
        chosen: for each set and each of t thresholds, the number of choosing rows with score >=
            threshold, shape (2, t). The set of P comes first.
        chosen_rows: number of choosing rows of each set.
        counted_rows: number of counted rows of each set.
        alphas: orders. At each order, the bound of an event is divided by the largest bound of any
            event at this order. The function chooses the event with the largest average of these
            quotients over the orders.
        tail: failure probability of the lower limit of P(event), and also of the upper limit of
            Q(event).
    """
    totals = np.array(chosen_rows)[:, None]
    hits = np.concatenate([chosen, totals - chosen], axis=1)
    expected = _lower_p_and_upper_q(_pessimistic_p_and_q(hits, chosen_rows), counted_rows, tail)
    merit = _mean_share_of_best_over_orders(bernoulli_renyi(*expected, alphas))
    rates = hits / totals
    # If no bound is expected, choose by the difference of the rates.
    place = int(np.argmax(np.where(merit > 0.0, merit, rates[0] - rates[1] - 2.0)))
    return place % chosen.shape[1], place < chosen.shape[1]


def best_bin_edges(
    chosen: Ints,
    chosen_rows: tuple[int, ...],
    counted_rows: tuple[int, int],
    alphas: Floats,
    failure: float,
) -> Ints:
    """Choose the bins (intervals of scores) with the largest expected lower bound of a divergence.

    There are two sets of rows, and a score maps each row to a number. `chosen` holds, for each set
    and threshold, the number of rows with score >= threshold. The result holds the edges of the
    bins as indices, in ascending order: 0 stands for -infinity, i for the i-th threshold, and the
    largest index for infinity. The bound is the logarithm of a sum with one term per bin.
    Therefore, for a given order and number of bins, dynamic programming finds the best bins.
    """
    edges = _possible_bin_edge_indices(chosen)
    padded = np.column_stack([np.array(chosen_rows), chosen, [0, 0]])[:, edges]
    start, stop = np.triu_indices(len(edges), 1)
    hits = padded[:, start] - padded[:, stop]
    aims = alphas[np.unique(np.linspace(0, len(alphas) - 1, _TARGET_ORDERS).astype(np.int64))]
    # Terms of the sum; limits are wider for a larger number of bins.
    rates, powers = _pessimistic_p_and_q(hits, chosen_rows), {}
    for bins in _BIN_NUMBERS:
        p_low, q_high = _lower_p_and_upper_q(rates, counted_rows, failure / (2 * bins))
        with np.errstate(divide="ignore"):
            powers[bins] = aims[:, None] * np.log(p_low) + (1.0 - aims[:, None]) * np.log(q_high)
    paths = _best_bin_edges_per_order(powers[_BIN_NUMBERS[-1]], (start, stop), len(edges))
    promised, partitions = [np.zeros(len(aims))], [edges[[0, -1]]]
    for path in paths:
        place = _pair_index(path[:-1], path[1:], len(edges))
        most = powers[min(b for b in _BIN_NUMBERS if b >= len(place))][:, place]
        promised.append(np.maximum(0.0, np.logaddexp.reduce(most, axis=1) / (aims - 1.0)))
        partitions.append(edges[path])
    return partitions[int(np.argmax(_mean_share_of_best_over_orders(np.array(promised))))]


def _mean_share_of_best_over_orders(promised: Floats) -> Floats:
    """Divide each bound by the largest bound of its order; average over orders.

    The shape changes from (e, a), for e events and a orders, to (e,).
    """
    best = promised.max(axis=0)
    return np.asarray(np.mean(promised / np.where(best > 0.0, best, 1.0), axis=1))


def _pessimistic_p_and_q(hits: Ints, chosen_rows: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Return frequencies of events, lowered under P and raised under Q by one standard error."""
    (k, k_prime), (n, n_prime) = hits, chosen_rows
    p_low = _wilson_limit(k / n, n, -_PESSIMISM_ERRORS)
    return p_low, _wilson_limit(k_prime / n_prime, n_prime, _PESSIMISM_ERRORS)


def _lower_p_and_upper_q(
    rates: tuple[Floats, Floats], counted_rows: tuple[int, int], tail: float
) -> tuple[Floats, Floats]:
    """Compute lower limits of p and upper limits of q for given frequencies in the counted rows."""
    from scipy.special import ndtri

    z = -float(ndtri(tail))
    return _wilson_limit(rates[0], counted_rows[0], -z), _wilson_limit(rates[1], counted_rows[1], z)


def _wilson_limit(rate: Floats, size: int, signed_z: float) -> Floats:
    """Compute Wilson's confidence limit of a probability from its relative frequency.

    `size` is the number of rows. The limit is the lower one if z < 0, and otherwise the upper one.
    """
    square = signed_z * signed_z
    middle = rate + square / (2.0 * size)
    spread = np.sqrt(rate * (1.0 - rate) / size + square / (4.0 * size * size))
    limit: Floats = (middle + signed_z * spread) / (1.0 + square / size)
    return np.minimum(np.maximum(limit, 0.0), 1.0)


def _possible_bin_edge_indices(row_counts: Ints) -> Ints:
    """Select the indices that may be edges of bins: both ends, and evenly spaced thresholds."""
    inside = np.arange(1, row_counts.shape[1] + 1)
    if len(inside) > _MAX_BIN_EDGES:
        inside = np.unique(np.linspace(1, row_counts.shape[1], _MAX_BIN_EDGES).astype(np.int64))
    return np.concatenate([[0], inside, [row_counts.shape[1] + 1]])


def _pair_index(start: Ints, stop: Ints, size: int) -> Ints:
    """Return the position of (start, stop) in the ordered list of pairs start < stop < size."""
    return start * (2 * size - start - 1) // 2 + stop - start - 1


def _best_bin_edges_per_order(powers: Floats, pairs: tuple[Ints, Ints], size: int) -> list[Ints]:
    """Find edges with the largest sum of e^power over bins, for each order and number of bins."""
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
    """Numbers of rows with a score at or above each of several thresholds, for two sets of rows.

    A score maps a row to a number. Each set is divided into two halves. In the first half, some
    rows (the choosing rows) are used to choose an event, "score >= threshold" or "score <
    threshold". The second half (the counted rows) is used only to count the rows for which this
    event is true.

    Args:
        thresholds: thresholds of the score, ascending, shape (t,).
        chosen: for each set and threshold, the number of choosing rows with score >= threshold,
            shape (2, t). Each row was scored by a score that was not fitted on this row.
        chosen_rows: number of choosing rows of each set.
        counted: for each set and threshold, the number of counted rows with score >= threshold,
            shape (2, t).
        counted_rows: number of counted rows of each set.
        trained_rows: number of rows of each set on which the score was fitted. It is (0, 0) if the
            caller fixed the score in advance.
        one_per_group: True if rows have groups, and only one random row of each group is a choosing
            or counted row.
        score: name of the score in the texts that describe events.
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
        """Make the arrays read-only."""
        freeze_arrays(self, "thresholds", "chosen", "counted")


def count_held_out(
    points: Points,
    rng: np.random.Generator,
    score: Callable[..., Any] | None = None,
    one_per_group: bool = False,
) -> HeldOut:
    """Split two sets of rows, fit a score, and count the rows with scores above thresholds.

    The score maps a row to a number. Each set is split at random into two halves. The second half
    (the counted rows) is not used for the fit. The score is fitted on the first half. The first
    half also contains the choosing rows, on which an event "score >= threshold" can be chosen
    later. The score of a choosing row must come from a fit that did not use this row. Therefore the
    function makes four more fits. Each of these fits uses three quarters of the first half, and is
    then used to score the remaining quarter. If there are far more rows than a fit needs, the
    function makes only one fit. The choosing rows are then the rows of the first half that this fit
    did not use. If `score` is fixed in advance, the function makes no fit.

    Args:
        points: the rows of both sets, not scaled. If the rows were scaled by moments of all rows,
            the counted rows would influence their own scores.
        rng: random generator for the split of the rows, for the choice of training rows (if there
            are more than a fit uses), and for the choice of one row of each group.
        score: function that replaces the default score, a logistic regression. A function of two
            arguments (train0, train1) fits a score, and returns a function that maps rows to
            scores. A function of one argument maps rows to scores, and was fixed before the rows
            were seen.
        one_per_group: True to split groups instead of rows. All rows of a group are then in the
            same half. Only one random row of each group is a choosing or counted row, because the
            rows of a group may be copies of each other. In a set without groups, every row is its
            own group. False treats all rows as independent.

    Returns:
        The thresholds. For each threshold, the number of choosing rows and the number of counted
        rows with a score of at least the threshold.

    Raises:
        TypeError: if `score` is not a callable of these two kinds, or does not return numbers.
        ValueError: if `points` are scaled, if a set has fewer than 4 rows (or groups), or if
            `score` does not give one finite number per row.
    """
    if points.scale is not None:
        raise invalid("points", "unscaled, since scaling has seen the counted rows", points.scale)
    parts = [_RowParts(points, side, one_per_group, rng) for side in (0, 1)]
    fitted: Score
    if score is not None and is_fixed_score(score):
        fitted, trained = score, (0, 0)
        chosen = score_rows(points, [part.row_per_group() for part in parts], fitted)
    elif min(len(part.other) for part in parts) >= 2 * FOLDS * most_trained(points.dim):
        # The rows suffice for a full fit in one fold; the other folds choose.
        inside = [part.other[part.fold == 0] for part in parts]
        fitted, trained = fit_score(points, inside, rng, score)
        left = [np.concatenate([part.row_per_group(f) for f in range(1, FOLDS)]) for part in parts]
        chosen = score_rows(points, left, fitted)
    else:
        fitted, trained = fit_score(points, [part.other for part in parts], rng, score)
        chosen = _score_out_of_fold(points, parts, rng, score)
    counted = score_rows(points, [part.counted for part in parts], fitted)
    thresholds = _candidate_thresholds(*chosen)
    return HeldOut(
        thresholds=thresholds,
        chosen=_count_scores_at_least(chosen, thresholds),
        chosen_rows=(len(chosen[0]), len(chosen[1])),
        counted=_count_scores_at_least(counted, thresholds),
        counted_rows=(len(counted[0]), len(counted[1])),
        trained_rows=trained,
        one_per_group=one_per_group,
        score="logistic score" if score is None else "score",
    )


class _RowParts:
    """Indices of rows of one set: the counted (held-out) rows, and other rows with their folds.

    Attributes:
        counted: indices of the counted rows, one per group. Without groups, all counted rows.
        other: indices of all rows of the groups that are not counted.
        fold: fold of each row of `other`.
        single: True for the rows of `other` that serve to choose an event, one per group.
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
            single[draw_one_row_per_group(labels, rng)] = True
            place = place[labels]
        counted = place >= units // 2
        self.counted, self.other = np.flatnonzero(counted & single), np.flatnonzero(~counted)
        self.fold = place[self.other] % min(FOLDS, units // 2)
        self.single = single[self.other]

    def row_indices_in_fold(self, fold: int) -> Ints:
        """Return the rows of a fold."""
        return np.asarray(self.other[self.fold == fold])

    def row_indices_of_other_folds(self, fold: int) -> Ints:
        """Return the rows of all other folds."""
        return np.asarray(self.other[self.fold != fold])

    def row_per_group(self, fold: int | None = None) -> Ints:
        """Return one row per group of a fold (of all folds if None), to choose an event."""
        here = self.single if fold is None else self.single & (self.fold == fold)
        return np.asarray(self.other[here])


def _score_out_of_fold(
    points: Points,
    parts: list[_RowParts],
    rng: np.random.Generator,
    score: Callable[..., Any] | None,
) -> tuple[Floats, Floats]:
    """Score the rows that serve to choose an event, each fold by a fit on the other folds."""
    scores = []
    for fold in range(min(FOLDS, *(int(part.fold.max()) + 1 for part in parts))):
        others = [part.other[part.fold != fold] for part in parts]
        fitted, _ = fit_score(points, others, rng, score)
        scores.append(score_rows(points, [part.row_per_group(fold) for part in parts], fitted))
    first, second = map(np.concatenate, zip(*scores, strict=True))
    return first, second


def _candidate_thresholds(scores0: Floats, scores1: Floats) -> Floats:
    """Select about 200 of the scores as thresholds.

    They are the 20 smallest and the 20 largest scores of each set, and the scores at evenly spaced
    ranks.
    """
    thresholds = []
    for scores in (scores0, scores1):
        size = len(scores)
        even = np.linspace(0, size - 1, THRESHOLDS // 2 - 2 * _DENSE_RANKS).astype(np.int64)
        ends = np.arange(min(_DENSE_RANKS, size))
        ranks = np.concatenate([even, ends, size - 1 - ends])
        thresholds.append(np.sort(scores)[np.unique(ranks)])
    return np.unique(np.concatenate(thresholds))


def _count_scores_at_least(scores: tuple[Floats, Floats], thresholds: Floats) -> Ints:
    """Count the rows of each set with score >= threshold."""
    below = [np.searchsorted(np.sort(values), thresholds, "left") for values in scores]
    return np.stack([len(v) - b for v, b in zip(scores, below, strict=True)]).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Certificate(Record, word="Certificate"):
    """Certified lower bounds of the Renyi divergences D_alpha(P0||P1) and D_alpha(P1||P0).

    P0 and P1 are the distributions of two sets of rows. In D(P||Q), the set of P is the numerator,
    and the set of Q is the denominator. For each direction, an event was chosen on one half of the
    rows. The bounds come from the number of times that the event occurs in the other half (the
    counted rows).

    Attributes:
        alphas: orders, shape (n_alpha,).
        bound: lower bounds in nats, shape (2, n_alpha): row 0 is D(P0||P1), row 1 is D(P1||P0). In
            each direction, with probability at least `confidence`, the bounds at all orders are
            true.
        events: description of the event that was counted, for each direction.
        counts: number of counted rows for which the event holds, for each direction. `counts[i].k`
            belongs to the numerator, and `counts[i].k_prime` to the denominator.
        bins: number of counted rows in each bin of a score, for each direction. A score maps each
            row to a number, and a bin is an interval of scores. The bins give a second bound for
            orders above 1. The field is empty for a direction if no bins were counted.
        confidence: probability that all bounds of one direction hold.
        one_per_group: True if rows have groups, and one random row of each group was counted.
    """

    alphas: Floats
    bound: Floats
    events: tuple[str, str]
    counts: tuple[Counts, Counts]
    bins: tuple[tuple[Counts, ...], tuple[Counts, ...]]
    confidence: float
    one_per_group: bool

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        freeze_arrays(self, "alphas", "bound")

    def at(self, alphas: Floats) -> Certificate:
        """Return a copy of these lower bounds that contains only the given orders.

        Raises:
            ValueError: if this certificate has no bound for one of the given orders.
        """
        places = np.searchsorted(self.alphas, alphas)
        if not np.isin(alphas, self.alphas).all():
            raise invalid("alphas", "among the certified orders", alphas)
        return replace(self, alphas=self.alphas[places], bound=self.bound[:, places])

    def __str__(self) -> str:
        """Return one line of text for each direction: the event, its counts and the number of bins.

        If one row of each group was counted, another line states this.
        """
        lines = [
            f"D(P{side}||P{1 - side}): event {event}, {counts.k} of {counts.n} against "
            f"{counts.k_prime} of {counts.n_prime}; {len(self.bins[side]) or 'no'} bins"
            for side, (event, counts) in enumerate(zip(self.events, self.counts, strict=True))
        ]
        if self.one_per_group:
            lines.append("of the law of one random row of each group, in which groups weigh alike")
        return "\n".join(lines)


def certify(held_out: HeldOut, alphas: Floats, confidence: float = 0.95) -> Certificate:
    """Compute certified lower bounds of the Renyi divergences between two sets of rows.

    A score maps each row to a number. For each direction, an event E is chosen on one half of the
    rows (the choosing rows), "score >= threshold" or "score < threshold". Bins B_1, ..., B_m of the
    score are chosen on the same half. The other half (the counted rows) then gives confidence
    limits p_low <= P(E) and Q(E) <= q_high. If p_low > q_high,

        D_alpha(P||Q) >= d_alpha(p_low || q_high),

    where d_alpha is the divergence of two Bernoulli distributions. The same two limits are used for
    every alpha > 0. The bins give a second bound for alpha > 1. This second bound uses limits
    p_low_i <= P(B_i) and Q(B_i) <= q_high_i that are valid for all i at once:

        D_alpha(P||Q) >= ln(sum_i p_low_i^alpha q_high_i^(1 - alpha)) / (alpha - 1).

    The failure probability 1 - confidence is divided between the event and the bins. Therefore the
    larger of the two bounds is valid. D_alpha does not decrease in alpha. Therefore a bound at one
    order is also valid at every larger order. A negative bound is replaced by 0.

    Args:
        held_out: counts of choosing rows and counted rows, as returned by `count_held_out`.
        alphas: orders above 0, ascending; 1 is the KL divergence.
        confidence: probability that all bounds of one direction hold at the same time, strictly
            between 0 and 1.

    Returns:
        The bounds. With probability at least 1 - 2 (1 - confidence), all bounds of both directions
        are true.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if `alphas` are not ascending, finite and above 0, or if `confidence` is out of
            range.

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
    both = (_bounds_event_counts_bins(held_out, side, alphas, 1.0 - confidence) for side in (0, 1))
    rows, events, counts, bins = zip(*both, strict=True)
    single = held_out.one_per_group
    return Certificate(alphas, np.stack(rows), events, counts, bins, confidence, single)


def epsilon_lower(held_out: HeldOut, delta: float, confidence: float = 0.95) -> float:
    """Compute a certified lower bound of epsilon at one delta, from an event on two sets of rows.

    A score maps each row to a number. On one half of the rows (the choosing rows), the function
    chooses an event, "score >= threshold" or "score < threshold". The bound comes from P(event) <=
    e^epsilon Q(event) + delta, where P is the distribution of one set, and Q that of the other set.
    The function also chooses which set has the distribution P. On the other half (the counted
    rows), `dpcore.bounds.clopper_pearson` computes the bound from the number of times that the
    event occurs in each set.

    Args:
        held_out: counts of choosing rows and counted rows, as returned by `count_held_out`.
        delta: delta in [0, 1).
        confidence: probability that the bound holds, strictly between 0 and 1.

    Returns:
        The bound, finite and at least 0.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if `delta` or `confidence` is out of range.

    Source:
        Clopper and Pearson (1934); Jagielski, Ullman and Oprea (2020), section 4.
    """
    counts = _count_epsilon_event(held_out, delta, confidence)
    return clopper_pearson(counts, delta, confidence)


def epsilon_hat(held_out: HeldOut, delta: float, event_choice_confidence: float = 0.95) -> float:
    """Estimate epsilon at one delta from an event on two sets of rows. The estimate is not a bound.

    The event is the same as in `epsilon_lower`, and was chosen on one half of the rows. The rows of
    the other half are the counted rows. The event is true for k of n counted rows of one set, and
    for k' of n' counted rows of the other set. The estimate is ln((k/n - delta) / (k'/n')). The
    estimate is 0 if this logarithm is negative or k/n <= delta, because (0, delta)-DP allows these
    frequencies. The estimate is infinite if k/n > delta and k' = 0. The estimate is never NaN.

    Args:
        held_out: counts of choosing rows and counted rows, as returned by `count_held_out`.
        delta: delta in [0, 1).
        event_choice_confidence: confidence of the lower bound that `epsilon_lower` computes. The
            event is chosen so that this bound is expected to be large.

    Returns:
        The estimate, at least 0.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if `delta` or `event_choice_confidence` is out of range.
    """
    counts = _count_epsilon_event(held_out, delta, event_choice_confidence)
    excess = counts.k / counts.n - delta
    if excess <= 0.0 or counts.k_prime == 0:
        return 0.0 if excess <= 0.0 else math.inf
    return max(0.0, math.log(excess / (counts.k_prime / counts.n_prime)))


def _bounds_event_counts_bins(
    held_out: HeldOut, side: int, alphas: Floats, failure: float
) -> tuple[Floats, str, Counts, tuple[Counts, ...]]:
    """Bound D(P||Q) for P the law of set `side`; return bounds, event text, counts and bins."""
    above = alphas[alphas > 1.0]
    order = [side, 1 - side]
    chosen, counted = held_out.chosen[order], held_out.counted[order]
    chosen_rows = tuple(held_out.chosen_rows[i] for i in order)
    n, n_prime = (held_out.counted_rows[i] for i in order)
    share, edges = _BINS_SHARE, None
    if len(above):
        edges = best_bin_edges(chosen, chosen_rows, (n, n_prime), above, failure * share)
    if edges is None or len(edges) == 2:
        # One bin has no bound. The choosing rows decided that no bins are counted, so the event may
        # use all of `failure`.
        share, edges = 0.0, None
    tail = failure * (1.0 - share) / 2.0
    place, reaches = best_threshold_and_at_or_above(chosen, chosen_rows, (n, n_prime), alphas, tail)
    counts = _tail_counts(held_out, side, place, reaches)
    p_low, q_high = _p_lower_and_q_upper_limits([counts], tail)
    bound = bernoulli_renyi(p_low, q_high, alphas)[0]
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
    """Compute bounds for orders above 1 from simultaneous limits of the bins' probabilities."""
    tail = failure / (2.0 * len(bins))
    p_low, q_high = _p_lower_and_q_upper_limits(bins, tail)
    is_positive = p_low > 0.0
    if not is_positive.any():
        return np.zeros(len(alphas))
    ln_p, ln_q = np.log(p_low[is_positive]), np.log(q_high[is_positive])
    powers = alphas[:, None] * ln_p + (1.0 - alphas[:, None]) * ln_q
    total: Floats = np.logaddexp.reduce(powers, axis=1)
    return np.maximum(0.0, total / (alphas - 1.0))


def _p_lower_and_q_upper_limits(every: Iterable[Counts], tail: float) -> tuple[Floats, Floats]:
    """Compute lower limits of probabilities under P, and upper limits of probabilities under Q."""
    both = [(limits(c.k, c.n, tail)[0], limits(c.k_prime, c.n_prime, tail)[1]) for c in every]
    p_low, q_high = np.array(both).T
    return p_low, q_high


def _count_epsilon_event(held_out: HeldOut, delta: float, confidence: float) -> Counts:
    """Choose the event with the largest expected bound of epsilon; return its counts."""
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
            candidates.append((float(merit[place]), _tail_counts(held_out, side, place, reaches)))
    return max(candidates, key=lambda each: each[0])[1]


def _tail_counts(held_out: HeldOut, side: int, place: int, at_or_above: bool) -> Counts:
    """Count rows with score >= (or <) threshold, first for the set `side`, then for the other."""
    (k, n), (k_prime, n_prime) = (
        (int(held_out.counted[i, place]), held_out.counted_rows[i]) for i in (side, 1 - side)
    )
    counts = Counts(k, n, k_prime, n_prime)
    return counts if at_or_above else counts.complement()
