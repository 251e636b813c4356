"""SanText, SanText+, TEM and CusText: exponential mechanisms that replace words.

The probability of a new word depends on its distance from the word of the text. `calibrate` finds
the epsilon at which the largest privacy loss between two words has a given value. `compare`
compares the mechanisms at the same largest loss.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from ...errors import choice, flag, instance, integer, invalid, mistyped, real
from ...mechanisms.texts import as_texts
from ...progress import Progress
from ...records import Floats, Ints, Pair, Record
from ...streams import Rng, to_seed
from ...suggestions import explain_argument_errors
from ...tables.table_audit import audit_table
from ..corpus import all_or_training_texts, words_of
from .embedding import Embedding
from .losses import kept_shares_limits_supports, split_rows
from .mechanism import MetricMechanism, TableMechanism, WordMechanism, nearest_squared, require_rows
from .metric_noise import MetricLaplace, NoisyMechanism, Vickrey

Mapping = Literal["conservative", "aggressive"]
_MAPPING_NAMES: Final[tuple[Mapping, ...]] = get_args(Mapping)

_MAX_EPSILON_RATIO: Final = 2.0**40
"""Largest ratio of two values of epsilon in the search by `calibrate`."""
_COUNTED_WORDS, _COUNTED_DRAWS = 100, 1_000
"""Number of words, and number of random outputs per word, if output probabilities are not known."""
_N_TIMED_WORDS: Final = 2**16
_EPSILON_PRECISION: Final = 1e-9
"""Relative precision of the epsilon that `calibrate` finds."""
_COMPARISON_HEADER: Final = (
    "mechanism        epsilon  largest loss / claimed  infinite    delta    kept          support"
    "   words/s"
)


class MetricExponential(MetricMechanism, TableMechanism):
    """Exponential mechanism that replaces a word: P(y | x) = exp(-epsilon m(x, y)/2)/Z(x).

    The mechanism replaces a word x of a text by a random word y. Here m is a metric, and Z(x)
    normalises the probabilities. The privacy loss of x against another word x' at the output y is
    ``ln(P(y | x)/P(y | x'))``. By the triangle inequality, the privacy loss is largest at the
    output y = x. At this output, the loss is ``epsilon m(x, x')/2 + ln Z(x') - ln Z(x)``.
    """

    @property
    def gamma(self) -> float:
        """Distance beyond which all words are equally probable replacements of a word x.

        The value is infinite if the mechanism has no such distance.
        """
        return math.inf

    def _log_weights(self, numbers: Ints, sign: float = -1.0) -> Floats:
        scores = self.vectors.distances(numbers)
        np.minimum(scores, self.gamma, out=scores)
        scores *= sign * 0.5 * self.epsilon
        return scores

    def _log_probabilities(self, numbers: Ints) -> Floats:
        scores = self._log_weights(numbers)
        scores -= _log_sums(scores)[:, None]
        return scores

    @cached_property
    def _log_normalisers(self) -> Floats:
        """Logarithm of the normalising constant Z(x) of each word x."""
        numbers, parts = np.arange(len(self.vectors)), split_rows(*self.shape)
        return np.concatenate([_log_sums(self._log_weights(numbers[part])) for part in parts])

    def loss_rows(self, start: int, stop: int) -> tuple[Floats, Ints]:
        """Compute the largest privacy losses of several words x against all V words x', in nats.

        Args:
            start: position of the first word x.
            stop: position after the last word x.

        Returns:
            Two arrays of shape `(stop - start, V)`. The first array contains the maximum of
            ``ln(P(y | x)/P(y | x'))`` over all outputs y. The second array contains the position of
            an output y that attains the maximum, which is always the word x.

        Raises:
            ValueError: if `start` or `stop` is out of range.
        """
        numbers = require_rows(len(self.vectors), start, stop)
        losses = self._log_weights(numbers, sign=1.0)
        losses += self._log_normalisers
        losses -= self._log_normalisers[numbers][:, None]
        return losses, np.broadcast_to(numbers[:, None], losses.shape)

    def worst_loss(self) -> float:
        """Compute the largest privacy loss of this mechanism between any two words, in nats."""
        parts = split_rows(*self.shape)
        return max(float(self.loss_rows(part.start, part.stop)[0].max()) for part in parts)

    def largest_losses(self, numbers: Ints) -> Floats:
        """Compute, for each of n words x, the largest privacy loss between x and any other word.

        Args:
            numbers: positions of the words, shape `(n,)`.

        Returns:
            Losses in nats, shape `(n,)`. Each loss is the maximum over all other words x', both for
            x against x' and for x' against x.
        """
        largest = np.empty(len(numbers))
        for i, number in enumerate(numbers.tolist()):
            losses = self.loss_rows(number, number + 1)[0][0]
            # In the direction of x' against x, the difference of the normalisers has the opposite
            # sign.
            turn = 2.0 * (self._log_normalisers - self._log_normalisers[number])
            largest[i] = np.maximum(losses, losses - turn).max()
        return largest


def _log_sums(scores: Floats) -> Floats:
    """Return ln(sum(exp(scores))) for each row. The largest score of each row must be 0."""
    sums: Floats = np.log(np.exp(scores).sum(axis=1))
    return sums


@explain_argument_errors
@dataclass(frozen=True, eq=False, repr=False)
class SanText(MetricExponential):
    """SanText: replaces a word x by y with probability proportional to exp(-epsilon d(x, y)/2).

    Here x is a word of a text, y is a word with a vector, and d is the Euclidean distance between
    the vectors of x and y. Each word of a text is replaced independently.

    Args:
        vectors: the words and their vectors.
        epsilon: privacy parameter per unit of Euclidean distance, above 0.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if a number is out of range, there is only one word, or two words have the same
            vector.

    Source:
        Yue, Du, Wang, Li, Sun and Chow (2021), SanText.

    Example:
        >>> import dpcore
        >>> vectors = Embedding(("bad", "fine", "good"), [[0.0], [1.0], [1.5]])
        >>> mech = SanText(vectors, epsilon=2.0)
        >>> mech.rewrite(["Good, fine!"], rng=1)
        ['fine bad']
        >>> mech.pair("good", "bad"), round(mech.loss(mech.pair("good", "bad")), 3)
        (Pair(x='good', x_prime='bad', distance=1.5), 1.64)
    """


@explain_argument_errors
@dataclass(frozen=True, eq=False, repr=False)
class TEM(MetricExponential):
    """Truncated exponential mechanism (TEM), which replaces a word x of a text by a random word y.

    The probability of y is proportional to ``exp(-epsilon min(d, gamma)/2)``. Here d is the
    Euclidean distance between the vectors of x and y, and
    ``gamma = (2/epsilon) ln((1 - beta)(V - 1)/beta)``. Therefore all words farther than gamma from
    x are equally probable. The mechanism of the paper draws from the same distribution in two
    steps. The first step draws a word within distance gamma, or the set of all words farther than
    gamma. If the set is drawn, the second step chooses a word of the set uniformly.

    Args:
        vectors: the V words and their vectors.
        epsilon: privacy parameter per unit of Euclidean distance, above 0.
        beta: largest probability that y is farther than gamma from x, in (0, 1). `beta` must be
            small enough that gamma is above 0.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if a number is out of range, there is only one word, or two words have the same
            vector.

    Source:
        Carvalho, Vasiloudis, Feyisetan and Wang (2021).

    Example:
        >>> vectors = Embedding(("bad", "fine", "good"), [[0.0], [1.0], [9.0]])
        >>> mech = TEM(vectors, epsilon=10.0)
        >>> round(mech.gamma, 2), np.exp(mech.log_rows(0, 1)).round(3)
        (1.52, array([[0.993, 0.007, 0.   ]]))
    """

    beta: float = 0.001

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        beta = real("beta", self.beta, low=0.0, high=1.0, open_low=True, open_high=True)
        others = len(self.vectors) - 1
        if (1.0 - beta) * others <= beta:
            raise invalid("beta", f"below {others / (others + 1)!r} with {others + 1} words", beta)
        object.__setattr__(self, "beta", beta)

    @property
    def gamma(self) -> float:
        """Distance beyond which all words are equally probable replacements of a word x."""
        others = len(self.vectors) - 1
        return 2.0 / self.epsilon * math.log((1.0 - self.beta) * others / self.beta)


@explain_argument_errors
@dataclass(frozen=True, eq=False, repr=False)
class SanTextPlus(MetricMechanism, TableMechanism):
    """SanText+: always replaces sensitive words, and replaces any other word with probability p.

    Every replacement is a sensitive word. The claimed epsilon holds only for two sensitive words. A
    word that is not sensitive may remain unchanged. The output then reveals this word. Therefore
    the privacy loss between this word and any other word is infinite.

    Args:
        vectors: the words and their vectors.
        epsilon: privacy parameter per unit of Euclidean distance, above 0.
        sensitive: the sensitive words. Words that are not in `vectors` are ignored.
        p: probability that a word that is not sensitive is replaced, in (0, 1].
        from_texts: True if the list `sensitive` was computed from private texts. The list may then
            reveal information on these texts. The claimed epsilon does not cover this disclosure,
            and reports state this limit.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if a number is out of range, there is only one word, two words have the same
            vector, or no sensitive word has a vector.

    Source:
        Yue, Du, Wang, Li, Sun and Chow (2021), SanText+.

    Example:
        >>> vectors = Embedding(("bad", "fine", "good"), [[0.0], [1.0], [1.5]])
        >>> mech = SanTextPlus(vectors, 2.0, ("bad", "good"), p=0.5)
        >>> np.exp(mech.log_rows(0, 2)).round(2)
        array([[0.82, 0.  , 0.18],
               [0.19, 0.5 , 0.31]])
    """

    sensitive: tuple[str, ...]
    p: float = 0.3
    from_texts: bool = False

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        listed = () if isinstance(self.sensitive, str) else tuple(self.sensitive)
        if not all(isinstance(word, str) for word in listed) or not listed:
            raise mistyped("sensitive", "a list of at least one string", self.sensitive)
        sensitive_words = tuple(word for word in dict.fromkeys(listed) if word in self.vectors)
        if not sensitive_words:
            raise invalid("sensitive", "words of which at least one has a vector", listed)
        object.__setattr__(self, "sensitive", sensitive_words)
        object.__setattr__(self, "p", real("p", self.p, low=0.0, high=1.0, open_low=True))
        flag("from_texts", self.from_texts)

    @classmethod
    def rarest(
        cls, vectors: Embedding, epsilon: float, texts: Any, *, share: float = 0.9, p: float = 0.3
    ) -> SanTextPlus:
        """Create a SanText+ mechanism whose sensitive words are the rarest words of given texts.

        The mechanism has `from_texts=True`, because the list of sensitive words depends on the
        texts.

        Args:
            vectors: the words and their vectors.
            epsilon: privacy parameter per unit of Euclidean distance, above 0.
            texts: texts in which the words are counted: a list of strings, or a `Corpus` (only its
                training part is read).
            share: share of the words of `vectors` that become sensitive, in (0, 1].
            p: probability that a word that is not sensitive is replaced, in (0, 1].

        Raises:
            TypeError: if an argument is of the wrong kind.
            ValueError: if a number is out of range, there is only one word, or two words have the
                same vector.
        """
        share = real("share", share, low=0.0, high=1.0, open_low=True)
        words = map(words_of, as_texts("texts", all_or_training_texts(texts)))
        counts = Counter(chain.from_iterable(words))
        order = sorted(vectors.words, key=lambda word: (counts[word], word))
        number = max(1, round(share * len(order)))
        return cls(vectors, epsilon, tuple(order[:number]), p, from_texts=True)

    def notes_on(self, pair: Pair) -> tuple[str, ...]:
        """Return sentences about limits of the claim, for the report on two words or texts."""
        notes = super().notes_on(pair)
        if not self.from_texts:
            return notes
        return (*notes, "the list of sensitive words is from private texts: no claim covers it")

    @cached_property
    def _is_sensitive(self) -> npt.NDArray[np.bool_]:
        return np.isin(self.words, self.sensitive)

    def _log_probabilities(self, numbers: Ints) -> Floats:
        rows = self.vectors.distances(numbers)
        rows *= -0.5 * self.epsilon
        rows[:, ~self._is_sensitive] = -np.inf
        rows -= rows.max(axis=1, keepdims=True)
        rows -= _log_sums(rows)[:, None]
        kept = np.flatnonzero(~self._is_sensitive[numbers])
        rows[kept] += math.log(self.p)
        rows[kept, numbers[kept]] = math.log1p(-self.p) if self.p < 1.0 else -np.inf
        return rows


@explain_argument_errors
@dataclass(frozen=True, eq=False, repr=False)
class CusText(TableMechanism):
    """CusText: replaces a word x of a text by a word y from a list of k words near x.

    The probability of y is proportional to ``exp(epsilon u(y)/2)``. In the list, the score u is 1
    for the word nearest to x, and 0 for the word farthest from x. Between these two words, u
    decreases linearly with the Euclidean distance from x.

    The claimed epsilon holds only for two words with the same list (see `same_list`). The privacy
    loss between two words with different lists is infinite. The distance between two texts is the
    number of positions at which their words differ. The claim for two texts is epsilon times this
    distance. This claim holds only if the two words at each position have the same list.

    Args:
        vectors: the V words and their vectors.
        epsilon: claimed epsilon for two words with the same list, above 0.
        k: number of words in a list, from 1 to V.
        mapping: "conservative" splits the words into clusters of k words. The list of a word is its
            cluster. Clusters are formed one after another, from the remaining words (words that are
            not yet in a cluster). Each cluster consists of the first remaining word, and the k - 1
            remaining words nearest to this word. The last cluster may be smaller. "aggressive"
            gives each word the list of its k nearest words, including the word itself.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if a number is out of range, there is only one word, or two words have the same
            vector.

    Source:
        Chen, Mo, Wang, Chen, Nie, Wang and Cui (2023).

    Example:
        >>> vectors = Embedding(("bad", "fine", "good", "grim"), [[0.0], [4.0], [5.0], [1.0]])
        >>> mech = CusText(vectors, 1.0, k=2)
        >>> np.exp(mech.log_rows(0, 4)).round(2)
        array([[0.62, 0.  , 0.  , 0.38],
               [0.  , 0.62, 0.38, 0.  ],
               [0.  , 0.38, 0.62, 0.  ],
               [0.38, 0.  , 0.  , 0.62]])
        >>> mech.loss(mech.pair("bad", "grim")), mech.loss(mech.pair("bad", "good"))
        (0.5, inf)
    """

    k: int = 20
    mapping: Mapping = "conservative"

    infinite_loss_note: ClassVar[str] = (
        "words with different lists of outputs have an infinite loss; the claim is for words of "
        "one list alone: neighbour=m.same_list of the mechanism m"
    )

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        object.__setattr__(self, "k", integer("k", self.k, 1, len(self.vectors)))
        choice("mapping", self.mapping, _MAPPING_NAMES)

    @property
    def same_list(self) -> npt.NDArray[np.bool_]:
        """Boolean matrix, shape `(V, V)`; an entry is True if two words have the same list.

        The claimed epsilon holds only for two words with the same list.
        """
        numbers = np.unique(np.sort(self._output_lists, axis=1), axis=0, return_inverse=True)[
            1
        ].ravel()
        is_same: npt.NDArray[np.bool_] = numbers[:, None] == numbers
        return is_same

    def notes_on(self, pair: Pair) -> tuple[str, ...]:
        """Return sentences about limits of the claim, for the report on two words or texts."""
        notes = super().notes_on(pair)
        if self.loss(pair) == float("inf"):
            notes += ("the words have different lists of outputs: the loss is infinite",)
        return notes

    def _distances(self, first: Ints, second: Ints) -> Floats:
        differ: Floats = (first != second).astype(np.float64)
        return differ

    @cached_property
    def _output_lists(self) -> Ints:
        """Positions of the words in the list of each word, shape `(V, k)`; -1 fills short lists."""
        left = np.arange(len(self.vectors))
        if self.mapping == "aggressive":
            return self._k_nearest_words(left, left)
        lists = np.full((len(left), self.k), -1, np.int64)
        while len(left):
            cluster = self._k_nearest_words(left[:1], left)[0]
            lists[cluster, : len(cluster)] = cluster
            left = np.setdiff1d(left, cluster, assume_unique=True)
        return lists

    def _k_nearest_words(self, numbers: Ints, among: Ints) -> Ints:
        """Return the k words of `among` that are nearest to each word; earlier words win ties."""
        vectors, depth = self.vectors.vectors, min(self.k, len(among))
        return among[nearest_squared(vectors, vectors[:0], numbers, among, depth)[0]]

    def _log_probabilities(self, numbers: Ints) -> Floats:
        vectors, lists = self.vectors.vectors, self._output_lists[numbers]
        there = lists >= 0
        apart = np.linalg.norm(vectors[numbers][:, None] - vectors[lists], axis=2)
        least = np.where(there, apart, np.inf).min(axis=1, keepdims=True)
        most = np.where(there, apart, -np.inf).max(axis=1, keepdims=True)
        scores = (most - apart) / np.where(most > least, most - least, 1.0)
        scores = np.where(there, 0.5 * self.epsilon * (scores - 1.0), -np.inf)
        scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
        rows = np.full((len(numbers), len(self.vectors)), -np.inf)
        at = np.arange(len(numbers))[:, None]
        rows[np.broadcast_to(at, lists.shape)[there], lists[there]] = scores[there]
        return rows


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WordCalibration(Record):
    """Result of `calibrate`: a mechanism that replaces words, and its largest privacy loss.

    Args:
        mechanism: the mechanism, with the epsilon that `calibrate` found.
        loss: largest privacy loss between any two words, in nats.
        is_exact: True if `loss` is exact. False if `loss` is an upper bound: the privacy loss of
            the noisy vector from which the mechanism chooses a word.
    """

    mechanism: WordMechanism
    loss: float
    is_exact: bool

    def __str__(self) -> str:
        """Return the mechanism and its loss on one line."""
        kind = "exact" if self.is_exact else "a bound, by the noise alone"
        return f"{self.mechanism!r}: at most {self.loss:g} nats for any two words ({kind})"


@explain_argument_errors
def calibrate(kind: Any, vectors: Any, loss: float, **settings: Any) -> WordCalibration:
    """Find the epsilon at which a word mechanism has the given largest loss between two words.

    Args:
        kind: class of the mechanism. For `SanText` and `TEM`, the mechanism has exactly the given
            loss. For `MetricLaplace` and `Vickrey`, an upper bound on the loss of the mechanism has
            the given value. The bound is epsilon times the largest distance between two words. If
            the vectors are one-dimensional, the result also contains the exact loss of
            `MetricLaplace` or `Vickrey`. This loss may be below the given value.
        vectors: the words and their vectors.
        loss: largest privacy loss between any two words, in nats, above 0.
        **settings: further arguments of the class, such as `beta` of `TEM`.

    Returns:
        The mechanism with the epsilon that was found, and the largest privacy loss of this
        mechanism.

    Raises:
        TypeError: if `kind` is not a class of this package or `vectors` is not an `Embedding`.
        ValueError: if `kind` has an infinite loss for some words (`CusText` or `SanTextPlus`), or
            no epsilon gives the requested loss.

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
        raise invalid("kind", "a class with a finite loss for any two words", kind.__name__)
    unit = kind(vectors, 1.0, **settings)
    # The loss is at most the claim, so a smaller epsilon cannot have this loss.
    parts = split_rows(*unit.shape)
    least = loss / max(float(unit.distance_rows(at.start, at.stop).max()) for at in parts)
    if issubclass(kind, NoisyMechanism):
        noisy = kind(vectors, least, **settings)
        if not noisy.has_table:
            return WordCalibration(noisy, loss, is_exact=False)
        # With all distances set to 1, the loss is in nats and not per unit of distance.
        nats = audit_table(noisy, 1.0 - np.eye(len(vectors)), progress=False)
        return WordCalibration(noisy, nats.epsilon, is_exact=True)
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


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WordFigures(Record):
    """Measurements of one mechanism that replaces words: its privacy loss, and its effect on words.

    Args:
        name: name of the class of the mechanism.
        epsilon: claimed epsilon of the mechanism, per unit of distance between two words.
        loss: largest privacy loss between any two words, in nats.
        is_exact: True if `loss` is exact. False if `loss` is an upper bound.
        ratio: the privacy loss of two words divided by their claimed loss (epsilon times their
            distance); the maximum over all pairs of words. A ratio above 1 refutes the claim. None
            if the probabilities of the outputs are not known.
        infinite_share: share of the ordered pairs of words whose privacy loss is infinite.
        delta: smallest delta for which the claimed epsilon holds for every pair of words. This
            delta is 0 if the claim is not refuted.
        kept: probability that a word is not changed, averaged over the words.
        support: for one word, the smallest number of outputs that together have probability .95 or
            more. `support` is the median of this number over all words.
        is_counted: True if `kept` and `support` are estimated from 1,000 random outputs for each of
            at most 100 words. False if `kept` and `support` are exact.
        words_per_second: number of words that the mechanism replaces in one second on this machine.
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
        """Return the measurements on one line."""
        loss = f"{self.loss:.4g}{'' if self.is_exact else ' (bound)'}"
        ratio = "-" if self.ratio is None else f"{self.ratio:.3f}"
        support = f"{self.support:,.0f}{' (counted)' if self.is_counted else ''}"
        return (
            f"{self.name:<14} {self.epsilon:>9.4g} {loss:>13} {ratio:>9} "
            f"{self.infinite_share:>9.3f} {self.delta:>8.3g} {self.kept:>7.3f} {support:>16} "
            f"{self.words_per_second:>9.2g}"
        )


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WordComparison(Record):
    """Comparison of mechanisms with the same largest privacy loss between any two words.

    Args:
        loss: the common largest privacy loss between any two words, in nats.
        vectors: text that states the number of words, the number of entries of a vector, and the
            SHA-256 hash of the vectors.
        rows: measurements of each mechanism.
    """

    loss: float
    vectors: str
    rows: tuple[WordFigures, ...]

    def __getitem__(self, name: str) -> WordFigures:
        """Return the measurements of the mechanism with this class name."""
        return {row.name: row for row in self.rows}[name]

    def __str__(self) -> str:
        """Return a table with a row for each mechanism."""
        title = f"{self.vectors}: at most {self.loss:g} nats for any two words where that can be"
        return "\n".join([title, _COMPARISON_HEADER, *map(str, self.rows)])


@explain_argument_errors
def compare(
    vectors: Any, loss: float, *, rng: Rng = None, progress: bool | None = None
) -> WordComparison:
    """Compare mechanisms that replace words and have the same largest privacy loss.

    `SanText` and `TEM` have exactly the largest loss `loss`. `MetricLaplace` and `Vickrey` have at
    most this loss. For `CusText`, words with different lists have an infinite loss. Therefore
    `compare` cannot give `CusText` the largest loss `loss`, and uses the number `loss` as the
    epsilon of `CusText`. `SanTextPlus` is not compared, because it needs a list of sensitive words.

    Args:
        vectors: the words and their vectors.
        loss: largest privacy loss between any two words, in nats, above 0.
        rng: None, an int seed or a numpy Generator, for measurements that are estimated from random
            outputs.
        progress: True shows a progress bar, False shows no bar. None shows a bar on a terminal for
            long work.

    Returns:
        The comparison. For example, `comparison["SanText"]` has the measurements of `SanText`.

    Raises:
        TypeError: if `vectors` is not an `Embedding` or `loss` is not a number.
        ValueError: if no epsilon gives the loss `loss`.

    Example:
        >>> vectors = Embedding(("bad", "fine", "good"), [[0.0], [1.0], [1.5]])
        >>> found = compare(vectors, loss=2.0, rng=1)
        >>> found["SanText"].loss, round(found["SanText"].kept, 3), found["SanText"].support
        (2.0, 0.608, 3.0)
    """
    draws = np.random.default_rng(to_seed(rng))
    kinds = (SanText, TEM, MetricLaplace, Vickrey)
    rows: list[WordFigures] = []
    with Progress("comparing mechanisms", 2 * len(kinds) + 1, progress) as bar:
        for kind in kinds:
            calibration = calibrate(kind, vectors, loss)
            bar.advance(1)
            name, loss_of_kind = kind.__name__, calibration.loss
            rows.append(_measure_loss_and_speed(name, calibration.mechanism, loss_of_kind, draws))
            bar.advance(1)
        custom = CusText(vectors, loss, k=min(20, len(vectors)))
        rows.append(_measure_loss_and_speed("CusText", custom, None, draws))
        bar.advance(1)
    return WordComparison(loss, repr(custom).split("<")[1].split(">")[0], tuple(rows))


def _measure_loss_and_speed(
    name: str, mechanism: WordMechanism, loss: float | None, rng: np.random.Generator
) -> WordFigures:
    """Compute the measurements of one mechanism, or estimate them from random outputs."""
    size, table = len(mechanism.vectors), None
    words = np.arange(size)
    if mechanism.has_table:
        table = audit_table(mechanism, progress=False)
    else:
        # Words at equal steps over the whole vocabulary.
        words = np.unique(np.linspace(0, size - 1, _COUNTED_WORDS).astype(np.int64))
    shares, _, sizes = kept_shares_limits_supports(mechanism, words, _COUNTED_DRAWS, to_seed(rng))
    inputs = rng.integers(0, size, _N_TIMED_WORDS)
    mechanism.replace(inputs, rng)
    begin = time.perf_counter()
    mechanism.replace(inputs, rng)
    seconds = time.perf_counter() - begin
    return WordFigures(
        name=name,
        epsilon=mechanism.epsilon,
        loss=table.epsilon if loss is None and table is not None else float(loss or 0.0),
        is_exact=mechanism.has_table,
        ratio=None if table is None else table.epsilon / mechanism.claim,
        infinite_share=0.0 if table is None else table.infinite_share,
        delta=table.delta(mechanism.claim) if table is not None and table.refuted else 0.0,
        kept=float(shares.mean()),
        support=float(np.median(sizes)),
        is_counted=table is None,
        words_per_second=_N_TIMED_WORDS / seconds,
    )
