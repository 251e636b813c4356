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
from ...mechanisms.texts import texts_of
from ...progress import Progress
from ...records import Floats, Ints, Pair, Record
from ...streams import Rng, seed_of
from ...suggestions import suggest_arguments
from ...tables.table_audit import audit_table
from ..corpus import training_texts, words_of
from .embedding import Embedding
from .losses import measure_words, split_rows
from .mechanism import MetricMechanism, TableMechanism, WordMechanism, nearest_words, require_rows
from .metric_noise import MetricLaplace, NoisyMechanism, Vickrey

Mapping = Literal["conservative", "aggressive"]
_MAPPING_NAMES: Final[tuple[Mapping, ...]] = get_args(Mapping)

_MAX_EPSILON_RATIO: Final = 2.0**40
"""Largest ratio of two values of epsilon in the search by `calibrate`."""
_COUNTED_WORDS, _COUNTED_DRAWS = 100, 1_000
"""Number of words and number of draws per word for estimates, if there is no table."""
_N_TIMED_WORDS: Final = 2**16
_EPSILON_PRECISION: Final = 1e-9
"""Relative precision of the epsilon that `calibrate` finds."""
_COMPARISON_HEADER: Final = (
    "mechanism        epsilon  largest loss / claimed  infinite    delta    kept          support"
    "   words/s"
)


class MetricExponential(MetricMechanism, TableMechanism):
    """The exponential mechanism for a metric m: P(y | x) = exp(-epsilon m(x, y)/2)/Z(x).

    Here x is the word of the text, y is the new word, and Z(x) normalises the probabilities. The
    privacy loss of x against x' is ln P(y | x)/P(y | x'). By the triangle inequality, this loss is
    largest at the output y = x. The largest loss is ``epsilon m(x, x')/2 + ln Z(x') - ln Z(x)``.
    """

    @property
    def gamma(self) -> float:
        """Distance beyond which all words have the same probability; infinite without a limit."""
        return math.inf

    def _scores_of(self, numbers: Ints, sign: float = -1.0) -> Floats:
        scores = self.vectors.distances(numbers)
        np.minimum(scores, self.gamma, out=scores)
        scores *= sign * 0.5 * self.epsilon
        return scores

    def _rows_of(self, numbers: Ints) -> Floats:
        scores = self._scores_of(numbers)
        scores -= _log_sums(scores)[:, None]
        return scores

    @cached_property
    def _log_normalisers(self) -> Floats:
        """Logarithm of the normalising constant Z(x) of each word x."""
        numbers, parts = np.arange(len(self.vectors)), split_rows(*self.shape)
        return np.concatenate([_log_sums(self._scores_of(numbers[part])) for part in parts])

    def loss_rows(self, start: int, stop: int) -> tuple[Floats, Ints]:
        """Compute the largest privacy loss of some words x against all words x', in nats.

        Args:
            start: position of the first word x.
            stop: position after the last word x.

        Returns:
            Two arrays of shape `(stop - start, V)`. The first array is the maximum over outputs y
            of ``ln P(y | x)/P(y | x')``. The second array is the position of an output y with this
            maximum. This output is the word x.

        Raises:
            ValueError: if `start` or `stop` is out of range.
        """
        numbers = require_rows(len(self.vectors), start, stop)
        losses = self._scores_of(numbers, sign=1.0)
        losses += self._log_normalisers
        losses -= self._log_normalisers[numbers][:, None]
        return losses, np.broadcast_to(numbers[:, None], losses.shape)

    def worst_loss(self) -> float:
        """Compute the largest privacy loss between any two words, in nats."""
        parts = split_rows(*self.shape)
        return max(float(self.loss_rows(part.start, part.stop)[0].max()) for part in parts)

    def largest_losses(self, numbers: Ints) -> Floats:
        """Compute the largest privacy loss between each of some words and any other word.

        Args:
            numbers: positions of the words, shape `(n,)`.

        Returns:
            Losses in nats, shape `(n,)`. Each loss is the larger of the two directions.
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


@suggest_arguments
@dataclass(frozen=True, eq=False, repr=False)
class SanText(MetricExponential):
    """SanText: replaces x by y with probability proportional to exp(-epsilon d(x, y)/2).

    Here x and y are words, and d is the Euclidean distance of their vectors. A new word y is drawn
    for each word x of a text.

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


@suggest_arguments
@dataclass(frozen=True, eq=False, repr=False)
class TEM(MetricExponential):
    """The truncated exponential mechanism: words farther than gamma from x are equally probable.

    Here x is the word of the text, d is the Euclidean distance of vectors, and
    ``gamma = (2/epsilon) ln((1 - beta)(V - 1)/beta)``. A word within distance gamma of x has the
    score -d. The n other words share one element with the score ``-gamma + 2 ln(n)/epsilon``. The
    mechanism draws an element with probability proportional to ``exp(epsilon score/2)``. If the
    shared element is drawn, the mechanism chooses one of the n words uniformly. The result is the
    exponential mechanism with the metric min(d, gamma).

    Args:
        vectors: the V words and their vectors.
        epsilon: privacy parameter per unit of Euclidean distance, above 0.
        beta: largest probability that the new word is farther than gamma from x, in (0, 1). It must
            be so small that gamma is above 0.

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
        """Distance from the word of the text beyond which all words are equally probable."""
        others = len(self.vectors) - 1
        return 2.0 / self.epsilon * math.log((1.0 - self.beta) * others / self.beta)


@suggest_arguments
@dataclass(frozen=True, eq=False, repr=False)
class SanTextPlus(MetricMechanism, TableMechanism):
    """SanText+: always replaces sensitive words, and replaces other words with probability p.

    The new words are always sensitive words. The claimed epsilon holds only for two sensitive
    words. If a word that is not sensitive is not replaced, the output reveals this word. Therefore
    the privacy loss between this word and any other word is infinite.

    Args:
        vectors: the words and their vectors.
        epsilon: privacy parameter per unit of Euclidean distance, above 0.
        sensitive: the sensitive words. Words that are not in `vectors` are ignored.
        p: probability that a word that is not sensitive is replaced, in (0, 1].
        from_texts: True if `sensitive` was computed from private texts. The claimed epsilon then
            does not include the information in this list, and reports state this limit.

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
        """Create a mechanism whose sensitive words are the rarest words of some texts.

        The mechanism has `from_texts=True`, because the sensitive words depend on the texts.

        Args:
            vectors: the words and their vectors.
            epsilon: privacy parameter per unit of Euclidean distance, above 0.
            texts: a list of strings, or a `Corpus` (only its training part is read).
            share: share of the words of `vectors` that become sensitive, in (0, 1].
            p: probability that a word that is not sensitive is replaced.

        Raises:
            TypeError: if an argument is of the wrong kind.
            ValueError: if a number is out of range, there is only one word, or two words have the
                same vector.
        """
        share = real("share", share, low=0.0, high=1.0, open_low=True)
        words = map(words_of, texts_of("texts", training_texts(texts)))
        counts = Counter(chain.from_iterable(words))
        order = sorted(vectors.words, key=lambda word: (counts[word], word))
        number = max(1, round(share * len(order)))
        return cls(vectors, epsilon, tuple(order[:number]), p, from_texts=True)

    def notes_on(self, pair: Pair) -> tuple[str, ...]:
        """Return notes on the limits of the claim, for the report on two words or texts."""
        notes = super().notes_on(pair)
        if not self.from_texts:
            return notes
        return (*notes, "the list of sensitive words is from private texts: no claim covers it")

    @cached_property
    def _is_sensitive(self) -> npt.NDArray[np.bool_]:
        return np.isin(self.words, self.sensitive)

    def _rows_of(self, numbers: Ints) -> Floats:
        rows = self.vectors.distances(numbers)
        rows *= -0.5 * self.epsilon
        rows[:, ~self._is_sensitive] = -np.inf
        rows -= rows.max(axis=1, keepdims=True)
        rows -= _log_sums(rows)[:, None]
        kept = np.flatnonzero(~self._is_sensitive[numbers])
        rows[kept] += math.log(self.p)
        rows[kept, numbers[kept]] = math.log1p(-self.p) if self.p < 1.0 else -np.inf
        return rows


@suggest_arguments
@dataclass(frozen=True, eq=False, repr=False)
class CusText(TableMechanism):
    """CusText: replaces a word x by a word y from a list of k words near x.

    The probability of y is proportional to ``exp(epsilon u(y)/2)``. The score u is 1 for the word
    of the list that is nearest to x, and 0 for the farthest word of the list. The score decreases
    linearly with the Euclidean distance from x. The claimed epsilon holds only for two words with
    the same list (`same_list`). The privacy loss between two words with different lists is
    infinite. The distance between two texts is the number of places at which their words differ.

    Args:
        vectors: the V words and their vectors.
        epsilon: claimed epsilon for two words with the same list, above 0.
        k: number of words in a list, from 1 to V.
        mapping: "conservative" splits the words into clusters of k words. The list of a word is its
            cluster. A cluster has the first word that is not in an earlier cluster, and the k - 1
            nearest words that are not in an earlier cluster. The last cluster may be smaller.
            "aggressive" gives each word a list of the k nearest words, which include the word.

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
        """Boolean matrix, shape `(V, V)`: True for two words with the same list.

        The claimed epsilon holds only for two such words.
        """
        numbers = np.unique(np.sort(self._output_lists, axis=1), axis=0, return_inverse=True)[
            1
        ].ravel()
        is_same: npt.NDArray[np.bool_] = numbers[:, None] == numbers
        return is_same

    def notes_on(self, pair: Pair) -> tuple[str, ...]:
        """Return notes on the limits of the claim, for the report on two words or texts."""
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
            return self._nearest_words(left, left)
        lists = np.full((len(left), self.k), -1, np.int64)
        while len(left):
            cluster = self._nearest_words(left[:1], left)[0]
            lists[cluster, : len(cluster)] = cluster
            left = np.setdiff1d(left, cluster, assume_unique=True)
        return lists

    def _nearest_words(self, numbers: Ints, among: Ints) -> Ints:
        """Return the k words of `among` that are nearest to each word; earlier words win ties."""
        vectors, depth = self.vectors.vectors, min(self.k, len(among))
        return among[nearest_words(vectors, vectors[:0], numbers, among, depth)[0]]

    def _rows_of(self, numbers: Ints) -> Floats:
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
    """A mechanism that replaces words, with the epsilon that `calibrate` found.

    Args:
        mechanism: the mechanism with this epsilon.
        loss: largest privacy loss between any two words, in nats.
        is_exact: True if `loss` is exact. False if `loss` is an upper bound: the privacy loss of
            the noisy vector. The choice of a word from the noisy vector cannot increase the loss.
    """

    mechanism: WordMechanism
    loss: float
    is_exact: bool

    def __str__(self) -> str:
        """Return the mechanism and its loss on one line."""
        kind = "exact" if self.is_exact else "a bound, by the noise alone"
        return f"{self.mechanism!r}: at most {self.loss:g} nats for any two words ({kind})"


@suggest_arguments
def calibrate(kind: Any, vectors: Any, loss: float, **settings: Any) -> WordCalibration:
    """Find the epsilon at which the largest privacy loss between any two words has a given value.

    Args:
        kind: class of the mechanism. For `SanText` and `TEM`, the loss of the result is exact. For
            `MetricLaplace` and `Vickrey`, `calibrate` uses an upper bound on the loss: epsilon
            times the largest distance between two words. For one-dimensional vectors, these two
            classes have a table of probabilities. The result then has the exact loss, which is
            below the bound.
        vectors: the words and their vectors.
        loss: largest privacy loss in nats, above 0.
        **settings: further arguments of the class, such as `beta` of `TEM`.

    Returns:
        The mechanism and its largest loss.

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


@suggest_arguments
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WordFigures(Record):
    """Measurements of one mechanism: its privacy loss, and its effect on words.

    Args:
        name: name of the class of the mechanism.
        epsilon: privacy parameter of the mechanism.
        loss: largest privacy loss between any two words, in nats.
        is_exact: True if `loss` is exact. False if it is an upper bound.
        ratio: largest privacy loss per unit of distance, divided by the claimed epsilon. A ratio
            above 1 refutes the claim. None if the mechanism has no table of probabilities.
        infinite_share: share of the ordered pairs of words whose privacy loss is infinite.
        delta: largest delta of a pair of words at the claimed epsilon.
        kept: mean probability that a word is not changed.
        support: for each word, the smallest number of outputs with probability .95 together; the
            median over the words.
        is_counted: True if `kept` and `support` are estimates from 1,000 draws for each of 100
            words. False if they are exact.
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


@suggest_arguments
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WordComparison(Record):
    """Comparison of mechanisms with the same largest privacy loss between any two words.

    Args:
        loss: largest privacy loss of all mechanisms, in nats.
        vectors: number of words, number of entries of a vector, and SHA-256 hash of the vectors.
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


@suggest_arguments
def compare(
    vectors: Any, loss: float, *, rng: Rng = None, progress: bool | None = None
) -> WordComparison:
    """Compare mechanisms that replace words, at the same largest privacy loss between two words.

    `SanText` and `TEM` have exactly this loss. `MetricLaplace` and `Vickrey` have at most this
    loss. For `CusText`, words with different lists have an infinite loss, so its epsilon is set to
    this loss. `SanTextPlus` is not compared, because it needs a list of sensitive words.

    Args:
        vectors: the words and their vectors.
        loss: largest privacy loss in nats, above 0.
        rng: None, an int seed or a numpy Generator, for measurements that are estimated from draws.
        progress: True shows a progress bar, False shows no bar. None shows a bar on a terminal for
            long work.

    Returns:
        The comparison. For example, `comparison["SanText"]` has the measurements of `SanText`.

    Raises:
        TypeError: if `vectors` is not an `Embedding` or `loss` is not a number.
        ValueError: if no epsilon gives this loss.

    Example:
        >>> vectors = Embedding(("bad", "fine", "good"), [[0.0], [1.0], [1.5]])
        >>> found = compare(vectors, loss=2.0, rng=1)
        >>> found["SanText"].loss, round(found["SanText"].kept, 3), found["SanText"].support
        (2.0, 0.608, 3.0)
    """
    draws = np.random.default_rng(seed_of(rng))
    kinds = (SanText, TEM, MetricLaplace, Vickrey)
    rows: list[WordFigures] = []
    with Progress("comparing mechanisms", 2 * len(kinds) + 1, progress) as bar:
        for kind in kinds:
            calibration = calibrate(kind, vectors, loss)
            bar.advance(1)
            name, loss_of_kind = kind.__name__, calibration.loss
            rows.append(_measure_mechanism(name, calibration.mechanism, loss_of_kind, draws))
            bar.advance(1)
        custom = CusText(vectors, loss, k=min(20, len(vectors)))
        rows.append(_measure_mechanism("CusText", custom, None, draws))
        bar.advance(1)
    return WordComparison(loss, repr(custom).split("<")[1].split(">")[0], tuple(rows))


def _measure_mechanism(
    name: str, mechanism: WordMechanism, loss: float | None, rng: np.random.Generator
) -> WordFigures:
    """Compute the measurements of one mechanism, or estimate them from draws."""
    size, table = len(mechanism.vectors), None
    words = np.arange(size)
    if mechanism.has_table:
        table = audit_table(mechanism, progress=False)
    else:
        # Words at equal steps over the whole vocabulary.
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
        is_exact=mechanism.has_table,
        ratio=None if table is None else table.epsilon / mechanism.claim,
        infinite_share=0.0 if table is None else table.infinite_share,
        delta=table.delta(mechanism.claim) if table is not None and table.refuted else 0.0,
        kept=float(kept.mean()),
        support=float(np.median(support)),
        is_counted=table is None,
        words_per_second=_N_TIMED_WORDS / seconds,
    )
