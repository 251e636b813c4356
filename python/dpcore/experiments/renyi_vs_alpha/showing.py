"""The curves against the order as text, plain data and picture."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...divergence import Line
from ...report.style import BLUE, GREEN, GREY, INK, PALE, RED, WHITE
from ..drawing import SMALL, TEXT, apply_style, make_canvas, tidy_axes
from ..text import aligned, encode_fields, make_record_head
from .experiment import DELTA, DIM, METHODS, NAME, ORDERS, Floats, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DIRECTIONS: Final = ("D(S||R)", "D(R||S)")
"""From the sensitive set S to the rest R, and back."""

_METHOD_TITLES: Final = {
    "paper-literal": "formula as printed",
    "paper": "formula corrected",
    "score": "score, and certified",
}


def fit_hyperbola(values: Floats) -> tuple[float, float, float]:
    """Fit a + b / (alpha - 1) to a curve at `ORDERS` by least squares.

    The printed formula is such a curve for any two sets: ln(p^alpha / q^(alpha - 1)) / (alpha - 1)
    is ln(p/q) + ln(p) / (alpha - 1). So a estimates the KL divergence, and b is the mean
    log-density of the first set.

    Returns:
        a, b, and the largest distance of the curve from the values.

    Example:
        >>> a, b, distance = fit_hyperbola(2.0 + 3.0 / (np.array(ORDERS) - 1.0))
        >>> round(a, 6), round(b, 6), distance < 1e-9
        (2.0, 3.0, True)
    """
    columns = np.stack([np.ones(len(ORDERS)), 1.0 / (np.array(ORDERS) - 1.0)], axis=1)
    (a, b), *_ = np.linalg.lstsq(columns, values, rcond=None)
    return float(a), float(b), float(np.abs(columns @ [a, b] - values).max())


def write_table(result: Result) -> str:
    """Return the curves, and what they show."""
    parts = [_write_head(result)]
    if result.partial:
        parts.append("INTERRUPTED: only what was done is shown")
    parts.append(aligned(_make_rows(result), left=(0, 1)))
    parts.append(
        "S: sensitive set, R: as many of the rest; permuted: mean of both directions where labels "
        "were permuted, the truth is 0\n"
        "? = not resolved or saturated in some draw; certified: from below on the first draw, 95 % "
        "in each direction; all other figures are estimates"
    )
    parts.append("\n".join(describe_findings(result)))
    return "\n\n".join(parts)


def _write_head(result: Result) -> str:
    config = result.config
    size, public, dropped = result.sizes
    draws = f"mean (sd) of {config.seeds} draws" if config.seeds != 1 else "one draw"
    return (
        f"Renyi divergence of two sets of texts against its order: {result.corpus}"
        f"{config.origin_note}\n{size:,} texts a side, {dropped:,} of both sets left out; TF-IDF "
        f"and SVD {DIM} fitted on {public:,} other texts\n"
        f"{draws} of the other set, seed {config.seed}; estimates in nats; delta {DELTA:g}"
    )


def _make_rows(result: Result) -> list[list[str]]:
    rows = [["method", "curve", *(f"{order:g}" for order in ORDERS)]]
    for method in result.methods:
        name = f"{method}, k = {METHODS[method]}"
        mean, sd, resolved = result.mean(method), result.sd(method), result.resolved(method)
        for side, direction in enumerate(DIRECTIONS):
            marks = ["" if believed else "?" for believed in resolved[side]]
            rows.append([name, direction, *map(_write_number, mean[side], marks)])
            if sd is not None:
                rows.append([name, "  sd", *map(_write_number, sd[side])])
        null = result.mean(method, "null").mean(axis=0)
        rows.append([name, "permuted", *map(_write_number, null)])
        if method == "score":
            first = result.of(method)[0]
            for direction, bounds in zip(DIRECTIONS, first.certified or (), strict=True):
                rows.append([name, f"certified {direction}", *map(_write_number, bounds)])
            rows.append([name, "ceiling", *map(_write_number, (first.ceiling or ((),))[0])])
    return rows


def _write_number(value: float, mark: str = "") -> str:
    return f"{value:.{1 if abs(value) >= 10 else 2}f}".replace("-0.00", "0.00") + mark


def describe_findings(result: Result) -> list[str]:
    """Return a sentence on each formula, on the lines, and on what is certified."""
    found = []
    for method in result.methods:
        mean, null = result.mean(method)[0], result.mean(method, "null").mean(axis=0)
        if method == "paper-literal":
            (a, b, distance), (null_a, null_b, _) = fit_hyperbola(mean), fit_hyperbola(null)
            found.append(
                f"As printed, every curve is a + b/(alpha - 1) for any two sets: here a = {a:.1f}, "
                f"b = {b:.0f} (off by {distance:.0e}), on permuted labels a = {null_a:.1f}, "
                f"b = {null_b:.0f}.\n  The shape is the formula's: at order 2 "
                f"{100 * null[3] / mean[3]:.0f} % of the value remain where the truth is 0."
            )
        elif method == "paper":
            found.append(
                f"Corrected, it goes from {mean[0]:.1f} to {mean[-1]:.1f} nats as the order grows, "
                f"on permuted labels from {null[0]:.1f} to {null[-1]:.1f}."
            )
        else:
            cells = result.of(method)
            certified, control = (
                np.max([getattr(cell, name) for cell in cells[:1]])
                for name in ("certified", "null_certified")
            )
            found.append(
                f"The score gives {mean[0]:.1f} to {mean.max():.1f} nats, on permuted labels at "
                f"most {max(0.0, null.max()):.2f}; up to {certified:.1f} nats are certified, on "
                f"permuted labels {control:.1f}.\n  A held-out event certifies epsilon "
                f"{cells[0].epsilon_lower:.2f}."
            )
    return [*found, *_describe_lines(result)]


def _describe_lines(result: Result) -> list[str]:
    """Return the source's line above each curve, with the certified figures."""
    found = ["The source's line above each curve, and its epsilon (an estimate, not a bound):"]
    for method in result.methods:
        lines = (_write_line(result.line(method, name), ", ") for name in ("value", "null"))
        found.append(f"  {method}: {'; on permuted labels '.join(lines)}")
    return found


def _write_line(one: Line, between: str) -> str:
    xi, rho, epsilon = map(_write_number, (one.xi, one.rho, one.epsilon))
    return f"{xi} + {rho} alpha{between}epsilon {epsilon}"


def write_plain_data(result: Result) -> dict[str, Any]:
    """Return everything as plain data for strict JSON."""
    lines = {
        name: {method: asdict(result.line(method, name)) for method in result.methods}
        for name in ("value", "null")
    }
    return {
        **make_record_head(NAME, result),
        "corpus": result.corpus,
        "sizes": list(result.sizes),
        "orders": list(ORDERS),
        "findings": describe_findings(result),
        "lines": lines,
        "cells": [encode_fields(cell) for cell in result.cells],
    }


def draw_figure(result: Result, ax: Any = None) -> Figure:
    """Draw the curves, a panel for each method."""
    picture = make_canvas(3.7, ax)
    panels = np.atleast_1d(picture.subplots(1, len(METHODS), sharex=True))
    for panel, method in zip(panels, METHODS, strict=True):
        panel.set_title(f"{_METHOD_TITLES[method]} (k = {METHODS[method]})", fontsize=TEXT)
        if method in result.methods:
            _draw_curves(panel, result, method)
        _label_panel(panel, method)
    made = "generated texts" if result.config.data is None else "medical abstracts"
    picture.suptitle(
        f"Renyi divergence of two sets of {result.sizes[0]:,} {made}\n"
        "the shape is the formula's: it remains on permuted labels (grey), where the truth is 0",
        fontsize=TEXT,
    )
    picture.legend(
        handles=_make_legend(), loc="outside lower center", ncols=4, frameon=False, fontsize=SMALL
    )
    return apply_style(picture)


def _draw_curves(panel: Axes, result: Result, method: str) -> None:
    mean, sd, resolved = result.mean(method), result.sd(method), result.resolved(method)
    for side, (colour, mark) in enumerate(zip((BLUE, RED), "os", strict=True)):
        errors = None if sd is None else sd[side]
        panel.errorbar(ORDERS, mean[side], errors, color=colour, linewidth=1.0, elinewidth=0.6)
        for believed, face in ((True, colour), (False, WHITE)):
            kept = resolved[side] == believed
            panel.plot(
                np.array(ORDERS)[kept], mean[side][kept], color=colour, marker=mark, markersize=3.5,
                markerfacecolor=face, markeredgewidth=0.8, linestyle="none",
            )  # fmt: skip
    first = result.of(method)[0]
    for colour, bounds in zip((BLUE, RED), first.certified or (), strict=False):
        panel.plot(ORDERS, bounds, color=colour, linewidth=2.2, alpha=0.8)
    if first.certified is not None and first.ceiling is not None:
        excluded = np.min(first.certified, axis=0)
        panel.fill_between(ORDERS, 0.0, excluded, color=PALE, linewidth=0, zorder=0)
        panel.plot(ORDERS, first.ceiling[0], color=INK, linewidth=0.8, linestyle="-.")
    null = np.array([curves for cell in result.of(method) for curves in cell.null])
    panel.fill_between(
        ORDERS, null.min(axis=(0, 1)), null.max(axis=(0, 1)), color=GREY, alpha=0.25, linewidth=0
    )
    panel.plot(ORDERS, null.mean(axis=(0, 1)), color=GREY, linewidth=1.2, linestyle="--")
    panel.annotate(
        f"order 2: {_write_number(mean[0, 3])}, permuted {_write_number(null[..., 3].mean())}",
        (0.97, 0.84), xycoords="axes fraction", ha="right", va="top", fontsize=SMALL,
    )  # fmt: skip
    high = np.max([mean.max(), null.max(), *(first.ceiling or ((),))[0]])
    low = min(0.0, 1.2 * mean.min(), 1.2 * null.min())
    panel.set_ylim(low, high * (50.0 if method == "paper-literal" else 1.6))
    above = result.line(method)
    ends = np.array([ORDERS[0], ORDERS[-1]])
    panel.plot(ends, above.xi + above.rho * ends, color=GREEN, linewidth=1.0, linestyle=":")
    panel.annotate(
        f"line {_write_line(above, chr(10))}: an estimate",
        (0.97, 0.97), xycoords="axes fraction", ha="right", va="top", fontsize=SMALL, color=GREEN,
    )  # fmt: skip


def _label_panel(panel: Axes, method: str) -> None:
    panel.set_xticks([1.1, 4, 8, 12, 16], ["1.1", "4", "8", "12", "16"])
    panel.set_xlabel("order alpha", fontsize=TEXT)
    if method == "paper-literal":
        panel.set_yscale("symlog", linthresh=1.0)
        panel.set_ylabel("nats", fontsize=TEXT)
    tidy_axes(panel)


def _make_legend() -> list[Any]:
    from matplotlib.lines import Line2D

    def entry(label: str, **style: Any) -> Line2D:
        return Line2D([], [], label=label, **{"markersize": 4, **style})

    return [
        entry("from sensitive to rest", color=BLUE, marker="o", markerfacecolor=WHITE),
        entry("from rest to sensitive", color=RED, marker="s", markerfacecolor=WHITE),
        entry("hollow: not resolved, saturated", color=INK, marker="o", markerfacecolor=WHITE,
              linestyle="none"),
        entry("permuted labels, and range", color=GREY, linestyle="--"),
        entry("certified, 95 % (excluded below)", color=INK, linewidth=2.2, alpha=0.8),
        entry("ceiling of the score", color=INK, linestyle="-.", linewidth=0.8),
        entry("the source's line", color=GREEN, linestyle=":"),
    ]  # fmt: skip
