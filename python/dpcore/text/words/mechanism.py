"""A mechanism that replaces words: inputs, pairs, texts; the subclasses draw the numbers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import chain, islice
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from ...errors import choice, instance, integer, invalid, mistyped, real
from ...mechanisms.texts import texts_of
from ...records import Pair, Record
from ...streams import Rng, seed_of, sized
from ..leakage import Embedding
from ..rewriting import Rewriter
from ..vocabulary import Tokeniser, words_of
from .texts import UNKNOWN, Floats, Numbers, TextLoss, TextReport, make_text_report, text_loss

__all__ = ["WordMechanism"]

_LENGTH_IS_PUBLIC: Final = "the number of words of a text is released"


@dataclass(frozen=True, eq=False, repr=False)
class WordMechanism(Record):
    """A mechanism on words with vectors, `(x, size, rng) -> word numbers`.

    The number of a word is its row in `vectors`. An input is a word, the number of one, or a text:
    a string, of which `words_of` makes words, or a list of words. Words of a text are replaced
    independently.

    Args:
        vectors: the words and their vectors, at least two, all different.
        epsilon: privacy parameter per unit of distance, above 0.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if there is one word only, two words have one vector, or a number is out of
            range.
    """

    vectors: Embedding
    epsilon: float

    thread_safe: ClassVar[bool] = True

    has_table: ClassVar[bool] = False
    """Whether the probabilities of outputs are known."""

    def __post_init__(self) -> None:
        """Check the fields."""
        vectors = instance("vectors", self.vectors, Embedding)
        if len(vectors) < 2:
            raise invalid("vectors", "those of at least two words", f"{vectors.words}")
        vectors.require_distinct("vectors")
        epsilon = real("epsilon", self.epsilon, low=0.0, open_low=True)
        object.__setattr__(self, "epsilon", epsilon)

    @property
    def claim(self) -> float:
        """The epsilon that the mechanism claims per unit of `pair(a, b).distance`."""
        return self.epsilon

    @property
    def words(self) -> Sequence[str]:
        """The words, inputs and outputs."""
        return self.vectors.words

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of input and of output words."""
        return len(self.vectors), len(self.vectors)

    @cached_property
    def name(self) -> str:
        """The constructor call, the vectors by their number, dimension and SHA-256."""
        about = f"<{len(self.vectors):,} words, dim={self.vectors.dim}, sha256 "
        parts = [f"{about}{self.vectors.sha256[:16]}>"]
        for field in fields(self)[1:]:
            value = getattr(self, field.name)
            is_short = not isinstance(value, tuple) or len(value) <= 4
            parts.append(f"{field.name}={value!r}" if is_short else f"<{len(value):,} words>")
        return f"{type(self).__name__}({', '.join(parts)})"

    def __repr__(self) -> str:
        return self.name

    def __call__(self, x: Any, size: int, rng: Rng = None) -> Numbers:
        """Draw outputs on an input.

        Args:
            x: a word, the number of a word, a text or a list of words.
            size: number of outputs, at least 0.
            rng: None, an int seed or a numpy Generator, of which one seed is taken.

        Returns:
            Numbers of words, shape `(size,)` for a word and `(size, n)` for a text of n words.

        Raises:
            TypeError: if x is of another kind.
            ValueError: if x is empty or has a word without a vector.
        """
        inputs = np.array(self._read_words("x", x)[1])
        size = sized(size, len(inputs))
        out = self._draw(inputs, size * len(inputs), seed_of(rng))
        return out.reshape(size, len(inputs)) if self._is_text(x) else out

    def replace(self, numbers: npt.ArrayLike, rng: Rng = None) -> Numbers:
        """Replace each of several words by one output.

        Args:
            numbers: numbers of words, shape `(n,)`.
            rng: None, an int seed or a numpy Generator.

        Returns:
            Numbers of words, shape `(n,)`.

        Raises:
            TypeError: if `numbers` are not whole numbers.
            ValueError: if one is not the number of a word, or the shape is another.
        """
        inputs = np.asarray(numbers)
        requirement = f"whole numbers from 0 to {len(self.vectors) - 1:,}, one dimension"
        if inputs.dtype.kind not in "iu":
            raise mistyped("numbers", requirement, numbers)
        inputs = np.ascontiguousarray(inputs, np.int64)
        if inputs.ndim != 1:
            raise invalid("numbers", requirement, f"shape {inputs.shape}")
        # As whole numbers without a sign negative ones are the largest: one pass for both ends.
        if inputs.size and inputs.view(np.uint64).max() >= len(self.vectors):
            raise invalid("numbers", requirement, [int(inputs.min()), int(inputs.max())])
        return self._draw(inputs, len(inputs), seed_of(rng)) if len(inputs) else inputs

    def pair(self, a: Any, b: Any) -> Pair:
        """Make a pair of two inputs with their distance, which the claim is per unit of.

        Args:
            a: a word or a text.
            b: another, of as many words.

        Returns:
            A `Pair` whose distance is that of the words, for texts the sum over positions.

        Raises:
            TypeError: if an input is not a word or a text.
            ValueError: if a word has no vector, the texts have different lengths (no claim covers
                them: the loss is infinite), or all words are equal.
        """
        first, second, _ = self._read_two(a, b)
        return Pair(a, b, float(self._distances(first, second).sum()))

    def notes_on(self, pair: Pair) -> tuple[str, ...]:
        """Return what a reader of a report on a pair should know."""
        has_text = self._is_text(pair.x) or self._is_text(pair.x_prime)
        return (_LENGTH_IS_PUBLIC,) if has_text else ()

    def rewrite(
        self,
        texts: Sequence[str],
        *,
        unknown: str = "error",
        rng: Rng = None,
        tokenise: Tokeniser = words_of,
    ) -> list[str]:
        """Replace the words of texts.

        The words of the result are joined by one blank. Punctuation and case are lost with
        `words_of`; the number of words of each text is released.

        Args:
            texts: a list of texts that are not empty.
            unknown: for words without a vector: "error" refuses them; "drop" leaves them out, so
                that their number is released; "keep" leaves them unchanged, so that their loss is
                infinite; "uniform" replaces them by any word with equal probability.
            rng: None, an int seed or a numpy Generator.
            tokenise: from a text to its words.

        Returns:
            One text for each.

        Raises:
            TypeError: if an argument is of the wrong kind.
            ValueError: if a text is empty or has no words, or has an unknown one under "error".
        """
        choice("unknown", unknown, UNKNOWN)
        read = [
            self._read_words(f"texts[{row}]", list(tokenise(text)), unknown)
            for row, text in enumerate(texts_of("texts", texts))
        ]
        found = np.array(list(chain.from_iterable(words for words, _ in read)), object)
        inputs = np.array(list(chain.from_iterable(numbers for _, numbers in read)), np.int64)
        taken = (inputs < len(self.vectors)) | (unknown != "keep")
        if taken.any():
            drawn = self._draw(inputs[taken], int(taken.sum()), seed_of(rng))
            found[taken] = np.array(self.words, object)[drawn]
        outputs = iter(found.tolist())
        return [" ".join(islice(outputs, len(words))) for words, _ in read]

    @property
    def rewriter(self) -> Rewriter:
        """The mechanism from text to text; it claims nothing, for `claim` is per unit of distance.

        Unknown words are an error.
        """
        return Rewriter(self.rewrite)

    def text_loss(self, a: Any, b: Any, delta: float = 1e-6, *, unknown: str = "error") -> TextLoss:
        """Compute what is lost between two texts: by one word, by all, and at a delta.

        Args:
            a: a text or a list of words.
            b: another of as many words.
            delta: in (0, 1).
            unknown: for words without a vector, as in `rewrite`. Under "keep" they show
                themselves, and under "uniform" they have the uniform law, of which the noise of a
                mechanism without a table bounds nothing: that loss is infinite, too.

        Returns:
            A `TextLoss`. Its bound at delta adds the exact Renyi divergences of the places and
            converts the sum; it is never above the exact sum. Where there is no table (noise
            above one dimension) all figures are upper bounds by the noise alone.

        Raises:
            TypeError: if an argument is of the wrong kind.
            ValueError: if a word has no vector under "error", the texts have different lengths or
                are equal, or delta is out of range.

        Source:
            Mironov (2017), proposition 1 (divergences add up); Canonne, Kamath and Steinke (2020),
            proposition 12.
        """
        return text_loss(self, a, b, delta, unknown)

    def text_report(
        self, text: Any, *, unknown: str = "error", rng: Rng = None, tokenise: Tokeniser = words_of
    ) -> TextReport:
        """Report what is left of a text, word by word, and what it can lose.

        For each word: N_w, the probability that it stays; S_w, the smallest number of outputs that
        carry .95 of its probability; the largest loss against any other word. They are computed
        from the table where there is one, else N_w and S_w are counted on 10,000 draws and the
        loss is the bound by the noise.

        Args:
            text: a string, or a list of words.
            unknown: for words without a vector, as in `rewrite`.
            rng: None, an int seed or a numpy Generator, for what is counted.
            tokenise: from a text to its words.

        Returns:
            A `TextReport`.

        Raises:
            TypeError: if an argument is of the wrong kind.
            ValueError: if the text has no words, or an unknown one under "error".

        Source:
            Feyisetan, Balle, Drake and Diethe (2020), section 4, for N_w and S_w.

        Example:
            >>> from dpcore.text.leakage import Embedding
            >>> from dpcore.text.words import SanText
            >>> mech = SanText(Embedding(("bad", "fine", "good"), [[0.0], [1.0], [1.5]]), 2.0)
            >>> found = mech.text_report("good, good")
            >>> round(found.words[0].kept, 3), round(found.one_word, 3), round(found.any_text, 3)
            (0.547, 1.64, 3.28)
        """
        choice("unknown", unknown, UNKNOWN)
        given = list(tokenise(text)) if isinstance(text, str) else text
        places = len(self._read_words("text", given, "keep")[1])
        numbers = self._read_words("text", given, unknown)[1]
        if not numbers:
            raise invalid("text", "a text with at least one word that is replaced", text)
        strange = places - len(numbers) + numbers.count(len(self.vectors))
        return make_text_report(self, numbers, unknown, strange, rng)

    @abstractmethod
    def _draw(self, inputs: Numbers, size: int, seed: int) -> Numbers:
        """Draw `size` outputs; draw i is on word `inputs[i % len(inputs)]`.

        The number after the last word stands for an unknown one, which is replaced uniformly.
        """

    def _distances(self, first: Numbers, second: Numbers) -> Floats:
        """Return distances of words to others, in the metric of the claim, shape `(n,)`."""
        rows = self.vectors.vectors
        found: Floats = np.linalg.norm(rows[first] - rows[second], axis=1)
        return found

    def _is_text(self, x: Any) -> bool:
        """Return True for an input that is not one word or the number of one."""
        return isinstance(x, (list, tuple)) or (isinstance(x, str) and x not in self.vectors)

    def _read_words(self, name: str, x: Any, unknown: str = "error") -> tuple[list[str], list[int]]:
        """Return the words of an input, and their numbers; V for an unknown word."""
        rows, size = self.vectors.rows, len(self.vectors)
        if isinstance(x, (int, np.integer)) and not isinstance(x, bool):
            words = [self.words[integer(name, x, 0, size - 1)]]
        elif isinstance(x, (list, tuple)) and all(isinstance(word, str) for word in x):
            words = list(x)
        elif isinstance(x, str):
            words = words_of(x) if self._is_text(x) else [x]
        else:
            raise mistyped(name, "a word, the number of one, a text or a list of words", x)
        if not words:
            raise invalid(name, "a word or a text with at least one word", x)
        if unknown == "drop":
            words = [word for word in words if word in rows]
        numbers = [rows.get(word, size) for word in words]
        if unknown == "error" and size in numbers:
            requirement = "made of words with a vector (see unknown= of rewrite)"
            raise invalid(name, requirement, words[numbers.index(size)])
        return words, numbers

    def _read_two(
        self, a: Any, b: Any, unknown: str = "error"
    ) -> tuple[Numbers, Numbers, np.ndarray[Any, np.dtype[np.bool_]]]:
        """Return the numbers of the words of two inputs, and where the words differ."""
        words, first = self._read_words("a", a, unknown)
        others, second = self._read_words("b", b, unknown)
        if len(words) != len(others):
            reason = f"{_LENGTH_IS_PUBLIC}: the loss is infinite"
            requirement = f"a text of as many words as a, {len(words):,} ({reason})"
            raise invalid("b", requirement, len(others))
        if words == others:
            raise invalid("b", "different from a in at least one word", b)
        differ = np.array(words, object) != np.array(others, object)
        return np.array(first), np.array(second), differ
