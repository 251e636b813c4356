"""From an estimate to (epsilon, delta): three figures that are never mixed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ..records import Record
from .certificates import epsilon_hat, epsilon_lower
from .conversion import Line, canonne_kamath_steinke, line
from .raw import Flags, Reals
from .reliability.group_sizes import two_laws
from .reliability.held_out import HeldOut

__all__ = ["SEEN", "Epsilon", "compute_epsilons", "select_resolved_orders"]

SEEN: Final = 10
"""Rows that a share of delta of the smaller set must hold for the sample to see that delta."""

_NO_ORDER = "no order above one is resolved in both directions: nothing to convert"
_INDEPENDENCE_NOT_STATED = (
    "epsilon_lower needs rows='independent', or groups0 and groups1: only independent rows or "
    "groups can be counted"
)
_TWO_LAWS = (
    "sizes of groups depend on values: epsilon_lower and epsilon_hat speak of one random row of "
    "each group, epsilon_rdp of all rows"
)
_NO_CHECKS = "epsilon_lower and epsilon_hat need held-out events: checks=True"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Epsilon(Record):
    """Three figures for one delta; none of them stands for another.

    Attributes:
        delta: the delta asked for.
        epsilon_lower: certified at `confidence`: the smallest epsilon at which (epsilon, delta)-DP
            is not refuted by a held-out event. None where nobody said that rows are independent.
        epsilon_hat: the empirical loss of that event; a point estimate.
        epsilon_rdp: the conversion of the estimated curve (Canonne, Kamath and Steinke 2020),
            the larger direction: neither an upper nor a lower bound. None where no order above
            one is resolved in both directions.
        alpha: the order that decided `epsilon_rdp`.
        line: Gusain and Leith's line above the curve with its own epsilon, or None.
        confidence: of `epsilon_lower`.
        extrapolated: True if delta is below 10 over the smaller number of rows: no event of this
            sample can speak about it.
        reasons: a sentence for each figure that is None or needs a word.
    """

    delta: float
    epsilon_lower: float | None
    epsilon_hat: float | None
    epsilon_rdp: float | None
    alpha: float | None
    line: Line | None
    confidence: float
    extrapolated: bool
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the three figures as text, each with its description."""
        from .report.text import epsilon_text

        return epsilon_text(self)


def compute_epsilons(
    delta: float,
    *,
    curves: Sequence[tuple[Reals, Reals]],
    sizes: tuple[int, int],
    held_out: HeldOut | None,
    stated: bool,
    confidence: float,
    size_p: float | None,
) -> Epsilon:
    """Compute the certified figure, the plug-in of its event, and the converted curve.

    Args:
        delta: in [0, 1).
        curves: for each direction what `select_resolved_orders` found.
        sizes: rows of the two sets.
        held_out: counts of held-out events, or None.
        stated: True if the caller said that rows (or groups) are independent.
        confidence: of what is certified.
        size_p: p-value of the test that sizes of groups do not depend on values, or None.
    """
    reasons: list[str] = []
    lower = hat = None
    if held_out is None:
        reasons.append(_NO_CHECKS)
    else:
        hat = epsilon_hat(held_out, delta, confidence)
        if stated:
            lower = epsilon_lower(held_out, delta, confidence)
        else:
            reasons.append(_INDEPENDENCE_NOT_STATED)
    if two_laws(size_p):
        reasons.append(_TWO_LAWS)
    rdp, alpha, drawn = _convert_curves(curves, delta)
    if rdp is None:
        reasons.append("epsilon_rdp needs delta above 0" if delta == 0.0 else _NO_ORDER)
    least = SEEN / min(sizes)
    if delta < least:
        reasons.append(f"extrapolated: this sample sees delta from {least:.2g} on")
    return Epsilon(
        delta=delta,
        epsilon_lower=lower,
        epsilon_hat=hat,
        epsilon_rdp=rdp,
        alpha=alpha,
        line=drawn,
        confidence=confidence,
        extrapolated=delta < least,
        reasons=tuple(reasons),
    )


def select_resolved_orders(alphas: Reals, value: Reals, resolved: Flags) -> tuple[Reals, Reals]:
    """Select the orders above 1 up to the first unresolved one, and the curve to convert there."""
    above = alphas > 1.0
    kept = above & np.logical_and.accumulate(resolved | ~above)
    # D_alpha never falls with alpha and is never negative.
    return alphas[kept], np.maximum.accumulate(np.maximum(value[kept], 0.0))


def _convert_curves(
    curves: Sequence[tuple[Reals, Reals]], delta: float
) -> tuple[float | None, float | None, Line | None]:
    """Convert both directions from resolved orders above 1 only; return the larger values."""
    if delta == 0.0 or not all(len(alphas) for alphas, _ in curves):
        return None, None, None
    direct = [canonne_kamath_steinke(*curve, delta) for curve in curves]
    lines = [line(*curve, delta) for curve in curves]
    larger = max(direct, key=lambda each: each.epsilon)
    return larger.epsilon, larger.alpha, max(lines, key=lambda each: each.epsilon)
