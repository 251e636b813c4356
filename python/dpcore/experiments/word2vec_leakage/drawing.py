"""The picture of the leakage of word2vec: against anchors, and against noise."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any, Final

from ...report.style import BLUE, GREEN, GREY, INK, RED, WHITE
from ..drawing import SMALL, TEXT, apply_style, make_canvas, tidy_axes
from .experiment import STARTS, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_START_COLOURS: Final = dict(zip(STARTS, (RED, BLUE, GREEN), strict=True))
_RANK_STYLES: Final = {1: "-", 5: "--"}


def draw_figure(result: Result, ax: Any = None) -> Figure:
    """Draw the words found against anchors (left), and against noise and true epsilon (right)."""
    picture = make_canvas(3.6, ax)
    left, right = picture.subplots(1, 2, width_ratios=(1.15, 1.0))
    _draw_anchor_panel(left, result)
    _draw_word_noise(right, result)
    made = result.config.data is None
    where = "made-up sentences" if made else result.corpus.partition(": ")[2] or result.corpus
    first = result.cells[0].found
    picture.suptitle(
        f"word2vec on disjoint halves; {where}\n{first.words:,} held-out words, "
        f"V = {first.vocabulary:,}",
        fontsize=TEXT,
    )
    picture.legend(
        handles=_make_start_legend(),
        loc="outside lower center",
        ncols=4,
        frameon=False,
        fontsize=SMALL,
    )
    return apply_style(picture)


def _draw_anchor_panel(axes: Axes, result: Result) -> None:
    for start, colour in _START_COLOURS.items():
        for topn, style in _RANK_STYLES.items():
            # Without anchors nothing is turned: another attack, so no line leads there.
            for numbers in ([0], [n for n in result.anchors if n]):
                found = [result.found(start, n) for n in numbers]
                shares = [[one.share(topn).value for one in runs] for runs in found]
                _draw_shares_line(axes, numbers, shares, colour, style)
    chance = result.cells[0].found.chance
    for share, style in zip(chance, _RANK_STYLES.values(), strict=True):
        axes.axhline(share, color=GREY, linewidth=0.8, linestyle=style)
    axes.set_xscale("symlog", linthresh=10, linscale=0.6)
    # Neighbours nearer than a factor of two leave no space for both labels.
    shown = [
        n
        for n, after in zip(result.anchors, [*result.anchors[1:], None], strict=True)
        if after is None or after >= 2 * n
    ]
    axes.set_xticks(shown, [f"{n:,}" if n else "none" for n in shown])
    axes.set(ylim=(-0.02 * axes.get_ylim()[1], None), xlim=(-0.8, 1.15 * max(10, *result.anchors)))
    axes.set_xlabel("anchors: words that the attacker knows", fontsize=TEXT)
    axes.set_ylabel("share of private words found", fontsize=TEXT)
    tidy_axes(axes)


def _draw_word_noise(axes: Axes, result: Result) -> None:
    levels = [
        level
        for level in result.config.epsilons
        if result.found("hashed", 0, epsilon=level, centred=True)
    ]
    for start, colour in _START_COLOURS.items():
        for anchors, style in zip(dict.fromkeys((result.anchored, 0)), ("-", ":"), strict=False):
            points = [
                (level, result.found(start, anchors, epsilon=level, centred=True))
                for level in levels
            ]
            shares = [[one.share(1).value for one in found] for _, found in points]
            _draw_shares_line(axes, [level for level, _ in points], shares, colour, style)
    first = result.cells[0].found
    axes.axhline(first.chance[0], color=GREY, linewidth=0.8)
    axes.set(xscale="log", ylim=(-0.02 * axes.get_ylim()[1], None))
    axes.set_xticks(levels, [f"{level:g}" for level in levels])
    axes.set_xlabel("claimed epsilon of the noise", fontsize=TEXT)
    axes.set_ylabel(f"top-1; solid: {result.anchored} anchors, dotted: none", fontsize=SMALL)
    tidy_axes(axes)
    true = [result.found("hashed", 0, epsilon=level, centred=True)[0].true for level in levels]
    above = axes.secondary_xaxis("top")
    above.set_xticks(levels, [f"{value:g}" for value in true])
    above.tick_params(labelsize=SMALL, width=0.6, length=2.5)
    above.tick_params(which="minor", length=0)
    above.spines["top"].set_linewidth(0.6)
    above.set_xlabel("true epsilon, for any two vectors", fontsize=TEXT)


def _draw_shares_line(
    axes: Axes, x: list[Any], shares: list[list[float]], colour: str, style: str
) -> None:
    # After Ctrl-C some starts have no runs.
    there = [(place, one) for place, one in zip(x, shares, strict=True) if one]
    x, shares = [place for place, _ in there], [one for _, one in there]
    wide = [statistics.stdev(one) if len(one) > 1 else 0.0 for one in shares]
    axes.errorbar(
        x, [statistics.fmean(one) for one in shares], yerr=wide, color=colour, linestyle=style,
        linewidth=1.2, marker="o", markersize=3, elinewidth=0.7,
        markerfacecolor=colour if style == "-" else WHITE,
    )  # fmt: skip


def _make_start_legend() -> list[Any]:
    from matplotlib.lines import Line2D

    return [
        *(Line2D([], [], color=_START_COLOURS[key], label=name) for key, name in STARTS.items()),
        Line2D([], [], color=GREY, linewidth=0.8, label="chance"),
        Line2D([], [], color=INK, linestyle="-", label="left: top-1"),
        Line2D([], [], color=INK, linestyle="--", label="left: top-5"),
    ]
