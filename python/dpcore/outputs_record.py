"""The result of an audit of recorded outputs: what was counted, and what follows from it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, cast

from . import _json
from ._next_step import more_rows
from .bounds import clopper_pearson, exact, one_run, one_run_fdp
from .errors import integer
from .records import Counts, Pair, Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMAT: Final = "dpcore.audit_outputs/1"

ROWS: Final = {
    "independent": "each row is an output of its own run, drawn independently of all others",
    "one_run": "all rows are scores of canaries from a single run, each of them included or left "
    "out by its own fair coin",
}
"""What can be said about the rows, and what it means."""

BOUNDS: Final[Mapping[str, Mapping[str, Callable[..., float]]]] = {
    "independent": {"clopper_pearson": clopper_pearson, "exact": exact},
    "one_run": {"one_run": one_run, "one_run_fdp": one_run_fdp},
}
"""The bounds that hold for each kind of rows, with unequal numbers on the two sides too."""

UNKNOWN: Final = Pair("x", "x_prime")
"""Stands for inputs that nobody gave; an attack that needs them cannot use it."""

_TITLES: Final = {
    "clopper_pearson": "Clopper-Pearson",
    "exact": "unconditional exact test",
    "one_run": "one training run",
    "one_run_fdp": "one training run, of a Gaussian claim",
}


_REVERSED: Final = 0.01
"""Chance below which so few right guesses are no matter of luck."""

_TURNED: Final = (
    "fewer than half of the guesses are right: higher scores must speak for inclusion (scores "
    "that are turned round after a look need fresh canaries)"
)


@dataclass(frozen=True, slots=True)
class Guesses:
    """How often it was guessed right which canaries had been included in a run.

    Args:
        guessed_in: canaries guessed to be included.
        correct_in: how many of those were.
        guessed_out: canaries guessed to be left out.
        correct_out: how many of those were.
        canaries: all canaries, guessed or not.

    Raises:
        TypeError: if one of them is not an integer.
        ValueError: if one of them is out of range, or there is no guess at all.

    Example:
        >>> found = Guesses(50, 40, 50, 35, 1000)
        >>> found.guesses, found.correct
        (100, 75)
    """

    guessed_in: int
    correct_in: int
    guessed_out: int
    correct_out: int
    canaries: int

    def __post_init__(self) -> None:
        """Check the ranges."""
        integer("canaries", self.canaries, 1)
        integer("guessed_in", self.guessed_in, 0, self.canaries)
        # At least one guess in all.
        low = 0 if self.guessed_in else 1
        integer("guessed_out", self.guessed_out, low, self.canaries - self.guessed_in)
        integer("correct_in", self.correct_in, 0, self.guessed_in)
        integer("correct_out", self.correct_out, 0, self.guessed_out)

    @property
    def guesses(self) -> int:
        """Guesses made; the other canaries are abstentions."""
        return self.guessed_in + self.guessed_out

    @property
    def correct(self) -> int:
        """Guesses that were right."""
        return self.correct_in + self.correct_out


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OutputsAudit(Record):
    """An audit of outputs that were recorded before. Every figure is a property of `evidence`.

    Attributes:
        names: what the outputs on x and on x' were read from.
        rows: "independent" or "one_run".
        evidence: `Counts` of an event for independent rows, `Guesses` for one run.
        attack: name of the attack that chose the event; for one run, how guesses were made.
        claim: the epsilon tested, or None.
        delta: the delta of the claim.
        confidence: probability that the bound holds.
        bound: name of the bound.
        seed: repeats the shuffle of independent rows, or the coins that decide ties.
        event: what was counted, `outputs -> bool`; None for one run.
        direction: "x" or "x_prime": the side in the numerator; None for one run.
        pair: the inputs; `UNKNOWN`, the mere names of the sides, where they were not given.
        pilot: rows on x and on x' that chose the event and were not counted.
        doubts: what in the data speaks against the assumption about the rows.
    """

    names: tuple[str, str]
    rows: str
    evidence: Counts | Guesses
    attack: str
    claim: float | None
    delta: float
    confidence: float
    bound: str
    seed: int
    event: Any = None
    direction: str | None = None
    pair: Pair = UNKNOWN
    pilot: tuple[int, int] = (0, 0)
    doubts: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What reports call the outputs."""
        first, second = self.names
        return first if first == second else f"{first} against {second}"

    @property
    def counts(self) -> Counts | None:
        """Counts of the event; `counts.k` belongs to x. None for one run."""
        return self.evidence if isinstance(self.evidence, Counts) else None

    @property
    def guesses(self) -> int | None:
        """Canaries guessed in or out; None for independent rows."""
        return self.evidence.guesses if isinstance(self.evidence, Guesses) else None

    @property
    def correct(self) -> int | None:
        """Guesses that were right; None for independent rows."""
        return self.evidence.correct if isinstance(self.evidence, Guesses) else None

    @property
    def canaries(self) -> int | None:
        """All canaries; None for independent rows."""
        return self.evidence.canaries if isinstance(self.evidence, Guesses) else None

    @property
    def _bound(self) -> float:
        bound = BOUNDS[self.rows][self.bound]
        if isinstance(self.evidence, Guesses):
            found = self.evidence
            trio = found.guesses, found.correct, found.canaries
            return bound(*trio, delta=self.delta, confidence=self.confidence)
        ordered = self.evidence if self.direction == "x" else self.evidence.swapped()
        return bound(ordered, self.delta, self.confidence)

    @property
    def epsilon_lower(self) -> float:
        """Certified lower bound on epsilon, at `confidence`.

        Per unit of `pair.distance` when delta is 0; for delta > 0 a bound is never divided.
        """
        return self._bound / self.pair.distance if self.delta == 0.0 else self._bound

    @property
    def epsilon_hat(self) -> float:
        """A point estimate, which certifies nothing.

        For independent rows the empirical loss: the larger of abs(ln(k/k')) and
        abs(ln((n-k)/(n'-k'))). For one run the log odds of a correct guess, at least 0. It is inf
        where a cell is empty.
        """
        if isinstance(self.evidence, Guesses):
            wrong = self.evidence.guesses - self.evidence.correct
            return _log_ratio(max(wrong, self.evidence.correct), wrong)
        cells = (self.evidence, self.evidence.complement())
        loss = max(abs(_log_ratio(c.k * c.n_prime, c.k_prime * c.n)) for c in cells)
        return loss / self.pair.distance if self.delta == 0.0 else loss

    @property
    def exact(self) -> float | None:
        """None: there is no closed form for outputs from elsewhere."""
        return None

    @property
    def refuted(self) -> bool | None:
        """True if the bound exceeds the claim, False if not, None without a claim."""
        return None if self.claim is None else self._bound > self.claim * self.pair.distance

    @property
    def verdict(self) -> str:
        """The outcome in words; never that a mechanism is private."""
        words = {None: "no claim given", True: "refuted", False: "not refuted by this attack"}
        return words[self.refuted]

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know: the doubts, and scores that look the wrong way round."""
        found = self.evidence
        if isinstance(found, Counts):
            return self.doubts
        short = found.guesses / 2.0 - found.correct
        # The chance of so few under fair guesses (Hoeffding, 1963).
        if short <= 0.0 or math.exp(-2.0 * short**2 / found.guesses) >= _REVERSED:
            return self.doubts
        return (*self.doubts, _TURNED)

    def __repr__(self) -> str:
        """One line: what was audited and what came out."""
        found = f"{self.verdict}, epsilon_lower={self.epsilon_lower:.6g}"
        return f"<OutputsAudit of {self.name}: {found}, seed={self.seed}>"

    def __str__(self) -> str:
        """The report."""
        lines = [f"  {label:<12} {line}" for label, line in self.lines()]
        return "\n".join([self.name, *lines])

    def lines(self) -> list[tuple[str, str]]:
        """The report as (label, text) rows."""
        from .report import epsilon

        level = f"{100 * self.confidence:g} % confidence, {_TITLES[self.bound]}"
        unit = "" if self.pair.distance == 1.0 or self.delta else " per unit of distance"
        estimate = f"{epsilon(self.epsilon_hat)} (certifies nothing)"
        return [
            ("verdict", self.verdict),
            ("claim", self._claim()),
            ("certified", f"epsilon >= {epsilon(self.epsilon_lower)}{unit} ({level})"),
            ("estimate", estimate),
            ("witness", self._witness()),
            ("counts", self._counts()),
            ("rows", f"{self.rows.replace('_', ' ')}: {ROWS[self.rows]}"),
            ("seed", f"{self.seed} ({self._used()})"),
            *(("needed", step) for step in (more_rows(self),) if step),
            *(("note", note) for note in self.notes),
        ]

    def _claim(self) -> str:
        if self.claim is None:
            return "none given"
        delta = f", delta = {self.delta:g}" if self.delta else ""
        return f"epsilon <= {self.claim:g}{delta}"

    def _witness(self) -> str:
        if isinstance(self.evidence, Guesses):
            return self.attack
        side = "x'" if self.direction == "x_prime" else "x"
        return f"{self.event}, {side} in the numerator"

    def _counts(self) -> str:
        c = self.evidence
        if isinstance(c, Guesses):
            return (
                f"{c.correct:,} of {c.guesses:,} guesses right ({c.correct_in:,} of "
                f"{c.guessed_in:,} in, {c.correct_out:,} of {c.guessed_out:,} out), "
                f"{c.canaries:,} canaries"
            )
        return f"{c.k:,} of {c.n:,} on x, {c.k_prime:,} of {c.n_prime:,} on x'"

    def _used(self) -> str:
        if self.rows == "one_run":
            return "decides ties between scores"
        return f"of the shuffle; {self.pilot[0]:,} and {self.pilot[1]:,} rows chose the event"

    def plot(self) -> Figure:
        """A picture of the audit: certified bound, estimate and claim.

        Returns:
            A matplotlib figure.
        """
        from .report import figure

        # The picture needs no more of an audit than both records have.
        return figure(cast(Any, self))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, and the figures that follow from it."""
        record: dict[str, Any] = {"format": FORMAT}
        record.update({f.name: _json.encode(getattr(self, f.name)) for f in fields(self)})
        evidence = self.evidence
        record["evidence"] = {f.name: getattr(evidence, f.name) for f in fields(evidence)}
        record["seed"] = str(self.seed)
        derived = ("epsilon_lower", "epsilon_hat", "refuted", "verdict")
        record["derived"] = {name: _json.encode(getattr(self, name)) for name in derived}
        record["derived"]["witness"] = self._witness()
        return record

    def to_json(self, *, indent: int | None = None) -> str:
        """Strict JSON: the seed as a string, non-finite numbers as "inf", "-inf" and "nan"."""
        return json.dumps(self.to_dict(), allow_nan=False, indent=indent)


def _log_ratio(first: int, second: int) -> float:
    """The log of a quotient of two exact products; 0 for 0/0, or else infinite with a 0."""
    if first == second:
        return 0.0
    if 0 in (first, second):
        return math.inf if first else -math.inf
    return math.log(first) - math.log(second)
