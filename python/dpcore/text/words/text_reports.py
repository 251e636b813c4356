"""A report on one text: which of its words stay, where the others go, and the losses."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ...bounds import limits
from ...hints import hinted
from ...records import Record
from ...streams import Rng, seed_of
from .mechanism import Floats, Numbers

__all__ = ["TextReport", "WordReport", "make_text_report"]

_OMITTED: Final = 0.05
"""Probability of the outputs that are left out of a word's support."""

_DRAWS: Final = 10_000
"""Draws of each word where there is no table."""

_CONFIDENCE: Final = 0.95

_BLOCK_ENTRIES: Final = 2**21
"""Entries of rows that are in memory at once, 8 bytes each."""


@hinted
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WordReport(Record):
    """Figures of one word of a text.

    Args:
        word: the word; "<unknown>" for those without a vector.
        times: places of the text at which it stands.
        kept: probability N_w that it is left as it is; exact, or the share of the draws.
        kept_limits: `kept` twice where it is exact, else its limits at 95 % confidence.
        support: S_w, the smallest number of outputs that carry .95 of its probability. Counted on
            draws it is that of the draws, which is smaller than S_w where draws are few.
        loss: largest loss against any other word in nats, in the worse direction; a bound by the
            noise where `TextReport.is_exact` is False.
    """

    word: str
    times: int
    kept: float
    kept_limits: tuple[float, float]
    support: int
    loss: float


@hinted
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TextReport(Record):
    """What a mechanism leaves of one text, and what it can lose.

    Args:
        mechanism: the constructor call, vectors by their number and SHA-256.
        words: figures of each different word, in the order of the text.
        length: number of words that are replaced, which is released.
        unknown: what became of words without a vector.
        strange: number of places with such words.
        is_exact: True if all figures are computed from the table; False if `kept` and `support`
            are counted on draws and losses are bounds by the noise.
        draws: draws of each word; 0 where nothing is counted.
        seed: repeats the draws; None where nothing is counted.
    """

    mechanism: str
    words: tuple[WordReport, ...]
    length: int
    unknown: str
    strange: int
    is_exact: bool
    draws: int
    seed: int | None

    @property
    def one_word(self) -> float:
        """Largest loss where one word of the text is changed, in nats."""
        return max((word.loss for word in self.words), default=0.0)

    @property
    def any_text(self) -> float:
        """Largest loss against any other text of this length, in nats: the sum over places."""
        return math.fsum(word.times * word.loss for word in self.words)

    def __str__(self) -> str:
        """Return the two losses and a table with a line for each word."""
        kind = "exact" if self.is_exact else "a bound, by the noise alone"
        lines = [
            f"{self.mechanism}",
            f"a text of {self.length:,} words; their number is released",
            f"one word changed: at most {self.one_word:.4g} nats ({kind})",
            f"any text of this length: at most {self.any_text:.4g} nats ({kind})",
        ]
        if self.strange:
            fate = {
                "drop": "left out, and their number is released with the length",
                "keep": "left unchanged: they show themselves, so that every loss is infinite",
                "uniform": "replaced by any word with equal probability",
            }[self.unknown]
            lines.append(f"words without a vector: {self.strange:,}, {fate}")
        if not self.is_exact:
            lines.append(
                f"kept and support are counted on {self.draws:,} draws of each word, limits at "
                f"{100 * _CONFIDENCE:g} %, seed {self.seed}"
            )
        width = max([4, *(len(word.word) for word in self.words)])
        lines.append(f"{'word':<{width}} {'times':>5} {'kept':>23} {'support':>8} {'loss':>9}")
        for word in self.words:
            kept = f"{word.kept:.4f}"
            if not self.is_exact:
                kept += " [{:.4f}, {:.4f}]".format(*word.kept_limits)
            lines.append(
                f"{word.word:<{width}} {word.times:>5,} {kept:>23} {word.support:>8,} "
                f"{word.loss:>9.4g}"
            )
        return "\n".join(lines)


def make_text_report(mechanism: Any, words: list[str], unknown: str, rng: Rng) -> TextReport:
    """Compute the report of a text that was split into words; see `TableMechanism.text_report`."""
    rows, size = mechanism.vectors.rows, len(mechanism.vectors)
    strange = sum(word not in rows for word in words)
    if unknown == "drop":
        words = [word for word in words if word in rows]
    has_table = hasattr(mechanism, "log_rows")
    numbers = Counter(rows.get(word, size) for word in words)
    if unknown == "keep":
        numbers.pop(size, None)
    inputs = np.array(list(numbers), np.int64)
    seed = None if has_table else seed_of(rng)
    if has_table:
        laws = mechanism.rows_with_unknown(inputs)
        kept, limits_of, support = _measure_rows(laws, inputs)
        losses = _worst_losses(mechanism, laws, inputs, unknown == "uniform")
    else:
        kept, limits_of, support = _count_draws(mechanism, inputs, seed)
        # Nothing bounds how improbable an output is on a word against the uniform law.
        has_bound = unknown != "uniform"
        losses = np.array(
            [
                mechanism.epsilon * mechanism.distance_rows(n, n + 1).max() if has_bound else np.inf
                for n in inputs.tolist()
            ]
        )
    if unknown == "keep":
        losses[:] = np.inf
    found = [
        WordReport(
            mechanism.words[n] if n < size else "<unknown>", numbers[n], float(kept[i]),
            limits_of[i], int(support[i]), float(losses[i]),
        )
        for i, n in enumerate(inputs.tolist())
    ]  # fmt: skip
    if unknown == "keep" and strange:
        found.append(WordReport("<unknown>", strange, 1.0, (1.0, 1.0), 1, np.inf))
    return TextReport(
        mechanism.name, tuple(found), len(words), unknown, strange, has_table,
        0 if has_table else _DRAWS, seed,
    )  # fmt: skip


def _measure_rows(laws: Floats, inputs: Numbers) -> tuple[Floats, list[Any], Numbers]:
    """Return N_w, N_w twice, and S_w from log probabilities."""
    chances = np.exp(laws)
    # An unknown word is not an output.
    kept = np.where(
        inputs < laws.shape[1],
        chances[np.arange(len(inputs)), np.minimum(inputs, laws.shape[1] - 1)],
        0.0,
    )
    carried = np.cumsum(-np.sort(-chances, axis=1), axis=1)
    support = (carried < 1.0 - _OMITTED).sum(axis=1) + 1
    return kept, [(float(one), float(one)) for one in kept], support


def _count_draws(
    mechanism: Any, inputs: Numbers, seed: int | None
) -> tuple[Floats, list[Any], Numbers]:
    """Return N_w and S_w counted on draws, with limits of N_w."""
    outputs = mechanism._draw(np.repeat(inputs, _DRAWS), len(inputs) * _DRAWS, seed)
    outputs = outputs.reshape(len(inputs), _DRAWS)
    times = (outputs == inputs[:, None]).sum(axis=1)
    tail = (1.0 - _CONFIDENCE) / 2.0
    support = []
    for row in outputs:
        counts = np.sort(np.unique(row, return_counts=True)[1])[::-1]
        support.append(int((np.cumsum(counts) < (1.0 - _OMITTED) * _DRAWS).sum()) + 1)
    return times / _DRAWS, [limits(int(k), _DRAWS, tail) for k in times], np.array(support)


def _worst_losses(mechanism: Any, laws: Floats, inputs: Numbers, with_unknown: bool) -> Floats:
    """Return the largest loss of each input against any other word, in the worse direction."""
    size = len(mechanism.vectors)
    known = inputs[inputs < size]
    worst = np.zeros(len(inputs))
    if hasattr(mechanism, "worst_losses_of") and not with_unknown:
        worst[inputs < size] = mechanism.worst_losses_of(known)
        return worst
    others = np.arange(size + with_unknown)
    step = max(1, _BLOCK_ENTRIES // laws.shape[1])
    for start in range(0, len(others), step):
        block = mechanism.rows_with_unknown(others[start : start + step])
        with np.errstate(invalid="ignore"):
            for i, law in enumerate(laws):
                # NaN is an output that neither word can have.
                worst[i] = max(worst[i], float(np.nanmax(np.abs(law - block))))
    return worst
