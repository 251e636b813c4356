"""Groups of texts by the value of an attribute: how well the attack and the main task do there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...bounds import limits
from ...hints import hinted
from ...records import Record
from .attackers import Attacker, fitted
from .encoding import Vectors
from .judging import Measured, compare_shares
from .targets import Codes, Target

__all__ = ["Group", "MainTask", "groups_of", "main_task"]

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Group(Record):
    """The test texts of one value of an attribute.

    Attributes:
        attribute: name of the attribute.
        value: its value.
        texts: how many test texts have it.
        attack: share of them whose value is inferred.
        main: share of them whose main label is predicted, or None.
        gap: `main` here less `main` of all other test texts, or None.
    """

    attribute: str
    value: Any
    texts: int
    attack: Measured
    main: Measured | None
    gap: Measured | None


@hinted
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MainTask(Record):
    """Accuracy of the main label, predicted from the vectors.

    Attributes:
        attacker: the chosen attacker, or the first of all, whichever is better on validation; here
            it learns the label.
        accuracy: share of test texts whose label is predicted.
        majority: share of test texts that have the most frequent label of train.
        gain: `accuracy` less `majority`, on the same texts.
    """

    attacker: str
    accuracy: Measured
    majority: float
    gain: Measured

    @property
    def at_floor(self) -> bool:
        """True where the labels are not shown to be predicted better than by the majority."""
        return self.gain.low <= 0.0


def main_task(
    attackers: Sequence[Attacker],
    vectors: Sequence[Vectors],
    labels: Sequence[npt.NDArray[Any]] | None,
    confidence: float,
    seed: int,
) -> tuple[Flags | None, MainTask | None]:
    """Predict the main labels of the test texts by classifiers of attackers.

    Each label is separated from all others, which every classifier of two values can do, and the
    highest score is the prediction.

    Args:
        attackers: estimators and transforms, which learn the label: first the chosen attacker,
            then others that may do better.
        vectors: of the texts of train, valid and test.
        labels: their main labels, or None.
        confidence: of each interval.
        seed: of the estimators.

    Returns:
        Which labels the first attacker predicts, and the record of the one that is best on
        validation, of equal ones the first; None and None where train has no two labels.
    """
    if labels is None:
        return None, None
    known, counts = np.unique(labels[0], return_counts=True)
    if len(known) < 2:
        return None, None
    target = Target(tuple(map(str, known)), ((0, 1),) * len(known))
    truth = (labels[0][:, np.newaxis] == known).astype(np.int64)
    models = [fitted(one, vectors[0], truth, target, seed) for one in attackers]
    valid, test = (
        [known[model.scores(vectors[part]).argmax(axis=1)] == labels[part] for model in models]
        for part in (1, 2)
    )
    best = int(np.argmax([right.mean() for right in valid]))
    majority = known[counts.argmax()] == labels[2]
    gain = compare_shares(test[best], majority, (1.0 - confidence) / 2.0)
    share = _measure_share(test[best], confidence)
    return test[0], MainTask(str(attackers[best]), share, float(majority.mean()), gain)


def groups_of(
    target: Target, truth: Codes, answers: Codes, main: Flags | None, confidence: float
) -> tuple[Group, ...]:
    """Return a group for each value; for several attributes, for each one's positive value only.

    Args:
        target: what is inferred.
        truth: codes of the test texts, shape (n, attributes).
        answers: what the attacker answers, of the same shape.
        main: which main labels are predicted rightly, or None.
        confidence: of each interval by itself.
    """
    found = []
    for column, (name, values) in enumerate(zip(target.names, target.values, strict=True)):
        # A number has no values, so that it has no groups.
        right = answers[:, column] == truth[:, column]
        for code, value in enumerate(values):
            here = truth[:, column] == code
            if not here.any() or (target.several and code == 0):
                continue
            both = None if main is None or here.all() else (main[here], main[~here])
            found.append(
                Group(
                    name, value, int(here.sum()), _measure_share(right[here], confidence),
                    None if main is None else _measure_share(main[here], confidence),
                    None if both is None else _measure_gap(*both, confidence),
                )
            )  # fmt: skip
    return tuple(found)


def _measure_share(right: Flags, confidence: float) -> Measured:
    k, n = int(right.sum()), len(right)
    return Measured(k / n, *limits(k, n, (1.0 - confidence) / 2.0), "Clopper-Pearson")


def _measure_gap(first: Flags, second: Flags, confidence: float) -> Measured:
    """Subtract two shares (Newcombe, 1998, method 10, with the exact limits of each)."""
    one, other = _measure_share(first, confidence), _measure_share(second, confidence)
    gap = one.value - other.value
    low = gap - math.hypot(one.value - one.low, other.high - other.value)
    high = gap + math.hypot(one.high - one.value, other.value - other.low)
    return Measured(gap, max(-1.0, low), min(1.0, high), "Newcombe")
