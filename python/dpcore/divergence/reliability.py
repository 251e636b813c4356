"""Reliability of an estimate by fixed rules, and the number of rows that an estimate needs.

In D(P||Q), the set of rows of P is the numerator and the set of rows of Q the denominator. The
value is the estimated divergence. The belief in a value states how reliable the value is. The first
of these rules that applies to an order and a direction gives the belief:

1. "refuted by its own certificate": a certified lower bound exceeds the value by more than two
   standard errors.
2. "saturated": the value is infinite, or within ln 2 of the largest value that the method can give
   (its ceiling). At orders of at least one, a value is also saturated if more than 1 % of the
   numerator's rows are repeated values that the denominator does not have. In one dimension (or for
   scores), such a value is also saturated if more than about 5 % of the numerator's rows lie
   outside the range of the denominator. The denominator does not show how rare such rows are under
   its law.
3. "not resolved at this alpha": one of the conditions below holds.
4. "estimate only": no rule above applies.

The conditions for "not resolved at this alpha" are:

- The order is beyond `alpha_max`.
- The method "score" is used for comparison and gives a larger value, by more than two joint
  standard errors. The divergence of scores is at most the divergence of the rows.
- The method "ball" is used for comparison and gives a larger value, by more than three joint
  standard errors.
- The energy test rejects P0 = P1 at the level .01 (`ENERGY_LEVEL`), but the value minus two
  standard errors is not above 0.
- The order is at least one, and `describe_far_rows` finds rows of the numerator outside the region
  of the denominator.
- Repeated values have too few rows each.
- The value differs from 0 by less than four standard errors, and the standard error is above .0125.
- The method does not converge to a Renyi divergence.

`alpha_max` is the largest order up to which (i) alpha - 1 <= k/5 and (ii) alpha psi' - psi <=
.4 ln(N/depth), where psi = (alpha - 1) D. Here N is the number of rows of the denominator, depth is
the number of its rows inside a ball, and psi' is the derivative with respect to alpha. The left
side of (ii) is the KL divergence from the law that decides the average (the tilted law) to the law
of the denominator. An average over N rows is reliable only if N is above the exponential of this
divergence (Chatterjee and Diaconis 2018).

`describe_far_rows` looks for rows of y0 in regions without rows of y1. The rows of y1 do not show
how rare these regions are under P1. An estimate of D(P0||P1) therefore ignores this difference and
may be far too small. For example, let P1 be a normal law, and let P0 be the same law with a share
.045 of its mass moved by 50 standard deviations. Then KL(P0||P1) is 56, but the estimate from
counts in balls is a tenth of this value. The function counts units. The units of a set are its
groups if it has groups, and otherwise its distinct rows. The function applies two tests:

- Both ends of every coordinate, and of a held-out score. Take the 20 (`EDGE`) outermost units of y1
  at an end, or more if values are equal. Let e be their number. M units of y0 lie at or beyond the
  innermost of these e units, and m of these M units lie beyond all units of y1. An estimate treats
  dP0/dP1 as constant among so few neighbours. If dP0/dP1 is constant there (for example if the laws
  are equal), the M units fall into the gaps between the e units as in a Polya urn. Then m or more
  units lie beyond all of y1 with probability C(M - m + e - 1, e - 1) / C(M + e - 1, e - 1). The m
  units are reported if this probability is at most 1e-4 (`RARE`) divided by the number of ends. If
  P0 is a normal law P1 moved by one standard deviation, the m units are not reported, although
  dP0/dP1 is not constant. The reason is that m is only about M/12.
- Separate units. For each row of y1, take the distance from the nearest other row of y1. A unit of
  y0 is separate if its distance from y1 is more than three times the largest of these distances. In
  one dimension, only units between the ends of y1 are tested. Separate units are reported if their
  number m exceeds two limits. If the laws are equal, each limit is exceeded with a probability of
  at most 1e-4. The first limit is a quantile of the binomial law with probability .01 + 1/(n1 + 1),
  with n1 the number of units of y1. The second limit is the largest m with p^m at least 1e-4, with
  p the share of y0 among all units. Units may occur in clusters, such as rare words. Therefore the
  first limit is also needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..records import Flags, Floats
from .neighbours import Finder
from .points import Ids, Labels, Points, Raw, iterate_blocks
from .score import CrossFit

RARE: Final = 1e-4
"""For equal laws, each of two tests reports rows in one direction with at most this probability."""

EDGE: Final = 20

_TOLERATED_OUTSIDE_SHARE: Final = 0.01
"""This share of separate units is never reported. It is equal to `_MAX_UNSEEN_SHARE`."""

_SEPARATE_DISTANCE_RATIO: Final = 3.0
_MAX_SEARCHED_ROWS: Final = 2000
_MAX_SORTED_ROWS: Final = 20_000
"""Largest numbers of rows of each set for the search: in several dimensions, and in one."""

_MAX_IGNORED_ROWS: Final = 5
"""Up to this number, rows outside the other set are ignored. All other limits are larger."""

TOLD: Final = 4.0
SHARP: Final = 0.0125
"""A value within `TOLD` standard errors of 0 is resolved only if this error is at most `SHARP`."""

SHARE: Final = 0.4
"""Factor of ln(N/k) in the largest KL divergence that N rows and k neighbours resolve."""

_SHOWN_DIVERGENCE: Final = 1.0
"""Divergence in nats for which `rows_to_see_one_nat` returns the number of rows."""

REFUTED: Final = "refuted by its own certificate"
SATURATED: Final = "saturated"
UNRESOLVED: Final = "not resolved at this alpha"
ESTIMATE: Final = "estimate only"

DIRECTIONS: Final = ("D(P0||P1)", "D(P1||P0)")

_SIGNIFICANT_ERRORS: Final = 2.0
"""Standard errors by which a certificate or a held-out score must exceed the value. If the energy
test rejects P0 = P1, the value must exceed 0 by as many standard errors.
"""

_SCORE_EXCESS_ERRORS: Final = 3.0
"""Number of joint standard errors by which a value of "ball" must exceed a value of "score". In
many dimensions, bias may also make the value of "ball" larger.
"""

ENERGY_LEVEL: Final = 0.01

_MAX_UNSEEN_SHARE: Final = 0.01
_MAX_OUTSIDE_SHARE, _ALLOWED_EXTREMES = 0.05, 6.0
"""For equal laws, a share 2/(N + 1) of rows lies outside N others. Three times this is allowed."""

_NEIGHBOURS_PER_ORDER: Final = 5.0
_ROWS_ABOVE_ONE, _ROWS_ANY_ORDER = 10.0, 3.0


def describe_far_rows(
    points: Points, fit: CrossFit | None, rng: np.random.Generator, threads: int
) -> tuple[str | None, str | None]:
    """Describe the rows of each of two sets that lie in regions without rows of the other set.

    If a set has groups, groups are counted instead of rows. Rows are reported only if their number
    would be improbable under a null hypothesis: that the ratio of the two densities is constant in
    this region, or that the two distributions are equal.

    Args:
        points: the rows of both sets.
        fit: scores of the rows, if the estimate uses scores. Each row is scored by a fit on other
            rows. None if the estimate uses the rows themselves.
        rng: random generator. If there are many rows, it chooses the rows that are searched.
        threads: number of threads of the search.

    Returns:
        One text for D(P0||P1) and one for D(P1||P0), such as "12 of 200 groups of y0 lie beyond all
        of y1". The text for D(P0||P1) is about rows of y0. A text is None if no row is to be
        reported.
    """
    most = _MAX_SORTED_ROWS if points.dim == 1 else _MAX_SEARCHED_ROWS
    # Rows of a group are near each other, so the nearest row must be of another group.
    alone = points if points.unit_counts == points.sizes else points.draw_one_per_group(rng)
    few = alone.draw_up_to((most, most), rng)
    units = []
    for side in (0, 1):
        outside = _describe_outside_coordinate(points, side)
        if outside is None and fit is not None:
            outside = _scores_beyond_others_text(points, fit, side)
        units.append(_far_from_other_side_text(few, side, threads) if outside is None else outside)
    return units[0], units[1]


def edge_p_value(beyond: int, within: int, others: int) -> float:
    """Compute a p-value for the number of rows of one set beyond all rows of another set.

    A row is one number here. A unit is a row, or a group of rows if there are groups. The region is
    one end of the number line. It contains `within` units of the first set and `others` units of
    the second set. The p-value is the probability that at least `beyond` units of the first set lie
    beyond all units of the second set. The null hypothesis is that the ratio of the two densities
    is constant in the region.

    Args:
        beyond: number of units of the first set that lie beyond all units of the second set.
        within: number of units of the first set in the region, including the units beyond.
        others: number of units of the second set in the region, at least 1. The innermost of these
            units is the edge of the region.
    """
    from scipy.special import gammaln

    def log_ways(units: int) -> float:
        return float(gammaln(units + others) - gammaln(units + 1) - gammaln(others))

    return float(np.exp(log_ways(within - beyond) - log_ways(within)))


def max_outside_units(units: int, others: int, level: float = RARE) -> int:
    """Return how many rows of one set may lie far from another set without being reported.

    A separate row of the first set lies far from all rows of the second set. `units` is the number
    of rows (or groups) of the first set, and `others` is the number of rows (or groups) of the
    second set. If both sets have the same distribution, the number of separate rows exceeds the
    result with a probability of at most `level`.
    """
    from scipy.special import bdtrc

    share = min(1.0, _TOLERATED_OUTSIDE_SHARE + 1.0 / (others + 1))
    by_share = int(np.argmax(bdtrc(np.arange(units + 1.0), units, share) <= level))
    by_chance = int(np.log(level) / np.log(units / (units + others)))
    return max(by_share, min(by_chance, units))


def _describe_outside_coordinate(points: Points, side: int) -> str | None:
    rows, others = points.rows[side], points.rows[1 - side]
    low, high = others.min(axis=0), others.max(axis=0)
    outside: Any = sum(((b < low) | (b > high)).sum(axis=0) for _, b in iterate_blocks(rows))
    columns = np.flatnonzero(outside > _MAX_IGNORED_ROWS)
    if not len(columns):
        return None
    labels = _unit_labels(points, side), _unit_labels(points, 1 - side)
    own, other = points.sample(side), points.sample(1 - side)
    level = RARE / (2 * points.dim)
    number, place = max(
        (_count_beyond_other_set((own[:, column], other[:, column]), labels, level), -int(column))
        for column in columns
    )
    where = f" in coordinate {-place}" if points.dim > 1 else ""
    return _count_sentence(points, side, number, f"lie beyond all of y{1 - side}{where}")


def _scores_beyond_others_text(points: Points, fit: CrossFit, side: int) -> str | None:
    labels, number = (_unit_labels(points, side), _unit_labels(points, 1 - side)), 0
    level = RARE / (2 * len(fit.folds))
    for fold in fit.folds:
        values = fold.values[side], fold.values[1 - side]
        own = labels[0][fold.rows[side]], labels[1][fold.rows[1 - side]]
        number += _count_beyond_other_set(values, own, level)
    return _count_sentence(points, side, number, f"have held-out scores beyond all of y{1 - side}")


def _count_beyond_other_set(values: tuple[Any, Any], labels: tuple[Any, Any], p_max: float) -> int:
    """Count the units of one set beyond all units of another, at each end with too many of them."""
    return sum(_count_if_significant_past_end(values, labels, sign, p_max) for sign in (1.0, -1.0))


def _count_if_significant_past_end(
    values: tuple[Any, Any], labels: tuple[Any, Any], sign: float, level: float
) -> int:
    own, others = (sign * np.asarray(v, np.float64) for v in values)
    above = own > others.max()
    if np.count_nonzero(above) <= _MAX_IGNORED_ROWS:
        return 0
    # The outermost units of the other set; a group counts once, by its outermost row.
    reach = min(EDGE, len(others))
    edge = np.partition(others, -reach)[-reach]
    while reach < len(others) and _count_distinct(labels[1][others >= edge]) < EDGE:
        reach = min(2 * reach, len(others))
        edge = np.partition(others, -reach)[-reach]
    number, within, reached = map(
        _count_distinct, (labels[0][above], labels[0][own >= edge], labels[1][others >= edge])
    )
    return number if edge_p_value(number, within, reached) <= level else 0


def _far_from_other_side_text(points: Points, side: int, threads: int) -> str | None:
    both = [np.flatnonzero(m).astype(np.uint32) for m in points.multiplicity]
    own, others = both[side], both[1 - side]
    if min(len(own), len(others)) < 2:
        return None
    largest = float(_min_squared_distances(points, others, others, threads).max())
    if points.dim == 1:
        # The ends have a separate rule, which allows for thin tails.
        values, ends = points.coordinates(own)[:, 0], points.rows[1 - side]
        own = own[(values > ends.min()) & (values < ends.max())]
    if not len(own):
        return None
    squared = _min_squared_distances(points, own, others, threads)
    far = own[squared > _SEPARATE_DISTANCE_RATIO**2 * largest]
    if len(far) <= _MAX_IGNORED_ROWS:
        return None
    number = _count_distinct(_unit_labels(points, side)[np.isin(points.ids[side], far)])
    if number <= max_outside_units(_count_units(points, side), _count_units(points, 1 - side)):
        return None
    where = f"lie farther from y{1 - side} than three times any row of it from the next"
    return _count_sentence(points, side, number, where)


def _min_squared_distances(points: Points, queries: Ids, among: Ids, threads: int) -> Floats:
    """Compute the squared distance of each query point from the nearest other point of a set."""
    own = int(queries is among)
    finder = Finder(points, among, threads, {"rescans": 0})
    return np.asarray(finder.nearest(queries, 1 + own)[1][:, own])


def _count_sentence(points: Points, side: int, number: int, where: str) -> str | None:
    """Return a text with the number of rows or groups outside the other set, or None for 0."""
    kind = "distinct rows" if points.groups[side] is None else "groups"
    total = _count_units(points, side)
    return f"{number:,} of {total:,} {kind} of y{side} {where}" if number else None


def _unit_labels(points: Points, side: int) -> Labels | Ids:
    """Return the unit (group or distinct row) of every sample row."""
    groups = points.groups[side]
    return points.ids[side] if groups is None else groups


def _count_units(points: Points, side: int) -> int:
    groups = points.groups[side]
    if groups is None:
        return int(np.count_nonzero(points.multiplicity[side]))
    return int(groups.max()) + 1


def _count_distinct(labels: npt.NDArray[Any]) -> int:
    return len(np.unique(labels))


def rows_to_distinguish_from_0(value: float, spread: float, rows: int) -> int:
    """Return how many rows each set needs to show that a divergence differs from 0.

    With this number of rows, the estimate is at least 4 standard errors above 0, or the standard
    error is at most .0125.

    The standard error is assumed to be proportional to 1 / sqrt(number of rows).

    Args:
        value: estimated divergence.
        spread: standard error of the estimate from `rows` rows of the smaller set.
        rows: number of rows of the smaller set.
    """
    precision = max(SHARP, abs(value) / TOLD)
    return _round_up_to_two_digits(rows * (spread / precision) ** 2)


def rows_to_see_one_nat(dim: int, k: int, fitted: bool) -> int:
    """Return the smallest number of rows of each set that reveals a divergence of about one nat.

    The estimate counts rows in balls, and each ball contains k of the N rows of a set. It is
    reliable for KL divergences up to .4 ln(N/k). If a score (a function from a row to a number) is
    fitted, twice as many rows are needed, because one half is used for the fit. The fit also needs
    rows in proportion to the number of coordinates d. Suppose that the two sets come from normal
    distributions with means at distance mu, and that a linear score is fitted on n rows of each
    set. The score then shows the share mu^2/(mu^2 + 2 d/n) of the KL divergence mu^2/2, because the
    fitted direction contains noise. For a divergence of one nat, this share is one half if n = d.
    This requires 2 d rows of each set.

    Args:
        dim: number of coordinates of a row.
        k: number of rows of the other set in the ball around a row.
        fitted: True if the method fits a score on one half of the rows.
    """
    balls = k * math.exp(_SHOWN_DIVERGENCE / SHARE)
    return math.ceil(max(2 * balls, 2 * dim / _SHOWN_DIVERGENCE) if fitted else balls)


def few_rows_sentence(sizes: tuple[int, int], dim: int, k: int, fitted: bool) -> str:
    """Return a sentence stating that two sets have too few rows, and how many rows suffice.

    `sizes` holds the number of rows of each set, and `dim` is the number of coordinates of a row.
    The estimate uses `k` neighbours. `fitted` is True if a score is fitted on one half of the rows.
    """
    need = rows_to_see_one_nat(dim, k, fitted)
    numbers = f"{dim:,} number{'s'[: dim > 1]}"
    return (
        f"{sizes[0]:,} and {sizes[1]:,} rows of {numbers} are too few to show any divergence with "
        f"k = {k} neighbours: to see about half of one nat takes {need:,} rows of each set"
    )


def few_fitted_rows_note(rows: int, dim: int, k: int) -> str:
    """Return a note stating that a score was fitted on too few rows, and how many rows suffice.

    `rows` is the number of rows, `dim` the number of coordinates of a row, and `k` the number of
    neighbours that the estimate uses.
    """
    return (
        f"{rows:,} rows of {dim:,} numbers are few for a fitted score: of a divergence of "
        f"{2 * dim / rows:.3g} nats it sees about half, of smaller ones less; one nat takes "
        f"{rows_to_see_one_nat(dim, k, True):,} rows of each set"
    )


def _round_up_to_two_digits(rows: float) -> int:
    """Round up to two digits, because the number is a rough guess."""
    unit: int = 10 ** max(0, math.floor(math.log10(max(rows, 1.0))) - 1)
    return math.ceil(rows / unit) * unit


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Judgement of how reliable each value of an estimate is.

    The field `belief` holds a phrase for each direction and order, such as "estimate only". The
    field `resolved` is True if the belief is "estimate only". The field `reason` explains the least
    reliable value in a sentence. The field `alpha_max` is the largest reliable order of each
    direction. The field `std_error` holds the standard errors.
    """

    belief: npt.NDArray[np.str_]
    resolved: Flags
    reason: str
    alpha_max: tuple[float | None, float | None]
    std_error: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """All quantities from which the reliability of estimated Renyi divergences is judged.

    In D(P||Q), the set of P is the numerator, and the set of Q is the denominator.

    Args:
        alphas: orders, ascending. They include 1.
        raw: the estimates that are judged.
        sizes: number of rows of the two sets.
        k: requested number of neighbours.
        certified: certified lower bounds of the divergences, shape (2, n_alpha). None if they were
            not computed.
        beside: estimates of the method "score" for comparison. None if this method did not run, or
            if `raw` comes from this method. The divergence of scores is at most the divergence of
            the rows.
        above: estimates of the method "ball" for comparison. None if this method did not run, or if
            `raw` comes from this method. The method "ball" may detect differences that a score does
            not show. If rows have groups, the method uses one row of each group, because rows of
            the same group are near each other.
        energy_p: p-value of the energy test of P0 = P1; NaN if the test did not run.
        outside: for each direction, a text that describes rows of the numerator in regions without
            rows of the denominator. None if no such row is to be reported.
        dim: number of coordinates of a row.
        fitted: True if the estimate uses a fitted score.
        inconsistent: True for a method whose estimates do not converge to a divergence.
        asked: True for each order that the caller requested, shape (n_alpha,). The sentence with
            the reason explains only these orders. None means all orders.
    """

    alphas: Floats
    raw: Raw
    sizes: tuple[int, int]
    k: int
    certified: Floats | None = None
    beside: Raw | None = None
    above: Raw | None = None
    energy_p: float = np.nan
    outside: tuple[str | None, str | None] = (None, None)
    dim: int = 1
    fitted: bool = False
    inconsistent: bool = False
    asked: Flags | None = None


def judge_estimate(case: Case) -> Judged:
    """Judge how reliable each value of an estimate is.

    The belief in a value is the first of these four phrases that applies:

    - "refuted by its own certificate": a certified lower bound exceeds the value.
    - "saturated": the divergence may be larger than the method can show.
    - "not resolved at this alpha": a test contradicts the value, or the value is too uncertain.
    - "estimate only": no test contradicts the value.
    """
    value, spread = case.raw.value, np.nan_to_num(case.raw.std_error, nan=0.0, posinf=0.0)
    largest = tuple(_max_reliable_order(case, direction) for direction in (0, 1))
    beyond = np.stack([case.alphas > (0.0 if top is None else top) for top in largest])
    refuted = np.zeros(value.shape, bool)
    if case.certified is not None:
        # A bound of 0 gives no evidence, although it is above a negative value.
        refuted = (case.certified > value + _SIGNIFICANT_ERRORS * spread) & (case.certified > 0.0)
    unseen = np.array([_outside_rows_sentence(case, direction) is not None for direction in (0, 1)])
    saturated = (value > case.raw.ceiling - np.log(2.0)) | np.isposinf(value)
    saturated |= unseen[:, None] & (case.alphas >= 1.0)
    causes = _list_causes(case, beyond, spread)
    unresolved = np.logical_or.reduce([mask for mask, _ in causes])
    chosen = [refuted, saturated, unresolved]
    belief = np.select(chosen, [REFUTED, SATURATED, UNRESOLVED], ESTIMATE)
    resolved = belief == ESTIMATE
    reason = _explain_least_reliable_value(case, refuted, saturated & ~refuted, causes, resolved)
    error = np.where(beyond, np.nan, case.raw.std_error)
    return Judged(belief, resolved, reason, (largest[0], largest[1]), error)


def judge_as_zero(alphas: Floats) -> Judged:
    """Return the reliability of an estimate from two equal sets, whose divergences are all 0."""
    shape, top = (2, len(alphas)), float(alphas[-1])
    reason = "the two sets hold the same rows equally often, so every divergence of them is 0"
    belief, resolved = np.full(shape, ESTIMATE), np.ones(shape, bool)
    return Judged(belief, resolved, reason, (top, top), np.zeros(shape))


def _max_reliable_order(case: Case, direction: int) -> float | None:
    alphas, value = case.alphas, case.raw.value[direction]
    rows = case.sizes[1 - direction] / case.raw.depth[direction]
    with np.errstate(invalid="ignore"):
        psi = np.where(alphas == 1.0, 0.0, (alphas - 1.0) * value)
        slope = np.gradient(psi, alphas) if len(alphas) > 1 else value
        # At order one the derivative equals the KL divergence.
        slope = np.where(alphas == 1.0, value, slope)
        within = alphas * slope - psi <= SHARE * np.log(rows)
        within &= alphas - 1.0 <= case.k / _NEIGHBOURS_PER_ORDER
    kept = alphas[np.logical_and.accumulate(within)]
    return float(kept[-1]) if len(kept) else None


def _list_causes(case: Case, beyond: Flags, spread: Floats) -> list[tuple[Flags, str]]:
    """List the causes for "not resolved": for each cause, a mask of the values and a text."""
    value, above_one = case.raw.value, np.broadcast_to(case.alphas > 1.0, beyond.shape)
    rows = case.raw.rows_per_atom
    causes = [
        (beyond, "the order is beyond alpha_max: too few rows decide its average"),
        (~np.isfinite(value), "the value is not finite"),
        (
            above_one & (rows < _ROWS_ABOVE_ONE) | (rows < _ROWS_ANY_ORDER),
            f"repeated values have {rows:.3g} rows each: 3 are needed, 10 for orders above one",
        ),
    ]
    causes += _contradicting_checks(case, spread)
    causes.append(_flag_estimates_within_error_of_zero(case, spread))
    if case.beside is not None:
        apart = np.hypot(spread, np.nan_to_num(case.beside.std_error, nan=0.0))
        mask = case.beside.value > value + _SIGNIFICANT_ERRORS * apart
        causes.append((mask, "a held-out score sees more than this method does"))
    if case.inconsistent:
        text = "this form does not converge to a Renyi divergence, however many the rows"
        causes.insert(0, (np.ones(value.shape, bool), text))
    return causes


def _contradicting_checks(case: Case, spread: Floats) -> list[tuple[Flags, str]]:
    """List the results of other checks that contradict the estimate, as masks and texts."""
    value, causes = case.raw.value, []
    if case.above is not None:
        apart = np.hypot(*(_errors_or_cap(case, each.std_error) for each in (case.raw, case.above)))
        mask = case.above.value > value + _SCORE_EXCESS_ERRORS * apart
        causes.append((mask, _score_misses_difference_text(case, mask)))
    if case.energy_p <= ENERGY_LEVEL:
        text = (
            f"the energy test distinguishes the sets (p = {case.energy_p:.3g}), where the value is "
            "0 within two standard errors"
        )
        causes.append((value <= _SIGNIFICANT_ERRORS * spread, text))
    for i, outside in enumerate(case.outside):
        mask = np.zeros(value.shape, bool)
        mask[i] = (case.alphas >= 1.0) & (outside is not None)
        causes.append((mask, f"{outside}: no sample tells how rare they are there"))
    return causes


def _errors_or_cap(case: Case, error: Floats) -> Floats:
    """Return the standard errors. Replace missing ones by rough upper limits for equal laws."""
    if np.isfinite(error).any():
        return np.nan_to_num(error, nan=0.0, posinf=0.0)
    rough = np.sqrt(np.maximum(case.alphas, 1.0) * sum(1.0 / size for size in case.sizes))
    return np.broadcast_to(rough, error.shape)


def _score_misses_difference_text(case: Case, mask: Flags) -> str:
    if not mask.any() or case.above is None:
        return ""
    i, j = _direction_and_index_of_lowest_true(mask)
    other, error = case.above.value[i, j], case.above.std_error[i, j]
    deviation = "" if np.isnan(error) else f" +- {error:.3g}"
    return (
        f"the ball gives {other:.4g}{deviation} where the score gives {case.raw.value[i, j]:.3g}: "
        "the score may be blind to a difference"
    )


def _flag_estimates_within_error_of_zero(case: Case, spread: Floats) -> tuple[Flags, str]:
    """Find values that cannot be distinguished from 0, with a text on the rows needed."""
    value = case.raw.value
    mask = (spread > SHARP) & (np.abs(value) < TOLD * spread)
    text = "the standard error is too large to tell the value from 0"
    asked = mask if case.asked is None else mask & case.asked
    if asked.any():
        i, j = _direction_and_index_of_lowest_true(asked)
        rows = rows_to_distinguish_from_0(float(value[i, j]), float(spread[i, j]), min(case.sizes))
        text += f" (about {rows:,} rows of each set would)"
    return mask, text


def _explain_least_reliable_value(
    case: Case, refuted: Flags, saturated: Flags, causes: list[tuple[Flags, str]], resolved: Flags
) -> str:
    """Return one sentence that explains the least reliable value at the requested orders."""
    asked = np.ones(len(case.alphas), bool) if case.asked is None else case.asked
    if (refuted & asked).any():
        assert case.certified is not None
        gap = np.where(refuted & asked, case.certified - case.raw.value, -np.inf)
        i, j = divmod(int(np.argmax(gap)), len(asked))
        return (
            f"a held-out event certifies at least {case.certified[i, j]:.3g} for "
            f"{_format_order(i, case.alphas[j])}, where the estimate is {case.raw.value[i, j]:.3g}"
        )
    if (saturated & asked).any():
        i, j = np.argwhere(saturated & asked)[0].tolist()
        return _explain_saturation(case, i, j)
    if resolved[:, asked].all():
        return "every order is resolved, which makes no bound of it: nothing here is certified"
    # Report the cause at the lowest order that is not resolved.
    i, j = _direction_and_index_of_lowest_true(~resolved & asked)
    text = next(text for mask, text in causes if mask[i, j])
    return f"from {_format_order(i, case.alphas[j])} on, {text}"


def _direction_and_index_of_lowest_true(mask: Flags) -> tuple[int, int]:
    """Return the direction and the index of the lowest order for which the mask is True."""
    place, direction = np.argwhere(mask.T)[0].tolist()
    return direction, place


def _outside_rows_sentence(case: Case, i: int) -> str | None:
    """Describe the rows of set `i` outside the other set; return None if such rows are few."""
    share, beyond = case.raw.unseen_share[i], case.raw.beyond_share[i]
    if share > _MAX_UNSEEN_SHARE:
        return f"{share:.1%} of the rows of y{i} are repeated values that y{1 - i} does not have"
    if beyond > _MAX_OUTSIDE_SHARE + _ALLOWED_EXTREMES / (case.sizes[1 - i] + 1):
        return f"{beyond:.1%} of the rows of y{i} (or their scores) lie beyond all of y{1 - i}"
    return None


def _explain_saturation(case: Case, i: int, j: int) -> str:
    unseen = _outside_rows_sentence(case, i)
    if unseen is not None:
        return f"{unseen}: no sample tells how rare they are, and {DIRECTIONS[i]} may be infinite"
    if case.raw.ceiling[i, j] <= np.log(2.0):
        return few_rows_sentence(case.sizes, case.dim, case.k, case.fitted)
    return (
        f"{_format_order(i, case.alphas[j])} is {case.raw.value[i, j]:.3g}, as large as "
        f"{case.sizes[0]} and {case.sizes[1]} rows can show: the sets lie farther apart than "
        "this sample can tell"
    )


def _format_order(direction: int, alpha: float) -> str:
    order = "KL" if alpha == 1.0 else f"order {alpha:.4g}"
    return f"{DIRECTIONS[direction]} at {order}"
