"""Outcomes of an inference, a class for each kind of attribute: its figures and their texts."""

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
"""Line of a picture: its name, the figure, and that of each floor."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Floor(Record, word="Floor"):
    """Inference without any encoding; learnt on train, evaluated on test.

    Attributes:
        name: "majority", or "majority given the main label"; of a number "median", ...
        accuracy: of the most frequent values; NaN of a number.
        f1: of the answers that make the best F1 on train; NaN of a number.
        gain: the attacker's measure less the floor's, on the same texts; of a measure of scores
            the gain in area under the ROC curve; of a number how much smaller his mean absolute
            error is.
        p_value: how often the truth, permuted among texts (authors, see `Inference.authors`) that
            the floor does not distinguish, gives as large a measure, or None where the measure is
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


@suggest_arguments
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OfMeasure(Record, word="OfMeasure"):
    """One measure of three: what it chose on validation, and its one test.

    Attributes:
        measure: "auc", "true-positive rate" or "balanced accuracy".
        attacker: name of the classifier that does best by this measure on validation.
        transform: what it does to the rows first.
        threshold: of its score, chosen on validation; not used by "auc".
        figure: the measure on test; of the true-positive rate the share of positive texts found.
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


@suggest_arguments
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RankFigures(Record, word="RankFigures"):
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OfAttribute(Record, word="OfAttribute"):
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ValueFigures(Record):
    """Figures of any inference of values.

    Attributes:
        accuracy: share of right answers; the mean over several attributes.
        f1: of the positive value; micro over several attributes, macro over more values than two.
    """

    accuracy: Measured
    f1: Measured

    @property
    def summary(self) -> str:
        """The figures in one line."""
        return f"accuracy {self.accuracy}, F1 {self.f1}"

    @property
    def score(self) -> tuple[str, Measured]:
        """The name of the figure that tables show, and the figure."""
        return "accuracy", self.accuracy

    def list_shares(self, f1_kind: str) -> list[Row]:
        """List accuracy and F1 as rows of a report; `f1_kind` states which F1 it is."""
        return [
            ("accuracy", f"{self.accuracy} ({self.accuracy.how})"),
            ("F1", f"{self.f1} ({self.f1.how}; {f1_kind})"),
        ]

    def describe_floor(self, floor: Floor, measure: str) -> tuple[str, str]:
        """Describe a floor in words, and name the figure of its gain."""
        by = "F1" if measure == "f1" else "accuracy" if floor.p_value is None else "AUC"
        return f"accuracy {floor.accuracy:.4f}, best F1 {floor.f1:.4f}", by

    def list_bars(self, floors: Sequence[Floor]) -> list[Bar]:
        """List the figures that a picture shows."""
        return [
            ("accuracy", self.accuracy, [floor.accuracy for floor in floors]),
            ("F1", self.f1, [floor.f1 for floor in floors]),
        ]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TwoValues(ValueFigures, word="TwoValues"):
    """Outcome for one attribute of two values.

    Attributes:
        threshold: of the score, chosen on validation.
        figures: measures of the scores.
        measures: the three measures, each of which has its own attacker and is tested at a third of
            the level; () where one measure is tested at the whole level.
    """

    threshold: float
    figures: Scores
    measures: tuple[OfMeasure, ...]

    @property
    def score(self) -> tuple[str, Measured]:
        """The area under the ROC curve, with its name."""
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
        """List the figures that a picture shows."""
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
        """List the figures that a picture shows."""
        top = [floor.top or 0.0 for floor in floors]
        return [*ValueFigures.list_bars(self, floors), (f"top-{TOP}", self.ranking.top, top)]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SeveralAttributes(ValueFigures, word="SeveralAttributes"):
    """Outcome for several attributes of two values each.

    Attributes:
        threshold: of the scores, chosen on validation.
        each: the attributes one by one.
    """

    threshold: float
    each: tuple[OfAttribute, ...]

    def list_rows(self, names: Sequence[str], values: Sequence[Any]) -> list[Row]:
        """List the figures of all attributes together as rows of a report."""
        return self.list_shares("micro over all attributes")

    def list_bars(self, floors: Sequence[Floor]) -> list[Bar]:
        """List the figures that a picture shows."""
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
        """The figures in one line."""
        return f"correlation {self.correlation}, error {self.error}"

    @property
    def score(self) -> tuple[str, Measured]:
        """The correlation, with its name."""
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
        """List the figures that a picture shows."""
        return [("Spearman's correlation", self.correlation, [0.0])]


Outcome = TwoValues | ManyValues | SeveralAttributes | NumberFigures
