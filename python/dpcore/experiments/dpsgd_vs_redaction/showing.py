"""The trainings as text, plain data and picture."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, Any, Final

from ...report.encoding import encode
from ...report.style import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, RED, WHITE
from ..drawing import SMALL, TEXT, canvas, dressed, tidy
from ..text import aligned, record
from .experiment import NAME, Result
from .recipes import (
    CORPORA_DELTA,
    NO_NOISE,
    PLAIN,
    POLICIES,
    PRIVATE,
    PUBLIC,
    REWRITING,
    START,
    Cell,
    Recipe,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKS: Final = {
    PLAIN: (INK, "*"), NO_NOISE: (PURPLE, "D"), PRIVATE: (BLUE, "o"), "random": (ORANGE, "s"),
    "ranked": (RED, "^"), REWRITING: (GREEN, "v"), START: (GREY, "*"), PUBLIC: (GREY, "o"),
}  # fmt: skip
"""Colour and mark of each kind of recipe."""


def write_table(result: Result) -> str:
    """Return a row for each recipe, and the findings."""
    config, material = result.config, result.material
    made = " (generated texts: give --data for real ones)" if config.data is None else ""
    first = result.cells[0]
    head = [
        f"DP-SGD against redaction: {material.origin}{made}",
        f"{len(material.train):,} training texts, {first.uniform:,} words that can be predicted, "
        f"known from these texts: no epsilon covers the choice of the words; seed {config.seed}, "
        f"{config.seeds} trainings of each recipe",
        f"test: {len(material.test) - first.left_out:,} texts, {first.left_out:,} more are training "
        f"texts and left out; {100 * first.unknown:.1f} % of the words unknown",
        f"canaries: {config.canaries:,} texts of {config.words} random words, each in by a coin; "
        f"{config.guesses} guesses certify at most {first.ceiling:.2f} at delta "
        f"{material.delta:.3g} and 95 %",
        "noise follows from the seed, so that this table can be repeated: these models protect "
        "nobody, and are not kept",
    ]
    columns = (
        "perplexity",
        "AUC",
        "certified",
        "guaranteed",
        "(RDP)",
        "corpora: certified",
        "estimate",
    )
    rows = [["recipe", *columns]]
    rows += [_write_row(result, recipe) for recipe in result.recipes]
    rows.append(["unigram", f"{result.mean(first.recipe.label, 'unigram'):.1f}", *[""] * 6])
    rows.append(["uniform", f"{first.uniform:,}", *[""] * 6])
    foot = "means over trainings (standard deviation); guaranteed: epsilon of one text by the accountant"
    covered = [cell.coverage for cell in result.cells if cell.coverage is not None]
    if covered:
        foot += (
            f"\n{REWRITING}: {100 * covered[0]:.0f} % of the training words have a vector, others "
            "become any word"
        )
    early = ["INTERRUPTED: only complete trainings are shown"] if result.partial else []
    return "\n\n".join(["\n".join(head), *early, aligned(rows), foot, "\n".join(result.findings())])


def _write_row(result: Result, recipe: Recipe) -> list[str]:
    cells = result.of(recipe.label)

    def show(values: list[float | None], digits: int, missing: str = "") -> str:
        known = [value for value in values if value is not None]
        if not known:
            return missing
        spread = f" ({statistics.stdev(known):.{digits}f})" if len(known) > 1 else ""
        return f"{statistics.fmean(known):.{digits}f}{spread}"

    corpora = [cell.corpora for cell in cells if cell.corpora is not None]
    return [
        recipe.label,
        show([cell.perplexity for cell in cells], 1),
        show([cell.auc for cell in cells], 2),
        show([cell.certified for cell in cells], 2),
        show([cell.guaranteed for cell in cells], 2, "nothing"),
        show([cell.guaranteed_rdp for cell in cells], 2),
        show([one.epsilon_lower for one in corpora], 2),
        show([one.epsilon_hat for one in corpora], 2),
    ]


def write_plain_data(result: Result) -> dict[str, Any]:
    """Return everything as plain data for strict JSON, without any text."""
    material = result.material
    facts = {
        "corpus": material.origin, "training_texts": len(material.train), "delta": material.delta,
        "label": material.label, "a_side": len(material.rest), "canaries": result.config.canaries,
        "guesses": result.config.guesses, "findings": result.findings(),
    }  # fmt: skip
    return {**record(NAME, result), **facts, "cells": [_write_cell(cell) for cell in result.cells]}


def _write_cell(cell: Cell) -> dict[str, Any]:
    names = ("perplexity", "interval", "unigram", "uniform", "unknown", "left_out", "auc",
             "certified", "ceiling", "guaranteed", "guaranteed_rdp", "coverage", "seconds")  # fmt: skip
    level = None if math.isnan(cell.recipe.level) else cell.recipe.level
    data = {"kind": cell.recipe.kind, "level": level, "number": cell.number}
    data |= {name: encode(getattr(cell, name)) for name in names}
    if (found := cell.corpora) is not None:
        keys = ("delta", "epsilon_lower", "epsilon_hat", "epsilon_rdp")
        data["two_corpora"] = {key: encode(getattr(found, key)) for key in keys}
    return data


def draw_figure(result: Result, ax: Any = None) -> Figure:
    """Draw four panels with one axis of log-perplexity: no panel has both epsilons."""
    picture = canvas(5.6, ax)
    panels = picture.subplots(2, 2, sharey=True).ravel()
    _draw_accountant(panels[0], result)
    _draw_corpora(panels[1], result)
    _draw_leak(panels[2], result)
    _draw_auc(panels[3], result)
    for axes in panels:
        _draw_lines(axes, result, named=axes in (panels[1], panels[3]))
        tidy(axes)
    for axes in panels[::2]:
        axes.set_ylabel("log-perplexity of the test texts", fontsize=TEXT)
    made = "generated texts" if result.config.data is None else result.material.name.upper()
    seeds = result.config.seeds or 1
    runs = f"; means of {seeds} trainings, small marks: each" if seeds > 1 else ""
    picture.suptitle(f"Next-word models of {made} (lower predicts better){runs}", fontsize=TEXT)
    picture.legend(
        handles=_make_legend(result), loc="outside lower center", ncols=4, frameon=False,
        fontsize=SMALL,
    )  # fmt: skip
    return dressed(picture)


def _draw_lines(axes: Axes, result: Result, named: bool) -> None:
    first = result.cells[0].recipe.label
    lines = {
        PLAIN: result.mean(PLAIN, "perplexity"), NO_NOISE: result.mean(NO_NOISE, "perplexity"),
        "unigram": result.mean(first, "unigram"), "uniform": float(result.cells[0].uniform),
    }  # fmt: skip
    for name, value in lines.items():
        colour = _MARKS.get(name, (GREY, ""))[0]
        axes.axhline(math.log(value), color=colour, linewidth=0.8, linestyle="--", zorder=1)
        if named and not math.isnan(value):
            axes.annotate(
                name, (1.0, math.log(value)), (3, 0), xycoords=axes.get_yaxis_transform(),
                textcoords="offset points", va="center", fontsize=SMALL, color=colour,
                annotation_clip=False,
            )  # fmt: skip


def _draw_accountant(axes: Axes, result: Result) -> None:
    for kind in (PRIVATE, PUBLIC):
        _draw_kind(axes, result, kind, lambda cell: cell.guaranteed)
    axes.set_xscale("log")
    levels = sorted({recipe.level for recipe in result.recipes if recipe.is_private})
    if levels:
        axes.set(xlim=(levels[0] / 2.0, levels[-1] * 2.0))
    axes.set_xticks(levels, [f"{level:g}" for level in levels])
    axes.set_xlabel("epsilon of one text, guaranteed by the accountant", fontsize=TEXT)


def _draw_corpora(axes: Axes, result: Result) -> None:
    for kind in (PLAIN, *POLICIES):
        colour, mark = _MARKS[kind]
        for recipe in (one for one in result.recipes if one.kind == kind):
            found = [cell.corpora for cell in result.of(recipe.label) if cell.corpora is not None]
            ends = [
                statistics.fmean(values)
                for name in ("epsilon_lower", "epsilon_hat")
                if (values := [v for one in found if (v := getattr(one, name)) is not None])
            ]
            height = [math.log(result.mean(recipe.label, "perplexity"))] * len(ends)
            axes.plot(ends, height, color=colour, linewidth=0.9)
            axes.plot(ends[:1], height[:1], mark, color=colour, markersize=5)
            axes.plot(ends[1:], height[1:], mark, color=colour, markersize=5, markerfacecolor=WHITE)
            if kind != PLAIN and ends:
                _name_level(axes, recipe, ends[-1], height[-1], colour)
    axes.set_xlim(left=-0.1)
    axes.set_xlabel(
        f"epsilon of two corpora, an estimate (delta {CORPORA_DELTA:g})\n"
        "filled: certified, hollow: point estimate",
        fontsize=TEXT,
    )


def _draw_leak(axes: Axes, result: Result) -> None:
    ceiling = result.cells[0].ceiling
    right = 1.15 * ceiling
    for kind in _MARKS:
        _draw_kind(axes, result, kind, lambda cell: cell.certified)
    for recipe in result.recipes:
        above = [one for cell in result.of(recipe.label) if (one := cell.guaranteed) is not None]
        if above:
            height = math.log(result.mean(recipe.label, "perplexity"))
            start, end = result.mean(recipe.label, "certified"), statistics.fmean(above)
            axes.annotate(
                "", (min(end, right), height), (start, height),
                arrowprops={"arrowstyle": "|-|,widthA=0,widthB=.3" if end < right else "->",
                            "color": _MARKS[recipe.kind][0], "lw": 0.7, "shrinkA": 0, "shrinkB": 0},
            )  # fmt: skip
    axes.axvline(ceiling, color=GREY, linewidth=0.8, linestyle=":")
    axes.annotate(
        f"most that {result.config.guesses} guesses certify", (ceiling, 0.97), (-3, 0),
        xycoords=axes.get_xaxis_transform(), textcoords="offset points", rotation=90, ha="right",
        va="top", fontsize=SMALL, color=GREY,
    )  # fmt: skip
    axes.set_xlim(-0.1, right)
    axes.set_xlabel(
        "epsilon of one text, certified by an audit\nlines: up to what is guaranteed, others: nothing",
        fontsize=TEXT,
    )


def _draw_auc(axes: Axes, result: Result) -> None:
    for kind in _MARKS:
        _draw_kind(axes, result, kind, lambda cell: cell.auc)
    axes.axvline(0.5, color=GREY, linewidth=0.8, linestyle=":")
    axes.set_xlabel("AUC of the canaries (.5: a coin)", fontsize=TEXT)


def _draw_kind(axes: Axes, result: Result, kind: str, read: Any) -> None:
    """Draw the trainings of a kind as small marks, and means with their levels."""
    colour, mark = _MARKS[kind]
    means = []
    for recipe in (one for one in result.recipes if one.kind == kind):
        cells = result.of(recipe.label)
        places = [(read(cell), cell.log_perplexity) for cell in cells]
        if len(places) > 1:
            axes.plot(*zip(*places, strict=True), mark, color=colour, markersize=2.5, alpha=0.6)
        mean = (
            statistics.fmean(x for x, _ in places),
            math.log(result.mean(recipe.label, "perplexity")),
        )
        means.append(mean)
        if not math.isnan(recipe.level):
            _name_level(axes, recipe, *mean, colour)
    if means:
        axes.plot(*zip(*means, strict=True), f"{mark}-", color=colour, markersize=5, linewidth=0.6)


def _name_level(axes: Axes, recipe: Recipe, x: float, y: float, colour: str) -> None:
    masked = recipe.kind in POLICIES
    text = f"{100 * recipe.level:g} %" if masked else f"{recipe.level:g}"
    axes.annotate(
        text, (x, y), (4, 3), textcoords="offset points", fontsize=SMALL - 1, color=colour
    )


def _make_legend(result: Result) -> list[Any]:
    from matplotlib.lines import Line2D

    texts = {
        PLAIN: "plain", NO_NOISE: "DP-SGD without noise", PRIVATE: "DP-SGD, with its epsilon",
        "random": "random words masked", "ranked": "ranked words masked",
        REWRITING: "SanText, with its epsilon",
    }  # fmt: skip
    kinds = dict.fromkeys(recipe.kind for recipe in result.recipes)
    return [
        Line2D([], [], color=_MARKS[kind][0], marker=_MARKS[kind][1], markersize=5,
               linestyle="none", label=texts.get(kind, kind))
        for kind in kinds
    ]  # fmt: skip
