"""Events: what an audit counts. An event maps outputs to one bool per output."""

from .above import Above
from .counting import Event, EventRecord
from .every_coordinate import EveryCoordinate
from .given import event_of
from .never import Never
from .vote import SIDES, Vote

__all__ = ["SIDES", "Above", "Event", "EventRecord", "EveryCoordinate", "Never", "Vote", "event_of"]


def __dir__() -> list[str]:
    """Its own names: what it imports can be imported from here too, but is not shown."""
    return [*__all__]
