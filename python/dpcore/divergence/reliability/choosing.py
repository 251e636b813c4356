"""Which event and which bins to count: what is expected to certify most. It certifies nothing.

Limits are Wilson's here: they are close to the exact ones and cost nothing.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from ..raw import Reals

_PESSIMISM_ERRORS: Final = 1.0
"""Standard errors by which rates of the choosing rows are taken for worse than they look."""
_MAX_BIN_EDGES: Final = 48
"""Thresholds that may be edges of bins."""
_BIN_NUMBERS: Final = (2, 3, 4, 6, 8)
"""Numbers of bins that limits are computed for; a partition in between takes the next one."""
_TARGET_ORDERS: Final = 4
"""Orders that bins are made for, one after the other; the best on average is taken."""

Whole = npt.NDArray[np.int64]


def event_bound(p: Reals, q: Reals, alphas: Reals) -> Reals:
    """Compute d_alpha(p || q) of two coins; 0 unless p > q. Shapes are (e,), (a,) to (e, a).

    It increases in p and decreases in q there, for every alpha > 0, so that a lower limit of p
    and an upper limit of q may stand in their place.
    """
    out = np.zeros((len(p), len(alphas)))
    valid = p > q
    if not valid.any():
        return out
    # At q = 0 it would be infinite: limits and doubtful rates are above 0.
    ln_p, ln_q = np.log(p[valid])[:, None], np.log(q[valid])[:, None]
    with np.errstate(divide="ignore"):
        ln_p_not, ln_q_not = np.log1p(-p[valid])[:, None], np.log1p(-q[valid])[:, None]
    one = alphas == 1.0
    order = np.where(one, 2.0, alphas)
    rest = np.where(np.isneginf(ln_p_not), -np.inf, order * ln_p_not + (1.0 - order) * ln_q_not)
    values = np.logaddexp(order * ln_p + (1.0 - order) * ln_q, rest) / (order - 1.0)
    p_not = 1.0 - p[valid][:, None]
    unlikely = np.where(p_not > 0.0, p_not * (np.maximum(ln_p_not, -1e300) - ln_q_not), 0.0)
    kl = p[valid][:, None] * (ln_p - ln_q) + unlikely
    out[valid] = np.maximum(0.0, np.where(one, kl, values))
    return out


def best_event(
    chosen: Whole,
    chosen_rows: tuple[int, ...],
    counted_rows: tuple[int, int],
    alphas: Reals,
    tail: float,
) -> tuple[int, bool]:
    """Find the threshold and side (True: score >= threshold) with the best mean bound over orders.

    Args:
        chosen: choosing rows that reach each threshold, numerator first, shape (2, t).
        chosen_rows: choosing rows.
        counted_rows: rows that will be counted.
        alphas: the orders, each measured by the best that an event reaches there.
        tail: failure probability of each of the two limits.
    """
    totals = np.array(chosen_rows)[:, None]
    hits = np.concatenate([chosen, totals - chosen], axis=1)
    p_low, q_high = _expected_limits(_pessimistic_rates(hits, chosen_rows), counted_rows, tail)
    told = event_bound(p_low, q_high, alphas)
    merit = _average_bound_shares(told)
    rates = hits / totals
    # Where nothing is expected, the larger difference goes first.
    merit = np.where(merit > 0.0, merit, rates[0] - rates[1] - 2.0)
    place = int(np.argmax(merit))
    return place % chosen.shape[1], place < chosen.shape[1]


def best_bins(
    chosen: Whole,
    chosen_rows: tuple[int, ...],
    counted_rows: tuple[int, int],
    alphas: Reals,
    failure: float,
) -> Whole:
    """Find edges of the bins expected to certify most, as columns of 0, thresholds..., infinity.

    For a given order and number of bins the best partition is a shortest path, since the sum that
    the bound is the logarithm of has one term for each bin.
    """
    edges = _select_edges(chosen)
    padded = np.column_stack([np.array(chosen_rows), chosen, [0, 0]])[:, edges]
    start, stop = np.triu_indices(len(edges), 1)
    hits = padded[:, start] - padded[:, stop]
    aims = alphas[np.unique(np.linspace(0, len(alphas) - 1, _TARGET_ORDERS).astype(np.int64))]
    # What the bins of a partition add to the sum; limits get wider with the number of bins.
    rates, powers = _pessimistic_rates(hits, chosen_rows), {}
    for bins in _BIN_NUMBERS:
        p_low, q_high = _expected_limits(rates, counted_rows, failure / (2 * bins))
        with np.errstate(divide="ignore"):
            powers[bins] = aims[:, None] * np.log(p_low) + (1.0 - aims[:, None]) * np.log(q_high)
    paths = _best_edges(powers[_BIN_NUMBERS[-1]], (start, stop), len(edges))
    told, partitions = [np.zeros(len(aims))], [edges[[0, -1]]]
    for path in paths:
        place = _pair_index(path[:-1], path[1:], len(edges))
        most = powers[min(b for b in _BIN_NUMBERS if b >= len(place))][:, place]
        told.append(np.maximum(0.0, np.logaddexp.reduce(most, axis=1) / (aims - 1.0)))
        partitions.append(edges[path])
    return partitions[int(np.argmax(_average_bound_shares(np.array(told))))]


def _average_bound_shares(told: Reals) -> Reals:
    """Average over orders the share of the best bound there, shape (e, a) to (e,)."""
    best = told.max(axis=0)
    return np.asarray(np.mean(told / np.where(best > 0.0, best, 1.0), axis=1))


def _pessimistic_rates(hits: Whole, chosen_rows: tuple[int, ...]) -> tuple[Reals, Reals]:
    """Lower the numerator's rates and raise the denominator's rates."""
    return (
        _wilson_limit(hits[0] / chosen_rows[0], chosen_rows[0], -_PESSIMISM_ERRORS),
        _wilson_limit(hits[1] / chosen_rows[1], chosen_rows[1], _PESSIMISM_ERRORS),
    )


def _expected_limits(
    rates: tuple[Reals, Reals], counted_rows: tuple[int, int], tail: float
) -> tuple[Reals, Reals]:
    """Compute the limits that the counted rows would give at these rates."""
    from scipy.special import ndtri

    z = -float(ndtri(tail))
    return _wilson_limit(rates[0], counted_rows[0], -z), _wilson_limit(rates[1], counted_rows[1], z)


def _wilson_limit(rate: Reals, size: int, z: float) -> Reals:
    """Compute Wilson's limit for a rate among `size` rows: the lower one for z < 0."""
    square = z * z
    middle = rate + square / (2.0 * size)
    spread = np.sqrt(rate * (1.0 - rate) / size + square / (4.0 * size * size))
    limit: Reals = (middle + z * spread) / (1.0 + square / size)
    return np.minimum(np.maximum(limit, 0.0), 1.0)


def _select_edges(chosen: Whole) -> Whole:
    """Select columns that may be edges: both ends, and thresholds spread over the ranks."""
    inside = np.arange(1, chosen.shape[1] + 1)
    if len(inside) > _MAX_BIN_EDGES:
        inside = np.unique(np.linspace(1, chosen.shape[1], _MAX_BIN_EDGES).astype(np.int64))
    return np.concatenate([[0], inside, [chosen.shape[1] + 1]])


def _pair_index(start: Whole, stop: Whole, size: int) -> Whole:
    """Return the place of (start, stop) among the ordered pairs with start < stop."""
    place: Whole = start * (2 * size - start - 1) // 2 + stop - start - 1
    return place


def _best_edges(powers: Reals, pairs: tuple[Whole, Whole], size: int) -> list[Whole]:
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
