"""The faults, the ways and what they certify, as text, plain data and picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...report.style import BLUE, INK, RED
from ..drawing import SMALL, TEXT, add_legend, apply_style, make_canvas, tidy_axes
from ..text import aligned, encode_fields, make_record_head
from .experiment import (
    MANY_SIGMA,
    MANY_STEPS,
    NAME,
    RUN_SIGMA,
    STEP_SIGMA,
    STEPS,
    WAYS,
    Cell,
    Result,
)
from .faults import FAULTS, FIXED, POISSON

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def write_table(result: Result) -> str:
    """Return the audits as text, a row for each data set and fault."""
    config = result.config
    head = (
        f"Faults of DP-SGD and three audits: {config.size:,} trials a side, seed {config.seed}\n"
        f"one step: sigma {STEP_SIGMA:g}; one run: {STEPS} steps, sigma {RUN_SIGMA:g}; many runs: "
        f"{config.many:,} trainings a side, {MANY_STEPS} steps, sigma {MANY_SIGMA:g}"
    )
    rows = [["data", "fault"]]
    for way in WAYS:
        rows[0] += [way, "claim", "s"]
    for data in config.corpora:
        for fault in FAULTS:
            cells = [result.of(data, fault, way) for way in WAYS]
            if any(cells):
                rows.append([data, fault, *(text for cell in cells for text in _write_cell(cell))])
    parts = [head, aligned(rows, left=(0, 1)), _AUDITS_GLOSSARY, _judge_audits(result)]
    if result.partial:
        parts.insert(1, "INTERRUPTED: only what was done is shown")
    return "\n\n".join(parts)


_AUDITS_GLOSSARY: Final = """\
certified mu at 95 %; ! = refutes the claim; - = does not apply, or not run (--quick)
The same largest number in many rows of a column is the most that its draws or guesses certify.
One run: its canaries show no noise and one draw alone; that it passes other faults is expected.
Many runs: what one record adds to the weights hides some faults; small ones take more trainings.
Poisson batches, fixed batches: the sums of an epoch of 100 batches, sigma 1, are released."""


def _judge_audits(result: Result) -> str:
    """Say if every fault was refuted by the way that must see it, and no repaired recipe."""
    odd = ", ".join(f"{one.fault} ({one.data}, {one.way})" for one in result.unexpected)
    if odd:
        return f"NOT AS EXPECTED: {odd}"
    return (
        "As expected, one step refutes every fault of a step, the sums of an epoch refute fixed "
        "batches,\nand no repaired recipe is refuted."
    )


def _write_cell(cell: Cell | None) -> list[str]:
    if cell is None:
        return ["-", "-", "-"]
    mark = "!" if cell.refuted else " "
    return [f"{cell.certified:.2f}{mark}", f"{cell.claim:.2f}", f"{cell.seconds:.1f}"]


def write_plain_data(result: Result) -> dict[str, Any]:
    """Return everything as plain data for strict JSON."""
    cells = [encode_fields(cell) for cell in result.cells]
    return {**make_record_head(NAME, result), "faults": FAULTS, "cells": cells}


def draw_figure(result: Result, ax: Any = None) -> Figure:
    """Draw certified bounds as bars and claims as lines, a panel for each way."""
    picture = make_canvas(3.6, ax)
    panels = picture.subplots(1, len(WAYS), sharey=True)
    for axes, way in zip(panels, WAYS, strict=True):
        _draw_way(axes, result, way)
    panels[0].set_yticks(range(len(FAULTS)), list(FAULTS), fontsize=SMALL)
    panels[0].invert_yaxis()
    bars = " (upper bars: generated data, lower bars: digits)"
    picture.supxlabel(f"mu{bars if len(result.config.corpora) > 1 else ''}", fontsize=TEXT)
    add_legend(picture, panels[0], side="upper")
    return apply_style(picture)


def _draw_way(axes: Axes, result: Result, way: str) -> None:
    names, corpora = list(FAULTS), result.config.corpora
    height = 0.8 / len(corpora)
    for label, colour in _VERDICT_COLOURS.items():
        axes.barh(0.0, 0.0, color=colour, label=label)
    axes.plot([], [], color=INK, linewidth=1.0, label="claimed")
    for cell in result.cells:
        if cell.way == way:
            place = names.index(cell.fault) - 0.4 + height * (corpora.index(cell.data) + 0.5)
            colour = list(_VERDICT_COLOURS.values())[cell.refuted]
            # A bound of 0 has a visible edge.
            axes.barh(place, cell.certified, 0.8 * height, color=colour, edgecolor=colour)
            ends = np.array([-0.5, 0.5]) * height + place
            axes.plot([cell.claim] * 2, ends, color=INK, linewidth=1.0)
    used = {cell.fault for cell in result.cells if cell.way == way}
    for fault in set(names) - used:
        text = "does not apply" if fault in (POISSON, FIXED) else "not run"
        axes.text(0.05, names.index(fault), text, fontsize=SMALL, va="center")
    axes.set_title(way, fontsize=TEXT)
    tidy_axes(axes)


_VERDICT_COLOURS: Final = {"certified, claim not refuted": BLUE, "certified, claim refuted": RED}
