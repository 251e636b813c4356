"""Counting fresh draws, and the record of what was counted."""

from __future__ import annotations

import warnings
from typing import Any, Final

import numpy as np

from ..attacks.attack import Fitted, attack_name
from ..errors import AssumptionWarning
from ..events import event_of
from ..events.device_outputs import move_to_host
from ..mechanisms.callables import one_by_one, runs_on
from ..progress import interrupted_again
from ..records import Counts
from ..results.audits import Audit
from ..results.findings import Finding, Scored, Spent
from ..sampling.calling import Place
from ..sampling.numbering import FEWEST_NUMBERED_ROWS, is_numbering, list_columns
from ..sampling.rows import list_doubts
from ..sampling.slicing import slices_of
from ..sampling.sources import Source
from ..sampling.tally import Curve, Event, Hits, Tally, Watch
from ..streams import COUNT, PROBE
from .request import Request

_MAX_LATTICE_TRIALS: Final = 2**20
"""Trials on which the floating-point finding is counted: what it finds is not rare."""
_MAX_CURVE_TRIALS: Final = 2**22
_MAX_NUMBERING_ROWS: Final = 256
"""Rows that are read for a column that numbers them."""
_TRIALS_PER_NUMBERING_ROW: Final = 8
"""Of a function of one answer, which may be slow, one row in so many trials at most."""


def make_audit(
    request: Request, source: Source, fitted: Fitted, counts: Counts, **more: Any
) -> Audit:
    """Make the audit from the request, the fitted event and the counts."""
    notes = (*request.told, *request.notes, *fitted.notes, *fitted.remarks, *more.pop("notes", ()))
    return Audit(
        mechanism=request.mechanism,
        pair=request.pair,
        neighbour=request.wanted.relation,
        attack=attack_name(request.attack),
        event=fitted.event,
        direction=fitted.direction,
        counts=counts,
        claim=request.claim,
        tangent=request.tangent,
        delta=request.delta,
        confidence=request.confidence,
        seed=request.seed,
        block=source.block,
        route=source.route,
        ranges=((request.start, request.start + counts.n),),
        end=max(request.start + request.trials, counts.n),
        pilot=fitted.pilot,
        shape=source.shape,
        threads=source.threads,
        floats=request.floats,
        notes=notes,
        randomness=request.randomness,
        clean=request.clean,
        declared_loss=request.declared_loss,
        runs_on=runs_on(request.mechanism),
        read=fitted.read,
        inside=fitted.inside if request.source else (),
        searched=request.searched,
        seconds=request.course.seconds("count"),
        spent=tuple(Spent(*one) for one in request.course.spent()),
        provenance=(request.provenance,),
        **more,
    )


def count_event(request: Request, source: Source, fitted: Fitted) -> Audit:
    """Count the event on fresh draws, all trials."""
    trials = (request.start, request.start + request.trials)
    watches = _list_watches(request, fitted)
    done, tally, tally_prime = _count_slices(source, fitted.event, trials, watches)
    request.course.step("report", "checking the rows")
    counts = Counts(tally.hits[0], done, tally_prime.hits[0], done)
    partial = done < request.trials
    checks = request.doubted + list_doubts([[tally.evidence], [tally_prime.evidence]])
    # Nothing more is drawn for somebody who pressed Ctrl-C.
    checks = checks if partial else name_row_numbers(checks, source)
    warn_of((*checks, *fitted.remarks))
    watched = _read_watches(request, fitted, tally, tally_prime)
    return make_audit(
        request,
        source,
        fitted,
        counts,
        nan=tally.nan,
        nan_prime=tally_prime.nan,
        partial=partial,
        bound="anytime" if partial else request.bound,
        stop="interrupted" if partial else "fixed",
        pooled=() if partial else _pool_counts(fitted.event, tally, tally_prime),
        floating_point=watched[0],
        curve=watched[1],
        checks=checks,
    )


def name_row_numbers(checks: tuple[str, ...], source: Source) -> tuple[str, ...]:
    """Return the checks, preceded by the column that numbers the rows, if one does.

    Args:
        checks: what contradicts the independence of rows; without any nothing is drawn.
        source: of the outputs; some rows are drawn on x to be read.
    """
    if not checks or source.draws.native:
        return checks
    rows = min(_MAX_NUMBERING_ROWS, source.block)
    if one_by_one(source.draws.mechanism):
        rows = min(rows, (source.end - source.start) // _TRIALS_PER_NUMBERING_ROW)
        if rows < FEWEST_NUMBERED_ROWS:
            return checks
    outputs = move_to_host(source.draws.draw(PROBE, 0, Place(0, rows, 0, rows)))
    for place, values in list_columns(outputs):
        if is_numbering(values):
            what = f"{place} of the outputs" if place else "the output"
            return f"{what} numbers the rows: leave it out of what is returned", *checks
    return checks


def warn_of(checks: tuple[str, ...]) -> None:
    """Warn of each check, for scripts that never print the report."""
    for said in checks:
        # As if it came from the line that called dpcore.audit.
        warnings.warn(said, AssumptionWarning, stacklevel=5)


def _list_watches(request: Request, fitted: Fitted) -> tuple[Watch, ...]:
    """List the further counts: the lattice's event, then the curve of the score."""
    watches = []
    if fitted.lattice is not None:
        limit = request.start + min(request.trials, _MAX_LATTICE_TRIALS)
        watches.append(Watch(Hits(fitted.lattice.event), limit))
    score = event_of(fitted.event).own_score
    if score is not None and fitted.thresholds.size:
        watches.append(
            Watch(
                Curve(score, fitted.thresholds),
                request.start + min(request.trials, _MAX_CURVE_TRIALS),
            )
        )
    return tuple(watches)


def _read_watches(
    request: Request, fitted: Fitted, tally: Tally, tally_prime: Tally
) -> tuple[Finding | None, Scored | None]:
    finding = curve = None
    limits = {"lattice": _MAX_LATTICE_TRIALS, "curve": _MAX_CURVE_TRIALS}
    names = ["lattice"] * (fitted.lattice is not None) + ["curve"] * bool(fitted.thresholds.size)
    for i, name in enumerate(names):
        k, k_prime = tally.watched[i], tally_prime.watched[i]
        n, n_prime = tally.watched_rows[i], tally_prime.watched_rows[i]
        if n == 0 or n_prime == 0 or n != max(0, min(request.trials, limits[name])):
            # Cut short by Ctrl-C: n was not fixed in advance, and the finding has no other bound.
            continue
        if name == "curve":
            curve = Scored(fitted.thresholds, np.array(k), n, np.array(k_prime), n_prime)
        elif fitted.lattice is not None:
            event, direction = fitted.lattice.event, fitted.lattice.direction
            counts = Counts(k[0], n, k_prime[0], n_prime)
            # The tangent's delta is large, and the finding's own place on a curve another.
            delta = request.delta if request.tangent is None else 0.0
            finding = Finding(event, direction, counts, delta, request.confidence)
    return finding, curve


def _pool_counts(event: Event, tally: Tally, tally_prime: Tally) -> tuple[Counts, ...]:
    multiplicities = getattr(event, "multiplicities", ())
    return tuple(
        Counts(k, tally.rows * entries, k_prime, tally_prime.rows * entries)
        for k, k_prime, entries in zip(
            tally.hits[1:], tally_prime.hits[1:], multiplicities, strict=True
        )
    )


def _count_slices(
    source: Source,
    event: Event,
    trials: tuple[int, int],
    watches: tuple[Watch, ...] = (),
) -> tuple[int, Tally, Tally]:
    """Count both sides in slices; Ctrl-C keeps the slices that both sides have finished."""
    (start, stop), course = trials, source.course
    course.step("count", "counting", 2 * (stop - start))
    # One name for both, so that no Ctrl-C can fall between counts and their number of trials.
    so_far = (0, Tally(), Tally())
    try:
        for first, end in slices_of(start, stop, source.block, source.threads):
            part, part_prime = source.tally(event, COUNT, first, end, watches)
            so_far = (end - start, so_far[1] + part, so_far[2] + part_prime)
    except KeyboardInterrupt:
        if interrupted_again() or so_far[0] == 0:
            raise
    return so_far
