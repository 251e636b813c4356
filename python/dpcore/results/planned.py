"""Plan of an audit: how many trials it needs, or how many canaries (training examples)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from ..bounds import clopper_pearson, one_run
from ..bounds.canaries import guesses_for, one_run_power
from ..bounds.power import AUTO_FACTOR, certifies
from ..claims.trade_off import Claim
from ..errors import count, invalid
from ..records import Counts, Result
from ..report.figures import annotate_point, axes_of, finish_axes, scale_figure_size, text_colour
from ..report.rows import Row
from .evidence import divide_if_delta_0

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_POWER_GRID_POINTS: Final = 41
_DERIVED_FIGURES: Final = ("mass", "mass_prime", "reached", "certifiable")


def median_ratio_rates(rates: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the pair of probabilities (p, q) whose ratio p/q is the median of all ratios.

    If the number of pairs is even, the function returns the pair with the lower of the two middle
    ratios.
    """
    ranked = sorted(
        rates, key=lambda pair_of_rates: pair_of_rates[0] / max(pair_of_rates[1], 1e-300)
    )
    return ranked[(len(ranked) - 1) // 2]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Plan(Result, word="dpcore.plan/1"):
    """Number of draws or guesses that an audit needs to refute a false claim.

    The function `dpcore.plan` returns this object. A plan is for independent draws on two inputs,
    or for one training run with canaries. A canary is a training example that is included or left
    out by a coin flip. The attacker guesses which canaries were included. If a mechanism is given,
    the plan is computed from pilots. A pilot is a small trial audit of the mechanism.

    Attributes:
        claim: claimed epsilon that the audit should refute.
        true_epsilon: privacy loss that the plan assumes. If a mechanism but no loss was given, this
            is the loss that the pilots show.
        delta: delta of the claim and of `true_epsilon`.
        confidence: probability with which the bound of the planned audit holds.
        power: requested probability that the planned audit refutes the claim.
        factor: assumed scale of the noise divided by the scale that the claim requires, or None if
            it was not given.
        rates: pairs of probabilities of an event. The first probability is for the input on which
            the event is more likely, the second one for the other input. There is one pair for each
            pilot, or one assumed pair without pilots. The tuple is empty for one training run.
        trials: number of draws to count on each of the two inputs, or None for one training run.
        canaries: number of canaries in the training run, or None for independent draws.
        guesses: number of guesses about canaries, or None for independent draws.
        seconds: duration of the planned audit in seconds, at the speed of the pilots. None without
            a mechanism. A comparison by `==` ignores this field.
        distance: distance between the two inputs. The claim for these inputs is `claim` times
            `distance`.
        mechanism: name of the mechanism, or None without a mechanism.
        event: description of the event from the pilot with the median loss, or None if no mechanism
            was given.
        pilots: number of pilot draws on each input from which `rates` were computed, or 0 without
            pilots. With pilots, `rates` contains confidence limits for the probabilities.
        seed: seed with which the pilots can be repeated, or None without a mechanism.
        curve: the claim, if it is a trade-off curve. The fields `claim` and `delta` are then the
            epsilon and the delta of a tangent to the curve. None if the claim is not a curve.
        seen: True if the pilots already show that the claim is false.
    """

    _INSTEAD: ClassVar[str] = "reached (a probability)"

    claim: float
    true_epsilon: float
    delta: float
    confidence: float
    power: float
    factor: float | None = None
    rates: tuple[tuple[float, float], ...] = ()
    trials: int | None = None
    canaries: int | None = None
    guesses: int | None = None
    seconds: float | None = field(default=None, compare=False)
    distance: float = 1.0
    mechanism: str | None = None
    event: str | None = None
    pilots: int = 0
    seed: int | None = None
    seen: bool = False
    curve: Claim | None = None

    def power_at(self, size: int | float | str) -> float:
        """Compute the probability that an audit of the given size refutes the claim of this plan.

        Args:
            size: number of trials on each input or, for one training run, number of guesses. The
                number of canaries changes in proportion to the number of guesses.

        Returns:
            The probability. If the count of the event can have more than 2048 different values, the
            result is an approximation. It is below the exact value by less than .0005.

        Raises:
            TypeError: if `size` is not a number.
            ValueError: if `size` is not a whole number of at least 1.

        Example:
            >>> import dpcore
            >>> plan = dpcore.plan(1.0, true_epsilon=1.5, mass=0.5)
            >>> [(n, round(plan.power_at(n), 2)) for n in (plan.trials // 3, plan.trials)]
            [(184, 0.38), (553, 0.95)]
        """
        size = count("size", size)
        claim = self.claim * self.distance
        if self.guesses is not None:
            assert self.canaries is not None
            canaries = max(size, math.ceil(self.canaries * size / self.guesses))
            settings = self.delta, self.confidence
            return one_run_power(size, canaries, claim, self.guess_rate, *settings)
        each = Counter(self.rates)
        level = self.delta, self.confidence
        powers = (
            many * certifies(size, claim, *pair_of_rates, *level)
            for pair_of_rates, many in each.items()
        )
        return min(1.0, sum(powers) / len(self.rates))

    @property
    def mass(self) -> float | None:
        """Assumed probability of the event, on the input where the event is more likely.

        The value is None for a plan with canaries of one training run.
        """
        return median_ratio_rates(self.rates)[0] if self.rates else None

    @property
    def mass_prime(self) -> float | None:
        """Assumed probability of the event, on the input where the event is less likely.

        The value is None for a plan with canaries of one training run.
        """
        return median_ratio_rates(self.rates)[1] if self.rates else None

    @property
    def size(self) -> int:
        """Number of trials on each input in the planned audit.

        For one training run with canaries, the value is the planned number of guesses.
        """
        size = self.guesses if self.trials is None else self.trials
        if size is None:
            raise invalid("trials", "a number of trials where guesses is None", size)
        return size

    @property
    def reached(self) -> float:
        """Probability with which the planned audit refutes the claim.

        The probability is at least `power`, except in two cases: if the user gave the numbers of
        canaries and guesses, or if there are too few canaries.
        """
        return self.power_at(self.size)

    @property
    def guess_rate(self) -> float:
        """Probability that a guess about a canary is right, as this plan assumes.

        With the assumed privacy loss t (the field `true_epsilon`), the probability is
        `e^t/(1 + e^t)`.
        """
        return 1.0 / (1.0 + math.exp(-self.true_epsilon))

    @property
    def certifiable(self) -> float:
        """Largest epsilon that the planned audit could certify.

        For independent draws, the event is assumed to happen as often as expected on one input, and
        never on the other input. The value is then ``ln((p_low - delta)/(1 - (alpha/2)^(1/n)))``.
        Here alpha is 1 - confidence, and p_low is the lower Clopper-Pearson limit for the
        probability of the event on the input where the event happens. If delta is 0, the value is
        divided by `distance`. For one training run, all guesses are assumed to be right.
        """
        if self.guesses is not None:
            assert self.canaries is not None
            settings = self.delta, self.confidence
            return one_run(self.guesses, self.guesses, self.canaries, *settings)
        most = Counts(round(self.size * median_ratio_rates(self.rates)[0]), self.size, 0, self.size)
        bound = clopper_pearson(most, self.delta, self.confidence)
        return divide_if_delta_0(bound, self.delta, self.distance)

    def __repr__(self) -> str:
        """Return one line with the size, the claim and the true loss that this size detects."""
        size = f"{self.size:,} {'trials per side' if self.guesses is None else 'guesses'}"
        claimed = f"epsilon <= {self.claim:g}" if self.curve is None else str(self.curve)
        violation = f"{claimed} at a true {self.true_epsilon:.4g}"
        return f"<Plan: {size} refute {violation} with probability {self.reached:.4g}>"

    @property
    def _title(self) -> str:
        return "Plan" if self.mechanism is None else f"Plan for {self.mechanism}"

    def _lines(self) -> list[Row]:
        return list_plan_rows(self)

    def _plot(self, ax: Any) -> Figure:
        return draw_power(self, ax)

    def _derived_values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _DERIVED_FIGURES}


def list_plan_rows(plan: Plan) -> list[Row]:
    """Return the plan of an audit as report rows (label, text).

    If the plan is for a mechanism, the last row is the duration of the planned audit.
    """
    delta = f", delta = {plan.delta:g}" if plan.delta else ""
    percent = f"{100 * plan.reached:.4g} % probability at {100 * plan.confidence:g} % confidence"
    claim = f"epsilon <= {plan.claim:.4g}{delta}"
    claim = claim if plan.curve is None else f"{plan.curve}; its tangent {claim}"
    if plan.guesses is None:
        who = ", for an attacker who knows the event" if _assumes_known_event(plan) else ""
        size = [
            ("trials", f"{plan.trials:,} on each side refute the claim with {percent}{who}"),
            *_list_event_rows(plan),
        ]
        best = "the event as often as expected on one side, never on the other"
    else:
        size = [
            ("canaries", f"{plan.canaries:,}, each included by its own fair coin"),
            ("guesses", f"{plan.guesses:,} refute the claim with {percent}"),
            ("assuming", f"a guess is right with probability {plan.guess_rate:.6g}"),
        ]
        best = "all guesses right"
    return [
        ("claim", claim),
        ("true loss", _describe_true_loss(plan)),
        *size,
        ("at most", f"epsilon >= {plan.certifiable:.4f} could be certified: {best}"),
        *([("needed", _describe_guesses_needed(plan))] if plan.reached < plan.power else []),
        ("next", _format_audit_call(plan)),
        *([] if plan.seconds is None else [("time", _describe_planned_time(plan.seconds))]),
    ]


def _describe_true_loss(plan: Plan) -> str:
    loss = f"{plan.true_epsilon:.4g}"
    if plan.factor is not None:
        kind = "Gaussian noise" if plan.delta else "noise"
        return f"{loss}, of {kind} {plan.factor:g} times as large as the claim needs"
    return f"{loss} at least, as pilots show" if plan.seen else loss


def _assumes_known_event(plan: Plan) -> bool:
    """Return True if the plan assumes that the attacker knows the event without a search."""
    return plan.event is None and plan.guesses is None


def _trials_auto_needs(plan: Plan) -> int:
    """Return the usual number of trials for the attack `auto`, which searches for events."""
    return plan.size * (AUTO_FACTOR if _assumes_known_event(plan) else 1)


def _list_event_rows(plan: Plan) -> list[Row]:
    p, q = median_ratio_rates(plan.rates)
    rates = f"probability {p:.4g} on one side, {q:.4g} on the other"
    if plan.event is None:
        auto = f"up to {_trials_auto_needs(plan):,}, usually: it chooses the event on pilot draws"
        return [("event", rates), ("auto", auto)]
    seed = f"{plan.pilots:,} pilot draws per side, seed {plan.seed}"
    return [("event", f"such as {plan.event}"), ("rates", f"{rates} (limits from {seed})")]


def _describe_guesses_needed(plan: Plan) -> str:
    rate, settings = plan.guess_rate, (plan.delta, plan.confidence, plan.power)
    n_guesses = guesses_for(
        lambda guesses: max(guesses, plan.canaries or 1), plan.claim, rate, *settings
    )
    aim = f"for {100 * plan.power:g} % probability"
    if n_guesses is None:
        return f"another attack or a smaller delta: a million guesses are too few {aim}"
    return f"{n_guesses:,} guesses (and at least as many canaries) {aim}"


def _format_audit_call(plan: Plan) -> str:
    stated = f"claim={plan.claim:g}" + (f", delta={plan.delta:g}" if plan.delta else "")
    if plan.curve is not None:
        name = plan.curve.parameter
        kind = f"dpcore.claims.{type(plan.curve).__name__}"
        stated = f"claim={kind}({getattr(plan.curve, name):g})" if name else "claim=claim"
    stated += "" if plan.confidence == 0.95 else f", confidence={plan.confidence:g}"
    if plan.guesses is None:
        return f"dpcore.audit(mechanism, pair, {stated}, trials={_trials_auto_needs(plan)})"
    rows = f'rows="one_run", guesses={plan.guesses}'
    return f"dpcore.audit_outputs(scores_in, scores_out, {rows}, {stated})"


def _describe_planned_time(seconds: float) -> str:
    return f"about {_format_duration(seconds)}, at the speed of the pilots"


def _format_duration(seconds: float) -> str:
    """Format a number of seconds as text with a unit and two digits, such as "2.5 hours"."""
    for unit, length in (("days", 86400.0), ("hours", 3600.0), ("min", 60.0)):
        if seconds >= 2.0 * length:
            return f"{seconds / length:.2g} {unit}"
    return f"{seconds:.2g} s"


def draw_power(plan: Plan, ax: Any = None) -> Figure:
    """Plot the probability that an audit refutes the claim, as a function of the audit's size.

    The size is the number of trials on each input, or the number of guesses. The picture marks the
    planned size and the requested probability `plan.power`.
    """
    from matplotlib.ticker import LogLocator, NullLocator

    axes = axes_of(ax, scale_figure_size(0.9, 0.7))
    what = "trials on each side" if plan.guesses is None else "guesses"
    spread = np.linspace(math.log(0.1), math.log(3.0), _POWER_GRID_POINTS)
    sizes = np.unique(np.maximum(1.0, np.rint(plan.size * np.exp(spread))).astype(np.int64))
    [line] = axes.plot(sizes, [plan.power_at(int(size)) for size in sizes])
    axes.plot([plan.size], [plan.reached], "o", color=line.get_color())
    label = f"{plan.size:,} {what}"
    annotate_point(axes, label, (plan.size, plan.reached), (6, -12), va="top")
    axes.axhline(plan.power, color=text_colour(), alpha=0.6, linewidth=0.8, linestyle="--")
    annotate_point(axes, f"{100 * plan.power:g} %", (sizes[0], plan.power), (0, 3), alpha=0.8)
    axes.set(xscale="log", ylim=(0.0, 1.05), xlabel=what, ylabel="probability of refuting")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda size, _: f"{size:,.0f}" if size < 1e7 else f"{size:.0e}")
    return finish_axes(axes, f"epsilon <= {plan.claim:g}, in truth {plan.true_epsilon:.4g}")
