"""Count of an event on fresh draws, and the audit that is made of the counts.

What is fixed before the count, and what was counted, are kept apart: a run file holds both, and a
process that goes on with it is compared with the one that began it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import numpy as np

from ..attacks.attack import Fitted, attack_name
from ..claims.trade_off import Claim
from ..errors import AssumptionWarning
from ..events import event_of
from ..events.device_outputs import move_to_host
from ..events.event import Event, EventRecord
from ..mechanisms.callables import one_by_one, runs_on
from ..progress import interrupted_again
from ..records import Counts, attribute_of
from ..results.audits import Audit
from ..results.evidence import Finding, Scored, Spent, numerator_first, unite_digests
from ..sampling.driver import Done, Source, digest_bits, draw_shard
from ..sampling.numbering import FEWEST_NUMBERED_ROWS, is_numbering, list_columns
from ..sampling.rows import list_doubts
from ..sampling.sources import NativeDraws, Place
from ..sampling.tally import Curve, Hits, Tally, TallyRows, Watch
from ..streams import COUNT, PROBE
from .event_fitting import PilotDraws
from .request import OTHER_BITS_NOTE, Request
from .run_files import FixedFields, RunFile

_MAX_LATTICE_TRIALS: Final = 2**20
"""Trials on which the floating-point finding is counted: what it finds is not rare."""
_MAX_CURVE_TRIALS: Final = 2**22
_MAX_NUMBERING_ROWS: Final = 256
"""Rows that are read for a column that numbers them."""
_TRIALS_PER_NUMBERING_ROW: Final = 8
"""Of a function of one answer, which may be slow, one row in so many trials at most."""


def list_fixed_fields(request: Request, source: Source, fitted: Fitted) -> dict[str, Any]:
    """List the fields of an audit that are fixed before anything is counted, by name."""
    return {
        "mechanism": request.mechanism,
        "pair": request.pair,
        "neighbour": request.wanted.relation,
        "attack": attack_name(request.attack),
        "event": fitted.event,
        "direction": fitted.direction,
        "claim": request.claim,
        "tangent": request.tangent,
        "delta": request.delta,
        "confidence": request.confidence,
        "bound": request.bound,
        "seed": request.seed,
        "block": source.block,
        "route": source.route,
        "end": request.start + request.trials,
        "pilot": fitted.pilot,
        "shape": source.shape,
        "floats": request.floats,
        "notes": (*request.pair_notes, *request.notes, *fitted.notes, *fitted.remarks),
        "randomness": request.randomness,
        "clean": request.clean,
        "declared_loss": request.declared_loss,
        "runs_on": runs_on(request.mechanism),
        "read": fitted.read,
        "inside": fitted.inside if request.source else (),
        "searched": request.searched,
        "provenance": (request.provenance,),
    }


def make_audit(
    request: Request, source: Source, fitted: Fitted, counts: Counts, **more: Any
) -> Audit:
    """Make the audit from the request, the fitted event and the counts."""
    known = list_fixed_fields(request, source, fitted)
    more["notes"] = known["notes"] + more.get("notes", ())
    more["end"] = max(known["end"], counts.n)
    ranges = ((request.start, request.start + counts.n),)
    return Audit(**known | _list_course(request, source) | {"ranges": ranges} | more, counts=counts)


def _list_course(request: Request, source: Source) -> dict[str, Any]:
    """List the fields that say how a run went."""
    return {
        "threads": source.threads,
        "seconds": request.course.seconds("count"),
        "spent": tuple(Spent(*one) for one in request.course.spent()),
    }


def fix_fields(request: Request, source: Source, fitted: Fitted) -> FixedFields:
    """Collect all that is fixed before the count."""
    lattice = None if fitted.lattice is None else (fitted.lattice.event, fitted.lattice.direction)
    return FixedFields(
        audit=list_fixed_fields(request, source, fitted),
        start=request.start,
        trials=request.trials,
        thresholds=fitted.thresholds,
        lattice=lattice,
        checks=request.doubted,
        remarks=fitted.remarks,
        collisions=source.replays.collisions,
        bits="" if request.checkpoint is None else digest_bits(source.draws),
    )


def count_event(
    request: Request, source: Source, fixed: FixedFields, run: RunFile | None = None
) -> Audit:
    """Count the event on fresh draws, all trials that are not counted yet."""
    done = count_shards(source, fixed, run)
    request.course.step("report", "checking the rows")
    course = _list_course(request, source)
    course["digests"] = unite_digests((), tuple(one.hex() for one in source.replays.digests))
    if run is not None:
        course |= {"seconds": run.seconds, "looked": run.looked, "same_bits": run.same_bits}
    report = finish_audit(fixed, done, **course)
    # Nothing more is drawn for somebody who pressed Ctrl-C.
    if not report.partial:
        report = replace(report, checks=name_row_numbers(report.checks, source))
    if run is not None and not source.draws.native and not request.repeats_bits:
        report = replace(report, checks=report.checks + run.compare_sessions())
    warn_of((*report.checks, *fixed.remarks))
    return report


def finish_audit(
    fixed: FixedFields, done: Done, *, looked: bool = False, same_bits: bool = True, **more: Any
) -> Audit:
    """Make the audit of what was counted.

    Args:
        fixed: what was fixed before.
        done: what was counted, at least one trial.
        looked: True if somebody has seen counts before the end.
        same_bits: False if processes that give other bits for one seed were accepted.
        more: further fields of the audit.
    """
    tally, tally_prime = done.sides
    partial = done.trials < fixed.trials
    stop = "looked" if looked else "interrupted" if partial else "fixed"
    finding, curve = _read_watches(fixed, tally, tally_prime)
    if not same_bits:
        notes = (*fixed.audit["notes"], OTHER_BITS_NOTE)
        more["notes"] = tuple(dict.fromkeys(notes))
    return Audit(
        **fixed.audit | {"bound": fixed.audit["bound"] if stop == "fixed" else "anytime"} | more,
        counts=Counts(tally.hits[0], done.trials, tally_prime.hits[0], done.trials),
        ranges=done.ranges,
        nan=tally.nan,
        nan_prime=tally_prime.nan,
        partial=partial,
        stop=stop,
        pooled=_pool_counts(fixed.audit["event"], tally, tally_prime) if stop == "fixed" else (),
        floating_point=finding,
        curve=curve,
        checks=fixed.checks + list_doubts([[tally.evidence], [tally_prime.evidence]]),
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


def _list_watches(fixed: FixedFields) -> tuple[Watch, ...]:
    """List the further counts: the lattice's event, then the curve of the score."""
    watches = []
    if fixed.lattice is not None:
        limit = fixed.start + min(fixed.trials, _MAX_LATTICE_TRIALS)
        watches.append(Watch(Hits(fixed.lattice[0]), limit))
    score = event_of(fixed.audit["event"]).own_score
    if score is not None and fixed.thresholds.size:
        limit = fixed.start + min(fixed.trials, _MAX_CURVE_TRIALS)
        watches.append(Watch(Curve(score, fixed.thresholds), limit))
    return tuple(watches)


def _read_watches(
    fixed: FixedFields, tally: Tally, tally_prime: Tally
) -> tuple[Finding | None, Scored | None]:
    finding = curve = None
    limits = {"lattice": _MAX_LATTICE_TRIALS, "curve": _MAX_CURVE_TRIALS}
    names = ["lattice"] * (fixed.lattice is not None) + ["curve"] * bool(fixed.thresholds.size)
    for i, name in enumerate(names):
        k, k_prime = tally.watched[i], tally_prime.watched[i]
        n, n_prime = tally.watched_rows[i], tally_prime.watched_rows[i]
        if n == 0 or n_prime == 0 or n != max(0, min(fixed.trials, limits[name])):
            # Cut short by Ctrl-C: n was not fixed in advance, and the finding has no other bound.
            continue
        if name == "curve":
            curve = Scored(fixed.thresholds, np.array(k), n, np.array(k_prime), n_prime)
        elif fixed.lattice is not None:
            event, direction = fixed.lattice
            counts = Counts(k[0], n, k_prime[0], n_prime)
            # The tangent's delta is large, and the finding's own place on a curve another.
            delta = fixed.audit["delta"] if fixed.audit["tangent"] is None else 0.0
            finding = Finding(event, direction, counts, delta, fixed.audit["confidence"])
    return finding, curve


def _pool_counts(event: Event, tally: Tally, tally_prime: Tally) -> tuple[Counts, ...]:
    multiplicities = attribute_of(EventRecord, event, "multiplicities")
    return tuple(
        Counts(k, tally.rows * entries, k_prime, tally_prime.rows * entries)
        for k, k_prime, entries in zip(
            tally.hits[1:], tally_prime.hits[1:], multiplicities, strict=True
        )
    )


def count_shards(source: Source, fixed: FixedFields, run: RunFile | None) -> Done:
    """Count both sides, shard by shard.

    Ctrl-C keeps the shards that came back; with a run file nothing is shown, and it goes on.
    """
    event, course, watches = fixed.audit["event"], source.course, _list_watches(fixed)
    done = Done() if run is None else run.done
    start, stop = (fixed.start, fixed.start + fixed.trials) if run is None else run.range
    course.step("count", "counting", 2 * (stop - start - done.trials))
    begun = course.clock()
    shards = source.counted(event, COUNT, done.left(start, stop), watches)
    if run is not None:
        with keep_on_errors(run):
            for shard in shards:
                done = done.plus(shard)
                run.keep(done, shard.edges, source.replays, course.clock() - begun)
                begun = course.clock()
                course.bar.relabel(describe_counting("counting", source, run))
        return done
    try:
        for shard in shards:
            # One name for all, so that no Ctrl-C can fall between counts and their trials.
            done = done.plus(shard)
            course.bar.relabel(describe_counting("counting", source))
    except KeyboardInterrupt:
        if interrupted_again() or not done.ranges:
            raise
    return done


def describe_counting(what: str, source: Source, run: RunFile | None = None) -> str:
    """Describe for the bar what is counted, by how many workers, and when the file was written."""
    workers = f" on {source.worker_count:,} workers" if source.worker_count > 1 else ""
    return f"{what}{workers}" + ("" if run is None else f", run file of {run.time_of_day}")


@contextmanager
def keep_on_errors(run: RunFile) -> Iterator[None]:
    """Write the run file at the end, after Ctrl-C and after errors, which then say how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"go on with {run.resume_line}") from None
    except Exception as error:
        error.add_note(f"what was counted is kept: go on with {run.resume_line}")
        raise
    finally:
        run.write(always=True)


def resume_run(request: Request, source: Source, run: RunFile) -> FixedFields:
    """Compare a run file with the request of this process, and the mechanism with that which began.

    Args:
        request: the settled request.
        source: of the draws; it takes over what the file knows of earlier blocks.
        run: the file.

    Returns:
        What is fixed, with the mechanism and the event themselves.

    Raises:
        ValueError: if an argument differs; if the first and the last block of the file, drawn
            again, give other counts.
    """
    fixed = run.fixed
    assert fixed is not None
    shape = fixed.audit["shape"]
    if not isinstance(source.draws, NativeDraws) and source.shape != shape:
        source.draws = replace(source.draws, shape=shape)
    source.replays.restore(fixed.collisions, run.digests, run.zeros)
    if fixed.whole:
        fitted = Fitted(
            fixed.audit["event"], fixed.audit["direction"], None, fixed.audit["pilot"],
            fixed.thresholds, remarks=fixed.remarks,
        )  # fmt: skip
        if isinstance(request.claim, Claim):
            request = replace(
                request, tangent=fixed.audit["tangent"], delta=fixed.audit["delta"],
                declared_loss=fixed.audit["declared_loss"],
            )  # fmt: skip
    else:
        request, fitted = fit_event(request, source)
    mine = fix_fields(request, source, fitted)
    run.refuse_difference(mine)
    mine.lattice = fixed.lattice if fixed.whole else mine.lattice
    mine.thresholds, mine.checks = fixed.thresholds, fixed.checks
    mine.bits = fixed.bits
    for name in ("notes", "read", "inside", "searched", "provenance"):
        mine.audit[name] = fixed.audit[name]
    if request.repeats_bits:
        for edge in run.edges:
            again = count_edge(source, mine, edge[0])
            if again is not None and again != edge:
                run.refuse_counts(edge, again)
    return mine


def count_edge(source: Source, fixed: FixedFields, number: int) -> list[Any] | None:
    """Draw a block again; return its number and counts as a shard's `edges` have them."""
    start, stop = number * source.block, (number + 1) * source.block
    first, end = max(start, source.start), min(stop, source.end)
    event, compared = fixed.audit["event"], not source.draws.native
    work = TallyRows(event, source.name, (), source.start if compared else None, source.block)
    edges = draw_shard(source.draws, work, source.task(COUNT, first, end)).edges
    return edges[0] if edges else None


def fit_event(request: Request, source: Source) -> tuple[Request, Fitted]:
    """Choose the event on pilot draws, and the tangent of a claim that is a curve."""
    size, floats = request.pilot_size, request.looks_at_floats
    request.course.step("fit", "choosing the event", 2 * size)
    stated = request.stated_scores
    draws = PilotDraws(source, request.known, request.goal, size, floats, stated)
    fitted = request.attack.fitted_on(draws)
    if isinstance(request.claim, Claim):
        seen = fitted.counts or draws.counts(fitted.event, size)
        request = request.at_tangent(numerator_first(seen, fitted.direction))
    return request, fitted
