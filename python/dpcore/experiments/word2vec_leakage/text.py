"""The leakage of word2vec as text and as plain data."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from ...report.encoding import encode_value
from ..text import aligned, make_record_head
from .earlier import SENTENCES, SINGLE, STUDY
from .experiment import DROPPED, HALVES, NAME, STARTS, Result
from .leakage import Leakage

Found = Sequence[Leakage]


def real_sentences(result: Result) -> bool:
    """Return True if the sentences are those of the earlier figures, all of them."""
    return result.corpus.startswith("leakage:") and result.config.trials >= SENTENCES


def write_table(result: Result) -> str:
    """Format the figures, with those of others on the same sentences."""
    config = result.config
    parts = [_describe_run(result)]
    if result.partial:
        parts.append("INTERRUPTED: only what was done is shown")
    parts.append(_format_main(result))
    parts.append(
        "dropped: leading principal directions of each embedding that are removed first, with its "
        "mean vector\n(any attacker can who sees the vectors of many words)"
    )
    if real_sentences(result):
        parts.append(
            "single: an earlier single run (1,496 held-out words, V = 3,537). study: gensim 3.8.3, "
            "two samples of 50 %.\n* not reproduced: outside the intervals of all runs here."
        )
    if noise := _format_noise(result):
        parts.append(noise)
    if config.full:
        parts.append(_format_sizes(result))
    return "\n\n".join(parts)


def _describe_run(result: Result) -> str:
    config, first = result.config, result.cells[0].found
    chance = first.chance
    made = " (made-up sentences: give --data for real ones)" if config.data is None else ""
    runs = f"mean and spread of {config.seeds} seeds" if config.seeds != 1 else "1 seed"
    return (
        f"Leakage of word2vec: {result.corpus}{made}\n"
        f"{runs}, seed {config.seed}; in the first run V = {first.vocabulary:,} words of the "
        f"attacker, {first.words:,} held-out ones\n(drawn at random from the common words of two "
        f"halves, the same for every start and number of anchors),\nchance "
        f"{chance[0]:.4f} top-1, {chance[1]:.4f} top-5; intervals of the first run at "
        f"{100 * config.confidence:g} % each (Clopper-Pearson)"
    )


def _format_main(result: Result) -> str:
    head = ["halves", "start", "words", "anchors", "dropped", "top-1", "interval", "top-5"]
    compared = real_sentences(result)
    rows = [[*head, "single", "study"] if compared else head]
    for name in HALVES:
        cases = [(start, n, True, 0) for n in (0, result.anchored) for start in STARTS]
        # The start alone: neither anchors nor what all vectors share.
        cases += [(start, 0, True, DROPPED) for start in STARTS]
        for start, anchors, held_out, drop in [*dict.fromkeys(cases), ("hashed", 0, False, 0)]:
            found = result.found(start, anchors, halves=name, held_out=held_out, dropped=drop)
            if not found:
                continue
            words = "held out" if held_out else "all"
            row = [name, STARTS[start], words, str(anchors), str(drop)]
            row += [
                format_share_mean_sd(found, 1),
                _format_share_interval(found[0]),
                format_share_mean_sd(found, 5),
            ]
            if compared:
                row.append(
                    _format_earlier(
                        found, SINGLE.get((name, start, anchors)) if held_out and not drop else None
                    )
                )
                row.append(
                    _format_earlier(found, None if held_out or name == "disjoint" else STUDY)
                )
            rows.append(row)
    return aligned(rows, left=(0, 1, 2))


def format_share_mean_sd(found: Found, topn: int) -> str:
    """Format mean and standard deviation over the runs; of one run the share."""
    shares = [one.share(topn).value for one in found]
    mean = f"{statistics.fmean(shares):.3f}"
    return f"{mean} +- {statistics.stdev(shares):.3f}" if len(shares) > 1 else mean


def _format_share_interval(found: Leakage) -> str:
    share = found.share(1)
    return f"[{share.low:.3f}, {share.high:.3f}]"


def _format_earlier(found: Found, figures: tuple[str, str] | None) -> str:
    """Format the figures of others, with a star if no run's interval holds one."""
    if figures is None:
        return "-"
    return " / ".join(
        f"{value}{'' if is_reproduced(found, topn, value) else '*'}"
        for topn, value in zip((1, 5), figures, strict=True)
    )


def is_reproduced(found: Found, topn: int, value: str) -> bool:
    """Return True if a figure, within its rounding, lies in the interval of some run."""
    half = 0.5 * 10.0 ** -(len(value) - 1)
    shares = [one.share(topn) for one in found]
    return any(s.low - half <= float(value) <= s.high + half for s in shares)


def _format_noise(result: Result) -> str:
    kinds = [(0, "hashed", False), (0, "hashed", True)]
    if result.anchored:
        kinds += [(result.anchored, start, True) for start in STARTS]
    heads = [
        ["claimed", "true", *(f"{start}, {n}" for n, start, _ in kinds)],
        ["epsilon", "epsilon", *("centred" if c else "raw" for _, _, c in kinds)],
    ]
    rows = []
    for level in result.config.epsilons:
        columns = [
            result.found(start, n, epsilon=level, centred=centre) for n, start, centre in kinds
        ]
        if not all(columns):
            continue
        true = columns[0][0].true
        shares = [f"{statistics.fmean(o.share(1).value for o in one):.3f}" for one in columns]
        rows.append([f"{level:g}", f"{true:g}", *shares])
    if not rows:
        return ""
    note = (
        "Noise on the victim's vectors (min-max and Laplace of scale 1/epsilon), disjoint halves, "
        "top-1 by start and anchors;\ntrue: what the noise gives for any two vectors; centred: "
        "the mean of each vector is subtracted on both sides"
    )
    parts = [note, aligned([*heads, *rows], left=())]
    if result.corpus.startswith("leakage:"):
        clean = result.mean("hashed", 0)
        kept = [
            f"{100 * result.mean('hashed', 0, epsilon=level, centred=True) / clean:.0f} % at "
            f"{level:g}"
            for level in result.config.epsilons
            if level <= 10.0
        ]
        parts.append(
            "The study, of one sentence: lost at claimed 1 and below, mostly recovered at 5, fully "
            f"at 10.\nHere, of what is found without noise ({STARTS['hashed']}, no anchors): "
            f"{', '.join(kept)}."
        )
    return "\n\n".join(parts)


def _format_sizes(result: Result) -> str:
    heads = ["sentences", "V", "held out", *STARTS, "anchors", *STARTS, "dropped", "hashed"]
    rows = []
    for size in dict.fromkeys(cell.size for cell in result.cells):
        held = [c.found for c in result.cells if c.size == size and c.halves == "disjoint"]
        most = max(one.anchors for one in held if one.anchors <= result.anchored)
        found = [result.found(start, n, size=size) for n in (0, most) for start in STARTS]
        if not all(found):
            continue
        found.append(result.found("hashed", 0, size=size, dropped=DROPPED))
        shares = [format_share_mean_sd(one, 1) for one in found]
        first = found[0][0]
        rows.append(
            [f"{100 * size:g} %", f"{first.vocabulary:,}", f"{first.words:,}", *shares[:3],
             str(most), *shares[3:6], str(DROPPED), shares[6]]
        )  # fmt: skip
    note = (
        "Smaller corpora, disjoint halves: top-1 by start, without anchors, with some, and with "
        "directions dropped"
    )
    return f"{note}\n\n{aligned([heads, *rows])}"


def write_plain_data(result: Result) -> dict[str, Any]:
    """Return the result as plain data for strict JSON."""
    cells = [
        {
            "start": cell.start,
            "halves": cell.halves,
            "size": cell.size,
            "run": cell.number,
            "held_out": cell.held_out,
            "words": cell.found.words,
            "unknown": cell.found.unknown,
            "vocabulary": cell.found.vocabulary,
            "anchors": cell.found.anchors,
            "centred": cell.found.centred,
            "dropped": cell.found.dropped,
            "claimed": encode_value(cell.found.claimed),
            "true": encode_value(cell.found.true),
            "top": {
                str(n): {
                    "hits": hits,
                    "share": share.value,
                    "low": share.low,
                    "high": share.high,
                    "chance": chance,
                }
                for n, hits, share, chance in zip(
                    cell.found.topn, cell.found.hits, cell.found.shares, cell.found.chance,
                    strict=True,
                )
            },
        }
        for cell in result.cells
    ]  # fmt: skip
    return {**make_record_head(NAME, result), "corpus": result.corpus, "cells": cells}
