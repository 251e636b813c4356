"""Estimates as text: belief first, then the curve, what was tested beside it, and the seed."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Sequence
from typing import Final

import numpy as np

from ..epsilon import Epsilon
from ..raw import Reals
from ..record import Estimate
from ..reliability.belief import DIRECTIONS, ESTIMATE, REFUTED, SATURATED, UNRESOLVED

_TEXT_WIDTH: Final = 100
_LABEL_WIDTH: Final = 15
"""Columns that a label and the blanks around it take."""

MOST: Final = 12
"""Orders that a table shows in full; of more it shows about ten."""

_ROUND_ORDERS: Final = (1.0, 2.0, 4.0, 8.0, 16.0)
_BELIEF_MARKS: Final = {REFUTED: "!", SATURATED: "^", UNRESOLVED: "?", ESTIMATE: ""}
_NEGATIVE_MARK: Final = "-"


def estimate_text(estimate: Estimate) -> str:
    """Return the report of an estimate, at most 100 columns wide; its last line is the time."""
    shown = choose_table_rows(estimate)
    rows = [("belief", line) for line in belief_lines(estimate)]
    rows.append(("reason", estimate.reason))
    parts = [_wrap_rows(rows), "", _format_heading(estimate, shown), _format_table(estimate, shown)]
    marks = _explain_marks(estimate, shown)
    return "\n".join(
        [*parts, *marks, "", _wrap_rows([*_list_rows(estimate, shown), _format_time(estimate)])]
    )


def epsilon_text(epsilon: Epsilon) -> str:
    """Format three figures with descriptions, and the reasons for missing ones."""
    certified = f"certified, {100 * epsilon.confidence:g} % confidence: held-out event"
    rows = [
        ("epsilon_lower", _format_figure(epsilon.epsilon_lower), certified),
        ("epsilon_hat", _format_figure(epsilon.epsilon_hat), "estimate: plug-in of the same event"),
        ("epsilon_rdp", _format_figure(epsilon.epsilon_rdp), _format_conversion(epsilon)),
    ]
    if epsilon.line is not None:
        drawn = epsilon.line
        words = f"conversion of the line {drawn.xi:.4g} + {drawn.rho:.4g} alpha above the curve"
        rows.append(("  its line", _format_figure(drawn.epsilon), words))
    flag = " (EXTRAPOLATED)" if epsilon.extrapolated else ""
    lines = [f"epsilon at delta = {epsilon.delta:g}{flag}"]
    for label, figure, words in rows:
        head = f"  {label:<13} {figure:>8}  "
        lines += textwrap.wrap(words, _TEXT_WIDTH, initial_indent=head, subsequent_indent=" " * 26)
    for reason in epsilon.reasons:
        lines += textwrap.wrap(reason, _TEXT_WIDTH, initial_indent="  ", subsequent_indent="    ")
    return "\n".join(lines)


def _format_conversion(epsilon: Epsilon) -> str:
    words = "estimate: conversion of the curve, neither an upper nor a lower bound"
    return (
        words if epsilon.alpha is None else f"{words}; order {_format_order(epsilon.alpha)} decided"
    )


def _format_figure(value: float | None) -> str:
    if value is None:
        return "none"
    return f"{value:.4f}" if np.isfinite(value) else "infinite"


def belief_lines(estimate: Estimate) -> list[str]:
    """List the belief by direction and orders; use one line if both directions agree."""
    told = [_format_ranges(estimate, direction) for direction in (0, 1)]
    if told[0] == told[1]:
        return [f"both directions: {told[0]}"]
    return [f"{name}: {text}" for name, text in zip(DIRECTIONS, told, strict=True)]


def _format_ranges(estimate: Estimate, direction: int) -> str:
    found: dict[str, list[str]] = {}
    for word, start, stop in find_runs(estimate.belief[direction]):
        first, last = (_format_order(estimate.alphas[i]) for i in (start, stop - 1))
        found.setdefault(word, []).append(first if first == last else f"{first} to {last}")
    if len(found) == 1 and len(estimate.alphas) > 1:
        return f"{next(iter(found))}, at every order"
    spans = {word: ", ".join(each) for word, each in found.items()}
    # One order alone has no blank in its text.
    return "; ".join(f"{word}, order{'s'[: ' ' in s]} {s}" for word, s in spans.items())


def find_runs(words: Sequence[str]) -> list[tuple[str, int, int]]:
    """Find runs of one belief along the orders: (belief, start, stop)."""
    found: list[tuple[str, int, int]] = []
    for i, word in enumerate(map(str, words)):
        if found and found[-1][0] == word:
            found[-1] = (word, found[-1][1], i + 1)
        else:
            found.append((word, i, i + 1))
    return found


def choose_table_rows(estimate: Estimate) -> list[int]:
    """Return positions of the orders that a table shows: all, or about ten of many.

    Always the first and the last, order 1, and what is nearest to alpha_max of each direction and
    to 2, 4, 8 and 16.
    """
    alphas = estimate.alphas
    if len(alphas) <= MOST:
        return list(range(len(alphas)))
    wanted = [a for a in _ROUND_ORDERS if alphas[0] <= a <= alphas[-1]]
    wanted += [top for top in estimate.alpha_max if top is not None]
    kept = {0, len(alphas) - 1, *(int(np.argmin(np.abs(alphas - a))) for a in wanted)}
    while len(kept) < MOST - 2:
        # The middle of the widest gap.
        ordered = sorted(kept)
        gap, start = max((b - a, a) for a, b in itertools.pairwise(ordered))
        kept.add(start + gap // 2)
    return sorted(kept)


def _format_heading(estimate: Estimate, shown: Sequence[int]) -> str:
    some = len(shown) < len(estimate.alphas)
    orders = f"; {len(shown)} of {len(estimate.alphas)} orders" if some else ""
    return f"  Estimates in nats by the method {estimate.method}, +- standard error{orders}"


def _format_table(estimate: Estimate, shown: Sequence[int]) -> str:
    """Format one row for each order: value, error, mark, ceiling, certificate by direction."""
    columns = [["order", *(_format_order(estimate.alphas[i]) for i in shown)]]
    for direction, name in enumerate(DIRECTIONS):
        parts = [
            [_format_estimate_number(estimate.value[direction, i]) for i in shown],
            [_format_error(estimate.std_error[direction, i]) for i in shown],
            [_choose_mark(estimate, direction, i) for i in shown],
        ]
        columns.append([name, *_join_columns(parts)])
        if not np.isnan(estimate.ceiling[direction][shown]).all():
            columns.append(
                [
                    "ceiling",
                    *(_format_estimate_number(estimate.ceiling[direction, i]) for i in shown),
                ]
            )
        if estimate.certified is not None:
            bounds = estimate.certified[direction]
            columns.append(["certified", *(_format_estimate_number(bounds[i]) for i in shown)])
    widths = [max(map(len, column)) for column in columns]
    return "\n".join(
        "  " + "  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)).rstrip()
        for row in zip(*columns, strict=True)
    )


def _join_columns(parts: Sequence[Sequence[str]]) -> list[str]:
    """Join value, error and mark of each row in separate columns; leave out empty kinds."""
    filled = [part for part in parts if any(part)]
    widths = [max(map(len, part)) for part in filled]
    rows = []
    for row in zip(*filled, strict=True):
        first, *rest = zip(row, widths, strict=True)
        rows.append(" ".join([first[0].rjust(first[1]), *(c.ljust(w) for c, w in rest)]))
    return rows


def _choose_mark(estimate: Estimate, direction: int, i: int) -> str:
    negative = estimate.value[direction, i] < 0.0
    return _BELIEF_MARKS[str(estimate.belief[direction, i])] + (_NEGATIVE_MARK if negative else "")


def _explain_marks(estimate: Estimate, shown: Sequence[int]) -> list[str]:
    """Explain the marks that occur in the table."""
    words = {str(word) for word in np.unique(estimate.belief[:, shown])}
    told = [f"{mark} {word}" for word, mark in _BELIEF_MARKS.items() if mark and word in words]
    if (estimate.value[:, shown] < 0.0).any():
        told.append(f"{_NEGATIVE_MARK} negative: raw value kept")
    lines: list[str] = []
    for item in told:
        if lines and len(lines[-1]) + len(item) + 2 <= _TEXT_WIDTH:
            lines[-1] += f"; {item}"
        else:
            lines.append(f"  {item}")
    return lines


def _list_rows(estimate: Estimate, shown: Sequence[int]) -> list[tuple[str, str]]:
    """List the lines below the table, as (label, text)."""
    rows = []
    if 1.0 not in estimate.alphas:
        rows.append(
            (
                "KL",
                " and ".join(map(_format_estimate_number, estimate.kl))
                + " (D_1 in both directions)",
            )
        )
    tops = ["none" if top is None else _format_order(top) for top in estimate.alpha_max]
    rows.append(("alpha_max", f"{tops[0]} and {tops[1]}: the largest order that N rows decide"))
    if estimate.beside is not None:
        rows += [("beside", line) for line in _format_other_method(estimate, shown)]
    if estimate.checks is not None:
        rows += [("checks", line) for line in str(estimate.checks).splitlines()]
    if estimate.certificate is not None:
        rows += [("certificate", line) for line in str(estimate.certificate).splitlines()]
    rows += [("note", note) for note in estimate.notes]
    rows += [("sample", _describe_sample(estimate)), ("method", _describe_method(estimate))]
    rows.append(("seed", str(estimate.seed)))
    return rows


def _format_other_method(estimate: Estimate, shown: Sequence[int]) -> list[str]:
    """Format the other method at the first, a middle and the last resolved order shown."""
    other = estimate.beside
    assert other is not None
    top = [i for i in shown if estimate.resolved[:, i].any()] or list(shown)
    picked = sorted({top[0], top[len(top) // 2], top[-1]})
    lines = []
    for i in picked:
        both = [
            f"{_format_estimate_number(value[i])} {_format_error(error[i])}".strip()
            for value, error in zip(other.value, other.std_error, strict=True)
        ]
        lines.append(
            f"{other.method} at order {_format_order(estimate.alphas[i])}: {' and '.join(both)}"
        )
    return lines


def _describe_sample(estimate: Estimate) -> str:
    seen = estimate.diagnostics
    n0, n1 = estimate.sizes
    told = [f"{n0:,} and {n1:,} rows of {estimate.dim:,} coordinate{'s'[: estimate.dim > 1]}"]
    if seen.scale is not None:
        told.append(f"scale {seen.scale}")
    if seen.atom_share.any():
        shares = _format_shares(seen.atom_share)
        told.append(f"{shares} of them on repeated values")
    if seen.unseen_share.any():
        shares = _format_shares(seen.unseen_share)
        told.append(f"{shares} on repeated values that the other set lacks")
    return ", ".join(told)


def _format_shares(shares: Reals) -> str:
    # A rounding error around no share at all may have a sign.
    return " and ".join(f"{100 * abs(share):.3g} %" for share in shares)


def _describe_method(estimate: Estimate) -> str:
    error = "no standard errors" if estimate.error is None else f"{estimate.error} standard errors"
    reach = "" if not any(estimate.depth) else f", balls reach {estimate.depth[0]:,}"
    if reach and estimate.depth[1] != estimate.depth[0]:
        reach += f" and {estimate.depth[1]:,}"
    reach += " rows of the other set" if reach else ""
    counted = [
        f"{n:,} {what.replace('_', ' ')}" for what, n in estimate.diagnostics.counted.items()
    ]
    return ", ".join([f"{estimate.method}, k = {estimate.k}{reach}", error, *counted])


def _format_time(estimate: Estimate) -> tuple[str, str]:
    return "time", f"{estimate.seconds:.3g} s"


def _format_order(alpha: float) -> str:
    return f"{alpha:.4g}"


def _format_estimate_number(value: float) -> str:
    if not np.isfinite(value):
        return "" if np.isnan(value) else f"{value:+}"
    return f"{value:.3g}" if abs(value) >= 1000.0 else f"{value:.3f}"


def _format_error(value: float) -> str:
    return f"+- {_format_estimate_number(value)}" if np.isfinite(value) else ""


def _wrap_rows(rows: Sequence[tuple[str, str]]) -> str:
    """Wrap rows of (label, text); print a repeated label once."""
    lines, last = [], None
    for label, text in rows:
        head = f"  {label if label != last or label == 'note' else '':<{_LABEL_WIDTH - 2}}"
        wrapped = textwrap.wrap(
            text, _TEXT_WIDTH, initial_indent=head, subsequent_indent=" " * _LABEL_WIDTH
        )
        lines += wrapped or [head.rstrip()]
        last = label
    return "\n".join(lines)
