"""Result of an audit: its counts, the numbers computed from them, and the merge of two audits."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from .. import bounds, exact
from ..bounds.binomial import find_declaration
from ..claims.trade_off import Claim, choose_refutable_pair
from ..errors import delta_level, instance, integer, invalid, mistyped
from ..events import event_of
from ..mechanisms.declarations import can_core_draw, get_or_default
from ..records import Counts
from ..report.rows import Row
from ..report.shown import name_of, on_one_line
from ..sampling.driver import draw_again, unite_ranges
from ..sampling.rows import compare_rates_of_audits
from ..suggestions import explain_argument_errors
from . import evidence
from .audit_figures import draw_certified_delta_by_epsilon, draw_epsilons, draw_trade_off_upper_band
from .audit_json import derive_audit_numbers
from .audit_page import make_page
from .audit_text import list_all_rows
from .need import confidence_of_each_bound, explain_always_or_never_event, rounded_fewest

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STEPS_BELOW_CLAIM = 10
_GRID_RATIO = 1.02
_MAX_GRID_EPSILON = 64.0
_MAX_PARAMETERS: Final = 120
"""Number of values of mu or rho that are tested. The largest is about nine times the claim."""
_PERFECT_GUESS: Final = 1.0 - 1e-9, 1e-9
"""Probabilities of a perfect event on x and on x'. The bets of an audit with early stop assume
them."""


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Audit(evidence.Evidence, word="dpcore.audit/2"):  # noqa: D101 - the fields say what it is
    __doc__ = evidence.Evidence.__doc__

    @property
    def epsilon_lower(self) -> float:
        """Lower bound on epsilon that this audit certifies.

        The bound holds with probability `confidence`. The bound is 0 if `checks` is not empty. If
        `delta` is 0, the bound on the loss between the two inputs is divided by their distance,
        `pair.distance`. If `delta` is above 0, the bound is not divided.
        """
        return self.epsilon_lower_at(self.delta)

    def epsilon_lower_at(self, delta: float) -> float:
        """Compute the lower bound on epsilon that this audit certifies at another delta.

        The bound is computed from the same counts. With Clopper-Pearson limits, the bounds for all
        values of delta hold jointly. With any other method, the bound holds for each delta
        separately. If `floats` is True, there are two events, `event` and `floating_point`, and the
        result is the larger of their two bounds.

        Args:
            delta: delta of (epsilon, delta)-DP, a number in [0, 1).

        Returns:
            The bound, at least 0. If `delta` is 0, the bound is divided by the distance
            `pair.distance` between the two inputs.

        Raises:
            TypeError: if `delta` is not a number.
            ValueError: if `delta` is out of range, or if this audit has no bound at this delta.

        Example:
            >>> import dpcore
            >>> report = dpcore.audit(dpcore.Laplace(0.5), trials=10**5, claim=1.0, rng=1)
            >>> round(report.epsilon_lower, 2), round(report.epsilon_lower_at(0.1), 2)
            (1.96, 1.76)
        """
        delta = delta_level(delta)
        return evidence.divide_if_delta_0(self._certified_at(delta), delta, self.pair.distance)

    @property
    def delta_lower(self) -> float:
        """Lower bound on delta at epsilon 0 that this audit certifies.

        The bound holds with probability `confidence`. It is also a lower bound on the total
        variation distance between the distributions of outputs on x and on x'. An audit that may
        stop early has a bound only at the delta of the claim. For such an audit, the result is 0 or
        this delta.
        """
        if self.slices:
            return self.delta if self._certified_at(self.delta) > 0.0 else 0.0
        return evidence.delta_lower_at_zero(self._certified_at)

    def _certified_at(self, delta: float) -> float:
        """Compute the larger lower bound of up to two events on the loss of the pair, at any delta.

        If `checks` is not empty, the bound is 0, which holds for every mechanism.
        """
        if self.checks:
            return 0.0
        level = confidence_of_each_bound(self)
        own = self._event_bound(delta, level)
        if not self.floats or self.floating_point is None:
            return own
        # The two bounds hold jointly at the audit's confidence, so the larger one may be reported.
        return max(own, bounds.BOUNDS[self.bound](self.floating_point.bound_counts, delta, level))

    def with_winner(self) -> Audit:
        """Return this audit, with its two events exchanged if the second one gives a larger bound.

        The first event is in the field `event`, and the second event is in the field
        `floating_point`. If `floats` is False, the audit is returned unchanged.
        """
        finding = self.floating_point
        if not self.floats or finding is None:
            return self
        level = confidence_of_each_bound(self)
        if self._tests_curve:
            alpha = (1.0 - level) / 2.0
            points = [error_limits_of(c, alpha) for c in (self.bound_counts, finding.bound_counts)]
            allowed = self.claim.trade_off  # type: ignore[union-attr]
            own, other = (float(allowed(type_one)) - type_two for type_one, type_two in points)
        else:
            bound = bounds.BOUNDS[self.bound]
            own = bound(self.bound_counts, self.delta, level)
            other = bound(finding.bound_counts, self.delta, level)
        return self.exchange_findings() if other > own else self

    def exchange_findings(self) -> Audit:
        """Return this audit with the events in `event` and `floating_point` exchanged."""
        finding = self.floating_point
        if finding is None:
            raise invalid("floating_point", "a finding", None)
        own = replace(finding, event=self.event, direction=self.direction, counts=self.counts)
        return replace(
            self,
            event=finding.event,
            direction=finding.direction,
            counts=finding.counts,
            floating_point=own,
            rounding_won=not self.rounding_won,
            # The curve belongs to the score of the other event.
            curve=None,
        )

    def _event_bound(self, delta: float, confidence: float) -> float:
        """Compute the lower bound on the loss of the pair at any delta, from `event` only."""
        if self.slices:
            return self._sequential_bound(delta, confidence)
        if self.pooled:
            groups = [evidence.put_numerator_first(c, self.direction) for c in self.pooled]
            return bounds.every_coordinate(groups, self.event.multiplicities, delta, confidence)
        return bounds.BOUNDS[self.bound](self.bound_counts, delta, confidence)

    def _sequential_bound(self, delta: float, confidence: float) -> float:
        """Return the largest epsilon of a fixed grid up to which all grid points are refuted.

        Each epsilon of the grid is tested by a test martingale. Let g be the first grid point that
        is at least the true loss. The result exceeds the true loss only if the martingale for g has
        crossed its limit, which has probability at most 1 - confidence.
        """
        if delta != self.delta:
            raise invalid("delta", f"{self.delta:g}, the one that the slices were bet on", delta)
        bound = 0.0
        for epsilon in _epsilon_grid_for_claim((self.claimed_epsilon or 0.0) * self.pair.distance):
            if not self._is_bet_won(epsilon, delta, confidence):
                break
            bound = epsilon
        return bound

    def _is_bet_won(self, epsilon: float, delta: float, confidence: float) -> bool:
        """Return True if the test martingale over all slices refutes (epsilon, delta)."""
        martingale = bounds.Martingale(epsilon, delta)
        label, before = 0, None
        for piece in self.slices:
            counts = piece.bound_counts
            # Slices with one event share one mixture of bets.
            label += before is not None and (piece.event, piece.direction) != before
            before = (piece.event, piece.direction)
            martingale.update(
                counts.k, counts.k_prime, counts.n, event=label, predicted=piece.guess
            )
        return martingale.log_wealth >= -math.log1p(-confidence)

    @property
    def mu_lower(self) -> float:
        """Lower bound on mu of Gaussian DP that this audit certifies with the event `event`.

        The bound holds with probability `confidence`, but not jointly with other certified bounds.
        A ValueError is raised if the number of trials was not fixed in advance, or if `checks` is
        not empty.
        """
        self._require_fixed_size()
        return bounds.mu_lower(self.bound_counts, self.confidence)

    def _require_fixed_size(self) -> None:
        """Raise an error unless the rows are independent and their number was fixed in advance."""
        if self.checks:
            raise invalid("checks", "empty for what rests on independent rows", self.checks[0])
        if self.stop != "fixed":
            raise invalid("stop", "'fixed' for what rests on limits at a fixed n", self.stop)

    @property
    def parameter_lower(self) -> float | None:
        """Certified lower bound on the parameter of the claim: mu of `GDP`, or rho of `ZCDP`.

        The bound is the largest parameter that the audit refutes, or at most 0 if it refutes no
        parameter. The value is None for any other claim. Some audits test only a tangent of the
        claimed curve, not the whole curve. They test the parameters of a fixed grid in increasing
        order, until a parameter is not refuted. The tangents for all parameters have the same
        slope. The bound exceeds the true parameter only if the first grid point above the true
        parameter is wrongly refuted.
        """
        claim = self.claim
        if not isinstance(claim, Claim) or claim.parameter is None or self.checks:
            return None
        if self._tests_curve:
            return max_refuted_mu_rho(claim.with_parameter(1.0), tuple(self._error_upper_limits()))
        epsilon = self.tangent or 0.0

        def is_refuted(delta: float) -> bool:
            if self.slices:
                return self._is_bet_won(epsilon, delta, self.confidence)
            return self._certified_at(delta) > epsilon

        return max_refuted_parameter(claim, epsilon, is_refuted)

    @property
    def point(self) -> tuple[float, float, float] | None:
        """Upper limits on the errors of the counted event, and the error that the claim allows.

        The event is a test of which of the two inputs was used. The value has three numbers. The
        first two are upper limits on the type I error and on the type II error of this test. The
        third is the least type II error that the claim allows if the type I error is at its upper
        limit. The two limits hold jointly with probability `confidence`. The value is None unless
        the claim is a curve and the bound is "clopper_pearson".
        """
        if not self._tests_curve or self.checks:
            return None
        type_one, type_two = self._error_upper_limits()[0]
        return type_one, type_two, self.claim.trade_off(type_one)  # type: ignore[union-attr]

    @property
    def _tests_curve(self) -> bool:
        """True if the audit tests the whole curve of the claim, not only its tangent.

        Only the Clopper-Pearson limits test a whole curve. Other bounds test one (epsilon, delta).
        """
        if not isinstance(self.claim, Claim) or self.slices or self.pooled:
            return False
        return find_declaration(bounds.BOUNDS[self.bound]).curves == "point"

    def _error_upper_limits(self) -> list[tuple[float, float]]:
        """Return, for each event, upper limits on its type I and its type II error.

        There are two events if `floating_point` counts towards the verdict, otherwise one. All
        limits hold jointly at the confidence of the audit: they share its error probability
        equally.
        """
        counts_of_events = [self.bound_counts]
        if self.floats and self.floating_point is not None:
            counts_of_events.append(self.floating_point.bound_counts)
        alpha = (1.0 - confidence_of_each_bound(self)) / 2.0
        return [error_limits_of(counts, alpha) for counts in counts_of_events]

    @property
    def tradeoff(self) -> bounds.Band:
        """Upper confidence band on the trade-off function, from many thresholds on one score.

        The whole band holds with probability `confidence`, but not jointly with `epsilon_lower`. A
        ValueError is raised if the event is not a threshold on a score, if the number of trials was
        not fixed in advance, or if `checks` is not empty.
        """
        self._require_fixed_size()
        curve = self.curve
        if curve is None or event_of(self.event).own_score is None:
            raise invalid("attack", "one whose event is a threshold on a score", self.attack)
        sides = [(curve.k, curve.n), (curve.k_prime, curve.n_prime)]
        if self.event.side == "below":
            # The pilot chose "not above" the threshold; the thresholds are then in falling order.
            sides = [((n - k)[::-1], n) for k, n in sides]
        if self.direction == "x_prime":
            sides.reverse()
        (k, n), (k_prime, n_prime) = sides
        return bounds.tradeoff_band(k, n, k_prime, n_prime, self.confidence)

    @property
    def power(self) -> str:
        """Sentence that states how large a ratio of two probabilities this audit would detect.

        The ratio is the probability of the event on one input, divided by the probability of the
        event on the other input. The sentence states how large the ratio must be, so that an audit
        with this number of trials refutes the claim with 95 % probability. The sentence is "" if
        the claim was refuted, not given or not tested. It is also "" for audits that may stop
        early, or that count the coordinates of an output separately.
        """
        if self.refuted is not False or self.claimed_epsilon is None or self.slices or self.pooled:
            return ""
        counts = self.bound_counts
        first, second = ("x", "x'") if self.direction == "x" else ("x'", "x")
        silent = explain_always_or_never_event(counts)
        if silent:
            return f"power: {silent} and cannot refute the claim. Other events were not tested."
        if counts.k == 0:
            return (
                f"power: this event never happened on {first}, where the pilot expected more of it "
                f"than on {second}. In this direction it certifies nothing."
            )
        whole, bound = self.claimed_epsilon * self.pair.distance, bounds.BOUNDS[self.bound]
        if find_declaration(bound).slow:
            # The exact test would take minutes. It nearly always certifies what Clopper-Pearson
            # certifies.
            bound = bounds.clopper_pearson
        at = counts.n, whole, counts.k / counts.n, bound, self.delta, confidence_of_each_bound(self)
        ratio = bounds.detectable(*at)[1]
        if not math.isfinite(ratio):
            return (
                "power: with these trials no event of this frequency refutes the claim with 95 % "
                f"probability, not even one that never happens on {second}."
            )
        return (
            "power: the claim would be refuted with 95 % probability if this event were "
            f"{ratio:.4g} times as likely on {first} as on {second}. Other events were not tested."
        )

    def _with_perfect_event(self, trials: int | None = None) -> Audit:
        """Return this audit with counts of an event that always happens on x and never on x'.

        Args:
            trials: number of trials. Defaults to the number of trials of this audit. With early
                stop, it defaults to the largest number that the audit might have counted.
        """
        n = self.counts.n
        if trials is None:
            trials = max(n, self.end - self.ranges[0][0]) if self.slices else n
        # A timed audit makes each call on one side, so its number of calls covers both sides.
        hits = max(trials // 2, self.counts.k, self.counts.k_prime) if self.route == "timed" else 0
        finding = self.floating_point
        if finding is not None:
            rows = finding.counts.n if trials == n else trials
            finding = replace(finding, direction="x", counts=Counts(rows, rows, 0, rows))
        groups = [trials * (group.n // n) for group in self.pooled]
        perfect = Counts(hits or trials, trials, 0, trials)
        tangent, delta = self.tangent, self.delta
        if isinstance(self.claim, Claim) and not self._tests_curve:
            # For such an event the pilot would have chosen another tangent.
            tangent, delta = choose_refutable_pair(self.claim, perfect)
        last = (
            replace(self.slices[-1], direction="x", counts=perfect, guess=_PERFECT_GUESS)
            if self.slices
            else None
        )
        return replace(
            self,
            counts=perfect,
            direction="x",
            tangent=tangent,
            delta=delta,
            pooled=tuple(Counts(size, size, 0, size) for size in groups),
            slices=() if last is None else (last,),
            floating_point=finding,
            checks=(),
        )

    @property
    def ceiling(self) -> float:
        """Largest epsilon that this audit can certify with its number of trials.

        The value is reached if the event always happens on one input, and never on the other input.
        If the audit may stop early, the value is for the largest possible number of trials. If
        `delta` is 0, the value is divided by `pair.distance`, like `epsilon_lower`.
        """
        return self._with_perfect_event().epsilon_lower

    @property
    def parameter_ceiling(self) -> float | None:
        """Largest mu (`GDP`) or rho (`ZCDP`) that this audit can refute, or None."""
        return self._with_perfect_event().parameter_lower

    @property
    def trials_to_reach(self) -> int | None:
        """Smallest number of trials on each input that can refute the claim.

        The number is computed for an event that always happens on one input, and never on the other
        input. It is rounded up to two digits. It is None if 10^15 trials cannot refute the claim.
        """
        return rounded_fewest(lambda trials: self._with_perfect_event(trials)._refutes())

    @property
    def undecided(self) -> str:
        """Reason why this audit did not test the claim, or "" if it tested the claim.

        There are two possible reasons. The first is that all pilot outputs (the first outputs) had
        the same value. The second is that the claim is at least `ceiling`, the largest epsilon that
        this number of trials can certify. The text is also "" if no claim was given.
        """
        if self.claim is None or self.checks or self._refutes():
            return ""
        if self.constant:
            return self.constant
        perfect = self._with_perfect_event()
        if perfect._refutes():
            return ""
        limits = perfect.epsilon_lower, self.claim, perfect.parameter_lower
        return evidence.explain_largest_bound(self.reach_size, *limits)

    @property
    def reach_size(self) -> str:
        """Number of trials for which `ceiling` is computed, as text such as "1,000 trials"."""
        unit = "calls" if self.route == "timed" else "trials"
        most = self.end - self.ranges[0][0]
        return f"{max(self.trials, most) if self.slices else self.trials:,} {unit}"

    @property
    def epsilon_hat(self) -> float:
        """Empirical loss (Habernal, 2022, eq. 12): an estimate of epsilon, not a bound.

        Let p = k/n and p' = k'/n' be the frequencies of the event on x and on x'. The estimate is
        the larger of abs(ln(p/p')) and abs(ln((1-p)/(1-p'))). It is inf if exactly one of p and p'
        is 0, or exactly one is 1. If the event counts the coordinates of an output separately, the
        estimate is the absolute value of the sum of the log ratios of all coordinates. If `delta`
        is 0, the estimate is divided by `pair.distance`.
        """
        if self.pooled:
            groups = zip(self.pooled, self.event.multiplicities, strict=True)
            parts = (
                many * evidence.log_ratio(c.k, c.k_prime, c.n, c.n_prime) for c, many in groups
            )
            loss = abs(float(sum(parts)))
        else:
            loss = evidence.empirical_epsilon(self.counts)
        return evidence.divide_if_delta_0(loss, self.delta, self.pair.distance)

    @property
    def exact(self) -> float | None:
        """Exact loss that an event of the attack `MajorityVote` shows, or None if it is not known.

        The loss is between the two inputs of this audit. The loss is computed for real numbers,
        without rounding of outputs. If `delta` is 0, the loss is divided by the distance
        `pair.distance` between the inputs.
        """
        if not can_core_draw(self.mechanism) or not event_of(self.event).midway(self.pair):
            return None
        loss = exact.vote_loss(self.mechanism, self.pair)
        return loss if loss is None or self.delta else loss / self.pair.distance

    @property
    def refuted(self) -> bool | None:
        """True if this audit refutes the claim, False if not, and None without a verdict.

        The value is None in three cases: if there is no claim, if the claim was not tested (see
        `undecided`), or if `checks` is not empty, so that no bound holds.
        """
        if self.claim is None or self.checks or self.undecided:
            return None
        return self._refutes()

    def _refutes(self) -> bool:
        """Return True if the counts refute the claim."""
        if self._tests_curve:
            points = self._error_upper_limits()
            return any(type_two < self.claim.trade_off(type_one) for type_one, type_two in points)  # type: ignore[union-attr]
        if self.claimed_epsilon is None:
            return False
        # At distance D a metric claim is (epsilon D, delta), so the bound itself is not divided.
        whole = self.claimed_epsilon * self.pair.distance
        if self.slices:
            # True if the martingale against the claim itself has crossed its limit.
            return self._is_bet_won(whole, self.delta, self.confidence)
        return self._certified_at(self.delta) > whole

    @property
    def verdict(self) -> str:
        """Outcome of this audit, such as "refuted". It never states that a claim is true."""
        return evidence.format_verdict(self.refuted, self.checks, self.undecided)

    @property
    def own_claim(self) -> float | None:
        """Epsilon that the mechanism states in its attribute `claim`, or None if it states none."""
        own = get_or_default(self.mechanism, "claim")
        return float(own) if isinstance(own, (int, float, np.integer, np.floating)) else None

    @property
    def name(self) -> str:
        """Name of the audited mechanism in reports."""
        if isinstance(self.mechanism, str):
            return self.mechanism
        return repr(self.mechanism) if can_core_draw(self.mechanism) else name_of(self.mechanism)

    @property
    def trials(self) -> int:
        """Number of counted outputs on each input.

        If the event is about last bits of floats, only the first 2^20 outputs are counted.
        """
        if self.rounding_won and self.floating_point is not None:
            return self.floating_point.counts.n
        return self.counts.n

    @property
    def elements(self) -> int:
        """Number of entries in one output of the audited mechanism."""
        return math.prod(self.shape)

    @property
    def draws_per_second(self) -> float:
        """Number of output entries, on x and on x' together, that were counted per second."""
        draws = 2 * self.trials * self.elements
        return draws / self.seconds if self.seconds > 0 else math.nan

    def outputs(self, side: str, start: int, size: int) -> npt.NDArray[Any]:
        """Draw again the outputs that this audit counted on one of the two inputs.

        If `randomness` is "rounding", the new outputs equal the counted outputs only up to
        rounding.

        Args:
            side: the input, "x" or "x_prime".
            start: index of the first trial to draw, from 0.
            size: number of trials to draw.

        Returns:
            Outputs of the trials from `start` to `start + size - 1`, shape `(size, ...)`.

        Raises:
            TypeError: if an argument has the wrong type, or if the audit contains only the name of
                the mechanism.
            ValueError: if this audit did not count the trials, or if the same seed does not give
                the same outputs again.

        Example:
            >>> import dpcore
            >>> report = dpcore.audit(dpcore.Laplace(1.0), trials=1000, claim=1.0, rng=1)
            >>> drawn = report.outputs("x", 0, 1000)
            >>> int(report.event(drawn).sum()) == report.counts.k
            True
        """
        return draw_again(self, side, start, size)

    def __add__(self, other: object) -> Audit:
        """Return one audit over the trials of two audits of the same run.

        Mechanism, pair, event, direction, seed, block, claim, delta and confidence must be equal.
        The ranges of trials must be disjoint. For a Python callable, each range must end at the end
        of a block.

        Fix the numbers of trials in advance. If you look at the verdict after each merge and stop
        at a verdict that you like, the bound no longer holds at the stated confidence. In a
        simulation at a confidence of 90 %, 11.5 % of the audits with 60 verdicts refuted a true
        claim. With one verdict, 1.8 % of the audits refuted it.

        Raises:
            ValueError: if the audits differ in more than their trials, or if trials overlap.
        """
        if not isinstance(other, Audit):
            return NotImplemented
        return _merge_two_audits(self, other, "fixed")

    def merge(self, other: Audit, *, looked: bool = False) -> Audit:
        """Merge this audit with an audit of different trials of the same run.

        Args:
            other: audit that differs from this audit only in the counted trials.
            looked: True if you knew the verdict of one audit when you started the next audit, or if
                the number of audits depends on a verdict. The merged audit then uses the bound
                "anytime", which holds at every stopping time.

        Returns:
            The audit of the trials of both audits.

        Raises:
            TypeError: if `other` is not an audit.
            ValueError: if the audits differ in anything except the counted trials, or if both
                audits counted the same trial.

        Example:
            >>> import dpcore
            >>> parts = [
            ...     dpcore.audit(dpcore.Laplace(1.0), trials=10**4, start=start, claim=1.0, rng=1)
            ...     for start in (0, 10**4)
            ... ]
            >>> parts[0].merge(parts[1], looked=True).bound
            'anytime'
        """
        if not isinstance(other, Audit):
            raise mistyped("other", "an Audit", other)
        stop = "looked" if instance("looked", looked, bool) else "fixed"
        return _merge_two_audits(self, other, stop)

    def __repr__(self) -> str:
        """Return one line: the name of the mechanism and the result."""
        bound = "" if self.checks else f", epsilon_lower={self.epsilon_lower:.6g}"
        outcome = on_one_line(self.verdict, 60) + bound
        return f"<Audit of {on_one_line(self.name, 60)}: {outcome}, seed={self.seed}>"

    def _lines(self) -> list[Row]:
        return list_all_rows(self)

    def _plot(self, ax: Any) -> Figure:
        return draw_epsilons(self, ax)

    def _to_page(self) -> str:
        return make_page(self)

    def _derived_values(self) -> dict[str, Any]:
        return derive_audit_numbers(self)

    @property
    def _is_verdict_slow(self) -> bool:
        return find_declaration(bounds.BOUNDS[self.bound]).slow

    def _require_consistency(self) -> None:
        total, counts = sum(stop - start for start, stop in self.ranges), self.counts
        if self.rounding_won:
            # The event of the attack was counted on every trial.
            counts = instance("floating_point", self.floating_point, evidence.Finding).counts
        for name in ("n", "n_prime"):
            if getattr(counts, name) != total:
                raise invalid(f"counts.{name}", f"{total}, the length of the ranges", counts)
        integer("end", self.end, self.ranges[-1][1])
        if self.stop == "fixed" and self.partial:
            raise invalid("stop", "another than 'fixed' for a partial audit", self.stop)
        if self.stop != "fixed" and not find_declaration(bounds.BOUNDS[self.bound]).anytime:
            raise invalid("bound", "'anytime' unless all was fixed in advance", self.bound)
        if (self.stop == "refuted") != bool(self.slices):
            raise invalid("slices", "there exactly where stop is 'refuted'", len(self.slices))
        pieces = [piece.counts for piece in self.slices]
        if pieces and sum(pieces[1:], pieces[0]) != self.counts:
            raise invalid("slices", f"pieces that add up to {self.counts}", self.slices)
        sizes = [self.counts.n * many for many in self.event.multiplicities] if self.pooled else []
        if sizes != [c.n for c in self.pooled] or sizes != [c.n_prime for c in self.pooled]:
            raise invalid("pooled", "counts of every coordinate of the event", self.pooled)

    def plot_tradeoff(self, ax: Any = None) -> Figure:
        """Plot the confidence band `tradeoff` of this audit: type II error against type I error.

        `ax` is a matplotlib figure or axes, or None for a new figure.
        """
        return draw_trade_off_upper_band(self, ax)

    def plot_profile(self, ax: Any = None) -> Figure:
        """Plot the certified lower bound on delta as a function of epsilon.

        `ax` is a matplotlib figure or axes, or None for a new figure.
        """
        return draw_certified_delta_by_epsilon(self, ax)


def _merge_two_audits(first: Audit, second: Audit, stop: str) -> Audit:
    # The two audits have the event of the attack in common.
    first, second = (
        audit.exchange_findings() if audit.rounding_won else audit for audit in (first, second)
    )
    rules = {field.name: evidence.get_merger(field) for field in fields(first)}
    for name in (name for name, rule in rules.items() if rule is evidence.first_of_equal):
        mine, theirs = getattr(first, name), getattr(second, name)
        if mine != theirs:
            raise invalid(f"{name} of the second audit", f"{mine!r} as in the first", theirs)
    values = _jointly_merged_fields(first, second, stop)
    # Fields that can be kept from one audit only are taken from the one with the earlier trials.
    early, late = sorted((first, second), key=lambda audit: audit.ranges)
    for name, rule in rules.items():
        if rule not in (evidence.first_of_equal, evidence.merge_later):
            values[name] = rule(getattr(early, name), getattr(late, name))
    return replace(first, **values).with_winner()


def _jointly_merged_fields(first: Audit, second: Audit, stop: str) -> dict[str, Any]:
    """Return the fields of a merged audit that depend on several fields of the two audits."""
    if first.slices or second.slices:
        raise invalid("audits", "without early stop, to be added", first.stop)
    ranges = unite_ranges(first.ranges, second.ranges)
    if first.route == "callable":
        _require_whole_blocks(first, second)
    if same := set(first.digests) & set(second.digests):
        requirement = "drawn anew, and not those of the first"
        raise invalid("outputs of the second audit", requirement, f"{len(same)} equal blocks")
    stops = {stop, first.stop, second.stop} - {"fixed"}
    if not stops and first.bound != second.bound:
        requirement = f"{first.bound!r} as in the first"
        raise invalid("bound of the second audit", requirement, second.bound)
    early, late = sorted((first, second), key=lambda audit: audit.ranges)
    pooled = first.pooled and second.pooled and not stops
    return {
        "ranges": ranges,
        # A run that Ctrl-C cut short never reached its end, so its end shortened no block.
        "end": max(first, second, key=lambda audit: audit.ranges[-1]).end,
        "stop": min(stops) if stops else "fixed",
        "bound": "anytime" if stops else first.bound,
        "pooled": tuple(map(Counts.__add__, first.pooled, second.pooled)) if pooled else (),
        "slices": (),
        "checks": tuple(
            dict.fromkeys(early.checks + late.checks + _event_rates_differ_note(early, late))
        ),
        "notes": tuple(dict.fromkeys(early.notes + late.notes)),
    }


def _event_rates_differ_note(first: Audit, second: Audit) -> tuple[str, ...]:
    """Return a sentence if the event has significantly different frequencies in two audits.

    Outputs that dpcore's compiled core draws need no such check.
    """
    if first.route != "callable":
        return ()
    own, other = first.counts, second.counts
    sides = [(own.n, own.k), (other.n, other.k)], [(c.n_prime, c.k_prime) for c in (own, other)]
    return compare_rates_of_audits(sides)


def _require_whole_blocks(first: Audit, second: Audit) -> None:
    # The last, short block of a callable need not be a prefix of the whole block.
    last = max(first.ranges[-1][1], second.ranges[-1][1])
    for stop in (stop for audit in (first, second) for _, stop in audit.ranges):
        if stop % first.block and stop != last:
            requirement = f"a multiple of block = {first.block} for a Python callable"
            raise invalid("end of a range of trials", requirement, stop)


def _epsilon_grid_for_claim(claim: float) -> Iterator[float]:
    """Yield a fixed grid of epsilons: ten steps up to the claim, then steps of 2 % up to 64."""
    if claim > 0.0:
        yield from (claim * step / _STEPS_BELOW_CLAIM for step in range(1, _STEPS_BELOW_CLAIM + 1))
    else:
        yield 0.0
    epsilon = max(claim, 0.01)
    while epsilon < _MAX_GRID_EPSILON:
        epsilon *= _GRID_RATIO
        yield epsilon


def error_limits_of(counts: Counts, alpha: float) -> tuple[float, float]:
    """Compute upper limits on the type I and on the type II error of an event.

    The event is used as a test of which of two inputs was given to a mechanism.

    Args:
        counts: counts of the event. `k` and `n` are for the input on which the event should be more
            likely.
        alpha: probability that a limit fails, for each of the two limits, between 0 and 1.
    """
    type_one = bounds.limits(counts.k_prime, counts.n_prime, alpha)[1]
    return type_one, 1.0 - bounds.limits(counts.k, counts.n, alpha)[0]


def max_refuted_parameter(claim: Claim, epsilon: float, refuted: Callable[[float], bool]) -> float:
    """Return the largest grid value for which this value and all smaller values are refuted.

    The grid has values of a parameter: mu of a `GDP` claim, or rho of a `ZCDP` claim. A claim with
    this parameter implies a delta at the given epsilon. The parameter is refuted if (epsilon,
    delta) is refuted.

    Args:
        claim: `GDP` or `ZCDP` claim of the audit. The parameter of this claim determines the fixed
            grid.
        epsilon: epsilon at which all parameters are tested.
        refuted: function that takes a delta. It returns True if (epsilon, delta) is refuted.
    """
    largest = 0.0
    for value in itertools.islice(
        _epsilon_grid_for_claim(getattr(claim, str(claim.parameter))), _MAX_PARAMETERS
    ):
        delta = claim.with_parameter(value).delta(epsilon)
        if delta >= 1.0 or not refuted(delta):
            break
        largest = value
    return largest


@lru_cache(maxsize=256)
def max_refuted_mu_rho(claim: Claim, error_pairs: tuple[tuple[float, float], ...]) -> float:
    """Return the largest mu (for `GDP`) or rho (for `ZCDP`) that at least one point refutes.

    A point is a pair of a type I and a type II error. A point refutes a parameter if the trade-off
    curve of this parameter is above the point.
    """
    return claim.largest(lambda curve: any(two < curve.trade_off(q) for q, two in error_pairs))
