"""Result of an audit of recorded outputs: its counts, and the numbers computed from them.

For independent rows, an event is counted on x and on x'. For one run, guesses about canaries are
counted. (A canary is a training example that was included in the run by a coin flip.)
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
from .audit_json import derive_outputs_numbers
from .audit_page import make_page
from .audit_text import list_outputs_rows
from .audits import error_limits_of, parameter_of_points, parameter_on_grid
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
    make_checked_reader,
    one_of,
    per_distance,
    put_numerator_first,
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
"""Pair of an audit if the user gave no inputs. An attack that needs inputs cannot use it."""

_REVERSED_P_VALUE: Final = 0.01
"""p-value of a small number of right guesses below which scores seem to be reversed."""

_REVERSED_SCORES_NOTE: Final = (
    "fewer than half of the guesses are right: higher scores must speak for inclusion (scores "
    "that are turned round after a look need fresh canaries)"
)


def _read_share(name: str, value: Any) -> Any:
    """Return the value if it is a probability, or raise an error."""
    real(name, value, low=0.0, high=1.0)
    return value


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OutputsAudit(Result, word="dpcore.audit_outputs/2"):
    """Audit of outputs that were recorded before. All numbers are computed from `evidence`.

    Attributes:
        names: names of the files or arguments that contained the outputs on x and on x'.
        rows: "independent" (each row is the output of a separate run) or "one_run" (all rows are
            scores of canaries of one run).
        evidence: `Counts` of an event for independent rows, or `Guesses` about canaries for one
            run.
        attack: name of the attack that chose the event; for one run, the method that made the
            guesses.
        claim: the tested epsilon, or a curve (see `dpcore.claims`), or None.
        delta: delta of the claim; for a curve, delta of its tangent.
        confidence: probability that the bound holds.
        bound: name of the bound.
        seed: seed of the random order. It repeats the shuffle of independent rows, or the order of
            equal scores of one run.
        event: the counted event, `outputs -> bool`, or None for one run.
        direction: "x" or "x_prime": the input in the numerator of the ratio that bounds epsilon.
            None for one run.
        pair: the two inputs, or `Pair("x", "x_prime")` if the user did not give them.
        pilot: numbers of rows on x and on x' from which the event was chosen. These rows were not
            counted.
        doubts: facts in the data that contradict the assumption about the rows. If `doubts` is not
            empty, no bound holds, and the verdict is "invalid: ...".
        paired: True if row i of `outputs` and row i of `outputs_prime` came from one seed.
        arranged: True if the user stated that the rows were reordered after the runs.
        groups: numbers of groups of rows on x and on x', or None without groups. In the counted
            groups, one row of each group is counted.
        remarks: notes on the choice of the event. They do not make the audit invalid.
        read: number of parts of the outputs (such as entries) that the attack read before it chose
            the event. None if the attack does not state this number. Not compared by ==.
        inside: up to five distinct outputs inside the event, from at most 4,096 rows on each input.
            Empty with `source=False`, and for real numbers that do not repeat. Not compared.
        auc: probability that an included canary has a higher score than a canary that was left out.
            It is an estimate, not a bound. None unless dpcore trained the model of the one run.
        tangent: epsilon of a tangent to the claimed curve, or None if the claim is not a curve. For
            independent rows, it is chosen from the same rows as the event. For one run, it is the
            epsilon that the curve implies at `delta`.
        provenance: record of how the audit was made. Not compared.
        files: descriptions and SHA-256 of the files and frames from which outputs and labels were
            read. Empty for arrays and with `source=False`. Not compared.
        constant: sentence if all rows from which the event was chosen had one value; otherwise
            empty.
        floating_point: a second event about the last bits of the recorded numbers, counted on the
            same rows, or None. The bound and the verdict do not depend on it.
    """

    names: tuple[str, str] = field(metadata=field_rule(lists_of(str, 2)))
    rows: str = field(metadata=field_rule(one_of(*ROWS)))
    evidence: Counts | Guesses = field(metadata=field_rule())
    attack: str = field(metadata=field_rule(read_instance(str)))
    claim: float | Claim | None = field(metadata=field_rule(read_optional(read_claim)))
    delta: float = field(metadata=field_rule(make_checked_reader(delta_level)))
    confidence: float = field(metadata=field_rule(make_checked_reader(confidence_level)))
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
        """Number of guesses about canaries (included or left out), or None for independent rows."""
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
        """Upper limits on the errors of the counted event, and the error that the claim allows.

        The value is a tuple: type I error, type II error, and the least type II error that the
        claim allows at this type I error. The first two are upper limits, jointly at `confidence`.
        The value is None unless the claim is a curve and the bound is "clopper_pearson".
        """
        claim = self.claim
        if not isinstance(claim, Claim) or not isinstance(self.evidence, Counts) or self.doubts:
            return None
        if find_declaration(OUTPUTS_BOUNDS[self.rows][self.bound]).curves != "point":
            return None
        alpha = (1.0 - self.confidence) / 2.0
        type_one, type_two = error_limits_of(
            put_numerator_first(self.evidence, self.direction), alpha
        )
        return type_one, type_two, claim.trade_off(type_one)

    @property
    def parameter_lower(self) -> float | None:
        """Certified lower bound on mu of a claim `GDP`, or on rho of a claim `ZCDP`; else None.

        It is the largest parameter that the audit refutes, or at most 0 if it refutes no parameter.
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
        """Compute the lower bound on the loss of the pair, or of one run, at any delta."""
        if isinstance(self.evidence, Guesses):
            return self.evidence.bound(self.bound, delta, self.confidence)
        ordered = put_numerator_first(self.evidence, self.direction)
        return OUTPUTS_BOUNDS[self.rows][self.bound](ordered, delta, self.confidence)

    @property
    def delta_lower(self) -> float:
        """Certified lower bound on delta at epsilon 0, at `confidence`.

        For independent rows, it is a lower bound on the total variation distance between the
        distributions of outputs on x and on x'.
        """
        return find_delta_lower(self._bound_at)

    @property
    def epsilon_lower(self) -> float:
        """Certified lower bound on epsilon, at `confidence`. If `doubts` is not empty, it is void.

        At delta 0, the bound on the loss of the pair is divided by `pair.distance`. At delta > 0,
        it is not divided.
        """
        return per_distance(self._bound_at(self.delta), self.delta, self.pair.distance)

    @property
    def epsilon_hat(self) -> float:
        """Point estimate of epsilon, not a bound.

        For independent rows, it is the empirical loss. With p = k/n and p' = k'/n', this is the
        larger of abs(ln(p/p')) and abs(ln((1-p)/(1-p'))), divided by `pair.distance` at delta 0.
        For one run, the estimate is the log odds of a correct guess, at least 0. The estimate is
        inf if exactly one of p and p' is 0, if exactly one is 1, or if all guesses are right.
        """
        if isinstance(self.evidence, Guesses):
            wrong = self.evidence.guesses - self.evidence.correct
            return log_ratio(max(wrong, self.evidence.correct), wrong)
        return per_distance(empirical_loss(self.evidence), self.delta, self.pair.distance)

    def _with_perfect_evidence(self, first: str = "x") -> OutputsAudit:
        """Return this audit with the strongest possible evidence: all guesses right, for one run.

        For independent rows, the event then happens in all counted rows on one input and in no row
        on the other input.

        Args:
            first: the input on which the event happens in every row, "x" or "x_prime".
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
        """Return this audit with the strongest possible evidence, for x and x' as numerator.

        The two audits differ if the numbers of rows on x and on x' differ.
        """
        sides = ("x",) if isinstance(self.evidence, Guesses) else ("x", "x_prime")
        return tuple(map(self._with_perfect_evidence, sides))

    @property
    def ceiling(self) -> float:
        """Largest epsilon that this number of guesses, rows or groups can certify.

        For one run, all guesses are assumed to be right. For independent rows, the event is assumed
        to happen in all counted rows on one input and in no row on the other input. Like
        `epsilon_lower`, the result is divided by `pair.distance` at delta 0.
        """
        return max(perfect.epsilon_lower for perfect in self._list_perfect())

    @property
    def parameter_ceiling(self) -> float | None:
        """Largest mu of a claim `GDP`, or rho of a claim `ZCDP`, that the audit can refute."""
        limits = [perfect.parameter_lower for perfect in self._list_perfect()]
        return max((limit for limit in limits if limit is not None), default=None)

    @property
    def undecided(self) -> str:
        """Reason why the claim was not tested; empty if it was tested, or if no claim was given.

        There are two possible reasons. Either all rows from which the event was chosen had the same
        value, or the claim is at least as large as `ceiling`, the largest epsilon that the audit
        can certify.
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
        """Smallest number of counted rows on each input that can refute the claim.

        It is computed for an event that always happens on x and never on x', and rounded up to two
        digits. None for one run, and if 10^15 rows are too few.
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
        """Number of guesses, counted rows or counted groups, as text such as "100 guesses"."""
        if isinstance(self.evidence, Guesses):
            return f"{self.evidence.guesses:,} guesses"
        unit = "rows" if self.groups is None else "groups"
        return f"{self.evidence.n:,} and {self.evidence.n_prime:,} counted {unit}"

    @property
    def guesses_needed(self) -> int | None:
        """Smallest number of guesses that refutes the claim if all guesses are right.

        The run needs at least as many canaries as guesses. None for independent rows, without a
        claim, and if no number of guesses is enough.
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
        """None, because the exact loss of recorded outputs is not known."""
        return None

    @property
    def refuted(self) -> bool | None:
        """True if the bound exceeds the claim, False if it does not, None without a verdict.

        It is None in three cases: if there is no claim, if `undecided` states a reason why the
        claim was not tested, or if `doubts` is not empty (then no bound holds).
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
        """Outcome in words, such as "refuted". It never states that a mechanism is private."""
        return format_verdict(self.refuted, self.doubts, self.undecided)

    @property
    def checks(self) -> tuple[str, ...]:
        """Same as `doubts`. An `Audit` has a field `checks` with the same meaning."""
        return self.doubts

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the reader: `doubts`, `remarks`, and a warning if scores seem reversed."""
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
        return derive_outputs_numbers(self)

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
