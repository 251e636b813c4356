"""What the texts and the plain data of the experiments share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from .._core import __version__
from ..report.encoding import encode

__all__ = ["FORMAT", "aligned", "record"]

FORMAT = "dpcore.experiment/1"


def record(name: str, result: Any) -> dict[str, Any]:
    """What every experiment's JSON begins with: format, name, version, configuration."""
    config = {f.name: encode(getattr(result.config, f.name)) for f in fields(result.config)}
    return {
        "format": FORMAT,
        "experiment": name,
        "version": __version__,
        "config": {**config, "seed": str(result.config.seed)},
        "partial": result.partial,
        "seconds": result.seconds,
    }


def aligned(rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """Rows of text as a table, columns two spaces apart.

    Args:
        rows: the cells, every row equally long.
        left: columns set flush left; the others are flush right.

    Returns:
        Lines of text without trailing blanks.

    Example:
        >>> print(aligned([("a", "1"), ("bc", "10")]))
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
