"""Result of an attack on an attribute (class `Inference`), and its report and chart."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from ...bounds import clopper_pearson
from ...errors import invalid, real
from ...mechanisms.texts import BatchCheck
from ...records import Record, Result, frozen_array
from ...report import figures as drawing
from ...report.rows import format_epsilon
from ...results.audit_text import format_claim, format_counts
from ...results.evidence import put_numerator_first
from ...results.outputs_audits import OutputsAudit
from ...suggestions import explain_argument_errors
from . import outcomes
from .encodings import Encodings
from .metrics import Group, MainTask, Measured
from .outcomes import Floor, OfMeasure
from .targets import MANY_VALUES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DERIVED_FIGURES: Final = (
    "above_floor", "measures_above", "certified_leak", "main_at_floor", "empirical_privacy",
    "empirical_privacy_f1",
)  # fmt: skip

ASSUMING: Final = (
    "assuming that the encoder draws noise for each text by itself, learnt nothing from test "
    "texts, and that the attribute was fixed before anybody looked"
)
"""Assumptions of the certified bound. The texts themselves need not be a random sample (see
`certify`)."""


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ScoredTexts(Record, word="ScoredTexts"):
    """Test texts: their positions, their true values, and their scores by the chosen attacker.

    If the attribute is a number, `truth` has the true numbers and `scores` has the predicted
    numbers.

    Attributes:
        rows: positions of the test texts in the corpus, shape (n,).
        truth: codes of the true values, shape (n, attributes). A code is the position of a value in
            `Inference.values`.
        scores: scores of the second (positive) value of each attribute, shape (n, attributes). If
            there is one attribute with more than two values, `scores` has the codes of the
            predicted values.
        ranks: for each text, the rank of the true value among all values, shape (n,). The value
            with the attacker's highest score has rank 1. None if the attribute does not have more
            than two values.
    """

    rows: npt.NDArray[np.int64]
    truth: npt.NDArray[Any]
    scores: npt.NDArray[np.float64]
    ranks: npt.NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        for name in ("rows", "truth", "scores", "ranks"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, frozen_array(getattr(self, name)))

    def sorted_negative_and_positive_scores(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return two sorted arrays: the scores of the negative and of the positive test texts.

        A text is positive if it has the second value of the attribute.

        Raises:
            ValueError: if the result is not for exactly one attribute with two values.
        """
        if self.scores.shape[1] != 1 or not set(np.unique(self.truth)) <= {0, 1}:
            need = "one attribute of two values for figures of its scores"
            raise invalid("attribute", need, f"{self.scores.shape[1]} attributes")
        return tuple(np.sort(self.scores[self.truth[:, 0] == code, 0]) for code in (0, 1))  # type: ignore[return-value]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Inference(Result, word="dpcore.text.inference/4"):
    """Result of `infer`: how well an attacker infers a private attribute from vectors of texts.

    Each single interval has the coverage `confidence`. The intervals are for the chosen attacker,
    and for texts from the same distribution as the test texts. Another attacker may infer more.

    Attributes:
        attributes: names of the inferred attributes.
        values: for each attribute, a tuple of its values. If an attribute has two values, the
            second value is called positive. If the attribute is a number, the tuple is empty.
        attacker: name of the chosen classifier.
        transform: name of the transform of the vectors before the classifier.
        measure: measure by which the attacker was chosen: "auc", "true-positive rate", "balanced
            accuracy", "accuracy", "f1" or "correlation". If three measures were used, `measure` is
            the measure with the largest advantage over a guess that does not use the vectors. The
            advantages are computed on the validation texts.
        outcome: object with the measures on the test texts. Its class depends on the kind of
            attribute.
        floors: results of the baselines (the best inferences that do not use the vectors), with
            p-values of `measure`.
        groups: accuracies of the attacker, separately for the test texts with each value of the
            attribute.
        main: accuracy of predicting the main label from the vectors. None if the corpus has no
            labels.
        certified: audit whose field `epsilon_lower` is a certified lower bound on epsilon. If no
            bound is certified, `certified` is a text that states the reason.
        sizes: numbers of training texts, validation texts and test texts that were used.
        left_out: dictionary: a key is a reason, and its value is the number of texts that were not
            used for this reason.
        authors: number of groups of test texts. A group, such as the texts of one author, comes
            from the field `groups` of the corpus. The permutations for p-values exchange the values
            of whole groups. None if the corpus has no groups, or if texts of one group have
            different values of the attribute. With None, the permutations exchange the values of
            single texts.
        encodings: number of times that each training text was encoded. None if `infer` was called
            with vectors in place of an encoder.
        batches: result of the check that the vector of a text does not depend on the other texts in
            the same call of the encoder. None if `infer` was called with vectors in place of an
            encoder.
        tried: pair for each attacker: the name of the attacker, and a number that was used to
            compare the attackers on the validation texts. This number is the accuracy or F1 if
            `measure` is "accuracy" or "f1". For other measures, the number is the advantage over a
            guess that does not use the vectors, in standard deviations. The largest of these
            numbers is too optimistic for test texts.
        scored: positions in the corpus, true values and scores of the test texts.
        confidence: confidence of each interval separately.
        seed: seed of the training of attackers and of the bootstrap intervals. If `seeded` is True,
            the seed also determines the noise of the encoder.
        seeded: True if the encoder has an argument `rng`. Then the random generators that `infer`
            passes to the encoder depend only on `seed`.
        seconds: run time in seconds. A comparison of two results with == ignores this number.
    """

    _INSTEAD: ClassVar[str] = "above_floor (True or False)"

    attributes: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]
    attacker: str
    transform: str
    measure: str
    outcome: outcomes.Outcome
    floors: tuple[Floor, ...]
    groups: tuple[Group, ...]
    main: MainTask | None
    certified: OutputsAudit | str
    sizes: tuple[int, int, int]
    left_out: dict[str, int]
    authors: int | None
    encodings: Encodings | None
    batches: BatchCheck | None
    tried: tuple[tuple[str, float], ...]
    scored: ScoredTexts
    confidence: float
    seed: int
    seeded: bool
    seconds: float = field(compare=False, default=0.0)

    @property
    def accuracy(self) -> Measured:
        """Share of the attacker's correct answers on the test texts; NaN for inferred numbers."""
        return self.outcome.accuracy

    @property
    def f1(self) -> Measured:
        """F1 of the attacker's answers on the test texts.

        For one attribute with two values, the number is F1 of the second value. For several
        attributes, the number is micro F1. For one attribute with more than two values, the number
        is macro F1. The value is NaN if the attribute is a number.
        """
        return self.outcome.f1

    @property
    def threshold(self) -> float | None:
        """Threshold of the attacker's score, chosen on the validation texts.

        For scores at or above the threshold, the attacker's answer is the second value of the
        attribute. The threshold is None if no attribute has two values.
        """
        has_scores = outcomes.TwoValues, outcomes.SeveralAttributes
        return self.outcome.threshold if isinstance(self.outcome, has_scores) else None

    @property
    def figures(self) -> outcomes.Scores | None:
        """Measures of how well the attacker's scores separate the two values of the attribute.

        The value is None, except if there is one attribute with two values.
        """
        return self.outcome.figures if isinstance(self.outcome, outcomes.TwoValues) else None

    @property
    def measures(self) -> tuple[OfMeasure, ...]:
        """Results for three measures: the AUC, the true-positive rate and the balanced accuracy.

        The tuple is empty if the attacker was chosen by only one measure.
        """
        return self.outcome.measures if isinstance(self.outcome, outcomes.TwoValues) else ()

    @property
    def ranking(self) -> outcomes.RankFigures | None:
        """Ranks of the true values of the test texts among all values, by the attacker's scores.

        The value is None, except if there is one attribute with more than two values.
        """
        return self.outcome.ranking if isinstance(self.outcome, outcomes.ManyValues) else None

    @property
    def each(self) -> tuple[outcomes.OfAttribute, ...]:
        """Measures for each attribute separately; () if only one attribute was inferred."""
        return self.outcome.each if isinstance(self.outcome, outcomes.SeveralAttributes) else ()

    @property
    def number(self) -> outcomes.NumberFigures | None:
        """Correlation and error of predicted numbers, or None if the attribute is not a number."""
        return self.outcome if isinstance(self.outcome, outcomes.NumberFigures) else None

    @property
    def certified_leak(self) -> bool:
        """True if the field `certified` shows a leak: a lower bound on epsilon that is above 0.

        The test of the leak uses half of the allowed error probability 1 - `confidence`. The
        comparison of the attacker with the baselines uses the other half. Therefore the probability
        that at least one of the two tests is wrong is at most 1 - `confidence`.
        """
        audit = self.certified
        if isinstance(audit, str) or audit.doubts or audit.counts is None:
            return False
        counts = put_numerator_first(audit.counts, audit.direction)
        return clopper_pearson(counts, 0.0, (1.0 + self.confidence) / 2.0) > 0.0

    @property
    def main_at_floor(self) -> bool:
        """True if predicted main labels are not significantly better than a constant prediction.

        The constant prediction is the most frequent label of the training texts.

        If the value is True, the vectors may contain no useful information. Then a failed attack is
        not evidence of privacy.
        """
        return self.main is not None and self.main.at_floor

    @property
    def above_floor(self) -> bool:
        """True if the attacker beats every baseline significantly, by at least one measure.

        A baseline is the best inference that does not use the vectors. The first baseline,
        "majority", predicts the most frequent value. The second baseline, if it exists, does this
        for each main label. If the field `certified` shows a leak, the attacker also counts as
        better than "majority".
        """
        return not self.floors_left

    @property
    def floors_left(self) -> tuple[str, ...]:
        """Names of the baselines that the attacker does not beat significantly.

        A baseline is the best inference that does not use the vectors. If there are three measures,
        the result is for the measure with the fewest baselines that are not beaten.
        """
        names = [self._list_unbeaten_floor_names(self.floors)]
        names += [self._list_unbeaten_floor_names(measure.floors) for measure in self.measures]
        return min(names, key=len)

    @property
    def measures_above(self) -> tuple[str, ...]:
        """Names of the measures by which the attacker beats every baseline significantly.

        A baseline is the best inference that does not use the vectors.
        """
        tests = [(test.measure, test.floors) for test in self.measures]
        tests = tests or [(self.measure, self.floors)]
        return tuple(name for name, floors in tests if not self._list_unbeaten_floor_names(floors))

    def _list_unbeaten_floor_names(self, floors: tuple[Floor, ...]) -> tuple[str, ...]:
        leak = self.certified_leak
        return tuple(
            floor.name
            for row, floor in enumerate(floors)
            if not floor.beaten and not (leak and row == 0)
        )

    @property
    def empirical_privacy(self) -> float:
        """1 minus the accuracy of the attacker, as in the literature. This is not a guarantee."""
        return 1.0 - self.accuracy.value

    @property
    def empirical_privacy_f1(self) -> float:
        """1 minus F1 of the attacker. This number is not a guarantee."""
        return 1.0 - self.f1.value

    @property
    def auc(self) -> float:
        """Area under the ROC curve of the attacker's scores of the test texts.

        Pairs of texts with equal scores count half.

        Raises:
            ValueError: if the result is not for exactly one attribute with two values.
        """
        negative, positive = self.scored.sorted_negative_and_positive_scores()
        below = np.searchsorted(negative, positive, side="left")
        ties = np.searchsorted(negative, positive, side="right") - below
        return float((below + 0.5 * ties).sum() / (len(negative) * len(positive)))

    def true_positive_rate(self, false_positive_rate: float = 0.05) -> float:
        """Return the attacker's true-positive rate on the test texts at a false-positive rate.

        The threshold is the lowest score that fulfils this condition: the share of the negative
        test texts with a higher score is at most the given rate. This threshold is chosen on the
        test texts. Therefore the result is slightly too large.

        Args:
            false_positive_rate: largest share of the negative texts above the threshold, in [0, 1].

        Raises:
            TypeError: if the rate is not a number.
            ValueError: if the rate is out of range, or the result is not for exactly one attribute
                with two values.
        """
        rate = real("false_positive_rate", false_positive_rate, low=0.0, high=1.0)
        negative, positive = self.scored.sorted_negative_and_positive_scores()
        allowed = int(rate * len(negative))
        if allowed == len(negative):
            return 1.0
        return float((positive > negative[len(negative) - 1 - allowed]).mean())

    def __repr__(self) -> str:
        """Return one line with the attributes, the main measures and the seed."""
        names = ", ".join(self.attributes)
        return f"<Inference of {names}: {self.outcome.summary}, seed={self.seed}>"

    @property
    def _title(self) -> str:
        return _format_inference_title(self)

    def _lines(self) -> list[tuple[str, str]]:
        return [*list_rows(self), ("time", f"{self.seconds:.3g} s")]

    def _plot(self, ax: Any) -> Figure:
        return draw_measures_and_baselines(self, ax)

    def _derived_values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _DERIVED_FIGURES}


def list_rows(inference: Inference) -> list[tuple[str, str]]:
    """Return the rows of the report, as pairs (label, text). The run time is not included."""
    each = [
        f"{figures.name}: accuracy {figures.accuracy}, majority {figures.majority:.4f}, "
        f"F1 of {figures.name} = {figures.positive} {figures.f1}"
        for figures in inference.each
    ]
    return [
        ("verdict", _verdict_on_beaten_floors(inference)),
        ("attacker", _describe_attacker(inference)),
        *inference.outcome.list_rows(inference.attributes, inference.values),
        *(("measure", _describe_measure_result(inference, test)) for test in inference.measures),
        *(("floor", _describe_gain_over_floor(inference, floor)) for floor in inference.floors),
        *([] if inference.main is None else [("main label", _main_accuracy_text(inference.main))]),
        *([] if inference.number else [("privacy", _format_empirical_privacy(inference))]),
        ("certified", _format_certified_bound(inference)),
        *(("attribute", line) for line in each),
        *(("group", line) for line in _describe_value_accuracies(inference)),
        ("texts", _describe_texts(inference)),
        *([] if inference.encodings is None else [("encodings", str(inference.encodings))]),
        *([] if inference.batches is None else [("batches", str(inference.batches))]),
        ("seed", _describe_seed(inference)),
        *(("note", note) for note in _list_notes(inference)),
    ]


def _format_inference_title(inference: Inference) -> str:
    return f"Inference of {', '.join(inference.attributes)} from encoded texts"


def _describe_attacker(inference: Inference) -> str:
    name = f"{inference.attacker}, {inference.transform}"
    cut = "" if inference.threshold is None else f" with threshold {inference.threshold:.6g}"
    count, measure = len(inference.tried), _name_of_measure(inference.measure)
    how = f"best of {count} on validation by {measure}, evaluated once on test"
    return f"{name}{cut}: {how}"


def _name_of_measure(measure: str) -> str:
    names = {"f1": "F1", "auc": "AUC", "true-positive rate": "true-positive rate at 1 %"}
    return names.get(measure, measure)


def _describe_measure_result(inference: Inference, test: OfMeasure) -> str:
    values = ", ".join(f"{floor.p_value:.2g} ({floor.name})" for floor in test.floors)
    cut = "" if test.measure == "auc" else f" with threshold {test.threshold:.6g}"
    above = "" if test.measure in inference.measures_above else " not"
    return (
        f"{_name_of_measure(test.measure)} {test.figure} by {test.attacker}, {test.transform}{cut}"
        f": p-value {values}, beaten up to {test.floors[0].level:.3g};{above} above the floor"
    )


def _main_accuracy_text(main: MainTask) -> str:
    figures = f"accuracy {main.accuracy}, majority {main.majority:.4f}, gain {main.gain}"
    return f"predicted by {main.attacker}: {figures} ({main.gain.how})"


def _describe_gain_over_floor(inference: Inference, floor: Floor) -> str:
    figures, by = inference.outcome.describe_floor(floor, inference.measure)
    gain = f"{floor.name}: {figures}; the attacker's gain in {by} {floor.gain} ({floor.gain.how})"
    if floor.p_value is None:
        return gain
    measure = _name_of_measure(inference.measure)
    beaten = f"p-value {floor.p_value:.2g} of its {measure} by permutations"
    return f"{gain}; {beaten}, beaten up to {floor.level:.3g}"


def _verdict_on_beaten_floors(inference: Inference) -> str:
    left, why = inference.floors_left, "the certified bound shows a leak"
    tests = [(inference.measure, inference.floors)]
    tests += [(test.measure, test.floors) for test in inference.measures]
    names = [name for name, floors in tests if any(floor.beaten for floor in floors)]
    if names:
        why = "the attacker does better than without any vectors"
    if names and inference.measures:
        names = [name for name in names if left or name in inference.measures_above]
        why += f", by {', '.join(map(_name_of_measure, dict.fromkeys(names)))}"
    lacks = "the vectors were not shown to carry the main label"
    if not left:
        return f"above the floor: {why}{f'; {lacks}' if inference.main_at_floor else ''}"
    sentence = f"not shown to be above the floor: {' and '.join(left)}"
    if len(left) < len(inference.floors):
        sentence += f" (above the {inference.floors[0].name}: {why})"
    reasons = [f"{lacks} either"] if inference.main_at_floor else []
    if inference.ranking is not None and inference.ranking.unknown_texts == inference.sizes[2]:
        reasons.append(
            "no value of the test texts occurs in train, so the attacker cannot name any of them"
        )
    if not reasons:
        return sentence
    return f"no evidence of privacy, because {' and '.join(reasons)}; {sentence}"


def _format_empirical_privacy(inference: Inference) -> str:
    figures = (
        f"1 - X = {inference.empirical_privacy:.4f}, 1 - F = {inference.empirical_privacy_f1:.4f}"
    )
    return f"empirical privacy {figures}: no guarantee, another attacker may infer more"


def _format_certified_bound(inference: Inference) -> str:
    audit = inference.certified
    if isinstance(audit, str):
        return audit
    assert audit.counts is not None
    if audit.doubts:
        return f"nothing: {'; '.join(audit.doubts)}"
    level = f"{100 * audit.confidence:g} % confidence"
    sentence = f"epsilon >= {format_epsilon(audit.epsilon_lower)} ({level}), {ASSUMING}"
    claim = "" if audit.claim is None else f"; claim {format_claim(audit)}: {audit.verdict}"
    pair = f"x {audit.pair.x}, x' {audit.pair.x_prime}"
    return f"{sentence}{claim}; {audit.event}, {format_counts(audit.counts)}; {pair}"


def _describe_value_accuracies(inference: Inference) -> list[str]:
    lines = []
    for group in inference.groups if len(inference.groups) < MANY_VALUES else ():
        sentence = (
            f"{group.attribute} = {group.value}, {group.texts:,} texts: attack {group.attack}"
        )
        if group.main is not None:
            sentence += f", main label {group.main}"
        if group.gap is not None:
            sentence += f", gap to the others {group.gap.value:+.4f}"
            sentence += f" [{group.gap.low:+.4f}, {group.gap.high:+.4f}]"
        lines.append(sentence)
    return lines


def _describe_texts(inference: Inference) -> str:
    train, valid, test = inference.sizes
    gone = [f"{many:,} {why}" for why, many in inference.left_out.items() if many]
    sentence = f"{train:,} train, {valid:,} valid, {test:,} test"
    sentence = f"{sentence}; left out: {'; '.join(gone) if gone else 'none'}"
    unknown = 0 if inference.ranking is None else inference.ranking.unknown_texts
    if unknown:
        texts = "1 text" if unknown == 1 else f"{unknown:,} texts"
        sentence += (
            f"; {texts} of test with a value that train lacks, never named: counted as wrong"
        )
    return sentence


def _describe_seed(inference: Inference) -> str:
    own = "the encoder has no rng=, so that noise of its own is not repeated"
    return f"{inference.seed}{'' if inference.seeded else f' ({own})'}"


def _list_notes(inference: Inference) -> list[str]:
    notes = [
        f"intervals hold at {100 * inference.confidence:g} % each by itself, for this attacker and "
        "texts drawn as these were"
    ]
    if inference.authors is not None and inference.authors < inference.sizes[2]:
        notes.append(
            f"p-values permute the {inference.authors:,} groups of the test texts as wholes; "
            "intervals and sign tests take texts as independent, but those of one group may not be"
        )
    if len(inference.groups) >= MANY_VALUES:
        notes.append(f"groups are not listed: {len(inference.groups):,} values, see `groups`")
    values = inference.values[0]
    if len(values) > MANY_VALUES and not isinstance(values[0], str):
        name, many = inference.attributes[0], f"{len(values):,} separate values"
        notes.append(f"{name} is taken as {many}; kind='number' infers a number, such as an age")
    if inference.f1.low == inference.f1.high:
        notes.append("an F1 interval without width is no certainty: read the accuracy")
    if any(group.main is not None for group in inference.groups):
        notes.append(
            "the main label is predicted by the attacker's own classifier; groups differ for "
            "more reasons than the encoder"
        )
    return notes


def draw_measures_and_baselines(inference: Inference, ax: Any = None) -> Figure:
    """Plot the measures of an attacker with their intervals, and the values of the baselines.

    The plot is drawn on the axes `ax`, or on a new figure if `ax` is None.
    """
    lines = inference.outcome.list_bars(inference.floors)
    axes = drawing.axes_of(ax, drawing.scale_figure_size(1.1, 0.35 + 0.1 * len(lines)))
    marks = ((drawing.text_colour(), "|"), (drawing.cycle_colour(2), "|"))
    for row, (_, measured, floors) in enumerate(lines):
        axes.plot([measured.low, measured.high], [row, row], color=drawing.cycle_colour(0))
        label = "" if row else "attacker"
        axes.plot([measured.value], [row], "o", color=drawing.cycle_colour(0), label=label)
        for floor, value, (hue, mark) in zip(inference.floors, floors, marks, strict=False):
            name = "" if row else floor.name
            axes.plot([value], [row], mark, color=hue, markersize=16, mew=2.0, label=name)
        axes.annotate(
            f"{measured.value:.3f}", (measured.value, row), (0, 7), textcoords="offset points",
            ha="center", fontsize="small",
        )  # fmt: skip
    least = min(0.0, *(measured.low for _, measured, _ in lines))
    axes.set(xlim=(least - 0.02 if least else 0.0, 1.02), ylim=(len(lines) - 0.5, -0.7))
    axes.set_yticks(range(len(lines)), [name.replace("$", r"\$") for name, *_ in lines])
    title = f"{_format_inference_title(inference)}\n{inference.attacker}, {inference.transform}"
    axes.set_title(title.replace("$", r"\$"), loc="left", fontsize="medium")
    drawing.hide_top_and_right_spines(axes)
    # The legend is below the axes; inside, it would cover a line.
    below: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.15), "ncols": 3}
    axes.legend(frameon=False, fontsize="small", **below)
    return drawing.get_root_figure(axes.figure)
