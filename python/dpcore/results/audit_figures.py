"""Pictures of an audit: its epsilons on one axis, its trade-off curve and its privacy profile."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..claims.trade_off import Claim
from ..report.figures import (
    annotate_point,
    axes_of,
    background_box,
    cycle_colour,
    finish_axes,
    scale_figure_size,
    text_colour,
    two_line_title,
)
from ..report.rows import format_epsilon
from .audit_text import format_claim, format_hits_or_guesses
from .need import is_recorded

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .audits import Audit
    from .outputs_audits import OutputsAudit

_MAX_CAPTION_CHARACTERS: Final = 60
_CURVE_GRID_POINTS = 400


def draw_epsilons(audit: Audit | OutputsAudit, ax: Any = None) -> Figure:
    """Draw the epsilons of an audit on one axis: certified, estimated, exact and claimed."""
    axes = axes_of(ax, scale_figure_size(1.0, 0.55))
    apart = audit.pair.distance if audit.delta else 1.0
    claim = None if audit.claimed_epsilon is None else audit.claimed_epsilon * apart
    figures = [audit.epsilon_lower, audit.epsilon_hat, audit.exact, claim]
    finite = [value for value in figures if value is not None and math.isfinite(value)]
    right = 1.25 * max([*finite, 0.1])
    if not audit.checks:
        bar = cycle_colour(1 if audit.refuted else 0)
        axes.barh([2], [audit.epsilon_lower], height=0.5, color=bar)
    _draw_loss(axes, 1, audit.epsilon_hat, right, text_colour(), "o")
    labels = {2: "certified", 1: "estimate"}
    if audit.exact is not None:
        _draw_loss(axes, 0, audit.exact, right, cycle_colour(2), "D")
        labels[0] = "closed form"
    low = min(labels) - 0.9
    if claim is not None:
        axes.axvline(claim, color=text_colour(), linestyle="--")
        annotate_point(axes, f"claim {claim:.6g}", (claim, low), (4, 3), va="bottom")
    certified = "no bound holds" if audit.checks else format_epsilon(audit.epsilon_lower)
    _write_label(axes, audit.epsilon_lower, 2, certified)
    label = "privacy loss epsilon"
    if is_recorded(audit):
        # Reviewers may see this picture without the report, so it has a caption.
        label += f"\n\n{_format_caption(audit)}"
    axes.set(xlim=(0, right), ylim=(low, 2.6), xlabel=label)
    axes.set_yticks(list(labels), list(labels.values()))
    verdict = "invalid: no bound holds" if audit.checks else audit.verdict
    return finish_axes(axes, two_line_title(audit.name, verdict))


def _format_caption(audit: OutputsAudit) -> str:
    """Format the claim, delta, confidence and counts of an audit as a caption of short lines."""
    delta = "" if audit.delta or isinstance(audit.claim, Claim) else ", delta = 0"
    claim = "no claim given" if audit.claim is None else f"claim: {format_claim(audit)}{delta}"
    words = f"{claim}; {100 * audit.confidence:g} % confidence; {format_hits_or_guesses(audit)}"
    return textwrap.fill(words, _MAX_CAPTION_CHARACTERS)


def _write_label(axes: Axes, value: float, row: float, words: str) -> None:
    """Write words to the right of a point, in a box that covers the line of the claim."""
    annotate_point(axes, words, (value, row), (7, 0), va="center", bbox=background_box(axes))


def _draw_loss(axes: Axes, row: float, value: float, right: float, hue: Any, marker: str) -> None:
    """Draw an epsilon as a point, or an infinite epsilon as an arrow to the right edge."""
    if math.isfinite(value):
        axes.plot([value], [row], marker, color=hue)
        _write_label(axes, value, row, format_epsilon(value))
        return
    tip = {"arrowstyle": "->", "color": hue, "lw": 1.5}
    axes.annotate("", (right, row), (0.86 * right, row), arrowprops=tip)
    axes.text(0.85 * right, row, "infinite", va="center", ha="right")


def draw_trade_off_upper_band(audit: Audit, ax: Any = None) -> Figure:
    """Draw the upper confidence band that an audit gives for the trade-off function.

    The trade-off function gives the least type II error at each type I error. The picture also
    shows the trade-off curve of the claim, if the audit has a claim.
    """
    axes = axes_of(ax, scale_figure_size(0.8, 1.0))
    band = audit.tradeoff
    errors = np.linspace(0.0, 1.0, _CURVE_GRID_POINTS)
    upper = band.at(errors)
    hue = cycle_colour(0)
    axes.fill_between(errors, upper, 1.0, step=None, color=hue, alpha=0.15, linewidth=0)
    axes.plot(errors, upper, color=hue)
    words = f"ruled out:\nabove the band, {100 * audit.confidence:g} %"
    axes.text(0.97, 0.97, words, ha="right", va="top")
    axes.plot([0, 1], [1, 0], color=text_colour(), alpha=0.5, linewidth=0.8)
    turned: dict[str, Any] = {"rotation": -45, "rotation_mode": "anchor", "fontsize": "small"}
    turned |= {"ha": "center", "va": "bottom", "alpha": 0.8}
    annotate_point(axes, "no information", (0.62, 0.38), (2, 2), **turned)
    if audit.claimed_epsilon is not None:
        claimed = _compute_claimed_trade_off(audit, errors)
        axes.plot(errors, claimed, color=text_colour(), linestyle="--")
        _write_claim_at_equal_errors(axes, audit)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="type I error", ylabel="type II error")
    axes.set_aspect("equal")
    return finish_axes(axes, "Trade-off function: at or below the band")


def _write_claim_at_equal_errors(axes: Axes, audit: Audit) -> None:
    """Write the claim next to the point of its trade-off curve with equal errors.

    The text is below this point. If the band or an axis is near, the text is moved away, and a line
    leads from the text to the point.
    """
    bend = _min_equal_error_rate_under_claim(audit)
    claim = str(audit.claim) if isinstance(audit.claim, Claim) else f"claim {audit.claim:g}"
    if bend > 0.22 and float(np.asarray(audit.tradeoff.at(np.array([bend])))[0]) >= bend:
        annotate_point(axes, claim, (bend, bend), (-3, -3), ha="right", va="top")
        return
    # Nothing is drawn beyond the line of no information.
    leader = {"arrowstyle": "-", "color": text_colour(), "lw": 0.6, "alpha": 0.6}
    axes.annotate(claim, (bend, bend), (0.55, 0.7), arrowprops=leader)


def _min_equal_error_rate_under_claim(audit: Audit) -> float:
    """Return the smallest type I error that the claim allows if the type II error is the same."""
    if isinstance(audit.claim, Claim):
        # The tangent with slope -1 satisfies 1 - 2 a = delta(0).
        return (1.0 - float(audit.claim.delta(0.0))) / 2.0
    return (1.0 - audit.delta) / (1.0 + _exp_claim_times_distance_capped(audit))


def _exp_claim_times_distance_capped(audit: Audit) -> float:
    """Compute e^(claimed epsilon times distance of the pair), limited to e^700."""
    return math.exp(min(700.0, (audit.claimed_epsilon or 0.0) * audit.pair.distance))


def _compute_claimed_trade_off(audit: Audit, errors: np.ndarray) -> np.ndarray:
    """Compute the smallest type II error that the claim allows at each type I error in `errors`.

    Source:
        Dong, Roth and Su (2022), proposition 2.5.
    """
    if isinstance(audit.claim, Claim):
        return np.asarray(audit.claim.trade_off(errors))
    grow = _exp_claim_times_distance_capped(audit)
    first = 1.0 - audit.delta - grow * errors
    second = (1.0 - audit.delta - errors) / grow
    return np.maximum(0.0, np.maximum(first, second))


def draw_certified_delta_by_epsilon(audit: Audit, ax: Any = None) -> Figure:
    """Draw the lower bound on delta that an audit certifies, as a curve over epsilon."""
    axes = axes_of(ax, scale_figure_size(1.0, 0.8))
    band = audit.tradeoff
    claimed = 0.0 if audit.claimed_epsilon is None else audit.claimed_epsilon * audit.pair.distance
    right = 1.3 * max(audit.epsilon_lower, claimed, 0.2)
    epsilons = np.linspace(0.0, right, _CURVE_GRID_POINTS)
    deltas = np.asarray(band.delta(epsilons))
    shown = deltas > 0.0
    hue = cycle_colour(0)
    axes.fill_between(epsilons[shown], 0.0, deltas[shown], color=hue, alpha=0.15, linewidth=0)
    axes.plot(epsilons[shown], deltas[shown], color=hue)
    # The curve falls, so the space above it on the right is empty.
    words = f"delta is at least the line\n({100 * audit.confidence:g} % confidence)"
    axes.text(0.98, 0.97, words, transform=axes.transAxes, ha="right", va="top")
    if audit.claimed_epsilon is not None:
        least = float(deltas[shown].min()) if shown.any() else 1e-6
        height = audit.delta if audit.delta > 0.0 else least
        marker = "o" if audit.delta > 0.0 else "v"
        axes.plot([claimed], [height], marker, color=cycle_colour(1), clip_on=False, zorder=3)
        claim = f"claim ({audit.claimed_epsilon:.4g}, {audit.delta:.4g})"
        annotate_point(axes, claim, (claimed, height), (7, 4), va="bottom")
    if shown.any():
        axes.set_yscale("log")
    axes.set(xlim=(0, right), xlabel="epsilon", ylabel="delta")
    return finish_axes(axes, "Privacy profile: no (epsilon, delta) below the line holds")
