"""Audit of a mechanism: choose an event, count it on fresh draws, certify a bound on epsilon.

There are three kinds of audits. The first kind counts a fixed number of trials. The second kind
stops as soon as the claim is refuted. The third kind measures the time of single calls; a fair coin
chooses the input of each call. All decisions that are made before the count are stored separately
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
from ..mechanisms.callables import device_text, is_unbatched, make_generator, note_failing_input
from ..mechanisms.declarations import convert_pair, get_or_default
from ..progress import Progress, record_interrupt_and_check_second
from ..records import Counts, get_attribute
from ..report.shown import name_of
from ..results.audits import Audit
from ..results.evidence import Finding, Scored, Spent, put_numerator_first, unite_smallest_digests
from ..sampling.columns import FEWEST_NUMBERED_ROWS, is_row_numbers_in_any_order, list_columns
from ..sampling.driver import Done, Range, Source, digest_sample_outputs, run_shard
from ..sampling.rows import list_doubts
from ..sampling.sources import CallableDraws, NativeDraws, Place, TimeLog
from ..sampling.tally import Curve, Hits, Tally, TallyRows, Watch
from ..streams import COUNT, PILOT, PROBE
from ..suggestions import explain_argument_errors
from .arguments import Arguments, with_signature_of
from .early_stop import SequentialAudit, read_state
from .forecast import fit_trials_to_time
from .pair_choice import watch_inputs
from .pilot import PilotDraws, name_columns
from .request import BLOCK, OTHER_BITS_NOTE, Request, choose_request_pair, probed_request
from .run_files import FixedFields, RunFile, open_locked_run

SETTLED_FIELDS: Final = (
    "mechanism", "pair", "claim", "tangent", "delta", "confidence", "bound", "seed", "floats",
    "randomness", "clean", "declared_loss", "searched", "budget",
)  # fmt: skip
"""Fields of an audit that are copied from its checked arguments (the request)."""

_MAX_LATTICE_TRIALS: Final = 2**20
"""Largest number of trials on which the event of the floating-point bits is counted."""
_MAX_CURVE_TRIALS: Final = 2**22
_MAX_FAILING_CALLS: Final = 256
"""Largest number of calls that are made to find the input on which a timed call fails."""
_MAX_NUMBERING_ROWS: Final = 256
"""Largest number of rows that are searched for a column of row numbers."""
_TRIALS_PER_NUMBERING_ROW: Final = 8
"""Number of trials of the audit for each searched row, for a function that makes one output per
call and may be slow."""


@explain_argument_errors
@with_signature_of(Arguments)
def audit(arguments: Arguments) -> Audit:  # noqa: D417
    """Attack a mechanism, and certify a lower bound on its true privacy loss epsilon.

    The audit draws outputs of the mechanism on two neighbouring inputs, x and x'. On the first
    draws (the pilot), an attack chooses an event, which is a set of outputs. The audit then makes
    `trials` new draws on each input, and counts the draws in the event. From the two counts, the
    audit computes a lower confidence bound on epsilon. The verdict is *refuted* if the bound
    exceeds the claim. An audit never shows that a mechanism is private.

    Args:
        mechanism: the mechanism to audit, one of these:

            - a native mechanism, such as `dpcore.Laplace(1.0)`, whose outputs the compiled core of
              dpcore draws;
            - a callable `(x, size, rng) -> outputs` that makes `size` outputs. The result is an
              array of shape `(size, ...)`, or a list of `size` objects, such as strings, tuples, or
              lists of varying length. All randomness must come from the numpy Generator `rng`;
            - an OpenDP measurement, a diffprivlib mechanism, or a torch module;
            - a scipy or torch distribution, from which dpcore draws noise and adds it to x;
            - an object whose method `as_mechanism()` returns a mechanism, such as a
              `dpcore.torch.PrivateEncoder`.

            A mechanism that encodes its input before it adds noise can give the encoded vector to
            dpcore (see `dpcore.mechanisms.declarations`).
        pair: the two neighbouring inputs, as a `Pair` or a tuple. If several Pairs are given, the
            audit chooses the pair with the largest expected bound. For P pairs, this choice takes
            at most ``max(8 * trials, 64 * P)`` draws per input in total. A search can also propose
            the pairs: `dpcore.pairs.search(...)`. Defaults to the mechanism's `default_pair()`, or
            to [0] and [1] for noise such as `dpcore.Laplace(1.0)`. If inputs are long vectors and
            the claim is about their L1 distance, try `dpcore.pairs.patterns(dim, "one")`. On these
            pairs, attacks reach the largest bounds.
        neighbour: relation that defines which inputs are neighbours in the claim. Give
            `dpcore.pairs.L1(1.0)`, `L2`, `Linf`, `Replace`, `AddRemove` or your own relation. "l1"
            means `L1(1.0)`, and ("l1", 2.0) means `L1(2.0)`. dpcore checks that the two inputs of
            each pair are neighbours. The argument `distance` of `Pair` must be 1. If the mechanism
            states its own claim, dpcore also checks the pair against the norm and the sensitivity
            of the mechanism. If a relation is given and the mechanism is an OpenDP measurement, the
            measurement provides the claim and delta. None means that the claim is about the two
            given inputs.
        null: True to allow two equal inputs. If the inputs are equal, each refuted claim is a false
            alarm.
        attack: an object of `dpcore.attacks`, its name (such as "threshold" or "majority-vote"), or
            a function `(outputs, outputs_prime, pair) -> event`, which dpcore calls with the pilot
            outputs. Defaults to `dpcore.attacks.Auto()`, which tries all attacks that apply.
        trials: number of counted draws per input: an int, or a text or float such as "1e8" or 1e8.
            Defaults to 10**6, or to 4,000 if each output needs a forward pass of a random text
            encoder. In general, dpcore increases the default if the default number of trials cannot
            refute the claim.
        start: index of the first trial, from 0. Two audits with different ranges of trials can be
            merged if the audits have the same seed and the same `pilot`. To merge audits, give
            `pilot`, because its default depends on `trials`.
        seconds: time in seconds that the audit may take. If you give `seconds`, do not give
            `trials`. Before the pilot, dpcore measures the times of a few calls and then chooses
            the number of trials. If the time is enough for one block, this number is a multiple of
            `block`. The result contains the number of trials. To repeat the audit, give this number
            as `trials`. If the load of the machine changes, the audit takes more or less time than
            `seconds`.
        claim: the claimed epsilon, or a curve of `dpcore.claims` such as `GDP(1.0)`. Defaults to
            the mechanism's own claim. If the mechanism has no claim either, the verdict is "no
            claim given". A curve is tested in one of two ways. With the bound "clopper_pearson",
            the audit computes confidence limits on the two probabilities of the event, and compares
            these limits with the whole curve. With any other bound, or with `stop="refuted"`, the
            audit tests one tangent (epsilon, delta) of the curve. This tangent is chosen on the
            pilot.
        delta: delta of the claim, in [0, 1). Do not give `delta` if the claim is a curve.
        confidence: confidence level of the bound, strictly between 0 and 1.
        bound: name of the confidence bound, from `dpcore.bounds.BOUNDS`: such as "exact" (less
            conservative than the default), "conditional" (for delta 0 only) or "anytime".
        stop: "fixed" counts all trials. "refuted" counts the trials in small groups, and stops as
            soon as the claim is refuted. The bound of such an audit is valid whenever the count
            stops.
        floats: if True, the audit also counts a second event, which depends only on the last bits
            of the outputs (and shows leaks through rounding). The bound and the verdict then use
            the better of the two events. Each event gets half of the error probability.
        pilot: number of draws per input on which the pair and the event are chosen. These draws are
            not counted. Defaults to about an eighth of the trials. If a search proposes pairs of
            texts, the default is at most the `budget` of this search. Rare events need a large
            pilot.
        rng: source of all randomness. With None, dpcore chooses a random seed, which the report
            shows. An int in [0, 2**63) is the seed. To repeat an audit, give the seed from its
            report. From a numpy Generator, dpcore draws one number as the seed.
        route: way to count the event of the attack "majority-vote" for a native mechanism.
            "sampled" computes all outputs. "integer" only compares each random integer, from which
            an output would be computed, with a limit. Both ways give the same counts. "auto"
            chooses the faster way that is possible.
        block: number of trials in a block. The outputs of a block are drawn in one call. To repeat
            a result, give the same `block`. By default, the outputs of a block have about 2**17
            numbers in total, or 2**22 for a torch module on CUDA.
        threads: number of threads. Defaults to all cores for native mechanisms, and to 1 for
            callables. dpcore raises a ValueError for several threads (or an executor of threads) if
            the callable has the attribute `thread_safe = False`. It also raises the error if the
            callable uses other randomness than `rng` without the attribute `thread_safe = True`.
        executor: a `concurrent.futures.Executor` or a Dask `Client` whose workers draw and count
            the blocks. For a pool of processes, the mechanism and the event must be picklable. The
            counts do not depend on the executor. If a callable uses the global generators of
            Python, numpy or torch, each process sets the seeds of these generators for each block.
            If a callable uses any other generator, dpcore raises a ValueError, because all
            processes would make the same draws.
        checkpoint: path of a file in which dpcore stores the state of the audit every five seconds.
            If the audit is killed, the same call continues the audit. If `rng` is None, the seed in
            the file is used. With a path, Ctrl-C stores the state, raises KeyboardInterrupt and
            shows no counts. dpcore raises a ValueError if the mechanism has changed since the
            beginning of the audit.
        same_bits: False to accept an executor whose workers draw slightly different outputs than
            this process for the same seed. The last bits of some outputs can differ, because the
            logarithm of numpy differs between CPUs. With False, a second audit with the same seed
            may have other counts.
        source: if False, the result does not contain the source text of the mechanism, the hash of
            this text, or examples of outputs. The page and the JSON of the result do not contain
            these data either.
        progress: True to show a progress bar. None shows a bar for long work on a terminal or in a
            notebook.

    Returns:
        The `Audit`. If dpcore finds that the outputs are not independent, the verdict is "invalid:
        ...", and dpcore issues a `dpcore.errors.AssumptionWarning`. The attribute `checks` then
        contains the reason. After Ctrl-C, the result has the counts so far, and the attribute
        `partial` is True. The bound of such a result is the bound "anytime", which is valid
        whenever the count stops.

    Raises:
        TypeError: if an argument is of the wrong type.
        ValueError: for one of these reasons:

            - a value is out of range;
            - no pair is given and the mechanism has no default pair;
            - the two inputs are equal;
            - the inputs are farther apart than `neighbour` allows;
            - no claim is given, and the inputs are farther apart than the mechanism's claim allows;
            - the outputs have the wrong shape;
            - the outputs of one block occur again in another block, which chance cannot explain;
            - all outputs of a call are equal, but different calls give different outputs;
            - several threads would share the mechanism's own random generator;
            - several processes would make the same draws with copies of such a generator;
            - the attack does not apply to the type of the outputs.
        KeyboardInterrupt: if Ctrl-C comes before the first outputs are counted, or if Ctrl-C is
            pressed twice within two seconds.

    Source:
        Jagielski, Ullman and Oprea (2020), on Clopper-Pearson limits that are computed from fresh
        draws. Bichsel et al. (2021), section 5, on events that are learned on separate draws.
        Habernal (2022), section 4, on the majority vote.

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
    """Run an audit. If the field `checkpoint` of the arguments is a path, store the audit there.

    If the file at this path already contains an audit, this audit is continued.

    Args:
        arguments: the arguments of the audit.
        usual_trials: default number of trials. With None, the default of `dpcore.audit` is used.
    """
    path = arguments.checkpoint
    with nullcontext() if path is None else open_locked_run(path) as run:
        report: Audit = run_and_store_audit(arguments, run, usual_trials=usual_trials)
    return report


def run_and_store_audit(
    arguments: Arguments,
    run: RunFile | None = None,
    count: Callable[[Request, Source, FixedFields, RunFile | None], Any] | None = None,
    usual_trials: int | None = None,
) -> Any:
    """Run an audit with the given arguments, and store its state in a run file if one is given.

    Args:
        arguments: the arguments of the audit.
        run: file that stores the audit, or None for no file. This process holds the lock on the
            file. If the file is for one part of the trials, only this part is counted.
        count: function that counts the chosen event. The result of this function is returned. By
            default, all trials are counted and an `Audit` is returned.
        usual_trials: default number of trials. With None, the default of `dpcore.audit` is used.
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
        settle = partial(fit_trials_to_time, say=bar.say)
        unsettled = probed_request(arguments, TimeLog(bar), settle, usual_trials)
        request = choose_request_pair(replace(unsettled, budget=budget))
        if run is not None:
            run.same_bits = request.same_bits
            if request.attack.times:
                raise invalid("checkpoint", "None for Timing, which nothing repeats", str(run.path))
        if request.attack.times:
            with watch_list_inputs(request):
                return audit_output_and_call_time(request)
        source = request.make_source(request.pair)
        if count is not None and request.stop != "fixed":
            raise invalid("stop", "'fixed' for a run that is counted in parts", request.stop)
        if request.stop == "refuted":
            with watch_list_inputs(request):
                return run_until_refuted(request, source, run)
        if run is not None and run.fixed is not None:
            fixed = check_resumable(request, source, run)
        else:
            with watch_list_inputs(request):
                request, fitted = choose_event_on_pilot(request, source)
            fixed = collect_facts_before_count(request, source, fitted)
            if run is not None:
                run.begin(fixed)
        with watch_list_inputs(request):
            return (count or count_event)(request, source, fixed, run)


def watch_list_inputs(request: Request) -> AbstractContextManager[None]:
    """Return a context manager that checks whether the mechanism changes its inputs.

    If an input has changed at the end of the `with` block, a ValueError is raised. Numpy arrays
    need no check, because they are read-only.
    """
    sides = request.pair.x, request.pair.x_prime
    if all(type(side) is np.ndarray for side in sides):
        return nullcontext()
    return watch_inputs(name_of(request.mechanism), request.pair)


def list_fixed_fields(request: Request, source: Source, fitted: Fitted) -> dict[str, Any]:
    """Return a dict of the fields of an `Audit` that are known before the count begins."""
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
        "notes": (*request.pair_notes, *request.small_pilot_note, *fitted.notes, *fitted.remarks),
        "runs_on": device_text(request.mechanism),
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
    """Make the `Audit` (the result) from the arguments, the chosen event and its counts."""
    fixed_fields = list_fixed_fields(request, source, fitted)
    more |= {
        "notes": fixed_fields["notes"] + more.get("notes", ()),
        "end": max(fixed_fields["end"], counts.n),
    }
    ranges = ((request.start, request.start + counts.n),)
    more = _time_and_hashes(request, source, ranges) | {"ranges": ranges} | more
    return Audit(**fixed_fields | more, counts=counts)


def _time_and_hashes(request: Request, source: Source, ranges: tuple[Range, ...]) -> dict[str, Any]:
    """Return, by name, the fields of an `Audit` on threads, on times, and on hashes of blocks."""
    return {
        "threads": source.threads,
        "seconds": request.course.seconds("count"),
        "spent": tuple(Spent(*step) for step in request.course.spent()),
        "digests": unite_smallest_digests((), source.block_digests(ranges)),
    }


def collect_facts_before_count(request: Request, source: Source, fitted: Fitted) -> FixedFields:
    """Collect, for storage, the facts of an audit that are known before the count begins."""
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
        bits="" if request.checkpoint is None else digest_sample_outputs(source.draws),
    )


def count_event(
    request: Request, source: Source, fixed: FixedFields, run: RunFile | None = None
) -> Audit:
    """Count the chosen event in all trials that are not counted yet, and return the result.

    Args:
        request: the checked arguments of the audit.
        source: object that makes the draws of the mechanism.
        fixed: facts of the audit that are known before the count, such as the event.
        run: file with the counts of an earlier process, or None.

    Returns:
        The `Audit`. It includes the counts of the earlier process.
    """
    done = finish_counting_event(source, fixed, run)
    request.course.begin_step("report", "checking the rows")
    course = _time_and_hashes(request, source, done.ranges)
    if run is not None:
        course |= {"seconds": run.seconds, "looked": run.looked, "same_bits": run.same_bits}
    report = finish_audit(fixed, done, **course)
    # After Ctrl-C, no further outputs are drawn.
    if not report.partial:
        report = replace(report, checks=add_row_number_column_warning(report.checks, source))
    if run is not None and not source.draws.native and not request.is_bit_reproducible:
        report = replace(report, checks=report.checks + run.compare_session_rates())
    warn_of((*report.checks, *fixed.remarks))
    return report


def finish_audit(
    fixed: FixedFields, done: Done, *, looked: bool = False, same_bits: bool = True, **more: Any
) -> Audit:
    """Make the `Audit` (the result) from the counts and the facts known before the count.

    Args:
        fixed: the facts that were known before the count, such as the event.
        done: the counts of at least one trial.
        looked: True if a person saw counts before all trials were counted. In this case, the bound
            "anytime" is used. This bound is valid whenever the count stops.
        same_bits: False if the audit accepted processes whose outputs differ in some bits for the
            same seed.
        more: further fields of the `Audit`, by name.
    """
    tally, tally_prime = done.sides
    partial = done.trials < fixed.trials
    stop = "looked" if looked else "interrupted" if partial else "fixed"
    finding, curve = _read_bits_and_curve(fixed, tally, tally_prime)
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
        pooled=_list_coordinate_counts(fixed.audit["event"], tally, tally_prime)
        if stop == "fixed"
        else (),
        floating_point=finding,
        rounding_won=False,
        curve=curve,
        checks=fixed.checks + list_doubts([[tally.evidence], [tally_prime.evidence]]),
    ).with_winner()


def add_row_number_column_warning(checks: tuple[str, ...], source: Source) -> tuple[str, ...]:
    """Search the outputs of a mechanism for a column that contains only row numbers.

    The search is made only if there are signs of dependence between the outputs.

    Args:
        checks: sentences that describe signs of dependence between the outputs. If the tuple is
            empty, no search is made.
        source: object that draws outputs of the mechanism. Some outputs on x are drawn and
            searched.

    Returns:
        The sentences in `checks`. If such a column is found, a sentence on this column comes first.
    """
    if not checks or source.draws.native:
        return checks
    rows = min(_MAX_NUMBERING_ROWS, source.block)
    if is_unbatched(source.draws.mechanism):
        rows = min(rows, (source.end - source.start) // _TRIALS_PER_NUMBERING_ROW)
        if rows < FEWEST_NUMBERED_ROWS:
            return checks
    outputs = move_to_host(source.draws.draw(PROBE, 0, Place(0, rows, 0, rows)))
    for place, values in list_columns(outputs):
        if is_row_numbers_in_any_order(values):
            what = f"{place} of the outputs" if place else "the output"
            return f"{what} numbers the rows: leave it out of what is returned", *checks
    return checks


def warn_of(sentences: tuple[str, ...]) -> None:
    """Issue one AssumptionWarning for each sentence in `sentences`."""
    for check in sentences:
        # The warning names the line that called dpcore.audit.
        warnings.warn(check, AssumptionWarning, stacklevel=5)


def _make_bit_and_curve_watches(fixed: FixedFields) -> tuple[Watch, ...]:
    """List what is counted in addition to the chosen event.

    The list can contain the event about last bits of floats, and the trade-off curve of the score.
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


def _read_bits_and_curve(
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


def _list_coordinate_counts(event: Event, tally: Tally, tally_prime: Tally) -> tuple[Counts, ...]:
    multiplicities = get_attribute(EventRecord, event, "multiplicities")
    n, n_prime = tally.rows, tally_prime.rows
    groups = zip(tally.hits[1:], tally_prime.hits[1:], multiplicities, strict=True)
    return tuple(Counts(k, n * many, k_prime, n_prime * many) for k, k_prime, many in groups)


def finish_counting_event(source: Source, fixed: FixedFields, run: RunFile | None) -> Done:
    """Count the chosen event in all trials on x and on x' that are not counted yet.

    Ctrl-C ends the count, and the counts so far are returned. If a run file is given, Ctrl-C raises
    KeyboardInterrupt instead, and the audit can be continued from the file.
    """
    event, course, watches = fixed.audit["event"], source.course, _make_bit_and_curve_watches(fixed)
    done = Done() if run is None else run.done
    start, stop = (fixed.start, fixed.start + fixed.trials) if run is None else run.range
    course.begin_step("count", "counting", 2 * (stop - start - done.trials))
    begun = course.clock()
    with nullcontext() if run is None else save_run_at_exit_or_error(run):
        try:
            for shard in source.count_in_shards(
                event, COUNT, done.list_unfinished(start, stop), watches
            ):
                # A single assignment, so that Ctrl-C cannot separate counts from their trials.
                done = done.add_shard(shard)
                if run is not None:
                    run.save_counts(done, shard.edges, source.replays, course.clock() - begun)
                    begun = course.clock()
                course.bar.relabel(format_progress_label("counting", source, run))
        except KeyboardInterrupt:
            if run is not None or record_interrupt_and_check_second() or not done.ranges:
                raise
    return done


def format_progress_label(what: str, source: Source, run: RunFile | None = None) -> str:
    """Return the text of the progress bar: step, number of workers, and time of the last save.

    Args:
        what: name of the step, such as "counting".
        source: object that draws the outputs, and that knows the number of workers.
        run: file that stores the state of the audit, or None without a file.
    """
    workers = f" on {source.worker_count:,} workers" if source.worker_count > 1 else ""
    return f"{what}{workers}" + ("" if run is None else f", run file of {run.time_of_day}")


@contextmanager
def save_run_at_exit_or_error(run: RunFile) -> Iterator[None]:
    """Store the state of an audit in its run file when the `with` block ends, also after an error.

    If there is an error, a note on how to continue the audit is added to the error.
    """
    run.write_if_never_written()
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(run.write_and_describe_resume()) from None
    except BaseException as error:
        error.add_note(run.write_and_describe_resume())
        raise
    run.write(always=True)


def check_resumable(request: Request, source: Source, run: RunFile) -> FixedFields:
    """Check that this process can continue an audit that is stored in a run file.

    Args:
        request: the checked arguments of this process.
        source: object that draws outputs of the mechanism. This object gets the hashes of the
            counted blocks from the file.
        run: the run file.

    Returns:
        The facts that were known before the count, such as the mechanism and the event.

    Raises:
        ValueError: if an argument differs from the argument in the file, or if the outputs of the
            mechanism have changed. To test this, some counted blocks of trials are drawn and
            counted again.
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
        request, fitted = choose_event_on_pilot(request, source)
    source.replays.restore(fixed.collisions, run.digests, run.zeros)  # a second pilot adds pairs
    mine = collect_facts_before_count(request, source, fitted)
    run.refuse_difference(mine)
    mine.lattice = fixed.lattice if fixed.whole else mine.lattice
    mine.thresholds, mine.checks = fixed.thresholds, fixed.checks
    mine.bits = fixed.bits
    for name in ("notes", "read", "inside", "searched", "budget", "provenance"):
        mine.audit[name] = fixed.audit[name]
    if request.is_bit_reproducible:
        for edge in run.edges:
            again = redraw_counted_block(source, mine, edge[0])
            if again is not None and again != edge:
                run.refuse_changed_counts(edge, again)
    return mine


def redraw_counted_block(source: Source, fixed: FixedFields, number: int) -> list[Any] | None:
    """Repeat the draws and the count of a block of trials that was already counted.

    Args:
        source: object that draws outputs of the mechanism.
        fixed: facts that were known before the count, such as the event.
        number: index of the block.

    Returns:
        A list: the index of the block, and the counts of the block on x and on x'. The list has the
        same form as in the run file. The result is None if the block has no counts that can be
        compared.
    """
    start, stop = number * source.block, (number + 1) * source.block
    first, end = max(start, source.start), min(stop, source.end)
    event, compared = fixed.audit["event"], not source.draws.native
    work = TallyRows(event, source.name, (), source.start if compared else None, source.block)
    edges = run_shard(source.draws, work, source.make_draw_task(COUNT, first, end)).edges
    return edges[0] if edges else None


def choose_event_on_pilot(request: Request, source: Source) -> tuple[Request, Fitted]:
    """Choose the event that the audit counts, on the pilot (the first draws).

    If the claim is a curve, the function also chooses one tangent (epsilon, delta) of the curve.
    The audit tests this tangent.

    Returns:
        The arguments of the audit (for a curve, with this tangent), and the chosen event.
    """
    size, floats = request.pilot_size, request.looks_at_floats
    request.course.begin_step("fit", "choosing the event", 2 * size)
    stated = request.stated_scores
    claim = request.claim
    if claim is not None and not isinstance(claim, Claim):
        claim *= request.pair.distance
    draws = PilotDraws(source, request.pair_as_floats, request.goal, size, floats, stated, claim)
    fitted = draws.note_constant_outputs(request.attack.fitted_on(draws), null=request.null)
    if isinstance(request.claim, Claim):
        counts = fitted.counts or draws.counts(fitted.event, size)
        request = request.with_best_tangent(put_numerator_first(counts, fitted.direction))
    return request, fitted


def run_until_refuted(request: Request, source: Source, run: RunFile | None = None) -> Audit:
    """Run an audit that stops as soon as the claim is refuted."""
    if request.claim is None:
        raise invalid("claim", "given, where stop is 'refuted'", None)
    attack = require_scores(request.attack, "where stop is 'refuted'")
    pilot = min(request.trials, BLOCK) if request.pilot is None else request.pilot
    course = SequentialAudit(source, request, attack, pilot)
    partial = _run_slices_and_return_interrupted(request, source, course, run)
    request.course.begin_step("report", "checking the rows")
    checks = request.doubted + course.independence_doubts
    checks = checks if partial else add_row_number_column_warning(checks, source)
    warn_of((*checks, *course.remarks))
    slices, (nan, nan_prime) = course.slices, course.nan_entry_counts
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


def _run_slices_and_return_interrupted(
    request: Request, source: Source, course: SequentialAudit, run: RunFile | None
) -> bool:
    """Count the slices of an audit with early stop. Return True if Ctrl-C ended the count."""
    if run is None:
        return course.run()
    never = Fitted(Never(), "x", 0.0, course.pilot, np.empty(0))
    fixed = collect_facts_before_count(request, source, never)
    if run.fixed is None:
        run.begin(fixed)
    else:
        run.refuse_difference(fixed)
        source.replays.restore(run.fixed.collisions, run.digests, run.zeros)
    state = read_state(run.slices) if run.slices else None
    begun = [request.course.clock()]

    def keep() -> None:
        now = request.course.clock()
        run.save_early_stop_state_if_due(course.to_dict, source.replays, now - begun[0])
        request.course.bar.relabel(format_progress_label("counting until refuted", source, run))
        begun[0] = now

    with save_run_at_exit_or_error(run):
        if state is not None:
            course.restore(state, run.refuse_mechanism)
        try:
            course.run(keep)
        finally:
            run.slices = course.to_dict()
    return False


def audit_output_and_call_time(request: Request) -> Audit:
    """Run an audit whose event depends on the output of a call and on the time that the call takes.

    The audit counts ``2 * trials`` calls, each with one output. For each call, a fair coin chooses
    the input x or x'.

    Args:
        request: the checked arguments of the audit. The bound "conditional" is always used, because
            only this bound is valid if a coin chooses the inputs.

    Returns:
        The `Audit`. In this result, k is the number of calls on x in the event, and k' is the
        number of calls on x' in the event. Both n and n' are the number of all calls, on x and x'
        together.

    Raises:
        ValueError: if the claim is a curve, or if an argument is not allowed here: a delta, early
            stop, an executor, a `start` above 0, or more than one thread.
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
    if get_or_default(request.mechanism, "encodes_once"):
        requirement = "another than Timing where a text is encoded once, before the calls"
        raise invalid("attack", requirement, request.attack.given)
    course = request.course
    # A thread that draws a bar would disturb the times.
    course.begin_step("count", "timing calls, one by one (the bar stands still)")
    course.bar.stop_thread()
    rng = make_generator(request.seed, COUNT, 0, 0)

    calls = 2 * request.trials
    inputs = convert_pair(request.mechanism, request.pair)

    def make_rng(side: int, number: int) -> np.random.Generator:
        return make_generator(request.seed, PROBE, side, number)

    limit, sides = min(calls, _MAX_FAILING_CALLS), (inputs.x, inputs.x_prime)
    with note_failing_input(request.mechanism, sides, limit, make_rng):
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
    course.add_outputs(calls + timed.pilot)
    return make_audit(request, source, fitted, counts, bound="conditional", notes=timed.notes)
