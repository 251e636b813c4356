"""Attacks that score candidate texts, to find the original text of a mechanism's output."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .. import errors
from ..bounds import limits
from ..records import Floats, Ints, Record
from ..suggestions import explain_argument_errors

_MAX_SCORES: Final = 2**23
"""Largest number of scores in memory, 8 bytes each."""

Score = Callable[[Ints], Floats]
"""Function from the row numbers of outputs to an array of scores. The array has a row for each
output, and a column for each different candidate."""


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LinkedOutputs(Record, word="LinkedOutputs"):
    """Result of an attacker who searches for the original text of each output of a mechanism.

    The candidates are the texts that may be the original text. The attacker ranks the candidates by
    a score, and names the candidate with the highest score. The original text is also called the
    true document.

    Args:
        by: name of the score that ranks the candidates.
        floor: share of correct answers of an attacker who always names the most frequent candidate.
        ranks: for each output, the rank of the true document among the different candidates, shape
            `(n,)`. Rank 1 has the highest score. Candidates with equal scores have the mean of
            their ranks. The rank is NaN if the true document is not a candidate.
        shares: for each output, the probability that the attacker names the true document, shape
            `(n,)`. If several candidates have the highest score, the attacker draws one of them.
            The probability is 0 if the score of the true document is -inf.
        guesses: for each output, the row number of a candidate with the highest score, shape
            `(n,)`.
        confidence: confidence of the interval of the share of correct answers.

    Raises:
        ValueError: if the arrays have different shapes, or a number is out of range.

    Example:
        >>> linked = LinkedOutputs("words", 0.25, [1.0, 3.5], [1.0, 0.0], [2, 0], 0.95)
        >>> print(linked)
        1 of 2 by words: 0.500 [0.013, 0.987], floor 0.250; median rank 2.25
    """

    by: str
    floor: float
    ranks: Floats
    shares: Floats
    guesses: Ints
    confidence: float

    def __post_init__(self) -> None:
        """Check the fields."""
        errors.instance("by", self.by, str)
        errors.real("floor", self.floor, low=0.0, high=1.0)
        errors.confidence_level(self.confidence)
        shape = np.shape(self.ranks)
        if len(shape) != 1 or not shape[0]:
            raise errors.invalid("ranks", "of shape (n,), one for each output", shape)
        for name in ("ranks", "shares", "guesses"):
            dtype = np.int64 if name == "guesses" else np.float64
            array = np.array(errors.numeric(name, "numbers", getattr(self, name)), dtype)
            if array.shape != shape:
                raise errors.invalid(name, f"of shape {shape}", array.shape)
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if not ((self.shares >= 0.0) & (self.shares <= 1.0)).all():
            raise errors.invalid("shares", "in [0, 1]", self.shares)

    @property
    def texts(self) -> int:
        """Number of outputs that were attacked."""
        return len(self.ranks)

    @property
    def right(self) -> int:
        """Number of outputs whose original text the attacker finds (rounded sum of `shares`).

        `shares` has, for each output, the probability that the attacker names the original text.
        """
        return round(float(self.shares.sum()))

    @property
    def share(self) -> float:
        """Share of the outputs for which the attacker names the original text."""
        return self.right / self.texts

    @property
    def interval(self) -> tuple[float, float]:
        """Confidence interval of `share`, the share of outputs for which the attacker is right."""
        has_parts = bool(((self.shares > 0.0) & (self.shares < 1.0)).any())
        return share_interval(float(self.shares.sum()), self.texts, self.confidence, has_parts)

    @property
    def is_above_floor(self) -> bool:
        """True if the interval of `share` lies above `floor`.

        The floor is the share of correct answers of an attacker who always names the most frequent
        candidate.
        """
        return self.interval[0] > self.floor

    @property
    def median_rank(self) -> float:
        """Median rank of the original text, over all outputs. Rank 1 is the best rank.

        Outputs with rank NaN are left out. The median is NaN if all ranks are NaN.
        """
        ranks = self.ranks[~np.isnan(self.ranks)]
        return float(np.median(ranks)) if ranks.size else np.nan

    def __str__(self) -> str:
        """Return one line with the share, its interval and the median rank."""
        low, high = self.interval
        share = f"{self.share:.3f} [{low:.3f}, {high:.3f}], floor {self.floor:.3f}"
        rank = f"median rank {self.median_rank:,g}"
        return f"{self.right:,} of {self.texts:,} by {self.by}: {share}; {rank}"


def share_interval(
    right: float, outputs: int, confidence: float, has_parts: bool = False
) -> tuple[float, float]:
    """Compute a confidence interval of the share of outputs whose original text an attacker finds.

    If each answer of the attacker is simply right or wrong, the result is the interval of Clopper
    and Pearson. If several candidates have the highest score, the attacker draws one of them. Then
    `right` is a sum of independent numbers in [0, 1]. The probability that such a sum reaches a
    given whole number is at most e = 2.718... times the probability for a binomial variable with
    the same mean. Therefore the function rounds the sum down for the lower end and up for the upper
    end, and divides the error probability of each end by e.

    Args:
        right: sum, over all outputs, of the probabilities that the attacker names the original
            text.
        outputs: number of outputs.
        confidence: coverage of the interval.
        has_parts: True if at least one of these probabilities is neither 0 nor 1.

    Source:
        Bentkus (2004), On Hoeffding's inequalities.

    Example:
        >>> [round(end, 3) for end in share_interval(5, 10, 0.95)]
        [0.187, 0.813]
        >>> [round(end, 3) for end in share_interval(4.5, 10, 0.95, has_parts=True)]
        [0.091, 0.852]
    """
    tail = (1.0 - confidence) / 2.0 / (math.e if has_parts else 1.0)
    # Sums of ties, such as three thirds, are rounded before they are cut.
    total = round(right, 9)
    ends = math.floor(total), math.ceil(total)
    (low, _), (_, high) = (limits(end, outputs, tail) for end in ends)
    return low, high


def list_first_rows(keys: Sequence[Hashable]) -> tuple[list[int], Ints]:
    """Return where each different key first occurs, and the number of the key at each position.

    The different keys are numbered from 0, in the order in which they first occur. The result is a
    pair. The first entry has, for each number, the position in `keys` where its key first occurs.
    The second entry has, for each position in `keys`, the number of the key at this position.
    """
    numbers: dict[Hashable, int] = {}
    groups = [numbers.setdefault(key, len(numbers)) for key in keys]
    firsts = dict[int, int]()
    for row, group in enumerate(groups):
        firsts.setdefault(group, row)
    return list(firsts.values()), np.array(groups, np.int64)


def rank_truth(
    keys: Sequence[Hashable], truth: Ints, score: Score, by: str, confidence: float
) -> LinkedOutputs:
    """Rank the true original of each output among all candidates, by the scores of an attacker.

    The candidates are the texts that may be the original.

    Args:
        keys: a hashable key for each candidate. Candidates with equal keys count as one candidate.
        truth: for each output, the row number of its original among the candidates, or -1 if the
            original is not a candidate.
        score: function from row numbers of outputs to an array of scores, shape
            `(outputs, different keys)`. The columns are the different keys, in the order in which
            they first occur in `keys`. The highest score has rank 1. A candidate with score -inf is
            excluded.
        by: name of the score.
        confidence: confidence of the interval of the share of outputs whose original is found.

    Raises:
        ValueError: if a score is NaN, or the array of scores has a wrong shape.
    """
    firsts, groups = list_first_rows(keys)
    copies = np.bincount(groups)
    own = np.where(truth < 0, -1, groups[truth])
    ranks, shares = np.full(len(truth), np.nan), np.zeros(len(truth))
    guesses = np.zeros(len(truth), np.int64)
    step = max(1, _MAX_SCORES // len(firsts))
    for start in range(0, len(truth), step):
        rows = np.arange(start, min(start + step, len(truth)))
        scores = np.asarray(score(rows), np.float64)
        if scores.shape != (len(rows), len(firsts)):
            raise errors.invalid("scores", f"of shape {(len(rows), len(firsts))}", scores.shape)
        if np.isnan(scores).any():
            raise errors.invalid("scores", "numbers, none of them NaN", "NaN")
        guesses[rows] = np.array(firsts)[scores.argmax(axis=1)]
        present = own[rows] >= 0
        rows, scores = rows[present], scores[present]
        true_scores = scores[np.arange(len(rows)), own[rows]][:, np.newaxis]
        n_better = (scores > true_scores).sum(axis=1)
        ties = scores == true_scores
        ranks[rows] = n_better + (ties.sum(axis=1) + 1.0) / 2.0
        is_first = (n_better == 0) & (true_scores[:, 0] > -np.inf)
        shares[rows] = np.where(is_first, copies[own[rows]] / (ties @ copies), 0.0)
    floor = float(copies.max() / len(keys))
    return LinkedOutputs(by, floor, ranks, shares, guesses, confidence)


def read_truth(truth: Any, outputs: int, candidates: int) -> Ints:
    """Check the row number of each output's original among the candidates, and return the numbers.

    If `truth` is None, candidate i is the original of output i.

    Raises:
        TypeError: if the row numbers are not whole numbers.
        ValueError: if there is not one number per output, or a number is neither -1 nor the row
            number of a candidate.
    """
    if truth is None:
        if outputs != candidates:
            requirement = f"one for each of {candidates:,} candidates (truth= names their rows)"
            raise errors.invalid("outputs", requirement, outputs)
        return np.arange(outputs)
    requirement = f"the row of a candidate, below {candidates:,}, or -1, for each output"
    rows: npt.NDArray[Any] = errors.numeric("truth", requirement, truth)
    if rows.dtype.kind not in "iu":
        raise errors.mistyped("truth", requirement, truth)
    if rows.shape != (outputs,) or rows.min() < -1 or rows.max() >= candidates:
        raise errors.invalid("truth", requirement, truth)
    return rows.astype(np.int64)
