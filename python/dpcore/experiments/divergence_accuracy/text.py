"""The accuracy of divergences as text and as plain data."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from ...divergence.reliability.belief import DIRECTIONS
from ...report import encoding
from ..text import aligned, make_record_head
from .cases import ALPHAS, CASES
from .experiment import NAME, Cell, Result, Trusted
from .published import Published

_BIAS_HEAD = ("", *(f"order {alpha:g}" for alpha in ALPHAS), "published", "rows")
_BIAS_GLOSSARY = """\
Bias: mean minus truth, and the standard deviation of one estimate in brackets.
*: the truth is infinite, the mean itself is shown. n inf: n estimates are not finite, left out.
published: biases of D(P0||P1), *: means. Laws on many atoms are our own draws, not the published.
Nd: normal law of d dimensions around 0; mu: length of the shift of P0; sd 1 where none is said."""
_CERTIFIED_GLOSSARY = """\
The failing cases with certificates: "estimate only" must not be said of a value more than three
standard errors below its certified bound, or more than .05 from 0 where both laws are the same."""


def write_table(result: Result) -> str:
    """Format a block for each case and direction, then the certificates of the failing cases."""
    config = result.config
    title = (
        "Accuracy of estimated divergences in nats: KL (order 1), orders 2 and 4; "
        f"seed {config.seed}"
    )
    parts = [title]
    if result.partial:
        parts.append("INTERRUPTED: only the cases that were done are shown")
    parts.append(_BIAS_GLOSSARY)
    lines, heads = _make_lines(result)
    table = aligned([_BIAS_HEAD, *lines], left=(0, 4)).splitlines()
    shown = [table[0]]
    for i, line in enumerate(table[1:]):
        shown += ["", heads[i]] if i in heads else []
        shown.append(line)
    parts.append("\n".join(shown))
    if result.trusted:
        rows = [_CERTIFIED_HEAD, *(row for one in result.trusted for row in _format_trusted(one))]
        parts += [_CERTIFIED_GLOSSARY, aligned(rows, left=(0, 1, 2))]
        parts.append(f"Misleading values: {result.misleading}.")
    refused = {cell.refused for cell in result.cells if cell.refused}
    if refused:
        told = textwrap.fill(f"refused: {min(refused)}", 96, subsequent_indent="  ")
        parts.append(told)
    return "\n\n".join(parts)


def _make_lines(result: Result) -> tuple[list[tuple[str, ...]], dict[int, str]]:
    """Return the rows of the table, and the headings by the row that they precede."""
    lines: list[tuple[str, ...]] = []
    heads: dict[int, str] = {}
    for name in dict.fromkeys(cell.case for cell in result.cells):
        case = CASES[name]
        repetitions, rows = result.config.size(name)
        for direction, words in enumerate(DIRECTIONS):
            truth = " / ".join(f"{value:.4g}" for value in case.truth[direction])
            sizes = f"{rows:,} and {result.config.other(name):,} rows, {repetitions} times"
            heads[len(lines)] = f"{case.title}: {words} = {truth}; {sizes}"
            lines += [_make_line(c, direction) for c in result.cells if c.case == name]
    return lines, heads


def _make_line(cell: Cell, direction: int) -> tuple[str, ...]:
    head = f"  {cell.method}"
    known = [p for p in CASES[cell.case].published if p.method == cell.method and not direction]
    told, rows = (_format_published(known[0]), f"{known[0].rows:,}") if known else ("", "")
    if cell.refused is not None:
        return (head, "refused", "", "", told, rows)
    return (head, *(_format_bias(cell, direction, i) for i in range(len(ALPHAS))), told, rows)


def _format_bias(cell: Cell, direction: int, i: int) -> str:
    mean, spread = cell.mean[direction, i], cell.spread[direction, i]
    infinite, bias = int(cell.infinite[direction, i]), cell.bias[direction, i]
    if np.isnan(mean):
        return f"{infinite} inf"
    known = np.isfinite(cell.truth[direction, i])
    words = f"{bias:+.3f}" if known else f"*{mean:.3f}"
    words += f" ({spread:.3f})" if np.isfinite(spread) else ""
    return f"{words} {infinite} inf" if infinite else words


def _format_published(known: Published) -> str:
    figures = [
        "none" if value is None else f"{value:+.3g}" if known.biased else f"{value:.3g}"
        for value in known.figures
    ]
    return ("" if known.biased else "*") + "/".join(figures)


_CERTIFIED_HEAD = (
    "case",
    "method",
    "direction",
    "order",
    "value",
    "certified",
    "orders resolved",
    "misleading",
)


def _format_trusted(one: Trusted) -> list[tuple[str, ...]]:
    """Format both directions of an estimate at the order nearest to 2."""
    found = one.estimate
    assert found.certified is not None
    i = int(np.argmin(np.abs(found.alphas - 2.0)))
    return [
        (
            one.case,
            found.method,
            DIRECTIONS[direction],
            f"{found.alphas[i]:.3g}",
            f"{found.value[direction, i]:.3f}",
            f"{found.certified[direction, i]:.3f}",
            f"{found.resolved[direction].sum()} of {len(found.alphas)}",
            str(one.misleading) if direction == 0 else "",
        )
        for direction in (0, 1)
    ]


def write_plain_data(result: Result) -> dict[str, Any]:
    """Return cells, published figures and certified estimates as plain data."""
    names = dict.fromkeys(cell.case for cell in result.cells)
    return {
        **make_record_head(NAME, result),
        "alphas": list(ALPHAS),
        "misleading": result.misleading,
        "cases": [_case_to_dict(name) for name in names],
        "cells": [_cell_to_dict(cell) for cell in result.cells],
        "certified": [_estimate_to_dict(one) for one in result.trusted],
    }


def _encode_numbers(array: Any) -> Any:
    """Return nested lists of floats, with infinite and missing ones as words."""
    if isinstance(array, (list, tuple)):
        return [_encode_numbers(item) for item in array]
    return array if isinstance(array, (int, str)) or array is None else encoding.encode_float(array)


def _case_to_dict(name: str) -> dict[str, Any]:
    case = CASES[name]
    return {
        "case": name,
        "title": case.title,
        "truth": _encode_numbers(case.truth),
        "published": [
            {
                "method": known.method,
                "rows": known.rows,
                "source": known.source,
                "kind": "bias" if known.biased else "mean",
                "figures": _encode_numbers(known.figures),
                "spread": _encode_numbers(known.spread),
            }
            for known in case.published
        ],
    }


def _cell_to_dict(cell: Cell) -> dict[str, Any]:
    return {
        "case": cell.case,
        "method": cell.method,
        "rows": list(cell.rows),
        "repetitions": len(cell.values),
        "refused": cell.refused,
        "mean": _encode_numbers(cell.mean.tolist()),
        "bias": _encode_numbers(cell.bias.tolist()),
        "spread": _encode_numbers(cell.spread.tolist()),
        "not_finite": cell.infinite.tolist(),
    }


def _estimate_to_dict(one: Trusted) -> dict[str, Any]:
    found = one.estimate
    assert found.certified is not None
    return {
        "case": one.case,
        "method": found.method,
        "alphas": found.alphas.tolist(),
        "value": _encode_numbers(found.value.tolist()),
        "std_error": _encode_numbers(found.std_error.tolist()),
        "certified": _encode_numbers(found.certified.tolist()),
        "belief": found.belief.tolist(),
        "misleading": one.misleading,
        "seed": str(found.seed),
    }
