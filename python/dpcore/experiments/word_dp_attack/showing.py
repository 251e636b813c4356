"""The attack on rewritten texts as text, plain data and picture."""

from __future__ import annotations

import math
import statistics
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from ...divergence.reliability.belief import ESTIMATE
from ...report.encoding import encode
from ...report.style import BLUE, GREEN, GREY, INK, RED, WHITE
from ..drawing import SMALL, TEXT, canvas, dressed, tidy
from ..text import aligned, record
from .experiment import NAME, Cell, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS: Final = dict(
    zip(("SanText", "TEM", "CusText", "MetricLaplace", "Vickrey"), (BLUE, GREEN, RED, INK, GREY),
        strict=True)
)  # fmt: skip
_MARKS: Final = dict(zip(_COLOURS, "osD^v", strict=True))

_LOW_EPSILON: Final = 1.0
"""Epsilons up to this one are low in the sense of the source."""


def write_table(result: Result) -> str:
    """Return the figures, and where the claim of the source holds."""
    parts = [_write_head(result)]
    if result.partial:
        parts.append("INTERRUPTED: only what was done is shown")
    usual = result.config.full
    head = ["mechanism", "epsilon", "worst loss", "kept", "attack", "trees"]
    head += [*(["usual"] if usual else []), "KL", "D_2", "null D_2", "linked"]
    rows = [head]
    for cell in result.cells:
        loss = f"{cell.loss:.4g}{'' if cell.is_exact else ' (bound)'}"
        row = [cell.mechanism, f"{cell.epsilon:g}" if cell.epsilon else "", loss]
        row += [f"{cell.kept:.3f}", _write_spread(cell, "accuracy")]
        row.append(_write_spread(cell, "boosted_trees"))
        row += [_write_spread(cell, "usual")] if usual else []
        for order in (0, 1):
            hollow = "" if cell.beliefs[order] == ESTIMATE else "?"
            row.append(f"{statistics.fmean(one[order] for one in cell.divergences):.2f}{hollow}")
        row.append(f"{statistics.fmean(one[1] for one in cell.null):.2f}")
        row.append("{:.2f} [{:.2f}, {:.2f}]".format(*cell.linked))
        rows.append(row)
    parts.append(aligned(rows))
    parts.append(_write_legend(result))
    parts.append("\n".join(describe_claim(result)))
    return "\n\n".join(parts)


def _write_head(result: Result) -> str:
    config, first = result.config, result.cells[0]
    made = " (made-up texts: give --data for real ones)" if config.data is None else ""
    splits = f"mean (sd) of {config.seeds} splits" if config.seeds != 1 else "one split"
    return (
        f"Attack on texts of which words are replaced: {result.corpus}{made}\n"
        f"{result.texts:,} texts a side; vectors of {result.vectors}, learnt on other texts, for "
        f"{100 * result.covered:.0f} % of the words (others are dropped)\n"
        f"{splits} of 40/30/30 % to fit, choose and test, seed {config.seed}; floor "
        f"{first.majority:.2f}, interval of the first split +- "
        f"{(first.interval[1] - first.interval[0]) / 2:.2f}"
    )


def _write_legend(result: Result) -> str:
    first = result.cells[0]
    return (
        "worst loss: nats for any two words, exact; inf where two words have unlike lists of "
        "outputs; (bound) by the noise alone\n"
        "attack: logistic regression on words or on mean vectors, chosen on validation; trees: "
        "scikit-learn's boosted trees on mean vectors\n"
        "KL, D_2: estimates between the two sets of mean vectors, which bound nothing and say "
        "nothing about one text; ? = not resolved or saturated\n"
        f"linked: share of {first.linked_texts:,} texts of {first.linked_words} words that the "
        "likeliest (or nearest) original is right for, 95 % interval\n"
        "SanTextPlus is left out: it needs a list of sensitive words"
    )


def describe_claim(result: Result) -> list[str]:
    """Return sentences on where the attack stays accurate at low epsilons."""
    found = ["Does the attack stay accurate at low epsilon (Gusain and Leith, figure 4)?"]
    for name in result.config.grid:
        cells = [cell for cell in result.cells if cell.mechanism == name]
        if not cells:
            continue
        lowest = cells[0]
        best = max(lowest.spread("accuracy").mean, lowest.spread("boosted_trees").mean)
        error = (lowest.interval[1] - lowest.interval[0]) / 2
        words = "yes" if best > lowest.majority + 2 * error else "not shown"
        linked = [cell for cell in cells if cell.linked[1] > 0.5]
        more = ""
        if linked:
            more = f"; more than half of the texts are linked from epsilon {linked[0].epsilon:g} on"
        found.append(
            f"  {name}: {words} at epsilon {lowest.epsilon:g} (attack {best:.2f}, worst loss "
            f"{lowest.loss:.3g} nats){more}"
        )
    return found


def _write_spread(cell: Cell, name: str) -> str:
    mean, sd = cell.spread(name)
    return f"{mean:.3f}" if math.isnan(sd) else f"{mean:.3f} ({sd:.3f})"


def write_plain_data(result: Result) -> dict[str, Any]:
    """Return everything as plain data for strict JSON."""
    plain = {
        **record(NAME, result),
        "corpus": result.corpus,
        "vectors": result.vectors,
        "covered": result.covered,
        "texts": result.texts,
        "claim": describe_claim(result),
    }
    cells = [{key: encode(value) for key, value in asdict(cell).items()} for cell in result.cells]
    return {**plain, "cells": cells}


def draw_figure(result: Result, ax: Any = None) -> Figure:
    """Draw attack, linkage, loss and share kept against epsilon."""
    picture = canvas(5.4, ax)
    (attack, linkage), (loss, kept) = picture.subplots(2, 2, sharex=True)
    unchanged = result.cells[0]
    for name, colour in _COLOURS.items():
        cells = [cell for cell in result.cells if cell.mechanism == name]
        if not cells:
            continue
        style: dict[str, Any] = {
            "color": colour, "marker": _MARKS[name], "markersize": 3.5, "linewidth": 1.1,
        }  # fmt: skip
        x = [cell.epsilon for cell in cells]
        means, sds = zip(*(cell.spread("accuracy") for cell in cells), strict=True)
        errors = [0.0 if math.isnan(sd) else sd for sd in sds]
        attack.errorbar(x, means, errors, elinewidth=0.7, label=name, **style)
        trees = [cell.spread("boosted_trees").mean for cell in cells]
        attack.plot(x, trees, linestyle="none", marker=_MARKS[name], markersize=3.5, color=colour,
                    markerfacecolor=WHITE, markeredgewidth=0.7)  # fmt: skip
        low, high = ([abs(c.linked[0] - c.linked[i]) for c in cells] for i in (1, 2))
        linked = [cell.linked[0] for cell in cells]
        linkage.errorbar(x, linked, [low, high], elinewidth=0.7, **style)
        hollow = {} if cells[0].is_exact else {"markerfacecolor": WHITE, "linestyle": ":"}
        finite = [(cell.epsilon, cell.loss) for cell in cells if math.isfinite(cell.loss)]
        if finite:
            loss.plot(*zip(*finite, strict=True), **{**style, **hollow})
        kept.plot(x, [cell.kept for cell in cells], **style)
    for y, words in ((unchanged.spread("accuracy").mean, "unchanged"),
                     (unchanged.majority, "majority")):  # fmt: skip
        attack.axhline(y, color=GREY, linewidth=0.8, linestyle="--")
        attack.annotate(words, (1.0, y), (-2, 2), xycoords=("axes fraction", "data"),
                        textcoords="offset points", ha="right", fontsize=SMALL)  # fmt: skip
    _label(attack, "accuracy of the attack on the set", (0.4, 1.0))
    _label(linkage, f"linked texts of {unchanged.linked_words} words", (-0.03, 1.05))
    _label(loss, "largest loss of two words (nats)", None)
    loss.set_yscale("log")
    if any(math.isinf(cell.loss) for cell in result.cells[1:]):
        loss.text(0.02, 0.97, "CusText: infinite", transform=loss.transAxes, va="top",
                  fontsize=SMALL, color=_COLOURS["CusText"])  # fmt: skip
    _label(kept, "share of words that stay", (-0.03, 1.05))
    made = "made-up texts" if result.config.data is None else "medical abstracts"
    picture.suptitle(
        f"Words replaced in {made}: epsilon of one mechanism says nothing about another\n"
        f"hollow: boosted trees (top left), bounds by the noise (bottom left); {_claim(result)}",
        fontsize=TEXT,
    )
    picture.legend(
        *attack.get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False,
        fontsize=SMALL,
    )  # fmt: skip
    return dressed(picture)


def _label(axes: Axes, words: str, limits: tuple[float, float] | None) -> None:
    axes.set_xscale("log")
    if axes.get_subplotspec().is_last_row():  # type: ignore[union-attr]
        axes.set_xlabel("epsilon per unit of distance (CusText: per list)", fontsize=TEXT)
    axes.set_ylabel(words, fontsize=TEXT)
    if limits is not None:
        axes.set_ylim(*limits)
    tidy(axes)


def _claim(result: Result) -> str:
    """Return which mechanisms leave the attack above the floor at their lowest epsilon."""
    names = [line.split(":")[0].strip() for line in describe_claim(result)[1:] if ": yes" in line]
    return f"above the floor at the lowest epsilon: {', '.join(names) or 'no mechanism'}"
