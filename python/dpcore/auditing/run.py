"""Audit of a mechanism: choose an event, count it on fresh draws, certify a bound on epsilon.

There are three courses: a fixed number of trials, a stop as soon as the claim is refuted, and
single calls whose latency counts, each on a side by a fair coin. What is fixed before a count
and what was counted are separate: a run file holds both, and a process that goes on with it is
compared with the one that began it. The draws of a finished audit can be repeated.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from ..attacks.attack import Fitted, attack_name, require_scores
from ..claims.trade_off import Claim
from ..errors import AssumptionWarning, invalid
from ..events import Event, EventRecord, Never, event_of
from ..events.event import move_to_host
from ..mechanisms.callables import explain_failures, make_generator, one_by_one, runs_on
from ..mechanisms.declarations import inputs_of, mechanism_attribute
from ..progress import Progress, interrupted_again
from ..records import Counts, attribute_of
from ..report.shown import name_of
from ..results.audits import Audit
from ..results.evidence import Finding, Scored, Spent, numerator_first, unite_digests
from ..sampling.columns import FEWEST_NUMBERED_ROWS, is_numbering, list_columns
from ..sampling.driver import Done, Range, Source, digest_bits, draw_shard
from ..sampling.rows import list_doubts
from ..sampling.sources import CallableDraws, Course, NativeDraws, Place
from ..sampling.tally import Curve, Hits, Tally, TallyRows, Watch
from ..streams import COUNT, PILOT, PROBE
from ..suggestions import suggest_arguments
from .arguments import Arguments, with_signature_of
from .early_stop import Sequence, read_state
from .forecast import settle_trials
from .pair_choice import watch_inputs
from .pilot import PilotDraws, name_columns
from .request import (
    BLOCK,
    OTHER_BITS_NOTE,
    Request,
    request_of,
    settle_request,
)
from .run_files import FixedFields, RunFile, open_run

SETTLED_FIELDS: Final = (
    "mechanism", "pair", "claim", "tangent", "delta", "confidence", "bound", "seed", "floats",
    "randomness", "clean", "declared_loss", "searched", "budget",
)  # fmt: skip
"""Fields of an audit that are those of its request."""

_MAX_LATTICE_TRIALS: Final = 2**20
"""Trials on which the floating-point finding is counted: what it finds is not rare."""
_MAX_CURVE_TRIALS: Final = 2**22
_MAX_FAILING_CALLS: Final = 256
"""Calls that show which input makes a timed call fail."""
_MAX_NUMBERING_ROWS: Final = 256
"""Rows that are read for a column that numbers them."""
_TRIALS_PER_NUMBERING_ROW: Final = 8
"""Of a function of one answer, which may be slow, one row in so many trials at most."""


@suggest_arguments
@with_signature_of(Arguments)
def audit(arguments: Arguments) -> Audit:  # noqa: D417
    """Attack a mechanism and certify a lower bound on the privacy loss that it really has.

    Outputs are drawn on both inputs of a pair of neighbours, and an event is counted on each
    side. Pair, event and direction (which side goes into the numerator) are fixed on separate
    pilot draws before the fresh draws are made and counted; `n = n' = trials` exactly. The result
    says *refuted* when the certified bound exceeds the claim; it can never say that a mechanism
    is private.

    Args:
        mechanism: a native mechanism; any callable `(x, size, rng) -> outputs` with outputs of
            shape `(size, ...)` (or a list of `size` outputs of any kind: strings, tuples, lists
            of changing length), drawn only from the numpy Generator `rng`; an OpenDP
            measurement, a diffprivlib mechanism, a scipy or torch distribution (added to x), a
            torch module; an object whose method `as_mechanism()` returns one, such as a
            `dpcore.torch.PrivateEncoder`. One that encodes its input first may give attacks the
            vector that its noise is added to, see `dpcore.mechanisms.declarations`.
        pair: two neighbouring inputs, a `Pair` or a tuple; several Pairs, from which the one
            expected to certify most is audited (the choice takes at most eight draws per side for
            each of the trials, or 64 for each pair if that is more); a
            `dpcore.pairs.search(...)`. None takes the mechanism's `default_pair()`, or [0]
            against [1] for the package's own noises. Of an L1 claim about many entries, attacks see
            most on `dpcore.pairs.patterns(dim, "one")`.
        neighbour: which inputs the claim speaks of: `dpcore.pairs.L1(1.0)`, `L2`, `Linf`,
            `Replace`, `AddRemove` or an own relation; "l1" is `L1(1.0)`, ("l1", 2.0) is
            `L1(2.0)`. Every pair that is tried is checked, and its `distance` must be 1; a
            mechanism's own claim is held to its own norm and sensitivity besides. An OpenDP
            measurement then brings its claim, and its delta. None reads the claim as one about the
            two inputs given.
        null: allow two equal inputs, on which whatever is found is a false alarm.
        attack: an object of `dpcore.attacks`, its name ("threshold", "majority-vote"), or any
            `(outputs, outputs_prime, pair) -> event`, fed with pilot draws. None or "auto" is
            `dpcore.attacks.Auto()`, the portfolio of all that apply.
        trials: draws on each side that are counted: an int, or "1e8", or 1e8. None is 10**6, and
            4,000 where every output costs a forward pass of a random encoder of texts.
        start: first trial; audits of disjoint ranges of trials with one seed (and one `pilot=`,
            whose default follows `trials`) can be added.
        seconds: time that the audit may take, in place of `trials`: as many trials as fit, in
            whole blocks, or single trials where not one block fits. Their number is fixed before
            the pilot by the speed of a few calls, and recorded: `trials=` repeats the audit. A
            machine whose load changes takes more or less time.
        claim: epsilon that somebody claims, or a curve of `dpcore.claims` such as `GDP(1.0)`;
            None takes the mechanism's own claim where it has one. Without any claim the verdict
            is "no claim given". With bound "clopper_pearson" the event's two limits are compared
            with the whole curve; every other bound, and early stop, tests the tangent (epsilon,
            delta) of the curve that the pilot chose.
        delta: delta of the claim, in [0, 1); not with a curve, which has its own.
        confidence: probability that the bound holds, strictly between 0 and 1.
        bound: name in `dpcore.bounds.BOUNDS`, such as "exact" (less conservative than the
            default), "conditional" (delta 0 only) or "anytime"; fixed before anything is counted.
        stop: "fixed" counts all trials; "refuted" looks after every slice and stops as soon as
            the claim is refuted, on an anytime bound.
        floats: True lets the floating-point finding count towards bound and verdict; each of the
            two then has half of the error probability.
        pilot: draws on each side that choose pair and event and are not counted. None is about
            an eighth of the trials, at most the budget of a search in texts. Rare events need many.
        rng: where all randomness comes from: None (fresh entropy; the report records the
            seed), the seed of a report, an int in [0, 2**63), which repeats it (`--seed` on the
            command line), or a Generator, from which one number is drawn.
        route: how native votes are counted: "integer" compares random integers, "sampled" makes
            every output; both give the same counts. "auto" takes the faster one that exists.
        block: trials in a block, part of what repeats a result. None is 2**17 numbers' worth,
            2**22 for a torch module on CUDA.
        threads: None is all cores for native mechanisms and 1 for callables. A callable with
            `thread_safe = False`, or with randomness of its own and no `thread_safe = True`,
            refuses more, and executors of threads.
        executor: any `concurrent.futures.Executor`, or a Dask `Client`, that draws and counts the
            blocks; in a process pool mechanism and event must be picklable. The counts are the
            same. Where a callable draws from the global generators of Python, numpy or torch,
            every process has them seeded anew for each block; from another generator of its own
            it is refused, for every process would repeat its draws.
        checkpoint: path of a run file, written every five seconds, so that a killed audit goes on:
            the same call again reads it (and takes its seed where `rng` is None). Ctrl-C then
            shows no counts: it writes the file and raises. A mechanism that changed in between is
            refused.
        same_bits: False accepts workers of an executor that give other bits than this process for
            one seed, since numpy's logarithm differs by CPU; the seed then does not repeat the
            counts.
        source: False leaves the mechanism's source text, its hash, and the outputs inside the
            event out of the audit and so out of page and JSON.
        progress: show a bar. None shows it for long work on a terminal or in a notebook.

    Returns:
        The `Audit`. Where rows turn out not to be independent, `checks` says why, the verdict is
        "invalid: ..." and a `dpcore.errors.AssumptionWarning` is given. After Ctrl-C, once both
        sides have counted something, it holds what was counted, with `partial` set and the anytime
        bound.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if a value is out of range; if the pair is missing, its inputs are equal, or
            further apart than `neighbour` says or the mechanism's claim speaks of (where no claim
            was given); if outputs have the wrong shape, are repeated in another block where chance
            is excluded, or are the same in all rows of one call and others in those of another;
            if threads or processes would share or repeat the mechanism's own randomness; if the
            attack does not apply to such outputs.
        KeyboardInterrupt: on Ctrl-C before both sides have counted, or on a second one within two
            seconds.

    Source:
        Jagielski, Ullman and Oprea (2020) (certification by Clopper-Pearson limits on fresh
        draws); Bichsel et al. (2021), section 5 (an event learnt on separate draws); the majority
        vote: Habernal (2022), section 4.

    Example:
        >>> import dpcore
        >>> report = dpcore.audit(dpcore.published.DPText(epsilon=1.0), trials=10**6, rng=1)
        >>> report.verdict, report.epsilon_lower > 8
        ('refuted', True)

        Which inputs are neighbours is part of a claim; a pair beyond it is refused:

        >>> def release(x, size, rng):
        ...     return x + rng.laplace(scale=1.0, size=(size, len(x)))
        >>> pair, unit = dpcore.pairs.zeros_ones(8), dpcore.pairs.L1(1.0)
        >>> dpcore.audit(release, pair, neighbour=unit, claim=1.0)
        Traceback (most recent call last):
        ValueError: pair must be at L1 distance at most 1.0 (neighbour=L1(radius=1.0)), got 8.0
    """
    return run_with_checkpoint(arguments)


def run_with_checkpoint(arguments: Arguments, usual_trials: int | None = None) -> Audit:
    """Audit as the arguments say, with the run file that they name, if any.

    Args:
        arguments: the arguments.
        usual_trials: default number of trials of the caller. Defaults to that of `audit`.
    """
    path = arguments.checkpoint
    with nullcontext() if path is None else open_run(path) as run:
        report: Audit = run_arguments(arguments, run, usual_trials=usual_trials)
    return report


def run_arguments(
    arguments: Arguments,
    run: RunFile | None = None,
    count: Callable[[Request, Source, FixedFields, RunFile | None], Any] | None = None,
    usual_trials: int | None = None,
) -> Any:
    """Audit as the arguments say.

    Args:
        arguments: the arguments.
        run: the run file, locked, if there is one; a part of a run counts only its own trials.
        count: what is done once all is fixed. Defaults to counting all trials.
        usual_trials: as in `run_with_checkpoint`.
    """
    budget = arguments.seconds
    if run is not None and run.fixed is not None:
        rng = run.fixed.audit["seed"] if arguments.rng is None else arguments.rng
        arguments = replace(arguments, rng=rng)
        if budget is not None and arguments.trials is None:
            # The trials that were fixed when the run was begun, whatever the speed is now.
            held = run.fixed.audit["budget"]
            if budget != held:
                raise invalid("seconds", f"{held!r} as in the run file {run.path}", budget)
            arguments = replace(arguments, trials=run.fixed.trials, seconds=None)
    if run is not None and not run.same_bits:
        arguments = replace(arguments, same_bits=False)
    with Progress(
        "", None, arguments.progress, alive=arguments.executor is None, by_call=True
    ) as bar:
        settle = partial(settle_trials, say=bar.say)
        unsettled = request_of(arguments, Course(bar), settle, usual_trials)
        request = settle_request(replace(unsettled, budget=budget))
        if run is not None:
            run.same_bits = request.same_bits
            if request.attack.times:
                raise invalid("checkpoint", "None for Timing, which nothing repeats", str(run.path))
        if request.attack.times:
            with watch_lists(request):
                return audit_timing(request)
        source = request.make_source(request.pair)
        if count is not None and request.stop != "fixed":
            raise invalid("stop", "'fixed' for a run that is counted in parts", request.stop)
        if request.stop == "refuted":
            with watch_lists(request):
                return stopped_early(request, source, run)
        if run is not None and run.fixed is not None:
            fixed = resume_run(request, source, run)
        else:
            with watch_lists(request):
                request, fitted = fit_event(request, source)
            fixed = fix_fields(request, source, fitted)
            if run is not None:
                run.begin(fixed)
        with watch_lists(request):
            return (count or count_event)(request, source, fixed, run)


def watch_lists(request: Request) -> AbstractContextManager[None]:
    """Refuse a change of the inputs by the calls of a block; arrays are read-only."""
    sides = request.pair.x, request.pair.x_prime
    if all(type(side) is np.ndarray for side in sides):
        return nullcontext()
    return watch_inputs(name_of(request.mechanism), request.pair)


def list_fixed_fields(request: Request, source: Source, fitted: Fitted) -> dict[str, Any]:
    """List the fields of an audit that are fixed before anything is counted, by name."""
    return {name: getattr(request, name) for name in SETTLED_FIELDS} | {
        "neighbour": request.wanted.relation,
        "attack": attack_name(request.attack),
        "event": name_columns(fitted.event, request.columns),
        "direction": fitted.direction,
        "block": source.block,
        "route": source.route,
        "end": request.start + request.trials,
        "pilot": fitted.pilot,
        "shape": source.shape,
        "notes": (*request.pair_notes, *request.notes, *fitted.notes, *fitted.remarks),
        "runs_on": runs_on(request.mechanism),
        "read": fitted.read,
        "inside": fitted.inside if request.source else (),
        "provenance": (request.provenance,),
        "constant": fitted.constant,
        # Outputs that never differ show no randomness, whatever the mechanism says of itself.
        "randomness": "not known" if fitted.is_steady else request.randomness,
    }


def make_audit(
    request: Request, source: Source, fitted: Fitted, counts: Counts, **more: Any
) -> Audit:
    """Make the audit from the request, the fitted event and the counts."""
    fixed_fields = list_fixed_fields(request, source, fitted)
    more |= {
        "notes": fixed_fields["notes"] + more.get("notes", ()),
        "end": max(fixed_fields["end"], counts.n),
    }
    ranges = ((request.start, request.start + counts.n),)
    more = _list_course(request, source, ranges) | {"ranges": ranges} | more
    return Audit(**fixed_fields | more, counts=counts)


def _list_course(request: Request, source: Source, ranges: tuple[Range, ...]) -> dict[str, Any]:
    """List the fields that say how a run went, with the digests of the counted blocks only."""
    return {
        "threads": source.threads,
        "seconds": request.course.seconds("count"),
        "spent": tuple(Spent(*step) for step in request.course.spent()),
        "digests": unite_digests((), source.list_digests(ranges)),
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
    course = _list_course(request, source, done.ranges)
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
        rounding_won=False,
        curve=curve,
        checks=fixed.checks + list_doubts([[tally.evidence], [tally_prime.evidence]]),
    ).with_winner()


def name_row_numbers(checks: tuple[str, ...], source: Source) -> tuple[str, ...]:
    """Return the checks, preceded by the column that numbers the rows, if one does.

    Args:
        checks: what contradicts the independence of rows; without any, no warning is given.
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
    for check in checks:
        # As if it came from the line that called dpcore.audit.
        warnings.warn(check, AssumptionWarning, stacklevel=5)


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
    n, n_prime = tally.rows, tally_prime.rows
    groups = zip(tally.hits[1:], tally_prime.hits[1:], multiplicities, strict=True)
    return tuple(Counts(k, n * many, k_prime, n_prime * many) for k, k_prime, many in groups)


def count_shards(source: Source, fixed: FixedFields, run: RunFile | None) -> Done:
    """Count both sides, shard by shard.

    Ctrl-C keeps the shards that came back; with a run file no result is shown, and it goes on.
    """
    event, course, watches = fixed.audit["event"], source.course, _list_watches(fixed)
    done = Done() if run is None else run.done
    start, stop = (fixed.start, fixed.start + fixed.trials) if run is None else run.range
    course.step("count", "counting", 2 * (stop - start - done.trials))
    begun = course.clock()
    with nullcontext() if run is None else keep_on_errors(run):
        try:
            for shard in source.counted(event, COUNT, done.left(start, stop), watches):
                # One name for all, so that no Ctrl-C can fall between counts and their trials.
                done = done.plus(shard)
                if run is not None:
                    run.keep(done, shard.edges, source.replays, course.clock() - begun)
                    begun = course.clock()
                course.bar.relabel(describe_counting("counting", source, run))
        except KeyboardInterrupt:
            if run is not None or interrupted_again() or not done.ranges:
                raise
    return done


def describe_counting(what: str, source: Source, run: RunFile | None = None) -> str:
    """Describe for the bar what is counted, by how many workers, and when the file was written."""
    workers = f" on {source.worker_count:,} workers" if source.worker_count > 1 else ""
    return f"{what}{workers}" + ("" if run is None else f", run file of {run.time_of_day}")


@contextmanager
def keep_on_errors(run: RunFile) -> Iterator[None]:
    """Write the run file at the end, after Ctrl-C and after errors, which then say how to go on."""
    run.require_file()
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(run.write_last()) from None
    except BaseException as error:
        error.add_note(run.write_last())
        raise
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
    if fixed.whole:
        fitted = Fitted(
            fixed.audit["event"], fixed.audit["direction"], None, fixed.audit["pilot"],
            fixed.thresholds, remarks=fixed.remarks, constant=fixed.audit["constant"],
            is_steady=fixed.audit["randomness"] == "not known",
        )  # fmt: skip
        if isinstance(request.claim, Claim):
            request = replace(
                request,
                tangent=fixed.audit["tangent"],
                delta=fixed.audit["delta"],
                declared_loss=fixed.audit["declared_loss"],
            )
    else:
        request, fitted = fit_event(request, source)
    source.replays.restore(fixed.collisions, run.digests, run.zeros)  # a second pilot adds pairs
    mine = fix_fields(request, source, fitted)
    run.refuse_difference(mine)
    mine.lattice = fixed.lattice if fixed.whole else mine.lattice
    mine.thresholds, mine.checks = fixed.thresholds, fixed.checks
    mine.bits = fixed.bits
    for name in ("notes", "read", "inside", "searched", "budget", "provenance"):
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
    claim = request.claim
    if claim is not None and not isinstance(claim, Claim):
        claim *= request.pair.distance
    draws = PilotDraws(source, request.known, request.goal, size, floats, stated, claim)
    fitted = draws.add_facts(request.attack.fitted_on(draws), null=request.null)
    if isinstance(request.claim, Claim):
        counts = fitted.counts or draws.counts(fitted.event, size)
        request = request.at_tangent(numerator_first(counts, fitted.direction))
    return request, fitted


def stopped_early(request: Request, source: Source, run: RunFile | None = None) -> Audit:
    """Look after every slice; stop when the claim is refuted."""
    if request.claim is None:
        raise invalid("claim", "given, where stop is 'refuted'", None)
    attack = require_scores(request.attack, "where stop is 'refuted'")
    pilot = min(request.trials, BLOCK) if request.pilot is None else request.pilot
    course = Sequence(source, request, attack, pilot)
    partial = _run_sequence(request, source, course, run)
    request.course.step("report", "checking the rows")
    checks = request.doubted + course.doubts
    checks = checks if partial else name_row_numbers(checks, source)
    warn_of((*checks, *course.remarks))
    slices, (nan, nan_prime) = course.slices, course.nan
    last = Fitted(
        slices[-1].event, slices[-1].direction, None, pilot, np.empty(0),
        remarks=course.remarks, read=course.read, inside=course.inside,
        notes=course.facts.notes, is_steady=course.facts.is_steady,
        constant="" if request.null else course.facts.constant,
    )  # fmt: skip
    # Over different events: for the record only.
    counts = sum((piece.counts for piece in slices[1:]), slices[0].counts)
    return make_audit(
        course.request, source, last, counts, nan=nan, nan_prime=nan_prime, partial=partial,
        bound="anytime", stop="refuted", slices=slices, checks=checks,
    )  # fmt: skip


def _run_sequence(request: Request, source: Source, course: Sequence, run: RunFile | None) -> bool:
    """Count the slices of an audit with early stop; return True if Ctrl-C ended it."""
    if run is None:
        return course.run()
    never = Fitted(Never(), "x", 0.0, course.pilot, np.empty(0))
    fixed = fix_fields(request, source, never)
    if run.fixed is None:
        run.begin(fixed)
    else:
        run.refuse_difference(fixed)
        source.replays.restore(run.fixed.collisions, run.digests, run.zeros)
    state = read_state(run.slices) if run.slices else None
    begun = [request.course.clock()]

    def keep() -> None:
        now = request.course.clock()
        run.keep_slices(course.to_dict, source.replays, now - begun[0])
        request.course.bar.relabel(describe_counting("counting until refuted", source, run))
        begun[0] = now

    with keep_on_errors(run):
        if state is not None:
            course.restore(state, run.refuse_mechanism)
        try:
            course.run(keep)
        finally:
            run.slices = course.to_dict()
    return False


def audit_timing(request: Request) -> Audit:
    """Time `2 trials` calls; the event is one of output and latency together.

    Args:
        request: the checked arguments; its bound is replaced by the conditional one, which is the
            only one that allows for sides drawn by coin.

    Returns:
        The audit. Its counts are the calls on each side that hit the event, of all calls.

    Raises:
        ValueError: if the request asks for a delta, for early stop, for several pairs or for more
            than one thread.
    """
    if isinstance(request.claim, Claim):
        raise invalid("claim", "a number for Timing, whose bound knows no delta", request.claim)
    if request.delta:
        raise invalid("delta", "0 for Timing, whose bound has no form for it", request.delta)
    if request.stop != "fixed" or request.executor is not None or request.start:
        unsuitable = (request.stop, request.executor, request.start)
        raise invalid("stop, executor, start", "left alone for Timing", unsuitable)
    if request.workers != 1:
        raise invalid("threads", "1 for Timing", request.workers)
    if mechanism_attribute(request.mechanism, "encodes_once"):
        requirement = "another than Timing where a text is encoded once, before the calls"
        raise invalid("attack", requirement, request.attack.given)
    course = request.course
    # A thread that draws a bar would be timed too.
    course.step("count", "timing calls, one by one (the bar stands still)")
    course.bar.stand_still()
    rng = make_generator(request.seed, COUNT, 0, 0)

    calls = 2 * request.trials
    inputs = inputs_of(request.mechanism, request.pair)

    def make_rng(side: int, number: int) -> np.random.Generator:
        return make_generator(request.seed, PROBE, side, number)

    limit, sides = min(calls, _MAX_FAILING_CALLS), (inputs.x, inputs.x_prime)
    with explain_failures(request.mechanism, sides, limit, make_rng):
        timed = request.attack.timed_counts(
            lambda x: request.mechanism(x, 1, rng),
            inputs,
            calls,
            make_generator(request.seed, PILOT, 0, 0),
            pilot=None if request.pilot is None else 2 * request.pilot,
            confidence=request.confidence,
        )
    draws = CallableDraws(request.mechanism, request.pair, request.seed, 1, ())
    source = Source(draws, 1, calls, route="timed")
    fitted = Fitted(timed.event, timed.direction, None, timed.pilot, np.empty(0))
    counts = Counts(timed.k, calls, timed.k_prime, calls)
    course.drew(calls + timed.pilot)
    return make_audit(request, source, fitted, counts, bound="conditional", notes=timed.notes)
