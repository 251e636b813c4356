"""DPNR's table as text and as plain data."""

from __future__ import annotations

import math
from typing import Any

from ...report.encoding import encode_float
from ..text import aligned, make_record_head
from .attacks import Run
from .claims import Verdict
from .experiment import NAME, Result, Row
from .published import FIGURES, Published

__all__ = ["write_plain_data", "write_table"]


def write_table(result: Result) -> str:
    """Format the task, the attackers, the audits, and the paper's figures."""
    parts = [_format_head(result)]
    if result.partial:
        parts.append("INTERRUPTED: only what was measured is shown")
    several = len(result.config.encoders) > 1
    if result.rows:
        parts += [_format_task(result, several), _format_attackers(result, several)]
    if result.claims:
        parts.append(_format_claims(result))
    own = [row for row in result.rows if row.runs[0].discriminator is not None]
    if own:
        parts.append(_format_opponents(result, own))
    if not result.facts.made:
        parts.append(_format_paper(result))
    return "\n\n".join(parts)


def _format_head(result: Result) -> str:
    facts, config = result.facts, result.config
    made = "TEXTS THAT WERE MADE UP (no data were given): " if facts.made else ""
    widths = ", ".join(f"{name} {width}" for name, width in facts.widths)
    seeds = f"; mean +- spread of {config.seeds} seeds" if (config.seeds or 1) > 1 else ""
    lines = [
        f"DPNR and its baselines: {made}{facts.origin}",
        f"{facts.sizes[0]:,} train, {facts.sizes[1]:,} valid, {facts.sizes[2]:,} test texts; "
        f"{facts.repeated:,} test texts occur in train, {facts.unseen:,} are unseen",
        f"attributes {', '.join(facts.names)}; entries of a vector: {widths}; seed {config.seed}"
        f"{seeds}",
        f"majority label {facts.majority[0]:.3f}, unseen {facts.majority[1]:.3f}; micro-F1 of the "
        f"most frequent attribute always {facts.always[0]:.3f}, unseen {facts.always[1]:.3f}",
    ]
    if result.rows:
        floors = result.rows[0].runs[0].chosen.floors
        found = "; ".join(f"{one.name} {one.f1:.3f}" for one in floors)
        lines.append(f"floors of F1 on unseen texts, learnt for the best F1: {found}")
    return "\n".join(lines)


def _system_and_claim(row: Row, several: bool) -> tuple[str, str]:
    name = f"{row.case.name}, {row.case.encoder}" if several else row.case.name
    return name, "none" if row.case.claim is None else f"{row.case.claim:g}"


def _format_infinite_epsilon(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}" if math.isfinite(value) else "infinite"


def _format_mean(pair: tuple[float, float], several: bool) -> str:
    return f"{pair[0]:.3f} +- {pair[1]:.3f}" if several else f"{pair[0]:.3f}"


def _format_interval(low: float, high: float, places: int = 3) -> str:
    return f"[{low:.{places}f}, {high:.{places}f}]"


def _format_task(result: Result, several: bool) -> str:
    first = result.facts.names[0]
    head = (
        "system", "claimed", "true", "largest pair", "main", "unseen", "refitted", f"gap of {first}"
    )  # fmt: skip
    rows, seeds = [], (result.config.seeds or 1) > 1
    for row in result.rows:
        run = row.runs[0]
        gap = run.group.gap
        refitted = "-" if run.refitted is None else f"{run.refitted:.3f}"
        rows.append((
            *_system_and_claim(row, several), _format_infinite_epsilon(run.true),
            _format_infinite_epsilon(run.loss),
            _format_mean(row.over(lambda one: one.main), seeds),
            _format_mean(row.over(lambda one: one.main_unseen), seeds), refitted,
            "-" if gap is None else f"{gap.value:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}]",
        ))  # fmt: skip
    return "\n".join([
        "Claim and task. true: epsilon for any two texts; largest pair: exact loss of the training "
        "texts' largest pair,\ncomputed from the declared noise; main: accuracy (its learning rate "
        "was settled on test texts); refitted: main,\nunseen, of the chosen attacker's classifier "
        f"instead, and its gap between texts with and without {first}",
        aligned([head, *rows]),
    ])  # fmt: skip


def _format_attackers(result: Result, several: bool) -> str:
    first = result.facts.names[0]
    head = (
        "system", "claimed", "naive", "unseen", "chosen", "", "1 - F", f"certified ({first})",
        "attacker",
    )  # fmt: skip
    rows, seeds = [], (result.config.seeds or 1) > 1
    for row in result.rows:
        chosen, certified = row.runs[0].chosen, row.runs[0].certified
        low, high = row.naive()
        unseen = row.naive(unseen=True)
        told = certified if isinstance(certified, str) else f"{certified:.2f}"
        if row.runs[0].refuted:
            told += " refuted"
        rows.append((
            *_system_and_claim(row, several), f"{low:.3f}-{high:.3f}",
            f"{unseen[0]:.3f}-{unseen[1]:.3f}",
            _format_mean(row.f1, seeds), _format_interval(chosen.f1.low, chosen.f1.high),
            f"{1.0 - row.f1[0]:.3f}", told, f"{chosen.attacker}, {chosen.transform}",
        ))  # fmt: skip
    first_run = result.rows[0].runs[0].naive
    budget = ", ".join(str(epochs) for epochs in sorted({one.epochs for one in first_run}))
    starts = len({one.start for one in first_run})
    return "\n".join([
        f"Attackers, F1. naive: a network on raw vectors, lowest-highest of {starts} starts after "
        f"{budget} epochs; chosen: the best on\nvalidation, evaluated once on unseen texts; 1 - F: "
        "empirical privacy, no guarantee; certified: epsilon, any two texts neighbours",
        aligned([head, *rows], left=(0, 8)),
    ])  # fmt: skip


def _format_claims(result: Result) -> str:
    head = (
        "noise", "claimed", "true", "exact loss", "certified", "claim", "flagged",
    )  # fmt: skip
    rows = [
        (
            {"shared": "shared", "iid": "iid", "sound": "iid, sound"}[one.claim.system],
            f"{one.claim.claim:g}", _format_infinite_epsilon(one.true),
            _format_infinite_epsilon(one.exact),
            f"{one.certified:.3f}", "refuted" if one.refuted else "not refuted",
            ", ".join(one.flags) or "-",
        )
        for one in result.claims
    ]  # fmt: skip
    trials = result.config.trials
    return "\n".join([
        f"Audits on the largest pair of the training texts, {trials:,} trials a side (bounds end "
        f"near ln of that, {math.log(trials):.1f};\nthe exact loss is computed from the declared "
        "noise, not certified)",
        aligned([head, *rows], left=(0, 5, 6)),
    ])  # fmt: skip


def _format_opponents(result: Result, rows: list[Row]) -> str:
    head = ("baseline", "its own opponent", "fresh attacker")
    found = [
        (
            row.case.name, f"{row.runs[0].discriminator:.3f}",
            f"{row.runs[0].chosen.accuracy.value:.3f}",
        )
        for row in rows
    ]  # fmt: skip
    floor = rows[0].runs[0].chosen.floors[0].accuracy
    return "\n".join([
        "Accuracy over the attributes: the opponent of the training (all test texts), and the "
        f"attacker trained afresh (unseen);\nmajority {floor:.3f}",
        aligned([head, *found]),
    ])  # fmt: skip


def _format_paper(result: Result) -> str:
    head = (
        "",
        "claimed",
        "main, paper",
        "main, here",
        "1 - F, paper",
        "1 - F, here: naive, chosen",
    )
    rows = [_compare_with_paper(result, one) for one in FIGURES]
    return "\n".join([
        "Beside the paper (Lyu, He and Li 2020, tables 2 and 4): the same texts; there BERT, here "
        f"{result.config.encoders[0]}; naive and main on\nall test texts, chosen on unseen ones; "
        "the paper's noise is that of its code: shared",
        aligned([head, *rows]),
    ])  # fmt: skip


def _compare_with_paper(result: Result, one: Published) -> tuple[str, ...]:
    main, here = "-", "-"
    if one.system == "majority":
        main, here = f"{result.facts.majority[0]:.3f}", f"{1.0 - result.facts.always[0]:.3f}"
    for row in result.rows:
        case = row.case
        plain = not case.strength if one.system == "no noise" else True
        if (case.system, case.claim) != (one.system, one.claim) or not plain:
            continue
        if one.system == "MinMaxAdversary" and not case.strength:
            continue
        low, high = row.naive()
        main = f"{row.over(lambda run: run.main)[0]:.3f}"
        here = f"{1.0 - high:.3f}-{1.0 - low:.3f}, {1.0 - row.f1[0]:.3f}"
    claimed = "none" if one.claim is None else f"{one.claim:g}"
    privacy = "-" if one.privacy is None else f"{one.privacy:.3f}"
    return one.name, claimed, f"{one.main:.3f}", main, privacy, here


def write_plain_data(result: Result) -> dict[str, Any]:
    """Return the result as plain data for strict JSON."""
    facts = result.facts
    return {
        **make_record_head(NAME, result),
        "texts": {
            "origin": facts.origin, "made_up": facts.made, "sizes": list(facts.sizes),
            "test_texts_in_train": facts.repeated, "unseen": facts.unseen,
            "majority": list(facts.majority), "attributes": list(facts.names),
            "always_most_frequent_f1": list(facts.always), "widths": dict(facts.widths),
        },
        "rows": [_system_row_to_dict(row) for row in result.rows],
        "claims": [_verdict_to_dict(one) for one in result.claims],
        "paper": [
            {"system": one.system, "claim": one.claim, "main": one.main, "privacy": one.privacy}
            for one in FIGURES
        ],
    }  # fmt: skip


def _system_row_to_dict(row: Row) -> dict[str, Any]:
    case = row.case
    return {
        "system": case.system, "encoder": case.encoder, "claim": case.claim,
        "strength": case.strength, "f1_mean": row.f1[0], "f1_spread": row.f1[1],
        "naive": list(row.naive()), "naive_unseen": list(row.naive(unseen=True)),
        "runs": [_run_to_dict(run) for run in row.runs],
    }  # fmt: skip


def _run_to_dict(run: Run) -> dict[str, Any]:
    certified = run.certified
    return {
        "seed": str(run.seed),
        "true": None if run.true is None else encode_float(run.true),
        "loss_of_largest_pair": None if run.loss is None else encode_float(run.loss),
        "main": run.main, "main_unseen": run.main_unseen, "main_refitted": run.refitted,
        "naive": [
            {"start": one.start, "epochs": one.epochs, "f1": one.f1, "f1_unseen": one.unseen}
            for one in run.naive
        ],
        "certified": certified if isinstance(certified, str) else encode_float(certified),
        "refuted": run.refuted,
        "discriminator": run.discriminator,
        "empirical_privacy": run.chosen.empirical_privacy_f1,
        "chosen": run.chosen.to_dict(),
        "alone": run.alone.to_dict(),
    }  # fmt: skip


def _verdict_to_dict(one: Verdict) -> dict[str, Any]:
    counts = [getattr(one.counts, name) for name in ("k", "n", "k_prime", "n_prime")]
    return {
        "system": one.claim.system, "encoder": one.claim.encoder, "claim": one.claim.claim,
        "true": encode_float(one.true), "exact": encode_float(one.exact),
        "certified": encode_float(one.certified), "refuted": one.refuted, "flags": list(one.flags),
        "counts": counts, "seed": str(one.seed),
    }  # fmt: skip
