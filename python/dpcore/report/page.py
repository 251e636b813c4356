"""Self-contained HTML pages: their frame, header, tables, pictures and data.

A page loads no data from the network (its Content-Security-Policy forbids loading). It contains no
script that runs, and it is also well-formed XML.
"""

from __future__ import annotations

import html
import io
import json
import os
import platform
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from .._core import __version__
from ..paths import write_file_or_keep_old
from ..visible import make_visible
from .figures import BLUE, GREY, RED, show_hidden_characters, use_own_style
from .rows import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PICTURE_SIZE: Final = (3.9, 3.4)
"""Width and largest height of a picture in inches. On a phone with a width of 360 pixels, the
smallest letters are 10 pixels high."""

AUDIT_KIND = "Audit of a claim of differential privacy"
"""Line above the name of an audit."""

LINES = "\n\t"
"""Characters for layout that are not escaped in data and in source text."""

# Characters that are invalid in XML 1.0, including surrogates, which UTF-8 cannot encode.
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


class Subject(NamedTuple):
    """The subject of an HTML page: its name, the verdict as text, and whether a claim was refuted.

    `refuted` is None if no claim was tested.
    """

    name: str
    verdict: str
    refuted: bool | None = None


def page_of_table(
    result: Any,
    name: str,
    outcome: str,
    kind: str,
    meaning: str,
    figures: list[Row],
    answers: list[Row],
    picture: tuple[str, float],
    rows: Sequence[Sequence[str]],
    notes: Sequence[str],
) -> str:
    """Return an HTML page about a result: answers, a picture, a table and notes.

    Args:
        result: the result. Its method `plot` draws the picture.
        name: name of the object that the result describes.
        outcome: the outcome in a few words. The page shows it below the name.
        kind: the kind of the result, shown as a line above the name.
        meaning: text that explains what the numbers mean and what they do not show.
        figures: pairs of the name and the value of a key number.
        answers: pairs of a question and its answer. The first answer is also the description of the
            picture for readers who cannot see it.
        picture: heading of the picture, and largest height of the picture in inches.
        rows: rows of the table. The first row contains the headings of the columns.
        notes: notes for the reader.
    """
    heading, height = picture
    header = "".join(f"<th>{escape_text(cell)}</th>" for cell in rows[0])
    body = ["".join(f"<td>{escape_text(cell)}</td>" for cell in row) for row in rows[1:]]
    sections = [
        ("Answers", make_table(answers)),
        ("Pictures", make_picture(result, "plot", (heading, answers[0][1]), height)),
        ("Figures", make_number_table(header, body)),
        ("Notes", make_table([("note", note) for note in notes])),
    ]
    subject = Subject(name, outcome)
    shown = [(label, escape_text(value)) for label, value in figures]
    head = make_header(subject, meaning, shown, kind)
    return make_document(subject, head, sections, format_versions())


def make_report_page(
    result: Any,
    name: str,
    kind: str = "Report",
    meaning: str = "",
    figures: Sequence[tuple[str, str]] = (),
    picture: tuple[str, str] | None = None,
    sections: Sequence[tuple[str, str]] = (),
) -> str:
    """Return an HTML page about a result, with a picture and the rows of the result's report.

    Args:
        result: the result. The text of the first row of its report is shown as the outcome.
        name: name of the object that the result describes.
        kind: the kind of the result, shown as a line above the name.
        meaning: text that explains the outcome.
        figures: pairs of the name and the value of a key number.
        picture: heading of the picture, and a description for readers who cannot see it. Defaults
            to "Picture" and the text of the outcome.
        sections: pairs of a heading and the HTML of one more section.
    """
    rows = [(label, text) for label, text in result.lines() if label != "time"]
    subject = Subject(name, rows[0][1], getattr(result, "refuted", None))
    picture = picture or ("Picture", subject.verdict)
    shown = [
        ("Pictures", make_picture(result, "plot", picture, 3.4)),
        ("Report", make_table(rows)),
        *sections,
    ]
    head = make_header(subject, meaning, figures, kind)
    return make_document(subject, head, shown, format_versions())


def save_page(text: str, path: str | os.PathLike[str] | None) -> str:
    """Return the HTML page unchanged, and write it to a file if `path` is not None."""
    if path is not None:
        write_file_or_keep_old(path, text)
    return text


def make_document(subject: Subject, head: str, sections: list[Row], footer: str) -> str:
    """Return a whole HTML page about a subject.

    `head` and `footer` are HTML. `sections` contains pairs of a heading and the HTML of a section.
    """
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
<title>{escape_text(f"{subject.name}: {subject.verdict}")}</title>
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


def escape_text(words: object, layout: str = "") -> str:
    """Escape text for an HTML element or attribute. Hidden characters become visible codes.

    Characters in `layout`, such as line breaks, are not replaced by codes.
    """
    return html.escape(make_visible(str(words), layout))


def make_header(
    subject: Subject, meaning: str, figures: Sequence[tuple[str, str]], kind: str = AUDIT_KIND
) -> str:
    """Return the HTML header of a page: the kind of result, the name, the verdict and key numbers.

    `meaning` is HTML that explains the verdict. `figures` are pairs of the name and the value of a
    key number.
    """
    # The colour is not green, because a claim that is not refuted is not proved.
    colour = {None: GREY, True: RED, False: BLUE}[subject.refuted]
    verdict = escape_text(subject.verdict)
    if subject.refuted:
        verdict = f"<strong>{verdict}</strong>"
    key = "\n".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in figures)
    return f"""<header>
<p class="soft">{kind}</p>
<h1>{escape_text(subject.name)}</h1>
<p class="verdict" style="background:{colour}">{verdict}</p>
<p>{meaning}</p>
<dl class="key">
{key}
</dl>
</header>"""


def make_table(rows: list[Row]) -> str:
    """Format pairs (label, text) as the rows of an HTML table."""
    lines = "\n".join(
        f'<tr><th scope="row">{escape_text(label)}</th><td>{escape_text(line)}</td></tr>'
        for label, line in rows
    )
    return f'<table class="rows">\n<tbody>\n{lines}\n</tbody>\n</table>'


def make_number_table(header: str, rows: Iterable[str]) -> str:
    """Format a table of numbers as HTML, from the HTML cells of the header and of each row."""
    lines = "\n".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f'<div class="scroll">\n<table class="counts">\n<thead><tr>{header}</tr></thead>\n'
        f"<tbody>\n{lines}\n</tbody>\n</table>\n</div>"
    )


def make_details(summary: str, text: str) -> str:
    """Return an HTML element that shows the HTML `summary`, and the text `text` after a click."""
    code = f"<pre><code>{escape_text(text, LINES)}</code></pre>"
    return f"<details>\n<summary>{summary}</summary>\n{code}\n</details>"


def make_picture(result: Any, method_name: str, words: tuple[str, str], height: float) -> str:
    """Return the HTML of a picture that a method of a result draws, or "" if there is none.

    Args:
        result: the result.
        method_name: name of the method that draws the picture, such as "plot".
        words: heading of the picture, and a description for readers who cannot see it.
        height: largest height of the picture in inches.
    """
    title, described = words
    width, most = _PICTURE_SIZE
    drawing = _picture_to_svg(result, method_name, (width, min(height, most)), method_name)
    label = escape_text(f"{title}. {described}")
    drawing = drawing.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
    return drawing and f"<h3>{title}</h3>\n<figure>\n{drawing}\n</figure>"


def _picture_to_svg(result: Any, name: str, size: tuple[float, float], prefix: str) -> str:
    """Return a picture as an SVG element, or "" if the result has no such picture.

    `name` is the method that draws it, `size` is in inches, and `prefix` begins all ids in the SVG.
    """
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
            # The page shows the title above, as text that wraps.
            for side in ("left", "center", "right"):
                figure.axes[0].set_title("", loc=side)
        return _figure_to_svg_element(figure, prefix)


def _figure_to_svg_element(figure: Figure, prefix: str) -> str:
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    file = io.StringIO()
    # Date and version would make every page differ from the previous one.
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    canvas: Any = FigureCanvasSVG(show_hidden_characters(figure))
    # `savefig` draws twice, and the first time is only for the layout.
    if (engine := figure.get_layout_engine()) is not None:
        engine.execute(figure)
        figure.set_layout_engine("none")
    canvas.print_svg(file, metadata=nothing)
    drawing = file.getvalue()[file.getvalue().index("<svg ") :]
    # A style element would apply to the whole page, which has the same rule.
    drawing = re.sub(r"<style.*?</style>", "", drawing, flags=re.DOTALL)
    # Names must be unique in a page, but every picture begins with figure_1.
    drawing = re.sub(r' id="', f' id="{prefix}-', drawing)
    drawing = re.sub(r'(href="|url\()#', rf"\1#{prefix}-", drawing)
    return _INVALID_XML_CHARACTERS.sub("\ufffd", drawing.strip())


def embed_visible_and_script_json(result: Any) -> str:
    """Return HTML that contains a result as JSON, once for readers and once for programs."""
    # Each field has its own line, so that two audits can be compared line by line.
    fields = [
        f"{json.dumps(name)}: {json.dumps(value, allow_nan=False)}"
        for name, value in result.to_dict().items()
    ]
    record = "{\n" + ",\n".join(fields) + "\n}"
    # Inside a script element, entities are not decoded, so < and & are written as JSON escapes.
    inert = record.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")
    summary = f"The audit as JSON (dpcore.{type(result).__name__}.from_json reads it)"
    script = f'<script type="application/json" id="audit">\n{inert}\n</script>'
    return f"{make_details(summary, record)}\n{script}"


def format_versions(before: str = "") -> str:
    """Return a line of HTML that states which versions of dpcore, numpy and Python made the page.

    The line begins with the HTML `before`.
    """
    made_with = f"dpcore {__version__}, numpy {np.__version__}, Python {platform.python_version()}"
    return f'<p class="soft">{before}Page made with {escape_text(made_with)}.</p>'
