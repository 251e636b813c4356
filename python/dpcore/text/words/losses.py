"""Privacy losses between two texts, and the report on one text.

The report shows the largest privacy loss of the text, and the probability that its words remain.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ...bounds import limits
from ...calibration import L2Laplace, real_epsilon
from ...calibration.pure import l2_laplace_renyi_upper_bounds
from ...divergence import canonne_kamath_steinke
from ...errors import choice, confidence_level, invalid
from ...mechanisms.declarations import get_or_default
from ...records import Floats, Ints, Record
from ...report.plain import encode_value
from ...sensitivity import Ball
from ...streams import Rng, to_seed
from ...suggestions import explain_argument_errors

UNKNOWN: Final = ("error", "drop", "keep", "uniform")

ORDERS: Final = 1.0 + np.geomspace(1e-3, 1e4, 141)
"""Orders of the Renyi divergences. The difference between an order and 1 grows by an eighth at each
step."""

CARRIED: Final = 0.95
"""Total probability of the most likely outputs, whose number is called the support of a word."""

CONFIDENCE: Final = 0.95
"""Confidence level of the limits of shares that are estimated from draws."""

_DRAWS_PER_WORD: Final = 10_000
"""Number of draws of each word if the mechanism has no table of probabilities."""

_DELTA_ERROR: Final = 1e-12
"""Numerical error of the computed delta. It is subtracted from a requested delta."""

_MAX_ROW_ENTRIES: Final = 2**21
"""Number of entries of a block of a matrix, 8 bytes each, that are in memory at once."""

_UNKNOWN_WORD_NOTES: Final = {
    "drop": "left out, and their number is released with the length",
    "keep": "left unchanged: they show themselves, so that every loss is infinite",
    "uniform": "replaced by any word with equal probability",
}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TextLoss(Record):
    """Privacy losses in nats between two texts, under a mechanism that replaces each word.

    Args:
        words: number of words of each of the two texts.
        changed: number of positions at which the two texts have different words.
        claimed: claimed upper bound on the loss between the two texts: epsilon times the distance
            of the texts. This distance is the sum of the distances between the two words at each
            position. The bound is infinite if the texts differ at a position where a word has no
            vector, because the claim does not cover such words.
        one_word: loss between the two words at one position; the largest value over all positions.
        whole: loss between the whole texts. The losses of all positions are added, once for the
            first text against the second text, and once for the reverse. `whole` is the larger of
            these two sums.
        delta: the delta for which `at_delta` and `one_word_at_delta` are computed.
        at_delta: upper bound on the epsilon of (epsilon, delta)-DP between the whole texts. This
            bound is never above `whole`.
        one_word_at_delta: upper bound on the same epsilon for the two words at one position; the
            largest value over all positions. This bound is never above `one_word`.
        is_exact: True if `one_word` and `whole` are exact. False if these two numbers are upper
            bounds. The bounds are the losses of the noisy vectors from which the mechanism chooses
            words.
    """

    words: int
    changed: int
    claimed: float
    one_word: float
    whole: float
    delta: float
    at_delta: float
    one_word_at_delta: float
    is_exact: bool = True

    def __str__(self) -> str:
        """Return the losses as text, one on each line."""
        kind = _describe_as_exact_or_bound(self.is_exact)
        return (
            f"texts of {self.words:,} words that differ in {self.changed:,}; their number is "
            f"released\none word changed: {self.one_word:.4g} nats ({kind}, the worst place)\n"
            f"one word changed at delta {self.delta:g}: at most {self.one_word_at_delta:.4g} nats\n"
            f"all of them: {self.whole:.4g} nats ({kind}), {self.claimed:.4g} claimed\n"
            f"all of them at delta {self.delta:g}: at most {self.at_delta:.4g} nats "
            "(Renyi divergences)"
        )


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WordReport(Record, word="WordReport"):
    """Measurements of one word of a text, under a mechanism that replaces words at random.

    Args:
        word: the word, or "<unknown>" for words without a vector.
        times: number of occurrences of this word in the text.
        kept: probability N_w that the mechanism does not change the word. The probability is exact,
            or estimated by the share of random outputs that are equal to the word.
        kept_limits: limits of the 95 % confidence interval for `kept`. If `kept` is exact, the two
            limits are equal to `kept`.
        support: smallest number S_w of output words that together have probability .95 or more. If
            S_w is estimated from random outputs, S_w may be too small, because rare outputs may be
            missing.
        loss: largest privacy loss between this word and any other word, in nats, for both orders of
            the two words. The loss is an upper bound if `TextReport.is_exact` is False.
    """

    word: str
    times: int
    kept: float
    kept_limits: tuple[float, float]
    support: int
    loss: float


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TextReport(Record, word="TextReport"):
    """Report on one text: how a mechanism changes the words, and the largest privacy loss.

    Args:
        mechanism: name of the mechanism: its constructor call as text. This name states the number
            and the SHA-256 hash of the vectors.
        words: measurements of each distinct word of the text, in the order of the text.
        length: number of words of the text that are replaced. The output reveals this number.
        unknown: treatment of words without a vector. "error" raises an error, "drop" removes the
            words, "keep" leaves the words unchanged, "uniform" replaces each of the words by a
            uniformly random word.
        strange: number of words of the text that have no vector. Each occurrence is counted.
        is_exact: True if all measurements are exact. False if `kept` and `support` of each word are
            estimated from random outputs, and losses are upper bounds.
        draws: number of random outputs for each word, or 0 if the measurements are exact.
        seed: seed of the random outputs, or None if the measurements are exact.
    """

    mechanism: str
    words: tuple[WordReport, ...]
    length: int
    unknown: str
    strange: int
    is_exact: bool
    draws: int
    seed: int | None

    def __post_init__(self) -> None:
        """Check that `strange` is 0 if `unknown` is "error"."""
        if self.unknown == "error" and self.strange:
            raise invalid("strange", "0 where unknown is 'error'", self.strange)

    @property
    def one_word(self) -> float:
        """Largest privacy loss in nats between this text and any text that differs in one word."""
        return max(word.loss for word in self.words)

    @property
    def any_text(self) -> float:
        """Largest privacy loss in nats between this text and any text with equally many words.

        The loss is a sum over all positions in the text. Each term is the largest loss between the
        word at the position and any other word.
        """
        return math.fsum(word.times * word.loss for word in self.words)

    def to_dict(self) -> dict[str, Any]:
        """Return this report as data for JSON, including the losses `one_word` and `any_text`.

        An infinite loss is returned as the string "inf".
        """
        derived = {"one_word": self.one_word, "any_text": self.any_text}
        return {
            **encode_value(self),
            **{name: encode_value(figure) for name, figure in derived.items()},
        }

    def __str__(self) -> str:
        """Return `one_word`, `any_text`, and a table with a row for each word."""
        kind = _describe_as_exact_or_bound(self.is_exact)
        lines = [
            f"{self.mechanism}",
            f"a text of {self.length:,} words; their number is released",
            f"one word changed: at most {self.one_word:.4g} nats ({kind})",
            f"any text of this length: at most {self.any_text:.4g} nats ({kind})",
        ]
        if self.strange:
            note = _UNKNOWN_WORD_NOTES[self.unknown]
            lines.append(f"words without a vector: {self.strange:,}, {note}")
        if not self.is_exact:
            lines.append(
                f"kept and support are counted on {self.draws:,} draws of each word, limits at "
                f"{100 * CONFIDENCE:g} %, seed {self.seed}"
            )
        width = max(4, *(len(word.word) for word in self.words))
        lines.append(f"{'word':<{width}} {'times':>5} {'kept':>23} {'support':>8} {'loss':>9}")
        for row in self.words:
            ends = "" if self.is_exact else " [{:.4f}, {:.4f}]".format(*row.kept_limits)
            figures = f"{row.times:>5,} {f'{row.kept:.4f}{ends}':>23} {row.support:>8,}"
            lines.append(f"{row.word:<{width}} {figures} {f'{row.loss:.4g}':>9}")
        return "\n".join(lines)


def _describe_as_exact_or_bound(is_exact: bool) -> str:
    return "exact" if is_exact else "a bound, by the noise alone"


def text_loss(mechanism: Any, a: Any, b: Any, delta: float, unknown: str) -> TextLoss:
    """Compute the privacy losses between two texts under a mechanism that replaces words.

    The method `WordMechanism.text_loss` describes the arguments.
    """
    delta = confidence_level(delta, "delta")
    first, second, differ = mechanism._numbers_and_changed_mask(
        a, b, choice("unknown", unknown, UNKNOWN)
    )
    pairs, size = np.stack([first[differ], second[differ]], axis=1), len(mechanism.vectors)
    is_known = pairs.max() < size
    claimed = mechanism.claim * mechanism._distances(*pairs.T).sum() if is_known else np.inf
    # Repeated pairs of words are computed once.
    distinct, counts = np.unique(pairs, axis=0, return_counts=True)
    each = delta if mechanism.has_table else 0.0
    place_losses = [_losses_delta_loss_renyi(mechanism, words, each, unknown) for words in distinct]
    losses, at_delta, curves = (np.array(part) for part in zip(*place_losses, strict=True))
    if not mechanism.has_table:
        # At every delta, the noise loses most between the two words with the largest distance.
        worst = distinct[losses.max(axis=1).argmax()]
        at_delta = np.array(_losses_delta_loss_renyi(mechanism, worst, delta, unknown)[1])
    whole, one_word_at_delta = float((counts @ losses).max()), float(at_delta.max())
    curve = np.tensordot(counts, curves, 1).max(axis=0)
    bounds = [whole, canonne_kamath_steinke(ORDERS, curve, delta).epsilon]
    if len(pairs) == 1:
        bounds.append(one_word_at_delta)
    return TextLoss(
        words=len(first),
        changed=len(pairs),
        claimed=float(claimed),
        one_word=float(losses.max()),
        whole=whole,
        delta=delta,
        at_delta=min(bounds),
        one_word_at_delta=one_word_at_delta,
        is_exact=mechanism.has_table,
    )


def report_word_losses_of_text(
    mechanism: Any, numbers: list[int], unknown: str, unknown_count: int, rng: Rng
) -> TextReport:
    """Compute the report on one text under a mechanism that replaces words.

    Args:
        mechanism: a word mechanism, such as `SanText`.
        numbers: those words of the text that the mechanism replaces, each given as its row in the
            array of word vectors.
        unknown: treatment of words without a vector, for the report.
        unknown_count: number of words of the text that have no vector.
        rng: None, an int seed or a numpy Generator, for measurements that are estimated.
    """
    times, size, is_exact = Counter(numbers), len(mechanism.vectors), mechanism.has_table
    inputs, draws = np.array(list(times)), 0 if is_exact else _DRAWS_PER_WORD
    seed = None if is_exact else to_seed(rng)
    shares, intervals, sizes = kept_shares_limits_supports(mechanism, inputs, draws, seed)
    losses = _worst_losses(mechanism, inputs, unknown)
    if unknown == "keep":
        shares[inputs == size] = intervals[inputs == size] = sizes[inputs == size] = 1
    reports = []
    columns = (column.tolist() for column in (inputs, shares, intervals, sizes, losses))
    for number, share, both, outputs, loss in zip(*columns, strict=True):
        word = mechanism.words[number] if number < size else "<unknown>"
        reports.append(WordReport(word, times[number], share, tuple(both), outputs, loss))
    words = tuple(reports), len(numbers)
    return TextReport(mechanism.name, *words, unknown, unknown_count, is_exact, draws, seed)


def _losses_delta_loss_renyi(
    mechanism: Any, pair: Ints, delta: float, unknown: str
) -> tuple[Floats, float, Floats]:
    """Return the privacy loss between two words, the loss at delta, and Renyi divergences.

    The loss and the divergences have an entry for each order of the two words.
    """
    is_known = pair.max() < len(mechanism.vectors)
    if mechanism.has_table and (is_known or unknown != "keep"):
        p, q = mechanism.rows_with_unknown(pair)
        losses = np.array([one_sided_loss(p, q), one_sided_loss(q, p)])
        at_delta = max(one_sided_loss(p, q, delta), one_sided_loss(q, p, delta))
        return losses, at_delta, np.array([_renyi_by_order(p, q), _renyi_by_order(q, p)])
    if is_known:
        # The noise has the same law around the two words, so the losses in the two directions are
        # equal.
        loss = float(mechanism.epsilon * mechanism._distances(*pair[:, None])[0])
        dim = mechanism.vectors.dim
        noise = real_epsilon(L2Laplace(1.0), Ball("l2", loss / 2.0, dim))
        at_delta = min(loss, noise.epsilon(max(0.0, delta - _DELTA_ERROR)))
        curve = l2_laplace_renyi_upper_bounds(ORDERS, loss, dim)
        return np.full(2, loss), at_delta, np.stack([curve, curve])
    # Two unknown words have the same law. Without a table, the loss between an unknown and a known
    # word has no bound.
    loss = 0.0 if unknown == "uniform" and pair[0] == pair[1] else np.inf
    return np.full(2, loss), loss, np.full((2, len(ORDERS)), loss)


def kept_shares_limits_supports(
    mechanism: Any, numbers: Ints, draws: int, seed: int | None
) -> tuple[Floats, Floats, Ints]:
    """Measure, for each of n words, the probability of no change and the number of likely outputs.

    If the probabilities of outputs are known, the measurements are exact. Otherwise they are
    estimated from `draws` random outputs of each word.

    Returns:
        Three arrays: the probability that a word is not changed, shape `(n,)`; its 95 % confidence
        limits, shape `(n, 2)`; and the smallest number of outputs that together have probability
        .95 or more, shape `(n,)`.
    """
    size, total = len(mechanism.vectors), 1 if mechanism.has_table else draws
    kept, support = np.zeros(len(numbers)), np.empty(len(numbers), np.int64)
    for part in split_rows(len(numbers), size):
        inputs = numbers[part]
        if mechanism.has_table:
            weights = np.exp(mechanism.rows_with_unknown(inputs))
        else:
            drawn = mechanism._draw(inputs.repeat(draws), len(inputs) * draws, seed)
            rows = drawn.reshape(len(inputs), draws)
            weights = np.array([np.bincount(row, minlength=size) for row in rows])
        # An unknown word is not among the outputs.
        has_vector = np.flatnonzero(inputs < size)
        kept[part.start + has_vector] = weights[has_vector, inputs[has_vector]] / total
        carried = np.cumsum(-np.sort(-weights, axis=1), axis=1)
        support[part] = (carried < CARRIED * total).sum(axis=1) + 1
    if mechanism.has_table:
        return kept, np.stack([kept, kept], axis=1), support
    counts, tail = np.rint(kept * draws), (1.0 - CONFIDENCE) / 2.0
    return kept, np.array([limits(int(k), draws, tail) for k in counts]), support


def _worst_losses(mechanism: Any, numbers: Ints, unknown: str) -> Floats:
    """Return the largest privacy loss between each word and any other word, in nats."""
    worst, size = np.zeros(len(numbers)), len(mechanism.vectors)
    if unknown == "keep" or (unknown == "uniform" and not mechanism.has_table):
        # Under "keep" a word reveals itself. Under "uniform" without a table, no bound is known.
        return np.full(len(numbers), np.inf)
    if not mechanism.has_table:
        rows = [mechanism.distance_rows(number, number + 1) for number in numbers.tolist()]
        return np.array([mechanism.epsilon * row.max() for row in rows])
    if unknown != "uniform" and get_or_default(mechanism, "largest_losses"):
        losses: Floats = mechanism.largest_losses(numbers)
        return losses
    others = np.arange(size + (unknown == "uniform"))
    for part in split_rows(len(others), size):
        block = mechanism.rows_with_unknown(others[part])
        for i, row in enumerate(mechanism.rows_with_unknown(numbers)):
            with np.errstate(invalid="ignore"):
                # NaN marks an output that is impossible under the two words.
                worst[i] = max(worst[i], np.nanmax(np.abs(row - block)))
    return worst


def split_rows(rows: int, width: int) -> list[slice]:
    """Split a float64 matrix with `width` columns into slices of rows, each of at most 16 MiB.

    Args:
        rows: number of rows of the matrix.
        width: number of columns of the matrix.
    """
    step = max(1, _MAX_ROW_ENTRIES // width)
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]


def one_sided_loss(log_p: Floats, log_q: Floats, delta: float = 0.0) -> float:
    """Return the smallest epsilon >= 0 with P(S) <= e^epsilon Q(S) + delta for all sets S.

    Args:
        log_p: logarithms of the probabilities of all outputs under P.
        log_q: logarithms of the probabilities of the same outputs under Q.
        delta: the delta, in [0, 1).
    """
    possible = log_p > -np.inf
    log_p, log_q = log_p[possible], log_q[possible]
    losses = log_p - log_q
    if delta == 0.0:
        return float(losses.max())
    order = np.argsort(-losses)
    # Between two losses the set of outputs above is the same. There sum(p) - e^epsilon sum(q) =
    # delta.
    p, q = np.cumsum(np.exp(log_p[order])), np.cumsum(np.exp(log_q[order]))
    with np.errstate(divide="ignore", invalid="ignore"):
        log_ratios = np.log(np.maximum(p - delta, 0.0) / q)
    # The excess over delta is a maximum over sets of outputs, and each set needs its own epsilon.
    # NaN marks a set with probability at most delta under P and 0 under Q.
    return max(0.0, float(np.nanmax(log_ratios)))


def _renyi_by_order(log_p: Floats, log_q: Floats) -> Floats:
    """Return the Renyi divergences of P from Q at the orders `ORDERS`, from log probabilities."""
    possible = log_p > -np.inf
    log_p, losses = log_p[possible], log_p[possible] - log_q[possible]
    if np.isinf(losses).any():
        return np.full(len(ORDERS), np.inf)
    steps = ORDERS - 1.0
    exponents = log_p + steps[:, None] * losses
    top = exponents.max(axis=1)
    divergences: Floats = (top + np.log(np.exp(exponents - top[:, None]).sum(axis=1))) / steps
    # After division by a small step, the rounding error of the sum can give a value below 0.
    return np.maximum(divergences, 0.0)
