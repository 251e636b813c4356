"""Masking of words: levels that a policy gives, and texts at one level in three styles."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from hashlib import blake2b
from itertools import groupby
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from ...errors import choice, invalid, mistyped, numeric, real
from ...hints import hinted
from ...mechanisms.callables import name_of
from ...mechanisms.texts import texts_of
from ...streams import Rng, seed_of

__all__ = [
    "MASK", "STYLES", "Levels", "Policy", "Style", "find_masked", "fingerprint_texts",
    "mask_words", "policy_levels", "policy_name", "redact", "split_words", "spread_levels",
    "warn_if_fitted_on",
]  # fmt: skip

Levels = npt.NDArray[np.float64]
Policy = Callable[[Sequence[str], np.random.Generator], Sequence[Any]]
"""`(documents, rng) -> levels`: for each document an array with the level of each of its words."""

MASK: Final = "[MASK]"
"""The token that stands for masked words."""

Style = Literal["mask", "collapse", "drop"]
STYLES: Final[tuple[Style, ...]] = get_args(Style)
"""A token for each masked word, one for each run of them, or no token."""


def split_words(text: str) -> list[str]:
    """Split a text at white space; punctuation stays with its word.

    Example:
        >>> split_words("She has  cancer.")
        ['She', 'has', 'cancer.']
    """
    return text.split()


def spread_levels(words: int) -> Levels:
    """Return the levels of words masked one after another: ``(rank + 1/2) / words``.

    At level p exactly ``floor(p words + 1/2)`` of them are masked.

    Example:
        >>> spread_levels(4)
        array([0.125, 0.375, 0.625, 0.875])
    """
    levels: Levels = (np.arange(words) + 0.5) / words
    return levels


def policy_name(policy: Any) -> str:
    """Return the name of a policy for tables: its own, or that of the function."""
    own = getattr(policy, "name", None) or getattr(policy, "__name__", None)
    return own if isinstance(own, str) else name_of(policy)


def policy_levels(policy: Policy, texts: Any, rng: np.random.Generator) -> list[Levels]:
    """Call a policy and check its levels.

    Args:
        policy: `(documents, rng) -> levels`.
        texts: documents, none of them empty.
        rng: the generator that the policy draws from.

    Returns:
        For each text a float64 array, one entry a word, in [0, 1], or inf for a word that is
        never masked.

    Raises:
        TypeError: if the policy cannot be called or its levels are not numbers.
        ValueError: if a text is empty, or the levels are NaN, out of range or not one a word.
    """
    if isinstance(policy, type) or not callable(policy):
        raise mistyped("policy", "a function (documents, rng) -> levels", policy)
    documents = texts_of("texts", texts)
    name = policy_name(policy)
    found = policy(documents, rng)
    if isinstance(found, str) or not hasattr(found, "__len__"):
        raise mistyped(f"levels of {name}", "a list of arrays, one for each document", found)
    if len(found) != len(documents):
        raise invalid(f"levels of {name}", f"arrays for {len(documents):,} documents", len(found))
    return [
        _check_levels(f"levels of {name} for texts[{row}]", levels, len(split_words(text)))
        for row, (text, levels) in enumerate(zip(documents, found, strict=True))
    ]


def _check_levels(name: str, given: Any, words: int) -> Levels:
    requirement = f"a number from 0 to 1, or inf, for each of {words:,} words"
    levels = numeric(name, requirement, given).astype(np.float64)
    if levels.shape != (words,):
        raise invalid(name, requirement, f"shape {levels.shape}")
    wrong = ~((levels >= 0.0) & ((levels <= 1.0) | (levels == np.inf)))
    if wrong.any():
        raise invalid(name, requirement, levels[wrong][0])
    return levels


def find_masked(levels: Levels, level: float) -> npt.NDArray[np.bool_]:
    """Return True for each word that is masked at a level."""
    found: npt.NDArray[np.bool_] = levels <= level
    return found


def mask_words(
    texts: Sequence[str], levels: Sequence[Levels], level: float, style: Style = "mask"
) -> list[str]:
    """Mask the words of texts whose levels are at most `level`.

    Args:
        texts: documents.
        levels: of `policy_levels` on these texts; computed once, they serve every level.
        level: share to be masked, in [0, 1].
        style: "mask" puts one token for each masked word, "collapse" one for each run of them,
            "drop" leaves masked words out, so that a text may become empty.

    Returns:
        One text for each, its words joined by one blank.

    Raises:
        ValueError: if `level` is out of range, the style unknown, or the lengths differ.

    Example:
        >>> levels = [np.array([0.5, 0.1, 0.2, np.inf])]
        >>> [mask_words(["he has the flu"], levels, 0.3, style)[0] for style in STYLES]
        ['he [MASK] [MASK] flu', 'he [MASK] flu', 'he flu']
    """
    real("level", level, low=0.0, high=1.0)
    choice("style", style, STYLES)
    if len(levels) != len(texts):
        raise invalid("levels", f"arrays for {len(texts):,} texts", len(levels))
    found = []
    for row, (text, own) in enumerate(zip(texts, levels, strict=True)):
        words = split_words(text)
        if len(own) != len(words):
            raise invalid(f"levels[{row}]", f"one for each of {len(words):,} words", len(own))
        found.append(_join_words(words, find_masked(own, level).tolist(), style))
    return found


def _join_words(words: list[str], masked: list[bool], style: Style) -> str:
    if style == "drop":
        return " ".join(word for word, out in zip(words, masked, strict=True) if not out)
    tokens = [MASK if out else word for word, out in zip(words, masked, strict=True)]
    if style == "mask":
        return " ".join(tokens)
    # Equal words that were kept stay both: only masked runs are joined.
    runs = groupby(zip(tokens, masked, strict=True), key=lambda token: token[1])
    return " ".join(MASK if out else " ".join(token for token, _ in run) for out, run in runs)


def fingerprint_texts(texts: Sequence[str]) -> frozenset[int]:
    """Return a number for the words of each text, the same in every process."""
    joined = (" ".join(split_words(text)).encode("utf-8", "surrogatepass") for text in texts)
    return frozenset(int.from_bytes(blake2b(text, digest_size=8).digest()) for text in joined)


def warn_if_fitted_on(policy: Any, texts: Sequence[str], stacklevel: int = 3) -> int:
    """Warn if a policy was fitted on some of the texts, and return the number of these texts.

    Args:
        policy: a policy; one without `fitted_on` was not fitted.
        texts: documents that it redacts.
        stacklevel: of the warning.

    Warns:
        UserWarning: if texts are among those that the policy was fitted on.
    """
    fitted: frozenset[int] = getattr(policy, "fitted_on", frozenset())
    repeated = sum(fingerprint_texts([text]) <= fitted for text in texts) if fitted else 0
    if repeated:
        warnings.warn(
            f"{repeated:,} of {len(texts):,} texts are among those that {policy_name(policy)} was "
            "fitted on: it masks them better than others, and attacks find less",
            UserWarning,
            stacklevel=stacklevel,
        )
    return repeated


@hinted
def redact(
    texts: Any,
    policy: Policy,
    *,
    level: float | None = None,
    style: Style = "mask",
    rng: Rng = None,
) -> list[str]:
    """Mask words of texts by a policy.

    Words are what white space separates. A text without its punctuation and white space cannot be
    restored from the result, whose words are joined by one blank.

    Args:
        texts: documents, none of them empty.
        policy: one of this package, or any `(documents, rng) -> levels` that gives for each
            document an array with the level from which on each word is masked: in [0, 1], or inf
            for never.
        level: share to be masked, in [0, 1]. None for policies that mask always the same words:
            their levels are 0 and inf.
        style: "mask", "collapse" (one token for a run of masked words) or "drop" (no token).
        rng: None, an int seed or a numpy Generator.

    Returns:
        One text for each; with "drop" it may be empty.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if a text is empty, an argument is out of range, the policy is not fitted, its
            levels do not fit the texts, or `level` is missing where it is needed.

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
    if level is None and any((one[np.isfinite(one)] > 0.0).any() for one in levels):
        raise invalid("level", f"a share from 0 to 1, which {policy_name(policy)} needs", level)
    warn_if_fitted_on(policy, documents)
    return mask_words(documents, levels, 0.0 if level is None else level, style)
