"""The record of an inference: the attacker that was chosen, and what he infers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...bounds import clopper_pearson
from ...errors import invalid, real
from ...hints import hinted
from ...mechanisms.texts import BatchCheck
from ...recorded.run import OutputsAudit
from ...records import Record, frozen_array
from ...results.evidence import numerator_first
from .groups import Group, MainTask
from .judging import Measured

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "NOT_MEASURED", "Floor", "Inference", "NumberFigures", "OfAttribute", "RankFigures",
    "ScoredTexts", "Scores",
]  # fmt: skip

NOT_MEASURED = Measured(np.nan, np.nan, np.nan, "not applicable: a number")
"""Accuracy and F1 of a number."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Floor(Record):
    """Inference without any encoding; learnt on train, evaluated on test.

    Attributes:
        name: "majority", or "majority given the main label"; of a number "median", ...
        accuracy: of the most frequent values; NaN of a number.
        f1: of the answers that make the best F1 on train; NaN of a number.
        gain: the attacker's measure less the floor's, on the same texts; of a measure of scores
            the gain in area under the ROC curve; of a number how much smaller his mean absolute
            error is.
        p_value: how often the truth, permuted among texts (authors, see `Inference.authors`) that
            the floor does not distinguish, gives as large a measure; None where the measure is
            accuracy or F1.
        level: the p-value up to which the floor counts as beaten.
        top: of more values than two, share of texts whose value is among the five most frequent;
            else None.
        mean_rank: mean rank of the true value by frequency, or None.
        error: mean absolute error of the median of a number, or None.
    """

    name: str
    accuracy: float
    f1: float
    gain: Measured
    p_value: float | None = None
    level: float = 0.025
    top: float | None = None
    mean_rank: float | None = None
    error: float | None = None

    @property
    def beaten(self) -> bool:
        """True where the p-value is at most its level, or the interval of `gain` lies above 0."""
        return self.gain.low > 0.0 if self.p_value is None else self.p_value <= self.level


@hinted
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Scores(Record):
    """Measures of how well scores separate the texts of an attribute of two values.

    Attributes:
        auc: area under the ROC curve.
        balanced_accuracy: mean of the shares of right answers of either value.
        found: share of the positive texts from the threshold at which 1 % of the negative texts
            of validation are found.
        wrong: share of the negative texts from that threshold.
        found_alone: share of the positive texts above all negative texts of validation.
        wrong_alone: share of the negative texts there.
    """

    auc: Measured
    balanced_accuracy: Measured
    found: Measured
    wrong: Measured
    found_alone: Measured
    wrong_alone: Measured


@hinted
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RankFigures(Record):
    """Ranks of the true value among all values, in the order of the attacker's scores.

    Of equal scores the value that is more frequent in train comes first. A value that train lacks
    can never be named: its texts are wrong, and their rank is the one after all known values.
    Top-1 is the accuracy.

    Attributes:
        top: share of texts whose value is among the first five.
        mean_rank: mean rank of the true value, from 1.
        known: number of values in train.
        unknown_texts: number of test texts whose value train lacks.
    """

    top: Measured
    mean_rank: Measured
    known: int
    unknown_texts: int


@hinted
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NumberFigures(Record):
    """Correlation and error of an inferred number, such as an age.

    Attributes:
        correlation: Spearman's rank correlation of the answers with the truth.
        error: mean absolute error.
    """

    correlation: Measured
    error: Measured


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OfAttribute(Record):
    """One attribute of several.

    Attributes:
        name: of the attribute.
        positive: the value that F1 is about.
        accuracy: of the attacker, with exact limits.
        f1: of the attacker.
        majority: accuracy of the majority.
    """

    name: str
    positive: Any
    accuracy: Measured
    f1: Measured
    majority: float


@hinted
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ScoredTexts(Record):
    """The test texts with the scores that the chosen attacker gave them.

    Attributes:
        rows: positions of the texts in the corpus, shape (n,).
        truth: positions of their values in `Inference.values`, shape (n, attributes).
        scores: scores of the positive value, shape (n, attributes); for an attribute of more than
            two values the positions that were answered.
        ranks: of more values than two, the rank of the true one, shape (n,); else None.

    Of a number, truth and scores are the numbers and those that were answered.
    """

    rows: npt.NDArray[np.int64]
    truth: npt.NDArray[Any]
    scores: npt.NDArray[np.float64]
    ranks: npt.NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        for name in ("rows", "truth", "scores", "ranks"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, frozen_array(getattr(self, name)))

    def split_by_truth(self) -> tuple[Any, Any]:
        """Return the sorted scores of the texts without and with the positive value.

        Raises:
            ValueError: if there is not exactly one attribute, of two values.
        """
        if self.scores.shape[1] != 1 or not set(np.unique(self.truth)) <= {0, 1}:
            need = "one attribute of two values for figures of its scores"
            raise invalid("attribute", need, f"{self.scores.shape[1]} attributes")
        return tuple(np.sort(self.scores[self.truth[:, 0] == code, 0]) for code in (0, 1))  # type: ignore[return-value]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Inference(Record):
    """Inference of one attacker, chosen on validation, from encoded test texts.

    An interval holds at `confidence` by itself, for this attacker and such texts. None of the
    figures bounds what another attacker infers.

    Attributes:
        attributes: names of what is inferred.
        values: those that each of them takes; of two the second is the positive one; of a number
            none.
        attacker: name of the classifier.
        transform: what it does to the rows first.
        threshold: of its score, chosen on validation; None for more values than two.
        measure: by which it was chosen and is judged: "auc", "true-positive rate", "balanced
            accuracy", "accuracy", "f1" or "correlation".
        accuracy: share of right answers; the mean over several attributes; NaN of a number.
        f1: of the positive value; micro over several attributes, macro over more values than two;
            NaN of a number.
        floors: what is inferred without any encoding.
        each: the attributes one by one where there are several.
        groups: test texts by the value of the attribute.
        figures: measures of the scores of one attribute of two values, or None.
        ranking: ranks of the true value of one attribute of more values, or None.
        number: measures of a number, or None.
        main: how well the main label is predicted, or None.
        certified: the audit whose `epsilon_lower` is certified, or why there is none.
        sizes: texts of train, valid and test that were used.
        left_out: how many texts were not used, by the reason.
        authors: number of groups (`Corpus.groups`), such as authors, of the test texts, which
            permutations keep together; None without groups, or where the attribute differs in one.
        batches: what the comparison of batches of texts found; None where vectors were given.
        tried: all attackers with their measure on validation, which says nothing about test.
        scored: the test texts and their scores.
        confidence: of each interval by itself.
        seed: repeats the training, the bootstrap and, where it is `seeded`, the encoder's noise.
        seeded: True if the encoder has an argument `rng` and was given generators of this seed.
        seconds: time taken; not compared.
    """

    attributes: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]
    attacker: str
    transform: str
    threshold: float | None
    measure: str
    accuracy: Measured
    f1: Measured
    floors: tuple[Floor, ...]
    each: tuple[OfAttribute, ...]
    groups: tuple[Group, ...]
    figures: Scores | None
    ranking: RankFigures | None
    number: NumberFigures | None
    main: MainTask | None
    certified: OutputsAudit | str
    sizes: tuple[int, int, int]
    left_out: dict[str, int]
    authors: int | None
    batches: BatchCheck | None
    tried: tuple[tuple[str, float], ...]
    scored: ScoredTexts
    confidence: float
    seed: int
    seeded: bool
    seconds: float = field(compare=False, default=0.0)

    @property
    def certified_leak(self) -> bool:
        """True where the counts of the certified audit show a leak at half the error.

        The other half is that of the floors' test, so that one of both is wrong as rarely as
        `confidence` says.
        """
        audit = self.certified
        if isinstance(audit, str) or audit.doubts or audit.counts is None:
            return False
        counts = numerator_first(audit.counts, audit.direction)
        return clopper_pearson(counts, 0.0, (1.0 + self.confidence) / 2.0) > 0.0

    @property
    def main_at_floor(self) -> bool:
        """True where the vectors are not shown to carry the main label either.

        An attack that fails on such vectors is no evidence of privacy.
        """
        return self.main is not None and self.main.at_floor

    @property
    def above_floor(self) -> bool:
        """True where every floor is beaten.

        The majority also counts as beaten where the certified audit shows a leak; what the main
        label gives away is no part of that floor, so that it is beaten by the attacker alone.
        """
        return not self.floors_left

    @property
    def floors_left(self) -> tuple[str, ...]:
        """Names of the floors that were not shown to be beaten."""
        leak = self.certified_leak
        return tuple(
            floor.name for row, floor in enumerate(self.floors)
            if not floor.beaten and not (leak and row == 0)
        )  # fmt: skip

    @property
    def empirical_privacy(self) -> float:
        """1 - X, with X the accuracy: what is reported in the literature; no guarantee."""
        return 1.0 - self.accuracy.value

    @property
    def empirical_privacy_f1(self) -> float:
        """1 - F, with F the F1; no guarantee."""
        return 1.0 - self.f1.value

    @property
    def auc(self) -> float:
        """The area under the ROC curve of the test scores, ties counted half.

        Raises:
            ValueError: if there is not exactly one attribute, of two values.
        """
        negative, positive = self.scored.split_by_truth()
        below = np.searchsorted(negative, positive, side="left")
        ties = np.searchsorted(negative, positive, side="right") - below
        return float((below + 0.5 * ties).sum() / (len(negative) * len(positive)))

    def true_positive_rate(self, false_positive_rate: float = 0.05) -> float:
        """Return the share of the positive test texts that a strict threshold finds.

        The threshold is the lowest score at which at most this share of the negative test texts
        is found, too. It is chosen on the test texts, so that the figure is slightly optimistic.

        Args:
            false_positive_rate: largest share of the negative texts, in [0, 1].

        Raises:
            TypeError: if it is not a number.
            ValueError: if it is out of range, or there is not exactly one attribute, of two values.
        """
        rate = real("false_positive_rate", false_positive_rate, low=0.0, high=1.0)
        negative, positive = self.scored.split_by_truth()
        allowed = int(rate * len(negative))
        if allowed == len(negative):
            return 1.0
        return float((positive > negative[len(negative) - 1 - allowed]).mean())

    def __repr__(self) -> str:
        """Return one line: the attributes, how well they were inferred, and the seed."""
        found = f"accuracy {self.accuracy}, F1 {self.f1}"
        if self.number is not None:
            found = f"correlation {self.number.correlation}, error {self.number.error}"
        return f"<Inference of {', '.join(self.attributes)}: {found}, seed={self.seed}>"

    def __str__(self) -> str:
        """Return the report as text."""
        from .showing import text

        return text(self)

    def lines(self) -> list[tuple[str, str]]:
        """Return the report as (label, text) rows."""
        from .showing import rows

        return rows(self)

    def _repr_html_(self) -> str:
        from .showing import html

        return html(self)

    def plot(self, ax: Any = None) -> Figure:
        """Plot accuracy and F1, or correlation, with intervals and floors, in the current style.

        Args:
            ax: matplotlib axes to draw on; None makes a figure of pyplot, for `plt.show()`.

        Returns:
            The matplotlib figure.

        Raises:
            TypeError: if `ax` is no axes.
        """
        from .showing import figure

        return figure(self, ax)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data: the seed as a string, non-finite numbers as words."""
        from .showing import plain

        return plain(self)

    def to_json(self, *, indent: int | None = None) -> str:
        """Return `to_dict` as strict JSON."""
        from .showing import json_text

        return json_text(self, indent)
