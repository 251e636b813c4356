"""Precision and recall of predicted spans, by type of entity."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from ... import errors
from ...packages import has_all
from ...records import Record, Result
from ...report import figures as drawing
from ...report.rows import align_rows
from ...suggestions import explain_argument_errors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Span = tuple[int, int, str]
_ANY_TYPE: Final = "any type"
_NOTES: Final = (
    "exact: a span of the other side has the same start, end and type; overlap: one of the same "
    "type shares a character with it; a span may overlap several",
    f"{_ANY_TYPE}: the same without types, as for masking, where the type of a masked word does "
    "not matter",
)


@explain_argument_errors
@dataclass(frozen=True, slots=True)
class SpanScore(Record, word="SpanScore"):
    """Numbers of predicted and true spans of one entity type, such as "PERSON".

    A span is a part of a text, given by the position of its first character and the position after
    its last character. The properties `precision` and `overlap_precision` are NaN if no span is
    predicted. The properties `recall` and `overlap_recall` are NaN without a true span.

    Args:
        type: entity type.
        predicted: number of predicted spans of this type.
        gold: number of true spans of this type.
        exact: number of predicted spans that have the same start, end and type as a true span.
        overlapping: number of predicted spans that share a character with a true span of this type.
        reached: number of true spans that share a character with a predicted span of this type.
    """

    type: str
    predicted: int
    gold: int
    exact: int
    overlapping: int
    reached: int

    @property
    def precision(self) -> float:
        """Number of exactly predicted spans of this type, divided by the number of predicted spans.

        A span is predicted exactly if a true span has the same start, end and type.
        """
        return self.exact / self.predicted if self.predicted else np.nan

    @property
    def recall(self) -> float:
        """Number of exactly predicted spans of this type, divided by the number of true spans.

        A span is predicted exactly if a true span has the same start, end and type.
        """
        return self.exact / self.gold if self.gold else np.nan

    @property
    def f1(self) -> float:
        """Harmonic mean of the two properties `precision` and `recall` (the F1 score)."""
        return 2.0 * self.exact / (self.predicted + self.gold)

    @property
    def overlap_precision(self) -> float:
        """Fraction of the predicted spans that overlap a true span of the same entity type.

        Two spans overlap if they have a character in common.
        """
        return self.overlapping / self.predicted if self.predicted else np.nan

    @property
    def overlap_recall(self) -> float:
        """Fraction of the true spans that overlap a predicted span of the same entity type.

        Two spans overlap if they have a character in common.
        """
        return self.reached / self.gold if self.gold else np.nan


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SpanScores(Result, word="dpcore.text.redaction.spans/1"):
    """Precision and recall of predicted spans for each entity type, computed by `score_spans`.

    For an object `report` of this class, ``report["PERSON"]`` is the `SpanScore` of the entity type
    "PERSON". ``report["any type"]`` is the `SpanScore` of all spans if their types are ignored.

    Attributes:
        scores: a `SpanScore` for each entity type in alphabetical order, and then a `SpanScore`
            that ignores types.
        texts: number of texts.
    """

    _INSTEAD: ClassVar[str] = "scores, or report[type]"

    scores: tuple[SpanScore, ...]
    texts: int

    def __getitem__(self, type: str) -> SpanScore:
        """Return the `SpanScore` of one entity type."""
        names = [score.type for score in self.scores]
        return self.scores[names.index(errors.choice("type", type, names))]

    @property
    def _title(self) -> str:
        predicted, gold = self.scores[-1].predicted, self.scores[-1].gold
        return f"{predicted:,} predicted and {gold:,} true spans of {self.texts:,} texts"

    def _lines(self) -> list[tuple[str, str]]:
        header, *rows = _format_header_and_score_rows(self.scores)
        lines = [
            (row[0], ", ".join(map(" ".join, zip(header[1:], row[1:], strict=True))))
            for row in rows
        ]
        return [("spans", self._title), *lines, *(("note", note) for note in _NOTES)]

    def __str__(self) -> str:
        """Return a table with a row for each type, and notes on its columns."""
        table = align_rows(_format_header_and_score_rows(self.scores))
        return "\n".join([self._title, table, *(f"note: {note}" for note in _NOTES)])

    def _plot(self, ax: Any) -> Figure:
        axes = drawing.axes_of(ax, drawing.scale_figure_size(1.0, 0.7))
        places = np.arange(len(self.scores), 0, -1)
        for place, name in enumerate(("precision", "recall")):
            hue, heights = drawing.cycle_colour(place), places + 0.12 - 0.24 * place
            for prefix, face in (("", hue), ("overlap_", "none")):
                shares = [getattr(score, prefix + name) for score in self.scores]
                label = f"{prefix}{name}".replace("_", " ")
                axes.plot(shares, heights, "os"[place], color=hue, mfc=face, label=label)
        axes.set_yticks(places, [score.type for score in self.scores])
        axes.set(xlim=(-0.03, 1.03), xlabel="share of the spans")
        axes.legend(frameon=False, fontsize="small")
        return drawing.finish_axes(axes, self._title)


def _format_header_and_score_rows(scores: Sequence[SpanScore]) -> list[tuple[str, ...]]:
    """Return the header and the rows of the table as strings."""
    names = "precision", "recall", "f1", "overlap_precision", "overlap_recall"
    rows: list[tuple[str, ...]] = [
        ("type", "predicted", "gold", *(name.replace("_", " ") for name in names))
    ]
    for score in scores:
        shares = [getattr(score, name) for name in names]
        figures = ("-" if np.isnan(share) else f"{share:.3f}" for share in shares)
        rows.append((score.type, f"{score.predicted:,}", f"{score.gold:,}", *figures))
    return rows


@explain_argument_errors
def score_spans(predicted: Any, gold: Any) -> SpanScores:
    """Compute precision and recall of predicted spans, for each entity type.

    A span is a part of a text that names an entity. A predicted span is exact if a true span of the
    same text has the same start, end and type. A predicted span overlaps a true span of the same
    text and type if the two spans have a character in common. Spans of different types never match.
    Only the entry "any type" of the result ignores types.

    Args:
        predicted: a list with one entry for each text. An entry is a list of spans
            ``(start, end, type)``. Start and end are positions of characters, with the end
            excluded. The type is a string. An entry may also be a spaCy `Doc`; then its entities
            are the spans. A span may also be a result of a presidio analyzer.
        gold: true spans of the same texts, in the same order.

    Returns:
        The counts, precision and recall for each entity type.

    Raises:
        TypeError: if an argument is not a list of lists of spans.
        ValueError: for one of these reasons:

            - `predicted` and `gold` differ in the number of texts;
            - the end of a span is not after its start;
            - a text has the same span twice;
            - neither `predicted` nor `gold` contains a span.

    Source:
        Segura-Bedmar, Martinez and Herrero-Zazo (2013), SemEval task 9.1, for exact matches.

    Example:
        >>> gold = [[(0, 4, "PERSON"), (14, 20, "PLACE")], []]
        >>> predicted = [[(0, 4, "PERSON"), (11, 20, "PLACE")], [(0, 3, "PLACE")]]
        >>> report = score_spans(predicted, gold)
        >>> report["PERSON"].recall, report["PLACE"].recall, report["PLACE"].overlap_recall
        (1.0, 0.0, 1.0)
        >>> report["PLACE"].overlap_precision
        0.5
    """
    sides = _read_spans("predicted", predicted), _read_spans("gold", gold)
    if len(sides[0]) != len(sides[1]):
        raise errors.invalid("predicted", f"spans of {len(sides[1]):,} texts", len(sides[0]))
    types = sorted({span[2] for side in sides for spans in side for span in spans})
    if not types:
        raise errors.invalid("gold", "lists with at least one span in one of both", "none")
    scores = [_count_spans(name, sides[0], sides[1]) for name in types]
    untyped = [[_deduplicate_ignoring_types(spans) for spans in side] for side in sides]
    return SpanScores((*scores, _count_spans(_ANY_TYPE, *untyped)), len(sides[0]))


def _deduplicate_ignoring_types(spans: Sequence[Span]) -> list[Span]:
    return list(dict.fromkeys((start, end, _ANY_TYPE) for start, end, _ in spans))


def _count_spans(name: str, *sides: Sequence[Sequence[Span]]) -> SpanScore:
    """Count the predicted spans, the true spans and their matches for one type."""
    predicted, gold, exact, overlapping, reached = 0, 0, 0, 0, 0
    for text_spans in zip(*sides, strict=True):
        first, second = ([span for span in spans if span[2] == name] for spans in text_spans)
        predicted, gold = predicted + len(first), gold + len(second)
        exact += len({*first} & {*second})
        overlapping += sum(_overlaps_any(span, second) for span in first)
        reached += sum(_overlaps_any(span, first) for span in second)
    return SpanScore(name, predicted, gold, exact, overlapping, reached)


def _overlaps_any(span: Span, others: Sequence[Span]) -> bool:
    return any(span[0] < end and start < span[1] for start, end, _ in others)


def _read_spans(name: str, value: Any) -> list[list[Span]]:
    """Check an argument of `score_spans`, and return its spans as tuples."""
    requirement = "a list with a list of spans (start, end, type) for each text"
    if isinstance(value, (str, bytes, dict)) or not isinstance(value, Iterable):
        raise errors.mistyped(name, requirement, value)
    rows = []
    for row, entry in enumerate(value):
        spans = entry.ents if has_all(entry, "ents") else entry
        if isinstance(spans, (str, bytes, dict)) or not isinstance(spans, Iterable):
            raise errors.mistyped(f"{name}[{row}]", "a list of spans (start, end, type)", spans)
        rows.append([_read_span(f"{name}[{row}]", span) for span in spans])
        if len({*rows[-1]}) < len(rows[-1]):
            raise errors.invalid(f"{name}[{row}]", "spans that differ", rows[-1])
    return rows


def _read_span(name: str, value: Any) -> Span:
    requirement = "spans (start, end, type) with 0 <= start < end"
    if has_all(value, "start_char", "end_char", "label_"):
        value = value.start_char, value.end_char, value.label_
    elif has_all(value, "start", "end", "entity_type"):
        value = value.start, value.end, value.entity_type
    if not isinstance(value, (tuple, list)) or len(value) != 3 or not isinstance(value[2], str):
        raise errors.mistyped(name, requirement, value)
    start, end = (errors.integer(name, place, 0) for place in value[:2])
    if start >= end or not value[2] or value[2] == _ANY_TYPE:
        raise errors.invalid(name, f"{requirement} and a type, not {_ANY_TYPE!r}", value)
    return start, end, str(value[2])
