"""Results of an inference: one class for each kind of attribute, with measures and report rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from ...records import Record
from ...report.rows import Row
from ...suggestions import suggest_arguments
from .metrics import TOP, Measured

_NOT_MEASURED: Final = Measured(np.nan, np.nan, np.nan, "not applicable: a number")
Bar = tuple[str, Measured, list[float]]
"""Bar of a chart: its name, its figure, and the figure of each floor."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Floor(Record, word="Floor"):
    """Baseline: the best inference that does not use the vectors.

    A baseline learns from the attribute values of train, and is evaluated on test.

    Attributes:
        name: "majority" (the most frequent value) or "majority given the main label" (the most
            frequent value among texts with the same main label). If the attribute is a number:
            "median" or "median given the main label".
        accuracy: accuracy of the baseline on test; NaN if the attribute is a number.
        f1: F1 on test of the answers that have the best F1 on train; NaN if the attribute is a
            number.
        gain: advantage of the attacker over the baseline on the same test texts, with its interval.
            If the measure is "accuracy" or "f1", `gain` is the difference of this measure. If the
            measure is "auc", "true-positive rate" or "balanced accuracy", `gain` is the difference
            of the areas under the ROC curve. If the attribute is a number, `gain` is the mean
            absolute error of the baseline minus the mean absolute error of the attacker.
        p_value: p-value of the attacker's measure by permutations of the true values. The
            permutations exchange true values between texts (or authors) to which the baseline gives
            the same answer. None if the measure is "accuracy" or "f1".
        level: largest p-value at which the attacker counts as better than the baseline.
        top: share of test texts whose true value is among the five most frequent values of train.
            None if the attribute does not have more than two values.
        mean_rank: mean rank of the true value, if values are ranked by their frequency in train.
            None if the attribute does not have more than two values.
        error: mean absolute error of the median. None if the attribute is not a number.
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
        """True if the attacker is better than this baseline, with significance.

        The p-value must be at most `level`. If `p_value` is None, the interval of `gain` must be
        above 0.
        """
        return self.gain.low > 0.0 if self.p_value is None else self.p_value <= self.level


@suggest_arguments
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OfMeasure(Record, word="OfMeasure"):
    """Result for one of three measures: an attacker is chosen on validation and tested once.

    Attributes:
        measure: "auc", "true-positive rate" or "balanced accuracy".
        attacker: name of the classifier that is best by this measure on validation.
        transform: name of the transform of the vectors that this classifier reads.
        threshold: threshold of the score, chosen on validation. The measure "auc" does not use the
            threshold.
        figure: the measure on the test texts, with its interval.
        floors: the baselines, which do not use the vectors, with p-values of this measure.
    """

    measure: str
    attacker: str
    transform: str
    threshold: float
    figure: Measured
    floors: tuple[Floor, ...]


@suggest_arguments
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Scores(Record, word="Scores"):
    """Measures of how well the attacker's scores separate the two values of an attribute.

    Attributes:
        auc: area under the ROC curve.
        balanced_accuracy: mean of the accuracies on the texts with each value.
        found: true-positive rate at the threshold that has at most 1 % false positives on
            validation.
        wrong: false-positive rate on test at the threshold of `found`.
        found_alone: share of the positive texts whose scores are above the scores of all negative
            validation texts.
        wrong_alone: share of the negative texts whose scores are above the scores of all negative
            validation texts.
    """

    auc: Measured
    balanced_accuracy: Measured
    found: Measured
    wrong: Measured
    found_alone: Measured
    wrong_alone: Measured


@suggest_arguments
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RankFigures(Record, word="RankFigures"):
    """Ranks of the true value among all values of an attribute, by the attacker's scores.

    Rank 1 has the highest score. If scores are equal, the value that is more frequent in train
    comes first. The attacker cannot predict a value that does not occur in train. A text with such
    a value counts as wrong, and its rank is 1 + `known`.

    Attributes:
        top: share of test texts whose true value has a rank from 1 to 5.
        mean_rank: mean rank of the true value over the test texts.
        known: number of different values in train.
        unknown_texts: number of test texts with a value that does not occur in train.
    """

    top: Measured
    mean_rank: Measured
    known: int
    unknown_texts: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OfAttribute(Record, word="OfAttribute"):
    """Measures for one attribute, if several attributes are inferred together.

    Attributes:
        name: name of the attribute.
        positive: the value for which F1 is computed.
        accuracy: accuracy of the attacker, with an exact interval.
        f1: F1 of the attacker.
        majority: accuracy on test if the answer is always the most frequent value of train.
    """

    name: str
    positive: Any
    accuracy: Measured
    f1: Measured
    majority: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ValueFigures(Record):
    """Base class of results for attributes that are not numbers.

    Attributes:
        accuracy: share of correct answers. For several attributes, it is the mean of their shares.
        f1: F1 of the positive value. For several attributes, it is micro F1. For more than two
            values, it is macro F1.
    """

    accuracy: Measured
    f1: Measured

    @property
    def summary(self) -> str:
        """Accuracy and F1 in one line."""
        return f"accuracy {self.accuracy}, F1 {self.f1}"

    @property
    def score(self) -> tuple[str, Measured]:
        """Name and value of the measure that tables show."""
        return "accuracy", self.accuracy

    def list_shares(self, f1_kind: str) -> list[Row]:
        """Return accuracy and F1 as rows of a report; `f1_kind` describes F1, such as "micro"."""
        return [
            ("accuracy", f"{self.accuracy} ({self.accuracy.how})"),
            ("F1", f"{self.f1} ({self.f1.how}; {f1_kind})"),
        ]

    def describe_floor(self, floor: Floor, measure: str) -> tuple[str, str]:
        """Return the measures of a baseline as text, and the name of the measure in its gain."""
        by = "F1" if measure == "f1" else "accuracy" if floor.p_value is None else "AUC"
        return f"accuracy {floor.accuracy:.4f}, best F1 {floor.f1:.4f}", by

    def list_bars(self, floors: Sequence[Floor]) -> list[Bar]:
        """Return the bars of a chart, one for each measure."""
        return [
            ("accuracy", self.accuracy, [floor.accuracy for floor in floors]),
            ("F1", self.f1, [floor.f1 for floor in floors]),
        ]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TwoValues(ValueFigures, word="TwoValues"):
    """Result for one attribute of two values.

    Attributes:
        threshold: threshold of the score, chosen on validation.
        figures: measures of how well the scores separate the two values.
        measures: results for three measures: the area under the ROC curve, the true-positive rate
            and the balanced accuracy. Each measure has its own attacker and is tested at a third of
            the significance level. The tuple is empty if the user chose one measure.
    """

    threshold: float
    figures: Scores
    measures: tuple[OfMeasure, ...]

    @property
    def score(self) -> tuple[str, Measured]:
        """Name and value of the measure that tables show: the area under the ROC curve."""
        return "AUC", self.figures.auc

    def list_rows(self, names: Sequence[str], values: Sequence[Any]) -> list[Row]:
        """Return the measures as rows of a report."""
        figures = self.figures
        lines = [
            f"AUC {figures.auc} ({figures.auc.how}), balanced accuracy {figures.balanced_accuracy}",
            f"true-positive rate {figures.found}, false-positive rate {figures.wrong}, at the "
            "threshold with 1 % false positives on validation",
            f"true-positive rate {figures.found_alone}, false-positive rate "
            f"{figures.wrong_alone}, at the threshold with none on validation",
        ]
        rows = [("scores", line) for line in lines]
        return [*rows, *self.list_shares(f"of {names[0]} = {values[0][1]}")]

    def list_bars(self, floors: Sequence[Floor]) -> list[Bar]:
        """Return the bars of a chart, one for each measure."""
        return [*ValueFigures.list_bars(self, floors), ("AUC", self.figures.auc, [0.5])]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ManyValues(ValueFigures, word="ManyValues"):
    """Result for one attribute of more than two values.

    Attributes:
        ranking: ranks of the true value, if values are ordered by the attacker's scores.
    """

    ranking: RankFigures

    def list_rows(self, names: Sequence[str], values: Sequence[Any]) -> list[Row]:
        """Return the measures as rows of a report."""
        ranking = self.ranking
        top = f"top-1 is the accuracy, top-{TOP} {ranking.top} ({ranking.top.how})"
        rank = f"mean rank {ranking.mean_rank} of {ranking.known:,} ({ranking.mean_rank.how})"
        shares = self.list_shares(f"macro over {len(values[0])} values")
        return [*shares, ("ranks", f"of the true value: {top}, {rank}")]

    def describe_floor(self, floor: Floor, measure: str) -> tuple[str, str]:
        """Return the measures of a baseline as text, and the name of the measure in its gain."""
        figures, by = ValueFigures.describe_floor(self, floor, measure)
        return f"{figures}, top-{TOP} {floor.top:.4f}, mean rank {floor.mean_rank:.4f}", by

    def list_bars(self, floors: Sequence[Floor]) -> list[Bar]:
        """Return the bars of a chart, one for each measure."""
        top = [floor.top or 0.0 for floor in floors]
        return [*ValueFigures.list_bars(self, floors), (f"top-{TOP}", self.ranking.top, top)]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SeveralAttributes(ValueFigures, word="SeveralAttributes"):
    """Result for several attributes of two values each.

    Attributes:
        threshold: threshold of the scores, chosen on validation.
        each: measures for each attribute separately.
    """

    threshold: float
    each: tuple[OfAttribute, ...]

    def list_rows(self, names: Sequence[str], values: Sequence[Any]) -> list[Row]:
        """Return accuracy and F1 over all attributes as rows of a report."""
        return self.list_shares("micro over all attributes")

    def list_bars(self, floors: Sequence[Floor]) -> list[Bar]:
        """Return the bars of a chart, one for each measure."""
        each = [
            (f"accuracy, {figures.name}", figures.accuracy, [figures.majority])
            for figures in self.each
        ]
        return [*ValueFigures.list_bars(self, floors), *each]


@suggest_arguments
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NumberFigures(Record, word="NumberFigures"):
    """Result for an attribute that is a number, such as an age.

    The attributes `accuracy` and `f1` are NaN.

    Attributes:
        correlation: Spearman's rank correlation of the predicted and the true numbers.
        error: mean absolute error of the predicted numbers.
    """

    correlation: Measured
    error: Measured
    accuracy: ClassVar[Measured] = _NOT_MEASURED
    f1: ClassVar[Measured] = _NOT_MEASURED

    @property
    def summary(self) -> str:
        """Correlation and error in one line."""
        return f"correlation {self.correlation}, error {self.error}"

    @property
    def score(self) -> tuple[str, Measured]:
        """Name and value of the measure that tables show: Spearman's correlation."""
        return "correlation", self.correlation

    def list_rows(self, names: Sequence[str], values: Sequence[Any]) -> list[Row]:
        """Return correlation and error as rows of a report."""
        correlation = f"Spearman's {self.correlation} ({self.correlation.how})"
        error = f"mean absolute {self.error} ({self.error.how})"
        return [("correlation", correlation), ("error", error)]

    def describe_floor(self, floor: Floor, measure: str) -> tuple[str, str]:
        """Return the measures of a baseline as text, and the name of the measure in its gain."""
        return f"mean absolute error {floor.error:.4f}", "error"

    def list_bars(self, floors: Sequence[Floor]) -> list[Bar]:
        """Return the bars of a chart, one for each measure."""
        return [("Spearman's correlation", self.correlation, [0.0])]


Outcome = TwoValues | ManyValues | SeveralAttributes | NumberFigures
