"""Redaction of records: the exact delta of one changed text, and policies as mechanisms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import flag, integer, invalid, real
from ...hints import hinted
from ...mechanisms.texts import texts_of
from ...records import Shown
from ...streams import Rng, check_size, seed_of
from .masking import Policy, policy_levels, policy_name, split_words, spread_levels

__all__ = ["PolicyMechanism", "mechanism", "record_delta"]

_MAX_RECORD_WORDS = 2**24


@hinted
def record_delta(p: float, *, words: int, differing: int, exact: bool = False) -> float:
    """Compute the exact delta of random masks between two texts of one length.

    If all places at which the texts differ are masked, the outputs have one law; otherwise no
    output is possible on both sides. So (epsilon, delta) holds for one delta, whatever epsilon:
    ``1 - p^k`` where each word is masked independently, and ``1 - C(n-k, m-k) / C(n, m)`` where m
    of n words are. The value is for the style "mask", of which places and length are visible; for
    the other styles it is an upper limit. A policy that always masks the same words has delta 0
    if these places are among them, and 1 otherwise.

    Args:
        p: share of masked words, in [0, 1].
        words: words n of each text.
        differing: places k at which the texts differ, from 1 to n.
        exact: True for ``m = floor(p n + 1/2)`` masks, as `Random(exact=True)` draws them; False
            for independent ones.

    Returns:
        The delta, in [0, 1]; 1 if fewer words are masked than differ.

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
    # The product over i < k of (m - i) / (n - i), as the sum of its logarithms.
    kept = (words - masks) / (words - np.arange(differing))
    return float(-np.expm1(np.log1p(-kept).sum()))


@hinted
@dataclass(eq=False, repr=False)
class PolicyMechanism(Shown):
    """A policy as a mechanism from a list of texts to their masks, made by `mechanism`.

    Args:
        policy: the policy, fitted or not.
        level: share to be masked.
        safe: texts of the other set, where the policy is fitted on each input.
        words: entries for each text.
    """

    policy: Any
    level: float
    safe: tuple[str, ...] | None = None
    words: int | None = None
    _known: dict[tuple[str, ...], Any] = field(default_factory=dict, init=False)

    @property
    def name(self) -> str:
        """The policy and the level; where it is fitted inside, that too."""
        fitted = "" if self.safe is None else ", fitted on each input"
        return f"redaction.mechanism({policy_name(self.policy)}, {self.level:g}{fitted})"

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuild without the cached results."""
        return type(self), (self.policy, self.level, self.safe, self.words)

    def __call__(self, x: Sequence[str], size: int, rng: Rng = None) -> npt.NDArray[np.int8]:
        """Draw masks of a list of texts.

        Args:
            x: the texts.
            size: number of outputs, at least 0.
            rng: None, an int seed or a numpy Generator.

        Returns:
            int8, shape `(size, texts, words)`: 1 for a masked word, 0 for a kept one, -1 after
            the last word of a text.

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
        if not getattr(self.policy, "is_random", True) and not self._is_fit_random:
            # Nothing is drawn: all rows are equal, and are computed once an input.
            if texts not in self._known:
                self._known.clear() if len(self._known) > 7 else None
                self._known[texts] = self._draw(texts, width, generator)
            return np.repeat(self._known[texts][None], size, axis=0)
        out = np.empty((size, len(texts), width), np.int8)
        for row in range(size):
            out[row] = self._draw(texts, width, generator)
        return out

    @property
    def _is_fit_random(self) -> bool:
        return self.safe is not None and bool(getattr(self.policy, "is_fit_random", True))

    def _draw(
        self, texts: tuple[str, ...], width: int, rng: np.random.Generator
    ) -> npt.NDArray[np.int8]:
        policy = self.policy if self.safe is None else self.policy.fit(texts, self.safe, rng=rng)
        out = np.full((len(texts), width), -1, np.int8)
        for row, levels in enumerate(policy_levels(policy, texts, rng)):
            out[row, : len(levels)] = levels <= self.level
        return out


@hinted
def mechanism(
    policy: Policy, level: float, *, safe: Any = None, words: int | None = None
) -> PolicyMechanism:
    """Return a policy as a mechanism, from a list of texts to which of their words are masked.

    An audit of it shows that a policy that is fitted on private texts is itself a release: its
    masks on *other* texts depend on each of them. Let the event read those alone, for the masks of
    the changed text may differ in any case.

    Args:
        policy: a policy; with `safe` one that is not fitted yet.
        level: share to be masked, in [0, 1].
        safe: texts of the other set: `policy.fit(x, safe)` then is part of the mechanism, done
            once for each input if it draws nothing and once for each output otherwise. None for
            policies that need no fit, or are fitted on public texts.
        words: most words of a text, which fixes the shape of outputs; None takes the longest
            text of the input, so that two inputs must agree in it.

    Returns:
        A callable `(x, size, rng) -> outputs`, outputs int8 of shape `(size, texts, words)`: 1 for
        a masked word, 0 for a kept one, -1 after the last word of a text.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if `level` or `words` is out of range, `safe` has no text, or the policy is to
            be fitted and has no `fit`, or is not fitted and `safe` is missing.

    Source:
        Dwork and Roth (2014), definition 2.4: all that depends on the data counts, parameters too.

    Example:
        >>> from dpcore.text.redaction import Keywords
        >>> draw = mechanism(Keywords(["flu"]), 0.5)
        >>> draw(["she has flu", "no flu"], 1)
        array([[[ 0,  0,  1],
                [ 0,  1, -1]]], dtype=int8)
    """
    level = real("level", level, low=0.0, high=1.0)
    words = words if words is None else integer("words", words, 1, _MAX_RECORD_WORDS)
    if safe is not None:
        safe = texts_of("safe", safe)
        if not hasattr(policy, "fit"):
            raise invalid("policy", "one with a method fit(sensitive, safe)", policy)
    elif getattr(policy, "needs_fit", False) and not getattr(policy, "is_fitted", True):
        raise invalid("policy", "fitted, or safe= given so that it is fitted on each input", policy)
    return PolicyMechanism(policy, level, safe, words)
