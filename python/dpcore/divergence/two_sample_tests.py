"""Permutation tests: do both sets have one law, and do group sizes depend on values?

Equality of the laws is tested by the AUC of a held-out score and by the energy distance.

An estimate averages over rows: under its law, a group is drawn with probability proportional to its
size. A certificate counts one random row of each group: under its law, all groups are equally
likely. These two laws are equal if and only if the size is uncorrelated with every event of a
group's random row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ..records import Flags, Floats, Record
from .points import Labels, Points, freeze_arrays, one_of_each
from .score import CrossFit, Fold

AUC_PERMUTATIONS: Final = 999
ENERGY_PERMUTATIONS: Final = 199
ENERGY_ROWS: Final = 1000

_MIN_PERMUTATIONS: Final = 99
_MAX_PERMUTED_GROUPS: Final = 2**24
"""Largest product of permutations and groups; more groups get fewer permutations."""
_MAX_SCORE_LEVELS: Final = 128
"""Number of levels to which the permutation test reduces the scores if there are more scores."""
_MAX_GROUP_ROWS: Final = 50
"""Largest number of rows of one group that the energy distance uses."""
_TIE_TOLERANCE: Final = 1e-12


LEVEL: Final = 0.01
"""Largest chance of a note on two laws although sizes do not depend on values."""

_SIZE_PERMUTATIONS: Final = 999
_MAX_TESTED_GROUPS: Final = 1000
_MIN_TESTED_GROUPS: Final = 8


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Checks(Record, word="Checks"):
    """Results of tests if the two sets have different laws, and bounds that they certify.

    Attributes:
        auc: probability that a held-out row of set 0 has a larger score than one of set 1 (ties
            count one half), averaged over the folds; 1/2 if the score finds no difference.
        auc_low: lower end of the confidence interval for the AUC of the fitted scores.
        auc_high: upper end of this interval.
        auc_p: permutation p-value of P0 = P1 by the held-out scores.
        energy: squared energy distance of Szekely and Rizzo (2013), 2 E|X - Y| - E|X - X'| -
            E|Y - Y'| over all pairs of the drawn rows, at least 0.
        energy_p: permutation p-value of P0 = P1 by the energy distance.
        energy_rows: rows of each set from which the energy distance was computed.
        permutations: number of permutations for the AUC (in each fold) and the energy distance.
        units: number of permuted rows or groups of each set, in all held-out folds together.
        grouped: True if whole groups were permuted.
        confidence: confidence of the interval and of the certified bounds.
        certified: certified lower bounds of D_alpha, shape (2, n_alpha), or None if not requested.
        epsilon_lower: certified lower bound of epsilon at delta = 0 by a held-out event, or None
            unless the caller stated that rows or groups are independent.
        size_p: permutation p-value of "the sizes of groups do not depend on their values", or None
            without groups of different sizes. If sizes depend on values, certificates and
            estimates concern different laws: of one random row of each group, and of all rows.
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
        """Freeze the bounds."""
        freeze_arrays(self, "certified")

    def __str__(self) -> str:
        """Return two to four lines for a report; the table shows the bounds of D_alpha."""
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
    """Test P0 = P1 by held-out scores and by the energy distance.

    Both tests permute the labels of rows, or of whole groups if there are groups. Both p-values are
    (1 + number of permutations at least as extreme)/(1 + permutations). They are valid if the units
    of both sets together are exchangeable when P0 = P1.

    Given one fold and the pooled rows of the other fold, the labels of the other fold are
    exchangeable and the score is fixed. Therefore each fold's p-value is valid. But the two
    p-values are not added. They are dependent, because each fold was used to fit the other's score
    (correlation .45 to .93 at P0 = P1). Twice the smaller p-value is valid for any dependence
    (Bonferroni).

    Args:
        points: both sets.
        fit: held-out scores.
        rng: generator for permutations, and for the rows of the energy distance.
        confidence: confidence of the interval for the AUC.

    Returns:
        The two statistics with their p-values.

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
    energy, energy_p, rows = _energy_test(points, rng)
    drawn = permutations, ENERGY_PERMUTATIONS
    both = sum(u.units[0] for u in units), sum(u.units[1] for u in units)
    return Checks(auc, low, high, auc_p, energy, energy_p, rows, drawn, both, grouped, confidence)


class _Units:
    """Held-out scores of one fold, arranged by permuted unit: row or group.

    `ranks` numbers the distinct scores of both sets from 0, and `counts` holds the rows at each.
    `placements` holds the share of the other set's scores below each score (ties count one half).
    `labels` is the unit of every row, and `units` the number of units of each set.
    """

    def __init__(self, fold: Fold, points: Points) -> None:
        self.labels = fold.groups(points)
        n0, n1 = (
            n if g is None else int(g.max()) + 1
            for n, g in zip(fold.sizes, self.labels, strict=True)
        )
        self.units, self.size = (n0, n1), n0 + n1
        every = np.concatenate(fold.values)
        _, both, self.counts = np.unique(every, return_inverse=True, return_counts=True)
        self.ranks = both[: fold.sizes[0]], both[fold.sizes[0] :]
        own = [np.bincount(r, minlength=len(self.counts)) for r in self.ranks]
        below = [(np.cumsum(c) - c / 2.0) / c.sum() for c in own]
        self.placements = below[1][self.ranks[0]], below[0][self.ranks[1]]
        self.auc = float(np.mean(self.placements[0]))

    def variance(self) -> float:
        """Compute the variance of the AUC given the score.

        It is DeLong's variance, or Obuchowski's over the groups of each set.
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
        """Compute the permutation p-value of the AUC for a fixed score."""
        grouped = any(labels is not None for labels in self.labels)
        drawn = (self._grouped if grouped else self._alone)(permutations, rng)
        return permutation_p(np.abs(drawn) if sided == 2 else drawn)

    def _alone(self, permutations: int, rng: np.random.Generator) -> Floats:
        """Compute the centred AUC for original and permuted rows, shape (1 + permutations,).

        The number of permuted rows at each level is a multivariate hypergeometric draw. Levels are
        quantiles of all scores together, so they do not depend on the labels.
        """
        level = _rank_levels(self.counts)
        counts = np.bincount(level, self.counts).astype(np.int64)
        middle = np.cumsum(counts) - counts / 2.0
        own = np.bincount(level[self.ranks[0]], minlength=len(counts))
        drawn = rng.multivariate_hypergeometric(counts, int(own.sum()), permutations)
        ranked = np.concatenate([[own @ middle], drawn @ middle]) / own.sum()
        return np.asarray(_centred_auc(ranked, int(own.sum()), int(counts.sum())))

    def _grouped(self, permutations: int, rng: np.random.Generator) -> Floats:
        """Compute the centred AUC for original and permuted units, shape (1 + permutations,)."""
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
    """Compute AUC - 1/2 from the mean midrank, counted from 1/2, of `size` among `both` rows."""
    return (mean_rank - both / 2.0) / (both - size)


def _rank_levels(counts: Labels) -> Labels:
    """Return the level of each distinct score, from 0 without gaps, below `_MAX_SCORE_LEVELS`."""
    if len(counts) <= _MAX_SCORE_LEVELS:
        return np.arange(len(counts))
    level = (np.cumsum(counts) - counts / 2.0) * (_MAX_SCORE_LEVELS / counts.sum())
    return np.unique(level.astype(np.int64), return_inverse=True)[1]


def permutation_p(drawn: Floats) -> float:
    """Compute a permutation p-value; the first value is observed, and rounded ties count."""
    least = drawn[0] - _TIE_TOLERANCE * max(1.0, abs(float(drawn[0])))
    return (1.0 + float(np.count_nonzero(drawn[1:] >= least))) / len(drawn)


def _auc_interval(units: list[_Units], confidence: float) -> tuple[float, float, float]:
    """Compute the mean AUC with a normal interval on the logit scale.

    If the AUC is 0 or 1, the variance is 0 and the exact limit of independent pairs is used. If m
    pairs with one unit of each set are all in the same order, the AUC is at least
    ((1 - c)/2)^(1/m).
    """
    from scipy.special import expit, logit, ndtri

    auc = float(np.mean([each.auc for each in units]))
    tail = (1.0 - confidence) / 2.0
    pairs = sum(min(each.units) for each in units)
    extreme = tail ** (1.0 / pairs)
    # Use the mean of the errors: folds fit each other's score and may be almost fully dependent.
    error = float(np.mean([np.sqrt(each.variance()) for each in units]))
    if not 0.0 < auc < 1.0:
        return auc, extreme if auc == 1.0 else 0.0, 1.0 if auc == 1.0 else 1.0 - extreme
    if not error > 0.0:
        # One unit per set, or scores with a single value: the spread is unknown.
        return auc, 0.0, 1.0
    half = -float(ndtri(tail)) * error / (auc * (1.0 - auc))
    return auc, float(expit(logit(auc) - half)), float(expit(logit(auc) + half))


def _energy_test(points: Points, rng: np.random.Generator) -> tuple[float, float, tuple[int, int]]:
    """Return the squared energy distance of drawn rows, its p-value and the number drawn."""
    drawn = [_draw_rows(n, g, rng) for n, g in zip(points.sizes, points.groups, strict=True)]
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


def _draw_rows(size: int, groups: Labels | None, rng: np.random.Generator) -> tuple[Labels, Labels]:
    """Draw rows for the energy distance, and number their units from 0 without gaps.

    Whole groups are drawn in random order until the limit, with at most `_MAX_GROUP_ROWS` rows of
    each. Both sets have the same rule, so the drawn groups are exchangeable if all groups are.
    """
    order = rng.permutation(size)
    if groups is None:
        rows = order[:ENERGY_ROWS]
        return rows, np.arange(len(rows))
    # Number the groups at random, then sort the rows by group, in random order within a group.
    number = rng.permutation(int(groups.max()) + 1)[groups]
    rows = order[np.argsort(number[order], kind="stable")]
    number = number[rows]
    start = np.searchsorted(number, number)
    kept = np.arange(size) - start < _MAX_GROUP_ROWS
    rows, number = rows[kept], number[kept]
    ends = np.searchsorted(number, number, "right")
    kept = ends <= ENERGY_ROWS
    return rows[kept], number[kept]


def pairwise_distances(rows: Floats) -> Floats:
    """Compute Euclidean distances between rows, from inner products after centring."""
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
    """Compute 2 E|X - Y| - E|X - X'| - E|Y - Y'| for each column of labels."""
    count = np.count_nonzero(labels, axis=0)
    weights = np.where(labels, 1.0 / count, -1.0 / (len(labels) - count))
    within: Floats = np.einsum("ij,ij->j", weights, distances @ weights)
    return -within


def size_p_value(points: Points, rng: np.random.Generator) -> float | None:
    """Compute the p-value of the test that group sizes do not depend on values, for both sets.

    The statistic is the energy distance between the law of rows and the law of one random row of
    each group; sizes are permuted. The test is exact if sizes and rows are independent. If both
    sets have groups of different sizes, the result is twice the smaller p-value.

    Args:
        points: both sets.
        rng: generator for the row of each group, for the groups if there are more than 1000, and
            for the permutations.

    Returns:
        The p-value, or None if no set has enough groups of different sizes.
    """
    p_values = []
    for side, groups in enumerate(points.groups):
        if groups is None:
            continue
        sizes = np.bincount(groups)
        if len(sizes) >= _MIN_TESTED_GROUPS and sizes.min() < sizes.max():
            p_values.append(_one_set_p_value(points, side, groups, sizes, rng))
    return min(1.0, len(p_values) * min(p_values)) if p_values else None


def two_laws(p: float | None) -> tuple[str, ...]:
    """Return a note on two different laws if sizes depend on values; otherwise an empty tuple."""
    if p is None or p > LEVEL:
        return ()
    return (
        f"the sizes of groups depend on their values (energy test, p = {p:.3g}): the estimates and "
        "the two tests concern the distribution of rows, in which a large group has more weight; "
        "what is certified concerns one random row of each group, in which it has not; neither "
        "bounds the other",
    )


def _one_set_p_value(
    points: Points, side: int, groups: Labels, sizes: Labels, rng: np.random.Generator
) -> float:
    single = one_of_each(groups, rng)
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
