"""Masking of words by a policy, audits of policies, and linkage of redacted texts to originals.

A policy gives each word of a text a level, a number from 0 to 1. A redaction at level p masks all
words whose level is at most p. There are three styles: a token replaces each masked word, a token
replaces each run of masked words, or masked words are deleted.
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
from ...mechanisms.texts import as_texts
from ...packages import has_all
from ...records import get_attribute
from ...report.shown import Shown, name_of
from ...streams import Rng, check_size, to_seed
from ...suggestions import explain_argument_errors
from ..words import Linkage

Levels = npt.NDArray[np.float64]
Policy = Callable[[Sequence[str], np.random.Generator], Sequence[Any]]
"""Function `(documents, rng) -> levels`. The levels are a list with one array for each document.
Each array has one level for each word of its document."""

MASK: Final = "[MASK]"
"""Token that replaces masked words."""

Style = Literal["mask", "collapse", "drop"]
STYLES: Final[tuple[Style, ...]] = get_args(Style)
"""Styles of masking: a token for each masked word, a token for each run of masked words, or no
token."""

_MAX_RECORD_WORDS = 2**24
_RowIds = npt.NDArray[np.int64]
_LinkageMethod = Literal["places", "kept_places", "bag"]
_METHOD_TITLES: Final = {
    "places": "length and places",
    "kept_places": "places",
    "bag": "bag of words",
}


def split_words(text: str) -> list[str]:
    """Split a text into words at white space. Punctuation marks remain part of their words.

    Example:
        >>> split_words("She has  cancer.")
        ['She', 'has', 'cancer.']
    """
    return text.split()


def spread_levels(words: int) -> Levels:
    """Return equally spaced levels: ``(rank + 1/2) / words`` for the ranks 0 to `words` - 1.

    A level is a number for a word: a redaction at level p masks each word whose level is at most p.
    With the levels from this function, a redaction masks exactly ``floor(p words + 1/2)`` words.

    Example:
        >>> spread_levels(4)
        array([0.125, 0.375, 0.625, 0.875])
    """
    return (np.arange(words) + 0.5) / words


class PolicyAttributes:
    """Default values of the optional attributes of a redaction policy.

    A redaction policy is a function that selects the words of a text to mask. It gives each word a
    number, the level of the word.

    Attributes:
        name: name of the policy in tables. With None, tables show the name of the function.
        needs_fit: True if the user must call the method `fit(sensitive, safe, rng=)` of the policy
            before the policy is used.
        is_fitted: True if the policy was fitted on texts, or does not need a fit.
        fitted_on: fingerprints (hashes) of the texts on which the policy was fitted.
        is_random: True if the levels of the words depend on the random generator.
        is_fit_random: True if the result of the method `fit` depends on the random generator.
    """

    name: Any = None
    fit: Any = None
    needs_fit = False
    is_fitted = is_random = is_fit_random = True
    fitted_on: frozenset[int] = frozenset()


def getattr_or_default(policy: Any, name: str) -> Any:
    """Return an optional attribute of a redaction policy, or the default if the policy lacks it."""
    return get_attribute(PolicyAttributes, policy, name)


def policy_name(policy: Any) -> str:
    """Return the name of a redaction policy: its attribute `name`, or the name of the function."""
    own = getattr_or_default(policy, "name")
    if not own and has_all(policy, "__name__"):
        own = policy.__name__
    return own if isinstance(own, str) else name_of(policy)


@explain_argument_errors
def policy_mask_levels(policy: Policy, texts: Any, rng: np.random.Generator) -> list[Levels]:
    """Call a redaction policy, which gives each word a number (the level), and check the levels.

    A redaction at level p masks the words whose level is at most p.

    Args:
        policy: function `(documents, rng) -> levels`, with one array of levels for each text.
        texts: list of non-empty texts.
        rng: numpy Generator for the random numbers of the policy.

    Returns:
        A list with one float64 array for each text. Each array has one level for each word of the
        text. The level is in [0, 1], or inf for a word that is never masked.

    Raises:
        TypeError: if the policy cannot be called or its levels are not numbers.
        ValueError: if a text is empty, a level is NaN or out of range, or the number of levels
            differs from the number of words.
    """
    if isinstance(policy, type) or not callable(policy):
        raise mistyped("policy", "a function (documents, rng) -> levels", policy)
    documents = as_texts("texts", texts)
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


@explain_argument_errors
def mask_words(
    texts: Sequence[str], levels: Sequence[Levels], level: float, style: Style = "mask"
) -> list[str]:
    """Mask each word whose number in `levels` is at most `level`, and return the masked texts.

    Args:
        texts: list of texts.
        levels: a list with one array for each text. The array has one level for each word of the
            text.
        level: largest level of a masked word, in [0, 1].
        style: "mask" replaces each masked word by the token "[MASK]". "collapse" replaces each run
            of adjacent masked words by one token "[MASK]". "drop" removes masked words; a masked
            text may then be empty.

    Returns:
        The masked texts, in the order of `texts`. There is one blank between two words.

    Raises:
        ValueError: if `level` is out of range, the style is unknown, or the number of levels
            differs from the number of words of a text.

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


def hash_texts(texts: Sequence[str]) -> frozenset[int]:
    """Return the set of the hashes of texts.

    Texts that differ only in the white space between words have the same hash. The hashes are the
    same in every Python process.
    """
    joined = (" ".join(split_words(text)).encode("utf-8", "surrogatepass") for text in texts)
    return frozenset(int.from_bytes(blake2b(text, digest_size=8).digest()) for text in joined)


def warn_if_fitted_on(policy: Any, texts: Sequence[str], stacklevel: int = 3) -> int:
    """Count the texts on which a redaction policy was fitted, and warn if the number is above 0.

    Args:
        policy: a redaction policy. Its attribute `fitted_on` has the hashes of the texts on which
            it was fitted. If the policy lacks this attribute, the count is 0.
        texts: texts that the policy redacts.
        stacklevel: argument `stacklevel` of `warnings.warn`.

    Warns:
        UserWarning: if the policy was fitted on some of the texts.
    """
    fitted: frozenset[int] = getattr_or_default(policy, "fitted_on")
    repeated = sum(hash_texts([text]) <= fitted for text in texts) if fitted else 0
    if repeated:
        warnings.warn(
            f"{repeated:,} of {len(texts):,} texts are among those that {policy_name(policy)} was "
            "fitted on: it masks them better than others, and attacks find less",
            UserWarning,
            stacklevel=stacklevel,
        )
    return repeated


@explain_argument_errors
def redact(
    texts: Any,
    policy: Policy,
    *,
    level: float | None = None,
    style: Style = "mask",
    rng: Rng = None,
) -> list[str]:
    """In each text, mask the words that a policy selects, and return the redacted texts.

    Words are separated by white space. The policy gives each word a level. `redact` masks the words
    whose level is at most `level`. A redacted text has one blank between two words. The original
    white space is lost.

    Args:
        texts: list of non-empty texts.
        policy: a policy of this package, or any function `(documents, rng) -> levels`. The function
            returns an array for each text, with one level for each word. A level is in [0, 1], or
            inf for a word that is never masked.
        level: largest level of a masked word, in [0, 1]. For the policies of this package, `level`
            is the share of the words to mask. Use None for a policy that always masks the same
            words, and whose levels are only 0 and inf.
        style: "mask" (the token "[MASK]" for each masked word), "collapse" (one token for each run
            of masked words) or "drop" (no token).
        rng: None, an int seed or a numpy Generator.

    Returns:
        The redacted texts, in the order of `texts`. With the style "drop", a redacted text may be
        empty.

    Raises:
        TypeError: if an argument has a wrong type.
        ValueError: for one of these reasons:

            - a text is empty, or an argument is out of range;
            - the policy must be fitted on texts first, but it is not fitted;
            - the number of levels for a text differs from its number of words;
            - `level` is None, but the policy returns levels other than 0 and inf.

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
    documents = as_texts("texts", texts)
    choice("style", style, STYLES)
    if level is not None:
        level = real("level", level, low=0.0, high=1.0)
    levels = policy_mask_levels(policy, documents, np.random.default_rng(to_seed(rng)))
    if level is None and any(
        (own_levels[np.isfinite(own_levels)] > 0.0).any() for own_levels in levels
    ):
        raise invalid("level", f"a share from 0 to 1, which {policy_name(policy)} needs", level)
    warn_if_fitted_on(policy, documents)
    return mask_words(documents, levels, 0.0 if level is None else level, style)


@explain_argument_errors
def record_delta(p: float, *, words: int, differing: int, exact: bool = False) -> float:
    """Compute the exact delta of (epsilon, delta)-DP for masking random words of a text.

    Consider two texts that have n words each, and that differ at k positions. If all words at these
    k positions are masked, the output gives no information on which text was redacted. Otherwise,
    the output shows which text was redacted. Therefore the delta is the probability that at least
    one word at these k positions is not masked. This delta is the same for every epsilon:

    - If each word is masked independently with probability p, the delta is ``1 - p^k``.
    - If exactly m of n words are masked, the delta is ``1 - C(n-k, m-k) / C(n, m)``, with binomial
      coefficients C.

    The delta is exact for the style "mask", which replaces each masked word by a token. For the
    styles "collapse" and "drop", which hide the number of masked words, the delta is an upper
    bound. For a policy that always masks the same words, the delta is 0 if the words at these k
    positions are all masked, and 1 otherwise.

    Args:
        p: probability that a word is masked, or with `exact=True` the share of the words that are
            masked; in [0, 1].
        words: number n of words of each text.
        differing: number k of words in which the texts differ, from 1 to n.
        exact: True if exactly ``m = floor(p n + 1/2)`` words are masked, as in
            `Random(exact=True)`. False if each word is masked independently with probability p.

    Returns:
        The delta, in [0, 1]. With `exact=True`, the delta is 1 if m is smaller than k.

    Raises:
        TypeError: if an argument has a wrong type.
        ValueError: if an argument is out of range.

    Source:
        Dwork and Roth (2014), definition 2.4, applied to the distribution of the masks.

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


@explain_argument_errors
@dataclass(eq=False, repr=False)
class PolicyMechanism(Shown):
    """Mechanism for audits: the input is a list of texts, the output is the masks of their words.

    The function `policy_mechanism` creates mechanisms of this class.

    Args:
        policy: the redaction policy, which gives each word a level.
        level: largest level of a masked word, in [0, 1].
        safe: texts that are not sensitive. The mechanism fits the policy on its input and on these
            texts. None if the mechanism does not fit the policy.
        words: number of output entries for each text. With None, it is the number of words of the
            longest text of the input.
    """

    policy: Any
    level: float
    safe: tuple[str, ...] | None = None
    words: int | None = None
    _known: dict[tuple[str, ...], Any] = field(default_factory=dict, init=False)

    @property
    def name(self) -> str:
        """Name of this mechanism in reports, with the name of the policy and the level.

        If `safe` is given, the name also has the words "fitted on each input".
        """
        fitted = "" if self.safe is None else ", fitted on each input"
        return f"redaction.policy_mechanism({policy_name(self.policy)}, {self.level:g}{fitted})"

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arguments of the mechanism, without its cached masks."""
        return type(self), (self.policy, self.level, self.safe, self.words)

    def __call__(self, x: Sequence[str], size: int, rng: Rng = None) -> npt.NDArray[np.int8]:
        """Draw the masks of the words of a list of texts.

        Args:
            x: the texts.
            size: number of independent outputs, at least 0.
            rng: None, an int seed or a numpy Generator.

        Returns:
            int8 array of shape `(size, texts, words)`. An entry is 1 for a masked word, 0 for a
            word that is not masked, and -1 after the last word of a text.

        Raises:
            ValueError: if a text is empty, a text has more than `words` words, or the levels from
                the policy are not valid.
        """
        texts = as_texts("x", x)
        generator = rng if isinstance(rng, np.random.Generator) else None
        generator = generator or np.random.default_rng(to_seed(rng))
        longest = max(len(split_words(text)) for text in texts)
        width = longest if self.words is None else self.words
        if longest > width:
            raise invalid("words", f"at least {longest}, the words of the longest text", width)
        size = check_size(size, len(texts) * width)
        is_fit_random = self.safe is not None and getattr_or_default(self.policy, "is_fit_random")
        if not getattr_or_default(self.policy, "is_random") and not is_fit_random:
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
        for row, levels in enumerate(policy_mask_levels(policy, texts, rng)):
            out[row, : len(levels)] = levels <= self.level
        return out


@explain_argument_errors
def policy_mechanism(
    policy: Policy, level: float, *, safe: Any = None, words: int | None = None
) -> PolicyMechanism:
    """Return a mechanism for audits: it maps a list of texts to the masks that a policy chooses.

    If a policy is fitted on private texts, the masks of one text depend on the *other* texts of the
    list, and disclose information about them. An audit of the returned mechanism can show such a
    disclosure. The two inputs of the audit are two lists of texts that differ in one text. Choose
    an event (a set of outputs) that depends only on the masks of the texts that are in both lists.
    Do not use the masks of the changed text: they may differ even if the policy was not fitted on
    this text.

    Args:
        policy: a redaction policy. If `safe` is passed, the policy must have a method `fit`.
        level: largest level of a masked word, in [0, 1]. For the policies of this package, `level`
            is the share of the words to mask.
        safe: texts that are not sensitive: the second argument of `policy.fit(sensitive, safe)`. If
            these texts are passed, the mechanism calls `policy.fit(x, safe)` for its input x. Then
            the fit is a part of the audited mechanism. The fit runs once for each output if the fit
            or the policy is random, and otherwise once for each input. Use None for a policy that
            does not need a fit, or that was fitted on public texts.
        words: largest number of words of a text, which is the last dimension of the outputs. With
            None, it is the number of words of the longest text of the input. Then the longest texts
            of the two inputs must have the same number of words.

    Returns:
        Function `(x, size, rng) -> outputs`, for a list of texts x and a number `size` of outputs.
        The outputs are an int8 array of shape `(size, texts, words)`. An entry is 1 for a masked
        word, 0 for a word that is not masked, and -1 after the last word of a text.

    Raises:
        TypeError: if an argument has a wrong type.
        ValueError: for one of these reasons:

            - `level` or `words` is out of range;
            - `safe` is empty, or is passed for a policy without `fit`;
            - the policy must be fitted on texts, but it is not fitted, and `safe` is not passed.

    Source:
        Dwork and Roth (2014), definition 2.4. The definition covers everything that is computed
        from private data, including fitted parameters.

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
        safe = as_texts("safe", safe)
        if getattr_or_default(policy, "fit") is None:
            raise invalid("policy", "one with a method fit(sensitive, safe)", policy)
    elif getattr_or_default(policy, "needs_fit") and not getattr_or_default(policy, "is_fitted"):
        raise invalid("policy", "fitted, or safe= given so that it is fitted on each input", policy)
    return PolicyMechanism(policy, level, safe, words)


@explain_argument_errors
def link_redacted(
    originals: Any,
    redacted: Any,
    *,
    truth: Any = None,
    by: _LinkageMethod = "places",
    confidence: float = 0.95,
) -> Linkage:
    """Link each redacted text to an original text that matches it, and count the correct links.

    The attacker knows all originals and one redacted text. An original matches if it contains the
    words that were not masked. If t originals match, the attacker draws one of them, each with
    probability 1/t. The link is correct if the drawn text has the same words as the true original.
    If no original matches, the link is wrong. The function does not draw links. It adds the
    probabilities of a correct link over all redacted texts, and rounds the sum to a whole number of
    correct links.

    Args:
        originals: list of at least two texts.
        redacted: list of redacted texts. A redacted text may be empty.
        truth: for each redacted text, the position of its original in `originals`, from 0. With
            None, `redacted` must have one text for each original, in the same order.
        by: rule by which an original matches a redacted text:

            - "places", for the style "mask": the two texts have the same number of words, and each
              word that was not masked is at the same place in both texts;
            - "kept_places": each word that was not masked is at the same place in the original,
              counted from the start; the numbers of words may differ;
            - "bag", for any style: the original contains each word that was not masked at least as
              often as the redacted text contains the word. The places of the words are ignored.
        confidence: confidence level of the interval for the share of correct links.

    Returns:
        The number of correct links, with a confidence interval for the share of correct links. The
        result also has a baseline, which is printed as "floor". It is the share of correct links of
        an attacker who always names the most frequent original. The field `words` is the mean
        number of words that were not masked, rounded to a whole number.

    Raises:
        TypeError: if an argument has a wrong type.
        ValueError: for one of these reasons:

            - there are fewer than two originals, or an original is empty;
            - `redacted` is empty;
            - `truth` does not have one valid position for each redacted text.

    Source:
        Gusain and Leith (2023) for the redaction. Sweeney (2002), k-anonymity, for the number of
        originals that match.

    Example:
        >>> texts = ["she has the flu", "she has the mumps", "he has the flu"]
        >>> redacted = ["she [MASK] [MASK] flu", "[MASK] has the mumps", "[MASK] has the [MASK]"]
        >>> print(link_redacted(texts, redacted))
        2 of 3 texts (2 words each) linked by length and places: 0.667 [0.094, 0.992], floor 0.333
    """
    choice("by", by, get_args(_LinkageMethod))
    words_of_originals = [split_words(text) for text in as_texts("originals", originals)]
    if len(words_of_originals) < 2:
        raise invalid("originals", "two texts or more", len(words_of_originals))
    outputs = _read_redacted(redacted)
    rows = _read_true_rows(truth, len(outputs), len(words_of_originals))
    find_rows = all_matching_rows_function(words_of_originals, by)
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


def all_matching_rows_function(
    words_of_originals: Sequence[Sequence[str]], by: str
) -> Callable[[Sequence[str]], npt.NDArray[np.int64]]:
    """Return a function that finds the original texts which match a redacted text.

    The argument of the function is the list of the words of a redacted text. The result is an array
    with the positions of the matching originals.

    Args:
        words_of_originals: words of each original.
        by: rule by which an original matches: "places", "kept_places" or "bag". The docstring of
            `link_redacted` describes these rules.
    """
    numbers = {
        word: place
        for place, word in enumerate({word for original in words_of_originals for word in original})
    }
    rows_of_numbers = [[numbers[word] for word in original] for original in words_of_originals]
    index = (_BagIndex if by == "bag" else _PlaceIndex)(rows_of_numbers)

    def find_rows(words: Sequence[str]) -> _RowIds:
        places = [place for place, word in enumerate(words) if word != MASK]
        if any(words[place] not in numbers for place in places):
            return np.empty(0, np.int64)
        ids = [numbers[words[place]] for place in places]
        return index.find_originals(places, ids, len(words) if by == "places" else None)

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


def _read_true_rows(truth: Any, outputs: int, originals: int) -> npt.NDArray[np.int64]:
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
    """Index that finds the original texts that have given words at given places."""

    def __init__(self, rows: Sequence[Sequence[int]]) -> None:
        self.sizes = np.array([len(numbers) for numbers in rows])
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.words = np.array([word for numbers in rows for word in numbers])

    def find_originals(self, places: list[int], ids: list[int], size: int | None) -> _RowIds:
        """Return the rows of originals that have the words `ids` at `places`, and `size` words."""
        last = places[-1] if places else -1
        candidates = np.flatnonzero(self.sizes > last if size is None else self.sizes == size)
        for place, number in zip(places, ids, strict=True):
            candidates = candidates[self.words[self.starts[candidates] + place] == number]
        return candidates


class _BagIndex:
    """Index that finds the original texts that contain given words at any place."""

    def __init__(self, originals: Sequence[Sequence[int]]) -> None:
        self.originals = len(originals)
        index: dict[int, tuple[list[int], list[int]]] = {}
        for row, words in enumerate(originals):
            for word, times in Counter(words).items():
                rows, counts = index.setdefault(word, ([], []))
                rows.append(row)
                counts.append(times)
        self.found = {word: tuple(map(np.array, columns)) for word, columns in index.items()}

    def find_originals(self, places: list[int], ids: list[int], size: int | None) -> _RowIds:
        """Return the rows of originals that contain each word at least as often as `ids` does."""
        matches = [
            rows[counts >= times]
            for (rows, counts), times in ((self.found[w], n) for w, n in Counter(ids).items())
        ]
        kept = np.arange(self.originals)
        for rows in sorted(matches, key=len):
            kept = kept[np.isin(kept, rows, assume_unique=True)]
        return kept
