"""Effect of masked names, as text, plain data and picture."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any, Final

from ...report.style import BLUE, GREEN, GREY, INK, RED, WHITE
from ..drawing import TEXT, add_legend, apply_style, make_canvas, tidy_axes
from ..text import aligned, encode_fields, make_record_head
from .experiment import NAME, POLICIES, TOPIC, Cell, Masking, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KINDS: Final = (
    (POLICIES[0], "words", "nothing masked", INK, "o"),
    (POLICIES[1], "words", "first names masked", BLUE, "s"),
    (POLICIES[2], "words", "first names and people masked", GREEN, "D"),
    (POLICIES[1], "masks", "masks of first names alone", RED, "^"),
    (POLICIES[2], "masks", "masks of both alone", RED, "v"),
    (POLICIES[0], "masks", "number of words alone", GREY, "x"),
)
"""Policy, what is read, and its label, colour and mark."""

LISTED: Final = 0.5
"""A person's name is masked if it occurs in less than this share of the texts on him."""


def write_table(result: Result) -> str:
    """Return what is masked, and what is inferred of each person and of the topic."""
    parts = [_write_head(result)]
    if result.partial:
        parts.append("INTERRUPTED: only what was done is shown")
    masked = [["masked", "words", "texts", *(f"{name} left" for name in result.people)]]
    for one in result.maskings[1:]:
        shares = (one.words, one.texts, *one.named)
        masked.append([one.policy, *(f"{100 * share:.1f} %" for share in shares)])
    parts.append(aligned(masked))
    rows = [["attacker reads", *result.targets]]
    for policy, reads, label, *_ in KINDS:
        found = (result.of(policy, reads, target) for target in result.targets)
        rows.append([label, *map(_write_figure, found)])
    floors = (result.of(POLICIES[0], "words", target)[0].floor for target in result.targets)
    parts.append(aligned([*rows, ["floor", *(f"{floor:.3f}        " for floor in floors)]]))
    parts.append(
        "left: share of the texts on a person in which the name still occurs, in any case or word\n"
        "F1 of each person, accuracy of the topic; +- half of the 95 % interval; * = above the "
        "floor of a constant answer;\nintervals and stars are those of the first split"
    )
    parts.append("\n".join(describe_findings(result)))
    return "\n\n".join(parts)


def _write_head(result: Result) -> str:
    config = result.config
    splits = f"mean of {config.seeds} splits" if config.seeds != 1 else "one split"
    return (
        f"Names masked in texts: {result.corpus}{config.origin_note}\n"
        f"{result.texts:,} texts, {splits}, {result.cells[0].tested:,} test texts that occur in no "
        f"other part; seed {config.seed}\n"
        f"names are masked where they are capitalised; {100 * result.cased:.0f} % of the texts "
        f"have capital letters"
    )


def _write_figure(cells: tuple[Cell, ...]) -> str:
    if not cells:
        return "-"
    _, low, high = cells[0].value
    mean = statistics.fmean(cell.value[0] for cell in cells)
    mark = "*" if cells[0].beats_floor else " "
    return f"{mean:.3f} +-{(high - low) / 2:.3f}{mark}"


def describe_findings(result: Result) -> list[str]:
    """Return sentences on the people whose names are masked, and on the topic."""
    found = []
    for policy, masking in zip(POLICIES[1:], result.maskings[1:], strict=True):
        hidden = [name for name in list_hidden(result, masking) if result.of(policy, "words", name)]
        above = [name for name in hidden if result.of(policy, "words", name)[0].beats_floor]
        means = (
            " -> ".join(f"{result.mean(one, 'words', name):.2f}" for one in (POLICIES[0], policy))
            for name in hidden
        )
        lines = ", ".join(map(" ".join, zip(hidden, means, strict=True)))
        found.append(
            f"With {policy} masked, {len(above)} of {len(hidden)} people whose names are masked "
            f"are inferred from the other words (F1 above the floor):\n  {lines}"
        )
    topics = [result.mean(policy, "words", TOPIC) for policy in POLICIES]
    pairs = zip(topics, POLICIES, strict=True)
    shown = ", ".join(f"{topic:.3f} ({policy})" for topic, policy in pairs)
    return [*found, f"Accuracy of the topic by what is masked: {shown}."]


def list_hidden(result: Result, masking: Masking) -> list[str]:
    """Return the people whose names a policy masks."""
    pairs = zip(result.people, masking.named, strict=True)
    return [name for name, share in pairs if share < LISTED]


def write_plain_data(result: Result) -> dict[str, Any]:
    """Return everything as plain data for strict JSON."""
    return {
        **make_record_head(NAME, result),
        "corpus": result.corpus,
        "texts": result.texts,
        "people": list(result.people),
        "findings": describe_findings(result),
        "maskings": [encode_fields(one) for one in result.maskings],
        "cells": [encode_fields(cell) for cell in result.cells],
    }


def draw_figure(result: Result, ax: Any = None) -> Figure:
    """Draw F1 of each person and accuracy of the topic, with intervals and floors."""
    picture = make_canvas(3.9, ax)
    people, topic = picture.subplots(1, 2, width_ratios=(5, 1.3))
    for axes, is_topic in ((people, False), (topic, True)):
        _draw_targets(axes, result, [one for one in result.targets if (one == TOPIC) == is_topic])
    people.set_ylabel("F1 of the attack on each person", fontsize=TEXT)
    topic.set_ylabel("accuracy of the topic", fontsize=TEXT)
    made = "generated texts" if result.config.data is None else "AG news on five people"
    picture.suptitle(
        f"Names masked in {result.texts:,} {made}: who is still inferred?\nthe list of first names "
        f"has {', '.join(list_hidden(result, result.maskings[1]))}; hollow: not above the floor; "
        "intervals of the first split",
        fontsize=TEXT,
    )
    add_legend(picture, people)
    return apply_style(picture)


def _draw_targets(axes: Axes, result: Result, targets: list[str]) -> None:
    for place, target in enumerate(targets):
        floor = result.of(POLICIES[0], "words", target)[0].floor
        axes.hlines(
            floor, place - 0.42, place + 0.42, color=GREY, linestyle="--", linewidth=0.9,
            label="" if place else "floor",
        )  # fmt: skip
        for number, (policy, reads, label, colour, mark) in enumerate(KINDS):
            cells = result.of(policy, reads, target)
            if not cells:
                continue
            x = place + 0.13 * (number - (len(KINDS) - 1) / 2)
            axes.vlines(x, *cells[0].value[1:], color=colour, linewidth=0.8)
            axes.plot(
                x, result.mean(policy, reads, target), color=colour, marker=mark, markersize=4,
                linestyle="none", label="" if place else label,
                markerfacecolor=colour if cells[0].beats_floor else WHITE,
            )  # fmt: skip
    axes.set_xticks(range(len(targets)), targets)
    axes.set_ylim(-0.03, 1.04)
    tidy_axes(axes)
