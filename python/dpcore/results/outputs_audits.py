"""Result of an audit of recorded outputs: the counts, and the figures that follow.

The counts are those of an event on both sides, or of guesses about the canaries of one run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from ..bounds import guesses_needed
from ..bounds.binomial import find_declaration
from ..claims.trade_off import Claim
from ..errors import choice, confidence_level, delta_level, instance, invalid, real
from ..events import SIDES
from ..records import Counts, Pair, PartsRead, Result, SeenOutput
from ..report.rows import Row
from ..report.shown import one_line
from .audit_figures import draw_bounds
from .audit_json import list_outputs_figures
from .audit_page import make_page
from .audit_text import list_outputs_rows
from .audits import parameter_of_points, parameter_on_grid, point_of
from .evidence import (
    Provenance,
    TableRead,
    empirical_loss,
    explain_reach,
    field_rule,
    format_verdict,
    lists_of,
    log_ratio,
    numerator_first,
    one_of,
    per_distance,
    read_checked,
    read_claim,
    read_epsilon,
    read_instance,
    read_optional,
    read_seed,
)
from .guesses import OUTPUTS_BOUNDS, ROWS, Guesses, guesses_needed_for
from .need import find_fewest

if TYPE_CHECKING:
    from matplotlib.figure import Figure

UNKNOWN: Final = Pair("x", "x_prime")
"""Stands for inputs that nobody gave; an attack that needs them cannot use it."""

_REVERSED_P_VALUE: Final = 0.01
"""Chance below which so few right guesses are not matter of luck."""

_REVERSED_SCORES_NOTE: Final = (
    "fewer than half of the guesses are right: higher scores must speak for inclusion (scores "
    "that are turned round after a look need fresh canaries)"
)


def _read_share(name: str, value: Any) -> Any:
    """Read a probability."""
    real(name, value, low=0.0, high=1.0)
    return value


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OutputsAudit(Result, word="dpcore.audit_outputs/2"):
    """An audit of outputs that were recorded before. Every figure is a property of `evidence`.

    Attributes:
        names: what the outputs on x and on x' were read from.
        rows: "independent" or "one_run".
        evidence: `Counts` of an event for independent rows, `Guesses` for one run.
        attack: name of the attack that chose the event; for one run, how guesses were made.
        claim: the epsilon tested, or a curve (see `dpcore.claims`), or None.
        delta: the delta of the claim; of a curve, that of the tangent.
        confidence: probability that the bound holds.
        bound: name of the bound.
        seed: repeats the shuffle of independent rows, or the coins that decide ties.
        event: what was counted, `outputs -> bool`, or None for one run.
        direction: "x" or "x_prime": the side in the numerator, or None for one run.
        pair: the inputs; `UNKNOWN`, the mere names of the sides, where they were not given.
        pilot: rows on x and on x' that chose the event and were not counted.
        doubts: what in the data contradicts the assumption about the rows. With any no bound
            holds, and the verdict is "invalid: ...".
        paired: True if rows i of both sides came from one seed.
        arranged: True if the caller said that rows were put in order when the runs were over.
        groups: numbers of groups of rows on x and on x', or None. One row of each is counted.
        remarks: notes on the choice of the event. They do not make the audit invalid.
        read: part of the pilot's outputs that was read before the event was chosen, or None where
            the attack does not say (not compared).
        inside: up to five distinct outputs inside the event, of 4,096 pilot outputs per side; empty
            with `source=False`, and for real numbers that do not repeat (not compared).
        auc: probability that an included canary scores higher than another, for one run that
            dpcore trained, or None elsewhere. It is not a bound.
        tangent: epsilon of the tangent to a claim that is a curve, chosen by the rows that chose
            the event; for one run, the epsilon that the claim implies at `delta`.
        provenance: how it was made (not compared).
        files: the files and frames that outputs and labels were read from, what was found in them
            and their SHA-256; empty for arrays and with `source=False` (not compared).
        constant: sentence that all rows that chose the event were one value; else empty.
    """

    names: tuple[str, str] = field(metadata=field_rule(lists_of(str, 2)))
    rows: str = field(metadata=field_rule(one_of(*ROWS)))
    evidence: Counts | Guesses = field(metadata=field_rule())
    attack: str = field(metadata=field_rule(read_instance(str)))
    claim: float | Claim | None = field(metadata=field_rule(read_optional(read_claim)))
    delta: float = field(metadata=field_rule(read_checked(delta_level)))
    confidence: float = field(metadata=field_rule(read_checked(confidence_level)))
    bound: str = field(metadata=field_rule())
    seed: int = field(metadata=field_rule(read_seed))
    event: Any = field(default=None, metadata=field_rule())
    direction: str | None = field(default=None, metadata=field_rule())
    pair: Pair = field(default=UNKNOWN, metadata=field_rule(read_instance(Pair)))
    pilot: tuple[int, int] = field(default=(0, 0), metadata=field_rule(lists_of(int, 2)))
    doubts: tuple[str, ...] = field(default=(), metadata=field_rule(lists_of(str)))
    paired: bool = field(default=False, metadata=field_rule(read_instance(bool)))
    arranged: bool = field(default=False, metadata=field_rule(read_instance(bool)))
    groups: tuple[int, int] | None = field(
        default=None, metadata=field_rule(read_optional(lists_of(int, 2)))
    )
    remarks: tuple[str, ...] = field(default=(), metadata=field_rule(lists_of(str)))
    read: PartsRead | None = field(
        default=None, compare=False, metadata=field_rule(read_optional(read_instance(PartsRead)))
    )
    inside: tuple[SeenOutput, ...] = field(
        default=(), compare=False, metadata=field_rule(lists_of(SeenOutput))
    )
    auc: float | None = field(default=None, metadata=field_rule(read_optional(_read_share)))
    tangent: float | None = field(default=None, metadata=field_rule(read_optional(read_epsilon)))
    provenance: tuple[Provenance, ...] = field(
        default=(), compare=False, metadata=field_rule(lists_of(Provenance))
    )
    files: tuple[TableRead, ...] = field(
        default=(), compare=False, metadata=field_rule(lists_of(TableRead))
    )
    constant: str = field(default="", metadata=field_rule(read_instance(str)))

    @property
    def name(self) -> str:
        """Name of the outputs in reports."""
        first, second = self.names
        return first if first == second else f"{first} against {second}"

    @property
    def counts(self) -> Counts | None:
        """Counts of the event; `counts.k` belongs to x. None for one run."""
        return self.evidence if isinstance(self.evidence, Counts) else None

    @property
    def guesses(self) -> int | None:
        """Canaries guessed in or out, or None for independent rows."""
        return self.evidence.guesses if isinstance(self.evidence, Guesses) else None

    @property
    def correct(self) -> int | None:
        """Guesses that were right, or None for independent rows."""
        return self.evidence.correct if isinstance(self.evidence, Guesses) else None

    @property
    def canaries(self) -> int | None:
        """All canaries, or None for independent rows."""
        return self.evidence.canaries if isinstance(self.evidence, Guesses) else None

    @property
    def claimed_epsilon(self) -> float | None:
        """The epsilon of the claim at `delta`: of a curve, that of the tangent."""
        return self.tangent if isinstance(self.claim, Claim) else self.claim

    @property
    def point(self) -> tuple[float, float, float] | None:
        """Type I error, type II error, and the least type II error that the claim allows there.

        Upper limits for the event counted, jointly at `confidence`. None unless the claim is a
        curve that is tested as a whole, with bound "clopper_pearson".
        """
        claim = self.claim
        if not isinstance(claim, Claim) or not isinstance(self.evidence, Counts) or self.doubts:
            return None
        if find_declaration(OUTPUTS_BOUNDS[self.rows][self.bound]).curves != "point":
            return None
        alpha = (1.0 - self.confidence) / 2.0
        type_one, type_two = point_of(numerator_first(self.evidence, self.direction), alpha)
        return type_one, type_two, claim.trade_off(type_one)

    @property
    def parameter_lower(self) -> float | None:
        """Certified lower bound on mu of a `claims.GDP`, on rho of a `claims.ZCDP`; else None.

        It is the largest that is refuted, and not above 0 where none is.
        """
        claim = self.claim
        if not isinstance(claim, Claim) or claim.parameter is None or self.doubts:
            return None
        if isinstance(self.evidence, Guesses):
            return self.evidence.parameter(claim, self.confidence)
        if self.point is not None:
            return parameter_of_points(claim.with_parameter(1.0), (self.point[:2],))
        epsilon = self.tangent or 0.0
        return parameter_on_grid(claim, epsilon, lambda delta: self._bound_at(delta) > epsilon)

    def _bound_at(self, delta: float) -> float:
        """Compute the bound at any delta, whole: not per distance."""
        if isinstance(self.evidence, Guesses):
            return self.evidence.bound(self.bound, delta, self.confidence)
        ordered = numerator_first(self.evidence, self.direction)
        return OUTPUTS_BOUNDS[self.rows][self.bound](ordered, delta, self.confidence)

    @property
    def epsilon_lower(self) -> float:
        """Certified lower bound on epsilon, at `confidence`.

        Per unit of `pair.distance` when delta is 0; for delta > 0 a bound is never divided.
        """
        return per_distance(self._bound_at(self.delta), self.delta, self.pair.distance)

    @property
    def epsilon_hat(self) -> float:
        """A point estimate, not a bound.

        For independent rows the empirical loss: the larger of abs(ln(k/k')) and
        abs(ln((n-k)/(n'-k'))). For one run the log odds of a correct guess, at least 0. It is inf
        where a cell is empty.
        """
        if isinstance(self.evidence, Guesses):
            wrong = self.evidence.guesses - self.evidence.correct
            return log_ratio(max(wrong, self.evidence.correct), wrong)
        return per_distance(empirical_loss(self.evidence), self.delta, self.pair.distance)

    def _with_perfect_evidence(self, first: str = "x") -> OutputsAudit:
        """Return the audit whose guesses are all right, or whose event is perfect.

        Such an event happens in all counted rows of one side and in none of the other.

        Args:
            first: the side in whose rows the event happens.
        """
        evidence = self.evidence
        if isinstance(evidence, Guesses):
            right = replace(
                evidence, correct_in=evidence.guessed_in, correct_out=evidence.guessed_out
            )
            return replace(self, evidence=right, doubts=())
        hits = (evidence.n, 0) if first == "x" else (0, evidence.n_prime)
        perfect = Counts(hits[0], evidence.n, hits[1], evidence.n_prime)
        return replace(self, evidence=perfect, direction=first, doubts=())

    def _list_perfect(self) -> tuple[OutputsAudit, ...]:
        """List the audits with perfect evidence: the sides may have unequal numbers of rows."""
        sides = ("x",) if isinstance(self.evidence, Guesses) else ("x", "x_prime")
        return tuple(map(self._with_perfect_evidence, sides))

    @property
    def ceiling(self) -> float:
        """Largest epsilon that the number of guesses, rows or groups can certify.

        All guesses are right, or the event happens in all counted rows of one side and in none of
        the other. Per unit of distance as the bound is.
        """
        return max(perfect.epsilon_lower for perfect in self._list_perfect())

    @property
    def parameter_ceiling(self) -> float | None:
        """Largest mu of a `claims.GDP`, or rho of a `claims.ZCDP`, that can be refuted."""
        limits = [perfect.parameter_lower for perfect in self._list_perfect()]
        return max((limit for limit in limits if limit is not None), default=None)

    @property
    def undecided(self) -> str:
        """Reason why the claim was not tested; empty where it was tested, or not given.

        All rows that chose the event were one value, or the claim is not below the `ceiling`.
        """
        if self.claim is None or self.doubts or self._refutes():
            return ""
        if self.constant:
            return self.constant
        if any(perfect._refutes() for perfect in self._list_perfect()):
            return ""
        return explain_reach(self.size, self.ceiling, self.claim, self.parameter_ceiling)

    @property
    def rows_to_reach(self) -> int | None:
        """Fewest counted rows per side, to two digits, that can refute the claim.

        None for guesses, and where 10^15 rows are too few.
        """
        if isinstance(self.evidence, Guesses):
            return None
        return find_fewest(
            lambda rows: replace(
                self, evidence=Counts(rows, rows, 0, rows), direction="x"
            )._refutes()
        )

    @property
    def size(self) -> str:
        """Number of guesses, counted rows or counted groups, in words."""
        if isinstance(self.evidence, Guesses):
            return f"{self.evidence.guesses:,} guesses"
        unit = "rows" if self.groups is None else "groups"
        return f"{self.evidence.n:,} and {self.evidence.n_prime:,} counted {unit}"

    @property
    def guesses_needed(self) -> int | None:
        """The fewest guesses that can refute the claim, all of them right.

        As many canaries at least are needed. None for independent rows, without a claim, and
        where no number would be enough.
        """
        if not isinstance(self.evidence, Guesses) or self.claim is None:
            return None
        if isinstance(self.claim, Claim):
            return guesses_needed_for(self.claim, self.evidence.canaries, self.confidence)
        bound = OUTPUTS_BOUNDS[self.rows][self.bound]
        level = self.delta, self.confidence
        return guesses_needed(self.claim, self.evidence.canaries, *level, bound)

    @property
    def exact(self) -> float | None:
        """None: outputs from elsewhere have no closed form."""
        return None

    @property
    def refuted(self) -> bool | None:
        """True if the bound exceeds the claim, False if not, None without a verdict.

        There is none without a claim, where `doubts` is not empty, for then no bound holds, and
        where the claim is `undecided`.
        """
        if self.claim is None or self.doubts or self.undecided:
            return None
        return self._refutes()

    def _refutes(self) -> bool:
        """Return True if what was counted refutes the claim."""
        if self.claim is None:
            return False
        if isinstance(self.claim, Claim):
            return self._refutes_curve(self.claim)
        return self._bound_at(self.delta) > self.claim * self.pair.distance

    def _refutes_curve(self, claim: Claim) -> bool:
        if isinstance(self.evidence, Guesses):
            return self.evidence.refutes(claim, self.confidence)
        if self.point is not None:
            return self.point[1] < self.point[2]
        return self._bound_at(self.delta) > (self.tangent or 0.0)

    @property
    def verdict(self) -> str:
        """The outcome in words; never that a mechanism is private."""
        return format_verdict(self.refuted, self.doubts, self.undecided)

    @property
    def checks(self) -> tuple[str, ...]:
        """The doubts, by the name that they have in an `Audit`."""
        return self.doubts

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the reader: the doubts, and scores that seem to be reversed."""
        evidence = self.evidence
        if isinstance(evidence, Counts):
            return (*self.doubts, *self.remarks)
        short = evidence.guesses / 2.0 - evidence.correct
        # The chance of so few under fair guesses (Hoeffding, 1963).
        notes_of_rows = (*self.doubts, *self.remarks)
        if short <= 0.0 or math.exp(-2.0 * short**2 / evidence.guesses) >= _REVERSED_P_VALUE:
            return notes_of_rows
        return (*notes_of_rows, _REVERSED_SCORES_NOTE)

    def __repr__(self) -> str:
        """Return one line: the name of the outputs and the result."""
        bound = "" if self.doubts else f", epsilon_lower={self.epsilon_lower:.6g}"
        outcome = one_line(self.verdict, 60) + bound
        return f"<OutputsAudit of {one_line(self.name, 60)}: {outcome}, seed={self.seed}>"

    def _lines(self) -> list[Row]:
        return list_outputs_rows(self)

    def _plot(self, ax: Any) -> Figure:
        return draw_bounds(self, ax)

    def _to_page(self) -> str:
        return make_page(self)

    def _to_figures(self) -> dict[str, Any]:
        return list_outputs_figures(self)

    @property
    def _is_verdict_slow(self) -> bool:
        return find_declaration(OUTPUTS_BOUNDS[self.rows][self.bound]).slow

    def _require_consistency(self) -> None:
        instance("evidence", self.evidence, Guesses if self.rows == "one_run" else Counts)
        bound = choice("bound", self.bound, tuple(OUTPUTS_BOUNDS[self.rows]))
        if self.rows == "independent":
            choice("direction", self.direction, SIDES)
        if self.paired and not find_declaration(OUTPUTS_BOUNDS[self.rows][bound]).paired:
            raise invalid("bound", "'clopper_pearson' where rows are paired", bound)
