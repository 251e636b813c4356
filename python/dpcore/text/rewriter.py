"""Rewriters, text to text, as mechanisms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..errors import mistyped, real, suggest_arguments
from ..mechanisms.declarations import mechanism_attribute, name_of
from ..mechanisms.texts import text_of
from ..records import Shown
from .inference.attackers import owner_of, takes_rng


@suggest_arguments
@dataclass(frozen=True, slots=True, repr=False)
class Rewriter(Shown):
    """A function that rewrites a list of texts, as the mechanism text -> text of an audit.

    One text is handed over `size` times in one list; every rewrite of it must be drawn by itself.

    Args:
        rewrite: `(texts) -> list[str]`, one rewrite for each; one with a parameter `rng` is handed
            the audit's numpy Generator, and repeats.
        claim: the epsilon that it claims for any two texts, or None.

    Raises:
        TypeError: if `rewrite` is not callable, or `claim` no number.
        ValueError: if the claim is negative or not finite.

    Source:
        Krishna, Gupta and Dupuy (2021) (ADePT, which rewrites utterances).

    Example:
        >>> import dpcore
        >>> def any_word(texts, rng):
        ...     return [str(rng.choice(text.split())) for text in texts]
        >>> rewriter = Rewriter(any_word)
        >>> pair = ("a good film", "a film")
        >>> report = dpcore.audit(rewriter, pair, claim=1.0, trials=10_000, rng=1)
        >>> report.verdict, rewriter("a good film", 2, np.random.default_rng(1))
        ('refuted', ['good', 'good'])
    """

    rewrite: Callable[..., list[str]]
    claim: float | None = None

    def __post_init__(self) -> None:
        """Check the fields."""
        if not callable(self.rewrite):
            raise mistyped("rewrite", "a function of a list of texts", self.rewrite)
        if self.claim is not None:
            object.__setattr__(self, "claim", real("claim", self.claim, low=0.0))

    @property
    def name(self) -> str:
        """Name in reports: that of the model whose method it is, or of the function."""
        told = mechanism_attribute(owner_of(self.rewrite), "name")
        return f"Rewriter({told if isinstance(told, str) else name_of(self.rewrite)})"

    def __call__(self, x: str, size: int, rng: np.random.Generator) -> list[str]:
        """Draw rewrites of one text.

        Args:
            x: the text.
            size: how many rewrites.
            rng: a numpy Generator.

        Returns:
            `size` texts.

        Raises:
            TypeError: if x is no string, or a rewrite is none.
            ValueError: if x is empty.
        """
        texts = [text_of("x", x)] * size
        found = self.rewrite(texts, **({"rng": rng} if takes_rng(self.rewrite) else {}))
        for text in found:
            if not isinstance(text, str):
                raise mistyped(f"rewrites of {self.name}", "strings", text)
        return list(found)

    def __repr__(self) -> str:
        return self.name
