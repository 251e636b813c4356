"""Results of an attack that infers an attribute: one class for each kind of attribute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from ...records import Record
from ...report.rows import Row
from ...suggestions import explain_argument_errors
from .metrics import TOP, Measured

_NOT_MEASURED: Final = Measured(np.nan, np.nan, np.nan, "not applicable: a number")
Bar = tuple[str, Measured, list[float]]
"""Bar of a chart: its name, its measured value, and the value of each baseline."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Floor(Record, word="Floor"):
    """Result of a baseline: the best inference of an attribute without the vectors of the texts.

    The baseline learns from the attribute values of the training texts. The answers of the baseline
    are evaluated on the test texts.

    Attributes:
        name: "majority" (the most frequent value) or "majority given the main label" (the most
            frequent value among texts with the same main label). If the attribute is a number:
            "median" or "median given the main label".
        accuracy: accuracy of the baseline on the test texts; NaN if the attribute is a number.
        f1: F1 of the baseline on the test texts; NaN if the attribute is a number. For attributes
            with two values, the answers are the ones with the best F1 on the training texts.
        gain: advantage of the attacker over the baseline on the test texts, with its interval. If
            the attacker is chosen by "accuracy" or "f1", `gain` is the accuracy or F1 of the
            attacker minus the accuracy or F1 of the baseline. If the attacker is chosen by "auc",
            "true-positive rate" or "balanced accuracy", `gain` is a difference of areas under the
            ROC curve. If the attribute is a number, `gain` is the mean absolute error of the
            baseline minus the mean absolute error of the attacker.
        p_value: p-value from permutations of the true values. The hypothesis is that the attacker's
            scores give no more information than the baseline. A permutation exchanges true values
            only between texts (or authors) for which the baseline has the same answer. None if the
            attacker is chosen by "accuracy" or "f1".
        level: largest p-value at which the attacker counts as better than the baseline.
        top: share of test texts whose true value is among the five most frequent values of the
            training texts. None if the attribute does not have more than two values.
        mean_rank: mean rank of the true values of the test texts. Rank 1 is the most frequent value
            of the training texts. None if the attribute does not have more than two values.
        error: mean absolute error of the median as a prediction. None if the attribute is not a
            number.
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
        """True if the attacker is significantly better than this baseline.

        If `p_value` is a number, it must be at most `level`. If `p_value` is None, the whole
        interval of `gain` must be above 0.
        """
        return self.gain.low > 0.0 if self.p_value is None else self.p_value <= self.level


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OfMeasure(Record, word="OfMeasure"):
    """Result of the attacker that was chosen by one measure of its scores.

    The attacker was chosen on the validation texts and tested once on the test texts.

    Attributes:
        measure: "auc", "true-positive rate" or "balanced accuracy".
        attacker: name of the classifier of the attacker.
        transform: name of the transform of the vectors before the classifier.
        threshold: threshold of the scores, chosen on the validation texts. The measure "auc" does
            not use the threshold.
        figure: value of the measure on the test texts, with the confidence interval.
        floors: baselines that do not use the vectors, with p-values of this measure.
    """

    measure: str
    attacker: str
    transform: str
    threshold: float
    figure: Measured
    floors: tuple[Floor, ...]


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Scores(Record, word="Scores"):
    """Measures of how well an attacker's scores separate the two values of an attribute.

    One value is called positive and the other value negative. All measures are for the test texts.

    Attributes:
        auc: area under the ROC curve.
        balanced_accuracy: mean of two accuracies: on positive texts and on negative texts.
        found: true-positive rate at the lowest threshold with at most 1 % false positives on the
            validation texts.
        wrong: false-positive rate at the same threshold as `found`.
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


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RankFigures(Record, word="RankFigures"):
    """Ranks of the true values of test texts among all attribute values, by an attacker's scores.

    Rank 1 is the value with the highest score. If two scores are equal, the value that is more
    frequent in the training texts comes first. The attacker cannot predict a value that does not
    occur in the training texts. If a test text has such a value, the answer counts as wrong, and
    the rank is 1 + `known`.

    Attributes:
        top: share of test texts whose true value has a rank from 1 to 5.
        mean_rank: mean rank of the true value over the test texts.
        known: number of different values in the training texts.
        unknown_texts: number of test texts whose value does not occur in the training texts.
    """

    top: Measured
    mean_rank: Measured
    known: int
    unknown_texts: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OfAttribute(Record, word="OfAttribute"):
    """Measures for one of several attributes that an attacker infers together.

    Attributes:
        name: name of the attribute.
        positive: the value of the attribute for which F1 is computed.
        accuracy: accuracy of the attacker for this attribute, with an exact interval.
        f1: F1 of the attacker for this attribute.
        majority: accuracy on the test texts if the answer is always the most frequent value of the
            training texts.
    """

    name: str
    positive: Any
    accuracy: Measured
    f1: Measured
    majority: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ValueFigures(Record):
    """Base class of results of an attack on an attribute that is not a number.

    Attributes:
        accuracy: share of correct answers. If there are several attributes, each attribute has such
            a share, and the accuracy is the mean of these shares.
        f1: F1 of the positive value. For several attributes, it is micro F1. For an attribute with
            more than two values, it is macro F1.
    """

    accuracy: Measured
    f1: Measured

    @property
    def summary(self) -> str:
        """Accuracy and F1 of this result as one line of text."""
        return f"accuracy {self.accuracy}, F1 {self.f1}"

    @property
    def score(self) -> tuple[str, Measured]:
        """Pair that tables show: the name "accuracy", and the measured accuracy."""
        return "accuracy", self.accuracy

    def list_accuracy_and_f1(self, f1_kind: str) -> list[Row]:
        """Return two rows of a report, with the accuracy and F1 of this result.

        `f1_kind` is a text that describes F1, such as "micro over all attributes".
        """
        return [
            ("accuracy", f"{self.accuracy} ({self.accuracy.how})"),
            ("F1", f"{self.f1} ({self.f1.how}; {f1_kind})"),
        ]

    def describe_floor(self, floor: Floor, measure: str) -> tuple[str, str]:
        """Return two strings for a report: the results of a baseline, and the name of a measure.

        A baseline is a guess that does not use the vectors of the texts. The second string is
        "AUC", "accuracy" or "F1": `floor.gain` is the gain of the attacker over the baseline in
        this measure. The argument `measure` is the measure by which the attacker was chosen.
        """
        by = "F1" if measure == "f1" else "accuracy" if floor.p_value is None else "AUC"
        return f"accuracy {floor.accuracy:.4f}, best F1 {floor.f1:.4f}", by

    def list_bars(self, floors: Sequence[Floor]) -> list[Bar]:
        """Return the bars of a chart of this result: one for accuracy and one for F1.

        Each bar has a name, a measured value, and the values of the baselines in `floors`.
        """
        return [
            ("accuracy", self.accuracy, [floor.accuracy for floor in floors]),
            ("F1", self.f1, [floor.f1 for floor in floors]),
        ]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TwoValues(ValueFigures, word="TwoValues"):
    """Result of an attack on one attribute with two values.

    Attributes:
        threshold: threshold of the scores, chosen on the validation texts.
        figures: measures of how well the scores separate the two values.
        measures: results for three measures: the area under the ROC curve, the true-positive rate
            and the balanced accuracy. For each measure, one attacker is chosen, and tested at a
            third of the significance level. The tuple is empty if the user chose one measure.
    """

    threshold: float
    figures: Scores
    measures: tuple[OfMeasure, ...]

    @property
    def score(self) -> tuple[str, Measured]:
        """Pair that tables show: the name "AUC", and the measured AUC."""
        return "AUC", self.figures.auc

    def list_rows(self, names: Sequence[str], values: Sequence[Any]) -> list[Row]:
        """Return the measures of this result as rows of a report."""
        figures = self.figures
        lines = [
            f"AUC {figures.auc} ({figures.auc.how}), balanced accuracy {figures.balanced_accuracy}",
            f"true-positive rate {figures.found}, false-positive rate {figures.wrong}, at the "
            "threshold with 1 % false positives on validation",
            f"true-positive rate {figures.found_alone}, false-positive rate "
            f"{figures.wrong_alone}, at the threshold with none on validation",
        ]
        rows = [("scores", line) for line in lines]
        return [*rows, *self.list_accuracy_and_f1(f"of {names[0]} = {values[0][1]}")]

    def list_bars(self, floors: Sequence[Floor]) -> list[Bar]:
        """Return the bars of a chart of this result: accuracy, F1 and AUC.

        Each bar has a name, a measured value, and values of baselines. The baseline of AUC is 0.5.
        """
        return [*ValueFigures.list_bars(self, floors), ("AUC", self.figures.auc, [0.5])]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ManyValues(ValueFigures, word="ManyValues"):
    """Result of an attack on one attribute with more than two values.

    Attributes:
        ranking: ranks of the true values among all values, by the attacker's scores.
    """

    ranking: RankFigures

    def list_rows(self, names: Sequence[str], values: Sequence[Any]) -> list[Row]:
        """Return the measures of this result as rows of a report."""
        ranking = self.ranking
        top = f"top-1 is the accuracy, top-{TOP} {ranking.top} ({ranking.top.how})"
        rank = f"mean rank {ranking.mean_rank} of {ranking.known:,} ({ranking.mean_rank.how})"
        shares = self.list_accuracy_and_f1(f"macro over {len(values[0])} values")
        return [*shares, ("ranks", f"of the true value: {top}, {rank}")]

    def describe_floor(self, floor: Floor, measure: str) -> tuple[str, str]:
        """Return two strings for a report: the results of a baseline, and the name of a measure.

        A baseline is a guess that does not use the vectors of the texts. The second string is
        "AUC", "accuracy" or "F1": `floor.gain` is the gain of the attacker over the baseline in
        this measure. The argument `measure` is the measure by which the attacker was chosen.
        """
        figures, by = ValueFigures.describe_floor(self, floor, measure)
        return f"{figures}, top-{TOP} {floor.top:.4f}, mean rank {floor.mean_rank:.4f}", by

    def list_bars(self, floors: Sequence[Floor]) -> list[Bar]:
        """Return the bars of a chart of this result: accuracy, F1 and the share in the top 5.

        Each bar has a name, a measured value, and the values of the baselines in `floors`.
        """
        top = [floor.top or 0.0 for floor in floors]
        return [*ValueFigures.list_bars(self, floors), (f"top-{TOP}", self.ranking.top, top)]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SeveralAttributes(ValueFigures, word="SeveralAttributes"):
    """Result of an attack on several attributes with two values each.

    Attributes:
        threshold: threshold of the scores of all attributes, chosen on the validation texts.
        each: measures for each attribute separately.
    """

    threshold: float
    each: tuple[OfAttribute, ...]

    def list_rows(self, names: Sequence[str], values: Sequence[Any]) -> list[Row]:
        """Return the accuracy and F1 of this result, over all attributes, as rows of a report."""
        return self.list_accuracy_and_f1("micro over all attributes")

    def list_bars(self, floors: Sequence[Floor]) -> list[Bar]:
        """Return the bars of a chart of this result: accuracy, F1, and accuracies per attribute.

        Each bar has a name, a measured value, and the values of baselines.
        """
        each = [
            (f"accuracy, {figures.name}", figures.accuracy, [figures.majority])
            for figures in self.each
        ]
        return [*ValueFigures.list_bars(self, floors), *each]


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NumberFigures(Record, word="NumberFigures"):
    """Result of an attack on an attribute that is a number, such as an age.

    The values of `accuracy` and `f1` are NaN.

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
        """Correlation and mean absolute error of this result as one line of text."""
        return f"correlation {self.correlation}, error {self.error}"

    @property
    def score(self) -> tuple[str, Measured]:
        """Pair that tables show: the name "correlation", and the measured correlation."""
        return "correlation", self.correlation

    def list_rows(self, names: Sequence[str], values: Sequence[Any]) -> list[Row]:
        """Return the correlation and the mean absolute error of this result as rows of a report."""
        correlation = f"Spearman's {self.correlation} ({self.correlation.how})"
        error = f"mean absolute {self.error} ({self.error.how})"
        return [("correlation", correlation), ("error", error)]

    def describe_floor(self, floor: Floor, measure: str) -> tuple[str, str]:
        """Return the mean absolute error of a baseline as text, and the word "error"."""
        return f"mean absolute error {floor.error:.4f}", "error"

    def list_bars(self, floors: Sequence[Floor]) -> list[Bar]:
        """Return the one bar of a chart of this result: Spearman's correlation.

        The bar has a name, a measured value, and the baseline 0.
        """
        return [("Spearman's correlation", self.correlation, [0.0])]


Outcome = TwoValues | ManyValues | SeveralAttributes | NumberFigures
