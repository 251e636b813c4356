"""The tables of the experiment on ADePT's sensitivity, and its record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ..text import aligned, make_record_head
from .cost import LAWS, Cost
from .experiment import NAME, Cell, Result

_MAX_TABLE_SIZES: Final = 16
"""Sizes that a table shows; of more, those that have something to be compared with."""


def write_table(result: Result) -> str:
    """Format all tables."""
    config = result.config
    parts = [
        f"Habernal (2021), figure 1: share of pairs more than 2C apart in L1 after clipping\n"
        f"{config.trials:,} pairs for each size and law, C = {config.radius:g}, "
        f"seed {config.seed}"
    ]
    if result.partial:
        parts.append("INTERRUPTED: only what was counted is shown")
    parts += [_format_shares_table(result), _format_excesses(result), _format_remedies(result)]
    return "\n\n".join(parts)


def _format_shares_table(result: Result) -> str:
    head = ["n"]
    for name in LAWS:
        head += [name, "other"]
    rows = [[*head, "L1 clip"]]
    for dim in choose_sizes(
        result.dims, [cell.dim for cell in result.cells if cell.compared is not None]
    ):
        row = [f"{dim}"]
        for law in LAWS:
            cell = result.at(dim, law, "l2")
            row += [_format_share(cell), "-" if cell.compared is None else f"{cell.compared:g}"]
        most = max((result.at(dim, law, "l1") for law in LAWS), key=lambda cell: cell.beyond)
        rows.append([*row, _format_share(most)])
    note = (
        "Entries uniform in [-C, C], normal with standard deviation 0.1 C, and 0.01 C, clipped in\n"
        "L2; other: another run of 10,000 pairs, as printed; L1 clip: the worst of the three laws\n"
        "when clipped in L1 instead. +- is half the width of the 95 % Clopper-Pearson interval."
    )
    if result.smallest_p_value is not None:
        note += (
            f"\nSmallest p-value of the comparisons, times their number: "
            f"{result.smallest_p_value:.2g}."
        )
    return f"{aligned(rows, left=())}\n{note}"


def _format_share(cell: Cell) -> str:
    low, high = cell.interval
    return f"{cell.share:.4f} +- {(high - low) / 2.0:.4f}"


def choose_sizes(dims: Sequence[int], compared: Sequence[int]) -> list[int]:
    """Choose the sizes of a table: all if they are few, else those with a comparison, or some."""
    if len(dims) <= _MAX_TABLE_SIZES:
        return list(dims)
    some = [dim for dim in dims if dim in set(compared)]
    return some or list(dims[:: -(-len(dims) // _MAX_TABLE_SIZES)])


def _format_excesses(result: Result) -> str:
    rows = [["n", "claimed 2C", "true 2C sqrt(n)", "attained", "times higher"]]
    for row in result.excesses:
        figures = (row.claimed, row.true, row.attained, row.factor)
        rows.append([f"{row.dim}", *(f"{value:.6g}" for value in figures)])
    first, last = result.excesses[0], result.excesses[-1]
    title = (
        f"The true sensitivity is {first.factor:.3g} to {last.factor:.3g} times higher than "
        f"claimed for n = {first.dim} to {last.dim},\nand so is the real epsilon"
    )
    return f"{title}\n{aligned(rows, left=())}"


def _format_remedies(result: Result) -> str:
    head = ["n", "scale: L1", "L2"]
    for name in LAWS:
        head += [f"{name}: L1", "L2"]
    found = {(cost.law, cost.dim, cost.norm): cost for cost in result.costs}
    rows = [head]
    for dim in dict.fromkeys(cost.dim for cost in result.costs):
        pairs = [[found[law, dim, norm] for norm in ("l1", "l2")] for law in LAWS]
        scales = [f"{cost.scale:.4g}" for cost in pairs[0]]
        ratios = [f"{cost.ratio:.4g}" for pair in pairs for cost in pair]
        rows.append([f"{dim}", *scales, *ratios])
    title = (
        f"The two remedies, clip in L1 or more noise after the clip in L2, at epsilon = "
        f"{result.config.epsilon:g}:\nscale of the Laplace noise; length of the noise over that of "
        f"the clipped vector, by law\n(both root mean square L2 lengths)"
    )
    return f"{title}\n{aligned(rows, left=())}"


def write_plain_data(result: Result) -> dict[str, Any]:
    """Return the result as plain data."""
    return {
        **make_record_head(NAME, result),
        "smallest_p_value": result.smallest_p_value,
        "cells": [_count_to_dict(cell) for cell in result.cells],
        "true_sensitivity": [
            {
                "dim": row.dim,
                "claimed": row.claimed,
                "true": row.true,
                "attained": row.attained,
                "factor": row.factor,
            }
            for row in result.excesses
        ],
        "remedies": [_cost_to_dict(cost) for cost in result.costs],
    }


def _count_to_dict(cell: Cell) -> dict[str, Any]:
    low, high = cell.interval
    return {
        "dim": cell.dim,
        "law": cell.law,
        "clip": cell.norm,
        "beyond": cell.beyond,
        "pairs": cell.pairs,
        "share": cell.share,
        "low": low,
        "high": high,
        "compared": cell.compared,
        "p_value": cell.p_value,
        "seed": str(cell.seed),
    }


def _cost_to_dict(cost: Cost) -> dict[str, Any]:
    return {
        "law": cost.law,
        "clip": cost.norm,
        "dim": cost.dim,
        "scale": cost.scale,
        "signal": cost.signal,
        "noise_to_signal": cost.ratio,
    }
