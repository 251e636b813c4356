"""HTML page of an audit: verdict, evidence, proof, pictures, provenance, and data.

Two pages of one audit differ only in the lines that state times. The proof on the page is a list of
steps that a reader can check by hand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..bounds import limits
from ..bounds.binomial import find_declaration
from ..claims.trade_off import Claim
from ..records import Counts
from ..report.page import (
    LINES,
    Subject,
    embed_visible_and_script_json,
    escape_text,
    format_versions,
    make_details,
    make_document,
    make_header,
    make_number_table,
    make_picture,
    make_table,
)
from ..report.rows import Row, format_epsilon
from .audit_json import make_script
from .audit_text import has_nan
from .evidence import put_numerator_first
from .guesses import OUTPUTS_BOUNDS, Guesses
from .need import is_recorded

if TYPE_CHECKING:
    from .audits import Audit
    from .evidence import Provenance
    from .outputs_audits import OutputsAudit

_PAGE_PICTURES = (
    ("plot", "Certified, estimated, claimed", 2.8),
    ("plot_tradeoff", "Trade-off curve", 4.2),
    ("plot_profile", "Privacy profile", 4.2),
)
"""For each picture: the audit's method that draws it, its heading, and its height in inches."""
_VERDICT_SENTENCES = {
    None: "No claim was given, so none was tested.",
    True: "The mechanism loses more privacy than it claims. The counts below are the evidence.",
    False: (
        "This attack did not refute the claim. That does not show that the claim is true: no audit "
        "of a black box can."
    ),
}
_UNDECIDED_SENTENCE = "The claim was not tested: this audit could not have refuted it."
_INVALID_SENTENCE = (
    "No bound holds: the draws are not what it takes them to be. The claim was not tested."
)
_SEPARATE_CONFIDENCE_NOTE = (
    '<p class="soft">The certified epsilon holds at {level} by itself, and so does the trade-off '
    "band, from which the privacy profile follows; not all of them at once.</p>"
)


def make_page(audit: Audit | OutputsAudit) -> str:
    """Return the report on an audit as an HTML page.

    Args:
        audit: result of the audit.

    Returns:
        HTML text of a document that needs no further files. Write the text to a file in UTF-8.

    Example:
        >>> import dpcore
        >>> audit = dpcore.audit(dpcore.Laplace(1.0), trials=1000, claim=1.0, rng=1)
        >>> text = make_page(audit)
        >>> text.splitlines()[0], "not refuted by this attack" in text
        ('<!DOCTYPE html>', True)
    """
    footer, script = format_versions(f"Seed {audit.seed}. "), ""
    rows = audit.lines()
    if not is_recorded(audit):
        script = f"<pre><code>{escape_text(make_script(audit), LINES)}</code></pre>"
        footer += f'\n<p class="soft">Time: {escape_text(rows.pop()[1])}</p>'
    sections = [
        ("Pictures", _make_pictures(audit)),
        ("Report", make_table(rows)),
        ("Counts", "" if audit.counts is None else _make_count_table(audit, audit.counts)),
        ("How the bound is proved", _make_bound_proof(audit)),
        ("Repeat it", script),
        ("How this was made", make_run_provenance_section(audit.provenance)),
        ("Data", embed_visible_and_script_json(audit)),
    ]
    shown = [(title, part) for title, part in sections if part]
    return make_document(_name_and_verdict(audit), _make_page_header(audit), shown, footer)


def make_run_provenance_section(provenance: Sequence[Provenance]) -> str:
    """Return HTML that states when and how each run of an audit was made.

    `provenance` has one record for each run. If several runs have the same source code of the
    mechanism, the code is shown once.
    """
    parts, shown = [], set()
    for number, run in enumerate(provenance, 1):
        if len(provenance) > 1:
            parts.append(f"<h3>Run {number} of {len(provenance)}</h3>")
        parts.append(make_table(_list_run_rows(run)))
        if run.source and run.source not in shown:
            shown.add(run.source)
            parts.append(make_details(f"Source text of {escape_text(run.origin)}", run.source))
    return "\n".join(parts) or '<p class="soft">This record does not tell.</p>'


def _list_run_rows(provenance: Provenance) -> list[Row]:
    """Return rows (label, text) that state how one run was made, without its source text."""
    cores = f"{provenance.cores:,} core{'s' if provenance.cores != 1 else ''}"
    machine = (provenance.cpu, cores, provenance.system, provenance.architecture)
    rows = [
        ("begun", provenance.date),
        ("command", provenance.command),
        ("source", provenance.origin),
        ("SHA-256", provenance.sha256),
        ("versions", ", ".join(" ".join(each) for each in provenance.versions)),
        ("machine", ", ".join(part for part in machine if part)),
    ]
    return [(label, text) for label, text in rows if text]


def _make_page_header(audit: Audit | OutputsAudit) -> str:
    claimed, apart = "epsilon claimed", audit.pair.distance
    invalid = audit.verdict.startswith("invalid")
    claim = "none" if audit.claimed_epsilon is None else f"{audit.claimed_epsilon:g}"
    if audit.claimed_epsilon is not None and audit.delta and apart != 1.0:
        claimed, claim = f"{claimed} at distance {apart:g}", f"{audit.claimed_epsilon * apart:g}"
    figures = [
        (claimed, claim),
        ("epsilon certified", "none" if invalid else format_epsilon(audit.epsilon_lower)),
        ("epsilon estimated", format_epsilon(audit.epsilon_hat)),
        ("confidence", _format_confidence(audit)),
    ]
    curve = isinstance(audit.claim, Claim)
    if audit.delta or (is_recorded(audit) and not curve and claim != "none"):
        figures.insert(1, (f"delta of the {'tangent' if curve else 'claim'}", f"{audit.delta:.4g}"))
    if curve:
        figures[0] = ("epsilon of the claim's tangent", claim)
        figures.insert(0, ("claim", str(audit.claim)))
    sentence = _UNDECIDED_SENTENCE if audit.undecided else _VERDICT_SENTENCES[audit.refuted]
    meaning = _INVALID_SENTENCE if invalid else sentence
    return make_header(_name_and_verdict(audit), meaning, figures)


def _name_and_verdict(audit: Audit | OutputsAudit) -> Subject:
    return Subject(audit.name, audit.verdict, audit.refuted)


def _make_count_table(audit: Audit | OutputsAudit, c: Counts) -> str:
    table = [
        ("event happened", f"{c.k:,}", f"{c.k_prime:,}"),
        ("draws", f"{c.n:,}", f"{c.n_prime:,}"),
        ("share", f"{c.k / c.n:.6g}", f"{c.k_prime / c.n_prime:.6g}"),
    ]
    if not is_recorded(audit) and has_nan(audit):
        table.append(("NaN entries", f"{audit.nan:,}", f"{audit.nan_prime:,}"))
    rows = [
        f'<th scope="row">{label}</th><td>{on_x}</td><td>{on_x_prime}</td>'
        for label, on_x, on_x_prime in table
    ]
    header = "".join(f'<th scope="col">{escape_text(side)}</th>' for side in ("input", "x", "x'"))
    event = f"<p>The event: {escape_text(audit.event)}.</p>"
    return f"{event}\n{make_number_table(header, rows)}"


def _make_bound_proof(audit: Audit | OutputsAudit) -> str:
    """Return HTML with the steps that prove the bound, or the reasons why no bound holds."""
    steps = audit.checks or bound_proof_sentences(audit)
    shown = "\n".join(f"<li>{escape_text(step)}</li>" for step in steps)
    if audit.checks:
        return f"<p>{_INVALID_SENTENCE}</p>\n<ol>\n{shown}\n</ol>"
    taken = "The draws are taken to be independent."
    if audit.counts is None:
        taken = "Each canary is taken to have been included by a fair coin of its own."
    elif is_recorded(audit) and audit.paired:
        taken = "The rows of each side are taken to be independent of one another."
    return (
        f"<ol>\n{shown}\n</ol>\n"
        f'<p class="soft">{taken} The statement is about this audit on its own, not about the best '
        "of many.</p>"
    )


def bound_proof_sentences(audit: Audit | OutputsAudit) -> list[str]:
    """Return the steps of the proof that the certified bound of an audit holds.

    Each step is one sentence. The first step states how the counted event was chosen. For an audit
    of one training run, the first step describes the guesses about canaries. The last step states
    the verdict, if there is a claim.
    """
    if is_recorded(audit) and isinstance(audit.evidence, Guesses):
        guesses = audit.evidence
        title = find_declaration(OUTPUTS_BOUNDS[audit.rows][audit.bound]).title
        return [
            f"Of {guesses.canaries:,} canaries, each in or out by its own fair coin, "
            f"{guesses.guesses:,} were guessed: {audit.attack}.",
            f"{guesses.correct:,} of {guesses.guesses:,} guesses are right.",
            f"{_format_certified(audit)} ({title}).",
            *_verdict_sentences(audit),
        ]
    if is_recorded(audit):
        x, x_prime = audit.pilot
        where = "On the other rows"
        chosen = f"on {x:,} rows on x and {x_prime:,} on x', which were not counted"
    else:
        where, chosen = "On fresh draws", "by rule, without a look at any draw"
        if audit.pilot:
            chosen = f"on {audit.pilot:,} pilot draws per side, which were then thrown away"
    assert audit.counts is not None
    counts = put_numerator_first(audit.counts, audit.direction)
    up, down = ("x", "x'") if audit.direction == "x" else ("x'", "x")
    return [
        f"The event E and the side of the numerator, {up}, were chosen {chosen}.",
        f"{where} E happened {counts.k:,} times in {counts.n:,} on {up} and "
        f"{counts.k_prime:,} times in {counts.n_prime:,} on {down}.",
        *_list_limit_and_log_ratio_steps(audit, counts, up, down),
        *_verdict_sentences(audit),
    ]


def _list_limit_and_log_ratio_steps(
    audit: Audit | OutputsAudit, counts: Counts, up: str, down: str
) -> list[str]:
    """Return the steps with the two Clopper-Pearson limits and the logarithm of their ratio.

    If the audit has another bound, return one sentence that states this bound. `up` is the input
    whose probability is in the numerator, and `down` is the other input.
    """
    level, alpha = _format_confidence(audit), (1.0 - audit.confidence) / 2.0
    p_low = limits(counts.k, counts.n, alpha)[0]
    q_high = limits(counts.k_prime, counts.n_prime, alpha)[1]
    value = math.log((p_low - audit.delta) / q_high) if p_low > audit.delta else -math.inf
    apart = 1.0 if audit.delta else audit.pair.distance
    if not math.isclose(max(0.0, value) / apart, audit.epsilon_lower, rel_tol=1e-9, abs_tol=1e-12):
        # The audit's bound is not the ratio of two limits.
        return [f"{_format_certified(audit)}."]
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


def _verdict_sentences(audit: Audit | OutputsAudit) -> list[str]:
    if audit.claimed_epsilon is None:
        return []
    if isinstance(audit.claim, Claim):
        return [_describe_curve_verdict(audit)]
    claim, apart = audit.claimed_epsilon, audit.pair.distance
    claimed = f"the claim {claim:g}"
    if audit.delta and apart != 1.0:
        claimed += f" x distance {apart:g} = {claim * apart:g}"
    relation = "exceeds" if audit.refuted else "does not exceed"
    return [f"The certified {format_epsilon(audit.epsilon_lower)} {relation} {claimed}."]


def _describe_curve_verdict(audit: Audit | OutputsAudit) -> str:
    """Describe the last step of the proof if the claim is a curve: the verdict on the curve."""
    relation = "refuted" if audit.refuted else "not refuted"
    if audit.point is not None:
        type_one, type_two, least = audit.point
        return (
            f"A test that says x where E happened has a type I error of at most {type_one:.6g} and "
            f"a type II error of at most {type_two:.6g}. The claim ({audit.claim}) allows none "
            f"below {least:.6g} there: it is {relation}."
        )
    return (
        f"The claim ({audit.claim}) implies epsilon <= {audit.claimed_epsilon:.6g} at delta "
        f"{audit.delta:.6g}, the tangent that the pilot chose: it is {relation}."
    )


def _format_certified(audit: Audit | OutputsAudit) -> str:
    bound = format_epsilon(audit.epsilon_lower)
    return f"With {_format_confidence(audit)} confidence epsilon >= {bound}"


def _format_confidence(audit: Audit | OutputsAudit) -> str:
    return f"{100 * audit.confidence:g} %"


def _make_pictures(audit: Audit | OutputsAudit) -> str:
    shown: list[str] = []
    for name, title, height in _PAGE_PICTURES:
        words = _picture_alt_text(audit) if name == "plot" else audit.name
        shown += filter(None, [make_picture(audit, name, (title, words), height)])
    if len(shown) > 1:
        shown.insert(0, _SEPARATE_CONFIDENCE_NOTE.format(level=_format_confidence(audit)))
    return "\n".join(shown)


def _picture_alt_text(audit: Audit | OutputsAudit) -> str:
    """Describe the picture of an audit's epsilons for readers who cannot see it."""
    parts = [
        f"certified {'none' if audit.checks else format_epsilon(audit.epsilon_lower)}",
        f"estimate {format_epsilon(audit.epsilon_hat)}",
    ]
    if audit.exact is not None:
        parts.append(f"closed form {format_epsilon(audit.exact)}")
    claim = audit.claimed_epsilon
    parts.append("no claim" if claim is None else f"claim {claim:g}")
    return f"Epsilon: {', '.join(parts)}."
