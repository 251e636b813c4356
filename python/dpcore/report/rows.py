"""Reports as rows of a label and a text, aligned below the name of the object that was measured."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ..visible import make_visible

Row = tuple[str, str]
"""Row of a report: a label of one or two words, and a statement, both plain text."""


def align_rows(rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """Format rows of texts as a table of plain text, with two spaces between columns.

    Args:
        rows: the rows of the table. All rows have the same number of texts.
        left: numbers of the columns that are aligned to the left, counted from 0. All other columns
            are aligned to the right.

    Returns:
        The lines of the table, without spaces at their ends.

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
    """Format one row of a report, a label and a text, as an indented line."""
    return f"  {make_visible(label):<12} {make_visible(text)}"


def format_rows(name: str, rows: Iterable[Row]) -> str:
    """Format a report as plain text: the name, then one line for each pair (label, text).

    Example:
        >>> print(format_rows("a < b", [("verdict", "not refuted")]))
        a < b
          verdict      not refuted
    """
    return "\n".join([make_visible(name), *(format_row(*row) for row in rows)])


def format_epsilon(value: float | None) -> str:
    """Format an epsilon for a report: four decimals, "infinite" for inf, and "none" for None."""
    if value is None:
        return "none"
    return f"{value:.4f}" if math.isfinite(value) else "infinite"
