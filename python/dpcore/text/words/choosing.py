"""The parameter of a mechanism at a given loss of any two words, and what all keep at it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ...errors import instance, invalid, mistyped, real
from ...hints import hinted
from ...records import Record
from ...streams import Rng, seed_of
from ...tables.run import audit_table
from ..leakage import Embedding
from .custext import CusText
from .exponential import TEM, MetricExponential, SanText
from .mechanism import WordMechanism
from .noisy import MetricLaplace, NoisyMechanism, Vickrey
from .tables import TableMechanism, largest_over_blocks

__all__ = ["WordCalibration", "WordComparison", "WordFigures", "calibrate", "compare"]

_MOST_DOUBLINGS: Final = 40
"""Doublings of epsilon before a loss counts as out of reach."""

_CARRIED: Final = 0.95
"""Probability that the outputs of a word's support carry."""

_COUNTED_WORDS, _COUNTED_DRAWS = 100, 1_000
"""Words, and draws of each, from which shares are counted where there is no table."""

_TIMED_WORDS: Final = 2**16

_ROWS_AT_ONCE: Final = 256

_PRECISION: Final = 1e-9
"""Relative width of the interval in which epsilon is known in the end."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WordCalibration(Record):
    """A mechanism and the largest loss of any two words.

    Args:
        mechanism: the mechanism with the epsilon that was found.
        loss: its largest loss in nats.
        is_exact: True if that is the loss itself; False if it is the bound by the noise, which the
            choice of a word can only lower.
    """

    mechanism: WordMechanism
    loss: float
    is_exact: bool

    def __str__(self) -> str:
        """Return the mechanism and its loss on one line."""
        kind = "exact" if self.is_exact else "a bound, by the noise alone"
        return f"{self.mechanism!r}: at most {self.loss:g} nats for any two words ({kind})"


@hinted
def calibrate(kind: Any, vectors: Any, loss: float, **settings: Any) -> WordCalibration:
    """Find the epsilon at which the largest loss of any two words is a given one.

    Args:
        kind: `SanText` or `TEM`, whose loss is exact, or `MetricLaplace` or `Vickrey`, of which the
            loss of the noise is a bound: epsilon times the largest distance.
        vectors: the words and their vectors.
        loss: largest loss in nats, above 0.
        **settings: further arguments of the class.

    Returns:
        A `WordCalibration`.

    Raises:
        TypeError: if `kind` is not a class of this package or `vectors` not an `Embedding`.
        ValueError: if the class has an infinite loss for some words (`CusText`, `SanTextPlus`), or
            no epsilon gives this loss.

    Example:
        >>> from dpcore.text.words import SanText
        >>> vectors = Embedding(("bad", "fine", "good"), [[0.0], [1.0], [1.5]])
        >>> found = calibrate(SanText, vectors, loss=2.0)
        >>> round(found.mechanism.epsilon, 3), round(found.mechanism.worst_loss(), 6)
        (2.456, 2.0)
    """
    vectors, loss = (
        instance("vectors", vectors, Embedding),
        real("loss", loss, low=0.0, open_low=True),
    )
    if not isinstance(kind, type) or not issubclass(kind, WordMechanism):
        raise mistyped("kind", "a class of mechanisms of dpcore.text.words", kind)
    if not issubclass(kind, (MetricExponential, NoisyMechanism)):
        requirement = "a class with a finite loss for any two words"
        raise invalid("kind", requirement, kind.__name__)
    unit = kind(vectors, 1.0, **settings)
    # The claim holds: no smaller epsilon has this loss.
    low = loss / largest_over_blocks(unit.distance_rows, len(vectors))
    if issubclass(kind, NoisyMechanism):
        return WordCalibration(kind(vectors, low, **settings), loss, is_exact=False)

    def is_below(epsilon: float) -> bool:
        return bool(kind(vectors, epsilon, **settings).worst_loss() < loss)

    high = 2.0 * low
    for _ in range(_MOST_DOUBLINGS):
        if not is_below(high):
            break
        low, high = high, 2.0 * high
    else:
        raise invalid("loss", f"one that {kind.__name__} has for some epsilon", loss)
    while high - low > _PRECISION * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return WordCalibration(kind(vectors, low, **settings), loss, is_exact=True)


@hinted
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WordFigures(Record):
    """Figures of one mechanism: its loss, and the words that it leaves.

    Args:
        name: its class.
        epsilon: its parameter.
        loss: largest loss of any two words in nats.
        is_exact: False if that is a bound by the noise.
        ratio: largest loss per unit of what it claims; None where nothing is computed.
        infinite_share: share of the ordered pairs of words with an infinite loss.
        delta: worst delta at the claim.
        kept: mean probability that a word is left as it is.
        support: median number of outputs that carry .95 of a word's probability.
        is_counted: True if the last two were counted on draws: of 100 words, 1,000 draws each.
        words_per_second: words replaced in a second on this machine.
    """

    name: str
    epsilon: float
    loss: float
    is_exact: bool
    ratio: float | None
    infinite_share: float
    delta: float
    kept: float
    support: float
    is_counted: bool
    words_per_second: float

    def __str__(self) -> str:
        """Return one line of the table of `WordComparison`."""
        loss = f"{self.loss:.4g}{'' if self.is_exact else ' (bound)'}"
        ratio = "-" if self.ratio is None else f"{self.ratio:.3f}"
        support = f"{self.support:,.0f}{' (counted)' if self.is_counted else ''}"
        return _format_cells(
            self.name,
            f"{self.epsilon:.4g}",
            loss,
            ratio,
            f"{self.infinite_share:.3f}",
            f"{self.delta:.3g}",
            f"{self.kept:.3f}",
            support,
            f"{self.words_per_second:.2g}",
        )


@hinted
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WordComparison(Record):
    """Mechanisms at one largest loss of any two words.

    Args:
        loss: that loss in nats.
        vectors: number, dimension and SHA-256 of the vectors.
        rows: what was found of each.
    """

    loss: float
    vectors: str
    rows: tuple[WordFigures, ...]

    def __getitem__(self, name: str) -> WordFigures:
        """Return the figures of one class."""
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(name)

    def __str__(self) -> str:
        """Return a table with a line for each mechanism."""
        title = f"{self.vectors}: at most {self.loss:g} nats for any two words where that can be"
        return "\n".join([title, _format_cells(*_HEADS), *map(str, self.rows)])


_HEADS: Final = (
    "mechanism", "epsilon", "largest loss", "/ claimed", "infinite", "delta", "kept", "support",
    "words/s",
)  # fmt: skip
_WIDTHS: Final = (9, 13, 9, 9, 8, 7, 16, 9)


def _format_cells(name: str, *cells: str) -> str:
    aligned = [f"{cell:>{width}}" for cell, width in zip(cells, _WIDTHS, strict=True)]
    return " ".join([f"{name:<14}", *aligned])


@hinted
def compare(vectors: Any, loss: float, *, rng: Rng = None) -> WordComparison:
    """Compare the mechanisms at one largest loss of any two words.

    `SanText` and `TEM` have exactly this loss; `MetricLaplace` and `Vickrey` at most it, by their
    noise. `CusText`, whose loss is infinite for words of different lists, has it as its epsilon.
    `SanTextPlus` is left out: it needs to know which words are sensitive.

    Args:
        vectors: the words and their vectors.
        loss: largest loss in nats, above 0.
        rng: None, an int seed or a numpy Generator, for the figures that are counted.

    Returns:
        A `WordComparison`, of which `comparison["SanText"]` is a row.

    Raises:
        TypeError: if `vectors` is not an `Embedding` or `loss` not a number.
        ValueError: if no epsilon gives this loss.

    Example:
        >>> vectors = Embedding(("bad", "fine", "good"), [[0.0], [1.0], [1.5]])
        >>> found = compare(vectors, loss=2.0, rng=1)
        >>> found["SanText"].loss, round(found["SanText"].kept, 3), found["SanText"].support
        (2.0, 0.608, 3.0)
    """
    draws = np.random.default_rng(seed_of(rng))
    found = [calibrate(kind, vectors, loss) for kind in (SanText, TEM, MetricLaplace, Vickrey)]
    rows = [_measure(one.mechanism, one.loss, one.is_exact, draws) for one in found]
    custom = CusText(vectors, loss, k=min(20, len(vectors)))
    rows.append(_measure(custom, None, True, draws))
    return WordComparison(loss, repr(custom).split("<")[1].split(">")[0], tuple(rows))


def _measure(
    mechanism: Any, loss: float | None, is_exact: bool, rng: np.random.Generator
) -> WordFigures:
    """Compute or count the figures of one mechanism."""
    has_table = hasattr(mechanism, "log_rows")
    table = audit_table(mechanism, progress=False) if has_table else None
    kept, support = _kept_of_table(mechanism) if has_table else _kept_of_draws(mechanism, rng)
    inputs = rng.integers(0, len(mechanism.vectors), _TIMED_WORDS)
    mechanism.replace(inputs, rng)
    begin = time.perf_counter()
    mechanism.replace(inputs, rng)
    seconds = time.perf_counter() - begin
    return WordFigures(
        type(mechanism).__name__,
        mechanism.epsilon,
        table.epsilon if loss is None and table is not None else float(loss or 0.0),
        is_exact,
        None if table is None else table.epsilon / mechanism.claim,
        0.0 if table is None else table.infinite_share,
        table.delta(mechanism.claim) if table is not None and table.refuted else 0.0,
        kept,
        support,
        not has_table,
        _TIMED_WORDS / seconds,
    )


def _kept_of_table(mechanism: TableMechanism) -> tuple[float, float]:
    """Return the mean probability that a word stays, and the median support; exact."""
    words = len(mechanism.vectors)
    kept, support = np.empty(words), np.empty(words)
    for first in range(0, words, _ROWS_AT_ONCE):
        rows = np.exp(mechanism.log_rows(first, min(first + _ROWS_AT_ONCE, words)))
        at = np.arange(first, first + len(rows))
        kept[at] = rows[at - first, at]
        carried = np.cumsum(-np.sort(-rows, axis=1), axis=1)
        support[at] = (carried < _CARRIED).sum(axis=1) + 1
    return float(kept.mean()), float(np.median(support))


def _kept_of_draws(mechanism: WordMechanism, rng: np.random.Generator) -> tuple[float, float]:
    """Return the same, counted on draws of words that are evenly spread over all."""
    words = np.unique(np.linspace(0, len(mechanism.vectors) - 1, _COUNTED_WORDS).astype(np.int64))
    inputs = np.repeat(words, _COUNTED_DRAWS)
    outputs = mechanism.replace(inputs, rng).reshape(len(words), _COUNTED_DRAWS)
    support = []
    for row in outputs:
        counts = np.sort(np.unique(row, return_counts=True)[1])[::-1]
        support.append(int((np.cumsum(counts) < _CARRIED * row.size).sum()) + 1)
    return float((outputs == words[:, np.newaxis]).mean()), float(np.median(support))
