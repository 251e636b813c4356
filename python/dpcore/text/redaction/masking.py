"""Masking of words by a policy, policies as mechanisms, and linkage of redacted texts.

A policy gives each word of a text a level. The words with levels up to a chosen level are masked,
in one of three styles.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import groupby
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from ...errors import choice, flag, integer, invalid, mistyped, numeric, real
from ...mechanisms.texts import texts_of
from ...packages import has_all
from ...records import attribute_of
from ...report.shown import Shown, name_of
from ...streams import Rng, check_size, seed_of
from ...suggestions import suggest_arguments
from ..words import Linkage

Levels = npt.NDArray[np.float64]
Policy = Callable[[Sequence[str], np.random.Generator], Sequence[Any]]
"""Function `(documents, rng) -> levels`, with an array for each document that has a level for each
word."""

MASK: Final = "[MASK]"
"""Token that replaces masked words."""

Style = Literal["mask", "collapse", "drop"]
STYLES: Final[tuple[Style, ...]] = get_args(Style)
"""Styles of masking: a token for each masked word, a token for each run of masked words, or no
token."""

_MAX_RECORD_WORDS = 2**24
_WordIds = npt.NDArray[np.int64]
_LinkageMethod = Literal["places", "kept_places", "bag"]
_METHOD_TITLES: Final = {
    "places": "length and places",
    "kept_places": "places",
    "bag": "bag of words",
}


def split_words(text: str) -> list[str]:
    """Split a text at white space; punctuation remains with its word.

    Example:
        >>> split_words("She has  cancer.")
        ['She', 'has', 'cancer.']
    """
    return text.split()


def spread_levels(words: int) -> Levels:
    """Return levels that mask words one after another: ``(rank + 1/2) / words``.

    At level p, exactly ``floor(p words + 1/2)`` words are masked.

    Example:
        >>> spread_levels(4)
        array([0.125, 0.375, 0.625, 0.875])
    """
    return (np.arange(words) + 0.5) / words


class PolicyAttributes:
    """Attributes that a policy may have, with the default of each.

    Attributes:
        name: name in tables. None takes the name of the function.
        needs_fit: True if the policy must be fitted on texts, by a method
            `fit(sensitive, safe, rng=)`.
        is_fitted: True if the policy is fitted.
        fitted_on: fingerprints of the texts on which the policy was fitted.
        is_random: True if the levels depend on the generator.
        is_fit_random: True if the fit depends on the generator.
    """

    name: Any = None
    fit: Any = None
    needs_fit = False
    is_fitted = is_random = is_fit_random = True
    fitted_on: frozenset[int] = frozenset()


def policy_attribute(policy: Any, name: str) -> Any:
    """Return an attribute that a policy may have, or its default."""
    return attribute_of(PolicyAttributes, policy, name)


def policy_name(policy: Any) -> str:
    """Return the name of a policy for tables: its own name, or the name of the function."""
    own = policy_attribute(policy, "name")
    if not own and has_all(policy, "__name__"):
        own = policy.__name__
    return own if isinstance(own, str) else name_of(policy)


@suggest_arguments
def policy_levels(policy: Policy, texts: Any, rng: np.random.Generator) -> list[Levels]:
    """Compute the levels of the words of texts by a policy, and check them.

    Args:
        policy: function `(documents, rng) -> levels`.
        texts: documents that are not empty.
        rng: numpy Generator for the random numbers of the policy.

    Returns:
        A float64 array for each text, with an entry for each word, in [0, 1], or inf for a word
        that is never masked.

    Raises:
        TypeError: if the policy cannot be called or its levels are not numbers.
        ValueError: if a text is empty, or the levels are NaN, out of range, or not one for each
            word.
    """
    if isinstance(policy, type) or not callable(policy):
        raise mistyped("policy", "a function (documents, rng) -> levels", policy)
    documents = texts_of("texts", texts)
    name = policy_name(policy)
    stated = policy(documents, rng)
    if isinstance(stated, str) or not isinstance(stated, Sized):
        raise mistyped(f"levels of {name}", "a list of arrays, one for each document", stated)
    if len(stated) != len(documents):
        raise invalid(f"levels of {name}", f"arrays for {len(documents):,} documents", len(stated))
    return [
        _check_levels(f"levels of {name} for texts[{row}]", levels, len(split_words(text)))
        for row, (text, levels) in enumerate(zip(documents, stated, strict=True))
    ]


def _check_levels(name: str, stated: Any, words: int) -> Levels:
    requirement = f"a number from 0 to 1, or inf, for each of {words:,} words"
    levels = numeric(name, requirement, stated).astype(np.float64)
    if levels.shape != (words,):
        raise invalid(name, requirement, f"shape {levels.shape}")
    wrong = ~((levels >= 0.0) & ((levels <= 1.0) | (levels == np.inf)))
    if wrong.any():
        raise invalid(name, requirement, levels[wrong][0])
    return levels


@suggest_arguments
def mask_words(
    texts: Sequence[str], levels: Sequence[Levels], level: float, style: Style = "mask"
) -> list[str]:
    """Mask, in each text, the words whose level is at most `level`.

    Args:
        texts: documents.
        levels: result of `policy_levels` on these texts. The same result serves all levels.
        level: share of words to mask, in [0, 1].
        style: "mask" puts a token for each masked word, "collapse" puts a token for each run of
            masked words, and "drop" removes masked words, so a text may become empty.

    Returns:
        A masked text for each text, with words joined by one blank.

    Raises:
        ValueError: if `level` is out of range, the style is unknown, or the lengths differ.

    Example:
        >>> levels = [np.array([0.5, 0.1, 0.2, np.inf])]
        >>> [mask_words(["he has the flu"], levels, 0.3, style)[0] for style in STYLES]
        ['he [MASK] [MASK] flu', 'he [MASK] flu', 'he flu']
    """
    real("level", level, low=0.0, high=1.0)
    choice("style", style, STYLES)
    if len(levels) != len(texts):
        raise invalid("levels", f"arrays for {len(texts):,} texts", len(levels))
    masked = []
    for row, (text, own) in enumerate(zip(texts, levels, strict=True)):
        words = split_words(text)
        if len(own) != len(words):
            raise invalid(f"levels[{row}]", f"one for each of {len(words):,} words", len(own))
        masked.append(_join_words(words, (own <= level).tolist(), style))
    return masked


def _join_words(words: list[str], masked: list[bool], style: Style) -> str:
    if style == "drop":
        return " ".join(word for word, out in zip(words, masked, strict=True) if not out)
    tokens = [MASK if out else word for word, out in zip(words, masked, strict=True)]
    if style == "mask":
        return " ".join(tokens)
    # Only masked runs are joined. Equal neighbouring words that are kept remain separate.
    runs = groupby(zip(tokens, masked, strict=True), key=lambda token: token[1])
    return " ".join(MASK if out else " ".join(token for token, _ in run) for out, run in runs)


def fingerprint_texts(texts: Sequence[str]) -> frozenset[int]:
    """Return a hash of the words of each text; it is the same in every process."""
    joined = (" ".join(split_words(text)).encode("utf-8", "surrogatepass") for text in texts)
    return frozenset(int.from_bytes(blake2b(text, digest_size=8).digest()) for text in joined)


def warn_if_fitted_on(policy: Any, texts: Sequence[str], stacklevel: int = 3) -> int:
    """Warn if a policy was fitted on some of the texts, and return the number of these texts.

    Args:
        policy: a policy; a policy without `fitted_on` was not fitted.
        texts: documents that the policy redacts.
        stacklevel: stack level of the warning.

    Warns:
        UserWarning: if the policy was fitted on some of the texts.
    """
    fitted: frozenset[int] = policy_attribute(policy, "fitted_on")
    repeated = sum(fingerprint_texts([text]) <= fitted for text in texts) if fitted else 0
    if repeated:
        warnings.warn(
            f"{repeated:,} of {len(texts):,} texts are among those that {policy_name(policy)} was "
            "fitted on: it masks them better than others, and attacks find less",
            UserWarning,
            stacklevel=stacklevel,
        )
    return repeated


@suggest_arguments
def redact(
    texts: Any,
    policy: Policy,
    *,
    level: float | None = None,
    style: Style = "mask",
    rng: Rng = None,
) -> list[str]:
    """Mask words of texts by a policy.

    Words are separated by white space. The words of the result are joined by one blank, so the
    original white space is lost.

    Args:
        texts: documents that are not empty.
        policy: a policy of this package, or any function `(documents, rng) -> levels`. It returns
            an array for each document, with one level for each word. The word is masked from this
            level on. A level is in [0, 1], or inf for a word that is never masked.
        level: share of words to mask, in [0, 1]. Use None for policies that always mask the same
            words: their levels are 0 and inf.
        style: "mask", "collapse" (one token for a run of masked words) or "drop" (no token).
        rng: None, an int seed or a numpy Generator.

    Returns:
        A redacted text for each text; with "drop" it may be empty.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: for one of these reasons:

            - a text is empty, or an argument is out of range;
            - the policy is not fitted, or its levels do not match the texts;
            - `level` is None, but the policy needs a level.

    Warns:
        UserWarning: if the policy was fitted on some of these texts.

    Source:
        Gusain and Leith (2023), Towards Quantifying the Privacy of Redacted Text.

    Example:
        >>> from dpcore.text import redaction
        >>> redaction.redact(["She has cancer."], redaction.Keywords(["cancer"]))
        ['She has [MASK]']
        >>> redaction.redact(["one two three four"], redaction.Random(), level=0.5, rng=1)
        ['[MASK] [MASK] three four']
    """
    documents = texts_of("texts", texts)
    choice("style", style, STYLES)
    if level is not None:
        level = real("level", level, low=0.0, high=1.0)
    levels = policy_levels(policy, documents, np.random.default_rng(seed_of(rng)))
    if level is None and any(
        (own_levels[np.isfinite(own_levels)] > 0.0).any() for own_levels in levels
    ):
        raise invalid("level", f"a share from 0 to 1, which {policy_name(policy)} needs", level)
    warn_if_fitted_on(policy, documents)
    return mask_words(documents, levels, 0.0 if level is None else level, style)


@suggest_arguments
def record_delta(p: float, *, words: int, differing: int, exact: bool = False) -> float:
    """Compute the exact delta of random masks between two texts of the same length.

    If all places at which the texts differ are masked, the output has the same law on the two
    texts. Otherwise, the outputs on the two texts are disjoint. Therefore the delta is the same for
    every epsilon. It is ``1 - p^k`` if each word is masked independently, and
    ``1 - C(n-k, m-k) / C(n, m)`` if exactly m of n words are masked. The value is exact for the
    style "mask", whose outputs show the places and the length. For the other styles it is an upper
    bound. A policy that always masks the same words has delta 0 if these words include all
    differing places, and delta 1 otherwise.

    Args:
        p: share of masked words, in [0, 1].
        words: number n of words of each text.
        differing: number k of places at which the texts differ, from 1 to n.
        exact: True for exactly ``m = floor(p n + 1/2)`` masks, as in `Random(exact=True)`; False
            for independent masks.

    Returns:
        The delta, in [0, 1]. It is 1 if fewer words are masked than differ.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if an argument is out of range.

    Source:
        Dwork and Roth (2014), definition 2.4, applied to the law of the masks.

    Example:
        >>> print(f"{record_delta(0.9, words=11, differing=1):.4f}")
        0.1000
        >>> print(f"{record_delta(0.9, words=11, differing=2, exact=True):.4f}")
        0.1818
    """
    p = real("p", p, low=0.0, high=1.0)
    words = integer("words", words, 1, _MAX_RECORD_WORDS)
    differing = integer("differing", differing, 1, words)
    if not flag("exact", exact):
        return float(-np.expm1(differing * np.log(p))) if p > 0.0 else 1.0
    masks = int((spread_levels(words) <= p).sum())
    if masks < differing:
        return 1.0
    # The product over i < k of (m - i) / (n - i), computed as a sum of logarithms.
    kept = (words - masks) / (words - np.arange(differing))
    return float(-np.expm1(np.log1p(-kept).sum()))


@suggest_arguments
@dataclass(eq=False, repr=False)
class PolicyMechanism(Shown):
    """A policy as a mechanism from texts to their masks; created by `policy_mechanism`.

    Args:
        policy: the policy, fitted or not.
        level: share of words to mask.
        safe: texts of the other set, if the policy is fitted on each input; otherwise None.
        words: number of entries for each text, or None for the longest text of the input.
    """

    policy: Any
    level: float
    safe: tuple[str, ...] | None = None
    words: int | None = None
    _known: dict[tuple[str, ...], Any] = field(default_factory=dict, init=False)

    @property
    def name(self) -> str:
        """Policy, level, and the statement that the policy is fitted on each input, if it is."""
        fitted = "" if self.safe is None else ", fitted on each input"
        return f"redaction.policy_mechanism({policy_name(self.policy)}, {self.level:g}{fitted})"

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuild without the cached results."""
        return type(self), (self.policy, self.level, self.safe, self.words)

    def __call__(self, x: Sequence[str], size: int, rng: Rng = None) -> npt.NDArray[np.int8]:
        """Draw masks of the words of a list of texts.

        Args:
            x: the texts.
            size: number of outputs, at least 0.
            rng: None, an int seed or a numpy Generator.

        Returns:
            int8, shape `(size, texts, words)`: 1 for a masked word, 0 for a kept word, -1 after the
            last word of a text.

        Raises:
            ValueError: if a text is empty or has more than `words` words, or the policy fails.
        """
        texts = texts_of("x", x)
        generator = rng if isinstance(rng, np.random.Generator) else None
        generator = generator or np.random.default_rng(seed_of(rng))
        longest = max(len(split_words(text)) for text in texts)
        width = longest if self.words is None else self.words
        if longest > width:
            raise invalid("words", f"at least {longest}, the words of the longest text", width)
        size = check_size(size, len(texts) * width)
        is_fit_random = self.safe is not None and policy_attribute(self.policy, "is_fit_random")
        if not policy_attribute(self.policy, "is_random") and not is_fit_random:
            # There are no random draws, so all rows are equal, and they are computed once per
            # input.
            if texts not in self._known:
                self._known.clear() if len(self._known) > 7 else None
                self._known[texts] = self._draw(texts, width, generator)
            return np.repeat(self._known[texts][None], size, axis=0)
        out = np.empty((size, len(texts), width), np.int8)
        for row in range(size):
            out[row] = self._draw(texts, width, generator)
        return out

    def _draw(
        self, texts: tuple[str, ...], width: int, rng: np.random.Generator
    ) -> npt.NDArray[np.int8]:
        policy = self.policy if self.safe is None else self.policy.fit(texts, self.safe, rng=rng)
        out = np.full((len(texts), width), -1, np.int8)
        for row, levels in enumerate(policy_levels(policy, texts, rng)):
            out[row, : len(levels)] = levels <= self.level
        return out


@suggest_arguments
def policy_mechanism(
    policy: Policy, level: float, *, safe: Any = None, words: int | None = None
) -> PolicyMechanism:
    """Return a policy as a mechanism from a list of texts to masks of their words.

    An audit of this mechanism shows that a policy fitted on private texts is itself a release: the
    masks of one text depend on the *other* texts. Let the event read only the masks of the texts
    that are equal in both inputs, because the masks of the changed text may differ in any case.

    Args:
        policy: a policy; with `safe` a policy that is not fitted yet.
        level: share of words to mask, in [0, 1].
        safe: texts of the other set. Then `policy.fit(x, safe)` is a part of the mechanism. It is
            called once for each input if it is not random, and once for each output otherwise. None
            is for policies that need no fit, or are fitted on public texts.
        words: largest number of words of a text, which fixes the shape of the outputs. None takes
            the longest text of the input; then the longest texts of the two inputs must have the
            same length.

    Returns:
        Function `(x, size, rng) -> outputs`. The outputs are int8 of shape `(size, texts, words)`:
        1 for a masked word, 0 for a kept word, -1 after the last word of a text.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: for one of these reasons:

            - `level` or `words` is out of range;
            - `safe` is empty, or is passed for a policy without `fit`;
            - the policy needs a fit, but it is not fitted, and `safe` is not passed.

    Source:
        Dwork and Roth (2014), definition 2.4: everything that depends on the data counts, also
        parameters.

    Example:
        >>> from dpcore.text.redaction import Keywords
        >>> draw = policy_mechanism(Keywords(["flu"]), 0.5)
        >>> draw(["she has flu", "no flu"], 1)
        array([[[ 0,  0,  1],
                [ 0,  1, -1]]], dtype=int8)
    """
    level = real("level", level, low=0.0, high=1.0)
    words = words if words is None else integer("words", words, 1, _MAX_RECORD_WORDS)
    if safe is not None:
        safe = texts_of("safe", safe)
        if policy_attribute(policy, "fit") is None:
            raise invalid("policy", "one with a method fit(sensitive, safe)", policy)
    elif policy_attribute(policy, "needs_fit") and not policy_attribute(policy, "is_fitted"):
        raise invalid("policy", "fitted, or safe= given so that it is fitted on each input", policy)
    return PolicyMechanism(policy, level, safe, words)


@suggest_arguments
def link_redacted(
    originals: Any,
    redacted: Any,
    *,
    truth: Any = None,
    by: _LinkageMethod = "places",
    confidence: float = 0.95,
) -> Linkage:
    """Link each redacted text to the originals that agree with it, and count the correct links.

    The attacker knows all originals and one redacted text. If t originals agree with the redacted
    text, the attacker names each of them with probability 1/t. A correct original among them
    therefore counts 1/t, and the sum is rounded to the nearest whole number. If no original agrees,
    the link is wrong.

    Args:
        originals: at least two texts.
        redacted: texts after redaction; they may be empty.
        truth: row of the original of each redacted text. By default, `redacted` has one text for
            each original, in the same order.
        by: form of agreement:

            - "places", for the style "mask": the number of words agrees, and each kept word is at
              the same place;
            - "kept_places": each kept word is at the same place from the start; the number of words
              is ignored;
            - "bag", for any style: the kept words occur in the original at any place, counted with
              repetitions.
        confidence: confidence of the interval.

    Returns:
        The number of correct links, with an interval and the floor: the share of correct links of
        an attacker who always names the most frequent original. `words` is the rounded mean number
        of kept words.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if there are fewer than two originals, an original is empty, there are no
            redacted texts, or `truth` has wrong entries.

    Source:
        Gusain and Leith (2023) for the redaction; Sweeney (2002), k-anonymity, for the number of
        originals that agree.

    Example:
        >>> texts = ["she has the flu", "she has the mumps", "he has the flu"]
        >>> redacted = ["she [MASK] [MASK] flu", "[MASK] has the mumps", "[MASK] has the [MASK]"]
        >>> print(link_redacted(texts, redacted))
        2 of 3 texts (2 words each) linked by length and places: 0.667 [0.094, 0.992], floor 0.333
    """
    choice("by", by, get_args(_LinkageMethod))
    words_of_originals = [split_words(text) for text in texts_of("originals", originals)]
    if len(words_of_originals) < 2:
        raise invalid("originals", "two texts or more", len(words_of_originals))
    outputs = _read_redacted(redacted)
    rows = _read_truth(truth, len(outputs), len(words_of_originals))
    find_rows = index_originals(words_of_originals, by)
    keys = list(map(tuple, words_of_originals))
    right, kept = 0.0, 0
    for words, row in zip(outputs, rows.tolist(), strict=True):
        kept += sum(word != MASK for word in words)
        candidates = find_rows(words)
        right += sum(keys[candidate] == keys[row] for candidate in candidates) / max(
            1, len(candidates)
        )
    most = Counter(keys).most_common(1)[0][1] / len(keys)
    mean = round(kept / len(outputs))
    return Linkage(round(right), len(outputs), mean, most, _METHOD_TITLES[by], confidence)


def index_originals(
    words_of_originals: Sequence[Sequence[str]], by: str
) -> Callable[[Sequence[str]], _WordIds]:
    """Return a function from the words of a redacted text to the rows of the originals that agree.

    Args:
        words_of_originals: words of each original.
        by: "places", "kept_places" or "bag", as in `link_redacted`.
    """
    numbers = {
        word: place
        for place, word in enumerate({word for original in words_of_originals for word in original})
    }
    rows_of_numbers = [[numbers[word] for word in original] for original in words_of_originals]
    index = (_BagIndex if by == "bag" else _PlaceIndex)(rows_of_numbers)

    def find_rows(words: Sequence[str]) -> _WordIds:
        places = [place for place, word in enumerate(words) if word != MASK]
        if any(words[place] not in numbers for place in places):
            return np.empty(0, np.int64)
        ids = [numbers[words[place]] for place in places]
        return index.find(places, ids, len(words) if by == "places" else None)

    return find_rows


def _read_redacted(redacted: Any) -> list[list[str]]:
    requirement = "a list of at least one text"
    if isinstance(redacted, (str, bytes)) or not isinstance(redacted, Sequence):
        raise mistyped("redacted", requirement, redacted)
    if not redacted:
        raise invalid("redacted", requirement, redacted)
    for row, text in enumerate(redacted):
        if not isinstance(text, str):
            raise mistyped(f"redacted[{row}]", "a text (a string)", text)
    return [split_words(text) for text in redacted]


def _read_truth(truth: Any, outputs: int, originals: int) -> _WordIds:
    if truth is None:
        if outputs != originals:
            raise invalid("redacted", f"one for each of {originals:,} originals", outputs)
        return np.arange(outputs)
    requirement = f"the row of an original, below {originals:,}, for each redacted text"
    rows = numeric("truth", requirement, truth)
    if rows.dtype.kind not in "iu":
        raise mistyped("truth", requirement, truth)
    if rows.shape != (outputs,) or rows.min() < 0 or rows.max() >= originals:
        raise invalid("truth", requirement, truth)
    return rows.astype(np.int64)


class _PlaceIndex:
    """Index of originals by the number of the word at each place."""

    def __init__(self, rows: Sequence[Sequence[int]]) -> None:
        self.sizes = np.array([len(numbers) for numbers in rows])
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.words = np.array([word for numbers in rows for word in numbers])

    def find(self, places: list[int], ids: list[int], size: int | None) -> _WordIds:
        """Return the originals with these words at these places and with this length."""
        last = places[-1] if places else -1
        candidates = np.flatnonzero(self.sizes > last if size is None else self.sizes == size)
        for place, number in zip(places, ids, strict=True):
            candidates = candidates[self.words[self.starts[candidates] + place] == number]
        return candidates


class _BagIndex:
    """Index of originals by the number of occurrences of each word."""

    def __init__(self, originals: Sequence[Sequence[int]]) -> None:
        self.originals = len(originals)
        index: dict[int, tuple[list[int], list[int]]] = {}
        for row, words in enumerate(originals):
            for word, times in Counter(words).items():
                rows, counts = index.setdefault(word, ([], []))
                rows.append(row)
                counts.append(times)
        self.found = {word: tuple(map(np.array, columns)) for word, columns in index.items()}

    def find(self, places: list[int], ids: list[int], size: int | None) -> _WordIds:
        """Return the rows of the originals that contain these words at least as often."""
        matches = [
            rows[counts >= times]
            for (rows, counts), times in ((self.found[w], n) for w, n in Counter(ids).items())
        ]
        kept = np.arange(self.originals)
        for rows in sorted(matches, key=len):
            kept = kept[np.isin(kept, rows, assume_unique=True)]
        return kept
