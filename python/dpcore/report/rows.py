"""Reports as rows of a label and a text, aligned below the name of the object that was measured."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ..visible import make_visible

Row = tuple[str, str]
"""Row of a report: a label of one or two words, and a statement, both plain text."""


def align_rows(rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """Format rows of text as a table, with two spaces between columns.

    Args:
        rows: the cells. All rows have equal length.
        left: numbers of left-aligned columns. The others are right-aligned.

    Returns:
        Lines of text without trailing spaces.

    Example:
        >>> print(align_rows([("a", "1"), ("bc", "10")]))
        a    1
        bc  10
    """
    rows = [list(map(make_visible, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            text.ljust(width) if i in left else text.rjust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def format_row(label: str, text: str) -> str:
    """Format one row of a report as an indented line of text."""
    return f"  {make_visible(label):<12} {make_visible(text)}"


def format_rows(name: str, rows: Iterable[Row]) -> str:
    """Format a report as text: the name of the measured object, then a line for each row.

    Example:
        >>> print(format_rows("a < b", [("verdict", "not refuted")]))
        a < b
          verdict      not refuted
    """
    return "\n".join([make_visible(name), *(format_row(*row) for row in rows)])


def format_epsilon(value: float | None) -> str:
    """Format an epsilon for a report: four decimals, or the word "infinite"."""
    if value is None:
        return "none"
    return f"{value:.4f}" if math.isfinite(value) else "infinite"
