"""Proof of an audit's bound: steps that can be checked by hand."""

from __future__ import annotations

import math

from ..bounds import limits
from ..bounds.declaration import declared
from ..claims.claim import Claim
from ..records import Counts
from ..results.audits import Audit
from ..results.figures import numerator_first
from ..results.guesses import BOUNDS, Guesses
from ..results.recorded import OutputsAudit
from .text import format_epsilon


def list_proof_steps(audit: Audit) -> list[str]:
    """List the four steps from pilot draws to the bound, with the numbers of this audit."""
    up, down = ("x", "x'") if audit.direction == "x" else ("x'", "x")
    pilot = (
        f"on {audit.pilot:,} pilot draws a side, which were then thrown away"
        if audit.pilot
        else "by rule, without a look at any draw"
    )
    chosen = f"The event E and the side of the numerator, {up}, were chosen {pilot}."
    return [chosen, *_list_count_steps(audit, audit.counts, up, down, "On fresh draws")]


def steps_of_outputs(audit: OutputsAudit) -> list[str]:
    """List the steps from recorded rows, or from guesses about canaries, to the bound."""
    if isinstance(audit.evidence, Guesses):
        found, title = audit.evidence, declared(BOUNDS[audit.rows][audit.bound]).title
        return [
            f"Of {found.canaries:,} canaries, each in or out by its own fair coin, "
            f"{found.guesses:,} were guessed: {audit.attack}.",
            f"{found.correct:,} of {found.guesses:,} guesses are right.",
            f"With {_format_confidence(audit)} confidence "
            f"epsilon >= {format_epsilon(audit.epsilon_lower)} ({title}).",
            *_list_verdict_steps(audit),
        ]
    up, down = ("x", "x'") if audit.direction == "x" else ("x'", "x")
    chosen = (
        f"The event E and the side of the numerator, {up}, were chosen on {audit.pilot[0]:,} rows "
        f"on x and {audit.pilot[1]:,} on x', which were not counted."
    )
    return [chosen, *_list_count_steps(audit, audit.evidence, up, down, "On the other rows")]


def _format_confidence(audit: Audit | OutputsAudit) -> str:
    return f"{100 * audit.confidence:g} %"


def _list_count_steps(
    audit: Audit | OutputsAudit, counts: Counts, up: str, down: str, where: str
) -> list[str]:
    """List the steps from counts to the bound and to the verdict on the claim."""
    counts = numerator_first(counts, audit.direction)
    return [
        f"{where} E happened {counts.k:,} times in {counts.n:,} on {up} and "
        f"{counts.k_prime:,} times in {counts.n_prime:,} on {down}.",
        *_list_quotient_steps(audit, counts, up, down),
        *_list_verdict_steps(audit),
    ]


def _list_quotient_steps(
    audit: Audit | OutputsAudit, counts: Counts, up: str, down: str
) -> list[str]:
    """List the two limits and their quotient if the audit's bound follows from them."""
    level, alpha = _format_confidence(audit), (1.0 - audit.confidence) / 2.0
    p_low = limits(counts.k, counts.n, alpha)[0]
    q_high = limits(counts.k_prime, counts.n_prime, alpha)[1]
    value = math.log((p_low - audit.delta) / q_high) if p_low > audit.delta else -math.inf
    apart = 1.0 if audit.delta else audit.pair.distance
    if not math.isclose(max(0.0, value) / apart, audit.epsilon_lower, rel_tol=1e-9, abs_tol=1e-12):
        # Another bound than the quotient of two limits.
        return [f"With {level} confidence epsilon >= {format_epsilon(audit.epsilon_lower)}."]
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
        result += f"; over the distance {apart:g} that is {format_epsilon(audit.epsilon_lower)}"
    return [limit, f"{law}{result}."]


def _list_verdict_steps(audit: Audit | OutputsAudit) -> list[str]:
    if audit.claimed_epsilon is None:
        return []
    if isinstance(audit.claim, Claim):
        return [_describe_curve_step(audit)]
    claim, apart = audit.claimed_epsilon, audit.pair.distance
    claimed = f"the claim {claim:g}"
    if audit.delta and apart != 1.0:
        claimed += f" x distance {apart:g} = {claim * apart:g}"
    relation = "exceeds" if audit.refuted else "does not exceed"
    return [f"The certified {format_epsilon(audit.epsilon_lower)} {relation} {claimed}."]


def _describe_curve_step(audit: Audit | OutputsAudit) -> str:
    """Return the step from limits to a claim that is a curve."""
    relation = "refuted" if audit.refuted else "not refuted"
    if audit.point is not None:
        one, two, least = audit.point
        return (
            f"A test that says x where E happened has a type I error of at most {one:.6g} and a "
            f"type II error of at most {two:.6g}. The claim ({audit.claim}) allows none below "
            f"{least:.6g} there: it is {relation}."
        )
    return (
        f"The claim ({audit.claim}) implies epsilon <= {audit.claimed_epsilon:.6g} at delta "
        f"{audit.delta:.6g}, the tangent that the pilot chose: it is {relation}."
    )
