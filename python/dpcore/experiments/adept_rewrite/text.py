"""The rewrites as text and as plain data."""

from __future__ import annotations

from typing import Any

from ...report.encoding import encode_float
from ...text.inference.judging import Measured
from ..text import aligned, make_record_head
from .corpora import MADE_UP, Texts, rejoin_words
from .experiment import NAME, Result
from .rewriting import DELTA, Fitted, Row
from .utility import list_single_intents, majority_share

__all__ = [
    "beats_majority",
    "corpus_title",
    "find_best_row",
    "needed_epsilon",
    "write_plain_data",
    "write_table",
]

_REWRITING_HEAD = (
    "variant", "claimed", "true", "largest pair", "on z", "on text", "BLEU", "accuracy", "macro-F1",
    "same", "memorised: not private text",
)  # fmt: skip


def corpus_title(texts: Texts) -> str:
    """Return the title of a corpus, which shows if it is made up."""
    return "utterances made up" if texts.name == MADE_UP else texts.name.upper()


def beats_majority(row: Row, floor: float) -> bool:
    """Return True if intents are predicted better than by the majority, beyond the interval."""
    return row.accuracy.low > floor


def needed_epsilon(rows: list[Row], floor: float) -> float | None:
    """Return the smallest true epsilon from which on a variant beats the majority, or None."""
    found = None
    for row in sorted(rows, key=lambda row: -row.true):
        if not beats_majority(row, floor):
            break
        found = row.true
    return found


def find_best_row(rows: list[Row], level: float, floor: float) -> Row | None:
    """Return the row of highest accuracy whose true epsilon is at most a level, or None.

    Only rows that beat the floor count.
    """
    held = [row for row in rows if row.true <= level * 1.0001 and beats_majority(row, floor)]
    return max(held, key=lambda row: row.accuracy.value, default=None)


def write_table(result: Result) -> str:
    """Format the figures, the conclusions, and some texts with all their rewrites."""
    config = result.config
    seeds = f"; mean and spread of {config.seeds} trainings" if config.seeds != 1 else ""
    parts = [
        f"ADePT: texts rewritten with noise in the middle; seed {config.seed}{seeds}.\n"
        f"Bounds and intervals at {100 * config.confidence:g} % confidence, each on its own; "
        f"audits of {config.trials:,} vectors and {config.text_trials:,} rewrites a side.\n"
        "An epsilon is for one rewrite of one text; no training text is covered by any. 'gaussian' "
        f"has its epsilon at delta {DELTA:g}."
    ]
    if result.partial:
        parts.append("INTERRUPTED: only what was rewritten is shown")
    for texts in result.texts:
        for width in config.widths:
            parts += _format_width(result, texts, width)
    return "\n\n".join(parts)


def _format_width(result: Result, texts: Texts, width: int) -> list[str]:
    rows = _select_width(result, texts, width)
    models = [one for one in result.models if _has_width(one.setup, texts, width)]
    floor = majority_share(texts)
    parts = [
        _describe_corpus(texts, width, models, result)
        + "\n\n"
        + aligned([_REWRITING_HEAD, *map(_format_rewriting_row, rows)]),
        _format_conclusions(rows, floor, result.config.variants),
    ]
    if models[0].examples:
        parts.append(_format_examples(rows, texts, models))
    return parts


def _has_width(one: Any, texts: Texts, width: int) -> bool:
    return bool(one.corpus == texts.name and one.hidden == width)


def _select_width(result: Result, texts: Texts, width: int) -> list[Row]:
    return [row for row in result.rows if _has_width(row, texts, width)]


def _describe_corpus(texts: Texts, width: int, models: list[Fitted], result: Result) -> str:
    clean, alone = result.clean[texts.name], list_single_intents(texts)
    left = f"; outside macro-F1, with one text each: {', '.join(alone)}" if alone else ""
    cut = models[0].trained.cut
    lines = [
        f"{corpus_title(texts)} ({texts.origin}), n = {2 * width}: {len(texts.train):,} "
        f"training texts ({cut:,} cut after 20 words), which stand for public ones, "
        f"{texts.epochs} epochs; "
        f"{len(texts.held):,} others rewritten ({texts.dropped:,} left out that occur in training)",
        f"  not rewritten: accuracy {_format_measured(clean.accuracy)}, macro-F1 "
        f"{_format_measured(clean.f1)}; majority {majority_share(texts):.3f}{left}",
    ]
    for one in models:
        lines.append(
            f"  decoded without noise, {one.setup.clip} clip: BLEU {one.bleu:.3f}, accuracy "
            f"{_format_measured(one.plain.accuracy)}; of training texts BLEU {one.memorised:.3f} "
            "(memorised: not private text)"
        )
    return "\n".join(lines)


def _format_rewriting_row(row: Row) -> tuple[str, ...]:
    false = row.true > row.claimed * (1.0 + 1e-9)
    return (
        row.variant,
        f"{row.claimed:g}",
        f"{row.true:.5g}{'!' if false else ''}",
        f"{row.mean('exact'):.4g}",
        _format_certified_mean(row, "on_vector", 0),
        _format_certified_mean(row, "on_text", 1),
        f"{row.mean('bleu'):.3f}",
        _format_measured(row.accuracy),
        _format_measured(row.f1),
        f"{row.mean('unchanged'):.3f}",
        f"{row.mean('memorised'):.3f}",
    )


def _format_certified_mean(row: Row, name: str, place: int) -> str:
    refuted = any(cell.refuted[place] for cell in row.cells)
    return f"{row.mean(name):.2f}{'!' if refuted else ''}"


def _format_measured(one: Measured) -> str:
    return f"{one.value:.3f} [{one.low:.3f}, {one.high:.3f}]"


def _format_conclusions(rows: list[Row], floor: float, variants: tuple[str, ...]) -> str:
    lines = [
        "True: for any two texts, ! where the claim is false. Largest pair: exact loss of the two "
        "texts that are farthest apart, computed, not certified.",
        "On z, on text: certified on that pair, ! where it refutes the claim. Same: rewritten to "
        "themselves. Memorised: BLEU of rewritten training texts.",
        "Smallest true epsilon from which on intents are told better than by the majority, beyond "
        "the interval:",
    ]
    for name in variants:
        level = needed_epsilon([row for row in rows if row.variant == name], floor)
        lines.append(f"  {name}: {'none here' if level is None else f'{level:.5g}'}")
    lines.append("Most is told, of all rows whose true epsilon is at most")
    for level in sorted({float(f"{row.true:.5g}") for row in rows}):
        found = find_best_row(rows, level, floor)
        told = (
            "no more than the majority in any"
            if found is None
            else f"{found.variant} (true {found.true:.5g}), accuracy "
            f"{found.accuracy.value:.3f}, BLEU {found.mean('bleu'):.3f}"
        )
        lines.append(f"  {level:.5g}: {told}")
    return "\n".join(lines)


def _format_examples(rows: list[Row], texts: Texts, models: list[Fitted]) -> str:
    parts = []
    for place in range(len(models[0].examples)):
        lines = [("text", "", rejoin_words(texts.held[place]))]
        seen: dict[str, Fitted] = {}
        for one in models:
            seen.setdefault(one.setup.clip, one)
        lines += [(f"{clip} clip", "no noise", one.examples[place]) for clip, one in seen.items()]
        lines += [
            (row.variant, f"true {row.true:.5g}", row.cells[0].examples[place] or "(empty)")
            for row in rows
        ]
        parts.append(aligned(lines, left=(0, 2)))
    return "\n\n".join(parts)


def write_plain_data(result: Result) -> dict[str, Any]:
    """Return the result as plain data for strict JSON."""
    return {
        **make_record_head(NAME, result),
        "delta": DELTA,
        "corpora": [_corpus_to_dict(texts, result) for texts in result.texts],
        "models": [_fitted_to_dict(one) for one in result.models],
        "rows": [_rewriting_row_to_dict(row) for row in result.rows],
    }


def _measured_to_dict(one: Measured) -> dict[str, Any]:
    return {"value": one.value, "low": one.low, "high": one.high, "how": one.how}


def _corpus_to_dict(texts: Texts, result: Result) -> dict[str, Any]:
    clean, examples = result.clean[texts.name], texts.held[: result.config.examples]
    return {
        "name": texts.name, "made_up": texts.name == MADE_UP, "origin": texts.origin,
        "train": len(texts.train), "rewritten": len(texts.held), "left_out": texts.dropped,
        "epochs": texts.epochs, "majority": majority_share(texts),
        "single": list(list_single_intents(texts)),
        "accuracy": _measured_to_dict(clean.accuracy), "f1": _measured_to_dict(clean.f1),
        "examples": list(map(rejoin_words, examples)),
    }  # fmt: skip


def _fitted_to_dict(one: Fitted) -> dict[str, Any]:
    setup, how = one.setup, one.trained
    return {
        "corpus": setup.corpus, "clip": setup.clip, "hidden": setup.hidden,
        "number": setup.number, "seed": str(how.seed), "threads": how.threads,
        "losses": [encode_float(loss) for loss in how.losses], "cut": how.cut,
        "pair": list(one.pair), "bleu": one.bleu, "memorised": one.memorised,
        "accuracy": _measured_to_dict(one.plain.accuracy), "f1": _measured_to_dict(one.plain.f1),
        "examples": list(one.examples),
    }  # fmt: skip


def _rewriting_row_to_dict(row: Row) -> dict[str, Any]:
    return {
        "corpus": row.corpus, "hidden": row.hidden, "variant": row.variant,
        "claimed": row.claimed, "true": encode_float(row.true),
        "accuracy": _measured_to_dict(row.accuracy), "f1": _measured_to_dict(row.f1),
        "runs": [
            {
                "seed": str(cell.seed), "exact": encode_float(cell.exact),
                "certified_vector": encode_float(cell.on_vector),
                "certified_text": encode_float(cell.on_text), "event_text": cell.event,
                "refuted_vector": cell.refuted[0], "refuted_text": cell.refuted[1],
                "bleu": cell.bleu, "unchanged": cell.unchanged, "memorised": cell.memorised,
                "accuracy": _measured_to_dict(cell.told.accuracy),
                "f1": _measured_to_dict(cell.told.f1),
                "examples": list(cell.examples), "partial": cell.partial,
            }
            for cell in row.cells
        ],
    }  # fmt: skip
