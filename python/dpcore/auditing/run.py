"""Audit of a mechanism: choose an event, count it on fresh draws, certify a bound on epsilon.

There are three kinds of audits. The first kind counts a fixed number of trials. The second kind
stops as soon as the claim is refuted. The third kind measures the time of single calls; a fair coin
draws the input of each call. All decisions that are made before the count are stored separately
from the counts. A run file contains the decisions and the counts, so that another process can
continue the audit.
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
from ..progress import Progress, record_interrupt
from ..records import Counts, attribute_of
from ..report.shown import name_of
from ..results.audits import Audit
from ..results.evidence import Finding, Scored, Spent, put_numerator_first, unite_digests
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
"""Fields of an audit that are copied from its request."""

_MAX_LATTICE_TRIALS: Final = 2**20
"""Largest number of trials on which the event of the floating-point bits is counted."""
_MAX_CURVE_TRIALS: Final = 2**22
_MAX_FAILING_CALLS: Final = 256
"""Largest number of calls that are made to find the input on which a timed call fails."""
_MAX_NUMBERING_ROWS: Final = 256
"""Largest number of rows that are searched for a column of row numbers."""
_TRIALS_PER_NUMBERING_ROW: Final = 8
"""Number of trials for each of these rows, for a function that makes one output per call, which may
be slow."""


@suggest_arguments
@with_signature_of(Arguments)
def audit(arguments: Arguments) -> Audit:  # noqa: D417
    """Attack a mechanism, and certify a lower bound on its true privacy loss epsilon.

    The audit draws outputs of the mechanism on two neighbouring inputs, x and x'. An attack chooses
    an event on the pilot, which is the first draws. The audit then makes `trials` fresh draws on
    each input and counts the event. From the two counts it computes a lower confidence bound on
    epsilon. The verdict is *refuted* if the bound exceeds the claim. An audit never shows that a
    mechanism is private.

    Args:
        mechanism: the mechanism to audit, one of these:

            - a native mechanism, such as `dpcore.Laplace(1.0)`, which the compiled core of dpcore
              draws;
            - a callable `(x, size, rng) -> outputs` that makes `size` outputs. The result is an
              array of shape `(size, ...)`, or a list of `size` objects, such as strings, tuples, or
              lists of varying length. All randomness must come from the numpy Generator `rng`;
            - an OpenDP measurement, a diffprivlib mechanism, or a torch module;
            - a scipy or torch distribution: noise that is added to x;
            - an object whose method `as_mechanism()` returns a mechanism, such as a
              `dpcore.torch.PrivateEncoder`.

            If the mechanism encodes its input before it adds noise, it may state the encoded
            vector (see `dpcore.mechanisms.declarations`).
        pair: the two neighbouring inputs, as a `Pair` or a tuple. If several Pairs are given, the
            audit chooses the pair with the largest expected bound. For this choice, dpcore makes at
            most ``8 * trials`` draws per input, or 64 draws per input and pair if this is more. A
            search, `dpcore.pairs.search(...)`, is allowed too. Defaults to the mechanism's
            `default_pair()`, or to [0] and [1] for noises of dpcore. If the claim is about inputs
            with many entries at an L1 distance, try `dpcore.pairs.patterns(dim, "one")`: attacks
            reach the largest bounds on these pairs.
        neighbour: relation that defines which inputs are neighbours in the claim. Give
            `dpcore.pairs.L1(1.0)`, `L2`, `Linf`, `Replace`, `AddRemove` or your own relation. "l1"
            means `L1(1.0)`, and ("l1", 2.0) means `L1(2.0)`. dpcore checks that the inputs of each
            pair are neighbours; the `distance` of the pair must be 1. If the mechanism states its
            own claim, dpcore also checks the pair against the norm and the sensitivity of the
            mechanism. With a relation, an OpenDP measurement provides claim and delta. None means
            that the claim is about the two given inputs.
        null: True to allow two equal inputs. Every finding on equal inputs is a false alarm.
        attack: an object of `dpcore.attacks`, its name (such as "threshold" or "majority-vote"), or
            a function `(outputs, outputs_prime, pair) -> event`, which is called with pilot draws.
            Defaults to `dpcore.attacks.Auto()`, which tries all attacks that apply.
        trials: number of counted draws per input: an int, or a text or float such as "1e8" or 1e8.
            Defaults to 10**6, or to 4,000 if every output needs a forward pass of a random text
            encoder.
        start: number of the first trial. Audits of different ranges of trials can be merged if they
            have the same seed and the same `pilot`. Give `pilot` explicitly, because its default
            depends on `trials`.
        seconds: time in seconds that the audit may take, instead of `trials`. dpcore measures a few
            calls and then chooses the number of trials, before the pilot. This number is a multiple
            of `block` if a block fits. The result contains the number, and `trials=` with this
            number repeats the audit. If the load of the machine changes, the audit takes more or
            less time.
        claim: the claimed epsilon, or a curve of `dpcore.claims` such as `GDP(1.0)`. Defaults to
            the mechanism's own claim. If the mechanism has no claim either, the verdict is "no
            claim given". A curve is tested in one of two ways. The bound "clopper_pearson" compares
            confidence limits on the two probabilities of the event with the whole curve. All other
            bounds, and `stop="refuted"`, test one tangent (epsilon, delta) of the curve, which is
            chosen on the pilot.
        delta: delta of the claim, in [0, 1). Leave it out if the claim is a curve.
        confidence: probability that the bound is valid, strictly between 0 and 1.
        bound: name of the confidence bound, from `dpcore.bounds.BOUNDS`: such as "exact" (less
            conservative than the default), "conditional" (for delta 0 only) or "anytime".
        stop: "fixed" counts all trials. "refuted" counts the trials in slices, and stops as soon as
            the claim is refuted. Its bound is valid at any time of the count.
        floats: True to count a second event, on the last bits of the outputs (a floating-point
            leak), towards the bound and the verdict. Each of the two events then gets half of the
            error probability.
        pilot: number of draws per input on which the pair and the event are chosen. These draws are
            not counted. Defaults to about an eighth of the trials. For a search in texts, the
            default is at most the budget of the search. Rare events need a large pilot.
        rng: source of all randomness. With None, dpcore chooses a random seed and the report shows
            it. An int in [0, 2**63) is the seed, and the seed of a report repeats its audit. From a
            numpy Generator, one number is drawn as the seed.
        route: how the attack "majority-vote" is counted for a native mechanism. "integer" compares
            random integers, and "sampled" makes every output. The counts are the same. "auto"
            chooses the faster available way.
        block: number of trials in a block, which is drawn in one call. The same number is needed to
            repeat a result. By default, the outputs of a block have about 2**17 numbers in total,
            or 2**22 for a torch module on CUDA.
        threads: number of threads. Defaults to all cores for native mechanisms, and to 1 for
            callables. dpcore raises a ValueError for several threads (or an executor of threads) if
            the callable has `thread_safe = False`. It also does so if the callable has its own
            randomness, unless the callable has `thread_safe = True`.
        executor: a `concurrent.futures.Executor` or a Dask `Client` whose workers draw and count
            the blocks. For a pool of processes, the mechanism and the event must be picklable. The
            counts do not depend on the executor. If a callable uses the global generators of
            Python, numpy or torch, every process seeds these generators for each block. If a
            callable uses another generator of its own, dpcore raises a ValueError, because every
            process would repeat the same draws.
        checkpoint: path of a run file, which is written every five seconds. If the audit is killed,
            the same call continues it, with the seed of the file if `rng` is None. With a run file,
            Ctrl-C writes the file and raises KeyboardInterrupt, and no counts are shown. dpcore
            raises a ValueError if the mechanism has changed since the beginning.
        same_bits: False to accept workers of an executor whose outputs differ from the outputs of
            this process in some bits, for the same seed. This happens because the logarithm of
            numpy differs between CPUs. The seed then may not repeat the counts.
        source: False to leave the source text of the mechanism, the hash of this text, and examples
            of outputs out of the result. Its page and JSON then do not contain them either.
        progress: True to show a progress bar. None shows a bar for long work on a terminal or in a
            notebook.

    Returns:
        The `Audit`. If dpcore finds that the outputs are not independent, the verdict is
        "invalid: ...", the attribute `checks` gives the reason, and dpcore issues a
        `dpcore.errors.AssumptionWarning`. After Ctrl-C, the result has the counts so far, `partial`
        is True, and the bound is the bound "anytime", which is valid whenever the count stops.

    Raises:
        TypeError: if an argument is of the wrong type.
        ValueError: for one of these reasons:

            - a value is out of range;
            - no pair is given and the mechanism has no default pair, or the two inputs are equal;
            - the inputs are farther apart than `neighbour` allows;
            - no claim is given, and the inputs are farther apart than the mechanism's claim allows;
            - the outputs have the wrong shape;
            - the outputs of one block occur again in another block, and not by chance;
            - all outputs of a call are equal, but different calls give different outputs;
            - threads or processes would share or repeat the mechanism's own randomness;
            - the attack does not apply to outputs of this type.
        KeyboardInterrupt: on Ctrl-C before anything is counted on x and on x', or on a second
            Ctrl-C within two seconds.

    Source:
        Jagielski, Ullman and Oprea (2020), on certification by Clopper-Pearson limits on fresh
        draws. Bichsel et al. (2021), section 5, on events learned on separate draws. Habernal
        (2022), section 4, on the majority vote.

    Example:
        >>> import dpcore
        >>> report = dpcore.audit(dpcore.published.DPText(epsilon=1.0), trials=10**6, rng=1)
        >>> report.verdict, report.epsilon_lower > 8
        ('refuted', True)

        The relation of neighbours is a part of the claim. dpcore raises a ValueError if the inputs
        are farther apart than the relation allows:

        >>> def release(x, size, rng):
        ...     return x + rng.laplace(scale=1.0, size=(size, len(x)))
        >>> pair, unit = dpcore.pairs.zeros_ones(8), dpcore.pairs.L1(1.0)
        >>> dpcore.audit(release, pair, neighbour=unit, claim=1.0)
        Traceback (most recent call last):
        ValueError: pair must be at L1 distance at most 1.0 (neighbour=L1(radius=1.0)), got 8.0
    """
    return run_with_checkpoint(arguments)


def run_with_checkpoint(arguments: Arguments, usual_trials: int | None = None) -> Audit:
    """Run an audit. If the arguments contain the path of a run file, open this file first.

    Args:
        arguments: the arguments of the audit.
        usual_trials: default number of trials. Defaults to that of `dpcore.audit`.
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
    """Run an audit with the given arguments, and with an opened run file.

    Args:
        arguments: the arguments of the audit.
        run: the run file, locked by this process, or None. If the file is for a part of the trials,
            only these trials are counted.
        count: function that counts after the event is chosen, and whose result is returned. By
            default, all trials are counted and an `Audit` is returned.
        usual_trials: default number of trials. Defaults to that of `dpcore.audit`.
    """
    budget = arguments.seconds
    if run is not None and run.fixed is not None:
        rng = run.fixed.audit["seed"] if arguments.rng is None else arguments.rng
        arguments = replace(arguments, rng=rng)
        if budget is not None and arguments.trials is None:
            # Use the number of trials that was fixed at the beginning, at any speed.
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
                return run_with_early_stop(request, source, run)
        if run is not None and run.fixed is not None:
            fixed = resume_run(request, source, run)
        else:
            with watch_lists(request):
                request, fitted = fit_event(request, source)
            fixed = collect_fixed_fields(request, source, fitted)
            if run is not None:
                run.begin(fixed)
        with watch_lists(request):
            return (count or count_event)(request, source, fixed, run)


def watch_lists(request: Request) -> AbstractContextManager[None]:
    """Return a context manager that raises a ValueError if calls in it change the inputs.

    Numpy arrays are not checked, because they are read-only.
    """
    sides = request.pair.x, request.pair.x_prime
    if all(type(side) is np.ndarray for side in sides):
        return nullcontext()
    return watch_inputs(name_of(request.mechanism), request.pair)


def list_fixed_fields(request: Request, source: Source, fitted: Fitted) -> dict[str, Any]:
    """Return the fields of an `Audit` that are known before the count, by name."""
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
        # Outputs that never differ show no randomness, even if the mechanism declares some.
        "randomness": "not known" if fitted.is_steady else request.randomness,
    }


def make_audit(
    request: Request, source: Source, fitted: Fitted, counts: Counts, **more: Any
) -> Audit:
    """Return the `Audit`, made from the request, the chosen event and the counts."""
    fixed_fields = list_fixed_fields(request, source, fitted)
    more |= {
        "notes": fixed_fields["notes"] + more.get("notes", ()),
        "end": max(fixed_fields["end"], counts.n),
    }
    ranges = ((request.start, request.start + counts.n),)
    more = _list_course(request, source, ranges) | {"ranges": ranges} | more
    return Audit(**fixed_fields | more, counts=counts)


def _list_course(request: Request, source: Source, ranges: tuple[Range, ...]) -> dict[str, Any]:
    """Return the fields of an `Audit` on threads, times and hashes of counted blocks, by name."""
    return {
        "threads": source.threads,
        "seconds": request.course.seconds("count"),
        "spent": tuple(Spent(*step) for step in request.course.spent()),
        "digests": unite_digests((), source.list_digests(ranges)),
    }


def collect_fixed_fields(request: Request, source: Source, fitted: Fitted) -> FixedFields:
    """Return all facts of an audit that are fixed before the count, for a run file."""
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
    """Count the event on fresh draws, in all trials that are not counted yet.

    Args:
        request: the checked arguments of the audit.
        source: object that makes the draws of the mechanism.
        fixed: facts that were fixed before the count, such as the event.
        run: the run file with earlier counts, or None.

    Returns:
        The `Audit`, with earlier counts included.
    """
    done = count_shards(source, fixed, run)
    request.course.step("report", "checking the rows")
    course = _list_course(request, source, done.ranges)
    if run is not None:
        course |= {"seconds": run.seconds, "looked": run.looked, "same_bits": run.same_bits}
    report = finish_audit(fixed, done, **course)
    # After Ctrl-C, no further outputs are drawn.
    if not report.partial:
        report = replace(report, checks=add_row_number_check(report.checks, source))
    if run is not None and not source.draws.native and not request.repeats_bits:
        report = replace(report, checks=report.checks + run.compare_sessions())
    warn_of((*report.checks, *fixed.remarks))
    return report


def finish_audit(
    fixed: FixedFields, done: Done, *, looked: bool = False, same_bits: bool = True, **more: Any
) -> Audit:
    """Return the `Audit`, made from the facts that were fixed before the count and the counts.

    Args:
        fixed: facts that were fixed before the count, such as the event.
        done: the counts of at least one trial.
        looked: True if a person saw counts before the end. The bound is then the bound "anytime",
            which is valid whenever the count stops.
        same_bits: False if processes were accepted whose outputs differ in some bits for one seed.
        more: further fields of the `Audit`.
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
        pooled=_list_group_counts(fixed.audit["event"], tally, tally_prime)
        if stop == "fixed"
        else (),
        floating_point=finding,
        rounding_won=False,
        curve=curve,
        checks=fixed.checks + list_doubts([[tally.evidence], [tally_prime.evidence]]),
    ).with_winner()


def add_row_number_check(checks: tuple[str, ...], source: Source) -> tuple[str, ...]:
    """Add a sentence to `checks` if a column of the outputs contains the numbers of the rows.

    Args:
        checks: sentences that say why the outputs do not seem independent. If the tuple is empty,
            it is returned unchanged, and no outputs are drawn.
        source: object that makes the draws. Some outputs on x are drawn and searched for numbers of
            rows.

    Returns:
        The sentences, with the new sentence first.
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
    """Issue an AssumptionWarning for each sentence in `checks`."""
    for check in checks:
        # The warning names the line that called dpcore.audit.
        warnings.warn(check, AssumptionWarning, stacklevel=5)


def _list_watches(fixed: FixedFields) -> tuple[Watch, ...]:
    """List what is counted besides the event.

    This is the event of the floating-point bits, and the trade-off curve of the score.
    """
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
            # After Ctrl-C n was not fixed in advance, and the finding has no other bound.
            continue
        if name == "curve":
            curve = Scored(fixed.thresholds, np.array(k), n, np.array(k_prime), n_prime)
        elif fixed.lattice is not None:
            event, direction = fixed.lattice
            counts = Counts(k[0], n, k_prime[0], n_prime)
            # The tangent's delta is large, and is not chosen for this finding.
            delta = fixed.audit["delta"] if fixed.audit["tangent"] is None else 0.0
            finding = Finding(event, direction, counts, delta, fixed.audit["confidence"])
    return finding, curve


def _list_group_counts(event: Event, tally: Tally, tally_prime: Tally) -> tuple[Counts, ...]:
    multiplicities = attribute_of(EventRecord, event, "multiplicities")
    n, n_prime = tally.rows, tally_prime.rows
    groups = zip(tally.hits[1:], tally_prime.hits[1:], multiplicities, strict=True)
    return tuple(Counts(k, n * many, k_prime, n_prime * many) for k, k_prime, many in groups)


def count_shards(source: Source, fixed: FixedFields, run: RunFile | None) -> Done:
    """Count the event in all trials on x and on x' that are not counted yet.

    After Ctrl-C, the counts so far are returned. With a run file, KeyboardInterrupt is raised
    instead, and the audit can be continued from the file.
    """
    event, course, watches = fixed.audit["event"], source.course, _list_watches(fixed)
    done = Done() if run is None else run.done
    start, stop = (fixed.start, fixed.start + fixed.trials) if run is None else run.range
    course.step("count", "counting", 2 * (stop - start - done.trials))
    begun = course.clock()
    with nullcontext() if run is None else keep_on_errors(run):
        try:
            for shard in source.counted(event, COUNT, done.left(start, stop), watches):
                # A single assignment, so that Ctrl-C cannot separate counts from their trials.
                done = done.plus(shard)
                if run is not None:
                    run.keep(done, shard.edges, source.replays, course.clock() - begun)
                    begun = course.clock()
                course.bar.relabel(describe_counting("counting", source, run))
        except KeyboardInterrupt:
            if run is not None or record_interrupt() or not done.ranges:
                raise
    return done


def describe_counting(what: str, source: Source, run: RunFile | None = None) -> str:
    """Return the text of the progress bar: the step, workers, and last write of the run file."""
    workers = f" on {source.worker_count:,} workers" if source.worker_count > 1 else ""
    return f"{what}{workers}" + ("" if run is None else f", run file of {run.time_of_day}")


@contextmanager
def keep_on_errors(run: RunFile) -> Iterator[None]:
    """Write the run file at the end of the `with` block, and after an error in it.

    The error gets a note on how to continue the audit.
    """
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
    """Check that this process can continue the audit of a run file.

    Args:
        request: the checked arguments of the audit.
        source: object that makes the draws of the mechanism. The hashes of earlier blocks are
            copied to it from the file.
        run: the run file.

    Returns:
        The facts that were fixed before the count, with the mechanism and the event as objects.

    Raises:
        ValueError: if an argument differs from the file, or if blocks that are drawn again give
            other counts than in the file.
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
    mine = collect_fixed_fields(request, source, fitted)
    run.refuse_difference(mine)
    mine.lattice = fixed.lattice if fixed.whole else mine.lattice
    mine.thresholds, mine.checks = fixed.thresholds, fixed.checks
    mine.bits = fixed.bits
    for name in ("notes", "read", "inside", "searched", "budget", "provenance"):
        mine.audit[name] = fixed.audit[name]
    if request.repeats_bits:
        for edge in run.edges:
            again = recount_edge_block(source, mine, edge[0])
            if again is not None and again != edge:
                run.refuse_changed_counts(edge, again)
    return mine


def recount_edge_block(source: Source, fixed: FixedFields, number: int) -> list[Any] | None:
    """Draw a counted block again, and return its number and counts, to compare them with the file.

    The result is None if the block has no counts to compare.
    """
    start, stop = number * source.block, (number + 1) * source.block
    first, end = max(start, source.start), min(stop, source.end)
    event, compared = fixed.audit["event"], not source.draws.native
    work = TallyRows(event, source.name, (), source.start if compared else None, source.block)
    edges = draw_shard(source.draws, work, source.task(COUNT, first, end)).edges
    return edges[0] if edges else None


def fit_event(request: Request, source: Source) -> tuple[Request, Fitted]:
    """Choose the event on pilot draws. If the claim is a curve, choose its tangent too."""
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
        request = request.at_tangent(put_numerator_first(counts, fitted.direction))
    return request, fitted


def run_with_early_stop(request: Request, source: Source, run: RunFile | None = None) -> Audit:
    """Run an audit with early stop, which ends as soon as the claim is refuted."""
    if request.claim is None:
        raise invalid("claim", "given, where stop is 'refuted'", None)
    attack = require_scores(request.attack, "where stop is 'refuted'")
    pilot = min(request.trials, BLOCK) if request.pilot is None else request.pilot
    course = Sequence(source, request, attack, pilot)
    partial = _run_sequence(request, source, course, run)
    request.course.step("report", "checking the rows")
    checks = request.doubted + course.doubts
    checks = checks if partial else add_row_number_check(checks, source)
    warn_of((*checks, *course.remarks))
    slices, (nan, nan_prime) = course.slices, course.nan
    last = Fitted(
        slices[-1].event, slices[-1].direction, None, pilot, np.empty(0),
        remarks=course.remarks, read=course.read, inside=course.inside,
        notes=course.facts.list_notes(slices[-1].event), is_steady=course.facts.is_steady,
        constant="" if request.null else course.facts.constant,
    )  # fmt: skip
    # The slices may have different events, so this sum is only a record.
    counts = sum((piece.counts for piece in slices[1:]), slices[0].counts)
    return make_audit(
        course.request, source, last, counts, nan=nan, nan_prime=nan_prime, partial=partial,
        bound="anytime", stop="refuted", slices=slices, checks=checks,
    )  # fmt: skip


def _run_sequence(request: Request, source: Source, course: Sequence, run: RunFile | None) -> bool:
    """Count the slices of an audit with early stop. Return True if Ctrl-C ended the count."""
    if run is None:
        return course.run()
    never = Fitted(Never(), "x", 0.0, course.pilot, np.empty(0))
    fixed = collect_fixed_fields(request, source, never)
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
    """Run an audit that measures the time of calls, with an event of output and latency together.

    The audit counts ``2 * trials`` calls of one output. A fair coin draws the input of each call.

    Args:
        request: the checked arguments. The conditional bound replaces the bound in the request,
            because it is the only bound that is valid if a coin draws the inputs.

    Returns:
        The `Audit`. Its counts k and k' are the numbers of calls on x and on x' that are in the
        event. Its n and n' are the number of all calls on x and x' together.

    Raises:
        ValueError: if the claim is a curve, or if the request has a delta, early stop, an executor,
            a `start` or more than one thread.
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
    # A thread that draws a bar would disturb the times.
    course.step("count", "timing calls, one by one (the bar stands still)")
    course.bar.stop_thread()
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
