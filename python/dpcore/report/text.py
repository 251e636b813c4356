"""Display of an audit: text and HTML."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..bounds import BOUNDS, clopper_pearson
from ..bounds.declaration import declared
from ..claims.claim import Claim
from ..exact import explain_infinite_loss
from ..records import Counts
from ..results.audits import Audit
from ..results.certificate import single_bound_level
from ..results.recorded import OutputsAudit
from ..sampling.slicing import shared_block
from . import distances
from .next_step import next_step, size_for_a_tenth
from .short import make_card


def align_rows(rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """Format rows of text as a table, with two spaces between columns.

    Args:
        rows: the cells, every row equally long.
        left: columns set flush left; the others are flush right.

    Returns:
        Lines of text without trailing blanks.

    Example:
        >>> print(align_rows([("a", "1"), ("bc", "10")]))
        a    1
        bc  10
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            text.ljust(width) if i in left else text.rjust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def format_epsilon(value: float | None) -> str:
    """Format an epsilon for a report: four decimals, or the word infinite."""
    if value is None:
        return "none"
    return f"{value:.4f}" if math.isfinite(value) else "infinite"


def list_report_rows(audit: Audit) -> list[tuple[str, str]]:
    """List the rows (label, text) of the report, without time and speed."""
    unit = "" if audit.pair.distance == 1.0 or audit.delta else " per unit of distance"
    bound = f"{format_certified(audit)}{unit} ({describe_bound(audit)})"
    if audit.checks:
        bound = NOTHING
    table = [
        ("verdict", audit.verdict),
        ("claim", _describe_claim(audit)),
        ("certified", bound),
        ("estimate", f"{format_epsilon(audit.epsilon_hat)} (empirical loss, certifies nothing)"),
    ]
    if audit.exact is not None:
        table.append(
            ("closed form", f"{format_epsilon(audit.exact)} (the loss this attack can see)")
        )
    elif not isinstance(audit.mechanism, str):
        reason = explain_infinite_loss(audit.mechanism, audit.pair)
        if reason is not None:
            table.append(("closed form", f"infinite loss: {reason}"))
    if audit.declared_loss is not None:
        table.append(("exact loss", _describe_declared_loss(audit)))
    table += [
        ("witness", f"{audit.event}, {_format_side(audit.direction)} in the numerator"),
        *list_inside_rows(audit),
        ("counts", format_counts(audit.counts)),
        *_list_pooled_rows(audit),
        ("pair", f"x = {_shorten_value(audit.pair.x)}, x' = {_shorten_value(audit.pair.x_prime)}"),
        *_list_search_rows(audit),
        *distances.list_distance_rows(audit),
        *list_read_rows(audit),
    ]
    if audit.nan or audit.nan_prime:
        table.append(("NaN entries", f"{audit.nan:,} on x, {audit.nan_prime:,} on x'"))
    if audit.floating_point is not None and not audit.checks:
        table += [("rounding", _describe_floats(audit)), ("meaning", ROUNDING)]
    table.append(("seed", _describe_seed(audit)))
    if audit.runs_on:
        table.append(("device", audit.runs_on))
    needed = next_step(audit)
    if needed:
        table.append(("needed", needed))
    planned = size_for_a_tenth(audit)
    if planned:
        table.append(("plan", planned))
    ended = "interrupted: only the trials shown were counted" if audit.partial else ""
    notes = (ended, by_itself(audit), audit.power, *audit.notes, *audit.checks)
    return [*table, *(("note", note) for note in notes if note)]


def format_certified(audit: Audit | OutputsAudit) -> str:
    """Return the certified figure: mu or rho of such a claim, the epsilon at its tangent."""
    shown = f"epsilon >= {format_epsilon(audit.epsilon_lower)}"
    if not isinstance(audit.claim, Claim):
        return shown
    shown += f" at delta {audit.delta:.4g}"
    if audit.claim.parameter is not None:
        return f"{audit.claim.parameter} >= {format_epsilon(audit.parameter_lower)}; {shown}"
    if audit.point is None:
        return shown
    one, two, least = audit.point
    return (
        f"type II error <= {two:.4g} at type I error <= {one:.4g}, where the claim allows no less "
        f"than {least:.4g}; {shown}"
    )


def list_inside_rows(audit: Audit | OutputsAudit) -> list[tuple[str, str]]:
    """List the outputs inside the event that the pilot drew most often, one row each."""
    return [("inside", str(one)) for one in audit.inside]


def list_read_rows(audit: Audit | OutputsAudit) -> list[tuple[str, str]]:
    """List how much of the outputs was read; no row if the output is a single number."""
    return [("read", str(audit.read))] if audit.read is not None and audit.read.found > 1 else []


def _describe_declared_loss(audit: Audit) -> str:
    """Describe the loss of the pair under the noise that the mechanism declares."""
    at = f" at delta {audit.delta:g}" if audit.delta else ""
    loss = format_epsilon(audit.declared_loss)
    return f"{loss}{at} for this pair (computed from the declared noise, not certified)"


def _list_search_rows(audit: Audit) -> list[tuple[str, str]]:
    """List the row that describes the cost of the search for the pair."""
    found = audit.searched
    if found is None:
        return []
    rounds = f"{found.finished} of {_format_regular_count(found.rounds, 'round')} finished"
    ended = f": its {found.seconds:g} s were over" if found.ended else ""
    return [
        ("search", f"{_format_regular_count(found.evaluations, 'pilot')} compared, {rounds}{ended}")
    ]


def by_itself(audit: Audit) -> str:
    """Describe the joint confidence of bound and floating-point finding; else return ""."""
    if audit.floating_point is None or audit.floats or audit.checks:
        return ""
    each, both = 100 * audit.confidence, max(0.0, 200 * audit.confidence - 100)
    return (
        f"`certified` and `rounding` have {each:g} % confidence each, at least {both:g} % together."
    )


ROUNDING = (
    "the last bits of raw floats give the input away, as they do for every textbook sampler of "
    "continuous noise (Mironov 2012): where outputs are released, round them to a coarse grid or "
    "draw discrete noise"
)
"""Meaning of a floating-point finding, and the remedy."""

NOTHING = "nothing: no bound holds, for the rows are not independent draws"
"""Certified bound, as shown, of an audit that a check of its rows made invalid."""

REPEATED = {
    "seed": "",
    "rounding": "the seed repeats the outputs up to rounding, not bit for bit",
    "own": "the mechanism draws its own randomness, which no seed repeats",
    "not known": "whether the seed repeats the outputs is not known",
}
"""Notes on how far the seed repeats a callable's draws, by `Audit.randomness`."""


def describe_bound(audit: Audit) -> str:
    """Describe confidence, bound and stopping rule in a few words."""
    stops = {
        "refuted": f", test martingale over {_format_regular_count(len(audit.slices), 'slice')}",
        "interrupted": ", interrupted",
        "looked": ", merged after looking",
    }
    name = declared(clopper_pearson if audit.pooled else BOUNDS[audit.bound]).title
    split = ", half of it for rounding" if audit.floats else ""
    return f"{100 * audit.confidence:g} % confidence{split}, {name}{stops.get(audit.stop, '')}"


def _format_regular_count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _list_pooled_rows(audit: Audit) -> list[tuple[str, str]]:
    """List the assumption of pooled coordinates and the counts of each group."""
    if not audit.pooled:
        return []
    told = [
        f"{format_counts(c)} (group of {many})"
        for c, many in zip(audit.pooled, audit.event.multiplicities, strict=True)
    ]
    return [("assuming", audit.event.assumption), *(("coordinates", line) for line in told)]


def _describe_floats(audit: Audit) -> str:
    """Describe the floating-point finding in one line."""
    found = audit.floating_point
    assert found is not None
    # Where it counts it has half of the error probability, as the certified bound says.
    lower = clopper_pearson(found.bound_counts, found.delta, single_bound_level(audit))
    counts = "counted in the verdict" if audit.floats else "not part of the verdict"
    return (
        f"the code as it runs: epsilon >= {format_epsilon(lower)} ({counts}): "
        f"{found.event}; {format_counts(found.counts)}"
    )


def format_claim(audit: Audit | OutputsAudit) -> str:
    """Format the claim in words."""
    if audit.claimed_epsilon is None:
        return "none given"
    delta = f", delta = {audit.delta:g}" if audit.delta else ""
    if isinstance(audit.claim, Claim):
        if audit.claimed_epsilon == 0.0 and not audit.delta:
            return str(audit.claim)
        return f"{audit.claim}; its tangent epsilon <= {audit.claimed_epsilon:.4g}{delta}"
    return f"epsilon <= {audit.claimed_epsilon:g}{delta}"


def _describe_claim(audit: Audit) -> str:
    text = format_claim(audit)
    if audit.claimed_epsilon is None:
        return text
    if audit.delta and audit.pair.distance != 1.0:
        whole = audit.claimed_epsilon * audit.pair.distance
        text += f" (metric: epsilon <= {whole:g} at distance {audit.pair.distance:g})"
    own = audit.own_claim
    return text if own is None or own == audit.claim else f"{text} (the mechanism's own: {own:g})"


def _format_side(name: str) -> str:
    return "x'" if name == "x_prime" else "x"


def format_counts(c: Counts) -> str:
    """Format the number of times that an event happened on each side."""
    return f"{c.k:,} of {c.n:,} on x, {c.k_prime:,} of {c.n_prime:,} on x'"


def _shorten_value(value: Any) -> str:
    if isinstance(value, np.ndarray):
        edge: dict[str, Any] = {"separator": ", ", "threshold": 6, "edgeitems": 2, "precision": 4}
        text = " ".join(np.array2string(value, **edge).split())
        return text if value.size <= 6 else f"{text} ({value.size} entries)"
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def _describe_seed(audit: Audit) -> str:
    trials = " and ".join(f"{start:,} to {stop:,}" for start, stop in audit.ranges)
    repeated = REPEATED[audit.randomness if audit.route == "callable" else "seed"]
    return (
        f"{audit.seed} (trials {trials}; blocks of {audit.block:,}, {audit.route} route, "
        f"{audit.pilot:,} pilot draws a side{'; ' if repeated else ''}{repeated})"
    )


def _describe_time(audit: Audit) -> str:
    """Describe the time of each step, the number of outputs, and the speed of counting."""
    speed = (
        f"{audit.draws_per_second:.3g} draws/s on {_format_regular_count(audit.threads, 'thread')}"
    )
    speed += _describe_idle_threads(audit)
    if not audit.spent:
        return f"{audit.seconds:.3g} s, {speed}"
    total = math.fsum(one.seconds for one in audit.spent)
    steps = ", ".join(f"{one.step} {one.seconds:.2g}" for one in audit.spent)
    made = sum(one.outputs for one in audit.spent)
    return f"{total:.3g} s, {made:,} outputs in all ({steps}); counted {speed}"


def _describe_idle_threads(audit: Audit) -> str:
    """Describe threads that had no work, and the setting that would give them work."""
    blocks = sum(-(-stop // audit.block) - start // audit.block for start, stop in audit.ranges)
    if audit.route != "callable" or audit.threads <= blocks:
        return ""
    return f", of which {blocks} had work: block={shared_block(audit.trials, audit.threads)}"


def format_report(audit: Audit) -> str:
    """Format the report as lines of text, the last one with time and speed."""
    lines = [
        f"  {label:<12} {line}"
        for label, line in [*list_report_rows(audit), ("time", _describe_time(audit))]
    ]
    return "\n".join([audit.name, *lines])


def report_to_html(audit: Audit) -> str:
    """Format the report as HTML for a notebook."""
    return make_card(
        audit.name, [*list_report_rows(audit), ("time", _describe_time(audit))], audit.refuted
    )
