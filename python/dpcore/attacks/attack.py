"""The contract between audits and attacks: how an attack is fitted, and what its events allow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, Final, NamedTuple, Protocol

import numpy as np
from numpy.random import Generator

from ..bounds import clopper_pearson
from ..errors import invalid, mistyped
from ..events import Above, Event, Never
from ..events.above import Score
from ..mechanisms.callables import name_of
from ..records import Counts, Pair, PartsRead, SeenOutput, Shown
from ..sampling.timed import Call
from .arrays import Array, Floats
from .choosing.choice import Choice, Goal, choose_events, not_applicable
from .reading.candidates import read_candidates
from .scores.columns import read_both_sides

__all__ = [
    "Attack", "AuditAttack", "Call", "Fitted", "NumericAttack", "Own", "Pilot", "ScoreAttack",
    "attack_name", "attack_of", "power_below", "require_scores",
]  # fmt: skip

_MAX_PILOT_DRAWS: Final = 2**26
"""Pilot draws a side where the caller did not say."""


@dataclass(frozen=True, slots=True, repr=False)
class Fitted(Shown):
    """The decision of a pilot.

    Args:
        event: what is counted.
        direction: the side in the numerator.
        merit: the bound that it is expected to certify; None where that was not estimated.
        pilot: pilot draws used on each side.
        thresholds: of the event's score, for the trade-off curve; empty without a score.
        lattice: the choice for the floating-point finding, or None.
        notes: what a reader should know of the outputs.
        remarks: what a script should hear of the choice too.
        read: how much of the outputs was read; None where the attack does not say.
        inside: distinct outputs inside the event, the most frequent ones of the pilot.
        counts: of the event in the part of the pilot that chose it; None where no part did.
    """

    event: Event
    direction: str
    merit: float | None
    pilot: int
    thresholds: Floats
    lattice: Choice | None = None
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    read: PartsRead | None = None
    inside: tuple[SeenOutput, ...] = ()
    counts: Counts | None = None


class TimingCounts(NamedTuple):
    """The counts of a timing audit; n and n_prime are random, as the conditional bound wants.

    Args:
        event: what was counted, on rows of output and latency (see `Timed.to_rows`).
        direction: "x" or "x_prime": the side for the numerator, chosen on the pilot.
        k: calls on x that hit the event.
        k_prime: calls on x' that hit it.
        n: counted calls on x.
        n_prime: counted calls on x'.
        pilot: calls that chose the event, both sides together.
        notes: what a reader should know of them.
    """

    event: Above
    direction: str
    k: int
    k_prime: int
    n: int
    n_prime: int
    pilot: int
    notes: tuple[str, ...] = ()


class Pilot(Protocol):
    """The pilot draws that an attack is fitted on."""

    @property
    def pair(self) -> Pair:
        """The two inputs."""

    @property
    def goal(self) -> Goal:
        """The aim of the counted draws."""

    @property
    def size(self) -> int:
        """Pilot draws on each side."""

    def outputs(self) -> tuple[Array, Array]:
        """Return outputs on both sides, as many of the pilot as are kept at once."""

    def counts(self, event: Event, size: int) -> Counts:
        """Return how often an event happened among the first `size` on each side."""

    def fit_scores(self, attack: ScoreAttack) -> Fitted:
        """Choose the best threshold on the best of the scores that an attack makes."""


class Attack(Protocol):
    """An attack, which names an event: a function `(outputs, outputs_prime, pair) -> event`.

    Every attack of `dpcore.attacks` is one, and so is any function of one's own. It sees pilot
    draws, which are not counted.
    """

    def __call__(self, outputs: Array, outputs_prime: Array, pair: Pair, /) -> Event:
        """Choose the event to count, from pilot outputs.

        Args:
            outputs: pilot outputs on `x`, shape `(size, ...)`.
            outputs_prime: pilot outputs on `x_prime`, shape `(size', ...)`.
            pair: the pair they were drawn on.

        Returns:
            A function of outputs that returns one bool for each.
        """


class AuditAttack(Shown):
    """An attack with its answers to an audit; a plain function has the defaults of `Own`."""

    __slots__ = ()

    pools: ClassVar[bool] = False
    """True if coordinates are pooled: then the bound has a form of its own."""
    times: ClassVar[bool] = False
    """True if calls are timed one by one, on sides drawn by coin (see `timed_counts`)."""
    by_ballot: ClassVar[bool] = False
    """True if its event is a vote, which the core counts without making outputs."""
    looks_at_floats: ClassVar[bool] = False
    """True if the floating-point finding is looked for by default."""
    fewest_pilot: ClassVar[int] = 32
    """Pilot draws a side below which a broken claim passes by the pilot's bad luck: with Laplace
    noise of loss 1, 10 % of audits with 16 certified 0, with 2 most of them; with 24 nearly what
    any did."""

    @property
    def given(self) -> Any:
        """The object that the user passed, for error messages."""
        return self

    @property
    def scoring(self) -> ScoreAttack | None:
        """The attack itself if it makes scores, which can be judged, refitted and compared."""
        return None

    def default_pilot(self, trials: int) -> int:
        """Return the pilot draws a side where the caller did not say, for so many counted ones.

        A power of two, so that audits of about equal size share their event and can be merged.
        """
        trials = power_below(trials)
        return min(power_below(max(min(max(trials, 128), 2000), trials // 8)), _MAX_PILOT_DRAWS)

    def fitted_on(self, pilot: Pilot) -> Fitted:
        """Choose event and direction from pilot draws."""
        raise NotImplementedError(f"{type(self).__name__} is not fitted on draws")

    def timed_counts(
        self,
        call: Call,
        pair: Pair,
        calls: int,
        rng: Generator,
        *,
        pilot: int | None,
        confidence: float,
    ) -> TimingCounts:
        """Return event, direction and counts of timed calls, both sides together."""
        raise NotImplementedError(f"{type(self).__name__} times no calls")


class ScoreAttack(AuditAttack):
    """An attack that makes scores; its event is the best threshold on the best of them.

    A subclass is a frozen dataclass with one method, `candidates`. Called like any attack it
    halves the pilot: scores are fitted on the first halves, threshold and score chosen on the
    second ones.
    """

    __slots__ = ()

    parts = True
    """True if it is also fitted on the parts of outputs that are not real numbers."""
    takes_stated_scores: ClassVar[bool] = False
    """True if a mechanism's own `log_ratio` takes part as one more score."""

    def candidates(self, outputs: Array, outputs_prime: Array, pair: Pair) -> tuple[Score, ...]:
        """Fit scores on pilot outputs; none where the attack does not apply."""
        raise NotImplementedError(f"{type(self).__name__} has no candidates")

    def __call__(self, outputs: Array, outputs_prime: Array, pair: Pair) -> Above | Never:
        """Choose the event from pilot outputs.

        Args:
            outputs: pilot outputs on `x`, shape `(size, ...)`.
            outputs_prime: pilot outputs on `x_prime`, shape `(size', ...)`.
            pair: the pair they were drawn on.

        Returns:
            The event expected to certify most on ten times as many draws.

        Raises:
            ValueError: if the attack does not apply to such outputs, or a side has fewer than
                two.
        """
        outputs, outputs_prime = np.asarray(outputs), np.asarray(outputs_prime)
        cut, cut_prime = len(outputs) // 2, len(outputs_prime) // 2
        if cut == 0 or cut_prime == 0:
            sizes = (len(outputs), len(outputs_prime))
            raise invalid("outputs", "at least two pilot outputs on each side", sizes)
        scores = read_candidates(self, outputs[:cut], outputs_prime[:cut_prime], pair)[0]
        if not scores:
            raise not_applicable(self, outputs)
        rest, rest_prime = outputs[cut:], outputs_prime[cut_prime:]
        goal = Goal(10 * len(outputs))
        return max(
            choose_events(scores, rest, rest_prime, goal), key=lambda found: found.merit
        ).counted

    @property
    def scoring(self) -> ScoreAttack:
        """The attack itself."""
        return self

    def fitted_on(self, pilot: Pilot) -> Fitted:
        """Choose the best threshold on the best of its scores."""
        return pilot.fit_scores(self)

    def seldom(
        self, outputs: Sequence[Array], outputs_prime: Sequence[Array], goal: Goal
    ) -> Choice | None:
        """Choose an event too rare for a part of the pilot on all of it; None without one."""
        return None

    def no_scores(self, outputs: Array) -> None:
        """Raise an error if there are no scores of such outputs, unless the attack allows that."""
        raise not_applicable(self, outputs)


class NumericAttack(ScoreAttack):
    """An attack that makes scores of rows of numbers alone, without a look at the inputs.

    A subclass has the method `make_scores` in place of `candidates`.
    """

    __slots__ = ()

    least_columns: ClassVar[int] = 1
    """Entries that an output must have."""
    fallback: ClassVar[tuple[Score, ...]] = ()
    """Scores of an attack that applies and finds nothing: one that says nothing certifies 0."""

    def candidates(self, outputs: Array, outputs_prime: Array, pair: Pair) -> tuple[Score, ...]:
        """Return the scores that the pilot suggests, or those of an attack that finds nothing.

        Args:
            outputs: pilot outputs on `x`, shape `(size, ...)`.
            outputs_prime: pilot outputs on `x_prime`, shape `(size', ...)`.
            pair: the pair they were drawn on (not used).

        Returns:
            The scores; none where the attack does not apply.
        """
        return self.telling(outputs, outputs_prime, self.fallback)

    def telling(
        self, outputs: Array, outputs_prime: Array, fallback: tuple[Score, ...] = ()
    ) -> tuple[Score, ...]:
        """Return the scores that the pilot suggests.

        Args:
            outputs: pilot outputs on `x`, shape `(size, ...)`.
            outputs_prime: pilot outputs on `x_prime`, shape `(size', ...)`.
            fallback: returned where the attack applies and finds nothing.

        Returns:
            The scores; none where the attack does not apply.
        """
        rows = read_both_sides(outputs, outputs_prime)
        if rows is None or rows[0].shape[1] < self.least_columns:
            return ()
        return tuple(self.make_scores(*rows)) or fallback

    def make_scores(self, rows: Array, rows_prime: Array) -> Iterable[Score]:
        """Make scores from pilot outputs as rows of numbers, shapes `(size, columns)`."""
        raise NotImplementedError(f"{type(self).__name__} makes no scores of numbers")


def power_below(size: int) -> int:
    """Return the largest power of two up to a size, at least 1."""
    return 1 << (max(1, size).bit_length() - 1)


def require_scores(attack: AuditAttack, purpose: str) -> ScoreAttack:
    """Return the attack, if it makes scores.

    Args:
        attack: any attack.
        purpose: what the scores are needed for, in the words of the complaint.

    Raises:
        ValueError: if it makes none.
    """
    if attack.scoring is None:
        raise invalid("attack", f"one that makes scores, {purpose}", attack.given)
    return attack.scoring


def attack_name(attack: AuditAttack) -> str:
    """Return the name of an attack in a report: its class, and options that are not the default.

    One of somebody else's is named as any function is.
    """
    given, kind = attack.given, type(attack.given)
    if not kind.__module__.startswith(f"{__package__}."):
        return name_of(given)
    plain = all(
        field.default is not MISSING and getattr(given, field.name) == field.default
        for field in fields(given)
    )
    return kind.__name__ if plain else repr(given)


@dataclass(frozen=True, slots=True, repr=False)
class Own(AuditAttack):
    """Any function that names the event; the pilot still chooses the order of the sides.

    Args:
        function: `(outputs, outputs_prime, pair) -> event`.
    """

    function: Callable[..., Any]

    @property
    def given(self) -> Callable[..., Any]:
        """The function."""
        return self.function

    def fitted_on(self, pilot: Pilot) -> Fitted:
        """Return the function's event, and the direction that certifies more of it."""
        outputs, outputs_prime = pilot.outputs()
        found = self.function(outputs, outputs_prime, pilot.pair)
        if not callable(found):
            raise mistyped("event", "a callable outputs -> bools", found)
        size, level = len(outputs), (pilot.goal.delta, pilot.goal.confidence)
        counts = pilot.counts(found, size)
        ways = {"x_prime": counts.swapped(), "x": counts}
        merits = {way: clopper_pearson(ordered, *level) for way, ordered in ways.items()}
        direction = max(merits, key=merits.__getitem__)
        return Fitted(found, direction, merits[direction], size, np.empty(0))


def attack_of(given: Any) -> AuditAttack:
    """Return whatever a user hands over as an attack, with the answers that an audit asks for.

    Args:
        given: an attack of this package, a subclass of `ScoreAttack`, or any function.

    Raises:
        TypeError: if it is none of them, an attack's class among them.

    Example:
        >>> attack_of(max).given
        <built-in function max>
    """
    if isinstance(given, type) and issubclass(given, AuditAttack):
        raise mistyped("attack", f"an attack, not its class ({given.__name__}() makes one)", given)
    # A subclass of the vote may choose otherwise when it is called.
    voting = getattr(given, "by_ballot", False) and "by_ballot" not in vars(type(given))
    if isinstance(given, AuditAttack) and not voting:
        return given
    if not callable(given):
        raise mistyped("attack", "a callable (outputs, outputs_prime, pair) -> event", given)
    return Own(given)
