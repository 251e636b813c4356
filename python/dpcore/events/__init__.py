"""Events, which an audit counts. An event maps outputs to one bool per output."""

from .event import Above, Event, EventRecord, Never
from .every_coordinate import EveryCoordinate
from .user_function import event_of
from .vote import SIDES, Vote

__all__ = ["SIDES", "Above", "Event", "EventRecord", "EveryCoordinate", "Never", "Vote", "event_of"]


def __dir__() -> list[str]:
    """Return its public names; what it imports is not shown."""
    return [*__all__]
