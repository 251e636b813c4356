"""Reports of an estimate of Renyi divergences, as text and as figures.

The text begins with the belief (how reliable the estimates are). Then it shows the table of
estimates, the checks and the seed.
"""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..errors import invalid, mistyped
from ..packages import has_all
from ..records import Floats
from ..report.figures import (
    cycle_colour,
    get_root_figure,
    hide_top_and_right_spines,
    panel_figure,
    scale_figure_size,
    text_colour,
)
from ..report.rows import Row
from .conversions import SEEN, line
from .reliability import DIRECTIONS, ESTIMATE, REFUTED, SATURATED, UNRESOLVED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .record import Epsilon, Estimate

_TEXT_WIDTH: Final = 100
_LABEL_WIDTH: Final = 15
"""Number of text columns for a label and the blanks around it."""

MOST: Final = 12
"""Largest number of orders that a table shows. If there are more, about ten are shown."""

_ROUND_ORDERS: Final = (1.0, 2.0, 4.0, 8.0, 16.0)
_BELIEF_MARKS: Final = {REFUTED: "!", SATURATED: "^", UNRESOLVED: "?", ESTIMATE: ""}
_NEGATIVE_MARK: Final = "-"

_TEXT_SIZE, _SMALL_TEXT_SIZE = "small", "x-small"

_BELIEF_SHADES: Final = {
    REFUTED: ("refuted by its\nown certificate", 0.34),
    SATURATED: ("saturated", 0.26),
    UNRESOLVED: ("not resolved", 0.16),
}
_ORDER_TICKS: Final = (0.5, 1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128)
_MIN_WORDS_SHARE: Final = 0.16
"""In a shaded range, text is horizontal if the range has at least this share of the axis."""


def estimate_text(estimate: Estimate) -> str:
    """Return the report of an estimate of Renyi divergences as text, with at most 100 columns."""
    shown = choose_table_rows(estimate)
    some = len(shown) < len(estimate.alphas)
    orders = f"; {len(shown)} of {len(estimate.alphas)} orders" if some else ""
    title = f"  Estimates in nats by the method {estimate.method}, +- standard error{orders}"
    table = _format_table(estimate, shown)
    head, end = _list_reliability_rows(estimate), _list_notes_below_table(estimate, shown)
    marks = _explain_marks(estimate, shown)
    return "\n".join([_wrap_row_texts(head), "", title, table, *marks, "", _wrap_row_texts(end)])


def list_estimate_rows(estimate: Estimate) -> list[Row]:
    """List the lines of the report of an estimate as pairs (label, text).

    The list contains one pair for each order that the report shows.
    """
    shown = choose_table_rows(estimate)
    header, *rows = _list_cells(estimate, shown)
    orders = [
        (f"order {row[0].strip()}", ", ".join(f"{name} {cell.strip()}" for name, cell in cells))
        for row in rows
        for cells in [zip(header[1:], row[1:], strict=True)]
    ]
    return [*_list_reliability_rows(estimate), *orders, *_list_notes_below_table(estimate, shown)]


def _list_reliability_rows(estimate: Estimate) -> list[Row]:
    beliefs = [("belief", line) for line in reliability_lines(estimate)]
    return [*beliefs, ("reason", estimate.reason)]


def epsilon_text(epsilon: Epsilon) -> str:
    """Return a text with the three values of epsilon that were computed at one delta.

    The text explains what each value means. If a value is missing, the text states the reason.
    """
    certified = f"certified, {100 * epsilon.confidence:g} % confidence: held-out event"
    converted = "estimate: conversion of the curve, neither an upper nor a lower bound"
    if epsilon.alpha is not None:
        converted += f"; order {_format_order(epsilon.alpha)} decided"
    rows = [
        ("epsilon_lower", _format_number(epsilon.epsilon_lower), certified),
        ("epsilon_hat", _format_number(epsilon.epsilon_hat), "estimate: plug-in of the same event"),
        ("epsilon_rdp", _format_number(epsilon.epsilon_rdp), converted),
    ]
    if epsilon.line is not None:
        drawn = epsilon.line
        words = f"conversion of the line {drawn.xi:.4g} + {drawn.rho:.4g} alpha above the curve"
        rows.append(("  its line", _format_number(drawn.epsilon), words))
    flag = " (EXTRAPOLATED)" if epsilon.extrapolated else ""
    lines = [f"epsilon at delta = {epsilon.delta:g}{flag}"]
    for label, figure, words in rows:
        lines += _wrap_text(words, f"  {label:<13} {figure:>8}  ", 26)
    for reason in epsilon.reasons:
        lines += _wrap_text(reason, "  ", 4)
    return "\n".join(lines)


def _format_number(value: float | None) -> str:
    if value is None:
        return "none"
    return f"{value:.4f}" if np.isfinite(value) else "infinite"


def reliability_lines(estimate: Estimate) -> list[str]:
    """State the orders at which an estimate is reliable, in one line of text for each direction.

    If both directions are equally reliable at every order, the list has one line.
    """
    ranges = [_reliability_by_order(estimate, direction) for direction in (0, 1)]
    if ranges[0] == ranges[1]:
        return [f"both directions: {ranges[0]}"]
    return [f"{name}: {text}" for name, text in zip(DIRECTIONS, ranges, strict=True)]


def _reliability_by_order(estimate: Estimate, direction: int) -> str:
    ranges: dict[str, list[str]] = {}
    for word, start, stop in find_equal_runs(estimate.belief[direction]):
        first, last = (_format_order(estimate.alphas[i]) for i in (start, stop - 1))
        ranges.setdefault(word, []).append(first if first == last else f"{first} to {last}")
    if len(ranges) == 1 and len(estimate.alphas) > 1:
        return f"{next(iter(ranges))}, at every order"
    spans = {word: ", ".join(each) for word, each in ranges.items()}
    # The text of a single order has no blank, so the word "order" gets no "s".
    return "; ".join(f"{word}, order{'s'[: ' ' in s]} {s}" for word, s in spans.items())


def find_equal_runs(words: Sequence[str]) -> list[tuple[str, int, int]]:
    """Find blocks of consecutive equal words, as triples (word, first index, last index + 1)."""
    runs: list[tuple[str, int, int]] = []
    for i, word in enumerate(map(str, words)):
        if runs and runs[-1][0] == word:
            runs[-1] = (word, runs[-1][1], i + 1)
        else:
            runs.append((word, i, i + 1))
    return runs


def choose_table_rows(estimate: Estimate) -> list[int]:
    """Return the indices of the orders that the table of a report shows: at most 12 orders.

    If an estimate has more than 12 orders, about ten of them are chosen. These include the first
    order, the last order, and the orders nearest to 1, 2, 4, 8 and 16. They also include the order
    nearest to `alpha_max` (the largest reliable order) of each direction.
    """
    alphas = estimate.alphas
    if len(alphas) <= MOST:
        return list(range(len(alphas)))
    orders = [a for a in _ROUND_ORDERS if alphas[0] <= a <= alphas[-1]]
    orders += [top for top in estimate.alpha_max if top is not None]
    kept = {0, len(alphas) - 1, *(int(np.argmin(np.abs(alphas - a))) for a in orders)}
    while len(kept) < MOST - 2:
        # The middle of the widest gap.
        ordered = sorted(kept)
        gap, start = max((b - a, a) for a, b in itertools.pairwise(ordered))
        kept.add(start + gap // 2)
    return sorted(kept)


def _format_table(estimate: Estimate, shown: Sequence[int]) -> str:
    rows = _list_cells(estimate, shown)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  " + "  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def _list_cells(estimate: Estimate, shown: Sequence[int]) -> list[tuple[str, ...]]:
    """List the rows of the table, one for each order shown, after a header.

    For each direction, a row holds the estimate, its standard error, a mark that shows if it is
    reliable, the largest possible value and the certified bound.
    """
    columns = [["order", *(_format_order(estimate.alphas[i]) for i in shown)]]
    for direction, name in enumerate(DIRECTIONS):
        parts = [
            [_format_3_decimals_empty_if_nan(estimate.value[direction, i]) for i in shown],
            [_plus_minus_or_empty(estimate.std_error[direction, i]) for i in shown],
            [_belief_and_sign_mark(estimate, direction, i) for i in shown],
        ]
        columns.append([name, *_align_nonempty_columns(parts)])
        others = [("ceiling", estimate.ceiling)]
        if np.isnan(estimate.ceiling[direction][shown]).all():
            others.clear()
        if estimate.certified is not None:
            others.append(("certified", estimate.certified))
        for name, numbers in others:
            columns.append([name, *map(_format_3_decimals_empty_if_nan, numbers[direction][shown])])
    return list(zip(*columns, strict=True))


def _align_nonempty_columns(parts: Sequence[Sequence[str]]) -> list[str]:
    """Join the estimate, error and mark of each row in aligned columns; omit empty columns."""
    filled = [part for part in parts if any(part)]
    widths = [max(map(len, part)) for part in filled]
    # Values end at the same column; errors and marks begin at the same column.
    aligned = [
        [cell.ljust(width) if place else cell.rjust(width) for cell in part]
        for place, (part, width) in enumerate(zip(filled, widths, strict=True))
    ]
    return [" ".join(row) for row in zip(*aligned, strict=True)]


def _belief_and_sign_mark(estimate: Estimate, direction: int, i: int) -> str:
    negative = estimate.value[direction, i] < 0.0
    return _BELIEF_MARKS[str(estimate.belief[direction, i])] + (_NEGATIVE_MARK if negative else "")


def _explain_marks(estimate: Estimate, shown: Sequence[int]) -> list[str]:
    """Return lines that explain the marks (such as "?") in the table."""
    words = estimate.belief[:, shown]
    meanings = [f"{mark} {word}" for word, mark in _BELIEF_MARKS.items() if mark and word in words]
    if (estimate.value[:, shown] < 0.0).any():
        meanings.append(f"{_NEGATIVE_MARK} negative: raw value kept")
    lines: list[str] = []
    for item in meanings:
        if lines and len(lines[-1]) + len(item) + 2 <= _TEXT_WIDTH:
            lines[-1] += f"; {item}"
        else:
            lines.append(f"  {item}")
    return lines


def _list_notes_below_table(estimate: Estimate, shown: Sequence[int]) -> list[Row]:
    """List the lines below the table as pairs (label, text). The running time is last."""
    rows = []
    if 1.0 not in estimate.alphas:
        numbers = " and ".join(map(_format_3_decimals_empty_if_nan, estimate.kl))
        rows.append(("KL", f"{numbers} (D_1 in both directions)"))
    tops = ["none" if top is None else _format_order(top) for top in estimate.alpha_max]
    rows.append(("alpha_max", f"{tops[0]} and {tops[1]}: the largest order that N rows decide"))
    if estimate.beside is not None:
        rows += [("beside", line) for line in _other_method_at_three_orders(estimate, shown)]
    if estimate.checks is not None:
        rows += [("checks", line) for line in str(estimate.checks).splitlines()]
    if estimate.certificate is not None:
        rows += [("certificate", line) for line in str(estimate.certificate).splitlines()]
    rows += [("note", note) for note in estimate.notes]
    rows += [("sample", _describe_sample(estimate)), ("method", _describe_method(estimate))]
    return [*rows, ("seed", str(estimate.seed)), ("time", f"{estimate.seconds:.3g} s")]


def _other_method_at_three_orders(estimate: Estimate, shown: Sequence[int]) -> list[str]:
    """Format the comparison method's estimates at the first, middle and last reliable order."""
    other = estimate.beside
    assert other is not None
    top = [i for i in shown if estimate.resolved[:, i].any()] or list(shown)
    picked = sorted({top[0], top[len(top) // 2], top[-1]})
    lines = []
    for i in picked:
        both = [
            f"{_format_3_decimals_empty_if_nan(value[i])} {_plus_minus_or_empty(error[i])}".strip()
            for value, error in zip(other.value, other.std_error, strict=True)
        ]
        order = _format_order(estimate.alphas[i])
        lines.append(f"{other.method} at order {order}: {' and '.join(both)}")
    return lines


def _describe_sample(estimate: Estimate) -> str:
    diagnostics = estimate.diagnostics
    n0, n1 = estimate.sizes
    facts = [f"{n0:,} and {n1:,} rows of {estimate.dim:,} coordinate{'s'[: estimate.dim > 1]}"]
    if diagnostics.scale is not None:
        facts.append(f"scale {diagnostics.scale}")
    for shares, words in (
        (diagnostics.atom_share, "of them on repeated values"),
        (diagnostics.unseen_share, "on repeated values that the other set lacks"),
    ):
        if shares.any():
            # The rounding error of a share that is 0 may have a sign.
            both = " and ".join(f"{100 * abs(share):.3g} %" for share in shares)
            facts.append(f"{both} {words}")
    return ", ".join(facts)


def _describe_method(estimate: Estimate) -> str:
    error = "no standard errors" if estimate.error is None else f"{estimate.error} standard errors"
    reach = "" if not any(estimate.depth) else f", balls reach {estimate.depth[0]:,}"
    if reach and estimate.depth[1] != estimate.depth[0]:
        reach += f" and {estimate.depth[1]:,}"
    reach += " rows of the other set" if reach else ""
    numbers = estimate.diagnostics.counted.items()
    counted = [f"{n:,} {what.replace('_', ' ')}" for what, n in numbers]
    return ", ".join([f"{estimate.method}, k = {estimate.k}{reach}", error, *counted])


def _format_order(alpha: float) -> str:
    return f"{alpha:.4g}"


def _format_3_decimals_empty_if_nan(value: float) -> str:
    if not np.isfinite(value):
        return "" if np.isnan(value) else f"{value:+}"
    return f"{value:.3g}" if abs(value) >= 1000.0 else f"{value:.3f}"


def _plus_minus_or_empty(value: float) -> str:
    return f"+- {_format_3_decimals_empty_if_nan(value)}" if np.isfinite(value) else ""


def _wrap_row_texts(rows: Sequence[Row]) -> str:
    """Wrap pairs (label, text) into lines; print a repeated label only once."""
    lines, last = [], None
    for label, text in rows:
        head = f"  {label if label != last or label == 'note' else '':<{_LABEL_WIDTH - 2}}"
        lines += _wrap_text(text, head, _LABEL_WIDTH) or [head.rstrip()]
        last = label
    return "\n".join(lines)


def _wrap_text(text: str, head: str, indent: int) -> list[str]:
    """Wrap a text whose first line begins with `head`, and the other lines with `indent` blanks."""
    return textwrap.wrap(text, _TEXT_WIDTH, initial_indent=head, subsequent_indent=" " * indent)


def draw_estimate(estimate: Estimate, ax: Any = None) -> Figure:
    """Draw estimated Renyi divergences against the order, in one panel for each direction.

    Orders at which the value is not reliable are shaded in grey.
    """
    figure, axes, own = _get_panels(ax)
    edges = _order_edges(estimate.alphas)
    low, high = _value_limits(estimate)
    for direction, panel in enumerate(axes):
        panel.set_xscale("log")
        panel.set(xlim=(edges[0], edges[-1]), ylim=(low, high))
        _mark_unreliable_orders(panel, estimate, direction, edges)
        _draw_ceiling(panel, estimate, direction)
        _draw_bound_and_comparison(panel, estimate, direction)
        _draw_curve(panel, estimate, direction)
        _draw_epsilon_line(panel, estimate, direction)
        _set_order_ticks(panel)
        panel.set_title(DIRECTIONS[direction], loc="left", fontsize=_TEXT_SIZE)
        panel.set_xlabel("order alpha (1 is KL)", fontsize=_TEXT_SIZE)
        panel.axhline(0.0, color=text_colour(), alpha=0.5, linewidth=0.5, zorder=1)
    axes[0].set_ylabel("nats", fontsize=_TEXT_SIZE)
    _tidy_and_add_legend(figure, axes, own)
    if own:
        n0, n1 = estimate.sizes
        title = f"Estimate by {estimate.method}: {n0:,} and {n1:,} rows, d = {estimate.dim:,}"
        figure.suptitle(f"{title}, k = {estimate.k}", fontsize="medium", x=0.01, ha="left")
    return get_root_figure(figure)


def draw_convergence(estimate: Estimate, ax: Any = None) -> Figure:
    """Draw the mean and spread of the estimates against the number of resampled data sets.

    The point at n is the mean or the standard deviation of the estimates on the first n resampled
    data sets. If both curves are flat at the end, there are enough resampled data sets. Gusain and
    Leith (2025) choose the number of data sets in this way. At most three orders are shown. An
    order is shown only if the estimates on all resampled data sets are finite.
    """
    values = estimate.diagnostics.replicates
    if values is None:
        need = "'bootstrap' or 'subsample' for this picture: only their replicates are kept"
        raise invalid("error", need, estimate.error)
    shown = _choose_three_orders(estimate, values)
    if not shown:
        raise invalid("replicates", "finite at one order at least", "none such")
    figure, axes, own = _get_panels(ax)
    count = np.arange(1, len(values) + 1)
    for i, hue in zip(shown, map(cycle_colour, range(3)), strict=False):
        for direction, dashes in enumerate(("-", (0, (4, 1.5)))):
            mean, spread = _running_mean_sd(values[:, direction, i])
            label = f"{DIRECTIONS[direction]}, order {estimate.alphas[i]:.4g}"
            style: dict[str, Any] = {"color": hue, "linestyle": dashes, "linewidth": 1.0}
            axes[0].plot(count, mean, label=label, **style)
            axes[1].plot(count[1:], spread[1:], **style)
    for panel, words in zip(axes, ("running mean", "running standard deviation"), strict=True):
        panel.set_title(f"{words} (nats)", loc="left", fontsize=_TEXT_SIZE)
        panel.set_xlabel(f"{estimate.error} replicates", fontsize=_TEXT_SIZE)
        panel.set_xlim(1, max(len(values), 2))
    axes[1].set_ylim(bottom=0.0)
    _tidy_and_add_legend(figure, axes, own)
    return get_root_figure(figure)


def _get_panels(ax: Any) -> tuple[Figure, list[Axes], bool]:
    """Return the figure, its two panels, and True if this function made the panels."""
    if not isinstance(ax, (list, tuple, np.ndarray)):
        picture = panel_figure(ax, scale_figure_size(1.15, 0.85))
        return picture, list(picture.subplots(1, 2)), True
    panels = list(np.ravel(np.array(ax, dtype=object)))
    if len(panels) != 2:
        raise invalid("ax", "2 axes", len(panels))
    if not has_all(panels[0], "figure"):
        raise mistyped("ax", "2 axes", ax)
    return panels[0].figure, panels, False


def _tidy_and_add_legend(figure: Figure, axes: list[Axes], own: bool) -> None:
    """Remove superfluous lines of the axes, and add one legend for both panels."""
    handles: dict[str, Any] = {}
    for panel in axes:
        hide_top_and_right_spines(panel)
        panel.tick_params(labelsize=_SMALL_TEXT_SIZE)
        panel.tick_params(which="minor", length=0)
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    options: dict[str, Any] = {"frameon": False, "fontsize": _SMALL_TEXT_SIZE}
    where: Any = figure if own else axes[0]
    wide = figure.bbox.width / get_root_figure(figure).dpi > 6.5
    place: dict[str, Any] = {"loc": "outside lower center", "ncols": 3 if wide else 2}
    if not own:
        # Place the legend below the caller's axes; inside the axes it would cover a curve.
        place = {"loc": "upper left", "bbox_to_anchor": (0.0, -0.17), "ncols": 1}
    where.legend(list(handles.values()), list(handles), **place, **options)


def _order_edges(alphas: Floats) -> Floats:
    """Return the borders between the orders, half way between neighbours on the log scale."""
    logs = np.log(alphas)
    inner = (logs[1:] + logs[:-1]) / 2.0
    widest = np.diff(logs).max() / 2.0 if len(logs) > 1 else math.log(1.5)
    edge = min(max(widest, 0.02), 0.35)
    return np.asarray(np.exp(np.concatenate([[logs[0] - edge], inner, [logs[-1] + edge]])))


def _value_limits(estimate: Estimate) -> tuple[float, float]:
    """Return the limits of the y axis, which contain every finite estimate and error bar."""
    values = [estimate.value + sign * np.nan_to_num(estimate.std_error) for sign in (-1, 1)]
    if estimate.certified is not None:
        values.append(estimate.certified)
    if estimate.beside is not None:
        other = estimate.beside
        values.append(other.value + np.nan_to_num(other.std_error))
    every = np.concatenate([value.ravel() for value in values])
    finite = every[np.isfinite(every)]
    low, high = min([0.0, *finite]), max([0.0, *finite])
    ceiling = estimate.ceiling[np.isfinite(estimate.ceiling)]
    if (len(ceiling) and ceiling.max() <= 2.0 * high) or not high:
        high = max([high, *ceiling])
    room = 0.08 * (high - low) or 1.0
    return low - room, high + 3.0 * room


def _mark_unreliable_orders(panel: Axes, estimate: Estimate, direction: int, edges: Floats) -> None:
    """Shade unreliable orders in grey, and write the reason (such as "saturated") there."""
    whole = math.log(edges[-1] / edges[0])
    for word, start, stop in find_equal_runs(estimate.belief[direction]):
        if word == ESTIMATE:
            continue
        words, shade = _BELIEF_SHADES[word]
        left, right = edges[start], edges[stop]
        panel.axvspan(left, right, color=text_colour(), alpha=0.7 * shade, linewidth=0, zorder=0)
        narrow = math.log(right / left) < _MIN_WORDS_SHARE * whole
        panel.text(
            math.sqrt(left * right), 0.94, words.replace("\n", " ") if narrow else words,
            transform=panel.get_xaxis_transform(), rotation=90 if narrow else 0,
            ha="center", va="top", fontsize=_SMALL_TEXT_SIZE,
        )  # fmt: skip


def _draw_ceiling(panel: Axes, estimate: Estimate, direction: int) -> None:
    """Draw the largest value that the method can give; write it if it is beyond the axis."""
    ceiling = estimate.ceiling[direction]
    if not np.isfinite(ceiling).any():
        return
    if np.nanmin(ceiling) <= panel.get_ylim()[1]:
        panel.plot(estimate.alphas, ceiling, color=text_colour(), linestyle=":", linewidth=1.0)
        panel.lines[-1].set_label("ceiling: every ball holds all rows")
        if len(ceiling) == 1:
            panel.lines[-1].set_marker("_")
        return
    least = np.nanmin(estimate.ceiling)
    _add_legend_text(panel, f"ceiling from {least:.3g} up: above this picture")


def _add_legend_text(panel: Axes, words: str) -> None:
    """Add a text to the legend without a line or marker."""
    panel.plot([], [], linestyle="none", label=words)


def _draw_bound_and_comparison(panel: Axes, estimate: Estimate, direction: int) -> None:
    """Draw the certified lower bound, and the estimates of the comparison method."""
    alphas = estimate.alphas
    single = len(alphas) == 1
    if estimate.certified is not None:
        label = f"certified from below, {100 * estimate.confidence:g} %"
        marker = "^" if single else ""
        panel.plot(
            alphas, estimate.certified[direction], marker=marker, color=cycle_colour(2),
            label=label, linestyle="-", linewidth=1.4, markersize=5,
        )  # fmt: skip
    if estimate.beside is not None:
        other = estimate.beside
        value, error = other.value[direction], np.nan_to_num(other.std_error[direction])
        panel.errorbar(
            alphas * (1.03 if single else 1.0), value, error, color=cycle_colour(1),
            label=f"{other.method}, beside", linewidth=1.0, linestyle=(0, (4, 1.5)),
            elinewidth=0.5, marker="s" if single else "", markersize=3.5,
        )  # fmt: skip


def _draw_curve(panel: Axes, estimate: Estimate, direction: int) -> None:
    """Draw estimates with error bars, and arrows for infinite ones.

    The markers of unreliable estimates are hollow.
    """
    alphas, value = estimate.alphas, estimate.value[direction]
    error, resolved = estimate.std_error[direction], estimate.resolved[direction]
    finite = np.where(np.isfinite(value), value, np.nan)
    panel.plot(alphas, finite, color=cycle_colour(0), linewidth=0.6)
    hollow: dict[str, Any] = {"markerfacecolor": panel.get_facecolor(), "markeredgewidth": 0.8}
    for mask, label, face in (
        (resolved, f"{estimate.method}, +- standard error", {}),
        (~resolved, f"{estimate.method}, not resolved", hollow),
    ):
        kept = mask & np.isfinite(value)
        if kept.any():
            panel.errorbar(
                alphas[kept], value[kept], np.nan_to_num(error[kept]), fmt="o",
                color=cycle_colour(0), markersize=3.2, elinewidth=0.8, label=label, **face,
            )  # fmt: skip
    if (value[np.isfinite(value)] < 0.0).any():
        _add_legend_text(panel, "below 0: raw values, kept")
    _draw_infinite(panel, alphas, value)


def _draw_infinite(panel: Axes, alphas: Floats, value: Floats) -> None:
    low, high = panel.get_ylim()
    for mask, marker, height, words in (
        (np.isposinf(value), "^", high, "+inf"),
        (np.isneginf(value), "v", low, "-inf"),
    ):
        if mask.any():
            inside = height - math.copysign(0.03 * (high - low), height - (low + high) / 2.0)
            panel.plot(
                alphas[mask], np.full(mask.sum(), inside), marker, color=cycle_colour(0),
                markersize=4.5, label=words, clip_on=False, zorder=4,
            )  # fmt: skip


def _draw_epsilon_line(panel: Axes, estimate: Estimate, direction: int) -> None:
    """Draw Gusain and Leith's line above the reliable estimates, for one delta.

    This delta is the smallest one for which events of the sample give evidence.
    """
    alphas, curve = estimate.resolved_curve(direction)
    delta = SEEN / min(estimate.sizes)
    if not len(alphas) or not np.isfinite(curve).all() or delta >= 1.0:
        return
    drawn = line(alphas, curve, delta)
    ends = alphas[[0, -1]] if len(alphas) > 1 else alphas[0] * np.array([0.93, 1.07])
    label = f"line above it, for delta = 10/min(N0, N1) = {delta:.2g}"
    panel.plot(ends, drawn.xi + drawn.rho * ends, color=text_colour(), linewidth=1.0, label=label)


def _set_order_ticks(panel: Axes) -> None:
    """Set ticks at the round orders (such as 2 and 4) that lie on the axis."""
    from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

    low, high = panel.get_xlim()
    panel.xaxis.set_major_locator(FixedLocator([a for a in _ORDER_TICKS if low <= a <= high]))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))


def _choose_three_orders(estimate: Estimate, values: Floats) -> list[int]:
    """Choose the lowest order, the order nearest to 2, and the highest order.

    Only orders with finite estimates on all resampled data sets are used.
    """
    finite = np.isfinite(values).all(axis=(0, 1))
    resolved = finite & estimate.resolved.any(axis=0)
    places = np.flatnonzero(resolved if resolved.any() else finite)
    if not len(places):
        return []
    two = places[np.argmin(np.abs(estimate.alphas[places] - 2.0))]
    return sorted({int(places[0]), int(two), int(places[-1])})


def _running_mean_sd(values: Floats) -> tuple[Floats, Floats]:
    """Compute the mean and the standard deviation (with divisor n - 1) of the first n values."""
    count = np.arange(1, len(values) + 1)
    # Use deviations from the first value, because squares of the values themselves would cancel.
    shifted = values - values[0]
    mean = np.cumsum(shifted) / count
    squares = np.maximum(np.cumsum(shifted**2) - count * mean**2, 0.0)
    return values[0] + mean, np.sqrt(squares / np.maximum(count - 1, 1))
