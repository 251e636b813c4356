"""The trainings as text, plain data and picture."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, Final

from ...report.encoding import encode
from ...report.style import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, RED, WHITE
from ..drawing import SMALL, TEXT, canvas, dressed, tidy
from ..text import aligned, record
from .experiment import NAME, Result
from .recipes import CANARY_WORDS, CORPORA_DELTA, POLICIES, Cell, Kind, Recipe

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STYLES: Final[dict[Kind, tuple[str, str, str]]] = {
    "plain": (INK, "*", "plain"),
    "no noise": (PURPLE, "D", "DP-SGD without its noise"),
    "DP-SGD": (BLUE, "o", "DP-SGD, with its epsilon"),
    "random": (ORANGE, "s", "random words masked"),
    "ranked": (RED, "^", "ranked words masked"),
    "SanText": (GREEN, "v", "SanText, with its epsilon"),
    "plain, public start": (GREY, "*", "plain, public start"),
    "DP-SGD, public start": (GREY, "o", "DP-SGD, public start"),
}
"""Colour, mark and name of each kind of recipe."""


def write_table(result: Result) -> str:
    """Return a row for each recipe, and the findings."""
    config, material, first = result.config, result.material, result.cells[0]
    made = " (generated texts: give --data for real ones)" if config.data is None else ""
    head = (
        f"DP-SGD against redaction: {material.origin}{made}\n"
        f"{len(material.train):,} training texts, seed {config.seed}, {config.seeds} trainings of "
        f"each recipe; {first.measured.uniform:,} words that can be predicted, taken from these "
        "texts: no epsilon covers that choice\n"
        f"test: {first.measured.texts:,} texts, {first.measured.left_out} more are training texts "
        f"and left out; {100 * first.measured.unknown:.1f} % of the words unknown\n"
        f"canaries: {config.canaries:,} texts of {CANARY_WORDS} random words, each in by a coin; "
        f"{config.canaries // 4} guesses certify at most {first.ceiling:.2f} at delta "
        f"{material.delta:.3g} and 95 %\n"
        "the seed repeats the noise too: these models protect nobody, and are not kept"
    )
    rows = [["recipe", "perplexity", "log", "AUC", "certified", "guaranteed", "(RDP)", "corpora:",
             "estimate"]]  # fmt: skip
    rows += [_write_row(result, recipe) for recipe in result.recipes]
    ends = {
        "unigram": result.cells[0].measured.unigram or math.nan,
        "uniform": float(first.measured.uniform),
    }
    rows += [[name, f"{x:.1f}", f"{math.log(x):.2f}", *[""] * 6] for name, x in ends.items()]
    foot = (
        "means over trainings (standard deviation). certified: epsilon of one text from below; "
        f"guaranteed: by the accountant\ncorpora: epsilon of two corpora at delta {CORPORA_DELTA:g}, "
        "certified and estimated: not the epsilon of the other columns"
    )
    for share in {cell.coverage for cell in result.cells if cell.coverage is not None}:
        foot += f"\nSanText: {100 * share:.0f} % of the words have vectors, others become any word"
    early = ["INTERRUPTED: only complete trainings are shown"] if result.partial else []
    return "\n\n".join([head, *early, aligned(rows), foot, "\n".join(result.findings())])


def _write_row(result: Result, recipe: Recipe) -> list[str]:
    def show(name: str, digits: int = 2, missing: str = "", source: str | None = None) -> str:
        cells = [
            cell if source is None else getattr(cell, source) for cell in result.of(recipe.label)
        ]
        known = [value for cell in cells if (value := getattr(cell, name, None)) is not None]
        if not known:
            return missing
        spread = f" ({statistics.stdev(known):.{digits}f})" if len(known) > 1 else ""
        return f"{statistics.fmean(known):.{digits}f}{spread}"

    corpora = (show(name, source="corpora") for name in ("epsilon_lower", "epsilon_hat"))
    return [
        recipe.label, show("perplexity", 1), f"{result.log_perplexity(recipe.label):.2f}",
        show("auc"), show("certified"), show("guaranteed", missing="nothing"),
        show("guaranteed_rdp"), *corpora,
    ]  # fmt: skip


def write_plain_data(result: Result) -> dict[str, Any]:
    """Return everything as plain data for strict JSON, without any text."""
    material = result.material
    facts = {
        "corpus": material.origin, "training_texts": len(material.train), "delta": material.delta,
        "label": material.label, "a_side": len(material.rest), "canaries": result.config.canaries,
        "findings": result.findings(), "cells": [_write_cell(cell) for cell in result.cells],
    }  # fmt: skip
    return {**record(NAME, result), **facts}


def _write_cell(cell: Cell) -> dict[str, Any]:
    level = None if math.isnan(cell.recipe.level) else cell.recipe.level
    data = {one.name: encode(getattr(cell, one.name)) for one in fields(cell)}
    measured = {name: encode(value) for name, value in asdict(cell.measured).items()}
    return data | {"recipe": cell.recipe.kind, "level": level, "measured": measured}


def draw_figure(result: Result, ax: Any = None) -> Figure:
    """Draw four panels with one axis of log-perplexity: no panel has both epsilons."""
    picture = canvas(5.8, ax)
    panels = picture.subplots(2, 2, sharey=True).ravel()
    _draw_accountant(panels[0], result)
    _draw_corpora(panels[1], result)
    _draw_leak(panels[2], result)
    for kind in _STYLES:
        _draw_kind(panels[3], result, kind, lambda cell: cell.auc)
    panels[3].axvline(0.5, color=GREY, linewidth=0.8, linestyle=":")
    panels[3].set_xlabel("AUC of the canaries (.5: a coin)", fontsize=TEXT)
    for number, axes in enumerate(panels):
        _draw_lines(axes, result, named=number % 2 == 1)
        tidy(axes)
    picture.supylabel("log-perplexity of the test texts (lower predicts better)", fontsize=TEXT)
    made = "generated texts" if result.config.data is None else result.material.origin
    runs = f"; means of {result.config.seeds} trainings, small marks: each"
    runs = runs if (result.config.seeds or 1) > 1 else ""
    picture.suptitle(f"Next-word models of {made}{runs}", fontsize=TEXT)
    handles, labels = panels[3].get_legend_handles_labels()
    picture.legend(
        handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=SMALL
    )
    return dressed(picture)


def _draw_lines(axes: Axes, result: Result, named: bool) -> None:
    lines = {name: result.log_perplexity(name) for name in ("plain", "no noise")}
    lines["unigram"] = math.log(result.cells[0].measured.unigram or 1.0)
    lines["uniform"] = math.log(result.cells[0].measured.uniform)
    for name, value in lines.items():
        colour = {"plain": INK, "no noise": PURPLE}.get(name, GREY)
        axes.axhline(value, color=colour, linewidth=0.8, linestyle="--", zorder=1)
        if named and not math.isnan(value):
            axes.annotate(
                name, (1.0, value), (3, 0), xycoords=axes.get_yaxis_transform(), va="center",
                textcoords="offset points", fontsize=SMALL, color=colour, annotation_clip=False,
            )  # fmt: skip


def _draw_accountant(axes: Axes, result: Result) -> None:
    for kind in ("DP-SGD", "DP-SGD, public start"):
        _draw_kind(axes, result, kind, lambda cell: cell.guaranteed)
    levels = sorted({recipe.level for recipe in result.recipes if recipe.is_private}) or [1.0]
    axes.set(xscale="log", xlim=(levels[0] / 2.0, levels[-1] * 2.0))
    axes.set_xticks(levels, [f"{level:g}" for level in levels])
    axes.set_xlabel("epsilon of one text, guaranteed by the accountant", fontsize=TEXT)


def _draw_corpora(axes: Axes, result: Result) -> None:
    for recipe in result.recipes:
        found = [cell.corpora for cell in result.of(recipe.label) if cell.corpora is not None]
        pairs = [(one.epsilon_lower, one.epsilon_hat) for one in found]
        known = [pair for pair in pairs if None not in pair]
        if not known:
            continue
        (colour, mark, _), y = _STYLES[recipe.kind], result.log_perplexity(recipe.label)
        ends = [statistics.fmean(x or 0.0 for x in side) for side in zip(*known, strict=True)]
        axes.plot(ends, [y, y], color=colour, linewidth=0.9)
        axes.plot(ends[:1], [y], mark, color=colour, markersize=5)
        axes.plot(ends[1:], [y], mark, color=colour, markersize=5, markerfacecolor=WHITE)
        _name_level(axes, recipe, max(ends), y)
    axes.set_xlim(left=-0.1)
    axes.set_xlabel(
        f"epsilon of two corpora, an estimate (delta {CORPORA_DELTA:g})\n"
        "hollow: point estimate; filled: certified from below", fontsize=TEXT,
    )  # fmt: skip


def _draw_leak(axes: Axes, result: Result) -> None:
    ceiling = result.cells[0].ceiling
    for kind in _STYLES:
        _draw_kind(axes, result, kind, lambda cell: cell.certified)
    for recipe in result.recipes:
        above = [x for cell in result.of(recipe.label) if (x := cell.guaranteed) is not None]
        if above:
            y, end = result.log_perplexity(recipe.label), statistics.fmean(above)
            start = result.mean(recipe.label, "certified")
            shape = "|-|,widthA=0,widthB=.3" if end < 1.15 * ceiling else "->"
            colour = _STYLES[recipe.kind][0]
            axes.annotate(
                "", (min(end, 1.15 * ceiling), y), (start, y),
                arrowprops={"arrowstyle": shape, "color": colour, "lw": 0.7, "shrinkA": 0,
                            "shrinkB": 0},
            )  # fmt: skip
    axes.axvline(ceiling, color=GREY, linewidth=0.8, linestyle=":")
    axes.text(
        ceiling, 0.97, f"most that {result.config.canaries // 4} guesses certify ", rotation=90,
        transform=axes.get_xaxis_transform(), ha="right", va="top", fontsize=SMALL, color=GREY,
    )  # fmt: skip
    axes.set_xlim(-0.1, 1.15 * ceiling)
    axes.set_xlabel(
        "epsilon of one text, certified by an audit\n"
        "lines end at what is guaranteed; without a line: nothing", fontsize=TEXT,
    )  # fmt: skip


def _draw_kind(axes: Axes, result: Result, kind: Kind, read: Callable[[Cell], Any]) -> None:
    """Draw the trainings of a kind as small marks, and means with their levels."""
    colour, mark, name = _STYLES[kind]
    means = []
    for recipe in (one for one in result.recipes if one.kind == kind):
        cells = result.of(recipe.label)
        if len(cells) > 1:
            heights = [math.log(cell.perplexity) for cell in cells]
            axes.plot(
                list(map(read, cells)), heights, mark, color=colour, markersize=2.5, alpha=0.6
            )
        means.append((statistics.fmean(map(read, cells)), result.log_perplexity(recipe.label)))
        _name_level(axes, recipe, *means[-1])
    if means:
        axes.plot(
            *zip(*means, strict=True),
            f"{mark}-",
            color=colour,
            markersize=5,
            linewidth=0.6,
            label=name,
        )


def _name_level(axes: Axes, recipe: Recipe, x: float, y: float) -> None:
    if not math.isnan(recipe.level):
        masked = recipe.kind in POLICIES
        axes.annotate(
            f"{100 * recipe.level:g} %" if masked else f"{recipe.level:g}", (x, y), (4, 3),
            textcoords="offset points", fontsize=SMALL - 1, color=_STYLES[recipe.kind][0],
        )  # fmt: skip
