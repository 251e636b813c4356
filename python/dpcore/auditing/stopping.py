"""An audit that looks after every slice: the course, and its record."""

from __future__ import annotations

import time
from dataclasses import replace

from ..attacks.attack import scoring
from ..errors import invalid
from ..results.audits import Audit
from ..sampling.sources import Source
from .collecting import record, warn_of
from .request import Plan
from .sequential import BLOCK, Sequence, last, total


def stopped_early(plan: Plan, source: Source, progress: bool | None) -> Audit:
    """Look after every slice; stop when the claim is refuted."""
    if plan.claim is None:
        raise invalid("claim", "given, where stop is 'refuted'", None)
    attack = scoring(plan.attack, "where stop is 'refuted'")
    begun = time.perf_counter()
    whole = plan.claim * plan.pair.distance
    pilot = plan.pilot if plan.pilot is not None else min(plan.trials, BLOCK)
    course = Sequence(source, plan.pair, attack, whole, plan.delta, plan.confidence, pilot)
    partial = course.run((plan.start, plan.start + plan.trials), progress)
    checks = plan.doubted + course.doubts
    warn_of((*checks, *course.remarks))
    return record(
        plan,
        source,
        replace(last(course.slices), pilot=pilot, remarks=course.remarks),
        total(course.slices),
        nan=course.nan[0],
        nan_prime=course.nan[1],
        partial=partial,
        bound="anytime",
        stop="refuted",
        slices=course.slices,
        checks=checks,
        seconds=time.perf_counter() - begun,
    )
