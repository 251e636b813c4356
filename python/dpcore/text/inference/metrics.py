"""Measures of an inference with confidence intervals, such as accuracy, F1 and AUC."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...bounds import limits
from ...records import Flags, Ints, Record
from ...suggestions import explain_argument_errors
from .attackers import Attacker, Vectors, fit_attacker, make_generator
from .targets import Target

_BOOTSTRAP_REPLICATES: Final = 2000
_BOOTSTRAP_STREAM_KEY: Final = 32
_PERMUTATION_STREAM_KEY: Final = 33
"""Keys that give the bootstrap and the permutations different random generators."""
_MAX_PERMUTATIONS: Final = 1999
_SUFFICIENT_EXCEEDANCES: Final = 200
"""Sampling stops after this number of permutations with a sum that is not below the observed sum.
Then the p-value is above a tenth."""
_MAX_CORRELATION: Final = 1.0 - 1e-12
"""Largest correlation for Fisher's transform, which is infinite at 1."""
_MAX_CHUNK_ENTRIES: Final = 2**21

RANKINGS: Final = ("auc", "true-positive rate", "balanced accuracy")
"""Measures of scores for an attribute with two values. By default, all three are used."""
CORRELATION: Final = "correlation"
"""Name of the measure for numbers, such as ages: Spearman's correlation."""
TOP: Final = 5
"""Number of highest-ranked values in the top-5 share: the share of texts whose true value is one of
these values."""
FALSE_POSITIVES: Final = 0.01
"""False-positive rate at which the true-positive rate is measured."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Measured(Record, word="Measured"):
    """A measured number with its confidence interval.

    Attributes:
        value: the measured number, such as an accuracy.
        low: lower end of the confidence interval.
        high: upper end of the confidence interval.
        how: name of the method that computed the interval, such as "Clopper-Pearson".
    """

    value: float
    low: float
    high: float
    how: str

    def __str__(self) -> str:
        """Format the number and the interval with four decimals."""
        return f"{self.value:.4f} [{self.low:.4f}, {self.high:.4f}]"


def threshold_scores(scores: Vectors, threshold: float | None) -> Ints:
    """Convert scores to codes: 1 for scores at or above the threshold, 0 for scores below it.

    If the threshold is None, `scores` must contain codes, and the function returns them as
    integers.

    Example:
        >>> threshold_scores(np.array([[0.1], [0.7]]), 0.5).tolist()
        [[0], [1]]
    """
    return (scores if threshold is None else scores >= threshold).astype(np.int64)


def find_threshold(scores: Vectors, truth: Ints, measure: str) -> float:
    """Find the threshold of scores for which a measure, such as the accuracy, has its best value.

    Code 1 is predicted if the score is at or above the threshold, and otherwise code 0. All
    attributes have the same threshold. The threshold lies between two scores, or it is infinite.
    With minus infinity, 1 is predicted for every text. With plus infinity, 0 is predicted for every
    text. If several thresholds are equally good, the function returns the middle one of them.

    Args:
        scores: for each text and attribute, the score of code 1, shape (n, attributes).
        truth: true codes, 0 or 1, shape (n, attributes).
        measure: "accuracy", "f1", "balanced accuracy", "true-positive rate" or "auc". With
            "true-positive rate", the result is the lowest threshold for which the false-positive
            rate is at most 1 %. With "auc", the result is the threshold with the best accuracy.

    Example:
        >>> find_threshold(np.array([[0.25], [0.5], [0.75]]), np.array([[0], [0], [1]]), "accuracy")
        0.625
    """
    flat, is_positive = scores.ravel(), truth.ravel()
    order = np.argsort(-flat, kind="stable")
    ordered, hits = flat[order], np.concatenate([[0], np.cumsum(is_positive[order])])
    cuts = np.concatenate([[0], np.flatnonzero(np.diff(ordered)) + 1, [flat.size]])
    right, n_above = hits[cuts].astype(np.float64), cuts.astype(np.float64)
    total = float(hits[-1])
    wrong, negatives = n_above - right, flat.size - total
    merits = {
        "f1": 2.0 * right / np.maximum(1.0, n_above + total),
        "balanced accuracy": right / max(total, 1.0) - wrong / max(negatives, 1.0),
        "true-positive rate": np.where(wrong <= FALSE_POSITIVES * negatives, n_above, -1.0),
    }
    merit = merits.get(measure, 2.0 * right - n_above)
    best = cuts[np.flatnonzero(merit == merit.max())]
    cut = int(best[len(best) // 2])
    if cut == 0:
        return np.inf
    if cut == flat.size:
        return -np.inf
    above, below = float(ordered[cut - 1]), float(ordered[cut])
    middle = below + (above - below) / 2.0
    # The midpoint of two adjacent floats may equal the lower one, which must stay below the
    # threshold.
    return middle if middle > below else above


def find_float_above_maximum(scores: Vectors) -> float:
    """Return the smallest float that is larger than all scores."""
    return float(np.nextafter(scores.max(), np.inf))


def compare_shares(right: Any, other: Any, tail: float) -> Measured:
    """Compute the difference of two accuracies on the same texts, with its confidence interval.

    Each of the n texts has two predictions, the first answer and the second answer. The difference
    is the accuracy of the first answers minus the accuracy of the second answers. Let m be the
    number of texts for which exactly one of the two answers is correct. Let s be the share of these
    m texts for which the first answer is correct. Then the difference is equal to ``m (2 s - 1) /
    n``. The interval comes from the exact binomial interval of s, given m (McNemar, 1947).

    Args:
        right: mask of the texts whose first answer is correct, shape (n,).
        other: mask of the texts whose second answer is correct, shape (n,).
        tail: error probability of each end of the interval, such as 0.025 for an interval of 95 %.

    Example:
        >>> compare_shares(np.ones(8, bool), np.zeros(8, bool), 0.025).value
        1.0
    """
    won, apart, n = int((right & ~other).sum()), int((right != other).sum()), len(right)
    share = (0.5, 0.5) if apart == 0 else limits(won, apart, tail)
    low, high = (apart * (2.0 * s - 1.0) / n for s in share)
    return Measured((2 * won - apart) / n, low, high, "sign test")


def mid_rank_fractions(values: Vectors, others: Vectors | None = None) -> Vectors:
    """Compute the rank of each number in `values` among the numbers `others`, scaled to [0, 1].

    The rank of a number is the share of `others` that are smaller, plus half the share that are
    equal. If `others` is None, the ranks are among `values`.

    Example:
        >>> mid_rank_fractions(np.array([3.0, 1.0, 3.0, 9.0]))
        array([0.5  , 0.125, 0.5  , 0.875])
    """
    ordered = np.sort(values if others is None else others)
    below = np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")
    return below / (2.0 * ordered.size)


@dataclass(frozen=True, slots=True)
class Ranking:
    """A measure of how well scores predict true values, such as the area under the ROC curve.

    The measure is computed from a sum over all texts: the weight of a text times its true value.
    The weight of a text depends on its score. For "auc" and "correlation", the weight is the rank
    of the score. For the two remaining measures, the weight is 1 if the score is at or above
    `threshold`, and otherwise 0.

    Args:
        measure: "auc", "true-positive rate", "balanced accuracy" or "correlation".
        threshold: threshold of the scores. "auc" and "correlation" ignore it.
    """

    measure: str
    threshold: float

    def weigh(self, scores: Vectors) -> Vectors:
        """Return the weight of each score in the sum that defines this measure, shape (n,).

        For "auc" and "correlation", the weight is the rank of the score, scaled to [0, 1]. For
        other measures, the weight is 1 for scores at or above the threshold, and 0 for other
        scores.
        """
        if self.measure in ("auc", CORRELATION):
            return mid_rank_fractions(scores)
        return (scores >= self.threshold).astype(np.float64)

    def permutation_z_score(self, scores: Vectors, truth: Any, cells: Any) -> float:
        """Compare this measure with its values after random permutations of the true values.

        The result is the measure minus its mean over the permutations, divided by the standard
        deviation of the measure over the permutations.

        Args:
            scores: scores of the texts, shape (n,).
            truth: true values, 0 or 1, or numbers in [0, 1], shape (n,).
            cells: for each text, the index (from 0) of the set that contains the text. For example,
                a set contains all texts with the same main label. The permutations exchange true
                values only within a set.
        """
        weights, sizes = self.weigh(scores), np.bincount(cells)
        first, second = (
            values - (np.bincount(cells, values) / sizes)[cells] for values in (weights, truth)
        )
        # Sums of squares within each cell, for the variance under permutation.
        spread = np.bincount(cells, first**2) * np.bincount(cells, second**2)
        variance = (spread / np.maximum(1, sizes - 1)).sum()
        surplus = float((weights * second).sum())
        return surplus / math.sqrt(variance) if variance > 1e-12 * truth.size else 0.0


def weights_by_group(weights: Vectors, truth: Any, cells: Any, groups: Any) -> tuple[Any, Any, Any]:
    """Sum centred weights over the texts of each group, such as the texts of an author.

    A permutation test can then exchange the true values of whole groups. Each text also belongs to
    a cell. A cell is a set of texts, such as the texts with the same main label.

    Args:
        weights: weights of the texts, shape (n,).
        truth: true values of the texts, shape (n,). All texts of a group have the same true value.
        cells: index of the cell of each text, from 0.
        groups: index of the group of each text, from 0, such as the index of the author. Every
            index up to the largest must occur.

    Returns:
        Three arrays with one entry per group:

        - the sum over the texts of the group, where each text adds its weight minus the mean weight
          in its cell;
        - the true value of the group;
        - the most frequent cell index in the group.

    Example:
        >>> texts = np.array([0.0, 0.5, 1.0]), np.array([1, 1, 0]), np.zeros(3, int)
        >>> [part.tolist() for part in weights_by_group(*texts, np.array([0, 0, 1]))]
        [[-0.5, 0.5], [1, 0], [0, 0]]
    """
    centred = weights - (np.bincount(cells, weights) / np.bincount(cells))[cells]
    first = np.unique(groups, return_index=True)[1]
    counts = np.zeros((len(first), int(cells.max()) + 1), np.int64)
    np.add.at(counts, (groups, cells), 1)
    return np.bincount(groups, centred), truth[first], counts.argmax(axis=1)


def permutation_p_value(weights: Vectors, truth: Any, cells: Any, seed: int) -> float:
    """Compute the one-sided permutation p-value of the sum of `weights * truth` over all texts.

    A cell is a set of texts, such as the texts with the same main label. The permutations exchange
    true values only within a cell. The weights are computed from scores. The null hypothesis is
    that, within a cell, the scores give no information on the true value. Under this hypothesis,
    all permutations are equally likely. Therefore the p-value is valid for any number of texts.
    There are at most 1,999 permutations, and fewer if the p-value is large (Besag and Clifford,
    1991).

    Args:
        weights: weights of the texts, shape (n,).
        truth: true values of the texts, 0 or 1, or numbers, shape (n,).
        cells: index of the cell of each text, from 0.
        seed: seed of the permutations.

    Returns:
        The p-value, at least 1 / 2,000. The p-value is small if the sum is larger than the sums
        after most permutations.

    Example:
        >>> truth = np.repeat([0, 1], 20)
        >>> permutation_p_value(truth * 1.0, truth, np.zeros(40, int), 1)
        0.0005
        >>> permutation_p_value(-truth * 1.0, truth, np.zeros(40, int), 1)
        1.0
    """
    observed, order = float(weights @ truth), np.argsort(cells, kind="stable")
    truth = truth[np.lexsort((-truth, cells))].astype(np.float64)
    weights, cells, chosen = weights[order], cells[order], truth != 0.0
    enough = observed - 1e-9 * max(1.0, abs(observed))
    rng = make_generator(seed, _PERMUTATION_STREAM_KEY)
    exceeded, done = 0, 0
    rows = max(1, min(_SUFFICIENT_EXCEEDANCES, _MAX_CHUNK_ENTRIES // truth.size))
    while done < _MAX_PERMUTATIONS:
        rows = min(rows, _MAX_PERMUTATIONS - done)
        places = np.argsort(cells + rng.random((rows, truth.size)), axis=1)[:, chosen]
        reached = np.cumsum(weights[places] @ truth[chosen] >= enough)
        if exceeded + reached[-1] >= _SUFFICIENT_EXCEEDANCES:
            last = int(np.searchsorted(reached, _SUFFICIENT_EXCEEDANCES - exceeded)) + 1
            return _SUFFICIENT_EXCEEDANCES / (done + last)
        exceeded, done = exceeded + int(reached[-1]), done + rows
    return (exceeded + 1) / (done + 1)


@dataclass(frozen=True)
class Truth:
    """True values of texts, and methods that measure how well an attacker infers these values.

    Args:
        truth: codes (0, 1, ...) of the true values, or true numbers, shape (n, attributes).
        target: the attributes that the attacker infers.
        measure: measure that the method `value` computes, "accuracy" or "f1".
        confidence: confidence of each interval separately.
        seed: seed of the bootstrap intervals.
    """

    truth: Any
    target: Target
    measure: str
    confidence: float
    seed: int

    def value(self, answers: Ints) -> float:
        """Compute the accuracy or F1 of predicted codes (`answers`), without an interval."""
        if self.measure == "accuracy":
            return float((answers == self.truth).mean())
        return float(self._f1_from_sums(np.asarray(self._cells(self.truth, answers).sum(axis=0))))

    @property
    def codes_or_ranks(self) -> Any:
        """True values as numbers in [0, 1], one per text, for measures of ranked scores.

        The numbers are the codes 0 and 1, or the ranks of the true numbers, scaled to [0, 1].
        """
        truth = self.truth[:, 0]
        return mid_rank_fractions(truth) if self.target.is_number else truth

    def auc(self, scores: Vectors) -> Measured:
        """Compute the area under the ROC curve of scores, with its confidence interval.

        Pairs of texts with equal scores count half. The interval is from Newcombe (2006), part 2,
        method 5.

        Args:
            scores: for each text, the score of the value with code 1, shape (n,).
        """
        inside, outside = self._delong_placements(scores)
        area, many = float(inside.mean()), (inside.size + outside.size) / 2.0 - 1.0
        quantile = NormalDist().inv_cdf(1.0 - self._interval_tail)

        def reaches(other: float) -> bool:
            spread = 1.0 + many * ((1.0 - other) / (2.0 - other) + other / (1.0 + other))
            variance = other * (1.0 - other) * spread / (inside.size * outside.size)
            return abs(area - other) <= quantile * math.sqrt(variance)

        low, high = (_bisect_limit(reaches, area, end) for end in (0.0, 1.0))
        return Measured(area, low, high, "Newcombe")

    def auc_gain(self, scores: Vectors, floor: Vectors) -> Measured:
        """Compute the AUC of `scores` minus the AUC of `floor`, with its interval.

        `floor` has the scores of a baseline for the same texts. The interval is from DeLong et al.
        (1988).
        """
        pairs = zip(self._delong_placements(scores), self._delong_placements(floor), strict=True)
        inside, outside = (own - other for own, other in pairs)
        gain = float(inside.mean())
        variance = sum(float(part.var()) / max(1, part.size - 1) for part in (inside, outside))
        reach = NormalDist().inv_cdf(1.0 - self._interval_tail) * math.sqrt(variance)
        return Measured(gain, max(-1.0, gain - reach), min(1.0, gain + reach), "DeLong")

    def _delong_placements(self, scores: Vectors) -> tuple[Vectors, Vectors]:
        """Return shares of negatives below each positive, and of positives above each negative."""
        none, some = (scores[self.truth[:, 0] == code] for code in (0, 1))
        return mid_rank_fractions(some, none), 1.0 - mid_rank_fractions(none, some)

    def find_rates(self, scores: Vectors, threshold: float) -> tuple[Measured, Measured]:
        """Compute the true-positive rate and the false-positive rate, with exact intervals.

        A text is predicted positive if its score is at or above `threshold`.
        """
        is_above = scores >= threshold
        hits, wrong = (self._share(is_above[self.truth[:, 0] == code]) for code in (1, 0))
        return hits, wrong

    def balanced_accuracy(self, answers: Ints) -> Measured:
        """Compute the balanced accuracy of predicted codes 0 and 1, with its interval.

        The balanced accuracy is the mean of two accuracies: on the texts with true code 0, and on
        the texts with true code 1. The interval is from Newcombe (1998).
        """
        right = answers[:, 0] == self.truth[:, 0]
        first, other = (self._share(right[self.truth[:, 0] == code]) for code in (0, 1))
        value = (first.value + other.value) / 2.0
        low = value - math.hypot(first.value - first.low, other.value - other.low) / 2.0
        high = value + math.hypot(first.high - first.value, other.high - other.value) / 2.0
        return Measured(value, max(0.0, low), min(1.0, high), "Newcombe")

    def _share(self, right: Any) -> Measured:
        return _measure_share(right, self.confidence)

    def accuracy(self, answers: Ints) -> Measured:
        """Compute the share of predicted codes (`answers`) that are correct, with its interval.

        If there are several attributes, the result is the mean of the shares of the attributes.
        """
        right = (answers == self.truth).sum(axis=1)
        if self.target.is_joint:
            width = len(self.target.names)
            return self._bootstrap_interval(
                right[:, np.newaxis], lambda sums: sums[..., 0] / width, True
            )
        return self._share(right)

    def f1(self, answers: Ints) -> Measured:
        """Compute F1 of predicted codes (`answers`), with a bootstrap interval.

        For one attribute with two values, the result is F1 of the value with code 1. For several
        attributes, the result is micro F1. For an attribute with more than two values, the result
        is macro F1.
        """
        return self._bootstrap_f1_interval([answers], self._f1_from_sums)

    def top(self, ranks: Ints) -> Measured:
        """Compute the share of texts whose true value has a rank from 1 to 5, with its interval.

        `ranks` has the rank of the true value of each text. Rank 1 is the best guess of the
        attacker.
        """
        return self._share(ranks <= TOP)

    def mean(self, values: Any) -> Measured:
        """Compute the mean of `values`, such as one error per text, with a bootstrap interval."""
        return self._bootstrap_interval(values[:, np.newaxis], lambda sums: sums[..., 0], True)

    def spearman(self, scores: Vectors) -> Measured:
        """Compute Spearman's correlation of predicted numbers with true numbers, with its interval.

        The result is 0 if all predicted numbers are equal. The interval is from Bonett and Wright
        (2000).

        Args:
            scores: predicted numbers, shape (n,).
        """
        ranks = [mid_rank_fractions(values) for values in (scores, self.truth[:, 0])]
        first, second = (values - values.mean() for values in ranks)
        scale = math.sqrt(float(first @ first) * float(second @ second))
        coefficient = float(first @ second) / scale if scale > 0.0 else 0.0
        # For three texts or fewer, the interval is the whole range.
        spread = math.sqrt((1.0 + coefficient**2 / 2.0) / max(1e-9, len(scores) - 3.0))
        reach = NormalDist().inv_cdf(1.0 - self._interval_tail) * spread
        middle = math.atanh(max(-_MAX_CORRELATION, min(_MAX_CORRELATION, coefficient)))
        low, high = (math.tanh(middle + sign * reach) for sign in (-1.0, 1.0))
        return Measured(
            coefficient, min(low, coefficient), max(high, coefficient), "Bonett and Wright"
        )

    def gain(self, answers: Ints, floor: Ints) -> Measured:
        """Compute the gain of `answers` over `floor` in accuracy or F1, on the same texts.

        `floor` has the predictions of a baseline that does not use the vectors of the texts. For
        accuracy, the interval is from a sign test. For F1, the interval is from a bootstrap, with
        the same samples of texts for both predictions.
        """
        if self.measure == "f1":
            return self._bootstrap_f1_interval(
                [answers, floor],
                lambda sums: np.subtract(
                    *(self._f1_from_sums(s) for s in np.split(sums, 2, axis=-1))
                ),
            )
        right, other = (own[:, 0] == self.truth[:, 0] for own in (answers, floor))
        return compare_shares(right, other, self._interval_tail)

    @property
    def _interval_tail(self) -> float:
        return (1.0 - self.confidence) / 2.0

    def _cells(self, truth: Ints, answers: Ints) -> Any:
        """Count true positives, false positives and false negatives, shape (n, 3 * groups).

        For micro F1, there is one group: the counts are sums over all attributes. For macro F1,
        there is one group per value, and the counts are a sparse matrix.
        """
        if self.target.all_binary:
            actual, predicted = truth == 1, answers == 1
            cells = np.stack([actual & predicted, ~actual & predicted, actual & ~predicted], axis=2)
            return cells.sum(axis=1).astype(np.int64)
        from scipy.sparse import csr_array

        actual, predicted = truth[:, 0], answers[:, 0]
        right = actual == predicted
        rows = np.concatenate([np.flatnonzero(right), np.repeat(np.flatnonzero(~right), 2)])
        wrong = np.stack([3 * predicted[~right] + 1, 3 * actual[~right] + 2], axis=1).ravel()
        columns = np.concatenate([3 * actual[right], wrong])
        # A code beyond the values belongs to no group, for example an intent with only one text.
        width = 3 * len(self.target.values[0])
        is_possible = columns < width
        ones, places = (
            np.ones(int(is_possible.sum()), np.int64),
            (rows[is_possible], columns[is_possible]),
        )
        return csr_array((ones, places), shape=(len(truth), width))

    def _f1_from_sums(self, sums: Any) -> Any:
        return _mean_f1(sums.reshape(*sums.shape[:-1], -1, 3))

    def _bootstrap_f1_interval(
        self, answers: Sequence[Ints], statistic: Callable[[Any], Any]
    ) -> Measured:
        """Compute a bootstrap interval for a statistic of the counts that `_cells` returns."""
        if self.target.all_binary:
            rows = np.hstack([self._cells(self.truth, predicted) for predicted in answers])
            return self._bootstrap_interval(rows, statistic)
        from scipy.sparse import hstack

        def expand(kinds: Ints) -> Any:
            truth = kinds[:, :1]
            cells = [self._cells(truth, predicted[:, np.newaxis]) for predicted in kinds.T[1:]]
            return hstack(cells, format="csr")

        return self._bootstrap_interval(np.hstack([self.truth, *answers]), statistic, expand=expand)

    def _bootstrap_interval(
        self, rows: Any, statistic: Callable[[Any], Any], mean: bool = False,
        expand: Callable[[Any], Any] | None = None
    ) -> Measured:  # fmt: skip
        """Compute a percentile bootstrap interval (Efron, 1979) of a statistic of sums of rows.

        `rows` has one row per text. If `mean` is True, the statistic is computed from means in
        place of sums. If `expand` is given, the interval is shifted by the statistic minus the mean
        of its bootstrap values. This corrects a bias of macro F1: bootstrap samples may lack texts
        of a rare value, and then macro F1 is lower.
        """
        kinds, times = np.unique(rows, axis=0, return_counts=True)
        kinds, size = expand(kinds) if expand else kinds, len(rows) if mean else 1
        # Drawing texts with replacement gives multinomial counts of the different rows.
        rng = make_generator(self.seed, _BOOTSTRAP_STREAM_KEY)
        value, replicates = float(statistic(times @ kinds / size)), list[Any]()
        step = max(1, _MAX_CHUNK_ENTRIES // max(kinds.shape))
        for start in range(0, _BOOTSTRAP_REPLICATES, step):
            count = min(step, _BOOTSTRAP_REPLICATES - start)
            drawn = rng.multinomial(len(rows), times / len(rows), size=count)
            replicates.append(statistic(drawn @ kinds / size))
        values = np.concatenate(replicates)
        low, high = np.quantile(values, [self._interval_tail, 1.0 - self._interval_tail])
        how = f"bootstrap of {_BOOTSTRAP_REPLICATES:,}"
        if expand is not None:
            shift, least = value - values.mean(), 0.0 if value >= 0.0 <= values.min() else -1.0
            low, high, how = max(least, low + shift), min(1.0, high + shift), f"centred {how}"
        return Measured(value, float(low), float(high), how)


def _bisect_limit(reaches: Callable[[float], bool], inside: float, outside: float) -> float:
    """Find the end of an interval by bisection between a value inside and a value outside."""
    if reaches(outside):
        return outside
    for _ in range(50):
        middle = (inside + outside) / 2.0
        inside, outside = (middle, outside) if reaches(middle) else (inside, middle)
    return inside


def _mean_f1(cells: Any) -> Any:
    """Compute the mean F1 over groups, from counts of shape (..., groups, 3).

    The counts are true positives, false positives and false negatives. Groups whose counts are all
    0 are left out.
    """
    doubled_hits, wrong = 2.0 * cells[..., 0], cells[..., 1] + cells[..., 2]
    whole = doubled_hits + wrong
    each = np.divide(doubled_hits, whole, out=np.zeros_like(doubled_hits), where=whole > 0)
    return each.sum(axis=-1) / np.maximum(1, (whole > 0).sum(axis=-1))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Group(Record, word="Group"):
    """Accuracy of an attacker on the test texts that have one value of an attribute.

    Attributes:
        attribute: name of the attribute.
        value: the value of the attribute.
        texts: number of test texts with this value.
        attack: share of the texts with this value for which the attacker infers the value
            correctly.
        main: share of the texts with this value for which the main label is predicted correctly.
            None if the corpus has no labels.
        gap: `main` minus the share of correctly predicted main labels among the test texts with
            other values. None if `main` is None, or if all test texts have this value.
    """

    attribute: str
    value: Any
    texts: int
    attack: Measured
    main: Measured | None
    gap: Measured | None


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MainTask(Record, word="MainTask"):
    """Accuracy of predicting the main labels (the labels of the corpus) from vectors of texts.

    Attributes:
        attacker: names of the classifier and the transform that predict the label. Two candidates
            are compared: the attacker that was chosen for the private attribute, and the first of
            all attackers. The candidate with the better accuracy on the validation texts is used.
        accuracy: share of test texts whose label is predicted correctly.
        majority: share of test texts with the label that is most frequent in the training texts.
        gain: `accuracy` minus `majority`, with its interval.
    """

    attacker: str
    accuracy: Measured
    majority: float
    gain: Measured

    @property
    def at_floor(self) -> bool:
        """True if `accuracy` is not significantly above `majority`.

        The value is True if the lower end of the interval of `gain` is at most 0.
        """
        return self.gain.low <= 0.0


def predict_main_labels(
    attackers: Sequence[Attacker],
    vectors: Sequence[Vectors],
    labels: Sequence[npt.NDArray[Any]] | None,
    confidence: float,
    seed: int,
) -> tuple[Flags | None, MainTask | None]:
    """Predict the main labels of the test texts, with the classifiers and transforms of attackers.

    One model per label separates this label from all other labels. The prediction is the label
    whose model gives the highest score.

    Args:
        attackers: attackers whose estimators and transforms are used. The first attacker is the one
            that was chosen for the private attribute.
        vectors: vectors of the texts, as three arrays for train, valid and test.
        labels: main labels, as three arrays for train, valid and test, or None if the texts have no
            main labels.
        confidence: confidence of each interval.
        seed: seed of the estimators.

    Returns:
        A pair. The first entry is a mask of the test texts whose label the first attacker predicts
        correctly. The second entry is the result of the attacker that is best on the validation
        texts. Both entries are None if `labels` is None, or if the training texts have fewer than
        two different labels.
    """
    if labels is None:
        return None, None
    classes, counts = np.unique(labels[0], return_counts=True)
    if len(classes) < 2:
        return None, None
    target = Target(tuple(map(str, classes)), ((0, 1),) * len(classes))
    truth = (labels[0][:, np.newaxis] == classes).astype(np.int64)
    models = [fit_attacker(attacker, vectors[0], truth, target, seed) for attacker in attackers]
    valid, test = (
        [classes[model.scores(vectors[part]).argmax(axis=1)] == labels[part] for model in models]
        for part in (1, 2)
    )
    best = int(np.argmax([right.mean() for right in valid]))
    majority = classes[counts.argmax()] == labels[2]
    gain = compare_shares(test[best], majority, (1.0 - confidence) / 2.0)
    share = _measure_share(test[best], confidence)
    return test[0], MainTask(str(attackers[best]), share, float(majority.mean()), gain)


def value_accuracies(
    target: Target, truth: Ints, answers: Ints, main: Flags | None, confidence: float
) -> tuple[Group, ...]:
    """Return, for each attribute value, the accuracy of an attacker on test texts with this value.

    For several attributes, the result has an entry only for the second (positive) value of each
    attribute.

    Args:
        target: the attributes that the attacker infers.
        truth: codes of the true values of the test texts, shape (n, attributes).
        answers: codes that the attacker predicts, shape (n, attributes).
        main: mask of the test texts whose main label is predicted correctly, or None without main
            labels.
        confidence: confidence of each interval separately.
    """
    groups = []
    for column, (name, values) in enumerate(zip(target.names, target.values, strict=True)):
        # A number has no values, so it has no groups.
        right = answers[:, column] == truth[:, column]
        for code, value in enumerate(values):
            here = truth[:, column] == code
            if not here.any() or (target.is_joint and code == 0):
                continue
            both = None if main is None or here.all() else (main[here], main[~here])
            groups.append(
                Group(
                    name, value, int(here.sum()), _measure_share(right[here], confidence),
                    None if main is None else _measure_share(main[here], confidence),
                    None if both is None else _measure_gap(*both, confidence),
                )
            )  # fmt: skip
    return tuple(groups)


def _measure_share(right: Flags, confidence: float) -> Measured:
    k, n = int(right.sum()), len(right)
    return Measured(k / n, *limits(k, n, (1.0 - confidence) / 2.0), "Clopper-Pearson")


def _measure_gap(first: Flags, second: Flags, confidence: float) -> Measured:
    """Compute the difference of two shares, with an interval from Newcombe (1998), method 10."""
    first_share, other = _measure_share(first, confidence), _measure_share(second, confidence)
    gap = first_share.value - other.value
    low = gap - math.hypot(first_share.value - first_share.low, other.high - other.value)
    high = gap + math.hypot(first_share.high - first_share.value, other.value - other.low)
    return Measured(gap, max(-1.0, low), min(1.0, high), "Newcombe")
