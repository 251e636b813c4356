"""Events, which an audit counts. An event maps outputs to one bool per output."""

from .event import Above, Event, Never
from .event import EventRecord as EventRecord
from .event import event_of as event_of
from .every_coordinate import EveryCoordinate
from .vote import SIDES as SIDES
from .vote import Vote

__all__ = ["Above", "Event", "EveryCoordinate", "Never", "Vote"]


def __dir__() -> list[str]:
    """Return the public names, without the imported ones."""
    return [*__all__]
