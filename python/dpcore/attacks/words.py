"""Attack on texts that are almost all different, by the words in them.

Each output is split into words (tokens). The score of an output is the sum of the log ratios of its
words, plus the log ratio of its number of words.
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
from .ratios import log_ratios, ratio_set_per_bin, shrink_ratios_to_0, to_fixed_point, weigh_bins

NO_ROW: Final = -1
"""Value that is stored as the number of tokens (words) if an output is not a text."""
_CHUNK_OUTPUTS: Final = 2**11
"""Number of outputs that are split into words in one step."""
_MAX_TOKENS: Final = 2**14
"""Largest number of tokens that are kept. The tokens that change the score most are kept."""
_MAX_FITTED_TOKENS: Final = 2**20
"""Approximate number of tokens per input from which the ratios are computed."""
_MIN_TOKEN_OUTPUTS: Final = 2
"""Least number of pilot outputs that contain a token. A rarer token gets weight 0."""
_MAX_SEPARATE_LENGTHS: Final = 64
"""Largest number of different lengths that are counted separately."""
_SHOWN_TOKENS: Final = 6
"""Number of tokens that a report names."""
_SHOWN_TOKEN_CHARACTERS: Final = 24
"""Number of characters of a token that a report shows."""
_SCREENED_OUTPUTS: Final = 2**12
_MIN_MEAN_REPEATS: Final = 8


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The words (tokens) of several outputs.

    Args:
        rows: for each output, the list of its words. The list is empty if the output is not a text.
        sizes: for each output, the number of its words, shape `(size,)`. It is -1 if the output is
            not a text.
    """

    rows: list[list[str]]
    sizes: Ints

    def row_and_token_ids(self, table: Mapping[str, int]) -> tuple[Ints, Ints]:
        """List the words (tokens) that occur in each output. Each word has a whole number, its id.

        The result is two arrays of equal length. Entry i of the first array is the index of an
        output. Entry i of the second array is the id of a word in this output. A word that occurs
        several times in an output is listed once.

        Args:
            table: id of each word. Words that are not in the table are left out. If the table is a
                `Numbering`, these words are not left out: each of them is added to the table with a
                new id.
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
    """Dictionary from words to ids (0, 1, ...). If a new word is looked up, it gets the next id.

    Example:
        >>> table = Numbering()
        >>> Rows([["a", "b", "a"]], np.array([3])).row_and_token_ids(table)[1].tolist(), dict(table)
        ([0, 1], {'a': 0, 'b': 1})
    """

    def __missing__(self, token: str) -> int:
        return self.setdefault(token, len(self))


def split_texts_into_words(outputs: Array) -> Iterator[tuple[slice, Rows]]:
    """Split outputs into words at white space, and yield the words of the outputs block by block.

    Each result is a pair: a slice that selects the outputs of the block, and the words of these
    outputs. Bytes are read as Latin-1, one character per byte.

    Args:
        outputs: the outputs, shape `(size,)` or `(size, 1)`. An output that is neither a string nor
            bytes has no words.

    Example:
        >>> [(part, rows)] = split_texts_into_words(np.array(["to boston", "", None], dtype=object))
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
    """Convert outputs to a list of strings, with None for each output that is not a text."""
    if outputs.dtype.names is not None or outputs.size != len(outputs):
        return [None] * len(outputs)
    items = outputs.reshape(len(outputs)).tolist()
    return items if outputs.dtype.kind == "U" else list(map(_item_to_text, items))


def _item_to_text(item: Any) -> str | None:
    if isinstance(item, (bytes, bytearray, memoryview)):
        return bytes(item).decode("latin-1")
    return str(item) if isinstance(item, str) else None


_READER: Final = "words"
"""Name of the rule that splits outputs into tokens, as it is stored with the score."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TokenRatios(Merged, word="TokenRatios"):
    """Score of a text: the sum of the weights of its different words, plus a weight for its length.

    The length is the number of words. A word that occurs twice in a text adds its weight once. A
    word that is not in `tokens` has weight 0.

    Args:
        tokens: the words that have a weight. The word with the largest absolute weight comes first.
        values: weight of each of these words. A positive weight favours the input x, and a negative
            weight favours x'.
        starts: smallest length in each interval of lengths, in increasing order.
        lengths: weights of lengths. The first weight is for outputs that are not texts or are
            shorter than `starts[0]`. The other weights are for the intervals of lengths.
        reader: name of the rule that splits outputs into words. The only rule is "words": split at
            white space.

    Raises:
        TypeError: if `reader` is not a string.
        ValueError: if `reader` is unknown, a word occurs twice in `tokens`, or the lengths of the
            arrays do not match.

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
        """Make the arrays read-only and check that their lengths match."""
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
        """Return the score of each output, shape `(size,)`."""
        outputs = np.asarray(outputs)
        table = {token: number for number, token in enumerate(self.tokens)}
        scores = np.empty(len(outputs))
        for part, rows in split_texts_into_words(outputs):
            place, code = rows.row_and_token_ids(table)
            weights = np.bincount(place, self.values[code], minlength=rows.sizes.size)
            scores[part] = weights + self.lengths[np.searchsorted(self.starts, rows.sizes, "right")]
        return scores

    @property
    def has_constant_score(self) -> bool:
        """True if this score has the same value for every output."""
        return not self.tokens and bool((self.lengths == self.lengths[-1]).all())

    def __str__(self) -> str:
        """Return a description of the score in one line, for the report of an audit."""
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


def fit_log_ratios(sides: Sequence[Array]) -> TokenRatios:
    """Estimate weights of words and of text lengths from pilot outputs, and return the score.

    Let a word occur in k of n outputs on x and in k' of n' outputs on x'. The weight of the word is
    ``ln((k + 1/2)/(n + 1)) - ln((k' + 1/2)/(n' + 1))``, moved towards 0 to reduce the effect of
    chance. Neighbouring lengths have the same weight if the pilot does not show a difference
    between them.

    Args:
        sides: two arrays: the pilot outputs (first draws) on x, and those on x'.
    """
    table = Numbering()
    tables = [_doc_freqs_and_lengths(side, table) for side in sides]
    n, n_prime = (sizes.size for _, sizes in tables)
    k, k_prime = (np.pad(counts, (0, len(table) - counts.size)) for counts, _ in tables)
    starts, lengths = _fit_text_length_interval_weights([sizes for _, sizes in tables])
    often = k + k_prime >= _MIN_TOKEN_OUTPUTS
    ratios = log_ratios(k, k_prime, n, n_prime)
    values = to_fixed_point(shrink_ratios_to_0(*ratios, live=often))
    # Select tokens by their contribution to the score's variance; then sort the heaviest first.
    moved = np.argsort(-(values**2) * (k + k_prime), kind="stable")[:_MAX_TOKENS]
    places = moved[values[moved] != 0.0]
    places = places[np.argsort(-np.abs(values[places]), kind="stable")]
    names = list(table)
    return TokenRatios(tuple(names[i] for i in places), values[places], starts, lengths)


def _doc_freqs_and_lengths(side: Array, table: dict[str, int]) -> tuple[Floats, Ints]:
    """Count the outputs that contain each token. Return these counts and the lengths of outputs.

    Args:
        side: outputs on one input.
        table: number of each token, a `Numbering`, to which new tokens are added.
    """
    counts, sizes, rows_counted = np.zeros(0), [], 0
    for _, rows in split_texts_into_words(side):
        _, codes = rows.row_and_token_ids(table)
        more = np.bincount(codes, minlength=len(table))
        counts = np.pad(counts, (0, more.size - counts.size)) + more
        sizes.append(rows.sizes)
        rows_counted += codes.size
        if rows_counted >= _MAX_FITTED_TOKENS:
            break
    return counts, np.concatenate(sizes)


def _fit_text_length_interval_weights(sizes: list[Ints]) -> tuple[Ints, Floats]:
    """Return the least length of each interval of lengths, and the weights.

    The first weight is for outputs that are not texts. One weight for each interval follows.

    Args:
        sizes: lengths of the outputs on x and on x'. -1 stands for an output that is not a text.
    """
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
    runs[:, 1:] = 1 + ratio_set_per_bin(k[:, 1:], k_prime[:, 1:])
    n, n_prime = (np.array([[side.size]]) for side in sizes)
    values = to_fixed_point(weigh_bins(k, k_prime, n, n_prime, runs))[0]
    first = np.flatnonzero(np.diff(runs[0])) + 1
    starts = different[first - 1]
    starts[:1] = 0
    return starts, values[[0, *first]]


@dataclass(frozen=True, slots=True, repr=False)
class Words(ScoreAttack):
    """Attack on texts, based on their words. Use it if almost all texts are different.

    Each word has a weight, which is estimated on the pilot (the first draws on the inputs x and
    x'). Let a word occur in k of n pilot outputs on x and in k' of n' pilot outputs on x'. The
    weight of the word is ``ln((k + 1/2)/(n + 1)) - ln((k' + 1/2)/(n' + 1))``, moved towards 0 to
    reduce the effect of chance. Each length of a text (number of words) also has such a weight.
    Neighbouring lengths have the same weight if the pilot does not show a difference between them.
    Words that do not occur in the pilot have weight 0.

    The score of a text is the sum of the weights of its different words, plus the weight of its
    length. If the words of a text are independent of each other, the score estimates the
    log-likelihood ratio. The certified bound is valid without this independence, because the audit
    counts the event on new draws.

    Texts are split into words at white space, and the words are not changed. Bytes are read as
    Latin-1. Outputs that are not texts, such as None, have one common weight.

    Source:
        Maron (1961), Journal of the ACM 8, on a sum over words that are treated as independent.
        Efron and Morris (1973), Journal of the American Statistical Association 68, on moving
        weights towards 0 (shrinkage).

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
        """Return a tuple with the score that is fitted on pilot outputs (the first draws).

        Args:
            outputs: pilot outputs on x, shape `(size,)`.
            outputs_prime: pilot outputs on x', shape `(size',)`.
            pair: the inputs x and x'. The attack does not use them.

        Returns:
            A tuple of one score. The tuple is empty if the first 4,096 outputs on x and the first
            4,096 outputs on x' do not contain a text.
        """
        sides = np.asarray(outputs), np.asarray(outputs_prime)
        return (fit_log_ratios(sides),) if _texts_among_first_outputs(sides) else ()

    def telling(self, outputs: Array, outputs_prime: Array) -> tuple[Score, ...]:
        """Fit the score of this attack on pilot outputs, if they are texts that seldom repeat.

        Args:
            outputs: pilot outputs (first draws) on x, shape `(size,)`.
            outputs_prime: pilot outputs on x', shape `(size',)`.

        Returns:
            A tuple of one score. The tuple is empty if each text occurs at least 8 times on
            average. For such texts, other attacks count each text as a whole. The tuple is also
            empty if all weights are 0.
        """
        sides = np.asarray(outputs), np.asarray(outputs_prime)
        texts = _texts_among_first_outputs(sides)
        scores = () if len({*texts}) * _MIN_MEAN_REPEATS <= len(texts) else (fit_log_ratios(sides),)
        return tuple(score for score in scores if not score.has_constant_score)


def _texts_among_first_outputs(sides: tuple[Array, ...]) -> list[str]:
    """Return the texts among the first 4,096 outputs on x and on x'."""
    if not all(side.dtype.kind in "USO" and side.size for side in sides):
        return []
    return [
        text for side in sides for text in texts_of(side[:_SCREENED_OUTPUTS]) if text is not None
    ]
