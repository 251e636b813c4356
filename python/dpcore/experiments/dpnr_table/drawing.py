"""The picture of DPNR's table: what attackers infer, and what is left of the task."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...report.style import BLUE, GREEN, GREY, INK, RED, WHITE
from ..drawing import SMALL, TEXT, apply_style, make_canvas, tidy_axes
from .cases import CLEAN
from .experiment import Result, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_figure"]

_SYSTEM_COLOURS = {"shared": RED, "iid": BLUE, "sound": GREEN}
_SYSTEM_MARKS = {"shared": "s", "iid": "o", "sound": "D"}
_HOLLOW_MARK_STYLE: dict[str, Any] = {
    "linestyle": "--",
    "linewidth": 0.8,
    "markersize": 4.5,
    "markerfacecolor": WHITE,
}
_SYSTEM_LABELS = {
    "shared": "one draw a row (the paper's code)",
    "iid": "a draw an entry (the paper)",
    "sound": "a draw an entry, sound (true as claimed)",
}


def draw_figure(result: Result, ax: Any = None) -> Figure:
    """Draw the attackers' F1 and the main accuracy of each encoder against the claimed epsilon."""
    encoders = list(dict.fromkeys(row.case.encoder for row in result.rows if row.case.claim))
    encoders = encoders or [result.config.encoders[0]]
    picture = make_canvas(0.9 + 2.7 * len(encoders), ax)
    panels = picture.subplots(len(encoders), 2, squeeze=False)
    for pair, encoder in zip(panels, encoders, strict=True):
        _draw_attackers(pair[0], result, encoder)
        _draw_task(pair[1], result, encoder)
        for axes in pair:
            _set_claim_axis(axes, result, encoder)
    made = "made-up texts" if result.facts.made else "the authors' AG file"
    several = f", {result.config.seeds} seeds" if (result.config.seeds or 1) > 1 else ""
    picture.suptitle(f"DPNR on {made}{several}", fontsize=TEXT)
    picture.legend(
        handles=_make_system_legend(result),
        loc="outside lower center",
        ncols=2,
        frameon=False,
        fontsize=SMALL,
    )
    return apply_style(picture)


def _draw_attackers(axes: Axes, result: Result, encoder: str) -> None:
    for system, colour in _SYSTEM_COLOURS.items():
        line = result.line(system, encoder)
        if not line:
            continue
        claims = [claim for claim, _ in line]
        low, high = zip(*(row.naive(unseen=True) for _, row in line), strict=True)
        if len(line) > 1:
            axes.fill_between(claims, low, high, color=colour, alpha=0.25, linewidth=0)
        else:
            axes.vlines(claims, low, high, color=colour, alpha=0.35, linewidth=5)
        _draw_errorbars(axes, system, claims, [row.f1 for _, row in line])
    for row in _select_clean_rows(result, encoder):
        axes.axhline(row.f1[0], color=INK, linestyle=":", linewidth=1.0)
    if result.rows:
        floor = result.rows[0].runs[0].chosen.floors[0].f1
        axes.axhline(floor, color=GREY, linestyle="--", linewidth=1.0)
    names = result.facts.names
    axes.set_ylabel(
        f"F1 for {names[0]}, unseen texts" if len(names) == 1
        else f"micro-F1 for {len(names)} names, unseen texts", fontsize=TEXT,
    )  # fmt: skip
    axes.set_title(
        f"attackers: chosen (lines), naive (bands); {encoder}", fontsize=TEXT, loc="left"
    )


def _draw_task(axes: Axes, result: Result, encoder: str) -> None:
    for system in _SYSTEM_COLOURS:
        line = result.line(system, encoder)
        if line:
            figures = [row.over(lambda one: one.main_unseen) for _, row in line]
            claims = [claim for claim, _ in line]
            _draw_errorbars(axes, system, claims, figures)
            again = [row.runs[0].refitted or math.nan for _, row in line]
            if not all(map(math.isnan, again)):
                look = {
                    "marker": _SYSTEM_MARKS[system],
                    "color": _SYSTEM_COLOURS[system],
                    **_HOLLOW_MARK_STYLE,
                }
                axes.plot(claims, again, **look)
    for row in _select_clean_rows(result, encoder):
        value = row.over(lambda one: one.main_unseen)[0]
        axes.axhline(value, color=INK, linestyle=":", linewidth=1.0)
    axes.axhline(result.facts.majority[1], color=GREY, linestyle="--", linewidth=1.0)
    axes.set_ylabel("accuracy, unseen texts", fontsize=TEXT)
    axes.set_title(f"main task; {encoder}", fontsize=TEXT, loc="left")


def _select_clean_rows(result: Result, encoder: str) -> list[Row]:
    return [r for r in result.rows if (r.case.system, r.case.encoder) == (CLEAN, encoder)]


def _draw_errorbars(axes: Axes, system: str, claims: Any, figures: Any) -> None:
    look: dict[str, Any] = {
        "color": _SYSTEM_COLOURS[system],
        "marker": _SYSTEM_MARKS[system],
        "zorder": 3,
    }
    axes.errorbar(
        claims, [mean for mean, _ in figures], yerr=[wide for _, wide in figures],
        markersize=4.5, linewidth=1.4, elinewidth=0.8, **look,
    )  # fmt: skip


def _set_claim_axis(axes: Axes, result: Result, encoder: str) -> None:
    levels = result.config.levels
    axes.set_xscale("log")
    axes.set_xlim(levels[0] / 2.0, levels[-1] * 2.0)
    axes.set_ylim(0.0, 1.02)
    axes.set_xticks(levels, [f"{level:g}" for level in levels])
    axes.minorticks_off()
    axes.set_xlabel("claimed epsilon", fontsize=TEXT)
    tidy_axes(axes)
    width = dict(result.facts.widths)[encoder]

    def true(claim: Any) -> Any:
        return claim * width

    def claimed(epsilon: Any) -> Any:
        return epsilon / width

    above = axes.secondary_xaxis("top", functions=(true, claimed))
    above.set_xticks([level * width for level in levels], [f"{width * v:,.6g}" for v in levels])
    above.minorticks_off()
    above.tick_params(labelsize=SMALL, width=0.6, length=2.5, colors=BLUE)
    above.spines["top"].set_linewidth(0.6)
    above.set_xlabel(
        "true epsilon of a draw an entry (one draw a row: infinite)", fontsize=SMALL, color=BLUE
    )


def _make_system_legend(result: Result) -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    grey: dict[str, Any] = {"color": GREY, **_HOLLOW_MARK_STYLE}
    there = [
        name for name in _SYSTEM_COLOURS if any(row.case.system == name for row in result.rows)
    ]
    handles: list[Any] = [
        Line2D(
            [],
            [],
            color=_SYSTEM_COLOURS[n],
            marker=_SYSTEM_MARKS[n],
            markersize=4.5,
            label=_SYSTEM_LABELS[n],
        )
        for n in there
    ]
    return [
        *handles,
        Patch(color=GREY, alpha=0.3, label="naive attackers, lowest to highest"),
        Line2D([], [], label="main task, refitted by the attacker", marker="o", **grey),
        Line2D([], [], color=INK, linestyle=":", label="no noise"),
        Line2D([], [], color=GREY, linestyle="--", label="floor: majority"),
    ]
