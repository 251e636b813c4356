"""A user's function as an event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..records import attribute_of
from .device_outputs import Held, move_to_host
from .event import Above, Event, EventRecord, Never, Seen
from .every_coordinate import EveryCoordinate
from .vote import Vote

_PACKAGE_EVENTS = (Above, EveryCoordinate, Never, Vote)


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

    def seen(self, outputs: npt.NDArray[Any] | Held, name: str) -> Seen:
        """Count the answers, and what the callable pools."""
        outputs = move_to_host(outputs)
        found = EventRecord.seen(self, outputs, name)
        pooled = attribute_of(EventRecord, self.event, "pooled")
        return found if pooled is None else found._replace(hits=(*found.hits, *pooled(outputs)))


def event_of(event: Event | EventRecord) -> EventRecord:
    """Return an event as an audit counts it.

    A subclass of an event of this package may decide otherwise, so it counts as a function.

    Example:
        >>> event_of(Never()), event_of(lambda outputs: outputs > 0).own_score
        (Never(), None)
    """
    return event if type(event) in _PACKAGE_EVENTS else Given(event)  # type: ignore[return-value]
