"""A mechanism that replaces words: inputs, pairs, texts; the subclasses draw the numbers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from ...errors import choice, instance, integer, invalid, mistyped, real
from ...mechanisms.texts import texts_of
from ...records import Pair, Record
from ...streams import Rng, seed_of, sized
from ..leakage import Embedding
from ..rewriting import Rewriter
from ..vocabulary import Tokeniser, words_of

__all__ = ["UNKNOWN", "Floats", "Numbers", "Unknown", "WordMechanism"]

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]

Unknown = Literal["error", "drop", "keep", "uniform"]
UNKNOWN: Final[tuple[Unknown, ...]] = get_args(Unknown)

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
        inputs, is_text = self._read_input("x", x)
        size = sized(size, len(inputs))
        out = self._draw(inputs, size * len(inputs), seed_of(rng))
        return out.reshape(size, len(inputs)) if is_text else out

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
        (first, _), (second, _) = self._read_input("a", a), self._read_input("b", b)
        if len(first) != len(second):
            reason = f"{_LENGTH_IS_PUBLIC}: the loss is infinite"
            requirement = f"a text of as many words as a, {len(first):,} ({reason})"
            raise invalid("b", requirement, len(second))
        if np.array_equal(first, second):
            raise invalid("b", "different from a in at least one word", b)
        return Pair(a, b, float(self._distances(first, second).sum()))

    def notes_on(self, pair: Pair) -> tuple[str, ...]:
        """Return what a reader of a report on a pair should know."""
        inputs = (("x", pair.x), ("x_prime", pair.x_prime))
        return (_LENGTH_IS_PUBLIC,) if any(self._read_input(*one)[1] for one in inputs) else ()

    def rewrite(
        self,
        texts: Sequence[str],
        *,
        unknown: Unknown = "error",
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
        lists = [list(tokenise(text)) for text in texts_of("texts", texts)]
        for row, words in enumerate(lists):
            if not words:
                raise invalid(f"texts[{row}]", "a text with at least one word", texts[row])
        numbers, rows = len(self.vectors), self.vectors.rows
        flat = list(chain.from_iterable(lists))
        inputs = np.array([rows.get(word, numbers) for word in flat], np.int64)
        ends = np.cumsum([len(words) for words in lists])
        strange = inputs == numbers
        if unknown == "error" and strange.any():
            place = int(strange.argmax())
            row = int(np.searchsorted(ends, place, "right"))
            requirement = "made of words with a vector (unknown= says what becomes of others)"
            raise invalid(f"texts[{row}]", requirement, flat[place])
        taken = np.ones(len(inputs), bool) if unknown == "uniform" else ~strange
        found = np.array(flat, object)
        if taken.any():
            drawn = self._draw(inputs[taken], int(taken.sum()), seed_of(rng))
            found[taken] = np.array(self.words, object)[drawn]
        if unknown == "drop":
            ends = np.cumsum(taken)[ends - 1]
            found = found[taken]
        parts, begin = found.tolist(), 0
        joined = []
        for end in ends.tolist():
            joined.append(" ".join(parts[begin:end]))
            begin = end
        return joined

    @property
    def rewriter(self) -> Rewriter:
        """The mechanism from text to text; it claims nothing, for `claim` is per unit of distance.

        Unknown words are an error.
        """
        return Rewriter(self.rewrite)

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

    def _read_pair(self, pair: Pair) -> tuple[Numbers, Numbers]:
        """Return numbers of the words of both inputs."""
        return self._read_input("x", pair.x)[0], self._read_input("x_prime", pair.x_prime)[0]

    def _read_input(self, name: str, x: Any) -> tuple[Numbers, bool]:
        """Return numbers of the words of an input, and True if it is a text."""
        rows = self.vectors.rows
        if isinstance(x, (int, np.integer)) and not isinstance(x, bool):
            return np.array([integer(name, x, 0, len(self.vectors) - 1)]), False
        if isinstance(x, str) and x in rows:
            return np.array([rows[x]]), False
        if isinstance(x, (list, tuple)) and all(isinstance(word, str) for word in x):
            words = list(x)
        elif isinstance(x, str):
            words = words_of(x)
        else:
            raise mistyped(name, "a word, the number of one, a text or a list of words", x)
        if not words:
            raise invalid(name, "a word or a text with at least one word", x)
        strange = [word for word in words if word not in rows]
        if strange:
            raise invalid(name, "made of words with a vector", strange[0])
        return np.array([rows[word] for word in words]), True
