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
from ..report.shown import on_one_line
from .audit_figures import draw_epsilons
from .audit_json import derive_outputs_numbers
from .audit_page import make_page
from .audit_text import list_outputs_rows
from .audits import error_limits_of, max_refuted_mu_rho, max_refuted_parameter
from .evidence import (
    Finding,
    Provenance,
    TableRead,
    check_claim_or_epsilon,
    delta_lower_at_zero,
    divide_if_delta_0,
    empirical_epsilon,
    enum_reader,
    explain_largest_bound,
    field_rule,
    format_verdict,
    log_ratio,
    make_checking_reader,
    none_or,
    put_numerator_first,
    require_epsilon,
    seed_text_to_int,
    tuple_reader,
    type_check_reader,
)
from .guesses import OUTPUTS_BOUNDS, ROWS, Guesses, guesses_needed_for
from .need import rounded_fewest

if TYPE_CHECKING:
    from matplotlib.figure import Figure

UNKNOWN: Final = Pair("x", "x_prime")
"""Pair of an audit if the user gave no inputs. An attack that needs inputs cannot use it."""

_REVERSED_P_VALUE: Final = 0.01
"""If the p-value for too few right guesses is below this, the scores seem to be reversed."""

_REVERSED_SCORES_NOTE: Final = (
    "fewer than half of the guesses are right: higher scores must speak for inclusion (scores "
    "that are turned round after a look need fresh canaries)"
)


def _check_probability(name: str, value: Any) -> Any:
    """Return the value if it is a probability, or raise an error."""
    real(name, value, low=0.0, high=1.0)
    return value


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OutputsAudit(Result, word="dpcore.audit_outputs/2"):
    """Result of an audit of outputs that were recorded before.

    The outputs are independent draws on two inputs x and x', or scores of canaries from one
    training run. A canary is a training example that is included or left out by a coin flip. All
    results are computed from `evidence`. A comparison of audits by `==` ignores fields that are
    marked "not compared".

    Attributes:
        names: names of the two files or arguments that contained the outputs on x and on x'.
        rows: "independent" (each row is the output of a separate run) or "one_run" (all rows are
            scores of canaries from one training run).
        evidence: counts of an event (`Counts`) for independent rows, or numbers of right and wrong
            guesses about canaries (`Guesses`) for one run.
        attack: name of the attack that chose the event. For one run, name of the method that made
            the guesses.
        claim: the tested epsilon or trade-off curve (see `dpcore.claims`), or None if no claim was
            given.
        delta: delta of the claim. If the claim is a curve, delta of the tangent that was tested.
        confidence: probability with which the certified bound holds.
        bound: name of the method for the certified bound.
        seed: seed of the random order of independent rows or, for one run, of the random order of
            equal scores.
        event: the counted event, a function that returns True for each output in the event. None
            for one run.
        direction: the input in the numerator of the probability ratio that bounds epsilon, "x" or
            "x_prime". None for one run.
        pair: the two inputs x and x', or `Pair("x", "x_prime")` if the user did not give the
            inputs.
        pilot: numbers of rows on x and on x' from which the event was chosen. These rows were not
            counted.
        doubts: facts that show that the data are not what `rows` states. If the tuple is not empty,
            no bound holds, and the verdict is "invalid: ...".
        paired: True if row i on x and row i on x' were drawn with the same seed.
        arranged: True if the user stated that the rows were reordered after the runs.
        groups: number of groups of rows on x, and number of groups of rows on x'. None if there are
            no groups. Some groups are used to choose the event. One row of each other group is
            counted.
        remarks: notes on the choice of the event that do not make the audit invalid.
        read: number of parts of the outputs (such as entries) that the attack read before it chose
            the event. None if the attack does not state this number. Not compared by ==.
        inside: up to five distinct outputs in the event, as examples. The tuple is empty with
            `source=False`, and for real numbers that do not repeat. Not compared.
        auc: probability that an included canary has a higher score than a canary that was left out.
            The value is an estimate, not a bound. None unless dpcore itself trained the model.
        tangent: epsilon of a tangent to the claimed curve, or None if the claim is not a curve. For
            independent rows, the tangent is chosen from the same rows as the event. For one run,
            the value is the epsilon that the curve implies at `delta`.
        provenance: record of when and how the audit was made. Not compared.
        files: descriptions and SHA-256 of the files and data frames from which outputs and labels
            were read. The tuple is empty for arrays and with `source=False`. Not compared.
        constant: sentence for the report, if all rows from which the event was chosen had the same
            value. Otherwise "".
        floating_point: a second event about the last bits of the recorded numbers, counted on the
            same rows, or None. The bound and the verdict do not depend on this event.
    """

    names: tuple[str, str] = field(metadata=field_rule(tuple_reader(str, 2)))
    rows: str = field(metadata=field_rule(enum_reader(*ROWS)))
    evidence: Counts | Guesses = field(metadata=field_rule())
    attack: str = field(metadata=field_rule(type_check_reader(str)))
    claim: float | Claim | None = field(metadata=field_rule(none_or(check_claim_or_epsilon)))
    delta: float = field(metadata=field_rule(make_checking_reader(delta_level)))
    confidence: float = field(metadata=field_rule(make_checking_reader(confidence_level)))
    bound: str = field(metadata=field_rule())
    seed: int = field(metadata=field_rule(seed_text_to_int))
    event: Any = field(default=None, metadata=field_rule())
    direction: str | None = field(default=None, metadata=field_rule())
    pair: Pair = field(default=UNKNOWN, metadata=field_rule(type_check_reader(Pair)))
    pilot: tuple[int, int] = field(default=(0, 0), metadata=field_rule(tuple_reader(int, 2)))
    doubts: tuple[str, ...] = field(default=(), metadata=field_rule(tuple_reader(str)))
    paired: bool = field(default=False, metadata=field_rule(type_check_reader(bool)))
    arranged: bool = field(default=False, metadata=field_rule(type_check_reader(bool)))
    groups: tuple[int, int] | None = field(
        default=None, metadata=field_rule(none_or(tuple_reader(int, 2)))
    )
    remarks: tuple[str, ...] = field(default=(), metadata=field_rule(tuple_reader(str)))
    read: PartsRead | None = field(
        default=None, compare=False, metadata=field_rule(none_or(type_check_reader(PartsRead)))
    )
    inside: tuple[SeenOutput, ...] = field(
        default=(), compare=False, metadata=field_rule(tuple_reader(SeenOutput))
    )
    auc: float | None = field(default=None, metadata=field_rule(none_or(_check_probability)))
    tangent: float | None = field(default=None, metadata=field_rule(none_or(require_epsilon)))
    provenance: tuple[Provenance, ...] = field(
        default=(), compare=False, metadata=field_rule(tuple_reader(Provenance))
    )
    files: tuple[TableRead, ...] = field(
        default=(), compare=False, metadata=field_rule(tuple_reader(TableRead))
    )
    constant: str = field(default="", metadata=field_rule(type_check_reader(str)))
    floating_point: Finding | None = field(
        default=None, metadata=field_rule(none_or(type_check_reader(Finding)))
    )

    floats: ClassVar[bool] = False
    rounding_won: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """Name of the recorded outputs in reports, made from the names of files or arguments."""
        first, second = self.names
        return first if first == second else f"{first} against {second}"

    @property
    def counts(self) -> Counts | None:
        """Counts of the event in this audit, or None for canaries of one training run.

        `counts.k` and `counts.n` are for the input x.
        """
        return self.evidence if isinstance(self.evidence, Counts) else None

    @property
    def guesses(self) -> int | None:
        """Number of guesses about canaries, or None if the audit has no canaries.

        A guess states whether a canary (a training example) was included in the training.
        """
        return self.evidence.guesses if isinstance(self.evidence, Guesses) else None

    @property
    def correct(self) -> int | None:
        """Number of right guesses about canaries, or None if the audit has no canaries."""
        return self.evidence.correct if isinstance(self.evidence, Guesses) else None

    @property
    def canaries(self) -> int | None:
        """Number of all canaries of the training run, or None if the audit has no canaries."""
        return self.evidence.canaries if isinstance(self.evidence, Guesses) else None

    @property
    def claimed_epsilon(self) -> float | None:
        """Claimed epsilon, or None without a claim. For a curve, epsilon of the tested tangent."""
        return self.tangent if isinstance(self.claim, Claim) else self.claim

    @property
    def point(self) -> tuple[float, float, float] | None:
        """Upper limits on the errors of the counted event, and the error that the claim allows.

        The event serves as a test that decides which of the two inputs was used. The value has
        three numbers. The first two are upper limits on the type I error and on the type II error
        of this test. The third is the least type II error that the claim allows if the type I error
        is at its upper limit. The two limits hold jointly with probability `confidence`. The value
        is None unless the claim is a curve and the bound is "clopper_pearson".
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
        """Certified lower bound on the parameter of the claim: mu of `GDP`, or rho of `ZCDP`.

        The bound is the largest parameter that the audit refutes. If the audit refutes no
        parameter, the bound is at most 0. The value is None for any other claim.
        """
        claim = self.claim
        if not isinstance(claim, Claim) or claim.parameter is None or self.doubts:
            return None
        if isinstance(self.evidence, Guesses):
            return self.evidence.parameter(claim, self.confidence)
        if self.point is not None:
            return max_refuted_mu_rho(claim.with_parameter(1.0), (self.point[:2],))
        epsilon = self.tangent or 0.0
        return max_refuted_parameter(claim, epsilon, lambda delta: self._bound_at(delta) > epsilon)

    def _bound_at(self, delta: float) -> float:
        """Compute the lower bound on the loss of the pair, or of one run, at any delta."""
        if isinstance(self.evidence, Guesses):
            return self.evidence.bound(self.bound, delta, self.confidence)
        ordered = put_numerator_first(self.evidence, self.direction)
        return OUTPUTS_BOUNDS[self.rows][self.bound](ordered, delta, self.confidence)

    @property
    def delta_lower(self) -> float:
        """Lower bound on delta at epsilon 0 that this audit certifies.

        The bound holds with probability `confidence`. For an audit without canaries, it is also a
        lower bound on the total variation distance between the distributions of outputs on x and on
        x'.
        """
        return delta_lower_at_zero(self._bound_at)

    @property
    def epsilon_lower(self) -> float:
        """Lower bound on epsilon that this audit certifies.

        The bound holds with probability `confidence`, but it does not hold if `doubts` is not
        empty. If `delta` is 0, the bound on the loss between the two inputs is divided by their
        distance, `pair.distance`. If `delta` is above 0, the bound is not divided.
        """
        return divide_if_delta_0(self._bound_at(self.delta), self.delta, self.pair.distance)

    @property
    def epsilon_hat(self) -> float:
        """Estimate of epsilon from the recorded outputs, not a bound.

        For an audit without canaries, let p = k/n and p' = k'/n' be the frequencies of the event on
        x and on x'. The estimate is the larger of abs(ln(p/p')) and abs(ln((1-p)/(1-p'))). If
        `delta` is 0, the estimate is divided by `pair.distance`. The estimate is inf if exactly one
        of p and p' is 0, or exactly one is 1. For canaries of one training run, the estimate is the
        log odds of a right guess, at least 0. It is inf if all guesses are right.
        """
        if isinstance(self.evidence, Guesses):
            wrong = self.evidence.guesses - self.evidence.correct
            return log_ratio(max(wrong, self.evidence.correct), wrong)
        return divide_if_delta_0(empirical_epsilon(self.evidence), self.delta, self.pair.distance)

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

    def _perfect_copies_by_numerator(self) -> tuple[OutputsAudit, ...]:
        """Return copies of this audit with the strongest evidence, one for each possible numerator.

        The numerator is the probability on x or on x'. The two copies differ if the numbers of rows
        on x and on x' differ. For one training run, there is only one copy.
        """
        sides = ("x",) if isinstance(self.evidence, Guesses) else ("x", "x_prime")
        return tuple(map(self._with_perfect_evidence, sides))

    @property
    def ceiling(self) -> float:
        """Largest epsilon that this audit can certify with its number of rows or guesses.

        For canaries of one training run, the value is reached if all guesses are right. Otherwise,
        the value is reached if the event happens in all counted rows on one input, and in no row on
        the other input. If `delta` is 0, the value is divided by `pair.distance`, like
        `epsilon_lower`.
        """
        return max(perfect.epsilon_lower for perfect in self._perfect_copies_by_numerator())

    @property
    def parameter_ceiling(self) -> float | None:
        """Largest parameter of the claim (mu or rho) that this audit can refute, or None.

        The value is None if the claim is not a `GDP` or `ZCDP` claim.
        """
        limits = [perfect.parameter_lower for perfect in self._perfect_copies_by_numerator()]
        return max((limit for limit in limits if limit is not None), default=None)

    @property
    def undecided(self) -> str:
        """Reason why this audit did not test the claim, or "" if it tested the claim.

        There are two possible reasons. All rows from which the event was chosen had the same value,
        or the claim is not below `ceiling`, the largest epsilon that the audit can certify. The
        text is also "" if no claim was given.
        """
        if self.claim is None or self.doubts or self._refutes():
            return ""
        if self.constant:
            return self.constant
        if any(perfect._refutes() for perfect in self._perfect_copies_by_numerator()):
            return ""
        return explain_largest_bound(self.size, self.ceiling, self.claim, self.parameter_ceiling)

    @property
    def rows_to_reach(self) -> int | None:
        """Smallest number of counted rows on each input that can refute the claim.

        The number is computed for an event that always happens on x, and never on x'. It is rounded
        up to two digits. It is None for canaries of one training run, and if 10^15 rows are too
        few.
        """
        if isinstance(self.evidence, Guesses):
            return None
        return rounded_fewest(
            lambda rows: replace(
                self, evidence=Counts(rows, rows, 0, rows), direction="x"
            )._refutes()
        )

    @property
    def size(self) -> str:
        """Size of this audit as text, such as "100 guesses" or "50 and 60 counted rows"."""
        if isinstance(self.evidence, Guesses):
            return f"{self.evidence.guesses:,} guesses"
        unit = "rows" if self.groups is None else "groups"
        return f"{self.evidence.n:,} and {self.evidence.n_prime:,} counted {unit}"

    @property
    def guesses_needed(self) -> int | None:
        """Smallest number of guesses about canaries that can refute the claim.

        All guesses are assumed to be right. The training run needs at least as many canaries as
        guesses. The value is None if the audit has no canaries or no claim, or if no number of
        guesses is enough.
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
        """Always None, because the exact loss of recorded outputs is not known."""
        return None

    @property
    def refuted(self) -> bool | None:
        """True if this audit refutes the claim, False if not, and None without a verdict.

        The value is None in three cases: if there is no claim, if the claim was not tested (see
        `undecided`), or if `doubts` is not empty, so that no bound holds.
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
        """Outcome of this audit, such as "refuted". It never states that a claim is true."""
        return format_verdict(self.refuted, self.doubts, self.undecided)

    @property
    def checks(self) -> tuple[str, ...]:
        """Facts that show that no bound of this audit holds: the field `doubts`."""
        return self.doubts

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the reader of the report: the fields `doubts` and `remarks`.

        A higher score must mean that a canary was more likely included. If significantly fewer than
        half of the guesses are right, the scores seem to be reversed, and a warning is added.
        """
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
        outcome = on_one_line(self.verdict, 60) + bound
        return f"<OutputsAudit of {on_one_line(self.name, 60)}: {outcome}, seed={self.seed}>"

    def _lines(self) -> list[Row]:
        return list_outputs_rows(self)

    def _plot(self, ax: Any) -> Figure:
        return draw_epsilons(self, ax)

    def _to_page(self) -> str:
        return make_page(self)

    def _derived_values(self) -> dict[str, Any]:
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
