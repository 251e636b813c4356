"""A function of one's own as an attack."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..bounds import clopper_pearson
from ..errors import mistyped
from .attack import AuditAttack, Fitted, Pilot
from .majority import MajorityVote

__all__ = ["Own", "attack_of"]


@dataclass(frozen=True, slots=True, repr=False)
class Own(AuditAttack):
    """Any function that names the event; the pilot still chooses the order of the sides.

    Args:
        function: `(outputs, outputs_prime, pair) -> event`.
    """

    function: Callable[..., Any]

    @property
    def given(self) -> Callable[..., Any]:
        """The function."""
        return self.function

    def fitted_on(self, pilot: Pilot) -> Fitted:
        """The function's event, and the direction that certifies more of it."""
        outputs, outputs_prime = pilot.outputs()
        found = self.function(outputs, outputs_prime, pilot.pair)
        if not callable(found):
            raise mistyped("event", "a callable outputs -> bools", found)
        size, goal = len(outputs), pilot.goal
        counts = pilot.counts(found, size)
        merits = {
            way: clopper_pearson(ordered, goal.delta, goal.confidence)
            for way, ordered in (("x_prime", counts.swapped()), ("x", counts))
        }
        direction = max(merits, key=merits.__getitem__)
        return Fitted(found, direction, merits[direction], size, np.empty(0))


def attack_of(given: Any) -> AuditAttack:
    """Whatever a user hands over as an attack, with the answers that an audit asks for.

    Args:
        given: an attack of this package, a subclass of `ScoreAttack`, or any function.

    Raises:
        TypeError: if it is none of them, an attack's class among them.

    Example:
        >>> attack_of(MajorityVote()), attack_of(max).given
        (MajorityVote(), <built-in function max>)
    """
    if isinstance(given, type) and issubclass(given, AuditAttack):
        raise mistyped("attack", f"an attack, not its class ({given.__name__}() makes one)", given)
    # A subclass of the vote may choose otherwise when it is called.
    voting = isinstance(given, MajorityVote) and type(given) is not MajorityVote
    if isinstance(given, AuditAttack) and not voting:
        return given
    if not callable(given):
        raise mistyped("attack", "a callable (outputs, outputs_prime, pair) -> event", given)
    return Own(given)
