"""Result of an audit of recorded outputs: the counts, and the figures that follow from them.

The counts are counts of an event on both sides, or counts of guesses about canaries of one run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

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
    Finding,
    Provenance,
    TableRead,
    empirical_loss,
    explain_reach,
    field_rule,
    find_delta_lower,
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
"""Placeholder pair if no inputs were given. An attack that needs inputs cannot use it."""

_REVERSED_P_VALUE: Final = 0.01
"""Probability below which a small number of right guesses is not due to chance."""

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
    """Audit of outputs that were recorded before. All numbers are computed from `evidence`.

    Attributes:
        names: names of the sources of the outputs on x and on x'.
        rows: "independent" or "one_run".
        evidence: `Counts` of an event for independent rows, `Guesses` for one run.
        attack: name of the attack that chose the event; for one run, the method that made the
            guesses.
        claim: the tested epsilon, or a curve (see `dpcore.claims`), or None.
        delta: delta of the claim; for a curve, delta of its tangent.
        confidence: probability that the bound holds.
        bound: name of the bound.
        seed: seed that repeats the shuffle of independent rows, or the coins that decide ties.
        event: the counted event, `outputs -> bool`, or None for one run.
        direction: "x" or "x_prime": the side in the numerator, or None for one run.
        pair: the two inputs. If they were not given, `UNKNOWN`, which holds only the names of the
            sides.
        pilot: numbers of rows on x and on x' used to choose the event; they were not counted.
        doubts: facts in the data that contradict the assumption about the rows. If `doubts` is not
            empty, no bound holds, and the verdict is "invalid: ...".
        paired: True if row i of `outputs` and row i of `outputs_prime` came from one seed.
        arranged: True if the caller stated that the rows were reordered after the runs.
        groups: numbers of groups of rows on x and on x', or None. One row of each group is counted.
        remarks: notes on the choice of the event. They do not make the audit invalid.
        read: part of the pilot's outputs that was read before the event was chosen, or None if the
            attack does not state it (not compared).
        inside: up to five distinct outputs inside the event, from 4,096 pilot outputs per side (not
            compared). Empty with `source=False`, and for real numbers that do not repeat.
        auc: probability that an included canary scores higher than a canary that was left out. None
            unless dpcore trained the one run. It is not a bound.
        tangent: for a claim that is a curve, the epsilon of its tangent, chosen on the same rows as
            the event. For one run, the epsilon that the claim implies at `delta`.
        provenance: record of how the audit was made (not compared).
        files: files and frames that outputs and labels were read from, with their contents and
            SHA-256 (not compared). Empty for arrays and with `source=False`.
        constant: sentence if all rows used to choose the event had the same value; otherwise empty.
        floating_point: finding about the last bits of the recorded numbers, counted on the same
            rows, or None. It is not part of the bound and the verdict.
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
    floating_point: Finding | None = field(
        default=None, metadata=field_rule(read_optional(read_instance(Finding)))
    )

    floats: ClassVar[bool] = False
    rounding_won: ClassVar[bool] = False

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
        """Number of canaries with a guess (in or out), or None for independent rows."""
        return self.evidence.guesses if isinstance(self.evidence, Guesses) else None

    @property
    def correct(self) -> int | None:
        """Number of right guesses, or None for independent rows."""
        return self.evidence.correct if isinstance(self.evidence, Guesses) else None

    @property
    def canaries(self) -> int | None:
        """Number of all canaries, or None for independent rows."""
        return self.evidence.canaries if isinstance(self.evidence, Guesses) else None

    @property
    def claimed_epsilon(self) -> float | None:
        """Epsilon of the claim at `delta`; for a curve, epsilon of its tangent."""
        return self.tangent if isinstance(self.claim, Claim) else self.claim

    @property
    def point(self) -> tuple[float, float, float] | None:
        """Type I error, type II error, and the least type II error that the claim allows there.

        The two errors are upper limits for the counted event, jointly at `confidence`. The value is
        None unless the claim is a curve that is tested as a whole (bound "clopper_pearson").
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
        """Certified lower bound on mu of a `claims.GDP` or on rho of a `claims.ZCDP`; else None.

        It is the largest parameter that is refuted, or at most 0 if no parameter is refuted.
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
        """Compute the bound at any delta, not divided by the distance."""
        if isinstance(self.evidence, Guesses):
            return self.evidence.bound(self.bound, delta, self.confidence)
        ordered = numerator_first(self.evidence, self.direction)
        return OUTPUTS_BOUNDS[self.rows][self.bound](ordered, delta, self.confidence)

    @property
    def delta_lower(self) -> float:
        """Certified lower bound on delta at epsilon 0, at `confidence`.

        For independent rows it is a lower bound on the total variation distance of the outputs.
        """
        return find_delta_lower(self._bound_at)

    @property
    def epsilon_lower(self) -> float:
        """Certified lower bound on epsilon, at `confidence`.

        The bound is per unit of `pair.distance` when delta is 0. For delta > 0 it is never divided.
        """
        return per_distance(self._bound_at(self.delta), self.delta, self.pair.distance)

    @property
    def epsilon_hat(self) -> float:
        """Point estimate of epsilon, not a bound.

        For independent rows it is the empirical loss: the larger of abs(ln(k/k')) and
        abs(ln((n-k)/(n'-k'))). For one run it is the log odds of a correct guess, at least 0. It is
        inf if one of two compared counts is 0.
        """
        if isinstance(self.evidence, Guesses):
            wrong = self.evidence.guesses - self.evidence.correct
            return log_ratio(max(wrong, self.evidence.correct), wrong)
        return per_distance(empirical_loss(self.evidence), self.delta, self.pair.distance)

    def _with_perfect_evidence(self, first: str = "x") -> OutputsAudit:
        """Return the audit with all guesses right, or with a perfect event.

        A perfect event happens in all counted rows of one side and in no row of the other side.

        Args:
            first: the side on which the event happens in every row.
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
        """List the audits with perfect evidence, for each side because their sizes may differ."""
        sides = ("x",) if isinstance(self.evidence, Guesses) else ("x", "x_prime")
        return tuple(map(self._with_perfect_evidence, sides))

    @property
    def ceiling(self) -> float:
        """Largest epsilon that the number of guesses, rows or groups can certify.

        It is certified if all guesses are right, or if the event happens in all counted rows of one
        side and in no row of the other side. It is per unit of distance like `epsilon_lower`.
        """
        return max(perfect.epsilon_lower for perfect in self._list_perfect())

    @property
    def parameter_ceiling(self) -> float | None:
        """Largest mu of a `claims.GDP`, or rho of a `claims.ZCDP`, that can be refuted."""
        limits = [perfect.parameter_lower for perfect in self._list_perfect()]
        return max((limit for limit in limits if limit is not None), default=None)

    @property
    def undecided(self) -> str:
        """Reason why the claim was not tested; empty if it was tested, or if no claim was given.

        There are two possible reasons: all rows used to choose the event had the same value, or the
        claim is at or above the `ceiling`.
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
        """Fewest counted rows per side, rounded to two digits, that can refute the claim.

        None for guesses, and if 10^15 rows are too few.
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
        """Fewest guesses that can refute the claim if all of them are right.

        The run needs at least as many canaries. None for independent rows, without a claim, and if
        no number of guesses is enough.
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
        """None, because recorded outputs have no closed form."""
        return None

    @property
    def refuted(self) -> bool | None:
        """True if the bound exceeds the claim, False if it does not, None without a verdict.

        There is no verdict without a claim, if the claim is `undecided`, or if `doubts` is not
        empty (then no bound holds).
        """
        if self.claim is None or self.doubts or self.undecided:
            return None
        return self._refutes()

    def _refutes(self) -> bool:
        """Return True if the counts or guesses refute the claim."""
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
        """Outcome in words; it never states that a mechanism is private."""
        return format_verdict(self.refuted, self.doubts, self.undecided)

    @property
    def checks(self) -> tuple[str, ...]:
        """The `doubts`, under the name that they have in an `Audit`."""
        return self.doubts

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the reader: doubts, remarks, and a warning if scores seem to be reversed."""
        evidence = self.evidence
        if isinstance(evidence, Counts):
            return (*self.doubts, *self.remarks)
        short = evidence.guesses / 2.0 - evidence.correct
        # Probability of at most this many right guesses if guesses are fair coins (Hoeffding,
        # 1963).
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
