"""An audit of output and latency: calls one by one, each on a side drawn by a fair coin."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..attacks.attack import Fitted
from ..claims.claim import Claim
from ..errors import invalid
from ..mechanisms.callables import make_generator
from ..records import Counts
from ..results.audits import Audit
from ..sampling.calling import CallableDraws
from ..sampling.sources import Source
from ..streams import COUNT, PILOT
from .collecting import make_audit
from .request import Request


def audit_timing(request: Request) -> Audit:
    """Time `2 trials` calls; the event is one of output and latency together.

    Args:
        request: the checked arguments; its bound is replaced by the conditional one, which alone
            allows for sides drawn by coin.

    Returns:
        The audit. Its counts are calls on a side that hit the event, of all calls.

    Raises:
        ValueError: if the request asks for a delta, for early stop, for several pairs or for more
            than one thread.
    """
    if isinstance(request.claim, Claim):
        raise invalid("claim", "a number for Timing, whose bound knows no delta", request.claim)
    if request.delta:
        raise invalid("delta", "0 for Timing, whose bound has no form for it", request.delta)
    if request.stop != "fixed" or request.executor is not None or request.start:
        asked = (request.stop, request.executor, request.start)
        raise invalid("stop, executor, start", "left alone for Timing", asked)
    if request.workers != 1:
        raise invalid("threads", "1 for Timing", request.workers)
    if getattr(request.mechanism, "encodes_once", False):
        requirement = "another than Timing where a text is encoded once, before the calls"
        raise invalid("attack", requirement, request.attack.given)
    course = request.course
    # A thread that draws a bar would be timed too.
    course.step("count", "timing calls, one by one (the bar stands still)")
    course.stand_still()
    rng = make_generator(request.seed, COUNT, 0, 0)

    def call(x: Any) -> Any:
        return request.mechanism(x, 1, rng)

    calls = 2 * request.trials
    found = request.attack.timed_counts(
        call,
        request.pair,
        calls,
        make_generator(request.seed, PILOT, 0, 0),
        pilot=None if request.pilot is None else 2 * request.pilot,
        confidence=request.confidence,
    )
    draws = CallableDraws(request.mechanism, request.pair, request.seed, 1, ())
    source = Source(draws, 1, calls, route="timed")
    fitted = Fitted(found.event, found.direction, None, found.pilot, np.empty(0))
    counts = Counts(found.k, calls, found.k_prime, calls)
    course.drew(calls + found.pilot)
    return make_audit(request, source, fitted, counts, bound="conditional", notes=found.notes)
