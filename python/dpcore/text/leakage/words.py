"""Which words an attack is about, and which words the attacker knows before."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import instance, integer, invalid
from ...hints import hinted
from ...streams import Rng, seed_of
from .embedding import Embedding

__all__ = ["common", "deal"]


def common(victim: Embedding, *attackers: Embedding) -> tuple[str, ...]:
    """The words that all embeddings have, in the order of the first.

    Raises:
        TypeError: if one is no `Embedding`.
        ValueError: if they have no word in common.
    """
    for name, one in (("victim", victim), *(("attacker", one) for one in attackers)):
        instance(name, one, Embedding)
    found = tuple(word for word in victim.words if all(word in one for one in attackers))
    if not found:
        raise invalid("attacker", "an embedding with words of the victim's", list(victim.words[:4]))
    return found


@hinted
def deal(
    victim: Any, *attackers: Any, anchors: int = 1500, rng: Rng = None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Deal the common words at random into anchors and words that are held out.

    To compare numbers of anchors, use the first 10, 100, ... of them, always with these held-out
    words: rates on whatever words are left over would be those of other words each time.

    Args:
        victim: the `Embedding` whose words are private.
        *attackers: every `Embedding` that is to be used against it.
        anchors: the largest number of words that the attacker knows before.
        rng: None (fresh entropy), an int in [0, 2**63) or a Generator.

    Returns:
        The anchors and the held-out words, in random order.

    Raises:
        TypeError: if an embedding is none, or `anchors` no integer.
        ValueError: if there are no common words, or not more of them than `anchors`.

    Example:
        >>> e = Embedding(("a", "cat", "dog", "fox"), np.eye(4))
        >>> deal(e, Embedding(("fox", "dog", "a"), np.eye(3)), anchors=1, rng=1)
        (('a',), ('dog', 'fox'))
    """
    found, number = common(victim, *attackers), integer("anchors", anchors, 0)
    if number >= len(found):
        requirement = f"below the number of common words, {len(found):,}: some are to be found"
        raise invalid("anchors", requirement, number)
    order = np.random.default_rng(seed_of(rng)).permutation(len(found))
    words = tuple(found[row] for row in order)
    return words[:number], words[number:]
