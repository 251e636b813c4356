"""The audit: attack a mechanism, count on fresh draws, certify a lower bound on epsilon."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from . import _core
from ._counting import CallableSource, Event, NativeSource, Source, call, generator, name_of
from .attacks import MajorityVote, choose
from .audit_record import Audit
from .bounds import clopper_pearson
from .errors import choice, confidence_level, count, delta_level, integer, invalid, mistyped, real
from .events import Vote
from .pairs import distance, zeros_ones
from .progress import Progress
from .published import is_native
from .records import Counts, Pair
from .sampling import (
    COUNT,
    MOST_DRAWS,
    PILOT,
    SELECTION,
    Rng,
    block_of,
    describe,
    seed_of,
    threads_of,
)

__all__ = ["Audit", "audit"]

_SLICE_SECONDS = 0.4
_MOST_PILOT = 2**17
_AGAIN_SECONDS = 2.0
_SLACK = 1e-9
"""Relative slack of the distance check: a pair at its sensitivity may be a rounding beyond it."""

_last_interrupt = -_AGAIN_SECONDS


def audit(
    mechanism: Callable[..., Any],
    pair: Pair | tuple[Any, Any] | None = None,
    *,
    attack: Callable[..., Any] | None = None,
    trials: int | float | str = 10**6,
    start: int = 0,
    claim: float | None = None,
    delta: float = 0.0,
    confidence: float = 0.95,
    rng: Rng = None,
    route: str = "auto",
    block: int | None = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> Audit:
    """Attack a mechanism and certify a lower bound on the privacy loss that it really has.

    Outputs are drawn on both inputs of a pair of neighbours, and an event is counted on each
    side: by default the reconstruction attack's majority vote. Event and direction (which side
    goes into the numerator) are fixed on separate pilot draws before the fresh draws are made and
    counted; `n = n' = trials` exactly. The result says *refuted* when the certified bound exceeds
    the claim; it can never say that a mechanism is private.

    Args:
        mechanism: a native mechanism, or any callable `(x, size, rng) -> outputs` with outputs of
            shape `(size, ...)`, drawn from the numpy Generator `rng` alone.
        pair: two neighbouring inputs, a `Pair` or a tuple; None takes the mechanism's
            `default_pair()` where it has one, else zeros against ones in one dimension.
        attack: `(outputs, outputs_prime, pair) -> event`, fed with pilot draws; None is
            `dpcore.attacks.MajorityVote()`.
        trials: draws on each side that are counted: an int, or "1e8", or 1e8.
        start: first trial; audits of disjoint ranges of trials with one seed can be added.
        claim: epsilon that somebody claims; None takes the mechanism's own claim where it has
            one. Without any claim the verdict is "no claim given".
        delta: delta of the claim, in [0, 1).
        confidence: probability that the bound holds, strictly between 0 and 1.
        rng: None (fresh entropy, recorded), an int in [0, 2**63) or a Generator.
        route: how native votes are counted: "integer" compares random integers, "sampled" makes
            every output; both give the same counts. "auto" takes the faster one that exists.
        block: trials in a block, part of what repeats a result; None is 2**17 numbers' worth.
        threads: None is all cores for native mechanisms and 1 for callables.
        progress: show a bar; None shows it for long work on a terminal or in a notebook.

    Returns:
        The `Audit`. After Ctrl-C, once both sides have counted something, it holds what was
        counted, with `partial` set.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if a value is out of range; if the pair is further apart than the mechanism's
            claim speaks of and no claim was given; if outputs have the wrong shape.
        KeyboardInterrupt: on Ctrl-C before both sides have counted, or on a second one within two
            seconds.

    Source:
        Habernal (2022), section 4 and eq. 12 (attack and empirical loss); Jagielski, Ullman and
        Oprea (2020) (certification by Clopper-Pearson limits on fresh draws).

    Example:
        >>> import dpcore
        >>> report = dpcore.audit(dpcore.published.DPText(epsilon=1.0), trials=10**6, rng=1)
        >>> report.verdict, report.epsilon_lower > 8
        ('refuted', True)
    """
    trials, start = count("trials", trials), integer("start", start, 0)
    delta, confidence = delta_level(delta), confidence_level(confidence)
    choice("route", route, ("auto", "integer", "sampled"))
    if not callable(mechanism):
        raise mistyped("mechanism", "a callable (x, size, rng) -> outputs", mechanism)
    attack = MajorityVote() if attack is None else attack
    if not callable(attack):
        raise mistyped("attack", "a callable (outputs, outputs_prime, pair) -> event", attack)
    pair = _pair_of(mechanism, pair)
    claim = _claim_of(mechanism, pair, claim)
    seed = seed_of(rng)
    source, route = _source_of(mechanism, pair, seed, trials, start, route, block, threads)
    if (start + trials) * source.elements >= MOST_DRAWS:
        raise invalid("trials", "small enough that trials x dim is below 2**63", trials)
    if start % source.block and isinstance(source, CallableSource):
        requirement = f"a multiple of block = {source.block} for a Python callable"
        raise invalid("start", requirement, start)
    event, direction, pilot = _choose(source, pair, attack, trials, confidence, delta)
    begun = time.perf_counter()
    done, tally, tally_prime = _count(source, event, (start, start + trials), progress)
    counts = Counts(tally[0], done, tally_prime[0], done)
    return Audit(
        mechanism=mechanism,
        pair=pair,
        attack=_attack_name(attack),
        event=event,
        direction=direction,
        counts=counts,
        claim=claim,
        delta=delta,
        confidence=confidence,
        seed=seed,
        block=source.block,
        route=route,
        ranges=((start, start + done),),
        end=start + trials,
        nan=tally[1],
        nan_prime=tally_prime[1],
        pilot=pilot,
        partial=done < trials,
        shape=source.shape,
        threads=source.threads,
        seconds=time.perf_counter() - begun,
    )


def _pair_of(mechanism: Any, pair: Pair | tuple[Any, Any] | None) -> Pair:
    if pair is None:
        default = getattr(mechanism, "default_pair", None)
        found = zeros_ones(1) if default is None else default()
        if not isinstance(found, Pair):
            raise mistyped("default_pair()", "a Pair", found)
        return found
    if isinstance(pair, tuple) and len(pair) == 2:
        return Pair(*pair)
    if not isinstance(pair, Pair):
        raise mistyped("pair", "a Pair, a tuple (x, x_prime) or None", pair)
    return pair


def _claim_of(mechanism: Any, pair: Pair, claim: float | None) -> float | None:
    """The claim that the audit tests; a mechanism's own only where it applies to the pair."""
    if claim is not None:
        return real("claim", claim, low=0.0)
    own = getattr(mechanism, "claim", None)
    if own is None or callable(own):
        return None
    norm, most = getattr(mechanism, "norm", None), getattr(mechanism, "sensitivity", None)
    if isinstance(norm, str) and most is not None:
        apart, most = distance(pair, norm), real("sensitivity of the mechanism", most)
        if apart > most * (1.0 + _SLACK):
            shown = norm.replace("linf", "Linf").replace("l", "L", 1)
            requirement = f"at {shown} distance at most {most!r}"
            raise ValueError(
                f"pair must be {requirement}, got {apart!r} (or give claim=, "
                "which is then tested as it stands)"
            )
    return real("claim of the mechanism", own, low=0.0)


def _source_of(
    mechanism: Any,
    pair: Pair,
    seed: int,
    trials: int,
    start: int,
    route: str,
    block: int | None,
    threads: int | None,
) -> tuple[NativeSource | CallableSource, str]:
    if is_native(mechanism):
        # The checks of a native mechanism's inputs are those of a vote.
        dim = Vote.between(pair).threshold.size
        block = block_of(dim) if block is None else integer("block", block, 1, MOST_DRAWS // dim)
        reason = _core.no_integer_route(describe(mechanism, dim))
        if route == "integer" and reason is not None:
            raise invalid("route", f"'sampled' or 'auto' here ({reason})", route)
        if route == "auto":
            route = "sampled" if reason else "integer"
        native = NativeSource(mechanism, pair, seed, block, threads_of(threads), route)
        return native, route
    if route != "auto":
        raise invalid("route", "'auto' for a Python callable", route)
    workers = threads_of(threads, default=1)
    if workers > 1 and getattr(mechanism, "thread_safe", True) is False:
        raise invalid("threads", "1 for a mechanism that is not thread-safe", workers)
    # A selection stream that nothing else uses: the probe only tells the shape of outputs.
    shape = call(mechanism, pair.x, 2, generator(seed, SELECTION, 0, 0)).shape[1:]
    block = block_of(math.prod(shape)) if block is None else integer("block", block, 1, 2**40)
    return (
        CallableSource(mechanism, pair, seed, block, workers, shape, start + trials),
        "callable",
    )


def _choose(
    source: Source,
    pair: Pair,
    attack: Callable[..., Any],
    trials: int,
    confidence: float,
    delta: float,
) -> tuple[Event, str, int]:
    """Event and direction from pilot draws, and how many were used on each side."""
    if type(attack) is MajorityVote:
        event = attack.event(pair)
        pilot = _pilot_size(trials // 100)
        if pilot == 0:
            return event, "x_prime", 0
        vote, direction = choose(_pilot_counts(source, event, pilot), confidence, delta)
        return replace(event, vote=vote), direction, pilot
    pilot = _pilot_size(max(1000, trials // 10), 2**24 // max(1, source.elements))
    outputs, outputs_prime = (source.outputs(PILOT, side, 0, pilot) for side in (0, 1))
    found = attack(outputs, outputs_prime, pair)
    if not callable(found):
        raise mistyped("event", "a callable outputs -> bools", found)
    counts = _pilot_counts(source, found, pilot)
    # The attack named the event, so only the order of the sides is still open.
    ordered = sorted(("x_prime", "x"), key=lambda way: -_merit(counts, way, confidence, delta))
    return found, ordered[0], pilot


def _merit(counts: Counts, direction: str, confidence: float, delta: float) -> float:
    return clopper_pearson(counts if direction == "x" else counts.swapped(), delta, confidence)


def _pilot_size(wanted: int, most: int = _MOST_PILOT) -> int:
    """A power of two, so that audits of about the same size share their pilot draws."""
    size = min(wanted, max(1, most), _MOST_PILOT)
    return 0 if size < 1 else 1 << (size.bit_length() - 1)


def _pilot_counts(source: Source, event: Event, size: int) -> Counts:
    hits, hits_prime = (source.count(event, PILOT, side, 0, size)[0] for side in (0, 1))
    return Counts(hits, size, hits_prime, size)


def _count(
    source: NativeSource | CallableSource,
    event: Event,
    trials: tuple[int, int],
    progress: bool | None,
) -> tuple[int, tuple[int, int], tuple[int, int]]:
    """Count both sides in slices; Ctrl-C keeps the slices that both sides have finished."""
    global _last_interrupt
    start, stop = trials
    # One name for both, so that no Ctrl-C can fall between counts and their number of trials.
    counted = (0, (0, 0), (0, 0))
    with Progress("auditing", stop - start, progress) as bar:
        try:
            for first, end in _slices(start, stop, source.block, source.threads):
                part = source.count(event, COUNT, 0, first, end)
                part_prime = source.count(event, COUNT, 1, first, end)
                counted = (end - start, _sum(counted[1], part), _sum(counted[2], part_prime))
                bar.advance(end - first)
        except KeyboardInterrupt:
            again = time.monotonic() - _last_interrupt < _AGAIN_SECONDS
            _last_interrupt = time.monotonic()
            if counted[0] == 0 or again:
                raise
    return counted


def _sum(first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int]:
    return first[0] + second[0], first[1] + second[1]


def _slices(start: int, stop: int, block: int, threads: int) -> Iterator[tuple[int, int]]:
    """Runs of whole blocks, each about as long as _SLICE_SECONDS to count on both sides."""
    blocks = threads
    while start < stop:
        begun = time.perf_counter()
        end = min(stop, (start // block + blocks) * block)
        yield start, end
        taken = time.perf_counter() - begun
        start = end
        factor = min(8.0, _SLICE_SECONDS / max(taken, 1e-6))
        blocks = max(threads, int(blocks * factor) // threads * threads)


def _attack_name(attack: Callable[..., Any]) -> str:
    return "MajorityVote" if type(attack) is MajorityVote else name_of(attack)
