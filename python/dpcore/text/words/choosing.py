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
from ...tables.table_audit import audit_table
from .embedding import Embedding
from .exponential import TEM, CusText, MetricExponential, SanText
from .mechanism import WordMechanism
from .noisy import MetricLaplace, NoisyMechanism, Vickrey
from .texts import measure_words, split_rows

__all__ = ["WordCalibration", "WordComparison", "WordFigures", "calibrate", "compare"]

_MAX_EPSILON_RATIO: Final = 2.0**40
"""Quotient of two values of epsilon beyond which a loss counts as out of reach."""

_COUNTED_WORDS, _COUNTED_DRAWS = 100, 1_000
"""Words, and draws of each, from which shares are counted where there is no table."""

_N_TIMED_WORDS: Final = 2**16

_EPSILON_PRECISION: Final = 1e-9
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
    vectors = instance("vectors", vectors, Embedding)
    loss = real("loss", loss, low=0.0, open_low=True)
    if not isinstance(kind, type) or not issubclass(kind, WordMechanism):
        raise mistyped("kind", "a class of mechanisms of dpcore.text.words", kind)
    if not issubclass(kind, (MetricExponential, NoisyMechanism)):
        requirement = "a class with a finite loss for any two words"
        raise invalid("kind", requirement, kind.__name__)
    unit = kind(vectors, 1.0, **settings)
    # The claim holds: no smaller epsilon has this loss.
    parts = split_rows(*unit.shape)
    least = loss / max(float(unit.distance_rows(at.start, at.stop).max()) for at in parts)
    if issubclass(kind, NoisyMechanism):
        return WordCalibration(kind(vectors, least, **settings), loss, is_exact=False)
    low, high = least, np.inf
    while high - low > _EPSILON_PRECISION * low:
        middle = min(2.0 * low, 0.5 * (low + high))
        if kind(vectors, middle, **settings).worst_loss() >= loss:
            high = middle
        elif middle < _MAX_EPSILON_RATIO * least:
            low = middle
        else:
            raise invalid("loss", f"one that {kind.__name__} has for some epsilon", loss)
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
        return (
            f"{self.name:<14} {self.epsilon:>9.4g} {loss:>13} {ratio:>9} "
            f"{self.infinite_share:>9.3f} {self.delta:>8.3g} {self.kept:>7.3f} {support:>16} "
            f"{self.words_per_second:>9.2g}"
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
        return {row.name: row for row in self.rows}[name]

    def __str__(self) -> str:
        """Return a table with a line for each mechanism."""
        title = f"{self.vectors}: at most {self.loss:g} nats for any two words where that can be"
        return "\n".join([title, _COMPARISON_HEADER, *map(str, self.rows)])


_COMPARISON_HEADER: Final = (
    "mechanism        epsilon  largest loss / claimed  infinite    delta    kept          support"
    "   words/s"
)


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
    kinds = (SanText, TEM, MetricLaplace, Vickrey)
    found = [(kind.__name__, calibrate(kind, vectors, loss)) for kind in kinds]
    rows = [_measure_mechanism(name, one.mechanism, one.loss, draws) for name, one in found]
    custom = CusText(vectors, loss, k=min(20, len(vectors)))
    rows.append(_measure_mechanism("CusText", custom, None, draws))
    return WordComparison(loss, repr(custom).split("<")[1].split(">")[0], tuple(rows))


def _measure_mechanism(
    name: str, mechanism: WordMechanism, loss: float | None, rng: np.random.Generator
) -> WordFigures:
    """Compute or count the figures of one mechanism."""
    size, table = len(mechanism.vectors), None
    words = np.arange(size)
    if mechanism.has_table:
        table = audit_table(mechanism, progress=False)
    else:
        # Evenly spread over all.
        words = np.unique(np.linspace(0, size - 1, _COUNTED_WORDS).astype(np.int64))
    kept, _, support = measure_words(mechanism, words, _COUNTED_DRAWS, seed_of(rng))
    inputs = rng.integers(0, size, _N_TIMED_WORDS)
    mechanism.replace(inputs, rng)
    begin = time.perf_counter()
    mechanism.replace(inputs, rng)
    seconds = time.perf_counter() - begin
    return WordFigures(
        name=name,
        epsilon=mechanism.epsilon,
        loss=table.epsilon if loss is None and table is not None else float(loss or 0.0),
        is_exact=not isinstance(mechanism, NoisyMechanism),
        ratio=None if table is None else table.epsilon / mechanism.claim,
        infinite_share=0.0 if table is None else table.infinite_share,
        delta=table.delta(mechanism.claim) if table is not None and table.refuted else 0.0,
        kept=float(kept.mean()),
        support=float(np.median(support)),
        is_counted=table is None,
        words_per_second=_N_TIMED_WORDS / seconds,
    )
