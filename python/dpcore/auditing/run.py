"""The audit: attack a mechanism, count on fresh draws, certify a lower bound on epsilon."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict

from ..attacks import AttackName
from ..attacks.attack import Attack, AuditAttack
from ..bounds import BoundName
from ..claims.claim import Claim
from ..hints import hinted
from ..mechanisms.callables import is_shared, one_by_one
from ..pairs import Neighbour, Search
from ..records import Pair
from ..results.audits import Audit
from ..results.figures import numerator_first
from ..sampling.course import Course
from ..streams import Rng
from .collecting import count_event
from .fitting import PilotDraws
from .pairing import draws_of
from .request import Arguments, Request, Route, Stop, most_certified, request_of, settle_request
from .stopping import first_pilot, stopped_early
from .timed import audit_timing

if TYPE_CHECKING:
    from ..sampling.forecast import Forecast

__all__ = ["Audit", "AuditOptions", "audit"]


class AuditOptions(TypedDict, total=False):
    """Keywords of `dpcore.audit` except its claim and `epsilon`, the claim's other name.

    A second list, for type checkers: a test holds it equal to the first.
    """

    neighbour: Neighbour | None
    null: bool
    attack: Attack | AuditAttack | AttackName | None
    trials: int | float | str | None
    start: int | float | str
    epsilon: float | Claim | None
    delta: float
    confidence: float | None
    bound: BoundName
    stop: Stop
    floats: bool
    pilot: int | float | str | None
    rng: Rng
    route: Route
    block: int | float | str | None
    threads: int | None
    executor: Executor | None
    progress: bool | None
    source: bool


@hinted
def audit(
    mechanism: Any,
    pair: Pair | tuple[Any, Any] | Iterable[Pair] | Search | None = None,
    *,
    neighbour: Neighbour | None = None,
    null: bool = False,
    attack: Attack | AuditAttack | AttackName | None = None,
    trials: int | float | str | None = None,
    start: int | float | str = 0,
    claim: float | Claim | None = None,
    delta: float = 0.0,
    confidence: float = 0.95,
    bound: BoundName = "clopper_pearson",
    stop: Stop = "fixed",
    floats: bool = False,
    pilot: int | float | str | None = None,
    rng: Rng = None,
    route: Route = "auto",
    block: int | float | str | None = None,
    threads: int | None = None,
    executor: Executor | None = None,
    source: bool = True,
    progress: bool | None = None,
) -> Audit:
    """Attack a mechanism and certify a lower bound on the privacy loss that it really has.

    Outputs are drawn on both inputs of a pair of neighbours, and an event is counted on each
    side. Pair, event and direction (which side goes into the numerator) are fixed on separate
    pilot draws before the fresh draws are made and counted; `n = n' = trials` exactly. The result
    says *refuted* when the certified bound exceeds the claim; it can never say that a mechanism
    is private.

    Args:
        mechanism: a native mechanism; any callable `(x, size, rng) -> outputs` with outputs of
            shape `(size, ...)` (or a list of `size` outputs of any kind: strings, tuples, lists
            of changing length), drawn from the numpy Generator `rng` alone; an OpenDP
            measurement, a diffprivlib mechanism, a scipy or torch distribution (added to x), a
            torch module; an object whose method `as_mechanism()` returns one, such as a
            `dpcore.torch.PrivateEncoder`. One that encodes its input first may give attacks the
            vector that its noise is added to, see `dpcore.mechanisms.declarations`.
        pair: two neighbouring inputs, a `Pair` or a tuple; several Pairs, of which the one
            expected to certify most is audited; a `dpcore.pairs.search(...)`; None takes the
            mechanism's `default_pair()`, or [0] against [1] for the package's own noises. Of
            an L1 claim about many entries, attacks see most on
            `dpcore.pairs.patterns(dim, "one")`.
        neighbour: which inputs the claim speaks of: `dpcore.pairs.L1(1.0)`, `L2`, `Linf`,
            `Replace`, `AddRemove` or an own relation. Every pair that is tried is checked, and
            its `distance` must be 1; a mechanism's own claim is held to its own norm and
            sensitivity besides. An OpenDP measurement then brings its claim, and its delta. None
            reads the claim as one about the two inputs given.
        null: allow two equal inputs, on which whatever is found is a false alarm.
        attack: an object of `dpcore.attacks`, its name ("threshold", "majority-vote"), or any
            `(outputs, outputs_prime, pair) -> event`, fed with pilot draws; None or "auto" is
            `dpcore.attacks.Auto()`, the portfolio of all that apply.
        trials: draws on each side that are counted: an int, or "1e8", or 1e8. None is 10**6, and
            4,000 where every output costs a forward pass of a random encoder of texts.
        start: first trial; audits of disjoint ranges of trials with one seed (and one `pilot=`,
            whose default follows `trials`) can be added.
        claim: epsilon that somebody claims, or a curve of `dpcore.claims` such as `GDP(1.0)`;
            None takes the mechanism's own claim where it has one. Without any claim the verdict
            is "no claim given". With bound "clopper_pearson" the event's two limits are compared
            with the whole curve; every other bound, and early stop, tests the tangent (epsilon,
            delta) of the curve that the pilot chose.
        delta: delta of the claim, in [0, 1); not with a curve, which has its own.
        confidence: probability that the bound holds, strictly between 0 and 1.
        bound: "clopper_pearson", "exact" (less conservative), "conditional" (delta 0 only) or
            "anytime"; fixed here, before anything is counted.
        stop: "fixed" counts all trials; "refuted" looks after every slice and stops as soon as
            the claim is refuted, on an anytime bound.
        floats: True lets the floating-point finding count towards bound and verdict; each of the
            two then has half of the error probability.
        pilot: draws on each side that choose pair and event and are not counted; None is about
            an eighth of the trials. Rare events need many.
        rng: where all randomness comes from: None (fresh entropy, of which the report records the
            seed), the seed of a report, an int in [0, 2**63), which repeats it (`--seed` on the
            command line), or a Generator, of which one number is drawn.
        route: how native votes are counted: "integer" compares random integers, "sampled" makes
            every output; both give the same counts. "auto" takes the faster one that exists.
        block: trials in a block, part of what repeats a result; None is 2**17 numbers' worth,
            2**22 for a torch module on CUDA.
        threads: None is all cores for native mechanisms and 1 for callables. A callable with
            `thread_safe = False`, or with randomness of its own and no `thread_safe = True`,
            refuses more, and executors of threads.
        executor: any `concurrent.futures.Executor` that draws and counts the blocks; in a
            process pool mechanism and event must be picklable. The counts are the same. Where a
            callable draws from the global generators of Python, numpy or torch, every process has
            them seeded anew for each block; from another generator of its own it is refused, for
            every process would repeat its draws.
        source: False leaves the mechanism's source text, its hash, and the outputs inside the
            event out of the audit and so out of page and JSON.
        progress: show a bar; None shows it for long work on a terminal or in a notebook.

    Returns:
        The `Audit`. Where rows turn out not to be independent, `checks` says why, the verdict is
        "invalid: ..." and a `dpcore.errors.AssumptionWarning` is given. After Ctrl-C, once both
        sides have counted something, it holds what was counted, with `partial` set and the anytime
        bound.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if a value is out of range; if there is no pair, its inputs are equal, or
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
    given = Arguments(
        mechanism=mechanism,
        pair=pair,
        neighbour=neighbour,
        null=null,
        attack=attack,
        trials=trials,
        start=start,
        claim=claim,
        delta=delta,
        confidence=confidence,
        bound=bound,
        stop=stop,
        floats=floats,
        pilot=pilot,
        rng=rng,
        route=route,
        block=block,
        threads=threads,
        executor=executor,
        source=source,
    )
    with Course(progress, alive=executor is None) as course:
        request = request_of(given, course, lambda tried: course.say(str(_make_forecast(tried))))
        request = settle_request(request)
        if request.attack.times:
            return audit_timing(request)
        drawn = request.drawn()
        if request.stop == "refuted":
            return stopped_early(request, drawn)
        size, floats = request.pilot_size, request.looks_at_floats
        course.step("fit", "choosing the event", 2 * size)
        stated = request.stated_scores
        draws = PilotDraws(drawn, request.known, request.goal, size, floats, stated)
        fitted = request.attack.fitted_on(draws)
        if isinstance(request.claim, Claim):
            seen = fitted.counts or draws.counts(fitted.event, size)
            request = request.at_tangent(numerator_first(seen, fitted.direction))
        return count_event(request, drawn, fitted)


def _make_forecast(request: Request) -> Forecast:
    """Forecast the cost of the audit from its first calls."""
    from ..sampling.forecast import Forecast

    search, draws = request.wanted.search, request.drawn()
    early = request.stop != "fixed"
    pilot = first_pilot if early else request.attack.default_pilot

    return Forecast(
        seconds=request.course.estimate_seconds(draws.block),
        calls=request.course.calls,
        search=draws_of(request.wanted, request.pilot_size),
        first=0 if search is None else search.schedule()[0][1],
        limit=None if search is None else search.seconds,
        pilot=lambda trials: request.pilot or pilot(trials),
        trials=request.trials,
        early=early,
        most=None if request.attack.pools else partial(most_certified, request),
        claim=None if isinstance(request.claim, Claim) else request.claim,
        threads=draws.threads,
        block=draws.block,
        one_by_one=one_by_one(request.mechanism),
        shared=is_shared(request.mechanism),
    )
