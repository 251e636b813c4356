"""Bounds that attribute inference certifies, where any two texts are neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from ...bounds import predicted
from ...errors import choice
from ...recorded.run import OutputsAudit, audit_outputs
from ...records import Pair
from .encoding import Vectors
from .targets import Codes, Target

__all__ = ["NEIGHBOURS", "Beyond", "Neighbours", "certify", "why_not"]

Neighbours = Literal["any two texts", "words"]
NEIGHBOURS: Final[tuple[Neighbours, ...]] = get_args(Neighbours)
"""Meanings that neighbours may have in a claim."""

_COUNTED_SHARE: Final = 0.9
"""Share of the test texts that is counted: validation has chosen the event, so that the rest,
which only confirms the order of the sides, may be small."""

_LIMIT_TAILS: Final = (0.03, 0.1, 0.25, 0.5)
"""Tails of validation's limits (see `predicted`), tried until an event promises anything."""

_THRESHOLD_QUANTILES: Final = 201
"""Quantiles of the scores that are tried as thresholds."""

_MIN_TEXTS_PER_VALUE: Final = 20
"""Test texts of a value, from which the tenth that is not counted holds two."""


@dataclass(frozen=True)
class Beyond:
    """The event that a score is at least a threshold, or below it.

    Args:
        threshold: the threshold, fixed on validation.
        above: True for scores at or above it.
    """

    threshold: float
    above: bool

    def __call__(self, outputs: Any) -> npt.NDArray[np.bool_]:
        """Return True for outputs in the event, shape (size,)."""
        return np.asarray((np.asarray(outputs) >= self.threshold) == self.above)

    def __str__(self) -> str:
        """Return one line for a report."""
        return f"the attacker's score {'>=' if self.above else '<'} {self.threshold:.6g}"


def why_not(target: Target, neighbours: str | None, smallest: int) -> str | None:
    """Return the reason why nothing can be certified, or None."""
    if neighbours is not None:
        choice("neighbours", neighbours, NEIGHBOURS)
    if target.is_number:
        return "not applicable: a number"
    if target.several:
        return "not applicable: several attributes"
    if not target.binary:
        return "not applicable: not binary"
    if neighbours == "words":
        return "not applicable: word adjacency"
    if neighbours is None:
        return "not applicable: neighbours not stated (neighbours='any two texts' certifies)"
    if smallest < _MIN_TEXTS_PER_VALUE:
        return f"not applicable: fewer than {_MIN_TEXTS_PER_VALUE} test texts of one value"
    return None


def certify(
    valid: tuple[Vectors, Codes],
    test: tuple[Vectors, Codes],
    target: Target,
    claim: float | None,
    delta: float,
    confidence: float,
    seed: int,
) -> OutputsAudit:
    """Certify a lower bound on epsilon from the scores of test texts of the two values.

    Where any two texts are neighbours, ``P(E | text) <= e^epsilon P(E | text') + delta`` for all
    of them, so it holds for the means over the texts of either value, too. What is counted on each
    side is a sum of independent bits of unequal chances, which lies closer to its mean than the
    binomial of that mean (Hoeffding, 1956): the exact limits hold for texts as they are.
    Event and order of the sides are fixed on validation.

    Args:
        valid: scores, shape (n, 1), and codes of the validation texts.
        test: the same of the test texts.
        target: the attribute.
        claim: epsilon of the claim, or None.
        delta: delta of the claim.
        confidence: probability that the bound holds.
        seed: of the shuffle.

    Returns:
        The audit; x' is the side that was expected in the numerator.
    """
    sides, values = _split_by_truth(*test), target.values[0]
    trials = int(_COUNTED_SHARE * min(map(len, sides)))
    numerator, event = _choose_threshold_event(*_split_by_truth(*valid), trials, delta, confidence)
    told = [f"texts with {target.names[0]} = {values[code]}" for code in (1 - numerator, numerator)]

    def chosen_on_validation(outputs: Any, outputs_prime: Any, pair: Pair) -> Beyond:
        return event

    return audit_outputs(
        sides[1 - numerator],
        sides[numerator],
        rows="independent",
        claim=claim,
        delta=delta,
        confidence=confidence,
        attack=chosen_on_validation,
        pair=Pair(told[0], told[1]),
        count_share=_COUNTED_SHARE,
        # The limits hold for texts as they are; a corpus may be sorted by topic.
        arranged=True,
        rng=seed,
    )


def _split_by_truth(scores: Vectors, truth: Codes) -> tuple[Any, Any]:
    return scores[truth[:, 0] == 0, 0], scores[truth[:, 0] == 1, 0]


def _choose_threshold_event(
    none: Any, some: Any, trials: int, delta: float, confidence: float
) -> tuple[int, Beyond]:
    """Choose the numerator's side and the most promising event, at the first caution with any."""
    every = np.concatenate([none, some])
    cuts = np.unique(np.quantile(every, np.linspace(0.0, 1.0, _THRESHOLD_QUANTILES)))
    sides, ways = (none, some), [(above, side) for above in (True, False) for side in (1, 0)]
    counts = {
        above: [((side[:, np.newaxis] >= cuts) == above).sum(axis=0) for side in sides]
        for above in (True, False)
    }
    for tail in _LIMIT_TAILS:
        merits = np.stack([
            predicted(
                counts[above][side], len(sides[side]), counts[above][1 - side],
                len(sides[1 - side]), trials, delta, confidence, tail=tail,
            )
            for above, side in ways
        ])  # fmt: skip
        if merits.max() > 0.0:
            break
    way, cut = np.unravel_index(int(merits.argmax()), merits.shape)
    above, side = ways[int(way)]
    return side, Beyond(float(cuts[cut]), above)
