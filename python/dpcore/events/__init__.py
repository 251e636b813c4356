"""Events, which an audit counts. An event maps outputs to one bool per output."""

from .above import Above
from .counting import Event, EventRecord
from .every_coordinate import EveryCoordinate
from .given import event_of
from .never import Never
from .vote import SIDES, Vote

__all__ = ["SIDES", "Above", "Event", "EventRecord", "EveryCoordinate", "Never", "Vote", "event_of"]


def __dir__() -> list[str]:
    """Return its public names; what it imports is not shown."""
    return [*__all__]
