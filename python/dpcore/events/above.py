"""A score against a threshold: the form of nearly every event that an attack finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..errors import choice, invalid, mistyped, real
from ..hints import hinted
from ..records import Record
from .counting import EventRecord, Score, Seen, count_nan, group_rows, hits_of
from .held import Held, Scores, cache_per_device, is_own, move_to_host, numpy_of, score_held


@hinted
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Above(EventRecord, word="Above"):
    """The event "the score of the output is at or above the threshold", or below it.

    A score that is NaN is on neither side: such an output is counted in n and never in k.

    Args:
        score: `outputs -> scores`, shape `(size,)`; higher where an output looks more like x.
        threshold: in the units of the score. An attack puts it between atoms of the score, where
            rounding cannot move an output across.
        side: "above" (``score >= threshold``) or "below" (``score < threshold``).

    Raises:
        TypeError: if `score` is not callable, `threshold` not a number or `side` not a string.
        ValueError: if `threshold` is not finite or `side` neither of the two.

    Source:
        Neyman and Pearson (1933): the best event of given probability is a threshold on the
        likelihood ratio, and so on any increasing function of it.

    Example:
        >>> import numpy as np
        >>> event = Above(lambda outputs: outputs[:, 0], 0.5)
        >>> event(np.array([[0.2], [0.9]])).tolist()
        [False, True]
    """

    score: Score
    threshold: float
    side: Literal["above", "below"] = "above"

    def __post_init__(self) -> None:
        """Check the fields."""
        if not callable(self.score):
            raise mistyped("score", "a callable outputs -> scores", self.score)
        object.__setattr__(self, "threshold", real("threshold", self.threshold))
        choice("side", self.side, ("above", "below"))

    def __call__(self, outputs: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Decide the event for every output.

        Args:
            outputs: outputs, shape `(size, ...)`.

        Returns:
            One bool per output, shape `(size,)`.

        Raises:
            ValueError: if the score does not return one real number per output.
        """
        answers: npt.NDArray[np.bool_] = self.of_scores(scores_of(self.score, outputs))
        return answers

    @property
    def own_score(self) -> Score:
        """The score that the event is a threshold on."""
        return self.score

    def seen(self, outputs: npt.NDArray[Any] | Held, name: str) -> Seen:
        """Count the event, and keep the scores for further counts."""
        found = score_held(self.score, outputs) if isinstance(outputs, Held) else None
        if found is not None:
            return self._held(found)
        scores = scores_of(self.score, move_to_host(outputs))
        answers = self.of_scores(scores)
        return Seen((hits_of(answers),), count_nan(outputs), answers, scores)

    def _held(self, scores: Scores) -> Seen:
        """Count the event on the device of the outputs; only the answers are copied."""
        edge = cache_per_device(self, scores.outputs, lambda like, _: np.array([self.threshold]))
        answers = self.of_scores(scores.settled(edge))
        answers = answers if isinstance(answers, np.ndarray) else numpy_of(answers)
        return Seen((hits_of(answers),), scores.outputs.count_nan(), answers, scores)

    def of_scores(self, scores: Any) -> Any:
        """Decide the event from scores, shape `(size,)`."""
        return scores >= self.threshold if self.side == "above" else scores < self.threshold

    def __str__(self) -> str:
        """Return one line for a report."""
        name = score_name(self.score)
        if name.startswith("[") and name.endswith("]"):
            # A score of 0 or 1 names what is true where it is 1, and what is where it is 0.
            is_so, _, is_not = name[1:-1].partition("][")
            return is_so if self.side == "above" else is_not or f"not: {is_so}"
        sign = ">=" if self.side == "above" else "<"
        return f"{name} {sign} {self.threshold:,.10g}"


def scores_of(score: Score, outputs: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Compute and check the scores of outputs: one real number each, shape `(size,)`.

    Rows that a score of this package cannot read among others that it can, are NaN.
    """
    try:
        return _check_scores(score, outputs)
    except (TypeError, ValueError, RecursionError):
        if not is_own(score) or outputs.dtype != object:
            raise
        scores = _scores_by_rows(score, outputs)
        if scores is None:
            raise
        return scores


def _check_scores(score: Score, outputs: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    # Near the ends of the range of doubles a sum may be infinite: a score like any other.
    with np.errstate(over="ignore", invalid="ignore"):
        scores = np.asarray(score(outputs))
    if scores.dtype.kind not in "buif" or scores.shape != (len(outputs),):
        requirement = f"a function that returns real numbers of shape ({len(outputs)},)"
        raise invalid("score", requirement, (str(scores.dtype), scores.shape))
    return scores.astype(np.float64, copy=False)


def _scores_by_rows(score: Score, outputs: npt.NDArray[Any]) -> npt.NDArray[np.float64] | None:
    """Compute the scores of the readable rows; None where none of several rows is readable."""
    scores = np.full(len(outputs), np.nan)
    groups, others = group_rows(outputs)
    read = [_fill_scores(scores, score, *group) for group in groups]
    if others.size and (read or len(outputs) > 1):
        read.append(_fill_scores(scores, score, others, outputs[others]))
    return scores if any(read) or len(outputs) == 1 else None


def _fill_scores(
    scores: npt.NDArray[np.float64],
    score: Score,
    places: npt.NDArray[np.intp],
    rows: npt.NDArray[Any],
) -> bool:
    """Put the scores of rows in their places; of objects those of all rows that can be read."""
    try:
        scores[places] = _check_scores(score, rows)
    except (TypeError, ValueError, RecursionError):
        if rows.dtype != object or len(rows) == 1:
            return False
        half = len(rows) // 2
        first = _fill_scores(scores, score, places[:half], rows[:half])
        return _fill_scores(scores, score, places[half:], rows[half:]) or first
    return True


def score_name(score: Any) -> str:
    """Return the name of a score in reports: its own text, or the name of a plain function."""
    if isinstance(score, Record):
        return str(score)
    return str(getattr(score, "__qualname__", None) or type(score).__qualname__)


__all__ = ["Above", "Score", "score_name", "scores_of"]
