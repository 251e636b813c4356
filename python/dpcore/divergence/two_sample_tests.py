"""Permutation tests: do two sets have the same law, and do group sizes depend on values?

Equality of the two laws is tested in two ways: by the AUC (area under the ROC curve) of a held-out
score, and by the energy distance. A held-out score is a function of a row that was not fitted on
this row.

If rows have groups, the law of a row can be defined in two ways. An estimate averages over all
rows, so a group has a weight proportional to its size. A certified bound counts one random row of
each group, so all groups have the same weight. These two laws are equal if and only if the size of
a group is uncorrelated with every event "the group's random row lies in A".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ..records import Flags, Floats, Record
from .points import Labels, Points, draw_one_row_per_group, freeze_arrays
from .score import CrossFit, Fold

AUC_PERMUTATIONS: Final = 999
ENERGY_PERMUTATIONS: Final = 199
ENERGY_ROWS: Final = 1000

_MIN_PERMUTATIONS: Final = 99
_MAX_PERMUTED_GROUPS: Final = 2**24
"""Limit on the product of permutations and groups. Many groups get fewer permutations."""
_MAX_SCORE_LEVELS: Final = 128
"""Number of levels to which the permutation test reduces the distinct scores, if there are more."""
_MAX_GROUP_ROWS: Final = 50
"""Largest number of rows of one group that the energy distance uses."""
_TIE_TOLERANCE: Final = 1e-12


LEVEL: Final = 0.01
"""Largest probability of a wrong note that the sizes of groups depend on the values of rows."""

_SIZE_PERMUTATIONS: Final = 999
_MAX_TESTED_GROUPS: Final = 1000
_MIN_TESTED_GROUPS: Final = 8


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Checks(Record, word="Checks"):
    """Results of tests of P0 = P1, the hypothesis that two sets have equal distributions.

    A score is a function that maps a row to a number. Each half of the rows is scored by a fit on
    the other half. A held-out row is a row that was not used in the fit of its score.

    Attributes:
        auc: area under the ROC curve (AUC). It is the probability that a held-out row of set 0 has
            a larger score than a held-out row of set 1, averaged over the two halves. Ties count
            one half. The AUC is 1/2 if the score finds no difference.
        auc_low: lower end of the confidence interval for the AUC, given the fitted scores.
        auc_high: upper end of the confidence interval for the AUC.
        auc_p: permutation p-value of the hypothesis P0 = P1, from the scores of held-out rows.
        energy: squared energy distance of Szekely and Rizzo (2013), 2 E|X - Y| - E|X - X'| - E|Y -
            Y'|, at least 0. The averages are over all pairs of randomly drawn rows.
        energy_p: permutation p-value of the hypothesis P0 = P1, from the energy distance.
        energy_rows: number of rows of each set from which the energy distance was computed.
        permutations: two numbers of permutations: for the AUC (in each half), and for the energy
            distance.
        units: number of rows (or groups) of each set that were permuted for the AUC, in both halves
            together.
        grouped: True if whole groups of rows were permuted, False if single rows were.
        confidence: confidence of the interval for the AUC and of the certified bounds.
        certified: certified lower bounds of D_alpha(P0||P1) and D_alpha(P1||P0), shape (2,
            n_alpha). None if they were not requested.
        epsilon_lower: certified lower bound of epsilon at delta = 0. It comes from the counts of an
            event on rows that were not used to choose the event. None if the caller did not state
            that rows (or groups) are independent.
        size_p: permutation p-value of the hypothesis that the size of a group does not depend on
            the values of its rows. None if all groups have the same size. If the
            hypothesis is false, the bounds and the estimates concern different distributions. The
            certified bounds concern one random row of each group, and the estimates concern all
            rows.
    """

    auc: float
    auc_low: float
    auc_high: float
    auc_p: float
    energy: float
    energy_p: float
    energy_rows: tuple[int, int]
    permutations: tuple[int, int]
    units: tuple[int, int]
    grouped: bool
    confidence: float
    certified: Floats | None = None
    epsilon_lower: float | None = None
    size_p: float | None = None

    def __post_init__(self) -> None:
        """Make the array of bounds read-only."""
        freeze_arrays(self, "certified")

    def __str__(self) -> str:
        """Return two to four lines for a report, without the bounds of D_alpha."""
        what = "groups" if self.grouped else "rows"
        rows0, rows1 = self.energy_rows
        level = f"{100 * self.confidence:g} %"
        lines = [
            f"held-out AUC {self.auc:.3f} ({level} interval {self.auc_low:.3f} to "
            f"{self.auc_high:.3f}), p = {self.auc_p:.3g} ({self.permutations[0]} permutations of "
            f"{what})",
            f"energy distance {self.energy:.3g} on {rows0} and {rows1} rows, "
            f"p = {self.energy_p:.3g} ({self.permutations[1]} permutations of {what})",
        ]
        if self.epsilon_lower is not None:
            certificate = f"epsilon >= {self.epsilon_lower:.4f} at delta 0"
            lines.append(f"{certificate}, certified by a held-out event ({level})")
        if self.size_p is not None:
            lines.append(f"sizes of groups against their values: p = {self.size_p:.3g}")
        return "\n".join(lines)


def check_equality(
    points: Points, fit: CrossFit, rng: np.random.Generator, confidence: float = 0.95
) -> Checks:
    """Test whether two sets of rows have equal distributions, P0 = P1.

    One test uses scores (a score is a function that maps a row to a number). The second test uses
    the energy distance. Both tests compute p-values from random permutations. A permutation changes
    which rows belong to which set. If rows have groups, the rows of a group stay together. Each
    p-value is (1 + number of permutations at least as extreme)/(1 + number of permutations). The
    p-values are valid if, for P0 = P1, the rows (or groups) of both sets together are exchangeable.

    The rows are divided into two halves, and each half is scored by a fit on the other half. Given
    the fit, the rows of the scored half are exchangeable. Therefore the p-value of each half is
    valid. The two p-values are dependent, because each half was used to fit the score of the other
    half. The reported p-value is twice the smaller one, which is valid for any dependence
    (Bonferroni).

    Args:
        points: the rows of both sets.
        fit: scores of the rows. Each row was scored by a fit on other rows.
        rng: random generator for the permutations, and for the choice of rows for the energy
            distance.
        confidence: confidence of the interval for the AUC.

    Returns:
        An object of the class `Checks` with the AUC of the scores, the energy distance, and the
        p-value of each.

    Source:
        DeLong, DeLong and Clarke-Pearson (1988) and, for groups, Obuchowski (1997) for the
        interval; Szekely and Rizzo (2013); Phipson and Smyth (2010) for the p-values.
    """
    units = [_Units(fold, points) for fold in fit.folds]
    grouped = any(g is not None for g in points.groups)
    permutations = AUC_PERMUTATIONS
    if grouped:
        most = max(each.size for each in units)
        permutations = max(_MIN_PERMUTATIONS, min(permutations, _MAX_PERMUTED_GROUPS // most))
    sided = 2 if fit.kind != "logistic" else 1
    ps = [each.p_value(permutations, sided, rng) for each in units]
    auc, low, high = _auc_interval(units, confidence)
    auc_p = min(1.0, len(ps) * min(ps))
    energy, energy_p, rows = _energy_and_p(points, rng)
    drawn = permutations, ENERGY_PERMUTATIONS
    both = sum(u.units[0] for u in units), sum(u.units[1] for u in units)
    return Checks(auc, low, high, auc_p, energy, energy_p, rows, drawn, both, grouped, confidence)


class _Units:
    """Held-out scores of one fold, with the units (rows or groups) that are permuted between sets.

    `ranks` holds the rank of each score among the distinct scores of both sets, from 0. `counts`
    holds the number of rows with each distinct score. `placements` holds, for each score, the share
    of the scores of the other set below this score (ties count one half). `labels` is the unit of
    every row, and `units` the number of units of each set.
    """

    def __init__(self, fold: Fold, points: Points) -> None:
        self.labels = fold.row_group_ids(points)
        n0, n1 = (
            n if g is None else int(g.max()) + 1
            for n, g in zip(fold.n_scored, self.labels, strict=True)
        )
        self.units, self.size = (n0, n1), n0 + n1
        every = np.concatenate(fold.values)
        _, both, self.counts = np.unique(every, return_inverse=True, return_counts=True)
        self.ranks = both[: fold.n_scored[0]], both[fold.n_scored[0] :]
        own = [np.bincount(r, minlength=len(self.counts)) for r in self.ranks]
        below = [(np.cumsum(c) - c / 2.0) / c.sum() for c in own]
        self.placements = below[1][self.ranks[0]], below[0][self.ranks[1]]
        self.auc = float(np.mean(self.placements[0]))

    def auc_variance(self) -> float:
        """Compute the variance of the AUC, given the fitted score.

        The formula is DeLong's, or Obuchowski's if there are groups.
        """
        total = 0.0
        for placed, labels, units in zip(self.placements, self.labels, self.units, strict=True):
            if units < 2:
                return float("nan")
            around = placed - np.mean(placed)
            sums = around if labels is None else np.bincount(labels, around, units)
            total += units / (units - 1) * float(np.sum(sums**2)) / len(placed) ** 2
        return total

    def p_value(self, permutations: int, sided: int, rng: np.random.Generator) -> float:
        """Compute the permutation p-value of the AUC, given the fitted score."""
        grouped = any(labels is not None for labels in self.labels)
        drawn = (self._centred_group_aucs if grouped else self._aucs_minus_half)(permutations, rng)
        return permutation_p(np.abs(drawn) if sided == 2 else drawn)

    def _aucs_minus_half(self, permutations: int, rng: np.random.Generator) -> Floats:
        """Compute AUC - 1/2 for the original and the permuted rows, shape (1 + permutations,).

        More than 128 distinct scores are first replaced by levels. The levels are quantiles of all
        scores together, so they do not depend on the labels. The numbers of rows with label 0 at
        the levels are then drawn from a multivariate hypergeometric law.
        """
        level = _bin_distinct_scores(self.counts)
        counts = np.bincount(level, self.counts).astype(np.int64)
        middle = np.cumsum(counts) - counts / 2.0
        own = np.bincount(level[self.ranks[0]], minlength=len(counts))
        drawn = rng.multivariate_hypergeometric(counts, int(own.sum()), permutations)
        ranked = np.concatenate([[own @ middle], drawn @ middle]) / own.sum()
        return np.asarray(_centred_auc(ranked, int(own.sum()), int(counts.sum())))

    def _centred_group_aucs(self, permutations: int, rng: np.random.Generator) -> Floats:
        """Compute AUC - 1/2 for the original and the permuted groups, shape (1 + permutations,)."""
        middle = (np.cumsum(self.counts) - self.counts / 2.0)[np.concatenate(self.ranks)]
        labels = [
            np.arange(len(r)) if g is None else g
            for r, g in zip(self.ranks, self.labels, strict=True)
        ]
        unit = np.concatenate([labels[0], labels[1] + self.units[0]])
        sums = np.bincount(unit, middle, self.size).astype(np.float64)
        sizes = np.bincount(unit, minlength=self.size).astype(np.float64)
        here = np.arange(self.size) < self.units[0]
        both, out = float(sizes.sum()), []
        for labelled in (here, *(rng.permutation(here) for _ in range(permutations))):
            rows = float(sizes @ labelled)
            out.append(_centred_auc(float(sums @ labelled) / rows, rows, both))
        return np.array(out)


def _centred_auc(mean_rank: Any, size: float, both: float) -> Any:
    """Compute AUC - 1/2 from the mean midrank of `size` among `both` rows. Ranks start at 1/2."""
    return (mean_rank - both / 2.0) / (both - size)


def _bin_distinct_scores(counts: Labels) -> Labels:
    """Return the level of each distinct score: at most 128 levels, numbered from 0 without gaps.

    `counts` holds the number of rows with each distinct score.
    """
    if len(counts) <= _MAX_SCORE_LEVELS:
        return np.arange(len(counts))
    level = (np.cumsum(counts) - counts / 2.0) * (_MAX_SCORE_LEVELS / counts.sum())
    return np.unique(level.astype(np.int64), return_inverse=True)[1]


def permutation_p(drawn: Floats) -> float:
    """Compute the p-value of a permutation test from the values of its statistic.

    The first entry of `drawn` is the observed value. The other entries are the values after random
    permutations. A permuted value counts as extreme if it is larger than the observed value, or
    equal up to rounding.
    """
    least = drawn[0] - _TIE_TOLERANCE * max(1.0, abs(float(drawn[0])))
    return (1.0 + float(np.count_nonzero(drawn[1:] >= least))) / len(drawn)


def _auc_interval(units: list[_Units], confidence: float) -> tuple[float, float, float]:
    """Compute the mean AUC of the folds, with the lower and upper end of its confidence interval.

    The interval is normal on the logit scale. If the AUC is 0 or 1, its estimated variance is 0,
    and an exact limit from independent pairs is used instead. Suppose that in m pairs with one unit
    of each set, the unit of set 0 always has the larger score. Then the lower limit of the AUC is
    ((1 - c)/2)^(1/m) at the confidence c.
    """
    from scipy.special import expit, logit, ndtri

    auc = float(np.mean([each.auc for each in units]))
    tail = (1.0 - confidence) / 2.0
    pairs = sum(min(each.units) for each in units)
    extreme = tail ** (1.0 / pairs)
    # Use the mean of the errors: folds fit each other's score and may be almost fully dependent.
    error = float(np.mean([np.sqrt(each.auc_variance()) for each in units]))
    if not 0.0 < auc < 1.0:
        return auc, extreme if auc == 1.0 else 0.0, 1.0 if auc == 1.0 else 1.0 - extreme
    if not error > 0.0:
        # One unit per set, or scores with a single value: the spread is unknown.
        return auc, 0.0, 1.0
    half = -float(ndtri(tail)) * error / (auc * (1.0 - auc))
    return auc, float(expit(logit(auc) - half)), float(expit(logit(auc) + half))


def _energy_and_p(points: Points, rng: np.random.Generator) -> tuple[float, float, tuple[int, int]]:
    """Return the squared energy distance of drawn rows, its p-value, and the numbers of rows."""
    drawn = [_subsample_rows(n, g, rng) for n, g in zip(points.sizes, points.groups, strict=True)]
    (rows0, unit0), (rows1, unit1) = drawn
    ids = np.concatenate([points.ids[0][rows0], points.ids[1][rows1]])
    between = pairwise_distances(points.coordinates(ids).astype(np.float64))
    unit = np.concatenate([unit0, unit1 + unit0.max() + 1])
    here = np.arange(unit.max() + 1) <= unit0.max()
    labels = np.stack([here, *(rng.permutation(here) for _ in range(ENERGY_PERMUTATIONS))])
    values = _energy_distances(between, labels[:, unit].T)
    return (
        max(0.0, float(values[0])),
        permutation_p(values / max(between.max(), 1e-300)),
        (len(rows0), len(rows1)),
    )


def _subsample_rows(
    row_count: int, groups: Labels | None, rng: np.random.Generator
) -> tuple[Labels, Labels]:
    """Draw at most 1000 rows for the energy distance; number their groups from 0 without gaps.

    Groups are drawn in random order until the limit is reached, with at most 50 rows
    (`_MAX_GROUP_ROWS`) of each group. Without groups, each row is its own group. This rule is the
    same for both sets. Therefore the drawn groups are exchangeable if all groups are exchangeable.
    """
    order = rng.permutation(row_count)
    if groups is None:
        rows = order[:ENERGY_ROWS]
        return rows, np.arange(len(rows))
    # Number the groups at random, then sort the rows by group, in random order within a group.
    number = rng.permutation(int(groups.max()) + 1)[groups]
    rows = order[np.argsort(number[order], kind="stable")]
    number = number[rows]
    start = np.searchsorted(number, number)
    is_early = np.arange(row_count) - start < _MAX_GROUP_ROWS
    rows, number = rows[is_early], number[is_early]
    is_whole = np.searchsorted(number, number, "right") <= ENERGY_ROWS
    return rows[is_whole], number[is_whole]


def pairwise_distances(rows: Floats) -> Floats:
    """Compute the Euclidean distance between each pair of n rows, shape (n, n)."""
    rows = rows - np.mean(rows, axis=0)
    squares = np.einsum("ij,ij->i", rows, rows)
    out: Floats = rows @ rows.T
    out *= -2.0
    out += squares
    out += squares[:, None]
    np.maximum(out, 0.0, out=out)
    np.fill_diagonal(out, 0.0)
    return np.sqrt(out, out=out)


def _energy_distances(distances: Floats, labels: Flags) -> Floats:
    """Compute 2 E|X - Y| - E|X - X'| - E|Y - Y'| for each column of labels (True for X)."""
    count = np.count_nonzero(labels, axis=0)
    weights = np.where(labels, 1.0 / count, -1.0 / (len(labels) - count))
    within: Floats = np.einsum("ij,ij->j", weights, distances @ weights)
    return -within


def size_vs_values_p(points: Points, rng: np.random.Generator) -> float | None:
    """Test whether the size of a group depends on the values of its rows; return the p-value.

    The test uses one random row of each group. It compares two distributions of these rows. In the
    first, the weight of a row is proportional to the size of the group. In the second, all weights
    are equal. The statistic is the energy distance between the two distributions. Its p-value is
    computed by random permutations of the sizes. If both sets have groups of different sizes, both
    are tested, and the result is twice the smaller p-value.

    Args:
        points: the rows of both sets.
        rng: random generator. It draws one row of each group, and the permutations. If there are
            more than 1000 groups, it also draws 1000 of them.

    Returns:
        The p-value of the hypothesis that size and values are independent. None if neither set has
        at least 8 groups whose sizes are not all equal.
    """
    p_values = []
    for side, groups in enumerate(points.groups):
        if groups is None:
            continue
        sizes = np.bincount(groups)
        if len(sizes) >= _MIN_TESTED_GROUPS and sizes.min() < sizes.max():
            p_values.append(_side_size_dependence_p(points, side, groups, sizes, rng))
    return min(1.0, len(p_values) * min(p_values)) if p_values else None


def group_sizes_depend_on_values_note(p: float | None) -> tuple[str, ...]:
    """Return a note if the sizes of groups of rows depend on the values of the rows.

    The function returns the note if `p`, the p-value of `size_vs_values_p`, is at most .01.
    Otherwise the result is an empty tuple. The note states that the estimates concern all rows, and
    that the certified bounds concern one random row of each group.
    """
    if p is None or p > LEVEL:
        return ()
    return (
        f"the sizes of groups depend on their values (energy test, p = {p:.3g}): the estimates and "
        "the two tests concern the distribution of rows, in which a large group has more weight; "
        "what is certified concerns one random row of each group, in which it has not; neither "
        "bounds the other",
    )


def _side_size_dependence_p(
    points: Points, side: int, groups: Labels, sizes: Labels, rng: np.random.Generator
) -> float:
    single = draw_one_row_per_group(groups, rng)
    if len(single) > _MAX_TESTED_GROUPS:
        kept = rng.choice(len(single), _MAX_TESTED_GROUPS, replace=False)
        single, sizes = single[kept], sizes[kept]
    between = pairwise_distances(points.coordinates(points.ids[side][single]).astype(np.float64))
    # Weight of a group among rows, minus its weight among groups.
    surplus: Floats = sizes / sizes.sum() - 1.0 / len(sizes)
    permuted = (rng.permutation(surplus) for _ in range(_SIZE_PERMUTATIONS))
    drawn = np.stack([surplus, *permuted], axis=1)
    values = -np.einsum("ij,ij->j", drawn, between @ drawn)
    scale = max(float(between.max()) * float(np.abs(surplus).sum()) ** 2, 1e-300)
    return permutation_p(values / scale)
