"""Draws of a finished audit, repeated."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import choice, integer, invalid, mistyped
from ..mechanisms.answers import join_outputs
from ..published import is_native
from ..results.audits import Audit
from ..sampling.calling import CallableDraws
from ..sampling.sources import NativeDraws, Source
from ..streams import COUNT


def drawn_again(audit: Audit, side: str, start: int, size: int) -> npt.NDArray[Any]:
    """Draw again the outputs that an audit counted, see `Audit.outputs`."""
    choice("side", side, ("x", "x_prime"))
    start, size = integer("start", start, 0), integer("size", size, 0)
    if not any(low <= start and start + size <= high for low, high in audit.ranges):
        raise invalid("start, size", f"within the counted trials {audit.ranges}", (start, size))
    mechanism = audit.mechanism
    if not callable(mechanism):
        raise mistyped("mechanism", "the callable itself (JSON keeps its name)", mechanism)
    if audit.route == "timed":
        raise invalid("attack", "another than Timing: latencies do not repeat", audit.attack)
    if audit.randomness == "own":
        requirement = "of a mechanism whose outputs the seed repeats"
        raise invalid("audit", requirement, f"one of {audit.name}, which draws its own randomness")
    name = (mechanism, audit.pair, audit.seed, audit.block)
    draws: NativeDraws | CallableDraws
    draws = NativeDraws(*name) if is_native(mechanism) else CallableDraws(*name, audit.shape)
    places = Source(draws, 1, audit.end).places(COUNT, start, start + size)
    parts = [draws.draw(COUNT, 0 if side == "x" else 1, place) for place in places]
    return join_outputs(parts) if parts else np.empty((0, *audit.shape))
