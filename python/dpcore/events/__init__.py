"""Events: what an audit counts. An event maps outputs to one bool per output."""

from .above import Above
from .every_coordinate import EveryCoordinate
from .never import Never
from .vote import SIDES, Vote

__all__ = ["SIDES", "Above", "EveryCoordinate", "Never", "Vote"]
