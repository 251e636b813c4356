"""The attack on rewritten texts as text, plain data and picture."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from ...divergence.reliability.belief import ESTIMATE
from ...report.style import BLUE, GREEN, GREY, INK, ORANGE, RED, WHITE
from ..drawing import SMALL, TEXT, add_legend, apply_style, make_canvas, tidy_axes
from ..text import aligned, encode_fields, make_record_head
from .experiment import GRID, NAME, Cell, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MECHANISM_COLOURS: Final = dict(zip(GRID, (BLUE, GREEN, ORANGE, RED, INK, GREY), strict=True))
_MECHANISM_MARKS: Final = dict(zip(_MECHANISM_COLOURS, "osPD^v", strict=True))


def write_table(result: Result) -> str:
    """Return the figures, and where the claim of the source holds."""
    parts = [_write_head(result)]
    if result.partial:
        parts.append("INTERRUPTED: only what was done is shown")
    usual = result.config.full
    head = ["mechanism", "epsilon", "worst loss", "kept", "attack", "trees", "informed"]
    head += [*(["usual"] if usual else []), "KL", "D_2", "null D_2", "linked"]
    rows = [head]
    for cell in result.cells:
        loss = f"{cell.loss:.4g}{'' if cell.is_exact else ' (bound)'}"
        row = [cell.mechanism, f"{cell.epsilon:g}" if cell.epsilon else "", loss]
        row += [f"{cell.kept:.3f}", _write_spread(cell, "accuracy")]
        row.append(_write_spread(cell, "boosted_trees"))
        row.append(_write_spread(cell, "informed") if cell.informed else "-")
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
        "informed: naive Bayes by an attacker who has the originals of train and the table of the "
        "mechanism, where there is one\n"
        "SanTextPlus: all but the most frequent tenth of the words are sensitive; frequent words "
        "are kept with probability .7"
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
        informed = lowest.spread("informed").mean if lowest.informed else math.nan
        table = f"with the table {informed:.2f}, " if lowest.informed else ""
        found.append(
            f"  {name}: {words} at epsilon {lowest.epsilon:g} (attack {best:.2f}, {table}worst "
            f"loss {lowest.loss:.3g} nats){more}"
        )
    return found


def _write_spread(cell: Cell, name: str) -> str:
    mean, sd = cell.spread(name)
    return f"{mean:.3f}" if math.isnan(sd) else f"{mean:.3f} ({sd:.3f})"


def write_plain_data(result: Result) -> dict[str, Any]:
    """Return everything as plain data for strict JSON."""
    plain = {
        **make_record_head(NAME, result),
        "corpus": result.corpus,
        "vectors": result.vectors,
        "covered": result.covered,
        "texts": result.texts,
        "claim": describe_claim(result),
    }
    cells = [encode_fields(cell) for cell in result.cells]
    return {**plain, "cells": cells}


def draw_figure(result: Result, ax: Any = None) -> Figure:
    """Draw attack, linkage, loss and share kept against epsilon."""
    picture = make_canvas(4.8, ax)
    panels = picture.subplots(2, 3, sharex=True)
    (attack, informed, linkage), (loss, kept, divergence) = panels
    for name in GRID:
        cells = [cell for cell in result.cells if cell.mechanism == name]
        for cell in cells:
            trees = cell.spread("boosted_trees").mean
            attack.plot(cell.epsilon, trees, **_mechanism_style(name, is_full=False))
        _draw_mechanism_line(attack, cells, lambda cell: cell.spread("accuracy"))
        _draw_mechanism_line(
            informed, [c for c in cells if c.informed], lambda cell: cell.spread("informed")
        )
        _draw_mechanism_line(linkage, cells, lambda cell: (cell.linked[0], math.nan))
        _draw_mechanism_line(
            loss, cells, lambda cell: (cell.loss, math.nan), lambda cell: cell.is_exact
        )
        _draw_mechanism_line(kept, cells, lambda cell: (cell.kept, math.nan))
        _draw_mechanism_line(divergence, cells, _find_d_2, lambda cell: cell.beliefs[1] == ESTIMATE)
    unchanged = result.cells[0]
    for axes, figure in ((attack, "accuracy"), (informed, "informed")):
        for y, words in ((unchanged.spread(figure).mean, "unchanged"),
                         (unchanged.majority, "majority")):  # fmt: skip
            axes.axhline(y, color=GREY, linewidth=0.8, linestyle="--", zorder=0)
            axes.annotate(words, (0.0, y), (3, 2), xycoords=("axes fraction", "data"),
                          textcoords="offset points", fontsize=SMALL)  # fmt: skip
    _label_axes(attack, "accuracy of the attack", (0.4, 1.0))
    _label_axes(informed, "accuracy, table known", (0.4, 1.0))
    _label_axes(linkage, f"linked texts of {unchanged.linked_words} words", (-0.03, 1.05))
    _label_axes(loss, "largest loss of two words (nats)", None)
    loss.set_yscale("log")
    infinite = [c.mechanism for c in result.cells[1:] if math.isinf(c.loss)]
    for row, name in enumerate(dict.fromkeys(infinite)):
        loss.text(0.02, 0.98 - 0.09 * row, f"{name}: infinite", transform=loss.transAxes, va="top",
                  fontsize=SMALL, color=_MECHANISM_COLOURS[name])  # fmt: skip
    # Space for these lines above the curves.
    loss.set_ylim(None, loss.get_ylim()[1] * (20.0 if infinite else 1.0))
    _label_axes(kept, "share of words that stay", (-0.03, 1.05))
    _label_axes(divergence, "D_2 of the two sets (nats)", None)
    made = "made-up texts" if result.config.data is None else "medical abstracts"
    picture.suptitle(
        f"Words replaced in {made}: epsilon of one mechanism says nothing about another\n"
        f"hollow: boosted trees, bounds by the noise, D_2 not believed; "
        f"{_summarise_claim(result)}",
        fontsize=TEXT,
    )
    add_legend(picture, attack, 6)
    return apply_style(picture)


def _mechanism_style(name: str, *, is_full: bool) -> dict[str, Any]:
    colour, width = _MECHANISM_COLOURS[name], "elinewidth" if is_full else "markeredgewidth"
    return {"color": colour, "marker": _MECHANISM_MARKS[name], "markersize": 3.5, "linewidth": 1.1,
            "markerfacecolor": colour if is_full else WHITE, width: 0.7,
            "zorder": 2 if is_full else 4}  # fmt: skip


def _draw_mechanism_line(
    axes: Axes, cells: Sequence[Cell], figure: Callable[[Cell], tuple[float, float]],
    is_full: Callable[[Cell], bool] = lambda cell: True,
) -> None:  # fmt: skip
    """Draw a figure of one mechanism against epsilon; infinite ones are left out."""
    points = [(cell, *figure(cell)) for cell in cells if math.isfinite(figure(cell)[0])]
    if not points:
        return
    name, (chosen, means, sds) = cells[0].mechanism, zip(*points, strict=True)
    errors = [0.0 if math.isnan(sd) else sd for sd in sds]
    epsilons = [cell.epsilon for cell in chosen]
    axes.errorbar(epsilons, means, errors, label=name, **_mechanism_style(name, is_full=True))
    for cell, mean, _ in points:
        if not is_full(cell):
            axes.plot(cell.epsilon, mean, **_mechanism_style(name, is_full=False))


def _find_d_2(cell: Cell) -> tuple[float, float]:
    values = [one[1] for one in cell.divergences]
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else math.nan


def _label_axes(axes: Axes, words: str, limits: tuple[float, float] | None) -> None:
    axes.set_xscale("log")
    if axes.get_subplotspec().is_last_row():  # type: ignore[union-attr]
        axes.set_xlabel("epsilon (CusText: per list)", fontsize=TEXT)
    axes.set_ylabel(words, fontsize=TEXT)
    if limits is not None:
        axes.set_ylim(*limits)
    tidy_axes(axes)


def _summarise_claim(result: Result) -> str:
    """Return which mechanisms leave the attack above the floor at their lowest epsilon."""
    names = [line.split(":")[0].strip() for line in describe_claim(result)[1:] if ": yes" in line]
    return f"above the floor at the lowest epsilon: {', '.join(names) or 'no mechanism'}"
