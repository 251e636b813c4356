"""Texts by their words: the attack for texts that are mostly all different.

Outputs are read as rows of tokens. The score sums the log ratios of the tokens present and of their
number.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, Final

import numpy as np

from ..errors import choice, invalid
from ..events.event import Score
from ..records import Array, Floats, Ints, Pair
from . import arrays
from .arrays import Merged
from .attack import ScoreAttack
from .ratios import clear_runs, log_ratios, round_weights, shrink_log_ratios, smooth_bins

NO_ROW: Final = -1
"""The size of an output that is not a text."""
_CHUNK_OUTPUTS: Final = 2**11
"""Outputs that are taken apart at a time."""
_MAX_TOKENS: Final = 2**14
"""Tokens that are kept: those that move the score most."""
_MAX_FITTED_TOKENS: Final = 2**20
"""Tokens a side from which the ratios are taken, about."""
_MIN_TOKEN_OUTPUTS: Final = 2
"""A token must occur in so many pilot outputs to be one by which the noise of all is judged."""
_MAX_SEPARATE_LENGTHS: Final = 64
"""Different lengths that are counted each by itself."""
_SHOWN_TOKENS: Final = 6
"""Tokens that a report names."""
_SHOWN_TOKEN_CHARACTERS: Final = 24
"""Characters of a token that a report shows."""
_SCREENED_OUTPUTS: Final = 2**12
_MIN_MEAN_REPEATS: Final = 8


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The tokens of many outputs.

    Args:
        rows: the tokens of each, or none for an output that is not a text.
        sizes: how many each has, shape `(size,)`; `NO_ROW` for those.
    """

    rows: list[list[str]]
    sizes: Ints

    def number_tokens(self, table: Mapping[str, int]) -> tuple[Ints, Ints]:
        """Return which row has which token, each once a row, by the numbers that a table gives.

        Tokens without a number are left out; a table may make one for each (`Numbering`).
        """
        tokens, is_new = chain.from_iterable(self.rows), isinstance(table, Numbering)
        codes_of_tokens = (
            map(table.__getitem__, tokens) if is_new else map(table.get, tokens, repeat(-1))
        )
        places = np.repeat(np.arange(len(self.rows)), np.maximum(self.sizes, 0))
        codes = np.fromiter(codes_of_tokens, np.int64, places.size)
        is_numbered = codes >= 0
        width = max(1, len(table))
        place, code = np.divmod(np.unique(places[is_numbered] * width + codes[is_numbered]), width)
        return place, code


class Numbering(dict[str, int]):
    """A table that gives every token a number when it is first looked up.

    Example:
        >>> table = Numbering()
        >>> Rows([["a", "b", "a"]], np.array([3])).number_tokens(table)[1].tolist(), dict(table)
        ([0, 1], {'a': 0, 'b': 1})
    """

    def __missing__(self, token: str) -> int:
        return self.setdefault(token, len(self))


def iterate_words(outputs: Array) -> Iterator[tuple[slice, Rows]]:
    """Yield the words of outputs, some at a time: what stands between white space, unchanged.

    Bytes are read as Latin-1, one character a byte.

    Args:
        outputs: texts, shape `(size,)` or `(size, 1)`; whatever else is among them is not a text.

    Example:
        >>> [(part, rows)] = iterate_words(np.array(["to boston", "", None], dtype=object))
        >>> rows.rows, rows.sizes.tolist()
        ([['to', 'boston'], [], []], [2, 0, -1])
    """
    for first in range(0, len(outputs), _CHUNK_OUTPUTS):
        part = slice(first, min(first + _CHUNK_OUTPUTS, len(outputs)))
        items = texts_of(outputs[part])
        rows = [text.split() if text is not None else [] for text in items]
        sizes = np.fromiter(map(len, rows), np.int64, len(rows))
        sizes[[text is None for text in items]] = NO_ROW
        yield part, Rows(rows, sizes)


def texts_of(outputs: Array) -> list[str | None]:
    """Return every output as a string, or None for one that is not a text."""
    if outputs.dtype.names is not None or outputs.size != len(outputs):
        return [None] * len(outputs)
    items = outputs.reshape(len(outputs)).tolist()
    return items if outputs.dtype.kind == "U" else list(map(_item_to_text, items))


def _item_to_text(item: Any) -> str | None:
    if isinstance(item, (bytes, bytearray, memoryview)):
        return bytes(item).decode("latin-1")
    return str(item) if isinstance(item, str) else None


_READER: Final = "words"
"""Name of the function that makes rows of tokens, in a record."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TokenRatios(Merged, word="TokenRatios"):
    """The sum of what the different tokens of an output say, and of what their number says.

    A token that the pilot never showed has weight 0, however often it occurs; one that occurs
    twice in an output counts once.

    Args:
        tokens: those that say something, the heaviest first.
        values: what each adds to the score, positive where it speaks for x.
        starts: where each run of lengths begins, increasing.
        lengths: what an output that is not a text adds, or one below the first start, then what one
            in each run adds.
        reader: how outputs become rows of tokens: "words".

    Raises:
        TypeError: if `reader` is not a string.
        ValueError: if it is none of the names, a token occurs twice, or the tables do not fit.

    Example:
        >>> score = TokenRatios(("boston", "fare"), [1.25, -0.5], [0], [0.0, 0.125])
        >>> score(np.array(["to boston boston", "boston fare", ""])).tolist()
        [1.375, 0.875, 0.125]
        >>> print(score)
        words ('boston' +1.2, 'fare' -0.5) and length
    """

    tokens: tuple[str, ...]
    values: Floats
    starts: Ints
    lengths: Floats
    reader: str = _READER

    cost = 5000

    def __post_init__(self) -> None:
        """Freeze the tables and check that they fit."""
        choice("reader", self.reader, (_READER,))
        object.__setattr__(self, "tokens", tuple(self.tokens))
        arrays.freeze_arrays(self)
        if len(set(self.tokens)) != len(self.tokens):
            raise invalid("tokens", "all different", self.tokens)
        if self.values.shape != (len(self.tokens),):
            raise invalid("values", f"one for each of {len(self.tokens)} tokens", self.values.shape)
        if not (np.diff(self.starts) > 0).all():
            raise invalid("starts", "increasing", self.starts)
        if self.lengths.shape != (self.starts.size + 1,):
            requirement = f"one more than the {self.starts.size} starts"
            raise invalid("lengths", requirement, self.lengths.shape)

    def __call__(self, outputs: Array) -> Floats:
        """Return the scores, shape `(size,)`."""
        outputs = np.asarray(outputs)
        table = {token: number for number, token in enumerate(self.tokens)}
        scores = np.empty(len(outputs))
        for part, rows in iterate_words(outputs):
            place, code = rows.number_tokens(table)
            weights = np.bincount(place, self.values[code], minlength=rows.sizes.size)
            scores[part] = weights + self.lengths[np.searchsorted(self.starts, rows.sizes, "right")]
        return scores

    @property
    def says_nothing(self) -> bool:
        """True if every output has the same score."""
        return not self.tokens and bool((self.lengths == self.lengths[-1]).all())

    def __str__(self) -> str:
        """Return one line for a report."""
        named, most = [], _SHOWN_TOKEN_CHARACTERS
        for token, value in itertools.islice(
            zip(self.tokens, self.values, strict=True), _SHOWN_TOKENS
        ):
            shown = token if len(token) <= most else f"{token[:most]}..."
            named.append(f"{shown!r} {value:+.2g}")
        if len(self.tokens) > _SHOWN_TOKENS:
            named.append(f"{len(self.tokens) - _SHOWN_TOKENS} more")
        phrases = [f"{self.reader} ({', '.join(named)})"] if named else []
        phrases += ["length"] if (self.lengths != self.lengths[-1]).any() else []
        return " and ".join(phrases) or f"no {self.reader}"


def ratios_of(sides: Sequence[Array]) -> TokenRatios:
    """Fit the score on pilot outputs.

    Of a token in k of n outputs on x and k' of n' on x' it is ln((k + 1/2)/(n + 1)) less the same
    on x', shrunk by how much of the spread of all such ratios is noise (see `shrink_log_ratios`);
    neighbouring lengths that the pilot does not tell apart are one. On eight made-up rewriters at
    256 and 1,024 pilot outputs per side this certified .98 of what the best of 25 rules did for
    each; unshrunk ratios .82 and .90, without the length .87 and .97, log odds the same.

    Args:
        sides: pilot outputs on x and on x', shapes `(size, ...)`.
    """
    table = Numbering()
    tables = [_count_tokens(side, table) for side in sides]
    n, n_prime = (sizes.size for _, sizes in tables)
    k, k_prime = (np.pad(counts, (0, len(table) - counts.size)) for counts, _ in tables)
    starts, lengths = _weigh_lengths([sizes for _, sizes in tables])
    often = k + k_prime >= _MIN_TOKEN_OUTPUTS
    ratios = log_ratios(k, k_prime, n, n_prime)
    values = round_weights(shrink_log_ratios(*ratios, live=often))
    # By what each adds to the score's variance; then the heaviest first.
    moved = np.argsort(-(values**2) * (k + k_prime), kind="stable")[:_MAX_TOKENS]
    places = moved[values[moved] != 0.0]
    places = places[np.argsort(-np.abs(values[places]), kind="stable")]
    names = list(table)
    return TokenRatios(tuple(names[i] for i in places), values[places], starts, lengths)


def _count_tokens(side: Array, table: dict[str, int]) -> tuple[Floats, Ints]:
    """Count the outputs in which each token of a table occurs, new ones put in; and the lengths."""
    counts, sizes, rows_counted = np.zeros(0), [], 0
    for _, rows in iterate_words(side):
        _, codes = rows.number_tokens(table)
        more = np.bincount(codes, minlength=len(table))
        counts = np.pad(counts, (0, more.size - counts.size)) + more
        sizes.append(rows.sizes)
        rows_counted += codes.size
        if rows_counted >= _MAX_FITTED_TOKENS:
            break
    return counts, np.concatenate(sizes)


def _weigh_lengths(sizes: list[Ints]) -> tuple[Ints, Floats]:
    """Return the starts of runs of lengths, and the ratios of no text and of each run."""
    different = np.unique(np.concatenate(sizes))
    different = different[different != NO_ROW]
    if different.size > _MAX_SEPARATE_LENGTHS:
        pooled = np.sort(np.concatenate(sizes))
        places = np.linspace(0, pooled.size - 1, _MAX_SEPARATE_LENGTHS).astype(np.intp)
        different = np.setdiff1d(pooled[places], [NO_ROW])
    bins = different.size + 1
    k, k_prime = (
        np.bincount(np.searchsorted(different, side, "right"), np.ones(side.size), bins)[np.newaxis]
        for side in sizes
    )
    runs = np.zeros(k.shape, dtype=np.intp)
    runs[:, 1:] = 1 + clear_runs(k[:, 1:], k_prime[:, 1:])
    n, n_prime = (np.array([[side.size]]) for side in sizes)
    values = round_weights(smooth_bins(k, k_prime, n, n_prime, runs))[0]
    first = np.flatnonzero(np.diff(runs[0])) + 1
    starts = different[first - 1]
    starts[:1] = 0
    return starts, values[[0, *first]]


@dataclass(frozen=True, slots=True, repr=False)
class Words(ScoreAttack):
    """Log ratios of the presence of words and of their number, summed.

    Rewritten texts are mostly all different, so that no table of texts says anything; their words
    come again. Of a word in k of n pilot outputs on x and in k' of n' on x' the ratio is
    ln((k + 1/2)/(n + 1)) - ln((k' + 1/2)/(n' + 1)), shrunk towards 0 by how much of the spread of
    all ratios is noise; so is that of the length, the number of words, in runs of lengths that the
    pilot tells apart. What the pilot never showed adds 0. The sum would be the log-likelihood
    ratio if words occurred independently of each other; whatever they do, the audit counts it on
    fresh draws.

    A word is what stands between white space, as it is written; bytes are read as Latin-1. None
    and whatever else is not a text has no words and a length of its own.

    Source:
        Maron (1961), Journal of the ACM 8, for the sum over words as if independent; Efron and
        Morris (1973), Journal of the American Statistical Association 68, for the shrinkage.

    Example:
        >>> import dpcore
        >>> vocabulary = np.array([f"word{i}" for i in range(200)])
        >>> def any_words(x, size, rng):
        ...     kept = rng.random((size, 12)) < 0.3
        ...     others = vocabulary[rng.integers(200, size=kept.shape)]
        ...     return [" ".join(row) for row in np.where(kept, x.split(), others)]
        >>> pair = "a b c d e f g h i j k l", "m n o p q r s t u v w x"
        >>> report = dpcore.audit(any_words, pair, attack=Words(), trials=10**4, claim=3.0, rng=1)
        >>> report.verdict, report.epsilon_lower > 5.0
        ('refuted', True)
    """

    parts = False

    def candidates(self, outputs: Array, outputs_prime: Array, pair: Pair) -> tuple[Score, ...]:
        """Return the score that the pilot suggests.

        Args:
            outputs: pilot outputs on `x`, shape `(size,)`.
            outputs_prime: pilot outputs on `x_prime`, shape `(size',)`.
            pair: the pair they were drawn on (not used).

        Returns:
            One score, or none where none of the first outputs is a text.
        """
        sides = np.asarray(outputs), np.asarray(outputs_prime)
        return (ratios_of(sides),) if _first_texts(sides) else ()

    def telling(self, outputs: Array, outputs_prime: Array) -> tuple[Score, ...]:
        """Return the score, where a table of whole texts is less informative.

        Args:
            outputs: pilot outputs on `x`, shape `(size,)`.
            outputs_prime: pilot outputs on `x_prime`, shape `(size',)`.

        Returns:
            One score, or none where texts come 8 times each on average, or no token helps.
        """
        sides = np.asarray(outputs), np.asarray(outputs_prime)
        texts = _first_texts(sides)
        scores = () if len({*texts}) * _MIN_MEAN_REPEATS <= len(texts) else (ratios_of(sides),)
        return tuple(score for score in scores if not score.says_nothing)


def _first_texts(sides: tuple[Array, ...]) -> list[str]:
    """Return the texts among the first outputs of both sides."""
    if not all(side.dtype.kind in "USO" and side.size for side in sides):
        return []
    return [
        text for side in sides for text in texts_of(side[:_SCREENED_OUTPUTS]) if text is not None
    ]
