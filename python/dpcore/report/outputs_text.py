"""The report of an audit of recorded outputs, as rows of text."""

from __future__ import annotations

from ..bounds.declaration import declared
from ..claims.claim import Claim
from ..results.guesses import BOUNDS, ROWS, Guesses
from ..results.recorded import OutputsAudit
from .next_step import more_rows, size_for_a_tenth
from .short import make_card
from .text import (
    format_certified,
    format_claim,
    format_counts,
    format_epsilon,
    list_inside_rows,
    list_read_rows,
)


def list_outputs_rows(audit: OutputsAudit) -> list[tuple[str, str]]:
    """List the rows (label, text) of the report.

    Args:
        audit: the audit.

    Returns:
        The rows, verdict first.
    """
    return [
        ("verdict", audit.verdict),
        ("claim", format_claim(audit)),
        ("certified", _format_outputs_certified(audit)),
        ("estimate", f"{format_epsilon(audit.epsilon_hat)} (certifies nothing)"),
        ("witness", describe_outputs_event(audit)),
        *list_inside_rows(audit),
        ("counts", _format_outputs_counts(audit)),
        *_list_reach_rows(audit),
        *_list_auc_rows(audit),
        ("rows", _describe_rows(audit)),
        *(("read from", str(one)) for one in audit.files),
        *list_read_rows(audit),
        ("seed", f"{audit.seed} ({_describe_seed_use(audit)})"),
        *(("needed", step) for step in (more_rows(audit),) if step),
        *(("plan", size) for size in (size_for_a_tenth(audit),) if size),
        *(("note", note) for note in audit.notes),
    ]


def format_outputs_report(audit: OutputsAudit) -> str:
    """Format the report as lines of text."""
    return "\n".join([audit.name, *(f"  {label:<12} {line}" for label, line in audit.lines())])


def outputs_report_to_html(audit: OutputsAudit) -> str:
    """Format the report as HTML for a notebook."""
    return make_card(audit.name, audit.lines(), audit.refuted)


def describe_outputs_event(audit: OutputsAudit) -> str:
    """Describe in words the event or the guesses that were counted."""
    if isinstance(audit.evidence, Guesses):
        return audit.attack
    side = "x'" if audit.direction == "x_prime" else "x"
    return f"{audit.event}, {side} in the numerator"


def _format_outputs_certified(audit: OutputsAudit) -> str:
    if audit.doubts:
        return "nothing: no bound holds"
    title = declared(BOUNDS[audit.rows][audit.bound]).title
    level = f"{100 * audit.confidence:g} % confidence, {title}"
    unit = "" if audit.pair.distance == 1.0 or audit.delta else " per unit of distance"
    return f"{format_certified(audit)}{unit} ({level})"


def _format_outputs_counts(audit: OutputsAudit) -> str:
    c = audit.evidence
    if isinstance(c, Guesses):
        return (
            f"{c.correct:,} of {c.guesses:,} guesses right ({c.correct_in:,} of "
            f"{c.guessed_in:,} in, {c.correct_out:,} of {c.guessed_out:,} out), "
            f"{c.canaries:,} canaries"
        )
    return format_counts(c)


def _list_reach_rows(audit: OutputsAudit) -> list[tuple[str, str]]:
    """List the largest bound that the guesses or groups can certify.

    Without it a large claim seems to have withstood a test.
    """
    if audit.ceiling is None:
        return []
    most = f"epsilon >= {format_epsilon(audit.ceiling)}"
    if isinstance(audit.claim, Claim):
        most += f" at delta {audit.delta:g}"
        if audit.parameter_ceiling is not None:
            most = f"{audit.claim.parameter} >= {format_epsilon(audit.parameter_ceiling)}; {most}"
    if audit.groups is not None and audit.counts is not None:
        counted = f"{audit.counts.n:,} and {audit.counts.n_prime:,} counted groups"
        told = f"{counted} certify at most {most}"
        short = audit.claimed_epsilon is not None and audit.ceiling <= audit.claimed_epsilon
        return [("reach", f"{told}: too few to refute the claim" if short else told)]
    told = f"{audit.guesses:,} guesses certify at most {most}"
    if audit.claimed_epsilon is not None:
        needed = audit.guesses_needed
        many = "more guesses than any run has" if needed is None else _format_guesses(needed)
        told += f"; to refute the claim takes {many}"
    return [("reach", told)]


def _list_auc_rows(audit: OutputsAudit) -> list[tuple[str, str]]:
    """List the area under the curve of the scores, which needs no number of guesses."""
    if audit.auc is None:
        return []
    return [("AUC", f"{audit.auc:.4f} of included canaries against others (certifies nothing)")]


def _format_guesses(guesses: int) -> str:
    if guesses == 1:
        return "1 right guess"
    return f"{guesses:,} guesses (and canaries) or more, all of them right"


def _describe_rows(audit: OutputsAudit) -> str:
    paired = "; rows i of both sides come from one seed" if audit.paired else ""
    order = "; put in this order when the runs were over" if audit.arranged else ""
    meaning = ROWS[audit.rows]
    if audit.groups is not None:
        first, second = audit.groups
        meaning = (
            "each group of rows was drawn independently of all others; "
            f"{first:,} groups on x and {second:,} on x', one row of each counted group is counted"
        )
    return f"{audit.rows.replace('_', ' ')}: {meaning}{paired}{order}"


def _describe_seed_use(audit: OutputsAudit) -> str:
    if audit.rows == "one_run":
        return "decides ties between scores"
    return f"of the shuffle; {audit.pilot[0]:,} and {audit.pilot[1]:,} rows chose the event"
