"""Epsilon of mechanisms that mask random words of a text, and counterexamples to published claims.

The counterexamples are mechanisms whose privacy loss is larger than a published bound. For each
counterexample, there is a similar mechanism that satisfies the bound. The mechanisms have few
outputs, so a reader can check their output probabilities and losses by hand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from ..errors import choice, flag, instance, invalid, mistyped, real
from ..mechanisms import positive
from ..records import Floats, Pair
from ..report.shown import Shown, name_of
from ..streams import Rng, check_size
from ..suggestions import explain_argument_errors
from .pure import Entries, make_generator

Masks = Literal["bernoulli", "exact"]
"""Ways to mask words: each word independently, or a fixed share of the words of a text."""

_MAX_EXPONENT: Final = 700.0
"""Largest exponent for which e^epsilon is in the range of float64."""

_COUNTEREXAMPLE_HINT: Final = "see {!r} in dpcore.calibration.COUNTEREXAMPLES"

MASK = "_"
"""Word that replaces a masked word."""

_MAX_WORDS: Final = 12
"""Largest number of words in a text. The code sums over all 2^n choices of masked words."""

Answer = Callable[[tuple[str, ...], float], Sequence[float]]
"""Function (words, epsilon) -> probabilities of all answers to partly masked words."""


@explain_argument_errors
def word_dropout(
    epsilon: float,
    mu: float,
    *,
    masks: Masks = "bernoulli",
    neighbours: Literal["one word", "any two texts"] = "one word",
    masked_is_neighbour: bool = True,
) -> float:
    """Return the epsilon of a text mechanism if each word is first masked with probability `mu`.

    The words are masked at random before the mechanism gets the text. The result is
    ``ln((1 - mu) e^epsilon + mu)``. This epsilon is right under three conditions:

    - The two texts differ in one word.
    - The epsilon of the mechanism is also valid for a text and a copy of this text in which one
      more word is masked.
    - The words are masked independently of each other.

    If one of the conditions fails, the result can be too small. The tuple `COUNTEREXAMPLES`
    contains an example for each condition.

    Proof: let x and x' differ in one word, and fix the masks of all other words. Let P1 be the
    distribution of the output on x if this word is not masked. Let Q1 be the distribution of the
    output on x' if the word is not masked. Let P0 be the distribution of the output if this word is
    masked. Let ``m = min(Q1, P0)``, and let ``c = (1 - mu) e^epsilon + mu``, which is at least 1.
    If ``P1 <= e^epsilon m``, then::

        (1 - mu) P1 + mu P0 <= c m + mu (P0 - m) <= c (m + mu (P0 - m)) <= c ((1 - mu) Q1 + mu P0)

    The inequality remains true after averaging over the masks of all other words. The conditions
    are used as follows. ``P1 <= e^epsilon Q1`` holds because the texts differ in one word.
    ``P1 <= e^epsilon P0`` holds because of the second condition. Averaging is allowed because the
    masks of the other words do not depend on the mask of this word.

    Args:
        epsilon: epsilon of the mechanism without masks, in (0, 1e300], for texts that differ in one
            word.
        mu: probability that a word is masked, in [0, 1).
        masks: "bernoulli" if each word is masked independently of all other words. "exact" (a fixed
            number of masked words) raises a ValueError. With a fixed number, the mask of one word
            gives information about the masks of other words.
        neighbours: "one word": neighbouring texts differ in one word. "any two texts" raises a
            ValueError. If two texts differ in n words, the probability that all n words are masked
            is only mu^n.
        masked_is_neighbour: True if `epsilon` is also valid for a text and a copy of this text in
            which one more word is masked. False raises a ValueError.

    Returns:
        The epsilon of the mechanism with random masks, for texts that differ in one word. The
        result is at most `epsilon`.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if a number is out of range, or if an argument states that one of the conditions
            does not hold.

    Source:
        Advanced joint convexity: Balle, Barthe and Gaboardi (2018), Privacy Amplification by
        Subsampling. Lyu, He and Li (2020), theorem 2, state the bound without conditions. Zouhri
        and Abecidan (2021), section 3.3, correct their proof. Both proofs use the distribution of
        the output. The right distribution is conditional: the distribution of the output if the
        word is masked.

    Example:
        >>> round(word_dropout(1.0, 0.5), 4)
        0.6201
        >>> word_dropout(1.0, 0.5, masks="exact")
        Traceback (most recent call last):
        ...
        ValueError: masks must be 'bernoulli' (...), got 'exact'
    """
    epsilon = positive("epsilon", epsilon)
    mu = real("mu", mu, low=0.0, high=1.0, open_high=True)
    _refuse_unsafe_conditions(masks, neighbours, masked_is_neighbour)
    if epsilon > _MAX_EXPONENT:
        return epsilon + math.log1p(mu * math.expm1(-epsilon))
    # At mu = 0, the two roundings could give a result above epsilon.
    return min(math.log1p((1.0 - mu) * math.expm1(epsilon)), epsilon)


def _refuse_unsafe_conditions(masks: str, neighbours: str, masked_is_neighbour: bool) -> None:
    choice("masks", masks, get_args(Masks))
    if masks != "bernoulli":
        why = "with a fixed number of masks the masked word tells which others are kept"
        requirement = f"'bernoulli' ({why}: {_COUNTEREXAMPLE_HINT.format('exact_counts')})"
        raise invalid("masks", requirement, masks)
    if choice("neighbours", neighbours, ("one word", "any two texts")) != "one word":
        why = "masks hide a difference of n words with probability mu^n only"
        requirement = f"'one word' ({why}: {_COUNTEREXAMPLE_HINT.format('any_two_texts')})"
        raise invalid("neighbours", requirement, neighbours)
    if not flag("masked_is_neighbour", masked_is_neighbour):
        why = "a masked text that is no neighbour may answer unlike both"
        requirement = f"True ({why}: {_COUNTEREXAMPLE_HINT.format('masked_no_neighbour')})"
        raise invalid("masked_is_neighbour", requirement, masked_is_neighbour)


@explain_argument_errors
@dataclass(frozen=True, slots=True, repr=False)
class MaskedWords(Shown):
    """Mechanism that masks random words of a text, and then draws an answer: an integer 0, 1, ...

    The probabilities of the answers depend on the words that remain.

    Args:
        answer: function ``(words, epsilon) -> probabilities`` with one probability for each
            possible answer. The argument `words` is the tuple of all words, with "_" in place of
            masked words.
        epsilon: number that the function `answer` gets as its second argument, in (0, 1e300].
        mu: probability that a word is masked, or share of the words that are masked, in [0, 1).
        masks: "bernoulli": each word is masked independently with probability `mu`. "exact": in a
            text of n words, exactly `mu` times n words are masked. All choices of these words are
            equally likely.

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a number is out of range, or if `masks` is an unknown word.

    Source:
        Lyu, He and Li (2020), algorithm 2, line 1, for the masks.

    Example:
        >>> coin = MaskedWords(lambda words, epsilon: (0.9, 0.1) if "a" in words else (0.5, 0.5))
        >>> coin.law("a b").round(12).tolist(), coin("a b", 4, 1).tolist()
        ([0.7, 0.3], [0, 0, 0, 0])
    """

    answer: Answer
    epsilon: float = 1.0
    mu: float = 0.5
    masks: Masks = "bernoulli"

    thread_safe: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the fields."""
        if not callable(self.answer):
            raise mistyped("answer", "a function (words, epsilon) -> probabilities", self.answer)
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        mu = real("mu", self.mu, low=0.0, high=1.0, open_high=True)
        object.__setattr__(self, "mu", mu)
        choice("masks", self.masks, get_args(Masks))

    @property
    def name(self) -> str:
        """Name of this mechanism in reports, with its epsilon, mu and kind of masks."""
        fields = f"epsilon={self.epsilon:g}, mu={self.mu:g}, masks={self.masks!r}"
        return f"MaskedWords({name_of(self.answer).rpartition('.')[2]}, {fields})"

    def __repr__(self) -> str:
        return self.name

    @property
    def claim(self) -> float:
        """Epsilon that this mechanism claims: ``ln((1 - mu) e^epsilon + mu)``.

        This claim can be false.
        """
        return word_dropout(self.epsilon, self.mu)

    def law(self, text: str) -> Floats:
        """Compute the exact probability of each answer of this mechanism to a text.

        Args:
            text: the text, 1 to 12 words separated by spaces.
        """
        chances, laws = self._mask_pattern_probs_and_laws(text)
        return chances @ laws

    def loss(self, pair: Pair) -> float:
        """Compute the exact privacy loss of this mechanism for two texts x and x'.

        The loss is the largest value of abs(ln(P(answer on x) / P(answer on x'))) over all answers.

        Args:
            pair: the two texts, each with its words separated by spaces.

        Returns:
            The loss. It is infinite if an answer is possible for only one of the two texts.

        Raises:
            TypeError: if `pair` is not a Pair of texts.
            ValueError: if a text does not have 1 to 12 words. If this object was created with
                ``masks="exact"``, also if `mu` times the number of words is not a whole number.
        """
        instance("pair", pair, Pair)
        x, x_prime = self.law(pair.x), self.law(pair.x_prime)
        possible = (x > 0.0) | (x_prime > 0.0)
        with np.errstate(divide="ignore"):
            ratios = np.log(x[possible]) - np.log(x_prime[possible])
        return float(np.abs(ratios).max())

    def __call__(self, x: str, size: int, rng: Rng = None) -> Entries:
        """Draw answers to a text: for each answer, first the masks, then the answer.

        Args:
            x: the text.
            size: number of answers, at least 0.
            rng: None, an int seed or a numpy Generator.

        Returns:
            Array of answers 0, 1, ..., one per draw, shape `(size,)`.
        """
        chances, laws = self._mask_pattern_probs_and_laws(x)
        size, rng = check_size(size, 1), make_generator(rng)
        drawn = rng.choice(len(chances), size=size, p=chances)
        # The last answer gets the probability that rounding leaves.
        ends = np.cumsum(laws, axis=1)[:, :-1]
        counts: Entries = (rng.random(size)[:, None] >= ends[drawn]).sum(axis=1)
        return counts

    def _mask_pattern_probs_and_laws(self, text: str) -> tuple[Floats, Floats]:
        """Return the probability of each choice of masks, and the answer probabilities for each."""
        words = instance("text", text, str).split()
        if not 1 <= len(words) <= _MAX_WORDS:
            raise invalid("text", f"1 to {_MAX_WORDS} words", text)
        choices = np.array(list(product((False, True), repeat=len(words))))
        left = (
            tuple(MASK if gone else word for word, gone in zip(words, masks, strict=True))
            for masks in choices
        )
        laws = np.array([self.answer(words, self.epsilon) for words in left], np.float64)
        if laws.ndim != 2 or (laws < 0.0).any() or not np.allclose(laws.sum(axis=1), 1.0):
            raise invalid("answer", "a function whose probabilities sum to 1", laws.tolist())
        return self._mask_pattern_probs(text, choices.sum(axis=1), len(words)), laws

    def _mask_pattern_probs(self, text: str, hidden_counts: npt.NDArray[Any], words: int) -> Floats:
        """Compute the probability of each choice of masks from its number of masked words."""
        if self.masks == "bernoulli":
            return self.mu**hidden_counts * (1.0 - self.mu) ** (words - hidden_counts)
        center = round(self.mu * words)
        if not math.isclose(center, self.mu * words, abs_tol=1e-9):
            requirement = f"of such a length that mu={self.mu:g} masks a whole number of words"
            raise invalid("text", requirement, text)
        return np.where(hidden_counts == center, 1.0 / math.comb(words, center), 0.0)


@dataclass(frozen=True, slots=True, repr=False)
class Counterexample(Shown):
    """Two similar mechanisms that mask words; only the first violates a published bound.

    The bound states that masks with probability mu reduce the epsilon of a mechanism to
    ``ln((1 - mu) e^epsilon + mu)``. The function `word_dropout` computes this bound.

    Args:
        name: name of the counterexample.
        mechanism: the first mechanism. This mechanism claims the epsilon of the bound, but the
            privacy loss of the mechanism is larger.
        pair: two texts on which the privacy loss of `mechanism` exceeds the claim.
        sound: the second mechanism, which is similar to the first. The claim of this mechanism is
            true.
        sound_pair: two texts on which the privacy loss of `sound` equals the claim.
        broken: name and value of an argument of `word_dropout` that describes `mechanism`. For this
            value, `word_dropout` raises a ValueError, because a condition of the bound fails.
        what: text on one line that explains why the claim of `mechanism` is false.

    Raises:
        TypeError: if `mechanism` or `sound` is not a `MaskedWords`, or if `pair` or `sound_pair` is
            not a `Pair`.

    Source:
        Constructed for this package as a counterexample to Lyu, He and Li (2020), theorem 2.

    Example:
        >>> first = COUNTEREXAMPLES[0]
        >>> first.name, first.broken
        ('exact_counts', ('masks', 'exact'))
        >>> round(first.mechanism.loss(first.pair), 4), round(first.mechanism.claim, 4)
        (0.8137, 0.6201)
        >>> round(first.sound.loss(first.sound_pair), 4)
        0.6201
    """

    name: str
    mechanism: MaskedWords
    pair: Pair
    sound: MaskedWords
    sound_pair: Pair
    broken: tuple[str, Any]
    what: str

    def __post_init__(self) -> None:
        """Check the mechanisms and the pairs."""
        instance("mechanism", self.mechanism, MaskedWords)
        instance("sound", self.sound, MaskedWords)
        instance("pair", self.pair, Pair)
        instance("sound_pair", self.sound_pair, Pair)


def _probabilities_of_answers(shift: float, epsilon: float) -> tuple[float, float]:
    """Return P(answer 0) and P(answer 1) = ``e^(epsilon shift) / (1 + e^epsilon)``."""
    chance = math.exp(epsilon * (shift - 1.0)) / (1.0 + math.exp(-epsilon))
    return 1.0 - chance, chance


def answer_by_end_words(words: tuple[str, ...], epsilon: float) -> tuple[float, float]:
    """Return the probabilities of the answers 0 and 1 to a text, from its first and last word.

    Answer 1 is more likely if the first word is "a", and less likely if the last word is "b". Each
    of the two words changes the probability of answer 1 by a factor e^epsilon. If two texts differ
    in one word, their privacy loss is at most `epsilon`.

    Args:
        words: the words of the text.
        epsilon: largest privacy loss between two texts that differ in one word.
    """
    return _probabilities_of_answers(float(words[0] == "a") - float(words[-1] == "b"), epsilon)


def answer_by_a_or_b(words: tuple[str, ...], epsilon: float) -> tuple[float, float]:
    """Return the probabilities of the answers 0 and 1 to a text.

    The probability of answer 1 is larger if the text contains the word "a" or "b". The privacy loss
    of any two texts is at most `epsilon`.

    Args:
        words: the words of the text.
        epsilon: logarithm of a ratio of two probabilities of answer 1. The numerator is the
            probability for a text with one of these words. The denominator is the probability for a
            text without these words.
    """
    return _probabilities_of_answers(float("a" in words or "b" in words), epsilon)


def mask_answer_probabilities(words: tuple[str, ...], epsilon: float) -> tuple[float, float, float]:
    """Return the probabilities of the answers 0, 1 and 2 to a text with masked words.

    If the text contains the mask "_", answer 2 has probability 1. Otherwise, answer 2 has
    probability 0, and answer 1 is more likely if the text contains the word "a". Therefore the
    privacy loss is infinite between a text with a mask and a text without a mask.

    Args:
        words: the words of the text, with "_" in place of masked words.
        epsilon: logarithm of a ratio of two probabilities of answer 1. The numerator is the
            probability for a text with the word "a". The denominator is the probability for a text
            without "a".
    """
    if MASK in words:
        return 0.0, 0.0, 1.0
    return (*_probabilities_of_answers(float("a" in words), epsilon), 0.0)


COUNTEREXAMPLES: tuple[Counterexample, ...] = (
    Counterexample(
        "exact_counts", MaskedWords(answer_by_end_words, masks="exact"), Pair("a b", "c b"),
        MaskedWords(answer_by_end_words), Pair("a b", "c b"), ("masks", "exact"),
        "one of two words is masked: without the first the second stays, two words away",
    ),
    Counterexample(
        "masked_no_neighbour", MaskedWords(mask_answer_probabilities), Pair("a", "c"),
        MaskedWords(answer_by_a_or_b), Pair("a", "c"), ("masked_is_neighbour", False),
        "a masked text has an answer of its own, so that masks take nothing off the others",
    ),
    Counterexample(
        "any_two_texts", MaskedWords(answer_by_a_or_b), Pair("a b", "c d"),
        MaskedWords(answer_by_a_or_b), Pair("a d", "c d"), ("neighbours", "any two texts"),
        "both words differ, and are both masked with probability mu^2 only",
    ),
)  # fmt: skip
"""Counterexamples, one for each of the three conditions of `word_dropout`, at epsilon 1 and mu
0.5."""
