"""Pictures of what a score tells: the trade-off band and the certified privacy profile."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..results.audits import Audit
from .text import BLUE, GREY, INK, RED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_POINTS = 400


def tradeoff_figure(audit: Audit) -> Figure:
    """The upper confidence band on the trade-off function, against what the claim allows."""
    from matplotlib.figure import Figure

    band = audit.tradeoff
    picture = Figure(figsize=(5.0, 4.6), layout="constrained")
    axes = picture.subplots()
    errors = np.linspace(0.0, 1.0, _POINTS)
    upper = band.at(errors)
    axes.fill_between(errors, upper, 1.0, step=None, color=GREY, alpha=0.18, linewidth=0)
    axes.plot(errors, upper, color=BLUE, label=f"upper band, {100 * audit.confidence:g} %")
    axes.plot([0, 1], [1, 0], color=GREY, linewidth=0.8, label="no information")
    if audit.claim is not None:
        label = f"claim {audit.claim:g}"
        axes.plot(errors, _allowed(audit, errors), color=INK, linestyle="--", label=label)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="type I error", ylabel="type II error")
    axes.set_title("Trade-off function: it lies at or below the band", loc="left", fontsize=10)
    axes.set_aspect("equal")
    axes.legend(frameon=False, loc="upper right")
    axes.spines[["top", "right"]].set_visible(False)
    return picture


def _allowed(audit: Audit, errors: np.ndarray) -> np.ndarray:
    """The least trade-off function that the claim (epsilon, delta) leaves.

    Source:
        Dong, Roth and Su (2022), proposition 2.5.
    """
    assert audit.claim is not None
    grow = math.exp(min(700.0, audit.claim * audit.pair.distance))
    first = 1.0 - audit.delta - grow * errors
    second = (1.0 - audit.delta - errors) / grow
    return np.maximum(0.0, np.maximum(first, second))


def profile_figure(audit: Audit) -> Figure:
    """The certified lower bound on delta at every epsilon."""
    from matplotlib.figure import Figure

    band = audit.tradeoff
    picture = Figure(figsize=(6.0, 3.6), layout="constrained")
    axes = picture.subplots()
    whole = 0.0 if audit.claim is None else audit.claim * audit.pair.distance
    right = 1.3 * max(audit.epsilon_lower, whole, 0.2)
    epsilons = np.linspace(0.0, right, _POINTS)
    deltas = np.asarray(band.delta(epsilons))
    shown = deltas > 0.0
    axes.fill_between(epsilons[shown], 0.0, deltas[shown], color=BLUE, alpha=0.15, linewidth=0)
    axes.plot(epsilons[shown], deltas[shown], color=BLUE, label="certified: delta is at least this")
    if audit.claim is not None:
        label = f"claim ({audit.claim:g}, {audit.delta:g})"
        least = float(deltas[shown].min()) if shown.any() else 1e-6
        height = audit.delta if audit.delta > 0.0 else least
        marker = "o" if audit.delta > 0.0 else "v"
        axes.plot([whole], [height], marker, color=RED, label=label, linestyle="none")
    if shown.any():
        axes.set_yscale("log")
    axes.set(xlim=(0, right), xlabel="epsilon", ylabel="delta")
    title = (
        f"Privacy profile: no (epsilon, delta) below the line holds ({100 * audit.confidence:g} %)"
    )
    axes.set_title(title, loc="left", fontsize=10)
    axes.legend(loc="best", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return picture
