"""The trainings as text, plain data and picture."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, Any, Final

from ...report.style import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, RED, WHITE
from ..drawing import SMALL, TEXT, add_legend, apply_style, make_canvas, tidy_axes
from ..text import aligned, encode_fields, make_record_head, write_mean
from .experiment import NAME, Result
from .recipes import CANARY_WORDS, CORPORA_DELTA, POLICIES, Kind, Recipe

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_RECIPE_STYLES: Final[dict[Kind, tuple[str, str, str]]] = {
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

_PANEL_FIGURES: Final = (
    ("guaranteed", "", "epsilon of one text, guaranteed by the accountant"),
    ("corpora_lower", "corpora_hat", "epsilon of two corpora, an estimate (delta "
     f"{CORPORA_DELTA:g})\nfilled: certified from below; hollow: point estimate"),
    ("certified", "guaranteed", "epsilon of one text, certified by an audit\n"
     "lines: up to what is guaranteed; others: nothing"),
    ("auc", "", "AUC of the canaries (.5: a coin)"),
)  # fmt: skip
"""Of each panel the figure, one to which a line is drawn, and the label."""


def write_table(result: Result) -> str:
    """Return a row for each recipe, and the findings."""
    config, material, first = result.config, result.material, result.cells[0]
    head = (
        f"DP-SGD against redaction: {material.origin}{config.origin_note}\n"
        f"{len(material.train):,} training texts, seed {config.seed}, trainings of each "
        f"recipe: {config.seeds}; {first.measured.uniform:,} words that can be predicted, taken "
        "from these texts: no epsilon covers that choice\n"
        f"test: {first.measured.texts:,} texts, {first.measured.left_out} more are training texts "
        f"and left out; {100 * first.measured.unknown:.1f} % of the words unknown\n"
        f"canaries: {config.canaries:,} texts of {CANARY_WORDS} random words, each in by a coin; "
        f"{config.canaries // 4} guesses certify at most {first.ceiling:.2f} at delta "
        f"{material.delta:.3g} and 95 %\n"
        "the seed repeats the noise too: these models protect nobody, and are not kept"
    )
    rows = [
        ["recipe", "perplexity", "log", "AUC", "certified", "guaranteed", "corpora:", "estimate"]
    ]
    rows += [_write_row(result, recipe) for recipe in result.recipes]
    ends = (("unigram", first.measured.unigram or math.nan), ("uniform", first.measured.uniform))
    rows += [[name, f"{x:.1f}", f"{math.log(x):.2f}", *[""] * 5] for name, x in ends]
    foot = (
        "means over trainings (standard deviation). certified: epsilon of one text from below; "
        "guaranteed: by the accountant\ncorpora: epsilon of two corpora at delta "
        f"{CORPORA_DELTA:g}, certified and estimated: not the epsilon of the other columns"
    )
    if material.vectors is not None:
        share = f"{100 * material.coverage:.0f} %"
        foot += f"\nSanText: {share} of the training words have vectors, others become any word"
    early = ["INTERRUPTED: only complete trainings are shown"] if result.partial else []
    return "\n\n".join([head, *early, aligned(rows), foot, "\n".join(result.findings())])


def _write_row(result: Result, recipe: Recipe) -> list[str]:
    cells = result.of(recipe.label)

    def show(name: str, digits: int = 2, missing: str = "") -> str:
        known = [value for cell in cells if (value := getattr(cell, name)) is not None]
        return write_mean(known, digits) if known else missing

    return [
        recipe.label, show("perplexity", 1), f"{result.log_perplexity(recipe.label):.2f}",
        show("auc"), show("certified"), show("guaranteed", missing="nothing"),
        show("corpora_lower"), show("corpora_hat"),
    ]  # fmt: skip


def write_plain_data(result: Result) -> dict[str, Any]:
    """Return everything as plain data for strict JSON, without any text."""
    material = result.material
    facts = {
        "corpus": material.origin, "training_texts": len(material.train), "delta": material.delta,
        "label": material.label, "a_side": len(material.rest), "canaries": result.config.canaries,
    }  # fmt: skip
    cells = [
        encode_fields(cell) | {"recipe": cell.recipe.kind, "level": cell.recipe.level or None}
        for cell in result.cells
    ]
    return {
        **make_record_head(NAME, result),
        **facts,
        "findings": result.findings(),
        "cells": cells,
    }


def draw_figure(result: Result, ax: Any = None) -> Figure:
    """Draw four panels with one axis of log-perplexity: no panel has both epsilons."""
    picture, ceiling = make_canvas(5.8, ax), result.cells[0].ceiling
    panels = picture.subplots(2, 2, sharey=True).ravel()
    for axes, panel in zip(panels, _PANEL_FIGURES, strict=True):
        _draw_panel(axes, result, *panel)
    levels = sorted({recipe.level for recipe in result.recipes if recipe.is_private}) or [1.0]
    panels[0].set(xscale="log", xlim=(levels[0] / 2.0, levels[-1] * 2.0))
    panels[0].set_xticks(levels, [f"{level:g}" for level in levels])
    panels[0].minorticks_off()
    panels[2].set_xlim(-0.1, 1.15 * ceiling)
    panels[2].axvline(ceiling, color=GREY, linewidth=0.8, linestyle=":")
    panels[2].text(
        ceiling, 0.97, f"most that {result.config.canaries // 4} guesses certify\n", rotation=90,
        transform=panels[2].get_xaxis_transform(), ha="right", va="top", fontsize=SMALL, color=GREY,
    )  # fmt: skip
    panels[3].axvline(0.5, color=GREY, linewidth=0.8, linestyle=":")
    for number, axes in enumerate(panels):
        _draw_lines(axes, result, named=number % 2 == 1)
        tidy_axes(axes)
    picture.supylabel("log-perplexity of the test texts (lower predicts better)", fontsize=TEXT)
    made = "generated texts" if result.config.data is None else result.material.origin
    many = result.config.seeds or 1
    runs = f"; means of {many} trainings, small marks: each" if many > 1 else ""
    picture.suptitle(f"Next-word models of {made}{runs}", fontsize=TEXT)
    add_legend(picture, panels[3])
    return apply_style(picture)


def _draw_lines(axes: Axes, result: Result, named: bool) -> None:
    first = result.cells[0].measured
    lines = {name: result.log_perplexity(name) for name in ("plain", "no noise")}
    lines |= {"unigram": math.log(first.unigram or math.nan), "uniform": math.log(first.uniform)}
    for name, value in lines.items():
        colour = {"plain": INK, "no noise": PURPLE}.get(name, GREY)
        axes.axhline(value, color=colour, linewidth=0.8, linestyle="--", zorder=1)
        if named and not math.isnan(value):
            axes.annotate(
                name, (1.0, value), (3, 0), xycoords=axes.get_yaxis_transform(), va="center",
                textcoords="offset points", fontsize=SMALL, color=colour, annotation_clip=False,
            )  # fmt: skip


def _draw_panel(axes: Axes, result: Result, name: str, end: str, label: str) -> None:
    """Draw each training as a small mark, means with their levels, and lines to a second figure."""
    axes.set_xlabel(label, fontsize=TEXT)
    places: dict[Kind, list[tuple[float, float]]] = {}
    ends: list[tuple[float, float, float, Kind]] = []
    for recipe in result.recipes:
        known = [cell for cell in result.of(recipe.label) if getattr(cell, name) is not None]
        if not known:
            continue
        colour, mark, _ = _RECIPE_STYLES[recipe.kind]
        xs, y = [getattr(cell, name) for cell in known], result.log_perplexity(recipe.label)
        if len(xs) > 1:
            heights = [math.log(cell.perplexity) for cell in known]
            axes.plot(xs, heights, mark, color=colour, markersize=2.5, alpha=0.6)
        x = statistics.fmean(xs)
        places.setdefault(recipe.kind, []).append((x, y))
        second = [getattr(cell, end) for cell in known if end and getattr(cell, end) is not None]
        ends += [(statistics.fmean(second), x, y, recipe.kind)] if second else []
        if recipe.level:
            text = f"{100 * recipe.level:g} %" if recipe.kind in POLICIES else f"{recipe.level:g}"
            # Above and below by turns: neighbouring levels may be at one place.
            height = 3 if len(places[recipe.kind]) % 2 else -9
            axes.annotate(
                text, (x, y), (4, height), textcoords="offset points", fontsize=SMALL - 1,
                color=colour,
            )  # fmt: skip
    # Infinite ones end at the frame.
    right = 1.1 * max((stop for stop, *_ in ends if stop < math.inf), default=1.0)
    for stop, x, y, kind in ends:
        colour, mark, _ = _RECIPE_STYLES[kind]
        axes.plot([x, min(stop, 2.0 * right)], [y, y], color=colour, linewidth=0.8)
        axes.plot([stop], [y], mark, color=colour, markersize=5, markerfacecolor=WHITE)
    if ends:
        axes.set_xlim(-0.03 * right, right)
    for kind, means in places.items():
        colour, mark, text = _RECIPE_STYLES[kind]
        axes.plot(*zip(*means, strict=True), mark, color=colour, markersize=5, label=text)
