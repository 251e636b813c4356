"""`generated`: corpora that need no files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

import numpy as np

from ...errors import choice, integer
from ...hints import hinted
from ...streams import Rng, seed_of
from ..corpus import Corpus
from ..splitting import parts_of
from .filling import Drawn
from .intents import intents
from .repeats import repeats
from .topics import topics

__all__ = ["GENERATED", "Kind", "generated"]

Kind = Literal["topics", "intents", "repeats"]

GENERATED: Final[dict[Kind, Callable[[int, np.random.Generator], Drawn]]] = {
    "topics": topics,
    "intents": intents,
    "repeats": repeats,
}
"""Every kind of corpus that is made here."""

_SPLIT_SHARES: Final = (0.8, 0.1, 0.1)
_MIN_GENERATED_ROWS: Final = 100


@hinted
def generated(kind: Kind, rows: int, rng: Rng = None) -> Corpus:
    """Make a corpus of sentences from templates: material for tests, and where no data are.

    Args:
        kind: "topics": messages of two sentences, labels four topics, attribute `parent` (0 or
            1), which phrases give away; either is wrong in 8 % of the texts, so that no
            classifier can be much better than .92. "intents": questions to a timetable, labels
            six intents, attributes the slots `destination` and `day` ("none" where not named).
            "repeats": a quarter of the texts repeats another one, four in ten of these with
            another label; attributes five people, 1 where named.
        rows: number of texts, at least 100.
        rng: None, an int or a Generator; the origin of the corpus names the seed.

    Returns:
        The corpus, split 80/10/10 with equal texts in one part; the same for the same seed.

    Raises:
        TypeError: if `kind` is no string or `rows` no integer.
        ValueError: if there is no such kind, or there are fewer rows.

    Example:
        >>> corpus = generated("topics", 1000, rng=1)
        >>> corpus.origin
        'generated (topics, 1,000 rows, seed 1)'
        >>> corpus[3]
        'The beach was foggy, and we booked it before the city break. Read it while the little one
        was at the school gate.'
        >>> corpus.attribute("parent")[:5]
        array([0, 0, 1, 0, 0])
    """
    make = GENERATED[choice("kind", kind, tuple(GENERATED))]
    rows, seed = integer("rows", rows, _MIN_GENERATED_ROWS), seed_of(rng)
    generator = np.random.default_rng(seed)
    made = make(rows, generator)
    part = parts_of(made.texts, _SPLIT_SHARES, generator)
    origin = f"generated ({kind}, {rows:,} rows, seed {seed})"
    return Corpus(made.texts, made.labels, made.attributes, part, origin)
