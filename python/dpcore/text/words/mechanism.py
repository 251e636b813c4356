"""Base classes of mechanisms that replace words, and an attack that finds the original texts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from ... import _core, errors
from ...mechanisms.texts import Rewriter, as_texts
from ...records import Floats, Ints, Pair, Record
from ...streams import Rng, check_size, to_seed
from ...suggestions import explain_argument_errors
from ..corpus import Tokeniser, split_text, words_of
from ..linkage import list_first_rows, rank_truth, share_interval
from . import losses
from .embedding import Embedding
from .losses import CONFIDENCE, UNKNOWN, TextLoss, TextReport, split_rows

_LENGTH_NOTE: Final = "the number of words of a text is released"

_MAX_PREPARED_ENTRIES: Final = 2**22
"""Number of prepared entries of a mechanism in memory, 12 bytes each: 50 MB."""

_PreparedRows = tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32], Ints]
"""Tables for drawing words: thresholds and outputs, shape `(n, V)`, and rows of words (or -1)."""

_MAX_ROW_OUTPUTS: Final = 2**16
"""Largest number of outputs of a prepared row, because an entry stores an output in 16 bits."""

_MAX_LINKED_TEXTS: Final = 2**53


@dataclass(frozen=True, eq=False, repr=False)
class WordMechanism(Record):
    """Base class of mechanisms that replace words at random: `(x, size, rng) -> word numbers`.

    A mechanism is called with an input, a number of outputs and a numpy Generator. Each word has a
    vector. The number of a word is its row in `vectors`. An input x is a word, the number of a
    word, or a text. A text is a list of words, or a string that the function `words_of` splits into
    words. Each word of a text is replaced independently.

    Args:
        vectors: the words and their vectors: at least two words, all vectors different.
        epsilon: privacy parameter per unit of distance between the vectors of two words, above 0.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if there is only one word, two words have the same vector, or a number is out of
            range.
    """

    vectors: Embedding
    epsilon: float

    thread_safe: ClassVar[bool] = True

    has_table: ClassVar[bool] = False
    """True if the probabilities of outputs are known."""

    def __post_init__(self) -> None:
        """Check the fields."""
        vectors = errors.instance("vectors", self.vectors, Embedding)
        if len(vectors) < 2:
            raise errors.invalid("vectors", "those of at least two words", f"{vectors.words}")
        vectors.require_distinct("vectors")
        epsilon = errors.real("epsilon", self.epsilon, low=0.0, open_low=True)
        object.__setattr__(self, "epsilon", epsilon)

    @property
    def claim(self) -> float:
        """Epsilon that this mechanism claims per unit of distance between two words or texts.

        The distance between a and b is `pair(a, b).distance`.
        """
        return self.epsilon

    @property
    def words(self) -> Sequence[str]:
        """All words that have a vector. Input words and output words are among these words."""
        return self.vectors.words

    @property
    def shape(self) -> tuple[int, int]:
        """Number of possible input words and number of possible output words."""
        return len(self.vectors), len(self.vectors)

    @cached_property
    def name(self) -> str:
        """Constructor call of this mechanism as text, with a short description of the vectors.

        The description has the number, the dimension and the SHA-256 hash of the vectors.
        """
        about = f"<{len(self.vectors):,} words, dim={self.vectors.dim}, sha256 "
        parts = [f"{about}{self.vectors.sha256[:16]}>"]
        for field in fields(self)[1:]:
            value = getattr(self, field.name)
            is_short = not isinstance(value, tuple) or len(value) <= 4
            parts.append(f"{field.name}={value!r}" if is_short else f"<{len(value):,} words>")
        return f"{type(self).__name__}({', '.join(parts)})"

    def __repr__(self) -> str:
        return self.name

    def __call__(self, x: Any, size: int, rng: Rng = None) -> Ints:
        """Draw random outputs of the mechanism on one input.

        Args:
            x: a word, the number of a word, a text or a list of words.
            size: number of outputs, at least 0.
            rng: None, an int seed or a numpy Generator. The mechanism draws one seed from a
                Generator.

        Returns:
            Word numbers, shape `(size,)` for a word and `(size, n)` for a text of n words.

        Raises:
            TypeError: if x is of another kind.
            ValueError: if x is empty or has a word without a vector.
        """
        inputs = np.array(self._read_words("x", x)[1])
        size = check_size(size, len(inputs))
        out = self._draw(inputs, size * len(inputs), to_seed(rng))
        return out.reshape(size, len(inputs)) if self._is_no_word(x) else out

    def replace(self, numbers: npt.ArrayLike, rng: Rng = None) -> Ints:
        """Replace each of several words by one random word.

        Args:
            numbers: numbers of the n words, shape `(n,)`.
            rng: None, an int seed or a numpy Generator.

        Returns:
            Numbers of the new words, shape `(n,)`.

        Raises:
            TypeError: if `numbers` are not whole numbers.
            ValueError: if an entry is not the number of a word, or the shape is wrong.
        """
        inputs, size = np.asarray(numbers), len(self.vectors)
        requirement = f"whole numbers from 0 to {size - 1:,}, shape (n,)"
        if inputs.dtype.kind not in "iu":
            raise errors.mistyped("numbers", requirement, numbers)
        if inputs.ndim != 1 or (inputs.size and not 0 <= inputs.min() <= inputs.max() < size):
            raise errors.invalid("numbers", requirement, numbers)
        inputs = np.ascontiguousarray(inputs, np.int64)
        return self._draw(inputs, len(inputs), to_seed(rng)) if len(inputs) else inputs

    def pair(self, a: Any, b: Any) -> Pair:
        """Create a pair of two inputs; the claim is epsilon times the distance of the inputs.

        Args:
            a: a word or a text.
            b: a second word or text, with the same number of words as a.

        Returns:
            The pair. The distance of two words is the distance of their vectors. The distance of
            two texts is the sum of the distances between the words at the same position.

        Raises:
            TypeError: if an input is neither a word nor a text.
            ValueError: if a word has no vector, the two inputs have the same words, or the texts
                have different numbers of words. In the last case, the privacy loss is infinite.
        """
        first, second, _ = self._numbers_and_changed_mask(a, b)
        return Pair(a, b, float(self._distances(first, second).sum()))

    def notes_on(self, pair: Pair) -> tuple[str, ...]:
        """Return sentences about limits of the claim, for the report on a pair of inputs.

        For texts, one sentence states that the output reveals the number of words.
        """
        return (_LENGTH_NOTE,) if self._is_no_word(pair.x) or self._is_no_word(pair.x_prime) else ()

    def rewrite(
        self,
        texts: Sequence[str],
        *,
        unknown: str = "error",
        rng: Rng = None,
        tokenise: Tokeniser = words_of,
    ) -> list[str]:
        """Replace each word of each text by a random word.

        The words of each output are joined by single blanks. The default of `tokenise` removes
        punctuation and changes capital letters to small letters. An output reveals the number of
        words of the text.

        Args:
            texts: list of texts that are not empty.
            unknown: treatment of words without a vector. "error" raises an error. "drop" removes
                the words; the length of the output then reveals how many words remain. "keep"
                leaves the words unchanged; their privacy loss is infinite. "uniform" replaces each
                of the words by a random word that has a vector, with equal probabilities.
            rng: None, an int seed or a numpy Generator.
            tokenise: function from a text to its words.

        Returns:
            The output texts, one for each text in `texts`.

        Raises:
            TypeError: if an argument is of the wrong kind.
            ValueError: if a text is empty or has no words, or if a word has no vector and `unknown`
                is "error".
        """
        errors.choice("unknown", unknown, UNKNOWN)
        flat: list[str] = []
        numbers: list[int] = []
        lengths = []
        for row, text in enumerate(as_texts("texts", texts)):
            words, word_numbers = self._number_words(
                f"texts[{row}]", text, split_text(tokenise, text), unknown
            )
            flat += words
            numbers += word_numbers
            lengths.append(len(words))
        outputs, inputs = np.array(flat, object), np.array(numbers, np.int64)
        taken = (inputs < len(self.vectors)) | (unknown != "keep")
        if taken.any():
            drawn = self._draw(inputs[taken], int(taken.sum()), to_seed(rng))
            outputs[taken] = np.array(self.words, object)[drawn]
        parts = iter(outputs.tolist())
        return [" ".join(islice(parts, length)) for length in lengths]

    @property
    def rewriter(self) -> Rewriter:
        """This mechanism as a function from texts to texts, without a claim.

        The function claims no epsilon, because the mechanism claims epsilon only per unit of
        distance. The function raises a ValueError for a word without a vector.
        """
        return Rewriter(self.rewrite)

    def text_loss(self, a: Any, b: Any, delta: float = 1e-6, *, unknown: str = "error") -> TextLoss:
        """Compute the privacy loss between two texts under this mechanism.

        Args:
            a: a text or a list of words.
            b: another text with the same number of words.
            delta: the delta of (epsilon, delta)-DP, for the fields `at_delta` and
                `one_word_at_delta` of the result, in (0, 1).
            unknown: treatment of words without a vector. "error" raises an error. "drop" removes
                the words. "keep" leaves the words unchanged, with infinite loss. "uniform" replaces
                each of the words by a uniformly random word. With "uniform", the loss between a
                word without a vector and a word with a vector is infinite if the probabilities of
                outputs are not known.

        Returns:
            The losses in nats. `one_word` is the largest loss between two words at the same
            position, and `whole` is the loss between the whole texts. `one_word_at_delta` and
            `at_delta` are upper bounds on the epsilon at `delta`, for one position and for the
            whole texts. For `at_delta`, the Renyi divergences of all positions are added, and the
            sum is converted to epsilon. If the probabilities of outputs are not known (noise in
            more than one dimension), all losses are upper bounds that are computed from the noise.

        Raises:
            TypeError: if an argument is of the wrong kind.
            ValueError: if a word has no vector and `unknown` is "error", if the texts are equal or
                have different numbers of words, or if delta is out of range.

        Source:
            Mironov (2017), proposition 1 (divergences of independent words add up); Canonne, Kamath
            and Steinke (2020), proposition 12.
        """
        return losses.text_loss(self, a, b, delta, unknown)

    def text_report(
        self, text: Any, *, unknown: str = "error", rng: Rng = None, tokenise: Tokeniser = words_of
    ) -> TextReport:
        """Report, for each word of a text, the privacy loss and the probability of no change.

        The report has three numbers for each word:

        - N_w, the probability that this mechanism leaves the word unchanged;
        - S_w, the smallest number of output words that together have probability .95 or more;
        - the largest privacy loss, in nats, between the word and any other word.

        If the probabilities of outputs are known, the three numbers are exact. Otherwise N_w and
        S_w are estimated from 10,000 random outputs. In this case, the loss is an upper bound that
        is computed from the noise.

        Args:
            text: a string, or a list of words.
            unknown: treatment of words without a vector. "error" raises an error, "drop" removes
                the words, "keep" leaves the words unchanged, and "uniform" replaces the words by
                random words.
            rng: None, an int seed or a numpy Generator, for the random outputs.
            tokenise: function from a text to its words.

        Returns:
            The report.

        Raises:
            TypeError: if an argument is of the wrong kind.
            ValueError: if the text has no words, or if a word has no vector and `unknown` is
                "error".

        Source:
            Feyisetan, Balle, Drake and Diethe (2020), section 4, for N_w and S_w.

        Example:
            >>> from dpcore.text.words import Embedding
            >>> from dpcore.text.words import SanText
            >>> mech = SanText(Embedding(("bad", "fine", "good"), [[0.0], [1.0], [1.5]]), 2.0)
            >>> found = mech.text_report("good, good")
            >>> round(found.words[0].kept, 3), round(found.one_word, 3), round(found.any_text, 3)
            (0.547, 1.64, 3.28)
        """
        errors.choice("unknown", unknown, UNKNOWN)
        places = len(self._read_words("text", text, "keep", tokenise)[1])
        numbers = self._read_words("text", text, unknown, tokenise)[1]
        if not numbers:
            raise errors.invalid("text", "a text with at least one word that is replaced", text)
        strange = places - len(numbers) + numbers.count(len(self.vectors))
        return losses.report_word_losses_of_text(self, numbers, unknown, strange, rng)

    @abstractmethod
    def _draw(self, inputs: Ints, size: int, seed: int) -> Ints:
        """Draw `size` outputs; draw i uses the input word `inputs[i % len(inputs)]`.

        Let V be the number of words with a vector. The entry V of `inputs` represents a word
        without a vector, and its output is uniform.
        """

    def _distances(self, first: Ints, second: Ints) -> Floats:
        """Return the distances of n pairs of words in the metric of the claim, shape `(n,)`."""
        rows = self.vectors.vectors
        lengths: Floats = np.linalg.norm(rows[first] - rows[second], axis=1)
        return lengths

    def _is_no_word(self, x: Any) -> bool:
        """Return True for a text: a list, a tuple, or a string that is not a word in `vectors`."""
        return isinstance(x, (list, tuple)) or (isinstance(x, str) and x not in self.vectors)

    def _read_words(
        self, name: str, x: Any, unknown: str = "error", tokenise: Tokeniser | None = None
    ) -> tuple[list[str], list[int]]:
        """Return the words of an input, and the number of each word.

        A word without a vector gets the number V, where V is the number of words with a vector. If
        `tokenise` is None, a string that has a vector is one word.
        """
        if isinstance(x, (int, np.integer)) and not isinstance(x, bool):
            words = [self.words[errors.integer(name, x, 0, len(self.vectors) - 1)]]
        elif isinstance(x, (list, tuple)) and all(isinstance(word, str) for word in x):
            words = list(x)
        elif isinstance(x, str):
            is_word = tokenise is None and x in self.vectors
            words = [x] if is_word else split_text(tokenise or words_of, x)
        else:
            raise errors.mistyped(name, "a word, the number of one, a text or a list of words", x)
        return self._number_words(name, x, words, unknown)

    def _number_words(
        self, name: str, texts: Any, words: list[str], unknown: str
    ) -> tuple[list[str], list[int]]:
        """Return words and their numbers; unknown="drop" leaves out words without a vector."""
        rows, size = self.vectors.rows, len(self.vectors)
        if not words:
            raise errors.invalid(name, "a word or a text with at least one word", texts)
        try:
            return words, list(map(rows.__getitem__, words))
        except KeyError as missing:
            if unknown == "error":
                requirement = "made of words with a vector (see unknown= of rewrite)"
                raise errors.invalid(name, requirement, missing.args[0]) from None
        if unknown == "drop":
            words = [word for word in words if word in rows]
        return words, [rows.get(word, size) for word in words]

    def _numbers_and_changed_mask(
        self, a: Any, b: Any, unknown: str = "error"
    ) -> tuple[Ints, Ints, np.ndarray[Any, np.dtype[np.bool_]]]:
        """Return the word numbers of two inputs, and a mask of the places with different words."""
        words, first = self._read_words("a", a, unknown)
        others, second = self._read_words("b", b, unknown)
        if len(words) != len(others):
            reason = f"{_LENGTH_NOTE}: the loss is infinite"
            requirement = f"a text of as many words as a, {len(words):,} ({reason})"
            raise errors.invalid("b", requirement, len(others))
        if words == others:
            raise errors.invalid("b", "different from a in at least one word", b)
        differ = np.array(words, object) != np.array(others, object)
        return np.array(first), np.array(second), differ


class TableMechanism(WordMechanism):
    """Base class of mechanisms whose output probabilities are known for each input word."""

    has_table: ClassVar[bool] = True

    def log_rows(self, start: int, stop: int) -> Floats:
        """Compute the log probabilities of all output words, for several input words.

        Args:
            start: number of the first input word.
            stop: number of the last input word plus 1.

        Returns:
            Natural logarithms of probabilities, with a row for each input word and a column for
            each output word.

        Raises:
            ValueError: if `start` or `stop` is out of range.
        """
        return self._log_probabilities(require_rows(len(self.vectors), start, stop))

    def log_ratio(self, outputs: npt.ArrayLike, pair: Pair) -> Floats:
        """Compute the privacy loss of each output: ln(probability on x / probability on x').

        Args:
            outputs: word numbers of the outputs, shape `(size,)` for words, `(size, n)` for texts.
            pair: the two inputs x and x': two words, or two texts of n words.

        Returns:
            The losses in nats, shape `(size,)`. If a word of an output has probability 0 for x and
            for x', this word adds no loss.

        Raises:
            TypeError: if `pair` is not a Pair or `outputs` are not whole numbers.
            ValueError: if the shapes do not fit, or an output is not the number of a word.
        """
        first, second = self._read_pair(pair)
        ys, words = np.asarray(outputs), len(self.words)
        requirement = f"word numbers below {words:,}, shape (size,) or (size, {len(first)})"
        if ys.dtype.kind not in "iu":
            raise errors.mistyped("outputs", requirement, outputs)
        ys = ys[:, None] if ys.ndim == 1 else ys
        if ys.ndim != 2 or ys.shape[1] != len(first) or len(first) != len(second):
            raise errors.invalid("outputs", requirement, f"shape {np.shape(outputs)}")
        if ys.size and not 0 <= ys.min() <= ys.max() < words:
            raise errors.invalid("outputs", requirement, [int(ys.min()), int(ys.max())])
        total = np.zeros(len(ys))
        for place in np.flatnonzero(first != second):
            p, q = self._log_probabilities(np.array([first[place], second[place]]))
            with np.errstate(invalid="ignore"):
                ratios = p - q
            # Outputs that are impossible under the two words are never drawn and add no loss.
            total += np.where(np.isnan(ratios), 0.0, ratios)[ys[:, place]]
        return total

    def loss(self, pair: Pair, delta: float = 0.0) -> float | None:
        """Compute the exact privacy loss between two inputs, in the direction with the larger loss.

        Args:
            pair: two words or two texts.
            delta: the delta of (epsilon, delta)-DP, in [0, 1).

        Returns:
            The smallest epsilon for which (epsilon, delta)-DP holds between the two inputs. The
            result is infinite for texts with different numbers of words. The result is None if the
            texts differ in several words and delta is above 0.
        """
        first, second = self._read_pair(pair)
        delta = errors.delta_level(delta)
        if len(first) != len(second):
            return float("inf")
        changed = np.flatnonzero(first != second)
        if delta and len(changed) > 1:
            return None
        sums = np.zeros(2)
        for place in changed:
            p, q = self._log_probabilities(np.array([first[place], second[place]]))
            sums += [losses.one_sided_loss(p, q, delta), losses.one_sided_loss(q, p, delta)]
        return float(sums.max())

    def add_unknown_row(self) -> TableWithUnknown:
        """Return the table of output probabilities, plus one row for words without a vector.

        `rewrite(..., unknown="uniform")` replaces a word without a vector by any word that has a
        vector, with equal probability. The claim does not cover a word without a vector, because
        the distance of this word to another word is not defined. Therefore `dpcore.audit_table`
        does not divide the losses of two input words by their distance.

        Returns:
            A table for `dpcore.audit_table`, without distances and without a claim. It has V + 1
            inputs and V outputs, where V is the number of words with a vector.

        Example:
            >>> import dpcore
            >>> from dpcore.text.words import Embedding
            >>> from dpcore.text.words import SanText
            >>> mech = SanText(Embedding(["bad", "fine", "good"], [[0.0], [1.0], [1.5]]), 2.0)
            >>> found = dpcore.audit_table(mech.add_unknown_row())
            >>> found.inputs, found.metric, round(found.epsilon, 3), found.labels
            (4, False, 1.64, ('bad', 'good', 'bad'))
        """
        return TableWithUnknown(self)

    def rows_with_unknown(self, numbers: Ints) -> Floats:
        """Compute log probabilities of all outputs for n words (uniform for an unknown word)."""
        rows = np.full((len(numbers), self.shape[1]), -np.log(self.shape[1]))
        has_row = numbers < self.shape[0]
        if has_row.any():
            rows[has_row] = self._log_probabilities(numbers[has_row])
        return rows

    @abstractmethod
    def _log_probabilities(self, numbers: Ints) -> Floats:
        """Return the log probabilities of all outputs for n words, shape `(n, outputs)`."""

    def _draw(self, inputs: Ints, size: int, seed: int) -> Ints:
        numbers, most = np.arange(self.shape[0] + 1), max(1, _MAX_PREPARED_ENTRIES // self.shape[1])
        if len(numbers) > most:
            numbers = np.flatnonzero(np.bincount(inputs, minlength=len(numbers)))
        out = np.empty(size, np.int64)
        # The draws do not depend on which rows are prepared together.
        for start in range(0, len(numbers), most):
            prepared = self._cached_preparation(numbers[start : start + most].tobytes())
            _core.draw_words(*prepared, inputs, seed, out, _core.cores())
        return out

    @cached_property
    def _cached_preparation(self) -> Callable[[bytes], _PreparedRows]:
        """Function from word numbers (as bytes) to tables for drawing, with the last one cached."""
        return lru_cache(maxsize=1)(self._prepare_rows_of_word_numbers)

    def _prepare_rows_of_word_numbers(self, number_bytes: bytes) -> _PreparedRows:
        numbers, outputs = np.frombuffer(number_bytes, np.int64), self.shape[1]
        if outputs > _MAX_ROW_OUTPUTS:
            raise errors.invalid("vectors", f"those of at most {_MAX_ROW_OUTPUTS:,} words", outputs)
        slots = np.full(self.shape[0] + 1, -1, np.int64)
        slots[numbers] = np.arange(len(numbers))
        shape = (len(numbers), outputs)
        thresholds, entries = np.empty(shape, np.uint64), np.empty(shape, np.uint32)
        for part in split_rows(*shape):
            rows = self.rows_with_unknown(numbers[part])
            _core.prepare_rows(rows, thresholds[part], entries[part], _core.cores())
        return thresholds, entries, slots

    def _read_pair(self, pair: Pair) -> list[Ints]:
        """Return the word numbers of the two inputs of a pair."""
        pair = errors.instance("pair", pair, Pair)
        inputs = (("x", pair.x), ("x_prime", pair.x_prime))
        return [np.array(self._read_words(*own_input)[1]) for own_input in inputs]


class TableWithUnknown:
    """Table of output probabilities of a word mechanism, with one more row at the end.

    The additional row is for a word without a vector. In this row, all output words are equally
    likely.

    Args:
        mechanism: the mechanism. Its output probabilities must be known.
    """

    def __init__(self, mechanism: TableMechanism) -> None:
        self.mechanism = mechanism
        self.shape = (mechanism.shape[0] + 1, mechanism.shape[1])
        self.input_names = (*mechanism.words, "<unknown>")
        self.output_names = mechanism.words

    def __repr__(self) -> str:
        return f"unknown words and {self.mechanism!r}"

    def log_rows(self, start: int, stop: int) -> Floats:
        """Compute the log probabilities of all V outputs for the inputs `start` to `stop - 1`."""
        return self.mechanism.rows_with_unknown(require_rows(self.shape[0], start, stop))


class MetricMechanism(WordMechanism):
    """Base class of mechanisms that claim epsilon per unit of Euclidean distance of words."""

    def distance_rows(self, start: int, stop: int) -> Floats:
        """Compute the Euclidean distances from several successive words to all V words.

        Args:
            start: number of the first word.
            stop: number of the last word plus 1.

        Returns:
            Distances, shape `(stop - start, V)`.

        Raises:
            ValueError: if `start` or `stop` is out of range.
        """
        return self.vectors.distances(require_rows(len(self.vectors), start, stop))


def require_rows(words: int, start: int, stop: int) -> Ints:
    """Return the row numbers from `start` to `stop - 1`, or raise an error.

    The function raises a ValueError unless ``0 <= start <= stop <= words``.
    """
    stop = errors.integer("stop", stop, 0, words)
    return np.arange(errors.integer("start", start, 0, stop), stop)


def nearest_squared(
    rows: Floats, others: Floats, queries: Ints, points: Ints, depth: int
) -> tuple[Ints, Floats]:
    """Return, for each query vector, the nearest points and their squared distances.

    If several points are equally near, the first of these points are returned.

    Args:
        rows: vectors, shape `(n, dim)`.
        others: further vectors, shape `(m, dim)`. The vectors in `rows` are numbered first, then
            the vectors in `others`.
        queries: numbers of the query vectors, shape `(q,)`.
        points: numbers of the vectors that are compared with the query vectors.
        depth: number of points to return for each query, at most the number of `points`.

    Returns:
        Indices (in `points`) of the nearest points, and the squared distances of these points. The
        shape of each array is `(q, depth)`.
    """
    starts, places, squares, _ = _core.nearest(rows, others, queries, points, depth, _core.cores())
    at = starts[:-1, None] + np.arange(depth)
    return places[at].astype(np.int64), squares[at]


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Linkage(Record, word="Linkage"):
    """Success of an attacker who names, for each rewritten text, the most likely original text.

    Args:
        right: number of rewritten texts for which the attacker names the correct original, or an
            original with the same words. If k originals are equally likely and the correct original
            is one of them, the text counts as 1/k. `right` is the sum of these counts, rounded to a
            whole number. The confidence interval does not cover this rounding.
        texts: number of rewritten texts.
        words: number of compared words of each text.
        floor: share of correct answers of an attacker who always names the most frequent original.
        by: name of the score by which the attacker ranked the originals, such as "likelihood".
        confidence: confidence level of the interval for `share`.

    Raises:
        TypeError: if `right`, `texts` or `words` is not an integer.
        ValueError: if `right` is larger than `texts`.

    Example:
        >>> print(Linkage(80, 100, words=12, floor=0.01, by="likelihood"))
        80 of 100 texts (12 words each) linked by likelihood: 0.800 [0.708, 0.873], floor 0.010
    """

    right: int
    texts: int
    words: int
    floor: float
    by: str
    confidence: float = CONFIDENCE

    def __post_init__(self) -> None:
        """Check that `right`, `texts` and `words` are integers in their ranges."""
        errors.integer(
            "right", self.right, 0, errors.integer("texts", self.texts, 1, _MAX_LINKED_TEXTS)
        )
        errors.confidence_level(self.confidence)

    @property
    def share(self) -> float:
        """Share of the rewritten texts for which the attacker names the correct original."""
        return self.right / self.texts

    @property
    def interval(self) -> tuple[float, float]:
        """Two-sided Clopper-Pearson confidence interval of the property `share`."""
        return share_interval(self.right, self.texts, self.confidence)

    def __str__(self) -> str:
        """Return one line for a report: the counts, the share, its interval, and the floor."""
        low, high = self.interval
        texts = f"{self.texts:,} texts ({self.words:,} words each)"
        share = f"{self.share:.3f} [{low:.3f}, {high:.3f}], floor {self.floor:.3f}"
        return f"{self.right:,} of {texts} linked by {self.by}: {share}"


@explain_argument_errors
def link(
    mechanism: WordMechanism,
    originals: Sequence[Any],
    outputs: Sequence[Any],
    *,
    unknown: str = "error",
    confidence: float = CONFIDENCE,
) -> Linkage:
    """Run an attack that names the most likely original of each rewritten text.

    The attacker knows the mechanism, all original texts, and one rewritten text. If the
    probabilities of outputs are known, the attacker ranks the originals by likelihood, and no
    attacker can do better. Otherwise the attacker ranks the originals by the distances between the
    original word and the rewritten word, added over all positions. All texts are cut to the length
    of the shortest text, because different lengths would identify the originals. If k originals are
    equally likely and the correct original is one of them, the text counts as 1/k correct answers.
    The sum of these counts is rounded.

    Args:
        mechanism: a word mechanism of dpcore, such as `SanText`.
        originals: texts, or lists of words.
        outputs: one rewritten text for each original, in the order of the originals, as the method
            `rewrite` of the mechanism returns them.
        unknown: treatment of words without a vector. "error" raises an error, "drop" removes the
            words.
        confidence: confidence level of the interval.

    Returns:
        The number of correct answers, with a confidence interval of the share of correct answers.
        For comparison, the attribute `floor` is the share of correct answers of an attacker who
        always names the most frequent original.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if there are fewer than two originals, the numbers of outputs and originals
            differ, a text has no words, or a word has no vector and `unknown` is "error".

    Source:
        Neyman and Pearson (1933), for the likelihood.

    Example:
        >>> from dpcore.text.words import Embedding
        >>> from dpcore.text.words import SanText
        >>> mech = SanText(Embedding(["a", "b", "c"], [[0.0], [1.0], [2.0]]), epsilon=9.0)
        >>> texts = ["a b a b", "c c c c", "b b a a"]
        >>> print(link(mech, texts, mech.rewrite(texts, rng=1)))
        3 of 3 texts (4 words each) linked by likelihood: 1.000 [0.292, 1.000], floor 0.333
    """
    errors.instance("mechanism", mechanism, WordMechanism)  # type: ignore[type-abstract]
    errors.choice("unknown", unknown, ("error", "drop"))
    texts, answers = (
        look_up_word_numbers(name, mechanism, texts_given, unknown)
        for name, texts_given in (("originals", originals), ("outputs", outputs))
    )
    if len(texts) < 2:
        raise errors.invalid("originals", "two texts or more", len(texts))
    if len(answers) != len(texts):
        raise errors.invalid("outputs", f"one for each of {len(texts)} originals", len(answers))
    words = min(map(len, (*texts, *answers)))
    table, rewritten = (np.array([row[:words] for row in side]) for side in (texts, answers))
    keys = list(map(tuple, table.tolist()))
    by = "likelihood" if mechanism.has_table else "distance"
    different = table[list_first_rows(keys)[0]]
    linked = rank_truth(
        keys,
        np.arange(len(texts)),
        lambda rows: text_likelihood_score_matrix(mechanism, different, rewritten[rows]),
        by,
        confidence,
    )
    return Linkage(linked.right, len(texts), words, linked.floor, by, confidence)


def look_up_word_numbers(
    name: str, mechanism: WordMechanism, texts: Sequence[Any], unknown: str
) -> list[list[int]]:
    """Return a list of word numbers for each text.

    The number of a word is its row in `vectors`.
    """
    if not isinstance(texts, (list, tuple)):
        raise errors.mistyped(name, "a list of texts or of lists of words", texts)
    rows = []
    for place, text in enumerate(texts):
        rows.append(mechanism._read_words(f"{name}[{place}]", text, unknown, words_of)[1])
        if not rows[-1]:
            raise errors.invalid(f"{name}[{place}]", "a text with a word that has a vector", text)
    return rows


def text_likelihood_score_matrix(
    mechanism: Any, originals: Ints, outputs: Ints, by_table: bool | None = None
) -> Floats:
    """Return, for each rewritten text, a score of each original text: higher means more likely.

    The score is the log likelihood, or the negative sum of the distances between words.

    Args:
        mechanism: a word mechanism.
        originals: word numbers of the original texts, with one row for each text. All texts have
            the same length.
        outputs: word numbers of the rewritten texts, with one row for each text. These texts have
            the same length as the original texts.
        by_table: True for log likelihoods, False for negative distances. Defaults to True if the
            probabilities of outputs are known.
    """
    by_table = mechanism.has_table if by_table is None else by_table
    ranks = np.zeros((len(outputs), len(originals)))
    needed = np.unique(originals)
    for part in split_rows(len(needed), len(mechanism.vectors)):
        block = needed[part]
        if by_table:
            rows = mechanism.rows_with_unknown(block)
        else:
            rows = -mechanism.vectors.distances(block)
        slots = np.full(len(mechanism.vectors), -1)
        slots[block] = np.arange(len(block))
        for place in range(originals.shape[1]):
            at = slots[originals[:, place]]
            here = np.flatnonzero(at >= 0)
            ranks[:, here] += rows[at[here]][:, outputs[:, place]].T
    return ranks
