"""Request of an audit: its checked arguments, and all decisions before the count."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from types import BuiltinMethodType, MethodType
from typing import Any, Final, cast

import numpy as np

from .. import _core, errors
from ..attacks import Auto, named
from ..attacks.attack import AuditAttack, Goal, attack_of, power_of_two_below, require_scores
from ..bounds import BOUNDS
from ..bounds.binomial import find_declaration
from ..claims.trade_off import Claim, choose_refutable_pair
from ..mechanisms.callables import check_mechanism, is_thread_safe, is_unbatched
from ..mechanisms.commands import SEED_VARIABLE, Tool
from ..mechanisms.declarations import (
    StatedLogRatio,
    can_core_draw,
    convert_pair,
    declared_loss,
    get_or_default,
    noiseless_outputs,
    notes_on,
    stated_score_function_or_empty,
)
from ..mechanisms.native import describe_natively
from ..packages import attribute_if_imported, has_all
from ..pairs import Searched, distance
from ..pairs.differences import inputs_equal, pair_lists_to_float_arrays
from ..pairs.neighbours import neighbour_of
from ..records import Counts, Pair
from ..report.shown import name_of
from ..results.audits import error_limits_of
from ..results.evidence import Provenance, divide_if_delta_0
from ..sampling.driver import Source
from ..sampling.sources import CallableDraws, NativeDraws, TimeLog
from ..sampling.workers import count_workers, find_where_tasks_run, is_dask_client
from ..streams import MOST_DRAWS, block_trials, threads_of, to_seed
from .arguments import Arguments, Route
from .call_sizes import compare_call_sizes
from .list_forms import compare_input_forms, explain_list_errors
from .output_forms import find_shape_fields_columns
from .pair_choice import PairCandidates, choose_pair, dim_of, parse_pair, watch_inputs
from .provenance import provenance_of
from .randomness import (
    TimedDraws,
    classify_repeatability,
    has_global_generator_use_or_raises,
    has_global_noise_or_raises,
    refuse_multithreaded_calls,
)

_DISTANCE_SLACK: Final = 1e-9
"""Relative tolerance for rounding errors when the distance of a pair is checked."""

BLOCK: Final = 256
"""Default number of trials in a block, for an audit with early stop. The claim is tested for the
first time after one block."""

_ANSWER_BLOCK: Final = 4096
_SHARED_ANSWER_BLOCK: Final = 16
"""Largest default number of trials in a block, for a function that makes one output per call. The
second number is for functions that several threads may call. Then blocks are short, so that 200
calls keep eight threads busy."""

_MAX_RAISED_NATIVE_TRIALS: Final = 2**24
_MAX_RAISED_TRIALS: Final = 2**20
"""Largest number of trials to which the default is raised, for native noises and for other
mechanisms."""
_REACH_MARGIN: Final = 0.5
"""If the default number of trials is raised, the largest certifiable epsilon exceeds the claim by
this number."""
_FEWEST_USUAL_TRIALS: Final = 10**5
_DEFAULT_TRIALS: Final = 10**6
"""Default number of counted draws per input, if the mechanism does not give another default."""
MIN_BUDGET_TRIALS: Final = 100
"""Smallest number of trials that is chosen for a given time, or proposed by a forecast."""
_MORE_TRIALS_FACTOR: Final = 10
"""A report also states the epsilon that is certifiable with this many times the trials."""
OTHER_BITS_NOTE: Final = (
    "workers that give other bits for one seed were accepted (same_bits=False): the seed may not "
    "repeat these counts"
)


@dataclass(frozen=True, kw_only=True)
class UnsettledRequest(Arguments):
    """Checked arguments of an audit, before the pair of inputs (x, x') is chosen.

    The object has all arguments of `dpcore.audit`, and these further fields:

    - `wanted`: the pairs of inputs from which one pair will be chosen;
    - `probe_pair`: the pair on which the mechanism is called before this choice;
    - `seed`: the seed of all draws;
    - `budget`: time limit of the audit in seconds, or None without a limit;
    - `provenance`: a record of how the audit is made: date, source text, versions, machine;
    - `shape`: shape of one output of the mechanism;
    - `fields`: field names of an output, or an empty tuple;
    - `columns`: column names of the outputs, or an empty tuple;
    - `randomness`: where the randomness of the mechanism comes from, as in `Audit.randomness`;
    - `globals`: True if dpcore sets the seeds of the global random generators (of Python, numpy and
      torch) for each block of trials;
    - `doubted`: sentences that describe signs of dependence between the outputs of the first calls;
    - `probe_notes`: other notes on the first calls, for the report;
    - `default_trials`: the usual default number of trials, if a larger number is used instead. None
      if the usual default is used, or if `trials` was given;
    - `course`: record of the steps and times of the audit.
    """

    attack: AuditAttack
    trials: int
    start: int
    pilot: int | None
    block: int | None
    wanted: PairCandidates
    probe_pair: Pair
    seed: int
    budget: float | None
    provenance: Provenance
    shape: tuple[int, ...] = ()
    fields: tuple[str, ...] = ()
    columns: tuple[Any, ...] = ()
    randomness: str = "not known"
    globals: bool = False
    doubted: tuple[str, ...] = ()
    probe_notes: tuple[str, ...] = ()
    default_trials: int | None = None
    course: TimeLog = field(default_factory=TimeLog, compare=False)

    @property
    def goal(self) -> Goal:
        """Number of trials, delta and confidence level for which an attack chooses the best event.

        Here the number of trials of the audit is rounded down to a power of two. Therefore audits
        with about the same number of trials choose the same event.
        """
        trials = 1 << (self.trials.bit_length() - 1)
        curve = self.claim if isinstance(self.claim, Claim) else None
        is_distance = curve is None and self.claim == 0.0 and self.delta > 0.0
        return Goal(
            trials, self.delta, self.confidence, claim=curve, is_total_variation=is_distance
        )

    @property
    def pilot_size(self) -> int:
        """Number of draws per input that only serve to choose the event, and are not counted."""
        if self.pilot is not None:
            return self.pilot
        usual, most = self.attack.default_pilot(self.trials), self.wanted.max_default_pilot_draws
        if most is None:
            return usual
        return min(usual, max(self.attack.fewest_pilot, power_of_two_below(most)))

    @property
    def small_pilot_note(self) -> tuple[str, ...]:
        """Note for the report if the argument `pilot` is too small, else an empty tuple."""
        fewest = self.attack.fewest_pilot
        if self.pilot is None or self.pilot >= fewest:
            return ()
        return (
            f"pilot={self.pilot} draws per side are too few to choose an event and its direction "
            f"by: at least {fewest}, or leave it out",
        )

    @property
    def is_bit_reproducible(self) -> bool:
        """True if the seed of this audit gives the same outputs, bit for bit, on each machine."""
        return self.same_bits and self.randomness == "seed"

    @property
    def looks_at_floats(self) -> bool:
        """True if this audit also searches for events on the low-order bits of floats."""
        return self.floats or self.attack.looks_at_floats

    def make_source(self, pair: Pair) -> Source:
        """Make the object that draws outputs of the mechanism on the two inputs of a pair."""
        end = self.start + self.trials
        options: dict[str, Any] = {"start": self.start, "course": self.course}
        if can_core_draw(self.mechanism):
            dim = dim_of(pair)
            size = self._block_size(dim)
            errors.integer("block", size, 1, MOST_DRAWS // dim)
            native = NativeDraws(self.mechanism, pair, self.seed, size)
            threads = threads_of(self.threads)
            return Source(native, threads, end, self.executor, self.route, **options)
        size = self._block_size(math.prod(self.shape))
        if self.block is None and is_unbatched(self.mechanism):
            # With one call per output, shorter blocks can be shared between workers, and stopped.
            size = min(
                size, _SHARED_ANSWER_BLOCK if is_thread_safe(self.mechanism) else _ANSWER_BLOCK
            )
        # A command is a separate process in every block, so no state is kept between calls.
        own = self.randomness == "own" and not isinstance(self.mechanism, Tool)
        draws = CallableDraws(
            self.mechanism, pair, self.seed, size, self.shape, self.globals, self.fields, own,
            self.is_bit_reproducible,
        )  # fmt: skip
        return Source(draws, self.workers, end, self.executor, **options)

    def _block_size(self, elements: int) -> int:
        if self.block is not None:
            return self.block
        device = get_or_default(self.mechanism, "device_type")
        size = block_trials(elements, device if isinstance(device, str) else "cpu")
        return min(size, BLOCK) if self.stop == "refuted" else size

    @property
    def workers(self) -> int:
        """Number of threads, or of workers of an executor, that call the mechanism."""
        if self.executor is not None:
            return count_workers(self.executor, self.threads)
        return threads_of(self.threads, default=1)


@dataclass(frozen=True, kw_only=True)
class Request(UnsettledRequest):
    """Checked arguments of an audit, after the pair of inputs (x, x') is chosen.

    The object has all fields of `UnsettledRequest`. These fields are new or have new values:

    - `pair`: the chosen pair of inputs;
    - `claim`: the claim that is tested on this pair, or None without a claim;
    - `clean`: the two vectors to which the mechanism adds noise, or None if the mechanism does not
      state these vectors;
    - `declared_loss`: the exact privacy loss on this pair, or None if the mechanism does not state
      its noise;
    - `searched`: the record of the search that found the pair, or None if no search was made;
    - `pair_notes`: notes for the report on the pair and on the mechanism;
    - `tangent`: epsilon of the tangent that is tested, if the claim is a curve. None for other
      claims, or if no tangent is chosen yet.
    """

    pair: Pair
    clean: Pair | None
    declared_loss: float | None
    searched: Searched | None
    pair_notes: tuple[str, ...]
    tangent: float | None = None

    @property
    def pair_as_floats(self) -> Pair:
        """The two inputs in the form that attacks use: vectors of floats, if this is possible."""
        return pair_lists_to_float_arrays(self.pair if self.clean is None else self.clean)

    @property
    def stated_scores(self) -> tuple[StatedLogRatio, ...]:
        """Tuple with one score: the log-likelihood ratio of x over x' that the mechanism provides.

        The tuple is empty if the mechanism provides no ratio, or if the attack does not use the
        ratio.
        """
        takes_them = self.attack.takes_stated_scores
        return stated_score_function_or_empty(self.mechanism, self.pair) if takes_them else ()

    def with_best_tangent(self, counts: Counts) -> Request:
        """Choose the tangent (epsilon, delta) of a claimed curve that is easiest to refute.

        Args:
            counts: counts of the event in draws that are not part of the audit's result. The input
                on which the event is more frequent comes first.

        Returns:
            A copy of this request with the tangent in the fields `tangent` and `delta`. If the
            claim is not a curve, the request itself is returned.
        """
        if not isinstance(self.claim, Claim):
            return self
        tangent, delta = choose_refutable_pair(self.claim, counts)
        loss = declared_loss(self.mechanism, self.pair, delta)
        return replace(self, tangent=tangent, delta=delta, declared_loss=loss)


def probed_request(
    arguments: Arguments,
    course: TimeLog,
    settle: Callable[[UnsettledRequest], UnsettledRequest] | None = None,
    usual_trials: int | None = None,
) -> UnsettledRequest:
    """Check all arguments of an audit, then make a few calls to test the mechanism.

    Args:
        arguments: the arguments of the audit, as the caller gave them.
        course: record of the audit, to which the numbers and times of the calls are added.
        settle: function that is called with the checked arguments after the first calls. The
            function returns these arguments, with a new number of trials if the user gave a time
            limit. With None, the number of trials is not changed.
        usual_trials: default number of trials. With None, the default of `dpcore.audit` is used.

    Returns:
        The checked arguments, with the results of the first calls.
    """
    course.begin_step("probe", "trying the mechanism")
    made = provenance_of(arguments.mechanism, arguments.source)
    trials = None if arguments.trials is None else errors.count("trials", arguments.trials)
    budget = _checked_seconds_or_none(arguments)
    start = errors.integer("start", errors.whole(arguments.start), 0)
    delta, confidence = (
        errors.delta_level(arguments.delta),
        errors.confidence_level(arguments.confidence),
    )
    _refuse_noiseless_encoder(arguments.mechanism, arguments.pair)
    neighbour = None if arguments.neighbour is None else neighbour_of(arguments.neighbour)
    mechanism, claim, delta = _read_mechanism_claim_and_delta(
        _adapt_mechanism(arguments.mechanism), neighbour, arguments.claim, delta
    )
    arguments.check_flags_and_words()
    find_declaration(BOUNDS[arguments.bound]).check_bound_allows_delta(arguments.bound, delta)
    check_curve(claim, delta, arguments.bound)
    pilot = (
        None
        if arguments.pilot is None
        else errors.integer("pilot", errors.whole(arguments.pilot), 2, 2**63 - 1)
    )
    block = (
        None
        if arguments.block is None
        else errors.integer("block", errors.whole(arguments.block), 1, 2**40)
    )
    executor = arguments.executor
    if not (executor is None or isinstance(executor, Executor) or is_dask_client(executor)):
        need = "a concurrent.futures.Executor, a Dask client or None"
        raise errors.mistyped("executor", need, executor)
    if executor is not None:
        # This test task raises an error if the executor was shut down.
        find_where_tasks_run(executor)
    attack = _resolve_attack(arguments.attack)
    candidates = parse_pair(mechanism, arguments.pair, neighbour, arguments.null)
    seed, pair = to_seed(arguments.rng), candidates.shape_pair
    # This call is always made: an encoder learns both texts now, and not during timed calls.
    usual = usual_trials or _default_trials(mechanism, pair)
    default = None
    if budget is not None:
        # The final number is larger. This number limits the calls before it is known.
        trials = MIN_BUDGET_TRIALS
    elif trials is None:
        settled = replace(arguments, claim=claim, delta=delta, confidence=confidence)
        trials = increase_trials_for_claim(usual, mechanism, pair, attack, settled)
        default = usual if trials > usual else None
    route = arguments.route
    if can_core_draw(mechanism):
        route = _resolve_auto_route(mechanism, pair, route, attack, trials)
    elif route != "auto":
        raise errors.invalid("route", "'auto' for a Python callable", route)
    elif not attack.times and get_or_default(mechanism, "thread_safe") is False:
        refuse_multithreaded_calls(arguments.threads, arguments.executor, "that is not thread-safe")
    checked = vars(arguments) | {"mechanism": mechanism, "claim": claim, "delta": delta}
    checked |= {"confidence": confidence, "route": route, "attack": attack, "trials": trials}
    checked |= {"start": start, "pilot": pilot, "block": block}
    request = UnsettledRequest(
        **checked, wanted=candidates, probe_pair=pair, seed=seed, budget=budget, provenance=made,
        course=course, default_trials=default,
    )  # fmt: skip
    with watch_inputs(name_of(mechanism), pair):
        with explain_list_errors(mechanism, pair, seed, course):
            request = _add_output_shape_and_names(request)
        if settle is not None:
            request = settle(request)
        if budget is not None and is_unbatched(mechanism):
            # The number of trials limits the number of outputs that show the form.
            request = _add_output_shape_and_names(request)
        request = _probe_mechanism(request)
        if request.randomness == "own" or request.attack.times:
            return request
        notes = compare_input_forms(mechanism, pair, seed, course)
        return replace(request, probe_notes=(*request.probe_notes, *notes))


def _checked_seconds_or_none(arguments: Arguments) -> float | None:
    """Return the time in seconds that the audit may take, or None if `seconds` is not given."""
    if arguments.seconds is None:
        return None
    budget = errors.real("seconds", arguments.seconds, low=0.0, open_low=True)
    if arguments.trials is not None:
        raise errors.invalid(
            "seconds", f"left out where trials={arguments.trials!r} is given", budget
        )
    return budget


def _add_output_shape_and_names(request: UnsettledRequest) -> UnsettledRequest:
    """Add the shape and the names of the outputs to the request.

    Native mechanisms and timed audits need no call for this.
    """
    if not (can_core_draw(request.mechanism) or request.attack.times):
        inputs = convert_pair(request.mechanism, request.probe_pair)
        called = request.mechanism, inputs, request.seed, request.course
        shape, names, columns = find_shape_fields_columns(*called, request.start + request.trials)
        request = replace(request, shape=shape, fields=names, columns=columns)
    _check_trial_settings(request)
    return request


def _default_trials(mechanism: Any, pair: Pair) -> int:
    own = get_or_default(mechanism, "default_trials_on")
    return (own(convert_pair(mechanism, pair)) if callable(own) else None) or _DEFAULT_TRIALS


def _probe_mechanism(request: UnsettledRequest) -> UnsettledRequest:
    """Call the mechanism a few times, and add the results of tests to the request.

    The tests check whether rows are independent, whether the size of a call has an effect, and
    where the randomness comes from. A ValueError is raised if all rows have the same noise, or if
    threads or processes would share or repeat the mechanism's own randomness.
    """
    mechanism, executor = request.mechanism, request.executor
    if can_core_draw(mechanism):
        return replace(request, randomness="seed")
    own = get_or_default(mechanism, "reproducible") is False
    if request.attack.times:
        return replace(request, randomness="own") if own else request
    source, trials = request.make_source(request.probe_pair), request.start + request.trials
    draws = TimedDraws(**vars(source.draws), course=request.course)
    doubts = replace(source, draws=draws).probe_independence()
    sizes_differ, notes = compare_call_sizes(draws, trials)
    request = replace(request, doubted=(*doubts, *sizes_differ), probe_notes=notes)
    randomness = "own" if own else classify_repeatability(draws, trials)
    request = replace(request, randomness=randomness)
    shared = _argument_implying_processes(request)
    if randomness == "not known" and shared is not None:
        return replace(request, globals=has_global_generator_use_or_raises(draws, shared))
    if randomness != "own":
        return request
    if get_or_default(mechanism, "thread_safe") is not True:
        what = "with randomness of its own and no thread_safe = True"
        refuse_multithreaded_calls(request.threads, executor, what)
    if shared is None:
        return request
    return replace(request, globals=has_global_noise_or_raises(draws, trials, shared))


def _argument_implying_processes(request: UnsettledRequest) -> tuple[str, Any] | None:
    """Return name and value of the argument because of which several processes may draw.

    The argument is `executor` or `checkpoint`. The result is None if only this process draws.
    """
    executor = request.executor
    if executor is not None and find_where_tasks_run(executor) == "processes":
        return "executor", executor
    return None if request.checkpoint is None else ("checkpoint", str(request.checkpoint))


def _check_trial_settings(request: UnsettledRequest) -> None:
    if request.attack.times:
        return
    source = request.make_source(request.probe_pair)
    if (request.start + request.trials) * source.elements >= MOST_DRAWS:
        raise errors.invalid(
            "trials", "small enough that trials x dim is below 2**63", request.trials
        )
    if request.start % source.block and not source.draws.native:
        requirement = f"a multiple of block = {source.block} for a Python callable"
        raise errors.invalid("start", requirement, request.start)
    if request.floats and (request.stop == "refuted" or request.attack.scoring is None):
        requirement = "False but for an attack that makes scores and a fixed number of trials"
        raise errors.invalid("floats", requirement, request.floats)
    if request.attack.pools and isinstance(request.claim, Claim):
        requirement = "one that counts one event where claim is a curve"
        raise errors.invalid("attack", requirement, request.attack.given)
    fixed_form = request.stop == "refuted" or request.attack.pools
    if fixed_form and not find_declaration(BOUNDS[request.bound]).implied:
        raise errors.invalid(
            "bound", "left alone for stop='refuted' and for Coordinatewise", request.bound
        )
    if request.stop == "refuted":
        require_scores(request.attack, "where stop is 'refuted'")


def _refuse_noiseless_encoder(mechanism: Any, pair: Any) -> None:
    """Raise a TypeError if a text encoder without noise is given as the mechanism."""
    sides = (pair.x, pair.x_prime) if isinstance(pair, Pair) else pair
    is_texts = isinstance(sides, tuple) and len(sides) == 2 and isinstance(sides[0], str)
    if not is_texts or isinstance(mechanism, type) or get_or_default(mechanism, "as_mechanism"):
        return
    owner = (
        mechanism.__self__ if isinstance(mechanism, (MethodType, BuiltinMethodType)) else mechanism
    )
    module = attribute_if_imported("torch.nn.modules.module", "Module") or ()
    if isinstance(owner, module) or has_all(owner, "encode") or isinstance(mechanism, Mapping):
        need = (
            "a mechanism, and not an encoder of texts (write "
            "dpcore.audit(dpcore.torch.mechanism(encoder, noise), pair, claim=...))"
        )
        raise errors.mistyped("mechanism", need, mechanism)


def _adapt_mechanism(mechanism: Any) -> Any:
    from ..adapters import adapt

    if can_core_draw(mechanism):
        return mechanism
    adapted = adapt(mechanism)
    return check_mechanism(mechanism if adapted is None else adapted)


def _read_mechanism_claim_and_delta(
    mechanism: Any, neighbour: Any, claim: float | Claim | None, delta: float
) -> tuple[Any, float | Claim | None, float]:
    """Return the mechanism, and the claim and delta that are tested.

    If no claim is given, the privacy map of an OpenDP measurement gives claim and delta for the
    relation of neighbours. A privacy measure other than epsilon, (epsilon, delta) or zCDP gives no
    claim. Other mechanisms may state their own `delta` together with a `claim`.
    """
    if claim is not None:
        return mechanism, claim, delta
    if neighbour is None or get_or_default(mechanism, "speaking_of") is None:
        own = get_or_default(mechanism, "delta") if hasattr(mechanism, "claim") else None
        own = own if isinstance(own, float) and 0.0 < own < 1.0 else 0.0
        return mechanism, None, _choose_larger_delta(own, delta, "as the mechanism claims")
    mechanism = mechanism.speaking_of(neighbour)
    if mechanism.curve is not None:
        return mechanism, mechanism.curve, delta
    epsilon, least = mechanism.stated or (math.inf, 0.0)
    if not math.isfinite(epsilon):
        return mechanism, None, delta
    return mechanism, epsilon, _choose_larger_delta(least, delta, "as the measurement states")


def _choose_larger_delta(own: float, delta: float, whose: str) -> float:
    """Return the larger of two deltas.

    Args:
        own: delta that the mechanism states.
        delta: delta that the caller gives, or 0.
        whose: text for the error message: where `own` comes from.

    Raises:
        ValueError: if `delta` is above 0 and smaller than `own`.
    """
    if 0.0 < delta < own:
        # With a larger delta the claim remains true. A smaller delta would be another claim.
        raise errors.invalid("delta", f"at least {own!r}, {whose}", delta)
    return max(delta, own)


def _resolve_attack(attack: Any) -> AuditAttack:
    if attack is None:
        return Auto()
    return named(attack, "attack") if isinstance(attack, str) else attack_of(attack)


# On the integer route a coordinate costs about 100 ns once, and saves 1 ns for each trial.
_MIN_INTEGER_TRIALS: Final = MIN_BUDGET_TRIALS


def _resolve_auto_route(
    mechanism: Any, pair: Pair, route: Route, attack: AuditAttack, trials: int
) -> Route:
    dim = dim_of(pair)
    reason = _core.no_integer_route(describe_natively(mechanism, dim))
    if route == "integer" and not attack.by_ballot:
        raise errors.invalid("route", "'sampled' or 'auto' for any attack but MajorityVote", route)
    if route == "integer" and reason is not None:
        raise errors.invalid("route", f"'sampled' or 'auto' here ({reason})", route)
    if route != "auto":
        return route
    if reason or not attack.by_ballot:
        return "sampled"
    floats = pair_lists_to_float_arrays(pair)
    alike = all(np.all(side == side[0]) for side in (floats.x, floats.x_prime))
    return "integer" if alike or trials >= _MIN_INTEGER_TRIALS else "sampled"


def choose_request_pair(unsettled: UnsettledRequest) -> Request:
    """Choose the pair of inputs, and return the arguments of the audit with this pair.

    The returned arguments also contain the claim for this pair.
    """
    pair = unsettled.wanted.pairs[0] if len(unsettled.wanted.pairs) == 1 else None
    searched = None
    if pair is None:
        attack = require_scores(unsettled.attack, "to choose among pairs")
        at = unsettled.goal, unsettled.pilot_size, unsettled.trials, unsettled.seed
        pair, searched = choose_pair(
            unsettled.wanted, unsettled.make_source, attack, *at, unsettled.course
        )
    mechanism = unsettled.mechanism
    clean = noiseless_outputs(mechanism, pair)
    is_random = _default_trials(mechanism, pair) != _DEFAULT_TRIALS
    if clean is not None and is_random and inputs_equal(clean.x, clean.x_prime):
        # The means of a random encoder may be equal although its outputs, such as signs, differ.
        clean = None
    if clean is not None and not unsettled.null and inputs_equal(clean.x, clean.x_prime):
        requirement = "two inputs that the mechanism does not encode to one vector"
        error = ValueError(f"{errors.message('pair', requirement, pair)} (null=True allows them)")
        raise errors.tag_error(error, "pair")
    claim = _resolve_claim(mechanism, pair, unsettled.claim)
    advice = get_or_default(mechanism, "claim_advice") if claim is None else ""
    request = Request(
        **vars(unsettled) | {"claim": claim, "pair": pair},
        clean=clean,
        declared_loss=declared_loss(mechanism, pair, unsettled.delta),
        searched=searched,
        pair_notes=(
            *notes_on(mechanism, pair),
            *(_note_largest_certifiable(unsettled, pair) if is_random else ()),
            *_note_unrepeatable(unsettled),
            *note_raised_trials(unsettled.default_trials, unsettled.trials),
            *unsettled.probe_notes,
            *((advice,) if advice else ()),
        ),
    )
    for note in request.small_pilot_note:
        warnings.warn(note, errors.AssumptionWarning, stacklevel=4)
    return request


def increase_trials_for_claim(
    usual: int, mechanism: Any, pair: Pair, attack: AuditAttack, arguments: Arguments
) -> int:
    """Return the default number of trials of an audit, or a larger number if the claim needs it.

    The usual default is too small if even a perfect event could not certify a bound above the
    claim. A perfect event occurs in all draws on x and in no draw on x'.

    Args:
        usual: the usual default number of trials.
        mechanism: the audited mechanism.
        pair: the pair of inputs, or the first of several pairs.
        attack: the attack.
        arguments: the other arguments of the audit. If the field `claim` is None, the mechanism's
            own claim is used.

    Returns:
        The number of trials. If the number is increased, it is the smallest number with which the
        largest certifiable epsilon is at least the claim plus .5. The usual default is returned if
        it is large enough, or if outputs are slow to make. The usual default is also returned if
        the increased number would exceed a limit: 2^24 for noises of dpcore, or 2^20 for other
        mechanisms.
    """
    claim: Any = get_or_default(mechanism, "claim") if arguments.claim is None else arguments.claim
    native = can_core_draw(mechanism)
    is_slow = isinstance(mechanism, Tool) or is_unbatched(mechanism) or usual < _FEWEST_USUAL_TRIALS
    is_claim = isinstance(claim, (Claim, int, float, np.integer, np.floating))
    if attack.times or attack.pools or (is_slow and not native) or not is_claim:
        return usual
    if not isinstance(claim, Claim) and not 0.0 <= claim < math.inf:
        return usual
    name = arguments.bound if arguments.stop == "fixed" else "anytime"
    bound, level = (
        BOUNDS[name],
        1.0 - (1.0 - arguments.confidence) / (2.0 if arguments.floats else 1.0),
    )

    def is_enough(trials: int, margin: float) -> bool:
        counts = Counts(trials, trials, 0, trials)
        if isinstance(claim, Claim):
            if find_declaration(bound).curves == "point":
                type_one, two = error_limits_of(counts, (1.0 - level) / 2.0)
                return two < float(claim.trade_off(min(1.0, type_one * math.exp(margin))))
            epsilon, delta = choose_refutable_pair(claim, counts)
            return bound(counts, delta, level) > epsilon + margin
        return bool(bound(counts, arguments.delta, level) > claim * pair.distance + margin)

    most = _MAX_RAISED_NATIVE_TRIALS if native else _MAX_RAISED_TRIALS
    if is_enough(usual, 0.0) or not is_enough(most, _REACH_MARGIN):
        return usual
    low, high = usual, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle, _REACH_MARGIN) else (middle, high)
    return high


def note_raised_trials(usual: int | None, trials: int) -> tuple[str, ...]:
    """Return a note for the report: the default number of trials was increased for the claim.

    Args:
        usual: the usual default number of trials, or None if the number was not increased.
        trials: the number of trials of the audit.

    Returns:
        A tuple of one sentence, or an empty tuple if `usual` is None.
    """
    if usual is None:
        return ()
    return (f"{trials:,} trials, since the default of {usual:,} cannot refute this claim",)


def largest_certifiable(request: UnsettledRequest, pair: Pair, trials: int) -> float:
    """Return the largest bound on epsilon that an audit with `trials` trials can certify.

    The audit certifies this bound if its event occurs in all draws on x and in no draw on x'.
    """
    name = request.bound if request.stop == "fixed" else "anytime"
    bound = BOUNDS[name](Counts(trials, trials, 0, trials), request.delta, request.confidence)
    return divide_if_delta_0(bound, request.delta, pair.distance)


def _note_largest_certifiable(request: UnsettledRequest, pair: Pair) -> tuple[str, ...]:
    """Return a note on the largest certifiable epsilon, for mechanisms whose outputs are slow."""
    if request.attack.pools or request.attack.times:
        return ()
    more = _MORE_TRIALS_FACTOR * request.trials
    few, many = (largest_certifiable(request, pair, trials) for trials in (request.trials, more))
    return (
        f"every output costs a forward pass: {request.trials:,} trials certify an epsilon of "
        f"{few:.2f} at most; {more:,} trials (2 x {more:,} passes, {_MORE_TRIALS_FACTOR} times the "
        f"time) {many:.2f}",
    )


def _note_unrepeatable(request: UnsettledRequest) -> tuple[str, ...]:
    """Return a note if the same seed possibly does not repeat the audit."""
    if not (request.same_bits or (request.executor is None and request.checkpoint is None)):
        return (OTHER_BITS_NOTE,)
    if not isinstance(request.mechanism, Tool) or request.randomness != "own":
        return ()
    return (
        f"the command does not draw from the seed in {SEED_VARIABLE}: the bound holds, but no seed "
        "repeats this audit",
    )


def check_curve(claim: Any, delta: float, bound: str) -> None:
    """Raise a ValueError if the claim is a curve and `delta` or `bound` cannot be combined with it.

    Args:
        claim: the claim of the audit: a curve, a number or None.
        delta: the argument `delta` of the audit, which must be 0 for a curve.
        bound: name of the confidence bound. For a curve, the bound must allow values of delta above
            0.
    """
    if not isinstance(claim, Claim):
        return
    if delta:
        raise errors.invalid("delta", f"left out where claim is a curve ({claim})", delta)
    if find_declaration(BOUNDS[bound]).deltas == "zero":
        requirement = "left out, or one that has a form for delta, where claim is a curve"
        raise errors.invalid("bound", requirement, bound)


def _resolve_claim(mechanism: Any, pair: Pair, claim: float | Claim | None) -> float | Claim | None:
    """Return the claim that is tested: the given one, or the mechanism's own claim.

    Raises:
        ValueError: for one of these reasons:

            - the inputs are farther apart than the mechanism's own claim allows;
            - the claim is a curve, and the `distance` of the pair is not 1.
    """
    if isinstance(claim, Claim):
        if pair.distance != 1.0:
            requirement = f"1 where claim is a curve ({claim})"
            raise errors.invalid("distance of the pair", requirement, pair.distance)
        return claim
    if claim is not None:
        return errors.check_epsilon(claim)
    own = get_or_default(mechanism, "claim")
    if own is None or callable(own):
        return None
    norm, most = (get_or_default(mechanism, name) for name in ("norm", "sensitivity"))
    if isinstance(norm, str) and most is not None:
        apart, most = (
            distance(pair, cast(Any, norm)),
            errors.real("sensitivity of the mechanism", most),
        )
        if apart > most * (1.0 + _DISTANCE_SLACK):
            shown = norm.replace("linf", "Linf").replace("l", "L", 1)
            requirement = f"at {shown} distance at most {most!r}"
            text = errors.message("pair", requirement, apart)
            error = ValueError(f"{text} (or give claim=, which is then tested as it stands)")
            raise errors.tag_error(error, "pair")
    return errors.real("claim of the mechanism", own, low=0.0)
