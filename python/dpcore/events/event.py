"""The contract of events: a score against a threshold, one that never happens, any function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ..errors import choice, invalid, mistyped, real, suggest_arguments
from ..records import Pair, Record, attribute_of, qualified_name
from .device_outputs import DeviceScores, Held, cache_per_device, is_own, move_to_host, numpy_of


class Event(Protocol):
    """An event that an audit counts: a function `outputs -> bools`.

    Every event of `dpcore.events` is one, and so is any function of one's own.
    """

    def __call__(self, outputs: npt.NDArray[Any], /) -> npt.NDArray[np.bool_]:
        """Return for each output whether the event happened.

        Args:
            outputs: outputs of a mechanism, shape `(size, ...)`.

        Returns:
            Bools, shape `(size,)`.
        """


Score = Callable[[npt.NDArray[Any]], npt.NDArray[np.float64]]
"""outputs -> one real number per output, higher where the output looks more like x."""


class ScoreAttributes:
    """Attributes that a score may carry, each with its value for one that lacks it.

    Attributes:
        cost: nanoseconds per output, about: among equals the cheaper score is taken.
        merged: True if it is a function of cells that were placed with rounding in mind.
        rounding: `(grains)` -> what the grains of the columns make of its values.
        alone: `()` -> the one column that it reads, and the score of that column.
        index: the number of that column.
        on_device: `(outputs)` -> scores of outputs that are on a device, or None.
        compiled: True if the core scores arrays faster than the device does.
    """

    cost = 20
    merged = compiled = False
    rounding = alone = index = on_device = None


def score_attribute(score: Any, name: str) -> Any:
    """Return an attribute that a score may carry, or its default.

    Example:
        >>> score_attribute(np.sum, "cost"), score_attribute(np.sum, "merged")
        (20, False)
    """
    return attribute_of(ScoreAttributes, score, name)


class Seen(NamedTuple):
    """The counts of an event on one block of outputs.

    Args:
        hits: of the event; then, for an event that pools coordinates, one count a group.
        nan: entries of the outputs that were NaN.
        answers: one bool per output; None where hits are counted without them.
        scores: of the outputs, where the event is a threshold on one.
    """

    hits: tuple[int, ...]
    nan: int
    answers: npt.NDArray[np.bool_] | None
    scores: npt.NDArray[np.float64] | DeviceScores | None = None


class Ballot(NamedTuple):
    """A majority vote in the form that the core counts while it draws.

    Args:
        threshold: of every entry.
        towards: where x' lies from x, entry by entry.
        complement: whether the votes for x are the hits.
    """

    threshold: npt.NDArray[np.float64]
    towards: npt.NDArray[np.int8]
    complement: bool

    def hits(self, votes: int, size: int) -> int:
        """Return the hits among `size` outputs of which `votes` voted for x'."""
        return size - votes if self.complement else votes


class EventRecord(Record):
    """An event of this package: a record `outputs -> bools` that says how it is counted."""

    __slots__ = ()

    happens: ClassVar[bool] = True
    """False for the event that stands for none."""
    pooled: ClassVar[Any] = None
    """`(outputs)` -> hits of groups of coordinates, of an event that pools them."""
    multiplicities: ClassVar[Any] = ()
    """Number of coordinates of each group."""

    def __call__(self, outputs: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Decide the event for every output."""
        raise NotImplementedError(f"{type(self).__name__} decides nothing")

    @property
    def own_score(self) -> Score | None:
        """The score that the event is a threshold on, or None."""
        return None

    @property
    def ballot(self) -> Ballot | None:
        """The event as the core counts it without making outputs, or None where it cannot."""
        return None

    def midway(self, pair: Pair) -> bool:
        """Return True for the majority vote midway between two inputs, for either of them."""
        return False

    def seen(self, outputs: npt.NDArray[Any] | Held, name: str) -> Seen:
        """Count the event on outputs, then what it pools.

        Args:
            outputs: outputs, shape `(size, ...)`; held ones are copied, unless a subclass can
                decide where they are.
            name: what complaints call the mechanism.

        Returns:
            The counts, and what they were made of.

        Raises:
            TypeError: if the outputs are of a kind that the event cannot read.
            ValueError: if they have another shape, or there is not one answer for each.
        """
        outputs = move_to_host(outputs)
        answers = evaluate_event(self, outputs)
        pooled = () if self.pooled is None else self.pooled(outputs)
        return Seen((hits_of(answers), *pooled), count_nan(outputs), answers)


def score_held(score: Any, outputs: Held) -> DeviceScores | None:
    """Compute the scores of held outputs; None where the score needs an array.

    Only the package's own scores say how: a subclass of one may score otherwise.
    """
    ask = score_attribute(score, "on_device") if is_own(score) else None
    if ask is None or (outputs.near and score_attribute(score, "compiled")):
        return None
    found = ask(outputs)
    return None if found is None else DeviceScores(score, outputs, found)


def evaluate_event(event: Event, outputs: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Evaluate an event and check its answers: one bool for each output."""
    answers = np.asarray(event(outputs))
    if answers.dtype != np.bool_ or answers.shape != outputs.shape[:1]:
        requirement = f"a function that returns bools of shape ({len(outputs)},)"
        raise invalid("event", requirement, (str(answers.dtype), answers.shape))
    return answers


def group_rows(
    outputs: npt.NDArray[Any],
) -> tuple[list[tuple[npt.NDArray[np.intp], npt.NDArray[Any]]], npt.NDArray[np.intp]]:
    """Return the rows of objects that are real numbers as tables, and the places of all others.

    A rare outcome (None, a text, a list one longer, an integer beyond 64 bits) makes objects of a
    block of numbers. What an event answers for a row must not depend on its neighbours.

    Args:
        outputs: objects, shape `(size, ...)`.

    Returns:
        For each type and shape the places of its rows and a table of them; then other places.

    Example:
        >>> groups, others = group_rows(np.array([1.5, None, 2.5], dtype=object))
        >>> groups[0][1].tolist(), others.tolist()
        ([1.5, 2.5], [1])
    """
    found: dict[Any, tuple[list[int], list[Any]]] = {}
    others = []
    for place, row in enumerate(outputs if outputs.ndim == 1 else outputs.tolist()):
        try:
            # A text of millions of characters need not become an array.
            array = None if isinstance(row, (str, bytes)) else np.asarray(row)
        except Exception:
            # Objects answer as they please.
            array = None
        if array is None or array.dtype.kind not in "buif":
            others.append(place)
            continue
        places, rows = found.setdefault((array.dtype, array.shape), ([], []))
        places.append(place)
        rows.append(array)
    groups = [(np.array(places), np.stack(rows)) for places, rows in found.values()]
    return groups, np.array(others, np.intp)


def hits_of(answers: npt.NDArray[np.bool_]) -> int:
    """Count how often an event happened."""
    return int(np.count_nonzero(answers))


def count_nan(outputs: npt.NDArray[Any] | Held) -> int:
    """Count the entries that are NaN."""
    if isinstance(outputs, Held):
        return outputs.count_nan()
    return int(np.count_nonzero(np.isnan(outputs))) if outputs.dtype.kind == "f" else 0


@suggest_arguments
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

    def _held(self, scores: DeviceScores) -> Seen:
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
    return qualified_name(score)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Never(EventRecord, word="Never"):
    """The event of an attack that found nothing: it does not happen, and certifies 0."""

    happens: ClassVar[bool] = False

    def __call__(self, outputs: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return False for every output."""
        return np.zeros(len(outputs), np.bool_)

    def __str__(self) -> str:
        """Return one line for a report."""
        return "no event told the two sides apart on the pilot"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Given(EventRecord, word="Given"):
    """Any callable `outputs -> bools`; one with a method `pooled` counts coordinates too.

    Args:
        event: the callable.
    """

    event: Any

    def __call__(self, outputs: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return the callable's answers, unchecked."""
        answers: npt.NDArray[np.bool_] = self.event(outputs)
        return answers

    @property
    def pooled(self) -> Any:
        """The callable's own `(outputs)` -> hits of groups of coordinates, or None."""
        return attribute_of(EventRecord, self.event, "pooled")


def event_of(event: Event | EventRecord) -> EventRecord:
    """Return an event as an audit counts it.

    A subclass of an event of this package may decide otherwise, so it counts as a function.

    Example:
        >>> event_of(Never()), event_of(lambda outputs: outputs > 0).own_score
        (Never(), None)
    """
    return event if isinstance(event, EventRecord) and is_own(event) else Given(event)
