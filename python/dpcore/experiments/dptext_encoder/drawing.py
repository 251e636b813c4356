"""The picture of the experiment on DPText: certified against claimed, and epsilon by epoch."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any, Final

from ...report.style import BLUE, GREEN, GREY, INK, RED, WHITE
from ..drawing import SMALL, TEXT, apply_style, make_canvas, tidy_axes
from .cases import NOISES
from .experiment import Result, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NOISE_COLOURS: Final = dict(zip(NOISES, (RED, GREEN, BLUE), strict=True))
_NOISE_MARKS: Final = dict(zip(NOISES, ("o", "s", "D"), strict=True))
_MIN_DRAWN_BOUND: Final = 0.03
"""Certified bounds below it are drawn at it."""
_NOISE_SHIFTS: Final = dict(zip(NOISES, (0.93, 1.0, 1.07), strict=True))
"""The three noises of one claim stand side by side."""


def draw_figure(result: Result, ax: Any = None) -> Figure:
    """Draw left certified against claimed or learnt epsilon, right learnt epsilon by epoch."""
    picture = make_canvas(3.9, ax)
    left, right = picture.subplots(1, 2, width_ratios=(1.25, 1.0))
    _draw_certified_panel(left, result)
    _draw_learnt_panel(right, result)
    where = "made-up texts" if result.config.data is None else result.corpus.partition(":")[0]
    seeds = result.config.seeds
    runs = f", means of {seeds} seeds" if seeds and seeds > 1 else ""
    picture.suptitle(
        f"DPText as trained on {where}{runs}; audits of one pair of later texts, "
        f"{result.config.trials:,} trials a side",
        fontsize=TEXT,
    )
    picture.legend(
        handles=_make_noise_legend(),
        loc="outside lower center",
        ncols=4,
        frameon=False,
        fontsize=SMALL,
    )
    return apply_style(picture)


def _draw_certified_panel(axes: Axes, result: Result) -> None:
    levels = [row.mean("epsilon") for row in result.rows]
    ends = min(levels) / 2.5, max(levels) * 2.5
    axes.plot(ends, ends, color=GREY, linewidth=1.0, linestyle="--")
    top = 4.0 * max(levels + [row.mean("certified") for row in result.rows])
    for row in result.rows:
        _draw_system_point(axes, row, top)
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=(0.8 * _MIN_DRAWN_BOUND, 1.6 * top))
    ticks = [tick for tick in (0.1, 1.0, 10.0) if ends[0] < tick < ends[1]]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    marks = {
        _MIN_DRAWN_BOUND: f"under {_MIN_DRAWN_BOUND:g}",
        0.1: "0.1",
        1.0: "1",
        10.0: "10",
        top: "infinite",
    }
    axes.set_yticks(list(marks), list(marks.values()))
    axes.axhline(top, color=GREY, linewidth=0.5)
    axes.set_xlabel("epsilon claimed; hollow: learnt, nobody claims it", fontsize=TEXT)
    axes.set_ylabel("privacy loss of the pair", fontsize=TEXT)
    tidy_axes(axes)


def _draw_system_point(axes: Axes, row: Row, top: float) -> None:
    # Learnt ones are apart anyway.
    shift = 1.0 if row.case.learn else _NOISE_SHIFTS[row.case.noise]
    x, certified = shift * row.mean("epsilon"), max(_MIN_DRAWN_BOUND, row.mean("certified"))
    colour = _NOISE_COLOURS[row.case.noise]
    if row.case.faulty:
        refuted = bool(row.refuted)
        style = "-|>" if refuted else "->"
        tip: dict[str, Any] = {
            "arrowstyle": style, "color": colour, "lw": 0.9 if refuted else 0.5,
            "linestyle": "-" if refuted else ":", "shrinkA": 3, "shrinkB": 0, "mutation_scale": 7,
        }  # fmt: skip
        axes.annotate("", (x, top), (x, certified), arrowprops=tip)
    else:
        exact = row.mean("right")
        axes.plot([x, x], [certified, exact], color=colour, linewidth=0.7)
        axes.plot([x], [exact], "_", color=INK, markersize=7, zorder=3)
    face = WHITE if row.case.learn else colour
    axes.plot(
        [x], [certified], _NOISE_MARKS[row.case.noise], color=colour, markersize=5, zorder=4,
        markerfacecolor=face, markeredgewidth=1.0,
    )  # fmt: skip


def _draw_learnt_panel(axes: Axes, result: Result) -> None:
    rows = [row for row in result.rows if row.case.learn]
    for row in rows:
        paths = [(row.case.epsilon, *run.epsilons) for run in row.runs]
        means = [statistics.fmean(values) for values in zip(*paths, strict=False)]
        capped = row.case.cap is not None
        axes.plot(
            range(len(means)), means, color=_NOISE_COLOURS[row.case.noise], linewidth=1.2,
            linestyle="--" if capped else "-", marker=_NOISE_MARKS[row.case.noise], markersize=3,
            markerfacecolor=WHITE if capped else _NOISE_COLOURS[row.case.noise],
        )  # fmt: skip
    cap = result.config.cap
    axes.axhline(cap, color=GREY, linewidth=0.8)
    axes.text(0.02, 1.04 * cap, f"cap {cap:g}", fontsize=SMALL, color=GREY, va="bottom",
              transform=axes.get_yaxis_transform())  # fmt: skip
    axes.set(yscale="log")
    low, high = axes.get_ylim()
    axes.set_ylim(low, max(high, 1.35 * cap))
    axes.minorticks_off()
    ticks = [
        tick
        for tick in (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
        if low <= tick <= max(high, cap)
    ]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xlabel("epoch", fontsize=TEXT)
    axes.set_ylabel("learnt epsilon; dashed: with the cap", fontsize=TEXT)
    axes.set_xticks(range(0, result.config.epochs + 1, 1 + result.config.epochs // 10))
    tidy_axes(axes)


def _make_noise_legend() -> list[Any]:
    from matplotlib.lines import Line2D

    marks = [
        Line2D([], [], color=_NOISE_COLOURS[name], marker=_NOISE_MARKS[name], markersize=5, linestyle="none",
               label=f"certified, {name}")
        for name in NOISES
    ]  # fmt: skip
    line: dict[str, Any] = {"color": INK, "marker": "^", "markersize": 4, "markevery": [1]}
    return [
        *marks,
        Line2D([], [], color=GREY, linestyle="--", linewidth=1.0, label="certified = claimed"),
        Line2D([0, 1], [0, 0], label="refuted; true loss infinite", linewidth=0.9, **line),
        Line2D([0, 1], [0, 0], label="not refuted; infinite", linewidth=0.7, linestyle=":", **line),
        Line2D([], [], color=INK, marker="_", markersize=7, linestyle="none",
               label="exact loss, repaired"),
    ]  # fmt: skip
