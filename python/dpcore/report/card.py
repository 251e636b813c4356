"""Display of any record in a notebook: a card of HTML that contains its own style.

The card follows the reader's colour scheme (`prefers-color-scheme`), and where they say more,
JupyterLab, VS Code and documentation themes. It brings ground and ink together, so that it can be
read on any page; a row is broken where the card is narrow.
"""

from __future__ import annotations

import html as markup
import re
import zlib
from collections.abc import Iterable
from dataclasses import is_dataclass
from typing import Any, Final

import numpy as np

from ..records import Shown, full, list_shown_fields, one_line
from ..visible import make_visible

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
"""Class of a card. Of another style, such as an older release's, it is another."""

_REPORT_LINE: Final = re.compile(r"  (?! )(.{11})  (\S.*)")
"""A line of a report: two spaces, a label of up to eleven characters, two spaces, words."""

_VERDICT_CLASSES: Final = {None: "untested", True: "refuted", False: "stands"}
_DEFAULT_STR_METHODS: Final[tuple[Any, ...]] = Shown.__str__, object.__str__
_MAX_RECORD_DEPTH: Final = 3
"""Depth to which records in records are opened."""


def make_card(name: str, rows: Iterable[tuple[str, str]], refuted: bool | None = None) -> str:
    """Format the rows of a report as HTML for a notebook.

    Args:
        name: what the report is about.
        rows: (label, text), as plain text.
        refuted: decides the colour of a row "verdict".

    Returns:
        One element that carries its style.

    Example:
        >>> text = make_card("a < b", [("verdict", "not refuted")], False)
        >>> "a &lt; b" in text, '<td class="stands">not refuted</td>' in text
        (True, True)
    """
    shown = [(make_visible(label), make_visible(text)) for label, text in rows]
    lines = [(label, _escape_html(text), label == "verdict") for label, text in shown]
    return _frame_html(_make_card_table(make_visible(name), lines, refuted))


def record_to_html(record: Any) -> str:
    """Format any record as HTML for a notebook.

    Its report if it has one (`lines()`, or a `str` of its own), and its fields.

    Args:
        record: an object, mostly a dataclass.

    Returns:
        One element that carries its style.

    Example:
        >>> from dpcore import Counts
        >>> record_to_html(Counts(3, 10, 1, 10)).count("<tr>")
        4
    """
    return _frame_html(_make_body(record, _MAX_RECORD_DEPTH))


def _frame_html(body: str) -> str:
    style = _CARD_STYLE.replace(".@", f".{_CARD_CLASS}")
    return f'<div class="{_CARD_CLASS}"><style>{style}</style>{body}</div>'


def _escape_html(text: object) -> str:
    # Lines of a report that has some; what they quote was made visible where they were made.
    return markup.escape(make_visible(str(text), "\n"))


def _make_card_table(
    name: str, lines: Iterable[tuple[str, str, bool]], refuted: bool | None = None
) -> str:
    """Make a table of rows (label, HTML, True for the verdict)."""
    cells = []
    for label, line, verdict in lines:
        style = f' class="{_VERDICT_CLASSES[refuted]}"' if verdict else ""
        cells.append(f'<tr><th scope="row">{_escape_html(label)}</th><td{style}>{line}</td></tr>')
    caption = f"<caption>{_escape_html(name)}</caption>" if name else ""
    return f"<table>{caption}<tbody>{''.join(cells)}</tbody></table>"


def _make_body(record: Any, depth: int) -> str:
    kind = type(record).__name__
    shown_fields = list_shown_fields(record) if is_dataclass(record) else []
    inner = [(name, _show_value(value, depth), False) for name, value in shown_fields]
    # Without a text of its own it would be a list of the same fields.
    is_plain = type(record).__str__ in _DEFAULT_STR_METHODS and is_dataclass(record)
    text = "" if is_plain else str(record)
    if not text:
        return _make_card_table(kind, inner)
    first, *rest = text.splitlines()
    if rest and _split_row(first) is None and all(map(_split_row, rest)):
        shown = _put_name_above(first, _make_blocks(rest, record))
    elif rest:
        shown = _put_name_above(kind, _make_blocks([first, *rest], record))
    else:
        shown = _put_name_above(kind, f"<div>{_escape_html(text)}</div>")
    return shown + (_fold_html("fields", _make_card_table("", inner)) if inner else "")


def _put_name_above(name: str, inner: str) -> str:
    return f'<div class="name">{_escape_html(name)}</div>{inner}'


def _split_row(line: str) -> tuple[str, str] | None:
    """Split a line of a report into label and words; return None for other lines."""
    found = _REPORT_LINE.fullmatch(line)
    return None if found is None or "  " in found[1].rstrip() else (found[1].strip(), found[2])


def _make_blocks(lines: list[str], record: Any) -> str:
    """Format a report: its rows as table rows, which wrap, other lines unchanged."""
    blocks: list[tuple[list[tuple[str, str]], list[str]]] = [([], [])]
    for line in lines:
        rows, plain = blocks[-1]
        row = _split_row(line)
        if row is not None:
            if plain:
                blocks.append(([row], []))
            else:
                rows.append(row)
        elif rows and not plain and line.startswith(" " * 15):
            label, words = rows[-1]
            rows[-1] = label, f"{words}\n{line.strip()}"
        else:
            plain.append(line)
    shown = []
    for rows, plain in blocks:
        told = [(label, _escape_html(words), label == "verdict") for label, words in rows]
        shown.append(_make_card_table("", told, getattr(record, "refuted", None)) if told else "")
        shown.append(f"<pre>{_escape_html(chr(10).join(plain))}</pre>" if any(plain) else "")
    return "".join(shown)


def _show_value(value: Any, depth: int) -> str:
    """Format a field: records as an element that opens, any other value on one line."""
    if isinstance(value, Shown) and depth > 1 and len(full(value)) > 100:
        return _fold_html(one_line(repr(value), 80), _make_body(value, depth - 1))
    many = type(value) is tuple and len(value) > 1 and all(isinstance(v, Shown) for v in value)
    if many and depth > 1:
        inner = "".join(
            f"<div>{_escape_html(one_line(str(item), 300))}</div>" for item in value[:50]
        )
        more = f"<div>and {len(value) - 50:,} more</div>" if len(value) > 50 else ""
        kinds = {type(item).__name__ for item in value}
        return _fold_html(f"{len(value):,} of {' and '.join(sorted(kinds)[:3])}", inner + more)
    if type(value) is np.ndarray and 8 < value.size <= 100:
        return f"<pre>{_escape_html(np.array2string(value, max_line_width=80, precision=4))}</pre>"
    if isinstance(value, str):
        return _escape_html(one_line(value, 300))
    if type(value) is np.ndarray:
        shown = np.array2string(value, threshold=8, edgeitems=3, precision=5)
        shape = f", shape {value.shape}, {value.dtype}" if value.size > 8 else ""
        return _escape_html(" ".join(shown.split()) + shape)
    return _escape_html(one_line(repr(value), 300))


def _fold_html(summary: str, inner: str) -> str:
    return f"<details><summary>{_escape_html(summary)}</summary>{inner}</details>"
