"""Word dropout: which words of a text are hidden before it is encoded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from ...errors import choice, real
from ...hints import hinted
from ...records import Shown
from ...torch.needed import torch

__all__ = ["MASKED", "MASKS", "Masked", "Masks", "WordDropout"]

Masks = Literal["bernoulli", "exact"]
MASKS: Final[tuple[Masks, ...]] = get_args(Masks)
"""Ways to choose the masked words: by a coin for each, or as a fixed share of every text."""
Masked = Literal["leave_out", "zero_id"]
MASKED: Final[tuple[Masked, ...]] = get_args(Masked)
"""Treatments of masked words."""


@hinted
@dataclass(frozen=True, slots=True, repr=False)
class WordDropout(Shown):
    """Words of a text are masked at random, and with them the word pairs that they stand in.

    Args:
        mu: share of masked words, in [0, 1).
        masks: "bernoulli" masks each word by a coin of its own; "exact" masks exactly
            ``floor(mu n + 1/2)`` of the n words of a text, as the paper has it. Only for the
            former does `dpcore.calibration.word_dropout` hold.
        mask: "leave_out" takes masked words and their pairs out of the mean. "zero_id" is what the
            study's code does, for comparison: words and pairs alike are masked one by one, after
            the pairs were made, and become number 0, whose row is averaged in; a masked word
            survives in its pairs.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if `mu` is outside of [0, 1), or a word none of those above.

    Source:
        Lyu, He and Li (2020), section 3.3 (word dropout); the study: Zouhri and Abecidan (2021).

    Example:
        >>> masked = WordDropout(0.5, "exact").masked(torch.tensor([4, 2]))
        >>> masked[:4].sum().item(), masked[4:].sum().item()
        (2, 1)
    """

    mu: float
    masks: Masks = "bernoulli"
    mask: Masked = "leave_out"

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "mu", real("mu", self.mu, low=0.0, high=1.0, open_high=True))
        choice("masks", self.masks, MASKS)
        choice("mask", self.mask, MASKED)

    def masked(self, sizes: Any) -> Any:
        """Draw which entries are masked, by torch's default generator.

        Args:
            sizes: how many entries each text has, int64, shape `(texts,)`.

        Returns:
            bool, shape `(sum of sizes,)`, text after text.
        """
        total = int(sizes.sum())
        # In float64: the share of masked words is mu to 53 bits.
        keys = torch.rand(total, dtype=torch.float64)
        if self.masks == "bernoulli":
            return keys < self.mu
        text = torch.repeat_interleave(torch.arange(len(sizes)), sizes)
        first = torch.cumsum(sizes, 0) - sizes
        # Sorted within each text: two stable sorts, for text + key would cost the key its digits.
        order = torch.argsort(keys)
        order = order[torch.argsort(text[order], stable=True)]
        rank = torch.arange(total) - first[text]
        found = torch.zeros(total, dtype=torch.bool)
        found[order] = rank < torch.floor(self.mu * sizes + 0.5).to(torch.int64)[text]
        return found
