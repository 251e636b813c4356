"""One self-contained HTML page for each audit: verdict, evidence, proof, pictures, data.

The page loads nothing from the network (and forbids itself to), needs no script, and is also
well-formed XML. One audit always gives the same page, except the lines with times. The proof lists
steps that can be checked by hand.
"""

from __future__ import annotations

import html
import io
import json
import math
import os
import platform
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from .._core import __version__
from ..bounds import limits
from ..bounds.binomial import find_declaration
from ..claims.trade_off import Claim
from ..records import Counts, Result, write_file
from ..results.audits import Audit
from ..results.evidence import Provenance, numerator_first
from ..results.outputs_audits import OUTPUTS_BOUNDS, Guesses, OutputsAudit
from ..visible import make_visible
from .encoding import make_script
from .figures import BLUE, GREY, RED, show_hidden_characters, use_own_style
from .text import format_epsilon, has_nan

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PICTURE_SIZE: Final = (3.9, 3.4)
"""Inches of the width of a picture, and at most of its height. On a telephone of 360 pixels the
smallest letters are 10 pixels high then; on a screen the page limits the width."""

_PageResult = Audit | OutputsAudit

AUDIT_KIND = "Audit of a claim of differential privacy"
"""Line above the name of an audit."""

_PAGE_PICTURES = (
    ("plot", "Certified, estimated, claimed", 2.8),
    ("plot_tradeoff", "Trade-off curve", 4.2),
    ("plot_profile", "Privacy profile", 4.2),
)
"""Method of an audit, heading, height in inches on a screen."""

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
_LINES = "\n\t"
"""Layout of data and of source text."""

# Every character that XML 1.0 does not know, and the surrogates that UTF-8 does not.
_INVALID_XML_CHARACTERS = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_PAGE_STYLE = """
:root { color-scheme: light dark; --ink: #222; --soft: #595959; --line: #d0d0d0; --ground: #fff;
  --panel: #f5f5f5 }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --soft: #b0b0b0; --line: #444;
  --ground: #181818; --panel: #242424 } }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 60rem; padding: 1rem 1rem 3rem; color: var(--ink);
  background: var(--ground); font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere }
h1 { font-size: clamp(1.3rem, 1rem + 2vw, 2rem); line-height: 1.25; margin: 0.5rem 0 1rem }
h2 { font-size: 1.25rem; margin: 2.5rem 0 0.75rem }
h3 { font-size: 1rem; margin: 1.5rem 0 0.5rem }
.verdict { display: inline-block; margin: 0; padding: 0.3rem 0.9rem; border-radius: 0.4rem;
  color: #fff; font-size: 1.25rem }
.soft { color: var(--soft) }
.key { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: 0.75rem;
  margin: 1.25rem 0 }
.key div { background: var(--panel); border-radius: 0.4rem; padding: 0.6rem 0.9rem }
.key dt { color: var(--soft); font-size: 0.875rem }
.key dd { margin: 0; font-size: 1.35rem; font-variant-numeric: tabular-nums }
table { border-collapse: collapse; width: 100% }
th, td { border-top: 1px solid var(--line); padding: 0.4rem 0.75rem 0.4rem 0; text-align: left;
  vertical-align: top }
tr > :last-child { padding-right: 0 }
.rows th { width: 8rem; font-weight: normal; color: var(--soft); overflow-wrap: normal }
.counts { font-variant-numeric: tabular-nums; overflow-wrap: normal }
.counts td, .counts thead th + th { text-align: right; white-space: nowrap }
.scroll { overflow-x: auto }
figure { margin: 0; padding: 0.5rem; background: #fff; border: 1px solid var(--line);
  border-radius: 0.4rem }
svg { display: block; width: 100%; max-width: 36rem; height: auto; margin: 0 auto }
svg * { stroke-linejoin: round; stroke-linecap: butt }
pre { margin: 0; padding: 0.75rem 0.9rem; background: var(--panel); border-radius: 0.4rem;
  font: 0.875rem/1.5 ui-monospace, monospace; white-space: pre-wrap }
li { margin: 0.4rem 0 }
summary { cursor: pointer; margin-bottom: 0.5rem }
table + details { margin-top: 0.75rem }
@media (max-width: 40rem) {
  .rows th, .rows td { display: block; width: auto; padding-right: 0 }
  .rows td { border-top: 0; padding-top: 0 }
  .rows th { padding-bottom: 0; font-size: 0.875rem }
  .counts { font-size: 0.875rem }
  pre { font-size: 0.75rem; padding: 0.6rem }
}
"""


def list_run_rows(provenance: Provenance) -> list[tuple[str, str]]:
    """List the rows (label, text) of one run, without its source text."""
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


def list_proof_steps(audit: _PageResult) -> list[str]:
    """List the steps from pilot draws or recorded rows, or from guesses, to the bound."""
    if isinstance(audit, OutputsAudit) and isinstance(audit.evidence, Guesses):
        found = audit.evidence
        title = find_declaration(OUTPUTS_BOUNDS[audit.rows][audit.bound]).title
        return [
            f"Of {found.canaries:,} canaries, each in or out by its own fair coin, "
            f"{found.guesses:,} were guessed: {audit.attack}.",
            f"{found.correct:,} of {found.guesses:,} guesses are right.",
            f"{_format_certified(audit)} ({title}).",
            *_list_verdict_steps(audit),
        ]
    if isinstance(audit, OutputsAudit):
        x, x_prime = audit.pilot
        where = "On the other rows"
        chosen = f"on {x:,} rows on x and {x_prime:,} on x', which were not counted"
    else:
        where, chosen = "On fresh draws", "by rule, without a look at any draw"
        if audit.pilot:
            chosen = f"on {audit.pilot:,} pilot draws a side, which were then thrown away"
    assert audit.counts is not None
    counts = numerator_first(audit.counts, audit.direction)
    up, down = ("x", "x'") if audit.direction == "x" else ("x'", "x")
    return [
        f"The event E and the side of the numerator, {up}, were chosen {chosen}.",
        f"{where} E happened {counts.k:,} times in {counts.n:,} on {up} and "
        f"{counts.k_prime:,} times in {counts.n_prime:,} on {down}.",
        *_list_quotient_steps(audit, counts, up, down),
        *_list_verdict_steps(audit),
    ]


def _format_confidence(audit: _PageResult) -> str:
    return f"{100 * audit.confidence:g} %"


def _format_certified(audit: _PageResult) -> str:
    bound = format_epsilon(audit.epsilon_lower)
    return f"With {_format_confidence(audit)} confidence epsilon >= {bound}"


def _list_quotient_steps(audit: _PageResult, counts: Counts, up: str, down: str) -> list[str]:
    """List the two limits and their quotient if the audit's bound follows from them."""
    level, alpha = _format_confidence(audit), (1.0 - audit.confidence) / 2.0
    p_low = limits(counts.k, counts.n, alpha)[0]
    q_high = limits(counts.k_prime, counts.n_prime, alpha)[1]
    value = math.log((p_low - audit.delta) / q_high) if p_low > audit.delta else -math.inf
    apart = 1.0 if audit.delta else audit.pair.distance
    if not math.isclose(max(0.0, value) / apart, audit.epsilon_lower, rel_tol=1e-9, abs_tol=1e-12):
        # Another bound than the quotient of two limits.
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


def _list_verdict_steps(audit: _PageResult) -> list[str]:
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


def _describe_curve_step(audit: _PageResult) -> str:
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


class Subject(NamedTuple):
    """Subject of a page: what the result is about, the outcome in words, and as a truth value."""

    name: str
    verdict: str
    refuted: bool | None = None


def make_page(audit: _PageResult) -> str:
    """Make the page of an audit.

    Args:
        audit: the audit.

    Returns:
        HTML, one self-contained document, to be written as UTF-8.

    Example:
        >>> import dpcore
        >>> audit = dpcore.audit(dpcore.Laplace(1.0), trials=1000, claim=1.0, rng=1)
        >>> text = make_page(audit)
        >>> text.splitlines()[0], "not refuted by this attack" in text
        ('<!DOCTYPE html>', True)
    """
    footer, script = list_versions(f"Seed {audit.seed}. "), ""
    rows = audit.lines()
    if isinstance(audit, Audit):
        script = f"<pre><code>{_escape_text(make_script(audit), _LINES)}</code></pre>"
        footer += f'\n<p class="soft">Time: {_escape_text(rows.pop()[1])}</p>'
    sections = [
        ("Pictures", _make_pictures(audit)),
        ("Report", make_table(rows)),
        ("Counts", "" if audit.counts is None else _make_count_table(audit, audit.counts)),
        ("How the bound is proved", _make_proof(audit)),
        ("Repeat it", script),
        ("How this was made", make_origins(audit.provenance)),
        ("Data", make_data(audit)),
    ]
    shown = [(title, part) for title, part in sections if part]
    return make_document(_name_subject(audit), _make_head(audit), shown, footer)


def _name_subject(audit: _PageResult) -> Subject:
    return Subject(audit.name, audit.verdict, audit.refuted)


def page_of_table(
    result: Any,
    name: str,
    outcome: str,
    kind: str,
    meaning: str,
    figures: list[tuple[str, str]],
    answers: list[tuple[str, str]],
    picture: tuple[str, float],
    rows: Sequence[Sequence[str]],
    notes: Sequence[str],
) -> str:
    """Make the page of a result that is a table: answers, picture, table, notes.

    Args:
        result: what `plot` draws.
        name: what the result is about.
        outcome: a few words, behind the name.
        kind: one line above the name.
        meaning: what the figures do not say.
        figures: names of key figures, and their values.
        answers: questions, and what was found.
        picture: its heading, and inches of its height on a screen.
        rows: of the table, the header first.
        notes: what a reader must know.
    """
    heading, height = picture
    header = "".join(f"<th>{_escape_text(cell)}</th>" for cell in rows[0])
    body = ["".join(f"<td>{_escape_text(cell)}</td>" for cell in row) for row in rows[1:]]
    sections = [
        ("Answers", make_table(answers)),
        ("Pictures", make_picture(result, "plot", (heading, answers[0][1]), height)),
        ("Figures", _make_figure_table(header, body)),
        ("Notes", make_table([("note", note) for note in notes])),
    ]
    subject = Subject(name, outcome)
    shown = [(label, _escape_text(value)) for label, value in figures]
    head = make_header(subject, meaning, shown, kind)
    return make_document(subject, head, sections, list_versions())


def make_plain_page(
    result: Any,
    name: str,
    kind: str = "Report",
    meaning: str = "",
    figures: Sequence[tuple[str, str]] = (),
    picture: tuple[str, str] | None = None,
) -> str:
    """Make the page of a result whose report is rows: picture and rows.

    Only audits have their origins and their data on the page: other results may hold what each
    text scored, which `save` writes and a page that is given away does not show.

    Args:
        result: the first row of its report is the outcome.
        name: what the result is about.
        kind: one line above the name.
        meaning: what the outcome means.
        figures: names of key figures, and their values.
        picture: its heading, and what is seen in it. Defaults to the outcome.
    """
    rows = [(label, text) for label, text in result.lines() if label != "time"]
    made = getattr(result, "provenance", None)
    subject = Subject(name, rows[0][1], getattr(result, "refuted", None))
    picture = picture or ("Picture", subject.verdict)
    sections = [
        ("Pictures", make_picture(result, "plot", picture, 3.4)),
        ("Report", make_table(rows)),
    ]
    if made is not None:
        sections += [("How this was made", make_origins(made)), ("Data", make_data(result))]
    head = make_header(subject, meaning, figures, kind)
    return make_document(subject, head, sections, list_versions())


def save_page(text: str, path: str | os.PathLike[str] | None) -> str:
    """Return the page, and write it to a file if there is a path."""
    if path is not None:
        write_file(path, text)
    return text


def make_document(subject: Subject, head: str, sections: list[tuple[str, str]], footer: str) -> str:
    """Make a whole page of a header, sections of (heading, HTML), and a footer."""
    body = "\n".join(f"<section>\n<h2>{title}</h2>\n{part}\n</section>" for title, part in sections)
    return f"""<!DOCTYPE html>
<html lang="en" xmlns="http://www.w3.org/1999/xhtml">
<head>
<meta charset="utf-8" />
<meta name="viewport" content="width=device-width, initial-scale=1" />
<meta name="color-scheme" content="light dark" />
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; img-src data:" />
<link rel="icon" href="data:," />
<title>{_escape_text(f"{subject.name}: {subject.verdict}")}</title>
<style>{_PAGE_STYLE}</style>
</head>
<body>
<main>
{head}
{body}
</main>
<footer>
{footer}
</footer>
</body>
</html>
"""


def _escape_text(words: object, layout: str = "") -> str:
    """Escape visible text for an element or an attribute; `layout` as for `make_visible`."""
    return html.escape(make_visible(str(words), layout))


def _make_head(audit: _PageResult) -> str:
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
    if audit.delta or (isinstance(audit, OutputsAudit) and not curve and claim != "none"):
        figures.insert(1, (f"delta of the {'tangent' if curve else 'claim'}", f"{audit.delta:.4g}"))
    if curve:
        figures[0] = ("epsilon of the claim's tangent", claim)
        figures.insert(0, ("claim", str(audit.claim)))
    sentence = _UNDECIDED_SENTENCE if audit.undecided else _VERDICT_SENTENCES[audit.refuted]
    meaning = _INVALID_SENTENCE if invalid else sentence
    return make_header(_name_subject(audit), meaning, figures)


def make_header(
    subject: Subject,
    meaning: str,
    figures: Sequence[tuple[str, str]],
    kind: str = AUDIT_KIND,
) -> str:
    """Make the header of a page: its kind, name, verdict and its meaning, and key figures."""
    # Not green: a claim that stands is not a claim that was proved.
    colour = {None: GREY, True: RED, False: BLUE}[subject.refuted]
    verdict = _escape_text(subject.verdict)
    if subject.refuted:
        verdict = f"<strong>{verdict}</strong>"
    key = "\n".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in figures)
    return f"""<header>
<p class="soft">{kind}</p>
<h1>{_escape_text(subject.name)}</h1>
<p class="verdict" style="background:{colour}">{verdict}</p>
<p>{meaning}</p>
<dl class="key">
{key}
</dl>
</header>"""


def make_table(rows: list[tuple[str, str]]) -> str:
    """Make a table of rows (label, text)."""
    lines = "\n".join(
        f'<tr><th scope="row">{_escape_text(label)}</th><td>{_escape_text(line)}</td></tr>'
        for label, line in rows
    )
    return f'<table class="rows">\n<tbody>\n{lines}\n</tbody>\n</table>'


def _make_figure_table(header: str, rows: Iterable[str]) -> str:
    """Make a table of figures from the cells of its header and of its rows."""
    lines = "\n".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f'<div class="scroll">\n<table class="counts">\n<thead><tr>{header}</tr></thead>\n'
        f"<tbody>\n{lines}\n</tbody>\n</table>\n</div>"
    )


def _fold_data(summary: str, text: str) -> str:
    """Make an element that opens and shows data unchanged."""
    code = f"<pre><code>{_escape_text(text, _LINES)}</code></pre>"
    return f"<details>\n<summary>{summary}</summary>\n{code}\n</details>"


def _make_count_table(audit: _PageResult, c: Counts) -> str:
    table = [
        ("event happened", f"{c.k:,}", f"{c.k_prime:,}"),
        ("draws", f"{c.n:,}", f"{c.n_prime:,}"),
        ("share", f"{c.k / c.n:.6g}", f"{c.k_prime / c.n_prime:.6g}"),
    ]
    if isinstance(audit, Audit) and has_nan(audit):
        table.append(("NaN entries", f"{audit.nan:,}", f"{audit.nan_prime:,}"))
    rows = [
        f'<th scope="row">{label}</th><td>{on_x}</td><td>{on_x_prime}</td>'
        for label, on_x, on_x_prime in table
    ]
    header = "".join(f'<th scope="col">{_escape_text(side)}</th>' for side in ("input", "x", "x'"))
    event = f"<p>The event: {_escape_text(audit.event)}.</p>"
    return f"{event}\n{_make_figure_table(header, rows)}"


def _make_proof(audit: _PageResult) -> str:
    """Write the steps from pilot draws to the bound, or the reason why no bound holds."""
    steps = audit.checks or list_proof_steps(audit)
    shown = "\n".join(f"<li>{_escape_text(step)}</li>" for step in steps)
    if audit.checks:
        return f"<p>{_INVALID_SENTENCE}</p>\n<ol>\n{shown}\n</ol>"
    taken = "The draws are taken to be independent."
    if isinstance(audit, OutputsAudit) and audit.counts is None:
        taken = "Each canary is taken to have been included by a fair coin of its own."
    elif isinstance(audit, OutputsAudit) and audit.paired:
        taken = "The rows of each side are taken to be independent of one another."
    return (
        f"<ol>\n{shown}\n</ol>\n"
        f'<p class="soft">{taken} The statement is about this audit on its own, not about the best '
        "of many.</p>"
    )


def _make_pictures(audit: _PageResult) -> str:
    shown: list[str] = []
    for name, title, height in _PAGE_PICTURES:
        words = _describe_picture(audit) if name == "plot" else audit.name
        shown += filter(None, [make_picture(audit, name, (title, words), height)])
    if len(shown) > 1:
        shown.insert(0, _SEPARATE_CONFIDENCE_NOTE.format(level=_format_confidence(audit)))
    return "\n".join(shown)


def make_picture(result: Any, name: str, words: tuple[str, str], height: float) -> str:
    """Draw the picture of a method; return "" without a picture.

    Args:
        result: the result.
        name: the method.
        words: the heading, and what is seen in the picture.
        height: most inches.
    """
    title, described = words
    width, most = _PICTURE_SIZE
    drawing = _picture_to_svg(result, name, (width, min(height, most)), name)
    label = _escape_text(f"{title}. {described}")
    drawing = drawing.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
    return drawing and f"<h3>{title}</h3>\n<figure>\n{drawing}\n</figure>"


def _describe_picture(audit: _PageResult) -> str:
    """Describe the content of a picture for readers who cannot see it."""
    parts = [
        f"certified {'none' if audit.checks else format_epsilon(audit.epsilon_lower)}",
        f"estimate {format_epsilon(audit.epsilon_hat)}",
    ]
    if audit.exact is not None:
        parts.append(f"closed form {format_epsilon(audit.exact)}")
    claim = audit.claimed_epsilon
    parts.append("no claim" if claim is None else f"claim {claim:g}")
    return f"Epsilon: {', '.join(parts)}."


def _picture_to_svg(result: Any, name: str, size: tuple[float, float], prefix: str) -> str:
    """Draw one picture as an SVG element; return "" if the result has no such picture."""
    draw: Any = getattr(result, name, None)
    if draw is None:
        return ""
    with use_own_style(letters="none") as figure:
        try:
            draw(ax=figure)
        except ValueError:
            return ""
        figure.set_size_inches(size)
        if len(figure.axes) == 1:
            # The page says above what the title says, in letters that wrap.
            for side in ("left", "center", "right"):
                figure.axes[0].set_title("", loc=side)
        return _figure_to_element(figure, prefix)


def _figure_to_element(figure: Figure, prefix: str) -> str:
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    file = io.StringIO()
    # Date and version would make every page differ from the last.
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    canvas: Any = FigureCanvasSVG(show_hidden_characters(figure))
    # `savefig` draws twice, the first time for the layout only.
    if (engine := figure.get_layout_engine()) is not None:
        engine.execute(figure)
        figure.set_layout_engine("none")
    canvas.print_svg(file, metadata=nothing)
    drawing = file.getvalue()[file.getvalue().index("<svg ") :]
    # Its style would speak to the whole page, which has the same line.
    drawing = re.sub(r"<style.*?</style>", "", drawing, flags=re.DOTALL)
    # Names are unique in a page, and every picture begins with figure_1.
    drawing = re.sub(r' id="', f' id="{prefix}-', drawing)
    drawing = re.sub(r'(href="|url\()#', rf"\1#{prefix}-", drawing)
    return _INVALID_XML_CHARACTERS.sub("\ufffd", drawing.strip())


def make_origins(provenance: Sequence[Provenance]) -> str:
    """Make the part on how every run was made; a text that several had is shown once."""
    parts, shown = [], set()
    for number, one in enumerate(provenance, 1):
        if len(provenance) > 1:
            parts.append(f"<h3>Run {number} of {len(provenance)}</h3>")
        parts.append(make_table(list_run_rows(one)))
        if one.source and one.source not in shown:
            shown.add(one.source)
            parts.append(_fold_data(f"Source text of {_escape_text(one.origin)}", one.source))
    return "\n".join(parts) or '<p class="soft">This record does not tell.</p>'


def make_data(result: Result) -> str:
    """Write the result as JSON, to be read and to be copied."""
    # One line for each field, so that two audits can be compared line by line.
    fields = [
        f"{json.dumps(name)}: {json.dumps(value, allow_nan=False)}"
        for name, value in result.to_dict().items()
    ]
    record = "{\n" + ",\n".join(fields) + "\n}"
    # Inside a script nothing is unescaped, so < and & are written as JSON's own escapes.
    inert = record.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")
    summary = f"The audit as JSON (dpcore.{type(result).__name__}.from_json reads it)"
    script = f'<script type="application/json" id="audit">\n{inert}\n</script>'
    return f"{_fold_data(summary, record)}\n{script}"


def list_versions(before: str = "") -> str:
    """List the versions that made the page, on one line."""
    made_with = f"dpcore {__version__}, numpy {np.__version__}, Python {platform.python_version()}"
    return f'<p class="soft">{before}Page made with {_escape_text(made_with)}.</p>'
