"""Rows of one set that lie where the other has none, more of them than the estimate can explain.

No sample of P1 tells how rare its rows are where it has none, so that an estimate of D(P0||P1) is
silent about them: if .045 of a normal law is moved by 50, KL is 56, of which balls see a tenth.
Units are counted: the groups of a set that has any, else its distinct rows.

- At the ends, of every coordinate and of a held-out score. Let M units of y0 lie at or beyond the
  `EDGE`-th outermost of y1, m of these beyond all of y1. An estimate takes dP0/dP1 for constant
  among so few neighbours. If it is (as under equal laws), the M fall into the gaps between the e
  units of y1 there as in an urn of Polya, and m or more lie beyond all with the probability
  C(M - m + e - 1, e - 1) / C(M + e - 1, e - 1). At most `RARE`, shared by all ends, is too small.
  A normal law moved by its standard deviation, whose ratio grows, is not blamed: m is M/12.
- Apart: units of y0 farther from y1 than three times the largest distance of a row of y1 from the
  next; on a line only those between its ends. Too many exceed two limits, which equal laws pass
  with a chance of at most `RARE`: that of a binomial number with the probability .01 + 1/(n1 + 1),
  and p^m, p being the share of y0 among all units. Units may come in clumps, such as rare words;
  hence the former.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .neighbours import Finder
from .points import Ids, Labels, Points, Reals, iterate_blocks
from .score import CrossFit

RARE: Final = 1e-4
"""Chance, at most, that one direction is blamed by either rule where the laws are equal."""

EDGE: Final = 20

_TOLERATED_OUTSIDE_SHARE: Final = 0.01
"""So many units apart are never too many, as of repeated values that the other set lacks."""

_SEPARATE_DISTANCE_RATIO: Final = 3.0
_MAX_SEARCHED_ROWS: Final = 2000
_MAX_SORTED_ROWS: Final = 20_000
"""Rows of each set whose neighbours are sought, at most: in many dimensions, and on a line."""

_MAX_IGNORED_ROWS: Final = 5
"""So few rows are not looked at more closely: no limit is below them."""


def find_outside_units(
    points: Points, fit: CrossFit | None, rng: np.random.Generator, threads: int
) -> tuple[str | None, str | None]:
    """Describe the units of each set beyond the other one that the estimate cannot explain.

    Args:
        points: both sets.
        fit: held-out scores that the estimate rests on, or None if it rests on the rows alone.
        rng: draws the rows whose neighbours are sought, where there are many.
        threads: for that search.

    Returns:
        For D(P0||P1) and for D(P1||P0) a clause with the number, the total and the place, or None.
    """
    most = _MAX_SORTED_ROWS if points.dim == 1 else _MAX_SEARCHED_ROWS
    # Rows of a group are near each other: the next one must be of another group.
    alone = points if points.units == points.sizes else points.single(rng)
    few = alone.drawn((most, most), rng)
    found = []
    for side in (0, 1):
        seen = _find_outside_coordinates(points, side)
        if seen is None and fit is not None:
            seen = _find_outside_scores(points, fit, side)
        found.append(_find_separate_rows(few, side, threads) if seen is None else seen)
    return found[0], found[1]


def edge_p_value(beyond: int, within: int, others: int) -> float:
    """Compute the chance that `beyond` of `within` units exceed all `others`, the ratio constant.

    Args:
        beyond: units of the one set beyond all of the other.
        within: its units at or beyond the outermost `others` units of the other, these included.
        others: units of the other set there, at least 1.
    """
    from scipy.special import gammaln

    def log_ways(units: int) -> float:
        return float(gammaln(units + others) - gammaln(units + 1) - gammaln(others))

    return float(np.exp(log_ways(within - beyond) - log_ways(within)))


def max_outside_units(units: int, others: int, level: float = RARE) -> int:
    """Return how many units of a set may lie outside the other one, of `others` units."""
    from scipy.special import bdtrc

    share = min(1.0, _TOLERATED_OUTSIDE_SHARE + 1.0 / (others + 1))
    by_share = int(np.argmax(bdtrc(np.arange(units + 1.0), units, share) <= level))
    by_chance = int(np.log(level) / np.log(units / (units + others)))
    return max(by_share, min(by_chance, units))


def _find_outside_coordinates(points: Points, side: int) -> str | None:
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
        (_count_outside_ends((own[:, column], other[:, column]), labels, level), -int(column))
        for column in columns
    )
    where = f" in coordinate {-place}" if points.dim > 1 else ""
    return _describe_units(points, side, number, f"lie beyond all of y{1 - side}{where}")


def _find_outside_scores(points: Points, fit: CrossFit, side: int) -> str | None:
    labels, number = (_unit_labels(points, side), _unit_labels(points, 1 - side)), 0
    level = RARE / (2 * len(fit.folds))
    for fold in fit.folds:
        values = fold.values[side], fold.values[1 - side]
        own = labels[0][fold.rows[side]], labels[1][fold.rows[1 - side]]
        number += _count_outside_ends(values, own, level)
    return _describe_units(points, side, number, f"have held-out scores beyond all of y{1 - side}")


def _count_outside_ends(values: tuple[Any, Any], labels: tuple[Any, Any], level: float) -> int:
    """Find units of the first set beyond all of the second at ends with too many of them."""
    return sum(_count_above_top(values, labels, sign, level) for sign in (1.0, -1.0))


def _count_above_top(
    values: tuple[Any, Any], labels: tuple[Any, Any], sign: float, level: float
) -> int:
    own, others = (sign * np.asarray(v, np.float64) for v in values)
    above = own > others.max()
    if np.count_nonzero(above) <= _MAX_IGNORED_ROWS:
        return 0
    # The outermost units of the other set: a group counts once, at its outermost row.
    reach = min(EDGE, len(others))
    edge = np.partition(others, -reach)[-reach]
    while reach < len(others) and _count_distinct(labels[1][others >= edge]) < EDGE:
        reach = min(2 * reach, len(others))
        edge = np.partition(others, -reach)[-reach]
    number, within, reached = map(
        _count_distinct, (labels[0][above], labels[0][own >= edge], labels[1][others >= edge])
    )
    return number if edge_p_value(number, within, reached) <= level else 0


def _find_separate_rows(points: Points, side: int, threads: int) -> str | None:
    both = [np.flatnonzero(m).astype(np.uint32) for m in points.multiplicity]
    own, others = both[side], both[1 - side]
    if min(len(own), len(others)) < 2:
        return None
    largest = float(_nearest_distances(points, others, others, threads).max())
    if points.dim == 1:
        # Its ends have a rule of their own, which knows how a tail grows thin.
        values, ends = points.coordinates(own)[:, 0], points.rows[1 - side]
        own = own[(values > ends.min()) & (values < ends.max())]
    if not len(own):
        return None
    squared = _nearest_distances(points, own, others, threads)
    far = own[squared > _SEPARATE_DISTANCE_RATIO**2 * largest]
    if len(far) <= _MAX_IGNORED_ROWS:
        return None
    number = _count_distinct(_unit_labels(points, side)[np.isin(points.ids[side], far)])
    if number <= max_outside_units(_count_units(points, side), _count_units(points, 1 - side)):
        return None
    where = f"lie farther from y{1 - side} than three times any row of it from the next"
    return _describe_units(points, side, number, where)


def _nearest_distances(points: Points, queries: Ids, among: Ids, threads: int) -> Reals:
    """Compute squared distances from the nearest other point."""
    own = int(queries is among)
    finder = Finder(points, among, threads, {"rescans": 0})
    return np.asarray(finder.nearest(queries, 1 + own)[1][:, own])


def _describe_units(points: Points, side: int, number: int, where: str) -> str | None:
    """Return a clause on units beyond the other set, with their total; None if there are none."""
    kind = "distinct rows" if points.groups[side] is None else "groups"
    total = _count_units(points, side)
    return f"{number:,} of {total:,} {kind} of y{side} {where}" if number else None


def _unit_labels(points: Points, side: int) -> Labels | Ids:
    """Return the unit of every sample row."""
    groups = points.groups[side]
    return points.ids[side] if groups is None else groups


def _count_units(points: Points, side: int) -> int:
    groups = points.groups[side]
    if groups is None:
        return int(np.count_nonzero(points.multiplicity[side]))
    return int(groups.max()) + 1


def _count_distinct(labels: npt.NDArray[Any]) -> int:
    return len(np.unique(labels))
