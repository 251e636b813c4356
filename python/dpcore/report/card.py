"""Cards for notebooks: HTML elements that contain their own style.

The colours of a card follow the theme of JupyterLab, VS Code or the documentation page, if there is
such a theme. Otherwise the colours follow the reader's colour scheme (`prefers-color-scheme`). A
card sets the colours of its background and of its text, so that the card is readable on any page.
The rows of narrow cards wrap.
"""

from __future__ import annotations

import html as markup
import zlib
from collections.abc import Iterable
from typing import Final

from ..visible import make_visible
from .rows import Row

_LIGHT_COLOURS: Final = (
    "--ink: #222; --soft: #595959; --line: #d0d0d0; --ground: #fff; --refuted: #a84300; "
    "--stands: #0067a3"
)
_DARK_COLOURS: Final = (
    "--ink: #e8e8e8; --soft: #b0b0b0; --line: #4a4a4a; --ground: #181818; --refuted: #ffa05f; "
    "--stands: #7cc0f0"
)

_CARD_STYLE: Final = f"""
.@ {{ {_LIGHT_COLOURS} }}
@media (prefers-color-scheme: dark) {{ .@ {{ {_DARK_COLOURS} }} }}
[data-jp-theme-light="true"] .@, [data-theme="light"] .@, .vscode-light .@ {{ {_LIGHT_COLOURS} }}
[data-jp-theme-light="false"] .@, [data-theme="dark"] .@, .vscode-dark .@, .vscode-high-contrast .@
  {{ {_DARK_COLOURS} }}
.@.@.@ {{ box-sizing: border-box; max-width: 60rem; padding: .5rem .75rem; overflow-wrap: anywhere;
  font: .875rem/1.45 var(--jp-content-font-family, system-ui, sans-serif); text-align: left;
  color: var(--jp-content-font-color1, var(--vscode-editor-foreground, var(--ink)));
  background: var(--jp-layout-color0, var(--vscode-editor-background, var(--ground))) }}
.@.@.@ table {{ display: block; width: 100%; margin: 0; border: 0; border-collapse: collapse;
  font: inherit; color: inherit }}
.@.@.@ tbody {{ display: block }}
.@.@.@ caption, .@.@.@ .name {{ display: block; margin: 0; padding: 0 0 .3rem; font-weight: 600;
  text-align: left; color: inherit; caption-side: top }}
.@.@.@ tr {{ display: flex; flex-wrap: wrap; gap: 0 .75rem; padding: .2rem 0; background: none;
  border: 0; border-top: 1px solid var(--line) }}
.@.@.@ th, .@.@.@ td {{ display: block; margin: 0; padding: 0; border: 0; text-align: left;
  white-space: pre-line; max-width: none; background: none }}
.@.@.@ th {{ flex: 0 0 9rem; font-weight: 400; color: var(--soft) }}
.@.@.@ td {{ flex: 1 1 18rem; min-width: 0; color: inherit; font-variant-numeric: tabular-nums }}
.@.@.@ .refuted {{ color: var(--refuted); font-weight: 600 }}
.@.@.@ .stands {{ color: var(--stands) }}
.@.@.@ .untested {{ color: var(--soft) }}
.@.@.@ pre {{ margin: 0; padding: 0; border: 0; overflow-x: auto; white-space: pre; color: inherit;
  background: none; font: .8125rem/1.45 var(--jp-code-font-family, ui-monospace, monospace) }}
.@.@.@ summary {{ cursor: pointer; padding: .2rem 0; color: var(--soft) }}
"""

_CARD_CLASS: Final = f"dpcore-{zlib.crc32(_CARD_STYLE.encode()):08x}"
"""CSS class of a card. It depends on the style, so releases with other styles use other classes."""

_VERDICT_CLASSES: Final = {None: "untested", True: "refuted", False: "stands"}


def format_rows_as_html(name: str, rows: Iterable[Row], refuted: bool | None = None) -> str:
    """Format the rows of a report as one HTML element for a notebook.

    Args:
        name: name of the object that the report is about, shown above the rows.
        rows: pairs (label, text). Both are plain text, not HTML.
        refuted: True if the claim was refuted, False if it was not, None if no claim was tested.
            This value determines the colour of the row with the label "verdict".

    Returns:
        One HTML element with its own style sheet.

    Example:
        >>> text = format_rows_as_html("a < b", [("verdict", "not refuted")], False)
        >>> "a &lt; b" in text, '<td class="stands">not refuted</td>' in text
        (True, True)
    """
    shown = [(make_visible(label), make_visible(text)) for label, text in rows]
    lines = [(label, escape_html(text), label == "verdict") for label, text in shown]
    return wrap_html_with_style_sheet(make_html_table(make_visible(name), lines, refuted))


def wrap_html_with_style_sheet(body: str) -> str:
    """Return the HTML `body` inside one HTML element that also has the style sheet of reports."""
    style = _CARD_STYLE.replace(".@", f".{_CARD_CLASS}")
    return f'<div class="{_CARD_CLASS}"><style>{style}</style>{body}</div>'


def escape_html(text: object) -> str:
    """Escape text for HTML. Hidden characters, except line breaks, become visible codes."""
    # Line breaks belong to the report. Quoted texts were made visible before.
    return markup.escape(make_visible(str(text), "\n"))


def make_html_table(
    name: str, lines: Iterable[tuple[str, str, bool]], refuted: bool | None = None
) -> str:
    """Format the rows of a report as an HTML table with the caption `name`.

    Each entry of `lines` is a label, an HTML text, and True if this row states the verdict. The
    argument `refuted` determines the colour of the verdict.
    """
    cells = []
    for label, line, verdict in lines:
        style = f' class="{_VERDICT_CLASSES[refuted]}"' if verdict else ""
        cells.append(f'<tr><th scope="row">{escape_html(label)}</th><td{style}>{line}</td></tr>')
    caption = f"<caption>{escape_html(name)}</caption>" if name else ""
    return f"<table>{caption}<tbody>{''.join(cells)}</tbody></table>"


def fold_html(summary: str, inner: str) -> str:
    """Return an HTML element that shows the text `summary`, and the HTML `inner` after a click."""
    return f"<details><summary>{escape_html(summary)}</summary>{inner}</details>"
