"""Counts of events, as an audit needs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ..errors import invalid
from ..records import Pair, Record
from .held import Held, Scores, move_to_host

__all__ = [
    "Ballot",
    "Event",
    "EventRecord",
    "Score",
    "Seen",
    "count_nan",
    "evaluate_event",
    "group_rows",
    "hits_of",
]  # fmt: skip


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
    scores: npt.NDArray[np.float64] | Scores | None = None


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
        """Count the event on outputs.

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
        return Seen((hits_of(answers),), count_nan(outputs), answers)


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
