"""Events: functions that map the outputs of a mechanism to one bool per output.

An audit counts how often an event happens on the inputs x and x'.
"""

from .event import Above, Event, Never
from .event import EventRecord as EventRecord
from .event import event_of as event_of
from .every_coordinate import EveryCoordinate
from .vote import SIDES as SIDES
from .vote import Vote

__all__ = ["Above", "Event", "EveryCoordinate", "Never", "Vote"]


def __dir__() -> list[str]:
    """List the names that this module provides, without the modules that it imports."""
    return [*__all__]
