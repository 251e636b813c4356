"""The distances of models as text, as plain data and as a picture."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...report.style import BLUE, GREY, INK, RED, dressed
from ..drawing import SMALL, canvas, tidy
from ..text import aligned, record
from .experiment import COMPARISONS, MEASURES, NAME, Floats, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PANELS: Final = {
    "CKA": "CKA of decoders", "PWCCA": "PWCCA of decoders", "Procrustes": "Procrustes of decoders",
    "KL": "KL of next words, nats",
}  # fmt: skip
"""The measures that are drawn, with the titles of their panels."""

_LINES: Final = (
    ("sensitive and safe, same start", RED, "o-"), ("two halves of safe, same start", BLUE, "s-"),
    ("sensitive and safe, two starts", GREY, "^--"),
)  # fmt: skip
"""Label, colour and style of each of `COMPARISONS`."""

_NOTES: Final = (
    "Distances of decoder weights, then of hidden states in the same contexts of held-out texts, "
    "all words read; KL: of the next-word distributions there, mean of both directions, in nats. "
    "In brackets the standard deviation over splits. PWCCA has the weights of the model named first.",
    "safe/safe: two disjoint halves of the safe set, the control. excess: sensitive/safe less "
    "safe/safe, in the same split. Models of a comparison have the same start and as many texts, "
    "those of two starts as many texts.",
    "*: the 95 % t-interval of the mean excess over the splits lies above 0, for each figure by "
    "itself. Splits draw from the same corpus and share texts: the interval covers the choice of "
    "texts and start, not other corpora.",
)  # fmt: skip


def list_findings(result: Result) -> list[str]:
    """Return a sentence on each measure that is drawn, then the answer to the question."""
    ends = result.levels[0], result.levels[-1]
    found = []
    for measure in _PANELS:
        far, near, other = (
            " to ".join(f"{result.mean(level, name, measure):.3f}" for level in ends)
            for name in COMPARISONS
        )
        excess = " to ".join(f"{result.excess(level, measure).mean():.3f}" for level in ends)
        shown = [f"{level:g}" for level in result.levels if result.is_excess_shown(level, measure)]
        found.append(
            f"{measure}, level {ends[0]:g} to {ends[1]:g}: sensitive/safe {far}, the control safe/safe "
            f"{near}, excess {excess}, above 0 at {', '.join(shown) or 'no level'}; sensitive/safe "
            f"with two starts {other}."
        )  # fmt: skip
    return [*found, _answer_question(result, *ends)]


def _answer_question(result: Result, low: float, high: float, measure: str = "Procrustes") -> str:
    far, near = (
        [result.mean(level, name, measure) for level in (low, high)]
        for name in ("sensitive/safe", "safe/safe")
    )
    if far[0] <= far[1]:
        return f"Redaction does not bring the decoders closer: {measure} does not fall."
    return (
        f"{measure} of the decoders falls by {far[0] - far[1]:.3f} for sensitive/safe and by "
        f"{near[0] - near[1]:.3f} for two halves of the safe set, which differ by chance alone. "
        f"Sensitive/safe is {far[0] / near[0]:.2f} times the control at level {low:g}, and "
        f"{far[1] / near[1]:.2f} times at {high:g}."
    )


def write_table(result: Result) -> str:
    """Return the figures of all levels, the notes and the findings."""
    made = " (generated texts: give --data for real ones)" if result.config.data is None else ""
    splits = len({cell.split for cell in result.cells})
    head = [
        f"Closeness of next-word models: {result.corpus}{made}",
        f"{result.texts:,} texts a model, {result.words:,} words; compared on {result.held_out:,} "
        f"held-out texts; {splits} {'split' if splits == 1 else 'splits'}; {result.dropped:,} texts "
        f"of both sets were left out; seed {result.config.seed}",
    ]  # fmt: skip
    rows: list[tuple[str, ...]] = [("masked", "models", *MEASURES)]
    rates = []
    for level in result.levels:
        cells = [cell for cell in result.cells if cell.level == level]
        for name in COMPARISONS:
            values = [result.values(level, name, measure) for measure in MEASURES]
            rows.append((f"{level:g}", name, *map(_write_mean, values)))
        marks = ("*" if result.is_excess_shown(level, measure) else "" for measure in MEASURES)
        excess = (_write_mean(result.excess(level, measure)) for measure in MEASURES)
        rows.append((f"{level:g}", "excess", *map(str.__add__, excess, marks)))
        rows += [
            (f"{level:g}", "permutation p", *(f"{value:.2f}" for value in cell.p_values))
            for cell in cells
            if cell.p_values is not None
        ]
        model, law = np.mean([(cell.perplexity, cell.unigram) for cell in cells], axis=0)
        rates.append(f"{level:g}: {model:.1f} ({law:.1f})")
    notes = [*_NOTES, f"Perplexity of these texts, in brackets unigram: {', '.join(rates)}."]
    notes += ["INTERRUPTED: not every split has every level."] if result.partial else []
    lines = [textwrap.fill(note, 110) for note in (*notes, *result.findings())]
    return "\n\n".join(["\n".join(head), aligned(rows, left=(0, 1)), "\n".join(lines)])


def _write_mean(values: Floats) -> str:
    spread = f" ({values.std(ddof=1):.3f})" if len(values) > 1 else ""
    return f"{values.mean():.3f}{spread}"


def write_plain_data(result: Result) -> dict[str, Any]:
    """Return all figures as plain data for strict JSON, without any text."""
    names = ("corpus", "dropped", "texts", "held_out", "words")
    cells = [
        {
            "split": cell.split, "level": cell.level, "perplexity": cell.perplexity,
            "unigram": cell.unigram,
            "values": dict(zip(COMPARISONS, map(_name_values, cell.values), strict=True)),
            "p_values": None if cell.p_values is None else _name_values(cell.p_values),
        }
        for cell in result.cells
    ]  # fmt: skip
    own_fields = {name: getattr(result, name) for name in names}
    return {**record(NAME, result), **own_fields, "cells": cells, "findings": result.findings()}


def _name_values(values: Floats) -> dict[str, float]:
    return dict(zip(MEASURES, values.tolist(), strict=True))


def draw_figure(result: Result, ax: Any = None) -> Figure:
    """Draw the distances above, and the excess of sensitive/safe over the control below."""
    picture = canvas(4.6, ax)
    panels = picture.subplots(2, len(_PANELS), sharex=True)
    for (measure, title), (upper, lower) in zip(_PANELS.items(), panels.T, strict=True):
        for name, (label, hue, line) in zip(COMPARISONS, _LINES, strict=True):
            values = [result.values(level, name, measure) for level in result.levels]
            _draw_line(upper, result.levels, values, hue, line, label)
        excess = [result.excess(level, measure) for level in result.levels]
        _draw_line(lower, result.levels, excess, INK, "D-", "excess")
        lower.axhline(0.0, color=GREY, linewidth=0.8, linestyle=":")
        upper.set_title(title, fontsize=SMALL + 1)
        upper.set_ylim(bottom=0.0)
        lower.set_xlabel("share of words masked", fontsize=SMALL)
        lower.set_xticks([0.0, 0.5, 1.0], ["0", ".5", "1"])
        tidy(upper)
        tidy(lower)
    panels[0, 0].set_ylabel("distance (0: as one model)", fontsize=SMALL)
    panels[1, 0].set_ylabel(
        "excess of sensitive and safe over\ntwo halves of safe (0: chance)", fontsize=SMALL
    )
    made = "generated texts" if result.config.data is None else "texts"
    splits = len({cell.split for cell in result.cells})
    spread = f"mean and standard deviation of {splits} splits" if splits > 1 else "one split"
    picture.suptitle(f"How close are two models of redacted {made}? {spread}", fontsize=SMALL + 1)
    labels = panels[0, 0].get_legend_handles_labels()
    picture.legend(*labels, loc="outside lower center", ncols=3, frameon=False, fontsize=SMALL)
    return dressed(picture)


def _draw_line(
    axes: Axes, levels: Sequence[float], values: Sequence[Floats], hue: str, line: str, label: str
) -> None:
    spreads = [one.std(ddof=1) if len(one) > 1 else 0.0 for one in values]
    axes.errorbar(
        levels, [one.mean() for one in values], spreads, fmt=line, color=hue, markersize=3.5,
        linewidth=1.2, elinewidth=0.8, capsize=2, label=label,
    )  # fmt: skip
