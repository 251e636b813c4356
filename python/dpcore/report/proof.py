"""How the bound of an audit is proved: steps that can be checked by hand."""

from __future__ import annotations

import math

from ..bounds import limits
from ..results.audits import Audit
from .text import epsilon


def steps(audit: Audit) -> list[str]:
    """The four steps from pilot draws to the bound, with the numbers of this audit."""
    counts, level = audit.bound_counts, f"{100 * audit.confidence:g} %"
    up, down = ("x", "x'") if audit.direction == "x" else ("x'", "x")
    pilot = (
        f"on {audit.pilot:,} pilot draws a side, which were then thrown away"
        if audit.pilot
        else "by rule, without a look at any draw"
    )
    found = [
        f"The event E and the side of the numerator, {up}, were chosen {pilot}.",
        f"On fresh draws E happened {counts.k:,} times in {counts.n:,} on {up} and "
        f"{counts.k_prime:,} times in {counts.n_prime:,} on {down}.",
        *_quotient(audit, up, down, level),
    ]
    return found if audit.claim is None else [*found, _comparison(audit)]


def _quotient(audit: Audit, up: str, down: str, level: str) -> list[str]:
    """The two limits and their quotient, where these are what the audit's bound rests on."""
    counts, alpha = audit.bound_counts, (1.0 - audit.confidence) / 2.0
    p_low = limits(counts.k, counts.n, alpha)[0]
    q_high = limits(counts.k_prime, counts.n_prime, alpha)[1]
    value = math.log((p_low - audit.delta) / q_high) if p_low > audit.delta else -math.inf
    apart = 1.0 if audit.delta else audit.pair.distance
    if not math.isclose(max(0.0, value) / apart, audit.epsilon_lower, rel_tol=1e-9, abs_tol=1e-12):
        # Another bound than the quotient of two limits.
        return [f"With {level} confidence epsilon >= {epsilon(audit.epsilon_lower)}."]
    top = f"({p_low:.6g} - {audit.delta:g})" if audit.delta else f"{p_low:.6g}"
    limit = (
        f"With probability at least {level} both hold: P(E | {up}) >= {p_low:.6g} and "
        f"P(E | {down}) <= {q_high:.6g}, the one-sided Clopper-Pearson limits at {alpha:.6g} each."
    )
    law = (
        f"(epsilon, delta)-differential privacy says P(E | {up}) <= e^epsilon P(E | {down}) + "
        f"delta, so epsilon >= ln({top} / {q_high:.6g})"
    )
    if value <= 0.0:
        return [limit, f"{law}, which is not above 0: nothing is certified."]
    result = f" = {value:.4f}"
    if apart != 1.0:
        result += f"; over the distance {apart:g} that is {epsilon(audit.epsilon_lower)}"
    return [limit, f"{law}{result}."]


def _comparison(audit: Audit) -> str:
    claim, apart = audit.claim or 0.0, audit.pair.distance
    claimed = f"the claim {claim:g}"
    if audit.delta and apart != 1.0:
        claimed += f" x distance {apart:g} = {claim * apart:g}"
    relation = "exceeds" if audit.refuted else "does not exceed"
    return f"The certified {epsilon(audit.epsilon_lower)} {relation} {claimed}."
