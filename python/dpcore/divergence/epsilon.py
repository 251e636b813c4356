"""From an estimate to (epsilon, delta): three figures that are never mixed."""

from __future__ import annotations

from typing import Final

import numpy as np

from .certificates import epsilon_hat, epsilon_lower
from .conversion import Line, canonne_kamath_steinke, line
from .raw import Reals
from .record import Epsilon, Estimate
from .reliability.group_sizes import two_laws

SEEN: Final = 10
"""Rows that a share of delta of the smaller set must hold for the sample to see that delta."""

_NO_ORDER = "no order above one is resolved in both directions: nothing to convert"
_NOT_STATED = (
    "epsilon_lower needs rows='independent', or groups0 and groups1: only independent rows or "
    "groups can be counted"
)
_TWO_LAWS = (
    "sizes of groups depend on values: epsilon_lower and epsilon_hat speak of one random row of "
    "each group, epsilon_rdp of all rows"
)
_NO_CHECKS = "epsilon_lower and epsilon_hat need held-out events: checks=True"


def figures(estimate: Estimate, delta: float) -> Epsilon:
    """The certified figure, the plug-in of its event, and the converted curve."""
    reasons: list[str] = []
    lower = hat = None
    if estimate.held_out is None:
        reasons.append(_NO_CHECKS)
    else:
        hat = epsilon_hat(estimate.held_out, delta, estimate.confidence)
        if estimate.stated:
            lower = epsilon_lower(estimate.held_out, delta, estimate.confidence)
        else:
            reasons.append(_NOT_STATED)
    if estimate.checks is not None and two_laws(estimate.checks.size_p):
        reasons.append(_TWO_LAWS)
    rdp, alpha, drawn = _converted(estimate, delta)
    if rdp is None:
        reasons.append("epsilon_rdp needs delta above 0" if delta == 0.0 else _NO_ORDER)
    extrapolated = delta < SEEN / min(estimate.sizes)
    if extrapolated:
        least = SEEN / min(estimate.sizes)
        reasons.append(f"extrapolated: this sample sees delta from {least:.2g} on")
    return Epsilon(
        delta=delta,
        epsilon_lower=lower,
        epsilon_hat=hat,
        epsilon_rdp=rdp,
        alpha=alpha,
        line=drawn,
        confidence=estimate.confidence,
        extrapolated=extrapolated,
        reasons=tuple(reasons),
    )


def usable(estimate: Estimate, direction: int) -> tuple[Reals, Reals]:
    """Orders above one up to the first that is not resolved, and the curve to convert there."""
    above = estimate.alphas > 1.0
    kept = above & np.logical_and.accumulate(estimate.resolved[direction] | ~above)
    # D_alpha never falls with alpha and is never negative.
    curve = np.maximum.accumulate(np.maximum(estimate.value[direction][kept], 0.0))
    return estimate.alphas[kept], curve


def _converted(estimate: Estimate, delta: float) -> tuple[float | None, float | None, Line | None]:
    """The larger direction of both conversions, from resolved orders above one only."""
    if delta == 0.0:
        return None, None, None
    found: list[tuple[float, float | None, Line]] = []
    for direction in (0, 1):
        alphas, curve = usable(estimate, direction)
        if not len(alphas):
            return None, None, None
        direct = canonne_kamath_steinke(alphas, curve, delta)
        found.append((direct.epsilon, direct.alpha, line(alphas, curve, delta)))
    rdp, alpha, _ = max(found, key=lambda one: one[0])
    return rdp, alpha, max((one[2] for one in found), key=lambda one: one.epsilon)
