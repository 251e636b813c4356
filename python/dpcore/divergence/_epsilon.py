"""From an estimate to (epsilon, delta): three figures that are never mixed."""

from __future__ import annotations

import numpy as np

from ._record import Epsilon, Estimate
from .certificates import epsilon_hat, epsilon_lower
from .conversion import Line, canonne_kamath_steinke, line

_NO_ORDER = "no order above one is resolved in both directions: nothing to convert"
_NOT_STATED = (
    "epsilon_lower needs rows='independent', or groups0 and groups1: only independent rows or "
    "groups can be counted"
)
_NO_CHECKS = "epsilon_lower and epsilon_hat need held-out events: checks=True"


def figures(estimate: Estimate, delta: float, seen: int) -> Epsilon:
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
    rdp, alpha, drawn = _converted(estimate, delta)
    if rdp is None:
        reasons.append("epsilon_rdp needs delta above 0" if delta == 0.0 else _NO_ORDER)
    extrapolated = delta < seen / min(estimate.sizes)
    if extrapolated:
        least = seen / min(estimate.sizes)
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


def _converted(estimate: Estimate, delta: float) -> tuple[float | None, float | None, Line | None]:
    """The larger direction of both conversions, from resolved orders above one only."""
    if delta == 0.0:
        return None, None, None
    found: list[tuple[float, float | None, Line]] = []
    for value, resolved in zip(estimate.value, estimate.resolved, strict=True):
        above = estimate.alphas > 1.0
        # Orders beyond the first that is not resolved do not count either.
        usable = above & np.logical_and.accumulate(resolved | ~above)
        if not usable.any():
            return None, None, None
        # D_alpha never falls with alpha and is never negative.
        curve = np.maximum.accumulate(np.maximum(value[usable], 0.0))
        direct = canonne_kamath_steinke(estimate.alphas[usable], curve, delta)
        found.append((direct.epsilon, direct.alpha, line(estimate.alphas[usable], curve, delta)))
    rdp, alpha, _ = max(found, key=lambda one: one[0])
    return rdp, alpha, max((one[2] for one in found), key=lambda one: one.epsilon)
