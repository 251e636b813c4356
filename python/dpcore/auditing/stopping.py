"""An audit that looks after every slice: the course, and its record."""

from __future__ import annotations

from dataclasses import replace

from ..attacks.attack import require_scores
from ..claims.claim import Claim
from ..errors import invalid
from ..results.audits import Audit
from ..sampling.sources import Source
from .collecting import make_audit, name_row_numbers, warn_of
from .request import Request
from .sequential import BLOCK, Sequence, get_last_event, sum_counts


def first_pilot(trials: int) -> int:
    """Return the default number of pilot draws on each side, for an audit with early stop."""
    return min(trials, BLOCK)


def stopped_early(request: Request, source: Source) -> Audit:
    """Look after every slice; stop when the claim is refuted."""
    if request.claim is None:
        raise invalid("claim", "given, where stop is 'refuted'", None)
    attack = require_scores(request.attack, "where stop is 'refuted'")
    curve = request.claim if isinstance(request.claim, Claim) else None
    whole = 0.0 if isinstance(request.claim, Claim) else request.claim * request.pair.distance
    pilot = request.pilot if request.pilot is not None else first_pilot(request.trials)
    at = whole, request.delta, request.confidence
    course = Sequence(source, request.pair, request.known, attack, *at, pilot, curve)
    partial = course.run((request.start, request.start + request.trials))
    request.course.step("report", "checking the rows")
    checks = request.doubted + course.doubts
    checks = checks if partial else name_row_numbers(checks, source)
    warn_of((*checks, *course.remarks))
    if course.tangent is not None:
        request = request.at_tangent(course.tangent)
    return make_audit(
        request,
        source,
        replace(
            get_last_event(course.slices),
            pilot=pilot,
            remarks=course.remarks,
            read=course.read,
            inside=course.inside,
        ),
        sum_counts(course.slices),
        nan=course.nan[0],
        nan_prime=course.nan[1],
        partial=partial,
        bound="anytime",
        stop="refuted",
        slices=course.slices,
        checks=checks,
    )
