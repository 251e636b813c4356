"""The releases as text, plain data and picture."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any, Final

from ...report.encoding import encode_value
from ...report.style import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, RED
from ..drawing import SMALL, add_legend, apply_style, make_canvas, tidy_axes
from ..text import aligned, make_record_head, write_mean
from .experiment import CLEAN, LINES, NAME, SHARES, Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LINE_COLOURS: Final = dict(zip(LINES, (INK, ORANGE, RED, BLUE, GREEN, GREY, PURPLE), strict=True))


def write_table(result: Result) -> str:
    """Return the figures as text."""
    config = result.config
    sizes = result.cells[0].release.utility.sizes
    tried = len(result.cells[0].rare.tried)
    head = (
        f"Private vectors of MiniLM: {result.corpus}{config.origin_note}\n{sizes[0]:,} + "
        f"{sizes[1]:,} + {sizes[2]:,} texts, repetitions {config.seeds}, seed {config.seed}"
    )
    rows = [
        ["release", "epsilon", "signal", "utility", "AUC 5 %", "AUC 50 %", "certified",
         "worst loss"]
    ]  # fmt: skip
    rows += [_write_row(result, line, epsilon) for line, epsilon in result.keys]
    foot = (
        "means over repetitions (standard deviation). utility: accuracy of the main label; AUC "
        f"of the best of {tried} attackers\non an attribute planted in 5 and in 50 % of the "
        "texts; certified: the largest; worst loss: exact, of the two texts\nfarthest apart; "
        "signal: share of a vector's energy that is no noise. Directions, mean and radius are "
        "of public\ntexts of the same corpus but where the line says otherwise."
    )
    early = ["INTERRUPTED: only complete lines are shown"] if result.partial else []
    return "\n\n".join([head, *early, aligned(rows), foot, "\n".join(result.findings())])


def _write_row(result: Result, line: str, epsilon: float) -> list[str]:
    cells = result.of(line, epsilon)

    def show(name: str) -> str:
        return write_mean([cell.figure(name) for cell in cells])

    bounds = [one for cell in cells for name in SHARES if (one := cell.certified(name)) >= 0.0]
    return [
        line, f"{epsilon:g}", f"{100.0 * result.mean(line, epsilon, 'signal'):.3g} %",
        show("utility"), show("rare"), show("common"),
        f"{max(bounds):.2f}" if bounds else "-",
        f"{max(cell.figure('worst_loss') for cell in cells):.4g}",
    ]  # fmt: skip


def write_plain_data(result: Result) -> dict[str, Any]:
    """Return everything as plain data, without any text."""
    names = ("utility", *SHARES, "worst_loss", "signal")
    cells = [
        {
            "line": cell.line, "number": cell.number, "epsilon": encode_value(cell.release.epsilon),
            "dim": cell.release.dim, "noise": cell.release.noise,
            **{name: encode_value(cell.figure(name)) for name in names},
            "certified": {name: encode_value(cell.certified(name)) for name in SHARES},
        }
        for cell in result.cells
    ]  # fmt: skip
    own_fields = {"corpus": result.corpus, "findings": result.findings(), "cells": cells}
    return {**make_record_head(NAME, result), **own_fields}


def draw_figure(result: Result, ax: Any = None) -> Figure:
    """Draw utility and both attacks against epsilon."""
    picture = make_canvas(2.9, ax)
    panels = picture.subplots(1, 3)
    floor = result.cells[0].release.utility.floors[0].accuracy
    titles = ("utility: accuracy", "attack, 5 %: AUC", "attack, 50 %: AUC")
    for panel, name, title in zip(panels, ("utility", *SHARES), titles, strict=True):
        for line in dict.fromkeys(cell.line for cell in result.cells):
            epsilons = [epsilon for one, epsilon in result.keys if one == line]
            values = [result.mean(line, epsilon, name) for epsilon in epsilons]
            if line == CLEAN:
                panel.axhline(values[0], color=INK, linestyle="--", linewidth=0.8, label=line)
                continue
            spread = [
                statistics.pstdev(cell.figure(name) for cell in result.of(line, epsilon))
                for epsilon in epsilons
            ]
            panel.errorbar(
                epsilons, values, spread, color=_LINE_COLOURS[line], marker="o", markersize=3,
                linewidth=1.0, label=line,
            )  # fmt: skip
        guessing = floor if name == "utility" else 0.5
        panel.axhline(guessing, color=GREY, linestyle=":", linewidth=0.8, label="guessing")
        panel.set(xscale="log")
        panel.set_xlabel("epsilon", fontsize=SMALL)
        panel.set_xticks(result.config.epsilons, [f"{one:g}" for one in result.config.epsilons])
        panel.set_xticks([], minor=True)
        panel.set_title(title, loc="left", fontsize=SMALL)
        tidy_axes(panel)
    add_legend(picture, panels[0], 4)
    return apply_style(picture)
