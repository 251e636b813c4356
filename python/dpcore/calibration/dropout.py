"""Reduction of a privacy loss by masking words at random, and where there is none."""

from __future__ import annotations

import math
from typing import Final, Literal, get_args

from ..errors import choice, flag, invalid, real
from ..hints import hinted
from ..mechanisms import positive

__all__ = ["word_dropout"]

Masks = Literal["bernoulli", "exact"]
"""Ways to mask words: each by a coin of its own, or a fixed share of every text."""

_MAX_EXPONENT: Final = 700.0
"""Above it e^epsilon leaves float64."""

_COUNTEREXAMPLE_HINT: Final = "see {!r} in dpcore.calibration.COUNTEREXAMPLES"


@hinted
def word_dropout(
    epsilon: float,
    mu: float,
    *,
    masks: Masks = "bernoulli",
    neighbours: Literal["one word", "any two texts"] = "one word",
    masked_is_neighbour: bool = True,
) -> float:
    """Compute the epsilon of a mechanism whose input has lost each word with probability mu.

    ``ln((1 - mu) e^epsilon + mu)``, under three conditions; without any one of them it is wrong,
    and there is an example for each (`COUNTEREXAMPLES`).

    Let P1 and Q1 be the laws of the output on x and x' when the one word in which they differ is
    kept, and P0 the law when it is masked, for the same masks of all other words. With
    ``m = min(Q1, P0)`` and ``c = (1 - mu) e^epsilon + mu``, at least 1, and P1 at most
    ``e^epsilon m``::

        (1 - mu) P1 + mu P0 <= c m + mu (P0 - m) <= c (m + mu (P0 - m)) <= c ((1 - mu) Q1 + mu P0)

    which stays true in the mean over the other masks. It needs ``P1 <= e^epsilon Q1``: the texts
    differ in *one word*; ``P1 <= e^epsilon P0``: the *masked text is a neighbour* too; and masks
    of the other words that know nothing of this one: *independent* (Bernoulli) masks.

    Args:
        epsilon: of the mechanism without masks, in (0, 1e300], for texts that differ in one word.
        mu: the probability that a word is masked, in [0, 1).
        masks: "bernoulli", each word masked independently of all others. "exact", a fixed number
            of words, is refused: which word is masked tells which others are not.
        neighbours: "one word", texts that differ in one word. "any two texts" is refused: masks
            hide a difference of n words with probability mu^n only.
        masked_is_neighbour: whether a text with one word masked counts as a neighbour of the text
            for the mechanism's own epsilon. False is refused.

    Returns:
        The epsilon with masks, at most `epsilon`, for texts that differ in one word.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if a number is out of range, or a condition does not hold.

    Source:
        Advanced joint convexity: Balle, Barthe and Gaboardi (2018), Privacy Amplification by
        Subsampling. Lyu, He and Li (2020), theorem 2, state the bound without conditions; their
        proof, and that of Zouhri and Abecidan (2021), section 3.3, which mends it, put the law of
        the output in place of its law given that the word is masked.

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
    _check_conditions(masks, neighbours, masked_is_neighbour)
    if epsilon > _MAX_EXPONENT:
        return epsilon + math.log1p(mu * math.expm1(-epsilon))
    # At mu = 0 the two roundings could end above epsilon.
    return min(math.log1p((1.0 - mu) * math.expm1(epsilon)), epsilon)


def _check_conditions(masks: str, neighbours: str, masked_is_neighbour: bool) -> None:
    choice("masks", masks, get_args(Masks))
    if masks != "bernoulli":
        why = "with a fixed number of masks the masked word tells which others are kept"
        raise invalid(
            "masks", f"'bernoulli' ({why}: {_COUNTEREXAMPLE_HINT.format('exact_counts')})", masks
        )
    if choice("neighbours", neighbours, ("one word", "any two texts")) != "one word":
        why = "masks hide a difference of n words with probability mu^n only"
        requirement = f"'one word' ({why}: {_COUNTEREXAMPLE_HINT.format('any_two_texts')})"
        raise invalid("neighbours", requirement, neighbours)
    if not flag("masked_is_neighbour", masked_is_neighbour):
        why = "a masked text that is no neighbour may answer unlike both"
        requirement = f"True ({why}: {_COUNTEREXAMPLE_HINT.format('masked_no_neighbour')})"
        raise invalid("masked_is_neighbour", requirement, masked_is_neighbour)
