"""Display of a plan: text, and a picture of power against size."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..bounds.violations import guesses_for
from ..claims.claim import Claim
from ..results.planned import AUTO_FACTOR, Plan, middle_of
from .style import axes_of, get_whole_figure, relative_size, text_colour, thin_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_POWER_GRID_POINTS = 41


def list_plan_rows(plan: Plan) -> list[tuple[str, str]]:
    """List the rows (label, text) of the plan, without time."""
    delta = f", delta = {plan.delta:g}" if plan.delta else ""
    percent = f"{100 * plan.reached:.4g} % probability at {100 * plan.confidence:g} % confidence"
    claim = f"epsilon <= {plan.claim:.4g}{delta}"
    claim = claim if plan.curve is None else f"{plan.curve}; its tangent {claim}"
    table = [("claim", claim), ("true loss", _describe_true_loss(plan))]
    if plan.guesses is None:
        who = ", for an attacker who knows the event" if _is_event_known(plan) else ""
        table.append(
            ("trials", f"{plan.trials:,} on each side refute the claim with {percent}{who}")
        )
        table += _list_event_rows(plan)
    else:
        table.append(("canaries", f"{plan.canaries:,}, each included by its own fair coin"))
        table.append(("guesses", f"{plan.guesses:,} refute the claim with {percent}"))
        table.append(("assuming", f"a guess is right with probability {plan.guess_rate:.6g}"))
    table.append(
        (
            "at most",
            f"epsilon >= {plan.certifiable:.4f} could be certified: {_describe_best_event(plan)}",
        )
    )
    if plan.reached < plan.power:
        table.append(("needed", _describe_need(plan)))
    table.append(("next", _format_audit_call(plan)))
    return table


def format_plan(plan: Plan) -> str:
    """Format the plan as lines of text; with a mechanism, the last line gives the time."""
    lines = list_plan_rows(plan)
    if plan.seconds is not None:
        lines.append(
            ("time", f"about {_format_duration(plan.seconds)}, at the speed of the pilots")
        )
    name = "Plan" if plan.mechanism is None else f"Plan for {plan.mechanism}"
    return "\n".join([name, *(f"  {label:<12} {line}" for label, line in lines)])


def _describe_true_loss(plan: Plan) -> str:
    loss = f"{plan.true_epsilon:.4g}"
    if plan.factor is not None:
        kind = "Gaussian noise" if plan.delta else "noise"
        return f"{loss}, of {kind} {plan.factor:g} times as large as the claim needs"
    return f"{loss} at least, as pilots show" if plan.seen else loss


def _is_event_known(plan: Plan) -> bool:
    """Return True if the plan takes an event as given, which `auto` would have to find."""
    return plan.event is None and plan.guesses is None


def _count_auto_trials(plan: Plan) -> int:
    """Return the trials that `auto` usually takes, since it must find its event itself."""
    return plan.size * (AUTO_FACTOR if _is_event_known(plan) else 1)


def _list_event_rows(plan: Plan) -> list[tuple[str, str]]:
    p, q = middle_of(plan.rates)
    rates = f"probability {p:.4g} on one side, {q:.4g} on the other"
    if plan.event is None:
        auto = f"up to {_count_auto_trials(plan):,}, usually: it chooses the event on pilot draws"
        return [("event", rates), ("auto", auto)]
    seed = f"{plan.pilots:,} pilot draws a side, seed {plan.seed}"
    return [("event", f"such as {plan.event}"), ("rates", f"{rates} (limits from {seed})")]


def _describe_best_event(plan: Plan) -> str:
    if plan.guesses is not None:
        return "all guesses right"
    return "the event as often as expected on one side, never on the other"


def _describe_need(plan: Plan) -> str:
    rate, settings = plan.guess_rate, (plan.delta, plan.confidence, plan.power)
    found = guesses_for(
        lambda guesses: max(guesses, plan.canaries or 1), plan.claim, rate, *settings
    )
    wanted = f"for {100 * plan.power:g} % probability"
    if found is None:
        return f"another attack or a smaller delta: a million guesses are too few {wanted}"
    return f"{found:,} guesses (and at least as many canaries) {wanted}"


def _claim_constructor_code(claim: Claim) -> str:
    """Return a claim as Python, or the name `claim` where it is a table."""
    if claim.parameter is None:
        return "claim"
    return f"dpcore.claims.{type(claim).__name__}({getattr(claim, claim.parameter):g})"


def _format_audit_call(plan: Plan) -> str:
    stated = f"claim={plan.claim:g}" + (f", delta={plan.delta:g}" if plan.delta else "")
    if plan.curve is not None:
        stated = f"claim={_claim_constructor_code(plan.curve)}"
    stated += "" if plan.confidence == 0.95 else f", confidence={plan.confidence:g}"
    if plan.guesses is None:
        return f"dpcore.audit(mechanism, pair, {stated}, trials={_count_auto_trials(plan)})"
    rows = f'rows="one_run", guesses={plan.guesses}'
    return f"dpcore.audit_outputs(scores_in, scores_out, {rows}, {stated})"


def _format_duration(seconds: float) -> str:
    """Format a time in words, to two digits."""
    for unit, length in (("days", 86400.0), ("hours", 3600.0), ("min", 60.0)):
        if seconds >= 2.0 * length:
            return f"{seconds / length:.2g} {unit}"
    return f"{seconds:.2g} s"


def draw_power(plan: Plan, ax: Any = None) -> Figure:
    """Draw power against size: the curve, the planned size, the requested power."""
    from matplotlib.ticker import LogLocator, NullLocator

    axes = axes_of(ax, relative_size(0.9, 0.7))
    what = "trials on each side" if plan.guesses is None else "guesses"
    spread = np.linspace(math.log(0.1), math.log(3.0), _POWER_GRID_POINTS)
    sizes = np.unique(np.maximum(1.0, np.rint(plan.size * np.exp(spread))).astype(np.int64))
    [line] = axes.plot(sizes, [plan.power_at(int(size)) for size in sizes])
    axes.plot([plan.size], [plan.reached], "o", color=line.get_color())
    label = f"{plan.size:,} {what}"
    axes.annotate(label, (plan.size, plan.reached), (6, -12), textcoords="offset points", va="top")
    axes.axhline(plan.power, color=text_colour(), alpha=0.6, linewidth=0.8, linestyle="--")
    axes.annotate(
        f"{100 * plan.power:g} %", (sizes[0], plan.power), (0, 3), textcoords="offset points",
        alpha=0.8,
    )  # fmt: skip
    axes.set(xscale="log", ylim=(0.0, 1.05), xlabel=what, ylabel="probability of refuting")
    axes.set_title(
        f"epsilon <= {plan.claim:g}, in truth {plan.true_epsilon:.4g}",
        loc="left",
        fontsize="medium",
    )
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda size, _: f"{size:,.0f}" if size < 1e7 else f"{size:.0e}")
    thin_axes(axes)
    return get_whole_figure(axes.figure)
