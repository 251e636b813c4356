"""Outcomes of an inference: a class of figures and report texts for each kind of attribute."""

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
    """Best inference that does not use the vectors; learned on train, evaluated on test.

    Attributes:
        name: "majority", or "majority given the main label". If the attribute is a number:
            "median", or "median given the main label".
        accuracy: accuracy of the most frequent values; NaN for a number.
        f1: F1 of the answers with the best F1 on train; NaN for a number.
        gain: measure of the attacker minus the measure of the floor, on the same texts. For
            measures of scores, it is the gain in area under the ROC curve. For a number, it is the
            decrease of the mean absolute error.
        p_value: probability that a permutation of the truth gives a measure at least as large. The
            truth is permuted among texts that the floor does not distinguish (or among authors, see
            `Inference.authors`). None if the measure is accuracy or F1.
        level: largest p-value at which the floor counts as beaten.
        top: share of texts with their value among the five most frequent values, for more than two
            values; otherwise None.
        mean_rank: mean rank of the true value by frequency, or None.
        error: mean absolute error of the median, for a number; otherwise None.
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
        """True if the p-value is at most `level`, or if the interval of `gain` lies above 0."""
        return self.gain.low > 0.0 if self.p_value is None else self.p_value <= self.level


@suggest_arguments
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OfMeasure(Record, word="OfMeasure"):
    """One of three measures: its choice on validation, and its single test.

    Attributes:
        measure: "auc", "true-positive rate" or "balanced accuracy".
        attacker: name of the best classifier by this measure on validation.
        transform: transform that is applied to the rows before the classifier.
        threshold: threshold of the score, from validation; not used by "auc".
        figure: the measure on test. For the true-positive rate, it is the share of positive texts
            found.
        floors: the floors, with p-values of this measure.
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
    """Measures of the separation by scores, for an attribute of two values.

    Attributes:
        auc: area under the ROC curve.
        balanced_accuracy: mean of the accuracies on the texts with each value.
        found: true-positive rate at the threshold with 1 % false positives on validation.
        wrong: false-positive rate at that threshold.
        found_alone: share of the positive texts with scores above all negative texts of validation.
        wrong_alone: share of the negative texts with scores above all negative texts of validation.
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
    """Ranks of the true value among all values, in the order of the attacker's scores.

    If scores are equal, the value that is more frequent in train comes first. A value that does not
    occur in train can never be predicted. Its texts count as wrong, and their rank is one after all
    known values. The top-1 share is the accuracy.

    Attributes:
        top: share of texts with their true value among the first five values.
        mean_rank: mean rank of the true value, from 1.
        known: number of values in train.
        unknown_texts: number of test texts with a value that does not occur in train.
    """

    top: Measured
    mean_rank: Measured
    known: int
    unknown_texts: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OfAttribute(Record, word="OfAttribute"):
    """Figures of one of several attributes.

    Attributes:
        name: name of the attribute.
        positive: the value for which F1 is computed.
        accuracy: accuracy of the attacker, with exact limits.
        f1: F1 of the attacker.
        majority: accuracy of the majority.
    """

    name: str
    positive: Any
    accuracy: Measured
    f1: Measured
    majority: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ValueFigures(Record):
    """Base class of outcomes for attributes with values.

    Attributes:
        accuracy: share of correct answers; the mean over several attributes.
        f1: F1 of the positive value; micro over several attributes, macro over more than two
            values.
    """

    accuracy: Measured
    f1: Measured

    @property
    def summary(self) -> str:
        """Accuracy and F1 in one line."""
        return f"accuracy {self.accuracy}, F1 {self.f1}"

    @property
    def score(self) -> tuple[str, Measured]:
        """Name and value of the figure for tables."""
        return "accuracy", self.accuracy

    def list_shares(self, f1_kind: str) -> list[Row]:
        """List accuracy and F1 as rows of a report; `f1_kind` describes the F1."""
        return [
            ("accuracy", f"{self.accuracy} ({self.accuracy.how})"),
            ("F1", f"{self.f1} ({self.f1.how}; {f1_kind})"),
        ]

    def describe_floor(self, floor: Floor, measure: str) -> tuple[str, str]:
        """Describe a floor in words, and name the figure of its gain."""
        by = "F1" if measure == "f1" else "accuracy" if floor.p_value is None else "AUC"
        return f"accuracy {floor.accuracy:.4f}, best F1 {floor.f1:.4f}", by

    def list_bars(self, floors: Sequence[Floor]) -> list[Bar]:
        """List the bars of a chart."""
        return [
            ("accuracy", self.accuracy, [floor.accuracy for floor in floors]),
            ("F1", self.f1, [floor.f1 for floor in floors]),
        ]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TwoValues(ValueFigures, word="TwoValues"):
    """Outcome for one attribute of two values.

    Attributes:
        threshold: threshold of the score, from validation.
        figures: measures of the scores.
        measures: the three measures, each with its own attacker and tested at a third of the level;
            () if a single measure is tested at the whole level.
    """

    threshold: float
    figures: Scores
    measures: tuple[OfMeasure, ...]

    @property
    def score(self) -> tuple[str, Measured]:
        """Area under the ROC curve, with its name."""
        return "AUC", self.figures.auc

    def list_rows(self, names: Sequence[str], values: Sequence[Any]) -> list[Row]:
        """List the figures of an attribute as rows of a report."""
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
        """List the bars of a chart."""
        return [*ValueFigures.list_bars(self, floors), ("AUC", self.figures.auc, [0.5])]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ManyValues(ValueFigures, word="ManyValues"):
    """Outcome for one attribute of more than two values.

    Attributes:
        ranking: ranks of the true value.
    """

    ranking: RankFigures

    def list_rows(self, names: Sequence[str], values: Sequence[Any]) -> list[Row]:
        """List the figures of an attribute as rows of a report."""
        ranking = self.ranking
        top = f"top-1 is the accuracy, top-{TOP} {ranking.top} ({ranking.top.how})"
        rank = f"mean rank {ranking.mean_rank} of {ranking.known:,} ({ranking.mean_rank.how})"
        shares = self.list_shares(f"macro over {len(values[0])} values")
        return [*shares, ("ranks", f"of the true value: {top}, {rank}")]

    def describe_floor(self, floor: Floor, measure: str) -> tuple[str, str]:
        """Describe a floor in words, and name the figure of its gain."""
        figures, by = ValueFigures.describe_floor(self, floor, measure)
        return f"{figures}, top-{TOP} {floor.top:.4f}, mean rank {floor.mean_rank:.4f}", by

    def list_bars(self, floors: Sequence[Floor]) -> list[Bar]:
        """List the bars of a chart."""
        top = [floor.top or 0.0 for floor in floors]
        return [*ValueFigures.list_bars(self, floors), (f"top-{TOP}", self.ranking.top, top)]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SeveralAttributes(ValueFigures, word="SeveralAttributes"):
    """Outcome for several attributes of two values each.

    Attributes:
        threshold: threshold of the scores, from validation.
        each: figures of each attribute.
    """

    threshold: float
    each: tuple[OfAttribute, ...]

    def list_rows(self, names: Sequence[str], values: Sequence[Any]) -> list[Row]:
        """List the figures of all attributes together as rows of a report."""
        return self.list_shares("micro over all attributes")

    def list_bars(self, floors: Sequence[Floor]) -> list[Bar]:
        """List the bars of a chart."""
        each = [
            (f"accuracy, {figures.name}", figures.accuracy, [figures.majority])
            for figures in self.each
        ]
        return [*ValueFigures.list_bars(self, floors), *each]


@suggest_arguments
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NumberFigures(Record, word="NumberFigures"):
    """Correlation and error of an inferred number, such as an age.

    Accuracy and F1 are NaN.

    Attributes:
        correlation: Spearman's rank correlation of the answers with the truth.
        error: mean absolute error.
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
        """Correlation, with its name."""
        return "correlation", self.correlation

    def list_rows(self, names: Sequence[str], values: Sequence[Any]) -> list[Row]:
        """List the figures of a number as rows of a report."""
        correlation = f"Spearman's {self.correlation} ({self.correlation.how})"
        error = f"mean absolute {self.error} ({self.error.how})"
        return [("correlation", correlation), ("error", error)]

    def describe_floor(self, floor: Floor, measure: str) -> tuple[str, str]:
        """Describe a floor in words, and name the figure of its gain."""
        return f"mean absolute error {floor.error:.4f}", "error"

    def list_bars(self, floors: Sequence[Floor]) -> list[Bar]:
        """List the bars of a chart."""
        return [("Spearman's correlation", self.correlation, [0.0])]


Outcome = TwoValues | ManyValues | SeveralAttributes | NumberFigures
